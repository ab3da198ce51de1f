"""Record a run of mini-swe-agent: `python record_mini_swe_agent.py`, with mini-swe-agent installed.

Recorded with mini-swe-agent 2.4.6. Its own agent runs two commands of one reply in its local environment, and submits.
The model is the package's deterministic one, which gives prepared answers; it names no tokens. The file is what the
command line writes with `--output`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.test_models import DeterministicToolcallModel, make_toolcall_output

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo done"


def asked(*commands: tuple[str, str]) -> dict[str, Any]:
    """A reply that asks for commands, each with the id of its call."""
    calls = [
        {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
        for call_id, command in commands
    ]
    actions = [{"command": command, "tool_call_id": call_id} for call_id, command in commands]
    return make_toolcall_output("", calls, actions)


def main() -> None:
    os.chdir(Path(__file__).parent)
    replies = [asked(("c1", "echo one"), ("c2", "/bin/echo two")), asked(("c3", SUBMIT))]
    agent = DefaultAgent(
        DeterministicToolcallModel(outputs=replies),
        LocalEnvironment(),
        system_template="You write commands.",
        instance_template="{{task}}",
        output_path=Path("mini_swe_agent.traj.json"),  # the file holds its path
    )
    agent.run("say one and two")


if __name__ == "__main__":
    main()
