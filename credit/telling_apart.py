"""Whether a method's differences within a trace rest on evidence about its actions, or are of the method's making."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credit.methods.availability import Availability, availability
from credit.methods.published import PUBLISHED, key_of
from credit.methods.registry import METHODS
from credit.methods.running import run_part
from credit.reports.beyond_chance import beyond_chance
from credit.reports.own_outcomes import has_agent_outcomes
from estimators.base import Credit
from graphs.task_means import task_mean
from graphs.traces.batch import Traces

__all__ = [
    "NOTHING_DISTINGUISHES",
    "NOT_APART",
    "alike_by",
    "apart_by_events",
    "differs_within",
    "place_note",
    "tells_apart",
]

NOT_APART = "nothing in the log tells what one action did from what another of its trace did"
NOTHING_DISTINGUISHES = f"{NOT_APART}: by every method here actions differ at most by who took part, turns or length"

AT_A_TURN = frozenset({"turn", "turn of the trace"})
AT_A_STATE = AT_A_TURN | {"anchor", "prefix"}
"""Parts of keys by which an action is compared with others at its place, or in its state."""


def apart_by_events(traces: Traces) -> list[str]:
    """The methods of returns by which actions of a trace differ; rewards at events may come after all of them alike."""
    if "event_reward" not in traces.evidence:
        return []
    states = availability(traces)
    allowed = Availability("computable")  # with nothing by which it compares alike
    names = [name for name in ("discounted_return", "turn_baseline") if states[name] == allowed]
    # `run_part` warns of nothing: nobody asked for the methods.
    return [name for name in names if differs_within(traces, run_part(traces, name))]


def differs_within(traces: Traces, credit: Credit) -> bool:
    """Whether actions of one trace have different numbers by a method.

    Args:
      traces: what was read.
      credit: a method's result on `traces.graph`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "b", "b"], turn=[0, 0, 1], reward=[1.0, 0.0, 0.0])
      >>> [differs_within(rows.traces, method(graph, reward)) for method in (credit.rloo, credit.turn_baseline)]
      [False, True]
    """
    trace = np.asarray(traces.graph.trace_ids)
    acts = np.asarray(traces.graph.action_mask) & np.asarray(traces.graph.event_mask)
    rows = np.flatnonzero(acts & np.asarray(credit.valid))
    number = np.asarray(credit.advantage)[rows]
    high, low = np.full(len(trace), -np.inf), np.full(len(trace), np.inf)
    np.maximum.at(high, trace[rows], number)
    np.minimum.at(low, trace[rows], number)
    return bool(np.any(high - low > 1e-6 * np.abs(number).max(initial=0)))


def alike_by(method: str, one: str, many: str, apart: Sequence[str]) -> str:
    """What is said of the numbers of a method that does not tell actions apart.

    Args:
      method: its name.
      one, many: what has a number, such as "agent" and "agents".
      apart: of `apart_by_events`.
    """
    within = f"By {method} {many} differ at most by who took part, turns or length."
    if apart:
        return f"{within} Rewards at events tell actions apart: `--method {apart[-1]}`."
    return f"Nothing in the log tells what {one} did from what another did. {within}"


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
    if tells_apart(traces, credit):
        of_values = "value" in method.needs
        if not (_right_values_give_0(traces, credit) if of_values else at and not method.shaped):
            return f"By {credit.source} an action's place makes its number more or less, whatever the action did."
        if of_values:
            return _values_off(traces, credit)
        if "anchor" in at and "anchor" in traces.evidence:
            return _unlike_visits(traces, credit)
    if not at & AT_A_TURN:
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


def _right_values_give_0(traces: Traces, credit: Credit) -> bool:
    """Whether an action has 0 on average wherever it stands, if `value` is what is earned from each action on."""
    how = credit.recursion
    if how is None:
        return credit.estimand == "increment"
    is_whole = how.along == "trace" or "event_reward" not in traces.evidence  # else it leaves out what others earned
    return is_whole and bool(np.all(np.asarray(how.discount) == 1))


def _unlike_visits(traces: Traces, credit: Credit) -> str:
    """That actions are compared at an observation after which traces went on for different numbers of actions."""
    rows, first = _by_trace(traces, credit)
    ahead = np.repeat(np.append(first[1:], len(rows)), np.diff(first, append=len(rows))) - np.arange(len(rows))
    seen = np.asarray(traces.evidence["anchor"].array)[rows]
    group = np.asarray(traces.graph.group_ids)[np.asarray(traces.graph.trace_ids)[rows]]
    order = np.lexsort((ahead, seen, group))
    order = order[seen[order] >= 0]
    same = (np.diff(seen[order]) == 0) & (np.diff(group[order]) == 0)
    if not np.any(same & (np.diff(ahead[order]) != 0)):
        return ""
    return (
        "Actions after one observation have more or fewer actions still to come, so late ones get more or less, "
        "whatever they did."
    )


def _by_trace(traces: Traces, credit: Credit) -> tuple[np.ndarray, np.ndarray]:
    """Rows of actions with a number, trace after trace in order, and the places where traces begin among them."""
    graph, n = traces.graph, traces.sizes.events
    rows = np.flatnonzero(np.asarray(credit.valid)[:n] & np.asarray(graph.action_mask)[:n])
    trace = np.asarray(graph.trace_ids)[rows]
    return rows[np.argsort(trace, kind="stable")], np.flatnonzero(np.diff(np.sort(trace), prepend=-1))


def _values_off(traces: Traces, credit: Credit) -> str:
    """How far the values behind a method's numbers are off, on average over tasks; "" where that may be chance.

    An agent that always acts last has the error of all values before last actions, and no log tells that from merit.

    Args:
      traces: what was read.
      credit: increments, or a return whose baselines are the values.
    """
    graph, (rows, first) = traces.graph, _by_trace(traces, credit)
    if not len(rows):
        return ""
    last = np.append(first[1:], len(rows)) - 1
    amount, value = (np.asarray(x, np.float64)[rows] for x in (credit.credit, credit.baseline))
    if credit.recursion is None:
        ahead, total = amount[last], np.add.reduceat(amount, first)
    else:
        steps = traces.evidence.get("event_reward")
        earned = METHODS["discounted_return"](graph, traces.reward, event_reward=None if steps is None else steps.array)
        error = np.asarray(earned.credit, np.float64)[rows] - value
        ahead, total = error[last], error[first]
    names = traces.traces["task"].take(np.asarray(graph.trace_ids)[rows[first]]).to_pylist()
    task = np.unique(names, return_inverse=True)[1]
    low, rise = (task_mean(np.bincount(task, x) / np.bincount(task)) for x in (ahead, total - ahead))
    so = (
        f"so by {credit.source} an action's place makes its number more or less. `credit fit critic LOGS -o critic/` "
        f"fits others, which `credit assign LOGS --method {credit.source} --critic critic/ -o FILE` takes."
    )
    if beyond_chance(low.p, low.low, low.high):
        how = "low" if low.mean > 0 else "high"
        return f"Values before last actions are too {how} by {abs(low.mean):.2g} on average, {so}"
    if beyond_chance(rise.p, rise.low, rise.high):
        how = "rise" if rise.mean > 0 else "fall"
        return f"Values {how} within a trace by {abs(rise.mean):.2g} on average, where right ones would stay, {so}"
    return ""


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
    if has_agent_outcomes(traces):
        return True
    if credit.estimand in ("total", "scale"):
        return False
    paper = PUBLISHED.get(key_of(name or credit.source))
    method = METHODS.get((name or credit.source) if paper is None else paper.method or "")
    return method is None or bool(method.needs) or "event_reward" in traces.evidence
