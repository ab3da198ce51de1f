"""What a claim declares against what the batch shows: centred, and without its own trace's outcome.

Neither can be proven from a log. But a claim that is centred has sums with mean 0 over independent traces, and a claim
that was made before the rest of its trace does not tell how the trace ends. A claim that fails one of the two by far
is refused with the figure, before it makes advantages wrong.
"""

from __future__ import annotations

import numpy as np

from credit.metrics.clustered_error import clustered_error
from estimators.base import Credit
from graphs.event_graph import EventGraph

__all__ = ["claim_sums", "contradicted"]

MANY = 32
"""Independent traces with a claim from which on it is judged: of few, four errors are no rare event."""

ERRORS = 4.0
"""Standard errors of their mean by which sums over traces may differ from 0."""

ALIKE = 0.99
"""The size of the correlation with outcomes from which on a claim is taken to hold them."""


def claim_sums(graph: EventGraph, claim: Credit, scored: np.ndarray) -> tuple[float, float]:
    """The mean over traces of a claim's sum, and its standard error over samples (`clustered_error`).

    Args:
      graph: the batch.
      claim: on its events.
      scored: bool [T], the traces to look at.
    """
    sums = np.bincount(np.asarray(graph.trace_ids), _amounts(claim), graph.num_traces)[scored]
    return float(sums.mean()), clustered_error(sums, _samples(graph)[scored])


def contradicted(graph: EventGraph, reward: np.ndarray, claim: Credit) -> str:
    """Why a batch contradicts what a claim declares of itself, with the figure; "" where it does not.

    Args:
      graph: the batch.
      reward: float [T], NaN where a trace has none.
      claim: increments on events.
    """
    trace, amount = np.asarray(graph.trace_ids), _amounts(claim)
    valid = np.asarray(claim.valid) & np.isfinite(reward)[trace]
    claimed = np.bincount(trace[valid], minlength=graph.num_traces) > 0
    group = np.asarray(graph.group_ids)
    samples = _samples(graph)
    if len(np.unique(samples[claimed])) < MANY:
        return ""
    return (_off_centre(trace, amount, reward, samples, group) if claim.centred else "") or (
        "" if claim.own_outcome else _tells_outcome(graph, trace, amount, reward, valid, group)
    )


def _off_centre(
    trace: np.ndarray, amount: np.ndarray, reward: np.ndarray, samples: np.ndarray, group: np.ndarray
) -> str:
    scored = np.isfinite(reward)
    sums = np.bincount(trace, amount, len(reward))
    _, sample = np.unique(samples[scored], return_inverse=True)
    size = np.bincount(sample)
    by_sample = np.bincount(sample, sums[scored]) / size
    # A claim whose rare large amounts did not occur has a small spread, and its mean looks far from 0. Amounts are of
    # the size of rewards, so that their spread bounds what may have been missed.
    spread = np.bincount(sample, _centred(reward[scored], group[scored])) / size
    mean, error = float(by_sample.mean()), max(_error(by_sample), _error(spread))
    if abs(mean) <= ERRORS * error:
        return ""
    return (
        f"it declares to be centred, but its sum over a trace is {mean:.3g} ± {error:.2g} (one standard error) on "
        f"average over {len(size)} independent traces, {abs(mean) / error:.3g} errors from 0: it is off centre, or "
        "which events carry it follows from what they chose"
    )


def _tells_outcome(
    graph: EventGraph, trace: np.ndarray, amount: np.ndarray, reward: np.ndarray, valid: np.ndarray, group: np.ndarray
) -> str:
    actions = np.flatnonzero(np.asarray(graph.event_mask) & np.asarray(graph.trained_mask))
    last = np.full(graph.num_traces, -1)
    last[trace[actions]] = actions
    early = np.flatnonzero(valid & (np.arange(len(trace)) < last[trace]))  # another action is still to come
    met = np.unique(trace[early])
    if len(met) < MANY:
        return ""
    sums = np.bincount(trace[early], amount[early], graph.num_traces)[met]
    found = max(
        _correlation(sums, reward[met], group[met]),
        _correlation(amount[early], reward[trace[early]], group[trace[early]]),
        key=abs,
    )
    if abs(found) < ALIKE:
        return ""
    return (
        f"it declares to leave its own trace's outcome out, but before the last action of {len(met)} traces it "
        f"correlates with R − b by {found:.4f}: it was made when the outcome was known; declare own_outcome=True, with "
        "which it serves the actions before it"
    )


def _amounts(claim: Credit) -> np.ndarray:
    amounts: np.ndarray = np.where(claim.valid, claim.credit - claim.baseline, 0).astype(np.float64)
    return amounts


def _samples(graph: EventGraph) -> np.ndarray:
    """The sample of each trace; traces that share choices are one."""
    return np.arange(graph.num_traces) if graph.cluster_ids is None else np.asarray(graph.cluster_ids)


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf


def _centred(values: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Values less the mean of their key."""
    apart: np.ndarray = values - (np.bincount(key, values) / np.maximum(np.bincount(key), 1))[key]
    return apart


def _correlation(first: np.ndarray, other: np.ndarray, key: np.ndarray) -> float:
    """The correlation within keys, 0 where one of them does not vary."""
    first, other = _centred(first, key), _centred(other, key)
    size = float(np.sqrt((first @ first) * (other @ other)))
    return float(first @ other) / size if size > 0 else 0.0
