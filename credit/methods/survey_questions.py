"""The questions of two surveys' decision figures, answered by logs, and whether this project's measurements agree.

The first seven are those of arXiv:2605.02801, the next four those of the guide beside arXiv:2604.09459. The last four
are decisions of an orchestrator in arXiv:2605.02801; a fifth, what to write, is among "branches".
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from credit.metrics.aggregate_values import AggregateValue, aggregate_values
from credit.metrics.candidate_values import CandidateValue, candidate_values
from credit.metrics.decision_values import DecisionValue, step_values
from graphs.errors import CreditError
from graphs.structure.host_ids import distinct
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.text import counted
from graphs.traces.batch import Traces

__all__ = ["LONG", "QUESTIONS", "Question", "answer_questions"]

LONG = 1000
"""Actions of a trace from which the survey calls traces long."""


@dataclasses.dataclass(frozen=True)
class Question:
    """One question of the figure.

    Attributes:
      name: what it is about.
      answer: whether the logs say yes; None where they cannot tell.
      stated: the counts that the answer rests on.
      advice: which methods follow from a yes.
      evidence: what this project measured about the advice, in which worlds, and where the numbers are.
    """

    name: str
    answer: bool | None
    stated: str
    advice: str
    evidence: str


def answer_questions(traces: Traces) -> tuple[Question, ...]:
    """Answer every question by counts, and those about decisions by whether `credit decisions` has a number.

    Args:
      traces: what was read.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> [question.name for question in answer_questions(rows.traces) if question.answer]
      []
    """
    logs = _Logs(traces)
    return tuple(Question(name, *find(logs), advice, evidence) for name, (find, advice, evidence) in QUESTIONS.items())


@dataclasses.dataclass(frozen=True)
class _Logs:
    """What was read, and what several questions need of it."""

    traces: Traces

    @functools.cached_property
    def topologies(self) -> np.ndarray:
        """The topology of each trace, int8 [T]."""
        return topology(self.traces.graph, self.traces.agents["role"].to_pylist())[: self.traces.sizes.traces]


def _actions(traces: Traces) -> np.ndarray:
    return np.flatnonzero(np.asarray(traces.graph.action_mask) & np.asarray(traces.graph.event_mask))


def _per_trace(traces: Traces, ids: np.ndarray) -> np.ndarray:
    """How many different ids the actions of each trace have: int64, one for each trace with an action."""
    actions = _actions(traces)
    if not len(actions):
        return np.zeros(1, np.int64)
    units, width = ids[actions], int(ids.max()) + 1
    trace = np.asarray(traces.graph.trace_ids)[actions].astype(np.int64)  # products exceed int32
    pairs = distinct(trace * width + units)  # one integer each: they sort faster
    counts = np.bincount(pairs // width)
    return counts[counts > 0]


def _team_size(logs: _Logs) -> tuple[bool, str]:
    sizes = _per_trace(logs.traces, np.asarray(logs.traces.graph.agent_ids))
    return bool(sizes.min() < sizes.max()), f"agents that act in a trace: {sizes.min()} to {sizes.max()}"


def _of_topologies(logs: _Logs, *names: str) -> tuple[int, int]:
    """In how many traces of several agents the team has one of these topologies, and how many such traces there are."""
    several = ~np.isin(logs.topologies, [TOPOLOGIES.index(name) for name in ("unknown", "single")])
    return int(np.isin(logs.topologies, [TOPOLOGIES.index(name) for name in names]).sum()), int(several.sum())


def _orchestrator(logs: _Logs) -> tuple[bool, str]:
    through, teams = _of_topologies(logs, "centralized", "hierarchical", "swarm")
    return 2 * through > teams, f"one agent delegates in {through} of {counted(teams, 'trace')} with several agents"


def _long(logs: _Logs) -> tuple[bool, str]:
    most = int(np.bincount(np.asarray(logs.traces.graph.trace_ids)[_actions(logs.traces)], minlength=1).max())
    return most >= LONG, f"the longest trace has {counted(most, 'action')}"


def _logged(*names: str) -> Callable[[_Logs], tuple[bool, str]]:
    """Whether actions have evidence of one of these names."""

    def find(logs: _Logs) -> tuple[bool, str]:
        actions, evidence = _actions(logs.traces), logs.traces.evidence
        counts = {name: int(evidence[name].mask[actions].sum()) for name in names if name in evidence}
        stated = ", ".join(f"{name} of {number}" for name, number in counts.items() if number)
        return bool(stated), f"logged of {counted(len(actions), 'action')}: {stated or 'nothing'}"

    return find


def _decided(
    kind: str, name: str, values: Callable[[Traces], Sequence[DecisionValue | CandidateValue | AggregateValue]]
) -> Callable[[_Logs], tuple[bool, str]]:
    """Whether `credit decisions` has a number for decisions of a kind, which it has of none without this evidence."""

    def find(logs: _Logs) -> tuple[bool, str]:
        known = logs.traces.evidence.get(name)
        if known is None:
            return False, f"{name} of 0 events"
        stated, reason, numbers = f"{name} of {counted(int(np.sum(known.mask)), 'event')}", "", 0
        try:
            rows = values(logs.traces)
        except CreditError as error:
            reason = str(error)
        else:
            refused = {row.reason for row in rows if not isinstance(row, AggregateValue)} - {""}
            numbers = sum(isinstance(row, AggregateValue) or not row.reason for row in rows)
            reason = min(refused, default="")
        stated += f"; credit decisions --of {kind} has {counted(numbers, 'number')}"
        return numbers > 0, stated if numbers else f"{stated}: {reason}"

    return find


def _shared(logs: _Logs) -> tuple[bool, str]:
    most = int(_per_trace(logs.traces, np.asarray(logs.traces.graph.agent_ids)).max())
    return most > 1, f"at most {counted(most, 'agent')} that act for one outcome"


def _fine(logs: _Logs) -> tuple[bool, str]:
    evidence = logs.traces.evidence
    logged = [
        name
        for name in ("context", "value", "q_value", "counterfactual_reward", "event_reward")
        if name in evidence and evidence[name].mask.any()
    ]
    return bool(logged), f"logged for single actions: {', '.join(logged) or 'nothing'}"


def _roles(logs: _Logs) -> tuple[bool, str]:
    graph = logs.traces.graph
    most = int(_per_trace(logs.traces, np.asarray(graph.agent_role_ids)[np.asarray(graph.agent_ids)]).max())
    return most > 1, f"at most {counted(most, 'role')} in a trace"


def _pipeline(logs: _Logs) -> tuple[bool, str]:
    """Traces in which every agent acts in one block, in the order of names that most of these traces have."""
    graph, actions = logs.traces.graph, _actions(logs.traces)
    trace = np.asarray(graph.trace_ids)[actions]
    agent = np.asarray(graph.agent_ids)[actions]
    begins = np.ones(len(actions), bool)
    begins[1:] = (trace[1:] != trace[:-1]) | (agent[1:] != agent[:-1])
    trace, names = trace[begins].astype(np.int64), np.asarray(graph.agent_name_ids)[agent[begins]]
    width = int(names.max(initial=0)) + 1  # a trace and a name are one integer, as in `_per_trace`
    blocks = np.bincount(trace, minlength=1)
    different = np.bincount(distinct(trace * width + names) // width, minlength=1)
    several = different > 1
    once = several & (blocks == different)
    order, ends = names.tobytes(), names.itemsize * np.cumsum(blocks)  # bytes: a list for each trace costs more
    starts = ends - names.itemsize * blocks
    orders = (order[i:j] for i, j in zip(starts[once].tolist(), ends[once].tolist(), strict=True))
    same, teams = max(collections.Counter(orders).values(), default=0), int(several.sum())
    stated = f"agents act once each, in one order, in {same} of {counted(teams, 'trace')} with several agents"
    return 2 * same > teams, stated


def _debate(logs: _Logs) -> tuple[bool, str]:
    debates, teams = _of_topologies(logs, "debate")
    return (
        2 * debates > teams,
        f"agents answer each other in {debates} of {counted(teams, 'trace')} with several agents",
    )


QUESTIONS: dict[str, tuple[Callable[[_Logs], tuple[bool, str]], str, str]] = {
    "dynamic team size": (
        _team_size,
        "compare whole traces (rloo) or alternatives of one decision (c3), not agents by their place in the team",
        "agrees: rloo and c3 have no bias in the worlds hire-additive and spawn-and, which spawn by choice; "
        "dr_mas and mgrpo have (docs/bias.md)",
    ),
    "orchestrator bottleneck": (
        _orchestrator,
        "credit the decisions to delegate: c3 with siblings of the decision, or a critic's increments",
        "agrees where siblings or true values are logged: no bias in delegate-luck (docs/bias.md); "
        "a critic that is wrong is biased (docs/critic.md)",
    ),
    "long traces": (
        _long,
        f"from {LONG} actions on, credit increments of single actions instead of one number for the trace",
        "agrees: over independent decisions the SNR of a broadcast falls as 1/sqrt(T) (docs/snr.md)",
    ),
    "fine attribution": (
        _fine,
        "with siblings c3, with values gae or critic, with re-runs difference_reward; else only the trace has credit",
        "agrees: without such evidence no split of the outcome adds information (docs/snr.md)",
    ),
    "heterogeneous roles": (
        _roles,
        "normalise within a role (dr_mas, mgrpo), or give each role a reward of its own",
        "disagrees on the first: splitting one outcome by role gains nothing (docs/snr.md) and is biased "
        "(docs/bias.md); rewards of roles are channels (docs/channels.md)",
    ),
    "pipeline": (
        _pipeline,
        "credit each stage from its own turn on: turn_baseline",
        "agrees: no bias in relay-and, three agents in a row (docs/bias.md); its variance is that of the outcome",
    ),
    "debate": (
        _debate,
        "reward verdicts on answers (R6, maporl), logged as rewards at events with their stage",
        "not measured on debates; maporl is biased where answers earn rewards at once (stop-rewards, docs/bias.md)",
    ),
    "intermediate verifier": (
        _logged("event_reward"),
        "credit turns by their own rewards: turn_baseline, mt_grpo, or marks by foldgrpo",
        "agrees on turn_baseline, which has no bias; mt_grpo is biased where a trace decides how many turns it has, "
        "foldgrpo everywhere (docs/bias.md)",
    ),
    "branches": (
        _logged("context", "counterfactual_reward"),
        "compare continuations from one state: c3, spo_tree; re-runs by difference_reward",
        "agrees: c3 and difference_reward have no bias (docs/bias.md), at the price of the replays (docs/snr.md)",
    ),
    "critic": (
        _logged("value", "q_value"),
        "differences of its values: gae, critic, coma",
        "agrees for true values; a wrong critic is biased, but as a control variate (docs/bias.md, docs/critic.md)",
    ),
    "reward shared by agents": (
        _shared,
        "divide between agents first (Shapley, difference_reward), then in time within each",
        "not measured in that order; normalising one outcome within agents adds no information (docs/snr.md)",
    ),
    "when to stop": (
        _decided("stop", "stop_propensity", step_values),
        "stop_credit; credit decisions --of stop, with --budget for a price",
        "agrees for reports: no bias over the prefixes of a step; in training no signal of logs beat rloo overall "
        "(docs/stopping.md)",
    ),
    "whether to spawn": (
        _decided("spawn", "spawn_propensity", functools.partial(step_values, kind="spawn")),
        "spawn_credit; credit decisions --of spawn",
        "agrees for reports, as of stopping (docs/stopping.md)",
    ),
    "whom to ask": (
        _decided("whom", "propensity", candidate_values),
        "credit decisions --of whom; for single decisions c3 with siblings, coma with a critic",
        "agrees for reports: no bias over the prefixes of a step; not trained with (docs/stopping.md)",
    ),
    "what to aggregate": (
        _decided("aggregate", "agent_reward", aggregate_values),
        "credit decisions --of aggregate; for single decisions c3 with siblings, coma with a critic",
        "not measured beyond examples by hand (docs/stopping.md)",
    ),
}
"""By name: how logs answer it, what a yes suggests, and what this project measured."""
