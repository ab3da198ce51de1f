"""From the names of methods on a command line to a ledger: conversions that need to know with what options they ran."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from credit.cli.claims import options_for
from credit.cli.options import parse_options
from credit.columns import evidence_array
from credit.ledger import compose
from credit.published import find_method
from estimators.increments import NotComposableError, as_increment
from graphs.errors import CreditError
from graphs.schema import EVENT_EVIDENCE

if TYPE_CHECKING:
    from credit.ledger import Ledger
    from estimators.base import Credit
    from graphs.traces import Traces

__all__ = ["Expected", "compose_claims"]

Expected = Literal["baseline", "value"]


def compose_claims(
    traces: Traces,
    claims: Mapping[str, Credit],
    given: Iterable[str],
    *,
    rule: str = "increments",
    expected: Expected = "baseline",
) -> Ledger:
    """Compose what methods of a command line found; the log's propensities serve the conversion of effects.

    A return is converted with the λ that its method ran with, which its result does not hold; one that was discounted
    is refused, since the increments of a discounted return do not add up to the reward.

    Args:
      claims: by the names of the command line.
      given: its `--option`s, METHOD.KEY=VALUE.
      expected: what each trace was worth at its start: "baseline", of the first broadcast among the claims, or else the
        mean of the other traces of the group; "value", the log's value before the first action.

    Raises:
      CreditError: as `credit.compose`; "value" for logs without values.
    """
    propensity = traces.evidence.get("propensity")
    pi = None if propensity is None else evidence_array("float", *propensity)
    ready: list[Credit] = []
    refused: dict[str, str] = {}
    for name, claim in claims.items():
        if claim.estimand != "return":
            ready.append(claim)
            continue
        try:
            ready.append(as_increment(traces.graph, claim, lambda_=_lambda(name, claim, given)))
        except NotComposableError as error:
            refused[claim.source] = str(error)
    start = None if expected == "baseline" else _value_at_start(traces)
    ledger = compose(traces.graph, traces.reward, ready, rule=rule, propensity=pi, expected=start)
    return dataclasses.replace(ledger, refused={**ledger.refused, **refused})


def _lambda(name: str, claim: Credit, given: Iterable[str]) -> float:
    """The λ that a return was computed with.

    Raises:
      NotComposableError: it was discounted.
    """
    method = find_method(name)
    options = parse_options(name, options_for(name, given))

    def used(option: str) -> float:
        parameter = inspect.signature(method.fn).parameters.get(option)
        return 1.0 if parameter is None else float(options.get(option, parameter.default))

    if used("discount") != 1.0:
        why = f"its discount is {used('discount')}, and increments of a discounted return do not add up to the reward"
        raise NotComposableError(claim.source, "return", why)
    return used("lambda_")


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
    start[trace] = value.values[actions[first]]
    return start
