"""Excerpts and causes of events: what the log says of each, in time linear in the log."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from credit.page.findings import Findings
from credit.page.trace_view import TraceViews
from credit.reports.event_texts import event_texts
from credit.reports.trace_events import event_rows
from graphs.errors import CreditError
from graphs.event_graph import EdgeType, EventType
from graphs.logs import read
from graphs.logs.read_logs import raw_record
from graphs.traces.assembling import assemble
from graphs.traces.record import Agent, TraceRecord
from tests.credit.cli.logs import run

RECORDINGS = Path(__file__).parents[2] / "recordings"


def test_a_call_has_the_text_of_its_own_object_and_others_that_of_the_record(tmp_path: Path) -> None:
    """The first object of an id counts; its result has the same text; a record that names no event is quoted whole."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "first"}}
    again = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "second"}}
    log = tmp_path / "log.jsonl"
    log.write_text(
        json.dumps({"content": "all of it", "tool_calls": [call, {"call_id": "c2", "text": "other"}, again]})
    )
    record = TraceRecord("t", "q", str(log), format="native")
    record.instances = {"a": Agent()}
    kinds = {"c1": EventType.TOOL_CALL, "c1.result": EventType.TOOL_RESULT, "c2": EventType.TOOL_CALL}
    for name in ("c1", "c1.result", "c2", "e"):
        record.event(name, kinds.get(name, EventType.MESSAGE), "a", action=name == "e")
    traces = assemble([record])
    assert event_texts(traces, np.arange(4), 60) == ["first", "first", "other", "all of it first other second"]
    assert event_texts(traces, np.arange(4), 6) == ["first", "first", "other", "all o…"]


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        ({"action": "run_ipython", "code": "1 + 1"}, {"action": "run_ipython", "code": "2 + 2"}, "1 + 1"),
        (
            {"content": "", "tool_calls": [{"function": "click", "arguments": {"x": 1}}]},
            {"content": "", "tool_calls": [{"function": "click", "arguments": {"x": 2}}]},
            '{"x": 1} click',
        ),
    ],
)
def test_what_is_done_with_other_arguments_is_no_repeat(
    one: dict[str, Any], other: dict[str, Any], text: str, tmp_path: Path
) -> None:
    """OpenHands' code, and Inspect's objects of arguments, were not read: each message said the tool's name again."""
    log = tmp_path / "log.jsonl"
    lines = [json.dumps(line) + "\n" for line in (one, other)]
    log.write_text("".join(lines))
    record = TraceRecord("t", "q", str(log), format="openhands", instances={"a": Agent()})
    for name, offset in (("e", 0), ("f", len(lines[0]))):
        record.event(name, EventType.MESSAGE, "a", action=True, offset=offset)
    texts = event_texts(assemble([record]), np.arange(2), 60)
    assert texts[0] == text and texts[1] != text


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({"text": "REJECT", "message": {"kwargs": {"content": "REJECT"}}}, "REJECT"),
        ({"text": "one two", "message": {"kwargs": {"content": [{"text": "one "}, {"text": "two"}]}}}, "one two"),
        ({"text": "", "message": {"kwargs": {"content": [{"text": "ok"}, {"text": "ok"}]}}}, "ok"),
        ({"text": "one", "message": {"kwargs": {"content": "two"}}}, "one two"),
    ],
)
def test_what_a_record_says_in_two_places_is_said_once(outputs: dict[str, Any], text: str, tmp_path: Path) -> None:
    """LangChain writes an answer into its generation and its message: a page had "REJECT REJECT"."""
    run = {"id": "a", "name": "x", "run_type": "llm", "trace_id": "a", "outputs": {"generations": [[outputs]]}}
    (tmp_path / "runs.jsonl").write_text(json.dumps(run))
    assert event_texts(read(tmp_path), np.arange(1), 60) == [text]


def test_phoenix_says_an_answer_once() -> None:
    """The output of a span stands in its message, too."""
    traces = read(RECORDINGS / "spans_phoenix.json")
    assert event_texts(traces, np.array([5]), 60) == ["x is 2"]


@pytest.mark.slow
def test_texts_of_one_large_record_take_time_linear_in_it(tmp_path: Path) -> None:
    """A record was searched anew for each of its events."""
    steps = [{"step_id": i, "source": "agent", "message": f"step {i}"} for i in range(1, 4001)]
    path = tmp_path / "trajectory.json"
    path.write_text(
        json.dumps({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a"}, "steps": steps})
    )
    traces = read(path)
    assert traces.sizes.events == 4000
    start = time.process_time()
    texts = event_texts(traces, np.arange(4000), 40)
    assert len(texts) == 4000 and time.process_time() - start < 2


@pytest.mark.slow
def test_texts_of_many_records_of_one_line_take_time_linear_in_them(tmp_path: Path) -> None:
    """The rest of the line was decoded for each record: a request of OpenTelemetry holds many spans."""
    records = [
        json.dumps({"id": f"e{i}", "text": f"{i} Zoë", "pad": "é" * 60}, ensure_ascii=False) for i in range(15_000)
    ]
    log = tmp_path / "log.json"
    log.write_text("[" + ",".join(records) + "]", encoding="utf-8")
    record, offset = TraceRecord("t", "q", str(log), format="native", instances={"a": Agent()}), 1
    for i, text in enumerate(records):
        record.event(f"e{i}", EventType.MESSAGE, "a", action=True, offset=offset)
        offset += len(text.encode()) + 1
    traces = assemble([record])
    start = time.process_time()
    texts = event_texts(traces, np.arange(len(records)), 40)
    assert texts == [f"{i} Zoë" for i in range(len(records))]
    assert time.process_time() - start < 3


@pytest.mark.parametrize("size", [10, 5_000, 100_000])
def test_a_record_of_any_size_that_others_follow_in_its_line_has_its_text(size: int, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps([{"pad": "é" * size, "text": "said", "number": float("nan")}, {"text": "other"}]))
    record = TraceRecord("t", "q", str(log), format="native", instances={"a": Agent()})
    record.event("e", EventType.MESSAGE, "a", action=True, offset=1)
    assert event_texts(assemble([record]), np.arange(1), 40) == ["said"]


@pytest.mark.slow
def test_an_event_of_many_causes_takes_time_linear_in_them() -> None:
    """Its causes were copied for each further one."""
    many = 50_000
    record = TraceRecord("t", "q", "log.jsonl", format="native")
    record.instances = {"a": Agent()}
    for i in range(many + 1):
        record.event(f"e{i}", EventType.MESSAGE, "a", action=True)
    for i in range(many):
        record.edge(i, many, EdgeType.CAUSAL)
    traces = assemble([record])
    start = time.process_time()
    (row,) = event_rows(traces, 0, [many], limit=0)
    assert row.causes[:2] == ((0, "causal"), (1, "causal")) and len(row.causes) == many
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("log", "asked", "gave"),
    [
        ("adk.session.json", '{"a": 1, "b": 2}', '{"result": 3}'),
        ("autogen_result.json", '{"a": 1, "b": 1}', "2"),
        ("codex_session.jsonl", '{"cmd": "echo 2"}', "Chunk ID: 8c5745 Wall"),
        ("copilot_cli", '{"command": "echo 2", "description": "print"}', "2 <shellId: 0 completed"),
        ("langgraph_team.jsonl", '{"q": "question 2"}', "found"),
        ("mini_swe_agent.traj.json", "/bin/echo two", "<returncode>0</returncode> <output> two </output>"),
        ("nemo_gym", '{"synonym_values": [97]}', '{"success":true}'),
        ("openai_agents_team.jsonl", '{"q": "a"}', "found a"),
        ("opencode", '{"command": "echo 2", "description": "print"}', "2"),
        ("openhands_sdk", '{"command": "echo 3"', "3"),
        ("spans_ag2.json", '{"question": "x"}', "found x"),
        ("spans_phoenix.json", '{"question": "x"}', "found x"),
        ("swe_agent", "touch reproduce.py", ""),
        ("verifiers_episodes.jsonl", "{}", "2"),
    ],
)
def test_a_call_shows_its_arguments_and_a_result_what_it_gave(log: str, asked: str, gave: str) -> None:
    """As the tools of each project have recorded them."""
    traces = read(Path(__file__).parents[2] / "recordings" / log)
    rows = [row for trace in range(traces.sizes.traces) for row in event_rows(traces, trace)]
    assert any(row.type == "tool_call" and row.text.startswith(asked) for row in rows)
    assert any(row.type == "tool_result" and row.text.startswith(gave) for row in rows)


def test_the_excerpt_of_a_failed_command_of_codex_is_what_it_printed(tmp_path: Path) -> None:
    """It was "Chunk ID: 8c5745 Wall time: 0.0002 seconds Process exited with code 1 Original token count: 1"."""
    log = (Path(__file__).parents[2] / "recordings" / "codex_session.jsonl").read_text()
    (tmp_path / "rollout.jsonl").write_text(log.replace("exited with code 0", "exited with code 1"))
    texts = {row.text for row in event_rows(read(tmp_path), 0) if row.status == "error"}
    assert "2" in texts and not any("Chunk ID" in text for text in texts)


def test_openhands_and_swe_agent_show_commands_and_nothing_of_other_steps(tmp_path: Path) -> None:
    """A row of a history is one record of many events, and a step's own query repeats the prompt."""
    ran = {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look."}}
    history = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Mend it."}},
        ran,
        {"id": 2, "source": "agent", "cause": 1, "observation": "run", "content": "setup.py"},
        {"id": 3, "source": "agent", "action": "finish", "args": {"final_thought": "Done."}},
    ]
    (tmp_path / "output.jsonl").write_text(
        json.dumps({"instance_id": "i", "instruction": "", "history": history, "test_result": {}})
    )
    texts = {row.type: row.text for row in event_rows(read(tmp_path / "output.jsonl"), 0)}
    assert texts["human_intervention"] == "Mend it."
    assert texts["tool_call"] == '{"command": "ls"}' and texts["tool_result"] == "setup.py"
    step = {
        "action": "ls",
        "observation": "setup.py",
        "response": "I look.",
        "query": [{"role": "user", "content": "Mend"}],
    }
    (tmp_path / "i.traj").write_text(json.dumps({"environment": "e", "trajectory": [step], "info": {}}))
    texts = {row.type: row.text for row in event_rows(read(tmp_path / "i.traj"), 0)}
    assert texts == {"message": "I look.", "tool_call": "ls", "tool_result": "setup.py"}


def test_a_span_shows_what_its_model_said_and_not_what_it_was_told(tmp_path: Path) -> None:
    """Attributes of OpenTelemetry and OpenInference, flat and as OTLP lists them."""
    for number, attributes in enumerate(
        (
            {"gen_ai.input.messages": "told", "gen_ai.output.messages": "said"},
            {"llm.input_messages.0.message.content": "told", "llm.output_messages.0.message.content": "said"},
            {"gen_ai.prompt.0.content": "told", "gen_ai.completion.0.content": "said", "gen_ai.usage.output_tokens": 3},
        )
    ):
        listed = [{"key": key, "value": {"stringValue": text}} for key, text in attributes.items()]
        for form in (attributes, listed):
            log = tmp_path / f"{number}.json"
            log.write_text(json.dumps({"name": "chat", "spanId": "e", "attributes": form}))
            record = TraceRecord("t", "q", str(log), format="otlp")
            record.instances = {"a": Agent()}
            record.event("e", EventType.MESSAGE, "a", action=True)
            assert event_texts(assemble([record]), np.arange(1), 60) == ["said"]


def test_a_record_of_several_messages_says_nothing_of_one_that_it_does_not_name(tmp_path: Path) -> None:
    """Each of them had the text of the whole record."""
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"prompt": "1+1?", "completion": [{"content": "2"}, {"content": "3"}]}))
    record = TraceRecord("t", "q", str(log), format="native")
    record.instances = {"a": Agent()}
    for name in ("0", "1"):
        record.event(name, EventType.MESSAGE, "a", action=True)
    assert event_texts(assemble([record]), np.arange(2), 60) == ["", ""]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("art_0007.jsonl", ["1+1?", "{}", "{}", "2", "2", "1+1?", "2", "2+2?", "5"]),
     ("art_0007.parquet", ["1+1?", "{}", "{}", "2", "2", "1+1?", "2", "2+2?", "5"]),
     ("rllm_episode.json", ["Make 4 of 2 and 2.", "2+2", "Make 4 of 2 and 2.", "2-2", "Make 4 of 2 and 2.", "first"]),
     ("rllm_stored.json", ["Make 4 of 2 and 2.", "{}", "{}", "4", "4"]),
     ("completions_00007.parquet", ["2", "3"]),
     ("skyrl/openai_gsm8k.jsonl", ["2", "3 4"])],
)  # fmt: skip
def test_messages_within_one_record_and_rows_of_parquet_have_texts(name: str, expected: list[str]) -> None:
    """They had none, although each message of the record, or the row, has its own."""
    traces = read(RECORDINGS / name)
    assert event_texts(traces, np.arange(traces.sizes.events), 60)[: len(expected)] == expected


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
def test_each_row_of_a_table_has_its_own_text(tmp_path: Path, kind: str) -> None:
    """CSV had none, and of JSON lines every event had that of the first row."""
    columns: dict[str, list[Any]] = {
        "trace": ["a", "b", "b", "c"], "reward": [1.0, 0.0, 0.0, 1.0], "prompt": ["asked"] * 4,
        "response": ["one", 'two, "quoted"\nand more', "three", "four"], "action": [True] * 4,
    }  # fmt: skip
    table, path = pa.table(columns), tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        pyarrow.csv.write_csv(table, pa.output_stream(path))
    traces = read(path)
    texts = ["one", 'two, "quoted" and more', "three", "four"]
    assert event_texts(traces, np.arange(4), 60) == texts
    assert event_texts(traces, np.array([2, 1]), 60) == texts[2:0:-1]
    if kind == "parquet":
        with pytest.raises(CreditError, match="no record to read again"):
            raw_record(traces, 2)
    else:
        assert b"three" in raw_record(traces, 2) and b"two" not in raw_record(traces, 2)


def test_a_row_of_another_group_of_rows_is_that_row(tmp_path: Path) -> None:
    columns = {"step": [1] * 7, "prompt": ["p"] * 7, "completion": list("abcdefg"), "right": [1.0] * 7,
               "advantage": [0.5] * 7}  # fmt: skip
    pq.write_table(pa.table(columns), tmp_path / "completions_1.parquet", row_group_size=3)
    traces = read(tmp_path / "completions_1.parquet")
    assert event_texts(traces, np.arange(7)[::-1], 60) == list("gfedcba")


def test_the_model_of_a_call_is_named(tmp_path: Path) -> None:
    """An agent fell back to another model, and neither `credit show` nor a page's event named the models."""
    events = [{"id": name, "type": kind, "agent": "a", "action": kind == "message", **model}
              for name, kind, model in (("x", "message", {"model": "large"}), ("c", "tool_call", {}),
                                        ("y", "message", {"model": "small"}))]  # fmt: skip
    line = {"task_id": "q", "edges": [], "rewards": {"team": 1.0}}
    lines = [line | {"trace_id": "t", "events": events}, line | {"trace_id": "u", "events": events[:2]}]
    (log := tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    traces = read(log)
    assert [row.model for row in event_rows(traces, "t")] == ["large", "", "small"]
    both, one = ([line.split() for line in run("show", log, "--trace", name).stdout.splitlines()] for name in "tu")
    assert ["model", "large,", "small"] in both and ["model", "large"] in one
    assert next(line for line in both if line[:2] == ["2", "y"])[-1] == "small"
    assert "model" not in next(line for line in one if "causes" in line), "one model stands above"
    assert "→ 2  a  message  small  y" in run("show", log, "--trace", "t", "--around", "y").stdout
    model = TraceViews(Findings.of(traces, {})).of(0)["model"]
    assert [model["names"][code] if code >= 0 else "" for code in model["codes"]] == ["large", "", "small"]
