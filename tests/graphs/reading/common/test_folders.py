"""Files that belong together by their folder, however the names of the folder are spelt."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.logs import found_logs, read
from graphs.logs.chunks import read_chunks
from graphs.logs.found_logs import sort_sources
from graphs.reading.source import Source
from graphs.traces.batch import Traces

from ..all_formats import ALL
from ..samples import HARBOR_RESULT, SWE_AGENT

SPELLINGS: dict[str, Callable[[Path], str]] = {
    "from here": str,
    "from the root": lambda path: str(Path.cwd() / path),
    "up and down": lambda path: f"logs/../{path}",
    "by a link": lambda path: str(path).replace("logs", "way", 1),
}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def both(monkeypatch: pytest.MonkeyPatch, folder: Path, one: Path, other: Path, spelling: str) -> list[Traces]:
    """What is read of two files, of which one's name is spelt in another way."""
    monkeypatch.chdir(folder)
    (folder / "way").symlink_to("logs", target_is_directory=True)
    first, second = (path.relative_to(folder) for path in (one, other))
    spell = SPELLINGS[spelling]
    return [read(spell(first), str(second)), read(str(first), spell(second))]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_trial_of_harbor_is_its_result_and_its_trajectory(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trajectory was read as one of its own, without its reward."""
    result = write(tmp_path / "logs" / "trial" / "result.json", HARBOR_RESULT)
    trajectory = write(tmp_path / "logs" / "trial" / "agent" / "trajectory.json", ALL["atif"].values[0])
    for traces in both(monkeypatch, tmp_path, result, trajectory, spelling):
        assert traces.traces["format"].to_pylist() == ["harbor"] and traces.problems == ()
        assert float(traces.reward[0]) == 1.0


def test_a_trial_of_harbor_without_its_result_is_named(tmp_path: Path) -> None:
    """Beside trials with results, its trajectory was read without task and reward, and nothing said so."""
    config = {"trial_name": "t", "task": {"path": "p"}, "agent": {"name": "a"}}
    for trial, session in (("whole", "w"), ("killed", "k")):
        write(tmp_path / trial / "config.json", config)
        write(tmp_path / trial / "agent" / "trajectory.json", ALL["atif"].values[0] | {"session_id": session})
    write(tmp_path / "whole" / "result.json", HARBOR_RESULT)
    traces = read(tmp_path)
    assert sorted(traces.traces["format"].to_pylist()) == ["atif", "harbor"]
    (problem,) = traces.problems
    assert (problem.kind, problem.trace, problem.is_failure) == ("missing-result", "killed", True)
    assert problem.file == str(tmp_path / "killed" / "config.json")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_results_of_swe_agent_are_those_of_the_folder_or_one_above(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trajectory was read without its outcome, and without a word."""
    results = write(tmp_path / "logs" / "results.json", {"resolved_ids": ["i"], "submitted_ids": ["i"]})
    trajectory = write(tmp_path / "logs" / "i" / "i.traj", SWE_AGENT)
    for traces in both(monkeypatch, tmp_path, results, trajectory, spelling):
        assert traces.problems == () and float(traces.reward[0]) == 1.0


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_runs_of_one_folder_are_compared(spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two spellings of it were two systems, whose traces are in two groups."""
    runs = [write(tmp_path / "logs" / f"{name}.traj", SWE_AGENT) for name in "ij"]
    for traces in both(monkeypatch, tmp_path, *runs, spelling):
        assert set(traces.traces["system"].to_pylist()) == {"swe-agent"}
    (tmp_path / "way").unlink()
    row = {"input": "q", "output": "a", "score": 1.0, "step": 1}
    rows = [write(tmp_path / "logs" / f"{name}.jsonl", row) for name in "ij"]
    for traces in both(monkeypatch, tmp_path, *rows, spelling):
        assert len(set(traces.traces["system"].to_pylist())) == 1


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_trajectory_that_is_named_by_its_file_is_found(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sub-agent did nothing, and was a trace of its own."""
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": [{"tool_call_id": "c", "function_name": "f"}]}
    referred = {"source_call_id": "c", "subagent_trajectory_ref": [{"trajectory_path": "sub/two.json"}]}
    agent = {"schema_version": "ATIF-v1.6", "agent": {"name": "a", "version": "1"}}
    one = agent | {"session_id": "1", "steps": [step | {"observation": {"results": [referred]}}]}
    two = agent | {"session_id": "2", "steps": [{"step_id": 1, "source": "agent", "message": "x"}]}
    files = write(tmp_path / "logs" / "one.json", one), write(tmp_path / "logs" / "sub" / "two.json", two)
    for traces in both(monkeypatch, tmp_path, *files, spelling):
        assert traces.traces["trace"].to_pylist() == ["1"] and traces.problems == ()


def test_a_table_of_rewards_or_groups_in_a_folder_of_logs_is_no_log(tmp_path: Path) -> None:
    """Its rows were traces of their own: named as duplicates, or, of other ids, counted."""
    event = {"id": "e", "type": "message", "agent": "a"}
    traces = [{"trace_id": name, "task_id": "q", "events": [event]} for name in "ab"]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, traces)))
    for field in ("reward", "group"):
        (tmp_path / f"{field}s.csv").write_text(f"trace,{field},score\na,1,1\nb,2,2\nc,3,3\n")
    options: dict[str, Any] = {f"{field}s": str(tmp_path / f"{field}s.csv") for field in ("reward", "group")}
    chunks = read_chunks(tmp_path, events=1, **options)
    for found in (read(tmp_path, **options), *chunks):
        assert set(found.traces["format"].to_pylist()) == {"native"}
        assert {Path(name).name for name in found.ignored} == {"rewards.csv", "groups.csv"}
    assert {problem.kind for problem in read(tmp_path, **options).problems} == {"unmatched-row", "unread-columns"}
    assert read(tmp_path, **options).reward[:2].tolist() == [1.0, 2.0]
    outright = read(tmp_path / "rewards.csv", rewards=tmp_path / "rewards.csv")
    assert set(outright.traces["format"].to_pylist()) == {"table"}


def outcomes(folder: Path, name: str) -> Path:
    """A table of rewards alone."""
    rows = [{"trace_id" if "id" in name else "trace": trace, "reward": i} for i, trace in enumerate("abc")]
    path = folder / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows), ""]))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("name", ["outcomes.csv", "outcomes-id.jsonl", "outcomes.parquet"])
def test_a_table_of_outcomes_beside_logs_is_none_of_them(tmp_path: Path, name: str) -> None:
    """Without `--rewards`, the rows of traces that no log has were traces, and those of others stood there twice."""
    event = {"id": "e", "type": "message", "agent": "a"}
    traces = [{"trace_id": trace, "task_id": "q", "events": [event], "rewards": {"team": 5}} for trace in "ab"]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, traces)))
    table = outcomes(tmp_path, name)
    for found in (read(tmp_path), *read_chunks(tmp_path, events=9)):
        assert found.traces["trace"].to_pylist() == ["a", "b"] and found.reward[:2].tolist() == [5.0, 5.0]
    (problem,) = read(tmp_path).problems
    assert problem.kind == "outcomes-among-logs" and problem.expected.startswith("--rewards FILE")
    assert read(tmp_path, rewards=table).reward[:2].tolist() == [0.0, 1.0]
    both = read(tmp_path, table)  # named outright, it is a log, which states other contents of two traces
    assert both.traces["trace"].to_pylist() == ["c"]
    assert [problem.kind for problem in both.problems] == ["same-file", *["duplicate-trace"] * 4]
    (tmp_path / "log.jsonl").unlink()
    assert read(tmp_path).traces["trace"].to_pylist() == ["a", "b", "c"]


STEPS = {
    "steps.csv": "trace,group,agent,reward\na,q,x,5\nb,q,x,5\n",
    "steps.jsonl": '{"trace": "a", "agent": "x", "reward": 5}\n{"trace": "b", "agent": "x", "reward": 5}\n',
    "tasks.csv": "traj_uid,uid,score\na,q,5\nb,q,5\n",
}


@pytest.mark.parametrize("name", ["outcomes.csv", "outcomes-id.jsonl", "outcomes.parquet"])
@pytest.mark.parametrize("steps", STEPS)
def test_a_table_of_outcomes_beside_tables_that_say_more_is_none_of_them(tmp_path: Path, steps: str, name: str) -> None:
    """Its rows stood in the place of the rows with agents, which were refused as duplicates."""
    (tmp_path / steps).write_text(STEPS[steps])
    table = outcomes(tmp_path, name)
    found = read(tmp_path)
    assert found.traces["trace"].to_pylist() == ["a", "b"] and found.reward[:2].tolist() == [5.0, 5.0]
    assert [problem.kind for problem in found.problems] == ["outcomes-among-logs"]
    assert read(tmp_path, rewards=table).reward[:2].tolist() == [0.0, 1.0]
    assert read(tmp_path, table).traces["trace"].to_pylist() == ["c"]  # the others have two contents
    assert len(read(tmp_path, format="table").traces) == 1


@pytest.mark.parametrize("index", ["", "Unnamed: 0", '""', "__index_level_0__"])
@pytest.mark.parametrize("log", [*STEPS, "log.json"])
def test_numbers_of_rows_say_no_more_than_an_outcome(tmp_path: Path, log: str, index: str) -> None:
    """A table was read as traces where pandas had written it with its index."""
    event = {"id": "e", "type": "message", "agent": "x"}
    traces = [{"trace_id": trace, "task_id": "q", "events": [event], "rewards": {"team": 5}} for trace in "ab"]
    (tmp_path / log).write_text(STEPS.get(log, json.dumps(traces)))
    table = tmp_path / "outcomes"
    for suffix in (".csv", ".parquet"):
        file = table.with_suffix(suffix)
        if suffix == ".csv":
            file.write_text(f"{index},trace,reward\n0,a,0\n1,b,1\n2,c,1\n")
        else:
            rows = [{index.strip('"'): i, "trace": trace, "reward": i} for i, trace in enumerate("abc")]
            pq.write_table(pa.Table.from_pylist(rows), file)
        found = read(tmp_path)
        assert found.traces["trace"].to_pylist() == ["a", "b"]
        assert [problem.kind for problem in found.problems] == ["outcomes-among-logs"]
        assert read(tmp_path, rewards=file).reward[:2].tolist() == [0.0, 1.0]
        file.unlink()


def log_of(folder: Path, traces: str) -> None:
    event = {"id": "e", "type": "message", "agent": "x"}
    values = [{"trace_id": trace, "task_id": "q", "events": [event], "rewards": {"team": 5}} for trace in traces]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, values)))


def rows_of(path: Path, columns: str, traces: str) -> Path:
    """A table whose first two columns are a trace and a number."""
    trace, reward, *more = columns.split(",")
    rows = [{trace: name, reward: i} | dict.fromkeys(more, "x") for i, name in enumerate(traces)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        path.write_text("\n".join([columns, *(",".join(map(str, row.values())) for row in rows), ""]))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("columns", ["trace_id,score", "rollout_id,reward,notes", "trace,reward,judge,id"])
def test_a_table_of_outcomes_of_other_names_and_columns_is_no_log(tmp_path: Path, columns: str, suffix: str) -> None:
    """The row of a trace that no log has was a trace, with an agent that nothing named."""
    log_of(tmp_path, "ab")
    table = rows_of(tmp_path / f"a{suffix}", columns, "abc")
    found = read(tmp_path)
    assert found.traces["trace"].to_pylist() == ["a", "b"] and found.reward[:2].tolist() == [5.0, 5.0]
    (problem,) = found.problems
    assert (problem.kind, problem.file) == ("outcomes-among-logs", str(table))
    assert ("once its columns are called" in problem.expected) is not columns.startswith("trace,reward")
    assert len(read(tmp_path, table).traces) == 1  # named outright, it is a log, which contradicts the other
    (tmp_path / "log.jsonl").unlink()
    whole = read(tmp_path)
    assert len(whole.traces) == 3
    assert [problem.kind for problem in whole.problems] == ["unread-columns"] * (columns != "trace_id,score")


@pytest.mark.parametrize(
    ("columns", "traces"),
    [
        ("trace,reward,notes", "cd"),  # of no trace of the log
        ("trace,reward,notes", "acc"),  # two steps of one trace
        ("trace,reward,response", "ac"),  # what a step wrote
        ("trace,reward,group", "ac"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_table_that_may_be_a_log_is_one(tmp_path: Path, columns: str, traces: str, suffix: str) -> None:
    log_of(tmp_path, "ab")
    rows_of(tmp_path / f"a{suffix}", columns, traces)
    assert "outcomes-among-logs" not in {problem.kind for problem in read(tmp_path).problems}


def test_a_folder_of_tables_of_outcomes_alone_is_a_log(tmp_path: Path) -> None:
    for step, trace in enumerate("ab"):
        (tmp_path / f"step_{step}.csv").write_text(f"trace,reward\n{trace},{step}\n")
    assert read(tmp_path).traces["trace"].to_pylist() == ["a", "b"] and read(tmp_path).problems == ()
    for step, trace in enumerate("ab"):
        (tmp_path / f"step_{step}.csv").write_text(f"trace,group,reward\n{trace},q{step},{step}\n")
    assert read(tmp_path).traces["trace"].to_pylist() == ["a", "b"] and read(tmp_path).problems == ()


def test_a_table_whose_first_row_alone_states_no_more_than_an_outcome_is_a_log(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text(STEPS["steps.csv"].replace("a,q", "c,q"))
    rows = '{"trace": "a", "reward": 1}\n{"trace": "d", "reward": 1, "agent": "x"}\n'
    (tmp_path / "rows.jsonl").write_text(rows)
    assert len(read(tmp_path).traces) == 4 and read(tmp_path).problems == ()


def test_trajectories_of_trials_are_not_compared_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 trials took 50 million comparisons of files."""
    step = {"step_id": 1, "source": "agent", "message": "x"}
    log = {"schema_version": "ATIF-v1.6", "agent": {"name": "a", "version": "1"}, "session_id": "s", "steps": [step]}
    files = [write(tmp_path / name / "agent" / "trajectory.json", log) for name in "abc"]
    files += [write(tmp_path / name / "result.json", HARBOR_RESULT) for name in "ab"]
    compared: list[Any] = []
    monkeypatch.setattr(Source, "__eq__", lambda one, other: compared.append(other) or one is other)
    members, _, _ = sort_sources([Source(str(path), path) for path in files])
    assert len(members["harbor"]) == 4 and len(members["atif"]) == 1 and compared == []


EVAL_SET = {"eval_set_id": "e", "tasks": []}
COMPANIONS: dict[str, tuple[str, str, Any]] = {
    "verifiers": ("verifiers results", "metadata.json", {"env_id": "x", "model": "m", "num_examples": 2}),
    "eval sets of Inspect": ("inspect-ai", "eval-set.json", EVAL_SET),
    "manifests of Inspect": ("inspect-ai", "logs.json", {"log.json": {"status": "success"}}),
    "predictions before the first": ("swe-agent", "preds.json", {}),
    "SkyRL": ("rollouts of skyrl", "aggregated_results.jsonl", {"eval/all/pass_at_1": 0.5}),
    "inputs of NeMo Gym": ("rollouts of nemo gym", "r_materialized_inputs.jsonl", {"responses_create_params": {}}),
    "long inputs of NeMo Gym": (
        "rollouts of nemo gym",
        "r_materialized_inputs.jsonl",
        {"responses_create_params": {"input": "x" * 70_000}},
    ),
    "profiles of NeMo Gym": ("rollouts of nemo gym", "rollouts_reward_profiling.jsonl", {"mean/reward": 0.5}),
    "metrics of NeMo Gym": ("rollouts of nemo gym", "rollouts_aggregate_metrics.json", [{"agent_metrics": {}}]),
    "health of NeMo Gym": ("rollouts of nemo gym", "quality_summary.json", {"run": {}, "metrics": {}}),
    "verdicts of NeMo Gym": ("rollouts of nemo gym", "rollout_verdicts.jsonl", {"rollout_id": "0", "verdict": "x"}),
    "what was typed to Gemini CLI": (
        "gemini-cli",
        "logs.json",
        [{"sessionId": "s", "messageId": 0, "type": "user", "message": "look", "timestamp": "2026-08-01T00:00:00Z"}],
    ),
    "nothing typed to Gemini CLI": ("gemini-cli", "logs.json", []),
    "named states of Gemini CLI": ("gemini-cli", "checkpoint-x.json", {"history": [], "authType": "x"}),
    "states of tools of Gemini CLI": ("gemini-cli", "x-write_file.json", {"toolCall": {}, "commitHash": "x"}),
    "OpenHands": ("openhands", "metadata.json", {"agent_class": "CodeActAgent", "llm_config": {"model": "m"}}),
}


@pytest.mark.parametrize("name", COMPANIONS)
def test_a_companion_of_logs_is_passed_over(name: str, tmp_path: Path) -> None:
    """It was an unknown format, which is a failure, though all numbers were right."""
    of, file, content = COMPANIONS[name]
    ALL[of].write(tmp_path)
    alone = read(tmp_path)
    companion = write(tmp_path / file, content)
    traces = read(tmp_path)
    assert traces.sizes == alone.sizes and traces.ignored == (str(companion),)
    assert [problem for problem in traces.problems if problem.is_failure] == []
    named = read(tmp_path, companion)
    kind = "missing-field" if "inputs" in name else "unknown-format"
    assert [problem.kind for problem in named.problems if problem.is_failure] == [kind], "it was asked for"


def test_what_prime_rl_trains_on_is_a_copy_of_its_rollouts(tmp_path: Path) -> None:
    """A copy without a frozen agent contradicted the whole episode, and neither was read."""
    episode = ALL["verifiers"].values[0]
    whole = tmp_path / "rollouts" / "step_3" / "train" / "all" / "traces.jsonl"
    copy = tmp_path / "rollouts" / "step_4" / "train" / "effective" / "traces.jsonl"
    write(whole, episode)
    write(copy, episode | {"traces": episode["traces"][:1]})
    traces = read(tmp_path)
    assert traces.traces["file"].to_pylist() == [str(whole)] and traces.ignored == (str(copy),)
    assert read(copy).sizes.traces == 1, "alone it is read"


def test_a_format_without_files_takes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ninth of the time of a small log went into damage, words and states of 19 formats that it was not of."""
    asked, plain = list[list[Source]](), found_logs.undamaged
    monkeypatch.setattr(found_logs, "undamaged", lambda items, of, *more: asked.append(of) or plain(items, of, *more))
    write(tmp_path / "a.traj", SWE_AGENT)
    assert read(tmp_path).sizes.traces == 1 and len(asked) == 1
