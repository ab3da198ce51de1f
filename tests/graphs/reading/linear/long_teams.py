"""Logs of one trace with many agents, messages or lines of one kind: what grew with a product when they were read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "TEAMS", "checkpoint_line", "langgraph_of_answers_to_all", "langgraph_of_inputs_beside_results",
    "langgraph_of_nodes_that_heard_apart", "langgraph_of_trimmed_inputs", "sends_after_a_step",
]  # fmt: skip

TIME = "2025-01-01T00:00:00Z"


def autogen_of_many_members(size: int) -> str:
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    messages = [{"source": f"a{i}", "models_usage": usage, "type": "TextMessage"} for i in range(size)]
    return json.dumps({"messages": messages})


def langgraph_checkpoint_of_people_and_nodes(size: int) -> str:
    """Each node is given all messages; in the second checkpoint, more of them."""

    def checkpoint(step: int) -> str:
        asked = [{"type": "human", "content": "x", "id": f"m{i}"} for i in range(size * (step + 1))]
        tasks = [
            {"id": f"t{step}-{i}", "name": f"n{i}", "path": [],
             "result": {"messages": [{"type": "ai", "content": "y", "id": f"r{step}-{i}"}]}}
            for i in range(size)
        ]  # fmt: skip
        own = {"thread_id": "1", "checkpoint_id": str(step)}
        more = {"next": [], "metadata": {"step": step}, "created_at": TIME, "parent_config": None}
        return json.dumps({"values": {"messages": asked}, "config": {"configurable": own}, "tasks": tasks, **more})

    return f"{checkpoint(0)}\n{checkpoint(1)}"


def checkpoint_line(step: int, messages: list[dict[str, str]], nodes: range, thread: str = "t") -> str:
    """A checkpoint in which nodes answer."""
    tasks = [
        {"id": f"t{step}-{i}", "name": f"{step and 'n'}{i}", "path": [],
         "result": {"messages": [{"type": "ai", "content": "y", "id": f"r{step}-{i}"}]}}
        for i in nodes
    ]  # fmt: skip
    own = {"thread_id": thread, "checkpoint_id": f"{step:06}"}
    more = {"next": [], "metadata": {"step": step}, "created_at": TIME, "parent_config": None}
    return json.dumps({"values": {"messages": messages}, "config": {"configurable": own}, "tasks": tasks, **more})


def langgraph_of_answers_to_all(size: int, thread: str = "t") -> str:
    """Each of many nodes is given the message of each of as many others: edges grow with the square."""
    said = [{"type": "ai", "content": "y", "id": f"r0-{i}"} for i in range(size)]
    checkpoints = (checkpoint_line(0, [], range(size), thread), checkpoint_line(1, said, range(size), thread))
    return "\n".join(checkpoints)


def langgraph_of_nodes_that_heard_apart(size: int) -> str:
    """Each of many nodes has heard a message that none of the others did; then all are given as many messages."""

    def asked(name: str) -> dict[str, str]:
        return {"type": "human", "content": "q", "id": name}

    alone = [checkpoint_line(i, [asked(f"q{i}")], range(i, i + 1)) for i in range(1, size + 1)]
    together = checkpoint_line(size + 1, [asked(f"h{i}") for i in range(size)], range(1, size + 1))
    return "\n".join([*alone, together])


def asked_of(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "human", "content": "q", "id": name} for name in names]


def langgraph_of_trimmed_inputs(size: int) -> str:
    """Each of many nodes was given a message, and then as many others, without the first."""
    nodes, others = range(1, size + 1), [f"h{i}" for i in range(size)]
    return "\n".join([checkpoint_line(1, asked_of(["q"]), nodes), checkpoint_line(2, asked_of(others), nodes)])


def langgraph_of_inputs_beside_results(size: int) -> str:
    """Each of many nodes has heard a tool's result; then all are given as many messages."""
    nodes, first = range(1, size + 1), asked_of(["q"])
    asking = json.loads(checkpoint_line(1, first, nodes))
    for i, task in enumerate(asking["tasks"]):
        task["result"]["messages"][0]["tool_calls"] = [{"id": f"c{i}", "name": "f"}]
        task["result"]["messages"].append({"type": "tool", "content": "r", "id": f"k{i}", "tool_call_id": f"c{i}"})
    others = [*first, *asked_of(f"h{i}" for i in range(size))]
    return "\n".join([json.dumps(asking), checkpoint_line(2, first, nodes), checkpoint_line(3, others, nodes)])


def langgraph_of_one_node_that_answers_often(size: int) -> str:
    """A node was given a message; then, once, as many others, of which it makes as many calls."""
    said = json.loads(checkpoint_line(2, asked_of(f"h{i}" for i in range(size)), range(1, 2)))
    said["tasks"][0]["result"]["messages"] = [{"type": "ai", "content": "y", "id": f"r{i}"} for i in range(size)]
    return f"{checkpoint_line(1, asked_of(['q']), range(1, 2))}\n{json.dumps(said)}"


def sends_after_a_step(nodes: int, calls: int, sends: int, thread: str = "t") -> str:
    """A step of nodes with some calls each, and one of tasks that `Send` started, of which no input tells who did."""
    lines = []

    def event(step: int, kind: str, **payload: Any) -> None:
        lines.append(json.dumps({"step": step, "timestamp": TIME, "type": kind, "payload": payload}))

    def task(step: int, own: str, node: str, triggers: list[str], count: int) -> None:
        event(step, "checkpoint", config={"configurable": {"thread_id": thread}}, tasks=[{"id": own}])
        event(step, "task", id=own, name=node, input={}, triggers=triggers)
        answers = [{"type": "ai", "content": "y", "id": f"{own}-{i}"} for i in range(count)]
        event(step, "task_result", id=own, name=node, result={"messages": answers})

    for i in range(nodes):
        task(0, f"{thread}-n{i}", f"n{i}", ["x"], calls)
    for i in range(sends):
        task(1, f"{thread}-s{i}", "worker", ["__pregel_push"], 1)
    return "\n".join(lines)


def langgraph_of_sends_after_many_calls(size: int) -> str:
    return sends_after_a_step(1, size, size)


def claude_line(kind: str, uuid: str, parent: str | None, *, side: bool = False, **given: Any) -> str:
    more = {"sessionId": "s", "parentUuid": parent, "isSidechain": side}
    return json.dumps({"type": kind, "uuid": uuid, **more, **given})


def claude_said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def claude_called(name: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "model": "m", "role": "assistant", "content": list(blocks)}


def claude_code_below_plain_lines(size: int) -> str:
    """Lines of agents that hang on the last of a chain of lines of other types."""
    lines = [claude_line("assistant", "c", None, message=claude_called("m"))]
    lines += [claude_line("system", f"p{i}", f"p{i - 1}") for i in range(size)]
    lines += [claude_line("user", f"q{i}", f"p{size - 1}", side=True, message=claude_said("x")) for i in range(size)]
    return "\n".join(lines)


def claude_code_of_many_session_ids(size: int) -> str:
    lines = [claude_line("assistant", "c", None, message=claude_called("m"))]
    lines += [claude_line("system", f"p{i}", None, sessionId=f"s{i}") for i in range(4 * size)]
    return "\n".join(lines)


def claude_code_of_a_line_again_and_again(size: int) -> str:
    """The first time behind many blanks."""
    line = claude_line("assistant", "c", None, message=claude_called("m"))
    return "\n".join([" " * 200 * size + line, *[line] * size])


def claude_code_of_one_agent_woken(size: int) -> str:
    tasks = [{"type": "tool_use", "id": f"t{i}", "name": "Task", "input": {"prompt": f"p{i}"}} for i in range(size)]
    lines = [claude_line("assistant", f"c{i}", None, message=claude_called("m", tasks[i])) for i in range(size)]
    for i in range(size):
        progress = {"type": "agent_progress", "agentId": "x"}
        lines.append(claude_line("progress", f"g{i}", None, parentToolUseID=f"t{i}", data=progress))
        parent = f"q{i - 1}" if i else None
        lines.append(claude_line("user", f"q{i}", parent, side=True, agentId="x", message=claude_said(f"p{i}")))
    return "\n".join(lines)


def inspect_of_calls_and_branches(size: int) -> str:
    events: list[dict[str, Any]] = [{"event": "model", "output": {"choices": [{}]}}] * size
    sample = {
        "id": 1,
        "epoch": 1,
        "input": "q",
        "scores": {},
        "events": [*events, *[{"event": "branch"}] * size, events[0]],
    }
    return json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [sample]})


def who_and_when_of_people_alone(size: int) -> str:
    blame = {"question_ID": "q", "mistake_agent": "human", "mistake_step": "0", "is_correct": False}
    return json.dumps({"history": [{"content": "x", "role": "human"}] * size, **blame})


TEAMS: dict[str, Callable[[int], str]] = {
    function.__name__: function
    for function in (
        autogen_of_many_members,
        langgraph_checkpoint_of_people_and_nodes,
        langgraph_of_sends_after_many_calls,
        langgraph_of_one_node_that_answers_often,
        claude_code_below_plain_lines,
        claude_code_of_many_session_ids,
        claude_code_of_a_line_again_and_again,
        claude_code_of_one_agent_woken,
        inspect_of_calls_and_branches,
        who_and_when_of_people_alone,
    )
}
"""By name, a log of a number of each."""
