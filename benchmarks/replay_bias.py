"""Bias of group-relative methods in groups with replays. The site puts it into docs/bias.md.

python benchmarks/replay_bias.py             (everything, into results/replay_bias.json)
python benchmarks/replay_bias.py grpo c3     (these methods; the others' rows stay as they are)
python benchmarks/replay_bias.py tasks       (replays that are logged under other tasks than their trace)
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path

from credit.bench.replay_bias import ReplayBias, replay_bias, replay_methods
from credit.bench.replay_tasks import LAYOUTS, ReplayTaskBias, replay_task_bias

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "replay_bias.json"
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


def main() -> None:
    rows = [
        {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in dataclasses.asdict(row).items()}
        for row in measured(sys.argv[1:])
    ]
    tasks = [row._asdict() for row in measured_tasks(sys.argv[1:])]
    parts = (",\n".join(map(json.dumps, part)) for part in (rows, tasks))
    RESULTS.write_text('{{"rows": [\n{}\n], "tasks": [\n{}\n]}}\n'.format(*parts), encoding="utf-8")


if __name__ == "__main__":
    main()
