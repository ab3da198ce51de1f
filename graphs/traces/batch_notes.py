"""What only the whole batch shows and no trace alone: information, since each may be meant so."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

import numpy as np
import pyarrow as pa

from graphs.distinct_columns import distinct_columns
from graphs.errors import Problem
from graphs.event_graph import EventGraph
from graphs.joint_rewards import with_joint_rewards
from graphs.look_alikes import look_alikes
from graphs.text import counted, excerpt
from graphs.traces.evidence import Evidence
from graphs.traces.one_place import calls_in_place, fine_moments, own_places
from graphs.traces.outcome_again import outcome_again
from graphs.traces.part import Heading
from graphs.traces.repeated_rows import MEASURED, REPEATED_ROWS
from graphs.traces.repeated_traces import contents, contents_of_tokens, repeated_traces
from graphs.traces.sampled_again import sampled_again
from graphs.traces.schema import EVENT_EVIDENCE
from graphs.traces.spans_at_once import moments
from graphs.traces.tokens import Tokens

__all__ = ["BY_VERSION", "OF_VERSIONS", "batch_notes", "counted_as_nothing"]

BY_VERSION = ". `--by task,policy_version` compares those of one"
OF_VERSIONS = (
    "a loss that weighs each trace by its ratio to the policy that is trained; the mean of other traces is an "
    f"unbiased baseline, whatever their versions{BY_VERSION}"
)
"""What several versions of the policy in a group ask for: nothing of the method, and a weight of the loss."""

_OF_STEPS = ("native", "rollouts", "table")
"""Formats of trainers whose files may be of a step each. In others a number may be an index of the data set."""

_IDS = frozenset(name for name, key in EVENT_EVIDENCE.items() if key.kind == "id")


def counted_as_nothing(none: int, rows: int) -> str:
    """How many rows state no reward of their own beside others that do."""
    return f"null in {none} of {counted(rows, 'row')}, where it counts 0"


def _is_drawn(name: str) -> bool:
    """Whether a group is called by a UUID of chance or time, which no other step has: a task's name comes again."""
    try:
        return UUID(name).version in (1, 4, 6, 7)
    except ValueError:
        return False


def _tied_rewards(
    graph: EventGraph, evidence: Mapping[str, Evidence], times: np.ndarray, of_tables: np.ndarray
) -> np.ndarray:
    """Events whose reward counts for no later action, though another acts at the same time; their places.

    Clocks are coarse, so that equal times make no joint turn. The order of lines decides, which may mean nothing. In a
    turn of a table, rows of one name may be of several instances.

    Args:
      graph, evidence, times: as of `batch_notes`.
      of_tables: bool [T].
    """
    took = evidence["seconds"].array[: len(times)] if "seconds" in evidence else np.full(len(times), np.nan)
    place, earned = moments(graph, times, took, of_tables), evidence["event_reward"].array
    named = (place >= 0) & np.append(of_tables, False)[np.minimum(np.asarray(graph.trace_ids), len(of_tables))]
    of_name = np.where(named, place * np.int64(graph.num_events) + np.asarray(graph.turn_ids), -1)
    context = evidence["context"].array if "context" in evidence else None
    masks = (with_joint_rewards(graph, of, at).joint_mask for of, at in ((of_name, place), (context, None)))
    tied, joint = (np.zeros(graph.num_events, bool) if mask is None else np.asarray(mask) for mask in masks)
    return np.flatnonzero(tied & ~joint & (np.nan_to_num(earned) != 0))


def _note_of_twins(
    headings: Sequence[Heading],
    graph: EventGraph,
    reward: np.ndarray,
    evidence: Mapping[str, Evidence],
    tokens: Tokens | None,
    times: np.ndarray,
    lines: pa.ChunkedArray,
    *,
    rows_named: bool,
) -> Iterator[Problem]:
    """The notes of copies in trainers' files: sessions of one start may be equal, and go on."""
    if any(heading.format not in _OF_STEPS for heading in headings):
        return
    numbers = {name: evidence[name].array for name in evidence if name in EVENT_EVIDENCE and name not in _IDS}
    measured = [array for name, array in numbers.items() if name in MEASURED]
    if tokens is not None:
        lengths = np.diff(tokens.offsets)
        sums = (np.bincount(tokens.events, of, len(lengths)) for of in (tokens.ids, np.nan_to_num(tokens.log_probs)))
        measured += [np.where(lengths > 0, of, np.nan) for of in (lengths, *sums)]
    _, file = np.unique([heading.file for heading in headings], return_inverse=True)
    stated = [np.asarray(graph.time), *numbers.values(), *contents_of_tokens(tokens, len(lines))]
    again, first = repeated_traces(graph, reward, stated, measured, file)
    alone, (row, of) = sampled_again(graph, reward, numbers, tokens, times)
    again, first = (again, first) if len(again) else alone
    if len(row) and not rows_named:
        where, (line, original) = (
            headings[int(np.asarray(graph.trace_ids)[row[0]])],
            (lines[int(at[0])] for at in (row, of)),
        )
        expected = "each row once: a copy counts twice"
        value = f"equal to line {original}"
        yield Problem(REPEATED_ROWS, where.file, line.as_py(), "row", value, expected, where.trace_id, count=len(row))
    if len(again):
        copy, original = headings[again[0]], headings[first[0]]
        value = f"equal to that of trace {excerpt(original.trace_id)}, {original.file}:{original.line}"
        expected = "each trace once: a copy under another id counts as one more trace"
        rows = int(np.isin(np.asarray(graph.trace_ids)[np.asarray(graph.event_mask)], again).sum())
        yield Problem(REPEATED_ROWS, copy.file, copy.line, "row", value, expected, copy.trace_id, count=rows)


def _note_of_one_name(
    headings: Sequence[Heading],
    graph: EventGraph,
    evidence: Mapping[str, Evidence],
    times: np.ndarray,
    lines: pa.ChunkedArray,
    names: Sequence[str],
    copied: Collection[str],
) -> Iterator[Problem]:
    """The note of `calls_in_place`: by contexts, and in tables else by times that are finer than a second.

    Args:
      headings, graph, evidence, times, lines: as of `batch_notes`.
      names: of the agents, by `agent_name_ids`.
      copied: files whose copied rows are named, in which equal ones need no more words.
    """
    n = len(lines)
    of_tables = np.array([heading.format == "table" for heading in headings], bool)
    if not of_tables.any() and "context" not in evidence:
        return
    trace, agent = (np.asarray(ids)[:n] for ids in (graph.trace_ids, graph.agent_ids))
    moment = own_places(trace, fine_moments(np.where(of_tables[trace], times[:n], np.nan)))
    stated = {name: evidence[name].array[:n] for name in evidence if name in EVENT_EVIDENCE}
    context = stated.get("context", np.full(n, -1)).astype(np.int64)
    place = np.where(context < 0, moment, context + moment.max(initial=-1) + 1)
    if not len(calls := calls_in_place(graph, place)):
        return
    content = contents(agent, place, np.asarray(graph.event_type)[:n], *stated.values())
    _, first, which = np.unique(content, return_index=True, return_inverse=True)
    alike = first[which[calls]] < calls
    is_named = np.array([heading.file in copied for heading in headings], bool)[trace[calls]]
    calls = calls[~(alike & is_named)]
    if len(calls):
        call = int(calls[0])
        where, line = headings[int(trace[call])], lines[call].as_py()
        at = "at one time" if context[call] < 0 else "in one context"
        shown = f"{excerpt(names[int(np.asarray(graph.agent_name_ids)[agent[call]])])} twice {at}"
        expected = "each agent once there: a copy counts twice, and two agents need two names"
        yield Problem("agent-twice", where.file, line, "agent", shown, expected, where.trace_id, count=len(calls))


def batch_notes(
    headings: Sequence[Heading],
    graph: EventGraph,
    reward: np.ndarray,
    evidence: Mapping[str, Evidence],
    problems: Sequence[Problem],
    agents: Sequence[str],
    lines: pa.ChunkedArray,
    tokens: Tokens | None,
    times: np.ndarray,
) -> Iterator[Problem]:
    """Groups of several policy versions or some unknown, or over files that state none; outcomes paid again.

    And tables with some groups or rewards of rows missing, ids that a person would take for one, and traces that stand
    again under another id.

    Args:
      headings: of the traces.
      graph: the batch, padded.
      reward: float [T] of the traces, without padding.
      evidence: of the log.
      problems: those found so far; a table of groups without some traces is named there.
      agents: their names, by `agent_name_ids`.
      lines: where each event stands.
      tokens: of the events.
      times: float64 [E], as the log states them.
    """
    rows_named = any(problem.kind == REPEATED_ROWS for problem in problems)
    yield from _note_of_twins(headings, graph, reward, evidence, tokens, times, lines, rows_named=rows_named)
    copied = {problem.file for problem in problems if problem.kind == REPEATED_ROWS}
    yield from _note_of_one_name(headings, graph, evidence, times, lines, agents, copied)
    for field, names in (
        ("group", (heading.group_id for heading in headings)),
        ("trace", (heading.trace_id for heading in headings)),
        ("agent", dict.fromkeys(agents)),
    ):
        if alike := look_alikes(dict.fromkeys(names)):
            expected = "one spelling: they count as several"
            yield Problem("look-alike-ids", headings[0].file, 0, field, alike[0], expected, count=len(alike))
    scored = np.isfinite(reward)
    compared = scored | ~scored.any()  # a trace without an outcome is not, unless all outcomes are yet to come
    group, version = np.asarray(graph.group_ids)[: len(headings)], np.full(len(headings), -1)
    if "policy_version" in evidence:
        version = np.nan_to_num(evidence["policy_version"].array[: len(headings)], nan=-1)
        (task, number), _, _, members = distinct_columns(group[compared], version[compared])
        mixed = np.isin(task, task[1:][task[1:] == task[:-1]])
        if mixed.any():
            several = int((np.unique(task[mixed & (number >= 0)], return_counts=True)[1] > 1).sum())
            parts = [f"several in {counted(several, 'group')}"] * (several > 0)
            if unknown := int(members[mixed & (number < 0)].sum()):
                parts.append(f"unknown in {counted(unknown, 'trace')} of groups that state one")
            members_at = np.flatnonzero(compared & np.isin(group, task[mixed])).tolist()
            holding = list(dict.fromkeys(headings[i].file for i in members_at))
            parts += [f"in {len(holding)} files"] * (len(holding) > 1)
            yield Problem("several-versions", holding[0], 0, "policy_version", ", ".join(parts), OF_VERSIONS)
    # Files of one system each are told apart by that.
    traces_of: dict[tuple[int, str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for heading, of, stated_as in zip(headings, group.tolist(), version.tolist(), strict=True):
        if stated_as < 0 and (heading.format in _OF_STEPS or heading.group_id.isdecimal()):
            traces_of[of, heading.group_id, heading.system][heading.file] += 1
    dumps = {heading.file for heading in headings if heading.format in ("rollouts", "table")}
    over = {
        name: files
        for (_, name, _), files in traces_of.items()  # files of one run each have no group's traces together
        if len(files) > 1 and not _is_drawn(name) and (max(files.values()) > 1 or not dumps.isdisjoint(files))
    }
    if over:
        name, files = next(iter(over.items()))
        more = f" and {counted(len(over) - 1, 'other group')}" if len(over) > 1 else ""
        held = f"{'up to ' * (len({*map(len, over.values())}) > 1)}{max(map(len, over.values()))} files"
        shown = f"{excerpt(name)}{more}, in {held}, and no step or policy_version is read"
        expected = "the step in each row where files are of several steps, since traces of a group are compared"
        yield Problem("group-over-files", next(iter(files)), 0, "group", shown, expected)
    tables = np.array([heading.format == "table" for heading in headings], bool)
    if "event_reward" in evidence:
        real = np.asarray(graph.event_mask)
        steps, trace = evidence["event_reward"].array[real], np.asarray(graph.trace_ids)[real]
        if where := outcome_again(steps, reward[trace], trace):
            expected = "what the row earned besides: methods add it to the outcome"
            yield Problem("outcome-again", headings[0].file, 0, "event_reward", f"the outcome again {where}", expected)
        if len(at := _tied_rewards(graph, evidence, times, tables)):
            shown = f"above 0 or below in {counted(len(at), 'event')} at one time with a later one"
            expected = "a context that actions at once share: else the later ones have no part in it"
            first = headings[int(np.asarray(graph.trace_ids)[at[0]])]
            yield Problem("rewards-at-one-time", first.file, lines[int(at[0])].as_py(), "event_reward", shown, expected)
    if "event_reward" in evidence and tables.any():  # in other logs an event without the key earned nothing
        _, file = np.unique([heading.file for heading in headings], return_inverse=True)
        acts = np.flatnonzero(np.asarray(graph.action_mask))
        trace, states = np.asarray(graph.trace_ids)[acts], evidence["event_reward"].mask[acts]
        asked = (tables & compared)[trace] & (np.bincount(file[trace], states) > 0)[file[trace]]
        if len(none := np.flatnonzero(asked & ~states)):
            shown = counted_as_nothing(len(none), int(asked.sum()))
            expected = "a number in each row: 0 where it earned nothing by itself"
            first = headings[int(trace[none[0]])]
            line = lines[int(acts[none[0]])].as_py()
            yield Problem("some-without-event-reward", first.file, line, "event_reward", shown, expected)
    of_tables = [heading for heading in headings if heading.format == "table"]
    sizes = collections.Counter(heading.group_id for heading in of_tables)
    alone = [heading for heading in of_tables if heading.group_id == heading.trace_id and sizes[heading.group_id] == 1]
    filled = collections.Counter(heading.file for heading in of_tables)
    filled.subtract(heading.file for heading in alone)
    alone = [heading for heading in alone if filled[heading.file]]  # a table without the column is another matter
    if alone and all(problem.kind != "groups-of-some" for problem in problems):
        beside = sum(filled[file] for file in {heading.file for heading in alone})
        shown = f"missing in {counted(len(alone), 'trace')} beside {beside} with one"
        expected = "a group in every trace or in none: each of these is a group of its own"
        yield Problem("some-without-group", alone[0].file, alone[0].line, "group", shown, expected)
