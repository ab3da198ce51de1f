"""AutoGen: who wrote what with a model, and who heard it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.event_types import EdgeType, EventType
from graphs.logs import read

from ..samples import RECORDINGS, SAMPLES


def test_a_recorded_run(tmp_path: Path) -> None:
    traces = read(SAMPLES["autogen"].write(tmp_path))
    graph, n = traces.graph, traces.sizes.events
    names = traces.agents["name"].to_pylist()
    assert [
        (EventType(int(graph.event_type[i])).name.lower(), names[int(graph.agent_ids[i])], bool(graph.action_mask[i]))
        for i in range(n)
    ] == [
        ("human_intervention", "user", False), ("message", "solver", True), ("tool_call", "solver", False),
        ("tool_result", "solver", False), ("message", "solver", True), ("message", "critic", True),
    ]  # fmt: skip
    rows = zip(graph.senders, graph.receivers, graph.edge_type, graph.edge_mask, strict=True)
    assert {(int(s), int(r), EdgeType(int(k)).name.lower()) for s, r, k, real in rows if real} == {
        (0, 1, "causal"), (1, 2, "tool_dependency"), (2, 3, "return"), (3, 4, "causal"), (1, 4, "temporal"),
        (0, 5, "causal"), (4, 5, "message"),
    }  # fmt: skip
    assert traces.evidence["tokens"].amounts.tolist() == [3, 3, 3]


def test_magentic_one_tells_what_its_members_did() -> None:
    """Recorded with the package: of the orchestrator's messages no usage is told, so they are no calls."""
    path = RECORDINGS / "magentic_one_result.json"
    messages = json.loads(path.read_text())["messages"]
    traces = read(path)
    graph, n = traces.graph, traces.sizes.events
    names = traces.agents["name"].to_pylist()
    assert traces.problems == ()
    assert traces.traces["format"].to_pylist() == ["autogen"]
    assert [
        (EventType(int(graph.event_type[i])).name.lower(), names[int(graph.agent_ids[i])], bool(graph.action_mask[i]))
        for i in range(n)
    ] == [
        ("human_intervention", "user", False), ("message", "MagenticOneOrchestrator", False),
        ("message", "MagenticOneOrchestrator", False), ("message", "solver", True), ("tool_call", "solver", False),
        ("tool_result", "solver", False), ("message", "solver", True), ("message", "MagenticOneOrchestrator", False),
    ]  # fmt: skip
    used = [message["models_usage"]["completion_tokens"] for message in messages if message["models_usage"]]
    assert traces.evidence["tokens"].amounts.tolist() == used == [3, 3]


def test_a_result_without_its_call_is_refused(tmp_path: Path) -> None:
    value = json.loads(SAMPLES["autogen"].text)
    value["messages"][2]["content"][0]["call_id"] = "other"
    (tmp_path / "run.json").write_text(json.dumps(value))
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path / "run.json")
    assert caught.value.problems[0].kind == "unknown-tool-call"


def edges(path: Path) -> set[tuple[int, int, str]]:
    graph = read(path).graph
    rows = zip(graph.senders, graph.receivers, graph.edge_type, graph.edge_mask, strict=True)
    found = [(int(s), int(r), EdgeType(int(k)).name.lower()) for s, r, k, real in rows if real]
    assert len(set(found)) == len(found)
    return set(found)


def heard(messages: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """What a call hears by the words of the page: the messages of others since its agent's last call."""
    pairs, last = set(), dict[str, int]()
    for index, message in enumerate(messages):
        source = message["source"]
        if message["models_usage"] is not None:
            pairs |= {(i, index) for i in range(last.get(source, 0), index) if messages[i]["source"] != source}
            last[source] = index
    return pairs


def chat(seed: int, size: int, members: int) -> list[dict[str, Any]]:
    """Messages of random members, some without a model; one of them speaks rarely."""
    draw = random.Random(seed)
    sources = [draw.choice([*"ab"] * members + [f"m{i}" for i in range(members)]) for _ in range(size)]
    usage = [{"prompt_tokens": 1, "completion_tokens": 1} if draw.random() < 0.7 else None for _ in range(size)]
    return [
        {"source": source, "models_usage": used, "type": "TextMessage", "content": "x"}
        for source, used in zip(sources, usage, strict=True)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_calls_hear_all_that_others_wrote(seed: int, tmp_path: Path) -> None:
    """Each by an edge of its own in a short chat; in a long one at least on a way through later messages."""
    path = tmp_path / "run.json"
    for size in (60, 400):
        messages = chat(seed, size, members=30)
        path.write_text(json.dumps({"messages": messages}))
        drawn = edges(path)
        direct = {(s, r) for s, r, kind in drawn if kind != "temporal"}
        expected = heard(messages)
        assert direct == expected if size <= 64 else direct < expected
        below = [1 << i for i in range(size)]  # bits of the messages that lead to each
        for sender, receiver, _ in sorted(drawn, key=lambda edge: edge[1]):
            below[receiver] |= below[sender]
        assert all(below[receiver] >> sender & 1 for sender, receiver in expected)


def said(number: int, **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    return {"id": f"m{number}", "source": "a", "models_usage": usage, "type": "TextMessage", "content": "x"} | more


def test_a_run_in_several_files_counts_once(tmp_path: Path) -> None:
    messages = [said(1), said(2)]
    (tmp_path / "a.json").write_text(json.dumps({"messages": messages, "stop_reason": None}))
    (tmp_path / "b.json").write_text(json.dumps({"stop_reason": None, "messages": messages}, indent=1))
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(message) + "\n" for message in messages))
    traces = read(tmp_path)
    assert traces.traces["trace"].to_pylist() == ["a"]
    assert [(problem.kind, problem.trace) for problem in traces.problems] == [("repeated-run", name) for name in "bc"]
    (tmp_path / "c.jsonl").unlink()
    for other in ([said(1), said(3)], [said(1)], [said(1, id=None), said(2)]):
        (tmp_path / "b.json").write_text(json.dumps({"messages": other}))
        assert read(tmp_path).traces.num_rows == 2


def test_a_stream_that_is_still_written_reads_and_one_without_a_message_does_not(tmp_path: Path) -> None:
    lines = [json.dumps(said(number)) + "\n" for number in range(3)]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines)[:-9])
    traces = read(path)
    assert traces.sizes.events == 2 and [problem.kind for problem in traces.problems] == ["unfinished-line"]
    path.write_text(lines[0] + lines[1][:-9] + "\n" + lines[2])
    with pytest.raises(NothingReadError) as caught:
        read(path)
    assert [problem.kind for problem in caught.value.problems] == ["bad-json", "lost-row"]
