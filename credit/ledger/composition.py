"""From the results of several methods to one ledger: which claims take part, and the exact entries."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.account import Ledger
from credit.ledger.other_rewards import OtherRewardsWarning, from_other_rewards
from credit.ledger.reconciling import by_reconciling
from credit.ledger.rules import Composed, Increments, Reconcile, Rule, Shares, by_increments, by_shares
from estimators.base import Credit, check_batch
from estimators.baselines.shared import rloo
from estimators.composition.exact import Partition, exact_partition
from estimators.composition.explained import explained
from estimators.composition.increments import NotComposableError, as_increment
from estimators.composition.nesting import unit_of_event
from estimators.composition.votes import Errors
from estimators.kept_functions import kept_compiled
from estimators.options import refuse_rewards_of_events, refuse_traced
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError, expect
from graphs.event_graph import Array, EventGraph
from graphs.floats import at_least_float32
from graphs.invariants import validate_ids
from graphs.text import counted

__all__ = ["Balance", "RefusedClaimWarning", "check_claim", "compose", "ledger_of", "partitioned"]


class RefusedClaimWarning(UserWarning):
    """A ledger refuses a claim that was passed to it, or a part of it."""


@checked_kinds()
def compose(
    graph: EventGraph,
    reward: Array,
    claims: Sequence[Credit],
    *,
    rule: Rule | None = None,
    event_reward: Array | None = None,
    expected: Array | None = None,
    outcome: Array | None = None,
    propensity: Array | None = None,
) -> Ledger:
    """Compose the results of several methods into one exact partition of the reward of each trace.

        R = expected + Σ increments + outcome + unexplained + remainder

    bit for bit. By the rules `Increments` and `Reconcile` every claim is converted to increments
    (`estimators.composition.increments.as_increment`), and the part of the reward without a claim is `unexplained`, an
    entry of no event. `Ledger.refused` lists rejected claims and why. No rule is best in every world; docs/ledger.md
    shows where each loses.

    Args:
      graph: the batch.
      reward: float [T], the total of each trace, or its outcome beside `event_reward`, in any unit; NaN where it has
        none, and its entries are empty.
      claims: results of methods on this graph, or of `estimators.claim`. One of estimand "total" is no claim; its
        baseline is `expected`. One of estimand "scale" is a factor, kept for `Ledger.advantage`.
      rule: `credit.ledger.Increments()` (the default), `Reconcile(...)` or `Shares()`.
      event_reward: float [E], what the methods got besides the outcome, added to `reward`; NaN where there is none.
      expected: float [T], the expected reward of each trace at its start; by default the baseline of the first "total"
        among the claims that adds up to `reward`, else the mean of the other traces of its group, and 0 where there are
        none. Under rule "shares" with shares of a game, v(∅), by default 0.
      outcome: float [T], R − V at the end, beside claims that leave it out (`critic` with `value_after=`). By default
        0, and it is in entries of claims that hold their own outcome, as `gae` does at the last action.
      propensity: float [E], π of the chosen actions, by which contrasts become increments.

    Returns:
      `Ledger`. Traces whose entries are outside the range of exact arithmetic are left out, `Ledger.refused_traces`.
      A claim of other rewards than the ledger's is an `OtherRewardsWarning` and in `Ledger.other_rewards`.

    Warns:
      RefusedClaimWarning: a claim is refused, or a part of it, and why.

    Raises:
      CreditError: an argument of another type or shape; `expected` or `outcome` of a trace with a reward that is not
        finite; a claim of another batch; under rule "reconcile",
        `NestingError` for levels that do not nest, `ContradictionError` for exact claims that exclude each other,
        `StatedZeroError`.

    Source: docs/ledger.md; composition is by increments because these add up: a contrast, a removal or a share summed
    over a trace does not give the reward.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0])
      >>> amount = np.zeros(graph.num_events, np.float32)
      >>> amount[rows.event] = [0.5, 0.25, -0.5, 0.0]
      >>> ledger = credit.compose(graph, reward, [credit.claim(graph, amount, estimand="increment", source="critic")])
      >>> print(ledger.expected[:2], ledger.increments[:4], ledger.unexplained[:2])
      [0. 1.] [ 0.5   0.25 -0.5   0.  ] [ 0.25 -0.5 ]
    """
    ledger = ledger_of(
        graph,
        reward,
        claims,
        rule=rule,
        event_reward=event_reward,
        expected=expected,
        outcome=outcome,
        propensity=propensity,
    )
    if refused := {name: why for name, why in ledger.refused.items() if name not in ledger.scales}:
        of = counted(len(refused.keys() | {claim.source for claim in ledger.claims}), "claim")
        so = "" if np.asarray(ledger.claimed).any() else ", so no action has an entry"
        why = "; ".join(why if repr(name) in why else f"{name!r}: {why}" for name, why in refused.items())
        text = f"{len(refused)} of {of} refused{so}: {why}"
        warnings.warn(text, RefusedClaimWarning, stacklevel=3)  # the caller, past the check of arguments
    return ledger


def ledger_of(
    graph: EventGraph,
    reward: Array,
    claims: Sequence[Credit],
    *,
    rule: Rule | None = None,
    event_reward: Array | None = None,
    expected: Array | None = None,
    outcome: Array | None = None,
    propensity: Array | None = None,
) -> Ledger:
    """As `compose`, without a warning of refused claims: for reports that name each.

    Args:
      graph, reward, claims, rule, event_reward, expected, outcome, propensity: as there.
    """
    rule = Increments() if rule is None else rule
    expect("rule", rule, (Increments, Reconcile, Shares), "credit.ledger.Increments(), Reconcile() or Shares()")
    expect("claims", claims, Sequence, "a list of Credits, each the result of a method")
    refuse_traced("compose", graph, reward, claims, event_reward, expected, outcome, propensity)
    validate_ids(graph)
    for place, claim in enumerate(claims):
        check_claim(graph, f"claims[{place}]", claim)
    reward = _by_trace(graph, "reward", reward)
    refuse_rewards_of_events("compose", graph, reward)
    if event_reward is not None:
        reward = _with_rewards_of_events(graph, reward, np.asarray(event_reward))
    outcomes = np.asarray(at_least_float32(reward))  # in NumPy: JAX compiles each operation by itself
    is_scored = np.asarray(graph.trace_mask) & np.isfinite(outcomes)
    stated = np.where(is_scored, outcomes, np.nan).astype(np.float64)
    offered = [claim for claim in claims if claim.estimand != "total"]
    foreign = {c.source: why for c in claims if (why := from_other_rewards(graph, stated, c))}
    first = _start(graph, jnp.asarray(outcomes), [c for c in claims if c.source not in foreign], rule, expected)
    last = np.zeros_like(outcomes) if outcome is None else _by_trace(graph, "outcome", outcome)
    for name, numbers in (("expected", expected), ("outcome", outcome)):
        if numbers is not None:
            _refuse_unstated(name, np.asarray(numbers), is_scored)
    parts = [np.where(is_scored, part, 0).astype(outcomes.dtype) for part in (outcomes, first, last)]
    left, scored = jnp.asarray(parts[0] - parts[1] - parts[2]), jnp.asarray(is_scored)
    total, start, end = map(jnp.asarray, parts)

    refused, known_before = dict[str, str](), None
    if isinstance(rule, Shares):
        composed = by_shares(graph, left, scored, offered)
    else:
        pairs, refused = _converted(graph, offered, propensity)
        converted = [claim for _, claim in pairs]
        foreign |= {c.source: why for c, to in pairs if (why := from_other_rewards(graph, stated, c, to))}
        if isinstance(rule, Increments):
            composed = by_increments(graph, scored, converted, rule)
        else:
            composed = by_reconciling(graph, left, scored, converted, rule)
        known_before = _known_before_outcome(graph, converted, composed, rule)
    ledger = partitioned(
        graph,
        rule.name,
        Balance(total, scored, start, end),
        composed,
        scales={claim.source: claim for claim in claims if claim.estimand == "scale"},
        refused=refused | composed.refused,
        errors=Errors() if isinstance(rule, Shares) else rule.errors,
        known_before=known_before,
        stated_start=expected is not None,
    )
    for why in foreign.values():
        warnings.warn(why, OtherRewardsWarning, stacklevel=4)  # the caller of `compose`, past the check of arguments
    return dataclasses.replace(ledger, other_rewards=foreign)


OF_PLACES = (
    "values a place in the trace, whatever was chosen there: averaged with claims that tell choices apart it would "
    "take from them, and pay the last action again for what they pay earlier ones; compose it without them"
)
"""Why a return whose values are of places is no claim beside others."""


def _converted(
    graph: EventGraph, claims: Sequence[Credit], propensity: Array | None
) -> tuple[list[tuple[Credit, Credit]], dict[str, str]]:
    """Claims as offered and as increments, and by source why the others cannot be increments."""
    pairs, refused = [], {}
    for claim in claims:
        try:
            pairs.append((claim, as_increment(graph, claim, propensity=propensity)))
        except NotComposableError as error:
            refused[claim.source] = str(error)
    for claim, increment in pairs[::-1]:
        again = next((c.source for c, to in pairs if c is not claim and _states_again(increment, to)), "")
        if again and again not in refused:
            pairs = [pair for pair in pairs if pair[0] is not claim]
            refused[claim.source] = f"{claim.source!r} has the increments of {again!r}: one evidence has one vote"
    told = [pair for pair in pairs if pair[0].recursion is None or pair[0].recursion.values is None]
    if told and len(told) < len(pairs):
        refused |= {c.source: f"{c.source!r} {OF_PLACES}" for c, _ in pairs if not any(c is kept for kept, _ in told)}
    return told or pairs, refused


SEVERAL = 4
"""From how many increments on it is no chance that two claims have the same."""


def _states_again(claim: Credit, other: Credit) -> bool:
    """Whether all increments of a claim, and their errors, are those of another source: both read one evidence."""
    if claim.source == other.source or claim.unit != other.unit or claim.estimand != other.estimand:
        return False
    valid = np.asarray(claim.valid)
    amount, known = (np.asarray(c.credit - c.baseline, np.float64)[valid] for c in (claim, other))
    error, other_error = (np.asarray(c.stderr)[valid] for c in (claim, other))
    same = np.asarray(other.valid)[valid].all() and np.allclose(error, other_error, rtol=1e-4)
    size = np.abs(amount)
    alike = np.abs(amount - known) <= 1e-4 * size.max(initial=0)
    return bool(same and alike.all() and np.count_nonzero(size > 1e-4 * size.max(initial=0)) >= SEVERAL)


def check_claim(graph: EventGraph, name: str, claim: Credit) -> None:
    """Refuse anything but a method's result on this batch.

    Args:
      graph: of the batch.
      name: of the claim, for messages.
      claim: what is checked.

    Raises:
      CreditError: no `Credit`; another number of events; the fingerprint of another batch.
    """
    expect(name, claim, Credit, "a Credit, the result of a method")
    check_batch(graph, f"{name}, of {claim.source!r},", claim)


def _by_trace(graph: EventGraph, name: str, values: Array) -> jax.Array:
    by_trace: jax.Array = jnp.asarray(values)
    if by_trace.shape != (graph.num_traces,):
        wanted = f"({graph.num_traces},), one entry for each trace"
        raise CreditError(f"{name} has shape {by_trace.shape}; expected {wanted}")
    return by_trace


def _with_rewards_of_events(graph: EventGraph, reward: jax.Array, earned: np.ndarray) -> jax.Array:
    """The return of each trace, outcome plus what its events earned: [T], summed in double precision."""
    if earned.shape != (graph.num_events,):
        wanted = f"({graph.num_events},), one entry for each event"
        raise CreditError(f"event_reward has shape {earned.shape}; expected {wanted}")
    real = np.asarray(graph.event_mask) & ~np.isnan(earned)
    if wrong := np.flatnonzero(real & np.isinf(earned)).tolist():
        raise CreditError(f"event_reward is {earned[wrong[0]]} at event {wrong[0]}; expected a finite number")
    outcome = np.asarray(at_least_float32(reward))
    total = outcome + np.bincount(np.asarray(graph.trace_ids)[real], earned[real], len(outcome))
    return jnp.asarray(total.astype(outcome.dtype))


def _refuse_unstated(name: str, numbers: np.ndarray, is_scored: np.ndarray) -> None:
    """Refuse what the caller states of traces with a reward where it is no number: it would count as 0."""
    wrong = np.flatnonzero(is_scored & ~np.isfinite(numbers))
    if len(wrong):
        raise CreditError(
            f"{name} is {numbers[wrong[0]]} at trace {wrong[0]}, which has a reward; expected a finite number"
        )


def _start(
    graph: EventGraph, reward: jax.Array, claims: Sequence[Credit], rule: Rule, stated: Array | None
) -> jax.Array:
    """What each trace was worth at its start: [T]."""
    if stated is not None:
        return _by_trace(graph, "expected", stated)
    if isinstance(rule, Shares) and any(claim.estimand == "share" for claim in claims):
        return jnp.zeros_like(reward)
    totals = [claim for claim in claims if claim.estimand == "total"]
    credit = totals[0] if totals else rloo(graph, reward)
    valid, baseline = np.flatnonzero(np.asarray(credit.valid)), np.asarray(credit.baseline)
    out = np.zeros(graph.num_traces, baseline.dtype)
    out[np.asarray(graph.trace_ids)[valid]] = baseline[valid]
    return jnp.asarray(out)


def _known_before_outcome(graph: EventGraph, claims: Sequence[Credit], composed: Composed, rule: Rule) -> np.ndarray:
    """Cells that hold nothing of their own trace's outcome, bool [E, C].

    Where several claims share a channel, all of them must be free of it. Least squares carry an outcome from the entry
    that holds it to the others of its trace.
    """
    free = np.zeros((graph.num_events, len(composed.channels)), bool)
    free[:, [c for c, name in enumerate(composed.channels) if name != "total"]] = True
    apart = not isinstance(rule, Reconcile) or (
        rule.tau == np.inf and rule.scale is None and all(claim.unit == "event" for claim in claims)
    )
    for claim in claims:
        if claim.own_outcome and claim.source in composed.channels:
            ids = unit_of_event(graph, "event" if apart else "trace")
            held = np.isin(ids, ids[np.asarray(claim.holds_outcome)])
            free[held, composed.channels.index(claim.source)] = False
    return free


class Balance(NamedTuple):
    """The sum that the entries of each trace must have.

    Attributes:
      total: float [T], 0 where there is none.
      scored: bool [T], traces that have a total.
      start, end: float [T], what was expected at the start, and what comes after the last action.
    """

    total: jax.Array
    scored: jax.Array
    start: jax.Array
    end: jax.Array

    def only(self, where: jax.Array) -> Balance:
        """The balance of some traces, bool [T]; the others have none."""
        total, start, end = (jnp.where(where, values, 0) for values in (self.total, self.start, self.end))
        return Balance(total, self.scored & where, start, end)


def _partition(
    graph: EventGraph, balance: Balance, composed: Composed
) -> tuple[Partition, Balance, jax.Array, dict[int, str]]:
    """The exact partition of the traces whose entries fit the grid, their balance and claims, and why others do not."""
    trace = jnp.asarray(graph.trace_ids)
    cells = composed.cells.astype(balance.total.dtype)
    refused_traces: dict[int, str] = {}
    claimed = composed.claimed
    while True:
        partition = _placed(cells, claimed, trace, balance, search=False)
        if not np.asarray(partition.exact).all():
            partition = _placed(cells, claimed, trace, balance, search=True)
        beyond = np.flatnonzero(~np.asarray(partition.exact))
        if not len(beyond):
            return partition, balance, claimed, refused_traces
        sizes = np.asarray(jax.ops.segment_max(jnp.max(jnp.abs(cells), axis=1), trace, num_segments=graph.num_traces))
        for t in map(int, beyond):
            refused_traces[t] = (
                f"entries outside the range of exact arithmetic: reward {float(balance.total[t])!r}, largest claim "
                f"{max(float(sizes[t]), 0.0)!r}"
            )
        kept = jnp.asarray(partition.exact)
        balance, claimed = balance.only(kept), claimed & kept[trace]


@kept_compiled
@functools.partial(jax.jit, static_argnames=("search",))
def _placed(cells: jax.Array, claimed: jax.Array, trace: jax.Array, balance: Balance, *, search: bool) -> Partition:
    """The exact partition of cells [E, C] on the events claimed, and of the start and end of each trace."""
    width = cells.shape[1]
    placed: Partition = exact_partition(
        jnp.where(claimed[:, None], cells, 0).reshape(-1),
        jnp.repeat(trace, width),
        jnp.repeat(claimed, width),
        balance.total,
        trace_cells=jnp.stack([balance.start, balance.end], axis=1),
        search=search,
    )
    return placed


class _OnGrid(NamedTuple):
    """The cells of a partition as floats: of events [E, C], their sums [E], and of traces [T]."""

    cells: jax.Array
    increments: jax.Array
    start: jax.Array
    end: jax.Array
    residual: jax.Array


@kept_compiled
@functools.partial(jax.jit, static_argnames="width")
def _on_grid(partition: Partition, trace: jax.Array, *, width: int) -> _OnGrid:
    cells = partition.amounts(jnp.repeat(trace, width)).reshape(-1, width)
    ends = partition.trace_amounts
    increments = jnp.sum(cells, axis=1)  # exact: sums on the grid do not round
    return _OnGrid(cells, increments, ends[:, 0], ends[:, 1], partition.residual)


def partitioned(
    graph: EventGraph,
    rule: str,
    balance: Balance,
    composed: Composed,
    *,
    scales: Mapping[str, Credit],
    refused: Mapping[str, str],
    errors: Errors,
    known_before: Array | None = None,
    stated_start: bool = False,
) -> Ledger:
    """Put cells on the exact grid, and make the ledger.

    Args:
      graph: of the batch.
      rule, balance, composed: how entries were made, and what came of it.
      scales: claims that scale advantages, by name.
      refused: the others that have no entries, by name, with the reason.
      errors: of the entries.
      known_before: bool [E, C], cells that hold nothing of their own trace's outcome; None where that says nothing.
      stated_start: whether the caller stated what each trace was worth at its start. A method's baseline is not known
        before: it may hold the trace's own outcome, and is 0 where there is none.
    """
    trace, width = jnp.asarray(graph.trace_ids), len(composed.channels)
    partition, balance, claimed, refused_traces = _partition(graph, balance, composed)
    on_grid = _on_grid(partition, trace, width=width)
    scored = np.asarray(balance.scored)
    total, start = np.asarray(balance.total, np.float64), np.asarray(on_grid.start, np.float64)
    measured = explained(graph, on_grid.cells, known_before, total, start if stated_start else None, scored)
    return Ledger(
        graph=graph,
        rule=rule,
        channels=composed.channels,
        reward=balance.total,
        scored=balance.scored,
        expected=on_grid.start,
        outcome=on_grid.end,
        unexplained=on_grid.residual,
        remainder=partition.remainder,
        cells=on_grid.cells,
        increments=on_grid.increments,
        stderr=jnp.asarray(np.where(claimed, composed.stderr, np.float32(np.nan))),
        claimed=claimed,
        partition=partition,
        claims=composed.claims,
        scales=scales,
        refused=refused,
        refused_traces=refused_traces,
        chi_squared=composed.chi_squared,
        coverage=_coverage(np.asarray(on_grid.residual, np.float64)[scored], (total - start)[scored]),
        explained=measured.share,
        explained_stderr=measured.stderr,
        unexplained_variance=composed.unexplained_variance,
        errors=errors,
    )


def _coverage(unexplained: np.ndarray, difference: np.ndarray) -> float:
    if not len(difference):
        return float("nan")
    size = max(float(np.abs(difference).max()), float(np.abs(unexplained).max()))
    spread = float(np.var(difference / size)) if size > 0 else 0.0
    return 1 - float(np.var(unexplained / size)) / spread if spread > 0 else float("nan")
