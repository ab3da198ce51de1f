"""What repeated calls cost, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.metrics.event_costs import Price, Prices
from credit.metrics.repeated_costs import repeated_cost
from credit.page.questions import questions

PRICES = Prices({"m": Price(1e6, 1e6)}, {"run": 0.5})


def log(path: Path, *steps: str) -> Path:
    """A trace in which each step is a model call of 10, 11, … tokens that asks for calls, in small letters where they
    succeed and in capitals where they fail; each result takes 2 seconds, each model call none."""
    events: list[dict[str, Any]] = []
    edges = []
    of = {"agent": "a", "model": "m", "action": False, "tool": "run", "seconds": 0}
    for number, calls in enumerate(steps):
        asks = {"id": f"m{number}", "type": "message", "tokens": 10 + number, "input_tokens": 100}
        events.append(of | asks | {"action": True, "tool": None})
        for place, call in enumerate(calls):
            name, status = f"{number}.{place}", "error" if call.isupper() else "ok"
            events.append(of | {"id": f"c{name}", "type": "tool_call", "content_ref": call.lower()})
            events.append(of | {"id": f"r{name}", "type": "tool_result", "status": status, "seconds": 2})
            edges.append({"src": asks["id"], "dst": f"c{name}", "type": "tool_dependency"})
            edges.append({"src": f"c{name}", "dst": f"r{name}", "type": "return"})
    path.write_text(json.dumps({"trace_id": "t", "task_id": "q", "events": events, "edges": edges, "rewards": {}}))
    return path


@pytest.mark.parametrize(
    ("steps", "again", "asked"),
    [
        (("x", "y"), 0, []),
        (("X", "x"), 1, [1]),  # made again after it failed
        (("x", "x"), 0, []),
        (("x", "x", "x", "y"), 2, [1, 2]),  # later rounds of a loop
        (("X", "X", "X", "x"), 3, [1, 2, 3]),  # both, once
        (("X", "xy", "z"), 1, []),  # its model call asked for something else, too
        (("XY", "xy"), 2, [1]),
        (("X", "y", "x"), 1, [2]),
    ],
)
def test_the_cost_of_repeated_calls_by_hand(
    tmp_path: Path, steps: tuple[str, ...], again: int, asked: list[int]
) -> None:
    """A reader had how many loops and retries there were, not what they cost."""
    found = repeated_cost(credit.read(log(tmp_path / "log.jsonl", *steps)), PRICES)
    if not again:
        assert found is None
        return
    assert found is not None and (found.again, found.calls, found.asked) == (again, len("".join(steps)), len(asked))
    tokens, every = sum(10 + number for number in asked), sum(10 + number for number in range(len(steps)))
    assert {name: cost.total for name, cost in found.costs.items() if name != "logged_money"} == {
        "tokens": tokens, "input_tokens": 100 * len(asked), "seconds": 2 * again,
        "money": tokens + 100 * len(asked) + 0.5 * again}  # fmt: skip
    assert found.whole and found.shares.get("tokens", 0) == tokens / every


def test_the_sentence_on_repeated_calls(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", "X", "x", "yz")
    said = "1 of 4 tool calls repeat a failed call or a loop with equal arguments; with 1 model call for these alone "
    said += "they cost 33 % of the tokens generated (11), 33 % of the tokens read (100), "
    said += "25 % of the seconds of work (2)"
    assert f"\n{said}\n" in CliRunner().invoke(cli, ["summary", str(path)]).stdout
    told = json.loads(CliRunner().invoke(cli, ["summary", str(path), "--json"]).stdout)["repeated_cost"]
    assert (told["again"], told["costs"]["tokens"]["total"]) == (1, 11)


def test_the_page_tells_the_price_of_repeated_calls_at_its_top(tmp_path: Path) -> None:
    """26 % of a run's money stood in a section below, which a boss does not open."""
    for steps, prices, said in (
        (("X", "x", "yz"), PRICES, "33 % of the money at the given prices (111.5)"),
        (("X", "x", "yz"), None, "33 % of the tokens generated (11)"),
        (("X", "x", *"abcdefghijklmnopqrstuv"), PRICES, ""),
        (("x", "y"), PRICES, ""),
    ):
        told = questions(credit.read(log(tmp_path / "log.jsonl", *steps)), None, prices)["again"]
        assert told == (said and f"{said} went into calls that repeat a failed call or a loop with equal arguments")


def test_where_calls_lack_their_arguments_it_is_a_bound(tmp_path: Path) -> None:
    path = log(tmp_path / "log.jsonl", "X", "x", "Y", "y")
    one = json.loads(path.read_text())
    del next(event for event in one["events"] if event["id"] == "c3.0")["content_ref"]

    def told(record: dict[str, Any]) -> str:
        path.write_text(json.dumps(record))
        found = repeated_cost(credit.read(path))
        assert found is not None
        return found.told()

    assert told(one).startswith("≥ 1 of 4 tool calls repeat") and "they cost ≥ 11 tokens generated, ≥ 100" in told(one)
    for event in one["events"]:
        event["seconds"] = 0
        event.pop("tokens", None)
        event.pop("input_tokens", None)
    assert told(one) == ""
