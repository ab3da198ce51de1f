"""Rows that equal an earlier one in every column, as those do that fill up a trainer's batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from credit.tables.batch_rows import Rows
from graphs.event_graph import EventGraph
from graphs.structure.host_ids import distinct
from graphs.text import counted
from graphs.traces.one_place import copies_in_place, own_places
from graphs.traces.real_numbers import are_real, told_apart
from graphs.traces.repeated_rows import APART, CHANCE, MEASURED, apart, is_of_rows, repeated_rows
from graphs.traces.repeated_traces import contents, contents_of_tokens, repeated_traces
from graphs.traces.sampled_again import sampled_again
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE
from graphs.traces.told_order import are_scattered

__all__ = ["Copied", "copied_rows"]

_IF_COPIES = " if they are copies (if not, give each call its own order=)"


class Copied(NamedTuple):
    """Rows that equal an earlier one in every column.

    Attributes:
      rows: how many.
      twice: in words, where they surely are copies, as of `repeated_rows`, `repeated_traces`, `copies_in_place`
        and `told_apart`; else "".
      filling: in words, where they seem to fill up the batch; else "".
      untold: in words, where whole traces, groups or the batch stand more than once, as where they were passed twice,
        and calls that nothing tells apart would look the same; else "".
      unproven: whether none of these holds, and one has a `log_prob` with which a policy hardly writes a text again.
    """

    rows: int
    twice: str = ""
    filling: str = ""
    untold: str = ""
    unproven: bool = False


def copied_rows(
    rows: Rows,
    places: np.ndarray | None = None,
    beside: Mapping[str, np.ndarray] | None = None,
) -> Copied:
    """The rows of a batch that equal an earlier one.

    They seem to fill it up where two or more stand at the end, none before, and columns tell rows of one agent of a
    trace apart. Trainers fill up with one row, or with the first ones again. Elsewhere calls of one turn may be equal,
    too.

    Args:
      rows: of `credit.from_columns`.
      places: of the rows in the batch, [N]. Default: they are the batch.
      beside: what is known of each row besides, numbers [N] by name: `order`, of which `time` has the seconds,
        `policy_version`, and what is measured, NaN where it is not: `tokens` that it wrote and `log_ratio`.
    """
    beside = beside or {}
    lengths = {name: column for name, column in beside.items() if name in ("tokens", "log_ratio")}
    count, graph = len(rows.event), rows.names.graph
    turn, agent = (np.asarray(ids)[rows.event] for ids in (graph.turn_ids, graph.agent_ids))
    if count == 0:
        return Copied(0)
    copied, sampled = _again_by_numbers(rows, places, lengths, beside.get("time", np.full(count, np.nan)))
    if copied:
        return copied
    if not len(sampled[0]) and int(turn.max()) + 1 == count:  # numbered over the batch, without gaps
        return Copied(0)
    kinds = 2 * np.asarray(graph.event_type) + np.asarray(graph.action_mask)
    of_rows = {name: column[rows.event] for name, column in rows.evidence.items() if name not in TRACE_EVIDENCE}
    text = (column[rows.event] for column in contents_of_tokens(rows.names.sampled, len(rows.names.rows)))
    content = contents(turn, kinds[rows.event], *of_rows.values(), *beside.values(), *text)
    order = np.arange(count) if places is None else np.argsort(places)
    _, first, which, times = np.unique(content[order], return_index=True, return_inverse=True, return_counts=True)
    again = first[which] < np.arange(count)
    copies = max(int(np.count_nonzero(again)), len(sampled[0]))
    if copies == 0:
        return Copied(0)
    trace = np.asarray(graph.trace_ids)[rows.event]
    measured = [*(of_rows[name] for name in MEASURED & {*of_rows}), *lengths.values()]
    measured = [column for column in measured if is_of_rows(trace, column)]
    if twice := _said_of_twice(rows, places, content, measured):
        return Copied(copies, twice)
    others = len(distinct(agent[order][~again]))
    if not len(sampled[0]) and copies >= 2 and again[-copies:].all() and others + copies < count:
        filling = f"the batch ends in {copies} rows that equal earlier ones in every column: if they only fill it up,"
        return Copied(copies, filling=filling)
    group = np.asarray(graph.group_ids)[trace]
    place = np.arange(count) if places is None else places[order]
    has_turns = "order" in beside or len(distinct(turn)) > len(distinct(agent))
    peer = _peers(graph, trace, agent)
    cell = contents(turn, beside["order"]) if "order" in beside else turn
    columns = (of[order] for of in (cell, peer, content, _real_numbers(measured, count)))
    found, original = told_apart(*columns, has_turns=has_turns)
    in_place = copies_in_place(*(ids[order] for ids in (trace, agent, _places(rows, beside), content)))
    by_tokens = [np.argsort(order)[rows.names.rows[events]] for events in sampled]
    found, which_of = np.unique(np.concatenate([in_place[0], by_tokens[0], found]), return_index=True)
    original = np.concatenate([in_place[1], by_tokens[1], original])[which_of]
    if len(found):
        unless = "" if len(sampled[0]) else _IF_COPIES
        at = place[found[0]], place[original[0]]
        return Copied(copies, _equal(len(found), "", "in every column", *at, unless))
    in_whole = again & _in_whole(
        trace[order], group[order], agent[order], turn[order], first, which, placed="order" in beside
    )
    if not in_whole.any():
        log_prob = of_rows.get("log_prob", np.full(count, np.nan))[order]
        return Copied(copies, unproven=bool((log_prob[again] <= np.log(CHANCE)).any()))
    copy = int(np.argmin(np.where(in_whole, times[which], count + 1)))  # others may be equal by chance, too
    at = place[copy], place[first[which[copy]]]
    return Copied(copies, untold=_equal(int(in_whole.sum()), "", "in every column", *at, _IF_COPIES))


def _places(rows: Rows, beside: Mapping[str, np.ndarray]) -> np.ndarray:
    """`own_places` of the rows of a batch, by their order and context."""
    trace = np.asarray(rows.names.graph.trace_ids)[rows.event]
    context = rows.evidence.get("context")
    stated = [] if context is None else [np.asarray(context)[rows.event]]
    return own_places(trace, *stated, *(beside[name] for name in ("order",) if name in beside))


def _peers(graph: EventGraph, trace: np.ndarray, agent: np.ndarray) -> np.ndarray:
    """A number for the task of each row and the name of its agent: int [N]."""
    names = np.asarray(graph.agent_name_ids)
    peers: np.ndarray = np.asarray(graph.group_ids)[trace].astype(np.int64) * (int(names.max()) + 1) + names[agent]
    return peers


def _real_numbers(measured: Iterable[np.ndarray], count: int) -> np.ndarray:
    """A number for what was measured of each row, -1 where none of it is real: int [N]."""
    real, columns = np.zeros(count, bool), list(measured)
    for column in columns:
        real |= are_real(column)
    return np.where(real, np.unique(contents(np.zeros(count), *columns), return_inverse=True)[1], -1)


def _again_by_numbers(
    rows: Rows, places: np.ndarray | None, lengths: Mapping[str, np.ndarray], times: np.ndarray
) -> tuple[Copied | None, tuple[np.ndarray, np.ndarray]]:
    """The traces of `repeated_traces`, which compares those of groups, or else the events of `sampled_again`."""
    graph, of_event, tokens = rows.names.graph, rows.names.rows, rows.names.sampled
    outcome = np.asarray(rows.names.reward)[: len(rows.names.traces)]
    stated = {
        name: column
        for name, column in rows.evidence.items()
        if name in EVENT_EVIDENCE and EVENT_EVIDENCE[name].kind != "id"
    }
    stated |= {name: column[of_event] for name, column in lengths.items()}
    measured = [column for name, column in stated.items() if name in MEASURED or name in lengths]
    text = contents_of_tokens(tokens, len(of_event))
    trace = np.asarray(graph.trace_ids)[: len(of_event)]
    place = of_event if places is None else places[of_event]
    stand = np.full(len(outcome), len(of_event))
    np.minimum.at(stand, trace, place)
    order = np.argsort(stand, kind="stable")  # of the batch, which a method may not read in it
    group = np.asarray(graph.group_ids)[order]
    as_passed = dataclasses.replace(graph, trace_ids=np.argsort(order)[trace], group_ids=group)
    again, first = (order[of] for of in repeated_traces(as_passed, outcome[order], [*stated.values(), *text], measured))
    sampled = again[:0], again[:0]
    if not len(again):
        (again, first), sampled = sampled_again(graph, outcome, stated, tokens, times[of_event])
    if not len(again):
        return None, sampled
    copy, original = (int(place[np.flatnonzero(trace == of[0])[0]]) for of in (again, first))
    whose = f" of {counted(len(again), 'trace')}"
    twice = _twice(int(np.isin(trace, again).sum()), whose, "in every number, under another id", copy, original)
    return twice, sampled


def _twice(count: int, whose: str, by: str, copy: int, original: int) -> Copied:
    return Copied(count, _equal(count, whose, by, copy, original))


def _equal(count: int, whose: str, by: str, copy: int, original: int, unless: str = "") -> str:
    equal, counts = ("equals an earlier one", "counts") if count == 1 else ("equal earlier ones", "count")
    where = f"row {copy} is row {original} again"
    return f"{counted(count, 'row')}{whose} that {equal} {by} ({where}), and {counts} twice{unless}"


def _in_whole(
    trace: np.ndarray,
    group: np.ndarray,
    agent: np.ndarray,
    turn: np.ndarray,
    first: np.ndarray,
    which: np.ndarray,
    *,
    placed: bool,
) -> np.ndarray:
    """Whether each row is of a trace, a group or a batch all of whose rows stand equally often, more than once.

    Without turns, a trace whose rows are together, or shuffled with others, made as many calls. With turns, two unlike
    rows are enough where an agent returns to a turn that it has left.

    Args:
      trace, group, agent, turn: int [N], in the order of the batch.
      first, which: of the unlike rows, where each stands first, and int [N], the one that each row is.
      placed: whether the place of each row in its trace is stated.
    """
    has_turns = len(np.unique(turn)) > len(np.unique(agent))
    left = apart(np.zeros_like(trace), trace, np.arange(len(trace)), first, which) & (not are_scattered(trace))
    of_turns = apart(agent, turn, np.arange(len(trace)), first, which)
    times = np.bincount(which)

    def whole(part: np.ndarray, least: int, told: np.ndarray) -> np.ndarray:
        _, of = np.unique(part[first], return_inverse=True)
        often = np.zeros(int(of.max()) + 1, np.int64)
        np.gcd.at(often, of, times)
        found: np.ndarray = ((often > 1) & (np.bincount(of, told) >= least))[of][which]
        return found

    every = np.ones(len(first), bool)
    told = every if placed or has_turns else left
    in_group: np.ndarray = whole(0 * group, APART, told) | whole(group, APART, told)
    return in_group | whole(trace, 2, every if placed else of_turns) if placed or has_turns else in_group


def _said_of_twice(rows: Rows, places: np.ndarray | None, content: np.ndarray, measured: Iterable[np.ndarray]) -> str:
    """`Copied.twice`, of `repeated_rows` of the events."""
    of_event, graph = rows.names.rows, rows.names.graph
    trace, agent = (np.asarray(ids)[: len(of_event)] for ids in (graph.trace_ids, graph.agent_ids))
    peer = _peers(graph, trace, agent)
    numbers = contents(np.zeros(len(of_event)), *measured)
    turn = np.stack([agent, np.asarray(graph.turn_ids)[: len(of_event)]], axis=1)
    place = of_event if places is None else places[of_event]
    has_turns = len(np.unique(turn[:, 1])) > len(np.unique(agent))
    given = trace, peer, content[of_event], numbers[of_event], turn, place
    again, first = repeated_rows(*given, has_turns=has_turns)
    if not len(again):
        return ""
    return _twice(len(again), "", "in every column", int(place[again[0]]), int(place[first[0]])).twice
