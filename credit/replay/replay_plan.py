"""Plans of runs: the trace, the event to start from, replaced and forbidden actions, and the number of runs.

A plan is a file of JSON lines. The first line states its purpose; each further line is a job:

    {"plan": "replay", "version": 3, "for": "value", "seed": 0, "jobs": 2}
    {"job": 0, "trace": "t-1", "group": "q", "before": 0, "more": ["e0"], "event": "e1", "replace": null, "forbid": [],
     "runs": 8, "stderr": 0.177, "tokens": 4096}
    {"job": 1, "trace": "t-1", "group": "q", "before": 1, "more": ["e1"], "event": "e2", ...}

The events before a decision are the first `before` ids that earlier jobs of the trace listed, and the ids in `more`.

`stderr` is the predicted standard error of the mean of the job's runs and `tokens` what they are predicted to cost;
both are absent where nothing predicts them. In a plan for Shapley values the first line also has the `game`, the first
line of a plan of `credit shapley plan`, and each job the `row` of the game that it evaluates.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any, Literal, get_args

from credit.replay.before import Before, TraceEvents
from credit.replay.json_lines import field, read_lines, write_lines
from credit.replay.replayer import Prefix
from credit.replay.shapley_game import Game, game_header, game_of_header
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["PURPOSES", "Job", "Purpose", "ReplayPlan", "read_plan", "write_plan"]

Purpose = Literal["value", "difference", "spawn", "stop", "c3", "shapley", "luck"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
VERSION = 3  # of the file of a plan; other versions are refused


@dataclasses.dataclass(frozen=True)
class Job:
    """Runs from one prefix.

    Attributes:
      prefix: where they start.
      replace: what the decision is replaced by; None lets the policy decide anew.
      forbid: agents that do not act.
      runs: how many.
      stderr: predicted standard error of their mean, in units of reward; infinite where nothing predicts it.
      tokens: predicted cost of all of them; None where nothing predicts it.
      row: the row of the Shapley game that they evaluate; None in other plans.
    """

    prefix: Prefix
    replace: str | None
    forbid: tuple[str, ...]
    runs: int
    stderr: float = math.inf
    tokens: float | None = None
    row: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What is run, without how often: jobs of several plans with one key are runs of one mean."""
        return (self.prefix, self.replace, self.forbid, self.row)


@dataclasses.dataclass(frozen=True)
class ReplayPlan:
    """Jobs, what evidence they become, the seed of their runs, and the Shapley game that they evaluate, if any."""

    purpose: Purpose
    jobs: tuple[Job, ...]
    seed: int = 0
    game: Game | None = None

    @property
    def runs(self) -> int:
        """The number of runs of all jobs."""
        return sum(job.runs for job in self.jobs)

    @property
    def tokens(self) -> float | None:
        """Predicted cost of all runs in tokens; None if one of the runs has no prediction."""
        costs = [job.tokens for job in self.jobs]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def write_plan(plan: ReplayPlan, path: Path) -> None:
    """Write a plan as JSON lines; the file appears whole or not at all."""
    header: dict[str, Any] = {"plan": "replay", "version": VERSION, "for": plan.purpose}
    header |= {"seed": plan.seed, "jobs": len(plan.jobs)}
    if plan.game is not None:
        header["game"] = game_header(plan.game)
    listed: dict[str, Before] = {}
    jobs = (
        {
            "job": number,
            "trace": job.prefix.trace,
            "group": job.prefix.group,
            **_events(job.prefix, listed),
            "event": job.prefix.decision,
            "replace": job.replace,
            "forbid": list(job.forbid),
            "runs": job.runs,
        }
        | ({"stderr": job.stderr} if math.isfinite(job.stderr) else {})
        | ({} if job.tokens is None else {"tokens": job.tokens})
        | ({} if job.row is None else {"row": job.row})
        for number, job in enumerate(plan.jobs)
    )
    write_lines(path, [header, *jobs])


def _events(prefix: Prefix, listed: dict[str, Before]) -> dict[str, Any]:
    """The events before a decision, behind those that earlier jobs listed of each trace."""
    ids, known = prefix.before, listed.get(prefix.trace)
    if known is not None and known.begins_with(ids):
        return {"before": len(ids), "more": []}
    listed[prefix.trace] = ids
    start = len(known) if known is not None and ids.begins_with(known) else 0
    return {"before": start, "more": list(ids[start:])}


def read_plan(path: Path) -> ReplayPlan:
    """Read a plan.

    Raises:
      CreditError: no plan of this kind or version; a field that is missing or of a wrong type, with its line.
    """
    lines = list(read_lines(path))
    if not lines or lines[0][1].get("plan") != "replay":
        raise CreditError(f'{path}, line 1: expected a plan, {{"plan": "replay", ...}}')
    header = lines[0][1]
    if header.get("version") != VERSION:
        raise CreditError(f"{path}, line 1: version is {excerpt(header.get('version'))}; expected {VERSION}")
    purpose = header.get("for")
    if purpose not in PURPOSES:
        raise CreditError(f"{path}, line 1: for is {excerpt(purpose)}; expected {' or '.join(map(repr, PURPOSES))}")
    if header.get("jobs") != len(lines) - 1:
        raise CreditError(f"{path}: {len(lines) - 1} jobs; expected {excerpt(header.get('jobs'))}, as line 1 says")
    game = None
    if purpose == "shapley":
        game = game_of_header(path, field(path, 1, header, "game", dict))
    listed: dict[str, TraceEvents] = {}
    jobs = tuple(_job(path, position, *line, game, listed) for position, line in enumerate(lines[1:]))
    return ReplayPlan(purpose, jobs, field(path, 1, header, "seed", int), game)


def _job(
    path: Path, position: int, number: int, line: dict[str, Any], game: Game | None, listed: dict[str, TraceEvents]
) -> Job:
    if line.get("job") != position:
        raise CreditError(f"{path}, line {number}: job is {excerpt(line.get('job'))}; expected {position}")
    texts = {name: field(path, number, line, name, list) for name in ("more", "forbid")}
    for name, values in texts.items():
        if not all(isinstance(value, str) for value in values):
            raise CreditError(f"{path}, line {number}: {name} is {excerpt(values)}; expected a list of texts")
    trace, before = field(path, number, line, "trace", str), field(path, number, line, "before", int)
    events = listed.setdefault(trace, TraceEvents())
    if texts["more"] and before == 0 and events.ids:  # another order of the trace's events
        events = listed[trace] = TraceEvents()
    if not (before == len(events.ids) or (0 <= before < len(events.ids) and not texts["more"])):
        expected = f"{len(events.ids)}, as many as earlier jobs list of trace {trace!r}"
        raise CreditError(f"{path}, line {number}: before is {before}; expected {expected}")
    events.extend(texts["more"])
    prefix = Prefix(
        trace,
        field(path, number, line, "group", str),
        events.first(before + len(texts["more"])),
        field(path, number, line, "event", (str, type(None))),
    )
    runs = field(path, number, line, "runs", int)
    if runs < 1:
        raise CreditError(f"{path}, line {number}: runs is {runs}; expected 1 or more")
    stderr = float(field(path, number, line, "stderr", (int, float))) if "stderr" in line else math.inf
    tokens = float(field(path, number, line, "tokens", (int, float))) if "tokens" in line else None
    row = None
    if game is not None:
        row = field(path, number, line, "row", int)
        if not 0 <= row < game.plan.evaluations:
            raise CreditError(f"{path}, line {number}: row is {row}; expected 0 to {game.plan.evaluations - 1}")
        absent = tuple(unit for unit in game.units if unit not in game.team(row))
        if tuple(texts["forbid"]) != absent:
            raise CreditError(
                f"{path}, line {number}: forbid is {excerpt(texts['forbid'])}; expected {absent} in row {row}"
            )
    replace = field(path, number, line, "replace", (str, type(None)))
    return Job(prefix, replace, tuple(texts["forbid"]), runs, stderr, tokens, row)
