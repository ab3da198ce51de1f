"""Counts what the real logs of further formats hold, from their raw JSON, by rules stated in words.

Knows nothing of the library. `python tests/manifest/count_more.py PATH_OF_THE_LOGS` writes `manifest_more.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MANIFEST = Path(__file__).parent / "manifest_more.json"

RULES = {
    "verifiers": {
        "traces": "episodes with a node",
        "groups": "different group.id of these",
        "events": "nodes of role user, sampled nodes, their tool calls, and tool nodes",
        "actions": "sampled nodes",
        "agents": "traces of the episodes, and one user for each that has a node of role user",
        "tool_calls": "tool calls of sampled nodes",
        "tokens": "true entries of mask, over sampled nodes",
        "reward": "sum over episodes of score times weight, where all agents' sums are equal",
    },
    "spans": {
        "traces": "different trace_id",
        "actions": "spans of OpenInference's kind LLM, or of GenAI's operation chat",
        "agents": "spans of kind AGENT with a graph.node.id, or of operation invoke_agent",
        "tool_calls": "spans of kind TOOL, or of operation execute_tool, without an agent span below",
        "spawns": "agent spans below a tool span",
        "events": "actions, two for each tool call, two for each spawn",
        "tokens": "the actions' completion or output tokens",
    },
    "rollouts": {
        "traces": "lines",
        "groups": "different _ng_task_index",
        "actions": "output items of role assistant: no sample has reasoning or tool calls",
        "events": "output items",
        "agents": "two a line: the agent and the user",
        "reward": "sum of reward",
    },
    "tau2-bench": {
        "traces": "simulations",
        "groups": "different task_id",
        "actions": "messages of role assistant, less the greeting that each simulation begins with",
        "tool_calls": "entries of tool_calls",
        "events": "messages, and tool calls",
        "agents": "two a simulation",
        "tokens": "usage.completion_tokens of messages of role assistant",
        "reward": "sum of reward_info.reward",
    },
    "langfuse": {
        "traces": "one a file",
        "actions": "observations of type GENERATION",
        "tool_calls": "observations of type TOOL, or of type SPAN below one named tools",
        "events": "actions, and two for each tool call",
        "agents": "one: no sample has two",
        "tokens": "usageDetails.output of the actions",
        "reward": "none: two scores, neither named reward",
    },
    "openhands": {
        "traces": "lines",
        "groups": "different issues",
        "actions": "entries of history with an action, less the first message, which is the user's",
        "tool_calls": "these, less those of action message, finish, reject or think",
        "events": "entries of history with an action or an observation, and tool calls",
        "agents": "one a line",
        "reward": "lines with success",
    },
    "swe-agent": {
        "traces": "one a file",
        "actions": "steps of trajectory",
        "tool_calls": "steps with an action",
        "events": "three for each step with an action, else one",
        "agents": "one",
        "reward": "none: no results beside it",
    },
}


def numbers(**given: Any) -> dict[str, Any]:
    """All numbers of a file, with 0 or none for what is not given."""
    return {"spawns": 0, "tokens": None, "reward": None, **given}


def verifiers(path: Path) -> dict[str, Any]:
    episodes = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    episodes = [one for one in episodes if any(trace["nodes"] for trace in one["traces"])]
    traces = [trace for one in episodes for trace in one["traces"]]
    nodes = [node for trace in traces for node in trace["nodes"]]
    sampled = [node for node in nodes if node["sampled"]]
    calls = [call for node in sampled for call in node["message"].get("tool_calls", [])]
    roles = [node["message"]["role"] for node in nodes]
    users = sum(any(node["message"]["role"] == "user" for node in trace["nodes"]) for trace in traces)
    reward = 0.0
    for one in episodes:
        sums = [sum(r["score"] * r["weight"] for r in trace["rewards"].values() if r) for trace in one["traces"]]
        assert len(set(sums)) == 1
        reward += sums[0]
    return numbers(
        format="verifiers", traces=len(episodes), groups=len({one["group"]["id"] for one in episodes}),
        events=roles.count("user") + len(sampled) + len(calls) + roles.count("tool"), actions=len(sampled),
        agents=len(traces) + users, tool_calls=len(calls), tokens=sum(sum(node["mask"]) for node in sampled),
        reward=reward,
    )  # fmt: skip


def spans(path: Path) -> dict[str, Any]:
    listed = json.loads(path.read_text(encoding="utf-8"))
    parent = {one["span_id"]: one["parent_span_id"] for one in listed}

    def kind(one: dict[str, Any]) -> str:
        given = one["attributes"]
        operation = {"chat": "LLM", "invoke_agent": "AGENT", "execute_tool": "TOOL"}
        found = str(operation.get(given.get("gen_ai.operation.name", ""), given.get("openinference.span.kind", "")))
        workflow = found == "AGENT" and "openinference.span.kind" in given and "graph.node.id" not in given
        return "" if workflow else found

    kinds = {one["span_id"]: kind(one) for one in listed}
    around: dict[str, list[str]] = {}
    for name in kinds:
        current, found = parent[name], []
        while current in kinds:
            found.append(current)
            current = parent[current]
        around[name] = found
    agents = [name for name, found in kinds.items() if found == "AGENT"]
    started = {outer for name in agents for outer in around[name] if kinds[outer] == "TOOL"}
    spawned = [name for name in agents if any(kinds[outer] == "TOOL" for outer in around[name])]
    tools = [name for name, found in kinds.items() if found == "TOOL" and name not in started]
    calls = [one for one in listed if kinds[one["span_id"]] == "LLM"]
    keys = ("gen_ai.usage.output_tokens", "llm.token_count.completion")
    tokens = [one["attributes"][key] for one in calls for key in keys if key in one["attributes"]]
    return numbers(
        format="spans", traces=len({one["trace_id"] for one in listed}),
        groups=len({one["trace_id"] for one in listed}), events=len(calls) + 2 * len(tools) + 2 * len(spawned),
        actions=len(calls), agents=len(agents), tool_calls=len(tools), spawns=len(spawned), tokens=sum(tokens),
    )  # fmt: skip


def rollouts(path: Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    items = [item for row in rows for item in row["response"]["output"]]
    return numbers(
        format="rollouts", traces=len(rows), groups=len({row["_ng_task_index"] for row in rows}), events=len(items),
        actions=sum(item["role"] == "assistant" for item in items), agents=2 * len(rows), tool_calls=0,
        reward=sum(row["reward"] for row in rows),
    )  # fmt: skip


def tau2_bench(path: Path) -> dict[str, Any]:
    runs = json.loads(path.read_text(encoding="utf-8"))["simulations"]
    messages = [message for run in runs for message in run["messages"]]
    calls = sum(len(message.get("tool_calls") or []) for message in messages)
    own = [message for message in messages if message["role"] == "assistant"]
    usages = [message["usage"]["completion_tokens"] for message in messages if message.get("usage")]  # the user's, too
    return numbers(
        format="tau2-bench", traces=len(runs), groups=len({run["task_id"] for run in runs}),
        events=len(messages) + calls, actions=len(own) - len(runs), agents=2 * len(runs), tool_calls=calls,
        tokens=sum(usages), reward=sum(run["reward_info"]["reward"] for run in runs),
    )  # fmt: skip


def langfuse(path: Path) -> dict[str, Any]:
    listed = json.loads(path.read_text(encoding="utf-8"))["observations"]
    names = {one["id"]: one["name"] for one in listed}
    calls = [one for one in listed if one["type"] == "GENERATION"]
    tools = [
        one for one in listed
        if one["type"] == "TOOL" or (one["type"] == "SPAN" and names.get(one["parentObservationId"]) == "tools")
    ]  # fmt: skip
    return numbers(
        format="langfuse", traces=1, groups=1, events=len(calls) + 2 * len(tools), actions=len(calls), agents=1,
        tool_calls=len(tools), tokens=sum(one["usageDetails"]["output"] for one in calls),
    )  # fmt: skip


def openhands(path: Path) -> dict[str, Any]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    actions = [entry["action"] for row in rows for entry in row["history"][1:] if "action" in entry]
    results = sum("observation" in entry for row in rows for entry in row["history"])
    tools = [action for action in actions if action not in ("message", "finish", "reject", "think")]
    return numbers(
        format="openhands", traces=len(rows), groups=len({json.dumps(row["issue"]) for row in rows}),
        events=len(rows) + len(actions) + len(tools) + results, actions=len(actions), agents=len(rows),
        tool_calls=len(tools), reward=float(sum(row["success"] for row in rows)),
    )  # fmt: skip


def swe_agent(path: Path) -> dict[str, Any]:
    steps = json.loads(path.read_text(encoding="utf-8"))["trajectory"]
    tools = sum(bool(step["action"].strip()) for step in steps)
    return numbers(
        format="swe-agent", traces=1, groups=1, events=len(steps) + 2 * tools, actions=len(steps), agents=1,
        tool_calls=tools,
    )  # fmt: skip


FOLDERS = {
    "verifiers": verifiers,
    "otel_span_dumps": spans,
    "nemo_gym": rollouts,
    "tau2_bench": tau2_bench,
    "langfuse": langfuse,
    "openhands": openhands,
    "swe_agent": swe_agent,
}


def count(root: Path) -> dict[str, Any]:
    """The manifest of the logs under `root`."""
    found = {
        path.relative_to(root).as_posix(): counter(path)
        for folder, counter in FOLDERS.items()
        for path in sorted((root / folder).glob("*.*"))
        if path.suffix in (".json", ".jsonl", ".traj")
    }
    return {"rules": RULES, "files": found}


if __name__ == "__main__":
    MANIFEST.write_text(json.dumps(count(Path(sys.argv[1])), indent=2) + "\n", encoding="utf-8")
