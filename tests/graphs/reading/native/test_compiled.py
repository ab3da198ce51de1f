"""Compiled loops read what structs read, number by number and fault by fault, and are used when they should be."""

from __future__ import annotations

import importlib
import importlib.util
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphs.errors import CreditError, NothingReadError
from graphs.formats import native
from graphs.formats.native import batches as native_batches
from graphs.formats.native.compiled import threads as compiled
from graphs.formats.native.compiled.compiling import loop
from graphs.formats.native.compiled.numbers import number
from graphs.formats.native.wire import COUNTS, EVENT_FIELDS
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.assembling import assemble
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.part import Part
from graphs.traces.tokens import TOKEN_COLUMNS, Tokens

# Readers use the loops once they are loaded. Loaded by the collection, they would be compiled in every process of the
# suite, for 15 seconds; only the tests that need them load them.
COMPILED = "graphs.formats.native.compiled"
KERNELS = f"{COMPILED}.kernels"

EVENT = {"id": "e0", "type": "message", "agent": "a"}


def trace(name: str = "t", *events: dict[str, Any], **more: Any) -> dict[str, Any]:
    rows = [EVENT | {"id": f"e{i}"} | event for i, event in enumerate(events or ({}, {}))]
    return {"trace_id": name, "task_id": "q", "events": rows, **more}


def found(content: bytes, folder: Path, by_loops: bool, limits: Limits = DEFAULT) -> dict[str, Any]:
    """All that is read, and all that is refused, as values that can be compared."""
    path = folder / "log.jsonl"
    path.write_bytes(content)
    try:
        traces = assemble(native.read([Source("log", path, limits)], by_loops), limits=limits)
    except NothingReadError as error:
        return {"problems": error.problems}
    return (
        {name: np.asarray(array).tobytes() for name, array in vars(traces.graph).items()}
        | {name: e.array.tobytes() for name, e in traces.evidence.items()}
        | {f"table {name}": getattr(traces, name) for name in ("events", "agents", "traces")}
        | {"reward": traces.reward.tobytes(), "problems": traces.problems}
        | {name: array.tobytes() for name, array in vars(traces.tokens or Tokens(*[np.zeros(0)] * 4)).items()}
    )


def double(text: str) -> tuple[int, bytes, bool]:
    at, value, whole = number(np.frombuffer(text.encode(), np.uint8), 0, len(text.encode()))
    return at, struct.pack("d", value), whole


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.tuples(st.integers(2**52, 2**53), st.integers(-25, 25)).map(lambda pair: f"{2 * pair[0] + 1}e{pair[1]}"),
)


@pytest.mark.parametrize("examples", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_number_is_what_python_reads_or_refused(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(NUMBERS)
    @example("-0.0")
    @example("9007199254740993")  # half way between two doubles
    @example("0.000000000000000000000000012345678901234567")
    @example("1.7976931348623157e308")
    @example("2.2250738585072011e-308")
    def read_or_refused(text: str) -> None:
        at, value, whole = double(text)
        if at >= 0:
            assert (at, value, whole) == (len(text), struct.pack("d", float(text)), text.lstrip("-").isdigit())

    read_or_refused()


def test_few_numbers_are_refused() -> None:
    rng = np.random.default_rng(0)
    texts = [repr(x) for x in (rng.normal(size=5000) * 10.0 ** rng.integers(-20, 20, 5000)).tolist()]
    assert all(double(text)[0] == len(text) for text in texts)


@pytest.mark.parametrize("text", ["", "-", "+1", ".5", "1.", "1e", "1e+", "-a", "NaN", "00", "-0", "1e999", "1e-999"])
def test_what_is_no_number_or_no_normal_one_is_refused(text: str) -> None:
    at, _, _ = double(text)
    assert at == -1 or at < len(text)


VALUES: tuple[Any, ...] = (None, True, 0, 3.0, -1, 0.5, 1e30, 1e39, "", "x", "ü\u2028", 'q"', [], {}, ["x"], {"x": 1})
KEYS = (*EVENT_FIELDS, "note", "")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.slow
def test_every_key_holds_what_it_holds_otherwise(key: str, tmp_path: Path) -> None:
    """Each value alone at the first, the second or both events, between neighbours that are read in any case."""
    rows = []
    for i, value in enumerate(VALUES):
        rows += [trace(f"{i}-first", {key: value}, {}), trace(f"{i}-both", {key: value}, {key: value}), trace(f"{i}")]
    content = b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in rows)
    assert found(content, tmp_path, True) == found(content, tmp_path, False)


FIRST = json.dumps(EVENT | {"id": "a", "value": 0.25, "turn": 1})
SECOND = json.dumps(EVENT | {"id": "b", "turn": "x", "content_ref": "é"}, ensure_ascii=False)
TEXTS = (
    f'{{"trace_id": "t", "task_id": "q", "events": [{FIRST}], "edges": []}}',
    f'{{"edges": [{{"src": "a", "dst": "b", "type": "causal"}}], "trace_id": "t", "events": [{FIRST}, {SECOND}], '
    '"task_id": "q"}',
    ' {\t"trace_id" :"t","task_id":"q", "rewards": {"team": 1.5, "x]": -1}, "note": "\\"events\\": [}",'
    f'"events":[ {FIRST}\n]}}',
)
SCRAPS = st.sampled_from([*'{}[]",:\\-0e. \n\t', "null", "true", "events", "edges", "\x00", "ÿ", '"id"', '"a"', "1.5"])


@pytest.mark.parametrize("examples", [150, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_damage_is_read_or_named_in_the_same_way(tmp_path: Path, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.sampled_from(TEXTS), st.data())
    def in_the_same_way(text: str, data: Any) -> None:
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(text)))
            text = text[:at] + data.draw(SCRAPS | st.just("")) + text[at + data.draw(st.integers(0, 3)) :]
        content = text.encode()
        assert found(content, tmp_path, True) == found(content, tmp_path, False)

    in_the_same_way()


@pytest.mark.parametrize(
    "content",
    [
        b'{"trace_id": "t", "task_id": "q", "events": [], "events": [{"id": "e", "type": "stop", "agent": "a"}]}',
        b'{"trace_id": "t", "task_id": "q", "events": [{"id": "e", "id": "f", "type": "stop", "agent": "a"}]}',
        b'{"trace_id": "t", "task_id": "q", "ev\\u0065nts": [{"id": "e", "type": "stop", "agent": "a"}]}',
        b'{"trace_id": "t", "task_id": "q", "events": [{"id": "\\u0065", "type": "stop", "agent": "a"}]}',
        b'{"trace_id": "t", "task_id": "q", "events": [{"id": "e", "type": "stop", "agent": "a"}], "edges": null}',
        b'{"trace_id": "t", "task_id": "q", "events": [{"id": "\xff", "type": "stop", "agent": "a"}]}',
        b'{"trace_id": "t", "task_id": "q", "events": [{"id": "e", "type": "stop", "agent": "a"}]} and more',
        b'{"trace_id": "t", "task_id": "q", "note": [}, "events": [{"id": "e", "type": "stop", "agent": "a"}]}',
        b'{"trace_id": "t", "task_id": "q", "edges": [{"src": "e", "dst": "e", "type": "causal", "src": "e"}], '
        b'"events": [{"id": "e", "type": "stop", "agent": "a"}]}',
    ],
)
@pytest.mark.slow
def test_what_the_loops_leave_to_the_decoder(content: bytes, tmp_path: Path) -> None:
    assert found(content, tmp_path, True) == found(content, tmp_path, False)


@pytest.mark.slow
def test_tokens_are_read_beside_traces_without_any(tmp_path: Path) -> None:
    lists = ([1, 2], [True, False], [-0.5]), ([3], None, [-1.0]), ([], [], []), ([4], [True, True], None), (["x"],)
    rows = [trace("plain")]
    for i, values in enumerate(lists):
        rows += [trace(f"{i}", {}, dict(zip(TOKEN_COLUMNS, values, strict=False))), trace(f"plain {i}")]
    content = b"\n".join(json.dumps(row).encode() for row in rows)
    by_loops = found(content, tmp_path, True)
    assert by_loops == found(content, tmp_path, False)
    assert [(p.kind, p.line) for p in by_loops["problems"]] == [("bad-tokens", 8), ("foreign-key", 10)]
    assert np.frombuffer(by_loops["ids"], np.int32).tolist() == [1, 2, 3]


@pytest.mark.slow
def test_limits_hold_by_loops(tmp_path: Path) -> None:
    rows = [trace("deep", note=[[[[1]]]]), trace("long", {"content_ref": "x" * 500}), trace("many", *[{}] * 9)]
    rows += [trace("joined", {}, {}, edges=[{"src": "e0", "dst": "e1", "type": "causal"}] * 9), trace("good")]
    content = b"\n".join(json.dumps(row).encode() for row in rows)
    for limits in (Limits(depth=4), Limits(string_bytes=400), Limits(events=5), Limits(edges=5), Limits(depth=2)):
        by_structs = found(content, tmp_path, False, limits)
        assert by_structs["problems"]
        assert found(content, tmp_path, True, limits) == by_structs


@pytest.mark.slow
def test_ids_that_share_a_slot_are_told_apart_and_too_many_of_them_are_refused() -> None:
    events = [{"id": f"e{i}", "type": "message", "agent": "a"} for i in range(3000)]
    edges = [{"src": f"e{i}", "dst": f"e{i + 1}", "type": "causal"} for i in range(2999)]
    scan_traces = importlib.import_module(f"{COMPILED}.scan").scan_traces
    scanned = scan_traces([json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": edges}).encode()])
    assert scanned is not None
    np.testing.assert_array_equal(scanned.edges.senders, np.arange(2999))
    np.testing.assert_array_equal(scanned.edges.receivers, np.arange(1, 3000))


@pytest.mark.slow
def test_plain_logs_need_no_structs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kind of key is taken by the loops; without this, a loop that refused everything would pass."""

    def never(*_: object) -> None:
        raise AssertionError("structs were decoded")

    values = {name: 3 if name in (*COUNTS, "t", "turn") else 0.123456789012345678 for name in EVENT_FIELDS}
    values |= dict.fromkeys(("role", "from", "to", "tool", "content_ref", "agent_name", "status"), "ü")
    values |= dict.fromkeys(("context", "sibling_parent", "node", "completion", "anchor", "block"), "é")
    values |= {"type": "message", "agent": "ä"}
    del values["id"]
    values |= dict.fromkeys(TOKEN_COLUMNS)  # a list is left to the structs
    values |= {"trusted": True, "action": False, "note": "unknown", "more": -1.5e3, "nothing": None}
    rows = [trace(f"t{i}", values, values) for i in range(3)]
    content = b"\n".join(json.dumps(row, ensure_ascii=False).encode() for row in rows)
    expected = found(content, tmp_path, False)
    monkeypatch.setattr(native_batches, "events_of", never)
    assert found(content, tmp_path, True) == expected
    slots = importlib.import_module(f"{COMPILED}.scan_tables").SLOTS
    assert len(EVENT_FIELDS) <= 64 < slots  # bits of a mask, and half the slots of a table


def logs(folder: Path, files: int = 7) -> Path:
    for i in range(files):
        rows = [trace(f"t{i}-{j}", {"value": i + j / 8}, {}) for j in range(i + 1)]
        broken = [b"{broken"] * (i % 3 == 1)
        (folder / f"{i}.jsonl").write_bytes(b"\n".join([*(json.dumps(row).encode() for row in rows), *broken]))
    return folder


@pytest.mark.parametrize("threads", [1, 2, 3, 20])
@pytest.mark.slow
def test_the_number_of_threads_changes_nothing(threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = logs(tmp_path)
    monkeypatch.setattr(compiled, "threads_for", lambda sources: threads)
    alone, together = (read(folder, compiled=by_loops) for by_loops in (False, True))
    assert together.events.equals(alone.events) and together.traces.equals(alone.traces)
    assert together.problems == alone.problems and len(together.problems) == 2
    np.testing.assert_array_equal(together.evidence["value"].array, alone.evidence["value"].array)


@pytest.mark.slow
def test_reading_by_threads_may_be_left_early(tmp_path: Path) -> None:
    sources = [Source(str(path), path) for path in sorted(logs(tmp_path).iterdir())]
    reading = compiled.read_threads(sources, 2)
    assert isinstance(next(reading), Part)
    reading.close()  # type: ignore[attr-defined]


def test_the_loops_are_used_where_asked_where_loaded_and_where_the_logs_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [Source(str(path), path) for path in sorted(logs(tmp_path).iterdir())]
    importlib.import_module(KERNELS)
    assert compiled.compiles(sources, None)
    assert not compiled.compiles(sources, False)
    monkeypatch.delitem(sys.modules, KERNELS)
    assert not compiled.compiles(sources, None)
    assert compiled.compiles(sources, True)
    monkeypatch.setattr(compiled, "COMPILING_PAYS", 100)
    assert compiled.compiles(sources, None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not compiled.compiles(sources, None)
    with pytest.raises(CreditError, match=r"orchestration-credit\[fast\]"):
        compiled.compiles(sources, True)
    with pytest.raises(CreditError, match="compiled is 1"):
        compiled.compiles(sources, 1)  # type: ignore[arg-type]


def test_the_loops_need_no_folder_that_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba keeps what it compiled beside the module or in the user's cache, and refuses to where it can do neither."""
    njit = numba.njit

    def refuse(*functions: Any, **options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")  # as `numba.core.caching` does
        return njit(*functions, **options)

    monkeypatch.setattr(numba, "njit", refuse)
    assert loop(lambda x: x + 1)(2) == 3
