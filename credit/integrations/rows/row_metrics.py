"""Metrics of a batch of rows that a trainer logs each step."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from credit.tables.batch_rows import Rows
    from graphs.event_graph import EventGraph

__all__ = [
    "Batch",
    "Facts",
    "MissingColumnWarning",
    "batch_metrics",
    "group_spread",
    "no_metrics",
    "several_agents",
    "silent_groups",
]


class MissingColumnWarning(UserWarning):
    """A batch tells apart nothing of what a method compares: a column was forgotten, or its name misspelt."""


class Batch(NamedTuple):
    """Inputs and results of a method on one batch, for reports.

    Attributes:
      columns: the trainer's columns of the rows that entered, in the order in which they stand in a trace.
      graph, reward, evidence: as the method got them, padded.
      rows: leads from events to those rows.
      advantage, reason: [E], the answer.
      keys: int [E], what the method compares within, where `by=` or `Facts.key` names it; -1 where a part is absent.
      of_names: what the method was passed besides: the state that it began with, the agents that an option names.
    """

    columns: Mapping[str, Any]
    graph: EventGraph
    reward: np.ndarray
    rows: Rows
    evidence: Mapping[str, np.ndarray]
    advantage: np.ndarray
    reason: np.ndarray
    keys: np.ndarray | None = None
    of_names: Mapping[str, Any] = MappingProxyType({})


class Facts(NamedTuple):
    """Properties of a method.

    Attributes:
      unbiased: whether it is; None where that is unknown.
      needs, columns: the evidence and the columns that it needs.
      in_groups: whether it compares the traces of a group.
      key: with whom it compares a row, where that is finer than the task and the graph has it.
      across: whether the call names a key by which it compares traces of a batch.
      reads_order: whether the order of a trace's rows moves its numbers, without rewards at events and with them; None
        where evidence may make it so.
    """

    unbiased: bool | None
    needs: tuple[str, ...]
    columns: tuple[str, ...] = ()
    in_groups: bool = False
    key: tuple[str, ...] = ()
    reads_order: tuple[bool | None, bool] = (None, True)
    across: bool = False


def batch_metrics(
    batch: Batch,
    rows: int,
    valid: np.ndarray,
    advantage: np.ndarray,
    facts: Facts,
    *,
    ordered: bool | None = True,
) -> dict[str, float]:
    """Metrics of one batch, all shares between 0 and 1 unless the name says otherwise.

    Args:
      rows: how many ran, with a reward or without; rows that only fill up the batch are in no metric.
      ordered: whether rows stand in the order of their turns, as of `order_of_turns`, or the method does not read it.

    rows, traces, groups   counts of what entered
    agents, turns          names of agents, and turns
    unscored               rows without a reward
    copied                 rows that equal an earlier one in every column, of `credit.tables.copied_rows`
    refused                rows that entered and have no answer; refused/NAME by reason
    zero                   rows with an answer of exactly 0
    groups_that_teach      groups in which a row has an answer other than 0, whatever the method compares; the others
                           are silent, or refused as a whole
    groups_of_one          groups, or with `by=` its keys, of one trace, which have nothing to be compared with
    keys_of_one            rows whose key one trace has, such as an agent of a task: they are refused, keep the raw
                           reward, or are compared with other rows of their trace, as the method says; absent where a
                           method compares by something else
    advantage_mean, advantage_std   over the rows with an answer, before `log_ratio`, as all that is of advantages
    policy_age, policy_age_mean   versions between the newest row of the batch and its oldest one, and its mean
    groups_of_several_versions    groups with rows of several versions
    condition/NAME         1 where a condition of the method holds in this batch, 0 where it is broken, absent where
                           that is not known: "unbiased" (of the method with its options, as of `Method.unbiased_with`),
                           "compared" (no row refused but those of frozen agents; and where the method compares
                           traces of a group or key, none with an answer of which there is one trace), "scored" (every
                           row scored), "ordered" (no row before an earlier turn, where the method reads the order),
                           "resolved" (no group whose differences, or baseline, single precision changes by more than
                           1 %)
    """
    from estimators.base import Reason

    count, resolved = group_spread(batch)
    _, teach, _ = _groups_answered(batch)
    answered = advantage[valid].astype(np.float64)  # the square of 1e30 is beyond single precision
    entered = len(batch.rows.event)
    reasons = np.bincount(batch.reason[:entered], minlength=len(Reason))
    of_one = {}
    trace = np.asarray(batch.graph.trace_ids)[:entered]  # it rises
    if batch.keys is not None:
        key = batch.keys[:entered].astype(np.int64)
        first, last = np.full((2, int(key.max()) + 2), -1)  # trace of each key; the key -1 is of rows without one
        last[key] = trace  # of several assignments to one place the last counts
        first[key[::-1]] = trace[::-1]
        alone = (first == last)[key]
        of_one = {"keys_of_one": np.count_nonzero(alone) / entered}
        count = count if facts.key else 1 + (first < last)[last >= 0]  # one trace, or several
    elif (count == 1).any():
        group = np.asarray(batch.graph.group_ids)
        alone = (np.bincount(group[np.asarray(batch.graph.trace_mask)])[group] == 1)[trace]
    else:
        alone = np.zeros(entered, bool)
    compared = reasons[Reason.VALID] + reasons[Reason.FROZEN] == entered
    if facts.in_groups or facts.key or (facts.across and batch.keys is not None):
        compared &= not (alone & (batch.reason[:entered] == Reason.VALID)).any()
    metrics = {
        "rows": float(rows),
        "traces": float(np.count_nonzero(batch.graph.trace_mask)),
        "groups": float(len(teach)),
        "agents": 1.0 + int(batch.graph.agent_name_ids.max()),  # ids of rows skip no number, and all rows act
        "turns": 1.0 + int(batch.graph.turn_ids.max()),
        "unscored": 1 - entered / rows,
        "refused": 1 - len(answered) / entered,
        "zero": np.count_nonzero(answered == 0) / len(answered) if len(answered) else 0.0,
        "groups_that_teach": np.count_nonzero(teach) / len(teach),
        "groups_of_one": np.count_nonzero(count == 1) / len(count),
        **of_one,
        "advantage_mean": float(answered.mean()) if len(answered) else 0.0,
        "advantage_std": float(answered.std()) if len(answered) else 0.0,
        "condition/compared": float(compared),
        "condition/scored": float(entered == rows),
        **({} if ordered is None else {"condition/ordered": ordered}),
        "condition/resolved": float(resolved),
    }
    if "policy_version" in batch.columns:
        metrics |= _versions(batch)
    if facts.unbiased is not None:
        metrics["condition/unbiased"] = float(facts.unbiased)
    for code in np.flatnonzero(reasons).tolist():
        if code != Reason.VALID:
            metrics[f"refused/{Reason(code).name.lower()}"] = float(reasons[code]) / entered
    return {f"credit/{name}": float(value) for name, value in metrics.items()}  # NumPy counts are scalars of its own


def no_metrics(rows: int, facts: Facts) -> dict[str, float]:
    """Metrics of a batch in which no row has a reward: names that other batches have, so that curves go on.

    Conditions of a comparison that was not made, and the age of rows that did not enter, are absent.
    """
    nothing = ("traces", "groups", "agents", "turns", "copied", "refused", "zero", "groups_that_teach", "groups_of_one")
    metrics = {"rows": float(rows), "unscored": float(rows > 0), **dict.fromkeys(nothing, 0.0)}
    metrics |= {"advantage_mean": 0.0, "advantage_std": 0.0, **({"keys_of_one": 0.0} if facts.key else {})}
    metrics["condition/scored"] = float(rows == 0)
    if facts.unbiased is not None:
        metrics["condition/unbiased"] = float(facts.unbiased)
    return {f"credit/{name}": value for name, value in metrics.items()}


def _versions(batch: Batch) -> dict[str, float]:
    """How old rows are in versions of the policy; nothing where no row states its own."""
    version = batch.columns["policy_version"]
    known = ~np.isnan(version)
    if not known.any():
        return {}
    version = version[known]
    group = np.asarray(batch.graph.group_ids)[np.asarray(batch.graph.trace_ids)[batch.rows.event[known]]]
    least, most = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(least, group, version)
    np.maximum.at(most, group, version)
    ages = {"policy_age": version.max() - version.min(), "policy_age_mean": version.max() - version.mean()}
    return {**ages, "groups_of_several_versions": np.count_nonzero(most > least) / len(np.unique(group))}


def several_agents(batch: Batch) -> str:
    """What a group whose rows name several agents has; empty where each group has one."""
    graph, real = batch.graph, np.asarray(batch.graph.agent_mask)
    group = np.asarray(graph.group_ids)[np.asarray(graph.agent_trace)[real]]
    pairs = np.unique(np.stack([group, np.asarray(graph.agent_name_ids)[real]]), axis=1)
    return "several agents in a group" if pairs.shape[1] > len(np.unique(group)) else ""


def group_spread(batch: Batch) -> tuple[np.ndarray, bool]:
    """The number of traces of each group, and whether the differences of returns are those of the columns.

    Methods compute in single precision, and the columns have double: int [G], bool. Where agents have outcomes of their
    own, those of the agents of one name are compared.
    """
    from graphs.floats import rounded_differences, single_sums

    real = np.asarray(batch.graph.trace_mask)
    group = np.asarray(batch.graph.group_ids)[real]
    count = np.bincount(group)
    present = count[count > 0]
    of_agents = "agent_reward" in batch.columns and not np.isnan(batch.columns["agent_reward"]).all()
    if not of_agents and "event_reward" not in batch.columns:
        return present, not batch.rows.names.rounded.any()
    if of_agents:
        key, earned = _of_agents(batch)
        return present, not rounded_differences(earned, key, int(key.max()) + 1).any()
    trace, terms = np.asarray(batch.graph.trace_ids)[batch.rows.event], batch.columns["event_reward"]
    outcome = np.zeros(len(real))
    outcome[trace] = batch.columns["reward"]
    earned, single = outcome + np.bincount(trace, terms, len(real)), single_sums(outcome, terms, trace)
    return present, not rounded_differences(earned[real], group, int(group.max()) + 1, single[real]).any()


def _of_agents(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Agents that have an outcome: the key of each, and what each earned."""
    graph, of_agents = batch.graph, batch.columns["agent_reward"]
    stated = ~np.isnan(of_agents)
    agents, first = np.unique(np.asarray(graph.agent_ids)[batch.rows.event[stated]], return_index=True)
    group = np.asarray(graph.group_ids)[np.asarray(graph.agent_trace)[agents]]
    pairs = np.stack([group, np.asarray(graph.agent_name_ids)[agents]])
    _, key = np.unique(pairs, axis=1, return_inverse=True)
    return key, (of_agents + batch.columns["reward"])[stated][first]


def silent_groups(batch: Batch) -> list[Any]:
    """Ids of the groups in which every answer of the method is 0, as `groups_answered` says."""
    ids, _, silent = _groups_answered(batch)
    names: list[Any] = batch.rows.names.groups.take(pa.array(ids[silent])).to_pylist()
    return names


def _groups_answered(batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from credit.watching.step_numbers import groups_answered

    entered = len(batch.rows.event)  # their events stand before the padding
    group = np.asarray(batch.graph.group_ids)[np.asarray(batch.graph.trace_ids)[:entered]]
    return groups_answered(group, batch.reason[:entered] == 0, batch.advantage[:entered])
