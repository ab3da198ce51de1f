"""The advantages that a language team is trained with: methods of rewards, C3 of exact re-runs, `control`, a posterior.

Re-runs repeat a trace's tokens up to a decision, draw that decision anew and go on to the end. `RERUNS` of the D
decisions of a trace are drawn by lot, whether they are reached or not; those that are reached are re-run, once each.

The features of `posterior` are hashed texts: of the lead the part and the worker that it calls, of a worker the prompt,
the place and the token, each less its probability. Lead and workers are two blocks.

Legend: n traces, D decisions of a trace, E = n D events, m = n `RERUNS` runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.questions import ANSWER, END, PAD, STOP, WORKERS, facts
from benchmarks.language.team import Said, Team, play
from credit.bench.training.online_coefficients import fresh_coefficients, learn_coefficients, solved_coefficients
from credit.bench.training.reruns import sibling_c3
from credit.bench.training.training_signals import centred_claim
from credit.methods.registry import METHODS
from estimators.base import Credit
from estimators.composition.control import control_advantage
from estimators.critic.repaid_posterior import fresh_posterior, posterior_advantage
from graphs.errors import CreditError
from graphs.event_graph import EventGraph, EventType

__all__ = [
    "RERUNS", "SIGNALS", "LanguageRollout", "Reruns", "Weighed", "as_graph", "fresh_state", "rerun", "weigh",
]  # fmt: skip

RERUNS = 3
"""Decisions of a trace that the lot takes."""

SIGNALS = ("rloo", "grpo", "dr_mas", "turn_baseline", "c3", "control_c3", "posterior", "zero")

LEAD_FEATURES, WORKER_FEATURES = 64, 256
"""Numbers that texts are hashed to."""


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


def as_graph(said: Said, group_size: int) -> LanguageRollout:
    """Traces as a batch; groups of `group_size` traces stand one after another.

    Args:
      said: n traces.
      group_size: traces of a group.
    """
    n, team = len(said.reward), 1 + len(WORKERS)
    real = said.taken.ravel()
    order = jnp.argsort(~real, stable=True)
    real, trace = real[order], order // said.taken.shape[1]
    stops = jnp.where(said.call == STOP, int(EventType.STOP), int(EventType.ORCHESTRATOR_DECISION))
    kinds = jnp.stack([stops, jnp.full_like(stops, int(EventType.MESSAGE))], axis=2)
    agent = jnp.stack([jnp.zeros_like(said.call), said.call % STOP], axis=2)
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
    n, decisions = said.taken.shape
    lot, runs = jax.random.split(key)
    decision = jnp.argsort(jax.random.uniform(lot, (n, decisions)), axis=1)[:, :RERUNS].ravel()
    row = jnp.repeat(jnp.arange(n), RERUNS)
    where = said.taken[row, decision]
    again = play(team, said.question[row], runs, Said(*(x[row] for x in said)), decision)
    later = jnp.arange(decisions)[None] >= decision[:, None]
    return Reruns(again, decision, where, jnp.sum(where[:, None] & later & again.taken))


def fresh_state(signal: str) -> Any:
    """What a signal keeps between steps, before the first."""
    if signal == "posterior":
        return fresh_posterior(
            LEAD_FEATURES + WORKER_FEATURES, block=np.repeat([0, 1], [LEAD_FEATURES, WORKER_FEATURES])
        )
    return fresh_coefficients(1) if signal == "control_c3" else None


def weigh(
    signal: str,
    rollout: LanguageRollout,
    state: Any,
    runs: Callable[[], Reruns],
    policies: Callable[[], tuple[jax.Array, jax.Array]] | None = None,
) -> Weighed:
    """The advantages of a signal.

    Args:
      signal: one of `SIGNALS`.
      rollout: the traces.
      state: `fresh_state` or None at first; what the last step gave afterwards.
      runs: makes re-runs; called by the signals that pay for them.
      policies: gives what `team.policies` does of these traces; called by `posterior`.

    Raises:
      CreditError: there is no such signal.
    """
    if signal not in SIGNALS:
        raise CreditError(f"no signal {signal!r}; expected one of {', '.join(SIGNALS)}")
    nothing = jnp.zeros(0)
    state = fresh_state(signal) if state is None else state
    if signal == "posterior":
        assert policies is not None
        features = (x.reshape(rollout.taken.size, -1)[rollout.order] for x in _hashed(rollout.said, *policies()))
        result, state = posterior_advantage(rollout.graph, rollout.reward, state, *features)
        return Weighed(rollout.of_decisions(_advantage(result)), None, nothing, jnp.zeros(()), state)
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
    composed = control_advantage(rollout.graph, rollout.reward, [claim], beta=solved_coefficients(state))
    own = rollout.of_decisions(_advantage(composed.credit))
    return Weighed(own, None, nothing, cost, learn_coefficients(state, rollout, composed))


def _hashed(said: Said, lead: jax.Array, worker: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Columns and centred numbers of each decision: int32 and float32 [n, R, 2, J]."""
    fact, n, rounds = jnp.maximum(said.question, 0), *said.question.shape
    called = (said.call - 1)[..., None] == jnp.arange(lead.shape[2])
    of_lead = called - jnp.exp(lead)
    chosen = (said.answer - END)[..., None] == jnp.arange(worker.shape[3])
    of_worker = jnp.where((said.answer == PAD)[..., None], 0, chosen - jnp.exp(worker)).reshape(n, rounds, -1)
    held = (said.question >= 0) & (jnp.asarray(facts().book)[fact] == said.call - 1)
    prompt = jnp.where(held, fact, len(facts().texts))[..., None, None]
    place, token = jnp.arange(ANSWER)[:, None], jnp.arange(worker.shape[3])[None]
    lead_text = fact[..., None] * (1 + len(WORKERS)) + jnp.arange(lead.shape[2])
    worker_text = ((prompt * ANSWER + place) * worker.shape[3] + token).reshape(n, rounds, -1)
    lead_column, lead_sign = _hash(lead_text, LEAD_FEATURES)
    worker_column, worker_sign = _hash(worker_text, WORKER_FEATURES)
    room = ((0, 0), (0, 0), (0, of_worker.shape[2] - of_lead.shape[2]))
    return (
        jnp.stack([jnp.pad(lead_column, room), LEAD_FEATURES + worker_column], axis=2),
        jnp.stack([jnp.pad(of_lead * lead_sign, room), of_worker * worker_sign], axis=2),
    )


def _hash(number: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """A column of `size`, a power of two, and a sign, by multiplicative hashing."""
    mixed = (number.astype(jnp.uint32) + jnp.uint32(1)) * jnp.uint32(2654435761)
    mixed = (mixed ^ (mixed >> jnp.uint32(15))) * jnp.uint32(2246822519)
    sign = jnp.where(mixed >> jnp.uint32(31) == 0, 1.0, -1.0)
    return ((mixed >> jnp.uint32(13)) % jnp.uint32(size)).astype(jnp.int32), sign


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
