"""The survey of logs on a real Ray cluster: that of one process, damage included."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

ray = pytest.importorskip("ray")

import credit  # noqa: E402
import credit.ray  # noqa: E402
from credit.cli import cli  # noqa: E402
from credit.reports.corpus import survey  # noqa: E402
from graphs.errors import CreditError, NothingReadError, Problem  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def trace(name: str, task: str, outcome: float | None, length: int, model: str = "m") -> str:
    events = [
        {"id": f"e{k}", "type": "message", "agent": f"a{k % 3}"} | ({"tokens": 7 * k} if length % 2 else {})
        for k in range(length)
    ]
    rewards = {"format": 1.0} if outcome is None else {"team": outcome}
    made = {"trace_id": name, "task_id": task, "model": model, "events": events, "rewards": rewards}
    made |= {"evidence": {"policy_version": 0}}  # files are of one step
    return json.dumps(made) + "\n"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Groups of every kind over several files, with damage of several kinds."""
    folder = tmp_path_factory.mktemp("logs")
    kinds = {
        "mixed": (0.0, 1.0, 0.5), "even": (1.0, 1.0, 1.0), "lone": (1.0,), "half": (None, 0.5), "none": (None, None)
    }  # fmt: skip
    rows = [
        trace(f"{kind}-{copy}-{number}", f"{kind}-{copy}", outcome, 1 + (copy + number) % 5, "n" if copy == 3 else "m")
        for number in range(3)
        for copy in range(6)
        for kind, outcomes in kinds.items()
        if number < len(outcomes)
        for outcome in outcomes[number : number + 1]
    ]
    rows.append(trace("mixed-0-9", "mixed-0", 1.0, 2, model="another"))  # a task of two models
    rows.append(trace("mixed-1-0", "mixed-1", 1.0, 2))  # an id that occurs twice
    rows.append(trace("odd", "mixed-2", 0.25, 2).replace('"message"', '"no type"'))
    rows.append('{"trace_id": "torn", \n')
    for file in range(7):
        (folder / f"{file}.jsonl").write_text("".join(rows[file::7]))
    (folder / "bad.jsonl").write_text("{broken\n")
    (folder / "notes.md").write_text("no log")
    return folder


def _without_the_ids_left(problem: Problem) -> str:
    """A row that matches no trace names, in one process, those that no row names: workers alone know their ids."""
    if problem.kind != "unmatched-row":
        return str(problem)
    stated, hint, _ = problem.expected.partition(". Traces without a row ")
    assert hint and stated == "the id of a trace that was read, whose reward the row states"
    return str(dataclasses.replace(problem, expected=stated))


def test_the_survey_is_that_of_one_process(logs: Path) -> None:
    rewards = {"lone-0-0": 0.125, "nobody": 1.0}
    for options in ({}, {"rewards": rewards}, {"group_by": "task"}):
        one = survey(credit.read(logs, **options))  # type: ignore[arg-type]
        for events in (1, 20, 1_000_000):
            many = credit.ray.validate(logs, events=events, **options)  # type: ignore[arg-type]
            assert sorted(map(str, many.problems)) == sorted(map(_without_the_ids_left, one.problems))
            assert dataclasses.replace(many, problems=one.problems) == one
            for name in ("equal", "mixed", "group_sizes"):  # in the order of one process, too
                assert list(getattr(many, name)) == list(getattr(one, name))
    assert one.divided == 0 and one.mixed and len(one.problems) >= 3 and one.tokens_per_trace is not None


def test_the_command_prints_what_one_process_prints(logs: Path) -> None:
    printed = {}
    for engine in ([], ["--engine", "ray", "--chunk-events", "20"]):
        for also in ([], ["--json"]):
            done = CliRunner().invoke(cli, ["validate", str(logs), *engine, *also])
            assert done.exit_code == 3, done.output
            printed[bool(engine), bool(also)] = done.output
    one, many = (printed[engine, False].split("problems (")[0] for engine in (False, True))
    assert many == one
    one_json, many_json = (json.loads(printed[engine, True]) for engine in (False, True))
    for plain in (one_json, many_json):
        plain["problems"] = sorted(map(str, plain["problems"]))
    assert many_json == one_json


def test_a_note_on_the_batch_is_one_for_all_parts(tmp_path: Path) -> None:
    """It shows what the first part has, and counts the parts that have it."""
    for file in range(2):
        rows = [trace(f"{group}-{file}-{i}", group, float(i), 2) for group in ("q", "r") for i in range(2)]
        (tmp_path / f"{file}.jsonl").write_text("".join(rows).replace("policy_version", "cost"))
    said = {
        events: [(problem.value, problem.count) for problem in credit.ray.validate(tmp_path, events=events).problems]
        for events in (1, 1_000_000)
    }
    end = ", in 2 files, and no step or policy_version is read"
    assert said == {1: [(f"'q'{end}", 2)], 1_000_000: [(f"'q' and 1 other group{end}", 1)]}


def test_what_stands_in_the_place_of_outcomes_is_said_alike(tmp_path: Path) -> None:
    """The cluster's survey did not say it. The first trace that can be read decides, whatever its part."""
    rows = [trace(f"t{i}", f"q{i % 3}", 1.0, 2).replace('"rewards": {"team": 1.0}', '"x": 1') for i in range(9)]
    rows[0] = rows[0].replace('"message"', '"no type"')
    rows[1] = rows[1].replace('"x"', '"score"')
    rows[2] = rows[2].replace('"x"', '"success"')
    (tmp_path / "log.jsonl").write_text("".join(rows))
    said = []
    for engine in ([], ["--engine", "ray", "--chunk-events", "2"]):
        done = CliRunner().invoke(cli, ["validate", str(tmp_path), *engine])
        said.append(done.output)
    assert said[0] == said[1] and "found key 'score': a native log states rewards.team" in said[0]


def test_what_is_refused(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(trace("t", "q", 1.0, 1).replace('"message"', '"no type"'))
    with pytest.raises(NothingReadError, match="no trace could be read"):
        credit.ray.validate(tmp_path)
    for words, *options in (
        ("expected both", "--chunk-events", "5"),
        ("no trace has a reward 'other'; the logs have: team, format", "--engine", "ray", "--reward-channel", "other"),
        ("--engine reads native logs", "--engine", "ray", "--format", "otlp"),
    ):
        done = CliRunner().invoke(cli, ["validate", str(logs), *options])
        assert done.exit_code == 1 and words in done.output, done.output
    with pytest.raises(CreditError, match="no trace could be read"):
        credit.ray.validate(logs / "bad.jsonl")
