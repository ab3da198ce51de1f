"""Record Codex CLI with a stub model: `python record_codex.py session|team`, where npm is.

The session was recorded with @openai/codex 0.169.0, the team with 0.171.0. The model is a server on this machine that
streams prepared responses: a command, then an answer; and for the team a command and a sub-agent, which answers, a wait
for it, then an answer. The long texts that Codex puts before a question are cut, and the folder gets another name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERSIONS = {"session": "0.169.0", "team": "0.171.0"}
PORT = 6109
LONGEST = 160  # characters of a text that are kept
PART = "Add the halves."  # the task of the sub-agent

CALL = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "exec_command",
        "arguments": json.dumps({"cmd": "echo 2"})}  # fmt: skip
SAID = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "It is 2."}]}
THOUGHT = {"type": "reasoning", "id": "rs1", "summary": [{"type": "summary_text", "text": "I run it."}]}
ANSWERS: list[tuple[int, list[dict[str, Any]]]] = [(4, [THOUGHT, CALL]), (2, [SAID])]
"""Output tokens and items of the model's calls, in their order."""


def of_team(asked: list[dict[str, Any]]) -> tuple[int, list[dict[str, Any]]]:
    """Output tokens and items for a conversation of the lead or of its sub-agent."""
    outputs = {item["call_id"]: item["output"] for item in asked if item["type"] == "function_call_output"}
    tool = {"type": "function_call", "namespace": "multi_agent_v1"}
    if PART in json.dumps([item for item in asked if item.get("role") == "user"][-1]) or "c3" in outputs:
        return 2, [SAID]
    if "c2" in outputs:
        agent = json.loads(outputs["c2"])["agent_id"]
        wait = {"id": "fc3", "call_id": "c3", "name": "wait_agent", "arguments": json.dumps({"targets": [agent]})}
        return 3, [tool | wait]
    spawn = {"id": "fc2", "call_id": "c2", "name": "spawn_agent", "arguments": json.dumps({"message": PART})}
    return 4, [CALL, tool | spawn]


class Model(BaseHTTPRequestHandler):
    """Streams the answers one after another, as OpenAI's API for responses does."""

    given = 0
    is_team = False

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens, items = of_team(asked["input"]) if Model.is_team else ANSWERS[Model.given]
        Model.given += 1
        response: dict[str, Any] = {"id": f"r{Model.given}", "usage": {
            "input_tokens": 10 * Model.given, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 10 * Model.given + tokens}}  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": response["id"]}}]
        done = "response.output_item.done"
        events += [{"type": done, "output_index": i, "item": item} for i, item in enumerate(items)]
        for event in [*events, {"type": "response.completed", "response": response}]:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_: Any) -> None: ...


def cut(value: Any, folder: str) -> Any:
    """A value with texts that are not long, and another folder."""
    if isinstance(value, dict):
        return {key: cut(part, folder) for key, part in value.items()}
    if isinstance(value, list):
        return [cut(part, folder) for part in value]
    return value.replace(folder, "/project")[:LONGEST] if isinstance(value, str) else value


def main() -> None:
    kind = sys.argv[1]
    Model.is_team = kind == "team"
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as given:
        home = Path(given).resolve()
        project, config = home / "project", home / "codex"
        for folder in (project, config):
            folder.mkdir()
        (config / "config.toml").write_text(
            'model = "tiny"\nmodel_provider = "stub"\n[model_providers.stub]\nname = "stub"\nwire_api = "responses"\n'
            f'base_url = "http://127.0.0.1:{PORT}/v1"\n'
        )
        subprocess.run(["npm", "install", "--silent", f"@openai/codex@{VERSIONS[kind]}"], cwd=home, check=True)
        command = [str(home / "node_modules/.bin/codex"), "exec", "--skip-git-repo-check",
                   "--dangerously-bypass-approvals-and-sandbox", "What is 1 + 1?"]  # fmt: skip
        own = {"CODEX_HOME": str(config), "HOME": str(home)}
        subprocess.run(command, cwd=project, check=True, env=os.environ | own, stdin=subprocess.DEVNULL)
        texts = {}
        for rollout in (config / "sessions").rglob("rollout-*.jsonl"):
            lines = [json.dumps(cut(json.loads(line), str(project))) for line in rollout.read_text().splitlines()]
            texts[f"codex/{rollout.name}" if Model.is_team else "codex_session.jsonl"] = "\n".join(lines) + "\n"
    server.shutdown()
    for name, text in texts.items():
        path = Path(__file__).parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
