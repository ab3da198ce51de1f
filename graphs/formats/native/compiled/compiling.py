"""How loops over bytes are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["loop", "step"]

_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}
# Without `_nrt` (an option that Numba lists and does not document) every call of one loop by another counts references
# to its arrays, with locked instructions: a third of the time. A loop without it cannot make arrays, only fill them.


def loop(function: Callable[..., Any]) -> Any:
    """Compile a function for the types of its first call, to be kept on disk and run without the interpreter's lock."""
    return _compiled(function, {})


def step(function: Callable[..., Any]) -> Any:
    """Compile a function into each loop that calls it: its arrays, a dozen words each, are not passed again."""
    return _compiled(function, {"forceinline": True})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    try:
        return numba.njit(cache=True, **_OPTIONS, **options)(function)
    except RuntimeError:  # no folder can be written: each process compiles it again
        return numba.njit(**_OPTIONS, **options)(function)
