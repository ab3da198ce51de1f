"""A run that several logs of one reading hold counts once; one with two scores counts nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.logs import read

from .samples import NEMO_GYM, NEMO_RL, SKYRL, VERL


def test_rows_that_nemo_gym_appended_again(tmp_path: Path) -> None:
    lines = [json.dumps(NEMO_GYM | {"_ng_rollout_index": number}) + "\n" for number in range(3)]
    (tmp_path / "rollouts.jsonl").write_text("".join(lines))
    alone = read(tmp_path)
    (tmp_path / "rollouts.jsonl").write_text("".join(lines + lines[:2]))
    traces = read(tmp_path)
    assert traces.traces.equals(alone.traces)
    assert [(problem.kind, problem.line) for problem in traces.problems] == [("repeated-run", 4), ("repeated-run", 5)]
    (tmp_path / "rollouts.jsonl").write_text("".join([*lines, json.dumps(NEMO_GYM | {"reward": 1.0}) + "\n"]))
    assert read(tmp_path).traces.num_rows == 4


@pytest.mark.parametrize(("row", "field"), [(VERL, "output"), (SKYRL, "output_response"), (NEMO_RL, "idx")])
def test_a_dump_that_stands_twice_is_named(tmp_path: Path, row: dict[str, Any], field: str) -> None:
    other = row | {field: {"metrics": {"x": 1.0}, "idx": 1}.get(field, "3")}
    text = json.dumps(row) + "\n" + json.dumps(other) + "\n"
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    assert not read(path).problems
    path.write_text(text + text)
    (problem,) = read(path).problems
    assert (problem.kind, problem.value) == ("repeated-rows", "2 rows, and the same again")
    path.write_text((json.dumps(row) + "\n") * 4)
    assert not read(path).problems, "rollouts of one text are equal rows"


def reformatted(value: Any) -> str:
    """A JSON value as `jq -cS` writes it: no blanks, sorted keys, and 1.0 as 1."""
    numbers = {float: lambda x: int(x) if x.is_integer() else x}

    def written(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: written(one) for key, one in part.items()}
        return [written(one) for one in part] if isinstance(part, list) else numbers.get(type(part), lambda x: x)(part)

    return json.dumps(written(value), separators=(",", ":"), sort_keys=True)


def test_a_reformatted_row_of_nemo_gym_is_read_once(tmp_path: Path) -> None:
    row = NEMO_GYM | {"reward": 1.0}
    (tmp_path / "rollouts.jsonl").write_text(json.dumps(row) + "\n" + reformatted(row) + "\n")
    traces = read(tmp_path)
    assert traces.traces.num_rows == 1
    assert [(problem.kind, problem.line) for problem in traces.problems] == [("repeated-run", 2)]
    twice = reformatted(row)[:-1] + ',"x":1,"x":1}\n'  # refused by itself, so it takes no place of another
    (tmp_path / "rollouts.jsonl").write_text(twice + twice.replace(',"x":1,', ",") + reformatted(row | {"x": 1}))
    assert [problem.kind for problem in read(tmp_path).problems] == ["repeated-key", "repeated-run"]
