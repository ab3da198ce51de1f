"""`converse`: an agent whose state is a list of messages, on an OpenAI-compatible chat endpoint.

It needs the standard library alone. A team plays by it, and `TapeReplayer` runs the team again:

def play(session, task, seed):
    messages = [{"role": "system", "content": "coder"}, {"role": "user", "content": task}]
    answer = converse(session, "coder", messages, url="http://127.0.0.1:8000/v1", model="m", seed=seed,
                      tools=[session.tool("none")(search)])
    return score(answer)

driver = TapeReplayer(play, read_tapes(Path("tapes.jsonl")))
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

from credit.replay.drivers.call_session import Session
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["converse"]

Message = dict[str, Any]


def converse(
    session: Session,
    agent: str,
    messages: Sequence[Message],
    *,
    url: str,
    model: str,
    seed: int,
    tools: Sequence[Callable[..., Any]] = (),
    schemas: Sequence[Message] = (),
    turns: int = 16,
    seconds: float = 120.0,
    headers: dict[str, str] | None = None,
) -> str:
    """Ask the model, run the tools that it calls, and ask again until it answers without a tool call; that answer.

    Args:
      session: of the run. Each answer of the model is a call of it.
      agent: the agent's name, as in the log.
      messages: the conversation so far.
      url: of the endpoint, up to and without "/chat/completions".
      model: its name there.
      seed: sent as `seed`.
      tools: functions that the model may call by name, each declared by `session.tool`.
      schemas: sent as `tools`.
      turns: answers of the model at most.
      seconds: time limit of a request.
      headers: of each request, such as an authorisation.

    Raises:
      PrefixError: a request before the decision is not the recorded one.
      CreditError: a tool that is unknown or not declared, too many turns, or an answer that is no chat completion.
      OSError: the endpoint does not answer.
    """
    by_name = {tool.__name__: tool for tool in tools}
    session.check_tools(by_name)
    talk = list(messages)
    for _ in range(turns):
        name, answer = session.ask(agent, talk)
        # The session tells whether the model is asked (live), its logged answer stands, or a replacement does.
        tokens = 0
        if answer.kind == "live":
            body: Message = {"model": model, "messages": talk, "seed": seed % 2**31}
            if schemas:
                body["tools"] = list(schemas)
            message, tokens = _post(url, body, seconds, headers or {})
        elif answer.kind == "logged":
            message = answer.value
        else:
            message = {"role": "assistant", "content": answer.value}
        session.answered(
            name, agent, talk, message, json.dumps(message.get("tool_calls") or message["content"]), tokens
        )
        talk = [*talk, message]
        if not message.get("tool_calls"):
            return str(message.get("content") or "")
        for call in message["tool_calls"]:
            tool = by_name.get(call["function"]["name"])
            if tool is None:
                raise CreditError(f"{agent!r} called tool {call['function']['name']!r}; expected {sorted(by_name)}")
            result = tool(**json.loads(call["function"]["arguments"] or "{}"))
            text = result if isinstance(result, str) else json.dumps(result)
            talk = [*talk, {"role": "tool", "tool_call_id": call["id"], "content": text}]
    raise CreditError(f"{agent!r} called tools in {turns} turns; expected an answer")


def _post(url: str, body: Message, seconds: float, headers: dict[str, str]) -> tuple[Message, int]:
    """The assistant's message and its tokens."""
    request = urllib.request.Request(
        f"{url.rstrip('/')}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"} | headers,
    )
    with urllib.request.urlopen(request, timeout=seconds) as response:
        answer = json.load(response)
    try:
        message = answer["choices"][0]["message"]
        tokens = int((answer.get("usage") or {}).get("completion_tokens") or 0)
        kept = {key: message[key] for key in ("content", "tool_calls") if message.get(key) is not None}
    except (KeyError, IndexError, TypeError, AttributeError):
        raise CreditError(f"{url} answered {excerpt(answer)}; expected a chat completion") from None
    return {"role": "assistant", "content": None} | kept, tokens
