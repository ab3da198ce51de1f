"""`credit watch`: a table of outcomes in the folder is no step; a folder of tables of outcomes alone is a log."""

from __future__ import annotations

import importlib
import json
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from credit.cli import cli
from credit.watching.outcome_files import OutcomeFiles
from graphs.logs import outcome_tables

STEPS = {
    "n.jsonl": "".join(
        json.dumps(
            {
                "trace_id": name,
                "task_id": "q",
                "rewards": {"team": reward},
                "events": [{"id": "e", "type": "message", "agent": "x"}],
            }
        )
        + "\n"
        for name, reward in (("a", 1.0), ("b", 0.0))
    ),
    "steps.csv": "trace,group,agent,reward\na,q,x,1\nb,q,x,0\n",
}
OUTCOMES = "trace,reward\na,0\nb,0\nc,1\n"


def watch(folder: Path, *args: object) -> Result:
    arguments = ["watch", folder, "--once", "-m", "rloo", "--no-ledger", "--json", *args]
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def steps(result: Result) -> list[tuple[int, str]]:
    return [(row["step"], row["logs"]) for row in map(json.loads, result.stdout.splitlines())]


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("outcomes", ["a.csv", "outcomes.csv", "z.csv"])
@pytest.mark.parametrize("place", ["", "step_1"])
@pytest.mark.parametrize("log", STEPS)
def test_a_table_of_outcomes_beside_logs_is_no_step(tmp_path: Path, log: str, place: str, outcomes: str) -> None:
    """Its rows were traces of one task, with numbers as those of a step."""
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / log).write_text(STEPS[log])
    (tmp_path / outcomes).write_text(OUTCOMES)
    result = watch(tmp_path)
    assert steps(result) == [(0, place or log)] and result.exit_code == 3
    assert "problems (1): 1 outcomes-among-logs" in result.stderr and f"{outcomes}: content" in result.stderr
    assert watch(tmp_path, "--allow-bad").exit_code == 0


@pytest.mark.parametrize("log", STEPS)
def test_the_table_that_an_option_names_is_no_step(tmp_path: Path, log: str) -> None:
    (tmp_path / log).write_text(STEPS[log])
    (tmp_path / "outcomes.csv").write_text(OUTCOMES.replace("c,1\n", ""))
    result = watch(tmp_path, "--rewards", tmp_path / "outcomes.csv")
    assert steps(result) == [(0, log)] and result.exit_code == 0, result.stderr


def test_tables_that_are_all_alike_are_steps(tmp_path: Path) -> None:
    """No step after another takes the steps before it for logs of its own."""
    for step in range(3):
        (tmp_path / f"{step}.csv").write_text("trace,group,agent,reward\na,q,x,1\nb,q,x,0\n")
    assert [name for _, name in steps(watch(tmp_path))] == ["0.csv", "1.csv", "2.csv"]
    for step in range(3):
        (tmp_path / f"{step}.csv").write_text(OUTCOMES)
    result = watch(tmp_path)
    assert "outcomes-among-logs" not in result.stderr
    (tmp_path / "log.jsonl").write_text(STEPS["n.jsonl"])
    named = watch(tmp_path, "--format", "table")
    assert "outcomes-among-logs" not in named.stderr
    assert watch(tmp_path).stderr.count("1 outcomes-among-logs") == 3


def live(folder: Path, monkeypatch: pytest.MonkeyPatch, *arrivals: tuple[str, str]) -> Result:
    """A watch during which files arrive, one at a time; each is looked at three times."""
    looks = iter(range(3 * len(arrivals) + 3))

    def wait(_: float) -> None:
        look = next(looks, None)
        if look is None:
            raise KeyboardInterrupt
        if look % 3 == 0 and look // 3 < len(arrivals):
            name, content = arrivals[look // 3]
            (folder / name).write_text(content)

    module = importlib.import_module("credit.cli.logs.watch")
    monkeypatch.setattr(module, "time", types.SimpleNamespace(sleep=wait))
    arguments = ["watch", str(folder), "-m", "rloo", "--no-ledger", "--json"]
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize("log", STEPS)
def test_a_table_of_outcomes_that_arrives_before_the_logs_is_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str
) -> None:
    """It was step 0, and the log step 1."""
    more = OUTCOMES + "d,1\n"
    result = live(tmp_path, monkeypatch, ("outcomes.csv", OUTCOMES), ("outcomes.csv", more), (log, STEPS[log]))
    assert steps(result) == [(0, log)]
    assert result.stderr.count("1 outcomes-alone") == 1 and result.stderr.count("1 outcomes-among-logs") == 1
    assert "changed after it was read" not in result.stderr


def test_steps_that_are_all_tables_of_outcomes_are_numbered_as_they_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = live(tmp_path, monkeypatch, *((f"{step}.csv", OUTCOMES) for step in range(3)))
    assert steps(result) == [(step, f"{step}.csv") for step in range(3)]
    told = "0.csv: content is a table of outcomes"
    assert result.stderr.count("outcomes-alone") == 2 and result.stderr.count(told) == 1, result.stderr
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "0.csv").write_text(OUTCOMES)
    once = watch(tmp_path / "alone")
    assert "outcomes-alone" not in once.stderr


def test_files_beside_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at a folder of 1,000 tables would open all of them for each."""
    for step in range(30):
        (tmp_path / f"{step}.csv").write_text(OUTCOMES)
    looked: list[object] = []
    judge = outcome_tables.refuse_outcome_tables

    def counted(verdicts: Sequence[Any]) -> Any:
        looked.append(verdicts)
        return judge(verdicts)

    monkeypatch.setattr(outcome_tables, "refuse_outcome_tables", counted)
    files = OutcomeFiles(lambda: sorted(tmp_path.iterdir()))
    assert [files.problem(path) for path in sorted(tmp_path.iterdir())] == [None] * 30
    assert len(looked) == 30
    (tmp_path / "7.csv").write_text(STEPS["steps.csv"])
    assert files.problem(tmp_path / "8.csv") is not None, "a file that changed is looked at again"
    assert files.problem(tmp_path / "7.csv") is None
