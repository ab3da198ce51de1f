"""Evidence that came from re-running, added to a log: always to a copy, never over the original."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from credit.replay.replay_plan import ReplayPlan
from credit.replay.run_results import Results
from credit.replay.sibling_traces import lines_with_siblings
from credit.replay.stated_errors import stated_stderr
from credit.replay.team_planning import shares_by_name
from graphs.atomic import atomic_write
from graphs.errors import CreditError
from graphs.joint_rewards import at_turn_ends
from graphs.logs import read
from graphs.text import counted, excerpt
from graphs.traces.batch import Traces
from graphs.traces.evidence import Evidence
from graphs.writers import native

__all__ = ["add_evidence", "add_replays", "add_shares", "with_shares", "write_evidence"]


def add_evidence(traces: Traces, **columns: np.ndarray) -> Traces:
    """The batch with further evidence of events, which replaces evidence of the same name.

    Args:
      traces: what was read.
      **columns: float32 or int32 [E] by the name of the evidence, such as `value`; NaN or -1 where there is none.

    Raises:
      CreditError: not one entry for each event.
    """
    for name, values in columns.items():
        if np.shape(values) != (traces.graph.num_events,):
            raise CreditError(f"{name} has shape {np.shape(values)}; expected ({traces.graph.num_events},)")
    added = {name: Evidence(np.asarray(values)) for name, values in columns.items()}
    return dataclasses.replace(traces, evidence={**traces.evidence, **added})


def add_shares(log: Path, output: Path, shares: Mapping[str, tuple[float, float]]) -> int:
    """Copy a log with the Shapley share and standard error of each agent at its actions; how many names occurred.

    Args:
      log: a log of any format that reads.
      output: the copy, in the native format.
      shares: share and standard error by agent name.

    Raises:
      CreditError: no agent of the log has one of the names, or some traces could not be read.
      OSError: a file cannot be read or written.
    """
    traces = read(log)
    if traces.problems:
        first = f"{counted(len(traces.problems), 'problem')}, first: {traces.problems[0]}"
        raise CreditError(f"{log}: {first}; expected a log that reads")
    native.write(with_shares(traces, shares), output)
    return len(shares.keys() & set(traces.agents["name"].to_pylist()))


def with_shares(traces: Traces, shares: Mapping[str, tuple[float, float]]) -> Traces:
    """The batch with the Shapley share and standard error of each agent at its actions.

    Raises:
      CreditError: no agent of the log has one of the names.
    """
    names = traces.agents["name"].to_pylist()
    if not shares.keys() & set(names):
        known = excerpt(sorted(set(names)))
        raise CreditError(f"the log has no agent named {' or '.join(map(repr, shares))}; it has {known}")
    number, error = (
        np.array([shares[name][part] if name in shares else np.nan for name in names], np.float32) for part in (0, 1)
    )
    n = traces.sizes.events
    columns = {name: np.full(traces.graph.num_events, np.nan, np.float32) for name in ("share", "share_stderr")}
    actions = np.asarray(traces.graph.action_mask)[:n]
    agent = np.asarray(traces.graph.agent_ids)[:n]
    columns["share"][:n] = np.where(actions, number[agent], np.nan)
    columns["share_stderr"][:n] = np.where(actions & np.isfinite(error[agent]), error[agent], np.nan)
    return add_evidence(traces, **columns)


def add_replays(traces: Traces, plan: ReplayPlan, results: Results) -> Traces:
    """The batch with the means of replays as evidence of the events that they started from.

    "value" plans give `value`, the expected return from the event on: the mean of the runs minus the rewards at earlier
    events of the log's trace. "difference", "spawn" and "stop" plans give `counterfactual_reward`. `replay_stderr` is
    the standard error of that mean and `replays` the number of runs. Events without runs have none; other evidence of
    the log is kept. `credit.replay.stated_errors` has the formula.

    Args:
      traces: the log that the plan was made for.
      plan: what was run.
      results: what came of it.

    Raises:
      CreditError: the plan names a trace or an event that the log does not have, or is of another purpose.
    """
    if plan.purpose in ("c3", "luck", "shapley"):
        expected = "'value', 'difference', 'spawn' or 'stop'"
        raise CreditError(f"the plan is for {plan.purpose!r}; expected one for {expected}")
    n, length = traces.sizes.events, traces.graph.num_events
    ids = traces.events["event"].to_pylist()
    names = traces.traces["trace"].to_pylist()
    trace_of = np.asarray(traces.graph.trace_ids)[:n].tolist()
    event_of = {(names[trace_of[e]], ids[e]): e for e in range(n)}
    value, error = (np.full(length, np.nan, np.float32) for _ in range(2))
    count = np.full(length, -1, np.int32)
    means, _, counts = results.mean_and_spread()
    errors = stated_stderr(results.outcomes(), [job.prefix.group for job in plan.jobs])
    earned = np.zeros(n)
    if plan.purpose == "value" and "event_reward" in traces.evidence:
        step = at_turn_ends(traces.graph, np.asarray(traces.evidence["event_reward"].array, np.float64))
        step = np.nan_to_num(step[:n])
        before, trace = np.cumsum(step) - step, np.array(trace_of)
        earned = before - before[np.searchsorted(trace, trace)]
    for job, mean, stderr, runs in zip(plan.jobs, means, errors, counts, strict=True):
        event = event_of.get((job.prefix.trace, job.prefix.decision or ""))
        if event is None:
            where = f"event {job.prefix.decision!r} of trace {job.prefix.trace!r}"
            raise CreditError(f"the plan names {where}, which the log does not have")
        if runs:
            value[event], count[event] = mean - earned[event], runs
            error[event] = stderr if np.isfinite(stderr) else np.nan
    name = "value" if plan.purpose == "value" else "counterfactual_reward"
    return add_evidence(traces, **{name: value, "replay_stderr": error, "replays": count})


def write_evidence(traces: Traces, plan: ReplayPlan, results: Results, output: Path) -> None:
    """Write a copy of a log with what its replays give: evidence of events, shares of agents, or sibling traces.

    Args:
      traces: the log that the plan was made for.
      plan: what was run.
      results: what came of it.
      output: a native log; it appears whole or not at all.

    Raises:
      CreditError: the plan does not fit the log.
      OSError: the file cannot be written.
    """
    if plan.purpose in ("c3", "luck"):
        with atomic_write(output) as file:
            for line in lines_with_siblings(traces, plan, results):
                file.write(line.encode() + b"\n")
    elif plan.purpose == "shapley":
        native.write(with_shares(traces, shares_by_name(plan, results)), output)
    else:
        native.write(add_replays(traces, plan, results), output)
