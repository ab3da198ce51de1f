"""The critic's network: one pass over a flat batch gives the value of every prefix of every trace.

For each event e, with x its features, in each layer

    h_e  ←  h_e + φ( h_e, mean of ψ(h) over its causes, h of its agent's previous event, h of its agent's activation,
                     mean and sum of χ(h) over all events of the trace up to and including e )

    z_e  =  a + ρ(last inputs of φ)_e + Σ_{f ≤ e of the trace} u(h_f) / √L,        V(G≤e) = z_e or sigmoid(z_e)

The sums make V a function of the whole prefix, parallel siblings included; the last one lets each event state what it
adds. `a` alone is the value of the empty prefix. L is a constant of the order of the length of a
trace, so that sums are of order one. Nothing depends on the number of agents or events: parameters fit any team.

Nothing later can reach V(G≤e), not even by rounding: edges run forward, and the sums are taken in blocks of fixed place
whose partial sums contain earlier terms only, so that at one padded shape later events leave V(G≤e) as it is bit for
bit.
"""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import dataclasses
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from graphs.event_graph import Array

__all__ = ["BLOCK", "Architecture", "PrefixBatch", "PrefixCritic", "prefix_sum"]

Head = Literal["bernoulli", "value"]
BLOCK = 64
"""Events of a block of `prefix_sum`."""


class PrefixBatch(NamedTuple):
    """Some traces as the network takes them; padded rows are 0 and masked.

    Attributes:
      features: float [E, F], standardised (`estimators.critic.data`).
      trace: int32 [E], not decreasing over real events; trace ids of the batch, in [0, T).
      mask: bool [E].
      previous, birth: int32 [E], as in `estimators.critic.features.Relations`.
      senders, receivers: int32 [K], forward edges, receivers in order; padded ones 0 → 0.
      edge_mask: bool [K].
    """

    features: Array
    trace: Array
    mask: Array
    previous: Array
    birth: Array
    senders: Array
    receivers: Array
    edge_mask: Array


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Sizes of a critic's network, and the constant L.

    Attributes:
      features: F, columns of the input.
      hidden: width of h.
      sums: width of χ and u's input, the columns that are summed over the prefix.
      layers: rounds of message passing.
      length: L, the power of two nearest to the mean number of events of a trace trained on.
      head: "bernoulli" for rewards in [0, 1], where V is a probability; "value" for any.
    """

    features: int
    hidden: int = 16
    sums: int = 8
    layers: int = 1
    length: float = 1.0
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
        self.encode = nnx.Linear(sizes.features, width, rngs=rngs)
        self.tell = nnx.List([nnx.Linear(width, width, rngs=rngs) for _ in range(sizes.layers)])
        self.add = nnx.List([nnx.Linear(width, sizes.sums, rngs=rngs) for _ in range(sizes.layers + 1)])
        self.update = nnx.List([nnx.Linear(joined, width, rngs=rngs) for _ in range(sizes.layers)])
        self.read = nnx.Linear(joined, width, rngs=rngs)
        self.answer = nnx.Linear(width, 1, use_bias=False, kernel_init=nnx.initializers.zeros, rngs=rngs)
        self.state = nnx.Linear(width, 1, kernel_init=nnx.initializers.zeros, rngs=rngs)
        self.start = nnx.Param(jnp.zeros(()))

    def __call__(self, batch: PrefixBatch) -> tuple[jax.Array, jax.Array]:
        x = jnp.where(batch.mask[:, None], batch.features, jnp.zeros_like(batch.features))
        h = nnx.silu(self.encode(x))
        fan_in = _in_edges(jnp.ones((batch.senders.shape[0], 1), h.dtype), batch)
        seen = prefix_sum(jnp.ones((h.shape[0], 1), h.dtype), batch.trace, batch.mask)
        for tell, add, update in zip(self.tell, self.add[:-1], self.update, strict=True):
            h = h + nnx.silu(update(self._inputs(h, tell(h), add(h), fan_in, seen, batch)))
        inputs = self._inputs(h, h, self.add[-1](h), fan_in, seen, batch)
        stated = prefix_sum(self.state(h), batch.trace, batch.mask)
        z = self.answer(nnx.silu(self.read(inputs)))[:, 0] + stated[:, 0] / jnp.sqrt(self.sizes.length)
        return self.start[...] + z, self.start[...]

    def _inputs(
        self, h: jax.Array, told: jax.Array, added: jax.Array, fan_in: jax.Array, seen: jax.Array, batch: PrefixBatch
    ) -> jax.Array:
        """What an update looks at: [E, joined]."""
        place = jnp.arange(h.shape[0])
        heard = _in_edges(told[batch.senders], batch) / jnp.maximum(fan_in, 1)
        others = [
            jnp.where((source != place)[:, None], h[source], jnp.zeros_like(h))
            for source in (batch.previous, batch.birth)
        ]
        total = prefix_sum(added, batch.trace, batch.mask)
        sums = [total / jnp.maximum(seen, 1), total / jnp.sqrt(self.sizes.length)]
        return jnp.concatenate([h, heard, *others, *sums], axis=1)


def _in_edges(values: jax.Array, batch: PrefixBatch) -> jax.Array:
    """Sum over the edges into each event: [K, C] to [E, C]."""
    values = jnp.where(batch.edge_mask[:, None], values, jnp.zeros_like(values))
    return jax.ops.segment_sum(values, batch.receivers, num_segments=batch.mask.shape[0])
