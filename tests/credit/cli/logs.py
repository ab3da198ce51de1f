"""Small logs, and commands run on them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from credit.cli import cli

__all__ = ["CYCLE", "GOOD", "ROOT", "run", "start", "trace", "write"]

ROOT = Path(__file__).resolve().parents[3]


def trace(name: str, task: str, reward: float | None, **changes: Any) -> dict[str, Any]:
    """A boss who briefs a solver; the tool's result is no action."""
    made: dict[str, Any] = {
        "trace_id": name,
        "task_id": task,
        "events": [
            {"id": "e0", "t": 0, "type": "orchestrator_decision", "agent": "boss"},
            {"id": "e1", "t": 1, "type": "message", "agent": "solver", "tokens": 7},
            {"id": "e2", "t": 2, "type": "tool_result", "agent": "solver"},
        ],
        "edges": [{"src": "e0", "dst": "e1", "type": "message"}],
        "rewards": {} if reward is None else {"team": reward},
        "costs": {"tokens": 7, "wall_clock_s": 1.0},
    }
    return made | changes


GOOD = [trace("a", "q", 1.0), trace("b", "q", 0.0), trace("c", "r", 1.0), trace("d", "r", 1.0), trace("e", "s", 0.5)]
CYCLE = trace("loop", "q", 1.0, edges=[{"src": s, "dst": d, "type": "causal"} for s, d in ("01", "10")])
for edge in CYCLE["edges"]:
    edge["src"], edge["dst"] = "e" + edge["src"], "e" + edge["dst"]


def write(path: Path, traces: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(t) + "\n" for t in traces))
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args])


def start(*args: object, program: Sequence[str] = ("-m", "credit"), **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, *program, *map(str, args)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
