"""Rows of tables outside the log whose trace stands in a line that cannot be read: the damage is said once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphs.errors import Problem
from graphs.reading.damage import whole_ids
from graphs.reading.source import Source
from graphs.reading.tables.joins import Join
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["noting_damage"]

Item = TraceRecord | Part | Problem


def noting_damage(items: Iterable[Item], sources: Iterable[Source], join: Join) -> Iterator[Item]:
    """The items; at their end `join` knows which of its rows are of a trace whose id stands in a damaged line.

    Args:
      items: what readers yield.
      sources: the files that they read.
      join: the tables, which take the items one by one.
    """
    damaged: dict[str, dict[int, Problem]] = {}
    for item in items:
        if isinstance(item, Problem) and item.is_failure and item.line and not item.trace:
            damaged.setdefault(item.file, {})[item.line] = item
        yield item
    absent = {trace for table in (join.rewards, join.groups) for trace in table} - join.met
    for source in sources:
        at = damaged.get(source.name) if absent else None
        for line, _, text in source.unchecked_lines() if at else ():
            if at and line in at:
                join.refused |= dict.fromkeys(absent.intersection(whole_ids(text)), at[line])
        if at:
            source.release()
