"""Files that are almost a log, changed a little or wrapped, are refused by the name of the format they resemble."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import NothingReadError, Problem
from graphs.logs import FORMATS, detect, read
from graphs.reading.near_misses import PRODUCTS, Product

from .all_formats import ALL
from .samples import RECORDINGS, Sample


def test_all_formats_are_among_them() -> None:
    """A table has no keys of its own: `--columns` names them."""
    assert {sample.format for sample in ALL.values()} == set(FORMATS) - {"table"}


def near_misses(sample: Sample) -> list[str]:
    """Texts of logs with a wrapper around them, or with one of the keys that are highest in them renamed."""
    values: Any = sample.values if sample.lines else sample.values[0]
    wrapped: tuple[Any, ...] = (
        {"wrapped": values}, [[values]], {"v": 3, "payload": {"items": values}}, {"log": {"run": [values]}},
        {"result": {"output": {"value": values}}}, [{"number": 1, "content": values}], [[[values]]],
        {"export": {"version": 2, "records": [{"body": values}]}}, {"rows": [{"row": values}]},
        {"status": 200, "body": {"json": values}},
    )  # fmt: skip
    texts = [json.dumps(one) for one in wrapped]
    first = values[0] if isinstance(values, list) else values
    for key in list(first)[:8]:
        renamed = [
            {f"{name}_x" if name == key else name: part for name, part in one.items()} if isinstance(one, dict) else one
            for one in (values if isinstance(values, list) else [values])
        ]
        texts.append("".join(json.dumps(one) + "\n" for one in renamed) if sample.lines else json.dumps(renamed))
    return texts


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", ALL)
def test_near_misses_are_refused_by_the_name_of_the_format(tmp_path: Path, name: str) -> None:
    """They read, or are refused by their own reader, or the refusal names the format that they resemble."""
    sample = ALL[name]
    texts = near_misses(sample)
    assert len(texts) >= 10
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        format = detect(text.encode()[: 1 << 16])
        if name == "agent-lightning spans" and '"rollout_id_x"' in text:
            assert format == "spans"  # which it is then
            continue
        assert format in (None, sample.format)
        if format is None:
            with pytest.raises(NothingReadError) as caught:
                read(path)
            (problem,) = caught.value.problems
            assert problem.kind == "unknown-format"
            assert sample.format in f"{problem.value} {problem.expected}", (text[:200], problem)


def test_a_run_s_id_does_not_hide_the_format_of_few_keys(tmp_path: Path) -> None:
    """Spans that lack two keys resemble those of Agent Lightning less, but spans all the same."""
    (tmp_path / "x.json").write_text(json.dumps({"rollout_id": "r", "span_id": "s", "attributes": {}, "name": "n"}))
    (problem,) = refused(tmp_path / "x.json")
    assert problem.kind == "unknown-format" and "spans" in problem.value


TRL = {"step": [3], "prompt": ["1+1?"], "completion": ["2"], "advantage": [0.5], "right": [1.0]}
TABLES: dict[str, tuple[pa.Table, list[str]]] = {
    "rollouts": (pa.table(TRL), ["step", "prompt", "completion", "advantage"]),
    "spans": (
        pq.read_table(RECORDINGS / "spans_phoenix.parquet"),
        ["context.trace_id", "context.span_id", "parent_id", "name"],
    ),
}
"""Parquet files, and the columns by which their formats are told."""


@pytest.mark.parametrize("format", TABLES)
def test_near_misses_in_parquet(tmp_path: Path, format: str) -> None:
    """One or two columns renamed or left out, or all within another column."""
    table, needed = TABLES[format]
    whole = pa.StructArray.from_arrays([column.combine_chunks() for column in table.columns], table.column_names)
    changed = [pa.table({"row": whole}), pa.table({"log": pa.StructArray.from_arrays([whole], ["row"])})]
    for i, name in enumerate(needed):
        for lost in ([name], [name, needed[i - 1]]):
            changed.append(table.drop_columns(lost))
            changed.append(table.rename_columns([f"{c}_x" if c in lost else c for c in table.column_names]))
    assert len(changed) >= 10
    path = tmp_path / "log.parquet"
    for one in changed:
        pq.write_table(one, path)
        (problem,) = refused(path)
        missing = (
            set(needed).difference(one.column_names)
            if len(one.column_names) > 1
            else {*needed, "outside any other column"}
        )
        assert f"in the format {format} " in problem.expected
        assert all(name in problem.expected for name in missing), problem
    pq.write_table(pa.table({"a": [1], "step": [2]}), path)
    (problem,) = refused(path)
    assert "in the format" not in problem.expected


def refused(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(NothingReadError) as caught:
        read(path)
    return caught.value.problems


def test_products_that_no_reader_reads_are_named(tmp_path: Path) -> None:
    for name, text, named, advice in (
        ("events.jsonl", json.dumps({"scope_category": "start", "atof_version": "0.1"}), "ATOF", "ATIF"),
        ("chats.jsonl", json.dumps({"messages": [{"role": "user"}]}), "fine-tuning", "--columns"),
        ("jaeger.json", json.dumps({"data": [{"traceID": "x", "spans": [{"spanID": "y", "operationName": "z"}]}]}),
         "Jaeger", "OTLP"),
        ("zipkin.json", json.dumps([{"traceId": "x", "localEndpoint": {}, "annotations": []}]), "Zipkin", "OTLP"),
        ("datadog.json", json.dumps([[{"trace_id": 1, "span_id": 2, "parent_id": 0, "service": "s", "resource": "r",
                                       "name": "n", "start": 1, "duration": 2, "meta": {}}]]), "Datadog", "OTLP"),
        ("chrome.json", json.dumps({"traceEvents": [{"name": "x", "ph": "X", "ts": 1}]}), "Chrome", "OTLP"),
        ("stream.jsonl", json.dumps({"type": "system", "subtype": "init", "session_id": "s"}) + "\n"
         + json.dumps({"type": "assistant", "message": {"id": "m", "role": "assistant", "content": []},
                       "parent_tool_use_id": None, "session_id": "s"}), "claude", "SESSION.jsonl"),
        ("exec.jsonl", json.dumps({"type": "thread.started", "thread_id": "t"}) + "\n"
         + json.dumps({"type": "item.completed", "item": {"id": "i", "type": "agent_message"}}), "codex", "rollout"),
        ("history.jsonl", json.dumps({"prompt": None, "messages": [{"role": "user"}], "kwargs": {}, "outputs": ["x"],
                                      "model_type": "chat"}), "DSPy", "--columns"),
        ("batch.jsonl", json.dumps({"custom_id": "r", "response": {"status_code": 200, "body": {}}}),
         "batch", "--columns"),
        ("pairs.jsonl", json.dumps({"prompt": "p", "chosen": "a", "rejected": "b"}), "preferred", "rewards"),
        ("evals.jsonl", json.dumps({"run_id": "r", "event_id": 0, "sample_id": "s", "type": "match", "data": {}}),
         "OpenAI Evals", "--rewards"),
        ("samples.jsonl", json.dumps({"doc_id": 0, "target": "1", "resps": [["a"]], "filtered_resps": ["a"]}),
         "lm-evaluation-harness", "--rewards"),
        ("state.json", json.dumps({"adapter_spec": {}, "request_states": []}), "HELM", "--rewards"),
        ("notebook.json", json.dumps({"cells": [], "nbformat": 4}), "notebook", "agents"),
        *((f"{i}.json", f"\x80{chr(i)}", "pickle", "JSON") for i in (2, 3, 4, 5)),
        ("runs.json", "Obj\x01\x04\x16avro.schema", "Avro", "JSON"),
        ("orc.json", "ORC\n", "ORC", "--columns"),
        ("h5.json", "\x89HDF\r\n\x1a\n", "HDF5", "--columns"),
        ("array.json", "\x93NUMPY\x01", "NumPy", "--columns"),
        ("packed.json", "BZh91AY&SY", "bzip2", "gzip"),
        ("xz.json", "\xfd7zXZ\x00", "xz", "gzip"),
        ("7z.json", "7z\xbc\xaf\x27\x1c", "7-Zip", "gzip"),
        ("lz4.json", "\x04\x22\x4d\x18", "LZ4", "gzip"),
        ("page.json", "<!DOCTYPE html><html></html>", "HTML", "JSON"),
        ("file.json", "%PDF-1.7", "PDF", "agents"),
        ("tree.json", "<?xml version='1.0'?><a/>", "XML", "JSON"),
    ):  # fmt: skip
        path = tmp_path / name
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(NothingReadError) as caught:
            read(path)
        (problem,) = caught.value.problems
        assert named in problem.value and advice in problem.expected


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_each_product_is_named_by_the_keys_that_show_it(tmp_path: Path, product: Product) -> None:
    for number, value in enumerate((dict.fromkeys(sorted(product.keys), "x"), dict.fromkeys(product.keys))):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(value))
        (problem,) = refused(path)
        assert (problem.kind, problem.value) == ("unknown-format", product.name) and product.advice in problem.expected


HEADERS = ("id,op_name,trace_id,parent_id,inputs", "id,span_id,root_span_id,span_parents,input")


@pytest.mark.parametrize("header", HEADERS)
def test_a_table_of_spans_is_no_table_of_actions(tmp_path: Path, header: str) -> None:
    """Advice was to name its columns, with which each span would be an action."""
    (tmp_path / "export.csv").write_text(f"{header}\n1,2,3,4,x\n")
    (problem,) = refused(tmp_path / "export.csv")
    assert problem.value.startswith("a table of ") and "--columns" not in problem.expected


@pytest.mark.parametrize(("content", "named"), [(b"SQLite format 3\0", "SQLite"), (b"ARROW1\0\0", "Arrow")])
def test_databases_and_arrow_files_are_named(tmp_path: Path, content: bytes, named: str) -> None:
    (tmp_path / "x.json").write_bytes(content + bytes(300))
    (problem,) = refused(tmp_path / "x.json")
    assert problem.kind == "unknown-format" and named in problem.value


def test_logs_that_stand_in_an_archive_as_they_are_are_not_read_in_part(tmp_path: Path) -> None:
    """The first line of a member stands behind the archive's own bytes: the second was read, the first lost."""
    event = {"id": "e", "type": "message", "agent": "a"}
    text = "".join(json.dumps({"trace_id": t, "task_id": "q", "events": [event]}) + "\n" for t in "ab").encode()
    tar, packed = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = tarfile.TarInfo("log.jsonl")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("log.jsonl", text)
    for content, name in ((tar, "a tar archive"), (packed, "a zip archive")):
        path = tmp_path / "log.jsonl"
        path.write_bytes(content.getvalue())
        for format in (None, "native"):
            with pytest.raises(NothingReadError) as caught:
                read(path, format=format)
            (problem,) = caught.value.problems
            assert (problem.kind, problem.value) == ("unknown-format", name)


COMMON_KEYS = [
    [{"timestamp": "2026-01-01", "type": "message", "message": {"role": "user", "content": []}}],
    [{"timestamp": 1, "type": "turn", "role": "assistant", "parts": [{"type": "text"}], "id": "a"}],
    [{"type": "session", "id": "s", "timestamp": "x", "cwd": "/"}, {"type": "message", "message": {"role": "user"}}],
    [{"sessionId": "s", "events": [{"type": "x", "timestamp": 1, "role": "y", "content": "z"}]}],
]


@pytest.mark.parametrize("lines", COMMON_KEYS)
def test_keys_that_many_logs_have_advise_no_format(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    """`--format codex reads it as such` was said of 18 public files, and a worse error followed it."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(NothingReadError) as caught:
        read(path)
    (problem,) = caught.value.problems
    assert problem.kind == "unknown-format" and "reads it as such" not in problem.expected
    assert "--columns" in problem.expected


def test_json_without_any_key_that_records_need_is_like_none(tmp_path: Path) -> None:
    """A file of one's own beside the logs was `like verifiers`, for `task`, `start` and `end` in its rows."""
    rows = [{"sid": "a", "task": "q", "start": "2026-03-04", "end": "2026-03-05", "calls": 3}]
    (tmp_path / "truth.json").write_text(json.dumps({"seed": 1, "rows": rows}))
    (problem,) = refused(tmp_path / "truth.json")
    assert "verifiers" not in problem.value and "prices is no log" in problem.expected


OWN: dict[str, Any] = {"task": "q", "reward": 1.0, "events": [{"agent": "A", "text": "x"}, {"agent": "B", "text": "y"}]}


def test_rollouts_of_one_s_own_are_told_the_keys_that_they_lack(tmp_path: Path) -> None:
    """The refusal listed all formats and named no key."""
    (tmp_path / "x.jsonl").write_text(json.dumps(OWN) + "\n")
    (problem,) = refused(tmp_path / "x.jsonl")
    assert problem.kind == "unknown-format" and problem.value == "like native"
    assert "the keys task_id, trace_id of each trace and id, type of each event, and the outcome as" in problem.expected
    events = [{**event, "id": f"e{i}", "type": "message"} for i, event in enumerate(OWN["events"])]
    whole = {"trace_id": "t", "task_id": OWN["task"], "events": events, "rewards": {"team": OWN["reward"]}}
    (tmp_path / "x.jsonl").write_text(json.dumps(whole) + "\n")
    assert read(tmp_path / "x.jsonl").reward[0] == 1
    (tmp_path / "x.jsonl").write_text(json.dumps({**OWN, "events": [1, 2]}) + "\n")
    (problem,) = refused(tmp_path / "x.jsonl")
    assert "like native" not in problem.value


@pytest.mark.parametrize("key", ["events", "steps", "messages", "trajectories"])
@pytest.mark.parametrize("top", [{"id": "a", "task": "q", "reward": 1}, {"prompt": "q", "score": 1}])
def test_rollouts_with_a_list_of_events_for_each_agent_say_what_is_expected(
    tmp_path: Path, key: str, top: dict[str, Any]
) -> None:
    """All formats were listed; an object by agent has no order between the agents."""
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(top | {key: {"planner": [{"content": "x"}], "coder": [{"content": "y"}]}}) + "\n")
    with pytest.raises(NothingReadError) as refused:
        read(log)
    (problem,) = refused.value.problems
    assert (problem.kind, problem.value) == ("unknown-format", f"{key} by agent")
    assert "one list of the events of all agents" in problem.expected and "tau-bench" not in problem.expected
