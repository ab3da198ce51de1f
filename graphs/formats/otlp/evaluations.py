"""Evaluations: the worth of a trace, or of a span of it, as a log states it.

Two carriers. OpenTelemetry: `gen_ai.evaluation.result`, an event of a span or a log record that points at one.
OpenInference: the attributes `evaluations.N.evaluation.*` and `annotations.N.annotation.*` of a span, and
`trace.evaluations.*`, `trace.annotations.*` of the whole trace, which may be repeated on several of its spans.
An evaluation with a label and no score holds no number and is passed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from graphs.formats.otlp.dialects import BadAttribute, plain_or_text
from graphs.formats.otlp.wire import Attributes, Place, is_text, number

__all__ = ["RESULT", "Evaluation", "inference_evaluations", "result_evaluation"]

RESULT = "gen_ai.evaluation.result"
_FLAT = re.compile(r"(trace\.)?(evaluations|annotations)\.(\d+)\.(?:evaluation|annotation)\.(name|score)")


class Evaluation(NamedTuple):
    """One score: of the span `span`, of the call with `response_id`, or of the whole trace where both are empty.

    `channel` and `event` are what the marks `channel` and `event.id` say; empty without them.
    """

    name: str
    score: float
    place: Place
    span: str = ""
    response_id: str = ""
    channel: str = ""
    event: str = ""


def result_evaluation(given: Attributes, place: Place, span: str) -> Evaluation | None:
    """The evaluation in the attributes of a `gen_ai.evaluation.result`; None where it has no score.

    Raises:
      BadAttribute: the name is missing, the score is no finite number.
    """
    score = given.get("gen_ai.evaluation.score.value")
    if score is None:
        return None
    response = given.get("gen_ai.response.id") if not span else None
    return Evaluation(
        _name("gen_ai.evaluation.name", given.get("gen_ai.evaluation.name")),
        _score("gen_ai.evaluation.score.value", score),
        place,
        span,
        response_id="" if response is None else _name("gen_ai.response.id", response),
    )


def inference_evaluations(given: Attributes, place: Place, span: str) -> Iterator[Evaluation]:
    """The evaluations in a span's OpenInference attributes.

    Raises:
      BadAttribute: as in `result_evaluation`.
    """
    keys_of: dict[tuple[str, str, int], dict[str, Any]] = {}
    for key in given:
        match = _FLAT.fullmatch(key) if "evaluations." in key or "annotations." in key else None
        if match and given[key] is not None:
            scope, family, n, field = match.groups()
            keys_of.setdefault((scope or "", family, int(n[:9])), {})[field] = key
    for (scope, family, n), keys in sorted(keys_of.items()):
        if "score" not in keys:
            continue
        stem = f"{scope}{family}.{n}.{family[:-1]}"
        name = _name(f"{stem}.name", given.get(keys.get("name", "")))
        yield Evaluation(name, _score(f"{stem}.score", given[keys["score"]]), place, "" if scope else span)


def _name(key: str, value: Any) -> str:
    if not is_text(value) or not value:
        raise BadAttribute(key, plain_or_text(value), "a non-empty string")
    return str(value)


def _score(key: str, value: Any) -> float:
    amount = number(value)
    if amount is None or not math.isfinite(amount):
        raise BadAttribute(key, plain_or_text(value), "a finite number")
    return float(amount)
