"""What MLflow calls things, in the words of OpenInference.

MLflow keeps attributes as JSON texts: `mlflow.spanType` is `"CHAT_MODEL"` with its quotes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from graphs.formats.otlp.wire import Attributes
from graphs.reading.json_problems import JSON_ERRORS

__all__ = ["of_mlflow", "of_mlflow_assessments"]

_KINDS = {
    "AGENT": "AGENT",
    "CHAT_MODEL": "LLM",
    "LLM": "LLM",
    "TOOL": "TOOL",
    "RETRIEVER": "RETRIEVER",
    "RERANKER": "RERANKER",
    "EMBEDDING": "EMBEDDING",
    "GUARDRAIL": "GUARDRAIL",
    "EVALUATOR": "EVALUATOR",
    "MEMORY": "TOOL",
}


def of_mlflow(given: Attributes) -> Attributes:
    """Attributes of a span, with those of MLflow translated; as they are where there are none."""
    kind = _text(given.get("mlflow.spanType"))
    if kind is None:
        return given
    attributes: Attributes = {"openinference.span.kind": _KINDS.get(kind, "CHAIN")}
    usage = _json(given.get("mlflow.chat.tokenUsage"))
    if isinstance(usage, dict):
        counts = {"completion": usage.get("output_tokens"), "prompt": usage.get("input_tokens")}
        attributes |= {f"llm.token_count.{name}": count for name, count in counts.items() if count is not None}
    return attributes | {key: value for key, value in given.items() if not key.startswith("mlflow.")}


def of_mlflow_assessments(info: Any) -> Attributes:
    """Numbers of a trace's assessments as evaluations of the trace; those of one span are left out.

    So are those that another overrides, which MLflow keeps. A number that is written as a text is passed on as it is:
    who reads the evaluations refuses it by name.
    """
    listed = info.get("assessments") if isinstance(info, dict) else None
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    overridden = {name for one in found if isinstance(name := one.get("overrides"), str)}
    attributes: Attributes = {}
    for number, one in enumerate(found):
        if one.get("span_id") or one.get("valid") is False or one.get("assessment_id") in overridden:
            continue
        feedback = one.get("feedback")
        name = one.get("assessment_name", one.get("name"))
        value = feedback.get("value") if isinstance(feedback, dict) else None
        if isinstance(name, str) and (isinstance(value, bool) or type(_json(value)) in (int, float)):
            attributes[f"trace.evaluations.{number}.evaluation.name"] = name
            attributes[f"trace.evaluations.{number}.evaluation.score"] = (
                float(value) if isinstance(value, bool) else value
            )
    return attributes


def _json(value: Any) -> Any:
    """What a JSON text holds; another value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except JSON_ERRORS:
        return value


def _text(value: Any) -> str | None:
    decoded = _json(value)
    return decoded if isinstance(decoded, str) else None
