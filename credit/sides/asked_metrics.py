"""What is asked of a change: the metrics that it is judged by, in the words and the order of sentences."""

from __future__ import annotations

import numpy as np

from credit.reports.trace_numbers import TraceMetric
from graphs.text import rounds_away

__all__ = ["ASKED", "ASKED_NEXT", "FIRST", "LEAST_SHARE", "OF_COSTS", "OF_HEAD", "OF_TEAM_SIZE", "TOKENS",
           "TOOL_CALLS", "WALL_CLOCK", "same_in_all"]  # fmt: skip

TOOL_CALLS, WALL_CLOCK = "tool_calls", "wall_clock"
FIRST = ("success", "outcome")
"""What a change is judged by, tested on its own."""
ASKED = {
    "success": "success",
    "outcome": "outcome",
    "money": "money",
    "logged_money": "logged cost",
    "tokens": "tokens generated",
    "input_tokens": "tokens read",
    "errors": "errors",
    "ended_early": "early ends",
    WALL_CLOCK: "seconds of wall clock",
}
"""The metrics that a sentence on a change is about, in its words and its order; a table has the others."""
OF_COSTS = ("money", "logged_money", "tokens", "input_tokens")
"""Those of them that say what a change costs."""
OF_HEAD = (*OF_COSTS, TOOL_CALLS, WALL_CLOCK)
"""Those that the head of a summary tells beside `FIRST`."""
TOKENS = frozenset(("tokens", "input_tokens"))
"""What is "tokens" where both are told."""
ASKED_NEXT = ("unrecovered_errors", TOOL_CALLS, "loops")
"""Those whose numbers are told, too, and which have their rows next; all others come under other metrics."""
OF_TEAM_SIZE = ("team_peak", "team_mean", "team_births", "team_deaths")
"""Numbers of how large a team is: a sentence has the first of those that change one way."""
LEAST_SHARE = 0.05
"""Share of a difference from which an agent's part is told, and of a mean from which a lead says whose it is."""


def same_in_all(measured: dict[str, TraceMetric], rows: np.ndarray) -> dict[str, float]:
    """The metrics beside `ASKED` with one number in three digits in all of these traces that have any, two or more, as
    those of the team where it is one agent.

    Examples:
      >>> from credit.reports.trace_numbers import numbered
      >>> same_in_all({"loops": numbered(np.zeros(3)), "errors": numbered(np.zeros(3))}, np.ones(3, bool))
      {'loops': 0.0}
    """
    found = {}
    for name, metric in measured.items():
        value = metric.value[rows & np.isfinite(metric.value)]
        if name not in ASKED and len(value) > 1 and rounds_away(np.ptp(value), np.abs(value).max()):
            found[name] = float(value.mean())
    return found
