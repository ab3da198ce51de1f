"""Evidence from re-runs against the truth of worlds.

Writes `results/replay.json` and prints two tables.

python benchmarks/replay.py             # measure everything (some minutes), then print both
python benchmarks/replay.py --table     # print the tables of the stored numbers

Coverage, through the command line: the share of numbers that lie within 1.96 stated standard errors of the truth.
Allocation: the mean squared error of value estimates, with a first even plan and a second one planned from its spreads,
over that of one even plan; beside it the bound (Σ σ)² / (J Σ σ²), which the best plan reaches where each σ is known.
"""

from __future__ import annotations

import json
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.replay.drivers.micro_driver import MicroReplayer
from credit.replay.drivers.scripted_driver import ScriptedReplayer
from credit.replay.pooling import pooled
from credit.replay.replay_plan import Job, ReplayPlan, read_plan
from credit.replay.replayer import Replayer, SeededReplayer
from credit.replay.run_planning import known_from, plan_replays
from credit.replay.run_results import Results
from graphs.worlds import KINDS, TeamWorld
from graphs.worlds.micro.examples import MICRO
from graphs.writers import native

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "replay.json"
PURPOSES = ("value", "difference", "spawn", "c3", "shapley")
RUNS = 50  # of each decision or coalition
TRACES = 10
PILOT, LATER = 8, 16  # runs of each decision in the first plan, and on average in the second
REPEATS = {"micro": 200, "swarm": 16}  # of the allocation
SETS = {"micro": 6, "swarm": 2}  # of runs in the coverage; four times as many of coalitions
BOUND_RUNS = 400  # of each decision, for its σ

Truth = Callable[[Job], float]


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


def micro(name: str) -> tuple[credit.Traces, Replayer, Truth, dict[str, float]]:
    world = MICRO[name]
    states = {history: number for number, history in enumerate(world.states)}

    def truth(job: Job) -> float:
        end = world.ends[int(job.prefix.trace.rpartition("-")[2])][0]
        at = len(job.prefix.events)
        earned = sum(world.earned(end[: i + 1]) for i in range(at))  # runs return the reward of the whole trace
        state = states[end[:at]]
        return earned + float(world.v[state] if job.replace is None else world.q[state, int(job.replace)])

    return world.batch(), MicroReplayer(world), truth, world.shapley()


def scripted(kind: str, seed: int = 0) -> tuple[credit.Traces, Replayer, Truth, dict[str, float]]:
    spawn = 1.0 if kind == "poisoned" else 0.7
    world = TeamWorld("swarm", agents=4, events=30, kind=kind, difficulties=(-0.5, 0.5), group_size=5, spawn=spawn)
    driver = ScriptedReplayer(world, world.sample(jax.random.key(seed), TRACES))
    return world.traces(driver.runs), driver, lambda job: driver.expected(job.prefix, replace=job.replace), {}


def worlds() -> dict[str, tuple[credit.Traces, Replayer, Truth, dict[str, float]]]:
    return {name: micro(name) for name in MICRO} | {f"swarm, {kind}": scripted(kind) for kind in KINDS}


def shares(driver: Replayer, plan: Path) -> dict[str, float]:
    """Exact Shapley values of the game that a plan of a scripted team runs."""
    planned = read_plan(plan)
    assert planned.game is not None and isinstance(driver, ScriptedReplayer)
    value, count = np.zeros(planned.game.plan.evaluations), np.zeros(planned.game.plan.evaluations)
    for job in planned.jobs:
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


def coverage(
    name: str, purpose: str, world: tuple[credit.Traces, Replayer, Truth, dict[str, float]], home: Path, seed: int
) -> list[tuple[float, float, float]]:
    """(estimate, stated standard error, truth) of each number that a plan gives; [] where the log has no decision."""
    traces, driver, truth, exact = world
    if purpose == "c3" and "event_reward" in traces.evidence and np.nansum(traces.evidence["event_reward"].amounts):
        return []  # C3 reads no event rewards, and the command says so
    log, plan, results, out = (home / f"{part}.jsonl" for part in ("log", "plan", "results", "with"))
    for path in (plan, results, out):
        path.unlink(missing_ok=True)
    native.write(traces, log)
    spawns = np.asarray(traces.graph.action_mask) & (np.asarray(traces.graph.event_type) == credit.EventType.SPAWN)
    decisions = int((spawns if purpose == "spawn" else np.asarray(traces.graph.action_mask)).sum())
    if not decisions:
        return []
    agents, tasks = len(set(traces.agents["name"].to_pylist())), len(set(traces.traces["group"].to_pylist()))
    budget = RUNS * (2**agents * tasks if purpose == "shapley" else decisions)
    replace = ["--replace", "1"] if name.endswith("poisoned") else []
    run("plan", log, "--for", purpose, "--budget", budget, "--seed", seed, *replace, "-o", plan)
    run("replay", plan, "--driver", offer(driver), "--results", results, "--log", log, "-o", out)
    known = credit.read(out)
    if purpose == "shapley":
        exact = exact or shares(driver, plan)
        agent = np.array(known.agents["name"].to_pylist())[np.asarray(known.graph.agent_ids)[: known.sizes.events]]
        share, error = (known.evidence[part].array for part in ("share", "share_stderr"))
        first = {player: int(np.flatnonzero(agent == player)[0]) for player in exact if player in agent}
        return [(float(share[e]), float(error[e]), exact[player]) for player, e in first.items()]
    jobs = read_plan(plan).jobs
    place = {(job.prefix.trace, job.prefix.decision or ""): job for job in jobs}
    if purpose == "c3":
        result = credit.run(known, "c3")
        numbers = zip(keys(known), np.asarray(result.advantage), np.asarray(result.stderr), strict=False)
        logged = {key: (float(a), float(s)) for key, a, s in numbers if key in place and np.isfinite(s)}
        following = {job.prefix.trace: job for job in jobs}  # the last decision of each trace
        rows = []
        for key, (advantage, stated) in logged.items():
            job = place[key]
            if following[job.prefix.trace] is not job:  # E[R | decision] is the value before the next decision
                after = jobs[jobs.index(job) + 1]
                rows.append((advantage, stated, truth(after) - truth(job)))
        return rows
    numbers = at_events(known, "value" if purpose == "value" else "counterfactual_reward")
    errors = at_events(known, "replay_stderr")
    return [(numbers[key], errors[key], truth(job)) for key, job in place.items()]


def drawn(plan: ReplayPlan, driver: SeededReplayer, seed: int) -> Results:
    """The runs of a plan, without files."""
    rewards = []
    for number, job in enumerate(plan.jobs):
        start = (seed * 1000 + number) * 10_000
        runs = driver.run_seeds(job.prefix, replace=job.replace, seeds=range(start, start + job.runs))
        rewards.append({i: one.reward for i, one in enumerate(runs)})
    none = tuple({} for _ in plan.jobs)
    return Results(tuple(rewards), tuple(frozenset() for _ in plan.jobs), {}, (0,) * len(plan.jobs), none)


def allocation(name: str) -> dict[str, float]:
    """Mean squared error of values by an even plan, and by a first and a second plan of the same cost."""
    even, planned, bound = [], [], []
    kind, repeats = name.removeprefix("swarm, "), REPEATS["micro" if name in MICRO else "swarm"]
    for seed in range(repeats):
        traces, driver, truth, _ = micro(name) if name in MICRO else scripted(kind, seed)
        assert isinstance(driver, SeededReplayer)
        decisions = int(np.asarray(traces.graph.action_mask).sum())

        def loss(plan: ReplayPlan, results: Results, truth: Truth = truth) -> float:
            mean, _, _ = results.mean_and_spread()
            return float(np.mean((mean - [truth(job) for job in plan.jobs]) ** 2))

        total = PILOT + LATER
        plan = plan_replays(traces, "value", total * decisions, least=total)
        even.append(loss(plan, drawn(plan, driver, 4 * seed)))
        first = plan_replays(traces, "value", PILOT * decisions, least=PILOT)
        results = drawn(first, driver, 4 * seed + 1)
        second = plan_replays(traces, "value", LATER * decisions, seed=1, known=known_from(first, results))
        both = pooled([(first, results), (second, drawn(second, driver, 4 * seed + 2))])
        planned.append(loss(*both))
        if seed < 4:
            many = plan_replays(traces, "value", BOUND_RUNS * decisions, least=BOUND_RUNS)
            sigma = drawn(many, driver, 4 * seed + 3).mean_and_spread()[1]
            bound.append(sigma.sum() ** 2 / (decisions * (sigma**2).sum()))
    ratio = np.array(planned).mean() / np.array(even).mean()
    rng = np.random.default_rng(0)
    picks = rng.integers(0, repeats, (2000, repeats))
    spread = (np.array(planned)[picks].mean(1) / np.array(even)[picks].mean(1)).std()
    return {"even": float(np.mean(even)), "planned": float(np.mean(planned)), "bound": float(np.mean(bound)),
            "ratio": float(ratio), "stderr": float(spread)}  # fmt: skip


def measured() -> dict[str, Any]:
    covered: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for number, (name, world) in enumerate(worlds().items()):
            for purpose in PURPOSES:
                sets = SETS["micro" if name in MICRO else "swarm"] * (4 if purpose == "shapley" else 1)
                seeds = range(100 * number, 100 * number + sets)
                rows = [row for seed in seeds for row in coverage(name, purpose, world, home, seed)]
                if rows:
                    estimate, stated, true = np.array(rows).T
                    inside = np.abs(estimate - true) <= 1.96 * stated + 1e-6
                    exact = int((stated < 1e-6).sum())  # all outcomes of the task are equal
                    covered.append({"world": name, "for": purpose, "numbers": len(rows), "inside": int(inside.sum()),
                                    "no_spread": exact})  # fmt: skip
            print(name, [(c["for"], c["inside"] / c["numbers"]) for c in covered if c["world"] == name], flush=True)
        ratios = {}
        for name in [*(f"swarm, {kind}" for kind in KINDS), *MICRO]:
            ratios[name] = allocation(name)
            print(name, ratios[name], flush=True)
    return {"coverage": covered, "allocation": ratios}


def tables(stored: dict[str, Any]) -> str:
    lines = ["| world | " + " | ".join(PURPOSES) + " |", "|---|" + "---:|" * len(PURPOSES)]
    cells = {(c["world"], c["for"]): c for c in stored["coverage"]}
    for world in dict.fromkeys(c["world"] for c in stored["coverage"]):
        row = [cells.get((world, purpose)) for purpose in PURPOSES]
        texts = ["" if c is None else f"{100 * c['inside'] / c['numbers']:.1f} % of {c['numbers']}" for c in row]
        lines.append(f"| {world} | " + " | ".join(texts) + " |")
    total = []
    for purpose in PURPOSES:
        parts = [c for c in stored["coverage"] if c["for"] == purpose]
        inside, numbers = sum(c["inside"] for c in parts), sum(c["numbers"] for c in parts)
        total.append(f"{100 * inside / numbers:.1f} % of {numbers}")
    lines.append("| all | " + " | ".join(total) + " |")
    lines += ["", "| world | even plan | two plans | ratio | bound |", "|---|---:|---:|---:|---:|"]
    for name, r in stored["allocation"].items():
        ratio = f"{r['ratio']:.2f} ± {r['stderr']:.2f}"
        lines.append(f"| {name} | {r['even']:.3g} | {r['planned']:.3g} | {ratio} | {r['bound']:.2f} |")
    return "\n".join(lines)


def main() -> None:
    if "--table" not in sys.argv:
        RESULTS.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    print(tables(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
