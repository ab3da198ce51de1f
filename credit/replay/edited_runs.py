"""Runs of one trace with one event edited, and what they say of the edit."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from pathlib import Path

import numpy as np

from credit.replay.before import TraceEvents
from credit.replay.execution import Limits, execute
from credit.replay.replay_plan import Job, ReplayPlan, read_plan, write_plan
from credit.replay.replayer import Prefix, Replayer
from credit.replay.stated_errors import stated_stderr
from credit.reports.trace_returns import returns
from graphs.atomic import atomic_write
from graphs.errors import CreditError
from graphs.traces.batch import Traces

__all__ = ["EditedRuns", "edit_plan", "run_edit"]


@dataclasses.dataclass(frozen=True)
class EditedRuns:
    """What came of the runs.

    Attributes:
      runs, failed: how many have an outcome, and how many failed.
      mean: their mean return; None without a run.
      change: mean − the return of the logged trace; None where one of them is missing.
      stderr: standard error of the mean, as `stated_stderr` has it with the logged returns of the task beside the runs;
        None below two runs. The logged return of the trace is one number, not a mean.
      tokens: spent, as far as the driver says.
      strayed: why the prefix did not reproduce, in which case no run counts; "" where it did.
    """

    runs: int
    failed: int
    mean: float | None
    change: float | None
    stderr: float | None
    tokens: int
    strayed: str


def edit_plan(traces: Traces, row: int, replace: str | None, runs: int, seed: int) -> ReplayPlan:
    """A plan of runs that continue a trace from before one event, with `replace` in the place of that event.

    Args:
      traces: what was read.
      row: of the event, an action.
      replace: what the driver puts in its place; None lets the policy decide anew.
      runs: how many.
      seed: of the runs.

    Raises:
      CreditError: the event is no action, or `runs` is below 1.
    """
    graph = traces.graph
    ids, trace = traces.events["event"], int(graph.trace_ids[row])
    if not graph.action_mask[row]:
        raise CreditError(f"event {ids[row].as_py()!r} is no action of a policy; expected one, to be decided otherwise")
    if runs < 1:
        raise CreditError(f"runs is {runs}; expected 1 or more")
    first = int(np.searchsorted(np.asarray(graph.trace_ids)[: traces.sizes.events], trace))
    prefix = TraceEvents(ids.slice(first, row - first).to_pylist()).first(row - first)
    name, group = (traces.traces[column][trace].as_py() for column in ("trace", "group"))
    job = Job(Prefix(name, group, prefix, ids[row].as_py()), replace, (), runs)
    return ReplayPlan("value" if replace is None else "difference", (job,), seed)


def run_edit(
    traces: Traces, plan: ReplayPlan, driver: Replayer, results: Path, limits: Limits, *, name: str = ""
) -> EditedRuns:
    """Make the runs that the file of results lacks, and say what they changed.

    The plan is written beside the results, as NAME.plan.jsonl: the two are what `credit replay` takes. NAME.made.json
    says what made them: the driver's `name`, and a digest of the trace in the log.

    Raises:
      CreditError: the results are of another plan, driver or log, or `credit.replay.execution.execute` raises it.
    """
    beside, source = results.with_suffix(".plan.jsonl"), results.with_suffix(".made.json")
    made = {"driver": name, "trace": _digest(traces, plan.jobs[0].prefix.trace)}
    if beside.exists() and read_plan(beside) != plan:
        raise CreditError(f"{beside} is the plan of other runs; expected another file for the results of these")
    if source.exists() and json.loads(source.read_text(encoding="utf-8")) != made:
        raise CreditError(f"{source} is of another driver or log; expected another file for the results of this one")
    write_plan(plan, beside)
    with atomic_write(source) as file:
        file.write(json.dumps(made).encode() + b"\n")
    found = execute(plan, driver, results, limits=limits)
    (outcomes,) = found.outcomes()
    logged, task = returns(traces), np.asarray(traces.graph.group_ids)[: traces.sizes.traces]
    trace = traces.index(plan.jobs[0].prefix.trace)
    alike = logged[(task == task[trace]) & np.isfinite(logged)]
    error = float(stated_stderr([outcomes, alike], ["", ""])[0])
    mean = float(outcomes.mean()) if len(outcomes) else None
    return EditedRuns(
        runs=len(outcomes),
        failed=len(found.failed[0]),
        mean=mean,
        change=None if mean is None or np.isnan(logged[trace]) else mean - float(logged[trace]),
        stderr=error if math.isfinite(error) else None,
        tokens=found.tokens,
        strayed=found.strayed.get(0, ""),
    )


def _digest(traces: Traces, trace: str) -> str:
    """Of the events and the outcome of a trace, as they were read."""
    row = traces.index(trace)
    of_trace = np.flatnonzero(np.asarray(traces.graph.trace_ids)[: traces.sizes.events] == row)
    logged = traces.events.drop_columns([c for c in ("file", "line") if c in traces.events.column_names])
    events = logged.slice(int(of_trace[0]), len(of_trace)).to_pylist() if len(of_trace) else []
    return hashlib.sha256(repr((events, float(traces.reward[row]))).encode()).hexdigest()
