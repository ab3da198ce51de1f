"""Advantages from claims as control variates: wrong claims leave the policy gradient's mean right, if they are centred.

A claim c_f is an estimate of the increment of action f. Taking the claims of all *other* actions out of the return of
an action leaves its own contribution with less noise:

    A_e = (R − b) − Σ_{f ≠ e} β c_f

Its mean times the score of e is exactly the policy gradient if (i) b and β do not depend on this trace's choices; (ii)
every claim is centred under the policy that acted, E[c_f | log before f] = 0; (iii) claims of actions before e do not
contain this trace's own outcome; (iv) whether f carries a claim depends on the log before f only, not on f's choice.
Proof: for f before e, c_f is a function of the past, given which the score of e has mean zero; for f after e, c_f has
mean zero given everything before f, the choice at e included. The accuracy of the claims does not enter.

With b the leave-one-out mean and no claims this is RLOO. A claim that contains its own trace's outcome serves only the
actions before it; a claim that is not centred, or no increment, is refused by name.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, finish
from estimators.baselines.shared import rloo
from estimators.composition.coefficients import fitted_coefficients
from estimators.composition.increments import JOINT, states_twice
from estimators.sequence.chains import chains
from estimators.short_rows import sum_of_columns
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import segment_sum

__all__ = ["Control", "control_advantage"]


class Control(NamedTuple):
    """The advantage, its coefficients, and the sources that took part.

    Attributes:
      credit: `Credit` whose advantage is A; estimand "return".
      beta: float [S, T], the coefficient of each source for each trace.
      used: the sources that took part.
      refused: the others, and which condition each would have broken.
      others: float [S, E], Σ_{f ≠ e} c_f of each source, before its coefficient; 0 where the baseline is not valid.
    """

    credit: Credit
    beta: jax.Array
    used: tuple[str, ...]
    refused: dict[str, str]
    others: jax.Array


def control_advantage(
    graph: EventGraph,
    reward: Array,
    claims: list[Credit],
    *,
    baseline: Array | None = None,
    beta: float | Array | None = None,
) -> Control:
    """The return of each action with the centred claims of all other actions of its trace taken out.

        A_e = (R − b) − Σ_{f ≠ e} β c_f

    Args:
      graph: the batch.
      reward: float [T], NaN where a trace has none.
      claims: increments; of each source one `Credit`. Those that are not centred, or no increments, are refused, as is
        one that states a decision twice; under `jax.jit` that one stays in `used` and is 0.
      baseline: float [T], b of each trace, which must not depend on the trace's own choices; by default the mean of the
        other traces of its group, and traces without others are invalid. A trace whose b is not finite has no
        advantage.
      beta: the coefficient, a number or [S] in the order of `Control.used`; by default fitted for each trace by least
        squares over the actions of other groups whose rewards spread alike, and 0 where these have fewer than
        `ENOUGH_TRACES` traces (`estimators.composition.coefficients`).

    Returns:
      `Control`. Unbiased under the conditions above, of which (i), (ii) and (iii) are arranged or checked here by what
      the claims declare, and (iv) is the caller's: this function cannot see why an event has no claim.

    Source: the control-variate form of composition (docs/data-model.md); Cheng, Yan and Boots 2020 have the idea of
    trajectory-wise control variates, in another form.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0])
      >>> amount = np.zeros(graph.num_events)
      >>> amount[rows.event] = [0.5, 0.0, -0.5, 0.0]
      >>> claims = [credit.claim(
      ...     graph, amount, estimand="increment", source="critic", centred=True, own_outcome=False)]
      >>> print(rows.gather(control_advantage(graph, reward, claims, beta=1.0).credit.advantage))
      [ 1.   0.5 -1.  -0.5]
    """
    kept, refused = _usable(graph, claims)
    if beta is not None and jnp.shape(jnp.asarray(beta)) not in ((), (1,), (len(kept),)):
        shape = jnp.shape(jnp.asarray(beta))
        raise CreditError(
            f"beta has shape {shape}; expected a number, or ({len(kept)},), one for each claim that is used"
        )
    shared = rloo(graph, reward)
    # What is known only inside a compiled function cannot be refused by name: such a claim counts for nothing.
    counted = [c.valid & ~jnp.asarray(states_twice(graph, c)) for c in kept]
    amounts = [jnp.where(counts, c.credit - c.baseline, 0) for c, counts in zip(kept, counted, strict=True)]
    amount = jnp.stack(amounts) if kept else None
    own = tuple(claim.own_outcome for claim in kept)
    credit, coefficients, others = _control(graph, jnp.asarray(reward), shared, amount, own, baseline, beta)
    return Control(credit, coefficients, tuple(claim.source for claim in kept), refused, others)


def _usable(graph: EventGraph, claims: list[Credit]) -> tuple[list[Credit], dict[str, str]]:
    """The claims that can be control variates, one a source, and why the others cannot."""
    kept: list[Credit] = []
    refused = {}
    for claim in claims:
        if claim.estimand != "increment":
            refused[claim.source] = f"its estimand is {claim.estimand!r}, not 'increment'"
        elif states_twice(graph, claim) is True:
            refused[claim.source] = JOINT
        elif not claim.centred:
            refused[claim.source] = (
                "it is not centred under the policy that acted, so its mean would enter the gradient"
            )
        elif claim.source in (other.source for other in kept):
            refused[claim.source] = "another claim of its source is used"
        else:
            kept.append(claim)
    return kept, refused


@functools.partial(jax.jit, static_argnames=("own_outcome",))
def _control(
    graph: EventGraph,
    reward: jax.Array,
    shared: Credit,
    amount: jax.Array | None,
    own_outcome: tuple[bool, ...],
    baseline: Array | None,
    beta: float | Array | None,
) -> tuple[Credit, jax.Array, jax.Array]:
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    outcome = jnp.where(jnp.isfinite(reward), reward, 0)[trace]
    if baseline is None:
        b, reason = shared.baseline, shared.reason
    else:
        b = jnp.asarray(baseline)[trace]
        scored = jnp.isfinite(jnp.asarray(reward))[trace]
        reason = jnp.where(scored, Reason.VALID, Reason.NO_REWARD)
    # What has no advantage enters no coefficient.
    rows = jnp.asarray(graph.event_mask) & graph.trained_mask & (reason == Reason.VALID) & jnp.isfinite(b)
    taken = jnp.zeros_like(b)
    coefficients, others = jnp.zeros((0, num), b.dtype), jnp.zeros((0, graph.num_events), b.dtype)
    if amount is not None:
        amount = jnp.where(rows[None], amount, 0).astype(b.dtype)
        others = _of_others(graph, amount, rows, own_outcome)
        if beta is None:
            target, by_trace = jnp.where(rows, outcome - b, 0), jnp.where(jnp.isfinite(reward), reward, 0)
            coefficients = fitted_coefficients(graph, by_trace, rows, target, others)
        else:
            coefficients = jnp.broadcast_to(jnp.atleast_1d(jnp.asarray(beta, b.dtype))[:, None], (len(amount), num))
        by_event = coefficients[:, trace] if beta is None else coefficients[:, :1]  # the same for all traces
        taken = sum_of_columns((by_event * others).T)
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
    return credit, coefficients, others


def _of_others(graph: EventGraph, amount: jax.Array, rows: jax.Array, own_outcome: tuple[bool, ...]) -> jax.Array:
    """Σ_{f≠e} c_f of each source at each action e, over f after e only where claims hold their own outcome: [S, E]."""
    agents, trace = jnp.asarray(graph.agent_ids), jnp.asarray(graph.trace_ids)
    path, ones = chains(graph, rows), jnp.ones_like(amount[0])
    others = []
    for claims, own in zip(amount, own_outcome, strict=True):
        if own:
            others.append(path.backward(ones, claims) - claims)
        else:
            # By agents first: additions to one sum wait for each other.
            total = segment_sum(segment_sum(claims, agents, graph.num_agents), graph.agent_trace, graph.num_traces)
            others.append(jnp.where(rows, total[trace] - claims, 0))
    return jnp.stack(others)
