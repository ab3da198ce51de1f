"""Record teams of AutoGen with a stub model: `python record_autogen.py`, in an environment with autogen-agentchat.

Recorded with autogen-agentchat 0.7.5. In a round robin a solver calls a tool and reflects on its result; a critic
answers. In Magentic-One the orchestrator writes down facts and a plan, asks the solver, and answers when it is done.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import MagenticOneGroupChat, RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelFamily, ModelInfo, RequestUsage


class Stub(ChatCompletionClient):
    """A model that gives prepared replies."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)

    async def create(self, messages: Any, **_: Any) -> CreateResult:
        content = self.replies.pop(0)
        reason = "stop" if isinstance(content, str) else "function_calls"
        return CreateResult(finish_reason=reason, content=content, usage=RequestUsage(10, 3), cached=False)

    async def create_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 1

    remaining_tokens = count_tokens

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=True, family=ModelFamily.UNKNOWN, structured_output=False
        )

    capabilities = model_info


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def ledger(done: bool) -> str:
    """The orchestrator's view of the progress, as it asks for it."""
    yes, no = ({"answer": answer, "reason": "r"} for answer in (True, False))
    given: dict[str, Any] = {"is_request_satisfied": yes if done else no, "is_in_loop": no}
    given |= {"is_progress_being_made": yes, "next_speaker": {"answer": "solver", "reason": "r"}}
    return json.dumps(given | {"instruction_or_question": {"answer": "Add 1 and 1.", "reason": "r"}})


def solving() -> AssistantAgent:
    call = FunctionCall(id="c1", name="add", arguments='{"a":1,"b":1}')
    return AssistantAgent("solver", Stub([call], "it is 2"), tools=[add], reflect_on_tool_use=True)


async def main() -> None:
    orchestrator = Stub("facts", "plan", ledger(False), ledger(True), "the answer is 2")
    teams: dict[str, Any] = {
        "autogen": RoundRobinGroupChat([solving(), AssistantAgent("critic", Stub("fine"))], max_turns=2),
        "magentic_one": MagenticOneGroupChat([solving()], model_client=orchestrator, max_turns=4),
    }
    for name, team in teams.items():
        result = await team.run(task="1+1?")
        path = Path(__file__).with_name(f"{name}_result.json")
        path.write_text(result.model_dump_json() + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
