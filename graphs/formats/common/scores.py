"""Scores of a trace and of its spans: each counts once, for the trace or at the event that it is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from graphs.formats.common.earlier_outcomes import place_earlier
from graphs.formats.common.span_tree import Kind
from graphs.formats.common.team_writing import Written
from graphs.reading.documents import Place
from graphs.traces.record import BY_PEOPLE, TraceRecord, Word

__all__ = ["Score", "is_written_number", "place_scores"]


class Score(NamedTuple):
    """A number that a log gives a trace or one of its spans, or a word where it has no number.

    `span` is "" for the trace. `id` is "" where the log states none; `number` then tells scores of one list apart.
    `field` is what it stands in, "" for the field of the format's scores. `by_person` is whether the log says so.
    """

    name: str
    value: float | str
    place: Place
    span: str = ""
    id: str = ""
    number: int = 0
    field: str = ""
    by_person: bool = False


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

    A score of the span that the log lacks above all others is the trace's. That of another absent span is left out.

    A score that is stated twice, under one id, counts once. That of a call or a tool under the name of a channel states
    the channel at an earlier moment, and is no reward. Unsettled are one id with two contents, two numbers of one
    channel, and equal scores of an event without ids, which may be one or two.

    Args:
      written: the trace with its events.
      scores: all scores about it, in order.
      fields: what the format calls a score's value and the id of its span.
    """
    record, tree, top = written.team.record, written.tree, written.tree.top
    trace_field, span_field = fields
    inner: list[Score] = []
    for score in _once(record, scores, trace_field):
        if score.span not in ("", top) and score.span not in tree.spans:
            record.leave_out("unknown-span", span_field, score.span, "the id of a span of this trace", score.place)
            continue
        if tree.parent.get(score.span):
            inner.append(score)
            continue
        if score.by_person:
            record.metrics[BY_PEOPLE.format(score.name)] = 1.0
        if isinstance(score.value, str):
            record.state_word(score.name, score.value, score.field or trace_field, score.place)
        else:
            record.state_reward(score.name, score.value, score.field or trace_field, score.place)
    alike: dict[tuple[str, str, float | str], list[Score]] = {}
    earlier: dict[str, list[tuple[int, float]]] = {}
    # Scores of calls and tools add up. Alike ones without ids may be one score stated twice.
    for score in inner:
        position = written.opened.get(score.span)
        if position is None or tree.spans[score.span].kind not in (Kind.CALL, Kind.TOOL):
            continue
        if isinstance(score.value, str):
            if score.name in record.channels:
                record.earlier_outcomes = record.earlier_outcomes or score.name
                continue
            record.event_words.append(
                (score.name, Word(score.value, score.field or trace_field, score.place, position))
            )
        elif score.name in record.channels:
            earlier.setdefault(score.name, []).append((position, score.value))
            continue
        else:
            record.add_reward(position, score.value)
        alike.setdefault((score.span, score.name, score.value), []).append(score)
    for name, statements in earlier.items():
        place_earlier(record, name, sorted(statements, key=lambda statement: statement[0]))
    for scores_of_one in alike.values():
        without_id = [score.number for score in scores_of_one if not score.id]
        if without_id and len(scores_of_one) > len(set(without_id)):
            last = scores_of_one[-1]
            expected = "an id of each score: without it one score stated twice looks as two scores do"
            record.unsettle("", trace_field, f"{last.name!r} {last.value!r} of {last.span}", expected, last.place)


def _once(record: TraceRecord, scores: Iterable[Score], field: str) -> Iterator[Score]:
    """The scores without those that repeat an earlier one of their id."""
    by_id: dict[str, Score] = {}
    for score in scores:
        first = by_id.setdefault(score.id, score) if score.id else score
        if first is score:
            yield score
        elif (first.name, first.value, first.span) != (score.name, score.value, score.span):
            was, shown = (f"{one.name!r} {one.value!r} of {one.span or 'the trace'}" for one in (first, score))
            expected = f"{was}, which the score {score.id} is in {first.place.file}:{first.place.line}"
            record.unsettle("", field, shown, expected, score.place)
