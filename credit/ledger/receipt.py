"""The receipt of one event: which claims touched it, what each wanted, what it got, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from credit.ledger import Ledger, compose
from credit.ledger.auditing import part_of
from credit.tables.advantages import TYPE_NAMES
from estimators.base import REASONS, Credit
from estimators.composition.increments import combine
from graphs.errors import CreditError, expect
from graphs.traces.batch import Traces

__all__ = ["Line", "Receipt", "event_index", "explain"]


@dataclasses.dataclass(frozen=True)
class Line:
    """One claim on the event.

    Attributes:
      claim: its name, as given.
      estimand, source, unit: of the claim.
      wanted: its own number, credit − baseline; None where it refuses this event.
      stderr: of that number; None where it states none.
      increment: the same as an increment, as it took part; None where it did not.
      weight: of its source in the average, under rule "increments"; None where there is no average.
      got: what it brought to the entry; None where it had no part.
      why: in words.
    """

    claim: str
    estimand: str
    source: str
    unit: str
    wanted: float | None
    stderr: float | None
    increment: float | None
    weight: float | None
    got: float | None
    why: str


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What one event got of its trace's reward, and the account of that trace; all numbers in units of reward.

    Attributes:
      trace, event, position: the ids in the log, and the event's place in its trace, from 0.
      agent, role, type, action: of the event.
      call: for an event that no policy chose, the id of the action it is the effect of, where credit is; else "".
      rule: of the ledger.
      lines: a line a claim.
      rest: what the entry has that no line brought: the even part of a split by shares, what the exact total moved
        under rule "reconcile", and rounding to the grid of exact arithmetic.
      naive: what adding the claims up would have paid here.
      entry, stderr: the event's entry in the ledger, and its standard error (None where no source stated one).
      noise: whether the entry is within two standard errors of 0; None where it states no error.
      others: Σ of the entries of the trace's other events.
      reward, expected, outcome, unexplained, remainder: of the trace: reward = expected + entry + others + outcome +
        unexplained + remainder. `reward` is None where the trace has none.
    """

    trace: str
    event: str
    position: int
    agent: str
    role: str
    type: str
    action: bool
    call: str
    rule: str
    lines: tuple[Line, ...]
    rest: float
    naive: float
    entry: float
    stderr: float | None
    noise: bool | None
    others: float
    reward: float | None
    expected: float
    outcome: float
    unexplained: float
    remainder: float

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        return dataclasses.asdict(self)


def explain(
    traces: Traces,
    trace: int | str,
    event: int | str,
    claims: Mapping[str, Credit],
    *,
    ledger: Ledger | None = None,
) -> Receipt:
    """The receipt of one event: each claim on it, what the ledger paid, and the account of its trace.

    Args:
      traces: what was read.
      trace: the row or the id of a trace.
      event: the id of one of its events, or its position in the trace, from 0.
      claims: results of methods on `traces.graph`, by the names to show.
      ledger: of the same claims; by default `compose(graph, reward, claims)` by rule "increments".

    Returns:
      `Receipt`, in units of reward.

    Raises:
      CreditError: no such trace or event.

    Examples:
      >>> import credit
      >>> from graphs.traces.batch import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> def record(name, reward):
      ...     trace = TraceRecord(name, "task", "log.jsonl", instances={"a": Agent()}, rewards={"team": reward})
      ...     trace.event("e0", 0, "a", action=True)
      ...     return trace
      >>> traces = assemble([record("t0", 1.0), record("t1", 0.0)])
      >>> receipt = explain(traces, "t0", "e0", {"rloo": credit.rloo(traces.graph, traces.reward)})
      >>> print(receipt.reward, receipt.expected, receipt.entry, receipt.unexplained, receipt.lines[0].wanted)
      1.0 0.0 0.0 1.0 1.0
    """
    expect("traces", traces, Traces, "what credit.read returns")
    expect("claims", claims, Mapping, "results of methods by name")
    graph = traces.graph
    if ledger is None:
        ledger = compose(graph, traces.reward, list(claims.values()))
    row, at, first = event_index(traces, trace, event)
    agent = int(graph.agent_ids[at])
    lines = _lines(ledger, claims, at)
    increments = np.asarray(ledger.increments, np.float64)
    entry = float(increments[at])
    stderr = float(ledger.stderr[at])
    return Receipt(
        trace=traces.traces["trace"][row].as_py(),
        event=traces.events["event"][at].as_py(),
        position=at - first,
        agent=traces.agents["agent"][agent].as_py(),
        role=traces.agents["role"][agent].as_py(),
        type=TYPE_NAMES[int(graph.event_type[at])],
        action=bool(graph.action_mask[at]),
        call=_call(traces, at),
        rule=ledger.rule,
        lines=lines,
        rest=entry - sum((line.got for line in lines if line.got is not None), 0.0),
        naive=sum((line.wanted for line in lines if line.wanted is not None), 0.0),
        entry=entry,
        stderr=stderr if np.isfinite(stderr) and bool(ledger.claimed[at]) else None,
        noise=bool(ledger.noise[at]) if np.isfinite(stderr) and bool(ledger.claimed[at]) else None,
        others=float(increments[(np.asarray(graph.trace_ids) == row) & np.asarray(graph.event_mask)].sum()) - entry,
        reward=float(ledger.reward[row]) if bool(ledger.scored[row]) else None,
        expected=float(ledger.expected[row]),
        outcome=float(ledger.outcome[row]),
        unexplained=float(ledger.unexplained[row]),
        remainder=float(ledger.remainder[row]),
    )


def event_index(traces: Traces, trace: int | str, event: int | str) -> tuple[int, int, int]:
    """The row of the trace, and the positions of the event and of the trace's first event in the batch.

    Raises:
      CreditError: no such trace or event.
    """
    row = traces.index(trace)
    members = np.flatnonzero(np.asarray(traces.graph.trace_ids)[: traces.sizes.events] == row)
    name = traces.traces["trace"][row].as_py()
    if isinstance(event, str):
        ids = traces.events["event"].take(members).to_pylist()
        if event not in ids:
            raise CreditError(f"event is {event!r}; expected the id of one of the {len(ids)} events of trace {name!r}")
        return row, int(members[ids.index(event)]), int(members[0])
    if not 0 <= event < len(members):
        raise CreditError(
            f"event is {event}; expected 0 to {len(members) - 1}, or the id of an event of trace {name!r}"
        )
    return row, int(members[event]), int(members[0])


def _taken(ledger: Ledger, claims: Mapping[str, Credit]) -> dict[str, Credit]:
    """The form in which each claim took part, without those that did not: a ledger keeps them in order."""
    waiting = list(ledger.claims)
    taken = {}
    for name, claim in claims.items():
        place = next((i for i, other in enumerate(waiting) if other.source == claim.source), None)
        if place is not None and not part_of(ledger, claim):
            taken[name] = waiting.pop(place)
    return taken


def _lines(ledger: Ledger, claims: Mapping[str, Credit], at: int) -> tuple[Line, ...]:
    taken = _taken(ledger, claims)
    here = {name: form for name, form in taken.items() if bool(form.valid[at])}
    shares: dict[str, float] = {}
    if ledger.rule == "increments" and here:
        combined = combine(list(ledger.claims), ledger.errors)
        shares = {source: float(combined.weight[s, at]) for s, source in enumerate(combined.sources)}
    rows = []
    for name, claim in claims.items():
        wanted = _difference(claim, at) if bool(claim.valid[at]) else None
        stderr = float(claim.stderr[at])
        form = here.get(name)
        votes = sum(other.source == claim.source for other in here.values())
        brought = None
        if form is not None and bool(ledger.claimed[at]):
            brought = float(ledger.cells[at, ledger.channels.index(form.source)]) / votes
        rows.append(
            Line(
                claim=name,
                estimand=claim.estimand,
                source=claim.source,
                unit=claim.unit,
                wanted=wanted,
                stderr=stderr if wanted is not None and np.isfinite(stderr) else None,
                increment=_difference(form, at) if form is not None and form.estimand == "increment" else None,
                weight=shares.get(form.source) if form is not None else None,
                got=brought,
                why=_why(ledger, claim, taken.get(name), form, votes, len({c.source for c in here.values()}), at),
            )
        )
    return tuple(rows)


def _difference(claim: Credit, at: int) -> float:
    return float(claim.credit[at]) - float(claim.baseline[at])


def _why(
    ledger: Ledger, claim: Credit, taken: Credit | None, form: Credit | None, votes: int, sources: int, at: int
) -> str:
    """What became of a claim on an event, in words."""
    if not bool(claim.valid[at]):
        return f"no number here: {REASONS[int(claim.reason[at])]}"
    if taken is None:
        refusal = part_of(ledger, claim)
        if claim.estimand == "total":
            return f"{refusal}; its baseline may be the expected reward at the start"
        return refusal or "it took no part"
    if form is None:
        return f"no number here after conversion: {REASONS[int(taken.reason[at])]}"
    if not bool(ledger.claimed[at]):
        return "the trace has no reward to divide"
    words = []
    if form.unit != "event":
        words.append(f"a claim on all of its {form.unit} together")
    if claim.estimand == "return":
        words.append("as an increment: minus the part of the next action")
    elif claim.estimand == "effect":
        words.append("as an increment: times 1 − π, relative to the mean of the policy")
    elif claim.estimand != "increment":
        words.append(f"a {claim.estimand}, by rule {ledger.rule!r}")
    if votes > 1:
        words.append(f"one vote with {votes - 1} more of its source")
    if ledger.rule == "increments":
        words.append("averaged with other sources, not added" if sources > 1 else "the only source here")
    else:
        words.append(f"by rule {ledger.rule!r}")
    return "; ".join(words)


def _call(traces: Traces, at: int) -> str:
    """The id of the action that an effect came from: its sender by the same agent, the last one; "" where none is."""
    graph = traces.graph
    if bool(graph.action_mask[at]):
        return ""
    causes = np.asarray(graph.senders)[np.asarray(graph.edge_mask) & (np.asarray(graph.receivers) == at)]
    chose = np.asarray(graph.action_mask)[causes] & (np.asarray(graph.agent_ids)[causes] == int(graph.agent_ids[at]))
    return traces.events["event"][int(causes[chose].max())].as_py() if chose.any() else ""
