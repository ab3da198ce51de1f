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

    Times state it where every row has one, turns where rows of one number share a context, also between equal times.
    Without times an agent's turns do that differ and fall: rows of several agents that have one number stay as they
    stand, and so do those of one context, which act at once: a time may be that at which they ended.
    """
    turns = numbers_of_turns(trace.turns)
    contexts = [*trace.columns.get("context", ()), *[None] * len(turns)]  # a column may end early
    rounds = {*((turn, row if contexts[row] is None else contexts[row]) for row, turn in enumerate(turns))}
    through = len({*turns}) == len(rounds) and not any(map(math.isnan, turns[:1] or [math.nan]))
    stated: Sequence[float] = trace.times
    if all(map(math.isnan, trace.times)):
        if not through and (len({*zip(trace.agents, turns, strict=False)}) < len(turns) or not _falls(trace, turns)):
            return trace
        stated = turns
    stated = _of_rounds(stated, trace.columns.get("context", ()))
    if any(map(math.isnan, stated)):
        return trace
    keys = list(zip(stated, turns if through else stated, strict=True))
    if all(a <= b for a, b in itertools.pairwise(keys)):
        return trace
    return reordered(trace, sorted(range(len(keys)), key=keys.__getitem__))


def _of_rounds(stated: Sequence[float], contexts: Sequence[str | None]) -> list[float]:
    """The numbers of rows, those of one context the least of theirs."""
    least: dict[str, float] = {}
    for number, context in zip(stated, contexts, strict=False):
        if context is not None:
            least[context] = min(number, least.get(context, number))
    of_contexts = itertools.zip_longest(stated, contexts[: len(stated)])
    return [number if context is None else least[context] for number, context in of_contexts]


def _falls(trace: TraceRecord, numbers: Sequence[float]) -> bool:
    """Whether the numbers of an agent fall."""
    last: dict[str, float] = {}
    for agent, number in zip(trace.agents, numbers, strict=False):
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
