"""Reconciliation and quantisation as multiples of one `segment_sum` over the same events, timed in turns.

Above 32 MiB the C library gives memory back after every call, and what a call costs is then mostly the pages that it
touches anew; with `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` high it keeps them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimators.composition.exact import exact_partition
from estimators.composition.least_squares import Claims, reconcile


def speed(sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)) -> dict[str, Any]:
    """Three claims over five levels, and quantisation, as multiples of one segment sum; float32."""
    out: dict[str, Any] = {}
    jax.config.update("jax_enable_x64", False)  # as trainers have it
    for n in sizes:
        rng = np.random.default_rng(0)
        turn = np.sort(rng.integers(0, n // 4, n)).astype(np.int32)
        counts = (n, n // 4, n // 40, n // 80, max(n // 4000, 1))
        parents = [turn] + [np.sort(rng.integers(0, b, a)).astype(np.int32) for a, b in itertools.pairwise(counts[1:])]
        trace = parents[0]
        for parent in parents[1:]:
            trace = parent[trace]
        draw = {k: jnp.asarray(rng.normal(size=k), jnp.float32) for k in set(counts)}
        errors = {k: jnp.asarray(rng.uniform(0.1, 1, k), jnp.float32) for k in set(counts)}
        nobody = {k: jnp.zeros((0, k), jnp.float32) for k in counts}
        claims = tuple(
            Claims(draw[k][None], errors[k][None]) if level in (0, 1, 2) else Claims(nobody[k], nobody[k])
            for level, k in enumerate(counts)
        )
        parents = tuple(map(jnp.asarray, parents))
        ids, total = jnp.asarray(trace), draw[counts[-1]]
        where, scored = jnp.ones(n, bool), jnp.ones(counts[-1], bool)
        tight, halved = _between_grids(np.asarray(draw[n]), trace, np.asarray(total))
        runs: dict[str, Callable[[], Any]] = {
            "segment_sum": lambda ids=ids, x=draw[n], m=counts[-1]: _sum(x, ids, m),
            "reconcile": lambda c=claims, p=parents, t=total, s=scored: reconcile(c, p, t, s, unexplained_variance=0.5),
            "reconcile, by channel": lambda c=claims, p=parents, t=total, s=scored: reconcile(
                c, p, t, s, unexplained_variance=0.5, channels=((0,), (1,), (2,), (), ())
            ),
            "quantisation": lambda x=draw[n], i=ids, w=where, t=total: exact_partition(x, i, w, t),
            "quantisation, finer grids tried": lambda x=tight, i=ids, w=where, t=halved: exact_partition(x, i, w, t),
        }
        samples: dict[str, list[float]] = {name: [] for name in runs}
        for run in runs.values():
            jax.block_until_ready(run())
        for _ in range(15 if n <= 1_000_000 else 5):
            for name, run in runs.items():
                begin = time.perf_counter()
                jax.block_until_ready(run())
                samples[name].append(time.perf_counter() - begin)
        best = {name: min(times) for name, times in samples.items()}
        row: dict[str, Any] = {"seconds": best}
        row["multiples"] = {name: best[name] / best["segment_sum"] for name in runs if name != "segment_sum"}
        out[str(n)] = row
        print(n, {k: round(v, 5) for k, v in best.items()}, {k: round(v, 1) for k, v in row["multiples"].items()})
        if n == 1_000_000:
            compiled = reconcile.lower(claims, parents, total, scored, unexplained_variance=0.5).compile()
            memory = compiled.memory_analysis()
            arrays = (memory.temp_size_in_bytes + memory.output_size_in_bytes) / (4 * n)
            row["arrays of the event size, beside the arguments"] = arrays
            print("memory, arrays of the event size:", round(arrays, 2))
    for what, (small, large) in {"": (sizes[0], sizes[-1]), ", beyond the caches": sizes[-2:]}.items():
        span = np.log(large / small)
        for name in out[str(sizes[0])]["seconds"]:
            pair = [out[str(size)]["seconds"] for size in (small, large)]
            cost, unit = (np.log(pair[1][key] / pair[0][key]) / span for key in (name, "segment_sum"))
            out[f"exponent of {name}{what}"] = float(cost)
            out[f"exponent of {name} over that of segment_sum{what}"] = float(cost - unit)
            print(f"exponent of {name}{what}: {cost:.3f}, of its multiple {cost - unit:.3f}")
    return out


def _between_grids(values: np.ndarray, trace: np.ndarray, total: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Cells and totals for which quantisation tries other grids in vain: trace 0 lies on the next finer grid only."""
    here = trace == 0
    values, total = values.astype(np.float64), total.copy()
    values[here] -= values[here].mean()
    values[here] *= 1.0001 * 2.0**11 / np.abs(values[here]).sum()
    total[0] = 1.5 * 2.0 ** (12 - 24)
    return jnp.asarray(values, jnp.float32), jnp.asarray(total)


_sum = jax.jit(lambda x, ids, num: jax.ops.segment_sum(x, ids, num_segments=num), static_argnums=2)
