"""Coverage of off-policy intervals, given that there is an answer, in worlds whose value is known.

    python benchmarks/off_policy.py [overlap|shifts|free|hidden] ...     (default: all)

* overlap: twenty worlds of 4 to 10 alternatives, a quarter or more of 300 draws effective; and twenty without an
answer. * shifts: mild and strong shift, rare success, lognormal rewards, 10 alternatives x 100 draws; eight worlds
each. * free: every draw is a text of its own, so that no alternative is drawn twice; the same shifts and outcomes.
* hidden: the target's favourite is drawn with probability 0.0005; how often there is an answer.

Intervals do not depend on the estimator. The stated range of outcomes is 0 to 1; lognormal rewards are capped at 50.

Results go to benchmarks/results/off_policy.json, section by section. The site puts them into docs/off-policy.md.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estimators import Alternatives, PolicyValue, policy_value
from graphs.worlds.siblings import SHIFTS, hidden_favourite_world, overlapping_world, shifted_world, unanswerable_world

RESULTS = Path(__file__).parent / "results" / "off_policy.json"
CONTEXTS, DRAWS, NORMAL = 500, 300, 1.959964
UNIT, CAP = (0.0, 1.0), 50.0


def judged(result: PolicyValue, value: float, contexts: int) -> dict[str, np.ndarray]:
    """By context: whether there is an answer, whether its interval covers, its width, and its error."""
    answered = np.asarray(result.valid)[:contexts]
    low, high = (np.asarray(end)[:contexts] for end in result.interval())
    return {
        "answered": answered,
        "covers": (low <= value) & (value <= high),
        "width": high - low,
        "error": np.asarray(result.value)[:contexts] - value,
    }


def figures(rows: list[dict[str, np.ndarray]]) -> dict[str, Any]:
    """Over worlds: the part answered, coverage given an answer, and the range of coverage over the worlds."""
    part = [row["answered"].mean() for row in rows]
    covered = [row["covers"][row["answered"]].mean() for row in rows if row["answered"].sum() >= 50]
    pooled = np.concatenate([row["covers"][row["answered"]] for row in rows])
    return {
        "answered": round(float(np.mean(part)), 3),
        "answers": len(pooled),
        "covered": round(float(pooled.mean()), 4) if len(pooled) else None,
        "least and most": [round(float(f(covered)), 3) for f in (min, max)] if covered else None,
    }


def overlap() -> dict[str, Any]:
    """Twenty worlds with overlap and twenty without an answer."""
    rows, widths, wrong = [], [], 0
    for seed in range(20):
        world = overlapping_world(seed)
        graph, reward, given = world.sample(np.random.default_rng(1000 + seed), CONTEXTS, DRAWS)
        row = judged(policy_value(graph, reward, Alternatives(**given), outcome_range=UNIT), world.value, CONTEXTS)
        rows.append(row)
        widths.append(row["width"][row["answered"]].mean() / (2 * NORMAL * world.oracle_stderr(DRAWS)))
        graph, reward, given = unanswerable_world(seed).sample(np.random.default_rng(seed), CONTEXTS, DRAWS)
        result = policy_value(graph, reward, Alternatives(**given), outcome_range=UNIT)
        wrong += bool(np.asarray(result.valid).any())
    found = {
        "overlap": figures(rows)
        | {
            "width over the oracle's, mean and most": [round(float(f(widths)), 3) for f in (np.mean, max)],
            "worlds without an answer that got one": wrong,
        }
    }
    print(json.dumps(found), flush=True)
    return found


def shifts() -> dict[str, Any]:
    """Eight worlds of each kind."""
    found: dict[str, Any] = {}
    for kind in SHIFTS:
        draws, rows = 100 if kind == SHIFTS[4] else DRAWS, []
        for seed in range(8):
            world = shifted_world(kind, seed)
            graph, reward, given = world.sample(np.random.default_rng(2000 + seed), CONTEXTS, draws)
            known, most = Alternatives(**given), CAP if world.tail else 1.0
            result = policy_value(graph, np.minimum(reward, most), known, outcome_range=(0.0, most))
            rows.append(judged(result, world.value, CONTEXTS))
        found[kind] = figures(rows)
        print(kind, json.dumps(found[kind]), flush=True)
    return found


def free() -> dict[str, Any]:
    """Texts x ~ N(0, 1) under π_b and N(μ, 1) under π_e; success by a logistic curve, rare, or lognormal rewards."""
    found: dict[str, Any] = {}
    kinds = {
        "mild shift": (0.4, 0.0, 0.0),
        "strong shift": (1.2, 0.0, 0.0),
        "rare success": (0.5, 0.02, 0.0),
        "rare success, strong shift": (1.0, 0.02, 0.0),
        "lognormal rewards": (0.5, 0.0, 1.0),
        "lognormal rewards, strong shift": (1.0, 0.0, 1.0),
    }
    graph = overlapping_world(0).sample(np.random.default_rng(0), CONTEXTS, DRAWS)[0]
    n = CONTEXTS * DRAWS
    for kind, (shift, rare, tail) in kinds.items():
        rng, rows = np.random.default_rng(3), []
        for _ in range(3):
            x = rng.normal(size=n)
            far = rng.normal(size=4_000_000) + shift
            mean = (lambda t: 1 / (1 + np.exp(-t))) if not rare else (lambda t: 0.02 * np.exp(0.3 * t - 0.15 - 0.045))
            reward = mean(x) * np.exp(tail * rng.normal(size=n) - tail**2 / 2) if tail else rng.random(n) < mean(x)
            weight = np.exp(shift * x - shift**2 / 2)
            logged = Alternatives(
                context=np.repeat(np.arange(CONTEXTS, dtype=np.int32), DRAWS),
                alternative=np.arange(n, dtype=np.int32),
                propensity=np.full(n, 1e-5, np.float32),
                target_propensity=(1e-5 * weight).astype(np.float32),
                target_support=np.ones(n, np.float32),
            )
            most = CAP if tail else 1.0
            capped = np.minimum(reward, most).astype(np.float32)
            result = policy_value(graph, capped, logged, outcome_range=(0.0, most))
            rows.append(judged(result, float(mean(far).mean()), CONTEXTS))
        found[kind] = figures(rows)
        print(kind, json.dumps(found[kind]), flush=True)
    return found


def hidden() -> dict[str, Any]:
    """How often a favourite that is hardly ever drawn gets an answer, with its support logged as 1."""
    found: dict[str, Any] = {}
    for chance in (0.0005, 0.002, 0.01):
        rows = []
        for seed in range(5):
            world = hidden_favourite_world(seed, chance)
            graph, reward, given = world.sample(np.random.default_rng(seed), CONTEXTS, DRAWS)
            given = {**given, "target_support": np.ones(CONTEXTS * DRAWS, np.float32)}
            result = policy_value(graph, reward, Alternatives(**given), outcome_range=UNIT)
            rows.append(judged(result, world.value, CONTEXTS))
        found[str(chance)] = figures(rows)
        print(chance, json.dumps(found[str(chance)]), flush=True)
    return found


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "overlap": overlap,
    "shifts": shifts,
    "free": free,
    "hidden": hidden,
}


def main(sections: list[str]) -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in sections or list(SECTIONS):
        versions = {p: importlib.metadata.version(p) for p in ("jax", "jaxlib", "numpy")}
        results[name] = SECTIONS[name]() | {"contexts": CONTEXTS, "draws": DRAWS, "versions": versions}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
