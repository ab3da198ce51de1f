"""Advantages from a regression of the reward on choices that keeps what every earlier step showed.

What a choice is worth given the other choices does not depend on the policy; only the average over them does. So a
model of the reward given the choices learns from all traces so far. x_e are numbers of the choice at event e, centred
under the policy that acted, and φ_i = Σ_e x_e is their sum over trace i:

    R_i = task mean + w·φ_i + ε_i,    w_j normal with variance σ²/λ,    so that  (G + Λ) ŵ = m
    G = Σ φφᵀ,  m = Σ φ R             over all traces so far, both less their means over tasks
    c_e = ŵ·x_e                       the claim on e: the posterior mean of its increment

**Why not the claim alone.** A policy adds up its gradients. The errors of ŵ are the same from step to step, so a policy
trained on ŵ_1, ŵ_2, … holds Σ_t ŵ_t, in which the first traces count in every term, and commits to what they showed by
chance. With I_t the information so far (the mean diagonal of G), and i_t that of the step, at least I_t / t, the
advantage is

    A_e = (1 − ω) x_e·(I_t ŵ_t − I_{t−1} ŵ_{t−1}) / i_t  +  ω (c_e + R − b − Σ_f c_f)

The first part is c_e times (I_t − I_{t−1})/i_t and a repayment: (I_{t−1}/i_t) (ŵ_t − ŵ_{t−1}) gives back what earlier
steps got wrong by what is known now. Its sum over steps of equal i is I_t ŵ_t / i, in which each trace counts once. As
decisions settle, a step tells less. Divided by that alone, decisions that have not settled would move by ever larger
steps: with a hundred decisions and plain steps, policies that were nine tenths of the way turned round. The second part
is the advantage `control` with coefficients of 1, which has no bias. So ω weighs a bias against luck, for each block of
features:

    ω = max(a / (a + v),  FLOOR · u)

    g_t   the mean of φ_i (R_i − ŵ·φ_i), over traces that ŵ has not seen: the gradient that the claims miss
    a     the mean of g_t · Σ_{s<t} MEMORY^{t−s} g_s. What a right model misses is new in each step, and a is near 0;
          what a wrong one misses comes again
    v     the mean of |φ_i|² (R_i − ŵ·φ_i)² / n: what the luck of a step's n traces adds to g_t
    u     the share of the variance of rewards that the claims leave on traces that ŵ has not seen

The widths Λ, one a block, are those of the largest marginal likelihood among the last one and its neighbours, a factor
`STEP` away, under a wide prior around equal shares of model and luck; σ² is profiled. Claims on a trace come from
earlier steps and from the half of the batch that does not hold its group, or a group with replays of it. Λ, ω and the
means over tasks are those of earlier steps. Time is O(E J + T F² + F³) for J numbers an event and F features.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, check_reward, finish
from estimators.baselines.shared import rloo
from estimators.clusters import independent_groups
from estimators.critic.cholesky import cholesky
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.segment import computed_once, safe_divide, segment_count, segment_sum
from graphs.text import excerpt

__all__ = [
    "FLOOR",
    "MEMORY",
    "STEP",
    "PosteriorClaims",
    "PosteriorState",
    "choice_features",
    "fresh_posterior",
    "posterior_advantage",
    "posterior_claims",
    "residual_weights",
]

MEMORY = 0.9
"""What is left of the sums behind ω after a step: they see about ten steps. Those of the regression forget nothing."""

FLOOR = 0.3
"""The least ω where claims explain nothing: what a trial on additive and interacting worlds lost least with."""

STEP = 4.0
"""The factor between the widths that are compared in a step."""

WIDE = 2.0
"""The standard deviation of ln Λ around equal shares of model and luck: shares of luck of 2 to 98 % are likely."""


class PosteriorState(NamedTuple):
    """What is kept between steps: arrays only, to be saved and resumed. F features in B blocks.

    Attributes:
      block: int32 [F], the block of each feature.
      gram, moment: float [F, F] and [F], G and m.
      square, seen: float [], Σ R² less means, and how many traces less one a half.
      width, first: float [B], Λ, and where its prior has its centre; 0 before the block was seen.
      repaid: float [F], I_t ŵ_t of the last step.
      missed: float [F], Σ MEMORY^{t−s} g_s.
      again, luck: float [B], sums behind a and v.
      left, whole: float [], squares of rewards on unseen traces, after and before the claims.
      spread: float [4], squares between and within groups, and the freedom of both.
      steps: int32 [].
    """

    block: jax.Array
    gram: jax.Array
    moment: jax.Array
    square: jax.Array
    seen: jax.Array
    width: jax.Array
    first: jax.Array
    repaid: jax.Array
    missed: jax.Array
    again: jax.Array
    luck: jax.Array
    left: jax.Array
    whole: jax.Array
    spread: jax.Array
    steps: jax.Array


class PosteriorClaims(NamedTuple):
    """Increments by the model: float [E].

    Attributes:
      mean: c_e.
      stderr: the posterior standard deviation of c_e, infinite before the first step. It holds if the model is right.
    """

    mean: jax.Array
    stderr: jax.Array


def fresh_posterior(features: int, *, block: Array | None = None) -> PosteriorState:
    """The state before the first step.

    Args:
      features: F.
      block: int [F], which features share a prior width and a weight of the residual, such as those of one kind of
        decision; blocks are numbered from 0. By default there is one.

    Raises:
      CreditError: there is no feature, or `block` is not as long, or holds no numbers of blocks.

    Examples:
      >>> from estimators.critic.repaid_posterior import fresh_posterior
      >>> fresh_posterior(3).gram.shape
      (3, 3)
    """
    if features < 1:
        raise CreditError(f"features is {features}; expected 1 or more")
    blocks = np.zeros(features, np.int32) if block is None else np.asarray(block)
    if blocks.shape != (features,) or not np.issubdtype(blocks.dtype, np.integer) or blocks.min() < 0:
        raise CreditError(f"block is {excerpt(blocks)}; expected {features} integers from 0, one for each feature")
    blocks = blocks.astype(np.int32)
    b, f, zero = jnp.zeros(int(blocks.max()) + 1), jnp.zeros(features), jnp.zeros(())
    gram = jnp.zeros((features, features))
    return PosteriorState(
        jnp.asarray(blocks), gram, f, zero, zero, b, b, f, f, b, b, zero, zero, jnp.zeros(4), jnp.zeros((), jnp.int32)
    )


def choice_features(place: Array, chosen: Array, policy: Array) -> tuple[jax.Array, jax.Array]:
    """Columns and numbers of choices among C alternatives: 1 at the one that was chosen, less their probabilities.

    With two alternatives there is one column a place, since the other is its negative.

    Args:
      place: int [E], what tells decisions apart whose choices are worth different things, such as the role and the
        number of the action, from 0.
      chosen: int [E], 0 to C − 1.
      policy: float [E, C], probabilities of the policy that acted.

    Returns:
      `columns` int32 [E, J] and `values` float [E, J], as `posterior_advantage` takes them; J is C, or 1. Inside a
      compiled function, `values` are NaN where `chosen` is no alternative.

    Raises:
      CreditError: the shapes differ, or `chosen` is no alternative.

    Examples:
      >>> import numpy as np
      >>> columns, values = choice_features(np.array([2]), np.array([1]), np.array([[0.25, 0.75]]))
      >>> columns.tolist(), values.tolist()
      ([[2]], [[0.25]])
    """
    policy = jnp.asarray(policy)
    if policy.ndim != 2 or jnp.shape(place) != policy.shape[:1] or jnp.shape(chosen) != policy.shape[:1]:
        raise CreditError(
            f"place has shape {jnp.shape(place)}, chosen {jnp.shape(chosen)}, policy {policy.shape}; expected [E], [E] "
            "and [E, C]"
        )
    chosen, values = _of_range("chosen", jnp.asarray(chosen)[:, None], policy, policy.shape[1])
    alternatives = jnp.arange(policy.shape[1])
    if policy.shape[1] == 2:
        return jnp.asarray(place, jnp.int32)[:, None], chosen.astype(policy.dtype) - values[:, 1:]
    values = (chosen == alternatives[None]).astype(policy.dtype) - values
    return jnp.asarray(place, jnp.int32)[:, None] * policy.shape[1] + alternatives.astype(jnp.int32)[None], values


def _of_range(name: str, ids: jax.Array, values: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Ids from 0 to count − 1 and their numbers; traced, others become 0 with the number NaN, which is no claim.

    JAX would take the nearest id instead, or leave it out of some sums.

    Raises:
      CreditError: an id that is not traced lies outside, or such a number is infinite.
    """
    if not isinstance(values, jax.core.Tracer) and jnp.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(np.asarray(values)).any(axis=-1))[0])
        raise CreditError(
            f"row {row} of the numbers beside {name} is infinite; expected finite ones, or NaN for no claim"
        )
    wrong = (ids < 0) | (ids >= count)
    if not isinstance(wrong, jax.core.Tracer) and wrong.any():
        found = np.asarray(ids)
        raise CreditError(f"{name} has numbers from {found.min()} to {found.max()}; expected 0 to {count - 1}")
    return jnp.where(wrong, 0, ids), jnp.where(wrong, jnp.nan, values)


def residual_weights(state: PosteriorState) -> jax.Array:
    """ω of each block, float [B]: from 0, the claims and their repayment alone, to 1, `control`.

    Args:
      state: after earlier steps.

    Examples:
      >>> residual_weights(fresh_posterior(2)).tolist()
      [0.30000001192092896]
    """
    again = jnp.maximum(state.again, 0)
    wrong = safe_divide(again, again + state.luck)
    unexplained = jnp.where(state.whole > 0, safe_divide(state.left, state.whole), 1)
    return jnp.maximum(wrong, FLOOR * jnp.minimum(unexplained, 1))


def posterior_claims(state: PosteriorState, columns: Array, values: Array) -> PosteriorClaims:
    """Increments of events by what all earlier traces showed, with their posterior standard deviations.

    Args:
      state: after earlier steps.
      columns, values: int and float [E, J], as `posterior_advantage` takes them.

    Raises:
      CreditError: a column is no feature.

    Examples:
      >>> import numpy as np
      >>> posterior_claims(fresh_posterior(1), np.zeros((1, 1), int), np.ones((1, 1))).stderr.tolist()
      [inf]
    """
    claims: PosteriorClaims = _claims(
        state, *_of_range("columns", jnp.asarray(columns), jnp.asarray(values), len(state.moment))
    )
    return claims


@jax.jit
def _claims(state: PosteriorState, columns: jax.Array, values: jax.Array) -> PosteriorClaims:
    lower, half = _factored(jnp.concatenate([state.gram, state.moment[None]])[None], _ridge(state, state.width)[None])
    weights = _solve_transposed(lower, half)[0]
    covariance = jax.scipy.linalg.cho_solve((lower[0], True), jnp.eye(len(weights), dtype=lower.dtype))
    noise = (state.square - jnp.vdot(weights, state.moment)) / jnp.maximum(state.seen, 1)
    pairs = values[:, :, None] * values[:, None, :] * covariance[columns[:, :, None], columns[:, None, :]]
    variance = jnp.maximum(noise, 0) * jnp.sum(pairs, axis=(1, 2))
    return PosteriorClaims(
        jnp.sum(values * weights[columns], axis=1), jnp.where(state.seen > 0, jnp.sqrt(variance), jnp.inf)
    )


def posterior_advantage(
    graph: EventGraph, reward: Array, state: PosteriorState, columns: Array, values: Array
) -> tuple[Credit, PosteriorState]:
    """The advantage A_e above for the traces of a step, and the state after them.

    Args:
      graph: the batch of the step.
      reward: float [T], NaN where a trace has none: it has no advantage, and teaches nothing.
      state: of the step before, or `fresh_posterior`.
      columns: int [E, J], the features that an event's numbers belong to, 0 to F − 1. Several events of a trace may
        share a feature: hashed text, or one kind of decision.
      values: float [E, J], x_e, with mean 0 under the policy that acted, given the log before e. A product of the
        numbers of e and of an earlier event is such a number, too: an interaction. Where one is NaN, the event has no
        claim, and its ω is 1; whether it is must not depend on what was chosen.

    Returns:
      `Credit` with estimand "return", and the next state. At ω = 1 it is unbiased. Below that its bias is (1 − ω) times
      the error of the first part, which ω estimates from what claims miss again and again. Frozen agents get no claims.

    Raises:
      CreditError: `columns` and `values` are not [E, J] both with J above 0, or `columns` are no integers, or no
        features, or a value is infinite. Inside a compiled function, such an event has no claim.

    Source: own; the sums are those of conjugate Bayesian regression (Bishop 2006, section 3.3), the second part is
    `control_advantage`.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0, 1, 1], trace=["a", "b", "c", "d"], reward=[1.0, 0.0, 1.0, 0.0])
      >>> x = np.zeros((graph.num_events, 1))
      >>> x[rows.event, 0] = [0.5, -0.5, 0.5, -0.5]
      >>> result, state = posterior_advantage(graph, reward, fresh_posterior(1), np.zeros(x.shape, int), x)
      >>> print(rows.gather(result.advantage).round(2), int(state.steps))
      [ 0.42 -0.42  0.42 -0.42] 1
    """
    columns, values = jnp.asarray(columns), jnp.asarray(values)
    wanted = f"({graph.num_events}, J) of both, with J 1 or more"
    if columns.shape != values.shape or columns.ndim != 2 or len(columns) != graph.num_events or not columns.size:
        raise CreditError(f"columns has shape {columns.shape} and values {values.shape}; expected {wanted}")
    if not jnp.issubdtype(columns.dtype, jnp.integer):
        raise CreditError(f"columns have dtype {columns.dtype}; expected integers")
    columns, values = _of_range("columns", columns, values, len(state.moment))
    check_reward(graph, reward)
    result: tuple[Credit, PosteriorState] = _step(graph, jnp.asarray(reward), state, columns, values)
    return result


@jax.jit
def _step(
    graph: EventGraph, reward: jax.Array, state: PosteriorState, columns: jax.Array, values: jax.Array
) -> tuple[Credit, PosteriorState]:
    outcome, scored = check_reward(graph, reward)
    trace, num, features = jnp.asarray(graph.trace_ids), graph.num_traces, len(state.moment)
    shared = rloo(graph, reward)
    rows = jnp.asarray(graph.event_mask) & graph.trained_mask
    claimed = rows & jnp.all(jnp.isfinite(values), axis=1)
    x = jnp.where(claimed[:, None], values, 0).astype(outcome.dtype)
    known = scored & (segment_count(trace, num, rows) > 0)
    phi = jnp.zeros((num, features), x.dtype).at[trace[:, None], columns].add(x)
    phi = jnp.where(known[:, None], phi, 0)  # the events of other traces have no advantage
    fold = independent_groups(graph) % 2

    both, spread = _less_means(state, jnp.asarray(graph.group_ids), fold, known, outcome, phi)
    halves = [jnp.where((fold == k)[:, None], both, 0) for k in (0, 1)]
    sums = jnp.stack([jnp.matmul(half.T, half, precision="highest") for half in halves])
    grams, moments, squares = sums[:, :-1, :-1], sums[:, -1, :-1], sums[:, -1, -1]
    first = jax.lax.cond(
        jnp.all(jnp.minimum(state.width, state.first) > 0),
        lambda *_: jnp.zeros((2, len(state.first)), phi.dtype),
        functools.partial(_first_widths, state),
        phi, fold, known,
    )  # fmt: skip
    width = jnp.where(state.width > 0, state.width[None], first)

    # Claims on one half come from the other half: 1 − k. The next widths are those of all traces, or a step from them.
    gram, moment, steps = state.gram + grams.sum(axis=0), state.moment + moments.sum(axis=0), state.steps + 1
    widths = jnp.stack([width.mean(axis=0), _moved(width.mean(axis=0), steps)])
    before, of_all = jnp.concatenate([state.gram, state.moment[None]]), sums[:, :, :-1].sum(axis=0)
    of_halves = jnp.stack([sums[1, :, :-1], sums[0, :, :-1], of_all, of_all])
    lower, half = _factored(before[None] + of_halves, _ridge(state, jnp.concatenate([width[::-1], widths])))
    weights = _solve_transposed(lower[:2], half[:2])
    known_before, information = _mean_diagonal(state.gram), _mean_diagonal(grams)
    evidence = (known_before + information[::-1])[:, None] * weights
    gained = information.sum()
    of_step = jnp.maximum(gained, (known_before + gained) / steps.astype(gained.dtype))
    repayment = jnp.where(gained > 0, safe_divide(evidence - state.repaid[None], of_step), 0)

    omega = residual_weights(state)
    of_feature = omega[state.block][None]
    applied = computed_once(((1 - of_feature) * repayment + of_feature * weights).ravel())
    own = jnp.sum(x * applied[(fold * features)[trace][:, None] + columns], axis=1)
    # Of several blocks the largest, whichever stands first: it is the one whose claims are trusted least.
    of_columns = jnp.max(omega[state.block[columns]], axis=1) if len(omega) > 1 else omega
    of_event = jnp.where(claimed, of_columns, 1)
    left = computed_once(outcome - _by_fold(phi, weights, fold))[trace] - shared.baseline
    credit = finish(
        graph,
        credit=own + of_event * left,
        baseline=jnp.zeros_like(own),
        scale=jnp.ones_like(own),
        stderr=jnp.full_like(own, jnp.inf),
        reason=shared.reason,
        unit="event",
        estimand="return",
        source="posterior",
        centred=False,
        own_outcome=True,
    )
    target = both[:, -1]
    residual = target - _by_fold(both[:, :-1], weights, fold)
    learned = state._replace(
        gram=gram,
        moment=moment,
        square=state.square + squares.sum(),
        seen=state.seen + jnp.maximum(jnp.sum(known, dtype=target.dtype) - 2, 0),
        first=jnp.where(state.first > 0, state.first, first.mean(axis=0)),
        repaid=segment_count(fold, 2, known, outcome.dtype) @ evidence / jnp.maximum(jnp.sum(known, dtype=x.dtype), 1),
        spread=MEMORY * state.spread + spread,
        steps=steps,
    )
    learned = _learned_misses(learned, phi, residual, target, known)
    learned = learned._replace(width=_likelier(learned, widths, lower[2:], half[2:]))
    # Numbers that overflow are refused in this step, and must not stand in all later ones.
    # What overflows makes their sum infinite or NaN.
    whole = jnp.isfinite(
        jnp.stack([jnp.sum(kept) for kept in learned if jnp.issubdtype(kept.dtype, jnp.inexact)]).sum()
    )
    return credit, jax.tree.map(lambda kept, before: jnp.where(whole, kept, before), learned, state)


def _less_means(
    state: PosteriorState, group: jax.Array, fold: jax.Array, known: jax.Array, outcome: jax.Array, phi: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Features and rewards [T, F + 1] less the mean of their half, and less a part of the mean of their group.

    The part is 1 − sqrt(within / between), from earlier steps: least squares for groups whose means are random
    (Fuller and Battese 1974). Means over halves, not the batch: no reward of a trace enters its own claims. Beside it
    squares of rewards between and within groups, and their freedoms: [4].
    """
    both = jnp.concatenate([phi, jnp.where(known, outcome, 0)[:, None]], axis=1)
    count = segment_count(fold, 2, known, outcome.dtype)
    sums = segment_sum(both, fold, 2)
    of_fold = sums / jnp.maximum(count, 1)[:, None]
    size = segment_count(group, len(group), known, outcome.dtype)
    of_group = segment_sum(both, group, len(group)) / jnp.maximum(size, 1)[:, None]
    between, inside = safe_divide(state.spread[:2], state.spread[2:])
    part = jnp.where(between > inside, 1 - jnp.sqrt(safe_divide(inside, between)), 0)
    part = jnp.where(state.spread[3] > 0, part, 0)
    mean = jnp.where((fold == 0)[:, None], of_fold[:1], of_fold[1:])
    own = of_group[group]
    all_traces, traces = sums[:, -1].sum() / jnp.maximum(count.sum(), 1), count.sum()
    off = jnp.where(size > 0, of_group[:, -1] - all_traces, 0)
    within = jnp.sum(jnp.where(known, both[:, -1] - own[:, -1], 0) ** 2)
    groups = jnp.sum(size > 0, dtype=outcome.dtype)
    spread = jnp.stack([jnp.sum(size * off**2), within, jnp.maximum(groups - 1, 0), traces - groups])
    return jnp.where(known[:, None], both - mean - part * (own - mean), 0), spread


def _mean_diagonal(gram: jax.Array) -> jax.Array:
    """The mean diagonal of each of several matrices: [..., F, F] to [...]."""
    return jnp.mean(gram.reshape(*gram.shape[:-2], -1)[..., :: gram.shape[-1] + 1], axis=-1)


def _by_fold(phi: jax.Array, weights: jax.Array, fold: jax.Array) -> jax.Array:
    """w·φ of each trace [T] by the weights [2, F] of its half."""
    of_both = jnp.matmul(phi, weights.T, precision="highest")
    return jnp.where(fold == 0, of_both[:, 0], of_both[:, 1])


def _first_widths(state: PosteriorState, phi: jax.Array, fold: jax.Array, known: jax.Array) -> jax.Array:
    """σ²/λ such that all blocks together explain as much as luck: B times the squares of a trace's features, [2, B].

    From each half, since a width that a trace's own choices entered would make its claims biased.
    """
    count = jnp.maximum(segment_count(fold, 2, known, phi.dtype), 1)
    squares = segment_sum(phi**2, fold, 2)
    of_block = segment_sum(squares.T, state.block, len(state.first)).T
    return len(state.first) * of_block / count[:, None]


def _ridge(state: PosteriorState, width: jax.Array) -> jax.Array:
    """Λ of each feature from that of its block: [..., F]. It is 1 in blocks of which nothing was seen: their ŵ is 0."""
    return jnp.where(width > 0, width, 1)[..., state.block]


def _solve_transposed(lower: jax.Array, right: jax.Array) -> jax.Array:
    """L⁻ᵀ b of several at once: [K, F]."""
    solve = functools.partial(jax.scipy.linalg.solve_triangular, lower=True, trans="T")
    solved: jax.Array = jax.vmap(solve)(lower, right)
    return solved


def _factored(rows: jax.Array, ridge: jax.Array) -> tuple[jax.Array, jax.Array]:
    """L with L Lᵀ = G + Λ, and L⁻¹ m, of several at once: [K, F, F] and [K, F].

    m is one more row of the matrix: that of its factor is L⁻¹ m.

    Args:
      rows: G, and m as its last row, [K, F + 1, F].
      ridge: Λ, [K, F].
    """
    numbers = jnp.arange(ridge.shape[1] + 1)
    factor = cholesky(jnp.where(numbers[:, None] == numbers[None, :-1], rows + ridge[:, None], rows))
    return factor[:, :-1], factor[:, -1]


def _learned_misses(
    state: PosteriorState, phi: jax.Array, residual: jax.Array, target: jax.Array, known: jax.Array
) -> PosteriorState:
    """The sums behind ω after a step."""
    n, blocks = jnp.maximum(jnp.sum(known, dtype=target.dtype), 1), len(state.first)
    missed = residual @ phi / n
    luck = (residual**2) @ (phi**2) / n**2
    return state._replace(
        again=MEMORY * state.again + segment_sum(missed * state.missed, state.block, blocks),
        luck=MEMORY * state.luck + segment_sum(luck, state.block, blocks),
        missed=MEMORY * (state.missed + missed),
        left=MEMORY * state.left + jnp.vdot(residual, residual),
        whole=MEMORY * state.whole + jnp.vdot(target, target),
    )


def _moved(width: jax.Array, steps: jax.Array) -> jax.Array:
    """One block's width moved by `STEP`: each block in turn, up and down."""
    turn = steps % (2 * len(width))
    factor = jnp.where(turn % 2 == 0, STEP, 1 / STEP)
    return jnp.where(jnp.arange(len(width)) == turn // 2, width * factor, width)


def _likelier(state: PosteriorState, widths: jax.Array, lower: jax.Array, half: jax.Array) -> jax.Array:
    """The second of two widths [2, B] where its marginal likelihood is larger, else the first.

    ln p(R) = −n/2 ln σ̂² − ½ (ln |G + Λ| − ln |Λ|) + const,    σ̂² = (Σ R² − mᵀ(G + Λ)⁻¹m) / n

    Args:
      state: after the step.
      widths: Λ of each block.
      lower, half: L with L Lᵀ = G + Λ, and L⁻¹ m, of both.
    """
    # Single precision: a hundred-thousandth of the squares is as good as 0.
    noise = jnp.maximum(state.square - jnp.sum(half**2, axis=1), 1e-5 * state.square)
    volume = 2 * jnp.sum(jnp.log(jnp.diagonal(lower, axis1=1, axis2=2)), axis=1)
    volume = volume - jnp.sum(jnp.log(_ridge(state, widths)), axis=1)
    first = state.first[None]
    off = jnp.where(first > 0, jnp.log(safe_divide(widths, first)) / WIDE, 0)
    evidence = -0.5 * (state.seen * jnp.log(jnp.maximum(noise, 1e-30)) + volume + jnp.sum(off**2, axis=1))
    return jnp.where((evidence[1] > evidence[0]) & (state.seen > 0), widths[1], widths[0])
