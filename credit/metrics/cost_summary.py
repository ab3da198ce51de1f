"""Costs by agent, role, decision, tool, model, system or trace, and what groups of several traces cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.metrics.event_costs import EventCosts, Prices, event_costs, token_counts, whole_costs
from credit.reports.call_seconds import calls_of_models, calls_of_tools
from credit.reports.corpus import Survey, survey
from credit.reports.missing_lines import lacking_traces, lacking_units
from credit.reports.outside_team import outside_team
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import has_statuses
from credit.reports.trace_numbers import TeamFacts
from graphs.errors import CreditError
from graphs.event_types import EventType
from graphs.structure.decision_kinds import KIND_NAMES, decision_kind
from graphs.structure.host_ids import among, ranked
from graphs.traces.batch import Traces
from graphs.traces.event_models import embeddings, event_models
from graphs.traces.record import UNLOGGED_CALLS

if TYPE_CHECKING:
    from credit.reports.triage import Workload

__all__ = [
    "OF_TOOLS",
    "UNITS_OF_COST",
    "CostRow",
    "GroupCosts",
    "amounts",
    "cost_rows",
    "cost_units",
    "group_costs",
    "paid_by_agent",
    "rows_of_trace",
    "said_of_traces",
    "stated_sums",
    "total_costs",
    "with_paid",
]

OF_TOOLS = "calls of tools, no model"
SUMS = ("errors", "tokens", "input_tokens", "seconds", "money", "logged_money")
UNITS_OF_COST = ("agent", "role", "decision", "tool", "model", "system", "trace")


@dataclasses.dataclass(frozen=True)
class Amount:
    """A sum over events.

    Attributes:
      total: over the events that have a number; None where none has one above 0 and some lack theirs, or the unit is
        outside the team.
      missing: events without one; above 0, `total` is a lower bound. Money of such events is what is known of it.
    """

    total: float | None
    missing: int


@dataclasses.dataclass(frozen=True)
class CostRow:
    """What one unit cost: its events, its tool calls, their and other errors, and its sums.

    `stated` has the costs of a trace that its log states as a whole, by name; it is empty for other units. `outside` is
    whether the unit is no part of the team, such as a simulated user, whose costs are in no sum but its own. Where it
    `lacks_lines`, all counts are lower bounds (`lacking_units`). `money` is by prices, `logged_money` what the log
    states of calls. It is in `traces`, a lower bound where it `lacks_traces`, of the `of_traces` of its system, where
    systems are among the units, or of all. `unplaced` counts traces with model calls that are in no event, of the first
    unit there, where several may have made them: the total alone is a lower bound then. `call_seconds` is the median of
    what its calls take; one call in ten takes more than `slow_call_seconds`.
    """

    unit: str
    events: int
    tool_calls: int
    errors: Amount
    tokens: Amount
    input_tokens: Amount
    seconds: Amount
    money: Amount
    stated: dict[str, float] = dataclasses.field(default_factory=dict)
    outside: bool = False
    lacks_lines: bool = False
    logged_money: Amount = Amount(None, 0)
    traces: int = 0
    of_traces: int = 0
    lacks_traces: bool = False
    unplaced: int = 0
    call_seconds: float | None = None
    slow_call_seconds: float | None = None

    def sums(self) -> dict[str, Amount]:
        """All that it adds up, by name."""
        counts = {name: Amount(float(getattr(self, name)), 0) for name in ("events", "tool_calls")}
        return counts | {name: getattr(self, name) for name in SUMS}

    def of_trace(self) -> dict[str, Amount]:
        """The sums over `of_traces`, so that systems can be compared whose numbers of traces differ.

        Examples:
          >>> row = CostRow("v1, coder", 4, 1, *[Amount(6.0, 0)] * 5, traces=2, of_traces=4)
          >>> row.of_trace()["tokens"], row.of_trace()["events"]
          (Amount(total=1.5, missing=0), Amount(total=1.0, missing=0))
        """
        return {
            name: Amount(None if one.total is None or not self.of_traces else one.total / self.of_traces, one.missing)
            for name, one in self.sums().items()
        }


@dataclasses.dataclass(frozen=True)
class GroupCosts:
    """What it costs to compare K traces of a task instead of running one.

    Attributes:
      groups, traces: how many there are.
      multiplier: K, traces over groups.
      of_trace: mean tokens of a trace, read and generated; None where an action has no count, or a trace lacks lines.
      of_group: K times that.
      untaught: the part of these tokens in groups whose returns teach nothing; None likewise, or without any outcome.
    """

    groups: int
    traces: int
    multiplier: float
    of_trace: float | None
    of_group: float | None
    untaught: float | None


def cost_rows(traces: Traces, by: str = "agent", prices: Prices | None = None) -> list[CostRow]:
    """Costs by unit, the most expensive of a trace first.

    Args:
      traces: what was read.
      by: one of `UNITS_OF_COST`, or several with commas, such as "agent,model": names of agents, of roles, kinds of
        decisions (`graphs.structure.decision_kinds.KIND_NAMES`), tools, models, systems or traces. Seconds and errors
        of a tool's result belong to its call. A model's seconds and money are those of its calls. Rows `OF_TOOLS`
        have the money of tools. Those outside the team
        (`outside_team`) have rows of their own, by name or role, unless units are traces.
      prices: of models and tools; without them money is None.

    Raises:
      CreditError: `by` is something else, or names a unit twice.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["x"], reward=[1.0])
      >>> cost_rows(rows.traces)[0].tokens
      Amount(total=None, missing=1)
    """
    parts = cost_units(by)
    facts = TeamFacts.of(traces)
    costs = event_costs(traces, prices, of_team=by == "trace")
    graph, n = traces.graph, traces.sizes.events
    trace, outside = np.asarray(graph.trace_ids)[:n], outside_team(traces)
    if by == "trace":
        outside = np.zeros(n, bool)
    units, unit = _units(traces, parts, outside)
    (fees, logged_fees), m = np.zeros((2, n)), traces.sizes.traces
    of_units = {"of_agents": bool({"agent", "role"} & {*parts}), "of_systems": "system" in parts}
    within = next((part for part in ("trace", "system") if part in parts), None)
    size = np.full(n, m)  # of how many traces each event's unit might be in
    if within is not None:
        names, code = _named(traces, within)
        size = np.where(outside, m, _held(traces, code, len(names))[code])
    unplaced, several = np.zeros(len(units), np.int64), np.zeros(m, bool)
    if {"agent", "role", "model"} & {*parts} and f"metrics.{UNLOGGED_CALLS}" in traces.evidence:
        whose = np.unique(np.stack([trace, unit])[:, ~outside], axis=1)[0]
        several = np.bincount(whose, minlength=m) > 1
        bare = event_costs(traces, prices, of_team=by == "trace", hidden=False)
        names = ("tokens", "input_tokens", "money")
        lost = [np.isnan(getattr(costs, name)) & ~np.isnan(getattr(bare, name)) for name in names]
        unplaced = np.bincount(unit[np.any(lost, axis=0) & several[trace]], minlength=len(units))
        costs = dataclasses.replace(
            costs, **{name: np.where(several[trace], getattr(bare, name), getattr(costs, name)) for name in names}
        )
    if "model" in parts:
        costs = dataclasses.replace(costs, seconds=np.where(np.asarray(graph.action_mask)[:n], costs.seconds, 0.0))
        if costs.kinds is not None:
            fees = np.where(outside, 0.0, costs.kinds[1, -1])
            least = costs.least | {"money": costs.least["money"] - fees}
            costs = dataclasses.replace(costs, money=costs.money - fees, least=least)
    if by == "trace":
        lacking = np.bincount(unit[lacking_traces(traces)[trace]], minlength=len(units)) > 0
        fewer = np.zeros(len(units), bool)
    else:
        lacking, fewer = lacking_units(traces, unit, len(units), **of_units)
    logged, own = (token_counts(traces, "money", of_team=by == "trace", hidden=hidden) for hidden in (True, False))
    logged = np.where(several[trace], own, logged)
    if "model" in parts:
        of_tools = among(np.asarray(graph.event_type)[:n], (EventType.TOOL_CALL,)) & ~np.asarray(graph.action_mask)[:n]
        of_tools &= ~embeddings(traces)
        logged_fees = np.where(of_tools, np.nan_to_num(own), 0.0)
        logged, own = (np.where(of_tools & np.isfinite(cost), 0.0, cost) for cost in (logged, own))
    called = ToolCalls.of(traces) if by == "trace" else ToolCalls(traces, of_team=False)
    failed = np.where(has_statuses(traces)[trace] | called.counted, called.counted, np.nan)
    rows = _rows(units, unit, costs, amounts(logged, unit, len(units), np.nan_to_num(own)), called, failed, lacking)
    every = np.empty(len(units), np.int64)
    every[unit] = size
    took = _of_a_call(facts, called, unit, len(units), parts)
    held = _held(traces, unit, len(units))
    counts = zip(held.tolist(), every.tolist(), fewer.tolist(), unplaced.tolist(), took, strict=True)
    rows = [
        dataclasses.replace(
            row,
            traces=some,
            of_traces=of,
            lacks_traces=less,
            unplaced=lost_calls,
            call_seconds=median,
            slow_call_seconds=slow,
        )
        for row, (some, of, less, lost_calls, (median, slow)) in zip(rows, counts, strict=True)
    ]
    if (paid_by := (fees > 0) | (logged_fees > 0)).any():
        units, unit = _units(traces, parts, outside, of_tools=True)
        lacking, fewer = lacking_units(traces, unit, len(units), **of_units)
        (none, unknown), has_stated = (Amount(0.0, 0), Amount(None, 0)), logged_fees.any()
        paid, stated = (np.bincount(unit, of, len(units)) for of in (fees, logged_fees))
        held = _held(traces, np.where(paid_by, unit, -1), len(units))
        every = np.empty(len(units), np.int64)
        every[unit] = size
        rows += [
            CostRow(units[i][0], 0, 0, none, none, none, none, unknown if prices is None else Amount(float(paid[i]), 0),
                    lacks_lines=bool(lacking[i]), logged_money=Amount(float(stated[i]), 0) if has_stated else unknown,
                    traces=int(held[i]), of_traces=int(every[i]), lacks_traces=bool(fewer[i]))
            for i in np.flatnonzero(paid + stated).tolist()
        ]  # fmt: skip
    if by == "trace":
        rows = [dataclasses.replace(row, stated=stated) for row, stated in zip(rows, _stated(traces), strict=True)]

    def dearest(row: CostRow) -> tuple[float, ...]:
        of = {name: amount.total or 0.0 for name, amount in row.of_trace().items()}
        return -(of["money"] or of["logged_money"]), -of["tokens"], -of["events"]

    return sorted(rows, key=dearest)


def paid_by_agent(traces: Traces, prices: Prices | None = None) -> dict[str, dict[str, Amount]]:
    """Of each agent's name its "money", or where there is none at all its "logged_money"; nothing without either.

    Args:
      traces, prices: as of `cost_rows`.

    Examples:
      >>> import credit
      >>> _, _, asked = credit.from_columns(
      ...     group=["q"], trace=["a"], agent=["x"], reward=[1.0], evidence={"money": [3]})
      >>> paid_by_agent(asked.traces)
      {'x': {'logged_money': Amount(total=3.0, missing=0)}}
    """
    rows = cost_rows(traces, "agent", prices)
    name = next((name for name in ("money", "logged_money") if any(row.sums()[name].total for row in rows)), "")
    return {row.unit: {name: row.sums()[name]} for row in rows if name}


def with_paid(agents: Sequence[Workload], paid: dict[str, dict[str, Amount]]) -> list[dict[str, Any]]:
    """The work of agents with what each was paid, as plain data.

    Args:
      agents: of `triage`.
      paid: of `paid_by_agent`.
    """
    return [
        dataclasses.asdict(row) | {name: dataclasses.asdict(one) for name, one in paid.get(row.agent, {}).items()}
        for row in agents
    ]


def _of_a_call(
    facts: TeamFacts, called: ToolCalls, unit: np.ndarray, count: int, parts: Sequence[str]
) -> list[tuple[float | None, float | None]]:
    """`CostRow.call_seconds` of each unit, and the slow ones; None where these are traces or systems alone."""
    took: list[tuple[float | None, float | None]] = [(None, None)] * count
    found = []
    if not {"trace", "system"} >= {*parts}:
        found.append(calls_of_models(facts.traces, facts.durations))
    if "tool" in parts:
        found.append(calls_of_tools(facts.traces, called, facts.durations))
    for calls in found:
        of = unit[calls.rows]
        order = np.argsort(of, kind="stable")
        places, first = np.unique(of[order], return_index=True)
        for place, seconds in zip(places.tolist(), np.split(calls.seconds[order], first)[1:], strict=True):
            took[place] = float(np.median(seconds)), float(np.quantile(seconds, 0.9))
    return took


def cost_units(by: str) -> tuple[str, ...]:
    """The units that a text with commas names.

    Args:
      by: names of units, as "agent,tool".

    Raises:
      CreditError: one is none of `UNITS_OF_COST`, or is named twice.

    Examples:
      >>> cost_units("agent,model")
      ('agent', 'model')
    """
    parts = tuple(part.strip() for part in by.split(","))
    if not {*parts} <= {*UNITS_OF_COST} or len({*parts}) < len(parts):
        raise CreditError(f"by is {by!r}; expected some of {', '.join(UNITS_OF_COST)}, with commas and each once")
    return parts


def _held(traces: Traces, unit: np.ndarray, count: int) -> np.ndarray:
    """In how many traces each unit is, of which an event has one, or -1 for none: int [count]."""
    m, kept = traces.sizes.traces, unit >= 0
    pairs = np.unique(unit[kept] * np.int64(m) + np.asarray(traces.graph.trace_ids)[: len(unit)][kept])
    return np.bincount(pairs // m, minlength=count)


def _units(
    traces: Traces, parts: tuple[str, ...], outside: np.ndarray, *, of_tools: bool = False
) -> tuple[list[tuple[str, bool]], np.ndarray]:
    """The units in order of appearance, each with whether it is outside the team, and the unit of each event; with
    `OF_TOOLS` in place of each model, where that is asked."""
    columns = [_named(traces, part) for part in parts]
    if of_tools:
        none = [OF_TOOLS], np.zeros(len(outside), np.int64)
        columns = [none if part == "model" else column for part, column in zip(parts, columns, strict=True)]
    others, other = _named(traces, "role" if "role" in parts else "agent")
    key = np.where(outside, 1 + other, 0)
    for names, code in columns:
        key = np.unique(key, return_inverse=True)[1] * len(names) + np.where(outside, 0, code)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    # Different names may make one text, as "a, b" and "c", and "a" and "b, c".
    number: dict[tuple[str, bool], int] = {}
    place = np.empty(len(first), np.int64)
    for key_of in np.argsort(first).tolist():
        row = first[key_of]
        text = others[other[row]] if outside[row] else ", ".join(names[code[row]] for names, code in columns)
        place[key_of] = number.setdefault((text, bool(outside[row])), len(number))
    return [*number], place[which]


def _named(traces: Traces, by: str) -> tuple[Sequence[str], np.ndarray]:
    """Names, and the name of each event among them: int [events]."""
    graph, n = traces.graph, traces.sizes.events
    if by in ("agent", "role"):
        names, place = ranked(traces.agents["role" if by == "role" else "name"].to_pylist())
        return names, place[np.asarray(graph.agent_ids)[:n]]
    if by == "decision":
        return KIND_NAMES, decision_kind(graph)[:n]
    if by == "tool":
        tools = traces.events["tool"].combine_chunks().dictionary_encode()
        names = [tool or "no tool" for tool in (*tools.dictionary.to_pylist(), None)]
        return names, tools.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
    if by == "model":
        models, model = event_models(traces)
        return [name or "unknown" for name in models], model
    if by == "system":
        systems, system = ranked([name or "none stated" for name in traces.traces["system"].to_pylist()])
        return systems, system[np.asarray(graph.trace_ids)[:n]]
    return traces.traces["trace"].to_pylist(), np.asarray(graph.trace_ids)[:n]


def total_costs(rows: Sequence[CostRow], traces: int = 0) -> CostRow:
    """The sum of the team's rows, as a row "total"; `stated` sums what traces have. Events count outside the team, too.

    Args:
      rows: of `cost_rows`.
      traces: how many were read, for `of_trace`; 0 where that is not asked.

    Examples:
      >>> known, unknown = Amount(2.0, 0), Amount(None, 3)
      >>> row = CostRow("a", 4, 1, known, known, unknown, known, unknown)
      >>> total_costs([row, row]).tokens, total_costs([row, row]).money
      (Amount(total=4.0, missing=0), Amount(total=None, missing=6))
    """
    events = sum(row.events for row in rows)
    rows = [row for row in rows if not row.outside]
    calls = sum(row.tool_calls for row in rows)

    def summed(name: str) -> Amount:
        each: list[Amount] = [getattr(row, name) for row in rows]
        total, missing = sum(one.total or 0.0 for one in each), sum(one.missing for one in each)
        missing += sum(row.unplaced for row in rows) * (name not in ("errors", "seconds"))
        return Amount(total if total or not missing else None, missing)

    errors, tokens, read, seconds, money, logged = map(summed, SUMS)
    names = dict.fromkeys(name for row in rows for name in row.stated)
    stated = {name: sum(row.stated.get(name, 0.0) for row in rows) for name in names}
    lacks = any(row.lacks_lines for row in rows)
    return CostRow(
        "total", events, calls, errors, tokens, read, seconds, money, stated, False, lacks, logged, traces, traces
    )


def rows_of_trace(traces: Traces, by: str, rows: Sequence[CostRow], prices: Prices | None = None) -> list[CostRow]:
    """The rows to show with amounts of a trace: these, and totals over the same traces, which are of each system where
    systems are among the units; none where units are traces, or one trace was read.

    Args:
      traces, by, prices: as of `cost_rows`.
      rows: what it gives for them.

    Examples:
      >>> import credit
      >>> _, _, asked = credit.from_columns(group=["q"] * 3, trace=["a", "b", "b"], agent=list("xxy"), reward=[1.0] * 3)
      >>> found = rows_of_trace(asked.traces, "agent", cost_rows(asked.traces, "agent"))
      >>> [(row.unit, row.traces, row.of_traces) for row in found]
      [('x', 2, 2), ('y', 1, 2), ('total', 2, 2)]
    """
    parts = cost_units(by)
    if "trace" in parts or traces.sizes.traces == 1:
        return []
    if "system" not in parts:
        return [*rows, total_costs(rows, traces.sizes.traces)] if len(rows) > 1 else [*rows]
    totals = cost_rows(traces, "system", prices) if len(parts) > 1 else []
    return [*rows, *(dataclasses.replace(row, unit=f"total of {row.unit}") for row in totals if not row.outside)]


def said_of_traces(rows: Sequence[CostRow], by: str) -> str:
    """What amounts of a trace are of, in words.

    Args:
      rows: of `rows_of_trace`.
      by: their units.

    Examples:
      >>> said_of_traces([CostRow("v1", 4, 1, *[Amount(6.0, 0)] * 5, traces=2, of_traces=4)], "system")
      'sums divided by all traces of the system. 2 of 4: the row is in 2 of these.'
    """
    some = next((row for row in rows if row.traces != row.of_traces), None)
    part = f" {some.traces} of {some.of_traces}: the row is in {some.traces} of these." if some else ""
    return f"sums divided by all traces{' of the system' if 'system' in cost_units(by) else ''}.{part}"


def _rows(
    names: list[tuple[str, bool]],
    unit: np.ndarray,
    costs: EventCosts,
    logged: list[Amount],
    called: ToolCalls,
    failed: np.ndarray,
    lacking: np.ndarray,
) -> list[CostRow]:
    count = len(names)
    # What a tool took and how it went stand at its result.
    at_call = unit.copy()
    at_call[called.results] = unit[called.calls]
    events, calls = np.bincount(unit, minlength=count), np.bincount(unit, costs.tool_calls, count)
    sums = [amounts(failed, at_call, count)]
    sums += [amounts(getattr(costs, name), unit, count, costs.least[name]) for name in ("tokens", "input_tokens")]
    sums += [amounts(costs.seconds, at_call, count, costs.least["seconds"])]
    sums += [amounts(costs.money, unit, count, costs.least["money"]), logged]
    rows = []
    for i, (name, outside) in enumerate(names):
        errors, tokens, read, seconds, money, own = (
            Amount(each[i].total or None, each[i].missing) if outside else each[i] for each in sums
        )
        rows.append(
            CostRow(
                name,
                int(events[i]),
                int(calls[i]),
                errors,
                tokens,
                read,
                seconds,
                money,
                {},
                outside,
                bool(lacking[i]),
                own,
            )
        )
    return rows


def amounts(cost: np.ndarray, unit: np.ndarray, count: int, least: np.ndarray | float = 0.0) -> list[Amount]:
    """Sums by unit; where a cost is unknown, its least value counts.

    Args:
      cost: float [N], NaN where it is unknown.
      unit: id of the unit of each: int [N].
      count: how many units there are.
      least: of a cost that is unknown, [N] or one for all.
    """
    known = np.isfinite(cost)
    total = np.bincount(unit, np.where(known, cost, least), count)
    missing = np.bincount(unit[~known], minlength=count)
    # Nothing is known where all events that need a number lack it: the others have 0.
    some = (total != 0) | (missing == 0)
    return [Amount(float(t) if s else None, int(m)) for t, s, m in zip(total, some, missing, strict=True)]


def stated_sums(traces: Traces) -> dict[str, Amount]:
    """Costs that the log states of whole traces, summed; `missing` counts the traces without one.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()}, costs={"money": 0.25})
      >>> _ = record.event("x", 3, "a", action=True)
      >>> stated_sums(assemble([record]))
      {'money': Amount(total=0.25, missing=0)}
    """
    whole = whole_costs(traces)
    return {name: amounts(cost, np.zeros(len(cost), np.int64), 1)[0] for name, cost in whole.items()}


def _stated(traces: Traces) -> list[dict[str, float]]:
    """What the log states of each trace, by name."""
    whole = whole_costs(traces)
    return [
        {name: float(cost[t]) for name, cost in whole.items() if np.isfinite(cost[t])}
        for t in range(traces.sizes.traces)
    ]


def group_costs(traces: Traces, found: Survey | None = None, spent: np.ndarray | None = None) -> GroupCosts:
    """Tokens of a trace and of a group of K, and the part that is spent where a group teaches nothing.

        C(group) = K · C(trace)        K = traces / groups

    A group-relative method runs K traces of a task for one comparison. Groups teach nothing where their returns are
    equal, or fewer than two traces have one (`credit validate` lists them).

    Args:
      traces: what was read.
      found: what `survey` says of it, where that is known.
      spent: the team's tokens of each real event, read and generated, where they are known: float64 [events].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q", "r"], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> group_costs(rows.traces).multiplier
      1.5
    """
    n, m, found = traces.sizes.events, traces.sizes.traces, found or survey(traces)
    if spent is None:
        spent = token_counts(traces, "tokens") + token_counts(traces, "input_tokens")
    k = found.traces / found.groups
    tokens = np.bincount(np.asarray(traces.graph.trace_ids)[:n], spent, m)
    if lacking_traces(traces).any() or not np.isfinite(tokens).all():
        return GroupCosts(found.groups, found.traces, k, None, None, None)
    names = np.asarray([str(name) for name in traces.traces["group"].to_pylist()], object)
    idle = np.isin(names, [*found.equal, *found.singletons, *found.unscored_groups])
    total, mean = float(tokens.sum()), float(tokens.mean())
    scored = np.isfinite(np.asarray(traces.reward)[:m]).any()
    untaught = float(tokens[idle].sum()) / total if total > 0 and scored else None
    return GroupCosts(found.groups, found.traces, k, mean, k * mean, untaught)
