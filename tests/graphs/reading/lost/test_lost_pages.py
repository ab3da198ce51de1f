"""A page that is cut may have been of traces that other pages have parts of, whatever is left of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .test_lost_parts import found, observation, run, sdk_span

Item = dict[str, Any]
LOST = [("bad-json", ""), ("lost-row", "A"), ("lost-row", "B")]
WRAPS: dict[str, Callable[[list[Item]], Any]] = {
    "langsmith": lambda items: {"runs": items},
    "openai-agents": lambda items: {"data": items},
    "openai traces": lambda items: {"traces": items},
    "langfuse": lambda items: {"data": items, "meta": {}},
    "list": lambda items: items,
}
FORMATS = {"list": "langsmith", "openai traces": "openai-agents"}
MAKES: dict[str, Callable[..., Item]] = {
    "openai-agents": sdk_span,
    "openai traces": sdk_span,
    "langfuse": observation,
    "langsmith": run,
    "list": run,
}


def part(name: str, trace: str, number: int) -> Item:
    """A part of a trace, its ids last and the trace's behind them; the first part is above the others."""
    made = MAKES[name](f"{trace}{number}", trace, f"{trace}1" if number > 1 else None)
    ids = ("id", "trace_id", "traceId", "parent_id", "parent_run_id", "parentObservationId")
    return {key: made[key] for key in sorted(made, key=lambda key: (key in ids, key))}


def paged(folder: Path, name: str, pages: dict[str, list[str]], cut: str = "") -> tuple[list[str], Any]:
    """What is found of pages with these parts, the last cut before a text, and of a page of another trace."""
    texts = []
    for file, parts in {"other": ["C1", "C2"], **pages}.items():
        texts.append(json.dumps(WRAPS[name]([part(name, one[0], int(one[1])) for one in parts])))
        (folder / f"{file}.json").write_text(texts[-1])
    text = texts[-1][: texts[-1].index(cut)] if cut else texts[-1]
    traces, problems = found(folder, [text], f"{file}.json", format=FORMATS.get(name, name))
    return sorted(traces), problems


def trace_key(name: str, trace: str) -> str:
    """How a page states a trace."""
    return f'"{"traceId" if name == "langfuse" else "trace_id"}": "{trace}"'


@pytest.mark.parametrize("name", WRAPS)
def test_a_cut_page_refuses_traces_that_it_no_longer_states(tmp_path: Path, name: str) -> None:
    """The other trace was read without what the rest of the page had of it; one that shares no page is read."""
    pages = {"first": ["A1", "B1", "A2", "B2"], "second": ["A3", "B3"]}
    assert paged(tmp_path, name, pages) == (["A", "B", "C"], [])
    for cut in ('"id": "B3"', trace_key(name, "B")):
        assert paged(tmp_path, name, pages, cut) == (["C"], LOST)


@pytest.mark.parametrize("name", WRAPS)
def test_a_page_cut_before_any_trace_refuses_those_of_pages_that_share_traces(tmp_path: Path, name: str) -> None:
    """All were read; B is on one page at hand, and may have been on the lost one as A was on two."""
    pages = {"first": ["A1", "B1", "B2"], "middle": ["A2"], "second": ["A3", "B3"]}
    assert paged(tmp_path, name, pages) == (["A", "B", "C"], [])
    assert paged(tmp_path, name, pages, '"id": "A3"') == (["C"], LOST)


@pytest.mark.parametrize("name", WRAPS)
def test_a_page_cut_before_any_trace_refuses_none_where_each_is_on_one_page(tmp_path: Path, name: str) -> None:
    pages = {"first": ["A1", "A2", "B1", "B2"], "second": ["D1", "D2"]}
    assert paged(tmp_path, name, pages, '"id": "D1"') == (["A", "B", "C"], LOST[:1])


@pytest.mark.parametrize("name", WRAPS)
def test_a_page_cut_behind_the_id_of_a_parent_is_of_its_trace(tmp_path: Path, name: str) -> None:
    """No trace at hand is on two pages, but the page states a span of one."""
    pages = {"first": ["A1", "B1", "A2", "B2"], "second": ["A3", "B3"]}
    assert paged(tmp_path, name, pages, trace_key(name, "A")) == (["C"], LOST)
