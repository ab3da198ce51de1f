"""Record a team in Braintrust: `python record_braintrust.py`, with braintrust and openai-agents.

Recorded with braintrust 0.48.1 and openai-agents 0.24.0. `Eval` runs a team of the OpenAI Agents SDK on two inputs,
twice each, with a scorer; Braintrust's own processor makes its spans. A triage agent looks something up and hands over
to a writer. Braintrust sends parts of rows to its service, which joins them, and keeps no file. The service here is a
server on this machine: it joins the parts by `merge_row_batch` of the package, as the package does before it sends
them. So each row is as its client wrote it, a row a line, as exports of logs and experiments have them. What the
service adds is missing: `_xact_id`, `is_root`, `_pagination_key`. Names of this machine's files are left out. The model
is the same server.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from service import Service, completion

HERE = Path(__file__).parent
PORT = 6112
URL = f"http://127.0.0.1:{PORT}"
ROWS: list[dict[str, Any]] = []


def asked(name: str, call_id: str, **arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the model answers: a search first, then a hand-over, then the text of the search."""
    results = [message for message in messages if message["role"] == "tool"]
    if not results:
        return asked("search", "c1", question="x")
    return asked("transfer_to_writer", "c2") if len(results) == 1 else {"content": results[0]["content"]}


def answer(path: str, body: Any) -> Any:
    """What the service answers to a request."""
    if path == "/v1/chat/completions":
        return completion(reply(body["messages"]), len(body["messages"]))
    if path == "/api/apikey/login":
        return {"org_info": [{"id": "o", "name": "acme", "api_url": URL, "proxy_url": URL}]}
    if path == "/v1/project":
        return {"id": "p", "name": "team", "org_id": "o"}
    if path.startswith(("/v1/experiment", "/api/experiment")):
        return {"id": "e", "name": "first", "project_id": "p", "public": False}
    if path == "/logs3":
        ROWS.extend(body["rows"])
    return {}


def team() -> None:
    import braintrust
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_trace_processors
    from braintrust.integrations.openai_agents.tracing import BraintrustTracingProcessor
    from braintrust.merge_row_batch import merge_row_batch
    from openai import AsyncOpenAI

    @function_tool
    def search(question: str) -> str:
        """Look something up."""
        return f"found {question}"

    set_trace_processors([BraintrustTracingProcessor()])

    async def answered(question: str) -> str:
        model = OpenAIChatCompletionsModel("tiny", AsyncOpenAI(base_url=f"{URL}/v1", api_key="none"))
        writer = Agent(name="writer", instructions="Write.", model=model)
        triage = Agent(name="triage", instructions="Decide.", model=model, tools=[search], handoffs=[writer])
        return str((await Runner.run(triage, question)).final_output)

    def right(input: str, output: str, expected: str) -> float:
        return float(output == expected)

    data = [{"input": "x", "expected": "found x"}, {"input": "y", "expected": "found y"}]
    braintrust.Eval("team", data=data, task=answered, scores=[right], trial_count=2, max_concurrency=1)
    braintrust.flush()
    rows = merge_row_batch(ROWS)
    for row in rows:
        row["context"].pop("caller_filename", None)
    (HERE / "braintrust_spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(len(rows), "rows")


def main() -> None:
    os.environ |= {"BRAINTRUST_APP_URL": URL, "BRAINTRUST_API_URL": URL, "BRAINTRUST_API_KEY": "none"}
    with Service(PORT, answer):
        team()


if __name__ == "__main__":
    main()
