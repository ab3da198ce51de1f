"""Record a team in W&B Weave: `python record_weave.py`, with weave and openai; its service is replaced by a stand-in.

Recorded with weave 0.54.0 and openai 3.57.0. A lead agent calls a model, and a researcher as a tool, which calls a
model and a tool; it runs once alone, where a scorer and a person judge it, and in an evaluation on two examples, twice
each, with a scorer. Weave sends calls to its service, and keeps no file. The service here is a server on this machine
that does what the client needs: it keeps the calls that the client sends whole, joins a start with its end, adds the
feedback of a call, and gives them back. So each call is as the client wrote it, but that digests of objects are the
stand-in's. The file is what the client reads back, a call a line, as Weave exports calls as JSON lines. The model is
the same server.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from service import Service, completion

HERE = Path(__file__).parent
PORT = 6111
ENTITY, PROJECT = "acme", "team"

CALLS: dict[str, dict[str, Any]] = {}
OBJECTS: dict[str, Any] = {}
FEEDBACK: dict[str, list[dict[str, Any]]] = {}
ASKED = {"type": "function", "id": "c1", "function": {"name": "search", "arguments": '{"question": "x"}'}}


def digest(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:43]


def feedback(sent: dict[str, Any]) -> dict[str, Any]:
    """Keep a feedback with its call, and answer that it is kept."""
    kept = {"id": f"f{sum(map(len, FEEDBACK.values()))}", "created_at": "2026-01-01T00:00:00Z", "wb_user_id": "u"}
    FEEDBACK.setdefault(sent["weave_ref"].rpartition("/")[2], []).append(sent | kept)
    return kept | {"payload": {}}


def answer(path: str, body: Any) -> Any:
    """What the service answers to a request."""
    if path.endswith("/chat/completions"):
        text = body["messages"][-1]["content"]
        if text.startswith("ask"):
            return completion({"content": None, "tool_calls": [ASKED]}, 3)
        return completion({"content": text}, 5)
    if path.endswith("/graphql"):
        project = {"id": "p", "name": PROJECT, "entityName": ENTITY}
        return {
            "data": {"viewer": {"id": "u", "username": "ann", "entity": ENTITY}, "model": project, "project": project}
        }
    if path.endswith("/calls/complete"):
        for call in body["batch"]:
            CALLS[call["id"]] = call
    elif path.endswith("/call/start"):
        CALLS[body["start"]["id"]] = body["start"]
    elif path.endswith("/call/end"):
        CALLS[body["end"]["id"]] |= body["end"]
    elif path.endswith("/calls/stream_query"):
        return [
            call | {"project_id": f"{ENTITY}/{PROJECT}"}
            | {"summary": call["summary"] | {"weave": {"feedback": FEEDBACK.get(call["id"], [])}}}
            for call in CALLS.values()
        ]  # fmt: skip
    elif path.endswith("/server_info"):
        return {"min_required_weave_python_version": "0.0.1", "trace_server_version": "9.9.9"}
    elif path.endswith("/table/create"):
        rows = body["table"]["rows"]
        OBJECTS[digest(rows)] = rows
        return {"digest": digest(rows), "row_digests": [digest(row) for row in rows]}
    elif path.endswith("/table/query"):
        return {
            "rows": [
                {"digest": digest(row), "val": row, "original_index": i}
                for i, row in enumerate(OBJECTS[body["digest"]])
            ]
        }
    elif path.endswith("/table/query_stats"):
        return {"count": len(OBJECTS[body["digest"]])}
    elif path.endswith(("/obj/create", "/file/create", "/files/create")):
        return {"digest": digest(body)}
    elif path.endswith("/feedback/create"):
        return feedback(body)
    elif path.endswith("/feedback/batch/create"):
        return {"res": [feedback(item) for item in body["batch"]]}
    return {}


def team() -> None:
    import openai
    import weave

    client = weave.init(f"{ENTITY}/{PROJECT}")
    model = openai.OpenAI(base_url=f"http://127.0.0.1:{PORT}/v1", api_key="none")

    def ask(text: str) -> str | None:
        reply = model.chat.completions.create(model="tiny", messages=[{"role": "user", "content": text}])
        return reply.choices[0].message.content

    @weave.op(kind="tool")
    def search(question: str) -> str:
        return f"found {question}"

    @weave.op(kind="agent")
    def researcher(question: str) -> str | None:
        ask("ask for a search")
        return ask(search(question))

    @weave.op(kind="tool")
    def delegate(question: str) -> str | None:
        return researcher(question)

    @weave.op(kind="agent")
    def lead(question: str) -> str | None:
        ask("ask for help")
        found = delegate(question)
        return ask(f"{found}")

    @weave.op
    def right(expected: str, output: str) -> dict[str, bool]:
        return {"right": expected == output}

    class Short(weave.Scorer):
        @weave.op
        def score(self, *, output: str) -> bool:
            return len(output) < 10

    examples = [{"question": "x", "expected": "found x"}, {"question": "y", "expected": "z"}]
    asyncio.run(weave.Evaluation(dataset=examples, scorers=[right], trials=2).evaluate(lead))
    _, call = lead.call("z")
    asyncio.run(call.apply_scorer(Short()))
    useful = f"weave:///{ENTITY}/{PROJECT}/object/useful:{digest('useful')}"
    call.feedback.add("wandb.annotation.useful", {"value": 0.5}, annotation_ref=useful)
    client.flush()
    calls = list(client.server.calls_query_stream({"project_id": f"{ENTITY}/{PROJECT}", "include_feedback": True}))
    lines = [call.model_dump_json(exclude_none=True) for call in calls]
    (HERE / "weave_calls.jsonl").write_text("".join(line + "\n" for line in lines))
    print(len(lines), "calls of", weave.__version__, openai.__version__)


def main() -> None:
    url = f"http://127.0.0.1:{PORT}"
    os.environ |= {
        "WANDB_BASE_URL": url, "WF_TRACE_SERVER_URL": f"{url}/traces", "WANDB_API_KEY": "0" * 40,
        "WEAVE_PRINT_CALL_LINK": "false", "WEAVE_USE_SERVER_CACHE": "false", "WEAVE_CAPTURE_CODE": "false",
        "WEAVE_CAPTURE_SYSTEM_INFO": "false",
    }  # fmt: skip
    with Service(PORT, answer):
        team()


if __name__ == "__main__":
    main()
