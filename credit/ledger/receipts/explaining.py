"""Write receipts: from claims and their ledger to the account of single events."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from credit.ledger import Ledger
from credit.ledger.composition import ledger_of
from credit.ledger.from_methods import total_of
from credit.ledger.receipts.offered_claims import offered_claims, why
from credit.ledger.receipts.receipt import Line, Receipt
from credit.tables.advantages import TYPE_NAMES
from credit.tables.batch_rows import Rows, as_traces
from estimators.base import Credit
from estimators.composition.increments import combine
from graphs.argument_kinds import checked_kinds
from graphs.distinct_columns import distinct_columns
from graphs.errors import expect
from graphs.event_graph import EventGraph
from graphs.traces.batch import Traces

__all__ = ["AMOUNTS", "LineColumns", "ReceiptColumns", "Receipts", "explain"]

AMOUNTS = ("wanted", "stderr", "increment", "weight", "got")
"""Numbers of a line, which it may lack."""


@checked_kinds()
def explain(
    traces: Traces | Rows,
    trace: int | str,
    event: int | str,
    claims: Mapping[str, Credit],
    *,
    ledger: Ledger | None = None,
) -> Receipt:
    """The receipt of one event: each claim on it, what the ledger paid, and the account of its trace.

    Args:
      traces: what was read, or the `Rows` of `credit.from_columns`.
      trace: the row or the id of a trace.
      event: the id of one of its events, or its position in the trace, from 0.
      claims: results of methods on `traces.graph`, by the names to show.
      ledger: of the same claims; by default `compose` of each trace's return, by rule "increments".

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
    return Receipts(as_traces(traces), claims, ledger=ledger).of(trace, event)


class Receipts:
    """Receipts of the events of one batch, as `explain` gives them; what depends on the batch is computed once.

    Args:
      traces: what was read.
      claims: results of methods on `traces.graph`, by the names to show.
      ledger: of the same claims; by default `compose` of each trace's return, by rule "increments".

    Attributes:
      rule: of the ledger.

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
            ledger = ledger_of(traces.graph, total_of(traces), list(claims.values()))
        self._traces, self._ledger, self.rule = traces, ledger, ledger.rule
        self._claims = offered_claims(ledger, claims)
        self._weights: dict[str, np.ndarray] = {}
        if ledger.rule == "increments" and any(claim.form is not None for claim in self._claims):
            combined = combine(list(ledger.claims), ledger.errors)
            self._weights = dict(zip(combined.sources, np.asarray(combined.weight, np.float64), strict=True))
        self._increments = np.asarray(ledger.increments, np.float64)
        self._stderr, self._noise = np.asarray(ledger.stderr, np.float64), ledger.noise
        self._claimed, self._cells = np.asarray(ledger.claimed), np.asarray(ledger.cells)
        self._of_trace = {
            name: np.asarray(getattr(ledger, name))
            for name in ("reward", "scored", "expected", "outcome", "unexplained", "remainder")
        }
        graph = traces.graph
        self._trace = np.asarray(graph.trace_ids)
        self._first = np.searchsorted(self._trace[: traces.sizes.events], np.arange(traces.sizes.traces + 1))
        self._calls = _calls(graph)
        pairs = itertools.pairwise(self._first.tolist())
        self._sums = np.array([float(self._increments[first:last].sum()) for first, last in pairs])

    def of(self, trace: int | str, event: int | str) -> Receipt:
        """The receipt of an event, by the ids or the places of the trace and of the event within it.

        Raises:
          CreditError: no such trace or event.
        """
        return self.at(self._traces.event_row(trace, event))

    def at(self, at: int) -> Receipt:
        """The receipt of the event in a row of the batch."""
        traces, graph = self._traces, self._traces.graph
        row, agent = int(graph.trace_ids[at]), int(graph.agent_ids[at])
        columns = self.columns(np.array([at]))
        lines = tuple(
            Line(
                claim=of_claim.claim,
                estimand=of_claim.estimand,
                source=of_claim.source,
                unit=of_claim.unit,
                **{name: _plain(getattr(of_claim, name)) for name in AMOUNTS},
                why=of_claim.why[0],
            )
            for of_claim in columns.lines
        )
        return Receipt(
            trace=traces.traces["trace"][row].as_py(),
            event=traces.events["event"][at].as_py(),
            position=at - int(self._first[row]),
            agent=traces.agents["agent"][agent].as_py(),
            role=traces.agents["role"][agent].as_py(),
            type=TYPE_NAMES[int(graph.event_type[at])],
            action=bool(graph.action_mask[at]),
            call=columns.call[0],
            rule=self.rule,
            lines=lines,
            rest=float(columns.rest[0]),
            naive=float(columns.naive[0]),
            entry=float(columns.entry[0]),
            stderr=float(columns.stderr[0]) if columns.stated[0] else None,
            noise=bool(columns.noise[0]) if columns.stated[0] else None,
            others=float(columns.others[0]),
            **self.account(row),
        )

    def columns(self, rows: np.ndarray) -> ReceiptColumns:
        """The receipts of the events in these rows of the batch, as columns in their order."""
        claimed = self._claimed[rows]
        zero = np.zeros(len(rows))
        forms = [claim.form for claim in self._claims]
        present = [zero > 0 if form is None else form.reason[rows] == 0 for form in forms]
        here = {form.source: zero for form in forms if form is not None}  # claims of a source on each event
        for form, is_present in zip(forms, present, strict=True):
            if form is not None:
                here[form.source] = here[form.source] + is_present
        sources = sum((votes > 0 for votes in here.values()), zero.astype(np.int64))
        silent = self._without_error(rows, present)
        entry, stderr = self._increments[rows], self._stderr[rows]
        lines, naive, rest = [], zero, zero
        for claim, is_present in zip(self._claims, present, strict=True):
            offered, form = claim.offered, claim.form
            votes = here.get(offered.source, zero)
            wanted, asks, none = offered.amounts(rows), offered.reason[rows] == 0, np.full(len(rows), np.nan)
            increment, weight, got = none, none, none
            if form is not None:
                amount = form.amounts(rows)
                if form.estimand == "increment":
                    increment = amount
                paid = is_present & claimed
                share = none
                if paid.any():
                    share = self._cells[rows, self._ledger.channels.index(form.source)] / np.maximum(votes, 1)
                if form.source in self._weights:
                    weight = np.where(is_present, self._weights[form.source][rows], np.nan)
                    # Several claims of one source: each brings its own part of the vote, not an equal one.
                    share = np.where(votes > 1, weight * amount / np.maximum(votes, 1), share)
                got = np.where(paid, share, np.nan)
            error = offered.stderr[rows].astype(np.float64)
            # Events with the same reasons, votes and sources have the same words: they are made once.
            reasons = offered.reason[rows], zero if form is None else form.reason[rows]
            kinds = np.stack([*reasons, claimed, votes, sources, *silent.values()])
            _, first, kind, _ = distinct_columns(*kinds.astype(np.int64))
            words = [
                why(
                    self.rule,
                    bool(claimed[i]),
                    claim,
                    int(votes[i]),
                    int(sources[i]),
                    int(rows[i]),
                    [source for source, here in silent.items() if here[i]],
                )
                for i in first.tolist()
            ]
            lines.append(
                LineColumns(
                    claim.name,
                    offered.estimand,
                    offered.source,
                    offered.unit,
                    wanted,
                    np.where(asks & np.isfinite(error), error, np.nan),
                    increment,
                    weight,
                    got,
                    [words[k] for k in kind.ravel().tolist()],
                )
            )
            naive = naive + np.where(asks, wanted, 0.0)
            rest = rest + np.where(is_present & claimed, got, 0.0)
        calls = self._calls[rows]
        ids = self._traces.events["event"].take(np.maximum(calls, 0)).to_pylist()
        return ReceiptColumns(
            lines=lines,
            call=[name if call >= 0 else "" for name, call in zip(ids, calls.tolist(), strict=True)],
            rest=entry - rest,
            naive=naive,
            entry=entry,
            stated=np.isfinite(stderr) & claimed,
            stderr=stderr,
            noise=self._noise[rows],
            others=self._sums[self._trace[rows]] - entry,
        )

    def _without_error(self, rows: np.ndarray, present: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Where each source has a claim without a stated error, so that all weigh alike: bool [rows] by source."""
        found: dict[str, np.ndarray] = {}
        exact = np.zeros(len(rows), bool)
        for claim, is_present in zip(self._claims, present, strict=True):
            if claim.form is not None:
                error = claim.form.stderr[rows]
                exact |= is_present & (error <= 0)
                known = found.get(claim.form.source, np.zeros(len(rows), bool))
                found[claim.form.source] = known | (is_present & ~np.isfinite(error))
        return {source: lacks & ~exact for source, lacks in found.items()}

    def account(self, row: int) -> dict[str, Any]:
        """What a receipt says of its trace: reward (None without one) to remainder, and `holding_luck`."""
        found: dict[str, Any] = {name: float(values[row]) for name, values in self._of_trace.items()}
        found["holding_luck"] = self._ledger.holding_luck
        return found if found.pop("scored") else found | {"reward": None}


class LineColumns(NamedTuple):
    """The lines of one claim in the receipts of several events: arrays as the fields of `Line`, NaN for None."""

    claim: str
    estimand: str
    source: str
    unit: str
    wanted: np.ndarray
    stderr: np.ndarray
    increment: np.ndarray
    weight: np.ndarray
    got: np.ndarray
    why: list[str]


class ReceiptColumns(NamedTuple):
    """The receipts of several events: columns as the fields of `Receipt`.

    Attributes:
      stated: where `stderr` and `noise` say something.
    """

    lines: list[LineColumns]
    call: list[str]
    rest: np.ndarray
    naive: np.ndarray
    entry: np.ndarray
    stated: np.ndarray
    stderr: np.ndarray
    noise: np.ndarray
    others: np.ndarray


def _plain(column: np.ndarray) -> float | None:
    """The only number of a column; None for NaN."""
    return None if np.isnan(column[0]) else float(column[0])


def _calls(graph: EventGraph) -> np.ndarray:
    """For effects of actions, the action that each came from: its sender by the same agent, the last one; else -1."""
    edges = np.asarray(graph.edge_mask)
    senders, receivers = np.asarray(graph.senders)[edges], np.asarray(graph.receivers)[edges]
    action, agent = np.asarray(graph.action_mask), np.asarray(graph.agent_ids)
    consecutive = action[senders] & ~action[receivers] & (agent[senders] == agent[receivers])
    calls = np.full(graph.num_events, -1)
    np.maximum.at(calls, receivers[consecutive], senders[consecutive])
    return calls
