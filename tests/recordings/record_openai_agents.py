"""Records a team with the official OpenAI Agents SDK around a stub model: hand-offs there and back, an agent as a tool.

    python tests/recordings/record_openai_agents.py FILE

The file is what a trace processor gets to export, one item a line, in the order in which spans end. The model is a
table of answers, so counts never change. Made with openai-agents 0.24.0.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agents import Agent, GuardrailFunctionOutput, Runner, function_tool, input_guardrail, set_trace_processors
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.tracing import TracingProcessor, generation_span
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Keeper(TracingProcessor):
    """Keeps what would be exported."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def on_trace_start(self, trace: Any) -> None:
        self.items.append(trace.export())

    def on_span_end(self, span: Any) -> None:
        self.items.append(span.export())

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


class Stub(Model):
    """Gives its answers one after another; 10 tokens in, 3 out for each item of an answer."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = list(answers)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        with generation_span(model="stub") as span:
            answer = self.answers.pop(0)
            tokens = 3 * len(answer)
            span.span_data.usage = {"input_tokens": 10, "output_tokens": tokens}
            usage = Usage(requests=1, input_tokens=10, output_tokens=tokens, total_tokens=10 + tokens)
            return ModelResponse(output=answer, usage=usage, response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def says(text: str) -> ResponseOutputMessage:
    """An answer in words."""
    part = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[part])


def asks(tool: str, arguments: str = "{}") -> ResponseFunctionToolCall:
    """An answer that calls a tool."""
    return ResponseFunctionToolCall(id="x", call_id=tool, type="function_call", name=tool, arguments=arguments)


@function_tool
def look(q: str) -> str:
    """Look something up."""
    return f"found {q}"


@input_guardrail
async def polite(context: Any, agent: Any, text: Any) -> GuardrailFunctionOutput:
    """Let everything pass."""
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


def team() -> Agent[Any]:
    """A triage agent that hands over to billing, which looks up, has a writer draft, and hands back."""
    writer = Agent(name="writer", model=Stub([says("draft")]))
    work = [asks("look", '{"q": "a"}'), asks("write", '{"input": "z"}')]
    billing: Agent[Any] = Agent(
        name="billing", model=Stub(work, [asks("transfer_to_triage")]), tools=[look, writer.as_tool("write", "writes")]
    )
    answers = Stub([asks("transfer_to_billing")], [says("done")])
    triage: Agent[Any] = Agent(name="triage", model=answers, handoffs=[billing], input_guardrails=[polite])
    billing.handoffs = [triage]
    return triage


def main(file: Path) -> None:
    """Run the team once and write what it exported."""
    keeper = Keeper()
    set_trace_processors([keeper])
    asyncio.run(Runner.run(team(), "hi"))
    file.write_text("".join(json.dumps(item) + "\n" for item in keeper.items))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
