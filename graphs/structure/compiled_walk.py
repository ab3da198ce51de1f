"""A walk along edges as one compiled loop on the processor: `graphs.structure.edge_order` imports it for many edges."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["on_processor", "walk"]


@contextlib.contextmanager
def on_processor() -> Iterator[bool]:
    """Compute on the processor, with sums in the precision of the weights; False where JAX was told to use none.

    Steps one after another are no work for an accelerator.
    """
    try:
        processor = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        yield False
        return
    with jax.enable_x64(True), jax.default_device(processor):
        yield True


@jax.jit
def walk(
    count: np.int32, senders: jax.Array, receivers: jax.Array, start: jax.Array, weight: jax.Array | None
) -> jax.Array:
    """What each event holds after a walk over the first `count` edges: the greatest sum, or the bits, that reach it."""

    def step(edge: Any, held: Any) -> Any:
        cause, effect = senders[edge], receivers[edge]
        old = held[effect]
        if weight is None:
            new = old | held[cause]
        else:
            far = held[cause] + weight[cause]
            new = jnp.where(far > old, far, old)
        return jax.lax.dynamic_update_index_in_dim(held, new, effect, 0)  # in place; a scatter is no single write

    held: jax.Array = jax.lax.fori_loop(np.int32(0), count, step, start)
    return held
