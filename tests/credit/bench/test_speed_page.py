"""The page of measured speed is the committed measurement."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType

import pytest
from site_pages import page

import credit

ROOT = Path(__file__).resolve().parents[3]
RESULTS = json.loads((ROOT / "benchmarks" / "results" / "methods.json").read_text())
OFF_POLICY = json.loads((ROOT / "benchmarks" / "results" / "off_policy.json").read_text())


def rows(name: str, mark: str) -> list[list[str]]:
    """The cells of a table between its marks, without its head."""
    text = page(name).split(f"<!-- table: {mark} -->")[1].split("<!-- end -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]


def test_speed_was_measured_at_the_design_point() -> None:
    """A method may lack a measurement, since it is added by one file and one row; a measured one is a method."""
    speed = RESULTS["speed"]
    assert (speed["traces"], speed["events"], speed["agents"]) == (512, 512 * 4000, 300)
    assert set(speed["methods"]) <= set(credit.METHODS)


def test_the_pages_hold_the_committed_tables() -> None:
    found = {name.strip("`"): (float(multiple), float(seconds)) for name, multiple, seconds in rows("speed", "speed")}
    assert found == {name: (row["multiple"], row["seconds"]) for name, row in RESULTS["speed"]["methods"].items()}
    for section in ("shifts", "free", "hidden", "overlap"):
        table = {name: (answered, covered) for name, answered, _, covered, *_ in rows("off-policy", section)}
        measured = {
            name: row for name, row in OFF_POLICY[section].items() if isinstance(row, dict) and "answers" in row
        }
        assert table == {name: (str(row["answered"]), str(row["covered"])) for name, row in measured.items()}


def growth() -> ModuleType:
    """The program that writes the table of growth."""
    spec = importlib.util.spec_from_file_location("growth_table", ROOT / "benchmarks" / "growth_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_growth_is_that_of_the_committed_measurement() -> None:
    """A cell has a measurement without failures, or words why there is none."""
    program = growth()
    found = program.measured()
    assert len(program.commands()) >= 20 and {command for _, command in found} <= set(program.commands())
    assert all(set(row["exit codes"]) == {0} for row in found.values())
    told = {(shape, name.strip("`")): cell for name, *cells in rows("speed", "growth")
            for shape, cell in zip(program.SHAPES, cells, strict=True)}  # fmt: skip
    assert found and all(key in found or cell[:3] in ("not", "ref") for key, cell in told.items())
    for key, row in found.items():  # the exponents themselves, without the program
        counted = [row["exponents"]["user" if "user" in row["exponents"] else "time"], row["exponents"]["memory"]]
        assert any(e is not None and e > 1.1 for kind in counted for e in kind) == ("above 1.1" in told[key]), key


def test_a_cell_of_growth_names_each_exponent_above_the_bound(tmp_path: Path) -> None:
    """The measurement of the greatest size counts, wherever it is stored; two of one size are refused."""

    def store(name: str, sizes: list[int], time: list[float], memory: list[float]) -> None:
        row = {"shape": "traces", "command": "show", "seconds": {str(n): n / 1e5 for n in sizes},
               "megabytes": {str(n): n / 1e3 for n in sizes}, "exit codes": [0] * len(sizes),
               "exponents": {"time": [1.3] * len(time), "user": time, "memory": memory}}  # fmt: skip
        (tmp_path / name).write_text(json.dumps({"bound": 1.1, "rows": [row]}))

    program = growth()
    store("growth_a.json", [30_000, 300_000, 3_000_000], [1.2, 1.0], [0.5, 1.11])
    store("growth_b.json", [30_000, 300_000], [1.5], [1.5])
    (row,) = program.measured(tmp_path).values()
    assert program.cell(row) == (
        "30.0 s, 3.0 GB; 1.3 (1.0), 1.11; above 1.1: time 1.2 from 10,000 to 100,000 traces, 1.10 in all, "
        "memory 1.11 from 100,000 to 1,000,000 traces, 0.81 in all"
    )
    store("growth_c.json", [300_000, 3_000_000], [1.0], [0.5])
    with pytest.raises(SystemExit, match=r"growth_c.json and growth_a.json both have \('traces', 'show'\)"):
        program.measured(tmp_path)


def test_no_method_is_slow() -> None:
    multiples = {name: row["multiple"] for name, row in RESULTS["speed"]["methods"].items()}
    most = math.ceil(max(multiples.values()))
    assert f"Each of {len(multiples)} methods takes at most {most} segment sums" in page("speed") and most <= 60


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
            capped = name == "lognormal rewards"  # a range far beyond most outcomes covers more
            assert 0.93 <= row["covered"] <= (1 if capped else 0.97) and row["answered"] > 0.8, name
    assert all(
        row["answered"] == 0 for row in OFF_POLICY["hidden"].values() if isinstance(row, dict) and "answers" in row
    )
