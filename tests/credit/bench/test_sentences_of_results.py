"""Sentences, outside tables, whose figures are stored."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from site_pages import page

ROOT = Path(__file__).resolve().parents[3]


def results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def sentences(name: str) -> str:
    return " ".join(page(name).split())


def test_coverage_of_worlds_drawn_by_seed() -> None:
    rows = [row for row in results("off_policy_coverage")["rows"] if row["answers"] >= 100]
    covered = [row["covered"] for row in rows]
    inside, above = sum(0.93 <= x <= 0.97 for x in covered), sum(x > 0.97 for x in covered)
    assert inside + above == len(rows) >= 12
    assert f"Of the {len(rows)} worlds with 100 answers or more, {inside} lie within 93 to 97 %, {above} above" in (
        sentences("off-policy")
    )
    assert f"none below; the least is {100 * min(covered):.1f} %" in sentences("off-policy")
    few = max(row["answered"] for row in rows if row["answered"] < 0.9)
    assert f"({100 * few:.0f} % of the contexts or fewer)" in sentences("off-policy")


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


BESIDE = ("load", "rloo, ms")


def test_no_question_takes_more_than_ten_times_rloo() -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "questions.json").read_text())["rows"]
    most, name = max(
        (times, name) for row in rows for name, times in row.items() if isinstance(times, float) and name not in BESIDE
    )
    stated = f"No function takes more than ten times: the most is {most:.1f}, by `{name}`."
    assert (stated in (ROOT / "docs" / "metrics.md").read_text()) == (most <= 10)
    loads = [row["load"] for row in rows]
    assert f"a load of {int(min(loads))} to {math.ceil(max(loads))}." in (ROOT / "docs" / "metrics.md").read_text()
