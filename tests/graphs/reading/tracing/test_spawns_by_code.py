"""A program that starts agents, as an agent's span without a model call: what its starts cost."""

from __future__ import annotations

from typing import Any

import pytest

from graphs.event_graph import EventType
from graphs.formats.common.span_tree import Kind, Rules, Span, Tree
from graphs.formats.common.team_writing import write_events
from graphs.reading.documents import Place
from graphs.traces.record import TraceRecord

USED = {"tokens": 10, "input_tokens": 100}


def counts(rules: Rules, *spans: tuple[str, str, Kind], unstated: tuple[str, ...] = (), **more: Any) -> list[list[Any]]:
    """Tokens, tokens read and money of the starts and hand-offs among events of these spans, each a second long."""
    place, listed = Place("log.jsonl", 1, 0), []
    for i, (name, parent, kind) in enumerate(spans):
        states = kind is Kind.CALL and name not in unstated
        used = dict(USED) if states else {}
        money = 0.5 if states and "money" in more else None
        clock = (i + 1) * 10**9, (2 * len(spans) - i) * 10**9
        listed.append(Span(name, parent, kind, place, name=name, start=i + 1.0, end=2.0 * len(spans) - i, clock=clock,
                           columns=used, money=money, target="coder" if kind is Kind.HANDOFF else ""))  # fmt: skip
    record = TraceRecord("t", "q", "log.jsonl")
    write_events(record, Tree("t", listed, ("id", "parent"), rules), "root")
    columns = [record.columns.get(name, []) for name in ("tokens", "input_tokens", "money")]
    acts = [i for i, act in enumerate(record.actions) if act and EventType(record.types[i]) is EventType.SPAWN]
    assert acts
    return [[column[i] if i < len(column) else None for column in columns] for i in acts]


TEAM = (("team", "", Kind.AGENT), ("planner", "team", Kind.AGENT), ("plan", "planner", Kind.CALL))
CODER = (("coder", "team", Kind.AGENT), ("write", "coder", Kind.CALL))


@pytest.mark.parametrize("rules", [Rules.DEPTH_FIRST, Rules.CLOCKS])
def test_a_start_by_code_costs_what_no_model_call_of_it_cost(rules: Rules) -> None:
    """It had no count, so that the cost of each trace was not known."""
    assert counts(rules, *TEAM, *CODER) == [[0, 0, None]] * 2
    assert counts(rules, *TEAM, *CODER, money=True) == [[0, 0, 0]] * 2


@pytest.mark.parametrize("rules", [Rules.DEPTH_FIRST, Rules.CLOCKS])
@pytest.mark.parametrize("bare", ["plan", "write"])
def test_a_call_without_a_count_leaves_the_cost_of_starts_known(rules: Rules, bare: str) -> None:
    """One call at a rate limit took tokens and money from the whole trace: 38 of 100 had none."""
    assert counts(rules, *TEAM, *CODER, unstated=(bare,), money=True) == [[0, 0, 0]] * 2


@pytest.mark.parametrize("rules", [Rules.DEPTH_FIRST, Rules.CLOCKS])
def test_where_a_model_may_have_asked_or_no_call_states_usage_its_cost_is_not_known(rules: Rules) -> None:
    unknown = [None] * 3
    assert counts(rules, *TEAM, *CODER, unstated=("plan", "write")) == [unknown] * 2
    assert counts(rules, *TEAM[:2], CODER[0]) == [unknown] * 2  # no call is logged
    assert counts(rules, *TEAM, *CODER, ("search", "team", Kind.TOOL)) == [unknown] * 2
    tool = ("ask", "team", Kind.TOOL), ("coder", "ask", Kind.AGENT), CODER[1]
    assert counts(rules, *TEAM, *tool) == [unknown] * 2
    assert counts(rules, *TEAM, ("give", "team", Kind.HANDOFF), *CODER)[-1] == unknown
    apart = (("planner", "lost", Kind.AGENT), ("plan", "planner", Kind.CALL), ("coder", "gone", Kind.AGENT), CODER[1])
    inner = ("helper", "coder", Kind.AGENT), ("help", "helper", Kind.CALL)
    assert counts(rules, *apart[:3], *inner) == [unknown]  # spans between are missing
