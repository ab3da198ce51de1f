"""OpenHands: rows of `output.jsonl` (evaluation harness, resolver), and event streams (saved trajectories).

    {instance_id | issue, history: [EVENT | [ACTION, OBSERVATION]], metrics: {token_usages}, test_result, success}
    [EVENT, …]
    EVENT: {id, timestamp, source, action | observation, cause, tool_call_metadata: {function_name, model_response}}

A row, or a stream, is a trace. What the agent does is a model call, and an action, with the tool that it used as an
effect; actions of one model response are one call. `docs/formats/openhands.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, NoReturn

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EventType
from graphs.formats.common.input_tokens import ChatUsage, call_counts
from graphs.formats.common.placed import nested_documents
from graphs.formats.common.run_digest import run_digest
from graphs.formats.common.stop_reasons import stop_reason
from graphs.formats.common.team import Team
from graphs.reading.decode import decode, decode_record, object_text
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import model_names, name_models, short_names
from graphs.reading.keys import has_key, opening
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]

_AGENT = "agent"
_SILENT = frozenset({"null", "system", "recall", "change_agent_state", "condensation", "condensation_request", "pause"})
_SILENT_RESULTS = frozenset({"null", "recall", "agent_state_changed", "condense", "user_rejected", "success"})
_WITHOUT_TOOL = frozenset({"message", "finish", "reject", "think"})
# How what OpenHands writes of an edit or a cell that failed begins: it states no status of them. A cell that a program
# ended early shows an exception under a line of 75 dashes.
_EDITOR = re.compile(r"ERROR:\n")
_CELL = re.compile(
    r"ERROR:\s|\[Your proposed edit has introduced new syntax error|\[No exact match found in "
    r"|(?:.*\n)*?-{75}\n.*Traceback \(most recent call last\)"
)
_FAILED = {"edit": _EDITOR, "read": _EDITOR, "run_ipython": _CELL}


class _Usage(ChatUsage):
    response_id: str | None = None
    model: str | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    usage: ChatUsage | None = None
    model: str | None = None
    choices: Any = None


class _Tool(msgspec.Struct):
    tool_call_id: str | None = None
    function_name: str | None = None
    model_response: _Response | None = None


class _Metrics(msgspec.Struct):
    accumulated_cost: Annotated[float, msgspec.Meta(ge=0, le=LARGEST_FLOAT)] | None = None
    token_usages: list[_Usage] = []


class _Report(msgspec.Struct):
    resolved: bool | None = None


class _Test(msgspec.Struct):
    report: _Report | None = None
    resolved: bool | None = None


class _Model(msgspec.Struct):
    model: str | None = None


class _Settings(msgspec.Struct):
    agent_class: str | None = None
    llm_config: _Model | None = None


class _Issue(msgspec.Struct):
    owner: str = ""
    repo: str = ""
    number: int = 0


class _Row(msgspec.Struct):
    history: msgspec.Raw
    instance_id: str | None = None
    issue: _Issue | None = None
    metrics: _Metrics | None = None
    success: bool | None = None
    resolved: bool | None = None
    report: _Report | None = None
    test_result: _Test | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None

    @property
    def task(self) -> str:
        """The instance, or the repository's issue."""
        if self.instance_id:
            return self.instance_id
        return f"{self.issue.owner}/{self.issue.repo}#{self.issue.number}" if self.issue is not None else ""

    @property
    def verdicts(self) -> list[bool]:
        """Whether the harness's tests passed, as often as it is stated, else whether the run was judged a success."""
        test = self.test_result or _Test()
        report, inner = self.report or _Report(), test.report or _Report()
        tested = [v for v in (self.resolved, report.resolved, test.resolved, inner.resolved) if v is not None]
        return tested or ([] if self.success is None else [self.success])


class _Event(msgspec.Struct):
    id: int | None = None
    timestamp: datetime.datetime | None = None
    source: str | None = None
    action: str | None = None
    observation: str | None = None
    cause: int | None = None
    tool: _Tool | None = msgspec.field(default=None, name="tool_call_metadata")
    args: Any = None  # for the run's digest
    content: Any = None
    exit_code: Any = None  # of a command; later versions state it in `extras`, the latest in `extras.metadata`
    extras: Any = None

    @property
    def is_error(self) -> bool:
        """Whether it is an error, or the command, edit or cell that it shows failed. Code -1 is of none."""
        failed = _FAILED.get(self.observation or "")
        if failed is not None and isinstance(self.content, str) and failed.match(self.content):
            return True
        extras = self.extras if isinstance(self.extras, dict) else {}
        metadata = extras.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        codes = {str(code) for code in (self.exit_code, extras.get("exit_code"), metadata.get("exit_code"))}
        return self.observation == "error" or not codes <= {"None", "0", "-1"}


RECORDS = (_Row, _Event)

_ROW = msgspec.json.Decoder(_Row)
_SETTINGS = msgspec.json.Decoder(_Settings | None)
_EVENT = msgspec.json.Decoder(_Event)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a row with a history of actions, or as a stream of events."""
    keys = set(opening(head).keys)
    if {"instance_id", "instruction"} <= keys or {"issue", "issue_type", "instruction"} <= keys:
        return True
    if "history" in keys and {"git_patch", "test_result"} & keys:
        return True
    stream = head.lstrip().startswith(b"[") or {"id", "timestamp", "source"} <= keys
    return stream and b'"source"' in head and b'"cause"' in head and b'"action"' in head


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each row, and for each file of events.

    Problem kinds, of one trace: those of `graphs.reading.json_problems`, "unknown-tool-call", "duplicate-id",
    "empty-trace".
    """
    names = short_names(sources)
    for source in sources:
        name, stream = names[source.name], list[Document]()
        for document in documents(source):
            if not has_key(document.raw, "history"):
                stream.append(document)
                continue
            try:
                yield _row(document, f"{name}/{document.place.number}")
            except TraceError as error:
                yield error.problem
        if stream:
            try:
                yield _History(TraceRecord(name, name, source.name, 1, 0, format="openhands"), ()).add_all(stream)
            except TraceError as error:
                yield error.problem
        source.release()


def _row(document: Document, trace: str) -> TraceRecord:
    raw, place = document
    row = decode(_ROW, raw, file=place.file, line=place.line, trace=trace)
    record = TraceRecord(trace, row.task or trace, place.file, place.line, place.offset, format="openhands")
    record.error = row.error or ""
    record.complete = True  # a row is a whole run, where a file of events ends at any event
    usages = row.metrics.token_usages if row.metrics is not None else []
    stated = object_text(row.metadata)
    settings = decode(_SETTINGS, stated, file=place.file, line=place.line, field="metadata", trace=trace) or _Settings()
    model = settings.llm_config.model if settings.llm_config is not None else None
    record.system = settings.agent_class or "openhands"
    if row.metrics is not None and row.metrics.accumulated_cost:  # 0 is written for a model without a known price, too
        record.costs["money"] = row.metrics.accumulated_cost
    record.model = model or model_names(usage.model for usage in usages)
    for verdict in row.verdicts:
        record.state_reward("resolved", float(verdict), "resolved")
    record.sole_channel()
    return _History(record, usages, row.task, settings).add_all(_events(row, document, trace))


def _events(row: _Row, document: Document, trace: str) -> Iterator[Document]:
    """The events of a row. Older rows pair an action with its observation, which may be null."""
    for event in nested_documents(document, row.history, "history", trace):
        if not event.raw.startswith(b"["):
            yield event
            continue
        yield from (
            part for part in nested_documents(event, msgspec.Raw(event.raw), "history", trace) if part.raw != b"null"
        )


class _History:
    """Turns OpenHands' events into events of the record."""

    def __init__(self, record: TraceRecord, usages: Iterable[_Usage], *stated: Any) -> None:
        """Begin with an empty history.

        Args:
          record: where to.
          usages: the tokens of model responses.
          stated: what else the log states of the run.
        """
        self.record, self.stated, self.team = record, stated, Team(record)
        self.usages = {usage.response_id: usage for usage in usages if usage.response_id}
        self.is_of_one = bool(record.model)  # which responses may spell in another way
        self.team.agent(_AGENT, _AGENT)
        self.working = [_AGENT]  # who works, the delegates innermost
        self.calls: dict[str, int] = {}  # model response -> position of its call
        # Action without a result -> position, instance and tool of its tool call; None for one without a tool.
        self.waiting: dict[int, tuple[int, str, str] | None] = {}
        self.latest: tuple[int, str, str] | None = None  # the tool call that an observation without cause answers

    def add_all(self, documents: Iterable[Document]) -> TraceRecord:
        """The record with all events.

        Raises:
          TraceError: kinds of `graphs.reading.decode.decode`, "unknown-tool-call", "duplicate-id".
        """
        events: list[_Event] = []
        seen: set[int] = set()
        for index, (raw, place) in enumerate(documents):
            field, trace = f"history[{index}]", self.record.trace_id
            event = decode_record(_EVENT, raw, file=place.file, line=place.line, field=field, trace=trace)
            events.append(event)
            if event.action is None and event.observation is None:
                expected = "an action or an observation: without either it may be any event"
                self._refuse("missing-field", place, f"{field}.action", None, expected)
            if event.id is not None and event.id in seen:
                expected = "an id that no other event of the history has"
                self._refuse("duplicate-id", place, f"{field}.id", event.id, expected)
            if event.id is not None:
                seen.add(event.id)
                if event.action is not None:
                    self.waiting[event.id] = None
            if event.action is not None and event.action not in _SILENT:
                self._action(str(index), event, place, first=index == 0)
            elif event.observation is not None and event.observation not in _SILENT_RESULTS:
                self._observation(index, event, place)
        self.record.run = run_digest(*self.stated, events)
        name_models(self.record)
        return self.team.finish()

    def _action(self, event_id: str, event: _Event, place: Place, *, first: bool) -> None:
        time, agent, kind = seconds(event.timestamp), self.working[-1], event.action or ""
        by_user = event.source == "user" or (event.source is None and first and kind == "message")
        if by_user or event.source == "environment":
            if by_user and kind == "message":
                self.team.human(self.working[0], event_id, place, time=time)
            return
        call = self._call(event_id, event, place, time)
        if kind == "delegate":
            instance = f"{event_id}/delegate"
            self.team.agent(instance, "delegate", parent=agent)
            self.team.spawn(agent, f"{event_id}/spawn", instance, place, call=call, time=time)
            self.working.append(instance)
        elif kind not in _WITHOUT_TOOL:
            tool = (event.tool.function_name if event.tool is not None else None) or kind
            position = self.team.tool_call(agent, f"{event_id}/call", place, call=call, tool=tool, time=time)
            self.latest = (position, agent, tool)
            if event.id is not None:
                self.waiting[event.id] = self.latest

    def _call(self, event_id: str, event: _Event, place: Place, time: float) -> int:
        """The model call of an action; actions of one response share it."""
        response = event.tool.model_response if event.tool is not None else None
        name = (response.id if response is not None else None) or ""
        if name in self.calls:
            return self.calls[name]
        usage = self.usages.get(name)
        counts, unlike = call_counts(usage, None if response is None else response.usage)
        self.record.unlike_counts += [(unlike, place)] if unlike else []
        named = None if self.is_of_one or response is None else response.model
        model = usage.model if usage and usage.model else named
        position = self.team.call(
            self.working[-1], event_id, place, time=time,
            event_type=EventType.STOP if event.action in ("finish", "reject") else None,
            model=model or None, stopped=stop_reason(response and response.choices), **counts,
        )  # fmt: skip
        if name:
            self.calls[name] = position
        return position

    def _observation(self, index: int, event: _Event, place: Place) -> None:
        time, event_id = seconds(event.timestamp), str(index)
        if event.observation == "delegate":
            if len(self.working) > 1:
                delegate = self.working.pop()
                self.team.returned(delegate, event_id, self.working[-1], place, time=time)
            return
        answered = self.latest
        if event.cause is not None:
            if event.cause not in self.waiting:
                expected = "the id of an action before it without a result"
                self._refuse("unknown-tool-call", place, f"history[{index}].cause", event.cause, expected)
            answered = self.waiting[event.cause]
            if answered is not None:  # else several observations may name an action without a tool
                del self.waiting[event.cause]
        self.latest = None
        if answered is not None:
            position, agent, tool = answered
            status = "error" if event.is_error else None
            self.team.result(agent, event_id, place, answers=position, tool=tool, status=status, time=time)

    def _refuse(self, kind: str, place: Place, field: str, value: object, expected: str) -> NoReturn:
        shown = "absent" if value is None else excerpt(value)
        raise TraceError(Problem(kind, place.file, place.line, field, shown, expected, self.record.trace_id))
