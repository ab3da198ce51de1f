"""Who is no part of the team: those whom it talks to, as a simulated user."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from credit.reports.of_batch import kept
from graphs.traces.batch import Traces

__all__ = ["outside_team"]

OUTSIDE = pa.array(["user", "user_simulator"])
"""Roles of those whom a team talks to. One with an action is of the team."""


@kept
def outside_team(traces: Traces) -> np.ndarray:
    """Whether each real event is of someone outside the team: bool [number of real events].

    What such a one costs, how long it takes, what it calls and its errors are in no sum of the team's.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q"], trace=["a"], agent=["user"], reward=[1.0])
      >>> outside_team(rows.traces).tolist()  # it acts
      [False]
    """
    graph, n = traces.graph, traces.sizes.events
    outside = pc.is_in(traces.agents["role"], OUTSIDE).to_numpy()
    if not outside.any():
        return np.zeros(n, bool)
    agent, outside = np.asarray(graph.agent_ids)[:n], outside.copy()
    theirs = np.flatnonzero(outside[agent])
    outside[agent[theirs[np.asarray(graph.action_mask)[theirs]]]] = False
    found: np.ndarray = outside[agent]
    return found
