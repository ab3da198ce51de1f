"""Records rollouts with the official Agent Lightning 0.3.0: its spans, made by its own types from OpenTelemetry's.

    python tests/recordings/record_agent_lightning.py FILE

One rollout with two attempts: a planner calls a model, a tool and the model again, with a reward linked to the first
call and a final one of two dimensions. The counts never change. (Version 1 is on no package index; the events of the
tests have the shape of its `agentlightning/schemas.py`.)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from agentlightning.emitter.reward import emit_reward
from agentlightning.types import Span
from agentlightning.utils.otel import make_link_attributes
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


def attempt(value: float) -> list[Any]:
    """The spans of one attempt, in the order in which they ended."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("stub")

    def call(response: str, tokens: int) -> None:
        usage = {"gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": tokens}
        with tracer.start_as_current_span(
            "openai.chat.completion", attributes={"gen_ai.response.id": response} | usage
        ):
            pass

    def reward(amount: float | dict[str, float], **options: Any) -> None:
        fields = emit_reward(amount, propagate=False, **options)
        with tracer.start_as_current_span(fields.name, attributes=fields.attributes):
            pass

    with tracer.start_as_current_span("run"):
        with tracer.start_as_current_span("planner", attributes={"agent.name": "planner"}):
            call("r1", 5)
            tool = {"agentops.span.kind": "tool", "operation.name": "search"}
            with tracer.start_as_current_span("search.tool", attributes=tool):
                pass
            call("r2", 7)
        reward(0.25, attributes=make_link_attributes({"gen_ai.response.id": "r1"}))
        reward({"solved": value, "brief": 0.5}, primary_key="solved")
    return list(kept.get_finished_spans())


def main(file: Path) -> None:
    """Write both attempts."""
    lines = []
    for name, value in (("at-1", 0.0), ("at-2", 1.0)):
        spans = (Span.from_opentelemetry(span, "ro-1", name, i) for i, span in enumerate(attempt(value), start=1))
        lines += [span.model_dump_json() + "\n" for span in spans]
    file.write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
