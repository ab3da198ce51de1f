"""Micro-orchestrations: teams so small that every trace, its probability and the true gradient can be computed.

A `Micro` is a decision tree. At history h (the choices so far) `decide(h)` is the next `Decision`, or None at the end;
`outcome(h)` lists the possible rewards with their probabilities. The policy has one row of logits for each history, so
a gradient estimate that is unbiased here is unbiased for every policy that ties rows. The worlds are in
`graphs.worlds.micro.examples`.

    R(τ) = outcome + Σ_e r_e        P(τ) = P(outcome | h_T) Π_e π(a_e | h_e)        J(θ) = Σ_τ P(τ) R(τ)

Legend: N traces, M decisions of the longest one, S states (histories at which an agent decides), C choices.
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

from graphs.event_graph import Array, EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

__all__ = ["Decision", "Micro"]

History = tuple[int, ...]
"""The choices made so far, in order."""

Lottery = tuple[tuple[float, float], ...]
"""Pairs (probability, reward)."""


@dataclasses.dataclass(frozen=True)
class Decision:
    """Who decides, what kind of event it is, and among how many choices; choice 0 is the idle one.

    `sees` is what the decider observes of the history: decisions of one agent that see the same share an anchor.
    `stage` is the round of the execution. `role` is that of the agent, which methods by role compare; "" for its name.
    """

    agent: str
    type: EventType
    choices: int
    sees: History = ()
    stage: int = 0
    role: str = ""


@dataclasses.dataclass(frozen=True)
class Micro:
    """A team small enough to enumerate.

    Attributes:
      name: of the world.
      about: what happens in it, in one sentence.
      decide: the decision at a history, None at the end.
      outcome: the outcome's lottery at the end.
      step: reward at the event that completed a history; None where there are no such rewards.

    Example: a lead may ask a worker, whose answer has heavy tails. In `mine.py`, `credit bench bias --world mine:heavy`
    takes it.
      Examples:
        >>> def decide(history):
        ...     if history == ():
        ...         return Decision("lead", EventType.ORCHESTRATOR_DECISION, 2)
        ...     return Decision("worker", EventType.MESSAGE, 2) if history == (1,) else None
        >>> def outcome(history):
        ...     return ((0.9, 1.0), (0.1, -20.0)) if history == (1, 1) else ((1.0, float(sum(history)) / 4),)
        >>> heavy = Micro("heavy", "A lead may ask a worker.", decide, outcome)
        >>> len(heavy.states), len(heavy.ends)
        (2, 4)
    """

    name: str
    about: str
    decide: Callable[[History], Decision | None]
    outcome: Callable[[History], Lottery]
    step: Callable[[History], float] | None = None

    @functools.cached_property
    def states(self) -> dict[History, Decision]:
        """All histories at which an agent decides, shorter ones first."""
        by_history: dict[History, Decision] = {}
        open_: list[History] = [()]
        while open_:
            history = open_.pop(0)
            decision = self.decide(history)
            if decision is not None:
                by_history[history] = decision
                open_ += [(*history, choice) for choice in range(decision.choices)]
        return by_history

    @functools.cached_property
    def ends(self) -> tuple[tuple[History, float, float], ...]:
        """Every trace: its choices, its outcome's probability given them, and its outcome."""
        last = [(*h, c) for h, d in self.states.items() for c in range(d.choices) if (*h, c) not in self.states]
        return tuple((end, luck, reward) for end in last for luck, reward in self.outcome(end))

    def earned(self, history: History) -> float:
        """Reward at the event that completed a history."""
        return 0.0 if self.step is None else self.step(history)

    @functools.cached_property
    def choice(self) -> np.ndarray:
        """The choices of each trace, int [N, M]; -1 behind its last."""
        longest = max(len(end) for end, _, _ in self.ends)
        return np.array([[*end, *[-1] * (longest - len(end))] for end, _, _ in self.ends])

    @functools.cached_property
    def state(self) -> np.ndarray:
        """The state in which each choice was made, int [N, M]; -1 behind the last."""
        number = {history: s for s, history in enumerate(self.states)}
        return np.array([[number[end[:i]] if i < len(end) else -1 for i in range(len(row))]
                         for (end, _, _), row in zip(self.ends, self.choice, strict=True)])  # fmt: skip

    @functools.cached_property
    def outcomes(self) -> np.ndarray:
        """The outcome of each trace, float64 [N]."""
        return np.array([reward for _, _, reward in self.ends])

    @functools.cached_property
    def step_rewards(self) -> np.ndarray:
        """The reward at each event, float64 [N, M]."""
        return np.array([[self.earned(end[: i + 1]) if i < len(end) else 0.0 for i in range(self.choice.shape[1])]
                         for end, _, _ in self.ends])  # fmt: skip

    @functools.cached_property
    def total(self) -> np.ndarray:
        """R(τ) of each trace, float64 [N]."""
        result: np.ndarray = self.outcomes + self.step_rewards.sum(1)
        return result

    @functools.cached_property
    def logits(self) -> np.ndarray:
        """Logits of the policy, float64 [S, C]; -inf where there is no such choice."""
        width = max(d.choices for d in self.states.values())
        rows = [  # uneven in every state, and such that greedy runs earn something
            [math.sin(1.0 + 2.9 * s + 0.9 * c) if c < d.choices else -math.inf for c in range(width)]
            for s, d in enumerate(self.states.values())
        ]
        return np.array(rows)

    @functools.cached_property
    def policy(self) -> np.ndarray:
        """π(a | h), float64 [S, C]."""
        weight = np.exp(self.logits)
        result: np.ndarray = weight / weight.sum(1, keepdims=True)
        return result

    def probabilities(self, policy: np.ndarray | None = None) -> np.ndarray:
        """P(τ) of each trace, float64 [N], under this policy or another one [S, C]."""
        chosen = (self.policy if policy is None else policy)[self.state, self.choice]
        result: np.ndarray = np.array([luck for _, luck, _ in self.ends]) * np.prod(
            np.where(self.state < 0, 1, chosen), axis=1
        )
        return result

    def mean(self, logits: Array, values: Array) -> jax.Array:
        """Σ_τ P(τ) x_τ for numbers x [N], differentiable in the logits [S, C]; for float64 enable 64 bits."""
        possible_mask = np.isfinite(self.logits)
        log_policy = jax.nn.log_softmax(jnp.where(possible_mask, logits, -1e30), axis=1)
        logs = jnp.sum(jnp.where(self.state < 0, 0.0, log_policy[self.state, self.choice]), axis=1)
        return jnp.sum(np.array([luck for _, luck, _ in self.ends]) * jnp.asarray(values) * jnp.exp(logs))

    def gradient(self, values: np.ndarray | None = None) -> np.ndarray:
        """∇ Σ_τ P(τ) x_τ = Σ_τ P(τ) x_τ Σ_e ∇ log π(e), float64 [S, C]; x is R by default, which gives ∇J."""
        weight = self.probabilities() * (self.total if values is None else values)
        pushed = np.zeros(self.policy.shape)
        where = self.state >= 0
        np.add.at(pushed, (self.state[where], self.choice[where]), np.broadcast_to(weight[:, None], where.shape)[where])
        return self.through_scores(pushed)

    def through_scores(self, pushed: np.ndarray) -> np.ndarray:
        """Σ_a x(h, a) ∇ log π(a | h) for numbers x [..., S, C]: x(h, a) − π(a | h) Σ_a' x(h, a')."""
        result: np.ndarray = pushed - self.policy * pushed.sum(-1, keepdims=True)
        return result

    @functools.cached_property
    def q(self) -> np.ndarray:
        """Q(h, a): expected reward from the choice on, its own included, float64 [S, C]; 0 where no such choice is."""
        mass, amount = np.zeros(self.policy.shape), np.zeros(self.policy.shape)
        to_go = self.outcomes[:, None] + np.cumsum(self.step_rewards[:, ::-1], axis=1)[:, ::-1]
        where = self.state >= 0
        at = self.state[where], self.choice[where]
        weight = np.broadcast_to(self.probabilities()[:, None], where.shape)
        np.add.at(mass, at, weight[where])
        np.add.at(amount, at, (weight * to_go)[where])
        return amount / np.where(mass > 0, mass, 1)

    @functools.cached_property
    def v(self) -> np.ndarray:
        """V(h) = Σ_a π(a | h) Q(h, a), float64 [S]."""
        result: np.ndarray = np.sum(self.policy * self.q, axis=1)
        return result

    @functools.cached_property
    def increments(self) -> np.ndarray:
        """D(h, a) = Q(h, a) − V(h), what a choice changed in the expected reward: float64 [S, C]."""
        return np.where(np.isfinite(self.logits), self.q - self.v[:, None], 0.0)

    @functools.cached_property
    def anchors(self) -> np.ndarray:
        """An id for each pair of an agent and what it sees, int [S]."""
        seen: dict[tuple[str, History], int] = {}
        return np.array([seen.setdefault((d.agent, d.sees), len(seen)) for d in self.states.values()])

    def rest(self, history: History) -> Lottery:
        """The lottery of R if the team goes on from a history by its policy; a reward stands once."""
        follows = np.array([end[: len(history)] == history for end, _, _ in self.ends])
        return self._prizes(np.where(follows, self.probabilities(), 0.0))

    def without(self, agent: str) -> Lottery:
        """The lottery of R if an agent takes choice 0 wherever it decides; a reward stands once."""
        return self._prizes(self._chances(frozenset(self.agents) - {agent}))

    def _prizes(self, chance: np.ndarray) -> Lottery:
        """The lottery of R over the traces with these chances, which may sum to less than 1."""
        prizes: dict[float, float] = {}
        for i in np.flatnonzero(chance > 0):
            reward = round(float(self.total[i]), 9)
            prizes[reward] = prizes.get(reward, 0.0) + float(chance[i])
        mass = sum(prizes.values())
        return tuple((p / mass, reward) for reward, p in prizes.items())

    def greedy(self) -> Lottery:
        """The lottery of R of the run in which each choice is the likeliest."""
        return self.ended(self._follow((), lambda history: int(np.argmax(self.logits[self._number(history)]))))

    def frozen(self, trace: int, at: int) -> Lottery:
        """The lottery of R if choice 0 replaces decision `at` and the later choices stay.

        Each agent repeats its later choices in their order; one that has to decide more often than it did is idle.
        """
        end = self.ends[trace][0]
        later: dict[str, list[int]] = {}
        for i in range(at + 1, len(end)):
            later.setdefault(self.states[end[:i]].agent, []).append(end[i])

        def again(history: History) -> int:
            decision = self.states[history]
            kept = later.get(decision.agent, [])
            return min(kept.pop(0), decision.choices - 1) if kept else 0

        return self.ended(self._follow((*end[:at], 0), again))

    def ended(self, end: History) -> Lottery:
        """The lottery of R once every choice has been made."""
        steps = sum(self.earned(end[: i + 1]) for i in range(len(end)))
        return tuple((p, reward + steps) for p, reward in self.outcome(end))

    def _follow(self, history: History, choose: Callable[[History], int]) -> History:
        while history in self.states:
            history = (*history, choose(history))
        return history

    def _number(self, history: History) -> int:
        return list(self.states).index(history)

    @functools.cached_property
    def agents(self) -> tuple[str, ...]:
        """Every agent that may decide, by name, in the order of first decisions."""
        return tuple(dict.fromkeys(d.agent for d in self.states.values()))

    def worth(self, present: frozenset[str]) -> float:
        """Expected R of a coalition of agents; one that is absent takes choice 0 wherever it decides."""
        return float(self._chances(present) @ self.total)

    def _chances(self, present: frozenset[str]) -> np.ndarray:
        """The probability of each trace of a coalition: float64 [N]."""
        idle = np.eye(self.policy.shape[1])[0]
        rows = [self.policy[s] if d.agent in present else idle for s, d in enumerate(self.states.values())]
        return self.probabilities(np.array(rows))

    def shapley(self) -> dict[str, float]:
        """Shapley values of the agents in the game `worth`, exact: they sum to J minus the worth of the empty team."""
        n, out = len(self.agents), dict.fromkeys(self.agents, 0.0)
        for agent in self.agents:
            others = [a for a in self.agents if a != agent]
            for size in range(n):
                share = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
                for team in itertools.combinations(others, size):
                    out[agent] += share * (self.worth(frozenset({*team, agent})) - self.worth(frozenset(team)))
        return out

    @functools.cached_property
    def roles(self) -> tuple[str, ...]:
        """The roles of its agents, in the order of `agents`; methods by role compare agents of one role."""
        of: dict[str, str] = {}
        for decision in self.states.values():
            of.setdefault(decision.agent, decision.role or decision.agent)
        return tuple(of[agent] for agent in self.agents)

    def batch(self) -> Traces:
        """All traces as if read from a log, one group: decisions only, each caused by the one before it."""
        return assemble([self._record(i) for i in range(len(self.ends))])

    def _record(self, i: int) -> TraceRecord:
        record = TraceRecord(f"{self.name}-{i:04d}", self.name, "micro", format="world")
        for position, (s, c) in enumerate(zip(self.state[i], self.choice[i], strict=True)):
            if s < 0:
                break
            decision = list(self.states.values())[s]
            lead = next(iter(record.instances), "")  # the first to act starts the others
            role = self.roles[self.agents.index(decision.agent)]
            record.instances.setdefault(decision.agent, Agent(decision.agent, role, lead))
            record.event(
                f"e{position}",
                decision.type,
                decision.agent,
                action=True,
                value=float(self.v[s]),
                q_value=float(self.q[s, c]),
                propensity=float(self.policy[s, c]),
                stage=decision.stage,
                event_reward=float(self.step_rewards[i, position]),
            )
            if position:
                record.edge(position - 1, position, EdgeType.CAUSAL)
        record.rewards["team"] = float(self.outcomes[i])
        return record
