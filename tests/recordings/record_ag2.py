"""Record a team of AG2 1.x by its own telemetry: `python record_ag2.py`, with ag2 and opentelemetry-sdk.

Recorded with ag2 1.2.1 and opentelemetry-sdk 1.45.2. A lead asks a worker, which is a tool of it, and answers; the
models are AG2's own scripts of answers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from ag2 import Agent
from ag2.events import ModelMessage, ModelResponse, ToolCallEvent
from ag2.events.types import Usage
from ag2.middleware.builtin.telemetry import TelemetryMiddleware
from ag2.testing import TestConfig
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def search(question: str) -> str:
    """Look something up."""
    return f"found {question}"


async def main() -> None:
    with Path(__file__).with_name("spans_ag2.json").open("w", encoding="utf-8") as out:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))

        def agent(name: str, tools: list[Any], *turns: Any) -> Agent:
            telemetry = TelemetryMiddleware(
                tracer_provider=provider, agent_name=name, provider_name="stub", model_name="tiny"
            )
            return Agent(name, name, tools=tools, middleware=[telemetry], config=TestConfig(*turns))

        def said(text: str, tokens: int) -> ModelResponse:
            usage = Usage(prompt_tokens=10, completion_tokens=tokens, total_tokens=10 + tokens)
            return ModelResponse(ModelMessage(text), usage=usage, model="tiny", provider="stub")

        searched = ToolCallEvent("search", arguments='{"question": "x"}')
        worker = agent("worker", [search], searched, said("x is 2", 5))
        asked = ToolCallEvent("task_worker", arguments='{"objective": "x"}')
        lead = agent("lead", [worker.as_tool(description="works")], asked, said("done", 7))
        await lead.ask("What is x?")
        provider.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
