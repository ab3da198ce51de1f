"""The map of docs/training.md: events to 90 % of the way by length, luck and outcome, on tasks drawn by seed.

    python benchmarks/training_lengths.py [MINUTES]    (resumes from results/training_lengths.json; stops after MINUTES)
    python benchmarks/training_lengths.py bound        (what a regression with the right model needs, without a policy)
    python benchmarks/training_lengths.py intervals    (in how many cells `posterior` needs fewer events, and more)

Rates are chosen on seeds 0 to 4, and the cells are of seeds 1000 and up. The budget of a signal is 2.5 times the median
of `rloo`. Cells are computed in the order of `WORLDS`, then those of `BATCHES`, with other numbers of traces a step.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from credit.bench.training.long_tasks import draw_long_task
from credit.bench.training.long_training import OPTIMIZERS, long_cell

RESULT = Path(__file__).parent / "results" / "training_lengths.json"
SEEDS, TUNING = range(1000, 1032), range(5)
"""Of the cells, the first half of them for `BATCHES`, and of the rates."""
STEPS = 1500
"""The budget of `rloo`, in steps of 16 traces."""

ALL = ("rloo", "control", "posterior", "exact")
WORLDS = (
    *itertools.product(("add", "interact"), (100,), (0.0, 0.1, 0.3, 0.6), OPTIMIZERS, (ALL,)),
    *itertools.product(("add", "interact"), (30,), (0.0, 0.1, 0.3, 0.6), OPTIMIZERS, (ALL,)),
    *itertools.product(("add", "interact"), (10,), (0.0, 0.1, 0.3, 0.6, 0.9), OPTIMIZERS, (ALL,)),
    *itertools.product(("threshold",), (30,), (0.0, 0.1, 0.3, 0.6), OPTIMIZERS, (ALL,)),
    *itertools.product(("add",), (30,), (0.0, 0.3), ("sgd", "adam"), (("siblings",),)),
    *itertools.product(("shared",), (10,), (0.0, 0.1, 0.3), OPTIMIZERS, (ALL,)),
    *itertools.product(("add",), (300,), (0.0, 0.1, 0.3), OPTIMIZERS, (("rloo", "posterior", "exact"),)),
    *itertools.product(("add",), (1000,), (0.0, 0.1, 0.3, 0.6), ("sgd", "adam"), (("rloo", "posterior", "exact"),)),
)
BATCHES = tuple(
    (outcome, decisions, luck, optimizer, ("rloo", "posterior"), traces)
    for optimizer, decisions, traces, outcome, luck in itertools.product(
        ("adam", "sgd"), (100, 30), (128, 32, 8), ("add", "interact"), (0.0, 0.1, 0.3)
    )
)
NAMES = ("outcome", "decisions", "luck", "optimizer", "signal", "traces")


def bound(decisions: int, luck: float) -> float:
    """Steps of 16 traces of uniform choices until the signs of a regression's weights give 90 % of the way: the median.

    The outcome is `add`; the regression knows the widths of weights and luck.
    """
    needed = []
    for seed in SEEDS:
        task, rng = draw_long_task("add", decisions, luck, seed), np.random.default_rng(seed)
        weights, ridge = task.weights[0], max(luck, 1e-4) / ((1 - luck) / decisions)
        signs = rng.choice([-1.0, 1.0], size=(16 * STEPS // 10, decisions))
        reward = signs @ weights + float(task.noise) * rng.normal(size=len(signs))
        for n in range(16, len(signs) + 1, 16):
            known = signs[:n]
            found = np.linalg.solve(known.T @ known + ridge * np.eye(decisions), known.T @ reward[:n])
            if np.sign(found) @ weights >= 0.9 * np.abs(weights).sum():
                break
        needed.append(n / 16)
    return float(np.median(needed))


def intervals() -> tuple[int, int, int]:
    """Cells that `rloo` reaches; those with the 95 % bootstrap interval of the medians' ratio below 1, and above."""
    rows, rng, ends = json.loads(RESULT.read_text()), np.random.default_rng(0), []
    cells = {tuple(row[n] for n in NAMES): np.array([e or 1e99 for e in row["events"]]) for row in rows}  # None: never
    for key, events in cells.items():
        least = cells[*key[:4], "rloo", key[5]]
        if key[4:] == ("posterior", 16) and np.median(least) < 1e90:
            drawn = rng.integers(len(events), size=(10_000, len(events)))
            ratio = np.median(events[drawn], axis=1) / np.median(least[drawn], axis=1)
            ends.append(np.quantile(ratio, (0.025, 0.975)))
    low, high = np.transpose(ends)
    return len(ends), int((high < 1).sum()), int((low > 1).sum())


def main(minutes: float) -> None:
    """Compute what is missing, and write after each cell."""
    end = time.time() + 60 * minutes
    cells = json.loads(RESULT.read_text()) if RESULT.exists() else []
    done = {tuple(cell[name] for name in NAMES): cell for cell in cells}
    for outcome, decisions, luck, optimizer, signals, traces in (*((*world, 16) for world in WORLDS), *BATCHES):
        for signal in signals:
            key = (outcome, decisions, luck, optimizer, signal, traces)
            if key in done:
                continue
            if time.time() > end:
                return
            base = done.get((*key[:4], "rloo", traces))
            least = base["median"] if base and base["median"] else STEPS * 16 * decisions / 2.5
            budget = STEPS * 16 * decisions if signal == "rloo" else 2.5 * max(least, 10 * traces * decisions)
            seeds, rates = SEEDS if traces == 16 else SEEDS[:16], None
            if decisions == 1000:  # eight seeds, rates of 300 decisions, at the luck of 0.1 where 0.3 has none
                rate = next(done[k]["rate"] for x in (luck, 0.1) if (k := (outcome, 300, x, *key[3:])) in done)
                seeds, rates = SEEDS[:8], (rate / 2, rate, 2 * rate) if signal == "rloo" else (rate,)
            found = long_cell(outcome, decisions, luck, signal, seeds=seeds, tuning=TUNING, optimizer=optimizer,
                              budget=budget, groups=traces // 4, rates=rates)  # fmt: skip
            median = float(np.median(found.events))
            done[key] = dict(zip(NAMES, key, strict=True)) | {
                "rate": found.rate,
                "median": median if math.isfinite(median) else None,
                "events": [e if math.isfinite(e) else None for e in found.events.tolist()],
            }
            RESULT.write_text("[\n" + ",\n".join(map(json.dumps, done.values())) + "\n]\n")
            print(key, found.rate, median / traces / decisions, flush=True)


if __name__ == "__main__" and sys.argv[1:] == ["bound"]:
    for decisions in (30, 100, 300):
        print(decisions, {luck: bound(decisions, luck) for luck in (0.0, 0.1, 0.3)}, flush=True)
elif __name__ == "__main__" and sys.argv[1:] == ["intervals"]:
    print("{} cells: fewer events in {}, more in {}".format(*intervals()))
elif __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else math.inf)
