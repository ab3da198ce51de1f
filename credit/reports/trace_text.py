"""One trace for the terminal: where it came from, who took part, what happened, and how long it had to take."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from credit.reports.missing_lines import lacking_agents
from credit.reports.task_and_result import task_and_result
from credit.reports.trace_events import EventRow, event_rows
from credit.reports.trace_list import actions_with_tokens
from credit.reports.trace_numbers import TeamFacts
from graphs.event_graph import EventGraph, EventType
from graphs.padding import unpad
from graphs.structure.critical_path import critical_path, critical_steps, parallelism
from graphs.structure.forest import spawn_forest
from graphs.structure.prefix import pack, select_trace
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.text import at_least, counted, printable
from graphs.traces.event_models import trace_models

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from graphs.traces.batch import Traces

__all__ = ["render", "trace_json"]

MOST_AGENTS = 40  # rows of the table of agents and nodes of the spawn tree
MOST_CAUSES = 3  # edges into an event that are written out where its row may have several lines
WIDEST = {
    "event": 16,
    "agent": 20,
    "type": 21,
    "causes": 16,
    "model": 16,
    "tool": 16,
    "status": 12,
}  # columns of a line
WHOLE = 400  # length of excerpts from which they are written out
LEAST_TEXT = 24  # width of the column of text
MOST_STEPS = 12  # events of the critical path that are written out


@dataclasses.dataclass(frozen=True)
class _View:
    """A trace on its own: its packed graph, and the rows of the batch's tables that it owns."""

    graph: EventGraph
    ids: list[str]
    agents: list[dict[str, Any]]
    row: dict[str, Any]
    rows: np.ndarray
    lacking: np.ndarray


def render(
    traces: Traces, trace: int | str = 0, *, first: int = 10, last: int = 5, most: int = MOST_AGENTS, limit: int = 200
) -> RenderableType:
    """A trace as something that `rich` can print.

    From top to bottom: its place, reward, topology, task and result; agents; the spawn forest; events by type; the
    first and last events with what led to them, tools, status and excerpts of text; critical path, parallelism and
    critical steps.
    Text of the log is shown as text: no markup, no terminal sequences.

    Args:
      traces: what was read.
      trace: the row or the id of a trace.
      first, last: how many events to list from the beginning and from the end.
      most: how many agents to list.
      limit: length of excerpts of text. Below 400 each event has one line, and the column of text takes what is left
        of its width; from 400 on, excerpts are written out.

    Raises:
      CreditError: no such trace.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> type(render(rows.traces, "a")).__name__
      'Group'
    """
    index = traces.index(trace)
    graph = traces.graph
    rows = np.flatnonzero(np.asarray(graph.event_mask) & (np.asarray(graph.trace_ids) == index))
    agents = np.flatnonzero(np.asarray(graph.agent_mask) & (np.asarray(graph.agent_trace) == index))
    view = _View(
        graph=unpad(pack(select_trace(graph, index))),
        ids=traces.events["event"].take(rows).to_pylist(),
        agents=traces.agents.take(agents).to_pylist(),
        row=traces.traces.slice(index, 1).to_pylist()[0],
        rows=rows,
        lacking=lacking_agents(traces)[agents],
    )
    parts = [_header(traces, view, index, limit), _agents(traces, view, most)]
    if len(view.agents) > 1:
        parts.append(_forest(view, most))
    return Group(
        *_spaced([*parts, _types(view), _events(traces, view, index, first, last, limit), _structure(traces, view)])
    )


def trace_json(traces: Traces, trace: int | str = 0, *, limit: int = 2000) -> dict[str, Any]:
    """A trace as plain data for programs: what `render` shows, with every agent and event.

    Args:
      traces: what was read.
      trace: the row or the id of a trace.
      limit: length of excerpts of text.

    Raises:
      CreditError: no such trace.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> trace_json(rows.traces, "b")["reward"]
      0.0
    """
    index = traces.index(trace)
    reward = float(traces.reward[index])
    rows = np.flatnonzero(np.asarray(traces.graph.agent_mask) & (np.asarray(traces.graph.agent_trace) == index))
    agents = traces.agents.take(rows).to_pylist()
    names = traces.agents["agent"]
    return {
        **traces.traces.slice(index, 1).to_pylist()[0],
        "reward": reward if np.isfinite(reward) else None,
        **dict(zip(("asked", "result"), task_and_result(traces, index, limit), strict=True)),
        "agents": [
            {"agent": a["agent"], "name": a["name"], "role": a["role"]}
            | {"parent": None if a["parent"] == row else names[a["parent"]].as_py()}
            for row, a in zip(rows.tolist(), agents, strict=True)
        ],
        "events": [dataclasses.asdict(row) for row in event_rows(traces, index, limit=limit)],
    }


def _spaced(parts: Iterable[RenderableType]) -> Iterable[RenderableType]:
    for number, part in enumerate(parts):
        if number:
            yield Text()
        yield part


def _text(value: object, limit: int | None = None, style: str = "") -> Text:
    return Text(printable(str(value), limit), style=style)


def _table(title: str, *columns: str) -> Table:
    """A table; columns whose name begins with "#" hold numbers."""
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, pad_edge=False, header_style="dim")
    for column in columns:
        numbers = column.startswith("#")
        table.add_column(column.removeprefix("#"), justify="right" if numbers else "left", overflow="fold")
    return table


def _pairs(*pairs: tuple[str, Text]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, value)
    return table


def _header(traces: Traces, view: _View, index: int, limit: int) -> RenderableType:
    row, reward = view.row, float(traces.reward[index])
    place = f"{row['file']}:{row['line']}" if row["line"] else row["file"]
    roles = [agent["role"] for agent in view.agents]
    kind_of_team = TOPOLOGIES[int(topology(view.graph, roles)[0])]
    declared = f" (declared: {printable(row['topology'], 40)})" if row["topology"] else ""
    channels = [
        f"{printable(traces.channel_name(name.removeprefix('rewards.')), 40)} {amount:z.6g}"
        for name, evidence in traces.evidence.items()
        if name.startswith("rewards.") and (amount := evidence.of_row(index)) is not None
    ]
    pairs = [
        ("trace", _text(row["trace"], 200, "bold")),
        ("task", _text(row["task"], 200)),
        *([("group", _text(row["group"], 200))] if row["group"] != row["task"] else []),
        ("file", _text(f"{place} [{row['format']}]" if row["format"] else place)),
        ("reward", _text(f"{reward:z.6g}" if np.isfinite(reward) else "none in the log")),
        ("channels", _text(", ".join(channels) or "none")),
        ("topology", _text(kind_of_team + declared)),
    ]
    if row["system"]:
        pairs.append(("system", _text(row["system"], 200)))
    if of := trace_models(traces)[index]:
        pairs.append(("model", _text(", ".join(sorted(of)), 200)))
    said = zip(("asked", "result"), task_and_result(traces, index, limit), strict=True)
    pairs += [(name, _text(text)) for name, text in said if text]
    return _pairs(*pairs)


def _agents(traces: Traces, view: _View, most: int) -> RenderableType:
    graph, num = view.graph, len(view.agents)
    events = np.bincount(graph.agent_ids, minlength=num)
    actions = np.bincount(graph.agent_ids[graph.action_mask], minlength=num)
    tokens = {name: _sums(traces, view, name) for name in ("input_tokens", "tokens")}
    table = _table(f"agents ({num})", "agent", "name", "role", "parent", "#events", "#actions", "#tokens in", "#out")
    for i, agent in enumerate(view.agents[:most]):
        parent, lacks = int(graph.agent_parent[i]), bool(view.lacking[i])
        table.add_row(
            _text(agent["agent"], 40),
            _text(agent["name"], 40),
            _text(agent["role"], 40),
            _text("" if parent == i else view.agents[parent]["agent"], 40),
            *(at_least(str(count), lacks) for count in (events[i], actions[i])),
            *(at_least(f"{amounts[i]:.0f}" if known[i] else "–", lacks) for amounts, known in tokens.values()),
        )
    known, every = int(np.sum(actions_with_tokens(traces)[view.rows])), int(actions.sum())
    if not 0 < known < every:
        return _cut(table, num, most)
    return Group(_cut(table, num, most), Text(f"tokens out: sums over {known} of {every} actions", style="dim"))


def _sums(traces: Traces, view: _View, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sum of an evidence key over each agent's events, and whether the log has any."""
    num = len(view.agents)
    if name not in traces.evidence:
        return np.zeros(num), np.zeros(num, bool)
    values, stated = traces.evidence[name].array[view.rows], traces.evidence[name].mask[view.rows]
    agents = view.graph.agent_ids[stated]
    return np.bincount(agents, values[stated], minlength=num), np.bincount(agents, minlength=num) > 0


def _cut(table: Table, num: int, most: int) -> RenderableType:
    if num <= most:
        return table
    return Group(table, Text(f"… and {num - most} more", style="dim"))


def _forest(view: _View, most: int) -> RenderableType:
    """The spawn forest with at most `most` agents; a line in their place counts those left out."""
    forest = spawn_forest(view.graph)
    top = Tree(Text("spawn forest", style="bold"), guide_style="dim")
    waiting: list[tuple[Tree, list[int]]] = [(top, np.flatnonzero(forest.is_root).tolist())]
    room = most
    while waiting:
        branch, members = waiting.pop(0)
        for agent in members[:room]:
            row = view.agents[agent]
            label = _text(row["agent"], 40)
            if row["role"] != row["agent"]:
                label.append_text(_text(f" {printable(row['role'], 40)}", style="dim"))
            waiting.append((branch.add(label), forest.children(agent).tolist()))
        if len(members) > room:
            branch.add(Text(f"… {len(members) - room} more", style="dim"))
        room = max(0, room - len(members))
    return top


def _types(view: _View) -> RenderableType:
    lacks = bool(view.lacking.any())  # a missing line may be of any type
    table = _table(f"events ({at_least(str(len(view.ids)), lacks)})", "type", "#events", "#actions")
    for kind in EventType:
        of_kind = view.graph.event_type == kind
        if of_kind.any():
            counts = (str(of_kind.sum()), str((of_kind & view.graph.action_mask).sum()))
            table.add_row(kind.name.lower(), *(at_least(count, lacks) for count in counts))
    return table


def _events(traces: Traces, view: _View, index: int, first: int, last: int, limit: int) -> RenderableType:
    num = len(view.ids)
    everything = num <= first + last
    shown = range(num) if everything else [*range(first), *range(num - last, num)]
    rows = event_rows(traces, index, shown, limit=limit)
    said = [name for name in ("tool", "status", "tokens", "text") if any(getattr(row, name) for row in rows)]
    optional = ["model"] * (len(trace_models(traces)[index]) > 1) + said
    heads = ["#tokens" if name == "tokens" else name for name in optional]
    title = "events" if everything else "first and last events"
    table = _table(title, "##", "event", "agent", "type", "act", "causes", *heads)
    one_line = limit < WHOLE
    for column in table.columns:
        column.no_wrap = column.header not in (WIDEST if one_line else ("event", "text"))  # else it is cut first
        if one_line:
            column.overflow = "ellipsis"
            column.max_width = WIDEST.get(str(column.header))
        if one_line and column.header == "text":
            column.width, column.ratio, table.expand = LEAST_TEXT, 1, True  # the least width, beside `ratio`
    for place, row in enumerate(rows):
        if place and row.position != rows[place - 1].position + 1:
            table.add_row("…", *[""] * (5 + len(optional)))
        cells = [
            Text(str(row.position)),
            _text(row.event),
            _text(row.who),
            Text(row.type),
            Text("yes" if row.action else ""),
            Text(_causes(row, 1 if one_line else MOST_CAUSES)),
            *(_text("" if getattr(row, name) is None else getattr(row, name), limit) for name in optional),
        ]
        for cell in cells if one_line else ():
            cell.no_wrap = True
        table.add_row(*cells)
    return table


def _causes(row: EventRow, most: int) -> str:
    causes = [f"{sender} {kind.replace('tool_dependency', 'tool')}" for sender, kind in row.causes[:most]]
    return ", ".join(causes) + (f" +{len(row.causes) - most}" if len(row.causes) > most else "")


def _structure(traces: Traces, view: _View) -> RenderableType:
    graph = view.graph
    path, parallel = critical_path(graph), parallelism(graph)
    stage = traces.evidence.get("stage")
    stated = stage is not None and bool(stage.mask[view.rows].any())
    steps = critical_steps(graph, stage.array[view.rows]) if stage is not None and stated else critical_steps(graph)
    ids = [printable(view.ids[i], 24) for i in np.flatnonzero(path.on_path)]
    if len(ids) > MOST_STEPS:
        ids[MOST_STEPS // 2 : -MOST_STEPS // 2] = ["…"]
    origin = "stated" if stated else "derived"
    missing = "not defined: no single main agent, or actions without a stage"
    facts, row = TeamFacts.of(traces), int(np.asarray(traces.graph.trace_ids)[view.rows[0]])
    reason = next((why for where, why in facts.untold_shape if where[row]), "")
    if reason:  # whatever the edges are not known to forbid would count as done at once
        return _pairs(("critical path, parallelism, critical steps", _text(f"not defined: {reason}")))
    average = f"{parallel.average[0]:.2f} on average"
    if facts.in_turn(np.flatnonzero(facts.action))[row]:
        average = "1, as by their times no two actions ran at once"
    length = (
        f"{path.length[0]:.0f} of {counted(parallel.work[0], 'action')}, over {counted(path.on_path.sum(), 'event')}"
    )
    most = f"{counted(parallel.width[0], 'action')} and {counted(parallel.agents[0], 'agent')}"
    staged = f"{steps.steps[0]} in {counted(steps.stages[0], f'{origin} stage')}" if steps.defined[0] else missing
    return _pairs(
        ("critical path", _text(length)),
        ("", _text(" → ".join(ids))),
        ("parallelism", _text(f"{average}; by the edges, at most {most} could be at once")),
        ("critical steps", _text(staged)),
    )
