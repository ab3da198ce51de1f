"""Files that appear whole or not at all: errors name the file that was asked for, and leave nothing behind."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphs.atomic import atomic_write


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
