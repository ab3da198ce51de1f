"""Record a team with the SDK's console exporter, pretty-printed as it prints: `python record_span_dumps.py`.

Recorded with opentelemetry-sdk 1.45.2. A lead calls a model, a tool, a worker with a
model call of its own, and the model again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def console() -> None:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    with (HERE / "spans_console.json").open("w", encoding="utf-8") as out:
        provider = TracerProvider(resource=Resource({"service.name": "stub-team"}))
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
        tracer = provider.get_tracer("stub")

        def call(tokens: int, **more: Any) -> None:
            given = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny",
                     "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": tokens}  # fmt: skip
            with tracer.start_as_current_span("chat tiny", attributes=given | more):
                pass

        lead = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "lead"}
        with tracer.start_as_current_span("invoke_agent lead", attributes=lead) as root:
            call(3)
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            with tracer.start_as_current_span("execute_tool search", attributes=tool):
                pass
            worker = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "worker"}
            with tracer.start_as_current_span("invoke_agent worker", attributes=worker):
                call(5)
            call(7)
            result = {"gen_ai.evaluation.name": "reward", "gen_ai.evaluation.score.value": 0.75}
            root.add_event("gen_ai.evaluation.result", result)
        provider.shutdown()


if __name__ == "__main__":
    console()
