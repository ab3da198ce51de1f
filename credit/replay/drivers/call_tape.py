"""Tapes: what the models and tools of a run answered, as values, as files and as a log.

A call is known by its agent and its number among the agent's calls, as in "coder/0". Branches that run in parallel may
therefore finish in any order.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from credit.replay.json_lines import field, read_lines, write_lines
from graphs.errors import CreditError

__all__ = ["Call", "Tape", "digest", "read_tapes", "write_log", "write_tapes"]


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a model or a tool.

    Attributes:
      id: agent and number, "coder/0"; for tools "tool:NAME/0".
      agent: name of the agent; "" for tools.
      request: digest of what was asked.
      response: the answer, as JSON.
      tokens: generated tokens, 0 where unknown.
    """

    id: str
    agent: str
    request: str
    response: Any
    tokens: int = 0


@dataclasses.dataclass(frozen=True)
class Tape:
    """All calls of a run in the order in which they ended, and its reward."""

    trace: str
    group: str
    calls: tuple[Call, ...]
    reward: float


def digest(request: Any) -> str:
    """The digest that identifies a request on a tape."""
    return hashlib.sha256(json.dumps(request, sort_keys=True, default=str).encode()).hexdigest()


def write_tapes(tapes: Iterable[Tape], path: Path) -> None:
    """Write tapes as JSON lines; the file appears whole or not at all."""
    write_lines(path, (dataclasses.asdict(tape) for tape in tapes))


def read_tapes(path: Path) -> dict[str, Tape]:
    """Tapes by trace id.

    Raises:
      CreditError: a line that is no tape, or a trace that occurs twice.
    """
    tapes: dict[str, Tape] = {}
    for number, line in read_lines(path):
        trace = field(path, number, line, "trace", str)
        if trace in tapes:
            raise CreditError(f"{path}, line {number}: trace {trace!r} occurs twice; expected each once")
        calls = tuple(
            Call(
                field(path, number, call, "id", str),
                field(path, number, call, "agent", str),
                field(path, number, call, "request", str),
                call.get("response"),
                field(path, number, call, "tokens", int),
            )
            for call in field(path, number, line, "calls", list)
        )
        reward = float(field(path, number, line, "reward", (int, float)))
        tapes[trace] = Tape(trace, field(path, number, line, "group", str), calls, reward)
    return tapes


def write_log(tapes: Iterable[Tape], path: Path) -> None:
    """Write tapes as a native log: an event for each model call, whose id is the call's; the file appears whole.

    Consecutive calls of an agent are linked. Which call led to which other agent's is not on a tape.
    """
    write_lines(path, map(_trace, tapes))


def _trace(tape: Tape) -> dict[str, Any]:
    calls = [call for call in tape.calls if call.agent]
    last: dict[str, str] = {}
    edges = []
    for call in calls:
        if call.agent in last:
            edges.append({"src": last[call.agent], "dst": call.id, "type": "causal"})
        last[call.agent] = call.id
    events = [
        {"id": call.id, "t": i, "type": "message", "agent": call.agent}
        | ({"tokens": call.tokens} if call.tokens else {})
        for i, call in enumerate(calls)
    ]
    return {"trace_id": tape.trace, "task_id": tape.group, "events": events, "edges": edges,
            "rewards": {"team": tape.reward}, "costs": {}}  # fmt: skip
