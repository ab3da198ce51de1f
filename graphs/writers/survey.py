"""Traces in the survey's own form, which its schema and its validator accept: one JSON file a trace.

The native format extends that form. What it adds is left out here, or stated in the survey's words. Use the native
format to keep everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from graphs.atomic import atomic_write
from graphs.traces.batch import Traces
from graphs.writers.native import lines

__all__ = ["write"]

_TOP = ("trace_id", "task_id", "system", "topology", "events", "edges", "rewards", "costs", "metrics")


def write(traces: Traces, folder: str | Path) -> list[Path]:
    """Write each trace to a file of its own, `000001.json`, `000002.json`, … in the order of the batch.

    - `schema_version`, `model`, `agents` and the evidence of traces are left out; events keep their further keys.
    - A `stop` is an `orchestrator_decision`.
    - `t` is the time where every event has one that is not negative, else the position of the event.
    - `costs.tokens` is the log's, else the sum of its events' tokens; `costs.wall_clock_s` is the log's, else the time
      from the first event to the last. The schema demands both: where the log states neither, the number is 0 and
      `metrics` holds `tokens_unstated` or `wall_clock_s_unstated`, 1.

    Args:
      traces: a batch.
      folder: made if it does not exist.

    Returns:
      The files.

    Raises:
      CreditError: what the native format cannot say either, such as an unknown topology.
      OSError: a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, line in enumerate(lines(traces), start=1):
        path = folder / f"{number:06d}.json"
        with atomic_write(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(_survey_form(msgspec.json.decode(line))), indent=1))
        written.append(path)
    return written


def _survey_form(document: dict[str, Any]) -> dict[str, Any]:
    """A trace of the native format in the survey's form."""
    events = document["events"]
    times = [event.get("t") for event in events]
    timed = all(time is not None for time in times)
    for position, event in enumerate(events):
        event["t"] = event["t"] if timed else position
        if event["type"] == "stop":
            event["type"] = "orchestrator_decision"
    costs, metrics = document["costs"], document.setdefault("metrics", {})
    tokens = [event["tokens"] for event in events if "tokens" in event]
    wall_clock = max(times) - min(times) if timed else None
    for name, amount in (("tokens", sum(tokens) if tokens else None), ("wall_clock_s", wall_clock)):
        if name not in costs:
            costs[name] = 0 if amount is None else amount
            if amount is None:
                metrics[f"{name}_unstated"] = 1
    if not metrics:
        del document["metrics"]
    return {key: document[key] for key in _TOP if key in document}
