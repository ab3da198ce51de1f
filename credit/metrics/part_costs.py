"""What a part of the events cost, and which part of the cost of all that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from credit.metrics.cost_summary import Amount, amounts
from credit.metrics.event_costs import MOST_UNPRICED_TOKENS, Prices, event_costs, is_priced, token_counts
from graphs.text import amount, at_least, percent
from graphs.traces.batch import Traces

__all__ = [
    "COST_WORDS",
    "LEAST_PART",
    "PAID_IN",
    "Costs",
    "agents_paid",
    "by_agent",
    "part_costs",
    "told_amount",
    "told_cost",
    "unit_paid",
]

COST_WORDS = {
    "tokens": "tokens generated",
    "input_tokens": "tokens read",
    "money": "money at the given prices",
    "logged_money": "logged cost",
    "seconds": "seconds of work",
}
PAID_IN: tuple[Literal["money", "logged_money", "tokens"], ...] = ("money", "logged_money", "tokens")
"""What a cost is told in, the first that is known."""
LEAST_PART = 0.05
"""Part of a cost from which a few words tell it."""
Costs = tuple[dict[str, Amount], dict[str, float]]
"""By name, of `COST_WORDS`: the sums over some events, and their parts of the sums over all, where all is known; of
money, where all but `MOST_UNPRICED_TOKENS` of the tokens have some."""


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
    tokens = every.least["tokens"] + every.least["input_tokens"]
    found: list[Costs] = [({}, {}) for _ in range(count)]
    for name in COST_WORDS:
        if name == "logged_money":
            cost, own = (token_counts(traces, "money", hidden=hidden) for hidden in (True, False))
            least = np.nan_to_num(own)
            mostly = tokens.any() and tokens[np.isnan(own)].sum() <= MOST_UNPRICED_TOKENS * tokens.sum()
        else:
            cost, least = getattr(every, name), every.least[name]
            mostly = name == "money" and prices is not None and is_priced(traces, prices)
        sums = amounts(cost, part, count + 1, least)
        total, known = sum(one.total or 0.0 for one in sums), not any(one.missing for one in sums)
        for (costs, shares), one in zip(found, sums[:count], strict=True):
            costs[name] = one
            if total and (known or mostly):
                shares[name] = (one.total or 0.0) / total
    return found


def unit_paid(parts: Sequence[Costs]) -> str:
    """The name of the cost in which parts are told: the first of `PAID_IN` of which all or most is known, else the last
    one of which anything is; "" for none.

    Args:
      parts: of `part_costs`.
    """
    known = [name for name in PAID_IN if any(name in shares for _, shares in parts)]
    some = [name for name in reversed(PAID_IN) if any(costs[name].total for costs, _ in parts)]
    return next(iter([*known, *some]), "")


def agents_paid(traces: Traces, prices: Prices | None = None) -> tuple[str, dict[str, float]]:
    """What costs are known in, in words, and the part of what is known of it that each agent took; empty for none.

    Args:
      traces, prices: as of `part_costs`.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 2, trace=["a"] * 2, agent=["x", "y"], reward=[1.0] * 2, tokens=[3, 1])
      >>> agents_paid(rows.traces)
      ('tokens generated', {'x': 0.75, 'y': 0.25})
    """
    names, _, parts = by_agent(traces, prices)
    if not (unit := unit_paid(parts)):
        return "", {}
    each = [costs[unit].total or 0.0 for costs, _ in parts]
    return COST_WORDS[unit], {name: of / sum(each) for name, of in zip(names, each, strict=True)}


def by_agent(traces: Traces, prices: Prices | None) -> tuple[list[str], np.ndarray, list[Costs]]:
    """Names of agents, the place there of that of each event, int [events], and `part_costs` of each.

    Args:
      traces, prices: as of `part_costs`.
    """
    names, which = np.unique(np.array(traces.agents["name"].to_pylist(), object).astype(str), return_inverse=True)
    agent = which[np.asarray(traces.graph.agent_ids)[: traces.sizes.events]]
    return names.tolist(), agent, part_costs(traces, agent, len(names), prices)


def told_cost(costs: dict[str, Amount], shares: dict[str, float]) -> str:
    """`told_amount` in the unit of `unit_paid`; "" where no cost is known.

    Args:
      costs, shares: of `part_costs`.
    """
    name = unit_paid([(costs, shares)])
    return told_amount(name, costs[name], shares.get(name)) if name else ""


def told_amount(name: str, cost: Amount, share: float | None, *, whole: bool = True) -> str:
    """One cost, as in `19 % of the tokens generated (480)`.

    Args:
      name: of `COST_WORDS`.
      cost: the sum over a part.
      share: its part of the sum over all; None where that is not known.
      whole: whether all events of the part are known.

    Examples:
      >>> told_amount("logged_money", Amount(1.98, 0), 0.42), told_amount("tokens", Amount(480.0, 2), None)
      ('42 % of the logged cost (1.98)', '≥ 480 tokens generated')
    """
    told = at_least(amount(cost.total or 0.0, 4), cost.missing > 0 or not whole)
    return f"{told} {COST_WORDS[name]}" if share is None else f"{percent(share)} of the {COST_WORDS[name]} ({told})"
