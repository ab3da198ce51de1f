"""Record a conversation of OpenHands' SDK: `python record_openhands_sdk.py`, with openhands-sdk and openhands-tools.

Recorded with openhands-sdk 1.58.2. The agent runs two commands of one reply in its terminal, and finishes. The model is
the package's scripted one, which names no tokens. The folder is what a conversation with `persistence_dir` keeps,
without its locks; long texts are cut, and the folder gets another name.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from openhands.sdk import Agent, Conversation, Tool
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.testing import TestLLM
from openhands.tools.terminal import TerminalTool

OUT = Path(__file__).with_name("openhands_sdk")
LONGEST = 120  # characters of a text that are kept


def said(text: str, *calls: tuple[str, str, dict[str, Any]]) -> Message:
    """A reply with tool calls, each with its id, its tool and its arguments."""
    tool_calls = [
        MessageToolCall(id=call, name=name, arguments=json.dumps(given), origin="completion")
        for call, name, given in calls
    ]
    return Message(role="assistant", content=[TextContent(text=text)], tool_calls=tool_calls)


def cut(value: Any, folder: str) -> Any:
    """A value with texts that are not long, and another folder."""
    if isinstance(value, dict):
        return {key: cut(part, folder) for key, part in value.items()}
    if isinstance(value, list):
        return [cut(part, folder) for part in value]
    return value.replace(folder, "/home/x")[:LONGEST] if isinstance(value, str) else value


def main() -> None:
    replies = [
        said("I run it.", ("c1", "terminal", {"command": "echo 2"}), ("c2", "terminal", {"command": "echo 3"})),
        said("", ("c3", "finish", {"message": "It is 2."})),
    ]
    agent = Agent(llm=TestLLM.from_messages(replies), tools=[Tool(name=TerminalTool.name)])
    shutil.rmtree(OUT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as given:
        home = Path(given).resolve()
        conversation = Conversation(agent, workspace=home / "project", persistence_dir=home / "kept", visualizer=None)
        conversation.send_message("What is 1 + 1?")
        conversation.run()
        conversation.close()
        for path in (home / "kept").rglob("*.json"):
            copy = OUT / path.relative_to(home / "kept")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(json.dumps(cut(json.loads(path.read_text()), str(home)), indent=1) + "\n")


if __name__ == "__main__":
    main()
