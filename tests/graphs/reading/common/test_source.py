"""Finding files and getting their bytes: folders, links, compression, standard input, and what cannot be read."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.reading.documents import documents, line_document
from graphs.reading.find import find_sources
from graphs.reading.source import Source

TRACE = {"trace_id": "a", "task_id": "k", "events": [{"id": "1", "type": "message", "agent": "x"}]}


def log(name: str = "a") -> bytes:
    return json.dumps(TRACE | {"trace_id": name}).encode()


def kinds(*paths: str | Path) -> list[tuple[str, str]]:
    return [(p.kind, p.file) for p in find_sources(paths)[2]]


def test_a_folder_is_searched_to_its_depths_in_a_fixed_order(tmp_path: Path) -> None:
    names = ["b/z.json", "b/a.jsonl", "a.json.gz", "c/d/e/f.csv", "x.parquet", "y.ndjson.zst"]
    others = ["notes.md", "b/.hidden.json", "c/readme", "a.gz"]
    for name in names + others:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    sources, ignored, problems = find_sources([tmp_path])
    assert [s.name for s in sources] == sorted(str(tmp_path / n) for n in names)
    assert sorted(ignored) == sorted(str(tmp_path / n) for n in others)
    assert problems == []


def test_a_file_that_is_named_is_read_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "notes.md"
    file.write_bytes(log())
    assert read(file).sizes.traces == 1


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    paths = [tmp_path / "no", tmp_path / "empty", tmp_path / "pipe", "zero\0byte", tmp_path / ("n" * 300)]
    assert kinds(*paths) == [
        ("no-such-file", str(tmp_path / "no")),
        ("empty-folder", str(tmp_path / "empty")),
        ("not-a-file", str(tmp_path / "pipe")),
        ("no-such-file", "zero\0byte"),
        ("no-such-file", str(tmp_path / ("n" * 300))),
    ]
    (tmp_path / "good.json").write_bytes(log())
    traces = read(tmp_path / "good.json", *paths)
    assert traces.sizes.traces == 1
    assert len(traces.problems) == 5


def test_a_folder_without_logs_says_what_logs_are_called(tmp_path: Path) -> None:
    (tmp_path / "readme.md").write_text("x")
    with pytest.raises(NothingReadError, match=r"\.jsonl"):
        read(tmp_path)
    with pytest.raises(NothingReadError, match="empty-folder"):
        (tmp_path / "sub").mkdir()
        read(tmp_path / "sub")


def test_links_that_loop_or_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(log())
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nothing.json")
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "link.json").symlink_to(tmp_path / "good.json")
    sources, ignored, problems = find_sources([tmp_path])
    assert [Path(s.name).name for s in sources] == ["good.json"]  # the linked folder is not entered
    assert ignored == []
    assert [(p.kind, Path(p.file).name) for p in problems] == [
        ("broken-link", "gone.json"),
        ("broken-link", "loop.json"),
        ("same-file", "link.json"),
    ]
    assert kinds(tmp_path / "loop.json") == [("broken-link", str(tmp_path / "loop.json"))]


def test_a_file_and_a_folder_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, good = tmp_path / "secret.json", tmp_path / "z.json"
    secret.write_bytes(log())
    good.write_bytes(log())
    opened = Path.open

    def refuse(self: Path, *args: object, **options: object) -> object:  # a superuser could read it nevertheless
        if self == secret:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    traces = read(tmp_path)
    assert [(p.kind, p.file, p.value) for p in traces.problems] == [("unreadable", str(secret), "'Permission denied'")]
    assert traces.sizes.traces == 1

    (tmp_path / "closed").mkdir()
    scan = os.scandir

    def closed(folder: str) -> object:
        if Path(folder) == tmp_path / "closed":
            raise PermissionError(13, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", closed)
    sources, _, problems = find_sources([tmp_path])
    assert [s.name for s in sources] == [str(secret), str(good)]
    assert [(p.kind, p.file) for p in problems] == [("unreadable", str(tmp_path / "closed"))]


def test_a_file_that_vanishes_after_its_head_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(log("a"))
    (tmp_path / "b.json").write_bytes(log("b"))

    def vanish(sources: object) -> object:
        for source in sources:  # type: ignore[attr-defined]
            yield source
            if source.name.endswith("a.json"):
                (tmp_path / "a.json").unlink()

    traces = read(tmp_path, progress=vanish)  # type: ignore[arg-type]
    assert [(p.kind, p.file) for p in traces.problems] == [("unreadable", str(tmp_path / "a.json"))]
    assert traces.traces["trace"].to_pylist() == ["b"]


CONTENT = b"\n".join(log(f"t{i}") for i in range(500))


@pytest.mark.parametrize(
    "packed",
    [
        CONTENT,
        gzip.compress(CONTENT),
        gzip.compress(CONTENT[:9000]) + gzip.compress(CONTENT[9000:]),  # several members
        zstandard.compress(CONTENT),
        zstandard.compress(CONTENT[:9000]) + zstandard.compress(CONTENT[9000:]),  # several frames
        b"\x5d\x2a\x4d\x18\x04\0\0\0abcd" + zstandard.compress(CONTENT),  # behind a frame to skip, as `pzstd` writes
        b"\xef\xbb\xbf" + CONTENT,
        gzip.compress(b"\xef\xbb\xbf" + CONTENT),
    ],
    ids=["plain", "gz", "gz members", "zst", "zst frames", "zst of threads", "mark", "mark in gz"],
)
def test_content_is_the_same_however_it_is_packed(
    packed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(packed)
    assert Source("x", file).data == CONTENT
    assert Source("x", file).head(10) in {CONTENT[:10], CONTENT[:7]}  # a mark may count
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(packed)))
    source = Source("<stdin>", None)
    assert source.head(10) == CONTENT[:10]  # standard input is read once
    assert source.data == CONTENT
    assert read(file).sizes.traces == 500


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gz", "zst"])
@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_compressed_data_that_ends_too_early_is_never_taken_for_whole(
    pack: object, keep: float, tmp_path: Path
) -> None:
    assert callable(pack)
    noise = os.urandom(200_000).hex().encode()  # so that the head alone is whole
    packed = pack(CONTENT + b"\n" + noise)
    file = tmp_path / "x.jsonl"
    file.write_bytes(packed[: int(len(packed) * keep)])
    with pytest.raises(OSError, match="compressed"):
        _ = Source("x", file).data
    with pytest.raises(NothingReadError) as caught:
        read(file)
    assert [(p.kind, p.file) for p in caught.value.problems] == [("unreadable", str(file))]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(log("from a pipe"))))
    traces = read("-")
    assert traces.traces["trace"].to_pylist() == ["from a pipe"]
    assert traces.traces["file"].to_pylist() == ["<stdin>"]


def test_lines_tell_their_numbers_and_offsets(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"\n one \r\n\ntwo\n\n")
    assert list(Source("x", file).lines()) == [(2, 1, b"one"), (4, 9, b"two")]


def test_released_content_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"one")
    source = Source("x", file)
    assert source.data == b"one"
    file.write_bytes(b"two")
    assert source.data == b"one"
    source.release()
    assert source.data == b"two"


def test_a_pipe_that_is_named_outright_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(NothingReadError, match="not-a-file"):
        read(tmp_path / "x.jsonl")


def test_damaged_compressed_data_is_named_in_a_whole_sentence(tmp_path: Path) -> None:
    """The end was cut off; a sum that is wrong was named without saying of what."""
    whole = gzip.compress(b"{}" * 100)
    wrong = whole[:-6] + b"\0\0" + whole[-4:]
    for content, end in (
        (whole[:-9], "marker was reached'"),
        (wrong, "'"),
        (whole[:2] + b"\x09" + whole[3:], "method'"),
    ):
        (tmp_path / "x.json.gz").write_bytes(content)
        with pytest.raises(NothingReadError) as caught:
            read(tmp_path)
        (problem,) = caught.value.problems
        assert problem.value.startswith("'damaged compressed data: ") and problem.value.endswith(end)


def test_lines_that_are_looked_at_together_are_the_values_that_each_line_is_alone(tmp_path: Path) -> None:
    rng = random.Random(0)
    pieces = [b'{"a": 1}', b'{"a":', b"1}", b"\n", b"\n", b" ", b"\r", b"\x0c", b"[2]", b'"\xff"', b'"\xc3\xa9"', b"{}"]
    refused = 0
    for number in range(400):
        few = rng.random() < 0.5  # most of these are whole
        text = b'{"a": 0}\n' + b"".join(rng.choices(pieces[:1] * few + pieces[3:6] if few else pieces, k=12))
        (tmp_path / f"{number}.jsonl").write_bytes(text)
        together, alone = (Source("x", tmp_path / f"{number}.jsonl") for _ in range(2))
        found = list(documents(together))
        expected = [line_document(alone, *line) for line in alone.lines()]
        assert found == [document for document in expected if document is not None], text
        assert {k: v.problem for k, v in together.lost.items()} == {k: v.problem for k, v in alone.lost.items()}, text
        refused += bool(together.lost)
    assert 50 < refused < 350
