"""Runs of a plan by actors of a real Ray cluster: the result file of one process, whatever fails on the way."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray")

import credit.ray  # noqa: E402
from credit.cli import cli  # noqa: E402
from credit.replay.drivers.micro_driver import MicroReplayer  # noqa: E402
from credit.replay.execution import Limits, execute, read_results  # noqa: E402
from credit.replay.replay_plan import ReplayPlan, write_plan  # noqa: E402
from credit.replay.run_planning import plan_replays  # noqa: E402
from graphs.errors import CreditError  # noqa: E402
from graphs.worlds.micro.examples import MICRO  # noqa: E402

WORLD = MICRO["spawn-and"]
DRIVERS = """
import os, pathlib, time
from credit.replay.replayer import PrefixError
here = pathlib.Path(__file__).parent

def one(prefix, replace, forbid, seed):
    time.sleep(0.01)
    return seed % 5 / 4

def slow(prefix, replace, forbid, seed):
    time.sleep(0.2)
    return seed % 5 / 4

def counted(prefix, replace, forbid, seed):
    (here / f"at-work-{os.getpid()}").touch()
    atonce = len(list(here.glob("at-work-*")))
    time.sleep(0.05)
    (here / f"at-work-{os.getpid()}").unlink()
    return float(atonce)

def mixed(prefix, replace, forbid, seed):
    if prefix.decision == BAD[0]:
        raise PrefixError("the tool answered otherwise")
    if prefix.decision == BAD[1]:
        raise ValueError("no such tool")
    return seed % 5 / 4

def hangs_once(prefix, replace, forbid, seed):
    if seed % 7 == 0:
        time.sleep(3600)
    return 1.0
"""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def plan() -> ReplayPlan:
    return plan_replays(WORLD.batch(), "value", 120)


@pytest.fixture
def folder(tmp_path: Path, plan: ReplayPlan, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of drivers, as that of a user, whose name no other test's module has."""
    bad = [plan.jobs[n].prefix.decision for n in (1, 2)]
    (tmp_path / f"drivers_{tmp_path.name}.py").write_text(DRIVERS + f"\nBAD = {bad!r}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def named(folder: Path, function: str) -> str:
    return f"drivers_{folder.name}:{function}"


def lines(path: Path) -> list[str]:
    return sorted(path.read_text().splitlines())


def load(folder: Path, function: str) -> object:
    from credit.replay.replayer import load_replayer

    return load_replayer(named(folder, function))


def test_runs_are_those_of_one_process(plan: ReplayPlan, folder: Path) -> None:
    """By an object that makes many runs at once, which is sent, and by the name of a function."""
    one = execute(plan, MicroReplayer(WORLD), folder / "one.jsonl")
    ticks: list[int] = []
    many = credit.ray.replay(plan, MicroReplayer(WORLD), folder / "many.jsonl", advance=ticks.append)
    assert lines(folder / "many.jsonl") == lines(folder / "one.jsonl") and sum(ticks) == many.done == plan.runs
    np.testing.assert_array_equal(many.mean_and_spread()[0], one.mean_and_spread()[0])
    execute(plan, load(folder, "one"), folder / "a.jsonl")  # type: ignore[arg-type]
    credit.ray.replay(plan, named(folder, "one"), folder / "b.jsonl")
    assert lines(folder / "a.jsonl") == lines(folder / "b.jsonl") and len(lines(folder / "b.jsonl")) == plan.runs


def test_no_more_runs_at_a_time_than_allowed(plan: ReplayPlan, folder: Path) -> None:
    results = credit.ray.replay(plan, named(folder, "counted"), folder / "r.jsonl", limits=Limits(concurrency=3))
    most = max(reward for by_run in results.rewards for reward in by_run.values())
    assert results.done == plan.runs and most == 3  # and three processes were at work


def test_failures_are_those_of_one_process(plan: ReplayPlan, folder: Path) -> None:
    """A prefix that strays, and a run that fails, with the words of the driver."""
    few = Limits(concurrency=1, pause=0.0, failures=10_000)
    one = execute(plan, load(folder, "mixed"), folder / "one.jsonl", limits=few)  # type: ignore[arg-type]
    many = credit.ray.replay(plan, named(folder, "mixed"), folder / "many.jsonl", limits=few)
    assert many == one and many.strayed and sum(map(len, many.failed)) > 1
    assert lines(folder / "many.jsonl") == lines(folder / "one.jsonl")
    with pytest.raises(CreditError, match="has no attribute 'absent'"):
        credit.ray.replay(plan, named(folder, "absent"), folder / "none.jsonl")


def test_a_run_that_hangs_is_ended(plan: ReplayPlan, folder: Path) -> None:
    results = credit.ray.replay(
        plan,
        named(folder, "hangs_once"),
        folder / "r.jsonl",
        limits=Limits(concurrency=8, seconds=3.0, failures=10_000),
    )
    failed = [json.loads(line)["error"] for line in lines(folder / "r.jsonl") if "error" in line]
    assert failed and set(failed) == {"the run did not end within 3 s"}
    assert results.done == plan.runs - len(failed)
    end = time.monotonic() + 30
    while actors() and time.monotonic() < end:
        time.sleep(0.1)
    assert actors() == []


def actors() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes().startswith(b"ray::RunActor"):
                    found.append(int(entry.name))
    return found


def test_an_actor_that_dies_is_replaced(plan: ReplayPlan, folder: Path) -> None:
    killed: list[int] = []

    def kill_two() -> None:
        end = time.monotonic() + 120
        while len(killed) < 2 and time.monotonic() < end:
            for pid in actors()[:1] if lines_so_far(folder / "many.jsonl") else []:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.2)

    execute(plan, load(folder, "one"), folder / "one.jsonl")  # type: ignore[arg-type]
    killer = threading.Thread(target=kill_two)
    killer.start()
    credit.ray.replay(plan, named(folder, "one"), folder / "many.jsonl", limits=Limits(concurrency=2))
    killer.join(timeout=130)
    assert killed
    assert lines(folder / "many.jsonl") == lines(folder / "one.jsonl")


def lines_so_far(path: Path) -> int:
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def test_a_killed_command_is_resumed(plan: ReplayPlan, folder: Path) -> None:
    """The command is killed twice with its cluster; in the end every run is there once, as by one process."""
    write_plan(plan, folder / "plan.jsonl")
    execute(plan, load(folder, "one"), folder / "one.jsonl")  # type: ignore[arg-type]
    result = folder / "many.jsonl"
    command = [sys.executable, "-m", "credit", "replay", "plan.jsonl", "--driver", named(folder, "slow")]
    command += ["--results", str(result), "--engine", "ray", "--concurrency", "2"]
    log = folder / "log"
    for _ in range(2):
        before = lines_so_far(result)
        with log.open("wb") as stream:
            driver = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
            end = time.monotonic() + 120
            while lines_so_far(result) <= before and driver.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait(timeout=60)
        assert lines_so_far(result) > before, log.read_text()[-2000:]
    kept = read_results(plan, result).done
    assert 0 < kept < plan.runs
    done = CliRunner().invoke(cli, [*command[3:], "--json"])
    assert done.exit_code == 0, done.output
    assert lines(result) == lines(folder / "one.jsonl")


def test_an_engine_without_a_driver_is_refused(plan: ReplayPlan, folder: Path) -> None:
    write_plan(plan, folder / "plan.jsonl")
    done = CliRunner().invoke(cli, ["replay", "plan.jsonl", "--results", "r.jsonl", "--engine", "ray"])
    assert done.exit_code == 1 and "expected --driver" in done.output
