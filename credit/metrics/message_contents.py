"""The messages of a team, and which of them say the same."""

from __future__ import annotations

import collections
import hashlib
import itertools
from typing import TYPE_CHECKING

import numpy as np

from graphs.event_graph import EventType
from graphs.structure.forest import real_edges
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ALIKE", "content_ids", "embedded_ids", "team_messages", "text_ids"]

ALIKE = 0.95
"""Cosine from which two embedded messages say the same, unless another is passed."""

LONGEST = 100_000  # characters of a text that are compared


def team_messages(traces: Traces) -> np.ndarray:
    """The messages that members of the team wrote, as rows: int [N].

    Members are instances with an action, so no simulated user or system is one. A message is an event of type
    `message` of a member; one that a message of the same instance led to (a call and the text that it emitted) is the
    same message and does not count again. A message that says nothing beside the calls it led to is a call.

    Args:
      traces: a batch.
    """
    graph, n = traces.graph, traces.sizes.events
    agent, action = np.asarray(graph.agent_ids)[:n], np.asarray(graph.action_mask)[:n]
    member = np.zeros(graph.num_agents, bool)
    member[agent[np.flatnonzero(action)]] = True
    message = (np.asarray(graph.event_type)[:n] == int(EventType.MESSAGE)) & member[agent]
    senders, receivers = real_edges(graph)
    emitted = np.flatnonzero((message & ~action)[receivers])
    senders, receivers = senders[emitted], receivers[emitted]
    message[receivers[message[senders] & (agent[senders] == agent[receivers])]] = False
    message[_without_words(traces, message)] = False
    rows: np.ndarray = np.flatnonzero(message)
    return rows


def _without_words(traces: Traces, message: np.ndarray) -> list[int]:
    """The messages whose record holds the calls that they led to, and no other text; not those with a `content_ref`."""
    from credit.reports.event_texts import command_of, event_texts
    from credit.reports.tool_calls import call_mask

    agent = np.asarray(traces.graph.agent_ids)
    by_text = message & traces.events["content_ref"].combine_chunks().is_null().to_numpy(zero_copy_only=False)
    senders, receivers = real_edges(traces.graph)
    made = np.flatnonzero(by_text[senders])
    made = made[call_mask(traces)[receivers[made]] & (agent[senders[made]] == agent[receivers[made]])]
    senders, receivers = senders[made], receivers[made]
    rows = np.unique(np.concatenate([senders, receivers]))
    text = dict(zip(rows.tolist(), event_texts(traces, rows, LONGEST), strict=True))
    rest = {row: _joined(text[row]) for row in senders.tolist()}
    pairs = zip(senders.tolist(), receivers.tolist(), strict=True)
    for row, asked in sorted(((row, text[call]) for row, call in pairs), key=lambda call: -len(call[1])):
        # One may be a part of another. A message has all arguments of a call, some twice, or the command alone.
        whole = _joined(asked)
        rest[row] = rest[row].replace(whole if whole in rest[row] else _joined(command_of(asked)), "")
    return [row for row, left in rest.items() if text[row] and not left]


def _joined(text: str) -> str:
    """A text without white space, which arguments that are logged as text have elsewhere than those of an object."""
    return "".join(text.split())


def content_ids(traces: Traces, rows: np.ndarray) -> np.ndarray:
    """Ids of contents of events, equal where two say the same; −1 in traces whose contents the log lacks: int [N].

    A trace's contents come from one source, the first that all its rows have: `content_ref`; the token ids; the text of
    the log's record. The text counts only if no two rows share a record: it could belong to either row.

    Args:
      traces: what was read; texts are read again from its files.
      rows: of events.
    """
    trace = np.asarray(traces.graph.trace_ids)[rows]
    ids, left, count = np.full(len(rows), -1, np.int64), np.ones(len(rows), bool), 0
    for source in (_refs, _token_ids, _texts):
        if not left.any():
            break
        found = source(traces, rows[left])
        lacks = np.zeros(traces.sizes.traces, bool)
        lacks[trace[left][found < 0]] = True
        known = ~lacks[trace[left]]
        places = np.flatnonzero(left)[known]
        ids[places], left[places] = found[known] + count, False
        count += int(found.max(initial=-1)) + 1
    return ids


def text_ids(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Ids of texts, equal where the texts are, in order of appearance; −1 where there is none: int64 [N].

    Args:
      column: of texts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    coded = texts.cast(pa.string()).dictionary_encode()
    found: np.ndarray = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    if (empty := pc.index(coded.dictionary, "").as_py()) >= 0:
        found = np.where(found == empty, -1, found - (found > empty))
    return found


def _refs(traces: Traces, rows: np.ndarray) -> np.ndarray:
    return text_ids(traces.events["content_ref"].take(rows))


def _token_ids(traces: Traces, rows: np.ndarray) -> np.ndarray:
    """Ids of the token ids of each row that has them all."""
    if traces.tokens is None:
        return np.full(len(rows), -1)
    ids, offsets = np.asarray(traces.tokens.ids), np.asarray(traces.tokens.offsets)
    number: dict[bytes, int] = {}
    parts = [ids[offsets[row] : offsets[row + 1]] for row in rows.tolist()]
    digests = [hashlib.sha256(part.tobytes()).digest() if len(part) and (part >= 0).all() else None for part in parts]
    return np.array([-1 if key is None else number.setdefault(key, len(number)) for key in digests], np.int64)


def _texts(traces: Traces, rows: np.ndarray) -> np.ndarray:
    """Ids of the texts of the log's records, in traces without two rows of one record."""
    from credit.reports.event_texts import event_texts, executed
    from credit.reports.tool_calls import call_mask

    trace = np.asarray(traces.graph.trace_ids)[rows]
    places = [trace.tolist(), *(traces.events[name].take(rows).to_pylist() for name in ("file", "line", "offset"))]
    records = collections.Counter(zip(*places, strict=True))
    shared = {record[0] for record, times in records.items() if times > 1}
    alone = np.flatnonzero(~np.isin(trace, [*shared]))
    texts = event_texts(traces, rows[alone], LONGEST)
    texts = [executed(text) if call else text for text, call in zip(texts, call_mask(traces)[rows[alone]], strict=True)]
    number: dict[str, int] = {}
    ids = np.full(len(rows), -1, np.int64)
    ids[alone] = [number.setdefault(text, len(number)) if text else -1 for text in texts]
    return ids


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
