"""What the trainers' tests found, as a table: `python tests/integrations/table.py FIGURES.json`.

`tests/integrations/run` writes the figures and prints the table at its end, and below it what is above `MOST`.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

HEAD = ("path", "trainer", "what was run", "rows", "largest difference", "at 1,024 rows, its own", "at 8,192, its own",
        "compiled later", "relies on")  # fmt: skip

MOST = 10.0
"""Times the yardstick, a millisecond of plain Python for 1,024 rows: what takes longer was changed in kind."""


def line_of(path: str, facts: dict[str, Any]) -> list[str]:
    """The cells of one path; times are ours and the trainer's own, the least of all calls."""
    times = [", ".join(f"{facts[size][of][1]:.1f}" for of in ("ours", "own")) for size in ("1024", "8192")]
    hooks = ", ".join(f"`{name}`" for name in facts["hooks"]) or "–"
    ran = facts.get("ran", "–")  # stored figures of an earlier run do not state it
    return [path, facts["trainer"], ran, f"{facts['rows']:,}", f"{facts['difference']:.0e}", *times,
            str(facts["compilations"]), hooks]  # fmt: skip


def table_of(figures: dict[str, dict[str, Any]]) -> str:
    """The table in Markdown, a path a line."""
    lines = [HEAD, ["---"] * len(HEAD), *(line_of(path, facts) for path, facts in sorted(figures.items()))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def above(figures: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each path and size at which ours adds more than `MOST` yardsticks to the trainer's step."""
    lines = []
    for (path, facts), rows in itertools.product(sorted(figures.items()), (1024, 8192)):
        ours, own, yardstick = (facts[str(rows)][of][1] for of in ("ours", "own", "yardstick"))
        times = (ours - (own if facts["own inside"] else 0)) / (rows / 1024 * yardstick)
        if times > MOST:
            lines.append(
                f"{path} takes {times:.1f} yardsticks at {rows:,} rows, more than {MOST:.0f}: {facts[str(rows)]}"
            )
    return lines


if __name__ == "__main__":
    found = json.loads(Path(sys.argv[1]).read_text())
    print(table_of(found), *above(found), sep="\n")
