"""Messages that agents send each other again, in one order: loops as `call_loops` has them."""

from __future__ import annotations

import numpy as np

from credit.reports.call_loops import LONGEST, Loop, repeated
from credit.reports.event_errors import error_mask
from credit.reports.event_texts import event_texts
from credit.reports.outside_team import outside_team
from graphs.event_graph import EventType
from graphs.traces.batch import Traces

__all__ = ["message_loops"]

SHORT, FEW = 20, 5
"""Characters, or generated tokens where the log has no text, up to which a text is a vote or an acknowledgement."""


def message_loops(traces: Traces, called: np.ndarray) -> list[Loop]:
    """Loops of messages, in order: `LOOP` rounds or more of up to `PERIOD` messages with equal texts.

    A round is of several agents and has different texts, one of them longer than `SHORT`: votes, acknowledgements and
    debaters who agree are none. Nothing comes between but model calls that failed: another message, a call of a tool
    or what a user says may be a step forward. Messages whose texts the log lacks are not compared.

    Args:
      traces: what was read; texts are read again from its files, of messages that may be of a loop by their agents.
      called: calls of tools, by whomever: bool [real events].
    """
    graph, n = traces.graph, traces.sizes.events
    action = np.asarray(graph.action_mask)[:n] & ~error_mask(traces)
    says = action & (np.asarray(graph.event_type)[:n] == int(EventType.MESSAGE))
    rows = np.flatnonzero(action | called | outside_team(traces))
    names = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)[rows]].astype(np.int64)
    trace = np.asarray(graph.trace_ids)[rows]
    own = -1 - np.arange(len(rows))  # the key of what is equal to nothing
    author = np.where(says[rows], names + trace * (names.max(initial=0) + np.int64(1)), own)
    maybe = np.zeros(len(rows), bool)
    for start, stop, period in repeated(author).tolist():
        maybe[start:stop] |= len(np.unique(author[start : start + period])) > 1
    asked = np.flatnonzero(maybe)
    said = np.full(len(rows), -1, np.int64)
    said[asked], long = _said(traces, rows[asked])
    found = repeated(np.where(said < 0, own, author * (said.max(initial=0) + np.int64(1)) + said))
    found = found[[len({*author[a : a + p]}) > 1 and len({*said[a : a + p]}) > 1 for a, _, p in found.tolist()]]
    is_long = np.zeros(len(rows), bool)
    is_long[asked] = long
    called_of, loops = traces.agents["name"].take(np.asarray(graph.agent_ids)[rows]).to_pylist(), []
    for start, stop, period in found.tolist():
        if is_long[start : start + period].any():
            agents = tuple(dict.fromkeys(called_of[start : start + period]))
            of = tuple(rows[start:stop].tolist())
            loops.append(Loop((), of, period, of[period:], agents))
    return loops


def _said(traces: Traces, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An integer for what each message says, equal where that is, -1 where the log has none; and whether it is long.

    That is its text, or else the reference of its content, which is the same where the content is.
    """
    texts, refs = event_texts(traces, rows, LONGEST), traces.events["content_ref"].take(rows).to_pylist()
    numbers: dict[tuple[str, bool], int] = {}
    said = [numbers.setdefault((text or ref, bool(text)), len(numbers)) if text or ref else -1
            for text, ref in zip(texts, refs, strict=True)]  # fmt: skip
    tokens = traces.evidence.get("tokens")
    few = np.zeros(len(rows), bool) if tokens is None else tokens.mask[rows] & (tokens.array[rows] <= FEW)
    long = [len(text) > SHORT if text else not little for text, little in zip(texts, few, strict=True)]
    return np.array(said, np.int64), np.array(long, bool)
