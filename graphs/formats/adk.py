"""Google ADK: sessions, results of evaluations with the sessions they ran, and sets of evaluation cases.

    {id, appName, userId, events: [EVENT]}                                            SESSION.session.json
    {evalSetResultId, evalSetId, evalCaseResults: [{evalId, sessionId, sessionDetails: SESSION,
     overallEvalMetricResults: [{metricName, score}], finalEvalStatus}]}              NAME.evalset_result.json
    {evalSetId, evalCases: [{evalId, conversation: [{userContent, intermediateData: {invocationEvents: [EVENT]},
     finalResponse}]}]}                                                               NAME.evalset.json
    EVENT: {id, author, branch, content: {role, parts: [{text} | {functionCall} | {functionResponse}]},
            actions: {transferToAgent}, usageMetadata, modelVersion, errorCode, timestamp}

Keys are in camel or in snake case. An event of an agent with content of the model is one model call, and an action.
`docs/formats/adk.md` has the whole mapping.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from graphs.errors import Problem, TraceError
from graphs.event_types import EdgeType
from graphs.formats.common.chat import OpenCalls
from graphs.formats.common.team import Team
from graphs.reading.decode import decode_record
from graphs.reading.documents import Document, Place, documents
from graphs.reading.files import name_models
from graphs.reading.keys import opening
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord
from graphs.traces.statuses import says_error

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT // 2)]  # so that the sum of two fits an int32
_USER = "user"
_TRANSFER = "transfer_to_agent"
_PASSED = {1: 1.0, 2: 0.0}  # EvalStatus; 3 is "not evaluated"


class _Call(msgspec.Struct):
    id: str | None = None
    name: str = ""


class _Answer(_Call):
    response: Any = None

    @property
    def failed(self) -> bool:
        """Whether the tool says so: `error`, as ADK answers a call without its arguments; MCP's `isError`; a status."""
        told = self.response if isinstance(self.response, dict) else {}
        status = told.get("status")
        return (
            bool(told.get("error")) or told.get("isError") is True or (isinstance(status, str) and says_error(status))
        )


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    function_call: _Call | None = None
    function_response: _Answer | None = None


class _Content(msgspec.Struct):
    role: str | None = None
    parts: list[_Part] | None = None


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: _Count | None = None
    candidates_token_count: _Count | None = None
    thoughts_token_count: _Count | None = None
    cached_content_token_count: _Count | None = None


class _Actions(msgspec.Struct, rename="camel"):
    transfer_to_agent: str | None = None


class _Event(msgspec.Struct, rename="camel"):
    author: str
    id: str = ""
    content: _Content | None = None
    actions: _Actions | None = None
    branch: str | None = None
    partial: bool | None = None
    error_code: str | None = None
    finish_reason: Any = None
    model_version: str | None = None
    usage_metadata: _Usage | None = None
    timestamp: float | None = None

    @property
    def parts(self) -> list[_Part]:
        return (self.content.parts if self.content else None) or []


class _Session(msgspec.Struct, rename="camel"):
    id: str
    events: list[_Event]
    app_name: str = ""


class _Intermediate(msgspec.Struct, rename="camel"):
    invocation_events: list[_Event] | None = None
    tool_uses: list[_Call] | None = None


class _Invocation(msgspec.Struct, rename="camel"):
    user_content: _Content
    final_response: _Content | None = None
    intermediate_data: _Intermediate | None = None


class _Case(msgspec.Struct, rename="camel"):
    eval_id: str
    conversation: list[_Invocation] | None = None


class _Set(msgspec.Struct, rename="camel"):
    eval_set_id: str
    eval_cases: list[_Case]


class _Metric(msgspec.Struct, rename="camel"):
    metric_name: str
    score: float | None = None


class _CaseResult(msgspec.Struct, rename="camel"):
    eval_id: str
    session_id: str
    overall_eval_metric_results: list[_Metric]
    final_eval_status: int
    session_details: _Session | None = None


class _SetResult(msgspec.Struct, rename="camel"):
    eval_set_id: str
    eval_case_results: list[_CaseResult]


RECORDS = (_Session, _Event, _Set, _Case, _Invocation, _SetResult, _CaseResult)
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "evalCaseResults": msgspec.json.Decoder(_SetResult),
    "evalCases": msgspec.json.Decoder(_Set),
    "events": msgspec.json.Decoder(_Session),
}
_UNDERSCORE = re.compile(r"_([a-z])")  # which begins a word of a key in snake case


def sniff(head: bytes) -> bool:
    """Whether the content begins as a session, or as a set of evaluation cases or of their results."""
    if head.startswith(b'"{'):  # ADK 1 wrote results as a JSON text within JSON
        head = head[1:].replace(b'\\"', b'"').replace(b"\\n", b"\n")
    shown = opening(head)
    keys = {_camel(key) for key in shown.keys}
    of_event = {_camel(key) for key in shown.first.get("events", ())}
    is_session = {"id", "events"} <= keys and {"author", "invocationId"} <= of_event
    is_set = "evalSetId" in keys and not keys.isdisjoint({"evalCases", "evalCaseResults"})
    return is_session or is_set or {"appName", "userId", "id"} <= keys


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each session, case or result of a case.

    Problem kinds: those of `graphs.reading.json_problems`, "unknown-tool-call", "no-events", "bad-value" (a case of
    ADK 1, whose tool calls name no author).
    """
    for source in sources:
        for document in documents(source):
            try:
                value, decoder = _decoded(document)
                file, line = document.place.file, document.place.line
                wire = decode_record(decoder, msgspec.json.encode(value), file=file, line=line)
            except TraceError as error:
                yield error.problem
                continue
            for run in _runs(wire, document.place):
                try:
                    yield run if isinstance(run, Problem) else _record(*run)
                except TraceError as error:
                    yield error.problem
        source.release()


def _decoded(document: Document) -> tuple[Any, msgspec.json.Decoder[Any]]:
    """A value with its keys in camel case, and its decoder."""
    raw, (file, line, _) = document.raw, document.place
    value = decode_record(_ANY, raw, file=file, line=line)
    if isinstance(value, str):
        value = decode_record(_ANY, value.encode(), file=file, line=line)
    value = _in_camel(value)
    named = (key for key in _DECODERS if isinstance(value, dict) and key in value)
    return value, _DECODERS[next(named, "events")]


def _camel(key: str) -> str:
    return _UNDERSCORE.sub(lambda match: match[1].upper(), key)


def _in_camel(value: Any) -> Any:
    """A value with the keys of all its objects in camel case, also inside the content that models wrote."""
    if isinstance(value, dict):
        return {_camel(key): _in_camel(part) for key, part in value.items()}
    return [_in_camel(part) for part in value] if isinstance(value, list) else value


def _runs(wire: Any, place: Place) -> Iterator[tuple[TraceRecord, list[_Event]] | Problem]:
    """Each run of a file: its record, without events, and what happened."""
    if isinstance(wire, _Session):
        yield TraceRecord(wire.id, wire.id, *place, format="adk", system=_system(wire)), wire.events
    elif isinstance(wire, _Set):
        for case in wire.eval_cases:
            name = f"{wire.eval_set_id}/{case.eval_id}"
            try:
                yield TraceRecord(name, name, *place, format="adk", system="adk"), _events(case, name, place)
            except TraceError as error:
                yield error.problem
    else:
        for result in wire.eval_case_results:
            session = result.session_details
            group = f"{wire.eval_set_id}/{result.eval_id}"
            record = TraceRecord(result.session_id, group, *place, format="adk")
            if session is None:
                record.lack_events("sessionDetails", "absent", "the session of the evaluation")
            else:
                record.system = _system(session)
            scores = {metric.metric_name: metric.score for metric in result.overall_eval_metric_results}
            record.rewards = {name: score for name, score in scores.items() if score is not None}
            if result.final_eval_status in _PASSED:
                record.rewards["team"] = _PASSED[result.final_eval_status]
            yield record, [] if session is None else session.events


def _system(session: _Session) -> str:
    return f"adk {session.app_name}".strip()


def _events(case: _Case, name: str, place: Place) -> list[_Event]:
    """The events of a case's conversation.

    Raises:
      TraceError: "bad-value", tool calls without authors.
    """
    events: list[_Event] = []
    for index, invocation in enumerate(case.conversation or ()):
        between = invocation.intermediate_data or _Intermediate()
        if between.tool_uses:
            field = f"conversation[{index}].intermediateData.toolUses"
            value, expected = excerpt(between.tool_uses[0].name), "invocationEvents, which say who called which tool"
            raise TraceError(Problem("bad-value", *place[:2], field, value, expected, name))
        events.append(_Event(_USER, content=invocation.user_content))
        inner = between.invocation_events or []
        events += inner
        if invocation.final_response is not None and (not inner or inner[-1].content != invocation.final_response):
            author = inner[-1].author if inner else "agent"
            events.append(_Event(author, content=invocation.final_response))
    return events


def _record(record: TraceRecord, events: list[_Event]) -> TraceRecord:
    """Fill the record of a run with its events.

    An agent reads what the others wrote before it, except on parallel branches: its call has an edge from the latest
    call that it could read of each branch, unless that call handed over to it.
    """
    place = Place(record.file, record.line, record.offset)
    team = Team(record)
    targets, of_transfers = _transfers(events)
    listener, listeners = _USER, list[str]()  # who speaks next, and thus hears what the user writes
    for event in reversed(events):
        listener = listener if event.author == _USER else event.author
        listeners.append(listener)
    listeners.reverse()
    calls: dict[str, OpenCalls] = {}
    last: dict[str, int] = {}  # the latest call of each agent
    said: dict[str, tuple[str, int]] = {}  # the latest call of each branch, with its agent
    givers: dict[str, int] = {}  # agent -> the call that handed over to it, until its next call
    for index, event in enumerate(events):
        agent, name = event.author, event.id or str(index)
        columns: dict[str, Any] = {"time": math.nan if event.timestamp is None else event.timestamp}
        asked = [part.function_call for part in event.parts if part.function_call is not None]
        answers = [part.function_response for part in event.parts if part.function_response is not None]
        is_call = bool(event.parts and not answers) or event.error_code is not None
        if event.partial:
            continue
        if agent == _USER and not answers:
            if event.parts and listeners[index] != _USER:
                team.agent(listeners[index], listeners[index])
                team.human(listeners[index], name, place, **columns)
            continue
        team.agent(agent, agent)
        of_agent = calls.setdefault(agent, OpenCalls())
        for number, answer in enumerate(answers):
            if (index, number) in of_transfers:
                continue
            answered = of_agent.take(answer.id)
            if answered is None:
                record.refuse("unknown-tool-call", f"events[{index}]", answer.id, "the id of an open tool call")
            result, status = f"{name}/{number}" if len(answers) > 1 else name, "error" if answer.failed else None
            team.result(agent, result, place, answers=answered[0], tool=answered[1], status=status, **columns)
        if not is_call:
            continue
        usage = event.usage_metadata or _Usage()
        written = [count for count in (usage.candidates_token_count, usage.thoughts_token_count) if count is not None]
        call = team.call(
            agent, name, place, tokens=sum(written) if written else None, input_tokens=usage.prompt_token_count,
            model=event.model_version or None, cached_tokens=usage.cached_content_token_count,
            status="error" if event.error_code is not None else None, stopped=event.finish_reason, **columns,
        )  # fmt: skip
        giver = givers.pop(agent, None)
        for branch, (author, position) in said.items():
            is_new = author != agent and position > last.get(agent, -1) and position != giver
            if is_new and _reads(event.branch or "", branch):
                record.edge(position, call, EdgeType.MESSAGE)
        last[agent], said[event.branch or ""] = call, (agent, call)
        for number, tool in enumerate(asked):
            effect, target = f"{name}/call-{number}", targets.get((index, number), "")
            if not target:
                asked_for = team.tool_call(agent, effect, place, call=call, tool=tool.name, **columns)
                of_agent.add(tool.id, asked_for, tool.name, call)
                continue
            if target in record.instances:
                team.wake(agent, effect, target, place, **columns)
            else:
                team.agent(target, target, parent=agent)
                team.spawn(agent, effect, target, place, **columns)
            givers[target] = call
    if not record.ids:
        if record.unread is None:
            record.lack_events("events", "none", "an event with content")
        return record
    name_models(record)
    return team.finish()


def _reads(branch: str, other: str) -> bool:
    """Whether an agent on a branch reads what was written on another: above it, or without a branch of its own."""
    return not branch or not other or branch == other or branch.startswith(f"{other}.")


def _transfers(events: list[_Event]) -> tuple[dict[tuple[int, int], str], set[tuple[int, int]]]:
    """Calls that handed over, with their targets, and the answers that state these; each by event and number in it."""
    waiting: dict[str, dict[str | None, tuple[int, int]]] = {}  # agent -> id of a call -> the call
    targets: dict[tuple[int, int], str] = {}
    answered: set[tuple[int, int]] = set()
    for index, event in enumerate(events):
        of_agent = waiting.setdefault(event.author, {})
        asked = [part.function_call for part in event.parts if part.function_call is not None]
        of_agent |= {call.id: (index, number) for number, call in enumerate(asked) if call.name == _TRANSFER}
        answers = [part.function_response for part in event.parts if part.function_response is not None]
        target = event.actions.transfer_to_agent if event.actions is not None else None
        for number, answer in enumerate(answers):
            if answer.name == _TRANSFER and target and answer.id in of_agent:
                targets[of_agent.pop(answer.id)] = target
                answered.add((index, number))
    return targets, answered
