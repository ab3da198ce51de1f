"""Sentences, outside tables, whose figures are stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from site_pages import page

ROOT = Path(__file__).resolve().parents[3]


def results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def sentences(name: str) -> str:
    return " ".join(page(name).split())


def test_coverage_under_a_heavy_tail() -> None:
    (row,) = (row for row in results("off_policy")["heavy"].values() if isinstance(row, dict) and "covered" in row)
    covered, least = 100 * row["covered"], 100 * row["least and most"][0]
    assert f"cover less: {covered:.1f} % with σ = 1.5 and 300 draws ({least:.1f} % in the worst of five worlds)" in (
        sentences("off-policy")
    )


def test_how_many_cells_of_the_rule_are_ties_within_rounding() -> None:
    cells = results("shapley")["table"]["cells"].values()
    ties = 0
    for cell in cells:
        errors = {name: error for name, error in cell["rel"].items() if isinstance(error, float)}
        if cell["best"] == "rule" and min(errors.values()) < errors["rule"]:
            assert errors["rule"] < 1e-24
            ties += 1
    assert f"in {ties} of these others are exact to rounding, too" in sentences("shapley")


def test_rewards_at_the_events_of_others() -> None:
    """What the page about bias says of methods along an agent's own chain."""
    of = ("maac", "gae, lambda 1, along agents", "spiral_rae", "maporl")
    rows = [row for row in results("bias")["rows"] if row[0] in of]
    with_rewards = [row[3] for row in rows if row[1] == "stop-rewards"]
    assert max(row[3] for row in rows if row[1] != "stop-rewards") < 1e-9
    stated = f"In `stop-rewards` they have a bias of {min(with_rewards):.2f} to {max(with_rewards):.2f}."
    assert stated in sentences("bias")
