"""Problems that depend on which channel of reward was chosen: no trace has it, or it settles what a reader reported."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphs.errors import Problem
from graphs.text import excerpt, near_names

if TYPE_CHECKING:  # importing it loads JAX
    from graphs.traces.batch import Traces

__all__ = ["DEFAULT_CHANNEL", "channels_of", "judge_channel", "missing_channel"]

DEFAULT_CHANNEL = "team"
_PREFIX = "rewards."
_SHOWN = 10  # channels that are named


def channels_of(traces: Traces) -> list[str]:
    """The channels that a trace of the batch has."""
    return [name.removeprefix(_PREFIX) for name in traces.evidence if name.startswith(_PREFIX)]


def missing_channel(channel: str, logged: Sequence[str], place: str) -> Problem | None:
    """The problem of a channel that no trace has, where the logs have others; None for one that is not asked for.

    Args:
      channel: the reward channel that is the outcome.
      logged: channels that traces have.
      place: where the logs are, in words.
    """
    if channel == DEFAULT_CHANNEL or not logged or channel in logged:
        return None
    more = f" and {len(logged) - _SHOWN} more" if len(logged) > _SHOWN else ""
    near = near_names(channel, logged)
    hint = f". {near}" if near.startswith("Did") else ""
    expected = f"a channel that a trace has: {', '.join(logged[:_SHOWN])}{more}{hint}"
    return Problem("no-such-channel", place, 0, "reward", excerpt(channel), expected)


def judge_channel(traces: Traces, channel: str, place: str) -> Traces:
    """The batch with the problems of the chosen channel.

    A "several-rewards" is left out where the traces that it is about have an outcome. A "no-such-channel" is added
    where no trace has the channel and the logs have others, unless it is the default, which is not asked for by name.

    Args:
      traces: what was read, with outcomes from `channel`.
      channel: the reward channel that is the outcome.
      place: where the logs are, in words.
    """
    problems = traces.problems
    if any(problem.kind == "several-rewards" for problem in problems):
        problems = _unsettled(traces)
    missing = missing_channel(channel, channels_of(traces), place)
    if missing is not None:
        problems = (*problems, missing)
    return traces if problems is traces.problems else dataclasses.replace(traces, problems=problems)


def _unsettled(traces: Traces) -> tuple[Problem, ...]:
    """The problems without each "several-rewards" whose trace has an outcome.

    One without a trace is of a file: any trace of it decides. One that stands for several is left out if all traces of
    its file have outcomes.
    """
    scored = np.isfinite(np.asarray(traces.reward)[: traces.sizes.traces]).tolist()
    names, files = traces.traces["trace"].to_pylist(), traces.traces["file"].to_pylist()
    with_outcome = {name for name, has in zip(names, scored, strict=True) if has}
    settled = {file for file, has in zip(files, scored, strict=True) if has}
    open_ = {file for file, has in zip(files, scored, strict=True) if not has}

    def is_settled(problem: Problem) -> bool:
        if problem.count > 1:
            return problem.file in settled and problem.file not in open_
        return problem.trace in with_outcome if problem.trace else problem.file in settled

    return tuple(p for p in traces.problems if p.kind != "several-rewards" or not is_settled(p))
