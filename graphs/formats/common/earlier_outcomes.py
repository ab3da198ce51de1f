"""Outcomes of the whole run that a log states at an earlier moment: verdicts on an attempt before the last one.

Such a number is no reward: added to the outcome, it would count one verdict twice. A log shows it by the name: what has
the name of a channel of the trace states that channel, only earlier.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

from graphs.traces.record import TraceRecord

__all__ = ["place_earlier"]


def place_earlier(record: TraceRecord, name: str, statements: Iterable[tuple[int, float]]) -> None:
    """Write earlier statements of an outcome as `value`: of the state before the next action, what the run was worth.

    Of several before one action the last counts. Where the log states a `value` itself, or no action follows, the
    statement is passed over.

    Args:
      record: with its events.
      name: of the outcome, for the note (`graphs.logs.run_states.apply_run_states`).
      statements: positions of the last event before each statement, -1 for none, and the numbers, in order.
    """
    values: dict[int, float] = {}
    actions = [i for i, is_action in enumerate(record.actions) if is_action]
    for position, amount in statements:
        record.earlier_outcomes = record.earlier_outcomes or name
        following = bisect.bisect_right(actions, position)
        if following < len(actions):
            values[actions[following]] = amount
    if not values:
        return
    column = record.columns.setdefault("value", [])
    column.extend([None] * (max(values) + 1 - len(column)))
    for position, amount in values.items():
        if column[position] is None:
            column[position] = amount
