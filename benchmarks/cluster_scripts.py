"""What the processes of `clusters.py` run: one process, a Ray cluster, the stages of a sample, and a digest of rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# What every process begins with: the arguments, the clock, and the peak of its memory.
COMMON = """
import json, re, sys, time
from pathlib import Path
logs, small, output, size = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
METHOD = "dr_mas"
def peak(pid="self"):
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024
def warm(path):
    import credit
    traces = credit.read(path)
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
from credit.cli.advantages.assign_parts import assign_in_chunks
_, before = fresh_peak(small)
wall, process = time.perf_counter(), time.process_time()
written = assign_in_chunks(
    (logs,), str(output), METHOD, {}, (), events=size, actions_only=False, format_=None, columns=None, rewards=None,
    groups=None, group_by=None, reward_channel="team", limits=())
wall, process = time.perf_counter() - wall, time.process_time() - process
parts = written.counts["chunks"]
print(json.dumps({"seconds": wall, "process": process, "rows": written.rows, "parts": parts,
                  "grown": [peak() - before]}))
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
from graphs.logs.chunk_index import glance
from graphs.logs.chunks import read_chunks
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
chunks = read_chunks(logs, events=size, map_files=look_over)
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
