"""Numbers of traces are those of their own log, whatever other logs are read with it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import trace_metrics
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import trace_rows
from credit.sides.tool_failures import tool_failures
from graphs.logs import read
from tests.graphs.reading.all_formats import ALL

Event = dict[str, Any]
RUNS = ((True, False), (False, True), (True, True), (False, False))
"""Whether each call of a run fails."""


def results(event: Event, failed: bool) -> list[Event]:
    """A call, and a result that says how it went."""
    status = {"status": "error" if failed else "ok"}
    return [event, {**event, "id": f"{event['id']}r", "type": "tool_result", "t": event["t"] + 1} | status]


def table(event: Event, failed: bool) -> list[Event]:
    """A converted table: a call has its end, and a status where it failed."""
    return [event | {"seconds": 1.0} | ({"status": "error"} if failed else {})]


def statuses(event: Event, failed: bool) -> list[Event]:
    return [event | {"status": "error" if failed else "ok"}]


def silent(event: Event, failed: bool) -> list[Event]:
    return [event]


FORMS: dict[str, Callable[[Event, bool], list[Event]]] = {
    form.__name__: form for form in (results, table, statuses, silent)
}


def lines(name: str, form: Callable[[Event, bool], list[Event]]) -> list[dict[str, Any]]:
    """Runs of two calls, with a message before each; a log of results has a run that was killed in a call, too."""
    found = []
    for number, run in enumerate((*RUNS, *[(False,)] * (form is results))):
        events: list[Event] = []
        for i, failed in enumerate(run):
            of = {"agent": "a", "t": 10.0 * i}
            call = {"id": f"c{i}", "type": "tool_call", "tool": "db", "action": False, "arguments": f"{i}"}
            events += [{"id": f"m{i}", "type": "message", "tokens": 9} | of, *form(call | of, failed)]
        events = events[:-1] if len(run) == 1 else events
        own = {"trace_id": f"{name}-{number}", "task_id": f"q{number}", "system": name, "rewards": {"team": number % 2}}
        found.append({**own, "events": events, "edges": []})
    return found


def numbers(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Of each trace its metrics, the numbers of its row, and which calls failed, succeeded, and stayed open."""
    traces = read(path)
    measured, calls = with_costs(traces, trace_metrics(traces)), ToolCalls(traces)
    trace, found = np.asarray(traces.graph.trace_ids), {}
    places = zip(traces.traces["file"].to_pylist(), traces.traces["trace"].to_pylist(), strict=True)
    for i, (place, row) in enumerate(zip(places, trace_rows(traces), strict=True)):
        of = calls.rows[trace[calls.rows] == i]
        told = {"errors": int(calls.counted[trace[: len(calls.counted)] == i].sum()), "open": int(calls.open[of].sum())}
        told |= {"recovered": [run.works for run in calls.failures() if trace[run.rows[0]] == i]}
        of_row = {f"row {name}": row[name] for name in ("events", "actions", "errors", "tokens", "wall_clock")}
        found[place] = told | of_row | {name: float(metric.value[i]) for name, metric in measured.items()}
    return found


def same(union: Path, *alone: Path, besides: tuple[str, ...] = ()) -> None:
    both = numbers(union)
    for path in alone:
        for place, of_trace in numbers(path).items():
            for name, value in of_trace.items():
                if name not in besides and place in both:
                    np.testing.assert_equal(both[place][name], value, f"{name} of {place[1]}")


@pytest.mark.parametrize("names", [*itertools.combinations(FORMS, 2)])
def test_numbers_of_logs_of_two_forms_are_those_of_each(tmp_path: Path, names: tuple[str, str]) -> None:
    """Beside logs with results, calls of a converted table counted as failed or as cut short, never as a success."""
    for name in names:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines(name, FORMS[name])))
    # Where calls that went well have no status, runs without any had no errors.
    unknown = ("errors", "row errors", "unrecovered_errors") if set(names) == {"table", "silent"} else ()
    same(tmp_path, *(tmp_path / f"{name}.jsonl" for name in names), besides=unknown)
    traces = read(tmp_path)
    side = np.array([names.index(name) for name in traces.traces["system"].to_pylist()])
    told = [] if "silent" in names else tool_failures(traces, side, ToolCalls(traces), np.zeros(len(side), bool))
    assert all((one.failed, one.calls) == ((4, 4), (8, 8)) for one in told) and bool(told) != ("silent" in names)


@pytest.mark.slow
def test_numbers_of_logs_of_all_formats_are_those_of_each(tmp_path: Path) -> None:
    """But success, which is of outcomes that are all 0 or 1, and that others of a format tell a call to be open."""
    # The file of Harbor has no traces of its own; that of mini-swe-agent says of SWE-agent's format that it has errors.
    logs = [sample for name, sample in ALL.items() if name != "harbor" and not name.startswith("mini-swe-agent")]
    folders = [tmp_path / f"{number}" for number in range(len(logs))]
    for folder, sample in zip(folders, logs, strict=True):
        sample.write(folder)
    with pytest.warns():
        same(tmp_path, *folders, besides=("success", "outcome", "open", "useful_agents"))
