"""How many traces were refused, which system or file has none left, and which records may have held more."""

from __future__ import annotations

import collections
import dataclasses
from typing import Self

from graphs.errors import LONGEST_ID, UNREAD_OUTCOME, Problem
from graphs.text import counted, printable
from graphs.traces.batch import Traces

__all__ = ["RefusedTraces", "refused_ids"]

OF_RECORDS = "content", "row", "file"
"""What is wrong of a record that as a whole was not read."""
MOST_WHOLE = 2
"""Systems or files without a trace that are named."""


def refused_ids(traces: Traces) -> set[str]:
    """The ids of traces that were not read, by problems that name them.

    Args:
      traces: what was read.
    """
    named = {one.trace for one in traces.problems if (one.is_failure and not one.about) or one.kind == UNREAD_OUTCOME}
    return named - {"", *traces.traces["trace"].to_pylist()}


@dataclasses.dataclass(frozen=True)
class RefusedTraces:
    """The traces that were not read.

    Attributes:
      traces: how many.
      is_least: whether more may be among problems that are counted, not listed (`graphs.problem_log`).
      read: how many were read.
      whole: systems of which none was read, or files where the log states no system.
      first: where the first of them is damaged, and how.
      records: how many records that name no trace were not read, files of no known format among them.
      first_record: where the first of these is, and what is wrong.
      files: how many of them are such files.
    """

    traces: int
    is_least: bool
    read: int
    whole: tuple[str, ...]
    first: str
    records: int
    first_record: str
    files: int = 0

    @classmethod
    def of(cls, traces: Traces) -> Self:
        """Those that the problems of a batch name.

        Args:
          traces: what was read.
        """
        ids, refusing = refused_ids(traces), [one for one in traces.problems if one.is_failure and not one.about]
        named = [one for one in refusing if one.trace in ids]
        noted = sum(one.count for one in traces.problems if one.kind == UNREAD_OUTCOME and one.about == "reward")
        systems = {traces.refused_systems[name] for name in ids & traces.refused_systems.keys()}
        whole = systems - {*traces.traces["system"].to_pylist()}
        if not systems:
            rows = collections.Counter(one.file for one in named if one.kind == "lost-row")  # of any trace of the file
            whole = {file for file, count in rows.items() if count > 1} - {*traces.traces["file"].to_pylist()}
        places = {(one.file, one.line) for one in refusing if one.trace}
        records = [
            one for one in refusing if not one.trace and one.field in OF_RECORDS and (one.file, one.line) not in places
        ]
        return cls(
            max(len(ids), noted),
            any(one.count > 1 for one in named),
            traces.sizes.traces,
            tuple(sorted(whole)),
            _place(named),
            sum(one.count for one in records),
            _place(records),
            sum(one.kind == "unknown-format" for one in records),
        )

    def opening(self) -> str:
        """How many were not read, of how many; "" of none."""
        if not self.traces:
            return ""
        of = f"At least {counted(self.traces, 'trace')}"
        if not self.is_least:
            of = f"{self.traces} of {counted(self.traces + self.read, 'trace')}"
        names = [printable(name, LONGEST_ID) for name in self.whole[:MOST_WHOLE]]
        names += ["others"] * (len(self.whole) > MOST_WHOLE)
        among = f", among them all of {' and of '.join(names)}" if names else ""
        first = f" (first: {self.first})" if self.first else ""
        return f"{of} {'was' if self.traces == 1 else 'were'} not read{among}{first}"

    def of_records(self) -> str:
        """How many records name no trace; "" of none."""
        if not self.records:
            return ""
        lines, files = self.records - self.files, counted(self.files, "file") + " of no known format"
        which = f"{counted(lines, 'record')} that {'names' if lines == 1 else 'name'} no trace"
        which = " and ".join([which] * (lines > 0) + [files] * (self.files > 0))
        return f"{which} {'was' if self.records == 1 else 'were'} not read (first: {self.first_record})"


def _place(problems: list[Problem]) -> str:
    """Where the first is, and its kind; "" of none."""
    for one in problems:
        return f"{printable(one.file)}{f':{one.line}' if one.line else ''}, {one.kind}"
    return ""
