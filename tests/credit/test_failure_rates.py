"""How often runs fail, with an interval; and what a judge's verdicts on most runs say where people judged some."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.prevalence import Corrected, corrected_rate
from graphs.task_means import LEAST_TASKS, chance_interval, mean_of_tasks


def tasks_of(rng: np.random.Generator, tasks: int, most: int) -> np.ndarray:
    return np.repeat(np.arange(tasks), rng.integers(1, most + 1, tasks))


def luck(rng: np.random.Generator, task: np.ndarray, alike: float) -> np.ndarray:
    """A number from 0 to 1 of each run, that of its task with this chance."""
    return np.where(rng.random(len(task)) < alike, rng.random(task[-1] + 1)[task], rng.random(len(task)))


def holds(held: list[bool]) -> None:
    known_to = 2 * (0.05 * 0.95 / len(held)) ** 0.5
    assert 0.93 - known_to <= np.mean(held) <= 0.97 + known_to, np.mean(held)


@pytest.mark.parametrize("draws", [60, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("most", "alike"), [(1, 0.0), (3, 0.0), (6, 0.5), (6, 1.0)])
def test_intervals_of_rates_hold_the_rate(most: int, alike: float, draws: int) -> None:
    """On average over rates of 5 to 95 %, of any number of tasks that has an interval, single runs or several."""
    rng, held = np.random.default_rng(3), list[bool]()
    for tasks in (8, 12, 20, 40, 80):
        for _ in range(draws):
            task, chance = tasks_of(rng, tasks, most), rng.uniform(0.05, 0.95)
            failed = luck(rng, task, alike) < chance
            low, high = chance_interval(failed, task)
            held.append(low <= chance <= high)
            if most == 1:
                assert mean_of_tasks(failed * 1.0, single=True)[0][1:3] == pytest.approx((low, high))
    holds(held)
    assert np.isnan(chance_interval(np.ones(70, bool), np.arange(70) % (LEAST_TASKS - 1))).all()


def drawn(
    rng: np.random.Generator, tasks: int, people: float, most: int, alike: float
) -> tuple[float, Corrected | None]:
    """The rate of failures, and what is found of it: people judge this part, in half of draws more of what fails."""
    task, rate = tasks_of(rng, tasks, most), rng.uniform(0.05, 0.6)
    failed = luck(rng, task, alike) < rate
    passes = (luck(rng, task, alike) < np.where(failed, rng.uniform(0.1, 0.9), rng.uniform(0.7, 1))) * 1.0
    passes[rng.random(len(task)) < rng.choice([0, 0.3])] = np.nan
    part = np.where(passes == 0, 1.6, 0.7) * people if rng.random() < 0.5 else people
    known = luck(rng, task, alike) < part
    return rate, corrected_rate(failed & known, known, passes, task)


@pytest.mark.parametrize("draws", [60, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("most", "alike"), [(1, 0.0), (4, 0.0), (4, 0.5), (4, 1.0)])
def test_intervals_of_corrected_rates_hold_the_rate(most: int, alike: float, draws: int) -> None:
    rng, held = np.random.default_rng(4), list[bool]()
    for tasks, people in ((60, 0.25), (60, 0.5), (200, 0.15), (200, 0.3), (600, 0.1)):
        for _ in range(draws):
            rate, found = drawn(rng, tasks, people, most, alike)
            held += [found.low <= rate <= found.high] if found is not None else []
    assert len(held) > 3 * draws
    holds(held)


def test_a_corrected_rate_by_hand() -> None:
    """Of 60 that a judge fails people fail 9 of 10, of 140 that it passes 4 of 20."""
    at = np.arange(200)
    passes, known = (at >= 60) * 1.0, (at < 10) | (at >= 180)
    failed = (at < 9) | (at >= 196)
    found = corrected_rate(failed, known, passes, at)
    assert found is not None and found.rate == pytest.approx(0.3 * 0.9 + 0.7 * 0.2) and found.traces == 200
    assert 0.25 < found.low < 0.33 < 0.5 < found.high < 0.6
    assert corrected_rate(failed, known & (at >= 60), passes, at) is None, "nobody looked at what it fails"
    assert corrected_rate(failed, at < 7, passes * 0, at) is None
    passes[100:190] = np.nan  # and 100 without a verdict people fail none of 10
    apart = corrected_rate(failed, known, passes, at)
    assert apart is not None and apart.traces == 200
    assert apart.rate == pytest.approx(0.3 * 0.9 + 0.25 * 0.4)
    inside = corrected_rate(failed, known & ~((at >= 100) & (at < 190)), passes, at)
    assert inside is not None and inside.traces == 110, "people know none of the others"


def log(tmp_path: Path, passed: tuple[float, float], *, people: str, truth: float = 0.6, runs: int = 240) -> list[str]:
    """Runs of two sides whose success is the same; a judge passes these parts of what failed, and all that did not, or,
    below 0, fails these of what succeeded. People look at every third run."""
    rng, lines, rows = np.random.default_rng(0), list[str](), ["trace,side"]
    for i in range(runs):
        good, part = bool(i % 10 < 10 * truth), passed[i % 2]
        said = good or rng.random() < part if part >= 0 else good and rng.random() >= -part
        rewards = {"judge": float(said)} | ({"thumb": float(good)} if i % 3 == 0 else {})
        line = {"trace_id": f"t{i}", "task_id": f"q{i}", "edges": [], "rewards": rewards}
        line["metrics"] = {"thumb by people": 1.0} if people and i % 3 == 0 else {}
        line["events"] = [{"id": "e", "type": "message", "agent": "a"}]
        lines.append(json.dumps(line) + "\n")
        rows.append(f"t{i},{'new' if i % 2 else 'old'}")
    (path := tmp_path / "log.jsonl").write_text("".join(lines))
    (sides := tmp_path / "sides.csv").write_text("\n".join(rows) + "\n")
    return [str(path), "--sides", str(sides)]


def said(command: str, *call: str) -> str:
    return CliRunner().invoke(cli, [command, *call], catch_exceptions=False).stdout


@pytest.mark.parametrize(
    ("passed", "claim", "people"),
    [((0.05, 0.8), "passes more of what thumb rejects", "people"),
     ((-0.05, -0.6), "fails more of what thumb passes", ""),
     pytest.param((0.05, 0.8), "passes more of what thumb rejects", "", marks=pytest.mark.slow),
     pytest.param((-0.05, -0.6), "fails more of what thumb passes", "people", marks=pytest.mark.slow)],
)  # fmt: skip
def test_a_judge_that_changed_is_no_change_of_the_runs(
    tmp_path: Path, passed: tuple[float, float], claim: str, people: str
) -> None:
    """ "Runs are better than before (success 0.769 to 0.964)" was said where people saw no change."""
    call = log(tmp_path, passed, people=people)
    told = said("summary", *call, "--reward-channel", "judge")
    assert re.search(rf"Success: no change shown \(0\.\d+ to 0\.\d+\), since judge {claim} \(", told)
    assert f"no change shown, since judge {claim} (" in said("metrics", *call, "--reward-channel", "judge")
    assert re.search(r"\n  By judge, which changed: old \d+ of 120 .*, new \d+ of 120 ", told), "whose the counts are"
    ends = re.search(
        r", by side: old \d+ % \(95 % interval (\d+) to (\d+) %\), new .* (\d+) to (\d+) %\); (.*)\.\n", told
    )
    assert ends and ends[5] == "not tested, since the sides are not held to the same tasks"
    old, _, new, last = (int(end) for end in ends.groups()[:4])
    assert max(old, new) < 40 < last, "corrected rates of sides, which people see alike"
    worth = told.partition("\nHow judge agrees with thumb")[2].partition("\nWhat was lost")[0]
    assert re.search(rf"\n  Runs that thumb {claim.rpartition(' ')[2]} and judge .*, beyond chance", worth)
    alike = log(tmp_path, (passed[0], passed[0]), people=people)
    assert "since judge" not in said("summary", *alike, "--reward-channel", "judge")


def test_which_tests_share_a_correction_is_told_in_the_glossary_alone(tmp_path: Path) -> None:
    """Each summary listed its families of tests, in text and JSON; none of the lines that it was about named one."""
    path, _, sides = log(tmp_path, (0.05, 0.05), people="people")
    call = [path, "--sides", sides, "--reward-channel", "judge"]
    assert not any("P-values" in said("summary", *call, *more) for more in ((), ("--json",)))
    glossary = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
    assert "each part of a summary has one in up to 1 of 20 logs" in glossary


def test_what_people_say_is_not_held_against_a_judge_that_changed(tmp_path: Path) -> None:
    told = said("summary", *log(tmp_path, (0.05, 0.8), people="people"), "--reward-channel", "thumb")
    assert "since" not in told.partition("What changed from old to new: ")[2].partition("\n")[0]


def test_the_head_has_one_rate_of_failures(tmp_path: Path) -> None:
    """ "16 of 140 failed" led, of a judge that passed most of what people reject."""
    (path, *_) = log(tmp_path, (0.7, 0.7), people="people")
    judge, people = (said("summary", path, "--reward-channel", channel) for channel in ("judge", "thumb"))
    head = judge.partition("\nWhat failed, by judge:\n")[2].partition(":\n")[0]
    raw, by_people, corrected, *parts = head.splitlines()[:-1]
    assert raw == "  34 of 240 traces with an outcome failed, 14 %."
    assert by_people == "  By thumb 32 of 80 (40 %) failed." and corrected.startswith("  Corrected by these, ")
    assert corrected.endswith("of all 240 failed.") and head.count("% interval") == 1
    assert not parts
    rate = head.partition("Corrected by these, ")[2].partition(" of all")[0]
    assert f"With what judge says of the others, {rate} of all 240 failed." in people
    low, high = (int(end) for end in rate.partition("interval ")[2].removesuffix(" %)").split(" to "))
    assert low < 40 < high
    with Path(path).open("a") as more:
        more.write('{"trace_id": "lost", "events": [{"type": "nonsense"}]}\n')
    refused = said("summary", path, "--reward-channel", "judge", "--allow-bad")
    assert f"\n  Corrected by these, {rate} of all 240 that were read failed.\n" in refused
    (path, *_) = log(tmp_path, (0.7, 0.7), people="")
    unsaid = said("summary", path, "--reward-channel", "judge")
    assert f"\n  If these are right, {rate} of all 240 failed.\n" in unsaid, "the log says not who"
    (few, *_) = log(tmp_path, (0.7, 0.7), people="people", runs=18)
    told = said("summary", few, "--reward-channel", "judge")
    assert "By thumb 2 of 6 failed: too few to correct the rate by." in told


def test_people_that_chose_runs_are_said_to_have(tmp_path: Path) -> None:
    (path, *_) = log(tmp_path, (0.7, 0.7), people="people")
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for line in lines:  # people look at long ones
        line["events"] += [
            {"id": f"e{i}", "type": "message", "agent": "a"} for i in range(3 * ("thumb" in line["rewards"]))
        ]
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = said("summary", path, "--reward-channel", "judge")
    assert "of all 240 failed, if others are like these, which differ beyond chance: events 4 and 1." in told
    told = said("summary", path, "--reward-channel", "thumb")
    assert "With what judge says of the others, and if these are like them, " in told, "no rate of all was told"


def test_thirty_runs_have_an_interval_of_their_rate(tmp_path: Path) -> None:
    """`success 0.5333 –` was all, for fewer than 40 tasks."""
    (path, *_) = log(tmp_path, (0.0, 0.0), people="people", runs=90)
    thumbs = path, "--reward-channel", "thumb"
    row = next(line.split() for line in said("metrics", *thumbs).splitlines() if line.startswith("success "))
    assert row[:2] + row[3:4] + row[5:] == ["success", "0.6", "to", "30", "30"] and row[2] < "0.43" < "0.75" < row[4]
    for line in (lines := [json.loads(line) for line in Path(path).read_text().splitlines()]):
        del line["rewards"]["judge"]
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "12 of 30 traces with an outcome failed, 40 % (95 % interval 24 to 58 %)." in said("summary", *thumbs)


def test_grades_are_said_not_to_be_corrected_and_success_at_is_what_corrects_them(tmp_path: Path) -> None:
    """Of a judge that grades, nothing said that people's verdicts correct nothing, and that it may have changed."""
    path, *sides = log(tmp_path, (0.05, 0.8), people="people")
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for i, line in enumerate(lines):
        line["rewards"]["judge"] = 0.6 * line["rewards"]["judge"] + 0.04 * (i % 10)  # above 0.5 where it passes
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    call = ["summary", path, *sides, "--reward-channel", "judge"]
    told = said(*call)
    assert "\n  By thumb 32 of 80 (40 %) failed.\n  Grades of judge do not correct this rate: `--success-at`" in told
    assert (
        "How judge agrees with thumb (by people):\n  Too few traces to tell whether judge agrees: it ranks a " in told
        and "since judge passes more" not in told
    )
    told = said(*call, "--success-at", "0.5")
    assert "Corrected by these, " in told and "Grades" not in told and "since judge passes more" in told


def test_a_table_of_outcomes_is_called_by_its_name_and_means_over_tasks_are_said_to_be(tmp_path: Path) -> None:
    """It was "the 240 that team judged"; and "48 of 120 (40 %)" stood beside "0.611 to 0.6" without a word."""
    (path, *sides) = log(tmp_path, (0.7, 0.7), people="people")
    lines, rows = [], ["trace,reward"]
    for i, line in enumerate(map(json.loads, Path(path).read_text().splitlines())):
        lines.append(json.dumps(line | {"task_id": f"q{i // 2 * 2 // 7}.{i % 2}"}) + "\n")
        rows.append(f"t{i},{int(i % 10 < 6)}")
    Path(path).write_text("".join(lines))
    (table := tmp_path / "mine.csv").write_text("\n".join(rows) + "\n")
    told = said("summary", path, *sides, "--rewards", str(table))
    assert told.startswith("In short\nWhat failed, by mine.csv:\n") and " team " not in told
    assert "mine.csv agrees: it passes 0 of 32" in told
    assert re.search(
        r"\n  Success: no change shown \(0\.\d+ to 0\.\d+, means over tasks; a change of 0.* would be\)\.", told
    )
    once = said("summary", *log(tmp_path, (0.7, 0.7), people="people"), "--reward-channel", "thumb")
    assert "means over tasks" not in once.partition("Look at")[0]
