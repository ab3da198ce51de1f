"""Who&When: failed runs of teams, with the agent and the step that people blame for the failure. For evaluation only.

    {history: [...], question_ID, mistake_agent, mistake_step, is_correct | is_corrected, question, ground_truth, ...}

A file is a run, and a trace, "FOLDER/STEM"; its group is its `question_ID`. Every run failed, so every reward is 0 and
nothing can be learned from rewards. The evidence `blamed` is what the benchmark is for.

- *Algorithm-Generated*: messages have a `name`, the agent. `Computer_terminal` is a tool: it runs the code in the
  message before it, and its output is that agent's tool result.
- *Hand-Crafted*: the `role` names the speaker and the addressee: "human", "Orchestrator (thought)",
  "Orchestrator (-> WebSurfer)", "Orchestrator (termination condition)", "WebSurfer".

Each message is one event, so positions are the benchmark's steps. `docs/formats/who-and-when.md` has the whole mapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.run_digest import run_digest
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, documents, stem
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.traces.record import Agent, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_TERMINAL = "Computer_terminal"
_HUMAN = "human"
_ARROW = "-> "
# What the first messages of a Hand-Crafted run are by, where the history is longer than the head of the file.
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
    content: Any = None  # for the run's digest


RECORDS = (_Run,)

_RUN = msgspec.json.Decoder(_Run)
_MESSAGE = msgspec.json.Decoder(_Message)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a labelled run, or with a history that is longer than the head."""
    shown = opening(head)
    keys = set(shown.keys)
    if "history" in keys and not shown.first.get("history", frozenset()) <= {"content", "role", "name"}:
        return False
    if {"is_correct", "is_corrected", "mistake_agent", "mistake_step"} & keys:
        return bool({"history", "question_ID"} & keys)
    return shown.keys == ("history",) and not shown.complete and _ORCHESTRATED.search(head) is not None


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each run.

    Problem kinds, of one run: those of `graphs.reading.json_problems`; "bad-value", a blamed step that is no step.
    """
    for source in sources:
        for document in documents(source):
            try:
                yield _record(document)
            except TraceError as error:
                yield error.problem
        source.release()


def _record(document: Document) -> TraceRecord:
    raw, place = document
    folder = re.split(r"[\\/]", place.file)[-2:-1]
    trace = "/".join([*folder, stem(place.file)])
    run = decode_record(_RUN, raw, file=place.file, line=place.line, trace=trace)
    record = TraceRecord(trace, run.question, place.file, place.line, place.offset, format="who-and-when")
    for name, verdict in (("is_correct", run.is_correct), ("is_corrected", run.is_corrected)):
        if verdict is not None:
            record.state_reward("team", float(verdict), name)
    messages = []
    for index, (element, where) in enumerate(placed_elements(raw, run.history, place, field="history", trace=trace)):
        message = decode(_MESSAGE, element, file=where.file, line=where.line, field=f"history[{index}]", trace=trace)
        messages.append((message, where))
    _Chat(record).add_all(messages)
    _add_blame(record, run)
    record.run = run_digest(run.question, [message for message, _ in messages])
    return record


class _Chat:
    """Turns messages into events and edges of one record, one event a message."""

    def __init__(self, record: TraceRecord) -> None:
        self.record = record
        self.last: dict[str, int] = {}  # the latest event of each agent
        self.news: list[tuple[int, EdgeType]] = []  # what the next speaker answers
        self.asked: dict[str, tuple[int, EdgeType]] = {}  # by agent, the question that it has not answered
        self.leader = ""  # who spoke last in a group chat; the orchestrator
        self.first_leader = _HUMAN  # the orchestrator, for a human who speaks before it

    def add_all(self, messages: list[tuple[_Message, Place]]) -> None:
        """Append the messages."""
        speakers = [message.name or message.role for message, _ in messages]
        leaders = (agent for agent, note in map(_in_brackets, speakers) if note)
        self.first_leader = next(leaders, _HUMAN)
        for index, (message, place) in enumerate(messages):
            following = speakers[index + 1] if index + 1 < len(speakers) else ""
            if message.name is not None:
                self._speak_in_turn(index, message.name, following, place)
            else:
                self._speak_by_role(index, message.role, place)

    def _add(self, index: int, event_type: EventType, agent: str, place: Place, **columns: Any) -> int:
        outside = event_type in (EventType.TOOL_RESULT, EventType.HUMAN_INTERVENTION)
        self.record.instances.setdefault(agent, Agent(name=agent, role=agent))
        return self.record.event(
            str(index), event_type, agent, action=not outside, line=place.line, offset=place.offset, **columns
        )

    def _act(self, position: int, agent: str, causes: list[tuple[int, EdgeType]]) -> None:
        for cause, edge_type in causes:
            if self.last.get(agent) != cause:
                self.record.edge(cause, position, edge_type)
        if agent in self.last:
            self.record.edge(self.last[agent], position, EdgeType.TEMPORAL)
        self.last[agent] = position

    def _speak_in_turn(self, index: int, name: str, following: str, place: Place) -> None:
        """A group chat: everybody reads everything, so each message answers the one before it."""
        if name == _TERMINAL:
            caller = self.leader or name
            position = self._add(index, EventType.TOOL_RESULT, caller, place, tool=_TERMINAL)
            for cause, _ in self.news:
                self.record.edge(cause, position, EdgeType.RETURN)
            self.news = [(position, EdgeType.CAUSAL)]
            return
        runs_code = following == _TERMINAL
        event_type = EventType.TOOL_CALL if runs_code else EventType.MESSAGE
        columns = {"tool": _TERMINAL} if runs_code else {}
        position = self._add(index, event_type, name, place, **columns)
        self._act(position, name, self.news)
        self.news, self.leader = [(position, EdgeType.MESSAGE)], name

    def _speak_by_role(self, index: int, role: str, place: Place) -> None:
        """An orchestrator that asks one agent after another; an agent's message answers who asked it."""
        if role == _HUMAN:
            position = self._add(index, EventType.HUMAN_INTERVENTION, self.leader or self.first_leader, place)
            self.news.append((position, EdgeType.CAUSAL))
            return
        agent, note = _in_brackets(role)
        if not note:  # an agent that the orchestrator asked
            position = self._add(index, EventType.MESSAGE, role, place)
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
        position = self._add(index, event_type, agent, place, **columns)
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
