"""`TraceRecord`: one trace as columns in log order, and `check`, the rules that a trace of every format must obey.

Readers fill a `TraceRecord` and yield it; they neither build graphs nor check these rules. `graphs.traces.assembling`
checks each record before it joins a batch: ids are unique, edges join events without a cycle, agents are spawned before
they act, rewards are finite, and no time is negative. A trace whose edges run against log order is sorted.
"""

from __future__ import annotations

import heapq
import math
import operator
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import msgspec
import numpy as np

from graphs.errors import NO_EVENTS, Problem, TraceError
from graphs.event_types import EdgeType, EventType
from graphs.text import excerpt, printable
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.missing_names import no_ids
from graphs.traces.part import Sole
from graphs.traces.schema import (
    EVENT_EVIDENCE,
    FLAGS,
    FLOAT_RANGE,
    LARGEST_COUNT,
    LARGEST_FLOAT,
    ROUNDING,
    TRACE_EVIDENCE,
)
from graphs.traces.token_lists import gather_tokens, impossible_sums
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = [
    "AT_LIMIT",
    "BEFORE_PEOPLE",
    "BY_PEOPLE",
    "CUT_SHORT",
    "FLOAT_RANGE",
    "IN_ERROR",
    "LARGEST_COUNT",
    "LARGEST_FLOAT",
    "LOST_PARTS",
    "NEVER_NEGATIVE",
    "ONE_ZONE",
    "SPANNED",
    "UNLOGGED_CALLS",
    "UNSETTLED",
    "WORDED",
    "Agent",
    "TraceRecord",
    "ZonelessTime",
    "check",
    "check_columns",
    "check_evidence",
    "fitting",
    "is_cut",
    "is_limit",
    "reordered",
    "stray_zoneless",
    "topological_order",
]

NEVER_NEGATIVE = ("tokens", "input_tokens", "wall_clock_s", "tool_calls", "messages", "money")
"""Costs that are 0 or more."""

ONE_ZONE = "times of one clock: all dates with a zone, all without, or all numbers"
SPANNED = "spanned_s"
"""The metric of the seconds from the first begin to the last end of all spans, where events span less: of a span that
only gives structure, as the root, there is no event."""
UNLOGGED_CALLS = "unlogged_calls"
"""The metric that counts model calls which are in no event, as those that sum up a long conversation."""
LOST_PARTS = "lost_parts"
"""The metric that counts lines, and files of agents, which a trace is known to lack: its counts are lower bounds."""
AT_LIMIT = "ended_at_limit"
"""The metric that is 1 where the log says that the run, or its last reply, ended at a limit of `LIMITS`."""
IN_ERROR = "ended_in_error"
"""The metric that is 1 where the log says that the run failed (`TraceRecord.error`)."""
WORDED = "{} is {}"
"""The metric that is 1 where a channel's number was read from a word, of which the channel has three or more."""
BY_PEOPLE = "{} by people"
"""The metric that is 1 where the log says that a person gave the channel."""
BEFORE_PEOPLE = "{} before people"
"""The metric of what else gave the channel, where a person's label has taken its place."""
UNSETTLED = "unsettled-rewards"
"""The kind of problem of a channel of reward of which a log states several numbers, and not which counts."""
CUT_SHORT = "cut_short"
"""The metric that is 1 where spans name a parent that is not in the log (`missing`), or one has no end (`open`)."""
_CUTS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
"""Those by which a reply ended, which the status of its call then has."""
LIMITS = _CUTS | frozenset(
    {"limit", "max_prompt_length_exceeded", "max_response_length_exceeded", "timeout",
     "exit_cost", "exit_context", "exit_total_execution_time", "prompt_too_long"}
)  # fmt: skip
"""Words, in small letters, by which logs state that a limit of tokens, turns, time or money ended a run or a reply."""
_LIMIT_ERRORS = frozenset(
    {"maxturnsexceeded", "graphrecursion", "usagelimitexceeded", "llmcallslimitexceeded", "agentmaxsteps",
     "budgetexceeded", "contextwindowexceeded", "maxtokensreached", "contextwindowoverflow", "agenttimeout",
     "limitsexceeded", "timeexceeded", "maxiterationsreached", "sessionbudgetexceeded", "budgetlimited",
     "usagelimitreached", "insufficientquota", "quotaexceeded", "creditsdepleted"}
)  # fmt: skip
"""Names of errors by which a limit ends a run, as `_error_name` has them: of the OpenAI Agents SDK, LangGraph, Pydantic
AI and Codex, ADK, smolagents, LiteLLM (2), Strands (2), Harbor, mini-SWE-agent (2), OpenHands' SDK, Codex (2), and of
quotas of providers."""
_OF_RUNS = r"max(imum)?[ _](number of )?(iterations?|turns?|steps?|rounds?|messages?|budget)"
_LIMIT_WORDS = re.compile(
    rf"\b(reached|exceeded|hit) (the |its )?{_OF_RUNS}\b|\b{_OF_RUNS}( limit)?( \(?\d+\)?)?[ _](reached|exceeded)\b"
    r"|^token usage limit reached|^timeout of [\d.]+ seconds reached"
    rf"|^([\w$]*_)?{_OF_RUNS}(_usd)?(:|$)",
    re.IGNORECASE,
)
"""How others say it: OpenHands' `RuntimeError: Agent reached maximum iteration`, tau2-bench's `max_steps`, AutoGen."""
_ROUNDING = 1e-9  # a mean of equal numbers may differ from them in its last digits
_OF_ARRAYS = "networkx"  # a graph of arrays alone, whose times count from the first of the trace
_FEW = 64  # numbers, below which a loop is faster than an array
_RANGES = {name: key.within for name, key in EVENT_EVIDENCE.items() if key.kind != "id"}
"""Of each key of evidence that is a number."""
_IDS = {name: frozenset(no_ids(name)) for name, key in EVENT_EVIDENCE.items() if key.kind == "id"}


class ZonelessTime(float):
    """Seconds of a clock whose zone the log does not state: they compare with one another alone."""


def stray_zoneless(times: Iterable[float]) -> int | None:
    """The position of the first time without a zone, if others have one; None where all times are of one kind."""
    listed = list(times)
    if ZonelessTime not in set(map(type, listed)):
        return None
    is_mixed = any(type(time) is not ZonelessTime and not math.isnan(time) for time in listed)
    return next(i for i, time in enumerate(listed) if type(time) is ZonelessTime) if is_mixed else None


class Agent(msgspec.Struct):
    """An agent instance of one trace: its name and role (shared across traces) and the instance that spawned it."""

    name: str = ""
    role: str = ""
    parent: str = ""


class Word(NamedTuple):
    """An outcome that a log states as a word.

    Attributes:
      text: the word.
      field: what the format calls it.
      place: file, line and offset.
      position: of the event whose reward it is, -1 for the trace.
    """

    text: str
    field: str
    place: tuple[str, int, int]
    position: int = -1


class TraceRecord(msgspec.Struct):  # an object of a dataclass takes four times as long to make
    """Columns of one trace. Lists of events have one entry per event; edges refer to events by position.

    Attributes:
      trace_id, group_id: ids of the trace and of its task.
      group_is_text: whether the log states the group's id as a text, and not as a number; None where its format cannot
        tell, as CSV.
      model, system: the logged name of the acting policy (the model, with its version where it is logged), and of the
        harness that ran the team; "" where the log has none. Both are part of the group's key by default.
      task_kind: what kind of task it is, as somebody states; "" where nobody does.
      told_order: of a native log, whether its list is the order in which agents acted, or none; None: edges say so.
      metadata: short words that users of the log's format state of the trace, by names of their own; none once
        `graphs.logs.metadata_columns` has read it.
      file, line, offset: start of the trace, or of its root span (line 1-based, 0 where the format has none; offset in
        bytes of the decompressed file).
      ids, types, agents, actions, times, lines, offsets: per event. `agents` has instance ids, unique within the trace;
        `times` is NaN where absent; `lines` and `offsets` are the start of the event's record.
      files: per event, for formats that store a trace in several files; empty where all events are in `file`.
      summed: costs that are sums over the trace's calls.
      sources: further files that something of the trace was read from, such as its scores.
      beside: those files that hold no run or span of it, each with whether all that stands there is scores.
      complete: whether the format marks the end of a trace, and the log has the mark.
      error: why the log says that the run failed, such as the error of its environment; "" where it says nothing.
      invalidated: why the log says that the outcome does not count; "" where it does.
      earlier_outcomes: name of an outcome that the log states at an earlier moment, too; "" where it does not.
      missing: which spans the log lacks although others of the trace name them, in words; "" where it lacks none.
      open: the root span or an agent's, where it has begun and not ended, unlike others, in words; "" for none.
      outside: the first span, where all stand below one that the log lacks: a caller outside the log, or a lost root.
      unread: why it has no events, where that is no fault; () where it is told elsewhere, None where it is one.
      unknown: kinds of spans that the format does not know, each with its place: such a span is no event.
      unlike_counts: calls for which the log states different counts, in words, each with its place.
      embedded: of tools for which several models embed, each model, the tokens that it read, and the place of the tool.
      total_money: what the log says that the trace cost, where the sum of its calls counts in its place.
      repeated: records of the trace, such as spans, that stand again with equal content and count once.
      run: what the log states of the run, where `trace_id` is made of a file's name: copies of a log have it in common.
      logged_as: the trace's id in its records, where `trace_id` is another, such as an example's of an evaluation.
      columns: optional per-event columns, evidence (`graphs.traces.schema.EVENT_EVIDENCE`) and text
        (`graphs.traces.schema.TEXT_COLUMNS`), each a list no longer than `ids`; None where absent. The columns of
        `graphs.traces.tokens.TOKEN_COLUMNS` have a list for each event.
      turns: per event, a label of its turn within the trace; empty to have turns derived.
      senders, receivers, edge_types: per edge.
      instances: name, role and parent of agent instances by id.
      rewards: reward channels by name; "team" is the outcome by default.
      words: channels that the log states as words, which `graphs.logs.worded_outcomes` reads.
      event_words: the same of rewards of events: names and words.
      sole: the reward channels, where the log's only one is the outcome; None where it is not.
      unsettled: channels of which the log states several numbers and not which counts, each with its problem; "" for
        rewards of events, without which no outcome is whole.
      left_out: a problem for each score of a part that the log lacks.
      evidence: per-trace evidence (`graphs.traces.schema.TRACE_EVIDENCE`).
    """

    trace_id: str
    group_id: str
    file: str
    line: int = 0
    offset: int = 0
    format: str = ""
    ids: list[str] = []
    types: list[int] = []
    agents: list[str] = []
    actions: list[bool] = []
    times: list[float] = []
    lines: list[int] = []
    offsets: list[int] = []
    files: list[str] = []
    columns: dict[str, list[Any]] = {}
    turns: list[Any] = []
    senders: list[int] = []
    receivers: list[int] = []
    edge_types: list[int] = []
    instances: dict[str, Agent] = {}
    rewards: dict[str, float] = {}
    words: dict[str, Word] = {}
    event_words: list[tuple[str, Word]] = []
    sole: Sole | None = None
    unsettled: dict[str, Problem] = {}
    left_out: list[Problem] = []
    evidence: dict[str, float] = {}
    costs: dict[str, float] = {}
    metrics: dict[str, float] = {}
    topology: str = ""
    system: str = ""
    model: str = ""
    task_kind: str = ""
    told_order: bool | None = None
    metadata: dict[str, str] = {}
    group_is_text: bool | None = None
    summed: tuple[str, ...] = ()
    sources: list[str] = []
    beside: dict[str, bool] = {}
    complete: bool = False
    run: str = ""
    logged_as: str = ""
    error: str = ""
    invalidated: str = ""
    earlier_outcomes: str = ""
    missing: str = ""
    open: str = ""
    outside: str = ""
    repeated: int = 0
    unread: tuple[Problem, ...] | None = None
    unknown: list[tuple[str, tuple[str, int, int]]] = []
    unlike_counts: list[tuple[str, tuple[str, int, int]]] = []
    embedded: list[tuple[str, int, tuple[str, int, int]]] = []
    total_money: float | None = None

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
                column = self.columns.get(name)
                if column is None:
                    column = self.columns[name] = []
                if len(column) < position:
                    column.extend([None] * (position - len(column)))
                column.append(value)
        return position

    def edge(self, sender: int, receiver: int, edge_type: EdgeType) -> None:
        """Append an edge between two events given by position."""
        self.senders.append(sender)
        self.receivers.append(receiver)
        self.edge_types.append(int(edge_type))

    @property
    def channels(self) -> list[str]:
        """The reward channels that the log states, unsettled ones too."""
        return [channel for channel in dict.fromkeys((*self.rewards, *self.words, *self.unsettled)) if channel]

    def state_reward(self, channel: str, amount: float, field: str, place: tuple[str, int, int] | None = None) -> None:
        """State a reward channel, as a field does, by default where the trace starts; of unlike numbers none counts."""
        if channel in self.unsettled:
            return
        if channel in self.words:
            expected = f"{self.words[channel].text!r}, which the log states, too"
            self.unsettle(channel, field, f"{channel!r} {amount!r}", expected, place)
            return
        first = self.rewards.setdefault(channel, amount)
        if not math.isclose(first, amount, rel_tol=_ROUNDING):
            self.unsettle(channel, field, f"{channel!r} {amount!r}", f"{first!r}, which the log states, too", place)

    def state_word(self, channel: str, text: str, field: str, place: tuple[str, int, int] | None = None) -> None:
        """State a reward channel by a word; of unlike words, or a word and a number, none counts."""
        if channel in self.unsettled:
            return
        first: object = self.rewards.get(channel)
        if first is None:
            first = self.words.setdefault(channel, Word(text, field, place or (self.file, self.line, self.offset))).text
        if first != text:
            self.unsettle(channel, field, f"{channel!r} {text!r}", f"{first!r}, which the log states, too", place)

    def sole_channel(self, log: str = "", *, of_file: bool = False) -> None:
        """Say that the log's only channel is the outcome; of several, the user chooses, also where one is unsettled."""
        self.sole = Sole(tuple(sorted(self.channels)), log, of_file)

    def unsettle(
        self, channel: str, field: str, value: str, expected: str, place: tuple[str, int, int] | None = None
    ) -> None:
        """Take a channel away, or with "" the rewards of events, since nothing says which of its numbers counts."""
        self.rewards.pop(channel, None)
        self.words.pop(channel, None)
        settled = f"{expected}. None of them counts; --rewards FILE (in Python rewards=FILE) states the outcome"
        file, line, _ = place or (self.file, self.line, self.offset)
        problem = Problem(UNSETTLED, file, line, field, printable(value, 200), settled, self.trace_id)
        self.unsettled.setdefault(channel, problem)

    def leave_out(self, kind: str, field: str, value: str, expected: str, place: tuple[str, int, int]) -> None:
        """Note that a score is not read, since the log lacks the part that it is about."""
        expected = f"{expected}: the trace is read without this score"
        self.left_out.append(Problem(kind, *place[:2], field, excerpt(value), expected, self.trace_id))

    def add_reward(self, position: int, amount: float, name: str = "event_reward") -> None:
        """Add to the reward that arrives at an event, or to another reward of that name there."""
        column = self.columns.setdefault(name, [])
        column.extend([None] * (position + 1 - len(column)))
        column[position] = (column[position] or 0.0) + amount

    def sum_money(self, calls: Iterable[int]) -> None:
        """State what the trace cost as the sum of its events, where that of each model call, by position, is known."""
        stated = dict(enumerate(self.columns.get("money", ())))
        known = [money for money in stated.values() if money is not None]
        whole = (
            all(stated.get(position) is not None for position in calls)
            and not {UNLOGGED_CALLS, LOST_PARTS} & self.metrics.keys()
        )
        if known and whole and "money" not in self.costs:
            self.costs["money"], self.summed = math.fsum(known), ("money",)

    def unlogged_call(self) -> None:
        """Note a model call that is in no event: sums of tokens and money are lower bounds."""
        self._lacks(UNLOGGED_CALLS)

    def lost_part(self, *, shown: bool = False) -> None:
        """Note a line, or the file of an agent, that the trace is read without: all counts are lower bounds.

        `shown` is whether an event shows whose it is: that of an agent that was started and has no action.
        """
        self._lacks(LOST_PARTS)
        if not shown:
            self.unlogged_call()  # it may be one

    def _lacks(self, metric: str) -> None:
        self.metrics[metric] = self.metrics.get(metric, 0.0) + 1
        self.costs = {name: cost for name, cost in self.costs.items() if name not in self.summed}

    def ended_by(self, reason: object) -> None:
        """Note that the run ended at a limit, if the reason that the log states for its end is one."""
        if is_limit(reason):
            self.metrics[AT_LIMIT] = 1.0

    def lack_events(self, field: str, value: object, expected: str) -> None:
        """Say that the run has no event, which is no fault of a log. Its outcome counts beside those of traces."""
        self.unread = (Problem(NO_EVENTS, self.file, self.line, field, excerpt(value), expected, self.trace_id),)

    def without_events(self) -> TraceRecord:
        """What counts of a trace that cannot be read, for a reason told elsewhere: its outcome and its system."""
        rest = TraceRecord(self.trace_id, self.group_id, self.file, self.line, self.offset, self.format, unread=())
        rest.rewards, rest.words, rest.sole, rest.metrics = self.rewards, self.words, self.sole, self.metrics
        rest.unsettled, rest.error, rest.invalidated = self.unsettled, self.error, self.invalidated
        rest.metadata, rest.system = self.metadata, self.system
        return rest

    def refuse(self, kind: str, field: str, value: object, expected: str, position: int | None = None) -> NoReturn:
        """Raise a `TraceError` with the place of this trace, or of one of its events."""
        file, line = self.file, self.line
        if position is not None and position < len(self.lines):
            line = self.lines[position]
            file = self.files[position] if self.files else file
        raise TraceError(Problem(kind, file, line, field, excerpt(value), expected, self.trace_id))


def check(record: TraceRecord, limits: Limits = DEFAULT, *, columns: bool = True) -> TraceRecord:
    """Check a record and its size, and return it with every edge running forward.

    Without `columns`, what `check_columns` looks at is known to be sound.

    If an edge runs against log order and there is no cycle, events are sorted topologically, with the earliest ready
    event first. Otherwise the record is returned unchanged. Work is linear in the length of the trace, times its
    logarithm where events are reordered.

    Raises:
      TraceError: kinds "empty-trace", "empty-id", "duplicate-id", "self-edge", "cycle", "use-before-spawn",
        "agent-cycle", "unknown-parent", "non-finite-reward", "inconsistent-reward", "out-of-range", "mixed-zones",
        "bad-tokens", "too-many". A negative time is out of range.
    """
    for field, size, most in (("events", len(record.ids), limits.events), ("edges", len(record.senders), limits.edges)):
        if size > most:
            record.refuse("too-many", field, size, f"at most {most} {field} in a trace")
    if not record.ids:
        record.refuse("empty-trace", "events", [], "at least one event")
    _check_ids(record)
    if columns:
        _check_times(record)
    _check_numbers(record, columns)
    if columns:
        _check_tokens(record)
    _check_agent_rewards(record)
    if any(map(operator.ge, record.senders, record.receivers)):
        record = reordered(record, _forward_order(record))
    _check_agents(record)
    _check_spawns(record)
    return record


def check_columns(record: TraceRecord) -> None:
    """Check the columns of events by the rules that compare no two events.

    Many traces behind each other as one record are checked in few calls: if it passes, so does each of them.

    Raises:
      TraceError: kinds as of `check`.
    """
    _check_times(record)
    _check_event_rewards(record)
    _check_flags(record)
    check_evidence(record)
    _check_tokens(record)


def _check_ids(record: TraceRecord) -> None:
    for field, value in (("trace_id", record.trace_id), ("group_id", record.group_id)):
        if not value:
            record.refuse("empty-id", field, value, "a non-empty string")
    for name, values in (("id", record.ids), ("agent", record.agents)):
        if "" in values:
            position = values.index("")
            record.refuse("empty-id", f"events[{position}].{name}", "", "a non-empty string", position)
    if "" in record.instances:
        record.refuse("empty-id", "agents", "", "agents with non-empty ids")
    if len(set(record.ids)) == len(record.ids):
        return
    seen: dict[str, int] = {}
    for position, event_id in enumerate(record.ids):
        if event_id in seen:
            expected = f"an id that no other event of the trace has (also event {seen[event_id]})"
            record.refuse("duplicate-id", f"events[{position}].id", event_id, expected, position)
        seen[event_id] = position


def _check_times(record: TraceRecord) -> None:
    """Check that times have one zone and none is negative, as before 1970: the native format could not state it."""
    times = record.times
    stray = stray_zoneless(times)
    if stray is not None:
        record.refuse("mixed-zones", f"events[{stray}].time", times[stray], ONE_ZONE, stray)
    if record.format == _OF_ARRAYS or not (
        any(map((0.0).__gt__, times)) if len(times) < _FEW else np.any(np.array(times) < 0)
    ):  # NaN is not
        return
    position = next(i for i, time in enumerate(times) if time < 0)
    expected = "0 or more; dates count from 1970"
    record.refuse("out-of-range", f"events[{position}].time", times[position], expected, position)


def _check_numbers(record: TraceRecord, columns: bool) -> None:
    """Check that rewards are finite and that every number fits the dtype of its array, those of events if `columns`."""
    for channel, amount in record.rewards.items():
        if not abs(amount) <= LARGEST_FLOAT:
            finite = math.isfinite(amount)
            kind, expected = ("out-of-range", FLOAT_RANGE) if finite else ("non-finite-reward", "a finite number")
            record.refuse(kind, f"rewards.{channel}", amount, expected)
    if columns:
        _check_event_rewards(record)
    for name in NEVER_NEGATIVE if record.costs else ():
        if record.costs.get(name, 0.0) < 0:
            record.refuse("out-of-range", f"costs.{name}", record.costs[name], "a number, 0 or more")
    for name, amount in record.evidence.items():
        if not fitting(name, amount):
            record.refuse("out-of-range", f"evidence.{name}", amount, TRACE_EVIDENCE[name].within.words)
    if columns:
        _check_flags(record)
        check_evidence(record)


def _check_event_rewards(record: TraceRecord) -> None:
    event_rewards = record.columns.get("event_reward", [])
    for position, amount in enumerate(event_rewards if not _all_within(event_rewards, -math.inf, math.inf) else ()):
        if amount is not None and not math.isfinite(amount):
            record.refuse("non-finite-reward", f"events[{position}].event_reward", amount, "a finite number", position)


def _check_flags(record: TraceRecord) -> None:
    for name in (name for name in record.columns if name in FLAGS):
        for position, amount in enumerate(record.columns[name]):
            if amount is not None and amount not in (0, 1):
                record.refuse("bad-value", f"events[{position}].{name}", amount, "true, false, 1 or 0", position)


def fitting(name: str, amount: float) -> bool:
    """Whether a number may be evidence of a trace under a name; one that the schema does not know may be anything."""
    key = TRACE_EVIDENCE.get(name)
    if key is None:
        return True
    is_within = key.within.least <= amount <= key.within.most
    return is_within and (key.kind == "float" or amount == math.floor(amount))


def check_evidence(record: TraceRecord) -> None:
    """Check that the numbers that are evidence of events are in the ranges of `graphs.traces.schema`; NaN is none.

    And that no id of evidence is what programs write for none.

    Raises:
      TraceError: "out-of-range", "missing-field".
    """
    for name in _IDS.keys() & record.columns.keys():
        for absent in _IDS[name].intersection(record.columns[name]):
            position, expected = record.columns[name].index(absent), "an id, or null: programs write this for none"
            record.refuse("missing-field", f"events[{position}].{name}", absent, expected, position)
    # Over the columns of the trace, which are fewer than all keys.
    doubtful = {
        name for name, column in record.columns.items() if name in _RANGES and not _all_within(column, *_RANGES[name])
    }
    for name in _RANGES if doubtful else ():
        if name not in doubtful:
            continue
        least, most, words = _RANGES[name]
        for position, amount in enumerate(record.columns[name]):
            if amount is not None and not least <= amount <= most and not math.isnan(amount):
                record.refuse("out-of-range", f"events[{position}].{name}", amount, words, position)


def _check_agent_rewards(record: TraceRecord) -> None:
    """Check that each agent instance has one outcome of its own trace."""
    first: dict[str, float] = {}
    for position, amount in enumerate(record.columns.get("agent_reward", ())):
        if amount is not None and abs(first.setdefault(record.agents[position], amount) - amount) > 0:
            expected = f"{first[record.agents[position]]}, as at an earlier event: one number for each agent"
            record.refuse("inconsistent-reward", f"events[{position}].agent_reward", amount, expected, position)


def _all_within(column: list[Any], low: float, high: float, _: str = "") -> bool:
    """Whether all numbers of a column are finite and in a range. False may also mean that the check failed."""
    numbers = [amount for amount in column if amount is not None] if None in column else column
    try:
        if len(numbers) < _FEW:
            return all(low <= amount <= high and math.isfinite(amount) for amount in numbers)
        values = np.array(numbers, np.float64)
    except (OverflowError, TypeError, ValueError):
        return False
    return bool(np.all((values >= low) & (values <= high) & np.isfinite(values)))


def _check_agents(record: TraceRecord) -> None:
    """Check that each parent exists and that the spawn forest has no cycle."""
    instances = record.instances
    if not any(agent.parent for agent in instances.values()):
        return
    for name, agent in instances.items():
        if agent.parent and agent.parent not in instances:
            expected = "the id of an agent of this trace"
            record.refuse("unknown-parent", f"agents.{name}.parent", agent.parent, expected)
    rooted: set[str] = set()  # agents that are known to descend from a root
    for name in instances:
        path: list[str] = []
        walked: set[str] = set()
        current = name
        while current not in rooted:
            path.append(current)
            walked.add(current)
            parent = instances[current].parent
            if not parent or parent == current:
                break
            if parent in walked:
                expected = "a spawn forest without cycles"
                record.refuse("agent-cycle", f"agents.{parent}.parent", instances[parent].parent, expected)
            current = parent
        rooted.update(path)


def _check_spawns(record: TraceRecord) -> None:
    """Check that no agent acts before the first event that spawns it."""
    if EventType.SPAWN not in record.types:
        return
    first_spawn: dict[str, int] = {}
    for position, target in enumerate(record.columns.get("to", ())):
        if target is not None and record.types[position] == EventType.SPAWN:
            first_spawn.setdefault(target, position)
    first = dict(zip(reversed(record.agents), range(len(record.agents) - 1, -1, -1), strict=True))
    early = [(first[agent], agent) for agent, spawn in first_spawn.items() if first.get(agent, spawn) < spawn]
    if early:
        position, agent_id = min(early)
        expected = f"events after its spawn {record.ids[first_spawn[agent_id]]!r}"
        record.refuse("use-before-spawn", f"events[{position}].agent", agent_id, expected, position)


def _check_tokens(record: TraceRecord) -> None:
    """Check that the lists of an event's tokens fit each other, as `graphs.traces.token_lists` states it."""
    if record.columns.keys().isdisjoint(TOKEN_COLUMNS):
        return
    n = len(record.ids)
    columns = [record.columns.get(name, []) for name in TOKEN_COLUMNS]
    lists = [[*column, *[None] * (n - len(column))] for column in columns]
    for position, (ids, mask, *numbers) in enumerate(zip(*lists, strict=True)):
        stated = [
            (name, one) for name, one in zip(TOKEN_COLUMNS, (ids, mask, *numbers), strict=True) if one is not None
        ]
        length = len(stated[0][1]) if stated else 0
        if all(len(one) == length for _, one in stated):
            continue
        generated = sum(mask) if mask is not None else length if record.actions[position] else 0
        if (mask is None or len(mask) == length) and all(
            one is None or len(one) in (length, generated) for one in numbers
        ):
            continue
        sizes = dict(stated)
        shown = ", ".join(f"{len(one)} in {name}" for name, one in sizes.items())
        expected = "lists of one length, or log-probabilities of the generated tokens only"
        record.refuse("bad-tokens", f"events[{position}].{next(reversed(sizes))}", shown, expected, position)
    for position, column in enumerate(lists[TOKEN_COLUMNS.index("token_log_probs")]):
        above = [amount for amount in column or () if amount > ROUNDING]
        if above:
            field, words = f"events[{position}].token_log_probs", EVENT_EVIDENCE["log_prob"].within.words
            record.refuse("out-of-range", field, above[0], words, position)
    if "token_sums_of_squares" not in record.columns:
        return
    tokens, _ = gather_tokens(dict(zip(TOKEN_COLUMNS, lists, strict=True)), np.asarray(record.actions, bool))
    if len(impossible := impossible_sums(tokens)) and tokens is not None and tokens.sums_of_squares is not None:
        first = int(impossible[0])
        position, log_prob = int(tokens.events[first]), float(tokens.log_probs[first])
        shown = f"{tokens.sums_of_squares[first]:.6g} for token {first - int(tokens.offsets[position])}"
        expected = (
            f"a sum over the vocabulary, at least the square of the token's own probability: its log-probability is "
            f"{log_prob:.6g}"
        )
        record.refuse("bad-tokens", f"events[{position}].token_sums_of_squares", shown, expected, position)


def _forward_order(record: TraceRecord) -> list[int]:
    for sender, receiver in zip(record.senders, record.receivers, strict=True):
        if sender == receiver:
            record.refuse("self-edge", "edges", record.ids[sender], "two different events", sender)
    order = topological_order(len(record.ids), zip(record.senders, record.receivers, strict=True))
    if len(order) < len(record.ids):
        cycle = _find_cycle(record, set(range(len(record.ids))).difference(order))
        names = " -> ".join(record.ids[i] for i in cycle)
        record.refuse("cycle", "edges", names, "edges without a cycle", cycle[0])
    return order


def is_cut(reason: object) -> bool:
    """Whether what a log states as the reason of a reply's end, or the status of its call, is a limit of tokens.

    Examples:
      >>> is_cut("MAX_TOKENS"), is_cut("stop"), is_cut("timeout"), is_cut(None)
      (True, False, False, False)
    """
    return isinstance(reason, str) and reason.lower() in _CUTS


def is_limit(reason: object) -> bool:
    """Whether what a log states as the reason of an end is one of `LIMITS`, or an error that a limit raises.

    An error may be its name, with a message behind it or not, a whole traceback, or what it says in `_LIMIT_WORDS`.

    Examples:
      >>> is_limit("MAX_TOKENS"), is_limit("stop"), is_limit(None)
      (True, False, False)
      >>> is_limit("usage_limit_exceeded: You've hit your usage limit"), is_limit("server_overloaded")
      (True, False)
      >>> is_limit("langgraph.errors.GraphRecursionError: Recursion limit of 25 reached"), is_limit("TimeoutError")
      (True, False)
      >>> is_limit("RuntimeError: Agent reached maximum iteration. Current iteration: 30, max iteration: 30")
      True
      >>> is_limit("Maximum number of messages 9 reached, current message count: 9"), is_limit("Text 'OK' mentioned")
      (True, False)
    """
    if not isinstance(reason, str):
        return False
    stated = any(_error_name(line) in _LIMIT_ERRORS for line in reason.splitlines())
    return stated or reason.lower() in LIMITS or _LIMIT_WORDS.search(reason) is not None


def _error_name(line: str) -> str:
    """The name of an error that a line begins with: small letters, without modules and the words for an error."""
    name = re.split("[:(]", line, maxsplit=1)[0].strip(" .").rpartition(".")[2]
    return re.sub("[^a-z]", "", name.lower()).removesuffix("error").removesuffix("exception")


def topological_order(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """The numbers below `count`, the smallest ready one first; without those on a cycle or behind one.

    Args:
      count: how many numbers there are.
      pairs: numbers of which the first comes before the second.

    Examples:
      >>> from graphs.traces.record import topological_order
      >>> topological_order(3, [(2, 0)])
      [1, 2, 0]
      >>> topological_order(3, [(2, 0), (0, 2)])
      [1]
    """
    after: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    for first, second in pairs:
        after[first].append(second)
        waiting[second] += 1
    ready = [number for number in range(count) if waiting[number] == 0]  # sorted, so it is a heap
    taken = []
    while ready:
        current = heapq.heappop(ready)
        taken.append(current)
        for follower in after[current]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, follower)
    return taken


def _find_cycle(record: TraceRecord, stuck: set[int]) -> list[int]:
    """A cycle among the events that a topological sort could not place."""
    sources: dict[int, int] = {}
    for sender, receiver in sorted(zip(record.senders, record.receivers, strict=True)):
        if sender in stuck and receiver in stuck:
            sources[receiver] = sender  # every stuck event has a stuck cause, so a walk over causes repeats
    path, seen = [min(stuck)], {min(stuck)}
    while sources[path[-1]] not in seen:
        path.append(sources[path[-1]])
        seen.add(path[-1])
    start = path.index(sources[path[-1]])
    return [path[start], *reversed(path[start:])]


def reordered(record: TraceRecord, order: list[int]) -> TraceRecord:
    """The record with its events in `order`, and edges that refer to the new positions."""
    n = len(order)
    place = [0] * n
    for new, old in enumerate(order):
        place[old] = new

    def sorted_column(column: list[Any]) -> list[Any]:
        padded = column + [None] * (n - len(column))
        return [padded[i] for i in order]

    per_event: dict[str, Any] = {
        name: sorted_column(getattr(record, name))
        for name in ("ids", "types", "agents", "actions", "times", "lines", "offsets", "files", "turns")
        if getattr(record, name)
    }
    return msgspec.structs.replace(
        record,
        **per_event,
        columns={name: sorted_column(column) for name, column in record.columns.items()},
        senders=[place[i] for i in record.senders],
        receivers=[place[i] for i in record.receivers],
    )
