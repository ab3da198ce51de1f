"""Micro-orchestrations: teams so small that every trace, its probability and the true gradient can be written down.

A `Micro` is a decision tree. At history h (the choices so far) `decide(h)` names who decides, what kind of event it is
and how many choices there are, or None at the end; `outcome(h)` lists the rewards that then follow. The policy is a
softmax with one row of logits for each history, so an unbiased gradient here is one for every policy that ties rows.

    R(τ) = outcome + Σ_e r_e      P(τ) = P(outcome | h_T) Π_e π(a_e | h_e)      J(θ) = Σ_τ P(τ) R(τ)
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from graphs.event_graph import EdgeType, EventType
from graphs.record import Agent, TraceRecord
from graphs.traces import Traces, assemble

__all__ = ["MICRO", "Decision", "Micro", "Trace"]

History = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Decision:
    """Who decides, what kind of event it is, and among how many choices."""

    agent: str
    type: EventType
    choices: int


@dataclasses.dataclass(frozen=True)
class Trace:
    """One possible trace: its choices, the outcome, and the reward at each of its events."""

    choices: History
    luck: float
    reward: float
    steps: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Micro:
    """A team small enough to enumerate.

    Attributes:
      name: of the world.
      decide: the decision at a history, None at the end.
      outcome: pairs (probability, reward) at the end.
      step: reward at the event that completed a history; 0 by default.
    """

    name: str
    decide: Callable[[History], Decision | None]
    outcome: Callable[[History], tuple[tuple[float, float], ...]]
    step: Callable[[History], float] = lambda history: 0.0

    @functools.cached_property
    def states(self) -> dict[History, Decision]:
        """Every history at which somebody decides."""
        found: dict[History, Decision] = {}
        open_: list[History] = [()]
        while open_:
            history = open_.pop(0)
            decision = self.decide(history)
            if decision is not None:
                found[history] = decision
                open_ += [(*history, choice) for choice in range(decision.choices)]
        return found

    @functools.cached_property
    def traces(self) -> tuple[Trace, ...]:
        """Every trace; an outcome left to luck makes two of one sequence of choices."""
        ends = [(*h, c) for h, d in self.states.items() for c in range(d.choices) if (*h, c) not in self.states]
        return tuple(
            Trace(end, luck, reward, tuple(self.step(end[: i + 1]) for i in range(len(end))))
            for end in ends
            for luck, reward in self.outcome(end)
        )

    @functools.cached_property
    def total(self) -> np.ndarray:
        """R(τ) of each trace, float64."""
        return np.array([t.reward + sum(t.steps) for t in self.traces])

    @functools.cached_property
    def logits(self) -> np.ndarray:
        """Uneven logits of the policy, float64 [states, choices]; -inf where there is no such choice."""
        width = max(d.choices for d in self.states.values())
        rows = [
            [math.sin(1.0 + 2.3 * s + 1.7 * c) if c < d.choices else -math.inf for c in range(width)]
            for s, d in enumerate(self.states.values())
        ]
        return np.array(rows)

    @functools.cached_property
    def policy(self) -> np.ndarray:
        """π(a | h), float64 [states, choices]."""
        weight = np.exp(self.logits)
        return weight / weight.sum(1, keepdims=True)

    @functools.cached_property
    def steps(self) -> list[list[tuple[int, int]]]:
        """Of each trace, the pairs (state, choice) along it."""
        number = {history: s for s, history in enumerate(self.states)}
        return [[(number[t.choices[:i]], c) for i, c in enumerate(t.choices)] for t in self.traces]

    def probabilities(self, policy: np.ndarray) -> np.ndarray:
        """P(τ) of each trace under a policy, float64."""
        luck = [t.luck for t in self.traces]
        return np.array(
            [p * math.prod(policy[s, c] for s, c in path) for p, path in zip(luck, self.steps, strict=True)]
        )

    @functools.cached_property
    def scores(self) -> list[np.ndarray]:
        """∇ log π of each decision of each trace: float64 [events, states * choices]."""
        out = []
        for path in self.steps:
            score = np.zeros((len(path), *self.policy.shape))
            for e, (s, c) in enumerate(path):
                score[e, s] = -self.policy[s]
                score[e, s, c] += 1
            out.append(score.reshape(len(path), -1))
        return out

    def gradient(self) -> np.ndarray:
        """∇J as Σ_τ P(τ) R(τ) Σ_e ∇ log π(e), float64 [states * choices]."""
        weight = self.probabilities(self.policy) * self.total
        return np.sum([w * score.sum(0) for w, score in zip(weight, self.scores, strict=True)], axis=0)

    def gradient_by_jax(self) -> np.ndarray:
        """∇J by differentiating the expected reward; call it where 64 bits are enabled."""
        luck = np.array([t.luck for t in self.traces]) * self.total
        there = np.isfinite(self.logits)

        def expected(logits: jax.Array) -> jax.Array:
            log_policy = jax.nn.log_softmax(jnp.where(there, logits, -1e30), axis=1)
            logs = [sum((log_policy[s, c] for s, c in path), start=jnp.zeros(())) for path in self.steps]
            return jnp.sum(jnp.asarray(luck) * jnp.exp(jnp.stack(logs)))

        return np.asarray(jax.grad(expected)(jnp.asarray(np.where(there, self.logits, 0.0)))).ravel()

    @functools.cached_property
    def q(self) -> np.ndarray:
        """Q(h, a): expected reward from the choice on, its own included; 0 where there is no such choice."""
        mass, amount = np.zeros(self.policy.shape), np.zeros(self.policy.shape)
        weights = self.probabilities(self.policy)
        for trace, path, weight in zip(self.traces, self.steps, weights, strict=True):
            for e, (s, c) in enumerate(path):
                mass[s, c] += weight
                amount[s, c] += weight * (trace.reward + sum(trace.steps[e:]))
        return amount / np.where(mass > 0, mass, 1)

    @functools.cached_property
    def v(self) -> np.ndarray:
        """V(h) = Σ_a π(a | h) Q(h, a), float64 [states]."""
        return np.sum(self.policy * self.q, axis=1)

    @functools.cached_property
    def increments(self) -> np.ndarray:
        """Q(h, a) − V(h): what a choice changed in the expected reward, float64 [states, choices]."""
        return np.where(np.isfinite(self.logits), self.q - self.v[:, None], 0.0)

    @functools.cached_property
    def greedy(self) -> float:
        """Expected R of the run in which each choice is the likeliest."""
        best = np.eye(self.policy.shape[1])[np.argmax(self.policy, axis=1)]
        return float(self.probabilities(best) @ self.total)

    def shapley(self) -> dict[str, float]:
        """Shapley values of agents; an agent that is removed takes choice 0 wherever it decides."""
        agents = sorted({d.agent for d in self.states.values()})
        idle = np.eye(self.policy.shape[1])[0]

        def worth(present: frozenset[str]) -> float:
            rows = [self.policy[s] if d.agent in present else idle for s, d in enumerate(self.states.values())]
            return float(self.probabilities(np.array(rows)) @ self.total)

        n, out = len(agents), dict.fromkeys(agents, 0.0)
        for agent in agents:
            others = [a for a in agents if a != agent]
            for size in range(n):
                share = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
                for team in itertools.combinations(others, size):
                    out[agent] += share * (worth(frozenset(team) | {agent}) - worth(frozenset(team)))
        return out

    def batch(self) -> Traces:
        """All traces as if read from a log, one group; only decisions, each caused by the one before it."""
        return assemble([self._record(i) for i in range(len(self.traces))])

    def _record(self, i: int) -> TraceRecord:
        trace, path = self.traces[i], self.steps[i]
        record = TraceRecord(f"{self.name}-{i:04d}", self.name, "micro", format="world")
        record.instances["lead"] = Agent("lead", "lead")
        decisions = list(self.states.values())
        for e, (s, c) in enumerate(path):
            agent = decisions[s].agent
            if agent != "lead":
                record.instances[agent] = Agent(agent, "worker", "lead")
            record.event(
                f"e{e}",
                decisions[s].type,
                agent,
                action=True,
                value=float(self.v[s]),
                propensity=float(self.policy[s, c]),
                event_reward=trace.steps[e],
            )
            if e:
                record.edge(e - 1, e, EdgeType.CAUSAL)
        record.rewards["team"] = trace.reward
        record.evidence["greedy_reward"] = self.greedy
        return record


def _spawn(h: History) -> Decision | None:
    """The lead spawns a second worker or not; each worker then works well or badly; the lead aggregates."""
    team = 1 + h[0] if h else 0
    if not h:
        return Decision("lead", EventType.ORCHESTRATOR_DECISION, 2)
    if len(h) <= team:
        return Decision(f"worker-{len(h)}", EventType.MESSAGE, 2)
    return None


def _delegate(h: History) -> Decision | None:
    """The lead delegates to one of three; that worker messages one of two, or does nothing."""
    if not h:
        return Decision("lead", EventType.ORCHESTRATOR_DECISION, 3)
    return Decision(f"worker-{h[0] + 1}", EventType.MESSAGE, 2) if len(h) == 1 else None


def _stop(h: History) -> Decision | None:
    """Up to three turns; at each but the first the lead may stop (0) or go on (1), which the worker answers."""
    if len(h) == 3 or (h and h[-1] == 0 and len(h) % 2 == 1):
        return None
    return Decision("worker-1", EventType.MESSAGE, 2) if len(h) % 2 else Decision("lead", EventType.STOP, 2)


def _bernoulli(p: float) -> tuple[tuple[float, float], ...]:
    return (p, 1.0), (1 - p, 0.0)


MICRO: dict[str, Micro] = {
    m.name: m
    for m in (
        Micro("spawn-additive", _spawn, lambda h: ((1.0, 1.0 * sum(h[1:]) - 0.25 * h[0]),)),
        Micro("spawn-and", _spawn, lambda h: ((1.0, float(all(h[1:]))),)),
        Micro("delegate-bernoulli", _delegate, lambda h: _bernoulli((0.2, 0.5, 0.7)[h[0]] + 0.2 * h[1])),
        Micro("stop-rewards", _stop, lambda h: ((1.0, float(sum(h))),), lambda h: 0.5 * len(h) - 0.75 * h[-1]),
    )
}
"""Every micro-orchestration by name."""
