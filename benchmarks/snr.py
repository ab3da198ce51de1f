"""Signal to noise against trace length: the full run, and whether it says what the closed forms say.

    python benchmarks/snr.py [FOLDER]        (about 20 CPU-minutes; points already in FOLDER are not measured again)
    python benchmarks/snr.py --pictures      (the figures alone, from benchmarks/results/snr.json)

Points, slopes, the acceptance lines and the speed of the worlds go to benchmarks/results/snr.json, points also to
snr.parquet there, figures to docs/. The default folder for points is benchmarks/results/snr-points, which is not kept.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from credit.bench.given_values import GIVEN_VALUES
from credit.bench.snr import FULL, LENGTHS, Fit, Point, Report, json_lines, run
from credit.bench.snr_schemes import SCHEMES, registered
from credit.plot import draw_snr_report
from credit.plot.finishing import write_figure
from credit.tables.files import write_table
from graphs.worlds import TeamWorld

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "results"
SHOWN = (
    "split by role, outcome only",
    "split by role, parts scored",
    "message, 8 replays",
    "message, T/2 replays",
    "critic, fixed error",
    "critic, 8 replays a state",
    "control, claims",
    "shared, leave one out",
)
SUCCESS = ("shared, leave one out", "success, slope 1", "success, slope 2/sqrt(T)", "success, slope 2/T")


def told(todo: list[Any]) -> Iterator[Any]:
    """Says what is being measured."""
    start = time.process_time()
    for scheme, length, w in todo:
        yield scheme, length, w
        print(f"{time.process_time() - start:7.1f} CPU s  {scheme.name}, T = {length:,}", flush=True)


def acceptance(report: Report) -> dict[str, Any]:
    """The lines of the issue, each with what was found."""
    form = {line.scheme: line for line in report.fits if line.theory is not None and line.longest == 10_000}
    held = {
        name: abs(line.slope - line.theory) <= 0.05
        or (abs(line.slope - line.theory) <= line.half_width and line.half_width <= 0.03)
        for name, line in form.items()
        if line.theory is not None
    }
    known = [p for p in report.points if p.agrees is not None]
    return {
        "slopes to T = 10,000 within 0.05 of the closed form's": held,
        "points whose 99 % band holds the closed form": f"{sum(bool(p.agrees) for p in known)} of {len(known)}",
        "outside": [f"{p.scheme}, T = {p.length}" for p in known if not p.agrees],
        "last decade, Bernoulli": {n: line.last_decade for n, line in form.items() if n.startswith("success")},
    }


def crossings(report: Report) -> dict[str, Any]:
    """From which T on a scheme beats the shared baseline: at any cost, and at equal cost."""
    shared = {p.length: p for p in report.points if p.scheme == "shared, leave one out"}
    out: dict[str, Any] = {}
    for name in SCHEMES:
        mine = [p for p in report.points if p.scheme == name and p.length in shared]
        line: dict[str, Any] = {}
        for what in ("snr", "equal_cost"):
            better = [p.length for p in mine if getattr(p, what) > 1.05 * getattr(shared[p.length], what)]
            line["better in SNR at T" if what == "snr" else "better at equal cost at T"] = better
        last = mine[-1]
        line["SNR over the shared one's at the last T"] = round(last.snr / shared[last.length].snr, 3)
        line["the same at equal cost"] = round(last.equal_cost / shared[last.length].equal_cost, 5)
        out[name] = line
    return out


def worlds() -> dict[str, Any]:
    """How fast a world of 100 events is drawn, and how large its log may be."""
    world = TeamWorld("swarm", agents=5, events=100)
    jax.block_until_ready(world.sample(jax.random.key(0), 100_000).reward)
    start = time.perf_counter()
    jax.block_until_ready(world.sample(jax.random.key(1), 100_000).reward)
    return {"seconds for 100,000 rollouts of 100 events, compiled": round(time.perf_counter() - start, 3)}


def kept() -> Report:
    """The report of the results."""
    found = json.loads((RESULTS / "snr.json").read_text())
    names = [field.name for field in dataclasses.fields(Point)]
    points = [Point(**{name: row[name] for name in names if name in row}) for row in found["points"]]
    fits = [Fit(**row) for row in found["slopes"]]
    return Report(points, fits, found["left out"])


def draw(report: Report) -> None:
    """The figures of the docs."""
    for name, figure in (
        ("snr", draw_snr_report(report, names=SHOWN, values=GIVEN_VALUES["snr"])),
        ("snr-cost", draw_snr_report(report, names=SHOWN, equal_cost=True, values=GIVEN_VALUES["snr"])),
        ("snr-success", draw_snr_report(report, names=SUCCESS)),
    ):
        for kind, dpi in (("svg", 100), ("png", 150)):
            with (ROOT / "docs" / f"{name}.{kind}").open("wb") as file:
                write_figure(figure, file, kind, dpi)


def main() -> None:
    if sys.argv[1:] == ["--pictures"]:
        draw(kept())
        return
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "snr-points"
    start = time.process_time()
    report = run(
        [*SCHEMES.values(), *registered().values()], lengths=LENGTHS, effort=FULL, folder=folder, progress=told
    )
    found = report.json()
    found["about"] |= {
        "device": str(jax.devices()[0]),
        "effort": FULL._asdict(),
        "CPU seconds of this run": round(time.process_time() - start),
        "peak memory, GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }
    found["acceptance"] = acceptance(report)
    found["against the shared baseline"] = crossings(report)
    found["worlds"] = worlds()
    (RESULTS / "snr.json").write_text(json_lines(found))
    write_table(report.table(), RESULTS / "snr.parquet")
    draw(report)
    print(json.dumps(found["acceptance"], indent=1))


if __name__ == "__main__":
    main()
