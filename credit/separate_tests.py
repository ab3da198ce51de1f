"""Which families of tests a summary or a page makes: each holds its level by itself, all of them together do not.

Of 64 logs in which only chance was, 16 had "beyond chance" somewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from credit.doctor.verdict_errors import VerdictErrors
from credit.reports.outcome_differences import OutcomeDifferences
from credit.reports.triage import Triage
from credit.sides.asked_metrics import FIRST
from credit.sides.side_comparison import SideComparison

__all__ = ["separate_tests"]


def separate_tests(
    differing: OutcomeDifferences,
    triaged: Triage,
    verdicts: Sequence[VerdictErrors],
    compared: SideComparison | None,
    corrected: Sequence[str],
) -> str:
    """What is tested apart, and how often chance alone stands out in each; "" of less than two families.

    Args:
      differing: `outcome_differences` of the traces.
      triaged: `triage` of these.
      verdicts: `verdict_errors` of these.
      compared: two sides of these; None without.
      corrected: `corrected_failures` of these.
    """
    families = {
        "what went wrong": triaged.looked_at > 0,
        "numbers": differing.looked_at() > 0,
        "success by side": compared is not None and any(row.metric in FIRST for row in compared.rows),
        "mix of tasks": compared is not None and any(row.within for row in compared.rows),
        "what else the head says changed": compared is not None,
        "verdicts by system": any(one.systems for one in verdicts),
        "which traces people judged": bool(corrected),
    }
    made = [name for name, tested in families.items() if tested]
    if len(made) < 2:
        return ""
    within = f"P-values are corrected within each of {len(made)} families ({'; '.join(made)})"
    return f'{within}: by chance alone, each has something "beyond chance" in up to 1 of 20 logs.'
