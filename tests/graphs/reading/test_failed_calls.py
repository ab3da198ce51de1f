"""A model call that its log calls failed is an action with the status `error`, whatever the format."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from credit.reports.event_errors import error_mask
from graphs.logs import read

from .all_formats import ALL
from .test_money_of_calls import has, named, objects

Fail = Callable[[dict[str, Any]], None]


def stating(**fields: Any) -> Fail:
    return lambda call: call.update(fields)


def of_claude_code(line: dict[str, Any]) -> None:
    """As Claude Code writes what the API refused: a reply of no model, with the words of the error."""
    line["message"] |= {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 529 Overloaded"}]}
    line["isApiErrorMessage"] = True


def of_agent_lightning(event: dict[str, Any]) -> None:
    event["data"] |= {"status": "error", "http_status": 429, "response": {}}


OTLP = stating(status={"code": 2, "message": "429"})
FAILED: dict[str, tuple[str, Callable[[dict[str, Any]], bool], Fail]] = {
    "adk": ("adk", lambda event: "modelVersion" in event, stating(errorCode="429")),
    "agent-lightning": ("agent-lightning", named("event_type", "model_request"), of_agent_lightning),
    "braintrust": (
        "braintrust", lambda row: row.get("span_attributes", {}).get("type") == "llm", stating(error="429"),
    ),
    "claude-code": ("claude-code", named("type", "assistant"), of_claude_code),
    "inspect-ai": ("inspect-ai", named("event", "model"), stating(error="429", output={"choices": []})),
    "langfuse": ("langfuse", named("type", "GENERATION"), stating(level="ERROR", statusMessage="429")),
    "langsmith": ("langsmith", named("run_type", "llm"), stating(error="429")),
    "openai-agents": (
        "openai-agents",
        lambda item: item.get("span_data", {}).get("type") in ("generation", "response"),
        stating(error={"message": "429"}),
    ),
    "opencode": ("opencode", named("role", "assistant"), stating(error={"name": "APIError"})),
    "otlp of gen_ai": ("otlp of gen_ai", has("gen_ai.operation.name", "chat"), OTLP),
    "otlp of openinference": ("otlp of openinference", has("openinference.span.kind", "LLM"), OTLP),
    "spans of mlflow": (
        "spans of mlflow",
        lambda item: "CHAT_MODEL" in str(item.get("attributes", {}).get("mlflow.spanType")),
        stating(status={"code": "STATUS_CODE_ERROR", "message": "429"}),
    ),
    "weave": (
        "weave", lambda item: bool(item.get("op_name") and item.get("summary", {}).get("usage")),
        stating(exception="429"),
    ),
}  # fmt: skip
"""For each format that states such calls: which objects of its log are model calls, and what makes one fail."""


@pytest.mark.parametrize("name", FAILED)
def test_a_failed_model_call_is_an_action_that_is_an_error(name: str, tmp_path: Path) -> None:
    """Inspect's, Agent Lightning's and Claude Code's were no event: runs at a rate limit had no errors."""
    sample, is_call, fail = FAILED[name]
    values = copy.deepcopy(ALL[sample].values)
    before = failed_and_all(ALL[sample].write(tmp_path))
    fail(next(item for item in objects(values) if is_call(item)))
    after = failed_and_all(ALL[sample]._replace(values=values).write(tmp_path))
    assert after == (before[0] + 1, before[1])


def failed_and_all(path: Path) -> tuple[int, int]:
    """How many model calls failed, of how many."""
    traces = read(path)
    calls = np.asarray(traces.graph.action_mask)[: traces.sizes.events]
    return int((calls & error_mask(traces)).sum()), int(calls.sum())
