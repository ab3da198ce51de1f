"""Metrics of a batch of rows that a trainer logs each step."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from graphs.distinct_columns import distinct_columns

if TYPE_CHECKING:
    from credit.methods.method_row import Seen
    from credit.tables.batch_rows import Rows
    from graphs.event_graph import EventGraph

__all__ = [
    "Batch",
    "Facts",
    "batch_metrics",
    "compared_with_none",
    "condition_unbiased",
    "group_spread",
    "no_metrics",
    "refusals",
    "refused_groups",
    "several_agents",
    "silent_groups",
]


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
      unbiased: whether it is, by what a batch shows; empty where that is unknown.
      population: what a sample of it is, where it compares by a key.
      needs, columns: the evidence and the columns that it needs.
      in_groups: whether it compares the traces of a group.
      key: with whom it compares a row, where that is finer than the task and the graph has it.
      across: whether the call names a key by which it compares traces of a batch.
      reads_order: whether the order of a trace's rows moves its numbers, without rewards at events and with them; None
        where evidence may make it so.
      reads_agents: whether that of rows of several agents does.
      reads_rounds: whether that of those that act at once does, and of one agent's at once.
    """

    unbiased: Mapping[Seen, bool | None]
    needs: tuple[str, ...]
    columns: tuple[str, ...] = ()
    in_groups: bool = False
    key: tuple[str, ...] = ()
    reads_order: tuple[bool | None, ...] = (None, True)
    across: bool = False
    population: str = "trace"
    reads_agents: tuple[bool, ...] = (False, False)
    reads_rounds: tuple[tuple[bool, bool], ...] = ((False, False), (False, False))


def batch_metrics(
    batch: Batch,
    rows: int,
    valid: np.ndarray,
    advantage: np.ndarray,
    facts: Facts,
    *,
    ordered: bool | None = True,
    paid_once: bool | None = None,
) -> dict[str, float]:
    """Metrics of one batch, all shares between 0 and 1 unless the name says otherwise.

    Args:
      batch: the rows that entered.
      valid: whether a row has an answer: bool [rows that entered].
      advantage: the answers: float [rows that entered].
      facts: of the method and its options.
      rows: how many ran, with a reward or without; rows that only fill up the batch are in no metric.
      ordered: whether rows stand in the order of their turns, as of `order_of_turns`, or the method does not read it.
      paid_once: whether event rewards are something else than the outcomes; None where that is not known.

    rows, traces, groups   counts of what entered
    agents, turns          names of agents, and turns
    unscored               rows without a reward
    unpaid                 rows whose `event_reward` is null, which counts 0; absent without the column
    copied                 rows that equal an earlier one in every column, of `credit.tables.copied_rows`,
                           which compares no sampled tokens here, as it does for `credit.from_columns`
    refused                of the rows that entered and are trained, those without an answer; refused/NAME by reason
    zero                   rows with an answer of exactly 0
    groups_that_teach      groups in which a row has an answer other than 0, or than rounding where all returns are
                           equal, whatever the method compares; the others are silent, or refused as a whole
    groups_by_event_rewards   those among groups_that_teach whose outcomes are equal, so that rewards at events teach
                           alone; absent without the column
    groups_of_one          groups, or with `by=` its keys, of one trace, which have nothing to be compared with
    keys_of_one            rows whose key one trace has, such as an agent of a task: they are refused, keep the raw
                           reward, or are compared with other rows of their trace, as the method says; absent where a
                           method compares by something else
    advantage_mean, advantage_std   over the rows with an answer, before `log_ratio`, as all that is of advantages
    condition/NAME         1 where a condition of the method holds in this batch, 0 where it is broken, absent where
                           that is not known: "unbiased" (of `condition_unbiased`),
                           "paid_once" (`event_reward` is not the outcome again),
                           "compared" (no row refused but those of frozen agents; and where the method compares
                           traces of a group or key, none with an answer of which there is one trace), "scored" (every
                           row scored), "ordered" (no row before an earlier turn, where the method reads the order),
                           "resolved" (no group whose differences single precision, or the type of a column, changes
                           by more than 1 %)
    """
    from estimators.base import Reason

    count, resolved = group_spread(batch)
    ids, teach, _ = _groups_answered(batch)
    answered = advantage[valid].astype(np.float64)  # the square of 1e30 is beyond single precision
    entered = len(batch.rows.event)
    reasons = np.bincount(batch.reason[:entered], minlength=len(Reason))
    alone, several = _alone(batch)
    of_one = {} if batch.keys is None else {"keys_of_one": np.count_nonzero(alone) / entered}
    count = count if facts.key or batch.keys is None else 1 + several  # one trace, or several
    trained = entered - int(reasons[Reason.FROZEN])
    compared = reasons[Reason.VALID] == trained and not compared_with_none(batch, facts).any()
    metrics = {
        "rows": float(rows),
        "traces": float(np.count_nonzero(batch.graph.trace_mask)),
        "groups": float(len(teach)),
        "agents": 1.0 + int(batch.graph.agent_name_ids.max()),  # ids of rows skip no number, and all rows act
        "turns": 1.0 + int(batch.graph.turn_ids.max()),
        "unscored": 1 - entered / rows,
        "refused": 1 - len(answered) / trained if trained else 0.0,
        "zero": np.count_nonzero(answered == 0) / len(answered) if len(answered) else 0.0,
        "groups_that_teach": np.count_nonzero(teach) / len(teach),
        **_by_event_rewards(batch, ids[teach], len(teach)),
        "groups_of_one": np.count_nonzero(count == 1) / len(count),
        **of_one,
        "advantage_mean": float(answered.mean()) if len(answered) else 0.0,
        "advantage_std": float(answered.std()) if len(answered) else 0.0,
        "condition/compared": float(compared),
        "condition/scored": float(entered == rows),
        **({} if ordered is None else {"condition/ordered": ordered}),
        "condition/resolved": float(resolved),
        **({} if paid_once is None else {"condition/paid_once": float(paid_once)}),
    }
    for code in np.flatnonzero(reasons).tolist():
        if code not in (Reason.VALID, Reason.FROZEN):
            metrics[f"refused/{Reason(code).name.lower()}"] = float(reasons[code]) / trained
    return {f"credit/{name}": float(value) for name, value in metrics.items()}  # NumPy counts are scalars of its own


def _alone(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose key, or group, one trace has; and of each key or group, whether several have it."""
    entered = len(batch.rows.event)
    trace = np.asarray(batch.graph.trace_ids)[:entered]  # it rises
    key = (np.asarray(batch.graph.group_ids)[trace] if batch.keys is None else batch.keys[:entered]).astype(np.int64)
    first, last = np.full((2, int(key.max()) + 2), -1)  # trace of each key; the key -1 is of rows without one
    last[key] = trace  # of several assignments to one place the last counts
    first[key[::-1]] = trace[::-1]
    return (first == last)[key], (first < last)[last >= 0]


def compared_with_none(batch: Batch, facts: Facts) -> np.ndarray:
    """Rows that have an answer and no other trace to compare, of a method that compares: bool [rows that entered].

    Args:
      batch: the rows that entered.
      facts: of the method and its options.
    """
    from estimators.base import Reason

    valid: np.ndarray = batch.reason[: len(batch.rows.event)] == Reason.VALID
    compares = facts.in_groups or facts.key or (facts.across and batch.keys is not None)
    return valid & _alone(batch)[0] if compares else np.zeros_like(valid)


def _by_event_rewards(batch: Batch, teaching: np.ndarray, groups: int) -> dict[str, float]:
    """`groups_by_event_rewards`, of the ids of groups that teach."""
    paid = batch.columns.get("event_reward")
    if paid is None:
        return {}
    group = np.asarray(batch.graph.group_ids)[np.asarray(batch.graph.trace_ids)[batch.rows.event]]
    outcome = batch.columns["reward"] + np.nan_to_num(batch.columns.get("agent_reward", 0.0))
    _, first, of = np.unique(group, return_index=True, return_inverse=True)
    apart = group[outcome != outcome[first][of]]
    alone = np.isin(teaching, group[paid != 0]) & ~np.isin(teaching, apart)
    return {"groups_by_event_rewards": np.count_nonzero(alone) / groups}


def condition_unbiased(
    batch: Batch,
    facts: Facts,
    metrics: Mapping[str, float],
    weighs_traces: bool | None,
    *,
    version_told: bool = False,
    lost: int = 0,
    doubted: bool = False,
) -> dict[str, float]:
    """`credit/condition/unbiased`: whether the mean of the policy gradient is right, as far as a batch tells.

    0     the method with its options has a bias (`Method.unbiased_with`) that needs nothing else, or that a batch
          shows which is not `doubted`; "ordered", "resolved" or "paid_once" is broken, a weight was truncated, or
          rewards of a trace were lost
    1     none of that, and rows count as drawn by the trained policy: no version says otherwise, or `log_ratio` has one
          number for each trace, taken for the sum over its decisions; values are taken as stated, of the state before
          the action
    none  no row has an answer; the batch is `doubted`; nobody knows of the method; what would bias it may happen, by
          choice or chance, and did not here, which is no proof; an action may decide who is left out, where a trace has
          no outcome or some rows of a group are refused (other than frozen ones); without `log_ratio`, `policy_version`
          is older than the trained version or unknown in a row, which biases unless the trainer's loss weighs, whomever
          the method compares; or `log_ratio` differs within a trace: each weighs a part, as in PPO; or it is 0
          everywhere, and rows are older

    Nobody who passes no `trained_version` says which policy is trained: the newest of the batch is then assumed to be,
    and all rows where none states a version.

    Args:
      batch: the rows that entered.
      facts: of the method and its options.
      metrics: of the batch and its weights.
      weighs_traces: as of `row_columns.weighs_traces`; None without `log_ratio`.
      version_told: whether it is told which version is trained.
      lost: as of `rewards_left_out`.
      doubted: whether rows may be others than they seem: copies, of several agents without a trace, or of agents at
        once, in an order that the method reads and nothing tells; or a row may be lost, as of `lost_rows`; or a trace
        begins again, as of `merged_rollouts`; or values are no expectations, as of `saw_later`; or what a row earned is
        null.
    """
    from estimators.base import Reason

    if not facts.unbiased or not (batch.reason[batch.rows.event] == Reason.VALID).any():
        return {}
    answers = set(facts.unbiased.values())
    if lost or answers == {False}:
        return {"credit/condition/unbiased": 0.0}
    if doubted:
        return {}
    unbiased = answers.pop() if len(answers) == 1 else facts.unbiased[_seen(batch, facts.population)]
    if unbiased is None:
        return {}
    broken = any(metrics.get(f"credit/condition/{name}") == 0 for name in ("ordered", "resolved", "paid_once"))
    if not unbiased or broken or metrics.get("credit/weights_truncated"):
        return {"credit/condition/unbiased": 0.0}
    told = version_told or "credit/policy_age" in metrics
    older = metrics.get("credit/policy_age") or (told and metrics["credit/versions_unknown"])
    weighed = not older if weighs_traces is None else weighs_traces
    known = weighed and not metrics["credit/unscored"] and not _partly_refused(batch)
    return {"credit/condition/unbiased": 1.0} if known else {}


def _seen(batch: Batch, population: str) -> Seen:
    """What a batch shows of that by which a comparison may be biased."""
    from credit.methods.method_row import Seen
    from estimators.base import Reason

    reason = batch.reason[: len(batch.rows.event)]
    trace, group = (np.asarray(ids) for ids in (batch.graph.trace_ids, batch.graph.group_ids))
    trace, traces = trace[: len(reason)], len(group)
    key = (group[trace] if batch.keys is None else batch.keys[: len(reason)]).astype(np.int64)
    units = {"agent": np.asarray(batch.graph.agent_ids)[: len(reason)], "row": np.arange(len(reason))}
    valid, pair = reason == Reason.VALID, key * traces + trace  # negative where an action has no key
    ids, place = np.unique(pair[valid & (key >= 0)], return_inverse=True)
    samples = np.unique(place * len(batch.reason) + units.get(population, trace)[valid & (key >= 0)])
    shared = np.unique(pair[(valid | (reason == Reason.FROZEN)) & (key >= 0)]) // traces
    lone = np.isin(key, np.flatnonzero(np.bincount(shared) == 1))
    several = np.bincount(group[np.asarray(batch.graph.trace_mask)], minlength=len(group))[group[trace]] > 1
    paid = np.nan_to_num(batch.columns.get("event_reward", np.zeros(0)))
    return Seen(
        repeated=len(samples) > len(ids),
        alone=bool(((lone & valid) | (several & (reason == Reason.SINGLETON))).any()),
        keyless=bool(np.isin(reason, (Reason.NO_EVIDENCE, Reason.SHARED_PREFIX)).any()),
        rewarded=bool(paid.any()) or (None if "event_reward" in batch.columns else False),
    )


def _partly_refused(batch: Batch) -> bool:
    """Whether a group has rows with an answer and rows that lack one, other than those of frozen agents."""
    from estimators.base import Reason

    reason = batch.reason[: len(batch.rows.event)]
    group = np.asarray(batch.graph.group_ids)[np.asarray(batch.graph.trace_ids)[: len(reason)]]
    valid = reason == Reason.VALID
    return bool(np.isin(group[~valid & (reason != Reason.FROZEN)], group[valid]).any())


def no_metrics(rows: int, facts: Facts) -> dict[str, float]:
    """Metrics of a batch in which no row has a reward: names that other batches have, so that curves go on.

    Conditions of a comparison that was not made, and the age of rows that did not enter, are absent.

    Args:
      rows: how many ran.
      facts: of the method and its options.
    """
    nothing = ("traces", "groups", "agents", "turns", "copied", "refused", "zero", "groups_that_teach", "groups_of_one")
    metrics = {"rows": float(rows), "unscored": float(rows > 0), **dict.fromkeys(nothing, 0.0)}
    metrics |= {"advantage_mean": 0.0, "advantage_std": 0.0, **({"keys_of_one": 0.0} if facts.key else {})}
    metrics["condition/scored"] = float(rows == 0)
    return {f"credit/{name}": value for name, value in metrics.items()}


def several_agents(batch: Batch) -> str:
    """What a group whose rows name several agents has; empty where each group has one.

    Args:
      batch: the rows that entered.
    """
    graph, real = batch.graph, np.asarray(batch.graph.agent_mask)
    group = np.asarray(graph.group_ids)[np.asarray(graph.agent_trace)[real]]
    pairs = distinct_columns(group, np.asarray(graph.agent_name_ids)[real])
    return "several agents in a group" if len(pairs.first) > len(np.unique(group)) else ""


def group_spread(batch: Batch) -> tuple[np.ndarray, bool]:
    """The number of traces of each group, and whether the differences of returns are those of the columns.

    Methods compute in single precision, and the columns have double: int [G], bool. Where agents have outcomes of their
    own, those of the agents of one name are compared.

    Args:
      batch: the rows that entered.
    """
    from graphs.floats import rounded_differences

    real = np.asarray(batch.graph.trace_mask)
    group = np.asarray(batch.graph.group_ids)[real]
    count = np.bincount(group)
    present = count[count > 0]
    of_agents = "agent_reward" in batch.columns and not np.isnan(batch.columns["agent_reward"]).all()
    if not of_agents:  # what was warned of is no resolved batch
        return present, not batch.rows.names.rounded.any()
    key, earned = _of_agents(batch)
    rounded = rounded_differences(earned, key, int(key.max()) + 1)
    return present, not (rounded.any() or batch.rows.names.rounded.any())


def _of_agents(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Agents that have an outcome: the key of each, and what each earned."""
    graph, of_agents = batch.graph, batch.columns["agent_reward"]
    stated = ~np.isnan(of_agents)
    agents, first = np.unique(np.asarray(graph.agent_ids)[batch.rows.event[stated]], return_index=True)
    group = np.asarray(graph.group_ids)[np.asarray(graph.agent_trace)[agents]]
    key = distinct_columns(group, np.asarray(graph.agent_name_ids)[agents]).of
    return key, (of_agents + batch.columns["reward"])[stated][first]


def silent_groups(batch: Batch) -> list[Any]:
    """Ids of the groups in which every answer of the method is 0, or rounding of equal returns.

    Args:
      batch: the rows that entered.
    """
    ids, _, silent = _groups_answered(batch)
    names: list[Any] = batch.rows.names.groups.take(pa.array(ids[silent])).to_pylist()
    return names


def refusals(reason: np.ndarray) -> dict[str, int]:
    """Why rows have no answer, in words, and how many; rows of frozen agents, which are meant to have none, only alone.

    Args:
      reason: `Reason` codes of rows.

    Examples:
      >>> refusals(np.array([4, 16, 0, 4])), refusals(np.array([16]))
      ({'nothing to compare with: the group has one member': 2}, {'an action of a frozen agent': 1})
    """
    from estimators.base import REASONS, Reason

    count = np.bincount(reason, minlength=len(Reason))
    if count.sum() > count[Reason.FROZEN]:
        count[Reason.FROZEN] = 0
    return {REASONS[code]: int(count[code]) for code in np.argsort(-count, kind="stable") if code and count[code]}


def refused_groups(batch: Batch) -> dict[str, list[Any]]:
    """Ids of the groups of which the method answers no row, by its reasons in words.

    Args:
      batch: the rows that entered.
    """
    entered = len(batch.rows.event)
    group = np.asarray(batch.graph.group_ids)[np.asarray(batch.graph.trace_ids)[:entered]]
    reason = batch.reason[:entered]
    refused = np.setdiff1d(group, group[reason == 0])
    found: dict[str, list[Any]] = {}
    for one, name in zip(refused, batch.rows.names.groups.take(pa.array(refused)).to_pylist(), strict=True):
        found.setdefault("; ".join(refusals(reason[group == one])), []).append(name)
    return found


def _groups_answered(batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from credit.watching.step_numbers import groups_answered

    entered = len(batch.rows.event)  # their events stand before the padding
    group = np.asarray(batch.graph.group_ids)[np.asarray(batch.graph.trace_ids)[:entered]]
    advantage = batch.advantage[:entered]
    told = np.abs(advantage) > batch.rows.names.noise[group]
    return groups_answered(group, batch.reason[:entered] == 0, np.where(told, advantage, 0))
