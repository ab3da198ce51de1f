"""A loop is the same in every format that states tool calls, with their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from credit.reports.tool_calls import ToolCalls
from graphs.logs import FORMATS, read

from .planted_calls import ALONE, AT_ONCE, BY_TURNS, LS, WRITERS


def loops(folder: Path, text: str, name: str) -> list[tuple[tuple[str, ...], int]]:
    log = folder / ("log.jsonl" if "\n" in text else "log.json")
    log.write_text(text)
    traces = read(log)
    (own,) = set(traces.traces["format"].to_pylist())
    assert traces.problems == () and own in name
    return [(loop.tools, loop.times) for loop in ToolCalls(traces).loops]


def test_every_format_is_asked() -> None:
    """Harbor's are those of ATIF; tables and Who&When state no arguments."""
    assert {*WRITERS, *ALONE} >= FORMATS.keys() - {"harbor", "table", "who-and-when"}


@pytest.mark.parametrize("name", [*WRITERS, *ALONE])
def test_three_rounds_are_three_in_every_format(tmp_path: Path, name: str) -> None:
    """Where calls are the actions, the first two were one step: no loop was said to be there."""
    write = (WRITERS | ALONE)[name]
    assert loops(tmp_path, write(LS), name) == [(("ls",), 3)]
    assert loops(tmp_path, write([["pwd"], *BY_TURNS]), name) == [(("ls", "cat"), 3)]
    assert loops(tmp_path, write(LS[1:]), name) == []


@pytest.mark.parametrize("name", WRITERS)
def test_calls_that_a_message_asks_for_at_once_are_one_step(tmp_path: Path, name: str) -> None:
    assert loops(tmp_path, WRITERS[name](AT_ONCE), name) == []
    assert loops(tmp_path, WRITERS[name]([["ls", "cat"]] * 3), name) == [(("ls", "cat"), 3)]
