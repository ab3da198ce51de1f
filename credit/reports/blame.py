"""Credit against human blame: does a method give its lowest number to the step and the agent that people blame?

In each labelled trace the candidates are its actions, and the instances that act. The lower its advantage, the more an
action is to blame; an agent's number is the sum over its actions. A hit is the chance that the blamed candidate is
named first if ties are broken at random, so a method without information scores like chance. A rank runs from 0 (named
first) to 1 (named last); ties share their middle.

The yardsticks see no reward: chance, the agent with most actions, "always action k", and "the agent of action k". The
last two use the k that does best on these very runs, so they are better than they would be on new runs.

Means are over groups, of the means over their traces, with the intervals of `mean_of_tasks`: traces of one group are
not independent. The yardsticks whose k was chosen on these runs have none.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from estimators.base import Credit
from graphs.errors import CreditError
from graphs.task_means import mean_of_tasks
from graphs.traces.batch import Traces

__all__ = ["Case", "Score", "blame_cases", "method_scores", "number_scores", "prior_scores"]


@dataclasses.dataclass(frozen=True)
class Case:
    """A labelled trace: its group, rows of its actions, and among these the blamed step and the blamed agent's.

    `step` is None where the blamed step is no action (a tool's output), `agent` where the blamed agent has none.
    """

    group: int
    actions: np.ndarray
    agents: np.ndarray
    step: int | None
    agent: int | None


@dataclasses.dataclass(frozen=True)
class Score:
    """Hit rate and rank, means over the groups of cases that have the target, with their 95 % intervals.

    The ends are NaN where no interval is stated.
    """

    name: str
    target: str
    cases: int
    hits: float
    hits_low: float
    hits_high: float
    rank: float
    rank_low: float
    rank_high: float


def blame_cases(traces: Traces) -> list[Case]:
    """The labelled traces of a batch.

    Raises:
      CreditError: no trace has the evidence `blamed` or `blamed_agent`.
    """
    graph, n = traces.graph, traces.sizes
    cases: list[Case] = []
    step, agent = traces.evidence.get("blamed"), traces.evidence.get("blamed_agent")
    if step is None and agent is None:
        raise CreditError(
            "no trace names a blamed step or agent; expected evidence 'blamed' or 'blamed_agent', as in Who&When"
        )
    action = np.flatnonzero(graph.action_mask)
    labelled = np.zeros(n.traces, bool)
    for label in (step, agent):
        if label is not None:
            labelled[np.asarray(graph.trace_ids)[label.mask]] = True
    bounds = np.searchsorted(np.asarray(graph.trace_ids)[action], np.arange(n.traces + 1))
    for trace in np.flatnonzero(labelled).tolist():
        rows = action[bounds[trace] : bounds[trace + 1]]
        agents = np.asarray(graph.agent_ids)[rows]
        blamed_step: np.ndarray = np.flatnonzero(step.array[rows] == 1) if step is not None else np.zeros(0, int)
        blamed_agent: np.ndarray = np.flatnonzero(agent.array[rows] == 1) if agent is not None else np.zeros(0, int)
        cases.append(
            Case(
                group=int(graph.group_ids[trace]),
                actions=rows,
                agents=agents,
                step=int(blamed_step[0]) if len(blamed_step) else None,
                agent=int(agents[blamed_agent[0]]) if len(blamed_agent) else None,
            )
        )
    return cases


def method_scores(cases: list[Case], credit: Credit, name: str) -> list[Score]:
    """How well a method's advantage finds the blamed step and agent; an action without a valid one counts as 0.

    Args:
      cases: judged traces.
      credit: a result on their batch.
      name: of the method.
    """
    return number_scores(cases, np.where(np.asarray(credit.valid), np.asarray(credit.advantage, np.float64), 0.0), name)


def number_scores(cases: list[Case], numbers: np.ndarray, name: str) -> list[Score]:
    """How well numbers of events, float64 [events], find the blamed step and agent: the lowest is named first.

    Args:
      cases: judged traces.
      numbers: of events.
      name: of what they are.
    """
    steps = [_place(numbers[c.actions], c.step) for c in cases]
    agents = [_place(*_by_agent(c, numbers[c.actions])) for c in cases]
    return [_score(name, "step", cases, steps), _score(name, "agent", cases, agents)]


def prior_scores(cases: list[Case]) -> list[Score]:
    """The yardsticks: chance, the most active agent, always action k, the agent of action k.

    Args:
      cases: judged traces.
    """
    nothing = [np.zeros(len(c.actions)) for c in cases]
    chance_steps = [_place(zero, c.step) for c, zero in zip(cases, nothing, strict=True)]
    chance_agents = [_place(*_by_agent(c, zero)) for c, zero in zip(cases, nothing, strict=True)]
    active = [_place(*_by_agent(c, zero - 1)) for c, zero in zip(cases, nothing, strict=True)]
    longest = max(1, *(len(c.actions) for c in cases))
    at_step = [[_place(_first_at(c, k), c.step) for c in cases] for k in range(longest)]
    at_agent = [[_place(*_by_agent(c, _first_at(c, k))) for c in cases] for k in range(longest)]
    step, agent = _best(at_step), _best(at_agent)
    return [
        _score("chance", "step", cases, chance_steps),
        _without_intervals(_score(f"always action {step}", "step", cases, at_step[step])),
        _score("chance", "agent", cases, chance_agents),
        _score("most active agent", "agent", cases, active),
        _without_intervals(_score(f"agent of action {agent}", "agent", cases, at_agent[agent])),
    ]


_Placed = tuple[float, float] | None  # chance to be named first, rank in [0, 1]; None without the target


def _place(numbers: np.ndarray, target: int | None) -> _Placed:
    """Where the target stands from the lowest number up."""
    if target is None:
        return None
    lower = int(np.sum(numbers < numbers[target]))
    equal = int(np.sum(numbers == numbers[target]))
    rank = (lower + (equal - 1) / 2) / (len(numbers) - 1) if len(numbers) > 1 else 0.0
    return (1 / equal if lower == 0 else 0.0), rank


def _by_agent(case: Case, numbers: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Numbers added up over each acting instance, and the blamed one's position among these."""
    instances, inverse = np.unique(case.agents, return_inverse=True)
    summed = np.bincount(inverse, weights=numbers, minlength=len(instances))
    return summed, None if case.agent is None else int(np.searchsorted(instances, case.agent))


def _first_at(case: Case, k: int) -> np.ndarray:
    """-1 at action k, or at the last one of a shorter trace."""
    numbers = np.zeros(len(case.actions))
    if len(numbers):
        numbers[min(k, len(numbers) - 1)] = -1
    return numbers


def _best(options: list[list[_Placed]]) -> int:
    """The option with most hits, the first of several; 0 without any."""
    hits = [sum(ranked[0] for ranked in placed if ranked is not None) for placed in options]
    return int(np.argmax(hits)) if hits else 0


def _score(name: str, target: str, cases: list[Case], placed: list[_Placed]) -> Score:
    known = [(c.group, ranked) for c, ranked in zip(cases, placed, strict=True) if ranked is not None]
    groups = np.unique([group for group, _ in known], return_inverse=True)[1]
    each = np.array([ranked for _, ranked in known]).reshape(-1, 2).T
    hits, rank = (mean_of_tasks(np.bincount(groups, of) / np.bincount(groups))[0][:3] for of in each)
    return Score(name, target, len(known), *hits, *rank)


def _without_intervals(score: Score) -> Score:
    """A score that was chosen as the best of several on these runs, which no interval of one mean allows for."""
    return Score(score.name, score.target, score.cases, score.hits, *_NONE, score.rank, *_NONE)


_NONE = (math.nan, math.nan)
