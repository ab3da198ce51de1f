"""A table whose columns have other names: the problem says what is missing and types the option that names it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphs.errors import NothingReadError, Problem
from graphs.logs import read
from graphs.reading.tables.likely_columns import likely_column, likely_columns

IDS = "trace, trace_id, traj_uid, traj_id, trajectory_id, rollout_id"


def table(folder: Path, header: str, *rows: str) -> Path:
    (folder / "t.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder / "t.csv"


def refused(path: Path, **options: object) -> Problem:
    with pytest.raises(NothingReadError) as caught:
        read(path, **options)  # type: ignore[arg-type]
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("task,rollout,agent,reward",
         f"a column for the trace ({IDS}), or --columns trace=rollout,group=task to name them"),
        (",rollout,agent,reward",  # with pandas' index
         f"a column for the trace ({IDS}), or --columns trace=rollout to name it"),
        ("task,trace,agent,Reward",
         "a column for the reward (reward, score), or --columns reward=Reward,group=task to name them"),
        ("uid,trace,agent,points", "a column for the reward (reward, score), or --columns reward=NAME to name it; "
         "--format table reads it without, and --rewards FILE joins outcomes"),
        ("uid,case,agent,score", f"a column for the trace ({IDS}), or --columns trace=NAME to name it"),
        ("uid;trace;agent;reward", "commas between the cells, not ';'"),
        ("uid\ttrace\tagent\treward", "commas between the cells, not '\\t'"),
        ("uid;rolloutId;agent;reward", "commas between the cells, not ';'; "
         f"a column for the trace ({IDS}), or --columns trace=rolloutId to name it"),
        ("task,rollout,name,reward",
         f"a column for the trace ({IDS}), or --columns trace=rollout,group=task,agent=name to name them"),
        ("uid,run,agent,event_reward", f"a column for the trace ({IDS}), or --columns trace=run to name it"),
    ],
)  # fmt: skip
def test_an_unrecognised_table_is_told_what_it_lacks(header: str, expected: str, tmp_path: Path) -> None:
    """It was answered with the names of all formats."""
    separator = next(s for s in ",;\t" if s in header)
    problem = refused(table(tmp_path, header, separator.join(["q", "a", "x", "1"])))
    assert (problem.kind, problem.expected) == ("unknown-format", expected)
    assert problem.value.startswith("a table with the columns ")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"task": "q", "rollout": "a", "agent": "x", "reward": 1},
         f"a column for the trace ({IDS}), or --columns trace=rollout,group=task to name them"),
        ({"uid": "q", "case": "a", "agent": "x", "score": 0.5},
         f"a column for the trace ({IDS}), or --columns trace=NAME to name it"),
        ({"task": "q", "trace": "a", "agent": "x", "Reward": 1},
         "a column for the reward (reward, score), or --columns reward=Reward,group=task to name them"),
    ],
)  # fmt: skip
def test_json_lines_are_told_what_they_lack_as_csv_is(row: dict[str, object], expected: str, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(row)}\n" * 2)
    problem = refused(tmp_path / "t.jsonl")
    assert (problem.kind, problem.expected) == ("unknown-format", expected)
    assert problem.value == f"a table with the columns {', '.join(row)!r}"
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(row | {'more': {}})}\n" * 2)
    assert "a table with" not in refused(tmp_path / "t.jsonl").value


@pytest.mark.parametrize("trace", ["trace", "trace_id"])
@pytest.mark.parametrize("group", ["group", "task_id"])
@pytest.mark.parametrize("outcome", ["outcome", "success"])
def test_rows_with_the_keys_of_native_events_are_a_table(trace: str, group: str, outcome: str, tmp_path: Path) -> None:
    """They were said to be "like native", and nothing named the column of outcomes."""
    row = {trace: "t", group: "q", outcome: 1, "id": "e", "type": "message", "agent": "a", "model": "m", "tool": None}
    row |= {"tokens": 4, "input_tokens": 5, "seconds": 0.5, "status": "ok", "system": "v", "agent_name": "b"}
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row | {"id": f"e{i}"}) + "\n" for i in range(2)))
    problem = refused(tmp_path / "t.jsonl")
    assert problem.kind == "unknown-format" and problem.value.startswith(f"a table with the columns '{trace}, {group}")
    option = f"--columns reward={outcome}"
    assert problem.expected == f"a column for the reward (reward, score), or {option} to name it"
    assert read(tmp_path / "t.jsonl", columns={"reward": outcome}).reward[0] == 1


@pytest.mark.parametrize(
    ("header", "of", "option"),
    [("model,input,output,cached_input,cache_write", "prices", "--prices"), ("tool,call", "prices", "--prices"),
     ("trace,group", "tasks", "--groups"), ("trace,side", "sides", "--sides")],
)  # fmt: skip
def test_a_table_that_an_option_reads_is_no_log(header: str, of: str, option: str, tmp_path: Path) -> None:
    """Of a folder with the user's tables each was told which columns of a log it lacks."""
    problem = refused(table(tmp_path, header, ",".join("1" for _ in header.split(","))))
    assert problem.value == f"a table of {of}, which is no log" and problem.expected.startswith(f"{option} FILE")


def test_tables_of_options_in_a_folder_of_logs_are_noted_and_no_fault(tmp_path: Path) -> None:
    """The head of a report said that a record was not read, and `validate` failed, of the user's prices."""
    table(tmp_path, "trace,group,agent,reward", "a,q,x,1", "b,q,x,0").rename(tmp_path / "log.csv")
    table(tmp_path, "model,input,output", "m,1,1")
    assert [(one.kind, one.is_failure) for one in read(tmp_path).problems] == [("other-table", False)]


def test_the_option_that_is_printed_reads_the_table(tmp_path: Path) -> None:
    path = table(tmp_path, "task,rollout,agent,reward", "q,a,x,1", "q,b,x,0")
    traces = read(path, columns={"trace": "rollout", "group": "task"})
    assert traces.problems == () and traces.traces["group"].to_pylist() == ["q", "q"]


def test_columns_whose_names_tell_nothing_are_told_by_their_values(tmp_path: Path) -> None:
    """`prompt_tokens`, another number in each row, was proposed as the group, and hundreds of rows refused then."""
    rows = [f"R{run},k{run % 3},x,{100 + 7 * run + step},ok,{('up', 'down', '')[run % 3]},{('pass', 'fail')[run % 2]}"
            for run in range(8) for step in range(3)]  # fmt: skip
    path = table(tmp_path, "request_id,kind,agent,prompt_tokens,status,thumbs,judge", *rows)
    assert refused(path).expected.endswith(", or --columns trace=request_id,reward=thumbs to name them")
    traces = read(path, columns={"trace": "request_id", "reward": "thumbs"})
    assert traces.sizes.traces == 8 and not any("group=" in problem.expected for problem in traces.problems)
    assert likely_columns("group", ["prompt_tokens", "query_ms", "promptTokens", "prompt"]) == ["prompt"]


def test_printed_options_lead_to_a_table_of_which_all_is_read(tmp_path: Path) -> None:
    """Beside `step_reward` and `round` the option named no key, or called the first reward of a step an outcome."""
    header = "run,task,agent,step_reward,final_score,round,agent_role,logProb,llm"
    rows = [f"{run},q,{who},{step},{run},{step},planner,-0.5,m" for run in (0, 1) for step in (0, 1) for who in "ab"]
    path, columns = table(tmp_path, header, *rows), {}
    for _ in range(4):
        try:
            problems = read(path, columns=columns).problems
        except NothingReadError as error:
            problems = error.problems
        text = " ".join(problem.expected for problem in problems)
        if named := re.search(r" or --columns (\S+=[^\s:;]+)| or (\S+=\S+) in --columns", text):
            columns |= dict(pair.split("=") for pair in (named[1] or named[2]).split(","))
    assert columns == {
        "trace": "run", "group": "task", "event_reward": "step_reward", "reward": "final_score",
        "turn": "round", "role": "agent_role", "log_prob": "logProb", "model": "llm",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["Hello, world, and reward", "a,b\n1,2\n", "reward\n1\n", '{"reward": 1, "task": 2}'],
)
def test_other_text_is_no_table(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    assert "a table with" not in refused(tmp_path / "t.csv").value


def test_outcomes_of_agents_are_rewards_of_a_table(tmp_path: Path) -> None:
    path = table(tmp_path, "trace,group,agent,agent_reward", "a,q,x,1", "a,q,y,0")
    assert read(path).evidence["agent_reward"].mask[:2].tolist() == [True, True]
    lacking = refused(table(tmp_path, "case,group,agent,agent_reward", "a,q,x,1")).expected
    assert lacking == f"a column for the trace ({IDS}), or --columns trace=NAME to name it"


def test_a_named_column_that_is_not_there(tmp_path: Path) -> None:
    path = table(tmp_path, "task,trace,agent,reward", "q,a,x,1")
    assert str(refused(path, columns={"group": "tsk"})) == (
        f"{path}:1: group is column 'tsk'; expected a column that the table has: task, trace, agent, reward. "
        "Did you mean task? [missing-column]"
    )


def test_named_columns_of_a_table_with_semicolons(tmp_path: Path) -> None:
    problem = refused(table(tmp_path, "task;trace;reward", "q;a;1"), columns={"group": "task"})
    assert (problem.kind, problem.expected) == ("bad-header", "commas between the cells, not ';'")


def test_likely_columns_are_found_by_whole_words() -> None:
    assert likely_column("trace", ["truncated", "runtime", "retraced", "episode_id"]) == "episode_id"
    assert likely_column("group", ["multitask", "questionId"]) == "questionId"
    assert likely_column("reward", ["score_1", "reward"], taken=["score_1"]) == "reward"


@pytest.mark.parametrize(
    ("name", "ours"),
    [("step_reward", "event_reward"), ("turnScore", "event_reward"), ("process_level_reward", "event_reward"),
     ("reward_per_step", "event_reward"), ("length_penalty", "event_reward"), ("final_score", "reward"),
     ("reward_model_score", "reward"), ("steps_to_reward", "reward"), ("reward_1", "reward")],
)  # fmt: skip
def test_rewards_of_steps_are_no_outcomes(name: str, ours: str) -> None:
    assert {one: likely_column(one, [name]) for one in ("event_reward", "reward")} == {
        **dict.fromkeys(("event_reward", "reward"), ""), ours: name,
    }  # fmt: skip


@pytest.mark.parametrize("key", ["events", "spans", "steps", "trajectory", "turns"])
def test_a_row_that_holds_a_run_is_no_action(tmp_path: Path, key: str) -> None:
    """Each was read as a run of one action, and its steps were passed over without a word."""
    row = {"trace_id": "a", "group": "g", "reward": 1, key: [{"event_id": 1, "tool": "ls"}, {"event_id": 2}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row) + "\n")
    assert refused(tmp_path / "runs.jsonl").kind == "unknown-format"
    numbers = row | {key: [1, 2]}  # a column of numbers, such as tokens, is one of an action
    (tmp_path / "runs.jsonl").write_text(json.dumps(numbers) + "\n")
    assert len(read(tmp_path / "runs.jsonl").events) == 1
