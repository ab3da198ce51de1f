"""What a verdict is worth: which failed traces it passes, and which succeeded ones it fails, where few fail too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.doctor.team_checks import examine
from credit.doctor.verdict_errors import MOST_WRONG, VerdictErrors, verdict_errors, wrong_parts
from credit.doctor.youden_interval import youden_interval
from credit.page import Findings
from credit.page.overview import overview
from credit.sides.chosen_sides import Sides
from graphs.event_types import EventType
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord

ROOT = Path(__file__).resolve().parents[2]


def log(
    outcome: Sequence[int | None],
    verdict: list[float | None],
    each: int = 1,
    systems: Sequence[str] = ("",),
    **more: float,
) -> Traces:
    """A trace for each outcome, `each` of one task, with a verdict where there is one; systems by turns."""
    records = []
    for i, (good, said) in enumerate(zip(outcome, verdict, strict=True)):
        rewards = {name: float(of) for name, of in (("team", good), ("checker", said)) if of is not None} | more
        record = TraceRecord(f"t{i}", f"q{i // each}", "x", instances={"a": Agent()}, rewards=rewards)
        record.system = systems[i % len(systems)]
        record.event("e", EventType.MESSAGE, "a", action=True)
        records.append(record)
    return assemble(records, reward="team")


def one(outcome: list[int], verdict: list[float | None], each: int = 1) -> VerdictErrors:
    (found,) = verdict_errors(log(outcome, verdict, each))
    return found


def test_a_checker_that_passes_everything_is_found_where_a_fifth_fails() -> None:
    """It said otherwise than the outcome in no more than a fifth of all traces, and was "not found"."""
    outcome = [int(i % 5 > 0) for i in range(400)]
    found = one(outcome, [1.0] * 400, each=5)
    assert found.counts() == (80, 80, 0, 320) and found.both.share == 1 and found.found is True
    finding = next(each for each in examine(log(outcome, [1.0] * 400, 5)) if each.check == "verdict_disagreement")
    assert finding.found and finding.words.startswith("checker passes 80 of 80 failed traces (100 %) and 320 of 320 ")
    assert one(outcome, [float(i % 5 > 0 or i == 5) for i in range(400)], each=5).found is False


VERDICTS: dict[str, tuple[Callable[[int, int], float], float, bool]] = {
    "passes all": (lambda i, good: 1.0, 1.0, True),
    "fails all": (lambda i, good: 0.0, 1.0, True),
    "passes most that failed": (lambda i, good: float(good or i % 10 > 0), 0.9, True),
    "fails most that succeeded": (lambda i, good: float(good and i % 10 == 1), 0.9, True),
    "says the opposite": (lambda i, good: 1.0 - good, 2.0, True),
    "is mostly right": (lambda i, good: float(good) if i % 10 else 1.0 - good, 0.2, False),
}


@pytest.mark.parametrize("words", VERDICTS)
def test_what_a_verdict_is_worth_by_hand(words: str) -> None:
    says, share, found = VERDICTS[words]
    outcome = [i % 2 if i < 80 else (i + 1) % 2 for i in range(160)]
    judged = one(outcome, [says(i, good) for i, good in enumerate(outcome)])
    both = judged.both
    assert both.share == pytest.approx(share, abs=0.11) and (both.low < both.share < both.high or share == 2)
    assert judged.found is found


def test_few_traces_and_runs_of_few_tasks_do_not_tell() -> None:
    outcome, passes = [0] * 3 + [1] * 20, [1.0, 1.0, 0.0] + [1.0] * 20
    few = one(outcome, list(passes))
    assert few.found is None and few.told().endswith("; these traces are too few to be sure")
    alone, apart = (one([0] * 20 + [1] * 20, [1.0] * 40, each) for each in (20, 1))
    assert alone.found is None and apart.found  # twenty runs of one task may all be misjudged alike
    only = one([0] * 20, [1.0] * 20)
    assert only.found and np.isnan(only.both.share)  # however it judges success
    assert only.as_json()["parts"]["refused"] == {"share": None, "low": 0.0, "high": 1.0}
    assert one([1] * 20, [*[1.0] * 19, 0.0]).found is None


AGREES = "checker agrees: it passes"
FEW = "checker agrees more than a coin, how much is unsure: it passes"


@pytest.mark.parametrize(
    ("passed", "opens"), [(2, AGREES), (10, FEW), (15, FEW), (20, FEW), (29, "checker says little: it passes")]
)
def test_the_plain_words_follow_the_interval(passed: int, opens: str) -> None:
    """A checker that passes 15 of 30 failed traces "agrees": its 50 points, 30 to 67, were not surely below the limit.
    Doctor's column had the lower end of its interval, 0.26, as the statistic beside a limit of 0.5."""
    outcome = [0] * 30 + [1] * 30
    traces = log(outcome, [float(good or i < passed) for i, good in enumerate(outcome)])
    (judged,) = verdict_errors(traces)
    low, high = judged.interval
    assert (opens == AGREES, opens == FEW) == (low > 0.5, low <= 0.5 <= high)
    assert judged.in_short("", True).startswith(f"{opens} {passed} of 30 failed traces")
    finding = next(each for each in examine(traces) if each.check == "verdict_disagreement")
    assert finding.statistic == pytest.approx(passed / 30) and finding.found is judged.found


@pytest.mark.parametrize(("each", "others", "opens"), [(1, 0, FEW), (1, 60, FEW), (5, 0, "Too few traces to tell")])
def test_a_verdict_that_is_right_of_few_failures_agrees_more_than_a_coin(each: int, others: int, opens: str) -> None:
    """ "Too few traces to tell whether ticket_closed agrees: it passes 0 of 5 and 13 of 13": by Fisher's test, p is
    0.0001. Others have a verdict alone; five runs of one task are one."""
    passes = [float(i > 5) for i in range(20)] + [float(i % 3 > 0) for i in range(others)]
    (judged,) = verdict_errors(log([0] * 5 + [1] * 15 + [None] * others, list(passes), each))
    assert np.isnan(judged.interval[0]) and judged.in_short("", True).startswith(opens)


def test_a_coin_is_seldom_called_more_than_one_whatever_it_chose() -> None:
    """Of six failed traces and fourteen others people see all that it rejects, and 60 % of what it passes."""
    rng, beats = np.random.default_rng(7), list[bool]()
    for i in range(400):
        outcome, passes = np.r_[np.zeros(6), np.ones(14)], rng.random(20) < (0.5, 0.8)[i % 2]
        seen = rng.random(20) < np.where(passes, 0.6, 1.0)
        known = [int(good) if saw else None for good, saw in zip(outcome, seen, strict=True)]
        beats += [one.beats_coin for one in verdict_errors(log(known, [*map(float, passes)]))]
    assert len(beats) > 350 and np.mean(beats) <= 0.05


def test_a_verdict_at_the_limit_that_is_known_well_agrees_in_part() -> None:
    """A judge with 53 points, 42 to 64, over 273 traces that people judged was "too few traces to tell"."""
    outcome = [0] * 90 + [1] * 180
    traces = log(outcome, [float(i < 38 or i >= 99) for i in range(270)])
    (judged,) = verdict_errors(traces)
    low, high = judged.interval
    assert judged.found is None and low < 0.5 < high and high - low < 0.3
    assert judged.in_short("", True).startswith("checker agrees in part: it passes 38 of 90 failed traces")
    assert "too few" not in judged.told()


@pytest.mark.parametrize(
    ("late", "opens"), [(1, AGREES), (6, "Too few traces to tell whether checker on v2 agrees: it passes")]
)
def test_the_sentence_names_the_system_that_decides(late: int, opens: str) -> None:
    """Only `doctor` named it: the head gave 74 points "too few to be sure", and others of 56 "agree"."""
    outcome = [i % 2 for i in range(200)] + [0] * 8 + [1] * 8
    passes = [float(good or (i >= 200 and i % 8 < late)) for i, good in enumerate(outcome)]
    (judged,) = verdict_errors(log(outcome, list(passes), systems=["v1"] * 200 + ["v2"] * 16))
    assert judged.interval[0] > 0.5 and judged.in_short("", True).startswith(opens)
    assert ("passes 6 of 8 failed traces and 8 of 8" in judged.in_short("", True)) is (late == 6)


@pytest.mark.parametrize(("late", "found"), [(25, True), (5, None), (0, False)])
def test_a_verdict_is_of_each_system(late: int, found: bool | None) -> None:
    """Of 113 runs of one version and 70 of the next, whose checker passes all that failed, it was "not found"."""
    outcome = [i % 2 for i in range(150)] + [i % 3 // 2 for i in range(3 * late // 2)]
    passes = [float(good or i % 10 == 0) for i, good in enumerate(outcome[:150])] + [1.0] * (3 * late // 2)
    traces = log(outcome, list(passes), systems=["v1"] * 150 + ["v2"] * len(outcome[150:]))
    (one,) = verdict_errors(traces)
    finding = next(each for each in examine(traces) if each.check == "verdict_disagreement")
    assert one.found is finding.found is found and one.both.share < MOST_WRONG
    assert finding.words == one.told() and one.told().endswith("too few to be sure") is (found is None)
    part = " (100 %)" * (late >= 20)
    of_late = f". Of system v2 it passes {late} of {late} failed traces{part} and {len(outcome[150:]) - late} of"
    assert (of_late in one.told()) is bool(late)
    assert not found or {*finding.traces} <= {f"t{i}" for i in range(150, 190)}
    assert one.as_json()["systems"].keys() == ({"v1", "v2"} if late else set())


@pytest.mark.parametrize("draws", [40, pytest.param(120, marks=pytest.mark.slow)])
def test_of_three_systems_no_more_checkers_are_found_at_the_limit(draws: int) -> None:
    rng = np.random.default_rng(8)
    count = 0
    for _ in range(draws):
        good = rng.random(90) < 0.5
        wrong = rng.random(90) < 0.25
        said = [float(x) for x in good != wrong]
        traces = log(good.astype(int).tolist(), list(said), 3, systems=["v1"] * 30 + ["v2"] * 30 + ["v3"] * 30)
        count += verdict_errors(traces)[0].found is True
    assert count <= 0.08 * draws


def test_channels_without_two_values_are_no_verdicts() -> None:
    assert verdict_errors(log([0, 1, 0, 1], [0.2, 0.5, 0.7, None])) == []
    traces = log([0, 1, 0, 1], [0.0, 1.0, 1.0, None], style=0.5)
    assert [found.name for found in verdict_errors(traces)] == ["checker"]
    assert verdict_errors(traces)[0].rows.tolist() == [0, 1, 2]


def test_the_sentence_stands_with_every_answer_and_by_side(tmp_path: Path) -> None:
    """Of a checker that came to pass everything `doctor` printed "not found", without a sentence."""
    path, sides = tmp_path / "log.jsonl", tmp_path / "sides.csv"
    lines, rows = [], ["trace,side"]
    for i in range(120):  # the old checker catches every second failed run, the new one none
        good, new = float(i % 5 > 1), i % 2
        rewards = {"team": good, "checker": 1.0 if good or new else float(i % 4 > 1)}
        event = {"id": "e", "type": "message", "agent": "a"}
        line = {"schema_version": "1.0", "trace_id": f"t{i}", "task_id": f"q{i // 4}", "events": [event]}
        lines.append(json.dumps(line | {"rewards": rewards}) + "\n")
        rows.append(f"t{i},{'new' if new else 'old'}")
    path.write_text("".join(lines))
    sides.write_text("\n".join(rows) + "\n")

    def said(*call: str) -> str:
        return " ".join(CliRunner().invoke(cli, [call[0], str(path), *call[1:]], catch_exceptions=False).stdout.split())

    counts = "checker passes 36 of 48 failed traces (75 %) and 72 of 72 succeeded ones (100 %; it rejects 0)"
    sums = "a difference of 25 percentage points (95 % interval 9 to 39). A perfect verdict has 100, a coin 0."
    assert f"verdict_disagreement: {counts}, {sums}" in said("doctor")
    assert f"checker says little: it {counts.removeprefix('checker ')}, {sums}" in said("summary")
    changed = "ailures that checker passes 12 of 24 (50 %) to 24 of 24 (100 %), beyond chance"
    by_side = f"F{changed}."
    compared = said("metrics", "--sides", str(sides))
    assert by_side in compared and f"{counts}, {sums}" in compared and "up: failures that checker passes" in compared
    for call in (("doctor",), ("summary",), ("metrics", "--sides", str(sides))):
        (stated,) = json.loads(said(*call, "--json"))["verdicts"]
        assert (stated["name"], stated["found"], stated["passed"], stated["failed"]) == ("checker", True, 36, 48)
    assert [round(100 * end) for end in stated["interval"]] == [9, 39]
    assert stated["by_side"]["new"] == {"passed": 24, "failed": 24, "refused": 0, "succeeded": 36}
    traces, chosen = Sides.joined(str(sides), credit.read(path))
    shown = overview(Findings.of(traces, {"rloo": credit.run(traces, "rloo")}, sides=chosen))
    assert f"{shown['verdicts'][0]['told']}." == f"{counts}, {sums}" and by_side in shown["sides"]["lines"]
    assert f"f{changed}" in shown["sides"]["origin"]
    mended = (
        re.sub('"checker": ..0', f'"checker": {i % 5 > 1:d}', line) if i % 2 else line for i, line in enumerate(lines)
    )
    path.write_text("".join(mended))
    told = (
        "checker passes 12 of 48 failed traces (25 %) and 72 of 72 succeeded ones (100 %; it rejects 0), a difference"
    )
    assert (
        told in said("doctor")
        and f"What a verdict is worth: {told.replace(' passes', ' agrees: it passes', 1)} of 75 percentage points (95 %"
        in said("summary")
    )


@pytest.mark.parametrize("people", ["thumb", "team"])
def test_a_judge_that_is_the_outcome_is_held_against_people(tmp_path: Path, people: str) -> None:
    """With the judge as the outcome "30 of 225 failed", and nothing said that it passes two thirds of the runs that
    people reject; still nothing did where what people say was the outcome unless another is chosen."""
    lines = []
    for i in range(120):  # people reject a third, and the judge a third of these
        rewards = {"judge": float(i % 9 > 0)} | ({people: float(i % 3 > 0)} if i < 90 else {})
        event = {"id": "e", "type": "message", "agent": "a"}
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i}", "events": [event], "edges": [], "rewards": rewards})
    (log := tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def said(channel: str, *more: str) -> str:
        call = ["summary", str(log), "--reward-channel", channel, *more]
        return CliRunner().invoke(cli, call, catch_exceptions=False).stdout

    rejects = f"judge says little: it passes 65 % of traces that {people} rejects and 100 %"
    seen = "20 of 30 and 60 of 60 seen, weighted by its verdict to all 120 that it judged"
    passes = f"{rejects} of those that {people} passes ({seen}), "
    assert f"\nHow judge agrees with {people}:\n  {passes}" in said("judge")
    assert f"Also in the log, by `--reward-channel`: {people} of 90 traces" in said("judge")
    assert ("; of those that judge rejects, thumb passes 0 of 10." in said(people)) == (people == "thumb")
    assert ("What a verdict is worth:\n" in said(people)) == (people == "team")
    marked = (json.loads(line) | {"metrics": {f"{people} by people": 1.0}} for line in log.read_text().splitlines())
    log.write_text("".join(f"{json.dumps(line)}\n" for line in marked))
    assert f"\nHow judge agrees with {people} (by people):\n  {passes}" in said("judge")
    (stated,) = json.loads(said("judge", "--json"))["verdicts"]
    assert (stated["name"], stated["against"], stated["passed"], stated["failed"]) == ("judge", people, 20, 30)
    assert ("How judge agrees with thumb (by people):\n" in said(people)) == (people == "thumb")


def two_judges() -> Traces:
    """120 runs, whose tests are right and whose review passes nearly all; people rated 60."""
    records = []
    for i in range(120):
        rewards = {"tests": float(i % 3 > 0), "review": float(i % 40 > 0)}
        rewards |= {"people": rewards["tests"]} if i < 60 else {}
        record = TraceRecord(f"t{i}", f"q{i}", "x", instances={"a": Agent()}, rewards=rewards)
        record.event("e", EventType.MESSAGE, "a", action=True)
        records.append(record)
    return assemble(records, reward="tests")


def test_a_verdict_is_found_whichever_of_them_says_little() -> None:
    """Of 54 rated runs the tests were right and the review passed all; the row was that of the tests, not found."""
    traces = two_judges()
    first, second = verdict_errors(traces)
    assert (first.name, first.found, second.name, second.found) == ("tests", False, "review", True)
    finding = next(each for each in examine(traces) if each.check == "verdict_disagreement")
    assert finding.found and finding.statistic == second.both.share and finding.words == second.told()


def test_of_several_verdicts_the_head_names_first_the_one_that_says_little(tmp_path: Path) -> None:
    """ "How tests agrees with people" was the only line, and the review that passes all was not named."""
    lines = []
    for i in range(120):
        rewards = {"tests": float(i % 3 > 0), "review": float(i % 40 > 0)}
        rewards |= {"people": rewards["tests"]} if i < 60 else {}
        event = {"id": "e", "type": "message", "agent": "a"}
        line = {"trace_id": f"t{i}", "task_id": f"q{i}", "events": [event], "edges": [], "rewards": rewards}
        lines.append(json.dumps(line) + "\n")
    (log := tmp_path / "log.jsonl").write_text("".join(lines))

    call = ["summary", str(log), "--reward-channel", "tests"]
    said = CliRunner().invoke(cli, call, catch_exceptions=False).stdout
    _, head, detail = said.split("\nHow verdicts agree with people:\n  ")
    (first, *_), (second, beside, *_) = head.split("\n"), detail.split("\n  ")
    assert first.startswith("review says little: it passes 96 % of traces that people reject and 98 % of those ")
    assert first.endswith("; full agreement has 100, a coin 0.")
    assert second.startswith(
        "tests agrees: it passes 0 of 20 (0 %) and 40 of 40 (100 %), a difference of 100 (95 % interval "
    )
    assert beside.startswith(
        "Held against tests, on 120 traces: review hardly agrees: it passes 39 of 40 failed traces (98 %) and 78 of"
    )


def drawn(
    rng: np.random.Generator, parts: tuple[float, float], alike: float, both: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Traces of 8 to 40 tasks with up to 6 runs: whose verdict is wrong, who succeeded, and their tasks.

    With the chance `alike` a run is misjudged as others of its task and kind; with `both`, of either kind.
    """
    tasks = int(rng.integers(8, 41))
    task = np.repeat(np.arange(tasks), rng.integers(1, 7, tasks))
    failing = rng.uniform(0.1, 0.7)
    good = rng.random(len(task)) > rng.beta(3 * failing, 3 * (1 - failing), tasks)[task]
    own, of_task = rng.random(len(task)), rng.random((2, tasks))
    luck = np.where(rng.random(len(task)) < alike, of_task[good.astype(int) * (not both), task], own)
    return luck < np.where(good, parts[1], parts[0]), good, task


HONEST = [(0.2, 0.2), (0.25, 0.05), (0.05, 0.25), (0.4, 0.0), (0.0, 0.4)]
AT_LIMIT = [(0.5, 0.0), (0.25, 0.25), (0.1, 0.4)]


@pytest.mark.parametrize("draws", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("alike", "both"), [(0.0, False), (0.5, True), (1.0, False), (1.0, True)])
def test_the_interval_holds_the_difference(alike: float, both: bool, draws: int) -> None:
    """It had no level: 90 % for one system, 97.5 % for two, of runs that are all judged as the others of their task."""
    rng, rights = np.random.default_rng(7), list[bool]()
    for parts in (*HONEST, *AT_LIMIT, (0.7, 0.2), (0.5, 0.45), (0.9, 0.05), (0.05, 0.05)):
        for _ in range(draws):
            low, high = youden_interval(*drawn(rng, parts, alike, both))
            rights += [low <= 1 - sum(parts) <= high] * bool(np.isfinite(low))
    known_to = 2 * (0.05 * 0.95 / len(rights)) ** 0.5
    assert len(rights) > 5 * draws and 0.93 - known_to <= np.mean(rights) <= 0.97 + known_to


def count_found(seed: int, worlds: list[tuple[float, float]], draws: int, alike: float, both: bool = False) -> int:
    """How many of the checkers that are drawn are found."""
    rng = np.random.default_rng(seed)
    drawings = [drawn(rng, parts, alike, both) for parts in worlds for _ in range(draws // len(worlds))]
    return sum(
        VerdictErrors(
            "", np.flatnonzero(good), good, wrong, *wrong_parts(wrong, good, task, 0.05),
            interval=youden_interval(wrong, good, task),
        ).found is True
        for wrong, good, task in drawings
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("alike", "both"), [(0.0, False), (1.0, False), (1.0, True)])
def test_no_more_checkers_are_found_at_the_limit_than_are_to_be(alike: float, both: bool) -> None:
    assert count_found(11, AT_LIMIT, 3000, alike, both) <= 150


@pytest.mark.slow
def test_the_page_says_how_many_checkers_are_found() -> None:
    said = " ".join((ROOT / "docs/doctor.md").read_text().split())
    false, few = count_found(11, HONEST, 4000, 0.5), count_found(12, [(1.0, 0.0)], 1000, 0.3)
    assert f"Found were {false} of 4,000 drawn checkers with 0.3 or 0.4" in said
    assert f"{few} of 1,000 that pass everything, in 8 to 40 tasks" in said
