"""What went wrong most: lasting failures, loops, cut answers, early ends, who took part; surely more in failed runs."""

from __future__ import annotations

import dataclasses
import functools
import math
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from credit.reports.beyond_chance import beyond_chance
from credit.reports.call_loops import Loop
from credit.reports.cause_evidence import CauseEvidence, cause_evidence
from credit.reports.compared_kinds import ComparedKinds, compared_kinds
from credit.reports.endings import ends, lasts, of_sides
from credit.reports.event_errors import cut_answers
from credit.reports.event_texts import event_texts
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.handoffs import handoffs, without_agent
from credit.reports.judged_traces import JudgedTraces, judged_traces
from credit.reports.missing_lines import lacking_traces
from credit.reports.model_failures import ModelFailures, model_failures, within_systems
from credit.reports.shown_example import example_kinds, shown_example
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import has_statuses
from credit.reports.triage import EXCERPT, serious_events
from graphs.errors import expect
from graphs.task_means import LEVEL, fact_of, holm
from graphs.text import begin_of, counted, printable
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models

__all__ = ["LeadingCause", "leading_causes", "left_untold", "told_causes"]

MOST = 2
"""Causes that are named, and one more beside those that are beyond chance."""
LATER = " that did not succeed later"
"""What ends the words for failed calls, whose log has arguments: the same call, by the same agent."""
CLOSE = 2 * LEVEL
"""The p below which a cause that is not beyond chance is undecided."""
NAME, SAID = 40, 100
"""Length of a name in a sentence, and of what a failed call said there."""


@dataclasses.dataclass(frozen=True)
class LeadingCause:
    """Something that went wrong in traces.

    Attributes:
      words: what it is: failed calls of a tool by an agent, that did not succeed later, or 3 times or more in a row,
        its empty results, its loops of other calls, a loop of messages, its cut answers, how runs end, who takes part,
        or an agent's model.
      agent, tool: whose; "" of an end of the run, and the agent of a tool that fails for several. Of who takes part,
        the agent that decided it, "" where several did.
      trace, event: one to look at, the first of a failed trace.
      text: the beginning of what that event says; "" where the log has nothing.
      failed, succeeded: how many failed, and succeeded, traces have it; None where these are not of both kinds.
      of_failed, of_succeeded: of how many whose log tells.
      traces: how many traces have it; where one kind is known alone, of those that are not known to have succeeded.
      of_traces: of how many whose log tells.
      others: whether others are known to have succeeded, and none to have failed.
      kinds: what failed and succeeded traces are called.
      passed_over: in how many of all that have it only other calls of the tool by the agent succeeded later.
      beyond_chance: whether failed traces have it more often beyond chance; None where these are not of both kinds.
      close: whether it narrowly misses that.
      wider: whether `--group-by task`, which compares traces of several models and systems, too, decides what is not
        decided here.
      across: whether it is beyond chance as `--group-by task` compares, and narrowly misses that where traces of one
        system and model are compared alone. It takes both: of 240 logs whose versions fail in other tasks, 7 to 13 %
        had a cause across them by chance, with both 2 to 3 %; of a true one 32 % had it within them, with this 55 %.
      evidence: what traces of one task, and tasks, say of it; None where these are not of both kinds.
      of_sides: how many traces of each side have it, where sides are compared; empty elsewhere.
      more_often: the system, or the model, of which more than twice as large a part has it as of others; "" of none.
      of_team: whether it is who takes part, which may follow from what went wrong before.
      sides: what `--sides` takes to compare the runs of two models of an agent, where it is one of these; "" elsewhere.
      lacking, untold: how many more lack lines, or have a log that does not tell for another reason.
    """

    words: str
    agent: str
    tool: str
    trace: str
    event: str
    text: str
    failed: int | None
    succeeded: int | None
    of_failed: int
    of_succeeded: int
    traces: int
    of_traces: int
    others: bool
    kinds: tuple[str, str] = ("failed", "succeeded")
    passed_over: int = 0
    lacking: int = 0
    untold: int = 0
    beyond_chance: bool | None = None
    close: bool = False
    wider: bool = False
    across: bool = False
    evidence: CauseEvidence | None = None
    of_sides: tuple[int, ...] = ()
    more_often: str = ""
    of_team: bool = False
    sides: str = ""

    def told(self) -> str:
        """The cause with its counts, and what one of its events says."""
        said = f" (such as: {begin_of(self.text, SAID)})" if self.text else ""
        more = (f"{self.lacking} more lack{'s' * (self.lacking == 1)} lines" if self.lacking else "",
                f"of {self.untold} more the log does not tell" if self.untold else "")  # fmt: skip
        beside = f" ({', '.join(filter(None, more))})" if any(more) else ""
        having = self.traces if self.failed is None else self.failed + (self.succeeded or 0)
        of_these = "all of these" if self.passed_over == having else f"{self.passed_over} of these {having}"
        then = f"; in {of_these} the tool worked later, for other calls" if self.passed_over else ""
        if self.failed is None:
            but = " without an outcome" if self.others else ""
            return f"{self.words}{said} in {self.traces} of {counted(self.of_traces, 'trace')}{but}{then}{beside}"
        bad, good = self.kinds
        chance = ""
        if self.evidence is not None:
            side = ", of either side," if self.of_sides else ""
            there = f" or what else differs in {self.more_often}, which has it more often" if self.more_often else ""
            there = " or what went wrong before" if self.of_team else there
            sure = bool(self.beyond_chance)
            chance = self.evidence.told(
                self.kinds, sure=sure, close=self.close, wider=self.wider, side=side, there=there
            )
            chance = "beyond chance across systems and models, just short of it within each" if self.across else chance
            before = "what went wrong before may be why" * (self.of_team and sure and self.evidence.within)
            chance = "; ".join(filter(None, (chance, before)))
            option = f"beyond chance; `--sides {shlex.quote(self.sides)}` compares them" if self.sides else ""
            chance = "; ".join(filter(None, (chance, option)))
            chance = chance and f" ({chance})"
        return (
            f"{self.words}{said} in {self.failed} of {self.of_failed} {bad} traces and "
            f"{self.succeeded} of {self.of_succeeded} {good} ones{chance}{then}{beside}"
        )


class _Candidate(NamedTuple):
    """Events of one cause, which traces tell whether they have it, bool [traces], and events that are `passed_over`.

    Of one `kind`, as of a tool by each agent and by all of them, one is named. `of_run`: it is how the run ends.
    `of_team`: it is who takes part; `of_agent`: whether one agent does. `quotes`: what its event says shows it.
    `beside`, `lengths`: as of `Handoff`. Of a model of an agent: `test`, the chance that a failed trace has it, its p
    in `model_failures`, and whether the p of each model of this agent is beyond chance; `sides`, as of `LeadingCause`.
    """

    kind: str
    words: str
    agent: str
    tool: str
    rows: np.ndarray
    tells: np.ndarray
    passed_over: np.ndarray | tuple[()] = ()
    of_run: bool = False
    of_team: bool = False
    of_agent: bool = False
    quotes: bool = True
    beside: np.ndarray | None = None
    lengths: tuple[np.ndarray, ...] = ()
    test: tuple[float, float, bool] | None = None
    sides: str = ""

    @property
    def is_left_out(self) -> bool:
        """Whether it is an agent that most runs have."""
        return self.beside is not None and not self.quotes


def leading_causes(
    traces: Traces,
    *,
    success_at: float | None = None,
    calls: ToolCalls | None = None,
    texts: Callable[[np.ndarray, int], list[str]] | None = None,
    side: np.ndarray | None = None,
) -> tuple[LeadingCause, ...]:
    """What went wrong most, at most `MOST` causes, or one more beside those that are beyond chance.

    Of failed and succeeded traces: causes that are more common in failed ones beyond chance, tested as the numbers of
    `outcome_differences` are, and corrected for all causes, of an agent that acts or does not for these, as there;
    those of the largest difference first. Without any, those that are where all traces are taken together, by two
    standard errors, which is said: within tasks may be too few. One that succeeded traces of the same tasks have more
    often is none (`UnitCounts.turned`).
    Beside some, one more of these is named as undecided where within tasks its own p is below `CLOSE`.
    Without both kinds, of the traces that are not known to have succeeded: causes of most, of two at least unless one
    trace is all; a trace counts least where only other calls of the tool succeeded later. Where most of the traces that
    have one of two causes have both, one is named. Of two sides, such as versions, traces of both are compared: what
    made one of them fail is a cause. So is who takes part (`handoffs`), beyond chance within tasks; or over all tasks,
    if within these its p is below `CLOSE`, or has none and the agent is one that most runs have. So is a model of an
    agent, beyond chance within tasks and systems (`model_failures`).

    Args:
      traces: what was read.
      success_at: as of `judged_traces`.
      calls: its tool calls, where they are known already.
      texts: as of `triage`.
      side: of each trace, where sides are compared: int [traces].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["planner"], reward=[1.0])
      >>> leading_causes(rows.traces)
      ()
    """
    expect("traces", traces, Traces, "what credit.read returns")
    calls = calls or ToolCalls(traces)
    judged = judged_traces(traces, success_at)
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    kinds = compared_kinds(traces, judged) if judged.both else None
    every = list(_candidates(traces, calls, with_empty=judged.both))  # which alone are no sign of anything
    wide = judged_traces(traces, success_at, whole_tasks=True)  # groups are of one model of each agent
    of_models = None if kinds is None else within_systems(traces, compared_kinds(traces, wide))
    if kinds is not None and of_models is not None:
        # Between tasks who takes part differs because these do, unless an agent is left out.
        every += [one for one in _of_teams(traces, calls, kinds, judged) if kinds.within or one.is_left_out]
        every += _of_models(traces, model_failures(traces, judged), of_models)
    counted_ones = judged.failed | judged.succeeded if judged.both else ~judged.succeeded
    lacks = counted_ones & lacking_traces(traces)
    untold = [counted_ones & ~one.tells & ~lacks for one in every]
    if not judged.both:
        every = [one._replace(tells=one.tells & ~judged.succeeded) for one in every]
    having = [np.isin(np.arange(traces.sizes.traces), trace[one.rows]) & one.tells for one in every]
    by_whom = [judged if one.test is None else wide for one in every]
    lasting = [np.isin(np.arange(len(some)), trace[np.setdiff1d(one.rows, one.passed_over)]) & some
               for one, some in zip(every, having, strict=True)]  # fmt: skip
    of, has = (
        [
            tuple(int((some & kind).sum()) for kind in (by.failed, by.succeeded))
            for some, by in zip(these, by_whom, strict=True)
        ]
        for these in ([one.tells for one in every], having)
    )
    sure, close, wider, of_tasks = [0.0] * len(every), [False] * len(every), [0.0] * len(every), None
    across = [False] * len(every)
    values = [np.where(one.tells, some, math.nan)[judged.rows] for one, some in zip(every, having, strict=True)]
    if kinds is not None:
        sure, near, odd = _beyond_chance(kinds, values, every)
        if judged.unit is not None and kinds.unit.max() > judged.stratum.max():
            of_tasks = compared_kinds(traces, wide)
            wider, *_ = _beyond_chance(of_tasks, values, every)
            across = [is_near and not chance and more > 0
                      for is_near, chance, more in zip(near, sure, wider, strict=True)]  # fmt: skip
            sure = [more if of_more else chance for of_more, more, chance in zip(across, wider, sure, strict=True)]
        size: list[tuple[float, ...]] = [
            (1, chance)
            if chance
            else (0, more)
            if (more := _more_failed(*some, *of_all)) >= 2 and not kinds.counts(value).turned
            else ()
            for chance, some, of_all, value in zip(sure, has, of, values, strict=True)
        ]
        close = [is_near and not chance for chance, is_near in zip(sure, near, strict=True)]
        for i in _told_by_others(every, having, sure, odd, trace):
            size[i] = ()
        size = [row if one.test is None or chance else () for row, one, chance in zip(size, every, sure, strict=True)]
        if any(sure):  # what may well be chance is told where nothing is beyond it
            size = [row if row and (row[0] or undecided) else () for row, undecided in zip(size, close, strict=True)]
    else:
        size = [
            (int(some.sum()), int(of_all.sum()), len(one.rows)) if 0 < of_all.sum() >= min(2, one.tells.sum()) else ()
            for one, some, of_all in zip(every, lasting, having, strict=True)
        ]
    named: list[int] = []
    for i in sorted((i for i in range(len(every)) if size[i]), key=lambda i: size[i], reverse=True):
        # Of one kind the first, which is of one agent where all are. Loops that end at a limit are one cause, not two.
        # A cause apart that is common, too, shares many traces, but not most of what either has.
        again = every[i].kind in {every[j].kind for j in named} or any(
            2 * (having[i] & having[j]).sum() > (having[i] | having[j]).sum() for j in named
        )
        beside = sure[i] > 0 or (close[i] and bool(named) and not close[named[-1]])
        if not again and len(named) < MOST + beside:
            named.append(i)
    ranked = serious_events(traces, calls, judged) if named else []
    serious = {row: place for place, row in enumerate(ranked)}
    first, kind = [], example_kinds(traces, side)
    for i in named:
        rows = every[i].rows[having[i][trace[every[i].rows]]].tolist()
        rows.sort(key=lambda row: serious.get(row, len(serious)))
        first.append(rows[shown_example(rows, trace, judged.failed, kind)])
    said = (texts or functools.partial(event_texts, traces))(np.array(first, np.int64), EXCERPT)
    if any(every[i].of_run for i in named):  # the log may say itself why a run ended
        last = lasts(traces, calls)
        why = [last[trace[row]][2] if every[i].of_run else "" for i, row in zip(named, first, strict=True)]
        said = [words.removeprefix(": ").strip("'\"") or text for words, text in zip(why, said, strict=True)]
    compared = [kinds if every[i].test is None else of_models for i in named]
    evidences = [by and cause_evidence(by, values[i], len(every)) for i, by in zip(named, compared, strict=True)]
    asked = [one is not None and one.differing[0] > 0 and not one.small and not size[i][0]
             for i, one in zip(named, evidences, strict=True)]  # fmt: skip
    asked = [one and of_tasks is not None for one in asked]
    return tuple(
        LeadingCause(
            words=every[i].words,
            agent=every[i].agent,
            tool=every[i].tool,
            trace=traces.traces["trace"][int(trace[row])].as_py(),
            event=traces.events["event"][row].as_py(),
            text=printable(text.strip(), EXCERPT) if every[i].quotes else "",
            failed=has[i][0] if judged.both else None,
            succeeded=has[i][1] if judged.both else None,
            of_failed=of[i][0],
            of_succeeded=of[i][1],
            traces=int(having[i].sum()),
            of_traces=int(every[i].tells.sum()),
            passed_over=int((having[i] & ~lasting[i] & counted_ones).sum()),
            lacking=int((lacks & ~every[i].tells).sum()),
            untold=int(untold[i].sum()),
            others=bool(judged.succeeded.any()) and not judged.both,
            kinds=judged.kinds,
            of_sides=of_sides(np.flatnonzero(having[i]), side),
            more_often="" if every[i].test else _more_often(traces, having[i], every[i].tells & counted_ones),
            beyond_chance=size[i][0] > 0 if judged.both else None,
            close=close[i],
            across=across[i],
            wider=undecided and of_tasks is not None and (wider[i] > 0 or cause_evidence(of_tasks, values[i]).small),
            evidence=evidence,
            of_team=every[i].of_team,
            sides=every[i].sides,
        )
        for i, row, text, evidence, undecided in zip(named, first, said, evidences, asked, strict=True)
    )


def _of_teams(traces: Traces, calls: ToolCalls, kinds: ComparedKinds, judged: JudgedTraces) -> Iterator[_Candidate]:
    """Runs by who takes part; the agent is the one whose event is to be looked at, where that is one."""
    names, agent = traces.agents["name"].to_pylist(), np.asarray(traces.graph.agent_ids)

    def differs(number: np.ndarray) -> bool:
        return kinds.test(number[judged.rows])[3] < LEVEL

    for one in handoffs(traces, calls, differs, judged.failed):
        whose = {names[of] for of in agent[one.rows].tolist()}
        yield _Candidate(
            one.words, one.words, whose.pop() if len(whose) == 1 else "", "", one.rows, one.tells,
            of_team=True, of_agent=one.of_agent, quotes=one.quotes, beside=one.beside, lengths=one.lengths,
        )  # fmt: skip


def _of_models(traces: Traces, failures: ModelFailures, kinds: ComparedKinds) -> Iterator[_Candidate]:
    """Runs in which an agent first acts with the model of which most failed, with that action."""
    n, names = traces.sizes, np.array(traces.agents["name"].to_pylist(), object)
    models, model = event_models(traces)
    known = np.asarray(traces.graph.action_mask)[: n.events] & (np.array(models) != "")[model]
    trace, acting = (np.asarray(of)[: n.events] for of in (traces.graph.trace_ids, traces.graph.agent_ids))
    for agent, one in failures.worst():
        used, (tells, has) = failures.used[agent], np.zeros((2, n.traces), bool)
        tells[[*used]] = True
        has[[row for row, name in used.items() if name == one.name]] = True
        rows = np.flatnonzero(known & (names[acting] == agent) & has[trace])
        rows = rows[np.unique(trace[rows], return_index=True)[1]]
        chance, *_ = kinds.test(np.where(tells, has, math.nan)[kinds.rows])
        its = [of for of in dict(failures.agents)[agent] if of.tasks]
        other = next(of.name for of in its if of.name != one.name)
        pair = f"={other},{one.name}" if len({*used.values()}) > 2 else ""
        words = f"runs in which {printable(agent, NAME)} has {printable(one.name, NAME)}"
        yield _Candidate(
            f"model of {agent}", words, agent, "", rows, tells, quotes=False, sides=f"model:{agent}{pair}",
            test=(chance, one.p, all(of.p < LEVEL for of in its)),
        )  # fmt: skip


def _told_by_others(
    every: list[_Candidate], having: list[np.ndarray], sure: list[float], odd: list[bool], trace: np.ndarray
) -> Iterator[int]:
    """Of who takes part, what is neither sure nor `odd`, and what a sure cause before it tells: most runs with that
    have it, from there on, and most others do not. Who is called once a tool is down made nothing go wrong."""
    first = np.full((len(every), len(trace) + 1), len(trace))
    for at, one in zip(first, every, strict=True):
        np.minimum.at(at, trace[one.rows], one.rows)
    first = first[:, : len(having[0])] if every else first
    before = [(some, at) for some, at, one, chance in zip(having, first, every, sure, strict=True)
              if chance and not one.of_team]  # fmt: skip
    if before:  # taken together, too
        before.append((np.any([some for some, _ in before], axis=0), np.min([at for _, at in before], axis=0)))
    for i, one in enumerate(every):
        if one.of_team:
            told = (
                2 * (some & having[i] & (at <= first[i])).sum() > some.sum()
                and 2 * (having[i] & ~some).sum() < (~some).sum()
                for some, at in before
            )
            if not (sure[i] or odd[i]) or any(told):
                yield i
            elif sure[i]:
                before.append((having[i], first[i]))


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


def _more_failed(failed: int, succeeded: int, of_failed: int, of_succeeded: int) -> float:
    """By how many standard errors more of all failed traces have a cause than of all succeeded ones, of any task."""
    if not of_failed or not of_succeeded:
        return 0.0
    part = (failed + succeeded) / (of_failed + of_succeeded)
    error = math.sqrt(part * (1 - part) * (1 / of_failed + 1 / of_succeeded))
    return (failed / of_failed - succeeded / of_succeeded) / error if error > 0 else 0.0


def _beyond_chance(
    kinds: ComparedKinds, values: list[np.ndarray], every: list[_Candidate]
) -> tuple[list[float], list[bool], list[bool]]:
    """The chance that a failed trace has each cause more often, 0 where it is not above 0.5 beyond chance; whether that
    is above 0.5 by a p below `CLOSE`, were no other cause looked at; and whether over all tasks more failed traces have
    an agent, or lack it, beyond chance (`ComparedKinds.over_tasks`), as that p allows.

    Agents are a family of tests, as in `outcome_differences`, and their models are another. Each family has its part of
    the level, and that of models falls to the others where all of these are told apart: an agent that is left out
    seldom is not lost among many tools, and a log of chance has a cause beyond it as seldom as with one family.
    Of 2905 logs in which an agent is left out by chance, or since the version or the task is such, or replaced, 1 % had
    who takes part as a cause. Where it is left out in hard tasks, 7 % had, and 28 % with one run of each task.
    """
    known = [value[np.isfinite(value)] for value in values]
    found, near, odd = [0.0] * len(values), [False] * len(values), [False] * len(values)
    vary = [i for i, of in enumerate(known) if len(of) and np.ptp(of) > 0]
    own = {i: test for i in vary if (test := every[i].test) is not None}
    for i, (chance, p, _) in own.items():
        found[i] = chance if chance > 0.5 and p < LEVEL else 0.0
    others = [i for i in vary if i not in own]
    families = [[i for i in others if every[i].of_agent == family] for family in {every[i].of_agent for i in others}]
    parts = len(families) + any(not settled for *_, settled in own.values())
    facts = {i: fact_of(values[i]) for i in vary}
    for asked in families:
        lengths = {i: [length[kinds.rows] for length in every[i].lengths] or [None] for i in asked}
        tests = {i: max((kinds.test(values[i], of) for of in lengths[i]), key=_least_sure) for i in asked}
        over = {i: kinds.over_tasks(values[i], beside[kinds.rows]) for i in asked
                if (beside := every[i].beside) is not None}  # fmt: skip
        if not kinds.within:
            tests |= {i: (tests[i][0], math.nan, math.nan, *one, tests[i][5]) for i, one in over.items()}
        corrected = holm([tests[i][3] for i in asked], [facts[i] for i in asked], [tests[i][4] for i in asked])
        for i, p in zip(asked, corrected, strict=True):
            chance, low, high, alone, *_ = tests[i]
            if chance > 0.5 and beyond_chance(p * parts, low, high, 0.5):
                found[i] = chance
            near[i] = chance > 0.5 and alone < CLOSE
        corrected = holm([p for p, _ in over.values()], [facts[i] for i in over], [least for _, least in over.values()])
        for i, p in zip(over, corrected, strict=True):
            untold = every[i].is_left_out and math.isnan(tests[i][3])
            odd[i] = p * parts < LEVEL and (near[i] or untold)
    return found, near, odd


def _least_sure(test: tuple[float, float, float, float, float, int]) -> tuple[bool, float]:
    """Orders tests of one cause: one that tells nothing is the least sure."""
    chance, _, _, p, *_ = test
    return chance <= 0.5 or math.isnan(p), p


def _candidates(traces: Traces, calls: ToolCalls, *, with_empty: bool) -> Iterator[_Candidate]:
    """Causes that some trace has."""
    agent = np.asarray(traces.graph.agent_ids)[: traces.sizes.events]
    names: list[str] = traces.agents["name"].to_pylist()
    tools: list[str | None] = traces.events["tool"].to_pylist()
    whole = ~lacking_traces(traces)
    failing = whole & has_statuses(traces)
    cut, trace = np.flatnonzero(cut_answers(traces)), np.asarray(traces.graph.trace_ids)
    formats = traces.traces["format"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    failure = np.full(len(agent), -1)
    wrong = np.flatnonzero(calls.errors)
    failure[calls.owners[wrong]] = wrong
    # A call that fails whenever it is made again is what broke: its loop is of one kind with its other failures.
    exchanges: dict[tuple[str, ...], list[Loop]] = {}
    for loop in calls.loops:
        exchanges.setdefault(tuple(sorted(loop.agents)), []).append(loop)
    of_calls = exchanges.pop((), [])
    loops, retries = ([failure[list(loop.rows)] for loop in of] for of in (of_calls, calls.persisted))
    failing_most = [2 * np.sum(of >= 0) > len(of) for of in loops + retries]
    broken = [int(of[of >= 0][0]) for of, most in zip(loops + retries, failing_most, strict=True) if most]
    looping = [loop.rows[0] for loop, most in zip(of_calls, failing_most, strict=False) if not most]
    alone = np.flatnonzero(calls.counted & (calls.tools[calls.owners] < 0) & ~np.isin(calls.owners, calls.rows))
    none, of_models = np.zeros(0, np.int64), failed_model_calls(traces)[alone]
    kinds: tuple[tuple[str, str, np.ndarray, np.ndarray, np.ndarray], ...] = (
        ("failed calls of {}", LATER, calls.unmended, failing, calls.passed_over),
        ("failed calls of {}", ", the same 3 times or more in a row", np.array(broken, np.int64), failing, none),
        ("loops of {}", "", np.array(looping, np.int64), whole, none),
        ("errors of model calls", "", alone[of_models], failing, none),
        ("answers", " cut at a limit of tokens", cut, whole & np.isin(formats, formats[trace[cut]]), none),
        ("errors", " outside of tool calls", alone[~of_models], failing, none),
        *([("empty results of {}", "", calls.empty.rows, whole & calls.empty.tells, none)] if with_empty else []),
    )
    for begin, end, rows, tells, passed in kinds:
        of: dict[str, dict[str, list[int]]] = {}
        for row, call in zip(rows.tolist(), calls.owners[rows].tolist(), strict=True):
            of.setdefault(tools[call] or "", {}).setdefault(names[agent[call]], []).append(row)
        for tool, by in of.items():
            what = begin.format(printable(tool, NAME) or "unnamed tools")
            whose = [(f"by {printable(name, NAME)}", name, np.array(its)) for name, its in by.items()]
            if len(by) > 1:
                whose.append((f"by any of {len(by)} agents", "", np.sort(np.concatenate([*by.values()]))))
            for by_whom, name, its in whose:
                words = f"{what} {by_whom}{end}"
                if end == LATER and np.isin(its, calls.last_of_tool).all():
                    words = f"{what.replace('failed', 'failed last', 1)} {by_whom}"
                yield _Candidate(what, words, name, tool, its, tells, passed)
                # A retry has other arguments where each call has, as patches do: so what worked later is no failure.
                if 0 < len(left := np.setdiff1d(its, passed)) < len(its):
                    yield _Candidate(
                        what, f"{what} {by_whom} after which none succeeded", name, tool, left, tells, none
                    )
    for its_loops in exchanges.values():
        what = f"loop of {' and '.join(printable(name, NAME) for name in its_loops[0].agents)}"
        counts = {loop.period for loop in its_loops}, {loop.times for loop in its_loops}
        most = [f"{'up to ' * (len(of) > 1)}{max(of)}" for of in counts]
        words = f"{what}: the same {most[0]} messages {most[1]} times in a row"
        yield _Candidate(what, words, "", "", np.array([loop.rows[0] for loop in its_loops]), whole)
    for what, at, tells in ends(traces, calls):
        if (at >= 0).any():
            words = f"runs that {what.removeprefix('traces that ')}"
            yield _Candidate(words, words, "", "", at[at >= 0], tells, of_run=True)


def told_causes(causes: tuple[LeadingCause, ...]) -> list[str]:
    """A sentence on each cause, with the event to look at, which it quotes."""
    told = (
        f"{one.told()}, {'quoted is' if one.text else 'such as'} event {one.event} of trace {one.trace}."
        for one in causes
    )
    return [f"{one[0].upper()}{one[1:]}" for one in told]


def left_untold(causes: tuple[LeadingCause, ...], acting: list[str]) -> list[str]:
    """A sentence on agents that failed traces lack beyond chance and that no cause names; none without such.

    Args:
      causes: what went wrong most.
      acting: names of agents that fewer failed traces have, beyond chance.
    """
    told = {one.words for one in causes}
    left = [printable(name, NAME) for name in acting if without_agent(name) not in told]
    why = "a cause above, or how long traces are, may be why"
    return [f"More failed traces lack {' and '.join(left)}, too, as is told below: {why}."] if left else []
