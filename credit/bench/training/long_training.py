"""Events to 90 % of the way by length and luck: one compiled loop for all seeds, with exact returns.

A team of tabular policies takes D decisions of two choices each; a step has groups of four traces. Learning rates are
tried on other seeds, from small to large by factors of two, until two in a row are worse than the best. Steps are

    sgd        the rate times the mean over traces of advantages times scores, s
    adam       Adam on s
    natural    the rate times s / (p (1 − p) + DAMPING): p (1 − p) is the Fisher information of a logit whose choice has
               chance p, and decisions are independent (Kakade 2001)

    rloo       the return against the mean of the rest of the group: shared credit
    siblings   at three decisions a trace, one re-run from each: R − R' on the choice of both; the re-runs are paid
    control    `control_advantage` with the claims of a critic of the last twenty steps, and β of earlier ones
    posterior  `estimators.posterior_advantage`
    exact      the exact difference that each choice makes to J: what no log holds

Legend: S seeds, n traces, K kinds, D decisions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.training.long_tasks import LongTask, Outcome, draw_long_task, expected_return, outcomes
from credit.bench.training.online_coefficients import fresh_coefficients, learn_coefficients, solved_coefficients
from credit.bench.training.rollouts import decision_graph
from credit.bench.training.training_signals import centred_claim
from estimators.baselines.shared import rloo
from estimators.composition.control import control_advantage
from estimators.critic.repaid_posterior import choice_features, fresh_posterior, posterior_advantage
from graphs.errors import CreditError

__all__ = ["OPTIMIZERS", "RATES", "SIGNALS", "LongCell", "Optimizer", "long_cell", "steps_to_90"]

GROUPS, GROUP_SIZE, AGENTS = 4, 4, 8
"""Groups of a step unless others are asked for, traces of a group, and agents of the team."""

Optimizer = Literal["sgd", "adam", "natural"]
OPTIMIZERS: tuple[Optimizer, ...] = get_args(Optimizer)

DAMPING = 1 / 32
"""Added to the Fisher information, for every signal alike: a settled decision moves at most eight times as far."""

REPLAYED = 3
"""Decisions of a trace that `siblings` re-runs from."""

RATES = {
    "sgd": tuple(2.0**k for k in range(-1, 11)),
    "adam": tuple(0.05 * 2.0**k for k in range(-2, 8)),
    "natural": tuple(2.0**k for k in range(-4, 9)),
}
"""Learning rates of each optimizer. The best ones measured are none of the first or last."""

CHUNK, LANES = 10, 8
"""Steps and seeds of one call of the compiled loop, which is compiled once for any number of seeds."""


class LongCell(NamedTuple):
    """One signal on one world.

    Attributes:
      rate: the learning rate of the least median events on the tuning seeds.
      events: float64 [S], to 90 % of the way, evidence included; infinite where the budget ended first.
    """

    rate: float
    events: np.ndarray


class _Drawn(NamedTuple):
    """A step: kind int [n], choice int [n, D], x = choice − chance [n, D], reward [n], chance [K, D], logits [K, D]."""

    task: LongTask
    kind: jax.Array
    choice: jax.Array
    x: jax.Array
    reward: jax.Array
    chance: jax.Array
    key: jax.Array

    def of_decisions(self, events: jax.Array) -> jax.Array:
        """Numbers of events, [n D], as [n, D]."""
        return events.reshape(self.choice.shape)

    def graph(self) -> Any:
        """The step as an event graph: an event for each trace and decision."""
        n, size = self.choice.shape
        agents = tuple(d % AGENTS for d in range(size))
        return decision_graph(agents, n // GROUP_SIZE, GROUP_SIZE, jnp.ones(n * size, bool), None)


def _draw(task: LongTask, chance: jax.Array, groups: int, key: jax.Array) -> _Drawn:
    choose, luck, more = jax.random.split(key, 3)
    n = groups * GROUP_SIZE
    kind = jnp.repeat(jnp.arange(groups, dtype=jnp.int32) % len(chance), GROUP_SIZE)
    choice = (jax.random.uniform(choose, (n, chance.shape[1])) < chance[kind]).astype(jnp.int32)
    return _Drawn(
        task, kind, choice, choice.astype(chance.dtype) - chance[kind], _reward(task, kind, choice, luck), chance, more
    )


def _reward(task: LongTask, kind: jax.Array, choice: jax.Array, key: jax.Array) -> jax.Array:
    success, normal = jax.random.split(key)
    return outcomes(
        task, kind, choice, (jax.random.uniform(success, kind.shape), jax.random.normal(normal, kind.shape))
    )


def _rloo(drawn: _Drawn, state: Any) -> tuple[jax.Array, Any, float]:
    credit = rloo(drawn.graph(), drawn.reward)
    return drawn.of_decisions(credit.advantage) * drawn.x, state, 0.0


def _siblings(drawn: _Drawn, state: Any) -> tuple[jax.Array, Any, jax.Array]:
    """The alternative's score enters with the opposite sign: both runs are trained on."""
    n, size = drawn.choice.shape
    where, choose, luck = jax.random.split(drawn.key, 3)
    start = jax.random.randint(where, (REPLAYED, n), 0, size)
    again = jax.random.uniform(choose, (REPLAYED, n, size)) < drawn.chance[drawn.kind][None]
    later = jnp.arange(size)[None, None] >= start[..., None]
    choice = jnp.where(later, again.astype(jnp.int32), drawn.choice[None])
    kind = jnp.broadcast_to(drawn.kind[None], start.shape)
    difference = drawn.reward[None] - _reward(drawn.task, kind, choice, luck)
    here = jnp.arange(size)[None, None] == start[..., None]
    change = jnp.where(here, difference[..., None] * (drawn.choice[None] - choice).astype(drawn.x.dtype) / 2, 0)
    return change.sum(axis=0), state, jnp.sum(size - start).astype(jnp.float32)


def _control(drawn: _Drawn, state: Any) -> tuple[jax.Array, Any, float]:
    """A critic by ridge regression on choices, its sums forgetting 5 % a step, as `online_critic` has it."""
    gram, moment, fits = state
    graph, size = drawn.graph(), drawn.choice.shape[1]
    kinds = len(moment)
    factor = jnp.linalg.cholesky(gram + 3 * jnp.eye(size + 1)[None] * jnp.ones((kinds, 1, 1)))
    weights = jax.scipy.linalg.cho_solve((factor, True), moment[..., None])[..., 0]
    claims = drawn.x * weights[drawn.kind, 1:]
    claim = centred_claim(graph, claims.ravel(), "critic", jnp.ones(claims.size, bool), own_outcome=False)
    composed = control_advantage(graph, drawn.reward, [claim], beta=solved_coefficients(fits))
    seen = jnp.concatenate([jnp.ones((len(drawn.kind), 1)), drawn.choice.astype(drawn.x.dtype) - 0.5], axis=1)
    by_kind = jnp.where((drawn.kind[None] == jnp.arange(kinds)[:, None])[..., None], seen[None], 0)
    gram = 0.95 * gram + jnp.einsum("knf,ng->kfg", by_kind, seen)
    moment = 0.95 * moment + jnp.einsum("knf,n->kf", by_kind, drawn.reward)
    fits = learn_coefficients(fits, drawn, composed)
    return drawn.of_decisions(composed.credit.advantage) * drawn.x, (gram, moment, fits), 0.0


def _posterior(drawn: _Drawn, state: Any) -> tuple[jax.Array, Any, float]:
    """Tasks of several kinds have a feature for the decision, and one for kind and decision, in two blocks."""
    kinds, size = drawn.chance.shape
    chance = drawn.chance[drawn.kind].ravel()
    place = jnp.broadcast_to(jnp.arange(size, dtype=jnp.int32)[None], drawn.choice.shape).ravel()
    policy = jnp.stack([1 - chance, chance], axis=1)
    columns, values = choice_features(place, drawn.choice.ravel(), policy)
    if kinds > 1:
        of_kind = size * (1 + jnp.repeat(drawn.kind, size))[:, None] + columns
        columns, values = jnp.concatenate([columns, of_kind], axis=1), jnp.concatenate([values, values], axis=1)
    credit, state = posterior_advantage(drawn.graph(), drawn.reward, state, columns, values)
    return drawn.of_decisions(credit.advantage) * drawn.x, state, 0.0


def _exact(drawn: _Drawn, state: Any) -> tuple[jax.Array, Any, float]:
    kinds = len(drawn.chance)
    slope = kinds * jax.grad(functools.partial(expected_return, drawn.task))(drawn.chance)
    return drawn.x**2 * slope[drawn.kind], state, 0.0


def _fresh_control(kinds: int, size: int) -> Any:
    return jnp.zeros((kinds, size + 1, size + 1)), jnp.zeros((kinds, size + 1)), fresh_coefficients(1)


def _fresh_posterior(kinds: int, size: int) -> Any:
    block = np.repeat([0, 1], [size, kinds * size]) if kinds > 1 else None
    return fresh_posterior(size * (1 + kinds) if kinds > 1 else size, block=block)


SIGNALS: dict[str, Callable[[_Drawn, Any], tuple[jax.Array, Any, Any]]] = {
    "rloo": _rloo,
    "siblings": _siblings,
    "control": _control,
    "posterior": _posterior,
    "exact": _exact,
}
"""Each gives the advantage times the score of each decision [n, D], its next state, and the events of its runs."""

STARTS: dict[str, Callable[[int, int], Any]] = {"control": _fresh_control, "posterior": _fresh_posterior}
"""The first state of signals that keep one, from K and D."""


@functools.cache
def _compiled(signal: str, kinds: int, size: int, groups: int) -> Callable[..., Any]:
    def step(carry: Any, key: jax.Array, task: LongTask, rate: jax.Array, optimizer: jax.Array) -> Any:
        logits, first, second, state, count, spent = carry
        chance = jax.nn.sigmoid(logits)
        drawn = _draw(task, chance, groups, key)
        scored, state, cost = SIGNALS[signal](drawn, state)
        slope = jax.ops.segment_sum(scored, drawn.kind, kinds) / len(drawn.kind)
        first, second, count = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2, count + 1
        even = (first / (1 - 0.9**count)) / (jnp.sqrt(second / (1 - 0.999**count)) + 1e-8)
        moves = (slope, even, slope / (chance * (1 - chance) + DAMPING))
        # No logit leaves ±30, where single precision has no smaller chance to give.
        logits = jnp.clip(logits + rate * jnp.stack(moves)[optimizer], -30, 30)
        spent = spent + drawn.choice.size + cost
        share = (expected_return(task, jax.nn.sigmoid(logits)) - task.first) / (task.best - task.first)
        return (logits, first, second, state, count, spent), (share, spent)

    each = jax.vmap(step, in_axes=(0, 0, 0, None, None))

    @jax.jit
    def chunk(task: LongTask, carry: Any, keys: jax.Array, rate: jax.Array, optimizer: jax.Array) -> Any:
        return jax.lax.scan(lambda c, k: each(c, k, task, rate, optimizer), carry, keys)

    return chunk


def steps_to_90(
    outcome: Outcome,
    decisions: int,
    luck: float,
    signal: str,
    seeds: Sequence[int],
    rate: float,
    optimizer: Optimizer,
    budget: float,
    groups: int = GROUPS,
) -> np.ndarray:
    """Events of each seed before the first policy with 90 % of the way; infinite where the budget ended first: [S].

    Args:
      outcome, decisions, luck: of the tasks; each seed is another one.
      signal: one of `SIGNALS`.
      seeds: of tasks and draws.
      rate: the learning rate.
      optimizer: one of `OPTIMIZERS`.
      budget: events of a seed.
      groups: of four traces each, in a step.
    """
    drawn = {seed: draw_long_task(outcome, decisions, luck, seed) for seed in seeds}
    kinds = drawn[seeds[0]].weights.shape[0]
    run = _compiled(signal, kinds, decisions, groups)
    start = STARTS[signal](kinds, decisions) if signal in STARTS else None
    fresh = (*(jnp.zeros((kinds, decisions)) for _ in range(3)), start, 0.0, 0.0)
    found = []
    for first in range(0, len(seeds), LANES):
        lanes = [*seeds[first : first + LANES]]
        lanes += lanes[:1] * (LANES - len(lanes))  # where there are fewer, the first runs again
        task = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *map(drawn.get, lanes))
        carry = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * LANES), fresh)
        keys = jax.vmap(lambda s: jax.random.fold_in(jax.random.key(0), s))(jnp.asarray(lanes))
        reached, least, part = np.full(LANES, np.inf), 0.0, 0
        while least < budget and np.isinf(reached).any():
            now = jax.vmap(lambda k, part=part: jax.random.split(jax.random.fold_in(k, part), CHUNK), out_axes=1)(keys)
            # JAX's check of keys counts the turn of the axes as a use of these: as new keys they are checked below.
            now = jax.random.wrap_key_data(jnp.asarray(np.asarray(jax.random.key_data(now))))
            carry, (share, spent) = run(task, carry, now, rate, OPTIMIZERS.index(optimizer))
            share, spent, part = np.asarray(share).T, np.asarray(spent).T, part + 1
            for lane in np.flatnonzero(np.isinf(reached) & (share >= 0.9).any(axis=1)):
                reached[lane] = spent[lane, np.argmax(share[lane] >= 0.9)]
            least = spent[:, -1].min()
        found.append(np.where(reached <= budget, reached, np.inf))
    return np.concatenate(found)[: len(seeds)]


def long_cell(
    outcome: Outcome,
    decisions: int,
    luck: float,
    signal: str,
    *,
    seeds: Sequence[int],
    tuning: Sequence[int],
    optimizer: Optimizer = "sgd",
    budget: float,
    groups: int = GROUPS,
    rates: Sequence[float] | None = None,
) -> LongCell:
    """Events to 90 % of one signal on tasks of one world, at the learning rate that was best on other seeds.

    Args:
      outcome, decisions, luck: of the tasks.
      signal: one of `SIGNALS`.
      seeds: of the result.
      tuning: seeds of the sweep, none of `seeds`.
      optimizer: one of `OPTIMIZERS`.
      budget: events of a seed. In the sweep a rate is left once it needs twice the events of the best so far.
      groups: of four traces each, in a step.
      rates: to try, in order; default those of `RATES`. One is taken as it is.

    Raises:
      CreditError: there is no such signal, or a seed is in both.
    """
    if signal not in SIGNALS:
        raise CreditError(f"no signal {signal!r}; expected one of {', '.join(SIGNALS)}")
    if set(seeds) & set(tuning):
        raise CreditError(f"seeds and tuning share {sorted(set(seeds) & set(tuning))}; expected other seeds")
    tried = rates or RATES[optimizer]
    best, least, worse = tried[0], math.inf, 0
    for rate in tried if len(tried) > 1 else ():
        found = steps_to_90(outcome, decisions, luck, signal, tuning, rate, optimizer, min(budget, 2 * least), groups)
        median = float(np.median(found))
        worse = 0 if median < least else worse + math.isfinite(least)
        best, least = (rate, median) if median < least else (best, least)
        if worse == 2:  # two larger rates in a row are worse
            break
    return LongCell(best, steps_to_90(outcome, decisions, luck, signal, seeds, best, optimizer, budget, groups))
