"""Bias, variance and advantage error of every method in every micro-orchestration, as exact numbers.

    python benchmarks/bias.py        (about two minutes on two cores)

Writes benchmarks/results/bias.json, and the tables of docs/bias.md.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import time
from pathlib import Path

import jax

from credit.bench.bias import cells, measure
from credit.bench.bias_settings import SETTINGS, UNSCORED
from credit.bench.bias_table import FIELDS, as_lists, inserted

RESULTS = Path(__file__).parent / "results" / "bias.json"
PAGE = Path(__file__).parents[1] / "docs" / "bias.md"


def main() -> None:
    begin = time.perf_counter()
    rows = []
    for name in SETTINGS:
        print(name, flush=True)
        rows += [measure(*cell) for cell in cells([name])]
    about = {
        "python": platform.python_version(),
        "device": str(jax.devices()[0]),
        "dtype": "float64",
        "seconds": round(time.perf_counter() - begin),
        **{name: importlib.metadata.version(name) for name in ("jax", "numpy")},
    }
    head = json.dumps({"about": about, "fields": FIELDS, "unscored": UNSCORED}, indent=1, ensure_ascii=False)
    lines = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in as_lists(rows))
    RESULTS.write_text(head.removesuffix("\n}") + ',\n "rows": [\n' + lines + "\n ]\n}\n")
    PAGE.write_text(inserted(PAGE.read_text(), rows))
    print(f"{len(rows)} rows in {about['seconds']} s")


if __name__ == "__main__":
    main()
