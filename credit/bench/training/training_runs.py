"""Train with many signals on many tasks, keep every row, and resume where a run was cut off."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from credit.bench.training.learning_tasks import LearningTask, learning_task
from credit.bench.training.training_loop import Curves, TrainingSettings, train
from credit.bench.training.training_signals import training_signal
from graphs.atomic import atomic_write
from graphs.errors import CreditError

__all__ = ["run_training", "summary_rows"]

POINTS = 50
"""Points of a curve that are kept."""


def run_training(
    signals: Iterable[str],
    tasks: Iterable[str],
    seeds: int,
    settings: TrainingSettings,
    *,
    output: Path | None = None,
    after_row: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Train every signal on every task with every seed.

    Args:
      signals: names of oracles, or of methods in `credit.METHODS`.
      tasks: keys of `TASKS`.
      seeds: trains with seeds 0 to `seeds` − 1.
      settings: the same for all.
      output: a .json or .parquet file, written after each task and signal; rows that it holds are not computed again.
      after_row: called with each row, those of the file included.

    Returns:
      One row for each task, signal and seed: names, numbers (`final`, `area`, `events_to_90`, `cosine`, `entropy`,
      `teaching`, `optimum`) and the curve of the exact expected return.

    Raises:
      CreditError: a name is unknown, `seeds` is below 1, or the file holds rows of other settings.
    """
    if seeds < 1:
        raise CreditError(f"seeds is {seeds}; expected 1 or more")
    pairs = [(learning_task(task), signal) for task in tasks for signal in signals]
    for _, signal in pairs:
        training_signal(signal)
    kept = [] if output is None else _kept(output, settings)
    rows: list[dict[str, Any]] = []
    for task, signal in pairs:
        known = {row["seed"]: row for row in kept if (row["task"], row["signal"]) == (task.name, signal)}
        fresh = False
        for seed in range(seeds):
            if seed not in known:
                known[seed] = _row(task, signal, seed, settings)
                fresh = True
            rows.append(known[seed])
            if after_row is not None:
                after_row(known[seed])
        if fresh and output is not None:
            done = {(row["task"], row["signal"], row["seed"]) for row in rows}
            others = [row for row in kept if (row["task"], row["signal"], row["seed"]) not in done]
            _write(output, rows + others, settings)
    return rows


def summary_rows(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, int, float, float, float]]:
    """For each task and signal: seeds, mean final share of the optimum, its standard error, and mean area.

    The share is (J − J₀) / (J* − J₀), with J₀ that of the first policy and J* the optimum. One seed has an infinite
    error.

    Examples:
      >>> row = {"task": "a", "signal": "b", "curve": [0.5, 0.9], "optimum": 0.9, "final": 0.9, "area": 0.7}
      >>> list(summary_rows([row]))
      [('a', 'b', 1, 1.0, inf, 0.50)]

    Args:
      rows: results of `run_training`, one for each task, signal and seed.
    """
    for task, signal in dict.fromkeys((row["task"], row["signal"]) for row in rows):
        own = [row for row in rows if (row["task"], row["signal"]) == (task, signal)]
        first = np.array([row["curve"][0] for row in own])
        room = np.array([row["optimum"] for row in own]) - first
        final = (np.array([row["final"] for row in own]) - first) / room
        area = (np.array([row["area"] for row in own]) - first) / room
        error = float(final.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else float("inf")
        yield task, signal, len(own), float(final.mean()), error, float(area.mean())


def _row(task: LearningTask, signal: str, seed: int, settings: TrainingSettings) -> dict[str, Any]:
    curves: Curves = train(task, training_signal(signal), settings, seed)
    expected = np.asarray(curves.expected, np.float64)
    at = np.unique(np.linspace(0, len(expected) - 1, POINTS).astype(int))
    goal = expected[0] + 0.9 * (task.optimum - expected[0])
    reached = np.flatnonzero(expected >= goal)
    events = np.cumsum(np.asarray(curves.events, np.float64))
    return {
        "task": task.name,
        "signal": signal,
        "seed": seed,
        "optimum": task.optimum,
        "final": float(expected[-1]),
        "area": float(expected.mean()),
        "events_to_90": float(events[reached[0]]) if len(reached) else None,
        "cosine": float(np.mean(np.asarray(curves.cosine))),
        "entropy": float(np.asarray(curves.entropy)[-1]),
        "teaching": float(np.mean(np.asarray(curves.teaching))),
        "events": float(events[-1]),
        "steps": at.tolist(),
        "curve": expected[at].tolist(),
    }


def _kept(path: Path, settings: TrainingSettings) -> list[dict[str, Any]]:
    """The rows of a file of an earlier run, if it is there."""
    if path.suffix not in (".json", ".parquet"):
        raise CreditError(f"{path}: expected a file that ends in .json or .parquet")
    if not path.is_file():
        return []
    wanted = json.loads(json.dumps(dataclasses.asdict(settings)))
    try:
        if path.suffix == ".json":
            document = json.loads(path.read_text(encoding="utf-8"))
            stated, rows = document["settings"], document["rows"]
        else:
            import pyarrow.parquet as pq

            table = pq.read_table(path)
            stated, rows = json.loads(table.schema.metadata[b"settings"]), table.to_pylist()
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise CreditError(f"{path} cannot be resumed: {error}; expected what `credit bench train` wrote") from error
    if stated != wanted:
        raise CreditError(f"{path} holds rows of settings {stated}; expected {wanted}: choose another file")
    return list(rows)


def _write(path: Path, rows: list[dict[str, Any]], settings: TrainingSettings) -> None:
    about = dataclasses.asdict(settings)
    if path.suffix == ".json":
        content = json.dumps({"settings": about, "rows": rows}, indent=1).encode()
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(rows).replace_schema_metadata({"settings": json.dumps(about)})
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        content = buffer.getvalue()
    with atomic_write(path) as file:
        file.write(content)
