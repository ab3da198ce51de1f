"""How often traces of parts failed, such as systems or kinds of task, where a verdict decides which have an outcome.

Of those with one, a judge that passes more failures of one system makes the others look worse: 54 and 39 % of two that
fail alike, in 25 % of their runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from credit.reports.deciding_verdict import deciding_verdict, on_part
from credit.reports.judged_traces import JudgedTraces, rate_with_interval
from credit.reports.prevalence import Corrected, corrected_rate
from credit.reports.tasks import task_ids
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["PartRates", "part_rates"]


class PartRates(NamedTuple):
    """The part of all traces that failed, of each of some parts; None of one of which too few have an outcome.

    `verdict`: the one that decides which have, by which these are weighted (`corrected_rate`), and on how many it is.
    """

    verdict: str
    rates: list[Corrected | None]

    def told(self, names: Sequence[str]) -> str:
        """The rates of parts, with intervals, and the verdict; "" of fewer than two.

        Args:
          names: of all parts.
        """
        each = zip(names, self.rates, strict=False)
        known = [f"{printable(name, 60)} {rate_with_interval(*one[:3])}" for name, one in each if one]
        return f"{', '.join(known)}, weighted by {self.verdict}" if len(known) > 1 else ""


def part_rates(traces: Traces, judged: JudgedTraces, part: np.ndarray, number: int) -> PartRates | None:
    """The rates of parts; None where no verdict of two values decides which traces have an outcome.

    Args:
      traces: what was read.
      judged: `judged_traces` of these.
      part: of each trace, no number of a part for none: int [traces].
      number: of parts.

    Examples:
      >>> import credit
      >>> from credit.reports.judged_traces import judged_traces
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> part_rates(rows.traces, judged_traces(rows.traces), np.zeros(2, int), 1) is None
      True
    """
    if judged.of_task or (found := deciding_verdict(traces)) is None:
        return None
    (name, passes), task, known = found, task_ids(traces), judged.failed | judged.succeeded
    every = (part == i for i in range(number))
    rates = [corrected_rate(judged.failed[of], known[of], passes[of], task[of]) for of in every]
    return PartRates(f"{name}{on_part(passes)}", rates)
