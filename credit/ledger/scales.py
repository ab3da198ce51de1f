"""Scales of advantages, applied last, and the size of advantages before: in spreads of the rewards of their group.

The spread of a group is the range of its rewards. Where they are all equal it is the range of rewards and expected
rewards; where these are equal, too, the mean spread of the groups that have one.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.entries import Entries
from estimators.base import Credit, Reason, finish
from estimators.composition.scaling import LARGEST, PRIOR_TRACES, agent_scale, group_spread
from graphs.errors import CreditError
from graphs.levels import Name

__all__ = ["Largest", "largest_advantage", "scaled"]


def scaled(ledger: Entries, result: Credit, scale: str | Credit) -> tuple[Credit, str]:
    """The advantages of `result` divided by a scale, and a description of the scale.

    No scaled advantage exceeds `estimators.composition.scaling.LARGEST`: a scale below that part of the largest
    advantage of its group is raised to it. Names that act in one trace of their group have no scale: TOO_FEW.

    Raises:
      CreditError: no such scale.
    """
    if isinstance(scale, str) and scale in ("agent_name", "role_name"):
        by: Name = "agent_name" if scale == "agent_name" else "role_name"
        spread = agent_scale(ledger.graph, result.advantage, result.valid, by=by)
        reason = jnp.where(result.valid & (spread.traces < 2), Reason.TOO_FEW, result.reason)
        words = (
            f"the root mean square over the other traces of one {scale.replace('_', ' ')} in one group, where the "
            f"whole group counts for {PRIOR_TRACES:g} traces"
        )
        return _divided(ledger, result, spread.scale, reason), words
    if isinstance(scale, str):
        if scale not in ledger.scales:
            known = ", ".join([*ledger.scales, "agent_name", "role_name"])
            raise CreditError(f"scale is {scale!r}; expected one of {known}, or a Credit")
        scale = ledger.scales[scale]
    if jnp.shape(scale.scale) != jnp.shape(result.credit):
        expected = f"{jnp.shape(result.credit)}, one entry for each event of this batch"
        raise CreditError(f"the scale of {scale.source!r} has shape {jnp.shape(scale.scale)}; expected {expected}")
    _, largest = group_spread(ledger.graph, result.advantage, result.valid)
    divisor = jnp.maximum(jnp.asarray(scale.scale), largest / LARGEST)
    reason = jnp.where(scale.valid, result.reason, scale.reason)
    return _divided(ledger, result, divisor, reason), f"the scale of {scale.source!r}"


def _divided(ledger: Entries, result: Credit, divisor: jax.Array, reason: jax.Array) -> Credit:
    return finish(
        ledger.graph,
        credit=jnp.asarray(result.credit),
        baseline=jnp.asarray(result.baseline),
        scale=divisor,
        stderr=jnp.asarray(result.stderr),
        reason=reason,
        unit="event",
        estimand="scale",
        source=f"{result.source} scaled",
        centred=False,
        own_outcome=result.own_outcome,
    )


class Largest(NamedTuple):
    """The largest advantage in spreads of its group's rewards: 0 without any, infinite where no group has a spread.

    Attributes:
      multiple: |A| / spread.
      event: its event, or -1.
      spread: of its group, or 0.
      of_group: float, of the group of each event, its largest multiple: [E].
    """

    multiple: float
    event: int
    spread: float
    of_group: np.ndarray


def largest_advantage(ledger: Entries, result: Credit) -> Largest:
    """Where an advantage of `result` is largest, in spreads of the rewards of its group."""
    graph = ledger.graph
    reward, expected = (np.asarray(x, np.float64) for x in (ledger.reward, ledger.expected))
    group, scored = np.asarray(graph.group_ids), np.asarray(ledger.scored)
    spread = _ranges([reward], group, scored)
    # A group of equal rewards is measured against its expectation; without a spread there, by the mean of the others.
    spread = np.where(spread > 0, spread, _ranges([reward, expected], group, scored))
    known = spread[spread > 0]
    spread = np.where(spread > 0, spread, known.mean() if known.size else 0)[group][np.asarray(graph.trace_ids)]
    size = np.where(np.asarray(result.valid), np.abs(np.asarray(result.advantage, np.float64)), 0)
    most = np.zeros(len(group))
    np.maximum.at(most, group[scored], np.abs(reward[scored]))
    size = np.where(size > _rounding(most)[group][np.asarray(graph.trace_ids)], size, 0)
    if not size.any():
        return Largest(0.0, -1, 0.0, np.zeros(len(size)))
    multiple = np.divide(size, spread, out=np.where(size > 0, np.inf, 0), where=spread > 0)
    event = int(np.argmax(multiple))
    of_event, of_group = group[np.asarray(graph.trace_ids)], np.zeros(len(group))
    np.maximum.at(of_group, of_event, multiple)
    return Largest(float(multiple[event]), event, float(spread[event]), of_group[of_event])


def _ranges(values: list[np.ndarray], group: np.ndarray, scored: np.ndarray) -> np.ndarray:
    """Greatest minus least value of the traces of each group, [T]; 0 where the difference is rounding."""
    high, low = np.full(len(group), -np.inf), np.full(len(group), np.inf)
    for value in values:
        np.maximum.at(high, group[scored], value[scored])
        np.minimum.at(low, group[scored], value[scored])
    ranges: np.ndarray = np.subtract(high, low, out=np.zeros(len(group)), where=high - low > _rounding(high, low))
    return ranges


def _rounding(*values: np.ndarray) -> np.ndarray:
    """What a difference of such float32 numbers may be off by."""
    size: np.ndarray = 16 * np.finfo(np.float32).eps * np.max(np.abs(values), axis=0)
    return size
