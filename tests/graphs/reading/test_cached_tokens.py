"""Tokens that a call read from a cache, in the words of each log: they are a part of `input_tokens`."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

import credit
from graphs.formats.common.input_tokens import ChatUsage, call_counts
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
    usage = msgspec.convert({"input_tokens": 1000, "output_tokens": 5} | stated, ChatUsage)
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
        ("braintrust", '"prompt_cache_write_tokens": 0', '"prompt_cache_write_tokens": 1'),  # of OpenAI's details
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


@pytest.mark.parametrize(
    ("places", "counts", "twice"),
    [
        # A sum that includes what another place states beside its input, and sums of equal inputs.
        ([{"input_tokens": 1000}, {"input_tokens": 100, "cache_read_input_tokens": 900}], (1000, 900), ""),
        ([{"input_tokens": 100}, {"input_tokens": 100, "cache_read_input_tokens": 900}], (1000, 900), ""),
        ([{"prompt_tokens": 1000}, {"input_tokens": 100, "cache_read_input_tokens": 900}], (1000, 900), ""),
        ([{"input_tokens": 100, "cache_read_input_tokens": 900}, {"prompt_tokens": 1000}], (1000, 900), ""),
        ([{"input_tokens": 1000}, {"prompt_tokens_details": {"cached_tokens": 900}}], (1000, 900), ""),
        ([{"prompt_tokens_details": {}}, {"prompt_tokens": 9, "cached_input_tokens": 4}], (9, 4), ""),
        ([{"prompt_tokens": 9}, {"prompt_tokens": 8, "cache_read_tokens": 4}], (9, 4), "input_tokens 9 and 8"),
        ([{"prompt_tokens": 9, "cache_read_tokens": 0}, {"cached_input_tokens": 4}], (9, 0), "cached_tokens 0 and 4"),
        ([None, {}, {"input_tokens": 5}], (5, None), ""),
    ],
)
def test_each_count_is_that_of_the_first_place_that_states_it(
    places: list[dict[str, Any] | None], counts: tuple[int, int | None], twice: str
) -> None:
    columns, told = call_counts(*(None if place is None else msgspec.convert(place, ChatUsage) for place in places))
    assert (columns["input_tokens"], columns["cached_tokens"]) == counts and told == twice


@pytest.mark.parametrize(
    "details",
    [
        {"prompt_tokens_details": {"audio_tokens": 0}, "input_tokens_details": {"cached_tokens": 4}},
        {"prompt_tokens_details": {"cached_tokens": 4, "cache_creation_tokens": 2}},
        {"prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}},
        {"prompt_tokens_details": {"cached_tokens": 4}, "cache_creation_input_tokens": 2},
    ],
)
def test_a_word_for_a_count_hides_no_other(details: dict[str, Any]) -> None:
    columns = msgspec.convert({"prompt_tokens": 9} | details, ChatUsage).columns
    written = {} if "audio_tokens" in str(details) else {"cache_write_tokens": 2}
    assert columns == {"tokens": None, "input_tokens": 9, "cached_tokens": 4} | written


def counts_of(path: Path) -> dict[str, list[int]]:
    evidence = credit.read(path).evidence
    names = ("tokens", "input_tokens", "cached_tokens", "cache_write_tokens")
    return {name: evidence[name].amounts.astype(int).tolist() for name in names if name in evidence}


PART = {"cache_read": 7, "cache_creation": 2}
WHOLE = {"input_tokens": 10, "output_tokens": 3, "input_token_details": PART}
OF_OPENAI = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 2}}


@pytest.mark.parametrize(
    "place",
    [
        {"outputs": {"usage_metadata": WHOLE}},
        {"outputs": {"generations": [[{"message": {"usage_metadata": WHOLE}}]]}},
        {"outputs": {"generations": [[{"message": {"kwargs": {"usage_metadata": WHOLE}}}]]}},
        {"outputs": {"llm_output": {"token_usage": OF_OPENAI}, "generations": [["a text"]]}},
        {"extra": {"metadata": {"usage_metadata": WHOLE}}},
        {"prompt_token_details": PART, "outputs": {"usage_metadata": {"output_tokens": 3}}},
    ],
)
def test_a_run_of_langsmith_states_its_cache_apart_from_its_totals(place: dict[str, Any], tmp_path: Path) -> None:
    """Cache details of the outputs were dropped where the run stated its totals: money was 6 % too high."""
    run = {"id": "a", "trace_id": "a", "name": "m", "run_type": "llm", "prompt_tokens": 10, "completion_tokens": 3}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(run | place))
    counts = {"tokens": [3], "input_tokens": [10], "cached_tokens": [7], "cache_write_tokens": [2]}
    assert counts_of(path) == counts and not credit.read(path).problems
    path.write_text(json.dumps(run | place | {"prompt_tokens": None, "completion_tokens": 3}))
    assert counts_of(path)["cached_tokens"] == [7]


def test_counts_that_differ_between_places_are_told(tmp_path: Path) -> None:
    run = {"id": "a", "trace_id": "a", "name": "m", "run_type": "llm", "prompt_tokens": 10, "completion_tokens": 3}
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(run | {"outputs": {"usage_metadata": {"input_tokens": 11, "output_tokens": 4}}}))
    (note,) = credit.read(path).problems
    assert (note.kind, note.value, note.is_failure) == (
        "unlike-counts",
        "'tokens 3 and 4, input_tokens 10 and 11'",
        False,
    )
    assert counts_of(path) == {"tokens": [3], "input_tokens": [10]}


def test_a_cost_of_a_trace_that_is_not_the_sum_of_its_parts_is_told(tmp_path: Path) -> None:
    """Validate was silent where `totalCost` was twice the costs of the trace's calls, which tables sum."""
    path, lines = tmp_path / "log.jsonl", []
    for i, whole in enumerate((4.0, 2.0, 7.0, None)):
        calls = [{"id": f"o{i}{k}", "traceId": f"t{i}", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z",
                  "costDetails": {"total": 1.0}} for k in range(2)]  # fmt: skip
        lines.append({"id": f"t{i}", "timestamp": "2026-01-01T00:00:00Z", "observations": calls, "totalCost": whole})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (note,) = credit.read(path).problems
    assert (note.kind, note.count, note.is_failure) == ("unlike-costs", 2, False)
    assert note.value == "'4 of the trace, 2 of its parts'"


IN_DETAILS = '"usage": {"prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 1}}'
DROPPED = {
    "agent-lightning": ('"choices": [', f'{IN_DETAILS}, "choices": ['),
    "mini-swe-agent": ('"role": "assistant"', f'"role": "assistant", {IN_DETAILS}'),
    "openhands": ('"model_response": {', f'"model_response": {{{IN_DETAILS}, '),
    "langgraph": ('"usage_metadata": {', '"response_metadata": {"token_usage": {"prompt_tokens_details": '
                  '{"cached_tokens": 1, "cache_write_tokens": 1}}}, "usage_metadata": {'),
    "otlp of gen_ai": ('{"key": "gen_ai.usage.output_tokens"',
                       '{"key": "llm.token_count.prompt_details.cache_read", "value": {"intValue": "1"}}, '
                       '{"key": "gen_ai.usage.cache_write_input_tokens", "value": {"intValue": "1"}}, '
                       '{"key": "gen_ai.usage.output_tokens"'),
    "otlp of openinference": ('{"key": "llm.token_count.completion"',
                              '{"key": "gen_ai.usage.cache_read.input_tokens", "value": {"intValue": "1"}}, '
                              '{"key": "gen_ai.usage.details.cache_write_tokens", "value": {"intValue": "1"}}, '
                              '{"key": "llm.token_count.completion"'),
    "spans of mlflow": ('\\"output_tokens\\":', '\\"cache_read_input_tokens\\": 1, '
                        '\\"cache_creation_input_tokens\\": 1, \\"output_tokens\\":'),
    "agent-lightning spans": ('"gen_ai.usage.completion_tokens"', '"gen_ai.usage.details.cached_tokens": 1, '
                              '"gen_ai.usage.cache_creation.input_tokens": 1, "gen_ai.usage.completion_tokens"'),
    "openai-agents": ('"usage": {', '"usage": {"input_tokens_details": {}, "prompt_tokens_details": '
                      '{"cached_tokens": 1, "cache_write_tokens": 1}, '),
}  # fmt: skip


@pytest.mark.parametrize("name", DROPPED)
def test_a_part_in_one_place_hides_no_part_in_another(name: str, tmp_path: Path) -> None:
    path, (key, stated) = tmp_path / ALL[name].file, DROPPED[name]
    assert key in ALL[name].text
    path.write_text(ALL[name].text)
    before = counts_of(path)
    path.write_text(ALL[name].text.replace(key, stated))
    after = counts_of(path)
    assert {name: set(counts) for name, counts in after.items() if name.startswith("cache")} == {
        "cached_tokens": {1}, "cache_write_tokens": {1},
    }  # fmt: skip
    assert (after["tokens"], after["input_tokens"]) == (before["tokens"], before["input_tokens"])


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"usageDetails": {"input": 5, "input_audio": 1, "output": 3, "output_reasoning": 90}}, (93, 6)),
        ({"usageDetails": {"output": 3}, "usage": {"input": 8, "output": 9, "unit": "TOKENS"}}, (3, 8)),
        ({"usageDetails": {}, "promptTokens": 8, "completionTokens": 9}, (9, 8)),
        ({"usageDetails": {"input": 5, "output": 3}, "promptTokens": 0, "completionTokens": 0}, (3, 5)),
        ({"usageDetails": {"input": 5, "output": 3, "note": {"a": [1]}}, "usage": None}, (3, 5)),
    ],
)
def test_langfuse_adds_up_its_kinds_and_its_older_words_fill_what_they_lack(
    usage: dict[str, Any], counts: tuple[int, int], tmp_path: Path
) -> None:
    """Reasoning tokens were in no sum."""
    call = {"id": "a", "traceId": "t", "type": "GENERATION", "name": "m", "startTime": "2026-01-01T00:00:00Z"}
    path = tmp_path / "log.json"
    path.write_text(json.dumps([call | {"parentObservationId": None} | usage]))
    found = counts_of(path)
    assert (found["tokens"], found["input_tokens"]) == ([counts[0]], [counts[1]])


def test_mlflow_writes_usage_of_anthropic_in_its_words(tmp_path: Path) -> None:
    path, text = tmp_path / ALL["spans of mlflow"].file, ALL["spans of mlflow"].text
    key, cached = '\\"output_tokens\\":', '\\"cache_read_input_tokens\\": 1, \\"output_tokens\\":'
    of_anthropic = '"mlflow.message.format": "\\"anthropic\\"", "mlflow.chat.tokenUsage"'
    path.write_text(text)
    before = counts_of(path)["input_tokens"]
    path.write_text(text.replace(key, cached).replace('"mlflow.chat.tokenUsage"', of_anthropic))
    assert counts_of(path)["input_tokens"] == [count + 1 for count in before]


def test_a_usage_record_without_the_output_leaves_that_of_the_message(tmp_path: Path) -> None:
    path, text = tmp_path / ALL["copilot-cli"].file, ALL["copilot-cli"].text
    path.write_text(text)
    before = counts_of(path)
    usage = {"apiCallId": "c", "inputTokens": 20, "cacheReadTokens": 7}
    record = {"type": "session.usage_record", "id": "u", "timestamp": "2026-08-01T00:00:01Z", "data": {"usage": usage}}
    lines = text.replace('"messageId": "m1"', '"messageId": "m1", "apiCallId": "c"').splitlines()
    place = next(number for number, line in enumerate(lines) if '"apiCallId"' in line)
    path.write_text("\n".join([*lines[:place], json.dumps(record), *lines[place:], ""]))
    assert counts_of(path) == before | {"input_tokens": [20], "cached_tokens": [7]}


def test_usage_as_the_text_of_a_provider_is_none(tmp_path: Path) -> None:
    path, text = tmp_path / ALL["langgraph"].file, ALL["langgraph"].text
    path.write_text(text)
    before = counts_of(path)
    path.write_text(text.replace(USED, f'"response_metadata": {{"token_usage": "Usage(total=3)"}}, {USED}'))
    assert counts_of(path) == before and not credit.read(path).problems


STEPS = [
    {"step_id": number, "source": "agent", "model_name": "m", "message": "x",
     "metrics": {"prompt_tokens": 9, "completion_tokens": 1}} for number in (1, 2, 3)
]  # fmt: skip
ATIF = {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": STEPS}
OPEN_FORMATS = {
    "otlp of gen_ai": (r'"gen_ai.usage.input_tokens", "value": {"intValue": "\d+"}}',
                       '"gen_ai.usage.input_tokens", "value": {{"intValue": "{0}"}}}}, '
                       '{{"key": "gen_ai.usage.cache_read.input_tokens", "value": {{"intValue": "{1}"}}}}'),
    "otlp of openinference": (r'"llm.token_count.prompt", "value": {"intValue": "\d+"}}',
                              '"llm.token_count.prompt", "value": {{"intValue": "{0}"}}}}, '
                              '{{"key": "llm.token_count.prompt_details.cache_read", "value": {{"intValue": "{1}"}}}}'),
    "agent-lightning spans": (r'"gen_ai.usage.prompt_tokens": \d+', '"gen_ai.usage.prompt_tokens": {0}, '
                              '"gen_ai.usage.cache_read.input_tokens": {1}'),
    "braintrust": (r'"prompt_tokens": \d+', '"prompt_tokens": {0}, "prompt_cached_tokens": {1}'),
    "openhands": (r'"prompt_tokens": \d+', '"prompt_tokens": {0}, "cache_read_tokens": {1}'),
    "weave": (r'"prompt_tokens": \d+', '"prompt_tokens": {0}, "prompt_tokens_details": {{"cached_tokens": {1}}}'),
    "langsmith": (r'"input_tokens": \d+', '"input_tokens": {0}, "input_token_details": {{"cache_read": {1}}}'),
    "langgraph": (r'"input_tokens": \d+', '"input_tokens": {0}, "input_token_details": {{"cache_read": {1}}}'),
    "atif": (r'"prompt_tokens": \d+', '"prompt_tokens": {0}, "cached_tokens": {1}'),
}  # fmt: skip
"""What states the tokens that a call read, and the same with those of a cache, in formats that leave open whose part
these are."""


@pytest.mark.parametrize("name", OPEN_FORMATS)
def test_the_calls_of_a_producer_have_one_convention(name: str, tmp_path: Path) -> None:
    """Calls that read 1,000 and 100 tokens beside 900 of a cache were read as 1,000 each: 2,000 for 2,900."""
    (pattern, stated), sample = OPEN_FORMATS[name], ALL[name]
    text = json.dumps(ATIF) if name == "atif" else sample.text
    path, calls = tmp_path / sample.file, itertools.count()
    path.write_text(re.sub(pattern, lambda _: stated.format(1000 if next(calls) % 3 else 100, 900), text))
    traces = credit.read(path)
    whole, cached = (traces.evidence[key] for key in ("input_tokens", "cached_tokens"))
    assert {int(one) for one in (whole.array - cached.array)[cached.mask]} == {100, 1000}
    (note,) = traces.problems
    assert (note.kind, note.is_failure) == ("cache-beside", False)
    path.write_text(re.sub(pattern, stated.format(1000, 900), text))
    within = credit.read(path).evidence
    assert {*within["input_tokens"].amounts.tolist()} == {1000}


def test_another_model_has_a_convention_of_its_own(tmp_path: Path) -> None:
    steps = [step | {"model_name": model, "metrics": {"prompt_tokens": read, "cached_tokens": 900}}
             for step, model, read in zip(STEPS, "mmn", (100, 1000, 1000), strict=True)]  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(ATIF | {"steps": steps}))
    assert credit.read(path).evidence["input_tokens"].amounts.tolist() == [1000, 1900, 1000]
