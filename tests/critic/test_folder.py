"""A critic's folder: what is written reads back; what is damaged is refused by the name of its file and field."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.critics.fitted_critic import Critic
from estimators.critic.checkpoints import Checkpoints
from estimators.critic.train import Settings
from graphs.errors import CreditError
from graphs.traces.batch import Traces

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def traces() -> Traces:
    """64 traces of eight tasks; those with a second message succeed."""
    rng = np.random.default_rng(0)
    kinds = [["message"] * int(rng.integers(1, 3)) + ["stop"] for _ in range(64)]
    lines = []
    for i, types in enumerate(kinds):
        events = [{"id": f"e{t}", "t": t, "type": kind, "agent": "a", "role": "solver"} for t, kind in enumerate(types)]
        edges = [{"src": f"e{t}", "dst": f"e{t + 1}", "type": "temporal"} for t in range(len(types) - 1)]
        rest = {"rewards": {"team": float(len(types) > 2)}, "costs": {"tokens": 1, "wall_clock_s": 1.0}}
        lines.append(
            json.dumps({"trace_id": f"t{i}", "task_id": f"q{i // 8}", "events": events, "edges": edges, **rest})
        )
    return credit.read(_written("\n".join(lines) + "\n"))


_FOLDER: list[Path] = []


def _written(text: str) -> Path:
    path = _FOLDER[0] / "runs.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module", autouse=True)
def _folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    _FOLDER[:] = [tmp_path_factory.mktemp("folder")]


@pytest.fixture(scope="module")
def additive(traces: Traces) -> tuple[Critic, Path]:
    folder = _FOLDER[0] / "additive"
    return credit.fit_critic(traces, settings=Settings(model="additive"), directory=folder), folder


@pytest.fixture(scope="module")
def network(traces: Traces) -> tuple[Critic, Path]:
    folder = _FOLDER[0] / "network"
    settings = Settings(model="network", members=2, hidden=2, sums=1, epochs=1, patience=1, batch_events=64)
    return credit.fit_critic(traces, settings=settings, directory=folder), folder


@pytest.mark.slow
def test_an_additive_critic_reads_back(additive: tuple[Critic, Path], traces: Traces) -> None:
    critic, folder = additive
    again = credit.load_critic(folder)
    for one, two in zip(critic.values(traces), again.values(traces), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(two).tobytes()
    assert again.model == "additive" and again.judged == critic.judged and again.tests == critic.tests
    assert again.held_out == critic.held_out and again.validation == critic.validation
    found = again.credit(traces)
    parts = np.bincount(np.asarray(traces.graph.trace_ids), np.asarray(found.credit.credit + found.environment))
    whole = np.asarray(found.expected) + parts[: len(found.expected)] + np.asarray(found.outcome)
    np.testing.assert_allclose(whole[:64], np.asarray(traces.reward)[:64], atol=1e-5)


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """A damage to `critic.json` as JSON."""

    def apply(folder: Path) -> None:
        path = folder / "critic.json"
        kept = json.loads(path.read_text())
        change(kept)
        path.write_text(json.dumps(kept))

    return apply


def arrays(change: Callable[[dict[str, np.ndarray]], object]) -> Callable[[Path], object]:
    """A damage to the arrays of an additive critic."""

    def apply(folder: Path) -> None:
        with np.load(folder / "additive.npz") as file:
            kept = dict(file)
        change(kept)
        np.savez(folder / "additive.npz", **kept)

    return apply


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


ADDITIVE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no json": (lambda f: (f / "critic.json").unlink(), "holds no critic"),
    "half a json": (lambda f: _truncate(f / "critic.json"), "critic.json is damaged"),
    "an empty json": (lambda f: (f / "critic.json").write_bytes(b""), "critic.json is damaged"),
    "a list": (lambda f: (f / "critic.json").write_text("[]"), "critic.json is damaged: Expected `object`"),
    "bytes that are no text": (
        lambda f: (f / "critic.json").write_bytes(b'{"format": "\xff'),
        "critic.json is damaged",
    ),
    "another version": (edit(lambda k: k.update(format=1)), "has format 1; expected 5"),
    "no roles": (edit(lambda k: k.pop("roles")), "missing required field `roles`"),
    "a text for a number": (edit(lambda k: k.update(dense="x")), r"Expected `int`, got `str` - at `\$.dense`"),
    "no model": (edit(lambda k: k.update(additive=None)), "expected either network or additive"),
    "another head": (edit(lambda k: k["additive"].update(head="softmax")), "Invalid enum value"),
    "fewer bounds": (edit(lambda k: k["tests"][0]["above"].pop()), r"tests\[0\].above has 3 bounds; expected 4"),
    "no levels": (edit(lambda k: k["additive"].update(levels=0)), "additive.levels is out of range"),
    "more levels": (edit(lambda k: k["additive"].update(levels=9)), "has no array level"),
    "no arrays": (lambda f: (f / "additive.npz").unlink(), "additive.npz is missing"),
    "half the arrays": (lambda f: _truncate(f / "additive.npz"), "additive.npz cannot be read"),
    "no zip": (lambda f: (f / "additive.npz").write_text("weights"), "additive.npz cannot be read"),
    "a NaN": (arrays(lambda a: a["start"].__setitem__(0, np.nan)), "start is not an array of finite numbers"),
    "a shorter array": (arrays(lambda a: a.update(start=a["start"][1:])), r"expected.drawn has shape"),
    "objects": (arrays(lambda a: a.update(start=np.array(["x"] * 32))), "start is not an array of finite numbers"),
}

NETWORK: dict[str, tuple[Callable[[Path], object], str]] = {
    "a shorter scaler": (edit(lambda k: k["network"]["scaler"]["mean"].pop()), r"scaler.mean is \d+ numbers long"),
    "a NaN in the scaler": (
        edit(lambda k: k["network"]["scaler"]["low"].__setitem__(2, "nan")),
        r"scaler.low\[2\] is nan; expected a finite number",
    ),
    "a spread of 0": (edit(lambda k: k["network"]["scaler"]["spread"].__setitem__(0, "0")), r"spread\[0\] is 0"),
    "a scaler of words": (edit(lambda k: k["network"]["scaler"]["high"].__setitem__(0, "x")), "high holds no number"),
    "no scaler": (edit(lambda k: k["network"]["scaler"].pop("mean")), "scaler.mean is missing"),
    "a negative size": (edit(lambda k: k["network"]["sizes"].update(hidden=-1)), "sizes.hidden is -1"),
    "fewer counts": (edit(lambda k: k["network"]["sizes"]["counts"].pop()), "sizes.counts is"),
    "other sizes": (edit(lambda k: k["network"]["sizes"].update(hidden=3)), "parameters"),
    "no members": (edit(lambda k: k["network"].update(members=0)), "members is 0"),
    "a scale of 0": (edit(lambda k: k["network"].update(scale=0.0)), "scale 0.0; expected finite"),
    "no history": (edit(lambda k: k["network"].update(history=[])), "history is empty"),
    "no parameters": (lambda f: shutil.rmtree(f / "parameters"), "parameters is missing"),
    "empty parameters": (
        lambda f: [p.write_bytes(b"") for p in (f / "parameters").rglob("*") if p.is_file()],
        "parameters cannot be read",
    ),
}


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_damaged_additive_critic_is_refused_by_name(name: str, additive: tuple[Critic, Path], tmp_path: Path) -> None:
    _refused(additive[1], tmp_path, *ADDITIVE[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORK)
def test_a_damaged_network_is_refused_by_name(name: str, network: tuple[Critic, Path], tmp_path: Path) -> None:
    _refused(network[1], tmp_path, *NETWORK[name])


def _refused(folder: Path, to: Path, damage: Callable[[Path], object], words: str) -> None:
    copy = to / "critic"
    shutil.copytree(folder, copy)
    damage(copy)
    with pytest.raises(CreditError, match=words):
        credit.load_critic(copy)


# The system kills a process that writes beyond the largest file that it may have, in the middle of the write. At the
# other moments the process kills itself. Each is a fork of one process that has imported what is slow to import.
KILLED = """
import json, os, resource, signal, sys
from pathlib import Path
from estimators.critic.checkpoints import Checkpoints
from graphs import atomic

class System:
    def __init__(self, name, after):
        self.name, self.after = name, after
    def __getattr__(self, name):
        real = getattr(os, name)
        def killed(*given):
            if self.after:
                real(*given)
            os.kill(os.getpid(), signal.SIGKILL)
        return killed if name == self.name else real

for folder, moment in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        if moment == "half":
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30))
        else:
            atomic.os = System("replace" if "rename" in moment else "fsync", moment.startswith("after"))
        Checkpoints(Path(folder), "one fit")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
def test_a_mark_is_whole_or_as_it_was_when_its_writer_is_killed(tmp_path: Path) -> None:
    """In the middle of the write, between the write and the rename, and right after the rename."""
    moments = ("half", "before sync", "after sync", "before rename", "after rename")
    cases = [(tmp_path / f"{old}, {moment}", moment, old) for moment in moments for old in (None, "")]
    for folder, _, old in cases:
        folder.mkdir()
        if old is not None:
            (folder / "fit.sha256").write_text(old)
    given = json.dumps([(str(folder), moment) for folder, moment, _ in cases])
    command = [sys.executable, "-W", "ignore", "-c", KILLED, given]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    ends = {"half": -signal.SIGXFSZ}
    assert [int(line) for line in done.stdout.split()] == [ends.get(moment, -signal.SIGKILL) for _, moment, _ in cases]
    whole = hashlib.sha256(b"one fit").hexdigest()
    for folder, moment, old in cases:
        mark = folder / "fit.sha256"
        found = mark.read_text() if mark.exists() else None
        assert found == (whole if moment == "after rename" else old), (moment, old)
        Checkpoints(folder, "one fit")
        assert mark.read_text() == whole
        assert [path.name for path in folder.iterdir()] == ["fit.sha256"]


def test_an_empty_mark_does_not_block_a_fit_that_the_checkpoint_names(tmp_path: Path) -> None:
    first = Checkpoints(tmp_path, "one fit")
    first.save(1, {"x": np.zeros(2)}, [[1, 0.5, 0.5, 0.5, 1]])
    (tmp_path / "fit.sha256").write_text("")
    again = Checkpoints(tmp_path, "one fit")
    assert again.restore({"x": np.ones(2)})[1] == [[1, 0.5, 0.5, 0.5, 1]]
    assert len((tmp_path / "fit.sha256").read_text()) == 64
    (tmp_path / "fit.sha256").write_text("")
    with pytest.raises(CreditError, match="checkpoints of a fit on other traces"):
        Checkpoints(tmp_path, "another fit")
    for path in (tmp_path / "1" / "history").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    with pytest.raises(CreditError, match=r"fit.sha256 is empty or missing, and the checkpoint"):
        Checkpoints(tmp_path, "one fit")
