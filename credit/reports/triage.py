"""Triage: errors, retries, loops, tokens and time by agent, and events to look at first."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from credit.reports.call_loops import Loop
from credit.reports.compared_kinds import ComparedKinds, compared_kinds, within_both
from credit.reports.durations import Durations
from credit.reports.endings import ANSWER_CUT, FAILED, LAST, UNENDED, Ending, endings, lasts, of_sides
from credit.reports.event_errors import cut_answers
from credit.reports.event_texts import command_of, event_texts
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.judged_traces import JudgedTraces, judged_traces
from credit.reports.last_acts import LastActs
from credit.reports.leading_cause import LeadingCauses
from credit.reports.missing_lines import lacking_units
from credit.reports.outside_team import outside_team
from credit.reports.shown_example import example_kinds, shown_example, surely_above
from credit.reports.tool_calls import Failures, ToolCalls
from credit.reports.trace_list import actions_with_tokens, counted_tokens, has_statuses
from credit.reports.trace_numbers import TeamFacts
from credit.reports.verdict_channels import of_one_source
from credit.reports.where_time_goes import where_time_goes
from graphs.distinct_columns import distinct_columns
from graphs.errors import expect
from graphs.structure.host_ids import distinct
from graphs.task_means import LEAST_TASKS
from graphs.text import counted, plural, printable
from graphs.traces.batch import Traces

__all__ = ["TOKENS", "Suspect", "ToolUse", "Triage", "Workload", "serious_events", "triage"]

EXCERPT, CALL = 120, 60
"""Length of what came of a call, or of a call of which nothing came, and of a call behind it."""
ARGUMENTS = 2000
"""Length of the arguments in which a command is looked for."""

QUIET = {
    (True, False): "the logs call no event an error",
    (True, True): "those logs that state errors state none",
    (False, True): "these logs do not state errors",
}
"""By whether logs of some traces state errors, and whether others do not."""

TOKENS = " Most tokens were generated here:"
"""What ends `Triage.quiet` where the events are those."""

AFTERWARDS = {
    True: "the same call succeeded later",
    False: "only other calls of it succeeded later",
    None: "a later call of the tool succeeded",  # the log has no arguments
}


@dataclasses.dataclass(frozen=True)
class Workload:
    """The work of one agent name in all traces. A simulated user is no part of the team and has none (`outside_team`).

    Attributes:
      agent: its name, with the format behind it where agents of several formats have the name.
      traces: traces in which it acts.
      events, actions: counts.
      calls: tool calls.
      errors: events whose status the log calls an error, a call and its result once; None where no log of these formats
        states a status.
      retries: calls that an agent made again, arguments and all, after they failed; None likewise, and where there may
        be some, had the log arguments of calls.
      loops: that it is in, as of `LOOP`; None where there may be some, had the log arguments of calls.
      tokens: generated tokens, summed over the actions whose count the log has.
      actions_with_tokens: how many `trace_list.actions_with_tokens` has; `tokens` is a lower bound where they are fewer
        than `actions`.
      seconds: what its events took (`durations`), in the traces that have seconds; NaN where none has.
      lacks_lines: whether lines of it may be missing, so that sums are lower bounds (`lacking_units`).
      lacks_traces: whether it may act in more traces.
      lacks_seconds: whether some of its events have none, so that `seconds` is a lower bound.
    """

    agent: str
    traces: int
    events: int
    actions: int
    calls: int
    errors: int | None
    retries: int | None
    loops: int | None
    tokens: int
    actions_with_tokens: int
    seconds: float
    lacks_lines: bool
    lacks_traces: bool
    lacks_seconds: bool


@dataclasses.dataclass(frozen=True)
class Suspect:
    """An event that a person should look at.

    Attributes:
      trace, event: where it is.
      agent: name of its agent.
      tool: name of the tool; "" where it has none.
      position: its place within the trace, from 0 on; None of a whole trace, whose `event` is "".
      why: in words, the tool's name among them.
      outcome: of its trace; None where it has none.
      text: the beginning of its text, then behind `←` of its tool's input, or of the command there; "" where the log
        has neither.
      traces: that have one of the same cause, of the agent, or of any as `why` says, and its tool; one where each event
        is named.
      failed, succeeded: how many failed, and succeeded, traces have one of the same cause; None where those of `Triage`
        are, and of actions of most tokens.
      of_sides: how many traces of each side have one of the same cause, where sides are compared; empty elsewhere.
      of_failed, of_succeeded: of how many; None where of those of `Triage`. Of an agent that takes part and that tasks
        need, or do not, all counts are of tasks with such runs and others (`LeadingCause.where_varied`).
      of: how many events its trace has.
    """

    trace: str
    event: str
    agent: str
    tool: str
    position: int | None
    why: str
    outcome: float | None
    text: str
    traces: int
    failed: int | None = None
    succeeded: int | None = None
    of_sides: tuple[int, ...] = ()
    of_failed: int | None = None
    of_succeeded: int | None = None
    of: int = 0

    @property
    def of_many(self) -> bool:
        """Whether several traces have one of the same cause, also where each event is named."""
        return max(self.traces, (self.failed or 0) + (self.succeeded or 0)) > 1


class Leading(Protocol):
    """What went wrong most: the fields of `LeadingCause` that are as those of a `Suspect`, whose `why` is `words`."""

    @property
    def words(self) -> str: ...
    @property
    def trace(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def beyond_chance(self) -> bool | None: ...
    @property
    def one_side(self) -> object | None: ...
    @property
    def late(self) -> str: ...
    @property
    def where_varied(self) -> tuple[int, ...] | None: ...


@dataclasses.dataclass(frozen=True)
class ToolUse:
    """The use of one tool by all agents.

    Attributes:
      tool: its name; "" for calls whose tool the log does not name.
      traces, calls: how many traces call it, and how often.
      errors: calls that failed, None as of `Workload`; retries, loops: as of `Workload`.
      empty: its results that hold nothing (`EmptyResults`); None where the log has and tells none.
      seconds: what its calls and their results took, NaN as of `Workload`.
      lacks_lines, lacks_traces: as of `Workload`.
      lacks_empty: whether of some of its traces the log does not tell, so that `empty` is a lower bound.
    """

    tool: str
    traces: int
    calls: int
    errors: int | None
    retries: int | None
    loops: int | None
    empty: int | None
    seconds: float
    lacks_lines: bool
    lacks_traces: bool
    lacks_empty: bool


@dataclasses.dataclass(frozen=True)
class Triage:
    """Workloads by agent and by tool, and events to look at, most serious first.

    Workloads have the most errors first, then retries, loops, and tokens and actions, or empty results and calls.

    `quiet` is "" where there are errors or loops. Else it says that there are none, and, where no trace ends early,
    what the events are: the actions of most tokens, if the log has counts. `left_out` events are not named, of the same
    causes and of others. `endings` are how traces end early. `slowest` is `where_time_goes`. `failed` and `succeeded`
    count traces, which are called as `kinds`; None where these are not of both. `sure`: behind so many events none is
    of a cause that is beyond chance; None where none was tested. `tasks`: in how many they are compared within, 0
    between tasks; `noun`: as of `ComparedKinds`. `looked_at`, `tellable`: as of `LeadingCauses`. `sides` are how many
    traces each side has; empty without sides.
    """

    agents: tuple[Workload, ...]
    tools: tuple[ToolUse, ...]
    suspects: tuple[Suspect, ...]
    left_out: int
    quiet: str
    endings: tuple[Ending, ...]
    slowest: str
    failed: int | None = None
    succeeded: int | None = None
    kinds: tuple[str, str] = ("failed", "succeeded")
    sure: int | None = None
    tasks: int = 0
    noun: str = "task"
    sides: tuple[int, ...] = ()
    loops: int = 0
    looked_at: int = 0
    tellable: int = 0

    @property
    def unsure(self) -> bool:
        """Whether no cause is beyond chance, and some event may seem to be one."""
        return self.sure == 0 and not self.quiet.endswith(TOKENS)

    @property
    def too_few(self) -> bool:
        """Whether traces of one kind are fewer than any test takes."""
        return min(self.failed or 0, self.succeeded or 0) < LEAST_TASKS

    def look_first(self) -> list[str]:
        """`quiet`, behind how traces end early; that no cause is beyond chance, where none is; in sentences."""
        if self.quiet and not self.endings:
            return [self.quiet.removesuffix(TOKENS)]
        (bad, good), looked = self.kinds, f"{counted(self.looked_at, 'kind')} of error, loop or end"
        where = within_both(self.tasks, self.noun)
        none = [f"No error, loop or end is more common in {bad} traces than chance allows{where}."]
        if self.too_few:
            none = [f"Too few traces to tell: a test takes {LEAST_TASKS} {bad} and {LEAST_TASKS} {good} ones."]
        elif self.looked_at and not self.tellable:
            tasks = f"{counted(self.tasks, self.noun)} with both {'is' if self.tasks == 1 else 'are'} too few to tell"
            few = tasks if self.tasks else "Too few traces to tell"
            none = [f"{few}: of {looked} looked at none could have been beyond chance."]
        elif self.looked_at:
            rare = self.looked_at - self.tellable
            none += [f"For {rare} of the {self.looked_at} kinds looked at, traces are too few to tell."] * bool(rare)
        if not self.quiet:
            return none if self.unsure else []
        return [*(f"{one.words}." for one in self.endings), self.quiet, *(none if self.unsure else [])]

    def commonness(self) -> str:
        """What the shares of failed and succeeded traces beside a cause are; "" where none stand there."""
        if not any(one.of_many for one in self.suspects) or self.quiet.endswith(TOKENS):
            return ""
        if self.failed is None:
            return "The more serious causes come first, however many traces have them"
        none = [not (one.failed or one.succeeded) and one.position is not None for one in self.suspects]
        (bad, good), where = self.kinds, f" within {plural(self.noun)}" if self.tasks else ""
        chance = ""
        if self.sure is not None and self.sure < len(self.suspects):
            behind = f" behind the first{f' {self.sure}' * (self.sure > 1)}" * (self.sure > 0)
            chance = f";{behind} none is beyond chance{within_both(self.tasks, self.noun)}"
        team = f"; of who takes part, in {plural(self.noun)} with such runs and others"
        return (
            f"{bad}, {good}: part of the {self.failed} {bad} and {self.succeeded} {good} traces with the same cause"
            f"{team * any(one.of_failed is not None for one in self.suspects)}"
            f"{'; –: none of these' if any(none) else ''}. The surest differences{where} come first{chance}"
        )


def triage(
    traces: Traces,
    *,
    most: int | None = 10,
    success_at: float | None = None,
    texts: Callable[[np.ndarray, int], list[str]] | None = None,
    side: np.ndarray | None = None,
    leading: Sequence[Leading] | None = None,
    number: tuple[str, str] = ("", ""),
) -> Triage:
    """Count what went wrong, without any outcome.

    Args:
      traces: what was read.
      most: how many causes to name, by the first event of each; None for all events.
      success_at: the outcome from which a trace succeeded; None for `least_success`.
      side: as of `judged_traces`.
      texts: gives the texts of events by their rows and a length; None for those of the logs (`event_texts`).
      leading: what went wrong most (`leading_causes`), None where no cause was tested. Of failed and succeeded traces
        it comes first, but for what one side alone has.
      number: `OutcomeDifferences.example`. It comes first where no cause is beyond chance.

    Returns:
      Workloads and suspects. Suspects are the last event of each trace that ends early, the first error of each run of
      errors, answers that were cut, then the first call of each loop; only where there are none, the actions that
      generated the most tokens.
      Those of traces that succeeded come last: where all outcomes are equal, of those above 0. A run of errors is of
      one tool and one agent (`Failures`). Of errors, calls that failed again come first, then longer runs, then errors
      after which the tool did not succeed again, then those after which only other calls of it did, then later ones.
      A cause is a way to end, errors of a tool by an agent after which it worked or did not, loops of an agent over
      some tools, loops of messages, or the cut answers of an agent, however often they came in a trace, and whether a
      call was made again.
      Those of several agents are one cause where that is more common in failed traces than each is, more surely first.
      Behind what went wrong most, and what is surely more common, those are left out that less than twice as large a
      part of failed traces has.
      Errors of a tool by an agent in one trace are one breakage, of the kind of its most serious ones.
      Of failed and succeeded traces, causes come by the lower end of the one-sided 95 % interval of the difference of
      their shares where that is above 0, then in the order above, those of neither kind of traces among them; then
      those of no larger share of failed ones. Runs of which spans are missing come last. Where traces are compared
      within tasks (`compared_kinds`), shares are means over tasks, and those that succeeded ones have more often count
      as of no larger share, and come last where they are: a cause of hard tasks is in more failed traces, whatever it
      does.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> triage(rows.traces).agents[0].errors is None  # columns state no status
      True
    """
    expect("traces", traces, Traces, "what credit.read returns")
    traces = of_one_source(traces)
    calls = ToolCalls.of(traces)
    failures = calls.failures()
    judged = judged_traces(traces, success_at, side)
    compared = compared_kinds(traces, judged, between=True)
    texts = texts or functools.partial(event_texts, traces)
    kinds = judged.failed, judged.succeeded
    tests = leading is not None and judged.both
    looked = (leading.looked_at, leading.tellable) if isinstance(leading, LeadingCauses) else (0, 0)
    leading = [one for one in leading or () if one.one_side is None] if judged.both else []
    marks = {_row(traces, one): one.late for one in leading if one.late}
    suspects, left_out, sure = _suspects(
        traces, calls, failures, most, kinds, compared if judged.both else None, texts, side, leading, number, marks
    )
    by_number = any(one.position is None for one in suspects)
    states = has_statuses(traces)
    seconds = TeamFacts.of(traces).durations
    agents, tools = _workloads(traces, calls, seconds), _tools(traces, calls, failures, seconds.event)
    quiet, early = "", endings(traces, None if math.isnan(judged.cut) else judged, side)
    if not (failures or calls.loops or cut_answers(traces).any()):
        errors = QUIET[bool(states.any()) or not len(states), not states.all()]
        among = " among calls with known arguments" if calls.uncompared else ""
        quiet = f"Nothing {'else ' if early or leading else ''}stands out: {errors}, and there is no loop{among}."
        quiet += TOKENS if suspects and not (early or leading or by_number) else ""
    return Triage(
        agents,
        tools,
        suspects,
        left_out,
        quiet,
        early,
        where_time_goes(traces, calls, seconds),
        failed=int(judged.failed.sum()) if judged.both else None,
        succeeded=int(judged.succeeded.sum()) if judged.both else None,
        kinds=judged.kinds,
        sure=sure if tests else None,
        tasks=len(np.unique(compared.task[compared.kept])) if judged.both and compared.within else 0,
        noun=compared.noun,
        sides=of_sides(np.arange(traces.sizes.traces), side),
        loops=len(calls.loops),
        looked_at=looked[0],
        tellable=looked[1],
    )


def _tools(traces: Traces, calls: ToolCalls, failures: list[Failures], took: np.ndarray) -> tuple[ToolUse, ...]:
    named: list[str] = [name or "" for name in traces.events["tool"].to_pylist()]
    trace = np.asarray(traces.graph.trace_ids)
    called = calls.rows
    used = collections.Counter(named[row] for row in called.tolist())
    again = collections.Counter(named[row] for row in called[calls.retry].tolist())
    looped = collections.Counter(tool for loop in calls.loops for tool in loop.tools)
    nothing = collections.Counter(named[row] for row in calls.owners[calls.empty.rows].tolist())
    untold = {named[row] for row in calls.untold} - again.keys()
    unknown = {named[row] for row in calls.uncompared} - looped.keys()
    failed: collections.Counter[str] = collections.Counter()
    for run in failures:
        if run.tool is not None:
            failed[run.tool] += len(run.rows)
    asked = dict(zip(calls.results.tolist(), calls.calls.tolist(), strict=True))
    seconds: dict[str, float] = {}
    for row in {*called.tolist(), *asked}:
        if not math.isnan(took[row]):
            tool = named[asked.get(row, row)]
            seconds[tool] = seconds.get(tool, 0.0) + float(took[row])
    where: dict[str, set[int]] = {}
    for row in called.tolist():
        where.setdefault(named[row], set()).add(int(trace[row]))
    states, place = has_statuses(traces), {tool: i for i, tool in enumerate(used)}
    unit = np.full(traces.sizes.events, -1)
    unit[called] = [place[named[row]] for row in called.tolist()]
    lacking = lacking_units(traces, unit, len(used), of_agents=False)
    known = {tool for tool, of_tool in where.items() if states[list(of_tool)].any()}
    rows = []
    for tool, n in used.items():
        errors = failed[tool] if tool in known else None
        retries = None if errors is None or tool in untold else again[tool]
        loops = None if tool in unknown else looped[tool]
        tells = calls.empty.tells[list(where[tool])]
        empty = nothing[tool] if nothing[tool] or tells.all() else None
        lacks = bool(lacking.sums[place[tool]]), bool(lacking.traces[place[tool]]), bool(not tells.all())
        took_all = seconds.get(tool, math.nan)
        rows.append(ToolUse(tool, len(where[tool]), n, errors, retries, loops, empty, took_all, *lacks))
    names = ("errors", "retries", "loops", "empty", "calls")
    return tuple(sorted(rows, key=lambda row: [-(getattr(row, name) or 0) for name in names]))


def _workloads(traces: Traces, calls: ToolCalls, seconds: Durations) -> tuple[Workload, ...]:
    graph, n = traces.graph, traces.sizes
    trace = np.asarray(graph.trace_ids)[: n.events]
    action = np.asarray(graph.action_mask)[: n.events]
    name_of, names = _names(traces, trace)
    width, inside = len(names), ~outside_team(traces)

    def count(rows: np.ndarray) -> list[int]:
        """Events of the team of each name among these rows."""
        workloads: list[int] = np.bincount(name_of[rows], inside[rows], width).astype(np.int64).tolist()
        return workloads

    def where_stated(counts: list[int | None]) -> list[int | None]:
        return [number if states else None for number, states in zip(counts, stating, strict=True)]

    def where_told(rows: np.ndarray, untold: list[int]) -> list[int | None]:
        lacking = count(np.asarray(untold, np.int64))
        return [number if number or not lacks else None for number, lacks in zip(count(rows), lacking, strict=True)]

    stating = count(has_statuses(traces)[trace])

    tokens = traces.evidence.get("tokens")
    stated = counted_tokens(traces) & action
    amounts = np.zeros(0) if tokens is None else tokens.array[: n.events][stated]
    spent = np.bincount(name_of[stated], amounts, minlength=width)
    many = max(n.traces, 1)
    pairs = distinct((name_of.astype(np.int64) * many + trace)[inside])
    in_loops = ({name_of[row]: row for row in loop.rows[: loop.period]}.values() for loop in calls.loops)
    took, lacks = _seconds(seconds, name_of, width)
    of_names = (
        names,
        np.bincount(pairs // many, minlength=width).tolist(),
        count(np.arange(n.events)),
        count(action),
        count(calls.rows),
        where_stated([*count(calls.counted)]),
        where_stated(where_told(calls.rows[calls.retry], calls.untold)),
        where_told(np.array([*itertools.chain.from_iterable(in_loops)], np.int64), calls.uncompared),
        spent.astype(np.int64).tolist(),
        count(actions_with_tokens(traces)),
        took.tolist(),
        *(bound.tolist() for bound in lacking_units(traces, name_of, width, of_agents=True)),
        lacks.tolist(),
    )
    rows = [row for row in itertools.starmap(Workload, zip(*of_names, strict=True)) if row.events]
    return tuple(sorted(rows, key=_order))


def _order(row: Workload) -> tuple[int, ...]:
    """Logs may state no errors and no tokens: then who acts most comes first."""
    return -(row.errors or 0), -(row.retries or 0), -(row.loops or 0), -row.tokens, -row.actions, -row.events


def _names(traces: Traces, trace: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Whose each event is, and what they are called: `main` of one format is nobody of another, whose name says so."""
    graph, n = traces.graph, traces.sizes
    called: dict[int, str] = dict(
        zip(np.asarray(graph.agent_name_ids)[: n.agents].tolist(), traces.agents["name"].to_pylist(), strict=True)
    )
    coded = traces.traces["format"].combine_chunks().dictionary_encode()
    formats = coded.dictionary.to_pylist()
    pairs = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)[: n.events]].astype(np.int64)
    pairs = pairs * len(formats) + coded.indices.to_numpy(zero_copy_only=False)[trace]
    found, of = np.unique(pairs, return_inverse=True)
    name, kind = np.divmod(found, max(len(formats), 1))
    several = np.bincount(name)[name] > 1
    words = [
        f"{called[i]} ({formats[k]})" if many else called[i]
        for i, k, many in zip(name.tolist(), kind.tolist(), several.tolist(), strict=True)
    ]
    return of, words


def _seconds(seconds: Durations, name_of: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """What the events of each name took, in the traces that have seconds, NaN where none has; and if some lack it."""
    known = np.isfinite(seconds.event)
    unknown = np.bincount(name_of[~known], minlength=width) > 0
    spent = np.bincount(name_of, np.where(known, seconds.event, seconds.least), width)
    some = (np.bincount(name_of[known], minlength=width) > 0) & ((spent > 0) | ~unknown)
    return np.where(some, spent, np.nan), some & unknown


def serious_events(traces: Traces, calls: ToolCalls, judged: JudgedTraces) -> list[int]:
    """Events of all traces that a person should look at, by their causes as `triage` has them.

    Args:
      traces: what was read.
      calls: its tool calls.
      judged: which traces failed.
    """
    kinds = judged.failed, judged.succeeded
    found = _by_seriousness(traces, calls, calls.failures(), kinds)
    causes = _Causes(traces, found, kinds, compared_kinds(traces, judged, between=True) if judged.both else None)
    return [one.row for cause in sorted(causes.of, key=causes.place) for one in causes.of[cause]]


def _by_seriousness(
    traces: Traces, calls: ToolCalls, failures: list[Failures], kinds: tuple[np.ndarray, np.ndarray]
) -> list[_Found]:
    """Ends, failures and loops, those of traces that succeeded last."""
    graph, n = traces.graph, traces.sizes
    trace = np.asarray(graph.trace_ids)[: n.events]
    first = np.searchsorted(trace, np.arange(n.traces + 1))

    def left(row: int) -> float:
        """The part of its trace that comes after an event."""
        begin, end = first[trace[row]], first[trace[row] + 1]
        return float((end - row) / (end - begin))

    def seriousness(run: Failures) -> tuple[float, ...]:
        in_a_row = run.streak if run.same == 1 else 0
        return -run.same, -in_a_row, run.works + bool(run.recovered), left(run.rows[0])

    of_ends = {row for row, how, _ in lasts(traces, calls).values() if how == LAST[FAILED]}
    failures = [run for run in failures if run.tool is not None or not of_ends.issuperset(run.rows)]
    told = {calls.call_of(row) for run in failures if run.same > 1 for row in run.rows}
    loops = [loop for loop in calls.loops if told.isdisjoint(loop.rows)]
    of_models, cut = failed_model_calls(traces), np.flatnonzero(cut_answers(traces)).tolist()
    found = [
        *(
            _Found(row, how, said=said, of_all=True)
            for row, how, said in lasts(traces, calls).values()
            if how != LAST[ANSWER_CUT]
        ),
        *(
            _of_failures(run, " of a model call" * bool(of_models[run.rows[0]]))._replace(
                breakage=(int(trace[run.rows[0]]), int(graph.agent_ids[run.rows[0]]), run.tool)
            )
            for run in sorted(failures, key=seriousness)
        ),
        *(_Found(row, "the answer was cut at a limit of tokens") for row in cut),
        *map(_of_loop, sorted(loops, key=lambda loop: loop.rows[0])),
    ]
    return sorted(found, key=lambda one: bool(kinds[1][trace[one.row]]))


class _Causes:
    """Findings by their cause: what is wrong, and the name of an agent."""

    def __init__(
        self,
        traces: Traces,
        found: list[_Found],
        kinds: tuple[np.ndarray, np.ndarray],
        compared: ComparedKinds | None,
    ) -> None:
        graph, self._kinds, self._compared = traces.graph, kinds, compared
        trace, names = np.asarray(graph.trace_ids), traces.agents["name"].to_pylist()
        of_each = [(one.trouble or f"{one.begin} {one.end}", "" if one.of_all else names[int(graph.agent_ids[one.row])])
                   for one in found]  # fmt: skip
        # Of one breakage, the most serious failures come first.
        heads = dict(zip((one.breakage for one in reversed(found)), reversed(of_each), strict=True))
        self.of_each = [
            heads[one.breakage] if one.breakage else cause for one, cause in zip(found, of_each, strict=True)
        ]
        where: dict[tuple[str, str], np.ndarray] = {}
        for cause, one in zip(self.of_each, found, strict=True):
            where[cause] = np.append(where.get(cause, np.zeros(0, np.int64)), trace[one.row])
        of_trouble: dict[str, list[tuple[str, str]]] = {}
        for cause in where:
            of_trouble.setdefault(cause[0], []).append(cause)
        # Of a trouble of each agent and of all of them, one is named, as of `leading_causes`.
        joined = {
            cause: (trouble, "")
            for trouble, its in of_trouble.items()
            if self._commoner(np.concatenate([where[one] for one in its]))
            < min(self._commoner(where[one]) for one in its)
            for cause in its
        }
        self.of_each = [joined.get(cause, cause) for cause in self.of_each]
        self.of: dict[tuple[str, str], list[_Found]] = {}
        for cause, one in zip(self.of_each, found, strict=True):
            self.of.setdefault(cause, []).append(one)
        self.of = {cause: _commonest_first(of) for cause, of in self.of.items()}
        self._where = {cause: np.unique(trace[[one.row for one in of]]) for cause, of in self.of.items()}
        self.common = {cause: self._counts(having) for cause, having in self._where.items()}

    def _counts(self, having: np.ndarray) -> tuple[int, int]:
        failed, succeeded = self._kinds
        return int(failed[having].sum()), int(succeeded[having].sum())

    def _commoner(self, rows: np.ndarray) -> tuple[int, float, float]:
        """Orders causes by `place`, and those of one place by how much larger a part of failed traces has them."""
        (bad, good), (failed, succeeded) = self._counts(np.unique(rows)), (int(kind.sum()) for kind in self._kinds)
        return *self._place(rows), 0.0 if self._compared is None else good / succeeded - bad / failed

    def alike(self, cause: tuple[str, str]) -> bool:
        """Whether less than twice as large a part of failed traces has it as of succeeded ones."""
        (bad, good), (failed, succeeded) = self.common[cause], (int(kind.sum()) for kind in self._kinds)
        return good > 0 and bad * succeeded < 2 * good * failed

    def place(self, cause: tuple[str, str]) -> tuple[int, float]:
        """Of traces of both kinds, by how much more common it is in failed ones; else 0, as of `common` (0, 0)."""
        return self._place(self._where[cause])

    def _place(self, rows: np.ndarray) -> tuple[int, float]:
        having = np.unique(rows)
        (bad, good), (failed, succeeded) = self._counts(having), (int(kind.sum()) for kind in self._kinds)
        if self._compared is None or not bad + good:
            return 0, 0.0
        kinds, units = self._compared, None
        if kinds.side.any() and not kinds.within:
            kinds = kinds._replace(within=True, unit=np.unique(kinds.side, return_inverse=True)[1], task=kinds.side)
        if kinds.within:
            units = kinds.counts(np.isin(kinds.rows, having))
        shares = units.shares() if units else (bad, failed, good, succeeded)
        above = surely_above(*shares) if shares[1] > 0 else 0.0
        if above > 0:
            return 0, -above
        return (bad * succeeded <= good * failed) + bool(units and units.turned), 0.0


def _suspects(
    traces: Traces,
    calls: ToolCalls,
    failures: list[Failures],
    most: int | None,
    kinds: tuple[np.ndarray, np.ndarray],
    compared: ComparedKinds | None,
    texts: Callable[[np.ndarray, int], list[str]],
    side: np.ndarray | None,
    leading: Sequence[Leading],
    number: tuple[str, str],
    marks: dict[int, str],
) -> tuple[tuple[Suspect, ...], int, int]:
    """The events, how many more there are, and `Triage.sure`. `kinds`: failed, succeeded: bool [traces]."""
    graph, n = traces.graph, traces.sizes
    trace = np.asarray(graph.trace_ids)[: n.events]
    first = np.searchsorted(trace, np.arange(n.traces + 1))

    outcome, (failed, succeeded) = np.asarray(traces.reward, np.float64)[: n.traces], kinds
    found = _by_seriousness(traces, calls, failures, kinds)
    tokens = None if found or leading or number[1] else traces.evidence.get("tokens")
    if tokens is not None:
        amount = np.where(counted_tokens(traces), tokens.array[: n.events], -1)
        candidates = np.flatnonzero(amount > 0)  # the log states a count, and some were generated
        ranked = candidates[np.lexsort((-amount[candidates], succeeded[trace[candidates]]))]
        # All actions of a name and a count, of the first `most` of these: fewer would cut those alike in two.
        name = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)[ranked]]
        alike = distinct_columns(name, amount[ranked])
        chosen = ranked[np.isin(alike.of, np.argsort(alike.first)[:most])].tolist()
        found = [_Found(row, f"generated {int(amount[row])} tokens") for row in chosen]
    names: list[str] = traces.agents["name"].to_pylist()
    compared = compared if tokens is None else None  # a count of tokens is no cause
    causes, apart = _Causes(traces, found, kinds, compared), compared is not None
    lead = [_row(traces, one) for one in leading]
    led = {cause: k for cause, its in causes.of.items() for k in range(len(lead))[::-1]
           if lead[k] in [one.row for one in its]}  # fmt: skip
    alone = [k for k in range(len(lead)) if k not in led.values()][:most]  # what is no failure, as who takes part
    named = [*causes.of.items()]
    if most is None:
        named = [(cause, [one]) for cause, one in zip(causes.of_each, found, strict=True)]
    place = {cause: causes.place(cause) for cause in causes.of}
    above = {cause for cause in place if place[cause][1] < 0}
    certain = {cause for cause in led if leading[led[cause]].beyond_chance}
    acts = LastActs(traces, calls)

    @functools.cache
    def late(cause: tuple[str, str]) -> str:
        """That it is done last in its runs (`LastActs`)."""
        rows = [one.row for one in causes.of[cause]]
        if compared is None or cause in led:
            return next((marks[row] for row in rows if row in marks), "")
        return acts.told(np.array(rows), failed, succeeded)

    def order(of: tuple[tuple[str, str], list[_Found]]) -> tuple[Any, ...]:
        """What went wrong most, then what is surely more common, that which is done last behind, and the rest: damage
        of the log last, which explains no failure."""
        (cause, its), (kind, size) = of, place[of[0]]
        behind = (size < 0 or compared is None) and late(cause) != ""
        damage = size >= 0 and its[0].begin == LAST[UNENDED]
        return led.get(cause, len(lead)), its[0].row not in lead, damage, kind, size >= 0, behind, size

    named.sort(key=order)
    if most is not None and (above or lead) and compared is not None:  # behind these, what both kinds have says nothing
        named = [of for of in named if of[0] in above or of[0] in led or not causes.alike(of[0])]
    if most is not None and apart:  # what the same traces have of one tool by one agent is one cause
        begun = {tuple(getattr(leading[k], name) for name in ("agent", "tool", "failed", "succeeded")) for k in alone}
        named = [
            of
            for of in named
            if of[0] in led or (*_whose(traces, calls, of[1][0].row), *causes.common[of[0]]) not in begun
        ]
    shown, kind = [], example_kinds(traces, side)
    for cause, its in named[: None if most is None else most - len(alone)]:
        rows = [one.row for one in its]
        at = next((rows.index(row) for row in lead if row in rows), None)
        at = shown_example(rows, trace, failed, kind) if at is None else at
        shown.append((cause, [its[at], *its[:at], *its[at + 1 :]]))
    rows = [of[0].row for _, of in shown]
    owners = [calls.call_of(row) for row in rows]
    asked, own = texts(np.array(owners, np.int64), ARGUMENTS), texts(np.array(rows, np.int64), ARGUMENTS + EXCERPT)

    def suspect(row: int, owner: int, **more: Any) -> Suspect:
        return Suspect(
            trace=traces.traces["trace"][int(trace[row])].as_py(),
            event=traces.events["event"][row].as_py(),
            agent=names[int(graph.agent_ids[row])],
            tool=traces.events["tool"][owner].as_py() or "",
            position=row - int(first[trace[row]]),
            of=int(first[trace[row] + 1] - first[trace[row]]),
            outcome=float(outcome[trace[row]]) if np.isfinite(outcome[trace[row]]) else None,
            **more,
        )

    def by_several(cause: tuple[str, str], its: list[_Found]) -> str:
        """How many agents have it, where it is one cause of several."""
        agents = {names[int(graph.agent_ids[one.row])] for one in its}
        return "" if cause[1] or its[0].of_all else f"; by any of {len(agents)} agents"

    suspects = [
        suspect(
            row,
            owner,
            why=(why := "; ".join(filter(None, (_why(of_cause) + by_several(cause, of_cause), late(cause))))),
            text=words if (words := _words(said, "" if owner == row else text)) not in why else "",
            traces=len({int(trace[one.row]) for one in of_cause}),
            failed=causes.common[cause][0] if apart else None,
            succeeded=causes.common[cause][1] if apart else None,
            of_sides=of_sides(np.unique(trace[[one.row for one in of_cause]]), side),
        )
        for (cause, of_cause), row, owner, said, text in zip(shown, rows, owners, asked, own, strict=True)
    ]
    sure = [cause in certain for cause, _ in shown]
    for k in alone:
        sure.insert(k, bool(leading[k].beyond_chance))
        more = {name: getattr(leading[k], name) for name in ("text", "traces", "failed", "succeeded", "of_sides")}
        of_these = ("of_failed", "of_succeeded") if leading[k].where_varied else ()
        more |= {name: getattr(leading[k], name) for name in of_these}
        suspects.insert(k, suspect(lead[k], lead[k], why=leading[k].words, **more))
    if number[1] and not any(one.beyond_chance for one in leading):
        what, of_it = number[0], float(outcome[traces.index(number[1])])
        none = (0, 0) if apart else ()
        suspects.insert(0, Suspect(number[1], "", "", "", None, f"{what[0].lower()}{what[1:]}", of_it, "", 1, *none))
    behind = max((place for place, one in enumerate(sure, 1) if one), default=0)
    return tuple(suspects), 0 if tokens is not None else len(found) - len(shown), behind


def _whose(traces: Traces, calls: ToolCalls, row: int) -> tuple[str, str]:
    """The agent and the tool of an event."""
    agent = int(np.asarray(traces.graph.agent_ids)[row])
    return traces.agents["name"][agent].as_py(), traces.events["tool"][calls.call_of(row)].as_py() or ""


def _row(traces: Traces, one: Leading) -> int:
    """The event of a cause."""
    trace = traces.traces["trace"].to_pylist().index(one.trace)
    begin = int(np.searchsorted(np.asarray(traces.graph.trace_ids)[: traces.sizes.events], trace))
    return begin + int(traces.events["event"].slice(begin).index(one.event).as_py())


def _words(asked: str, came: str) -> str:
    """What came of a call, then the call, which gives way where a line is short; a span says both, the call first."""
    came = printable(came.removeprefix(asked).strip(), EXCERPT)
    return " ← ".join(filter(None, (came, printable(command_of(asked), CALL if came else EXCERPT))))


class _Found(NamedTuple):
    """An event to look at and why: words with a number of times among them, where there is one.

    Findings of one `trouble`, or without any whose `begin` and `end` are the same, have one cause, for one agent unless
    it is `of_all`, whatever is `said`; so have those of one `breakage`, the failures of a tool in a run by an agent, of
    which `errors` are.
    """

    row: int
    begin: str
    times: int = 0
    end: str = ""
    place: str = ""
    said: str = ""
    of_all: bool = False
    errors: int = 0
    breakage: tuple[int, int, str | None] | tuple[()] = ()
    trouble: str = ""


def _commonest_first(found: list[_Found]) -> list[_Found]:
    """What happened most often first, by the most serious of each breakage."""
    heads = {one.breakage or one.row: one for one in reversed(found)}
    count = collections.Counter((one.begin, one.end) for one in heads.values())
    return sorted(found, key=lambda one: (heads[one.breakage or one.row] is not one, -count[one.begin, one.end]))


def _why(of_cause: list[_Found]) -> str:
    """Why to look at the first of these, how often it came at most, and among how many errors of its breakage."""
    first, errors = of_cause[0], collections.Counter[object]()
    for one in of_cause:
        errors[one.breakage] += one.errors
    alike = [one.times for one in of_cause if (one.begin, one.end) == (first.begin, first.end)]
    beside = f"; {_at_most([*errors.values()])} errors in {'a' if len(errors) > 1 else 'the'} run"
    return (
        f"{first.place}{first.begin}{f' {_at_most(alike)}' if max(alike) else ''}{first.end}{first.said}"
        f"{beside if max(errors.values()) > max(1, *alike) else ''}"
    )


def _at_most(counts: list[int]) -> str:
    return f"{'up to ' if min(counts) < max(counts) else ''}{max(counts)}"


def _of_failures(run: Failures, of: str) -> _Found:
    row, errors, tool = run.rows[0], len(run.rows), "" if run.tool is None else f" of {run.tool}"
    later = AFTERWARDS[run.recovered] if run.works else "no later call of it succeeded"
    if run.same > 1:
        then = ", then succeeded" if run.recovered else ", then had no result" if run.left else ""
        found = _Found(row, f"error{tool}; the same call failed", run.same, f" times{then}")
    elif run.streak > 1:
        place = "first of" if run.place == 1 else f"number {run.place} of"
        found = _Found(row, "", run.streak, f" errors{tool} in a row", place)
    else:
        found = _Found(row, f"error{tool}; {later}" if tool else f"error{of}")
    # Whether the call was made again or not, and whatever failed beside it, it is one trouble.
    trouble = f"error{tool}; {later.replace(AFTERWARDS[True], AFTERWARDS[None])}" if tool else f"error{of}"
    return found._replace(errors=errors, trouble=trouble)


def _of_loop(loop: Loop) -> _Found:
    if loop.agents:
        begin = f"the same {loop.period} messages of {' and '.join(loop.agents)}"
        trouble = f"loop of {' and '.join(sorted(loop.agents))}"
        return _Found(loop.rows[0], begin, loop.times, " times in a row", of_all=True, trouble=trouble)
    calls = f"{loop.period} calls" if loop.period > 1 else f"call{'s' * (len(loop.tools) > 1)}"
    begin, trouble = f"the same {calls} of {', '.join(loop.tools)}", f"loop of {', '.join(sorted(loop.tools))}"
    return _Found(loop.rows[0], begin, loop.times, " times in a row", trouble=trouble)
