"""A decoder-only transformer of a few thousand parameters, in flax.

h = E[token] + p;   h ← h + attention(norm h);   h ← h + W₂ gelu(W₁ norm h);   logits = W₃ norm h
"""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

__all__ = ["TinyTransformer"]


class _Layer(nnx.Module):
    """Causal attention, then an MLP, each added to its input."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs) -> None:
        self.heads = heads
        self.norms = nnx.List([nnx.LayerNorm(width, rngs=rngs) for _ in range(2)])
        self.into = nnx.Linear(width, 3 * width, use_bias=False, rngs=rngs)
        self.out = nnx.Linear(width, width, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(width, 4 * width, rngs=rngs)
        self.down = nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, h: jax.Array) -> jax.Array:
        n, length, width = h.shape
        q, k, v = jnp.moveaxis(self.into(self.norms[0](h)).reshape(n, length, 3, self.heads, -1), 2, 0)
        score = jnp.einsum("nqhd,nkhd->nhqk", q, k) / (width // self.heads) ** 0.5
        past = np.tril(np.ones((1, 1, length, length), bool))
        weight = jax.nn.softmax(jnp.where(past, score, -1e9))
        h = h + self.out(jnp.einsum("nhqk,nkhd->nqhd", weight, v).reshape(n, length, width))
        return h + jnp.asarray(self.down(jax.nn.gelu(self.up(self.norms[1](h)))))


class TinyTransformer(nnx.Module):
    """Tokens to logits; the logits of a position do not depend on later tokens.

    Args:
      vocabulary: number of ids.
      length: the longest sequence.
      width, heads, layers: sizes.
      rngs: of the initial parameters.
    """

    def __init__(self, vocabulary: int, length: int, *, width: int, heads: int, layers: int, rngs: nnx.Rngs) -> None:
        self.tokens = nnx.Embed(vocabulary, width, rngs=rngs)
        self.places = nnx.Embed(length, width, rngs=rngs)
        self.layers = nnx.List([_Layer(width, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.out = nnx.Linear(width, vocabulary, use_bias=False, rngs=rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Logits float32 [n, L, V] of the token after each of the tokens int [n, L]."""
        h = self.tokens(tokens) + self.places(jnp.arange(tokens.shape[1]))[None]
        for layer in self.layers:
            h = layer(h)
        return jnp.asarray(self.out(self.norm(h)))
