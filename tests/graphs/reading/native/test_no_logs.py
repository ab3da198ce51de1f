"""Files that are no logs, or not in UTF-8, are named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from graphs.errors import TraceError
from graphs.logs import read

from .native_faults import only_problem, trace


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty-file"),
        (b" \n\n ", "empty-file"),
        (b"[]", "unknown-format"),
        (b"{}", "unknown-format"),
        (b"null", "unknown-format"),
        (b"7", "unknown-format"),
        (bytes(range(256)) * 10, "unknown-format"),
        (json.dumps(trace()).encode("utf-16"), "not-utf-8"),
        (json.dumps(trace()).encode("utf-32-le"), "not-utf-8"),
        (b"[" * 100_000, "unknown-format"),
        (b'{"a":' * 20_000, "unknown-format"),
        (gzip.compress(json.dumps(trace()).encode())[:-40], "unreadable"),
        (gzip.compress(json.dumps(trace()).encode())[:-1], "unreadable"),
        (b"\x1f\x8b" + b"no gzip at all", "unreadable"),
        (gzip.compress(b"x" * 1000)[:12] + b"\xff" * 20, "unreadable"),
        (zstandard.compress(json.dumps(trace()).encode())[:-10], "unreadable"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 20, "unreadable"),
        (gzip.compress(b""), "empty-file"),
    ],
    # gzip stamps the time into its header: an id made of it would differ between the workers of a run.
    ids=lambda value: value if isinstance(value, str) else repr(value[:4]),
)
def test_files_that_are_no_logs(content: bytes, kind: str, tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_bytes(content)
    problem = only_problem(bad)
    assert (problem.file, problem.kind) == (str(bad), kind)
    good.write_text(json.dumps(trace()))
    traces = read(tmp_path)
    assert [p.kind for p in traces.problems] == [kind]
    assert traces.sizes.traces == 1


@pytest.mark.parametrize(
    "content", [b"", b" ", b"[]", b"7", b"null", b'"x"', b"[[]]", b"[null]", b"\x80{}", bytes(256)]
)
def test_the_native_reader_refuses_what_it_is_made_to_read(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(content)
    assert only_problem(file, format="native").kind in {"empty-file", "bad-type", "bad-json", "not-utf-8"}


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    good = json.dumps(trace("good")).encode()
    bad = json.dumps(trace("bad")).encode().replace(b"lead", b"l\xe9ad")
    file.write_bytes(good + b"\n" + bad)
    traces = read(file)
    assert [(p.kind, p.line) for p in traces.problems] == [("not-utf-8", 2)]
    assert traces.traces["trace"].to_pylist() == ["good"]


@pytest.mark.parametrize("format", [None, "native", "table"])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("mark", ["", "\N{ZERO WIDTH NO-BREAK SPACE}"])
def test_wide_text_is_named_with_its_encoding(format: str | None, codec: str, mark: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes((mark + json.dumps(trace())).encode(codec))
    name = codec.upper().replace("-LE", "LE").replace("-BE", "BE")
    problem = only_problem(file, format=format)
    assert (problem.kind, problem.field) == ("not-utf-8", "encoding") and problem.value.startswith(name)
    assert f"`iconv -f {name} -t UTF-8`" in problem.expected
    rewards = tmp_path / "rewards.csv"
    rewards.write_bytes((mark + "trace,reward\nx,1\n").encode(codec))
    file.write_text(json.dumps(trace()))
    with pytest.raises(TraceError, match=f"encoding is {name}"):
        read(file, rewards=rewards)


def test_a_byte_order_mark_of_utf_8_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(trace()).encode())
    assert read(file).problems == ()


def test_many_keys_and_brackets_do_not_slow_the_telling_of_formats_down(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b'{"a":[' + b"{}," * 100_000)
    assert only_problem(file).kind == "unknown-format"
