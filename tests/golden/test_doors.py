"""Published names on the command line, against the numbers of the authors' code: from a table to advantages."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from credit.cli import cli

pytestmark = pytest.mark.optimised

COLUMNS = "trace=trace,group=group,agent=agent,reward=reward,event_reward=row_reward"


def assigned(path: Path, columns: dict[str, list], *call: str) -> list[float]:
    """The advantage of each row of a table, in its order."""
    pyarrow.parquet.write_table(pa.table(columns), path)
    result = CliRunner().invoke(cli, ["assign", str(path), "-o", "-", *call])
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["trace"] for row in rows] == [str(t) for t in columns["trace"]]
    return [float(row["advantage"]) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "output"),
    [("shared GRPO", "vanilla(uid,flag=False)|std=True"), ("Dr. MAS", "drmas(uid_agent,flag=True)|std=True")],
)
def test_dr_mas_and_its_shared_baseline(tmp_path: Path, oracle: Callable[[str], dict], name: str, output: str) -> None:
    case = oracle("drmas_grpo")
    given = case["inputs"]
    columns = {
        "trace": given["traj"],
        "group": given["uid"],
        "agent": given["agent"],
        "reward": [0.0] * len(given["traj"]),
        "row_reward": [float(r) for r in given["row_reward"]],
    }
    found = assigned(tmp_path / "x.parquet", columns, "--columns", COLUMNS, "--method", name)
    np.testing.assert_allclose(found, case["outputs"][output], rtol=0, atol=2e-6)


def test_marft(tmp_path: Path, oracle: Callable[[str], dict]) -> None:
    """The chain runs through the agents of a step, then to the next; the reward comes with the last."""
    case = oracle("marft_action_gae")
    events = [
        {"id": f"e{i}", "t": i, "type": "message", "agent": f"a{i % 2}", "action": True, "value": v, "event_reward": r}
        for i, (v, r) in enumerate(
            zip(np.ravel(case["inputs"]["v"]).tolist()[:4], np.ravel(case["inputs"]["rewards"]).tolist(), strict=True)
        )
    ]
    content = {"trace_id": "t", "task_id": "q", "events": events, "edges": [], "rewards": {"team": 0.0}}
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(content | {"costs": {"tokens": 1, "wall_clock_s": 1.0}}))
    result = CliRunner().invoke(cli, ["assign", str(path), "-o", "-", "--method", "MARFT"])
    assert result.exit_code == 0, result.output
    found = [float(row["advantage"]) for row in csv.DictReader(io.StringIO(result.stdout))]
    np.testing.assert_allclose(found, np.ravel(case["outputs"]["adv"]), rtol=0, atol=2e-6)
