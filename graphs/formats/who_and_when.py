"""Who&When: failed runs of teams, with the agent and the step that people blame for the failure. For evaluation only.

    {history: [...], question_ID, mistake_agent, mistake_step, is_correct | is_corrected, question, ground_truth, ...}

One file is one run, and one trace, "FOLDER/STEM"; its group is its `question_ID`. Every run failed, so the reward is 0
in all of them, and nothing can be learned from it; the evidence `blamed` is what is there.

- *Algorithm-Generated*: messages have a `name`, the agent. `Computer_terminal` is a tool: it runs the code in the
  message before it, and its output is that agent's tool result.
- *Hand-Crafted*: the `role` says who, and to whom: "human", "Orchestrator (thought)", "Orchestrator (-> WebSurfer)",
  "Orchestrator (termination condition)", "WebSurfer".

Each message is one event, so positions are the benchmark's steps; its id is its index. Answers and reasons are not
kept. `docs/formats/who-and-when.md` has the whole mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Places, documents, stem
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.traces.record import Agent, TraceRecord

__all__ = ["read", "sniff"]

_TERMINAL = "Computer_terminal"
_HUMAN = "human"
_ARROW = "-> "
_ORCHESTRATED = re.compile(rb'"role"\s*:\s*"(?:human|Orchestrator \()')


class _Run(msgspec.Struct, rename={"question": "question_ID"}):
    history: msgspec.Raw
    question: Annotated[str, msgspec.Meta(min_length=1)]
    mistake_agent: str | None = None
    mistake_step: str | int | None = None
    is_correct: bool | None = None
    is_corrected: bool | None = None


class _Message(msgspec.Struct):
    role: Annotated[str, msgspec.Meta(min_length=1)]
    name: str | None = None


_RUN = msgspec.json.Decoder(_Run)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a labelled run, or with a history that is longer than the head."""
    shown = opening(head)
    keys = set(shown.keys)
    if "history" in keys and not shown.first.get("history", frozenset()) <= {"content", "role", "name"}:
        return False
    if {"is_correct", "is_corrected", "mistake_agent", "mistake_step"} & keys:
        return bool({"history", "question", "question_ID"} & keys)
    return shown.keys == ("history",) and not shown.complete and _ORCHESTRATED.search(head) is not None


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each run.

    Problem kinds: "unreadable", those of `graphs.reading.json_problems`, "bad-value" (a blamed step that is
    none).
    """
    for source in sources:
        for document in documents(source):
            try:
                yield document if isinstance(document, Problem) else _read_run(source, document)
            except TraceError as error:
                yield error.problem
        source.release()


def _read_run(source: Source, document: Document) -> TraceRecord:
    raw, place = document
    run = decode_record(_RUN, raw, file=place.file, line=place.line)
    folder = re.split(r"[\\/]", place.file)[-2:-1]
    trace = "/".join([*folder, stem(place.file)])
    record = TraceRecord(trace, run.question, place.file, place.line, place.offset, format="who-and-when")
    solved = {verdict for verdict in (run.is_correct, run.is_corrected) if verdict is not None}
    if len(solved) > 1:
        record.refuse("disagreeing-rewards", "is_corrected", run.is_corrected, "the verdict of `is_correct`")
    for verdict in solved:
        record.rewards["team"] = float(verdict)
    messages = decode(_LIST, run.history, file=place.file, line=place.line, at="history", trace=trace)
    start = raw.find(bytes(run.history))
    places = Places(raw, start, place.line + raw.count(b"\n", 0, start))
    decoded = []
    for index, text in enumerate(messages):
        line, offset = places.of(text)
        message = decode(_MESSAGE, text, file=place.file, line=line, at=f"history[{index}]", trace=trace)
        decoded.append((message, line, place.offset + offset))
    _Chat(record).add_all(decoded)
    _add_blame(record, run)
    return record


class _Chat:
    """Turns messages into events and edges of one record, one event a message."""

    def __init__(self, record: TraceRecord) -> None:
        self.record = record
        self.last: dict[str, int] = {}  # the latest event of each agent
        self.news: list[tuple[int, EdgeType]] = []  # what the next speaker answers to
        self.asked: dict[str, tuple[int, EdgeType]] = {}  # by agent, who asked it and has no answer yet
        self.leader = ""
        self.first_leader = _HUMAN  # of the whole run

    def add_all(self, messages: list[tuple[_Message, int, int]]) -> None:
        speakers = [message.name or message.role for message, _, _ in messages]
        leaders = (agent for agent, note in map(_in_brackets, speakers) if note)
        self.first_leader = next(leaders, _HUMAN)
        for index, (message, line, offset) in enumerate(messages):
            following = speakers[index + 1] if index + 1 < len(speakers) else ""
            if message.name is not None:
                self._speak_in_turn(index, message.name, following, line, offset)
            else:
                self._speak_by_role(index, message.role, line, offset)

    def _add(self, index: int, event_type: EventType, agent: str, line: int, offset: int, **columns: Any) -> int:
        outside = event_type in (EventType.TOOL_RESULT, EventType.HUMAN_INTERVENTION)
        self.record.instances.setdefault(agent, Agent(name=agent, role=agent))
        return self.record.event(str(index), event_type, agent, action=not outside, line=line, offset=offset, **columns)

    def _act(self, position: int, agent: str, causes: list[tuple[int, EdgeType]]) -> None:
        for cause, edge_type in causes:
            if self.last.get(agent) != cause:
                self.record.edge(cause, position, edge_type)
        if agent in self.last:
            self.record.edge(self.last[agent], position, EdgeType.TEMPORAL)
        self.last[agent] = position

    def _speak_in_turn(self, index: int, name: str, following: str, line: int, offset: int) -> None:
        """A group chat: everybody reads everything, so each message answers the one before it."""
        if name == _TERMINAL:
            caller = self.leader or name
            position = self._add(index, EventType.TOOL_RESULT, caller, line, offset, tool=_TERMINAL)
            for cause, _ in self.news:
                self.record.edge(cause, position, EdgeType.RETURN)
            self.news = [(position, EdgeType.CAUSAL)]
            return
        runs_code = following == _TERMINAL
        event_type = EventType.TOOL_CALL if runs_code else EventType.MESSAGE
        columns = {"tool": _TERMINAL} if runs_code else {}
        position = self._add(index, event_type, name, line, offset, **columns)
        self._act(position, name, self.news)
        self.news, self.leader = [(position, EdgeType.MESSAGE)], name

    def _speak_by_role(self, index: int, role: str, line: int, offset: int) -> None:
        """An orchestrator that asks one agent after another; an agent's message answers who asked it."""
        if role == _HUMAN:
            position = self._add(index, EventType.HUMAN_INTERVENTION, self.leader or self.first_leader, line, offset)
            self.news.append((position, EdgeType.CAUSAL))
            return
        agent, note = _in_brackets(role)
        if not note:
            position = self._add(index, EventType.MESSAGE, role, line, offset)
            self._act(position, role, [self.asked.pop(role)] if role in self.asked else [])
            self.news.append((position, EdgeType.MESSAGE))
            return
        self.leader, to = agent, note.removeprefix(_ARROW) if note.startswith(_ARROW) else ""
        event_type, columns = EventType.ORCHESTRATOR_DECISION, {}
        if to:
            known = to in self.record.instances
            event_type, columns = EventType.MESSAGE if known else EventType.SPAWN, {"to": to}
        elif note.startswith("termination"):
            event_type = EventType.STOP
        position = self._add(index, event_type, agent, line, offset, **columns)
        self._act(position, agent, self.news)
        self.news = []
        if to:
            self.record.instances.setdefault(to, Agent(name=to, role=to, parent=agent))
            begins = event_type is EventType.SPAWN
            self.asked[to] = position, EdgeType.SPAWN if begins else EdgeType.MESSAGE


def _in_brackets(role: str) -> tuple[str, str]:
    """The agent of a role and what stands in brackets behind it: "Orchestrator (-> X)" is "Orchestrator", "-> X"."""
    agent, bracket, note = role.removesuffix(")").partition(" (")
    return (agent, note) if bracket and agent and role.endswith(")") else (role, "")


def _add_blame(record: TraceRecord, run: _Run) -> None:
    """Evidence `blamed` at the blamed step, `blamed_agent` at all events of the blamed agent.

    The benchmark spells some agents in another case than the log does, and blames some steps that are not the blamed
    agent's: both labels are kept as they are.
    """
    if run.mistake_step is not None:
        text = str(run.mistake_step)
        step = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
        if not 0 <= step < len(record.ids):
            record.refuse("bad-value", "mistake_step", run.mistake_step, "the index of a message of the history")
        record.columns["blamed"] = [float(i == step) for i in range(len(record.ids))]
    if run.mistake_agent is not None:
        blamed = run.mistake_agent.casefold()
        record.columns["blamed_agent"] = [float(agent.casefold() == blamed) for agent in record.agents]
