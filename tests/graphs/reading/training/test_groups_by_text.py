"""A group of equal prompts does not depend on how the JSON of a prompt is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.reading.files import canonical

ALIKE = [
    ('"caf\\u00e9"', '"café"'),
    ('{"q": 1}', '{"q":1}'),
    ('{"q": 1, "a": {"c": 2, "b": 3}}', '{"a": {"b": 3, "c": 2}, "q": 1}'),
    ('["a/b", 1e999]', '[ "a\\/b",1e999 ]'),
]

REQUEST = {"model": "m", "request": {"messages": []}, "response": {"choices": [{"message": {"content": "x"}}]}}


def lightning(rollout: str, task: str, more: str = '"metadata": {"batch_idx": 1}') -> str:
    return f'{{"rollout_id": "{rollout}", "input": {task}, "is_train": true, {more}}}'


def call(rollout: str) -> str:
    event = {"event_type": "model_request", "rollout_id": rollout, "attempt_id": "0", "timestamp": 1.0, "data": REQUEST}
    return json.dumps(event)


def gym(task: str, reward: float) -> str:
    output = '[{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}]'
    return f'{{"responses_create_params": {{"input": {task}}}, "response": {{"output": {output}}}, "reward": {reward}}}'


def write(folder: Path, *lines: str, name: str = "log") -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def groups(path: Path) -> list[str]:
    traces = read(path)
    assert traces.problems == ()
    return [str(group) for group in traces.traces["group"].to_pylist()]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_agent_lightning(tmp_path: Path, one: str, other: str) -> None:
    path = write(tmp_path, lightning("a", one), lightning("b", other), lightning("c", '"d"'), *map(call, "abc"))
    first, second, third = groups(path)
    assert first == second != third


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_nemo_gym(tmp_path: Path, one: str, other: str) -> None:
    first, second, third = groups(write(tmp_path, gym(one, 0.0), gym(other, 1.0), gym('"d"', 1.0)))
    assert first == second != third


def test_verifiers(tmp_path: Path) -> None:
    rows = (f'{{"example_id": 1, "prompt": {prompt}, "completion": "x", "reward": 1.0}}' for prompt in ALIKE[0])
    first, second = groups(write(tmp_path, *rows))
    assert first == second


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_the_canonical_text(one: str, other: str) -> None:
    assert canonical(one.encode()) == canonical(other.encode()) != canonical(b'"d"')


@pytest.mark.parametrize(
    "second",
    [
        lightning("a", '"x"', '"metadata": {"batch_idx": 2}'),
        lightning("a", '"y"'),
        lightning("a", '"x"', '"metadata": {"batch_idx": 1}, "resources_id": "v2"'),
    ],
)
def test_records_that_group_a_rollout_differently_are_named(tmp_path: Path, second: str) -> None:
    """The one that comes last replaced the group, silently."""
    first = lightning("a", '"x"', '"metadata": {"batch_idx": 1}, "resources_id": "v1"')
    write(tmp_path, first, lightning("a", '"x"'), call("a"), name="a")
    assert len(groups(tmp_path)) == 1
    write(tmp_path, second, name="b")
    with pytest.raises(NothingReadError) as caught:
        read(tmp_path)
    (problem,) = caught.value.problems
    assert (problem.kind, problem.trace, Path(problem.file).name) == ("disagreeing-groups", "a", "b.jsonl")
    assert problem.value != problem.expected and "a.jsonl, line 1" in problem.expected


FILLED_IN = {
    "metadata": (
        lightning("a", '"x"', '"metadata": null'),
        lightning("a", '"x"', '"metadata": {"batch_idx": 1}'),
    ),
    "resources": (
        lightning("a", '"x"', '"metadata": {"batch_idx": 1}, "resources_id": null'),
        lightning("a", '"x"', '"metadata": {"batch_idx": 1}, "resources_id": "v2"'),
    ),
    "input beside an id": (
        lightning("a", '"x"', '"metadata": {"data_id": "d"}'),
        lightning("a", '"y"', '"metadata": {"batch_idx": 1}'),
    ),
}


@pytest.mark.parametrize("name", FILLED_IN)
def test_what_a_later_record_of_a_rollout_fills_in_is_no_disagreement(tmp_path: Path, name: str) -> None:
    """The rollout was refused for `disagreeing-groups`."""
    made = []
    for lines in (FILLED_IN[name], FILLED_IN[name][::-1]):
        (group,) = groups(write(tmp_path, *lines, call("a")))
        made.append(group)
    assert made[0] == made[1]
    assert all(
        part in made[0] for part in {"resources": ["resources-v2"], "metadata": ["batch-1"]}.get(name, ["data-d"])
    )
