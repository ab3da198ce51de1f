"""What one coefficient does to tasks with exact claims and to tasks with noise for claims, in one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

import credit
import estimators


def heterogeneous() -> dict[str, Any]:
    """Variance of `control` over RLOO where claims are exact on 72 tasks and pure noise on 8 of another size."""
    groups, traces, steps, seeds = 80, 8, 4, 20
    task = np.repeat(np.arange(groups), traces)
    trace = np.repeat(np.arange(len(task)), steps)
    out = {}
    for size in (1.0, 2.0, 4.0, 10.0, 100.0):
        noisy = task < groups // 10
        unit = np.where(noisy, size, 1.0)[:, None]
        sums = {name: np.zeros(2) for name in ("exact", "noise", "all")}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            choices = rng.integers(0, 2, (len(task), steps))
            other = np.where(noisy[:, None], rng.integers(0, 2, choices.shape), choices)
            graph, reward, rows = credit.from_columns(
                group=task[trace], trace=trace, reward=(unit * choices).sum(axis=1)[trace]
            )
            amount = np.full(graph.num_events, np.nan)
            amount[rows.event] = (unit * (other - 0.5)).ravel()
            given = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
            for k, claims in enumerate(([given], [])):
                advantage = estimators.control_advantage(graph, reward, claims).credit.advantage
                terms = np.asarray(rows.gather(advantage)).reshape(choices.shape) * (choices - 0.5)
                for name, where in (("exact", ~noisy), ("noise", noisy), ("all", noisy | True)):
                    sums[name][k] += (terms[where] ** 2).sum()
        out[f"size {size:g}"] = {name: float(with_claims / without) for name, (with_claims, without) in sums.items()}
        print(f"size {size:g}", out[f"size {size:g}"])
    return out
