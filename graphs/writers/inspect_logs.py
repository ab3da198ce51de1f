"""Writer of advantages into logs of Inspect AI.

Each event of a sample has a slot `metadata` for what others know of it. A model call's advantage goes there, so that
Inspect's viewer and its data frames show it beside the call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphs.atomic import atomic_folder, atomic_write
from graphs.errors import CreditError, Problem, TraceError
from graphs.formats.inspect_ai import header_of, samples_of
from graphs.reading.documents import stem
from graphs.reading.source import Source
from graphs.traces.batch import Traces
from graphs.writers.valid_advantages import valid_advantages

__all__ = ["KEY", "write"]

KEY = "orchestration_credit.advantage"
"""Name of an advantage in the metadata of an event."""


def write(
    traces: Traces, advantage: np.ndarray | Sequence[float], valid: np.ndarray | Sequence[bool], folder: str | Path
) -> int:
    """Write a copy of each log of a batch, as `NAME.json`, with the advantage of each model call in its metadata.

    Events without a valid advantage get none, and lose one that the log had from before. Everything else of the log is
    unchanged. An `.eval` becomes Inspect's JSON form of the same log.

    Args:
      traces: samples that `credit.read` read from files; all of the format "inspect-ai".
      advantage: float [E], advantage of each event.
      valid: bool [E], True where the advantage is valid.
      folder: where the copies go; it is made if it is not there.

    Returns:
      The number of events with an advantage.

    Raises:
      CreditError: a trace has another format or is from standard input, two logs have one name, an array is too short,
        a valid advantage is not finite, or a sample of the batch is no longer in its file.
      OSError: a file cannot be read or written.
    """
    numbers = valid_advantages(traces, np.asarray(advantage), np.asarray(valid), "inspect-ai")
    files = list(dict.fromkeys(traces.traces["file"].to_pylist()))
    names = {stem(file, ".eval"): file for file in files}
    if len(names) < len(files):
        twice = next(file for file in files if names[stem(file, ".eval")] != file)
        raise CreditError(f"{twice!r} has the name of {names[stem(twice, '.eval')]!r}; expected one name a log")
    waiting, filled = set(numbers), 0
    with atomic_folder(folder) as new:
        for name, file in names.items():
            log, samples = _log(file)
            for sample in samples:
                trace = f"{name}/{sample['id']}/{sample['epoch']}"
                of_sample = numbers[trace] if trace in waiting else {}
                waiting.discard(trace)
                for event_id, event in _events(sample):
                    filled += _fill(event, of_sample.get(event_id))
            log["samples"] = samples
            with atomic_write(new / f"{name}.json") as out:
                out.write(json.dumps(log, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if waiting:
            raise CreditError(f"sample {min(waiting)!r} is not in its file; expected the files as read")
    return filled


def _log(file: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A log without its samples, and its samples."""
    source = Source(file, Path(file))
    try:
        header: dict[str, Any] = json.loads(header_of(source))
        samples: list[dict[str, Any]] = []
        for raw in samples_of(source):
            if isinstance(raw, Problem):
                raise CreditError(str(raw))
            samples.append(json.loads(raw))
    except TraceError as error:
        raise CreditError(str(error.problem)) from error
    header.setdefault("status", "started")  # a log that ends before its header has none
    return header, samples


def _events(sample: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a sample, those inside other events included, each with the id that the reader gives it."""
    outer = sample["events"] if sample.get("events") else (sample.get("transcript") or {}).get("events")
    waiting = [("", outer or [])]
    while waiting:
        prefix, events = waiting.pop()
        for index, event in enumerate(events):
            yield f"{prefix}{index}", event
            if event.get("events"):
                waiting.append((f"{prefix}{index}.", event["events"]))


def _fill(event: dict[str, Any], amount: float | None) -> bool:
    metadata = event.get("metadata")
    if amount is not None:
        event["metadata"] = {**(metadata or {}), KEY: amount}
    elif isinstance(metadata, dict) and KEY in metadata:
        event["metadata"] = {key: value for key, value in metadata.items() if key != KEY} or None
    return amount is not None
