"""Cells with an id at an edge are found as by trying each, in time linear in ids and cells."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from linear_time import assert_linear

from graphs.errors import Problem
from graphs.reading.tables.edges import Edges

TEXT = st.text("ab", max_size=6)


def noted(texts: list[str]) -> Edges:
    edges = Edges()
    for text in texts:
        edges.note([text], Problem("bad-row", "x", 1, "row", text, "cells"))
    return edges


@given(st.lists(TEXT), TEXT)
def test_a_cell_is_found_if_it_begins_or_ends_with_an_id(texts: list[str], name: str) -> None:
    problem = noted(texts).of(name)
    assert (problem is not None) == (bool(name) and any(t.startswith(name) or t.endswith(name) for t in texts))
    assert problem is None or problem.value.startswith(name) or problem.value.endswith(name)


def test_many_cells_and_ids_take_linear_time() -> None:
    def prepare(size: int) -> Callable[[], object]:
        texts = [f"{i}run-{i}" for i in range(size)]
        return lambda: list(map(noted(texts).of, texts))

    assert_linear(prepare, 100_000, runs=1)
