"""What a decision to go on, to spawn, whom to ask or what to aggregate was worth, by agent and step, with errors."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal, get_args

import jax
import numpy as np

from credit.metrics.clustered_error import clustered_error
from credit.metrics.event_costs import Prices, event_costs
from credit.reports.missing_lines import LACKING, lacking_events, lacking_traces
from credit.reports.trace_returns import exact_outcomes, refuse_coarse
from estimators.base import REASONS, Reason
from estimators.counterfactual.more_or_less import (
    KEYS,
    Basis,
    Over,
    Points,
    points,
    spawn_credit,
    stop_credit,
    value_of_more,
)
from graphs.errors import CreditError
from graphs.event_graph import Array, EventType
from graphs.structure.host_ids import earlier_of_each
from graphs.traces.batch import Traces
from graphs.traces.schema import LARGEST_FLOAT

__all__ = ["COSTS", "DECISIONS", "Cost", "DecisionKind", "DecisionValue", "fitted_price", "step_values"]

DecisionKind = Literal["stop", "spawn"]
DECISIONS: tuple[DecisionKind, ...] = get_args(DecisionKind)
Cost = Literal["tokens", "tool_calls", "seconds", "money"]
COSTS: tuple[Cost, ...] = get_args(Cost)

ANSWERED_OR_CONTRADICTED = (int(Reason.VALID), int(Reason.CONTRADICTION))

_METHODS = {"stop": stop_credit, "spawn": spawn_credit}


@dataclasses.dataclass(frozen=True)
class DecisionValue:
    """The k-th decisions of agents of one name, and what more was worth there.

    Attributes:
      group: its name; "" over the batch.
      agent: name of the agent that decided.
      step: k, the number of earlier decisions of the agent instance.
      decisions, more: how many there are, and how many went on or spawned.
      gain: E[R | more] − E[R | less] in units of reward; None where refused.
      cost: E[C | more] − E[C | less], what more costs, of what it leads to included; None without a cost.
      value: gain − price · cost; None where refused.
      stderr: of `value`; None where unknown.
      spent: mean cost of a trace before the decision; None without a cost.
      reason: why there is no value, in words; "" where there is one.
    """

    group: str
    agent: str
    step: int
    decisions: int
    more: int
    gain: float | None
    cost: float | None
    value: float | None
    stderr: float | None
    spent: float | None
    reason: str


def step_values(
    traces: Traces,
    kind: DecisionKind = "stop",
    *,
    basis: Basis = "logs",
    over: Over = "batch",
    cost: Cost | None = None,
    price: float = 0.0,
    prices: Prices | None = None,
) -> list[DecisionValue]:
    """The value of one more step, or of spawning, by agent and step.

    Args:
      traces: what was read.
      kind: "stop" or "spawn".
      basis: as of `estimators.stop_credit`: the logged choices, a logged critic, or re-runs of the other side.
      over: whether decisions are pooled within a group of traces ("task") or over the batch.
      cost: what more costs; costs from a decision on count.
      price: units of reward for a unit of the cost.
      prices: of models and tools, for the cost "money".

    Raises:
      CreditError: no such kind, no decision of it in the log, evidence that `basis` needs is missing, a price without a
        cost, below 0 or not finite, an event without the cost, or differences that single precision does not hold.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("abcd"), event_type=["stop", "message"] * 2, reward=[0.25, 0.75] * 2,
      ...     evidence={"stop_propensity": [0.5] * 4})
      >>> row = step_values(rows.traces)[0]
      >>> row.decisions, row.more, round(row.value, 2), row.stderr
      (4, 2, 0.67, None)
    """
    if kind not in DECISIONS:
        raise CreditError(f"kind is {kind!r}; expected {' or '.join(map(repr, DECISIONS))}")
    if not (math.isfinite(price) and price >= 0):
        raise CreditError(f"price is {price}; expected a finite number, 0 or more")
    if price and cost is None:
        raise CreditError(f"price is {price}, and there is no cost; expected one of {', '.join(COSTS)}")
    graph, evidence = traces.graph, {name: found.array for name, found in traces.evidence.items()}
    name = f"{kind}_propensity"
    step = evidence.get("event_reward", np.zeros(graph.num_events, np.float32))
    chance = evidence.get(name, np.full(graph.num_events, np.nan, np.float32))
    none = f"the log has no action of type {kind} and none with {name}: expected one, with an outcome"
    typed = np.asarray(graph.event_type) == int(EventType[kind.upper()])
    if not ((typed | ~np.isnan(chance)) & np.asarray(graph.action_mask)).any():
        raise CreditError(none)  # at once: compiling the rest takes seconds
    outcome, is_double = exact_outcomes(traces)
    # Values are differences: relative to one outcome, single precision holds those of outcomes on a large offset.
    differences = outcome - np.nanmin(outcome, initial=np.inf)
    if np.nanmax(differences, initial=0) > LARGEST_FLOAT:
        raise CreditError(
            f"outcomes differ by up to {np.nanmax(differences):.3g}; expected {LARGEST_FLOAT:.3g} at most"
        )
    if not is_double or basis != "logs":
        refuse_coarse("outcomes", outcome, differences)
    relative = np.full(graph.num_traces, np.nan, np.float32)
    relative[: len(outcome)] = differences
    p = points(graph, relative, step, name, chance, over)
    where = np.asarray(p.where)
    if not where.any():
        raise CreditError(none)
    needs = {"logs": (), "critic": ("q_value", "target_value"), "replays": ("counterfactual_reward",)}[basis]
    lacking = [need for need in needs if need not in evidence]
    if lacking:
        raise CreditError(f"basis {basis!r} needs {lacking[0]!r}, which the log does not have")
    spent = None if cost is None else _spent(traces, cost, prices)
    if basis == "logs":
        gains, errors, reasons = (np.asarray(x) for x in _pooled(p, p.ahead))
    else:
        result = _METHODS[kind](
            graph, traces.reward, **{name: chance}, **{need: evidence[need] for need in needs}, event_reward=step,
            basis=basis, amount="value", over=over,
        )  # fmt: skip
        gains, errors, reasons = _of_points(p, np.asarray(result.credit), np.asarray(result.reason))
    costs = None
    if spent is not None:
        scored = np.where(np.isfinite(traces.reward), 0, np.nan).astype(np.float32)
        charged = points(graph, scored, spent.astype(np.float32), name, chance, over)
        costs, _, known = (np.asarray(x) for x in _pooled(charged, charged.ahead))
        costs = np.where(known == Reason.VALID, costs, np.nan)
        reasons = np.where((reasons == Reason.VALID) & (price != 0), known, reasons)
        if basis == "logs":
            errors = np.asarray(_pooled(p, p.ahead - price * charged.ahead)[1])
        elif price:  # the cost is of logs, and its error beside that of the gain is not known
            errors = np.full_like(errors, np.inf)
    return _rows(traces, p, over, basis, gains, errors, reasons, spent, costs, price)


def fitted_price(rows: list[DecisionValue], budget: float) -> float:
    """The least price at which stopping at the first value that is not above 0 costs no more than a budget.

    λ is the multiplier of the budget: with it, gains and costs are in one unit. Going on at step k pays while
    gain > λ · cost; what a trace costs that stops at step k is its mean `spent`.

    Args:
      rows: of one agent and kind "stop", with a cost, as of `step_values`.
      budget: of a trace, in units of the cost.

    Raises:
      CreditError: rows of several agents or tasks, without a cost, or refused; a budget below 0; or
        the first decision comes too late.

    Examples:
      >>> steps = [DecisionValue("", "lead", k, 9, 5, gain, 10.0, gain, None, 10.0 * k, "")
      ...          for k, gain in enumerate([0.4, 0.2, 0.1])]
      >>> fitted_price(steps, 15.0)
      0.02
    """
    if not budget >= 0:
        raise CreditError(f"budget is {budget}; expected a number, 0 or more")
    if len({(row.group, row.agent) for row in rows}) != 1:
        raise CreditError("fitted_price takes the decisions of one agent, over the batch or on one task")
    steps: list[tuple[float, float, float]] = []
    for row in sorted(rows, key=lambda row: row.step):
        if row.gain is None or row.cost is None or row.spent is None:
            raise CreditError(f"step {row.step} has no gain or no cost: {row.reason or 'no cost was asked for'}")
        steps.append((row.gain, row.cost, row.spent))
    for price in sorted({0.0, *(gain / cost for gain, cost, _ in steps if cost > 0 and gain > 0)}):
        stops_at = next((spent for gain, cost, spent in steps if not _pays(gain, cost, price)), None)
        if stops_at is not None and stops_at <= budget:
            return price
    raise CreditError(f"a trace spends {steps[0][2]:.6g} before its first decision; expected a budget above")


def _pays(gain: float, cost: float, price: float) -> bool:
    """Whether gain > price · cost, by the quotient that candidates for a price are: a product may round otherwise."""
    return gain / cost > price if cost > 0 else gain > price * cost


def _spent(traces: Traces, cost: Cost, prices: Prices | None) -> np.ndarray:
    """The cost of each event, padded: float64 [E]."""
    if cost not in COSTS:
        raise CreditError(f"cost is {cost!r}; expected one of {', '.join(COSTS)}")
    if cost == "money" and prices is None:
        raise CreditError("cost is 'money', and there are no prices; expected a table of prices")
    amounts = getattr(event_costs(traces, prices), cost)
    amounts = np.where(lacking_traces(traces)[np.asarray(traces.graph.trace_ids)[: len(amounts)]], np.nan, amounts)
    lacking = np.flatnonzero(np.isnan(amounts))
    if len(lacking):
        event = traces.events["event"][int(lacking[0])].as_py()
        why = ", or are of a trace that lacks lines" if lacking_traces(traces).any() else ""
        raise CreditError(f"{len(lacking)} of {len(amounts)} events have no {cost}{why}, such as {event!r}")
    return np.pad(amounts, (0, traces.graph.num_events - len(amounts)))


@jax.jit
def _pooled(p: Points, earned: Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    found = value_of_more(p, earned)
    return found.value, found.stderr, found.reason


def _of_points(p: Points, value: np.ndarray, reason: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean over the points of each key, its error over clusters, and the reason, at each point: [E] each."""
    key, cluster = np.asarray(p.key), np.asarray(p.cluster)
    gains, errors, reasons = np.zeros(len(key)), np.full(len(key), np.inf), reason.copy()
    for rows in _by_key(key, np.asarray(p.where)):
        refused = reason[rows][reason[rows] != Reason.VALID]
        if len(refused):  # a mean over the others would answer for other prefixes
            reasons[rows] = refused[0]
            continue
        gains[rows], errors[rows] = value[rows].mean(), clustered_error(value[rows], cluster[rows])
    return gains, errors, reasons


def _by_key(key: np.ndarray, where: np.ndarray) -> list[np.ndarray]:
    rows = np.flatnonzero(where)
    rows = rows[np.argsort(key[rows], kind="stable")]
    return np.split(rows, np.flatnonzero(np.diff(key[rows])) + 1)


ONE_WAY = "every decision fell one way: nothing shows what the other is worth"
"""`stop_credit` answers such steps, with a value near 0: its mean over all logs has no bias. One log is read here, and
the 0 would be taken for a finding."""


def _rows(
    traces: Traces,
    p: Points,
    over: Over,
    basis: Basis,
    gains: np.ndarray,
    errors: np.ndarray,
    reasons: np.ndarray,
    spent: np.ndarray | None,
    costs: np.ndarray | None,
    price: float,
) -> list[DecisionValue]:
    """A row for each key. Numbers of events are read once: a search for each key would take keys times events."""
    graph = traces.graph
    trace, agent = np.asarray(graph.trace_ids), np.asarray(graph.agent_ids)
    where = np.flatnonzero(np.asarray(p.where))
    _, first, of = np.unique(np.asarray(p.key)[where], return_index=True, return_inverse=True)
    of_lacking = np.bincount(of, lacking_events(traces)[where]) > 0  # which of its decisions is the k-th is not known
    decisions, went = np.bincount(of), np.bincount(of, np.asarray(p.more)[where]).astype(np.int64)
    step, rows = earlier_of_each(agent[where])[first], where[first]
    previous = None
    if spent is not None:
        total = np.cumsum(spent) - spent
        begins = np.searchsorted(trace[: traces.sizes.events], trace[where])
        previous = np.bincount(of, total[where] - total[begins]) / decisions
    names, groups = traces.agents["name"].to_pylist(), traces.traces["group"].to_pylist()
    out = []
    for k, (row, n, more) in enumerate(zip(rows.tolist(), decisions.tolist(), went.tolist(), strict=True)):
        reason = REASONS[int(reasons[row])]
        if basis == "logs" and reasons[row] in ANSWERED_OR_CONTRADICTED and more in (0, n):
            reason = ONE_WAY
        reason = LACKING if of_lacking[k] else reason
        gain = None if reason else float(gains[row])
        extra = None if costs is None or reason or math.isnan(costs[row]) else float(costs[row])
        error = float(errors[row])
        out.append(
            DecisionValue(
                group=groups[trace[row]] if "task" in KEYS[over] else "",
                agent=names[agent[row]],
                step=int(step[k]),
                decisions=n,
                more=more,
                gain=gain,
                cost=extra,
                value=None if gain is None else gain - price * (extra or 0.0),
                stderr=error if not reason and math.isfinite(error) else None,
                spent=None if previous is None else float(previous[k]),
                reason=reason,
            )
        )
    return out
