"""The three rules: from claims to float cells, and to the words for whoever took no part."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.claim_levels import Ladder, ladder
from estimators.base import Credit
from estimators.composition.increments import agreement, combine
from estimators.composition.least_squares import Reconciled, reconcile
from estimators.composition.nesting import COARSE_TO_FINE, NestingError, parents, prior_variance, unit_of_event
from estimators.composition.top_down import Weights, split_down
from estimators.composition.votes import Votes, votes
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_sqrt
from graphs.text import counted

__all__ = ["Composed", "ContradictionError", "by_increments", "by_reconciling", "by_shares"]


class ContradictionError(CreditError):
    """Two claims that were declared exact and exclude each other."""

    def __init__(self, first: str, second: str, where: str, gap: float) -> None:
        super().__init__(f"exact claims contradict each other by {gap:.6g} at {where}: that of {first} and {second}")
        self.first, self.second = first, second


class Composed(NamedTuple):
    """What a rule made: float cells [E, C] before they are put on the grid, and what is said about them."""

    channels: tuple[str, ...]
    cells: jax.Array
    stderr: jax.Array
    claimed: jax.Array
    claims: tuple[Credit, ...]
    chi_squared: dict[tuple[str, str], float]
    unexplained_variance: float = float("nan")


def _nobody(graph: EventGraph, total: jax.Array) -> Composed:
    nothing = jnp.zeros(graph.num_events, total.dtype)
    return Composed(("nobody",), nothing[:, None], nothing, nothing > 0, (), {})


def by_increments(
    graph: EventGraph,
    total: jax.Array,
    scored: jax.Array,
    claims: Sequence[Credit],
    refused: dict[str, str],
    exact: Collection[str],
    replays: Mapping[str, Array] | None,
    span: float,
) -> Composed:
    """Claims on events, averaged."""
    kept = [claim for claim in claims if claim.unit == "event"]
    for claim in claims:
        if claim.unit != "event":
            refused[claim.source] = f"it claims sums over {claim.unit}s, which only rule 'reconcile' can place"
    if not kept:
        return _nobody(graph, total)
    combined = combine(kept, exact=exact, replays=replays, span=span)
    claimed = combined.there & scored[jnp.asarray(graph.trace_ids)]
    return Composed(
        channels=combined.sources,
        cells=jnp.where(claimed[:, None], combined.parts.T.astype(total.dtype), 0),
        stderr=combined.stderr,
        claimed=claimed,
        claims=tuple(kept),
        chi_squared=_pairs(combined.sources, np.asarray(combined.chi_squared)),
    )


def _pairs(sources: tuple[str, ...], matrix: np.ndarray) -> dict[tuple[str, str], float]:
    return {(a, b): float(matrix[i, j]) for i, a in enumerate(sources) for j, b in enumerate(sources) if i < j}


def by_reconciling(
    graph: EventGraph,
    left: jax.Array,
    scored: jax.Array,
    claims: Sequence[Credit],
    refused: dict[str, str],
    exact: Collection[str],
    replays: Mapping[str, Array] | None,
    span: float,
    tau: float | Literal["fit"],
    scale: float | None,
) -> Composed:
    """Claims on nested units, by least squares with `left` [T] as the total of increments and unexplained."""
    if tau != "fit" and not (isinstance(tau, int | float) and tau >= 0):
        raise CreditError(f"tau is {tau!r}; expected a number of 0 or more, infinity, or 'fit'")
    if scale is not None and not (np.isfinite(scale) and scale > 0):
        raise CreditError(f"scale is {scale!r}; expected a positive number in units of reward, or None")
    kept = _one_level_a_source(claims, refused)
    by_level = {level: [c for c in kept if c.unit == level] for level in COARSE_TO_FINE}
    said = {level: votes(mine, exact=exact, replays=replays, span=span) for level, mine in by_level.items() if mine}
    steps = ladder(graph, said, left.dtype)
    in_scored = np.asarray(scored)[np.asarray(graph.trace_ids)] & np.asarray(graph.event_mask)
    direct = np.isfinite(np.asarray(steps.claims[0].variance)).any(axis=0) & in_scored
    prior, claimed = None, direct
    if scale is not None:
        open_ = in_scored & np.asarray(graph.action_mask) & ~direct
        prior = jnp.asarray(prior_variance(graph, open_, scale), left.dtype)
        claimed = direct | open_
    _say_what_is_lost(steps, said, claimed, refused)
    if not kept or not claimed.any():
        return _nobody(graph, left)._replace(claims=tuple(kept))

    sources = tuple(dict.fromkeys(claim.source for claim in kept))
    column = {source: c for c, source in enumerate(sources)}
    made = reconcile(
        steps.claims,
        tuple(map(jnp.asarray, steps.parents)),
        left,
        scored,
        unexplained_variance=jnp.inf if tau == "fit" else jnp.asarray(float(tau) ** 2, left.dtype),
        prior=prior,
        channels=tuple(tuple(column[s] for s in level) for level in steps.sources),
        fit=tau == "fit",
    )
    _check_contradictions(steps, made, left, scored, tau)
    moved = tau == "fit" or np.isfinite(tau)
    cells = made.amount if moved else made.amount[:, :-1]
    here = jnp.asarray(claimed)
    return Composed(
        channels=(*sources, "total") if moved else sources,
        cells=jnp.where(here[:, None], cells, 0),
        stderr=safe_sqrt(made.variance),
        claimed=here,
        claims=tuple(kept),
        chi_squared=_across(graph, said),
        unexplained_variance=float(made.unexplained_variance[0]),
    )


def _one_level_a_source(claims: Sequence[Credit], refused: dict[str, str]) -> list[Credit]:
    """Claims of a source at its finest level only: at two they share errors, and together would count twice."""
    finest: dict[str, int] = {}
    for claim in claims:
        if claim.unit not in COARSE_TO_FINE:
            raise CreditError(
                f"unit of {claim.source!r} is {claim.unit!r}; expected one of {', '.join(COARSE_TO_FINE)}"
            )
        finest[claim.source] = max(finest.get(claim.source, 0), COARSE_TO_FINE.index(claim.unit))
    kept = []
    for claim in claims:
        level = COARSE_TO_FINE[finest[claim.source]]
        if claim.unit == level:
            kept.append(claim)
        else:
            refused[claim.source] = (
                f"it claims {claim.unit}s and {level}s; one source has one vote, and only its {level}s were used"
            )
    return kept


def _say_what_is_lost(steps: Ladder, said: Mapping[str, Votes], claimed: np.ndarray, refused: dict[str, str]) -> None:
    for found in said.values():
        for s, source in enumerate(found.sources):
            unknown = int(np.sum(np.asarray(found.there[s]) & ~np.isfinite(np.asarray(found.variance[s]))))
            if unknown:
                refused[source] = (
                    f"on {counted(unknown, 'event')} it states no error, and rule 'reconcile' weighs claims by their "
                    "errors"
                )
    held: np.ndarray = claimed.astype(np.float64)  # events below each unit that may carry credit
    for level, names, parent in zip(steps.claims[1:], steps.sources[1:], steps.parents, strict=True):
        held = np.bincount(parent, held, minlength=level.amount.shape[1])
        for s, source in enumerate(names):
            speaks = np.isfinite(np.asarray(level.variance[s]))
            empty = int(np.sum(speaks & (held == 0)))
            if empty:
                refused[source] = (
                    f"of {counted(int(speaks.sum()), 'unit')} that it claims, {empty} without an event that may carry "
                    "credit: none is claimed for itself, and no scale is named"
                )


def _check_contradictions(
    steps: Ladder, made: Reconciled, left: jax.Array, scored: jax.Array, tau: float | Literal["fit"]
) -> None:
    """Refuse exact claims that exclude each other, naming two of them."""
    settled: list[dict[int, str]] = []  # of each level, a source that settles a unit, from below or itself
    for i, (level, names) in enumerate(zip(steps.claims, steps.sources, strict=True)):
        amount, variance = np.asarray(level.amount), np.asarray(level.variance)
        below: dict[int, str] = {}
        if i:
            parent = np.asarray(steps.parents[i - 1])
            below = {int(parent[unit]): source for unit, source in settled[-1].items()}
        own: dict[int, tuple[str, float]] = {}
        for s, source in enumerate(names):
            for unit in map(int, np.flatnonzero(variance[s] <= 0)):
                said = float(amount[s, unit])
                where = f"{steps.names[i]} {unit}"
                if unit in own and abs(own[unit][1] - said) > _slack(said, own[unit][1], left.dtype):
                    raise ContradictionError(repr(own[unit][0]), f"that of {source!r}", where, abs(own[unit][1] - said))
                own.setdefault(unit, (source, said))
        gap = np.asarray(made.conflict[i])
        for unit, (source, said) in own.items():
            if abs(gap[unit]) > _slack(said, gap[unit] - said, left.dtype):
                other = f"that of {below[unit]!r}" if unit in below else "the absence of any event that could carry it"
                raise ContradictionError(repr(source), other, f"{steps.names[i]} {unit}", abs(float(gap[unit])))
        settled.append(below | {unit: source for unit, (source, _) in own.items()})
    if tau == 0 and settled[-1]:
        gap = np.asarray(left - made.unit_amount[-1])
        fixed = (np.asarray(made.unit_variance[-1]) <= 0) & np.asarray(scored)
        for trace, source in settled[-1].items():
            if fixed[trace] and abs(gap[trace]) > _slack(float(left[trace]), float(gap[trace]), left.dtype):
                raise ContradictionError(repr(source), "that of the total", f"trace {trace}", abs(float(gap[trace])))


def _slack(a: float, b: float, dtype: jax.typing.DTypeLike) -> float:
    """What float sums of exact claims may differ by."""
    return 1e4 * float(jnp.finfo(dtype).eps) * max(abs(a), abs(b))


def _across(graph: EventGraph, said: Mapping[str, Votes]) -> dict[tuple[str, str], float]:
    """χ² of each pair of sources: on shared units, or a coarse claim against the sum of a finer source's.

    A sum counts where the finer source claims every action of the unit.
    """
    found: dict[tuple[str, str], float] = {}
    actions = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    for level, own in said.items():
        found |= _pairs(own.sources, np.asarray(agreement(own.amount, own.variance, own.there)))
        if level != "event" and "event" in said:
            fine, ids = said["event"], unit_of_event(graph, level)
            if level == "subtree":
                continue
            num = int(ids.max(initial=0)) + 1
            first = np.zeros(num, np.int64)
            first[ids[actions]] = np.flatnonzero(actions)
            held = np.bincount(ids[actions], minlength=num)
            for f, fine_source in enumerate(fine.sources):
                variance = np.asarray(fine.variance[f], np.float64)
                use = actions & np.isfinite(variance)
                amount = np.bincount(ids[use], np.asarray(fine.amount[f], np.float64)[use], num)
                spread = np.bincount(ids[use], variance[use], num)
                whole = (held > 0) & (np.bincount(ids[use], minlength=num) == held)
                for s, source in enumerate(own.sources):
                    error = np.asarray(own.variance[s], np.float64)[first] + spread
                    both = whole & np.isfinite(error) & (error > 0)
                    gap = np.asarray(own.amount[s], np.float64)[first] - amount
                    found[source, fine_source] = float(np.mean(gap[both] ** 2 / error[both])) if both.any() else np.nan
    return found


def by_shares(
    graph: EventGraph, left: jax.Array, scored: jax.Array, claims: Sequence[Credit], refused: dict[str, str]
) -> Composed:
    """The total `left` [T], split from the top down by the shares and scores of one source a level."""
    by_level: dict[str, Credit] = {}
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
    names = [level for level in COARSE_TO_FINE if level in by_level]
    actions = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    actions &= np.asarray(scored)[np.asarray(graph.trace_ids)]
    rungs = [*names, "event"] if "event" not in by_level else names
    ids = [unit_of_event(graph, name) for name in rungs]
    sizes = [Ladder.size(graph, name) for name in rungs]
    above = parents(graph, rungs[::-1], ids[::-1], sizes[::-1])[::-1]  # of a rung's units, in the rung before
    above.insert(0, parents(graph, [rungs[0], "trace"], [ids[0], np.asarray(graph.trace_ids)], sizes[:1])[0])
    levels = []
    for name, unit, size, parent in zip(rungs, ids, sizes, above, strict=True):
        weight, there = np.zeros(size), np.zeros(size, bool)
        own = by_level.get(name)
        use = actions if own is None else actions & np.asarray(own.valid)
        weight[unit[use]] = 1.0 if own is None else np.asarray(own.credit - own.baseline)[use]
        there[unit[use]] = True
        levels.append(Weights(jnp.asarray(weight, left.dtype), jnp.asarray(there), jnp.asarray(parent)))
    shares = tuple(name in by_level and by_level[name].estimand == "share" for name in rungs)
    amount = split_down(tuple(levels), left, shares)
    used = tuple(by_level[name] for name in names)
    return Composed(
        channels=("+".join(claim.source for claim in used) or "even",),
        cells=amount[:, None],
        stderr=jnp.full_like(amount, jnp.inf),
        claimed=levels[-1].there,
        claims=used,
        chi_squared={},
    )
