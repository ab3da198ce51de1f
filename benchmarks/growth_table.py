"""The table of growth that the site puts into docs/speed.md, from every measurement of `benchmarks/growth.py`.

    python benchmarks/growth_table.py

A cell has the measurement whose largest size is greatest among `results/growth*.json`: the seconds and the gigabytes of
that size, and the exponents of time and memory over the last factor of ten. The exponent in brackets leaves out the
kernel's time. Exponents above the bound are named with their sizes, those over other steps too, each with the exponent
over all sizes. A cell without a measurement says why.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SHAPES = {
    "events": (1_000_000, 1, "events", "1,000,000 events of one trace"),
    "agents": (1_000_000, 10, "agents", "100,000 agents of one trace"),
    "traces": (3_000_000, 3, "traces", "1,000,000 traces of three events"),
}
"""By shape of log: its largest size in events, how many events are one of its unit, the unit's name, and a heading."""
LONE = "refused: one trace has no halves"
WITHOUT = {("events", "reliability"): LONE, ("agents", "reliability"): LONE}
"""What a cell without a stored measurement says, where that is more than that none was made."""


def commands() -> list[str]:
    """The names of the commands that `growth.py` measures, in its order."""
    return re.findall(r'^    "([^"]+)": \["', (HERE / "growth.py").read_text(), re.M)


def measured(results: Path = HERE / "results") -> dict[tuple[str, str], dict[str, Any]]:
    """The row of each shape and command with the greatest size, with its bound and its sizes."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for file in sorted(results.glob("growth*.json")):
        report = json.loads(file.read_text())
        for row in report["rows"]:
            key, sizes = (row["shape"], row["command"]), sorted(map(int, row["seconds"]))
            if key in found and found[key]["sizes"][-1] == sizes[-1]:
                raise SystemExit(f"{file.name} and {found[key]['file']} both have {key} at {sizes[-1]:,} events")
            if key not in found or found[key]["sizes"][-1] < sizes[-1]:
                found[key] = row | {"bound": report["bound"], "sizes": sizes, "file": file.name}
    return found


def above(row: dict[str, Any]) -> Iterator[str]:
    """Each exponent of a row above its bound, with the sizes between which it holds."""
    _, each, unit, _ = SHAPES[row["shape"]]
    for name, what in (("time", "user" if "user" in row["exponents"] else "time"), ("memory", "memory")):
        known = [e for e in row["exponents"][what] if e is not None]
        for (small, large), exponent in zip(itertools.pairwise(row["sizes"]), row["exponents"][what], strict=True):
            if exponent is not None and exponent > row["bound"]:
                whole = f", {sum(known) / len(known):.2f} in all" if len(known) > 1 else ""
                yield f"{name} {exponent} from {small // each:,} to {large // each:,} {unit}{whole}"


def cell(row: dict[str, Any]) -> str:
    """What the table says of a measurement."""
    full, each, unit, _ = SHAPES[row["shape"]]
    largest = row["sizes"][-1]
    if set(row["exit codes"]) != {0}:
        return f"failed at {largest // each:,} {unit}: exit codes {', '.join(map(str, row['exit codes']))}"
    exponents = row["exponents"]
    time = str(exponents["time"][-1]) + (f" ({exponents['user'][-1]})" if "user" in exponents else "")
    place = "" if largest == full else f"{largest // each:,} {unit}: "
    seconds, gigabytes = row["seconds"][str(largest)], row["megabytes"][str(largest)] / 1e3
    parts = [f"{place}{seconds:.1f} s, {gigabytes:.1f} GB", f"{time}, {exponents['memory'][-1]}"]
    over = list(above(row))
    return "; ".join([*parts, *([f"above {row['bound']}: {', '.join(over)}"] if over else [])])


def table(found: dict[tuple[str, str], dict[str, Any]]) -> str:
    """All cells, in Markdown."""
    lines = [
        f"| command | {' | '.join(heading for *_, heading in SHAPES.values())} |",
        "|---" * (1 + len(SHAPES)) + "|",
    ]
    for command in commands():
        keys = [(shape, command) for shape in SHAPES]
        cells = [cell(found[key]) if key in found else WITHOUT.get(key, "not measured") for key in keys]
        lines.append(f"| `{command}` | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measured()))
