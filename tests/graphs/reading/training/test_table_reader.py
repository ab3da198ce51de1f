"""Trainers' tables: a row is an action."""

from __future__ import annotations

import csv
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import credit
from credit.reports.event_texts import event_texts
from credit.reports.tool_calls import ToolCalls
from graphs.errors import CreditError, NothingReadError, Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.table import sniff
from graphs.formats.table.columns import KNOWN
from graphs.logs import detect, read
from graphs.logs.chunks import read_chunks
from graphs.padding import unpad
from graphs.reading.text_keys import ASKED, CALLED, FAILED, GAVE, SAID, TOLD
from graphs.traces.cache import write_cache
from graphs.traces.schema import EVENT_EVIDENCE
from graphs.writers import native

# Two rollouts of one task and one of another, interleaved as a trainer's batch is.
ROWS: list[dict[str, Any]] = [
    {"uid": "q1", "traj_uid": "r1", "agent_id": "solver", "reward": 1.0, "tokens": 10},
    {"uid": "q1", "traj_uid": "r2", "agent_id": "solver", "reward": 0.0, "tokens": 20},
    {"uid": "q1", "traj_uid": "r1", "agent_id": "verifier", "reward": 1.0, "tokens": 30},
    {"uid": "q2", "traj_uid": "r3", "agent_id": "solver", "reward": 0.5, "tokens": 40},
    {"uid": "q1", "traj_uid": "r1", "agent_id": "solver", "reward": 1.0, "tokens": None},
]


def as_jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    lines = [",".join(rows[0])]
    lines += [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    return "\n".join([*lines, ""]).encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def write(content: bytes, folder: Path) -> Path:
    file = folder / "rows.csv"
    file.write_bytes(content)
    return file


def problem_of(rows: list[dict[str, Any]], folder: Path, **options: Any) -> Problem:
    """The one problem of a table; a good trace beside it is not harmed."""
    good = dict.fromkeys(rows[0]) | {"uid": "q", "traj_uid": "good", "reward": 1.0}
    traces = read(write(as_jsonl([*rows, good]), folder), **options)
    assert traces.traces["trace"].to_pylist()[-1] == "good"
    (problem,) = traces.problems
    return problem


@pytest.mark.parametrize("form", [as_jsonl, as_csv, as_parquet])
def test_a_trainer_s_rows_become_traces(form: Any, tmp_path: Path) -> None:
    traces = read(write(form(ROWS), tmp_path))
    assert traces.problems == ()
    graph = unpad(traces.graph)
    assert traces.traces["trace"].to_pylist() == ["r1", "r2", "r3"]
    assert traces.traces["group"].to_pylist() == ["q1", "q1", "q2"]
    assert set(traces.traces["format"].to_pylist()) == {"table"}
    assert graph.trace_ids.tolist() == [0, 0, 0, 1, 2]
    assert graph.group_ids.tolist() == [0, 0, 1]
    assert graph.action_mask.all()
    assert set(graph.event_type.tolist()) == {EventType.MESSAGE}
    agents = traces.agents.to_pylist()
    assert [agents[a]["agent"] for a in graph.agent_ids] == ["solver", "verifier", "solver", "solver", "solver"]
    assert [a["parent"] for a in agents] == list(range(4))  # nothing tells who spawned whom
    assert traces.reward[:3].tolist() == [1.0, 0.0, 0.5]
    assert traces.evidence["tokens"].array[:5].tolist() == [10, 30, -1, 20, 40]
    assert traces.evidence["tokens"].mask[:5].tolist() == [True, True, False, True, True]
    edges = list(zip(graph.senders.tolist(), graph.receivers.tolist(), graph.edge_type.tolist(), strict=True))
    assert edges == [(0, 2, EdgeType.TEMPORAL)]  # one agent's calls follow each other; more is not known
    first = 1 if form is as_parquet else 2 if form is as_csv else 1
    assert traces.events["line"].to_pylist() == [first + i for i in (0, 2, 4, 1, 3)]


def test_every_column_by_its_own_name_and_by_a_map(tmp_path: Path) -> None:
    row = {
        "trace": 7, "group": 3, "model": "m", "agent": "a", "role": "R", "reward": 1, "turn": 4, "type": "tool_result",
        "action": False, "id": "call",
        "time": 2.5, "event_reward": -0.5, "value": 1, "log_prob": "-1.5", "propensity": 0.5, "context": 12,
        "sibling_parent": "n", "tokens": "5", "input_tokens": 6.0, "cached_tokens": 4,
        "cache_write_tokens": 2, "seconds": 1.5, "money": 0.125, "stage": 0,
        "node": "m", "q_value": 0.5, "anchor": 9, "env_step": 1, "env_reward": 0.25, "format_score": 1,
        "block": "b", "blamed": 0, "blamed_agent": 1, "attack_vector": 3,
        "target_propensity": 0.25, "target_support": 1, "target_value": 0.5, "completion": "y",
        "next_anchor": 9, "key": 3, "proposal": "p", "segment": 2, "value_high": 0.5, "hindsight_log_prob": -1,
        "stop_propensity": 0.25, "spawn_propensity": 0.5, "is_valid": True, "agent_reward": 0.5, "self_rating": 0.5,
        "counterfactual_reward": 0.5, "share": 0.25, "share_stderr": 0.125, "replays": 3,
        "replay_stderr": 0.5, "trainable": 1, "alternative": "a", "solo_reward": 0.5, "own_number": 4,
        "token_ids": [5, 6, 7], "token_mask": [True, False, True], "token_log_probs": [-0.5, -0.25],
        "token_sums_of_squares": [0.5, 1], "tree": 1, "greedy_reward": 0.5, "policy_version": 2,
        "agent_name": "A", "from": "b", "to": "c", "tool": "ls", "content_ref": "d", "status": "ok", "trusted": False,
        "stop": False, "system": "S", "topology": "debate", "task_kind": "theft", "requested_model": "asked",
    }  # fmt: skip
    assert set(row) == set(KNOWN) - {"end"}  # which has no name of its own
    second = row | {"id": "next", "type": "spawn", "turn": 5, "action": True, "to": None}
    plain = read(write(as_jsonl([row, second]), tmp_path))
    renamed = [{f"their {name}": value for name, value in r.items()} for r in (row, second)]
    mapped = read(write(as_jsonl(renamed), tmp_path), columns={name: f"their {name}" for name in row})
    for traces in (plain, mapped):
        assert traces.problems == ()
        assert traces.traces.select(["trace", "group", "model", "system", "topology", "task_kind"]).to_pylist() == [
            {"trace": "7", "group": "3", "model": "m", "system": "S", "topology": "debate", "task_kind": "theft"}
        ]
        assert traces.agents.select(["agent", "name", "role"]).to_pylist() == [{"agent": "a", "name": "A", "role": "R"}]
        assert traces.events.select(["from", "to", "tool", "content_ref", "status", "trusted"]).to_pylist()[0] == {
            "from": "b", "to": "c", "tool": "ls", "content_ref": "d", "status": "ok", "trusted": False
        }  # fmt: skip
        assert traces.events["event"].to_pylist() == ["call", "next"]
        assert traces.events["time"].to_pylist() == [2.5, 2.5]
        assert traces.events["requested_model"].to_pylist() == ["asked", "asked"]
        graph = unpad(traces.graph)
        assert graph.event_type.tolist() == [EventType.TOOL_RESULT, EventType.SPAWN]
        assert graph.action_mask.tolist() == [False, True]  # a tool's result is nobody's action
        assert graph.turn_ids.tolist() == [0, 1]
        values = {name: float(traces.evidence[name].array[0]) for name in EVENT_EVIDENCE}
        assert values == {
            "event_reward": -0.5, "value": 1, "log_prob": -1.5, "propensity": 0.5, "context": 0, "sibling_parent": 0,
            "tokens": 5, "input_tokens": 6, "cached_tokens": 4, "cache_write_tokens": 2, "seconds": 1.5, "money": 0.125,
            "stage": 0, "node": 0, "q_value": 0.5, "anchor": 0, "env_step": 1,
            "env_reward": 0.25, "format_score": 1, "block": 0, "blamed": 0, "blamed_agent": 1,
            "attack_vector": 3,
            "target_propensity": 0.25, "target_support": 1, "target_value": 0.5, "completion": 0,
            "counterfactual_reward": 0.5, "share": 0.25, "share_stderr": 0.125, "replays": 3, "replay_stderr": 0.5,
            "trainable": 1, "alternative": 0, "next_anchor": 0, "key": 0, "proposal": 0, "segment": 0,
            "value_high": 0.5, "hindsight_log_prob": -1, "is_valid": 1, "agent_reward": 0.5, "self_rating": 0.5,
            "stop_propensity": 0.25, "spawn_propensity": 0.5, "solo_reward": 0.5, "own_number": 4,
        }  # fmt: skip
        assert traces.tokens is not None
        assert traces.tokens.ids.tolist() == [5, 6, 7] * 2
        assert traces.tokens.mask.tolist() == [True, False, True] * 2
        np.testing.assert_array_equal(traces.tokens.log_probs, np.array([-0.5, np.nan, -0.25] * 2, np.float32))
        np.testing.assert_array_equal(traces.tokens.sums_of_squares, np.array([0.5, np.nan, 1] * 2, np.float32))


@pytest.mark.parametrize("form", [as_jsonl, as_csv, as_parquet])
def test_an_id_of_minus_one_is_none(form: Any, tmp_path: Path) -> None:
    """All rows of -1 were compared with each other, where an array given to `by` means no key."""
    rows = [{"trace": name, "group": "q", "reward": r, "key": key} for name, r, key in (("a", 1, 7), ("b", 0, -1))]
    rows += [{"trace": "c", "group": "q", "reward": 0, "key": 7}, {"trace": "d", "group": "q", "reward": 0, "key": -1}]
    traces = read(write(form(rows), tmp_path))
    assert traces.evidence["key"].mask[:4].tolist() == [True, False, True, False]
    columns = {name: [row[name] for row in rows] for name in ("trace", "group", "reward")}
    _, _, found = credit.from_columns(**columns, evidence={"key": [row["key"] for row in rows]})
    assert found.traces.evidence["key"].array[:4].tolist() == [0, -1, 0, -1]


@pytest.mark.parametrize("form", [as_jsonl, as_csv, as_parquet])
def test_tokens_are_lists_or_their_json_text(form: Any, tmp_path: Path) -> None:
    rows = [
        {"trace": "x", "reward": 1.0, "response_ids": [4, 5], "response_mask": [1, 0], "rollout_log_probs": [-1.0]},
        {"trace": "x", "reward": 1.0, "response_ids": None, "response_mask": None, "rollout_log_probs": None},
    ]
    if form is as_csv:
        rows = [{k: f'"{json.dumps(v)}"' if isinstance(v, list) else v for k, v in row.items()} for row in rows]
    tokens = read(write(form(rows), tmp_path)).tokens
    assert tokens is not None
    assert (tokens.offsets.tolist(), tokens.ids.tolist()) == ([0, 2, 2], [4, 5])
    assert tokens.mask.tolist() == [True, False]
    np.testing.assert_array_equal(tokens.log_probs, [-1.0, np.nan])


@pytest.mark.parametrize(
    ("cell", "kind"),
    [([1, "x"], "bad-type"), ([-1], "bad-type"), ("4, 5", "bad-type"), ({}, "bad-type"), ([4, 5, 6], "bad-tokens")],
)
def test_tokens_that_are_none_are_refused(cell: object, kind: str, tmp_path: Path) -> None:
    bad = {"trace": "x", "reward": 1.0, "token_ids": cell, "token_log_probs": [-1.0, -2.0]}
    traces = read(write(as_jsonl([bad, {"trace": "y", "reward": 1.0}]), tmp_path))
    assert traces.traces["trace"].to_pylist() == ["y"]
    assert [(p.kind, p.line) for p in traces.problems if p.is_failure] == [(kind, 1)]


@pytest.mark.parametrize("form", [as_jsonl, as_csv, as_parquet])
@pytest.mark.parametrize("cells", [(True, False, None), (1, 0, None), (1.0, 0.0, None)])
def test_the_table_says_which_rows_are_actions(form: Any, cells: tuple[Any, ...], tmp_path: Path) -> None:
    rows = [
        {"trace": "a", "type": kind, "reward": 1, "action": cell} for cell in cells for kind in ("message", "return")
    ]
    traces = read(write(form(rows), tmp_path))
    assert traces.problems == ()
    chosen = unpad(traces.graph).action_mask.tolist()
    assert chosen == [True, True, False, False, True, False]  # where the cell is missing, the type says it
    native.write(traces, tmp_path / "native")
    again = read(tmp_path / "native")
    chunks = [chunk.graph for chunk in read_chunks(tmp_path / "native", events=1)]
    assert [unpad(graph).action_mask.tolist() for graph in (again.graph, *chunks)] == [chosen, chosen]


@pytest.mark.parametrize(
    ("cell", "shown"), [("left", "'left'"), (2, "2"), ("yes", "'yes'"), (0.5, "0.5"), ([1], "[1]")]
)
def test_an_action_that_is_no_truth_value_is_refused(cell: object, shown: str, tmp_path: Path) -> None:
    rows = [{"traj_uid": "bad", "uid": "q", "action": True}, {"traj_uid": "bad", "uid": "q", "action": cell}]
    problem = problem_of(rows, tmp_path, format="table")
    assert (problem.kind, problem.line, problem.field, problem.value) == ("bad-type", 2, "action", shown)
    assert problem.expected == "true, false, 1 or 0: whether a policy of the team chose the row"


def test_only_the_trace_is_needed_where_the_format_is_named(tmp_path: Path) -> None:
    traces = read(write(b"rollout_id\nx\ny\nx\n", tmp_path), format="table")
    assert traces.traces["trace"].to_pylist() == ["x", "y"]
    assert traces.traces["group"].to_pylist() == ["x", "y"]  # no task: each a group of its own
    assert traces.agents["agent"].to_pylist() == ["agent", "agent"]
    assert np.isnan(traces.reward[:2]).all()
    assert traces.events["event"].to_pylist() == ["0", "1", "0"]


@pytest.mark.parametrize("asked", [{"format": "table"}, {"columns": {"trace": "trace_id"}}])
def test_native_traces_are_no_rows(asked: dict[str, Any], tmp_path: Path) -> None:
    event = {"id": "e0", "t": 0, "type": "message", "agent": "a"}
    log = {"trace_id": "t", "task_id": "q", "events": [event], "edges": [], "rewards": {"team": 1.0}, "reward": 1.0}
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(log))
    with pytest.raises(NothingReadError) as caught:
        read(file, **asked)
    assert [problem.kind for problem in caught.value.problems] == ["other-format"]
    assert "'native': leave out `format`, `columns` and `types`" in str(caught.value)
    with pytest.raises(
        NothingReadError, match="a table with column 'shift'; traces of the format 'native' have the keys task"
    ):
        read(file, columns={"key": "shift"})  # as `--by shift` asks, of whatever is there
    assert read(file).sizes.events == 1


def test_unknown_words_of_types_are_named_at_once(tmp_path: Path) -> None:
    """Each of 200 traces was refused in a line that named the first of two words: the second one came next time."""
    rows = "".join(f"{trace},a,1,{word}\n" for trace in "xyz" for word in ("llm", "tool", "llm"))
    with pytest.raises(
        NothingReadError, match=r"llm=message,tool=tool_call \[bad-type\], and 2 more like it"
    ) as caught:
        read(write(f"trace,agent,reward,type\n{rows}".encode(), tmp_path))
    assert [problem.trace for problem in caught.value.problems] == ["x", "y", "z"]
    assert str(caught.value).count("\n") == 1


@pytest.mark.parametrize("asked", [{"columns": {"trace": "run", "agent": "who"}}, {"types": {"llm": "message"}}])
def test_logs_beside_tables_are_read_as_themselves(asked: dict[str, Any], tmp_path: Path) -> None:
    """`--columns` made tables of a folder's native logs: not one trace of it was read."""
    event = {"id": "e0", "t": 0, "type": "message", "agent": "a"}
    log = {"trace_id": "t", "task_id": "q", "events": [event], "edges": [], "rewards": {"team": 1.0}}
    (tmp_path / "native.jsonl").write_text(json.dumps(log))
    run, who = ("run", "who") if "columns" in asked else ("trace", "agent")
    (tmp_path / "old.csv").write_text(f"{run},{who},reward,type\nx,b,1,{'message' if run == 'run' else 'llm'}\n")
    (tmp_path / "rows.jsonl").write_text(json.dumps({run: "y", who: "c", "reward": 0, "type": "message"}))
    traces = read(tmp_path, **asked)
    found = zip(traces.traces["trace"].to_pylist(), traces.traces["format"].to_pylist(), strict=True)
    assert {*found} == {("t", "native"), ("x", "table"), ("y", "table")} and not traces.problems
    with pytest.raises(NothingReadError, match="these are traces of the format 'native'"):
        read(tmp_path / "native.jsonl", **asked)


def test_a_trace_keeps_its_id_as_it_is_written(tmp_path: Path) -> None:
    traces = read(write(b"trace,reward\n007,1\n7,1\n", tmp_path))
    assert traces.traces["trace"].to_pylist() == ["007", "7"]


@pytest.mark.parametrize("form", [as_jsonl, as_csv, as_parquet])
def test_the_reward_of_a_trace_must_be_one(form: Any, tmp_path: Path) -> None:
    rows = [*ROWS, {"uid": "q1", "traj_uid": "r1", "agent_id": "solver", "reward": 0.75, "tokens": 1}]
    traces = read(write(form(rows), tmp_path))
    assert traces.traces["trace"].to_pylist() == ["r2", "r3"]
    (problem,) = traces.problems
    first = 2 if form is as_csv else 1
    assert (problem.kind, problem.trace, problem.line) == ("inconsistent-reward", "r1", first + 5)
    assert f"as in row {first}:" in problem.expected
    assert (problem.value, problem.field) == ("0.75", "reward")


def test_a_reward_in_some_rows_only(tmp_path: Path) -> None:
    rows = [{"traj_uid": "a", "reward": r} for r in (None, 2.0, None)]
    traces = read(write(as_jsonl(rows), tmp_path))
    assert traces.reward[0] == 2


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        ("reward", "high", "bad-type"),
        ("reward", [1], "bad-type"),
        ("reward", 10**400, "bad-type"),
        ("reward", "nan", "non-finite-reward"),
        ("reward", "-inf", "non-finite-reward"),
        ("reward", 1e39, "out-of-range"),
        ("event_reward", "1,5", "bad-type"),
        ("event_reward", "nan", "non-finite-reward"),
        ("value", {}, "bad-type"),
        ("value", 1e39, "out-of-range"),
        ("tokens", 1.5, "bad-type"),
        ("tokens", -1, "bad-type"),
        ("tokens", 2**31, "bad-type"),
        ("stage", "first", "bad-type"),
        ("time", -1, "bad-type"),
        ("time", "inf", "bad-type"),
        ("type", "think", "bad-type"),
        ("type", 3, "bad-type"),
        ("id", "1", "duplicate-id"),
        ("turn", "x", "mixed-turns"),
        ("uid", "", "empty-id"),
        ("uid", "another", "inconsistent-group"),
        ("role", "another", "inconsistent-role"),
    ],
)
def test_a_bad_cell_refuses_its_trace_and_no_other(column: str, value: Any, kind: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"traj_uid": "bad", "uid": "q", "agent_id": "x", "role": "R"},
        {"traj_uid": "bad", "uid": "q", "agent_id": "x", "role": "R"},
        {"traj_uid": "bad", "uid": "q", "agent_id": "x", "role": "R"},
    ]
    rows[2][column] = value
    if column == "uid" and value == "":
        rows = rows[2:]
    problem = problem_of(rows, tmp_path, format="table")
    assert problem.kind == kind
    assert problem.line in {1, 3}
    if kind not in {"missing-field", "empty-id"}:
        assert problem.trace == "bad"
    if kind in {"bad-type", "inconsistent-group", "inconsistent-role", "mixed-turns"}:
        assert problem.field == column


@pytest.mark.parametrize("kind", ["text", "us", "ns"])
def test_dates_with_their_times_are_seconds(kind: str, tmp_path: Path) -> None:
    """A table whose clock wrote dates was refused whole."""
    dates = ["2026-01-01T00:00:01.5Z", "2026-01-01T00:00:04Z", "2026-01-01T00:00:02Z"]
    column = pa.array(dates)
    if kind != "text":
        column = column.cast(pa.timestamp(kind, "UTC"))
    table = pa.table({"trace": ["a"] * 3, "reward": [1.0] * 3, "time": column})
    pq.write_table(table, tmp_path / "x.parquet")
    traces = read(tmp_path / "x.parquet")
    assert np.diff(np.asarray(traces.events["time"])).tolist() == [0.5, 2.0]
    assert [problem.kind for problem in traces.problems] == ["sorted-rows"]
    zones = write(b"trace,reward,time\na,1,2026-01-01T00:00:01Z\na,1,2026-01-01T00:00:02\nb,0,noon\nc,0,1\n", tmp_path)
    told = [("bad-type", "b"), ("mixed-zones", "a"), ("unread-outcome", "a")]
    assert [(p.kind, p.trace) for p in read(zones).problems] == told


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_truths_of_rewards_are_1_and_0(name: str, tmp_path: Path) -> None:
    """They were refused, where `from_columns` and five formats read them."""
    table = pa.table({"trace": ["a", "b"], "reward": [True, False], "event_reward": [False, True]})
    if name == "x.parquet":
        pq.write_table(table, tmp_path / name)
    elif name == "x.csv":
        pacsv.write_csv(table, tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    traces = read(tmp_path / name)
    assert traces.reward[:2].tolist() == [1, 0] and traces.evidence["event_reward"].array[:2].tolist() == [0, 1]


def test_rewards_that_rows_or_agents_earned_are_told_their_column(tmp_path: Path) -> None:
    """A column `reward` of steps was refused, and nothing said where its numbers belong."""
    path = write(b"trace,reward\na,0\na,1\nb,0\n", tmp_path)
    (problem,) = read(path).problems
    assert problem.expected == (
        "0.0 as in row 2: one reward a trace; those of rows are event_reward, of agents agent_reward"
        "; null, not 0, stands in the other rows of an outcome"
    )


def test_nan_in_evidence_is_absent(tmp_path: Path) -> None:
    traces = read(write(b"trace,reward,value\na,1,nan\na,1,2\n", tmp_path))
    assert traces.evidence["value"].mask[:2].tolist() == [False, True]


def test_columns_that_are_missing_unknown_or_ambiguous(tmp_path: Path) -> None:
    file = write(as_jsonl(ROWS), tmp_path)
    with pytest.raises(CreditError, match="'episode'"):
        list(read(file, columns={"episode": "uid"}).problems)
    for columns, rows, kind, field in (
        ({"trace": "nothing"}, ROWS, "missing-column", "trace"),
        ({"group": "uid"}, [{"uid": 1}], "missing-column", "trace"),
        (None, [{"traj_uid": 1, "rollout_id": 2, "reward": 3}], "ambiguous-column", "trace"),
        (None, [{"trace": 1, "uid": 2, "task_id": 2, "reward": 3}], "ambiguous-column", "group"),
    ):
        with pytest.raises(NothingReadError) as caught:
            read(write(as_jsonl(rows), tmp_path), columns=columns)
        assert [(p.kind, p.field) for p in caught.value.problems] == [(kind, field)]
    traces = read(write(b"trace,traj_uid,reward\na,b,1\n", tmp_path))  # our own name is never ambiguous
    assert traces.traces["trace"].to_pylist() == ["a"]
    traces = read(write(b"trace,traj_uid,reward\na,b,1\n", tmp_path), columns={"trace": "traj_uid"})
    assert traces.traces["trace"].to_pylist() == ["b"]


def test_a_column_that_only_later_rows_have(tmp_path: Path) -> None:
    rows = [{"trace": "a", "reward": 1}, {"trace": "a", "value": 0.5}]
    traces = read(write(as_jsonl(rows), tmp_path))
    assert traces.evidence["value"].mask[:2].tolist() == [False, True]


def test_a_line_that_is_no_row(tmp_path: Path) -> None:
    """It may be of any trace, unless it states one."""
    for line in (b"INFO saved", b'{"uid": "q1", "traj'):
        with pytest.raises(NothingReadError) as caught:
            read(write(as_jsonl(ROWS) + b"\n" + line, tmp_path))
        assert [(p.kind, p.line) for p in caught.value.problems] == [("bad-json", 6)] + 3 * [("lost-row", 6)]
    first = ROWS[0]["traj_uid"]
    traces = read(write(as_jsonl(ROWS) + f'\n{{"traj_uid": "{first}", "agent'.encode(), tmp_path))
    told = [("bad-json", ""), ("lost-row", first), ("unread-outcome", first)]
    assert [(p.kind, p.trace) for p in traces.problems] == told
    assert traces.sizes.traces == 2


@pytest.mark.parametrize("form", [as_jsonl, as_csv, as_parquet])
@pytest.mark.parametrize("value", [None, ""])
def test_a_row_whose_cell_of_the_trace_is_empty_is_left_out_alone(value: Any, form: Any, tmp_path: Path) -> None:
    """One such row lost the whole table."""
    whole = read(write(form(ROWS), tmp_path), format="table")
    rows = [*ROWS[:2], {**ROWS[0], "traj_uid": value}, *ROWS[2:]]
    traces = read(write(form(rows), tmp_path), format="table")
    (problem,) = traces.problems
    assert problem.kind in {"missing-field", "empty-id"} and problem.is_failure
    assert (problem.line, problem.field) == (4 if form is as_csv else 3, "traj_uid")
    assert traces.traces["trace"].to_pylist() == whole.traces["trace"].to_pylist()
    assert traces.sizes.events == whole.sizes.events


@pytest.mark.parametrize(
    "content",
    [
        as_jsonl(ROWS), as_csv(ROWS), as_parquet(ROWS), b"trace,reward\n", b'"trace_id","score"\r\n1,2\r\n',
        b"x,rollout_id,event_reward\n", b'{"rollout_id": "a", "reward": 1, "prompt": "' + b"x" * 70000,
    ],
)  # fmt: skip
def test_sniffing_knows_tables(content: bytes) -> None:
    assert sniff(content)
    assert detect(content[: 1 << 16]) == "table"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"trace", b"trace,group\n", b"uid,reward\n", b'{"trace": "a"}', b'[{"trace": "a", "reward": 1}]',
        b'{"trace": {"reward": 1}, "reward": 2}', b'{"text": "trace,reward"}', b"my trace, my reward\n",
        b'{"task_id": 0, "reward": 0.0, "traj": []}',
    ],
)  # fmt: skip
def test_sniffing_is_conservative(content: bytes) -> None:
    assert not sniff(content)


def test_sniffing_claims_no_real_log_of_another_format(shared_data: Path) -> None:
    for file in shared_data.rglob("*"):
        if file.is_file():
            assert not sniff(file.read_bytes()[: 1 << 16]), file


@pytest.mark.parametrize("word", ["nan", "None", "null", "<NA>", " NaN ", "NaT"])
def test_words_that_stand_for_no_name_are_no_group_and_no_trace(tmp_path: Path, word: str) -> None:
    (tmp_path / "x.csv").write_text(f"trace,group,reward\na,{word},1\nb,q,0\nc,{word},0\na,q,1\n{word},q,1\nd,,1\n")
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["b", "d"]
    assert [(p.kind, p.line, p.field) for p in traces.problems] == [
        ("missing-field", 2, "group"), ("missing-field", 4, "group"), ("missing-field", 6, "trace"),
        ("some-without-group", 7, "group"),
    ]  # fmt: skip


@pytest.mark.parametrize("column", ["agent", "role"])
def test_words_that_stand_for_no_name_are_no_agent(tmp_path: Path, column: str) -> None:
    """`astype(str)` made one agent of all rows without a name, and methods compared them."""
    (tmp_path / "x.csv").write_text(f"trace,group,{column},reward\na,q,nan,1\nb,q,p,0\nc,q,,0\n")
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["b", "c"]
    assert [(p.kind, p.line, p.field) for p in traces.problems] == [("missing-field", 2, column)]


def table_of_calls(folder: Path, ending: str, column: str) -> Path:
    """Two calls that fail with other arguments each, of which one is made again; what they gave, beside it."""
    asked = ['{"q": 1}', '{"q": 2}', '{"q": 1}']
    rows = [
        {
            "trace": "a",
            "reward": 1.0,
            "type": "tool_call",
            "action": True,
            "tool": "web",
            "status": "error",
            column: one,
        }
        for one in asked
    ]
    folder.mkdir()
    file = folder / f"x.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif ending == "csv":
        with file.open("w", newline="") as written:
            table = csv.DictWriter(written, [*rows[0]])
            table.writeheader()
            table.writerows(rows)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_columns_name_the_texts_of_a_table_too(tmp_path: Path, ending: str) -> None:
    """`arguments=tool_params` was refused: unless the file was rewritten, retries and loops were unknown."""
    renamed = read(table_of_calls(tmp_path / "ours", ending, "arguments"))
    theirs = table_of_calls(tmp_path / "theirs", ending, "tool_params")
    (problem,) = read(theirs).problems
    assert problem.value == "'tool_params'" and "--columns arguments=tool_params" in problem.expected
    assert ToolCalls(read(theirs)).retry_counts().tolist() != [1.0]
    mapped = read(theirs, columns={"arguments": "tool_params"})
    write_cache(mapped, tmp_path / "cache")
    for traces in (renamed, mapped, read(tmp_path / "cache")):
        assert not traces.problems and ToolCalls(traces).retry_counts().tolist() == [1.0]
        assert event_texts(traces, np.arange(3), 20) == ['{"q": 1}', '{"q": 2}', '{"q": 1}']
    without = read(theirs.parent.parent / "ours", columns={"arguments": ""})
    assert np.isnan(ToolCalls(without).retry_counts()).all() and event_texts(without, np.array([0]), 20) == [""]


@pytest.mark.parametrize("ours", sorted({*SAID, *CALLED, *ASKED, *GAVE, *FAILED, *TOLD} - {*KNOWN}))
def test_every_text_may_be_called_otherwise(tmp_path: Path, ours: str) -> None:
    """What a column says under its own name it says under another one that `columns` states."""
    kinds = ["message", "tool_call", "tool_result"]
    head = ["trace", "reward", "type", "status"]
    said = []
    for column, columns in ((ours, {"type": "type"}), ("x1", {ours: "x1"})):
        (tmp_path / "x.csv").write_text(
            "\n".join([",".join([*head, column]), *(f"a,1,{kind},error,hello" for kind in kinds)]) + "\n"
        )
        said.append(event_texts(read(tmp_path / "x.csv", columns=columns), np.arange(3), 20))
    assert said[0] == said[1] and any("hello" in text for text in said[0])


def test_columns_know_no_other_name(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("trace,reward,note\na,1,x\n")
    with pytest.raises(
        CreditError, match=r"columns has the key 'remark'; expected one of trace, .*, or of a text: arg"
    ):
        read(tmp_path, columns={"remark": "note"})
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path, columns={"arguments": "notes"})
    assert [(one.kind, one.field, one.value) for one in caught.value.problems] == [
        ("missing-column", "arguments", "column 'notes'")
    ]


@pytest.mark.parametrize("ours", ["rewards.judge", "costs.money", "metrics.error", "costs.input"])
def test_columns_of_a_family_may_be_called_otherwise(tmp_path: Path, ours: str) -> None:
    """`costs.money=run_usd` was refused, though the docs list `costs.NAME` among the columns that `columns` maps."""
    for folder, header, columns in (("own", ours, {}), ("mapped", "x1", {ours: "x1"}), ("left", ours, {ours: ""})):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text(f"trace,reward,{header}\na,1,0.25\na,1,0.25\n")
        traces = read(tmp_path / folder, columns=columns)
        assert (ours in traces.evidence) == (folder != "left") and traces.text_columns == {}
        if folder != "left":
            assert traces.evidence[ours].array[:1].tolist() == [0.25]


def test_an_outcome_by_its_channel_is_one_column(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("trace,reward,mark\na,0,1\n")
    assert read(tmp_path, columns={"rewards.team": "mark"}).reward[:1].tolist() == [1.0]


def test_columns_that_are_not_read_are_named_once(tmp_path: Path) -> None:
    """A column `task` or `log_ratio` was passed over without a word."""
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f",trace,task,log_ratio,reward,trace_id\n0,{name},q{name},1,1,{name}\n")
    (problem,) = read(tmp_path).problems
    assert (problem.kind, problem.value, problem.is_failure) == ("unread-columns", "'task, log_ratio, trace_id'", False)
    assert problem.file == str(tmp_path / "a.csv")
    mapped = read(tmp_path, columns={"group": "task", "event_reward": "log_ratio"}).problems
    assert [problem.value for problem in mapped] == ["'trace_id'"]


@pytest.mark.parametrize(
    ("header", "option"),
    [("trace,task,reward,agent", "--columns group=task"), ("trace,speaker,reward,group", "--columns agent=speaker"),
     ("trace,question_id,reward,worker", "--columns group=question_id,agent=worker"),
     ("trace,step,reward,agent", "--columns"), ("trace,task,reward,uid", "--columns")],
)  # fmt: skip
def test_a_likely_column_of_tasks_or_agents_is_named_by_its_option(tmp_path: Path, header: str, option: str) -> None:
    """`task` was one of the columns that are not read, and each trace a group: `dr_mas` gave the raw outcomes."""
    (tmp_path / "x.csv").write_text(f"{header}\na,x,1,q\nb,x,0,q\n")
    (problem,) = read(tmp_path / "x.csv").problems
    assert problem.expected == f"names of docs/formats/table.md, or {option}: the others are not read"


def test_ids_of_prompts_are_groups(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("trace,prompt_id,reward\na,7,1\nb,7,0\n")
    traces = read(tmp_path / "x.csv")
    assert traces.problems == () and traces.traces["group"].to_pylist() == ["7", "7"]


@pytest.mark.parametrize("header", ["trace,group,Reward", "trace,group,reward ", "trace,Task_ID,reward"])
def test_a_column_whose_name_is_written_otherwise_is_not_left_out_in_silence(header: str, tmp_path: Path) -> None:
    """Rewards were lost, or all traces were of groups of their own, and nothing was said."""
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\na,g,1\nb,g,0\n")
    with pytest.raises(NothingReadError, match="bad-header"):
        read(path, format="table")
    theirs = {"reward": header.split(",")[2], "group": header.split(",")[1]}
    assert read(path, columns=theirs).reward[:2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    "name",
    [
        "Agent",
        " role",
        "Turn",
        "EVENT_REWARD",
        "Model_Name",
        "Type",
        "ACTION",
        "agentName",
        "Agent Name",
        "agent.name",
        "event-reward",
    ],
)
def test_a_column_that_tells_who_did_what_is_not_left_out_for_its_spelling(name: str, tmp_path: Path) -> None:
    """All agents were one, and `dr_mas` gave other advantages without a word."""
    path = tmp_path / "log.csv"
    path.write_text(f"trace,group,reward,{name}\na,g,1,x\nb,g,0,y\n")
    with pytest.raises(NothingReadError, match="bad-header"):
        read(path, format="table")
    path.write_text(f"trace,group,reward,agent,{name}\na,g,1,x,0\nb,g,0,y,0\n")
    if name == "Agent":  # the one that counts is there
        assert read(path, format="table").reward[:2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["groupId", "Group ID", "group-id", "taskId"])
def test_a_column_of_groups_with_other_joints_is_not_left_out(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"trace,agent,reward,{name}\na,x,1,g\nb,y,0,g\n")
    with pytest.raises(NothingReadError, match="bad-header"):
        read(path, format="table")
    assert set(read(path, columns={"group": name}).traces["group"].to_pylist()) == {"g"}


def test_a_column_that_goes_first_is_not_left_out_for_another(tmp_path: Path) -> None:
    """`group` goes before `task_id`; `Group` beside it was passed over."""
    path = tmp_path / "log.csv"
    path.write_text("trace,Group,task_id,reward\na,g,q,1\nb,h,q,0\n")
    with pytest.raises(NothingReadError, match="'Group'; expected 'group', or --columns group=Group"):
        read(path)
    assert read(path, columns={"group": "task_id"}).traces["group"].to_pylist() == ["q", "q"]


def test_bytes_of_a_parquet_file_that_are_texts_are_read_as_such(tmp_path: Path) -> None:
    """A file need not say that its bytes are texts; ids were written as Python writes bytes, and rewards met none."""
    path, rewards = tmp_path / "log.parquet", tmp_path / "rewards.parquet"
    for ids in (pa.array([b"a", b"\xc3\xa9"]), pa.array([b"a", b"\xc3\xa9"]).dictionary_encode()):
        pq.write_table(pa.table({"trace": ids, "group": ["g", "g"], "reward": [1.0, 0.0]}), path)
        pq.write_table(pa.table({"trace": ids, "reward": [2.0, 3.0]}), rewards)
        traces = read(path, format="table", rewards=rewards)
        assert traces.traces["trace"].to_pylist() == ["a", "é"] and traces.reward[:2].tolist() == [2.0, 3.0]
        assert not traces.problems
    pq.write_table(pa.table({"trace": [b"\xff"], "group": ["g"], "reward": [1.0]}), path)
    with pytest.raises(NothingReadError, match="bad-parquet"):
        read(path, format="table")


@pytest.mark.slow
@pytest.mark.parametrize("written", [as_jsonl, as_csv, as_parquet])
def test_what_a_trace_states_once_has_columns(written: Any, tmp_path: Path) -> None:
    """A folder of dumps holds one task under several policies, which `by="task,policy_version"` keeps apart."""
    version = {"r1": 3, "r2": 3, "r3": 4}
    rows = [row | {"step": version[row["traj_uid"]], "greedy_reward": 0.25} for row in ROWS]
    rows[-1]["step"] = 4  # a rollout that ended under a later policy than it began
    traces = credit.read(write(written(rows), tmp_path), columns={"policy_version": "step"})
    of_trace = zip(traces.traces["trace"].to_pylist(), traces.evidence["policy_version"].array.tolist(), strict=False)
    assert dict(of_trace) == {"r1": 3, "r2": 3, "r3": 4}
    assert traces.evidence["greedy_reward"].array[:3].tolist() == [0.25] * 3
    compared = credit.run(traces, "rloo", by="task,policy_version")
    assert np.asarray(compared.valid)[: len(rows)].tolist() == [True] * 4 + [False]  # r3 is alone


def test_rows_of_a_trace_that_disagree_on_what_it_states_once(tmp_path: Path) -> None:
    rows = [{"uid": "q1", "traj_uid": "r1", "reward": 1.0, "greedy_reward": number} for number in (0.0, 1.0)]
    found = problem_of(rows, tmp_path)
    assert (found.kind, found.field, found.line) == ("inconsistent-greedy_reward", "greedy_reward", 2)


def test_an_outcome_in_later_rows_tells_a_table(tmp_path: Path) -> None:
    """A file whose first row had no reward was an unknown format, with a list of columns that left the reward out."""
    rows: list[dict[str, Any]] = [{"trace": f"t{i // 3}", "group": "q", "agent": "a"} for i in range(6)]
    for i in (2, 5):
        rows[i] |= {"reward": float(i == 5)}
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    traces = credit.read(path)
    assert traces.problems == () and np.asarray(traces.reward)[:2].tolist() == [0, 1]
    assert not sniff(b"\n".join(json.dumps(row).encode() for row in [*rows[:2], {"score": 1.0}, *rows[2:]]))
    assert not sniff(json.dumps(rows[0]).encode() + b'\n{"trace": "t", "reward": 1, "events": [{"id": "e"}]}')
    path.write_text("".join(json.dumps(row | {"Outcome": 1} if i else row) + "\n" for i, row in enumerate(rows[:2])))
    with pytest.raises(NothingReadError) as caught:
        credit.read(path)
    assert "--columns reward=Outcome" in caught.value.problems[0].expected


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("time", "0 1 1 0"),
        ("turn", "0 1 1 0"),
        ("turn", "t0 t9 t10 t9"),
        ("turn", "0 9 9 10"),
        ("turn", "t0 t9 t9 t10"),
    ],
)
def test_rows_that_stood_behind_a_later_one_are_named(column: str, values: str, tmp_path: Path) -> None:
    """Methods that read the order of rows were wrong without a word where the rows themselves said so."""
    rows = "".join(f"{t},q,p,{v},1\n" for t, v in zip("aabb", values.split(), strict=True))
    (tmp_path / "x.csv").write_text(f"trace,group,agent,{column},reward\n{rows}")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read = credit.read(tmp_path / "x.csv")
    found = [(one.kind, one.line, one.field, one.trace) for one in read.problems]
    assert found == ([] if values.endswith("10") else [("sorted-rows", 5, column, "b")])
    assert not said  # the numbers are right
    assert read.sizes.traces == 2


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
def test_a_row_of_no_trace_is_shown_as_a_row(tmp_path: Path) -> None:
    """The message was "traj_uid is {'agent_id': …": the row in the place of the id."""
    rows = [{"traj_uid": "a", "agent_id": "x", "reward": 1.0}, {"traj_uid": None, "agent_id": "x", "reward": 1.0}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    (problem,) = (problem for problem in read(tmp_path).problems if problem.kind == "missing-field")
    assert problem.field == "traj_uid" and "null in the row {" in problem.value


def test_a_column_that_is_a_number_of_ones_own_keeps_its_meaning(tmp_path: Path) -> None:
    rows = [{"trace": i, "group": "q", "agent": "a", "reward": i, "value": 0.5 * i} for i in range(2)]
    traces = read(write(as_jsonl(rows), tmp_path), columns={"own_number": "value"})
    assert traces.evidence["own_number"].listed(0, 2) == traces.evidence["value"].listed(0, 2) == [0, 0.5]
