"""Episodes of verifiers: message graphs, rewards of agents, and advantages written back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import CreditError, NothingReadError
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.writers import verifiers

from ..samples import RESULT, SAMPLES

SAMPLE = SAMPLES["verifiers"]


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return read(SAMPLE.write(tmp_path))


def edges(traces: Traces, kind: int) -> set[tuple[str, str]]:
    names = traces.events["event"].to_pylist()
    graph = traces.graph
    rows = zip(graph.senders, graph.receivers, graph.edge_type, graph.edge_mask, strict=True)
    return {(names[s], names[r]) for s, r, edge_type, real in rows if real and edge_type == kind}


def test_a_branch_does_not_follow_from_another_branch(traces: Traces) -> None:
    from graphs.event_types import EdgeType

    temporal = edges(traces, EdgeType.TEMPORAL)
    assert temporal == {("trace-1/2", "trace-1/4"), ("trace-3/1", "trace-3/3")}
    messages = {(s, r) for s, r in edges(traces, EdgeType.MESSAGE) if s.startswith("trace-3")}
    assert messages == {
        ("trace-3/0", "trace-3/1"), ("trace-3/1", "trace-3/2"), ("trace-3/2", "trace-3/3"), ("trace-3/4", "trace-3/5"),
    }  # fmt: skip
    assert ("trace-1/2/call-0", "trace-1/3") in edges(traces, EdgeType.RETURN)
    assert ("trace-1/3", "trace-1/4") in edges(traces, EdgeType.CAUSAL)


def branches(messages: int, calls: int, own: int = 0) -> list[dict[str, Any]]:
    """A prompt, a call, results of its tools, user messages, and calls that all go on from there."""
    asked = [{"id": f"c{i}", "name": "f", "arguments": "{}"} for i in range(2)]
    nodes: list[dict[str, Any]] = [
        {"message": {"role": "user", "content": "q"}},
        {"parent": 0, "message": {"role": "assistant", "content": "", "tool_calls": asked}, "sampled": True},
    ]
    nodes += [{"parent": i + 1, "message": {"role": "tool", "tool_call_id": f"c{i}", "content": "r"}} for i in range(2)]
    nodes += [{"parent": 3 + i, "message": {"role": "user", "content": f"{i}"}} for i in range(messages)]
    tip = len(nodes) - 1
    for call in range(calls):
        parent = tip
        for _ in range(own):
            nodes.append({"parent": parent, "message": {"role": "user", "content": f"own {call}"}})
            parent = len(nodes) - 1
        nodes.append({"parent": parent, "message": {"role": "assistant", "content": "y"}, "sampled": True})
    return nodes


def episode(nodes: list[dict[str, Any]]) -> list[Any]:
    agent = {"id": "t", "agent": {"name": "a"}, "nodes": nodes, "rewards": {"right": {"score": 1.0}}}
    return [{**SAMPLE.values[0], "traces": [agent]}]


def causes(traces: Traces) -> dict[str, set[str]]:
    """What each event follows from, directly or not."""
    names, graph = traces.events["event"].to_pylist(), traces.graph
    found: dict[str, set[str]] = {name: set() for name in names}
    for s, r in sorted(zip(graph.senders[graph.edge_mask], graph.receivers[graph.edge_mask], strict=True), key=max):
        found[names[r]] |= {names[s], *found[names[s]]}
    return found


@pytest.mark.parametrize("own", [0, 2])
def test_calls_that_share_a_prompt_follow_from_all_of_it_by_few_edges(tmp_path: Path, own: int) -> None:
    from graphs.event_types import EdgeType

    nodes = branches(4, 3, own)
    traces = read(SAMPLE._replace(values=episode(nodes)).write(tmp_path))
    found = causes(traces)
    for index, node in enumerate(nodes):
        path, parent = set(), node.get("parent")
        while node.get("sampled") and parent is not None:
            path.add(f"t/{parent}")
            parent = nodes[parent].get("parent")
        assert found[f"t/{index}"] >= path
    drawn = [edges(traces, kind) for kind in (EdgeType.CAUSAL, EdgeType.MESSAGE, EdgeType.TEMPORAL)]
    own_messages = {f"t/{i}" for i, node in enumerate(nodes) if "own" in node["message"]["content"]}
    first, *later = [f"t/{i}" for i, node in enumerate(nodes) if node.get("sampled")][1:]
    assert {s for s, r in drawn[0] | drawn[1] if r == first} - own_messages == {f"t/{i}" for i in range(2, 8)}
    for call in later:
        assert {s for s, r in drawn[0] | drawn[1] if r == call} - own_messages == {"t/7"}
    assert {(s, r) for s, r in drawn[2] if s != "t/1"} == {(f"t/{i}", f"t/{i + 1}") for i in range(2, 7)}


@pytest.mark.slow
def test_edges_of_a_prompt_that_many_calls_share_are_linear(tmp_path: Path) -> None:
    """They were as many as calls times messages: 2 MB of log made 10 million."""
    for messages, calls in ((3000, 3000), (1, 3000), (3000, 1)):
        traces = read(SAMPLE._replace(values=episode(branches(messages, calls))).write(tmp_path))
        assert traces.sizes.edges < 3 * traces.sizes.events


def test_typed_links_join_branches(tmp_path: Path) -> None:
    from graphs.event_types import EdgeType

    values = json.loads(json.dumps(SAMPLE.values))
    nodes = values[1]["traces"][0]["nodes"]
    plain = read(SAMPLE._replace(values=values).write(tmp_path))
    nodes[5]["semantic_parents"] = [{"node": 1, "type": "subagent_return"}, {"node": 3, "type": "vendor:review"}]
    nodes[3]["semantic_parents"] = [{"node": 5, "type": "subagent_cancel"}, {"node": 1, "type": "continuation"}]
    linked = read(SAMPLE._replace(values=values).write(tmp_path))
    assert edges(linked, EdgeType.RETURN) - edges(plain, EdgeType.RETURN) == {("trace-3/1", "trace-3/5")}
    assert edges(linked, EdgeType.CAUSAL) - edges(plain, EdgeType.CAUSAL) == {("trace-3/3", "trace-3/5")}
    assert linked.sizes.edges == plain.sizes.edges + 2  # not against the order, and none twice
    nodes[3]["semantic_parents"][0]["node"] = 99
    with pytest.raises(CreditError, match=r"semantic_parents\[0\].node is 99.*bad-parent"):
        read(SAMPLE._replace(values=values[1:]).write(tmp_path))


def test_rewards_and_evidence(traces: Traces) -> None:
    assert np.asarray(traces.reward)[:2].tolist() == [1.5, 0.5]
    assert traces.traces["group"].to_pylist() == ["group-1", "group-1"]
    events = traces.events["event"].to_pylist()

    def known(name: str) -> dict[str, float]:
        found = traces.evidence[name]
        return {events[i]: float(found.array[i]) for i in np.flatnonzero(found.mask)}

    assert known("tokens") == {
        "trace-1/2": 3, "trace-1/4": 2, "trace-2/1": 1, "trace-3/1": 2, "trace-3/3": 1, "trace-3/5": 1,
    }  # fmt: skip
    assert known("input_tokens")["trace-1/2"] == 15
    assert known("log_prob")["trace-1/2"] == -1.5
    assert {name for name, value in known("trainable").items() if value == 0} == {"trace-2/1"}
    assert traces.evidence["policy_version"].array[:2].tolist() == [6, 6]


def test_tokens_of_nodes(tmp_path: Path) -> None:
    values = json.loads(json.dumps(SAMPLE.values))
    nodes = values[0]["traces"][0]["nodes"]
    nodes[1] |= {"token_ids": [1, 2], "mask": [False, False]}
    nodes[2] |= {"token_ids": [3, 4, 5, 6], "mask": [False, True, True, True], "logprobs": [-0.25, -0.5, -0.75]}
    nodes[4] |= {"token_ids": [7, 8], "mask": [], "logprobs": []}
    traces = read(SAMPLE._replace(values=values).write(tmp_path))
    assert traces.tokens is not None
    names = traces.events["event"].to_pylist()

    def of(name: str) -> tuple[list[int], list[bool], str]:
        tokens = traces.tokens.slice(names.index(name), names.index(name) + 1)  # type: ignore[union-attr]
        return tokens.ids.tolist(), tokens.mask.tolist(), str(tokens.log_probs.tolist())

    assert of("trace-1/1") == ([1, 2], [False, False], "[nan, nan]")
    assert of("trace-1/2") == ([3, 4, 5, 6], [False, True, True, True], "[nan, -0.25, -0.5, -0.75]")
    assert of("trace-1/4") == ([7, 8], [False, False], "[nan, nan]")  # scaffold alone
    assert of("trace-1/2/call-0") == ([], [], "[]")
    nodes[2]["mask"].append(False)
    with pytest.raises(CreditError, match=r"nodes\[2\].mask is '5 values'; expected 4, one a token \[bad-value\]"):
        read(SAMPLE._replace(values=values[:1]).write(tmp_path))


def test_agents_with_different_rewards_have_no_team_reward(tmp_path: Path) -> None:
    first = json.loads(json.dumps(SAMPLE.values[0]))
    first["traces"][1]["rewards"] = {"right": {"score": 0.25, "weight": 2.0}}
    path = SAMPLE._replace(values=[first, SAMPLE.values[1]]).write(tmp_path)
    traces = read(path)
    assert np.isnan(traces.reward[0])
    assert traces.problems == ()
    own = traces.evidence["agent_reward"]
    paid = [traces.events["event"][row].as_py().split("/")[0] for row in own.rows.tolist()]
    assert dict(zip(paid, own.amounts.tolist(), strict=True)) == {"trace-1": 1.5, "trace-2": 0.5}
    assert float(read(path, reward="judge.reward").reward[0]) == 0.5


def test_an_agent_whose_score_is_due_is_not_paid_that_of_another(tmp_path: Path) -> None:
    first = json.loads(json.dumps(SAMPLE.values[0]))
    first["traces"][1]["rewards"] = {"late": None}
    traces = read(SAMPLE._replace(values=[first, SAMPLE.values[1]]).write(tmp_path))
    assert np.isnan(traces.reward[0]) and np.isfinite(traces.reward[1])
    assert len(traces.evidence["agent_reward"].rows) == 1


def test_advantages_go_into_the_slots_of_sampled_tokens(tmp_path: Path, traces: Traces) -> None:
    count = traces.sizes.events
    advantage = np.arange(1.0, count + 1)
    valid = np.ones(count, bool)
    events = traces.events["event"].to_pylist()
    valid[events.index("trace-3/5")] = False
    filled = verifiers.write(traces, advantage, valid, tmp_path / "out.jsonl")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    slots = {
        f"{trace['id']}/{i}": node.pop("advantages", None)
        for episode in written
        for trace in episode["traces"]
        for i, node in enumerate(trace["nodes"])
    }
    number = {name: advantage[events.index(name)] for name in ("trace-1/2", "trace-1/4", "trace-3/1", "trace-3/3")}
    tokens = {"trace-1/2": 3, "trace-1/4": 2, "trace-3/1": 2, "trace-3/3": 1}
    assert {name: slot for name, slot in slots.items() if slot is not None} == {
        name: [number[name]] * tokens[name] for name in number
    }
    assert filled == 4
    assert written == SAMPLE.values


def test_an_episode_that_was_refused_keeps_no_old_advantages(tmp_path: Path) -> None:
    values = json.loads(json.dumps(SAMPLE.values))
    for episode in values:
        for trace in episode["traces"]:
            for node in trace["nodes"]:
                node["advantages"] = [7.0]
    values[1]["traces"][0]["nodes"][1]["parent"] = 5
    traces = read(SAMPLE._replace(values=values).write(tmp_path))
    assert [p.kind for p in traces.problems] == ["bad-parent"]
    count = traces.sizes.events
    assert verifiers.write(traces, np.ones(count), np.ones(count, bool), tmp_path / "out.jsonl") == 2
    assert "7.0" not in (tmp_path / "out.jsonl").read_text()


def test_other_traces_and_numbers_are_not_written(tmp_path: Path, traces: Traces) -> None:
    count = traces.sizes.events
    good = np.ones(count)
    with pytest.raises(CreditError, match="finite"):
        verifiers.write(traces, good * np.nan, good > 0, tmp_path / "out.jsonl")
    with pytest.raises(CreditError, match="expected 13 events"):
        verifiers.write(traces, good[:3], good[:3] > 0, tmp_path / "out.jsonl")
    SAMPLE._replace(values=SAMPLE.values[:1]).write(tmp_path)
    with pytest.raises(CreditError, match="episode-2"):
        verifiers.write(traces, good, good > 0, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_rows_of_one_example_with_other_prompts_are_never_one_group(tmp_path: Path) -> None:
    """The third prompt of an example was compared with the second."""
    row = SAMPLES["verifiers results"].values[0]
    prompts = ("1+1?", "2+2?", "3+3?", "1+1?", "3+3?")
    rows = [row | {"prompt": [{"role": "user", "content": text}]} for text in prompts]
    traces = read(SAMPLES["verifiers results"]._replace(values=rows).write(tmp_path))
    groups = traces.traces["group"].to_pylist()
    assert groups[:2] == ["example-3", "results/example-3"] and len(set(groups)) == 3
    assert (groups[3], groups[4]) == (groups[0], groups[2])


def test_equal_answers_in_two_shards_of_a_run_count_each(tmp_path: Path) -> None:
    """The second was taken for a copy, as prompt and completion were compared and the time that it took was not."""
    for shard in range(2):
        row = RESULT | {"timing": {"total_ms": 10.0 + shard}}
        (tmp_path / f"results-{shard}.jsonl").write_text(json.dumps(row) + "\n")
    traces = read(tmp_path, group_by="task")
    assert traces.sizes.traces == 2 and traces.problems == ()
    assert len(set(traces.traces["group"].to_pylist())) == 1


def test_older_rows_name_the_example_id_and_hold_tool_calls_as_texts(tmp_path: Path) -> None:
    """verifiers 0.1 wrote both, as outputs in its repository show: no such row was read."""
    call = RESULT["completion"][0]["tool_calls"][0]
    said = [RESULT["completion"][0] | {"tool_calls": [json.dumps(call)]}, *RESULT["completion"][1:]]
    older = {"id": 3, "task": "default", "generation_ms": 1.5} | {
        key: value for key, value in RESULT.items() if key not in ("example_id", "metrics")
    } | {"completion": said}  # fmt: skip
    for name, row in (("new", RESULT), ("older", older), ("bad", older | {"id": None})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jsonl").write_text(json.dumps(row) + "\n")
    new, old = read(tmp_path / "new"), read(tmp_path / "older")
    assert old.traces["trace"].to_pylist() == new.traces["trace"].to_pylist()
    assert old.events.select(["event", "tool"]) == new.events.select(["event", "tool"]) and old.reward[0] == 1
    with pytest.raises(NothingReadError, match="the id of the example"):
        read(tmp_path / "bad")
    said[0]["tool_calls"] = ["not JSON"]
    (tmp_path / "bad" / "results.jsonl").write_text(json.dumps(older) + "\n")
    with pytest.raises(NothingReadError, match=r"completion\[0\].tool_calls\[0\]"):
        read(tmp_path / "bad")
