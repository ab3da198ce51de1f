"""Samples that share choices: replays and siblings of one trace count as one sample of what they share.

Outcomes of traces that branch from one prefix all depend on the choices of that prefix (`EventGraph.cluster_ids`). So
in a batch with replays

    weights     the samples of a cluster together weigh as much as one independent trace
    baselines   a leave-one-out mean leaves out the other traces of the cluster, too
    refusal     a sample that is compared with its own cluster only has no baseline: `Reason.SHARED_PREFIX`

Without `cluster_ids` every trace is a cluster of its own, and nothing here is computed.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from graphs.event_graph import EventGraph
from graphs.levels import pair_ids
from graphs.segment import safe_divide, segment_count, segment_first, segment_min

__all__ = ["Clusters", "clusters_of", "first_of_cluster", "independent_groups"]


class Clusters(NamedTuple):
    """How M samples, each of one trace and one key, share choices.

    Attributes:
      pair: int32 [M] in [0, M), the sample's key and cluster.
      own: int32 [M] in [0, M), the sample's key and trace; None where no trace has two samples of one key.
      size: float [M], how many traces the sample's cluster has among the samples of its key.
      lead_mask: bool [M], one sample of each pair of key and cluster.
      independent: float [M], how many clusters the sample's key has.
    """

    pair: jax.Array
    own: jax.Array | None
    size: jax.Array
    lead_mask: jax.Array
    independent: jax.Array

    @property
    def weight(self) -> jax.Array:
        """float [M]: one over the size, 0 at what is no sample."""
        return safe_divide(jnp.ones_like(self.size), self.size)

    @property
    def shared_mask(self) -> jax.Array:
        """bool [M]: samples that share a choice with every other trace of their key, and there is another one."""
        return (self.size > 1) & (self.independent < 2)


def clusters_of(
    graph: EventGraph,
    trace: jax.Array,
    key: jax.Array,
    member_mask: jax.Array,
    *,
    several: bool,
    dtype: jax.typing.DTypeLike = jnp.float32,
    cluster: jax.Array | None = None,
) -> Clusters | None:
    """The clusters of M samples; None where the batch has no replays.

    Args:
      graph: for `cluster_ids`.
      trace, key: int [M], of each sample; keys lie in [0, M).
      member_mask: bool [M], which samples there are.
      several: whether a trace may have several samples of one key.
      dtype: of counts.
      cluster: int32 [M], the cluster of each sample, where its key fixes what the traces share, as a frozen prefix
        does; by default that of its trace.

    Examples:
      >>> import dataclasses, credit, jax.numpy as jnp
      >>> from estimators.clusters import clusters_of
      >>> graph, _, _ = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[1.0] * 3)
      >>> replayed = dataclasses.replace(graph, cluster_ids=0 * graph.group_ids + jnp.array([0, 0, 2] + [0] * 125))
      >>> trace = jnp.arange(128)
      >>> clusters = clusters_of(replayed, trace, graph.group_ids, graph.trace_mask, several=False)
      >>> clusters.size[:3].tolist(), float(clusters.independent[0])
      ([2.0, 2.0, 1.0], 2.0)
    """
    if graph.cluster_ids is None:
        return None
    num = member_mask.shape[0]
    place = jnp.arange(num, dtype=jnp.int32)
    if cluster is None:
        cluster = jnp.asarray(graph.cluster_ids)[trace]
    pair = pair_ids(key, cluster, member_mask, num)
    own = pair_ids(key, trace, member_mask, num) if several else None
    once_mask = member_mask if own is None else member_mask & (segment_first(own, num, member_mask)[own] == place)
    lead_mask = member_mask & (segment_first(pair, num, member_mask)[pair] == place)
    size = jnp.where(member_mask, segment_count(pair, num, once_mask, dtype)[pair], 0)
    return Clusters(pair, own, size, lead_mask, segment_count(key, num, lead_mask, dtype)[key])


def first_of_cluster(graph: EventGraph, trace: jax.Array, key: jax.Array, member_mask: jax.Array) -> jax.Array:
    """For each of M samples the first one of its key and cluster, itself where there are no replays: int32 [M].

    Examples:
      >>> import dataclasses, credit, jax.numpy as jnp
      >>> from estimators.clusters import first_of_cluster
      >>> graph, _, _ = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[1.0] * 3)
      >>> replayed = dataclasses.replace(graph, cluster_ids=0 * graph.group_ids + jnp.array([0, 0, 2] + [0] * 125))
      >>> trace = jnp.arange(128)
      >>> first_of_cluster(replayed, trace, graph.group_ids, graph.trace_mask)[:3].tolist()
      [0, 0, 2]
    """
    num = member_mask.shape[0]
    place = jnp.arange(num, dtype=jnp.int32)
    if graph.cluster_ids is None:
        return place
    pair = pair_ids(key, jnp.asarray(graph.cluster_ids)[trace], member_mask, num)
    return jnp.where(member_mask, segment_first(pair, num, member_mask)[pair], place)


def independent_groups(graph: EventGraph) -> jax.Array:
    """The independent sample of groups that each trace is in: int32 [T], the least group of the sample.

    Groups with replays of one trace, under another task or another version of the policy, are one sample.

    Examples:
      >>> import dataclasses, credit, jax.numpy as jnp
      >>> from estimators.clusters import independent_groups
      >>> graph, _, _ = credit.from_columns(group=[0, 1, 2], trace=["a", "b", "c"], reward=[1.0] * 3)
      >>> replayed = dataclasses.replace(graph, cluster_ids=jnp.array([0, 1, 0] + [0] * 125))
      >>> independent_groups(replayed)[:3].tolist()
      [0, 1, 0]
    """
    group = jnp.asarray(graph.group_ids)
    if graph.cluster_ids is None:
        return group
    samples: jax.Array = _joined(group, jnp.asarray(graph.cluster_ids), jnp.asarray(graph.trace_mask))
    return samples


@functools.partial(jax.jit, inline=True)  # called by itself, a loop is compiled at each call
def _joined(group: jax.Array, cluster: jax.Array, trace_mask: jax.Array) -> jax.Array:
    num = len(group)

    def wider(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        label, _ = state  # of each group
        of_cluster = segment_min(label[group], cluster, num, trace_mask, empty=num)
        found = segment_min(of_cluster[cluster], group, num, trace_mask, empty=num)
        # A label is a group, too. It takes what its groups find, or that would pass all of them one after another.
        least = jnp.minimum(label, found).at[label].min(found)
        least = least[least]  # chains halve
        return least, jnp.any(least != label)

    label, _ = jax.lax.while_loop(lambda state: state[1], wider, (jnp.arange(num, dtype=group.dtype), jnp.array(True)))
    return label[group]
