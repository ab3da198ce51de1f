"""The messages of a team, and which of them say the same."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np

from graphs.event_graph import EventType
from graphs.structure.forest import real_edges
from graphs.traces.batch import Traces

__all__ = ["ALIKE", "content_ids", "embedded_ids", "team_messages"]

ALIKE = 0.95
"""Cosine from which two embedded messages say the same, unless another is passed."""

LONGEST = 100_000  # characters of a text that are compared


def team_messages(traces: Traces) -> np.ndarray:
    """The messages that members of the team wrote, as rows: int [N].

    Members are instances with an action, so no simulated user or system is one. A message is an event of type
    `message` of a member; one that a message of the same instance led to (a call and the text that it emitted) is the
    same message and does not count again.
    """
    graph, n = traces.graph, traces.sizes.events
    agent, action = np.asarray(graph.agent_ids)[:n], np.asarray(graph.action_mask)[:n]
    member = np.zeros(graph.num_agents, bool)
    member[agent[action]] = True
    message = (np.asarray(graph.event_type)[:n] == int(EventType.MESSAGE)) & member[agent]
    senders, receivers = real_edges(graph)
    emitted = message[senders] & message[receivers] & (agent[senders] == agent[receivers]) & ~action[receivers]
    message[receivers[emitted]] = False
    rows: np.ndarray = np.flatnonzero(message)
    return rows


def content_ids(traces: Traces, rows: np.ndarray) -> np.ndarray:
    """Ids of contents of events, equal where two say the same; −1 in traces whose contents the log lacks: int [N].

    A trace's contents come from one source, the first that all its rows have: `content_ref`; the token ids; the text of
    the log's record. The text counts only if no two rows share a record: it could belong to either row.

    Args:
      traces: what was read; texts are read again from its files.
      rows: of events.
    """
    from credit.reports.trace_events import event_texts

    trace = np.asarray(traces.graph.trace_ids)[rows]
    refs: list[str | None] = traces.events["content_ref"].take(rows).to_pylist()
    tokens = _token_ids(traces, rows)
    keys: list[str | None] = [None] * len(rows)
    files, offsets = (traces.events[name].take(rows).to_pylist() for name in ("file", "offset"))
    left: list[int] = []
    for _, group in itertools.groupby(range(len(rows)), key=trace.tolist().__getitem__):
        rows_of_trace = list(group)
        for source in (refs, tokens):
            if all(source[i] for i in rows_of_trace):
                for i in rows_of_trace:
                    keys[i] = source[i]
                break
        else:
            if len({(files[i], offsets[i]) for i in rows_of_trace}) == len(rows_of_trace):
                left += rows_of_trace
    if left:
        texts = event_texts(traces, rows[left], LONGEST)
        for _, group in itertools.groupby(range(len(left)), key=trace[left].tolist().__getitem__):
            rows_of_trace = list(group)
            if all(texts[i] for i in rows_of_trace):
                for i in rows_of_trace:
                    keys[left[i]] = texts[i]
    number: dict[str, int] = {}
    return np.array([-1 if key is None else number.setdefault(key, len(number)) for key in keys], np.int64)


def _token_ids(traces: Traces, rows: np.ndarray) -> list[str | None]:
    """A digest of the token ids of each row that has them all."""
    if traces.tokens is None:
        return [None] * len(rows)
    ids, offsets = np.asarray(traces.tokens.ids), np.asarray(traces.tokens.offsets)
    parts = [ids[offsets[row] : offsets[row + 1]] for row in rows.tolist()]
    return [hashlib.sha256(p.tobytes()).hexdigest() if len(p) and (p >= 0).all() else None for p in parts]


def embedded_ids(embeddings: np.ndarray, trace: np.ndarray, alike: float = ALIKE) -> np.ndarray:
    """Ids of contents from embeddings: a message gets the id of the first earlier message of its trace that is alike.

    Args:
      embeddings: float [N, D], a row for each message; NaN where a message has none, whose trace then gets −1.
      trace: int [N], ascending.
      alike: cosine from which two messages say the same.

    Returns:
      int64 [N].
    """
    length = np.sqrt(np.sum(np.square(embeddings), axis=1, keepdims=True))
    unit = embeddings / np.where(length > 0, length, np.nan)
    ids = np.arange(len(trace))
    for _, group in itertools.groupby(range(len(trace)), key=lambda i: trace[i]):
        rows_of_trace = np.fromiter(group, np.int64)
        if np.isnan(unit[rows_of_trace]).any():
            ids[rows_of_trace] = -1
            continue
        kept: list[int] = []
        for i in rows_of_trace.tolist():
            near = unit[kept] @ unit[i] >= alike if kept else np.zeros(0, bool)
            if near.any():
                ids[i] = kept[int(np.argmax(near))]
            else:
                kept.append(i)
    return ids
