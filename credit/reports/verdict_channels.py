"""The reward that all others of a log are held against: what people say, whichever reward is the outcome.

Which part of what people reject a judge passes does not depend on how often runs fail. Which part of what the judge
passes people reject does: held against a judge that errs, people would seem to change where runs do.

Reference: Tenenbein 1970, A double sampling scheme for estimating from binomial data with misclassifications.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from graphs.logs.read_logs import DEFAULT_CHANNEL
from graphs.traces.batch import Traces

__all__ = [
    "HeldAgainst",
    "held_against",
    "outcome_name",
    "own_channel",
    "reference_channel",
    "said_yes",
    "verdict_channels",
    "with_outcomes",
]


def verdict_channels(traces: Traces) -> dict[str, np.ndarray]:
    """The rewards of traces that are not the outcome itself, by name."""
    m = traces.sizes.traces
    outcome = np.asarray(traces.reward, np.float32)[:m]
    numbers = {name: traces.evidence[f"rewards.{name}"].array[:m] for name in traces.reward_channels}
    return {
        name: number
        for name, number in numbers.items()
        if not np.array_equal(number.astype(np.float32), outcome, equal_nan=True)
    }


def said_yes(numbers: np.ndarray) -> np.ndarray | None:
    """Which of these say yes, the greater of two values; None for more values, or for one that may be either.

    Args:
      numbers: of verdicts or outcomes: finite, [n].
    """
    values = np.unique(numbers)
    if len(values) == 2 or np.isin(values, (0.0, 1.0)).all():
        return np.asarray(numbers == (values[-1] if len(values) == 2 else 1.0))
    return None


def own_channel(traces: Traces) -> str:
    """The reward that is the outcome; "" where none has its numbers.

    Args:
      traces: what was read.
    """
    others = verdict_channels(traces)
    own = [name for name in traces.reward_channels if name not in others]
    return DEFAULT_CHANNEL if DEFAULT_CHANNEL in own else next(iter(own), "")


def outcome_name(traces: Traces) -> str:
    """What the outcome is called: the column that was read as it, or its reward; "the outcome" without either.

    Args:
      traces: what was read.
    """
    return traces.outcome or own_channel(traces) or "the outcome"


def reference_channel(traces: Traces) -> str:
    """The reward of two values that the outcome is held against, as it is right more often; "" where none is.

    It is one that people gave. Where the log says of none who gave it, and one of several rewards was chosen as the
    outcome, it is that of the fewest traces, of fewer than the outcome: what is dear is asked of few.

    Args:
      traces: what was read.
    """
    channels, own, people = verdict_channels(traces), own_channel(traces), traces.by_people
    outcome = np.isfinite(np.asarray(traces.reward, np.float64)[: traces.sizes.traces])
    known = {name: np.isfinite(number) for name, number in channels.items()}
    count = {
        name: int(has.sum())
        for name, has in known.items()
        if (has & outcome).any() and said_yes(channels[name][has]) is not None
    }
    if own in people:
        return ""
    if given := {name: -count[name] for name in people if name in count}:
        return min(given, key=given.__getitem__)
    fewer = {name: number for name, number in count.items() if number < outcome.sum()}
    chosen = own not in ("", DEFAULT_CHANNEL) and not people
    return min(fewer, key=fewer.__getitem__) if chosen and fewer else ""


class HeldAgainst(NamedTuple):
    """Verdicts, and what they are held against.

    Attributes:
      channels: numbers by name, the outcome first where it is a verdict itself: float [traces].
      outcome: of the reference (`reference_channel`), 1 where it says yes, else the outcome itself: float [traces].
      against: the name of that reference; "" for the outcome.
      success_at: the least outcome of a success; None where outcomes have two values.
    """

    channels: dict[str, np.ndarray]
    outcome: np.ndarray
    against: str
    success_at: float | None


def held_against(traces: Traces, success_at: float | None = None) -> HeldAgainst:
    """The verdicts of a log, and the outcome or reference that they are held against.

    Args:
      traces: what was read.
      success_at: the least outcome of a success, which makes 0 and 1 of an outcome that is itself a verdict.
    """
    outcome = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    channels = {name: number.astype(np.float64) for name, number in verdict_channels(traces).items()}
    if not (against := reference_channel(traces)):
        return HeldAgainst(channels, outcome, "", success_at)
    own = outcome if success_at is None else np.where(np.isfinite(outcome), outcome >= success_at, np.nan)
    said = channels.pop(against)
    told = np.isfinite(said)
    said[told] = said_yes(said[told])
    return HeldAgainst({outcome_name(traces): own} | channels, said, against, None)


def with_outcomes(traces: Traces, outcome: np.ndarray) -> Traces:
    """The same traces with other outcomes.

    Args:
      traces: what was read.
      outcome: of each trace, NaN for none: float [traces].
    """
    lacks = len(traces.reward) - len(outcome)
    return dataclasses.replace(traces, reward=np.pad(outcome, (0, lacks), constant_values=np.nan).astype(np.float32))
