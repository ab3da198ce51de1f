"""Record simulations of tau2-bench with a stub model: `python record_tau2_bench.py CLONE`, with what it needs.

Recorded with tau2-bench 1.0.1 at a2c0247: a task of its domain `mock`, twice. The model is a server on
this machine that speaks OpenAI's API: the agent calls a tool, then answers; the user asks, then stops. The file is what
the benchmark writes, with long texts cut.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PORT = 6311
LONGEST = 120  # characters of a text that are kept
CALL = ("create_task", {"user_id": "user_1", "title": "Important Meeting"})
MODEL = "openai/tiny"


class Model(BaseHTTPRequestHandler):
    """Answers the agent, who has the tool that it calls, and the user, who has not."""

    answers = 0

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        messages = asked["messages"]
        Model.answers += 1
        answer: dict[str, Any] = {"role": "assistant", "content": "It is done."}
        name, given = CALL
        if name not in [tool["function"]["name"] for tool in asked.get("tools") or []]:
            is_first = not any(message["role"] == "assistant" for message in messages)
            answer["content"] = "Please help me." if is_first else "###STOP###"
        elif messages[-1]["role"] != "tool":
            function = {"name": name, "arguments": json.dumps(given)}
            answer = {"role": "assistant", "content": None, "tool_calls": [
                {"id": f"call_{Model.answers}", "type": "function", "function": function}]}  # fmt: skip
        read = 10 * len(messages)
        body = {
            "id": f"r{Model.answers}", "object": "chat.completion", "created": 1, "model": "tiny",
            "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": read, "completion_tokens": 4, "total_tokens": read + 4},
        }  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None: ...


def cut(value: Any) -> Any:
    """A value with texts that are not long."""
    if isinstance(value, dict):
        return {key: cut(part) for key, part in value.items()}
    if isinstance(value, list):
        return [cut(part) for part in value]
    return value[:LONGEST] if isinstance(value, str) else value


def tau2_bench(clone: Path, out: Path) -> Path:
    os.environ["TAU2_DATA_DIR"] = str(clone / "data")
    sys.path.insert(0, str(clone / "src"))
    from tau2.data_model.simulation import TextRunConfig
    from tau2.run import run_domain

    run_domain(TextRunConfig(
        domain="mock", task_ids=["create_task_1"], num_trials=2, llm_agent=MODEL, llm_user=MODEL, max_concurrency=1,
        save_to=str(out / "run"),
    ))  # fmt: skip
    return next(path for path in out.rglob("*.json"))


def main() -> None:
    os.environ |= {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"http://127.0.0.1:{PORT}/v1",
                   "OPENAI_API_BASE": f"http://127.0.0.1:{PORT}/v1"}  # fmt: skip
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as given:
        written = tau2_bench(Path(sys.argv[1]), Path(given))
        text = json.dumps(cut(json.loads(written.read_text())), indent=1)
    Path(__file__).with_name("tau2_bench_results.json").write_text(text + "\n")
    server.shutdown()


if __name__ == "__main__":
    main()
