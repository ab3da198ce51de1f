"""Whether a method's differences within a trace rest on evidence about its actions, or are of the method's making."""

from __future__ import annotations

import numpy as np

from credit.methods.published import PUBLISHED, key_of
from credit.methods.registry import METHODS
from estimators.base import Credit
from graphs.traces.batch import Traces

__all__ = ["NOTHING_DISTINGUISHES", "place_note", "tells_apart"]

NOTHING_DISTINGUISHES = (
    "nothing in the log tells what one action did from what another of its trace did: by every method here actions "
    "differ at most by who took part, turns or length"
)

AT_A_STATE = frozenset({"turn", "anchor", "prefix"})
"""Parts of keys by which an action is compared with others at its place, or in its state."""

OF_A_STATE = frozenset({"value", "q_value"})
"""Evidence that is the number of a state, which differs by place as what comes later does."""


def place_note(traces: Traces, credit: Credit) -> str:
    """Why an action's place makes its number, whatever it did; "" where it does not.

    Of traces without any effect, differences of agents and roles within a trace stood out by such methods.

    Args:
      traces: what was read.
      credit: a method's result on `traces.graph`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "b", "b"], turn=[0, 0, 1], reward=[1.0, 0.0, 0.0])
      >>> place_note(rows.traces, credit.turn_baseline(graph, reward))
      'Ended traces count as 0 at later turns, so late turns of long traces get more or less, whatever they did.'
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0], event_reward=[-0.1, -0.1])
      >>> place_note(rows.traces, credit.discounted_return(graph, reward, event_reward=rows.event_reward))
      "By discounted_return an action's place makes its number more or less, whatever the action did."
      >>> place_note(rows.traces, credit.rloo(graph, reward))
      ''
    """
    graph, n, method = traces.graph, traces.sizes, METHODS.get(credit.source)
    if method is None or not n.events or not method.reads_order({}, traces.evidence):
        return ""
    at = AT_A_STATE.intersection(method.compared.key.split(", "))
    is_compared = bool(OF_A_STATE.intersection(method.needs)) or (at and not method.shaped)
    if not is_compared and tells_apart(traces, credit):
        return f"By {credit.source} an action's place makes its number more or less, whatever the action did."
    if "turn" not in at:
        return ""
    rows = np.flatnonzero(np.asarray(credit.valid)[: n.events] & np.asarray(graph.action_mask)[: n.events])
    trace, first = np.asarray(graph.trace_ids)[rows], np.unique(np.asarray(graph.turn_ids)[rows], return_index=True)[1]
    played = np.bincount(trace[first], minlength=n.traces)
    group = np.asarray(graph.group_ids)[: n.traces]
    most = np.zeros(graph.num_traces, np.int64)
    np.maximum.at(most, group, played)
    if np.all((played == most[group]) | (played == 0)):
        return ""
    ended = "count as 0 at" if credit.source == "turn_baseline" else "are not compared at"
    return f"Ended traces {ended} later turns, so late turns of long traces get more or less, whatever they did."


def tells_apart(traces: Traces, credit: Credit, name: str = "") -> bool:
    """Whether a method's numbers can rest on what an action was: on evidence about it, rewards at events, or a judge.

    Others give all actions of a trace its outcome, or split it by turns, lengths and who took part.

    Args:
      traces: what was read.
      credit: a method's result on `traces.graph`.
      name: of the method; by default `credit.source`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> tells_apart(rows.traces, credit.turn_baseline(graph, reward))
      False
    """
    if "agent_reward" in traces.evidence:  # outcomes of single agents
        return True
    if credit.estimand in ("total", "scale"):
        return False
    paper = PUBLISHED.get(key_of(name or credit.source))
    method = METHODS.get((name or credit.source) if paper is None else paper.method or "")
    return method is None or bool(method.needs) or "event_reward" in traces.evidence
