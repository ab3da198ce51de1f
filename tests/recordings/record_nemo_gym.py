"""Record rollouts of NeMo Gym with a stub model: `python record_nemo_gym.py`, with nemo-gym 0.7.0.

Recorded with `gym env start`, which starts NeMo Gym's own servers, and `gym eval run`: the example environment of
several steps, the agent of tools and the client of OpenAI's models. Each task is run twice. The model is a server on
this machine that speaks OpenAI's responses: it asks a tool for a value, states the value to a second tool, wrong in the
second run, and ends. The folder of the output is kept, with what stands beside it. All servers run in the environment
of this script, where NeMo Gym would make one for each.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from service import Service

HERE = Path(__file__).parent
PORT = 6113
SERVERS = (
    "environment_servers/legacy_agent", "resources_servers/example_multi_step", "responses_api_agents/simple_agent",
    "responses_api_models/openai_model",
)  # fmt: skip


def tool(name: str, argument: str, kind: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {argument: kind}, "required": [argument],
                  "additionalProperties": False}  # fmt: skip
    return {"type": "function", "name": name, "description": "", "strict": True, "parameters": parameters}


TOOLS = [
    tool("get_synonym_value", "synonym", {"type": "string"}),
    tool("extract_synonym_values", "synonym_values", {"type": "array", "items": {"type": "integer"}}),
]
TASKS = [
    {
        "id": number, "expected_synonym_values": [ord(word)], "expected_synonyms": [word], "minefield_label": "no",
        "minefield_label_value": 0,
        "responses_create_params": {"input": [{"role": "user", "content": f"What is {word}?"}], "tools": TOOLS},
    }
    for number, word in enumerate("ab")
]  # fmt: skip


RUNS = [0]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": f"f_{name}", "call_id": f"c_{name}", "name": name,
            "arguments": json.dumps(arguments), "status": "completed"}  # fmt: skip


def answer(_: str, asked: Any) -> dict[str, Any]:
    """What the model answers to a request."""
    if not asked:
        return {"object": "list", "data": [{"id": "tiny", "object": "model", "created": 1, "owned_by": "x"}]}
    said = asked["input"]
    results = [item["output"] for item in said if item.get("type") == "function_call_output"]
    if not results:
        RUNS[0] += 1
        item = call("get_synonym_value", synonym=said[0]["content"][8])
    elif len(results) == 1:
        value = json.loads(results[0])["synonym_value"] * (RUNS[0] % 2)
        item = call("extract_synonym_values", synonym_values=[value])
    else:
        text = {"type": "output_text", "text": "Done.", "annotations": []}
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    read = 10 * len(said)
    usage = {"input_tokens": read, "output_tokens": 4, "total_tokens": read + 4,
             "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    return {"id": "r", "object": "response", "created_at": 1, "model": "tiny", "output": [item], "tools": TOOLS,
            "parallel_tool_calls": False, "tool_choice": "auto", "usage": usage}  # fmt: skip


def main() -> None:
    with Service(PORT, answer), tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS))
        for server in SERVERS:
            (folder / server).mkdir(parents=True)
            (folder / server / ".venv").symlink_to(sys.prefix)
        gym = f"{sys.prefix}/bin/gym"
        environment = os.environ | {"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
        chosen = ["--resources-server", "example_multi_step", "--model-type", "openai_model"]
        endpoint = ["--model", "tiny", "--model-url", f"http://127.0.0.1:{PORT}/v1", "--model-api-key", "none"]
        settings = ["+skip_venv_if_present=true", f"+uv_venv_dir={folder}"]
        servers = subprocess.Popen([gym, "env", "start", *chosen, *endpoint, *settings], cwd=folder, env=environment,
                                   stdout=subprocess.PIPE, text=True)  # fmt: skip
        try:
            for line in servers.stdout or ():
                print(line, end="", flush=True)
                if line.startswith("All ") and "servers ready" in line:
                    break
            subprocess.run([
                gym, "eval", "run", "--no-serve", "--agent", "example_multi_step_simple_agent", "--input",
                "tasks.jsonl", "--output", "rollouts.jsonl", "--num-repeats", "2", "--concurrency", "1",
            ], cwd=folder, check=True, env=environment)  # fmt: skip
        finally:
            servers.send_signal(signal.SIGINT)
            servers.wait()
        (folder / "tasks.jsonl").unlink()
        shutil.rmtree(HERE / "nemo_gym", ignore_errors=True)
        (HERE / "nemo_gym").mkdir()
        for path in folder.glob("*.json*"):
            shutil.copy(path, HERE / "nemo_gym")


if __name__ == "__main__":
    main()
