"""The card of a set of traces: what a report of results should state, filled as far as the log tells."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping

import numpy as np
import pyarrow.compute as pc

from credit.metrics.cost_summary import group_costs
from credit.metrics.event_costs import event_costs
from credit.metrics.metric_summary import metric_means
from credit.metrics.success_costs import known_costs
from credit.metrics.trace_metrics import MetricOptions, metrics_of_facts
from credit.reports.corpus import Survey, survey
from credit.reports.durations import positions
from credit.reports.missing_lines import LACKING, lacking_traces
from credit.reports.trace_numbers import TeamFacts
from graphs.errors import expect
from graphs.event_graph import EventType
from graphs.structure.host_ids import distinct
from graphs.structure.topology import TOPOLOGIES
from graphs.text import at_least, counted, percent
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models
from graphs.traces.schema import EVENT_EVIDENCE, TRACE_EVIDENCE

__all__ = ["CardLine", "run_card"]

MOST = 5  # names of models, systems or formats in a line


@dataclasses.dataclass(frozen=True)
class CardLine:
    """One line of the card.

    Attributes:
      section, item: what it states.
      value: in words; "" where the log does not tell.
      missing: what the log lacks; "" where it lacks nothing.
    """

    section: str
    item: str
    value: str
    missing: str


def run_card(traces: Traces) -> list[CardLine]:
    """The card: tasks and policies, teams, outcomes, work, costs, evidence, safety, and what could be run again.

    Numbers are means over tasks where they are metrics (`metric_means`), and counts otherwise. The items are this
    library's own choice.

    Args:
      traces: what was read.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], agent=["x", "y"], reward=[1.0, 0.0])
      >>> [line.value for line in run_card(rows.traces) if line.item.startswith("success")]
      ['0.5']
    """
    expect("traces", traces, Traces, "what credit.read returns")
    found = survey(traces)
    facts = TeamFacts.of(traces)
    lines = [
        *_tasks(traces, found),
        *_teams(facts, found),
        *_measured(facts),
        *_costs(facts, found),
        *_evidence(traces, found),
        *_safety(traces),
    ]
    sections = list(dict.fromkeys(line.section for line in lines))
    return sorted(lines, key=lambda line: sections.index(line.section))


def _line(section: str, item: str, value: str, missing: str) -> CardLine:
    return CardLine(section, item, value, "" if value else missing)


def _number(value: float, digits: int = 6) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}g}"


def _names(counts: collections.Counter[str]) -> str:
    listed = [f"{name} ({count})" for name, count in counts.most_common(MOST) if name]
    return ", ".join(listed) + (", …" if len(counts) > MOST else "")


def _tasks(traces: Traces, found: Survey) -> list[CardLine]:
    of = {
        name: collections.Counter(str(cell or "") for cell in traces.traces[name].to_pylist())
        for name in ("task", "system")
    }
    names, model = event_models(traces)
    action = np.flatnonzero(np.asarray(traces.graph.action_mask)[: traces.sizes.events])
    trace = np.asarray(traces.graph.trace_ids)[: traces.sizes.events]
    used = distinct(trace[action].astype(np.int64) * len(names) + model[action])  # by trace and model
    models = collections.Counter(names[number % len(names)] for number in used.tolist())
    sizes = ", ".join(f"{counted(count, 'group')} of {size}" for size, count in found.group_sizes.items())
    versions = traces.evidence.get("policy_version")
    stated = [] if versions is None else versions.amounts.tolist()
    span = f"{int(min(stated))} to {int(max(stated))}" if stated else ""
    refused = sum(problem.count for problem in found.problems if problem.is_failure)
    return [
        _line("tasks", "traces, tasks", f"{found.traces}, {len(of['task'])}", ""),
        _line("tasks", "groups, by traces", sizes, ""),
        _line("tasks", "formats", _names(collections.Counter(found.formats)), ""),
        _line("tasks", "problems of reading", str(refused), ""),
        _line("policies", "models", _names(models), "no trace names its model"),
        _line("policies", "systems", _names(of["system"]), "no trace names its system"),
        _line("policies", "policy versions", span, "no trace has a policy_version"),
    ]


def _teams(facts: TeamFacts, found: Survey) -> list[CardLine]:
    traces, graph = facts.traces, facts.traces.graph
    forms = facts.forms.form[: traces.sizes.traces]
    shapes = collections.Counter(TOPOLOGIES[form] for form in forms.tolist())
    depth = int(facts.forms.forest.depth[: traces.sizes.agents].max(initial=0))
    kinds = np.bincount(np.asarray(graph.event_type)[: traces.sizes.events], minlength=len(EventType))
    counts = collections.Counter({kind.name.lower(): int(kinds[kind]) for kind in EventType if kinds[kind]})
    edges = f"{traces.sizes.edges / max(traces.sizes.events, 1):.3g} an event" if traces.sizes.edges else ""
    lacks = bool(lacking_traces(traces).any())
    of_types = ", ".join(f"{name} {at_least(str(count), lacks)}" for name, count in counts.most_common())
    spreads = {"agents": found.agents_per_trace, "actions": found.actions_per_trace}
    return [
        _line("teams", "topologies, by edges and roles", _names(shapes), ""),
        *(_line("teams", f"{what} of a trace", at_least(str(of), lacks), "") for what, of in spreads.items()),
        _line("teams", "depth of spawning", at_least(str(depth), lacks), ""),
        _line("teams", "events", of_types, ""),
        _line("teams", "edges", edges, "the log states no edges"),
    ]


def _reasons(refused: Mapping[str, int]) -> str:
    """Why traces have no number; where traces differ in that, with how many."""
    return "; ".join(f"{why} ({count})" if len(refused) > 1 else why for why, count in refused.items())


def _measured(facts: TeamFacts) -> list[CardLine]:
    lines = []
    for row in metric_means(facts.traces, metrics_of_facts(facts, MetricOptions())):
        section, item = ("outcomes", "success, mean over tasks") if row.metric == "success" else ("work", row.metric)
        value = "" if row.mean is None else f"{row.mean:.4g}"
        if row.low is not None:
            value += f" ({row.low:.4g} to {row.high:.4g})"
        elif row.median is not None:
            value += f" (median {row.median.median:.4g}, {row.median.low:.4g} to {row.median.high:.4g})"
        if row.low is None and value and row.refused:
            value += f", of {counted(row.traces, 'trace')}"
        lines.append(_line(section, item.replace("_", " "), value, _reasons(row.refused)))
    return lines


def _costs(facts: TeamFacts, found: Survey) -> list[CardLine]:
    traces, m = facts.traces, facts.traces.sizes.traces
    costs = event_costs(traces)
    groups = group_costs(traces, found, costs.tokens + costs.input_tokens)
    action = facts.action
    lines, lacks_lines = [], bool(lacking_traces(traces).any())
    for name, item, lacks in (
        ("tokens", "tokens generated", "tokens of its actions"),
        ("input_tokens", "tokens read", "input_tokens of its actions"),
        ("seconds", "seconds of work", "times in seconds"),
    ):
        cost = getattr(costs, name)
        known = np.isfinite(cost)
        some = bool(known.any()) and (name == "seconds" or bool((known & action).any()))
        least = lacks_lines or not known.all()
        value = at_least(_number(cost[known].sum() / m, 4 if name == "seconds" else 6), least) if some else ""
        lines.append(_line("costs", f"{item} of a trace", value, f"the log lacks {lacks}"))
    paid, whole = known_costs(traces, "logged_money")
    value = at_least(_number(float(paid.mean()), 4), not whole.all()) if paid.any() else ""
    lines.append(_line("costs", "logged cost of a trace", value, "no cost is logged"))
    wall = facts.durations.wall
    timed = wall[np.isfinite(wall)]
    of_some = "" if len(timed) == m else f", of {counted(len(timed), 'trace')}"
    value = at_least(_number(float(timed.mean()), 4), lacks_lines) + of_some if len(timed) else ""
    lines.append(_line("costs", "wall clock of a trace, seconds", value, "the log lacks times in seconds"))
    lacking = "an action lacks its tokens, read or generated"
    lacking = LACKING if lacks_lines else "no trace has an outcome" if groups.of_trace else lacking
    waste = "" if groups.untaught is None else percent(groups.untaught)
    return [
        *lines,
        _line("costs", "tool calls of a trace", at_least(f"{costs.tool_calls.sum() / m:.4g}", lacks_lines), ""),
        _line("costs", "traces of a comparison, K", f"{groups.multiplier:.3g}", ""),
        _line("costs", "tokens in groups without two different outcomes", waste, lacking),
    ]


def _evidence(traces: Traces, found: Survey) -> list[CardLine]:
    keys = {**EVENT_EVIDENCE, **TRACE_EVIDENCE}
    stated = ", ".join(name for name in found.evidence if name in keys)
    channels = ", ".join(map(traces.channel_name, found.reward_channels))
    taught = f"{found.teaching} of {counted(found.groups, 'group')}"
    lines = [
        _line("outcomes", "reward channels", channels, "no trace has an outcome"),
        _line("outcomes", "groups that teach", taught, ""),
        _line("evidence", "keys", stated, "no evidence beside rewards"),
    ]
    for name in ("propensity", "log_prob", "value", "context"):
        count = found.evidence.get(name)
        lines.append(_line("evidence", name, f"{count} events" if count else "", keys[name].how_to_log))
    refs = traces.events["content_ref"]
    content = f"{len(refs) - refs.null_count} events" if refs.null_count < len(refs) else ""
    timed = np.isfinite(traces.events["time"].to_numpy().astype(np.float64))
    times = int(np.sum(timed & ~positions(traces)[np.asarray(traces.graph.trace_ids)[: len(timed)]]))
    return [
        *lines,
        _line("evidence", "content references", content, "no event has a content_ref"),
        _line("evidence", "times", f"{times} events" if times else "", "no event has a time"),
    ]


def _safety(traces: Traces) -> list[CardLine]:
    kinds = np.asarray(traces.graph.event_type)[: traces.sizes.events]
    trusted = traces.events["trusted"]
    known = len(trusted) - trusted.null_count
    untrusted = known - int(pc.sum(trusted).as_py() or 0)
    lacks = bool(lacking_traces(traces).any())
    marked = at_least(f"{untrusted} of {known} that say", lacks) if known else ""
    safety, people = (int(np.sum(kinds == kind)) for kind in (EventType.SAFETY_EVENT, EventType.HUMAN_INTERVENTION))
    return [
        _line("safety", "untrusted events", marked, "no event says whether it is trusted"),
        _line("safety", "safety events", at_least(str(safety), lacks), ""),
        _line("safety", "interventions of people", at_least(str(people), lacks), ""),
    ]
