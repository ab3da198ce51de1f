"""The content of events without names, times and costs, which differ between runs. Equal keys are equal events."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphs.errors import CreditError, expect
from graphs.event_graph import EventType
from graphs.reading.source import Source
from graphs.traces.batch import Traces

__all__ = ["EventContent", "WithoutContent", "event_content"]

WithoutContent = Literal["differ", "equal"]
"""Whether two events without content differ, or are equal if type, agents, tool and status are."""

_OF_ONE_RUN = frozenset(("id", "tool_call_id", "timestamp", "time", "created", "usage", "cost", "turn_idx"))
_DESCENDED = frozenset(("content", "tool_calls", "function"))
_NEEDS_NO_CONTENT = frozenset((int(EventType.DESPAWN), int(EventType.STOP)))


@dataclasses.dataclass(frozen=True)
class EventContent:
    """The content of each event; lists over the real events.

    Attributes:
      keys: equal for equal events; None where the log lacks the content, so that the event equals no other.
      agents: the agent that acts: its number in the order of appearance in the trace, name and role.
      revealed: bool, the record of the event in the log also holds an earlier event of the trace.
    """

    keys: list[Hashable | None]
    agents: list[tuple[int, str, str]]
    revealed: np.ndarray


def event_content(traces: Traces, without_content: WithoutContent = "differ") -> EventContent:
    """The content of each event of a log.

    A key holds the type of the event, the agents that take part in it, its tool and status, what the log calls its
    `alternative`, and its content. Agents are known by their order of appearance in the trace, with name and role,
    since ids of instances differ between runs. Content is, as far as the log has it, `content_ref`, the token ids, or
    the chat message (an object with "role") that the event was read from, without ids, times and costs. Events that end
    an agent or the run need none.

    Args:
      traces: what was read; chat messages are read again from their files.
      without_content: as `WithoutContent`.

    Raises:
      CreditError: an unknown option.
      OSError: a file cannot be read again.
    """
    expect("traces", traces, Traces, "what credit.read returns")
    if without_content not in ("differ", "equal"):
        raise CreditError(f"without_content is {without_content!r}; expected 'differ' or 'equal'")
    n = traces.sizes.events
    acting, named = _agents(traces)
    kinds = np.asarray(traces.graph.event_type)[:n].tolist()
    actions = np.asarray(traces.graph.action_mask)[:n].tolist()
    tools, states, refs = (traces.events[name].to_pylist() for name in ("tool", "status", "content_ref"))
    messages = _messages(traces, [e for e, ref in enumerate(refs) if ref is None])
    tokens = _tokens(traces)
    chosen = traces.evidence["alternative"].array[:n].tolist() if "alternative" in traces.evidence else [-1] * n
    keys: list[Hashable | None] = []
    for e in range(n):
        content: Hashable | None = refs[e]
        if content is None:
            content = messages.get(e, tokens.get(e))
        if content is None and without_content == "differ" and kinds[e] not in _NEEDS_NO_CONTENT:
            keys.append(None)
        else:
            keys.append((kinds[e], actions[e], acting[e], named[e], tools[e], states[e], chosen[e], content))
    return EventContent(keys, acting, _revealed(traces, messages))


def _agents(traces: Traces) -> tuple[list[tuple[int, str, str]], list[Hashable]]:
    """The acting agent of each event, and the agents that the event names."""
    n, ids = traces.sizes.events, traces.agents["agent"].to_pylist()
    names, roles = (traces.agents[column].to_pylist() for column in ("name", "role"))
    owner = np.asarray(traces.graph.agent_ids)[:n].tolist()
    trace = np.asarray(traces.graph.trace_ids)[:n].tolist()
    row_of: list[dict[str, int]] = [{} for _ in range(traces.sizes.traces)]
    for row, t in enumerate(np.asarray(traces.graph.agent_trace)[: len(ids)].tolist()):
        row_of[t][ids[row]] = row
    number: dict[int, int] = {}
    seen = [0] * traces.sizes.traces

    def known(row: int, t: int) -> tuple[int, str, str]:
        if row not in number:
            number[row] = seen[t]
            seen[t] += 1
        return number[row], names[row], roles[row]

    ends = [traces.events[name].to_pylist() for name in ("from", "to")]
    acting: list[tuple[int, str, str]] = []
    named: list[Hashable] = []
    for e, t in enumerate(trace):
        acting.append(known(owner[e], t))
        texts = [column[e] for column in ends]
        named.append(tuple(known(row_of[t][text], t) if text in row_of[t] else text for text in texts))
    return acting, named


def _tokens(traces: Traces) -> dict[int, Hashable]:
    """The token ids of events that have them all."""
    if traces.tokens is None:
        return {}
    offsets, ids = traces.tokens.offsets.tolist(), traces.tokens.ids
    parts = {e: ids[start:stop] for e, (start, stop) in enumerate(itertools.pairwise(offsets))}
    return {e: part.tobytes() for e, part in parts.items() if len(part) and (part >= 0).all()}


def _messages(traces: Traces, rows: list[int]) -> dict[int, Hashable]:
    """Digests of the chat messages that events were read from; other events are left out."""
    files, offsets = traces.events["file"].to_pylist(), traces.events["offset"].to_pylist()
    by_file: dict[str, list[int]] = {}
    for e in rows:
        if offsets[e] is not None and offsets[e] >= 0:
            by_file.setdefault(files[e], []).append(e)
    content_of: dict[int, Hashable] = {}
    for file, events in by_file.items():
        path = Path(file)
        if not path.is_file():
            continue
        data = Source(file, path).data
        starts = sorted({offsets[e] for e in events})
        stops: list[int | None] = [*starts[1:], None]
        digests = {start: _digest(data[start:stop]) for start, stop in zip(starts, stops, strict=True)}
        content_of |= {e: digest for e in events if (digest := digests[offsets[e]]) is not None}
    return content_of


def _digest(text: bytes) -> str | None:
    """The digest of the chat message that a text begins with; None where it begins otherwise."""
    if not text.startswith(b"{") or b'"role"' not in text:
        return None
    try:
        record, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record.get("role"), str) or not (record.get("content") or record.get("tool_calls")):
        return None
    return hashlib.sha256(json.dumps(_lasting(record), sort_keys=True).encode()).hexdigest()


def _lasting(message: Any) -> Any:
    """A message without what differs between runs; arguments of tools are kept whole."""
    # Parts of a message hold parts; what a tool was called with is the agent's choice, so nothing in it is dropped.
    if isinstance(message, list):
        return [_lasting(part) for part in message]
    if not isinstance(message, dict):
        return message
    return {
        key: _lasting(value) if key in _DESCENDED else value for key, value in message.items() if key not in _OF_ONE_RUN
    }


def _revealed(traces: Traces, messages: dict[int, Hashable]) -> np.ndarray:
    """Events whose chat message holds an earlier event of the trace: bool [E]."""
    n = traces.sizes.events
    trace = np.asarray(traces.graph.trace_ids)[:n].tolist()
    offsets = traces.events["offset"].to_pylist()
    revealed = np.zeros(n, bool)
    seen: set[tuple[int, int]] = set()
    for e in sorted(messages):
        place = trace[e], offsets[e]
        revealed[e] = place in seen
        seen.add(place)
    return revealed
