"""Published peers of the posterior that see the same traces, on a reduced map with development seeds.

    python benchmarks/training_peers.py [MINUTES]    (resumes from results/training_peers.json; stops after MINUTES)

All have one critic: a ridge regression of rewards on choices over **all** earlier traces, w, whose claims are
c_e = w_e x_e with x_e = choice − chance. Their gradients of a trace are, with p the chance,

    coma     x_e c_e                                      the critic alone (COMA with a learned Q; Foerster et al. 2018)
    gae      x_e (Σ_{f≥e} λ^{f−e} c_f + λ^{D−e} (R − b − Σ c)),  λ = 0.95      actor-critic (Schulman et al. 2016)
    qprop    x_e (R − b − c_e) + p (1 − p) w_e            Q-Prop with the mean over both choices (Gu et al. 2016)
    ipg      half of x_e (R − b) and half of p (1 − p) w_e     interpolated policy gradient (Gu et al. 2017)
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.training.long_training import SIGNALS, STARTS, long_cell
from estimators.baselines.shared import rloo

RESULT = Path(__file__).parent / "results" / "training_peers.json"
SEEDS, TUNING, STEPS = range(7000, 7016), range(5), 1500
WORLDS = tuple(itertools.product((30,), ("add", "interact"), (0.0, 0.3), ("adam", "sgd")))
LAMBDA = 0.95


def _peer(name: str) -> Any:
    def gradient(drawn: Any, state: Any) -> Any:
        gram, moment = state
        n, size = drawn.choice.shape
        weights = jnp.linalg.solve(gram + 3 * jnp.eye(size + 1), moment)[1:]
        claims = drawn.x * weights
        centred = drawn.of_decisions(rloo(drawn.graph(), drawn.reward).advantage)  # R − b, at each decision
        mean = drawn.chance[drawn.kind] * (1 - drawn.chance[drawn.kind]) * weights
        if name == "coma":
            scored = drawn.x * claims
        elif name == "qprop":
            scored = drawn.x * (centred - claims) + mean
        elif name == "ipg":
            scored = (drawn.x * centred + mean) / 2
        else:
            left = centred[:, :1] - claims.sum(axis=1, keepdims=True)
            gaps = np.arange(size)[None] - np.arange(size)[:, None]
            decay = np.where(gaps >= 0, LAMBDA ** np.maximum(gaps, 0), 0).astype(np.float32)
            scored = drawn.x * (claims @ decay.T + LAMBDA ** np.arange(size, 0, -1, np.float32) * left)
        seen = jnp.concatenate([jnp.ones((n, 1)), drawn.choice.astype(drawn.x.dtype) - 0.5], axis=1)
        return scored, (gram + seen.T @ seen, moment + seen.T @ drawn.reward), 0.0

    return gradient


for _name in ("coma", "gae", "qprop", "ipg"):
    SIGNALS[_name] = _peer(_name)
    STARTS[_name] = lambda kinds, size: (jnp.zeros((size + 1, size + 1)), jnp.zeros(size + 1))


def main(minutes: float) -> None:
    """Compute what is missing, and write after each cell."""
    end = time.time() + 60 * minutes
    cells = json.loads(RESULT.read_text()) if RESULT.exists() else []
    done = {(c["decisions"], c["outcome"], c["luck"], c["optimizer"], c["signal"]): c for c in cells}
    for signal in ("rloo", "posterior", "coma", "gae", "qprop", "ipg"):
        for world in WORLDS:
            key = (*world, signal)
            if key in done or time.time() > end:
                continue
            decisions, outcome, luck, optimizer = world
            base = done.get((*world, "rloo"))
            budget = 2.5 * base["median"] if base and base["median"] else STEPS * 16 * decisions
            found = long_cell(outcome, decisions, luck, signal, seeds=SEEDS, tuning=TUNING, optimizer=optimizer,
                              budget=budget)  # fmt: skip
            median = float(np.median(found.events))
            names = ("decisions", "outcome", "luck", "optimizer", "signal")
            done[key] = dict(zip(names, key, strict=True)) | {
                "rate": found.rate, "median": median if math.isfinite(median) else None,
                "reached": int(np.isfinite(found.events).sum()),
            }  # fmt: skip
            RESULT.write_text(json.dumps(list(done.values()), indent=1) + "\n")
            print(key, found.rate, median, base and base["median"] and median / base["median"], flush=True)


if __name__ == "__main__":
    jax.config.update("jax_numpy_dtype_promotion", "standard")
    main(float(sys.argv[1]) if len(sys.argv) > 1 else math.inf)
