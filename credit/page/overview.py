"""The sections of a page above the explorer, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from credit.doctor.idle_agents import idle_losses
from credit.doctor.selected_outcomes import corrected_failures, selected_outcomes
from credit.doctor.verdict_errors import verdict_errors
from credit.ledger.entry_rows import ENTRIES
from credit.ledger.receipts.receipt import LEGEND
from credit.ledger_summary import ledger_summary
from credit.main_findings import main_findings
from credit.method_summary import credit_hints, empty_notes
from credit.methods.absent_outcomes import channels_instead
from credit.metrics.cost_summary import paid_by_agent, with_paid
from credit.metrics.dearest_agent import dearest_agent
from credit.metrics.part_costs import agents_paid
from credit.metrics.runs_by_day import runs_by_day
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import MetricOptions, trace_metrics
from credit.page.encoding import harmless
from credit.page.findings import Findings
from credit.page.questions import questions
from credit.reports.agents_by_kind import agents_by_kind
from credit.reports.comparison import compare
from credit.reports.corpus import survey
from credit.reports.judged_traces import judged_traces
from credit.reports.leading_cause import LeadingCause
from credit.reports.leading_causes import leading_causes
from credit.reports.missing_lines import few_lacking
from credit.reports.outcome_differences import OutcomeDifferences, outcome_differences
from credit.reports.task_kinds import failed_by_kind
from credit.reports.trace_list import trace_rows
from credit.reports.trace_returns import acting, group_differences, returns
from credit.reports.triage import triage
from credit.reports.triage_legend import TRIAGE
from credit.reports.verdict_channels import of_one_source
from credit.reports.who_matters import Kind, Unit, alike_note, unit_terms, units_of_each
from credit.sides.compare_sides import compare_sides, compare_systems
from credit.sides.ranked_by_side import ranked_by_side
from credit.sides.verdict_changes import verdicts_by_system
from credit.telling_apart import NOTHING_DISTINGUISHES, apart_by_events, differs_within, place_note, tells_apart
from estimators.base import Credit
from graphs.levels import Level
from graphs.structure.host_ids import rows_of_each
from graphs.task_means import LEAST_OF_BOTH, LEAST_TASKS
from graphs.traces.batch import Traces

__all__ = ["group_rows", "level_rows", "overview"]

SHOWN = 200  # problems, and names in a list, that a page holds
LEVELS: tuple[Level, ...] = ("role", "agent", "turn")
SUMMARY = "rloo"
"""The method that `credit summary` takes where none is named."""
TOLD = {
    "causes",
    "opening",
    "changed",
    "but",
    "caveats",
    "failed",
    "numbers",
    "paid",
    "by_owner",
    "by_agent",
    "by_call",
    "by_verdict",
    "by_kind",
    "by_team",
    "origin",
    "origins",
    "of_tasks",
    "lines",
    "comparison",
    "example",
}
SENTENCES = 4000
"""Characters of what is told of differences: a reader takes a sentence that ends in the middle for a whole one."""


def overview(findings: Findings) -> dict[str, Any]:
    """What was read, signals of groups, who matters, the questions beside credit, the ledger, and methods side by side.

    Args:
      findings: what the page shows.

    Returns:
      Plain data whose texts are printable. Numbers are those of `survey`, `trace_rows`, `who_matters`,
      `outcome_differences`, `compare_sides`, `triage`, `questions`, `verdict_errors`, `verdicts_by_system`,
      `Ledger.table`, `ledger_summary` and `compare`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> overview(Findings.of(rows.traces, {"rloo": credit.rloo(graph, reward)}))["groups"][0]["signal"]
      'signal'
    """
    traces, claims, ledger = findings.traces, findings.claims, findings.ledger
    corpus = survey(traces)
    problems, notes = (
        sum(problem.count for problem in traces.problems if problem.is_failure == wrong) for wrong in (True, False)
    )
    few = dataclasses.replace(corpus, problems=traces.problems[:SHOWN], unscored=corpus.unscored[:SHOWN])
    matters = units_of_each(traces, claims)
    told = {name: tells_apart(traces, claim, name) for name, claim in claims.items()}
    apart = apart_by_events(traces) if not all(told.values()) else []
    varied = {name: differs_within(traces, claim) for name, claim in claims.items()}
    side = None if findings.sides is None else findings.sides.side
    by_side = () if findings.sides is None else (findings.sides.side, findings.sides.heads)
    heads, of_model = ((), "") if findings.sides is None else (findings.sides.heads, findings.sides.of_model)
    differing = outcome_differences(
        traces, success_at=findings.success_at, side=side, of_model=of_model,
        paid=agents_paid(traces, findings.prices),
    )  # fmt: skip
    asked: dict[str, Any] = {"success_at": findings.success_at, "texts": findings.texts, "side": side}
    causes = leading_causes(traces, **asked, heads=heads, of_model=of_model)
    found = triage(traces, **asked, leading=causes, number=differing.example)
    verdicts = verdict_errors(traces, findings.success_at)
    result: dict[str, Any] = {
        "corpus": few.as_json()
        | {
            "problem_kinds": corpus.problem_kinds,
            "problem_count": problems,
            "note_count": notes,
            "problem_texts": [str(problem) for problem in traces.problems[:SHOWN]],
            "with_outcome": corpus.traces - len(corpus.unscored) - len(corpus.odd),
        },
        "groups": group_rows(traces),
        "traces": trace_rows(traces),
        "methods": {name: _about(traces, name, claim) for name, claim in claims.items()},
        "who": {
            name: {by: [_unit_row(unit) for unit in rows] for by, rows in units.items()}
            for name, units in matters.items()
        },
        "alike": {
            name: {
                by: alike_note(rows, name, by, told[name], differing.of_units(by), place, apart, varied[name])
                for by, rows in units.items()
            }
            for name, units in matters.items()
            for place in [place_note(traces, claims[name])]
        },
        "unit_terms": {
            name: {by: unit_terms(rows, name) for by, rows in units.items()} for name, units in matters.items()
        },
        "summary": {
            "method": _opening(matters),
            "least_tasks": LEAST_TASKS,
            "least_of_both": LEAST_OF_BOTH,
            "doubt": NOTHING_DISTINGUISHES if told and not any(told.values()) and not apart else None,
        },
        "legend": LEGEND,
        "differences": differing.as_json()
        | {"name": _name(differing, causes), "terms": differing.terms(), "comparison": differing.comparison()},
        "triage": dataclasses.asdict(found)
        | {"legend": TRIAGE, "commonness": found.commonness()}
        | {"agents": with_paid(found.agents, paid_by_agent(traces, findings.prices))}
        | {"causes": [dataclasses.asdict(one) | {"told": one.told()} for one in causes]},
        "questions": questions(traces, claims.get(_opening(matters) or ""), findings.prices, findings.success_at),
        "verdicts": [one.as_json(*by_side) for one in verdicts],
        "verdicts_by_system": "" if findings.sides is not None else verdicts_by_system(traces, verdicts),
        "agents_by_kind": [*map(dataclasses.asdict, agents_by_kind(traces, findings.success_at))],
        "days": dataclasses.asdict(runs_by_day(traces, findings.success_at, findings.prices)),
        "hints": differing.hints(),
        "few_lacking": few_lacking(traces),
        "sides": None,
        "ledger": None,
        "comparison": None,
    }
    compared = None if findings.sides is not None else compare_systems(traces, findings.prices, findings.success_at)
    result["hints"] += [] if compared is None else [compared.sides.command(traces)]
    if findings.sides is not None:
        credit = claims.get(SUMMARY, claims.get(_opening(matters) or ""))
        measured = with_costs(
            traces, trace_metrics(traces, MetricOptions(findings.success_at, credit)), findings.prices
        )
        compared = compare_sides(traces, findings.sides, measured, findings.prices, findings.success_at)
        result["hints"] += compared.hints()
        result["sides"] = compared.as_json() | {
            "heads": findings.sides.heads,
            "terms": compared.terms(),
        }
    by_system = compared.sides_of_kinds() if compared else ()
    of_sides = (compared.sides.side, compared.sides.heads) if compared else ()
    one_source = of_one_source(traces)
    of_kinds = failed_by_kind(one_source, judged_traces(one_source, findings.success_at), *by_system)
    selected = selected_outcomes(traces, findings.success_at, findings.prices)
    corrected = corrected_failures(traces, findings.success_at, findings.prices, *of_sides)
    result["findings"] = [one.as_json() for one in main_findings(
        traces, differing=differing, of_kinds=of_kinds,
        selected=selected, corrected=corrected,
        by_system=result["verdicts_by_system"],
        causes=causes, triaged=found, verdicts=verdicts, compared=compared,
        ranked=ranked_by_side(traces, findings.success_at, findings.sides),
        lost=[*(result["questions"][name] for name in ("failed", "again")),
              *idle_losses(traces, differing, findings.prices)],
        dearest=dearest_agent(traces, findings.prices),
    )]  # fmt: skip
    if ledger is not None:
        summary = ledger_summary(traces, ledger, claims)
        result["ledger"] = summary.as_json() | {
            "lines": summary.lines(),
            "levels": {level: level_rows(findings, level) for level in LEVELS},
        }
    if len(claims) > 1:
        result["comparison"] = compare(traces, claims).as_json()
    result["hints"] = _hints(
        findings, result, told=any(unit.signal for by in matters.values() for of in by.values() for unit in of)
    )
    plain: dict[str, Any] = harmless(result)
    for name in ("differences", "sides", "triage"):
        told = result[name] or {}
        plain[name] = plain[name] and plain[name] | harmless({key: told[key] for key in TOLD & told.keys()}, SENTENCES)
    for name in ("verdicts", "verdicts_by_system", "findings"):
        plain[name] = harmless(result[name], SENTENCES)
    return plain


def _hints(findings: Findings, result: dict[str, Any], *, told: bool) -> list[str]:
    """Commands that do more: the page itself says what is so."""
    hints: list[str] = result["hints"]
    if findings.claims:
        hints = credit_hints(findings.traces, hints, told=told)
        hints += ["`credit score reliability` compares two halves of the logs: how far credit can be trusted."] * told
    elif not result["corpus"]["with_outcome"]:
        hints = [*hints, *["`credit label` gives traces outcomes."] * (not channels_instead(findings.traces))]
    asked = result["questions"]
    priced = asked["priced"] or asked["total"]["logged_money"]["total"] or "money" in asked["stated"]
    return hints if priced else [*hints, "`--prices FILE`, prices of models and tools, adds money."]


def _name(differing: OutcomeDifferences, causes: Sequence[LeadingCause]) -> str:
    """What introduces the differences: tested causes stand above a table in which nothing may differ beyond chance."""
    tested = any(one.beyond_chance for one in causes)
    return f"What {'else ' if tested and not any(row.stands_out for row in differing.rows) else ''}differs"


def _opening(matters: dict[str, dict[Kind, list[Unit]]]) -> str | None:
    """The method that the page shows first: that of `credit summary`, unless only others tell units apart."""
    names = sorted(matters, key=lambda name: name != SUMMARY)
    telling = (name for name in names if any(unit.signal for units in matters[name].values() for unit in units))
    return next(telling, next(iter(names), None))


def _unit_row(unit: Unit) -> dict[str, Any]:
    return dataclasses.asdict(unit) | {"stands_out": unit.stands_out}


def _about(traces: Traces, name: str, claim: Credit) -> dict[str, Any]:
    """What a method estimates, a note on its numbers, and why no action has one, where none has."""
    return {
        "estimand": claim.estimand,
        "source": claim.source,
        "unit": claim.unit,
        "note": place_note(traces, claim),
        "empty": [] if np.asarray(claim.valid).any() else [line.strip() for line in empty_notes(traces, claim, name)],
    }


def group_rows(traces: Traces) -> list[dict[str, Any]]:
    """One row a group: name, traces, with_outcome, mean, least and greatest return, and its training signal.

    `signal` is "signal" if returns differ, "equal" if they do not, and "unresolved" if they differ by less than methods
    can tell apart. It is "single" for a group of one trace, and "unscored" for one with fewer than two outcomes of
    traces that act. `survey` counts groups alike.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0, 0, 1], trace=["a", "b", "c"], reward=[1.0, 0.0, 1.0])
      >>> [(row["group"], row["mean"], row["signal"]) for row in group_rows(rows.traces)]
      [('0', 0.5, 'signal'), ('1', 1.0, 'single')]
    """
    n = traces.sizes.traces
    group = np.asarray(traces.graph.group_ids)[:n]
    earned = returns(traces)
    scored = np.isfinite(earned)
    compared = np.bincount(group, scored & acting(traces))
    size = np.bincount(group)
    counts = np.bincount(group, scored, len(size)).astype(int)
    differences = group_differences(traces)
    names = traces.traces["group"].to_pylist()
    rows = []
    for g, members in enumerate(rows_of_each(group)):
        values = earned[members][scored[members]]
        if len(members) == 1:
            signal = "single"
        elif compared[g] < 2:
            signal = "unscored"
        else:
            signal = "signal" if differences.apart[g] else "unresolved" if differences.unresolved[g] else "equal"
        rows.append(
            {
                "group": names[int(members[0])],
                "traces": len(members),
                "with_outcome": int(counts[g]),
                "mean": float(values.mean()) if len(values) else None,
                "least": float(values.min()) if len(values) else None,
                "greatest": float(values.max()) if len(values) else None,
                "signal": signal,
            }
        )
    return rows


def level_rows(findings: Findings, level: Level) -> list[dict[str, Any]]:
    """Entries of the ledger by name at a level, over all traces with a reward: entry, name, traces, sum.

    A row "increment" has the sum over the units of one role, agent or turn; the other entries of a trace have no name.
    All sums together are the sum of the rewards, up to rounding of double precision.
    """
    if findings.ledger is None:
        return []
    rows = findings.ledger.table(findings.traces, level)
    name = pa.array([None] * rows.num_rows, pa.string())
    if level == "turn":
        name = rows["turn_in_trace"].cast(pa.string())
    elif level in rows.column_names:
        name = rows[level].cast(pa.string())
    scored = set(np.flatnonzero(np.asarray(findings.ledger.scored)).tolist())
    with_reward = [trace for i, trace in enumerate(findings.traces.traces["trace"].to_pylist()) if i in scored]
    kept = pa.table({"entry": rows["entry"].cast(pa.string()), "name": name, "trace": rows["trace"].cast(pa.string()),
                     "amount": rows["amount"]})  # fmt: skip
    kept = kept.filter(pa.compute.is_in(kept["trace"], pa.array(with_reward, pa.string())))
    sums = kept.group_by(["entry", "name"]).aggregate([("amount", "sum"), ("trace", "count_distinct")]).to_pylist()
    plain = [
        {"entry": row["entry"], "name": row["name"], "traces": row["trace_count_distinct"], "sum": row["amount_sum"]}
        for row in sums
    ]
    return sorted(plain, key=lambda row: (ENTRIES.index(row["entry"]), -abs(row["sum"])))
