"""`credit.run`: what the command line does, for everyone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from estimators.base import Credit
from graphs.errors import MissingColumnWarning
from graphs.event_graph import Array, EventGraph


def write_log(folder: Path, **fields: list[Any]) -> Path:
    """Two traces of two messages each; `fields` are keys of events, None where an event lacks one."""
    lines = []
    for i, reward in enumerate((1.0, 0.0)):
        events: list[dict[str, Any]] = [{"id": f"e{j}", "type": "message", "agent": "solver"} for j in range(2)]
        for name, values in fields.items():
            for j in range(2):
                if values[2 * i + j] is not None:
                    events[j][name] = values[2 * i + j]
        lines.append({"trace_id": f"t{i}", "task_id": "q", "events": events, "rewards": {"team": reward}})
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.slow
def test_absent_evidence_is_no_valid_zero(tmp_path: Path) -> None:
    traces = credit.read(write_log(tmp_path, value=[0.25, None, 0.5, 0.5]))
    result = credit.run(traces, "gae", lambda_=0.0)
    assert np.asarray(result.valid)[:4].tolist() == [False, False, True, True]
    np.testing.assert_allclose(np.asarray(result.advantage)[2:4], [0.0, -0.5])


@pytest.mark.slow
def test_rewards_at_events_are_added(tmp_path: Path) -> None:
    traces = credit.read(write_log(tmp_path, event_reward=[0.5, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(np.asarray(credit.run(traces, "rloo").advantage)[:4], [1.5, 1.5, -1.5, -1.5])


def test_the_command_line_writes_the_same_numbers(tmp_path: Path) -> None:
    log = write_log(tmp_path, value=[0.25, 0.5, 0.5, 0.75], event_reward=[0.5, 0.0, 0.0, 0.25])
    traces = credit.read(log)
    expected = credit.table(traces, credit.run(traces, "gae", lambda_=0.3))["advantage"].to_pylist()
    found = CliRunner().invoke(
        cli, ["assign", str(log), "-m", "gae", "--option", "lambda_=0.3", "-o", str(tmp_path / "a.jsonl")]
    )
    assert found.exit_code == 0, found.output
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [row["advantage"] for row in rows] == expected


def test_arrays_replace_the_evidence_of_the_log(tmp_path: Path) -> None:
    traces = credit.read(write_log(tmp_path))
    with pytest.raises(credit.CreditError, match=r"'gae' needs evidence that the log does not have\. 'value': add"):
        credit.run(traces, "gae")
    values = np.full(traces.graph.num_events, 0.5, np.float32)
    result = credit.run(traces, "gae", lambda_=0.0, value=values)
    np.testing.assert_allclose(np.asarray(result.advantage)[:4], [0.0, 0.5, 0.0, -0.5])


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("grpo", {"epsilon": 0.1}, "did you mean eps?"),
        ("gaee", {}, "no method is called 'gaee'; did you mean gae"),
        ("gae", {"lambda_": 7}, "gae: lambda_ is 7; expected a number from 0 to 1"),
        ("grpo", {"ddof": -3}, "grpo: ddof is -3; expected 0 or 1"),
        (
            "grpo",
            {"lamda": 0.5},
            "has no option 'lamda'; its options are: by, population, eps, ddof, singleton, filters",
        ),
        ("rloo", {"evidence": ["value"]}, "method 'rloo' takes no evidence 'value'"),
        ("maac", {"kind": "q"}, "method 'maac': kind is 'q'; expected q_value"),
        (3, {}, "method is 3; expected a name"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, method: Any, arguments: dict[str, Any], words: str) -> None:
    traces = credit.read(write_log(tmp_path, value=[0.5] * 4))
    with pytest.raises(credit.CreditError, match=words):
        credit.run(traces, method, **arguments)


@pytest.mark.slow
def test_own_functions_get_the_evidence_that_they_name(tmp_path: Path) -> None:
    def scaled(
        graph: EventGraph, reward: Array, *, value: Array, event_reward: Array | None = None, discount: float = 1.0
    ) -> Credit:
        return credit.gae(graph, reward, value=value, event_reward=event_reward, discount=discount)

    traces = credit.read(write_log(tmp_path, value=[0.25, 0.5, 0.5, 0.75]))
    own, theirs = credit.run(traces, scaled, discount=0.5), credit.run(traces, credit.METHODS["gae"], discount=0.5)
    np.testing.assert_array_equal(own.advantage, theirs.advantage)
    with pytest.raises(credit.CreditError, match="scaled: discount is 2; expected a number from 0 to 1"):
        credit.run(traces, scaled, discount=2)
    with pytest.raises(credit.CreditError, match=r"'scaled' needs evidence that the log does not have\. 'value'"):
        credit.run(credit.read(write_log(tmp_path)), scaled)


@pytest.mark.parametrize("read", [False, True], ids=["columns", "table"])
def test_a_column_that_tells_nothing_apart_is_warned_of(read: bool, tmp_path: Path) -> None:
    """Without parents all agents became main agents, which the command and trainers' rows said, and this did not."""
    columns: dict[str, Any] = {"group": [*"qqqq"], "trace": [*"aabb"], "agent": [*"pwpw"], "reward": [1, 1, 0, 0]}
    (tmp_path / "rows.jsonl").write_text(
        "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))
    )
    of_columns = credit.from_columns(**columns)[2]
    known: Any = credit.read(tmp_path / "rows.jsonl", format="table") if read else of_columns
    with pytest.warns(
        MissingColumnWarning, match=r"^mgrpo compares by the parent, and no agent is spawned by another$"
    ):
        credit.run(known, "mgrpo")
    spawned = credit.from_columns(**columns, parent=[None, "p", None, "p"])[2]
    twice = credit.from_columns(**{name: cells * 2 for name, cells in columns.items()})[2]
    with pytest.warns(MissingColumnWarning, match="turn_baseline compares by the turn, and every agent has one turn"):
        credit.run(twice, "turn_baseline")
    credit.run(spawned, "mgrpo")
    credit.run(known, "rloo")
