"""The exact bias of what is called unbiased, in worlds drawn by seed, with every combination of keys in the log.

A gate, whom nobody trains where the log says so, lets the team act or answers by itself. The team chooses one of three
alternatives; the third ends the trace, after the others it chooses one of two. Every batch is a group of one log.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import credit
from estimators.composition.control import control_advantage

STRUCTURE = ("context", "alternative", "node", "sibling_parent", "propensity", "target_propensity", "trainable")
"""Keys that say what was drawn, by whom, and among what."""

OTHERS = ("anchor", "completion", "block", "stage", "env_step", "tokens", "value", "log_prob", "target_support")
"""Keys that say something else, and may not matter."""

METHODS = ("rloo", "turn_baseline", "reinforce_batch", "moving_average", "discounted_return", "remax", "control")

ABSENT = -1  # a decision that was not reached
Choices = tuple[int, int, int]  # of the gate, of the team, and once more of the team


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

    def gradient(self, trained: slice) -> np.ndarray:
        events = [(end, k) for end in self.reward for k in range(3)[trained] if end[k] != ABSENT]
        return np.sum([self.chance(end) * self.reward[end] * self.score(end, k) for end, k in events], axis=0)


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


def log_of(world: World, batches: Batches, keys: frozenset[str], replayed: bool) -> tuple[Any, np.ndarray, Any, list]:
    """The graph, the reward in double precision, the rows, and of each row its batch, weight and score."""
    columns: dict[str, list[Any]] = {name: [] for name in ("group", "trace", "agent", "turn", "reward")}
    evidence: dict[str, list[Any]] = {name: [] for name in keys}
    facts, rewards = [], []
    told = "node" in keys or (
        "alternative" in keys and not replayed
    )  # whether the log shows which choices are one draw
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
                given = {
                    "context": prefix if k else f"{d}",
                    "alternative": f"{end[k]}",
                    "node": draw[k],
                    "sibling_parent": draw[k - 1] if replayed and k == 2 else None,
                    "propensity": policy[end[k]],
                    "target_propensity": 1 / len(policy),
                    "trainable": float(k > 0),
                    "anchor": f"{end[:k]}",
                    "completion": f"{end[k]}",
                    "block": f"{d % 3}",
                    "stage": k,
                    "env_step": k,
                    "tokens": 1 + end[k],
                    "value": 0.25,
                    "log_prob": float(np.log(policy[end[k]])),
                    "target_support": 1.0,
                }
                for name in keys:
                    evidence[name].append(given[name])
                facts.append((d, weight, world.score(end, k), k))
    graph, _, rows = credit.from_columns(**columns, evidence=evidence)
    reward = np.full(graph.num_traces, np.nan)
    reward[: len(rewards)] = rewards
    return graph, reward, rows, facts


def advantage(name: str, graph: Any, reward: np.ndarray, rows: Any, scores: np.ndarray) -> np.ndarray:
    if name == "control":  # claims that are wrong, and centred, as a part of the score is
        amount = np.zeros(graph.num_events)
        amount[rows.event] = scores @ np.linspace(-1, 2, 9)
        amount *= np.asarray(graph.trained_mask)
        claim = credit.claim(graph, amount, estimand="increment", source="wrong", centred=True, own_outcome=False)
        return np.asarray(control_advantage(graph, reward, [claim], beta=1.0).credit.advantage)
    more = {"greedy_reward": np.full(len(reward), 0.375)} if name == "remax" else {}
    return np.asarray(credit.METHODS[name](graph, reward, **more).advantage)


def bias(name: str, world: World, batches: Batches, keys: frozenset[str], replayed: bool = False) -> float:
    """|E g − ∇J| / |∇J|; methods that see the whole batch get one group each."""
    trained = slice(1 if "trainable" in keys else 0, 3)
    parts = [batches]
    if name in ("reinforce_batch", "moving_average"):
        parts = [Batches(*([column[d]] for column in batches)) for d in range(len(batches.chance))]
    total = np.zeros(9)
    for part in parts:
        graph, reward, rows, facts = log_of(world, part, keys, replayed)
        scores = np.array([score for *_, score, _ in facts])
        found = advantage(name, graph, reward, rows, scores)[rows.event]
        weight = np.array([part.chance[d] * share for d, share, *_ in facts])
        frozen = np.array([k not in range(3)[trained] for *_, k in facts])
        assert not found[frozen].any()
        total += (weight * found) @ scores
    true = world.gradient(trained)
    return float(np.linalg.norm(total - true) / np.linalg.norm(true))


@pytest.fixture(autouse=True)
def x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def combinations(seed: int) -> Iterator[frozenset[str]]:
    """Every combination of the keys of structure, each with others drawn by seed."""
    rng = np.random.default_rng(seed)
    for size in range(len(STRUCTURE) + 1):
        for keys in itertools.combinations(STRUCTURE, size):
            yield frozenset((*keys, *(name for name in OTHERS if rng.random() < 0.5)))


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("alternative", "context", "propensity", "target_propensity"), ("trainable",)])
def test_no_key_makes_leave_one_out_biased(keys: tuple[str, ...]) -> None:
    """Traces that chose alike are no replays, and outcomes of a frozen agent alone are samples, too."""
    world = World.drawn(0)
    for name in ("rloo", "turn_baseline"):
        assert bias(name, world, Batches.independent(world, 2), frozenset(keys)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.study)])
def test_no_combination_of_keys_makes_a_method_biased(seed: int) -> None:
    world = World.drawn(seed)
    batches = Batches.independent(world, 2)
    for keys in combinations(seed):
        for name in METHODS[:2]:
            assert bias(name, world, batches, keys) < 1e-12, (name, keys)
    for keys in list(combinations(seed))[:: 11 + seed]:
        for name in METHODS[2:]:
            assert bias(name, world, batches, keys) < 1e-12, (name, keys)


REPLAYED = [
    frozenset(keys)
    for size in range(1, 5)
    for keys in itertools.combinations(("context", "node", "sibling_parent", "alternative", "propensity"), size)
    if "node" in keys or ("alternative" not in keys and {"context", "sibling_parent"} & set(keys))
]
"""Combinations that show siblings: an alternative without a node says that each trace drew for itself."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.study)])
def test_no_combination_of_keys_that_shows_replays_makes_a_method_biased(seed: int) -> None:
    world = World.drawn(seed)
    batches = Batches.siblings(world, 2)
    for keys in REPLAYED:
        for name in ("rloo", "turn_baseline"):
            assert bias(name, world, batches, keys, replayed=True) < 1e-12, (name, keys)
