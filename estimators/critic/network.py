"""The critic's network: one pass over a flat batch gives the value of every prefix of every trace.

For each event e, with x its features, in each layer

    h_e  ←  h_e + φ( h_e, mean of ψ(h) over its causes, h of its agent's previous event, h of its agent's activation,
                     mean of χ(h) over all events of the trace up to and including e, S_e χ(h) )

    z_e  =  a + ρ(last inputs of φ, c)_e + S_e u(h),        V(G≤e) = z_e or sigmoid(z_e)

h starts from the event's own features. Those of progress, c (`features.CLOCKS`), enter only where V is read off, so
what an event adds does not depend on counts, which differ most between teams of different sizes. φ and ρ multiply two
linear maps, one of them through silu, since what an event is worth depends on who did it. S sums over the trace up to
and including e. With it V depends on the whole prefix, parallel siblings included, and each event adds a term of its
own. `a` alone is the value of the empty prefix. Two rules keep S within the range that was trained on, whatever the
length of the traces and the size of the team:

    S_e x  =  Σ_{f ≤ e no spawn} x_f / √L_f  +  min(1, L_s / k_e) Σ_{f ≤ e a spawn} x_f / √L_s

with L_f the number of events of f's type in a trace trained on, L_s that of spawns, and k_e the spawns up to e. So a
plan, made once, counts as much as a thousand messages together. Up to L_s spawns add up; of more, L_s times their mean
counts. Parameters fit any team.

Later events leave V(G≤e) as it is, bit for bit, at one padded shape: edges run forward, and sums are taken in blocks of
fixed places, whose partial sums have earlier terms only.
"""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import dataclasses
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from estimators.critic.features import CLOCKS
from graphs.event_graph import Array, EventType

__all__ = ["BLOCK", "Architecture", "PrefixBatch", "PrefixCritic", "prefix_sum"]

Head = Literal["bernoulli", "value"]
BLOCK = 64
"""Events of a block of `prefix_sum`."""


class PrefixBatch(NamedTuple):
    """Some traces as the network takes them; padded rows are 0 and masked.

    Attributes:
      features: float [E, F], standardised (`estimators.critic.data`).
      kind: int32 [E], type of the event.
      trace: int32 [E], not decreasing over real events; trace ids of the batch, in [0, T).
      mask: bool [E].
      previous: int32 [E], the event before it of the same agent instance; the event itself where there is none.
      birth: int32 [E], the event that activated its agent instance first; the event itself where none is logged.
      senders, receivers: int32 [K], forward edges, receivers in order; padded ones 0 → 0.
      edge_mask: bool [K].
    """

    features: Array
    kind: Array
    trace: Array
    mask: Array
    previous: Array
    birth: Array
    senders: Array
    receivers: Array
    edge_mask: Array


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Sizes of a critic's network, and the constants L.

    Attributes:
      features: F, columns of the input.
      hidden: width of h.
      sums: width of χ and u's input, the columns that are summed over the prefix.
      layers: rounds of message passing.
      counts: L of each type of event, the power of two nearest to its mean number in a trace trained on; 1 or more.
      head: "bernoulli" for rewards in [0, 1], where V is a probability; "value" for any.
    """

    features: int
    hidden: int = 16
    sums: int = 8
    layers: int = 1
    counts: tuple[float, ...] = (1.0,) * len(EventType)
    head: Head = "bernoulli"


def prefix_sum(values: Array, trace: Array, mask: Array) -> jax.Array:
    """Sum of each column over the events of the same trace up to and including each event: [E, C] to [E, C].

    Blocks of `BLOCK` events: within one, a product with a triangular matrix of zeros and ones; between them, a scan
    over blocks that carries the sum of the trace that is open. A later row enters an earlier one's sum times exactly 0.
    """
    num, width = values.shape
    rows = -(-num // BLOCK) * BLOCK
    values = jnp.where(mask[:, None], values, jnp.zeros_like(values))
    values = jnp.pad(values, ((0, rows - num), (0, 0))).reshape(-1, BLOCK, width)
    # Padding joins no trace: its id is one that no event has.
    ids = jnp.pad(jnp.where(mask, trace, -1), (0, rows - num), constant_values=-1).reshape(-1, BLOCK)
    before = jnp.tril(jnp.ones((BLOCK, BLOCK), bool))
    same = (ids[:, :, None] == ids[:, None, :]) & before[None]
    within = jnp.einsum("bij,bjc->bic", same.astype(values.dtype), values, precision=jax.lax.Precision.HIGHEST)

    last = jnp.concatenate([jnp.full(1, -2, ids.dtype), ids[:-1, -1]])  # trace that is open before each block

    def carry(open_: jax.Array, block: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        total, continues = block
        return total + jnp.where(continues, open_, jnp.zeros_like(open_)), open_

    continues = (ids[:, -1] == last) & (ids[:, 0] == last)
    _, opened = jax.lax.scan(carry, jnp.zeros_like(within[0, 0]), (within[:, -1], continues))
    carried = jnp.where((ids == last[:, None])[:, :, None], opened[:, None, :], jnp.zeros_like(within))
    return (within + carried).reshape(rows, width)[:num]


class PrefixCritic(nnx.Module):
    """One member of a critic's ensemble: `PrefixBatch` to the logits (or standardised values) z [E], and a, z of ∅."""

    def __init__(self, sizes: Architecture, rngs: nnx.Rngs) -> None:
        width = sizes.hidden
        joined = 4 * width + 2 * sizes.sums
        self.sizes = sizes
        self.encode = nnx.Linear(sizes.features - len(CLOCKS), width, rngs=rngs)
        self.tell = nnx.List([nnx.Linear(width, width, rngs=rngs) for _ in range(sizes.layers)])
        # Zero at first: sums of thousands of arbitrary numbers are large, and φ squares them.
        none = nnx.initializers.zeros
        self.add = nnx.List(
            [nnx.Linear(width, sizes.sums, kernel_init=none, rngs=rngs) for _ in range(sizes.layers + 1)]
        )
        self.update = nnx.List([nnx.Linear(joined, 2 * width, rngs=rngs) for _ in range(sizes.layers)])
        self.read = nnx.Linear(joined + len(CLOCKS), 2 * width, rngs=rngs)
        self.answer = nnx.Linear(width, 1, use_bias=False, kernel_init=nnx.initializers.zeros, rngs=rngs)
        self.state = nnx.Linear(width, 1, kernel_init=nnx.initializers.zeros, rngs=rngs)
        self.start = nnx.Param(jnp.zeros(()))

    def __call__(self, batch: PrefixBatch) -> tuple[jax.Array, jax.Array]:
        x = jnp.where(batch.mask[:, None], batch.features, jnp.zeros_like(batch.features))
        clocks = np.array(CLOCKS)
        h = nnx.silu(self.encode(jnp.delete(x, clocks, axis=1)))
        fan_in = _in_edges(jnp.ones((batch.senders.shape[0], 1), h.dtype), batch)
        is_spawn = (jnp.asarray(batch.kind) == EventType.SPAWN)[:, None]
        seen = prefix_sum(  # events and spawns so far, [E, 2]
            jnp.concatenate([jnp.ones_like(h[:, :1]), is_spawn.astype(h.dtype)], axis=1), batch.trace, batch.mask
        )
        for tell, add, update in zip(self.tell, self.add[:-1], self.update, strict=True):
            h = h + _product(update(self._inputs(h, tell(h), self._sums(add(h), 0, seen, batch), fan_in, batch)))
        last = jnp.concatenate([self.add[-1](h), self.state(h)], axis=1)
        sums = self._sums(last, 1, seen, batch)
        inputs = jnp.concatenate([self._inputs(h, h, sums[:, :-1], fan_in, batch), x[:, clocks]], axis=1)
        z = self.answer(_product(self.read(inputs))) + sums[:, -1:]
        return self.start[...] + z[:, 0], self.start[...]

    def _sums(self, values: jax.Array, without_mean: int, seen: jax.Array, batch: PrefixBatch) -> jax.Array:
        """Mean and S of each column so far, of the last `without_mean` columns S alone: [E, C] to [E, 2 C − those]."""
        spawns = self.sizes.counts[EventType.SPAWN]
        is_spawn = (jnp.asarray(batch.kind) == EventType.SPAWN)[:, None]
        scaled = values / jnp.sqrt(jnp.array(self.sizes.counts, values.dtype))[batch.kind][:, None]
        plain = values[:, : values.shape[1] - without_mean]
        parts = [plain, jnp.where(is_spawn, 0, scaled), jnp.where(is_spawn, scaled, 0)]
        total = prefix_sum(jnp.concatenate(parts, axis=1), batch.trace, batch.mask)
        mean, rest, spawned = jnp.split(total, [plain.shape[1], plain.shape[1] + values.shape[1]], axis=1)
        share = spawns / jnp.maximum(seen[:, 1:], spawns)
        return jnp.concatenate([mean / jnp.maximum(seen[:, :1], 1), rest + share * spawned], axis=1)

    def _inputs(
        self, h: jax.Array, messages: jax.Array, sums: jax.Array, fan_in: jax.Array, batch: PrefixBatch
    ) -> jax.Array:
        """What an update looks at: [E, joined]."""
        place = jnp.arange(h.shape[0], dtype=jnp.int32)
        causes = _in_edges(messages[batch.senders], batch) / jnp.maximum(fan_in, 1)
        others = [
            jnp.where((source != place)[:, None], h[source], jnp.zeros_like(h))
            for source in (batch.previous, batch.birth)
        ]
        return jnp.concatenate([h, causes, *others, sums], axis=1)


def _product(x: jax.Array) -> jax.Array:
    """silu of the first half of the columns times the second half."""
    gate, value = jnp.split(x, 2, axis=1)
    return nnx.silu(gate) * value


def _in_edges(values: jax.Array, batch: PrefixBatch) -> jax.Array:
    """Sum over the edges into each event: [K, C] to [E, C]."""
    values = jnp.where(batch.edge_mask[:, None], values, jnp.zeros_like(values))
    return jax.ops.segment_sum(values, batch.receivers, num_segments=batch.mask.shape[0])
