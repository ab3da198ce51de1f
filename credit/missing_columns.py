"""What a method compares or reads, and nobody tells it: columns all alike, an untold order, rewards left out."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from credit.doubts_of_log import SAW_LATER, TURN_GAP, arrays_of, doubts_of_log, saw_later
from credit.methods.units_apart import alike_in_log, alike_in_rows
from credit.values_at_once import Rounds, reads_rounds, rounds_of_log

if TYPE_CHECKING:
    from credit.methods.method_row import Method
    from estimators.base import Credit
    from graphs.event_graph import EventGraph
    from graphs.traces.batch import Traces

__all__ = ["RowsTold", "missing_in_log", "missing_in_rows", "missing_in_rows_of", "rewards_forgotten"]


class RowsTold(Protocol):
    """What the columns of rows tell, as `credit.tables.batch_rows.RowNames`."""

    @property
    def graph(self) -> EventGraph:
        """The batch."""

    @property
    def reward(self) -> np.ndarray:
        """The outcomes."""

    @property
    def untold(self) -> str:
        """In words, where nothing tells the order of rows."""

    @property
    def at_once(self) -> tuple[int, int]:
        """`Rounds`."""


def missing_in_log(traces: Traces, name: str, method: Method, options: Mapping[str, Any]) -> list[str]:
    """A sentence for each column of a log, and for each order, that a method misses.

    Args:
      traces: what was read.
      name: of the method, as the caller wrote it.
      method: its entry.
      options: of the call.
    """
    from credit.untold_order import reads_untold, traces_untold

    alike = alike_in_log(traces, method.columns_with(options))
    untold = reads_untold(name, traces_untold(traces, method, options, traces.evidence))
    doubts = doubts_of_log(traces, method, options, {TURN_GAP})
    gaps = [f"{name} reads the order of turns, and {gap}" for gap in doubts if gap not in SAW_LATER]
    saw, rounds, given = (
        saw_later(traces.graph, arrays_of(traces), traces.reward),
        rounds_of_log(traces),
        {*traces.evidence, *options},
    )
    return _said(name, method, alike, untold or "".join(gaps), saw, rounds, options, given)


def missing_in_rows(
    names: RowsTold, given: Mapping[str, np.ndarray], name: str, method: Method, options: Mapping[str, Any]
) -> list[str]:
    """As `missing_in_log`, of the rows of a trainer.

    Args:
      names: what their columns tell.
      given: their evidence.
      name, method, options: as there.
    """
    return _of_rows(names, given, name, method, options, method.columns_with(options))


def missing_in_rows_of(result: Credit, names: RowsTold, given: Mapping[str, np.ndarray]) -> list[str]:
    """As `missing_in_rows`, of a direct call by its result: by the options of its recursion, whatever the others are.

    Args:
      result: of a method on the rows.
      names, given: as there.

    Examples:
      >>> import credit, dataclasses, numpy as np
      >>> graph, reward, rows = credit.from_columns(group=[0] * 4, trace=[*"aabb"], reward=[1.0, 1.0, 0.0, 0.0])
      >>> missing_in_rows_of(credit.turn_baseline(graph, reward), rows.names, {})
      ['turn_baseline compares by the turn, and every trace has one turn']
      >>> values = [credit.gae(graph, reward, value=np.full(graph.num_events, 0.5), lambda_=x) for x in (0.5, 1.0)]
      >>> at_once = dataclasses.replace(rows.names, at_once=(1, 0))
      >>> [len(missing_in_rows_of(result, at_once, {"value": np.full(4, 0.5)})) for result in values]
      [1, 0]
    """
    from credit.methods.registry import METHODS  # it loads every method, and `credit validate` needs none

    method, how = METHODS.get(result.source), result.recursion
    if method is None:
        return []
    options: dict[str, Any] = {} if how is None else {"along": how.along}
    for option in ("discount", "lambda_") if how is not None else ():
        options[option] = float(np.min(np.asarray(getattr(how, option))))
    changed = {"mode": {"turn"}, "by": {"agent"}}  # what these options compare in place of the columns
    takes = inspect.signature(method.fn).parameters
    unsure = {column for option, columns in changed.items() if option in takes for column in columns}
    return _of_rows(names, given, result.source, method, options, {*method.columns} - unsure)


def rewards_forgotten(result: Credit, earned: np.ndarray | None) -> int:
    """How many events have a reward that a method takes, and that a direct call did not pass.

    Args:
      result: of a method on the batch.
      earned: float [E], the rewards at events.
    """
    from credit.methods.registry import METHODS  # it loads every method, and `credit validate` needs none

    method = METHODS.get(result.source)
    if earned is None or not result.unpaid or (method is not None and method.outcome_alone):
        return 0
    return int(np.count_nonzero(np.nan_to_num(earned)))


def _of_rows(
    names: RowsTold,
    given: Mapping[str, np.ndarray],
    name: str,
    method: Method,
    options: Mapping[str, Any],
    columns: Collection[str],
) -> list[str]:
    alike = alike_in_rows(names.graph, columns)
    untold = f"{name} reads {names.untold}" if names.untold and method.reads_order(options, given) else ""
    saw = saw_later(names.graph, given, names.reward)
    return _said(name, method, alike, untold, saw, Rounds(*names.at_once), options, {*given, *options})


def _said(
    name: str,
    method: Method,
    alike: Mapping[str, str],
    untold: str,
    saw: str,
    rounds: Rounds,
    options: Mapping[str, Any],
    given: Collection[str],
) -> list[str]:
    said = rounds.read(*reads_rounds(method, options, given)).said
    return [
        *(f"{name} compares by the {column}, and {words}" for column, words in alike.items()),
        *([untold] if untold else []),
        *([f"{name} reads value, and {saw}"] if saw and "value" in method.needs and "value" not in options else []),
        *([f"{name} {said}"] if said else []),
    ]
