"""The table of advantages: one row an event, numbers joined back to the names and places in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from credit.tables.batch_rows import Rows, as_traces, warn_of_direct_call
from estimators.base import REASONS, Credit, check_batch
from graphs.argument_kinds import checked_kinds
from graphs.event_graph import EventType
from graphs.traces.batch import Traces
from graphs.traces.event_models import event_models
from graphs.traces.schema import EVENT_EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["event_columns", "table", "turn_in_trace"]

TYPE_NAMES = [member.name.lower() for member in sorted(EventType)]


@checked_kinds()
def table(traces: Traces | Rows, credit: Credit | Mapping[str, Credit], *, actions_only: bool = False) -> pa.Table:
    """Join a method's result to its events: Arrow, a row for each real event in the order of the batch.

    Columns: file, line, trace, group, event (its id in the log), agent (instance), agent_name (shared by instances),
    role, turn_in_trace (turns of agents counted from 0, whatever the log calls them), type, action, tool, tokens
    (generated), time, task, model (of the agent), policy_version, reward (the trace's outcome), credit, baseline,
    scale, advantage, valid, and reason, in words, where valid is False. Join rows by file and line, or by trace and
    event. Join on task: group is its name alone where all traces of the batch have one model, and has the model behind
    it elsewhere. What the log does not state is null. Zeros are positive.

    Args:
      traces: what was read, or the `Rows` of `credit.from_columns`.
      credit: a method's result on `traces.graph`; or several by name, side by side: the columns from credit to reason
        are then `NAME_credit` to `NAME_reason` for each name.
      actions_only: leave out events that no policy chose; they have credit 0.

    Returns:
      A `pyarrow.Table`. `write_table` writes it to a file, `to_pandas` makes a `pandas.DataFrame` of it.

    Raises:
      CreditError: something else than a batch and results, or a result that is not of this batch's padded length.

    Warns:
      UnusedRewardsWarning, MissingColumnWarning: as of `Rows.gather`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=["q"] * 3, trace=["a", "b", "c"], agent=["planner"] * 3, reward=[1.0, 0.0, 0.5]
      ... )
      >>> table = credit.table(rows, credit.rloo(graph, reward))
      >>> table.select(["trace", "agent", "advantage"]).to_pylist()[0]
      {'trace': 'a', 'agent': 'planner', 'advantage': 0.75}
    """
    source, traces = traces, as_traces(traces)
    trace = np.asarray(traces.graph.trace_ids[: traces.sizes.events])
    columns = event_columns(traces) | {
        "tool": traces.events["tool"],
        "tokens": _counts(traces, "tokens"),
        "time": traces.events["time"],
        "task": _words(traces.traces["task"], trace),
        "model": _models(traces),
        "policy_version": _counts(traces, "policy_version").take(pa.array(trace)),
        "reward": pa.array(np.asarray(traces.reward)[trace], from_pandas=True),
    }
    if isinstance(credit, Credit):
        columns |= _result_columns(traces, "credit", credit)
    else:
        for name, result in credit.items():
            columns |= {f"{name}_{key}": values for key, values in _result_columns(traces, name, result).items()}
    for result in (credit,) if isinstance(credit, Credit) else credit.values():
        warn_of_direct_call(source, result, stacklevel=4)  # the caller, past the check of arguments
    joined = pa.table(columns)
    return joined.filter(joined["action"]) if actions_only else joined


def _result_columns(traces: Traces, name: str, credit: Credit) -> dict[str, pa.Array | np.ndarray]:
    """The columns credit, baseline, … reason of one result; `name` is for the error.

    Raises:
      CreditError: the result is of another batch.
    """
    check_batch(traces.graph, name, credit)
    events = traces.sizes.events
    reason = np.asarray(credit.reason)[:events]

    def numbers(values: object) -> np.ndarray:
        return np.asarray(values)[:events] + 0  # makes 0 of -0, which many a difference of equal numbers is

    return {
        "credit": numbers(credit.credit),
        "baseline": numbers(credit.baseline),
        "scale": numbers(credit.scale),
        "advantage": numbers(credit.advantage),
        "valid": reason == 0,
        "reason": _words(REASONS, reason),
    }


def _counts(traces: Traces, name: str) -> pa.Array:
    """Logged counts of events or traces, null where the log has none: int32."""
    found = traces.evidence.get(name)
    num = traces.sizes.events if name in EVENT_EVIDENCE else traces.sizes.traces
    if found is None:
        return pa.nulls(num, pa.int32())
    return pa.array(np.asarray(found.array)[:num], pa.int32(), mask=~np.asarray(found.mask)[:num])


def event_columns(traces: Traces) -> dict[str, pa.Array | pa.ChunkedArray]:
    """One row for each real event: the columns file, line, trace, … action of `table`.

    Args:
      traces: a batch.
    """
    graph, events = traces.graph, traces.sizes.events
    trace, agent, turn, kind = (
        np.asarray(ids[:events]) for ids in (graph.trace_ids, graph.agent_ids, graph.turn_ids, graph.event_type)
    )
    return {
        "file": traces.events["file"],
        "line": traces.events["line"],
        "trace": _words(traces.traces["trace"], trace),
        "group": _words(traces.traces["group"], trace),
        "event": traces.events["event"],
        "agent": _words(traces.agents["agent"], agent),
        "agent_name": _words(traces.agents["name"], agent),
        "role": _words(traces.agents["role"], agent),
        "turn_in_trace": pa.array(turn_in_trace(turn, trace)),
        "type": _words(TYPE_NAMES, kind),
        "action": pa.array(np.asarray(graph.action_mask[:events])),
    }


def _models(traces: Traces) -> pa.Array:
    """The model of each event: of an agent, which may have another one than its trace; null where none is stated."""
    names, model = event_models(traces)
    known = pa.array([name or None for name in names], pa.string())
    return known.take(pa.array(model))


def _words(words: Iterable[str] | pa.ChunkedArray, ids: np.ndarray) -> pa.DictionaryArray:
    """Strings by position in `words`, each stored once: agents of one id in many traces share an entry."""
    array = words.combine_chunks() if isinstance(words, pa.ChunkedArray) else pa.array(list(words), pa.string())
    distinct = array.dictionary_encode()
    return pa.DictionaryArray.from_arrays(distinct.indices.take(pa.array(ids, pa.int32())), distinct.dictionary)


def turn_in_trace(turns: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Turn numbers from 0 within each trace: ids are numbered over the batch in order of traces.

    Args:
      turns: ids, int [N].
      trace: of each, int [N].
    """
    first = np.full(int(trace.max()) + 1, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(first, trace, turns.astype(np.int32))
    number: np.ndarray = turns - first[trace]
    return number
