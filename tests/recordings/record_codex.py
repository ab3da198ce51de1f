"""Record a session of Codex CLI with a stub model: `python record_codex.py`, where npm is.

Recorded with @openai/codex 0.169.0. The model is a server on this machine that streams prepared responses: a command,
then an answer. The long texts that Codex puts before a question are cut, and the folder gets another name.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

VERSION = "0.169.0"
PORT = 6109
LONGEST = 120  # characters of a text that are kept

CALL = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "exec_command",
        "arguments": json.dumps({"cmd": "echo 2"})}  # fmt: skip
SAID = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "It is 2."}]}
THOUGHT = {"type": "reasoning", "id": "rs1", "summary": [{"type": "summary_text", "text": "I run it."}]}
ANSWERS: list[tuple[int, list[dict[str, Any]]]] = [(4, [THOUGHT, CALL]), (2, [SAID])]
"""Output tokens and items of the model's calls, in their order."""


class Model(BaseHTTPRequestHandler):
    """Streams the answers one after another, as OpenAI's API for responses does."""

    given = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        tokens, items = ANSWERS[Model.given]
        Model.given += 1
        response = {"id": f"r{Model.given}", "usage": {
            "input_tokens": 10 * Model.given, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 10 * Model.given + tokens}}  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        events = [{"type": "response.created", "response": {"id": response["id"]}}]
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
        subprocess.run(["npm", "install", "--silent", f"@openai/codex@{VERSION}"], cwd=home, check=True)
        command = [str(home / "node_modules/.bin/codex"), "exec", "--skip-git-repo-check",
                   "--dangerously-bypass-approvals-and-sandbox", "What is 1 + 1?"]  # fmt: skip
        own = {"CODEX_HOME": str(config), "HOME": str(home)}
        subprocess.run(command, cwd=project, check=True, env=os.environ | own, stdin=subprocess.DEVNULL)
        (rollout,) = (config / "sessions").rglob("rollout-*.jsonl")
        lines = [json.dumps(cut(json.loads(line), str(project))) for line in rollout.read_text().splitlines()]
    server.shutdown()
    Path(__file__).with_name("codex_session.jsonl").write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
