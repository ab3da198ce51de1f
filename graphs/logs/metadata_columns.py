"""The task of traces, its kind and the system from the metadata of their log, where the user names the keys."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterable, Iterator, Mapping

from graphs.errors import UNREAD_METADATA, Problem
from graphs.formats.table.few_words import FewWords
from graphs.formats.table.hints import columns_option
from graphs.reading.tables.join_rows import OF_TASKS
from graphs.reading.tables.likely_columns import snake_case
from graphs.text import excerpt
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["OF_METADATA", "WITH_METADATA", "names_metadata", "read_metadata"]

WITH_METADATA = ("openai-agents", "langfuse", "langsmith", "otlp", "spans")
"""Formats whose records have `metadata`."""
OF_METADATA = {"group": "group_id", **{ours: ours for ours in OF_TASKS}}
"""What may be a key of metadata, by our names of columns, as the attribute of a record that has it."""
_TASKS = re.compile(
    r"(?:^|_)(?:task|ticket|issue|case|question|problem|instance|example|sample|scenario|puzzle|prompt|query)"
    r"(?:_?(?:id|no|nr|number|key|uid|uuid|slug))?$"
)
"""Keys in small letters that name a task."""
FEWEST_TASKS = 5


def names_metadata(columns: Mapping[str, str] | None) -> bool:
    """Whether columns by meaning may be keys of metadata: they are of a trace alone.

    Examples:
      >>> names_metadata({"group": "ticket"}), names_metadata({"group": "ticket", "trace": "run"})
      (True, False)
    """
    return bool(columns) and {*(columns or {})} <= {*OF_METADATA}


def read_metadata(
    items: Iterable[TraceRecord | Part | Problem],
    columns: Mapping[str, str] | None = None,
    *,
    has_groups: bool = False,
) -> Iterator[TraceRecord | Part | Problem]:
    """The items of a format of `WITH_METADATA`, each trace with what the named keys of its metadata state of it.

    A key that no trace has is a problem. Of the others, a note says which seem to be a task, a system or a kind.

    Args:
      items: what its reader yields.
      columns: keys of metadata by our names of columns.
      has_groups: whether a table states the tasks.
    """
    named = {ours: key for ours, key in (columns or {}).items() if ours in OF_METADATA and key}
    met: set[str] = set()
    few: FewWords | None = None
    states: dict[str, set[str]] = {ours: set() for ours in OF_TASKS}
    tasks: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    count, has_groups = 0, has_groups or "group" in (columns or {})
    first: TraceRecord | None = None
    for item in items:
        if isinstance(item, TraceRecord):
            first, stated, item.metadata = first or item, item.metadata, {}
            met.update(stated)
            for ours, key in named.items():
                setattr(item, OF_METADATA[ours], stated.get(key, getattr(item, OF_METADATA[ours])))
            count, has_groups = count + (item.unread is None), has_groups or item.group_id != item.trace_id
            for key in stated if item.unread is None and not has_groups else ():
                if _names_a_task(key):
                    tasks[key][stated[key]] += 1
            for ours, values in states.items():
                values.add(getattr(item, ours))
            if stated:
                rest = [key for key in stated if key not in named.values()]
                few = few or FewWords(rest, ["type", *(ours for ours in OF_TASKS if ours in (columns or {}))])
                few.add(item.trace_id, stated, None)
        yield item
    absent = [f"{ours}={key}" for ours, key in named.items() if key not in met]
    if first is not None and absent:
        known = f"keys of the metadata of traces: {', '.join(sorted(met)) or 'these have none'}"
        beside = " and ".join(f"`{ours}`" for ours, key in named.items() if key not in met)
        expected = f"{known}; a table with columns `trace` and {beside} goes to --groups"
        yield Problem("absent-metadata", first.file, first.line, "columns", excerpt(",".join(absent)), expected)
    likely = {ours: key for ours, key in (few.likely() if few else {}).items() if len(states[ours]) < 2}
    task = next((key for key, values in tasks.items() if _are_tasks(values, count)), "")
    if task and not has_groups:
        likely["group"] = task
    if first is not None and likely:
        names = " or ".join(f"`{ours}`" for ours in likely)
        expected = f"{names}: read with {columns_option({**(columns or {}), **likely})}"
        yield Problem(
            UNREAD_METADATA, first.file, first.line, "metadata", excerpt(", ".join(likely.values())), expected
        )


@functools.lru_cache(maxsize=1024)  # each trace has the same keys
def _names_a_task(key: str) -> bool:
    return _TASKS.search(snake_case(key.rpartition(".")[2])) is not None


def _are_tasks(values: collections.Counter[str], traces: int) -> bool:
    """Whether all traces state one of many values, and most share theirs with few others: a kind of task has few."""
    shared = sum(count for count in values.values() if count > 1)
    are_many = len(values) >= FEWEST_TASKS and len(values) ** 2 >= traces
    return are_many and values.total() == traces and 2 * shared > traces
