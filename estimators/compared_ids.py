"""Ids that are compared with each other only, in the 32 bits that JAX keeps of an integer.

JAX cuts integers of 64 bits to 32 without a word, where `jax_enable_x64` is off, so that 1 and 1 + 2**32 become one
id. What is decorated or called here sees the arrays before a compiled function does. Tracers stay as they are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from graphs.errors import CreditError

__all__ = ["before_compiling", "beyond", "numbered", "refuse_wide"]

P = ParamSpec("P")
R = TypeVar("R")

_BOUNDS = np.iinfo(np.int32)


def _too_wide(ids: Any) -> np.ndarray | None:
    """The integers of an array on the host, if one of them has no place in 32 bits."""
    if isinstance(ids, jax.core.Tracer) or not isinstance(ids, np.ndarray | jax.Array):
        return None
    if ids.dtype.kind not in "iu" or np.can_cast(ids.dtype, np.int32) or not ids.size:
        return None
    integers = np.asarray(ids)
    return None if int(integers.min()) >= _BOUNDS.min and int(integers.max()) <= _BOUNDS.max else integers


def numbered(ids: Any, *, absent: bool = True) -> Any:
    """Ids as they are where all fit into 32 bits, else numbered from 0 in their order: int32, of the same shape.

    Args:
      ids: integers of any width and shape; what is no array of integers, and a tracer, stays as it is.
      absent: whether a negative number means that there is none, and becomes -1; else it is an id, too.

    Examples:
      >>> numbered(np.array([5, 5 + 2**32, 5, -1])).tolist()
      [0, 1, 0, -1]
      >>> numbered(np.array([5, 7, 5, -1])).tolist()
      [5, 7, 5, -1]
    """
    integers = _too_wide(ids)
    if integers is None:
        return ids
    known = integers >= 0 if absent else np.ones(integers.shape, bool)
    dense = np.full(integers.shape, -1, np.int32)
    dense[known] = np.unique(integers[known], return_inverse=True)[1]
    return dense


def refuse_wide(name: str, values: Any) -> None:
    """Refuse integers that are more than compared, such as counts, where one does not fit into 32 bits.

    Raises:
      CreditError: names the argument and the first such number.

    Examples:
      >>> refuse_wide("tokens", np.array([3, 2**40]))
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: tokens has 1099511627776 at place 1; expected integers of 32 bits
    """
    integers = _too_wide(values)
    if integers is not None:
        flat = integers.ravel()
        place = int(np.argmax((flat < _BOUNDS.min) | (flat > _BOUNDS.max)))
        raise CreditError(f"{name} has {flat[place]} at place {place}; expected integers of 32 bits")


def beyond(ids: Any) -> Any:
    """Ids that are places, as they are where all fit into 32 bits; else those beyond become the last one, int32.

    Examples:
      >>> beyond(np.array([0, 2**32, -1])).tolist()
      [0, 2147483647, -1]
    """
    integers = _too_wide(ids)
    if integers is None:
        return ids
    least = 0 if integers.dtype.kind == "u" else -1
    return np.clip(integers, least, _BOUNDS.max).astype(np.int32)


def before_compiling(**fits: Callable[[Any], Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function, above `jax.jit`: each argument of these names goes through the function given for it.

    Examples:
      >>> double = before_compiling(ids=numbered)(jax.jit(lambda ids: 2 * ids))
      >>> double(np.array([1, 1 + 2**32])).tolist()
      [0, 2]
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        names = tuple(inspect.signature(function).parameters)

        def fit(name: str, value: Any) -> Any:
            if name not in fits:
                return value
            return fits[name](np.asarray(value) if isinstance(value, list | tuple) else value)

        @functools.wraps(function)
        def narrowed(*args: P.args, **kwargs: P.kwargs) -> R:
            positional = [fit(name, value) for name, value in zip(names, args, strict=False)]
            compiled: Callable[..., R] = function
            keyword = {name: fit(name, value) for name, value in kwargs.items()}
            return compiled(*positional, *args[len(names) :], **keyword)

        return narrowed

    return decorate
