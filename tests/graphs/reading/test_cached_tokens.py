"""Tokens that a call read from a cache, in the words of each log: they are a part of `input_tokens`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import credit
from graphs.formats.common.responses import Usage

from .samples import SAMPLES


@pytest.mark.parametrize(
    "stated",
    [
        {"input_tokens_details": {"cached_tokens": 900}},  # OpenAI's Responses
        {"cached_input_tokens": 900},  # Codex
    ],
)
def test_responses_state_cached_tokens_as_a_part(stated: dict[str, Any]) -> None:
    usage = msgspec.convert({"input_tokens": 1000, "output_tokens": 5} | stated, Usage)
    assert usage.columns == {"tokens": 5, "input_tokens": 1000, "cached_tokens": 900}


@pytest.mark.parametrize("key", ["input_cached_tokens", "input_cache_read", "cache_read_input_tokens"])
def test_kinds_of_langfuse_do_not_overlap(key: str, tmp_path: Path) -> None:
    path = SAMPLES["langfuse"].write(tmp_path)
    (file,) = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    text = file.read_text()
    before, usage = credit.read(path), {"input": 7, key: 90, "output": 3}
    first = json.dumps(usage)
    start = text.index("usageDetails")
    begin, end = text.index("{", start), text.index("}", start) + 1
    file.write_text(text[:begin] + first + text[end:])
    read = credit.read(path)
    assert "cached_tokens" not in before.evidence
    counts = {
        name: read.evidence[name].array[read.evidence[name].mask].tolist() for name in ("input_tokens", "cached_tokens")
    }
    assert 97 in counts["input_tokens"] and counts["cached_tokens"] == [90]
