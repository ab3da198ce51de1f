"""Responsible actions, what an edit undoes, and untrusted events: against brute force and by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.metrics.event_influence import dependents, if_edited, why
from credit.metrics.trace_metrics import MetricOptions, trace_metrics
from credit.metrics.untrusted_reach import untrusted_reach
from credit.replay.edited_runs import edit_plan, run_edit
from credit.replay.execution import Limits
from credit.replay.replayer import CallableReplayer, PrefixError
from credit.replay.stated_errors import stated_stderr
from estimators.base import REASONS, Credit
from graphs.errors import CreditError
from graphs.traces.batch import Traces


def read(folder: Path, *lines: dict[str, Any]) -> Traces:
    (folder / "log.jsonl").write_text("".join(json.dumps({"schema_version": "1.0"} | one) + "\n" for one in lines))
    traces = credit.read(folder / "log.jsonl")
    assert traces.problems == ()
    return traces


def drawn(rng: np.random.Generator, name: str) -> dict[str, Any]:
    """Events of some agents with random edges."""
    count = int(rng.integers(3, 25))
    events = [{"id": f"e{i}", "type": "message", "agent": f"a{rng.integers(4)}"} for i in range(count)]
    pairs = {
        tuple(sorted(rng.choice(count, 2, replace=False).tolist())) for _ in range(int(rng.integers(0, 2 * count)))
    }
    edges = [{"src": f"e{s}", "dst": f"e{d}", "type": "causal"} for s, d in sorted(pairs)]
    return {"trace_id": name, "task_id": "q", "events": events, "edges": edges, "rewards": {"team": 1.0}, "costs": {}}


def run_again(line: dict[str, Any], edited: str | None) -> dict[str, int]:
    """What each event says in a run in which an event says all that it has read, and one is edited."""
    said: dict[str, int] = {}
    memory: dict[str, int] = {}
    for event in line["events"]:
        causes = sorted(edge["src"] for edge in line["edges"] if edge["dst"] == event["id"])
        heard = tuple(said[cause] for cause in causes)
        said[event["id"]] = hash((event["id"], memory.get(event["agent"]), heard, event["id"] == edited))
        memory[event["agent"]] = said[event["id"]]
    return said


def test_reach_and_invalidation_are_those_of_running_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [drawn(rng, f"t{i}") for i in range(4)]
    traces = read(tmp_path, *lines)
    trace, ids = np.asarray(traces.graph.trace_ids), traces.events["event"].to_pylist()
    for number, line in enumerate(lines):
        rows = np.flatnonzero(trace[: traces.sizes.events] == number)
        plain = run_again(line, None)
        influence = {}
        for row in rows.tolist():
            again = run_again(line, ids[row])
            influence[row] = {name for name in plain if plain[name] != again[name]}
            assert {*if_edited(traces, row).invalidated} == influence[row] - {ids[row]}
        for row in rows.tolist():
            target = np.zeros(traces.sizes.events, bool)
            target[row] = True
            before = np.flatnonzero(dependents(traces, target, backward=True)).tolist()
            assert before == [cause for cause in rows.tolist() if ids[row] in influence[cause]]


LINE: dict[str, Any] = {
    "trace_id": "t", "task_id": "q", "rewards": {"team": 1.0}, "costs": {},
    "events": [
        {"id": "d", "t": 0, "type": "orchestrator_decision", "agent": "boss", "tokens": 10, "input_tokens": 5,
         "value": 0.25},
        {"id": "r", "t": 1, "type": "tool_result", "agent": "web", "tool": "web", "trusted": False},
        {"id": "u", "t": 2, "type": "message", "agent": "solver", "tokens": 20, "event_reward": 0.5, "value": 0.75},
        {"id": "x", "t": 3, "type": "message", "agent": "other", "tokens": 1, "counterfactual_reward": 2.0,
         "replays": 4, "replay_stderr": 0.1},
        {"id": "z", "t": 5, "type": "stop", "agent": "boss", "tokens": 30},
    ],
    "edges": [{"src": s, "dst": d, "type": "causal"} for s, d in ("du", "ru", "dx", "uz")],
}  # fmt: skip


def numbers(traces: Traces, **amounts: tuple[float, float]) -> Credit:
    """Credit and errors by ids of events; no other event has a number."""
    size, ids = traces.graph.num_events, traces.events["event"].to_pylist()
    value, error, reason = np.zeros(size), np.zeros(size), np.full(size, 2, np.int8)
    for name, (amount, stderr) in amounts.items():
        value[ids.index(name)], error[ids.index(name)], reason[ids.index(name)] = amount, stderr, 0
    return Credit(value, np.zeros(size), np.ones(size), error, reason, "event", "increment", "test", False, False)


def test_responsible_actions_by_hand(tmp_path: Path) -> None:
    traces = read(tmp_path, LINE)
    made = numbers(traces, d=(-0.3, 0.1), u=(0.5, np.inf), x=(9.0, 0.1), z=(0.1, 0.2))
    found = why(traces, 4, made)
    assert [(one.event, one.amount, one.stderr, one.stands_out) for one in found] == [
        ("u", 0.5, None, False), ("d", -0.3, 0.1, True), ("z", 0.1, 0.2, False),
    ]  # fmt: skip
    assert [one.path for one in found] == [("u", "z"), ("d", "z"), ("z",)]  # the boss's own memory is the shortest path
    assert [one.event for one in why(traces, 4, made, most=1)] == ["u"]
    assert why(traces, 1, made) == []


def test_actions_without_credit_are_listed_behind_those_with_it(tmp_path: Path) -> None:
    """Where the group had no credit, "no action with credit leads to event z" stood in place of the list."""
    traces = read(tmp_path, LINE)
    found = why(traces, 4, numbers(traces, d=(-0.3, 0.1)))
    assert [(one.event, one.amount, one.stderr, one.without) for one in found] == [
        ("d", -0.3, 0.1, ""), ("z", None, None, REASONS[2]), ("u", None, None, REASONS[2]),
    ]  # fmt: skip
    unscored = [(one.event, one.amount, one.without, one.path) for one in why(traces, 4, None)]
    lacks = "no trace has an outcome"
    assert unscored == [("z", None, lacks, ("z",)), ("u", None, lacks, ("u", "z")), ("d", None, lacks, ("d", "z"))]


@pytest.mark.parametrize("outcomes", [{}, {"team": 1.0}])
def test_why_answers_where_nothing_has_credit(outcomes: dict[str, float], tmp_path: Path) -> None:
    """Logs without outcomes were refused; a trace alone in its group got no list."""
    read(tmp_path, LINE | {"rewards": outcomes})
    given = ["why", str(tmp_path / "log.jsonl"), "t", "z"]
    told = CliRunner().invoke(cli, given)
    assert told.exit_code == 0, told.output
    rows = [line.split() for line in told.stdout.splitlines()[1:4]]
    assert [(row[0], row[3], row[4]) for row in rows] == [("z", "–", "–"), ("u", "–", "–"), ("d", "–", "–")]
    reason = "nothing to compare with: the group has one member" if outcomes else "no trace has an outcome"
    assert reason in told.stdout
    actions = json.loads(CliRunner().invoke(cli, [*given, "--json"]).stdout)["actions"]
    assert {(one["amount"], one["without"]) for one in actions} == {(None, reason)}
    assert CliRunner().invoke(cli, [*given[:3], "r"]).stdout == "no action leads to event r\n"


def test_an_edit_by_hand(tmp_path: Path) -> None:
    traces = read(tmp_path, LINE)
    first, third, other, last = (if_edited(traces, row) for row in (0, 2, 3, 4))
    assert first.invalidated == ("u", "x", "z") and (first.actions, first.later) == (3, 4)
    assert (first.tokens.total, first.input_tokens.missing) == (51, 3)
    assert (first.change, first.source) == (0.25 - 1.5, "value")
    assert third.invalidated == ("z",) and third.seconds.total == 3
    assert third.change == 0.75 - 1.5
    assert (other.invalidated, other.change, other.stderr, other.source) == ((), 0.5, pytest.approx(0.1), "replays")
    assert last.change is None and "neither value nor counterfactual_reward" in last.without
    with pytest.raises(credit.CreditError, match="row is 5; expected 0 to 4"):
        if_edited(traces, 5)


def test_what_no_undone_action_tells_is_not_0(tmp_path: Path) -> None:
    """A tool's result generates nothing, and its 0 was shown as the known part of what the actions did."""
    line = {"trace_id": "t", "task_id": "q", "rewards": {"team": 1.0}, "costs": {}, "edges": []}
    events = [{"id": f"e{i}", "type": kind, "agent": "a"} for i, kind in enumerate(("message", "tool_result", "stop"))]
    effect = if_edited(read(tmp_path, line | {"events": events}), 0)
    assert (effect.tokens.total, effect.tokens.missing) == (None, 1)
    assert if_edited(read(tmp_path, line | {"events": events[:2]}), 0).tokens.total == 0


def test_untrusted_events_reach_what_depended_on_them(tmp_path: Path) -> None:
    traces = read(tmp_path, LINE, LINE | {"trace_id": "clean", "events": [LINE["events"][0]], "edges": []})
    made = numbers(traces, d=(-0.3, 0.1), u=(0.5, 0.1), x=(0.1, 0.1), z=(0.1, 0.2))
    whole, source = untrusted_reach(traces, made)
    assert (whole.unit, source.unit) == ("all", "tool_result of web")
    assert (whole.events, whole.traces, whole.reached, whole.actions, whole.answers) == (1, 1, 2, 5, 1)
    assert whole.credit_at_risk == pytest.approx(0.6)
    typed = {one.unit: one.reached for one in untrusted_reach(traces, types=["message"])}
    assert typed == {"all": 3, "tool_result of web": 2, "message": 3}
    with pytest.raises(credit.CreditError, match="type is 'tool'; expected some of orchestrator_decision"):
        untrusted_reach(traces, types=["tool"])
    silent = [{k: v for k, v in event.items() if k != "trusted"} for event in LINE["events"]]
    with pytest.raises(credit.CreditError, match="says of no event whether it is trusted"):
        untrusted_reach(read(tmp_path, LINE | {"events": silent}))


def test_reach_by_attack_vector_is_that_of_its_events_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    lines = [drawn(rng, f"t{i}") for i in range(6)]
    for event in (event for line in lines for event in line["events"]):
        event |= {"trusted": [True, False, None][rng.integers(3)], "attack_vector": [1, 8, None, None][rng.integers(4)]}
    traces = read(tmp_path, *lines)
    events = [event for line in lines for event in line["events"]]
    found = {one.unit: one for one in untrusted_reach(traces, by="vector")}
    assert {*found} == {"all", "AV1", "AV8", "not stated", "AV1, trusted", "AV8, trusted"}
    for name, vector in (("AV1", 1), ("AV8", 8), ("not stated", None), ("AV1, trusted", 1), ("AV8, trusted", 8)):
        of_it = [
            event["attack_vector"] == vector
            and (event["trusted"] is True) == name.endswith("trusted")
            and bool(vector or event["trusted"] is False)
            for event in events
        ]
        rows = np.array(of_it, bool)
        reached = dependents(traces, rows) & np.asarray(traces.graph.action_mask)[: len(events)]
        assert (found[name].events, found[name].reached) == (rows.sum(), reached.sum()), name
    assert found["all"].events == sum(found[name].events for name in ("AV1", "AV8", "not stated"))
    bare = [line | {"events": [each | {"attack_vector": None} for each in line["events"]]} for line in lines]
    with pytest.raises(credit.CreditError, match="no event states its attack_vector"):
        untrusted_reach(read(tmp_path, *bare), by="vector")


def of_text(prefix: Any, replace: str | None, forbid: tuple[str, ...], seed: int) -> float:
    """A team that gets a point for each event before the edit, and one for "good"."""
    if replace == "unknown":
        raise PrefixError("a tool answered otherwise")
    return len(prefix.events) + float(replace == "good") + float(seed % 2)


def test_an_edit_is_run_from_the_events_before_it(tmp_path: Path) -> None:
    events = [{"id": f"e{i}", "type": "message", "agent": "a"} for i in range(3)]
    traces = read(tmp_path, *[
        {"trace_id": name, "task_id": "q", "events": events, "edges": [], "rewards": {"team": 1.5}, "costs": {}}
        for name in ("s", "t")
    ])  # fmt: skip
    plan = edit_plan(traces, 5, "good", 4, 7)
    assert list(plan.jobs[0].prefix.events) == ["e0", "e1"] and plan.jobs[0].prefix.trace == "t"
    made = run_edit(traces, plan, CallableReplayer(of_text), tmp_path / "edit.jsonl", Limits())
    rewards = [json.loads(line)["reward"] for line in (tmp_path / "edit.jsonl").read_text().splitlines()]
    assert made.runs == 4 and made.change == pytest.approx(np.mean(rewards) - 1.5)
    assert {*rewards} <= {3.0, 4.0}
    again = run_edit(traces, plan, CallableReplayer(of_text), tmp_path / "edit.jsonl", Limits())
    assert again == made  # no run is made twice
    with pytest.raises(CreditError, match="is the plan of other runs"):
        other = edit_plan(traces, 4, "good", 4, 7)
        run_edit(traces, other, CallableReplayer(of_text), tmp_path / "edit.jsonl", Limits())
    with pytest.raises(CreditError, match="of another driver or log"):
        run_edit(traces, plan, CallableReplayer(of_text), tmp_path / "edit.jsonl", Limits(), name="team:other")
    lost = edit_plan(traces, 5, "unknown", 4, 7)
    strayed = run_edit(traces, lost, CallableReplayer(of_text), tmp_path / "lost.jsonl", Limits())
    assert strayed.change is None and "answered otherwise" in strayed.strayed


def test_runs_that_agree_do_not_show_that_all_would(tmp_path: Path) -> None:
    """Four runs with one return had a standard error of 0."""
    events = [{"id": "e", "type": "message", "agent": "a"}]
    traces = read(tmp_path, *[
        {"trace_id": name, "task_id": task, "events": events, "edges": [], "rewards": {"team": won}, "costs": {}}
        for name, task, won in (("s", "q", 0.0), ("t", "q", 1.0), ("u", "r", 1.0))
    ])  # fmt: skip

    def made(row: int, runs: int) -> float | None:
        plan, results = edit_plan(traces, row, "good", runs, 7), tmp_path / f"{row}-{runs}.jsonl"
        return run_edit(traces, plan, CallableReplayer(lambda *_: 1.0), results, Limits()).stderr

    assert made(0, 4) == pytest.approx(stated_stderr([np.ones(4), np.array([0.0, 1.0])], ["q", "q"])[0])
    assert made(0, 1) is None and made(2, 4) == 0  # nothing in the log of task r, or in its runs, was otherwise


def test_exactly_two_errors_are_not_beyond_two() -> None:
    """Two successes of four runs: 2/3 of the mean of the others, ± 1/3, which rounds to more than twice in float32."""
    graph, reward, rows = credit.from_columns(
        group=["q"] * 4, trace=list("abcd"), agent=["x"] * 4, reward=[1.0, 1.0, 0.0, 0.0]
    )
    found = credit.rloo(graph, reward)
    assert [why(rows.traces, row, found)[0].stands_out for row in range(4)] == [False] * 4
    judged = dataclasses.replace(found, source="judge", estimand="increment")
    metrics = trace_metrics(rows.traces, MetricOptions(credit=judged))
    assert metrics["credited_agents"].value.tolist() == [0.0] * 4


def test_an_error_of_0_is_not_known() -> None:
    """Siblings that agree by chance gave ± 0 and a star: of two coins, half of all agree."""
    outcome = [1.0, 0.0, 0.0, 0.0]
    agents = ["a", "b"] * 4
    _, _, rows = credit.from_columns(group=["q"] * 8, trace=[*"aabbccdd"], agent=agents, reward=np.repeat(outcome, 2))
    found = credit.run(rows.traces, "rloo")
    stated = np.asarray(found.stderr)[:2]
    assert stated.tolist() == [0, 0]
    error = dataclasses.replace(found, stderr=np.asarray(found.stderr) + 0.1)
    assert [(one.stderr, one.stands_out) for one in why(rows.traces, 0, found)] == [(None, False)]
    assert why(rows.traces, 0, error)[0].stderr == pytest.approx(0.1)
