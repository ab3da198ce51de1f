"""Runs that name no task weigh as much as a task in the means, and are compared with nobody: both are said."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.reports.corpus import Tally, survey


@pytest.mark.parametrize(
    ("groups", "runs"), [(["q", "q", "", "", ""], 3), ([""] * 3, 3), (["q", "r", "s"], 0), (["q", "q", ""], 1)]
)
def test_runs_without_a_task_are_counted_where_they_count(groups: list[str], runs: int, tmp_path: Path) -> None:
    """`metrics` counted them as tasks, and `validate` as groups, without a word on which these are."""
    path = tmp_path / "x.csv"
    path.write_text("trace,group,agent,reward\n" + "".join(f"t{k},{name},a,{k}\n" for k, name in enumerate(groups)))
    said = f"{runs} run{'s' * (runs > 1)} without a task"
    are = "are groups" if runs > 1 else "is a group"
    for command, words in (
        ("metrics", f"{said}: each counts as a task in the means"),
        ("validate", f"; {said} {are} of one"),
    ):
        shown = CliRunner().invoke(cli, [command, str(path)])
        assert shown.exit_code == 0, shown.output
        assert (words in shown.stdout) == (runs > 0) and ("without a task" in shown.stdout) == (runs > 0)
    traces = credit.read(path)
    assert survey(traces).without_task == runs
    twice = Tally.of(traces)
    twice.add(Tally.of(traces))
    assert twice.survey([], []).without_task == 2 * runs
