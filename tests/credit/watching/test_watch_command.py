"""`credit watch`: the numbers of steps from a metrics file and from logs, read once and while they grow."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from credit.cli import cli
from credit.integrations import RowAdvantages, Watch
from credit.watching.following import GrowingFolder, GrowingMetrics
from graphs.errors import CreditError


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args])


def trace(name: str, task: str, reward: float) -> dict[str, Any]:
    events = [
        {"id": "e0", "t": 0, "type": "orchestrator_decision", "agent": "boss"},
        {"id": "e1", "t": 1, "type": "message", "agent": "solver"},
    ]
    return {"trace_id": name, "task_id": task, "events": events, "rewards": {"team": reward}}


def write(path: Path, traces: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(t) + "\n" for t in traces))
    return path


def with_values(name: str, task: str, reward: float, values: tuple[float, float]) -> dict[str, Any]:
    """A boss and a solver, each with the value before it acts."""
    made = trace(name, task, reward)
    for event, value in zip(made["events"], values, strict=False):
        event["value"] = value
    return made


@pytest.fixture
def rollouts(tmp_path: Path) -> Path:
    """Two steps: in the second, by its natural order, one of two groups teaches."""
    folder = tmp_path / "rollouts"
    folder.mkdir()
    first = [with_values("a", "q", 1.0, (0.5, 0.8)), with_values("b", "q", 0.0, (0.5, 0.1))]
    write(folder / "step_2.jsonl", first)
    more = [with_values("c", "r", 1.0, (1.0, 1.0)), with_values("d", "r", 1.0, (1.0, 1.0))]  # no value changes
    write(folder / "step_10.jsonl", first + more)
    return folder


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
def test_each_log_of_a_folder_is_a_step(rollouts: Path) -> None:
    """Values 0.5 → 0.8 → 1 and 0.5 → 0.1 → 0: the bosses changed 0.3 and −0.4, the solvers 0.2 and −0.1."""
    result = run("watch", rollouts, "--once", "-m", "critic", "--compare", "rloo,dr_grpo", "--json")
    assert result.exit_code == 0, result.output
    first, second = objects(result.stdout)
    assert (first["step"], first["logs"], second["step"], second["logs"]) == (0, "step_2.jsonl", 1, "step_10.jsonl")
    assert first["credit/groups_that_teach"] == 1 and second["credit/groups_that_teach"] == 0.5
    assert first["credit/ledger/role/boss"] == pytest.approx((0.3 - 0.4) / 2, abs=1e-6)
    parts = ("role/boss", "role/solver", "expected", "unexplained")
    assert sum(first[f"credit/ledger/{part}"] for part in parts) == pytest.approx(0.5, abs=1e-6), "the mean reward"
    boss, solver = np.array([0.3, -0.4]), np.array([0.2, -0.1])
    own, broadcast = np.concatenate([boss, solver]), np.array([1.0, -1.0, 1.0, -1.0])
    cosine = own @ broadcast / np.linalg.norm(own) / np.linalg.norm(broadcast)
    assert first["credit/alignment/rloo"] == pytest.approx(cosine, abs=1e-6)
    assert first["credit/alignment/dr_grpo"] == pytest.approx(cosine, abs=1e-6)


@pytest.mark.slow
def test_the_lines_have_the_numbers(rollouts: Path) -> None:
    result = run("watch", rollouts, "--once", "-m", "rloo", "--compare", "dr_grpo", "--no-ledger")
    printed = result.stdout
    assert "alignment: cosine with the advantages of another method" in result.stderr
    assert "step 0 (step_2.jsonl): 1 groups, 100 % teach" in printed
    assert "step 1 (step_10.jsonl): 2 groups, 50 % teach\n  alignment: dr_grpo +1.00" in printed
    write(rollouts / "step_11.jsonl", [trace(name, "q", float(name == "a")) for name in "abcd"])
    last = run("watch", rollouts, "--once", "-m", "rloo", "--no-ledger", "--json").stdout.splitlines()[-1]
    assert "credit/snr" not in json.loads(last)
    assert "step 2 (step_11.jsonl): 1 groups, 100 % teach\n" in run("watch", rollouts, "--once", "--no-ledger").stdout


def test_numbers_are_kept_and_watched_again(rollouts: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = run("watch", rollouts, "--once", "-m", "rloo", "--no-ledger", "--json", "-o", kept)
    assert first.exit_code == 0, first.output
    for place in (kept, kept / "metrics.jsonl"):
        assert run("watch", place, "--once", "--json").stdout == first.stdout
    assert run("watch", rollouts, "--once", "-o", rollouts / "kept").exit_code == 1


def test_steps_of_equal_content_are_steps(tmp_path: Path) -> None:
    """Read together, the second would be a copy of the first."""
    for name in ("step_1.jsonl", "step_2.jsonl"):
        write(tmp_path / name, [trace("a", "q", 1.0), trace("b", "q", 0.0)])
    result = run("watch", tmp_path, "--once", "--json")
    assert result.exit_code == 0, result.output
    assert [row["credit/traces"] for row in objects(result.stdout)] == [2, 2]
    assert "same-content" not in result.output


def test_the_folder_of_a_trainers_watch(tmp_path: Path) -> None:
    watched = RowAdvantages("rloo", watch=Watch(tmp_path / "watch", compare=["dr_grpo"], ledger=False))
    assert run("watch", tmp_path / "watch", "--once").stdout == "", "known before the first step"
    watched(group=["q", "q", "r", "r"], reward=np.array([1.0, 0.0, 1.0, 1.0]))
    printed = run("watch", tmp_path / "watch", "--once").stdout
    assert "step 0: 2 groups, 50 % teach" in printed and "alignment: dr_grpo +1.00" in printed


def test_a_step_that_cannot_be_read_is_named_and_the_others_follow(rollouts: Path) -> None:
    (rollouts / "step_1.jsonl").write_text("{broken\n")
    result = run("watch", rollouts, "--once", "-m", "rloo", "--no-ledger", "--json")
    assert result.exit_code == 3 and "step_1.jsonl" in result.stderr
    assert [row["step"] for row in objects(result.stdout)] == [1, 2]
    missing = run("watch", rollouts, "--once", "-m", "c3")
    assert missing.exit_code == 3 and "step_2.jsonl: method 'c3' needs evidence" in missing.stderr


def test_the_first_line_says_how_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n')

    def ended(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", ended)
    assert run("watch", path, "--json").stderr.splitlines()[0] == (
        "Steps are printed as they arrive. Ctrl-C ends; --once reads once."
    )
    assert run("watch", path, "--json", "--once").stderr == ""


def test_what_is_refused(rollouts: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("watch", tmp_path / "empty", "--once").exit_code == 2
    for arguments, message in [
        ((tmp_path / "absent",), "does not exist"),
        ((rollouts, rollouts), "expected one PATH"),
        ((rollouts, "--tensorboard"), "expected --output"),
        ((rollouts, "--compare", "nope"), "nope"),
    ]:
        result = run("watch", *arguments, "--once")
        assert result.exit_code == 1 and message in result.stderr


def test_a_log_is_a_step_once_it_no_longer_grows(tmp_path: Path) -> None:
    growing = GrowingFolder(tmp_path)
    log = tmp_path / "step_9.jsonl"
    log.write_text("a")
    assert growing.new_steps() == []
    log.write_text("ab")
    assert growing.new_steps() == [], "it grew since the last look"
    (tmp_path / "step_10").mkdir()
    (tmp_path / "step_10" / "x.json").write_text("x")
    (tmp_path / "notes.md").write_text("no log")
    assert growing.new_steps() == [log]
    assert growing.new_steps() == [tmp_path / "step_10"] and growing.changed_steps() == []
    log.write_text("abc")
    assert growing.new_steps() == [] and growing.changed_steps() == ["step_9.jsonl"]
    assert growing.changed_steps() == []


def test_lines_are_read_once_they_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n{"st')
    growing = GrowingMetrics(path)
    assert list(growing.new_lines()) == [{"step": 0}] and list(growing.new_lines()) == []
    with path.open("a") as file:
        file.write('ep": 1}\n[]\n')
    with pytest.raises(CreditError, match=r"metrics.jsonl, line 3: expected an object with a number `step`"):
        list(growing.new_lines())
    path.write_text("")
    with pytest.raises(CreditError, match="became shorter"):
        list(growing.new_lines())


@pytest.mark.slow
def test_steps_are_printed_while_they_arrive(tmp_path: Path) -> None:
    folder = tmp_path / "rollouts"
    folder.mkdir()
    command = [sys.executable, "-m", "credit", "watch", str(folder), "-m", "rloo", "--no-ledger", "--interval", "0.05"]
    watching = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    guard = threading.Timer(120, watching.kill)
    guard.start()
    try:
        assert watching.stdout is not None
        for number in range(3):
            part = write(tmp_path / "part", [trace("a", "q", 1.0), trace("b", "q", float(number % 2))])
            part.rename(folder / f"step_{number}.jsonl")
            row = json.loads(watching.stdout.readline())
            assert (row["step"], row["logs"]) == (number, f"step_{number}.jsonl")
            assert row["credit/groups_that_teach"] == float(number % 2 == 0)
    finally:
        guard.cancel()
        watching.terminate()
        watching.communicate(timeout=30)
    assert watching.returncode == 143
