"""Record a team in Phoenix: `python record_phoenix.py`, with arize-phoenix and its instrumentation of OpenAI's agents.

Recorded with arize-phoenix 20.26.1, arize-phoenix-client 3.5.0, openinference-instrumentation-openai-agents 2.6.0 and
openai-agents 0.24.0. A triage agent looks something up and hands over to a writer, which answers. The model is a
server on this machine that gives prepared answers. Phoenix runs in a process of its own on an empty folder; the spans
reach it as they do in production, and are exported by its REST API, as JSON, and by its client, as a data frame.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

HERE = Path(__file__).parent
PORT, MODEL_PORT = 6106, 6107
PROJECT = "team"


def asked(name: str, call_id: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


ANSWERS: list[tuple[int, dict[str, Any]]] = [
    (3, asked("search", "c1", question="x")),
    (5, asked("transfer_to_writer", "c2")),
    (7, {"content": "x is 2"}),
]
"""Output tokens and messages of the model's calls, in their order."""


class Model(BaseHTTPRequestHandler):
    """Gives the answers one after another, as OpenAI's API for chats does."""

    given = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        tokens, message = ANSWERS[Model.given]
        Model.given += 1
        reply = {
            "id": f"r{Model.given}", "object": "chat.completion", "created": 1, "model": "tiny",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens},
        }  # fmt: skip
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


def run() -> None:
    """Run the team, its spans sent to Phoenix."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
    from openinference.semconv.resource import ResourceAttributes
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    @function_tool
    def search(question: str) -> str:
        """Look something up."""
        return f"found {question}"

    server = ThreadingHTTPServer(("127.0.0.1", MODEL_PORT), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    provider = TracerProvider(resource=Resource({ResourceAttributes.PROJECT_NAME: PROJECT}))
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{PORT}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    set_tracing_disabled(False)
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider, exclusive_processor=True)
    client = AsyncOpenAI(base_url=f"http://127.0.0.1:{MODEL_PORT}/v1", api_key="none")
    model = OpenAIChatCompletionsModel("tiny", client)
    writer = Agent(name="writer", instructions="Write.", model=model)
    triage = Agent(name="triage", instructions="Decide.", model=model, tools=[search], handoffs=[writer])
    asyncio.run(Runner.run(triage, "What is x?"))
    provider.shutdown()
    server.shutdown()


def spans() -> dict[str, Any]:
    with urlopen(f"http://127.0.0.1:{PORT}/v1/projects/{PROJECT}/spans?limit=100") as reply:
        page: dict[str, Any] = json.load(reply)
        return page


def wait(ready: Any) -> None:
    for _ in range(240):
        try:
            if ready():
                return
        except (URLError, ConnectionError):
            pass
        time.sleep(0.5)
    raise SystemExit("Phoenix did not answer")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        own = {"PHOENIX_PORT": str(PORT), "PHOENIX_GRPC_PORT": "6108", "PHOENIX_HOST": "127.0.0.1",
               "PHOENIX_WORKING_DIR": folder, "PHOENIX_TELEMETRY_ENABLED": "false"}  # fmt: skip
        phoenix = subprocess.Popen([sys.executable, "-m", "phoenix.server.main", "serve"], env=os.environ | own)
        try:
            wait(lambda: urlopen(f"http://127.0.0.1:{PORT}/healthz").status == 200)
            run()
            wait(lambda: len(spans()["data"]) > len(ANSWERS))
            time.sleep(5)
            (HERE / "spans_phoenix.json").write_text(json.dumps(spans(), indent=1) + "\n")
            from phoenix.client import Client

            frame = Client(base_url=f"http://127.0.0.1:{PORT}").spans.get_spans_dataframe(project_identifier=PROJECT)
            frame.to_parquet(HERE / "spans_phoenix.parquet")
        finally:
            phoenix.terminate()
            phoenix.wait()


if __name__ == "__main__":
    main()
