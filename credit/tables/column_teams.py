"""The team of a batch of rows: agent instances with their names, roles and parents."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from credit.tables.column_values import ColumnError, as_ids, factorise, named, renumber
from credit.tables.row_segments import Segments
from graphs.text import excerpt

__all__ = ["Team", "team_of_rows"]


@dataclasses.dataclass(frozen=True)
class Team:
    """The agent instances of a batch, A of them, numbered by first appearance.

    Attributes:
      by_agent: their rows, in the order of events.
      name_ids, role_ids: of each instance, [A].
      parents: the instance that spawned each, itself where none did, [A].
      distinct_names, distinct_roles: what `name_ids` and `role_ids` number; None where all are called "agent", and
        where roles are names.
    """

    by_agent: Segments
    name_ids: np.ndarray
    role_ids: np.ndarray
    parents: np.ndarray
    distinct_names: pa.Array | None
    distinct_roles: pa.Array | None

    @functools.cached_property
    def names(self) -> pa.Array:
        """The name of each instance, as text: few batches of a trainer are asked for it."""
        if self.distinct_names is None:
            return pa.repeat("agent", len(self.name_ids))
        return self.distinct_names.take(pa.array(self.name_ids)).cast(pa.string())

    @functools.cached_property
    def roles(self) -> pa.Array:
        """The role of each instance, as text."""
        if self.distinct_roles is None:
            return self.names
        return self.distinct_roles.take(pa.array(self.role_ids)).cast(pa.string())


def team_of_rows(agent: Any, role: Any, parent: Any, instance: Any, by_trace: Segments) -> Team:
    """The instances of a batch: rows of one agent name, and of one `instance`, in one trace.

    Args:
      agent, role, parent, instance: columns of `credit.from_columns`, or None.
      by_trace: the rows, split into traces.

    Raises:
      ColumnError: a column cannot be used; an instance has two roles or parents; a parent is no agent of the trace, or
        descends from its child; parents are stated, and a name may stand for several instances.
    """
    n, order, trace_ids = len(by_trace.order), by_trace.order, by_trace.ids
    codes, names = (np.zeros(n, np.int64), None) if agent is None else named("agent", agent, n)
    name_ids = codes[order]
    width = int(name_ids.max()) + 1
    numbered, first = renumber(trace_ids * width + name_ids, by_trace.count * width)
    if instance is not None:
        if parent is not None:
            raise ColumnError("parent", [], "names agents, and with instance= a name may stand for several of them")
        copies, copy_names = factorise("instance", instance, n)
        wide = len(copy_names)
        numbered, first = renumber(numbered * wide + copies[order], (int(numbered.max()) + 1) * wide)
    name_of = name_ids[first]
    by_agent = Segments("agent", numbered, first, order, lambda i: None if names is None else names[name_of[i]])
    role_ids, role_names = name_of, None
    if role is not None:
        role_codes, role_names = named("role", role, n)
        role_ids = by_agent.constant("role", role_codes[order], "an agent has one role within a trace")
    parents = np.arange(by_agent.count)
    if parent is not None:
        if names is None:
            raise ColumnError("parent", [], "names agents, and there is no agent= column")
        parents = _parents(parent, names, trace_ids, name_ids, first, by_agent)
    return Team(by_agent, name_of, role_ids, parents, names, role_names)


def _parents(
    parent: Any, names: pa.Array, trace_ids: np.ndarray, name_ids: np.ndarray, first: np.ndarray, by_agent: Segments
) -> np.ndarray:
    """The instance that spawned each instance, itself where none did: [A]."""
    array = as_ids("parent", parent, len(trace_ids))
    present = array.is_valid().to_numpy(zero_copy_only=False)
    codes = np.full(len(present), -1)
    if present.any():
        words, distinct = factorise("parent", array.filter(pa.array(present)))
        if pa.types.is_integer(distinct.type) != pa.types.is_integer(names.type):
            problem = f"names agents by {distinct.type}, column 'agent' by {names.type}; expected one kind"
            raise ColumnError("parent", np.flatnonzero(present), problem)
        texts, of_agents = (ids.cast(pa.large_string()) for ids in (distinct, names))
        known = pc.index_in(texts, value_set=of_agents).fill_null(-2).to_numpy(zero_copy_only=False)
        codes[present] = known[words]
    spawner = by_agent.constant("parent", codes[by_agent.order], "an agent has one parent within a trace")
    width = len(names)
    keys = trace_ids[first] * width + name_ids[first]  # of instances
    order = np.argsort(keys)
    wanted = trace_ids[first] * width + spawner
    spawner_row = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    stranger = (spawner != -1) & ((spawner < 0) | (keys[spawner_row] != wanted))
    if stranger.any():
        row = int(by_agent.order[first[np.argmax(stranger)]])
        raise ColumnError("parent", [row], f"{excerpt(array[row].as_py())} is no agent of the row's trace")
    parents = np.where(spawner == -1, np.arange(len(first)), spawner_row)
    above = parents
    for _ in range(len(first).bit_length()):  # twice as far each time: from every agent that has one, a root is reached
        above = above[above]
    circular = parents[above] != above
    if circular.any():
        row = by_agent.order[first[circular]]
        raise ColumnError("parent", row, "agents spawned each other in a circle; a main agent has no parent")
    return parents
