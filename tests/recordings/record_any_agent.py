"""Record an agent of any-agent with a stub model: `python record_any_agent.py`, with any-agent and mcp.

Recorded with any-agent 1.17.0, any-llm-sdk 1.40.2 and mcp below 2, which 1.17.0 needs. 1.18.0 does not import.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from any_agent import AgentConfig, AnyAgent
from any_llm.types.completion import ChatCompletion


def search(question: str) -> str:
    """Look something up.

    Args:
      question: what to look up.
    """
    return f"found {question}"


def reply(tokens: int, **message: Any) -> ChatCompletion:
    usage = {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": None, **message}}
    return ChatCompletion.model_validate(
        {"id": "r", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice], "usage": usage}
    )


def asked(name: str, call_id: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def main() -> None:
    agent: Any = AnyAgent.create("tinyagent", AgentConfig(model_id="openai/tiny", api_key="none", tools=[search]))
    replies = iter([reply(3, **asked("search", "c1", question="x")), reply(5, content="2")])

    async def answer(**_: Any) -> ChatCompletion:
        return next(replies)

    agent.llm.acompletion = answer
    trace = agent.run("What is x?")
    Path(__file__).with_name("spans_any_agent.json").write_text(trace.model_dump_json(indent=1) + "\n")


if __name__ == "__main__":
    main()
