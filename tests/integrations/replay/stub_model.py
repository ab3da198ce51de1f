"""An OpenAI-compatible chat endpoint on the loopback address, whose answers are a function of the request."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

Policy = Callable[[str, list[dict[str, Any]], Callable[[str], float]], dict[str, Any]]
"""(system prompt, messages, uniform number for a name) to an assistant message."""


def uniform(seed: int, name: str) -> float:
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@contextlib.contextmanager
def served(policy: Policy) -> Iterator[str]:
    """The base URL of the endpoint while the block runs."""

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages, seed = body["messages"], int(body.get("seed") or 0)
            system = next((m["content"] for m in messages if m["role"] == "system"), "")
            message = policy(system, messages, lambda name: uniform(seed, name))
            answer = {
                "id": "c", "object": "chat.completion", "created": 0, "model": "stub",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant"} | message}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
            }  # fmt: skip
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)
