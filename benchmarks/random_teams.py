"""Small random teams whose every sequence of choices can be enumerated, for benchmarks of the ledger."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

import credit
from graphs.event_graph import EventGraph, EventType

SIDES = 2


class Team:
    """A random team: the lead delegates, two workers message, the lead closes; R is Bernoulli of a random table."""

    kinds = (EventType.ORCHESTRATOR_DECISION, EventType.MESSAGE, EventType.MESSAGE, EventType.AGGREGATE)
    agents = (0, 1, 2, 0)

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.steps = len(self.kinds)
        self.choices = np.indices((SIDES,) * self.steps).reshape(self.steps, -1).T
        self.success = rng.beta(0.6, 0.6, (SIDES,) * self.steps)
        self.policy = [rng.dirichlet([3.0] * SIDES, (SIDES,) * t) for t in range(self.steps)]
        self.chance = np.ones(len(self.choices))
        for t in range(self.steps):
            self.chance *= self.policy[t][tuple(self.choices[:, : t + 1].T)]
        self.q = [np.zeros(0)] * self.steps
        value = self.success
        for t in reversed(range(self.steps)):
            self.q[t] = value
            value = (self.policy[t] * value).sum(axis=-1)
        self.start = float(value)

    def increments(self, noise: list[float], rng: np.random.Generator) -> np.ndarray:
        """Centred increments from action values with errors of the given sd for each step: [choices, steps]."""
        columns = []
        for t in range(self.steps):
            q = self.q[t] + noise[t] * rng.normal(size=self.q[t].shape)
            centred = q - (self.policy[t] * q).sum(axis=-1, keepdims=True)
            columns.append(centred[tuple(self.choices[:, : t + 1].T)])
        return np.stack(columns, axis=1)

    def scores(self) -> np.ndarray:
        """Gradient of log π of each step by its own logits: [choices, steps, parameters]."""
        sizes = [self.policy[t].size for t in range(self.steps)]
        out = np.zeros((len(self.choices), self.steps, sum(sizes)))
        for t in range(self.steps):
            for i, c in enumerate(self.choices):
                block = np.zeros(self.policy[t].shape)
                block[tuple(c[:t])] = -self.policy[t][tuple(c[:t])]
                block[tuple(c[: t + 1])] += 1
                out[i, t, sum(sizes[:t]) : sum(sizes[: t + 1])] = block.ravel()
        return out

    def graph(self, traces: int, group: int) -> EventGraph:
        trace = np.repeat(np.arange(traces), self.steps)
        graph, _, _ = credit.from_columns(
            group=trace // group,
            trace=trace,
            agent=np.tile(self.agents, traces),
            reward=np.zeros(len(trace)),
            events=traces * self.steps,
            traces=traces,
            agents=traces * 3,
        )
        kinds = np.tile(np.array(self.kinds, np.int32), traces)
        return dataclasses.replace(graph, event_type=jnp.asarray(kinds))
