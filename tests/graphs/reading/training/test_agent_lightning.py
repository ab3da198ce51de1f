"""Reading Agent Lightning: events of v1, spans of v0.1 to v0.3, attempts, and where rewards belong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import Problem
from graphs.event_graph import EdgeType, EventType
from graphs.formats.agent_lightning import read as read_rollouts
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord, check

RECORDED = Path(__file__).parents[3] / "recordings" / "agent_lightning_spans.jsonl"


def event(kind: str, data: dict[str, Any], attempt: str = "0", rollout: str = "r") -> dict[str, Any]:
    return {"event_type": kind, "rollout_id": rollout, "attempt_id": attempt, "timestamp": 1.0, "data": data}


def request(
    *calls: str, system: str | None = "s", results: tuple[str, ...] = (), tokens: int = 2, **more: Any
) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": "tool", "tool_call_id": call, "content": "x"} for call in results]
    asked = [{"id": call, "type": "function", "function": {"name": f"do_{call}", "arguments": "{}"}} for call in calls]
    choice = {"message": {"content": "x", "tool_calls": asked or None}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": tokens}
    data = {"model": "m", "request": {"messages": messages}, "response": {"choices": [choice]}, "usage": usage}
    return event("model_request", data | more)


def reward(value: float, source: str | None = "agent") -> dict[str, Any]:
    return event("reward", {"value": value, "source": source})


def rollout(name: str, task: str, batch: int = 1, attempt: str | None = None) -> dict[str, Any]:
    status = {"state": "succeeded", "last_attempt_id": attempt}
    return {"rollout_id": name, "input": task, "is_train": True, "metadata": {"batch_idx": batch}, "status": status}


def write(folder: Path, records: list[Any]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def items(path: Path) -> list[TraceRecord | Problem]:
    return [check(i) if isinstance(i, TraceRecord) else i for i in read_rollouts([Source(str(path), path)])]


def only(folder: Path, records: list[Any]) -> TraceRecord:
    (record,) = items(write(folder, records))
    assert isinstance(record, TraceRecord), record
    return record


def edges(record: TraceRecord) -> set[tuple[int, int, str]]:
    found = zip(record.senders, record.receivers, record.edge_types, strict=True)
    return {(s, r, EdgeType(kind).name.lower()) for s, r, kind in found}


def test_requests_are_calls_and_later_requests_bring_results(tmp_path: Path) -> None:
    record = only(tmp_path, [request("a", "b"), request(results=("b", "a")), event("note", {"x": 1}), reward(1.0)])
    kinds = [EventType(kind).name.lower() for kind in record.types]
    assert kinds == ["message", "tool_call", "tool_call", "tool_result", "tool_result", "message"]
    assert edges(record) == {
        (0, 1, "tool_dependency"),
        (0, 2, "tool_dependency"),
        (2, 3, "return"),
        (1, 4, "return"),
        (3, 5, "causal"),
        (4, 5, "causal"),
        (0, 5, "temporal"),
    }
    assert record.actions == [True, False, False, False, False, True]
    assert [t for t in record.columns["tokens"] if t is not None] == [2, 2]
    assert record.rewards == {"team": 1.0}


def test_agents_are_told_by_model_and_system_prompt(tmp_path: Path) -> None:
    record = only(
        tmp_path, [request(system="plan"), request(system="act"), request(system="plan"), request(system=None)]
    )
    first, second, third, bare = record.agents
    assert first == third != second and bare == "m" and first.startswith("m/")


def test_the_last_reward_is_the_outcome_and_a_filled_in_one_is_none(tmp_path: Path) -> None:
    record = only(tmp_path, [request(), reward(0.25), reward(0.5), request(), reward(1.0), reward(0.0, "fallback")])
    assert record.rewards == {"team": 1.0}
    assert "event_reward" not in record.columns, "the earlier ones were added to the last"
    assert record.columns["value"] == [None, 0.5] and record.earlier_outcomes == "reward"
    assert only(tmp_path, [request(), reward(0.0, "fallback")]).rewards == {}
    early = only(tmp_path, [reward(0.25), request(), reward(1.0)])
    assert early.rewards == {"team": 1.0} and early.columns["value"] == [0.25]


def test_only_the_last_attempt_is_read(tmp_path: Path) -> None:
    first, second = request(tokens=1), request(tokens=7) | {"attempt_id": "1"}
    assert only(tmp_path, [first, second]).columns["tokens"] == [7]
    assert only(tmp_path, [first, second, rollout("r", "x", attempt="0")]).columns["tokens"] == [1]


def test_rollouts_of_one_input_in_one_batch_are_a_group(tmp_path: Path) -> None:
    records = [rollout("a", "x"), rollout("b", "x"), rollout("c", "y"), rollout("d", "x", batch=2)]
    calls = [request() | {"rollout_id": name} for name in "abcde"]
    groups = read(write(tmp_path, records + calls)).traces["group"].to_pylist()
    assert groups[0] == groups[1] and len(set(groups)) == 4 and groups[4] == "e"


def test_rollouts_as_the_store_of_version_0_3_dumps_them(tmp_path: Path) -> None:
    """`status` is a word there, `mode` stands for `is_train`, and attempts have records of their own."""

    def dumped(name: str, task: str, resources: str = "rs-1") -> dict[str, Any]:
        more = {"mode": "train", "resources_id": resources, "metadata": {"data_id": task}}
        return {"rollout_id": name, "input": {"question": task}, "status": "succeeded", **more}

    def attempted(name: str, number: int) -> dict[str, Any]:
        return {"rollout_id": name, "attempt_id": f"at-{number}", "sequence_id": number, "status": "succeeded"}

    records = [dumped("r1", "a"), dumped("r2", "a"), dumped("r3", "b"), dumped("r4", "a", "rs-2")]
    for name in ("r1", "r2", "r3", "r4"):
        records += [attempted(name, 2), attempted(name, 1)]
        for attempt in ("at-2", "at-1"):
            records.append({**call(1, "x"), "rollout_id": name, "attempt_id": attempt})
    found = [item for item in items(write(tmp_path, records)) if isinstance(item, TraceRecord)]
    groups = {item.trace_id: item.group_id for item in found}
    assert groups["r1"] == groups["r2"] != groups["r3"]
    assert groups["r4"] not in {groups["r1"], groups["r3"]}, "another version of the policy"
    assert {item.trace_id: item.lines for item in found} == {f"r{k + 1}": [4 + 4 * k + 3] for k in range(4)}, "at-2"


def test_a_failed_request_is_an_error_and_an_empty_answer_no_event(tmp_path: Path) -> None:
    record = only(tmp_path, [request(status="error"), request(response={"choices": []}), request()])
    assert record.ids == ["0", "2"] and record.columns["status"][0] == "error"


def test_log_probabilities_are_summed(tmp_path: Path) -> None:
    choices = [{"message": {}, "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -0.25}]}}]
    columns = only(tmp_path, [request(response={"choices": choices})]).columns
    assert columns["log_prob"] == [-0.75]
    assert columns["token_log_probs"] == [[-0.5, -0.25]]


def test_the_recorded_spans() -> None:
    """The second attempt: two calls and a tool, a reward linked to the first call, a final one of two dimensions."""
    (record,) = items(RECORDED)
    assert isinstance(record, TraceRecord) and record.trace_id == "ro-1"
    assert [EventType(kind).name.lower() for kind in record.types] == ["message", "tool_call", "tool_result", "message"]
    assert {agent.name for agent in record.instances.values()} == {"planner"}
    assert record.rewards == {"team": 1.0, "brief": 0.5}
    assert record.columns["event_reward"] == [0.25]
    assert [t for t in record.columns["tokens"] if t is not None] == [5, 7]
    assert edges(record) == {(0, 1, "tool_dependency"), (1, 2, "return"), (2, 3, "causal"), (0, 3, "temporal")}


def span(name: str, number: int, parent: str | None = None, **attributes: Any) -> dict[str, Any]:
    return {
        "rollout_id": "r",
        "attempt_id": "0",
        "sequence_id": number,
        "span_id": f"s{number}",
        "parent_id": parent,
        "name": name,
        "attributes": attributes,
    }


def call(number: int, response: str, parent: str | None = None) -> dict[str, Any]:
    return span("openai.chat.completion", number, parent, **{"gen_ai.response.id": response})


OPERATION = "agentops_reward_operation.task"
REWARD = {"type": "reward", "value": 0.5}


@pytest.mark.parametrize(
    "name, attributes",
    [
        (
            "agentlightning.annotation",
            {"agentlightning.reward.0.name": "primary", "agentlightning.reward.0.value": 0.5},
        ),
        ("agentlightning.annotation", {"reward": 0.5}),
        ("agentlightning.reward", {"reward": 0.5}),
        (OPERATION, {"agentops.task.output": json.dumps(REWARD)}),
        (OPERATION, {"agentops.entity.output": REWARD}),
        ("agentops_reward_operation.operation", {"agentops.entity.output": json.dumps(REWARD)}),
    ],
)
def test_all_forms_of_reward_spans(tmp_path: Path, name: str, attributes: dict[str, Any]) -> None:
    record = only(tmp_path, [call(1, "a"), span(name, 2, **attributes)])
    assert record.rewards == {"team": 0.5} and len(record.ids) == 1


@pytest.mark.parametrize("name", ["search.tool", "openai.chat.completion", "plan.task", "agentlightning.operation"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"agentops.task.output": json.dumps(REWARD | {"value": 5})},
        {"agentops.entity.output": REWARD},
        {"agentlightning.reward.0.name": "primary", "agentlightning.reward.0.value": 5.0},
        {"reward": 5.0},
    ],
)
def test_what_another_span_returns_is_no_reward(tmp_path: Path, name: str, attributes: dict[str, Any]) -> None:
    """A tool that returned `{"type": "reward", "value": 5}` set the outcome."""
    stated = span("agentlightning.annotation", 2, reward=0.0)
    record = only(tmp_path, [call(1, "a"), stated, span(name, 3, **attributes)])
    assert record.rewards == {"team": 0.0} and "event_reward" not in record.columns


@pytest.mark.parametrize(
    "output, kind",
    [
        ('{"type": "reward", "value": NaN}', "non-finite"),
        ('{"type": "reward", "value": "5"}', "bad-type"),
        ('{"type": "reward", "val', "bad-json"),
        ('{"type": "reward"}', "missing-field"),
    ],
)
def test_the_output_of_a_reward_operation_is_decoded_as_the_log_is(tmp_path: Path, output: str, kind: str) -> None:
    """What could not be decoded, or had another type, stated no reward, and the rollout was read without one."""
    (problem,) = items(write(tmp_path, [call(1, "a"), span(OPERATION, 2, **{"agentops.task.output": output})]))
    assert isinstance(problem, Problem) and (problem.kind, problem.trace, problem.line) == (kind, "r", 2)
    assert problem.field.startswith("attributes.agentops.task.output")


def test_order_is_that_of_the_sequence_and_a_response_counts_once(tmp_path: Path) -> None:
    record = only(tmp_path, [call(3, "b"), call(1, "a"), call(2, "a")])
    assert record.ids == ["s1", "s3"]


def test_a_span_that_stands_twice_counts_once(tmp_path: Path) -> None:
    scored = span("agentlightning.annotation", 2, reward=0.5)
    record = only(tmp_path, [call(1, "a"), scored, call(1, "a"), scored])
    assert record.ids == ["s1"] and record.rewards == {"team": 0.5} and "event_reward" not in record.columns


def test_lost_parents_matter_only_among_agents(tmp_path: Path) -> None:
    assert len(only(tmp_path, [call(1, "a", "lost"), call(2, "b")]).ids) == 2
    named = span("x", 3, **{"agent.name": "one"})
    record = only(tmp_path, [named, call(4, "c", "s3"), call(1, "a", "lost"), call(2, "b")])
    assert len(record.ids) == 3 and record.missing.startswith("1 span above 1 span")


BAD = {
    "mixed": ([request(), call(1, "a")], "mixed-forms", "attempt_id"),
    "unknown": ([{"rollout_id": "r"}], "unknown-item", "content"),
    "reward": ([request(), event("reward", {"value": "x"})], "bad-type", "data.value"),
    "model": ([event("model_request", {"request": {}, "response": {}})], "missing-field", "data.model"),
    "span reward": (
        [call(1, "a"), span("agentlightning.annotation", 2, reward="x")],
        "bad-value",
        "attributes.agentlightning.reward",
    ),
    "tokens": (
        [span("litellm_request", 1, **{"gen_ai.usage.output_tokens": -1})],
        "bad-value",
        "attributes.gen_ai.usage.output_tokens",
    ),
    "no calls": ([reward(1.0)], "no-events", "events"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_rollout_is_named_and_the_others_read(tmp_path: Path, name: str) -> None:
    records, kind, field = BAD[name]
    traces = read(write(tmp_path, [*records, request() | {"rollout_id": "good"}]))
    assert traces.traces["trace"].to_pylist() == ["good"]
    problem, *outcome = traces.problems
    assert (problem.kind, problem.field, problem.trace) == (kind, field, "r")
    assert problem.is_failure == (not outcome) == (kind != "no-events")
