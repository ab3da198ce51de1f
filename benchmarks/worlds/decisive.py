"""A world in which one visible decision of the lead determines the outcome, among many similar decisions.

Every action shows a bit x in {0, 1}, drawn fairly and independently, as a feature of its event. The outcome of a trace
depends on one of them, the bit of the lead's decision number `decisive`:

    R ~ Bernoulli(bad + (good − bad) x_decisive)

    D_e = (good − bad)(x_e − 1/2)  at the decisive decision,   0 everywhere else

V(G≤t) is therefore the mean (good + bad) / 2 before that decision and E[R | x_decisive] from it on. A critic that gives
equal credit to all decisions of the lead, or to all events with the bit, is wrong in this world.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventGraph, EventType

__all__ = ["DecisiveEpisodes", "DecisiveWorld"]


class DecisiveEpisodes(NamedTuple):
    """A drawn batch of n traces with T events each (E = n T, no padding), and its true values.

    Attributes:
      graph: NumPy arrays; the group of a trace is its task.
      reward: float32 [n].
      dense: float32 [E, 1], the bit of each event.
      increments: float64 [n, T], V(G≤t) − V(G<t) of each event.
      decisive: int, the position of the decisive decision in every trace.
    """

    graph: EventGraph
    reward: np.ndarray
    dense: np.ndarray
    increments: np.ndarray
    decisive: int


@dataclasses.dataclass(frozen=True)
class DecisiveWorld:
    """A lead and its workers; the lead decides before each round, the workers answer in random order.

    A round is one decision of the lead and one message of each worker; the last event is the lead's stop.

    Examples:
      >>> episodes = DecisiveWorld(rounds=3, workers=2, decisive=1).sample(0, 4)
      >>> episodes.increments.shape, episodes.decisive
      ((4, 10), 3)
      >>> sorted(set(abs(episodes.increments[0]).round(2).tolist()))
      [0.0, 0.45]

    Attributes:
      rounds: decisions of the lead before the stop.
      workers: number of workers; each answers once per round.
      decisive: index, from 0, of the lead's decision that determines the outcome.
      good, bad: probability of success where the decisive bit is 1 and 0.
      group_size: traces of a task.

    Raises:
      CreditError: a parameter is out of range; the message names the field.
    """

    rounds: int = 6
    workers: int = 3
    decisive: int = 2
    good: float = 0.95
    bad: float = 0.05
    group_size: int = 8

    def __post_init__(self) -> None:
        def require(holds: bool, field: str, expected: str) -> None:
            if not holds:
                raise CreditError(f"DecisiveWorld.{field} is {getattr(self, field)!r}; expected {expected}")

        for field in ("rounds", "workers", "group_size"):
            require(getattr(self, field) >= 1, field, "1 or more")
        require(0 <= self.decisive < self.rounds, "decisive", f"0 to {self.rounds - 1}, a decision of the lead")
        for field in ("good", "bad"):
            require(0 <= getattr(self, field) <= 1, field, "a probability")

    @property
    def events(self) -> int:
        """T, events of a trace."""
        return self.rounds * (1 + self.workers) + 1

    def sample(self, seed: int, n: int) -> DecisiveEpisodes:
        """Draw n traces; equal seeds draw equal traces.

        Args:
          seed: seed of the random generator.
          n: number of traces.

        Returns:
          `DecisiveEpisodes`.
        """
        rng = np.random.default_rng([seed, self.rounds, self.workers])
        bit = rng.integers(0, 2, (n, self.events))
        at = self.decisive * (1 + self.workers)
        reward = rng.random(n) < self.bad + (self.good - self.bad) * bit[:, at]
        increments = np.zeros((n, self.events))
        increments[:, at] = (self.good - self.bad) * (bit[:, at] - 0.5)
        speaker = np.zeros((n, self.rounds, 1 + self.workers), int)
        turns = np.broadcast_to(np.arange(1, 1 + self.workers), (n, self.rounds, self.workers))
        speaker[:, :, 1:] = rng.permuted(turns, axis=2)
        agent = np.concatenate([speaker.reshape(n, -1), np.zeros((n, 1), int)], axis=1)
        dense = bit.reshape(-1, 1).astype(np.float32)
        return DecisiveEpisodes(self._graph(agent), reward.astype(np.float32), dense, increments, at)

    def _graph(self, agent: np.ndarray) -> EventGraph:
        """The events of the agents given, int [n, T], 0 for the lead; each event causes the next one."""
        n, size = agent.shape
        team = 1 + self.workers
        kind = np.where(agent == 0, int(EventType.ORCHESTRATOR_DECISION), int(EventType.MESSAGE))
        kind[:, -1] = EventType.STOP
        place = np.arange(n * size).reshape(n, size)
        number = np.arange(n * team)
        return EventGraph(
            event_type=kind.ravel().astype(np.int32),
            action_mask=np.ones(n * size, bool),
            event_mask=np.ones(n * size, bool),
            time=np.full(n * size, np.nan, np.float32),
            trace_ids=np.repeat(np.arange(n), size).astype(np.int32),
            agent_ids=(agent + team * np.arange(n)[:, None]).ravel().astype(np.int32),
            turn_ids=place.ravel().astype(np.int32),
            senders=place[:, :-1].ravel().astype(np.int32),
            receivers=place[:, 1:].ravel().astype(np.int32),
            edge_type=np.full(n * (size - 1), int(EdgeType.CAUSAL), np.int32),
            edge_mask=np.ones(n * (size - 1), bool),
            agent_name_ids=(number % team).astype(np.int32),
            agent_role_ids=(number % team > 0).astype(np.int32),
            agent_parent=(number - number % team).astype(np.int32),
            agent_trace=(number // team).astype(np.int32),
            agent_mask=np.ones(n * team, bool),
            group_ids=(np.arange(n) // self.group_size).astype(np.int32),
            trace_mask=np.ones(n, bool),
        )
