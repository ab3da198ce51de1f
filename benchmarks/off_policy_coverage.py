"""Coverage of off-policy intervals, given that there is an answer, in worlds that are drawn by seed.

    python benchmarks/off_policy_coverage.py [--seed 9000] [--worlds 24] [--contexts 2000] [--save]

World i comes from seed + i: how outcomes fall (`OUTCOMES`), 3 to 12 alternatives or free text of which none is drawn
twice, how far the policies differ, and 60 to 600 draws a context. Many contexts of each are drawn. The user states the
range of outcomes of `OUTCOMES`. The last columns ask whether answering selects: the mean of the answers minus the
value, in standard errors of that mean.

`--save` writes benchmarks/results/off_policy_coverage.json. The site puts it into docs/off-policy.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estimators import Alternatives, Evaluation, policy_value
from graphs.worlds.siblings import lone_messages

RESULTS = Path(__file__).parent / "results" / "off_policy_coverage.json"
DRAWS = (60, 100, 200, 300, 600)
Outcomes = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _steep(mean: np.ndarray, strength: float) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(strength * mean, 1e-3), np.maximum(strength * (1 - mean), 1e-3)


OUTCOMES: dict[str, tuple[tuple[float, float], Outcomes]] = {
    "success or failure": ((0, 1), lambda rng, q: rng.random(q.shape) < q),
    "won or lost": ((-1, 1), lambda rng, q: 2 * (rng.random(q.shape) < q) - 1.0),
    "tests passed of 8": ((0, 1), lambda rng, q: rng.binomial(8, q) / 8),
    "marks": ((0, 1), lambda rng, q: rng.beta(*_steep(q, 3.0))),
    "nearly all or nothing": ((0, 1), lambda rng, q: rng.beta(*_steep(q, 0.4))),
    "rare success": ((0, 1), lambda rng, q: rng.random(q.shape) < 0.05 * q),
    "rare failure": ((0, 1), lambda rng, q: rng.random(q.shape) > 0.05 * q),
    "a lottery": ((0, 1000), lambda rng, q: 1000 * (rng.random(q.shape) < 0.004 * q)),
    "costs, capped": ((-10, 0), lambda rng, q: -np.minimum(q * rng.lognormal(0, 1, q.shape), 10)),
}
"""The range and the draw of each kind of outcome, from numbers of the alternatives in (0, 1)."""


@dataclasses.dataclass(frozen=True)
class World:
    """One world: policies over alternatives, or the shift of free text; `value` is V by 4 million draws of π_e."""

    outcomes: str
    draws: int
    shift: float
    behaviour: np.ndarray | None
    target: np.ndarray | None
    quality: np.ndarray
    value: float

    def logged(self, rng: np.random.Generator, contexts: int) -> tuple[np.ndarray, Alternatives]:
        """The outcomes and the evidence of some contexts."""
        n, each = contexts * self.draws, OUTCOMES[self.outcomes][1]
        context = np.repeat(np.arange(contexts, dtype=np.int32), self.draws)
        if self.behaviour is None or self.target is None:
            x = rng.normal(size=n)
            node, propensity = np.arange(n, dtype=np.int32), np.full(n, 1e-5, np.float32)
            target = 1e-5 * np.exp(self.shift * x - self.shift**2 / 2)
            reward = each(rng, _quality(self.quality, x))
        else:
            choice = rng.choice(len(self.behaviour), n, p=self.behaviour)
            node = (context * len(self.behaviour) + choice).astype(np.int32)
            propensity, target = self.behaviour[choice].astype(np.float32), self.target[choice]
            reward = each(rng, self.quality[choice])
        support = np.ones(n, np.float32)
        logged = Alternatives(context, node, propensity, target.astype(np.float32), target_support=support)
        return reward.astype(np.float32), logged


def _quality(line: np.ndarray, x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 1 / (1 + np.exp(-line[0] - line[1] * x))
    return result


def world_of(seed: int) -> World:
    """The world of a seed; kinds of outcomes take turns, so that few worlds have them all."""
    rng = np.random.default_rng(seed)
    name = list(OUTCOMES)[seed % len(OUTCOMES)]
    draws, shift = int(rng.choice(DRAWS)), float(rng.uniform(0.2, 1.2))
    far = np.random.default_rng(seed + 1_000_000)
    if rng.random() < 0.3:
        line = rng.normal(0, 0.7, 2)
        reward = OUTCOMES[name][1](far, _quality(line, far.normal(size=4_000_000) + shift))
        return World(name, draws, shift, None, None, line, float(np.mean(reward)))
    size = int(rng.integers(3, 13))
    behaviour = np.exp(rng.uniform(0.2, 2.0) * rng.normal(size=size))
    target = behaviour * np.exp(shift * rng.normal(size=size))
    behaviour, target = behaviour / behaviour.sum(), target / target.sum()
    quality = rng.uniform(0.1, 0.9, size)
    reward = OUTCOMES[name][1](far, quality[far.choice(size, 4_000_000, p=target)])
    return World(name, draws, shift, behaviour, target, quality, float(np.mean(reward)))


def judged(world: World, rng: np.random.Generator, wanted: int, events: int = 60_000) -> dict[str, Any]:
    """Coverage of 95 % intervals over the contexts that were answered, and whether answers select."""
    contexts, (low_end, high_end) = events // world.draws, OUTCOMES[world.outcomes][0]
    graph = lone_messages(np.repeat(np.arange(contexts, dtype=np.int32), world.draws))
    rows = []
    for _ in range(-(-wanted // contexts)):  # batches of one shape, which compile once
        reward, logged = world.logged(rng, contexts)
        result = policy_value(graph, reward, logged, outcome_range=(low_end, high_end), evaluation=Evaluation())
        low, high = (np.asarray(end)[:contexts] for end in result.interval())
        answered, value = np.asarray(result.valid)[:contexts], np.asarray(result.value)[:contexts]
        rows.append(np.stack([answered, low, high, value]).astype(float))
    answered, low, high, value = np.concatenate(rows, axis=1)
    use, truth = answered > 0, world.value
    answers = int(use.sum())
    if answers < 2:
        return {"answered": float(use.mean()), "answers": answers}
    error = value[use] - truth
    return {
        "answered": round(float(use.mean()), 4),
        "answers": answers,
        "covered": round(float(((low <= truth) & (truth <= high))[use].mean()), 4),
        "below": round(float((high < truth)[use].mean()), 4),
        "above": round(float((low > truth)[use].mean()), 4),
        "width": round(float((high - low)[use].mean() / (high_end - low_end)), 4),
        "bias": round(float(error.mean() / (high_end - low_end)), 5),
        "bias in errors": round(float(error.mean() / max(error.std() / np.sqrt(answers), 1e-12)), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=9000, help="of the first world")
    parser.add_argument("--worlds", type=int, default=24)
    parser.add_argument("--contexts", type=int, default=2000, help="of each world")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    asked = parser.parse_args()
    rows = []
    for seed in range(asked.seed, asked.seed + asked.worlds):
        world = world_of(seed)
        alternatives = "free text" if world.behaviour is None else len(world.behaviour)
        named = {"seed": seed, "outcomes": world.outcomes, "alternatives": alternatives, "draws": world.draws}
        rows.append(named | judged(world, np.random.default_rng(seed + 500_000), asked.contexts))
        print(json.dumps(rows[-1]), flush=True)
    some = [row for row in rows if row.get("answers", 0) >= 100]
    summary = {
        "worlds": len(rows),
        "worlds with 100 answers": len(some),
        "covered": round(float(np.mean([row["covered"] for row in some])), 4),
        "least": min(row["covered"] for row in some),
        "worlds of 93 to 97 %": sum(0.93 <= row["covered"] <= 0.97 for row in some),
        "worlds above 97 %": sum(row["covered"] > 0.97 for row in some),
        "worlds below 93 %": sum(row["covered"] < 0.93 for row in some),
    }
    print(json.dumps(summary))
    if asked.save:
        versions = {p: importlib.metadata.version(p) for p in ("jax", "jaxlib", "numpy")}
        stored = {"seed": asked.seed, "summary": summary, "rows": rows, "versions": versions}
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
