"""A lead who wants to see failures, cost and runs over time had to make a table of all traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.metrics.runs_by_day import runs_by_day
from credit.page.findings import Findings
from credit.page.overview import overview

RUNS = [("2026-03-01T23:50:00Z", 1.0), ("2026-03-02T00:10:00Z", 0.0), ("2026-03-02T12:00:00+02:00", None),
        ("2026-03-05T06:30:00Z", 0.0), ("", 1.0)]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    lines = []
    for i, (time, outcome) in enumerate(RUNS):
        event = {"id": "e", "type": "message", "agent": "a", "tokens": 10 * (i + 1)} | ({"t": time} if time else {})
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i}", "events": [event], "edges": [],
                      "rewards": {} if outcome is None else {"team": outcome}})  # fmt: skip
    (path := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_runs_of_a_day_have_their_failures_and_cost(log: Path) -> None:
    found = runs_by_day(credit.read(log))
    assert [(one.begin, one.traces, one.failed, one.known, one.cost) for one in found.periods] == [
        ("2026-03-01", 1, 0, 1, 10), ("2026-03-02", 2, 1, 1, 50), ("2026-03-05", 1, 1, 1, 40)
    ]  # fmt: skip
    assert (found.unit, found.undated, found.paid_in) == ("day", 1, "tokens generated")
    said = CliRunner().invoke(cli, ["metrics", str(log), "--of", "days"], catch_exceptions=False).stdout
    rows = [line.split() for line in said.splitlines()]
    assert ["2026-03-02", "2", "1", "of", "1", "50"] in rows and ["1", "run", "without", "a", "date"] in rows
    told = json.loads(CliRunner().invoke(cli, ["metrics", str(log), "--of", "days", "--json"]).stdout)
    assert [one["failed"] for one in told["periods"]] == [0, 1, 1]
    assert overview(Findings.of(credit.read(log), {}))["days"]["periods"][1]["begin"] == "2026-03-02"


def test_a_log_of_two_days_has_hours(log: Path) -> None:
    log.write_text("".join(line + "\n" for line in log.read_text().splitlines()[:3]))
    found = runs_by_day(credit.read(log))
    assert found.unit == "hour"
    assert [one.begin for one in found.periods] == ["2026-03-01 23:00", "2026-03-02 00:00", "2026-03-02 10:00"]


def test_options_of_other_tables_are_refused_and_a_log_without_dates_says_so(log: Path) -> None:
    assert (
        "--by is for --of traces"
        in CliRunner().invoke(cli, ["metrics", str(log), "--of", "days", "--by", "model"]).output
    )
    log.write_text(log.read_text().splitlines()[-1] + "\n")
    assert "No trace has a date." in CliRunner().invoke(cli, ["metrics", str(log), "--of", "days"]).stdout
