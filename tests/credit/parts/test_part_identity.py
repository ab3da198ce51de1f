"""What a part is made from: whatever its content depends on. No cluster is started."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import credit
from credit.ray import calls
from credit.ray.part_runs import made_from
from graphs.logs.chunks import read_chunks
from graphs.traces.limits import Limits

NO_CONTENT = {"output", "progress"}

OTHERS: dict[str, Any] = {
    "method": "dr_mas",
    "options": {"singleton": "zero"},
    "evidence": ("event_reward",),
    "actions_only": True,
    "events": 2,
    "reward": "other",
    "rewards": {"a": 9.0},
    "groups": {"a": "r"},
    "group_by": ("task",),
    "limits": Limits(events=5),
    "methods": ["rloo", "dr_mas"],
    "rule": "shares",
    "level": "agent",
}
"""Another value of each parameter than in `GIVEN`."""

GIVEN: dict[Callable[..., Any], dict[str, Any]] = {
    calls.assign: {"method": "rloo"},
    calls.compose: {"methods": ["rloo"]},
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    event = {"id": "e", "type": "message", "agent": "x"}
    traces = [
        {"trace_id": name, "task_id": task, "events": [event], "rewards": {"team": 1.0}}
        for name, task in (("a", "p"), ("b", "p"), ("c", "q"), ("d", "q"))
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    return folder


def identities(call: Callable[..., Any], *paths: Path, patch: pytest.MonkeyPatch, **arguments: Any) -> list[str]:
    """What the parts of a call are made from."""
    found: list[list[str]] = []

    def chunks_here(paths: Any, events: Any, *reading: Any) -> Any:
        names = ("reward", "rewards", "groups", "group_by", "limits")
        return read_chunks(*paths, events=events, **dict(zip(names, reading, strict=True)))

    patch.setattr(calls, "chunks_on_cluster", chunks_here)
    patch.setattr(calls, "run_parts", lambda chunks, job, *_: found.append(made_from(chunks, job)))
    call(*paths, **{"output": paths[0].parent / "out", **arguments})
    return found[0]


@pytest.mark.parametrize("call", GIVEN, ids=lambda call: call.__name__)
def test_a_part_under_another_argument_is_another_part(
    call: Callable[..., Any], logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new parameter has a row in `OTHERS`, or is one on which no content depends."""
    parameters = {name for name, p in inspect.signature(call).parameters.items() if p.kind is p.KEYWORD_ONLY}
    given = GIVEN[call]
    plain = identities(call, logs, patch=monkeypatch, **given)
    assert plain == identities(call, logs, patch=monkeypatch, **given, output=tmp_path / "elsewhere")
    for name in parameters - NO_CONTENT:
        other = identities(call, logs, patch=monkeypatch, **given | {name: OTHERS[name]})
        assert not set(plain) & set(other), name
    assert parameters > NO_CONTENT


def test_a_part_under_any_other_limit_is_another_part(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [identities(calls.assign, logs, patch=monkeypatch, method="rloo")]
    for field in dataclasses.fields(Limits):
        limits = Limits(**{field.name: getattr(Limits(), field.name) - 1})
        seen.append(identities(calls.assign, logs, patch=monkeypatch, method="rloo", limits=limits))
    assert len({tuple(parts) for parts in seen}) == 1 + len(dataclasses.fields(Limits))


def test_a_part_of_other_files_or_of_another_version_is_another_part(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def now() -> list[str]:
        return identities(calls.assign, logs, patch=monkeypatch, method="rloo")

    file = logs / "log.jsonl"
    seen = [now(), now()]
    file.write_text(file.read_text().replace("1.0", "9.0"))
    seen.append(now())
    (logs / "more.jsonl").write_text(file.read_text().replace('"trace_id": "', '"trace_id": "m'))
    seen.append(now())
    monkeypatch.setattr(credit, "__version__", "another")
    seen.append(now())
    assert seen[0] == seen[1] and not any(set(a) & set(b) for a, b in itertools.pairwise(seen[1:]))


def test_options_that_print_alike_differ(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy leaves out the middle of a long array."""
    long = np.zeros(5000)
    other = long.copy()
    other[2500] = 1.0
    one, two = (
        identities(calls.assign, logs, patch=monkeypatch, method="rloo", options={"event_reward": array})
        for array in (long, other)
    )
    assert repr(long) == repr(other) and not set(one) & set(two)


def test_a_row_that_is_cut_and_may_name_a_trace_counts(logs: Path, tmp_path: Path) -> None:
    """It takes the outcome from traces whose ids begin so."""
    prints = []
    for cut in ("", '{"trace": "a'):
        (tmp_path / "rewards.jsonl").write_text('{"trace": "b", "reward": 1.0}\n' + cut)
        prints.append(read_chunks(logs, events=100, rewards=tmp_path / "rewards.jsonl").fingerprint(0))
    assert prints[0] != prints[1]
