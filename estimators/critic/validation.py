"""Which types of decisions a critic is right about, tested on tasks that it was not fitted on.

The sign of an increment is reported only for types of events whose signs held on held-out tasks. For an event whose
increment is D̂ with standard error s, decided where |D̂| > 1.96 s, the outcome measures the sign:

    y_e = sign(D̂_e) (R − V̂(G<e)),        E[y_e] = E[|D_e|] − 2 E[|D_e|; wrong sign]  where V̂(G<e) is right on average

A type is validated if the mean of y over held-out tasks is above 0 in a one-sided t-test at 2.5 %, corrected for the
number of types by Holm's method. No assumption about the critic enters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:  # it needs flax, which `import estimators` must not
    from estimators.critic.data import Corpus

__all__ = ["TypeTest", "stderr_factor", "validate_types"]

LEAST_TASKS = 4
"""Held-out tasks with decided events of a type for it to be tested."""
LEVEL = 0.025


class TypeTest(NamedTuple):
    """The test of one type of event.

    Attributes:
      kind: the type's number, an `EventType`.
      tasks, events: held-out tasks with decided events of it, and these events.
      mean: mean of y over tasks, in units of reward.
      stderr: its standard error over tasks; infinite for one task.
      p_value: one-sided, corrected for the number of types; 1 where there are too few tasks.
      validated: whether it is below 2.5 %.
    """

    kind: int
    tasks: int
    events: int
    mean: float
    stderr: float
    p_value: float
    validated: bool


def stderr_factor(members: int) -> float:
    """What the spread over M members is multiplied by, so that ± 1.96 standard errors is a 95 % interval.

    The 97.5 % point of Student's t with M − 1 degrees of freedom over that of the normal distribution; infinite for one
    member, whose spread is uninformative.

    Args:
      members: M, 1 or more.

    Returns:
      A number above 1.

    Examples:
      >>> stderr_factor(5)
      1.417
      >>> stderr_factor(1)
      inf
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    return float(stdtrit(members - 1, 0.975)) / 1.959964 if members > 1 else float("inf")


def validate_types(
    after: np.ndarray, start: np.ndarray, corpus: Corpus, action_mask: np.ndarray, traces: np.ndarray
) -> tuple[TypeTest, ...]:
    """Test the signs of increments, type by type, on traces that the critic was neither fitted on nor stopped by.

    Args:
      after: float [M, E], V̂ after each event, by member.
      start: float [M], V̂(∅).
      corpus: the events, of which some traces are held out.
      action_mask: bool [E], events that a policy chose.
      traces: int [n], the held-out traces, each with an outcome.

    Returns:
      A `TypeTest` for each type that occurs among the actions of the corpus, in order of types.
    """
    from scipy.special import stdtr

    before = np.empty_like(after)
    before[:, 1:] = after[:, :-1]
    before[:, corpus.start[:-1][corpus.lengths > 0]] = start[:, None]
    change = (after - before).astype(np.float64)
    amount = change.mean(axis=0)
    error = change.std(axis=0, ddof=1) * stderr_factor(len(change)) if len(change) > 1 else np.inf
    trace = np.repeat(np.arange(len(corpus.lengths)), corpus.lengths)
    decided = (np.abs(amount) > 1.959964 * error) & action_mask & np.isin(trace, traces)
    right = np.sign(amount) * (corpus.reward[trace] - before.mean(axis=0))
    rows = []
    for kind in np.unique(corpus.kind[action_mask]).tolist():
        at = np.flatnonzero(decided & (corpus.kind == kind))
        _, task = np.unique(corpus.group[trace[at]], return_inverse=True)
        counts = np.bincount(task)
        mean, stderr, p = 0.0, float("inf"), 1.0
        if len(at):
            means = np.bincount(task, right[at]) / counts
            mean = float(means.mean())
            if len(counts) > 1:
                stderr = float(means.std(ddof=1) / np.sqrt(len(counts)))
            if len(counts) >= LEAST_TASKS:
                p = float(stdtr(len(counts) - 1, -mean / stderr)) if stderr > 0 else float(mean <= 0)
        rows.append((kind, len(counts), len(at), mean, stderr, p))
    worst = 0.0
    corrected: dict[int, float] = {}
    for rank, row in enumerate(sorted(rows, key=lambda row: row[-1])):
        worst = max(worst, min(1.0, row[-1] * (len(rows) - rank)))
        corrected[row[0]] = worst
    return tuple(TypeTest(*row[:-1], corrected[row[0]], corrected[row[0]] < LEVEL) for row in rows)
