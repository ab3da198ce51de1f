"""Reading logs of other projects, beside msgspec decoding the same bytes: into the reader's own types, and into any.

    python benchmarks/formats.py [--megabytes 5] [--repeats 5] [--output benchmarks/results/formats.json]

Logs are written to a temporary folder: episodes of verifiers (two agents, six calls, token ids), a rollout dump of verl
(long texts), spans as OpenTelemetry's SDK dumps them (a team of three agents), and, for each format in which traces are
spread over lines, traces of three short lines. Reading (`credit.read`: checked arrays and tables) and decoding run in
one process, one after the other in every round, so that a busy machine slows both alike; the medians of the rounds are
compared.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from growth_formats import ROWS

from graphs.atomic import atomic_write
from graphs.formats.rollouts import rows
from graphs.formats.span_dumps import spans
from graphs.formats.verifiers import episodes
from graphs.logs import read

TARGET = 4.0
FEW = 100  # traces, whose size tells how many make the bytes asked for


def verifiers_episodes(traces: int, rng: np.random.Generator) -> list[Any]:
    """Episodes of a solver with four calls and a tool, and a judge with two."""
    return [
        {
            "id": f"e{i}",
            "env": {"id": "team"},
            "task": {"type": "Sum", "key": f"q{i // 8}", "data": {"prompt": "x" * 200}},
            "group": {"id": f"g{i // 8}"},
            "run": {"id": "run", "work": {"type": "train", "step": 7, "policy": {"start": 6, "end": 7}}},
            "ok": True,
            "traces": [
                _agent(f"e{i}-{name}", name, calls, float(i % 2), rng) for name, calls in (("solver", 4), ("judge", 2))
            ],
        }
        for i in range(traces)
    ]


def _agent(trace: str, name: str, calls: int, reward: float, rng: np.random.Generator) -> dict[str, Any]:
    nodes: list[dict[str, Any]] = [_node(None, {"role": "system", "content": "s" * 300}, 60, 0, rng)]
    nodes.append(_node(0, {"role": "user", "content": "u" * 300}, 60, 0, rng))
    for call in range(calls):
        asked = [{"id": f"c{call}", "name": "search", "arguments": "{}"}] if call + 1 < calls else []
        message = {"role": "assistant", "content": "a" * 400, "tool_calls": asked}
        nodes.append(_node(len(nodes) - 1, message, 4, 100, rng))
        if asked:
            answer = {"role": "tool", "tool_call_id": f"c{call}", "content": "t" * 300}
            nodes.append(_node(len(nodes) - 1, answer, 60, 0, rng))
    usage = {"prompt_tokens": 200, "completion_tokens": 100}
    made = [{"node": i, "model": "m", "usage": usage} for i, node in enumerate(nodes) if node["sampled"]]
    rewards = {"right": {"score": reward, "weight": 1.0}}
    return {"id": trace, "agent": {"name": name, "trainable": name == "solver"}, "nodes": nodes, "calls": made,
            "rewards": rewards, "metrics": {"turns": float(calls)}, "is_completed": True}  # fmt: skip


def _node(parent: int | None, message: Any, prompt: int, sampled: int, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "parent": parent,
        "message": message,
        "sampled": sampled > 0,
        "timestamp": 1.0,
        "token_ids": rng.integers(0, 150_000, prompt + sampled).tolist(),
        "mask": [False] * prompt + [True] * sampled,
        "logprobs": np.round(-rng.random(sampled), 5).tolist(),
    }


def verl_rows(traces: int, rng: np.random.Generator) -> list[Any]:
    """Rollouts of groups of eight, with texts of 2,000 and 4,000 characters."""
    return [
        {"input": f"{i // 8} " + "p" * 2000, "output": "o" * 4000, "gts": "42", "score": float(i % 2), "step": 3,
         "acc": bool(i % 2)}
        for i in range(traces)
    ]  # fmt: skip


def span_rows(traces: int, rng: np.random.Generator, *, nested: bool = True) -> list[Any]:
    """Spans of a lead with two workers; each agent has two calls and a tool.

    Spans within another one lie in its time, as those of one process do. Those of several machines may not (`nested`
    False: every span ends early).
    """
    out: list[Any] = []
    for i in range(traces):
        trace, number = f"{i + 1:032x}", iter(range(1, 99))

        def span(
            name: str,
            parent: str | None,
            at: int,
            last: int = 500,
            trace: str = trace,
            number: Any = number,
            **more: Any,
        ) -> str:
            own = f"{next(number):016x}"
            start = 1_786_569_488_000_000_000 + at
            out.append(
                {
                    "trace_id": trace, "span_id": own, "parent_span_id": parent, "name": name, "start_time": start,
                    "end_time": start + (last if nested else 500), "status": {"code": "OK"}, "span_events": [],
                    "attributes": {f"gen_ai.{key.replace('__', '.')}": value for key, value in more.items()},
                }
            )  # fmt: skip
            return own

        lead = span("invoke_agent lead", None, 0, 9900, operation__name="invoke_agent", agent__name="lead")
        for agent in (lead, *(span("invoke_agent worker", lead, 1000 * k, 7000, operation__name="invoke_agent",
                                   agent__name=f"worker {k}") for k in (1, 2))):  # fmt: skip
            for call in (1, 2):
                span("chat m", agent, 5000 + call, operation__name="chat", request__model="m",
                     usage__input_tokens=900, usage__output_tokens=120, input__messages="x" * 800)  # fmt: skip
            span("execute_tool search", agent, 7000, operation__name="execute_tool", tool__name="search")
    return out


def short_traces(name: str, traces: int, rng: np.random.Generator) -> list[Any]:
    """Traces of three lines in a format of `growth_formats.py`."""
    return [row for trace in range(traces) for row in ROWS[name](trace)]


ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
SHORT = ("otlp", "span dump", "langsmith", "langfuse", "openai agents", "agent lightning")
CASES: dict[str, tuple[Callable[[int, np.random.Generator], list[Any]], msgspec.json.Decoder[Any]]] = {
    "verifiers": (verifiers_episodes, episodes._EPISODE),
    "verl": (verl_rows, rows.ROW),
    "spans": (span_rows, spans.SPAN),
    "spans of several clocks": (functools.partial(span_rows, nested=False), spans.SPAN),
    **{f"{name}, three lines a trace": (functools.partial(short_traces, name), ANY) for name in SHORT},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "formats.json")
    given = parser.parse_args()
    results: dict[str, Any] = {
        "megabytes": given.megabytes, "repeats": given.repeats, "target": TARGET, "machine": platform.machine(),
        "load of the machine before": os.getloadavg(),
        "versions": {name: version(name) for name in ("msgspec", "numpy", "pyarrow", "jax")}, "formats": {},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, decoder) in CASES.items():
            path = Path(folder) / f"{name}.jsonl"
            a_few = sum(len(json.dumps(row)) + 1 for row in make(FEW, np.random.default_rng(0))) / FEW
            rows = make(max(FEW, round(given.megabytes * 1e6 / a_few)), np.random.default_rng(0))
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            results["formats"][name] = compare(path, decoder, given.repeats)
            print(name, results["formats"][name]["ratios"], results["formats"][name]["medians"])
    results["load of the machine after"] = os.getloadavg()
    with atomic_write(given.output) as file:
        file.write(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def compare(path: Path, decoder: msgspec.json.Decoder[Any], repeats: int) -> dict[str, Any]:
    """Medians of reading and of decoding in seconds, and their ratio, of the wall clock and of the processor."""
    ways: dict[str, Callable[[], Any]] = {
        "reading": lambda: read(path),
        "decoding": lambda: [decoder.decode(line) for line in path.read_bytes().splitlines()],
        "plain decoding": lambda: [ANY.decode(line) for line in path.read_bytes().splitlines()],
    }
    samples: dict[str, dict[str, list[float]]] = {clock: {way: [] for way in ways} for clock in ("wall", "process")}
    batch = read(path)  # what is imported late is there
    assert not batch.problems, batch.problems[:3]
    for _ in range(repeats):
        for way, run in ways.items():
            gc.collect()
            wall, process = time.perf_counter(), time.process_time()
            kept = run()
            samples["process"][way].append(time.process_time() - process)
            samples["wall"][way].append(time.perf_counter() - wall)
            del kept
    medians = {clock: {way: statistics.median(own) for way, own in ways.items()} for clock, ways in samples.items()}
    ratios = {
        f"{clock}, over {way}": own["reading"] / own[way]
        for clock, own in medians.items()
        for way in ("decoding", "plain decoding")
    }
    return {"bytes": path.stat().st_size, "events": batch.sizes.events, "ratios": ratios, "medians": medians,
            "samples": samples}  # fmt: skip


if __name__ == "__main__":
    main()
