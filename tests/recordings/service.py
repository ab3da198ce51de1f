"""A stand-in for the service of a tracing system: a server on this machine that answers what a function says."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Service", "completion"]


class Service(ThreadingHTTPServer):
    """Serves while its `with` lasts. `answer` gets the path and the body: the value of JSON, {} for none, else bytes.

    It gives JSON, or a list for JSON lines, or bytes.
    """

    def __init__(self, port: int, answer: Callable[[str, Any], Any]) -> None:
        self.answer = answer
        super().__init__(("127.0.0.1", port), _Handler)

    def __enter__(self) -> Service:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            raw = gzip.decompress(raw)
        body: Any = raw
        with contextlib.suppress(ValueError):
            body = json.loads(raw or b"{}")
        found = self.server.answer(self.path.partition("?")[0], body)
        lines = isinstance(found, list)
        text = found if isinstance(found, bytes) else "\n".join(map(json.dumps, found if lines else [found])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/jsonl" if lines else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = do_PATCH = do_GET

    def log_message(self, *_: Any) -> None: ...


def completion(message: dict[str, Any], tokens: int) -> dict[str, Any]:
    """An answer of OpenAI's chat completions by the model `tiny`, which read ten tokens."""
    return {
        "id": "r", "object": "chat.completion", "created": 1, "model": "tiny",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens},
    }  # fmt: skip
