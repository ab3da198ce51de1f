"""A tool that answers with nothing, and no error: no line said so where most runs with it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.leading_cause import told_causes
from credit.reports.leading_causes import leading_causes
from credit.reports.outcome_differences import EMPTY, outcome_differences
from credit.reports.tool_calls import ToolCalls
from credit.reports.triage import triage
from credit.sides.chosen_sides import Sides
from credit.sides.compare_sides import compare_sides
from graphs.traces.batch import Traces

HIT = '[{"case": 7}]'


def read(folder: Path, result: Callable[[int, int], Any], outcome: Callable[[int, int], int], runs: int = 4) -> Traces:
    """Traces of 12 tasks in which a searcher searches once and then writes a file, which returns nothing."""
    lines = []
    for task in range(12):
        for run in range(runs):
            found, called = result(task, run), {"agent": "searcher", "type": "tool_call"}
            status = {"status": "error"} if found == "down" else {}
            came = {"agent": "searcher", "type": "tool_result", "tool": "search", **status}
            events = [{"id": "p", "type": "message", "agent": "lead"},
                      called | {"id": "c", "tool": "search", "action": True, "arguments": {"q": f"{task}"}},
                      came | ({} if found is None else {"id": "r", "output": found}),
                      called | {"id": "d", "tool": "write", "action": True, "arguments": {"path": "x"}},
                      came | {"id": "s", "tool": "write", "output": "", "status": "ok"}]  # fmt: skip
            events[2]["id"] = "r"
            edges = [{"src": a, "dst": b, "type": "return"} for a, b in ("cr", "ds")]
            lines.append({"trace_id": f"{task}.{run}", "task_id": f"q{task}", "events": events, "edges": edges,
                          "rewards": {"team": outcome(task, run)}})  # fmt: skip
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return credit.read(folder / "log.jsonl")


def test_empty_results_of_failed_runs_are_what_went_wrong_most(tmp_path: Path) -> None:
    traces = read(tmp_path, lambda _, run: "[]" if run < 2 else HIT, lambda task, run: int(run >= 2 or task == 3))
    (cause,) = leading_causes(traces)
    assert (cause.words, cause.tool, cause.agent) == ("empty results of search by searcher", "search", "searcher")
    assert (cause.failed, cause.of_failed, cause.succeeded, cause.beyond_chance) == (22, 22, 2, True)
    assert told_causes((cause,))[0].startswith(
        "Empty results of search by searcher (such as: []) in 22 of 22 failed traces and 2 of 26 succeeded ones "
        "(beyond chance), quoted"
    )
    assert [(row.tool, row.empty, row.lacks_empty) for row in triage(traces).tools] == [
        ("search", 24, False), ("write", 0, False)
    ]  # fmt: skip
    shown = CliRunner().invoke(cli, ["summary", str(tmp_path), "--by", "tool"]).stdout
    assert re.search(r"\ntool .* loops +empty results +seconds of work\nsearch .* 24 +– *\nwrite .* 0 +– *\n", shown)
    found = outcome_differences(traces)
    row = next(row for row in found.rows if row.what == EMPTY)
    assert row.stands_out and (row.failed, row.succeeded) == (1.0, 0.0)
    assert "The difference in empty results is mostly of tool search by searcher (1 against 0)." in " ".join(
        found.comparison()
    )
    assert "More in failed ones: empty results (1 against 0, mostly of tool search by searcher)" in found.headline()


def test_empty_results_that_tell_nothing_of_the_outcome_are_no_cause(tmp_path: Path) -> None:
    for seed in range(10):
        draw = np.random.default_rng(seed)
        nothing, good = draw.random((12, 6)) < 0.4, draw.random((12, 6)) < 0.5
        found = np.where(nothing, "", HIT).tolist()
        traces = read(tmp_path, lambda *at, of=found: of[at[0]][at[1]], lambda *at, of=good: int(of[at]), 6)
        assert not any(cause.beyond_chance for cause in leading_causes(traces))


@pytest.mark.parametrize(
    "text", ["", "  \n", "[]", "[ ]", "{}", "null", "None", '""', '{"results": []}', "{'hits': [ ]}", [], {}]
)
def test_what_holds_nothing_is_empty(tmp_path: Path, text: Any) -> None:
    calls = ToolCalls(read(tmp_path, lambda _, run: HIT if run else text, lambda _, run: run % 2))
    assert len(calls.empty.rows) == 12 and calls.empty.tells.all()


@pytest.mark.parametrize(
    "text", ["0", "no", "[0]", '{"results": [], "next": 3}', '{"results": [{}]}', '{"a": 1}', "down", "[" * 300]
)
def test_what_holds_something_or_failed_is_not(tmp_path: Path, text: str) -> None:
    calls = ToolCalls(read(tmp_path, lambda _, run: HIT if run else text, lambda _, run: run % 2))
    assert not len(calls.empty.rows)


def test_a_tool_that_never_returns_anything_says_nothing_by_it(tmp_path: Path) -> None:
    """`write` returns nothing in all of these, and here `search` does, too."""
    traces = read(tmp_path, lambda _task, _run: "[]", lambda _, run: run % 2)
    assert not len(ToolCalls(traces).empty.rows) and not leading_causes(traces)


def test_a_trace_whose_log_lacks_the_result_does_not_tell(tmp_path: Path) -> None:
    calls = ToolCalls(
        read(tmp_path, lambda task, run: None if task == 0 else "[]" if run else HIT, lambda _, run: run % 2)
    )
    assert calls.empty.tells.sum() == 44 and len(calls.empty.rows) == 33


def test_of_a_long_log_a_part_is_read_whatever_its_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("credit.reports.empty_results.MOST_READ", 48)
    traces = read(tmp_path, lambda _, run: "[]" if run % 2 else HIT, lambda _, run: run % 2)
    empty = ToolCalls(traces).empty
    run = np.array([int(re.sub(r".*\.", "", name)) for name in traces.traces["trace"].to_pylist()])
    assert 22 <= empty.tells.sum() <= 26 and np.bincount(run[empty.tells]).min() >= 4
    assert len(empty.rows) == (run[empty.tells] % 2).sum()


def test_a_side_on_which_a_tool_finds_nothing_more_often_is_told(tmp_path: Path) -> None:
    traces = read(tmp_path, lambda task, run: "[]" if (run > 1 and task) or run == task == 0 else HIT, lambda _, run: 1)
    side = np.array([int(name[-1] in "23") for name in traces.traces["trace"].to_pylist()])
    found = compare_sides(traces, Sides(("old", "new"), side, ("old", "new")), trace_metrics(traces))
    (one,) = found.empty
    assert (one.tool, one.failed, one.calls, one.share.stands_out) == ("search", (1, 22), (24, 24), True)
    assert "empty results per call of search" in found.changed()
    assert found.by_tool().startswith(
        "empty results per call, which have a test of their own: search 1 of 24 (4 %) to "
    )
