"""Evidence from re-runs against the truth of worlds: how often the stated standard errors hold.

    python benchmarks/replay.py             (about 5 CPU minutes in all)

Writes `results/replay.json`, cell by cell. Cells that are stored are not measured again. The site puts them into
docs/re-running.md.

A cell is a world and a purpose. A set is all runs of one plan. The first set of a cell is made through the command
line; the others by functions with other seeds, and the first set is compared with theirs. Coverage is the share
of numbers that lie within 1.96 stated standard errors of the truth. Numbers of one set share runs, so the error of the
coverage is that of a mean over sets. Numbers that were equal in every set, because their outcomes are certain, are
counted apart.

C3 takes the logged choice as one of the siblings, so each of its sets has a log of its own, drawn from the policy.
Numbers of C3 that equal the truth with a stated error of 0 are counted apart.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from replay_c3 import c3_numbers
from replay_worlds import Truth, World, drawn_world, worlds

import credit
from credit.cli import cli
from credit.replay.drivers.scripted_driver import ScriptedReplayer
from credit.replay.execution import seed_of
from credit.replay.replay_plan import ReplayPlan, read_plan
from credit.replay.replayer import Continuation, Replayer, SeededReplayer
from credit.replay.run_planning import plan_replays
from credit.replay.run_results import Results
from credit.replay.stated_errors import stated_stderr
from credit.replay.team_planning import solve_coalitions
from graphs.worlds.micro.examples import MICRO
from graphs.writers import native

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "replay.json"
PURPOSES = ("value", "difference", "spawn", "c3", "shapley")
RUNS = 50  # of each decision or coalition
SETS = {  # of each cell
    "micro": {"value": 150, "difference": 150, "spawn": 200, "c3": 300, "shapley": 1000},
    "swarm": {"value": 40, "difference": 40, "spawn": 8, "c3": 40, "shapley": 200},
}


def run(*arguments: object) -> None:
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if result.exit_code != 0:
        raise SystemExit(f"credit {' '.join(map(str, arguments))}: {result.output}")


def offer(driver: Replayer) -> str:
    """The driver under a name that `credit replay` can load."""
    module = types.ModuleType("benchmark_driver")
    module.__dict__["team"] = driver
    sys.modules["benchmark_driver"] = module
    return "benchmark_driver:team"


def shares(driver: Replayer, planned: ReplayPlan) -> dict[str, float]:
    """Exact Shapley values of the game that a plan of a scripted team runs."""
    assert planned.game is not None and isinstance(driver, ScriptedReplayer)
    value, count = np.zeros(planned.game.plan.evaluations), np.zeros(planned.game.plan.evaluations)
    for job in planned.jobs:
        assert job.row is not None
        value[job.row] += driver.expected(job.prefix, forbid=job.forbid)
        count[job.row] += 1
    solved = np.asarray(planned.game.solve(value / count).share).tolist()
    return dict(zip(planned.game.units, solved, strict=True))


def at_events(traces: credit.Traces, name: str) -> dict[tuple[str, str], float]:
    """Evidence by trace and event."""
    n = traces.sizes.events
    value = np.asarray(traces.evidence[name].array)[:n] if name in traces.evidence else np.full(n, np.nan)
    return {key: float(x) for key, x in zip(keys(traces), value, strict=True)}


def keys(traces: credit.Traces) -> list[tuple[str, str]]:
    n = traces.sizes.events
    names = traces.traces["trace"].to_pylist()
    rows = np.asarray(traces.graph.trace_ids)[:n].tolist()
    return [(names[t], event) for t, event in zip(rows, traces.events["event"].to_pylist(), strict=True)]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A world and a purpose: the plan of the first set, and what its numbers should be."""

    name: str
    purpose: str
    traces: credit.Traces
    driver: SeededReplayer
    truth: Truth
    exact: dict[str, float]  # Shapley values
    plan: ReplayPlan
    seed: int

    def set(self, number: int) -> ReplayPlan:
        """The plan of a set: the first one with other runs."""
        return dataclasses.replace(self.plan, seed=self.seed + number)


def cell(name: str, purpose: str, world: World, home: Path, seed: int) -> tuple[Cell, np.ndarray] | None:
    """A cell, and the numbers of its first set by the command line; None where the log has nothing to re-run."""
    traces, driver, truth, exact = world
    spawns = np.asarray(traces.graph.action_mask) & (np.asarray(traces.graph.event_type) == credit.EventType.SPAWN)
    decisions = int((spawns if purpose == "spawn" else np.asarray(traces.graph.action_mask)).sum())
    if not decisions:
        return None
    log, plan, results, out = (home / f"{part}.jsonl" for part in ("log", "plan", "results", "with"))
    for path in (plan, results, out):
        path.unlink(missing_ok=True)
    native.write(traces, log)
    agents, tasks = len(set(traces.agents["name"].to_pylist())), len(set(traces.traces["group"].to_pylist()))
    budget = RUNS * (2**agents * tasks if purpose == "shapley" else decisions)
    replace = ["--replace", "1"] if name.endswith("poisoned") else []
    run("plan", log, "--for", purpose, "--budget", budget, "--seed", seed, *replace, "-o", plan)
    run("replay", plan, "--driver", offer(driver), "--results", results, "--log", log, "-o", out)
    planned = read_plan(plan)
    if purpose == "shapley" and not exact:
        exact = shares(driver, planned)
    made = Cell(name, purpose, traces, driver, functools.cache(truth), exact, planned, seed)
    known = credit.read(out)
    if purpose == "shapley":
        agent = np.array(known.agents["name"].to_pylist())[np.asarray(known.graph.agent_ids)[: known.sizes.events]]
        share, error = (known.evidence[part].array for part in ("share", "share_stderr"))
        first = {player: int(np.flatnonzero(agent == player)[0]) for player in exact if player in agent}
        return made, np.array([(float(share[e]), float(error[e]), exact[player]) for player, e in first.items()])
    if purpose == "c3":
        return made, claims(made, known)
    numbers = at_events(known, "value" if purpose == "value" else "counterfactual_reward")
    errors = at_events(known, "replay_stderr")
    places = {(job.prefix.trace, job.prefix.decision or ""): job for job in planned.jobs}
    return made, np.array([(numbers[key], errors[key], truth(job)) for key, job in places.items()])


def claims(cell: Cell, known: credit.Traces) -> np.ndarray:
    """C3's advantage, standard error and truth of each decision that another one follows."""
    jobs = cell.plan.jobs
    place = {(job.prefix.trace, job.prefix.decision or ""): number for number, job in enumerate(jobs)}
    result = credit.run(known, "c3")
    advantage, stated = np.asarray(result.advantage), np.asarray(result.stderr)
    rows = []
    for e, key in enumerate(keys(known)):
        number = place.get(key)
        if number is None or not np.isfinite(stated[e]) or number + 1 == len(jobs):
            continue
        job, after = jobs[number], jobs[number + 1]
        if after.prefix.trace == job.prefix.trace:  # E[R | decision] is the value before the next decision
            rows.append((float(advantage[e]), float(stated[e]), cell.truth(after) - cell.truth(job)))
    return np.array(rows)


def drawn(plan: ReplayPlan, driver: SeededReplayer) -> Results:
    """The runs of a plan, without files."""
    rewards: list[dict[int, float]] = []
    alternatives: list[dict[int, str]] = []
    for number, job in enumerate(plan.jobs):
        seeds = [seed_of(plan, number, i) for i in range(job.runs)]
        runs = driver.run_seeds(job.prefix, replace=job.replace, forbid=job.forbid, seeds=seeds)
        made = [one for one in runs if isinstance(one, Continuation)]
        rewards.append({i: one.reward for i, one in enumerate(made)})
        alternatives.append({i: one.alternative for i, one in enumerate(made)})
    none = tuple(frozenset[int]() for _ in plan.jobs)
    return Results(tuple(rewards), none, {}, (0,) * len(plan.jobs), tuple(alternatives))


def numbers_of(cell: Cell, number: int, home: Path) -> np.ndarray:
    """Estimate, stated standard error and truth of each number of a set, by the functions of the library."""
    plan = cell.set(number)
    results = drawn(plan, cell.driver)
    if cell.purpose == "shapley":
        assert plan.game is not None
        solved = solve_coalitions(plan, results)
        share, error = np.asarray(solved.share), np.asarray(solved.stderr)
        present = set(cell.traces.agents["name"].to_pylist())
        order = [plan.game.units.index(player) for player in cell.exact if player in present]
        return np.stack([share[order], error[order], [cell.exact[plan.game.units[i]] for i in order]], axis=1)
    if cell.purpose == "c3":
        return c3_numbers(cell.traces, plan, results, cell.truth)
    mean = results.mean_and_spread()[0]
    error = stated_stderr(results.outcomes(), [job.prefix.group for job in plan.jobs])
    return np.stack([mean, error, [cell.truth(job) for job in plan.jobs]], axis=1)


def sets_of(cell: Cell, sets: int, home: Path) -> Iterator[np.ndarray]:
    """The numbers of each set."""
    yield numbers_of(cell, 0, home)
    for number in range(1, sets):
        if cell.purpose != "c3":
            yield numbers_of(cell, number, home)
            continue
        traces, driver, truth, _ = drawn_world(cell.name, number, home)
        plan = plan_replays(traces, "c3", RUNS * int(np.asarray(traces.graph.action_mask).sum()), seed=cell.seed)
        other = dataclasses.replace(cell, traces=traces, driver=driver, truth=functools.cache(truth), plan=plan)
        yield numbers_of(other, number, home)


def measured(name: str, purpose: str, world: World, home: Path, seed: int) -> dict[str, Any] | None:
    """Coverage of a cell, in percent, with its standard error; None where there is nothing to re-run."""
    made = cell(name, purpose, drawn_world(name, 0, home) if purpose == "c3" else world, home, seed)
    if made is None:
        return None
    here, by_command = made
    sets = SETS["micro" if name in MICRO else "swarm"][purpose]
    tables = list(sets_of(here, sets, home))  # [sets] of [numbers, 3]
    # C3 runs in float32, on rewards of up to 14, and `c3_numbers` in float64.
    if not np.allclose(tables[0], by_command, atol=1e-4 if purpose == "c3" else 1e-5):
        raise SystemExit(f"{name}, {purpose}: the command line gives other numbers than its functions")
    inside = [np.abs(one[:, 0] - one[:, 2]) <= 1.96 * one[:, 1] + 1e-6 for one in tables]
    if purpose == "c3":
        certain = [held & (one[:, 1] < 1e-9) for held, one in zip(inside, tables, strict=True)]
    else:
        certain = [np.ptp([one[:, 0] for one in tables], axis=0) < 1e-9] * sets
    row = {
        "world": name,
        "for": purpose,
        "sets": sets,
        "numbers": round(float(np.mean([(~one).sum() for one in certain]))),
        "certain": round(float(np.mean([one.sum() for one in certain]))),
    }
    if not all(held[one].all() for held, one in zip(inside, certain, strict=True)):
        raise SystemExit(f"{name}, {purpose}: a certain outcome lies outside its interval")
    if all(one.all() for one in certain):
        return row
    pairs = zip(inside, certain, strict=True)
    shares_inside = np.array([100 * held[~one].mean() for held, one in pairs if not one.all()])
    row |= {
        "coverage": float(shares_inside.mean()),
        "stderr": float(shares_inside.std(ddof=1) / np.sqrt(len(shares_inside))),
    }
    if purpose != "c3":  # whose numbers differ from set to set
        row["lowest"] = float(100 * np.mean([held[~certain[0]] for held in inside], axis=0).min())
    return row


def main() -> None:
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["coverage"] if RESULTS.exists() else []
    stored = {(c["world"], c["for"]): c for c in known}
    made = worlds()
    order = [(name, purpose) for purpose in ("value", "spawn", "shapley", "difference", "c3") for name in made]
    with tempfile.TemporaryDirectory() as folder:
        for name, purpose in order:
            sets = SETS["micro" if name in MICRO else "swarm"][purpose]
            if stored.get((name, purpose), {}).get("sets") == sets:
                continue
            seed = 10_000 * list(made).index(name)
            result = measured(name, purpose, made[name], Path(folder), seed)
            if result is None:
                continue
            stored[name, purpose] = result
            print(result, flush=True)
            rows = [stored[key] for key in order if key in stored]
            RESULTS.write_text(json.dumps({"coverage": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
