"""Which methods some logs allow: computable, degenerate (all numbers would be 0 or refused), or missing evidence."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from credit.methods.logged_siblings import why_no_siblings
from credit.methods.method_row import Method
from credit.methods.published import PUBLISHED, Published, find_method
from credit.methods.registry import METHODS
from credit.methods.running import keywords_of, missing_evidence
from credit.methods.units_apart import alike_in_log
from credit.reports.own_outcomes import adds_outcomes, has_agent_outcomes
from credit.reports.trace_returns import UNRESOLVED, agents_apart, distinguishable, group_differences, returns
from graphs.replay_clusters import without_independent
from graphs.structure.host_ids import distinct
from graphs.traces.batch import Traces

__all__ = ["Availability", "availability"]


@dataclasses.dataclass(frozen=True)
class Availability:
    """Whether a method applies to some logs, and if not, why; or what it compares by and the logs do not tell apart."""

    state: Literal["computable", "degenerate", "missing", "not computable", "not fitted"]
    why: str = ""


def availability(traces: Traces) -> dict[str, Availability]:
    """The state of every method, and of every published name, on these logs, without computing any.

    A method that compares is degenerate where nothing differs: no two samples of one key (the group, or the batch) have
    different returns. For methods whose unit is the event, samples are rows: outcome plus the row's own reward.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> states = availability(rows.traces)
      >>> states["rloo"].state, states["gae"].state
      ('computable', 'missing')
    """
    states = {name: _judge(traces, method) for name, method in METHODS.items()}
    alike = alike_in_log(traces, ("agent", "parent", "turn"))
    for name, state in states.items():
        absent = [f"compares by the {key}, and {alike[key]}" for key in METHODS[name].columns if key in alike]
        if absent and state.state == "computable":
            states[name] = dataclasses.replace(state, why="; ".join(absent))
    for name, paper in PUBLISHED.items():
        if name not in states:
            known = states.get(paper.method or "") or _of_paper(traces, paper)
            states[name] = _judge(traces, find_method(name)) if paper.differs.keys() & {"unit"} else known
    return states


def _of_paper(traces: Traces, paper: Published) -> Availability:
    """The state of what is published without an advantage of its own."""
    if not paper.function:
        return Availability("not computable" if paper.fitted else "not fitted", paper.note)
    lacking = missing_evidence(traces, paper.needs)
    if lacking:
        return Availability("missing", "; ".join(f"{need}: {how}" for need, how in lacking.items()))
    if not np.isfinite(returns(traces)).any():
        return Availability("missing", "no trace has an outcome: pass --rewards FILE or --reward-channel NAME")
    return Availability("computable", f"{paper.kind}: {paper.portable}")


def _judge(traces: Traces, method: Method) -> Availability:
    lacking = missing_evidence(traces, method.needs)
    if lacking:
        return Availability("missing", "; ".join(f"{need}: {how}" for need, how in lacking.items()))
    if "node" in method.needs and (why := why_no_siblings(traces)):
        return Availability("missing", why)
    n = traces.sizes
    group = np.asarray(traces.graph.group_ids[: n.traces])
    trained = np.flatnonzero(np.asarray(traces.graph.trained_mask)[: n.events])
    trace = np.arange(n.traces)
    score = returns(traces)
    if has_agent_outcomes(traces):
        return _of_agents(traces, method)
    if not np.isfinite(score).any():
        return Availability("missing", "no trace has an outcome: pass --rewards FILE or --reward-channel NAME")
    if traces.graph.trainable_mask is not None and not len(trained):
        return Availability("degenerate", "every action is of a frozen agent, which is not trained")
    if method.scope == "trace":
        if not method.needs and not np.any(np.abs(score[np.isfinite(score)]) > 0):
            return Availability("degenerate", "every return is 0: every advantage is 0")
        return Availability("computable")
    if method.unit == "event":
        rows = trained
        trace = np.asarray(traces.graph.trace_ids)[rows]
        score = np.asarray(traces.reward, np.float64)[trace]
        step = traces.evidence.get("event_reward")
        if step is not None:
            score = score + np.where(step.mask, step.array, 0)[rows]
    key = group[trace] if method.scope == "group" else np.zeros(len(trace), np.int64)
    scored = np.isfinite(score)
    key, score, members = key[scored], score[scored], trace[scored]

    if method.scope == "group" and len(distinct(key)) == len(distinct(members)):
        return Availability("degenerate", "no group has two traces with an outcome: there is nothing to compare")
    clusters, compares = traces.graph.cluster_ids, method.scope in ("group", "batch") and "context" not in method.needs
    if compares and clusters is not None and without_independent(key, np.asarray(clusters)[members]).all():
        of = "each group" if method.scope == "group" else "the batch"
        return Availability(
            "degenerate", f"all traces of {of} share a choice (replays of one prefix): none is independent"
        )
    _, apart = distinguishable(score, key, n.traces)
    if not apart.any():
        lost = [word for word in group_differences(traces).unresolved if word not in ("", "coarse")]
        if lost:
            return Availability("degenerate", f"no group has a difference that methods see: {UNRESOLVED[lost[0]]}")
        where = "in every group all traces" if method.scope == "group" else "all traces"
        return Availability("degenerate", f"{where} have equal outcomes: every advantage is 0")
    return Availability("computable")


def _of_agents(traces: Traces, method: Method) -> Availability:
    """The state of a method where agents have outcomes of their own."""
    takes = keywords_of(method.fn)
    if "agent_reward" not in takes:
        return Availability("missing", "outcomes are of agents (agent_reward), which it does not pay")
    if adds_outcomes(traces):
        return Availability("missing", "outcomes are of traces and of agents: --evidence agent_reward adds them")
    if not agents_apart(traces).any():
        return Availability("degenerate", "in every group agents of one name have equal outcomes")
    return Availability("computable")
