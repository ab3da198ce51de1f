"""Rows of a trainer as an event graph: equal-length columns in, padded arrays out, no Python loop over rows.

    graph, reward, rows = credit.from_columns(group=uid, trace=traj_uid, agent=agent_id, reward=score, events=4096)
    advantage = rows.gather(credit.dr_mas(graph, reward).advantage)      # [N], in the trainer's order

A row is one model call, hence one action (`docs/data-model.md`). Rows need not be sorted.
"""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from credit.tables.batch_rows import RowNames, Rows
from credit.tables.column_edges import codes_of_types, row_edges
from credit.tables.column_teams import team_of_rows
from credit.tables.column_values import (
    PAID,
    ColumnError,
    as_ids,
    begins,
    factorise,
    finite,
    in_range,
    lost_to_type,
    named,
    nulls,
    numbers,
    renumber,
    truths,
    unlike_indices,
)
from credit.tables.copied_rows import copied_rows
from credit.tables.merged_rollouts import said_of_merged
from credit.tables.row_order import (
    moments_of_places,
    order_of_turns,
    rounds_at_once,
    rounds_of_places,
    rows_in_order,
    untold_order,
)
from credit.tables.row_segments import Segments
from credit.tables.row_tokens import SAMPLED, tokens_of_rows
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, PrecisionWarning
from graphs.event_graph import EventGraph, EventType
from graphs.event_types import ACTION_TYPES
from graphs.floats import (
    COARSE,
    KEPT,
    exact_sums,
    lost_differences,
    rounded_differences,
    rounding_of_equals,
    single_sums,
)
from graphs.frozen_agents import with_trainable
from graphs.joint_rewards import with_joint_rewards
from graphs.padding import Sizes, bucket, pad, pad_array
from graphs.replay_clusters import CHANCES, CHOICES, with_clusters
from graphs.text import counted, excerpt
from graphs.traces.batch_notes import counted_as_nothing
from graphs.traces.evidence import Evidence
from graphs.traces.missing_names import no_ids
from graphs.traces.outcome_again import outcome_again
from graphs.traces.schema import EVENT_EVIDENCE, FLAGS, LIKE_OUTCOMES, TRACE_EVIDENCE
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = ["ColumnError", "built_from_columns", "from_columns"]

TYPED = (
    "differ by little for the type of their column, which may have changed the differences by more than 1 %: pass "
    "float64 from where rewards are made, or subtract an offset there"
)
"""What is wrong with numbers of which `lost_differences` is True."""


@checked_kinds("events", "traces", "agents")
def from_columns(
    *,
    group: Any,
    trace: Any,
    agent: Any = None,
    role: Any = None,
    parent: Any = None,
    instance: Any = None,
    reward: Any = None,
    row_reward: Any = None,
    event_reward: Any = None,
    turn: Any = None,
    order: Any = None,
    event_type: Any = None,
    action: Any = None,
    edges: Mapping[str, Any] | None = None,
    tokens: Any = None,
    evidence: Mapping[str, Any] | None = None,
    events: int | None = None,
    traces: int | None = None,
    agents: int | None = None,
) -> tuple[EventGraph, np.ndarray, Rows]:
    """Build a padded event graph from columns of equal length N, one entry a row.

    Every row becomes one event, by default an action of type `message`. Traces stand in order of first appearance, the
    rows of a trace in the order given. Columns are lists, NumPy arrays, CPU tensors, Arrow arrays or pandas series; ids
    are strings or integers, and categorical (dictionary-encoded) ids are fastest.

    Args:
      group: the task of each row; one for each trace. verl calls it `uid`.
      trace: the execution of the team that the row belongs to. verl's agent forks call it `traj_uid`.
      agent: the name of the agent that acted. Default: one for all.
      role: the role of that agent, one for each instance. Default: its name.
      parent: the name of the agent of the same trace that spawned the row's agent, one for each instance; null, or its
        own name, for a root. Default: all are roots, so all are main agents (M-GRPO, MATPO).
      instance: a label that tells several agents of one name in one trace apart; not beside `parent`. Default: rows of
        one name in one trace are one agent.
      reward: the outcome of the row's trace, the same on all its rows; null on all of them where the trace has none, or
        NaN, which of Arrow is refused as in files. It then enters no baseline and gets no credit.
      row_reward: instead, what each row earned by itself: becomes `rows.event_reward`, with outcome 0. The
        return of a trace is then the sum over its rows: an outcome that was copied to every row belongs in `reward`.
      event_reward: beside `reward`, what each row earned in addition (step penalties); never the outcome again. Null
        counts 0, and a warning says in how many rows; NaN is refused, but of pandas, where it is null.
      turn: a label of the row's turn, distinct within its agent instance: a round in which two agents act is two turns.
        Default: one turn an instance, since columns do not say what activated it anew (`docs/data-model.md`): where a
        method compares turns, `credit.run`, `RowAdvantages` and `rows.gather` warn.
      order: the place of each row within its trace, integers, floats or times. Agents whose rows have one place act at
        once, and stand by the agents' names: what was earned from there on has the `event_reward` of all of them, and
        methods that take each row's own, as `dr_mas`, keep it so. An agent's rows of one place keep the order given.
        Some methods read who comes next, as `gae` with a discount; of these `credit.run`, `RowAdvantages` and
        `rows.gather` warn where agents act at once.
        Default: rows stand one after the other, in the order given.
      event_type: the type of each row, a name or number of `EventType`. Default: `message`.
      action: whether a policy of the team chose the row. Default: by its type, as `EventType` members of
        `graphs.event_types.ACTION_TYPES`.
      edges: columns `sender` and `receiver` of row numbers, and `type`, names or numbers of `EdgeType` (default
        `causal`): which row led to which. Both ends lie in one trace, the sender first. Default: no edges.
      tokens: tokens that the row generated.
      evidence: further columns by the names in `graphs.traces.schema`; null or NaN, in ids also -1, where a row has
        none. Evidence of traces (`greedy_reward`) must be constant within a trace; of `policy_version`, integers from
        0, a trace has the first that its rows state. `context`, `node`,
        `sibling_parent` and `alternative` say which traces are replays that share a choice
        (`graphs.replay_clusters`); group-relative methods heed it. With `agent_reward` an agent's outcome is its
        trace's `reward` plus its `agent_reward`; who lacks one has none. Where `reward` is left out, the second is it.
        `log_prob`, or `token_ids` with `token_log_probs`, a list a row, and of padded arrays [N, L] `token_mask`, True
        where the policy generated the token, serve one check: of traces and rows that stand again.
      events, traces, agents: padded sizes, so that every batch compiles to the same shape. Default:
        `graphs.padding.bucket` of the content, or of `events` where only that is given. With `events`, masks that the
        columns may need are arrays in every batch.

    Returns:
      The graph (NumPy arrays), the reward float32 [T], and `Rows`, which leads results back to rows. A direct call of a
      method takes `rows.evidence`, in the order of events; an array in that of rows is refused only for its length.

    Warns:
      UserWarning: single precision, in which methods compute, or the type of a column changes differences of returns of
        a group by over 1 %; or rows are sure copies, as docs/formats/table.md lists, or seem to fill up the batch; or
        `event_reward` is the outcome again; or turns of a trace begin again, unlike in others; or a row stands behind a
        later turn, or rows are scattered whose turns are no numbers; or a row has a null `event_reward`; or no trace
        has an outcome; or ids differ only in case, outer blanks, Unicode's form, or
        a blank, hyphen or underscore between the same words.

    Raises:
      ColumnError: lengths differ, ids are missing or of a wrong type, a trace or group is called `nan` or `None` as
        programs write where there is none, numbers are not finite, counts are no integers from 0, a trace has two
        groups or two outcomes, an instance has two roles or parents, a parent is no agent of the trace, or descends
        from its child; with the row numbers.
      CapacityError: the content does not fit the sizes asked for; it names the size needed.
      CreditError: traces that share a `node` or `context` did not continue from one draw or prefix.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> rows.gather(credit.rloo(graph, reward)).tolist()
      [1.0, -1.0]
    """
    if words := unlike_indices({**locals(), **(evidence or {})}):
        warnings.warn(f"{words}: reset or align them", stacklevel=3)
    result = built_from_columns(locals())
    for words in (*result[2].names.coarse, *result[2].names.alike, *result[2].names.typed):
        warnings.warn(words, PrecisionWarning, stacklevel=3)
    if alike := result[2].names.labels_alike():
        warnings.warn(f"{alike} are spelt almost alike, and count as several", stacklevel=3)
    graph, outcome, rows = result
    places = None if order is None else rounds_of_places(order, rows.names.rows)[rows.event]
    beside = {} if places is None else {"order": places, "time": moments_of_places(order, np.arange(len(places)))}
    copied = copied_rows(rows, beside=beside)
    if copies := copied.twice or copied.untold:
        warnings.warn(f"the batch has {copies}: leave them out", stacklevel=3)
    if copied.filling:
        warnings.warn(f"{copied.filling} leave them out", stacklevel=3)
    merged = "" if copies or copied.filling else said_of_merged(rows, turn)
    if merged:
        warnings.warn(f"the batch has {merged}", stacklevel=3)
    if words := order_of_turns(rows, turn, stated=order is not None)[1]:
        if not merged:
            warnings.warn(f"methods may read rows in the order of their trace, and {words}", stacklevel=3)
    elif untold := untold_order(rows, turn, places, of_agents=False, moments=beside.get("time")):
        if turn is not None and order is None:  # else `credit.run` warns, where a method reads the order
            warnings.warn(f"methods may read {untold}", stacklevel=3)
        rows = dataclasses.replace(rows, names=dataclasses.replace(rows.names, untold=untold))
    rows = dataclasses.replace(rows, names=dataclasses.replace(rows.names, at_once=rounds_at_once(rows, places)))
    own = np.isfinite(rows.evidence.get("agent_reward", np.nan)).any()
    if not (own or np.isfinite(outcome[np.asarray(graph.trace_mask)]).any()):
        warnings.warn("methods answer no row of the batch: none has a reward", stacklevel=3)
    earned = event_reward if row_reward is None else row_reward
    earned = (evidence or {}).get("event_reward") if earned is None else earned
    if none := 0 if earned is None else int(nulls(earned, len(rows.event)).sum()):
        warnings.warn(f"'event_reward' is {counted_as_nothing(none, len(rows.event))}", stacklevel=3)
    if event_reward is not None:
        event = np.sort(rows.event)
        trace = graph.trace_ids[event]
        if where := outcome_again(rows.evidence["event_reward"][event], outcome[trace], trace):
            warnings.warn(
                f"'event_reward' is the outcome again {where}, and methods add it: leave it out", stacklevel=3
            )
    return graph, outcome, rows


_PARAMETERS = tuple(inspect.signature(from_columns).parameters)


def built_from_columns(given: Mapping[str, Any]) -> tuple[EventGraph, np.ndarray, Rows]:
    """`from_columns` of its arguments by name, without its warnings.

    Args:
      given: the arguments; and `lost`, of `lost_to_type` by the names of `PAID`, of columns that had another type.
    """
    (
        group, trace, agent, role, parent, instance, reward, row_reward, event_reward,
        turn, order, event_type, action, edges, tokens, evidence, events, traces, agents,
    ) = (given.get(name) for name in _PARAMETERS)  # fmt: skip
    columns = _row_evidence(reward, row_reward, event_reward, tokens, evidence)
    lists = {name: columns.pop(name) for name in SAMPLED if name in columns}
    by_trace, trace_names = _by_trace(trace, order, role if agent is None else agent, instance)
    n, places, order = len(by_trace.order), order, by_trace.order
    paid = {name: column for name, column in {**columns, "reward": reward}.items() if name in PAID}
    if "event_reward" in columns:
        earned = columns["event_reward"]
        columns["event_reward"] = np.where(nulls(earned, n), 0.0, numbers("event_reward", earned, n))
    group_codes, group_names = named("group", group, n)
    group_ids = by_trace.constant("group", group_codes[order], "a trace belongs to one group")
    team = team_of_rows(role if agent is None else agent, role, parent, instance, by_trace)
    outcome = _outcome(reward, by_trace)
    if reward is None and row_reward is None:  # agents have outcomes of their own
        outcome = np.full(by_trace.count, np.nan)
    types = _types(event_type, order)
    actions = _actions(action, types, order)
    position = np.empty(n, np.int32)
    position[order] = np.arange(n, dtype=np.int32)
    senders, receivers, edge_types = row_edges(edges, position, by_trace.ids)

    to = _sizes(Sizes(n, len(senders), team.by_agent.count, by_trace.count), events, agents, traces)
    graph = pad(
        EventGraph(
            event_type=types,
            action_mask=actions,
            event_mask=np.ones(n, bool),
            time=np.full(n, np.nan, np.float32),
            trace_ids=by_trace.ids.astype(np.int32),
            agent_ids=team.by_agent.ids.astype(np.int32),
            turn_ids=_turns(turn, team.by_agent).astype(np.int32),
            senders=senders,
            receivers=receivers,
            edge_type=edge_types,
            edge_mask=np.ones(len(senders), bool),
            agent_name_ids=team.name_ids.astype(np.int32),
            agent_role_ids=team.role_ids.astype(np.int32),
            agent_parent=team.parents.astype(np.int32),
            agent_trace=by_trace.ids[team.by_agent.first].astype(np.int32),
            agent_mask=np.ones(team.by_agent.count, bool),
            group_ids=group_ids.astype(np.int32),
            trace_mask=np.ones(by_trace.count, bool),
        ),
        to,
    )
    arrays = {name: _evidence(name, columns, n, by_trace, to) for name in columns}
    if "agent_reward" in arrays:
        _check_agent_rewards(arrays["agent_reward"][:n], team.by_agent)
    tree = {name: arrays.get(name) for name in CHOICES}
    stated = {name: arrays[name] for name in CHANCES if name in arrays}
    rounds = None if places is None else pad_array(rounds_of_places(places, order), to.events, -1)
    graph = with_joint_rewards(graph, arrays.get("context"), rounds)
    names = trace_names.to_pylist() if arrays.keys() & {"node", "context"} else None
    graph = with_clusters(graph, **tree, stated=stated, names=names)
    if "trainable" in arrays:
        graph = with_trainable(graph, arrays["trainable"])
    if events is not None:
        graph = _filled(graph, columns)
    offset, rounded, noise = _rounded(outcome, columns.get("event_reward"), by_trace, group_ids)
    alike = _coarse(rounded & (noise > 0))
    rounded = rounded & (noise == 0)
    coarse = _coarse(rounded)
    exact: dict[str, np.ndarray] = {}
    for name in LIKE_OUTCOMES & columns.keys():
        amounts = numbers(name, columns[name], n)[order]
        of = by_trace.ids if name in TRACE_EVIDENCE else slice(n)
        if not np.array_equal(arrays[name][of], amounts, equal_nan=True):
            exact[name] = np.full(len(arrays[name]), np.nan)
            exact[name][of] = amounts
        beside = _rounded_beside(outcome, amounts, by_trace, group_ids)
        if beside.any():
            groups = counted(int(beside.sum()), "group")
            coarse.append(f"{groups} whose outcomes and {name!r} {COARSE}")
            rounded = rounded | beside
    typed, lost = [], _lost_to_types(paid, given.get("lost"), by_trace, group_ids)
    if lost.any():
        typed = [f"{counted(int(lost.sum()), 'group')} whose outcomes {TYPED}"]
    padded = pad_array(outcome.astype(np.float32), to.traces)
    names = RowNames(
        graph, padded, order, trace_names, group_names, team, rounded | lost, noise, tuple(alike), tuple(coarse), exact,
        tokens_of_rows(lists, actions, order), typed=tuple(typed), offset=offset,
    )  # fmt: skip
    return graph, padded, Rows(position, to.events, arrays, names)


def _filled(graph: EventGraph, columns: Collection[str]) -> EventGraph:
    """The graph with an array in each field that the columns may fill; None is another program to `jax.jit`.

    So batches with replays, frozen agents or rewards of joint turns, and batches without, are compiled once.
    """
    fields: dict[str, np.ndarray] = {}
    if graph.cluster_ids is None and not {*CHOICES}.isdisjoint(columns):
        fields["cluster_ids"] = np.arange(graph.num_traces, dtype=np.int32)
    if graph.trainable_mask is None and "trainable" in columns:
        fields["trainable_mask"] = np.asarray(graph.event_mask)
    if graph.joint_mask is None:  # `order` states joint turns, too, and a batch may have it later
        fields["joint_mask"] = np.zeros(graph.num_events, bool)
    return dataclasses.replace(graph, **fields)


_IS_ACTION = np.isin(np.arange(max(EventType) + 1), [int(kind) for kind in ACTION_TYPES])


def _row_evidence(
    reward: Any, row_reward: Any, event_reward: Any, tokens: Any, evidence: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The columns of evidence by name; `reward` or `row_reward` must be given, or `agent_reward` in evidence."""
    agents_have = reward is None and row_reward is None and "agent_reward" in (evidence or {})
    if (reward is None) == (row_reward is None) and not agents_have:
        problem = "pass either reward= (the outcome, the same on all rows of a trace) or row_reward= (per row)"
        raise ColumnError("reward", [], problem)
    if row_reward is not None and event_reward is not None:
        raise ColumnError("event_reward", [], "row_reward= already holds the rewards of rows; expected one of the two")
    stated = {"event_reward": event_reward if row_reward is None else row_reward, "tokens": tokens}
    stated = {name: column for name, column in stated.items() if column is not None}
    for name in stated.keys() & (evidence or {}).keys():
        raise ColumnError(name, [], f"is passed twice; expected {name}= or row_reward=, or evidence, which has it too")
    return dict(evidence or {}) | stated


def _by_trace(trace: Any, places: Any, agent: Any, instance: Any) -> tuple[Segments, pa.Array]:
    """The rows in the order of events, split into traces, and the ids of the traces."""
    ids, names = named("trace", trace)
    order = rows_in_order(np.ones(len(ids), bool), places, len(ids), ids, agent, instance)
    ids = ids[order]
    if np.any(ids[1:] < ids[:-1]):
        by_id = np.argsort(ids, kind="stable")
        order, ids = order[by_id], ids[by_id]
    return Segments("trace", ids, begins(ids), order, lambda trace: names[trace]), names


def _turns(turn: Any, by_agent: Segments) -> np.ndarray:
    """The turn of each row in the order of events, numbered over the batch: [N]."""
    if turn is None:
        return by_agent.ids
    codes, _ = factorise("turn", turn, len(by_agent.ids))
    width = int(codes.max()) + 1
    numbered, _ = renumber(by_agent.ids * width + codes[by_agent.order], by_agent.count * width)
    return numbered


def _outcome(reward: Any, by_trace: Segments) -> np.ndarray:
    """The outcome of each trace: [count]. NaN where a trace has none; 0 where rows have their own rewards."""
    if reward is None:
        return np.zeros(by_trace.count)
    outcome = numbers("reward", reward, len(by_trace.ids))
    per_row = outcome[by_trace.order]
    none = np.isnan(outcome)
    if none.any():
        stated = np.bincount(by_trace.ids, ~np.isnan(per_row), by_trace.count) > 0
        none = np.zeros(len(outcome), bool)
        none[by_trace.order] = ~stated[by_trace.ids]
    known = "expected a number in every row of a trace, or in none where it has no outcome"
    finite("reward", np.where(none, 0, outcome), known)
    advice = "the outcome is one number for each trace; for numbers that differ between rows pass event_reward= "
    return by_trace.constant("reward", per_row, advice + "beside it; from_columns takes row_reward= in its place, too")


def _coarse(rounded: np.ndarray) -> list[str]:
    return [f"{counted(int(rounded.sum()), 'group')} whose outcomes {COARSE}"] if rounded.any() else []


def _rounded(
    outcome: np.ndarray, steps: np.ndarray | None, by_trace: Segments, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`RowNames.offset`, and where single precision changes differences of outcomes, or of returns, within groups.

    Some methods compare outcomes, float64 [T]; others add what the rows earned besides, float64 [N]. Also the noise of
    groups whose returns are equal, of `rounding_of_equals`. Groups are int [T], and each answer is [groups].
    """
    known, groups = np.isfinite(outcome), int(group.max()) + 1
    offset = rounded_differences(outcome[known], group[known], groups, kept=KEPT / 100)
    rounded = rounded_differences(outcome[known], group[known], groups) if offset.any() else offset
    if steps is None:
        return offset, rounded, np.zeros(groups)
    ordered = steps[by_trace.order]
    earned, sizes = exact_sums(outcome, ordered, by_trace.ids)
    single = single_sums(outcome, ordered, by_trace.ids)[known]
    noise = rounding_of_equals(earned[known], sizes[known], group[known], groups, single)
    return offset, rounded | rounded_differences(earned[known], group[known], groups, single), noise


def _rounded_beside(outcome: np.ndarray, numbers: np.ndarray, by_trace: Segments, group: np.ndarray) -> np.ndarray:
    """As `_rounded`, of outcomes and of numbers that are compared with them, float64 [N] in the order of events."""
    known, stated = np.isfinite(outcome), np.isfinite(numbers)
    keys = np.concatenate([group[known], group[by_trace.ids[stated]]])
    return rounded_differences(np.concatenate([outcome[known], numbers[stated]]), keys, int(group.max()) + 1)


def _lost_to_types(
    paid: Mapping[str, Any], lost: Mapping[str, np.ndarray] | None, by_trace: Segments, group: np.ndarray
) -> np.ndarray:
    """Where types of columns may have changed differences of what agents, or traces, earned: bool [groups].

    Args:
      paid: of the columns of `PAID` those that are stated.
      lost: of `lost_to_type` by their names; None where columns have the types that they came in.
      by_trace: the rows, split into traces.
      group: int [T], of each trace.
    """
    n, order, trace = len(by_trace.ids), by_trace.order, by_trace.ids
    amounts = {name: numbers(name, column, n) for name, column in paid.items() if column is not None}
    if lost is None:
        lost = {name: lost_to_type(paid[name], column) for name, column in amounts.items()}
    groups = int(group.max()) + 1
    if not any(column.any() for column in lost.values()):
        return np.zeros(groups, bool)

    def earned(columns: Mapping[str, np.ndarray]) -> np.ndarray:
        outcome, steps, of_agent = (columns[name][order] if name in columns else np.zeros(n) for name in PAID)
        total: np.ndarray = outcome + of_agent + np.bincount(trace, np.nan_to_num(steps), by_trace.count)[trace]
        return total

    numbers_of, off = earned(amounts), earned(lost)
    known = np.isfinite(numbers_of)
    return lost_differences(numbers_of[known], off[known], group[trace[known]], groups)


def _types(event_type: Any, order: np.ndarray) -> np.ndarray:
    """The type of each row in the order of events: int32 [N]."""
    if event_type is None:
        return np.full(len(order), int(EventType.MESSAGE), np.int32)
    types: np.ndarray = codes_of_types("event_type", event_type, EventType, len(order))[order]
    return types


def _actions(action: Any, types: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Whether a policy chose each row, in the order of events: bool [N]."""
    if action is None:
        chosen: np.ndarray = _IS_ACTION[types]
        return chosen
    actions: np.ndarray = truths("action", action, len(order))[order]
    return actions


def _check_agent_rewards(amounts: np.ndarray, by_agent: Segments) -> None:
    """Refuse two outcomes of one agent instance; rows of it may state none."""
    filled = np.where(np.isnan(amounts), _first_stated(amounts, by_agent)[by_agent.ids], amounts)
    by_agent.constant("agent_reward", filled, "an agent of a trace has one outcome of its own")


def _first_stated(amounts: np.ndarray, by: Segments) -> np.ndarray:
    """The first number of each segment that is not NaN, of [N] in the order of events: [count], NaN where all are."""
    stated = np.flatnonzero(~np.isnan(amounts))
    first = np.full(by.count, np.nan, amounts.dtype)
    first[by.ids[stated[::-1]]] = amounts[stated[::-1]]  # of several assignments to one place the last counts
    return first


def _evidence(column: str, columns: Mapping[str, Any], n: int, by_trace: Segments, to: Sizes) -> np.ndarray:
    """One of the columns of evidence in the order of events [E], or of traces [T], padded."""
    known, values = {**EVENT_EVIDENCE, **TRACE_EVIDENCE}, columns[column]
    if column not in known:
        if column in TOKEN_COLUMNS:
            problem = "has a list for each row; expected numbers of rows: `estimators.tokens` takes arrays of tokens"
            raise ColumnError(column, [], problem)
        names = ", ".join(sorted(known))
        own = "own_number is a number of your own"
        raise ColumnError(column, [], f"is not evidence of any method; expected one of {names}; {own}")
    kind = known[column].kind
    if kind == "id":
        ids, present = _stated_ids(column, values, n)
        amounts = np.zeros(n)
        if present.any():
            other = known[column].ids_of
            if other in columns:  # numbered together, the other key's first
                texts = pa.large_string()
                first = _stated_ids(other, columns[other], n)[0].cast(texts)
                amounts[present] = factorise(column, pa.concat_arrays([first, ids.cast(texts)]))[0][len(first) :]
            else:
                amounts[present] = factorise(column, ids)[0]
    else:
        amounts = numbers(column, values, n)
        kind_of_number, within = "flag" if column in FLAGS else kind, known[column].within
        if column == "event_reward":  # each row states it
            nothing = "0 where it earned nothing by itself"
            amounts = in_range(column, kind_of_number, amounts, within, none=nothing)
            finite(column, amounts, f"expected a number in each row, {nothing}")
        else:
            amounts = in_range(column, kind_of_number, amounts, within)
        present = np.isfinite(amounts)
        amounts = np.where(present, amounts, 0)
    amounts, present = amounts[by_trace.order], present[by_trace.order]
    length = to.events
    if column in TRACE_EVIDENCE:
        stated = np.where(present, amounts, np.nan)
        if column == "policy_version":  # a long trace may end under a later policy than it began
            whole = _first_stated(stated, by_trace)
        else:
            whole = by_trace.constant(column, stated, "it is one number for each trace")
        present, amounts, length = np.isfinite(whole), np.nan_to_num(whole), to.traces
    typed = amounts.astype(np.float32 if kind == "float" else np.int32)
    padded = pad_array(Evidence.of(typed, present).array, length, np.nan if kind == "float" else -1)
    return np.nan_to_num(padded) if column == "event_reward" else padded


def _stated_ids(column: str, values: Any, n: int) -> tuple[pa.Array, np.ndarray]:
    """The ids of the rows that state one, and which do: bool [N]. -1 is no id, as in arrays.

    Raises:
      ColumnError: as of `as_ids`, or an id that is what programs write for none: all rows without one would share it.
    """
    array = as_ids(column, values, n)
    texts = array.cast(pa.large_string())
    present: np.ndarray = pc.not_equal(texts, "-1").fill_null(False).to_numpy(zero_copy_only=False)
    lost = np.flatnonzero(pc.is_in(texts, pa.array(no_ids(column), texts.type)).to_numpy(zero_copy_only=False))
    if len(lost):
        written = f"{texts[int(lost[0])].as_py()!r} in {len(lost)} of {counted(n, 'row')}"
        raise ColumnError(column, lost, f"{written} is what programs write for none; expected an id, or None")
    return array.filter(pa.array(present)), present


def _sizes(real: Sizes, events: int | None, agents: int | None, traces: int | None) -> Sizes:
    """The padded sizes: those given, the rest from the bucket of the content.

    Raises:
      CreditError: a size that is no positive integer.
    """
    for name, size in (("events", events), ("agents", agents), ("traces", traces)):
        if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
            raise CreditError(f"{name} is {excerpt(size)}; expected a positive integer, the size of the arrays")
    base = bucket(real._replace(events=max(real.events, events or 0)))
    return Sizes(
        base.events if events is None else events,
        base.edges,
        base.agents if agents is None else agents,
        base.traces if traces is None else traces,
    )
