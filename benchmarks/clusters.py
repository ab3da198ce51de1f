"""Native logs by one process and by a Ray cluster of 1, 2 and 4 workers, and a model of cost against workers.

    python benchmarks/clusters.py [--gigabytes 5] [--chunk-events 200000] [--folder /tmp] [--output ...]

Each run is a process of its own that assigns Dr. MAS advantages and writes their table. Before it is timed, it and its
workers have read and computed a small log, so that the start of Ray and of its workers is apart. Digests of the
advantages must agree. The logs are removed at the end.

With `--folder`, what was measured is kept there until then: a benchmark that was ended goes on when the same command is
given again, and leaves out what it has measured.

The model takes processor time of each stage, measured in one process on some parts, and of the driver of the run with
two workers. It is compared with the wall clock of the runs with 1, 2 and 4 workers. Its seconds beyond this machine's
cores are those of a cluster that has a core for each worker and storage that is fast enough; the rate that it must have
is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cluster_model import WORKERS, constants, modelled, predict, where_it_stops
from cluster_scripts import ONE, RAY, STAGES, digest, run
from reading import multiply, write_logs

from graphs.atomic import atomic_write

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_worker_niceness": "0",  # the priority of the one process; Ray gives its workers a lower one
}
TARGET = 1.5  # two workers over one process
TRACES = 24  # of the base, which all logs hold many times
FOLDERS = ("base", "sample", "logs")
LIBRARIES = ("ray", "jax", "pyarrow", "msgspec", "numpy")

RUNS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("one process", ONE, ()),
    *((f"{count} workers", RAY, (count,)) for count in (2, 1, 4)),
)


class Kept:
    """What was measured so far, in a file, where a folder is kept; the logs lie beside it."""

    def __init__(self, folder: Path, asked: dict[str, Any]) -> None:
        self.folder, self._file = folder, folder / "measured.json"
        folder.mkdir(parents=True, exist_ok=True)
        self._known: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {"asked": asked}
        if self._known["asked"] != asked:
            raise SystemExit(f"{self._file}: measured with {self._known['asked']}; expected {asked}, or another folder")

    def get(self, name: str, measure: Callable[[], Any]) -> Any:
        """What `measure` returns, or returned before."""
        if name not in self._known:
            self._known[name] = measure()
            with atomic_write(self._file) as file:
                file.write(json.dumps(self._known).encode())
        return self._known[name]


def logs_of(folder: Path, gigabytes: float) -> dict[str, int]:
    """Write the base, the sample and all logs anew; bytes of the base, and how often all logs hold it."""
    base, sample, logs = (folder / name for name in FOLDERS)
    for one in (base, sample, logs):
        shutil.rmtree(one, ignore_errors=True)
        one.mkdir()
    of_base = write_logs(base, TRACES, 4000, 0)
    copies = max(1, round(gigabytes * 1e9 / of_base))
    multiply(base, sample, min(copies, 12))
    multiply(base, logs, copies)
    return {"bytes": of_base, "copies": copies}


def measured(script: str, output: Path, *arguments: object) -> dict[str, Any]:
    """What a run printed, and a digest of what it wrote, which is removed."""
    for old in (output, output.with_suffix(".parquet")):
        shutil.rmtree(old) if old.is_dir() else old.unlink(missing_ok=True)
    logs, small, events, *more = arguments
    begin = os.getloadavg()
    target = output.with_suffix(".parquet") if script is ONE else output
    found = run(script, logs, small, target, events, *more)
    found |= {"digest": digest(target), "load of the machine before and after": [begin, os.getloadavg()]}
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    return dict(found)


def main() -> None:
    """Run, print and save; exit with 1 where advantages differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--chunk-events", type=int, default=200_000)
    parser.add_argument(
        "--folder", type=Path, help="keeps logs and what was measured until the end; else temporary files"
    )
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "clusters.json")
    given = parser.parse_args()
    begin = time.perf_counter()
    os.environ |= ENVIRONMENT
    with contextlib.ExitStack() as ends:
        if given.folder is None:
            given.folder = Path(ends.enter_context(tempfile.TemporaryDirectory()))
        asked = {"gigabytes": given.gigabytes, "chunk events": given.chunk_events}
        kept = Kept(given.folder / "clusters", asked)
        base, sample, logs = (kept.folder / name for name in FOLDERS)
        written = kept.get("logs", lambda: logs_of(kept.folder, given.gigabytes))
        size, traces, small = written["bytes"] * written["copies"], TRACES * written["copies"], min(base.iterdir())
        stages = kept.get("stages", lambda: stages_of(sample, small, kept.folder / "stages", given.chunk_events))
        print(f"{'stages of a sample':>18} {stages['seconds']}", flush=True)
        runs: dict[str, dict[str, Any]] = {}
        for name, script, more in RUNS:
            call = functools.partial(measured, script, kept.folder / "parts", logs, small, given.chunk_events, *more)
            runs[name] = kept.get(name, call)
            print(f"{name:>18} {runs[name]}", flush=True)
        report = report_of(stages, runs, size, traces)
        report |= {"chunk events": given.chunk_events, "seconds of this call": time.perf_counter() - begin}
        given.output.parent.mkdir(exist_ok=True)
        with atomic_write(given.output) as file:
            file.write(json.dumps(report, indent=1).encode() + b"\n")
        shutil.rmtree(kept.folder)
    if not report["identical advantages"]:
        raise SystemExit("advantages depend on the engine")


def stages_of(sample: Path, small: Path, output: Path, events: int) -> dict[str, Any]:
    """Processor time of each stage of the sample."""
    shutil.rmtree(output, ignore_errors=True)
    return dict(run(STAGES, sample, small, output, events))


def report_of(stages: dict[str, Any], runs: dict[str, dict[str, Any]], size: int, traces: int) -> dict[str, Any]:
    """What the runs come to, which is printed, too."""
    cores, two = os.cpu_count() or 1, runs["2 workers"]
    found = constants(stages, two, size, traces)
    checked = {}
    for count in WORKERS:
        seconds, model = runs[f"{count} workers"]["seconds"], predict(found, size, traces, two["parts"], count, cores)
        checked[count] = {
            "measured": seconds,
            "model": model["seconds"],
            "model over measured": model["seconds"] / seconds,
        }
    beyond = modelled(found, size, traces, two["parts"])
    larger = {f"{scale} x these logs": (scale * size, scale * traces, scale * two["parts"]) for scale in (1, 20, 400)}
    stops = {name: where_it_stops(found, *amounts) for name, amounts in larger.items()}
    gain = runs["one process"]["seconds"] / two["seconds"]
    same = len({one["digest"] for one in runs.values()}) == 1
    for name, value in found.items():
        print(f"{name:>52} {value:.4g}")
    for count, row in checked.items():
        print(f"{count} workers: {row['measured']:.1f} s, by the model {row['model']:.1f} s")
    for row in beyond:
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))
    for name, row in stops.items():
        print(name, ", ".join(f"{what} {value:.4g}" for what, value in row.items()))
    met = "met" if gain >= TARGET else "NOT met"
    print(f"two workers over one process: {gain:.2f}x, wanted {TARGET}x: {met}; advantages identical: {same}")
    return {
        "bytes": size,
        "traces": traces,
        "runs": runs,
        "stages of a sample": stages,
        "constants": found,
        "model beside measured": checked,
        "model with a core for each worker": beyond,
        "where it stops scaling": stops,
        "two workers over one process": gain,
        "target": TARGET,
        "identical advantages": same,
        "device": f"CPU, {platform.machine()}, {cores} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }


if __name__ == "__main__":
    main()
