"""The samples that a method compares: traces, agent instances or rows, by key; and their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import check_event_array, check_reward
from estimators.clusters import Clusters, clusters_of
from estimators.relative_mean import mean_from_first, relative_to_first, stated_once
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.keys import By, Keyed, key_of, keyed
from graphs.levels import pair_ids
from graphs.segment import (
    safe_divide,
    segment_count,
    segment_first,
    segment_mean,
    segment_min,
    segment_sum,
    segment_sum_squares,
)
from graphs.stable_order import stable_order

__all__ = [
    "AgentNames",
    "Aggregate",
    "Members",
    "Over",
    "Population",
    "agent_outcomes",
    "equal_rows",
    "instances",
    "members",
    "relative_scores",
    "row_scores",
    "statistics",
]

Population = Literal["trace", "agent", "row"]
Aggregate = Literal["sum", "return", "mean", "first"]
Over = Literal["group", "batch"]
AgentNames = str | Sequence[str] | Array | None
"""Names of agents, by commas or in a list, which `credit.run` looks up in the log; or bool [A], the instances."""


class Members(NamedTuple):
    """The M samples of a statistic, and the sample of each event.

    Attributes:
      score: float [M].
      key: int32 [M] in [0, M): members with one key are compared with each other.
      member_mask: bool [M].
      of_event: int32 [E] in [0, M): the member that an event belongs to.
      clusters: which members share choices; None where the batch has no replays.
      times: float [M], how many equal samples a member stands for, in a batch without replays; None for one each.
      absent_mask: bool [E], events without a part of the key; None where every event has all.
    """

    score: jax.Array
    key: jax.Array
    member_mask: jax.Array
    of_event: jax.Array
    clusters: Clusters | None = None
    times: jax.Array | None = None
    absent_mask: jax.Array | None = None

    @property
    def shared_mask(self) -> jax.Array:
        """bool [M]: members that are compared with replays of their own trace only."""
        return jnp.zeros_like(self.member_mask) if self.clusters is None else self.clusters.shared_mask


def instances(graph: EventGraph, option: str, named: AgentNames) -> jax.Array:
    """The agent instances that an option means: bool [A]; none where it is None.

    Args:
      graph: of the batch.
      option: its name, for messages.
      named: names, ids or a mask of agents.

    Raises:
      CreditError: an array of another shape.
    """
    if named is None:
        return jnp.zeros(graph.num_agents, bool)
    if np.shape(named) != (graph.num_agents,):
        raise CreditError(f"{option} has shape {np.shape(named)}; expected ({graph.num_agents},), bool [A]")
    return jnp.asarray(named).astype(bool)


@jax.jit
def agent_outcomes(
    graph: EventGraph, reward: Array, agent_reward: Array | None, event_reward: Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """The outcome of each agent instance, and whether it has one: float [A], bool [A].

    An agent's outcome is its trace's `reward` plus its `agent_reward`; who lacks one has none. A sum that lacks a part
    is not compared with whole ones. Where all traces with `agent_reward` have reward NaN, as in logs of games whose
    draws are the team's, one of the two is enough. Where the column is absent, it is the trace's reward alone.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      agent_reward: float [E], the outcome of the instance's own trace at one of its events or more, or None; NaN where
        an event does not state it. An instance with two of its own has none; readers refuse them.
      event_reward: as of `check_reward`.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], agent=["x", "y"], reward=[1.0, 1.0], events=2, agents=2)
      >>> outcome, scored = agent_outcomes(graph, reward, np.array([0.5, np.nan]))
      >>> outcome.tolist(), scored.tolist()
      ([1.5, 1.0], [True, False])
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    own_trace = jnp.asarray(graph.agent_trace)
    if agent_reward is None:
        return outcome[own_trace], scored[own_trace]
    amount, stated = check_event_array(graph, "agent_reward", agent_reward)
    agent, num = jnp.asarray(graph.agent_ids), graph.num_agents
    own, has, several = stated_once(amount.astype(outcome.dtype), agent, num, stated)
    of_traces, stating = scored[own_trace], has & jnp.asarray(graph.agent_mask)
    either = jnp.any(stating & ~of_traces) & ~jnp.any(stating & of_traces)
    whole = jnp.where(either, of_traces | has, of_traces & has) & ~several
    return outcome[own_trace] + jnp.where(has, own, jnp.zeros_like(own)), whole


def row_scores(
    graph: EventGraph, reward: Array, event_reward: Array | None, agent_reward: Array | None = None
) -> tuple[jax.Array, jax.Array]:
    """The score of each row, outcome plus its own event reward, and the mask of rows that count: float [E], bool [E].

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      agent_reward: as of `agent_outcomes`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.members import row_scores
      >>> rows.gather(row_scores(graph, reward, None)[0]).tolist()
      [1.0, 0.0, 0.0]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    of_event = graph.trace_ids
    if agent_reward is not None:
        outcome, scored = agent_outcomes(graph, reward, agent_reward, event_reward)
        of_event = graph.agent_ids
    rows = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[of_event]
    score = outcome[of_event]
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
    agent_reward: Array | None = None,
) -> Members:
    """Form the samples: the rows of one key, taken together for each trace, for each agent instance, or one by one.

    A sample has at least one row, but for whole traces by "sum": there an action of a frozen agent is enough. Whether a
    trained one acts may be the choice of a frozen one, and the outcome is an independent sample either way. A trace
    with an outcome in which the team chose nothing enters no baseline.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      by: whose samples are compared: see `graphs.keys.key_of`. None compares the traces of a task.
      population: "trace", a sample is what one trace has of one key; "agent", what one agent instance has of it; "row",
        each action is one.
      aggregate: how several rows make one score, below.
      over: "group", members of one key are compared; "batch", all are, of whatever key.
      agent_reward: as of `agent_outcomes`, in place of reward[u] below; for populations "agent" and "row" only. What an
        instance earns by "return" is then what it earns by "sum".

    Score of a sample of several rows, with u its trace and E(u) its events:
      "sum"     reward[u] + Σ event_reward over all its events, chosen or not: its return
      "return"  reward[u] + Σ event_reward over all events of its trace: the trace's return
      "mean"    the mean over its rows of reward[u] + event_reward  (Dr. MAS)
      "first"   reward[u] + event_reward of its first row  (Dr. MAS' RLOO; Agent Lightning)

    Raises:
      CreditError: wrong shapes, dtypes or options.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> from estimators.members import members
      >>> m = members(graph, reward, None, by=None, population="trace", aggregate="sum")
      >>> m.score[:3].tolist()
      [1.0, 0.0, 0.0]
      >>> def wins(m):  # over rivals less losses, each as a share; a cluster of replays is one sample, and none its own
      ...     sample, weight = jnp.arange(len(m.score)), m.member_mask.astype(m.score.dtype)
      ...     if m.clusters is not None:
      ...         sample, weight = m.clusters.pair, m.clusters.weight
      ...     rival = jnp.where((m.key[:, None] == m.key[None]) & (sample[:, None] != sample[None]), weight[None], 0)
      ...     won = (rival * jnp.sign(m.score[:, None] - m.score[None])).sum(axis=1)
      ...     return (won / jnp.maximum(rival.sum(axis=1), 1))[m.of_event]
      >>> rows.gather(wins(m)).tolist()
      [1.0, -0.5, -0.5]
    """
    if population not in ("trace", "agent", "row"):
        raise CreditError(f"population is {population!r}; expected 'trace', 'agent' or 'row'")
    if agent_reward is not None and population == "trace":
        raise CreditError(
            "agent_reward is an outcome of each agent, and population is 'trace'; expected 'agent' or 'row', as of "
            "by=task,agent with population=agent"
        )
    outcome, scored = check_reward(graph, reward, event_reward)
    score, rows = row_scores(graph, reward, event_reward, agent_reward)
    trace_ids = jnp.asarray(graph.trace_ids)
    wanted = key_of(by)
    entries = keyed(graph, wanted, "agent" if population == "agent" else "trace")
    key, of_event, num = entries.ids, entries.of_event, entries.ids.shape[0]
    key = jnp.zeros_like(key) if over == "batch" else key
    absent = None if entries.absent_mask is None else entries.absent_mask[of_event]
    if absent is not None:
        rows = rows & ~absent
    if population == "row":
        # Keys lie below the number of agents or traces; a fixed-size array of rows must not be shorter than that.
        row_key = _fit(key[of_event], graph.num_events, num)
        place = jnp.arange(graph.num_events, dtype=jnp.int32)
        drawn = None if wanted.draws is None else jnp.asarray(wanted.draws).astype(jnp.int32)
        drawn = None if drawn is None else jnp.where(drawn >= 0, drawn, -1 - trace_ids)
        shared = clusters_of(graph, trace_ids, row_key, rows, several=True, dtype=score.dtype, cluster=drawn)
        return Members(score, row_key, rows, place, shared, absent_mask=absent)
    grouped = _units(graph, entries, population)
    unit_trace, unit, acts = entries.trace, of_event, rows
    if grouped is not None:
        unit_of_entry, first = grouped
        key, unit_trace, unit = key[first], unit_trace[first], unit_of_entry[of_event]
    # Units that are traces need no lookup. XLA does not drop one, and at a thousand events its time is felt.
    unit_reward = outcome if entries.level == "trace" else outcome[unit_trace]
    if agent_reward is not None:
        unit_reward = agent_outcomes(graph, reward, agent_reward, event_reward)[0]
        if grouped is not None:
            unit_reward = unit_reward[first if entries.level == "agent" else jnp.asarray(graph.agent_ids)[first]]
        aggregate = "sum" if aggregate == "return" else aggregate
    if wanted.level == "trace" and aggregate in ("sum", "return") and graph.trainable_mask is not None:
        acts = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask) & scored[trace_ids]
        acts = acts if absent is None else acts & ~absent
    member_mask = segment_count(unit, num, acts) > 0
    unit_score = _unit_scores(graph, unit_reward, score, event_reward, unit, unit_trace, rows, absent, aggregate)
    # One trace has several samples of one key where each instance is one, or where keys are left out.
    several = population == "agent" or (over == "batch" and wanted.level != "trace")
    drawn = None
    if wanted.draws is not None:  # the least node of a joint turn stands for it: a log has its agents in any order
        nodes = jnp.asarray(wanted.draws).astype(jnp.int32)
        nodes = segment_min(nodes, unit, num, rows & (nodes >= 0), empty=-1)
        drawn = jnp.where(nodes >= 0, nodes, -1 - unit_trace)
    shared = clusters_of(graph, unit_trace, key, member_mask, several=several, dtype=unit_score.dtype, cluster=drawn)
    score = jnp.where(member_mask, unit_score, jnp.zeros_like(unit_score))
    return Members(score, key, member_mask, unit, shared, absent_mask=absent)


def _units(graph: EventGraph, entries: Keyed, population: Population) -> tuple[jax.Array, jax.Array] | None:
    """The sample of each of M entries of a key, and the first entry of each sample: int32 [M] each.

    None where each entry is a sample: to look its own place up at every event would cost a pass over them.
    """
    if entries.level == "trace" or (entries.level, population) == ("agent", "agent"):
        return None
    by_agent = population == "agent"
    owner, owners = (jnp.asarray(graph.agent_ids), graph.num_agents) if by_agent else (entries.trace, graph.num_traces)
    unit = pair_ids(owner, entries.ids, entries.mask, owners)
    return unit, segment_first(unit, entries.ids.shape[0], entries.mask)


def equal_rows(graph: EventGraph, reward: Array, *, by: By, over: Over, agent_reward: Array | None = None) -> Members:
    """The samples of population "row" where no event has a reward of its own, in a batch without replays.

    All rows of a trace have its outcome, so that one member stands for those of a trace, or of an agent instance.

    Args:
      graph, reward, by, over, agent_reward: as of `members`.
    """
    outcome, _ = check_reward(graph, reward)
    _, rows = row_scores(graph, reward, None, agent_reward)
    entries = keyed(graph, key_of(by), "trace" if agent_reward is None else "agent")
    of_entry = outcome[entries.trace] if agent_reward is None else agent_outcomes(graph, reward, agent_reward)[0]
    key = jnp.zeros_like(entries.ids) if over == "batch" else entries.ids
    absent = None if entries.absent_mask is None else entries.absent_mask[entries.of_event]
    counted = rows if absent is None else rows & ~absent
    times = segment_count(entries.of_event, len(key), counted, outcome.dtype)
    score = jnp.where(times > 0, of_entry, 0)
    return Members(score, key, times > 0, entries.of_event, times=times, absent_mask=absent)


def _unit_scores(
    graph: EventGraph,
    unit_reward: jax.Array,
    score: jax.Array,
    event_reward: Array | None,
    unit: jax.Array,
    unit_trace: jax.Array,
    rows: jax.Array,
    absent: jax.Array | None,
    aggregate: Aggregate,
) -> jax.Array:
    """The score of each unit of several rows, float [M]: see `members`."""
    num = unit_reward.shape[0]
    if aggregate not in ("sum", "return", "mean", "first"):
        raise CreditError(f"aggregate is {aggregate!r}; expected 'sum', 'return', 'mean' or 'first'")
    if event_reward is None:
        return unit_reward
    if aggregate in ("sum", "return"):
        step, real = check_event_array(graph, "event_reward", event_reward)
        if aggregate == "return":
            return unit_reward + segment_sum(step, graph.trace_ids, graph.num_traces, real)[unit_trace]
        return unit_reward + segment_sum(step, unit, num, real if absent is None else real & ~absent)
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

    Args:
      m: of `members`.

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
    """The score of the first member of each key, and each member's score less that of its key's: float [M] each.

    Args:
      m: of `members`.
    """
    return relative_to_first(m.score, m.key, m.score.shape[0], m.member_mask)


def _fit(ids: jax.Array, room: int, num: int) -> jax.Array:
    """Ids of rows as segment ids in [0, room): as they are, or renumbered where they could exceed it."""
    if num <= room:
        return ids
    order = stable_order(ids)
    ranked = ids[order]
    new = jnp.concatenate([jnp.zeros(1, bool), ranked[1:] != ranked[:-1]])
    return jnp.zeros_like(ids).at[order].set(jnp.cumsum(new.astype(ids.dtype), dtype=ids.dtype))
