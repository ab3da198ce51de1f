"""Results of the laws: one for each law, the report of all, and the error that names the first broken one."""

from __future__ import annotations

import dataclasses
from collections import Counter

from credit.laws.trial_batches import LEAST
from graphs.errors import CreditError

__all__ = ["LawError", "LawReport", "LawResult"]


UNMEASURED = (
    "bias: no law measures it; `unbiased=True` tries later rewards and evidence alone; `credit bench bias` computes it"
)
OFF_CENTRE = "centred: a rise of all rewards and values was tried, but not that the mean under the policy is 0"


@dataclasses.dataclass(frozen=True)
class LawResult:
    """The result of one law. `passed` is None where it does not apply, or is `untried`; `detail` has the reason."""

    law: str
    passed: bool | None
    detail: str
    untried: bool = False


@dataclasses.dataclass(frozen=True)
class LawReport:
    """The laws tried on one method, in order; printing it gives a table, and says what no law shows, such as bias.

    `group_size` is the number of traces of the groups. `centre_untried`: whether the method declares to be centred, and
    no law tries its mean.
    """

    method: str
    results: tuple[LawResult, ...]
    group_size: int = LEAST
    centre_untried: bool = False

    @property
    def broken(self) -> tuple[LawResult, ...]:
        """The laws that do not hold."""
        return tuple(result for result in self.results if result.passed is False)

    @property
    def untried(self) -> tuple[LawResult, ...]:
        """The laws that could not be tried, as the method answered nothing. They neither hold nor are broken."""
        return tuple(result for result in self.results if result.untried)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """What no law shows of the method, in words."""
        return (UNMEASURED,) + (OFF_CENTRE,) * self.centre_untried

    @property
    def passed(self) -> bool:
        """Whether no law is broken, and none is untried."""
        return not self.broken and not self.untried

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """Law, answer and why, in words; the laws that were not tried for one reason are one row."""
        words = {True: "holds", False: "BROKEN", None: "-"}
        several = Counter(result.detail for result in self.untried)
        first: dict[str, LawResult] = {}
        for result in self.results:
            first.setdefault(result.detail if result.untried else result.law, result)
        return tuple(
            (one.law if several[one.detail] < 2 else f"{several[one.detail]} laws", words[one.passed], one.detail)
            for one in first.values()
        )

    def __str__(self) -> str:
        width = max((len(law) for law, _, _ in self.rows), default=0)
        lines = [f"{law:{width}}  {answer:6}  {why}".rstrip() for law, answer, why in self.rows]
        sizes = f", in groups of {self.group_size} traces" if self.group_size > LEAST else ""
        return "\n".join([f"laws of {self.method}{sizes}", *lines, *self.unmeasured])


class LawError(CreditError):
    """A method breaks a law, or one could not be tried; `report` holds the others, too."""

    def __init__(self, report: LawReport) -> None:
        if report.broken:
            first = report.broken[0]
            text = f"breaks the law {first.law!r}: {first.detail}"
        else:
            first = report.untried[0]
            text = (
                f"answers nothing that the law {first.law!r} could look at: {first.detail.removeprefix('not tried: ')}"
            )
        super().__init__(f"{report.method} {text}")
        self.report = report
