"""Logs in which no trace has an outcome: the refusal, and what was found instead of outcomes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from graphs.errors import CreditError, Problem

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

__all__ = ["found_instead", "no_outcome", "spoilt_rows"]

SHOWN = 5  # channels that are named

NAMES = frozenset({"reward", "rewards", "score", "scores", "outcome", "return", "success", "correct", "passed"})
"""Keys that hold outcomes in logs of others, in small letters."""

OF_TABLES = frozenset(
    {
        "ambiguous-row",
        "bad-row",
        "lost-row",
        "mixed-outcomes",
        "non-finite-reward",
        "out-of-range",
        "refused-row",
        "unmatched-row",
    }
)
"""Kinds of problems for which a row of a table gives no trace what it states."""


def no_outcome(found: Iterable[str]) -> CreditError:
    """The refusal of logs without a single outcome, with what was found instead."""
    what = "".join(f"; {text}" for text in found if text)
    return CreditError(
        f"no trace has an outcome, so no action has credit{what}; expected rewards in the log, --rewards FILE (a table "
        "with columns trace and reward), or --reward-channel NAME; in Python, read(..., rewards=FILE, reward=NAME)"
    )


def spoilt_rows(problems: Iterable[Problem]) -> str:
    """The first reward that could not be used, and how many more there are; empty where there is none."""
    of_reward = [p for p in problems if p.is_failure and "reward" in (p.field, p.about)]
    spoilt = [problem for problem in of_reward if problem.kind in OF_TABLES]
    spoilt = spoilt or [problem for problem in of_reward if problem.about]  # rows that cannot be read at all
    more = sum(problem.count for problem in spoilt) - 1
    return f"{spoilt[0]}{f' and {more} more' if more else ''}" if spoilt else ""


def found_instead(traces: Traces) -> str:
    """Other channels of reward that the logs have; else keys of the first native trace that look like outcomes."""
    channels = traces.reward_channels
    if channels:
        more = [f"and {len(channels) - SHOWN} more channels"] if len(channels) > SHOWN else []
        lines = [f"found channel {name!r}: --reward-channel {shlex.quote(name)} reads it" for name in channels[:SHOWN]]
        return "; ".join(lines + more)
    native = traces.traces["format"].slice(0, 1).to_pylist() == ["native"]
    return _found_keys(_document(traces)) if native else ""


def _document(traces: Traces) -> dict[str, Any]:
    """The first trace as the log has it; empty where it cannot be read again."""
    from graphs.logs.read_logs import raw_record

    try:
        document = json.loads(raw_record(traces, 0))
    except (CreditError, OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _found_keys(document: dict[str, Any]) -> str:
    of_trace = [key for key in document if key.lower() in NAMES and key != "rewards"]
    events = document.get("events")
    listed = events if isinstance(events, list) else []
    of_event = [key for event in listed if isinstance(event, dict) for key in event if key.lower() in NAMES]
    lines = [f"found key {key!r}: a native log states rewards.team" for key in of_trace]
    lines += [
        f"found key {key!r} of an event: a native log states rewards.team of the trace, and event_reward of an event"
        for key in dict.fromkeys(of_event)
    ]
    return "; ".join(lines)
