"""Draw the pictures of the site and the recording of a terminal from what the commands do today: `make pictures`.

python docs/draw_pictures.py [FOLDER]        (default: this one)
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from click.testing import CliRunner
from matplotlib.figure import Figure
from rich.console import Console
from rich.text import Text

from credit.bench.given_values import GIVEN_VALUES
from credit.cli import cli
from credit.plot import draw_training
from credit.plot.canvas import CYCLE, new_figure, plain_axes
from credit.plot.finishing import write_figure

HERE = Path(__file__).resolve().parent
COLUMNS = 96

RECORDED = (
    "credit demo",
    "credit validate demo/traces.jsonl",
    "credit assign demo/traces.jsonl --method rloo -o advantages.parquet",
    "credit summary demo/traces.jsonl --by agent --method gae",
)
"""The commands of the recording; of the first one nothing but its last lines is shown."""
LAST_LINES = {"credit demo": 2}

PICTURES = (
    "credit show demo/traces.jsonl --trace trace-000008 --method gae --option lambda_=0 --plot {out}/trace.svg",
    "credit compose demo/traces.jsonl --methods rloo,gae --option gae.lambda_=0 -o ledger.parquet "
    "--trace trace-000008 --plot {out}/ledger.svg",
    "credit compare demo/traces.jsonl --methods rloo,dr_mas,turn_baseline,gae --plot {out}/compare.svg",
    "credit bench bias --method rloo --method grpo --method mt_grpo --method gae --plot {out}/methods.svg",
    "credit bench truth --method rloo --method grpo --method turn_baseline --method gae --plot {out}/truth.svg",
)

CURVES = ("exact_increments", "rloo", "gae", "control_critic_whole", "control_c3", "c3")
"""The signals whose learning curves are drawn."""


def run(command: str) -> str:
    """What a command prints on both streams, in a terminal of `COLUMNS` columns.

    Raises:
      RuntimeError: it failed.
    """
    result = CliRunner(env={"COLUMNS": str(COLUMNS)}).invoke(cli, shlex.split(command)[1:])
    if result.exit_code:
        raise RuntimeError(f"{command}\n{result.output}")
    return result.output


def recording() -> list[tuple[str, str]]:
    """The commands of the recording with what each prints; the working directory gets their files."""
    shown = []
    for command in RECORDED:
        lines = [line.rstrip() for line in run(command).strip().splitlines()]
        shown.append((command, "\n".join(lines[-LAST_LINES.get(command, len(lines)) :])))
    return shown


def terminal(shown: list[tuple[str, str]]) -> str:
    """A recording as SVG that asks no other host for fonts."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    for command, output in shown:
        console.print(Text.assemble(("$ ", "green"), (command, "bold")))
        console.print(Text(output))
        console.print()
    svg = console.export_svg(title="credit", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def draw_lengths(cells: list[dict[str, Any]]) -> Figure:
    """Median events to 90 % over those of `rloo`, by luck: a column for each outcome, a row for each optimizer."""
    found = {(c["outcome"], c["optimizer"], c["decisions"], c["luck"], c["signal"]): c["median"] for c in cells}
    outcomes, optimizers = (list(dict.fromkeys(key[part] for key in found)) for part in (0, 1))
    figure = new_figure(2.6 * len(outcomes), 2.5 * len(optimizers) + 0.6)
    panels = figure.subplots(len(optimizers), len(outcomes), sharey=True, squeeze=False)
    for panel, (optimizer, outcome) in zip(panels.flat, itertools.product(optimizers, outcomes), strict=True):
        plain_axes(panel)
        panel.set_title(f"{outcome}, {optimizer}", fontsize=9)
        panel.axhline(1, color="0.5", linewidth=0.8)
        lengths = sorted({key[2] for key in found if key[:2] == (outcome, optimizer)})
        for length, marker in zip(lengths, "os^Dv"[: len(lengths)], strict=True):
            for (colour, _), signal in zip(CYCLE, ("control", "posterior", "exact"), strict=False):
                key = (outcome, optimizer, length)
                lucks = [k[3] for k in found if k[:3] == key and k[4] == signal]
                lucks = [x for x in sorted(lucks) if found[*key, x, signal] and found.get((*key, x, "rloo"))]
                ratios = [found[*key, x, signal] / found[*key, x, "rloo"] for x in lucks]
                if lucks:
                    panel.plot(lucks, ratios, color=colour, marker=marker, markersize=4, linewidth=1,
                               label=f"{signal}, {length} decisions")  # fmt: skip
        panel.set_yscale("log")
        panel.set_xlabel("share of luck", fontsize=9)
    for row in panels:
        row[0].set_ylabel("events over those of rloo", fontsize=9)
    first = figure.axes[0]
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def report_picture(out: Path) -> None:
    """The section of the report that says who earned the reward, as an installed Chromium shows it.

    Raises:
      RuntimeError: no Chromium is installed.
    """
    from PIL import Image
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError("no Chromium is installed; expected one for the picture of the report")
    run("credit report demo/traces.jsonl --methods gae,dr_mas,rloo -o report.html")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(viewport={"width": 1000, "height": 900}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(Path("report.html").resolve().as_uri())
        section = page.locator("section").filter(has=page.get_by_role("heading", name="Who earned the reward"))
        section.locator("svg, canvas").first.wait_for()
        section.screenshot(path="section.png")
        browser.close()
    Image.open("section.png").convert("RGB").quantize(64).save(out / "report.png", optimize=True)


def training_pictures(out: Path) -> None:
    """The learning curves of docs/training.md and its map, from the stored results."""
    results = HERE.parent / "benchmarks" / "results"
    rows = pq.read_table(results / "training.parquet").to_pylist()
    team = json.loads((results / "language_team.json").read_text())
    rate = {cell["signal"]: cell["learning_rate"] for cell in team["cells"]}
    kept = [
        r for r in team["rows"] if r["seed"] < team["settings"]["seeds"] and r["learning_rate"] == rate[r["signal"]]
    ]
    lengths = [c for c in json.loads((results / "training_lengths.json").read_text()) if c["traces"] == 16]
    figures = {
        "training-lengths": draw_lengths(lengths),
        "training-curves": draw_training(rows, signals=CURVES, values=GIVEN_VALUES["train"]),
        "training-language": draw_training(kept, signals=tuple(rate)),
    }
    for name, figure in figures.items():
        with (out / f"{name}.svg").open("wb") as file:
            write_figure(figure, file, "svg")


def main(out: Path) -> None:
    """Draw everything into a folder."""
    out = out.resolve()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        (out / "terminal.svg").write_text(terminal(recording()))
        for command in PICTURES:
            run(command.format(out=out))
        report_picture(out)
    training_pictures(out)
    for path in out.glob("*.svg"):
        if path.name in {
            "training-curves.svg",
            "training-language.svg",
            "training-lengths.svg",
            "trace.svg",
            "ledger.svg",
            "compare.svg",
            "methods.svg",
            "truth.svg",
        }:
            text = re.sub(r"\s*<dc:date>.*?</dc:date>", "", path.read_text())
            path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
