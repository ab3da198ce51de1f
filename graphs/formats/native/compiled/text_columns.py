"""Compiled loops that gather the texts of one column, found by a scan, into one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.formats.native.compiled.compiling import loop

__all__ = ["copy_texts", "mark_texts"]


@loop
def mark_texts(starts: Any, stops: Any, present: Any, bit: Any, offsets: Any, valid: Any) -> None:
    """Where each text of a column ends among all of them, int32 [e + 1], and the bits of those that are there."""
    size = 0
    valid[:] = 0
    for row in range(len(present)):
        offsets[row] = size
        if present[row] & bit:
            size += stops[row] - starts[row]
            valid[row >> 3] |= np.uint8(1 << (row & 7))
    offsets[len(present)] = size


@loop
def copy_texts(text: Any, starts: Any, offsets: Any, out: Any) -> None:
    """Copy the texts of a column into `out`, one after another; `offsets` has their bounds."""
    for row in range(len(offsets) - 1):
        shift = np.int64(starts[row]) - offsets[row]
        for at in range(offsets[row], offsets[row + 1]):
            out[at] = text[at + shift]
