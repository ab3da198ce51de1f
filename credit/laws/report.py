"""Results of the laws: one for each law, the report of all, and the error that names the first broken one."""

from __future__ import annotations

import dataclasses

from graphs.errors import CreditError

__all__ = ["LawError", "LawReport", "LawResult"]


@dataclasses.dataclass(frozen=True)
class LawResult:
    """The result of one law. `passed` is None where the law does not apply; `detail` has the reason."""

    law: str
    passed: bool | None
    detail: str


@dataclasses.dataclass(frozen=True)
class LawReport:
    """The laws tried on one method, in order; printing it gives a table."""

    method: str
    results: tuple[LawResult, ...]

    @property
    def broken(self) -> tuple[LawResult, ...]:
        """The laws that do not hold."""
        return tuple(result for result in self.results if result.passed is False)

    def __str__(self) -> str:
        words = {True: "holds", False: "BROKEN", None: "-"}
        width = max((len(result.law) for result in self.results), default=0)
        lines = [f"{r.law:{width}}  {words[r.passed]:6}  {r.detail}".rstrip() for r in self.results]
        return "\n".join([f"laws of {self.method}", *lines])


class LawError(CreditError):
    """A method breaks a law; `report` holds the others, too."""

    def __init__(self, report: LawReport) -> None:
        first = report.broken[0]
        super().__init__(f"{report.method} breaks the law {first.law!r}: {first.detail}")
        self.report = report
