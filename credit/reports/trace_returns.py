"""The return of each trace, and which differences of returns methods see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credit.reports.own_outcomes import has_agent_outcomes
from graphs.distinct_columns import distinct_columns
from graphs.errors import CreditError
from graphs.floats import (
    COARSE,
    KEPT,
    RELATIVE,
    WHOLE,
    outweighed_results,
    rounded_differences,
    rounding,
    single_sums,
)
from graphs.replay_clusters import without_independent
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.schema import EVENT_EVIDENCE, LIKE_OUTCOMES

if TYPE_CHECKING:
    from graphs.event_graph import EventGraph

__all__ = [
    "UNRESOLVED",
    "acting",
    "agents_apart",
    "coarse_beside",
    "distinguishable",
    "exact_outcomes",
    "first_names",
    "group_differences",
    "outweighed",
    "precision_note",
    "precision_notes",
    "refuse_coarse",
    "returns",
]

UNRESOLVED = {
    "fine": "outcomes differ by less than single precision, in which methods compute, holds; subtract an offset, or "
    "multiply outcomes that are almost 0",
    "coarse": f"outcomes, or values beside them, {COARSE}",
    "shared": "outcomes differ between traces that share a choice, as replays of one prefix do; a `context` or `node` "
    "that each trace counts afresh, as rounds, makes replays of all: make its ids unique, or leave it out",
    "wide": "outcomes differ by more than single precision, in which methods compute, holds; divide them",
}
"""Why methods see no difference between outcomes that differ, or a changed one, by the words of `group_differences`."""


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


def agents_apart(traces: Traces) -> np.ndarray:
    """Groups in which agents of one name that acted have different outcomes of their own: bool, by the group's id."""
    graph, n = traces.graph, traces.sizes
    groups = int(np.max(graph.group_ids[: n.traces], initial=-1)) + 1
    if not has_agent_outcomes(traces):
        return np.zeros(groups, bool)
    from estimators.members import agent_outcomes

    outcome, scored = (
        np.asarray(x)[: n.agents] for x in agent_outcomes(graph, traces.reward, traces.evidence["agent_reward"].array)
    )
    acted = np.zeros(graph.num_agents, bool)
    acted[np.asarray(graph.agent_ids)[np.asarray(graph.trained_mask)]] = True
    counted = scored & acted[: n.agents]
    group = np.asarray(graph.group_ids)[np.asarray(graph.agent_trace)[: n.agents]][counted]
    names = np.asarray(graph.agent_name_ids)[: n.agents][counted]
    pairs, _, key, _ = distinct_columns(group, names)
    _, apart = distinguishable(outcome[counted], key, pairs.shape[1])
    apart &= ~_all_shared(graph, key, np.asarray(graph.agent_trace)[: n.agents][counted], pairs.shape[1])
    found = np.zeros(groups, bool)
    found[pairs[0][apart]] = True
    return found


def exact_outcomes(traces: Traces) -> tuple[np.ndarray, bool]:
    """The outcome of each real trace, float64, and whether it has the log's double precision, as its channel does."""
    reward = np.asarray(traces.reward[: traces.sizes.traces])
    for name, channel in traces.evidence.items():
        if name.startswith("rewards."):
            logged = np.asarray(channel.array[: len(reward)], np.float64)
            if np.array_equal(logged.astype(np.float32), reward, equal_nan=True):
                return logged, True
    return reward.astype(np.float64), False


def refuse_coarse(what: str, values: np.ndarray, differences: np.ndarray) -> None:
    """Refuse numbers of single precision whose rounding is above a hundredth of the differences that are wanted.

    Args:
      what: names the numbers.
      values: float, NaN where there is none.
      differences: float, in double precision where the log has it.

    Raises:
      CreditError: they are so.
    """
    size, most = (float(np.nanmax(np.abs(x), initial=0)) for x in (values, differences))
    if 0 < most < 100 * np.finfo(np.float32).eps * size:
        raise CreditError(
            f"{what} of {size:.6g} with differences of {most:.3g}: single precision does not hold them; subtract an "
            "offset"
        )


def _exact_returns(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """The returns with outcomes in the log's double precision, and how far rounding may put each off: float64 [traces].

    `Traces.reward` has single precision; the log's channel has double. Rewards at events, and outcomes without a
    channel, as of columns, have single precision only.
    """
    n, single = traces.sizes, np.finfo(np.float32).eps
    outcome, is_double = exact_outcomes(traces)
    reward = np.asarray(traces.reward[: n.traces], np.float64)
    exact = returns(traces) + np.where(np.isfinite(reward), outcome - reward, 0)
    error = np.zeros(n.traces) if is_double else float(single) * np.abs(reward)
    step = traces.evidence.get("event_reward")
    if step is not None:
        sizes = np.abs(np.where(step.mask, step.array, 0)[: n.events].astype(np.float64))
        error += single * np.bincount(np.asarray(traces.graph.trace_ids[: n.events]), sizes, n.traces)
    return exact, error + rounding(exact)


def _single_returns(traces: Traces) -> np.ndarray:
    """The returns as methods add them up: float32 [traces]."""
    n, step = traces.sizes, traces.evidence.get("event_reward")
    reward = np.asarray(traces.reward[: n.traces])
    if step is None:
        return reward
    terms = np.where(step.mask, step.array, 0)[: n.events]
    return single_sums(reward, terms, np.asarray(traces.graph.trace_ids[: n.events]))


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
    single = _single_returns(traces)[scored]
    greatest, apart = distinguishable(single, key, groups)
    most, least, off = np.full(groups, -np.inf), np.full(groups, np.inf), np.zeros(groups)
    np.maximum.at(most, key, exact[scored])
    np.minimum.at(least, key, exact[scored])
    np.maximum.at(off, key, error[scored])
    spread = most - least  # minus infinity for a group without outcomes
    size, several = np.maximum(np.abs(most), np.abs(least)), np.bincount(key, minlength=groups) > 1
    differs = (spread > off) | ((size >= WHOLE) & several)  # or did before they were read
    words = np.where(spread > np.finfo(np.float32).max, "wide", np.where(differs, "fine", ""))
    seen = np.where(rounded_differences(exact[scored], key, groups, single), "coarse", "")
    shared = apart & _all_shared(traces.graph, key, np.flatnonzero(scored), groups)
    words = np.where(shared, "shared", np.where(apart, seen, words))
    return GroupDifferences(greatest, apart & ~shared, words.tolist())


def _all_shared(graph: EventGraph, key: np.ndarray, trace: np.ndarray, keys: int) -> np.ndarray:
    """Keys of which all samples are of traces that share a choice: bool [keys]; `key` and trace of each sample."""
    found = np.zeros(keys, bool)
    if graph.cluster_ids is not None:
        found[key[without_independent(key, np.asarray(graph.cluster_ids)[trace])]] = True
    return found


def coarse_beside(traces: Traces) -> np.ndarray:
    """Groups with evidence that rounding may have moved by 1 % of its largest difference from outcomes: bool [groups].

    A log's evidence is kept in single precision, and what it was is not known. Integers below 2**24 were not moved.
    """
    exact, _ = _exact_returns(traces)
    group, scored = np.asarray(traces.graph.group_ids[: len(exact)]), np.isfinite(exact)
    groups = int(group.max(initial=-1)) + 1
    is_coarse = np.zeros(groups, bool)
    for name in LIKE_OUTCOMES & traces.evidence.keys():
        rows, amounts = traces.evidence[name].rows, traces.evidence[name].amounts.astype(np.float64)
        of = group[np.asarray(traces.graph.trace_ids)[rows] if name in EVENT_EVIDENCE else rows]
        numbers, key = np.concatenate([exact[scored], amounts]), np.concatenate([group[scored], of])
        most, least, off = np.full(groups, -np.inf), np.full(groups, np.inf), np.zeros(groups)
        np.maximum.at(most, key, numbers)
        np.minimum.at(least, key, numbers)
        kept = (amounts == np.floor(amounts)) & (np.abs(amounts) < 2**24)
        np.maximum.at(off, of, np.where(kept, 0, np.finfo(np.float32).eps / 2 * np.abs(amounts)))
        size = np.maximum(np.abs(most), np.abs(least))
        is_coarse |= (off > KEPT * (most - least)) & (most - least > RELATIVE * size)
    return is_coarse


def outweighed(
    graph: EventGraph, reward: Any, taken: Mapping[str, Any], results: Any, answered: Any, *, own_outcome: bool
) -> np.ndarray:
    """Groups whose results single precision rounds by over 1 %, beside the evidence that a method took: bool [groups].

    Outcomes alone are looked at by `group_differences`, which knows what they were in double precision. A mean over
    runs without an agent (`solo_reward`) is no level of the method that reads it.

    Args:
      graph: the batch.
      reward: float [T].
      taken: evidence of the call by name; [E] or [T], NaN where there is none; in double precision where it is known.
      results: float [E], credit minus baseline.
      answered: bool [E], events with a result.
      own_outcome: whether outcomes and rewards at events are among the numbers, as of `Credit.own_outcome`.
    """
    of_trace, real = np.asarray(graph.group_ids), np.asarray(graph.trace_mask)
    of_event, groups = of_trace[np.asarray(graph.trace_ids)], int(of_trace[real].max(initial=-1)) + 1
    levels = LIKE_OUTCOMES.intersection(taken) - {"solo_reward"}
    arrays = {name: taken[name] for name in levels if taken[name] is not None}
    if not arrays:
        return np.zeros(groups, bool)
    paid = {"reward": reward, **{name: taken[name] for name in ("event_reward",) if taken.get(name) is not None}}
    numbers, key, unit = [], [], 0.0
    for name, column in {**(paid if own_outcome else {}), **arrays}.items():
        at_events = name in EVENT_EVIDENCE
        amounts, of = np.asarray(column, np.float64), of_event if at_events else of_trace
        stated = np.isfinite(amounts) & (np.asarray(graph.event_mask) if at_events else real)
        numbers.append(amounts[stated])
        key.append(of[stated])
        unit = max(unit, np.max(np.abs(amounts[stated]), initial=0)) if name in paid else unit
    known = np.asarray(answered)
    found = np.asarray(results, np.float64)[known]
    return outweighed_results(
        np.concatenate(numbers), np.concatenate(key), found, of_event[known], groups, unit or np.inf
    )


def precision_notes(traces: Traces, rounded: np.ndarray | bool = False) -> list[str]:
    """A line for each way in which single precision changes differences between outcomes, and the groups.

    `rounded`: further groups, bool [groups], as of `outweighed`.
    """
    found: dict[str, list[str]] = {}
    names = dict.fromkeys(traces.traces["group"].to_pylist())
    near = coarse_beside(traces)
    near |= rounded[: len(near)] if isinstance(rounded, np.ndarray) else rounded
    groups = zip(names, group_differences(traces).unresolved, near.tolist(), strict=True)
    for name, why, beside in groups:
        if beside or why not in ("", "shared"):
            found.setdefault("coarse" if why in ("", "shared") else why, []).append(name)
    return [precision_note(groups, why) for why, groups in found.items()]


def precision_note(groups: list[str], why: str = "coarse") -> str:
    """The line on these groups, by a key of `UNRESOLVED`."""
    return f"{counted(len(groups), 'group')} whose {UNRESOLVED[why]}: {first_names(groups)}"


SHOWN = 20  # names listed before "…"


def first_names(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = f", … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
