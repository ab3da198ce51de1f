"""Tokens that a call read from a cache, in the words of each log: they are a part of `input_tokens`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import credit
from graphs.formats.common.input_tokens import ChatUsage
from graphs.formats.common.responses import Usage
from graphs.formats.inspect_ai.events import Usage as InspectUsage

from .all_formats import ALL
from .samples import SAMPLES

RECORDINGS = Path(__file__).parents[2] / "recordings"


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


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 1000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 900}}, 1000),
        ({"prompt_tokens": 1000, "completion_tokens": 5, "cache_read_input_tokens": 900}, 1000),  # LiteLLM
        ({"input_tokens": 1000, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 900}}, 1000),
        ({"input_tokens": 70, "output_tokens": 5, "cache_read_input_tokens": 900}, 970),  # Anthropic
        ({"input_tokens": 1000, "output_tokens": 5, "cache_read_input_tokens": 900}, 1900),
        (
            {"input_tokens": 1000, "output_tokens": 5}
            | {"cache_read_input_tokens": 900, "cache_creation_input_tokens": 50},
            1950,
        ),
    ],
)
def test_a_chat_states_cached_tokens_as_a_part_and_anthropic_beside(usage: dict[str, Any], read: int) -> None:
    columns = msgspec.convert(usage, ChatUsage).columns
    written = {"cache_write_tokens": 50} if "cache_creation_input_tokens" in usage else {}
    assert columns == {"tokens": 5, "input_tokens": read, "cached_tokens": 900} | written


DETAILS = '"prompt_tokens_details": {"cached_tokens": 1}, "prompt_tokens"'


@pytest.mark.parametrize(
    ("name", "key", "stated"),
    [
        ("openhands", '"prompt_tokens"', DETAILS),
        ("mini-swe-agent", '"prompt_tokens"', DETAILS),
        ("weave", '"prompt_tokens"', DETAILS),
        ("openhands", '"prompt_tokens"', '"cache_read_tokens": 1, "prompt_tokens"'),
        ("braintrust", '"prompt_tokens"', '"prompt_cached_tokens": 1, "prompt_tokens"'),
        ("cline", '"inputTokens"', '"cacheReadTokens": 1, "inputTokens"'),
        ("copilot_cli", '"cacheReadTokens": 0', '"cacheReadTokens": 1'),
    ],
)
def test_every_reader_of_usage_reads_cached_tokens(name: str, key: str, stated: str, tmp_path: Path) -> None:
    path = SAMPLES[name].write(tmp_path) if name in SAMPLES else shutil.copytree(RECORDINGS / name, tmp_path / name)
    for file in [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]:
        file.write_text(file.read_text().replace(key, stated))
    cached = credit.read(path).evidence["cached_tokens"]
    assert set(cached.amounts.tolist()) == {1}


USED = '"usage_metadata": {'
OF_CACHE = '{"key": "gen_ai.usage.cache_read.input_tokens", "value": {"intValue": "90000"}}, '
COUNT_OF_CACHE = '{"key": "llm.token_count.prompt_details.cache_read", "value": {"intValue": "90000"}}, '


@pytest.mark.parametrize(
    ("name", "key", "stated"),
    [
        ("otlp of gen_ai", '{"key": "gen_ai.usage.output_tokens"', f'{OF_CACHE}{{"key": "gen_ai.usage.output_tokens"'),
        ("otlp of openinference", '{"key": "llm.token_count.completion"',
         f'{COUNT_OF_CACHE}{{"key": "llm.token_count.completion"'),
        ("atif", '"prompt_tokens"', '"cached_tokens": 90000, "prompt_tokens"'),
        ("codex", '"last_token_usage": {', '"last_token_usage": {"cached_input_tokens": 90000, '),
        ("langgraph", USED, f'{USED}"input_token_details": {{"cache_read": 90000}}, '),
        ("langsmith", USED, f'{USED}"input_token_details": {{"cache_read": 90000}}, '),
        ("braintrust", '"prompt_tokens"', '"prompt_cached_tokens": 90000, "prompt_tokens"'),
        ("openhands", '"prompt_tokens"', '"cache_read_tokens": 90000, "prompt_tokens"'),
    ],
)  # fmt: skip
def test_more_cached_tokens_than_input_stand_beside_it_in_each_form(
    name: str, key: str, stated: str, tmp_path: Path
) -> None:
    """OTLP, ATIF and Codex kept less input than came from a cache; prices were those of the input alone."""
    is_sample = name in ALL and key in ALL[name].text
    path = ALL[name].write(tmp_path) if is_sample else shutil.copytree(RECORDINGS / name, tmp_path / name)
    before = credit.read(path).evidence["input_tokens"]
    for file in [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]:
        file.write_text(file.read_text().replace(key, stated))
    after = credit.read(path).evidence
    cached = after["cached_tokens"].mask & after["input_tokens"].mask
    assert cached.any() and (after["input_tokens"].array - before.array)[cached].tolist() == [90000] * cached.sum()


@pytest.mark.parametrize(
    ("name", "key", "stated"),
    [
        ("braintrust", '"prompt_tokens"', '"prompt_cache_creation_tokens": 1, "prompt_tokens"'),
        ("cline", '"cacheWriteTokens": 0', '"cacheWriteTokens": 1'),
        ("copilot_cli", '"cacheWriteTokens": 0', '"cacheWriteTokens": 1'),
        ("opencode", '"write": 0', '"write": 1'),
        ("claude_code", '"cache_creation_input_tokens": 0', '"cache_creation_input_tokens": 1'),
        ("langfuse", '"usageDetails": {', '"usageDetails": {"cache_creation_input_tokens": 1, '),
        ("otlp of gen_ai", '{"key": "gen_ai.usage.output_tokens"',
         '{"key": "gen_ai.usage.cache_creation.input_tokens", "value": {"intValue": "1"}}, '
         '{"key": "gen_ai.usage.output_tokens"'),
        ("langsmith", USED, f'{USED}"input_token_details": {{"cache_creation": 1}}, '),
        ("langgraph", USED, f'{USED}"input_token_details": {{"cache_creation": 1}}, '),
        ("openhands", '"prompt_tokens"', '"cache_write_tokens": 1, "prompt_tokens"'),
    ],
)  # fmt: skip
def test_every_reader_of_usage_reads_what_was_written_to_a_cache(
    name: str, key: str, stated: str, tmp_path: Path
) -> None:
    is_sample = name in ALL and key in ALL[name].text
    path = ALL[name].write(tmp_path) if is_sample else shutil.copytree(RECORDINGS / name, tmp_path / name)
    for file in [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]:
        file.write_text(file.read_text().replace(key, stated))
    written = credit.read(path).evidence["cache_write_tokens"]
    assert set(written.amounts.tolist()) == {1}


def test_a_real_log_of_inspect_has_cached_tokens_within_the_total(shared_data: Path) -> None:
    """Its total is the sum of `input_tokens` and `output_tokens`, so those of the cache are a part."""
    (log,) = (shared_data / "inspect_ai").glob("*_browser.json")
    evidence = credit.read(log).evidence
    assert evidence["input_tokens"].amounts.tolist() == [1124, 1568, 2732, 3896, 5915]
    assert evidence["cached_tokens"].amounts.tolist() == [0, 1024, 1536, 2688, 3840]


def test_inspect_states_cached_tokens_beside_where_the_total_has_them() -> None:
    usage = {"input_tokens": 1000, "output_tokens": 5, "input_tokens_cache_read": 900, "input_tokens_cache_write": 50}
    of_total = {total: msgspec.convert(usage | {"total_tokens": total}, InspectUsage).columns for total in (1005, 1955)}
    counts = {"tokens": 5, "cached_tokens": 900, "cache_write_tokens": 50}
    assert of_total[1005] == counts | {"input_tokens": 1000} and of_total[1955] == counts | {"input_tokens": 1950}
