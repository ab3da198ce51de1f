"""Coverage of the errors of `stop_credit` and `spawn_credit`, over worlds drawn by seed.

    python benchmarks/stopping.py coverage --seed 7000       (20 worlds, a CPU-minute)

A world is a decision with two sides at prefixes of several kinds: the policy's probability and the value of more differ
from kind to kind. Its logs have 60 to 2,000 decisions. Coverage is that of estimate ± 1.96 standard errors, of the
answers that state an error. Results go to benchmarks/results/stopping.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from estimators.counterfactual.more_or_less import Points, value_of_more

RESULTS = Path(__file__).parent / "results" / "stopping.json"
WORLDS, LOGS = 20, 800
OUTCOMES = ("success", "steps", "normal", "skewed")


def drawn_world(seed: int) -> dict[str, Any]:
    """A world by seed, and what the intervals of its logs did."""
    rng = np.random.default_rng(seed)
    kinds = int(rng.integers(1, 5))
    chance, worth = rng.uniform(0.08, 0.92, kinds), rng.uniform(0.1, 0.9, (kinds, 2))
    often = rng.dirichlet(np.ones(kinds))
    outcome = OUTCOMES[int(rng.integers(len(OUTCOMES)))]
    size = int(np.exp(rng.uniform(np.log(60), np.log(2000))))
    critic = float(rng.choice([0.0, 1.0])) * (worth + rng.normal(scale=0.1, size=(kinds, 2)))
    truth = float(often @ (worth[:, 1] - worth[:, 0]))
    covered, errors = [], []
    batch = max(1, 100_000 // size)  # logs at a time
    for start in range(0, LOGS, batch):
        logs = min(batch, LOGS - start)
        kind = rng.choice(kinds, (logs, size), p=often)
        more = rng.random((logs, size)) < chance[kind]
        mean = np.where(more, worth[kind, 1], worth[kind, 0])
        y = _outcomes(rng, outcome, mean)
        gap = critic[kind, 1] - critic[kind, 0]
        left = y - np.where(more, critic[kind, 1], critic[kind, 0])
        place = np.arange(batch * size, dtype=np.int32)  # one shape a world, so that it compiles once
        n = logs * size

        def fit(values: np.ndarray, room: int = batch * size) -> np.ndarray:
            return np.pad(values.ravel(), (0, room - values.size))

        where = place < n
        p = Points(where, fit(more), fit(chance[kind]), fit(left), fit(left), np.where(where, place // size, 0), place)
        found = value_of_more(p, p.ahead, gap=fit(gap))
        value = np.asarray(found.value)[:n:size]
        stderr = np.asarray(found.stderr)[:n:size]
        stated = np.isfinite(stderr) & (np.asarray(found.reason)[:n:size] == 0)
        errors += (value - truth)[stated].tolist()
        covered += (np.abs(value - truth) < 1.96 * stderr)[stated].tolist()
    answered = len(covered) / LOGS
    row = {"seed": seed, "outcome": outcome, "decisions": size, "kinds": kinds, "critic": bool(critic.any())}
    return row | {
        "answered": answered,
        "coverage": float(np.mean(covered)) if covered else None,
        "bias": float(np.mean(errors)) if covered else None,
        "bias_stderr": float(np.std(errors) / len(errors) ** 0.5) if covered else None,
    }


def _outcomes(rng: np.random.Generator, kind: str, mean: np.ndarray) -> np.ndarray:
    if kind == "success":
        return (rng.random(mean.shape) < mean).astype(np.float64)
    if kind == "steps":
        return rng.binomial(4, mean) / 4
    if kind == "normal":
        return mean + rng.normal(scale=0.5, size=mean.shape)
    return mean * rng.exponential(size=mean.shape)


def coverage(seed: int, worlds: int = WORLDS) -> list[dict[str, Any]]:
    """Every world, printed, and the share of intervals that cover over all of them."""
    rows = [drawn_world(seed + i) for i in range(worlds)]
    for row in rows:
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
    stated = [row for row in rows if row["coverage"] is not None]
    weight = np.array([row["answered"] for row in stated])
    print(f"coverage over {len(stated)} worlds: {np.average([row['coverage'] for row in stated], weights=weight):.4f}")
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["coverage"])
    parser.add_argument("--seed", type=int, default=7000)
    given = parser.parse_args()
    result = coverage(given.seed)
    RESULTS.write_text(json.dumps({"coverage": {"seed": given.seed, "logs": LOGS, "worlds": result}}, indent=1) + "\n")
