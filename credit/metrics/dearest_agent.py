"""Which agent or model takes most of the money, and whether for its model's price or for its tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credit.metrics.event_costs import Prices, event_costs, prices_of_events
from credit.metrics.part_costs import COST_WORDS, Costs, by_agent, part_costs, unit_paid
from graphs.text import amount, apart, counted, percent, printable
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models

__all__ = ["dearest_agent"]

MOST_OF_MONEY = 0.5
"""Part of the money from which `dearest_agent` names an agent, of at least `FEWEST_PAID`."""
OUT_OF_PROPORTION = 0.25, 2
"""And from which it does one, or a model, whose part of the tokens is at most one of so many of it."""
FEWEST_PAID = 3
ALIKE = 0.05
"""Part by which prices of a token, or an agent's part and an even one, may differ and be no reason."""
MOST_MODELS = 2
"""Models that are named of one agent, and of all others."""


def dearest_agent(traces: Traces, prices: Prices | None = None) -> tuple[list[str], list[str]]:
    """Which agent takes at least half of the money, or at least a quarter and twice its part of the tokens, and why, in
    sentences without a full stop, and what stands behind them; none where none does, few have any, or it is not known.
    Without such an agent, which model takes a quarter and twice its part of the tokens.

    Why, a table of prices tells: whether a token of its costs more than one of the others, and whether it would take
    more than an even part at their prices. A price of reads is compared with one of reads, as of each kind of token.
    Of logged cost its part of the tokens stands there, where all have counts. A model of several of the agent's is told
    that takes most of its money, and a larger part of it than of its traces.

    Args:
      traces, prices: as of `part_costs`.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a"] * 3, agent=["x", "y", "z"], reward=[1.0] * 3,
      ...     evidence={"money": [3, 1, 1]})
      >>> dearest_agent(rows.traces)
      (['60 % of the logged cost (3 of 5) went to x'], [])
    """
    names, agent, parts = by_agent(traces, prices)
    unit = unit_paid(parts)
    if unit in ("", "tokens"):
        return [], []
    some = sum((costs[unit].total or 0.0) > 0 for costs, _ in parts)
    place = None if some < FEWEST_PAID else _takes_most(parts, unit, MOST_OF_MONEY)
    if place is None:
        return _dearest_model(traces, prices, unit), []
    share = parts[place][1][unit]
    whose = printable(names[place], 60)
    told = _told(parts, place, unit, whose)
    of_model = _by_model(traces, prices, agent == place, whose, unit, share)
    if unit == "money" and prices is not None:
        why, *behind = _why(traces, prices, agent == place, 1 / some)
        return [f"{told}, {why}", *of_model], behind
    if not (of_tokens := _parts_of_tokens(parts)):
        return [told, *of_model], []
    own_models, others = _models(traces, agent == place)
    models = own_models if own_models == others else f"{own_models}; others: {others}"
    told = f"{told}, for {percent(of_tokens[place])} of the tokens ({models})"
    return [told, *of_model], []


def _takes_most(parts: Sequence[Costs], unit: str, most: float) -> int | None:
    """The part that takes `most` of the money, or `OUT_OF_PROPORTION`, the greatest first; None without one."""
    least, times = OUT_OF_PROPORTION
    shares, of_tokens = [of.get(unit, 0.0) for _, of in parts], _parts_of_tokens(parts)
    for place in sorted(range(len(parts)), key=shares.__getitem__, reverse=True):
        dear = bool(of_tokens) and shares[place] >= max(least, times * of_tokens[place])
        if shares[place] >= most or dear:
            return place
    return None


def _parts_of_tokens(parts: Sequence[Costs]) -> list[float]:
    """Which part of the tokens each generates and reads; empty where not all are counted."""
    tokens = [[costs[name] for name in ("tokens", "input_tokens")] for costs, _ in parts]
    sums = [sum(one.total or 0.0 for one in of) for of in tokens]
    return [] if any(one.missing for of in tokens for one in of) or not sum(sums) else [one / sum(sums) for one in sums]


def _told(parts: Sequence[Costs], place: int, unit: str, whose: str) -> str:
    """Which part of the money went to whom."""
    paid = [costs[unit].total or 0.0 for costs, _ in parts]
    shown, total = apart((paid[place], sum(paid)), amount, 4)
    return f"{percent(parts[place][1][unit])} of the {COST_WORDS[unit]} ({shown} of {total}) went to {whose}"


def _dearest_model(traces: Traces, prices: Prices | None, unit: str) -> list[str]:
    """The model that takes much more of the money than of the tokens, over all agents; none where none does."""
    names, model = event_models(traces)
    parts = part_costs(traces, model, len(names), prices)
    place = _takes_most(parts, unit, np.inf)
    if place is None or not names[place]:
        return []
    of = percent(_parts_of_tokens(parts)[place])
    return [f"{_told(parts, place, unit, printable(names[place], 40))}, for {of} of the tokens"]


def _by_model(traces: Traces, prices: Prices | None, own: np.ndarray, agent: str, unit: str, share: float) -> list[str]:
    """Which model of several takes most of the money of an agent, whose events are `own`, bool [events], and in which
    part of the traces."""
    names, model = event_models(traces)
    parts = part_costs(traces, np.where(own, model, len(names)), len(names), prices)
    dearest = max(range(len(names)), key=lambda one: parts[one][0][unit].total or 0.0)
    its, trace = parts[dearest][1].get(unit, 0.0), np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    acts = np.asarray(traces.graph.action_mask)[: traces.sizes.events] & own
    some, every = (len(np.unique(trace[of])) for of in (acts & (model == dearest), acts))
    if not names[dearest] or its < MOST_OF_MONEY * share or its / share <= (1 + ALIKE) * some / max(every, 1):
        return []
    of = counted(traces.sizes.traces, "trace")
    return [f"of all, {percent(its)} went to {printable(names[dearest], 40)} of {agent}, in {some} of {of}"]


def _why(traces: Traces, prices: Prices, own: np.ndarray, even: float) -> list[str]:
    """Whether price or tokens are why the events of one agent, bool [events], have most of the money."""
    found = event_costs(traces, prices, hidden=False)
    assert found.kinds is not None  # there are prices
    count, cost = np.where(np.isfinite(found.kinds).all(0), found.kinds, 0.0)
    (its, others), (paid, of_others) = ((of[:, own].sum(1), of[:, ~own].sum(1)) for of in (count, cost))
    if paid[-1] > paid.sum() / 2:
        return [f"{percent(paid[-1] / paid.sum())} of it for calls of tools"]
    # A token of a kind that no other has costs what it would with their models.
    listed = np.nan_to_num(prices_of_events(traces, prices)[~own].T)
    listed = listed @ count[:4, ~own].sum(0) / max(others[:4].sum(), 1)
    theirs = np.where(others[:4] > 0, of_others[:4] / np.maximum(others[:4], 1), listed)
    alike = float(its[:4] @ theirs)
    whole = alike + paid[-1] + of_others.sum()
    times = paid[:4].sum() / alike if alike else np.inf
    at_theirs = (alike + paid[-1]) / whole if whole else 0.0
    reasons = {"its model's price": times > 1 + ALIKE, "its tokens": at_theirs > (1 + ALIKE) * even}
    because = f"because of {' and '.join(reason for reason, holds in reasons.items() if holds)}"
    models, others_models = _models(traces, own)
    if abs(times - 1) <= ALIKE:
        return [because, f"a token of it costs as much as one of the others ({models})"]
    if not alike:
        return [because, f"such tokens of the others cost nothing ({others_models})"]
    dear = f"a token of it ({models}) costs {amount(times, 2)} times as much as one of the others ({others_models})"
    return [because, f"{dear}; at their prices it would take {percent(at_theirs)}"]


def _models(traces: Traces, own: np.ndarray) -> list[str]:
    """The models of the agent's calls, and of the others', those of most calls first."""
    names, model = event_models(traces)
    acts, told = np.asarray(traces.graph.action_mask)[: traces.sizes.events], []
    for of in (own, ~own):
        count = np.bincount(model[acts & of], minlength=len(names))
        used = [printable(names[i], 40) or "no stated model" for i in np.argsort(-count, kind="stable") if count[i]]
        told.append(" + ".join(used[:MOST_MODELS] + ["…"] * (len(used) > MOST_MODELS)))
    return told
