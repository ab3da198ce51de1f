"""Facts of a batch. They are computed once, and kept with the batch."""

from __future__ import annotations

from typing import Self

from graphs.traces.batch import Traces

__all__ = ["OfBatch"]


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
