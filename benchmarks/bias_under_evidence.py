"""The exact bias of what is called unbiased, in worlds drawn by seed, with keys of evidence in every combination.

    python benchmarks/bias_under_evidence.py [--seed 1000] [--worlds 1] [--every 1]

A gate, whom nobody trains where the log says so, lets the team act or answers by itself. The team chooses one of three
alternatives; the third ends the trace, after the others it chooses one of two. Every batch is a group of one log, with
its chance: the mean gradient is exact. Logs are of independent traces, or of siblings that were continued from each
second choice. Each combination of the keys of `STRUCTURE` is tried, with other keys of the schema drawn by seed.

A line of output is a world, a kind of log and a method: over how many combinations, and the largest
|E g − ∇J| / |∇J|. `--every 8` takes every eighth combination.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

import credit
from credit.methods.running import Request
from estimators.composition.control import control_advantage
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, TRACE_EVIDENCE

STRUCTURE = ("context", "alternative", "node", "sibling_parent", "propensity", "target_propensity", "trainable")
"""Keys that say what was drawn, by whom, and among what."""

OTHERS = tuple(name for name in (*EVENT_EVIDENCE, *TRACE_EVIDENCE) if name not in (*STRUCTURE, "agent_reward"))
"""All other keys but outcomes of agents, which methods refuse: rewards on the way, and what may not matter."""

METHODS = (*(name for name, method in credit.METHODS.items() if method.unbiased), "control")

ABSENT = -1  # a decision that was not reached
Choices = tuple[int, int, int]  # of the gate, of the team, and once more of the team


def reward_on_the_way(choice: int) -> float:
    """The reward at an event with this choice."""
    return 0.0 if choice == ABSENT else (1 - choice) / 8


class World(NamedTuple):
    """Policies and rewards: gate [2], first [3], second [2, 2], reward of each way that a trace can go."""

    gate: np.ndarray
    first: np.ndarray
    second: np.ndarray
    reward: dict[Choices, float]

    @classmethod
    def drawn(cls, seed: int) -> World:
        rng = np.random.default_rng(seed)
        ends = [(0, ABSENT, ABSENT), (1, 2, ABSENT), *((1, a, b) for a in range(2) for b in range(2))]
        chances = (rng.dirichlet(np.ones(2) * 4), rng.dirichlet(np.ones(3) * 2), rng.dirichlet(np.ones(2) * 2, 2))
        return cls(*chances, {end: float(rng.integers(-16, 17)) / 16 for end in ends})

    def chance(self, end: Choices) -> float:
        g, a, b = end
        if a == ABSENT:
            return float(self.gate[g])
        return float(self.gate[g] * self.first[a] * (1 if b == ABSENT else self.second[a, b]))

    def score(self, end: Choices, event: int) -> np.ndarray:
        """∇ log π of a choice, over the logits of the gate, of the first choice, and of the second after each first."""
        out = np.zeros(2 + 3 + 4)
        start, policy = ((0, self.gate), (2, self.first), (5 + 2 * end[1], self.second[min(end[1], 1)]))[event]
        out[start : start + len(policy)] = -policy
        out[start + end[event]] += 1
        return out

    def gradient(self, learned: Sequence[int], on_the_way: bool) -> np.ndarray:
        """∇J over the choices of some numbers; with or without rewards on the way."""
        earned = {end: self.reward[end] + on_the_way * sum(map(reward_on_the_way, end)) for end in self.reward}
        events = [(end, k) for end in self.reward for k in learned if end[k] != ABSENT]
        return np.sum([self.chance(end) * earned[end] * self.score(end, k) for end, k in events], axis=0)


class Batches(NamedTuple):
    """Every batch, a group each: traces as ends with their weights, and what they share."""

    chance: Sequence[float]
    traces: list[list[tuple[Choices, float]]]
    drawn: list[list[tuple[str, ...]]]  # by trace, the name of the draw of each choice

    @classmethod
    def independent(cls, world: World, count: int) -> Batches:
        batches = list(itertools.product(world.reward, repeat=count))
        chance = np.array([np.prod([world.chance(end) for end in batch]) for batch in batches])
        drawn = [[tuple(f"{d}/{i}/{k}" for k in range(3)) for i in range(count)] for d in range(len(batches))]
        return cls(chance, [[(end, 1 / count) for end in batch] for batch in batches], drawn)

    @classmethod
    def siblings(cls, world: World, count: int) -> Batches:
        """Traces of which two continue from each second choice, given what was chosen before it."""
        fans: list[tuple[float, list[Choices]]] = []
        for end in world.reward:
            if end[2] == ABSENT:
                fans.append((world.chance(end), [end]))
        for a, b, c in itertools.product(range(2), repeat=3):
            fans.append((world.chance((1, a, b)) * world.second[a, c], [(1, a, b), (1, a, c)]))
        batches = list(itertools.product(fans, repeat=count))
        chance = np.array([np.prod([p for p, _ in batch]) for batch in batches])
        traces = [[(end, 1 / count / len(ends)) for _, ends in batch for end in ends] for batch in batches]
        drawn = [
            [
                (f"{d}/{i}/0", f"{d}/{i}/1", f"{d}/{i}/2/{j}")
                for i, (_, fan) in enumerate(batch)
                for j in range(len(fan))
            ]
            for d, batch in enumerate(batches)
        ]
        return cls(chance, traces, drawn)


def stated(name: str, end: Choices, k: int) -> Any:
    """What the log states of a choice, or of its trace, by a key of `OTHERS`."""
    if name == "event_reward":
        return reward_on_the_way(end[k])
    if name == "counterfactual_reward":  # known before the choice, as the mean of runs with another is
        return 0.25 + sum(end[:k]) / 8
    if name in TRACE_EVIDENCE:
        return 0.375 if name == "greedy_reward" else 1
    kind = EVENT_EVIDENCE[name].kind
    if name in FLAGS:
        return float(end[k] > 0)
    if name in ("log_prob", "hindsight_log_prob"):
        return -(1 + end[k]) / 4
    return 1 + end[k] if kind == "count" else f"{end[: k + 1]}" if kind == "id" else (1 + end[k]) / 4


def log_of(world: World, batches: Batches, keys: frozenset[str], replayed: bool) -> tuple[Any, np.ndarray, Any, list]:
    """The graph, the reward in double precision, the rows, and of each row its batch, weight, score and number."""
    columns: dict[str, list[Any]] = {name: [] for name in ("group", "trace", "agent", "turn", "reward")}
    evidence: dict[str, list[Any]] = {name: [] for name in keys}
    facts, rewards = [], []
    # Whether the log shows that independent traces chose alike before.
    told = "alternative" in keys and not replayed
    for d, (traces, draws) in enumerate(zip(batches.traces, batches.drawn, strict=True)):
        for i, ((end, weight), draw) in enumerate(zip(traces, draws, strict=True)):
            rewards.append(world.reward[end])
            for k in range(3):
                if end[k] == ABSENT:
                    continue
                policy = (world.gate, world.first, world.second[min(end[1], 1)])[k]
                row = (f"g{d}", f"{d}-{i}", "gate" if k == 0 else "team", k, world.reward[end])
                for name, value in zip(columns, row, strict=True):
                    columns[name].append(value)
                # Situations are met by chance in independent traces; a frozen prefix is one only of its siblings.
                prefix = draw[k - 1] if replayed else f"{d}/{end[:k]}" if told or k == 0 else f"{draw[k]} alone"
                structure = {
                    "context": prefix if k else f"{d}",
                    "alternative": f"{end[k]}",
                    "node": draw[k],
                    "sibling_parent": draw[k - 1] if replayed and k == 2 else None,
                    "propensity": policy[end[k]],
                    "target_propensity": 1 / len(policy),
                    "trainable": float(k > 0),
                }
                for name in keys:
                    evidence[name].append(structure[name] if name in structure else stated(name, end, k))
                facts.append((d, weight, world.score(end, k), k))
    graph, _, rows = credit.from_columns(**columns, evidence=evidence)
    reward = np.full(graph.num_traces, np.nan)
    reward[: len(rewards)] = rewards
    return graph, reward, rows, facts


def advantage(name: str, graph: Any, reward: np.ndarray, rows: Any, scores: np.ndarray) -> np.ndarray:
    """The advantages [E] that a method gives from all that the log has, as `credit.run` passes it."""
    if name == "control":  # claims that are wrong, and centred, as a part of the score is
        amount = np.zeros(graph.num_events)
        amount[rows.event] = scores @ np.linspace(-1, 2, 9)
        amount *= np.asarray(graph.trained_mask)
        claim = credit.claim(graph, amount, estimand="increment", source="wrong", centred=True, own_outcome=False)
        whole = reward.copy()  # its reward holds those on the way
        if rows.event_reward is not None:
            np.add.at(whole, np.asarray(graph.trace_ids)[rows.event], rows.event_reward[rows.event])
        return np.asarray(control_advantage(graph, whole, [claim], beta=1.0).credit.advantage)
    request = Request.of(name)
    arrays = request.arrays(rows.traces, (), {})  # in the precision of the rewards, which a bias of 1e-15 needs
    arrays = {key: x.astype(reward.dtype) if x.dtype.kind == "f" else x for key, x in arrays.items()}
    return np.asarray(request.fn(graph, reward, **arrays).advantage)


def bias(name: str, world: World, batches: Batches, keys: frozenset[str], replayed: bool = False) -> float:
    """|E g − ∇J| / |∇J|; methods that see the whole batch get one group each.

    `c3` pays the choices that have siblings: the gate's, across the batch, and the second of the team.
    """
    keys = keys if name == "control" else keys | set(credit.METHODS[name].needs)
    learned = [k for k in range(1 if "trainable" in keys else 0, 3) if name != "c3" or k != 1]
    parts = [batches]
    if name in ("reinforce_batch", "moving_average"):
        parts = [Batches(*([column[d]] for column in batches)) for d in range(len(batches.chance))]
    total = np.zeros(9)
    for part in parts:
        graph, reward, rows, facts = log_of(world, part, keys, replayed)
        scores = np.array([score for *_, score, _ in facts])
        found = advantage(name, graph, reward, rows, scores)[rows.event]
        weight = np.array([part.chance[d] * share for d, share, *_ in facts])
        outside = np.array([k not in learned for *_, k in facts])
        assert not found[outside].any()
        total += (weight * found) @ scores
    true = world.gradient(learned, "event_reward" in keys)
    return float(np.linalg.norm(total - true) / np.linalg.norm(true))


def combinations(seed: int, shown: Sequence[tuple[str, ...]] | None = None) -> Iterator[frozenset[str]]:
    """Every combination of the keys of structure, or those that are `shown`, each with others drawn by seed."""
    rng = np.random.default_rng(seed)
    every = (keys for size in range(len(STRUCTURE) + 1) for keys in itertools.combinations(STRUCTURE, size))
    for keys in every if shown is None else shown:
        yield frozenset((*keys, *(name for name in OTHERS if rng.random() < 0.3)))


REPLAYED = [
    keys
    for size in range(1, 5)
    for keys in itertools.combinations(("context", "node", "sibling_parent", "alternative", "propensity"), size)
    if {"node", "sibling_parent"} & set(keys) or ("alternative" not in keys and "context" in keys)
]
"""Combinations that show siblings: beside a context, an alternative without a node says that each drew for itself."""

OF_SIBLINGS = ("rloo", "turn_baseline", "c3", "difference_reward", "discounted_return", "remax")
"""Methods whose numbers a sibling leaves unbiased; `c3` needs them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1000, help="of the first world")
    parser.add_argument("--worlds", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take one combination of so many")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    worst = 0.0
    for seed in range(asked.seed, asked.seed + asked.worlds):
        world = World.drawn(seed)
        for replayed in (False, True):
            batches = Batches.siblings(world, 2) if replayed else Batches.independent(world, 2)
            tried = list(combinations(seed, REPLAYED if replayed else None))[:: asked.every]
            for name in OF_SIBLINGS if replayed else (name for name in METHODS if name != "c3"):
                # Each batch is a call of its own there.
                mine = tried[::16] if name in ("reinforce_batch", "moving_average") else tried
                found = [bias(name, world, batches, keys, replayed) for keys in mine]
                worst = max(worst, *found)
                line = {"seed": seed, "log": "siblings" if replayed else "independent", "method": name}
                print(json.dumps(line | {"combinations": len(mine), "largest bias": max(found)}), flush=True)
    print(json.dumps({"worlds": asked.worlds, "largest bias of all": worst}))


if __name__ == "__main__":
    main()
