"""What the statuses of events say: which a log calls errors, and which are answers that were cut."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from credit.reports.of_batch import kept
from graphs.event_graph import EventType
from graphs.structure.host_ids import among
from graphs.traces.batch import Traces
from graphs.traces.record import is_cut
from graphs.traces.statuses import says_error

__all__ = ["cut_answers", "error_mask", "status_mask"]


@kept
def error_mask(traces: Traces) -> np.ndarray:
    """Whether the log calls each real event an error: bool [number of real events]."""
    return status_mask(traces, says_error)


@kept
def cut_answers(traces: Traces) -> np.ndarray:
    """Whether each real event is an answer of a model that a limit of tokens cut: bool [number of real events]."""
    graph, n = traces.graph, traces.sizes.events
    answers = ~among(np.asarray(graph.event_type)[:n], (EventType.TOOL_CALL, EventType.SPAWN))
    cut: np.ndarray = status_mask(traces, is_cut) & np.asarray(graph.action_mask)[:n] & answers
    return cut


def status_mask(traces: Traces, says: Callable[[str], bool]) -> np.ndarray:
    """Whether each real event has a status that says something: bool [number of real events]."""
    status = traces.events["status"].combine_chunks().dictionary_encode(null_encoding="encode")  # few, many events
    words = [word is not None and says(word) for word in status.dictionary.to_pylist()]
    found: np.ndarray = np.array(words, bool)[status.indices.to_numpy()]
    return found
