"""What logs state that model calls cost, summed over a trace, in each format; one call without it leaves no sum."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.metrics.cost_summary import OF_TOOLS, Amount, cost_rows, total_costs
from credit.metrics.event_costs import Price, Prices, price_gaps
from graphs.formats.common.team import Team
from graphs.logs import read
from graphs.reading.documents import Place
from graphs.traces.assembling import assemble
from graphs.traces.record import TraceRecord
from tests.credit.cli.logs import run, trace, write

from .all_formats import ALL
from .coding.claude_code.logs import column, inline, only
from .samples import RECORDINGS

PRICE = 0.000234
Put = Callable[[dict[str, Any]], None]


def of_weave(call: dict[str, Any]) -> None:
    (model,) = call["summary"]["usage"]
    costs = {"prompt_tokens_total_cost": 0.0002, "completion_tokens_total_cost": 0.000034}
    call["summary"].setdefault("weave", {})["costs"] = {model: costs}


def attribute(key: str) -> Put:
    return lambda span: span["attributes"].append({"key": key, "value": {"doubleValue": PRICE}})


def named(key: str, value: Any) -> Callable[[dict[str, Any]], bool]:
    return lambda item: item.get(key) == value


def has(key: str, value: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a span of OTLP has an attribute."""
    return lambda item: {"key": key, "value": {"stringValue": value}} in (item.get("attributes") or [])


CALLS: dict[str, tuple[str, Callable[[dict[str, Any]], bool], Put]] = {
    "langfuse, version 3": (
        "langfuse page", named("type", "GENERATION"),
        lambda call: call.update(costDetails={"input": 0.0002, "output": 0.000034, "total": PRICE}),
    ),
    "langfuse, a total": (
        "langfuse lines", named("type", "GENERATION"), lambda call: call.update(totalCost=PRICE, costDetails={}),
    ),
    "langfuse, a decimal": (
        "langfuse", named("type", "GENERATION"), lambda call: call.update(calculatedTotalCost=str(PRICE)),
    ),
    "langsmith": ("langsmith", named("run_type", "llm"), lambda run: run.update(total_cost=str(PRICE))),
    "weave": ("weave", lambda item: bool(item.get("op_name") and item.get("summary", {}).get("usage")), of_weave),
    "otlp of openinference": (
        "otlp of openinference", has("openinference.span.kind", "LLM"), attribute("llm.cost.total"),
    ),
    "otlp of gen_ai": ("otlp of gen_ai", has("gen_ai.operation.name", "chat"), attribute("gen_ai.usage.cost")),
    "pydantic-ai": ("otlp of gen_ai", has("gen_ai.operation.name", "chat"), attribute("operation.cost")),
    "opencode": ("opencode", named("role", "assistant"), lambda about: about.update(cost=PRICE)),
    "inspect-ai": (
        "inspect-ai", named("event", "model"),
        lambda call: call["output"].setdefault("usage", {}).update(total_cost=PRICE),
    ),
    "claude-code": ("claude-code", named("type", "assistant"), lambda line: line.update(costUSD=PRICE)),
    "cline": ("cline", named("role", "assistant"), lambda call: call.setdefault("metrics", {}).update(cost=PRICE)),
    "braintrust": (
        "braintrust", lambda row: row.get("span_attributes", {}).get("type") == "llm",
        lambda row: row["metrics"].update(estimated_cost=PRICE),
    ),
    "atif": ("atif", named("source", "agent"), lambda step: step.setdefault("metrics", {}).update(cost_usd=PRICE)),
}  # fmt: skip


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


@pytest.mark.parametrize("name", CALLS)
def test_money_of_calls_is_that_of_the_trace(name: str, tmp_path: Path) -> None:
    sample, is_call, place = CALLS[name]
    of = ALL[sample]
    values = copy.deepcopy(of.values)
    calls = [item for item in objects(values) if is_call(item)]
    path = of._replace(values=values).write(tmp_path)
    assert "costs.money" not in read(path).evidence
    for call in calls[1:]:
        place(call)
    of._replace(values=values).write(tmp_path)
    lacking = read(path)
    stated = lacking.evidence.get("costs.money")
    assert (0 if stated is None else len(stated.rows)) == lacking.sizes.traces - 1
    place(calls[0])
    of._replace(values=values).write(tmp_path)
    traces = read(path)
    actions = np.bincount(np.asarray(traces.graph.trace_ids), np.asarray(traces.graph.action_mask))
    money = traces.evidence["costs.money"].array[: traces.sizes.traces].tolist()
    assert money == pytest.approx((PRICE * actions[: traces.sizes.traces]).tolist())
    of_calls, calls_of_all = traces.evidence["money"].amounts.tolist(), int(actions.sum())
    assert of_calls == pytest.approx([PRICE] * calls_of_all)


EMBEDDINGS: dict[str, list[dict[str, Any]]] = {
    "langfuse": [
        {"id": name, "traceId": "t", "type": kind, "name": name, "parentObservationId": parent, "model": model,
         "startTime": f"2026-01-01T00:00:0{at}.000Z", "costDetails": {"total": money}}
        for at, (name, kind, parent, model, money) in enumerate([
            ("c", "GENERATION", None, "m", 0.25), ("search", "RETRIEVER", None, None, 0),
            ("e", "EMBEDDING", "search", "embedder", 0.5), ("f", "EMBEDDING", None, "embedder", 1.0),
        ])
    ],
    "langsmith": [
        {"id": name, "trace_id": "r", "name": name, "run_type": kind, "parent_run_id": parent,
         "dotted_order": f"{'a0r' if parent else ''}.a{at}{name}".strip("."), "total_cost": money}
        for at, (name, kind, parent, money) in enumerate([
            ("r", "chain", None, 1.75), ("c", "llm", "r", 0.25), ("search", "retriever", "r", 0.5),
            ("e", "embedding", "search", 0.5), ("f", "embedding", "r", 1.0),
        ])
    ],
    "otlp": [{"resourceSpans": [{"scopeSpans": [{"spans": [
        {"traceId": "1" * 32, "spanId": f"{at + 1:016x}", "parentSpanId": parent, "name": kind,
         "startTimeUnixNano": str(at + 1), "endTimeUnixNano": str(10 - at), "attributes": [
            {"key": "openinference.span.kind", "value": {"stringValue": kind}},
            {"key": "llm.cost.total", "value": {"doubleValue": money}},
        ]}
        for at, (kind, parent, money) in enumerate([
            ("LLM", "", 0.25), ("RETRIEVER", "", 0.0), ("EMBEDDING", f"{2:016x}", 0.5), ("EMBEDDING", "", 1.0),
        ])
    ]}]}]}],
}  # fmt: skip


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_money_of_embeddings_is_of_the_trace_too(name: str, tmp_path: Path) -> None:
    """They are events of tools, whose money was dropped: 22.852 where the log had 28.202."""
    (path := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in EMBEDDINGS[name]))
    traces = read(path)
    assert traces.evidence["costs.money"].amounts.tolist() == [1.75]
    assert sorted(traces.evidence["money"].amounts.tolist()) == [0.25, 0.5, 1.0]
    rows = {row.unit: row.logged_money for row in cost_rows(traces, by="model")}
    assert rows.pop(OF_TOOLS) == Amount(1.5, 0) and [*rows.values()] == [Amount(0.25, 0)]


@pytest.mark.parametrize("name", ["langfuse", "otlp"])
@pytest.mark.parametrize("several", [False, True])
def test_a_model_of_embeddings_has_its_tokens_and_its_price(name: str, several: bool, tmp_path: Path) -> None:
    """It had no row, no price and no mark, as if it had read nothing; then a note alone."""
    lines = json.loads(json.dumps(EMBEDDINGS[name]))
    if name == "langfuse":
        for line in lines[2:]:
            line["usageDetails"] = {"input": 4000, "total": 4000}
        lines[0]["usageDetails"] = {"input": 100, "output": 10}
        if several:
            lines.append(lines[2] | {"id": "g", "model": "other"})
    else:
        spans = lines[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
        more = [{"llm.model_name": "m", "llm.token_count.prompt": 100, "llm.token_count.completion": 10}, {}]
        more += [{"embedding.model_name": "embedder", "llm.token_count.prompt": 4000}] * 2
        for span, of in zip(spans, more, strict=True):
            kinds = {key: {"stringValue" if isinstance(one, str) else "intValue": one} for key, one in of.items()}
            span["attributes"] += [{"key": key, "value": one} for key, one in kinds.items()]
        if several:
            spans.append(json.loads(json.dumps(spans[2]).replace("embedder", "other")) | {"spanId": "9" * 16})
    (path := tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    traces, prices = read(path), Prices({"m": Price(1, 4), "embedder": Price(0.1, 0)})
    rows = {row.unit: row for row in cost_rows(traces, "model", prices)}
    placed = 1 if several else 2  # the tool for which two models embed has neither
    assert rows["embedder"].input_tokens == Amount(4000.0 * placed, 0)
    assert rows["embedder"].money.total == pytest.approx(0.0004 * placed)
    assert rows["embedder"].logged_money == Amount(1.0 if several else 1.5, 0)
    assert (rows["m"].input_tokens, rows["m"].money.total) == (Amount(100.0, 0), pytest.approx(0.00014))
    assert rows["m"].events == 3 + several, "what comes back from a tool is of the model that called it"
    assert traces.traces["model"].to_pylist() == ["m"], "a tool's model is no other policy"
    assert price_gaps(traces, Prices({"m": Price(1, 4)})).unpriced == ["embedder"]
    notes = [one for one in traces.problems if one.kind == "embedded-tokens"]
    assert sorted(one.value for one in notes) == ["'embedder'", "'other'"] * several
    assert all("4,000 tokens" in one.expected and not one.is_failure for one in notes)


def test_money_on_every_line_of_a_call_counts_once(tmp_path: Path) -> None:
    """Claude Code of 2025 had the whole call's money on each of its lines, and 0 where it did not know it yet."""
    log = inline()
    replies = [line for line in log.lines if line["type"] == "assistant"]
    for line in replies:
        line["costUSD"] = PRICE
    replies[0]["costUSD"] = 0
    record = only(log.write(tmp_path / "log.jsonl"))
    assert len(replies) == 9 and sum(record.actions) == 6
    assert record.costs["money"] == pytest.approx(6 * PRICE)
    assert [money for money in column(record, "money") if money is not None] == [PRICE] * 6
    log.human("as summed up", isCompactSummary=True)  # by a call that is in no line
    assert "money" not in only(log.write(tmp_path / "log.jsonl")).costs


def test_money_of_a_whole_run_is_read(tmp_path: Path) -> None:
    """ATIF states it of a trajectory with its sub-agents, and Harbor of a trial; neither was read."""
    of = ALL["atif"]
    values = copy.deepcopy(of.values)
    values[0]["final_metrics"] = {"total_cost_usd": 0.5}
    assert read(of._replace(values=values).write(tmp_path)).evidence["costs.money"].amounts.tolist() == [0.5]
    values[0]["continued_trajectory_ref"] = "gone.json"  # what is stated may be the part's alone
    assert "costs.money" not in read(of._replace(values=values).write(tmp_path)).evidence
    shutil.copytree(RECORDINGS / "harbor_job", tmp_path / "job")
    (result, *_) = sorted((tmp_path / "job").glob("*/result.json"))
    document = json.loads(result.read_text())
    document["agent_result"]["cost_usd"] = 0.25
    result.write_text(json.dumps(document))
    assert read(tmp_path / "job").evidence["costs.money"].amounts.tolist() == [0.25]


def test_a_sum_that_lacks_a_line_is_no_sum_of_the_trace() -> None:
    """Of a session without a sub-agent's file it stood for the whole; what a program states as a whole stays."""
    for stated in ({}, {"money": 9.0}):
        record = TraceRecord("t", "q", "log.jsonl", costs=dict(stated))
        team = Team(record)
        team.agent("a", "a")
        team.call("a", "x", Place("log.jsonl", 1, 0), money=0.5)
        assert team.finish().costs == (stated or {"money": 0.5})
        record.lost_part()
        assert record.costs == stated and record.metrics == {"lost_parts": 1, "unlogged_calls": 1}


def test_money_of_calls_is_summed_by_agent_and_model_as_logged() -> None:
    """The log said what each call cost, and which agent cost what needed a table of prices."""
    record = TraceRecord("t", "q", "x")
    team = Team(record)
    for agent in ("a", "b"):
        team.agent(agent, agent)
    for i, (agent, model, money) in enumerate((("a", "m", 0.5), ("b", "m", 0.25), ("b", "n", None))):
        team.call(agent, str(i), Place("x", 1, 0), money=money, model=model, tokens=1, input_tokens=1)
    team.tool_call("a", "tool", Place("x", 1, 0), tool="web")
    traces = assemble([team.finish()])
    of = {row.unit: row.logged_money for by in ("agent", "model") for row in cost_rows(traces, by)}
    assert of == {"a": Amount(0.5, 0), "b": Amount(0.25, 1), "m": Amount(0.75, 0), "n": Amount(None, 1)}
    assert total_costs(cost_rows(traces)).logged_money == Amount(0.75, 1) and "costs.money" not in traces.evidence


def test_costs_say_which_money_is_the_logs(tmp_path: Path) -> None:
    event = {"id": "e", "type": "message", "agent": "a", "tokens": 10, "input_tokens": 10, "money": 0.125}
    log = write(tmp_path / "x.jsonl", [trace("t", "q", 1.0, events=[event], edges=[], model="m")])
    prices = tmp_path / "prices.csv"
    prices.write_text("model,input,output\nm,1,1\n")
    head, row = run("costs", log).stdout.splitlines()[:2]
    assert head.endswith("logged cost") and row.split()[-1] == "0.125"
    head, row = run("costs", log, "--prices", prices).stdout.splitlines()[:2]
    assert head.split()[-3:] == ["money", "logged", "cost"] and row.split()[-2:] == ["2e-05", "0.125"]
    assert "logged cost" not in run("costs", log, "--by", "trace").stdout
    event["money"] = -1
    bad = run("costs", write(tmp_path / "x.jsonl", [trace("t", "q", 1.0, events=[event], edges=[])]))
    assert bad.exit_code and "money is -1.0; expected a number, 0 or more" in bad.stderr
