"""The questions beside credit on a page: doctor, decisions, the team over time, untrusted events, costs, card."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from credit.doctor.team_checks import examine
from credit.metrics.aggregate_values import aggregate_values
from credit.metrics.candidate_values import candidate_values
from credit.metrics.cost_summary import (
    CostRow,
    cost_rows,
    rows_of_trace,
    said_of_traces,
    stated_sums,
    total_costs,
)
from credit.metrics.decision_values import DecisionKind, DecisionValue, step_values
from credit.metrics.event_costs import Prices, price_gaps
from credit.metrics.event_metrics import decision_costs, steps_of_decisions, team_course
from credit.metrics.repeated_costs import repeated_cost
from credit.metrics.run_card import run_card
from credit.metrics.success_costs import success_line
from credit.metrics.untrusted_reach import untrusted_reach
from credit.paid_for_success import lost_to_failures, paid_for_success
from credit.reports.uncounted_calls import failed_without_count
from credit.sides.unlike_tasks import unlike_tasks
from estimators.base import Credit
from graphs.errors import CreditError
from graphs.text import counted
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["questions"]

MOST_AGENTS = 15
"""Agents in a table of costs, which a page shows without a further click."""


def questions(
    traces: Traces, credit: Credit | None, prices: Prices | None = None, success_at: float | None = None
) -> dict[str, Any]:
    """Answers of `credit doctor`, `decisions`, `metrics --of`, `untrusted`, `costs` and `card`, as plain data.

    Args:
      traces: what was read.
      credit: a method's result on `traces.graph`; None for logs without outcomes.
      prices: of models and tools; without them costs have no money.
      success_at: the least outcome of a success; None where outcomes are 0 or 1.

    Returns:
      "doctor": a dict for each check; "costs_by": the unit of "costs"; "of_trace": such costs of a trace, by system,
      too, where the log states several, and "unlike" tasks of these; "priced": whether costs have money; "total": their
      sum; "stated": what the log states of traces (`stated_sums`); "gaps" of counts and prices, what was "paid"
      for a success and what went into "failed" traces and "repeated" calls, and in short "again", in sentences;
      "unpriced": some models without a price; others
      {"rows": dicts, "without": why there is none, or what they lack}.
    """
    by, parts = _costs_of_parts(traces, prices)
    reasons = dict.fromkeys(filter(None, steps_of_decisions(traces)[1]))
    asked: dict[str, Callable[[], Sequence[DataclassInstance]]] = {
        "stop": lambda: _values_of_more(traces, "stop"),
        "spawn": lambda: _values_of_more(traces, "spawn"),
        "whom": lambda: candidate_values(traces),
        "aggregate": lambda: aggregate_values(traces),
        "steps": lambda: decision_costs(traces),
        "team": lambda: team_course(traces),
        "untrusted": lambda: untrusted_reach(traces, credit),
        "vectors": lambda: untrusted_reach(traces, credit, by="vector"),
        "costs": lambda: parts,
        "models": lambda: cost_rows(traces, "model", prices),
        "tools": lambda: cost_rows(traces, "tool", prices),
        "card": lambda: run_card(traces),
    }
    answers = {name: _answer(ask) for name, ask in asked.items()}
    for name in ("stop", "spawn", "whom"):
        answers[name] = _answered(answers[name])
    answers["steps"]["without"] = "".join(f"Without critical steps: {reason}. " for reason in reasons).strip()
    stated = {name: dataclasses.asdict(amount) for name, amount in stated_sums(traces).items()}
    gaps, failed = None if prices is None else price_gaps(traces, prices), lost_to_failures(traces, prices, success_at)
    repeats = repeated_cost(traces, prices)
    uncounted, systems = failed_without_count(traces), {*traces.traces["system"].to_pylist()} - {"", None}
    apart = f"system,{by}" if len(systems) > 1 else by
    of_trace = rows_of_trace(traces, apart, parts if apart == by else cost_rows(traces, apart, prices), prices)
    answers["of_trace"] = {"by": apart.replace(",", ", "), "rows": [*map(_of_trace, of_trace)], "without": ""}
    answers["of_trace"]["note"] = said_of_traces(of_trace, apart)
    return answers | {
        "costs_by": by, "total": dataclasses.asdict(total_costs(parts)), "stated": stated,
        "unlike": unlike_tasks(traces),
        "repeated": repeats.told() if repeats else "", "again": repeats.in_short() if repeats else "",
        "gaps": [*([uncounted] if uncounted else []), *(gaps.lines() if gaps else [])],
        "unpriced": gaps.unpriced_names() if gaps else "", "as_logged": gaps is not None and gaps.as_logged,
        "paid": success_line(paid_for_success(traces, prices, success_at)), "failed": failed.told() if failed else "",
        "priced": prices is not None, "doctor": [finding.as_json() for finding in examine(traces, credit)]
    }  # fmt: skip


def _costs_of_parts(traces: Traces, prices: Prices | None) -> tuple[str, list[CostRow]]:
    """Costs by agent; by role where agents are more than `MOST_AGENTS`, and roles are several and fewer."""
    agents, roles = (cost_rows(traces, by, prices) for by in ("agent", "role"))
    return ("role", roles) if len(agents) > MOST_AGENTS and 1 < len(roles) < len(agents) else ("agent", agents)


def _of_trace(row: CostRow) -> dict[str, Any]:
    """A row with amounts of a trace in place of sums."""
    return dataclasses.asdict(row) | {name: dataclasses.asdict(amount) for name, amount in row.of_trace().items()}


def _values_of_more(traces: Traces, kind: DecisionKind) -> list[DecisionValue]:
    """`step_values`, where the log states a probability: to compile it takes seconds, and most logs have none."""
    name = f"{kind}_propensity"
    if name not in traces.evidence:
        raise CreditError(f"the log states no {name}")
    return step_values(traces, kind)


def _answer(ask: Callable[[], Sequence[DataclassInstance]]) -> dict[str, Any]:
    try:
        return {"rows": [dataclasses.asdict(row) for row in ask()], "without": ""}
    except CreditError as refused:
        return {"rows": [], "without": str(refused)}


def _answered(answer: dict[str, Any]) -> dict[str, Any]:
    """The rows that have a value; why the others have none, and how many they are."""
    refused = collections.Counter(row["reason"] for row in answer["rows"] if row["reason"])
    words = "; ".join(f"{reason} ({counted(count, 'row')})" for reason, count in refused.most_common())
    rows = [row for row in answer["rows"] if not row["reason"]]
    return {"rows": rows, "without": answer["without"] or (f"No value: {words}" if words else "")}
