"""Chats that a table stores as the JSON of a list, and messages in roles that no chat has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from tests.graphs.reading.all_formats import ALL
from tests.graphs.reading.samples import RESULT

CHAT: list[dict[str, Any]] = RESULT["completion"]  # type: ignore[assignment]


def events(path: Path) -> list[int]:
    traces = read(path)
    return [int(kind) for kind in traces.graph.event_type[traces.graph.event_mask]]


def trl(folder: Path, name: str, completion: object) -> Path:
    rows = {"step": [1], "prompt": ["1+1?"], "completion": [completion], "right": [1.0], "advantage": [0.0]}
    path = folder / name / "completions_00001.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table(rows), path)
    return path


def results(folder: Path, name: str, completion: object) -> Path:
    path = folder / name / "results.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(RESULT | {"completion": completion}) + "\n")
    return path


@pytest.mark.parametrize("write", [trl, results])
def test_a_chat_that_is_stored_as_text_reads_as_the_chat(write: Any, tmp_path: Path) -> None:
    """It was one action, the tool's call and result were lost, and nothing said so."""
    chat = [{"tool_calls": None, "tool_call_id": None} | message for message in CHAT]
    whole = events(write(tmp_path, "whole", chat))
    assert len(whole) == 4 and events(write(tmp_path, "text", json.dumps(chat))) == whole
    for text in ('["4"]', '[{"x": 1}]', "[unfinished", "[]", "4"):  # what a base model may write
        assert len(events(write(tmp_path, f"base {text}", text))) == 1


@pytest.mark.parametrize("name", ["rllm", "rllm stored", "verifiers results", "art", "tau-bench", "mini-swe-agent"])
def test_a_message_in_an_unknown_role_is_refused(name: str, tmp_path: Path) -> None:
    """rLLM's were left out without a word, and the replies among them were new calls."""
    sample = ALL[name]
    text = sample.text.replace('"role": "assistant"', '"role": "model"').replace('"role": "user"', '"role": "model"')
    path = sample.write(tmp_path)
    path.write_text(text)
    with pytest.raises(NothingReadError, match=r"role is 'model'; expected"):
        read(path)
