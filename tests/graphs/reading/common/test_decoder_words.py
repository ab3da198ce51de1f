"""Messages of the decoder in plain words: no names of Python's types, and no list of names that must be looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.event_types import STATED_TOPOLOGIES, EdgeType, EventType
from graphs.formats.native import wire
from graphs.logs import read
from graphs.reading.json_problems import JSON_ERRORS, brief_kind, json_problem


class Everything(msgspec.Struct):
    """A field of each type that readers decode."""

    number: float | None = None
    count: Annotated[int, msgspec.Meta(ge=0)] = 0
    name: str | int | None = None
    yes: bool = True
    listed: list[str] | None = None
    held: dict[str, float] | None = None
    pair: tuple[int, int] | None = None


def fault(text: str, kind: Any = Everything) -> Exception:
    with pytest.raises(JSON_ERRORS) as caught:
        msgspec.json.decode(text, type=kind)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"number": "1.0"}', "a number or null, got a text"),
        ('{"count": 1.5}', "a whole number, got a decimal number"),
        ('{"count": -1}', "a whole number >= 0"),
        ('{"name": [1]}', "a whole number, a text or null, got a list"),
        ('{"yes": 1}', "true or false, got a whole number"),
        ('{"listed": {}}', "a list or null, got an object"),
        ('{"held": {"x": true}}', "a number, got true or false"),
        ('{"pair": [1]}', "a list of length 2"),
        ("[]", "an object, got a list"),
        ("{number: 1}", "JSON with a key in double quotes at byte 1"),
        ('{"count": 1,}', "JSON with no comma before '}' at byte 12"),
        ('{"count": 1 "yes": true}', "JSON with ',' or '}' at byte 12"),
        ('{"count" 1}', "JSON with ':' at byte 9"),
        ('{"count": 01}', "JSON with a number as JSON writes it at byte 11"),
        ('{"count": 1} x', "JSON with nothing behind the value at byte 14"),
        ('{"count": x}', "JSON with another character at byte 10"),
        ('{"name": "\\q"}', "JSON with an escape that JSON has at byte 12"),
    ],
)
def test_a_fault_in_plain_words(text: str, expected: str) -> None:
    assert json_problem(fault(text), text.encode(), "x.json", 1).expected == expected


@pytest.mark.parametrize(
    ("change", "kind", "names", "near"),
    [
        ('"mesage"', "unknown-event-type", [kind.name.lower() for kind in EventType], ". Did you mean message?"),
        ('"zzz"', "unknown-event-type", [kind.name.lower() for kind in EventType], ""),
        ('"stop"}], "edges": [{"src": "e", "dst": "e", "type": "temporl"', "unknown-edge-type",
         [kind.name.lower() for kind in EdgeType], ". Did you mean temporal?"),
        ('"stop"}], "topology": "debates", "edges": [{"src": "e", "dst": "e", "type": "spawn"', "unknown-topology",
         STATED_TOPOLOGIES, ". Did you mean debate?"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_answered_with_the_known_ones(change: str, kind: str, names: list[str], near: str) -> None:
    text = f'{{"trace_id": "t", "task_id": "q", "events": [{{"id": "e", "agent": "a", "type": {change}}}]}}'
    error = fault(text, wire.Trace)
    problem = json_problem(error, text.encode(), "x.jsonl", 1)
    assert (problem.kind, problem.expected) == (kind, f"one of {', '.join(names)}{near}")
    assert brief_kind(error) == kind  # faults beyond those that are listed had the kind of a topology


def test_the_known_topologies_are_those_that_decode() -> None:
    assert set(STATED_TOPOLOGIES) == set(get_args(wire.Topology))
    assert {kind.name.lower() for kind in EventType} == set(get_args(wire.EventName))
    assert {kind.name.lower() for kind in EdgeType} == set(get_args(wire.EdgeName))


def test_a_row_of_a_table_with_an_unknown_type(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("trace,agent,type,reward\na,x,message,1\nb,x,mesage,1\n")
    (problem,) = read(tmp_path / "t.csv").problems
    assert problem.field == "type" and problem.expected.endswith("what others mean, here mesage=message")
    assert ", stop; --types WORD=TYPE" in problem.expected


def test_a_message_of_trl_of_a_wrong_type(tmp_path: Path) -> None:
    kinds = [pa.list_(pa.struct({"role": kind})) for kind in (pa.string(), pa.int64())]
    for number, (kind, role) in enumerate(zip(kinds, ("assistant", 5), strict=True)):
        columns = {"step": [number], "prompt": ["1+1?"], "completion": pa.array([[{"role": role}]], kind)}
        pq.write_table(pa.table(columns | {"right": [1.0], "advantage": [0.0]}), tmp_path / f"c{number}.parquet")
    (problem,) = read(tmp_path).problems
    assert (problem.field, problem.value, problem.kind) == ("completion[0].role", "5", "bad-type")
    assert problem.expected == "a text, got a whole number" and problem.trace
