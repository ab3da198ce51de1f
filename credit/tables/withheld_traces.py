"""Traces without a reward, left out of a batch: which of the others they link."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from credit.tables.columns import built_from_columns
from graphs.event_graph import EventGraph

__all__ = ["with_withheld_links"]


def with_withheld_links(
    graph: EventGraph, group: Any, trace: Any, choices: Mapping[str, Any], kept: np.ndarray
) -> EventGraph:
    """The graph of the kept rows, with `cluster_ids` found among all rows: an array, also where no two share a choice.

    Where A was replayed as B and B as C, and each log names its own replay alone, only B says that A and C share their
    beginning. Without B's reward, A and C still do.

    Args:
      graph: of the kept rows, in their order, as `from_columns` makes it.
      group, trace: the task and the trace of every row, in the order of actions.
      choices: `context`, `node`, `sibling_parent` and `alternative` of every row, as far as they are known.
      kept: bool [N], the rows of the graph: all rows of some traces.
    """
    stated = {"group": group, "trace": trace, "reward": np.zeros(len(kept)), "evidence": choices}
    whole, _, rows = built_from_columns(stated)
    if whole.cluster_ids is None:
        return dataclasses.replace(graph, cluster_ids=np.arange(graph.num_traces, dtype=np.int32))
    of_row = np.asarray(whole.trace_ids)[rows.event][kept]
    _, first = np.unique(of_row, return_index=True)  # kept traces by their first row
    linked = np.asarray(whole.cluster_ids)[of_row[np.sort(first)]]  # in the order of the graph's traces
    _, least, cluster = np.unique(linked, return_index=True, return_inverse=True)
    cluster_ids = np.arange(graph.num_traces, dtype=np.int32)
    cluster_ids[: len(linked)] = least[cluster]
    return dataclasses.replace(graph, cluster_ids=cluster_ids)
