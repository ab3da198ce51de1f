"""The refusal of logs without an outcome names the row that should have stated one, at once and part by part."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.method_summary import Summary
from credit.methods.absent_outcomes import spoilt_rows
from credit.methods.chunked import ChunkedMethod
from credit.ray.jobs import Advantages
from graphs.errors import CreditError, Problem
from graphs.traces.batch import Traces

EVENT = {"id": "e", "type": "message", "agent": "solver"}


def log(folder: Path, name: str, **changes: object) -> Path:
    """A trace without an outcome."""
    path = folder / f"{name}.jsonl"
    trace = {"trace_id": name, "task_id": name, "events": [EVENT], "edges": [], "rewards": {}} | changes
    path.write_text(json.dumps(trace) + "\n")
    return path


def refused(traces: Traces) -> str:
    with pytest.raises(CreditError) as caught:
        credit.run(traces, "rloo")
    return str(caught.value)


def test_a_broken_row_of_rewards_is_named(tmp_path: Path) -> None:
    (tmp_path / "rewards.jsonl").write_text('{"trace":"b","rewar\n')
    words = refused(credit.read(log(tmp_path, "b"), rewards=tmp_path / "rewards.jsonl"))
    assert f"{tmp_path}/rewards.jsonl:1: trace 'b':" in words and "without it the reward of the trace" in words


def test_a_row_of_groups_is_not_what_lost_an_outcome(tmp_path: Path) -> None:
    """It was named in the place of a row of rewards."""
    groups, rewards = tmp_path / "groups.csv", tmp_path / "rewards.csv"
    groups.write_text("trace,group\nzz,q\nzz,q\nyy,\n")
    rewards.write_text("trace,reward\nzz,1\n")
    path = log(tmp_path, "a")
    assert "groups.csv" not in refused(credit.read(path, groups=groups))
    words = refused(credit.read(path, groups=groups, rewards=rewards))
    assert f"{rewards}:2: trace is 'zz'; expected the id of a trace that was read, whose reward the row states" in words
    assert "groups.csv" not in words and " more; " not in words


def test_traces_with_a_reward_of_another_name_are_no_killed_runs(tmp_path: Path) -> None:
    """Half of a log had its outcome as `score`, and an outcome of 0 was advised for it."""
    named = ["team", "team", "score", "score", "team"]
    rewards = [{name: float(k)} for k, name in enumerate(named)] + [{}]
    files = [log(tmp_path, f"t{k}", task_id="q", rewards=stated) for k, stated in enumerate(rewards)]
    for channel, who in ((), "3 of 6"), (("--reward-channel", "score"), "4 of 6"):
        call = ["assign", *map(str, files), "-o", str(tmp_path / "a.csv"), *channel]
        said = CliRunner().invoke(cli, call).stderr
        other, count = ("team", 3) if channel else ("score", 2)
        assert f"{who} traces have no outcome: left out, with no advantage and in no baseline; {count} of these" in said
        assert f"have the reward {other!r}, which is not the outcome: log it under one name" in said
        assert "such as 0" not in said


def test_a_verdict_that_stands_beside_outcomes_is_not_to_be_logged_as_one(tmp_path: Path) -> None:
    """That advice would have trained on what a checker says."""
    for verdicts, one_name in (([1.0, 0.0, 1.0], True), ([1.0, 1.0, 1.0], False)):
        stated = [{"team": 1.0}, {"team": 0.0}, {}]
        files = [
            log(tmp_path, f"t{k}", task_id="q", rewards=rewards | {"checker": verdict})
            for k, (rewards, verdict) in enumerate(zip(stated, verdicts, strict=True))
        ]
        said = CliRunner().invoke(cli, ["assign", *map(str, files), "-o", str(tmp_path / "a.csv")]).stderr
        assert ("log it under one name, or join outcomes by --rewards" in said) == one_name
        assert "1 of these has the reward 'checker', which is not the outcome" in said
        assert "join outcomes by --rewards" in said


def test_an_unread_column_that_may_be_the_reward_is_named_with_its_option(tmp_path: Path) -> None:
    """`--rewards FILE` was advised, though the table had the outcomes."""
    table = tmp_path / "x.csv"
    named = "columns is 'final_reward'; expected names of docs/formats/table.md, or "
    named += "reward=final_reward in --columns"
    for more, cell in (("", ""), (",event_reward", ",0.5")):
        table.write_text(f"trace,group,agent,final_reward{more}\na,q,s,1{cell}\nb,q,s,0{cell}\n")
        assert named in refused(credit.read(table, format="table", columns={"agent": "agent"}))
    assert credit.read(table, columns={"reward": "final_reward"}).reward[:2].tolist() == [1.0, 0.0]


ROWS = {
    "a cell": "trace,{0}\na,\n",
    "a second row": "trace,{0}\na,1\na,1\n",
    "a row of no trace": "trace,{0}\nzz,1\n",
    "a row without a trace": "trace,{0}\n,1\n",
    "a row that cannot be read": "trace,{0}\na,1,2\n",
    "a row that is cut": '{{"trace":"b","{0}":1}}\n{{"trace":"a","{0}\n',
}


@pytest.mark.parametrize("row", ROWS)
def test_what_a_row_lost_does_not_depend_on_the_words_of_its_problem(row: str, tmp_path: Path) -> None:
    """A row of groups was one of rewards where a message had that word."""
    path = log(tmp_path, "a")
    for field in ("reward", "group"):
        (tmp_path / "table").write_text(ROWS[row].format(field))
        try:
            found = credit.read(path, **{f"{field}s": tmp_path / "table"}).problems
        except credit.NothingReadError as error:  # the group of its only trace is unknown
            found = error.problems
        assert {problem.about for problem in found} == {field}
        reworded = [dataclasses.replace(problem, expected="no reward of a group") for problem in found]
        for problem in [*found, *reworded]:
            assert bool(spoilt_rows([problem])) is (field == "reward"), problem


def test_parts_refuse_with_what_any_of_them_has_instead(tmp_path: Path) -> None:
    """The first part decided: where it had nothing to name, the message named nothing."""
    job = Advantages(ChunkedMethod("rloo"), actions_only=False)
    parts = [credit.read(log(tmp_path, "a")), credit.read(log(tmp_path, "b", score=1))]
    spoilt = Problem("non-finite-reward", "rewards.csv", 2, "reward", "'high'", "a finite number", "a")
    with pytest.raises(CreditError) as caught:
        job.finish([job.compute(part)[1] for part in parts], [spoilt])
    assert f"; {spoilt_rows([spoilt])}; found key 'score': a native log states rewards.team; expected" in str(
        caught.value
    )


def test_chunks_refuse_with_what_any_of_them_has_instead(tmp_path: Path) -> None:
    """As parts do: the first chunk decided."""
    logs = [str(log(tmp_path, "a")), str(log(tmp_path, "b", score=1))]
    done = CliRunner().invoke(
        cli, ["assign", *logs, "-m", "rloo", "-o", str(tmp_path / "out.parquet"), "--chunk-events", "1"]
    )
    assert done.exit_code != 0 and "found key 'score': a native log states rewards.team" in " ".join(
        done.output.split()
    )


def test_rows_whose_ids_match_nothing_get_near_names(tmp_path: Path) -> None:
    table = tmp_path / "rewards.csv"
    table.write_text("trace,reward\n" + "".join(f"session_{i},1\n" for i in range(5)))
    log = tmp_path / "x.jsonl"
    log.write_text("".join(f'{{"trace_id": "session-{i}", "task_id": "q", "events": [{{"id": "e", "type": "message", '
                           f'"agent": "a"}}], "edges": [], "rewards": {{}}}}\n' for i in range(5)))  # fmt: skip
    texts = [str(problem) for problem in credit.read(log, rewards=table).problems]
    assert [("Did you mean session-" in text) for text in texts] == [True] * 3 + [False] * 2  # each is a search
    assert "Did you mean session-1 or " in texts[1]


@pytest.mark.parametrize("native", [False, True])
def test_rewards_at_events_alone_ask_for_an_outcome_of_zero(native: bool, tmp_path: Path) -> None:
    """`choose`, `assign` and `validate` asked for rewards, beside rewards, and not for the zeros that count them."""

    def written(outcome: bool) -> Path:
        if native:
            paid = [{"id": str(k), "type": "message", "agent": "s", "event_reward": 0.5 * k} for k in (1, 0)]
            logs = [
                {"trace_id": f"t{i}", "task_id": "q", "events": paid[i:], "edges": []}
                | {"rewards": {"team": 0} if outcome else {}}
                for i in range(2)
            ]
            path = tmp_path / f"{outcome}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in logs))
            return path
        path = tmp_path / f"{outcome}.csv"
        zero = ",0" if outcome else ""
        rows = [f"q,{trace},{earned}{zero}" for trace, earned in zip("aab", (0.5, 0, 0), strict=True)]
        path.write_text("\n".join(["group,trace,event_reward" + ",reward" * outcome, *rows]) + "\n")
        return path

    words = "where a trace earned their sum, state its outcome as 0"
    path = written(False)
    assert words in refused(credit.read(path))
    for call in (["choose"], ["validate"], ["assign", "--method", "rloo", "-o", str(tmp_path / "a.csv")]):
        assert words in CliRunner().invoke(cli, [*call, str(path)]).output, call
    traces = credit.read(written(True))
    given = credit.run(traces, "rloo").advantage[: traces.sizes.events]
    assert given.tolist() == [0.5, 0.5, -0.5] and not traces.problems


def test_traces_without_outcome_that_are_longer_are_named(tmp_path: Path) -> None:
    """They were left out without a word on what may have cut them: what the policy chose."""

    def table_of(name: str, cut: list[int]) -> Path:
        table = [
            {"group": f"q{k % 3}", "trace": f"{kind}{k}", "agent": "a", "reward": reward}
            for kind, lengths in (("whole", [2, 3, 4, 3, 2, 4]), ("cut", cut))
            for k, length in enumerate(lengths)
            for reward in [None if kind == "cut" else float(k % 2)] * length
        ]
        (tmp_path / name).write_text("\n".join(map(json.dumps, table)) + "\n")
        return tmp_path / name

    longer = "traces without an outcome are longer: 3 have 9 actions on average, the 6 others 3; if actions decide"
    for name, cut, words in (("x.jsonl", [9, 9, 9], longer), ("y.jsonl", [3, 4, 2], ""), ("z.jsonl", [9], "")):
        traces = credit.read(table_of(name, cut))
        lines, said = credit.choose(traces).warnings, Summary()
        said.add(traces, credit.run(traces, "rloo"), "rloo", {})
        for printed in (lines, Summary.from_plain(said.to_plain()).lines("rloo", {})):
            assert any("traces without an outcome are" in line for line in printed) == bool(words)
            assert not words or any(words in line for line in printed)
            who = "1 of 7 traces has no outcome, as a killed run" if len(cut) == 1 else "3 of 9 traces have no outcome"
            (line,) = (line for line in printed if who in line)  # `choose` said nothing, and `assign` counted actions
            assert "left out, with no advantage and in no baseline" in line and "give them an outcome" in line
