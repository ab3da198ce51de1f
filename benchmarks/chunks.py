"""A folder larger than memory: peak memory and advantages in chunks of whole groups, at two sizes of the folder.

    python benchmarks/chunks.py [--gigabytes 20] [--chunk-events 200000] [--folder /tmp] [--output ...]

Each run is a process of its own that assigns Dr. MAS advantages; its peak memory counts above the level after it has
read and computed one small batch. Advantages are compared by a digest over traces, which no order changes: of the whole
folder in chunks of two sizes, and of a quarter of it in chunks and at once, which takes the memory of a large machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reading import multiply, write_logs

from graphs.atomic import atomic_write

ASSIGN = """
import hashlib, re, sys
import numpy as np
import credit
def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
warm = credit.read(sys.argv[2])
credit.dr_mas(warm.graph, warm.reward).advantage.block_until_ready()
del warm
before, digest, events = peak(), 0, 0
size = int(sys.argv[3])
for traces in credit.read_chunks(sys.argv[1], events=size) if size else [credit.read(sys.argv[1])]:
    advantage = np.asarray(credit.dr_mas(traces.graph, traces.reward).advantage)
    ids, n = np.asarray(traces.graph.trace_ids), traces.sizes
    ends = np.searchsorted(ids[: n.events], np.arange(n.traces + 1))
    for row, name in enumerate(traces.traces["trace"].to_pylist()):
        text = name.encode() + advantage[ends[row] : ends[row + 1]].tobytes()
        digest ^= int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")
    events += n.events
print(peak() - before, events, f"{digest:032x}")
"""


def assign(folder: Path, small: Path, chunk_events: int) -> dict[str, object]:
    """Growth of the peak memory, events, digest and seconds of one run, in chunks or, for 0 events, at once."""
    start = time.perf_counter()
    command = [sys.executable, "-c", ASSIGN, str(folder), str(small), str(chunk_events)]
    grown, events, digest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {"grown": int(grown), "events": int(events), "digest": digest, "seconds": time.perf_counter() - start}


def main() -> None:
    """Run, print and save; exit with 1 where the digests differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--chunk-events", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="where the logs are written; by default that of temporary files")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "chunks.json")
    given = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        base = Path(temporary) / "base"
        base.mkdir()
        size = write_logs(base, 24, 4000, 0)
        copies = max(4, round(given.gigabytes * 1e9 / size))
        small, runs = min(base.iterdir()), {}
        for name, share, ways in (
            ("quarter", copies // 4, {"": given.chunk_events, ", at once": 0}),
            ("whole", copies, {"": given.chunk_events, ", other chunks": given.chunk_events // 2}),
        ):
            folder = Path(temporary) / name
            folder.mkdir()
            multiply(base, folder, share)
            for way, events in ways.items():
                runs[name + way] = run = assign(folder, small, events) | {"bytes": share * size}
                print(f"{name + way:>20} {run}", flush=True)
            shutil.rmtree(folder)
    pairs = [("quarter", "quarter, at once"), ("whole", "whole, other chunks")]
    same = all(runs[a]["digest"] == runs[b]["digest"] for a, b in pairs)
    report = {
        "chunk events": given.chunk_events,
        "runs": runs,
        "identical advantages": same,
        "load of the machine before and after": [load, os.getloadavg()],
        "device": f"CPU, {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }
    given.output.parent.mkdir(exist_ok=True)
    with atomic_write(given.output) as file:
        file.write(json.dumps(report, indent=1).encode() + b"\n")
    if not same:
        raise SystemExit("advantages depend on the chunks")


if __name__ == "__main__":
    main()
