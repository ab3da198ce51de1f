"""Arrays between hosts and their devices, also where several processes hold parts of one array."""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph

__all__ = ["AXIS", "expect_one_batch", "laid", "on_host"]

AXIS = "groups"


def laid(arrays: Any, mesh: Mesh) -> Any:
    """Arrays cut along their first axis, a part on each device; each process lays its own parts."""
    sharding = _parts(mesh)
    if sharding.is_fully_addressable:
        return jax.device_put(arrays, sharding)

    def own(array: np.ndarray) -> jax.Array:
        return jax.make_array_from_callback(array.shape, sharding, lambda place: array[place])

    return jax.tree.map(own, arrays)


def expect_one_batch(graph: EventGraph, reward: Array, mesh: Mesh) -> None:
    """Raise where processes would compute parts of different batches together."""
    if _parts(mesh).is_fully_addressable:
        return
    from jax.experimental import multihost_utils

    digest = hashlib.blake2b(digest_size=16)
    for array in (*jax.tree.leaves(graph), reward):
        digest.update(np.ascontiguousarray(array).tobytes())
    all_digests = multihost_utils.process_allgather(np.frombuffer(digest.digest(), np.uint8))
    if len(np.unique(all_digests, axis=0)) > 1:
        raise CreditError("the processes read different batches; expected the same logs, read alike, in all of them")


def on_host(values: Array) -> np.ndarray:
    """The whole array, also where other processes hold parts of it; these must call this, too."""
    if isinstance(values, jax.Array) and not values.is_fully_addressable:
        from jax.experimental import multihost_utils

        values = multihost_utils.process_allgather(values, tiled=True)
    return np.asarray(values)


def _parts(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(AXIS))  # type: ignore[no-untyped-call]
