"""Every method at the design point as multiples of one segment sum; comparison keys; GAE beside rlax's.

    python benchmarks/methods.py [speed|gae|growth|keys] ...     (default: all)
    python benchmarks/methods.py large=grpo,dr_mas                (16 times the traces, where a GPU's calls are no part)
    python benchmarks/methods.py speed=gigpo,marshal growth=c3     (measures these rows of the tables again)
    python benchmarks/methods.py keys=FOLDER                  (beside the checkout of an earlier commit, round by round)

512 traces of 4,000 events and 300 agents, groups of 8. A method and the segment sum that it is measured against run in
turns, so that other work on the machine slows both; figures are medians. Results go to benchmarks/results/methods.json,
section by section, those of another device than a processor to methods_gpu.json. The site puts them into docs/speed.md.

"Share of bandwidth" is the time in which the device copies as many bytes as a method's arguments and results have, over
the method's time: 1 would be a kernel that reads and writes each of them once.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import credit
from estimators import group_relative
from estimators.tokens.rows import gae as block_gae
from graphs import EventGraph, EventType
from graphs.traces.schema import EVENT_EVIDENCE

RESULTS = Path(__file__).parent / "results"
TRACES, LENGTH, AGENTS, GROUP = 512, 4000, 300, 8
REPEATS = 5
BRANCHING = 3  # decisions of a trace at which its group of 8 branches in two
SIZES = {1024: (16, 64, 8), 102_400: (128, 800, 40), 1_024_000: (512, 2000, 300)}
"""Traces, their length and their agents by numbers of events, for keys."""
GROWTH = {16_384: (64, 256, 32), 262_144: (256, 1024, 64), 4_194_304: (1024, 4096, 300)}
"""The same for the growth of each method."""
ROUNDS, PAIRS = 11, 9
KNOWN_KEYS = (None, "agent_name", "role_name")
KEYS = ("task", "task,agent", "task,agent,turn", "task,role,depth,turn")
SLOW = 60  # segment sums; no method takes longer


def _order(graph: EventGraph, _: Any) -> Any:
    from graphs.stable_order import stable_order  # late: earlier commits, beside which this one runs, lack it

    return stable_order(graph.agent_ids)


PRIMITIVES: dict[str, Callable[[Any, Any], Any]] = {"sort": _order}
"""What methods are made of: the order of events by agent."""


def graph_of(traces: int = TRACES, length: int = LENGTH, agents: int = AGENTS) -> EventGraph:
    """All events are actions; an agent acts four times running, the first spawned the others."""
    n, place = traces * length, np.arange(length)
    acting = (place // 4 * 7) % agents
    trace = np.repeat(np.arange(traces, dtype=np.int32), length)
    owner = np.repeat(np.arange(traces, dtype=np.int32), agents)
    return EventGraph(
        event_type=np.full(n, int(EventType.MESSAGE), np.int32),
        action_mask=np.ones(n, bool),
        event_mask=np.ones(n, bool),
        time=np.full(n, np.nan, np.float32),
        trace_ids=trace,
        agent_ids=(trace * agents + np.tile(acting, traces)).astype(np.int32),
        turn_ids=(trace * (length // 4) + np.tile(place // 4, traces)).astype(np.int32),
        senders=np.zeros(8, np.int32),
        receivers=np.zeros(8, np.int32),
        edge_type=np.zeros(8, np.int32),
        edge_mask=np.zeros(8, bool),
        agent_name_ids=np.tile(np.arange(agents, dtype=np.int32) % 10, traces),
        agent_role_ids=np.tile(np.arange(agents, dtype=np.int32) % 3, traces),
        agent_parent=(owner * agents).astype(np.int32),
        agent_trace=owner,
        agent_mask=np.ones(traces * agents, bool),
        group_ids=(np.arange(traces) // GROUP).astype(np.int32),
        trace_mask=np.ones(traces, bool),
    )


def evidence_of(graph: EventGraph, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Something for every name that a method of the table needs."""
    n, trace = graph.num_events, np.asarray(graph.trace_ids)
    length = n // graph.num_traces
    place = np.arange(n) - trace.astype(np.int64) * length
    leaf, group = trace % GROUP, trace // GROUP
    # A replay tree: at its first decisions a group branches in two; from then on every trace is alone.
    depth = np.minimum(place + 1, BRANCHING)
    after = np.where(place < BRANCHING, (group * GROUP + (leaf >> (BRANCHING - depth))) * length + place, np.arange(n))
    before = np.where(place < BRANCHING, (group * GROUP + (leaf >> (BRANCHING - depth + 1))) * length + place, after)
    floats = {
        name: rng.uniform(0.1, 0.9, n).astype(np.float32) for name, key in EVENT_EVIDENCE.items() if key.kind == "float"
    }
    half = np.full(n, 0.5, np.float32)
    return {
        **floats,
        "context": before.astype(np.int32),
        "node": after.astype(np.int32),
        "alternative": after.astype(np.int32),
        "completion": after.astype(np.int32),
        "propensity": half,
        "target_propensity": half,
        "anchor": (group * 97 + place % 97).astype(np.int32),
        "block": (trace // 5).astype(np.int32),
        "stage": (place // 40).astype(np.int32),
        "env_step": (place // 4).astype(np.int32),
        "segment": (trace * (length // 40 + 1) + place // 40).astype(np.int32),
        "tree": (np.arange(graph.num_traces) // 2).astype(np.int32),
        "tokens": rng.integers(1, 200, n).astype(np.int32),
        "greedy_reward": rng.uniform(size=graph.num_traces).astype(np.float32),
    }


def copy_bandwidth() -> float:
    """Bytes a second, read and written, of a copy of 2^26 floats: the best of several."""
    values = jnp.zeros(2**26, jnp.float32)
    copy = jax.jit(lambda x: x + 1)
    jax.block_until_ready(copy(values))
    spent = []
    for _ in range(10):
        start = time.perf_counter()
        jax.block_until_ready(copy(values))
        spent.append(time.perf_counter() - start)
    return 2 * values.nbytes / min(spent)


def interleaved(calls: dict[str, Callable[[], Any]], reference: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Median seconds of each call, and its median multiple of the reference timed right before and after it.

    Seconds of the processor, of all its cores, are there too: other work on the machine does not count in them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    processor: dict[str, list[float]] = {name: [] for name in calls}
    multiples: dict[str, list[float]] = {name: [] for name in calls}

    def timed(call: Callable[[], Any]) -> float:
        start = time.perf_counter()
        jax.block_until_ready(call())
        return time.perf_counter() - start

    for call in (*calls.values(), reference):
        timed(call)  # compiles
    base: list[float] = []
    for _ in range(repeats):
        for name, call in calls.items():
            around = [timed(reference)]
            before = time.process_time()
            spent = timed(call)
            processor[name].append(time.process_time() - before)
            around.append(timed(reference))
            base += around
            seconds[name].append(spent)
            multiples[name].append(spent / statistics.mean(around))
    return {
        "segment_sum seconds": round(statistics.median(base), 5),
        "methods": {
            name: {
                "seconds": round(statistics.median(seconds[name]), 6),
                "processor seconds": round(statistics.median(processor[name]), 6),
                "multiple": round(statistics.median(m), 1),
                "load": round(os.getloadavg()[0], 1),
            }
            for name, m in sorted(multiples.items(), key=lambda item: statistics.median(item[1]))
        },
    }


def speed(
    only: tuple[str, ...] = (), traces: int = TRACES, length: int = LENGTH, agents: int = AGENTS
) -> dict[str, Any]:
    """Each method of the table, with event rewards, as a multiple of one segment sum over the same events."""
    rng = np.random.default_rng(0)
    graph = graph_of(traces, length, agents)
    evidence = {name: jnp.asarray(values) for name, values in evidence_of(graph, rng).items()}
    reward = jnp.asarray(rng.uniform(size=traces).astype(np.float32))
    step = jnp.asarray(np.where(rng.random(graph.num_events) < 0.05, 0.1, 0).astype(np.float32))
    graph = jax.tree.map(jnp.asarray, graph)
    total = jax.jit(lambda x, ids: jax.ops.segment_sum(x, ids, num_segments=traces))

    moved: dict[str, int] = {}  # bytes of arguments and results

    def bind(name: str) -> Callable[[], Any]:
        if name in PRIMITIVES:
            primitive = jax.jit(PRIMITIVES[name])
            return lambda: primitive(graph, step)
        method = credit.METHODS[name]
        given = {key: evidence[key] for key in method.needs}
        fn = jax.jit(lambda g, r, e, extra: method.fn(g, r, event_reward=e, **extra).advantage)
        compiled = fn.lower(graph, reward, step, given).compile()
        sizes = compiled.memory_analysis()  # arguments that nothing reads are not among them
        moved[name] = sizes.argument_size_in_bytes + sizes.output_size_in_bytes
        return lambda: compiled(graph, reward, step, given)

    names = [name for name, m in credit.METHODS.items() if set(m.needs) <= set(evidence)]
    names = [name for name in (*PRIMITIVES, *names) if name in only] if only else names
    found: dict[str, Any] = {"bytes a second of a copy": copy_bandwidth()}
    for at in range(0, len(names), 6):  # a few at a time, since each holds its compiled arrays
        calls = {name: bind(name) for name in names[at : at + 6]}
        part = interleaved(calls, lambda: total(step, graph.trace_ids), REPEATS)
        found.setdefault("segment_sum seconds", []).append(part["segment_sum seconds"])
        for name, row in part["methods"].items():
            row["nanoseconds an event"] = round(1e9 * row["seconds"] / graph.num_events, 2)
            share = moved.get(name, 0) / found["bytes a second of a copy"] / row["seconds"]
            row["share of bandwidth"] = round(share, 3)
        found.setdefault("methods", {}).update(part["methods"])
        print(json.dumps(part["methods"]), flush=True)
        jax.clear_caches()
    found["segment_sum seconds"] = statistics.median(found["segment_sum seconds"])
    found["methods"] = dict(sorted(found["methods"].items(), key=lambda item: item[1]["multiple"]))
    return {"traces": traces, "events": graph.num_events, "agents": agents, "repeats": REPEATS, **found}


def growth(only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Nanoseconds an event of each method by the number of events, and the exponent of its time over all of them.

    On a processor they are those of its cores, elsewhere those of the clock.
    """
    of = "processor seconds" if jax.default_backend() == "cpu" else "seconds"
    found: dict[str, Any] = {}
    for events, shape in GROWTH.items():
        for name, row in speed(only, *shape)["methods"].items():
            found.setdefault(name, {})[str(events)] = round(1e9 * row[of] / events, 2)
    for row in found.values():
        (least, first), *_, (most, last) = ((int(events), spent) for events, spent in row.items())
        row["exponent"] = round(1 + math.log(last / first) / math.log(most / least), 3)
    return {"unit": f"nanoseconds an event, {of}", "methods": found}


def by_keys(events: int, named: tuple[str | None, ...]) -> tuple[dict[str, Callable[[], Any]], Callable[[], Any]]:
    """A leave-one-out mean by each key over traces and rows of so many events, and a segment sum over them."""
    traces, length, agents = SIZES[events]
    graph = jax.tree.map(jnp.asarray, graph_of(traces, length, agents))
    reward = jnp.asarray(np.random.default_rng(0).uniform(size=traces).astype(np.float32))
    total = jax.jit(lambda x, ids: jax.ops.segment_sum(x, ids, num_segments=traces))
    step = jnp.ones(graph.num_events, jnp.float32)

    def bind(by: Any, population: Any) -> Callable[[], Any]:
        compared = functools.partial(group_relative, baseline="leave_one_out", by=by, population=population)
        return lambda: compared(graph, reward).advantage

    calls = {f"{by or 'task'}, {population}": bind(by, population) for by in named for population in ("trace", "row")}
    return calls, functools.partial(total, step, graph.trace_ids)


def measure_on_demand(events: int) -> None:
    """Processor seconds of a call by each known key, as a line of JSON for each line of the input."""
    calls, _ = by_keys(events, KNOWN_KEYS)
    repeats = max(1, 200_000 // events)  # a call of 1,024 events takes less than the clock and the dispatch vary
    for call in calls.values():
        jax.block_until_ready(call())  # compiles
    for _ in sys.stdin:
        spent = {}
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats):
                jax.block_until_ready(call())
            spent[name] = (time.process_time() - start) / repeats
        print(json.dumps(spent), flush=True)


def beside_earlier(events: int, before: str) -> dict[str, Any]:
    """Processor time of the known keys as multiples of an earlier checkout's: the median over pairs of processes.

    The two processes of a pair take turns. Several pairs are needed: where a process happens to have its arrays decides
    up to half of its time, for as long as it lives.
    """
    found: list[dict[str, float]] = []
    for pair in range(PAIRS):
        folders = (before, str(Path(__file__).parents[1]))
        workers = {
            folder: subprocess.Popen(
                [sys.executable, __file__, f"known-keys={events}"],
                env=os.environ | {"PYTHONPATH": folder},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for folder in (folders if pair % 2 else reversed(folders))
        }
        rounds: list[dict[str, dict[str, float]]] = []
        for _ in range(ROUNDS + 1):
            rounds.append({})
            for folder, worker in workers.items():
                assert worker.stdin is not None and worker.stdout is not None
                worker.stdin.write("go\n")
                worker.stdin.flush()
                rounds[-1][folder] = json.loads(worker.stdout.readline())
        for worker in workers.values():
            worker.communicate()
        del rounds[0]  # caches are cold in the first round
        first, now = ([turn[folder] for turn in rounds] for folder in folders)
        found.append(
            {
                name: statistics.median(turn[name] for turn in now) / statistics.median(turn[name] for turn in first)
                for name in first[0]
            }
        )
    return {
        name: {
            "median": round(statistics.median(pair[name] for pair in found), 2),
            "least": round(min(pair[name] for pair in found), 2),
            "most": round(max(pair[name] for pair in found), 2),
        }
        for name in found[0]
    }


def keys(before: str = "") -> Iterator[dict[str, Any]]:
    """Keys of one part to four; those that an earlier commit has, in processes of each in turns. After each size."""
    found: dict[str, Any] = {"pairs": PAIRS, "rounds": ROUNDS} if before else {}
    for events in SIZES:
        if before:
            found.setdefault("multiples of an earlier commit's time", {})[str(events)] = beside_earlier(events, before)
            yield found
        calls, total = by_keys(events, KEYS)
        part = interleaved(calls, total, REPEATS)["methods"]
        multiples = {name: row["multiple"] for name, row in part.items()}
        found.setdefault("multiples of a segment sum", {})[str(events)] = multiples
        yield found


def gae() -> dict[str, Any]:
    """Generalised advantages of one block [512, 4000] by rlax and by this library, and of the flat batch."""
    import rlax

    rng = np.random.default_rng(0)
    values = jnp.asarray(rng.normal(size=(TRACES, LENGTH + 1)).astype(np.float32))
    rewards = jnp.asarray(rng.normal(size=(TRACES, LENGTH)).astype(np.float32))
    mask = jnp.ones((TRACES, LENGTH), bool)
    graph = jax.tree.map(jnp.asarray, graph_of())
    reward, flat = jnp.zeros(TRACES, jnp.float32), rewards.ravel()
    value = values[:, :-1].ravel()
    theirs = jax.jit(
        jax.vmap(lambda r, v: rlax.truncated_generalized_advantage_estimation(r, jnp.full(LENGTH, 0.99), 0.95, v))
    )
    ends, before = values.at[:, -1].set(0), values[:, :-1]
    block = jax.jit(lambda r, v, there: block_gae(r, v, there, 0.99, 0.95)[0])  # rlax gives no returns either
    calls = {
        "block": lambda: block(rewards, before, mask),
        "flat": lambda: (
            credit.gae(graph, reward, value=value, event_reward=flat, discount=0.99, lambda_=0.95).advantage
        ),
    }
    expected = np.asarray(theirs(rewards, ends))
    np.testing.assert_allclose(np.asarray(calls["block"]()), expected, rtol=1e-3, atol=2e-3)
    np.testing.assert_allclose(np.asarray(calls["flat"]()).reshape(expected.shape), expected, rtol=1e-3, atol=2e-3)
    found = interleaved(calls, lambda: theirs(rewards, ends), 3 * REPEATS)
    lengths = np.clip(np.exp(rng.normal(np.log(LENGTH / 4), 0.8, TRACES)), 10, LENGTH)
    return {
        "shape": [TRACES, LENGTH],
        "rlax seconds": found["segment_sum seconds"],
        "multiples of rlax": {name: m["multiple"] for name, m in found["methods"].items()},
        "padding of a block of lognormal lengths": round(float(1 - lengths.mean() / LENGTH), 3),
        "padding of the same batch flat": 0.0,
    }


def results_file() -> Path:
    """Where the results of this device are."""
    platform_name = jax.default_backend()
    return RESULTS / ("methods.json" if platform_name == "cpu" else f"methods_{platform_name}.json")


def record(results: dict[str, Any]) -> None:
    """Write the results; a method that is slow on a processor without a reason is an error."""
    rows = results.get("speed", {}).get("methods", {}) if jax.default_backend() == "cpu" else {}
    for name, row in rows.items():
        if row["multiple"] > SLOW:
            raise SystemExit(
                f"{name} takes {row['multiple']} segment sums: make it faster, or say why on docs/speed.md"
            )
    results_file().write_text(json.dumps(results, indent=1) + "\n")


def main(sections: list[str]) -> None:
    large = functools.partial(speed, traces=16 * TRACES)
    known: dict[str, Callable[..., dict[str, Any]]] = {"speed": speed, "gae": gae, "growth": growth, "large": large}
    results = json.loads(results_file().read_text()) if results_file().exists() else {}

    def keep(name: str, found: dict[str, Any]) -> None:
        results[name] = found | {
            "load": [round(x, 1) for x in os.getloadavg()],
            "device": f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores, {platform.machine()}",
            "versions": {p: importlib.metadata.version(p) for p in ("jax", "jaxlib", "numpy")},
        }
        print(json.dumps({name: results[name]}, indent=1), flush=True)
        record(results)

    for section in sections or ["speed", "gae", "growth", "keys"]:
        name, _, rows = section.partition("=")
        if name == "known-keys":
            measure_on_demand(int(rows))
        elif name == "keys":
            for found in keys(rows):
                keep(name, found)
        else:
            found = known[name](tuple(rows.split(","))) if rows else known[name]()
            if rows:
                stored = results.get(name, {}).get("methods", {})
                known_rows = (*credit.METHODS, *PRIMITIVES)
                measured = {row: figures for row, figures in stored.items() if row in known_rows} | found["methods"]
                order = "exponent" if name == "growth" else "multiple"
                found["methods"] = dict(sorted(measured.items(), key=lambda item: item[1][order]))
            keep(name, found)


if __name__ == "__main__":
    main(sys.argv[1:])
