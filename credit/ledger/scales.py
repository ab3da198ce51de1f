"""What divides advantages last: a spread of their own by agent or role name, or a method's scale, both with a floor."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from credit.ledger.entries import Entries
from estimators.base import Credit, Reason, finish
from estimators.composition.scaling import LARGEST, PRIOR_TRACES, agent_scale, group_spread
from graphs.errors import CreditError
from graphs.levels import By

__all__ = ["scaled"]


def scaled(ledger: Entries, result: Credit, scale: str | Credit) -> tuple[Credit, str]:
    """The advantages of `result` divided by a scale, and the scale in words.

    No scaled advantage exceeds `estimators.composition.scaling.LARGEST`: a scale below that part of the largest
    advantage of its group is raised to it. Names that act in one trace of their group have no scale: TOO_FEW.

    Raises:
      CreditError: no such scale.
    """
    if isinstance(scale, str) and scale in ("agent_name", "role_name"):
        by: By = "agent_name" if scale == "agent_name" else "role_name"
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
