"""Which kind of task fails more often than the others: tasks of which all runs fail alike are one number each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.reports.judged_traces import judged_traces
from credit.reports.unlike_kinds import unlike_kinds

KINDS = ["bugfix", "feature", "refactor", "docs", "migration"]


def log(path: Path, parts: tuple[float, ...]) -> None:
    """22 tasks of each kind but docs, which have 3, with a run each; this part of a kind's tasks fails."""
    lines = []
    for place, (kind, part) in enumerate(zip(KINDS, parts, strict=True)):
        many = 3 if kind == "docs" else 22
        for i in range(many):
            event = {"id": "e", "type": "message", "agent": "a"}
            lines.append({"trace_id": f"{place}-{i}", "task_id": f"{place}-{i}", "task_kind": kind, "edges": [],
                          "events": [event], "rewards": {"team": float(i >= part * many)}})  # fmt: skip
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def said(*call: str) -> str:
    return CliRunner().invoke(cli, call, catch_exceptions=False).stdout


def test_the_kind_that_fails_beyond_chance_comes_first_and_is_told(tmp_path: Path) -> None:
    """ "docs 5 of 6, migration 19 of 23 (83 %), … bugfix 5 of 26 (19 %)": noise came first, and no kind was told."""
    log(path := tmp_path / "log.jsonl", (0.25, 0.3, 0.3, 1.0, 0.8))
    sure = "Beyond chance, migration fails more often than the other kinds: 18 of 22 (82 %) against 23 of 69 (33 %)."
    head = said("summary", str(path))
    assert "\n  Failed by kind of task: migration 18 of 22 (82 %), docs 3 of 3, feature 7 of 22" in head
    assert f"\n  {sure}\n" in head and f"\n{sure}\n" in said("metrics", str(path), "--of", "kinds")
    assert json.loads(said("metrics", str(path), "--of", "kinds", "--json"))["runs"]["unlike"] == sure
    log(path, (0.3, 0.3, 0.3, 1.0, 0.3))
    head = said("summary", str(path))
    assert "docs 3 of 3, " in head and "; no kind differs from the others beyond chance." in head


def test_a_kind_that_fails_more_is_not_hidden_behind_one_that_fails_less() -> None:
    """15 of 22 against 22 of 87, p = 0.0003, stood behind 3 of 34, without which it was 15 of 22 against 19 of 53."""
    kind = np.repeat(np.arange(4), (22, 28, 25, 34))
    failed = np.concatenate([np.arange(size) < bad for bad, size in ((15, 22), (12, 28), (7, 25), (3, 34))])
    task = np.arange(len(kind))
    _, _, rows = credit.from_columns(group=task.tolist(), trace=task.tolist(), reward=1.0 - failed)
    found = unlike_kinds(rows.traces, judged_traces(rows.traces), ["contract", "a", "b", "refund"], kind).found
    assert found[0] == (0, True, (15, 22), (22, 87))


def test_the_rest_is_compared_without_a_kind_that_was_told() -> None:
    """Against kinds with migration among them, all others failed less often."""
    task = np.arange(160)
    kind, place = task // 40, task % 40
    for parts, found in (
        ((10, 10, 10, 38), [(3, True, (38, 40), (30, 120))]),
        ((0, 14, 14, 38), [(3, True, (38, 40), (28, 120)), (0, False, (0, 40), (28, 80))]),
    ):
        good = (place >= np.array(parts)[kind]) * 1.0
        _, _, rows = credit.from_columns(group=task.tolist(), trace=task.tolist(), reward=good.tolist())
        unlike = unlike_kinds(rows.traces, judged_traces(rows.traces), KINDS[:4], kind)
        assert [(one.kind, one.more, one.own, one.others) for one in unlike.found] == found
    assert unlike.told.endswith("; bugfix fails less often than the rest: 0 of 40 (0 %) against 28 of 80 (35 %).")


@pytest.mark.parametrize("draws", [60, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("alike", [False, True])
def test_kinds_that_fail_alike_are_seldom_told(alike: bool, draws: int) -> None:
    rng, found = np.random.default_rng(3), 0
    for _ in range(draws):
        tasks, kinds = int(rng.integers(12, 80)), int(rng.integers(2, 9))
        of_task = rng.integers(0, kinds, tasks)
        size = 1 + of_task % 3 if alike else rng.integers(1, 5, tasks)  # of some kinds all tasks have more runs
        task = np.repeat(np.arange(tasks), size)
        chance = (rng.random(tasks) < 0.3) * 1.0 if alike else rng.random(tasks)
        good, traces = (rng.random(len(task)) >= chance[task]) * 1.0, np.arange(len(task)).tolist()
        _, _, rows = credit.from_columns(group=task.tolist(), trace=traces, reward=good.tolist())
        names = [str(place) for place in range(kinds)]
        found += bool(unlike_kinds(rows.traces, judged_traces(rows.traces), names, of_task[task]).found)
    assert found <= 0.05 * draws + 2 * (0.05 * 0.95 * draws) ** 0.5
