"""A span of a kind that its format does not know gives structure alone: a note says which kind, where and how often."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from ..all_formats import ALL

TOOLS = {
    "spans of phoenix": '"span_kind": "TOOL"',
    "spans of mlflow": '\\"TOOL\\"',
    "langfuse": '"type": "TOOL"',
    "weave": '"kind": "tool"',
    "braintrust": '"type": "tool"',
    "openai-agents": '"type": "function"',
    "agent-lightning spans": '"agentops.span.kind": "tool"',
    "langsmith": '"run_type": "tool"',
    "otlp of gen_ai": '"stringValue": "execute_tool"',
    "otlp of openinference": '"stringValue": "TOOL"',
}
"""How a log of a format states that a span is a tool."""
KINDS_OF_PHOENIX = ('"span_kind": "LLM"', '"span_kind": "TOOL"', '"span_kind": "AGENT"')


def of_another_kind(stated: str) -> str:
    """The statement with a word that no format knows."""
    word = stated.strip('\\"').rpartition('"')[2]
    return stated.replace(word, "ROUTER")


@pytest.mark.parametrize("name", TOOLS)
def test_a_kind_that_its_format_does_not_know_is_named_once(tmp_path: Path, name: str) -> None:
    path = ALL[name].write(tmp_path)
    assert "unknown-kind" not in {problem.kind for problem in read(path).problems}
    text, stated = path.read_text(), TOOLS[name]
    path.write_text(text.replace(stated, of_another_kind(stated)))
    notes = [problem for problem in read(path).problems if problem.kind == "unknown-kind"]
    assert [(note.value, note.file, note.is_failure) for note in notes] == [("'ROUTER'", str(path), False)]
    assert 0 < notes[0].count <= text.count(stated)  # one of Agent Lightning's tools is told to be an agent by its name


@pytest.mark.parametrize("name", ["langsmith", "spans of phoenix"])
def test_a_log_of_unknown_kinds_alone_says_why_it_has_no_events(tmp_path: Path, name: str) -> None:
    path, text = tmp_path / ALL[name].file, ALL[name].text
    for stated in ('"run_type": "llm"', '"run_type": "tool"', '"run_type": "chain"', *KINDS_OF_PHOENIX):
        text = text.replace(stated, of_another_kind(stated))
    path.write_text(text.replace("langgraph_node", "node").replace("lc_agent_name", "name"))
    with pytest.raises(NothingReadError) as refused:
        read(path)
    assert [problem.kind for problem in refused.value.problems] == ["no-events"]
    assert "a kind that is not known give none: 'ROUTER'" in refused.value.problems[0].expected
