"""From the names of methods on a command line to a ledger: conversions that need to know with what options they ran."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from credit.ledger import compose
from credit.methods.published import find_method
from credit.reports.corpus import returns
from graphs.errors import CreditError
from graphs.traces.evidence import Evidence
from graphs.traces.schema import EVENT_EVIDENCE

if TYPE_CHECKING:
    from credit.cli.shared.claims import Asked
    from credit.ledger import Ledger
    from credit.ledger.composition import Rule
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["Expected", "compose_channels", "compose_claims", "parse_channels", "total_of"]

Expected = Literal["baseline", "value"]


def compose_claims(
    traces: Traces,
    claims: Mapping[str, Credit],
    *,
    rule: Rule = "increments",
    expected: Expected = "baseline",
    tau: float | Literal["fit"] = float("inf"),
    unclaimed: float | None = None,
    exact: Iterable[str] = (),
    total: np.ndarray | None = None,
) -> Ledger:
    """Compose what methods of a command line found; the log's propensities serve the conversion of effects.

    Args:
      claims: by the names of the command line.
      expected: what each trace was worth at its start: "baseline", of the first broadcast among the claims, or else the
        mean of the other traces of the group; "value", the log's value before the first action.
      tau, unclaimed, exact: for the rule "reconcile": `tau`, `scale` and `exact` of `credit.compose`, the latter by the
        names of the command line.
      total: float [T], what the ledger accounts for; by default `total_of`.

    Raises:
      CreditError: as `credit.compose`; "value" for logs without values.
    """
    propensity = traces.evidence.get("propensity")
    pi = None if propensity is None else propensity.array
    start = None if expected == "baseline" else _value_at_start(traces)
    whole = total_of(traces) if total is None else total
    for name in exact:
        if name not in claims:
            raise CreditError(f"--exact names {name!r}; expected one of the claims, {', '.join(claims)}")
    return compose(
        traces.graph,
        whole,
        tuple(claims.values()),
        rule=rule,
        propensity=pi,
        expected=start,
        tau=tau,
        scale=unclaimed,
        exact=tuple(claims[name].source for name in exact),
    )


def total_of(traces: Traces) -> np.ndarray:
    """What methods divide: the outcome of each trace and its rewards at events, which they are always given: [T]."""
    total = np.asarray(traces.reward, np.float32).copy()
    total[: traces.sizes.traces] = returns(traces)
    return total


def _value_at_start(traces: Traces) -> np.ndarray:
    """V before the first action of each trace: [T]; 0 where it has no action."""
    value = traces.evidence.get("value")
    how = EVENT_EVIDENCE["value"].how_to_log
    if value is None:
        raise CreditError(f"--expected is 'value', which the log does not have; {how}")
    graph = traces.graph
    actions = np.flatnonzero(np.asarray(graph.action_mask) & np.asarray(graph.event_mask))
    trace, first = np.unique(np.asarray(graph.trace_ids)[actions], return_index=True)
    bare = np.flatnonzero(~value.mask[actions[first]])
    if len(bare):
        name = traces.traces["trace"][int(trace[bare[0]])].as_py()
        raise CreditError(f"--expected is 'value', which the first action of trace {name!r} does not have; {how}")
    start = np.zeros(graph.num_traces, np.float32)
    start[trace] = value.array[actions[first]]
    return start


OF_THE_OUTCOME = frozenset({"value", "q_value", "target_value", "greedy_reward", "counterfactual_reward"})
"""Evidence that speaks of the log's outcome and says nothing about another reward."""


def parse_channels(texts: Iterable[str], step: int) -> dict[str, float]:
    """`NAME=WEIGHT` and `NAME=START..END/STEPS` as the weight of each channel at a step of training.

    Raises:
      CreditError: another form, or a channel named twice.
    """
    from credit.ledger.channels import annealed

    weights: dict[str, float] = {}
    for text in texts:
        name, sign, amount = text.rpartition("=")
        match = re.fullmatch(rf"({NUMBER})(?:\.\.({NUMBER})/(\d+))?", amount)
        if not sign or not name or match is None:
            raise CreditError(f"--channel {text!r}; expected NAME=WEIGHT or NAME=START..END/STEPS")
        if name in weights:
            raise CreditError(f"--channel names {name!r} twice")
        start, end, steps = match.groups()
        weights[name] = float(start) if end is None else annealed(float(start), float(end), int(steps))(step)
    return weights


NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"


def compose_channels(
    traces: Traces,
    weights: Mapping[str, float],
    asked: Asked,
    *,
    outcome: str,
    **making: Any,
) -> Ledger:
    """One ledger a channel, each from the methods run on that channel's reward, and their weighted sum.

    A method that needs a critic's values or re-runs is refused, by name, on channels other than the outcome.

    Raises:
      CreditError: no channel of that name in the log; as `compose_claims`.
    """
    from credit.ledger.channels import channel
    from credit.ledger.sums import weighted_sum

    ledgers = {}
    for name in weights:
        part = channel(traces, name)
        evidence = {key: value for key, value in traces.evidence.items() if key != "event_reward"}
        if part.event_reward is not None:
            evidence["event_reward"] = Evidence.of(part.event_reward, np.asarray(traces.graph.event_mask))
        mine = dataclasses.replace(traces, reward=part.outcome, evidence=evidence)
        wanted = {m: OF_THE_OUTCOME.intersection(find_method(m).needs) if name != outcome else () for m in asked.names}
        claims = asked.compute(mine, (m for m in asked.names if not wanted[m]))
        stated = tuple(m for m in making.get("exact", ()) if m not in asked.names or m in claims)
        ledger = compose_claims(mine, claims, total=part.total, **{**making, "exact": stated})
        no = {
            m: f"{m!r} needs {', '.join(sorted(w))}, which says nothing about {name!r}" for m, w in wanted.items() if w
        }
        ledgers[name] = dataclasses.replace(ledger, refused={**ledger.refused, **no})
    return weighted_sum(ledgers, weights)
