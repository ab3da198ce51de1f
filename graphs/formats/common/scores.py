"""Scores of a trace and of its spans: each counts once, for the trace or at the event that it is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, NoReturn

from graphs.errors import Problem, TraceError
from graphs.formats.common.earlier_outcomes import place_earlier
from graphs.formats.common.span_tree import Kind
from graphs.formats.common.team_writing import Written
from graphs.reading.documents import Place
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["Score", "is_written_number", "place_scores"]

_ROUNDING = 1e-9  # a mean of equal numbers may differ from them in its last digits


class Score(NamedTuple):
    """A number that a log gives a trace or one of its spans.

    `span` is "" for the trace. `id` is "" where the log states none; `number` then tells scores of one list apart.
    """

    name: str
    value: float
    place: Place
    span: str = ""
    id: str = ""
    number: int = 0


def is_written_number(value: object) -> bool:
    """Whether a score is a text that states a number or a truth, which a scorer returned in place of it.

    Examples:
      >>> [is_written_number(value) for value in ("0.8", "True", "yes", "nan", 0.8)]
      [True, True, False, False, False]
    """
    if not isinstance(value, str):
        return False
    try:
        return value.strip().lower() in ("true", "false") or math.isfinite(float(value))
    except ValueError:
        return False


def place_scores(written: Written, scores: Iterable[Score], fields: tuple[str, str]) -> None:
    """Write the scores of the trace or of a root span as channels, and add up those of a call or a tool at its event.

    A score that is stated twice, under one id, counts once. That of a call or a tool under the name of a channel states
    the channel at an earlier moment, and is no reward.

    Args:
      written: the trace with its events.
      scores: all scores about it, in order.
      fields: what the format calls a score's value and the id of its span.

    Raises:
      TraceError: "unknown-span"; "disagreeing-rewards", one id with two contents, or two numbers of one channel;
        "ambiguous-event-reward", equal scores without ids, which may be one or two.
    """
    record, tree = written.team.record, written.tree
    trace_field, span_field = fields
    inner: list[Score] = []
    for score in _once(record, scores, trace_field):
        if score.span and score.span not in tree.spans:
            _refuse(record, score, "unknown-span", span_field, score.span, "the id of a span of this trace")
        if score.span and tree.parent[score.span]:
            inner.append(score)
            continue
        first = record.rewards.setdefault(score.name, score.value)
        if not math.isclose(first, score.value, rel_tol=_ROUNDING):
            expected = f"{first!r}, which another score {score.name!r} of the trace has"
            _refuse(record, score, "disagreeing-rewards", trace_field, score.value, expected)
    alike: dict[tuple[str, str, float], list[Score]] = {}
    earlier: dict[str, list[tuple[int, float]]] = {}
    # Scores of calls and tools add up. Alike ones without ids may be one score stated twice, and are refused below.
    for score in inner:
        position = written.opened.get(score.span)
        if position is None or tree.spans[score.span].kind not in (Kind.CALL, Kind.TOOL):
            continue
        if score.name in record.rewards:
            earlier.setdefault(score.name, []).append((position, score.value))
        else:
            alike.setdefault((score.span, score.name, score.value), []).append(score)
            record.add_reward(position, score.value)
    for name, statements in earlier.items():
        place_earlier(record, name, sorted(statements, key=lambda statement: statement[0]))
    for scores_of_one in alike.values():
        without_id = [score.number for score in scores_of_one if not score.id]
        if without_id and len(scores_of_one) > len(set(without_id)):
            last = scores_of_one[-1]
            expected = "an id of each score: without it one score stated twice looks as two scores do"
            _refuse(record, last, "ambiguous-event-reward", trace_field, last.value, expected)


def _once(record: TraceRecord, scores: Iterable[Score], field: str) -> Iterator[Score]:
    """The scores without those that repeat an earlier one of their id."""
    by_id: dict[str, Score] = {}
    for score in scores:
        first = by_id.setdefault(score.id, score) if score.id else score
        if first is score:
            yield score
        elif (first.name, first.value, first.span) != (score.name, score.value, score.span):
            where = f"{first.place.file}:{first.place.line}"
            expected = (
                f"{first.name} {first.value!r} of {first.span or 'the trace'}, which the score {score.id} is in {where}"
            )
            shown = f"{score.name} {score.value!r} of {score.span or 'the trace'}"
            _refuse(record, score, "disagreeing-rewards", field, shown, expected)


def _refuse(record: TraceRecord, score: Score, kind: str, field: str, value: object, expected: str) -> NoReturn:
    place = score.place
    raise TraceError(Problem(kind, place.file, place.line, field, excerpt(value), expected, record.trace_id))
