"""Prefixes that traces share by chance: against comparison by hand, by brute force, and against known increments."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.replay.prefixes.choice_contrasts import choice_contrasts
from credit.replay.prefixes.shared_prefixes import shared_prefixes, with_siblings
from graphs import CreditError
from graphs.worlds.micro.examples import MICRO

Event = dict[str, Any]


def trace(name: str, events: list[Event], reward: float = 0.0, task: str = "q") -> dict[str, Any]:
    stamped = [{"id": f"e{i}", "t": i} | event for i, event in enumerate(events)]
    return {"trace_id": name, "task_id": task, "events": stamped, "edges": [], "rewards": {"team": reward}, "costs": {}}


def read(path: Path, traces: list[dict[str, Any]]) -> credit.Traces:
    path.write_text("".join(json.dumps(one) + "\n" for one in traces))
    known = credit.read(path)
    assert not known.problems
    return known


def say(text: str | None, agent: str = "lead", **more: Any) -> Event:
    return {"type": "message", "agent": agent} | ({} if text is None else {"content_ref": text}) | more


def answer(text: str) -> Event:
    return {"type": "tool_result", "agent": "lead", "tool": "search", "content_ref": text}


def partners(traces: credit.Traces, **options: Any) -> set[frozenset[str]]:
    """The actions of each context, as "trace/event"."""
    shared = shared_prefixes(traces, **options)
    n = traces.sizes.events
    names = np.array(traces.traces["trace"].to_pylist())[np.asarray(traces.graph.trace_ids)[:n]]
    places = [f"{t}/{e}" for t, e in zip(names, traces.events["event"].to_pylist(), strict=True)]
    return {
        frozenset(place for place, c in zip(places, shared.context[:n], strict=True) if c == number)
        for number in range(shared.contexts)
    }


def test_a_prefix_is_messages_tool_answers_and_agents(tmp_path: Path) -> None:
    traces = read(
        tmp_path / "log.jsonl",
        [
            trace("a", [say("plan"), answer("1"), say("x"), say("done")]),
            trace("b", [say("plan"), answer("1"), say("y"), say("done")]),
            trace("c", [say("plan"), answer("2"), say("x"), say("done")]),  # another tool answer
            trace("d", [say("plan"), answer("1"), say("x", "other")]),  # another agent acts
            trace("e", [say("plan"), answer("1"), say("x"), say("done")], task="r"),  # another task
            trace("f", [say("Plan"), answer("1"), say("x")]),
        ],
    )
    assert partners(traces) == {
        frozenset({"a/e0", "b/e0", "c/e0", "d/e0", "f/e0"}),
        frozenset({"a/e2", "b/e2"}),
    }


def test_events_without_content_end_a_prefix_unless_they_are_equal_on_request(tmp_path: Path) -> None:
    log = [trace(name, [say(None), say(text), say("x")]) for name, text in (("a", "1"), ("b", "1"), ("c", "2"))]
    traces = read(tmp_path / "log.jsonl", log)
    assert partners(traces) == {frozenset({"a/e0", "b/e0", "c/e0"})}
    assert shared_prefixes(traces).unknown == 3
    assert partners(traces, without_content="equal") == {
        frozenset({"a/e0", "b/e0", "c/e0"}),
        frozenset({"a/e1", "b/e1", "c/e1"}),
        frozenset({"a/e2", "b/e2"}),
    }
    with pytest.raises(CreditError, match="without_content is 'maybe'; expected 'differ' or 'equal'"):
        shared_prefixes(traces, without_content="maybe")  # type: ignore[arg-type]


def test_actions_of_two_alternatives_are_not_equal(tmp_path: Path) -> None:
    chosen = (("a", "good"), ("b", "good"), ("c", "bad"), ("d", "bad"))
    log = [trace(name, [say(None, alternative=choice), say(None)]) for name, choice in chosen]
    traces = read(tmp_path / "log.jsonl", log)
    assert partners(traces, without_content="equal") == {
        frozenset({"a/e0", "b/e0", "c/e0", "d/e0"}),
        frozenset({"a/e1", "b/e1"}),
        frozenset({"c/e1", "d/e1"}),
    }
    assert with_siblings(traces, shared_prefixes(traces, without_content="equal")).graph.cluster_ids is None


def test_instances_are_known_by_their_order_name_and_role(tmp_path: Path) -> None:
    def team(name: str, first: str, role: str) -> dict[str, Any]:
        spawn = {"type": "spawn", "agent": "lead", "to": first, "role": role, "content_ref": "task"}
        return trace(name, [spawn, say("hello", first), say("end")])

    traces = read(
        tmp_path / "log.jsonl", [team("a", "u1", "coder"), team("b", "u1", "coder"), team("c", "u1", "tester")]
    )
    assert frozenset({"a/e2", "b/e2"}) in partners(traces)
    agents = [
        {"id": "lead", "name": "lead", "role": "lead", "parent": "lead"},
        {"id": "u", "name": "coder", "role": "coder", "parent": "lead"},
    ]

    def renamed(name: str, own: str) -> dict[str, Any]:
        line = team(name, own, "coder") | {"schema_version": "1.0"}
        return line | {"agents": [agents[0], agents[1] | {"id": own}]}

    traces = read(tmp_path / "ids.jsonl", [renamed("a", "u-17"), renamed("b", "u-93")])
    assert frozenset({"a/e1", "b/e1"}) in partners(traces) and frozenset({"a/e2", "b/e2"}) in partners(traces)


def test_chat_messages_are_compared_without_ids_and_times(tmp_path: Path) -> None:
    """Logs of tau-bench: content is read again from the file. Two actions in one message are one choice."""

    def call(number: str, name: str) -> dict[str, Any]:
        return {"id": number, "type": "function", "function": {"name": name, "arguments": '{"id": 1}'}}

    def run(trial: int, calls: list[dict[str, Any]], result: str, reward: float) -> dict[str, Any]:
        messages = [
            {"role": "system", "content": "policy"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *(
                {"role": "tool", "tool_call_id": c["id"], "name": c["function"]["name"], "content": result}
                for c in calls
            ),
            {"role": "assistant", "content": f"bye {trial}"},
        ]
        return {"task_id": 0, "trial": trial, "reward": reward, "info": {}, "traj": messages}

    log = [
        run(0, [call("c1", "find"), call("c2", "book")], "ok", 1.0),
        run(1, [call("c3", "find"), call("c4", "book")], "ok", 0.0),
        run(2, [call("c5", "find"), call("c6", "book")], "no", 0.0),
    ]
    (tmp_path / "log.json").write_text(json.dumps(log))
    traces = credit.read(tmp_path / "log.json")
    assert set(traces.traces["format"].to_pylist()) == {"tau-bench"}
    found = sorted(len(part) for part in partners(traces))
    assert found == [2, 3]  # the first message of all; the last one of the two with the same answers
    graph = dataclasses.replace(traces.graph, action_mask=traces.graph.event_mask)
    shared = shared_prefixes(dataclasses.replace(traces, graph=graph)).context[: traces.sizes.events]
    offset = traces.events["offset"].to_pylist()[:6]
    first = [offset.index(at) == e for e, at in enumerate(offset)]
    assert (shared[:6] >= 0).tolist() == first and not all(first)


def by_brute_force(traces: list[dict[str, Any]]) -> set[frozenset[str]]:
    """Pairs of actions of one agent with equal prefixes, by comparison of all pairs."""
    places = [(t, i) for t in traces for i in range(len(t["events"]))]

    def same(one: tuple[dict[str, Any], int], other: tuple[dict[str, Any], int]) -> bool:
        (t, i), (u, k) = one, other
        return (
            t["task_id"] == u["task_id"]
            and t["events"][:i] == u["events"][:k]
            and t["events"][i]["agent"] == u["events"][k]["agent"]
        )

    found = set()
    for t, i in places:
        if t["events"][i]["type"] != "tool_result":
            equal = [f"{u['trace_id']}/e{k}" for u, k in places if same((t, i), (u, k))
                     and u["events"][k]["type"] != "tool_result"]  # fmt: skip
            if len(equal) > 1:
                found.add(frozenset(equal))
    return found


def test_contexts_are_those_of_a_comparison_of_all_pairs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kinds = [say("x"), say("y"), say("x", "other"), answer("1"), answer("2")]
    log = []
    for i in range(60):
        events = [dict(kinds[k]) for k in rng.choice(len(kinds), rng.integers(1, 5), p=[0.4, 0.2, 0.1, 0.2, 0.1])]
        log.append(trace(f"t{i}", [say("start"), *events], task=f"q{i % 3}"))
    found = partners(read(tmp_path / "log.jsonl", log))
    assert found == by_brute_force(log) and len(found) > 12


def sampled(name: str, groups: int, size: int, seed: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Groups of traces of a micro world, whose content is the choice; and the row of the world of each."""
    world = MICRO[name]
    rows = np.random.default_rng(seed).choice(len(world.ends), groups * size, p=world.probabilities())
    log = []
    for i, row in enumerate(rows.tolist()):
        end, _, reward = world.ends[row]
        events = [
            {"type": world.states[end[:k]].type.name.lower(), "agent": world.states[end[:k]].agent,
             "content_ref": str(choice)}
            for k, choice in enumerate(end)
        ]  # fmt: skip
        log.append(trace(f"t{i}", events, reward, f"q{i // size}"))
    return log, rows


@pytest.mark.study
def test_claims_of_shared_prefixes_have_the_true_increments_as_their_means(tmp_path: Path) -> None:
    world = MICRO["spawn-and"]
    log, rows = sampled("spawn-and", 400, 5, seed=1)
    traces = read(tmp_path / "log.jsonl", log)
    shared = shared_prefixes(traces)
    known = with_siblings(traces, shared)
    claims = credit.run(known, "c3")
    n = traces.sizes.events
    valid, advantage = np.asarray(claims.valid)[:n], np.asarray(claims.advantage)[:n]
    assert (valid == (shared.context[:n] >= 0)).all() and valid.mean() > 0.5
    state = np.concatenate([world.state[r][world.state[r] >= 0] for r in rows])
    choice = np.concatenate([world.choice[r][world.state[r] >= 0] for r in rows])
    group = np.asarray(traces.graph.group_ids)[np.asarray(traces.graph.trace_ids)[:n]]
    z = []
    for s, c in itertools.product(range(len(world.states)), range(world.policy.shape[1])):
        of = valid & (state == s) & (choice == c)
        if of.sum() > 50:
            error = advantage[of] - world.increments[s, c]
            by_group = np.bincount(group[of], error)  # groups are independent; the traces of one are not
            z.append(error.sum() / max(np.sqrt((by_group**2).sum()), 1e-3))
    assert len(z) > 5 and np.abs(z).max() < 3.5


@pytest.mark.slow
def test_siblings_by_chance_stay_independent_samples_of_their_group(tmp_path: Path) -> None:
    """Leaving out traces that chose alike would bias every baseline; those of a replay tree are left out still."""
    log, _ = sampled("spawn-and", 20, 5, seed=2)
    traces = read(tmp_path / "log.jsonl", log)
    known = with_siblings(traces, shared_prefixes(traces))
    assert known.graph.cluster_ids is None
    for method in ("rloo", "grpo"):
        one, other = (np.asarray(credit.run(t, method).advantage) for t in (traces, known))
        np.testing.assert_array_equal(one, other)
    tree = {"context": [None, "c"] * 3, "node": ["x", "y1", "x", "y2", "x", "y3"]}
    graph, _, _ = credit.from_columns(group=[0] * 6, trace=list("aabbcc"), reward=[1.0] * 6, evidence=tree)
    assert np.asarray(graph.cluster_ids)[:3].tolist() == [0, 0, 0]
    tree |= {"node": ["x1", "y1", "x2", "y2", None, "y3"], "alternative": ["x", "y", "x", "y", None, "y"]}
    graph, _, _ = credit.from_columns(group=[0] * 6, trace=list("aabbcc"), reward=[1.0] * 6, evidence=tree)
    assert np.asarray(graph.cluster_ids)[:3].tolist() == [0, 0, 0]
    tree |= {"node": ["x1", "y1", "x2", "y2", "x3", "y3"], "alternative": ["x", "y"] * 3}
    graph, _, _ = credit.from_columns(group=[0] * 6, trace=list("aabbcc"), reward=[1.0] * 6, evidence=tree)
    assert graph.cluster_ids is None


@pytest.mark.slow
def test_nested_draws_are_worth_the_reward_of_their_own_trace() -> None:
    """A context that independent traces reach hangs below each of them, not below the first alone."""
    columns = {"context": ["r", "h"] * 3 + ["r", None], "node": ["a0", "a1", "b0", "b1", "c0", "c1", "d0", None]}
    columns["alternative"] = ["x", None] * 3 + ["y", None]
    graph, reward, rows = credit.from_columns(
        group=[0] * 8, trace=list("aabbccdd"), reward=[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0], evidence=columns
    )
    context, node = (rows.traces.evidence[name].array for name in ("context", "node"))
    advantage = np.asarray(credit.c3(graph, reward, context=context, node=node).advantage)[:7]
    np.testing.assert_allclose(advantage, [2 / 3, 1 / 2, -2 / 3, -1, 2 / 3, 1 / 2, -2 / 3], rtol=1e-6)


def asked_and_spawned() -> list[dict[str, Any]]:
    spawn = {"type": "spawn", "agent": "lead", "to": "helper", "content_ref": "help"}
    alone, ask = say("alone"), {"to": "coder", "from": "lead"}
    return [
        trace("a", [say("plan"), spawn, say("x")], 1.0),
        trace("b", [say("plan"), spawn, say("x")], 0.5),
        trace("c", [say("plan"), alone], 0.25),
        trace("d", [say("plan"), say("do it", **ask)], 0.0),
        trace("e", [say("other"), alone], 0.0),
    ]


def test_contrasts_of_spawn_or_not_and_of_whom_to_ask(tmp_path: Path) -> None:
    traces = read(tmp_path / "log.jsonl", asked_and_spawned())
    found = {one.question: one for one in choice_contrasts(traces, shared_prefixes(traces))}
    spawned = {one.choice: one for one in found["spawn"].outcomes}
    assert found["spawn"].agent == "lead" and found["spawn"].event == "e1"
    assert (spawned["spawn"].traces, spawned["spawn"].mean, spawned["spawn"].stderr) == (2, 0.75, 0.25)
    assert (spawned["no spawn"].traces, spawned["no spawn"].mean) == (2, 0.125)
    asked = {one.choice: (one.traces, one.mean) for one in found["whom"].outcomes}
    assert asked == {"helper": (2, 0.75), "coder": (1, 0.0)}
    assert found["whom"].row()["outcomes"][0]["stderr"] is None


@pytest.mark.slow
def test_the_command_writes_a_copy_that_c3_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read(tmp_path / "log.jsonl", asked_and_spawned())
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, list(arguments))
        assert result.exit_code == code, result.output
        return result.output

    before = (tmp_path / "log.jsonl").read_bytes()
    output = command("siblings", "log.jsonl", "-o", "with.jsonl", "--contrasts", "contrasts.jsonl")
    assert "have siblings, in" in output and (tmp_path / "log.jsonl").read_bytes() == before
    known = credit.read(tmp_path / "with.jsonl")
    assert not known.problems and known.graph.cluster_ids is None
    command("assign", "with.jsonl", "--method", "c3", "-o", "advantages.csv", code=0)
    rows = [json.loads(line) for line in (tmp_path / "contrasts.jsonl").read_text().splitlines()]
    assert len(rows) == 2 and {row["question"] for row in rows} == {"spawn", "whom"}
    assert "is an input" in command("siblings", "log.jsonl", "-o", "log.jsonl", code=1)
    assert "the log has evidence 'context'" in command("siblings", "with.jsonl", "-o", "again.jsonl", code=1)
