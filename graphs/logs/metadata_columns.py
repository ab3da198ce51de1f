"""The system and the kind of task of traces from the metadata of their log, where the user names the keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from graphs.errors import UNREAD_METADATA, Problem
from graphs.formats.table.few_words import FewWords
from graphs.formats.table.hints import columns_option
from graphs.reading.tables.join_rows import OF_TASKS
from graphs.text import excerpt
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["WITH_METADATA", "names_metadata", "read_metadata"]

WITH_METADATA = ("openai-agents", "langfuse", "langsmith", "otlp")
"""Formats whose records have `metadata`."""


def names_metadata(columns: Mapping[str, str] | None) -> bool:
    """Whether columns by meaning may be keys of metadata: they are of a trace alone.

    Examples:
      >>> names_metadata({"system": "release"}), names_metadata({"system": "release", "trace": "run"})
      (True, False)
    """
    return bool(columns) and {*(columns or {})} <= {*OF_TASKS}


def read_metadata(
    items: Iterable[TraceRecord | Part | Problem], columns: Mapping[str, str] | None = None
) -> Iterator[TraceRecord | Part | Problem]:
    """The items of a format of `WITH_METADATA`, each trace with what the named keys of its metadata state of it.

    A key that no trace has is a problem. Of the others, a note says which seem to be a system or a kind of task.

    Args:
      items: what its reader yields.
      columns: keys of metadata by our names of columns.
    """
    named = {ours: key for ours, key in (columns or {}).items() if ours in OF_TASKS and key}
    met: set[str] = set()
    few: FewWords | None = None
    states: dict[str, set[str]] = {ours: set() for ours in OF_TASKS}
    first: TraceRecord | None = None
    for item in items:
        if isinstance(item, TraceRecord):
            first, stated, item.metadata = first or item, item.metadata, {}
            met.update(stated)
            for ours, key in named.items():
                setattr(item, ours, stated.get(key, getattr(item, ours)))
            for ours, values in states.items():
                values.add(getattr(item, ours))
            if stated:
                rest = [key for key in stated if key not in named.values()]
                few = few or FewWords(rest, ["type", *(ours for ours in OF_TASKS if ours in (columns or {}))])
                few.add(item.trace_id, stated, None)
        yield item
    absent = [f"{ours}={key}" for ours, key in named.items() if key not in met]
    if first is not None and absent:
        expected = f"keys of the metadata of traces: {', '.join(sorted(met)) or 'these have none'}"
        yield Problem("absent-metadata", first.file, first.line, "columns", excerpt(",".join(absent)), expected)
    likely = {ours: key for ours, key in (few.likely() if few else {}).items() if len(states[ours]) < 2}
    if first is not None and likely:
        expected = f"`system` or `task_kind`: read with {columns_option({**(columns or {}), **likely})}"
        yield Problem(
            UNREAD_METADATA, first.file, first.line, "metadata", excerpt(", ".join(likely.values())), expected
        )
