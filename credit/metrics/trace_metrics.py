"""Metrics of traces: a number for each trace, or the reason why it has none."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from credit.metrics.clustered_error import beyond_two_errors
from credit.metrics.event_metrics import team_events
from credit.metrics.message_contents import ALIKE, content_ids, embedded_ids, team_messages
from credit.reports.durations import busy_seconds
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.missing_lines import lacking_traces
from credit.reports.outside_team import outside_team
from credit.reports.trace_list import counted_tokens
from credit.reports.trace_numbers import (
    NO_ACTION,
    UNLINKED,
    TeamFacts,
    TraceMetric,
    different,
    divided,
    numbered,
    of_whole_traces,
)
from credit.reports.uncounted_calls import OF_TOOL_CALLS, uncounted_tool_calls
from graphs.distinct_columns import distinct_columns
from graphs.errors import CreditError, expect
from graphs.event_types import EventType
from graphs.structure.critical_path import critical_steps
from graphs.structure.decision_kinds import KIND_NAMES, decision_kind
from graphs.structure.host_ids import among
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from estimators.base import Credit

__all__ = ["METRICS", "PARTS", "MetricOptions", "metrics_of_facts", "trace_metrics"]

UNTYPED = "several agents act, and the log calls no event a decision about the team"
OF_TEAM = [KIND_NAMES.index(name) for name in ("spawn", "whom", "aggregate", "stop")]


@dataclasses.dataclass(frozen=True)
class MetricOptions:
    """What metrics take beside the log.

    Attributes:
      success_at: the outcome from which a trace succeeded; None where outcomes are 0 or 1.
      credit: a method's result, for the agents that earned something; None to leave them out.
      embeddings: float [events, D], a row for each event, NaN where it has none: messages then say the same by these.
      alike: cosine from which two embedded messages say the same.
    """

    success_at: float | None = None
    credit: Credit | None = None
    embeddings: np.ndarray | None = None
    alike: float = ALIKE


def trace_metrics(traces: Traces, options: MetricOptions | None = None) -> dict[str, TraceMetric]:
    """Every metric of `METRICS` for each trace. One that lacks lines has `success` alone (`lacking_traces`).

    Args:
      traces: what was read.
      options: a threshold, credit, embeddings.

    Raises:
      CreditError: `options` do not fit the batch.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], agent=["x", "y"], reward=[1.0, 0.0])
      >>> found = trace_metrics(rows.traces)
      >>> found["success"].value.tolist(), found["parallelism"].reasons
      ([1.0, 0.0], ['', ''])
    """
    expect("traces", traces, Traces, "what credit.read returns")
    options = options or MetricOptions()
    _check(traces, options)
    return metrics_of_facts(TeamFacts.of(traces), options)


def metrics_of_facts(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    """The same from what is known of the teams; the options are those of the batch.

    Args:
      facts: of the teams.
      options: of the metrics, those of the batch.
    """
    lacking = lacking_traces(facts.traces)
    found: dict[str, TraceMetric] = {}
    for compute in COMPUTED:
        for name, metric in compute(facts, options).items():
            found[name] = metric if name == "success" else of_whole_traces(metric, lacking)
    return found


def _check(traces: Traces, options: MetricOptions) -> None:
    if options.success_at is not None and not math.isfinite(options.success_at):
        raise CreditError(f"success_at is {options.success_at}; expected a finite number")
    if options.embeddings is not None and np.asarray(options.embeddings).dtype.kind not in "fiu":
        kind = np.asarray(options.embeddings).dtype
        raise CreditError(f"embeddings are of dtype {kind}; expected numbers, float [events, D]")
    if options.credit is not None and options.credit.credit.shape != (traces.graph.num_events,):
        raise CreditError(f"credit has shape {options.credit.credit.shape}; expected ({traces.graph.num_events},)")
    if options.embeddings is not None:
        shape = options.embeddings.shape
        if len(shape) != 2 or shape[0] != traces.sizes.events:
            raise CreditError(f"embeddings have shape {shape}; expected a row for each of {traces.sizes.events} events")
    if not -1 <= options.alike <= 1:
        raise CreditError(f"alike is {options.alike}; expected a cosine, -1 to 1")


def success_of_traces(traces: Traces, success_at: float | None = None) -> TraceMetric:
    """Whether each trace succeeded, 0 or 1: the metric "success".

    Args:
      traces: what was read.
      success_at: as of `MetricOptions`.
    """
    reward = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    unknown = (np.isnan(reward), "the trace has no outcome")
    if success_at is not None:
        return numbered(np.where(reward >= success_at, 1.0, 0.0), unknown)
    graded = np.isfinite(reward) & (reward != 0) & (reward != 1)
    some = np.full(len(reward), bool(graded.any()))
    return numbered(reward, unknown, (some, "outcomes are not all 0 or 1: state from which one succeeds"))


def _success(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    return {"success": success_of_traces(facts.traces, options.success_at)}


def _parallel(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    longest = facts.greatest(facts.order.longest(facts.action.astype(np.int64))[0])
    actions, in_turn = facts.counts.actions, facts.in_turn(np.flatnonzero(facts.action))
    average = np.where(in_turn, 1.0, divided(actions, longest))
    return {"parallelism": numbered(average, (actions == 0, NO_ACTION), *facts.untold_shape)}


def _seconds(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    seconds, path = facts.durations, facts.seconds_on_path
    why = [(np.array([reason == words for reason in seconds.reasons]), words) for words in {*seconds.reasons} - {""}]
    unbegun = np.isnan(seconds.work), "an event has no `seconds`, and no cause that says when it began"
    refused = (*why, *facts.untold_shape, unbegun, (~(path > 0), "no event took time"))
    # Events that all follow one another do not run at once, where clocks overlap neither.
    longest = facts.greatest(facts.order.longest(np.ones(len(facts.trace), np.int64))[0])
    rows = np.flatnonzero((facts.kind != int(EventType.HUMAN_INTERVENTION)) & ~outside_team(facts.traces))
    alone = (longest == np.bincount(facts.trace, minlength=len(longest))) | facts.in_turn(rows)
    busy = busy_seconds(facts.trace[rows], seconds.begun[rows], seconds.end[rows], len(longest))
    return {
        "parallelism_seconds": numbered(np.where(alone, 1.0, divided(seconds.work, path)), *refused),
        "speed_up": numbered(np.where(alone, 1.0, divided(seconds.work, busy)), *refused),
    }


def _critical(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    traces, m = facts.traces, facts.traces.sizes.traces
    stated = traces.evidence.get("stage")
    stage = facts.forms.stage if stated is None else stated.array
    steps = critical_steps(traces.graph, stage, main=facts.forms.main)
    idle = (facts.counts.actions == 0, NO_ACTION)
    lost = (~steps.defined[:m], "no single main agent, or an action without a stage")
    return {"critical_steps": numbered(steps.steps[:m].astype(np.float64), idle, lost)}


def _useful(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    graph, n, m = facts.traces.graph, facts.traces.sizes.events, facts.traces.sizes.traces
    acts, members, actions = facts.counts
    useful = facts.reaching_answer
    owner = np.asarray(graph.agent_trace)
    idle = (actions == 0, NO_ACTION)
    reached = np.bincount(owner[useful & (acts > 0)], minlength=m)
    apart = ((members > 1) & ~facts.linked, UNLINKED)
    found = {"useful_agents": numbered(divided(reached, members), idle, facts.unended, apart, facts.hidden_work)}
    if options.credit is None:
        return found
    from credit.telling_apart import NOT_APART, tells_apart  # after what it reads: methods take metrics
    from estimators.base import OF_ACTIONS, Reason

    valid = np.asarray(options.credit.reason)[:n] == Reason.VALID
    amount = (np.asarray(options.credit.credit, np.float64) - np.asarray(options.credit.baseline, np.float64))[:n]
    error = np.asarray(options.credit.stderr, np.float64)[:n]
    known = np.flatnonzero(valid & np.isfinite(error))
    agent, trace, amount, error = facts.agent[known], facts.trace[known], amount[known], error[known]
    earned = np.bincount(agent, amount, graph.num_agents)
    doubt = np.bincount(agent, error, graph.num_agents)  # errors of one trace add up at worst
    stated = np.bincount(agent, minlength=graph.num_agents) == acts
    lacks = np.bincount(owner[(acts > 0) & ~stated], minlength=m) > 0
    beyond = np.bincount(owner[(acts > 0) & beyond_two_errors(earned, doubt)], minlength=m)
    unknown = (lacks, "the method gives an action of the trace no number, or no error")
    alike = (np.full(m, not tells_apart(facts.traces, options.credit)), NOT_APART)
    squares, noise = (np.bincount(trace, x**2, m) for x in (amount, error))
    exact = (~(noise > 0), "the method states no error above 0")
    of_returns = (
        np.full(m, options.credit.estimand not in OF_ACTIONS),
        "its errors are the spread of returns",
    )
    return found | {
        "credited_agents": numbered(divided(beyond, members), alike, idle, unknown),
        "signal_to_noise": numbered(np.sqrt(divided(squares, noise)), of_returns, idle, unknown, exact),
    }


def _communication(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    traces, n, m = facts.traces, facts.traces.sizes.events, facts.traces.sizes.traces
    rows = team_messages(traces)
    trace = facts.trace[rows]
    if options.embeddings is None:
        ids = content_ids(traces, rows)
        absent = "the log has no content of its messages that can be compared"
    else:
        ids = embedded_ids(options.embeddings[rows], trace, options.alike)
        absent = "a message has no embedding"
    count = np.bincount(trace, minlength=m)
    none = (count == 0, "the team wrote no message")
    unknown = (np.bincount(trace[ids < 0], minlength=m) > 0, absent)
    messages = {
        "message_redundancy": numbered(
            1 - divided(different(trace, ids, m), count),
            none,
            facts.unread,
            (count == 1, "the team wrote one message, which can repeat none"),
            unknown,
        ),
        **_debate(facts, rows, ids, none, unknown),
    }
    tokens = traces.evidence.get("tokens")
    action, of_event, known = facts.action, facts.trace, counted_tokens(traces)
    amount = np.where(known, 0 if tokens is None else tokens.array[:n], 0)
    managing = among(decision_kind(traces.graph)[:n], OF_TEAM)
    chosen, of_team, uncounted = map(
        np.flatnonzero, (action, action & managing, action & ~known & ~failed_model_calls(traces))
    )
    total, protocol = (np.bincount(of_event[rows], amount[rows], m) for rows in (chosen, of_team))
    bare, of_tools = np.bincount(of_event[uncounted], minlength=m) > 0, uncounted_tool_calls(traces)
    untyped = (facts.counts.members > 1) & (np.bincount(of_event[managing], minlength=m) == 0)
    refused = (
        (facts.counts.actions == 0, NO_ACTION),
        (bare & (np.bincount(of_event[uncounted[~of_tools[uncounted]]], minlength=m) == 0), OF_TOOL_CALLS),
        (bare, "an action has no count of tokens"),
        (total == 0, "the actions generated no token"),
        (untyped, UNTYPED),
    )
    return messages | {"protocol_overhead": numbered(divided(protocol, total), *refused)}


def _debate(
    facts: TeamFacts,
    rows: np.ndarray,
    ids: np.ndarray,
    none: tuple[np.ndarray, str],
    unknown: tuple[np.ndarray, str],
) -> dict[str, TraceMetric]:
    graph, m = facts.traces.graph, facts.traces.sizes.traces
    other = (~facts.debates, "the team is no debate")
    in_debate = facts.debates[facts.trace[rows]]
    rows, ids = rows[in_debate], ids[in_debate]
    agent, owner = np.asarray(graph.agent_ids)[rows], np.asarray(graph.agent_trace)
    speakers, first = np.unique(agent, return_index=True)
    last = len(agent) - 1 - np.unique(agent[::-1], return_index=True)[1]
    of_trace = owner[speakers]
    count = np.bincount(of_trace, minlength=m)
    votes = np.zeros(m)
    pairs = distinct_columns(of_trace, ids[last])
    np.maximum.at(votes, pairs.columns[0], pairs.counts)
    opening, one = different(of_trace, ids[first], m), (count == 1, "one agent alone wrote messages")
    return {
        "consensus": numbered(divided(votes, count), other, none, one, unknown),
        "diversity": numbered(divided(opening, count), other, none, one, unknown),
    }


def _errors(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    m, trace = facts.traces.sizes.traces, facts.trace
    wrong = facts.calls.errors
    senders, receivers = facts.causes
    led = np.zeros(len(trace), bool)
    if wrong.any():
        led[receivers[facts.order.reachable(wrong)[senders]]] = True
    every, roots = (np.bincount(trace[mask], minlength=m) for mask in (wrong, wrong & ~led))
    return {
        "error_amplification": numbered(
            divided(every, roots),
            (every == 0, "the log calls no event an error"),
        )
    }


def _team(facts: TeamFacts, options: MetricOptions) -> dict[str, TraceMetric]:
    found, m = team_events(facts.traces), facts.traces.sizes.traces
    trace, at, end = facts.trace, facts.clock.at, facts.clock.end
    joined = found.births & (at > facts.of_traces(np.minimum, at, at.max(initial=0))[trace])
    left = found.deaths & (end < facts.greatest(end)[trace])
    return {
        "team_peak": numbered(facts.greatest(found.size)),
        "team_mean": numbered(np.bincount(trace, found.size, m) / np.bincount(trace, minlength=m)),
        "team_births": numbered(np.bincount(trace[joined], minlength=m)),
        "team_deaths": numbered(np.bincount(trace[left], minlength=m)),
    }


COMPUTED: tuple[Callable[[TeamFacts, MetricOptions], dict[str, TraceMetric]], ...] = (
    _success,
    _parallel,
    _seconds,
    _critical,
    _useful,
    _communication,
    _errors,
    _team,
)

METRICS: Mapping[str, str] = {
    "success": "the part of traces that succeeded",
    "parallelism": "actions over those on the critical path; 1 where their times show that none ran at once",
    "parallelism_seconds": "seconds of work over those on the critical path; 1 where nothing ran at once",
    "speed_up": "seconds of work over those in which somebody worked",
    "critical_steps": "steps of the main agent and of the longest sub-agent, stage by stage",
    "useful_agents": "the part of agents with a path to the last action",
    "credited_agents": "the part of agents whose credit is beyond two standard errors; sides are not compared in it",
    "signal_to_noise": "claims on single actions over their standard errors, root mean squares; nor in this",
    "message_redundancy": "the part of messages that say what an earlier one of the trace says",
    "consensus": "in debates, the part of agents whose last message is the most frequent one",
    "diversity": "in debates, different first messages over agents",
    "protocol_overhead": "the part of generated tokens in decisions about the team",
    "error_amplification": "errors over those that no earlier error led to",
    "team_peak": "the greatest number of agents at once, each from its first event to its last",
    "team_mean": "their mean number over events",
    "team_births": "agents that join after the first event",
    "team_deaths": "agents that leave before the last event",
}
"""The metrics, and what each of them is."""

OF_CREDIT = frozenset({"credited_agents", "signal_to_noise"})
"""The metrics of a trace that rest on the other traces of its group, so that runs of a task are not independent."""

PARTS = frozenset(
    {"success", "ended_early", "cached_part", "useful_agents", "credited_agents", "message_redundancy", "consensus",
     "diversity", "protocol_overhead"}
)  # fmt: skip
"""The metrics whose numbers lie between 0 and 1."""
