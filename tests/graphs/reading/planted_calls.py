"""Sessions of planted tool calls in every format that states calls with their arguments."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["ALONE", "AT_ONCE", "BY_TURNS", "HUNG", "LS", "SPANS", "STATED", "WRITERS", "Rounds"]

Rounds = list[list[str]]
"""What each message of a session asks for at once: tools, whose argument is their name."""

LS: Rounds = [["ls"]] * 3
BY_TURNS: Rounds = [["ls"], ["cat"]] * 3
AT_ONCE: Rounds = [["ls", "ls", "ls"], ["cat"]]
HUNG = "hung"
"""A tool whose calls have no result."""
DAY = "2026-01-01T00:"


def clock(second: float) -> str:
    return f"{DAY}{int(second) // 60:02}:{second % 60:06.3f}Z"


def numbered(rounds: Rounds) -> Iterator[list[tuple[str, str]]]:
    """The calls of each message, with an id."""
    for number, tools in enumerate(rounds):
        yield [(f"c{number}-{place}", tool) for place, tool in enumerate(tools)]


def ran(calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The calls that have a result."""
    return [(own, tool) for own, tool in calls if tool != HUNG]


def given(tool: str) -> str:
    return json.dumps({"path": tool})


def chat(rounds: Rounds) -> list[dict[str, Any]]:
    """As APIs of chats have it."""
    messages: list[dict[str, Any]] = []
    for calls in numbered(rounds):
        asked = [{"id": own, "type": "function", "function": {"name": tool, "arguments": given(tool)}}
                 for own, tool in calls]  # fmt: skip
        messages.append({"role": "assistant", "content": "", "tool_calls": asked})
        messages += [{"role": "tool", "tool_call_id": own, "content": "x"} for own, _ in ran(calls)]
    return messages


def answered(rounds: Rounds) -> list[dict[str, Any]]:
    """The same with a last message, as where results stand in the next request alone; none where a call has none."""
    messages = chat(rounds)
    return messages if HUNG in rounds[-1] else [*messages, {"role": "assistant", "content": "done"}]


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def art(rounds: Rounds) -> str:
    said = [{"finish_reason": "stop", "index": 0, "message": message} if message["role"] == "assistant" else message
            for message in chat(rounds)]  # fmt: skip
    trajectory = {"reward": 0.5, "metrics": {}, "metadata": {}, "tools": None, "additional_histories": [], "logs": []}
    return lines([{"trajectories": [trajectory | {"messages_and_choices": [{"role": "user", "content": "?"}, *said]}],
                   "exceptions": []}])  # fmt: skip


def verifiers(rounds: Rounds) -> str:
    row = {"example_id": 3, "prompt": [], "answer": "", "info": {}, "reward": 0.5, "is_completed": True, "metrics": {}}
    return lines([row | {"completion": chat(rounds)}])


def tau(rounds: Rounds) -> str:
    said = [{"role": "user", "content": "hello"}, *chat(rounds)]
    return json.dumps([{"task_id": 3, "trial": 0, "reward": 1.0, "info": {}, "traj": said}])


def tau2(rounds: Rounds) -> str:
    said: list[dict[str, Any]] = []
    for calls in numbered(rounds):
        asked = [{"id": own, "name": tool, "arguments": {"path": tool}, "requestor": "assistant"}
                 for own, tool in calls]  # fmt: skip
        said.append({"role": "assistant", "content": None, "tool_calls": asked, "usage": None})
        said += [{"role": "tool", "id": own, "content": "x", "requestor": "assistant"} for own, _ in ran(calls)]
    user, agent = {"implementation": "user_simulator", "llm": "u"}, {"implementation": "llm_agent", "llm": "m"}
    info = {"num_trials": 1, "user_info": user, "agent_info": agent, "environment_info": {"domain_name": "air"}}
    run = {"id": "x", "task_id": "8", "trial": 0, "reward_info": {"reward": 0.5}, "messages": said}
    return json.dumps({"timestamp": clock(0), "info": info, "tasks": [{"id": "8"}], "simulations": [run]})


def responses(rounds: Rounds) -> list[dict[str, Any]]:
    """As the API of responses has it."""
    items: list[dict[str, Any]] = []
    for calls in numbered(rounds):
        items += [{"type": "function_call", "call_id": own, "name": tool, "arguments": given(tool)}
                  for own, tool in calls]  # fmt: skip
        items += [{"type": "function_call_output", "call_id": own, "output": "x"} for own, _ in ran(calls)]
    return items


def nemo_gym(rounds: Rounds) -> str:
    response = {"model": "m", "output": responses(rounds), "usage": {"input_tokens": 9, "output_tokens": 8}}
    asked = {"input": [{"role": "user", "content": "?"}]}
    return lines([{"responses_create_params": asked, "response": response, "reward": 0.5, "_ng_task_index": 4,
                   "_ng_rollout_index": 0, "agent_ref": {"type": "responses_api_agents", "name": "a"}}])  # fmt: skip


def codex(rounds: Rounds) -> str:
    own = {"id": "s-1", "cwd": "x", "originator": "codex_cli_rs", "cli_version": "0.50.0"}
    rows = [("session_meta", own), ("turn_context", {"model": "m", "cwd": "x"})]
    rows += [("response_item", item) for item in responses(rounds)]
    return lines([{"timestamp": clock(i), "type": kind, "payload": part} for i, (kind, part) in enumerate(rows)])


def claude_code(rounds: Rounds) -> str:
    rows: list[dict[str, Any]] = []

    def add(kind: str, **message: Any) -> None:
        n = len(rows)
        rows.append({"type": kind, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "isSidechain": False,
                     "sessionId": "s", "timestamp": clock(n), "message": {"role": kind, **message}})  # fmt: skip

    add("user", content="do it")
    for number, calls in enumerate(numbered(rounds)):
        usage = {"input_tokens": 1, "output_tokens": 3}
        for own, tool in calls:
            use = {"type": "tool_use", "id": own, "name": tool, "input": {"path": tool}}
            add("assistant", id=f"m{number}", model="m", content=[use], usage=usage)
        for own, _ in ran(calls):
            add("user", content=[{"type": "tool_result", "tool_use_id": own, "content": "x"}])
    return lines(rows)


def atif(rounds: Rounds) -> str:
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "hi"}]
    for calls in numbered(rounds):
        asked = [{"tool_call_id": own, "function_name": tool, "arguments": {"path": tool}} for own, tool in calls]
        seen = [{"source_call_id": own, "content": "x"} for own, _ in ran(calls)]
        steps.append({"step_id": len(steps) + 1, "source": "agent", "message": "", "tool_calls": asked,
                      "observation": {"results": seen}})  # fmt: skip
    agent = {"name": "lead", "version": "1", "model_name": "m"}
    return json.dumps({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": steps})


def adk(rounds: Rounds) -> str:
    events: list[dict[str, Any]] = []

    def add(author: str, role: str, parts: list[Any]) -> None:
        events.append({"content": {"parts": parts, "role": role}, "invocationId": "i", "author": author, "actions": {},
                       "id": f"e{len(events)}", "timestamp": 100.0 + len(events)})  # fmt: skip

    add("user", "user", [{"text": "go"}])
    for calls in numbered(rounds):
        add("lead", "model", [{"functionCall": {"id": own, "args": {"path": tool}, "name": tool}}
                              for own, tool in calls])  # fmt: skip
        if ran(calls):
            add("lead", "user", [{"functionResponse": {"id": own, "name": tool, "response": {"x": 1}}}
                                 for own, tool in ran(calls)])  # fmt: skip
    return json.dumps({"id": "s-1", "appName": "team", "userId": "u", "state": {}, "events": events})


def autogen(rounds: Rounds) -> str:
    rows: list[dict[str, Any]] = [{"source": "user", "models_usage": None, "content": "?", "type": "TextMessage"}]
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    for calls in numbered(rounds):
        asked = [{"id": own, "arguments": given(tool), "name": tool} for own, tool in calls]
        seen = [{"content": "x", "name": tool, "call_id": own, "is_error": False} for own, tool in ran(calls)]
        rows.append({"source": "solver", "models_usage": usage, "content": asked, "type": "ToolCallRequestEvent"})
        if seen:
            rows.append({"source": "solver", "models_usage": None, "content": seen, "type": "ToolCallExecutionEvent"})
    return json.dumps({"messages": [row | {"id": f"m{i}"} for i, row in enumerate(rows)], "stop_reason": "x"})


def gemini_cli(rounds: Rounds) -> str:
    rows: list[dict[str, Any]] = [
        {"sessionId": "s-1", "projectHash": "h", "startTime": clock(0), "lastUpdated": clock(0), "kind": "main"},
        {"id": "u1", "timestamp": clock(1), "type": "user", "content": [{"text": "look"}]},
    ]
    for number, calls in enumerate(numbered(rounds)):
        made = [{"id": own, "name": tool, "args": {"path": tool}, "timestamp": clock(10 * number + 3)}
                | ({"result": [], "status": "success"} if (own, tool) in ran(calls) else {"status": "executing"})
                for own, tool in calls]  # fmt: skip
        rows.append({"id": f"g{number}", "timestamp": clock(10 * number + 2), "type": "gemini", "content": "",
                     "thoughts": [], "model": "m", "toolCalls": made})  # fmt: skip
    return lines(rows)


def copilot_cli(rounds: Rounds) -> str:
    rows: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": "s-1", "version": 1, "producer": "copilot-agent", "copilotVersion": "1.0.27",
                           "startTime": clock(0), "selectedModel": "m"}),
        ("user.message", {"content": "look", "attachments": []}),
    ]  # fmt: skip
    for number, calls in enumerate(numbered(rounds)):
        asked = [{"toolCallId": own, "name": tool, "arguments": {"path": tool}, "type": "function"}
                 for own, tool in calls]  # fmt: skip
        rows.append(("assistant.message", {"messageId": f"m{number}", "content": "", "toolRequests": asked}))
        for own, tool in calls:
            rows.append(("tool.execution_start", {"toolCallId": own, "toolName": tool, "arguments": {"path": tool}}))
            if tool != HUNG:
                rows.append(("tool.execution_complete", {"toolCallId": own, "success": True}))
    return lines([{"type": kind, "data": data, "id": f"e{i}", "timestamp": clock(i),
                   "parentId": f"e{i - 1}" if i else None} for i, (kind, data) in enumerate(rows)])  # fmt: skip


def swe_agent(rounds: Rounds) -> str:
    steps = [{"action": f"{tool} .", "observation": "x", "response": "r", "thought": "r", "state": "{}"}
             for tools in rounds for tool in tools]  # fmt: skip
    info = {"exit_status": "submitted", "model_stats": {"tokens_sent": 90, "tokens_received": 8, "api_calls": 2}}
    return json.dumps({"environment": "swe_main", "trajectory": steps, "history": [], "info": info})


def native(rounds: Rounds, *, messages: bool = True) -> str:
    """Calls are actions; without messages, each comes after the one before."""
    events: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    before: list[str] = []
    for number, calls in enumerate(numbered(rounds)):
        if messages:
            events.append({"id": f"m{number}", "type": "message", "agent": "a"})
            edges += [{"src": own, "dst": f"m{number}", "type": "causal"} for own in before]
            before = [f"m{number}"]
        for own, tool in calls:
            edges += [{"src": one, "dst": own, "type": "temporal"} for one in before]
            events.append({"id": own, "type": "tool_call", "agent": "a", "tool": tool, "arguments": given(tool)})
            before = before if messages else [own]
        events += [{"id": f"{own}.r", "type": "tool_result", "agent": "a", "tool": tool} for own, tool in ran(calls)]
        edges += [{"src": own, "dst": f"{own}.r", "type": "return"} for own, _ in ran(calls)]
        before = [f"{own}.r" for own, _ in ran(calls)] if messages else before
    return lines([{"trace_id": "t", "task_id": "q", "events": events, "edges": edges, "rewards": {}}])


def cline(rounds: Rounds) -> str:
    messages: list[dict[str, Any]] = [{"id": "u", "role": "user", "ts": 1, "content": [{"type": "text", "text": "?"}]}]
    for number, calls in enumerate(numbered(rounds), 1):
        used = [{"type": "tool_use", "id": own, "name": tool, "input": {"path": tool}} for own, tool in calls]
        seen = [{"type": "tool_result", "tool_use_id": own, "content": "x"} for own, _ in ran(calls)]
        messages += [
            {"id": f"a{number}", "role": "assistant", "ts": 2000 * number, "content": used},
            {"id": f"u{number}", "role": "user", "ts": 2000 * number + 1000, "content": seen},
        ]
    origin = {"source": "cli", "mode": "user", "sessionId": "s", "version": "4.0.0"}
    return json.dumps({"version": 1, "updated_at": clock(0), "agent": "lead", "sessionId": "s", "origin": origin,
                       "messages": messages})  # fmt: skip


def opencode(rounds: Rounds) -> str:
    asked = {"id": "msg_0", "role": "user", "time": {"created": 1000}}
    messages: list[dict[str, Any]] = [{"info": asked, "parts": [{"id": "prt_0", "type": "text", "text": "?"}]}]
    for number, calls in enumerate(numbered(rounds), 1):
        at = 2000 * number
        parts = [
            {"id": f"prt_{own}", "type": "tool", "callID": own, "tool": tool,
             "state": {"status": "running", "input": {"path": tool}, "time": {"start": at + 100}} if tool == HUNG else
             {"status": "completed", "input": {"path": tool}, "output": "x",
              "time": {"start": at + 100, "end": at + 500}}}
            for own, tool in calls
        ]  # fmt: skip
        info = {"id": f"msg_{number}", "role": "assistant", "time": {"created": at}, "modelID": "m", "providerID": "p"}
        step = [{"id": f"prt_s{number}", "type": "step-start"}, *parts, {"id": f"prt_f{number}", "type": "step-finish"}]
        messages.append({"info": info, "parts": step})
    own = {"id": "ses_1", "projectID": "p", "directory": "/w", "title": "t", "version": "1.19.3"}
    return json.dumps({"info": own, "messages": messages})


def openhands(rounds: Rounds) -> str:
    history: list[dict[str, Any]] = [{"id": 0, "source": "user", "cause": None, "action": "message", "args": {}}]
    for number, calls in enumerate(numbered(rounds)):
        first = len(history)
        for own, tool in calls:
            made = {"tool_call_id": own, "function_name": tool, "model_response": {"id": f"r{number}"}}
            history.append({"id": len(history), "source": "agent", "cause": None, "action": "run",
                            "args": {"command": tool}, "tool_call_metadata": made})  # fmt: skip
        for cause in range(first, first + len(ran(calls))):
            history.append({"id": len(history), "source": "agent", "cause": cause, "observation": "run",
                            "content": "x"})  # fmt: skip
    return lines([{"instance_id": "r__r-1", "instruction": "fix", "git_patch": "", "history": history, "success": True,
                   "error": None, "metadata": {"agent_class": "A", "llm_config": {"model": "m"}}}])  # fmt: skip


def openhands_sdk(rounds: Rounds) -> str:
    rows: list[dict[str, Any]] = [
        {"source": "agent", "system_prompt": {"text": "x"}, "kind": "SystemPromptEvent"},
        {"source": "user", "llm_message": {"role": "user"}, "kind": "MessageEvent"},
    ]
    for number, calls in enumerate(numbered(rounds)):
        first = len(rows)
        for own, tool in calls:
            rows.append({"source": "agent", "action": {"kind": "TerminalAction", "command": tool}, "tool_name": tool,
                         "tool_call_id": own, "llm_response_id": f"r{number}", "kind": "ActionEvent"})  # fmt: skip
        for place, (own, tool) in enumerate(ran(calls)):
            rows.append({"source": "environment", "observation": {"is_error": False, "kind": "TerminalObservation"},
                         "tool_name": tool, "tool_call_id": own, "action_id": f"e{first + place}",
                         "kind": "ObservationEvent"})  # fmt: skip
    return lines([row | {"id": f"e{i}", "timestamp": f"2026-11-26T20:00:{i:02}.0"} for i, row in enumerate(rows)])


def mini_swe_agent(rounds: Rounds) -> str:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "x"}, {"role": "user", "content": "fix"}]
    for number, calls in enumerate(numbered(rounds), 1):
        made = [{"command": tool, "tool_call_id": own} for own, tool in calls]
        messages.append({"role": "assistant", "content": "", "extra": {"actions": made, "timestamp": 10.0 * number}})
        messages += [{"role": "tool", "tool_call_id": own, "content": "x",
                      "extra": {"returncode": 0, "timestamp": 10.0 * number + 5}} for own, _ in ran(calls)]  # fmt: skip
    info = {"exit_status": "Submitted", "submission": "", "mini_version": "2.4.6", "config": {}}
    return json.dumps({"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1",
                       "instance_id": "repo__repo-2"})  # fmt: skip


def rllm(rounds: Rounds) -> str:
    said = answered(rounds)
    ends = [i for i, message in enumerate(said) if message["role"] == "assistant"]
    steps = [{"id": f"s{i}", "chat_completions": [{"role": "user", "content": "?"}, *said[: i + 1]], "reward": 0.0,
              "prompt_ids": [], "response_ids": [], "logprobs": []} for i in ends]  # fmt: skip
    trajectory = {"uid": "a-0", "name": "agent", "task": None, "steps": steps, "reward": 0.5}
    return json.dumps({"id": "q:0", "task": None, "termination_reason": None, "is_correct": False,
                       "trajectories": [trajectory], "artifacts": {}, "metrics": {}, "metadata": {}})  # fmt: skip


def agent_lightning(rounds: Rounds) -> str:
    said = answered(rounds)
    ends = [i for i, message in enumerate(said) if message["role"] == "assistant"]
    own = {"event_type": "model_request", "rollout_id": "r", "attempt_id": "0"}
    rows: list[dict[str, Any]] = [
        {**own, "timestamp": float(i + 1), "data": {"model": "m", "request": {"messages": said[:i]},
                                                    "response": {"choices": [{"message": said[i]}]}}}
        for i in ends
    ]  # fmt: skip
    return lines([*rows, {"rollout_id": "r", "input": "x", "is_train": True, "metadata": {},
                          "status": {"last_attempt_id": "0"}}])  # fmt: skip


def langgraph(rounds: Rounds) -> str:
    state: list[dict[str, Any]] = [{"type": "human", "id": "h", "content": "?"}]
    rows: list[dict[str, Any]] = []

    def node(name: str, messages: list[dict[str, Any]]) -> None:
        step = len(rows) // 2 + 1
        for kind, payload in (
            ("task", {"input": {"messages": list(state)}, "triggers": [f"branch:to:{name}"]}),
            ("task_result", {"result": {"messages": messages}, "error": None, "interrupts": []}),
        ):
            rows.append({"type": kind, "timestamp": clock(len(rows)), "step": step,
                         "payload": {"id": f"T{step}", "name": name, **payload}})  # fmt: skip
        state.extend(messages)

    for number, calls in enumerate(numbered(rounds)):
        asked = [{"id": own, "name": tool, "args": {"path": tool}} for own, tool in calls]
        node("planner", [{"type": "ai", "id": f"m{number}", "content": "", "tool_calls": asked}])
        if ran(calls):
            node("tools", [{"type": "tool", "id": f"{own}.r", "content": "x", "tool_call_id": own, "name": tool}
                           for own, tool in ran(calls)])  # fmt: skip
    return lines(rows)


Span = tuple[str, str, str, int, int]  # id, kind, name, begin and end in seconds
LONG = 3000


def spans(rounds: Rounds, *, messages: bool = True) -> list[Span]:
    """A lead with its model calls and tools: those of one message begin together."""
    made: list[Span] = [("a", "agent", "lead", 0, LONG)]
    at = 1
    for number, calls in enumerate(numbered(rounds)):
        if messages:
            made.append((f"m{number}", "model", "chat", at, at + 1))
        made += [(own, "tool", tool, at + 2 + i, at + 20 + i) for i, (own, tool) in enumerate(calls)]
        at += 40
    return made


def one_after_another(rounds: Rounds) -> list[Span]:
    """One model call, and all tools behind it, each after the one before."""
    calls = [call for tools in numbered(rounds) for call in tools]
    tools = [(own, "tool", tool, 10 + 10 * i, 15 + 10 * i) for i, (own, tool) in enumerate(calls)]
    return [("a", "agent", "lead", 0, LONG), ("m", "model", "chat", 1, 2), *tools]


GENAI = {"agent": "invoke_agent", "model": "chat", "tool": "execute_tool"}


def genai(kind: str, name: str) -> dict[str, str]:
    more = {"agent": {"gen_ai.agent.name": name}, "model": {"gen_ai.request.model": "m"}, "tool": {}}[kind]
    if kind == "tool":
        more = {"gen_ai.tool.name": name, "gen_ai.tool.call.arguments": given(name)}
    return {"gen_ai.operation.name": GENAI[kind], **more}


def hexed(own: str) -> str:
    return own.encode().hex().rjust(16, "0")


def otlp(made: list[Span]) -> str:
    rows = [
        {"traceId": "1" * 32, "spanId": hexed(own), "parentSpanId": "" if own == "a" else hexed("a"), "name": name,
         "startTimeUnixNano": str((begin + 1) * 10**9), "endTimeUnixNano": str((end + 1) * 10**9),
         "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in genai(kind, name).items()]}
        for own, kind, name, begin, end in made
    ]  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": rows}]}]})


def span_dump(made: list[Span]) -> str:
    return lines([
        {"trace_id": "1" * 32, "span_id": hexed(own), "parent_span_id": None if own == "a" else hexed("a"),
         "name": name, "start_time": (begin + 1) * 10**9, "end_time": (end + 1) * 10**9,
         "attributes": genai(kind, name), "status": {"code": "OK"}, "span_events": []}
        for own, kind, name, begin, end in made
    ])  # fmt: skip


def langfuse(made: list[Span]) -> str:
    kinds = {"agent": "AGENT", "model": "GENERATION", "tool": "TOOL"}
    rows = [
        {"id": own, "traceId": "t", "type": kinds[kind], "name": name, "startTime": clock(begin), "endTime": clock(end),
         "parentObservationId": None if own == "a" else "a", "input": given(name), "output": "x"}
        for own, kind, name, begin, end in made
    ]  # fmt: skip
    return json.dumps({"trace": {"id": "t", "projectId": "p", "name": "run", "timestamp": clock(0), "scores": []},
                       "observations": rows})  # fmt: skip


def langsmith(made: list[Span]) -> str:
    kinds = {"agent": "chain", "model": "llm", "tool": "tool"}
    return lines([
        {"id": own, "trace_id": "a", "parent_run_id": None if own == "a" else "a", "name": name,
         "run_type": kinds[kind], "start_time": clock(begin), "end_time": clock(end), "inputs": {"path": name},
         "dotted_order": f"{begin:04}{own}" if own == "a" else f"0000a.{begin:04}{own}"}
        for own, kind, name, begin, end in made
    ])  # fmt: skip


def openai_agents(made: list[Span]) -> str:
    data = {"agent": {"type": "agent"}, "model": {"type": "generation", "model": "m"}, "tool": {"type": "function"}}
    rows = [
        {"object": "trace.span", "id": own, "trace_id": "trace_1", "parent_id": None if own == "a" else "a",
         "started_at": clock(begin), "ended_at": clock(end), "error": None,
         "span_data": data[kind] | {"name": name, "input": given(name), "output": "x"}}
        for own, kind, name, begin, end in made
    ]  # fmt: skip
    return lines(
        [{"object": "trace", "id": "trace_1", "workflow_name": "w", "group_id": None, "metadata": None}, *rows]
    )


def weave(made: list[Span]) -> str:
    kinds = {"agent": "agent", "model": "llm", "tool": "tool"}
    return lines([
        {"id": own, "trace_id": "T", "op_name": f"weave:///a/p/op/{name}:d", "started_at": clock(begin),
         "ended_at": clock(end), "attributes": {"weave": {"kind": kinds[kind]}}, "inputs": {"path": name},
         "output": "x", "summary": {}} | ({} if own == "a" else {"parent_id": "a"})
        for own, kind, name, begin, end in made
    ])  # fmt: skip


def braintrust(made: list[Span]) -> str:
    kinds = {"agent": "task", "model": "llm", "tool": "tool"}
    return lines([
        {"id": own, "span_id": own, "root_span_id": "a", "span_parents": None if own == "a" else ["a"],
         "span_attributes": {"name": name, "type": kinds[kind], "exec_counter": i}, "experiment_id": "x",
         "metrics": {"start": begin + 1, "end": end + 1}, "input": {"path": name}, "output": "x",
         "metadata": {"agent_name": "lead"} if own == "a" else {}}
        for i, (own, kind, name, begin, end) in enumerate(made, 1)
    ])  # fmt: skip


def inspect_ai(made: list[Span]) -> str:
    events: list[dict[str, Any]] = [{"event": "span_begin", "id": "a", "name": "lead", "type": "agent",
                                     "parent_id": None, "timestamp": clock(0)}]  # fmt: skip
    for own, kind, name, begin, end in made[1:]:
        at = {"span_id": "a", "timestamp": clock(begin), "completed": clock(end)}
        if kind == "model":
            events.append(at | {"event": "model", "model": "m", "output": {"choices": [{}]}})
        else:
            events.append(at | {"event": "tool", "id": own, "function": name, "arguments": {"path": name},
                                "result": "x"})  # fmt: skip
    sample = {"id": 1, "epoch": 1, "input": "x", "scores": {}, "events": [*events, {"event": "span_end", "id": "a"}]}
    task = {"task": "quiz", "model": "m", "solver": "react"}
    return json.dumps({"version": 2, "status": "success", "eval": task, "samples": [sample]})


STATED: dict[str, Callable[[Rounds], str]] = {
    "adk": adk, "agent-lightning": agent_lightning, "art": art, "atif": atif, "autogen": autogen,
    "claude-code": claude_code, "cline": cline, "codex": codex, "copilot-cli": copilot_cli, "gemini-cli": gemini_cli,
    "langgraph": langgraph, "mini-swe-agent": mini_swe_agent, "native": native, "opencode": opencode,
    "openhands": openhands, "openhands-sdk": openhands_sdk, "rllm": rllm, "rollouts": nemo_gym, "tau-bench": tau,
    "tau2-bench": tau2, "verifiers": verifiers,
}  # fmt: skip
"""Formats that state what a message asks for."""

SPANS: dict[str, Callable[[list[Span]], str]] = {
    "otlp": otlp, "spans": span_dump, "langfuse": langfuse, "langsmith": langsmith, "openai-agents": openai_agents,
    "weave": weave, "braintrust": braintrust, "inspect-ai": inspect_ai,
}  # fmt: skip
"""Formats whose tools have times."""


def of(write: Callable[[list[Span]], str], made: Callable[[Rounds], list[Span]]) -> Callable[[Rounds], str]:
    return lambda rounds: write(made(rounds))


WRITERS = STATED | {name: of(write, spans) for name, write in SPANS.items()}
ALONE: dict[str, Callable[[Rounds], str]] = {
    "native without messages": functools.partial(native, messages=False),
    "otlp without model calls": of(otlp, functools.partial(spans, messages=False)),
    "spans without model calls": of(span_dump, functools.partial(spans, messages=False)),
    "swe-agent": swe_agent,
    **{f"{name}, one model call": of(write, one_after_another) for name, write in SPANS.items()},
}
"""Logs in which each call is a step of its own."""
