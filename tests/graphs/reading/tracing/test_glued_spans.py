"""A line of spans that was cut and another that was appended to it: no trace of either is read without its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..lost.test_lost_parts import LOGS, dumped, exported, found, scored


@pytest.mark.parametrize("make", [dumped, exported])
def test_a_line_of_spans_that_is_glued_to_one_that_was_cut(
    make: Callable[[int, str], dict[str, Any]], tmp_path: Path
) -> None:
    """The second states its trace: that of the first, cut before its own, was read without it."""
    whole = [make(1, "a"), make(2, "a"), make(3, "b"), make(4, "b"), make(5, "c"), make(6, "c")]
    cut = json.dumps(make(7, "a"))
    every = ["a" * 32, "b" * 32, "c" * 32]
    for behind in (make(8, "b"), scored("b")) if make is exported else (make(8, "b"),):
        for end in (1, 2, 8, cut.index("aaaa") - 4, cut.index("aaaa") + 5, cut.index("aaaa") + 32, len(cut) - 1):
            named = every[:2] if end > cut.index("aaaa") else every
            lost = [("bad-json", ""), *(("lost-row", trace) for trace in named)]
            left = [trace for trace in every if trace not in named]
            assert found(tmp_path, [*whole, cut[:end] + json.dumps(behind)]) == (left, lost), (end, behind)


def test_objects_within_a_span_that_cannot_be_read_are_no_lines(tmp_path: Path) -> None:
    """Only its own trace is refused, although its events begin as spans do, before the span states its trace."""
    whole = [dumped(1, "a"), dumped(2, "a"), dumped(3, "b"), dumped(4, "b")]
    faulty = json.dumps({"name": "chat", "events": [{"name": "x"}, {"name": "y"}], "trace_id": "a" * 32})[:-1] + ",}"
    assert found(tmp_path, [*whole, faulty]) == (["b" * 32], [("bad-json", ""), ("lost-row", "a" * 32)])


@pytest.mark.parametrize("name", ["langsmith", "langfuse", "openai"])
def test_a_part_of_a_trace_that_is_glued_to_one_that_was_cut(name: str, tmp_path: Path) -> None:
    """Cut within its first key, or at the id of its trace, the first line was of no trace."""
    of_each = [[one for one in LOGS[name] if f'"{trace}"' in json.dumps(one)] for trace in "AB"]
    cut, behind = (json.dumps(parts[-1]) for parts in of_each)
    for end in range(1, len(cut)):
        traces, problems = found(tmp_path, [*LOGS[name], cut[:end] + behind])
        assert "A" not in traces and ("lost-row", "A") in problems, cut[:end]
