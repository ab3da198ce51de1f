"""What an advised command gives on its own log: it is tried, and the spread of its advantages is stated."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from credit.ledger.from_methods import compose_claims
from credit.methods.running import has_agent_outcomes, has_trace_outcomes, run
from graphs.errors import CreditError
from graphs.text import counted
from graphs.traces.batch import Traces

if TYPE_CHECKING:
    from estimators.base import Credit

__all__ = ["Trial", "try_advice"]


@dataclasses.dataclass(frozen=True)
class Trial:
    """The training command that some logs call for, as tried on them.

    Attributes:
      method: what supplies the advantages: "control", a name of `credit.METHODS`, with an option where outcomes of
        agents are added to those of traces, or "" where all numbers would be 0.
      effect: the standard deviation before and after, in words.
      question: what the logs cannot tell and decides whether "control" has no bias; "" where it needs no answer.
      effect_if_so: the effect of "control" if the answer is yes.
      failure: why "control" was refused, as its command would say it; "" where it was not.
    """

    method: str = ""
    effect: str = ""
    question: str = ""
    effect_if_so: str = ""
    failure: str = ""


def try_advice(traces: Traces, baseline: str, centred: Sequence[str], unbiased: Sequence[str]) -> Trial:
    """Try "control" with the centred claims, then the baseline, then other methods; the first that gives numbers.

    Args:
      traces: what was read.
      baseline: the method that supplies the total, "" where there is none.
      centred: methods whose claims have mean 0 under the policy.
      unbiased: methods whose policy gradient has no bias, the best first.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.5])
      >>> try_advice(rows.traces, "rloo", [], []).effect
      'standard deviation over 3 actions: outcomes 0.408, advantages 0.612'
    """
    trial = _try_control(traces, baseline, centred) if baseline and centred else Trial()
    if trial.method:
        return trial
    for name in dict.fromkeys([baseline, *unbiased] if baseline else unbiased):
        effect = _effect(traces, run(traces, name))
        if effect:
            return dataclasses.replace(trial, method=name, effect=effect)
    if has_agent_outcomes(traces) and has_trace_outcomes(traces):
        effect = _effect(traces, run(traces, "rloo", evidence=["agent_reward"]))
        return dataclasses.replace(trial, method="rloo --evidence agent_reward" if effect else "", effect=effect)
    return trial


def _try_control(traces: Traces, baseline: str, centred: Sequence[str]) -> Trial:
    """`method` is "" where the claims are left out, `question` says what would let them in."""
    claims = {name: run(traces, name) for name in (baseline, *centred)}
    try:
        ledger = compose_claims(traces, claims)
        signal = ledger.advantage("control")
        if signal.used:
            return Trial("control", signal.effect)
        asserted = ledger.advantage("control", decided_before=tuple(claims[name].source for name in centred))
    except CreditError as error:  # the command would end with it
        return Trial(failure=str(error))
    if not asserted.used:
        return Trial()
    why = "; ".join(f"{source}: {signal.refused[source]}" for source in asserted.used)
    return Trial(question=why, effect_if_so=asserted.effect)


def _effect(traces: Traces, result: Credit) -> str:
    """The spread of a method's advantages beside that of the rewards; "" where every advantage is 0."""
    valid = np.asarray(result.valid)
    advantage = np.asarray(result.advantage, np.float64)[valid]
    if not np.any(np.abs(advantage) > 0):
        return ""
    reward = np.asarray(traces.reward, np.float64)[np.asarray(traces.graph.trace_ids)[valid]]
    if not np.isfinite(reward).all():  # outcomes of agents
        reward = np.asarray(result.credit, np.float64)[valid]
    actions = counted(len(advantage), "action")
    return f"standard deviation over {actions}: outcomes {reward.std():.3g}, advantages {advantage.std():.3g}"
