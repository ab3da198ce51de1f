"""Records a team of agents around a stub model with the official OpenTelemetry SDK, in either dialect, as OTLP JSON.

    python tests/recordings/record.py FOLDER

writes `team_genai.jsonl` and `team_openinference.jsonl`, as the two files beside this one were made. The team: a lead
that hands two questions to two researchers working at the same time, each with two model calls and a search between
them, then calls a critic as a tool, then answers. The model is a table of answers, so counts never change.

The SDK's own encoder makes the protocol buffers. Protobuf's JSON writes bytes in base64, OTLP's JSON writes trace and
span ids in hexadecimal: `_to_hex` converts them, and that is the only thing done to what the SDK made.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from google.protobuf.json_format import MessageToDict
from opentelemetry import context
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, set_span_in_context

Dialect = Literal["genai", "openinference"]

ANSWERS: dict[str, list[tuple[int, tuple[str, ...]]]] = {
    "lead": [(40, ()), (30, ("call_critic",)), (50, ())],
    "researcher": [(20, ("call_search",)), (25, ())],
    "critic": [(15, ())],
}
"""The stub model: for each agent, its calls' output tokens and the tool calls that they ask for."""

OUTPUT_TOKENS = 40 + 30 + 50 + 2 * (20 + 25) + 15
OUTCOME = 0.75
STEP_SCORE = 0.25


class Recorder:
    """One run of the team, recorded in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        resource = Resource.create({"service.name": "stub-team", "orchestration_credit.group": "task-7"})
        self.spans, self.logs = InMemorySpanExporter(), InMemoryLogRecordExporter()
        provider = TracerProvider(resource=resource)
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer = provider.get_tracer("stub")
        log_provider = LoggerProvider(resource=resource)
        log_provider.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self.logger = log_provider.get_logger("stub")
        self.both_started = threading.Barrier(2)

    def run(self) -> list[dict[str, Any]]:
        """Run the team; the export requests of its spans and, in the GenAI dialect, of its evaluations."""
        outcome = "trace.evaluations.0.evaluation"
        with self.part("workflow", "answer") as root, self.part("agent", "lead") as lead:
            self.call("lead", 0)
            with ThreadPoolExecutor(2) as pool:
                for future in [pool.submit(self.research, set_span_in_context(lead), i) for i in range(2)]:
                    future.result()
            self.call("lead", 1)
            with self.part("tool", "critic", call_id="call_critic"), self.part("agent", "critic"):
                self.call("critic", 0)
            self.call("lead", 2)
            self.usage(lead, OUTPUT_TOKENS)  # said again by the agent, for all below it
            if self.dialect == "openinference":
                for span in (root, lead):  # the same evaluation of the trace, on two of its spans
                    span.set_attributes({f"{outcome}.name": "reward", f"{outcome}.score": OUTCOME})
            else:
                self.logger.emit(
                    LogRecord(
                        event_name="gen_ai.evaluation.result",
                        context=set_span_in_context(root),
                        attributes={"gen_ai.evaluation.name": "team", "gen_ai.evaluation.score.value": OUTCOME},
                    )
                )
        requests = [_to_hex(encode_spans(self.spans.get_finished_spans()))]
        if self.dialect == "genai":
            requests.append(_to_hex(encode_logs(self.logs.get_finished_logs())))
        return requests

    def research(self, parent: context.Context, index: int) -> None:
        """A researcher, in a thread of its own."""
        token = context.attach(parent)
        try:
            with self.part("agent", "researcher"):
                self.both_started.wait()
                self.call("researcher", 0)
                with self.part("tool", "search", call_id="call_search"):
                    pass
                self.call("researcher", 1, score=STEP_SCORE if index == 0 else None)
        finally:
            context.detach(token)

    def part(self, kind: str, name: str, call_id: str = "") -> AbstractContextManager[Span]:
        """A span of the given kind in the recorder's dialect."""
        given: dict[str, str]
        if self.dialect == "openinference":
            given = {"openinference.span.kind": {"workflow": "CHAIN"}.get(kind, kind.upper())}
            given |= {"agent": {"agent.name": name}, "tool": {"tool.name": name, "tool.id": call_id}}.get(kind, {})
        else:
            operation = {"workflow": "invoke_workflow", "agent": "invoke_agent", "tool": "execute_tool"}[kind]
            given = {"gen_ai.operation.name": operation}
            more = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id}
            given |= {"agent": {"gen_ai.agent.name": name}, "tool": more}.get(kind, {})
        return self.tracer.start_as_current_span(name, attributes=given)

    def call(self, agent: str, turn: int, score: float | None = None) -> None:
        """A call of the stub model."""
        tokens, asks = ANSWERS[agent][turn]
        inference = self.dialect == "openinference"
        kind = {"openinference.span.kind": "LLM"} if inference else {"gen_ai.operation.name": "chat"}
        with self.tracer.start_as_current_span("chat stub", attributes=kind) as span:
            self.usage(span, tokens)
            if inference:
                for i, call_id in enumerate(asks):
                    key = f"llm.output_messages.0.message.tool_calls.{i}.tool_call.id"
                    span.set_attribute(key, call_id)
                if score is not None:
                    key = "evaluations.0.evaluation"
                    span.set_attributes({f"{key}.name": "useful", f"{key}.score": score})
                return
            parts = [{"type": "tool_call", "id": call_id, "name": "tool"} for call_id in asks]
            span.set_attribute("gen_ai.output.messages", json.dumps([{"role": "assistant", "parts": parts}]))
            if score is not None:
                given = {"gen_ai.evaluation.name": "useful", "gen_ai.evaluation.score.value": score}
                span.add_event("gen_ai.evaluation.result", given)

    def usage(self, span: Span, output: int) -> None:
        """Token counts in the dialect's spelling."""
        keys = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
        if self.dialect == "openinference":
            keys = ("llm.token_count.prompt", "llm.token_count.completion")
        span.set_attributes(dict(zip(keys, (2 * output, output), strict=True)))


def _to_hex(message: Any) -> dict[str, Any]:
    """A protobuf export request as OTLP JSON: enumerations as integers, ids in hexadecimal."""
    request: dict[str, Any] = MessageToDict(message, use_integers_for_enums=True)
    waiting: list[Any] = [request]
    while waiting:
        current = waiting.pop()
        if isinstance(current, list):
            waiting += current
        elif isinstance(current, dict):
            for key in {"traceId", "spanId", "parentSpanId"} & current.keys():
                current[key] = base64.b64decode(current[key]).hex()
            waiting += current.values()
    return request


def record(dialect: Dialect) -> list[dict[str, Any]]:
    """Run the team once; its export requests."""
    return Recorder(dialect).run()


def main(folder: Path, make: Callable[[Dialect], list[dict[str, Any]]] = record) -> None:
    """Write a recording of each dialect, one request a line."""
    dialects: tuple[Dialect, ...] = ("genai", "openinference")
    for dialect in dialects:
        lines = [json.dumps(request) + "\n" for request in make(dialect)]
        (folder / f"team_{dialect}.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
