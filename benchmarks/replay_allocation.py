"""Where planning pays: the mean squared error of planned re-runs over that of even ones, at equal cost.

    python benchmarks/replay_allocation.py             (2 CPU minutes in all)

Writes `results/replay_allocation.json`, world by world. Stored worlds are not measured again. The site puts them into
docs/re-running.md.

Values before each action of a log are estimated from 24 runs of each on average. The even plan makes 24 of each. The
two plans make 8 of each, and 16 on average by the spreads of the first 8. Both use the same random numbers as far as
they make the same runs. The bound is (Σ σ)² / (J Σ σ²) = 1 / (1 + CV²), with CV the standard deviation of the J spreads
σ over their mean: no allocation has a smaller ratio, even where each σ is known.

In "stakes r" the tasks of a log have rewards of different size: task i of four pays 1 / rⁱ of what the kind pays.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from replay_worlds import Truth, World, micro, scripted

from credit.replay.drivers.scripted_driver import ScriptedReplayer
from credit.replay.pooling import pooled
from credit.replay.replay_plan import ReplayPlan
from credit.replay.replayer import Continuation, Prefix, SeededReplayer
from credit.replay.run_planning import known_from, plan_replays
from credit.replay.run_results import Results
from graphs.traces.assembling import assemble
from graphs.worlds import KINDS, TeamWorld
from graphs.worlds.micro.examples import MICRO

RESULTS = Path(__file__).resolve().parent / "results" / "replay_allocation.json"
PILOT, LATER = 8, 16  # runs of each decision in the first plan, and on average in the second
REPEATS = {"micro": 120, "swarm": 16, "stakes": 16}
BOUND_LOGS, BOUND_RUNS = 1, 200  # for σ
STAKES = (1.0, 1.5, 2.0, 4.0)  # of kind "additive"; the other kinds have the last but one


@dataclasses.dataclass(frozen=True)
class Staked:
    """A scripted team whose rewards are multiplied by the stake of the task."""

    driver: ScriptedReplayer
    stakes: dict[str, float]

    def run_seeds(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), seeds: Sequence[int]
    ) -> list[Continuation]:
        runs = self.driver.run_seeds(prefix, replace=replace, forbid=forbid, seeds=seeds)
        stake = self.stakes[prefix.group]
        return [dataclasses.replace(one, reward=stake * one.reward) for one in runs]

    def run(
        self, prefix: Prefix, *, replace: str | None = None, forbid: Sequence[str] = (), n: int, seed: int
    ) -> list[Continuation]:
        numbers = np.random.default_rng(seed).integers(0, 2**63, n)
        return self.run_seeds(prefix, replace=replace, forbid=forbid, seeds=numbers.tolist())


def staked(kind: str, ratio: float, seed: int) -> World:
    """Four tasks of three traces whose stakes fall by a ratio from one to the next."""
    spawn = 1.0 if kind == "poisoned" else 0.7
    world = TeamWorld("swarm", agents=4, events=30, kind=kind, difficulties=(0.0,) * 4, group_size=3, spawn=spawn)
    driver = ScriptedReplayer(world, world.sample(jax.random.key(seed), 12))
    records = world.records(driver.runs)
    groups = list(dict.fromkeys(record.group_id for record in records))
    stakes = {group: ratio ** -float(i) for i, group in enumerate(groups)}
    for record in records:
        record.rewards["team"] *= stakes[record.group_id]
    return (
        assemble(records),
        Staked(driver, stakes),
        lambda job: stakes[job.prefix.group] * driver.expected(job.prefix, replace=job.replace),
        {},
    )


def drawn(plan: ReplayPlan, driver: SeededReplayer, seed: int, after: ReplayPlan | None = None) -> Results:
    """The runs of a plan, without files. After another plan, each job goes on where the runs of that plan end."""
    base = plan if after is None else after
    at = {job.key: (number, job.runs) for number, job in enumerate(base.jobs)}
    rewards: list[dict[int, float]] = []
    for job in plan.jobs:
        number, made = at[job.key]
        start = (seed * 1000 + number) * 10_000 + (made if after is not None else 0)
        runs = driver.run_seeds(job.prefix, replace=job.replace, seeds=range(start, start + job.runs))
        rewards.append({i: one.reward for i, one in enumerate(runs) if isinstance(one, Continuation)})
    none = tuple(frozenset[int]() for _ in plan.jobs)
    return Results(tuple(rewards), none, {}, (0,) * len(plan.jobs), tuple({} for _ in plan.jobs))


def loss(plan: ReplayPlan, results: Results, truth: Truth) -> float:
    """Mean squared error of the values."""
    return float(np.mean((results.mean_and_spread()[0] - [truth(job) for job in plan.jobs]) ** 2))


def make(name: str, seed: int) -> World:
    family, _, rest = name.partition(", ")
    if family == "swarm":
        return scripted(rest, seed)
    if family.startswith("stakes"):
        return staked(rest, float(family.removeprefix("stakes ")), seed)
    return micro(name)


def measured(name: str) -> dict[str, Any]:
    """The ratio of a world with its standard error, and the bound."""
    family = name.partition(", ")[0].partition(" ")[0] if ", " in name else "micro"
    repeats, total = REPEATS[family], PILOT + LATER
    even, planned, bound = [], [], []
    for seed in range(repeats):
        traces, driver, truth, _ = make(name, seed)
        decisions = int(np.asarray(traces.graph.action_mask).sum())
        plan = plan_replays(traces, "value", total * decisions, least=total)
        even.append(loss(plan, drawn(plan, driver, seed), truth))
        first = plan_replays(traces, "value", PILOT * decisions, least=PILOT)
        results = drawn(first, driver, seed)
        second = plan_replays(traces, "value", LATER * decisions, seed=1, known=known_from(first, results))
        more = drawn(second, driver, seed, after=first)
        planned.append(loss(*pooled([(first, results), (second, more)]), truth))
        if seed < BOUND_LOGS:
            many = plan_replays(traces, "value", BOUND_RUNS * decisions, least=BOUND_RUNS)
            sigma = drawn(many, driver, repeats + seed).mean_and_spread()[1]
            bound.append(sigma.sum() ** 2 / (decisions * (sigma**2).sum()))
    two, one = np.array(planned), np.array(even)
    ratio = two.mean() / one.mean()
    error = (two - ratio * one).std(ddof=1) / np.sqrt(repeats) / one.mean()
    return {"world": name, "repeats": repeats, "even": one.mean(), "planned": two.mean(), "bound": np.mean(bound),
            "cv": np.sqrt(1 / np.mean(bound) - 1), "ratio": ratio, "stderr": error}  # fmt: skip


def names() -> list[str]:
    several = [f"stakes {ratio:g}, additive" for ratio in STAKES]
    others = [f"stakes {STAKES[-2]:g}, {kind}" for kind in KINDS if kind != "additive"]
    return [*several, *others, *MICRO, *(f"swarm, {kind}" for kind in KINDS)]


def main() -> None:
    stored = {r["world"]: r for r in json.loads(RESULTS.read_text(encoding="utf-8"))} if RESULTS.exists() else {}
    for name in names():
        if name not in stored:
            stored[name] = measured(name)
            print(stored[name], flush=True)
            RESULTS.write_text(json.dumps(list(stored.values()), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
