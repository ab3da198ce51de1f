"""The stored numbers of docs/stopping.md: coverage over worlds drawn by seed, and which signals learn to stop.

    python benchmarks/stopping.py coverage --seed 7000       (20 worlds, half a CPU-minute; --of spawn: to spawn or not)
    python benchmarks/stopping.py train                      (8 signals, 7 tasks, 5 seeds: six CPU-minutes; resumes)

A world is a decision with two sides at prefixes of several kinds: the policy's probability and the value of more differ
from kind to kind. Its logs have 60 to 2,000 decisions, each in a trace of its own. Coverage is that of estimate ± 1.96
standard errors, of the answers that state an error.

Training rows go to benchmarks/results/stopping.parquet, and both summaries to stopping.json there.
"""

from __future__ import annotations

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credit.bench.training.learning_tasks import TASKS as LEARNING_TASKS
from credit.bench.training.learning_tasks import learning_task
from credit.bench.training.training_files import POINTS
from credit.bench.training.training_loop import TrainingSettings
from credit.bench.training.training_runs import run_training
from credit.metrics.decision_values import DECISIONS, DecisionKind
from estimators.counterfactual.more_or_less import ValueOfMore, points, value_of_more
from graphs.event_graph import EventGraph, EventType

RESULTS = Path(__file__).parent / "results" / "stopping.json"
ROWS = RESULTS.with_suffix(".parquet")
SIGNALS = (
    *("rloo", "turn_baseline", "stop_credit", "stop_own", "exact_increments", "stop_replays", "stop_robust"),
    "stop_budget",
)
TASKS = tuple(name for name in LEARNING_TASKS if name.startswith("stopping_"))
SEEDS, TUNING, RATES = 5, 2, (0.1, 0.3, 0.8)
NEAR = 0.95
"""A policy stops at the optimum if its exact return is at least this part of the best one."""
WORLDS, LOGS, ROOM = 20, 2400, 60_000
OUTCOMES = ("success", "steps", "normal", "skewed")


@functools.partial(jax.jit, static_argnames="of")
def _of_keys(
    graph: EventGraph, reward: jax.Array, propensity: jax.Array, model: jax.Array, gap: jax.Array, *, of: DecisionKind
) -> ValueOfMore:
    p = points(graph, reward, None, f"{of}_propensity", propensity, "task")
    return value_of_more(p, p.ahead - model, gap=gap)


def _one_decision_each(more: np.ndarray, of: DecisionKind) -> EventGraph:
    """A trace with one decision for each cell of bool [logs, decisions], padded to `ROOM`; a log is a task."""
    place, taken = np.arange(ROOM, dtype=np.int32), np.zeros(ROOM, bool)
    taken[: more.size] = more.ravel() if of == "spawn" else ~more.ravel()
    real = place < more.size
    zero, none, nothing = np.zeros(ROOM, np.int32), np.zeros(1, np.int32), np.zeros(1, bool)
    return EventGraph(
        event_type=np.where(taken, int(EventType[of.upper()]), int(EventType.MESSAGE)).astype(np.int32),
        action_mask=real, event_mask=real, time=np.full(ROOM, np.nan, np.float32), trace_ids=np.where(real, place, 0),
        agent_ids=np.where(real, place, 0), turn_ids=np.where(real, place, 0), senders=none, receivers=none,
        edge_type=none, edge_mask=nothing, agent_name_ids=zero, agent_role_ids=zero, agent_parent=place,
        agent_trace=np.where(real, place, 0), agent_mask=real, group_ids=np.where(real, place // more.shape[1], 0),
        trace_mask=real,
    )  # fmt: skip


def drawn_world(seed: int, of: DecisionKind = "stop") -> dict[str, Any]:
    """A world by seed, and what the intervals of its logs did."""
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(1, 5))
    chance, worth = rng.uniform(0.08, 0.92, kinds), rng.uniform(0.1, 0.9, (kinds, 2))
    often = rng.dirichlet(np.ones(kinds))
    outcome = OUTCOMES[int(rng.integers(len(OUTCOMES)))]
    size = int(np.exp(rng.uniform(np.log(60), np.log(2000))))
    critic = float(rng.choice([0.0, 1.0])) * (worth + rng.normal(scale=0.1, size=(kinds, 2)))
    truth = float(often @ (worth[:, 1] - worth[:, 0]))
    covered, errors = [], []
    batch = ROOM // size  # logs at a time; one shape for all worlds, so that it compiles once
    for start in range(0, LOGS, batch):
        logs = min(batch, LOGS - start)
        kind = rng.choice(kinds, (logs, size), p=often)
        more = rng.random((logs, size)) < chance[kind]
        mean = np.where(more, worth[kind, 1], worth[kind, 0])
        y = _outcomes(rng, outcome, mean)
        gap = critic[kind, 1] - critic[kind, 0]
        model = np.where(more, critic[kind, 1], critic[kind, 0])
        n = logs * size

        def fit(values: np.ndarray) -> np.ndarray:
            return np.pad(values.ravel().astype(np.float32), (0, ROOM - values.size))

        propensity = chance[kind] if of == "spawn" else 1 - chance[kind]
        found = _of_keys(_one_decision_each(more, of), *map(fit, (y, propensity, model, gap)), of=of)
        value = np.asarray(found.value)[:n:size]
        stderr = np.asarray(found.stderr)[:n:size]
        stated = np.isfinite(stderr) & (np.asarray(found.reason)[:n:size] == 0)
        errors += (value - truth)[stated].tolist()
        covered += (np.abs(value - truth) < 1.96 * stderr)[stated].tolist()
    answered = len(covered) / LOGS
    row = {"seed": seed, "outcome": outcome, "decisions": size, "kinds": kinds, "critic": bool(critic.any())}
    return row | {
        "answered": answered,
        "coverage": float(np.mean(covered)) if covered else None,
        "bias": float(np.mean(errors)) if covered else None,
        "bias_stderr": float(np.std(errors) / len(errors) ** 0.5) if covered else None,
    }


def _outcomes(rng: np.random.Generator, kind: str, mean: np.ndarray) -> np.ndarray:
    if kind == "success":
        return (rng.random(mean.shape) < mean).astype(np.float64)
    if kind == "steps":
        return rng.binomial(4, mean) / 4
    if kind == "normal":
        return mean + rng.normal(scale=0.5, size=mean.shape)
    return mean * rng.exponential(size=mean.shape)


def coverage(seed: int, worlds: int = WORLDS, of: DecisionKind = "stop") -> list[dict[str, Any]]:
    """Every world, printed, and the share of intervals that cover over all of them."""
    rows = [drawn_world(seed + i, of) for i in range(worlds)]
    for row in rows:
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
    stated = [row for row in rows if row["coverage"] is not None]
    weight = np.array([row["answered"] for row in stated])
    print(f"coverage over {len(stated)} worlds: {np.average([row['coverage'] for row in stated], weights=weight):.4f}")
    often = [row["coverage"] for row in stated if row["answered"] * LOGS >= 200]
    apart = [round(share, 4) for share in sorted(often) if not 0.93 <= share <= 0.97]
    print(f"{len(often)} worlds with 200 answers or more; not within 93 to 97 %: {apart}")
    return rows


def train() -> dict[str, dict[str, Any]]:
    """By signal and task: how many seeds end near the optimum, and the median events to the first policy near it."""
    table: dict[str, dict[str, Any]] = {}
    for signal in SIGNALS:
        for task in TASKS:
            rows = run_training(
                [signal], [task], SEEDS, TrainingSettings(), learning_rates=RATES, tuning=TUNING, output=ROWS
            )
            budget = TrainingSettings().budget(learning_task(task))
            near = [np.flatnonzero(np.array(row["curve"]) >= NEAR * row["optimum"]) for row in rows]
            steps = [places[0] / (POINTS - 1) * budget if len(places) else np.inf for places in near]
            median = float(np.median(steps))
            table.setdefault(signal, {})[task] = {
                "stopped": sum(row["final_return"] >= NEAR * row["optimum"] for row in rows),
                "events": round(median) if np.isfinite(median) else None,
                "final": round(float(np.mean([row["final_return"] / row["optimum"] for row in rows])), 3),
            }
            print(signal, task, table[signal][task], flush=True)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["coverage", "train"])
    parser.add_argument("--seed", type=int, default=7000)
    parser.add_argument("--of", choices=DECISIONS, default="stop", help="Spawning is not stored.")
    parser.add_argument("--worlds", type=int, default=WORLDS, help="Others than 20 are not stored.")
    given = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.what == "train":
        stored["training"] = train()
    else:
        worlds = coverage(given.seed, given.worlds, given.of)
        if given.worlds != WORLDS or given.of != "stop":
            return
        stored["coverage"] = {"seed": given.seed, "logs": LOGS, "worlds": worlds}
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
