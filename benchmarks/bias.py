"""Bias, variance and advantage error of every method in every micro-orchestration, as exact numbers.

    python benchmarks/bias.py [METHOD ...]        (default: all, less than ten minutes of processor time and 5 GB)

Writes benchmarks/results/bias.json, and the figure and the data file of docs/bias.md, whose table the site makes. With
methods, only their rows and those of their variants are measured. The others stay as they are. Rows of methods that no
longer exist are dropped.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
import time
from pathlib import Path

import jax

from credit.bench.bias import Row, cells, measure
from credit.bench.bias_settings import SETTINGS, UNSCORED, family, given_to
from credit.bench.bias_table import FIELDS, as_lists, csv_text, from_lists
from credit.plot import draw_methods
from credit.plot.finishing import write_figure

RESULTS = Path(__file__).parent / "results" / "bias.json"
DOCS = Path(__file__).parents[1] / "docs"
DRAWN = (
    "rloo", "reinforce_batch", "dr_grpo", "grpo", "gae", "gae, wrong values", "coma", "coma, wrong critic", "c3",
    "c3, as released, true critic", "turn_baseline", "mt_grpo", "gigpo", "dr_mas", "dr_mas_rloo", "mgrpo", "magrpo",
    "c3_magrpo", "marshal", "spiral_rae", "difference_reward", "reinforce_pp", "pass_at_k", "off_policy",
    "max_rl", "opo", "gpg", "hgpo", "g2po", "graph_gpo", "igpo", "igrpo", "adca_grpo", "at_grpo", "hierarchical_grpo",
)  # fmt: skip
"""Of the figure; the data file has all."""


def write_data(rows: list[Row]) -> None:
    """The data file and the figure of the page, of registered methods with their defaults."""
    (DOCS / "data").mkdir(exist_ok=True)
    (DOCS / "data" / "bias.csv").write_text(csv_text(rows))
    figure = draw_methods([row for row in rows if row.method in DRAWN], values=given_to(DRAWN))
    with (DOCS / "bias.svg").open("wb") as file:
        write_figure(figure, file, "svg")


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
    write_data(rows)
    print(f"{len(rows)} rows, {sum(row.method in wanted for row in rows)} of them measured, in {seconds} s")


if __name__ == "__main__":
    main(sys.argv[1:])
