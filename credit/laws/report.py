"""Results of the laws: one for each law, the report of all, and the error that names the first broken one."""

from __future__ import annotations

import dataclasses

from graphs.errors import CreditError

__all__ = ["LawError", "LawReport", "LawResult"]


UNMEASURED = "unbiased: only the baseline was tried; `credit bench bias` measures the bias"


@dataclasses.dataclass(frozen=True)
class LawResult:
    """The result of one law. `passed` is None where the law does not apply; `detail` has the reason."""

    law: str
    passed: bool | None
    detail: str


@dataclasses.dataclass(frozen=True)
class LawReport:
    """The laws tried on one method, in order; printing it gives a table, and says what no law shows.

    `is_unbiased` is what the method was declared to be. Laws test its baseline; `credit bench bias` measures the bias.
    """

    method: str
    results: tuple[LawResult, ...]
    is_unbiased: bool = False

    @property
    def broken(self) -> tuple[LawResult, ...]:
        """The laws that do not hold."""
        return tuple(result for result in self.results if result.passed is False)

    def __str__(self) -> str:
        words = {True: "holds", False: "BROKEN", None: "-"}
        width = max((len(result.law) for result in self.results), default=0)
        lines = [f"{r.law:{width}}  {words[r.passed]:6}  {r.detail}".rstrip() for r in self.results]
        left = [] if not self.is_unbiased else [UNMEASURED]
        return "\n".join([f"laws of {self.method}", *lines, *left])


class LawError(CreditError):
    """A method breaks a law; `report` holds the others, too."""

    def __init__(self, report: LawReport) -> None:
        first = report.broken[0]
        super().__init__(f"{report.method} breaks the law {first.law!r}: {first.detail}")
        self.report = report
