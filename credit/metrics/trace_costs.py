"""What each trace cost and gained beside metrics: outcome, errors, tokens, money, time, early end."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from credit.metrics.event_costs import (
    Prices,
    as_logged,
    event_costs,
    price_gaps,
    price_names,
    token_counts,
    whole_costs,
)
from credit.metrics.success_costs import known_costs
from credit.reports.chosen_numbers import NO_ARGUMENTS, of_known_logs
from credit.reports.endings import ended_early
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.missing_lines import LACKING, lacking_traces
from credit.reports.trace_list import has_statuses
from credit.reports.trace_numbers import STATED_COST, TeamFacts, TraceMetric, numbered
from credit.reports.uncounted_calls import OF_TOOL_CALLS, uncounted_tool_calls
from graphs.traces.batch import Traces

__all__ = ["COSTS", "IDLE", "SILENT", "UNCOUNTED", "UNPRICED", "UNSTATED_COST", "costs_of_traces", "with_costs"]

UNCOUNTED = "an action has no count of tokens"
SILENT = "a model call is in no event"
UNPRICED = "no row of the table prices "
UNSTATED_COST = "the logged cost lacks some calls"
UNREAD_TOKENS = "no call of the trace read a token"
IDLE = "no model call of the trace succeeded"
"""Why a run that was refused from its first call on is in no comparison of costs: its 0 has no ratio to others."""
OF_UNSTATED = "a model of it"
"""What it is that none prices, where the log states no name."""
MEASURED = frozenset({"tokens", "input_tokens", "money", "tool_calls", "wall_clock_s"})
"""Costs stated of traces whose metric has another name."""
COSTS: Mapping[str, str] = {
    "outcome": "the reward of the trace, where outcomes are not all 0 or 1",
    "ended_early": "the part of traces that end early, where some do: in a call or a result, at a limit or in an error",
    "errors": "events, or calls of a tool, whose status the log calls an error",
    "unrecovered_errors": "errors of calls of which no later one of the agent with the same arguments succeeded",
    "loops": "times that an agent repeats calls, or agents their messages, 3 times in a row or more, but for retries",
    "tokens": "tokens that the actions generated",
    "input_tokens": "tokens that the actions read",
    "cached_part": "the part of the tokens read that came from a cache, where the log states some",
    "money": "money at the prices of a table, `--prices`",
    "logged_money": "logged cost of the trace, or else of all its calls",
    "wall_clock": "seconds from the first begin to the last end, without waits for a person, real or simulated",
    "tool_calls": "calls of tools, and spawns by one",
}
"""What each number of `costs_of_traces` is."""


def with_costs(
    traces: Traces, measured: dict[str, TraceMetric], prices: Prices | None = None
) -> dict[str, TraceMetric]:
    """Metrics of `trace_metrics` with success first, then `costs_of_traces`, as they are asked of a run."""
    return {"success": measured["success"]} | costs_of_traces(traces, prices) | measured


def costs_of_traces(traces: Traces, prices: Prices | None = None) -> dict[str, TraceMetric]:
    """What a change may cost or gain beside metrics: of each trace outcome, errors, loops, tokens, time, early end.

    Outcomes are left out where all are 0 or 1, since "success" has them. "unrecovered_errors" and "loops" are those of
    `ToolCalls`; "tokens" are
    those generated and "input_tokens" those read, where all actions have a count; "wall_clock" is in seconds, without
    waits for a person, real or simulated. "money" is there with prices, of traces whose counts and models' prices are
    known, and "logged_money" where logs state some and it is not "money" of every trace: that of the trace, or else the
    sum of its calls where all state theirs. Other costs that they state are "costs.NAME". Traces that lack lines have
    the outcome alone (`lacking_events`). What is asked first of a change comes first.

    Args:
      traces: what was read.
      prices: of models and tools.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], reward=[2.0, 0.5])
      >>> costs_of_traces(rows.traces)["outcome"].value.tolist()
      [2.0, 0.5]
    """
    m, trace = traces.sizes.traces, np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    facts = TeamFacts.of(traces)
    calls = facts.calls
    costs, wall = event_costs(traces, prices), facts.durations.wall
    outcome = np.asarray(traces.reward, np.float64)[:m]
    graded = np.any(np.isfinite(outcome) & (outcome != 0) & (outcome != 1))

    lacking, of_tools = (lacking_traces(traces), LACKING), uncounted_tool_calls(traces)

    refusals = np.bincount(trace, failed_model_calls(traces), m)
    idle = (refusals > 0) & (refusals == np.bincount(trace, facts.action, m)), IDLE

    def summed(cost: np.ndarray, what: str, *refused: tuple[np.ndarray, str]) -> TraceMetric:
        total = np.bincount(trace, cost, m)
        bare = facts.action & np.isnan(cost)
        of_action, others = (np.bincount(trace, rows, m) > 0 for rows in (bare, bare & ~of_tools))
        uncounted = (of_action & ~others, OF_TOOL_CALLS), (others, UNCOUNTED + what)
        return numbered(total, *refused, lacking, *uncounted, (np.isnan(total), SILENT), idle)

    found = {"outcome": numbered(outcome, (np.isnan(outcome), "the trace has no outcome"))} if graded else {}
    loops, unrecovered = calls.loop_counts(), calls.unrecovered_counts()
    early, told = ended_early(traces)
    bare = ~has_statuses(traces), "the log states no status"
    if early.any():
        untold = ~told, "the log does not tell how its runs end"
        found["ended_early"] = numbered(early * 1.0, untold, (lacking[0] & ~early, LACKING))
    found |= {
        "errors": numbered(np.bincount(trace, calls.counted, m), bare, lacking),
        "unrecovered_errors": of_known_logs(
            traces, numbered(unrecovered, bare, lacking, (np.isnan(unrecovered), NO_ARGUMENTS))
        ),
        "loops": of_known_logs(traces, numbered(loops, lacking, (np.isnan(loops), NO_ARGUMENTS))),
        "tokens": summed(costs.tokens, ""),
        "input_tokens": summed(costs.input_tokens, " that it read"),
    }
    if "cached_tokens" in traces.evidence:
        cached = np.bincount(trace, np.nan_to_num(token_counts(traces, "cached_tokens", hidden=False)), m)
        read, why = found["input_tokens"]
        part = np.where(read > 0, np.fmin(cached, read) / np.maximum(read, 1), np.nan)
        found["cached_part"] = TraceMetric(part, [
            reason or UNREAD_TOKENS * (amount == 0) for reason, amount in zip(why, read.tolist(), strict=True)
        ])  # fmt: skip
    if prices is not None:
        names, model = price_names(traces, prices)
        named, foreign = np.array([(name != "", name not in prices.models) for name in names]).T[:, model]
        acts = (facts.action & named) | np.isfinite(costs.tokens + costs.input_tokens)
        unpriced = np.bincount(trace, acts & foreign & np.isnan(costs.money), m) > 0
        which = (price_gaps(traces, prices).unpriced_names() if unpriced.any() else "") or OF_UNSTATED
        found["money"] = summed(costs.money, ", read or generated", (unpriced, UNPRICED + which))
    of_calls = traces.evidence.get("money")
    says = np.isfinite(whole_costs(traces).get("money", np.full(m, np.nan)))
    says |= False if of_calls is None else np.bincount(trace, of_calls.mask[: len(trace)], m) > 0
    if says.any() and not (prices is not None and as_logged(traces, costs.money)):
        logged, whole = known_costs(traces, "logged_money")
        whole &= says | (refusals > 0)  # a call that failed cost nothing
        found["logged_money"] = numbered(logged, (~whole, UNSTATED_COST), idle)
    return (
        found
        | {
            "wall_clock": numbered(wall, (np.isnan(wall), "the log has no times in seconds"), lacking),
            "tool_calls": numbered(np.bincount(trace, costs.tool_calls, m), lacking),
        }
        | {
            f"{STATED_COST}{name}": numbered(logged, (np.isnan(logged), "the log does not state it of the trace"))
            for name, logged in whole_costs(traces).items()
            if name not in MEASURED
        }
    )
