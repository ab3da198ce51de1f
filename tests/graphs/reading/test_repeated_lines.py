"""A file that was appended to itself: without ids nothing tells the copy of a line, so a note says that it counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.errors import NothingReadError, UnreadWarning
from graphs.logs import read
from graphs.reading.source import repeated_lines

from .all_formats import ALL

WITHOUT_IDS = ("verifiers results", "rollouts of verl", "rollouts of skyrl", "rollouts of nemo-rl", "art")
COLUMNS = {"trace": "run", "group": "task", "reward": "reward", "agent": "agent"}
TABLES = {
    "rows.jsonl": "".join(
        json.dumps({"run": str(i // 2), "task": "q", "reward": i // 2, "agent": str(i)}) + "\n" for i in range(4)
    ),
    "rows.csv": "run,task,reward,agent\na,q,1,x\na,q,1,y\nb,q,0,x\n",
}


def lines_of(name: str) -> bytes:
    """Four unlike lines or more: the sample's, each told from the others by a number."""
    lines = [{"shard": i} | value for i in range(4) for value in ALL[name].values]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@pytest.mark.parametrize("name", WITHOUT_IDS)
def test_runs_without_ids_that_a_file_has_twice_are_named(tmp_path: Path, name: str) -> None:
    path, lines = tmp_path / ALL[name].file, lines_of(name)
    path.write_bytes(lines)
    once = read(path)
    assert "repeated-lines" not in {problem.kind for problem in once.problems}
    path.write_bytes(lines + lines)
    with pytest.warns(UnreadWarning, match="repeated-lines"):
        twice = read(path)
    assert twice.sizes.traces == 2 * once.sizes.traces  # equal runs may be two runs, so none is dropped
    count = lines.count(b"\n")
    notes = [problem for problem in twice.problems if problem.kind == "repeated-lines"]
    assert [(note.line, note.is_failure) for note in notes] == [(count + 1, False)]
    assert f"the first {count} lines again" in notes[0].value


@pytest.mark.parametrize("file", TABLES)
def test_rows_that_a_table_has_twice_are_named(tmp_path: Path, file: str) -> None:
    path = tmp_path / file
    path.write_text(2 * TABLES[file])
    with pytest.warns(UnreadWarning, match="repeated-lines"):
        read(path, columns=COLUMNS)


@pytest.mark.filterwarnings("ignore::graphs.errors.UnreadWarning")
@pytest.mark.parametrize("name", [name for name, sample in ALL.items() if sample.lines and len(sample.values) > 3])
def test_a_log_with_its_lines_twice_is_read_once_or_refused_or_named(tmp_path: Path, name: str) -> None:
    path = ALL[name].write(tmp_path)
    once = read(path)
    path.write_text(2 * ALL[name].text)
    try:
        twice = read(path)
    except NothingReadError as error:
        assert {problem.kind for problem in error.problems} <= {"duplicate-id", "forked-thread"}
        return
    is_named = "repeated-lines" in {problem.kind for problem in twice.problems}
    assert is_named == (twice.sizes.events != once.sizes.events)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"1\n2\n3\n4\n" * 2, [(5, 4)]),
        (b"1\n2\n3\n4\n1\n2\n3\n4", [(5, 4)]),
        (b"1\n2\n3\n4\n\n\n" * 2, [(7, 4)]),
        (b"1\r\n2\r\n3\r\n4\r\n" * 2, [(5, 4)]),
        (b"1\n1\n2\n3\n4\n" * 3 + b"5\n", [(6, 5)]),
        (b"1\n2\n3\n4\n1\n2\n3\n45\n", []),
        (b"1\n2\n3\n4\n01\n2\n3\n4\n", []),
        (b"1\n2\n3\n4\n1\n2\n3\n", []),
        (b"1\n2\n3\n4\n5\n1\n2\n3\n4\n", []),
        (b"1\n2\n3\n" * 2, []),
        (b"1\n" * 100, []),
        (b"", []),
    ],
)
def test_lines_that_follow_on_themselves(data: bytes, found: list[tuple[int, int]]) -> None:
    """Few equal runs may follow on each other by chance, and lines that are cut or longer are others."""
    assert repeated_lines(data) == found
