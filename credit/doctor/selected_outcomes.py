"""Whether traces with an outcome differ from those without: a failure rate is of the former alone then.

People rate few runs, and more often those that failed. What all traces have says so: a judge's verdict, length, cost,
kind of task and system.

Reference: Heckman 1979, Sample selection bias as a specification error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from credit.metrics.event_costs import Prices, is_priced
from credit.metrics.part_costs import COST_WORDS, PAID_IN
from credit.metrics.success_costs import known_costs
from credit.reports.deciding_verdict import (
    Fact,
    compared_facts,
    outcomes,
    stands_for,
    sure_facts,
    verdict_facts,
    with_second,
)
from credit.reports.judged_traces import judged_traces, rate_with_interval
from credit.reports.missing_lines import lacking_traces
from credit.reports.prevalence import Corrected, corrected_rate
from credit.reports.refused_traces import RefusedTraces
from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.verdict_channels import (
    PEOPLE,
    held_against,
    of_one_source,
    outcome_name,
    people_channels,
    said_yes,
    with_outcomes,
)
from graphs.task_means import LEAST_TASKS
from graphs.text import amount, apart, part_of, percent, printable
from graphs.traces.batch import Traces

__all__ = ["corrected_failures", "selected_outcomes"]

MOST = 3
"""Facts that are named."""
LABELS = f"{PEOPLE}'s labels"
"""What `PEOPLE` gave."""


def selected_outcomes(traces: Traces, success_at: float | None = None, prices: Prices | None = None) -> list[str]:
    """In what traces with an outcome differ beyond chance from those without, of what nearly all have (`LACK`), or
    of a verdict of some (`LEAST_JUDGED`), in sentences.

    Where a verdict of two values does, `corrected_rate` tells how many of all failed; not of an outcome that a
    reference corrects (`corrected_failures`), which may fail others.

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
    traces = of_one_source(traces)
    known, task = np.isfinite(outcomes(traces)), task_ids(traces)
    if not (found := _differing(traces, known, prices)):
        return []
    told = "; ".join(_with_and_without(fact, known, task) for fact in found[:MOST])
    against = held_against(traces, success_at)[2]
    lines = [f"They differ from those without one beyond chance: {told}."]
    lines += [] if against else ["The rate above is of the former."]
    if (decides := stands_for(traces)) is not None and np.isnan(decides[1]).all():
        lines.append(f"Of one verdict of {decides[0]} too few have an outcome to tell causes.")
    judged = judged_traces(traces, success_at)
    if not found[0].tells_rates or judged.graded or against:
        return lines
    weighted = _Weighted.of(traces, judged.failed, found[0], printable(outcome_name(traces), 60))
    rate = weighted.told()
    return [*lines, f"I{weighted.condition[1:]}{rate}."] if rate else lines


class _Weighted(NamedTuple):
    """What weights the known outcomes for all: a verdict, another of traces without it (`with_second`)."""

    traces: Traces
    failed: np.ndarray
    known: np.ndarray
    verdict: Fact
    condition: str

    @classmethod
    def of(cls, traces: Traces, failed: np.ndarray, verdict: Fact, given: str) -> _Weighted:
        """Of these outcomes. Nothing tells whether people chose failed runs of those that a judge does not tell apart:
        labels given to complaints first made 49 % of 35 %."""
        known = np.isfinite(outcomes(traces))
        verdict = with_second(verdict, traces, known)
        were = "were" if given == LABELS else "was"
        alike = f"if {given} {were} given by chance among runs that {verdict.name} judges alike, "
        return cls(traces, failed, known, verdict, alike)

    def rate(self, of: np.ndarray | slice = slice(None)) -> Corrected | None:
        """How many of these traces failed."""
        return corrected_rate(self.failed[of], self.known[of], self.verdict.value[of], task_ids(self.traces)[of])

    def told(self) -> str:
        """How many failed, and of which traces it is; "" with few."""
        if (rate := self.rate()) is None:
            return ""
        of = f"{rate.traces} that {self.verdict.name} judged"
        if rate.traces == self.traces.sizes.traces:
            of = f"all {rate.traces}{' that were read' * (RefusedTraces.of(self.traces).traces > 0)}"
        return f"{rate_with_interval(*rate[:3])} of {of} failed"


def corrected_failures(
    traces: Traces,
    success_at: float | None = None,
    prices: Prices | None = None,
    side: np.ndarray | None = None,
    heads: Sequence[str] = (),
) -> list[str]:
    """How many of all traces failed, of a judge on most and a reference on some, by `corrected_rate`, in sentences;
    none without both.

    The reference is that of `held_against`, else the outcome, and its judge the verdict of two values that most
    traces without an outcome have.

    Args:
      traces: what was read.
      success_at, prices: as of `selected_outcomes`, which tells the rate where a verdict differs.
      side: of each trace, a place in `heads`, or none of them, whose rates are corrected apart: int [traces].
      heads: names of sides.
    """
    channels, outcome, against, _, judged_by = held_against(traces, success_at)
    judged, known = judged_traces(with_outcomes(traces, judged_by), success_at), np.isfinite(judged_by)
    if judged.graded and not against:
        return []
    failed, passes, judge = judged.failed, np.where(known, judged.succeeded, np.nan), outcome_name(traces)
    if against:
        known, failed = np.isfinite(outcome), outcome == 0
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
    name = LABELS if against == PEOPLE else printable(against, 60)
    judge, task = printable(judge, 60), task_ids(traces)
    said = f"By {name} {part_of(int(failed.sum()), int(known.sum()))} failed"
    if judged.graded:
        loose = f"Grades of {judge} do not correct this rate: `--success-at`, the least grade that passes, does."
        return [f"{said}.", loose, "A judge that changed may look like runs that did."]
    verdict = Fact(judge, passes, True)
    if not against:
        weighted = _Weighted.of(traces, failed, verdict, printable(outcome_name(traces), 60))
        alike = "and if these are like them, " if facts else weighted.condition
        return [f"With what {judge} says of the others, {alike}{rate}."] if (rate := weighted.told()) else []
    held = with_outcomes(traces, outcome)
    chosen = _differing(held, known, prices)[:1]
    by_verdict = bool(chosen) and chosen[0].tells_rates
    weighted = _Weighted.of(held, failed, chosen[0] if by_verdict else verdict, name)
    if not (rate := weighted.told()):
        return [f"{said}: too few to correct the rate by."]
    differ = "".join(f"beyond chance: {_with_and_without(one, known, task)}" for one in chosen)
    sure = "Corrected by these" if against in people_channels(traces) | {PEOPLE} else "If these are right"
    if by_verdict:
        lines = [f"{said}.", f"{sure}, {weighted.condition}{rate}.", f"Traces with {name} differ from others {differ}."]
    else:
        alike = "" if differ else weighted.condition
        lines = [
            f"{said}.",
            f"{sure}, {alike}{rate}{f', if others are like these, which differ {differ}' * bool(differ)}.",
        ]
    each = []
    for head, of in ((head, np.asarray(side) == i) for i, head in enumerate(heads if by_verdict or not chosen else ())):
        if found := weighted.rate(of):
            each.append(f"{printable(head, 60)} {rate_with_interval(*found[:3])}")
    why = "not tested, since the sides are not held to the same tasks"
    by_side = f"{sure}, by side: {', '.join(each)}; {why}."
    return [*lines, *[by_side] * (len(each) > 1)]


def _differing(traces: Traces, known: np.ndarray, prices: Prices | None) -> list[Fact]:
    """In what traces with an outcome differ beyond chance from those without, the surest first."""
    facts, task = [*_facts(traces, prices)], task_ids(traces)
    families = ([one for one in facts if one.is_verdict is verdict] for verdict in (True, False))
    return [one for family in families for one in sure_facts(family, known, task)]


def _facts(traces: Traces, prices: Prices | None) -> Iterator[Fact]:
    m, lacking = traces.sizes.traces, lacking_traces(traces)
    yield from verdict_facts(traces)
    events = np.bincount(np.asarray(traces.graph.trace_ids)[: traces.sizes.events], minlength=m)
    yield Fact("events", np.where(lacking, np.nan, events))
    for metric in PAID_IN:
        if metric == "money" and (prices is None or not is_priced(traces, prices)):
            continue
        paid, whole = known_costs(traces, metric, prices)
        if paid.sum() > 0:
            yield Fact(COST_WORDS[metric], np.where(whole, paid, np.nan))
            break
    kinds, kind = task_kinds(traces)
    yield from (Fact(f"tasks of {printable(name, 40)}", (kind == i) * 1.0) for i, name in enumerate(kinds))
    stated = np.array([name or "" for name in traces.traces["system"].to_pylist()], object)
    for name in sorted({*stated.tolist()} - {""}):
        yield Fact(f"system {printable(name, 40)}", np.where(stated == "", np.nan, stated == name))


def _with_and_without(fact: Fact, known: np.ndarray, task: np.ndarray) -> str:
    """What traces with an outcome have, and those without, weighted as they were tested."""
    number, chosen, stratum = compared_facts(fact.value, known, task)
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
