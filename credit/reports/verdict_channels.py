"""The reward that all others of a log are held against: what people say, whichever reward is the outcome.

Which part of what people reject a judge passes does not depend on how often runs fail. Which part of what the judge
passes people reject does: held against a judge that errs, people would seem to change where runs do.

Who gave a number is a fact of each trace. Of a judge's outcome with labels of some traces, people gave these alone.
Traces are compared by one source (`of_one_source`): people labelled all runs of a release, and it was "worse" than the
one before it, of which a kinder judge had spoken.

Reference: Tenenbein 1970, A double sampling scheme for estimating from binomial data with misclassifications.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from credit.reports.of_batch import kept
from graphs.logs.read_logs import DEFAULT_CHANNEL
from graphs.task_means import LEAST_TASKS
from graphs.text import counted, printable
from graphs.traces.batch import Traces
from graphs.traces.evidence import Evidence
from graphs.traces.record import BEFORE_PEOPLE, BY_PEOPLE

__all__ = [
    "PEOPLE",
    "HeldAgainst",
    "held_against",
    "left_out",
    "of_one_source",
    "outcome_name",
    "own_channel",
    "people_channels",
    "people_judged",
    "said_yes",
    "says",
    "verdict_channels",
    "with_outcomes",
]

PEOPLE = "people"
"""What a reference is called that is not one channel: people gave several, or some numbers of one."""


def verdict_channels(traces: Traces) -> dict[str, np.ndarray]:
    """The rewards of traces that are not the outcome itself, by name."""
    own, _ = _own(traces)
    return {name: number for name, number in _channels(traces).items() if name not in own}


def people_channels(traces: Traces) -> set[str]:
    """The channels of which people gave all numbers.

    Args:
      traces: what was read.
    """
    numbers = _channels(traces)
    return {name for name in traces.by_people if not (np.isfinite(numbers[name]) & ~_given(traces, name)).any()}


def people_judged(traces: Traces) -> np.ndarray:
    """Of which traces people gave some reward: bool [traces].

    Args:
      traces: what was read.
    """
    judged = np.zeros(traces.sizes.traces, bool)
    for name in traces.by_people:
        judged |= _given(traces, name)
    return judged


def _channels(traces: Traces) -> dict[str, np.ndarray]:
    return {name: traces.evidence[f"rewards.{name}"].array[: traces.sizes.traces] for name in traces.reward_channels}


def _given(traces: Traces, channel: str) -> np.ndarray:
    """Of which traces people gave a channel: bool [traces]."""
    given = np.zeros(traces.sizes.traces, bool)
    if (marks := traces.evidence.get(f"metrics.{BY_PEOPLE.format(channel)}")) is not None:
        given[marks.rows] = True
    return given


def _own(traces: Traces) -> tuple[list[str], np.ndarray]:
    """The channels that are the outcome wherever people did not give it, and where they did: bool [traces]."""
    outcome = np.asarray(traces.reward, np.float32)[: traces.sizes.traces]
    numbers, given = _channels(traces), np.zeros(len(outcome), bool)

    def has(name: str, of: np.ndarray) -> bool:
        return np.array_equal(numbers[name].astype(np.float32)[of], outcome[of], equal_nan=True)

    for name in numbers:
        given |= _given(traces, name) & has(name, given | True)
    compared = ~given if np.isfinite(outcome[~given]).any() else given | True
    return [name for name in numbers if has(name, compared)], given


def _by_people(traces: Traces, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outcome as people gave it, and as others did, whose number a label may have taken the place of."""
    own, given = _own(traces)
    judged = np.where(given, np.nan, outcome)
    for name in own:
        before = traces.evidence.get(f"metrics.{BEFORE_PEOPLE.format(name)}")
        said = [np.where(_given(traces, name), np.nan, _channels(traces)[name])]
        for other in said if before is None else [*said, before.array[: len(outcome)]]:
            judged = np.where(given & np.isnan(judged), other, judged)
    return np.where(given, outcome, np.nan), judged


def _answers(numbers: np.ndarray, success_at: float | None = None) -> np.ndarray:
    """1 for a yes, 0 for a no, NaN for none; NaN for all of more than two values."""
    known, answers = np.isfinite(numbers), np.full(len(numbers), np.nan)
    if (yes := said_yes(numbers[known]) if success_at is None else numbers[known] >= success_at) is not None:
        answers[known] = yes
    return answers


def _answering(channels: Mapping[str, np.ndarray], judged: np.ndarray) -> dict[str, np.ndarray]:
    """The answers of those of two values that say something of a trace that is judged."""
    answers = {name: _answers(numbers) for name, numbers in channels.items()}
    return {name: of for name, of in answers.items() if _count(of + judged)}


def _count(numbers: np.ndarray) -> int:
    return int(np.isfinite(numbers).sum())


def said_yes(numbers: np.ndarray) -> np.ndarray | None:
    """Which of these say yes, the greater of two values; None for more values, or for one that may be either.

    Args:
      numbers: of verdicts or outcomes: finite, [n].
    """
    values = np.unique(numbers)
    if len(values) == 2 or np.isin(values, (0.0, 1.0)).all():
        return np.asarray(numbers == (values[-1] if len(values) == 2 else 1.0))
    return None


def says(who: str, does: str) -> str:
    """What a reference does, such as "thumb passes".

    Args:
      who: its name.
      does: what several do, such as "pass".

    Examples:
      >>> says("thumb", "pass"), says(PEOPLE, "pass")
      ('thumb passes', 'people pass')
    """
    return f"{printable(who, 60)} {does}{'' if who == PEOPLE else 'es' if does.endswith('s') else 's'}"


def own_channel(traces: Traces) -> str:
    """The reward that is the outcome; "" where none has its numbers.

    Args:
      traces: what was read.
    """
    own, _ = _own(traces)
    if DEFAULT_CHANNEL in own and not (own[1:] and DEFAULT_CHANNEL in traces.by_people):
        return DEFAULT_CHANNEL
    return next((name for name in own if name != DEFAULT_CHANNEL), "")  # of which the default has the labels


def outcome_name(traces: Traces) -> str:
    """What the outcome is called: the column that was read as it, or its reward; "the outcome" without either.

    Args:
      traces: what was read.
    """
    return traces.outcome or own_channel(traces) or "the outcome"


class HeldAgainst(NamedTuple):
    """Verdicts, and what they are held against.

    Attributes:
      channels: numbers by name, the outcome first where it is a verdict itself: float [traces].
      outcome: of the reference, 1 where it says yes, else the outcome itself: float [traces].
      against: the name of that reference, a channel or `PEOPLE`; "" for the outcome.
      success_at: the least outcome of a success; None where outcomes have two values.
      judged: the outcome, without what people gave of it where there is a reference: float [traces].
    """

    channels: dict[str, np.ndarray]
    outcome: np.ndarray
    against: str
    success_at: float | None
    judged: np.ndarray


def held_against(traces: Traces, success_at: float | None = None) -> HeldAgainst:
    """The verdicts of a log, and the outcome, or a reference that is right more often, that they are held against.

    The reference is the reward of two values that people gave most traces, with the outcomes that they gave; without
    such a reward it is these, of at least `LEAST_TASKS` traces. Where people gave none, and one of several rewards was
    chosen as the outcome, it is that of the fewest traces, of fewer than the outcome: what is dear is asked of few.
    Where people gave all outcomes, there is none.

    Args:
      traces: what was read.
      success_at: the least outcome of a success, which makes 0 and 1 of an outcome that is itself a verdict.
    """
    outcome = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    channels = {name: number.astype(np.float64) for name, number in verdict_channels(traces).items()}
    (labels, judged), own, wholly = _by_people(traces, outcome), own_channel(traces), people_channels(traces)
    labels, given = _answers(labels, success_at), {name: _given(traces, name) for name in channels}
    labelled = np.isfinite(labels)
    people = _answering({name: np.where(given[name], of, np.nan) for name, of in channels.items()}, judged)
    others = {name: of if name in wholly else np.where(given[name], np.nan, of) for name, of in channels.items()}
    fewer = {name: of for name, of in _answering(others, judged).items() if _count(of) < _count(judged)}
    if not _count(judged):
        name = against = ""
    elif people or _count(labels) >= LEAST_TASKS:
        name = max(people, key=lambda one: _count(people[one]), default="")
        against = name if name in wholly and not labelled.any() else PEOPLE
    else:
        chosen = own not in ("", DEFAULT_CHANNEL) and traces.by_people.keys() <= {own}
        name = against = min(fewer, key=lambda one: _count(fewer[one])) if chosen and fewer else ""
    if not against:
        return HeldAgainst(channels, outcome, "", success_at, outcome)
    said = (people or fewer).get(name, np.full(len(outcome), np.nan))
    if against == PEOPLE:
        said = np.where(labelled, labels, said)
    if name in wholly or against == name:
        others.pop(name, None)
    own_said = judged if success_at is None else np.where(np.isfinite(judged), judged >= success_at, np.nan)
    return HeldAgainst({outcome_name(traces): own_said} | others, said, against, None, judged)


@kept
def of_one_source(traces: Traces) -> Traces:
    """The same traces with the outcomes of those who gave most, where people gave some outcomes and others the rest.

    Of a judge these are its own verdicts, those that labels took the place of, too, where the log's number was kept.

    Args:
      traces: what was read.
    """
    outcome = np.asarray(traces.reward, np.float64)[: traces.sizes.traces]
    (labels, judged), (own, given) = _by_people(traces, outcome), _own(traces)
    rest = _count(np.where(given, np.nan, outcome))
    if not rest or not given.any():
        return traces
    source = labels if given.sum() > rest else judged
    evidence = dict(traces.evidence)
    rows = np.flatnonzero(np.isfinite(source))
    for name in own:
        if not np.array_equal(_channels(traces)[name].astype(np.float32), outcome, equal_nan=True):
            continue  # a judge that has its say of each beside the outcome
        evidence.pop(f"metrics.{BEFORE_PEOPLE.format(name)}", None)
        if source is judged:
            evidence.pop(f"metrics.{BY_PEOPLE.format(name)}", None)
        evidence[f"rewards.{name}"] = Evidence.at(rows, source[rows], len(traces.reward))
    return with_outcomes(dataclasses.replace(traces, evidence=evidence), source)


def left_out(traces: Traces) -> str:
    """What `of_one_source` takes, in words: "without 80 outcomes by people"; "" where it takes all.

    Args:
      traces: what was read.
    """
    if (one := of_one_source(traces)) is traces:
        return ""
    given = int(_own(traces)[1].sum())
    return f"{'only' if own_channel(one) in one.by_people else 'without'} {counted(given, 'outcome')} by people"


def with_outcomes(traces: Traces, outcome: np.ndarray) -> Traces:
    """The same traces with other outcomes.

    Args:
      traces: what was read.
      outcome: of each trace, NaN for none: float [traces].
    """
    lacks = len(traces.reward) - len(outcome)
    return dataclasses.replace(traces, reward=np.pad(outcome, (0, lacks), constant_values=np.nan).astype(np.float32))
