"""`Shares`, what `solve` returns: one number per unit with its standard error, and how it becomes credit of events."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, finish
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import Level, level_ids

__all__ = ["Shares", "more_evaluations", "spread", "units_of"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Shares:
    """Shares of N units of the difference v(N) − v(∅).

    Attributes:
      share: float [N], 0 for padding; sums to `total` for values that are efficient.
      stderr: float [N], standard error of `share`, wider by Student's t where samples are few: ± 1.96 of it hold 95 %
        of errors. Infinite where the evaluations cannot tell, 0 where the share is exact up to rounding: a few
        epsilons of the spread of the values, so that single precision holds no share of 0.3 beside one of 1e12.
        `credit.shapley_plan` solves in double precision.
      unit_mask: bool [N].
      total: float [], v(N) − v(∅) as evaluated or as given.
      total_stderr: float [], its standard error: what noise in the endpoints leaves, as their repeats show it; repeats
        that agree show 0.
      evaluations: int32 [], how many values were used.
    """

    share: Array
    stderr: Array
    unit_mask: Array
    total: Array
    total_stderr: Array
    evaluations: Array


def more_evaluations(shares: Shares, target: float) -> int | None:
    """How many evaluations in addition bring the mean standard error to `target`; None where no number does.

    The error falls as 1/√m: m (s/target)² − m, with s the root mean square of `stderr`. It cannot be said where a
    standard error is infinite.

    Examples:
      >>> import jax.numpy as jnp
      >>> from estimators.shapley import Shares
      >>> one = jnp.ones(())
      >>> shares = Shares(jnp.ones(2) / 2, jnp.full(2, 0.25), jnp.ones(2, bool), one, 0 * one, jnp.array(100))
      >>> more_evaluations(shares, target=0.125)
      300
    """
    real = np.asarray(shares.stderr, np.float64)[np.asarray(shares.unit_mask)]
    if not np.isfinite(real).all():
        return None
    m, s = int(shares.evaluations), float(np.sqrt((real**2).mean()))
    return max(0, math.ceil(m * ((s / target) ** 2 - 1)))


def units_of(graph: EventGraph, level: Level) -> int:
    """The range that ids of a level lie in: the length of the array they index."""
    return {"trace": graph.num_traces, "agent": graph.num_agents, "role": graph.num_agents}.get(level, graph.num_events)


def spread(
    graph: EventGraph,
    shares: Array,
    stderr: Array,
    *,
    level: Level,
    source: str = "shapley",
    estimand: Literal["share", "effect"] = "share",
) -> Credit:
    """Give each event its unit's share: `Credit` constant within a unit.

    The number is the unit's whole share and is *not* divided among its events: dividing would mean that an agent with
    more turns earned less in each. So the total of a trace is the sum over units, each counted once (for example
    `credit[segment_first(level_ids(graph, level), E, graph.action_mask)]`), never the sum over events.

    Args:
      graph: uses the ids of `level` and the masks.
      shares: float [U], indexed by the ids of `level` (`graphs.level_ids`); NaN where a unit has no share.
      stderr: float [U].
      level: the level whose units the shares belong to.
      source: whose errors this shares.
      estimand: "effect" for leave-one-out numbers, which are no shares of a total.

    Raises:
      CreditError: the arrays are shorter than the range of ids, which is that of agents, turns, events or traces.
    """
    shares, stderr = jnp.asarray(shares), jnp.asarray(stderr)
    room = units_of(graph, level)
    if shares.shape != (room,) or stderr.shape != (room,):
        raise CreditError(
            f"shares {shares.shape} and stderr {stderr.shape}; expected ({room},) each, by ids of {level!r}"
        )
    ids = level_ids(graph, level)
    amount, error = shares[ids], stderr[ids]
    known = jnp.isfinite(amount)
    zero = jnp.zeros_like(amount)
    return finish(
        graph,
        credit=jnp.where(known, amount, zero),
        baseline=zero,
        scale=jnp.ones_like(amount),
        stderr=jnp.where(known, error, zero),
        reason=jnp.where(known, Reason.VALID, Reason.NO_EVIDENCE),
        unit=level,
        estimand=estimand,
        source=source,
        centred=False,
        own_outcome=True,
    )
