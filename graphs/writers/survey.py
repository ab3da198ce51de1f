"""Writer of the survey's own form, which its schema and its validator accept: one JSON file per trace.

The native format extends that form. This writer leaves the additions out or translates them. The native format keeps
everything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from graphs.atomic import atomic_folder, atomic_write
from graphs.event_types import ACTION_TYPES
from graphs.traces.batch import Traces
from graphs.traces.record import LOST_PARTS, SPANNED, UNLOGGED_CALLS
from graphs.writers.native import lines

__all__ = ["left_out", "write"]

_ACTIONS = frozenset(kind.name.lower() for kind in ACTION_TYPES)
_TOP = ("trace_id", "task_id", "system", "topology", "events", "edges", "rewards", "costs", "metrics")


def write(traces: Traces, folder: str | Path) -> list[Path]:
    """Write each trace to a separate file, `000001.json`, `000002.json`, … in the order of the batch.

    - `schema_version`, `model` and `agents` are left out (`left_out`); events keep their further keys. Evidence of
      traces, which is numbers, becomes `metrics` under the names `evidence.NAME`.
    - A `stop` is written as an `orchestrator_decision` with `stop: true`, which readers of the native format take back.
    - `t` is the time if every event has one, and otherwise the position of the event.
    - `costs.tokens` defaults to the sum of the actions' tokens where all have a count and no call is missing, and
      `costs.wall_clock_s` to the time from the first event or span to the last end. The schema requires both. A cost
      without a logged or derived value is 0, and `metrics` then has `tokens_unstated` or `wall_clock_s_unstated` with
      the value 1.

    Args:
      traces: a batch.
      folder: created if it does not exist.

    Returns:
      The paths of the files. All are written, or none.

    Raises:
      CreditError: the native format cannot represent the batch: a negative time, an unknown topology, an empty id; or
        the reward equals no channel, and a different channel "team" exists.
      OSError: a file cannot be written.
    """
    folder = Path(folder)
    written = []
    with atomic_folder(folder) as new:
        for number, line in enumerate(lines(traces), start=1):
            name = f"{number:06d}.json"
            with atomic_write(new / name) as file:
                file.write(msgspec.json.format(msgspec.json.encode(_survey_form(msgspec.json.decode(line))), indent=1))
            written.append(folder / name)
    return written


def left_out(traces: Traces) -> dict[str, int]:
    """What this form has no place for, with the number of traces that have it."""
    models = sum(model is not None for model in traces.traces["model"].to_pylist())
    return {name: count for name, count in (("model", models), ("agents", traces.sizes.traces)) if count}


def _survey_form(document: dict[str, Any]) -> dict[str, Any]:
    """A trace of the native format in the survey's form."""
    events = document["events"]
    times = [event.get("t") for event in events]
    timed = all(time is not None for time in times)
    for position, event in enumerate(events):
        event["t"] = event["t"] if timed else position
        if event["type"] == "stop":
            event |= {"type": "orchestrator_decision", "stop": True}
    costs, metrics = document["costs"], document.setdefault("metrics", {})
    metrics |= {f"evidence.{name}": amount for name, amount in document.get("evidence", {}).items()}
    tokens = [event.get("tokens") for event in events if event.get("action", event["type"] in _ACTIONS)]
    whole = tokens and None not in tokens and not {UNLOGGED_CALLS, LOST_PARTS} & metrics.keys()
    ends = [event["t"] + (event.get("seconds") or 0) for event in events]
    wall_clock = max(max(ends) - min(times), metrics.get(SPANNED, 0)) if timed else None
    for name, amount in (("tokens", sum(tokens) if whole else None), ("wall_clock_s", wall_clock)):
        if name not in costs:
            costs[name] = 0 if amount is None else amount
            if amount is None:
                metrics[f"{name}_unstated"] = 1
    if not metrics:
        del document["metrics"]
    return {key: document[key] for key in _TOP if key in document}
