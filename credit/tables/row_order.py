"""In which order the rows of a batch stand within their traces, and whether that is the order of their turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from credit.tables.column_values import ColumnError, as_arrow, as_ids, factorise
from credit.values_at_once import Rounds
from graphs.structure.host_ids import consecutive, distinct
from graphs.text import counted, excerpt
from graphs.traces.lost_rows import lost_rows
from graphs.traces.one_place import again_in_place
from graphs.traces.told_order import are_scattered, untold_agents
from graphs.traces.turn_gaps import turn_numbers
from graphs.traces.turn_numbers import numbered_turn

if TYPE_CHECKING:
    from credit.tables.batch_rows import Rows

__all__ = [
    "moments_of_places",
    "numbers_of_turns",
    "order_of_turns",
    "rounds_at_once",
    "rounds_of_places",
    "rows_in_order",
    "said_of_gap",
    "ties",
    "untold_order",
    "untold_rounds",
]


SINGLE_WHOLE = 2**24
"""From which on single precision makes different integers one number."""


def order_of_turns(rows: Rows, turn: Any, *, stated: bool) -> tuple[bool | None, str]:
    """Whether rows stand in the order of their turns, None where that is not known; and what stands wrong, or "".

    Turns that are integers, or texts that begin alike and end in one, must not fall within an agent; and not within a
    trace, if no two rows of a trace have one number. Otherwise they count within agents. That leaves open which agent
    acted before which, if throughout the batch the rows of each agent stand side by side: a trainer may have sorted
    them so. Other names of turns leave all open.

    Args:
      rows: of the batch.
      turn: the column, or None.
      stated: whether `order=` was passed, which leaves nothing open but `ties`.
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


def numbers_of_turns(rows: Rows, turn: Any) -> np.ndarray | None:
    """The number of the turn of each entered event; None without turns, or where their labels have no order.

    Args:
      rows: of the batch.
      turn: the column, or None.
    """
    if turn is None:
        return None
    codes, names = factorise("turn", turn)
    places = _places_of_turns(names)
    return None if places is None else places[codes[rows.names.rows]]


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


def rows_in_order(
    mask: np.ndarray, order: Any, n: int, trace: Any = None, agent: Any = None, instance: Any = None
) -> np.ndarray:
    """The rows of a mask in their order; those of a trace at one place by the names of their agents, then of instances.

    In a batch such rows may stand as they ended. What an agent chose decides that, and where turns are numbered along
    the trace it would decide what the choice is compared with, which biases. Traces stand by their first rows.

    Raises:
      ColumnError: a row without a place.
    """
    rows = np.flatnonzero(mask)
    if order is None or not len(rows):  # a batch in which no row has a reward
        return rows
    places = _places(order, rows, n)
    stable = np.argsort(places, kind="stable")
    named = [(name, column) for name, column in (("instance", instance), ("agent", agent)) if column is not None]
    if not named:
        return rows[stable]
    codes = _of_rows("trace", trace, rows)[0]
    first = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    first[codes[stable[::-1]]] = np.arange(len(rows))[::-1]  # the last assignment is the first row
    return rows[np.lexsort((*(_ranks(name, column, rows) for name, column in named), first[codes], places))]


def _ranks(name: str, column: Any, rows: np.ndarray) -> np.ndarray:
    """The place of each row's name among those of all rows, sorted: int [len(rows)]."""
    codes, names = _of_rows(name, column, rows)
    ranks = np.empty(len(names), np.int64)
    ranks[pa.compute.array_sort_indices(names).to_numpy()] = np.arange(len(names))
    of_rows: np.ndarray = ranks[codes]
    return of_rows


def _of_rows(name: str, column: Any, rows: np.ndarray) -> tuple[np.ndarray, pa.Array]:
    """`factorise` of some rows: what others hold, such as padding, is no fault."""
    of_rows = column[rows] if type(column) is np.ndarray else as_arrow(name, column, None).take(pa.array(rows))
    return factorise(name, of_rows)


def rounds_of_places(column: Any, rows: np.ndarray) -> np.ndarray:
    """A number for the place of each of some rows, int32, alike for neighbours at one place.

    Raises:
      ColumnError: as of `rows_in_order`.

    Examples:
      >>> rounds_of_places([0.5, 2.0, 0.5], np.array([0, 2, 1])).tolist()
      [0, 0, 1]
    """
    places = _places(column, rows, len(column))
    begins = np.concatenate([np.zeros(min(1, len(rows)), bool), places[1:] != places[:-1]])
    return np.cumsum(begins, dtype=np.int32)


def moments_of_places(column: Any, rows: np.ndarray) -> np.ndarray:
    """The places of some rows in seconds, where they are times of a clock: float64, of integers whole.

    Examples:
      >>> moments_of_places(np.array(["1970-01-01T00:00:02.5", "NaT"], "datetime64[ms]"), np.array([0])).tolist()
      [2.5]
    """
    places = _places(column, rows, len(column))
    if (kind := places.dtype.kind) in "mM":
        return np.asarray(places.astype(f"{kind}8[us]").astype(np.int64) / 1e6)
    return places.astype(np.float64)


def ties(rows: Rows, places: np.ndarray) -> np.ndarray:
    """Whether the event before is of the same agent of a trace, at one place by `rounds_of_places`: bool [entered].

    Such rows stand as in the batch.
    """
    return again_in_place(np.asarray(rows.names.graph.agent_ids)[: len(rows.event)], places[rows.names.rows])


def rounds_at_once(rows: Rows, places: np.ndarray | None) -> Rounds:
    """The rounds of several agents, at one place (`rounds_of_places`) or in one context, and of one's twice in one.

    Of its rows at one place `untold_order` tells.

    Args:
      rows: of the batch.
      places: of `rounds_of_places`; None where no order is stated.
    """
    context, graph = _contexts(rows), rows.names.graph
    by_context = Rounds() if context is None else Rounds.of(graph, context)
    several = 0 if places is None else Rounds.of(graph, places[rows.names.rows]).several
    return by_context._replace(several=max(several, by_context.several))


def _contexts(rows: Rows) -> np.ndarray | None:
    """The context of each entered event, negative where none is stated; None without the column."""
    stated = rows.evidence.get("context")
    return None if stated is None else np.asarray(stated)[: len(rows.event)]


def untold_rounds(rows: Rows, turn: Any) -> bool:
    """Whether rows of several agents of a trace may have been at once: neither turns nor contexts say who was first.

    They then stand as in the batch, which may be as they ended. Turns that rise along the trace say so, and a context
    at each of its rows.

    Args:
      rows: of a batch without `order=`.
      turn: the column, or None.
    """
    entered, graph = len(rows.event), rows.names.graph
    trace, agent = (np.asarray(ids)[:entered] for ids in (graph.trace_ids, graph.agent_ids))
    beside = trace[1:] == trace[:-1]
    untold = np.zeros(len(graph.group_ids), bool)
    untold[trace[1:][beside & (agent[1:] != agent[:-1])]] = True
    if (context := _contexts(rows)) is not None and untold.any():
        lacks = context < 0
        untold &= np.isin(np.arange(len(untold)), trace[lacks])
    if untold.any() and (at := numbers_of_turns(rows, turn)) is not None:
        untold &= np.isin(np.arange(len(untold)), trace[1:][beside & (at[1:] <= at[:-1])])
    return bool(untold.any())


def untold_order(
    rows: Rows,
    turn: Any,
    places: np.ndarray | None,
    *,
    of_agents: bool,
    moments: np.ndarray | None = None,
    passed: np.ndarray | None = None,
) -> str:
    """What follows "reads" where rows tell no order, as in tables; "" where they do.

    Turns tell one where they are numbers, or end in one, as for `order_of_turns`. `order=` tells one but where rows of
    an agent have one place and no common context: several instances of one name may have acted at once. Neither does
    where a row may be lost, as of `lost_rows`.

    Args:
      rows: of the batch.
      turn: the column, or None.
      places: as of `rounds_at_once`.
      of_agents: whether it is read which of several agents was first.
      moments: of `moments_of_places`, of the rows of the batch; None where no order is stated.
      passed: where each row of the batch stood among those that the caller passed. Default: there.
    """
    if gap := said_of_gap(rows, turn, moments, passed):
        return f"the order of {'turns' if gap.startswith('turn') else 'rows'}, and {gap}"
    if places is not None:
        return _said_of_ties(rows, ties(rows, places))
    entered, graph = len(rows.event), rows.names.graph
    trace, agent = (np.asarray(ids)[:entered] for ids in (graph.trace_ids, graph.agent_ids))
    at = numbers_of_turns(rows, turn)
    if at is None and len(np.unique(trace)) < entered and are_scattered(trace[np.argsort(rows.names.rows)]):
        return "the order of rows, and those of a trace are scattered over the batch: pass order=, or numbers as turn="
    if not of_agents:
        return ""
    later = untold_agents(trace, agent, np.full(entered, np.nan) if at is None else at)
    if (context := _contexts(rows)) is not None:
        later = later[(context[later] < 0) | (context[later] != context[later - 1])]
    said = "the order of agents, and rows stand by agent: no turn that rises along the trace tells it; pass order="
    return said if len(later) else ""


def said_of_gap(rows: Rows, turn: Any, moments: np.ndarray | None, passed: np.ndarray | None = None) -> str:
    """Where a row may be lost, as of `lost_rows`, in words; "" where none seems to be.

    Args:
      rows, turn, moments, passed: as of `untold_order`.
    """
    graph, entered = rows.names.graph, len(rows.event)
    trace, agent = (np.asarray(ids)[:entered] for ids in (graph.trace_ids, graph.agent_ids))
    at = np.full(len(agent), -1) if turn is None else turn_numbers(as_ids("turn", turn, None))[rows.names.rows]
    place = None if moments is None else moments[rows.names.rows]
    gaps = lost_rows(trace, agent, np.asarray(graph.agent_name_ids)[agent], at, place)
    if not gaps:
        return ""
    gap, row = gaps[0], rows.names.rows[gaps[0].row]
    number = at[gap.row] if place is None or gap.column == "turn" else place[gap.row]
    where = f"{gap.column} of row {row if passed is None else passed[row]} is {gap.said(int(number))}"
    such = f" ({counted(len(gaps), 'such trace')})" if len(gaps) > 1 else ""
    return f"{where}{such}: a row may be lost"


def _said_of_ties(rows: Rows, tied: np.ndarray) -> str:
    if (context := _contexts(rows)) is not None:
        tied = tied & ((context < 0) | (np.diff(context, prepend=-1) != 0))
    if not tied.any():
        return ""
    both = tied | np.append(tied[1:], False)
    graph = rows.names.graph
    named = np.asarray(graph.agent_name_ids)[np.asarray(graph.agent_ids)[: len(tied)]]
    one = both & (named == named[np.argmax(tied)])
    name = rows.names.team.names[int(np.asarray(graph.agent_ids)[np.argmax(tied)])].as_py()
    return (
        f"the order of rows, and {int(one.sum())} rows of agent {excerpt(name)} stand at one order=: calls of several "
        "instances at once need instance=, and calls in sequence a place each"
    )


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
    if places.dtype.kind == "f" and len(places) > 1:
        _refuse_rounded(places.astype(np.float64), rows)
    return places


def _refuse_rounded(places: np.ndarray, rows: np.ndarray) -> None:
    """Refuse seconds since 1970 in single precision, as of a tensor, which are alike for two minutes: one round."""
    far = np.flatnonzero(np.isfinite(places) & (np.abs(places) >= SINGLE_WHOLE))
    with np.errstate(over="ignore"):
        single = places.astype(np.float32)
    if len(far) and (places == single).all():
        beside = f"{places[far[0]]:.0f}, beside which it has only multiples of {np.spacing(single[far[0]]):g}"
        raise ColumnError("order", rows[far], f"is of single precision, {beside}; expected float64, integers or times")


_COMPARED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_timestamp,
    pa.types.is_date,
    pa.types.is_duration,
)
