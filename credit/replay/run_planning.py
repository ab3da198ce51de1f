"""Which runs to make within a budget: where they start, how many, and the standard errors to expect of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from credit.replay.allocation import allocate, predicted_stderr
from credit.replay.before import TraceEvents
from credit.replay.luck_share import check_traces
from credit.replay.replay_plan import PURPOSES, Job, Purpose, ReplayPlan
from credit.replay.replayer import Prefix
from credit.replay.run_results import Results
from graphs.distinct_columns import distinct_columns
from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.text import excerpt
from graphs.traces.batch import Traces

__all__ = ["KnownRuns", "RunCosts", "allocated", "known_from", "outcome_spread", "plan_replays", "run_costs"]


@dataclasses.dataclass(frozen=True)
class KnownRuns:
    """Results of earlier runs of each job, by `Job.key`.

    Attributes:
      spread: standard deviation of the outcomes.
      done: number of runs.
      tokens: tokens of a run.
    """

    spread: Mapping[tuple[Any, ...], float]
    done: Mapping[tuple[Any, ...], int]
    tokens: Mapping[tuple[Any, ...], float]


def known_from(plan: ReplayPlan, results: Results) -> KnownRuns:
    """Spread, number and cost of the runs of each job.

    Spreads are those of `Results.shrunk_spread`, so that a job whose few outcomes agree is sampled further.

    Args:
      plan: of earlier runs.
      results: what came of it.
    """
    _, _, runs = results.mean_and_spread()
    keys = [job.key for job in plan.jobs]
    tokens = np.array(results.job_tokens, np.float64) / np.maximum(runs, 1)
    paid = {key: float(cost) for key, cost in zip(keys, tokens, strict=True) if cost > 0}
    spread = dict(zip(keys, results.shrunk_spread([job.prefix.group for job in plan.jobs]).tolist(), strict=True))
    return KnownRuns(spread, dict(zip(keys, runs.tolist(), strict=True)), paid)


@dataclasses.dataclass(frozen=True)
class RunCosts:
    """Tokens that a log's actions took, input and output.

    Attributes:
      onwards: float64 [E], of an action and all later ones of its trace; NaN where an action has no count.
      whole: float64 [T], of a trace.
    """

    onwards: np.ndarray
    whole: np.ndarray


def run_costs(traces: Traces) -> RunCosts:
    """What a run from each event on is expected to cost: what the logged trace took from there on."""
    n, m = traces.sizes.events, traces.sizes.traces
    trace = np.asarray(traces.graph.trace_ids)[:n]
    spent = np.where(np.asarray(traces.graph.action_mask)[:n], np.nan, 0.0)
    if "tokens" in traces.evidence:
        tokens = np.asarray(traces.evidence["tokens"].array)[:n].astype(np.float64)
        spent = np.where(tokens >= 0, tokens, spent)
        if "input_tokens" in traces.evidence:
            read = np.asarray(traces.evidence["input_tokens"].array)[:n]
            spent = spent + np.where(read >= 0, read, 0)
    whole = np.zeros(m)
    np.add.at(whole, trace, spent)
    # The sum from an event to the end of its trace is a difference of running sums, and so is the number of unknowns.
    spent_until = np.cumsum(np.where(np.isnan(spent), 0.0, spent))
    last = np.searchsorted(trace, np.arange(m), side="right") - 1
    unknown = np.cumsum(np.isnan(spent))
    unpriced = np.isnan(spent)
    onwards = spent_until[last][trace] - spent_until + np.where(unpriced, 0.0, spent)
    missing = unknown[last][trace] - unknown + unpriced
    return RunCosts(np.where(missing > 0, np.nan, onwards), whole)


def outcome_spread(traces: Traces) -> np.ndarray:
    """Standard deviation of the returns of each trace's group, float64 [T]; NaN where no group has two different ones.

    It is a guess, and on average too large, at how far the outcomes from one prefix spread. Each group's variance is
    averaged with that of all groups, with the weight of two traces: a group whose few outcomes agree may still have
    decisions that matter.
    """
    m = traces.sizes.traces
    total = np.asarray(traces.reward)[:m].astype(np.float64)
    if "event_reward" in traces.evidence:
        steps = np.asarray(traces.evidence["event_reward"].array)[: traces.sizes.events]
        np.add.at(total, np.asarray(traces.graph.trace_ids)[: len(steps)], np.where(np.isnan(steps), 0.0, steps))
    group = np.asarray(traces.graph.group_ids)[:m]
    known = np.isfinite(total)
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    base = np.zeros(len(first))
    base[number[known][::-1]] = total[known][::-1]  # outcomes relative to the first: three of 0.1 have no spread
    apart = np.where(known, total - base[number], 0.0)
    count = np.bincount(number, known)
    apart -= np.where(known, (np.bincount(number, apart) / np.maximum(count, 1))[number], 0.0)
    squares, count = np.bincount(number, apart**2)[number], np.maximum(count - 1, 0)[number]
    if not squares[first].sum():
        return np.full(m, math.nan)
    mean = squares[first].sum() / count[first].sum()
    spread: np.ndarray = np.sqrt((squares + 2 * mean) / (count + 2))
    return spread


def plan_replays(
    traces: Traces,
    purpose: Purpose,
    budget: int,
    *,
    unit: str = "runs",
    replace: str | None = None,
    go_on: str | None = None,
    least: int = 2,
    seed: int = 0,
    known: KnownRuns | None = None,
) -> ReplayPlan:
    """Distribute a budget over the decisions of a log.

        value        from before each action, the policy decides anew: the mean outcome is V(h)
        c3           the same runs, each kept as a sibling of the logged action: C3 compares it with them; what replays
                     repeat of their trace is planned there alone
        difference   each action is replaced by `replace`: the mean outcome is the baseline of a difference reward
        spawn        the same at spawn events only
        stop         at each decision to stop or to go on, the other side: going on is replaced by `replace`, a stop by
                     `go_on`
        luck         from before the last action of each trace, the policy decides anew: `credit.replay.luck_share`

    Runs follow Neyman's rule (`credit.replay.allocation.allocate`). The spread is that of earlier runs if there are
    any, else of the group's outcomes in the log. If no task of the log has two outcomes, or for "luck", runs are spread
    evenly.
    Prefixes that two traces share by id are not joined: ids of events say nothing about content.

    Args:
      traces: what was read.
      purpose: what the runs are for; "shapley" is planned by `credit.replay.team_planning.plan_coalitions`.
      budget: runs in all, or tokens in all.
      unit: "runs" or "tokens", of the budget. A run is expected to take as many tokens as the logged trace took from
        its start on, or as earlier runs took.
      replace: the replacement, in the words of the driver; "0" by default. The other purposes replace nothing.
      go_on: what replaces a stop, in the words of the driver; "1" by default.
      least: smallest number of runs of a decision; 2 give a standard error.
      seed: of the runs; a plan that adds to earlier runs needs another one.
      known: results of earlier runs.

    Raises:
      CreditError: an unknown purpose or unit, a replacement for a purpose that replaces nothing, no such decision in
        the log, too small a budget, or a budget in tokens where an action has no count of tokens.
    """
    if purpose not in PURPOSES or purpose == "shapley":
        expected = " or ".join(repr(name) for name in PURPOSES if name != "shapley")
        raise CreditError(f"purpose is {purpose!r}; expected {expected}")
    if unit not in ("runs", "tokens"):
        raise CreditError(f"unit is {unit!r}; expected 'runs' or 'tokens'")
    replaces = purpose in ("difference", "spawn", "stop")
    if replace is not None and not replaces:
        raise CreditError(f"replace is {excerpt(replace)}; expected none: {purpose!r} lets the policy decide anew")
    if go_on is not None and purpose != "stop":
        raise CreditError(f"go_on is {excerpt(go_on)}; expected none: {purpose!r} replaces no stop")
    rows = _decisions(traces, purpose)
    if purpose == "luck":
        check_traces(np.asarray(traces.graph.group_ids)[np.asarray(traces.graph.trace_ids)[rows]])
        known = None if known is None else dataclasses.replace(known, spread={})
    if not len(rows):
        what = {"spawn": "spawn that is an action", "stop": "stop and no stop_propensity at an action"}
        raise CreditError(f"the log has no {what.get(purpose, 'action')} to re-run")
    text = ("0" if replace is None else replace) if replaces else None
    stopped = _of_type(traces, EventType.STOP)[rows] if purpose == "stop" else np.zeros(len(rows), bool)
    texts = [("1" if go_on is None else go_on) if stop else text for stop in stopped.tolist()]
    prefixes = zip(_prefixes(traces, rows), texts, strict=True)
    jobs = [Job(prefix, instead, (), 1) for prefix, instead in prefixes]
    guess = outcome_spread(traces)[np.asarray(traces.graph.trace_ids)[rows]]
    guess = np.full(len(rows), math.nan) if purpose == "luck" else guess
    costs = run_costs(traces)
    price = costs.onwards[rows]
    if text is not None:  # the replaced action itself is not generated again
        tokens = traces.evidence.get("tokens")
        price = price - (0.0 if tokens is None else np.maximum(np.asarray(tokens.array)[rows], 0))
    return ReplayPlan(purpose, allocated(jobs, budget, unit, least, guess, price, known), seed)


def allocated(
    jobs: list[Job],
    budget: int,
    unit: str,
    least: int,
    guess: np.ndarray,
    price: np.ndarray,
    known: KnownRuns | None,
    weight: np.ndarray | None = None,
) -> tuple[Job, ...]:
    """The jobs with their numbers of runs, predicted errors and costs; without those that get none.

    Args:
      guess: float [J], spread where there are no earlier runs; NaN where unknown.
      price: float [J], tokens of a run; NaN where unknown.
      weight: float [J], what a unit of standard error of each job costs. Default: 1.
    """
    keys = [job.key for job in jobs]
    sigma = guess.copy()
    done = np.zeros(len(jobs), np.int64)
    price = np.maximum(price, 1.0)
    if known is not None:
        sigma = np.array([known.spread.get(key, s) for key, s in zip(keys, sigma.tolist(), strict=True)])
        done = np.array([known.done.get(key, 0) for key in keys], np.int64)
        price = np.array([known.tokens.get(key, c) for key, c in zip(keys, price.tolist(), strict=True)])
    if unit == "tokens" and np.isnan(price).any():
        raise CreditError(
            f"{int(np.isnan(price).sum())} of {len(jobs)} runs cannot be priced, since actions of the log have no "
            "evidence 'tokens'; expected tokens at every action, or a budget in runs"
        )
    steering = np.where(np.isnan(sigma), 1.0, sigma) * (1.0 if weight is None else weight)
    cost = price if unit == "tokens" else None
    runs = allocate(steering, budget, done=done, least=least, cost=cost)
    error = predicted_stderr(sigma, runs + done)
    return tuple(
        dataclasses.replace(
            job, runs=n, stderr=math.inf if math.isnan(e) else e, tokens=None if math.isnan(c) else n * c
        )
        for job, n, e, c in zip(jobs, runs.tolist(), error.tolist(), price.tolist(), strict=True)
        if n
    )


def _of_type(traces: Traces, kind: EventType) -> np.ndarray:
    types: np.ndarray = np.asarray(traces.graph.event_type)[: traces.sizes.events] == int(kind)
    return types


def _decisions(traces: Traces, purpose: Purpose) -> np.ndarray:
    n = traces.sizes.events
    chosen = np.asarray(traces.graph.action_mask)[:n]
    if purpose == "spawn":
        chosen = chosen & _of_type(traces, EventType.SPAWN)
    elif purpose == "stop":
        stated = traces.evidence.get("stop_propensity")
        chosen = chosen & (_of_type(traces, EventType.STOP) | (False if stated is None else stated.mask[:n]))
    rows = np.flatnonzero(chosen)
    if purpose == "c3":
        rows = rows[~_repeated(traces, rows)]
    if purpose == "luck":  # of each trace the last
        trace = np.asarray(traces.graph.trace_ids)[rows]
        rows = rows[np.diff(trace, append=-1) != 0]
    return rows


def _repeated(traces: Traces, rows: np.ndarray) -> np.ndarray:
    """Actions without a context or a node that an earlier trace of a later context has, too: bool [N].

    The traces share this draw. Runs from one of the traces would name it as a second draw.
    """
    if "context" not in traces.evidence:
        return np.zeros(len(rows), bool)
    context = np.asarray(traces.evidence["context"].array)[rows]
    named = context >= 0
    node = traces.evidence.get("node")
    named &= False if node is None else np.asarray(node.array)[rows] >= 0
    trace = np.asarray(traces.graph.trace_ids)[rows]
    at = np.flatnonzero(context >= 0)
    pairs = distinct_columns(np.asarray(traces.graph.group_ids)[trace[at]], context[at])
    at = at[trace[at] != trace[at[pairs.first[pairs.of]]]]
    last = np.full(traces.graph.num_traces, -1)
    np.maximum.at(last, trace[at], at)
    repeated: np.ndarray = ~named & (np.arange(len(rows)) < last[trace])
    return repeated


def _prefixes(traces: Traces, rows: np.ndarray) -> Iterable[Prefix]:
    ids = traces.events["event"].to_pylist()
    names, groups = traces.traces["trace"].to_pylist(), traces.traces["group"].to_pylist()
    trace_of = np.asarray(traces.graph.trace_ids)[: len(ids)]
    first = np.searchsorted(trace_of, np.arange(len(names)))
    events, of = TraceEvents(), -1
    for e, t in zip(rows.tolist(), trace_of[rows].tolist(), strict=True):
        if t != of:
            events, of = TraceEvents(), t
        events.extend(ids[first[t] + len(events.ids) : e])
        yield Prefix(names[t], groups[t], events.first(len(events.ids)), ids[e])
