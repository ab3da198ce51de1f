"""Eight rows of four traces of two tasks, and the batch that they make."""

from __future__ import annotations

from typing import Any

import numpy as np

import credit
from credit.tables.batch_rows import Rows
from credit.tables.columns import from_columns

SHAPE = {"events": 16, "traces": 8, "agents": 16}

GROUP = ["q1", "q1", "q1", "q1", "q2", "q2", "q2", "q2"]
TRACE = ["a", "b", "a", "b", "c", "d", "d", "c"]  # interleaved: rows of a trace do not stand together
AGENT = ["S", "S", "V", "V", "S", "S", "V", "S"]
REWARD = [1.0, 0.0, 1.0, 0.0, 2.0, 5.0, 5.0, 2.0]


def example(**changes: Any) -> tuple[credit.EventGraph, np.ndarray, Rows]:
    columns: dict[str, Any] = {"group": GROUP, "trace": TRACE, "agent": AGENT, "reward": REWARD, **SHAPE}
    return from_columns(**(columns | changes))
