"""`TraceRecord`: one trace as columns in log order, before checks and before it joins a batch.

Readers fill a `TraceRecord` and yield it; they do not build graphs. `graphs.traces.record_checks.check` tests it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NoReturn

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.text import excerpt

__all__ = ["FLOAT_RANGE", "LARGEST_COUNT", "LARGEST_FLOAT", "Agent", "TraceRecord"]

LARGEST_FLOAT = 3.4028234663852886e38
"""Greatest finite float32."""

LARGEST_COUNT = 2**31 - 1
"""Greatest int32."""

FLOAT_RANGE = f"a number between -{LARGEST_FLOAT:.1e} and {LARGEST_FLOAT:.1e}"


@dataclasses.dataclass(slots=True)
class Agent:
    """An agent instance of one trace: its name and role (shared across traces) and the instance that spawned it."""

    name: str = ""
    role: str = ""
    parent: str = ""


@dataclasses.dataclass(slots=True)
class TraceRecord:
    """Columns of one trace. Lists of events have one entry per event; edges refer to events by position.

    Attributes:
      trace_id, group_id: ids of the trace and of its task.
      group_is_text: whether the log states the group's id as a text, and not as a number; None where its format cannot
        tell, as CSV.
      model, system: the logged name of the acting policy (the model, with its version where it is logged), and of the
        harness that ran the team; "" where the log has none. Both are part of the group's key by default.
      file, line, offset: start of the trace (line 1-based, 0 where the format has none; offset in bytes of the
        decompressed file).
      ids, types, agents, actions, times, lines, offsets: per event. `agents` has instance ids, unique within the trace;
        `times` is NaN where absent; `lines` and `offsets` are the start of the event's record.
      files: per event, for formats that store a trace in several files; empty where all events are in `file`.
      sources: further files that something of the trace was read from, such as its scores.
      complete: whether the format marks the end of a trace, and the log has the mark.
      error: why the log says that the run failed, such as the error of its environment; "" where it says nothing.
      invalidated: why the log says that the outcome does not count; "" where it does.
      earlier_outcomes: name of an outcome that the log states at an earlier moment, too; "" where it does not.
      run: what the log states of the run, where `trace_id` is made of a file's name: copies of a log have it in common.
      columns: optional per-event columns, evidence (`graphs.traces.schema.EVENT_EVIDENCE`) and text
        (`graphs.traces.schema.TEXT_COLUMNS`), each a list no longer than `ids`; None where absent. The columns of
        `graphs.traces.tokens.TOKEN_COLUMNS` have a list for each event.
      turns: per event, a label of its turn within the trace; empty to have turns derived.
      senders, receivers, edge_types: per edge.
      instances: name, role and parent of agent instances by id.
      rewards: reward channels by name; "team" is the outcome by default.
      evidence: per-trace evidence (`graphs.traces.schema.TRACE_EVIDENCE`).
    """

    trace_id: str
    group_id: str
    file: str
    line: int = 0
    offset: int = 0
    format: str = ""
    ids: list[str] = dataclasses.field(default_factory=list)
    types: list[int] = dataclasses.field(default_factory=list)
    agents: list[str] = dataclasses.field(default_factory=list)
    actions: list[bool] = dataclasses.field(default_factory=list)
    times: list[float] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    offsets: list[int] = dataclasses.field(default_factory=list)
    files: list[str] = dataclasses.field(default_factory=list)
    columns: dict[str, list[Any]] = dataclasses.field(default_factory=dict)
    turns: list[Any] = dataclasses.field(default_factory=list)
    senders: list[int] = dataclasses.field(default_factory=list)
    receivers: list[int] = dataclasses.field(default_factory=list)
    edge_types: list[int] = dataclasses.field(default_factory=list)
    instances: dict[str, Agent] = dataclasses.field(default_factory=dict)
    rewards: dict[str, float] = dataclasses.field(default_factory=dict)
    evidence: dict[str, float] = dataclasses.field(default_factory=dict)
    costs: dict[str, float] = dataclasses.field(default_factory=dict)
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    topology: str = ""
    system: str = ""
    model: str = ""
    group_is_text: bool | None = None
    sources: list[str] = dataclasses.field(default_factory=list)
    complete: bool = False
    run: str = ""
    error: str = ""
    invalidated: str = ""
    earlier_outcomes: str = ""

    def event(
        self,
        event_id: str,
        event_type: EventType,
        agent: str,
        *,
        action: bool,
        time: float = math.nan,
        line: int = 0,
        offset: int = 0,
        **columns: Any,
    ) -> int:
        """Append an event and return its position; `columns` are evidence and text by name, None where absent.

        `from` is a Python keyword; the call needs `**{"from": ...}`.
        """
        position = len(self.ids)
        self.ids.append(event_id)
        self.types.append(int(event_type))
        self.agents.append(agent)
        self.actions.append(action)
        self.times.append(time)
        self.lines.append(line)
        self.offsets.append(offset)
        for name, value in columns.items():
            if value is not None:
                column = self.columns.setdefault(name, [])
                column.extend([None] * (position - len(column)))
                column.append(value)
        return position

    def edge(self, sender: int, receiver: int, edge_type: EdgeType) -> None:
        """Append an edge between two events given by position."""
        self.senders.append(sender)
        self.receivers.append(receiver)
        self.edge_types.append(int(edge_type))

    def add_reward(self, position: int, amount: float, name: str = "event_reward") -> None:
        """Add to the reward that arrives at an event, or to another reward of that name there."""
        column = self.columns.setdefault(name, [])
        column.extend([None] * (position + 1 - len(column)))
        column[position] = (column[position] or 0.0) + amount

    def refuse(self, kind: str, field: str, value: object, expected: str, position: int | None = None) -> NoReturn:
        """Raise a `TraceError` with the place of this trace, or of one of its events."""
        file, line = self.file, self.line
        if position is not None and position < len(self.lines):
            line = self.lines[position]
            file = self.files[position] if self.files else file
        raise TraceError(Problem(kind, file, line, field, excerpt(value), expected, self.trace_id))
