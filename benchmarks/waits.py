"""What people wait for: the first number of a command, the page of `credit report`, and a trainer's step.

    python benchmarks/waits.py [--rounds 3] [--output ...]

Commands are processes of their own, on one core and on two. Their cache of compiled functions is empty in the first
round ("cold") and full in the others ("warm"). Python's own bytecode is there, as pip leaves it. `validate` to
`summary` read 80 traces of 30 events, `report` reads 100 traces of 500 events with a text each.

A step goes from columns to advantages in the order of the rows, by `RowAdvantages("dr_mas")`. Beside it, in turns,
runs the same formula in NumPy as a user would write it: ids as integers, and sums by key. It checks nothing and states
no metrics.

Times are of the processor, since other work lengthens the clock's.
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
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import reading
from graphs.atomic import atomic_write

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "validate": ("validate",),
    "traces": ("traces",),
    "assign": ("assign", "--method", "rloo", "-o", "OUT/credit.parquet"),
    "summary": ("summary",),
    "report": ("report", "-o", "OUT/report.html"),
}
PACKAGES = ("credit", "estimators", "graphs")
SIZES = (1024, 8192, 65_536)
WORDS = ("the", "plan", "search", "finds", "a", "result", "of", "table", "and", "answers")


def write_logs(folder: Path, traces: int, events: int, seed: int) -> Path:
    """Native traces of 20 agents whose events have a text each, four a file."""
    rng, made = np.random.default_rng(seed), []
    folder.mkdir()
    for number in range(traces):
        trace = reading.make_trace(number, events, rng)
        for event in trace["events"]:
            event["agent"] = f"worker_{int(event['agent'].partition('_')[2]) % 20}"
            event.pop("to", None)
            event["text"] = " ".join(rng.choice(WORDS, size=30))
        made.append(json.dumps(trace))
    for first in range(0, traces, 4):
        (folder / f"{first:05d}.jsonl").write_text("\n".join(made[first : first + 4]))
    return folder


LAUNCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
"""Starts a process from a small one, since the peak of the memory of a process begins with that of its parent."""


def run(command: list[str], cores: set[int], cache: Path, root: Path = ROOT) -> dict[str, float]:
    """Processor and wall-clock seconds, and the peak memory in MB, of a process of a checkout on some cores."""
    begin = time.perf_counter()
    launched = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LAUNCH, *command],
        cwd=root,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    wall = time.perf_counter() - begin
    status, process, megabytes = map(float, launched.stdout.split())
    if status:
        raise SystemExit(f"{' '.join(command)} in {root} left with status {status:g}")
    return {"process": process, "wall": wall, "megabytes": megabytes}


def commands(folder: Path, rounds: int) -> dict[str, Any]:
    """Each command in rounds, on one core and on two: its samples, the first of them with an empty cache."""
    small, large = write_logs(folder / "small", 80, 30, 0), write_logs(folder / "large", 100, 500, 0)
    every = sorted(os.sched_getaffinity(0))
    compile_bytecode = [sys.executable, "-m", "compileall", "-q", *(str(ROOT / name) for name in PACKAGES)]
    subprocess.run(compile_bytecode, check=True)
    samples: dict[str, Any] = {}
    for _ in range(rounds):
        for count in (1, 2):
            for name, (verb, *options) in COMMANDS.items():
                arguments = [option.replace("OUT", str(folder)) for option in options]
                logs = large if name == "report" else small
                call = [sys.executable, "-m", "credit", verb, str(logs), *arguments]
                sample = run(call, set(every[:count]), folder / f"cache-{count}-{name}")
                samples.setdefault(f"{count} of the cores", {}).setdefault(name, []).append(sample)
    return samples


def _numbered(ids: Any) -> np.ndarray:
    """Ids from 0 on, by what is fastest for the form of the column: Arrow has a dictionary, NumPy sorts."""
    if hasattr(ids, "dictionary_encode"):
        return np.asarray(ids.dictionary_encode().indices)
    return np.unique(np.asarray(ids), return_inverse=True)[1]


def numpy_step(group: Any, agent: Any, reward: Any) -> np.ndarray:
    """Agent-wise normalised advantages, as `dr_mas`: each row against the rows of its task and agent."""
    task, name = map(_numbered, (group, agent))
    earned = np.asarray(reward, np.float64)
    key = task * (name.max() + 1) + name
    count = np.maximum(np.bincount(key), 1)
    above = earned - (np.bincount(key, earned) / count)[key]
    spread = np.sqrt(np.bincount(key, above * above) / np.maximum(count - 1, 1))
    return np.asarray(above / (spread[key] + 1e-6), np.float32)


def steps(rounds: int) -> dict[str, Any]:
    """Processor milliseconds of a step and of NumPy, by rows and by the form of the columns."""
    import pyarrow as pa

    from credit.integrations import RowAdvantages

    found: dict[str, Any] = {}
    for rows in SIZES:
        place = np.arange(rows)
        task, trace, agent = place // 16, place // 2, place % 2
        reward = np.random.default_rng(0).random(rows)[trace]
        texts = [[f"{word}-{i}" for i in ids.tolist()] for word, ids in (("q", task), ("t", trace), ("a", agent))]
        forms: dict[str, list[Any]] = {
            "lists": [*texts, reward.tolist()],
            "NumPy": [task, trace, agent, reward],
            "Arrow": [pa.array(column) for column in (*texts, reward)],
        }
        try:
            import torch
        except ImportError:
            pass  # the form is left out of the results
        else:
            forms["torch"] = [torch.from_numpy(column) for column in (task, trace, agent, reward)]
        advantages = RowAdvantages("dr_mas", rows=rows)
        advantages.warmup()
        for form, (groups, traces, agents, rewards) in forms.items():
            calls: dict[str, Callable[[], Any]] = {
                "step": lambda: advantages(group=groups, trace=traces, agent=agents, reward=rewards),  # noqa: B023
                "NumPy": lambda: numpy_step(groups, agents, rewards),  # noqa: B023
            }
            samples: dict[str, list[float]] = {name: [] for name in calls}
            for turn in range(rounds + 1):
                for name, call in calls.items():
                    begin = time.process_time()
                    call()
                    if turn:
                        samples[name].append(1e3 * (time.process_time() - begin))
            found.setdefault(str(rows), {})[form] = {
                name: {"median": statistics.median(spent), "least": min(spent)} for name, spent in samples.items()
            }
    return found


def main() -> None:
    """Measure, and write every sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "waits.json")
    asked = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as folder:
        samples = commands(Path(folder), asked.rounds)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # before JAX is imported
    report = {
        "commands": samples,
        "steps, milliseconds": steps(5 * asked.rounds),
        "rounds": asked.rounds,
        "load of the machine before and after": [load, os.getloadavg()],
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
    }
    with atomic_write(asked.output) as file:
        file.write((json.dumps(report, indent=1) + "\n").encode())
    print(json.dumps(report["steps, milliseconds"], indent=1))


if __name__ == "__main__":
    main()
