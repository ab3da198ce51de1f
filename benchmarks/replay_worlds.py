"""Logs of worlds whose truth is known, with drivers that run their teams again, for the benchmarks of re-running."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np

import credit
from credit.replay.drivers.micro_driver import MicroReplayer
from credit.replay.drivers.scripted_driver import ScriptedReplayer
from credit.replay.replay_plan import Job
from credit.replay.replayer import Continuation, Prefix, SeededReplayer
from graphs.worlds import KINDS, TeamWorld
from graphs.worlds.micro.examples import MICRO
from graphs.writers import native

TRACES = 10
Truth = Callable[[Job], float]
World = tuple[credit.Traces, SeededReplayer, Truth, dict[str, float]]
"""A log, a driver, the mean outcome of each job's runs, and Shapley values, where they are known beforehand."""


def micro(name: str) -> World:
    world = MICRO[name]
    states = {history: number for number, history in enumerate(world.states)}

    def truth(job: Job) -> float:
        end = world.ends[int(job.prefix.trace.rpartition("-")[2])][0]
        at = len(job.prefix.events)
        earned = sum(world.earned(end[: i + 1]) for i in range(at))  # runs return the reward of the whole trace
        state = states[end[:at]]
        return earned + float(world.v[state] if job.replace is None else world.q[state, int(job.replace)])

    return world.batch(), MicroReplayer(world), truth, world.shapley()


@dataclasses.dataclass(frozen=True)
class DrawnTraces:
    """A driver for traces "WORLD+DRAW-NUMBER", each a copy of the trace "WORLD-NUMBER"."""

    driver: SeededReplayer

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> Sequence[Continuation | Exception]:
        world, _, number = prefix.trace.rpartition("-")
        there = dataclasses.replace(prefix, trace=f"{world.partition('+')[0]}-{number}")
        return self.driver.run_seeds(there, replace=replace, forbid=forbid, seeds=seeds)

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> Sequence[Continuation | Exception]:
        numbers = np.random.default_rng(seed).integers(0, 2**63, n)
        return self.run_seeds(prefix, replace=replace, forbid=forbid, seeds=numbers.tolist())


def drawn_world(name: str, number: int, home: Path) -> World:
    """A world with a log of its own for each number, drawn from the policy."""
    if name not in MICRO:
        return scripted(name.removeprefix("swarm, "), number)
    _, driver, truth, exact = micro(name)
    documents = [json.loads(line) for line in native.lines(MICRO[name].batch())]
    rows = np.random.default_rng(number).choice(len(documents), TRACES, p=MICRO[name].probabilities())
    with (home / "drawn.jsonl").open("w", encoding="utf-8") as file:
        for draw, row in enumerate(rows.tolist()):
            file.write(json.dumps(documents[row] | {"trace_id": f"{name}+{draw}-{row:04d}"}) + "\n")
    return credit.read(home / "drawn.jsonl"), DrawnTraces(driver), truth, exact


def scripted(kind: str, seed: int = 0) -> World:
    spawn = 1.0 if kind == "poisoned" else 0.7
    world = TeamWorld("swarm", agents=4, events=30, kind=kind, difficulties=(-0.5, 0.5), group_size=5, spawn=spawn)
    driver = ScriptedReplayer(world, world.sample(jax.random.key(seed), TRACES))
    return world.traces(driver.runs), driver, lambda job: driver.expected(job.prefix, replace=job.replace), {}


def worlds() -> dict[str, World]:
    return {name: micro(name) for name in MICRO} | {f"swarm, {kind}": scripted(kind) for kind in KINDS}
