"""Record Magentic-One with a stub model: `python record_magentic_one.py`, in an environment with autogen-agentchat.

Recorded with autogen-agentchat 0.7.5. The orchestrator writes down facts and a plan, asks the solver, which calls a
tool, then finds the task done and answers.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import MagenticOneGroupChat
from autogen_core import FunctionCall
from record_autogen import Stub, add


def ledger(done: bool) -> str:
    """The orchestrator's view of the progress, as it asks for it."""
    yes, no = ({"answer": answer, "reason": "r"} for answer in (True, False))
    given: dict[str, Any] = {"is_request_satisfied": yes if done else no, "is_in_loop": no}
    given |= {"is_progress_being_made": yes, "next_speaker": {"answer": "solver", "reason": "r"}}
    return json.dumps(given | {"instruction_or_question": {"answer": "Add 1 and 1.", "reason": "r"}})


async def main() -> None:
    call = FunctionCall(id="c1", name="add", arguments='{"a":1,"b":1}')
    solver = AssistantAgent("solver", Stub([call], "it is 2"), tools=[add], reflect_on_tool_use=True)
    orchestrator = Stub("facts", "plan", ledger(False), ledger(True), "the answer is 2")
    result = await MagenticOneGroupChat([solver], model_client=orchestrator, max_turns=4).run(task="1+1?")
    Path(__file__).with_name("magentic_one_result.json").write_text(result.model_dump_json() + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
