"""A cache of a batch: one Parquet file with the exact content of a `graphs.traces.batch.Traces`.

A row is a trace; columns of its events, edges and agents are lists. Names of columns begin with their axis. Ids are
those of the batch, so the concatenated lists are the arrays of the batch. The metadata has the problems, the ignored
files and the names of redundant columns, which are left out. The rewards and groups of the batch are part of the cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphs.atomic import atomic_write
from graphs.errors import CreditError, NothingReadError, Problem
from graphs.event_graph import AGENT_FIELDS, EDGE_FIELDS, EVENT_FIELDS, EventGraph
from graphs.invariants import InvariantError, validate
from graphs.json_errors import JSON_ERRORS
from graphs.padding import Sizes, bucket, pad, pad_array
from graphs.parquet.checks import checked_metadata
from graphs.parquet.unpacked import PackedError, read_decoded, unpacked_bytes
from graphs.text import counted, excerpt
from graphs.traces.assembling import clustered
from graphs.traces.batch import Traces
from graphs.traces.evidence import Evidence, numbers_of_traces
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.schema import EVENT_EVIDENCE, TEXT_COLUMNS, TRACE_EVIDENCE
from graphs.traces.tokens import Tokens

__all__ = ["is_cache", "read_cache", "write_cache"]

KEY = b"orchestration_credit.cache"
VERSION = 5
_MAGIC = b"PAR1"
_EVENTS_A_GROUP = 1 << 18  # approximate number of events in a row group of the file

_ARRAYS = {
    "events": [name for name in EVENT_FIELDS if name not in ("event_mask", "trace_ids")],
    "edges": [name for name in EDGE_FIELDS if name != "edge_mask"],
    "agents": [name for name in AGENT_FIELDS if name not in ("agent_mask", "agent_trace")],
}
_TEXTS = [f"events.table.{name}" for name in ("trusted", *TEXT_COLUMNS)]
_PLACES = {f"events.table.{name}": f"traces.table.{name}" for name in ("file", "line", "offset")}
_WORDS = [
    *(f"events.table.{name}" for name in ("file", "from", "to", "tool", "status")),
    *("events.graph.event_type", "edges.graph.edge_type"),
]
"""Columns with few distinct values, which are written with a dictionary."""
_TOKENS = {"ids": pa.int32(), "mask": pa.bool_(), "log_probs": pa.float32(), "sums_of_squares": pa.float32()}
_SELDOM = "sums_of_squares"
"""The array of tokens that a cache may lack beside the others: most logs have none."""
_DTYPES: dict[str, type[np.generic]] = {"time": np.float32, "action_mask": np.bool_}


class _About(msgspec.Struct):
    version: int
    problems: list[Problem]
    ignored: list[str]
    left_out: list[str] = []
    text_columns: dict[str, str] = {}
    refused_systems: dict[str, str] = {}


def is_cache(path: str | Path) -> bool:
    """Whether a file is a cache of this library; False for a file that cannot be opened."""
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC and KEY in (pq.read_schema(path).metadata or {})
    except (OSError, pa.ArrowException, UnicodeDecodeError):  # the last for the name of a column
        return False


def write_cache(traces: Traces, path: str | Path) -> None:
    """Write a batch to one Parquet file, whole or not at all. Equal batches give equal bytes.

    `read_cache` returns the same arrays (padded to their bucket), evidence, strings, tables and problems.

    Raises:
      CreditError: the edges or agents of a trace are not contiguous; batches of readers always satisfy this.
      OSError: the file cannot be written.
    """
    n = traces.sizes
    graph = traces.graph
    trace_of = {
        "events": np.asarray(graph.trace_ids)[: n.events],
        "edges": np.asarray(graph.trace_ids)[np.asarray(graph.senders)[: n.edges]],
        "agents": np.asarray(graph.agent_trace)[: n.agents],
    }
    if not np.all(np.asarray(graph.edge_mask)[: n.edges]):
        raise CreditError("edge_mask has padding before real edges; expected the real edges first")
    bounds = {}
    for axis, ids in trace_of.items():
        if np.any(np.diff(ids) < 0):
            raise CreditError(f"{axis} of a trace are not contiguous; expected {axis} in the order of the traces")
        bounds[axis] = np.searchsorted(ids, np.arange(n.traces + 1)).astype(np.int32)
    flat = _flat(traces)
    left_out = _left_out(flat, pa.array(trace_of["events"]))
    flat = {name: column for name, column in flat.items() if name not in left_out}
    columns, systems = dict(traces.text_columns), dict(traces.refused_systems)
    about = _About(VERSION, list(traces.problems), list(traces.ignored), left_out, columns, systems)
    with atomic_write(path) as file:
        writer: pq.ParquetWriter | None = None
        try:
            for start, stop in _groups(bounds["events"]):
                rows = _rows(flat, bounds, start, stop)
                if writer is None:
                    schema = rows.schema.with_metadata({KEY: msgspec.json.encode(about)})
                    # These settings make reading fast; `benchmarks/reading.py` measures it.
                    words = [f"{name}.list.element" for name in _WORDS]
                    writer = pq.ParquetWriter(
                        file, schema, compression="lz4", use_dictionary=words, write_page_checksum=True
                    )
                writer.write_table(rows.replace_schema_metadata(writer.schema.metadata))
        finally:
            if writer is not None:
                writer.close()


def _groups(bounds: np.ndarray) -> Iterator[tuple[int, int]]:
    """Runs of traces with about `_EVENTS_A_GROUP` events."""
    start, traces = 0, len(bounds) - 1
    while start < traces:
        stop = int(np.searchsorted(bounds, bounds[start] + _EVENTS_A_GROUP))
        stop = min(max(stop, start + 1), traces)
        yield start, stop
        start = stop


def _flat(traces: Traces) -> dict[str, pa.Array]:
    """All columns by name, with one entry for each event, edge, agent or trace."""
    n = traces.sizes
    real = {"events": n.events, "edges": n.edges, "agents": n.agents}
    columns: dict[str, pa.Array] = {}
    for axis, names in _ARRAYS.items():
        for name in names:
            columns[f"{axis}.graph.{name}"] = pa.array(np.asarray(getattr(traces.graph, name))[: real[axis]])
    columns["traces.graph.group_ids"] = pa.array(np.asarray(traces.graph.group_ids)[: n.traces])
    columns["traces.reward"] = pa.array(np.asarray(traces.reward)[: n.traces])
    for axis, table in (("events", traces.events), ("agents", traces.agents), ("traces", traces.traces)):
        for name in table.column_names:
            if axis != "agents" or name not in ("parent", "trace"):  # those two are arrays of the graph
                columns[f"{axis}.table.{name}"] = table[name].combine_chunks()
    for name, evidence in traces.evidence.items():
        if name in EVENT_EVIDENCE:
            columns[f"events.evidence.{name}"] = pa.array(evidence.array[: n.events], mask=~evidence.mask[: n.events])
    return columns | _numbers_of_traces(traces.evidence, n.traces) | _token_lists(traces.tokens)


def _token_lists(tokens: Tokens | None) -> dict[str, pa.Array]:
    """The arrays of tokens as lists by event."""
    if tokens is None:
        return {}
    ends = pa.array(tokens.offsets)
    return {
        f"events.tokens.{name}": pa.LargeListArray.from_arrays(ends, pa.array(getattr(tokens, name), kind))
        for name, kind in _TOKENS.items()
        if getattr(tokens, name) is not None
    }


def _tokens(columns: dict[str, pa.Array]) -> Tokens | None:
    """The tokens of a cache; None where it has none."""
    lists = {name: columns.get(f"events.tokens.{name}") for name in _TOKENS}
    if all(column is None for column in lists.values()):
        return None
    offsets, arrays = [], []
    for name, kind in _TOKENS.items():
        column = lists[name]
        if column is None and name == _SELDOM:
            continue
        if column is None or column.type != pa.large_list(kind) or column.null_count or column.flatten().null_count:
            raise _DamagedError(f"column 'events.tokens.{name}' is missing, has nulls or is not a list of {kind}")
        offsets.append(np.concatenate([[0], np.cumsum(column.value_lengths().to_numpy())]))
        arrays.append(column.flatten().to_numpy(zero_copy_only=False))
    if any(not np.array_equal(one, offsets[0]) for one in offsets):
        raise _DamagedError("the lists of tokens of an event differ in length")
    ids, mask, *numbers = arrays
    if np.any(ids < -1) or any(np.any(np.isinf(one)) for one in numbers):
        raise _DamagedError("an id of a token is negative, or one of its numbers infinite")
    return Tokens(offsets[0], ids, mask, *numbers)


def _numbers_of_traces(evidence: Mapping[str, Evidence], traces: int) -> dict[str, pa.Array]:
    """Evidence of traces as a list of names and a list of amounts per trace, because names may differ by trace."""
    stated = numbers_of_traces(evidence, [name for name in evidence if name not in EVENT_EVIDENCE], traces)
    ends = np.cumsum([0, *map(len, stated)]).astype(np.int32)
    names = pa.array([name for one in stated for name in one], pa.string())
    amounts = pa.array([amount for one in stated for amount in one.values()], pa.float64())
    return {
        "traces.numbers.name": pa.ListArray.from_arrays(pa.array(ends), names),
        "traces.numbers.amount": pa.ListArray.from_arrays(pa.array(ends), amounts),
    }


def _left_out(flat: dict[str, pa.Array], trace_of: pa.Array) -> list[str]:
    """Columns of events that `read_cache` can restore: texts that are all null, and places that equal their trace's."""
    texts = [name for name in _TEXTS if flat[name].null_count == len(flat[name])]
    return texts + [name for name, whole in _PLACES.items() if flat[name].equals(flat[whole].take(trace_of))]


def _put_back(columns: dict[str, pa.Array], left_out: list[str], trace_of: pa.Array) -> None:
    """Add the columns that were left out."""
    for name in left_out:
        if name in columns or name not in (*_TEXTS, *_PLACES) or _PLACES.get(name, name) not in (name, *columns):
            raise _DamagedError(f"column {name!r} is required")
        if name in _PLACES:
            columns[name] = columns[_PLACES[name]].take(trace_of)
        else:
            columns[name] = pa.nulls(len(trace_of), _TABLES["events"][name.removeprefix("events.table.")])


def _rows(flat: dict[str, pa.Array], bounds: dict[str, np.ndarray], start: int, stop: int) -> pa.Table:
    columns = {}
    for name, values in flat.items():
        axis = name.partition(".")[0]
        if axis == "traces":
            columns[name] = values.slice(start, stop - start)
        else:
            here = bounds[axis][start : stop + 1]
            part = values.slice(here[0], here[-1] - here[0])
            columns[name] = pa.ListArray.from_arrays(pa.array(here - here[0], pa.int32()), part)
    return pa.table(columns)


def read_cache(path: str | Path, *, reward: str = "team", to: Sizes | None = None, limits: Limits = DEFAULT) -> Traces:
    """Read a cache that `write_cache` wrote.

    Args:
      path: the file.
      reward: the reward channel that is the outcome. "team" means the outcome of the written batch where the batch has
        no channel of this name.
      to: sizes to pad to; by default the bucket of the real sizes.
      limits: greatest size of the file, packed and unpacked.

    Raises:
      NothingReadError: the file cannot be read, is damaged or exceeds the limits; `problems` has the reason.
      CapacityError: the batch does not fit `to`.
    """

    def refuse(kind: str, field: str, value: object, expected: str) -> NothingReadError:
        problem = Problem(kind, str(path), 0, field, excerpt(value), expected)
        return NothingReadError("no trace could be read", (problem,))

    try:
        with pa.OSFile(os.fspath(path)) as file:
            metadata = checked_metadata(file)
            unpacked = unpacked_bytes(metadata)
            if unpacked > limits.file_bytes:
                raise refuse(
                    "too-large", "file", counted(unpacked, "byte"), f"at most {counted(limits.file_bytes, 'byte')}"
                )
            rows = read_decoded(file, metadata, limits.file_bytes)
        about = msgspec.json.decode((rows.schema.metadata or {}).get(KEY, b""), type=_About)
        if about.version != VERSION:
            raise refuse("unknown-version", "version", about.version, f"version {VERSION}")
        if not rows.num_rows:
            raise refuse("empty-file", "content", "no rows", "a trace or more")
        columns = _joined(rows)
        return _traces(columns, rows.num_rows, about, reward, to)
    except PackedError as error:
        expected = f"at most {counted(limits.file_bytes, 'byte')}"
        raise refuse("too-large", "file", str(error), expected) from error
    except (pa.ArrowException, OSError, InvariantError, _DamagedError, *JSON_ERRORS) as error:
        raise refuse("bad-cache", "content", str(error), "a cache that `credit convert` wrote") from error


class _DamagedError(CreditError):
    """The columns of a cache are inconsistent."""


def _joined(rows: pa.Table) -> dict[str, pa.Array]:
    """Columns by name with their lists concatenated; `axis.counts` is the number of entries of each trace."""
    columns: dict[str, pa.Array] = {}
    for name in rows.column_names:
        axis = name.partition(".")[0]
        column = rows[name]
        # `combine_chunks` copies even a single chunk.
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if axis == "traces":
            columns[name] = column
            continue
        if axis not in _ARRAYS or not pa.types.is_list(column.type) or column.null_count:
            raise _DamagedError(f"column {name!r} is not a list for each trace")
        counts = np.diff(column.offsets.to_numpy())
        if not np.array_equal(counts, columns.setdefault(f"{axis}.counts", counts)):
            raise _DamagedError(f"column {name!r} is longer or shorter than others of {axis}")
        columns[name] = column.flatten()
    return columns


def _array(columns: dict[str, pa.Array], name: str, dtype: type[np.generic]) -> np.ndarray:
    column = columns.get(name)
    if column is None or column.null_count or column.type != pa.from_numpy_dtype(dtype):
        raise _DamagedError(f"column {name!r} is missing, has nulls or is not {np.dtype(dtype)}")
    array: np.ndarray = column.to_numpy(zero_copy_only=False)
    return array


_TABLES: dict[str, dict[str, pa.DataType]] = {
    "events": {
        "event": pa.string(), "file": pa.string(), "line": pa.int32(), "offset": pa.int64(), "time": pa.float64(),
        "trusted": pa.bool_(), "from": pa.string(), "to": pa.string(), "tool": pa.string(),
        "content_ref": pa.string(), "status": pa.string(), "model": pa.string(),
        "requested_model": pa.string(),
    },
    "agents": {"agent": pa.string(), "name": pa.string(), "role": pa.string()},
    "traces": {
        "trace": pa.string(), "group": pa.string(), "task": pa.string(), "model": pa.string(),
        "format": pa.string(), "file": pa.string(), "line": pa.int32(),
        "offset": pa.int64(), "topology": pa.string(), "system": pa.string(),
        "task_kind": pa.string(), "told_order": pa.bool_(),
    },
}  # fmt: skip


def _table(columns: dict[str, pa.Array], axis: str) -> dict[str, pa.Array]:
    table = {}
    for name, kind in _TABLES[axis].items():
        column = columns.get(f"{axis}.table.{name}")
        if column is None or column.type != kind:
            raise _DamagedError(f"column '{axis}.table.{name}' is missing or not {kind}")
        table[name] = column
    return table


def _traces(columns: dict[str, pa.Array], traces: int, about: _About, reward: str, to: Sizes | None) -> Traces:
    arrays = {
        name: _array(columns, f"{axis}.graph.{name}", _DTYPES.get(name, np.int32))
        for axis, names in _ARRAYS.items()
        for name in names
    }
    counts = {axis: np.asarray(columns[f"{axis}.counts"]) for axis in _ARRAYS}
    rows = np.arange(traces, dtype=np.int32)
    n = Sizes(int(counts["events"].sum()), int(counts["edges"].sum()), int(counts["agents"].sum()), traces)
    to = bucket(n) if to is None else to
    agent_trace, trace_ids = np.repeat(rows, counts["agents"]), np.repeat(rows, counts["events"])
    _put_back(columns, about.left_out, pa.array(trace_ids))
    graph = EventGraph(
        event_mask=np.ones(n.events, bool),
        edge_mask=np.ones(n.edges, bool),
        agent_mask=np.ones(n.agents, bool),
        trace_mask=np.ones(traces, bool),
        trace_ids=trace_ids,
        agent_trace=agent_trace,
        group_ids=_array(columns, "traces.graph.group_ids", np.int32),
        **arrays,
    )
    validate(graph)  # before `pad`, which keeps the invariants
    _check_finite(columns)
    evidence = _evidence(columns, to)
    outcome = pad_array(_array(columns, "traces.reward", np.float32), to.traces)
    channel = evidence.get(f"rewards.{reward}")
    if channel is not None or reward != "team":
        outcome = np.zeros(to.traces, np.float32)
        outcome[:traces] = np.nan
        if channel is not None:
            outcome[:traces] = channel.array[:traces].astype(np.float32)
    tables = {axis: _table(columns, axis) for axis in _TABLES}
    return Traces(
        graph=clustered(pad(graph, to), evidence, tables["traces"]["trace"].to_pylist()),
        reward=outcome,
        evidence=evidence,
        events=pa.table(tables["events"]),
        agents=pa.table(
            tables["agents"] | {"parent": pa.array(arrays["agent_parent"]), "trace": pa.array(agent_trace)}
        ),
        traces=pa.table(tables["traces"]),
        problems=tuple(about.problems),
        ignored=tuple(about.ignored),
        tokens=_tokens(columns),
        text_columns=about.text_columns,
        refused_systems=about.refused_systems,
    )


def _evidence_of_traces(columns: dict[str, pa.Array], to: Sizes) -> dict[str, Evidence]:
    """Evidence of traces from the lists of their names and amounts."""
    names, amounts = columns.get("traces.numbers.name"), columns.get("traces.numbers.amount")
    if names is None or amounts is None or names.null_count or amounts.null_count:
        raise _DamagedError("the numbers of traces are missing")
    if names.type != pa.list_(pa.string()) or amounts.type != pa.list_(pa.float64()):
        raise _DamagedError("the numbers of traces are not lists of names and amounts")
    counts = np.diff(names.offsets.to_numpy())
    if not np.array_equal(counts, np.diff(amounts.offsets.to_numpy())):
        raise _DamagedError("the lists of names and amounts of a trace differ in length")
    coded = names.flatten().dictionary_encode()
    values = amounts.flatten().to_numpy(zero_copy_only=False)
    if coded.null_count or not np.all(np.isfinite(values)):
        raise _DamagedError("a number of a trace has no name, or is not finite")
    codes, rows = coded.indices.to_numpy(), np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(coded.dictionary)))
    evidence = {}
    for name, part in zip(coded.dictionary.to_pylist(), np.split(order, ends[:-1]), strict=False):
        if np.any(np.diff(rows[part]) <= 0):
            raise _DamagedError(f"a trace states {name!r} twice")
        if name not in TRACE_EVIDENCE and not name.startswith(("rewards.", "costs.", "metrics.")):
            raise _DamagedError(f"{name!r} is not a known number of a trace")
        evidence[name] = Evidence.at(rows[part], values[part], to.traces)
    return evidence


def _check_finite(columns: dict[str, pa.Array]) -> None:
    """Check that no number is infinite; NaN and null mean that the log has no value."""
    for name, values in columns.items():
        if isinstance(values, pa.Array) and pa.types.is_floating(values.type):
            infinite = np.flatnonzero(np.isinf(values.to_numpy(zero_copy_only=False)))
            if len(infinite):
                raise _DamagedError(
                    f"column {name!r} has {values[int(infinite[0])].as_py()} at position {int(infinite[0])}"
                )


def _evidence(columns: dict[str, pa.Array], to: Sizes) -> dict[str, Evidence]:
    evidence = _evidence_of_traces(columns, to)
    for column, values in columns.items():
        axis, kind, name = (*column.split(".", 2), "", "")[:3]
        if kind != "evidence":
            continue
        key = EVENT_EVIDENCE.get(name)
        if key is None or axis != "events":
            raise _DamagedError(f"column {column!r} is not evidence of {axis}")
        dtype: type[np.generic] = np.float32 if key.kind == "float" else np.int32
        if values.type != pa.from_numpy_dtype(dtype):
            raise _DamagedError(f"column {column!r} is {values.type}; expected {np.dtype(dtype)}")
        absent = -1 if dtype is np.int32 else np.nan
        filled = values.fill_null(absent).to_numpy(zero_copy_only=False)
        evidence[name] = Evidence(pad_array(filled, to.events, absent))
    return evidence
