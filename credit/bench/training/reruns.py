"""Evidence from extra runs: siblings of a decision, replaced decisions, coalitions of agents, greedy runs.

Each function answers with numbers and the events that its runs took. A run that goes on from decision d pays for the
events from d on. Of these events, only choices that change the reward or what is reached are drawn.

Legend: n traces, K kinds, D decisions, C choices, A agents, M re-run decisions of a trace, R decisive decisions.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.training.rollouts import Luck, Rollout, draw_luck, draw_rewards, drawn_outcome
from credit.bench.training.sparse_draws import categorical_at
from estimators.base import Credit
from estimators.counterfactual.messages import c3
from graphs.worlds.siblings import lone_messages

__all__ = [
    "AT_MOST",
    "Reruns",
    "Siblings",
    "coalition_shares",
    "greedy_rewards",
    "replaced_rewards",
    "rerun_decisions",
    "sibling_c3",
    "siblings",
]

AT_MOST = 6
"""Decisions of a trace that are re-run, drawn at random where there are more."""


class Siblings(NamedTuple):
    """C3 of every decision, from one alternative drawn by the policy and continued to the end.

    Attributes:
      own: float32 [n, D], the advantage of the choice that was made; 0 where none was.
      other: float32 [n, D], that of the alternative.
      choice: int32 [n, D], the alternative; it may be the same choice again. Of no meaning outside `where`.
      where: bool [n, D], decisions that were re-run; whether a decision is among them does not depend on its choice.
      cost: float32 [], events of the runs.
    """

    own: jax.Array
    other: jax.Array
    choice: jax.Array
    where: jax.Array
    cost: jax.Array


class Reruns(NamedTuple):
    """One run from each of M decisions of a trace, with the choice there drawn anew.

    Attributes:
      at: int [n, M], the decisions.
      rerun_mask: bool [n, M], those of them that the trace reached.
      reward: float32 [n, M].
      choice: int32 [n, M], the choice there.
      cost: float32 [], events of the runs.
    """

    at: jax.Array
    rerun_mask: jax.Array
    reward: jax.Array
    choice: jax.Array
    cost: jax.Array


def rerun_decisions(rollout: Rollout, key: jax.Array, where: np.ndarray | None = None) -> Reruns:
    """Draw some decisions of each trace anew and go on to the end.

    Args:
      rollout: the traces.
      key: of choices and luck.
      where: bool [D], decisions that may be re-run; default all.
    """
    subset, runs = jax.random.split(key)
    decision, rerun_mask = _some(rollout, subset, where)
    return Reruns(decision, rerun_mask, *_continued(rollout, runs, decision, rerun_mask, None))


def siblings(rollout: Rollout, key: jax.Array, where: np.ndarray | None = None) -> Siblings:
    """One alternative of each decision, drawn from the policy, against the choice that was made, by `estimators.c3`.

    Args:
      rollout: the traces.
      key: of choices and luck.
      where: bool [D], decisions that may be re-run; default all.
    """
    decision, rerun_mask, reward, choice, cost = rerun_decisions(rollout, key, where)
    outcome = jnp.stack([jnp.broadcast_to(rollout.reward[:, None], decision.shape), reward], axis=2)
    result = sibling_c3(rollout.kind, jnp.where(rerun_mask[:, :, None], outcome, jnp.nan))
    advantage = jnp.where(result.valid, result.advantage, 0).reshape(*decision.shape, 2)
    trace = jnp.arange(len(decision))[:, None]
    nothing = jnp.zeros(rollout.taken.shape, advantage.dtype)
    return Siblings(
        nothing.at[trace, decision].set(advantage[..., 0]),
        nothing.at[trace, decision].set(advantage[..., 1]),
        rollout.choice.at[trace, decision].set(choice),
        jnp.zeros_like(rollout.taken).at[trace, decision].set(rerun_mask),
        cost,
    )


def replaced_rewards(rollout: Rollout, key: jax.Array, *, other_side: bool = False) -> tuple[jax.Array, jax.Array]:
    """The reward with a decision replaced by choice 0 and all later ones drawn again: [n, D], and the events.

    NaN at decisions that were not re-run.

    Args:
      rollout: the traces.
      key: of choices and luck.
      other_side: replace choice 0 by choice 1.
    """
    subset, runs = jax.random.split(key)
    decision, rerun_mask = _some(rollout, subset, None)
    made = jnp.take_along_axis(rollout.choice, decision, axis=1)
    instead = jnp.where(made > 0, 0, 1) if other_side else jnp.zeros_like(made)
    reward, _, cost = _continued(rollout, runs, decision, rerun_mask, instead)
    unknown = jnp.full(rollout.taken.shape, jnp.nan, reward.dtype)
    return unknown.at[jnp.arange(len(decision))[:, None], decision].set(jnp.where(rerun_mask, reward, jnp.nan)), cost


def greedy_rewards(rollout: Rollout, groups: int, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The reward of one greedy run for each group: [n], the same for its traces, and the events.

    Args:
      rollout: the traces, groups of equal size one after another.
      groups: how many.
      key: of the luck.
    """
    size = len(rollout.kind) // groups
    kind = rollout.kind[::size]
    reward, taken = draw_rewards(rollout.task, kind, jnp.argmax(rollout.logits, axis=2)[kind], key)
    return jnp.repeat(reward, size), taken.sum().astype(jnp.float32)


def coalition_shares(rollout: Rollout, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Monte-Carlo Shapley shares from one order of the agents for each trace: [n, A], and the events.

    v(S) is the reward of a run in which the agents of S keep their choices and the others take choice 0. An agent's
    share is what v gains when it joins those before it in the order. v of all agents is the trace's own reward.

    Args:
      rollout: the traces.
      key: of orders and luck.
    """
    n, agents = len(rollout.kind), np.asarray(rollout.task.agents)
    team = int(agents.max()) + 1
    shuffle, luck = jax.random.split(key)
    place = jnp.argsort(jax.random.uniform(shuffle, (n, team)), axis=1)  # of each agent in the trace's order
    kept = place[:, None, agents] < jnp.arange(team)[None, :, None]  # [n, size of S, D]
    choice = jnp.where(kept, rollout.choice[:, None, :], 0)
    kind = jnp.broadcast_to(rollout.kind[:, None], (n, team))
    worth, taken = draw_rewards(rollout.task, kind, choice, luck)
    worth = jnp.concatenate([worth, rollout.reward[:, None]], axis=1)
    gain = worth[:, 1:] - worth[:, :-1]
    return jnp.take_along_axis(gain, place, axis=1), taken.sum().astype(jnp.float32)


def _some(rollout: Rollout, key: jax.Array, where: np.ndarray | None) -> tuple[jax.Array, jax.Array]:
    """`AT_MOST` decisions of each trace among `where`, int [n, M], and which of them were reached, bool [n, M]."""
    n, size = rollout.taken.shape
    among = np.ones(size, bool) if where is None else where
    if among.sum() <= AT_MOST:
        decision = jnp.broadcast_to(jnp.asarray(np.flatnonzero(among))[None], (n, int(among.sum())))
    else:
        rank = jnp.where(jnp.asarray(among)[None], jax.random.uniform(key, (n, size)), 2.0)
        decision = jax.lax.top_k(-rank, AT_MOST)[1]
    return decision, jnp.take_along_axis(rollout.taken, decision, axis=1)


def _continued(
    rollout: Rollout, key: jax.Array, decision: jax.Array, rerun_mask: jax.Array, replacement: jax.Array | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Runs that share a trace's choices before decision `at`: reward [n, M], the choice there [n, M], events [].

    Each run has draws of its own for all D decisions, a table [n, D, D, C], of which those are made that are read: at
    `at` and at the decisive decisions.
    """
    task, (n, size) = rollout.task, rollout.taken.shape
    draw, luck = jax.random.split(key)
    decisive = jnp.broadcast_to(jnp.asarray(task.decisive)[None, None], (*decision.shape, len(task.decisive)))
    columns = jnp.concatenate([decisive, decision[..., None]], axis=2)  # [n, M, R + 1]
    places = (jnp.arange(n)[:, None, None] * size + decision[..., None]) * size + columns
    fresh = categorical_at(draw, rollout.logits[rollout.kind[:, None, None], columns], places, n * size * size)
    here = fresh[..., -1] if replacement is None else replacement.astype(fresh.dtype)
    earlier = jnp.broadcast_to(rollout.choice[:, None, np.asarray(task.decisive)], decisive.shape)
    later = jnp.where(decisive == decision[..., None], here[..., None], fresh[..., :-1])
    choice = jnp.where(decisive < decision[..., None], earlier, later)
    kind = jnp.broadcast_to(rollout.kind[:, None], decision.shape)
    own_luck = Luck(*(jnp.take_along_axis(table, decision, axis=1) for table in draw_luck(luck, (n, size))))
    reward, taken = drawn_outcome(task, kind, tuple(jnp.moveaxis(choice, 2, 0)), own_luck)
    events = jnp.sum(rerun_mask[..., None] & taken & (jnp.arange(size)[None, None] >= decision[..., None]))
    return reward, here, events.astype(jnp.float32)


def sibling_c3(group_ids: jax.Array, outcome: jax.Array) -> Credit:
    """C3 of choices with one sibling each: every choice is a trace of one event, as C3 logs it.

    Args:
      group_ids: int32 [n], the group of each trace.
      outcome: float [n, D, 2], with the choice and with the sibling; NaN where a decision was not re-run.

    Returns:
      `Credit` of 2 n D events, in the order of `outcome`.
    """
    count = outcome.size
    number = np.arange(count, dtype=np.int32)
    graph = lone_messages(jnp.repeat(group_ids, count // len(group_ids)))
    result: Credit = c3(graph, outcome.ravel(), context=number // 2, node=number)
    return result
