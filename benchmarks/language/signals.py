"""The advantages that a language team is trained with: methods of rewards, C3 of exact re-runs, and `control`.

Re-runs repeat a trace's tokens up to a decision, draw that decision anew and go on to the end. `RERUNS` of the six
decisions of a trace are drawn by lot, whether they are reached or not; those that are reached are re-run, once each.

Legend: n traces, D decisions of a trace, E = n D events, m = n `RERUNS` runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.questions import WORKERS
from benchmarks.language.team import DECISIONS, Said, Team, play
from credit.bench.training.online_coefficients import fresh_coefficients, learn_coefficients, solved_coefficients
from credit.bench.training.reruns import sibling_c3
from credit.bench.training.training_signals import centred_claim
from credit.methods.registry import METHODS
from estimators.base import Credit
from estimators.composition.control import control_advantage
from graphs.errors import CreditError
from graphs.event_graph import EventGraph, EventType

__all__ = ["RERUNS", "SIGNALS", "LanguageRollout", "Reruns", "Weighed", "as_graph", "rerun", "weigh"]

RERUNS = 3
"""Decisions of a trace that the lot takes."""

SIGNALS = ("rloo", "grpo", "dr_mas", "turn_baseline", "c3", "control_c3", "zero")


class LanguageRollout(NamedTuple):
    """Traces of one step as the batch that methods read.

    Attributes:
      said: what was written.
      graph: events of decisions that were reached, in order; padding behind them. No edges.
      order: int32 [E], the (trace, decision) of each event, numbered trace D + decision.
    """

    said: Said
    graph: EventGraph
    order: jax.Array

    @property
    def reward(self) -> jax.Array:
        """float32 [n]."""
        return self.said.reward

    @property
    def taken(self) -> jax.Array:
        """bool [n, D]."""
        return self.said.taken

    def of_events(self, table: jax.Array) -> jax.Array:
        """Numbers of (trace, decision), [n, D], as numbers of events, [E]."""
        return table.ravel()[self.order]

    def of_decisions(self, events: jax.Array) -> jax.Array:
        """Numbers of events, [E], as numbers of (trace, decision), [n, D]; 0 where a decision was not reached."""
        table = jnp.zeros(self.taken.size, events.dtype).at[self.order].set(events).reshape(self.taken.shape)
        return jnp.where(self.taken, table, 0)


class Reruns(NamedTuple):
    """Runs from decisions, `RERUNS` a trace, one trace's after another's.

    Attributes:
      said: what was written in the m runs, the repeated part included.
      decision: int32 [m], the first decision that was drawn anew.
      where: bool [m], whether the trace reached that decision; the others are no runs.
      cost: int32 [], events of the runs, without the repeated ones.
    """

    said: Said
    decision: jax.Array
    where: jax.Array
    cost: jax.Array


class Weighed(NamedTuple):
    """The advantages that a signal gives a rollout.

    Attributes:
      own: float32 [n, D], the advantage of each decision; 0 where it has none.
      reruns: runs whose decisions are trained on, too, or None.
      other: float32 [m], the advantages of those.
      cost: float32 [], events of re-runs.
      state: of the signal.
    """

    own: jax.Array
    reruns: Reruns | None
    other: jax.Array
    cost: jax.Array
    state: Any


def as_graph(said: Any, group_size: int, workers: int = len(WORKERS), first: int = 1) -> LanguageRollout:
    """Traces as a batch; groups of `group_size` traces stand one after another.

    Args:
      said: n traces: `Said`, or others with `call`, `taken` and `reward`.
      group_size: traces of a group.
      workers: how many there are.
      first: what stands in `call` for the first of them; the number behind the last is a stop.
    """
    n, team = len(said.reward), 1 + workers
    called = said.call - first + 1
    real = said.taken.ravel()
    order = jnp.argsort(~real, stable=True)
    real, trace = real[order], order // said.taken.shape[1]
    stops = jnp.where(called == team, int(EventType.STOP), int(EventType.ORCHESTRATOR_DECISION))
    kinds = jnp.stack([stops, jnp.full_like(stops, int(EventType.MESSAGE))], axis=2)
    agent = jnp.stack([jnp.zeros_like(called), called % team], axis=2)
    number, none = np.arange(n * team, dtype=np.int32), np.zeros(0, np.int32)

    def fit(values: jax.Array) -> jax.Array:
        return jnp.where(real, values, 0).astype(jnp.int32)

    graph = EventGraph(
        event_type=fit(kinds.ravel()[order]),
        action_mask=real,
        event_mask=real,
        time=jnp.full(real.shape, jnp.nan, jnp.float32),
        trace_ids=fit(trace),
        agent_ids=fit(trace * team + agent.ravel()[order]),
        turn_ids=fit(jnp.arange(len(real))),
        senders=none,
        receivers=none,
        edge_type=none,
        edge_mask=np.zeros(0, bool),
        agent_name_ids=number % team,
        agent_role_ids=number % team,
        agent_parent=number - number % team,
        agent_trace=number // team,
        agent_mask=np.ones(n * team, bool),
        group_ids=np.arange(n, dtype=np.int32) // group_size,
        trace_mask=np.ones(n, bool),
    )
    return LanguageRollout(said, graph, order)


def rerun(team: Team, said: Said, key: jax.Array) -> Reruns:
    """Draw decisions of each trace by lot, and run the team anew from those that it reached.

    Args:
      team: the parameters that the traces were sampled with.
      said: n traces.
      key: of the lot and of what is sampled.
    """
    n = len(said.reward)
    lot, runs = jax.random.split(key)
    decision = jnp.argsort(jax.random.uniform(lot, (n, DECISIONS)), axis=1)[:, :RERUNS].ravel()
    row = jnp.repeat(jnp.arange(n), RERUNS)
    where = said.taken[row, decision]
    again = play(team, said.question[row], runs, Said(*(x[row] for x in said)), decision)
    later = jnp.arange(DECISIONS)[None] >= decision[:, None]
    return Reruns(again, decision, where, jnp.sum(where[:, None] & later & again.taken))


def weigh(signal: str, rollout: LanguageRollout, state: Any, runs: Callable[[], Reruns]) -> Weighed:
    """The advantages of a signal.

    Args:
      signal: one of `SIGNALS`.
      rollout: the traces.
      state: None at first; what the last step gave afterwards.
      runs: makes re-runs; called by the signals that pay for them.

    Raises:
      CreditError: there is no such signal.
    """
    if signal not in SIGNALS:
        raise CreditError(f"no signal {signal!r}; expected one of {', '.join(SIGNALS)}")
    nothing = jnp.zeros(0)
    if signal == "zero":
        return Weighed(jnp.zeros(rollout.taken.shape), None, nothing, jnp.zeros(()), state)
    if signal not in ("c3", "control_c3"):
        result = METHODS[signal](rollout.graph, rollout.reward)
        return Weighed(rollout.of_decisions(_advantage(result)), None, nothing, jnp.zeros(()), state)
    rerun = runs()
    own, other = _contrasts(rollout, rerun)
    cost = rerun.cost.astype(jnp.float32)
    table, where = (_at_decisions(rollout, rerun, values) for values in (own, rerun.where))
    if signal == "c3":
        return Weighed(table, rerun, other, cost, state)
    claim = centred_claim(rollout.graph, rollout.of_events(table), "c3", rollout.of_events(where), own_outcome=True)
    sums = fresh_coefficients(1) if state is None else state
    composed = control_advantage(rollout.graph, rollout.reward, [claim], beta=solved_coefficients(sums))
    own = rollout.of_decisions(_advantage(composed.credit))
    return Weighed(own, None, nothing, cost, learn_coefficients(sums, rollout, composed))


def _contrasts(rollout: LanguageRollout, runs: Reruns) -> tuple[jax.Array, jax.Array]:
    """C3 of the decision of the trace, and of that of the run: float32 [m] each; 0 where there was no run."""
    pair = jnp.stack([jnp.repeat(rollout.reward, RERUNS), runs.said.reward], axis=1)
    outcome = jnp.where(runs.where[:, None], pair, jnp.nan).reshape(-1, RERUNS, 2)
    advantage = _advantage(sibling_c3(jnp.asarray(rollout.graph.group_ids), outcome)).reshape(-1, 2)
    return advantage[:, 0], advantage[:, 1]


def _at_decisions(rollout: LanguageRollout, runs: Reruns, values: jax.Array) -> jax.Array:
    """Numbers of runs, [m], at the decisions of their traces: [n, D], 0 at the others."""
    row = jnp.repeat(jnp.arange(len(rollout.reward)), RERUNS)
    return jnp.zeros(rollout.taken.shape, values.dtype).at[row, runs.decision].set(values)


def _advantage(credit: Credit) -> jax.Array:
    return jnp.where(credit.valid, credit.advantage, 0)
