"""Record a lead and a sub-agent of coding agents with a stub model: `python record_coding_agents.py [AGENT …]`.

Recorded with opencode-ai 1.18.33, cline 3.0.65, @github/copilot 1.0.102, @google/gemini-cli 0.61.0 and
@anthropic-ai/claude-code 2.1.197, where npm is. A log is kept in a folder of its agent's name, as users get it: exports
of the sessions, or the files of the agent. The model is a server on this machine that speaks the APIs of OpenAI's
chats, of Gemini and of Claude. It answers the lead with a command and a task for a sub-agent, then with a text. Long
texts are cut, and the folder gets another name.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

PORT = 6310
URL = f"http://127.0.0.1:{PORT}"
LONGEST = 120  # characters of a text that are kept
QUESTION, PART = "What is 1 + 1?", "Add the halves."
TOKENS = 4  # of each answer; a message that the model reads counts ten

Calls = list[tuple[str, dict[str, Any]]]
COMMAND = {"command": "echo 2", "description": "print"}
TASK = {"description": "add", "prompt": PART}
CALLS: dict[str, Calls] = {
    "opencode": [("bash", COMMAND), ("task", TASK | {"subagent_type": "general"})],
    "cline": [("run_commands", {"commands": ["echo 2"]}), ("spawn_agent", {"systemPrompt": "You add.", "task": PART})],
    "copilot_cli": [("bash", COMMAND), ("task", TASK | {"agent_type": "general-purpose", "name": "adder"})],
    "gemini_cli": [("run_shell_command", COMMAND),
                   ("invoke_agent", {"agent_name": "generalist", "prompt": PART})],
    "claude_code": [("Bash", COMMAND),
                    ("Agent", TASK | {"subagent_type": "general-purpose", "run_in_background": False})],
}  # fmt: skip
"""What the lead of each agent calls at first."""


class Model(BaseHTTPRequestHandler):
    """Streams answers: to a sub-agent, to a lead that has results of its tools, to a lead that has none."""

    calls: ClassVar[Calls] = []
    answers = 0

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Model.answers += 1
        of_api = self.of_gemini if "contents" in asked else self.of_claude if "/messages" in self.path else self.of_chat
        answer = of_api(asked)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for chunk in answer:
            event = f"event: {chunk['type']}\r\n" if "type" in chunk else ""
            self.wfile.write(f"{event}data: {json.dumps(chunk)}\r\n\r\n".encode())

    def of_chat(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        messages = asked["messages"]
        (first, *_) = (message for message in messages if message["role"] == "user")
        delta: dict[str, Any] = {"role": "assistant", "content": "It is 2."}
        if "tools" in asked and PART not in json.dumps(first) and messages[-1]["role"] != "tool":
            delta["tool_calls"] = [
                {"index": i, "id": f"call_{i}", "type": "function",
                 "function": {"name": name, "arguments": json.dumps(arguments)}}
                for i, (name, arguments) in enumerate(Model.calls)
            ]  # fmt: skip
        read = 10 * len(messages)
        usage = {"prompt_tokens": read, "completion_tokens": TOKENS, "total_tokens": read + TOKENS}
        head = {"id": f"r{Model.answers}", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
        end = "tool_calls" if "tool_calls" in delta else "stop"
        return [
            head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            head | {"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
            head | {"choices": [], "usage": usage},
        ]

    def of_claude(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        messages = asked["messages"]
        contents: list[dict[str, Any]] = [{"type": "text", "text": "It is 2."}]
        if asked.get("tools") and PART not in json.dumps(messages[0]) and "tool_result" not in json.dumps(messages):
            contents += [
                {"type": "tool_use", "id": f"toolu_{i}", "name": name, "input": arguments}
                for i, (name, arguments) in enumerate(Model.calls)
            ]
        usage = {"input_tokens": 10 * len(messages), "output_tokens": 1}
        message: dict[str, Any] = {
            "id": f"msg_{Model.answers}", "type": "message", "role": "assistant", "model": "tiny", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
        for i, content in enumerate(contents):
            block, delta = content | {"text": ""}, {"type": "text_delta", "text": "It is 2."}
            if content["type"] == "tool_use":
                block = content | {"input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
            events += [
                {"type": "content_block_start", "index": i, "content_block": block},
                {"type": "content_block_delta", "index": i, "delta": delta},
                {"type": "content_block_stop", "index": i},
            ]
        end = {"stop_reason": "tool_use" if len(contents) > 1 else "end_turn", "stop_sequence": None}
        return [*events, {"type": "message_delta", "delta": end, "usage": {"output_tokens": TOKENS}},
                {"type": "message_stop"}]  # fmt: skip

    def of_gemini(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        contents = asked["contents"]
        offered = [tool["name"] for group in asked.get("tools", []) for tool in group.get("functionDeclarations", [])]
        calls = Model.calls
        if "complete_task" in offered:
            calls = [("complete_task", {"result": {"response": "It is 2."}})]
        elif any("functionResponse" in part for part in contents[-1]["parts"]):
            calls = []
        parts: list[dict[str, Any]] = [{"text": "It is 2."}]
        parts += [{"functionCall": {"name": name, "args": args, "id": f"call-{name}"}} for name, args in calls]
        read = 10 * len(contents)
        usage = {"promptTokenCount": read, "candidatesTokenCount": TOKENS, "totalTokenCount": read + TOKENS}
        return [{"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                 "usageMetadata": usage, "modelVersion": "tiny"}]  # fmt: skip

    def log_message(self, *_: Any) -> None: ...


def installed(package: str, home: Path) -> str:
    """The command of a package of npm."""
    subprocess.run(["npm", "install", "--silent", "--prefix", str(home / "npm"), package], check=True)
    return str(home / "npm/node_modules/.bin")


def run(command: list[str], project: Path, **environment: str) -> str:
    """What a command prints; its home is the project's parent."""
    own = {"HOME": str(project.parent), "PWD": str(project), "CI": "1"} | environment
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    done = subprocess.run(command, cwd=project, env=kept | own, stdin=subprocess.DEVNULL, check=True,
                          stdout=subprocess.PIPE, text=True)  # fmt: skip
    return done.stdout


def opencode(home: Path, project: Path) -> dict[str, str]:
    binary = installed("opencode-ai@1.18.33", home) + "/opencode"
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{URL}/v1", "apiKey": "x"},
                "models": {"tiny": {"name": "tiny"}}}  # fmt: skip
    settings = {"provider": {"stub": provider}, "model": "stub/tiny", "small_model": "stub/tiny",
                "autoupdate": False, "share": "disabled"}  # fmt: skip
    (project / "opencode.json").write_text(json.dumps(settings))
    run([binary, "run", QUESTION], project, OPENCODE_DISABLE_MODELS_FETCH="1")
    session = json.loads(run([binary, "session", "list", "--format", "json"], project))[0]["id"]
    lead = run([binary, "export", session], project)
    (child,) = {
        part["state"]["metadata"]["sessionId"]
        for message in json.loads(lead)["messages"]
        for part in message["parts"]
        if part.get("tool") == "task"
    }
    return {"lead.json": lead, "sub-agent.json": run([binary, "export", child], project)}


def cline(home: Path, project: Path) -> dict[str, str]:
    binary = installed("cline@3.0.65", home) + "/cline"
    run([binary, "auth", "-p", "openai", "-k", "x", "-m", "tiny", "-b", f"{URL}/v1"], project)
    run([binary, "--auto-approve", "true", QUESTION], project, CLINE_SESSION_BACKEND_MODE="local")
    return files(home / ".cline/data/sessions", "*.json")


def copilot_cli(home: Path, project: Path) -> dict[str, str]:
    binary = installed("@github/copilot@1.0.102", home) + "/copilot"
    run([binary, "-p", QUESTION, "--allow-all-tools"], project, COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false",
        COPILOT_PROVIDER_BASE_URL=f"{URL}/v1", COPILOT_PROVIDER_API_KEY="x", COPILOT_MODEL="tiny")  # fmt: skip
    return files(home / ".copilot/session-state", "events.jsonl")


def gemini_cli(home: Path, project: Path) -> dict[str, str]:
    binary = installed("@google/gemini-cli@0.61.0", home) + "/gemini"
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"enableAutoUpdate": False},
                "privacy": {"usageStatisticsEnabled": False}}  # fmt: skip
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    run([binary, "-y", "--skip-trust", "-m", "gemini-2.5-flash", "-p", QUESTION], project, GEMINI_API_KEY="x",
        GOOGLE_GEMINI_BASE_URL=URL)  # fmt: skip
    return files(home / ".gemini/tmp", "*.jsonl")


def claude_code(home: Path, project: Path) -> dict[str, str]:
    binary = installed("@anthropic-ai/claude-code@2.1.197", home) + "/claude"
    run([binary, "-p", QUESTION, "--allowedTools", "Bash,Agent", "--model", "tiny"], project, ANTHROPIC_BASE_URL=URL,
        ANTHROPIC_API_KEY="x", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")  # fmt: skip
    return files(home / ".claude/projects", "*.json*")


def files(folder: Path, name: str) -> dict[str, str]:
    """Texts of the files of this name, by their places below the only folder that holds them all."""
    found = sorted(folder.rglob(name))
    top = Path(os.path.commonpath([path.parent for path in found]))
    return {str(path.relative_to(top)): path.read_text() for path in found}


def cut(value: Any, folder: str) -> Any:
    """A value with texts that are not long, and another folder."""
    if isinstance(value, dict):
        return {key: cut(part, folder) for key, part in value.items()}
    if isinstance(value, list):
        return [cut(part, folder) for part in value]
    return value.replace(folder, "/home/x")[:LONGEST] if isinstance(value, str) else value


def kept(text: str, home: Path) -> str:
    """The JSON or the JSON lines of a file, cut."""
    try:
        return json.dumps(cut(json.loads(text), str(home)), indent=1) + "\n"
    except json.JSONDecodeError:
        return "".join(json.dumps(cut(json.loads(line), str(home))) + "\n" for line in text.splitlines())


AGENTS: dict[str, Callable[[Path, Path], dict[str, str]]] = {
    "opencode": opencode, "cline": cline, "copilot_cli": copilot_cli, "gemini_cli": gemini_cli,
    "claude_code": claude_code,
}  # fmt: skip


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for agent in sys.argv[1:] or AGENTS:
        Model.calls = CALLS[agent]
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as given:
            home = Path(given).resolve()
            project = home / "project"
            project.mkdir()
            out = Path(__file__).with_name(agent)
            shutil.rmtree(out, ignore_errors=True)
            for name, text in AGENTS[agent](home, project).items():
                (out / name).parent.mkdir(parents=True, exist_ok=True)
                (out / name).write_text(kept(text, home))
    server.shutdown()


if __name__ == "__main__":
    main()
