"""The stored comparison of language teams in docs/training.md: 6 signals, 8 seeds.

    python benchmarks/language_team.py       (about 10 CPU-minutes; resumes from results/language_team.json)

Rows and tests go to benchmarks/results/language_team.json. The site puts them into docs/training.md.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.language.questions import optimum
from benchmarks.language.training import LanguageSettings, train_language
from credit.bench.training.training_comparison import cells, plain

RESULTS = Path(__file__).parent / "results" / "language_team.json"
SIGNALS = ("rloo", "grpo", "dr_mas", "turn_baseline", "c3", "control_c3")
SEEDS = 8
RATES = (0.001, 0.002, 0.004)
TUNING = (1_000_000, 1_000_001)
SETTINGS = LanguageSettings(events=24_000, groups=8, group_size=4, warm_steps=25)
POINTS = 31


def row(signal: str, seed: int, rate: float) -> dict[str, Any]:
    """Train one team; what `cells` reads, and the mean rewards along the budget."""
    curves = train_language(signal, SETTINGS, seed, rate)
    ends = np.append(curves.spent, SETTINGS.events)
    means = [curves.reward[(ends[:-1] >= a) & (ends[:-1] < b)].mean() for a, b in _intervals()]
    goal = curves.start + 0.9 * (optimum() - curves.start)
    reached = [b for (_, b), mean in zip(_intervals(), means, strict=True) if mean >= goal]
    return {
        "task": "questions",
        "signal": signal,
        "seed": seed,
        "learning_rate": rate,
        "start": curves.start,
        "optimum": optimum(),
        "area": float(np.sum(curves.reward * np.diff(ends)) / SETTINGS.events),
        "final": curves.final,
        "events_to_90": reached[0] if reached else None,
        "teaching": float(curves.teaching.mean()),
        "updates": len(curves.reward),
        "curve": np.round(means, 4).tolist(),
    }


def _intervals() -> list[tuple[float, float]]:
    edges = np.linspace(0, SETTINGS.events, POINTS)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def main() -> None:
    """Run what is missing, and write the results."""
    stated = {**dataclasses.asdict(SETTINGS), "rates": list(RATES), "seeds": SEEDS}
    kept: list[dict[str, Any]] = []
    if RESULTS.is_file():
        document = json.loads(RESULTS.read_text())
        if document["settings"] != stated:
            sys.exit(f"{RESULTS} holds other settings; expected {stated}: move it away")
        kept = document["rows"]
    found = {(r["signal"], r["seed"], r["learning_rate"]): r for r in kept}

    def of(signal: str, seed: int, rate: float) -> dict[str, Any]:
        key = (signal, seed, rate)
        if key not in found:
            found[key] = row(*key)
            RESULTS.write_text(json.dumps({"settings": stated, "rows": list(found.values())}, indent=1) + "\n")
            print(*key, found[key]["area"], found[key]["final"], flush=True)
        return found[key]

    rows = []
    for signal in SIGNALS:
        area = {rate: np.mean([of(signal, seed, rate)["area"] for seed in TUNING]) for rate in RATES}
        rate = max(area, key=lambda r: float(area[r]))
        rows += [of(signal, seed, rate) for seed in range(SEEDS)]
    nothing = {"cosine": float("nan"), "entropy": float("nan")}  # no exact gradient here
    compared = cells([{**r, **nothing} for r in rows], "rloo")
    shown = [{k: v for k, v in plain(c._asdict()).items() if k not in (*nothing, "events_to_90")} for c in compared]
    stored = {"settings": stated, "against": "rloo", "cells": shown, "rows": list(found.values())}
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
