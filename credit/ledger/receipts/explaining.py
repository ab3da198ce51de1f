"""Write receipts: from claims and their ledger to the account of single events."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from credit.ledger import Ledger, compose
from credit.ledger.receipts.offered_claims import offered_claims, why
from credit.ledger.receipts.receipt import Line, Receipt
from credit.tables.advantages import TYPE_NAMES
from estimators.base import Credit
from estimators.composition.increments import combine
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, expect
from graphs.event_graph import EventGraph
from graphs.traces.batch import Traces

__all__ = ["Receipts", "event_index", "explain"]


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
      >>> from graphs.traces.assembling import assemble
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
        self._claims = offered_claims(ledger, claims)
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

    def _lines(self, event: int) -> tuple[Line, ...]:
        here = [claim.form for claim in self._claims if claim.form is not None and claim.form.reason[event] == 0]
        sources = [form.source for form in here]
        claimed = bool(self._claimed[event])
        rows = []
        for claim in self._claims:
            offered = claim.offered
            wanted = offered.amount(event)
            form = claim.form if claim.form is not None and claim.form.reason[event] == 0 else None
            votes = sources.count(offered.source)
            brought, weight = None, None
            if form is not None:
                if form.source in self._weights:
                    weight = float(self._weights[form.source][event])
                if claimed:
                    brought = float(self._cells[event, self._ledger.channels.index(form.source)]) / votes
                    number = form.amount(event)
                    if votes > 1 and weight is not None and number is not None:
                        brought = weight * number / votes  # its own part of the vote, not an equal one
            stderr = float(offered.stderr[event])
            rows.append(
                Line(
                    claim=claim.name,
                    estimand=offered.estimand,
                    source=offered.source,
                    unit=offered.unit,
                    wanted=wanted,
                    stderr=stderr if wanted is not None and np.isfinite(stderr) else None,
                    increment=form.amount(event) if form is not None and form.estimand == "increment" else None,
                    weight=weight,
                    got=brought,
                    why=why(self._ledger.rule, claimed, claim, votes, len(set(sources)), event),
                )
            )
        return tuple(rows)


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
            raise CreditError(f"trace {name!r} has no event {event!r}; expected one of its {len(ids)} event ids")
        return row, int(members[ids.index(event)]), int(members[0])
    if not 0 <= event < len(members):
        raise CreditError(
            f"event is {event}; expected 0 to {len(members) - 1}, or the id of an event of trace {name!r}"
        )
    return row, int(members[event]), int(members[0])


def _calls(graph: EventGraph) -> dict[int, int]:
    """For effects of actions, the action that each came from: its sender by the same agent, the last one."""
    edges = np.asarray(graph.edge_mask)
    senders, receivers = np.asarray(graph.senders)[edges], np.asarray(graph.receivers)[edges]
    action, agent = np.asarray(graph.action_mask), np.asarray(graph.agent_ids)
    consecutive = action[senders] & ~action[receivers] & (agent[senders] == agent[receivers])
    calls = np.full(graph.num_events, -1)
    np.maximum.at(calls, receivers[consecutive], senders[consecutive])
    return {int(event): int(calls[event]) for event in np.flatnonzero(calls >= 0)}
