"""How much memory a function of one's own would take: the largest array that it makes, before it makes it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax

from graphs.errors import CreditError

__all__ = ["check_memory", "room"]


def room() -> int:
    """Bytes that one array may take: half of the machine's memory, 8 GiB where that is not known."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return 8 << 30
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def check_memory(what: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse to call a function that would make an array larger than `room`.

    The function is traced, which computes nothing. One that cannot be traced is no function of JAX, and is not looked
    at. Nor is one that is being traced already.

    Args:
      what: the function, in the words of the message.
      fn, args, kwargs: the call; the first argument is the graph.

    Raises:
      CreditError: an array is too large; its shape, its size and the events of the batch are named.
    """
    leaves = jax.tree.leaves((args, dict(kwargs)))
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return
    arrays = {name: value for name, value in kwargs.items() if hasattr(value, "shape")}
    others = {name: value for name, value in kwargs.items() if name not in arrays}
    try:
        traced = jax.make_jaxpr(lambda args, arrays: fn(*args, **arrays, **others))(args, arrays)
    except (TypeError, IndexError):  # of JAX, where a function wants numbers; what else is wrong, the call itself says
        return
    most = room()
    for shape, size in _arrays(traced.jaxpr):
        if size > most:
            events = int(args[0].num_events)
            raise CreditError(
                f"{what} makes an array of {' x '.join(f'{n:,}' for n in shape)} numbers, {size / 2**30:.1f} GiB, of "
                f"{events:,} events; expected {most / 2**30:.1f} GiB at most on this machine: draw fewer traces or "
                "events, or work group by group"
            )


def _arrays(jaxpr: Any) -> Iterator[tuple[tuple[int, ...], int]]:
    """Shape and bytes of every array that a computation makes, those of computations inside it included."""
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            shape = getattr(variable.aval, "shape", ())
            itemsize = getattr(getattr(variable.aval, "dtype", None), "itemsize", 0)
            yield tuple(shape), math.prod(shape) * itemsize
        for value in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "jaxpr")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _arrays(inner)
