"""The checks of `credit doctor`: failure modes of teams and signs of reward hacking, each with a limit and a test."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from credit.doctor.ranked_verdicts import RankedVerdict, ranked_verdicts
from credit.doctor.team_work import TeamWork
from credit.doctor.verdict_errors import MOST_WRONG, VerdictErrors, verdict_errors
from credit.doctor.verdicts import FAILED_TRACES, NO_VERDICT, Suspicion, collusion, drift
from credit.reports.corpus import Survey, survey
from credit.reports.judged_traces import judged_traces
from credit.reports.missing_lines import lacking_traces
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import TraceMetric, of_whole_traces
from credit.reports.verdict_channels import verdict_channels
from estimators.base import Credit, Reason
from graphs.errors import CreditError, expect
from graphs.task_means import holm
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.batch_notes import OF_VERSIONS

__all__ = ["BEHAVIOUR", "CHECKS", "LEVEL", "Check", "Finding", "examine", "is_habit"]

LEVEL = 0.05
"""Chance of a report of all checks in which a test finds a fault and no fault is there."""

HEALTHY = 0.05
"""Part of the tasks of a healthy team that may exceed a limit: limits are set so that in worlds without a fault fewer
tasks do (`credit bench doctor`)."""

TIMES = 30.0
"""How many times the others' root mean square an advantage is from which it explodes."""

MOST = 0.5
"""Part of the groups that may teach nothing."""

FEWEST = 8  # traces of other groups, for their root mean square


@dataclasses.dataclass(frozen=True)
class Check:
    """One row of the table of checks.

    Attributes:
      measures: the statistic, in words.
      limit: of the number of a task, or of the batch, above which it shows the fault; None where the test needs none.
      advice: what to do where the fault is found.
    """

    measures: str
    limit: float | None
    advice: str


@dataclasses.dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
      check: a name of `CHECKS`.
      found: whether the fault was found; None where the log does not tell.
      statistic: of behaviour the part of tasks above the check's limit, else the number of the batch; None where there
        is none.
      limit: the fault is found where the statistic is above it; None where p alone decides, or nothing does. Of
        behaviour it is the greatest part for which the test finds nothing.
      mean: of behaviour, the mean over tasks of what is measured; None of others.
      shown, tasks: how many tasks, groups or traces show it, and of how many.
      p: of the test, by Holm's method for all checks of the report; None where there is no test.
      traces: ids of traces that show it, or names of groups, the clearest first.
      words: what was found, or why the log does not tell.
      alone: of behaviour, how many traces show it by themselves: are above the check's limit, or have any loop.
    """

    check: str
    found: bool | None
    statistic: float | None
    limit: float | None
    mean: float | None
    shown: int
    tasks: int
    p: float | None
    traces: tuple[str, ...]
    words: str
    alone: int = 0

    @property
    def verdict(self) -> str:
        """The finding in a word or two; of a fault that only single traces show, the number of these traces."""
        if self.found is None:
            return "cannot tell"
        single = f"in {counted(self.alone, 'trace')}" if self.alone else "not found"
        return "found" if self.found else single

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs, with the row of `CHECKS`, whose limit is `task_limit`."""
        row = dataclasses.asdict(CHECKS[self.check])
        return dataclasses.asdict(self) | {"task_limit": row.pop("limit"), "verdict": self.verdict} | row


CHECKS: Mapping[str, Check] = {
    "serial_collapse": Check(
        "turns of sub-agents that wait for the one before / neighbouring turns of sub-agents of one agent",
        0.75,
        "start sub-agents together where none needs the answer of another; a pipeline by design is no fault. When "
        "training: reward parallelism, or a shorter critical path, beside the outcome",
    ),
    "dominant_agent": Check(
        "greatest share of actions of one agent, 0 if all are equal and 1 if it acts alone",
        0.7,
        "give the others work of their own, or drop them. When training: pay agents for their own part (agent-wise "
        "baselines, shapley)",
    ),
    "free_riding": Check(
        "agents that the last action does not depend on, or that only repeat others / agents",
        0.1,
        "do not start these, or have the last agent read what they found. When training: pay by difference rewards",
    ),
    "pseudo_parallelism": Check(
        "pairs of sub-agents that were to run at once and did not / those that were to",
        0.6,
        "look at the runtime: workers, rate limits, locks; a pipeline by design is no fault, and a log whose edges "
        "lack an order does not show what could run at once",
    ),
    "duplicated_work": Check(
        "messages and calls of sub-agents that a sibling has, too / all of theirs",
        0.35,
        "split the task before starting sub-agents, and tell each its part. When training: pay for what is new",
    ),
    "communication_padding": Check(
        "messages that repeat an earlier one / messages",
        0.35,
        "tell agents to point to what was said, and not to repeat it. When training: put a price on tokens (a channel "
        "with a negative weight)",
    ),
    "tool_spam": Check(
        "calls in later rounds of a loop (the same calls and arguments in one order, 3 times in a row, but for "
        "retries) / calls",
        0.35,
        "see what the calls came back with, and stop an agent at the second equal one. When training: put a price on "
        "calls, and pay for outcomes and not for calls",
    ),
    "aggregation_leakage": Check(
        "aggregations that no work of another agent reached / aggregations",
        0.25,
        "hand the work to the agent that sums it up, and log what it read. When training: pay the aggregation against "
        "the best of its inputs",
    ),
    "verifier_drift": Check(
        "correlation of verdicts, at equal outcomes, with the rank of the policy's version",
        None,
        "judge old traces again with the verifier of today. When training: train on the outcome until both agree",
    ),
    "verifier_collusion": Check(
        "by how much the verdict on failed traces of a task is higher with an agent or a model",
        None,
        "let another model judge, without the name of the author",
    ),
    "verdict_disagreement": Check(
        "1 less by how much more of the succeeded traces than of the failed ones the verdict passes; 1 "
        "where it passes all, fails all or throws a coin",
        MOST_WRONG,
        "find out which of the two is right in the traces named, before acting or training on either",
    ),
    "idle_groups": Check(
        "groups that teach nothing / groups",
        MOST,
        "see `credit validate`: run these tasks more often, or change them. When training: drop them",
    ),
    "mixed_groups": Check(
        "groups of several models, systems or versions of the policy / groups",
        0.0,
        f"group by task, model and system, the default. When training on several versions: {OF_VERSIONS}",
    ),
    "exploding_advantages": Check(
        "greatest |advantage| of a trace / root mean square over traces of other groups",
        TIMES,
        "look at the outcome of these traces. When training: clip outcomes, or give the scale a floor",
    ),
}
"""Every check: what it measures, its limit, and what to do."""

BEHAVIOUR: Mapping[str, Callable[[TeamWork], TraceMetric]] = {
    "serial_collapse": TeamWork.serial_collapse,
    "dominant_agent": TeamWork.dominant_agent,
    "free_riding": TeamWork.free_riding,
    "pseudo_parallelism": TeamWork.pseudo_parallelism,
    "duplicated_work": TeamWork.duplicated_work,
    "communication_padding": TeamWork.communication_padding,
    "tool_spam": TeamWork.tool_spam,
    "aggregation_leakage": TeamWork.aggregation_leakage,
}


TESTS = len(BEHAVIOUR) + 2
"""Checks with a p: of behaviour, and two of verdicts."""


def examine(traces: Traces, credit: Credit | None = None, *, level: float = LEVEL) -> list[Finding]:
    """Every check of `CHECKS` on a batch, in that order.

    A task shows a fault of behaviour if the mean over its traces exceeds the limit: it is a habit of the team, and not
    of single traces, which `alone` counts. In healthy worlds at most 5 % of
    the tasks do. If k of G tasks show the fault, the exact test is p = P(Binomial(G, 0.05) ≥ k). Verdicts are tested by
    their correlation with time, and by permutation within tasks. P-values are corrected together by Holm's method:
    with a chance of at most `level` the tests find something in a team without faults. Where too few traces failed to
    see most drifts, a drift that is not found is no answer. No check of behaviour and of collusion has a trace that
    lacks lines, since these may be what it counts. The last four checks are facts of the log without a test:
    how often verdicts say otherwise than outcomes is surely above the limit; more than half of the groups teach
    nothing; a group is of several policies; an advantage is above its limit.

    Args:
      traces: what was read.
      credit: a method's result, for its advantages; None to leave that check out.
      level: of the corrected p-value, up to which a fault is found.

    Raises:
      CreditError: `credit` is of another batch, or `level` is not in (0, 1).

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], agent=["x", "y"], reward=[1.0, 0.0])
      >>> [finding.check for finding in examine(rows.traces) if finding.found is False]
      ['idle_groups', 'mixed_groups']
    """
    expect("traces", traces, Traces, "what credit.read returns")
    if not 0 < level < 1:
        raise CreditError(f"level is {level}; expected a number between 0 and 1")
    if credit is not None and credit.credit.shape != (traces.graph.num_events,):
        raise CreditError(f"credit has shape {credit.credit.shape}; expected ({traces.graph.num_events},)")
    work, found, task = TeamWork(traces), survey(traces), task_ids(traces)
    lacking = lacking_traces(traces)
    numbers = {name: of_whole_traces(number(work), lacking) for name, number in BEHAVIOUR.items()}
    tested = [_of_behaviour(traces, task, name, number) for name, number in numbers.items()]
    drifts = drift(traces)
    tested += [_of_verdicts(traces, "verifier_drift", drifts)]
    tested += [_of_verdicts(traces, "verifier_collusion", collusion(traces))]
    chances = [math.nan if finding.p is None else finding.p for finding in tested]
    judged = [
        _judged(finding, p, level, _allowed(chances, i, level))
        for i, (finding, p) in enumerate(zip(tested, holm(chances), strict=True))
    ]
    if drifts.least < FAILED_TRACES:
        judged = [
            _unseen(finding, drifts.least) if finding.check == "verifier_drift" else finding for finding in judged
        ]
    return [*judged, _disagreeing(traces), _idle(traces, found), _mixed(traces, found), _exploding(traces, credit)]


def is_habit(traces: Traces, check: str, number: TraceMetric) -> bool:
    """Whether one check of `BEHAVIOUR` finds its fault, as strictly as if all checks were to be corrected for.

    Args:
      traces: what was read.
      check: its name.
      number: of each trace.
    """
    number = of_whole_traces(number, lacking_traces(traces))
    p = _of_behaviour(traces, task_ids(traces), check, number).p
    return p is not None and p * TESTS <= LEVEL


def _allowed(p_values: list[float], which: int, level: float) -> float:
    """The greatest uncorrected p-value up to which a test is found by Holm's method, whatever its own is."""
    others = sorted(p for i, p in enumerate(p_values) if i != which and not math.isnan(p))
    left = len(others) + 1
    for p in others:
        if p * left > level:
            break
        left -= 1
    return level / left


def _judged(finding: Finding, p: float, level: float, allowed: float) -> Finding:
    """The finding with its corrected p-value; no answer where even a fault of all its tasks would not be found."""
    if finding.p is None:
        return finding
    if finding.check not in BEHAVIOUR:
        return dataclasses.replace(finding, p=p, found=p <= level)
    if HEALTHY**finding.tasks > level / TESTS:
        return dataclasses.replace(finding, words=f"{finding.words}; that is too few tasks for a test", p=None)
    from scipy.special import bdtrc  # comes with JAX; slow to import

    more = bdtrc(np.arange(finding.tasks), finding.tasks, HEALTHY)  # the chance of more than 0, 1, ... tasks
    most = int(np.argmax(more <= allowed))
    return dataclasses.replace(finding, p=p, found=finding.shown > most, limit=most / finding.tasks)


def _unseen(finding: Finding, traces: int) -> Finding:
    """No answer in place of "no drift" where one would often be missed."""
    if finding.found is not False:
        return finding
    of_kind = f"{counted(traces, 'trace')} of one kind, failed or not"
    words = f"none found in {of_kind}, and fewer than {FAILED_TRACES} often hide one"
    return dataclasses.replace(finding, found=None, words=words)


def _unknown(check: str, words: str) -> Finding:
    return Finding(check, None, None, None, None, 0, 0, None, (), words)


def _of_behaviour(traces: Traces, task: np.ndarray, check: str, number: TraceMetric) -> Finding:
    from scipy.special import bdtrc  # comes with JAX; slow to import

    limit = CHECKS[check].limit or 0.0
    known = np.isfinite(number.value)
    if not known.any():
        why = collections.Counter(filter(None, number.reasons)).most_common()
        alone = len(why) == 1
        return _unknown(check, "; ".join(words if alone else f"{words} ({counted(k, 'trace')})" for words, k in why))
    of_task = np.unique(task[known], return_inverse=True)[1]
    means = np.bincount(of_task, number.value[known]) / np.bincount(of_task)
    shown, tasks = int(np.sum(means > limit)), len(means)
    rows = np.flatnonzero(known & (np.nan_to_num(number.value) > (0.0 if check == "tool_spam" else limit)))
    rows = rows[np.argsort(-number.value[rows], kind="stable")]
    p = float(bdtrc(shown - 1, tasks, HEALTHY)) if shown else 1.0
    mean = float(means.mean())
    some = f" of {known.sum()} of {counted(len(known), 'trace')}, which have a number" if not known.all() else ""
    words = f"{shown} of {counted(tasks, 'task')} above {limit:g}, {mean:.3g} on average{some}"
    judged, shows = judged_traces(traces), np.isin(np.arange(len(known)), rows)
    if judged.both and shows.any():
        of_kinds = ((judged.failed | judged.succeeded) & of for of in (shows, known & ~shows))
        counts = [f"{(judged.failed & of).sum()} of {of.sum()}" for of in of_kinds if of.any()]
        if len(counts) == 2:
            words += f"; {counts[0]} traces that show it failed, and {counts[1]} others"
    return Finding(check, None, shown / tasks, None, mean, shown, tasks, p, _ids(traces, rows), words, len(rows))


def _of_verdicts(traces: Traces, check: str, suspicion: Suspicion) -> Finding:
    if math.isnan(suspicion.p):
        return _unknown(check, suspicion.words)
    ids = _ids(traces, suspicion.rows)
    tasks = suspicion.tasks
    return Finding(check, None, suspicion.statistic, None, None, tasks, tasks, suspicion.p, ids, suspicion.words)


def _disagreeing(traces: Traces) -> Finding:
    """The verdict that surely says little, of all traces or of a system, with any other that does; else one of which
    traces do not tell; of several verdicts of two values the one that is surely wrong most often."""
    told = [_wrong(traces, one) for one in verdict_errors(traces)]
    told += [_misled(traces, one) for one in ranked_verdicts(traces)]
    if not told:
        some = bool(verdict_channels(traces))
        why = "outcomes are not of just two values, and both" if some else NO_VERDICT
        return _unknown("verdict_disagreement", why)
    first = min(told, key=lambda one: (True, None, False).index(one.found))
    more = [one.words for one in told if one.found and one is not first]
    return dataclasses.replace(first, words=". ".join([first.words, *more]))


def _wrong(traces: Traces, one: VerdictErrors) -> Finding:
    worst = one.worst
    both, wrong = worst.both, worst.rows[worst.wrong]
    share, of = None if math.isnan(both.share) else both.share, (len(wrong), len(worst.rows))
    ids = _ids(traces, wrong)
    return Finding("verdict_disagreement", one.found, share, MOST_WRONG, None, *of, None, ids, one.told())


def _misled(traces: Traces, one: RankedVerdict) -> Finding:
    of, ids = (len(one.misled), one.failed), _ids(traces, one.misled)
    wrong = 2 * (1 - one.chance)
    return Finding("verdict_disagreement", one.found, wrong, MOST_WRONG, None, *of, None, ids, one.of_all())


def _idle(traces: Traces, found: Survey) -> Finding:
    """Groups that teach nothing, and why; where some traces have no outcome and the log is not of training, of those
    with two or more that have one: people label few."""
    if len(found.unscored) == found.traces:
        return _unknown("idle_groups", "no trace has an outcome")
    if max(found.group_sizes) == 1:
        return _unknown("idle_groups", "each trace is alone: no two are runs of one task under one policy")
    why = {
        "outcomes are equal": tuple(name for name in found.equal if name not in found.unresolved),
        **{
            reason: tuple(name for name, why in found.unresolved.items() if why == reason)
            for reason in dict.fromkeys(found.unresolved.values())
        },
        "one trace alone": found.singletons,
        "fewer than two traces with an outcome": found.unscored_groups,
    }
    groups = found.groups
    if found.unscored and traces.tokens is None and "policy_version" not in traces.evidence:
        why.pop("one trace alone"), why.pop("fewer than two traces with an outcome")
        groups = found.teaching + len(found.equal)
        if not groups:
            return _unknown("idle_groups", "no two runs of one task under one policy have an outcome")
    names = [name for group in why.values() for name in group]
    parts = [f"{reason} in {len(group)}" for reason, group in why.items() if group]
    words = f"{len(names)} of {counted(groups, 'group')}" + (f": {', '.join(parts)}" if parts else "")
    part = len(names) / groups
    return Finding("idle_groups", part > MOST, part, MOST, None, len(names), groups, None, tuple(names), words)


def _mixed(traces: Traces, found: Survey) -> Finding:
    """Groups of several policies, as the log states them."""
    mixtures = {name: " and ".join(policies) for name, policies in found.mixed.items()}
    stated = traces.evidence.get("policy_version")
    versions: dict[str, set[int]] = {}
    if stated is not None:
        scored = np.isfinite(np.asarray(traces.reward)[: found.traces])
        compared = (scored | ~scored.any()).tolist()
        names = itertools.compress(traces.traces["group"].to_pylist(), compared)
        for name, version in zip(names, itertools.compress(stated.listed(0, found.traces), compared), strict=True):
            if version is not None:
                versions.setdefault(name, set()).add(int(version))
    for name, numbers in versions.items():
        if len(numbers) > 1:
            mixtures.setdefault(name, f"policy versions {', '.join(map(str, sorted(numbers)))}")
    example = next((f": {name} has {policies}" for name, policies in mixtures.items()), "")
    words = f"{len(mixtures)} of {counted(found.groups, 'group')}{example}"
    part = len(mixtures) / found.groups
    of = len(mixtures), found.groups
    return Finding("mixed_groups", part > 0, part, 0.0, None, *of, None, tuple(mixtures), words)


def _exploding(traces: Traces, credit: Credit | None) -> Finding:
    """Traces whose advantages are far above those of the other groups."""
    check = "exploding_advantages"
    if credit is None:
        return _unknown(check, "no trace has an outcome, so there are no advantages")
    graph, n, m = traces.graph, traces.sizes.events, traces.sizes.traces
    valid, greatest = np.flatnonzero(np.asarray(credit.reason)[:n] == Reason.VALID), np.zeros(m)
    trace = np.asarray(graph.trace_ids)[valid].astype(np.intp)
    np.maximum.at(greatest, trace, np.abs(np.asarray(credit.advantage)[valid].astype(np.float64)))
    known = np.bincount(trace, minlength=m) > 0
    group = np.asarray(graph.group_ids)[:m]
    # The root mean square of the other groups' traces: sums over all groups, less the own one.
    squares, sizes = np.bincount(group, greatest**2), np.bincount(group, known)
    others, count = squares.sum() - squares[group], sizes.sum() - sizes[group]
    comparable = known & (count >= FEWEST) & (others > 0)
    if not comparable.any():
        return _unknown(check, f"fewer than {FEWEST} traces of other groups have an advantage that is not 0")
    ratio = np.where(comparable, greatest / np.sqrt(np.where(comparable, others / np.maximum(count, 1), 1)), 0)
    rows = np.flatnonzero(ratio > TIMES)
    rows = rows[np.argsort(-ratio[rows], kind="stable")]
    words = f"{len(rows)} of {counted(int(comparable.sum()), 'trace')} above {TIMES:g}"
    total = int(comparable.sum())
    most, of = float(ratio.max()), (len(rows), total)
    return Finding(check, most > TIMES, most, TIMES, None, *of, None, _ids(traces, rows), words)


def _ids(traces: Traces, rows: np.ndarray) -> tuple[str, ...]:
    names: tuple[str, ...] = tuple(traces.traces["trace"].take(rows).to_pylist())
    return names
