"""Record a run of LangGraph, with the package itself: `python record_langgraph.py` in an environment with langgraph.

Recorded with langgraph 1.2.22, langchain-core 1.7.2 and langgraph-checkpoint-sqlite 3.1.2: the debug stream of a run,
and the checkpoints of another in a SQLite database. A planner sends two questions to two workers that work at the same
time; each calls a tool and is called again with its result. Then a sub-graph drafts and edits, and a critic ends. The
model is LangChain's fake one, with answers written here.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send


def answer(state: MessagesState, content: str, output: int, calls: list[dict[str, Any]] | None = None) -> AIMessage:
    """A call of a model that knows one answer."""
    usage = {"input_tokens": 10 * len(state["messages"]), "output_tokens": output, "total_tokens": output}
    message = AIMessage(content=content, tool_calls=calls or [], usage_metadata=usage,
                        response_metadata={"model_name": "stub-1"})  # fmt: skip
    result = GenericFakeChatModel(messages=iter([message])).invoke(state["messages"])
    assert isinstance(result, AIMessage)
    return result


def planner(state: MessagesState) -> Command[Any]:
    sends = [Send("worker", {"messages": [HumanMessage(f"question {i}", id=f"q{i}")]}) for i in (1, 2)]
    return Command(goto=sends, update={"messages": [answer(state, "plan", 5)]})


def worker(state: MessagesState) -> dict[str, Any]:
    question = state["messages"][0]
    call = answer(state, "", 3, [{"name": "search", "args": {"q": question.content}, "id": f"call-{question.id}"}])
    result = ToolMessage("found", tool_call_id=call.tool_calls[0]["id"], name="search", id=f"result-{question.id}")
    last = answer({"messages": [question, call, result]}, f"answer to {question.content}", 4)
    return {"messages": [call, result, last]}


def speaker(content: str, output: int) -> Any:
    return lambda state: {"messages": [answer(state, content, output)]}


def team(saver: Any) -> Any:
    inner = StateGraph(MessagesState)
    inner.add_node("drafter", speaker("draft", 7))
    inner.add_node("editor", speaker("edited", 6))
    inner.add_edge(START, "drafter")
    inner.add_edge("drafter", "editor")
    outer = StateGraph(MessagesState)
    outer.add_node("planner", planner, destinations=("worker",))
    outer.add_node("worker", worker)
    outer.add_node("writers", inner.compile())
    outer.add_node("critic", speaker("good", 2))
    outer.add_edge(START, "planner")
    outer.add_edge("worker", "writers")
    outer.add_edge("writers", "critic")
    outer.add_edge("critic", END)
    return outer.compile(checkpointer=saver)


def dumped(value: Any) -> Any:
    return value.model_dump()


if __name__ == "__main__":
    config, question = {"configurable": {"thread_id": "run-1"}}, {"messages": [HumanMessage("Sum up.")]}
    stream = team(InMemorySaver()).stream(question, config, stream_mode="debug", subgraphs=True)
    lines = [json.dumps(item, default=dumped) for item in stream]
    Path(__file__).with_name("langgraph_team.jsonl").write_text("\n".join(lines) + "\n")

    with tempfile.TemporaryDirectory() as folder, SqliteSaver.from_conn_string(f"{folder}/checkpoints.db") as saver:
        graph = team(saver)
        graph.invoke(question, config)
        with Path(__file__).with_name("langgraph_history.jsonl").open("w") as file:
            for snapshot in graph.get_state_history(config):
                row = snapshot._asdict() | {"tasks": [task._asdict() for task in snapshot.tasks]}
                file.write(json.dumps(row, default=dumped) + "\n")
