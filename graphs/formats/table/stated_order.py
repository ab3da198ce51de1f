"""The order that a trace's rows state, by their times or else by their turns: a file may be shuffled, or sorted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from graphs.traces.record import TraceRecord, reordered
from graphs.traces.turn_numbers import numbered_turn

__all__ = ["in_stated_order", "numbers_of_turns"]


def in_stated_order(trace: TraceRecord) -> TraceRecord:
    """A trace with its rows in the order that they state; itself where that is the file's, or they state none.

    Times state it where every row has one. Turns do where no two rows of the trace have one number, and where an
    agent's numbers differ and fall: rows of several agents that have one number stay as they stand, and so do those of
    one context, which act at once: a time may be that at which they ended.
    """
    stated: Sequence[float] = trace.times
    if all(map(math.isnan, trace.times)):
        stated = numbers_of_turns(trace.turns)
        if len({*zip(trace.agents, stated, strict=False)}) < len(stated):
            return trace
        if len({*stated}) < len(stated) and not _falls_within(trace.agents, stated):
            return trace
    stated = _of_rounds(stated, trace.columns.get("context", ()))
    if any(map(math.isnan, stated)) or all(a <= b for a, b in itertools.pairwise(stated)):
        return trace
    return reordered(trace, sorted(range(len(stated)), key=stated.__getitem__))


def _of_rounds(stated: Sequence[float], contexts: Sequence[str | None]) -> list[float]:
    """The numbers of rows, those of one context the least of theirs."""
    least: dict[str, float] = {}
    for number, context in zip(stated, contexts, strict=False):
        if context is not None:
            least[context] = min(number, least.get(context, number))
    of_contexts = itertools.zip_longest(stated, contexts[: len(stated)])
    return [number if context is None else least[context] for number, context in of_contexts]


def _falls_within(agents: Sequence[str], numbers: Sequence[float]) -> bool:
    last: dict[str, float] = {}
    for agent, number in zip(agents, numbers, strict=True):
        if number < last.get(agent, number):
            return True
        last[agent] = number
    return False


def numbers_of_turns(turns: Sequence[str]) -> list[float]:
    """The number of each turn; NaN for all where labels begin unlike, or have no order."""
    found = [numbered_turn(label) for label in turns]
    if None in found or len({turn[0] for turn in found if turn is not None}) != 1:
        return [math.nan] * len(turns)
    return [turn[1] for turn in found if turn is not None]
