"""The table of advantages: every number beside the names and the place in the log that it belongs to."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import credit
from graphs.event_graph import EdgeType, EventType
from graphs.traces.assembling import assemble
from graphs.traces.record import Agent, TraceRecord

COLUMNS = [
    "file", "line", "trace", "group", "event", "agent", "agent_name", "role", "turn_in_trace", "type", "action",
    "tool", "tokens", "time", "task", "model", "policy_version",
    "reward", "credit", "baseline", "scale", "advantage", "valid", "reason",
]  # fmt: skip


def record(trace: str, group: str, reward: float | None) -> TraceRecord:
    made = TraceRecord(trace, group, "runs/a.jsonl", line=int(trace[1:]) + 1)
    call = made.event("a", EventType.ORCHESTRATOR_DECISION, "lead", action=True, line=made.line)
    spawn = made.event("b", EventType.SPAWN, "lead", action=False, to="w", line=made.line)
    work = made.event("c", EventType.MESSAGE, "w", action=True, line=made.line)
    made.edge(call, spawn, EdgeType.CAUSAL)
    made.edge(spawn, work, EdgeType.SPAWN)
    made.instances = {"lead": Agent("lead", "boss"), "w": Agent("solver", "worker", "lead")}
    made.rewards = {} if reward is None else {"team": reward}
    return made


@pytest.fixture(scope="module")
def traces() -> credit.Traces:
    rewards = [("t0", "g", 1.0), ("t1", "g", 0.0), ("t2", "alone", 1.0), ("t3", "g", None)]
    return assemble([record(*r) for r in rewards])


def test_rows_are_events_in_order_with_names_places_and_numbers(traces: credit.Traces) -> None:
    result = credit.rloo(traces.graph, traces.reward)
    table = credit.table(traces, result)
    assert table.column_names == COLUMNS
    rows = table.to_pylist()
    assert [r["event"] for r in rows] == list("abc") * 4
    assert [r["trace"] for r in rows] == [t for t in ("t0", "t1", "t2", "t3") for _ in range(3)]
    assert [r["agent"] for r in rows] == ["lead", "lead", "w"] * 4
    assert [r["agent_name"] for r in rows] == ["lead", "lead", "solver"] * 4  # by which agents are compared
    assert [r["role"] for r in rows] == ["boss", "boss", "worker"] * 4
    assert [r["turn_in_trace"] for r in rows] == [0, 0, 1] * 4
    assert [r["type"] for r in rows] == ["orchestrator_decision", "spawn", "message"] * 4
    assert [r["line"] for r in rows] == [n for n in (1, 2, 3, 4) for _ in range(3)]
    assert rows[0] | {"file": "runs/a.jsonl"} == rows[0]
    assert [r["advantage"] for r in rows[:6]] == [1, 0, 1, -1, 0, -1]
    for r in rows:
        assert math.isclose(r["advantage"], (r["credit"] - r["baseline"]) / r["scale"])


def test_zeros_are_positive(traces: credit.Traces) -> None:
    result = credit.rloo(traces.graph, traces.reward)
    negative = dataclasses.replace(result, credit=-0.0 * result.credit, baseline=0 * result.baseline)
    assert np.signbit(negative.advantage[:3]).any()
    table = credit.table(traces, negative)
    for column in ("credit", "baseline", "advantage"):
        assert not np.signbit(table[column].to_numpy()).any() and table[column].type == "float"
    compared = credit.compare(traces, {"a": negative, "b": result}).events
    assert not np.signbit(compared["a"].combine_chunks().drop_null().to_numpy()).any()


def test_refusals_are_in_words_and_missing_rewards_are_null(traces: credit.Traces) -> None:
    rows = credit.table(traces, credit.rloo(traces.graph, traces.reward)).to_pylist()
    assert [r["reason"] for r in rows[:3]] == ["", "not an action of the team's policy", ""]
    assert rows[6]["reason"] == "nothing to compare with: the group has one member"
    assert rows[9]["reason"] == "no outcome is known" and rows[9]["reward"] is None
    assert not any(r["valid"] for r in rows if r["reason"])


def test_actions_only_and_pandas(traces: credit.Traces) -> None:
    table = credit.table(traces, credit.rloo(traces.graph, traces.reward), actions_only=True)
    assert table.num_rows == 8 and all(table["action"].to_pylist())
    pytest.importorskip("pandas")
    frame = credit.to_pandas(table)
    assert frame.groupby("role", observed=True)["advantage"].sum().to_dict() == {"boss": 0.0, "worker": 0.0}


def test_what_the_log_states_of_an_event_is_beside_its_numbers() -> None:
    """A trainer looks up what an advantage was for; null is where the log does not say."""
    spoken = record("t0", "g", 1.0)
    call = spoken.event("d", EventType.TOOL_CALL, "w", action=True, tool="search", time=3.5, tokens=7)
    assert call == 3
    spoken.model, spoken.evidence = "small", {"policy_version": 4}
    table = credit.table(traces := assemble([spoken, record("t1", "g", 0.0)]), credit.rloo(traces.graph, traces.reward))
    last, other = table.to_pylist()[3], table.to_pylist()[4]
    stated = ("tool", "tokens", "time", "model", "policy_version")
    assert [last[name] for name in stated] == ["search", 7, 3.5, "small", 4]
    assert [other[name] for name in stated] == [None] * 5


def test_the_model_of_a_row_is_that_of_its_agent() -> None:
    """It was that of the trace, which another agent begins."""
    team = record("t0", "g", 1.0)
    team.event("d", EventType.MESSAGE, "w", action=True, model="large")
    team.event("r", EventType.TOOL_RESULT, "w", action=False)
    team.model = "small"
    table = credit.table(traces := assemble([team]), credit.rloo(traces.graph, traces.reward))
    assert table["model"].to_pylist()[-2:] == ["large", "large"] and table["model"][0].as_py() == "small"


def test_several_results_stand_side_by_side(traces: credit.Traces) -> None:
    results = {name: credit.run(traces, name) for name in ("rloo", "dr_grpo")}
    both = credit.table(traces, results, actions_only=True)
    assert both.column_names == [*COLUMNS[:18], *(f"{name}_{key}" for name in results for key in COLUMNS[18:])]
    for name, result in results.items():
        alone = credit.table(traces, result, actions_only=True)
        for key in COLUMNS[18:]:
            assert both[f"{name}_{key}"].equals(alone[key])
    graph, reward, _ = credit.from_columns(group=np.zeros(300, int), trace=np.arange(300), reward=np.ones(300))
    with pytest.raises(ValueError, match=r"dr_grpo.*one entry for each event of this batch"):
        credit.table(traces, results | {"dr_grpo": credit.dr_grpo(graph, reward)})


def test_a_result_of_another_batch_is_refused(traces: credit.Traces) -> None:
    graph, reward, _ = credit.from_columns(group=np.zeros(300, int), trace=np.arange(300), reward=np.ones(300))
    with pytest.raises(ValueError, match=r"one entry for each event of this batch"):
        credit.table(traces, credit.rloo(graph, reward))


def test_a_join_on_the_task_stays_where_a_second_model_comes(tmp_path: Path) -> None:
    rows = "trace,group,model,reward\na,q,m1,1\nb,q,m1,0\n"
    for more, groups in (("", {"q"}), ("c,q,m2,1\nd,q,m2,0\n", {"q [m1]", "q [m2]"})):
        (tmp_path / "t.csv").write_text(rows + more)
        traces = credit.read(tmp_path / "t.csv")
        found = credit.table(traces, credit.run(traces, "rloo"))
        assert set(found["group"].to_pylist()) == groups and set(found["task"].to_pylist()) == {"q"}


def test_no_column_of_the_table_has_the_name_of_a_logs_turns_and_another_meaning(tmp_path: Path) -> None:
    """Rounds 0 and 1 of two agents came back as turns 0 to 3, and a join on `turn` gave others' advantages."""
    log, out = tmp_path / "log.csv", tmp_path / "out.csv"
    rows = [(trace, agent, turn) for trace in "ab" for turn in (4, 5) for agent in ("x", "y")]
    lines = [f"q,{trace},{agent},{turn},{int(trace == 'a')}" for trace, agent, turn in rows]
    log.write_text("\n".join(["group,trace,agent,turn,reward", *lines]))
    read = credit.read(log)
    table = credit.table(read, credit.rloo(read.graph, read.reward))
    assert "turn" not in table.column_names
    assert table["turn_in_trace"].to_pylist() == [0, 1, 2, 3] * 2
    found = {row["line"]: (row["trace"], row["agent"]) for row in table.to_pylist()}
    assert found == {2 + row: (trace, agent) for row, (trace, agent, _) in enumerate(rows)}
    credit.write_table(table, out)
    again = credit.read(out, columns={"group": "group"})
    assert np.array_equal(again.graph.turn_ids, read.graph.turn_ids)  # read back, they are the same turns
