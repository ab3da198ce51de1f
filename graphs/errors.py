"""The errors of reading and building, each naming file, line, field, value and what was expected."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from graphs.text import excerpt

QUOTES = "\"'"

__all__ = [
    "DUPLICATE_TRACE",
    "NO_EVENTS",
    "RUN_ERROR",
    "RUN_LIMIT",
    "UNREAD_METADATA",
    "UNREAD_OUTCOME",
    "ArrayTypeError",
    "CapacityError",
    "CreditError",
    "MissingColumnWarning",
    "MissingExtraError",
    "NothingReadError",
    "PrecisionWarning",
    "Problem",
    "TraceError",
    "UnreadWarning",
    "UnusedRewardsWarning",
    "condensed",
]


RUN_ERROR, RUN_LIMIT = "run-error", "run-limit"
"""Kinds of notes on runs that ended in an error, and of those that ended at a limit by one: the value is its words."""
DUPLICATE_TRACE = "duplicate-trace"
"""The kind of each trace that shares its id with one that differs."""
UNREAD_METADATA = "unread-metadata"
"""The kind of a note on keys of metadata that seem to be a system or a kind of task."""
NO_EVENTS, UNREAD_OUTCOME = "no-events", "unread-outcome"
"""Kinds of notes on traces without an event, and on outcomes of traces that were not read; the value is the outcome."""
_INFORMATION = frozenset(
    {NO_EVENTS, UNREAD_OUTCOME, "same-file", "several-rewards", "category-score", "repeated-run", "repeated-header",
     "repeated-lines", "repeated-rows", "groups-of-some", "retyped-rewards", "unfinished-task", "unfinished-line",
     "foreign-files", "other-table", "invalidated", RUN_ERROR, RUN_LIMIT, "earlier-outcome", "attached-orphans",
     "cut-short", "outside-caller", "time-unit", "times-of-ends", "cache-beside", "made-calls",
     "lone-subagent", "missing-subagent", "near-key", "unread-columns", UNREAD_METADATA,
     "unnamed-agent", "unordered-rows",
     "untold-outcomes", "worded-outcomes", "several-versions", "outcome-again", "some-without-group",
     "group-over-files", "look-alike-ids", "some-without-event-reward", "rewards-at-one-time", "unknown-kind",
     "near-columns", "number-as-text", "unlike-costs", "embedded-tokens", "nan-evidence",
     "unlike-counts", "unsettled-rewards", "turns-by-agent", "scattered-rows", "sorted-rows", "agent-twice",
     "turn-gap", "rewards-of-some"}
)  # fmt: skip
"""Kinds of problems that are no fault of the input: they say what a log lacks, leaves open or states twice."""


LONGEST_ID = 200  # characters of a trace's id in a message


class CreditError(ValueError):
    """Base of every error that this library raises on purpose. It is a `ValueError`.

    The message names the argument or the file, line and field, its value, and what was expected.

    Examples:
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> try:
      ...     credit.rloo(graph, reward, singleton="drop")
      ... except credit.CreditError as error:
      ...     print(error)
      rloo: singleton is 'drop'; expected 'refuse' or 'raw' or 'zero'
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by message and attributes, so that a worker's error reaches the process that asked for the work."""
        return _rebuilt, (type(self), self.args, self.__dict__)


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One fault of the input: its place, the value read and the value expected.

    `kind` is a stable short name for programs ("duplicate-id", "cycle", "bad-json", ...). `line` is 1-based, 0 where
    the format has no lines; `trace` is the trace's id, "" where it is unknown. `value` is an excerpt of the input.
    Where a file has very many faults of one kind, one problem stands for `count` of them and shows the first.
    `about` is what a row of a table outside the log was to state, "reward", "group" or "side", or "reward" where a
    column that nothing reads seems to be it, or "rewards.NAME" of a score of whose words only some have a meaning; ""
    for other input.
    """

    kind: str
    file: str
    line: int
    field: str
    value: str
    expected: str
    trace: str = ""
    count: int = 1
    about: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the input is wrong; False for kinds that only report what a log lacks or says twice."""
        return self.kind not in _INFORMATION

    @property
    def may_refuse(self) -> bool:
        """Whether its trace may not have been read: the input is wrong, or the run has no events."""
        return self.is_failure or self.kind in (NO_EVENTS, UNREAD_OUTCOME)

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        if self.kind == "no-such-file" and self.file:
            return f"{where}: {self.value.strip(QUOTES).lower()} [no-such-file]"
        trace = f" trace {excerpt(self.trace, LONGEST_ID)}:" if self.trace else ""
        more = f", and {self.count - 1} more like it" if self.count > 1 else ""
        return f"{where}:{trace} {self.field} is {self.value}; expected {self.expected} [{self.kind}]{more}"


def condensed(problems: Iterable[Problem]) -> list[Problem]:
    """The problems, with one in the place of those of a file that differ in their traces and lines alone.

    A note stands for all that expect the same, wherever they are, one problem for all traces of an id that is to be
    one's, and the first of a file's feedback on runs that are not at hand, or of a table's rows without a trace, which
    hints at near ids, for all of these.

    Examples:
      >>> lost = [Problem("lost-row", "x.jsonl", 3, "content", "{", "JSON", trace) for trace in ("a", "b", "c")]
      >>> [(problem.trace, problem.count) for problem in condensed(lost)]
      [('a', 3)]
    """
    alike: dict[Problem, list[Problem]] = {}
    for problem in problems:
        kind = dataclasses.replace(problem, trace="", line=0, count=1)
        if problem.kind == DUPLICATE_TRACE:
            kind = dataclasses.replace(kind, file="", value="", trace=problem.trace)
        if problem.kind == "orphan-feedback":
            kind = dataclasses.replace(kind, value="")
        if problem.kind == "unmatched-row":
            kind = dataclasses.replace(kind, value="", expected="")
        if not problem.is_failure:
            kind = dataclasses.replace(kind, file="", value="")
        alike.setdefault(kind, []).append(problem)
    return [dataclasses.replace(found[0], count=sum(one.count for one in found)) for found in alike.values()]


def _rebuilt(kind: type[CreditError], args: tuple[Any, ...], attributes: dict[str, Any]) -> CreditError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class TraceError(CreditError):
    """A trace cannot be used; `problem` is the reason."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class NothingReadError(CreditError):
    """No trace could be read. The message lists the first ten reasons.

    Args:
      message: what was to be read.
      problems: the reasons, a `Problem` with file, line and field for each fault of the input.

    Attributes:
      problems: all reasons.

    Examples:
      >>> import credit
      >>> try:
      ...     credit.read("no-such-file.jsonl")
      ... except credit.NothingReadError as error:
      ...     print([problem.kind for problem in error.problems])
      ['no-such-file']
    """

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__("\n".join([message, *map(str, condensed(problems)[:10])]))
        self.problems = problems


class PrecisionWarning(UserWarning):
    """Outcomes that differ by little for their size, so that single precision changes their differences."""


class UnreadWarning(UserWarning):
    """Something of the logs is not in the batch, in it twice, or out of order; `Traces.problems` says what and why."""


class MissingColumnWarning(UserWarning):
    """A batch tells apart nothing of what a method compares: a column was forgotten, or its name misspelt."""


class UnusedRewardsWarning(UserWarning):
    """A method counts outcomes alone, and the log has rewards at events."""


class MissingExtraError(CreditError, ImportError):
    """An optional library is not installed. The message names the extra that installs it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f'{library} is not installed; run: pip install "orchestration-credit[{extra}]"')


class CapacityError(CreditError):
    """The content does not fit the requested shape; the message names the axis and the size needed."""

    def __init__(self, *, axis: str, need: int, room: int) -> None:
        super().__init__(f"{need} {axis} do not fit {axis}={room}; pass {axis}={need} or more")
        self.axis, self.need, self.room = axis, need, room


class ArrayTypeError(CreditError, TypeError):
    """An argument is not an array, or has the wrong dtype."""


def expect(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Check the type of the argument `name`, so that a mistake fails at the call and not later.

    Raises:
      CreditError: `value` is not an instance of `kinds`.
    """
    if not isinstance(value, kinds):
        raise CreditError(f"{name} is {excerpt(value)}, of type {type(value).__name__}; expected {expected}")
