"""Conversations of OpenHands' SDK, version 1: a folder of events, a file each; or the events as lines or a list.

    ID/base_state.json             {id, agent: {kind, llm: {model}}, leaf_event_id, execution_status,
                                    stats: {usage_to_metrics: {NAME: {token_usages: [{response_id, …}]}}}}
    ID/events/event-00000-ID.json  {id, parent_id, timestamp, source, kind, …}, of the kinds
        MessageEvent {llm_message}, ActionEvent {action: {kind}, tool_name, tool_call_id, llm_response_id},
        ObservationEvent {observation: {is_error}, action_id, tool_call_id}, …

A conversation is a trace. Actions of one response of the model are one call, and one action; tools are its effects. A
sub-agent's conversation is a trace of its own. `docs/formats/openhands-sdk.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Annotated, Any, NoReturn

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EventType
from graphs.formats.common.input_tokens import read_counts
from graphs.formats.common.money import stated_money
from graphs.formats.common.run_digest import run_digest
from graphs.formats.common.team import Team
from graphs.reading.addresses import FetchedPath, real_folder
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document, documents
from graphs.reading.files import short_names
from graphs.reading.find import printable
from graphs.reading.keys import opening, opening_of
from graphs.reading.source import COMPRESSIONS, Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]

_AGENT = "agent"
_STATE = frozenset({"agent", "workspace", "persistence_dir"})
_EVENT = frozenset({"id", "timestamp", "source"})
_PARTS = frozenset({"kind", "parent_id", "system_prompt", "llm_message", "tool_call_id"})
# The file's number and the event's id: `EVENT_FILE_PATTERN` of the SDK.
_FILE = re.compile(r"event-(\d{5,})-[0-9a-fA-F-]{8,}\.json(?:\.\w+)?")

_SUBAGENTS = "subagents"  # where a conversation keeps those that its tools `task` and `delegate` started

_ROOT = "__root__"  # the parent of a conversation's first event, since some version

_WITHOUT_TOOL = frozenset({"FinishAction", "ThinkAction"})
_SILENT = frozenset({
    "SystemPromptEvent", "Condensation", "CondensationRequest", "CondensationSummaryEvent", "HookExecutionEvent",
    "ConversationStateUpdateEvent", "LLMCompletionLogEvent", "PauseEvent", "InterruptEvent", "StreamingDeltaEvent",
    "SecurityAnalysisEvent", "TokenEvent", "ACPToolCallEvent",
})  # fmt: skip
_RESULTS = frozenset({"ObservationEvent", "AgentErrorEvent", "UserRejectObservation"})


class _Kind(msgspec.Struct):
    kind: str = ""
    is_error: bool = False
    exit_code: int | None = None  # of a command; -1 where it has not ended

    @property
    def has_failed(self) -> bool:
        """Whether it is an error, or its command ended with one."""
        return self.is_error or self.exit_code not in (None, 0, -1)


class Event(msgspec.Struct):
    """An event of any kind, with the fields that are read of it."""

    id: str
    kind: str
    source: str
    timestamp: datetime.datetime | None = None
    parent_id: str | None = None
    action: _Kind | None = None
    observation: _Kind | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    llm_response_id: str | None = None
    code: str | None = None  # of an error
    detail: str | None = None


class _Usage(msgspec.Struct):
    response_id: str = ""
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cache_read_tokens: _Count | None = None
    cache_write_tokens: _Count | None = None


class _Metrics(msgspec.Struct):
    token_usages: list[_Usage] = []
    accumulated_cost: Any = None


class _Stats(msgspec.Struct):
    usage_to_metrics: dict[str, _Metrics] = {}


class _Model(msgspec.Struct):
    model: str | None = None


class _Agent(msgspec.Struct):
    kind: str | None = None
    llm: _Model | None = None


class _State(msgspec.Struct):
    id: str = ""
    agent: _Agent | None = None
    leaf_event_id: str | None = None
    stats: _Stats | None = None


RECORDS = (Event, _State)

_EVENTS = msgspec.json.Decoder(Event)
_STATES = msgspec.json.Decoder(_State)


def sniff(head: bytes) -> bool:
    """Whether the content begins as an event, or as the state of a conversation."""
    keys = set(opening(head).keys)
    return keys >= _STATE or (keys >= _EVENT and bool(keys & _PARTS))


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each folder of a conversation, and for each file with several events.

    Problem kinds: those of `graphs.reading.json_problems`; of one trace "lost-row" (an event that the numbers of the
    files or the state name is absent), "missing-parent", "duplicate-id", "several-sessions", "forked-thread",
    "unknown-tool-call", "bad-value", "empty-trace". Named while it reads: "lone-subagent".
    """
    folders: dict[str, list[tuple[int, Source]]] = {}
    states: dict[str, Source] = {}
    names = short_names(sources)
    for source in sources:
        folder, numbered = real_folder(source.name), _FILE.fullmatch(source.file_name)
        try:
            is_state = set(opening_of(source).keys) >= _STATE
        except TraceError as error:
            yield error.problem
            continue
        if is_state:
            states[folder] = source
        elif numbered is not None and os.path.basename(folder) == "events":
            folders.setdefault(os.path.dirname(folder), []).append((int(numbered[1]), source))
        else:
            yield from _conversation(names[source.name], [source], None)
        source.release()
    for folder, files in folders.items():
        files.sort(key=lambda file: file[0])
        for place, (number, source) in enumerate(files):
            if number != place:
                expected = f"the files of all events before it: that of number {place} is not among those read"
                trace = os.path.basename(folder)
                yield Problem("lost-row", source.name, 1, "file", excerpt(source.file_name), expected, trace)
                break
        else:
            events, name = [source for _, source in files], os.path.basename(folder)
            unread = _unread_state(events[0]) if folder not in states else None
            if unread is None:
                yield from _conversation(name, events, states.get(folder))
            else:
                expected = "a state that can be read: model, system and the latest event are in no other file"
                yield Problem("lost-row", unread.name, 1, "file", excerpt(unread.file_name), expected, name)


def _unread_state(event: Source) -> Source | None:
    """The state that lies above the folder of an event, but does not begin as one, so that it is not among the sources.

    Without it, the trace would be of no model, and be compared with other traces.
    """
    if event.path is None or isinstance(event.path, FetchedPath):
        return None
    for suffix in ("", *COMPRESSIONS):
        path = event.path.parent.parent / f"base_state.json{suffix}"
        state = Source(printable(path), path, event.limits)
        try:
            if path.is_file() and not set(opening_of(state).keys) >= _STATE:
                return state
        except TraceError:
            return state
    return None


def _conversation(name: str, sources: Sequence[Source], stated: Source | None) -> Iterator[TraceRecord | Problem]:
    state = _State()
    try:
        for document in documents(stated) if stated is not None else ():
            state = decode_record(_STATES, document.raw, file=document.place.file, line=document.place.line, trace=name)
        found = [document for source in sources for document in documents(source)]
        lost = next((source for source in sources if source.lost), None)
        if len(sources) > 1 and lost is not None:
            expected = "an event that can be read, as the conversation has no other copy of it"
            raise TraceError(Problem("lost-row", lost.name, 1, "file", excerpt(lost.file_name), expected, name))
        record = TraceRecord(name, name, sources[0].name, 1, 0, format="openhands-sdk")
        record.sources = [source.name for source in (*sources[1:], *([stated] if stated is not None else []))]
        yield _Conversation(record, state).add_all(found)
        if _SUBAGENTS in PurePath(sources[0].name).parts:
            expected = "a conversation that no other started: events name no conversation, so it is a trace of its own"
            yield Problem("lone-subagent", sources[0].name, 0, "folder", excerpt(_SUBAGENTS), expected, name)
    except TraceError as error:
        yield error.problem
    finally:
        for source in (*sources, *([stated] if stated is not None else [])):
            source.release()


class _Conversation:
    """Turns events of the SDK into events of the record."""

    def __init__(self, record: TraceRecord, state: _State) -> None:
        self.record, self.state, self.team = record, state, Team(record)
        agent = state.agent or _Agent()
        record.model = (agent.llm.model if agent.llm is not None else None) or ""
        record.system = agent.kind or "openhands"
        metrics = state.stats.usage_to_metrics.values() if state.stats is not None else ()
        self.usages = {usage.response_id: usage for each in metrics for usage in each.token_usages}
        amounts = [stated_money(each.accumulated_cost) for each in metrics if each.token_usages]
        known = [amount for amount in amounts if amount is not None]
        if known and len(known) == len(amounts):  # of all models, also those that sum up a conversation
            record.costs["money"] = math.fsum(known)
        self.team.agent(_AGENT, _AGENT)
        self.calls: dict[str, int] = {}  # response of the model -> position of its call
        self.waiting: dict[str, tuple[int, str] | None] = {}  # tool call without a result -> position and tool, if any

    def add_all(self, found: Sequence[Document]) -> TraceRecord:
        """The record with all events.

        Raises:
          TraceError: the kinds that `read` names.
        """
        ids: set[str] = set()
        parents: set[str] = set()
        events: list[Event] = []
        for raw, place in found:
            event = decode_record(_EVENTS, raw, file=place.file, line=place.line, trace=self.record.trace_id)
            events.append(event)
            document = Document(raw, place)
            if event.id in ids:
                self._refuse("duplicate-id", document, "id", event.id, "an id that no other event has")
            if event.kind == "SystemPromptEvent" and event.parent_id is None and ids:
                expected = "an event before this one: a conversation begins here, and a file holds one"
                self._refuse("several-sessions", document, "parent_id", None, expected)
            if event.parent_id in parents:
                expected = "a conversation without branches: no other event that follows this one"
                self._refuse("forked-thread", document, "parent_id", event.parent_id, expected)
            if event.parent_id not in (None, _ROOT) and event.parent_id not in ids:
                expected = "the id of an event before it: that event is not among those read"
                self._refuse("missing-parent", document, "parent_id", event.parent_id, expected)
            ids.add(event.id)
            parents |= {event.parent_id} if event.parent_id is not None else set()
            self._add(event, document)
        self._refuse_abandoned(events, found)
        self.record.run = run_digest(self.state.id, events)
        return self.team.finish()

    def _refuse_abandoned(self, events: Sequence[Event], found: Sequence[Document]) -> None:
        """Refuse a conversation whose latest event is absent, or has events behind it that it went on without."""
        leaf = self.state.leaf_event_id
        if leaf is None:
            return
        place = next((i for i, event in enumerate(events) if event.id == leaf), None)
        if place is None:
            self.record.refuse("lost-row", "leaf_event_id", leaf, "the event that the state names as the latest")
        for event, document in zip(events[place + 1 :], found[place + 1 :], strict=True):
            if event.kind not in _SILENT:
                expected = f"no event behind {excerpt(leaf)}, which `leaf_event_id` of the state names as the latest"
                self._refuse("forked-thread", document, "id", event.id, expected)

    def _add(self, event: Event, document: Document) -> None:
        place, time = document.place, seconds(event.timestamp)
        if event.kind == "MessageEvent" and event.source == "user":
            self.team.human(_AGENT, event.id, place, time=time)
        elif event.kind == "MessageEvent" and event.source == "agent":
            self._call(event, document, None)
        elif event.kind == "ActionEvent":
            kind, tool = event.action.kind if event.action is not None else "", event.tool_name or ""
            call = self._call(event, document, EventType.STOP if kind == "FinishAction" else None)
            if event.tool_call_id is None:
                self._refuse("missing-field", document, "tool_call_id", None, "the id of the tool call")
            if event.tool_call_id in self.waiting:
                expected = "an id that no tool call before it has without a result"
                self._refuse("duplicate-id", document, "tool_call_id", event.tool_call_id, expected)
            position = None
            if kind not in _WITHOUT_TOOL:
                position = self.team.tool_call(_AGENT, f"{event.id}/call", place, call=call, tool=tool, time=time)
            self.waiting[event.tool_call_id] = None if position is None else (position, tool)
        elif event.kind in _RESULTS:
            self._result(event, document)
        elif event.kind == "Condensation" and event.llm_response_id is not None:
            self.record.unlogged_call()
        elif event.kind == "ConversationErrorEvent":
            self.record.error = f"{event.code}: {event.detail}"
        elif event.kind != "MessageEvent" and event.kind not in _SILENT:
            self._refuse("bad-value", document, "kind", event.kind, "a kind of event of OpenHands' SDK 1.58")

    def _call(self, event: Event, document: Document, event_type: EventType | None) -> int:
        """The model call of an action or a message; actions of one response share it."""
        response = event.llm_response_id or ""
        if response in self.calls:
            position = self.calls[response]
            if event_type is not None:  # the end, behind a thought or a tool of the same response
                self.record.types[position] = int(event_type)
            return position
        usage = self.usages.get(response) or _Usage()
        position = self.team.call(
            _AGENT, event.id, document.place, time=seconds(event.timestamp), event_type=event_type,
            tokens=usage.completion_tokens,
            **read_counts(usage.prompt_tokens, usage.cache_read_tokens, usage.cache_write_tokens),
        )  # fmt: skip
        if response:
            self.calls[response] = position
        return position

    def _result(self, event: Event, document: Document) -> None:
        if event.tool_call_id not in self.waiting:
            expected = "the id of a tool call before it without a result"
            self._refuse("unknown-tool-call", document, "tool_call_id", event.tool_call_id, expected)
        answered = self.waiting.pop(event.tool_call_id)
        if answered is None:
            return
        failed = event.kind != "ObservationEvent" or (event.observation is not None and event.observation.has_failed)
        position, tool = answered
        self.team.result(
            _AGENT, event.id, document.place, answers=position, tool=tool, status="error" if failed else None,
            time=seconds(event.timestamp),
        )  # fmt: skip

    def _refuse(self, kind: str, document: Document, field: str, value: object, expected: str) -> NoReturn:
        place = document.place
        shown = "absent" if value is None else excerpt(value)
        raise TraceError(Problem(kind, place.file, place.line, field, shown, expected, self.record.trace_id))
