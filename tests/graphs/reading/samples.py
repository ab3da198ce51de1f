"""A small log of each format, as its own project writes it: recorded, or shortened by hand from what it writes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, NamedTuple

RECORDINGS = Path(__file__).parents[2] / "recordings"


class Sample(NamedTuple):
    """A log: the format, the name of its file, the JSON values in it, and whether it is one value or one a line."""

    format: str
    file: str
    values: list[Any]
    lines: bool = True

    @property
    def text(self) -> str:
        """The file's content."""
        if self.lines:
            return "".join(json.dumps(value) + "\n" for value in self.values)
        return json.dumps(self.values[0], indent=1)

    def write(self, folder: Path) -> Path:
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text)
        return path


def recorded(name: str) -> list[Any]:
    return [json.loads(line) for line in (RECORDINGS / name).read_text().splitlines()]


RESULT = {
    "example_id": 3,
    "prompt": [{"role": "user", "content": "1+1?"}],
    "completion": [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "add"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "2"},
        {"role": "assistant", "content": "2"},
    ],
    "answer": "2",
    "info": {},
    "reward": 1.0,
    "error": None,
    "is_completed": True,
    "metrics": {"exact": 1.0},
}

TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number: int, parent: int, name: str, **attributes: Any) -> dict[str, Any]:
    """A span as Strands' tools dump it."""
    return {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_span_id": f"{parent:016x}" if parent else None,
        "name": name,
        "start_time": 1_786_569_488_291_881_984 + number,
        "end_time": 1_786_569_488_291_881_990 + number,
        "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
        "status": {"code": "OK"},
        "span_events": [],
    }


STRANDS = [
    span(2, 1, "chat", gen_ai__operation__name="chat", gen_ai__request__model="m", gen_ai__usage__output_tokens=4),
    span(3, 1, "execute_tool", gen_ai__operation__name="execute_tool", gen_ai__tool__name="search"),
    span(1, 0, "invoke_agent", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="lead",
         trace__evaluations__0__evaluation__name="reward", trace__evaluations__0__evaluation__score=0.5),
]  # fmt: skip


def phoenix(one: dict[str, Any], kind: str) -> dict[str, Any]:
    """The same span as Phoenix' REST API gives it."""
    calls = [{"message": {"tool_calls": [{"tool_call": {"id": "c", "function": {"name": "f"}}}]}}]
    return {
        "id": "U3Bhbjox",
        "name": one["name"],
        "context": {"trace_id": one["trace_id"], "span_id": one["span_id"]},
        "span_kind": kind,
        "parent_id": one["parent_span_id"],
        "start_time": f"2026-01-01T00:00:00.00000{one['span_id'][-1]}+00:00",
        "end_time": "2026-01-01T00:00:01+00:00",
        "status_code": "OK",
        "status_message": "",
        "attributes": {"llm": {"model_name": "m", "token_count": {"completion": 4}, "output_messages": calls}},
        "events": [],
    }


PHOENIX = {"data": [phoenix(one, kind) for one, kind in zip(STRANDS, ("LLM", "TOOL", "AGENT"), strict=True)],
           "next_cursor": None}  # fmt: skip


def of_mlflow(one: dict[str, Any], kind: str, **more: Any) -> dict[str, Any]:
    """The same span as MLflow 3 writes it; attributes are JSON texts."""
    attributes = {"mlflow.spanType": json.dumps(kind)} | {key: json.dumps(value) for key, value in more.items()}
    return {
        "trace_id": base64.b64encode(bytes.fromhex(one["trace_id"])).decode(),
        "span_id": base64.b64encode(bytes.fromhex(one["span_id"])).decode(),
        "parent_span_id": one["parent_span_id"] and base64.b64encode(bytes.fromhex(one["parent_span_id"])).decode(),
        "name": one["name"],
        "start_time_unix_nano": one["start_time"],
        "end_time_unix_nano": one["end_time"],
        "attributes": attributes,
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "events": [],
    }


MLFLOW = {
    "info": {"trace_id": f"tr-{TRACE}", "assessments": [
        {"assessment_name": "reward", "feedback": {"value": 0.5}, "source": {"source_type": "CODE"}}]},
    "data": {"spans": [
        of_mlflow(STRANDS[2], "AGENT"),
        of_mlflow(STRANDS[0], "CHAT_MODEL", **{"mlflow.chat.tokenUsage": {"input_tokens": 9, "output_tokens": 4}}),
        of_mlflow(STRANDS[1], "TOOL"),
    ]},
}  # fmt: skip

VERL = {"input": "1+1?", "output": "2", "gts": "2", "score": 1.0, "step": 7, "acc": True}
SKYRL = {"input_prompt": "1+1?", "output_response": "2", "score": [0.0, 1.0], "stop_reason": "stop",
         "env_class": "gsm8k", "env_extras": {}, "data_source": "x"}  # fmt: skip
NEMO_RL = {"content": [["1+1?", "2"]], "rewards": [1.0], "input_lengths": [2], "token_ids": [[5, 6, 0]],
           "token_loss_mask": [[0, 1, 0]], "sample_loss_mask": [1.0], "advantages": [[0.0, 0.0, 0.0]],
           "generation_logprobs": [[0.0, -0.5, 0.0]], "prev_logprobs": [[0.0, -0.5, 0.0]], "idx": 0}  # fmt: skip
NEMO_GYM = {
    "responses_create_params": {"input": [{"role": "user", "content": "1+1?"}]},
    "response": {
        "model": "m",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "2"},
            {"type": "message", "role": "assistant", "content": [], "generation_token_ids": [1, 2],
             "generation_log_probs": [-0.5, -0.25]},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 8},
    },
    "reward": 0.5,
    "reward_components": {"right": 0.5},
    "_ng_task_index": 4,
    "_ng_rollout_index": 0,
    "agent_ref": {"type": "responses_api_agents", "name": "adder"},
}  # fmt: skip

TINKER = {
    "schema_version": 1, "split": "train", "iteration": 7, "group_idx": 2, "traj_idx": 0, "tags": ["gsm8k"],
    "sampling_client_step": 6, "total_reward": 1.25, "final_reward": 1.0, "trajectory_metrics": {"correct": 1.0},
    "steps": [
        {"step_idx": 0, "ob_len": 9, "ac_len": 4, "reward": 0.25, "episode_done": False, "metrics": {}, "logs": {}},
        {"step_idx": 1, "ob_len": 15, "ac_len": 2, "reward": 0.0, "episode_done": True, "metrics": {}, "logs": {}},
    ],
    "final_ob_len": 17,
}  # fmt: skip
"""A row of tinker-cookbook, by the source of its writer."""

TAU2 = {
    "timestamp": "2026-01-01T00:00:00",
    "info": {"num_trials": 1, "user_info": {"implementation": "user_simulator", "llm": "u"},
             "agent_info": {"implementation": "llm_agent", "llm": "m"}, "environment_info": {"domain_name": "air"}},
    "tasks": [{"id": "8"}],
    "simulations": [{
        "id": "x", "task_id": "8", "trial": 2, "reward_info": {"reward": 0.5, "reward_breakdown": {"DB": 1.0}},
        "messages": [
            {"role": "assistant", "content": "Hi! How can I help?", "turn_idx": 0, "usage": None},
            {"role": "user", "content": "book", "turn_idx": 1, "usage": {"completion_tokens": 9, "prompt_tokens": 1},
             "tool_calls": [{"id": "u1", "name": "look", "arguments": {}, "requestor": "user"}]},
            {"role": "tool", "id": "u1", "content": "x", "requestor": "user", "error": False},
            {"role": "assistant", "content": None, "usage": {"completion_tokens": 4, "prompt_tokens": 30},
             "tool_calls": [{"id": "c1", "name": "find", "arguments": {}, "requestor": "assistant"}]},
            {"role": "tool", "id": "c1", "content": "y", "requestor": "assistant", "error": True},
            {"role": "assistant", "content": "done", "usage": {"completion_tokens": 2, "prompt_tokens": 40},
             "timestamp": "2026-01-01T00:00:05"},
            {"role": "user", "content": "###STOP###", "turn_idx": 6},
        ],
    }],
}  # fmt: skip


def observation(name: str, kind: str, label: str, parent: str | None, start: int, **more: Any) -> dict[str, Any]:
    return {"id": name, "traceId": "t", "projectId": "p", "type": kind, "name": label, "parentObservationId": parent,
            "startTime": f"2026-01-01T00:00:{start:02d}.000Z", "endTime": f"2026-01-01T00:00:{start + 1:02d}.000Z",
            "level": "DEFAULT", "metadata": {}} | more  # fmt: skip


OBSERVATIONS = [
    observation("o4", "TOOL", "search", "o1", 4),
    observation("o2", "GENERATION", "model", "o1", 2, model="m", usageDetails={"input": 9, "output": 4, "total": 13}),
    observation("o1", "AGENT", "lead", None, 1),
    observation("o5", "GENERATION", "model", "o1", 6, model="m", usageDetails={"input": 9, "output": 3}, level="ERROR"),
]
LANGFUSE = {
    "trace": {"id": "t", "projectId": "p", "name": "run", "timestamp": "2026-01-01T00:00:00.000Z", "scores": [
        {"id": "s", "traceId": "t", "observationId": None, "name": "solved", "value": 0.5, "dataType": "NUMERIC"},
        {"id": "r", "traceId": "t", "observationId": "o2", "name": "step", "value": 0.25, "dataType": "NUMERIC"}]},
    "observations": OBSERVATIONS,
}  # fmt: skip

EVENTS = [
    {"id": 0, "timestamp": "2026-01-01T00:00:00", "source": "user", "cause": None, "action": "message", "args": {}},
    {
        "id": 1,
        "source": "agent",
        "cause": None,
        "action": "run",
        "args": {"command": "ls"},
        "tool_call_metadata": {"tool_call_id": "a", "function_name": "bash", "model_response": {"id": "r1"}},
    },
    {
        "id": 2,
        "source": "agent",
        "cause": None,
        "action": "read",
        "args": {},
        "tool_call_metadata": {"tool_call_id": "b", "function_name": "read", "model_response": {"id": "r1"}},
    },
    {"id": 3, "source": "agent", "cause": 2, "observation": "read", "content": "x"},
    {"id": 4, "source": "agent", "cause": 1, "observation": "run", "content": "x"},
    {"id": 5, "source": "agent", "cause": None, "action": "delegate", "args": {"agent": "BrowsingAgent"}},
    {"id": 6, "source": "agent", "cause": None, "action": "browse", "args": {}},
    {"id": 7, "source": "agent", "cause": 6, "observation": "error", "content": "x"},
    {"id": 8, "source": "agent", "cause": 5, "observation": "delegate", "content": "x"},
    {"id": 9, "source": "agent", "cause": None, "action": "finish", "args": {}},
]
OPENHANDS = {
    "instance_id": "repo__repo-1", "instruction": "fix", "git_patch": "", "history": EVENTS, "success": True,
    "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "m"}}, "error": None,
    "metrics": {"accumulated_cost": 0.1, "token_usages": [
        {"response_id": "r1", "model": "m", "prompt_tokens": 9, "completion_tokens": 4}]},
}  # fmt: skip
FAILED_LATER = OPENHANDS | {
    "success": False, "history": [EVENTS[0] | {"timestamp": "2026-01-01T00:10:00"}, *EVENTS[1:]]
}  # fmt: skip
SWE_AGENT = {
    "environment": "swe_main",
    "trajectory": [
        {"action": "ls -la", "observation": "x", "response": "look", "thought": "look", "state": "{}"},
        {"action": "submit", "observation": "", "response": "done", "thought": "done", "state": "{}"},
    ],
    "history": [{"role": "system", "content": "x"}],
    "info": {"exit_status": "submitted", "model_stats": {"tokens_sent": 90, "tokens_received": 8, "api_calls": 2}},
}  # fmt: skip


MINI_SWE_AGENT = {
    "info": {"exit_status": "Submitted", "submission": "diff", "mini_version": "2.4.6",
             "model_stats": {"instance_cost": 0.1, "api_calls": 2}, "config": {"model": {"model_name": "m"}}},
    "messages": [
        {"role": "system", "content": "x"},
        {"role": "user", "content": "fix"},
        {"role": "assistant", "content": "look", "extra": {
            "actions": [{"command": "ls -la", "tool_call_id": "a"}, {"command": "/bin/cat x", "tool_call_id": "b"}],
            "response": {"usage": {"prompt_tokens": 9, "completion_tokens": 4}}, "timestamp": 5.0}},
        {"role": "tool", "tool_call_id": "a", "content": "x", "extra": {"returncode": 0, "timestamp": 6.0}},
        {"role": "tool", "tool_call_id": "b", "content": "", "extra": {"exception_info": "timeout", "timestamp": 7.0}},
        {"role": "assistant", "content": "done", "extra": {"actions": [], "response": "odd", "timestamp": 8.0}},
        {"role": "user", "content": "one command", "extra": {"interrupt_type": "FormatError"}},
        {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
    ],
    "trajectory_format": "mini-swe-agent-1.1",
    "instance_id": "repo__repo-2",
}  # fmt: skip
MINI_BEFORE_2 = {
    "info": {"exit_status": "APIError", "mini_version": "1.14.0"},
    "messages": [
        {"role": "user", "content": "fix"},
        {"role": "assistant", "content": "look\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>"},
        {"role": "assistant", "content": "no block"},
    ],
    "trajectory_format": "mini-swe-agent-1",
}  # fmt: skip


def codex(kind: str, second: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "type": kind, "payload": payload}


CODEX = [
    codex("session_meta", 0, id="s-1", cwd="x", originator="codex_cli_rs", cli_version="0.50.0"),
    codex(
        "response_item",
        1,
        type="message",
        role="user",
        content=[{"type": "input_text", "text": "<environment_context>"}],
    ),
    codex("response_item", 1, type="message", role="user", content=[{"type": "input_text", "text": "list"}]),
    codex("turn_context", 1, model="m", cwd="x"),
    codex("response_item", 2, type="reasoning", summary=[]),
    codex("response_item", 3, type="function_call", name="shell", arguments="{}", call_id="c"),
    codex("event_msg", 3, type="token_count", info={"last_token_usage": {"input_tokens": 9, "output_tokens": 4}}),
    codex("response_item", 4, type="function_call_output", call_id="c", output="x"),
    codex("response_item", 5, type="message", role="assistant", content=[{"type": "output_text", "text": "done"}]),
    codex("event_msg", 5, type="token_count", info={"last_token_usage": {"input_tokens": 19, "output_tokens": 2}}),
]

BARE_CODEX: list[Any] = [
    {"id": "s-2", "timestamp": "2025-08-18T01:16:13.522Z", "instructions": None, "git": {"branch": "main"}},
    {"record_type": "state"},
    {
        "type": "message",
        "id": None,
        "role": "user",
        "content": [{"type": "input_text", "text": "<environment_context>"}],
    },
    {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "list"}]},
    {"type": "reasoning", "id": "rs", "summary": []},
    {"type": "function_call", "id": "fc", "name": "shell", "arguments": "{}", "call_id": "c"},
    {"record_type": "state"},
    {"type": "function_call_output", "call_id": "c", "output": "x"},
    {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
]
"""A session of Codex CLI before September 2025, by its format as described; none was recorded."""

GEMINI_HEAD = {"sessionId": "gemini-1", "projectHash": "h", "startTime": "2026-08-01T00:00:00.000Z", "kind": "main"}
GEMINI_CALL = {
    "id": "g1", "timestamp": "2026-08-01T00:00:02.000Z", "type": "gemini", "content": "", "model": "m",
    "tokens": {"input": 9, "output": 4, "cached": 0, "thoughts": 1, "total": 14},
    "toolCalls": [{"id": "t1", "name": "read_file", "args": {}, "status": "error", "result": None}],
}  # fmt: skip
GEMINI: list[Any] = [
    GEMINI_HEAD,
    {"id": "u1", "timestamp": "2026-08-01T00:00:01.000Z", "type": "user", "content": [{"text": "look"}]},
    GEMINI_CALL | {"tokens": None, "toolCalls": None},
    {"$set": {"lastUpdated": "2026-08-01T00:00:02.000Z"}},
    GEMINI_CALL,
    {"id": "g2", "timestamp": "2026-08-01T00:00:09.000Z", "type": "gemini", "content": "done", "model": "m"},
]
"""A session of Gemini CLI, by the source of its recorder."""
GEMINI_WHOLE = GEMINI_HEAD | {"messages": [GEMINI[1], GEMINI_CALL, GEMINI[5]]}

COPILOT = [
    {"type": kind, "id": f"e{number}", "timestamp": f"2026-08-01T00:00:{number:02d}.000Z", "data": data}
    for number, (kind, data) in enumerate([
        ("session.start", {"sessionId": "copilot-1", "version": 1, "producer": "copilot-agent", "copilotVersion": "1",
                           "startTime": "2026-08-01T00:00:00Z", "selectedModel": "m"}),
        ("user.message", {"content": "look", "attachments": []}),
        ("assistant.message", {"messageId": "m1", "content": "", "outputTokens": 4, "toolRequests": [
            {"toolCallId": "t1", "name": "bash", "arguments": {}, "type": "function"}]}),
        ("tool.execution_start", {"toolCallId": "t1", "toolName": "bash"}),
        ("tool.execution_complete", {"toolCallId": "t1", "success": True}),
        ("assistant.message", {"messageId": "m2", "content": "done"}),
    ])
]  # fmt: skip
"""A session of GitHub Copilot CLI, by the types of its SDK."""

OPENCODE = {
    "info": {"id": "ses_1", "projectID": "p", "directory": "/w", "title": "t", "version": "1.19.3"},
    "messages": [
        {"info": {"id": "msg_1", "role": "user", "time": {"created": 1000}},
         "parts": [{"id": "prt_1", "type": "text", "text": "list"}]},
        {"info": {"id": "msg_2", "role": "assistant", "time": {"created": 2000}, "modelID": "m", "providerID": "p"},
         "parts": [
            {"id": "prt_2", "type": "step-start"},
            {"id": "prt_3", "type": "tool", "callID": "c", "tool": "bash",
             "state": {"status": "completed", "time": {"start": 2500, "end": 3000}}},
            {"id": "prt_4", "type": "step-finish", "tokens": {"input": 9, "output": 4, "reasoning": 0}}]},
    ],
}  # fmt: skip
"""An exported session of opencode, by the types of its SDK."""

CLINE = {
    "version": 1, "updated_at": "2026-08-01T00:00:00.000Z", "agent": "lead", "sessionId": "cline-1",
    "origin": {"source": "cli", "mode": "user", "sessionId": "cline-1", "version": "4.0.0"},
    "messages": [
        {"id": "u1", "role": "user", "content": [{"type": "text", "text": "list"}], "ts": 1000},
        {"id": "a1", "role": "assistant", "ts": 2000, "modelInfo": {"id": "m", "provider": "p"},
         "content": [{"type": "tool_use", "id": "t1", "name": "run_commands", "input": {"commands": ["ls"]}}],
         "metrics": {"inputTokens": 9, "outputTokens": 4}},
        {"id": "u2", "role": "user", "ts": 3000,
         "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
        {"id": "a2", "role": "assistant", "ts": 4000, "content": [{"type": "text", "text": "done"}]},
    ],
}  # fmt: skip
"""A session of Cline, by the contract of its files."""

OPENHANDS_SDK = [json.loads(path.read_text()) for path in sorted((RECORDINGS / "openhands_sdk").rglob("event-*.json"))]

LANGGRAPH = recorded("langgraph_team.jsonl")

WEAVE = [call for call in recorded("weave_calls.jsonl") if "/op/Short.score:" not in call["op_name"]]
"""Without the trace of a scorer alone, which has no events."""
BRAINTRUST = recorded("braintrust_spans.jsonl")
BRAINTRUST = [row for row in BRAINTRUST if row["root_span_id"] == BRAINTRUST[0]["root_span_id"]]
"""One trial of the recorded experiment."""

SAMPLES: dict[str, Sample] = {
    "verifiers": Sample("verifiers", "traces.jsonl", recorded("verifiers_episodes.jsonl")),
    "verifiers results": Sample("verifiers", "results.jsonl", [RESULT, RESULT]),
    "spans of strands": Sample("spans", "spans.json", [STRANDS], lines=False),
    "spans one a line": Sample("spans", "spans.jsonl", STRANDS),
    "spans of phoenix": Sample("spans", "phoenix.json", [PHOENIX], lines=False),
    "spans of any-agent": Sample("spans", "agent.json", [{"spans": STRANDS, "final_output": "x"}], lines=False),
    "spans of mlflow": Sample("spans", "mlflow.json", [MLFLOW], lines=False),
    "rollouts of verl": Sample("rollouts", "7.jsonl", [VERL, VERL, VERL | {"score": 0.0}]),
    "rollouts of skyrl": Sample("rollouts", "gsm8k.jsonl", [SKYRL, SKYRL]),
    "rollouts of nemo-rl": Sample("rollouts", "train_data_step3.jsonl", [NEMO_RL, NEMO_RL]),
    "rollouts of nemo gym": Sample("rollouts", "rollouts.jsonl", [NEMO_GYM, NEMO_GYM | {"_ng_rollout_index": 1}]),
    "rollouts of tinker": Sample(
        "rollouts",
        "train_rollout_summaries.jsonl",
        [TINKER, TINKER | {"traj_idx": 1, "total_reward": 0.25, "final_reward": 0.0}],
    ),
    "tau2-bench": Sample("tau2-bench", "results.json", [TAU2], lines=False),
    "langfuse": Sample("langfuse", "trace.json", [LANGFUSE], lines=False),
    "langfuse page": Sample("langfuse", "page.json", [{"data": OBSERVATIONS, "meta": {"page": 1}}], lines=False),
    "langfuse lines": Sample("langfuse", "observations.jsonl", OBSERVATIONS),
    "openhands": Sample("openhands", "output.jsonl", [OPENHANDS, FAILED_LATER]),
    "openhands stream": Sample("openhands", "trajectory.json", [EVENTS], lines=False),
    "openhands-sdk": Sample("openhands-sdk", "conversation.jsonl", OPENHANDS_SDK),
    "swe-agent": Sample("swe-agent", "repo__repo-1.traj", [SWE_AGENT], lines=False),
    "mini-swe-agent": Sample("swe-agent", "repo__repo-2.traj.json", [MINI_SWE_AGENT], lines=False),
    "mini-swe-agent before 2": Sample("swe-agent", "repo__repo-3.traj.json", [MINI_BEFORE_2], lines=False),
    "codex": Sample("codex", "rollout-1.jsonl", CODEX),
    "codex before payloads": Sample("codex", "rollout-2025.jsonl", BARE_CODEX),
    "cline": Sample("cline", "s.messages.json", [CLINE], lines=False),
    "copilot-cli": Sample("copilot-cli", "events.jsonl", COPILOT),
    "opencode": Sample("opencode", "session.json", [OPENCODE], lines=False),
    "gemini-cli": Sample("gemini-cli", "session-1.jsonl", GEMINI),
    "gemini-cli before lines": Sample("gemini-cli", "session-1.json", [GEMINI_WHOLE], lines=False),
    "autogen": Sample("autogen", "result.json", recorded("autogen_result.json"), lines=False),
    "langgraph": Sample("langgraph", "stream.jsonl", [event for path, event in LANGGRAPH if not path]),
    "langgraph checkpoints": Sample("langgraph", "history.jsonl", recorded("langgraph_history.jsonl")),
    "langgraph with sub-graphs": Sample("langgraph", "stream.jsonl", LANGGRAPH),
    "adk": Sample("adk", "s.session.json", recorded("adk.session.json"), lines=False),
    "rllm": Sample("rllm", "episode.json", recorded("rllm_episode.json"), lines=False),
    "rllm stored": Sample("rllm", "episode.json", recorded("rllm_stored.json"), lines=False),
    "art": Sample("art", "0007.jsonl", recorded("art_0007.jsonl")),
    "weave": Sample("weave", "calls.jsonl", [call for call in WEAVE if call["trace_id"] != WEAVE[0]["trace_id"]]),
    "braintrust": Sample("braintrust", "spans.jsonl", BRAINTRUST),
    "autogen messages": Sample("autogen", "messages.jsonl", recorded("autogen_result.json")[0]["messages"]),
}

HARBOR_RESULT = {
    "id": "5f4f",
    "task_name": "hello-world",
    "trial_name": "hello-world__abc",
    "trial_uri": "file:///jobs/1/hello-world__abc",
    "source": "terminal-bench",
    "agent_info": {"name": "terminus-2", "version": "2.0", "model_info": {"name": "m", "provider": "p"}},
    "agent_result": {"n_input_tokens": 9, "n_output_tokens": 4, "cost_usd": None},
    "verifier_result": {"rewards": {"reward": 1.0}},
    "exception_info": None,
    "started_at": "2026-01-01T00:00:00Z",
}
"""A trial's result, which is read with the trajectory beside it."""

HEADS: dict[str, Sample] = SAMPLES | {"harbor": Sample("harbor", "result.json", [HARBOR_RESULT], lines=False)}
"""`SAMPLES`, and files that tell a format but are no trace by themselves."""
