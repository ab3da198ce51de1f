"""Names that would make one of two things: a missing name, 1 beside "1", an agent that is named as the user is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from credit.tables.columns import from_columns
from graphs.errors import CreditError, NothingReadError
from graphs.logs import read

from ..samples import RESULT, TAU2

NAMES = ("a", "b", "c")


def log(folder: Path) -> Path:
    event = {"id": "1", "type": "message", "agent": "x"}
    values = [{"trace_id": name, "task_id": "k", "events": [event], "rewards": {"team": 5.0}} for name in NAMES]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, values)))
    return folder / "log.jsonl"


def refused(path: Path, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(NothingReadError) as caught:
        read(path, **options)
    return [(problem.kind, problem.trace) for problem in caught.value.problems]


@pytest.mark.parametrize("name", ["nan", "NaN", " None ", "null", "<NA>", "NaT"])
def test_a_missing_name_of_a_group_joins_no_traces(tmp_path: Path, name: str) -> None:
    """All traces were one group."""
    path, table = log(tmp_path), tmp_path / "groups.csv"
    table.write_text("trace,group\n" + "".join(f"{trace},{name}\n" for trace in NAMES))
    expected = [("missing-field", trace) for trace in NAMES]
    assert refused(path, groups=table) == expected
    assert refused(path, groups=dict.fromkeys(NAMES, name)) == expected


@pytest.mark.parametrize("name", ["nan", "None", " ", "null", "<NA>"])
def test_no_task_has_the_name_that_programs_write_for_none(tmp_path: Path, name: str) -> None:
    """`f"{task}"` of no task made traces of all tasks one group, in each format that is no table."""
    event = {"id": "1", "type": "message", "agent": "x"}
    values: list[dict[str, Any]] = [
        {"trace_id": trace, "task_id": task, "events": [event], "rewards": {"team": 1.0}}
        for trace, task in (("a", name), ("b", "k"), ("c", name))
    ]
    path = tmp_path / "log.jsonl"
    for damaged in (False, True):  # by columns and by records
        values[1]["events"] = [event, event] if damaged else [event]
        path.write_text("\n".join(map(json.dumps, values)))
        if damaged:
            assert sorted(refused(path)) == [("duplicate-id", "b"), ("missing-field", "a"), ("missing-field", "c")]
            continue
        traces = read(path)
        assert traces.traces["trace"].to_pylist() == ["b"]
        assert [(p.kind, p.field, p.trace) for p in traces.problems] == [
            ("missing-field", "group", "a"), ("missing-field", "group", "c"),
        ]  # fmt: skip
        table = tmp_path / "groups.csv"
        table.write_text("trace,group\na,k\nb,k\nc,k\n")
        assert groups_of(read(path, groups=table)) == dict.fromkeys("abc", "k")
        table.unlink()


@pytest.mark.parametrize("key", ["context", "node", "sibling_parent", "anchor"])
@pytest.mark.parametrize("word", ["nan", "None", " ", "null"])
def test_no_draw_has_the_name_that_programs_write_for_none(tmp_path: Path, key: str, word: str) -> None:
    """All traces without a context were siblings of one. A place may well be called None."""
    first, second = ({"id": i, "type": "message", "agent": "x"} for i in "12")
    path = tmp_path / "log.jsonl"
    is_refused = key != "anchor" or word == "nan"
    for more in ([], [{"id": "0", "type": "message", "agent": "x"}]):
        trace = {"trace_id": "a", "task_id": "k", "schema_version": "1.0", "rewards": {"team": 1.0}}
        trace["events"] = [first, second | {key: word}, *more]
        trace["edges"] = [{"src": "0", "dst": "2", "type": "causal"}] if more else []
        path.write_text(json.dumps(trace))
        if is_refused:
            assert refused(path) == [("missing-field", "a")]
        else:
            assert read(path).problems == ()
    (tmp_path / "log.jsonl").unlink()
    (tmp_path / "rows.jsonl").write_text(json.dumps({"trace": "a", "group": "k", "reward": 1.0, key: word}))
    columns = {"group": ["k"], "trace": ["a"], "reward": [1.0], "evidence": {key: [word]}}
    if is_refused:
        assert refused(tmp_path) == [("bad-type", "a")]
        with pytest.raises(CreditError, match="for none; expected an id, or None"):
            from_columns(**columns)
    else:
        assert read(tmp_path).problems == ()
        from_columns(**columns)


def test_a_group_is_written_alike_in_all_rows_of_a_table(tmp_path: Path) -> None:
    """1 and "1" were one group."""
    path = log(tmp_path)
    (tmp_path / "groups.jsonl").write_text(
        "\n".join(json.dumps({"trace": trace, "group": group}) for trace, group in zip(NAMES, (1, "1", 1), strict=True))
    )
    for groups in (tmp_path / "groups.jsonl", {"a": 1, "b": "1", "c": 1}):
        traces = read(path, groups=groups)  # type: ignore[arg-type]
        assert traces.traces["trace"].to_pylist() == ["a", "c"]
        assert [(problem.kind, problem.trace) for problem in traces.problems] == [("ambiguous-id", "b")]
    pq.write_table(pa.table({"trace": list(NAMES), "group": [1, 1, 2]}), tmp_path / "groups.parquet")
    assert read(path, groups=tmp_path / "groups.parquet").problems == ()


def table(path: Path, *rows: tuple[Any, Any, float]) -> Path:
    """A table of (trace, group, reward): JSON lines, CSV or Parquet by its suffix."""
    listed = [dict(zip(("trace", "group", "reward"), row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(listed), path)
    elif path.suffix == ".csv":
        path.write_text("trace,group,reward\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    else:
        path.write_text("\n".join(map(json.dumps, listed)))
    return path


def groups_of(traces: Any) -> dict[str, str]:
    columns = (traces.traces[column].to_pylist() for column in ("trace", "group"))
    return dict(zip(*columns, strict=True))


@pytest.mark.parametrize("names", [("1.parquet", "2.parquet"), ("1.jsonl", "2.jsonl"), ("1.jsonl", "2.parquet")])
def test_a_whole_float_is_the_id_of_its_integer(names: tuple[str, str], tmp_path: Path) -> None:
    """7 and 7.0 were two groups: a column of integers is one of floats where a value is missing."""
    table(tmp_path / names[0], ("a", 7, 1.0), ("b", 8, 1.0))
    table(tmp_path / names[1], ("c", 7.0, 0.0), ("d", None, 0.0), ("e", 7.5, 0.0))
    traces = read(tmp_path)
    assert [problem.kind for problem in traces.problems] == ["group-over-files", "some-without-group"]
    assert groups_of(traces) == {"a": "7", "b": "8", "c": "7", "d": "d", "e": "7.5"}


def test_a_whole_float_is_its_integer_within_a_file_and_beside_the_log(tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.jsonl", (1, 7, 1.0), (1.0, 7.0, 1.0), (2, 7.0, 0.0), (3, float(2**54), 0.0))
    traces = read(rows)
    assert groups_of(traces) == {"1": "7", "2": "7"}
    assert [(p.kind, p.trace) for p in traces.problems] == [("bad-type", "3")]  # of which integers, it cannot tell
    stated = table(tmp_path / "groups.parquet", (1.0, 9.0, 0.5), (2.0, 9.0, 0.25), (3.0, None, 0.0))
    traces = read(rows, groups=stated, rewards=stated)
    assert groups_of(traces) == {"1": "9", "2": "9"} and traces.reward[:2].tolist() == [0.5, 0.25]
    assert groups_of(read(rows, groups={"1": 9.0, "2": 9}))["2"] == "9"  # type: ignore[dict-item]


def test_a_text_keeps_its_characters(tmp_path: Path) -> None:
    assert groups_of(read(table(tmp_path / "rows.csv", ("a", "7.0", 1.0), ("b", "7", 1.0)))) == {"a": "7.0", "b": "7"}
    assert groups_of(read(table(tmp_path / "rows.jsonl", ("a", "7.0", 1.0), ("b", "7", 1.0))))["a"] == "7.0"


@pytest.mark.slow
def test_a_row_that_cannot_be_read_is_of_the_trace_of_its_integer(tmp_path: Path) -> None:
    path = table(tmp_path / "rows.jsonl", (7, "g", 1.0), (8, "g", 1.0))
    path.write_text(path.read_text() + '\n{"trace": 7.0, "group": "g", "reward": \n')
    traces = read(path)
    assert groups_of(traces) == {"8": "g"} and ("lost-row", "7") in [(p.kind, p.trace) for p in traces.problems]


def test_a_group_is_written_alike_in_all_tables(tmp_path: Path) -> None:
    """7 in one file and "7" in another were one group without a word; CSV has texts alone."""
    table(tmp_path / "1.jsonl", ("a", 7, 1.0), ("b", 7, 0.0))
    table(tmp_path / "2.jsonl", ("c", "7", 1.0), ("d", "8", 0.0))
    table(tmp_path / "3.csv", ("e", "7", 0.0))
    traces = read(tmp_path)
    assert groups_of(traces) == {"a": "7", "b": "7", "d": "8", "e": "7"}
    found = [(p.kind, Path(p.file).name, p.trace) for p in traces.problems]
    assert found == [("ambiguous-id", "2.jsonl", "c"), ("group-over-files", "1.jsonl", "")]


@pytest.mark.parametrize(("logged", "stated"), [(7, "7"), ("7", 7)])
def test_a_group_is_written_alike_in_the_log_and_in_the_table_of_groups(
    tmp_path: Path, logged: int | str, stated: int | str
) -> None:
    """7 in the log and "7" in the table were one group without a word; CSV has texts alone."""
    rows = [{"trace": trace, "group": logged, "reward": 1.0} for trace in NAMES]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "log.parquet")
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    beside, csv = tmp_path / "groups.jsonl", tmp_path / "groups.csv"
    beside.write_text(json.dumps({"trace": "a", "group": stated}))
    csv.write_text(f"trace,group\na,{stated}\n")
    for log_file in (path, tmp_path / "log.parquet"):
        for groups in (beside, {"a": stated}):
            traces = read(log_file, groups=groups)  # type: ignore[arg-type]
            assert groups_of(traces) == {"a": "7"}
            assert [(p.kind, p.trace, p.line) for p in traces.problems] == [
                ("ambiguous-id", "b", 2),
                ("ambiguous-id", "c", 3),
                ("groups-of-some", "", 0),
            ]
        for alike in (csv, {"a": logged}, {"a": 8 if isinstance(stated, int) else "8"}):
            traces = read(log_file, groups=alike)  # type: ignore[arg-type]
            assert len(groups_of(traces)) == 3 and [p.kind for p in traces.problems] == ["groups-of-some"]
    as_csv = table(tmp_path / "rows.csv", *((trace, logged, 1.0) for trace in NAMES))
    assert [p.kind for p in read(as_csv, groups={"a": stated}).problems] == ["groups-of-some"]  # type: ignore[dict-item]


def tau_bench(task: int | str, trial: int) -> dict[str, Any]:
    return {"task_id": task, "trial": trial, "reward": 1.0, "traj": [{"role": "assistant", "content": "x"}]}


def tau2(task: int | str, trial: int) -> dict[str, Any]:
    return TAU2["simulations"][0] | {"id": str(trial), "task_id": task, "trial": trial}


def inspect(sample: int | str, epoch: int) -> dict[str, Any]:
    event = {"event": "model", "output": {"choices": [{}]}}
    return {"id": sample, "epoch": epoch, "input": "q", "events": [event], "scores": {}}


LOGS = {
    "tau-bench": lambda ids: [tau_bench(task, number) for number, task in enumerate(ids)],
    "tau2-bench": lambda ids: TAU2 | {"simulations": [tau2(task, number) for number, task in enumerate(ids)]},
    "inspect-ai": lambda ids: {"version": 2, "status": "success", "eval": {"task": "t"},
                               "samples": [inspect(task, number) for number, task in enumerate(ids)]},
    "verifiers": lambda ids: [RESULT | {"example_id": task} for task in ids],
}  # fmt: skip


@pytest.mark.parametrize("format", LOGS)
def test_a_task_is_written_alike_in_all_traces(tmp_path: Path, format: str) -> None:
    """1 and "1" were one task."""

    def write(ids: tuple[int | str, ...]) -> Path:
        value = LOGS[format](ids)
        is_lines = format == "verifiers"
        path = tmp_path / ("results.jsonl" if is_lines else "log.json")
        path.write_text("\n".join(map(json.dumps, value)) if is_lines else json.dumps(value))
        return path

    traces = read(write((1, "1", 1, "x")))
    assert traces.sizes.traces == 3 and len(set(traces.traces["task"].to_pylist())) == 2
    assert [(problem.kind, problem.value) for problem in traces.problems] == [("ambiguous-id", "'1'")]
    assert read(write((1, 2, "x"))).problems == ()


def test_a_policy_that_is_named_user_is_not_the_user(tmp_path: Path) -> None:
    """Policy and user were one agent instance."""
    output = [{"type": "message", "role": role, "content": []} for role in ("assistant", "user", "assistant")]
    row = {"responses_create_params": {"input": "q"}, "response": {"output": output}, "reward": 1.0}
    (tmp_path / "x_rollouts.jsonl").write_text(json.dumps(row | {"agent_ref": {"name": "user"}}))
    traces = read(tmp_path)
    agents = traces.agents["agent"].to_pylist()
    own = [agents[int(i)] for i in traces.graph.agent_ids[: traces.sizes.events]]
    assert own == ["user", "user/user", "user"]
    assert traces.graph.action_mask[:3].tolist() == [True, False, True]
