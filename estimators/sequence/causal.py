"""Recursions along the causal graph: an action is followed by the actions that it led to, not by the next in the log.

In a log of agents that work side by side, the next action may be another agent's and independent of this one.
Along the graph, a walk goes from an event to one of those that it has an edge to, each as likely as the others, until
an event that led to nothing; the outcome is there. A recursion gives an action the mean over its walks. Where
each event has one successor, that is the recursion along the trace.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from estimators.sequence.stepping import side_by_side
from graphs.event_graph import Array, EventGraph
from graphs.segment import segment_count, segment_sum
from graphs.stable_order import stable_order

__all__ = ["Walks", "walks"]


class Walks(NamedTuple):
    """The edges in the order in which a recursion takes them, from the end of each trace to its beginning.

    Attributes:
      senders, receivers: int32 [K], by sender; first those that are real and no repetition.
      real: bool [K], which of them these are.
      last: int32 [T], the place behind the last edge of each trace.
      edges: int32 [T], how many a trace has.
      successors: float [E], how many events an event has an edge to.
      row: bool [E], the actions that the recursion is about.
      known_order: bool [E], whether the event's trace has edges; a trace of one event needs none.
    """

    senders: jax.Array
    receivers: jax.Array
    real: jax.Array
    last: jax.Array
    edges: jax.Array
    successors: jax.Array
    row: jax.Array
    known_order: jax.Array

    def take(self, values: Array) -> jax.Array:
        """The values as they are: events are not put in another order here, as `estimators.sequence.chains` does."""
        return jnp.asarray(values)

    def back(self, values: jax.Array) -> jax.Array:
        """The reverse of `take`."""
        return values

    @property
    def ends(self) -> jax.Array:
        """bool [E], events that led to nothing."""
        return self.successors < 1

    def ahead(self, factor: jax.Array, addend: jax.Array, through: jax.Array) -> jax.Array:
        """The mean over its successors c of y_c, float [E]; 0 at ends.

        y_c = addend_c + factor_c · (the mean over the successors of c), without the second part where `through` is
        False: linear equations, whose matrix is triangular. All traces take their edges `side_by_side`: the loop is as
        long as the trace with the most edges; derivatives take another such loop.
        """
        n, num_edges = addend.shape[0], self.senders.shape[0]
        if num_edges == 0:
            return jnp.zeros_like(addend)
        count = jnp.maximum(self.successors, 1).astype(addend.dtype)

        def kept(values: jax.Array) -> jax.Array:
            return jnp.where(through, factor * values, jnp.zeros_like(values))

        def mean(values: jax.Array) -> jax.Array:
            return segment_sum(values[self.receivers], self.senders, n, self.real) / count

        def sweep(start: jax.Array, backward: bool) -> jax.Array:
            def step(at: jax.Array, traces: jax.Array, y: jax.Array) -> jax.Array:
                last, edges = self.last[traces], self.edges[traces]
                edge = last - 1 - at if backward else last - edges + at
                edge = jnp.clip(edge, 0, num_edges - 1)
                sender, receiver = self.senders[edge], self.receivers[edge]
                source, sink = (receiver, sender) if backward else (sender, receiver)
                part = jnp.where(through[receiver], factor[receiver] * y[source] / count[sender], 0)
                # A trace that has no more edges writes out of range, where nothing is kept.
                return y.at[jnp.where(at < edges, sink, n)].add(part.astype(y.dtype), mode="drop")

            return side_by_side(self.edges, num_edges, step, start)

        solved: jax.Array = jax.lax.custom_linear_solve(
            lambda y: y - mean(kept(y)),
            mean(addend),
            solve=lambda _, start: sweep(start, backward=True),
            transpose_solve=lambda _, start: sweep(start, backward=False),
        )
        return solved

    def arriving(self, step: jax.Array, outcome: jax.Array) -> jax.Array:
        """What arrives at each event and on the way to the next action; the outcome at ends: all float [E]."""
        here = step + jnp.where(self.ends, outcome, jnp.zeros_like(outcome))
        return here + self.following(jnp.zeros_like(here), here)

    def following(self, values: jax.Array, passing: jax.Array | None = None) -> jax.Array:
        """The mean over walks of the value at the next action, 0 where there is none: float [E].

        Args:
          passing: float [E], what is added at each event that is no such action and is passed on the way.
        """
        between = jnp.zeros_like(values) if passing is None else passing
        return self.ahead(jnp.ones_like(values), jnp.where(self.row, values, between), ~self.row)

    def backward(self, factor: jax.Array, addend: jax.Array) -> jax.Array:
        """y = factor · (the mean over walks of y at the next action) + addend at actions, 0 elsewhere: float [E]."""
        zero = jnp.zeros_like(addend)
        by_event = jnp.where(self.row, factor, jnp.ones_like(factor))
        ahead = self.ahead(by_event, jnp.where(self.row, addend, zero), jnp.ones_like(self.row))
        return jnp.where(self.row, factor * ahead + addend, zero)

    def reaches(self, flagged: jax.Array) -> jax.Array:
        """Whether an action is flagged or a walk from it meets a flagged one: bool [E], False at other events."""
        amount = jnp.where(flagged, 1.0, 0.0).astype(self.successors.dtype)
        return self.backward(jnp.ones_like(amount), amount) > 0


def walks(graph: EventGraph, rows: Array) -> Walks:
    """The walks of a batch, for the actions `rows`, bool [E]; edges of every type count, and each pair once.

    Examples:
      >>> import credit
      >>> from estimators.sequence.causal import walks
      >>> graph, reward, rows = credit.from_columns(group=[0], trace=["a"], reward=[1.0])
      >>> walks(graph, graph.action_mask).ends[:1].tolist()
      [True]
    """
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    edge_mask = jnp.asarray(graph.edge_mask)
    senders = jnp.where(edge_mask, jnp.asarray(graph.senders), n)
    receivers = jnp.where(edge_mask, jnp.asarray(graph.receivers), n)
    order = stable_order(receivers, senders)
    senders, receivers = senders[order], receivers[order]
    again = (senders[1:] == senders[:-1]) & (receivers[1:] == receivers[:-1])
    real = (senders < n) & ~jnp.concatenate([jnp.zeros(1, bool), again])
    place = stable_order(~real)  # repetitions behind the others, which stay in order
    senders, receivers, real = (x[place] for x in (senders, receivers, real))
    senders, receivers = jnp.where(real, senders, 0), jnp.where(real, receivers, 0)
    edges = segment_count(trace[senders], graph.num_traces, real, jnp.int32)
    size = segment_count(trace, graph.num_traces, jnp.asarray(graph.event_mask), jnp.int32)
    return Walks(
        senders=senders,
        receivers=receivers,
        real=real,
        last=jnp.cumsum(edges, dtype=jnp.int32),
        edges=edges,
        successors=segment_count(senders, n, real),
        row=jnp.asarray(rows),
        known_order=((edges > 0) | (size < 2))[trace],
    )
