"""Division of a batch into parts of whole groups, one for each device or worker, and joining of results.

Traces of a group are compared with each other and with no others, so most methods need nothing from another part. The
cut runs on the host, because the shapes of the parts depend on the data.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterator

import jax
import numpy as np

from graphs.errors import CreditError, expect
from graphs.event_graph import AGENT_FIELDS, EDGE_FIELDS, EVENT_FIELDS, Array, EventGraph
from graphs.padding import Sizes, bucket, pad, sizes

__all__ = ["WholeGroups", "cut_groups"]


@dataclasses.dataclass(frozen=True)
class WholeGroups:
    """D parts of a batch; every group is in one part, and traces, events and edges keep their order in it.

    Attributes:
      graph: the parts, an `EventGraph` whose arrays have a leading axis D; each part is padded to the same sizes. Its
        ids count from 0 in each part, and name, role and group labels are renumbered in their order.
      events: int32 [D, E'], the position in the batch of each event of a part; -1 in padding.
      traces: int32 [D, T'], likewise for traces.
      num_events, num_traces: E and T of the batch, padding included.
    """

    graph: EventGraph
    events: np.ndarray
    traces: np.ndarray
    num_events: int
    num_traces: int

    @property
    def num_parts(self) -> int:
        """D."""
        return len(self.events)

    def split_events(self, values: Array, *, ids: bool = False) -> np.ndarray:
        """An array over the events of the batch, [E, ...], by parts: [D, E', ...].

        Padding is NaN in arrays of floats, -1 in ids, and 0 or False in other arrays.

        Args:
          values: [E, ...].
          ids: whether the values are ids, which are renumbered from 0 in each part; -1 stays.

        Raises:
          CreditError: `values` has not one row for each event.
        """
        return self._split("events", values, self.events, self.num_events, ids)

    def split_traces(self, values: Array, *, ids: bool = False) -> np.ndarray:
        """An array over the traces of the batch, [T, ...], by parts: [D, T', ...]; see `split_events`."""
        return self._split("traces", values, self.traces, self.num_traces, ids)

    def join_events(self, values: Array, fill: float = 0) -> np.ndarray:
        """An array over the events of the parts, [D, E', ...], in the order of the batch: [E, ...].

        Args:
          values: [D, E', ...].
          fill: value of padding.
        """
        return _join(values, self.events, self.num_events, fill)

    @staticmethod
    def _split(axis: str, values: Array, places: np.ndarray, length: int, ids: bool) -> np.ndarray:
        array = np.asarray(values)
        if array.shape[:1] != (length,):
            raise CreditError(f"an array over the {axis} has shape {array.shape}; expected a first axis of {length}")
        fill = -1 if ids else np.nan if np.issubdtype(array.dtype, np.inexact) else 0
        real = places >= 0
        mask = real.reshape(*real.shape, *[1] * (array.ndim - 1))
        parts = np.where(mask, array[np.where(real, places, 0)], np.asarray(fill, array.dtype))
        return np.stack([_from_zero(part) for part in parts]) if ids else parts


def cut_groups(graph: EventGraph, parts: int) -> WholeGroups:
    """Cut a batch into parts of whole groups that hold about the same number of events.

    The largest group goes first, each to the part with the fewest events so far. A part may be empty. All parts have
    the sizes that `graphs.padding.bucket` gives for the largest, so that other batches can share their compilation.

    Args:
      graph: the batch; NumPy or JAX arrays.
      parts: D, 1 or more.

    Raises:
      CreditError: `parts` is below 1.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q", "q", "r"], trace=[0, 1, 2], reward=[1.0, 0.0, 0.5])
      >>> from graphs.structure.whole_groups import cut_groups
      >>> cut = cut_groups(graph, 2)
      >>> cut.split_traces(reward)[:, :2].tolist()
      [[1.0, 0.0], [0.5, nan]]
    """
    expect("graph", graph, EventGraph, "an EventGraph, such as traces.graph")
    if isinstance(parts, bool) or not isinstance(parts, int) or parts < 1:
        raise CreditError(f"parts is {parts!r}; expected a whole number of parts, 1 or more")
    host = jax.tree.map(np.asarray, graph)
    part_of_trace = _part_of_trace(host, parts)
    rows = [_Rows.of_part(host, part_of_trace == part) for part in range(parts)]
    graphs = [taken.graph(host) for taken in rows]
    to = Sizes(*(max(axis) for axis in zip(*(bucket(sizes(part)) for part in graphs), strict=True)))
    padded = [pad(part, to) for part in graphs]
    return WholeGroups(
        jax.tree.map(lambda *leaves: np.stack(leaves), *padded),
        np.stack([_places(taken.events, to.events) for taken in rows]),
        np.stack([_places(taken.traces, to.traces) for taken in rows]),
        graph.num_events,
        graph.num_traces,
    )


def _part_of_trace(graph: EventGraph, parts: int) -> np.ndarray:
    """The part of each trace, int [T]; -1 in padding."""
    events = np.bincount(graph.trace_ids[graph.event_mask], minlength=graph.num_traces)
    of_group = np.bincount(graph.group_ids[graph.trace_mask], events[graph.trace_mask], minlength=graph.num_traces)
    groups = np.unique(graph.group_ids[graph.trace_mask])
    part_of_group = np.zeros(graph.num_traces, np.int64)
    load = [(0.0, part) for part in range(parts)]
    for group in groups[np.argsort(-of_group[groups], kind="stable")]:
        held, part = heapq.heappop(load)
        part_of_group[group] = part
        heapq.heappush(load, (held + of_group[group], part))
    return np.where(graph.trace_mask, part_of_group[graph.group_ids], -1)


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Positions in the batch of what a part takes, in their order."""

    events: np.ndarray
    edges: np.ndarray
    agents: np.ndarray
    traces: np.ndarray

    @classmethod
    def of_part(cls, graph: EventGraph, trace_mask: np.ndarray) -> _Rows:
        events = graph.event_mask & trace_mask[graph.trace_ids]
        edges = graph.edge_mask & events[graph.senders]
        agents = graph.agent_mask & trace_mask[graph.agent_trace]
        return cls(*(np.flatnonzero(mask) for mask in (events, edges, agents, trace_mask)))

    def graph(self, batch: EventGraph) -> EventGraph:
        """The part without padding: ids that are positions follow their rows, labels count from 0."""
        place = {
            "event": _new_places(self.events, batch.num_events),
            "agent": _new_places(self.agents, batch.num_agents),
            "trace": _new_places(self.traces, batch.num_traces),
        }
        points_at = {
            **dict.fromkeys(("senders", "receivers"), "event"),
            **dict.fromkeys(("agent_ids", "agent_parent"), "agent"),
            **dict.fromkeys(("trace_ids", "agent_trace"), "trace"),
        }
        labels = ("turn_ids", "agent_name_ids", "agent_role_ids", "group_ids", "cluster_ids")
        arrays = {name: getattr(batch, name)[taken] for name, taken in self._fields(batch)}
        for name, values in arrays.items():
            if name in points_at:
                arrays[name] = place[points_at[name]][values]
            elif name in labels:
                arrays[name] = _from_zero(values)
        return EventGraph(**arrays)

    def _fields(self, batch: EventGraph) -> Iterator[tuple[str, np.ndarray]]:
        axes = (
            (self.events, (*EVENT_FIELDS, "trainable_mask", "joint_mask")),
            (self.edges, EDGE_FIELDS),
            (self.agents, AGENT_FIELDS),
            (self.traces, ("group_ids", "trace_mask", "cluster_ids")),
        )
        for taken, names in axes:
            for name in names:
                if getattr(batch, name) is not None:
                    yield name, taken


def _new_places(taken: np.ndarray, length: int) -> np.ndarray:
    """For each position of the batch its position in the part, int32; 0 where the part does not hold it."""
    places = np.zeros(length, np.int32)
    places[taken] = np.arange(len(taken), dtype=np.int32)
    return places


def _places(taken: np.ndarray, length: int) -> np.ndarray:
    places = np.full(length, -1, np.int32)
    places[: len(taken)] = taken
    return places


def _from_zero(ids: np.ndarray) -> np.ndarray:
    """The same ids renumbered from 0 in their order; -1 stays -1."""
    real = ids >= 0
    renumbered = np.full_like(ids, -1)
    renumbered[real] = np.unique(ids[real], return_inverse=True)[1]
    return renumbered


def _join(values: Array, places: np.ndarray, length: int, fill: float) -> np.ndarray:
    array, real = np.asarray(values), places >= 0
    joined = np.full((length, *array.shape[2:]), fill, array.dtype)
    joined[places[real]] = array[real]
    return joined
