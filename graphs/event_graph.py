"""The event graph: what happened in a batch of traces, as arrays.

One `EventGraph` holds a whole batch in flat arrays: the events of all traces are concatenated, and ids assign each
event to its trace, agent and turn (the layout of jraph). Group baselines compare traces with each other, which a `vmap`
over traces does not allow. A trace of 10 events and one of 10,000 share a batch without waste.

Legend, used in every docstring of this library:

    E events      K edges      A agent instances      T traces      N rows of a trainer      L tokens of a row

Five nested levels, each an id per event: trace > role > agent > turn > event. A role is a property of an agent
instance; an agent instance lives in one trace; a turn is what one agent instance does between being activated and
handing over. Names differ from instances: the agent *name* "solver" occurs in many traces, the agent *instance* "solver
in trace 7" in one. `graphs.levels` turns both into ids.

Padding. Every array may be longer than its content; the masks mark the content. Padded rows have id 0 and mask False,
padded edges run 0 -> 0, and an id never lies outside its array. The lengths of the arrays therefore serve as
`num_segments`, and no function needs a `num_groups` argument.

Order. Events of a trace are contiguous. Position is the order; `time` is not, because clocks of logs may be absent,
equal or run backwards. Every edge runs forward. `trace_ids` does not decrease over the real events.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from graphs.event_types import ACTION_TYPES, KINDS, EdgeType, EventType
from graphs.when_imported import when_imported

if TYPE_CHECKING:
    import jax

__all__ = ["ACTION_TYPES", "KINDS", "Array", "EdgeType", "EventGraph", "EventType"]

Array = Any  # a jax.Array, a NumPy array, or a tracer: kernels take all three


@dataclasses.dataclass(frozen=True)
class EventGraph:
    """Events, edges, agent instances and traces of one batch.

    The class is a dataclass registered with JAX: it passes through `jit`, `vmap` and `device_put`. It holds no strings,
    because a string in an argument of a compiled function compiles it again for each batch. Strings are in
    `graphs.traces.batch.Traces`.

    Attributes:
      event_type: int32 [E], an `EventType`.
      action_mask: bool [E], True where a policy of the team chose the event; False for events of the environment (tool
        results, returned text, simulated users, system) and for effects of a logged model call.
      event_mask: bool [E], True for real events, False for padding.
      time: float32 [E], seconds since the trace's first time stamp; NaN where the log has none. Never an order.
      trace_ids: int32 [E], in [0, T); does not decrease over real events.
      agent_ids: int32 [E], in [0, A): the agent instance the event belongs to.
      turn_ids: int32 [E], in [0, E): the turn, unique within the batch.
      senders: int32 [K], in [0, E): position of the cause.
      receivers: int32 [K], in [0, E): position of the effect; greater than `senders` on every real edge.
      edge_type: int32 [K], an `EdgeType`.
      edge_mask: bool [K].
      agent_name_ids: int32 [A], in [0, A): the name, shared across traces.
      agent_role_ids: int32 [A], in [0, A): the role's name, shared across traces.
      agent_parent: int32 [A], in [0, A): the instance that spawned this one; a root is its own parent.
      agent_trace: int32 [A], in [0, T).
      agent_mask: bool [A].
      group_ids: int32 [T], in [0, T): the task; traces of one task form a group.
      trace_mask: bool [T].
      cluster_ids: int32 [T], in [0, T): traces that share a choice, such as replays of one trace, share an id; None
        where every trace was sampled independently.
      trainable_mask: bool [E], False at events of agents that are not trained (frozen sub-agents, judges); None where
        all agents are trained. Methods give frozen agents no advantage and take no statistics from their actions. To
        include them, pass `dataclasses.replace(graph, trainable_mask=None)`.
      joint_mask: bool [E], True at events of a joint turn before its last action, where what is read as rewards to go
        counts their rewards (`graphs.joint_rewards`); None where there is none.

    Examples:
      >>> import credit
      >>> graph, _, _ = credit.from_columns(group=[0, 0, 0], trace=["a", "a", "b"], reward=[1.0, 1.0, 0.0], events=4)
      >>> graph.event_mask.tolist(), graph.trace_ids[:3].tolist(), graph.num_events
      ([True, True, True, False], [0, 0, 1], 4)
    """

    event_type: Array
    action_mask: Array
    event_mask: Array
    time: Array
    trace_ids: Array
    agent_ids: Array
    turn_ids: Array
    senders: Array
    receivers: Array
    edge_type: Array
    edge_mask: Array
    agent_name_ids: Array
    agent_role_ids: Array
    agent_parent: Array
    agent_trace: Array
    agent_mask: Array
    group_ids: Array
    trace_mask: Array
    cluster_ids: Array | None = None
    trainable_mask: Array | None = None
    joint_mask: Array | None = None

    @property
    def trained_mask(self) -> jax.Array:
        """bool [E]: actions of policies in training, `action_mask` where `trainable_mask` is None."""
        import jax.numpy as jnp  # not by the module: a process that only reads logs starts without JAX

        mask: jax.Array = jnp.asarray(self.action_mask)
        return mask if self.trainable_mask is None else mask & jnp.asarray(self.trainable_mask)

    @property
    def num_events(self) -> int:
        """E, padding included."""
        return int(self.event_mask.shape[0])

    @property
    def num_edges(self) -> int:
        """K, padding included."""
        return int(self.edge_mask.shape[0])

    @property
    def num_agents(self) -> int:
        """A, padding included."""
        return int(self.agent_mask.shape[0])

    @property
    def num_traces(self) -> int:
        """T, padding included."""
        return int(self.trace_mask.shape[0])


def _register() -> None:
    import jax

    jax.tree_util.register_dataclass(EventGraph)


when_imported("jax", _register)

EVENT_FIELDS = (
    "event_type",
    "action_mask",
    "event_mask",
    "time",
    "trace_ids",
    "agent_ids",
    "turn_ids",
)
EDGE_FIELDS = ("senders", "receivers", "edge_type", "edge_mask")
AGENT_FIELDS = ("agent_name_ids", "agent_role_ids", "agent_parent", "agent_trace", "agent_mask")
TRACE_FIELDS = ("group_ids", "trace_mask")
