"""What went wrong most: lasting failures, loops, cut answers, early ends, who took part; surely more in failed runs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from credit.reports.cause_candidates import ALMOST, Candidate
from credit.reports.cause_evidence import cause_evidence
from credit.reports.cause_tests import CLOSE, CauseTest, more_failed, told_by_others
from credit.reports.compared_causes import Counted, compared_causes, of_each
from credit.reports.compared_kinds import ComparedKinds, UnitCounts
from credit.reports.durations import AT_ONCE, begins, part_later
from credit.reports.endings import lasts, of_sides
from credit.reports.event_texts import event_texts
from credit.reports.handoffs import instead_of
from credit.reports.judged_traces import JudgedTraces, judged_traces
from credit.reports.last_acts import LastActs
from credit.reports.leading_cause import NAME, LeadingCause, LeadingCauses, OneSide
from credit.reports.missing_lines import lacking_traces
from credit.reports.mostly_of import mostly_of
from credit.reports.shown_example import example_kinds, shown_example
from credit.reports.task_kinds import every_kind, only_kind
from credit.reports.tool_calls import ToolCalls
from credit.reports.triage import EXCERPT, serious_events
from credit.reports.verdict_channels import of_one_source
from graphs.errors import expect
from graphs.task_means import LEAST_TASKS, LEVEL
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["leading_causes"]

MOST = 2
"""Causes that are named, and one more beside those that are beyond chance."""

FOLLOWS = "what went wrong before may be why"
OF_ALL = "all tasks, of which harder ones may be why"


def leading_causes(
    traces: Traces,
    *,
    success_at: float | None = None,
    texts: Callable[[np.ndarray, int], list[str]] | None = None,
    side: np.ndarray | None = None,
    heads: Sequence[str] = ("the first side", "the second side"),
    of_model: str = "",
) -> LeadingCauses:
    """What went wrong most, at most `MOST` causes, or one more beside those that are beyond chance.

    Of failed and succeeded traces: causes that are more common in failed ones beyond chance, tested as the numbers of
    `outcome_differences` are, graded outcomes by their own size (`ComparedKinds.outcome`), and corrected for all
    causes, of an agent that acts or does not for these, as there; the surest first, those of the least p. Without any,
    those that are where all traces are taken together, by two standard errors, which is said: within tasks may be too
    few. What is done last in its runs comes behind all others, as it may follow from failing (`LastActs`), and takes no
    place of one; a fallback comes behind its agent's first model. One that succeeded traces of the same tasks have more
    often is none (`UnitCounts.turned`).
    Beside some, one more of these is named as undecided (`CauseTest.near`).
    Without both kinds, of the traces that are not known to have succeeded: causes of most, of two at least unless one
    trace is all; a trace counts least where only other calls of the tool succeeded later. Where most of the traces that
    have one of two causes have both, one is named. Of two sides, such as versions, traces of one are compared: what one
    alone has, and is not beyond chance there, is told as such (`OneSide`). A cause is, too, who takes part
    (`handoffs`), beyond chance within tasks; or over all tasks, if within these its p is below `CLOSE`, or has none and
    the agent is one that most runs have. So is a model of an agent, beyond chance within tasks and systems
    (`model_failures`); or that an agent goes on with another one.

    Args:
      traces: what was read.
      success_at: as of `judged_traces`.
      texts: as of `triage`.
      side: 0 or 1 of each trace, -1 for none, where sides are compared: int [traces].
      heads: what the sides are called.
      of_model: as of `model_failures`.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["planner"], reward=[1.0])
      >>> leading_causes(rows.traces)
      ()
    """
    expect("traces", traces, Traces, "what credit.read returns")
    traces = of_one_source(traces)
    calls = ToolCalls.of(traces)
    judged = judged_traces(traces, success_at, side)
    compared = compared_causes(traces, calls, judged, success_at, side, of_model)
    found, values, tests, by, of_kind, kinds, within, of_tasks, decided = compared
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    every = [one.one for one in found]
    alone = [_one_side(one, judged, side, heads) if kinds else None for one in found]
    size = (
        _plain_sizes(found) if kinds is None else _sizes(kinds, [of or kinds for of in by], found, tests, trace, alone)
    )
    counted_ones = judged.failed | judged.succeeded if judged.both else ~judged.succeeded
    acts = LastActs(traces, calls)
    of_first = {one.agent for one, test in zip(every, tests, strict=True) if one.test and test.sure}
    late = ["" if one.of_team or one.of_run or one.test or not of else FOLLOWS if one.follows and one.agent in of_first
            else acts.told(one.rows, judged.failed & one.tells, judged.succeeded & one.tells)
            for one, of in zip(every, size, strict=True)
            ]  # fmt: skip
    alone = [one if of and of[0] < 0 else None for one, of in zip(alone, size, strict=True)]
    size = [(of[0] > 0 and kinds is not None, of[0] >= 0 and not last, *of) if of else of
            for of, last in zip(size, late, strict=True)]  # fmt: skip
    named = _named(found, size, tests, alone, late, (of_tasks or kinds) if kinds is not None and kinds.within else None)
    if kinds is not None and kinds.within:
        named = [_replacing(of_tasks or kinds, found, tests, i) for i in named]
        behind = {i for i in named if late[i]} if any(tests[i].sure and not late[i] for i in named) else set[int]()
        named.sort(
            key=lambda i: (i in behind, not tests[i].sure, alone[i] is not None, late[i] != "",
                           tests[i].p if tests[i].sure else 0.0)
        )  # fmt: skip
    rows, said = _examples(traces, calls, judged, [(found[i], by[i]) for i in named], side, texts)
    beside = [within if every[i].test else by[i] for i in named]
    evidence = [of and cause_evidence(of, values[i], len(every), _known(tests[i].p))
                for i, of in zip(named, beside, strict=True)]  # fmt: skip
    wider = {i for i, one in zip(named, evidence, strict=True)
             if of_tasks and of_tasks.single is None and one and one.differing[0] and not one.small
             and not tests[i].sure and (decided[i].sure or cause_evidence(of_tasks, values[i]).small)}  # fmt: skip
    lacks = counted_ones & lacking_traces(traces)

    def told(i: int, row: int, text: str) -> LeadingCause:
        odd = tests[i].odd and not tests[i].sure
        one, at = found[i].one, _where_told(traces, found[i], by[i], of_kind[i], sure=tests[i].sure > 0)
        words = f"runs of kind {printable(at.kind, NAME)}{one.words.removeprefix('runs')}" if at.single else one.words
        return LeadingCause(
            words=words,
            agent=one.agent,
            tool=one.tool,
            trace=traces.traces["trace"][int(trace[row])].as_py(),
            event=traces.events["event"][row].as_py(),
            text=printable(text.strip(), EXCERPT) if one.quotes else "",
            failed=of_each(at.having, judged)[0] if judged.both else None,
            succeeded=of_each(at.having, judged)[1] if judged.both else None,
            of_failed=of_each(at.tells, judged)[0],
            of_succeeded=of_each(at.tells, judged)[1],
            traces=int(at.having.sum()),
            of_traces=int(at.tells.sum()),
            passed_over=int((at.having & ~found[i].lasting & counted_ones).sum()),
            lacking=int((lacks & ~one.tells).sum()),
            untold=int((counted_ones & ~one.tells & ~lacks & _asked(traces, one)).sum()),
            others=bool(judged.succeeded.any()) and not judged.both,
            kinds=judged.kinds,
            of_sides=of_sides(np.flatnonzero(at.having), side),
            more_often="" if one.test else _more_often(traces, at.having, at.tells & counted_ones),
            beyond_chance=tests[i].sure > 0 or odd if judged.both else None,
            p=None if odd else _known(tests[i].p),
            close=tests[i].close and tests[i].p < CLOSE,
            wider=i in wider,
            across=OF_ALL if odd else tests[i].across,
            evidence=evidence[named.index(i)],
            of_team=one.of_team,
            where_varied=at.varied.where_varied() if at.varied else None,
            of_kind=at.kind,
            mostly_of=None if at.kind else mostly_of(traces, at.having, at.tells & counted_ones, len(named)),
            sides=one.sides,
            one_side=alone[i],
            in_time=_in_time(traces, at.having, one.tells, side) if one.test is not None else "",
            late=late[i] or FOLLOWS * one.follows,
        )

    looked = [
        test for one, test in zip(every, tests, strict=True) if one.test is None and not (one.of_team or one.follows)
    ]
    return LeadingCauses(
        (told(i, row, text) for i, row, text in zip(named, rows, said, strict=True)),
        looked_at=len(looked) * judged.both,
        tellable=sum(test.best < LEVEL for test in looked),
    )


class _Where(NamedTuple):
    """The traces that a cause is told of: that have it, and that tell whether they do: bool [traces].

    `varied`: the tasks, or kinds, with runs that have it and others, which a cause of who takes part is told of, as an
    agent is right in others. `kind`: of all of these. `single`: whether it is compared within kinds and is of one.
    """

    having: np.ndarray
    tells: np.ndarray
    varied: UnitCounts | None = None
    kind: str = ""
    single: bool = False


def _where_told(traces: Traces, of: Counted, by: ComparedKinds | None, of_kind: int, *, sure: bool) -> _Where:
    names, kinds = every_kind(traces)
    tells = of.one.tells & (kinds == of_kind) if of_kind >= 0 else of.one.tells
    kind = names[of_kind] if of_kind >= 0 else ""
    if by is None or not (by.within and of.one.of_team and sure):
        return _Where(of.having & tells, tells, kind=kind)
    by = by if by.single is None else by._replace(unit=by.task)  # a kind is counted whole
    varied = by.counts(of.value)
    rows = by.rows[by.of_traces(of.value, varied.varied)]
    tells = tells & np.isin(np.arange(len(tells)), rows)
    having, kind = of.having & tells, kind or only_kind(traces, rows)
    return _Where(having, tells, varied, kind, single=by.single is not None and kind != "")


def _asked(traces: Traces, one: Candidate) -> np.ndarray:
    """The traces whose log may leave open whether they have a cause: none in which its agents do not act."""
    if one.of_team or one.of_run:
        return np.ones(traces.sizes.traces, bool)
    graph, n = traces.graph, traces.sizes.events
    name, trace = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)[:n]], np.asarray(graph.trace_ids)[:n]
    asked: np.ndarray = np.isin(np.arange(traces.sizes.traces), trace[np.isin(name, name[one.rows])])
    return asked


def _known(p: float) -> float | None:
    return None if math.isnan(p) else p


def _in_time(traces: Traces, having: np.ndarray, tells: np.ndarray, side: np.ndarray | None) -> str:
    """`LeadingCause.in_time`, of the side on which the fewer of these and of other traces are most."""
    begin, sides = begins(traces), np.zeros(len(having), np.int64) if side is None else side
    dated = tells & np.isfinite(begin)
    most = max(np.unique(sides), key=lambda one: min(((sides == one) & dated & of).sum() for of in (having, ~having)))
    later = part_later(begin, np.where(dated & (sides == most), having, -1))
    if np.isnan(later) or min(later, 1 - later) >= AT_ONCE:
        return ""
    return f"these runs began mostly {'later' if later > 0.5 else 'earlier'} than others: time may be why"


def _one_side(one: Counted, judged: JudgedTraces, side: np.ndarray | None, heads: Sequence[str]) -> OneSide | None:
    """The side of all traces that have something; None of several, and where no other one tells whether it has it, or
    fewer than `LEAST_TASKS` have it."""
    known = one.one.tells & (judged.failed | judged.succeeded)
    if side is None or (one.having & known).sum() < LEAST_TASKS:
        return None
    of = int(side[one.having & known][0])
    if of < 0 or (side[one.having] != of).any() or not (known & (side == 1 - of)).any():
        return None
    won = judged.succeeded & (side == of)
    some, rest = (
        (int((won & its).sum()), int((known & (side == of) & its).sum())) for its in (one.having, known & ~one.having)
    )
    return OneSide(heads[of], some, rest)


def _sizes(
    kinds: ComparedKinds,
    by: Sequence[ComparedKinds],
    found: list[Counted],
    tests: list[CauseTest],
    trace: np.ndarray,
    alone: list[OneSide | None],
) -> list[tuple[float, ...]]:
    """What candidates are ordered by, of failed and succeeded traces: those beyond chance first, those that one side
    alone has last, with a number below 0; () of no cause, as of one agent of too few tasks beside all agents."""
    ones, having, values = [of.one for of in found], [of.having for of in found], [of.value for of in found]
    told = {*told_by_others(by, ones, having, values, tests, trace)}
    some, size = any(test.sure for test in tests), list[tuple[float, ...]]()
    for i, (one, test) in enumerate(zip(found, tests, strict=True)):
        more = more_failed(kinds, one.value)
        if test.sure and i not in told:
            size.append((1, -test.p, test.sure))
        # What may well be chance is told where nothing is beyond it, or beside others alone.
        elif i not in told and one.one.test is None and (test.near or not some) and one.one.of_team and not test.odd:
            size.append((-1, test.near))
        elif i not in told and one.one.test is None and (test.near or not some) and more >= 2:
            size.append((0, more) if not kinds.counts(one.value).turned else ())
        elif alone[i] and (of_all := more_failed(kinds, one.value, of_sides=False)) >= 2:
            size.append((-2, of_all))
        else:
            size.append(())
    enough = [kinds.counts(value).differing_tasks >= LEAST_TASKS for value in values]
    told_kinds = {one.kind for one, of, tells in zip(ones, size, enough, strict=True) if of and tells}
    return [() if of and of[0] == 0 and not tells and one.kind in told_kinds else of
            for one, of, tells in zip(ones, size, enough, strict=True)]  # fmt: skip


def _plain_sizes(found: list[Counted]) -> list[tuple[float, ...]]:
    """As `_sizes`, of one kind of traces."""
    return [
        (int(one.lasting.sum()), int(one.having.sum()), len(one.one.rows))
        if 0 < one.having.sum() >= min(2, one.one.tells.sum())
        else ()
        for one in found
    ]


def _named(
    found: list[Counted],
    size: list[tuple[float, ...]],
    tests: list[CauseTest],
    alone: list[OneSide | None],
    late: list[str],
    within: ComparedKinds | None,
) -> list[int]:
    """Which candidates are named, in this order.

    Of one kind the first, which is of one agent where all are. Loops that end at a limit are one cause, not two. A
    cause apart that is common, too, shares many traces, but not most of what either has. Of who takes part, these are
    traces of the tasks that tell of it, where traces are compared `within` these. One that is `late` takes no place of
    another.
    """
    named: list[int] = []
    for i in sorted((i for i in range(len(found)) if size[i]), key=lambda i: size[i], reverse=True):
        having, kind = found[i].having, found[i].one.kind
        again = any(
            kind == other.one.kind
            or 2 * (having & other.having).sum() > (having | other.having).sum()
            or (
                within is not None
                and found[i].one.of_team
                and other.one.of_team
                and _shared(within, found[i], other) > 0.5
            )
            for other in (found[j] for j in named)
        )
        beside = tests[i].sure > 0 or (tests[i].near > 0 and bool(named) and not tests[named[-1]].near)
        beside |= alone[i] is not None and bool(named) and alone[named[-1]] is None
        first = alone[i] is not None or size[i][2] >= 0  # what is else told beside others alone
        of_late = sum(late[j] != "" for j in named)
        free = len(named) - of_late * (not late[i]) < MOST + beside or (late[i] != "" and not of_late)
        if not again and free and (named or first):
            named.append(i)
    return named


def _shared(kinds: ComparedKinds, one: Counted, other: Counted) -> float:
    """The part of the traces with one of two causes that have both, in the tasks where some have one, others not."""
    tells = np.any([kinds.of_traces(of.value, kinds.counts(of.value).varied) for of in (one, other)], axis=0)
    some, its = ((of.value > 0) & tells for of in (one, other))
    return float((some & its).sum() / max((some | its).sum(), 1))


def _replacing(kinds: ComparedKinds, found: list[Counted], tests: list[CauseTest], i: int) -> int:
    """The candidate that is named for one: of an agent that acts where another is left out, its words say of whom.

    An agent that is left out where several others act is named alone, unless one of these is in almost all such runs.
    """
    agent, acts = found[i].one.of_agent, found[i].one.quotes
    others = [j for j, other in enumerate(found) if other.one.of_agent not in ("", agent) and other.one.quotes != acts]
    if not agent or not (tests[i].sure or tests[i].near) or not others:
        return i
    shared = {j: _shared(kinds, found[i], found[j]) for j in others}
    most = max(others, key=lambda j: shared[j])
    if shared[most] <= (0.5 if acts else ALMOST) or not (acts or tests[most].sure or tests[most].near):
        return i
    its, left_out = (i, most) if acts else (most, i)
    one, other = found[its].one, found[left_out]
    told = kinds.of_traces(found[its].value, kinds.counts(found[its].value).varied) | (not kinds.within)
    if not (told & (found[its].value > 0) & ~(other.value > 0)).any():  # else both act in some that are counted
        found[its] = found[its]._replace(one=one._replace(words=f"{one.words}{instead_of(other.one.of_agent)}"))
    return its


def _examples(
    traces: Traces,
    calls: ToolCalls,
    judged: JudgedTraces,
    named: list[tuple[Counted, ComparedKinds | None]],
    side: np.ndarray | None,
    texts: Callable[[np.ndarray, int], list[str]] | None,
) -> tuple[list[int], list[str]]:
    """The event of each that is to be looked at, and what it says.

    An agent that is wrong in some tasks is right in others, which have it in all runs: of who takes part, a failed run
    is shown of a task, and side, where some runs have it, others do not, and it goes with failure.
    """
    serious = {row: place for place, row in enumerate(serious_events(traces, calls, judged) if named else [])}
    trace, kind = np.asarray(traces.graph.trace_ids), example_kinds(traces, side)
    first = []
    for one, kinds in named:
        rows = one.one.rows[one.having[trace[one.one.rows]]].tolist()
        rows.sort(key=lambda row: serious.get(row, len(serious)))
        if one.one.of_team and kinds is not None and kinds.within:
            more, (bad, good) = np.zeros(traces.sizes.traces, np.int64), kinds.counts(one.value).alone
            more[kinds.rows] = kinds.of_traces(one.value, bad - good)
            clear = [row for row in rows if judged.failed[trace[row]] and more[trace[row]] > 0] or rows
            rows = sorted(clear, key=lambda row: -int(more[trace[row]])) if one.one.of_agent else clear
        first.append(rows[shown_example(rows, trace, judged.failed, kind)])
    said = (texts or functools.partial(event_texts, traces))(np.array(first, np.int64), EXCERPT)
    if any(one.one.of_run for one, _ in named):  # the log may say itself why a run ended
        last = lasts(traces, calls)
        why = [last[trace[row]][2] if one.one.of_run else "" for (one, _), row in zip(named, first, strict=True)]
        said = [words.removeprefix(": ").strip("'\"") or text for words, text in zip(why, said, strict=True)]
    return first, said


def _more_often(traces: Traces, having: np.ndarray, tells: np.ndarray) -> str:
    """`LeadingCause.more_often`: within tasks traces are compared beside others of their system and model alone."""
    for what in ("system", "model"):
        coded = traces.traces[what].combine_chunks().dictionary_encode()
        code, names = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()
        every, some = (np.bincount(code[of & (code >= 0)], minlength=len(names)) for of in (tells, having & tells))
        if np.count_nonzero(every) > 1:
            most = int(np.argmax(some / every.clip(1)))
            others = (some.sum() - some[most]) / (every.sum() - every[most])
            if some[most] / every[most] > 2 * others:
                return f"{what} {printable(names[most], NAME)}"
    return ""
