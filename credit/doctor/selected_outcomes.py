"""Whether traces with an outcome differ from those without: a failure rate is of the former alone then.

People rate few runs, and more often those that failed. What all traces have says so: a judge's verdict, length, cost,
kind of task and system.

Reference: Heckman 1979, Sample selection bias as a specification error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from credit.doctor.prevalence import corrected_rate
from credit.doctor.verdict_channels import (
    outcome_name,
    reference_channel,
    said_yes,
    verdict_channels,
    with_outcomes,
)
from credit.metrics.event_costs import Prices, is_priced
from credit.metrics.part_costs import COST_WORDS, PAID_IN
from credit.metrics.success_costs import known_costs
from credit.reports.chosen_numbers import LACK
from credit.reports.judged_traces import judged_traces, rate_with_interval
from credit.reports.missing_lines import lacking_traces
from credit.reports.ranks import mean_ranks
from credit.reports.refused_traces import RefusedTraces
from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from graphs.dealing import Dealt, dealt
from graphs.task_means import LEAST_TASKS, LEVEL, fact_of, holm
from graphs.text import amount, apart, part_of, percent, printable
from graphs.traces.batch import Traces

__all__ = ["corrected_failures", "deciding_verdict", "selected_outcomes"]

MOST = 3
"""Facts that are named."""


class _Fact(NamedTuple):
    """What all traces have: float [traces], NaN where one has none. A verdict has the name of its channel."""

    name: str
    value: np.ndarray
    is_verdict: bool = False

    @property
    def tells_rates(self) -> bool:
        """Whether it is a verdict of two values."""
        return self.is_verdict and self.is_part

    @property
    def is_part(self) -> bool:
        """Whether it is of a trace or not."""
        return bool(np.isin(self.value[np.isfinite(self.value)], (0.0, 1.0)).all())


def selected_outcomes(traces: Traces, success_at: float | None = None, prices: Prices | None = None) -> list[str]:
    """In what traces with an outcome differ beyond chance from those without, of what nearly all have (`LACK`), in
    sentences.

    Where a verdict of two values does, `corrected_rate` tells how many of all failed.

    The test is that of ranks: outcomes might have been dealt to other traces of a task that has both kinds, and to
    other tasks of those with one kind, each with the mean of its traces (`graphs.dealing`). Half of the level is that
    of verdicts, half that of what else is looked at, each by Holm's method. It takes `LEAST_TASKS` traces of either.

    Args:
      traces: what was read.
      success_at: the least outcome of a success, as of `judged_traces`.
      prices: of models and tools.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "r"], trace=["a", "b"], reward=[1.0, 0.0])
      >>> selected_outcomes(rows.traces)
      []
    """
    known, task = np.isfinite(_outcome(traces)), task_ids(traces)
    if not (found := _differing(traces, known, prices)):
        return []
    told = "; ".join(_with_and_without(fact, known, task) for fact in found[:MOST])
    lines = [f"They differ from those without one beyond chance: {told}.", "The rate above is of the former."]
    judged = judged_traces(traces, success_at)
    if not found[0].tells_rates or judged.graded:
        return lines
    rate = _by_verdict(judged.failed, known, found[0], task, printable(outcome_name(traces), 60))
    return [*lines, f"{rate}."] if rate else lines


def deciding_verdict(traces: Traces) -> tuple[str, np.ndarray] | None:
    """The verdict of two values that decides which traces have an outcome, and what it says of each, 0 or 1, NaN
    without one; None where these do not differ in any from others beyond chance (`selected_outcomes`).

    Args:
      traces: what was read.
    """
    sure = _sure(
        [fact for fact in _facts(traces, None) if fact.is_verdict], np.isfinite(_outcome(traces)), task_ids(traces)
    )
    return (sure[0].name, sure[0].value) if sure and sure[0].tells_rates else None


def _by_verdict(failed: np.ndarray, known: np.ndarray, verdict: _Fact, task: np.ndarray, given: str) -> str:
    """How many of all with this verdict failed; "" with few of either."""
    has = np.isfinite(verdict.value)
    if (rate := corrected_rate(failed[has], known[has], verdict.value[has], task[has])) is None:
        return ""
    told = f"{rate_with_interval(*rate[:3])} of all {has.sum()} failed"
    return f"If {given} was given by chance, or for what {verdict.name} says, {told}"


def corrected_failures(
    traces: Traces,
    success_at: float | None = None,
    prices: Prices | None = None,
    side: np.ndarray | None = None,
    heads: Sequence[str] = (),
) -> list[str]:
    """How many of all traces failed, of a judge on most and a reference on some, by `corrected_rate`, in sentences;
    none without both.

    The reference is that of `reference_channel`, else the outcome, and its judge the verdict of two values that most
    traces without an outcome have.

    Args:
      traces: what was read.
      success_at, prices: as of `selected_outcomes`, which tells the rate where a verdict differs.
      side: of each trace, a place in `heads`, or none of them, whose rates are corrected apart: int [traces].
      heads: names of sides.
    """
    against, outcome, channels = reference_channel(traces), _outcome(traces), verdict_channels(traces)
    judged, known = judged_traces(traces, success_at), np.isfinite(outcome)
    if judged.graded and not against:
        return []
    failed, passes, judge = judged.failed, np.where(known, judged.succeeded, np.nan), outcome_name(traces)
    if against:
        outcome = channels[against].astype(np.float64)
        known = np.isfinite(outcome)
        failed = np.zeros(len(known), bool)
        failed[known] = ~np.asarray(said_yes(outcome[known]))
    else:
        more = {name: int((np.isfinite(number) & ~known).sum()) for name, number in channels.items()}
        judge = max(more, key=more.__getitem__, default="")
        if not judge or more[judge] < LEAST_TASKS:
            return []
        if (facts := _differing(traces, known, prices)) and facts[0].tells_rates:
            return []
        has = np.isfinite(channels[judge])
        if (yes := said_yes(channels[judge][has])) is None:
            return []
        passes = np.full(len(known), np.nan)
        passes[has] = yes
    name, judge = printable(against, 60), printable(judge, 60)
    said = f"By {name} {part_of(int(failed.sum()), int(known.sum()))} failed"
    if judged.graded:
        loose = f"Grades of {judge} do not correct this rate: `--success-at`, the least grade that passes, does."
        return [f"{said}.", loose, "A judge that changed may look like runs that did."]
    found = corrected_rate(failed, known, passes, task_ids(traces))
    if found is None:
        return [f"{said}: too few to correct the rate by."] if against else []
    read = " that were read" * (RefusedTraces.of(traces).traces > 0)
    of = f"all {found.traces}{read}" if found.whole else f"the {found.traces} that {judge} judged"
    rate = f"{rate_with_interval(*found[:3])} of {of} failed"
    if not against:
        alike = ", and if these are like them" * bool(facts)
        return [f"With what {judge} says of the others{alike}, {rate}."]
    chosen, task = _differing(with_outcomes(traces, outcome), known, prices)[:1], task_ids(traces)
    but = "".join(f"beyond chance: {_with_and_without(one, known, task)}" for one in chosen)
    sure = "Corrected by these" if against in traces.by_people else "If these are right"
    if chosen and chosen[0].tells_rates and (by := _by_verdict(failed, known, chosen[0], task, name)):
        return [f"{said}.", f"These differ from others {but}.", f"{sure}: {by[0].lower()}{by[1:]}."]
    lines = [f"{said}.", f"{sure}, {rate}{', if others are like these, which differ ' * bool(but)}{but}."]
    each = []
    for head, of in ((head, np.asarray(side) == i) for i, head in enumerate(heads if not but else ())):
        if found := corrected_rate(failed[of], known[of], passes[of], task_ids(traces)[of]):
            each.append(f"{printable(head, 60)} {rate_with_interval(*found[:3])}")
    why = "not tested, since the sides are not held to the same tasks"
    return [*lines, *[f"{sure}, by side: {', '.join(each)}; {why}."] * (len(each) > 1)]


def _outcome(traces: Traces) -> np.ndarray:
    return np.asarray(traces.reward, np.float64)[: traces.sizes.traces]


def _differing(traces: Traces, known: np.ndarray, prices: Prices | None) -> list[_Fact]:
    """In what traces with an outcome differ beyond chance from those without, the surest first."""
    facts, task = [*_facts(traces, prices)], task_ids(traces)
    families = ([one for one in facts if one.is_verdict is verdict] for verdict in (True, False))
    return [one for family in families for one in _sure(family, known, task)]


def _sure(family: Sequence[_Fact], known: np.ndarray, task: np.ndarray) -> list[_Fact]:
    """The same of one family of tests."""
    if min(known.sum(), (~known).sum()) < LEAST_TASKS:
        return []
    family = [fact for fact in family if _is_told(fact.value, known)]
    tests = [_dealt(one.value, known, task) for one in family]
    sure = holm([p for p, _ in tests], [fact_of(one.value) for one in family], [least for _, least in tests])
    return [family[i] for i in np.argsort(sure, kind="stable").tolist() if sure[i] < LEVEL / 2]


def _facts(traces: Traces, prices: Prices | None) -> Iterator[_Fact]:
    m, lacking = traces.sizes.traces, lacking_traces(traces)
    for name, number in verdict_channels(traces).items():
        has, value = np.isfinite(number), number.astype(np.float64)
        if has.any() and (yes := said_yes(value[has])) is not None:
            value[has] = yes
        yield _Fact(printable(name, 60), value, True)
    events = np.bincount(np.asarray(traces.graph.trace_ids)[: traces.sizes.events], minlength=m)
    yield _Fact("events", np.where(lacking, np.nan, events))
    for metric in PAID_IN:
        if metric == "money" and (prices is None or not is_priced(traces, prices)):
            continue
        paid, whole = known_costs(traces, metric, prices)
        if paid.sum() > 0:
            yield _Fact(COST_WORDS[metric], np.where(whole, paid, np.nan))
            break
    kinds, kind = task_kinds(traces)
    yield from (_Fact(f"tasks of {printable(name, 40)}", (kind == i) * 1.0) for i, name in enumerate(kinds))
    stated = np.array([name or "" for name in traces.traces["system"].to_pylist()], object)
    for name in sorted({*stated.tolist()} - {""}):
        yield _Fact(f"system {printable(name, 40)}", np.where(stated == "", np.nan, stated == name))


def _is_told(value: np.ndarray, known: np.ndarray) -> bool:
    """Whether nearly all traces with an outcome, and without, have it, and some differ."""
    has = np.isfinite(value)
    return all(has[of].mean() >= 1 - LACK for of in (known, ~known)) and float(np.ptp(value[has])) > 0


def _compared(value: np.ndarray, known: np.ndarray, task: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is compared of traces with an outcome and without, which have one, and within what: each trace of a task
    with both kinds, within it, and the mean of every other task."""
    has = np.isfinite(value)
    _, of = np.unique(task[has], return_inverse=True)
    number, chosen, size = value[has], known[has], np.bincount(of)
    some = np.bincount(of, chosen)
    mixed = (some > 0) & (some < size)
    inside = mixed[of]
    numbers = np.concatenate([number[inside], (np.bincount(of, number) / size)[~mixed]])
    strata = np.concatenate([of[inside] + 1, np.zeros(int((~mixed).sum()), np.int64)])
    return numbers, np.concatenate([chosen[inside], some[~mixed] > 0]), strata


def _dealt(value: np.ndarray, known: np.ndarray, task: np.ndarray) -> Dealt:
    has = np.isfinite(value)
    return dealt(*_compared(mean_ranks(value[has]), known[has], task[has]))


def _with_and_without(fact: _Fact, known: np.ndarray, task: np.ndarray) -> str:
    """What traces with an outcome have, and those without, weighted as they were tested."""
    number, chosen, stratum = _compared(fact.value, known, task)
    n, m = (np.bincount(stratum, kind) for kind in (chosen, ~chosen))
    weight = n * m / np.maximum(n + m, 1)
    means = [
        float((weight * np.bincount(stratum, number * kind) / np.maximum(many, 1)).sum() / weight.sum())
        for kind, many in ((chosen, n), (~chosen, m))
    ]
    within = " within tasks" * bool(weight[1:].sum() > 0)
    if fact.is_part and not within:
        kinds = [fact.value[of & np.isfinite(fact.value)] for of in (known, ~known)]
        parts = [part_of(int(of.sum()), len(of)) for of in kinds]
    else:
        parts = apart(means, percent if fact.is_part else amount, 0 if fact.is_part else 3)
    return f"{fact.name}{' passes' * fact.tells_rates} {' and '.join(parts)}{within}"
