"""The page of measured speed is the committed measurement and says why a slow method is slow."""

from __future__ import annotations

import json
from pathlib import Path

import credit

ROOT = Path(__file__).resolve().parents[3]
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "methods.json").read_text())
OFF_POLICY = json.loads((ROOT / "benchmarks" / "results" / "off_policy.json").read_text())


def rows(page: str, mark: str) -> list[list[str]]:
    """The cells of a table between its marks, without its head."""
    text = (ROOT / "docs" / page).read_text().split(f"<!-- table {mark} -->")[1].split("<!-- end -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]


def test_speed_was_measured_at_the_design_point() -> None:
    """A method may lack a measurement, since it is added by one file and one row; a measured one is a method."""
    speed = RESULTS["speed"]
    assert (speed["traces"], speed["events"], speed["agents"]) == (512, 512 * 4000, 300)
    assert set(speed["methods"]) <= set(credit.METHODS)


def test_the_pages_hold_the_committed_tables() -> None:
    found = {
        name.strip("`"): (float(multiple), float(seconds)) for name, multiple, seconds, _ in rows("speed.md", "speed")
    }
    assert found == {name: (row["multiple"], row["seconds"]) for name, row in RESULTS["speed"]["methods"].items()}
    for section in ("shifts", "free", "hidden", "overlap"):
        table = {name: (answered, covered) for name, answered, _, covered, *_ in rows("off-policy.md", section)}
        measured = {
            name: row for name, row in OFF_POLICY[section].items() if isinstance(row, dict) and "answers" in row
        }
        assert table == {name: (str(row["answered"]), str(row["covered"])) for name, row in measured.items()}


def test_growth_is_that_of_the_committed_measurement() -> None:
    """Each measured command is on the page with its seconds, exponents and memory, none of them above the bound."""
    for table, file, sizes in (
        ("growth-million", "growth_million.json", [10_000, 100_000, 1_000_000]),
        ("growth-events", "growth_events.json", [10_000, 100_000]),
        ("growth", "growth_warm.json", [100_000, 1_000_000]),  # ten for each agent
        ("growth-traces", "growth_traces_warm.json", [30_000, 300_000, 3_000_000]),  # three a trace
    ):
        growth = json.loads((ROOT / "benchmarks" / "results" / file).read_text())
        assert growth["sizes"] == sizes
        told = [
            [f"`{row['command']}`"]
            + [f"{row['seconds'][str(size)]:.2f}" for size in sizes]
            + [", ".join(f"{e:.2f}" for e in row["exponents"][what] if e is not None) for what in ("time", "memory")]
            + [f"{max(row['megabytes'].values()) / 1e3:.1f}"]
            for row in growth["rows"]
        ]
        assert rows("speed.md", table) == told and len(told) > 1
        assert all(row["within the bound"] and set(row["exit codes"]) == {0} for row in growth["rows"]), table


def test_what_is_slow_has_a_reason() -> None:
    for name, multiple, _, why in rows("speed.md", "speed"):
        assert (float(multiple) > 60) == bool(why), name


def test_what_was_measured_keeps_its_bounds() -> None:
    assert RESULTS["gae"]["multiples of rlax"]["block"] <= 2
    for name, row in OFF_POLICY["overlap"].items():
        if isinstance(row, dict) and "covered" in row:
            least, most = row["least and most"]
            assert row["answered"] >= 0.95 and row["worlds without an answer that got one"] == 0, name
            assert 0.94 <= row["covered"] <= 0.96 and least >= 0.92 and most <= 0.98, name
            assert row["width over the oracle's, mean and most"][1] <= 1.3, name
    for name, row in OFF_POLICY["shifts"].items():
        if isinstance(row, dict) and "covered" in row:
            assert 0.93 <= row["covered"] <= 0.97 and row["answered"] > 0.8, name
    assert all(
        row["answered"] == 0 for row in OFF_POLICY["hidden"].values() if isinstance(row, dict) and "answers" in row
    )
