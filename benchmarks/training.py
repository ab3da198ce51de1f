"""The stored comparison of docs/training.md: 24 signals, 8 tasks, 20 seeds.

    python benchmarks/training.py            (about 4 CPU-minutes; resumes from results/training.parquet)
    python benchmarks/training.py more       (the same on the tasks `router` and `planner`; training_more.parquet)
    python benchmarks/training.py composed   (compositions: 100 seeds, a larger budget, two optimizers; 20 minutes)
    python benchmarks/training.py speed      (updates a second of a team of 50 events and 8 agents; training_speed.json)
    python benchmarks/training.py speed grpo (of these signals only, printed)

Rows go to benchmarks/results/training.parquet, cells with paired tests to training.json there. The site makes the
tables of docs/training.md from these files.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.training.learning_tasks import LearningTask, learning_task
from credit.bench.training.reruns import coalition_shares, greedy_rewards, replaced_rewards, rerun_decisions
from credit.bench.training.rollouts import Rollout
from credit.bench.training.training_comparison import Cell, cells, plain
from credit.bench.training.training_loop import CHUNK, Answer, Signal, TrainingSettings, train
from credit.bench.training.training_runs import run_training
from credit.bench.training.training_signals import training_signal

RESULTS = Path(__file__).parent / "results"
BASE = "rloo"
SIGNALS = (
    *("rloo", "grpo", "verl_grpo", "trl_grpo", "reinforce_pp", "turn_baseline", "dr_mas", "mgrpo", "gae", "critic"),
    *("coma", "remax", "shapley", "difference_reward", "c3", "control_c3", "control_critic", "control_critic_whole"),
    *("control_both", "stack", "activity_bonus", "control_exact", "exact_increments", "zero"),
)
TASKS = ("additive", "bernoulli", "bottleneck", "pivotal", "free_rider", "padding", "stopping", "checklist")
SEEDS = 20
MORE_TASKS = ("router", "planner")
COMPOSED = (
    "rloo",
    "control_critic",
    "control_30",
    "control_60",
    "control_60_refit",
    "control_exact",
    "exact_increments",
)
COMPOSED_SEEDS, COMPOSED_TUNING, COMPOSED_STEPS = 100, 20, 180
OPTIMIZERS: tuple[Literal["adam", "sgd"], ...] = ("adam", "sgd")
DRAWN = 8
"""Random tasks, drawn after the compositions had been chosen on the others."""


SPEED = ("zero", "reward", *(signal for signal in SIGNALS if signal != "zero"), "gae_exact")
TURNS = 31


def _raw_reward(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
    """The step without a method: each choice that was drawn is weighted by its trace's reward."""
    del key
    chosen_mask = rollout.choice[..., None] == jnp.arange(rollout.task.choices)[None, None]
    weights = jnp.where(chosen_mask & rollout.taken[..., None], rollout.reward[:, None, None], 0)
    return Answer(weights, 0.0, state)


REWARD = Signal(lambda task: None, _raw_reward)


def _runs_only(simulate: Callable[[Rollout, jax.Array], Any]) -> Signal:
    """The step without a method that simulates a method's runs: their sum is carried on, so that XLA keeps them."""

    def weigh(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
        found = simulate(rollout, key)
        read = sum(jnp.nansum(leaf.astype(jnp.float32)) for leaf in jax.tree.leaves(found))
        return Answer(_raw_reward(rollout, None, key).weights, 0.0, state + read)

    return Signal(lambda task: jnp.zeros(()), weigh)


_ANY_DECISION = _runs_only(rerun_decisions)
RUNS = {
    "remax": _runs_only(lambda rollout, key: greedy_rewards(rollout, int(np.max(rollout.graph.group_ids)) + 1, key)),
    "difference_reward": _runs_only(replaced_rewards),
    "shapley": _runs_only(coalition_shares),
    **dict.fromkeys(("c3", "control_c3", "control_both"), _ANY_DECISION),
    "stack": _runs_only(lambda rollout, key: rerun_decisions(rollout, key, np.asarray(rollout.task.agents) != 0)),
}
"""The runs of each signal that has some, without what the signal computes from them."""


def speed(names: Sequence[str] = SPEED) -> None:
    """Updates a second at 256 traces of 50 events by 8 agents, with an MLP, without and with a method.

    Signals take turns. Times are medians over `TURNS` turns, and ratios medians of those of each turn, so that neither
    other load nor a lucky turn of one of the two decides. `events` are those of an update, runs of the signal's
    evidence included, over those of an update without evidence. `times_runs` is over the step that simulates the
    signal's runs, if it has some, and computes nothing from them.
    """
    reward = np.array([[[0.1, 0.3], [0.2, 0.9]]])
    task = LearningTask("long", tuple(d % 8 for d in range(50)), 2, (0, 49), reward)
    settings = TrainingSettings(steps=200, groups=32, group_size=8, policy="mlp")
    own = settings.groups * settings.group_size * task.decisions
    inputs = jax.random.normal(jax.random.key(0), (own, 59))
    weights = {"into": jnp.ones((59, settings.hidden)), "out": jnp.ones((settings.hidden, task.choices))}
    signals = {name: REWARD if name == "reward" else training_signal(name) for name in names}
    signals |= {f"runs of {name}": RUNS[name] for name in names if name in RUNS}
    wall, busy = ({name: np.zeros(TURNS) for name in (*signals, "network")} for _ in range(2))
    events = {"network": 1.0}
    loads = []
    for turn in range(-1, TURNS):  # the first compiles
        for name, signal in signals.items():
            start = time.perf_counter(), time.process_time()
            curves = train(task, signal, settings, turn + 1, 0.05)
            updates = math.ceil(len(curves.spent) / CHUNK) * CHUNK  # whole calls are computed
            if turn >= 0:
                wall[name][turn] = (time.perf_counter() - start[0]) / updates
                busy[name][turn] = (time.process_time() - start[1]) / updates
            events[name] = float(curves.spent[-1]) / (len(curves.spent) - 1) / own
        start = time.perf_counter(), time.process_time()
        jax.block_until_ready(_slope(weights, inputs))  # type: ignore[no-untyped-call]
        if turn >= 0:
            wall["network"][turn] = time.perf_counter() - start[0]
            busy["network"][turn] = time.process_time() - start[1]
        loads.append(os.getloadavg()[0])

    def times(spent: dict[str, np.ndarray], name: str, base: str) -> float:
        return round(float(np.median(spent[name] / spent[base])), 2)

    found = {
        name: {
            "updates_per_second": round(1 / float(np.median(wall[name])), 1),
            "cpu_ms": round(1e3 * float(np.median(busy[name])), 3),
            "events": round(events[name], 2),
            "times_reward": times(wall, name, "reward"),
            "times_zero": times(wall, name, "zero"),
            "cpu_times_reward": times(busy, name, "reward"),
            "times_runs": times(wall, name, _without(name)),
            "cpu_times_runs": times(busy, name, _without(name)),
        }
        for name in wall
    }
    about = {"turns": TURNS, "load": [round(min(loads), 1), round(max(loads), 1)], "cores": os.cpu_count()}
    for name, row in found.items():
        print(f"{name:20}", *(f"{field} {value}" for field, value in row.items()), sep="  ")
    print(about)
    if tuple(names) == SPEED:
        (RESULTS / "training_speed.json").write_text(json.dumps({**about, "signals": found}, indent=1) + "\n")


def _without(name: str) -> str:
    """The step with the runs of a signal and without what it computes."""
    return f"runs of {name}" if name in RUNS else "reward"


@jax.jit
def _slope(weights: dict[str, jax.Array], inputs: jax.Array) -> dict[str, jax.Array]:
    """What an update costs more if the policy reads each event by itself: its MLP, forward and backward."""

    def loss(weights: dict[str, jax.Array]) -> jax.Array:
        return jnp.mean(jax.nn.log_softmax(jnp.tanh(inputs @ weights["into"]) @ weights["out"])[:, 0])

    slope: dict[str, jax.Array] = jax.grad(loss)(weights)
    return slope


def run(signals: Sequence[str], tasks: Sequence[str], name: str) -> None:
    """Run what is missing, and write results under this name."""
    rows = []
    for signal in signals:
        rows += run_training([signal], tasks, SEEDS, TrainingSettings(), output=RESULTS / f"{name}.parquet")
        print(signal, flush=True)
    _write(name, cells(rows, BASE))


def composed() -> None:
    """Events to 90 % of each composition over those of RLOO, with each optimizer, on the tasks and on random ones."""
    for name, tasks, signals in (
        ("composed", [learning_task(task) for task in (*TASKS, *MORE_TASKS)], COMPOSED),
        ("drawn", [drawn(seed) for seed in range(DRAWN)], (BASE, "control_60_refit", "control_exact")),
    ):
        for optimizer in OPTIMIZERS:
            settings = TrainingSettings(steps=COMPOSED_STEPS, optimizer=optimizer)
            result, rows = f"training_{name}_{optimizer}", []
            output = RESULTS / f"{result}.parquet"
            for signal in signals:
                rows += run_training(
                    [signal],
                    tasks,
                    COMPOSED_SEEDS,
                    settings,
                    tuning=COMPOSED_TUNING,
                    tune_by="events_to_90",
                    output=output,
                )
                print(name, optimizer, signal, flush=True)
            _write(result, cells(rows, BASE))


def drawn(seed: int) -> LearningTask:
    """Success with a probability from 0.05 to 0.95 that is linear in twelve choices and twelve pairs of them."""
    rng = np.random.default_rng(seed)
    choices = np.array(list(itertools.product((0.0, 1.0), repeat=12)))
    pairs = np.array([rng.choice(12, 2, replace=False) for _ in range(12)])
    score = choices @ rng.normal(size=12) + choices[:, pairs].prod(axis=2) @ rng.normal(size=12)
    reward = 0.05 + 0.9 * (score - score.min()) / np.ptp(score)
    return LearningTask(
        f"random {seed}", tuple(d % 4 for d in range(12)), 2, tuple(range(12)), reward.reshape(1, *[2] * 12)
    )


def _write(name: str, compared: list[Cell]) -> None:
    stored = {"against": BASE, "cells": [plain(cell._asdict()) for cell in compared]}
    (RESULTS / f"{name}.json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["speed"]:
        speed(("zero", "reward", *sys.argv[2:]) if sys.argv[2:] else SPEED)
    elif sys.argv[1:] == ["more"]:
        run(SIGNALS, MORE_TASKS, "training_more")
    elif sys.argv[1:] == ["composed"]:
        composed()
    else:
        run(SIGNALS, TASKS, "training")
