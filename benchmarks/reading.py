"""Reading native logs, beside decoding the same bytes and beside json + a dict an event + NetworkX.

    python benchmarks/reading.py [--traces 24] [--events 4000] [--repeats 9] [--copies 8] [--output ...]

Traces of 300 agents with edges, times, roles, tools, values, tokens and content references are written to a temporary
folder. All contenders run in one process, one after another in every round, so that a busy machine slows all alike; the
medians of the rounds are compared and every sample is saved, of the wall clock and of the time that the process had on
its cores, since other work slows whatever runs longest. Reading by threads is compared on `--copies` times the
folder, by the wall clock alone. Peak memory is measured in processes of their own, above the level after imports.

The decoder's contender keeps what it decodes, as the reader does: msgspec into the reader's own structs, with every
field that the reader returns. Native logs are read by the compiled loops of the extra `fast`, and beside them without.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from graphs.atomic import atomic_write
from graphs.formats.native.wire import DECODER
from graphs.logs import read
from graphs.traces.cache import read_cache, write_cache

AGENTS = 300
TYPES = ("orchestrator_decision", "message", "tool_call", "tool_result", "message", "return")
TARGETS = {
    "reading over decoding": 0.7,
    "reading by two threads over decoding": 1.2,
    "reading over json and NetworkX": 5.0,
    "cache over reading": 5.0,
    "cache over reading without loops": 5.0,
}
LIBRARIES = ("msgspec", "numba", "numpy", "pyarrow", "networkx", "jax")

PEAK = """
import re, sys
from graphs.traces.cache import read_cache
from graphs.logs import read
from graphs.traces.batch import Traces
def peak():  # not getrusage, whose peak survives exec and would be the parent's
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
compiled = sys.argv[2] == "compiled"
read(sys.argv[3], compiled=compiled)  # a few events: what is imported late is there, and the peak of that forgotten
open("/proc/self/clear_refs", "w").write("5")
before = peak()
traces = read(sys.argv[1], compiled=compiled)
kept = sum(a.nbytes for a in vars(traces.graph).values()) + sum(e.nbytes for e in traces.evidence.values())
kept += traces.events.nbytes + traces.agents.nbytes + traces.traces.nbytes
print(peak() - before, kept)
"""


def make_trace(number: int, events: int, rng: np.random.Generator) -> dict[str, Any]:
    """A trace of the native format with about one and a half edges an event."""
    listed: list[dict[str, Any]] = []
    edges: list[dict[str, str]] = []
    agents, others = rng.integers(AGENTS, size=events), rng.integers(AGENTS, size=events)
    for i in range(events):
        kind = TYPES[i % len(TYPES)]
        event = {"id": f"e{i}", "t": i / 4, "type": kind, "agent": f"worker_{agents[i]}", "role": "worker"}
        event["content_ref"] = rng.bytes(8).hex()
        if kind == "message":
            event["to"] = f"worker_{others[i]}"
        if kind.startswith("tool"):
            event["tool"] = "search"
        if kind != "tool_result":
            event |= {"value": round(float(rng.random()), 4), "tokens": int(rng.integers(500))}
        listed.append(event)
        if i:
            edges.append({"src": f"e{i - 1}", "dst": f"e{i}", "type": "temporal"})
        if i > 5 and i % 2:
            edges.append({"src": f"e{rng.integers(i - 1)}", "dst": f"e{i}", "type": "causal"})
    return {
        "trace_id": f"t{number}",
        "task_id": f"q{number // 8}",
        "events": listed,
        "edges": edges,
        "rewards": {"team": float(rng.random())},
        "costs": {"tokens": 1, "wall_clock_s": 1.0},
    }


def write_logs(folder: Path, traces: int, events: int, seed: int) -> int:
    """Write the logs, four traces a file, and return their bytes."""
    rng = np.random.default_rng(seed)
    size = 0
    for first in range(0, traces, 4):
        lines = [json.dumps(make_trace(i, events, rng)) for i in range(first, min(first + 4, traces))]
        size += (folder / f"{first:05d}.jsonl").write_text("\n".join(lines))
    return size


def decode(folder: Path) -> object:
    """Every line as msgspec structs, kept."""
    return [DECODER.decode(line) for file in sorted(folder.iterdir()) for line in file.read_bytes().split(b"\n")]


def with_networkx(folder: Path) -> object:
    """Every trace as a NetworkX graph with a dict an event: what one would write without this library."""
    graphs = []
    for file in sorted(folder.iterdir()):
        for line in file.read_bytes().split(b"\n"):
            trace = json.loads(line)
            graph = nx.MultiDiGraph(id=trace["trace_id"], group=trace["task_id"], reward=trace["rewards"]["team"])
            for event in trace["events"]:
                graph.add_node(event["id"], **event)
            for edge in trace["edges"]:
                graph.add_edge(edge["src"], edge["dst"], type=edge["type"])
            graphs.append(graph)
    return graphs


def measure(contenders: dict[str, Callable[[], object]], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of each contender in each round, by the wall clock and of the process, after one that does not count."""
    samples: dict[str, dict[str, list[float]]] = {name: {"wall": [], "process": []} for name in contenders}
    for turn in range(repeats + 1):
        for name, run in contenders.items():
            wall, process = time.perf_counter(), time.process_time()
            kept = run()
            seconds = {"wall": time.perf_counter() - wall, "process": time.process_time() - process}
            del kept
            if turn:
                for clock, value in seconds.items():
                    samples[name][clock].append(value)
    return samples


def multiply(folder: Path, into: Path, copies: int) -> None:
    """Copies of a folder's files with ids of their own."""
    for copy in range(copies):
        for file in sorted(folder.iterdir()):
            text = file.read_bytes()
            for key in (b"trace_id", b"task_id"):
                text = text.replace(b'"%s": "' % key, b'"%s": "%d-' % (key, copy))
            (into / f"{copy:03}-{file.name}").write_bytes(text)


def peak(path: Path, way: str, small: Path) -> tuple[int, int]:
    """Growth of the peak memory of reading `path`, and the bytes that its batch keeps; `small` is read before."""
    command = [sys.executable, "-c", PEAK, str(path), way, str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, kept = done.stdout.split()
    return int(grown), int(kept)


def main() -> None:
    """Run, print the ratios and save every sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=24)
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--repeats-of-copies", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "reading.json")
    given = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as temporary:
        logs, cache = Path(temporary) / "logs", Path(temporary) / "cache.parquet"
        logs.mkdir()
        size = write_logs(logs, given.traces, given.events, given.seed)
        traces = read(logs, compiled=True)
        write_cache(traces, cache)
        sizes, cached = traces.sizes._asdict(), cache.stat().st_size
        del traces
        samples = measure(
            {
                "decode": lambda: decode(logs),
                "read": lambda: read(logs, compiled=True),
                "read without loops": lambda: read(logs, compiled=False),
                "json and NetworkX": lambda: with_networkx(logs),
                "read cache": lambda: read_cache(cache),
            },
            given.repeats,
        )
        many = Path(temporary) / "many"
        many.mkdir()
        multiply(logs, many, given.copies)
        samples |= measure(
            {
                "decode copies": lambda: decode(many),
                "read copies by two threads": lambda: read(many, compiled=True),
            },
            given.repeats_of_copies,
        )
        small = Path(temporary) / "small.json"
        small.write_text(json.dumps(make_trace(0, 10, np.random.default_rng(0))))
        (grown, kept), (grown_structs, _) = peak(logs, "compiled", small), peak(logs, "structs", small)
        grown_cache, _ = peak(cache, "structs", small)
        largest = max(file.stat().st_size for file in logs.iterdir())
    median = {name: {clock: statistics.median(s) for clock, s in clocks.items()} for name, clocks in samples.items()}
    ratios = {
        clock: {
            "reading over decoding": median["decode"][clock] / median["read"][clock],
            "reading without loops over decoding": median["decode"][clock] / median["read without loops"][clock],
            "reading over json and NetworkX": median["json and NetworkX"][clock] / median["read"][clock],
            "cache over reading": median["read"][clock] / median["read cache"][clock],
            "cache over reading without loops": median["read without loops"][clock] / median["read cache"][clock],
        }
        for clock in ("wall", "process")
    }
    ratio = median["decode copies"]["wall"] / median["read copies by two threads"]["wall"]
    ratios["wall"]["reading by two threads over decoding"] = ratio
    memory = {
        "grown": grown,
        "kept": kept,
        "largest file": largest,
        "grown without loops": grown_structs,
        "grown from the cache": grown_cache,
    }
    for name, clocks in median.items():
        shown = ", ".join(f"{seconds:.3f} s ({clock})" for clock, seconds in clocks.items())
        print(f"{name:>20} {shown}")
    for clock, found in ratios.items():
        for name, ratio in found.items():
            wanted = TARGETS.get(name)
            verdict = "" if wanted is None else f", wanted {wanted}x: {'met' if ratio >= wanted else 'NOT met'}"
            print(f"{clock:>8} {name:>40} {ratio:6.2f}x{verdict}")
    bound = 3 * kept + largest
    verdict = "met" if grown <= bound else "NOT met"
    print(f"peak memory {grown / 1e6:.0f} MB, wanted at most {bound / 1e6:.0f} MB: {verdict}")
    report = {
        "sizes": sizes,
        "bytes": size,
        "cache bytes": cached,
        "repeats": given.repeats,
        "copies": given.copies,
        "load of the machine before and after": [load, os.getloadavg()],
        "seed": given.seed,
        "seconds": samples,
        "medians": median,
        "ratios": ratios,
        "targets": TARGETS,
        "memory": memory,
        "device": f"CPU, {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }
    given.output.parent.mkdir(exist_ok=True)
    with atomic_write(given.output) as file:
        file.write(json.dumps(report, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
