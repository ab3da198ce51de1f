"""Reading logs of other projects, beside msgspec decoding the same bytes: into the reader's own types, and into any.

    python benchmarks/formats.py [--megabytes 5] [--repeats 5] [--formats NAME ...] [--forms NAME ...]

Logs are written to a temporary folder: episodes of verifiers (two agents, six calls, token ids), a rollout dump of verl
(long texts), spans as OpenTelemetry's SDK dumps them (a team of three agents), and, for each format in which traces are
spread over lines, traces of three short lines. Each is written in several forms: as its program has it, a record a
line; "messy", with keys in any order and unknown ones with escapes and objects; messy as one indented list; and, where
records name their trace, all as one trace. Reading (`credit.read`: checked arrays and tables) and decoding run in one
process, the forms one after the other in every round, so that a busy machine slows all alike; the medians of the rounds
are compared. Results are kept by megabytes; a run replaces those of its own size and formats.
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
            own = f"{int(trace, 16):08x}{next(number):08x}"
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


UNKNOWN = {"zz note": 'He said "fine": \\ path\n\t\u00e9', "zz meta": {"usage": {"in": 3, "out": [1, {"x": None}]}}}
TRACE_KEYS = ("trace_id", "traceId")


def messy(value: Any, rng: np.random.Generator, *, unknown: bool = True) -> Any:
    """A record with keys in any order; it and each object in its lists also has keys that no format knows."""
    if isinstance(value, list):
        return [messy(part, rng) for part in value]
    if not isinstance(value, dict):
        return value
    parts = {key: messy(part, rng, unknown=False) for key, part in value.items()} | (UNKNOWN if unknown else {})
    return {key: parts[key] for key in rng.permutation(list(parts)).tolist()}


def of_one_trace(value: Any) -> Any:
    """A record whose trace is called `one`, wherever it names a trace."""
    if isinstance(value, list):
        return [of_one_trace(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: f"{1:032x}" if key in TRACE_KEYS else of_one_trace(part) for key, part in value.items()}


def as_lines(records: list[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def as_messy(records: list[Any]) -> list[Any]:
    return [messy(record, np.random.default_rng(number)) for number, record in enumerate(records)]


FORMS: dict[str, tuple[str, Callable[[list[Any]], str]]] = {
    "canonical": ("jsonl", as_lines),
    "messy": ("jsonl", lambda records: as_lines(as_messy(records))),
    "messy, indented": ("json", lambda records: json.dumps(as_messy(records), indent=2)),
    "one trace": ("jsonl", lambda records: as_lines(of_one_trace(records))),
}
ONE_TRACE = ("spans", "span dump, three lines a trace")
"""Those whose records say nothing of a trace but its name."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--formats", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "formats.json")
    given = parser.parse_args()
    results = json.loads(given.output.read_text()) if given.output.exists() else {}
    of_size = results.setdefault(f"{given.megabytes:g} MB", {})
    for name in given.formats:
        load = os.getloadavg()
        make, decoder = CASES[name]
        with tempfile.TemporaryDirectory() as folder:
            logs = {}
            for form, (suffix, text) in FORMS.items():
                if form in given.forms and (form != "one trace" or name in ONE_TRACE):
                    logs[form] = Path(folder) / f"{form}.{suffix}"
                    logs[form].write_text(a_few := text(make(FEW, np.random.default_rng(0))))
                    read(logs[form])  # what is imported late is there
                    traces = max(FEW, round(given.megabytes * 1e6 * FEW / len(a_few)))
                    logs[form].write_text(text(make(traces, np.random.default_rng(0))))
            of_size[name] = compare(logs, decoder, given.repeats) | {
                "repeats": given.repeats, "machine": platform.machine(),
                "load of the machine before and after": [load, os.getloadavg()],
                "versions": {library: version(library) for library in ("msgspec", "numpy", "pyarrow", "jax")},
            }  # fmt: skip
        for form, found in of_size[name]["forms"].items():
            print(name, form, found["ratios"], found["medians"], flush=True)
        with atomic_write(given.output) as file:
            file.write(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def compare(logs: dict[str, Path], decoder: msgspec.json.Decoder[Any], repeats: int) -> dict[str, Any]:
    """Medians of reading and of decoding in seconds, and their ratio, of the wall clock and of the processor."""
    listed = msgspec.json.Decoder(list[decoder.type])  # type: ignore[name-defined]

    def decode(path: Path, a_line: msgspec.json.Decoder[Any], a_list: msgspec.json.Decoder[Any]) -> Any:
        if path.suffix == ".json":
            return a_list.decode(path.read_bytes())
        return [a_line.decode(line) for line in path.read_bytes().splitlines()]

    ways: dict[str, Callable[[Path], Any]] = {
        "reading": read,
        "decoding": lambda path: decode(path, decoder, listed),
        "plain decoding": lambda path: decode(path, ANY, ANY),
    }
    clocks = ("wall", "process")
    samples = {form: {clock: {way: [0.0] * 0 for way in ways} for clock in clocks} for form in logs}
    events = {}
    for _ in range(repeats):
        for form, path in logs.items():
            for way, run in ways.items():
                gc.collect()
                wall, process = time.perf_counter(), time.process_time()
                kept = run(path)
                samples[form]["process"][way].append(time.process_time() - process)
                samples[form]["wall"][way].append(time.perf_counter() - wall)
                if way == "reading":
                    assert not kept.problems, (form, kept.problems[:3])
                    events[form] = kept.sizes.events
                del kept
    found = {}
    for form, path in logs.items():
        medians = {c: {way: statistics.median(own) for way, own in samples[form][c].items()} for c in clocks}
        ratios = {
            f"{clock}, over {way}": medians[clock]["reading"] / medians[clock][way]
            for clock in clocks
            for way in ("decoding", "plain decoding")
        }
        found[form] = {"bytes": path.stat().st_size, "events": events[form], "ratios": ratios, "medians": medians,
                       "samples": samples[form]}  # fmt: skip
    return {"target": TARGET, "forms": found}


if __name__ == "__main__":
    main()
