"""Records a team with the official LangSmith SDK, as runs that its client would post: a graph of agents as nodes.

    python tests/recordings/record_langsmith.py FILE

A supervisor node calls a model and hands over to a researcher with a tool `transfer_to_researcher`; the researcher
calls a model, a search tool and the model again; the supervisor is visited a second time. Runs stand in the order in
which they ended. Made with langsmith 0.14.17.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from langsmith.run_trees import RunTree


def node(parent: RunTree, name: str, step: int) -> RunTree:
    """A visit to a node of a graph, with the metadata that LangGraph gives to it and to all runs inside."""
    return parent.create_child(name=name, run_type="chain", extra={"metadata": metadata(name, step)})


def metadata(name: str, step: int) -> dict[str, Any]:
    """LangGraph's metadata."""
    return {"langgraph_node": name, "langgraph_step": step}


def call(parent: RunTree, name: str, step: int, tokens: int) -> RunTree:
    """A model call inside a node."""
    run = parent.create_child(name="StubModel", run_type="llm", extra={"metadata": metadata(name, step)})
    run.end(outputs={"usage_metadata": {"input_tokens": 10, "output_tokens": tokens, "total_tokens": 10 + tokens}})
    return run


def main(file: Path) -> None:
    """Run the graph once and write its runs, and feedback on the root as the API gives it."""
    root = RunTree(name="LangGraph", run_type="chain", inputs={"question": "hi"})
    ended: list[RunTree] = []

    def end(run: RunTree) -> None:
        if run.end_time is None:
            run.end(outputs={})
        ended.append(run)

    first = node(root, "supervisor", 1)
    end(call(first, "supervisor", 1, 5))
    end(first.create_child(name="transfer_to_researcher", run_type="tool"))
    end(first)
    worker = node(root, "researcher", 2)
    end(call(worker, "researcher", 2, 3))
    end(worker.create_child(name="search", run_type="tool"))
    end(call(worker, "researcher", 2, 4))
    end(worker)
    last = node(root, "supervisor", 3)
    end(call(last, "supervisor", 3, 2))
    end(last)
    end(root)
    runs = [json.loads(json.dumps(run._get_dicts_safe(), default=str)) for run in ended]
    feedback = {"key": "correct", "score": 1.0, "run_id": str(root.id), "trace_id": str(root.trace_id)}
    file.write_text("".join(json.dumps(item) + "\n" for item in [*runs, feedback]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
