"""What a part of the events cost, and which part of the cost of all that is."""

from __future__ import annotations

import numpy as np

from credit.metrics.cost_summary import Amount, amounts
from credit.metrics.event_costs import Prices, event_costs, token_counts
from graphs.text import amount, at_least, percent
from graphs.traces.batch import Traces

__all__ = ["COST_WORDS", "LEAST_PART", "Costs", "part_costs", "told_cost"]

COST_WORDS = {
    "tokens": "{} tokens generated",
    "input_tokens": "{} read",
    "money": "{} money at the given prices",
    "logged_money": "{} money as logged",
    "seconds": "{} seconds of work",
}
LEAST_PART = 0.05
"""Part of a cost from which a few words tell it."""


Costs = tuple[dict[str, Amount], dict[str, float]]
"""By name, of `COST_WORDS`: the sums over some events, and their parts of the sums over all, where both are known."""


def part_costs(traces: Traces, part: np.ndarray, count: int, prices: Prices | None = None) -> list[Costs]:
    """The costs of each part.

    Args:
      traces: what was read.
      part: of each event, `count` where it is of none: int [events].
      count: how many parts there are.
      prices: of models and tools; without them there is no money but what the log states.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["planner"], reward=[1.0])
      >>> part_costs(rows.traces, np.array([0]), 1)[0][1]
      {}
    """
    every = event_costs(traces, prices)
    found: list[Costs] = [({}, {}) for _ in range(count)]
    for name in COST_WORDS:
        if name == "logged_money":
            cost, own = (token_counts(traces, "money", hidden=hidden) for hidden in (True, False))
            least = np.nan_to_num(own)
        else:
            cost, least = getattr(every, name), every.least[name]
        sums = amounts(cost, part, count + 1, least)
        total, known = sum(one.total or 0.0 for one in sums), not any(one.missing for one in sums)
        for (costs, shares), one in zip(found, sums[:count], strict=True):
            costs[name] = one
            if one.total and known:
                shares[name] = one.total / total
    return found


def told_cost(costs: dict[str, Amount], shares: dict[str, float]) -> str:
    """The money, else the generated tokens, with its part; "" where neither is known.

    Args:
      costs, shares: of `part_costs`.
    """
    name = next((name for name in ("money", "logged_money", "tokens") if costs[name].total), "")
    if not name:
        return ""
    said = COST_WORDS[name].format(at_least(amount(costs[name].total or 0.0, 4), costs[name].missing > 0))
    return f"{said} ({percent(shares[name])})" if name in shares else said
