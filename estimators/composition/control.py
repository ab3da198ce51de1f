"""Advantages from claims as control variates: the policy gradient's mean stays right however wrong the claims are.

A claim c_f says what action f was worth, its increment. Taking the claims of all *other* actions out of the return of
an action leaves its own contribution with less noise:

    A_e = (R − b) − Σ_{f ≠ e} β c_f

Its mean times the score of e is exactly the policy gradient if (i) b and β do not depend on this trace's choices; (ii)
every claim is centred under the policy that acted, E[c_f | log before f] = 0; (iii) claims of actions before e do not
contain this trace's own outcome; (iv) whether f carries a claim depends on the log before f only, not on f's choice.
Proof: for f before e, c_f is a function of the past, given which the score of e has mean zero; for f after e, c_f has
mean zero given everything before f, the choice at e included. How good the claims are does not enter.

So with b the leave-one-out mean and no claims this is RLOO. A claim that contains its own trace's outcome may still
serve the actions before it, and does; one that is not centred, or no increment, is left out by name.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, finish
from estimators.baselines.shared import rloo
from estimators.sequence.chains import chains
from graphs.event_graph import Array, EventGraph
from graphs.segment import segment_count, segment_sum

__all__ = ["ENOUGH_TRACES", "Control", "control_advantage"]

ENOUGH_TRACES = 64
"""Below this many other traces a fitted β costs more variance than it saves, and is 0."""


class Control(NamedTuple):
    """The advantage, and what is needed to believe it.

    Attributes:
      credit: `Credit` whose advantage is A; estimand "return".
      beta: float [S, T], the coefficient of each source for each trace.
      used: the sources that took part.
      refused: the others, and which condition each would have broken.
    """

    credit: Credit
    beta: jax.Array
    used: tuple[str, ...]
    refused: dict[str, str]


def control_advantage(
    graph: EventGraph,
    reward: Array,
    claims: list[Credit],
    *,
    baseline: Array | None = None,
    beta: float | Array | None = None,
) -> Control:
    """The return of each action with the centred claims of all other actions of its trace taken out.

    Args:
      graph, reward: the batch.
      claims: increments; of each source one `Credit`. Those that are not centred, or no increments, are refused.
      baseline: float [T], b of each trace, which must not depend on the trace's own choices; by default the mean of the
        other traces of its group, and traces without others are invalid.
      beta: the coefficient, a number or [S] in the order of `Control.used`; by default fitted for each trace, by
        least squares of A over the actions of all other groups, and 0 where those are of fewer than `ENOUGH_TRACES`
        traces.

    Returns:
      `Control`. Unbiased under the conditions above, of which (i), (ii) and (iii) are arranged or checked here by what
      the claims declare, and (iv) is the caller's: this function cannot see why an event has no claim.

    Source: the control-variate form of composition (docs/data-model.md); Cheng, Yan and Boots 2020 have the idea of
    trajectory-wise control variates, in another form.
    """
    refused = {}
    kept: list[Credit] = []
    for claim in claims:
        if claim.estimand != "increment":
            refused[claim.source] = f"its estimand is {claim.estimand!r}, not 'increment'"
        elif not claim.centred:
            refused[claim.source] = (
                "it is not centred under the policy that acted, so its mean would enter the gradient"
            )
        elif claim.source in (other.source for other in kept):
            refused[claim.source] = "its source is there already"
        else:
            kept.append(claim)
    shared = rloo(graph, reward)
    amount = jnp.stack([jnp.where(c.valid, c.credit - c.baseline, 0) for c in kept]) if kept else None
    own = tuple(claim.own_outcome for claim in kept)
    credit, coefficients = _control(graph, jnp.asarray(reward), shared, amount, own, baseline, beta)
    return Control(credit, coefficients, tuple(claim.source for claim in kept), refused)


@functools.partial(jax.jit, static_argnames=("own_outcome",))
def _control(
    graph: EventGraph,
    reward: jax.Array,
    shared: Credit,
    amount: jax.Array | None,
    own_outcome: tuple[bool, ...],
    baseline: Array | None,
    beta: float | Array | None,
) -> tuple[Credit, jax.Array]:
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    outcome = jnp.where(jnp.isfinite(reward), reward, 0)[trace]
    if baseline is None:
        b, reason = shared.baseline, shared.reason
    else:
        b = jnp.asarray(baseline)[trace]
        scored = jnp.isfinite(jnp.asarray(reward))[trace]
        reason = jnp.where(scored, Reason.VALID, Reason.NO_REWARD)
    rows = jnp.asarray(graph.event_mask) & jnp.asarray(graph.action_mask) & (reason == Reason.VALID)
    taken = jnp.zeros_like(b)
    coefficients = jnp.zeros((0, num), b.dtype)
    if amount is not None:
        amount = jnp.where(rows[None], amount, 0).astype(b.dtype)
        others = _of_others(graph, amount, rows, own_outcome)
        if beta is None:
            coefficients = _fit(graph, jnp.where(rows, outcome - b, 0), others)
        else:
            coefficients = jnp.broadcast_to(jnp.atleast_1d(jnp.asarray(beta, b.dtype))[:, None], (len(amount), num))
        taken = jnp.sum(coefficients[:, trace] * others, axis=0)
    credit = finish(
        graph,
        credit=outcome - taken,
        baseline=b,
        scale=jnp.ones_like(b),
        stderr=jnp.full_like(b, jnp.inf),
        reason=reason,
        unit="event",
        estimand="return",
        source="control",
        centred=False,
        own_outcome=True,
    )
    return credit, coefficients


def _of_others(graph: EventGraph, amount: jax.Array, rows: jax.Array, own_outcome: tuple[bool, ...]) -> jax.Array:
    """Σ_{f≠e} c_f of each source at each action e, over f after e only where claims hold their own outcome: [S, E]."""
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    path, ones = chains(graph, rows), jnp.ones_like(amount[0])
    found = []
    for claims, own in zip(amount, own_outcome, strict=True):
        if own:
            found.append(path.backward(ones, claims) - claims)
        else:
            found.append(jnp.where(rows, segment_sum(claims, trace, num)[trace] - claims, 0))
    return jnp.stack(found)


def _fit(graph: EventGraph, target: jax.Array, others: jax.Array) -> jax.Array:
    """β of each trace, [S, T]: those that make Σ_e A_e² least over the traces of all other groups.

    A_e = target − Σ_s β_s others_s over the actions of those traces; 0 where they are fewer than `ENOUGH_TRACES`.
    """
    group, trace, num = jnp.asarray(graph.group_ids), jnp.asarray(graph.trace_ids), graph.num_traces
    sources = others.shape[0]
    terms = jnp.concatenate([others, target[None]])

    def elsewhere(x: jax.Array) -> jax.Array:
        """Sums over the traces of all other groups, for each trace: [T]."""
        inside = segment_sum(x, group, num)
        return jnp.sum(x) - inside[group]

    pairs = [
        [elsewhere(segment_sum(terms[i] * terms[j], trace, num)) for j in range(sources + 1)] for i in range(sources)
    ]
    products = jnp.stack([jnp.stack(row, axis=-1) for row in pairs], axis=1)  # [T, S, S + 1]
    gram, moment = products[..., :sources], products[..., sources:]
    # A little of each source's own size on the diagonal: sources that say the same share the coefficient.
    size = jnp.diagonal(gram, axis1=1, axis2=2) * 1e-6
    least = jnp.where(size > 0, size, 1)
    eye = jnp.eye(sources, dtype=gram.dtype)[None]
    solved = jnp.linalg.solve(gram + least[:, :, None] * eye, moment)[..., 0]
    speaks = jnp.any(others != 0, axis=0)
    present = segment_count(trace, num, speaks) > 0
    enough = elsewhere(jnp.where(present, 1, 0)) >= ENOUGH_TRACES
    return jnp.where(enough[None], solved.T, 0)
