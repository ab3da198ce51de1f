"""Draws of a world's traces, and new draws from a prefix with one choice replaced.

Kernels are written for one trace and mapped over traces. Numbers are drawn and compared in float32 whatever JAX's
default precision, so that a key draws the same trace in both.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from graphs.event_graph import Array
from graphs.worlds.team import Episodes, Layout, Outcome, Policy, decision_order, decisions_taken, final_score

__all__ = ["rerun", "sample"]

# Randomness: the key of a purpose is fold_in(fold_in(fold_in(key, family), number), purpose), so that a new purpose
# changes no draw of the others. Purposes are drawn together because each separate draw takes XLA long to compile.
_TRACE, _GREEDY, _RERUN = range(3)
_OUTCOME, _SIZE, _QUALITY, _CLOCK, _TALK, _RECIPIENT, _TOKENS = range(7)


def _member(key: jax.Array, family: int, number: Array) -> jax.Array:
    """The key of one trace, of one group's greedy run, or of one rerun."""
    return jax.random.fold_in(jax.random.fold_in(key, family), number)


def _uniforms(layout: Layout, key: jax.Array) -> jax.Array:
    """A number in [0, 1) for each purpose and decision: float32 [purposes, S]."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(7))
    return jax.vmap(lambda k: jax.random.uniform(k, (layout.decisions,), jnp.float32))(keys)


@functools.partial(jax.jit, static_argnums=0)
def sample(layout: Layout, policy: Policy, outcome: Outcome, key: jax.Array, traces: jax.Array) -> Episodes:
    """Draw the traces with these numbers, int32 [n]; each depends on the key and its own number only."""
    policy = Policy(*map(jnp.float32, policy))
    return jax.vmap(functools.partial(_episode, layout, policy, outcome, key))(traces)


def _episode(layout: Layout, policy: Policy, outcome: Outcome, key: jax.Array, trace: Array) -> Episodes:
    member = _member(key, _TRACE, trace)
    uniform = _uniforms(layout, member)
    group = trace // layout.group_size
    task = group % policy.good.shape[0]
    # The last boundary is left out: the sizes' probabilities may sum to a little less than 1.
    size = 1 + jnp.sum(uniform[_SIZE, 0] >= jnp.cumsum(policy.size)[:-1], dtype=jnp.int32)
    taken = decisions_taken(layout, size)
    plan = uniform[_QUALITY, 0] < policy.good[task, 0, 0]
    good = (uniform[_QUALITY] < policy.good[task, plan.astype(jnp.int32)]) & taken
    score = final_score(layout, size, good)
    return Episodes(
        trace=trace,
        group=group,
        task=task,
        size=size,
        good=good,
        active=taken,
        tick=_ticks(layout, uniform[_CLOCK], taken),
        recipient=_recipients(layout, policy, uniform, size, taken),
        tokens=20 + jnp.floor(380 * uniform[_TOKENS]).astype(jnp.int32),
        score=score,
        reward=outcome.draw(jax.random.fold_in(member, _OUTCOME), score),
        greedy_reward=_greedy_reward(layout, policy, outcome, _member(key, _GREEDY, group), task),
    )


def _ticks(layout: Layout, uniform: Array, taken: Array) -> jax.Array:
    """When decisions are taken: workers run in parallel, a call takes 4 to 255 units, and the lead waits for all."""
    shape = (layout.workers, layout.calls)
    durations = 4 + jnp.floor(252 * uniform[1:-2].reshape(shape)).astype(jnp.int32)
    start = 1 + layout.workers + jnp.cumsum(durations, axis=1, dtype=jnp.int32)
    worker = jnp.broadcast_to(jnp.arange(1, 1 + layout.workers, dtype=jnp.int32)[:, None], shape)
    calls = (start * layout.unit + worker).reshape(-1)
    last = jnp.max(jnp.where(taken[1:-2], start.reshape(-1), 0))
    lead = (last + jnp.array([4, 8], jnp.int32)) * layout.unit
    return jnp.concatenate([jnp.zeros(1, jnp.int32), calls, lead])


def _recipients(layout: Layout, policy: Policy, uniform: Array, size: Array, taken: Array) -> jax.Array:
    """The recipient of each call's message: another worker, uniformly, or -1 for none."""
    slot = jnp.arange(layout.decisions, dtype=jnp.int32)
    worker, call = (slot - 1) // layout.calls, (slot - 1) % layout.calls
    others = jnp.maximum(size - 1, 1)
    step = 1 + jnp.minimum((uniform[_RECIPIENT] * others.astype(jnp.float32)).astype(jnp.int32), others - 1)
    inner = (slot > 0) & (slot < layout.decisions - 2) & (call < layout.calls - 1)
    sends = taken & inner & (size > 1) & (uniform[_TALK] < policy.chatter)
    return jnp.where(sends, (worker + step) % size, -1)


def _greedy_reward(layout: Layout, policy: Policy, outcome: Outcome, key: jax.Array, task: Array) -> jax.Array:
    size = 1 + jnp.argmax(policy.size).astype(jnp.int32)
    plan = (policy.good[task, 0, 0] >= 0.5).astype(jnp.int32)
    good = (policy.good[task, plan] >= 0.5) & decisions_taken(layout, size)
    return outcome.draw(jax.random.fold_in(key, _OUTCOME), final_score(layout, size, good))


@functools.partial(jax.jit, static_argnums=0)
def rerun(
    layout: Layout,
    policy: Policy,
    outcome: Outcome,
    key: jax.Array,
    episode: Episodes,
    size: jax.Array,
    t: jax.Array,
    replacement: jax.Array,
    runs: jax.Array,
) -> jax.Array:
    """Outcomes of one trace with the choice at action t replaced and later ones drawn anew: float32 [runs].

    Args:
      layout, policy, outcome: of the world.
      key: of these runs.
      episode: the trace, a row of `Episodes`.
      size: int32 [], its team size, as replaced.
      t: int32 [], number of the action in log order.
      replacement: bool [], quality that the action now has.
      runs: int32 [n], numbers of the runs.
    """
    policy = Policy(*map(jnp.float32, policy))
    order = decision_order(episode)
    rank = jnp.zeros_like(order).at[order].set(jnp.arange(layout.decisions, dtype=order.dtype))
    kept, replaced = episode.active & (rank < t), jnp.arange(layout.decisions, dtype=order.dtype) == order[t]
    plan = jnp.where(t == 0, replacement, episode.good[0]).astype(jnp.int32)
    probability = policy.good[episode.task, plan]

    def again(i: Array) -> jax.Array:
        member = _member(key, _RERUN, i)
        uniform = jax.random.uniform(jax.random.fold_in(member, _QUALITY), (layout.decisions,), jnp.float32)
        good = jnp.where(kept, episode.good, jnp.where(replaced, replacement, uniform < probability))
        score = final_score(layout, size, good & decisions_taken(layout, size))
        return outcome.draw(jax.random.fold_in(member, _OUTCOME), score)

    return jax.vmap(again)(runs)
