"""Of several releases the last is held against the one before it; variants at one time are compared by choice alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.sides.chosen_sides import Sides


def log_of(folder: Path, *, steps: float, dated: bool = True) -> Path:
    """Releases v9, v10 and v11 of 40 traces each, whose starts are `steps` of their own length apart."""
    random, lines = np.random.default_rng(0), []
    for release in range(3):
        for number, at in enumerate(np.sort(random.random(40)) + steps * release):
            event = {"id": "e", "type": "message", "agent": "a", "tokens": int(random.integers(1e6))}
            event |= {"t": 1.7e9 + 86400 * at} if dated else {}
            line = {"trace_id": f"{release}-{number}", "task_id": f"q{number}", "system": f"v{release + 9}"}
            rewards = {"team": float(number % 4 > 0 and release < 2)}
            lines.append(json.dumps(line | {"events": [event], "edges": [], "rewards": rewards}) + "\n")
    (log := folder / "log.jsonl").write_text("".join(lines))
    return log


def test_the_head_holds_the_last_release_against_the_one_before(tmp_path: Path) -> None:
    """Of three releases it said nothing of what changed."""
    log = log_of(tmp_path, steps=0.9)
    said = CliRunner().invoke(cli, ["summary", str(log)], catch_exceptions=False).stdout
    assert "What changed from v10 to v11:\n  v11 is worse than v10 (success 0.75 to 0)." in said
    assert "`credit metrics --sides system=v10,v11` says what else changed between the systems" in said
    assert ", and `--sides system=v9,v10` what did in the step before." in said
    sides = Sides.latest(credit.read(log))
    assert sides is not None and np.bincount(sides.side + 1).tolist() == [40, 40, 40]


@pytest.mark.parametrize(("steps", "dated"), [(0.1, True), (0.9, False)])
def test_variants_without_an_order_in_time_are_not_compared_unasked(steps: float, dated: bool, tmp_path: Path) -> None:
    assert Sides.latest(credit.read(log_of(tmp_path, steps=steps, dated=dated))) is None
