"""Conversations of OpenHands' SDK: a folder of events, which no trace is read without one of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.event_types import EventType
from graphs.logs import read
from tests.definitions.samples import SAMPLES

Events = dict[str, Any]


def conversation(folder: Path, change: Callable[[Events], Any] = lambda events: events) -> Path:
    """The files of the sample by their paths, changed."""
    files = {name: json.loads(text) for name, text in SAMPLES["openhands-sdk"].files.items()}
    change(files)
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


def event(number: int) -> str:
    return f"conv/events/event-{number:05}-{number:08}.json"


STATE = "conv/base_state.json"

FAULTS: dict[str, tuple[Callable[[Events], Any], str]] = {
    "an event is gone": (lambda files: files.pop(event(4)), "lost-row"),
    "the first event is gone": (lambda files: files.pop(event(0)), "lost-row"),
    "the latest event is gone": (lambda files: files.pop(event(9)), "lost-row"),
    "an event is cut": (lambda files: files.update({event(4): '{"id": "e4", "timest'}), "lost-row"),
    "an event is empty": (lambda files: files.update({event(4): ""}), "lost-row"),
    "a branch": (lambda files: files[event(4)].update(parent_id="e2"), "forked-thread"),
    "a parent that is none": (lambda files: files[event(4)].update(parent_id="x"), "missing-parent"),
    "one id twice": (lambda files: files[event(4)].update(id="e3"), "duplicate-id"),
    "one tool call twice": (lambda files: files[event(4)].update(tool_call_id="t1"), "duplicate-id"),
    "a result of no tool call": (lambda files: files[event(5)].update(tool_call_id="x"), "unknown-tool-call"),
    "the conversation was set back": (lambda files: files[STATE].update(leaf_event_id="e7"), "forked-thread"),
    "the state is cut": (lambda files: files.update({STATE: '{"id": "c", "age'}), "lost-row"),
    "the state is empty": (lambda files: files.update({STATE: ""}), "lost-row"),
    "the state is zero bytes": (lambda files: files.update({STATE: "\0" * 40}), "lost-row"),
    "the end of the state is cut": (lambda files: files.update({STATE: json.dumps(files[STATE])[:-3]}), "lost-row"),
    "an unknown kind": (lambda files: files[event(8)].update(kind="DreamEvent"), "bad-value"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_conversation_with_a_fault_is_refused_by_name(name: str, tmp_path: Path) -> None:
    change, kind = FAULTS[name]
    with pytest.raises(NothingReadError) as caught:
        read(conversation(tmp_path, change))
    assert kind in {problem.kind for problem in caught.value.problems}


def test_two_conversations_in_one_file_are_refused(tmp_path: Path) -> None:
    """They were one trace."""
    texts = [text.strip() for name, text in sorted(SAMPLES["openhands-sdk"].files.items()) if "event-" in name]
    lines = "\n".join(json.dumps(json.loads(text)) for text in texts)
    others = re.sub(r'"(id|parent_id|tool_call_id|llm_response_id)": "', r'"\1": "other-', lines)
    (tmp_path / "conv.jsonl").write_text(f"{lines}\n{others}\n")
    with pytest.raises(NothingReadError, match="several-sessions"):
        read(tmp_path / "conv.jsonl")


def test_events_one_a_line_are_the_conversation_without_its_state(tmp_path: Path) -> None:
    texts = [text.strip() for name, text in sorted(SAMPLES["openhands-sdk"].files.items()) if "event-" in name]
    (tmp_path / "conv.jsonl").write_text("\n".join(texts) + "\n")
    lines, folder = read(tmp_path / "conv.jsonl"), read(conversation(tmp_path / "folder"))
    assert lines.problems == () and lines.events["event"].equals(folder.events["event"])
    assert lines.evidence.get("tokens") is None and folder.traces["model"].to_pylist() == ["m"]


def test_a_conversation_that_another_started_is_named(tmp_path: Path) -> None:
    traces = read(conversation(tmp_path / "parent" / "subagents"))
    assert [problem.kind for problem in traces.problems] == ["lone-subagent"]


def test_an_error_of_the_conversation_is_that_of_the_run(tmp_path: Path) -> None:
    error = {"kind": "ConversationErrorEvent", "code": "LLMError", "detail": "no key"}
    traces = read(conversation(tmp_path, lambda files: files[event(8)].update(error)))
    (problem,) = traces.problems
    assert problem.kind == "run-error" and "LLMError: no key" in problem.value


def test_the_end_within_a_response_that_thought_first_is_a_stop(tmp_path: Path) -> None:
    """The call was a message, since the thought is the first action of the response."""
    change = {"action": {"kind": "ThinkAction"}, "kind": "ActionEvent", "tool_call_id": "t0", "llm_response_id": "r3"}
    traces = read(conversation(tmp_path, lambda files: files[event(8)].update(change)))
    assert not traces.problems
    assert traces.graph.event_type[traces.sizes.events - 1] == EventType.STOP and traces.graph.action_mask.sum() == 2


def test_a_state_behind_the_latest_event_may_follow_it(tmp_path: Path) -> None:
    """An event that is none of the trace is no sign that the conversation was set back."""
    change = {"kind": "PauseEvent", "action": None}
    traces = read(conversation(tmp_path, lambda files: (files[event(9)].update(change),
                                                        files[STATE].update(leaf_event_id="e8"))))  # fmt: skip
    assert not traces.problems and traces.sizes.traces == 1
