"""Rule "reconcile": claims on nested units of a batch, by least squares; contradictions are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.rules import Composed, Reconcile, chi_squared_pairs, no_entries
from estimators.base import Credit
from estimators.composition.increments import agreement
from estimators.composition.ladder import Ladder, ladder
from estimators.composition.least_squares import Reconciled, reconcile
from estimators.composition.nesting import COARSE_TO_FINE, prior_variance, unit_of_event
from estimators.composition.votes import Votes, votes
from graphs.errors import CreditError
from graphs.event_graph import EventGraph
from graphs.segment import safe_sqrt
from graphs.text import counted

__all__ = ["ContradictionError", "by_reconciling"]


class ContradictionError(CreditError):
    """Two claims that were declared exact and exclude each other."""

    def __init__(self, first: str, second: str, where: str, gap: float) -> None:
        super().__init__(f"exact claims contradict each other by {gap:.6g} at {where}: that of {first} and {second}")
        self.first, self.second = first, second


def by_reconciling(
    graph: EventGraph, left: jax.Array, scored: jax.Array, claims: Sequence[Credit], rule: Reconcile
) -> Composed:
    """Claims on nested units, by least squares with `left` [T] as the total of increments and unexplained."""
    tau, refused = rule.tau, dict[str, str]()
    kept = _one_level_a_source(claims, refused)
    by_unit = {level: [c for c in kept if c.unit == level] for level in COARSE_TO_FINE}
    by_level = {level: votes(claims, rule.errors) for level, claims in by_unit.items() if claims}
    steps = ladder(graph, by_level, left.dtype)
    in_scored = np.asarray(scored)[np.asarray(graph.trace_ids)] & np.asarray(graph.event_mask)
    direct = np.isfinite(np.asarray(steps.claims[0].variance)).any(axis=0) & in_scored
    prior, claimed = None, direct
    if rule.scale is not None:
        open_ = in_scored & np.asarray(graph.action_mask) & ~direct
        prior = jnp.asarray(prior_variance(graph, open_, rule.scale), left.dtype)
        claimed = direct | open_
    _name_what_is_lost(steps, by_level, claimed, refused)
    if not kept or not claimed.any():
        return no_entries(graph, left.dtype, refused)._replace(claims=tuple(kept))

    sources = tuple(dict.fromkeys(claim.source for claim in kept))
    column = {source: c for c, source in enumerate(sources)}
    solved = reconcile(
        steps.claims,
        tuple(map(jnp.asarray, steps.parents)),
        left,
        scored,
        unexplained_variance=jnp.inf if tau == "fit" else jnp.asarray(float(tau) ** 2, left.dtype),
        prior=prior,
        channels=tuple(tuple(column[s] for s in level) for level in steps.sources),
        fit=tau == "fit",
    )
    _check_contradictions(steps, solved, left, scored, tau)
    moved = tau == "fit" or np.isfinite(tau)
    cells = solved.amount if moved else solved.amount[:, :-1]
    here = jnp.asarray(claimed)
    return Composed(
        channels=(*sources, "total") if moved else sources,
        cells=jnp.where(here[:, None], cells, 0),
        stderr=safe_sqrt(solved.variance),
        claimed=here,
        claims=tuple(kept),
        refused=refused,
        chi_squared=_across(graph, by_level),
        unexplained_variance=float(solved.unexplained_variance[0]),
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


def _name_what_is_lost(
    steps: Ladder, by_level: Mapping[str, Votes], claimed: np.ndarray, refused: dict[str, str]
) -> None:
    for level_votes in by_level.values():
        for s, source in enumerate(level_votes.sources):
            stated = np.isfinite(np.asarray(level_votes.variance[s]))
            unknown = int(np.sum(np.asarray(level_votes.claim_mask[s]) & ~stated))
            if unknown:
                refused[source] = (
                    f"on {counted(unknown, 'event')} it states no error, and rule 'reconcile' weighs claims by their "
                    "errors"
                )
    carriers: np.ndarray = claimed.astype(np.float64)  # events below each unit that may carry credit
    for level, names, parent in zip(steps.claims[1:], steps.sources[1:], steps.parents, strict=True):
        carriers = np.bincount(parent, carriers, minlength=level.amount.shape[1])
        for s, source in enumerate(names):
            speaks = np.isfinite(np.asarray(level.variance[s]))
            empty = int(np.sum(speaks & (carriers == 0)))
            if empty:
                refused[source] = (
                    f"of {counted(int(speaks.sum()), 'unit')} that it claims, {empty} without an event that may carry "
                    "credit: none is claimed for itself, and no scale is named"
                )


def _check_contradictions(
    steps: Ladder, solved: Reconciled, left: jax.Array, scored: jax.Array, tau: float | Literal["fit"]
) -> None:
    """Refuse exact claims that exclude each other, naming two of them."""
    settled: list[dict[int, str]] = []  # of each level, a source that settles a unit, from below or itself
    for i, (level, names) in enumerate(zip(steps.claims, steps.sources, strict=True)):
        amount, variance = np.asarray(level.amount), np.asarray(level.variance)
        below: dict[int, str] = {}
        if i:
            parent = np.asarray(steps.parents[i - 1])
            below = {int(parent[unit]): source for unit, source in settled[-1].items()}
        single: dict[int, tuple[str, float]] = {}
        for s, source in enumerate(names):
            for unit in map(int, np.flatnonzero(variance[s] <= 0)):
                stated = float(amount[s, unit])
                where = f"{steps.names[i]} {unit}"
                if unit in single and abs(single[unit][1] - stated) > _slack(stated, single[unit][1], left.dtype):
                    raise ContradictionError(
                        repr(single[unit][0]), f"that of {source!r}", where, abs(single[unit][1] - stated)
                    )
                single.setdefault(unit, (source, stated))
        gap = np.asarray(solved.conflict[i])
        for unit, (source, stated) in single.items():
            if abs(gap[unit]) > _slack(stated, gap[unit] - stated, left.dtype):
                other = f"that of {below[unit]!r}" if unit in below else "the absence of any event that could carry it"
                raise ContradictionError(repr(source), other, f"{steps.names[i]} {unit}", abs(float(gap[unit])))
        settled.append(below | {unit: source for unit, (source, _) in single.items()})
    if tau == 0 and settled[-1]:
        gap = np.asarray(left - solved.unit_amount[-1])
        fixed = (np.asarray(solved.unit_variance[-1]) <= 0) & np.asarray(scored)
        for trace, source in settled[-1].items():
            if fixed[trace] and abs(gap[trace]) > _slack(float(left[trace]), float(gap[trace]), left.dtype):
                raise ContradictionError(repr(source), "that of the total", f"trace {trace}", abs(float(gap[trace])))


def _slack(a: float, b: float, dtype: jax.typing.DTypeLike) -> float:
    """What float sums of exact claims may differ by."""
    return 1e4 * float(np.finfo(np.dtype(dtype)).eps) * max(abs(a), abs(b))


def _across(graph: EventGraph, by_level: Mapping[str, Votes]) -> dict[tuple[str, str], float]:
    """χ² of each pair of sources: on shared units, or a coarse claim against the sum of a finer source's.

    A sum counts where the finer source claims every action of the unit.
    """
    pairs: dict[tuple[str, str], float] = {}
    actions = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    for level, of_level in by_level.items():
        pairs |= chi_squared_pairs(
            of_level.sources, np.asarray(agreement(of_level.amount, of_level.variance, of_level.claim_mask))
        )
        if level != "event" and "event" in by_level:
            fine, ids = by_level["event"], unit_of_event(graph, level)
            if level == "subtree":
                continue
            num = int(ids.max(initial=0)) + 1
            first = np.zeros(num, np.int64)
            first[ids[actions]] = np.flatnonzero(actions)
            events = np.bincount(ids[actions], minlength=num)
            for f, fine_source in enumerate(fine.sources):
                variance = np.asarray(fine.variance[f], np.float64)
                use = actions & np.isfinite(variance)
                amount = np.bincount(ids[use], np.asarray(fine.amount[f], np.float64)[use], num)
                spread = np.bincount(ids[use], variance[use], num)
                whole = (events > 0) & (np.bincount(ids[use], minlength=num) == events)
                for s, source in enumerate(of_level.sources):
                    error = np.asarray(of_level.variance[s], np.float64)[first] + spread
                    both = whole & np.isfinite(error) & (error > 0)
                    gap = np.asarray(of_level.amount[s], np.float64)[first] - amount
                    pairs[source, fine_source] = float(np.mean(gap[both] ** 2 / error[both])) if both.any() else np.nan
    return pairs
