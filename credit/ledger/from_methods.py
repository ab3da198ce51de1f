"""Ledgers of traces that were read: claims by the names of their methods, and one ledger for each reward channel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from credit.ledger.channels import channel
from credit.ledger.composition import ledger_of
from credit.ledger.rules import Increments, Reconcile, Rule, Shares
from credit.ledger.signal import Condition, Signal
from credit.ledger.sums import weighted_claim, weighted_sum
from credit.methods.published import find_method
from credit.reports.own_outcomes import has_agent_outcomes
from credit.reports.trace_returns import returns
from estimators.composition.votes import Errors
from graphs.errors import CreditError
from graphs.traces.batch import Traces
from graphs.traces.evidence import Evidence
from graphs.traces.schema import EVENT_EVIDENCE, LIKE_OUTCOMES

if TYPE_CHECKING:
    from credit.ledger.account import Ledger
    from estimators.base import Credit

__all__ = ["Expected", "compose_channels", "compose_claims", "total_of", "with_versions"]

Expected = Literal["baseline", "value"]
RuleName = Literal["increments", "reconcile", "shares"]

OF_THE_OUTCOME = (LIKE_OUTCOMES | {"share"}) - {"agent_reward"}
"""Evidence about the outcome of the log. It does not measure other reward channels."""


def compose_claims(
    traces: Traces,
    claims: Mapping[str, Credit],
    *,
    rule: RuleName = "increments",
    expected: Expected = "baseline",
    tau: float | Literal["fit"] = float("inf"),
    unclaimed: float | None = None,
    exact: Iterable[str] = (),
    total: np.ndarray | None = None,
) -> Ledger:
    """Compose claims on traces that were read; the propensities of the log convert contrasts into increments.

    Args:
      traces: what was read.
      claims: results of methods on `traces.graph`, by name.
      rule: the name of a rule of `credit.ledger`: "increments", "reconcile" or "shares".
      expected: the worth of each trace at its start: "baseline", that of the first broadcast among the claims, or else
        the mean of the other traces of the group; "value", the log's value before the first action.
      tau: rule "reconcile": prior standard deviation of what stays unexplained.
      unclaimed: rule "reconcile": prior standard deviation of a trace's unclaimed events together; None gives them 0.
      exact: names of claims whose standard errors of 0 are constraints.
      total: float [T], what the ledger accounts for; by default `total_of(traces)`.

    Returns:
      The ledger of `traces.graph`.

    Raises:
      CreditError: a claim is of another batch or cannot be composed by the rule; no such rule; `exact` names no claim;
        `expected` is "value" and the log has no values; agents have outcomes of their own, and no `total` has them.
    """
    if total is None and has_agent_outcomes(traces):
        raise CreditError(
            "the log has agent_reward, outcomes of single agents; a ledger accounts for what a trace earned: expected "
            "a channel for each agent, such as `credit compose --channel agent_reward.NAME=1` (credit.ledger.channel), "
            "or total=, float [T]"
        )
    propensity = traces.evidence.get("propensity")
    for name in exact:
        if name not in claims:
            raise CreditError(f"exact names {name!r}; expected one of the claims, {', '.join(claims)}")
    return ledger_of(
        traces.graph,
        total_of(traces) if total is None else total,
        tuple(claims.values()),
        rule=_rule(rule, tau, unclaimed, tuple(claims[name].source for name in exact)),
        propensity=None if propensity is None else propensity.array,
        expected=None if expected == "baseline" else _value_at_start(traces),
    )


def with_versions(signal: Signal, traces: Traces) -> Signal:
    """Advantages of a ledger of these traces, with the condition that several versions of the policy ask of claims.

    Args:
      signal: of `Ledger.advantage`.
      traces: of the ledger.
    """
    notes = [note for note in traces.problems if note.kind == "several-versions"] if signal.used else []
    why = "; right if each claim has mean 0 under the policy that acted in its own trace"
    versions = [Condition("versions", None, f"policy_version is {note.value}{why}") for note in notes]
    return dataclasses.replace(signal, conditions=(*signal.conditions, *versions))


def _rule(name: RuleName, tau: float | Literal["fit"], scale: float | None, exact: tuple[str, ...]) -> Rule:
    """The rule of a name, with those of the settings that it has."""
    if name == "increments":
        return Increments(Errors(exact))
    if name == "reconcile":
        return Reconcile(tau, scale, Errors(exact))
    if name == "shares":
        return Shares()
    raise CreditError(f"rule is {name!r}; expected 'increments', 'reconcile' or 'shares'")


def total_of(traces: Traces) -> np.ndarray:
    """The return of each trace: its outcome and the rewards at its events, float32 [T]; NaN where it has no outcome.

    Args:
      traces: a batch.
    """
    total = np.asarray(traces.reward, np.float32).copy()
    total[: traces.sizes.traces] = returns(traces)
    return total


def compose_channels(
    traces: Traces,
    weights: Mapping[str, float],
    methods: Iterable[str],
    compute: Callable[[Traces, Iterable[str]], Mapping[str, Credit]],
    *,
    outcome: str = "team",
    **composing: Any,
) -> tuple[Ledger, dict[str, Credit]]:
    """The weighted sum of one ledger a reward channel, each from the methods run on that channel's reward.

    A method that needs values or re-runs of the outcome is refused, by name, on other channels.

    Args:
      traces: what was read.
      weights: the weight of each channel, by name.
      methods: names of methods.
      compute: their results on traces whose reward is the channel's, by name.
      outcome: the channel that is the outcome of the log.
      **composing: arguments of `compose_claims`.

    Returns:
      The ledger, and the claims times the weight of their channel, by "CHANNEL/METHOD".

    Raises:
      CreditError: no channel of that name in the log; the claims of a channel cannot be composed.
    """
    names = tuple(methods)
    ledgers: dict[str, Ledger] = {}
    weighted: dict[str, Credit] = {}
    for name, weight in weights.items():
        part = channel(traces, name)
        # Rewards of other channels, and evidence that is not about this one.
        replaced = frozenset() if name == outcome else OF_THE_OUTCOME & traces.evidence.keys()
        evidence = {k: v for k, v in traces.evidence.items() if k not in {"event_reward", "agent_reward", *replaced}}
        if part.event_reward is not None:
            evidence["event_reward"] = Evidence.of(part.event_reward, np.asarray(traces.graph.event_mask))
        on_channel = dataclasses.replace(traces, reward=part.outcome, evidence=evidence)
        foreign = {m: OF_THE_OUTCOME.intersection(find_method(m).needs) if name != outcome else () for m in names}
        try:
            claims = compute(on_channel, [m for m in names if not foreign[m]])
            exact = tuple(m for m in composing.get("exact", ()) if m not in names or m in claims)
            ledger = compose_claims(on_channel, claims, total=part.total, **{**composing, "exact": exact})
        except CreditError as error:
            without = f", without {', '.join(sorted(replaced))}, which is of {outcome!r}" if replaced else ""
            raise CreditError(f"{error}; on channel {name!r}{without}") from error
        refused = {
            m: f"{m!r} needs {', '.join(sorted(keys))}, which does not measure {name!r}"
            for m, keys in foreign.items()
            if keys
        }
        ledgers[name] = dataclasses.replace(ledger, refused={**ledger.refused, **refused})
        weighted |= {f"{name}/{method}": weighted_claim(claim, name, weight) for method, claim in claims.items()}
    return weighted_sum(ledgers, weights), weighted


def _value_at_start(traces: Traces) -> np.ndarray:
    """V before the first action of each trace: [T]; 0 where it has no action."""
    value = traces.evidence.get("value")
    how = EVENT_EVIDENCE["value"].how_to_log
    if value is None:
        raise CreditError(f"expected is 'value', which the log does not have; {how}")
    graph = traces.graph
    actions = np.flatnonzero(np.asarray(graph.action_mask) & np.asarray(graph.event_mask))
    trace, first = np.unique(np.asarray(graph.trace_ids)[actions], return_index=True)
    without = np.flatnonzero(~value.mask[actions[first]])
    if len(without):
        name = traces.traces["trace"][int(trace[without[0]])].as_py()
        raise CreditError(f"expected is 'value', which the first action of trace {name!r} does not have; {how}")
    start = np.zeros(graph.num_traces, np.float32)
    start[trace] = value.array[actions[first]]
    return start
