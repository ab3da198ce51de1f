"""The samples that a method compares: traces, rows, or the rows of one agent or role name; and their statistics."""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import check_event_array, check_reward
from estimators.clusters import Clusters, clusters_of
from estimators.relative_mean import mean_from_first, relative_to_first
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import By, key_ids, unit_ids
from graphs.segment import (
    safe_divide,
    segment_count,
    segment_first,
    segment_mean,
    segment_sum,
    segment_sum_squares,
)

__all__ = [
    "Aggregate",
    "Members",
    "Over",
    "Population",
    "equal_rows",
    "members",
    "relative_scores",
    "row_scores",
    "statistics",
]

Population = Literal["trace", "row"]
Aggregate = Literal["sum", "mean", "first"]
Over = Literal["group", "batch"]


class Members(NamedTuple):
    """The M samples of a statistic, and the sample of each event.

    Attributes:
      score: float [M].
      key: int32 [M] in [0, M): members with one key are compared with each other.
      member_mask: bool [M].
      of_event: int32 [E] in [0, M): the member that an event belongs to.
      clusters: which members share choices; None where the batch has no replays.
      times: float [M], how many equal samples a member stands for, in a batch without replays; None for one each.
    """

    score: jax.Array
    key: jax.Array
    member_mask: jax.Array
    of_event: jax.Array
    clusters: Clusters | None = None
    times: jax.Array | None = None

    @property
    def shared_mask(self) -> jax.Array:
        """bool [M]: members that are compared with replays of their own trace only."""
        return jnp.zeros_like(self.member_mask) if self.clusters is None else self.clusters.shared_mask


def row_scores(graph: EventGraph, reward: Array, event_reward: Array | None) -> tuple[jax.Array, jax.Array]:
    """The score of each row, outcome plus its own event reward, and the mask of rows that count: float [E], bool [E].

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.members import row_scores
      >>> rows.gather(row_scores(graph, reward, None)[0]).tolist()
      [1.0, 0.0, 0.0]
    """
    outcome, scored = check_reward(graph, reward)
    rows = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[graph.trace_ids]
    score = outcome[graph.trace_ids]
    if event_reward is not None:
        score = score + check_event_array(graph, "event_reward", event_reward)[0]
    return jnp.where(rows, score, jnp.zeros_like(score)), rows


def members(
    graph: EventGraph,
    reward: Array,
    event_reward: Array | None,
    *,
    by: By,
    population: Population,
    aggregate: Aggregate,
    over: Over = "group",
) -> Members:
    """Form the samples: rows, traces, or the rows of one agent or role name of a trace taken together.

    A sample has at least one row, but for whole traces by "sum": there an action of a frozen agent is enough. Whether a
    trained one acts may be the choice of a frozen one, and the outcome is an independent sample either way. A trace
    with an outcome in which the team chose nothing enters no baseline.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      by: None for whole traces, "agent_name" or "role_name" for the rows of one name.
      population: "trace" or "row".
      aggregate: how several rows make one score, below.
      over: "group", members of one task are compared; "batch", all are, of whatever name.

    Score of a sample of several rows, with u its trace and E(u) its events:
      "sum"    reward[u] + Σ event_reward over all its events, chosen or not: its return
      "mean"   the mean over its rows of reward[u] + event_reward  (Dr. MAS)
      "first"  reward[u] + event_reward of its first row  (Dr. MAS' RLOO; Agent Lightning)

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.members import members
      >>> members(graph, reward, None, by=None, population="trace", aggregate="sum").score[:3].tolist()
      [1.0, 0.0, 0.0]
    """
    outcome, scored = check_reward(graph, reward)
    score, rows = row_scores(graph, reward, event_reward)
    trace_ids = jnp.asarray(graph.trace_ids)
    place = jnp.arange(graph.num_events, dtype=jnp.int32)
    if population == "row" and by is not None and over == "group":
        # Keys lie below the number of agents; a fixed-size array of rows must not be shorter than that.
        key_of_agent = key_ids(graph, by, dense=False)
        row_key = _fit(key_of_agent[jnp.asarray(graph.agent_ids)], graph.num_events, graph.num_agents)
        shared = clusters_of(graph, trace_ids, row_key, rows, several=True, dtype=score.dtype)
        return Members(score, row_key, rows, place, shared)
    if by is None:
        unit, num = trace_ids, graph.num_traces
        key, unit_reward = jnp.asarray(graph.group_ids), outcome
        unit_trace = jnp.arange(num, dtype=jnp.int32)
    else:
        agents = jnp.asarray(graph.agent_ids)
        unit_of_agent, num = unit_ids(graph, by), graph.num_agents
        unit = unit_of_agent[agents]
        first = segment_first(unit_of_agent, num, jnp.asarray(graph.agent_mask))
        key = key_ids(graph, by)[first]
        unit_trace = jnp.asarray(graph.agent_trace)[first]
        unit_reward = outcome[unit_trace]
    if over == "batch":
        key = jnp.zeros_like(key)
    if population == "row":
        # Keys lie below the number of agents or traces; a fixed-size array of rows must not be shorter than that.
        row_key = _fit(key[unit], graph.num_events, num)
        shared = clusters_of(graph, trace_ids, row_key, rows, several=True, dtype=score.dtype)
        return Members(score, row_key, rows, place, shared)
    if population != "trace":
        raise CreditError(f"population is {population!r}; expected 'trace' or 'row'")
    acts = rows
    if by is None and aggregate == "sum" and graph.trainable_mask is not None:
        acts = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask) & scored[trace_ids]
    member_mask = segment_count(unit, num, acts) > 0
    unit_score = _unit_scores(graph, unit_reward, score, event_reward, unit, rows, aggregate)
    # Over the batch, one trace has several samples where it has several names.
    several = by is not None and over == "batch"
    shared = clusters_of(graph, unit_trace, key, member_mask, several=several, dtype=unit_score.dtype)
    return Members(jnp.where(member_mask, unit_score, jnp.zeros_like(unit_score)), key, member_mask, unit, shared)


def equal_rows(graph: EventGraph, reward: Array, *, by: By, over: Over) -> Members:
    """The samples of population "row" where no event has a reward of its own, in a batch without replays.

    All rows of a trace have its outcome, so that one member stands for those of a trace, or of an agent instance.
    """
    outcome, _ = check_reward(graph, reward)
    _, rows = row_scores(graph, reward, None)
    if by is None:
        unit, unit_reward, key = jnp.asarray(graph.trace_ids), outcome, jnp.asarray(graph.group_ids)
    else:
        unit, unit_reward = jnp.asarray(graph.agent_ids), outcome[jnp.asarray(graph.agent_trace)]
        key = key_ids(graph, by, dense=False)
    if over == "batch":
        key = jnp.zeros_like(key)
    times = segment_count(unit, len(key), rows, outcome.dtype)
    return Members(jnp.where(times > 0, unit_reward, 0), key, times > 0, unit, times=times)


def _unit_scores(
    graph: EventGraph,
    unit_reward: jax.Array,
    score: jax.Array,
    event_reward: Array | None,
    unit: jax.Array,
    rows: jax.Array,
    aggregate: Aggregate,
) -> jax.Array:
    """The score of each unit of several rows, float [M]: see `members`."""
    num = unit_reward.shape[0]
    if aggregate not in ("sum", "mean", "first"):
        raise CreditError(f"aggregate is {aggregate!r}; expected 'sum', 'mean' or 'first'")
    if event_reward is None:
        return unit_reward
    if aggregate == "sum":
        step, real = check_event_array(graph, "event_reward", event_reward)
        return unit_reward + segment_sum(step, unit, num, real)
    if aggregate == "first":
        return score[segment_first(unit, num, rows)]
    return mean_from_first(score, unit, num, rows)


def statistics(m: Members) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Number n of members of each key, their mean, and the sum of squared deviations from it: float [M] each.

    Scores are taken relative to the key's first member, so that members with equal scores deviate by exactly 0. A plain
    float mean of three rewards of 0.1 is not 0.1, and dividing that rounding by a spread of its own size would give
    advantages to traces with equal rewards.

    With replays, members are weighted so that the traces of a cluster count as one, and n is the sum of the weights. A
    member that stands for several samples weighs as many.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.members import members, statistics
      >>> n, mean, squares = statistics(members(graph, reward, None, by=None, population="trace", aggregate="sum"))
      >>> float(n[0]), float(mean[0]), float(squares[0])
      (3.0, 0.333, 0.667)
    """
    num = m.score.shape[0]
    reference, relative = relative_scores(m)
    weight = m.times if m.clusters is None else m.clusters.weight.astype(m.score.dtype)
    if weight is None:
        n = segment_count(m.key, num, m.member_mask, m.score.dtype)
        mean = segment_mean(relative, m.key, num, m.member_mask)
        return n, reference + mean, segment_sum_squares(relative, mean, m.key, num, m.member_mask)
    n = segment_sum(weight, m.key, num)
    whole = jnp.round(n)  # thirds do not sum to 1 in floats
    n = jnp.where(jnp.abs(n - whole) < 1e-3, whole, n)
    mean = safe_divide(segment_sum(weight * relative, m.key, num), n)
    deviation = jnp.where(m.member_mask, relative - mean[m.key], jnp.zeros_like(relative))
    return n, reference + mean, segment_sum(weight * deviation**2, m.key, num)


def relative_scores(m: Members) -> tuple[jax.Array, jax.Array]:
    """The score of the first member of each key, and each member's score less that of its key's: float [M] each."""
    return relative_to_first(m.score, m.key, m.score.shape[0], m.member_mask)


def _fit(ids: jax.Array, room: int, num: int) -> jax.Array:
    """Ids of rows as segment ids in [0, room): as they are, or renumbered where they could exceed it."""
    if num <= room:
        return ids
    order = jnp.argsort(ids, stable=True)
    ranked = ids[order]
    new = jnp.concatenate([jnp.zeros(1, bool), ranked[1:] != ranked[:-1]])
    return jnp.zeros_like(ids).at[order].set(jnp.cumsum(new.astype(ids.dtype), dtype=ids.dtype))
