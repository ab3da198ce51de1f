"""`credit validate`: groups that teach nothing, and everything that was refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import credit
from credit.page import Findings
from credit.page.overview import overview
from graphs.reading.tables.outcome_words import OUTCOME_CELL

from .logs import CYCLE, GOOD, run, trace, write


def test_validate_names_what_teaches_nothing(good: Path) -> None:
    result = run("validate", good)
    assert result.exit_code == 0, result.output
    lines = " ".join(result.stdout.split())
    assert "traces 5" in lines
    assert "with a signal 1 of 3" in lines
    assert "Groups with equal outcomes: r (all 1)" in lines
    assert "Groups of one: s" in lines
    assert "actions 10; a trace has 2" in lines
    assert "tokens generated 35, in the 5 of 10 actions that have a count; a trace has 7" in lines
    assert result.stderr == ""


def test_validate_lists_what_was_refused_and_exits_3(bad: Path) -> None:
    result = run("validate", bad)
    assert result.exit_code == 3
    assert "traces" in result.stdout and "problems (1): 1 cycle" in result.stdout
    assert f"{bad}:6: trace 'loop'" in result.stdout
    assert run("validate", "--allow-bad", bad).exit_code == 0


def test_what_is_no_fault_of_the_input_is_a_note(good: Path, tmp_path: Path) -> None:
    """That `pass` is read as 1 was "1 problems of reading" on a page, and "problems (1)" in a shell."""
    traces = credit.read(good)
    ids = traces.traces["trace"].to_pylist()
    table = tmp_path / "outcomes.csv"
    table.write_text("trace,reward\n" + "".join(f"{name},{('pass', 'fail')[i % 2]}\n" for i, name in enumerate(ids)))
    result = run("validate", good, "--rewards", table)
    assert result.exit_code == 0 and "\nnotes (1): 1 worded-outcomes\n" in result.stdout, result.stdout
    assert "pass is read as 1" in result.stdout
    assert not any(line.startswith("problems") for line in result.stdout.splitlines())
    corpus = overview(Findings.of(credit.read(good, rewards=table), {}))["corpus"]
    assert (corpus["problem_count"], corpus["note_count"], len(corpus["problem_texts"])) == (0, 1, 1)


def test_what_the_user_stated_is_told_in_full_by_validate_alone(tmp_path: Path) -> None:
    """Each command repeated that `yes` is read as 1, and named all columns that nobody needs."""
    (table := tmp_path / "runs.csv").write_text(
        "run,task,agent,colour,passed\n" + "".join(f"{i},q,x,red,{('yes', 'no')[i % 2]}\n" for i in range(4))
    )
    columns = "trace=run,group=task,reward=passed"
    full = run("validate", table, "--columns", columns).stdout
    assert "[worded-outcomes]" in full and "[unread-columns]" in full
    short = run("traces", table, "--columns", columns).stderr
    assert short == "notes (2): 1 unread-columns, 1 worded-outcomes (`credit validate` prints all)\n"
    told = run("traces", table, "--columns", "trace=run,reward=passed").stderr
    assert "worded-outcomes]" not in told and "group=task in --columns" in told


def test_an_outcome_has_the_name_by_which_the_user_knows_it(tmp_path: Path) -> None:
    """A mapped `score_x` was "team" in all outputs, a name that nobody had given it."""
    rows = "".join(f"{i},q,x,{i % 2},{i // 2}\n" for i in range(4))
    (table := tmp_path / "runs.csv").write_text(f"run,task,agent,score_x,judge\n{rows}")
    mapped = ("--columns", "trace=run,group=task,reward=score_x,rewards.judge=judge")
    assert "from reward 'team', column 'score_x'\n" in re.sub(" +\n", "\n", run("validate", table, *mapped).stdout)
    assert "What failed, by score_x:\n  2 of 4 traces" in run("summary", table, *mapped).stdout
    assert re.search(r"reward channels +team \(score_x\), judge", run("card", table, *mapped).stdout)
    assert "team (score_x) 1, judge 0" in run("show", table, *mapped, "--trace", "1").stdout
    other = run("summary", table, *mapped, "--reward-channel", "judge").stdout
    assert "What failed, by judge:\n  2 of 4 traces" in other and "score_x of 4 traces" in other and "team" not in other
    assert "from reward 'score_x'" in run("validate", table, *mapped, "--reward-channel", "score_x").stdout
    (joined := tmp_path / "outcomes.csv").write_text(
        "trace,final_score\n" + "".join(f"{i},{i % 2}\n" for i in range(4))
    )
    given = (table, *mapped, "--rewards", joined)
    assert "from reward 'team', column 'final_score'\n" in re.sub(" +\n", "\n", run("validate", *given).stdout)
    assert "What failed, by final_score:\n  2 of 4 traces" in run("summary", *given).stdout


def test_validate_lists_twenty_problems_and_counts_the_rest(tmp_path: Path) -> None:
    text = json.dumps(CYCLE)
    loops = [json.loads(text.replace('"e0"', f'"e{i}-0"')) | {"trace_id": f"loop{i}"} for i in range(23)]
    path = write(tmp_path / "many.jsonl", [*GOOD, *loops])
    few, every = run("validate", path), run("validate", "--all", path)
    assert few.stdout.count("[cycle]") == 20 and "… and 26 more" in few.stdout  # with the outcomes
    assert every.stdout.count("[cycle]") == 23 and "more;" not in every.stdout
    path = write(path, [*GOOD, *(CYCLE | {"trace_id": f"loop{i}"} for i in range(23))])
    assert run("validate", path).stdout.count("[cycle], and 22 more like it") == 1


def test_validate_for_programs(bad: Path) -> None:
    result = run("validate", "--json", bad)
    found = json.loads(result.stdout)
    assert result.exit_code == 3
    assert found["equal"] == {"r": 1.0} and found["singletons"] == ["s"] and found["teaching"] == 1
    assert [p["kind"] for p in found["problems"]] == ["cycle", "unread-outcome"]


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_every_command_names_groups_that_single_precision_changes(tmp_path: Path, offset: float) -> None:
    """`compose` wrote advantages of which a third had another sign, `compare` and `summary` were silent."""
    path = write(tmp_path / "x.jsonl", [trace(f"t{i}", "q", offset + 3.7 * i) for i in range(4)])
    advantages = ("--advantage", "control", "--advantages-to", tmp_path / "a.csv")
    commands = {
        "assign": ("-m", "rloo", "-o", tmp_path / "a.csv"), "choose": (), "summary": (),
        "compare": ("-m", "rloo,grpo"), "audit": ("-m", "rloo"), "explain": ("t1", "e1", "-m", "rloo"),
        "compose": ("-m", "rloo", "-o", tmp_path / "l.csv", *advantages), "report": ("-o", tmp_path / "r.html"),
    }  # fmt: skip
    for name, more in commands.items():
        result = run(name, path, *more)
        said = "1 group whose outcomes, or values beside them, differ by little for their size" in result.output
        assert result.exit_code == 0 and said == bool(offset), (name, result.output)


def test_validate_does_not_call_outcomes_equal_that_differ_in_the_log(tmp_path: Path) -> None:
    logs = [trace("a", "fine", 16777217), trace("b", "fine", 16777216), trace("c", "wide", 3e38)]
    logs += [trace("d", "wide", -3e38), trace("e", "same", 1), trace("f", "same", 1)]
    path = write(tmp_path / "x.jsonl", logs)
    result = run("validate", path)
    told = " ".join(result.stdout.split())
    assert "with a signal 0 of 3" in told and "equal outcomes 1 not told apart 2" in told
    assert "Groups with equal outcomes: same (all 1)" in told
    assert "no signal (outcomes differ by less than single precision, in which methods compute, holds; subtract" in told
    assert "that are almost 0): fine" in told and "holds; divide them): wide" in told
    found = json.loads(run("validate", "--json", path).stdout)
    assert list(found["unresolved"]) == ["fine", "wide"] and list(found["equal"]) == ["fine", "wide", "same"]


@pytest.mark.parametrize("command", ["validate", "summary", "metrics", "doctor", "costs", "traces", "show"])
def test_each_command_names_the_channel_that_may_be_the_outcome(command: str, tmp_path: Path) -> None:
    """Validate alone named it, and the others said that no trace has an outcome, and that `credit label` writes one."""
    path = write(tmp_path / "x.jsonl", [trace("a", "q", None, rewards={"tests": 1.0}), trace("b", "r", None)])
    said = "eward that could be it: tests (1 of 2 traces); `--reward-channel tests` takes it"
    result = run(command, path)
    assert "No trace has an outcome" in result.output and "credit label" not in result.output
    assert result.output.count(said) == 1, "the head of a summary says it, and nothing else again"
    assert said not in run(command, path, "--reward-channel", "tests").output
    hints = overview(Findings.of(credit.read(path), {}))
    assert said in hints["findings"][0]["told"] and not any("reward-channel" in hint for hint in hints["hints"])


def test_validate_says_how_to_bring_missing_outcomes_and_tasks(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [trace("a", "q", None, rewards={"tests": 1.0}), trace("b", "r", None)])
    told = run("validate", path).stdout
    assert "Every group has one trace" in told and "--groups FILE" in told
    plain = write(tmp_path / "y.jsonl", [trace("a", "q", None)])
    assert "pass --rewards FILE" in run("validate", plain).stdout
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\na,1\nb,0\n")
    tasks = tmp_path / "groups.csv"
    tasks.write_text("trace,group\na,g\nb,g\n")
    found = json.loads(run("validate", "--json", path, "--rewards", table, "--groups", tasks).stdout)
    assert found["teaching"] == found["groups"] == 1


def test_a_link_out_of_the_folder_quotes_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("root:x:0:0:password")
    runs = tmp_path / "runs"
    runs.mkdir()
    write(runs / "x.jsonl", GOOD)
    (runs / "evil.jsonl").symlink_to(secret)
    (runs / "same.jsonl").symlink_to(runs / "gone" / ".." / "x.jsonl")
    result = run("validate", runs)
    assert result.exit_code == 3 and "outside-link" in result.output and "password" not in result.output
    assert run("validate", secret).exit_code == 2  # named outright, it is read


def test_groups_are_keyed_as_asked(tmp_path: Path) -> None:
    log = write(tmp_path / "x.jsonl", [trace(f"t{i}", "q", float(i % 2), model=f"m{i // 2}") for i in range(4)])
    plain = json.loads(run("validate", log, "--json").stdout)
    mixed = json.loads(run("validate", log, "--group-by", "task", "--json").stdout)
    assert plain["groups"] == 2 and not plain["mixed"]
    assert mixed["groups"] == 1 and mixed["mixed"]
    assert "of several models" in run("validate", log, "--group-by", "task").stdout
    wrong = run("validate", log, "--group-by", "task,modle")
    assert wrong.exit_code == 1 and "expected names among task, model, system" in wrong.output
    out = tmp_path / "a.csv"
    for chunks in ((), ("--chunk-events", "6")):
        assert run("assign", log, "-m", "rloo", "-o", out, "--group-by", "task", *chunks).exit_code == 0
        assert len({row.split(",")[3] for row in out.read_text().splitlines()[1:]}) == 1


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_files_passed_over_are_named(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    write(tmp_path / "x.jsonl", GOOD)
    (tmp_path / "README.md").write_text("hi")
    printed = run("validate", tmp_path).stdout
    unwrapped = "".join(printed.split())  # a long path is broken over lines
    assert f"filespassedover1:{tmp_path / 'README.md'}" in unwrapped
    assert "evidence: what methods can use" in printed


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return write(tmp_path / "x.jsonl", [trace(f"t{i}", "q", float(5 + i)) for i in range(3)])


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize(
    "command",
    [["assign", "-o", "{out}.csv"], ["assign", "--chunk-events", "3", "-o", "{out}.csv"], ["validate"], ["choose"],
     ["compare"], ["summary"], ["traces"], ["convert", "-o", "{out}.jsonl"], ["compose", "-o", "{out}.parquet",
     "--methods", "rloo"]],
)  # fmt: skip
def test_a_table_without_a_row_for_some_traces_is_said_to_be(command: list[str], three: Path, tmp_path: Path) -> None:
    """A trace kept the log's outcome without a word, and the baselines took it."""
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\nt0,1\nt1,0\n")
    name, *rest = [part.format(out=tmp_path / "out") for part in command]
    result = run(name, three, "--rewards", table, *rest)
    assert result.exit_code == 0, result.output
    assert f"rewards: 2 of 3 traces from {table}, 1 from the log\n" in result.stderr
    table.write_text("trace,reward\nt0,1\nt1,0\nt2,0\n")
    assert "rewards:" not in run("traces", three, "--rewards", table).stderr


def test_traces_that_neither_the_table_nor_the_log_gives_an_outcome_are_counted(three: Path, tmp_path: Path) -> None:
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\nt0,1\n")
    result = run("validate", three, "--rewards", table, "--reward-channel", "judge")
    assert f"rewards: 1 of 3 traces from {table}, 2 without an outcome\n" in result.stderr


EVENT = {"id": "e", "type": "message", "agent": "solver"}


@pytest.mark.parametrize("chunks", [[], ["--chunk-events", "9"]])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward": 1}, "; found key 'reward': a native log states rewards.team; expected"),
        (
            {"events": [EVENT | {"reward": 1}], "edges": []},
            "; found key 'reward' of an event: a native log states rewards.team of",
        ),
        (
            {"rewards": {"Team": 1}},
            "reward that could be it: Team (2 of 2 traces); `--reward-channel Team` takes it; expected",
        ),
        ({}, "so no action has credit; expected rewards in the log"),
    ],
)
def test_a_refusal_for_want_of_outcomes_names_what_the_log_has(
    changes: dict[str, object], words: str, chunks: list[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "x.jsonl", [trace(name, "q", None) | changes for name in "ab"])
    result = run("assign", path, "-o", tmp_path / "out.csv", *chunks)
    assert result.exit_code == 1 and words in result.stderr, result.output
    shown = words.removesuffix("; expected")
    assert (shown in run("choose", path).stdout) == bool(changes)
    if "rewards" not in changes:
        assert ("found key" in run("validate", path).stdout) == bool(changes)


@pytest.mark.parametrize("chunks", [[], ["--chunk-events", "9"]])
def test_a_refusal_for_want_of_outcomes_names_the_row_of_the_table(chunks: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [trace(name, "q", None) for name in "ab"])
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\na,fine\nb,poor\n")
    result = run("assign", path, "--rewards", table, "-o", tmp_path / "out.csv", *chunks)
    assert result.exit_code == 1
    words = f"{table}:2: trace 'a': reward is 'fine'; expected {OUTCOME_CELL}"
    assert f"{words} [non-finite-reward] and 1 more; expected" in result.stderr


def test_validate_names_the_column_of_a_table_that_may_be_the_task(tmp_path: Path) -> None:
    """It sent the user to a table of groups, though the log has the column."""
    log = tmp_path / "t.csv"
    log.write_text("task,trace,agent,reward\nq,a,x,1\nq,b,x,0\n")
    told = run("validate", log).stdout
    assert "if traces share tasks, pass --columns group=task or --groups FILE, a table" in told
    assert "Every group has one trace" not in run("validate", log, "--columns", "group=task").stdout
    log.write_text("group,trace,agent,reward\nq,a,x,1\nr,b,x,0\n")
    assert "if traces share tasks, pass --groups FILE, a table" in run("validate", log).stdout


def test_validate_counts_one_divided_task_as_one(tmp_path: Path) -> None:
    logs = [trace(name, "q", 1.0) | {"schema_version": "1.1", "model": name} for name in "ab"]
    told = " ".join(run("validate", write(tmp_path / "x.jsonl", logs)).stdout.split())
    assert "1 task has a group for each model or system" in told


def test_traces_of_older_policies_are_listed(tmp_path: Path) -> None:
    """Groups of several versions were counted nowhere before the advantages were computed."""
    versions = {"a": 3, "b": 5, "c": None, "d": 4, "e": 4, "f": 2}
    logs = [
        trace(name, "q" if name < "d" else "r", 1.0) | ({} if of is None else {"evidence": {"policy_version": of}})
        for name, of in versions.items()
    ]
    log = write(tmp_path / "x.jsonl", logs)
    told = run("validate", log).stdout
    assert "Traces of an older policy_version than the newest of their group: a (3, newest 5), f (2, newest 4)" in told
    assert json.loads(run("validate", log, "--json").stdout)["stale"] == {"a": [3, 5], "f": [2, 4]}
    assert "older policy" not in run("validate", write(log, GOOD)).stdout


@pytest.mark.slow
def test_returns_that_differ_by_rewards_at_events_are_no_different_outcomes(tmp_path: Path) -> None:
    """363 groups were said to have different outcomes where 209 had."""
    lines = []
    for group, rewards in (("outcomes", (1.0, 0.0)), ("steps", (1.0, 1.0)), ("neither", (0.0, 0.0))):
        for k, reward in enumerate(rewards):
            line = trace(f"{group}{k}", group, reward)
            del line["events"][1]["tokens"]  # with which a method would claim increments
            line["events"][1]["event_reward"] = 0.5 * k if group == "steps" else 0.25
            lines.append(line)
    log = write(tmp_path / "x.jsonl", lines)
    told = json.loads(run("validate", log, "--json").stdout)
    assert (told["teaching"], told["outcomes_apart"]) == (2, 1)
    printed = " ".join(run("validate", log).stdout.split())
    assert (
        "2 of 3, with traces of different returns; in 1 only by rewards at events, outcomes are equal there" in printed
    )
    assert "equal returns 1" in printed and "Groups with equal returns: neither" in printed
    advice = run("choose", log).stdout
    assert (
        "nothing in the log tells what one action" not in advice
        and "rewards at events tell no actions of a trace apart by discounted_return"
        in advice  # the last one earned them
    )
    for line in lines:
        del line["events"][1]["event_reward"]
    plain = write(tmp_path / "y.jsonl", lines)
    assert "nothing in the log tells what one action" in run("choose", plain).stdout
    assert "with traces of different outcomes" in run("validate", plain).stdout


def test_all_lists_every_name_and_problem_and_counts_add_up(tmp_path: Path) -> None:
    lines = [trace(f"t{i:02d}", f"q{i:02d}", 1.0) for i in range(30)]
    log = write(tmp_path / "x.jsonl", lines)
    (tmp_path / "x.jsonl").write_text(log.read_text() + "".join(f'{{"trace_id": {i}}}\n' for i in range(1040)))
    short, every = (run("validate", log, *option).output for option in ((), ("--all",)))
    assert "… and 10 more; --all lists them" in short and "q29" not in short
    assert "q29" in every and "--all" not in every
    assert "problems (1040)" in short and "… and 1020 more; `credit validate --all` lists those of logs" in short


def test_long_names_are_counted_before_they_fill_the_screen(tmp_path: Path) -> None:
    """Twenty ids of 36 characters stood in one line of 760."""
    log = write(tmp_path / "x.jsonl", [trace(f"t{i}", f"{i:02d}-{'x' * 33}", 1.0) for i in range(30)])
    short, every = (run("validate", log, *option).output for option in ((), ("--all",)))
    (line,) = (line for line in short.splitlines() if line.startswith("Groups of one"))
    assert line.count("x, ") == 7 and line.endswith("… and 23 more; --all lists them")
    assert f"29-{'x' * 33}" in every


def test_what_was_expected_of_many_files_is_written_once(tmp_path: Path) -> None:
    """Each unknown file had the names of all formats."""
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps({"x": number}) + "\n")
    told = run("validate", *(tmp_path / f"{number}.jsonl" for number in range(3))).stderr
    assert told.count("who-and-when") == 1 and told.count("the same as above") == 2


@pytest.mark.parametrize("native", [True, False])
def test_lists_of_tokens_count_them(native: bool, tmp_path: Path) -> None:
    """Logs with ids and masks had "tokens generated: not logged", and no evidence for `opo`."""
    rows = []
    for i, length in enumerate([3, 4, 5, 4]):
        mask = [False, True, True, True, False][:length]
        event = {"agent": "solver", "token_ids": list(range(length)), "token_mask": mask}
        seen = {"agent": "solver", "type": "tool_result", "token_ids": [1], "token_mask": [False]}
        if native:
            steps = [event | {"id": "a", "type": "message"}, seen | {"id": "b"}]
            steps.append({"id": "c", "type": "message", "agent": "solver", "tokens": 7, "token_ids": [1, 2]})
            rows.append({"trace_id": f"t{i}", "task_id": "q", "events": steps, "rewards": {"team": float(i)}})
        else:
            of_trace = {"trace": f"t{i}", "group": "q", "reward": float(i)}
            rows += [
                event | of_trace,
                seen | of_trace,
                of_trace | {"agent": "solver", "tokens": 7, "token_ids": [1, 2]},
            ]
    path = write(tmp_path / "log.jsonl", rows)
    assert f"tokens generated {2 + 3 + 3 + 3 + 4 * 7}; a trace has" in " ".join(run("validate", path).stdout.split())
    given = run("assign", path, "--method", "opo", "-o", tmp_path / "advantages.csv")
    assert given.exit_code == 0, given.output


def test_tokens_that_are_stated_of_a_whole_trace_are_logged(tmp_path: Path) -> None:
    """`validate` said "not logged", and `costs` printed what the log states."""
    events = [{"id": "a", "type": "message", "agent": "solver"}]
    logs = [trace(name, "q", 1.0, events=events, edges=[], costs=costs) for name, costs in
            (("a", {"tokens": 30}), ("b", {}))]  # fmt: skip
    lines = " ".join(run("validate", write(tmp_path / "log.jsonl", logs)).stdout.split())
    assert "tokens generated not logged by action; 30 stated of 1 whole trace" in lines


def test_names_with_blanks_are_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("trace,group,agent,reward\na,Q1,x,1\nb,Q1 ,x,0\n")
    assert "\nGroups of one: Q1, 'Q1 '\n" in run("validate", tmp_path / "x.csv").stdout


def test_a_table_without_turns_is_told_what_depends_on_them(tmp_path: Path) -> None:
    """`assign` said it with a method by the turn, after a look at a log that named nothing."""
    rows = ["trace,group,reward,agent,turn", "a,q,1,x,0", "a,q,1,y,0", "a,q,1,x,1", "b,q,0,x,0", "b,q,0,y,0"]
    path, said = tmp_path / "rows.csv", "every agent has one turn, though some act several times: state a column 'turn'"
    for columns, is_told in ((4, True), (5, False)):
        path.write_text("".join(",".join(row.split(",")[:columns]) + "\n" for row in rows))
        assert (f"\nFor methods by the turn {said}\n" in run("validate", path).stdout) == is_told
        assigned = run("assign", path, "-m", "mt_grpo", "-o", tmp_path / "advantages.csv")
        assert (said in " ".join(assigned.output.split())) == is_told


def test_rows_of_no_trace_are_one_line_with_a_count(good: Path, tmp_path: Path) -> None:
    """Those of 70 took 20 lines, and "50 more"."""
    (tmp_path / "rewards.csv").write_text("trace,reward\na,1\n" + "".join(f"gone{i},0\n" for i in range(70)))
    said = run("validate", good, "--rewards", tmp_path / "rewards.csv").stdout
    assert said.count("[unmatched-row]") == 1 and "[unmatched-row], and 69 more like it" in said, said
    assert "rewards.csv:3: trace is 'gone0'; expected the id of a trace that was read" in said
    listed = run("validate", good, "--rewards", tmp_path / "rewards.csv", "--all").stdout
    assert listed.count("[unmatched-row]") == 70
