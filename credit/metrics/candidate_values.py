"""The value of asking each agent, at decisions that could ask several."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import NamedTuple

import numpy as np

from credit.reports.missing_lines import LACKING, lacking_events
from credit.reports.trace_returns import exact_outcomes, refuse_coarse
from estimators.base import REASONS, Reason
from estimators.counterfactual.more_or_less import ERROR_ESS, LEAST_PART, Over
from graphs.errors import CreditError
from graphs.event_graph import EdgeType
from graphs.joint_rewards import at_turn_ends
from graphs.structure.forest import real_edges
from graphs.structure.host_ids import among, distinct, earlier_of_each, ranked
from graphs.traces.batch import Traces

__all__ = ["CandidateValue", "asked_agents", "candidate_values"]

DEVIATIONS = 3.0
"""Standard errors by which the mean weight of a candidate may differ from 1, as of `estimators.off_policy`."""


@dataclasses.dataclass(frozen=True)
class CandidateValue:
    """One candidate at the k-th decisions of agents of one name.

    Attributes:
      group: its name; "" over the batch.
      agent: name of the agent that decided.
      step: k, the number of earlier decisions of the agent instance that asked somebody.
      decisions: how many decisions there are.
      candidate: name of the agent that was asked; several in the order of their names, joined by " + ".
      picks: how many decisions asked it.
      value: E[R | the candidate is asked] − E[R] under the policy that acted; None where refused.
      stderr: of `value`; None where unknown.
      reason: why there is no value, in words; "" where there is one.
    """

    group: str
    agent: str
    step: int
    decisions: int
    candidate: str
    picks: int
    value: float | None
    stderr: float | None
    reason: str


def asked_agents(traces: Traces) -> dict[int, str]:
    """The agents that each action asked: those that it or its effects spawned or sent a message to.

    Args:
      traces: what was read.

    Returns:
      The candidate of each event that asked one: names, sorted, joined by " + ".

    Examples:
      >>> import json, pathlib, tempfile
      >>> import credit
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.jsonl"
      >>> _ = path.write_text(json.dumps({
      ...     "trace_id": "a", "task_id": "q", "rewards": {"team": 1.0}, "costs": {},
      ...     "events": [{"id": "0", "type": "orchestrator_decision", "agent": "lead"},
      ...                {"id": "1", "type": "message", "agent": "coder"}],
      ...     "edges": [{"src": "0", "dst": "1", "type": "message"}]}))
      >>> asked_agents(credit.read(path))
      {0: 'coder'}
    """
    rows, candidate, names = _asked(traces)
    return {row: names[found] for row, found in zip(rows.tolist(), candidate.tolist(), strict=True)}


def _asked(traces: Traces) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The actions that asked somebody, in order, the candidate of each, and the candidates' names, in order."""
    graph = traces.graph
    senders, receivers = real_edges(graph)
    kind = np.asarray(graph.edge_type)[np.asarray(graph.edge_mask)]
    agent, action = np.asarray(graph.agent_ids), np.asarray(graph.action_mask)
    other = agent[senders] != agent[receivers]
    # A call may emit its spawn or message as an effect: an event of the same agent, no action, behind a causal edge.
    emits = ~other & action[senders] & ~action[receivers] & (kind == EdgeType.CAUSAL)
    decision = np.where(action, np.arange(len(action)), -1)
    decision[receivers[emits]] = senders[emits]
    links = other & among(kind, (EdgeType.SPAWN, EdgeType.MESSAGE)) & (decision[senders] >= 0)
    names, name = ranked(traces.agents["name"].to_pylist())
    pairs = distinct(decision[senders[links]] * len(names) + name[agent[receivers[links]]])
    rows, asked = pairs // max(len(names), 1), (pairs % max(len(names), 1)).astype(np.int32)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    # Equal sets of names are equal bytes: a set for each decision would take ten times as long.
    wide, bounds = asked.tobytes(), [*(4 * starts).tolist(), 4 * len(asked)]
    sets = [wide[start:end] for start, end in itertools.pairwise(bounds)]
    texts = {found: " + ".join(names[one] for one in np.frombuffer(found, np.int32)) for found in {*sets}}
    candidates, _ = ranked([*texts.values()])
    place = {text: number for number, text in enumerate(candidates)}
    number = {found: place[text] for found, text in texts.items()}
    return rows[starts], np.array([number[found] for found in sets], np.int64), candidates


def candidate_values(traces: Traces, *, over: Over = "batch") -> list[CandidateValue]:
    """The value of each candidate, by agent and step, from logged choices and their probabilities.

    A decision is an action of a trained agent that asked somebody (`asked_agents`). With a the candidate that was
    asked, π its probability, R what is earned from the decision on, and u_k = 1[a = k] / π(a), whose mean is 1 where
    the policy could ask k at every prefix:

        value of k = E[R | k] − E[R] = covariance of u_k and R, over pairs of different traces

    Unbiased for the mean over the prefixes of a step, before refusals. Traces that share choices count as one.

    Args:
      traces: what was read, with `propensity` at decisions.
      over: whether decisions are pooled within a group of traces ("task") or over the batch.

    Returns:
      Rows by agent, step and candidate. A step has no value where a decision has a propensity of 0, 1 or none
      (NO_OVERLAP). A candidate has none where its mean weight is further from 1 than three standard errors, so that
      some prefixes cannot ask it (NO_SUPPORT), where its weights have an effective size below a tenth of its picks
      (LOW_ESS), and with fewer than two picks or three traces (TOO_FEW). A standard error needs 50 effective picks.

    Raises:
      CreditError: no action with an outcome asked another agent.

    Reference: Horvitz and Thompson 1952, centred at the mean of the other traces; the survey's O2.

    Examples:
      >>> import json, pathlib, tempfile
      >>> import credit
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.jsonl"
      >>> _ = path.write_text("".join(json.dumps({
      ...     "trace_id": name, "task_id": "q", "rewards": {"team": reward}, "costs": {},
      ...     "events": [{"id": "0", "type": "orchestrator_decision", "agent": "lead", "propensity": 0.5},
      ...                {"id": "1", "type": "message", "agent": agent}],
      ...     "edges": [{"src": "0", "dst": "1", "type": "message"}]}) + "\\n"
      ...     for name, agent, reward in [("a", "coder", 1.0), ("b", "coder", 1.0), ("c", "critic", 0.0)]))
      >>> [(row.candidate, row.picks, row.reason or round(row.value, 2)) for row in candidate_values(credit.read(path))]
      [('coder', 2, 0.67), ('critic', 1, 'too few members: the method compares with more than there are')]
    """
    graph, (rows, candidate, candidates) = traces.graph, _asked(traces)
    trace, reward = np.asarray(graph.trace_ids), np.asarray(traces.reward, np.float64)
    usable = np.asarray(graph.trained_mask)[rows] & np.isfinite(reward[trace[rows]])
    rows, candidate = rows[usable], candidate[usable]
    if not len(rows):
        raise CreditError("no action with an outcome spawned or wrote to another agent: nobody was asked")
    chance = np.full(len(rows), np.nan)
    if "propensity" in traces.evidence:
        chance = np.asarray(traces.evidence["propensity"].array, np.float64)[rows]
    agent, of = np.asarray(graph.agent_ids)[rows], trace[rows]
    cluster = of if graph.cluster_ids is None else np.asarray(graph.cluster_ids)[of]
    names, name = ranked(traces.agents["name"].to_pylist())
    groups, group = ranked(traces.traces["group"].to_pylist() if over == "task" else [""] * traces.sizes.traces)
    number = earlier_of_each(agent)
    most = int(number.max()) + 1
    steps, step = np.unique((group[of] * len(names) + name[agent]) * most + number, return_inverse=True)
    of_step, decisions = (steps // most).tolist(), np.bincount(step).tolist()
    pairs, pair = np.unique(step * len(candidates) + candidate, return_inverse=True)
    lacks = (np.bincount(step, lacking_events(traces)[rows]) > 0).tolist()  # which decision is the k-th is not known
    found = _values(step, pair, chance, _earned_from(traces, rows), cluster)
    rows_of_pairs = zip(
        (pairs // len(candidates)).tolist(), (pairs % len(candidates)).tolist(), np.bincount(pair).tolist(),
        found.value.tolist(), found.stderr.tolist(), found.reason.tolist(), strict=True,
    )  # fmt: skip
    return [
        CandidateValue(
            groups[of_step[k] // len(names)],
            names[of_step[k] % len(names)],
            int(steps[k] % most),
            decisions[k],
            candidates[asked],
            picks,
            value if reason == Reason.VALID and not lacks[k] else None,
            stderr if reason == Reason.VALID and not lacks[k] and math.isfinite(stderr) else None,
            LACKING if lacks[k] else REASONS[reason],
        )
        for k, asked, picks, value, stderr, reason in rows_of_pairs
    ]


def _earned_from(traces: Traces, rows: np.ndarray) -> np.ndarray:
    """The outcome of each decision's trace and the event rewards from it on: float64 [decisions]."""
    trace, (outcome, is_double) = np.asarray(traces.graph.trace_ids), exact_outcomes(traces)
    if not is_double:
        refuse_coarse("outcomes", outcome, outcome - np.nanmin(outcome, initial=np.inf))
    earned: np.ndarray = outcome[trace[rows]]
    if "event_reward" not in traces.evidence:
        return earned
    step = at_turn_ends(traces.graph, np.asarray(traces.evidence["event_reward"].array, np.float64))
    before = np.concatenate([[0.0], np.cumsum(np.nan_to_num(step))])
    ends = np.searchsorted(trace[: traces.sizes.events], trace[rows], side="right")
    earned = earned + (before[ends] - before[rows])
    return earned


class _Values(NamedTuple):
    """By candidate of a step: float64, float64 and int64 [pairs]."""

    value: np.ndarray
    stderr: np.ndarray
    reason: np.ndarray


def _values(step: np.ndarray, pair: np.ndarray, chance: np.ndarray, earned: np.ndarray, cluster: np.ndarray) -> _Values:
    """The covariance of each candidate's weights and what was earned, over pairs of different clusters of its step.

        Σ_{i ≠ j} u_i (R_i − R_j) / (n (n − 1))

    Each cluster counts with the means of its decisions. A weight is 0 where another candidate was asked, so sums over
    the decisions that asked the candidate are sums over all.

    Args:
      step, pair, cluster: int [decisions]. The step, and the candidate of a step, are numbered from 0 without gaps.
      chance: float [decisions], probability of the candidate that was asked, NaN where unknown.
      earned: float [decisions].
    """
    overlap = (chance > 0) & (chance < 1)
    weight = np.where(overlap, 1 / np.where(overlap, chance, 0.5), 0.0)
    # Relative to one outcome of the step, so that equal outcomes have a covariance of exactly 0.
    earned = earned - earned[np.unique(step, return_index=True)[1]][step]
    units, unit = np.unique(step * (int(cluster.max()) + 1) + cluster, return_inverse=True)
    step_of_unit = units // (int(cluster.max()) + 1)
    sizes, n = np.bincount(unit), np.bincount(step_of_unit)
    y = np.bincount(unit, earned) / sizes
    mean = np.bincount(step_of_unit, y) / n
    squares = np.bincount(step_of_unit, (y - mean[step_of_unit]) ** 2)

    # A cell is a candidate and a cluster of its step, of which it has asked the candidate.
    cells, cell = np.unique(pair * len(units) + unit, return_inverse=True)
    of, at = cells // len(units), cells % len(units)
    both, u = (np.bincount(cell, x) / sizes[at] for x in (weight * earned, weight))
    to = np.zeros(len(np.bincount(pair)), np.int64)
    to[pair] = step

    def total(x: np.ndarray) -> np.ndarray:
        return np.bincount(of, x)

    k, picks = n[to], np.bincount(pair)
    value = ((k - 1) * total(both) - total(u) * (mean * n)[to] + total(u * y[at])) / np.maximum(k * (k - 1), 1)
    # The influence of a cluster is both − ȳ (u − 1) − y, for weights whose mean is 1; ȳ − y where nobody asked.
    extra, idle = both - mean[to[of]] * u, mean[step_of_unit[at]] - y[at]
    centre = total(extra) / k
    off = total((extra + idle - centre[of]) ** 2 - (idle - centre[of]) ** 2) + squares[to] + k * centre**2
    stderr = np.sqrt(np.maximum(off, 0) / np.maximum(k - 1, 1) / k)
    mean_weight = total(u) / k
    spread = np.maximum(total((u - mean_weight[of]) ** 2 - mean_weight[of] ** 2) + k * mean_weight**2, 0)
    sum_of, squared = np.bincount(pair, weight), np.bincount(pair, weight**2)
    effective = np.where(squared > 0, sum_of**2 / np.where(squared > 0, squared, 1), 0)
    # Chances that are the same everywhere leave a binomial count, whose error is known to be above 0.
    allowed = DEVIATIONS * np.maximum(np.sqrt(spread / np.maximum(k - 1, 1) / k), 1 / k)
    reason = np.select(
        [np.bincount(step, ~overlap)[to] > 0, (k < 3) | (picks < 2), effective < LEAST_PART * picks,
         np.abs(mean_weight - 1) > allowed],
        [Reason.NO_OVERLAP, Reason.TOO_FEW, Reason.LOW_ESS, Reason.NO_SUPPORT],
        Reason.VALID,
    )  # fmt: skip
    return _Values(value, np.where(effective >= ERROR_ESS, stderr, math.inf), reason)
