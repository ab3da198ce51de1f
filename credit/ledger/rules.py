"""The rules of composition: their settings, and the entries that each computes before exact rounding."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit
from estimators.composition.increments import combine
from estimators.composition.nesting import (
    COARSE_TO_FINE,
    NestingError,
    level_size,
    numbers_of_units,
    parents,
    unit_of_event,
)
from estimators.composition.top_down import Weights, split_down
from estimators.composition.votes import Errors
from estimators.kept_functions import kept_compiled
from graphs.errors import CreditError
from graphs.event_graph import EventGraph

__all__ = [
    "Composed",
    "Increments",
    "Reconcile",
    "Rule",
    "Shares",
    "by_increments",
    "by_shares",
    "chi_squared_pairs",
    "no_entries",
]


@dataclasses.dataclass(frozen=True)
class Increments:
    """Claims on events are averaged, one vote a source, never added. An event without a claim gets exactly 0.

    Attributes:
      errors: what errors of 0 mean; without it they are unknown errors.
    """

    name: ClassVar[str] = "increments"
    errors: Errors = dataclasses.field(default_factory=Errors)


@dataclasses.dataclass(frozen=True)
class Reconcile:
    """Claims on sums of increments at nested levels are made to agree by least squares.

    Attributes:
      tau: prior standard deviation of a trace's unexplained, in units of reward: infinite, the total moves no claim; 0,
        the entries come to the total wherever an event may move; "fit", estimated from the batch.
      scale: prior standard deviation of what the unclaimed events of a trace add up to, divided equally among siblings
        from the top down, so that splitting work into more events does not pay. Without it they get 0.
      errors: what errors of 0 mean; without it they are refused.

    Raises:
      CreditError: `tau` below 0, `scale` not positive and finite.
    """

    name: ClassVar[str] = "reconcile"
    tau: float | Literal["fit"] = float("inf")
    scale: float | None = None
    errors: Errors = dataclasses.field(default_factory=Errors)

    def __post_init__(self) -> None:
        if self.tau != "fit" and not (isinstance(self.tau, int | float) and self.tau >= 0):
            raise CreditError(f"tau is {self.tau!r}; expected a number of 0 or more, infinity, or 'fit'")
        if self.scale is not None and not (np.isfinite(self.scale) and self.scale > 0):
            raise CreditError(f"scale is {self.scale!r}; expected a positive number in units of reward, or None")


@dataclasses.dataclass(frozen=True)
class Shares:
    """The total is split from the top down by shares, scores or budgets, evenly where there are none."""

    name: ClassVar[str] = "shares"


Rule = Increments | Reconcile | Shares


class Composed(NamedTuple):
    """The entries that a rule computes from claims.

    Attributes:
      channels: C names.
      cells: float [E, C], before they are put on the grid.
      stderr: float [E], of the sum of an event's cells.
      claimed: bool [E], events that may have an entry.
      claims: those that took part, in the form in which they did.
      refused: the others by source, or those that took part in some places only, and why.
      chi_squared: by pairs of sources.
      unexplained_variance: τ² under rule "reconcile".
    """

    channels: tuple[str, ...]
    cells: jax.Array
    stderr: jax.Array
    claimed: jax.Array
    claims: tuple[Credit, ...]
    refused: dict[str, str]
    chi_squared: dict[tuple[str, str], float]
    unexplained_variance: float = float("nan")


def no_entries(graph: EventGraph, dtype: jax.typing.DTypeLike, refused: dict[str, str]) -> Composed:
    """No event has an entry: no claim can take part."""
    nothing = jnp.zeros(graph.num_events, dtype)
    return Composed(("nobody",), nothing[:, None], nothing, nothing > 0, (), refused, {})


def by_increments(graph: EventGraph, scored: jax.Array, claims: Sequence[Credit], rule: Increments) -> Composed:
    """Claims on events, averaged."""
    refused = {
        claim.source: f"it claims sums over {claim.unit}s, which only rule 'reconcile' can place"
        for claim in claims
        if claim.unit != "event"
    }
    kept = [claim for claim in claims if claim.unit == "event"]
    if not kept:
        return no_entries(graph, jnp.float32, refused)
    combined = combine(kept, rule.errors)
    claimed, cells = _of_scored(combined.parts, combined.claim_mask, scored, jnp.asarray(graph.trace_ids))
    return Composed(
        channels=combined.sources,
        cells=cells,
        stderr=combined.stderr,
        claimed=claimed,
        claims=tuple(kept),
        refused=refused,
        chi_squared=chi_squared_pairs(combined.sources, np.asarray(combined.chi_squared)),
    )


@kept_compiled
@jax.jit
def _of_scored(
    parts: jax.Array, claim_mask: jax.Array, scored: jax.Array, trace: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The events claimed of traces that have a total, bool [E], and what each source gives to them, [E, C]."""
    claimed = claim_mask & scored[trace]
    return claimed, jnp.where(claimed[:, None], parts.T, 0)


def chi_squared_pairs(sources: tuple[str, ...], matrix: np.ndarray) -> dict[tuple[str, str], float]:
    """The upper triangle of χ² between sources, by pairs."""
    return {(a, b): float(matrix[i, j]) for i, a in enumerate(sources) for j, b in enumerate(sources) if i < j}


def by_shares(graph: EventGraph, left: jax.Array, scored: jax.Array, claims: Sequence[Credit]) -> Composed:
    """The total `left` [T], split from the top down by the shares and scores of one source a level."""
    by_level, refused = _dividers(claims)
    names = [level for level in COARSE_TO_FINE if level in by_level]
    actions = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    actions &= np.asarray(scored)[np.asarray(graph.trace_ids)]
    rungs = [*names, "event"] if "event" not in by_level else names
    ids = [unit_of_event(graph, name) for name in rungs]
    sizes = [level_size(graph, name) for name in rungs]
    above = parents(graph, rungs[::-1], ids[::-1], sizes[::-1])[::-1]  # of a rung's units, in the rung before
    above.insert(0, parents(graph, [rungs[0], "trace"], [ids[0], np.asarray(graph.trace_ids)], sizes[:1])[0])
    levels = []
    for name, unit, size, parent in zip(rungs, ids, sizes, above, strict=True):
        weight, unit_mask = np.zeros(size), np.zeros(size, bool)
        of_level = by_level.get(name)
        use = actions if of_level is None else actions & np.asarray(of_level.valid)
        if of_level is None:
            weight[unit[use]] = 1.0
        else:
            numbers_of_units(
                of_level.source, name, unit[use], np.asarray(of_level.credit - of_level.baseline)[use], weight
            )
        unit_mask[unit[use]] = True
        levels.append(Weights(jnp.asarray(weight, left.dtype), jnp.asarray(unit_mask), jnp.asarray(parent)))
    shares = tuple(name in by_level and by_level[name].estimand == "share" for name in rungs)
    amount = split_down(tuple(levels), left, shares)
    used = tuple(by_level[name] for name in names)
    return Composed(
        channels=("+".join(claim.source for claim in used) or "even",),
        cells=amount[:, None],
        stderr=jnp.full_like(amount, jnp.inf),
        claimed=levels[-1].unit_mask,
        claims=used,
        refused=refused,
        chi_squared={},
    )


def _dividers(claims: Sequence[Credit]) -> tuple[dict[str, Credit], dict[str, str]]:
    """The claim that divides the units of each level, and the others by source with the reason."""
    by_level: dict[str, Credit] = {}
    refused: dict[str, str] = {}
    for claim in claims:
        if claim.estimand not in ("share", "score"):
            why = "rule 'shares' divides by shares, scores or budgets"
            refused[claim.source] = f"its estimand is {claim.estimand!r}; {why}"
        elif claim.unit in by_level:
            refused[claim.source] = f"{by_level[claim.unit].source!r} divides {claim.unit}s already"
        elif claim.unit == "subtree":
            raise NestingError("subtree", "subtree", "a subtree lies in another, so its share holds the other's")
        elif claim.estimand == "score" and bool(jnp.any(jnp.where(claim.valid, claim.credit - claim.baseline, 0) < 0)):
            refused[claim.source] = "it has negative scores; a split needs weights of 0 or more"
        else:
            by_level[claim.unit] = claim
    return by_level, refused
