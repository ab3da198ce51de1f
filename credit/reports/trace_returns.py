"""The return of each trace, and which differences of returns methods see."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphs.traces.batch import Traces

__all__ = ["UNRESOLVED", "acting", "distinguishable", "group_differences", "returns", "rounded_differences"]

UNRESOLVED = {
    "fine": "outcomes differ by less than single precision, in which methods compute, holds; subtract an offset, or "
    "multiply outcomes that are almost 0",
    "coarse": "outcomes differ by little for their size: single precision, in which methods compute, changes the "
    "differences, or a baseline between them, by more than 1 %; subtract an offset",
    "wide": "outcomes differ by more than single precision, in which methods compute, holds; divide them",
}
"""Why methods see no difference between outcomes that differ, or a changed one, by the words of `group_differences`."""

KEPT = 0.01
"""Of the largest difference of a group, by how much single precision may move an outcome."""

RELATIVE = 1e-12
"""Of the size of returns, up to which a difference is rounding: 0.1 + 0.2 is not 0.3 in double precision."""


def returns(traces: Traces) -> np.ndarray:
    """The return of each real trace, outcome plus its rewards at events; NaN where there is no outcome: float64."""
    n = traces.sizes
    total = np.asarray(traces.reward[: n.traces], np.float64).copy()
    step = traces.evidence.get("event_reward")
    if step is not None:
        trace = np.asarray(traces.graph.trace_ids[: n.events])
        total += np.bincount(trace, np.where(step.mask, step.array, 0)[: n.events], n.traces)
    return total


def acting(traces: Traces) -> np.ndarray:
    """The real traces that have an action: bool; methods compare no others."""
    n = traces.sizes
    trace = np.asarray(traces.graph.trace_ids[: n.events])
    return np.bincount(trace[np.asarray(traces.graph.action_mask[: n.events])], minlength=n.traces) > 0


def _exact_returns(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """The returns with outcomes in the log's double precision, and how far rounding may put each off: float64 [traces].

    `Traces.reward` has single precision; the log's channel has double. Rewards at events, and outcomes without a
    channel, as of columns, have single precision only.
    """
    n, single = traces.sizes, np.finfo(np.float32).eps
    exact, reward = returns(traces), np.asarray(traces.reward[: n.traces])
    error = float(single) * np.abs(reward.astype(np.float64))
    for name, channel in traces.evidence.items():
        if name.startswith("rewards."):
            logged = np.asarray(channel.array[: n.traces], np.float64)
            if np.array_equal(logged.astype(np.float32), reward, equal_nan=True):
                exact += np.where(np.isfinite(reward), logged - reward, 0)
                error = np.zeros_like(error)
                break
    step = traces.evidence.get("event_reward")
    if step is not None:
        sizes = np.abs(np.where(step.mask, step.array, 0)[: n.events].astype(np.float64))
        error += single * np.bincount(np.asarray(traces.graph.trace_ids[: n.events]), sizes, n.traces)
    return exact, error + RELATIVE * np.abs(exact)


def distinguishable(values: np.ndarray, key: np.ndarray, keys: int) -> tuple[np.ndarray, np.ndarray]:
    """The greatest number of each key, and whether methods, which compute in single precision, see any difference.

    XLA takes numbers below the least normal one for 0, differences included. A difference that single precision cannot
    hold is none: methods refuse the group.
    """
    smallest = np.finfo(np.float32).tiny
    with np.errstate(over="ignore", invalid="ignore"):  # returns beyond single precision are alike: no method takes any
        single = values.astype(np.float32)
        single[np.abs(single) < smallest] = 0
        most, least = np.full(keys, -np.inf, np.float32), np.full(keys, np.inf, np.float32)
        np.maximum.at(most, key, single)
        np.minimum.at(least, key, single)
        spread = most - least  # minus infinity for a key without values
        return most, (spread >= smallest) & np.isfinite(spread)


def rounded_differences(exact: np.ndarray, key: np.ndarray, keys: int) -> np.ndarray:
    """Whether single precision moves a number of a key by more than 1 % of the key's largest difference: bool [keys].

    The means of a key's numbers, of all and of all but one, count too: they are baselines.

    Examples:
      >>> rounded_differences(np.array([1e6, 1e6 + 0.1, 0.0, 0.1]), np.array([0, 0, 1, 1]), 2).tolist()
      [True, False]
      >>> rounded_differences(np.array([16777216.0, 16777218.0, 16777220.0]), np.zeros(3, int), 1).tolist()
      [True]
    """
    total, count = np.bincount(key, exact, keys)[key], np.bincount(key, minlength=keys)[key]
    with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond single precision
        means = total / count, (total - exact) / np.maximum(count - 1, 1)
        moved = np.fmax.reduce([np.abs(x.astype(np.float32) - x) for x in (exact, *means)])
    most, least, off = np.full(keys, -np.inf), np.full(keys, np.inf), np.zeros(keys)
    np.maximum.at(most, key, exact)
    np.minimum.at(least, key, exact)
    np.maximum.at(off, key, moved)
    size = np.maximum(np.abs(most), np.abs(least))
    rounded: np.ndarray = (off > KEPT * (most - least)) & (most - least > RELATIVE * size)
    return rounded


class GroupDifferences(NamedTuple):
    """Of each group, by its id: the greatest return, whether methods see a difference, and what is wrong with it."""

    greatest: np.ndarray
    apart: np.ndarray
    unresolved: list[str]
    """A key of `UNRESOLVED` where returns of the log differ and methods see no difference, or another one ("coarse");
    "" elsewhere."""


def group_differences(traces: Traces) -> GroupDifferences:
    """Which differences of returns within groups methods see, and where the log has others.

    Traces without an action do not count.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0, 0, 1, 1], trace=[0, 1, 2, 3], reward=[1.0, 0.0, 3e38, -3e38])
      >>> found = group_differences(rows.traces)
      >>> found.apart.tolist(), found.unresolved
      ([True, False], ['', 'wide'])
    """
    earned, (exact, error) = returns(traces), _exact_returns(traces)
    scored = np.isfinite(earned) & acting(traces)
    group = np.asarray(traces.graph.group_ids[: traces.sizes.traces])
    key, groups = group[scored], int(group.max(initial=-1)) + 1
    greatest, apart = distinguishable(earned[scored], key, groups)
    most, least, off = np.full(groups, -np.inf), np.full(groups, np.inf), np.zeros(groups)
    np.maximum.at(most, key, exact[scored])
    np.minimum.at(least, key, exact[scored])
    np.maximum.at(off, key, error[scored])
    spread = most - least  # minus infinity for a group without outcomes
    words = np.where(spread > np.finfo(np.float32).max, "wide", np.where(spread > off, "fine", ""))
    seen = np.where(rounded_differences(exact[scored], key, groups), "coarse", "")
    return GroupDifferences(greatest, apart, np.where(apart, seen, words).tolist())
