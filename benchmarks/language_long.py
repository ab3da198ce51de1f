"""Recurrent language teams on three longer tasks without luck, with each signal; docs/training.md, docs/stopping.md.

    python benchmarks/language_long.py [TASK ...]       (about ten minutes of the processor; writes after each signal)

Every signal has the same pilot: two seeds at each of five rates, of which the one with the largest area is taken for
the other seeds. Questions and samples of an update are the same for all signals, so that seeds are pairs.

`calls` are those until the mean outcome of `WINDOW` updates first is that of the last ones of `rloo` with the same seed
("final"), or nine tenths of the way from the first update's mean to the best team ("90"). `ratio` is the median over
seeds of calls by those of `rloo`, or its whole budget where it does not come there, with a bootstrap interval; a seed
that does not come there counts as infinite. A signal "rloo:4" is `rloo` with four rounds, without a stop, for as many
calls.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.language.recurrent_team import WIDTH
from benchmarks.language.task_training import GROUP_SIZE, GROUPS, SIGNALS, claim_correlations, training
from benchmarks.language.verified_tasks import CHAIN, PRICE, TASKS

RESULTS = Path(__file__).parent / "results" / "language_long.json"
WARM = {"calculation": 12, "search": 9, "facts": 8}
"""Supervised updates before, after which `rloo` begins at about a fifth of the way."""
ROUNDS = (3, 4, 6, 8)
RATES = (0.002, 0.004, 0.008, 0.016, 0.032)
TUNING = (1_000_000, 1_000_001)
SEEDS, UPDATES, WINDOW = 20, 150, 15
CLAIM_SEEDS, CLAIM_RUNS, CLAIMS_AT = 5, 16, (10, 30, 60)
"""Claims are compared with re-runs at these updates of training with `rloo`."""


def trained(
    task: str, signal: str, seeds: Sequence[int], rates: Sequence[float], updates: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean outcomes and calls of updates, [L, U] each."""
    name, _, fixed = signal.partition(":")
    run = training(task, name, seeds, rates, updates, WARM[task], int(fixed or 0))
    both = [(x.played.reward.mean(axis=1), x.played.taken.sum(axis=(1, 2))) for x in run]
    reward, calls = (np.stack(x, axis=1) for x in zip(*both, strict=True))
    return reward, calls


def pilot(task: str, signal: str, updates: int) -> list[float]:
    """The mean area of the pilot's seeds at each rate."""
    rates, seeds = np.repeat(RATES, len(TUNING)).tolist(), list(TUNING) * len(RATES)
    area = trained(task, signal, seeds, rates, updates)[0].mean(axis=1).reshape(len(RATES), -1).mean(axis=1)
    return [round(float(x), 4) for x in area]


def run(task: str, signal: str, broadcast: dict[str, Any] | None) -> dict[str, Any]:
    """Tune the rate and train with it.

    Args:
      task: its name.
      signal: as above.
      broadcast: the row of `rloo`; None for its own.
    """
    rounds = int(signal.partition(":")[2] or 0)
    updates = round(broadcast["paid"] / (2 * rounds * GROUPS * GROUP_SIZE)) if broadcast and rounds else UPDATES
    begun, lanes = time.process_time(), len(RATES) * len(TUNING)
    area = pilot(task, signal, updates)
    rate = RATES[int(np.argmax(area))]
    several = [trained(task, signal, range(s, s + lanes), [rate] * lanes, updates) for s in range(0, SEEDS, lanes)]
    reward, calls = (np.concatenate(x) for x in zip(*several, strict=True))
    paid = np.cumsum(calls, axis=1)
    mean = np.apply_along_axis(lambda x: np.convolve(x, np.ones(WINDOW) / WINDOW, "valid"), 1, reward)
    row = {
        "task": task, "signal": signal, "rate": rate, "pilot": area, "updates": updates,
        "start": float(reward[:, 0].mean()), "area": reward.mean(axis=1).round(4).tolist(),
        "final": mean[:, -1].round(6).tolist(), "paid": float(paid[:, -1].mean()),
        "rounds": float(calls[:, -WINDOW:].mean() / (2 * GROUPS * GROUP_SIZE)),
        "curves": mean[:, :: WINDOW // 3].round(3).tolist(),
    }  # fmt: skip
    most = paid[:, -1] if broadcast is None else np.full(len(paid), broadcast["paid"])
    best = 1 - PRICE * sum(CHAIN) / 2 if TASKS[task].stops else 1.0
    of = broadcast or row
    goals = {"final": np.asarray(of["final"])[: len(paid)], "90": of["start"] + 0.9 * (best - of["start"])}
    for name, goal in goals.items():
        there = mean >= np.broadcast_to(goal, len(mean))[:, None] - 1e-6
        reached = paid[np.arange(len(paid)), WINDOW - 1 + np.argmax(there, axis=1)]
        row[f"calls_{name}"] = finite(np.where(there.any(axis=1), reached, np.inf))
        own = [most[i] if x is None else x for i, x in enumerate((of[f"calls_{name}"])[: len(paid)])]
        ratio = np.where(there.any(axis=1), reached, np.inf) / own
        draws = np.random.default_rng(0).integers(0, len(ratio), (4000, len(ratio)))
        medians = np.sort(ratio[draws], axis=1)[:, len(ratio) // 2]
        row[f"ratio_{name}"] = finite([np.median(ratio), *np.quantile(medians, (0.025, 0.975), method="nearest")])
    return {**row, "processor_seconds": round(time.process_time() - begun, 1)}


def finite(numbers: Any) -> list[float | None]:
    """For JSON: None for what is not finite."""
    return [round(float(x), 4) if np.isfinite(x) else None for x in numbers]


def main() -> None:
    """Run what is missing of the tasks that are named, or of all."""
    about = {
        "jax": jax.__version__, "device": str(jax.devices()[0]), "width": WIDTH, "traces": GROUPS * GROUP_SIZE,
        "updates": UPDATES, "window": WINDOW, "seeds": SEEDS, "rates": RATES, "tuning": TUNING, "warm": WARM,
        "chain": CHAIN, "price": PRICE,
    }  # fmt: skip

    def stored() -> dict[str, Any]:
        document: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {"rows": []}
        return {"claims": {}, **document, **about}

    def write(document: dict[str, Any]) -> None:
        parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in document.items() if key != "rows"]
        rows = ",\n".join(f"  {json.dumps(row)}" for row in document["rows"])  # a row a line
        RESULTS.write_text("{\n" + ",\n".join([*parts, f' "rows": [\n{rows}\n ]']) + "\n}\n")

    for task in sys.argv[1:] or TASKS:
        stopped = [f"rloo:{rounds}" for rounds in ROUNDS] if TASKS[task].stops else []
        bounds = ["exact"] if task == "facts" else []
        for signal in (*SIGNALS[:-1], *stopped, *bounds):
            found = {(r["task"], r["signal"]): r for r in stored()["rows"]}
            if (task, signal) in found:
                continue
            row = run(task, signal, found.get((task, "rloo")))
            document = stored()
            write({**document, "rows": [*document["rows"], row]})
            means = [round(float(np.mean(row[key])), 3) for key in ("area", "final")]
            print(task, signal, row["rate"], *means, row["ratio_final"], row["ratio_90"], flush=True)
        rate = next(r["rate"] for r in stored()["rows"] if (r["task"], r["signal"]) == (task, "rloo"))
        if task not in stored()["claims"]:
            claims = claim_correlations(task, range(CLAIM_SEEDS), rate, WARM[task], CLAIMS_AT, CLAIM_RUNS)
            rounded = {key: np.round(values, 3).tolist() for key, values in claims.items()}
            document = stored()
            write({**document, "claims": {**document["claims"], task: rounded}})
            print(task, rounded, flush=True)


if __name__ == "__main__":
    main()
