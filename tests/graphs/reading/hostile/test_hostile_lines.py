"""Hostile lines of native logs: each reads correctly or has a named error, and its neighbours are always read."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from graphs.logs import read

from .hostile_text import MIB, SMALL, edges, events, noted, replaced, text

LINES: dict[str, tuple[str | None, bytes]] = {
    # name: (kind, or None where the line reads; the line), with the limits SMALL
    "lists nested a million deep": ("too-deep", noted(b"[" * 400_000 + b"]" * 400_000)),
    "objects nested deep": ("too-deep", noted(b'{"a":' * 60_000 + b"1" + b"}" * 60_000)),
    "lists nested deep and never closed": ("too-deep", noted(b"[" * 400_000)),
    "lists and objects in turn": ("too-deep", noted(b'[{"a":' * 60 + b"1" + b"}]" * 60)),
    "one level too deep": ("too-deep", noted(b"[" * 50 + b"]" * 50)),
    "as deep as may be": (None, noted(b"[" * 49 + b"]" * 49)),
    "many brackets side by side": (None, noted(b"[" + b",".join([b"[]"] * 5000) + b"]")),
    "brackets in a string": (None, noted(b'"' + b"[" * 5000 + b'"')),
    "brackets behind an escaped quotation mark": (None, noted(b'"\\"' + b"[{" * 5000 + b'"')),
    "deep nesting behind escaped backslashes": ("too-deep", noted(b'["\\\\\\\\",' + b"[" * 60 + b"]" * 61)),
    "a record too long": ("too-large", noted(b"[" + b"1," * MIB + b"1]")),
    "a string too long": ("too-large", noted(b'"' + b"x" * (600 << 10) + b'"')),
    "a string of escapes too long": ("too-large", noted(b'"' + b"\\u0041" * (100 << 10) + b'"')),
    "a key too long": ("too-large", noted(b'{"' + b"k" * (600 << 10) + b'": 1}')),
    "an id too long": ("too-large", replaced(b'"e0"', b'"' + b"e" * (600 << 10) + b'"')),
    "a string that never ends": ("too-large", noted(b'"' + b"x" * (600 << 10))[:-1]),
    "strings that are long together": (None, noted(b"[" + b",".join([b'"' + b"x" * 1000 + b'"'] * 700) + b"]")),
    "as long a string as may be": (None, noted(b'"' + b"x" * (512 << 10) + b'"')),
    "too many events": ("too-many", text(events=events(1001))),
    "as many events as may be": (None, text(events=events(1000))),
    "too many edges between two events": ("too-many", text(edges=edges(2001))),
    "as many edges as may be": (None, text(edges=edges(2000))),
    "a lone continuation byte": ("not-utf-8", replaced(b'"task"', b'"\x80task"')),
    "Latin-1 in UTF-8": ("not-utf-8", replaced(b'"task"', b'"t\xe4sk"')),
    "an overlong slash": ("not-utf-8", replaced(b'"task"', b'"\xc0\xaf"')),
    "a surrogate in UTF-8": ("not-utf-8", replaced(b'"task"', b'"\xed\xa0\x80"')),
    "beyond Unicode": ("not-utf-8", replaced(b'"task"', b'"\xf4\x90\x80\x80"')),
    "a character cut in two": ("not-utf-8", replaced(b'"task"', b'"\xe2\x82"')),
    "half of an escaped pair": ("bad-json", replaced(b'"task"', b'"\\ud83d"')),
    "an escaped pair": (None, replaced(b'"task"', b'"\\ud83d\\ude00"')),
    "a zero character, escaped": (None, replaced(b'"task"', b'"a\\u0000b"')),
    "a raw control character": ("bad-json", replaced(b'"task"', b'"a\x01b"')),
    "a byte order mark in the middle": ("bad-json", b"\xef\xbb\xbf" + text()),
    "UTF-16 between lines of UTF-8": ("bad-json", json.dumps({"a": 1}).encode("utf-16-le")),
    "a reward beyond float64": ("non-finite", replaced(b"1.0", b"1e400")),
    "a reward beyond float32": ("out-of-range", replaced(b"1.0", b"1e300")),
    "a reward below float32": (None, replaced(b"1.0", b"1e-300")),
    "an integer of a thousand digits": ("non-finite", replaced(b"1.0", b"9" * 1000)),
    "minus zero": (None, replaced(b"1.0", b"-0.0")),
    "a time beyond float32": (None, replaced(b'"t": 1,', b'"t": 1e200,')),
    "a time beyond float64": ("non-finite", replaced(b'"t": 1,', b'"t": 1e999,')),
    "NaN spelt out": ("non-finite", replaced(b"1.0", b"NaN")),
    "hexadecimal": ("bad-json", replaced(b"1.0", b"0x10")),
    "a leading zero": ("bad-json", replaced(b"1.0", b"01.0")),
    "a key twice": (None, replaced(b'"task_id"', b'"task_id": "other", "task_id"')),
    "script tags": (None, replaced(b'"task"', b'"<script>alert(1)</script>"')),
    "terminal escapes": (None, replaced(b'"task"', b'"\\u001b[2J\\u001b]0;title\\u0007"')),
    "text from right to left": (None, replaced(b'"task"', '"\u202etask\u2066"'.encode())),
    "a path as an id": (None, replaced(b'"bad"', b'"../../../etc/passwd"')),
    "a formula as an id": (None, replaced(b'"bad"', b'"=1+1"')),
    "a prototype as a key": (None, noted(b'{"__proto__": {"a": 1}, "__class__": "x"}')),
    "ids that differ only in case": (
        None,
        text(events=[{"id": i, "type": "message", "agent": i} for i in ("a", "A")], edges=[]),
    ),
    "ids that differ only in normalisation": (
        None,
        text(events=[{"id": i, "type": "message", "agent": i} for i in ("\u00e9", "e\u0301")], edges=[]),
    ),
    "ids that differ only in blanks": (
        None,
        text(events=[{"id": i, "type": "stop", "agent": "a"} for i in ("a", "a ")], edges=[]),
    ),
    "ids that look equal": (
        None,
        text(events=[{"id": i, "type": "stop", "agent": "a"} for i in ("a", "\u0430")], edges=[]),
    ),
    "an id twice, once escaped": ("duplicate-id", replaced(b'"id": "e1"', b'"id": "\\u00650"')),
}


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", LINES)
def test_a_hostile_line_reads_or_is_named_and_harms_no_neighbour(name: str, tmp_path: Path) -> None:
    kind, line = LINES[name]
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\n".join([text("before"), line, text("behind")]))
    traces = read(file, limits=SMALL)
    names = traces.traces["trace"].to_pylist()
    assert (names[0], names[-1]) == ("before", "behind")
    beyond = name == "a time beyond float32"  # is read, and a note says that it is no time in seconds
    assert [p.line for p in traces.problems if p.kind == "time-unit"] == [2] * beyond
    of_lines = [(p.kind, p.file, p.line) for p in traces.problems if p.line and p.is_failure]
    assert of_lines == ([] if kind is None else [(kind, str(file), 2)])
    assert {p.kind for p in traces.problems if not p.line} <= {"look-alike-ids"}  # a note on the batch
    assert len(names) == (3 if kind is None else 2)
    assert np.all(np.isfinite(traces.reward))
    assert not np.any(np.isinf(traces.graph.time))


@pytest.mark.parametrize("name", ["ids that differ only in case", "ids that differ only in normalisation"])
def test_ids_are_compared_byte_by_byte(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(LINES[name][1])
    traces = read(file)
    ids = traces.events["event"].to_pylist()
    assert traces.sizes.agents == 2
    assert len({unicodedata.normalize("NFC", i).casefold() for i in ids}) == 1
