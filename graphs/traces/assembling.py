"""Assemble the records and parts that readers yield into one batch, a `graphs.traces.batch.Traces`.

Records are checked and become parts; copies of a run are left out; the columns of all parts are joined and
padded. No Python object is kept per event.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from graphs.errors import UNREAD_OUTCOME, CapacityError, NothingReadError, Problem, TraceError
from graphs.event_graph import EventGraph
from graphs.frozen_agents import with_trainable
from graphs.joint_rewards import with_joint_rewards
from graphs.padding import Sizes, bucket, pad_array
from graphs.problem_log import ProblemLog
from graphs.replay_clusters import CHANCES, with_clusters
from graphs.traces.batch import Traces
from graphs.traces.batch_notes import batch_notes
from graphs.traces.cache_conventions import SHOWN, with_one_convention
from graphs.traces.clock_units import begins_of_ends, time_notes, units_of_seconds
from graphs.traces.copies import without_copies
from graphs.traces.event_models import with_answered_models, with_unnamed_models, without_joined_models
from graphs.traces.evidence import Evidence, evidence_of_events, evidence_of_traces
from graphs.traces.grouping import GROUP_KEYS, check_group_by, group_names, of_their_task, with_models_of_agents
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.lost_rows import note_of_gaps
from graphs.traces.part import ABSENT_COUNT, EVENT_TEXT, Heading, Part, first_of_each
from graphs.traces.record import CUT_SHORT, LARGEST_FLOAT, TraceRecord, check, check_columns
from graphs.traces.record_parts import joined, part_of
from graphs.traces.schema import TEXT_COLUMNS
from graphs.traces.sole_channels import make_sole_outcomes
from graphs.traces.statuses import status_words
from graphs.traces.tokens import join_tokens
from graphs.traces.turn_gaps import TURN

__all__ = ["assemble", "clustered"]

_EVENTS_A_PART, _OF_ITEM = 1 << 14, 4  # a record takes as much memory as some events


def assemble(
    items: Iterable[TraceRecord | Part | Problem],
    *,
    reward: str = "team",
    group_by: str | Iterable[str] = GROUP_KEYS,
    to: Sizes | None = None,
    ignored: Iterable[str] = (),
    limits: Limits = DEFAULT,
) -> Traces:
    """Check records and join them, with parts that are already checked, into one batch.

    A refused trace becomes a problem; the other traces are kept.

    Args:
      items: records, parts and problems of readers, in order.
      reward: the reward channel that is the outcome.
      group_by: the key of groups: names among "task", "model" and "system", "task" among them.
      to: sizes to pad to; by default `graphs.padding.bucket` of the real sizes.
      ignored: names of files that were skipped.
      limits: greatest numbers of events and edges of a trace.

    Raises:
      CreditError: `group_by` is not such a key.
      NothingReadError: no trace is usable; `problems` has the reasons.
      CapacityError: the batch does not fit `to`.
    """
    problems = ProblemLog()
    parts: list[Part] = []
    waiting = _Waiting(parts, problems, limits)
    for item in items:
        if isinstance(item, Problem | TraceRecord):
            waiting.append(item)
        elif item.headings:
            waiting.flush()
            parts.append(item)
    waiting.flush()
    parts, found = without_copies(parts, problems)
    told = tuple(ProblemLog(found))
    if not parts:
        raise NothingReadError("no trace could be read", told)
    return _join(parts, reward, check_group_by(group_by), to, told, tuple(ignored), waiting.unread)


class _Waiting:
    """Records that are checked, and become one part, together, once they have `_EVENTS_A_PART` events.

    Problems wait with them, so that all come in the order of reading.
    """

    def __init__(self, parts: list[Part], problems: ProblemLog, limits: Limits) -> None:
        self.parts, self.problems, self.limits = parts, problems, limits
        self.items, self.size, self.has_turns = list[TraceRecord | Problem](), 0, False
        self.unread: list[TraceRecord] = []  # without events

    def append(self, item: TraceRecord | Problem) -> None:
        if isinstance(item, TraceRecord) and item.unread is not None:
            self.items += (*item.unread, item)
            return
        has_turns = bool(item.turns) if isinstance(item, TraceRecord) else self.has_turns
        if self.size >= _EVENTS_A_PART or has_turns is not self.has_turns:
            self.flush()
        self.items.append(item)
        self.size += _OF_ITEM + (len(item.ids) if isinstance(item, TraceRecord) else 0)
        self.has_turns = has_turns

    def flush(self) -> None:
        read = [item for item in self.items if isinstance(item, TraceRecord) and item.unread is None]
        whole, are_sound = joined(read), True
        try:
            check_columns(whole)
        except TraceError:  # of some trace, which is refused below
            are_sound = False
        records = []
        for item in self.items:
            if isinstance(item, Problem):
                self.problems.append(item)
                continue
            if item.unread is not None:
                self.unread.append(item)
                continue
            try:
                records.append(check(item, self.limits, columns=not are_sound))
            except TraceError as error:
                self.problems.append(error.problem)
                self.unread.append(item.without_events())
        if records:
            is_all = len(records) == len(read) and all(map(operator.is_, records, read))
            self.parts.append(part_of(records, whole if is_all else None))
        self.items, self.size = [], 0


class _Columns:
    """The columns of all parts. Each is removed when it is used, so that at most one is in memory twice."""

    def __init__(self, parts: list[Part]) -> None:
        self._lists = {field.name: [getattr(p, field.name) for p in parts] for field in dataclasses.fields(Part)}
        parts.clear()

    def pop(self, name: str) -> list[Any]:
        return self._lists.pop(name)

    def counts(self, name: str) -> np.ndarray:
        """Number of entries of each trace on an axis, from the ends in its part: int64 [T]."""
        return np.concatenate([np.diff(ends, prepend=0) for ends in self.pop(name)])

    def joined(self, name: str, length: int, starts: list[int] | None = None) -> np.ndarray:
        """An array of all parts, padded with 0; `starts` of each part is added to its positions or ids."""
        columns = self.pop(name)
        out = np.zeros(length, columns[0].dtype)
        start = 0
        for i, column in enumerate(columns):
            block = out[start : start + len(column)]
            block[:] = column
            if starts is not None:
                block += block.dtype.type(starts[i])
            start += len(column)
        return out

    def strings(self, name: str) -> pa.Array:
        return pa.chunked_array(self.pop(name)).combine_chunks()


class _Starts(NamedTuple):
    """Where each part begins among all events, agents and turns; the last entry is their number."""

    events: list[int]
    agents: list[int]
    turns: list[int]

    @classmethod
    def of(cls, parts: Sequence[Part]) -> _Starts:
        sizes = ((len(part.types), len(part.parents), int(part.turns.max()) + 1) for part in parts)
        return cls(*(list(itertools.accumulate(counts, initial=0)) for counts in zip(*sizes, strict=True)))


def _join(
    parts: list[Part],
    channel: str,
    group_by: tuple[str, ...],
    to: Sizes | None,
    problems: tuple[Problem, ...],
    ignored: tuple[str, ...],
    unread: Sequence[TraceRecord],
) -> Traces:
    """One batch of all parts; `parts` is emptied. Of traces that are `unread`, notes have the outcomes."""
    starts, lengths = _Starts.of(parts), [len(part.types) for part in parts]
    headings = [heading for part in parts for heading in part.headings]
    make_sole_outcomes([*headings, *unread])
    read = {heading.trace_id for heading in headings}
    n = Sizes(starts.events[-1], sum(len(part.senders) for part in parts), starts.agents[-1], len(headings))
    to = bucket(n) if to is None else to
    for axis, need, room in zip(Sizes._fields, n, to, strict=True):
        if need > room:
            raise CapacityError(axis=axis, need=need, room=room)

    columns = _Columns(parts)
    columns.pop("edge_ends")
    tokens = join_tokens(columns.pop("tokens"), lengths)
    event_counts, times = columns.counts("event_ends"), columns.joined("times", n.events)
    team = {name: columns.strings(f"agent_{name}s") for name in ("id", "name", "role")}
    tasks = [heading.group_id for heading in headings]
    stated = columns.pop("evidence")
    shown = [of.pop(SHOWN, None) for of in stated]
    turns = [of.pop(TURN, np.full(count, ABSENT_COUNT)) for of, count in zip(stated, lengths, strict=True)]
    evidence = evidence_of_events(stated, lengths, to.events)
    took = evidence["seconds"].array[: n.events] if "seconds" in evidence else np.full(n.events, np.nan)
    times, of_ends = begins_of_ends(headings, times, event_counts, took)
    events = _event_table(columns, times, event_counts, lengths)
    graph = _graph(columns, starts, n, to, event_counts, times, team)
    models, systems = [heading.model for heading in headings], [heading.system for heading in headings]
    cut = [heading.metrics.get(CUT_SHORT, 0) > 0 for heading in headings]
    of_spans = [heading.format not in ("native", "table") for heading in headings]
    trace = np.asarray(graph.trace_ids)[: n.events]
    events, models = with_answered_models(events, models, trace, cut, of_spans, evidence)
    models = without_joined_models(models, events["model"], trace)
    events = with_unnamed_models(events, graph, n, [not model for model in models], evidence)
    of_agents = _models_of_agents(graph, n, models, events["model"], team["name"].to_pylist())
    of_agents = [{} if of else agents for of, agents in zip(cut, of_agents, strict=True)]  # whose they are is not known
    models = [model or next(filter(None, agents.values()), "") for model, agents in zip(models, of_agents, strict=True)]
    of_caches = list(with_one_convention(evidence, shown, lengths, headings, trace, events["model"], models))
    policies = of_their_task(tasks, with_models_of_agents(tasks, models, systems, of_agents), systems, cut)
    groups = pa.array(group_names(tasks, policies, systems, group_by), pa.string())
    graph = dataclasses.replace(graph, group_ids=pad_array(_codes(groups), to.traces))
    evidence |= evidence_of_traces(headings, to.traces)
    outcome = evidence.get(f"rewards.{channel}")
    names = team["name"].unique().to_pylist()
    reward = np.full(n.traces, np.nan, np.float32)
    if outcome is not None:
        reward = outcome.array[: n.traces].astype(np.float32)
    graph = clustered(graph, evidence, [heading.trace_id for heading in headings])
    return Traces(
        graph=graph,
        reward=pad_array(reward, to.traces),
        evidence=evidence,
        events=events,
        agents=pa.table(
            {"agent": team["id"], "name": team["name"], "role": team["role"]}
            | {"parent": np.asarray(graph.agent_parent)[: n.agents], "trace": np.asarray(graph.agent_trace)[: n.agents]}
        ),
        traces=_trace_table(headings, groups, models),
        problems=(
            *problems,
            *ProblemLog(batch_notes(headings, graph, reward, evidence, problems, names, events["line"], tokens, times)),
            *note_of_gaps(headings, graph, np.concatenate(turns), times, events["line"]),
            *time_notes(headings, times, event_counts),
            *units_of_seconds(headings, times, event_counts, took, np.asarray(graph.agent_ids)[: n.events]),
            *of_ends,
            *of_caches,
            *ProblemLog(_unread_outcomes(unread, channel, read)),
        ),
        ignored=ignored,
        tokens=tokens,
        refused_systems={
            name: record.system for record in unread if record.system and (name := record.trace_id) not in read
        },
    )


def _unread_outcomes(unread: Sequence[TraceRecord], channel: str, read: set[str]) -> Iterator[Problem]:
    """A note on each outcome whose trace was not read."""
    for name, record in {record.trace_id: record for record in unread}.items():
        outcome = record.rewards.get(channel, math.nan)
        if name not in read and abs(outcome) <= LARGEST_FLOAT:
            value, expected = repr(outcome), "an outcome of a trace that was read"
            yield Problem(UNREAD_OUTCOME, record.file, record.line, "outcome", value, expected, name, about="reward")


def _graph(
    columns: _Columns,
    starts: _Starts,
    n: Sizes,
    to: Sizes,
    event_counts: np.ndarray,
    times: np.ndarray,
    team: Mapping[str, pa.Array],
) -> EventGraph:
    """The padded arrays of all parts, without groups and what evidence adds.

    Args:
      columns: of the parts.
      starts: of the parts.
      n: real sizes.
      to: padded sizes.
      event_counts: events of each trace.
      times: seconds of each event, NaN where it has none.
      team: "name" and "role" of each instance.
    """
    rows = np.arange(n.traces, dtype=np.int32)
    trace_ids = pad_array(np.repeat(rows, event_counts), to.events)
    return EventGraph(
        event_type=columns.joined("types", to.events),
        action_mask=columns.joined("actions", to.events),
        event_mask=_mask(n.events, to.events),
        time=pad_array(_seconds(times, trace_ids[: n.events], n.traces), to.events, np.nan),
        trace_ids=trace_ids,
        agent_ids=columns.joined("agents", to.events, starts.agents),
        turn_ids=columns.joined("turns", to.events, starts.turns),
        senders=columns.joined("senders", to.edges, starts.events),
        receivers=columns.joined("receivers", to.edges, starts.events),
        edge_type=columns.joined("edge_types", to.edges),
        edge_mask=_mask(n.edges, to.edges),
        agent_name_ids=pad_array(_codes(team["name"]), to.agents),
        agent_role_ids=pad_array(_codes(team["role"]), to.agents),
        agent_parent=columns.joined("parents", to.agents, starts.agents),
        agent_trace=pad_array(np.repeat(rows, columns.counts("agent_ends")), to.agents),
        agent_mask=_mask(n.agents, to.agents),
        group_ids=np.zeros(to.traces, np.int32),
        trace_mask=_mask(n.traces, to.traces),
    )


def _models_of_agents(
    graph: EventGraph, n: Sizes, models: Sequence[str], called: pa.ChunkedArray, names: Sequence[str]
) -> list[dict[str, str]]:
    """Of each trace the model with which each agent first acts that no other started, in the order in which they
    begin; nothing where no event has a model of its own. With which it goes on, as after a call that failed, is no
    other policy."""
    found: list[dict[str, str]] = [{} for _ in models]
    if called.null_count < n.events:
        agent, parent = np.asarray(graph.agent_ids)[: n.events], np.asarray(graph.agent_parent)[: n.agents]
        acts = np.flatnonzero(np.asarray(graph.action_mask)[: n.events] & (parent == np.arange(n.agents))[agent])
        coded = called.combine_chunks().dictionary_encode()
        code = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        first = acts[np.sort(np.unique(agent[acts], return_index=True)[1])]
        stated, traces = coded.dictionary.to_pylist(), np.asarray(graph.agent_trace).tolist()
        for instance, own in zip(agent[first].tolist(), code[first].tolist(), strict=True):
            trace = traces[instance]
            found[trace].setdefault(names[instance], models[trace] if own < 0 else stated[own])
    return found


def _event_table(columns: _Columns, times: np.ndarray, counts: np.ndarray, lengths: list[int]) -> pa.Table:
    """What the log says of each event in words, and where it stands there."""
    files, lines, offsets = _places(columns, counts, lengths)
    text = columns.pop("text")
    return pa.table(
        {"event": _text(text, "event", lengths), "file": files, "line": lines, "offset": offsets}
        | {"time": pa.array(times, from_pandas=True)}
        | {name: _text(text, name, lengths) for name in ("trusted", *TEXT_COLUMNS)}
    )


def clustered(graph: EventGraph, evidence: Mapping[str, Evidence], names: Sequence[str]) -> EventGraph:
    """The graph with `cluster_ids`, `trainable_mask` and `joint_mask`, from the evidence of the log.

    Args:
      graph: the batch.
      evidence: of the log.
      names: of the traces, for errors.

    Raises:
      CreditError: traces that share a node or context are not continued from it (`graphs.replay_clusters`).
    """
    if "trainable" in evidence:
        graph = with_trainable(graph, evidence["trainable"].array)

    def array(name: str) -> np.ndarray | None:
        return evidence[name].array if name in evidence else None

    return with_clusters(
        with_joint_rewards(graph, array("context")),
        context=array("context"),
        node=array("node"),
        sibling_parent=array("sibling_parent"),
        alternative=array("alternative"),
        stated={name: evidence[name].array for name in CHANCES if name in evidence},
        names=names,
    )


def _mask(real: int, length: int) -> np.ndarray:
    return np.arange(length) < real


def _codes(strings: pa.Array) -> np.ndarray:
    """Dense ids of strings in order of first appearance, int32."""
    codes: np.ndarray = strings.dictionary_encode().indices.to_numpy()
    return codes


def _seconds(times: np.ndarray, trace_ids: np.ndarray, traces: int) -> np.ndarray:
    """Seconds since the first time of the trace, float32, clipped to the range of float32."""
    known = np.flatnonzero(np.isfinite(times))
    first = first_of_each(trace_ids[known], times[known], traces, absent=0.0)
    largest = np.finfo(np.float32).max
    seconds: np.ndarray = np.clip(times - first[trace_ids], -largest, largest).astype(np.float32)
    return seconds


def _places(columns: _Columns, counts: np.ndarray, lengths: list[int]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """File, line and offset of each event, by default those of its trace."""
    headings, places = columns.pop("headings"), columns.pop("places")
    parts = []
    first_trace = 0
    for place, group, n in zip(places, headings, lengths, strict=True):
        here = counts[first_trace : first_trace + len(group)]
        first_trace += len(group)
        parts.append(
            place
            or (
                pa.repeat(group[0].file, n),  # a part without places is of a single file
                pa.array(np.repeat(np.array([heading.line for heading in group], np.int32), here)),
                pa.array(np.repeat(np.array([heading.offset for heading in group], np.int64), here)),
            )
        )
    files, lines, offsets = (pa.chunked_array(chunks).combine_chunks() for chunks in zip(*parts, strict=True))
    return files, lines, offsets


def _text(parts: list[dict[str, pa.Array]], name: str, lengths: list[int]) -> pa.Array:
    """A text column of all parts, null where a part lacks it."""
    kind = EVENT_TEXT[name]
    columns = [part.pop(name, None) for part in parts]
    chunks = [pa.nulls(n, kind) if column is None else column for column, n in zip(columns, lengths, strict=True)]
    column = pa.chunked_array(chunks, kind).combine_chunks()
    return status_words(column) if name == "status" else column


def _trace_table(headings: list[Heading], groups: pa.Array, models: list[str]) -> pa.Table:
    string = pa.string()
    return pa.table(
        {
            "trace": pa.array([heading.trace_id for heading in headings], string),
            "group": groups,
            "task": pa.array([heading.group_id for heading in headings], string),
            "model": pa.array([model or None for model in models], string),
            "format": pa.array([heading.format for heading in headings], string),
            "file": pa.array([heading.file for heading in headings], string),
            "line": pa.array([heading.line for heading in headings], pa.int32()),
            "offset": pa.array([heading.offset for heading in headings], pa.int64()),
            "topology": pa.array([heading.topology or None for heading in headings], string),
            "system": pa.array([heading.system or None for heading in headings], string),
            "task_kind": pa.array([heading.task_kind or None for heading in headings], string),
            "told_order": pa.array([heading.told_order for heading in headings], pa.bool_()),
        }
    )
