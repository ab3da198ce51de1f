"""OpenHands: rows of `output.jsonl` (evaluation harness, resolver), and event streams (saved trajectories).

    {instance_id | issue, history: [EVENT | [ACTION, OBSERVATION]], metrics: {token_usages}, test_result, success}
    [EVENT, …]
    EVENT: {id, timestamp, source, action | observation, cause, tool_call_metadata: {function_name, model_response}}

A row, or a stream, is a trace. What the agent does is a model call, and an action, with the tool that it used as an
effect; actions of one model response are one call. `docs/formats/openhands.md` has the whole mapping.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EventType
from graphs.formats.common.team import Team
from graphs.formats.openhands_rows import ROW, Settings, Tool, Usage, key_of, run_of, runs_of
from graphs.reading.decode import decode, decode_envelope, decode_record
from graphs.reading.documents import Document, Place, documents, lost_row
from graphs.reading.files import model_names, short_names
from graphs.reading.keys import has_key, opening
from graphs.reading.repeated_runs import RepeatedRuns
from graphs.reading.source import Source
from graphs.reading.times import seconds
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["read", "sniff"]

_AGENT, _USER = "agent", "user"
_SILENT = frozenset({"null", "system", "recall", "change_agent_state", "condensation", "condensation_request", "pause"})
_SILENT_RESULTS = frozenset({"null", "recall", "agent_state_changed", "condense", "user_rejected", "success"})
_WITHOUT_TOOL = frozenset({"message", "finish", "reject", "think"})


class _Event(msgspec.Struct):
    id: int | None = None
    timestamp: datetime.datetime | None = None
    source: str | None = None
    action: str | None = None
    observation: str | None = None
    cause: int | None = None
    tool: Tool | None = msgspec.field(default=None, name="tool_call_metadata")


_EVENT = msgspec.json.Decoder(_Event)
_PAIR = msgspec.json.Decoder(list[msgspec.Raw])


def sniff(head: bytes) -> bool:
    """Whether the content begins as a row with a history of actions, or as a stream of events."""
    keys = set(opening(head).keys)
    if {"instance_id", "instruction"} <= keys or {"issue", "issue_type", "instruction"} <= keys:
        return True
    if "history" in keys and {"git_patch", "test_result"} & keys:
        return True
    stream = head.lstrip().startswith(b"[") or {"id", "timestamp", "source"} <= keys
    return stream and b'"source"' in head and b'"cause"' in head and b'"action"' in head


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each row, and for each file of events, which a line that cannot be read refuses.

    Problem kinds, one trace refused: those of `graphs.reading.json_problems`, "unknown-tool-call", "lost-row",
    "empty-trace". Of rows with one history and verdict: "repeated-run", it is read from another row.
    """
    names, runs = short_names(sources), runs_of(sources)
    for source in sources:
        stream: list[tuple[bytes, Place]] = []
        lost: Problem | None = None
        for document in documents(source):
            if isinstance(document, Problem):
                lost = lost or document
                yield document
            elif has_key(document.raw, "history"):
                try:
                    yield _row(document, names[source.name], runs)
                except TraceError as error:
                    yield error.problem
            else:
                stream.append(document)
        lost = lost or next((lost.problem for lost in source.lost.values()), None)
        if stream and lost is not None:
            yield lost_row(lost, names[source.name], "events")
        elif stream:
            record = TraceRecord(names[source.name], names[source.name], source.name, 1, 0, format="openhands")
            try:
                yield _History(record, {}).add_all(stream)
            except TraceError as error:
                yield error.problem
        source.release()


def _row(document: Document, file: str, runs: RepeatedRuns) -> TraceRecord:
    raw, place = document
    row = decode_envelope(ROW, raw, file=place.file, line=place.line)
    trace = f"{file}/{place.line}"
    repeated = runs.problem(key_of(row), run_of(row, place), "history", place.line, trace)
    if repeated is not None:
        raise TraceError(repeated)
    task = row.task or f"{file}/{place.line}"
    record = TraceRecord(trace, task, place.file, place.line, place.offset, format="openhands")
    usages = row.metrics.token_usages if row.metrics is not None else []
    settings = row.metadata or Settings()
    record.system = settings.agent_class or "openhands"
    record.model = (settings.llm_config.model if settings.llm_config else None) or model_names(u.model for u in usages)
    verdicts = row.verdicts
    if len(set(verdicts)) > 1:
        record.refuse("disagreeing-rewards", "resolved", verdicts, "one verdict of the tests")
    if verdicts:
        record.rewards = {"resolved": float(verdicts[0]), "team": float(verdicts[0])}
    events: list[tuple[bytes, Place]] = []
    for one in row.history:
        text = bytes(one)
        if text.startswith(b"["):  # older rows pair an action with its observation
            pair = decode(_PAIR, text, file=place.file, line=place.line, at="history", trace=record.trace_id)
            events += [(bytes(part), place) for part in pair if bytes(part) != b"null"]
        else:
            events.append((text, place))
    return _History(record, {usage.response_id: usage for usage in usages if usage.response_id}).add_all(events)


class _History:
    """Turns OpenHands' events into events of the record."""

    def __init__(self, record: TraceRecord, usages: dict[str, Usage]) -> None:
        self.record, self.usages, self.team = record, usages, Team(record)
        self.team.agent(_AGENT, _AGENT)
        self.working = [_AGENT]  # who works, the delegates innermost
        self.calls: dict[str, int] = {}  # model response -> position of its call
        self.waiting: dict[int, tuple[int, str, str] | None] = {}  # action -> position, instance, tool; None without
        self.latest: tuple[int, str, str] | None = None  # the tool call that an observation without cause answers

    def add_all(self, events: list[tuple[bytes, Place]]) -> TraceRecord:
        """The record with all events.

        Raises:
          TraceError: kinds of `graphs.reading.decode.decode`, "unknown-tool-call", "duplicate-id".
        """
        trace = self.record.trace_id
        seen: set[int | None] = set()
        for index, (raw, place) in enumerate(events):
            event = decode_record(_EVENT, raw, file=place.file, line=place.line, at=f"history[{index}]", trace=trace)
            if event.action is None and event.observation is None:
                expected = "an action or an observation: without either it may be any event"
                field = f"history[{index}].action"
                raise TraceError(Problem("missing-field", place.file, place.line, field, "absent", expected, trace))
            if event.id is not None and event.id in seen:
                expected = "an id that no other event of the history has"
                value, field = excerpt(event.id), f"history[{index}].id"
                raise TraceError(Problem("duplicate-id", place.file, place.line, field, value, expected, trace))
            seen.add(event.id)
            if event.action is not None and event.id is not None:
                self.waiting[event.id] = None
            if event.action is not None and event.action not in _SILENT:
                self._action(str(index), event, place, first=index == 0)
            elif event.observation is not None and event.observation not in _SILENT_RESULTS:
                self._observation(index, event, place)
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
        usage = self.usages.get(name) or (response.usage if response is not None else None) or Usage()
        position = self.team.call(
            self.working[-1], event_id, place, time=time,
            event_type=EventType.STOP if event.action in ("finish", "reject") else None,
            tokens=usage.completion_tokens, input_tokens=usage.prompt_tokens,
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
                field, expected = f"history[{index}].cause", "the id of an action before it without a result"
                value_text, trace = excerpt(event.cause), self.record.trace_id
                raise TraceError(Problem("unknown-tool-call", *place[:2], field, value_text, expected, trace))
            answered = self.waiting[event.cause]
            if answered is not None:
                del self.waiting[event.cause]
        self.latest = None
        if answered is not None:
            position, agent, tool = answered
            status = "error" if event.observation == "error" else None
            self.team.result(agent, event_id, place, answers=position, tool=tool, status=status, time=time)
