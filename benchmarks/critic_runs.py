"""A critic learned from further runs of logged prefixes, against one learned from further traces, at equal cost.

Writes `results/critic_runs.json` and prints a table.

python benchmarks/critic_runs.py             # measure (2 CPU minutes), then print
python benchmarks/critic_runs.py --table     # print what is stored

The world is a `TeamWorld` swarm of 4 agents and 30 events with 20 tasks of 5 traces; the choice of each decision is a
column of `dense`. Three additive critics are fitted: to 100 traces, to these and runs from 200 of their prefixes, 2
each, and to as many traces as have the events of both. The error is that of the increments of 100 fresh traces.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

import credit
from credit.replay.added_evidence import add_replays
from credit.replay.drivers.scripted_driver import ScriptedReplayer
from credit.replay.run_planning import plan_replays
from credit.replay.run_results import Results
from estimators.critic.train import Settings
from graphs.worlds import TeamWorld
from graphs.worlds.scripted.runs import Runs

RESULTS = Path(__file__).resolve().parent / "results" / "critic_runs.json"
KINDS = ("bernoulli", "additive", "pivotal", "bottleneck", "free_rider", "padding")
SEEDS = 5
TRACES, FRESH, PREFIXES, RUNS = 100, 100, 200, 2
MOST = 300  # traces drawn at once, so that drawing compiles once


def world_of(kind: str) -> TeamWorld:
    tasks = tuple(np.linspace(-0.5, 0.5, 20).tolist())
    return TeamWorld("swarm", agents=4, events=30, kind=kind, difficulties=tasks, group_size=5, spawn=0.7)


def choices(traces: credit.Traces, runs: Runs) -> np.ndarray:
    dense = np.zeros((traces.graph.num_events, 1), np.float32)
    dense[np.flatnonzero(np.asarray(traces.graph.action_mask)), 0] = np.asarray(runs.choice)[np.asarray(runs.present)]
    return dense


def measure(kind: str, seed: int) -> dict[str, float]:
    world = world_of(kind)
    keys = jax.random.split(jax.random.key(seed), 3)

    def sample(key: jax.Array, n: int) -> Runs:
        if n > MOST:
            raise SystemExit(f"{n} traces; expected at most {MOST}")
        runs: Runs = jax.tree.map(lambda column: np.asarray(column)[:n], world.sample(key, MOST))
        return runs

    fresh = sample(keys[0], FRESH)
    truth = world.increments(fresh)
    judged = world.traces(fresh, truth)
    actions = np.flatnonzero(np.asarray(judged.graph.action_mask))
    true = np.asarray(truth.flat())[actions]

    def error(traces: credit.Traces, runs: Runs, *, replays: bool = False) -> float:
        reward = np.asarray(traces.reward)[: traces.sizes.traces]
        head = "bernoulli" if reward.min() >= 0 and reward.max() <= 1 else "value"
        settings = Settings(model="additive", head=head)
        critic = credit.fit_critic(traces, dense=choices(traces, runs), settings=settings, replays=replays)
        values = critic.values(judged, dense=choices(judged, fresh))
        change = np.asarray(values.after.mean(axis=0) - values.before.mean(axis=0))[actions]
        return float(np.sqrt(np.mean((change - true) ** 2)))

    drawn = sample(keys[1], TRACES)
    log, driver = world.traces(drawn), ScriptedReplayer(world, drawn)
    even = plan_replays(log, "value", RUNS * int(np.asarray(log.graph.action_mask).sum()))
    rng = np.random.default_rng(seed)
    chosen = sorted(rng.choice(len(even.jobs), PREFIXES, replace=False).tolist())
    plan = dataclasses.replace(even, jobs=tuple(dataclasses.replace(even.jobs[i], runs=RUNS) for i in chosen))
    rewards, events = [], 0
    events_of = np.bincount(np.asarray(log.graph.trace_ids)[: log.sizes.events])
    lengths = dict(zip(log.traces["trace"].to_pylist(), events_of, strict=True))
    for number, job in enumerate(plan.jobs):
        begin = (seed * 1000 + number) * 10_000
        rewards.append(
            {i: one.reward for i, one in enumerate(driver.run_seeds(job.prefix, seeds=range(begin, begin + RUNS)))}
        )
        events += RUNS * (int(lengths[job.prefix.trace]) - len(job.prefix.events))
    none = tuple({} for _ in plan.jobs)
    results = Results(tuple(rewards), tuple(frozenset() for _ in plan.jobs), {}, (0,) * len(plan.jobs), none)
    more = TRACES + round(events / (log.sizes.events / TRACES))
    larger = sample(keys[2], more)
    return {
        "rms": float(np.sqrt(np.mean(true**2))),
        "traces": error(log, drawn),
        "traces_and_runs": error(add_replays(log, plan, results), drawn, replays=True),
        "more_traces": error(world.traces(larger), larger),
        "number_of_more": more,
    }


def table(stored: dict[str, Any]) -> str:
    lines = [
        "| outcome | rms of the truth | 100 traces | with runs | more traces instead |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind, rows in stored["rows"].items():
        mean = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
        spread = {name: np.std([row[name] for row in rows], ddof=1) / np.sqrt(len(rows)) for name in rows[0]}
        cells = [f"{mean[name]:.3f} ± {spread[name]:.3f}" for name in ("traces", "traces_and_runs", "more_traces")]
        lines.append(f"| {kind} | {mean['rms']:.3f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    if "--table" not in sys.argv:
        rows: dict[str, list[dict[str, float]]] = {}
        for kind in KINDS:
            rows[kind] = [measure(kind, seed) for seed in range(SEEDS)]
            print(kind, rows[kind], flush=True)
        stored = {"rows": rows, "seeds": SEEDS, "jax": jax.__version__, "numpy": np.__version__}
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
