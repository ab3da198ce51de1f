"""What may have gone wrong: calls that fail, loops, cut answers, early ends, who takes part, and its models."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from credit.reports.call_loops import Loop
from credit.reports.compared_kinds import ComparedKinds
from credit.reports.endings import ends
from credit.reports.event_errors import cut_answers
from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.handoffs import handoffs
from credit.reports.judged_traces import JudgedTraces
from credit.reports.leading_cause import NAME
from credit.reports.missing_lines import lacking_traces
from credit.reports.model_failures import ModelFailures, OneModel, named_agents
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import has_statuses
from graphs.task_means import LEVEL
from graphs.text import printable
from graphs.traces.batch import Traces
from graphs.traces.event_models import agent_models, event_models

__all__ = ["ALMOST", "Candidate", "candidates", "of_fallbacks", "of_models", "of_teams"]

ALMOST = 0.8
"""The part of runs, or of an agent's loops, that is almost all."""
LOOPS = "loops of {}"
OF_CALLS = "errors of {}"


class Candidate(NamedTuple):
    """Events of one cause, which traces tell whether they have it, bool [traces], and events that are `passed_over`.

    Of one `kind`, as of a tool by each agent and by all of them, one is named. `of_run`: it is how the run ends.
    `of_team`: it is who takes part; `of_agent`: which one does, or does not, "" of several. `quotes`: what its event
    says shows it. `beside`, `lengths`: as of `Handoff`. Of a model of an agent: `test`, the chance that a failed trace
    has it, its p in `model_failures`, that p alone, and whether the p of each model of this agent is beyond chance;
    `sides`, as of `LeadingCause`. `follows`: that it may follow from what went wrong.
    """

    kind: str
    words: str
    agent: str
    tool: str
    rows: np.ndarray
    tells: np.ndarray
    passed_over: np.ndarray | tuple[()] = ()
    of_run: bool = False
    of_team: bool = False
    of_agent: str = ""
    quotes: bool = True
    beside: np.ndarray | None = None
    lengths: tuple[np.ndarray, ...] = ()
    test: tuple[float, float, float, bool] | None = None
    sides: str = ""
    follows: bool = False

    @property
    def is_left_out(self) -> bool:
        """Whether it is an agent that most runs have."""
        return self.beside is not None and not self.quotes


def candidates(traces: Traces, calls: ToolCalls, *, with_empty: bool) -> Iterator[Candidate]:
    """Causes that some trace has."""
    agent = np.asarray(traces.graph.agent_ids)[: traces.sizes.events]
    names: list[str] = traces.agents["name"].to_pylist()
    tools: list[str | None] = traces.events["tool"].to_pylist()
    whole = ~lacking_traces(traces)
    failing = whole & has_statuses(traces)
    cut, trace = np.flatnonzero(cut_answers(traces)), np.asarray(traces.graph.trace_ids)
    formats = traces.traces["format"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    failure = np.full(len(agent), -1)
    wrong = np.flatnonzero(calls.errors)
    failure[calls.owners[wrong]] = wrong
    # A call that fails whenever it is made again is what broke: its loop is of one kind with its other errors.
    exchanges: dict[tuple[str, ...], list[Loop]] = {}
    for loop in calls.loops:
        exchanges.setdefault(tuple(sorted(loop.agents)), []).append(loop)
    of_calls = exchanges.pop((), [])
    loops, retries = ([failure[list(loop.rows)] for loop in of] for of in (of_calls, calls.persisted))
    failing_most = [2 * np.sum(of >= 0) > len(of) for of in loops + retries]
    broken = [int(of[of >= 0][0]) for of, most in zip(loops + retries, failing_most, strict=True) if most]
    looping = [loop.rows[0] for loop, most in zip(of_calls, failing_most, strict=False) if not most]
    alone = np.flatnonzero(calls.counted & (calls.tools[calls.owners] < 0) & ~np.isin(calls.owners, calls.rows))
    none, of_models = np.zeros(0, np.int64), failed_model_calls(traces)[alone]
    kinds: tuple[tuple[str, str, str, np.ndarray, np.ndarray, np.ndarray], ...] = (
        ("unrecovered ", OF_CALLS, "", calls.unrecovered, failing, calls.passed_over),
        ("", OF_CALLS, ", the same call 3 times or more in a row", np.array(broken, np.int64), failing, none),
        ("", LOOPS, "", np.array(looping, np.int64), whole, none),
        ("", "errors of model calls", "", alone[of_models], failing, none),
        ("", "answers", " cut at a limit of tokens", cut, whole & np.isin(formats, formats[trace[cut]]), none),
        ("", "errors", " outside of tool calls", alone[~of_models], failing, none),
        *([("", "empty results of {}", "", calls.empty.rows, whole & calls.empty.tells, none)] if with_empty else []),
    )
    of_agents = dict[str, dict[str, list[int]]]()
    for row in looping:
        of_agents.setdefault(names[agent[row]], {}).setdefault(tools[row] or "", []).append(row)
    split = {name: [*by.values()] for name, by in of_agents.items()
             if max(map(len, by.values())) < ALMOST * sum(map(len, by.values()))}  # fmt: skip
    for name, by_tool in split.items():
        words = f"loops of any of {len(by_tool)} tools by {printable(name, NAME)}"
        yield Candidate(f"loops by {name}", words, name, "", np.sort(np.concatenate(by_tool)), whole)
    for which, begin, end, rows, tells, passed in kinds:
        of: dict[str, dict[str, list[int]]] = {}
        for row, call in zip(rows.tolist(), calls.owners[rows].tolist(), strict=True):
            of.setdefault(tools[call] or "", {}).setdefault(names[agent[call]], []).append(row)
        for tool, by in of.items():
            what = begin.format(printable(tool, NAME) or "unnamed tools")
            whose = [(f"by {printable(name, NAME)}", name, np.array(its)) for name, its in by.items()]
            if len(by) > 1:
                whose.append((f"by any of {len(by)} agents", "", np.sort(np.concatenate([*by.values()]))))
            for by_whom, name, its in whose:
                words = f"{which}{what} {by_whom}{end}"
                kind = f"loops by {name}" if begin == LOOPS and name in split else what
                yield Candidate(kind, words, name, tool, its, tells, passed)
                # A retry has other arguments where each call has, as patches do: so what worked later is no failure.
                if 0 < len(left := np.setdiff1d(its, passed)) < len(its):
                    words += " after which no call of it succeeded"
                    yield Candidate(what, words, name, tool, left, tells, none)
    for its_loops in exchanges.values():
        what = f"loop of {' and '.join(printable(name, NAME) for name in its_loops[0].agents)}"
        counts = {loop.period for loop in its_loops}, {loop.times for loop in its_loops}
        most = [f"{'up to ' * (len(of) > 1)}{max(of)}" for of in counts]
        words = f"{what}: the same {most[0]} messages {most[1]} times in a row"
        yield Candidate(what, words, "", "", np.array([loop.rows[0] for loop in its_loops]), whole)
    for what, at, tells in ends(traces, calls):
        if (at >= 0).any():
            words = f"runs that {what.removeprefix('traces that ')}"
            yield Candidate(words, words, "", "", at[at >= 0], tells, of_run=True)


def of_teams(traces: Traces, kinds: ComparedKinds, judged: JudgedTraces) -> Iterator[Candidate]:
    """Runs by who takes part; the agent is the one whose event is to be looked at, where that is one."""
    names, agent = traces.agents["name"].to_pylist(), np.asarray(traces.graph.agent_ids)

    def differs(number: np.ndarray) -> bool:
        return kinds.test(number[judged.rows])[3] < LEVEL

    for one in handoffs(traces, differs, judged.failed):
        whose = {names[of] for of in agent[one.rows].tolist()}
        yield Candidate(
            one.words, one.words, whose.pop() if len(whose) == 1 else "", "", one.rows, one.tells,
            of_team=True, of_agent=one.of_agent, quotes=one.quotes, beside=one.beside, lengths=one.lengths,
        )  # fmt: skip


def of_models(
    traces: Traces, failures: ModelFailures, kinds: ComparedKinds, side: np.ndarray | None
) -> Iterator[Candidate]:
    """Runs in which an agent first acts with the model of which most failed, with that action; and of other models with
    which it acts on one side alone, without a test."""
    n, names = traces.sizes, np.array(traces.agents["name"].to_pylist(), object)
    models, model = event_models(traces)
    known = np.asarray(traces.graph.action_mask)[: n.events] & (np.array(models) != "")[model]
    trace, acting = (np.asarray(of)[: n.events] for of in (traces.graph.trace_ids, traces.graph.agent_ids))
    every: list[tuple[str, str, OneModel | None]] = [(agent, one.name, one) for agent, one in failures.worst()]
    of_agents, worst = dict(failures.agents), [one[:2] for one in every]
    for agent, used in failures.used.items():
        of_sides: dict[str, set[int]] = {}
        for row, name in used.items():
            of_sides.setdefault(name, set()).add(0 if side is None else int(side[row]))
        alone = [name for name, of in of_sides.items() if len(of) == 1 and side is not None]
        every += [(agent, name, None) for name in alone if (agent, name) not in worst]
    for agent, named, one in every:
        used, (tells, has) = failures.used[agent], np.zeros((2, n.traces), bool)
        tells[[*used]] = True
        has[[row for row, name in used.items() if name == named]] = True
        whose = np.isin(names[acting].astype(str), failures.alike[agent]) if agent else True
        rows = np.flatnonzero(known & whose & has[trace])
        rows = rows[np.unique(trace[rows], return_index=True)[1]]
        who, what = printable(agent, NAME * 3), printable(named, NAME)
        has_it = "has" if len(failures.alike.get(agent, ())) < 2 else "have"
        words = f"runs in which {who} {has_it} {what}" if agent else f"runs of model {what}"
        found = Candidate(
            f"model of {agent}", words, agent, "", rows, tells, quotes=False, test=(0.0, math.nan, math.nan, True)
        )
        if one is None:
            yield found
            continue
        chance, *_ = kinds.test(np.where(tells, has, math.nan)[kinds.rows])
        its = [of for of in of_agents.get(agent, failures.models) if of.tasks]
        other = next(of.name for of in its if of.name != named)
        pair = f"={other},{named}" if len({*used.values()}) > 2 else ""
        test = chance, one.p, one.alone, all(of.p < LEVEL for of in its)
        word = f"model:{failures.alike[agent][0]}" if agent else "model"
        yield found._replace(sides=f"{word}{pair}", test=test)


def of_fallbacks(traces: Traces, of_model: str) -> Iterator[Candidate]:
    """Runs in which an agent, or any of several, goes on with another model than it began with, with its first action
    there; but those of the agent, or of all, whose models the sides are."""
    n, names = traces.sizes, traces.agents["name"].to_pylist()
    models, model = event_models(traces)
    began = agent_models(traces, every=True)
    trace, acting = (np.asarray(of)[: n.events].tolist() for of in (traces.graph.trace_ids, traces.graph.agent_ids))
    found: dict[str, dict[str, dict[int, int]]] = {}
    for row in np.flatnonzero(np.asarray(traces.graph.action_mask)[: n.events]).tolist():
        agent, name, of = names[acting[row]], models[model[row]], trace[row]
        if name and began[agent][of] != name and of_model not in ("model", f"model:{agent}"):
            found.setdefault(name, {}).setdefault(agent, {}).setdefault(of, row)
    for name, by in found.items():
        having = {of for its in by.values() for of in its}
        if together := all(its.keys() == having & began[agent].keys() for agent, its in by.items()):
            whose = [(named_agents([printable(agent, NAME) for agent in by]), [*by])]
        else:
            whose = [(printable(agent, NAME), [agent]) for agent in by]
            whose.append((f"any of {len(by)} agents", [*by]))
        for who, agents in whose:
            before = {began[agent][of] for agent in agents for of in by[agent]}
            tells = np.zeros(n.traces, bool)
            tells[[of for agent in agents for of, first in began[agent].items() if first != name]] = True
            rows = np.unique([row for agent in agents for row in by[agent].values()])
            after = printable(min(before), NAME) if len(before) == 1 else "another model"
            words = f"runs in which {who} used {printable(name, NAME)} after {after}"
            alone = agents[0] if together or len(agents) == 1 else ""
            sides = f"model:{alone}={min(before)},{name}" if alone and {*began[alone].values()} == before else ""
            yield Candidate(
                f"fallback to {name}", words, alone, "", rows, tells, quotes=False, sides=sides * (len(before) == 1),
                follows=True,
            )  # fmt: skip
