"""What commands compile is kept in the user's cache folder: found again, bounded, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from credit import compilation_cache
from credit.compilation_cache import keep_compiled

COMMAND = [sys.executable, "-m", "credit", "assign", "--method", "rloo", "-o", "out.csv"]
LOG = "group,trace,agent,reward\nq,a,x,1\nq,b,x,0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty, and no variable that says otherwise."""
    for name in [name for name in os.environ if name.startswith("JAX_") and "CACHE" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(compilation_cache.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "orchestration-credit" / "compiled"


@pytest.mark.slow
def test_a_command_finds_what_another_one_compiled(tmp_path: Path) -> None:
    """Also where files are cut short, as a process leaves them that is killed while it writes."""
    (tmp_path / "log.csv").write_text(LOG)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def written() -> dict[str, bytes]:
        done = subprocess.run([*COMMAND, "log.csv"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and "persistent" not in done.stderr, done.stderr
        return {str(path): path.read_bytes() for path in tmp_path.rglob("*-cache")}

    first = written()
    assert first and written() == first
    for path, content in first.items():
        Path(path).write_bytes(content[:100])
    assert written().keys() == first.keys()
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    for path in first:
        os.remove(path)
    assert written() == {}


def test_the_oldest_files_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_compiled()
    (inside,) = folder.iterdir()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(inside)
    for number in range(10):
        (inside / f"{number}-cache").write_bytes(bytes(100))
        os.utime(inside / f"{number}-cache", (number, number))
    monkeypatch.setattr(compilation_cache, "MOST_BYTES", 1000)
    for left in (10, 10):
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
        keep_compiled()
        assert len(list(inside.iterdir())) == left
    (inside / "10-cache").write_bytes(bytes(100))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    keep_compiled()
    assert sorted(path.name for path in inside.iterdir()) == ["10-cache", "6-cache", "7-cache", "8-cache", "9-cache"]


def test_a_choice_of_the_user_stands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "False")
    keep_compiled()
    monkeypatch.delenv("JAX_ENABLE_COMPILATION_CACHE")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "elsewhere")
    keep_compiled()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "elsewhere" and not folder.exists()


def test_a_folder_that_cannot_be_made_is_done_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.parent.write_text("a file")
    keep_compiled()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ
