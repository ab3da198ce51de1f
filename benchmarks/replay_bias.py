"""Bias of group-relative methods in groups with replays: `results/replay_bias.json` and a table of docs/bias.md.

python benchmarks/replay_bias.py             # measure everything, then write both (the site makes the other table)
python benchmarks/replay_bias.py grpo c3     # measure these methods; the others' rows stay as they are
python benchmarks/replay_bias.py tasks       # measure where replays are logged under other tasks than their trace
python benchmarks/replay_bias.py --table     # write the table from the stored numbers
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from pathlib import Path

from credit.bench.replay_bias import ReplayBias, replay_bias, replay_methods
from credit.bench.replay_tasks import LAYOUTS, ReplayTaskBias, replay_task_bias

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "replay_bias.json"
PAGE = ROOT / "docs" / "bias.md"
WORLDS, FANS, AT = ("relay-and", "stop-rewards"), (1, 2, 3), 1
BY_TASKS = ("rloo", "turn_baseline")


def measured(wanted: list[str]) -> list[ReplayBias]:
    known = stored() if wanted else []
    rows = []
    for name in replay_methods():
        if wanted and name not in wanted:
            rows += [row for row in known if row.method == name]
            continue
        for world in WORLDS:
            for fans in FANS:
                rows.append(replay_bias(name, world, fans=fans, at=AT))
        print(name, file=sys.stderr, flush=True)
    return rows


def stored() -> list[ReplayBias]:
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    return [ReplayBias(**{name: math.nan if value is None else value for name, value in row.items()}) for row in rows]


def measured_tasks(wanted: list[str]) -> list[ReplayTaskBias]:
    if wanted and "tasks" not in wanted:
        return [ReplayTaskBias(**row) for row in json.loads(RESULTS.read_text(encoding="utf-8"))["tasks"]]
    return [replay_task_bias(name, world, layout) for name in BY_TASKS for world in WORLDS for layout in LAYOUTS]


def task_table(rows: list[ReplayTaskBias]) -> str:
    """One line a method and layout: bias by weights of all siblings, and of answered ones, in each world."""
    head = ["method", "replays stand under", *(f"{w}, {of} siblings" for w in WORLDS for of in ("all", "answered"))]
    lines = [head, ["---", "---", *["---:"] * (len(head) - 2)]]
    for name, layout in dict.fromkeys((row.method, row.layout) for row in rows):
        cells = [name, layout]
        for world in WORLDS:
            (row,) = (r for r in rows if (r.method, r.world, r.layout) == (name, world, layout))
            cells += [_number(row.all_siblings), _number(row.answered_siblings)]
        lines.append(cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(bias: float) -> str:
    return "refused" if math.isnan(bias) else f"{0.0 if bias < 1e-9 else bias:.4g}"


def main() -> None:
    if "--table" not in sys.argv:
        rows = [
            {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in dataclasses.asdict(row).items()}
            for row in measured(sys.argv[1:])
        ]
        tasks = [row._asdict() for row in measured_tasks(sys.argv[1:])]
        parts = (",\n".join(map(json.dumps, part)) for part in (rows, tasks))
        RESULTS.write_text('{{"rows": [\n{}\n], "tasks": [\n{}\n]}}\n'.format(*parts), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    lines = task_table(measured_tasks(["stored"]))
    marked = re.compile(r"(<!-- replay tasks table -->).*?(<!-- end -->)", re.DOTALL)
    PAGE.write_text(marked.sub(lambda m: f"{m[1]}\n\n{lines}\n\n{m[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
