"""What only the whole batch shows: versions in one group, outcomes copied to rows, groups that some traces lack."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.doctor.team_checks import CHECKS, examine
from credit.methods.availability import availability
from credit.methods.registry import METHODS
from credit.methods.running import run
from estimators.options import takes_key
from graphs.errors import MissingColumnWarning, UnreadWarning
from graphs.traces.batch_notes import OF_VERSIONS


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def noted(path: Path, **options: object) -> list[tuple[str, str]]:
    problems = credit.read(path, **options).problems  # type: ignore[arg-type]
    assert not any(problem.is_failure for problem in problems)
    return [(problem.kind, problem.value) for problem in problems]


UNKNOWN = "unknown in 4 traces of groups that state one, in 2 files"


@pytest.mark.parametrize(
    ("second", "said"),
    [(9, [("several-versions", "several in 2 groups, in 2 files")]), (1, []), (None, [("several-versions", UNKNOWN)])],
)
def test_groups_of_several_policy_versions_are_named(tmp_path: Path, second: int | None, said: object) -> None:
    """Dumps of two steps with the same tasks were compared as one group, without a word."""
    for step, version in enumerate((1, second)):
        rows = {"uid": [*"aabb"], "traj_uid": [f"{step}.{i}" for i in range(4)], "score": [1.0, 0.0, 1.0, 0.0]}
        versions = pa.array([version] * 4, pa.int64())
        pq.write_table(pa.table({**rows, "policy_version": versions}), tmp_path / f"step{step}.parquet")
    assert noted(tmp_path) == said


def test_the_note_on_versions_names_the_file_of_all_its_groups_or_how_many(tmp_path: Path) -> None:
    """It named one file for groups of which the second was in another."""
    head = "trace,group,policy_version,reward\n"
    alike, mixed, other = (f"{g}1,{g},1,1\n{g}2,{g},{v},0\n" for g, v in (("p", 1), ("q", 2), ("r", 2)))
    written(tmp_path, "a.csv", head + alike)
    one = written(tmp_path, "b.csv", head + mixed)
    for second, value in ((alike.replace("p", "s"), "several in 1 group"), (other, "several in 2 groups, in 2 files")):
        written(tmp_path, "c.csv", head + second)
        (problem,) = credit.read(tmp_path).problems
        assert (problem.file, problem.value) == (str(one), value)


@pytest.mark.slow
def test_the_note_on_versions_asks_for_a_weight_and_no_other_comparison(tmp_path: Path) -> None:
    """It expected one version in a group, though a mean of other traces has no bias; within one is no other."""
    rows = [("q", 1, 1), ("q", 1, 0), ("q", 2, 1), ("p", 1, 1), ("p", 1, 0), ("p", 2, 1), ("p", 2, 0), ("o", 1, 1)]
    text = "".join(f"t{i},{group},{version},{reward}\n" for i, (group, version, reward) in enumerate(rows))
    path = written(tmp_path, "rows.csv", "trace,group,policy_version,reward\n" + text)
    (problem,) = credit.read(path).problems
    assert problem.value == "several in 2 groups" and problem.expected == OF_VERSIONS and not problem.is_failure
    assert OF_VERSIONS in CHECKS["mixed_groups"].advice
    call = ["assign", str(path), "--method", "rloo", "-o", str(tmp_path / "a.csv")]
    said = CliRunner().invoke(cli, call).stderr
    assert "1 several-versions" in said and said.count("--by task,policy_version") == 1
    for more, without in ([], [2, 7]), (["--option", "singleton=raw"], []):
        done = CliRunner().invoke(cli, [*call, "--by", "task,policy_version", *more])
        assert done.exit_code == 0 and "1 several-versions" in done.stderr, done.stderr
        assert "--by task,policy_version" not in done.stderr  # which compares so
        valid = pacsv.read_csv(tmp_path / "a.csv")["valid"].to_pylist()
        assert [i for i, ok in enumerate(valid) if not ok] == without


@pytest.mark.parametrize(
    ("late", "missing", "said"),
    [("2", "", "several in 1 group"), ("2", "1", "several in 2 groups"), ("", "", "unknown in 1 trace of groups that"),
     ("", "1", "several in 1 group, unknown in 1 trace of groups that")],
)  # fmt: skip
def test_the_note_on_versions_counts_traces_that_are_compared(
    tmp_path: Path, late: str, missing: str, said: str
) -> None:
    """It counted traces without an outcome, and those of no version nowhere."""
    rows = [("q", "1", 1), ("q", late, 0), ("p", "1", 1), ("p", "1", 0), ("p", "2", missing), ("o", "", 1)]
    text = "".join(f"t{i},{group},{version},{reward}\n" for i, (group, version, reward) in enumerate(rows))
    path = written(tmp_path, "rows.csv", "trace,group,policy_version,reward\n" + text)
    ((kind, shown),) = noted(path)
    assert kind == "several-versions" and (shown == said if late else shown.startswith(said))
    (mixed,) = (finding for finding in examine(credit.read(path)) if finding.check == "mixed_groups")
    assert mixed.shown == bool(missing) + bool(late)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:mgrpo compares by the parent")
@pytest.mark.parametrize("of_all", [False, True])
def test_a_key_of_versions_compares_as_groups_of_task_and_version_do(
    of_all: bool, of_each_kind: set[str], tmp_path: Path
) -> None:
    """By every method that takes a key."""
    rows = [(f"t{i}", agent, 1 + i // 2, i % 2) for i in range(4) for agent in "sc"]
    text = "".join(f"{t},q,{agent},{version},{reward}\n" for t, agent, version, reward in rows)
    path = written(tmp_path, "rows.csv", "trace,group,agent,policy_version,reward\n" + text)
    of_both = {f"t{i}": f"q of {1 + i // 2}" for i in range(4)}
    file = written(tmp_path, "g.csv", "trace,group\n" + "".join(f"{t},{group}\n" for t, group in of_both.items()))
    logged, split = credit.read(path), credit.read(path, groups=of_both)
    assert len(logged.problems) == 1 and not split.problems
    keyed, states = set(), availability(logged)
    for name in (name for name in METHODS if states[name].state == "computable"):
        if not of_all and name not in {*of_each_kind, "rloo", "hierarchical_grpo"}:
            continue
        apart = run(split, name)
        if takes_key(METHODS[name].fn):
            keyed.add(name)
            raw = {"singleton": "raw"} if "singleton" in METHODS[name].given({}) else {}
            key = METHODS[name].compared.key.replace(", ", ",")
            for more in ({}, raw):
                got = run(logged, name, by=f"{key},policy_version", **more)
                np.testing.assert_array_equal(got.advantage, apart.advantage, err_msg=name)
    assert "rloo" in keyed and "hierarchical_grpo" not in keyed
    call = ["assign", str(path), "--method", "hierarchical_grpo", "--groups", str(file), "-o", str(tmp_path / "a.csv")]
    done = CliRunner().invoke(cli, call)
    assert done.exit_code == 0 and "several-versions" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("steps", "outcomes", "said"),
    [([1, 1, 0, 0], [1, 1, 0, 0], "in every row"), ([1, 1, "", ""], [1, 1, "", ""], "in every row"),
     ([0, 1, 0, 0], [1, 1, 0, 0], "in the sum of each trace"),
     ([0.1, 0.2, 0.5, ""], [0.3, 0.3, 0.5, 0.5], "in the sum of each trace"),
     ([0, 1, "", 1], [1, 1, 1, 1], "in the sum of each trace"), ([0, 1, 0, 0.5], [1, 1, 0, 0], ""),
     ([0.2, 1, 0.3, 0], [1, 1, 0, 0], "in the last row of each trace"),  # as verl has it, after rewards of steps
     ([-0.1, 1, -0.1, 0], [1, 1, 0, 0], "in the last row of each trace"), ([0.2, 1, 1, 0.3], [1, 1, 1, 1], ""),
     ([0.2, 1, 0.3, 0.1], [1, 1, 0, 0], ""), ([0.2, 0, 0.3, 0], [1, 1, 0, 0], ""),
     ([1, 1, 1, 1], [1, 1, 1, 1], ""), ([0, 0, 0, 0], [0, 0, 0, 0], ""), ([0, 1, 0, 0], [1, 1, "", ""], "")],
)  # fmt: skip
def test_an_outcome_that_is_paid_again_is_named(
    tmp_path: Path, steps: Sequence[object], outcomes: Sequence[object], said: str
) -> None:
    """Copied to every row, or as the step's reward that it is the sum of, it counted twice without a word."""
    rows = [f"{t},q,{reward},{step}\n" for t, reward, step in zip("aabb", outcomes, steps, strict=True)]
    third = "c,q,0,0\n" if steps == [1, 1, "", ""] else ""  # outcomes that differ, beside a trace without one
    path = written(tmp_path, "rows.csv", "trace,group,reward,event_reward\n" + "".join(rows) + third)
    null = sum(step == "" != reward for step, reward in zip(steps, outcomes, strict=True))
    of_null = [("some-without-event-reward", f"null in {null} of {len(steps)} rows, where it counts 0")] * (null > 0)
    assert noted(path) == ([("outcome-again", f"the outcome again {said}")] if said else []) + of_null
    with pytest.warns(UnreadWarning, match="outcome-again") if said else contextlib.nullcontext():
        credit.read(path)


@pytest.mark.parametrize(("others", "said"), [(18, True), (3, False)])
def test_a_last_reward_that_is_nearly_always_the_outcome_is_named(tmp_path: Path, others: int, said: bool) -> None:
    rows = [f"t{i},q,{i % 2},0.2\nt{i},q,{i % 2},{i % 2}\n" for i in range(others)]
    rows += ["x,q,1,0.2\nx,q,1,0.7\n"]
    path = written(tmp_path, "rows.csv", "trace,group,reward,event_reward\n" + "".join(rows))
    where = f"the outcome again in the last row of {others} of {others + 1} traces"
    assert noted(path) == ([("outcome-again", where)] if said else [])


def test_traces_without_a_group_beside_others_are_named(tmp_path: Path) -> None:
    """A blank cell made a group of its own, without a word."""
    cells = [("a", "q"), ("b", "q"), ("c", ""), ("d", "")]
    path = written(tmp_path, "rows.csv", "trace,group,reward\n" + "".join(f"{t},{g},1\n" for t, g in cells))
    assert noted(path) == [("some-without-group", "missing in 2 traces beside 2 with one")]
    assert noted(path, groups=dict.fromkeys("abcd", "q")) == []
    assert [kind for kind, _ in noted(path, groups={"c": "q"})] == ["groups-of-some"]
    for of_trace in (("", "", "", ""), ("a", "a", "q", "q")):  # none; the name of a trace, which others share
        rows = "".join(f"{t},{g},1\n" for t, g in zip("abcd", of_trace, strict=True))
        assert noted(written(tmp_path, "rows.csv", "trace,group,reward\n" + rows)) == []


@pytest.mark.parametrize(("name", "said"), [("q1", True), ("1", True), (str(uuid.UUID(int=7, version=4)), False)])
def test_a_task_of_several_tables_is_named_whatever_it_is_called(tmp_path: Path, name: str, said: bool) -> None:
    """Of two steps' tables with tasks called q1 all rows were pooled without a word: only numbers were looked at."""
    for step in (1, 2):
        rows = "".join(f"{step}{trace},{name},{reward}\n" for reward, trace in enumerate("ab"))
        written(tmp_path, f"step{step}.csv", "trace,group,reward\n" + rows)
    text = f"{name!r}, in 2 files, and no step or policy_version is read"
    assert noted(tmp_path) == [("group-over-files", text)] * said


@pytest.mark.parametrize(("of_file", "said"), [(2, True), (1, False)])
def test_a_task_of_native_logs_of_steps_is_named_and_no_run_that_is_a_file(
    tmp_path: Path, of_file: int, said: bool
) -> None:
    for step in (1, 2):
        rows = [
            {"trace_id": f"{step}.{k}", "task_id": "q1", "events": [{"id": "e", "type": "message", "agent": "a"}]}
            | {"rewards": {"team": k}}
            for k in range(of_file)
        ]
        written(tmp_path, f"step{step}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    text = "'q1', in 2 files, and no step or policy_version is read"
    assert noted(tmp_path) == [("group-over-files", text)] * said


@pytest.mark.parametrize(("systems", "said"), [(("v1", "v2"), False), (("v1", "v1"), True), (("", "v1"), False)])
def test_files_of_one_system_each_are_no_steps_of_a_trainer(
    tmp_path: Path, systems: tuple[str, str], said: bool
) -> None:
    """Two releases' files with `--group-by task` were told to state a step in each row."""
    for step, system in enumerate(systems):
        rows = [
            {"trace_id": f"{step}.{k}", "task_id": "7", "events": [{"id": "e", "type": "message", "agent": "a"}]}
            | {"rewards": {"team": k}, "system": system}
            for k in (0, 1)
        ]
        written(tmp_path, f"{step}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [kind for kind, _ in noted(tmp_path, group_by=["task"])] == ["group-over-files"] * said


@pytest.mark.parametrize("kind", ["rollouts", "table"])
@pytest.mark.parametrize(("stated", "said"), [(False, True), (True, False)])
def test_groups_over_files_that_state_no_step_are_named(tmp_path: Path, kind: str, stated: bool, said: bool) -> None:
    """An index of the data set in the place of a UUID joined the rollouts of two steps, without a word."""
    for step in (1, 2):
        rows = [{"input": f"p{q}", "output": f"{q}{k}{step}", "score": float(k)} for q in (0, 1) for k in (0, 1)]
        for number, row in enumerate(rows):
            row |= {"uid": number // 2} | ({"step": step} if stated else {})
            if kind == "table":
                row |= {"traj_uid": f"{step}.{number}"} | ({"policy_version": step} if stated else {})
        if kind == "rollouts":
            written(tmp_path, f"{step}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        else:
            columns = ("uid", "traj_uid", "score", *(("policy_version",) if stated else ()))
            table = pa.table({name: [row[name] for row in rows] for name in columns})
            pq.write_table(table, tmp_path / f"{step}.parquet")
    over = [("group-over-files", "'0' and 1 other group, in 2 files, and no step or policy_version is read")]
    of_versions = [("several-versions", "several in 2 groups, in 2 files")] if stated and kind == "table" else []
    assert noted(tmp_path) == (over if said else of_versions)
    one = tmp_path / f"1.{'jsonl' if kind == 'rollouts' else 'parquet'}"
    assert noted(one) == []


@pytest.mark.parametrize("other", ["Q1 ", "q1", "Q1\u00a0", "\uff311"])
def test_ids_that_a_person_takes_for_one_are_named(tmp_path: Path, other: str) -> None:
    """They were two groups without a word."""
    path = written(tmp_path, "rows.csv", f"trace,group,agent,reward\na,Q1,x,1\nb,{other},x,0\n")
    assert noted(path)[0][0] == "look-alike-ids" and noted(path)[0][1].startswith("'Q1', ")
    done = CliRunner().invoke(cli, ["validate", str(path)])
    assert done.exit_code == 0 and done.stdout.count("[look-alike-ids]") == 1


@pytest.mark.parametrize("other", ["searcher_0", "searcher 0", "Searcher--0"])
@pytest.mark.parametrize("trace", "ab")
def test_agents_renamed_by_a_joint_are_named(tmp_path: Path, other: str, trace: str) -> None:
    """A renamed agent was another without a word, also beside itself; a sign and another number are no joint."""
    rows = f"trace,group,agent,reward\na,q,searcher-0,1\n{trace},q,{other},1\nb,q,searcher0,1\nc,q,-1,0\nd,q,1,0\n"
    path = written(tmp_path, "rows.csv", rows)
    assert noted(path) == [("look-alike-ids", f"'searcher-0', '{other}'")]


def test_numbers_that_pandas_wrote_as_floats_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, "rows.csv", "trace,group,agent,reward\n1,q,x,1\n1.0,q,X,0\n1.5,q,x,0\n")
    assert noted(path) == [("look-alike-ids", "'1', '1.0'"), ("look-alike-ids", "'x', 'X'")]


@pytest.mark.parametrize(
    ("times", "context", "said"),
    [("0000", False, 2), ("0101", False, 0), ("0000", True, 0), ("0001", False, 1)],
)
def test_a_reward_before_another_agents_action_of_one_time_is_named(
    tmp_path: Path, times: str, context: bool, said: int
) -> None:
    """Which of two agents' rows at one time stood first moved the numbers, without a word."""
    steps = [0.5, 0, -0.5, 0]
    lines = [
        {"group": "q", "trace": t, "agent": a, "time": int(at), "reward": r, "event_reward": e}
        | ({"context": f"{t}{at}"} if context else {})
        for t, a, at, r, e in zip("aabb", "ABAB", times, (1, 1, 0, 0), steps, strict=True)
    ]
    path = written(tmp_path, "rows.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    events = f"{said} event{'s' * (said > 1)}"
    shown = f"above 0 or below in {events} at one time with a later one"
    assert noted(path) == ([("rewards-at-one-time", shown)] if said else [])
    with pytest.warns(MissingColumnWarning, match="have one time or overlap") if said else contextlib.nullcontext():
        advantage = np.asarray(run(credit.read(path), "discounted_return").advantage)[:4]
    assert advantage.tolist() == ([1.5, 1.5, -0.5, -0.5] if context else [1.5, 1.0, -0.5, 0.0])


@pytest.mark.parametrize(
    ("begins", "seconds", "agents", "said"),
    [
        ([0, 1.775, 1.785, 3.74], [1.775, 1.67, 1.95, 1], "pvwp", 1),
        ([0, 1.775, 3.452, 5.5], [1.775, 1.68, 1.95, 1], "pvwp", 0),  # by less than what a begin may be off
        ([0, 1, 3, 5], [1.7, 1.7, 1.9, 1], "pvwp", 0),  # of a clock of seconds
        ([0, 1.7, 1.7, 3.5], None, "pvvp", 1),
        ([0, 1.7, 1.8, 3.5], [1.7, 1.6, 1.5, 1], "pvvp", 1),
        ([0, 1.7, 3.5, 4.5], [6.0, 1.6, 0.5, 1], "pvwv", 1),
    ],
)
def test_a_reward_within_anothers_span_and_one_of_a_name_are_named(
    tmp_path: Path, begins: list[float], seconds: list[float] | None, agents: str, said: int
) -> None:
    """Workers who began 10 ms apart, or of one name, acted at once, and only equal begins of two names were noted."""
    rows = [
        {"group": "q", "trace": t, "agent": a, "time": begins[i], "reward": r, "event_reward": [0, 0.5, 0, 0][i]}
        | {"value": 0.5}
        | ({"seconds": seconds[i]} if seconds else {})
        for t, r in (("a", 1), ("b", 0))
        for i, a in enumerate(agents)
    ]
    path = written(tmp_path, "rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    shown = "above 0 or below in 2 events at one time with a later one"
    twice = [("agent-twice", "'v' twice at one time")] * (said > 0 and seconds is None)
    assert noted(path) == [*([("rewards-at-one-time", shown)] if said else []), *twice]
    words = "in 2 traces several actions have one time or overlap"
    for method in ("discounted_return", "gae"):  # both took overlapping spans for an order without a word
        with pytest.warns(MissingColumnWarning, match=words) if said else contextlib.nullcontext():
            credit.run(credit.read(path), method)


@pytest.mark.parametrize("spawned", [False, True])
def test_the_span_of_an_agent_contains_those_that_it_spawned(tmp_path: Path, spawned: bool) -> None:
    """That of another agent proves that both were at once."""
    agents = [{"id": "p"}, {"id": "v"} | ({"parent": "p"} if spawned else {})]
    events = [
        {"id": a, "type": "message", "agent": a, "t": at, "seconds": took, "event_reward": 0.5}
        for a, at, took in (("p", 0.5, 4.25), ("v", 1.25, 1.5))
    ]
    logs = [
        {"trace_id": t, "task_id": "q", "agents": agents, "events": events, "rewards": {"team": r}}
        for t, r in (("a", 1), ("b", 0))
    ]
    path = written(tmp_path, "logs.jsonl", "".join(json.dumps(log) + "\n" for log in logs))
    assert [kind for kind, _ in noted(path)] == ([] if spawned else ["rewards-at-one-time"])


def test_a_null_reward_of_a_row_is_named_at_its_row(tmp_path: Path) -> None:
    """The first row of its trace was named, which has one."""
    path = written(tmp_path, "rows.csv", "trace,reward,event_reward\na,1,0.5\na,1,0.25\na,1,\nb,0,0.5\n")
    (problem,) = credit.read(path).problems
    assert (problem.kind, problem.line) == ("some-without-event-reward", 4)


def test_several_versions_in_a_trace_are_named(tmp_path: Path) -> None:
    """That of the first row counted without a word."""
    rows = ["a,1,3", "a,1,3", "b,0,3", "b,0,", "c,1,3", "c,1,4", "c,1,5", "d,1,3", "d,1,4"]
    path = written(tmp_path, "rows.csv", "trace,reward,policy_version\n" + "\n".join(rows) + "\n")
    (problem,) = credit.read(path).problems
    assert (problem.kind, problem.trace, problem.line, problem.count) == ("several-versions", "c", 7, 2)
    assert "that of its first row counts" in str(problem) and not problem.is_failure


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["a,q,0", "a,q,1"], "null, not 0, stands in the other rows"),
        (["a,q,1", "a,q,0"], "null, not 0, stands in the other rows"),
        (["0,q1,1", "0,q2,1"], "where ids count within each group, join them to the group's"),
    ],
)
def test_refusals_of_rows_that_disagree_name_the_remedy(rows: list[str], said: str, tmp_path: Path) -> None:
    """Outcomes of 0 before the last row, and rollouts numbered within each task, refused most traces."""
    path = written(tmp_path, "rows.csv", "trace,group,reward\n" + "\n".join([*rows, "b,q,1"]) + "\n")
    (problem,) = credit.read(path).problems
    assert said in problem.expected


def test_traces_that_are_refused_for_their_outcome_leave_the_bias_open(tmp_path: Path) -> None:
    """A null outcome did, NaN did not."""
    rows = [f"{group}{i},{group},{i % 2}\n" for group in "qr" for i in range(4)]
    path = written(tmp_path, "rows.csv", "trace,group,reward\n" + "".join([*rows, "x,q,nan\n", "y,q,1\ny,q,0\n"]))
    done = CliRunner().invoke(cli, ["assign", str(path), "-m", "rloo", "-o", str(tmp_path / "out.csv")])
    said = "  the policy gradient may be biased: 2 traces were refused for the outcome, left out as one without"
    assert f"{said}: state each outcome once, with null, not 0, in the other rows; if others failed" in done.stderr


def test_successes_that_are_refused_are_not_called_failures(tmp_path: Path) -> None:
    """Of outcomes in the last row, 0 before, all successes were refused, and the hint was to give them 0."""
    rows = [f"{group}{i},{group},{int(i % 2 and last)}\n" for group in "qr" for i in range(4) for last in (0, 1)]
    path = written(tmp_path, "rows.csv", "trace,group,reward\n" + "".join(rows))
    done = CliRunner().invoke(cli, ["assign", str(path), "-m", "rloo", "-o", str(tmp_path / "out.csv")])
    assert "4 traces were refused for the outcome" in done.stderr and "null, not 0" in done.stderr
    assert "failed" not in done.stderr


@pytest.mark.parametrize("cell", ['"none"', "[1]", "NaN", "-Infinity", "1e300", "1" + "0" * 400])
@pytest.mark.parametrize("log", ["native", "episode", "table", "table of another key", "table of a key that is named"])
def test_an_outcome_that_cannot_be_read_leaves_the_bias_open_whatever_is_wrong(
    tmp_path: Path, log: str, cell: str
) -> None:
    """NaN in Parquet and two outcomes did; a text, NaN in JSON and 1e300 did not."""
    event = '[{"id":"e","type":"message","agent":"a"}]'
    line = {
        "native": f'{{"trace_id":"t%d","task_id":"q","rewards":{{"team":%s}},"events":{event}}}',
        "episode": '{"id":"t%d","env":{"id":"e"},"task":{"key":"q","data":{}},"group":{"id":"q"},"ok":true,"errors":[],'
        '"run":{"work":{"type":"train","step":1,"policy":{"start":1,"end":1}}},"traces":[{"id":"a","agent":{"name":"a",'
        '"trainable":true},"calls":[],"metrics":{},"rewards":{"right":{"score":%s,"weight":1.0}},"nodes":[{"message":'
        '{"role":"assistant","content":"c"},"sampled":true,"token_ids":[1],"mask":[true],"logprobs":[-0.1]}]}]}',
        "table": '{"trace":"t%d","group":"q","reward":%s}',
        "table of another key": '{"trace":"t%d","group":"q","score":%s}',
        "table of a key that is named": '{"trace":"t%d","group":"q","verdict":%s}',
    }[log]
    path = written(tmp_path, "log.jsonl", "".join(line % (i, i % 2 if i else cell) + "\n" for i in range(5)))
    named = ["--columns", "reward=verdict"] if "verdict" in line else []
    done = CliRunner().invoke(cli, ["assign", str(path), "-m", "rloo", *named, "-o", str(tmp_path / "out.csv")])
    is_word = log[:5] == "table" and cell == '"none"'  # the trace is read, as with a table of rewards
    which = "1 of 5 traces has no outcome" if is_word else "1 trace was refused for the outcome"
    assert f"  the policy gradient may be biased: {which}" in done.stderr, done.stderr
    assert is_word or "left out as one without" in done.stderr
    assert log != "episode" or "trace 't0': " in done.stderr
