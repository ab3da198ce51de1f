"""What an event depended on, who is responsible for it, and what an edit of it would undo."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from credit.metrics.clustered_error import beyond_two_errors
from credit.metrics.cost_summary import Amount, amounts
from credit.metrics.event_costs import event_costs
from credit.reports.missing_lines import lacking_traces
from credit.telling_apart import place_note, tells_apart
from estimators.base import REASONS, Credit, Reason
from graphs.errors import CreditError, expect
from graphs.event_graph import EventType
from graphs.joint_rewards import at_turn_ends
from graphs.structure.edge_order import EdgeOrder
from graphs.structure.forest import dependencies
from graphs.traces.batch import Traces

__all__ = ["EditEffect", "Responsible", "dependents", "if_edited", "why"]


@dataclasses.dataclass(frozen=True)
class Responsible:
    """An action that an event depended on.

    Attributes:
      event, agent, type: which one.
      amount: its credit − baseline; None where `without` says why it has none.
      stderr: its standard error; None where the method states none, or 0, since the other traces agree.
      stands_out: whether the amount is beyond two standard errors, and can tell one action from another
        (`tells_apart`), and not by its place (`place_note`).
      path: ids of events from the action to the event, over the fewest dependencies.
      without: why it has no credit; "" where it has.
    """

    event: str
    agent: str
    type: str
    amount: float | None
    stderr: float | None
    stands_out: bool
    path: tuple[str, ...]
    without: str


@dataclasses.dataclass(frozen=True)
class EditEffect:
    """What an edit of one event undoes.

    Attributes:
      invalidated: ids of the events that depended on it, in order.
      actions: how many of them are actions.
      later: events after it in its trace, which a run that starts there makes again.
      tool_calls: tool calls among the invalidated events.
      tokens, input_tokens, seconds: what the invalidated events took, which making them again may take.
      change: expected change of the return; None where `without` says why it is not known.
      stderr: its standard error; None where it is not known.
      source: "replays" or "value".
      without: why there is no change; "" where there is one.
      lacks_lines: whether lines of the trace are missing, so that all counts are lower bounds (`lacking_traces`).
    """

    invalidated: tuple[str, ...]
    actions: int
    later: int
    tool_calls: int
    tokens: Amount
    input_tokens: Amount
    seconds: Amount
    change: float | None
    stderr: float | None
    source: str
    without: str
    lacks_lines: bool


def dependents(traces: Traces, events: np.ndarray, *, backward: bool = False) -> np.ndarray:
    """Events that depend on some events, those included: bool [events].

    An event depends on its logged causes, and on the previous event of its agent instance, whose context an agent
    keeps. A path of such dependencies is a causal path. The work is O(E + K).

    Args:
      traces: what was read.
      events: bool [events].
      backward: the events that these depend on instead.
    """
    return EdgeOrder(*dependencies(traces.graph)).reachable(events, backward=backward)


def why(traces: Traces, row: int, credit: Credit | None, *, most: int = 10) -> list[Responsible]:
    """The actions that an event depended on: the largest credit in absolute value first, those without credit last.

    Those of equal credit, and those without, are in the order of the log from the event backwards.

    Args:
      traces: what was read.
      row: of the event in the batch.
      credit: a method's result on `traces.graph`; None where no trace has an outcome.
      most: how many to name.

    Raises:
      CreditError: `credit` is of another batch, or no such event.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0, 0], trace=["a", "a", "b"], agent=["x", "x", "x"], reward=[1.0, 1.0, 0.0])
      >>> [(found.amount, len(found.path)) for found in why(rows.traces, 1, credit.rloo(graph, reward))]
      [(1.0, 1), (1.0, 2)]
    """
    _check(traces, row)
    graph = traces.graph
    amount, error = np.full((2, graph.num_events), np.nan)
    beyond = np.zeros(graph.num_events, bool)
    if credit is not None:
        expect("credit", credit, Credit, "what a method returns, such as credit.run(traces, 'rloo')")
        if credit.credit.shape != (graph.num_events,):
            raise CreditError(f"credit has shape {credit.credit.shape}; expected ({graph.num_events},)")
        valid = np.asarray(credit.valid)
        difference = np.asarray(credit.credit, np.float64) - np.asarray(credit.baseline, np.float64)
        amount, error = np.where(valid, difference, np.nan), np.asarray(credit.stderr, np.float64)
        beyond = beyond_two_errors(amount, error) & (tells_apart(traces, credit) and not place_note(traces, credit))
    following, known = _towards(traces, row), np.isfinite(amount)
    acts = np.asarray(graph.action_mask)
    rows = sorted((e for e in following if acts[e] or known[e]), key=lambda e: (-abs(amount[e]) if known[e] else 1, -e))
    ids, agents = traces.events["event"], traces.agents["name"]
    found = []
    for e in rows[:most]:
        path = [e]
        while path[-1] != row:
            path.append(following[path[-1]])
        stated = float(error[e]) if known[e] and math.isfinite(error[e]) and error[e] > 0 else None
        reason = "no trace has an outcome" if credit is None else REASONS[Reason(int(credit.reason[e]))]
        found.append(
            Responsible(
                event=ids[e].as_py(),
                agent=agents[int(graph.agent_ids[e])].as_py(),
                type=EventType(int(graph.event_type[e])).name.lower(),
                amount=float(amount[e]) if known[e] else None,
                stderr=stated,
                stands_out=stated is not None and bool(beyond[e]),
                path=tuple(ids[place].as_py() for place in path),
                without="" if known[e] else reason,
            )
        )
    return found


def if_edited(traces: Traces, row: int) -> EditEffect:
    """What an edit of an event undoes, what making it again costs, and the change of the return to expect.

    The change is `counterfactual_reward` − return if re-runs of this decision are logged. Otherwise it is `value` −
    (outcome and rewards from this event on): the expected change if this event and all later ones were drawn again.

    Args:
      traces: what was read.
      row: of the event in the batch.

    Raises:
      CreditError: no such event.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], agent=["x", "x"], reward=[1.0, 1.0])
      >>> effect = if_edited(rows.traces, 0)
      >>> len(effect.invalidated), effect.without
      (1, 'the log has neither value nor counterfactual_reward at this event')
    """
    _check(traces, row)
    graph, n = traces.graph, traces.sizes.events
    edited = np.zeros(n, bool)
    edited[row] = True
    undone = dependents(traces, edited) & ~edited
    of_trace = np.asarray(graph.trace_ids)[:n] == graph.trace_ids[row]
    costs, unit = event_costs(traces), np.zeros(int(undone.sum()), np.int64)
    tokens, read = (
        amounts(getattr(costs, name)[undone], unit, 1, costs.least[name][undone])[0]
        for name in ("tokens", "input_tokens")
    )
    change, stderr, source, without = _change(traces, row, of_trace)
    return EditEffect(
        invalidated=tuple(traces.events["event"].take(np.flatnonzero(undone)).to_pylist()),
        actions=int(np.sum(undone & np.asarray(graph.action_mask)[:n])),
        later=int(np.sum(of_trace[row + 1 :])),
        tool_calls=int(np.sum(costs.tool_calls[undone])),
        tokens=tokens,
        input_tokens=read,
        seconds=amounts(costs.seconds[undone], unit, 1)[0],
        change=change,
        stderr=stderr,
        source=source,
        without=without,
        lacks_lines=bool(lacking_traces(traces)[int(graph.trace_ids[row])]),
    )


def _change(traces: Traces, row: int, of_trace: np.ndarray) -> tuple[float | None, float | None, str, str]:
    """Expected change of the return, its standard error, its source, and why there is none."""

    def stated(name: str) -> float | None:
        evidence = traces.evidence.get(name)
        return None if evidence is None else evidence.of_row(row)

    outcome = float(np.asarray(traces.reward)[int(traces.graph.trace_ids[row])])
    if not math.isfinite(outcome):
        return None, None, "", "the trace has no outcome"
    step = traces.evidence.get("event_reward")
    zero = np.zeros(len(of_trace))
    arrived = zero if step is None else np.nan_to_num(at_turn_ends(traces.graph, step.array))[: len(of_trace)]
    arrived = np.where(of_trace, arrived, 0.0)
    error = stated("replay_stderr")
    counterfactual, value = stated("counterfactual_reward"), stated("value")
    if counterfactual is not None:
        return counterfactual - outcome - float(arrived.sum()), error, "replays", ""
    if value is not None:
        return value - outcome - float(arrived[row:].sum()), error, "value", ""
    return None, None, "", "the log has neither value nor counterfactual_reward at this event"


def _towards(traces: Traces, row: int) -> dict[int, int]:
    """Each event that `row` depends on, itself included, with the next one on a shortest path to it."""
    senders, receivers = dependencies(traces.graph)
    within = np.asarray(traces.graph.trace_ids)[senders] == traces.graph.trace_ids[row]
    causes: dict[int, list[int]] = {}
    for sender, receiver in zip(senders[within].tolist(), receivers[within].tolist(), strict=True):
        causes.setdefault(receiver, []).append(sender)
    following, waiting = {row: row}, [row]
    for event in waiting:  # grows while it is read: breadth first, so the first path found is a shortest one
        for cause in causes.get(event, ()):
            if cause not in following:
                following[cause] = event
                waiting.append(cause)
    return following


def _check(traces: Traces, row: int) -> None:
    expect("traces", traces, Traces, "what credit.read returns")
    if not 0 <= row < traces.sizes.events:
        raise CreditError(f"row is {row}; expected 0 to {traces.sizes.events - 1}, the row of an event")
