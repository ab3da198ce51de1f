"""What an advised command gives on its own log: it is tried, and the spread of its advantages is stated."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from credit.bias_in_log import OnLog, on_log
from credit.ledger.from_methods import compose_claims
from credit.methods.availability import availability
from credit.methods.running import run
from credit.reports.own_outcomes import adds_outcomes
from credit.reports.trace_returns import returns
from credit.telling_apart import apart_by_events
from estimators.base import Reason
from graphs.errors import CreditError
from graphs.text import counted
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from estimators.base import Credit

__all__ = ["Beside", "Trial", "try_advice", "try_beside"]


@dataclasses.dataclass(frozen=True)
class Beside:
    """Another method to train with, that has no bias either.

    Attributes:
      method: its name, with options.
      provided: on what its having no bias rests that no log tells; "" where on nothing.
      effect: the standard deviation before and after, in words.
    """

    method: str
    provided: str
    effect: str


@dataclasses.dataclass(frozen=True)
class Trial:
    """The commands that some logs call for, as tried on them.

    Attributes:
      method: what supplies the advantages: "control", a name of `credit.METHODS`, with an option where outcomes of
        agents are added to those of traces, or "" where all numbers would be 0. "control" only where it has a lower
        standard deviation than the baseline.
      claims: the methods whose claims "control" takes, here or where `question` is answered with yes.
      unless: what the log leaves open, and would bias the method; "" where it is known to have no bias.
      effect: the standard deviation before and after, in words.
      question: what the logs cannot tell and decides whether "control" has no bias; "" where it needs no answer.
      effect_if_so: the effect of "control" if the answer is yes.
      effect_of_report: the standard deviation of what a ledger of all claims explains, and of what it does not.
      refused: why "control" or "ledger" is not recommended, though there are claims for it, or another method.
      beside: others to train with.
    """

    method: str = ""
    claims: tuple[str, ...] = ()
    unless: str = ""
    effect: str = ""
    question: str = ""
    effect_if_so: str = ""
    effect_of_report: str = ""
    refused: dict[str, str] = dataclasses.field(default_factory=dict)
    beside: tuple[Beside, ...] = ()


def try_advice(
    traces: Traces,
    baseline: str,
    compose: Sequence[str],
    controls: Mapping[str, OnLog],
    allowed: Mapping[str, OnLog],
) -> Trial:
    """Try "control" with each of its claims and with all, then the baseline, then others; the first that gives numbers.

    Methods known to have no bias come before those of which the log leaves it open; others are never tried.

    Args:
      traces: what was read.
      baseline: the method that supplies the total, "" where there is none.
      compose: methods whose claims a ledger to read has.
      controls: what is known of the methods whose claims have mean 0 under the policy.
      allowed: what is known of the methods of the branches, the best first.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.5])
      >>> try_advice(rows.traces, "rloo", [], {}, {"rloo": OnLog(unbiased=True)}).effect
      'standard deviation over 3 actions: outcomes 0.408, advantages 0.612'
    """
    trial = Trial()
    if baseline and (compose or controls):
        claims = {name: run(traces, name) for name in dict.fromkeys((baseline, *compose, *controls))}
        if compose:
            trial = _try_report(traces, {name: claims[name] for name in (baseline, *compose)})
        doubts = {baseline: allowed[baseline], **controls}
        left_open = [f"{name}: {of.but}" for name, of in doubts.items() if _left_open(of)]
        usable = [name for name, of in controls.items() if not (_left_open(of) or _left_open(allowed[baseline]))]
        sets = [[name] for name in usable] + ([usable] if len(usable) > 1 else [])
        tried = [_try_control(traces, {name: claims[name] for name in (baseline, *names)}) for names in sets]
        best = min(tried, key=lambda one: one.after, default=None)
        refused = [*(left_open if controls else []), *(one.why for one in tried if one.why)]
        if best is not None and best.after < math.inf:
            refused = [why for why in refused if why != best.why]
            if best.why:
                trial = dataclasses.replace(trial, claims=best.claims, question=best.why, effect_if_so=best.effect)
            else:
                trial = dataclasses.replace(trial, claims=best.claims, method="control", effect=best.effect)
        if refused:
            trial = dataclasses.replace(trial, refused={**trial.refused, "control": "; ".join(dict.fromkeys(refused))})
    if trial.method:
        return trial
    for name, found in sorted(allowed.items(), key=lambda item: not item[1].unbiased):  # stable: the best first
        effect = "" if found.unbiased is False else _effect(traces, run(traces, name))
        if effect:
            return dataclasses.replace(trial, method=name, unless=_left_open(found), effect=effect)
    if adds_outcomes(traces):
        found = on_log(traces, "rloo", ["agent_reward"])
        effect = "" if found.unbiased is False else _effect(traces, run(traces, "rloo", evidence=["agent_reward"]))
        if effect:
            name, unless = "rloo --evidence agent_reward", _left_open(found)
            return dataclasses.replace(trial, method=name, unless=unless, effect=effect)
    return trial


def try_beside(traces: Traces) -> tuple[tuple[Beside, ...], dict[str, str]]:
    """Returns against the logged values, and turns against turns, where the log has values or rewards at events.

    Args:
      traces: what was read.

    Returns:
      Those to train with, and why another is none, by its name.

    Examples:
      >>> import credit
      >>> columns = {"group": [0] * 3, "trace": ["a", "b", "c"], "reward": [1.0, 0.0, 0.5]}
      >>> _, _, rows = credit.from_columns(**columns, evidence={"value": [0.5, 0.5, 0.5]})
      >>> [(one.method, one.effect) for one in try_beside(rows.traces)[0]]
      [('gae --option lambda_=1', 'standard deviation over 3 actions: outcomes 0.408, advantages 0.408')]
    """
    found, refused = [], {}
    options: dict[str, Any] = {"lambda_": 1}
    if availability(traces)["gae"].state == "computable" and on_log(traces, "gae", options=options).unbiased:
        result = run(traces, "gae", **options)
        lacking = int(np.count_nonzero(np.asarray(result.reason) == Reason.NO_EVIDENCE))
        if lacking:
            refused["gae --option lambda_=1"] = f"{counted(lacking, 'action')} without a value would get no advantage"
        elif effect := _effect(traces, result):
            found.append(Beside("gae --option lambda_=1", "each value was computed before its action", effect))
    if "turn_baseline" in apart_by_events(traces) and on_log(traces, "turn_baseline").unbiased:
        found.append(Beside("turn_baseline", "", _effect(traces, run(traces, "turn_baseline"))))
    return tuple(found), refused


def _left_open(found: OnLog) -> str:
    """What leaves open whether a method has no bias on the log; "" where that is known."""
    return found.but if found.unbiased is None else ""


def _try_report(traces: Traces, claims: Mapping[str, Credit]) -> Trial:
    """The spread of returns that a ledger of all claims explains; its command's error where it has one."""
    try:
        ledger = compose_claims(traces, claims)
    except CreditError as error:
        return Trial(refused={"ledger": str(error)})
    scored = np.asarray(ledger.scored)
    rest, start = (np.asarray(part, np.float64)[scored] for part in (ledger.unexplained, ledger.expected))
    gains = np.asarray(ledger.reward, np.float64)[scored] - start
    count = counted(int(scored.sum()), "trace")
    return Trial(
        effect_of_report=f"standard deviation over {count}: returns minus expected {gains.std():.3g}, unexplained "
        f"{rest.std():.3g}"
    )


class _Tried(NamedTuple):
    """What "control" gives: its standard deviation, infinite where that is no less, and why it is not recommended."""

    claims: tuple[str, ...]
    after: float
    effect: str
    why: str


def _try_control(traces: Traces, claims: Mapping[str, Credit]) -> _Tried:
    """Of the claims behind the baseline; where it would narrow if all was decided before, `why` asks that."""
    names = tuple(claims)[1:]
    try:
        ledger = compose_claims(traces, claims)
        signal = ledger.advantage("control", strict=True)
        refused = {**ledger.refused, **signal.refused}
        if not signal.narrows and signal.refused:
            before = tuple(claims[name].source for name in names)
            signal = ledger.advantage("control", strict=True, decided_before=before)
    except CreditError as error:  # the command would end with it
        return _Tried(names, math.inf, "", f"{', '.join(names)}: {error}")
    why = "; ".join(f"{source}: {reason}" for source, reason in refused.items())
    if signal.narrows and signal.spread is not None:
        return _Tried(names, signal.spread.after, signal.effect, why)
    effect = f"{', '.join(names)}: {signal.effect}"
    return _Tried(names, math.inf, "", effect if signal.used else why)


def _effect(traces: Traces, result: Credit) -> str:
    """The spread of a method's advantages beside that of the returns; "" where every advantage is 0."""
    valid = np.asarray(result.valid)
    advantage = np.asarray(result.advantage, np.float64)[valid]
    if not np.any(np.abs(advantage) > 0):
        return ""
    reward, plain = returns(traces)[np.asarray(traces.graph.trace_ids)[valid]], "outcomes"
    if not np.isfinite(reward).all():  # outcomes of agents
        reward = np.asarray(result.credit, np.float64)[valid]
    elif "event_reward" in traces.evidence:
        plain = "returns"
    actions = counted(len(advantage), "action")
    return f"standard deviation over {actions}: {plain} {reward.std():.3g}, advantages {advantage.std():.3g}"
