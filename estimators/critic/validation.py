"""Which types of decisions a critic is right about, tested on tasks that it was not fitted on.

The sign of an increment is reported only where signs held on held-out tasks: for events of a type under some
circumstances (`estimators.critic.signs.regions`), which are found on the other tasks. For an event whose increment is
D̂ with standard error s, decided where |D̂| > 1.96 s, the outcome measures the sign:

    y_e = sign(D̂_e) (R − V̂(G<e) − m),        E[y_e] = E[|D_e|] − 2 E[|D_e|; wrong sign]  where V̂(G<e) + m is right

with m the mean of R − V̂(G<e) over the region's events of the other tasks: how wrong V̂ is there on average.
A region is validated if the mean of y over held-out tasks is above 0 in a one-sided t-test at 2.5 %, corrected for the
number of regions by Holm's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from estimators.critic.signs.circumstances import circumstances
from estimators.critic.signs.regions import Region, regions

if TYPE_CHECKING:  # it needs flax, which `import estimators` must not
    from estimators.critic.data import Corpus

__all__ = ["SignTest", "means", "stderr_factor", "validate_signs", "validated_events"]

LEAST_TASKS = 4
"""Held-out tasks with decided events of a region for it to be tested."""
LEVEL = 0.025


class SignTest(NamedTuple):
    """The test of one region.

    Attributes:
      region: events of a type under some circumstances.
      tasks, events: held-out tasks with decided events of it, and these events.
      mean: mean of y over tasks, in units of reward.
      stderr: its standard error over tasks; infinite for one task.
      p_value: one-sided, corrected for the number of regions; 1 where there are too few tasks.
      validated: whether it is below 2.5 %.
    """

    region: Region
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


def validate_signs(
    after: np.ndarray, start: np.ndarray, corpus: Corpus, action_mask: np.ndarray, traces: np.ndarray
) -> tuple[SignTest, ...]:
    """Test the signs of increments, region by region, on traces that the critic was neither fitted on nor stopped by.

    Args:
      after: float [M, E], V̂ after each event, by member.
      start: float [M], V̂(∅).
      corpus: the events, of which some traces are held out.
      action_mask: bool [E], events that a policy chose.
      traces: int [n], the held-out traces, each with an outcome. The regions come from the others.

    Returns:
      A `SignTest` for each region of each type that occurs among the actions of the corpus, in order of types.
    """
    from scipy.special import stdtr

    before = np.empty_like(after)
    before[:, 1:] = after[:, :-1]
    before[:, corpus.start[:-1][corpus.lengths > 0]] = start[:, None]
    amount, value = means(before, after)
    change = (after - before).astype(np.float64)
    error = change.std(axis=0, ddof=1) * stderr_factor(len(change)) if len(change) > 1 else np.inf
    trace = np.repeat(np.arange(len(corpus.lengths)), corpus.lengths)
    held_out = np.isin(trace, traces)
    decided = (np.abs(amount) > 1.959964 * error) & action_mask
    rest = corpus.reward[trace] - value
    numbers = circumstances(value, amount, trace, action_mask)
    rows = []
    for kind in np.unique(corpus.kind[action_mask]).tolist():
        known = np.flatnonzero(decided & ~held_out & (corpus.kind == kind) & np.isfinite(rest))
        for region in regions(kind, amount[known], rest[known], numbers[:, known], trace[known]):
            inside = region.holds(corpus.kind, numbers)
            at, others = np.flatnonzero(decided & held_out & inside), known[inside[known]]
            off = float(rest[others].mean()) if len(others) else 0.0
            _, task = np.unique(corpus.group[trace[at]], return_inverse=True)
            counts = np.bincount(task)
            mean, stderr, p = 0.0, float("inf"), 1.0
            if len(at):
                tasks = np.bincount(task, np.sign(amount[at]) * (rest[at] - off)) / counts
                mean = float(tasks.mean())
                if len(counts) > 1:
                    stderr = float(tasks.std(ddof=1) / np.sqrt(len(counts)))
                if len(counts) >= LEAST_TASKS:
                    p = float(stdtr(len(counts) - 1, -mean / stderr)) if stderr > 0 else float(mean <= 0)
            rows.append((region, len(counts), len(at), mean, stderr, p))
    worst = 0.0
    corrected: dict[Region, float] = {}
    for rank, row in enumerate(sorted(rows, key=lambda row: row[-1])):
        worst = max(worst, min(1.0, row[-1] * (len(rows) - rank)))
        corrected[row[0]] = worst
    return tuple(SignTest(*row[:-1], corrected[row[0]], corrected[row[0]] < LEVEL) for row in rows)


def validated_events(
    tests: tuple[SignTest, ...], before: np.ndarray, after: np.ndarray, kind: np.ndarray, trace: np.ndarray,
    action_mask: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Which events are in a region whose signs were validated: bool [E].

    Args:
      tests: what `validate_signs` returned.
      before, after: float [M, E], V̂ around each event, by member.
      kind, trace: int [E].
      action_mask: bool [E].
    """
    amount, value = means(before, after)
    numbers = circumstances(value, amount, trace, action_mask)
    inside = np.zeros(len(kind), bool)
    for test in tests:
        if test.validated:
            inside |= test.region.holds(kind, numbers)
    result: np.ndarray = inside & action_mask
    return result


def means(before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Increments and V̂ before each event, means over members: float64 [E] each."""
    change = (after - before).astype(np.float64)
    return change.mean(axis=0), before.astype(np.float64).mean(axis=0)
