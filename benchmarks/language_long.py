"""A language team on long questions: facts over twelve rounds, 24 calls a trace, no luck given its tokens.

    python benchmarks/language_long.py [--parts 12] [--seeds 16] [--out FILE]       (meant for a GPU: minutes)
    python benchmarks/language_long.py --parts 6 --seeds 4 --updates 100 --rates 0.002 --signals rloo,posterior

The second is what results/language_long.json holds, with JAX 0.10.2 on two cores: ten minutes of the processor.

The lead reads twelve parts and names a worker for each; the outcome is the share of right answers. All seeds and rates
of a signal are trained side by side, in one compiled function. The rate is the one with the largest area on two other
seeds, of the same rates for every signal. `calls` are those until the mean reward of a seed, over ten updates, first
stands at the mean final reward of `rloo`, over those of the budget.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.language.training import CHUNK, training_step, warm_team

SIGNALS = ("rloo", "posterior", "turn_baseline", "dr_mas", "grpo")
RATES = (0.001, 0.002, 0.004, 0.008)
TUNING = (1_000_000, 1_000_001)
GROUPS, GROUP_SIZE, WARM = 8, 4, 25


def curves(signal: str, parts: int, seeds: list[int], rates: list[float], updates: int) -> np.ndarray:
    """The mean share of right answers of each update, float [lanes, updates]."""
    begin, chunk = training_step(signal, GROUPS, GROUP_SIZE, parts)
    warm = {seed: begin(warm_team(seed, WARM, parts)) for seed in dict.fromkeys(seeds)}
    first = [warm[seed] for seed in seeds]
    carry = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(x) for x in leaves]), *first)
    several = jax.jit(lambda carry, keys, rates: _without_teams(jax.vmap(chunk)(carry, keys, rates)))
    keys, rows = jax.vmap(jax.random.key)(jnp.asarray(seeds)), []
    for part in range(-(-updates // CHUNK)):
        now = jax.vmap(lambda key, part=part: jax.random.fold_in(key, part))(keys)
        carry, reward = several(carry, now, jnp.asarray(rates))
        rows.append(np.asarray(reward))
    return np.concatenate(rows, axis=1)[:, :updates]


def _without_teams(found: Any) -> Any:
    carry, ((reward, _, _), _) = found
    return carry, reward


def main() -> None:
    """Train with each signal; write after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--updates", type=int, default=400, help="of 32 traces each")
    parser.add_argument("--rates", default=",".join(map(str, RATES)))
    parser.add_argument("--signals", default=",".join(SIGNALS))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin with no signal after these")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")) / "language_long.json")
    asked = parser.parse_args()
    tried = [float(rate) for rate in asked.rates.split(",")]
    start, rows, final = time.perf_counter(), [], float("nan")
    for signal in asked.signals.split(","):
        if time.perf_counter() - start > 60 * asked.minutes:
            break
        lanes = [(rate, seed) for rate in tried for seed in (*TUNING, *range(asked.seeds))]
        rates, seeds = (list(x) for x in zip(*lanes, strict=True))
        every = curves(signal, asked.parts, seeds, rates, asked.updates).reshape(len(tried), -1, asked.updates)
        area = every[:, : len(TUNING)].mean(axis=(1, 2))
        rate, share = tried[int(np.argmax(area))], every[int(np.argmax(area)), len(TUNING) :]
        share = share + 0.1 * asked.parts  # the price of the calls, which all have
        tens = share[:, : asked.updates // 10 * 10].reshape(asked.seeds, -1, 10).mean(axis=2)
        if signal == "rloo":
            final = float(tens[:, -4:].mean())
        there = np.where((tens >= final).any(axis=1), 10 * (1 + np.argmax(tens >= final, axis=1)), np.inf)
        calls = there / asked.updates
        rows.append({
            "signal": signal, "rate": rate, "pilot": area.round(4).tolist(), "start": float(tens[:, 0].mean()),
            "area": share.mean(axis=1).round(4).tolist(), "final": tens[:, -4:].mean(axis=1).round(4).tolist(),
            "calls": [float(x) if np.isfinite(x) else None for x in calls],
            "curve": tens.mean(axis=0).round(4).tolist(), "seconds": round(time.perf_counter() - start, 1),
        })  # fmt: skip
        print(signal, rate, rows[-1]["start"], np.mean(rows[-1]["area"]), np.mean(rows[-1]["final"]), np.median(calls),
              rows[-1]["seconds"], flush=True)  # fmt: skip
        about = {"jax": jax.__version__, "device": str(jax.devices()[0]), "parts": asked.parts,
                 "updates": asked.updates, "rates": tried,
                 "tuning": TUNING, "traces": GROUPS * GROUP_SIZE, "warm": WARM}  # fmt: skip
        asked.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
