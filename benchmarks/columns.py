"""Columns of string ids to Dr. MAS advantages, beside a dictionary loop; and the kernel at scale, beside NumPy.

    python benchmarks/columns.py [--rows 65536] [--traces 512] [--events 4000] [--repeats 9] [--output ...]

First: the rows of a trainer, two agents in groups of eight traces, from columns to an array in the order of the rows,
held to `benchmarks/dictionary_loop.py`. Second: the agent-wise advantage of traces of 300 agents, arrays in and out,
held to the same computation in NumPy and to a plain copy of the arrays. All contenders run one after another in every
round, so that a busy machine slows all alike; the medians are compared, and every sample is saved, of the wall clock
and of the time that the process had on its cores.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
from dictionary_loop import plain, tight

import credit
from graphs.atomic import atomic_write
from graphs.padding import Sizes, pad

AGENTS = 300
TURNS_A_TASK = 8
TARGETS = {"loop over categorical": 20.0, "loop over Arrow": 20.0, "loop over objects": 10.0}
SLOWEST_LOOP = 18e-6  # seconds a row: a slower one would make anything look fast
NUMPY_TARGET = 1.3


def columns(rows: int, seed: int) -> tuple[dict[str, list[str]], np.ndarray]:
    """Ids of rows, two agents a trace and eight traces a task, and the outcome of each row's trace."""
    trace = np.arange(rows) // 2
    task = trace // TURNS_A_TASK
    ids = {
        "group": [f"task-{i:06d}" for i in task],
        "trace": [f"trajectory-{i:08d}" for i in trace],
        "agent": [("planner", "solver")[i % 2] for i in range(rows)],
    }
    return ids, np.random.default_rng(seed).random(int(trace[-1]) + 1)[trace]


def of_columns(ids: dict[str, Any], reward: np.ndarray) -> np.ndarray:
    """What a trainer calls: columns in, an advantage for each row out."""
    graph, outcome, rows = credit.from_columns(**ids, reward=reward, events=len(reward))
    return np.asarray(rows.gather(credit.dr_mas(graph, outcome).advantage))


def team(traces: int, events: int, seed: int) -> tuple[credit.EventGraph, np.ndarray]:
    """Rows of traces of 300 agents in groups of eight, as an event graph without edges or padding."""
    rng = np.random.default_rng(seed)
    trace = np.repeat(np.arange(traces), events)
    agent = rng.integers(AGENTS, size=traces * events)
    names = np.array([f"worker_{i}" for i in range(AGENTS)])
    graph, reward, _ = credit.from_columns(
        group=trace // TURNS_A_TASK,
        trace=trace,
        agent=pa.DictionaryArray.from_arrays(agent, names),
        reward=rng.random(traces)[trace],
    )
    agents = int(np.sum(graph.agent_mask))
    return pad(graph, Sizes(traces * events, 8, agents, traces)), reward[:traces]


def with_numpy(graph: credit.EventGraph, reward: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """The same advantage in NumPy: keys of (task, agent name), two passes for the variance, float32.

    A key of one row keeps its reward, as in `dictionary_loop.plain`; few events for 300 agents leave such keys.
    """
    names = int(graph.agent_name_ids.max()) + 1
    key_of_agent = graph.group_ids[graph.agent_trace] * names + graph.agent_name_ids
    key = key_of_agent[graph.agent_ids]
    x = reward[graph.trace_ids]
    keys = int(key.max()) + 1
    n = np.bincount(key, minlength=keys)
    mean = np.where(n > 1, np.bincount(key, x, keys) / np.maximum(n, 1), 0)
    deviation = x - mean[key].astype(np.float32)
    squares = np.bincount(key, deviation * deviation, keys)
    scale = np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), 1) + eps
    return deviation / scale[key].astype(np.float32)


def copied(graph: credit.EventGraph, reward: np.ndarray) -> list[np.ndarray]:
    """A copy of every array that the computation reads."""
    read = (graph.trace_ids, graph.agent_ids, graph.event_mask, graph.action_mask)
    return [array.copy() for array in (*read, graph.agent_name_ids, graph.agent_trace, graph.group_ids, reward)]


def measure(contenders: dict[str, Callable[[], object]], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of each contender in each round, by the wall clock and of the process, after one that does not count."""
    samples: dict[str, dict[str, list[float]]] = {name: {"wall": [], "process": []} for name in contenders}
    for turn in range(repeats + 1):
        for name, run in contenders.items():
            wall, process = time.perf_counter(), time.process_time()
            jax.block_until_ready(run())
            seconds = {"wall": time.perf_counter() - wall, "process": time.process_time() - process}
            if turn:
                for clock, value in seconds.items():
                    samples[name][clock].append(value)
    return samples


def medians(samples: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    """Of each contender and clock."""
    return {name: {clock: statistics.median(s) for clock, s in clocks.items()} for name, clocks in samples.items()}


def main() -> None:
    """Run, print the ratios and save every sample; exit with 1 where the loop is too slow to be compared with."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=65_536)
    parser.add_argument("--traces", type=int, default=512)
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "columns.json")
    given = parser.parse_args()
    load = os.getloadavg()

    ids, reward = columns(given.rows, given.seed)
    amounts = reward.tolist()
    forms: dict[str, dict[str, Any]] = {
        "categorical": {name: pa.array(column).dictionary_encode() for name, column in ids.items()},
        "Arrow": {name: pa.array(column) for name, column in ids.items()},
        "objects": {name: np.array(column, object) for name, column in ids.items()},
    }
    expected = plain(ids["group"], ids["agent"], amounts)
    for name, form in forms.items():
        assert np.allclose(of_columns(form, reward), expected, atol=1e-5), name
    assert np.allclose(tight(ids["group"], ids["agent"], amounts), expected, atol=1e-5)
    rows = measure(
        {
            "loop": lambda: plain(ids["group"], ids["agent"], amounts),
            "tight loop": lambda: tight(ids["group"], ids["agent"], amounts),
            **{name: functools.partial(of_columns, form, reward) for name, form in forms.items()},
        },
        given.repeats,
    )

    graph, outcome = team(given.traces, given.events, given.seed)
    on_device, outcome_on_device = jax.device_put(graph), jnp.asarray(outcome)
    kernel = jax.jit(lambda graph, reward: credit.dr_mas(graph, reward).advantage)
    assert np.allclose(kernel(on_device, outcome_on_device), with_numpy(graph, outcome), atol=1e-4)
    scale = measure(
        {
            "kernel": lambda: kernel(on_device, outcome_on_device),
            "NumPy": lambda: with_numpy(graph, outcome),
            "copy": lambda: copied(graph, outcome),
        },
        given.repeats,
    )

    row_medians, scale_medians = medians(rows), medians(scale)
    a_row = row_medians["loop"]["process"] / given.rows  # a busy machine must not pass for a slow loop
    report: dict[str, Any] = {"ratios": {}}
    for clock in ("wall", "process"):
        loop = row_medians["loop"][clock]
        ratios = {f"loop over {name}": loop / row_medians[name][clock] for name in forms}
        ratios |= {
            f"tight loop over {name}": row_medians["tight loop"][clock] / row_medians[name][clock] for name in forms
        }
        ratios["kernel over NumPy"] = scale_medians["kernel"][clock] / scale_medians["NumPy"][clock]
        ratios["kernel over a copy"] = scale_medians["kernel"][clock] / scale_medians["copy"][clock]
        report["ratios"][clock] = ratios
        for name, ratio in ratios.items():
            print(f"{clock:>8} {name:>28} {ratio:7.2f}x")
    wall = report["ratios"]["wall"]
    for name, target in TARGETS.items():
        print(f"{name}: {wall[name]:.1f}x, wanted {target}x: {'met' if wall[name] >= target else 'NOT met'}")
    over = wall["kernel over NumPy"]
    verdict = "met" if over <= NUMPY_TARGET else "NOT met"
    print(f"kernel over NumPy: {over:.2f}x, wanted at most {NUMPY_TARGET}x: {verdict}")
    print(f"loop {a_row * 1e6:.1f} microseconds of the process a row, at most {SLOWEST_LOOP * 1e6:.0f}")
    report |= {
        "rows": given.rows,
        "traces": given.traces,
        "events": given.events,
        "agents": AGENTS,
        "repeats": given.repeats,
        "seed": given.seed,
        "seconds": {"rows": rows, "scale": scale},
        "medians": {"rows": row_medians, "scale": scale_medians},
        "targets": TARGETS | {"kernel over NumPy": NUMPY_TARGET},
        "loop, seconds a row": a_row,
        "load of the machine before and after": [load, os.getloadavg()],
        "device": f"CPU, {platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", "pyarrow", "jax")},
    }
    given.output.parent.mkdir(exist_ok=True)
    with atomic_write(given.output) as file:
        file.write(json.dumps(report, indent=1).encode() + b"\n")
    if a_row > SLOWEST_LOOP:
        raise SystemExit("the loop is too slow to be compared with")


if __name__ == "__main__":
    main()
