"""Tables with words of their own for types of rows, and with calls of tools that generated no token of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from credit.metrics.event_costs import token_counts
from credit.metrics.trace_costs import costs_of_traces
from graphs.errors import CreditError, NothingReadError
from graphs.event_types import EventType
from graphs.formats.table.type_words import check_types
from graphs.logs import read
from tests.credit.cli.logs import run

ROWS = """trace,reward,agent,kind,tokens,usd
a,1,planner,LLM,10,0.5
a,1,planner,tool,,
a,1,planner,tool_result,,
a,1,coder,llm,4,0.25
a,1,runner,tool,,
b,0,planner,llm,3,0.125
b,0,planner,tool,,
"""
TYPES = {"llm": "message", "tool": "tool_call"}


def write(folder: Path, text: str) -> Path:
    (folder / "log.csv").write_text(text)
    return folder / "log.csv"


def actions(path: Path, **options: object) -> list[bool]:
    traces = read(path, columns={"type": "kind", "money": "usd"}, types=TYPES, **options)  # type: ignore[arg-type]
    return list(map(bool, traces.graph.action_mask[: traces.sizes.events]))


def test_words_of_types_mean_what_is_said(tmp_path: Path) -> None:
    """`llm` and `tool` were refused a trace at a time, and only a rewritten file was read."""
    path = write(tmp_path, ROWS)
    with pytest.raises(NothingReadError, match=r"stop; --types WORD=TYPE,\.\.\. \(in Python types="):
        read(path, columns={"type": "kind"})
    calls = write(tmp_path, "trace,type\na,llm_call\nb,handoff\nc,chat\n")
    with pytest.raises(NothingReadError, match="here llm_call=message,handoff=TYPE,chat=message"):
        read(calls, format="table")  # tool_call was proposed
    path = write(tmp_path, ROWS)
    read_as = read(path, columns={"type": "kind"}, types=TYPES)
    call, result, said = EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.MESSAGE
    assert read_as.graph.event_type[:7].tolist() == [said, call, result, said, call, said, call]
    shown = run("traces", path, "--columns", "type=kind", "--types", "llm=message,tool=tool_call")
    assert shown.exit_code == 0 and "llm" not in shown.stderr
    renamed = write(tmp_path, ROWS.replace("kind", "type").replace("tool,", "tool_call,").replace("llm", "return"))
    kinds = read(renamed, types={"LLM": "aggregate", "return": "message"}).graph.event_type[:4].tolist()
    assert kinds == [EventType.AGGREGATE, call, result, said]  # also in place of a type of ours


@pytest.mark.parametrize("types", [{"llm": "chat"}, {"llm": "message", "LLM": "message"}, {" ": "message"}, ["llm"]])
def test_words_without_a_meaning_are_refused(types: dict[str, str]) -> None:
    with pytest.raises(CreditError, match="types"):
        check_types(types)


def test_a_tool_call_without_tokens_is_no_action_of_an_agent_with_model_calls(tmp_path: Path) -> None:
    """Its tokens counted as missing, so that tokens were not compared and all sums were lower bounds."""
    path = write(tmp_path, ROWS)
    assert actions(path) == [True, False, False, True, True, True, False]  # the runner acts by its calls alone
    traces = read(path, columns={"type": "kind", "money": "usd"}, types=TYPES)
    found = costs_of_traces(traces)
    assert found["tokens"].value[1] == found["logged_money"].value[1] * 24 == 3
    assert found["tokens"].reasons[0] and token_counts(traces, "tokens", hidden=False)[:4].tolist() == [10, 0, 0, 4]
    (note,) = [note for note in traces.problems if note.kind == "made-calls"]
    assert not note.is_failure and note.line == 3 and "2 tool calls without tokens" in note.expected


def test_a_spawn_without_tokens_is_no_action_of_an_agent_with_model_calls(tmp_path: Path) -> None:
    """One spawn in each trace, and no trace's tokens or money were known: "an action has no count of tokens"."""
    text = ROWS.replace("tool_result,,", "spawn,,")
    assert actions(write(tmp_path, text)) == [True, False, False, True, True, True, False]
    traces = read(write(tmp_path, text), columns={"type": "kind", "money": "usd"}, types=TYPES)
    (note,) = [note for note in traces.problems if note.kind == "made-calls"]
    assert note.count == 1 and "2 tool calls and 1 spawn without tokens are no actions" in note.expected
    paid = ROWS.replace("tool_result,,", "spawn,6,0.75")
    assert actions(write(tmp_path, paid)) == [True, False, True, True, True, True, False]


@pytest.mark.parametrize("change", [
    ("a,1,runner,tool,,", "a,1,runner,tool,2,"),  # calls have counts of their own
    ("kind,", "kind,propensity,", ",,\n", ",0.5,,\n", ",10,", ",,10,", ",4,", ",,4,", ",3,", ",,3,"),
    ("10,0.5", ",", "4,0.25", ",", "3,0.125", ","),  # no row has a count
])  # fmt: skip
def test_other_tool_calls_are_actions(change: tuple[str, ...], tmp_path: Path) -> None:
    text = ROWS
    for old, new in zip(change[::2], change[1::2], strict=True):
        text = text.replace(old, new)
    called = [line.split(",")[3] in ("tool", "llm", "LLM") for line in text.splitlines()[1:]]
    assert actions(write(tmp_path, text)) == called


def test_a_column_of_actions_decides(tmp_path: Path) -> None:
    text = "\n".join(
        line + ("," + ("action" if not i else str(int(i != 3)))) for i, line in enumerate(ROWS.splitlines())
    )
    assert actions(write(tmp_path, text + "\n")) == [True, True, False, True, True, True, True]
