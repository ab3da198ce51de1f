"""Beginnings of ids are found as by trying each, in time that does not grow with the square of an id."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from linear_time import assert_linear

from graphs.errors import Problem
from graphs.reading.tables.beginnings import Beginnings

TEXT = st.text("ab", min_size=1, max_size=6)


def noted(texts: list[str]) -> Beginnings:
    begins = Beginnings()
    for text in texts:
        begins.note(text, Problem("bad-json", "x", 1, "content", text, "JSON"))
    return begins


@given(st.lists(TEXT), TEXT)
def test_an_id_is_found_if_a_beginning_of_it_was_noted(texts: list[str], name: str) -> None:
    problem = noted(texts).of(name)
    assert (problem is not None) == any(map(name.startswith, texts))
    assert problem is None or name.startswith(problem.value)


def test_long_ids_take_linear_time() -> None:
    """An id of 100,000 characters took seconds where a line was cut within one as long."""

    def prepare(size: int) -> Callable[[], object]:
        begins = noted(["b" * size, *("a" * 50 + str(i) for i in range(100))])
        return lambda: [begins.of("a" * size) for _ in range(10)]

    assert_linear(prepare, 1_000_000, runs=1)
