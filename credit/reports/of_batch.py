"""Facts of a batch. They are computed once, and kept with the batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from graphs.traces.batch import Traces

__all__ = ["OfBatch", "kept"]

P = ParamSpec("P")
R = TypeVar("R")


class OfBatch:
    """What a class says of a batch.

    Args:
      traces: what was read.
    """

    def __init__(self, traces: Traces) -> None:
        self.traces = traces

    @classmethod
    def of(cls, traces: Traces) -> Self:
        """The object of a batch, the same each time.

        Args:
          traces: what was read.
        """
        if cls not in traces.kept:
            traces.kept[cls] = cls(traces)
        found: Self = traces.kept[cls]
        return found


def kept(function: Callable[Concatenate[Traces, P], R]) -> Callable[Concatenate[Traces, P], R]:
    """Decorate a function of a batch and plain words: what it finds is the same each time, so an array is read-only.

    Args:
      function: of few bytes for each event, or of traces.
    """

    @functools.wraps(function)
    def of(traces: Traces, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = function, args, *kwargs.items()
        if key not in traces.kept:
            found = traces.kept[key] = function(traces, *args, **kwargs)
            for part in found if isinstance(found, tuple) else (found,):
                if isinstance(part, np.ndarray):
                    part.flags.writeable = False
        result: R = traces.kept[key]
        return result

    return of
