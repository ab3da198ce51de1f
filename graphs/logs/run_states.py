"""Failed runs, withdrawn and unsettled outcomes: what acts on `error`, `invalidated`, `unsettled`, `earlier_outcomes`.

Readers only note what a log says. A trace whose outcome was withdrawn keeps its events and has no reward.
A run that ended in an error keeps its reward, unless the caller leaves such runs out, because harnesses differ: some
score such a run, some write 0 without looking.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator

from graphs.errors import RUN_ERROR, RUN_LIMIT, CreditError, Problem
from graphs.text import excerpt, one_of
from graphs.traces.part import Part
from graphs.traces.record import CUT_SHORT, IN_ERROR, TraceRecord, is_limit

__all__ = ["ATTACH", "ERRORS", "KEEP", "ORPHANS", "REFUSE", "apply_run_states", "check_errors"]

KEEP = "keep"
ERRORS = (KEEP, "drop")
"""What may be done with runs that ended in an error."""
REFUSE, ATTACH = "refuse", "root"
ORPHANS = (KEEP, ATTACH, REFUSE)
"""What may be done with traces of spans that name parents which are not in the log."""

_REWARDS_OF_EVENTS = ("event_reward", "agent_reward")


def check_errors(errors: str, orphans: str = KEEP) -> None:
    """Check the caller's choices for failed runs and for pieces of traces.

    Raises:
      CreditError: there is no such name.
    """
    for name, stated, known in (("errors", errors, ERRORS), ("orphans", orphans, ORPHANS)):
        if stated not in known:
            raise CreditError(f"{name} is {stated!r}; expected {one_of(stated, known)}")


def apply_run_states(
    items: Iterable[TraceRecord | Part | Problem], errors: str = KEEP, orphans: str = KEEP
) -> Iterator[TraceRecord | Part | Problem]:
    """The items, a note for each run that failed or whose outcome was withdrawn, and one note on all earlier outcomes.

    A trace whose rewards are unsettled has a note for each, and no reward at all where those of events are.

    A trace with spans that stand twice has a note with their number, a file with spans of an unknown kind one for each
    kind, and one with calls of which it states different counts, or traces whose cost is not the sum of its parts, one;
    so has each model that embeds for a tool beside another.

    A run that is both and is not left out has the note on its withdrawn outcome only.

    Args:
      items: what readers yield.
      orphans: "refuse", a trace that lacks spans above others is a problem; else it is read, with a note.
      errors: "keep", a run that ended in an error is read as any other; "drop", it is left out.
    """
    first, count = None, 0  # of traces that also state an earlier outcome
    rootless, called = None, 0  # of traces below a span that the log lacks, where no trace shows what a root is
    unknown: dict[tuple[str, str], tuple[int, int]] = {}  # kind and file -> its first line there, and how many spans
    dear: dict[str, tuple[str, int, int]] = {}  # file -> the first costs there that differ, and as of `unlike`
    embedded: dict[tuple[str, str], tuple[int, int, int]] = {}  # model and file -> first line, calls, and tokens
    unlike: dict[str, tuple[str, int, int]] = {}  # file -> the first counts there, their line, and of how many calls
    for item in items:
        if isinstance(item, TraceRecord) and item.unread is not None:
            if item.invalidated or "" in item.unsettled:
                _withdraw(item)
            yield from item.unread if item.error and errors != KEEP else [item]
            continue
        for counts, (file, line, _) in item.unlike_counts if isinstance(item, TraceRecord) else ():
            before = unlike.get(file, (counts, line, 0))
            unlike[file] = *before[:2], before[2] + 1
        for model, read, (file, line, _) in item.embedded if isinstance(item, TraceRecord) else ():
            begin, calls, tokens = embedded.get((model, file), (line, 0, 0))
            embedded[model, file] = min(begin, line), calls + 1, tokens + read
        if isinstance(item, TraceRecord) and (costs := _unlike_costs(item)):
            dear[item.file] = *dear.get(item.file, (costs, item.line, 0))[:2], dear.get(item.file, ("", 0, 0))[2] + 1
        for kind, (file, line, _) in item.unknown if isinstance(item, TraceRecord) else ():
            known = unknown.get((kind, file), (line, 0))
            unknown[kind, file] = min(known[0], line), known[1] + 1
        if isinstance(item, TraceRecord) and item.earlier_outcomes:
            first, count = first or item, count + 1
        if isinstance(item, TraceRecord) and item.outside:
            rootless, called = rootless or item, called + 1
        if isinstance(item, TraceRecord) and item.repeated:
            expected = "each once: equal ones count once"
            yield _note("repeated-run", "spans", item, f"{item.repeated} again, with equal content", expected)
        yield from dict.fromkeys((*item.unsettled.values(), *item.left_out)) if isinstance(item, TraceRecord) else ()
        if isinstance(item, TraceRecord) and "" in item.unsettled:
            _withdraw(item)
        if isinstance(item, TraceRecord) and item.missing:
            if orphans == REFUSE:
                yield _note("missing-parent", "parent", item, item.missing, "spans of this log")
                continue
            item.metrics[CUT_SHORT] = 1.0
            item.lost_part()
            expected = "all spans: probably cut short, since what ends too early exports no open span"
            yield _note("cut-short", "missing", item, item.missing, expected)
        if isinstance(item, TraceRecord) and item.open:
            item.metrics[CUT_SHORT] = 1.0
            expected = "one, as others of the log have: probably cut short"
            yield _note("cut-short", "end", item, item.open, expected)
        if isinstance(item, TraceRecord) and is_limit(item.error):
            item.ended_by(item.error)
            expected = "a run that no limit ended: it counts as any other, and --errors drop leaves it in"
            yield _note(RUN_LIMIT, "error", item, item.error, expected)
            item.error = ""
        if not isinstance(item, TraceRecord) or not (item.error or item.invalidated):
            yield item
            continue
        dropped = bool(item.error) and errors != KEEP
        if item.invalidated and not dropped:  # its reward does not count, whether an error ended the run or not
            _withdraw(item)
            expected = "an outcome that the log has not withdrawn: the trace is read without one"
            yield _note("invalidated", "outcome", item, item.invalidated, expected)
        else:
            done = "its reward counts; --errors drop (in Python errors='drop') leaves it out"
            expected = "a run without an error: " + ("this one is left out" if dropped else done)
            yield _note(RUN_ERROR, "error", item, item.error, expected)
        if not dropped:
            if item.error:
                item.metrics[IN_ERROR] = 1.0
            yield item
    for (kind, file), (line, count) in unknown.items():
        expected = "a kind of span that the format knows: this span is no event, and the spans in it are read"
        yield Problem("unknown-kind", file, line, "kind", excerpt(kind), expected, count=count)
    for (model, file), (line, calls, tokens) in embedded.items():
        expected = f"one model that embeds for a tool: {tokens:,} tokens that this one read are in no sum"
        yield Problem("embedded-tokens", file, line, "model", excerpt(model), expected, count=calls)
    for file, (costs, line, count) in dear.items():
        expected = "the sum of what its calls cost, which counts by agent, model and tool"
        yield Problem("unlike-costs", file, line, "cost", excerpt(costs), expected, count=count)
    for file, (counts, line, count) in unlike.items():
        expected = "one number of a call: it stands in several places, of which the first counts"
        yield Problem("unlike-counts", file, line, "usage", excerpt(counts), expected, count=count)
    if rootless is not None:
        expected = (
            "a root span: read as called from outside this log, since no trace here has one. "
            "A run that was killed before its root span was exported looks the same"
        )
        note = _note("outside-caller", "parent", rootless, f"missing above {excerpt(rootless.outside)}", expected)
        yield dataclasses.replace(note, count=called)
    if first is not None:
        expected = (
            "rewards of steps under names of their own: this number states the outcome at an earlier moment, so it is "
            "no reward but the evidence `value` of the next action"
        )
        note = _note("earlier-outcome", first.earlier_outcomes, first, "", expected)
        yield dataclasses.replace(note, value="stated before the end, too", count=count)


def _withdraw(record: TraceRecord) -> None:
    record.rewards = {}
    for name in _REWARDS_OF_EVENTS:
        record.columns.pop(name, None)


def _note(kind: str, field: str, record: TraceRecord, value: str, expected: str) -> Problem:
    return Problem(kind, record.file, record.line, field, excerpt(value, 200), expected, record.trace_id)


def _unlike_costs(record: TraceRecord) -> str:
    """What a whole trace cost and the sum of its parts, where all calls state theirs and these differ; "" elsewhere."""
    whole, stated = record.total_money, dict(enumerate(record.columns.get("money", ())))
    calls = (stated.get(i) for i, action in enumerate(record.actions) if action)
    if whole is None or record.missing or any(money is None for money in calls):
        return ""
    total = math.fsum(money for money in stated.values() if money is not None)
    return (
        "" if abs(whole - total) <= 0.005 * max(whole, total) else f"{whole:.4g} of the trace, {total:.4g} of its parts"
    )
