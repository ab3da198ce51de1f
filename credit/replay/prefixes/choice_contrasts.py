"""Spawn or not, and whom to ask: outcomes of choices of two kinds after one prefix of a log."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from credit.replay.prefixes.shared_prefixes import SharedPrefixes
from graphs.event_graph import EventType
from graphs.traces.batch import Traces

__all__ = ["ChoiceContrast", "ChoiceOutcomes", "choice_contrasts"]

Question = Literal["spawn", "whom"]


@dataclasses.dataclass(frozen=True)
class ChoiceOutcomes:
    """Outcomes after one kind of choice.

    Attributes:
      choice: "spawn" or "no spawn"; or the name of the agent that was asked or spawned.
      traces: how many traces chose it.
      mean: of their returns, in units of reward.
      stderr: standard error of the mean; infinite for one trace.
    """

    choice: str
    traces: int
    mean: float
    stderr: float


@dataclasses.dataclass(frozen=True)
class ChoiceContrast:
    """Choices of two or more kinds after one prefix.

    Attributes:
      question: "spawn" or "whom".
      group: name of the group.
      agent: name of the agent that chose.
      trace, event: ids of one of the actions.
      outcomes: by kind of choice.
    """

    question: Question
    group: str
    agent: str
    trace: str
    event: str
    outcomes: tuple[ChoiceOutcomes, ...]

    def row(self) -> dict[str, Any]:
        """Plain data for a line of JSON; a standard error that is unknown is null."""
        plain = dataclasses.asdict(self)
        for outcome in plain["outcomes"]:
            outcome["stderr"] = outcome["stderr"] if math.isfinite(outcome["stderr"]) else None
        return plain


def choice_contrasts(traces: Traces, shared: SharedPrefixes) -> Iterator[ChoiceContrast]:
    """Mean return by kind of choice, for each prefix after which traces chose differently.

    "spawn": some actions are spawns and some are not. "whom": messages and spawns go to agents of different names. The
    difference of two means is an unbiased estimate of E[R | prefix, one] − E[R | prefix, other]. Contrasts of a prefix
    and of a longer one use the same traces, so they are not independent.

    Args:
      traces: what was read.
      shared: what `shared_prefixes` found in it.
    """
    n, m = traces.sizes.events, traces.sizes.traces
    trace = np.asarray(traces.graph.trace_ids)[:n]
    total = np.asarray(traces.reward)[:m].astype(np.float64)
    if "event_reward" in traces.evidence:
        np.add.at(total, trace, np.nan_to_num(np.asarray(traces.evidence["event_reward"].array)[:n]))
    context = shared.context[:n]
    rows = np.flatnonzero((context >= 0) & np.isfinite(total[trace]))
    rows = rows[np.argsort(context[rows], kind="stable")]
    spawns = np.asarray(traces.graph.event_type)[:n] == int(EventType.SPAWN)
    recipients = _recipients(traces)
    owners = np.asarray(traces.graph.agent_ids)[:n]
    names, ids = traces.agents["name"].to_pylist(), traces.events["event"].to_pylist()
    labels = traces.traces["trace"].to_pylist(), traces.traces["group"].to_pylist()
    for part in np.split(rows, np.flatnonzero(np.diff(context[rows])) + 1):
        kinds: tuple[tuple[Question, list[str | None]], ...] = (
            ("spawn", ["spawn" if spawns[e] else "no spawn" for e in part.tolist()]),
            ("whom", [recipients[e] for e in part.tolist()]),
        )
        for question, chosen in kinds:
            by_choice: dict[str, list[float]] = {}
            for e, choice in zip(part.tolist(), chosen, strict=True):
                if choice is not None:
                    by_choice.setdefault(choice, []).append(float(total[trace[e]]))
            if len(by_choice) > 1:
                first = int(part[0])
                t = int(trace[first])
                outcomes = tuple(_outcomes(choice, by_choice[choice]) for choice in sorted(by_choice))
                yield ChoiceContrast(question, labels[1][t], names[owners[first]], labels[0][t], ids[first], outcomes)


def _recipients(traces: Traces) -> list[str | None]:
    """The name of the agent that each event goes to; None where it goes to none."""
    n, ids = traces.sizes.events, traces.agents["agent"].to_pylist()
    names = traces.agents["name"].to_pylist()
    owner = np.asarray(traces.graph.agent_trace)[: len(ids)].tolist()
    name_of = {(t, agent): name for t, agent, name in zip(owner, ids, names, strict=True)}
    trace = np.asarray(traces.graph.trace_ids)[:n].tolist()
    to = traces.events["to"].to_pylist()
    return [None if text is None else name_of.get((t, text), text) for t, text in zip(trace, to, strict=True)]


def _outcomes(choice: str, returns: list[float]) -> ChoiceOutcomes:
    y = np.array(returns)
    error = float(y.std(ddof=1) / math.sqrt(len(y))) if len(y) > 1 else math.inf
    return ChoiceOutcomes(choice, len(y), float(y.mean()), error)
