"""The receipt of one event: its claims, the amount of each, its entry in the ledger, and why they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from credit.ledger import Ledger, compose
from credit.ledger.auditing import part_of
from credit.tables.advantages import TYPE_NAMES
from estimators.base import REASONS, Credit, Reason
from estimators.composition.increments import combine
from estimators.composition.votes import Errors, believed_errors
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, expect
from graphs.event_graph import EventGraph
from graphs.traces.batch import Traces

__all__ = ["LEGEND", "Line", "Receipt", "Receipts", "event_index", "explain"]

LEGEND = (
    "±: standard error of the baseline, or of the whole amount where a method estimates that; – where it is not known: "
    "none is stated, or the traces compared with all agree. noise: within two standard errors of 0."
)
"""What the numbers of doubt of a receipt mean, wherever it is shown."""


@dataclasses.dataclass(frozen=True)
class Line:
    """One claim on the event.

    Attributes:
      claim: its name, as given.
      estimand, source, unit: of the claim.
      wanted: its own number, credit − baseline; None where it refuses this event.
      stderr: of that number; None where it is not known. An error of 0 that was estimated, from samples that agree, is
        not known, as in the ledger.
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
    """The entry of one event and the account of its trace; all numbers in units of reward.

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


@checked_kinds()
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
    return Receipts(traces, claims, ledger=ledger).of(trace, event)


class Receipts:
    """Receipts of the events of one batch, as `explain` gives them; what depends on the batch is computed once.

    Args:
      traces: what was read.
      claims: results of methods on `traces.graph`, by the names to show.
      ledger: of the same claims; by default `compose(graph, reward, claims)` by rule "increments".

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> receipts = Receipts(rows.traces, {"rloo": credit.rloo(graph, reward)})
      >>> receipts.of("a", 0).lines[0].wanted, receipts.of("b", 0).lines[0].wanted
      (1.0, -1.0)
    """

    def __init__(self, traces: Traces, claims: Mapping[str, Credit], *, ledger: Ledger | None = None) -> None:
        expect("traces", traces, Traces, "what credit.read returns")
        expect("claims", claims, Mapping, "results of methods by name")
        if ledger is None:
            ledger = compose(traces.graph, traces.reward, list(claims.values()))
        self._traces, self._ledger = traces, ledger
        self._claims = [_Claim.of(ledger, name, claim, form) for name, claim, form in _forms(ledger, claims)]
        self._weights: dict[str, np.ndarray] = {}
        if ledger.rule == "increments" and any(claim.form is not None for claim in self._claims):
            combined = combine(list(ledger.claims), ledger.errors)
            self._weights = dict(zip(combined.sources, np.asarray(combined.weight), strict=True))
        self._increments = np.asarray(ledger.increments, np.float64)
        self._stderr, self._noise = np.asarray(ledger.stderr), ledger.noise
        self._claimed, self._cells = np.asarray(ledger.claimed), np.asarray(ledger.cells)
        self._of_trace = {
            name: np.asarray(getattr(ledger, name))
            for name in ("reward", "scored", "expected", "outcome", "unexplained", "remainder")
        }
        graph = traces.graph
        self._first = np.searchsorted(np.asarray(graph.trace_ids)[: traces.sizes.events], np.arange(graph.num_traces))
        self._calls = _calls(graph)
        self._sums: dict[int, float] = {}

    def of(self, trace: int | str, event: int | str) -> Receipt:
        """The receipt of an event, by the ids or the places of the trace and of the event within it.

        Raises:
          CreditError: no such trace or event.
        """
        _, at, _ = event_index(self._traces, trace, event)
        return self.at(at)

    def at(self, at: int) -> Receipt:
        """The receipt of the event in a row of the batch."""
        traces, graph = self._traces, self._traces.graph
        row, agent = int(graph.trace_ids[at]), int(graph.agent_ids[at])
        lines = self._lines(at)
        entry, stderr = float(self._increments[at]), float(self._stderr[at])
        stated = bool(np.isfinite(stderr)) and bool(self._claimed[at])
        of_trace = {name: float(values[row]) for name, values in self._of_trace.items()}
        call = self._calls.get(at)
        return Receipt(
            trace=traces.traces["trace"][row].as_py(),
            event=traces.events["event"][at].as_py(),
            position=at - int(self._first[row]),
            agent=traces.agents["agent"][agent].as_py(),
            role=traces.agents["role"][agent].as_py(),
            type=TYPE_NAMES[int(graph.event_type[at])],
            action=bool(graph.action_mask[at]),
            call="" if call is None else traces.events["event"][call].as_py(),
            rule=self._ledger.rule,
            lines=lines,
            rest=entry - sum((line.got for line in lines if line.got is not None), 0.0),
            naive=sum((line.wanted for line in lines if line.wanted is not None), 0.0),
            entry=entry,
            stderr=stderr if stated else None,
            noise=bool(self._noise[at]) if stated else None,
            others=self._sum(row) - entry,
            reward=of_trace["reward"] if of_trace["scored"] else None,
            **{name: of_trace[name] for name in ("expected", "outcome", "unexplained", "remainder")},
        )

    def _sum(self, row: int) -> float:
        """Σ of the entries of a trace."""
        if row not in self._sums:
            first = int(self._first[row])
            last = int(self._first[row + 1]) if row + 1 < self._traces.sizes.traces else self._traces.sizes.events
            self._sums[row] = float(self._increments[first:last].sum())
        return self._sums[row]

    def _lines(self, at: int) -> tuple[Line, ...]:
        here = [claim.form for claim in self._claims if claim.form is not None and claim.form.reason[at] == 0]
        sources = [form.source for form in here]
        claimed = bool(self._claimed[at])
        rows = []
        for claim in self._claims:
            offered = claim.offered
            wanted = offered.at(at)
            form = claim.form if claim.form is not None and claim.form.reason[at] == 0 else None
            votes = sources.count(offered.source)
            brought, weight = None, None
            if form is not None:
                if claimed:
                    brought = float(self._cells[at, self._ledger.channels.index(form.source)]) / votes
                if form.source in self._weights:
                    weight = float(self._weights[form.source][at])
            stderr = float(offered.stderr[at])
            rows.append(
                Line(
                    claim=claim.name,
                    estimand=offered.estimand,
                    source=offered.source,
                    unit=offered.unit,
                    wanted=wanted,
                    stderr=stderr if wanted is not None and np.isfinite(stderr) else None,
                    increment=form.at(at) if form is not None and form.estimand == "increment" else None,
                    weight=weight,
                    got=brought,
                    why=_why(self._ledger.rule, claimed, claim, votes, len(set(sources)), at),
                )
            )
        return tuple(rows)


class _Amounts(NamedTuple):
    """A claim's numbers on the host."""

    credit: np.ndarray
    baseline: np.ndarray
    stderr: np.ndarray
    reason: np.ndarray
    estimand: str
    source: str
    unit: str

    @classmethod
    def of(cls, claim: Credit, errors: Errors) -> _Amounts:
        credit, baseline, reason = map(np.asarray, (claim.credit, claim.baseline, claim.reason))
        stderr = believed_errors(claim, errors)
        return cls(credit, baseline, stderr, reason, claim.estimand, claim.source, claim.unit)

    def at(self, at: int) -> float | None:
        """credit − baseline; None where it is invalid."""
        return float(self.credit[at]) - float(self.baseline[at]) if self.reason[at] == 0 else None


class _Claim(NamedTuple):
    """A claim as it was offered, the form in which it took part (None if it did not), and why it did not."""

    name: str
    offered: _Amounts
    form: _Amounts | None
    refusal: str

    @classmethod
    def of(cls, ledger: Ledger, name: str, claim: Credit, form: Credit | None) -> _Claim:
        refusal = part_of(ledger, claim)
        took_part = form is not None and not refusal
        offered = _Amounts.of(claim, ledger.errors)
        held = _Amounts.of(form, ledger.errors) if form is not None and took_part else None
        return cls(name, offered, held, refusal)


def _forms(ledger: Ledger, claims: Mapping[str, Credit]) -> Iterator[tuple[str, Credit, Credit | None]]:
    """Each claim with the form of it that the ledger holds: a ledger keeps those that took part in order."""
    waiting = list(ledger.claims)
    for name, claim in claims.items():
        place = next((i for i, other in enumerate(waiting) if other.source == claim.source), None)
        held = None if place is None or part_of(ledger, claim) else waiting.pop(place)
        yield name, claim, held


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


def _why(rule: str, claimed: bool, claim: _Claim, votes: int, sources: int, at: int) -> str:
    """What became of a claim on an event, in words."""
    offered, form = claim.offered, claim.form
    if offered.reason[at] != 0:
        return f"no number here: {REASONS[int(offered.reason[at])]}"
    if form is None:
        if offered.estimand == "total":
            return f"{claim.refusal}; its baseline may be the expected reward at the start"
        return claim.refusal or "it took no part"
    if form.reason[at] != 0:
        if form.reason[at] == Reason.NO_EVIDENCE:
            return "no increment follows from its number: a value before or after this event is not known"
        return f"no increment follows from its number: {REASONS[int(form.reason[at])]}"
    if not claimed:
        return "the trace has no reward to divide"
    words = []
    if form.unit != "event":
        words.append(f"a claim on all of its {form.unit} together")
    if offered.estimand == "return":
        words.append("as an increment: minus the part of the next action")
    elif offered.estimand == "effect":
        words.append("as an increment: times 1 − π, relative to the mean of the policy")
    elif offered.estimand != "increment":
        words.append(f"a {offered.estimand}, by rule {rule!r}")
    if votes > 1:
        words.append(f"one vote with {votes - 1} more of its source")
    if rule == "increments":
        words.append("averaged with other sources, not added" if sources > 1 else "the only source here")
    else:
        words.append(f"by rule {rule!r}")
    return "; ".join(words)


def _calls(graph: EventGraph) -> dict[int, int]:
    """For effects of actions, the action that each came from: its sender by the same agent, the last one."""
    edges = np.asarray(graph.edge_mask)
    senders, receivers = np.asarray(graph.senders)[edges], np.asarray(graph.receivers)[edges]
    action, agent = np.asarray(graph.action_mask), np.asarray(graph.agent_ids)
    own = action[senders] & ~action[receivers] & (agent[senders] == agent[receivers])
    calls = np.full(graph.num_events, -1)
    np.maximum.at(calls, receivers[own], senders[own])
    return {int(at): int(calls[at]) for at in np.flatnonzero(calls >= 0)}
