"""Conversion of event graphs to NetworkX and back, one trace at a time.

The round trip is exact: `assemble([from_networkx(to_networkx(traces.graph, traces, i))])` has the events, edges,
agents, turns, evidence and strings of trace i in the same order. Ids that are labels (names, roles, contexts) are
renumbered by first appearance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import ACTION_TYPES, EdgeType, EventGraph, EventType
from graphs.structure.prefix import select_trace
from graphs.text import excerpt
from graphs.traces.record import Agent, TraceRecord
from graphs.traces.schema import EVENT_EVIDENCE, TEXT_COLUMNS, TRACE_EVIDENCE

if TYPE_CHECKING:
    import networkx as nx

    from graphs.traces.batch import Traces

__all__ = ["from_networkx", "to_networkx"]

FAMILIES = ("rewards", "costs", "metrics")


def to_networkx(graph: EventGraph, traces: Traces | None = None, trace: int | str = 0) -> nx.MultiDiGraph:
    """One trace as a NetworkX graph, with a node for each event and an edge from each cause to its effect.

    Nodes are event ids in log order; without `traces` they are positions in the trace, as text. Node attributes are
    position, type (name), agent, action, turn, time where known, and the event's evidence, text and place in the file.
    Edge keys number the trace's edges, because two edges may join the same events. The edge attribute is type (name).
    Graph attributes are trace, group and agents ({instance: {name, role, parent}}); with `traces` also the trace's
    place in the file, rewards, costs, metrics and evidence.

    Args:
      graph: a batch.
      traces: the batch that `graph` belongs to, for strings and evidence, from which `joint_mask` and the like follow.
      trace: index of the trace, or its id where `traces` is given.

    Raises:
      CreditError: the trace does not exist.
    """
    import networkx as nx

    if traces is not None:
        index = traces.index(trace)
    elif isinstance(trace, str):
        raise CreditError(f"trace is {trace!r}; expected an index, because only `traces` has ids")
    else:
        index = trace
    only = select_trace(graph, index)
    events, agents = np.flatnonzero(only.event_mask), np.flatnonzero(only.agent_mask)
    first = int(events[0]) if len(events) else 0
    if traces is None:
        ids = [str(i) for i in range(len(events))]
        labels = {int(a): str(i) for i, a in enumerate(agents)}
        names = {
            int(a): {"name": f"name {only.agent_name_ids[a]}", "role": f"role {only.agent_role_ids[a]}"} for a in agents
        }
    else:
        ids = traces.events["event"].slice(first, len(events)).to_pylist()
        rows = {
            int(a): {name: traces.agents[name][int(a)].as_py() for name in ("agent", "name", "role")} for a in agents
        }
        labels = {a: row.pop("agent") for a, row in rows.items()}
        names = rows
    instances = {labels[a]: {**known, "parent": labels[int(only.agent_parent[a])]} for a, known in names.items()}
    out = nx.MultiDiGraph(trace=str(index), group=str(only.group_ids[index]), agents=instances)
    if traces is not None:
        out.graph.update(_of_trace(traces, index))
    turns = only.turn_ids[events] - (only.turn_ids[events].min() if len(events) else 0)
    columns: dict[str, list[Any]] = {
        "type": [EventType(t).name.lower() for t in only.event_type[events]],
        "agent": [labels[a] for a in only.agent_ids[events].tolist()],
        "action": only.action_mask[events].tolist(),
        "turn": turns.tolist(),
        "time": [None if math.isnan(t) else t for t in only.time[events].tolist()],
    }
    if traces is not None:
        columns |= _of_events(traces, first, len(events))
    for position, event_id in enumerate(ids):
        known = {name: column[position] for name, column in columns.items() if column[position] is not None}
        out.add_node(event_id, position=position, **known)
    edges = np.flatnonzero(only.edge_mask)
    for number, (s, r, kind) in enumerate(
        zip(only.senders[edges].tolist(), only.receivers[edges].tolist(), only.edge_type[edges].tolist(), strict=True)
    ):
        out.add_edge(ids[s - first], ids[r - first], key=number, type=EdgeType(kind).name.lower())
    return out


def from_networkx(graph: nx.DiGraph) -> TraceRecord:
    """A NetworkX graph as a trace record, for `graphs.traces.assembling.assemble`.

    The graph may come from `to_networkx` or from other code. A node needs the attributes `type` (a name of `EventType`)
    and `agent`. Optional node attributes are `action` (by default, whether the type is in `ACTION_TYPES`), `turn`,
    `time` and every key of `graphs.traces.schema`. An edge may have `type` (a name of `EdgeType`, by default "causal").
    Nodes are ordered by `position` where all have one, and otherwise by insertion; `assemble` puts causes first and
    refuses cycles. The graph needs the attribute `trace`, the id of the trace. Its attribute `task` defaults to
    `group`, and `group` to `trace`; `agents` describes instances; `rewards`, `costs`, `metrics` and `evidence` are
    numbers by name.

    Raises:
      CreditError: an attribute is missing or of the wrong kind; the message names the node and the attribute.
    """
    about = graph.graph
    trace_id = about.get("trace")
    if not isinstance(trace_id, str) or not trace_id:
        _refuse("the graph", "trace", trace_id, "a non-empty string")
    named = "task" if "task" in about else "group"
    record = TraceRecord(
        trace_id=trace_id,
        group_id=_text("the graph", named, about.get(named, trace_id)),
        model=_text("the graph", "model", about.get("model", "")),
        file=_text("the graph", "file", about.get("file", "")),
        line=_whole("the graph", "line", about.get("line", 0)),
        offset=_whole("the graph", "offset", about.get("offset", 0)),
        format=_text("the graph", "format", about.get("format", "networkx")),
        topology=_text("the graph", "topology", about.get("topology", "")),
        system=_text("the graph", "system", about.get("system", "")),
        task_kind=_text("the graph", "task_kind", about.get("task_kind", "")),
        instances=_agents(about.get("agents", {})),
        rewards=_numbers("rewards", about.get("rewards", {})),
        costs=_numbers("costs", about.get("costs", {})),
        metrics=_numbers("metrics", about.get("metrics", {})),
        evidence=_numbers("evidence", about.get("evidence", {})),
    )
    nodes = list(graph.nodes(data=True))
    if all(isinstance(node.get("position"), int) for _, node in nodes):
        nodes.sort(key=lambda item: item[1]["position"])
    place: dict[Any, int] = {}
    files, turns = [], []
    for key, node in nodes:
        where = f"node {key!r}"
        kind = _member(where, EventType, node.get("type"))
        action = node.get("action", kind in ACTION_TYPES)
        if not isinstance(action, bool):
            _refuse(where, "action", action, "True or False")
        place[key] = record.event(
            str(key),
            kind,
            _text(where, "agent", node.get("agent")),
            action=action,
            time=_number(where, "time", node.get("time", math.nan)),
            line=_whole(where, "line", node.get("line", record.line)),
            offset=_whole(where, "offset", node.get("offset", record.offset)),
            **_evidence(where, node),
        )
        files.append(_text(where, "file", node.get("file", record.file)))
        turns.append(node.get("turn"))
    record.files = files
    if turns and all(turn is not None for turn in turns):
        record.turns = turns
    for sender, receiver, kind in _edges(graph):
        record.edge(place[sender], place[receiver], kind)
    return record


def _of_trace(traces: Traces, index: int) -> dict[str, Any]:
    """Graph attributes of one trace: its row of the table, and its numbers by family."""
    row = {name: value for name, value in traces.traces.slice(index, 1).to_pylist()[0].items() if value is not None}
    numbers: dict[str, dict[str, float]] = {family: {} for family in (*FAMILIES, "evidence")}
    for name, evidence in traces.evidence.items():
        family, _, rest = name.partition(".")
        known = family in FAMILIES or name in TRACE_EVIDENCE
        amount = evidence.of_row(index) if known else None
        if amount is not None:
            numbers[family if family in FAMILIES else "evidence"][rest or name] = amount
    return row | numbers


def _of_events(traces: Traces, first: int, count: int) -> dict[str, list[Any]]:
    """Node attributes from the tables and evidence of `traces`: a list for each, None where the log has no value."""
    columns = {
        name: traces.events[name].slice(first, count).to_pylist()
        for name in ("file", "line", "offset", "time", "trusted", *TEXT_COLUMNS)
    }
    for name, key in EVENT_EVIDENCE.items():
        if name in traces.evidence:
            values = traces.evidence[name].listed(first, first + count)
            columns[name] = [str(v) if key.kind == "id" and v is not None else v for v in values]
    return columns


def _edges(graph: nx.DiGraph) -> list[tuple[Any, Any, EdgeType]]:
    """Edges in order of their keys where all keys are integers, else in the order of the graph."""
    if graph.is_multigraph():
        edges = [(s, r, key, data) for s, r, key, data in graph.edges(keys=True, data=True)]
        if len({key for *_, key, _ in edges}) == len(edges) and all(isinstance(key, int) for *_, key, _ in edges):
            edges.sort(key=lambda edge: edge[2])
    else:
        edges = [(s, r, None, data) for s, r, data in graph.edges(data=True)]
    return [(s, r, _member(f"edge {s!r} -> {r!r}", EdgeType, data.get("type", "causal"))) for s, r, _, data in edges]


def _agents(stated: object) -> dict[str, Agent]:
    if not isinstance(stated, Mapping):
        _refuse("the graph", "agents", stated, "a mapping of instance to {name, role, parent}")
    agents: dict[str, Agent] = {}
    for name, known in stated.items():
        where = f"agent {name!r}"
        if not isinstance(known, Mapping):
            _refuse(where, "description", known, "a mapping with name, role and parent")
        parent = _text(where, "parent", known.get("parent", ""))
        agents[_text(where, "id", name)] = Agent(
            _text(where, "name", known.get("name", "")),
            _text(where, "role", known.get("role", "")),
            "" if parent == name else parent,
        )
    return agents


def _evidence(where: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence and text of a node, by the keys of the schema; other attributes are ignored."""
    columns: dict[str, Any] = {}
    for name, key in EVENT_EVIDENCE.items():
        if node.get(name) is not None:
            columns[name] = str(node[name]) if key.kind == "id" else _number(where, name, node[name])
    for name in TEXT_COLUMNS:
        if node.get(name) is not None:
            columns[name] = _text(where, name, node[name])
    trusted = node.get("trusted")
    if trusted is not None:
        if not isinstance(trusted, bool):
            _refuse(where, "trusted", trusted, "True or False")
        columns["trusted"] = trusted
    return columns


def _numbers(family: str, stated: object) -> dict[str, float]:
    if not isinstance(stated, Mapping):
        _refuse("the graph", family, stated, "a mapping of names to numbers")
    return {_text("the graph", family, name): _number("the graph", f"{family}.{name}", v) for name, v in stated.items()}


def _member(where: str, kinds: type[EventType] | type[EdgeType], value: object) -> Any:
    for kind in kinds:
        if value == kind.name.lower() or value is kind:
            return kind
    _refuse(where, "type", value, "one of " + ", ".join(kind.name.lower() for kind in kinds))


def _text(where: str, field: str, value: object) -> str:
    if not isinstance(value, str):
        _refuse(where, field, value, "a string")
    return value


def _number(where: str, field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        _refuse(where, field, value, "a number")
    return float(value)


def _whole(where: str, field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        _refuse(where, field, value, "an integer")
    return int(value)


def _refuse(where: str, field: str, value: object, expected: str) -> NoReturn:
    raise CreditError(f"{field} of {where} is {excerpt(value)}; expected {expected}")
