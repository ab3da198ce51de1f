"""The decoder with few fields finds what the full one finds, whatever the events of the next trace have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from graphs.formats.native.slim import SlimDecoder, columns
from graphs.formats.native.wire import DECODER
from graphs.logs import read


def line(name: str, *events: dict[str, Any]) -> bytes:
    whole = [{"id": f"e{i}", "type": "message", "agent": "a", **event} for i, event in enumerate(events)]
    return json.dumps({"trace_id": name, "task_id": "q", "events": whole, "rewards": {"team": 1}}).encode()


LINES = [
    line("a", {}, {"t": 1}),
    line("b", {"t": 1, "value": 0.5}, {}),
    line("c", {"from": "x", "to": "y"}, {"unknown": [1, {"a": 2}]}),
    line("d", {}),
    line("e", {"tokens": 3, "context": "c", "turn": 1}),
    line("f", {"other": 1}),
    line("g", {"status": "ok", "trusted": True, "value": 1}),
    line("h"),
    line("i", {"action": False, "from": "z"}),
]


def full(data: bytes) -> dict[str, list[Any]]:
    return {name: column for name, column in columns(DECODER.decode(data).events).items() if set(column) != {None}}


def test_no_field_is_lost_in_any_order() -> None:
    for start in range(len(LINES)):
        decoder = SlimDecoder()
        for data in LINES[start:] + LINES[:start]:
            found = columns(decoder.decode(data).events)
            assert {name: column for name, column in found.items() if set(column) != {None}} == full(data)


def test_few_fields_are_decoded_after_the_first_trace() -> None:
    decoder = SlimDecoder()
    decoder.decode(LINES[0])
    assert columns(decoder.decode(LINES[3]).events).keys() == {"id", "type", "agent", "t"}


def test_a_fault_is_reported_as_the_full_decoder_reports_it() -> None:
    decoder = SlimDecoder()
    decoder.decode(LINES[0])
    bad = LINES[0].replace(b'"t": 1', b'"t": "x"')
    with pytest.raises(msgspec.ValidationError) as slim:
        decoder.decode(bad)
    with pytest.raises(msgspec.ValidationError) as whole:
        DECODER.decode(bad)
    assert str(slim.value) == str(whole.value)


def test_a_batch_does_not_depend_on_which_decoder_read_it(tmp_path: Path) -> None:
    lines = [data for data in LINES if data != LINES[7]]
    (tmp_path / "x.jsonl").write_bytes(b"\n".join(lines))
    together = read(tmp_path / "x.jsonl")
    assert together.problems == ()
    values: list[float] = []
    for i, data in enumerate(lines):
        (tmp_path / "one.json").write_bytes(data)
        alone = read(tmp_path / "one.json")
        if "value" in alone.evidence:
            values += alone.evidence["value"].array[: alone.sizes.events].tolist()
        else:
            values += [np.nan] * alone.sizes.events
        assert together.traces["trace"][i].as_py() == alone.traces["trace"][0].as_py()
    np.testing.assert_array_equal(together.evidence["value"].array[: together.sizes.events], values)
