"""Files that appear whole or not at all: errors name the file that was asked for, and leave nothing behind."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from graphs.atomic import append, atomic_folder, atomic_write, locked
from graphs.errors import CreditError


def test_a_missing_folder_and_a_folder_in_the_way_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "x.csv"
    with pytest.raises(FileNotFoundError, match=rf"'{re.escape(str(missing))}'$"), atomic_write(missing):
        pass
    taken = tmp_path / "taken.csv"
    taken.mkdir()
    with pytest.raises(IsADirectoryError, match=rf"'{re.escape(str(taken))}'$"), atomic_write(taken) as file:
        file.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.csv"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no /proc")
def test_a_folder_that_takes_no_files_is_said_to(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"folder '/proc' takes no files: '/proc/o\.csv'$"), atomic_write("/proc/o.csv"):
        pass


@pytest.mark.slow
def test_a_disk_that_is_full_names_the_file(tmp_path: Path) -> None:
    script = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "from graphs.atomic import atomic_write\n"
        "with atomic_write(sys.argv[1]) as file:\n    for _ in range(100): file.write(b'x' * 1000)\n"
    )
    out = tmp_path / "x.csv"
    command = [sys.executable, "-B", "-c", script, str(out)]  # -B: bytecode must not be cut off
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"[Errno {errno.EFBIG}]" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].endswith(f"'{out}'")
    assert list(tmp_path.iterdir()) == []


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with pytest.raises(ValueError, match="half"), atomic_folder(folder) as new:
        (new / "x").write_bytes(b"1")
        raise ValueError("half")
    assert list(tmp_path.iterdir()) == []
    with atomic_folder(folder) as new:
        (new / "x").write_bytes(b"1")
        (new / "inner").mkdir()
        (new / "inner" / "y").write_bytes(b"2")
        assert not folder.exists()
    assert content(tmp_path) == {"a/b/x": b"1", "a/b/inner/y": b"2"}
    plain = tmp_path / "plain"
    plain.mkdir()
    assert folder.stat().st_mode == plain.stat().st_mode


def test_a_folder_that_is_there_keeps_what_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "old").write_bytes(b"0")
    (folder / "kept").write_bytes(b"0")
    before = content(folder)
    with pytest.raises(ValueError, match="half"), atomic_folder(folder) as new:
        (new / "kept").write_bytes(b"1")
        raise ValueError("half")
    assert content(folder) == before
    with atomic_folder(folder) as new:
        (new / "inner").mkdir()
        (new / "inner" / "y").write_bytes(b"2")
    assert content(folder) == {"kept": b"0", "inner/y": b"2"}
    with pytest.raises(NotADirectoryError, match="kept"), atomic_folder(folder / "kept"):
        pass


def test_an_error_within_a_folder_names_the_place_that_was_asked_for(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match=re.escape(repr(str(tmp_path / "f" / "x.csv")))),
        atomic_folder(tmp_path / "f") as new,
        atomic_write(new / "x.csv"),
    ):
        raise OSError(errno.ENOSPC, "full")


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom graphs.atomic import atomic_folder, locked\n"
        "with locked(Path(sys.argv[1], 'x.csv')), atomic_folder(Path(sys.argv[1], 'f')) as new:\n"
        "    (new / 'half').touch()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-B", "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL and len(list(tmp_path.iterdir())) == 2
    with locked(tmp_path / "x.csv"), atomic_folder(tmp_path / "f") as new:
        (new / "whole").touch()
    assert content(tmp_path) == {"f/whole": b""} and [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_a_lock_is_of_one_at_a_time_and_leaves_no_file(tmp_path: Path) -> None:
    path, entered = tmp_path / "x.csv", []
    with (
        locked(path),
        pytest.raises(CreditError, match=rf"another process writes {re.escape(str(path))}"),
        locked(path),
    ):
        entered.append("twice")

    def add() -> None:
        for _ in range(10):
            with locked(path, wait=60):
                number = int(path.read_text()) if path.exists() else 0
                os.sched_yield()
                path.write_text(str(number + 1))

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "30" and not entered
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_lines_are_appended_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"one\ntorn")
    append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    script = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom graphs.atomic import append\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "append(Path(sys.argv[1]), b'three\\n' * 100)\n"
    )
    done = subprocess.run([sys.executable, "-B", "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(f"'{path}'") and path.read_bytes() == b"one\ntwo\n"
