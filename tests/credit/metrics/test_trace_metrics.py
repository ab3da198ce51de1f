"""Metrics of three small traces by hand, in three forms of the same runs, and on a sample of each format."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.bench.planted_faults import copied, healthy_team
from credit.cli import cli
from credit.ledger.channels import channel
from credit.metrics.cost_summary import cost_rows
from credit.metrics.decision_values import step_values
from credit.metrics.event_costs import read_prices
from credit.metrics.event_metrics import decision_costs, steps_of_decisions, team_course, team_events
from credit.metrics.metric_summary import metric_means, units_of
from credit.metrics.run_card import CardLine, run_card
from credit.metrics.success_costs import success_costs, success_line
from credit.metrics.trace_costs import with_costs
from credit.metrics.trace_metrics import METRICS, MetricOptions, trace_metrics
from credit.page.questions import questions
from credit.paid_for_success import paid_for_success
from credit.reports.event_errors import error_mask
from credit.reports.event_texts import event_texts
from credit.reports.trace_numbers import TeamFacts
from credit.telling_apart import NOT_APART
from estimators.base import Credit
from graphs.event_types import EdgeType, EventType
from graphs.structure.critical_path import critical_steps, decision_steps
from graphs.task_means import mean_of_tasks, ratio_interval
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.record import Agent, TraceRecord
from graphs.worlds import FEWEST_AGENTS, TeamWorld
from graphs.writers import otlp, survey
from tests.definitions.samples import SAMPLES
from tests.recordings.spans import agent, chat, spans_request, tool

WITH_CREDIT = {"credited_agents", "signal_to_noise"}


def event(name: str, kind: str, agent: str, time: float, **more: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "agent": agent, "t": time} | more


def edge(text: str) -> dict[str, str]:
    src, dst, kind = text.split()
    return {"src": src, "dst": dst, "type": kind}


STAR: dict[str, Any] = {  # two workers at once; the answer does not use the second one
    "trace_id": "star", "task_id": "q", "rewards": {"team": 1.0}, "costs": {"tokens": 100, "wall_clock_s": 6},
    "events": [
        event("d", "orchestrator_decision", "boss", 0, tokens=10),
        event("s1", "spawn", "boss", 0, to="w1", action=False), event("s2", "spawn", "boss", 0, to="w2", action=False),
        event("m1", "message", "w1", 2, tokens=20, content_ref="x"),
        event("m2", "message", "w2", 4, tokens=30, content_ref="x"),
        event("r1", "return", "w1", 2, to="boss"), event("r2", "return", "w2", 4, to="boss"),
        event("z", "aggregate", "boss", 5, tokens=40),
    ],
    "edges": [edge(text) for text in ("d s1 causal", "d s2 causal", "s1 m1 spawn", "s2 m2 spawn", "m1 r1 causal",
                                      "m2 r2 causal", "r1 z return")],
}  # fmt: skip
DEBATE: dict[str, Any] = {  # two peers; the times are positions, for the run took 420 seconds
    "trace_id": "debate", "task_id": "q", "rewards": {"team": 0.0}, "costs": {"tokens": 9, "wall_clock_s": 420},
    "events": [
        event("a1", "message", "a", 0, content_ref="p", status="error"),
        event("b1", "message", "b", 1, content_ref="q", status="error"),
        event("a2", "message", "a", 2, content_ref="q", status="ok"),
        event("b2", "message", "b", 3, content_ref="q", tokens=9),
    ],
    "edges": [edge(text) for text in ("a1 b1 message", "b1 a2 message", "a2 b2 message")],
}  # fmt: skip
ALONE: dict[str, Any] = {
    "trace_id": "alone", "task_id": "r", "rewards": {"team": 1.0}, "costs": {},
    "events": [event("c", "tool_call", "a", 0, tool="web", tokens=5), event("r", "tool_result", "a", 2, tool="web"),
               event("f", "stop", "a", 2, tokens=5)],
    "edges": [edge("c r return"), edge("r f causal")],
}  # fmt: skip
BY_HAND: dict[str, dict[str, float | str]] = {
    "star": {
        "success": 1, "parallelism": 4 / 3, "parallelism_seconds": 9 / 5, "speed_up": 9 / 5, "critical_steps": 3,
        "useful_agents": 2 / 3, "message_redundancy": 1 / 2, "consensus": "the team is no debate",
        "diversity": "the team is no debate", "protocol_overhead": 50 / 100,
        "error_amplification": "the log calls no event an error", "team_peak": 3, "team_mean": 20 / 8,
        "team_births": 2, "team_deaths": 2,
    },
    "debate": {
        "success": 0, "parallelism": 1,
        "parallelism_seconds": "the times and costs.wall_clock_s do not agree: the times are not in seconds",
        "speed_up": "the times and costs.wall_clock_s do not agree: the times are not in seconds",
        "critical_steps": "no single main agent, or an action without a stage", "useful_agents": 1,
        "message_redundancy": 2 / 4, "consensus": 1, "diversity": 1,
        "protocol_overhead": "an action has no count of tokens", "error_amplification": 2, "team_peak": 2,
        "team_mean": 6 / 4, "team_births": 1, "team_deaths": 1,
    },
    "alone": {
        "success": 1, "parallelism": 1, "parallelism_seconds": 1, "speed_up": 1, "critical_steps": 2,
        "useful_agents": 1, "message_redundancy": "the team wrote no message", "consensus": "the team is no debate",
        "diversity": "the team is no debate", "protocol_overhead": 1 / 2,
        "error_amplification": "the log calls no event an error", "team_peak": 1, "team_mean": 1,
        "team_births": 0, "team_deaths": 0,
    },
}  # fmt: skip


def native(folder: Path, *traces: dict[str, Any]) -> Traces:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps({"schema_version": "1.0"} | trace) + "\n" for trace in traces))
    read = credit.read(path)
    assert [problem for problem in read.problems if problem.kind != "time-unit"] == []
    return read


def by_trace(traces: Traces) -> dict[str, dict[str, float | str]]:
    found = trace_metrics(traces)
    return {
        name: {metric: reasons[row] or float(value[row]) for metric, (value, reasons) in found.items()}
        for row, name in enumerate(traces.traces["trace"].to_pylist())
    }


def in_form(form: str, folder: Path, *traces: dict[str, Any]) -> Traces:
    read = native(folder, *traces)
    if form == "native":
        return read
    {"otlp": otlp.write, "survey": survey.write}[form](read, folder / form)
    return credit.read(folder / form)


@pytest.mark.parametrize("form", ["native", "otlp", "survey"])
def test_three_traces_by_hand_in_three_forms(form: str, tmp_path: Path) -> None:
    found = by_trace(in_form(form, tmp_path, STAR, DEBATE, ALONE))
    assert found.keys() == BY_HAND.keys()
    for name, expected in BY_HAND.items():
        assert found[name].keys() == expected.keys() == METRICS.keys() - WITH_CREDIT
        for metric, value in expected.items():
            wanted = value if isinstance(value, str) else pytest.approx(value)
            assert found[name][metric] == wanted, (name, metric)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["native", "otlp", "survey"])
def test_a_stop_is_a_stop_in_three_forms(form: str, tmp_path: Path) -> None:
    """The survey's form has no such type: its stops were messages of the lead, and the overhead was half as much."""
    ends = STAR["events"][-1] | {"type": "stop", "stop_propensity": 0.5}
    read = in_form(form, tmp_path, STAR | {"events": [*STAR["events"][:-1], ends]})
    assert by_trace(read)["star"]["protocol_overhead"] == 50 / 100
    assert "stop" in {row.unit for row in cost_rows(read, "decision")}
    assert [row.more for row in step_values(read, "stop")] == [0]


def test_steps_of_an_agent_follow_each_other_where_edges_are_between_agents_only(tmp_path: Path) -> None:
    """The last step has no edge: it is no fourth of what ran at once, and rests on what its agent read before."""
    steps = [event(name, "message", agent, 0) for name, agent in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "x"))]
    log = {"trace_id": "t", "task_id": "q", "rewards": {"team": 1.0}, "costs": {}, "events": steps,
           "edges": [edge("a b message"), edge("b c message")]}  # fmt: skip
    found = by_trace(native(tmp_path, log))["t"]
    assert (found["parallelism"], found["useful_agents"]) == (1, 1)
    who = {"x1": "x", "l1": "lead", "y1": "y", "l2": "lead"}  # the lead reads one message before each of its steps
    steps = [event(name, "message", agent, i) for i, (name, agent) in enumerate(who.items())]
    log |= {"events": steps, "edges": [edge("x1 l1 message"), edge("y1 l2 message")]}
    found = by_trace(native(tmp_path, log))["t"]
    assert found["parallelism"] == pytest.approx(4 / 3) and found["useful_agents"] == 1


@pytest.mark.parametrize("unit", [1e3, 1e9])
def test_dates_in_a_smaller_unit_are_no_seconds(unit: float, tmp_path: Path) -> None:
    steps = [event("a", "message", "x", 1.7e9), event("b", "message", "x", 1.7e9 + 2)]
    log = {"trace_id": "t", "task_id": "q", "rewards": {"team": 1.0}, "costs": {}, "edges": [edge("a b causal")]}
    assert TeamFacts(native(tmp_path, log | {"events": steps})).durations.work[0] == 2
    other = [step | {"t": step["t"] * unit} for step in steps]
    traces = native(tmp_path, log | {"events": other})
    assert [problem.kind for problem in traces.problems] == ["time-unit"]
    found = TeamFacts(traces).durations
    assert np.isnan(found.work[0]) and "smaller unit" in found.reasons[0]


def test_credit_beyond_two_errors(tmp_path: Path) -> None:
    traces = native(tmp_path, STAR, DEBATE, ALONE)
    size, n = traces.graph.num_events, traces.sizes.events
    amount, error = np.zeros(size), np.zeros(size)
    ids = traces.events["event"].to_pylist()
    amount[[ids.index("d"), ids.index("z"), ids.index("m1"), ids.index("m2")]] = [2.0, 1.0, -3.0, 1.9]
    error[:n] = 1.0
    error[ids.index("b2")] = math.inf
    reason = np.where(np.asarray(traces.graph.action_mask), 0, 2).astype(np.int8)
    made = Credit(amount, np.zeros(size), np.ones(size), error, reason, "event", "increment", "test", False, False)
    found = trace_metrics(traces, MetricOptions(credit=made))
    useful, signal = found["credited_agents"], found["signal_to_noise"]
    assert useful.value[0] == pytest.approx(1 / 3)  # boss 3 of 2 × 2, w1 -3 of 2 × 1, w2 1.9 of 2 × 1
    assert signal.value[0] == pytest.approx(math.sqrt((4 + 1 + 9 + 1.9**2) / 4))
    of_returns = trace_metrics(traces, MetricOptions(credit=dataclasses.replace(made, estimand="total")))
    assert of_returns["signal_to_noise"].reasons == ["its errors are the spread of returns"] * 3
    assert useful.reasons[1] == signal.reasons[1] == "the method gives an action of the trace no number, or no error"
    with pytest.raises(credit.CreditError, match=r"credit has shape \(2,\)"):
        trace_metrics(traces, MetricOptions(credit=Credit(*(np.zeros(2),) * 5, "event", "score", "t", False, False)))


def test_agents_with_one_number_for_all_are_not_credited() -> None:
    """By rloo 35 % of agents earned something, each the outcome of its whole trace."""
    graph, reward, rows = credit.from_columns(
        group=["q"] * 6, trace=list("aabbcc"), agent=list("xyxyxy"), reward=[1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    )
    found = trace_metrics(rows.traces, MetricOptions(credit=credit.rloo(graph, reward)))["credited_agents"]
    assert found.reasons == [NOT_APART] * 3 and np.isnan(found.value).all()


def test_what_one_message_or_one_speaker_cannot_show_is_no_number(tmp_path: Path) -> None:
    """One message repeated nothing, 0; an agent that alone spoke agreed with itself, 1."""
    calls = [step | {"type": "tool_call", "tool": "web"} if step["agent"] == "b" else step for step in DEBATE["events"]]
    both = by_trace(native(tmp_path, DEBATE | {"events": calls}))["debate"]
    assert both["message_redundancy"] == 0
    assert both["consensus"] == both["diversity"] == "one agent alone wrote messages"
    first = [calls[0], *(step | {"type": "tool_call", "tool": "web"} for step in calls[1:])]
    found = by_trace(native(tmp_path, DEBATE | {"events": first}))["debate"]
    assert found["message_redundancy"] == "the team wrote one message, which can repeat none"


@pytest.mark.parametrize(
    ("asked", "said", "redundancy"),
    [
        (None, "", "the log has no content of its messages that can be compared"),  # the parts have ids alone
        (None, "So.", 1 / 2),
        ({"command": "ls"}, "", "the team wrote no message"),
        ({"command": "ls", "cwd": "/"}, "So.", 1 / 2),
    ],
)
def test_messages_of_spans_are_compared_by_what_they_say(
    tmp_path: Path, asked: dict[str, str] | None, said: str, redundancy: float | str
) -> None:
    """Their JSON was, where ids of calls tell any two apart: two that say the same never repeated each other."""

    def spoken(call_id: str) -> dict[str, Any]:
        part = {"type": "tool_call", "id": call_id, "name": "t"} | ({"arguments": asked} if asked else {})
        parts = [part, *([{"type": "text", "content": said}] if said else [])]
        return {"attributes": {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}}

    given = {"attributes": {"gen_ai.tool.call.arguments": json.dumps(asked)} if asked else {}}
    spans = [agent(1, 0, 0, 9, "lead"), chat(2, 1, 1, 2), agent(3, 1, 2, 8, "worker"),
             chat(4, 3, 3, 4, **spoken("x")), tool(5, 3, 4, 5, "x", **given),
             chat(6, 3, 5, 6, **spoken("y")), tool(7, 3, 6, 7, "y", **given)]  # fmt: skip
    (tmp_path / "spans.json").write_text(json.dumps(spans_request(spans)))
    (found,) = by_trace(credit.read(tmp_path)).values()
    assert found["message_redundancy"] == redundancy


def test_the_status_of_a_span_is_no_text_of_its_message() -> None:
    """Each message of MLflow's spans said `STATUS_CODE_OK`, so all repeated the first."""
    traces = credit.read(Path(__file__).parents[2] / "recordings" / "spans_mlflow.json")
    rows = np.flatnonzero(np.asarray(traces.graph.event_type)[: traces.sizes.events] == int(EventType.MESSAGE))
    assert len(rows) and event_texts(traces, rows, 99) == [""] * len(rows)


def test_a_trace_has_the_stages_that_its_own_log_states(tmp_path: Path) -> None:
    """Beside a trace that states stages, one that states none had no critical steps."""
    stated = STAR | {"trace_id": "stated", "events": [step | {"stage": 0} for step in STAR["events"]]}
    traces = native(tmp_path, STAR, stated)
    assert [row["critical_steps"] for row in by_trace(traces).values()] == [3, 3]
    assert steps_of_decisions(traces)[1] == ["", ""]
    assert np.isfinite(channel(traces, "parallel_saving").total[:2]).all()


def test_embeddings_tell_what_is_alike(tmp_path: Path) -> None:
    traces = native(tmp_path, DEBATE)
    vectors = np.array([[1.0, 0.0], [0.0, 2.0], [0.1, 1.0], [0.6, 0.8]])
    found = trace_metrics(traces, MetricOptions(embeddings=vectors))
    assert found["message_redundancy"].value.tolist() == [1 / 4]  # a2 is as b1
    assert found["consensus"].value.tolist() == [1 / 2]
    loose = trace_metrics(traces, MetricOptions(embeddings=vectors, alike=0.5))
    assert loose["message_redundancy"].value.tolist() == [2 / 4]
    vectors[3] = np.nan
    lacking = trace_metrics(traces, MetricOptions(embeddings=vectors))["diversity"]
    assert lacking.reasons == ["a message has no embedding"]
    with pytest.raises(credit.CreditError, match="a row for each of 4 events"):
        trace_metrics(traces, MetricOptions(embeddings=vectors[:2]))


def test_a_part_of_a_word_is_no_error(tmp_path: Path) -> None:
    """A call that was "deferred" or "transferred" counted as an error, for the "err" in it."""
    fine = ["deferred", "transferred", "preferred", "ok"]
    wrong = ["error", "err", "ERR_TIMEOUT", "tool-err", "TimeoutError", "failed", "STATUS_CODE_ERROR", "call rejected"]
    steps = [event(str(i), "message", "a", i, status=status) for i, status in enumerate(fine + wrong)]
    log = {"trace_id": "t", "task_id": "q", "rewards": {"team": 1.0}, "costs": {}, "events": steps, "edges": []}
    assert error_mask(native(tmp_path, log)).tolist() == [False] * len(fine) + [True] * len(wrong)


def test_positions_are_not_seconds(tmp_path: Path) -> None:
    """The survey's form writes positions where an event has no time, and a wall clock of 0."""
    untimed = ALONE | {"events": [{k: v for k, v in e.items() if k != "t"} for e in ALONE["events"]]}
    traces = native(tmp_path, untimed)
    assert TeamFacts(traces).durations.reasons == ["an event has no time"]
    survey.write(traces, tmp_path / "survey")
    assert [line.missing for line in run_card(credit.read(tmp_path / "survey")) if line.item == "times"] == [
        "no event has a time"
    ]
    assert TeamFacts(credit.read(tmp_path / "survey")).durations.reasons == [
        "the log says that its times are positions"
    ]


def test_graded_outcomes_need_a_threshold(tmp_path: Path) -> None:
    traces = native(tmp_path, STAR, ALONE | {"rewards": {"team": 0.5}})
    assert (
        trace_metrics(traces)["success"].reasons == ["outcomes are not all 0 or 1: state from which one succeeds"] * 2
    )
    assert trace_metrics(traces, MetricOptions(success_at=0.6))["success"].value.tolist() == [1, 0]


def test_agents_without_an_edge_between_them_are_refused(tmp_path: Path) -> None:
    traces = native(tmp_path, STAR | {"edges": [edge("d s1 causal"), edge("m1 r1 causal")]})
    found = trace_metrics(traces)
    for name in ("parallelism", "parallelism_seconds", "useful_agents"):
        assert found[name].reasons == ["the log states no edge between its agents"]


@pytest.mark.slow
def test_every_format_has_a_number_or_a_reason(tmp_path: Path) -> None:
    for name, sample in SAMPLES.items():
        traces = credit.read(sample.write(tmp_path / name))
        steps, without = steps_of_decisions(traces)
        decided = np.bincount(np.asarray(traces.graph.trace_ids)[: len(steps)], np.isfinite(steps)) > 0
        assert decided.tolist() == [not reason for reason in without], name
        for metric, (value, reasons) in trace_metrics(traces).items():
            assert [not reason for reason in reasons] == np.isfinite(value).tolist(), (name, metric)
            assert len(reasons) == traces.sizes.traces


def test_means_are_over_tasks_and_intervals_need_many(tmp_path: Path) -> None:
    lines = [ALONE | {"trace_id": f"t{i}", "task_id": f"q{i // 2}", "rewards": {"team": float(i % 4 == 0)}}
             for i in range(120)]  # fmt: skip
    lines.append(ALONE | {"trace_id": "more", "task_id": "q0", "rewards": {"team": 0.0}})
    traces = native(tmp_path, *lines)
    row = metric_means(traces, trace_metrics(traces))[0]
    task = [1 / 3 if q == 0 else 1 / 2 if q % 2 == 0 else 0.0 for q in range(60)]
    assert (row.metric, row.traces, row.tasks) == ("success", 121, 60)
    assert row.mean == pytest.approx(np.mean(task))
    assert row.low is not None and row.high is not None and 0.15 < row.low < 0.24 < 0.26 < row.high < 0.35
    assert [unit.unit for unit in metric_means(traces, trace_metrics(traces), "length")][:1] == ["2 actions"]
    few = np.r_[np.zeros(60), np.full(2, 5.0)], np.full(60, 0.1)
    assert {mean_of_tasks(numbers)[1] for numbers in few} == {"fewer than 3 tasks above the mean, or below it"}


def test_parts_by_length_have_about_as_many_traces(tmp_path: Path) -> None:
    """Of 245 traces "0 to 10 actions" had one and "11 to 100 actions" all others."""
    lengths = [9, *range(12, 43), 1200]

    def of(lengths: list[int]) -> tuple[list[str], np.ndarray]:
        rows = [(f"t{i}", number) for i, length in enumerate(lengths) for number in range(length)]
        _, _, read = credit.from_columns(
            group=["q"] * len(rows), trace=[name for name, _ in rows], reward=[0.0] * len(rows), agent=["a"] * len(rows)
        )
        return units_of(read.traces, "length")

    names, unit = of(lengths)
    assert names == ["9 to 19 actions", "20 to 27 actions", "28 to 35 actions", "36 to 1,200 actions"]
    assert np.bincount(unit).tolist() == [9, 8, 8, 8]
    assert of([1] * 7 + [2, 3, 3])[0] == ["1 action", "2 actions", "3 actions"]  # equal ones are of one part


def test_what_a_success_cost_counts_failures_whose_cost_is_known_in_part(tmp_path: Path) -> None:
    """Runs that were killed, all failures, had no number, so a model that is dearer seemed to be a third cheaper."""
    (tmp_path / "prices.csv").write_text("model,input,output\nm,0,1000000\n")  # 1 for each token
    runs = [("a", 4, 2, 1.0), ("a", 1, 1, 0.0), ("b", 3, None, 0.0), ("b", 2, 2, 1.0), ("b", 9, 9, None)]
    lines = []
    for i, (system, *tokens, won) in enumerate(runs):
        events: list[dict[str, Any]] = []
        for k, count in enumerate(tokens):
            event = {"id": f"e{k}", "type": "message", "agent": "x", "model": "m", "input_tokens": 0}
            events.append(event | ({} if count is None else {"tokens": count}))
        lines.append(ALONE | {"trace_id": f"t{i}", "task_id": f"q{i}", "events": events, "edges": [], "costs": {},
                              "system": system, "rewards": {} if won is None else {"team": won}})  # fmt: skip
    traces, prices = native(tmp_path, *lines), read_prices(tmp_path / "prices.csv")
    found = with_costs(traces, trace_metrics(traces), prices)
    paid = success_costs(traces, found, *units_of(traces, "system"), prices)
    assert [(one.unit, one.cost, one.whole, one.traces) for one in paid] == [("a", 8.0, True, 2), ("b", 7.0, False, 2)]
    lost = "1 trace of b without an outcome cost 18"
    assert success_line(paid) == f"money for a success: a 8, b ≥ 7; {lost}"
    unknown = [dataclasses.replace(one, cost=0.0, whole=False) if one.unit == "b" else one for one in paid]
    assert success_line(unknown).startswith("money for a success: a 8, b not known")
    all_of_them = "money for a success: ≥ 7.5; 1 trace without an outcome cost 18"
    assert success_line(paid_for_success(traces, prices)) == all_of_them == questions(traces, None, prices)["paid"]
    printed = CliRunner().invoke(cli, ["summary", str(tmp_path), "--prices", str(tmp_path / "prices.csv")]).stdout
    assert f"\n{all_of_them}\n" in printed
    assert paid_for_success(traces) == [] == paid_for_success(traces, prices, success_at=2.0)


def test_what_a_success_cost_has_an_interval_over_tasks(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("model,input,output\nm,0,1000000\n")  # 1 for each token
    random, lines = np.random.default_rng(0), []
    for i in range(60):
        event = {"id": "e", "type": "message", "agent": "x", "model": "m", "input_tokens": 0}
        event["tokens"] = int(random.integers(50, 150))
        lines.append(ALONE | {"trace_id": f"t{i}", "task_id": f"q{i // 3}", "events": [event], "edges": [], "costs": {},
                              "rewards": {"team": float(random.random() < 0.5)}})  # fmt: skip
    traces, prices = native(tmp_path, *lines), read_prices(tmp_path / "prices.csv")
    (paid,) = paid_for_success(traces, prices)
    tokens = np.array([line["events"][0]["tokens"] for line in lines]).reshape(-1, 3).sum(axis=1)
    won = np.array([line["rewards"]["team"] for line in lines]).reshape(-1, 3).sum(axis=1)
    assert paid.cost == pytest.approx(tokens.sum() / won.sum(), rel=1e-6)
    assert (paid.low, paid.high) == pytest.approx(ratio_interval(tokens, won), rel=1e-6)
    spread = f"{paid.cost:.3g} (95 % interval {paid.low:.3g} to {paid.high:.3g})"
    assert success_line([paid]) == f"money for a success: {spread}", "40 words said more"


TEAMS = {  # births, deaths and size at each event; critical steps of each decision, None at other events
    "star": ("10011000", "00000111", [3, 3, 3, 3, 2, 3, 2, 1], [2, None, None, None, None, None, None, 1]),
    "debate": ("1100", "0011", [1, 2, 2, 1], [None] * 4),
    "alone": ("100", "001", [1, 1, 1], [1, None, 1]),
}


@pytest.mark.parametrize("form", ["native", "otlp", "survey"])
def test_teams_over_time_by_hand_in_three_forms(form: str, tmp_path: Path) -> None:
    traces = in_form(form, tmp_path, STAR, DEBATE, ALONE)
    team, (steps, reasons) = team_events(traces), steps_of_decisions(traces)
    names, owner = traces.traces["trace"].to_pylist(), np.asarray(traces.graph.trace_ids)
    for row, name in enumerate(names):
        births, deaths, size, critical = TEAMS[name]
        events = owner[: traces.sizes.events] == row
        assert team.births[events].tolist() == [mark == "1" for mark in births]
        assert team.deaths[events].tolist() == [mark == "1" for mark in deaths]
        assert team.size[events].tolist() == size
        assert [None if math.isnan(x) else x for x in steps[events]] == critical
        assert bool(reasons[row]) == (name == "debate")
    # After three tenths STAR has had 3 of 8 events, DEBATE 2 of 4, ALONE 1 of 3; the first two are one task. Workers of
    # STAR begin as they are started, since their first events end what they took.
    point = team_course(traces)[2]
    assert (point.births, point.deaths, point.size) == ((3 + 2) / 2 / 2 + 1 / 2, 0, (3 + 2) / 2 / 2 + 1 / 2)
    # The survey's form has no type `stop`.
    assert sorted((cost.agent, cost.decisions, cost.steps, cost.share) for cost in decision_costs(traces)) == [
        ("a", 1, 1, 1 / 5), ("a", 1, 1, 1 / 5), ("boss", 1, 1, 1 / 5), ("boss", 1, 2, 2 / 5),
    ]  # fmt: skip


def test_critical_steps_of_decisions_sum_to_those_of_the_trace(tmp_path: Path) -> None:
    """The slowest worker belongs to the decision that started it; what nobody started is refused."""
    rng = np.random.default_rng(39)
    for topology, fewest in FEWEST_AGENTS.items():
        world = TeamWorld(topology, agents=fewest + 3, events=60, kind="bernoulli")
        traces = assemble([copied(record) for record in healthy_team(rng, world, 4)])
        graph, n = traces.graph, traces.sizes.traces
        found, whole = decision_steps(graph), critical_steps(graph)
        sums = np.bincount(np.asarray(graph.trace_ids), found.steps, graph.num_traces)
        assert (sums == np.where(found.defined, whole.steps, 0)).all() and not (found.defined & ~whole.defined).any()
        assert found.defined[:n].all() or topology in ("debate", "planner_executor_critic", "mixed"), topology
    orphan = STAR | {"edges": [edge(text) for text in ("d s1 causal", "d s2 causal", "m1 r1 causal", "r1 z return")]}
    steps, reasons = steps_of_decisions(native(tmp_path, orphan))
    assert np.isnan(steps).all() and "no action of the main agent led to" in reasons[0]
    staged = STAR | {"events": [each | {"stage": int(each["id"] == "z")} for each in STAR["events"]]}
    steps, reasons = steps_of_decisions(native(tmp_path, staged))
    assert np.nansum(steps) == 3 and reasons == [""]


def test_the_command_shows_the_team_and_its_decisions(tmp_path: Path) -> None:
    native(tmp_path, STAR, DEBATE, ALONE)
    log, table = str(tmp_path / "log.jsonl"), tmp_path / "events.jsonl"
    shown = CliRunner().invoke(cli, ["metrics", log, "--of", "decisions", "-o", str(table)])
    assert shown.exit_code == 0 and "no single main agent" in shown.output, shown.output
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    assert rows[0] == {"trace": "star", "event": "d", "births": True, "deaths": False, "team_size": 3,
                       "critical_steps": 2.0}  # fmt: skip
    course = json.loads(CliRunner().invoke(cli, ["metrics", log, "--of", "team", "--json"]).stdout)
    assert [point["size"] for point in course["team"]][-1] == 1
    refused = CliRunner().invoke(cli, ["metrics", log, "--of", "team", "--by", "length"])
    assert refused.exit_code == 1 and "--by is for --of traces" in refused.output
    beside = CliRunner().invoke(cli, ["metrics", log, "--sides", "system", "--by", "length"])
    assert beside.exit_code == 1 and "--by is for metrics without --sides" in beside.output
    assert "columns `trace` and `side`" in beside.output


def test_the_card_states_what_the_log_tells_and_what_it_lacks(tmp_path: Path) -> None:
    lines = {line.item: line for line in run_card(native(tmp_path, STAR, DEBATE, ALONE))}
    assert lines["traces, tasks"].value == "3, 2"
    assert lines["tokens generated of a trace"].value == f"≥ {119 / 3:.6g}"
    assert lines["success, mean over tasks"].value == "0.75"
    assert lines["depth of spawning"].value == "1"
    assert lines["content references"].value == "6 events"
    assert lines["models"] == CardLine("policies", "models", "", "no trace names its model")
    assert "propensity" in lines["propensity"].missing and not lines["propensity"].value
    assert all(bool(line.value) != bool(line.missing) for line in lines.values())
    events = [{key: held for key, held in event.items() if key != "content_ref"} for event in DEBATE["events"]]
    reasons = {line.item: line.missing for line in run_card(native(tmp_path, STAR, DEBATE | {"events": events}))}
    # Two rows above, the same card said that one trace was a debate.
    assert reasons["consensus"].split("; ")[0] == "the team is no debate (1)", reasons["consensus"]


@pytest.mark.parametrize(("edges", "linked"), [((("u", "x"), ("u", "y")), False), ((("x", "u"), ("u", "y")), True)])
def test_a_user_who_speaks_to_two_agents_links_neither_to_the_other(
    edges: tuple[tuple[str, str], ...], linked: bool
) -> None:
    """One of two solvers of an episode, who never met, was called a free rider."""
    record = TraceRecord("t", "q", "log.jsonl", instances={name: Agent() for name in "uxy"})
    at = {name: record.event(name, EventType.MESSAGE, name, action=name != "u") for name in "xuy"}
    for source, target in edges:
        if at[source] > at[target]:
            at[target] = record.event(f"{target}2", EventType.MESSAGE, target, action=True)
        record.edge(at[source], at[target], EdgeType.MESSAGE)
    assert TeamFacts(assemble([record])).linked.tolist() == [linked]


@pytest.mark.parametrize(
    ("starts", "parallelism", "speed_up"),
    [
        ((1, 3, 5), 1, 1),  # one after another
        ((1, 1, 1), 8 / 4, 8 / 4),  # at once
        ((1, 1, 3), 8 / 4, 8 / 6),  # two at once: what edges order is told, and what the clock does
    ],
)
@pytest.mark.parametrize("stated", [True, False])
def test_children_of_one_event_ran_at_once_where_their_times_overlap(
    tmp_path: Path, starts: tuple[int, ...], parallelism: float, speed_up: float, stated: bool
) -> None:
    """A pipeline whose steps hang on one event had a parallelism, and seconds that it waited a speed-up below 1."""
    times = [("boss", 0), *((name, at + k) for name, at in zip("abc", starts, strict=True) for k in (0, 1))]
    rows = [*times, ("boss", max(starts) + 2)]
    events = [
        event(f"e{i}", "message", name, at, **({"seconds": 1} if stated else {})) for i, (name, at) in enumerate(rows)
    ]
    edges = [edge(f"e{one} e{other} causal") for k in (1, 3, 5) for one, other in ((0, k), (k, k + 1), (k + 1, 7))]
    log = {"trace_id": "t", "task_id": "q", "rewards": {"team": 1.0}, "costs": {}, "events": events, "edges": edges}
    untimed = [{key: of for key, of in one.items() if key not in ("t", "seconds")} for one in events]
    found = by_trace(native(tmp_path, log, log | {"trace_id": "u", "events": untimed}))
    assert found["t"]["parallelism"] == parallelism and found["u"]["parallelism"] == 2
    if stated or parallelism == 1:  # else when a child's first event began is a guess
        assert found["t"]["speed_up"] == pytest.approx(speed_up)


def test_events_that_follow_one_another_have_no_parallelism_where_clocks_overlap(tmp_path: Path) -> None:
    """A team of one agent had 1.07 seconds of work over those on its path, and a star beside its next version."""
    steps = [event(name, "message", "x", 2 * i, seconds=2.5) for i, name in enumerate("abcd")]
    chain = [edge(f"{one} {other} temporal") for one, other in ("ab", "bc", "cd")]
    log = {"trace_id": "t", "task_id": "q", "rewards": {"team": 1.0}, "costs": {}, "events": steps, "edges": chain}
    fork = {"trace_id": "u", "edges": [edge("a b causal"), edge("a c causal"), edge("b d causal"), edge("c d causal")]}
    at = {"a": 0.0, "b": 2.5, "c": 2.5, "d": 5.0}
    fork["events"] = [event(name, "message", name, time, seconds=2.5) for name, time in at.items()]
    found = by_trace(native(tmp_path, log, log | fork))
    assert (found["t"]["parallelism_seconds"], found["t"]["speed_up"]) == (1, 1)
    assert found["u"]["parallelism_seconds"] == pytest.approx(4 / 3) and found["u"]["speed_up"] > 1
