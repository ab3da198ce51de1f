"""The ledger as a table: one row an entry, so that the amounts of a trace sum to its reward."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from credit.ledger.entries import Entries
from credit.tables.advantages import event_columns
from credit.tables.batch_rows import Rows, as_traces
from graphs.errors import CreditError
from graphs.levels import TABLE_LEVELS, TableLevel, ids_on_host
from graphs.structure.decision_kinds import KIND_NAMES, decision_kind
from graphs.traces.batch import Traces

__all__ = ["ENTRIES", "ledger_table"]

ENTRIES = ("expected", "increment", "outcome", "unexplained", "remainder")
NAMES = {
    "trace": [],
    "role": ["role"],
    "agent": ["role", "agent", "agent_name"],
    "turn": ["role", "agent", "agent_name", "turn_in_trace"],
    "decision": ["decision"],
}


def ledger_table(ledger: Entries, traces: Traces | Rows, level: TableLevel) -> pa.Table:
    """`Ledger.table`, whose docstring describes the columns.

    Raises:
      CreditError: no such level, or the ledger is of another batch.
    """
    traces = as_traces(traces)
    if level not in TABLE_LEVELS:
        raise CreditError(f"level is {level!r}; expected one of {', '.join(TABLE_LEVELS)}")
    graph = ledger.graph
    if graph.num_events != traces.graph.num_events or graph.num_traces != traces.graph.num_traces:
        sizes = f"{graph.num_events} events and {graph.num_traces} traces"
        raise CreditError(f"the ledger has {sizes}, the traces have {traces.sizes}; expected the same")
    events, num = traces.sizes.events, traces.sizes.traces
    trace_of = np.asarray(graph.trace_ids)[:events]

    totals = ledger.totals(level)
    ids = ids_on_host(graph, level)[:events]
    units, first = np.unique(ids, return_index=True)  # an event of each unit, which knows the names of its levels
    by_position = np.argsort(first)
    units, first = units[by_position], first[by_position]

    # The rows of a trace in the order of ENTRIES; `event` is an event of the row's unit, -1 for entries of the trace.
    every = np.arange(num)
    kind = np.repeat([0, 1, 2, 3, 4], [num, len(units), num, num, num])
    trace = np.concatenate([every, trace_of[first], every, every, every])
    event, unit = (np.concatenate([every * 0 - 1, x, np.tile(every * 0 - 1, 3)]) for x in (first, units))
    order = np.lexsort((kind, trace))
    kind, trace, event, unit = kind[order], trace[order], event[order], unit[order]
    other, unscored = kind != 1, ~np.asarray(ledger.scored)[trace]
    without_units = unscored | (kind == 4)

    part = ledger.partition
    start, end = np.moveaxis(np.asarray(part.trace_units).astype(np.int64), 1, 0)
    integers = np.stack([start, start, end, np.asarray(part.residual_units).astype(np.int64)])
    floats = np.stack(
        [np.asarray(x) for x in (ledger.expected,) * 2 + (ledger.outcome, ledger.unexplained, ledger.remainder)]
    )
    where = pa.array(event, mask=other)
    names = NAMES.get(level, [*NAMES["turn"], "event", "type"])
    table = pa.table(event_columns(traces))
    if level == "decision":
        table = table.append_column("decision", pa.array(np.array(KIND_NAMES)[decision_kind(graph)[:events]]))
    located = table.select(names).take(where)
    columns: dict[str, object] = {
        "trace": traces.traces["trace"].take(pa.array(trace)),
        "group": traces.traces["group"].take(pa.array(trace)),
        "entry": pa.DictionaryArray.from_arrays(pa.array(kind, pa.int32()), pa.array(ENTRIES)),
        **{name: located[name] for name in names},
        "amount": pa.array(np.where(other, floats[kind, trace], totals.amount[unit]).astype(np.float64), mask=unscored),
    }
    if level == "event":
        claimed, stderr = np.asarray(ledger.claimed), np.asarray(ledger.stderr)
        columns["stderr"] = pa.array(stderr[event], mask=other | ~claimed[event])
        columns["claimed"] = pa.array(claimed[event], mask=other)
        stated = np.isfinite(stderr) & claimed
        columns["noise"] = pa.array(ledger.noise[event], mask=other | ~stated[event])
    whole = np.where(other, integers[np.minimum(kind, 3), trace], totals.units.sum(axis=1)[unit])
    columns["units"] = pa.array(whole, mask=without_units)
    columns["exponent"] = pa.array(np.asarray(part.exponent)[trace], mask=without_units)
    for c, name in enumerate(ledger.channels):
        cell = np.ldexp(totals.units[:, c].astype(np.float64), totals.exponent)
        columns[f"channel:{name}"] = pa.array(cell[unit], mask=other | unscored)
    return pa.table(columns)
