"""What a verdict passes of failed traces, or fails of succeeded ones, is tested between sides, and between systems."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.doctor.verdict_errors import Part, VerdictErrors
from credit.page import Findings
from credit.page.overview import overview
from credit.sides.verdict_changes import VerdictChange, verdict_changes
from tests.credit.cli.logs import trace, write

PART = Part(0.5, 0.0, 1.0)
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def changes(task: np.ndarray, side: np.ndarray, good: np.ndarray, wrong: np.ndarray) -> list[VerdictChange]:
    return verdict_changes(
        [VerdictErrors("checker", np.arange(len(task)), good, wrong, *[PART] * 3)], side, task, np.zeros_like(task)
    )


def chance(odds: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-odds)))


def drawn(
    rng: np.random.Generator, tasks: int, runs: int, failing: Sequence[float], passed: Sequence[float], alike: float = 0
) -> Drawn:
    """Runs of two sides: their tasks, sides, who succeeded, and whose verdict is wrong. Hard tasks fail more often, and
    are misjudged more often; with the chance `alike` as others of their task, side and kind."""
    task, side = np.repeat(np.arange(tasks), 2 * runs), np.tile(np.repeat([0, 1], runs), tasks)
    hard, odds = rng.normal(size=tasks), [np.log(np.divide(of, np.subtract(1, of))) for of in (failing, passed)]
    good = rng.random(len(task)) > chance(odds[0][side] + 1.5 * hard[task])
    tricky = 0.7 * hard + 0.7 * rng.normal(size=tasks)
    luck, shared = rng.random(len(task)), rng.random((tasks, 2, 2))[task, side, good.astype(int)]
    luck = np.where(rng.random(len(task)) < alike, shared, luck)
    return task, side, good, luck < np.where(good, chance(-2.5 - tricky)[task], chance(odds[1][side] + tricky[task]))


@pytest.mark.slow
@pytest.mark.parametrize("failing", [(0.3, 0.3), (0.7, 0.2)])
@pytest.mark.parametrize("alike", [0.0, 1.0])
def test_verdicts_that_are_alike_have_a_star_in_one_of_twenty_comparisons_at_most(
    failing: tuple[float, float], alike: float
) -> None:
    rng, sizes, draws = np.random.default_rng(3), [(12, 2), (24, 3), (60, 1), (12, 8), (40, 8)], 200
    stars = {
        size: sum(any(one.stands_out for one in changes(*drawn(rng, *size, failing, (0.3, 0.3), alike)))
                  for _ in range(draws)) for size in sizes
    }  # fmt: skip
    assert sum(stars.values()) <= 0.05 * draws * len(sizes) and max(stars.values()) <= 0.08 * draws, stars


@pytest.mark.slow
def test_a_checker_that_comes_to_pass_most_failures_is_found() -> None:
    """From 5 to 60 % of what failed: of tasks with failures on both sides alone, it was found in 46 % of (60, 1)."""
    rng = np.random.default_rng(4)
    for size, least in (((24, 3), 0.8), ((60, 1), 0.8), ((12, 8), 0.65), ((40, 8), 1.0)):
        found = [changes(*drawn(rng, *size, (0.3, 0.3), (0.05, 0.6))) for _ in range(100)]
        passes = [one for each in found for one in each if not one.succeeded]
        assert np.mean([one.stands_out for one in passes]) >= least and all(one.difference > 0 for one in passes)


def by_hand(task: np.ndarray, side: np.ndarray, good: np.ndarray, wrong: np.ndarray) -> tuple[float, float]:
    """The difference over tasks with one run a side, and its chance: each task on both sides might have had the other
    sign, and the others any sides."""
    rows = zip(task.tolist(), side.tolist(), good.tolist(), wrong.tolist(), strict=True)
    cells = {(t, s): w for t, s, g, w in rows if not g}
    pairs = [cells[t, 1] - w for (t, s), w in cells.items() if not s and (t, 1) in cells]
    rest = [(s, w) for (t, s), w in cells.items() if (t, 1 - s) not in cells]
    many = sum(s for s, _ in rest)
    weight = many * (len(rest) - many) / max(len(rest), 1)

    def size(apart: Sequence[int], last: Sequence[int], every: Sequence[int]) -> float:
        means = (sum(last) / many - (sum(every) - sum(last)) / (len(rest) - many)) if weight else 0.0
        return sum(apart) / 2 + weight * means

    ones = [w for _, w in rest]
    seen = size(pairs, [w for s, w in rest if s], ones)
    sums = [
        size([sign * apart for sign, apart in zip(signs, pairs, strict=True)], [ones[i] for i in chosen], ones)
        for signs in itertools.product((1, -1), repeat=len(pairs))
        for chosen in itertools.combinations(range(len(rest)), many)
    ]
    up, down = (sum(sign * total >= sign * seen - 1e-9 for total in sums) / len(sums) for sign in (1, -1))
    return seen / (len(pairs) / 2 + weight), min(2 * up, 2 * down, 1.0)


def test_the_chance_is_that_of_all_other_sides() -> None:
    tested = 0
    for seed in range(12):
        world = drawn(np.random.default_rng(seed), 20, 1, (0.5, 0.4), (0.4, 0.7))
        (one,) = [one for one in changes(*world) if not one.succeeded]
        difference, p = by_hand(*world)
        assert one.difference == pytest.approx(difference)
        assert one.alone is None or one.alone == pytest.approx(p)
        tested += one.alone is not None
    assert tested > 3


def log(folder: Path, systems: Sequence[str], passed: Sequence[float]) -> Path:
    """Sixteen tasks with three runs of each system; half fail, and the checker passes so many of these."""
    rng, lines = np.random.default_rng(0), []
    for i, (task, which, _) in enumerate((t, s, k) for t in range(16) for s in range(len(systems)) for k in range(3)):
        good = rng.random() < 0.5
        line = trace(f"t{i}", f"q{task}", float(good), events=[{"id": "e", "type": "message", "agent": "a"}], edges=[])
        said = good or rng.random() < passed[which]
        lines.append(line | {"system": systems[which], "rewards": {"team": float(good), "checker": float(said)}})
    return write(folder / "x.jsonl", lines)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("systems", [("v1", "v9", "v10"), ("v9", "v10")])
def test_a_verdict_that_differs_by_system_is_told_without_sides(tmp_path: Path, systems: tuple[str, ...]) -> None:
    """`summary` and `doctor` said how often it is wrong over all systems, and nothing of each."""
    path = log(tmp_path, systems, (0.05, 0.05, 0.7)[-len(systems) :])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    of: dict[str, list[float]] = {system: [] for system in systems}
    for line in (line for line in lines if not line["rewards"]["team"]):
        of[line["system"]].append(line["rewards"]["checker"])
    told = ", ".join(
        f"{name} {sum(said):.0f} of {len(said)} ({100 * np.mean(said):.0f} %)" for name, said in of.items()
    )
    line = f"failures that checker passes differ by system beyond chance, compared by task: {told}"
    for call in ("summary", "doctor"):
        plain, stated = (CliRunner().invoke(cli, [call, str(path), *more]).stdout for more in ([], ["--json"]))
        assert f"F{line[1:]}." in plain and json.loads(stated)["verdicts_by_system"] == line
    traces = credit.read(path)
    assert overview(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}))["verdicts_by_system"] == line
    of_kinds = write(path, [each | {"task_kind": f"k{i // 24 % 2}"} for i, each in enumerate(lines)])
    stated = json.loads(CliRunner().invoke(cli, ["doctor", str(of_kinds), "--json"]).stdout)["verdicts_by_system"]
    assert stated == line.replace("by task:", "by task within kinds of task:"), "it said not within what"
    same = log(tmp_path, systems, [0.3] * len(systems))
    assert json.loads(CliRunner().invoke(cli, ["doctor", str(same), "--json"]).stdout)["verdicts_by_system"] == ""


def test_counts_against_the_tasks_have_the_difference_by_task() -> None:
    """The new side passes more in each task, and fails most where little is passed."""
    rows = [(t, s, k) for t in range(24) for s in (0, 1) for k in range(12 if (t < 12) == (s == 0) else 2)]
    task, side, run = np.array(rows).T
    wrong = run % 12 < np.where(task < 12, np.where(side == 0, 9, 2), np.where(side == 0, 0, 3))
    (one,) = changes(task, side, np.zeros(len(task), bool), wrong)
    assert one.stands_out and one.difference == pytest.approx(0.25)
    counts = "108 of 168 (64 %) to 60 of 168 (36 %)"
    assert one.told() == f"failures that checker passes {counts}, by task +0.25, beyond chance"
