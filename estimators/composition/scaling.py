"""The spread of one agent name's advantages, from whole traces, with a floor: what advantages may be divided by.

A standard deviation over actions is no scale. An agent that acts twice, in one trace of its group only, has two equal
numbers. Their deviation is 0, and dividing by it gives advantages in the millions. Here a trace is one sample, and
traces that share a choice (replays) are one sample together:

    q_tk   mean of A² over the actions of key k (one name in one group) in trace t
    S²_g   mean over the traces of group g of the mean of A² over all their actions
    s²_tk  = (Σ_{u ≠ t} q_uk + ν S²_g) / (n_k − 1 + ν)        n_k traces hold the key, ν = PRIOR_TRACES
    scale  = max(s_tk, max_g |A| / LARGEST)

The trace's own actions enter through ν S²_g and the floor only. Second moments about 0, and not variances, are used: an
agent that acts in failing traces only has advantages that are all alike, and their variance would be 0.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import Name, key_ids, pair_ids, unit_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_sum

__all__ = ["LARGEST", "PRIOR_TRACES", "AgentScale", "agent_scale", "group_spread"]

PRIOR_TRACES = 2.0
"""ν: how many traces the spread of the whole group counts for in the spread of one name."""

LARGEST = 10.0
"""No scaled advantage is larger than this."""


class AgentScale(NamedTuple):
    """Divisors of advantages.

    Attributes:
      scale: float [E], positive.
      traces: int32 [E], how many traces of the group hold the event's key; fewer than 2 are no sample.
    """

    scale: jax.Array
    traces: jax.Array


@functools.partial(jax.jit, static_argnames=("by",))
def agent_scale(graph: EventGraph, advantage: Array, where: Array, *, by: Name = "agent_name") -> AgentScale:
    """The root mean square advantage of each agent name in each group, a trace being one sample, with a floor.

    Formula and reasons are in the docstring of this module. Divided by it, no advantage exceeds `LARGEST` = 10. With n
    traces a group and one number a trace none exceeds sqrt(n (n − 1 + ν) / ν). A division by a spread re-weights
    decisions after the fact: the scaled gradient is not the gradient. Where all advantages of a group are 0 the scale
    is 1.

    Args:
      graph: uses trace, agent and group ids, and the names of agents.
      advantage: float [E], finite where `where`.
      where: bool [E], the actions that have an advantage.
      by: whose advantages are one key: "agent_name" or "role_name".

    Returns:
      `AgentScale`. Keys with `traces` < 2 have a positive scale, too, which is not to be used.

    Source: own; Dr. MAS (arXiv:2602.08847) divides by the standard deviation over rows.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=[0, 0, 1, 2, 2], agent=["a", "b", "a", "b", "b"], reward=[1.0, 1, 0, 0, 0])
      >>> spread = agent_scale(graph, reward[graph.trace_ids] - 0.5, graph.action_mask)
      >>> print(np.round(rows.gather(spread.scale), 3), rows.gather(spread.traces))
      [0.5 0.5 0.5 0.5 0.5] [2 2 2 2 2]
    """
    agents, num = jnp.asarray(graph.agent_ids), graph.num_agents
    unit_of_agent = _sample_units(graph, by)
    key_of_unit = key_ids(graph, by)[segment_first(unit_of_agent, num, jnp.asarray(graph.agent_mask))]
    unit = unit_of_agent[agents]
    key = key_of_unit[unit]
    spread, largest = group_spread(graph, advantage, where)
    squares, acts = _squares(graph, advantage, where, largest)
    size = segment_sum(acts, unit_of_agent, num)
    mean_square = safe_divide(segment_sum(squares, unit_of_agent, num), size)  # of a key in a trace
    held = size > 0
    sums = segment_sum(mean_square, key_of_unit, num, held)[key]
    traces = segment_count(key_of_unit, num, held, squares.dtype)[key]
    others = jnp.maximum(sums - mean_square[unit], 0)

    prior = PRIOR_TRACES * safe_divide(spread, largest) ** 2
    relative = safe_sqrt((others + prior) / jnp.maximum(traces - 1 + PRIOR_TRACES, PRIOR_TRACES))
    scale = largest * jnp.maximum(relative, 1 / LARGEST)
    return AgentScale(jnp.where(scale > 0, scale, 1), traces.astype(jnp.int32))


def _samples(graph: EventGraph) -> jax.Array:
    """The independent sample that each trace is part of, int32 [T]: replays of one trace in one group are one."""
    if graph.cluster_ids is None:
        return jnp.arange(graph.num_traces, dtype=jnp.int32)
    # Replays under another task are a sample of that task, too.
    sample: jax.Array = pair_ids(graph.cluster_ids, graph.group_ids, graph.trace_mask)
    return sample


def _sample_units(graph: EventGraph, by: Name) -> jax.Array:
    """Agent instance to the pair (sample, name) that it is part of: int32 [A]."""
    if graph.cluster_ids is None:
        return unit_ids(graph, by)
    if by not in ("agent_name", "role_name"):
        raise CreditError(f"by is {by!r}; expected 'agent_name' or 'role_name'")
    names = graph.agent_name_ids if by == "agent_name" else graph.agent_role_ids
    return pair_ids(_samples(graph)[graph.agent_trace], jnp.asarray(names), jnp.asarray(graph.agent_mask))


def _squares(graph: EventGraph, advantage: Array, where: Array, largest: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Σ A² of each agent instance, in multiples of its group's largest, and the number of its actions: [A] each."""
    # In these multiples squares neither overflow nor vanish.
    square = jnp.where(where, safe_divide(jnp.abs(jnp.asarray(advantage)), largest), 0) ** 2
    agents, num = jnp.asarray(graph.agent_ids), graph.num_agents
    return segment_sum(square, agents, num), segment_count(agents, num, jnp.asarray(where), square.dtype)


def group_spread(graph: EventGraph, advantage: Array, where: Array) -> tuple[jax.Array, jax.Array]:
    """S, the root mean square advantage of the group of each event, and the largest |advantage| there: [E], [E]."""
    trace, group, num = jnp.asarray(graph.trace_ids), jnp.asarray(graph.group_ids), graph.num_traces
    size = jnp.where(where, jnp.abs(jnp.asarray(advantage)), 0)
    # Of agents first: updates of one number wait for each other.
    of_agent = jax.ops.segment_max(size, jnp.asarray(graph.agent_ids), num_segments=graph.num_agents)
    group_of_agent = group[jnp.asarray(graph.agent_trace)]
    largest = jax.ops.segment_max(of_agent, group_of_agent, num_segments=num)
    largest = jnp.maximum(largest, 0)[group][trace]  # an empty segment has -inf
    sample = _samples(graph)
    group_of_sample = group[segment_first(sample, num, jnp.asarray(graph.trace_mask))]
    squares, acts = _squares(graph, advantage, where, largest)
    sample_of_agent = sample[jnp.asarray(graph.agent_trace)]
    actions = segment_sum(acts, sample_of_agent, num)
    by_sample = safe_divide(segment_sum(squares, sample_of_agent, num), actions)
    acted = actions > 0
    count = segment_count(group_of_sample, num, acted, size.dtype)
    spread = safe_sqrt(safe_divide(segment_sum(by_sample, group_of_sample, num, acted), count))
    return spread[group][trace] * largest, largest
