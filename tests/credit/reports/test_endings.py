"""Runs that were cut short are named, in every format that states results of calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.endings import endings
from credit.reports.triage import triage
from graphs.logs import read
from tests.credit.page.test_page import embedded
from tests.graphs.reading.planted_calls import HUNG, STATED, Rounds


@pytest.mark.parametrize("name", STATED)
def test_a_session_that_ends_in_a_call_without_a_result_is_named(tmp_path: Path, name: str) -> None:
    went_on: Rounds = [["ls"], [HUNG], ["ls"]]
    for rounds in ([["ls"], [HUNG]], [["ls"], ["ls", HUNG]], [["ls"], ["ls"]], went_on):
        if rounds is went_on and name in ("codex", "rollouts"):  # calls side by side are of one message
            continue
        text = STATED[name](rounds)
        log = tmp_path / ("log.jsonl" if "\n" in text else "log.json")
        log.write_text(text)
        assert len(endings(read(log))) == (HUNG in rounds[-1]), rounds


def test_summary_and_report_name_runs_that_were_cut_short(tmp_path: Path) -> None:
    """Nothing said that a session had ended in a call whose result never came."""
    lines = []
    for number in range(3):
        line = json.loads(STATED["native"]([["ls"], [HUNG] if number else ["ls"]]))
        lines.append(json.dumps(line | {"trace_id": f"t{number}"}) + "\n")
    (tmp_path / "log.jsonl").write_text("".join(lines))
    words = (
        "2 of 3 traces end in a tool call without a result: the run was cut short, or the call ended it. "
        "The first: c1-0 of hung, trace t1"
    )
    assert [one.words for one in triage(read(tmp_path)).endings] == [words]
    assert words in CliRunner().invoke(cli, ["summary", str(tmp_path)]).stdout
    (told,) = json.loads(CliRunner().invoke(cli, ["summary", str(tmp_path), "--json"]).stdout)["endings"]
    assert told == {"words": words, "traces": 2, "trace": "t1", "event": "c1-0"}
    out = tmp_path / "report.html"
    assert CliRunner().invoke(cli, ["report", str(tmp_path / "log.jsonl"), "-o", str(out)]).exit_code == 0
    assert embedded(out.read_text())[0]["overview"]["triage"]["endings"] == [told]


def test_logs_that_state_no_results_state_no_ends(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(STATED["native"]([[HUNG], [HUNG]]))
    assert endings(read(tmp_path)) == ()
