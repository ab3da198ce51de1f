"""Scripts of the survey's six team forms, at any size.

    centralized               a lead delegates to specialists, one role each, wave by wave
    planner_executor_critic   planners, executors and critics hand the work round
    debate                    equals answer their neighbours on a ring, round by round
    swarm                     a lead spawns waves of workers of one role that work at the same time
    hierarchical              a lead spawns managers, each of whom spawns workers
    harness                   a lead with sub-agents under a runtime that steps in

Where there are waves, the first is certain and each later one hangs on a choice of the lead: dynamic spawning.
`graphs.structure.topology` classifies what a script leaves in a log as its name says; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.worlds.scripted.script import Script, Writer

__all__ = ["FEWEST_AGENTS", "MOST_AGENTS", "MOST_EVENTS", "TEAMS", "write_script"]

TOOLS = ("search", "read", "run")
MOST_AGENTS, MOST_EVENTS = 300, 100_000
FEWEST_AGENTS: dict[str, int] = {
    "centralized": 2,
    "planner_executor_critic": 3,
    "debate": 2,
    "swarm": 3,
    "hierarchical": 3,
    "harness": 1,
}
"""Agents without which a team is not of that form."""

_WAVES = 8  # at most, of two agents or more


def write_script(topology: str, agents: int, events: int) -> Script:
    """The script of a team whose log has exactly `events` events when all `agents` agents are spawned.

    Each agent makes as many calls as fit. The agent that stops makes the calls that are left over.

    Raises:
      CreditError: an unknown topology, more agents than it can have, or too few events for every agent to act.
    """
    if topology not in TEAMS:
        raise CreditError(f"topology is {topology!r}; expected one of {', '.join(TEAMS)}")
    fewest = FEWEST_AGENTS[topology]
    if not fewest <= agents <= MOST_AGENTS:
        raise CreditError(f"agents is {agents}; expected {fewest} to {MOST_AGENTS} in topology {topology!r}")
    smallest = len(_written(topology, agents, 1, 0))
    if not smallest <= events <= MOST_EVENTS:
        expected = f"{smallest} to {MOST_EVENTS} with {agents} agents in topology {topology!r}"
        raise CreditError(f"events is {events}; expected {expected}")
    each = len(_written(topology, agents, 2, 0)) - smallest
    calls = 1 + (events - smallest) // each
    spare = events - smallest - (calls - 1) * each
    return _written(topology, agents, calls, spare).finish(topology)


def _written(topology: str, agents: int, calls: int, spare: int) -> Writer:
    writer = Writer()
    last = TEAMS[topology](writer, agents, calls)
    for _ in range(spare):
        writer.call(last)
    writer.call(last, EventType.STOP)
    return writer


def _waves(agents: int) -> list[int]:
    """Sizes of the waves that agents come in."""
    size = max(2, -(-agents // _WAVES))
    return [min(size, agents - start) for start in range(0, agents, size)]


def _work(w: Writer, team: list[int], boss: int, calls: int, talk: bool = False) -> None:
    """The members make their calls in turns, use a tool at all but the last, and answer."""
    for c in range(calls):
        for i, member in enumerate(team):
            w.call(member)
            if c < calls - 1:
                w.tool(member, TOOLS[c % len(TOOLS)])
                if talk and i + 1 < len(team):
                    w.message(member, team[i + 1])
            else:
                w.hand_back(member, boss)


def _delegate(w: Writer, lead: int, agents: int, calls: int, role: Callable[[int], str], talk: bool = False) -> None:
    """Waves of sub-agents below a lead, who decides on each wave and aggregates what it gave."""
    number = 0
    for wave, size in enumerate(_waves(agents)):
        choice = w.call(lead, EventType.ORCHESTRATOR_DECISION)
        on = -1 if wave == 0 else choice
        team = [w.agent(f"{role(number + i)}-{number + i}", role(number + i), lead, on) for i in range(size)]
        number += size
        for member in team:
            w.spawn(lead, member)
        _work(w, team, lead, calls, talk)
        w.call(lead, EventType.AGGREGATE)


def _centralized(w: Writer, agents: int, calls: int) -> int:
    lead = w.agent("lead", "lead")
    _delegate(w, lead, agents - 1, calls, lambda i: f"specialist-{i}")
    return lead


def _swarm(w: Writer, agents: int, calls: int) -> int:
    lead = w.agent("lead", "lead")
    _delegate(w, lead, agents - 1, calls, lambda i: "worker", talk=True)
    return lead


def _harness(w: Writer, agents: int, calls: int) -> int:
    lead = w.agent("lead", "lead")
    runtime = w.agent("runtime", "runtime")
    w.call(lead)
    w.step_in(runtime, lead)
    if agents == 1:
        for c in range(calls):
            w.call(lead)
            w.tool(lead, TOOLS[c % len(TOOLS)])
    else:
        _delegate(w, lead, agents - 1, calls, lambda i: "worker")
    return lead


def _hierarchical(w: Writer, agents: int, calls: int) -> int:
    """About √agents managers; the first one's team is certain, the others hang on the lead's choices."""
    lead = w.agent("lead", "lead")
    managers = round((agents - 1) ** 0.5)
    shares = [len(part) for part in np.array_split(np.arange(agents - 1 - managers), managers)]
    number = 0
    for m, size in enumerate(shares):
        choice = w.call(lead, EventType.ORCHESTRATOR_DECISION)
        on = -1 if m == 0 else choice
        manager = w.agent(f"manager-{m}", "manager", lead, on)
        w.spawn(lead, manager)
        w.call(manager, EventType.ORCHESTRATOR_DECISION)
        team = [w.agent(f"worker-{number + i}", "worker", manager, on) for i in range(size)]
        number += size
        for member in team:
            w.spawn(manager, member)
        _work(w, team, manager, calls)
        w.call(manager, EventType.AGGREGATE)
        w.hand_back(manager, lead)
        w.call(lead, EventType.AGGREGATE)
    return lead


def _planner_executor_critic(w: Writer, agents: int, calls: int) -> int:
    kinds = ("planner", "executor", "critic")
    of = {kind: [w.agent(f"{kind}-{i // 3}", kind) for i in range(k, agents, 3)] for k, kind in enumerate(kinds)}
    planners, executors, critics = (of[kind] for kind in kinds)
    for _ in range(calls):
        for i in range(len(planners)):
            circle = [planners[i], executors[i % len(executors)], critics[i % len(critics)]]
            for speaker, hearer in zip(circle, [*circle[1:], planners[(i + 1) % len(planners)]], strict=True):
                w.call(speaker)
                if speaker in executors:
                    w.tool(speaker, "run")
                w.message(speaker, hearer)
    return planners[0]


def _debate(w: Writer, agents: int, calls: int) -> int:
    debaters = [w.agent(f"debater-{i}", "debater") for i in range(agents)]
    for _ in range(calls):
        for i, debater in enumerate(debaters):
            w.call(debater)
            for j in dict.fromkeys(((i + 1) % agents, (i - 1) % agents)):
                w.message(debater, debaters[j])
    for debater in debaters:  # every debater acts on the last messages to it
        w.call(debater)
    return debaters[0]


TEAMS: dict[str, Callable[[Writer, int, int], int]] = {
    "centralized": _centralized,
    "planner_executor_critic": _planner_executor_critic,
    "debate": _debate,
    "swarm": _swarm,
    "hierarchical": _hierarchical,
    "harness": _harness,
}
"""Each writes a team and names the agent that stops; `calls` scales every agent's work."""
