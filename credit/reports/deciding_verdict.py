"""The verdict that decides which traces have an outcome: people look at what a judge rejects more than at the rest.

Reference: Heckman 1979, Sample selection bias as a specification error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from credit.reports.chosen_numbers import LACK
from credit.reports.prevalence import LEAST_LOOKED
from credit.reports.ranks import mean_ranks
from credit.reports.tasks import task_ids
from credit.reports.verdict_channels import said_yes, verdict_channels
from graphs.dealing import Dealt, dealt
from graphs.distinct_columns import distinct_columns
from graphs.task_means import LEAST_TASKS, LEVEL, fact_of, holm
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = [
    "Fact",
    "compared_facts",
    "deciding_verdict",
    "on_part",
    "outcomes",
    "stands_for",
    "sure_facts",
    "verdict_facts",
    "with_second",
]

GRADES = 10
"""Classes of a verdict of many values, of as many traces with an outcome each, at least `LEAST_LOOKED`."""
LEAST_JUDGED = 0.25
"""Part of traces with an outcome, and of those without, that a verdict is on if it may decide which is which: where it
had to be 0.9, a judge on 85 % of traces decided unseen, and 41 % "of all" failed of 27 %."""
LEAST_OF_SECOND = 4
"""Known outcomes of each value of a verdict that stands for traces without the first."""


class Fact(NamedTuple):
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


def verdict_facts(traces: Traces) -> Iterator[Fact]:
    """Each verdict, of two values as 0 and 1.

    Args:
      traces: what was read.
    """
    for name, number in verdict_channels(traces).items():
        has, value = np.isfinite(number), number.astype(np.float64)
        if has.any() and (yes := said_yes(value[has])) is not None:
            value[has] = yes
        yield Fact(printable(name, 60), value, True)


def deciding_verdict(traces: Traces) -> tuple[str, np.ndarray] | None:
    """The verdict of two values that decides which traces have an outcome, and what it says of each, 0 or 1, NaN
    without one; None where these do not differ in any from others beyond chance (`selected_outcomes`).

    Args:
      traces: what was read.
    """
    fact = _deciding(traces)
    return None if fact is None or not fact.tells_rates else (fact.name, fact.value)


def on_part(passes: np.ndarray) -> str:
    """On how many traces a verdict is, where more than `LACK` have none; "" elsewhere.

    Args:
      passes: what it says of each, NaN without one: float [traces].

    Examples:
      >>> on_part(np.array([1.0, 0.0, np.nan]))
      ' (on 2 of 3 traces)'
    """
    some, every = int(np.isfinite(passes).sum()), len(passes)
    return f" (on {some} of {every} traces)" * (some < (1 - LACK) * every)


def _deciding(traces: Traces) -> Fact | None:
    sure = sure_facts([*verdict_facts(traces)], np.isfinite(outcomes(traces)), task_ids(traces))
    return sure[0] if sure else None


def stands_for(traces: Traces) -> tuple[str, np.ndarray] | None:
    """The verdict that decides which traces have an outcome, and of each that has one how many of its verdict it stands
    for, within its system where enough are known; NaN without an outcome. Grades have up to `GRADES` classes.

    None where none decides, or of one verdict, or a fifth by grades, none has an outcome: those with one are of the
    others. NaN of all where fewer than `LEAST_LOOKED` of a verdict have.

    Args:
      traces: what was read.
    """
    if (fact := _deciding(traces)) is None:
        return None
    known, has, tried = np.isfinite(outcomes(traces)), np.isfinite(fact.value), [fact.value]
    asked = np.nan_to_num(fact.value).astype(np.int64) if fact.is_part else _classes(fact.value, has, 5)
    if not np.bincount(np.unique(asked[has], return_inverse=True)[1], known[has]).all():
        return None
    if not fact.is_part:
        tried = [_classes(fact.value, has & known, n) for n in range(GRADES, 1, -1)]
    system = np.unique([name or "" for name in traces.traces["system"].to_pylist()], return_inverse=True)[1]
    for of in (np.where(has, one, -1) for one in tried):
        for classes in (distinct_columns(of, system).of, distinct_columns(of).of):
            every, some, lacks = np.bincount(classes), np.bincount(classes, known), np.bincount(classes, ~has) > 0
            if ((some >= LEAST_LOOKED) | (some == every) | lacks).all():
                return fact.name, np.where(known, (every / np.maximum(some, 1))[classes], np.nan)
    return fact.name, np.full(len(known), np.nan)


def _classes(value: np.ndarray, its: np.ndarray, number: int) -> np.ndarray:
    """The class of each value, of which each has about as many of `its`: int [n]."""
    return np.searchsorted(np.unique(np.quantile(value[its], np.arange(1, number) / number)), value, side="right")


def outcomes(traces: Traces) -> np.ndarray:
    """The outcome of each trace, NaN without one: float64 [traces].

    Args:
      traces: what was read.
    """
    return np.asarray(traces.reward, np.float64)[: traces.sizes.traces]


def with_second(first: Fact, traces: Traces, known: np.ndarray) -> Fact:
    """A verdict, and of traces without it another, as 3 and 4: that in which those with an outcome differ most there.

    Without, a check on half of the traces and labels chosen by a judge told 41 % of all for 27 %.

    Args:
      first: a verdict of two values.
      traces: what was read, with the outcomes that are weighted.
      known: whether a trace has one: bool [traces].
    """
    rest = np.isnan(first.value)
    family = [one._replace(value=one.value[rest]) for one in verdict_facts(traces) if one.name != first.name]
    family = [one for one in family if one.tells_rates]
    found = sure_facts(family, known[rest], task_ids(traces)[rest], np.inf)
    for one in found:
        has = np.isfinite(one.value)
        if (np.bincount(one.value[has & known[rest]].astype(np.int64), minlength=2) >= LEAST_OF_SECOND).all():
            value = first.value.copy()
            value[rest] = one.value + 3
            return Fact(f"{first.name} or {one.name}", value, True)
    return first


def sure_facts(family: Sequence[Fact], known: np.ndarray, task: np.ndarray, level: float = LEVEL / 2) -> list[Fact]:
    """Those in which traces with an outcome differ beyond chance from those without, the surest first.

    Args:
      family: of one family of tests.
      known: whether a trace has an outcome: bool [traces].
      task: of each: int [traces].
    """
    if min(known.sum(), (~known).sum()) < LEAST_TASKS:
        return []
    family = [fact for fact in family if _is_told(fact, known)]
    tests = [_dealt(one.value, known, task) for one in family]
    sure = holm([p for p, _ in tests], [fact_of(one.value) for one in family], [least for _, least in tests])
    return [family[i] for i in np.argsort(sure, kind="stable").tolist() if sure[i] < level]


def _is_told(fact: Fact, known: np.ndarray) -> bool:
    """Whether enough traces with an outcome, and without, have it, and some differ."""
    has, least = np.isfinite(fact.value), LEAST_JUDGED if fact.is_verdict else 1 - LACK
    return all(has[of].mean() >= least for of in (known, ~known)) and float(np.ptp(fact.value[has])) > 0


def compared_facts(value: np.ndarray, known: np.ndarray, task: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    return dealt(*compared_facts(mean_ranks(value[has]), known[has], task[has]))
