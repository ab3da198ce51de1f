"""A span below one of another trace tears the two: its own has an orphan, and the other was read without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.formats.common.foreign_parents import foreign_parents
from graphs.formats.common.span_tree import Kind, Span
from graphs.formats.span_columns.foreign_rows import foreign_rows
from graphs.logs import read
from graphs.reading.documents import Place

from .test_lost_parts import dumped, exported, found, observation, run, sdk_span

Item = dict[str, Any]


def request(own: str, trace: str, parent: str | None = None) -> Item:
    made = exported(int(own, 16), trace)
    if parent:
        made["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["parentSpanId"] = f"{int(parent, 16):016x}"
    return made


def dump(own: str, trace: str, parent: str | None = None, **more: Any) -> Item:
    return dumped(int(own, 16), trace, parent_id=f"{int(parent, 16):016x}" if parent else None, **more)


def linked(own: str, trace: str, parent: str | None = None) -> Item:
    """A span that the columns do not hold."""
    made = dump(own, trace, parent)
    return made | {"attributes": made["attributes"] | {"orchestration_credit.group": f"group {trace}"}}


MAKES: dict[str, Callable[..., Item]] = {
    "otlp": request, "dump": dump, "marked dump": linked, "langsmith": run, "langfuse": observation, "openai": sdk_span,
}  # fmt: skip


def outcome(folder: Path, name: str, *spans: tuple[str, str, str | None]) -> tuple[list[str], list[tuple[str, str]]]:
    """The letters of the traces, and the kinds and letters of the problems."""
    traces, problems = found(folder, [MAKES[name](*span) for span in spans])
    return [trace[0] for trace in traces], sorted((kind, trace[:1]) for kind, trace in problems)


WHOLE = [("a1", "a", None), ("a2", "a", "a1"), ("c1", "c", None), ("c2", "c", "c1")]
TORN = [("lost-row", "a"), ("missing-parent", "b")]


@pytest.mark.parametrize("name", MAKES)
def test_both_traces_are_refused(tmp_path: Path, name: str) -> None:
    """The first was read without the span, and the second as a trace below a caller outside the log."""
    assert outcome(tmp_path, name, *WHOLE) == (["a", "c"], [])
    assert outcome(tmp_path, name, *WHOLE, ("b1", "b", "a1")) == (["c"], TORN)
    assert outcome(tmp_path, name, ("b1", "b", "a1"), *WHOLE) == (["c"], TORN)
    assert outcome(tmp_path, name, *WHOLE, ("b1", "b", None), ("b2", "b", "b1"), ("b3", "b", "a2")) == (["c"], TORN)


@pytest.mark.parametrize("name", MAKES)
def test_a_caller_outside_the_log_is_legal(tmp_path: Path, name: str) -> None:
    spans = [*WHOLE, ("b1", "b", "f1"), ("b2", "b", "b1")]
    assert outcome(tmp_path, name, *spans) == (["a", "c", "b"], [])


@pytest.mark.parametrize("name", MAKES)
def test_an_id_that_several_traces_have_tells_nothing(tmp_path: Path, name: str) -> None:
    """Spans that are counted from 1 in each trace, and a caller outside the log with such an id."""
    spans = [("1", "a", None), ("2", "a", "1"), ("1", "c", None), ("2", "c", "1"), ("3", "b", "1")]
    assert outcome(tmp_path, name, *spans) == (["a", "c", "b"], [])


def test_a_span_that_columns_hold_is_below_one_that_they_do_not_hold(tmp_path: Path) -> None:
    for first, second in ((dump, linked), (linked, dump)):
        lines = [first("a1", "a"), first("a2", "a", "a1"), dump("c1", "c"), linked("c2", "c", "c1")]
        assert found(tmp_path, lines) == (["a" * 32, "c" * 32], [])
        traces, problems = found(tmp_path, [*lines, second("b1", "b", "a2")])
        assert traces == ["c" * 32] and sorted(problems) == [("lost-row", "a" * 32), ("missing-parent", "b" * 32)]


def test_a_row_of_phoenix_below_one_of_another_trace_is_named_by_its_place(tmp_path: Path) -> None:
    ids = [f"{i:016x}" for i in range(1, 5)]
    columns: Item = {
        "context.trace_id": ["a" * 32, "a" * 32, "b" * 32, "c" * 32], "context.span_id": ids,
        "parent_id": [None, ids[0], ids[0], None], "name": ["chat"] * 4, "span_kind": ["LLM"] * 4,
        "start_time": [1, 2, 3, 4],
    }  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "spans.parquet")
    traces = read(tmp_path / "spans.parquet")
    assert traces.traces["trace"].to_pylist() == ["c" * 32]
    assert [(p.kind, p.line, p.field, p.value, p.trace[0]) for p in traces.problems] == [
        ("lost-row", 3, "parentSpanId", repr(ids[0]), "a"),
        ("missing-parent", 3, "parentSpanId", repr(ids[0]), "b"),
    ]


def test_columns_and_objects_find_the_same() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(500):
        n = int(random.integers(0, 12))
        trace, own, parent = random.integers(0, 4, n), random.integers(1, 9, n), random.integers(0, 10, n)
        rows = list(zip(trace.tolist(), own.tolist(), parent.tolist(), strict=True))
        holders = [{t for t, i, _ in rows if i == above} for _, _, above in rows]
        expected = [
            (row, next(iter(held)))
            for row, ((of, _, above), held) in enumerate(zip(rows, holders, strict=True))
            if above and len(held) == 1 and of not in held
        ]
        assert list(foreign_rows(trace, own.astype(np.uint64), parent.astype(np.uint64))) == expected
        spans: dict[str, list[Span]] = {}
        for of, one, above in rows:
            spans.setdefault(str(of), []).append(Span(str(one), str(above or ""), Kind.CALL, Place("f", 1, 0)))
        refused = {str(name) for row, other in expected for name in (rows[row][0], other)}
        assert set(foreign_parents(spans, "parent")) == refused
        hits += len(expected)
    assert hits > 100
