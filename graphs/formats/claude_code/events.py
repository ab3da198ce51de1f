"""Events and edges of a Claude Code session, from the lines of its agents.

An agent's events stand in the order of its lines. A call's effects follow the call, and after them come all events of
the agents that it started, one agent after another. So every cause stands before its effect. Lines of parallel agents
interleave by chance, and clocks run backwards, so neither gives the order.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import TypeVar

from graphs.event_graph import EdgeType, EventType
from graphs.formats.claude_code.lines import Block, Entry
from graphs.formats.claude_code.links import Chain, Spawn, is_prompt
from graphs.reading.files import name_models
from graphs.traces.record import Agent, TraceRecord, is_cut

__all__ = ["write_events"]

N = TypeVar("N", int, float)

_MAIN = "main"
_UNNAMED = "sub-agent"
_REQUEST = "API Error"  # begins what one request met, such as the rate limit of a moment
_LIMIT = re.compile(r"limit reached|hit your\b.*\blimit|prompt is too long|balance is too low", re.IGNORECASE)
_ASKS = ("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "exit_plan_mode")  # tools that a person answers


@dataclasses.dataclass(slots=True)
class _Call:
    """A model call: its first line, and the tool uses and token counts of all its lines.

    Each line was written when its block was there, so the time is that of the last line up to the first tool use.

    A line with `stop_reason: null` was written while the reply was streaming, and its output count is a placeholder.
    The largest count is the call's if a line is final, or if the count grew from line to line.
    """

    name: str
    entry: Entry
    time: float
    uses: list[tuple[Block, Entry]] = dataclasses.field(default_factory=list)
    use_ids: set[str | None] = dataclasses.field(default_factory=set)
    output: int | None = None
    read: int | None = None
    cached: int | None = None
    written: int | None = None
    counted: bool = False
    money: float | None = None
    stopped: str | None = None

    def add(self, entry: Entry) -> None:
        uses = [block for block in entry.message.blocks if block.type == "tool_use"]
        self.time = self.time if self.uses or math.isnan(entry.time) else entry.time
        self.uses += [(block, entry) for block in uses if block.id not in self.use_ids]
        self.use_ids |= {block.id for block in uses}
        self.money = _largest(self.money, entry.money)
        reason = entry.message.stop_reason
        self.stopped = reason if isinstance(reason, str) else self.stopped
        usage = entry.message.usage
        if usage is not None:
            grew = None not in (self.output, usage.output_tokens) and self.output != usage.output_tokens
            self.counted |= grew or entry.message.stop_reason is not None
            self.output = _largest(self.output, usage.output_tokens)
            self.read = _largest(self.read, usage.read)
            self.cached = _largest(self.cached, usage.cache_read_input_tokens)
            self.written = _largest(self.written, usage.cache_creation_input_tokens)

    @property
    def tokens(self) -> int | None:
        """Tokens that the call wrote; None if every line was written before they were counted."""
        return self.output if self.counted else None


@dataclasses.dataclass(slots=True)
class _Step:
    """What becomes events: a call, a tool result, or else a human's text."""

    entry: Entry
    call: _Call | None = None
    result: Block | None = None


def write_events(record: TraceRecord, root: Chain, spawns: dict[str, Spawn]) -> None:
    """Fill the record with the events of the main agent and of all agents started from it.

    A stack takes the place of recursion: agents may nest deeper than Python's stack.

    Raises:
      TraceError: kind "unknown-tool-use", a result of a tool use that its agent did not make.
    """
    instances = {id(root): _MAIN} | {id(spawn.chain): spawn.instance for spawn in spawns.values() if spawn.chain}
    writer = _Writer(record, spawns, {instances.get(id(spawn.caller), "") for spawn in spawns.values()})
    record.instances[_MAIN] = Agent(name=_MAIN, role=_MAIN)
    stack, entries = [(_MAIN, _steps(root.entries, spawned=False))], list(root.entries)
    while stack:
        agent, steps = stack[-1]
        step = next(steps, None)
        if step is None:
            stack.pop()
        elif step.call is not None:
            started = [(spawn.instance, spawn.take()) for spawn in writer.call(step.call, agent)]
            stack += [(instance, _steps(lines, spawned=True)) for instance, lines in reversed(started)]
            entries += [line for _, lines in started for line in lines]
        elif step.result is not None:
            writer.result(step.entry, step.result, agent)
        else:
            writer.human(step.entry, agent)
    replies = (line for line in reversed(root.entries) if line.type == "assistant")
    refused = next((line.api_error for line in replies if line.api_error or not line.harness), "")
    limited = bool(_LIMIT.search(refused)) and not refused.startswith(_REQUEST)
    record.error = "" if limited else refused
    record.ended_by("limit" if limited else writer.stopped.get(_MAIN))
    for _ in (entry for entry in entries if entry.summary):
        record.unlogged_call()
    record.sum_money(position for position, acts in enumerate(record.actions) if acts)
    name_models(record)


def _steps(entries: list[Entry], *, spawned: bool) -> Iterator[_Step]:
    """The steps of an agent in order, without the prompt that a spawned agent was started with.

    A result that was written before the first line of its call comes after the call.
    """
    calls: dict[str, _Call] = {}
    begun: dict[str, int] = {}  # call -> index of its first line
    called_at: dict[str, int] = {}  # tool use id -> the same, of its call
    steps: list[tuple[int, int, _Step]] = []  # with the index of the line, and 0 for calls, which come first
    for index, entry in enumerate(entries):
        if entry.type == "assistant":
            if entry.harness and not entry.api_error:
                continue
            name = entry.message.id or entry.uuid or f"line-{entry.place.line}"
            if name not in calls:
                calls[name], begun[name] = _Call(name, entry, entry.time), index
                steps.append((index, 0, _Step(entry, call=calls[name])))
            calls[name].add(entry)
            called_at |= {block.id or "": begun[name] for block in entry.message.blocks if block.type == "tool_use"}
        elif not is_prompt(entry):
            results = (block for block in entry.message.blocks if block.type == "tool_result")
            steps += [(index, 1, _Step(entry, result=block)) for block in results]
        elif spawned:
            spawned = False
        else:
            steps.append((index, 1, _Step(entry)))

    def place(item: tuple[int, int, _Step]) -> tuple[int, int]:
        index, kind, step = item
        use = step.result.tool_use_id if step.result is not None else None
        return max(index, called_at.get(use or "", 0)), kind

    return (step for _, _, step in sorted(steps, key=place))


def _largest(a: N | None, b: N | None) -> N | None:
    return b if a is None else a if b is None else max(a, b)


class _Writer:
    """Appends events to the record, and draws the edges as their later ends appear."""

    def __init__(self, record: TraceRecord, spawns: dict[str, Spawn], spawners: set[str]) -> None:
        self.record = record
        self.spawns = spawns
        self.spawners = spawners  # agents that start another anywhere in the session
        self.effects: dict[str, tuple[int, str, str]] = {}  # tool use id -> position, agent, tool
        self.begun_by: dict[str, list[int]] = {}  # agent -> spawns that its next event answers
        self.causes: dict[str, list[tuple[int, EdgeType]]] = {}  # agent -> what its next call answers
        self.last_call: dict[str, int] = {}
        self.stopped: dict[str, str | None] = {}  # agent -> why its last call stopped

    def call(self, call: _Call, agent: str) -> list[Spawn]:
        """Append a call and its effects.

        Returns:
          The spawns among them.
        """
        failed = bool(call.entry.api_error)
        position = self._event(
            call.name,
            EventType.ORCHESTRATOR_DECISION if agent in self.spawners else EventType.MESSAGE,
            agent,
            call.entry,
            time=call.time,
            action=True,
            tokens=call.tokens,
            input_tokens=call.read,
            cached_tokens=call.cached,
            cache_write_tokens=call.written or None,
            money=call.money,
            model=None if failed else call.entry.message.model,
            status="error" if failed else call.stopped if is_cut(call.stopped) else None,
        )
        for cause, edge_type in self.causes.pop(agent, ()):
            self.record.edge(cause, position, edge_type)
        if agent in self.last_call:
            self.record.edge(self.last_call[agent], position, EdgeType.TEMPORAL)
        self.last_call[agent], self.stopped[agent] = position, call.stopped
        return [
            spawn for block, entry in call.uses if (spawn := self._effect(block, entry, agent, position)) is not None
        ]

    def _effect(self, block: Block, entry: Entry, agent: str, call: int) -> Spawn | None:
        use, tool = block.id or "", block.name or ""
        spawn = self.spawns.get(use)
        if spawn is None:
            position = self._event(use, EventType.TOOL_CALL, agent, entry, tool=tool)
            self.record.edge(call, position, EdgeType.TOOL_DEPENDENCY)
        else:
            position = self._event(use, EventType.SPAWN, agent, entry, tool=tool, to=spawn.instance)
            self.record.edge(call, position, EdgeType.CAUSAL)
            self.begun_by.setdefault(spawn.instance, []).append(position)
            role = spawn.role or _UNNAMED
            self.record.instances.setdefault(spawn.instance, Agent(name=role, role=role, parent=agent))
        self.effects[use] = (position, agent, tool)
        return spawn

    def result(self, entry: Entry, block: Block, agent: str) -> None:
        """Append a tool's result, or the return of a spawned agent."""
        use = block.tool_use_id or ""
        position, caller, tool = self.effects.get(use, (0, None, ""))
        if caller != agent:
            expected = "the id of a tool use of the same agent"
            raise entry.refuse("unknown-tool-use", "tool_use_id", use, expected, self.record.trace_id)
        status = block.status
        spawn = self.spawns.get(use)
        if spawn is None or spawn.launched:
            by_person = tool in _ASKS or status == "declined"
            kind = EventType.HUMAN_INTERVENTION if by_person else EventType.TOOL_RESULT
            answer = self._event(f"{use}.result", kind, agent, entry, tool=tool, status=status)
            self.record.edge(position, answer, EdgeType.RETURN)
            self._cause(agent, answer, EdgeType.CAUSAL)
            return
        child = spawn.instance
        answer = self._event(f"{use}.return", EventType.RETURN, child, entry, to=agent, status=status)
        if child in self.last_call:
            self.record.edge(self.last_call[child], answer, EdgeType.CAUSAL)
        self._cause(agent, answer, EdgeType.RETURN)

    def human(self, entry: Entry, agent: str) -> None:
        """Append what a human wrote to the agent."""
        event_id = entry.uuid or f"line-{entry.place.line}"
        self._cause(agent, self._event(event_id, EventType.HUMAN_INTERVENTION, agent, entry), EdgeType.CAUSAL)

    def _cause(self, agent: str, position: int, edge_type: EdgeType) -> None:
        self.causes.setdefault(agent, []).append((position, edge_type))

    def _event(
        self,
        event_id: str,
        event_type: EventType,
        agent: str,
        entry: Entry,
        *,
        time: float | None = None,
        action: bool = False,
        **columns: str | float | None,
    ) -> int:
        position = self.record.event(
            event_id,
            event_type,
            agent,
            action=action,
            time=entry.time if time is None else time,
            line=entry.place.line,
            offset=entry.place.offset,
            **columns,
        )
        self.record.files.append(entry.place.file)
        for spawn in self.begun_by.pop(agent, ()):
            self.record.edge(spawn, position, EdgeType.SPAWN)
        return position
