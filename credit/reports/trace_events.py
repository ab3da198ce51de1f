"""The events of one trace as rows for people: agent, type, tool, status, tokens, causes and text of each."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable

import numpy as np

from credit.reports.event_texts import event_texts
from graphs.event_graph import EdgeType, EventType
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models

__all__ = ["EventRow", "event_rows"]


@dataclasses.dataclass(frozen=True)
class EventRow:
    """One event.

    Attributes:
      position: its place within the trace, from 0.
      event: its id in the log.
      agent, name, role: who it belongs to: the id of the instance, its name and its role.
      type: a name of `EventType`.
      action: whether a policy of the team chose it.
      tool: name of the tool; None where the log has none.
      status: its status in the log; None where absent.
      model: that chose it (`event_models`); "" where that is not known, and of what no policy chose.
      tokens: tokens that it generated; None where the log does not state it.
      causes: positions and types of the events that led to it.
      line: line of its record, 0 where the format has no lines.
      text: an excerpt of what it said or did, without control characters; "" where the log's record holds none.
    """

    position: int
    event: str
    agent: str
    name: str
    role: str
    type: str
    action: bool
    tool: str | None
    status: str | None
    model: str
    tokens: int | None
    causes: tuple[tuple[int, str], ...]
    line: int
    text: str

    @property
    def who(self) -> str:
        """The agent's name, with its id where that is another."""
        return self.agent if self.name == self.agent else f"{self.name} {self.agent}"


def event_rows(
    traces: Traces, trace: int | str, positions: Iterable[int] | None = None, *, limit: int = 200
) -> list[EventRow]:
    """Events of one trace as rows.

    Args:
      traces: what was read.
      trace: the row or the id of a trace.
      positions: places within the trace; by default all.
      limit: length of the excerpts of text; 0 reads no file again.

    Raises:
      CreditError: no such trace.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> [row] = event_rows(rows.traces, "a")
      >>> row.agent, row.type, row.action
      ('planner', 'message', True)
    """
    index, graph = traces.index(trace), traces.graph
    rows = np.flatnonzero(np.asarray(graph.event_mask) & (np.asarray(graph.trace_ids) == index))
    chosen = range(len(rows)) if positions is None else list(positions)
    events = rows[list(chosen)]
    columns = {name: traces.events[name].take(events).to_pylist() for name in ("event", "tool", "status", "line")}
    agents = traces.agents.take(np.asarray(graph.agent_ids)[events]).to_pylist()
    models, model = event_models(traces)
    tokens = traces.evidence.get("tokens")
    amounts = None if tokens is None else tokens.array[events]
    texts = event_texts(traces, events, limit) if limit else [""] * len(events)
    causes = _causes(traces, int(rows[0]) if len(rows) else 0, set(events.tolist()))
    return [
        EventRow(
            position=position,
            event=columns["event"][i],
            agent=agents[i]["agent"],
            name=agents[i]["name"],
            role=agents[i]["role"],
            type=EventType(int(graph.event_type[events[i]])).name.lower(),
            action=bool(graph.action_mask[events[i]]),
            tool=columns["tool"][i],
            status=columns["status"][i],
            model=models[model[events[i]]] if graph.action_mask[events[i]] else "",
            tokens=None if amounts is None or amounts[i] < 0 else int(amounts[i]),
            causes=causes.get(int(events[i]), ()),
            line=columns["line"][i] or 0,
            text=texts[i],
        )
        for i, position in enumerate(chosen)
    ]


def _causes(traces: Traces, first: int, wanted: set[int]) -> dict[int, tuple[tuple[int, str], ...]]:
    """The edges into events, as positions within the trace that begins at row `first`."""
    graph = traces.graph
    edges = np.flatnonzero(np.asarray(graph.edge_mask) & np.isin(np.asarray(graph.receivers), list(wanted)))
    columns = (np.asarray(ids)[edges].tolist() for ids in (graph.receivers, graph.senders, graph.edge_type))
    causes = collections.defaultdict[int, list[tuple[int, str]]](list)
    for receiver, sender, kind in zip(*columns, strict=True):
        causes[receiver].append((sender - first, EdgeType(kind).name.lower()))
    return {receiver: tuple(senders) for receiver, senders in causes.items()}
