"""The luck share: how much of the variance of outcomes remains once every decision is given, with an interval.

Traces of one task differ by what the team decided and by luck: what the environment and the scoring draw. Repeats of a
trace, its final state scored again or its last decision drawn again, differ by luck, and by that decision. With
y_gk repeat k of n_g of trace g, and G_i traces of task i, a one-way random effects model within tasks,

    y_gk = task + decisions_g + luck_gk,        φ = Var(luck) / (Var(decisions) + Var(luck))

so that 1 − φ is the intraclass correlation of traces. With s² the variances within traces and B that of their means,

    L = Σ_i (G_i − 1) mean_g s²_g         D = Σ_i (G_i − 1) (B_i − mean_g s²_g / n_g)         φ̂ = L / (L + D)

The interval is Student's on θ = ln (1 + ñ D / L), with ñ the harmonic mean of n_g: the logarithm of the ratio of mean
squares between and within, whose standard error is that of a jackknife (Arvesen 1969; Arvesen and Layard 1975). Unlike
that of F it needs no normal outcomes. Left out one by one are tasks, from `MANY` of them on, else traces. Where few of
them hold most of the spread, the degrees of freedom are 2 / (κ − 1) times as many, κ being the kurtosis of the θ that
leaving out gives, by Fisher's k-statistics.

Two ends take `UNEQUAL` traces with different repeats. Where fewer are to be expected, logs that have so many show more
luck than usual, so the lower end is made for those. With p the chance that repeats of a trace differ, and U of G whose
do, p₁ solves P(≥ U | p) = 2.5 %, p₂ solves P(≥ U | p) = 2.5 % · P(≥ `UNEQUAL` | p), and the odds of the lower end are
multiplied by p₂ / p₁.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credit.replay.replay_plan import ReplayPlan
from credit.replay.run_results import Results
from graphs.distinct_columns import distinct_columns
from graphs.errors import CreditError
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["FEWEST", "LuckShare", "check_traces", "luck_of_log", "luck_of_runs", "luck_share"]

FEWEST = 20
"""Traces with repeats that an interval takes."""

MANY = 20
"""Tasks from which on whole tasks are left out, not traces."""

UNEQUAL = 10
"""Traces with different repeats below which there is an upper bound only."""


@dataclasses.dataclass(frozen=True)
class LuckShare:
    """The share of the variance of outcomes within tasks that is luck.

    Attributes:
      share: φ̂, at most 1.
      low, high: its 95 % interval. Where `unequal` is below `UNEQUAL`, `low` is 0 and `high` a bound.
      traces, tasks, outcomes: that it is of.
      unequal: traces whose repeats differ.
      given: "every decision", or "all decisions but the last": then luck is at most this.
    """

    share: float
    low: float
    high: float
    traces: int
    tasks: int
    outcomes: int
    unequal: int
    given: str

    def __str__(self) -> str:
        """One sentence."""
        at_most = "" if self.given == "every decision" else "at most "
        return (
            f"{at_most}{self.share:.2f} ({self.low:.2f} to {self.high:.2f}) of the variance of outcomes within "
            f"tasks, given {self.given}: {counted(self.outcomes, 'outcome')} of {counted(self.traces, 'trace')} of "
            f"{counted(self.tasks, 'task')}"
        )


def luck_share(outcome: np.ndarray, trace: np.ndarray, task: np.ndarray, given: str = "every decision") -> LuckShare:
    """The luck share by the formula above.

    Traces with one outcome, and tasks with one such trace, are left out: they tell luck from decisions in nothing.

    Args:
      outcome: float [N], NaN where there is none.
      trace: int [N], the trace that an outcome repeats.
      task: int [N], its task.
      given: what the repeats share.

    Raises:
      CreditError: fewer than `FEWEST` traces of tasks with two or more have two or more outcomes; or all outcomes of
        every task are equal.

    Examples:
      >>> import numpy as np
      >>> rng, trace = np.random.default_rng(0), np.repeat(np.arange(200), 3)
      >>> outcome = rng.normal(size=200)[trace] + rng.normal(size=600)
      >>> found = luck_share(outcome, trace, trace // 5)
      >>> round(found.share, 2), round(found.low, 2), round(found.high, 2)
      (0.49, 0.42, 0.57)
    """
    y, trace, task = (np.asarray(x) for x in (outcome, trace, task))
    known = np.isfinite(y)
    y, trace, task = y[known].astype(np.float64), trace[known], task[known]
    first, number, count = np.unique(trace, return_index=True, return_inverse=True, return_counts=True)[1:]
    used = count >= 2
    used[used] = check_traces(task[first][used])
    y = y - y[first][number]  # relative to the first of the trace: three of 0.1 have no spread
    mean = np.bincount(number, y) / count
    within = np.bincount(number, (y - mean[number]) ** 2)[used] / (count[used] - 1)
    start = np.asarray(outcome, np.float64)[known][first]
    middle, n = (start + mean)[used], count[used].astype(np.float64)
    group = np.unique(task[first][used], return_inverse=True)[1]
    middle = middle - middle[np.unique(group, return_index=True)[1]][group]
    sums = _Sums.of(group, middle, within, within / n)
    luck, decided = float(sums.luck.sum()), float(sums.decided.sum())
    size = 1 / float(np.mean(1 / n))
    total = luck + decided
    if luck <= 0 and not np.any(np.abs(middle) > 0):
        raise CreditError("all outcomes of every task are equal; expected tasks with different ones")
    share = min(luck / total, 1.0) if total > 0 else 1.0
    unequal = int((within > 0).sum())
    if unequal < UNEQUAL:
        # A trace's repeats differ with a chance of at most `often` (Clopper and Pearson 1934), by at most the range.
        often = _upper_chance(unequal, len(n))
        widest = float(np.ptp(np.asarray(outcome, np.float64)[known])) ** 2 / 4 * float(np.mean(n / (n - 1)))
        weight = float(np.sum(np.bincount(group) - 1))
        ends = 0.0, min(often * widest * weight / total, 1.0) if total > 0 else 1.0
    else:
        low, high = _interval(sums, group, middle, within, within / n, size)
        odds = _odds_given_enough(unequal, len(n))
        ends = (low * odds / (1 - low * (1 - odds)) if odds > 0 else 0.0), high
    return LuckShare(share, *ends, len(n), int(group.max()) + 1, int(n.sum()), unequal, given)


def check_traces(task: np.ndarray) -> np.ndarray:
    """Which traces are of tasks with another one, bool [G].

    Args:
      task: int [G], of each trace that has repeats or gets some.

    Raises:
      CreditError: they are fewer than `FEWEST`.
    """
    _, number, count = np.unique(task, return_inverse=True, return_counts=True)
    used: np.ndarray = count[number] >= 2
    if used.sum() < FEWEST:
        raise CreditError(
            f"{counted(len(task), 'trace')} can be repeated, {used.sum()} of them in tasks with another one; expected "
            f"{FEWEST} or more to tell luck from decisions"
        )
    return used


@dataclasses.dataclass(frozen=True)
class _Sums:
    """Each task's part of L and of D, float64 [I]."""

    luck: np.ndarray
    decided: np.ndarray

    @classmethod
    def of(cls, group: np.ndarray, middle: np.ndarray, within: np.ndarray, of_mean: np.ndarray) -> _Sums:
        many = np.bincount(group)
        mean = np.bincount(group, middle) / many
        between = np.bincount(group, (middle - mean[group]) ** 2)  # (G − 1) B
        ratio = (many - 1) / many
        return cls(ratio * np.bincount(group, within), between - ratio * np.bincount(group, of_mean))


def _interval(
    sums: _Sums, group: np.ndarray, middle: np.ndarray, within: np.ndarray, of_mean: np.ndarray, size: float
) -> tuple[float, float]:
    """Student's interval on θ, as shares: (0, 1) where a θ does not exist."""
    from scipy.special import stdtrit  # comes with JAX; slow to import

    luck, decided = sums.luck.sum(), sums.decided.sum()
    many = np.bincount(group)
    if len(many) >= MANY:
        left_luck, left_decided, stratum = luck - sums.luck, decided - sums.decided, np.zeros(len(many), np.int64)
    else:
        # Tasks of two traces are left out as wholes; of the others each trace, the rest keeping the task's weight.
        pair, own = many == 2, many[group] > 2
        g, k = group[own], many[group][own].astype(np.float64)
        mean = np.bincount(group, middle) / many
        scatter, off = np.bincount(group, (middle - mean[group]) ** 2), middle - mean[group]
        between = (scatter[g] - off[own] ** 2 * k / (k - 1)) * (k - 1) / (k - 2)
        rest_luck, rest_mean = (
            (np.bincount(group, x)[g] - x[own]) / (k - 1) * (k - 1) for x in (within, of_mean)
        )  # the mean of the others, times G − 1
        left_luck = np.concatenate([luck - sums.luck[g] + rest_luck, luck - sums.luck[pair]])
        left_decided = np.concatenate([
            decided - sums.decided[g] + between - rest_mean, decided - sums.decided[pair]
        ])  # fmt: skip
        stratum = np.concatenate([g, np.full(int(pair.sum()), len(many))])
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.log1p(size * left_decided / left_luck)
        theta = np.log1p(size * decided / luck)
    if not (np.isfinite(left).all() and np.isfinite(theta)):
        return 0.0, 1.0
    units = np.bincount(stratum)
    off = left - (np.bincount(stratum, left) / np.maximum(units, 1))[stratum]
    u = units[stratum]
    variance = float(np.sum((u - 1) / u * off**2))
    freedom = float(np.sum(np.maximum(units - 1, 0)))
    g, m = float(np.mean(off**4) / max(np.mean(off**2) ** 2, 1e-300)) - 3, len(off)
    kurtosis = 3 + (m - 1) / ((m - 2) * (m - 3)) * ((m + 1) * g + 6)  # that of few is too small; m is 10 or more
    freedom = max(freedom * min(2 / max(kurtosis - 1, 1e-9), 1.0), 1.0)
    reach = float(stdtrit(freedom, 0.975)) * math.sqrt(variance)
    high, low = (1 / (1 + max(math.expm1(end), 0.0) / size) for end in (theta - reach, theta + reach))
    return low, high


def _upper_chance(seen: int, of: int) -> float:
    """The chance at which as few as `seen` of `of` have a probability of 2.5 %."""
    from scipy.special import betaincinv  # comes with JAX; slow to import

    return float(betaincinv(seen + 1, of - seen, 0.975)) if seen < of else 1.0


def _odds_given_enough(seen: int, of: int) -> float:
    """By how much the odds of the lower end shrink, given that at least `UNEQUAL` are seen: p₂ / p₁."""
    from scipy.optimize import brentq  # comes with JAX; slow to import
    from scipy.special import betainc, betaincinv

    def beyond(chance: float) -> float:
        often, enough = (float(betainc(k, of - k + 1, chance)) for k in (seen, UNEQUAL))
        return often - 0.025 * enough

    if seen == UNEQUAL:
        return 0.0
    plain = float(betaincinv(seen, of - seen + 1, 0.025))
    return float(brentq(beyond, 0.01 / of, plain)) / plain if beyond(plain) > 0 else 1.0


def luck_of_runs(plan: ReplayPlan, results: Results) -> LuckShare:
    """The luck share of the runs of a plan for "luck": the last decision of each trace drawn again.

    The logged outcomes are not used.

    Args:
      plan: its purpose is "luck".
      results: what came of it.

    Raises:
      CreditError: another purpose, or as `luck_share`.
    """
    if plan.purpose != "luck":
        raise CreditError(f"the plan is for {plan.purpose!r}; expected one for 'luck'")
    outcomes = results.outcomes()
    trace = np.repeat(np.arange(len(outcomes)), [len(y) for y in outcomes])
    task = np.unique([job.prefix.group for job in plan.jobs], return_inverse=True)[1]
    return luck_share(np.concatenate(outcomes), trace, task[trace], "all decisions but the last")


def luck_of_log(traces: Traces) -> LuckShare:
    """The luck share of a log in which last decisions were drawn again: siblings whose `context` is at the last action.

    Traces that share that action's `node`, too, are repeats of one choice, and tell luck given every decision.

    Args:
      traces: what was read.

    Raises:
      CreditError: no last action has siblings, or as `luck_share`.
    """
    last, context, node = _last_actions(traces)
    group = np.asarray(traces.graph.group_ids)[: traces.sizes.traces].astype(np.int64)
    outcome = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    for ids, given in ((node, "every decision"), (context, "all decisions but the last")):
        named = last & (ids >= 0)
        pairs = distinct_columns(group[named], ids[named])
        if len(pairs.of) > len(pairs.first):
            return luck_share(outcome[named], pairs.of, group[named], given)
    acting = np.unique(np.asarray(traces.graph.trace_ids)[np.asarray(traces.graph.action_mask)])
    try:
        check_traces(group[acting])
    except CreditError as error:
        raise CreditError(f"no last action was drawn again, and too few can be: {error}") from None
    raise CreditError("no last action was drawn again; expected siblings of it, as `credit plan --for luck` plans")


def _last_actions(traces: Traces) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each trace, whether its last decision has a context that is at no earlier one of any trace; context, node."""
    n, m = traces.sizes.events, traces.sizes.traces
    chosen = np.flatnonzero(np.asarray(traces.graph.action_mask)[:n])
    trace = np.asarray(traces.graph.trace_ids)[:n]
    place = np.full(m, -1, np.int64)
    place[trace[chosen]] = chosen
    ids = [
        np.asarray(traces.evidence[name].array)[:n].astype(np.int64) if name in traces.evidence else np.full(n, -1)
        for name in ("context", "node")
    ]
    context = np.where(place >= 0, ids[0][place], -1) if n else np.full(m, -1)
    run = np.zeros(n, np.int64)  # neighbours in one context are one decision: its actions may be a joint turn
    parted = (np.diff(trace[chosen]) != 0) | (np.diff(ids[0][chosen]) != 0) | (ids[0][chosen][1:] < 0)
    run[chosen[1:]] = np.cumsum(parted)
    last = chosen[run[chosen] == run[place[trace[chosen]]]]
    least = np.full(m, np.iinfo(np.int64).max)  # whatever the order in which the actions of a joint turn are logged
    named = last[ids[1][last] >= 0]
    np.minimum.at(least, trace[named], ids[1][named])
    node = np.where(least < np.iinfo(np.int64).max, least, -1)
    group = np.asarray(traces.graph.group_ids)[:m].astype(np.int64)
    earlier = np.setdiff1d(chosen, last)
    early = earlier[ids[0][earlier] >= 0]
    pairs = np.stack([group[trace[early]], ids[0][early]])
    taken = set(zip(*pairs.tolist(), strict=True))
    free = np.array([(g, c) not in taken for g, c in zip(group.tolist(), context.tolist(), strict=True)], bool)
    return (context >= 0) & free, context, node
