"""Traces without an outcome: the refusal where none has one, what was found instead, and that some are left out."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from credit.reports.own_outcomes import of_agents
from credit.reports.verdict_channels import own_channel
from graphs.errors import QUOTES, CreditError, Problem
from graphs.logs.read_logs import DEFAULT_CHANNEL
from graphs.reading.tables.outcome_words import MEANING_OPTION
from graphs.text import counted

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

__all__ = [
    "OF_EVENTS",
    "action_counts",
    "by_people",
    "channels_instead",
    "channels_of_rest",
    "found_instead",
    "left_out",
    "no_outcome",
    "other_channels",
    "refused_reward",
    "spoilt_rows",
    "unread_words",
]

OF_EVENTS = (
    "found event_reward alone: where a trace earned their sum, state its outcome as 0, in a table a column reward of 0 "
    "in each row"
)
"""Said of logs whose rewards are all at events: no outcome is not an outcome of 0."""

SHOWN = 5  # channels that are named
_OTHER, _BESIDE = "unscored, reward ", "beside, reward "  # begin the names of counts by channel

NAMES = frozenset({"reward", "rewards", "score", "scores", "outcome", "return", "success", "correct", "passed"})
"""Keys that hold outcomes in logs of others, in small letters."""

_OF_EPISODE = re.compile(r"^traces\[\d+\]\.")
"""What stands before the fields of one agent's trace of an episode."""

UNLIKE = "inconsistent-reward"
"""The kind of a trace whose rows state several outcomes: which is it, nobody knows, and often none is 0."""

_SPOILT = frozenset({UNLIKE, "non-finite-reward"})
"""Kinds of problems that refuse a trace for its outcome, whatever its column is called; others do at its key."""

OF_TABLES = frozenset(
    {
        "ambiguous-row",
        "bad-row",
        "lost-row",
        "mixed-outcomes",
        "non-finite-reward",
        "out-of-range",
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
    """The first reward that could not be used, and how many more there are; empty where there is none.

    Without one, a column of rewards that was not read.
    """
    of_reward = [p for p in problems if "reward" in (p.field, p.about)]
    spoilt = [problem for problem in of_reward if problem.kind in OF_TABLES and problem.is_failure]
    spoilt = spoilt or [p for p in of_reward if p.about and p.is_failure]  # rows that cannot be read at all
    spoilt = spoilt or [p for p in of_reward if p.kind in ("unread-columns", "retyped-rewards")]
    more = sum(problem.count for problem in spoilt) - 1
    return f"{spoilt[0]}{f' and {more} more' if more else ''}" if spoilt else ""


def refused_reward(channel: str, problems: Iterable[Problem]) -> str:
    """Why a channel has no number: words without a meaning, else its first bad row; "" where nothing states it."""
    of_it = [
        p
        for p in problems
        if p.about in ("reward", f"rewards.{channel}")
        or (p.kind == "category-score" and p.value.endswith(f" {channel}'"))
    ]
    quoted = [p.value for p in of_it if MEANING_OPTION in p.expected and p.value[:1] in QUOTES]
    words = [*dict.fromkeys(text[1:-1].partition(", of the score ")[0] for text in quoted)]
    if not words:
        return spoilt_rows(of_it)
    meant = ",".join(f"{word}=NUMBER" for text in words[:SHOWN] for word in text.split(", "))
    known = ", ".join(words[:SHOWN] + ["…"] * (len(words) > SHOWN))
    return f"its words are not known ({known}): say what they mean by --outcomes {shlex.quote(meant)}"


def unread_words(traces: Traces) -> str:
    """Which rewards beside the outcome are not read since only some of their words have a meaning; "" of none.

    Args:
      traces: what was read.
    """
    of_half = [p.about.removeprefix("rewards.") for p in traces.problems if p.kind == "category-score" and p.about]
    told = [f"{name} is not read: {refused_reward(name, traces.problems)}" for name in dict.fromkeys(of_half)]
    return "; ".join(told[:SHOWN] + ["…"] * (len(told) > SHOWN))


def found_instead(traces: Traces) -> str:
    """Other channels of reward, rewards at events, or keys of the first native trace that look like outcomes."""
    if traces.reward_channels:
        return channels_instead(traces)
    paid = traces.evidence.get("event_reward")
    if paid is not None and paid.mask.any():
        return OF_EVENTS
    native = traces.traces["format"].slice(0, 1).to_pylist() == ["native"]
    return _found_keys(_document(traces)) if native else ""


def channels_instead(traces: Traces) -> str:
    """The other channels of reward, where no trace and no agent has an outcome; "" elsewhere."""
    n = traces.sizes.traces
    if np.isfinite(np.asarray(traces.reward)[:n]).any() or of_agents(traces).any():
        return ""
    counts = {name: len(rows) for name, rows in _rows_of_channels(traces).items()}
    return other_channels(counts, n, traces.by_people)


def channels_of_rest(traces: Traces) -> str:
    """The other channels of reward that traces without an outcome have, where some have one and nobody chose a channel,
    as labels of a few traces leave those of the log aside; "" elsewhere.

    Args:
      traces: what was read.
    """
    n, rows = traces.sizes.traces, _rows_of_channels(traces)
    has = np.isfinite(np.asarray(traces.reward)[:n]) | of_agents(traces)
    if has.all() or not has.any() or own_channel(traces) not in ("", DEFAULT_CHANNEL):
        return ""
    of_rest = {name: len(its) for name, its in rows.items() if name != DEFAULT_CHANNEL and not has[its].all()}
    return other_channels(of_rest, n, traces.by_people)


def _rows_of_channels(traces: Traces) -> dict[str, np.ndarray]:
    return {name: traces.evidence[f"rewards.{name}"].rows for name in traces.reward_channels}


def by_people(count: int, given: int) -> str:
    """Of how many traces people gave a reward; "" where the log says it of none.

    Args:
      count: traces that have the reward.
      given: traces of which the log says that a person gave it.

    Examples:
      >>> by_people(12, 12), by_people(12, 3), by_people(12, 0)
      ('by people', '3 by people', '')
    """
    return (f"{given} " * (given < count) + "by people") if given else ""


def other_channels(counts: Mapping[str, int], traces: int, given: Mapping[str, int]) -> str:
    """Which channels could be the outcome, how many traces have each, and the option that takes one; "" of none.

    Args:
      counts: how many have each.
      traces: how many there are.
      given: of how many people gave it, by channel.

    Examples:
      >>> other_channels({"tests": 160, "thumb": 20}, 160, {"thumb": 20})
      'rewards that could be it: tests (160 of 160 traces), thumb (20, by people); `--reward-channel tests` takes one'
    """
    if not counts:
        return ""
    first, *others = counts
    told = []
    for name in [first, *others][:SHOWN]:
        of = f"{counts[name]} of {counted(traces, 'trace')}" if name == first else str(counts[name])
        told.append(f"{name} ({', '.join(filter(None, (of, by_people(counts[name], given.get(name, 0)))))})")
    told += [f"and {len(counts) - SHOWN} more"] * (len(counts) > SHOWN)
    option = f"`--reward-channel {shlex.quote(first)}` takes {'one' if others else 'it'}"
    return f"reward{'s' * bool(others)} that could be it: {', '.join(told)}; {option}"


def action_counts(traces: Traces) -> dict[str, int]:
    """Traces with an outcome and without, the sum of their actions and of its squares, for `left_out`.

    And how many without have each other reward, how many have it beside another outcome, and how many were refused
    for theirs.
    """
    graph, n = traces.graph, traces.sizes.traces
    acts = np.asarray(graph.action_mask)[: traces.sizes.events]
    count = np.bincount(np.asarray(graph.trace_ids)[: len(acts)][acts], minlength=n)[:n]
    outcome = np.asarray(traces.reward, np.float64)[:n]
    scored = np.isfinite(outcome)
    unscored = ~scored & ~of_agents(traces)
    others = {}
    for name in traces.reward_channels:
        has, stated = (channel := traces.evidence[f"rewards.{name}"]).rows, channel.amounts
        others[f"{_OTHER}{name}"] = int(unscored[has].sum())
        others[f"{_BESIDE}{name}"] = int(
            np.sum(scored[has] & (stated.astype(np.float32) != outcome[has].astype(np.float32)))
        )
    read = set(traces.traces["trace"].to_pylist())
    lost = [problem for problem in traces.problems if problem.is_failure and problem.trace not in {*read, ""}]
    keys = [_OF_EPISODE.sub("", problem.field).partition(".")[0].lower() for problem in lost]
    spoilt = [p for p, key in zip(lost, keys, strict=True) if p.kind in _SPOILT or {p.about, key} & NAMES]
    others["refused, traces"] = sum({problem.trace: problem.count for problem in spoilt}.values())  # of several rows
    others["unlike, traces"] = sum({p.trace: p.count for p in spoilt if p.kind == UNLIKE}.values())
    return {name: number for name, number in others.items() if number} | {
        f"{side}, {what}": int(number)
        for side, of in (("scored", count[scored]), ("unscored", count[unscored]))
        for what, number in (("traces", len(of)), ("actions", of.sum()), ("squares", (of**2).sum()))
    }


def left_out(counts: Mapping[str, int]) -> str:
    """How many traces have no outcome, or one that cannot be read, and that they are left out; "" where all have one.

    And where none has.

    Args:
      counts: of `action_counts`, or sums of several.

    Examples:
      >>> left_out({"scored, traces": 5, "unscored, traces": 1})
      '1 of 6 traces has no outcome, as a killed run: left out, with no advantage and in no baseline; if these failed, \
give them an outcome, such as 0'
      >>> left_out({"scored, traces": 5, "refused, traces": 2, "unlike, traces": 2})
      '2 traces were refused for the outcome, left out as one without: state each outcome once, with null, not 0, in \
the other rows'
    """
    sides = ("unscored", "scored", "refused", "unlike")
    n, scored, refused, unlike = (counts.get(f"{which}, traces", 0) for which in sides)
    if not scored:
        return ""
    which = f"{counted(refused, 'trace')} {'was' if refused == 1 else 'were'} refused for the outcome"
    hints = ["state each outcome once, with null, not 0, in the other rows"] if unlike else []
    if refused > unlike:
        hints.append(f"if {'others' if unlike else 'these'} failed, give them an outcome, such as 0")
    lost = f"{which}, left out as one without: {'; '.join(hints)}" if refused else ""
    return "; ".join(filter(None, (_without(n, scored, counts), lost)))


def _without(n: int, scored: int, counts: Mapping[str, int]) -> str:
    """What `left_out` says of traces that were read."""
    if not n:
        return ""
    who = f"{n} of {counted(n + scored, 'trace')} {'has' if n == 1 else 'have'} no outcome"
    left = "left out, with no advantage and in no baseline"
    if other := max((name for name in counts if name.startswith(_OTHER)), key=counts.__getitem__, default=""):
        which = (
            f"{counts[other]} of these {'has' if counts[other] == 1 else 'have'} the reward {other[len(_OTHER) :]!r}"
        )
        one_name = "" if counts.get(f"{_BESIDE}{other[len(_OTHER) :]}") else "log it under one name, or "
        return f"{who}: {left}; {which}, which is not the outcome: {one_name}join outcomes by --rewards"
    said = f"{who}, as {'a killed run' if n == 1 else 'killed runs'}: {left}"
    return f"{said}; {_lengths_apart(counts) or 'if these failed, give them an outcome, such as 0'}"


def _lengths_apart(counts: Mapping[str, int]) -> str:
    """That traces without an outcome have more or fewer actions than the others, by 2 standard errors; "" else.

    What a policy chooses then decides which traces are left out, and leaving them out is a bias.
    """
    means, errors = dict[str, float](), 0.0
    for side in ("unscored", "scored"):
        n = counts[f"{side}, traces"]
        if n < 2:
            return ""
        means[side] = counts[f"{side}, actions"] / n
        errors += (counts[f"{side}, squares"] / n - means[side] ** 2) / (n - 1)
    if abs(means["unscored"] - means["scored"]) <= 2 * math.sqrt(max(errors, 0.0)):
        return ""
    which = "longer" if means["unscored"] > means["scored"] else "shorter"
    return (
        f"traces without an outcome are {which}: {counts['unscored, traces']} have {means['unscored']:.3g} actions on "
        f"average, the {counts['scored, traces']} others {means['scored']:.3g}; if actions decide which end without "
        "one, leaving them out is a bias: give them an outcome, such as 0"
    )


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
