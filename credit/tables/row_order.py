"""In which order the rows of a batch stand within their traces, and whether that is the order of their turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from credit.tables.column_values import ColumnError, as_arrow, factorise
from graphs.structure.host_ids import consecutive, distinct
from graphs.traces.turn_numbers import numbered_turn

if TYPE_CHECKING:
    from credit.tables.batch_rows import Rows

__all__ = ["order_of_turns", "rows_in_order"]


def order_of_turns(rows: Rows, turn: Any, *, stated: bool) -> tuple[bool | None, str]:
    """Whether rows stand in the order of their turns, None where that is not known; and what stands wrong, or "".

    Turns that are integers, or texts that begin alike and end in one, must not fall within an agent; and not within a
    trace, if no two rows of a trace have one number. Otherwise they count within agents. That leaves open which agent
    acted before which, if throughout the batch the rows of each agent stand side by side: a trainer may have sorted
    them so. Other names of turns leave all open.

    Args:
      rows: of the batch.
      turn: the column, or None.
      stated: whether `order=` was passed, which leaves nothing open.
    """
    entered, graph = len(rows.event), rows.names.graph
    trace, agent = (np.asarray(ids)[:entered] for ids in (graph.trace_ids, graph.agent_ids))
    of_trace = trace[1:] == trace[:-1]
    if not of_trace.any():
        return True, ""
    if turn is None:
        return (True if stated else None), ""
    codes, names = factorise("turn", turn)
    places = _places_of_turns(names)
    if places is None:
        return (True if stated else None), ""
    codes = codes[rows.names.rows]
    at = places[codes]
    if (at[1:] > at[:-1])[of_trace].all():
        return True, ""
    through = len(distinct(trace * np.int64(len(names)) + codes)) == entered
    for ids, whose in ((agent, "an agent"), (trace, "a trace"))[: 1 + through]:
        earlier, later = consecutive(ids)
        falls = np.flatnonzero(at[later] < at[earlier])
        if len(falls):
            before, after = (names[int(codes[ends[falls[0]]])].as_py() for ends in (earlier, later))
            behind = f"turn {after} of {whose} stands behind its turn {before}"
            how = "pass order=, or instance= for each agent"
            return False, f"{behind}, {len(falls)} times in the batch: {how}"
    agents, stretches = int(agent.max()) + 1, entered - np.count_nonzero(of_trace & (agent[1:] == agent[:-1]))
    known = stated or through or agents == trace.max() + 1 or stretches > agents
    return (True if known else None), ""


def _places_of_turns(names: pa.Array) -> np.ndarray | None:
    """The places of labels of turns, None where these have no order."""
    if pa.types.is_integer(names.type):
        places: np.ndarray = names.to_numpy()
        return places
    numbers: list[int] = []
    stems: set[str] = set()
    for label in names.to_pylist():
        turn = numbered_turn(label)
        if turn is None or len(stems | {turn[0]}) > 1:
            return None
        stems.add(turn[0])
        numbers.append(turn[1])
    return np.array(numbers)


def rows_in_order(mask: np.ndarray, order: Any, n: int) -> np.ndarray:
    """The rows of a mask in their order.

    Raises:
      ColumnError: a row without a place.
    """
    rows = np.flatnonzero(mask)
    return rows if order is None else rows[np.argsort(_places(order, rows, n), kind="stable")]


def _places(column: Any, rows: np.ndarray, n: int) -> np.ndarray:
    """The places of some rows, of N, as they compare: integers and times exactly, not as floats.

    Raises:
      ColumnError: the column is not one number or time for each row, or one of `rows` has none.
    """
    if isinstance(column, np.ndarray) and column.shape != (n,):
        problem = f"has shape {column.shape}; expected ({n},), the place of each row within its trace"
        raise ColumnError("order", [], problem)
    if type(column) is np.ndarray and column.dtype.kind in "biufMm":  # not masked arrays: Arrow respects their mask
        places: np.ndarray = column[rows]
        missing = np.isnat(places) if places.dtype.kind in "Mm" else np.isnan(places)
    else:
        array = as_arrow("order", column, n).take(pa.array(rows))
        array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        if not any(admits(array.type) for admits in _COMPARED) and array.null_count < len(rows):
            raise ColumnError("order", [], f"places are of type {array.type}; expected numbers or times")
        missing = array.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        places = array.to_numpy(zero_copy_only=False)
    if missing.any():
        problem = "no place, but null, NaN or NaT; expected a number or a time, the place of the row within its trace"
        raise ColumnError("order", rows[missing], problem)
    return places


_COMPARED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_duration,
)
