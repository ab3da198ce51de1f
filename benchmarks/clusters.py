"""Native logs by one process and by a Ray cluster of 1, 2 and 4 workers, and a model of cost against workers.

    python benchmarks/clusters.py [--gigabytes 5] [--chunk-events 200000] [--folder /tmp] [--output ...]

Each run is a process of its own that assigns Dr. MAS advantages and writes their table. Before it is timed, it and its
workers have read and computed a small log, so that the start of Ray and of its workers is apart. Digests of the
advantages must agree. The logs are removed.

The model takes processor time of each stage, measured in one process on some parts, and of the driver of the run with
two workers. It is compared with the wall clock of the runs with 1, 2 and 4 workers. Its seconds beyond this machine's
cores are those of a cluster that has a core for each worker and storage that is fast enough; the rate that it must have
is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cluster_model import WORKERS, constants, modelled, predict, where_it_stops
from reading import multiply, write_logs

from graphs.atomic import atomic_write

METHOD = "dr_mas"
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_worker_niceness": "0",  # the priority of the one process; Ray gives its workers a lower one
}
TARGET = 1.5  # two workers over one process
LIBRARIES = ("ray", "jax", "numba", "pyarrow", "msgspec", "numpy")

# What every process begins with: the arguments, the clock, and the peak of its memory.
COMMON = """
import importlib.util, json, re, sys, time
from pathlib import Path
logs, small, output, size = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
METHOD = "dr_mas"
def peak(pid="self"):
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024
def warm(path):
    import credit
    traces = credit.read(path, compiled=importlib.util.find_spec("numba") is not None)
    credit.table(traces, credit.run(traces, METHOD))
def fresh_peak(path):
    import os
    warm(path)
    Path("/proc/self/clear_refs").write_text("5")
    return os.getpid(), peak()
"""

ONE = (
    COMMON
    + """
from credit.cli.advantages.assign_chunks import assign_in_chunks
_, before = fresh_peak(small)
wall, process = time.perf_counter(), time.process_time()
_, rows, chunks = assign_in_chunks(
    (logs,), str(output), METHOD, (), (), events=size, actions_only=False, format_=None, columns=None, rewards=None,
    groups=None, group_by=None, reward_channel="team", limits=())
wall, process = time.perf_counter() - wall, time.process_time() - process
print(json.dumps({"seconds": wall, "process": process, "rows": rows, "parts": len(chunks), "grown": [peak() - before]}))
"""
)

RAY = (
    COMMON
    + """
import ray
from credit.methods.chunked import ChunkedMethod
from credit.ray.cluster import chunks_on_cluster
from credit.ray.jobs import Advantages
from credit.ray.part_runs import run_parts
from graphs.traces.limits import DEFAULT
workers, start = int(sys.argv[5]), time.perf_counter()
ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, object_store_memory=500_000_000)
levels = {}
warm(small)
def warm_and_wait(path):
    found = fresh_peak(path)
    time.sleep(3)  # so that each task is given a worker of its own
    return found
while len(levels) < workers:
    levels |= dict(ray.get([ray.remote(warm_and_wait).remote(small) for _ in range(workers)]))
ready = time.perf_counter()
process = time.process_time()
chunks = chunks_on_cluster((logs,), size, "team", None, None, ("task", "model", "system"), DEFAULT)
indexed, process_indexed = time.perf_counter(), time.process_time()
parts = run_parts(chunks, Advantages(ChunkedMethod(METHOD), False), output, iter)
done, process_done = time.perf_counter(), time.process_time()
peaks = {}
for pid, level in levels.items():
    try:
        peaks[pid] = peak(pid) - level
    except OSError:
        pass
print(json.dumps({
    "start-up": ready - start, "seconds": done - ready, "first pass": indexed - ready, "rows": parts.rows,
    "parts": len(chunks), "grown": sorted(peaks.values()),
    "driver": {"first pass": process_indexed - process, "parts": process_done - process_indexed}}))
ray.shutdown()
"""
)

STAGES = (
    COMMON
    + """
import pickle
from ray import cloudpickle
import numpy as np
from credit.methods.chunked import ChunkedMethod
from credit.ray.jobs import Advantages
from credit.ray.part_notes import part_file
from credit.tables.files import write_table
from graphs.readers.chunk_index import glance
from graphs.readers.chunks import read_chunks
warm(small)
clock, spent = time.process_time, {}
def timed(name, call):
    begin = clock()
    result = call()
    spent[name] = spent.get(name, 0.0) + clock() - begin
    return result
seen = []
def look_over(look, files):
    seen.append(timed("look", lambda: look(files)))
    yield seen[0]
chunks = read_chunks(logs, events=size, compiled=importlib.util.find_spec("numba") is not None, map_files=look_over)
chunks.fingerprint(0)
sent = cloudpickle.dumps(chunks, protocol=5)
job = Advantages(ChunkedMethod(METHOD), False)
events, shapes, output = 0, set(), output
output.mkdir()
compiling = 0.0
for number in [*range(len(chunks))] * 2:
    if number == 0:  # the first round compiles the method for the shapes of the parts
        compiling, spent = spent.get("assign", 0.0), {"look": spent["look"]}
        events = rows = 0
    timed("take over", lambda: pickle.loads(sent))
    traces, _ = timed("read", lambda: chunks.part(number))
    table, note = timed("assign", lambda: job.compute(traces))
    timed("write", lambda: write_table(table, part_file(output, number)))
    events, rows = events + traces.sizes.events, rows + table.num_rows
written = sum(file.stat().st_size for file in output.iterdir())
spent["compile"] = compiling - spent["assign"]
print(json.dumps({
    "seconds": spent, "events": events, "traces": sum(len(one.index.source) for one in seen), "parts": len(chunks),
    "files": len(chunks.files), "bytes": {
        "logs": sum(Path(name).stat().st_size for name in chunks.files), "output": written, "chunks": len(sent),
        "index": len(pickle.dumps(seen[0], protocol=5)), "note": len(json.dumps(note))}}))
"""
)

DIGEST = """
import hashlib, sys
import numpy as np
import pyarrow.dataset
column = pyarrow.dataset.dataset(sys.argv[1], format="parquet").to_table(columns=["advantage"])["advantage"]
print(hashlib.blake2b(np.sort(column.to_numpy()).tobytes(), digest_size=16).hexdigest())
"""


def run(script: str, *arguments: object) -> Any:
    """What a process printed as JSON."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def digest(output: Path) -> str:
    """A digest of the advantages of a table, row order aside."""
    done = subprocess.run([sys.executable, "-c", DIGEST, str(output)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Run, print and save; exit with 1 where advantages differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--chunk-events", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where the logs are written; by default that of temporary files")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "clusters.json")
    given = parser.parse_args()
    load, begin = os.getloadavg(), time.perf_counter()
    os.environ |= ENVIRONMENT
    runs: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        base, logs, sample = (Path(temporary) / name for name in ("base", "logs", "sample"))
        for folder in (base, logs, sample):
            folder.mkdir()
        of_base = write_logs(base, 24, 4000, 0)
        copies = max(1, round(given.gigabytes * 1e9 / of_base))
        multiply(base, sample, min(copies, 12))
        multiply(base, logs, copies)
        size, traces, small = copies * of_base, 24 * copies, min(base.iterdir())
        stages = run(STAGES, sample, small, Path(temporary) / "stages", given.chunk_events)
        print(f"{'stages of a sample':>18} {stages['seconds']}", flush=True)
        for name, script, more in (
            ("one process", ONE, ()),
            *((f"{count} workers", RAY, (count,)) for count in (2, 1, 4)),
        ):
            output = Path(temporary) / ("one.parquet" if script is ONE else "parts")
            runs[name] = run(script, logs, small, output, given.chunk_events, *more)
            runs[name]["digest"] = digest(output)
            print(f"{name:>18} {runs[name]}", flush=True)
            subprocess.run(["rm", "-r", str(output)], check=True)
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
    report = {
        "bytes": size,
        "traces": traces,
        "chunk events": given.chunk_events,
        "runs": runs,
        "stages of a sample": stages,
        "constants": found,
        "model beside measured": checked,
        "model with a core for each worker": beyond,
        "where it stops scaling": stops,
        "two workers over one process": gain,
        "target": TARGET,
        "identical advantages": same,
        "seconds of all": time.perf_counter() - begin,
        "load of the machine before and after": [load, os.getloadavg()],
        "device": f"CPU, {platform.machine()}, {cores} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }
    given.output.parent.mkdir(exist_ok=True)
    with atomic_write(given.output) as file:
        file.write(json.dumps(report, indent=1).encode() + b"\n")
    if not same:
        raise SystemExit("advantages depend on the engine")


if __name__ == "__main__":
    main()
