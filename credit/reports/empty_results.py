"""Results of tools that hold nothing, as of a search without a hit: no error, and seldom what was hoped for."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from credit.reports.event_texts import result_texts
from graphs.traces.batch import Traces

__all__ = ["EmptyResults", "empty_results"]

MOST_READ = 20_000
"""Results that are read. Of a log with more, those of a part of the traces are, spread over the log."""
LONGEST = 200  # characters of what may hold nothing
_NOTHING = re.compile(r"""(\[\s*\]|\{\s*\}|""|''|null|None|\{\s*(["'])[^"']*\2\s*:\s*\[\s*\]\s*\})?""")
_SPREAD = (5**0.5 - 1) / 2  # its multiples, less their whole part, follow no period of the log


class EmptyResults(NamedTuple):
    """Which results are empty.

    Attributes:
      rows: these results: int [empty].
      tells: whether the log has what each trace's results of such tools hold: bool [traces].
    """

    rows: np.ndarray
    tells: np.ndarray


def empty_results(traces: Traces, results: np.ndarray, tools: np.ndarray) -> EmptyResults:
    """The empty results of tools that have others, too: a tool that never returns anything says nothing by it.

    Empty is no text, `[]`, `{}`, `null`, `None`, quotes around nothing, and an object with one key and an empty list.

    Args:
      traces: what was read.
      results: of calls that did not fail: int [results].
      tools: the tool of each, -1 for none: int [results].

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], reward=[1.0])
      >>> empty_results(rows.traces, np.zeros(0, int), np.zeros(0, int))
      EmptyResults(rows=array([], dtype=int64), tells=array([False]))
    """
    count = traces.sizes.traces
    trace = np.asarray(traces.graph.trace_ids)[results]
    read = np.arange(count) * _SPREAD % 1 <= MOST_READ / max(len(results), 1)
    kept = read[trace] & (tools >= 0)
    results, tools, trace = results[kept], tools[kept], trace[kept]
    texts = result_texts(traces, results, LONGEST)
    known = np.array([text is not None for text in texts], bool)
    empty = np.array([text is not None and _NOTHING.fullmatch(text) is not None for text in texts], bool)
    both = np.intersect1d(tools[empty], tools[known & ~empty])
    of_these = np.isin(tools, both)
    lacks = np.bincount(trace[of_these & ~known], minlength=count) > 0
    return EmptyResults(results[empty & of_these], read & ~lacks & bool(len(both)))
