"""What is cut of an object with parts of several traces may be of any trace that is not all in one place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .test_lost_parts import dumped, exported, found, observation, scored

A, B, C = (letter * 32 for letter in "abc")
LOST = [("bad-json", ""), ("lost-row", A), ("lost-row", B)]


def request(*spans: dict[str, Any]) -> dict[str, Any]:
    """A request of OTLP with the spans of some requests."""
    scopes = [scope for one in spans for scope in one["resourceSpans"][0]["scopeSpans"]]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span for scope in scopes for span in scope["spans"]]}]}]}


def page(*items: dict[str, Any]) -> dict[str, Any]:
    return {"data": list(items), "meta": {}, "projectId": "p", "next_cursor": None}


def cut(value: dict[str, Any], lost: str) -> str:
    """What stands before the id of a trace, and states no other but those before it."""
    text = json.dumps(value)
    return text[: text.index(lost) - len('"traceId": "')]


def test_a_cut_request_of_several_traces_refuses_those_that_it_no_longer_states(tmp_path: Path) -> None:
    """The other trace was read without its second call."""
    (tmp_path / "other.jsonl").write_text("\n".join(json.dumps(exported(i, "c")) for i in (8, 9)))
    both = request(exported(1, "a"), exported(2, "b"))
    last = request(exported(3, "a"), exported(4, "b"))
    assert found(tmp_path, [both, last]) == ([A, B, C], [])
    within = json.dumps(last)[: json.dumps(last).index(A) + 50]  # in the first span: other requests have two traces
    for lost in (cut(last, B), within):
        assert found(tmp_path, [both, lost]) == ([C], LOST)
    single = [exported(1, "a"), exported(2, "b")]
    assert found(tmp_path, [*single, cut(last, B)]) == ([C], LOST)  # two spans began
    assert found(tmp_path, [*single, within]) == ([B, C], LOST[:2])


def test_a_cut_request_of_evaluations_refuses_the_traces_of_its_lost_rest(tmp_path: Path) -> None:
    """A reward was lost, and the trace was read with the others."""
    first, second = (scored(letter)["resourceLogs"][0]["scopeLogs"][0]["logRecords"] for letter in "ab")
    both = {"resourceLogs": [{"scopeLogs": [{"logRecords": [*first, *second]}]}]}
    log = [exported(1, "a"), exported(2, "b")]
    assert found(tmp_path, [*log, both]) == ([A, B], [])
    assert found(tmp_path, [*log, cut(both, B)]) == ([], LOST)


def test_a_cut_request_beside_traces_of_a_request_each_refuses_none_of_them(tmp_path: Path) -> None:
    whole = [request(exported(1, "a"), exported(2, "a")), request(exported(3, "b"), exported(4, "b"))]
    lost = request(exported(5, "c"), exported(6, "c"))
    assert found(tmp_path, [*whole, json.dumps(lost)[:-30]]) == ([A, B], [("bad-json", "")])


PAGES = {
    "langfuse": [
        {"projectId": "p"} | observation(f"{t}{i}", t * 32, f"{t}1" if i > 1 else None) for i in (1, 2, 3) for t in "ab"
    ],
    "phoenix": [dumped(i, t) for i, t in enumerate("ababab", start=1)],
}


@pytest.mark.parametrize("name", PAGES)
def test_a_cut_page_refuses_the_traces_of_the_pages_with_a_trace_of_it(tmp_path: Path, name: str) -> None:
    """The other trace was read without what the rest of the page had of it."""
    items = PAGES[name]
    more = [{key: value.replace("a", "c") if key in ("id", "traceId", "trace_id", "parentObservationId") and value
             else value for key, value in one.items()} for one in items[::2]]  # fmt: skip
    if name == "phoenix":
        more = [one | {"span_id": f"{i:016x}"} for i, one in enumerate(more, start=20)]
    (tmp_path / "other.json").write_text(json.dumps(page(*more)))
    (tmp_path / "first.json").write_text(json.dumps(page(*items[:4])))
    last = page(*items[4:])
    assert found(tmp_path, [last], "second.json") == ([A, B, C], [])
    assert found(tmp_path, [cut(last, B)], "second.json") == ([C], LOST)
    (tmp_path / "first.json").unlink()
    (tmp_path / "second.json").unlink()
    lines = [*items[:4], json.dumps(items[4])[:-2]]
    assert found(tmp_path, lines) == ([B, C], LOST[:2])
