"""Plans of runs to make: for which trace, from which event, with what replaced or forbidden, and how many.

A plan is a file of JSON lines. The first line says what it is for; each further line is a job:

    {"plan": "replay", "version": 1, "for": "value", "seed": 0, "jobs": 2}
    {"job": 0, "trace": "t-1", "group": "q", "before": ["e0"], "event": "e1", "replace": null, "forbid": [], "runs": 8}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from credit.replay.allocation import allocate
from credit.replay.json_lines import field, read_lines, write_lines
from credit.replay.replayer import Prefix
from credit.replay.run_results import Results
from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.text import excerpt
from graphs.traces.batch import Traces

__all__ = ["PURPOSES", "Job", "Purpose", "ReplayPlan", "plan_replays", "read_plan", "spreads_of", "write_plan"]

Purpose = Literal["value", "difference", "spawn"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
VERSION = 1


@dataclasses.dataclass(frozen=True)
class Job:
    """Runs from one prefix.

    Attributes:
      prefix: where they start.
      replace: what the decision is replaced by; None lets the policy decide anew.
      forbid: agents that do not act.
      runs: how many.
    """

    prefix: Prefix
    replace: str | None
    forbid: tuple[str, ...]
    runs: int


@dataclasses.dataclass(frozen=True)
class ReplayPlan:
    """Jobs, what evidence they become, and the seed of their runs."""

    purpose: Purpose
    jobs: tuple[Job, ...]
    seed: int = 0

    @property
    def runs(self) -> int:
        """How many runs all jobs ask for."""
        return sum(job.runs for job in self.jobs)


def plan_replays(
    traces: Traces,
    purpose: Purpose,
    budget: int,
    *,
    replace: str = "0",
    least: int = 2,
    seed: int = 0,
    spread: Mapping[tuple[str, str], float] | None = None,
    done: Mapping[tuple[str, str], int] | None = None,
) -> ReplayPlan:
    """Distribute a budget of runs over the decisions of a log.

        value        from before each action, the policy decides anew: the mean outcome is V(h)
        difference   each action is replaced by `replace`: the mean outcome is the baseline of a difference reward
        spawn        the same at spawn events only

    Runs go by Neyman's rule (`credit.replay.allocation.allocate`) where spreads are known from earlier runs, and evenly
    otherwise. Prefixes that two traces share by id are not joined: ids of events say nothing about content.

    Args:
      traces: what was read.
      purpose: what the runs are for.
      budget: runs in all.
      replace: the replacement, in the words of the driver; "difference" and "spawn" only.
      least: smallest number of runs of a decision; 2 give a standard error.
      seed: of the runs.
      spread: standard deviation of the outcomes from each (trace id, event id), of earlier runs.
      done: how many runs each had.

    Raises:
      CreditError: an unknown purpose, no such decision in the log, or too small a budget.
    """
    if purpose not in PURPOSES:
        raise CreditError(f"purpose is {purpose!r}; expected {' or '.join(map(repr, PURPOSES))}")
    prefixes = _prefixes(traces, spawns_only=purpose == "spawn")
    if not prefixes:
        raise CreditError(f"the log has no {'spawn that is an action' if purpose == 'spawn' else 'action'} to re-run")
    keys = [(p.trace, p.decision or "") for p in prefixes]
    sigma = np.array([1.0 if spread is None else spread.get(key, 1.0) for key in keys])
    runs_before = np.array([0 if done is None else done.get(key, 0) for key in keys])
    runs = allocate(sigma, budget, done=runs_before, least=least)
    given = None if purpose == "value" else replace
    jobs = tuple(Job(p, given, (), n) for p, n in zip(prefixes, runs.tolist(), strict=True) if n)
    return ReplayPlan(purpose, jobs, seed)


def _prefixes(traces: Traces, spawns_only: bool) -> list[Prefix]:
    graph, n = traces.graph, traces.sizes.events
    ids = traces.events["event"].to_pylist()
    names, groups = traces.traces["trace"].to_pylist(), traces.traces["group"].to_pylist()
    trace_of = np.asarray(graph.trace_ids)[:n]
    chosen = np.asarray(graph.action_mask)[:n]
    if spawns_only:
        chosen = chosen & (np.asarray(graph.event_type)[:n] == int(EventType.SPAWN))
    first = np.searchsorted(trace_of, np.arange(len(names)))
    return [
        Prefix(names[t], groups[t], tuple(ids[first[t] : e]), ids[e])
        for e, t in ((e, int(trace_of[e])) for e in np.flatnonzero(chosen).tolist())
    ]


def spreads_of(plan: ReplayPlan, results: Results) -> dict[str, dict[tuple[str, str], float]]:
    """Spread and number of the runs of each decision, as `spread` and `done` of `plan_replays`.

    The spread of few runs is uncertain, and 0 where outcomes happen to agree, which would end their sampling. So each
    variance is averaged with the mean variance of all decisions, with the weight of two runs.

    Args:
      plan: of earlier runs.
      results: what came of it.
    """
    _, stderr, runs = results.mean_and_stderr()
    own = np.where(runs > 1, np.where(runs > 1, stderr, 0) ** 2 * runs, 0.0)
    weight = np.maximum(runs - 1, 0)
    mean = float((own * weight).sum() / weight.sum()) if weight.sum() else 1.0
    shrunk = np.sqrt((own * weight + 2 * mean) / (weight + 2))
    keys = [(job.prefix.trace, job.prefix.decision or "") for job in plan.jobs]
    return {
        "spread": dict(zip(keys, shrunk.tolist(), strict=True)),
        "done": dict(zip(keys, runs.tolist(), strict=True)),
    }


def write_plan(plan: ReplayPlan, path: Path) -> None:
    """Write a plan as JSON lines; the file appears whole or not at all."""
    header = {"plan": "replay", "version": VERSION, "for": plan.purpose, "seed": plan.seed, "jobs": len(plan.jobs)}
    jobs = (
        {
            "job": number,
            "trace": job.prefix.trace,
            "group": job.prefix.group,
            "before": list(job.prefix.events),
            "event": job.prefix.decision,
            "replace": job.replace,
            "forbid": list(job.forbid),
            "runs": job.runs,
        }
        for number, job in enumerate(plan.jobs)
    )
    write_lines(path, [header, *jobs])


def read_plan(path: Path) -> ReplayPlan:
    """Read a plan.

    Raises:
      CreditError: no plan of this kind or version; a field that is missing or of a wrong type, with its line.
    """
    lines = list(read_lines(path))
    if not lines or lines[0][1].get("plan") != "replay":
        raise CreditError(f'{path}, line 1: expected a plan, {{"plan": "replay", ...}}')
    number, header = lines[0]
    if header.get("version") != VERSION:
        raise CreditError(f"{path}, line 1: version is {excerpt(header.get('version'))}; expected {VERSION}")
    purpose = header.get("for")
    if purpose not in PURPOSES:
        raise CreditError(f"{path}, line 1: for is {excerpt(purpose)}; expected {' or '.join(map(repr, PURPOSES))}")
    if header.get("jobs") != len(lines) - 1:
        raise CreditError(f"{path}: {len(lines) - 1} jobs; expected {excerpt(header.get('jobs'))}, as line 1 says")
    jobs = []
    for position, (number, line) in enumerate(lines[1:]):
        if line.get("job") != position:
            raise CreditError(f"{path}, line {number}: job is {excerpt(line.get('job'))}; expected {position}")
        texts = {name: field(path, number, line, name, list) for name in ("before", "forbid")}
        for name, values in texts.items():
            if not all(isinstance(value, str) for value in values):
                raise CreditError(f"{path}, line {number}: {name} is {excerpt(values)}; expected a list of texts")
        prefix = Prefix(
            field(path, number, line, "trace", str),
            field(path, number, line, "group", str),
            tuple(texts["before"]),
            field(path, number, line, "event", (str, type(None))),
        )
        runs = field(path, number, line, "runs", int)
        if runs < 1:
            raise CreditError(f"{path}, line {number}: runs is {runs}; expected 1 or more")
        replace = field(path, number, line, "replace", (str, type(None)))
        jobs.append(Job(prefix, replace, tuple(texts["forbid"]), runs))
    return ReplayPlan(purpose, tuple(jobs), field(path, 1, header, "seed", int))
