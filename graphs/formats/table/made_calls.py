"""Calls of tools, and spawns, that model calls made, in a table that does not say which rows are actions.

Readers of logs with model calls (`graphs.formats.common.team`) make model calls the actions, and not what these call.
Here, too, a row of a tool's call or of a spawn is no action where model calls have counts of tokens and it has none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graphs.errors import Problem
from graphs.event_types import EventType
from graphs.text import counted
from graphs.traces.record import TraceRecord
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = ["note_of_made_calls"]

_MADE = {EventType.TOOL_CALL: "tool call", EventType.SPAWN: "spawn"}
_COUNTS = ("tokens", "input_tokens", "money")
_OF_A_CHOICE = ("propensity", "log_prob", *TOKEN_COLUMNS)
"""What a row has that a policy chose, whatever it cost."""


def note_of_made_calls(traces: Sequence[TraceRecord]) -> Problem | None:
    """Calls of tools become no actions where other actions of their agents have a count and no call of a tool has it;
    so do spawns.

    Args:
      traces: of one table, none of whose rows states whether it is an action.

    Examples:
      >>> from graphs.traces.record import TraceRecord
      >>> trace = TraceRecord("t", "q", "log.csv")
      >>> _ = trace.event("0", EventType.MESSAGE, "a", action=True, tokens=5)
      >>> _ = trace.event("1", EventType.TOOL_CALL, "a", action=True), trace.event("2", 4, "b", action=True)
      >>> note_of_made_calls([trace]).count, trace.actions
      (1, [True, False, True])
    """
    acts = [
        (trace, place, kind)
        for trace in traces
        for place, (kind, chosen) in enumerate(zip(trace.types, trace.actions, strict=True))
        if chosen
    ]
    made: list[tuple[TraceRecord, int]] = []
    said: list[str] = []
    counts: list[str] = []
    for kind, noun in _MADE.items():
        called, others = ([one[:2] for one in acts if (one[2] == kind) is own] for own in (True, False))
        count = next((name for name in _COUNTS if any(_states(*row, (name,)) for row in others)), "")
        if not count or any(_states(*row, (*_OF_A_CHOICE, count)) for row in called):
            continue
        models = {(id(trace), trace.agents[place]) for trace, place in others if _states(trace, place, (count,))}
        if found := [(trace, place) for trace, place in called if (id(trace), trace.agents[place]) in models]:
            made, said, counts = made + found, [*said, counted(len(found), noun)], [*counts, count]
    if not made:
        return None
    for trace, place in made:
        trace.actions[place] = False
    first, place = made[0]
    total, count = " and ".join(said), counts[0]
    expected = f"an `action` column, if a policy chose these by themselves: {total} without {count} are no actions "
    expected += f"here, since other rows of their agents have {count} and made them"
    return Problem("made-calls", first.file, first.lines[place], "action", "absent", expected, first.trace_id)


def _states(trace: TraceRecord, place: int, names: Collection[str]) -> bool:
    columns = (trace.columns.get(name, ()) for name in names)
    return any(place < len(column) and column[place] is not None for column in columns)
