"""Counts what the real logs hold, from their raw JSON, by rules stated in words; knows nothing of the library.

Run `python tests/manifest/count.py PATH_OF_THE_LOGS` to write `manifest.json` anew beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MANIFEST = Path(__file__).parent / "manifest.json"

RULES = {
    "tau-bench": {
        "traces": "elements of the file's list",
        "groups": "different task_id",
        "events": "messages that are not of role system, and every tool call but the first of a message without text",
        "actions": "messages of role assistant",
        "agents": "over all runs, the different roles among user and assistant that wrote a message",
        "tool_calls": "entries of tool_calls over all messages",
        "spawns": "none: nobody starts anybody",
        "tokens": "none: the format has no token counts",
        "input_tokens": "none: the format has no token counts",
        "reward": "sum of reward",
    },
    "claude-code": {
        "files": "a session's file and the agent-*.jsonl in the folder of its name, no agent-acompact-*",
        "traces": "one for each session file",
        "groups": "one for each session file: there are no tasks",
        "actions": "different message.id on lines of type assistant whose model is not <synthetic>",
        "spawns": "different ids of tool_use blocks named Task or Agent whose answer's toolUseResult is an object",
        "agents": "one, and one for each spawn: no sample wakes an agent a second time",
        "tool_calls": "different ids of tool_use blocks on lines of type assistant, without the spawns",
        "events": "actions, different ids of tool_use blocks, tool_result blocks on lines of type user, and "
        "human texts: lines of type user outside sub-agents, without tool_result, neither isMeta nor isCompactSummary",
        "tokens": "for each different message.id the largest usage.output_tokens among its lines, added up, where "
        "one of the lines has a stop_reason or the lines differ in it; none where no message.id is such",
        "input_tokens": "likewise, of input_tokens + cache_creation_input_tokens + cache_read_input_tokens",
        "reward": "none: the format has no outcome",
    },
    "openai-agents": {
        "traces": "different ids of objects of type trace",
        "groups": "as many: a conversation is no task",
        "actions": "spans of type generation or response",
        "spawns": "spans of type handoff; no sample has an agent as a tool",
        "agents": "spans of type agent; no sample hands back",
        "tool_calls": "spans of type function",
        "events": "actions, spawns, two for each tool call: it and its result",
        "tokens": "none: the sample is older than the usage of response spans",
        "input_tokens": "likewise",
        "reward": "none: the format has no outcome",
    },
    "inspect-ai": {
        "traces": "samples",
        "groups": "different ids of samples",
        "actions": "events of type model with a choice, outside spans and steps of type scorer",
        "spawns": "none: no sample has spans of type agent",
        "agents": "one a sample",
        "tool_calls": "events of type tool",
        "events": "actions, events of type input, two for each tool call: it and its result",
        "tokens": "output_tokens of the actions, added up",
        "input_tokens": "input_tokens of the actions, added up",
        "reward": "one for each sample whose only score is C, none for one that is I",
    },
    "atif": {
        "traces": "one a file",
        "groups": "one a file: there are no tasks",
        "actions": "steps of source agent",
        "spawns": "none: no sample refers to another trajectory",
        "agents": "one",
        "tool_calls": "entries of tool_calls",
        "events": "actions, steps of source user, tool calls, results of observations",
        "tokens": "none: the samples have no metrics",
        "input_tokens": "likewise",
        "reward": "none: the format has no outcome",
    },
    "who-and-when": {
        "traces": "one a file",
        "groups": "one a file; over several, different question_ID",
        "events": "messages",
        "actions": "messages that are not of Computer_terminal and not of role human",
        "agents": "different names, or roles up to the bracket, and agents asked with an arrow; no terminal, no human",
        "spawns": "different agents asked with an arrow",
        "tool_calls": "messages of an agent with the terminal's right behind",
        "tokens": "none: the format has no token counts",
        "input_tokens": "likewise",
        "reward": "none of the runs was solved: 0 a file where is_correct or is_corrected is false",
    },
    "questions": "different question_ID of Who&When, each a group however many runs it has",
    "refused": {
        "files": "the event streams *_atof.jsonl and the console dump otel_traces_*: of no supported format",
    },
}

FOLDERS = {
    "tau_bench_airline": "tau-bench",
    "claude_code_inline": "claude-code",
    "claude_code_subagent_files": "claude-code",
    "openai_agents_sdk": "openai-agents",
    "inspect_ai": "inspect-ai",
    "atif_examples": "atif",
    "who_and_when": "who-and-when",
}


def count_tau_bench(path: Path) -> dict[str, Any]:
    """Numbers of one result file."""
    runs = json.loads(path.read_text(encoding="utf-8"))
    messages = [message for run in runs for message in run["traj"]]
    calls = [len(message.get("tool_calls") or []) for message in messages]
    first_is_the_message = [bool(message.get("tool_calls")) and not message.get("content") for message in messages]
    return {
        "format": "tau-bench",
        "traces": len(runs),
        "groups": len({run["task_id"] for run in runs}),
        "events": sum(m["role"] != "system" for m in messages) + sum(calls) - sum(first_is_the_message),
        "actions": sum(message["role"] == "assistant" for message in messages),
        "agents": sum(len({m["role"] for m in run["traj"]} & {"user", "assistant"}) for run in runs),
        "tool_calls": sum(calls),
        "spawns": 0,
        "tokens": None,
        "input_tokens": None,
        "reward": sum(run["reward"] for run in runs),
    }


def parts_of(path: Path) -> list[Path]:
    """Files of a session's sub-agents."""
    found = sorted((path.parent / path.stem / "subagents").glob("agent-*.jsonl"))
    return [part for part in found if not part.name.startswith("agent-acompact-")]


def count_claude_code(path: Path) -> dict[str, Any]:
    """Numbers of one session."""
    lines = [
        json.loads(text)
        for part in [path, *parts_of(path)]
        for text in part.read_text(encoding="utf-8").split("\n")
        if text
    ]
    replies = [x for x in lines if x["type"] == "assistant" and x["message"].get("model") != "<synthetic>"]
    prompts = [x for x in lines if x["type"] == "user"]

    output: dict[str, int] = {}
    final = set()
    context: dict[str, int] = {}
    for line in replies:
        name, usage = line["message"]["id"], line["message"]["usage"]
        read = usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]
        if line["message"].get("stop_reason") or output.get(name, usage["output_tokens"]) != usage["output_tokens"]:
            final.add(name)
        output[name] = max(output.get(name, 0), usage["output_tokens"])
        context[name] = max(context.get(name, 0), read)

    uses = {}
    for line in replies:
        for block in line["message"]["content"]:
            if block["type"] == "tool_use":
                uses[block["id"]] = block["name"]
    results, human, spawns = 0, 0, set()
    for line in prompts:
        content = line["message"]["content"]
        answered = (
            [b["tool_use_id"] for b in content if b["type"] == "tool_result"] if isinstance(content, list) else []
        )
        results += len(answered)
        apart = line.get("isSidechain") or line.get("isMeta") or line.get("isCompactSummary")
        human += not answered and not apart
        for name in answered:
            if uses.get(name) in ("Task", "Agent") and isinstance(line.get("toolUseResult"), dict):
                spawns.add(name)
    return {
        "format": "claude-code",
        "parts": [str(part.relative_to(path.parent)) for part in parts_of(path)],
        "traces": 1,
        "groups": 1,
        "events": len(output) + len(uses) + results + human,
        "actions": len(output),
        "agents": 1 + len(spawns),
        "tool_calls": len(uses) - len(spawns),
        "spawns": len(spawns),
        "tokens": sum(output[name] for name in final) if final else None,
        "input_tokens": sum(context.values()),
        "reward": None,
    }


def count_openai_agents(path: Path) -> dict[str, Any]:
    """Numbers of one export."""
    traces = json.loads(path.read_text(encoding="utf-8"))["traces"]
    kinds = [span["span_data"]["type"] for trace in traces for span in trace["spans"]]
    actions, tools = kinds.count("generation") + kinds.count("response"), kinds.count("function")
    return {
        "format": "openai-agents",
        "traces": len({trace["id"] for trace in traces}),
        "groups": len({trace["id"] for trace in traces}),
        "events": actions + kinds.count("handoff") + 2 * tools,
        "actions": actions,
        "agents": kinds.count("agent"),
        "tool_calls": tools,
        "spawns": kinds.count("handoff"),
        "tokens": None,
        "input_tokens": None,
        "reward": None,
    }


def team_events(sample: dict[str, Any]) -> list[dict[str, Any]]:
    """A sample's events outside scorers."""
    kept, judging, parents, kinds = [], False, {}, {}
    for event in sample["events"]:
        if event["event"] == "span_begin":
            parents[event["id"]], kinds[event["id"]] = event.get("parent_id"), event["type"]
        elif event["event"] == "step" and event["type"] == "scorer":
            judging = event["action"] == "begin"
        span, inside = event.get("span_id"), judging
        while span:
            inside = inside or kinds[span] == "scorer"
            span = parents[span]
        if not inside:
            kept.append(event)
    return kept


def count_inspect_ai(path: Path) -> dict[str, Any]:
    """Numbers of one log."""
    samples = json.loads(path.read_text(encoding="utf-8"))["samples"]
    events = [event for sample in samples for event in team_events(sample)]
    usages = [e["output"]["usage"] for e in events if e["event"] == "model" and e["output"]["choices"]]
    kinds = [event["event"] for event in events]
    letters = [score["value"] for sample in samples for score in sample["scores"].values()]
    return {
        "format": "inspect-ai",
        "traces": len(samples),
        "groups": len({sample["id"] for sample in samples}),
        "events": len(usages) + kinds.count("input") + 2 * kinds.count("tool"),
        "actions": len(usages),
        "agents": len(samples),
        "tool_calls": kinds.count("tool"),
        "spawns": 0,
        "tokens": sum(usage["output_tokens"] for usage in usages),
        "input_tokens": sum(usage["input_tokens"] for usage in usages),
        "reward": float(letters.count("C")),
    }


def count_atif(path: Path) -> dict[str, Any]:
    """Numbers of one trajectory."""
    steps = json.loads(path.read_text(encoding="utf-8"))["steps"]
    sources = [step["source"] for step in steps]
    tools = sum(len(step.get("tool_calls", [])) for step in steps)
    results = sum(len(step.get("observation", {}).get("results", [])) for step in steps)
    return {
        "format": "atif",
        "traces": 1,
        "groups": 1,
        "events": sources.count("agent") + sources.count("user") + tools + results,
        "actions": sources.count("agent"),
        "agents": 1,
        "tool_calls": tools,
        "spawns": 0,
        "tokens": None,
        "input_tokens": None,
        "reward": None,
    }


def count_who_and_when(path: Path) -> dict[str, Any]:
    """Numbers of one run."""
    run = json.loads(path.read_text(encoding="utf-8"))
    speakers = [message.get("name") or message["role"] for message in run["history"]]
    asked = {speaker.split("-> ")[1].rstrip(")") for speaker in speakers if "-> " in speaker}
    outside = ("Computer_terminal", "human")
    behind = [*speakers[1:], ""]
    return {
        "format": "who-and-when",
        "traces": 1,
        "groups": 1,
        "events": len(speakers),
        "actions": sum(speaker not in outside for speaker in speakers),
        "agents": len({speaker.split(" (")[0] for speaker in speakers if speaker not in outside} | asked),
        "tool_calls": sum(a != outside[0] and b == outside[0] for a, b in zip(speakers, behind, strict=True)),
        "spawns": len(asked),
        "tokens": None,
        "input_tokens": None,
        "reward": float(run.get("is_correct", run.get("is_corrected"))),
    }


COUNTERS = {
    "tau-bench": count_tau_bench,
    "claude-code": count_claude_code,
    "openai-agents": count_openai_agents,
    "inspect-ai": count_inspect_ai,
    "atif": count_atif,
    "who-and-when": count_who_and_when,
}


def is_refused(path: Path) -> bool:
    """Whether a file is of no supported format."""
    return path.name.endswith("_atof.jsonl") or path.name.startswith("otel_traces_")


def count(root: Path) -> dict[str, Any]:
    """The manifest of the logs under `root`."""
    files: dict[str, Any] = {}
    refused: list[str] = []
    for folder, name in FOLDERS.items():
        depth = "*/*.json" if name == "who-and-when" else "*.json*"
        for path in sorted((root / folder).glob(depth)):
            key = path.relative_to(root).as_posix()
            if is_refused(path):
                refused.append(key)
            else:
                files[key] = COUNTERS[name](path)
    questions = [json.loads(p.read_text(encoding="utf-8"))["question_ID"] for p in (root / "who_and_when").glob("*/*")]
    return {"rules": RULES, "files": files, "questions": len(set(questions)), "refused": sorted(refused)}


if __name__ == "__main__":
    MANIFEST.write_text(json.dumps(count(Path(sys.argv[1])), indent=2) + "\n", encoding="utf-8")
