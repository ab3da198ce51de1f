"""Files: every layout gives the same batch, and sniffing knows its own and leaves others alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.formats.native import sniff
from graphs.logs import FORMATS, detect, read

from .logs import extended_trace, survey_trace


@pytest.mark.parametrize("layout", ["line", "pretty", "list", "pretty list", "event a line"])
def test_every_layout_gives_the_same_batch_and_points_at_its_traces(layout: str, tmp_path: Path) -> None:
    documents = [survey_trace(trace_id="a", rewards={"team": 0.5}), extended_trace(trace_id="b")]
    single = layout in {"pretty", "event a line"}
    if layout == "line":
        text = "\n" + "\r\n".join(json.dumps(d) for d in documents) + "\n\n"
    elif layout == "pretty":
        text = "\n" + json.dumps(documents[0], indent=2)
    elif layout == "event a line":
        text = json.dumps(documents[0]).replace('{"id"', '\n{"id"')
    else:
        text = " " + json.dumps(documents, indent=3 if layout == "pretty list" else None)
    file = tmp_path / "x.json"
    file.write_bytes(text.encode())
    traces = read(file)
    assert traces.problems == ()
    assert traces.traces["trace"].to_pylist() == (["a"] if single else ["a", "b"])
    for row in traces.traces.to_pylist():
        place = text[row["offset"] :]
        assert json.JSONDecoder().raw_decode(place.lstrip())[0]["trace_id"] == row["trace"]
        assert row["line"] == 1 + text.count("\n", 0, row["offset"])


def test_what_is_no_trace_harms_no_other_of_its_list(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([None, 7, survey_trace(trace_id="a"), "x"]))
    traces = read(path)
    assert traces.traces["trace"].to_pylist() == ["a"] and len(traces.problems) == 3


def test_sniffing_knows_its_own_by_any_order_of_keys() -> None:
    document = extended_trace()
    for text in (
        json.dumps(document),
        json.dumps(document, indent=2),
        json.dumps(document, sort_keys=True),
        json.dumps([document]),
        json.dumps(dict(reversed(document.items()))),
        json.dumps(document)[:300],
        "oops\n" + json.dumps(document),
        json.dumps(document)[:100] + "\n" + json.dumps(document),
    ):
        assert sniff(text.encode()), text[:80]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[", "[]", "{}", "trace_id,task_id,events\na,b,c\n", '"trace_id"', '{"text": "trace_id events"}',
        '{"trace_id": "a", "task_id": "b", "reward": 1.0}',  # a trainer's row
        '{"resourceSpans": [{"scopeSpans": [{"spans": [{"trace_id": "a", "events": []}]}]}]}',
        '{"trace_id": "a", "span_id": "b", "events": [{"name": "e", "timestamp": 1}]}',  # a flat span
        '{"trace_id": "a", "run_type": "llm", "events": [{"name": "start", "time": "x"}]}',
        '{"id": "s", "epoch": 1, "events": [{"event": "model"}]}',
        '[{"task_id": 0, "reward": 0.0, "traj": [{"role": "user"}]}]',
        '{"type": "user", "message": {"trace_id": 1, "task_id": 2, "events": []}}',
    ],
)  # fmt: skip
def test_sniffing_leaves_others_alone(text: str) -> None:
    assert not sniff(text.encode())


def test_sniffing_claims_no_real_log_of_another_format(shared_data: Path) -> None:
    files = [f for f in shared_data.rglob("*") if f.suffix in {".json", ".jsonl"}]
    assert len(files) > 70
    for file in files:
        head = file.read_bytes()[: 1 << 16]
        assert not sniff(head), file
        if "atif" in str(file) or "who_and_when" in str(file) or "inspect" in str(file):
            assert detect(head) in {None, *FORMATS} - {"native", "table"}, file
