"""Record agents of Strands with a stub model: `python record_strands.py`, with strands-agents and opentelemetry-sdk.

Recorded with strands-agents 1.62.0 and opentelemetry-sdk 1.45.1. A lead asks a worker, which is a tool of it, and
answers; the worker calls a tool. Strands' own tracing makes the spans, and the SDK's console exporter prints them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

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


def main() -> None:
    with Path(__file__).with_name("spans_strands.json").open("w", encoding="utf-8") as out:
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
    main()
