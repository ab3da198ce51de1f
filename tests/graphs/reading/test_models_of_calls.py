"""Calls of several models in one trace: each keeps its own, in every form, so that money by model is right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.metrics.cost_summary import cost_rows
from credit.metrics.event_costs import Price, Prices, event_costs, price_gaps
from graphs.event_types import EdgeType, EventType
from graphs.reading.files import name_models
from graphs.traces.assembling import assemble
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models
from graphs.traces.record import Agent, TraceRecord
from graphs.writers import native, otlp

from .samples import SAMPLES
from .tracing.otlp.span_records import make

LATER: dict[str, dict[int, dict[str, Any]]] = {
    "codex": {8: {"timestamp": "2026-01-01T00:00:05.000Z", "type": "turn_context", "payload": {"model": "zz"}}},
    "copilot-cli": {5: {"type": "session.model_change", "id": "x", "timestamp": "2026-08-01T00:00:04.500Z",
                        "data": {"newModel": "zz"}}},
}  # fmt: skip
"""Lines to insert, by their number, from which on another model is asked."""


def named(traces: Traces) -> list[str]:
    """The models of the actions of the first trace, in order."""
    first = (traces.graph.trace_ids == 0) & traces.graph.action_mask
    names, model = event_models(traces)
    return [names[i] for i in model[first[: len(model)]]]


@pytest.mark.parametrize(
    "name", [*LATER, "adk", "braintrust", "gemini-cli before lines", "langfuse", "langgraph", "verifiers", "weave"]
)
def test_calls_of_two_models_keep_their_own_in_every_form(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    (tmp_path / "log").mkdir()
    path = sample.write(tmp_path / "log")
    model = credit.read(path).traces["model"][0].as_py()
    assert set(credit.read(path).events["model"].to_pylist()) == {None}  # the trace's is that of every call
    if name in LATER:
        lines = path.read_text().splitlines()
        for number, line in LATER[name].items():
            lines.insert(number, json.dumps(line))
        path.write_text("\n".join(lines))
    else:
        text = path.read_text()
        for place in (match.start() for match in re.finditer(f'"{model}"', text)):
            path.write_text(text[:place] + '"zz"' + text[place + len(model) + 2 :])
            if "zz" in named(credit.read(path)):
                break
    traces = credit.read(path)
    begins = next(name for name in traces.traces["model"].to_pylist() if name)  # one agent, or the first of several
    assert begins in (f"{model} + zz", named(traces)[0])
    assert set(named(traces)) == {model, "zz"}
    native.write(traces, tmp_path / "native.jsonl")
    otlp.write(traces, tmp_path / "otlp")
    for copy in ("native.jsonl", "otlp"):
        assert named(credit.read(tmp_path / copy)) == named(traces), copy
    prices = Prices({model: Price(1.0, 0.0), "zz": Price(2.0, 0.0)})  # no row of the joint name
    rows = {row.unit: row for row in cost_rows(traces, "model", prices)}
    for unit, price in (("zz", 2), (model, 1)):
        read = rows[unit].input_tokens.total
        assert rows[unit].money.total == (None if read is None else pytest.approx(price * read / 1e6))


def test_a_sub_agent_of_another_model_makes_no_other_model_of_the_trace(tmp_path: Path) -> None:
    record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent("main"), "s": Agent("scout", parent="a")})
    for name, kind, agent, model in (
        ("x", EventType.ORCHESTRATOR_DECISION, "a", "m"), ("spawn", EventType.SPAWN, "a", None),
        ("y", EventType.MESSAGE, "s", "n"),
    ):  # fmt: skip
        record.event(name, kind, agent, action=model is not None, model=model)
    for sender, receiver, form in ((0, 1, EdgeType.CAUSAL), (1, 2, EdgeType.SPAWN)):
        record.edge(sender, receiver, form)
    name_models(record)
    traces = assemble([record])
    assert traces.traces["model"].to_pylist() == ["m"] and named(traces) == ["m", "n"]
    native.write(traces, tmp_path / "native.jsonl")
    otlp.write(traces, tmp_path / "otlp")
    for copy in ("native.jsonl", "otlp"):
        read = credit.read(tmp_path / copy)
        assert read.traces["model"].to_pylist() == ["m"] and named(read) == ["m", "n"], copy


def supervised(number: int, called: str, model: str) -> TraceRecord:
    """A lead that calls one of its peers: none of them starts another."""
    record = TraceRecord(
        f"t{number}",
        "q",
        "log.jsonl",
        instances={"l": Agent("lead"), "p": Agent(called)},
    )
    record.event("x", EventType.MESSAGE, "l", action=True, model="m")
    record.event("y", EventType.MESSAGE, "p", action=True, model=model)
    record.rewards["team"] = float(number % 2)
    name_models(record)
    return record


@pytest.mark.parametrize(
    ("peers", "groups"),
    [
        ([("strong", "big"), ("weak", "m"), ("strong", "big"), ("weak", "m")], ["q"] * 4),
        ([("coder", "m"), ("coder", "m")], ["q"] * 2),
        ([("coder", "m"), ("coder", "big"), ("tester", "m")], ["q [m; coder: m]", "q [m; coder: big]", "q [m]"]),
    ],
)
def test_whom_a_team_calls_makes_no_other_policy(
    peers: list[tuple[str, str]], groups: list[str], tmp_path: Path
) -> None:
    """A group was one team's runs with equal calls: of specialists that always fail or succeed, none had a signal."""
    traces = assemble([supervised(number, *peer) for number, peer in enumerate(peers)])
    assert set(traces.traces["model"].to_pylist()) == {"m"}
    native.write(traces, tmp_path / "native.jsonl")
    otlp.write(traces, tmp_path / "otlp")
    for read in (traces, *(credit.read(tmp_path / copy) for copy in ("native.jsonl", "otlp"))):
        assert read.traces["group"].to_pylist() == groups
    batches = credit.read_chunks(tmp_path / "native.jsonl", events=1)
    assert [name for batch in batches for name in batch.traces["group"].to_pylist()] == groups


def test_a_trace_whose_log_states_models_of_calls_alone_has_that_of_the_agent_that_begins(tmp_path: Path) -> None:
    """The sides were said to differ in model, "none stated" against "big", where the lead was big in every run."""
    calls = [{"id": "a", "type": "message", "agent": "scout"}, {"id": "b", "type": "message", "agent": "lead"}]
    lines = [
        {"trace_id": f"t{i}", "task_id": "q", "rewards": {"team": i}, "edges": [], "agents": [{"id": "scout"}]}
        | {"events": [calls[1] | {"model": "big"}, calls[0] | {"model": "small"}][: 2 - i]}
        for i in range(2)
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = credit.read(tmp_path / "log.jsonl")
    assert read.traces["model"].to_pylist() == ["big", "big"] and read.traces["group"].to_pylist() == ["q", "q"]


def test_a_run_cut_short_is_in_the_group_of_its_task(tmp_path: Path) -> None:
    """Without its root its models were joined, a model of its own: its outcome left all comparisons of the task."""
    records = [supervised(number, "coder", "big") for number in range(3)]
    cut = TraceRecord("t3", "q", "log.jsonl", instances={"p": Agent("coder")}, missing="span 1")
    cut.event("y", EventType.MESSAGE, "p", action=True, model="big")
    name_models(cut)
    cut.metrics["cut_short"] = 1.0
    alone = TraceRecord("t4", "other", "log.jsonl", instances={"p": Agent("coder")}, metrics={"cut_short": 1.0})
    alone.event("y", EventType.MESSAGE, "p", action=True)
    again = TraceRecord("t5", "q", "log.jsonl", instances={"p": Agent("coder")}, missing="span 1")
    again.event("y", EventType.MESSAGE, "p", action=True, model="small")
    again.metrics["cut_short"] = 1.0
    name_models(again)
    traces = assemble([*records, cut, alone, again])
    assert traces.traces["model"].to_pylist() == ["m"] * 3 + [None] * 3
    assert traces.traces["group"].to_pylist() == ["q"] * 4 + ["other", "q"]
    native.write(traces, tmp_path / "native.jsonl")
    assert credit.read(tmp_path / "native.jsonl").traces["group"].to_pylist() == ["q"] * 4 + ["other", "q"]


def called(trace: int, at: int, **attributes: str) -> dict[str, Any]:
    """A model call of an agent that begins at a second: that of a failed one without a count of tokens."""
    model = {f"gen_ai.{name.replace('_', '.')}": text for name, text in attributes.items()}
    answered = "response_model" in attributes
    counts = {"gen_ai.usage.output_tokens": 5} if answered else {"error.type": "429"}
    about = {"gen_ai.operation.name": "chat", **model, **counts}
    return make.span(at, 1, at, at + 1, about, trace=f"{trace:032x}")


def test_a_call_without_an_answer_names_no_model_of_its_own(tmp_path: Path) -> None:
    """A call that a rate limit refused has the requested name alone, the others a dated one: with "m + m-2026" as
    another model its trace was of another policy, torn from its group."""

    def asks(trace: int, *calls: dict[str, Any]) -> list[dict[str, Any]]:
        return [make.agent(1, 0, 0, 9, "lead", trace=f"{trace:032x}"), *calls]

    answer, silent = {"request_model": "m", "response_model": "m-2026"}, {"request_model": "m"}
    other = {"request_model": "k"}
    spans = [
        *asks(1, called(1, 2, **answer), called(1, 3, **answer)),
        *asks(2, called(2, 2, **silent), called(2, 3, **answer)),  # answered in its trace
        *asks(3, called(3, 2, **silent)),  # in the log alone
        *asks(4, called(4, 2, **other), called(4, 3, **answer)),  # nowhere
        *asks(5, called(5, 2, request_model="m", response_model="m-2025"), called(5, 3, **silent)),
    ]
    make.write_lines(tmp_path / "log.jsonl", make.spans_request(spans))
    traces = credit.read(tmp_path / "log.jsonl")
    native.write(traces, tmp_path / "native.jsonl")
    otlp.write(traces, tmp_path / "otlp")
    for read in (traces, credit.read(tmp_path / "native.jsonl"), credit.read(tmp_path / "otlp")):
        assert read.traces["model"].to_pylist() == ["m-2026"] * 3 + ["k", "m-2025"]
        assert read.events["requested_model"].to_pylist() == ["m"] * 5 + [None] + ["m"] * 3
        assert read.events["model"].to_pylist() == traces.events["model"].to_pylist() == [None] * 5 + [
            "k", "m-2026", None, None,
        ]  # fmt: skip


def test_an_answer_that_names_no_model_is_of_the_requested_one_and_its_price_is_told(tmp_path: Path) -> None:
    """Two of three calls of "pro" had the price of "mini", which answered the third: 0.0036, not 0.0312."""
    silent, counts = {"request_model": "pro"}, {"usage_output_tokens": 1000, "usage_input_tokens": 0}
    answers = [silent, silent, silent | {"response_model": "mini"}, silent | {"response_model": "pro"}]
    dated = [{"request_model": "m"}, {"request_model": "m", "response_model": "m-2026-01"}]
    named_so = [{"operation_name": "chat", **of, **counts} for of in answers + dated]
    about = [{f"gen_ai.{key.replace('_', '.', 1)}": value for key, value in of.items()} for of in named_so]
    spans = [make.span(2, 0, 2, 3, of, trace=f"{k + 1:032x}") for k, of in enumerate(about)]
    spans += [make.span(k, 0, k, k + 1, about[k - 2], trace=f"{9:032x}") for k in (3, 4)]  # of both models
    make.write_lines(tmp_path / "log.jsonl", make.spans_request(spans))
    traces = credit.read(tmp_path / "log.jsonl")
    native.write(traces, tmp_path / "native.jsonl")
    otlp.write(traces, tmp_path / "otlp")
    prices = Prices({"pro": Price(3, 15), "mini": Price(0.3, 1.2), "m-2026-01": Price(0, 0)})
    said = "calls at the price of the requested model, as the answer names none: 3 of pro"
    for read in (traces, credit.read(tmp_path / "native.jsonl"), credit.read(tmp_path / "otlp")):
        names, model = event_models(read)
        assert [names[i] for i in model] == ["pro", "pro", "mini", "pro", "m-2026-01", "m-2026-01", "pro", "mini"]
        assert np.nansum(event_costs(read, prices).money) == pytest.approx(4 * 0.015 + 2 * 0.0012)
        assert price_gaps(read, prices).lines() == [said]


def test_a_native_call_that_states_the_requested_name_alone_has_it(tmp_path: Path) -> None:
    event = {"id": "e", "t": 0, "agent": "a", "type": "message", "tokens": 9, "requested_model": "pro"}
    line = {"task_id": "q", "edges": [], "rewards": {"team": 1.0}, "events": [event]}
    traces = [line | {"trace_id": "t"}, line | {"trace_id": "u", "model": "mini"}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in traces))
    names, model = event_models(credit.read(tmp_path / "log.jsonl"))
    assert [names[i] for i in model] == ["pro", "mini"]


def test_the_requested_name_of_a_failed_call_of_openinference_is_among_its_settings(tmp_path: Path) -> None:
    def call(trace: int, at: int, model: str, **counts: int) -> dict[str, Any]:
        about = {"openinference.span.kind": "LLM", "llm.model_name": model,
                 "llm.invocation_parameters": json.dumps({"temperature": 0, "model": "m"})}  # fmt: skip
        about |= {f"llm.token_count.{name}": count for name, count in counts.items()}
        return make.span(at, 0, at, at + 1, about, trace=f"{trace:032x}")

    spans = [call(1, 2, "m-2026", completion=5), call(2, 2, "m"), call(3, 2, "m", completion=5)]
    make.write_lines(tmp_path / "log.jsonl", make.spans_request(spans))
    traces = credit.read(tmp_path / "log.jsonl")
    assert traces.traces["model"].to_pylist() == ["m-2026", "m-2026", "m"]


def test_a_native_log_that_states_both_names_at_every_call_names_the_answers(tmp_path: Path) -> None:
    """All calls that got the model they asked for took the name of one that did not: money was off by six times."""
    lines = [
        {"trace_id": f"t{i}", "task_id": "q", "edges": [], "rewards": {"team": 1.0},
         "events": [{"id": "e", "t": 0, "agent": "a", "type": "message", "tokens": 9, "model": model,
                     "requested_model": "pro"}]}
        for i, model in enumerate(["pro", "mini", "pro"])
    ]  # fmt: skip
    (log := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    native.write(traces := credit.read(log), tmp_path / "again.jsonl")
    for read in (traces, credit.read(tmp_path / "again.jsonl")):
        assert read.traces["model"].to_pylist() == ["pro", "mini", "pro"]
        assert read.events["requested_model"].to_pylist() == [None, "pro", None]
