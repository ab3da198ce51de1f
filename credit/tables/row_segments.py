"""Rows in the order of events, split into traces or agent instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from credit.tables.column_values import ColumnError
from graphs.text import excerpt

__all__ = ["Segments"]


@dataclasses.dataclass(frozen=True)
class Segments:
    """Rows in the order of events, split into traces or instances that are numbered by first appearance.

    Attributes:
      kind: "trace" or "agent", for messages.
      ids: the segment of each row, [N].
      first: the first row of each segment, [count].
      order: the row of the caller at each position, [N].
      name: the id of a segment in the caller's columns, None where it has none.
    """

    kind: str
    ids: np.ndarray
    first: np.ndarray
    order: np.ndarray
    name: Callable[[int], pa.Scalar | None]

    @property
    def count(self) -> int:
        """The number of segments."""
        return len(self.first)

    def constant(self, column: str, values: np.ndarray, advice: str) -> np.ndarray:
        """The one value of each segment: [N] to [count].

        Raises:
          ColumnError: a segment has two values; `advice` ends the message.
        """
        whole: np.ndarray = values[self.first]
        different = values != whole[self.ids]
        if different.any():
            expected = whole[self.ids]
            different &= ~((values != values) & (expected != expected))  # NaN agrees with NaN
        if different.any():
            row = int(np.argmax(different))
            segment = int(self.ids[row])
            name = self.name(segment)
            rows = sorted((int(self.order[self.first[segment]]), int(self.order[row])))
            which = "" if name is None else f" {excerpt(name.as_py())}"
            raise ColumnError(column, rows, f"{self.kind}{which} has different values; {advice}")
        return whole
