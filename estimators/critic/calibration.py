"""How far to believe a critic, on tasks that it was not fitted on.

A critic is compared with the best constant and with a baseline of simple counts, a logistic (or linear) regression
on a few columns, both fitted on the same training traces. All scores weight every trace once, whatever its length.
Host work in NumPy; intervals are over tasks, since traces of one task are not independent.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from estimators.critic.data import CriticData, Split
from estimators.critic.features import feature_names
from graphs.errors import CreditError
from graphs.task_means import LEAST_TASKS, mean_interval

__all__ = [
    "Judged",
    "Reliability",
    "Scores",
    "fit_counts",
    "judge",
    "predict_counts",
    "prefix_losses",
    "reliability",
    "scores",
]

COUNTS = [i for i, name in enumerate(feature_names()) if name.startswith("so_far.")]
TURNS = feature_names().index("so_far.actions")


@dataclasses.dataclass(frozen=True)
class Judged:
    """A critic on the tasks that were held out of its fit.

    Attributes:
      tasks, traces: how many.
      loss: mean loss over traces, by "critic", "constant", "turns" (a regression on the number of actions so far) and
        "counts" (one on the numbers of events of each kind so far), all fitted on the traces that the critic had.
      gain: for each but the constant, how far its mean loss per task is below the constant's, and the half-width of a
        95 % interval over tasks (Student's); infinite where fewer than 8 differ, or all are alike.
      calibration: the calibration error over ten bins; None for head "value".
      curve: the bins: predicted, observed, weight; empty for head "value".
    """

    tasks: int
    traces: int
    loss: dict[str, float]
    gain: dict[str, tuple[float, float]]
    calibration: float | None
    curve: tuple[tuple[float, float, float], ...]


class Reliability(NamedTuple):
    """Bins of a reliability curve: mean prediction, mean outcome and weight of each, and their weighted distance.

    `error` is Σ_bins weight |predicted − observed|, the calibration error.
    """

    predicted: np.ndarray
    observed: np.ndarray
    weight: np.ndarray
    error: float


class Scores(NamedTuple):
    """Mean loss of a prediction and what part of the best constant's loss it removes.

    Attributes:
      loss: log-loss (head "bernoulli") or squared error ("value"), mean over traces.
      gain: 1 − loss / loss of the constant; for squared error the explained variance.
      per_task: float [tasks], mean loss of each task's traces, in order of task ids.
      tasks: number of tasks.
    """

    loss: float
    gain: float
    per_task: np.ndarray
    tasks: int


def judge(value: np.ndarray, corpus: CriticData, split: Split, head: str) -> Judged:
    """A critic and its baselines on the test traces of a split.

    Args:
      value: float [E], V̂ after each event of the corpus, in units of reward.
      corpus: with features as `event_features` gives them, not standardised.
      split: what the critic was fitted with.
      head: "bernoulli" or "value".
    """
    trace = np.repeat(np.arange(len(corpus.lengths)), corpus.lengths)
    fitted_on = np.flatnonzero(np.isin(trace, np.concatenate([split.train, split.validation])))
    test = np.flatnonzero(np.isin(trace, split.test))
    weight, outcome = 1 / corpus.lengths[trace], corpus.reward[trace].astype(np.float64)
    constant = float(np.average(outcome[fitted_on], weights=weight[fitted_on]))
    predicted = {"critic": np.asarray(value, np.float64)[test], "constant": np.full(len(test), constant)}
    for name, columns in (("turns", corpus.features[:, [TURNS]]), ("counts", corpus.features[:, COUNTS])):
        fitted_weights = fit_counts(columns[fitted_on], outcome[fitted_on], weight[fitted_on], head)
        predicted[name] = predict_counts(fitted_weights, columns[test], head)
    task = corpus.group[trace[test]]
    scored = {name: scores(p, outcome[test], constant, trace[test], task, head) for name, p in predicted.items()}
    base = scored["constant"].per_task
    gain = {name: _mean_and_width(base - s.per_task) for name, s in scored.items() if name != "constant"}
    loss = {name: s.loss for name, s in scored.items()}
    if head != "bernoulli":
        return Judged(len(base), len(split.test), loss, gain, None, ())
    curve = reliability(predicted["critic"], outcome[test], weight[test])
    bins = zip(curve.predicted.tolist(), curve.observed.tolist(), curve.weight.tolist(), strict=True)
    return Judged(len(base), len(split.test), loss, gain, curve.error, tuple(bins))


def reliability(predicted: np.ndarray, outcome: np.ndarray, weight: np.ndarray, bins: int = 10) -> Reliability:
    """The reliability curve over bins of equal weight.

    Args:
      predicted, outcome, weight: float [n]; weights are 0 or more and do not all vanish.
      bins: at most so many; equal predictions share one.
    """
    order = np.argsort(predicted, kind="stable")
    predicted, outcome, weight = (np.asarray(x, np.float64)[order] for x in (predicted, outcome, weight))
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    cut = np.minimum((middle * bins).astype(int), bins - 1)
    # Rows of one predicted value belong together, so a constant is one bin.
    new = np.concatenate([[True], np.diff(predicted) > 0])
    cut = cut[np.maximum.accumulate(np.where(new, np.arange(len(cut)), 0))]
    total = np.bincount(cut, weight, bins)
    kept = total > 0
    means = [np.bincount(cut, weight * x, bins)[kept] / total[kept] for x in (predicted, outcome)]
    share = total[kept] / weight.sum()
    return Reliability(means[0], means[1], share, float(np.sum(share * np.abs(means[0] - means[1]))))


def scores(
    predicted: np.ndarray, outcome: np.ndarray, constant: float, trace: np.ndarray, task: np.ndarray, head: str
) -> Scores:
    """Score predictions for prefixes, beside a constant.

    Args:
      predicted: float [n], one for each prefix.
      outcome: float [n], the outcome of its trace.
      constant: the prediction to beat, fitted on training traces.
      trace, task: int [n], of each prefix.
      head: "bernoulli" or "value".
    """
    own, base = (_loss(p, outcome, head) for p in (predicted, np.full(len(outcome), constant)))
    _, first, where = np.unique(trace, return_index=True, return_inverse=True)
    counts = np.bincount(where)
    by_trace, base_by_trace = (np.bincount(where, x) / counts for x in (own, base))
    _, which = np.unique(task[first], return_inverse=True)
    per_task = np.bincount(which, by_trace) / np.bincount(which)
    loss, against = float(by_trace.mean()), float(base_by_trace.mean())
    return Scores(loss, 1 - loss / against if against > 0 else float("nan"), per_task, len(per_task))


def prefix_losses(value: np.ndarray, corpus: CriticData, traces: np.ndarray, head: str) -> np.ndarray:
    """Mean loss of the prefixes of each task's traces: float64 [tasks], in order of task ids.

    Args:
      value: float [E], V̂ after each event of the corpus, in units of reward.
      corpus: the events.
      traces: int [n], which traces to score; each has an outcome.
      head: "bernoulli" for the log-loss, "value" for the squared error.
    """
    trace = np.repeat(np.arange(len(corpus.lengths)), corpus.lengths)
    at = np.flatnonzero(np.isin(trace, traces))
    outcome = corpus.reward[trace[at]].astype(np.float64)
    return scores(np.asarray(value, np.float64)[at], outcome, 0.5, trace[at], corpus.group[trace[at]], head).per_task


def fit_counts(columns: np.ndarray, outcome: np.ndarray, weight: np.ndarray, head: str) -> np.ndarray:
    """Weights of a regression on a few columns, the intercept last: float64 [C + 1].

    Logistic for "bernoulli", by Newton's method with a ridge of 1e-3 of the mean curvature; least squares for "value".

    Raises:
      CreditError: there is no row.
    """
    if len(columns) == 0:
        raise CreditError("no rows to fit a baseline of counts on")
    x = np.column_stack([columns, np.ones(len(columns))]).astype(np.float64)
    weight = weight / weight.sum()
    ridge = 1e-3 * np.eye(x.shape[1])
    ridge[-1, -1] = 0
    if head == "value":
        return np.linalg.solve((x * weight[:, None]).T @ x + ridge, (x * weight[:, None]).T @ outcome)
    fitted_weights = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ fitted_weights, -30, 30)))
        slope = x.T @ (weight * (p - outcome)) + ridge @ fitted_weights
        curve = (x * (weight * np.maximum(p * (1 - p), 1e-6))[:, None]).T @ x + ridge
        step = np.linalg.solve(curve, slope)
        fitted_weights = fitted_weights - step
        if np.abs(step).max() < 1e-10:
            break
    return fitted_weights


def predict_counts(weights: np.ndarray, columns: np.ndarray, head: str) -> np.ndarray:
    """Predictions of `fit_counts`: float64 [n]."""
    z = np.column_stack([columns, np.ones(len(columns))]) @ weights
    result: np.ndarray = z if head == "value" else 1 / (1 + np.exp(-np.clip(z, -30, 30)))
    return result


def _mean_and_width(values: np.ndarray) -> tuple[float, float]:
    """Mean over tasks and the longer side of its 95 % interval; infinite where `task_mean` states none."""
    mean = float(np.mean(values))
    low, high = mean_interval(values, mean)
    return mean, float("inf") if np.count_nonzero(values) < LEAST_TASKS or np.isnan(low) else max(
        mean - low, high - mean
    )


def _loss(predicted: np.ndarray, outcome: np.ndarray, head: str) -> np.ndarray:
    if head == "value":
        return np.asarray((predicted - outcome) ** 2)
    p = np.clip(predicted, 1e-6, 1 - 1e-6)
    return np.asarray(-(outcome * np.log(p) + (1 - outcome) * np.log1p(-p)))
