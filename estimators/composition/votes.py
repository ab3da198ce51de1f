"""One vote a source: the claims of methods on the units of their levels, with errors that can be believed.

Claims of one source share their errors, so they count once: their mean, with the mean of their variances. A stated
error of 0 is a constraint only where the caller declares the source exact. An error of 0 that was *estimated*, because
all replays agreed, is no certainty: with 4 replays of an outcome of probability 0.9 that happens two times in three. It
is raised to what a uniform prior leaves after k successes in n,

    s² = (k + 1)(n − k + 1) / ((n + 2)² (n + 3)),  at k = 0 or n, in units of the outcome's span squared.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Estimand, Reason, Recursion, finish
from estimators.composition.nesting import COARSE_TO_FINE
from estimators.kept_functions import kept_compiled
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.floats import floating
from graphs.segment import safe_divide
from graphs.text import counted

__all__ = ["NO_ERRORS", "Errors", "StatedZeroError", "Votes", "believed_errors", "claim", "floor_variance", "votes"]

ESTIMANDS: tuple[Estimand, ...] = get_args(Estimand)


@dataclasses.dataclass(frozen=True)
class Errors:
    """What standard errors of 0 mean. Without any of these they are unknown errors, or refused (rule "reconcile").

    Attributes:
      exact: sources whose errors of 0 are constraints.
      replays: for a source, int [E], the number of replays behind an error that was estimated. An error of 0 from n
        replays is raised to span² (n + 1) / ((n + 2)² (n + 3)): that many agreeing replays leave it open.
      span: largest minus smallest outcome that a replay can have, in units of reward.
    """

    exact: tuple[str, ...] = ()
    replays: Mapping[str, Array] = dataclasses.field(default_factory=dict)
    span: float = 1.0


NO_ERRORS = Errors()
"""Nothing is known about errors of 0."""


class StatedZeroError(CreditError):
    """A source states errors of 0 and is neither declared exact nor given numbers of replays."""

    def __init__(self, source: str, count: int) -> None:
        super().__init__(
            f"{source!r} states an error of 0 on {counted(count, 'event')}; expected it in `exact` (a constraint), or "
            "its numbers of replays in `replays` (all agreed, which is no certainty)"
        )
        self.source = source


class Votes(NamedTuple):
    """The claims of S sources on events, each one vote; by rows of sources, [S, E].

    Attributes:
      sources: S names.
      amount: float, 0 outside `claim_mask`.
      variance: float; infinite where the source states no error, 0 only where it is declared exact.
      claim_mask: bool, where the source claims.
    """

    sources: tuple[str, ...]
    amount: jax.Array
    variance: jax.Array
    claim_mask: jax.Array


@checked_kinds()
def claim(
    graph: EventGraph,
    amount: Array,
    *,
    estimand: Estimand,
    source: str,
    where: Array | None = None,
    stderr: Array | float = float("inf"),
    unit: str = "event",
    centred: bool = False,
    own_outcome: bool | Array = True,
    recursion: Recursion | None = None,
) -> Credit:
    """A claim made of numbers computed elsewhere, such as judgements or another library's critic.

    Args:
      graph: the batch.
      amount: float [E], in units of reward; constant within a unit.
      estimand: what it estimates; there is no default, because composition adds only amounts of one estimand.
      source: whose errors it shares.
      where: bool [E], the events that it is about; all actions with a finite amount by default.
      stderr: float or [E], standard error of `amount`: 0, infinite if unknown, or a number whose square `amount`'s type
        can hold, in float32 from 1.1e-19 to 1.8e19.
      unit: the level whose units share one number: "trace", "role", "subtree", "agent", "turn" or "event".
      centred: whether its mean under the policy that acted is zero, given the log before the event.
      own_outcome: whether this trace's own outcome went into it, or bool [E], where it did so in some events alone.
      recursion: for a return, how it holds what came after; without it a return cannot become increments.

    Returns:
      `Credit` with baseline 0 and scale 1. It is valid where `where` is True, and 0 elsewhere.

    Raises:
      ArrayTypeError: `amount` is no array of a floating type; both a CreditError and a TypeError.
      CreditError: an array that has not one entry for each event, no such estimand or unit, a `recursion` of
        anything but a return, or a standard error below 0, not a number or out of range on an event of the claim; it
        names the first such event.

    Examples:
      >>> import credit, numpy as np
      >>> graph, _, rows = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
      >>> scores = np.where(graph.action_mask, 0.5, np.nan)
      >>> judged = claim(graph, scores, estimand="increment", source="judge", stderr=0.1)
      >>> print(rows.gather(judged.credit), rows.gather(judged.valid), judged.source)
      [0.5 0.5] [ True  True] judge
    """
    if estimand not in ESTIMANDS:
        raise CreditError(f"estimand is {estimand!r}; expected one of {', '.join(ESTIMANDS)}")
    if unit not in COARSE_TO_FINE:
        raise CreditError(f"unit is {unit!r}; expected one of {', '.join(COARSE_TO_FINE)}")
    if recursion is not None and estimand != "return":
        raise CreditError(f"recursion is given for estimand {estimand!r}; expected estimand 'return'")
    amount = floating("amount", amount)  # the square of an error of 1e-4 is 0 in 16 bits
    _check_entries(graph, amount=amount, where=where)
    if np.ndim(stderr) > 0:
        _check_entries(graph, stderr=stderr)
    here = jnp.isfinite(amount) if where is None else jnp.asarray(where) & jnp.isfinite(amount)
    _refuse_out_of_range(source, stderr, np.asarray(here), np.finfo(amount.dtype))
    error = jnp.broadcast_to(jnp.asarray(stderr, amount.dtype), amount.shape)
    wrong = np.flatnonzero(np.asarray(here & ~(error >= 0)))
    if len(wrong):
        first = float(error[wrong[0]])
        raise CreditError(f"stderr of {source!r} is {first} at event {wrong[0]}; expected 0 or more, inf for unknown")
    return finish(
        graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=error,
        reason=jnp.where(here, Reason.VALID, Reason.NO_EVIDENCE),
        unit=unit,
        estimand=estimand,
        source=source,
        centred=centred,
        own_outcome=own_outcome,
        recursion=recursion,
    )


def _refuse_out_of_range(source: str, stderr: Array | float, here: np.ndarray, limits: np.finfo[Any]) -> None:
    """Refuse a stated error whose square is 0 or infinite: it would count as unknown, and claims as equally sure."""
    stated = np.broadcast_to(np.asarray(stderr, np.float64), here.shape)
    least, most = np.sqrt(np.float64(limits.tiny)), np.sqrt(np.float64(limits.max))
    out = np.flatnonzero(here & (stated > 0) & np.isfinite(stated) & ~((stated >= least) & (stated <= most)))
    if len(out):
        raise CreditError(
            f"stderr of {source!r} is {stated[out[0]]:g} at event {out[0]}; expected 0, inf for unknown, or a number "
            f"from {least:.2g} to {most:.2g}, whose square {limits.dtype} can hold"
        )


def _check_entries(graph: EventGraph, **arrays: Array | None) -> None:
    """Refuse arrays that have not one entry for each event."""
    for name, values in arrays.items():
        if values is not None and jnp.shape(jnp.asarray(values)) != (graph.num_events,):
            shape = jnp.shape(jnp.asarray(values))
            raise CreditError(f"{name} has shape {shape}; expected ({graph.num_events},), one entry for each event")


def floor_variance(successes: Array, replays: Array) -> jax.Array:
    """Variance of a probability after k successes in n replays under a uniform prior: that of Beta(k + 1, n − k + 1).

        s² = (k + 1)(n − k + 1) / ((n + 2)² (n + 3))

    Examples:
      >>> print(floor_variance(4.0, 4.0))
      0.0198
    """
    k, n = jnp.asarray(successes), jnp.asarray(replays)
    return (k + 1) * (n - k + 1) / ((n + 2) ** 2 * (n + 3))


def believed_errors(credit: Credit, errors: Errors = NO_ERRORS) -> np.ndarray:
    """The standard errors of a result as the ledger takes them, float64 [E]; infinite where they are unknown.

    An error of 0 is one that was estimated from samples that agree. It stays 0 where `errors` declares the source
    exact, is raised where the number of replays is known, and is unknown elsewhere.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> result = credit.rloo(graph, reward)
      >>> rows.gather(result.stderr).tolist(), rows.gather(believed_errors(result)).tolist()
      ([0.0, 0.5, 0.5], [inf, 0.5, 0.5])
    """
    stderr = np.asarray(credit.stderr, np.float64)
    if credit.source in errors.exact:
        return stderr
    floor = np.zeros(())
    if credit.source in errors.replays:
        n = np.asarray(errors.replays[credit.source])
        floor = np.where(n > 0, errors.span**2 * np.asarray(floor_variance(n, n), np.float64), 0)
    believed: np.ndarray = np.where(stderr > 0, stderr, np.where(floor > 0, np.sqrt(floor), np.inf))
    return believed


def votes(claims: Sequence[Credit], errors: Errors = NO_ERRORS, *, zeros: bool = False) -> Votes:
    """The claims of each source as one vote on each event; at least one claim, all of one level.

    Args:
      errors: what errors of 0 mean.
      zeros: accept errors of 0 that `errors` does not name, as unknown errors.

    Raises:
      StatedZeroError: errors of 0 that are neither declared exact nor have a number of replays, unless `zeros`.
    """
    sources = tuple(dict.fromkeys(claim.source for claim in claims))
    each = [_vote_of([claim for claim in claims if claim.source == source], errors, zeros) for source in sources]
    amount, variance, claim_mask = (jnp.asarray(np.stack(part)) for part in zip(*each, strict=True))
    return Votes(sources, amount, variance, claim_mask)


def _vote_of(claims: list[Credit], errors: Errors, zeros: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The vote of one source."""
    source, floor = claims[0].source, jnp.zeros(())
    if source in errors.replays:
        n = jnp.asarray(errors.replays[source])
        floor = jnp.where(n > 0, errors.span**2 * floor_variance(n, n), 0)
    elif source not in errors.exact and not zeros:
        for claim in claims:
            nothing = int(np.sum(np.asarray(claim.valid) & (np.asarray(claim.stderr) <= 0)))
            if nothing:
                raise StatedZeroError(source, nothing)
    parts = [(c.credit, c.baseline, c.stderr, c.reason) for c in claims]
    vote: tuple[jax.Array, jax.Array, jax.Array] = _one_vote(parts, floor, exact=source in errors.exact)
    return vote


@kept_compiled
@functools.partial(jax.jit, static_argnames=("exact",))
def _one_vote(
    claims: list[tuple[Array, Array, Array, Array]], floor: jax.Array, *, exact: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean of one source's claims, with the mean of their variances: they share errors, so it does not shrink."""
    credit, baseline, error, reason = (jnp.stack(part) for part in zip(*claims, strict=True))
    amount, valid = credit - baseline, reason == np.int8(Reason.VALID)
    count = jnp.sum(jnp.where(valid, 1, 0), axis=0).astype(amount.dtype)
    amount = jnp.where(valid, amount, 0)
    variance = error**2
    if not exact:  # each claim by itself: the mean of an unknown error and a stated one is unknown
        variance = jnp.where(variance <= 0, jnp.where(floor > 0, floor, jnp.inf), variance)
    variance = safe_divide(jnp.sum(jnp.where(valid, variance, 0), axis=0), count)
    if not exact:
        variance = jnp.where(count > 0, variance, jnp.inf)
    return safe_divide(jnp.sum(amount, axis=0), count), variance, count > 0
