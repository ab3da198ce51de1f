"""What every format of another project must pass: told by its content, round trip, faults, near misses."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import NothingReadError, Problem, TraceError
from graphs.logs import FORMATS, detect, read, reader_of
from graphs.reading.source import Source
from graphs.traces.batch import Traces
from graphs.traces.part import Heading, Part
from graphs.traces.record import TraceRecord, check
from graphs.writers import native

from .all_formats import ALL
from .samples import HEADS, SAMPLES, Sample

EACH = pytest.mark.parametrize("name", SAMPLES)
EACH_HEAD = pytest.mark.parametrize("name", HEADS)
VALUES = (None, True, -1, 0, 3, 10**30, 2.5, "", "x", [], [None], {}, {"x": 1})


def content(traces: Traces) -> dict[str, Any]:
    """All that a batch holds but the places in files."""
    graph = {
        name: np.asarray(value).tolist()
        for name, value in vars(traces.graph).items()
        if value is not None and hasattr(value, "shape") and name != "time"
    }
    evidence = {name: (e.array[e.mask].tolist(), e.mask.tolist()) for name, e in traces.evidence.items()}
    tables = (traces.events.select(["event", "tool"]), traces.agents.select(["agent", "name", "role", "parent"]))
    return {"graph": graph, "evidence": evidence, "tables": [table.to_pylist() for table in tables],
            "reward": repr(np.asarray(traces.reward).tolist()),
            "tokens": traces.tokens
            and repr({k: np.asarray(v).tolist() for k, v in vars(traces.tokens).items()})}  # fmt: skip


@EACH
def test_it_is_told_by_its_content_and_reads(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    path = sample.write(tmp_path)
    assert detect(path.read_bytes()[: 1 << 16]) == sample.format
    traces = read(path)
    assert [problem for problem in traces.problems if problem.is_failure] == []
    assert set(traces.traces["format"].to_pylist()) == {sample.format}
    assert traces.graph.action_mask.any()


@EACH_HEAD
def test_no_other_reader_takes_it(name: str) -> None:
    head = HEADS[name].text.encode()[: 1 << 16]
    assert [other for other in FORMATS if reader_of(other).sniff(head)] == [HEADS[name].format]


@EACH
def test_round_trip_to_native(tmp_path: Path, name: str) -> None:
    traces = read(SAMPLES[name].write(tmp_path / "log"))
    native.write(traces, tmp_path / "native.jsonl")
    again = read(tmp_path / "native.jsonl")
    assert again.problems == ()
    assert content(again) == content(traces)


WITHOUT_MODEL = {
    "art", "autogen", "autogen messages", "codex before payloads", "mini-swe-agent before 2", "openhands stream",
    "openhands-sdk",
    "rllm", "rllm stored", "rollouts of nemo-rl", "rollouts of skyrl", "rollouts of tinker", "rollouts of verl",
    "spans of mlflow", "swe-agent", "verifiers results",
}  # fmt: skip
"""Logs that name no model; what they are of is the harness, and the folder or file of a run."""


def of_another_model(value: Any, models: frozenset[str]) -> Any:
    """A copy of a log in which the models have other names."""
    if isinstance(value, dict):
        return {key: of_another_model(part, models) for key, part in value.items()}
    if isinstance(value, list):
        return [of_another_model(part, models) for part in value]
    return f"other-{value}" if isinstance(value, str) and value in models else value


@EACH
def test_runs_of_two_models_are_never_one_group(tmp_path: Path, name: str) -> None:
    """The same log in two folders, with other names of models in the second: their traces share no group."""
    sample = SAMPLES[name]
    for folder in ("a", "b"):
        sample.write(tmp_path / folder)
    models = frozenset(model for model in read(tmp_path / "a").traces["model"].to_pylist() if model)
    assert bool(models) == (name not in WITHOUT_MODEL)
    sample._replace(values=of_another_model(sample.values, models)).write(tmp_path / "b")
    try:
        rows = read(tmp_path).traces.to_pylist()
    except NothingReadError as error:  # where ids are of the whole world, one id twice is no second run
        assert {problem.kind for problem in error.problems} <= {"duplicate-span", "duplicate-trace"}
        return
    folders: dict[str, set[str]] = {}
    for row in rows:
        folders.setdefault(row["group"], set()).add(Path(row["file"]).parent.name)
    assert all(len(found) == 1 for found in folders.values()), folders


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy of a value with another one at a place; `...` deletes it."""
    copied = copy.deepcopy(value)
    target = copied
    for step in place[:-1]:
        target = target[step]
    if new is ...:
        del target[place[-1]]
    else:
        target[place[-1]] = new
    return copied


def outcomes(sample: Sample, folder: Path, values: list[Any]) -> list[TraceRecord | Heading | Problem]:
    path = sample._replace(values=values).write(folder)
    found: list[TraceRecord | Heading | Problem] = []
    for item in reader_of(sample.format).read([Source(str(path), path)]):
        try:
            if isinstance(item, Part):
                found += item.headings
            else:
                found.append(check(item) if isinstance(item, TraceRecord) else item)
        except TraceError as error:
            found.append(error.problem)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("changes", [50, pytest.param(150, marks=pytest.mark.study)])
@EACH
def test_any_change_reads_or_is_named(tmp_path: Path, name: str, changes: int) -> None:
    """No traceback, and no reward that the changed file does not state."""
    sample, draw = SAMPLES[name], random.Random(name)
    everywhere = [place for place in places(sample.values) if len(place) > 1]
    for _ in range(changes):
        values = changed(sample.values, draw.choice(everywhere), draw.choice((..., *VALUES)))
        stated = {float(number) for number in _numbers(values)} | {0.0}
        sums = stated | {a + b for a in stated for b in stated} | {a * b for a in stated for b in stated}
        for item in outcomes(sample, tmp_path, values):
            if not isinstance(item, Problem):
                assert all(any(abs(r - s) < 1e-9 for s in sums) for r in item.rewards.values()), item.rewards
            else:
                assert item.kind and item.expected


def keys(values: list[Any]) -> list[tuple[Any, ...]]:
    """A place of each key of the objects in a log, one for those that differ in places of lists alone."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for place in places(values):
        if place and isinstance(place[-1], str):
            found.setdefault(tuple(step for step in place if isinstance(step, str)), place)
    return list(found.values())


def faults(items: list[TraceRecord | Heading | Problem]) -> list[Problem]:
    return [item for item in items if isinstance(item, Problem) and item.is_failure]


@EACH
def test_null_says_that_a_key_is_missing(tmp_path: Path, name: str) -> None:
    """Thirty keys of twelve formats could be missing, and not be null."""
    sample = SAMPLES[name]
    for place in keys(sample.values):
        of_null = faults(outcomes(sample, tmp_path, changed(sample.values, place, None)))
        if any(fault.value == "None" for fault in of_null):
            missing = outcomes(sample, tmp_path, changed(sample.values, place, ...))
            assert faults(missing) or not missing, (place, of_null)


@EACH
def test_a_truth_of_a_reward_is_1_or_0(tmp_path: Path, name: str) -> None:
    """Five formats read it, and others refused it."""
    sample = SAMPLES[name]
    for place in keys(sample.values):
        stated = sample.values
        for step in place:
            stated = stated[step]
        if type(stated) is not float or "reward" not in str(place) + str(place[-2:]).replace("score", "reward"):
            continue
        truth, number = (outcomes(sample, tmp_path, changed(sample.values, place, to)) for to in (True, 1))
        assert [(item.kind, item.field) for item in faults(truth)] == [(x.kind, x.field) for x in faults(number)], place
        rewards = [[dict(item.rewards) for item in items if not isinstance(item, Problem)] for items in (truth, number)]
        assert rewards[0] == rewards[1], place


def _numbers(value: Any) -> list[float]:
    if isinstance(value, bool):
        return [float(value)]
    if isinstance(value, int | float):
        return [float(value)] if abs(value) < 1e300 else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [number for part in inner for number in _numbers(part)]


@pytest.mark.slow
def test_a_folder_that_mixes_all_formats_reads_in_one_call(tmp_path: Path) -> None:
    """Each format once, a table among them; the traces are those of the folders read one by one."""
    first_of = {sample.format: sample for sample in reversed(ALL.values())}
    for format, sample in first_of.items():
        sample.write(tmp_path / format)
    trajectory = ALL["atif"].write(tmp_path / "harbor")
    trajectory.rename(trajectory.with_name("trajectory.json"))  # what a trial's result is read with
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "rows.csv").write_text("trace,group,agent,reward\na,q,x,1\nb,q,y,0\n")
    alone: list[tuple[str, str, int]] = []
    for format in FORMATS:
        traces = read(tmp_path / format)
        assert set(traces.traces["format"].to_pylist()) == {format}
        counts = np.bincount(traces.graph.trace_ids[: traces.sizes.events]).tolist()
        alone += zip(traces.traces["format"].to_pylist(), traces.traces["file"].to_pylist(), counts, strict=True)
    together = read(tmp_path)
    assert [problem for problem in together.problems if problem.is_failure] == []
    events = np.bincount(together.graph.trace_ids[: together.sizes.events]).tolist()
    rows = zip(together.traces["format"].to_pylist(), together.traces["file"].to_pylist(), events, strict=True)
    assert sorted(rows) == sorted(alone)
