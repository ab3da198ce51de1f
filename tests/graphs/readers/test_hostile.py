"""Inputs made to hurt: sizes, depths, damage and names. Each reads correctly or has a named error, in bounded memory.

The neighbour of a hostile record or file is always read. Memory is the growth of the peak resident size of a process of
its own after its imports; the bounds below are multiples of the size that the limits allow.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from graphs.errors import CreditError, NothingReadError, Problem
from graphs.readers import read
from graphs.traces.limits import Limits, depth

ROOT = Path(__file__).resolve().parents[3]
MIB = 1 << 20
SMALL = Limits(file_bytes=4 * MIB, record_bytes=MIB, string_bytes=MIB // 2, depth=50, events=1000, edges=2000)


def trace(name: str = "good", **more: Any) -> dict[str, Any]:
    return {
        "trace_id": name,
        "task_id": "task",
        "events": [
            {"id": "e0", "t": 0, "type": "message", "agent": "a"},
            {"id": "e1", "t": 1, "type": "message", "agent": "b"},
        ],
        "edges": [{"src": "e0", "dst": "e1", "type": "message"}],
        "rewards": {"team": 1.0},
        "costs": {"tokens": 1, "wall_clock_s": 2},
        **more,
    }


def text(name: str = "bad", **more: Any) -> bytes:
    return json.dumps(trace(name, **more)).encode()


def noted(note: bytes) -> bytes:
    """The trace "bad" with a key that nobody reads, whose value is the given JSON."""
    return text()[:-1] + b', "note": ' + note + b"}"


def replaced(old: bytes, new: bytes) -> bytes:
    whole = text()
    assert old in whole
    return whole.replace(old, new, 1)


def events(n: int) -> list[dict[str, Any]]:
    return [{"id": f"e{i}", "t": i, "type": "message", "agent": "a"} for i in range(n)]


def edges(n: int) -> list[dict[str, str]]:
    return [{"src": "e0", "dst": "e1", "type": "causal"}] * n


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
    "a key twice": ("repeated-key", replaced(b'"task_id"', b'"task_id": "other", "task_id"')),
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


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", LINES)
def test_a_hostile_line_reads_or_is_named_and_harms_no_neighbour(name: str, tmp_path: Path) -> None:
    kind, line = LINES[name]
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\n".join([text("before"), line, text("behind")]))
    traces = read(file, limits=SMALL)
    names = traces.traces["trace"].to_pylist()
    assert (names[0], names[-1]) == ("before", "behind")
    assert [(p.kind, p.file, p.line) for p in traces.problems] == ([] if kind is None else [(kind, str(file), 2)])
    assert len(names) == (3 if kind is None else 2)
    assert np.all(np.isfinite(traces.reward))
    assert not np.any(np.isinf(traces.graph.time))


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", ["ids that differ only in case", "ids that differ only in normalisation"])
def test_ids_are_compared_byte_by_byte(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(LINES[name][1])
    traces = read(file)
    ids = traces.events["event"].to_pylist()
    assert traces.sizes.agents == 2
    assert len({unicodedata.normalize("NFC", i).casefold() for i in ids}) == 1


def outcome(*paths: Path | str, **options: Any) -> tuple[list[str], list[Problem]]:
    """Ids of the traces that are read, and the problems."""
    try:
        traces = read(*paths, **options)
    except NothingReadError as error:
        return [], list(error.problems)
    return traces.traces["trace"].to_pylist(), list(traces.problems)


def bomb(pack: Callable[[bytes], bytes]) -> bytes:
    return pack(text() + b"\n" + b" " * (8 * MIB))


FILES: dict[str, tuple[str, str, bytes]] = {
    # name: (kind, name of the file, content), with the limits SMALL
    "a file too long": ("too-large", "x.json", text() + b" " * (5 * MIB)),
    "a bomb of gzip": ("too-large", "x.jsonl.gz", bomb(gzip.compress)),
    "a bomb of Zstandard": ("too-large", "x.jsonl.zst", bomb(zstandard.compress)),
    "a bomb in many frames": (
        "too-large",
        "x.jsonl.zst",
        zstandard.compress(text()) + b"".join([zstandard.compress(b" " * MIB)] * 8),
    ),
    "gzip cut short": ("unreadable", "x.jsonl.gz", gzip.compress(text() * 50)[:-9]),
    "gzip with a wrong checksum": ("unreadable", "x.jsonl.gz", gzip.compress(text())[:-8] + bytes(8)),
    "gzip with garbage behind": ("unreadable", "x.jsonl.gz", gzip.compress(text()) + b"garbage"),
    "Zstandard cut short": ("unreadable", "x.jsonl.zst", zstandard.compress(os.urandom(5000) + text())[:-9]),
    "Zstandard with garbage behind": ("unreadable", "x.jsonl.zst", zstandard.compress(text()) + b"garbage"),
    "gzip within gzip": ("unknown-format", "x.jsonl.gz", gzip.compress(gzip.compress(text()))),
    "a list with an element too deep": (
        "too-deep",
        "x.json",
        b"[" + noted(b"[" * 60 + b"]" * 60) + b"]",
    ),
    "one trace over many lines with a string too long": (
        "too-large",
        "x.json",
        noted(b'"' + b"x" * (600 << 10) + b'"').replace(b', "', b',\n "'),
    ),
    "a line of rows too deep": (
        "too-deep",
        "x.jsonl",
        b'{"trace": "t", "reward": 1, "x": ' + b"[" * 9999 + b"]" * 9999 + b"}",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_named_and_harms_no_neighbour(name: str, tmp_path: Path) -> None:
    kind, called, content = FILES[name]
    (tmp_path / called).write_bytes(content)
    (tmp_path / "good.json").write_bytes(text("good"))
    names, problems = outcome(tmp_path, limits=SMALL)
    assert names == ["good"]
    assert (kind, str(tmp_path / called)) in [(p.kind, p.file) for p in problems]


def test_frames_of_zstandard_one_behind_the_other_are_one_file(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl.zst"
    file.write_bytes(zstandard.compress(text("a") + b"\n") + zstandard.compress(b"") + zstandard.compress(text("b")))
    assert outcome(file) == (["a", "b"], [])


def test_members_of_gzip_one_behind_the_other_are_one_file(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl.gz"
    file.write_bytes(gzip.compress(text("a") + b"\n") + gzip.compress(text("b")))
    assert outcome(file) == (["a", "b"], [])


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(text())
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "back").symlink_to(tmp_path)
    (tmp_path / "a.json").symlink_to(tmp_path / "b.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    (tmp_path / "self.json").symlink_to(tmp_path / "self.json")
    names, problems = outcome(tmp_path)
    assert names == ["bad"]
    assert [p.kind for p in problems] == ["broken-link"] * 3


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    (tmp_path / "good.json").write_bytes(text())
    names, problems = outcome(tmp_path)
    assert (names, [p.kind for p in problems]) == (["bad"], ["not-a-file"])


def test_too_many_files_are_refused_together(tmp_path: Path) -> None:
    for i in range(4):
        (tmp_path / f"{i}.json").write_bytes(text(f"t{i}"))
    names, problems = outcome(tmp_path, limits=Limits(files=3))
    assert (names, [p.kind for p in problems]) == ([], ["too-many"])
    assert outcome(tmp_path, limits=Limits(files=4)) == (["t0", "t1", "t2", "t3"], [])


def test_names_of_files_may_be_hostile(tmp_path: Path) -> None:
    (tmp_path / "\x1b[2J<script>.json").write_bytes(text("a"))
    (tmp_path / "line\nbreak.json").write_bytes(text("b"))
    (tmp_path / "-.json").write_bytes(text("c"))
    (tmp_path / os.fsdecode(b"\xff\xfe.json")).write_bytes(text("d"))
    names, problems = outcome(tmp_path)
    assert (sorted(names), problems) == (["a", "b", "c", "d"], [])
    assert sum("\\xff\\xfe.json" in name for name in read(tmp_path).traces["file"].to_pylist()) == 1


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "7", None])
def test_a_limit_is_an_integer_above_zero(value: Any) -> None:
    with pytest.raises(CreditError, match="limit 'depth'"):
        Limits(depth=value)


@pytest.mark.parametrize(
    "given", ["depth", "depth=", "depth=-1", "depth=1e3", "width=3", "depth=0", "depth=" + "9" * 99]
)
def test_a_limit_as_text_that_is_none(given: str) -> None:
    with pytest.raises(CreditError, match="limit"):
        Limits.parse([given])


def test_limits_as_text() -> None:
    assert Limits.parse(["file-bytes=5", "depth=7"]) == Limits(file_bytes=5, depth=7)
    with pytest.raises(CreditError, match="each once"):
        Limits.parse(["depth=1", "depth=2"])


def slow_depth(document: bytes) -> int:
    deepest = now = 0
    inside = escaped = False
    for character in document.decode():
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "[{":
            now += 1
            deepest = max(deepest, now)
        elif character in "]}":
            now -= 1
    return deepest


def test_depth_is_that_of_a_walk_over_the_characters() -> None:
    rng = np.random.default_rng(3)

    def draw(room: int) -> Any:
        if room == 0 or rng.random() < 0.2:
            return rng.choice(["[", '"]', "\\", '\\"{', "{}", ""]).item()
        inner = [draw(room - 1) for _ in range(rng.integers(3))]
        return inner if rng.random() < 0.5 else {str(i): v for i, v in enumerate(inner)}

    for _ in range(200):
        document = json.dumps(draw(8)).encode()
        assert depth(document) == slow_depth(document)


MEASURE = """
import json, re, sys
import graphs.traces.cache, graphs.traces.assembling  # which bring JAX, and `read` would do it
from graphs.errors import NothingReadError
from graphs.traces.limits import Limits
from graphs.readers import read
from graphs.readers import native

def peak():  # not getrusage, whose peak survives exec: a small child of a large parent would seem to need nothing
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

limits, compiled = Limits(**json.loads(sys.argv[2])), sys.argv[3] == "compiled"
if compiled:  # the loops are loaded first, and the peak of that forgotten
    read(sys.argv[4], compiled=True)
    open("/proc/self/clear_refs", "w").write("5")
before = peak()
try:
    traces = read(sys.argv[1], limits=limits, compiled=compiled)
    names, problems = traces.traces["trace"].to_pylist(), traces.problems
except NothingReadError as error:
    names, problems = [], error.problems
print(json.dumps([names, [p.kind for p in problems], peak() - before]))
"""


def measured(path: Path, way: str, **limits: int) -> tuple[list[str], list[str], int]:
    """Traces, kinds of problems, and growth of the peak memory in bytes, in a process of its own."""
    if not Path("/proc/self/status").exists():
        pytest.skip("peak memory of a process is read from /proc")
    small = path.with_name("small.json")
    small.write_bytes(text())
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path), json.dumps(limits), way, str(small)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    names, kinds, grown = json.loads(done.stdout)
    assert grown >= 0
    return names, kinds, grown


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.sampled
def test_a_bomb_fills_no_memory(suffix: str, tmp_path: Path) -> None:
    """Blanks behind a trace, up to a gibibyte: at most twice the limit on a file, and 32 MiB."""
    file = tmp_path / f"x.jsonl.{suffix}"
    with file.open("wb") as raw:
        if suffix == "gz":
            stream: Any = gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1)
        else:
            stream = zstandard.ZstdCompressor().stream_writer(raw)
        with stream:
            stream.write(text() + b"\n")
            for _ in range(1024 if suffix == "zst" else 128):
                stream.write(b" " * MIB)
    names, kinds, grown = measured(file, "structs", file_bytes=64 * MIB)
    assert (names, kinds) == ([], ["too-large"])
    assert grown < (2 * 64 + 32) * MIB


@pytest.mark.slow
def test_a_file_that_is_too_long_is_not_loaded(tmp_path: Path) -> None:
    """Eight gibibytes that take no room on the disk: at most twice the limit."""
    file = tmp_path / "x.jsonl"
    file.write_bytes(text() + b"\n")
    os.truncate(file, 8 << 30)
    names, kinds, grown = measured(file, "structs", file_bytes=64 * MIB)
    assert (names, kinds) == ([], ["too-large"])
    assert grown < 2 * 64 * MIB


@pytest.mark.slow
def test_a_string_of_300_megabytes(tmp_path: Path, way: str) -> None:
    """In one line, refused by the limits as they stand: at most twice the file, and 32 MiB."""
    file = tmp_path / "x.jsonl"
    with file.open("wb") as stream:
        stream.write(text("before") + b"\n" + text()[:-1] + b', "note": "')
        for _ in range(300):
            stream.write(b"x" * MIB)
        stream.write(b'"}\n' + text("behind"))
    names, kinds, grown = measured(file, way)
    assert (names, kinds) == (["before", "behind"], ["too-large"])
    assert grown < (2 * 300 + 32) * MIB


@pytest.mark.slow
def test_a_string_beyond_its_limit_costs_three_times_the_file(tmp_path: Path, way: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\n".join([text("before"), noted(b'"' + b"x\\n" * (20 * MIB) + b'"'), text("behind")]))
    names, kinds, grown = measured(file, way, string_bytes=32 * MIB)
    assert (names, kinds) == (["before", "behind"], ["too-large"])
    assert grown < 3 * 60 * MIB + 32 * MIB


@pytest.mark.sampled
def test_a_million_brackets_cost_little(tmp_path: Path, way: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\n".join([text("before"), noted(b"[" * 10**6 + b"]" * 10**6), text("behind")]))
    names, kinds, grown = measured(file, way)
    assert (names, kinds) == (["before", "behind"], ["too-deep"])
    assert grown < 64 * MIB


@pytest.mark.slow
def test_a_million_edges_between_two_events(tmp_path: Path, way: str) -> None:
    """They are read: nothing forbids them. At most twelve times the file's 50 MB."""
    file = tmp_path / "x.jsonl"
    edge = b'{"src": "e0", "dst": "e1", "type": "causal"}'
    file.write_bytes(text(edges=[]).replace(b'"edges": []', b'"edges": [' + b",".join([edge] * 10**6) + b"]"))
    names, kinds, grown = measured(file, way)
    assert (names, kinds) == (["bad"], [])
    assert grown < 12 * file.stat().st_size


@pytest.mark.slow
def test_a_bomb_as_an_eval_archive(tmp_path: Path) -> None:
    file = tmp_path / "x.eval"
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("header.json", "w", force_zip64=True) as member,
    ):
        for _ in range(600):
            member.write(b" " * MIB)
    names, kinds, grown = measured(file, "structs")
    assert names == []
    assert kinds == ["zip-bomb"]
    assert grown < 64 * MIB


FULL_DISK = """
import resource, signal, sys
from credit.__main__ import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.argv = ["credit", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize("command", ["convert", "assign"])  # the second loads JAX
@pytest.mark.sampled
def test_a_full_disk_is_one_line_of_error_and_leaves_nothing(command: str, tmp_path: Path) -> None:
    """The disk is full after 2000 bytes."""
    log, out = tmp_path / "x.jsonl", tmp_path / "out"
    log.write_bytes(b"\n".join(text(f"t{i}") for i in range(200)))
    out.mkdir()
    target = out / ("x.parquet" if command == "assign" else "x.jsonl")
    done = subprocess.run(
        [sys.executable, "-B", "-c", FULL_DISK, command, str(log), "-o", str(target)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert list(out.iterdir()) == []
