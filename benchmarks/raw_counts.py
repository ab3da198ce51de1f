"""Count what logs state by a plain walk over their JSON, beside what the readers make of them.

    python benchmarks/raw_counts.py FOLDER

Each file below the folder is read by itself, and counted by rules of a few lines a format, which share no code with the
readers: runs, model calls, uses of tools, output tokens, the sum of outcomes. A row names the file and both counts, and
what differs. "refused" is a file that is not read, with the reason; a format without a rule here is passed over.

The rules know no damage, no copies and no sub-agents in other files: a difference is a question, not yet a fault.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphs.errors import CreditError, NothingReadError
from graphs.event_types import EventType
from graphs.logs import read

Counts = Counter[str]
SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval")


def values(path: Path) -> list[Any]:
    """The JSON of a file: of an archive its members, else the whole, else its lines."""
    if path.suffix == ".eval":
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            return [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]
    text = path.read_text(encoding="utf-8")
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    return value if isinstance(value, list) else [value]


def chat(messages: list[Any]) -> Counts:
    """Replies of an assistant, and the tool calls in them."""
    replies = [message for message in messages if message.get("role") == "assistant"]
    return Counter(calls=len(replies), tools=sum(len(reply.get("tool_calls") or []) for reply in replies))


def claude_code(lines: list[Any]) -> Counts:
    """A call is a message id; its output tokens are the largest of its lines."""
    tokens: dict[str, int] = {}
    tools = set[str]()
    for line in lines:
        message = line.get("message")
        if line.get("type") != "assistant" or not isinstance(message, dict):
            continue
        said = (message.get("usage") or {}).get("output_tokens") or 0
        name = message.get("id") or line["uuid"]
        tokens[name] = max(tokens.get(name, 0), said)
        blocks = message["content"] if isinstance(message["content"], list) else []
        tools |= {block["id"] for block in blocks if block.get("type") == "tool_use"}
    return Counter(traces=1, calls=len(tokens), tools=len(tools), tokens=sum(tokens.values()))


def swe_agent(runs: list[Any]) -> Counts:
    """A step of SWE-agent is a call with one tool; of mini-swe-agent the messages are a chat."""
    if "messages" in runs[0]:
        return Counter(traces=1, calls=chat(runs[0]["messages"])["calls"])
    return Counter(traces=1, calls=len(runs[0]["trajectory"]))


def tau_bench(runs: list[Any]) -> Counts:
    found = sum((chat(run["traj"]) for run in runs), Counts())
    return found + Counter(traces=len(runs), outcome=sum(run["reward"] for run in runs))


def tau2_bench(results: list[Any]) -> Counts:
    found = Counts()
    for run in results[0]["simulations"]:
        messages = [message for message in run["messages"] if message["role"] in ("assistant", "user")]
        replies = [message for message in messages if message["role"] == "assistant"]
        if replies and messages[0] is replies[0] and not (replies[0].get("tool_calls") or replies[0].get("usage")):
            replies = replies[1:]  # the greeting that every simulation begins with
        used = sum(len(message.get("tool_calls") or []) for message in messages)
        tokens = sum((reply.get("usage") or {}).get("completion_tokens") or 0 for reply in replies)
        outcome = (run.get("reward_info") or {}).get("reward") or 0
        found += Counter(traces=1, calls=len(replies), tools=used, tokens=tokens, outcome=outcome)
    return found


def inspect_ai(logs: list[Any]) -> Counts:
    samples = [sample for log in logs for sample in (log["samples"] if "eval" in log else [log]) or []]
    found = Counter(traces=len(samples))
    for sample in samples:
        events = sample.get("events") or []
        scorers = [place for place, event in enumerate(events) if event.get("type") == "scorer"]
        for event in events[: scorers[0] if scorers else None]:  # scorers call models, too
            if event["event"] == "model":
                usage = event["output"].get("usage") or {}
                found += Counter(calls=1, tokens=usage.get("output_tokens") or 0)
            found["tools"] += event["event"] == "tool"
    return found


def atif(runs: list[Any]) -> Counts:
    found = Counts()
    for run in runs:
        within = atif(run.get("subagent_trajectories") or [])
        del within["traces"]
        found += within
        steps = [step for step in run["steps"] if step["source"] == "agent" and not step.get("is_copied_context")]
        found += Counter(
            traces=1,
            tools=sum(len(step.get("tool_calls") or []) for step in steps),
            tokens=sum((step.get("metrics") or {}).get("completion_tokens") or 0 for step in steps),
        )
    return found


def codex(lines: list[Any]) -> Counts:
    """Calls of tools, but searches that the model's service makes within a call; output tokens of the last total."""
    bodies = [line.get("payload") or line for line in lines]
    kinds = ("function_call", "local_shell_call", "custom_tool_call")
    totals = [(body.get("info") or {}).get("total_token_usage") for body in bodies if body.get("type") == "token_count"]
    tokens = next((total["output_tokens"] for total in reversed(totals) if total), 0)
    return Counter(traces=1, tools=sum(body.get("type") in kinds for body in bodies), tokens=tokens)


def openhands(rows: list[Any]) -> Counts:
    """Actions of the agent that use a tool."""
    histories = [row["history"] for row in rows] if "history" in rows[0] else [rows]
    silent = ("message", "finish", "reject", "think", "system", "recall", "change_agent_state", "null", "delegate")
    events = [
        event for history in histories for each in history for event in (each if isinstance(each, list) else [each])
    ]
    tools = [
        event for event in events
        if event and event.get("action") not in (None, *silent) and event.get("source", "agent") == "agent"
    ]  # fmt: skip
    return Counter(traces=len(histories), tools=len([e for e in tools if not e["action"].startswith("condensation")]))


def who_and_when(runs: list[Any]) -> Counts:
    return Counter(traces=len(runs))


def adk(runs: list[Any]) -> Counts:
    """Events of agents that hold a call of a function."""
    events = [event for run in runs for event in run.get("events") or []]
    parts = [part for event in events for part in (event.get("content") or {}).get("parts") or []]
    used = [part.get("functionCall") or part.get("function_call") for part in parts]
    return Counter(traces=len(runs), tools=len([use for use in used if use]))


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span, as an object or as OTLP's list of keys and values."""
    stated = span.get("attributes") or {}
    if isinstance(stated, dict):
        return stated
    return {item["key"]: next(iter(item["value"].values()), None) for item in stated}


def spans(found: Iterator[dict[str, Any]]) -> Counts:
    """Calls of models and tools by the conventions of OpenTelemetry and OpenInference."""
    counts, traces = Counts(), set[str]()
    for span in found:
        stated = attributes(span)
        context = span.get("context") or span
        traces.add(str(context.get("trace_id") or context.get("traceId")))
        kind = str(stated.get("openinference.span.kind", "")).upper()
        operation = stated.get("gen_ai.operation.name")
        counts["calls"] += kind == "LLM" or operation in ("chat", "generate_content", "text_completion")
        counts["tools"] += kind in ("TOOL", "RETRIEVER", "EMBEDDING", "RERANKER") or operation == "execute_tool"
    return counts + Counter(traces=len(traces))


def otlp(batches: list[Any]) -> Counts:
    return spans(
        span
        for batch in batches
        for resource in batch.get("resourceSpans") or []
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    )


def dumped(items: list[Any]) -> Counts:
    return spans(span for item in items for span in (item.get("spans") or item.get("data", {}).get("spans") or [item]))


def object_of(value: Any) -> dict[str, Any]:
    """An object, or one as its JSON text; else an empty one."""
    found = json.loads(value) if isinstance(value, str) and value.startswith("{") else value
    return found if isinstance(found, dict) else {}


def langfuse(items: list[Any]) -> Counts:
    rows = {row["id"]: row for item in items for row in item.get("observations") or item.get("data") or [item]}
    traces = {row.get("traceId") or row.get("trace_id") for row in rows.values()}
    kinds = Counter(row["type"] for row in rows.values())
    calls = {row["id"] for row in rows.values() if row["type"] == "GENERATION"}
    outer = {row.get("parentObservationId") for row in rows.values() if row["id"] in calls}  # one call, told twice
    plain = [
        object_of(object_of(row.get("metadata")).get("attributes")) for row in rows.values() if row["type"] == "SPAN"
    ]
    tools = kinds["TOOL"] + kinds["RETRIEVER"] + sum("gen_ai.tool.call.id" in attributes for attributes in plain)
    return Counter(traces=len(traces), calls=len(calls - outer), tools=tools)


def openai_agents(items: list[Any]) -> Counts:
    kinds = Counter((item.get("span_data") or {}).get("type") for item in items)
    traces = {item.get("trace_id") or item.get("id") for item in items}
    return Counter(traces=len(traces), calls=kinds["generation"] + kinds["response"], tools=kinds["function"])


def rollouts(rows: list[Any]) -> Counts:
    """Rows, of NeMo Gym also the calls of functions; a row that its writer counts as failed has no outcome."""
    valid = [row for row in rows if not (row.get("_ng_failure_class") or row.get("mask_sample"))]
    outcome = sum(row.get("reward") or sum(row.get("rewards") or []) for row in valid)
    outputs = [(row.get("response") or {}).get("output") or [] for row in rows]
    last = [output[-1] if output and isinstance(output[-1], list) else output for output in outputs]  # Aviary's states
    items = [item for output in last for item in output]
    tools = sum(
        item.get("type") in ("function_call", "custom_tool_call", "mcp_call", "local_shell_call") for item in items
    )
    return Counter(traces=len(rows), tools=tools, outcome=outcome)


def verifiers(rows: list[Any]) -> Counts:
    """Rows of results before version 1; an episode of version 1 is a trace."""
    if "completion" not in rows[0]:
        return Counter(traces=len(rows))
    found = sum((chat(row["completion"]) for row in rows if isinstance(row["completion"], list)), Counts())
    return found + Counter(traces=len(rows), outcome=sum(row["reward"] for row in rows))


def gemini_cli(lines: list[Any]) -> Counts:
    """Messages of the model; a message that stands in several lines counts once, by its last."""
    messages = {each["id"]: each for line in lines for each in line.get("messages") or [line] if each.get("id")}
    said = [each for each in messages.values() if each.get("type") == "gemini"]
    return Counter(traces=1, calls=len(said), tools=sum(len(each.get("toolCalls") or []) for each in said))


def weave(calls: list[Any]) -> Counts:
    """Calls by their kind."""
    kinds = Counter(((call.get("attributes") or {}).get("weave") or {}).get("kind") for call in calls)
    return Counter(calls=kinds["llm"], tools=kinds["tool"] + kinds["search"])


def braintrust(rows: list[Any]) -> Counts:
    kinds = Counter(row["span_attributes"].get("type") for row in rows)
    handed = sum(bool((row.get("metadata") or {}).get("to_agent")) for row in rows)
    roots = {row["root_span_id"] for row in rows}
    outcome = sum(sum(filter(None, (row.get("scores") or {}).values())) for row in rows)
    return Counter(traces=len(roots), calls=kinds["llm"], tools=kinds["tool"] + handed, outcome=outcome)


RULES: dict[str, Callable[[list[Any]], Counts]] = {
    "claude-code": claude_code, "swe-agent": swe_agent, "tau-bench": tau_bench, "tau2-bench": tau2_bench,
    "inspect-ai": inspect_ai, "atif": atif, "codex": codex, "openhands": openhands, "who-and-when": who_and_when,
    "adk": adk, "otlp": otlp, "spans": dumped, "langfuse": langfuse, "openai-agents": openai_agents,
    "rollouts": rollouts, "verifiers": verifiers, "weave": weave, "braintrust": braintrust, "gemini-cli": gemini_cli,
}  # fmt: skip


def ours(path: Path) -> tuple[str, dict[str, float], str]:
    """The format of a file, what is read of it, and the kinds of problems."""
    traces = read(path)
    num_events, graph = traces.sizes.events, traces.graph
    types = Counter(EventType(int(kind)) for kind in graph.event_type[:num_events])
    outcome = np.asarray(traces.reward[: traces.sizes.traces], np.float64)
    tokens = traces.evidence.get("tokens")
    found: dict[str, float] = {
        "traces": traces.sizes.traces,
        "calls": int(graph.action_mask.sum()),
        "tools": types[EventType.TOOL_CALL] + types[EventType.SPAWN],
        "tokens": 0 if tokens is None else int(tokens.amounts.sum()),
        "outcome": math.fsum(outcome[np.isfinite(outcome)]),
    }
    kinds = ", ".join(sorted({problem.kind for problem in traces.problems}))
    return traces.traces["format"][0].as_py(), found, kinds


def compare(path: Path) -> tuple[str, str]:
    """The format of a file, and both counts where they differ."""
    try:
        name, found, kinds = ours(path)
    except CreditError as error:
        problems = error.problems if isinstance(error, NothingReadError) else ()
        first = next((problem for problem in problems if problem.is_failure), error)
        return "", f"refused: {str(first)[:300]}"
    if name not in RULES:
        return "", f"no rule for {name}"
    raw = RULES[name](values(path))
    pairs = {key: (raw[key], found[key]) for key in ("traces", "calls", "tools", "tokens", "outcome") if raw[key]}
    wrong = {key: pair for key, pair in pairs.items() if not math.isclose(*pair, rel_tol=1e-6)}  # of single precision
    counted = " ".join(f"{key}={pair[0]:g}" for key, pair in pairs.items())
    differs = " ".join(f"{key}: {pair[0]:g} raw, {pair[1]:g} read" for key, pair in wrong.items())
    return name, f"{'DIFFERS ' + differs if wrong else 'equal'} | {counted} | {kinds}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    tried: Counter[str] = Counter()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file()):
        name, said = compare(path)
        tried[name] += 1
        print(f"{name or '-'} | {path.relative_to(folder)} | {said}", flush=True)
    print(", ".join(f"{count} {name or 'not counted'}" for name, count in sorted(tried.items())))


if __name__ == "__main__":
    main()
