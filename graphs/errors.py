"""The errors of reading and building, each naming file, line, field, value and what was expected."""

from __future__ import annotations

import dataclasses

from graphs.text import excerpt

QUOTES = "\"'"

__all__ = [
    "ArrayTypeError",
    "CapacityError",
    "CreditError",
    "MissingExtraError",
    "NothingReadError",
    "Problem",
    "TraceError",
]


_INFORMATION = frozenset({"no-events", "several-rewards"})
"""Kinds of problems at which no input is at fault: a trace in which no agent did anything, and agents with rewards of
their own, of which none is the team's."""


class CreditError(ValueError):
    """Base of every error that this library raises on purpose."""


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that was wrong with the input: where, what was found, what was expected.

    `kind` is a stable short name for programs ("duplicate-id", "cycle", "bad-json", ...). `line` is 1-based, 0 where
    the format has no lines; `trace` is the trace's id where it was known. `value` is an excerpt, not the whole input.
    Where a file has very many faults of one kind, one problem stands for `count` of them and shows the first
    (`graphs.problem_log`).
    """

    kind: str
    file: str
    line: int
    field: str
    value: str
    expected: str
    trace: str = ""
    count: int = 1

    @property
    def is_failure(self) -> bool:
        """Whether the input was at fault; False for kinds that only say what a log does not hold."""
        return self.kind not in _INFORMATION

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        if self.kind == "no-such-file" and self.file:
            return f"{where}: {self.value.strip(QUOTES).lower()} [no-such-file]"
        trace = f" trace {self.trace!r}:" if self.trace else ""
        more = f", and {self.count - 1} more like it" if self.count > 1 else ""
        return f"{where}:{trace} {self.field} is {self.value}; expected {self.expected} [{self.kind}]{more}"


class TraceError(CreditError):
    """A trace that cannot be used, with the `Problem` that says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class NothingReadError(CreditError):
    """No trace could be read; `problems` holds the reasons."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__("\n".join([message, *(str(p) for p in problems[:10])]))
        self.problems = problems


class MissingExtraError(CreditError, ImportError):
    """An optional library is not installed; the message says which extra brings it."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f'{library} is not installed; run: pip install "orchestration-credit[{extra}]"')


class CapacityError(CreditError):
    """Content that does not fit the fixed shape that was asked for."""

    def __init__(self, *, axis: str, need: int, room: int) -> None:
        super().__init__(f"{need} {axis} do not fit {axis}={room}; pass {axis}={need} or more")
        self.axis, self.need, self.room = axis, need, room


class ArrayTypeError(CreditError, TypeError):
    """An argument that is no array, or one of a wrong type of number."""


def expect(name: str, value: object, kinds: type | tuple[type, ...], expected: str) -> None:
    """Check that the argument `name` is of a type, at a door where a mistake would fail far from here.

    Raises:
      CreditError: it is not.
    """
    if not isinstance(value, kinds):
        raise CreditError(f"{name} is {excerpt(value)}, of type {type(value).__name__}; expected {expected}")
