"""Recursions along sequences of events, over the flat batch: scans of blocks, no loop over events or traces.

A chain is a sequence of some events ("rows") of one trace, or of one agent instance, in log order. Events between them
are passed over.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import check_event_array
from estimators.sequence.suffix_recursion import suffix_recursion
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, segment_count, segment_first, segment_sum
from graphs.stable_order import stable_order
from graphs.turn_ends import ends_of_turns, nearest

__all__ = [
    "Along",
    "Chains",
    "chains",
    "linked",
    "rewards_of_turns",
    "several_at_once",
    "values_of_turns",
]

Along = Literal["trace", "agent"]


class Chains(NamedTuple):
    """Events in the order of chains; arrays [E], at the place that each event has there.

    Attributes:
      order: int32, the event at each place; None where events stand in that order already.
      chain: int32, the chain's id; the places of a chain are contiguous.
      row: bool, whether the event is a member of its chain.
      after: int32, the place of the next member behind each place of its chain; E where there is none.
    """

    order: jax.Array | None
    chain: jax.Array
    row: jax.Array
    after: jax.Array

    @property
    def last(self) -> jax.Array:
        """bool [E], whether the event is the last member of its chain."""
        return self.row & (self.after == self.row.shape[0])

    def take(self, values: Array) -> jax.Array:
        """An array per event, in the order of chains."""
        array: jax.Array = jnp.asarray(values)
        return array if self.order is None else array[self.order]

    def back(self, values: jax.Array) -> jax.Array:
        """The reverse of `take`."""
        return values if self.order is None else jnp.zeros_like(values).at[self.order].set(values)

    def backward(self, factor: jax.Array, addend: jax.Array, end: float = 0.0) -> jax.Array:
        """y_t = factor_t y_{t+1} + addend_t over the members of each chain, with `end` behind the last; 0 elsewhere."""
        addend = addend + jnp.where(self.last, factor * end, jnp.zeros_like(addend))
        followed = self.after < self.row.shape[0]
        between = jnp.where(followed, jnp.ones_like(factor), jnp.zeros_like(factor))
        y = suffix_recursion(
            jnp.where(self.row & followed, factor, between), jnp.where(self.row, addend, jnp.zeros_like(addend))
        )
        return jnp.where(self.row, y, jnp.zeros_like(y))

    def backward_alike(self, factor: jax.Array, addend: jax.Array) -> jax.Array:
        """`backward`, to the same bits for the same members, wherever they stand; 0 behind the last.

        `backward` rounds by the blocks in which the members lie. Two traces of equal rewards then differ in the last
        bits, and a spread of such returns is no 0 that a method can divide by. Takes log2(longest chain) passes.
        """
        return jnp.where(self.row, _backward_alike(self, factor, addend), jnp.zeros_like(addend))

    def following(self, values: jax.Array, end: float | int = 0) -> jax.Array:
        """The value at the next member of the chain, `end` at the last one; 0 where the event is no member."""
        behind = values.at[self.after].get(mode="fill", fill_value=end)
        return jnp.where(self.row, behind, jnp.zeros_like(values))

    def reaches(self, flagged: jax.Array) -> jax.Array:
        """Whether a member is flagged or a later one of its chain is: bool [E], False where the event is no member."""
        return self.row & (nearest(self.chain, self.row & flagged) < self.row.shape[0])

    def gathered(self, values: jax.Array, where: jax.Array) -> jax.Array:
        """At each member, the sum of `values` over all events from it to before the next member; 0 elsewhere."""
        n = self.row.shape[0]
        owner = jax.lax.cummax(jnp.where(self.row, jnp.arange(n, dtype=jnp.int32), -1))
        owned = (owner >= 0) & (self.chain[owner] == self.chain) & where
        return segment_sum(values, jnp.where(owned, owner, 0), n, owned)


@jax.custom_jvp
def _backward_alike(path: Chains, factor: jax.Array, addend: jax.Array) -> jax.Array:
    """Each member looks at the next one, then two ahead, four ahead: its y is a function of its distance to the end."""
    n = path.row.shape[0]

    def double(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        a, y, ahead = state
        followed = ahead < n
        y = y + jnp.where(followed, a * y.at[ahead].get(mode="fill", fill_value=0), jnp.zeros_like(y))
        a = a * a.at[ahead].get(mode="fill", fill_value=0)
        return a, y, ahead.at[ahead].get(mode="fill", fill_value=n)

    alone = factor, jnp.where(path.row, addend, jnp.zeros_like(addend)), jnp.where(path.row, path.after, n)
    return jax.lax.while_loop(lambda state: jnp.any(state[2] < n), double, alone)[1]


@_backward_alike.defjvp
def _backward_alike_jvp(
    primals: tuple[Chains, jax.Array, jax.Array], tangents: tuple[Chains, jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    path, factor, addend = primals
    _, factor_dot, addend_dot = tangents
    y = _backward_alike(path, factor, addend)
    return y, path.backward(factor, addend_dot + factor_dot * path.following(y))


def linked(chain: jax.Array, row: jax.Array, order: jax.Array | None = None) -> Chains:
    """Chains of ids in order: int32 [E], contiguous wherever there are members; bool [E], the members.

    Examples:
      >>> import jax.numpy as jnp
      >>> linked(jnp.array([0, 0, 0, 1]), jnp.array([True, False, True, True])).after.tolist()
      [2, 2, 4, 4]
    """
    following = nearest(chain, row)
    none = jnp.full(1, row.shape[0], following.dtype)
    behind = jnp.concatenate([following[1:], none])
    goes_on = jnp.concatenate([chain[1:] == chain[:-1], jnp.zeros(1, bool)])
    return Chains(order, chain, row, jnp.where(goes_on, behind, none))


def chains(graph: EventGraph, rows: Array, along: Along = "trace") -> Chains:
    """The chains of the events in `rows` (bool [E], real events only), along traces or agent instances.

    Args:
      graph: the batch.
      rows: bool [E], the members of chains.
      along: "trace", all members of a trace in log order; "agent", those of one agent instance.

    Raises:
      CreditError: `along` is neither "trace" nor "agent".

    Examples:
      >>> import credit, numpy as np
      >>> from estimators.sequence.chains import chains
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0])
      >>> path = chains(graph, graph.action_mask)
      >>> path.backward(np.full(128, 0.5, np.float32), np.ones(128, np.float32))[:2].tolist()
      [1.5, 1.0]
    """
    if along == "trace":
        return linked(jnp.asarray(graph.trace_ids), jnp.asarray(rows))
    if along == "agent":
        chain = jnp.asarray(graph.agent_ids)
        order = stable_order(chain, ~jnp.asarray(graph.event_mask))
        return linked(chain[order], jnp.asarray(rows)[order], order)
    raise CreditError(f"along is {along!r}; expected 'trace' or 'agent'")


def rewards_of_turns(graph: EventGraph, event_reward: Array) -> jax.Array:
    """Rewards at events as what reads rewards to go counts them, float [E]: all of a joint turn at its last action.

    The agents of a joint turn act at once, so that each has a part in all of its rewards. Rewards are as they are where
    `joint_mask` is None.

    Raises:
      CreditError: wrong shape or dtype.
    """
    earned = check_event_array(graph, "event_reward", event_reward)[0]
    if graph.joint_mask is None:
        return earned
    return segment_sum(earned, ends_of_turns(graph), graph.num_events, jnp.asarray(graph.event_mask))


def several_at_once(graph: EventGraph, row: jax.Array) -> jax.Array:
    """Which of the events `row`, bool [E], stand in a joint turn in which several agents have one: bool [E].

    Each of them changed what is expected, and the log has the change by all together alone.
    """
    if graph.joint_mask is None:
        return jnp.zeros_like(row)
    n, turn, agent = graph.num_events, ends_of_turns(graph), jnp.asarray(graph.agent_ids)
    others = row & (agent != agent[segment_first(turn, n, row)[turn]])
    return row & (segment_count(turn, n, others, jnp.int32) > 0)[turn]


def values_of_turns(
    graph: EventGraph, at_once: jax.Array, value: jax.Array, known: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Values of states, float [E], with one of each joint turn of several agents, the mean; known where all are.

    Args:
      graph: the batch.
      at_once: bool [E], of `several_at_once`.
      value, known: [E], of the state before each action, and whether it is known.
    """
    if graph.joint_mask is None:
        return value, known
    n, turn = graph.num_events, ends_of_turns(graph)
    first = value[segment_first(turn, n, at_once)][turn]
    count = segment_count(turn, n, at_once, value.dtype)
    mean = first + safe_divide(segment_sum(value - first, turn, n, at_once), count)[turn]
    unknown = segment_count(turn, n, at_once & ~known, jnp.int32) > 0
    return jnp.where(at_once, mean, value), jnp.where(at_once, ~unknown[turn], known)
