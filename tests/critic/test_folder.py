"""A critic's folder: what is written reads back; what is damaged is refused by the name of its file and field."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.critics.fitted_critic import Critic
from estimators.critic.checkpoints import restore, save
from estimators.critic.train import Settings
from graphs.array_files import read_array
from graphs.atomic import locked, made_folder
from graphs.errors import CreditError
from graphs.traces.batch import Traces


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
        with np.load(folder / "arrays.npz") as file:
            kept = dict(file)
        change(kept)
        np.savez(folder / "arrays.npz", **kept)

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
    "another version": (edit(lambda k: k.update(format=1)), "has format 1; expected 6"),
    "no roles": (edit(lambda k: k.pop("roles")), "missing required field `roles`"),
    "a text for a number": (edit(lambda k: k.update(dense="x")), r"Expected `int`, got `str` - at `\$.dense`"),
    "no model": (edit(lambda k: k.update(additive=None)), "expected either network or additive"),
    "another head": (edit(lambda k: k["additive"].update(head="softmax")), "Invalid enum value"),
    "fewer bounds": (edit(lambda k: k["tests"][0]["above"].pop()), r"tests\[0\].above has 3 bounds; expected 4"),
    "no levels": (edit(lambda k: k["additive"].update(levels=0)), "additive.levels is out of range"),
    "more levels": (edit(lambda k: k["additive"].update(levels=9)), "has no array level"),
    "no arrays": (lambda f: (f / "arrays.npz").unlink(), "arrays.npz is missing"),
    "half the arrays": (lambda f: _truncate(f / "arrays.npz"), "arrays.npz cannot be read"),
    "no zip": (lambda f: (f / "arrays.npz").write_text("weights"), "arrays.npz cannot be read"),
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
    "other sizes": (
        edit(lambda k: k["network"]["sizes"].update(hidden=3)),
        r"arrays\.npz: array \d+ is float32 of shape",
    ),
    "no members": (edit(lambda k: k["network"].update(members=0)), "members is 0"),
    "a scale of 0": (edit(lambda k: k["network"].update(scale=0.0)), "scale 0.0; expected finite"),
    "no history": (edit(lambda k: k["network"].update(history=[])), "history is empty"),
    "no parameters": (lambda f: (f / "arrays.npz").unlink(), "arrays.npz is missing"),
    "empty parameters": (lambda f: (f / "arrays.npz").write_bytes(b""), "arrays.npz cannot be read"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ADDITIVE)
def test_a_damaged_additive_critic_is_refused_by_name(name: str, additive: tuple[Critic, Path], tmp_path: Path) -> None:
    _refused(additive[1], tmp_path, *ADDITIVE[name])


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("name", NETWORK)
def test_a_damaged_network_is_refused_by_name(name: str, network: tuple[Critic, Path], tmp_path: Path) -> None:
    _refused(network[1], tmp_path, *NETWORK[name])


def _refused(folder: Path, to: Path, damage: Callable[[Path], object], words: str) -> None:
    copy = to / "critic"
    to.mkdir(exist_ok=True)
    shutil.copytree(folder, copy)
    damage(copy)
    with pytest.raises(CreditError, match=words):
        credit.load_critic(copy)


def test_a_critic_with_other_numbers_than_were_fitted_is_refused(additive: tuple[Critic, Path], tmp_path: Path) -> None:
    def other(kept: dict[str, np.ndarray]) -> None:
        kept["start"] = kept["start"] + np.float32(0.5)

    differs = "holds other numbers than were fitted"
    damages = (arrays(other), edit(lambda k: k["judged"].update(calibration=0.0)), edit(lambda k: k["tests"].clear()))
    for i, damage in enumerate(damages):
        _refused(additive[1], tmp_path / str(i), damage, differs)


def test_a_header_that_claims_more_numbers_than_there_are_takes_no_memory(
    additive: tuple[Critic, Path], tmp_path: Path
) -> None:
    def claim(folder: Path) -> None:
        with zipfile.ZipFile(folder / "arrays.npz", "w") as archive, archive.open("start.npy", "w") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (10**12,)}
            np.lib.format.write_array_header_1_0(file, header)
            file.write(bytes(80))

    def compress(folder: Path) -> None:
        np.savez_compressed(folder / "arrays.npz", start=np.zeros(1_000_000))

    _refused(additive[1], tmp_path / "a", claim, "the header states 4000000000000 bytes of numbers, and 80 are there")
    _refused(additive[1], tmp_path / "b", compress, "states 8000128 bytes, more than the file has")
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
    with pytest.raises(CreditError, match=r"x\.npy cannot be read: the header states 8000000000000 bytes"):
        read_array(tmp_path / "x.npy", "a .npy file of numbers")


def test_a_second_fit_into_one_folder_is_refused_in_words(traces: Traces, tmp_path: Path) -> None:
    with (
        made_folder(tmp_path / "critic"),
        locked(tmp_path / "critic" / "critic.json"),
        pytest.raises(CreditError, match=r"another process writes .*critic\.json"),
    ):
        credit.fit_critic(traces, settings=Settings(model="additive"), directory=tmp_path / "critic")
    assert list((tmp_path / "critic").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("model", ["additive", pytest.param("network", marks=pytest.mark.slow)])
def test_a_full_disk_is_named_and_leaves_nothing(
    traces: Traces, tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    folder = tmp_path / "new" / "critic"
    settings = Settings(model=model, members=2, hidden=2, sums=1, epochs=1, patience=1, batch_events=64)
    name = "arrays" if model == "additive" else "checkpoint"
    with pytest.raises(OSError, match=rf"'{re.escape(str(folder))}/{name}\.npz'$"):
        credit.fit_critic(traces, settings=settings, directory=folder)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_is_damaged_or_of_another_fit_is_refused(tmp_path: Path) -> None:
    path, epochs = tmp_path / "checkpoint.npz", [[1, 0.5, 0.5, 0.5, 1]]
    save(path, "one fit", {"x": np.zeros(2)}, epochs)
    assert restore(path, "one fit", {"x": np.ones(2)})[1] == epochs
    with pytest.raises(CreditError, match="is of a fit on other traces"):
        restore(path, "another fit", {"x": np.ones(3)})
    with pytest.raises(CreditError, match="is damaged; remove it to fit from the beginning"):
        restore(path, "one fit", {"x": np.ones(3)})
    _truncate(path)
    with pytest.raises(CreditError, match="is damaged; remove it to fit from the beginning"):
        restore(path, "one fit", {"x": np.ones(2)})
