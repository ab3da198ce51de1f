"""Worlds of one decision: alternatives under a frozen context, drawn by one policy and judged for another.

`SiblingWorld.sample` draws the logs of many such contexts at once; what each is worth to the target policy is known,
and so is the standard error of the best estimator that knows the mean outcome of every alternative.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np

from graphs.event_graph import Array, EventGraph, EventType

__all__ = [
    "SHIFTS",
    "Shift",
    "SiblingWorld",
    "hidden_favourite_world",
    "lone_messages",
    "overlapping_world",
    "shifted_world",
    "unanswerable_world",
]

Shift = Literal["mild shift", "strong shift", "rare success", "lognormal rewards", "10 alternatives x 100 draws"]
SHIFTS: tuple[Shift, ...] = get_args(Shift)


@dataclasses.dataclass(frozen=True)
class SiblingWorld:
    """One decision among J alternatives with Bernoulli or lognormal outcomes; arrays [J].

    Attributes:
      behaviour: π_b, the probabilities with which alternatives were drawn.
      target: π_e, those of the policy that is judged.
      mean: Q, the mean outcome of each alternative.
      model: what a critic believes of `mean`.
      logged: whether the log has propensities.
      tail: 0 for success or failure; else outcomes are `mean` times a lognormal factor of mean 1 with this σ.
    """

    behaviour: np.ndarray
    target: np.ndarray
    mean: np.ndarray
    model: np.ndarray
    logged: bool = True
    tail: float = 0.0

    @property
    def value(self) -> float:
        """V = Σ_a π_e(a) Q(a)."""
        return float(self.target @ self.mean)

    @property
    def ess_fraction(self) -> float:
        """1 / E[w²], the part of many draws that is effective."""
        drawn = self.behaviour > 0
        return float(1 / np.sum(self.target[drawn] ** 2 / self.behaviour[drawn]))

    def oracle_stderr(self, draws: int) -> float:
        """Standard error of the doubly robust estimator whose model is Q: no regular estimator has a smaller one."""
        noise = self.mean * (1 - self.mean) if self.tail == 0 else self.mean**2 * np.expm1(self.tail**2)
        return float(np.sqrt(np.sum(self.target**2 / self.behaviour * noise) / draws))

    def sample(
        self, rng: np.random.Generator, contexts: int, draws: int, critic: bool = False
    ) -> tuple[EventGraph, np.ndarray, dict[str, np.ndarray]]:
        """Draw `contexts` contexts of `draws` traces of one event each: graph, reward, evidence by name.

        With `critic` the evidence holds `q_value` and `target_value`, too.
        """
        n = contexts * draws
        choice = rng.choice(len(self.behaviour), n, p=self.behaviour)
        if self.tail > 0:
            reward = self.mean[choice] * np.exp(self.tail * rng.normal(size=n) - self.tail**2 / 2)
        else:
            reward = rng.random(n) < self.mean[choice]
        context = np.repeat(np.arange(contexts, dtype=np.int32), draws)
        _, alternative = np.unique(context * len(self.behaviour) + choice, return_inverse=True)
        evidence = {
            "context": context,
            "alternative": alternative.astype(np.int32),
            "propensity": (self.behaviour[choice] if self.logged else np.full(n, np.nan)).astype(np.float32),
            "target_propensity": self.target[choice].astype(np.float32),
        }
        if critic:
            evidence["q_value"] = self.model[choice].astype(np.float32)
            evidence["target_value"] = np.full(n, self.target @ self.model, np.float32)
        return lone_messages(context), reward.astype(np.float32), evidence


def lone_messages(group_ids: Array) -> EventGraph:
    """Traces of one message each, by an agent of its own: the form in which siblings of a decision are logged.

    Args:
      group_ids: int32 [T], the group of each trace; traced by JAX or not.

    Returns:
      The graph of T traces, T events and no edge.
    """
    n = len(group_ids)
    place, none = np.arange(n, dtype=np.int32), np.zeros(0, np.int32)
    return EventGraph(
        event_type=np.full(n, int(EventType.MESSAGE), np.int32),
        action_mask=np.ones(n, bool),
        event_mask=np.ones(n, bool),
        time=np.full(n, np.nan, np.float32),
        trace_ids=place,
        agent_ids=place,
        turn_ids=place,
        senders=none,
        receivers=none,
        edge_type=none,
        edge_mask=np.zeros(0, bool),
        agent_name_ids=np.zeros(n, np.int32),
        agent_role_ids=np.zeros(n, np.int32),
        agent_parent=place,
        agent_trace=place,
        agent_mask=np.ones(n, bool),
        group_ids=group_ids,
        trace_mask=np.ones(n, bool),
    )


def overlapping_world(seed: int) -> SiblingWorld:
    """A world with overlap: 4 to 10 alternatives, each drawn in 3 % or more; a quarter of the draws is effective."""
    rng = np.random.default_rng(seed)
    while True:
        world = _world(rng, int(rng.integers(4, 11)))
        if world.behaviour.min() >= 0.03 and world.ess_fraction >= 0.25:
            return world


def shifted_world(kind: Shift, seed: int) -> SiblingWorld:
    """A world of six alternatives, or ten, whose behaviour and target policies differ by log-normal factors.

    The factors have σ = 0.4 ("mild shift"), 1.2 ("strong shift"), 0.5 ("rare success", of mean 2 % under π_e, and
    "lognormal rewards", with σ = 1) and 0.7 ("10 alternatives x 100 draws").
    """
    rng = np.random.default_rng(seed)
    spread = dict(zip(SHIFTS, (0.4, 1.2, 0.5, 0.5, 0.7), strict=True))[kind]
    n = 10 if kind == SHIFTS[4] else 6
    behaviour = np.exp(0.4 * rng.normal(size=n))
    target = behaviour * np.exp(spread * rng.normal(size=n))
    behaviour, target = behaviour / behaviour.sum(), target / target.sum()
    mean = rng.uniform(0.1, 0.9, n)
    if kind == "rare success":
        mean = np.exp(0.5 * rng.normal(size=n))
        mean *= 0.02 / (target @ mean)
    return SiblingWorld(behaviour, target, mean, mean, tail=1.0 if kind == "lognormal rewards" else 0.0)


def hidden_favourite_world(seed: int, chance: float = 0.0005) -> SiblingWorld:
    """Five alternatives; the target's favourite (π_e = 0.5) is best, and π_b draws it with probability `chance`."""
    rng = np.random.default_rng(seed)
    others = rng.dirichlet(np.full(4, 20.0))
    behaviour, target = np.append(others * (1 - chance), chance), np.append(others / 2, 0.5)
    mean = np.append(rng.uniform(0.1, 0.3, 4), 0.9)
    return SiblingWorld(behaviour, target, mean, mean)


def unanswerable_world(seed: int) -> SiblingWorld:
    """A world whose logs do not identify an answer.

    By seed modulo 4: an alternative that π_e wants is never drawn; half of them are never drawn; π_b always draws the
    same; the log has no propensities.
    """
    rng = np.random.default_rng(seed)
    world, kind = overlapping_world(seed), seed % 4
    behaviour = world.behaviour.copy()
    if kind == 0:
        behaviour[np.argmax(world.target)] = 0
    elif kind == 1:
        behaviour[np.argsort(-world.target)[: len(behaviour) // 2]] = 0
    elif kind == 2:
        behaviour = np.eye(len(behaviour))[rng.integers(len(behaviour))]
    return dataclasses.replace(world, behaviour=behaviour / behaviour.sum(), logged=kind != 3)


def _world(rng: np.random.Generator, alternatives: int) -> SiblingWorld:
    def policy(spread: float) -> np.ndarray:
        weights = np.exp(spread * rng.normal(size=alternatives))
        result: np.ndarray = weights / weights.sum()
        return result

    mean = rng.uniform(0.1, 0.9, alternatives)
    model = np.clip(mean + 0.15 * rng.normal(size=alternatives), 0, 1)
    return SiblingWorld(policy(0.6), policy(0.9), mean, model)
