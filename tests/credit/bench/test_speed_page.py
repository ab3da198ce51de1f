"""The page of measured speed is the committed measurement and says why a slow method is slow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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


GROWTH = {"events": (1_000_000, 1, "events"), "agents": (1_000_000, 10, "agents"), "traces": (3_000_000, 3, "traces")}
"""By shape of log: its largest size in events, and the unit of its sizes: how many events, and its name."""


def growth_rows() -> dict[tuple[str, str], tuple[int, dict[str, Any]]]:
    """Every stored measurement of growth and its largest size in events, by shape and command; none is stored twice."""
    found: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    for file in sorted((ROOT / "benchmarks" / "results").glob("growth*.json")):
        for row in json.loads(file.read_text())["rows"]:
            key = row["shape"], row["command"]
            assert key not in found, f"{file.name} repeats {key}"
            found[key] = max(map(int, row["seconds"])), row
    return found


def growth_cell(size: int, row: dict[str, Any]) -> str:
    """Seconds, gigabytes and exponents (the program's own time in brackets) at the largest size, named if less."""
    full, each, name = GROWTH[row["shape"]]
    time, memory = (row["exponents"][what][-1] for what in ("time", "memory"))
    if "user" in row["exponents"]:
        time = f"{time} ({row['exponents']['user'][-1]})"
    place = "" if size == full else f"{size // each:,} {name}: "
    return f"{place}{row['seconds'][str(size)]:.1f} s, {row['megabytes'][str(size)] / 1e3:.1f} GB; {time}, {memory}"


def test_growth_is_that_of_the_committed_measurement() -> None:
    """Each command has for each shape a measurement within the bound, which is on the page, or words why not."""
    found, told = growth_rows(), {}
    for command, *cells in rows("speed.md", "growth"):
        told |= {(shape, command.strip("`")): cell for shape, cell in zip(GROWTH, cells, strict=True)}
    names = re.findall(r'^    "([^"]+)": \["', (ROOT / "benchmarks" / "growth.py").read_text(), re.M)
    assert len(names) >= 20 and {command for _, command in told} == set(names)
    measured = {key: growth_cell(*row) for key, row in found.items()}
    assert {key: cell for key, cell in told.items() if key in measured} == measured
    assert all(cell[:1].isalpha() for key, cell in told.items() if key not in measured)
    for key, (_, row) in found.items():
        assert row["within the bound"] and set(row["exit codes"]) == {0}, key
        counted = ("user" if "user" in row["exponents"] else "time", "memory")
        assert all(e is None or e <= 1.1 for what in counted for e in row["exponents"][what]), key


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
