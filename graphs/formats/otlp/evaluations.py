"""Evaluations: the worth of a trace, or of a span of it, as a log states it, and where each goes.

Two carriers. OpenTelemetry: `gen_ai.evaluation.result`, an event of a span or a log record that points at one.
OpenInference: the attributes `evaluations.N.evaluation.*` and `annotations.N.annotation.*` of a span, and
`trace.evaluations.*`, `trace.annotations.*` of the whole trace, which may be repeated on several of its spans.
An evaluation with a label and no score is a word, which `graphs.logs.worded_outcomes` reads.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphs.formats.common.earlier_outcomes import place_earlier
from graphs.formats.common.span_tree import Kind
from graphs.formats.common.team_writing import Written
from graphs.formats.otlp.dialects import BadAttribute, plain_or_text
from graphs.formats.otlp.wire import Attributes, is_text, number
from graphs.reading.documents import Place
from graphs.traces.record import BY_PEOPLE, TraceRecord, Word

__all__ = [
    "RESULT",
    "STEP",
    "Evaluation",
    "inference_evaluations",
    "place_evaluations",
    "result_evaluation",
    "state_outcome",
]

RESULT = "gen_ai.evaluation.result"
STEP = "event_reward"
"""Name of the evaluation that is a step's reward where spans are evaluated under several names."""

_FLAT = re.compile(
    r"(trace\.)?(evaluations|annotations)\.(\d+)\.(?:evaluation|annotation)\.(name|score|label|annotator_kind)"
)
_DIGITS = 9  # of an evaluation's number: more would be no number that an exporter counts to


@dataclasses.dataclass(frozen=True, slots=True)
class Evaluation:
    """One score: of the span `span`, of the call with `response_id`, or of the whole trace where both are empty.

    `channel` and `event` are what the marks `channel` and `event.id` say; empty without them. `by_person` is whether
    the log says so.
    """

    name: str
    score: float | str
    place: Place = dataclasses.field(compare=False, repr=False)
    span: str = ""
    response_id: str = ""
    channel: str = ""
    event: str = ""
    by_person: bool = dataclasses.field(default=False, compare=False)


def result_evaluation(attributes: Attributes, place: Place, span: str) -> Evaluation | None:
    """The evaluation in the attributes of a `gen_ai.evaluation.result`; None where it has no score.

    Raises:
      BadAttribute: the name is missing, the score is no finite number.
    """
    score, label = (attributes.get(f"gen_ai.evaluation.score.{part}") for part in ("value", "label"))
    if score is None and not (is_text(label) and label and attributes.get("gen_ai.evaluation.name")):
        return None
    response = attributes.get("gen_ai.response.id") if not span else None
    return Evaluation(
        _name("gen_ai.evaluation.name", attributes.get("gen_ai.evaluation.name")),
        str(label) if score is None else _score("gen_ai.evaluation.score.value", score),
        place,
        span,
        response_id="" if response is None else _name("gen_ai.response.id", response),
    )


def inference_evaluations(attributes: Attributes, place: Place, span: str) -> Iterator[Evaluation]:
    """The evaluations in a span's OpenInference attributes.

    Raises:
      BadAttribute: as in `result_evaluation`.
    """
    keys_of: dict[tuple[str, str, int], dict[str, Any]] = {}
    for key in attributes:
        match = _FLAT.fullmatch(key) if "evaluations." in key or "annotations." in key else None
        if match and attributes[key] is not None:
            scope, family, n, field = match.groups()
            keys_of.setdefault((scope or "", family, int(n[:_DIGITS])), {})[field] = key
    for (scope, family, n), keys in sorted(keys_of.items()):
        label = attributes.get(keys.get("label", ""))
        if "score" not in keys and not (is_text(label) and label and "name" in keys):
            continue
        stem = f"{scope}{family}.{n}.{family[:-1]}"
        name = _name(f"{stem}.name", attributes.get(keys.get("name", "")))
        score = _score(f"{stem}.score", attributes[keys["score"]]) if "score" in keys else str(label)
        by_person = str(attributes.get(keys.get("annotator_kind", ""))).upper() == "HUMAN"
        yield Evaluation(name, score, place, "" if scope else span, by_person=by_person)


def _name(key: str, value: Any) -> str:
    if not is_text(value) or not value:
        raise BadAttribute(key, plain_or_text(value), "a non-empty string")
    return str(value)


def _score(key: str, value: Any) -> float:
    amount = int(value) if isinstance(value, bool) else number(value)  # a truth is 1 or 0, as in every format
    if amount is None or not math.isfinite(amount):
        raise BadAttribute(key, plain_or_text(value), "a finite number")
    return float(amount)


def place_evaluations(written: Written, evaluations: Sequence[Evaluation], responses: Mapping[str, str]) -> None:
    """Write evaluations as reward channels of the trace, or as step rewards of its events.

    An evaluation of a root span, or of no span, is the trace's; its channel is its name, "team" for "reward". Any other
    is a step reward of the evaluated span's action: its model call; for a tool call the call that emitted it; for
    an agent, and for whatever has no action of its own, the last action inside. Rewards of one action from several
    spans add up. One evaluation found several times counts once. A step's evaluation under the name of a channel states
    the channel at an earlier moment, and is no reward. Unsettled are a channel or a step with two numbers, and steps
    that are evaluated under several names, none of them `STEP`. An evaluation of the span that the log lacks above all
    others is the trace's. That of another absent span, or of a span without an action, is left out.

    Args:
      written: the trace, with its events.
      evaluations: all evaluations of it.
      responses: spans of model calls to the ids of their responses.
    """
    tree, record, top = written.tree, written.team.record, written.tree.top
    steps: dict[tuple[str, str, str], Evaluation] = {}  # (span, event id, name)
    for evaluation in evaluations:
        span, response = evaluation.span, evaluation.response_id
        if response:
            span_ids = [span_id for span_id, of in responses.items() if of == response]
            if len(span_ids) != 1:
                expected = f"the response of one model call of this trace, not of {len(span_ids)}"
                record.leave_out("unknown-span", "gen_ai.response.id", response, expected, evaluation.place)
                continue
            (span,) = span_ids
        elif span not in ("", top) and span not in tree.spans:
            record.leave_out("unknown-span", "spanId", span, "the id of a span of this trace", evaluation.place)
            continue
        if evaluation.event or tree.parent.get(span):
            first = steps.setdefault((span, evaluation.event, evaluation.name), evaluation)
            if first.score != evaluation.score:
                expected = f"{first.score!r}, as in {first.place.file}:{first.place.line}, or another name"
                shown = f"{evaluation.name!r} {evaluation.score!r}"
                record.unsettle("", evaluation.name, shown, expected, evaluation.place)
        else:
            state_outcome(record, evaluation)
    _place_steps(written, steps)


def state_outcome(record: TraceRecord, evaluation: Evaluation) -> None:
    """Write an evaluation of the whole trace as a reward channel.

    Args:
      record: of the trace.
      evaluation: of it.
    """
    channel = evaluation.channel or _channel(evaluation.name)
    if evaluation.by_person:
        record.metrics[BY_PEOPLE.format(channel)] = 1.0
    if isinstance(evaluation.score, str):
        record.state_word(channel, evaluation.score, evaluation.name, evaluation.place)
    else:
        record.state_reward(channel, evaluation.score, evaluation.name, evaluation.place)


def _channel(name: str) -> str:
    return "team" if name == "reward" else name


def _place_steps(written: Written, steps: dict[tuple[str, str, str], Evaluation]) -> None:
    """Write step rewards, and those of the name of a channel as earlier statements of it."""
    if not steps:
        return
    record = written.team.record
    earlier = {key for key, step in steps.items() if _channel(step.name) in record.channels and not step.event}
    of_words = {step.name for key, step in steps.items() if key not in earlier and isinstance(step.score, str)}
    names = {step.name for key, step in steps.items() if key not in earlier and not isinstance(step.score, str)}
    name = STEP if STEP in names else next(iter(names), "") or (next(iter(of_words)) if len(of_words) == 1 else "")
    if len(names) > 1 and STEP not in names:
        last = [step for step in steps.values() if not isinstance(step.score, str)][-1]
        listed = ", ".join(sorted(names))
        expected = f"one name, or {STEP!r} for the one that is the step's reward; there are {listed}"
        record.unsettle(last.name, "gen_ai.evaluation.name", last.name, expected, last.place)
        name = ""  # none is a reward
    by_id = {event_id: position for position, event_id in enumerate(record.ids)}
    by_span: dict[str, list[int]] = {}
    for position, (span, _) in enumerate(written.events):
        by_span.setdefault(span, []).append(position)
    statements: dict[str, list[tuple[int, float]]] = {}
    for key, evaluation in steps.items():
        span, event, stated_name = key
        if stated_name != name and key not in earlier:
            continue
        place = by_id.get(event) if event else _action_of(written, by_span, span)
        if place is None and isinstance(evaluation.score, str):
            continue
        if place is None:
            expected = "an event of this trace" if event else "a span that holds an action"
            record.leave_out("unplaced-evaluation", "spanId", event or span, expected, evaluation.place)
        elif isinstance(evaluation.score, str):
            if key in earlier:
                record.earlier_outcomes = record.earlier_outcomes or stated_name
            else:
                record.event_words.append((stated_name, Word(evaluation.score, stated_name, evaluation.place, place)))
        elif key in earlier:
            statements.setdefault(stated_name, []).append((place, evaluation.score))
        else:
            record.add_reward(place, evaluation.score)
    for outcome, of_outcome in statements.items():
        place_earlier(record, outcome, sorted(of_outcome))


def _action_of(written: Written, by_span: dict[str, list[int]], span: str) -> int | None:
    tree, actions = written.tree, written.team.record.actions
    causes = [i if actions[i] else written.team.emitter(i) for i in by_span.get(span, ())]
    action = next((i for i in causes if i is not None), None)
    if action is not None and tree.kind[span] is not Kind.AGENT:
        return action
    inside = [i for below in _below(written, span) for i in by_span.get(below, ()) if actions[i]]
    return max(inside, default=action)


def _below(written: Written, span: str) -> Iterable[str]:
    waiting = list(written.tree.children[span])
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(written.tree.children[current])
