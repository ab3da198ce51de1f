"""Bias, variance and advantage error of every method in every micro-orchestration, as exact numbers.

    python benchmarks/bias.py [METHOD ...]        (default: all, less than ten minutes of processor time and 5 GB)

Writes benchmarks/results/bias.json, and the tables of docs/bias.md. With methods, only their rows and those of their
variants are measured; the others stay as they are, and rows of methods that are gone go.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
import time
from pathlib import Path

import jax

from credit.bench.bias import cells, measure
from credit.bench.bias_settings import SETTINGS, UNSCORED, family
from credit.bench.bias_table import FIELDS, as_lists, from_lists, inserted

RESULTS = Path(__file__).parent / "results" / "bias.json"
PAGE = Path(__file__).parents[1] / "docs" / "bias.md"


def main(methods: list[str]) -> None:
    begin = time.perf_counter()
    wanted = {row for name in methods for row in family(name)} or set(SETTINGS)
    known = {}
    if methods:
        known = {(row.method, row.world, row.k): row for row in from_lists(json.loads(RESULTS.read_text())["rows"])}
    rows = []
    for name in SETTINGS:
        if name in wanted:
            print(name, flush=True)
        rows += [measure(*cell) if name in wanted else known[cell] for cell in cells([name])]
    seconds = round(time.perf_counter() - begin)
    about = {
        "python": platform.python_version(),
        "device": str(jax.devices()[0]),
        "dtype": "float64",
        **{name: importlib.metadata.version(name) for name in ("jax", "numpy")},
    }
    head = json.dumps({"about": about, "fields": FIELDS, "unscored": UNSCORED}, indent=1, ensure_ascii=False)
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in as_lists(rows))
    RESULTS.write_text(head.removesuffix("\n}") + ',\n "rows": [\n' + lines + "\n ]\n}\n")
    page = inserted(PAGE.read_text(), rows)
    PAGE.write_text(page)
    print(f"{len(rows)} rows, {sum(row.method in wanted for row in rows)} of them measured, in {seconds} s")


if __name__ == "__main__":
    main(sys.argv[1:])
