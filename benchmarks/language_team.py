"""The stored comparison of language teams in docs/training.md: 6 signals, 8 seeds.

    python benchmarks/language_team.py       (about 10 CPU-minutes; resumes from results/language_team.json)

Rows and tests go to benchmarks/results/language_team.json, the table to docs/training.md.
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
from credit.bench.training.training_comparison import Cell, cells

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "results" / "language_team.json"
PAGE = ROOT / "docs" / "training.md"
MARK = "<!-- language team -->"
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


def table(compared: list[Cell], updates: dict[str, float]) -> str:
    """A line for each signal, by area."""
    lines = [
        "| signal | rate | updates | area | final | area against `rloo` | corrected p |",
        "| --- |" + " ---: |" * 6,
    ]
    for c in sorted(compared, key=lambda cell: -cell.area):
        against = "" if c.signal == "rloo" else f"{c.difference:+.3f} ± {c.half_width:.3f}"
        p = "" if c.signal == "rloo" else f"{c.p:.3f}" if c.p >= 0.001 else "< 0.001"
        area = f"{c.area:.3f} ± {c.stderr:.3f}"
        numbers = f"{c.learning_rate:g} | {updates[c.signal]:.0f} | {area} | {c.final:.3f}"
        lines.append(f"| `{c.signal}` | {numbers} | {against} | {p} |")
    return "\n".join(lines) + "\n"


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
    updates = {s: float(np.mean([r["updates"] for r in rows if r["signal"] == s])) for s in SIGNALS}
    plain = [{k: v for k, v in c._asdict().items() if k not in (*nothing, "events_to_90")} for c in compared]
    stored = {"settings": stated, "against": "rloo", "cells": plain, "rows": list(found.values())}
    RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    after = rest.partition(MARK)[2]
    PAGE.write_text(f"{before}{MARK}\n\n{table(compared, updates)}\n{MARK}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
