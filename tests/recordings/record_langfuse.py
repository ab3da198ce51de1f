"""Record a team in Langfuse: `python record_langfuse.py LANGFUSE`, with langfuse, where npm is.

Recorded with langfuse 5.0.4 and the server's source at 6275144, whose clone is the folder LANGFUSE. A lead agent calls
a model, and a researcher as a tool, which calls a model and a tool; the spans of the researcher are of OpenTelemetry's
conventions, which Langfuse maps. The trace and a call get scores. The server needs six containers. Its own functions
run here, bundled by esbuild (`langfuse_server.mjs`): those that make observations of spans and rows of observations,
that read rows, and the one behind the button "download". In place of its database is a list, which renames what a query
would rename, and keeps scores as the client sent them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from record import _to_hex
from service import Service

HERE = Path(__file__).parent
PORT = 6114
SPANS: list[Any] = []
SCORES: list[dict[str, Any]] = []


def answer(path: str, body: Any) -> Any:
    """What the service answers to a request."""
    if path.endswith("/otel/v1/traces"):
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        SPANS.extend(_to_hex(ExportTraceServiceRequest.FromString(body))["resourceSpans"])
        return b""
    if path == "/api/public/scores":
        SCORES.extend(body)
    return {}


def team() -> None:
    from langfuse import get_client, observe
    from opentelemetry import trace

    langfuse = get_client()
    tracer = trace.get_tracer("acme")

    def ask(text: str, score: float | None = None) -> str:
        with langfuse.start_as_current_observation(
            as_type="generation", name="model", model="tiny", input=text
        ) as call:
            time.sleep(0.002)  # a download states milliseconds
            call.update(output=text, usage_details={"input": 10, "output": 4})
            if score is not None:
                langfuse.score_current_span(name="step", value=score)
        return text

    def of(operation: str, name: str, **more: str) -> AbstractContextManager[Any]:
        """A span of OpenTelemetry's conventions."""
        given = {f"gen_ai.{key.replace('_', '.')}": value for key, value in more.items()}
        return tracer.start_as_current_span(
            f"{operation} {name}", attributes={"gen_ai.operation.name": operation} | given
        )

    def researcher(question: str) -> str:
        name = {"agent_name": "researcher"}
        with of("create_agent", "researcher", **name), of("invoke_agent", "researcher", **name):
            ask("search")
            with of("execute_tool", "search", tool_name="search", tool_call_id="c"):
                time.sleep(0.002)
                found = f"found {question}"
            return ask(found, 0.25)

    @observe(as_type="tool")
    def delegate(question: str) -> str:
        return researcher(question)

    @observe(as_type="agent")
    def lead(question: str) -> str:
        ask("ask for help")
        found = delegate(question)
        langfuse.score_current_trace(name="solved", value=1.0)
        langfuse.score_current_trace(name="kind", value="short", data_type="CATEGORICAL")
        return ask(found)

    lead("x")
    langfuse.flush()


def main() -> None:
    url = f"http://127.0.0.1:{PORT}"
    os.environ |= {"LANGFUSE_BASE_URL": url, "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}
    with Service(PORT, answer):
        team()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sent.json").write_text(json.dumps({"spans": SPANS, "scores": SCORES}))
        server = str(HERE / "langfuse_server.mjs")
        subprocess.run(["npm", "install", "--silent", "--prefix", folder, "esbuild@0.28.2", "zod@4.3.6", "lodash",
                        "decimal.js", "superjson", "@opentelemetry/api"], check=True)  # fmt: skip
        subprocess.run(["node", server, str(Path(sys.argv[1]).resolve()), folder], check=True)
        (HERE / "langfuse_download.json").write_text((Path(folder) / "download.json").read_text())


if __name__ == "__main__":
    main()
