"""How far untrusted events reach: the decisions that depended on them, and the credit at risk."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from credit.reports.clock import last_of_each
from credit.reports.missing_lines import lacking_traces
from credit.reports.trace_numbers import TeamFacts
from estimators.base import Credit
from graphs.errors import CreditError, expect
from graphs.event_graph import EventType
from graphs.structure.edge_order import EdgeOrder
from graphs.structure.forest import dependencies
from graphs.traces.batch import Traces

__all__ = ["REACH_UNITS", "Exposure", "ReachUnit", "untrusted_reach"]


ReachUnit = Literal["source", "vector"]
REACH_UNITS: tuple[ReachUnit, ...] = get_args(ReachUnit)


@dataclasses.dataclass(frozen=True)
class Exposure:
    """What depended on the untrusted events of one source, or of one attack vector.

    Attributes:
      unit: the type of the events, and the tool that they came from; or the attack vector, such as "AV3", "not stated",
        and "AV3, trusted" for events that the log trusts all the same; "all" for all untrusted ones.
      events: how many there are.
      traces: traces with one.
      reached: actions that are one or depended on one.
      actions: actions of all traces.
      answers: traces whose last action is among the reached.
      credit_at_risk: Σ |credit − baseline| over the reached actions, as a part of the sum over all actions; None
        without credit, where the sum is 0, or where a trace lacks lines.
      lacks_lines: whether a trace of the batch lacks lines, so that all counts are lower bounds (`lacking_traces`).
    """

    unit: str
    events: int
    traces: int
    reached: int
    actions: int
    answers: int
    credit_at_risk: float | None
    lacks_lines: bool


def untrusted_reach(
    traces: Traces, credit: Credit | None = None, *, types: Iterable[str] = (), by: ReachUnit = "source"
) -> list[Exposure]:
    """The reach of untrusted events, for all of them and for each source or attack vector.

    An event is untrusted if the log says `trusted: false`. It is untrusted, too, if the log does not say that it is
    trusted, and states its `attack_vector` or is of one of `types`. Dependence is that of `dependents`.

    Args:
      traces: what was read.
      credit: a method's result, for the credit at risk.
      types: types of events that count as untrusted, such as "tool_result".
      by: whether there is a row for each source, or for each attack vector that the log states.

    Raises:
      CreditError: an unknown type or unit; the log says of no event whether it is trusted, and there are no `types`; by
        vector, no event states its `attack_vector`.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], event_type=["message", "message"], reward=[1.0, 1.0])
      >>> [(found.unit, found.reached) for found in untrusted_reach(rows.traces, types=["message"])]
      [('all', 2), ('message', 2)]
    """
    expect("traces", traces, Traces, "what credit.read returns")
    if by not in REACH_UNITS:
        raise CreditError(f"by is {by!r}; expected one of {', '.join(REACH_UNITS)}")
    graph, n = traces.graph, traces.sizes.events
    names = [kind.name.lower() for kind in EventType]
    foreign = [name for name in types if name not in names]
    if foreign:
        raise CreditError(f"type is {foreign[0]!r}; expected some of {', '.join(names)}")
    stated = traces.events["trusted"]
    silent, vector = np.asarray(stated.is_null()), np.full(n, -1)
    if "attack_vector" in traces.evidence:
        vector = traces.evidence["attack_vector"].array[:n]
    chosen = [names.index(name) for name in types]
    if not chosen and silent.all() and (vector < 0).all():
        raise CreditError("the log says of no event whether it is trusted; name types of events that are not")
    kind = np.asarray(graph.event_type)[:n]
    trusted = stated.fill_null(True).to_numpy()
    untrusted = ~trusted | (silent & ((vector >= 0) | np.isin(kind, chosen)))
    if by == "vector" and not (vector >= 0).any():
        raise CreditError("no event states its attack_vector, the number of the survey's AV1 to AV8")
    tools = traces.events["tool"].to_pylist()
    units: dict[str, list[int]] = {"all": np.flatnonzero(untrusted).tolist()}
    for row in units["all"]:
        if by == "source":
            name = names[kind[row]] + (f" of {tools[row]}" if tools[row] else "")
        else:
            name = f"AV{vector[row]}" if vector[row] >= 0 else "not stated"
        units.setdefault(name, []).append(row)
    if by == "vector":
        for row in np.flatnonzero(~untrusted & (vector >= 0)).tolist():
            units.setdefault(f"AV{vector[row]}, trusted", []).append(row)
    action, trace = np.asarray(graph.action_mask)[:n], np.asarray(graph.trace_ids)[:n]
    last = last_of_each(trace, np.flatnonzero(action), TeamFacts.of(traces).clock.done, traces.sizes.traces)
    amount = None
    if credit is not None:
        differs = np.asarray(credit.credit, np.float64) - np.asarray(credit.baseline, np.float64)
        amount = np.where(np.asarray(credit.valid), np.abs(differs), 0)[:n]
    lacks_lines = bool(lacking_traces(traces).any())
    edges, found = EdgeOrder(*dependencies(traces.graph)), []
    reaches: list[np.ndarray] = []
    for first in range(0, len(units), 64):  # a bit for each unit; 64 of them spread in one walk
        bits, some = np.zeros(n, np.uint64), list(units.values())[first : first + 64]
        for place, rows in enumerate(some):
            bits[rows] |= np.uint64(1 << place)
        bits = edges.spread(bits)
        reaches += [(bits >> place & 1).astype(bool) & action for place in range(len(some))]
    for (name, rows), reached in zip(units.items(), reaches, strict=True):
        total = 0.0 if amount is None else float(amount.sum())
        found.append(
            Exposure(
                unit=name,
                events=len(rows),
                traces=len(np.unique(trace[rows])),
                reached=int(reached.sum()),
                actions=int(action.sum()),
                answers=int(reached[last[last >= 0]].sum()),
                credit_at_risk=None
                if amount is None or total == 0 or lacks_lines
                else float(amount[reached].sum() / total),
                lacks_lines=lacks_lines,
            )
        )
    return found
