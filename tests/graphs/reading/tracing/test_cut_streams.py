"""A stream of spans that breaks off: no trace is read without the span at which it does, wherever that is cut."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read

from ..samples import RECORDINGS

CONSOLE = (RECORDINGS / "spans_console.json").read_bytes()
TRACE = b"e2bbb1618e9aaf9b0661db71247d6254"
_END = re.compile(rb"^\}\n?", re.MULTILINE)


def in_base64(digits: bytes) -> bytes:
    return base64.b64encode(bytes.fromhex(digits.decode()))


def within_objects(stream: bytes) -> set[int]:
    """Where a cut leaves a part of an object behind a whole one: between two, it cannot be told."""
    ends = {at for match in _END.finditer(stream) for at in (match.end(), match.end() - 1)}
    first = min(ends)
    return {cut for cut in range(first + 1, len(stream)) if stream[first:cut].strip()} - ends


def read_short(folder: Path, stream: bytes, cuts: Iterable[int]) -> list[int]:
    """The cuts with which a trace is read, or is not refused by its name."""
    path = folder / "spans.json"
    short = []
    for cut in cuts:
        path.write_bytes(stream[:cut])
        try:
            read(path)
            short.append(cut)
        except NothingReadError as error:
            if [problem.kind for problem in error.problems] != ["bad-json", "lost-row"]:
                short.append(cut)
    return short


def test_the_first_object_is_whole_and_the_second_is_cut_before_its_trace(tmp_path: Path) -> None:
    """The trace was read with one event of seven, and without its reward."""
    second = CONSOLE.index(b"\n{") + 1
    assert read_short(tmp_path, CONSOLE, range(second + 1, CONSOLE.index(TRACE, second) + 2)) == []


@pytest.mark.parametrize(
    "write",
    [lambda digits: b"0x" + digits, lambda digits: digits, lambda digits: b"tr-" + digits, in_base64],
    ids=["0x", "digits", "tr-", "base64"],
)
def test_an_id_that_is_cut_in_any_way_of_writing_it(tmp_path: Path, write: Callable[[bytes], bytes]) -> None:
    """Cut within `0x`, `tr-` or base64, it was the beginning of no trace's id, and was not of any either."""
    stream = CONSOLE.replace(b"0x" + TRACE, write(TRACE))
    third = [match.end() for match in re.finditer(rb'"trace_id": ', stream)][2]
    assert read_short(tmp_path, stream, range(third, third + len(write(TRACE)) + 3)) == []


@pytest.mark.slow
def test_every_cut_of_a_pretty_printed_stream_and_of_lines(tmp_path: Path) -> None:
    spans = [json.loads(text + "}") for text in CONSOLE.decode().split("\n}\n")[:-1]]
    lines = "".join(json.dumps(span) + "\n" for span in spans).encode()
    assert read_short(tmp_path, CONSOLE, within_objects(CONSOLE)) == []
    newlines = {match.start() for match in re.finditer(b"\n", lines)}
    cuts = set(range(min(newlines) + 2, len(lines))) - newlines - {at + 1 for at in newlines}
    assert read_short(tmp_path, lines, cuts) == []


def test_a_root_alone_before_the_cut(tmp_path: Path) -> None:
    """A dump by start has the root first; nothing tells that the next span was not of its trace."""
    spans = [json.loads(text + "}") for text in CONSOLE.decode().split("\n}\n")[:2]]
    root = json.dumps(spans[0] | {"parent_id": None}, indent=4)
    stream = (root + "\n" + json.dumps(spans[1], indent=4)).encode()
    assert read_short(tmp_path, stream, range(len(root) + 2, len(root) + 60)) == []


def test_a_cut_span_leaves_traces_that_are_whole_in_one_object_each(tmp_path: Path) -> None:
    whole = [json.loads(CONSOLE.decode().split("\n}\n")[0] + "}") | {"parent_id": None} for _ in range(2)]
    for number, span in enumerate(whole):
        span["context"] = span["context"] | {"trace_id": f"{number + 1:032x}"}
    text = "\n".join(json.dumps(span, indent=4) for span in whole)
    (tmp_path / "spans.json").write_text(text + '\n{\n    "name": "ch')
    traces = read(tmp_path)
    assert len(traces.traces) == 2 and [problem.kind for problem in traces.problems] == ["bad-json"]
