"""A run that several logs of one reading hold counts once; one with two scores counts nowhere."""

from __future__ import annotations

import itertools
import json
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest

from graphs.errors import Problem
from graphs.formats.inspect_ai import read as read_inspect
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.batch import Traces
from graphs.traces.record import TraceRecord
from graphs.writers import inspect_logs

from .samples import NEMO_GYM, NEMO_RL, OPENHANDS, RESULT, SKYRL, TAU2, VERL


def sample(epoch: int, value: str | float | None, uuid: str, **more: Any) -> dict[str, Any]:
    scores = {} if value is None else {"match": {"value": value}}
    events = [{"event": "model", "uuid": f"m{uuid}", "output": {"choices": [{}]}}]
    return {"id": 1, "epoch": epoch, "uuid": uuid, "input": "q", "scores": scores, "events": events} | more


def log(path: Path, status: str, samples: list[dict[str, Any]]) -> Path:
    header = {"version": 2, "status": status, "eval": {"task": "quiz", "task_id": "T1", "model": "m"}}
    path.write_text(json.dumps(header | {"samples": samples}))
    return path


KEPT = [sample(1, "C", "u1"), sample(2, "I", "u2"), sample(3, "I", "u3")]
WHOLE = [*KEPT, sample(4, "C", "u4")]


def kinds(traces: Traces) -> list[tuple[str, str, bool]]:
    return [(problem.kind, Path(problem.file).name, problem.is_failure) for problem in traces.problems]


@pytest.mark.parametrize("failed, retried", [("01.json", "02.json"), ("02.json", "01.json"), ("a.json", "long.json")])
def test_a_retry_counts_what_it_kept_once(tmp_path: Path, failed: str, retried: str) -> None:
    final = log(tmp_path / retried, "success", WHOLE)
    alone = read(final)
    log(tmp_path / failed, "error", KEPT)
    both = read(tmp_path)
    assert both.traces.equals(alone.traces) and both.reward[:4].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert kinds(both) == [("repeated-run", failed, False)] * 3
    assert [problem.trace[-1] for problem in both.problems] == ["1", "2", "3"]
    assert repr(str(final)) in both.problems[0].value and both.problems[0].field == "samples[0].uuid"


def test_the_order_of_the_files_says_nothing(tmp_path: Path) -> None:
    paths = [
        log(tmp_path / "a.json", "error", KEPT[:2]),
        log(tmp_path / "b.json", "error", KEPT),
        log(tmp_path / "c.json", "success", [*WHOLE, sample(5, "C", "u5")]),
        log(tmp_path / "d.json", "success", [sample(5, "I", "u5"), sample(6, "C", "u6")]),
    ]
    found = {
        (
            frozenset(item.trace_id for item in items if isinstance(item, TraceRecord)),
            frozenset(item for item in items if isinstance(item, Problem)),
        )
        for order in itertools.permutations(paths)
        for items in [list(read_inspect([Source(str(path), path) for path in order]))]
    }
    ((traces, problems),) = found
    assert sorted(traces) == ["c/1/1", "c/1/2", "c/1/3", "c/1/4", "d/1/6"]
    assert sorted((problem.kind, problem.trace) for problem in problems if problem.is_failure) == [
        ("disagreeing-rewards", "c/1/5"),
        ("disagreeing-rewards", "d/1/5"),
    ]


def test_two_scores_of_a_sample_refuse_both(tmp_path: Path) -> None:
    log(tmp_path / "1.json", "success", [sample(1, "C", "u1"), sample(2, "C", "u2")])
    log(tmp_path / "2.json", "success", [sample(1, "I", "u1"), sample(2, 1.0, "u2")])
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["1/1/2"]
    first, second, again = sorted(traces.problems, key=lambda problem: (problem.kind, problem.file))
    assert (first.kind, first.trace, second.kind, second.trace) == (
        "disagreeing-rewards", "1/1/1", "disagreeing-rewards", "2/1/1"
    )  # fmt: skip
    assert "2.json" in first.expected and "1.json" in second.expected and first.is_failure
    assert (again.kind, again.trace) == ("repeated-run", "2/1/2")


def test_a_log_before_it_is_scored_gives_way(tmp_path: Path) -> None:
    log(tmp_path / "1.json", "success", [sample(1, None, "u1")])
    log(tmp_path / "1-scored.json", "success", [sample(1, "C", "u1")])
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["1-scored/1/1"] and traces.reward[0] == 1
    assert kinds(traces) == [("repeated-run", "1.json", False)]


def test_a_log_with_advantages_beside_its_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"task": "quiz"}}))
        for one in WHOLE:
            file.writestr(f"samples/1_epoch_{one['epoch']}.json", json.dumps(one))
    alone = read(path)
    inspect_logs.write(alone, [1.0] * 4, [True] * 4, tmp_path / "credited")
    both = read(tmp_path)
    assert both.traces.num_rows == 4 and set(both.traces["file"].to_pylist()) == {str(path)}
    assert kinds(both) == [("repeated-run", "x.json", False)] * 4


def test_samples_without_a_uuid_or_of_another_are_runs_of_their_own(tmp_path: Path) -> None:
    log(tmp_path / "1.json", "success", [sample(1, "C", "u1"), sample(2, "C", ""), sample(3, "C", "v")])
    log(tmp_path / "2.json", "success", [sample(1, "C", "w1"), sample(2, "C", ""), sample(3, "C", "v", id=2)])
    traces = read(tmp_path)
    assert traces.traces.num_rows == 6 and not traces.problems


def test_a_sample_that_cannot_be_read_takes_no_other_place(tmp_path: Path) -> None:
    log(tmp_path / "1.json", "success", [sample(1, "C", "u1", events=5), *WHOLE[1:]])
    log(tmp_path / "retry.json", "success", WHOLE)
    traces = read(tmp_path)
    assert sorted(traces.traces["trace"].to_pylist()) == [f"retry/1/{epoch}" for epoch in (1, 2, 3, 4)]
    assert kinds(traces) == [("repeated-run", "1.json", False)] * 4


def simulations(count: int, **more: Any) -> dict[str, Any]:
    one: dict[str, Any] = cast(list[Any], TAU2["simulations"])[0]
    return TAU2 | {"simulations": [one | {"id": f"s{trial}", "trial": trial} | more for trial in range(count)]}


def test_a_partial_copy_of_tau2_counts_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "r_final.json").write_text(json.dumps(simulations(4)))
    alone = read(tmp_path)
    (tmp_path / "r.json").write_text(json.dumps(simulations(3)))
    both = read(tmp_path)
    assert both.traces.equals(alone.traces)
    assert kinds(both) == [("repeated-run", "r.json", False)] * 3
    (tmp_path / "r.json").write_text(json.dumps(simulations(1, reward_info={"reward": 1.0})))
    both = read(tmp_path)
    assert both.traces["trace"].to_pylist() == [f"r_final/task-8/trial-{trial}" for trial in (1, 2, 3)]
    assert sorted(kinds(both)) == [("disagreeing-rewards", name, True) for name in ("r.json", "r_final.json")]


def test_rows_of_an_attempt_beside_the_output_of_openhands(tmp_path: Path) -> None:
    rows = [OPENHANDS | {"instance_id": f"repo-{number}"} for number in range(3)]
    lines = [json.dumps(row) + "\n" for row in rows]
    (tmp_path / "output.jsonl").write_text("".join(lines))
    alone = read(tmp_path)
    (tmp_path / "output.critic_attempt_1.jsonl").write_text("".join(lines[:2]))
    both = read(tmp_path)
    assert both.traces.equals(alone.traces)
    assert kinds(both) == [("repeated-run", "output.critic_attempt_1.jsonl", False)] * 2
    (tmp_path / "output.critic_attempt_1.jsonl").write_text(json.dumps(rows[0] | {"success": False}) + "\n")
    assert read(tmp_path).traces.num_rows == 4


def test_rows_that_nemo_gym_appended_again(tmp_path: Path) -> None:
    lines = [json.dumps(NEMO_GYM | {"_ng_rollout_index": number}) + "\n" for number in range(3)]
    (tmp_path / "rollouts.jsonl").write_text("".join(lines))
    alone = read(tmp_path)
    (tmp_path / "rollouts.jsonl").write_text("".join(lines + lines[:2]))
    traces = read(tmp_path)
    assert traces.traces.equals(alone.traces)
    assert [(problem.kind, problem.line) for problem in traces.problems] == [("repeated-run", 4), ("repeated-run", 5)]
    (tmp_path / "rollouts.jsonl").write_text("".join([*lines, json.dumps(NEMO_GYM | {"reward": 1.0}) + "\n"]))
    assert read(tmp_path).traces.num_rows == 4


@pytest.mark.parametrize(
    ("row", "field"), [(VERL, "output"), (SKYRL, "output_response"), (NEMO_RL, "idx"), (RESULT, "metrics")]
)
def test_a_dump_that_stands_twice_is_named(tmp_path: Path, row: dict[str, Any], field: str) -> None:
    other = row | {field: {"metrics": {"x": 1.0}, "idx": 1}.get(field, "3")}
    text = json.dumps(row) + "\n" + json.dumps(other) + "\n"
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    assert not read(path).problems
    path.write_text(text + text)
    (problem,) = read(path).problems
    assert (problem.kind, problem.value) == ("repeated-rows", "2 rows, and the same again")
    path.write_text((json.dumps(row) + "\n") * 4)
    assert not read(path).problems, "rollouts of one text are equal rows"


def reformatted(value: Any) -> str:
    """A JSON value as `jq -cS` writes it: no blanks, sorted keys, and 1.0 as 1."""
    numbers = {float: lambda x: int(x) if x.is_integer() else x}

    def written(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: written(one) for key, one in part.items()}
        return [written(one) for one in part] if isinstance(part, list) else numbers.get(type(part), lambda x: x)(part)

    return json.dumps(written(value), separators=(",", ":"), sort_keys=True)


def test_a_reformatted_output_of_openhands_counts_nothing_twice(tmp_path: Path) -> None:
    rows = [OPENHANDS | {"instance_id": f"repo-{number}"} for number in range(2)]
    (tmp_path / "output.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    alone = read(tmp_path)
    (tmp_path / "output-min.jsonl").write_text("".join(reformatted(row) + "\n" for row in rows))
    both = read(tmp_path)
    assert both.traces.equals(alone.traces)
    assert kinds(both) == [("repeated-run", "output-min.jsonl", False)] * 2


def test_a_reformatted_row_of_nemo_gym_is_read_once(tmp_path: Path) -> None:
    row = NEMO_GYM | {"reward": 1.0}
    (tmp_path / "rollouts.jsonl").write_text(json.dumps(row) + "\n" + reformatted(row) + "\n")
    traces = read(tmp_path)
    assert traces.traces.num_rows == 1
    assert [(problem.kind, problem.line) for problem in traces.problems] == [("repeated-run", 2)]
    twice = reformatted(row)[:-1] + ',"x":1,"x":1}\n'  # refused by itself, so it takes no place of another
    (tmp_path / "rollouts.jsonl").write_text(twice + twice.replace(',"x":1,', ",") + reformatted(row | {"x": 1}))
    assert [problem.kind for problem in read(tmp_path).problems] == ["repeated-key", "repeated-run"]


def tau_runs(trials: range, **more: Any) -> list[dict[str, Any]]:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    return [{"task_id": 3, "trial": trial, "reward": 1.0, "info": {}, "traj": said} | more for trial in trials]


def test_a_partial_or_reformatted_copy_of_tau_bench_counts_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(tau_runs(range(8))))
    alone = read(tmp_path)
    assert alone.traces.num_rows == 8, "trials of one conversation are runs of their own"
    (tmp_path / "r-old.json").write_text(json.dumps(tau_runs(range(5))))
    (tmp_path / "r-jq.json").write_text(reformatted(tau_runs(range(8))))
    both = read(tmp_path)
    assert both.traces.equals(alone.traces)
    assert sorted(kinds(both)) == [("repeated-run", name, False) for name in ["r-jq.json"] * 8 + ["r-old.json"] * 5]
    assert both.problems[0].trace.endswith("/task-3/trial-0") and both.problems[0].field == "[0].traj"


@pytest.mark.parametrize("more", [{"trial": 8}, {"task_id": 4}, {"reward": 0.0}, {"traj": []}, {"info": {"cost": 1}}])
def test_a_run_of_tau_bench_of_another_content_is_another(tmp_path: Path, more: dict[str, Any]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(tau_runs(range(1))))
    (tmp_path / "b.json").write_text(json.dumps(tau_runs(range(1), **more)))
    assert not any(problem.kind == "repeated-run" for problem in read(tmp_path).problems)


def test_a_reformatted_log_of_inspect_without_uuids_counts_nothing_twice(tmp_path: Path) -> None:
    timed = [{"event": "model", "timestamp": "2024-05-01T10:00:00+00:00", "output": {"choices": [{}]}}]
    header = {"version": 2, "status": "success", "eval": {"task": "quiz", "task_id": "T1", "model": "m"}}
    samples = [
        {"id": 1, "epoch": epoch, "input": "q", "scores": {"match": {"value": 1.0}}, "events": timed}
        for epoch in (1, 2)
    ]
    (tmp_path / "a.json").write_text(json.dumps(header | {"samples": samples}))
    alone = read(tmp_path)
    (tmp_path / "a-jq.json").write_text(reformatted(header | {"samples": samples}))
    both = read(tmp_path)
    assert both.traces.equals(alone.traces)
    assert kinds(both) == [("repeated-run", "a-jq.json", False)] * 2
    for more in ({"epoch": 3}, {"id": 2}, {"scores": {"match": {"value": 0.0}}}, {"events": [timed[0] | {"x": 1}]}):
        (tmp_path / "a-jq.json").write_text(json.dumps(header | {"samples": [samples[0] | more]}))
        assert read(tmp_path).traces.num_rows == 3, more
