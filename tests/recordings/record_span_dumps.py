"""Record a team as the SDK's console exporter prints it, as MLflow exports it, and as Strands traces it.

    python tests/recordings/record_span_dumps.py console|mlflow|strands

Recorded with opentelemetry-sdk 1.45.2 and mlflow-skinny 3.17.2. A lead calls a model, a tool, a worker with a model
call of its own, and the model again; the run is worth 0.75. Recorded with strands-agents 1.62.0 and opentelemetry-sdk
1.45.1: a lead asks a worker, which is a tool of it, and answers; the worker calls a tool.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncIterator
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


def mlflow() -> None:
    """`Trace.to_json` of a trace with a feedback, without the keys that name the machine."""
    import mlflow
    from mlflow.entities import SpanType

    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"file:{folder}")
        mlflow.set_experiment("team")

        def call(tokens: int) -> None:
            with mlflow.start_span("model", span_type=SpanType.CHAT_MODEL) as span:
                usage = {"input_tokens": 10, "output_tokens": tokens, "total_tokens": 10 + tokens}
                span.set_attribute("mlflow.chat.tokenUsage", usage)

        with mlflow.start_span("lead", span_type=SpanType.AGENT) as root:
            call(3)
            with mlflow.start_span("search", span_type=SpanType.TOOL):
                pass
            with mlflow.start_span("worker", span_type=SpanType.AGENT):
                call(5)
            call(7)
        mlflow.flush_trace_async_logging()
        mlflow.log_feedback(trace_id=root.trace_id, name="reward", value=0.75)
        document = json.loads(mlflow.get_trace(root.trace_id).to_json())
    document["info"] |= {"trace_metadata": {}, "tags": {}}
    (HERE / "spans_mlflow.json").write_text(json.dumps(document, indent=1) + "\n")


def strands() -> None:
    """Strands' own tracing makes the spans, and the SDK's console exporter prints them."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    from strands import Agent, tool
    from strands.models import Model

    class Stub(Model):
        """Gives prepared answers: texts, or a tool's name and its input, each with output tokens."""

        def __init__(self, *answers: tuple[int, Any]) -> None:
            self.answers = list(answers)

        def update_config(self, **_: Any) -> None: ...

        def get_config(self) -> dict[str, Any]:
            return {"model_id": "tiny"}

        async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            raise NotImplementedError
            yield

        async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            tokens, answer = self.answers.pop(0)
            yield {"messageStart": {"role": "assistant"}}
            if isinstance(answer, str):
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": answer}}}
            else:
                name, given = answer
                yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"call-{name}", "name": name}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}
            usage = {"inputTokens": 10, "outputTokens": tokens, "totalTokens": 10 + tokens}
            yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 0}}}

    @tool
    def search(question: str) -> str:
        """Look something up."""
        return f"found {question}"

    with (HERE / "spans_strands.json").open("w", encoding="utf-8") as out:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
        trace.set_tracer_provider(provider)
        answers = Stub((3, ("search", '{"question": "x"}')), (5, "x is 2"))
        worker = Agent(name="worker", model=answers, tools=[search], callback_handler=None)

        @tool
        def ask_worker(question: str) -> str:
            """Ask the worker."""
            return str(worker(question))

        asks = Stub((4, ("ask_worker", '{"question": "x"}')), (7, "done"))
        Agent(name="lead", model=asks, tools=[ask_worker], callback_handler=None)("What is x?")
        provider.shutdown()


if __name__ == "__main__":
    {"console": console, "mlflow": mlflow, "strands": strands}[sys.argv[1]]()
