"""Reading native logs, beside decoding the same bytes and beside json + a dict an event + NetworkX.

    python benchmarks/reading.py [--megabytes 5] [--events 4000] [--repeats 9] [--output ...]

Traces of 300 agents with edges, times, roles, tools, values, tokens and content references are written to a temporary
folder in several forms: as our own writer has them, as one trace, as many short traces, and as other programs may write
them, with shuffled keys, unknown keys with escapes and nested objects, on one line or pretty-printed. All contenders
run in one process on one core, one after another in every round, so that a busy machine slows all alike; the medians of
the rounds are compared and every sample is saved, of the wall clock and of the time that the process had on its core,
since other work slows whatever runs longest. Peak memory is measured in processes of their own, above the level after
imports.

The decoder's contender keeps what it decodes, as the reader does: msgspec into the reader's own structs, with every
field that the reader returns.
"""

from __future__ import annotations

import argparse
import functools
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

import msgspec
import networkx as nx
import numpy as np

from graphs.atomic import atomic_write
from graphs.formats.native.wire import DECODER
from graphs.logs import read
from graphs.traces.cache import read_cache, write_cache

AGENTS = 300
EVENT_BYTES = 180  # of an event with its edges
TYPES = ("orchestrator_decision", "message", "tool_call", "tool_result", "message", "return")
TARGETS = {
    "reading over decoding": 0.4,
    "reading over plain decoding": 0.25,
    "reading over json and NetworkX": 5.0,
    "cache over reading": 5.0,
}
LIBRARIES = ("msgspec", "numpy", "pyarrow", "networkx", "jax")
FORMS = ("our own", "one trace", "short traces", "others'", "others', pretty-printed")

PEAK = """
import re, sys
from graphs.traces.cache import read_cache
from graphs.logs import read
from graphs.traces.batch import Traces
def peak():  # not getrusage, whose peak survives exec and would be the parent's
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
read(sys.argv[2])  # a few events: what is imported late is there, and the peak of that forgotten
open("/proc/self/clear_refs", "w").write("5")
before = peak()
traces = read(sys.argv[1])
kept = sum(a.nbytes for a in vars(traces.graph).values() if a is not None)
kept += sum(e.nbytes for e in traces.evidence.values())
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


def as_others_write(trace: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The trace with shuffled keys, and with keys that the format does not know: escaped texts, objects, lists."""
    for i, event in enumerate(trace["events"]):
        event["note"] = 'He said "fine": \\ path\n\t\u00e9' + rng.bytes(8).hex()
        if i % 3 == 0:
            event["meta"] = {"usage": {"in": int(rng.integers(99)), "out": [1, 2, {"x": None}]}, "label": "a: b"}
    lists = {key: [_shuffled(entry, rng) for entry in trace[key]] for key in ("events", "edges")}
    return _shuffled(trace | lists | {"run": {"config": {"seed": 1}, "tags": ["a", "b"]}}, rng)


def _shuffled(value: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {key: value[key] for key in rng.permutation(list(value)).tolist()}


def write_logs(folder: Path, traces: int, events: int, seed: int) -> int:
    """Write the logs, four traces a file, and return their bytes."""
    rng = np.random.default_rng(seed)
    size = 0
    for first in range(0, traces, 4):
        lines = [json.dumps(make_trace(i, events, rng)) for i in range(first, min(first + 4, traces))]
        size += (folder / f"{first:05d}.jsonl").write_text("\n".join(lines))
    return size


def write_form(folder: Path, form: str, size: int, events: int, seed: int) -> Path:
    """Write about so many bytes of logs in a form into a folder of their own."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    number = written = 0
    while written < size:
        if form == "short traces":
            texts = [json.dumps(make_trace(number + i, 8, rng)) for i in range(500)]
        elif form == "one trace":
            texts = [json.dumps(make_trace(0, size // EVENT_BYTES, rng))]
        elif form == "our own":
            texts = [json.dumps(make_trace(number + i, events, rng)) for i in range(4)]
        else:
            indent = 2 if form.endswith("printed") else None
            texts = [json.dumps(as_others_write(make_trace(number, events // 10, rng), rng), indent=indent)]
        path = folder / f"{number:05d}.jsonl"
        written += path.write_text("\n".join(texts))
        number += len(texts)
    return folder


def decode(folder: Path, decoder: msgspec.json.Decoder[Any] = DECODER) -> object:
    """Every trace as msgspec structs, or as what a decoder makes of it, kept."""
    contents = [file.read_bytes() for file in sorted(folder.iterdir())]
    lines = [[content] if content.startswith(b"{\n") else content.split(b"\n") for content in contents]
    return [decoder.decode(line) for of_file in lines for line in of_file]


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


def peak(path: Path, small: Path) -> tuple[int, int]:
    """Growth of the peak memory of reading `path`, and the bytes that its batch keeps; `small` is read before."""
    command = [sys.executable, "-c", PEAK, str(path), str(small)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, kept = done.stdout.split()
    return int(grown), int(kept)


def main() -> None:
    """Run, print the ratios and save every sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=5)
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "reading.json")
    given = parser.parse_args()
    load = os.getloadavg()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    samples: dict[str, dict[str, dict[str, list[float]]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for form in FORMS:
            logs = write_form(Path(temporary) / form, form, int(given.megabytes * 1e6), given.events, given.seed)
            contenders: dict[str, Callable[[], object]] = {
                "decode": functools.partial(decode, logs),
                "decode plainly": functools.partial(decode, logs, msgspec.json.Decoder()),
                "read": functools.partial(read, logs),
            }
            if form == FORMS[0]:
                cache = Path(temporary) / "cache.parquet"
                write_cache(read(logs), cache)
                contenders["json and NetworkX"] = functools.partial(with_networkx, logs)
                contenders["read cache"] = functools.partial(read_cache, cache)
                small = Path(temporary) / "small.json"
                small.write_text(json.dumps(make_trace(0, 10, np.random.default_rng(0))))
                (grown, kept), (grown_cache, _) = peak(logs, small), peak(cache, small)
                largest = max(file.stat().st_size for file in logs.iterdir())
            samples[form] = measure(contenders, given.repeats)
    medians = {
        form: {name: {clock: statistics.median(s) for clock, s in clocks.items()} for name, clocks in of_form.items()}
        for form, of_form in samples.items()
    }
    ratios: dict[str, dict[str, dict[str, float]]] = {}
    for form, median in medians.items():
        ratios[form] = {
            clock: {
                "reading over decoding": median["decode"][clock] / median["read"][clock],
                "reading over plain decoding": median["decode plainly"][clock] / median["read"][clock],
            }
            | (
                {
                    "reading over json and NetworkX": median["json and NetworkX"][clock] / median["read"][clock],
                    "cache over reading": median["read"][clock] / median["read cache"][clock],
                }
                if "read cache" in median
                else {}
            )
            for clock in ("wall", "process")
        }
        for clock, found in ratios[form].items():
            for name, ratio in found.items():
                verdict = "met" if ratio >= TARGETS[name] else "NOT met"
                print(f"{form:>24} {clock:>8} {name:>32} {ratio:6.2f}x, wanted {TARGETS[name]}x: {verdict}")
    sizes = f"the batch has {kept / 1e6:.0f} MB, the largest file {largest / 1e6:.0f} MB"
    print(f"peak memory {grown / 1e6:.0f} MB; {sizes}")
    report = {
        "megabytes": given.megabytes,
        "events": given.events,
        "repeats": given.repeats,
        "load of the machine before and after": [load, os.getloadavg()],
        "seed": given.seed,
        "seconds": samples,
        "medians": medians,
        "ratios": ratios,
        "targets": TARGETS,
        "memory": {"grown": grown, "kept": kept, "largest file": largest, "grown from the cache": grown_cache},
        "device": f"CPU, {platform.machine()}, {os.cpu_count()} cores, of which one is used",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
    }
    given.output.parent.mkdir(exist_ok=True)
    with atomic_write(given.output) as file:
        file.write(json.dumps(report, indent=1).encode() + b"\n")


if __name__ == "__main__":
    main()
