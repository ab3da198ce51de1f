"""What the trainers' tests found, as a table: `python tests/integrations/table.py FIGURES.json`.

`tests/integrations/run` writes the figures and prints the table at its end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HEAD = ("path", "trainer", "what was run", "rows", "largest difference", "at 1,024 rows, its own", "at 8,192, its own",
        "compiled later", "relies on")  # fmt: skip


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


if __name__ == "__main__":
    print(table_of(json.loads(Path(sys.argv[1]).read_text())))
