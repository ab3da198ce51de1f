"""Teams in the OpenAI Agents SDK: each agent gets a model whose calls go through a `Session`.

def play(session, task, seed):
    tools = [function_tool(session.tool("none")(search))]
    coder = Agent("coder", model=taped_model(session, "coder", my_model), tools=tools)
    return score(asyncio.run(Runner.run(coder, task)).final_output)

driver = TapeReplayer(play, read_tapes(Path("tapes.jsonl")))
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from credit.replay.drivers.call_session import Session
from graphs.errors import MissingExtraError

__all__ = ["taped_model"]


def taped_model(session: Session, agent: str, model: Any) -> Any:
    """An `agents.Model` that records, repeats or replaces the calls of one agent.

    Args:
      session: of the run.
      agent: the agent's name, as in the log.
      model: the `agents.Model` that answers calls after the prefix.

    Returns:
      An `agents.Model` for `Agent(model=...)`. It does not stream.

    Raises:
      MissingExtraError: the SDK is not installed.
    """
    try:
        sdk = importlib.import_module("agents")
        importlib.import_module("openai")
    except ModuleNotFoundError as error:
        raise MissingExtraError("openai-agents", "openai-agents") from error
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    items = _items()

    class TapedModel(sdk.Model):  # type: ignore[misc,name-defined]
        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
            tools = args[1] if len(args) > 1 else kwargs.get("tools", [])
            session.check_tools(tool.name for tool in tools)
            asked = [system_instructions, input]
            name, answer = session.ask(agent, asked)
            if answer.kind == "live":
                response = await model.get_response(system_instructions, input, *args, **kwargs)
            elif answer.kind == "logged":
                response = sdk.ModelResponse(items.validate_python(answer.value), sdk.Usage(), None)
            else:  # a replacement, which is a text
                text = ResponseOutputText(text=answer.value, type="output_text", annotations=[])
                message = ResponseOutputMessage(
                    id=name, content=[text], role="assistant", status="completed", type="message"
                )
                response = sdk.ModelResponse([message], sdk.Usage(), None)
            output = [item.model_dump(mode="json", exclude_none=True) for item in response.output]
            session.answered(name, agent, asked, output, _text(output), response.usage.output_tokens)
            return response

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError("a taped model does not stream; expected Runner.run or Runner.run_sync")

    return TapedModel()


@functools.cache
def _items() -> Any:
    """The reader of output items in JSON; kept, since it takes long to make."""
    from openai.types.responses import ResponseOutputItem
    from pydantic import TypeAdapter

    return TypeAdapter(list[ResponseOutputItem])


def _text(output: list[dict[str, Any]]) -> str:
    """The text of an answer, and its calls of tools as NAME(ARGUMENTS)."""
    parts = []
    for item in output:
        parts += [part.get("text", "") for part in item.get("content") or () if isinstance(part, dict)]
        if "name" in item:
            parts.append(f"{item['name']}({item.get('arguments', '')})")
    return " ".join(parts)
