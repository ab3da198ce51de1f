"""The Parquet cache gives back exactly what was read, and refuses damage by name."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import CreditError, NothingReadError
from graphs.logs import read
from graphs.padding import bucket
from graphs.traces.batch import Traces
from graphs.traces.cache import KEY, VERSION, is_cache, read_cache, write_cache
from graphs.traces.limits import Limits


def logs(folder: Path, traces: int = 9) -> Path:
    """Traces with spawns, edges, evidence of every kind, other scripts, a missing reward, and two broken lines."""
    lines = []
    for i in range(traces):
        events: list[dict[str, Any]] = [
            {"id": "s", "t": i, "type": "spawn", "agent": "lead", "to": "wörker", "role": "x"},
            {"id": "é", "type": "message", "agent": "wörker", "value": i / 3, "context": f"c{i % 2}", "tokens": i},
        ]
        if i % 3:
            events[1] |= {"token_ids": [i] * i, "token_log_probs": [-i / 3] * i}
        if i % 3 == 2:
            events[1] |= {"token_sums_of_squares": [(i + 1) / 9] * i}
        events += [{"id": f"e{j}", "t": 2, "type": "tool_call", "agent": "wörker", "tool": "=1"} for j in range(i)]
        document = {
            "trace_id": f"t{i}",
            "task_id": f"q{i // 2}",
            "events": events,
            "edges": [{"src": "s", "dst": "é", "type": "spawn"}],
            "rewards": {} if i == 3 else {"team": i % 2 + 0.1, "other": i},
            "costs": {"tokens": i, "wall_clock_s": 1.0},
            "metrics": {"m": 0.1},
            "evidence": {"greedy_reward": 0.3} if i % 2 else {},
        }
        lines.append(json.dumps(document))
    lines.insert(2, "{")
    lines.append('{"trace_id": "x", "task_id": "q", "events": []}')
    file = folder / "x.jsonl"
    file.write_text("\n".join(lines))
    (folder / "notes.txt").write_text("")
    return folder


def assert_equal(a: Traces, b: Traces) -> None:
    for name, array in vars(a.graph).items():
        array, other = np.asarray(array), np.asarray(getattr(b.graph, name))
        assert (array.dtype, array.shape) == (other.dtype, other.shape), name
        np.testing.assert_array_equal(array, other, err_msg=name)
    assert a.reward.dtype == b.reward.dtype
    np.testing.assert_array_equal(a.reward, b.reward)
    assert dict(a.evidence).keys() == dict(b.evidence).keys()
    for name in a.evidence:
        x, y = a.evidence[name].array, b.evidence[name].array
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y, err_msg=name)
    for table in ("events", "agents", "traces"):
        assert getattr(a, table).equals(getattr(b, table)), table
    assert (a.tokens is None) == (b.tokens is None)
    for name, array in vars(a.tokens).items() if a.tokens is not None else ():
        np.testing.assert_array_equal(array, getattr(b.tokens, name), err_msg=name, strict=True)
    assert (a.problems, a.ignored, a.refused_systems) == (b.problems, b.ignored, b.refused_systems)


def test_round_trip_is_exact(tmp_path: Path) -> None:
    traces = dataclasses.replace(read(logs(tmp_path)), refused_systems={"lost": "v2"})
    assert len(traces.problems) == 2 and traces.ignored and traces.tokens is not None
    cache = tmp_path / "cache.parquet"
    write_cache(traces, cache)
    assert is_cache(cache) and not is_cache(tmp_path / "x.jsonl") and not is_cache(tmp_path / "none")
    assert_equal(read_cache(cache), traces)
    assert_equal(read(cache), traces)


def test_several_groups_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphs.traces.cache._EVENTS_A_GROUP", 5)
    traces = read(logs(tmp_path))
    write_cache(traces, tmp_path / "cache.parquet")
    assert pq.ParquetFile(tmp_path / "cache.parquet").metadata.num_row_groups > 2
    assert_equal(read_cache(tmp_path / "cache.parquet"), traces)


def test_columns_that_hold_nothing_of_their_own_are_left_out(tmp_path: Path) -> None:
    traces = read(logs(tmp_path))
    write_cache(traces, tmp_path / "cache.parquet")
    written = set(pq.read_schema(tmp_path / "cache.parquet").names)
    every = {f"events.table.{name}" for name in traces.events.column_names}
    nothing = ("file", "line", "offset", "trusted", "from", "content_ref", "status", "model", "requested_model")
    assert every - written == {f"events.table.{name}" for name in nothing}
    moved = traces.events.set_column(2, "line", pa.array(range(len(traces.events)), pa.int32()))
    other = dataclasses.replace(traces, events=moved)
    write_cache(other, tmp_path / "other.parquet")
    assert_equal(read_cache(tmp_path / "other.parquet"), other)


def test_a_trace_without_edges_and_no_problems(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"trace_id": "t", "task_id": "q", "events": [{"id": "e", "type": "stop", "agent": "a"}]}')
    traces = read(file)
    write_cache(traces, tmp_path / "cache.parquet")
    assert_equal(read_cache(tmp_path / "cache.parquet"), traces)


def test_equal_batches_give_equal_bytes(tmp_path: Path) -> None:
    traces = read(logs(tmp_path))
    write_cache(traces, tmp_path / "a.parquet")
    write_cache(read_cache(tmp_path / "a.parquet"), tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize("channel", ["team", "other", "none"])
def test_the_reward_channel_and_the_sizes_are_chosen_at_reading(channel: str, tmp_path: Path) -> None:
    traces = read(logs(tmp_path))
    write_cache(traces, tmp_path / "cache.parquet")
    to = bucket(bucket(traces.sizes)._replace(events=200))
    again = read(tmp_path / "cache.parquet", reward=channel, to=to)
    fresh = read(logs(tmp_path) / "x.jsonl", reward=channel, to=to)
    np.testing.assert_array_equal(again.reward, fresh.reward)
    assert again.graph.num_events == fresh.graph.num_events == to.events


def test_a_cache_is_read_alone(tmp_path: Path) -> None:
    write_cache(read(logs(tmp_path)), tmp_path / "cache.parquet")
    both = read(tmp_path)
    assert [p.kind for p in both.problems].count("cache-among-logs") == 1
    for option in ({"rewards": {"t0": 1.0}}, {"groups": {"t0": "q"}}, {"columns": {"trace": "t"}}, {"format": "table"}):
        with pytest.raises(CreditError, match="cache"):
            read(tmp_path / "cache.parquet", **option)


def damaged(path: Path, change: Any) -> str:
    """The kind of the one problem of a cache whose table was changed."""
    table = pq.read_table(path)
    pq.write_table(change(table), path)
    with pytest.raises(NothingReadError) as caught:
        read(path)
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    return problem.kind


def without(name: str) -> Any:
    return lambda table: table.drop_columns([name])


def with_column(name: str, make: Any) -> Any:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        return table.set_column(place, name, make(table[name].combine_chunks()))

    return change


def flattened(make: Any) -> Any:
    return lambda column: pa.ListArray.from_arrays(column.offsets, make(column.flatten()))


def left_out(names: str) -> Any:
    metadata = {KEY: b'{"version": %d, "problems": [], "ignored": [], "left_out": [%s]}' % (VERSION, names.encode())}
    return lambda table: table.replace_schema_metadata(metadata)


DAMAGE = {
    "a column left out that is there": left_out('"events.table.tool"'),
    "a column left out that cannot be": left_out('"events.graph.time"'),
    "a place left out that the traces lack": without("traces.table.file"),
    "a column missing": without("events.graph.agent_ids"),
    "a table's column missing": without("events.table.event"),
    "text for numbers": with_column("events.graph.turn_ids", flattened(lambda v: v.cast(pa.string()))),
    "ids out of range": with_column("events.graph.agent_ids", flattened(lambda v: pa.array(v.to_numpy() + 1000))),
    "negative ids": with_column("edges.graph.senders", flattened(lambda v: pa.array(v.to_numpy() - 5))),
    "an unknown type": with_column("events.graph.event_type", flattened(lambda v: pa.array(v.to_numpy() + 90))),
    "nulls": with_column("events.graph.turn_ids", lambda v: pa.array([None] * len(v), v.type)),
    "lists of other lengths": with_column("events.table.tool", lambda v: pa.array([[]] * len(v), v.type)),
    "no lists": with_column("events.table.tool", lambda v: pa.array(["x"] * len(v))),
    "an infinite reward": with_column("traces.reward", lambda v: pa.array([np.inf] * len(v), v.type)),
    "an infinite reward of a channel": with_column(
        "traces.numbers.amount", flattened(lambda v: pa.array([-np.inf] * len(v), v.type))
    ),
    "a number without its name": with_column("traces.numbers.amount", lambda v: pa.array([[]] * len(v), v.type)),
    "an unknown number": with_column("traces.numbers.name", flattened(lambda v: pa.array(["x"] * len(v), v.type))),
    "infinite times": with_column("events.table.time", flattened(lambda v: pa.array([np.inf] * len(v), v.type))),
    "infinite times of the graph": with_column(
        "events.graph.time", flattened(lambda v: pa.array([np.inf] * len(v), v.type))
    ),
    "infinite values": with_column("events.evidence.value", flattened(lambda v: pa.array([np.inf] * len(v), v.type))),
    "tokens without ids": without("events.tokens.ids"),
    "a mask shorter than its ids": with_column(
        "events.tokens.mask", flattened(lambda v: pa.array([[]] * len(v), v.type))
    ),
    "ids of tokens below -1": with_column("events.tokens.ids", flattened(lambda v: pa.array([[-2]] * len(v), v.type))),
    "no metadata of problems": lambda table: table.replace_schema_metadata({KEY: b"{"}),
    "evidence of the other axis": lambda table: table.append_column("traces.evidence.value", table["traces.reward"]),
}


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache.parquet"
    write_cache(read(logs(tmp_path)), cache)
    assert damaged(cache, DAMAGE[name]) == "bad-cache"


def test_a_cache_of_another_version(tmp_path: Path) -> None:
    cache = tmp_path / "cache.parquet"
    write_cache(read(logs(tmp_path)), cache)
    other = {KEY: b'{"version": 99, "problems": [], "ignored": []}'}
    assert damaged(cache, lambda table: table.replace_schema_metadata(other)) == "unknown-version"


def test_a_cache_beyond_the_limits_or_cut_short(tmp_path: Path) -> None:
    cache = tmp_path / "cache.parquet"
    write_cache(read(logs(tmp_path)), cache)
    with pytest.raises(NothingReadError, match="too-large"):
        read(cache, limits=Limits(file_bytes=1000))
    content = cache.read_bytes()
    cache.write_bytes(content[: len(content) // 2] + content[len(content) // 2 + 100 :])
    with pytest.raises(NothingReadError):
        read(cache)


def test_a_cache_keeps_what_a_row_of_a_table_was_about(tmp_path: Path) -> None:
    traces = read(logs(tmp_path), rewards={"nowhere": 1.0})
    write_cache(traces, tmp_path / "cache.parquet")
    kept = read_cache(tmp_path / "cache.parquet")
    assert kept.problems == traces.problems and "reward" in [problem.about for problem in kept.problems]


def test_a_cache_without_rows_is_refused_as_a_log_without_traces(tmp_path: Path) -> None:
    write_cache(read(logs(tmp_path)), tmp_path / "whole.parquet")
    pq.write_table(pq.read_table(tmp_path / "whole.parquet").slice(0, 0), tmp_path / "empty.parquet")
    for reading in (read_cache, read):
        with pytest.raises(NothingReadError, match="content is 'no rows'; expected a trace or more"):
            reading(tmp_path / "empty.parquet")
