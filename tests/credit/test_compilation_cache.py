"""What commands compile is kept in the user's cache folder: found again, bounded, and never in the way."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import platformdirs
import pytest

import credit
from credit import compilation_cache
from credit.compilation_cache import keep_compiled
from estimators import kept_functions
from estimators.kept_functions import kept_compiled

COMMAND = [sys.executable, "-m", "credit", "assign", "--method", "rloo", "-o", "out.csv"]
LOG = "group,trace,agent,reward\nq,a,x,1\nq,b,x,0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty, and no variable that says otherwise."""
    for name in [name for name in os.environ if name.startswith("JAX_") and "CACHE" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(kept_functions, "_folder", None)
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
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
        return {str(path): path.read_bytes() for path in tmp_path.rglob("compiled/*/*")}

    first = written()
    assert {name.rpartition("-")[2] for name in first} == {"cache", "function"} and written() == first
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


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
@pytest.mark.parametrize("others", ["write to it", "own it", "lead it elsewhere"])
def test_what_others_may_have_written_is_not_run(others: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_compiled()
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    (inside,) = folder.iterdir()
    assert inside.stat().st_mode & 0o777 == 0o700
    (inside / "planted-function").write_bytes(b"")
    if others == "write to it":
        inside.chmod(0o770)  # as a umask of 002 left it
    elif others == "own it":
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
    else:
        inside.symlink_to(inside.rename(folder / "elsewhere"))
    keep_compiled()
    if others == "write to it":
        assert not list(inside.iterdir()) and inside.stat().st_mode & 0o777 == 0o700
    else:
        assert "JAX_COMPILATION_CACHE_DIR" not in os.environ and list(inside.iterdir())


def _power(x: jax.Array, *, power: int, factor: float = 1.0) -> dict[str, jax.Array | None]:
    return {"power": factor * x**power, "nothing": None}


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Functions are kept in an empty folder; the number of times that `_power` is traced."""
    monkeypatch.setattr(kept_functions, "_folder", tmp_path)
    monkeypatch.setattr(kept_functions, "_everywhere", lambda: "this release")
    monkeypatch.setattr(_power, "__module__", "estimators.powers")
    return []


def _decorated(counted: list[int]) -> Any:
    """`_power` as another process has it: jitted anew, nothing loaded."""

    @functools.wraps(_power)
    def traced(*args: Any, **kwargs: Any) -> Any:
        counted.append(1)
        return _power(*args, **kwargs)

    return kept_compiled(jax.jit(traced, static_argnames=("power",)))


def test_a_kept_function_is_not_traced_again_and_gives_the_same_bits(counted: list[int], tmp_path: Path) -> None:
    x = np.linspace(0, 1, 9, dtype=np.float32)
    first = _decorated(counted)(x, power=3, factor=0.3)
    again = _decorated(counted)(x, power=3, factor=0.3)
    assert len(counted) == 1 and again["nothing"] is None
    assert np.array_equal(first["power"], again["power"])
    assert np.array_equal(first["power"], jax.jit(lambda x: 0.3 * x**3)(x))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1])  # as a killed process leaves it
    _decorated(counted)(x, power=3, factor=0.3)
    assert len(counted) == 2


def test_where_jax_compiles_nothing_no_function_is_kept(counted: list[int], tmp_path: Path) -> None:
    """In commands `jax.disable_jit()` was an error of JAX, and the law of compiled functions broken for each method."""
    with jax.disable_jit():
        assert _decorated(counted)(np.ones(2, np.float32), power=2)["power"].tolist() == [1.0, 1.0]
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_a_function_of_another_user_is_not_loaded(counted: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(4, np.float32)
    _decorated(counted)(x, power=2)
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    monkeypatch.setattr("pickle.loads", pytest.fail)
    assert _decorated(counted)(x, power=2)["power"].tolist() == [1, 1, 1, 1] and len(counted) == 2


@pytest.mark.parametrize("change", ["shape", "dtype", "option", "number", "library", "function"])
def test_whatever_decides_what_is_computed_makes_another_function(
    change: str, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.ones(4, np.float32)
    _decorated(counted)(x, power=2, factor=0.5)
    if change == "library":
        monkeypatch.setattr(kept_functions, "_everywhere", lambda: "another release")
    if change == "function":
        monkeypatch.setattr(_power, "__qualname__", "_other")
    other = {"shape": x[:3], "dtype": x.astype(np.float16)}.get(change, x)
    options: dict[str, dict[str, Any]] = {"option": {"power": 3, "factor": 0.5}, "number": {"power": 2, "factor": 2}}
    _decorated(counted)(other, **options.get(change, {"power": 2, "factor": 0.5}))
    assert len(counted) == 2


def test_what_cannot_be_told_apart_is_not_kept(
    counted: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, power = np.ones(4, np.float32), _decorated(counted)
    assert jax.jit(lambda x: power(x, power=2)["power"])(x).tolist() == [1, 1, 1, 1]  # traced by another function
    kept_compiled(jax.jit(lambda x: 2 * x))(x)  # any number of functions have this name
    monkeypatch.setattr(_power, "__module__", "a_module_of_the_user")
    _decorated(counted)(x, power=2)
    assert not list(tmp_path.iterdir())


def test_a_sort_that_this_process_compiled_before_is_computed_all_the_same(
    counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """XLA does not write it a second time."""
    monkeypatch.setattr("jax.experimental.serialize_executable.serialize", _unwritten)
    assert _decorated(counted)(np.ones(4, np.float32), power=2)["power"].tolist() == [1, 1, 1, 1]


def _unwritten(compiled: Any) -> Any:
    raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: `LessThan` is not serializable.")


def test_a_setting_decides_whatever_its_value_says(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = kept_functions._everywhere.__wrapped__
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "CACHE")  # where things are kept decides nothing
    plain = everywhere()
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "another")
    assert everywhere() == plain
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true --xla_dump_to=CACHE")
    assert everywhere() != plain


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize("name", ["turn_baseline", "dr_mas", "rloo"])
def test_the_older_emitters_of_xla_give_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    trace = np.repeat(np.arange(24), 20)
    graph, reward, _ = credit.from_columns(
        group=trace // 6, trace=trace, agent=rng.integers(3, size=len(trace)), reward=rng.normal(size=24)[trace]
    )
    lowered = jax.jit(credit.METHODS[name].fn).lower(graph, reward)
    older = kept_functions._compiled(lowered)
    monkeypatch.setattr(kept_functions, "MOST_SORTS", -1)
    newer = kept_functions._compiled(lowered)
    pairs = zip(jax.tree.leaves(older(graph, reward)), jax.tree.leaves(newer(graph, reward)), strict=True)
    assert all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)
