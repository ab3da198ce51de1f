"""From the results of several methods to one ledger: who is refused, and the exact entries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.account import Ledger
from credit.ledger.rules import Composed, by_increments, by_reconciling, by_shares
from estimators.base import Credit
from estimators.baselines.shared import rloo
from estimators.composition.exact import exact_partition
from estimators.composition.increments import NotComposableError, as_increment
from graphs.errors import CreditError, expect
from graphs.event_graph import Array, EventGraph

__all__ = ["RULES", "Rule", "compose"]

Rule = Literal["increments", "reconcile", "shares"]
RULES: tuple[Rule, ...] = ("increments", "reconcile", "shares")


def compose(
    graph: EventGraph,
    reward: Array,
    claims: Sequence[Credit],
    *,
    rule: Rule = "increments",
    expected: Array | None = None,
    outcome: Array | None = None,
    propensity: Array | None = None,
    tau: float | Literal["fit"] = float("inf"),
    scale: float | None = None,
    exact: Collection[str] = (),
    replays: Mapping[str, Array] | None = None,
    span: float = 1.0,
) -> Ledger:
    """Compose the results of several methods into one exact partition of the reward of each trace.

        increments   claims on events are averaged, one vote a source, never added
        reconcile    claims on sums of increments at any nested level are made to agree by least squares
        shares       the total is split from the top down, by shares, scores or budgets; evenly where there are none

    By the first two, every claim is converted to increments (`estimators.composition.increments.as_increment`), and
    what the claims leave of the reward is `unexplained`, an entry of its own, and in nobody's credit. Whoever cannot
    take part is refused by name, in `Ledger.refused`. No rule is best in every world; docs/ledger.md shows where each
    loses.

    Args:
      graph, reward: the batch; traces without reward have empty entries.
      claims: results of methods on this graph, or of `estimators.claim`. One of estimand "total" is no claim; its
        baseline is `expected`. One of estimand "scale" is a factor, kept for `Ledger.advantage`.
      rule: as above.
      expected: float [T], what each trace was worth at its start; by default the baseline of the first "total" among
        the claims, else the mean of the other traces of its group, and 0 where there are none. Under rule "shares" with
        shares of a game, v(∅), by default 0.
      outcome: float [T], R − V at the end, where a critic states it; 0 by default.
      propensity: float [E], π of the chosen actions, by which effects become increments.
      tau: under "reconcile", prior standard deviation of a trace's unexplained: infinite, the total moves no claim; 0,
        it is met wherever an event may move; "fit", estimated from the batch.
      scale: under "reconcile", prior standard deviation of what the unclaimed events of a trace add up to, divided
        equally among siblings from the top down, so that splitting one's work does not pay. Without it they get 0.
      exact: sources whose stated errors of 0 are constraints.
      replays: for a source, int [E], the number of replays behind an error that was estimated; an estimated 0 is raised
        to what that many agreeing replays leave open.
      span: largest minus smallest outcome that a replay can have.

    Raises:
      CreditError: an unknown rule; an option that the rule does not have (`tau` and `scale` are of "reconcile", `exact`
        and `replays` of all but "shares"); entries outside the range of exact arithmetic;
        under "reconcile", `NestingError` for levels that do not nest, `ContradictionError` for exact claims that
        exclude each other, `StatedZeroError`.

    Source: docs/ledger.md; composition is by increments because these are what adds up: a contrast, a removal or a
    share summed over a trace does not give the reward.
    """
    if rule not in RULES:
        raise CreditError(f"rule is {rule!r}; expected one of {', '.join(map(repr, RULES))}")
    _check_options(rule, tau, scale, exact, replays or {})
    expect("graph", graph, EventGraph, "an EventGraph, such as traces.graph")
    expect("claims", claims, Sequence, "a list of Credits, each the result of a method")
    for place, claim in enumerate(claims):
        expect(f"claims[{place}]", claim, Credit, "a Credit, the result of a method")
    reward = jnp.asarray(reward)
    scored = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    total = jnp.where(scored, reward, 0)
    scales = {claim.source: claim for claim in claims if claim.estimand == "scale"}
    totals = [claim for claim in claims if claim.estimand == "total"]
    offered = [claim for claim in claims if claim.estimand != "total"]
    if expected is not None:
        start = jnp.asarray(expected, total.dtype)
    elif rule == "shares" and any(claim.estimand == "share" for claim in claims):
        start = jnp.zeros_like(total)
    else:
        start = _at_start(graph, totals[0] if totals else rloo(graph, reward))
    start = jnp.where(scored, start, 0).astype(total.dtype)
    end = jnp.zeros_like(total) if outcome is None else jnp.where(scored, jnp.asarray(outcome, total.dtype), 0)

    refused: dict[str, str] = {}
    if rule == "shares":
        made = by_shares(graph, total - start - end, scored, offered, refused)
    else:
        kept: list[Credit] = []
        for claim in offered:
            try:
                kept.append(as_increment(graph, claim, propensity=propensity))
            except NotComposableError as error:
                refused[claim.source] = str(error)
        if rule == "increments":
            made = by_increments(graph, total, scored, kept, refused, exact, replays, span)
        else:
            left = total - start - end
            made = by_reconciling(graph, left, scored, kept, refused, exact, replays, span, tau, scale)
    errors = {"exact": tuple(exact), "replays": replays, "span": span}
    return _partitioned(graph, rule, total, scored, start, end, made, scales, refused, errors)


def _check_options(
    rule: Rule, tau: float | Literal["fit"], scale: float | None, exact: Collection[str], replays: Collection[str]
) -> None:
    """Refuse what would be passed over in silence."""
    for name, used, rules in (
        ("tau", tau != float("inf"), ("reconcile",)),
        ("scale", scale is not None, ("reconcile",)),
        ("exact", bool(exact), ("increments", "reconcile")),
        ("replays", bool(replays), ("increments", "reconcile")),
    ):
        if used and rule not in rules:
            raise CreditError(f"{name} is given, which rule {rule!r} does not have; expected {' or '.join(rules)}")


def _partitioned(
    graph: EventGraph,
    rule: Rule,
    total: jax.Array,
    scored: jax.Array,
    start: jax.Array,
    end: jax.Array,
    made: Composed,
    scales: Mapping[str, Credit],
    refused: Mapping[str, str],
    errors: Mapping[str, Any],
) -> Ledger:
    trace, width = jnp.asarray(graph.trace_ids), len(made.channels)
    partition = exact_partition(
        made.cells.reshape(-1),
        jnp.repeat(trace, width),
        jnp.repeat(made.claimed, width),
        total,
        trace_cells=jnp.stack([start, end], axis=1),
    )
    if not bool(jnp.all(partition.exact)):
        worst = int(jnp.argmin(partition.exact))
        largest = float(jnp.max(jnp.abs(jnp.where((trace == worst)[:, None], made.cells, 0))))
        raise CreditError(
            f"trace {worst} has entries outside the range of exact arithmetic: reward {float(total[worst])!r}, "
            f"largest claim {largest!r}"
        )
    cells = partition.amounts(jnp.repeat(trace, width)).reshape(graph.num_events, width)
    ends = partition.trace_amounts
    return Ledger(
        graph=graph,
        rule=rule,
        channels=made.channels,
        reward=total,
        scored=scored,
        expected=ends[:, 0],
        outcome=ends[:, 1],
        unexplained=partition.residual,
        remainder=partition.remainder,
        cells=cells,
        increments=jnp.sum(cells, axis=1),  # exact: sums on the grid do not round
        stderr=jnp.where(made.claimed, made.stderr, 0),
        claimed=made.claimed,
        partition=partition,
        claims=made.claims,
        scales=scales,
        refused=refused,
        chi_squared=made.chi_squared,
        coverage=_coverage(
            np.asarray(partition.residual, np.float64)[scored], np.asarray(total - start, np.float64)[scored]
        ),
        unexplained_variance=made.unexplained_variance,
        errors=errors,
    )


def _at_start(graph: EventGraph, credit: Credit) -> jax.Array:
    """The baseline of each trace, 0 where it has none: [T]."""
    valid = np.flatnonzero(np.asarray(credit.valid))
    baseline = np.asarray(credit.baseline)
    out = np.zeros(graph.num_traces, baseline.dtype)
    out[np.asarray(graph.trace_ids)[valid]] = baseline[valid]
    return jnp.asarray(out)


def _coverage(unexplained: np.ndarray, difference: np.ndarray) -> float:
    spread = float(np.var(difference))
    return 1 - float(np.var(unexplained)) / spread if spread > 0 else float("nan")
