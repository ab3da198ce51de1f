"""Rewards and groups that are kept outside the log, joined to traces by their ids."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphs.errors import Problem, excerpt
from graphs.part import Heading, Part
from graphs.readers.rows import read_rows
from graphs.record import TraceRecord

__all__ = ["Join"]


@dataclasses.dataclass
class Join:
    """What to write into records as they pass: outcomes (into reward channel `channel`) and groups, by trace id."""

    channel: str
    rewards: dict[str, float]
    groups: dict[str, str]
    problems: list[Problem]
    places: dict[str, tuple[str, int]]  # "reward\0trace" -> file and line, for rows that match nothing
    met: set[str] = dataclasses.field(default_factory=set)  # ids of the traces that passed

    @classmethod
    def load(
        cls,
        *,
        channel: str,
        rewards: str | Path | Mapping[str, float] | None,
        groups: str | Path | Mapping[str, str] | None,
    ) -> Join:
        """Read the two tables; a row that is ambiguous or malformed becomes a problem, not a guess.

        Raises:
          TraceError: a table that was named cannot be read: to go on without it would read other rewards than asked.
        """
        join = cls(channel, {}, {}, [], {})
        join._fill("reward", rewards, join.rewards)
        join._fill("group", groups, join.groups)
        return join

    def _fill(self, field: str, given: str | Path | Mapping[str, Any] | None, into: dict[str, Any]) -> None:
        if given is None:
            return
        rows: Iterable[tuple[int, dict[str, Any] | Problem]]
        if isinstance(given, Mapping):
            rows = enumerate(({"trace": trace, field: value} for trace, value in given.items()), start=1)
            name = f"<{field}s>"
        else:
            name = str(given)
            rows = read_rows(given)
        ambiguous: set[str] = set()
        for line, row in rows:
            if isinstance(row, Problem):
                self.problems.append(row)
                continue
            trace, value = row.get("trace", row.get("trace_id")), row.get(field)
            if trace is None or value is None:
                expected = f"a row with `trace` and `{field}`"
                self.problems.append(Problem("bad-row", name, line, field, excerpt(row), expected))
                continue
            trace = str(trace)
            if trace in into or trace in ambiguous:
                into.pop(trace, None)
                ambiguous.add(trace)
                problem = Problem("ambiguous-row", name, line, "trace", excerpt(trace), "one row for each trace", trace)
                self.problems.append(problem)
                continue
            converted = str(value) if field == "group" else _finite(value)
            if converted is None:
                ambiguous.add(trace)  # a second, well-formed row must not stand in for this one
                problem = Problem("non-finite-reward", name, line, field, excerpt(value), "a finite number", trace)
                self.problems.append(problem)
                continue
            into[trace] = converted
            self.places[f"{field}\0{trace}"] = (name, line)

    def apply(self, items: Iterable[TraceRecord | Part | Problem]) -> Iterator[TraceRecord | Part | Problem]:
        """Pass items on, with rewards and groups written in; before them what is wrong with the tables themselves, and
        at the end the rows that met no trace.
        """
        yield from self.problems
        yield from self.write(items)
        yield from self.unmatched()

    def write(self, items: Iterable[TraceRecord | Part | Problem]) -> Iterator[TraceRecord | Part | Problem]:
        """Pass items on, with rewards and groups written in."""
        for item in items:
            traces: Iterable[TraceRecord | Heading] = ()
            if not isinstance(item, Problem):
                traces = item.headings if isinstance(item, Part) else (item,)
            for trace in traces:
                self.met.add(trace.trace_id)
                if trace.trace_id in self.rewards:
                    trace.rewards[self.channel] = self.rewards[trace.trace_id]
                trace.group_id = self.groups.get(trace.trace_id, trace.group_id)
            yield item

    def unmatched(self) -> Iterator[Problem]:
        """The rows that have met no trace."""
        for field, table in (("reward", self.rewards), ("group", self.groups)):
            for trace_id in table:
                if trace_id not in self.met:
                    name, line = self.places[f"{field}\0{trace_id}"]
                    yield Problem(
                        "unmatched-row", name, line, "trace", excerpt(trace_id), "the id of a trace that was read"
                    )


def _finite(value: Any) -> float | None:
    """The number that a cell holds; None where it holds none, or one that is not finite. A bool is no number."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
