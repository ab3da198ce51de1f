"""Record a session of Google ADK: `python record_adk.py`, with google-adk installed.

Recorded with google-adk 2.13.0. A lead asks an agent as a tool and transfers to a worker, which calls two tools of one
reply and transfers back. The model gives prepared answers. The file is what `adk run --save_session` writes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

WHO: dict[str, str] = {"app_name": "team", "user_id": "u"}
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=9, candidates_token_count=4, thoughts_token_count=1, total_token_count=14
)


class Prepared(BaseLlm):
    """A model that gives the next of some replies."""

    replies: list[list[types.Part]]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        content = types.Content(role="model", parts=self.replies.pop(0))
        yield LlmResponse(content=content, model_version="prepared-1", usage_metadata=USAGE)


def model(*replies: list[types.Part]) -> Prepared:
    return Prepared(model="prepared", replies=list(replies))


def call(name: str, **args: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def say(words: str) -> types.Part:
    return types.Part(text=words)


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


async def session() -> dict[str, Any]:
    asker = LlmAgent(name="asker", description="answers", model=model([say("an answer")]))
    adds = [call("add", a=1, b=2), call("add", a=3, b=4)]
    worker = LlmAgent(
        name="worker",
        description="adds",
        model=model(adds, [call("transfer_to_agent", agent_name="lead")]),
        tools=[add],
    )
    asks = [[call("asker", request="x")], [say("over"), call("transfer_to_agent", agent_name="worker")], [say("3, 7")]]
    lead = LlmAgent(name="lead", model=model(*asks), sub_agents=[worker], tools=[AgentTool(asker)])
    runner = InMemoryRunner(agent=lead, app_name=WHO["app_name"])
    made = await runner.session_service.create_session(**WHO)
    message = types.Content(role="user", parts=[say("add")])
    async for _ in runner.run_async(user_id=WHO["user_id"], session_id=made.id, new_message=message):
        pass
    saved = await runner.session_service.get_session(**WHO, session_id=made.id)
    assert saved is not None
    return json.loads(saved.model_dump_json(exclude_none=True, by_alias=True))


def main() -> None:
    path = Path(__file__).with_name("adk.session.json")
    path.write_text(json.dumps(asyncio.run(session())) + "\n")


if __name__ == "__main__":
    main()
