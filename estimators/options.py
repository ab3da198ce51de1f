"""The options of methods: which values each may take, checked in one place before any array is touched.

A method is decorated with `checked_options`. Its keyword arguments are then compared with `BOUNDS`, by name, and with
the choices that its annotations list. The check reads numbers that are known when the method is called; values that
`jax.jit` or `jax.vmap` trace pass unchecked.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["BOUNDS", "Bound", "checked_options", "refuse_option"]

P = ParamSpec("P")
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class Bound:
    """The values that a numeric option may take.

    Attributes:
      low, high: the closed interval.
      words: the same for people, after "expected".
      whole: whether only integers are allowed.

    Examples:
      >>> Bound(0, 1, "a number from 0 to 1").holds(0.5)
      True
    """

    low: float
    high: float
    words: str
    whole: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a number, or every number of an array, lies within the bound; NaN never does."""
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "biuf" and not _is_extended_float(numbers.dtype):
            return False
        numbers = numbers.astype(np.float64)
        within = (numbers >= self.low) & (numbers <= self.high)
        return bool(np.all(within & (numbers == np.round(numbers)) if self.whole else within))


_FRACTION = Bound(0, 1, "a number from 0 to 1")
_NOT_NEGATIVE = Bound(0, float(np.finfo(np.float32).max), "a finite number that is not negative")

BOUNDS: Mapping[str, Bound] = {
    "ddof": Bound(0, 1, "0 or 1", whole=True),
    "decay": _FRACTION,
    "discount": _FRACTION,
    "eps": _NOT_NEGATIVE,
    "lambda_": _FRACTION,
    "max_steps": Bound(1, 2**31 - 1, "a positive integer", whole=True),
    "min_ess": _NOT_NEGATIVE,
    "min_ess_fraction": _FRACTION,
    "mix": _FRACTION,
    "unseen": _FRACTION,
}
"""The bound of each numeric option, by name; an option means the same in every method that takes it."""


def checked_options(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method so that it refuses options outside their bounds, or outside the choices of their annotation.

    The decorator goes above `jax.jit`, which would hide the values. Signature, docstring and name stay the method's.

    Raises:
      CreditError: by the decorated method, where an option has a value that it cannot take.

    Examples:
      >>> from estimators import grpo
      >>> grpo(None, None, ddof=-3)
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: grpo: ddof is -3; expected 0 or 1
    """

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for option, value in kwargs.items():
            _check(method, option, value)
        return method(*args, **kwargs)

    return checked


def refuse_option(method: str, option: str, value: object, expected: str) -> typing.NoReturn:
    """Raise the error of an option's value, in one form for Python and the command line.

    Raises:
      CreditError: always.
    """
    raise CreditError(f"{method}: {option} is {excerpt(value)}; expected {expected}")


def _check(method: Callable[..., Any], option: str, value: Any) -> None:
    if value is None or isinstance(value, jax.core.Tracer):
        return
    choices = _choices(method).get(option)
    if choices is not None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            refuse_option(_name(method), option, value, " or ".join(map(repr, choices)))
    elif isinstance(value, float | np.floating) and np.isnan(value):
        refuse_option(_name(method), option, value, "a number")
    elif option in BOUNDS and not BOUNDS[option].holds(value):
        refuse_option(_name(method), option, value, BOUNDS[option].words)


@functools.cache
def _choices(method: Callable[..., Any]) -> dict[str, tuple[Any, ...]]:
    """The options of a method whose annotation is a list of choices, perhaps with None."""
    choices = {}
    for name, hint in typing.get_type_hints(inspect.unwrap(method)).items():
        parts = typing.get_args(hint) if typing.get_origin(hint) is not typing.Literal else (hint,)
        literals = [part for part in parts if typing.get_origin(part) is typing.Literal]
        if literals and all(part in literals or part is type(None) for part in parts):
            choices[name] = tuple(choice for part in literals for choice in typing.get_args(part))
    return choices


def _name(method: Callable[..., Any]) -> str:
    return getattr(inspect.unwrap(method), "__name__", "method")


def _is_extended_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of JAX's own floats, such as bfloat16, which NumPy counts as no number."""
    return bool(jax.numpy.issubdtype(dtype, np.floating))
