"""In what else two sides differ, as in models, which may be what changed."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credit.reports.beyond_chance import beyond_chance
from credit.reports.endings import ended_early
from credit.reports.missing_lines import lacking_traces
from credit.reports.taking_part import taking_part
from credit.reports.task_kinds import task_kinds
from credit.reports.tasks import task_ids
from credit.reports.trace_numbers import TeamFacts, TraceMetric, numbered
from credit.sides.chosen_sides import Sides
from credit.sides.same_models import same_models
from credit.sides.side_rows import SideDifference
from credit.sides.side_tests import compare_metric
from credit.sides.side_words import MOST_TOLD
from credit.sides.within_kinds import MOST_NAMES, within_kinds, within_models
from graphs.compared_alone import tasks_alone
from graphs.structure.host_ids import ranked
from graphs.task_means import LEAST_TASKS, fact_of, holm
from graphs.text import apart, percent, printable
from graphs.traces.batch import Traces
from graphs.traces.event_models import agent_models, trace_models

__all__ = ["agents_alone", "differs_too"]

MIXED = 0.2
"""Difference between the parts that a model has of two sides, from which it is always told."""
BESIDE = ("model", "system", "format")
"""What is settled before a run."""
NONE_STATED = "none stated"
MODEL_OF_AGENT = "the model of an agent"


def agents_alone(traces: Traces, side: np.ndarray) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of each side the agents that act on it alone, where `taking_part` tells nothing of them.

    Those of traces that lack lines do not count: what lacks the span of an agent may have its actions under another
    name.
    """
    names, acts, tells = taking_part(traces)
    whole, found = ~lacking_traces(traces), []
    for one in (0, 1):
        here, there = acts[:, (side == one) & whole].any(axis=1), acts[:, side == 1 - one].any(axis=1)
        found.append(tuple(names[agent] for agent in np.flatnonzero(here & ~there & ~tells.any(axis=1))))
    return found[0], found[1]


def differs_too(
    traces: Traces, sides: Sides, judged: tuple[str, TraceMetric] | None, facts: TeamFacts
) -> tuple[tuple[str, ...], dict[str, str], str]:
    """In what else the sides differ, which may be what changed, how success differs within each of its kinds, and why
    what models did cannot be told.

    The part of traces of each model, system, format and agent is compared as metrics are, with Holm's correction for
    all. It is told where it differs beyond chance and, tested or not, where the part of what is settled before a run
    differs by `MIXED`; where tasks are few, at any difference of that, and at `MIXED` of an agent that no test is of.
    """
    tasks, kept, kinds = (task_ids(traces), task_kinds(traces)[1]), sides.side >= 0, _kinds(facts, sides.agent)
    first, second = (np.unique(tasks[0][sides.side == one]) for one in (0, 1))
    few = (len(tasks_alone(sides.side, tasks[0])) or min(len(first), len(second))) < LEAST_TASKS
    found = []
    of_sides = {
        word: [{name for name, has in names.items() if (has[sides.side == one] > 0).any()} for one in (0, 1)]
        for word, names in kinds.items()
    }
    whole = _stated(traces, "model")
    of_sides["model"] = [{whole[row] for row in np.flatnonzero(sides.side == one)} for one in (0, 1)]
    made_by = {word for word, whole in of_sides.items() if whole == [{name} for name in sides.names]}
    made_by |= {"model"} if sides.agent else set()  # those of the other agents are asked for
    if "model" not in made_by and [*map(len, of_sides["system"])] == [1, 1]:
        made_by.add("system")  # each side is one version of the team: the sides are these versions
    for word, names in kinds.items():
        if word in made_by:
            continue
        for name, has in names.items():
            row = compare_metric("", numbered(has), sides.side, *tasks)  # a model may be called tokens
            if row is not None and np.nanmin(has[kept]) < np.nanmax(has[kept]):  # else it says nothing
                fact = fact_of(np.nan_to_num(has[kept], nan=0.5))  # where an agent acts is a part of it
                found.append((word, dataclasses.replace(row, metric=name), fact))
    corrected = holm([math.nan if row.p is None else row.p for _, row, _ in found], [fact for *_, fact in found])
    told: dict[str, list[SideDifference]] = {}
    unsure: set[str] = set()
    for (word, row, _), p in zip(found, corrected, strict=True):
        beyond = beyond_chance(p, row.low, row.high)
        settled, much = word != "agent", abs(row.difference) >= MIXED
        if beyond or (few and row.difference and (settled or (much and row.p is None))) or (settled and much):
            told.setdefault(word, []).append(row)
            unsure |= set() if beyond else {word}
    swaps, within, untold = _swaps(told.get(MODEL_OF_AGENT, [])), "", ""
    if judged and told.keys() & {"model", MODEL_OF_AGENT} and "model" not in made_by:
        within, untold = within_models(same_models(traces), sides, tasks, *judged, swaps)
    said = []
    for word, rows in told.items():
        swapped = swaps if word == MODEL_OF_AGENT else {}
        rows = [row for row in rows if row.metric.rpartition(": ")[0] not in swapped]
        shares = [f"{printable(who, 60)}: {models}" for who, models in swapped.items() if not untold]
        shares += [
            f"{printable(row.metric, 60)} in {' against '.join(apart((row.first, row.second), percent, 0))}"
            for row in sorted(rows, key=lambda row: -abs(row.difference))
        ]
        more, chance = ["…"] * (len(shares) > MOST_TOLD), "; it may be chance" * (few or word in unsure)
        which = f" of traces{' in which it acts' * (word == MODEL_OF_AGENT)}{chance}" if rows else ""
        if shares and (word != "model" or MODEL_OF_AGENT not in told):  # which says whose model it is
            said.append(f"the sides differ in {word}, too ({', '.join(shares[:MOST_TOLD] + more)}{which})")
        if judged and word in ("system", "format"):
            said.append(within_kinds(word, *ranked(_stated(traces, word)), sides, tasks, *judged))
    said += [untold, within]
    if MODEL_OF_AGENT in told:
        told.pop("model", None)
    if untold:
        told.pop(MODEL_OF_AGENT, None)
    most = {word: max(rows, key=lambda row: (abs(row.difference), row.rises)) for word, rows in told.items()}
    return tuple(filter(None, said)), {word: row.metric for word, row in most.items()}, untold


def _swaps(rows: list[SideDifference]) -> dict[str, str]:
    """Of the agents that always have one model on the first side and another on the second: which these are."""
    models: dict[str, dict[tuple[float, float], str]] = {}
    for row in rows:
        agent, _, model = row.metric.rpartition(": ")
        models.setdefault(agent, {})[row.first, row.second] = printable(model, 60)
    first, second = (1.0, 0.0), (0.0, 1.0)
    return {agent: f"{of[first]} to {of[second]}" for agent, of in models.items() if of.keys() == {first, second}}


def _stated(traces: Traces, word: str) -> list[str]:
    return [name or NONE_STATED for name in traces.traces[word].to_pylist()]


def _kinds(facts: TeamFacts, agent: str) -> dict[str, dict[str, np.ndarray]]:
    """Traces of each model, system and format, and those in which an agent acts that `taking_part` tells something of:
    1 or 0, float [traces]; most traces first.

    And those in which an agent first acts with a model, of `agent_models`, or of all but the one whose models the sides
    are: NaN where the agent does not act, as in runs that were killed before, for there its model is not known. Nor are
    all models of such runs, where traces have several.
    """
    traces = facts.traces
    early, _ = ended_early(traces)
    named = {word: [*enumerate(_stated(traces, word))] for word in BESIDE}
    names, acts, tells = taking_part(traces)
    found: dict[str, dict[str, np.ndarray]] = {}
    models = trace_models(traces)
    named["model"] = [(row, name) for row, of in enumerate(models) for name in sorted(of) or [NONE_STATED]]
    named["agent"] = [
        (int(row), names[number]) for number, row in np.argwhere(acts & np.any(tells, axis=1, keepdims=True))
    ]
    acting: dict[str, list[int]] = {}
    named[MODEL_OF_AGENT] = []
    of_agents = agent_models(traces, every=bool(agent))
    of_agents.pop(agent, None)
    for who, of_agent in of_agents.items():
        named[MODEL_OF_AGENT] += [(row, f"{who}: {model}") for row, model in of_agent.items()]
        acting |= {f"{who}: {model}": [*of_agent] for model in of_agent.values()}
    every, short = np.arange(traces.sizes.traces), lacking_traces(traces) | early
    for word, pairs in named.items():
        rows: dict[str, set[int]] = {}
        for row, name in pairs:
            rows.setdefault(name, set()).add(row)
        most = sorted(rows, key=lambda name: (-len(rows[name]), name))[:MOST_NAMES]
        found[word] = {name: np.isin(every, [*rows[name]]).astype(np.float64) for name in most}
        for name, has in found[word].items():
            if word == MODEL_OF_AGENT:
                has[~np.isin(every, acting[name])] = np.nan
            elif word == "model" and max(map(len, models)) > 1:
                has[short] = np.nan
    return found
