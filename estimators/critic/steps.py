"""A step of training and the loss that stops it, compiled for one device, or for several with whole traces on each.

On D devices a batch is cut into D parts of whole traces, about as many events in each. Every device adds up the loss
and the slope of its part, these are summed over the devices, and all make the same update. So a fit takes the same
batches on any number of devices, and its numbers differ in the order of additions alone.
"""

from __future__ import annotations

import estimators.critic.extra  # isort: skip  # noqa: F401

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from estimators.critic.data import Batch, CriticData, Room, in_batches, pack, room
from estimators.critic.network import Architecture
from estimators.critic.objective import ensemble_loss, member_loss
from graphs.event_graph import Array

__all__ = ["State", "Steps", "compiled_steps", "cut_batch", "device_mesh"]

AXIS = "traces"


class State(NamedTuple):
    """The state of training, and the best parameters so far."""

    parameters: Any
    slow: Any
    optimiser: Any
    best: Any


class Steps(NamedTuple):
    """The compiled functions of training, shared by many fits.

    Attributes:
      optimiser: of the parameters.
      step: (state, batch, weights [M, B], learning rate) to the next state and the mean loss.
      judge: (parameters, batch) to the summed loss of the ensemble's mean.
      mesh: the devices; None for one.
    """

    optimiser: optax.GradientTransformation
    step: Callable[[State, Batch, Array, Array], tuple[State, jax.Array]]
    judge: Callable[[Any, Batch], jax.Array]
    mesh: Mesh | None

    def batches(self, corpus: CriticData, traces: np.ndarray, to: Room) -> Iterator[tuple[Batch, int]]:
        """Batches of at most the size `to`, in the order given, where the step takes them; and their traces."""
        for chosen in in_batches(corpus, traces, to):
            if self.mesh is None:
                yield pack(corpus, chosen, to), len(chosen)
            else:
                yield _spread(corpus, chosen, to, self.mesh), len(chosen)

    def everywhere(self, tree: Any) -> Any:
        """Arrays on every device."""
        return tree if self.mesh is None else jax.device_put(tree, NamedSharding(self.mesh, _spec()))

    def on_one(self, tree: Any) -> Any:
        """Arrays as they are without further devices."""
        return tree if self.mesh is None else jax.tree.map(lambda x: jnp.asarray(np.asarray(x)), tree)


def device_mesh(devices: Sequence[jax.Device] | None) -> Mesh | None:
    """The devices to train on; None for one."""
    return Mesh(np.array(devices), (AXIS,)) if devices is not None and len(devices) > 1 else None


@functools.lru_cache(maxsize=8)
def compiled_steps(sizes: Architecture, decay: float, lambda_: float, slow: float, mesh: Mesh | None) -> Steps:
    """The optimiser, a step of training at a rate that is an argument, and the loss that stops training."""
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1.0, weight_decay=decay))

    def total(tree: Any) -> Any:
        return tree if mesh is None else jax.lax.psum(tree, AXIS)  # type: ignore[no-untyped-call]

    def one(
        own: Any, past: Any, memory: Any, batch: Batch, weight: Array, rate: Array
    ) -> tuple[Any, Any, Any, jax.Array]:
        traces = total(jnp.asarray(batch.trace_mask).sum(dtype=jnp.float32))
        loss, slope = total(
            jax.value_and_grad(lambda p: member_loss(sizes, p, past, batch, weight, lambda_) / traces)(own)
        )
        with jax.numpy_dtype_promotion("standard"):  # Adam of optax raises a float to an integer count of steps
            change, memory = optimiser.update(slope, memory, own)
        own = optax.apply_updates(own, jax.tree.map(lambda x: rate * x, change))
        return own, optax.incremental_update(own, past, 1 - slow), memory, loss

    def step(state: State, batch: Batch, weight: Array, rate: Array) -> tuple[State, jax.Array]:
        own, past, memory, loss = jax.vmap(one, in_axes=(0, 0, 0, None, 0, None))(
            state.parameters, state.slow, state.optimiser, batch, weight, rate
        )
        return State(own, past, memory, state.best), loss.mean()

    judge = ensemble_loss(sizes)
    if mesh is None:
        return Steps(optimiser, jax.jit(step), judge, None)

    def part_of_step(state: State, batch: Batch, weight: Array, rate: Array) -> tuple[State, jax.Array]:
        return step(state, _own(batch), weight[:, 0], rate)

    def part_of_judge(parameters: Any, batch: Batch) -> jax.Array:
        return jnp.asarray(total(judge(parameters, _own(batch))))

    whole, part, of_members = _spec(), _spec(AXIS), _spec(None, AXIS)
    over = functools.partial(jax.shard_map, mesh=mesh, out_specs=whole, check_vma=False)
    return Steps(
        optimiser,
        jax.jit(over(part_of_step, in_specs=(whole, part, of_members, whole))),
        jax.jit(over(part_of_judge, in_specs=(whole, part))),
        mesh,
    )


def _spread(corpus: CriticData, chosen: np.ndarray, to: Room, mesh: Mesh) -> Batch:
    """A batch whose arrays have a leading axis D, whole traces in each part, where its device is."""
    size = room(corpus, -(-to.events // mesh.size) + int(corpus.lengths.max()))
    parts = [pack(corpus, part, size) for part in cut_batch(corpus, chosen, mesh.size)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *parts)
    placed: Batch = jax.device_put(stacked, NamedSharding(mesh, _spec(AXIS)))
    return placed


def cut_batch(corpus: CriticData, chosen: np.ndarray, parts: int) -> list[np.ndarray]:
    """The traces of a batch in order, in `parts` parts that exceed an even share of its events by a trace at most."""
    lengths = corpus.lengths[chosen]
    middle = np.cumsum(lengths) - lengths / 2
    return np.split(chosen, np.searchsorted(middle, lengths.sum() * np.arange(1, parts) / parts))


def _own(batch: Batch) -> Batch:
    own: Batch = jax.tree.map(lambda leaf: leaf[0], batch)
    return own


def _spec(*axes: str | None) -> PartitionSpec:
    return PartitionSpec(*axes)  # type: ignore[no-untyped-call]
