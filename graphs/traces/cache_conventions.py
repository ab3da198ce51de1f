"""Whether the tokens that a call read have those of a cache among them, where its format leaves that open.

A call shows it only where it read less than came from the cache. A producer writes all its calls alike.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from graphs.errors import Problem
from graphs.traces.evidence import Evidence
from graphs.traces.part import ABSENT_COUNT, Heading
from graphs.traces.schema import LARGEST_COUNT

__all__ = ["SHOWN", "ShownBeside", "TakenAsWithin", "shown_beside", "with_one_convention"]

SHOWN = "shown beside"
"""The column of a part that has what its calls show."""


class TakenAsWithin(int):
    """Tokens that a call read, as stated: those of a cache may stand beside them."""


class ShownBeside(int):
    """Tokens that a call read, those of a cache added: the call shows that they stand beside."""


def shown_beside(read: Sequence[Any]) -> dict[str, np.ndarray]:
    """The column `SHOWN`, int32 [e]: 0 where the tokens of a cache may stand beside, 1 where they do, else absent.

    Args:
      read: tokens that each event read, None where absent.
    """
    kinds = list(map(type, read))
    if TakenAsWithin not in kinds and ShownBeside not in kinds:
        return {}
    of = {TakenAsWithin: 0, ShownBeside: 1}
    return {SHOWN: np.array([of.get(kind, ABSENT_COUNT) for kind in kinds], np.int32)}


def with_one_convention(
    evidence: MutableMapping[str, Evidence],
    shown: Sequence[np.ndarray | None],
    lengths: Sequence[int],
    headings: Sequence[Heading],
    trace: np.ndarray,
    models: pa.ChunkedArray,
    of_traces: Sequence[str],
) -> Iterator[Problem]:
    """Add the tokens of a cache to those of each call of a format and model of which one call shows them beside.

    Args:
      evidence: of the events, whose `input_tokens` is replaced.
      shown: of each part the column `SHOWN`, None where it has none.
      lengths: how many events each part has.
      headings: of the traces.
      trace: of each event [E].
      models: of each event, null for that of its trace.
      of_traces: the model of each trace.

    Yields:
      A note for each format and model with calls that do not show it.
    """
    if all(column is None for column in shown):
        return
    columns = [
        np.full(length, ABSENT_COUNT) if column is None else column
        for column, length in zip(shown, lengths, strict=True)
    ]
    found = np.concatenate(columns)
    calls: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    rows = np.flatnonzero(found != ABSENT_COUNT)
    for row, of, called in zip(
        rows.tolist(), trace[rows].tolist(), models.take(pa.array(rows)).to_pylist(), strict=True
    ):
        model = of_traces[of] if called is None else called
        calls.setdefault((headings[of].format, model), ([], []))[found[row]].append(row)
    read = evidence["input_tokens"].array.copy()
    for (_, model), (taken, told) in calls.items():
        if not (taken and told):
            continue
        of_cache = [evidence[name].array[taken] for name in ("cached_tokens", "cache_write_tokens") if name in evidence]
        whole = sum((np.maximum(count, 0).astype(np.int64) for count in of_cache), read[taken])
        read[taken] = np.minimum(whole, LARGEST_COUNT)
        first = headings[trace[told[0]]]
        count = len(taken) + len(told)
        value = f"less than came from a cache in {len(told)} of {count} calls{' of ' * bool(model)}{model}"
        expected = f"tokens of a cache among them: they stand beside, and are added in all {count}"
        yield Problem("cache-beside", first.file, first.line, "input_tokens", value, expected, first.trace_id)
    evidence["input_tokens"] = Evidence(read)
