"""A model, tool or agent that came with a release took the blame of it: with sides, causes are tested within them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from credit.cli import cli
from credit.reports.leading_causes import leading_causes
from credit.reports.outcome_differences import outcome_differences
from graphs.event_types import EventType
from graphs.logs import read
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from graphs.writers.native import write

DAYS = 86400.0
START = 1_772_409_600.0  # 2 March 2026


def runs_of(
    random: np.random.Generator,
    *,
    tasks: int = 24,
    runs: int = 2,
    release: float = 0.5,
    model: float = 0.0,
    tool: float = 0.0,
    hard: float = 0.1,
) -> tuple[list[TraceRecord], np.ndarray]:
    """Runs before and after a release that brings a small model, a tool that may fail and an agent, and makes so many
    more runs fail; so do the model and the tool. A tool of both sides fails by chance, and an agent acts by chance."""
    records, hardness = [], random.uniform(-hard, hard, tasks)
    for number in range(2 * tasks * runs):
        side, task = number // (tasks * runs), number % tasks
        name = f"t{number}"
        one = TraceRecord(
            name, f"q{task}", "log.jsonl", instances={who: Agent(who) for who in ("lead", "coder", "aide", "new")}
        )
        small, broken = side and random.random() < 0.6, side and random.random() < 0.4
        failed = random.random() < 0.15 + hardness[task] + release * side + model * small + tool * broken
        moment = START + (14 * side + random.uniform(0, 12)) * DAYS

        def act(agent: str, of: str = "big", one: TraceRecord = one, moment: float = moment) -> None:
            one.event(f"e{len(one.ids)}", EventType.MESSAGE, agent, action=True, model=of, time=moment + len(one.ids))

        act("lead")
        act("coder", "small" if small else "big")
        for called, wrong in (("sql", random.random() < 0.3), ("migrate", broken))[: 1 + side]:
            status = "error" if wrong else "ok"
            one.event(called, EventType.TOOL_CALL, "lead", action=False, tool=called, status=status, time=moment + 5)
        for agent in ["aide"] * (random.random() < 0.5) + ["new"] * bool(side and random.random() < 0.5) + ["lead"]:
            act(agent)
        one.rewards["team"] = float(not failed)
        records.append(one)
    return records, np.repeat([0, 1], tasks * runs)


def blamed(random: np.random.Generator, worlds: int, **world: float) -> list[list[str]]:
    """The causes beyond chance in each of so many worlds."""
    found = []
    for _ in range(worlds):
        records, side = runs_of(random, **world)  # type: ignore[arg-type]
        causes = leading_causes(assemble(records), side=side)
        found.append([one.words for one in causes if one.beyond_chance])
    return found


NULLS: tuple[dict[str, float], ...] = (
    {}, {"runs": 4, "tasks": 12}, {"runs": 1}, {"hard": 0.5}, {"runs": 1, "tasks": 40, "hard": 0.5},
)  # fmt: skip


def test_what_came_with_a_release_takes_no_blame_of_it() -> None:
    """In 44 to 94 % of such logs it did."""
    assert sum(map(bool, blamed(np.random.default_rng(2), 30))) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("world", NULLS)
def test_in_one_log_of_20_at_most_something_is_blamed_for_a_release(world: dict[str, float]) -> None:
    found = blamed(np.random.default_rng(3), 240, **world)
    assert sum(map(bool, found)) <= 0.05 * 240 + 2 * (0.05 * 0.95 * 240) ** 0.5


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("world", [{"runs": 1, "tasks": 60}, {"runs": 4}])  # both sides have two runs of a task in 58 %
@pytest.mark.parametrize(
    ("of", "words"), [("model", "runs in which coder has small"), ("tool", "unrecovered errors of migrate by lead")]
)
def test_what_makes_runs_of_a_release_fail_is_named(of: str, words: str, world: dict[str, float]) -> None:
    found = blamed(np.random.default_rng(4), 10, release=0.1, **world, **{of: 0.6})
    assert sum(words in causes for causes in found) >= 7, found


def logs(folder: Path, seed: int, **world: float) -> tuple[Path, Path, Traces]:
    """A file of such runs, a table of their sides, and what is read of the file."""
    records, side = runs_of(np.random.default_rng(seed), **world)  # type: ignore[arg-type]
    log, table = folder / "log.jsonl", folder / "release.csv"
    write(assemble(records), log)
    rows = [f"{one.trace_id},r{1 + of}" for one, of in zip(records, side.tolist(), strict=True)]
    table.write_text("\n".join(["trace,side", *rows]))
    return log, table, read(log)


def run(*arguments: object) -> str:
    return CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False).stdout


ALONE = re.compile(
    r"Only on one side:\n  Runs in which coder has small in (\d+) of \d+ failed traces and (\d+) of \d+ succeeded ones "
    r"\(all in r2, where (\d+) of (\d+) runs with it succeeded and \d+ of \d+ without it: it cannot be told from the "
    r"side\)"
)


def test_what_one_side_alone_has_is_told_as_such_by_every_command(tmp_path: Path) -> None:
    log, table, traces = logs(tmp_path, 1)
    printed = run("summary", log, "--sides", table)
    (told,) = ALONE.finditer(printed)
    lost, won, succeeded, of = map(int, told.groups())
    assert (won, lost + won) == (succeeded, of), "all of them are on one side"
    assert "In r1 0 of" not in printed[told.start() :].partition("\n")[0], "said once"
    assert "runs in which coder has small" not in printed.partition("Look at these first")[2]
    (line,) = re.findall(r"Failed by model of coder.*", printed)
    assert line.startswith("Failed by model of coder within a side, mean over ") and "beyond chance" not in line
    (cause, *_) = [
        one for one in json.loads(run("summary", log, "--sides", table, "--json"))["causes"] if one["one_side"]
    ]
    assert (
        cause["one_side"]["head"] == "r2" and cause["one_side"]["with_it"] == [won, of] and not cause["beyond_chance"]
    )
    run("report", log, "--sides", table, "-o", tmp_path / "page.html")
    assert told.group().partition(": Runs")[2] in (tmp_path / "page.html").read_text()
    side = np.arange(traces.sizes.traces) // (traces.sizes.traces // 2)
    every = leading_causes(traces, side=np.where(side == 1, 1, -1))
    assert not any(one.one_side for one in every), "no other side tells"


def test_what_all_runs_of_a_side_have_is_told_apart_from_nothing(tmp_path: Path) -> None:
    """The model of all runs of a release."""
    records, side = runs_of(np.random.default_rng(5))
    for one, of in zip(records, side.tolist(), strict=True):
        one.columns["model"][1] = "small" if of else "big"
    causes = leading_causes(assemble(records), side=side, heads=("r1", "r2"))
    (told,) = [one.told() for one in causes if one.words == "runs in which coder has small"]
    assert re.search(
        r"\(in all runs of r2, where \d+ of 48 runs with it succeeded, and in no other: it cannot be told from the "
        r"side\)$",
        told,
    )
    lines = outcome_differences(assemble(records), side=side).comparison()
    cannot = "The model of coder cannot be told apart from the side: no side has two models in one task."
    assert cannot in lines
    lines = outcome_differences(assemble(records), side=side, of_model="model:coder").comparison()
    assert cannot not in lines, "the sides are these models"
    assert not any(" has " in one.words for one in leading_causes(assemble(records), side=side, of_model="model:coder"))


def test_a_model_that_ran_mostly_later_is_not_told_from_time(tmp_path: Path) -> None:
    """A release made its runs fail, and `--sides model:coder` blamed the model that came with it."""
    log, _, _ = logs(tmp_path, 1)
    told = (
        r"[Tt]ime may be why: big ran mostly before small; from 2026-03-16 to 2026-03-2\d, when both ran, success "
        r"0\.\d+ to 0\.\d+ in \d+ tasks, no change shown( \([^()]*\))?\."
    )
    assert re.search(f"But {told}\n", run("metrics", log, "--sides", "model:coder"))
    head = run("summary", log, "--sides", "model:coder").partition("\nWhat changed from big to small:\n")[2]
    assert re.search(f"^  {told}$", head, re.M)
    plain = json.loads(run("metrics", log, "--sides", "model:coder", "--json"))
    assert any(re.fullmatch(told, line) for line in plain["caveats"]) and plain["in_time"]
    records, side = runs_of(np.random.default_rng(1))
    for one, of in zip(records, side.tolist(), strict=True):
        one.columns["model"][1] = "small" if of else "big"
    write(assemble(records), log)
    said = run("metrics", log, "--sides", "model:coder")
    assert "But time may be why: big ran before small.\n" in said, "no time has both"
    assert said.index("\nmetric ") < said.index("But "), "four lines of But stood before the numbers"
    for one in records:
        one.times = [moment - 14 * DAYS * (one.columns["model"][1] == "small") for moment in one.times]
    write(assemble(records), log)
    assert "time may be why" not in run("metrics", log, "--sides", "model:coder"), "they ran at once"


def test_sides_of_a_date_have_names_that_sentences_take(tmp_path: Path) -> None:
    """ "from 2026-03-16 is worse than before 2026-03-16"."""
    log, _, _ = logs(tmp_path, 1)
    printed = run("summary", log, "--sides", "before=2026-03-16")
    assert "What changed from 16 March on:\n  Runs are worse than before (success 0." in printed
    assert re.search(r"In more detail\nWhat failed:\n  Before 16 March \d+ of 48 \(\d+ %\), later \d+ of 48", printed)
    assert "from 2026-03-16" not in printed
    measured = run("metrics", log, "--sides", "before=2026-03-16")  # of 14 lines 9 had "runs before 16 March" in full
    assert "What changed from 16 March on: success 0." in measured and measured.count("16 March") == 1
    assert re.search(r"^metric +earlier runs +later runs ", measured, re.M)
    hour = run("summary", log, "--sides", "before=2026-03-16T08:30:00+02:00")
    assert "16 March 06:30" in hour and "T08:30" not in hour
    plain = json.loads(run("metrics", log, "--sides", "before=2026-03-16", "--json"))
    assert plain["sides"] == ["before 2026-03-16", "from 2026-03-16"]


def test_a_table_named_after_models_is_of_these(tmp_path: Path) -> None:
    """ "But the model of coder changed with the side, so what it did cannot be told from the rest": it was the side."""
    log, table, _ = logs(tmp_path, 1)
    records, _ = runs_of(np.random.default_rng(1))
    for names, said in ((("big", "small"), False), (("a", "b"), True)):
        rows = [f"{one.trace_id},{names[one.columns['model'][1] == 'small']}" for one in records[48:]]
        table.write_text("\n".join(["trace,side", *rows]))
        printed = run("metrics", log, "--sides", table)
        assert ("The model of coder" in printed or "the model of coder" in printed) == said, printed


def test_a_model_that_is_blamed_without_sides_is_told_to_have_run_later() -> None:
    """A release that nobody named made its runs fail: the model was beyond chance, without a word on time."""
    records, side = runs_of(np.random.default_rng(1))
    told = "; these runs began mostly later than others: time may be why; `--sides model:coder` compares them)"
    (cause,) = [one for one in leading_causes(assemble(records)) if one.words == "runs in which coder has small"]
    assert cause.beyond_chance and cause.told().endswith(told), cause.told()
    for one in records:
        one.times = [moment - 14 * DAYS * (int(side[records.index(one)]) > 0) for moment in one.times]
    (cause,) = [one for one in leading_causes(assemble(records)) if one.words == "runs in which coder has small"]
    assert cause.beyond_chance and cause.in_time == "" and "time may be why" not in cause.told()
