"""What only the whole batch shows and no trace alone: information, since each may be meant so."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from graphs.errors import Problem
from graphs.event_graph import EventGraph
from graphs.look_alikes import look_alikes
from graphs.text import counted
from graphs.traces.evidence import Evidence
from graphs.traces.part import Heading

__all__ = ["WITHIN_VERSION", "batch_notes", "outcome_again"]

WITHIN_VERSION = (
    "groups of task and version (--groups FILE) compare within one; where a method's `by` takes keys, so does its key "
    "with policy_version, as by=task,policy_version of rloo; a trace that is alone there{} gets no advantage by most "
    "methods, or its outcome with singleton=raw where a method has that"
)
"""The advice for groups of several versions of the policy, with room for how many traces are alone."""

NEARLY = 0.9
"""The part of the traces from which on a last reward that is the outcome is called a copy."""


def outcome_again(event_reward: np.ndarray, outcome: np.ndarray, trace: np.ndarray) -> str:
    """Where event rewards are the outcomes, in words, else "": of each row [N] in order, the trace from 0.

    Trainers copy the outcome to every row, or to the last one after rewards of steps; environments pay it in steps,
    often on the last one, and log their sum as the outcome. Copies are not called so where all outcomes are equal: each
    step may have earned as much. A sum of one row is a copy, and that of a trace alone says nothing.

    Examples:
      >>> score, trace = np.array([1.0, 1.0, 0.0, 0.0]), np.array([0, 0, 1, 1])
      >>> outcome_again(score, score, trace), outcome_again(np.array([0.0, 1.0, 0.0, 0.0]), score, trace)
      ('in every row', 'in the sum of each trace')
    """
    known = np.isfinite(outcome)
    step, of_row, trace = np.nan_to_num(event_reward[known]), outcome[known], trace[known]
    if not of_row.any():
        return ""
    if of_row.min() < of_row.max() and np.array_equal(
        event_reward[known].astype(np.float32), of_row.astype(np.float32)
    ):
        return "in every row"
    traces, first = np.unique(trace, return_index=True)
    sums = np.bincount(trace, step)[traces]
    rounding = 1e-6 * np.bincount(trace, np.abs(step))[traces]
    again = 1 < len(traces) < len(trace) and (np.abs(sums - of_row[first]) <= rounding).all()
    if again:
        return "in the sum of each trace"
    stated = np.flatnonzero(np.isfinite(event_reward[known]))
    last = stated[np.diff(trace[stated], append=-1) != 0]
    copied = np.abs(step[last] - of_row[last]) <= 1e-6 * np.abs(of_row[last])
    told = of_row[last] != 0  # a last step that earned nothing, of a trace that did not either, is no copy
    varied = len(last) < len(stated) and len(np.unique(of_row[last])) > 1 and told.any()
    if not varied or min(copied.mean(), copied[told].mean()) < NEARLY:
        return ""
    return "in the last row of " + ("each trace" if copied.all() else f"{copied.sum()} of {len(last)} traces")


def batch_notes(
    headings: Sequence[Heading],
    graph: EventGraph,
    reward: np.ndarray,
    evidence: Mapping[str, Evidence],
    problems: Sequence[Problem],
    agents: Iterable[str] = (),
) -> Iterator[Problem]:
    """Groups of several policy versions, or over files that state none; event rewards that are the outcome again.

    And tables with some groups missing, and ids that a person would take for one.

    Args:
      headings: of the traces.
      graph: the batch, padded.
      reward: float [T] of the traces, without padding.
      evidence: of the log.
      problems: those found so far; a table of groups without some traces is named there.
      agents: their names.
    """
    for field, names in (
        ("group", (heading.group_id for heading in headings)),
        ("trace", (heading.trace_id for heading in headings)),
        ("agent", dict.fromkeys(agents)),
    ):
        if alike := look_alikes(dict.fromkeys(names)):
            expected = "one spelling: they count as several"
            yield Problem("look-alike-ids", headings[0].file, 0, field, alike[0], expected, count=len(alike))
    group, version = np.asarray(graph.group_ids)[: len(headings)], np.full(len(headings), -1)
    if "policy_version" in evidence:
        version = evidence["policy_version"].array[: len(headings)]
        stated = np.flatnonzero(version >= 0)
        (pairs, _), members = np.unique(np.stack([group[stated], version[stated]]), axis=1, return_counts=True)
        several = pairs[1:][pairs[1:] == pairs[:-1]]
        if count := len(np.unique(several)):
            shown = f"several in {counted(count, 'group')}"
            lone = int((members[np.isin(pairs, several)] == 1).sum())
            expected = f"one in a group, whose traces are compared: {WITHIN_VERSION.format(f' (here {lone})')}"
            of_first = headings[int(np.argmax(np.isin(group, several)))].file
            yield Problem("several-versions", of_first, 0, "policy_version", shown, expected)
    files = collections.defaultdict(set)
    for heading, of, stated_as in zip(headings, group.tolist(), version.tolist(), strict=True):
        if stated_as < 0 and (heading.format == "rollouts" or heading.group_id.isdecimal()):
            files[of].add(heading.file)
    if over := [of for of, names in files.items() if len(names) > 1]:
        shown = f"{counted(len(over), 'group')} in several files, and no step or policy_version"
        expected = "the step in each row where files are of several steps, since traces of a group are compared"
        yield Problem("group-over-files", headings[int(np.argmax(group == over[0]))].file, 0, "group", shown, expected)
    if "event_reward" in evidence:
        real = np.asarray(graph.event_mask)
        steps, trace = evidence["event_reward"].array[real], np.asarray(graph.trace_ids)[real]
        if where := outcome_again(steps, reward[trace], trace):
            expected = "what the row earned besides: methods add it to the outcome"
            yield Problem("outcome-again", headings[0].file, 0, "event_reward", f"the outcome again {where}", expected)
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
