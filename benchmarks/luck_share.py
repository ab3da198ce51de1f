"""Coverage of the luck share's 95 % interval in worlds that are drawn by seed, and the share of a language team.

    python benchmarks/luck_share.py [--seed 61000] [--worlds 168] [--logs 400] [--save]
    python benchmarks/luck_share.py --language      (small transformers: their last decision drawn again)

World i comes from seed + i: how outcomes fall (`KINDS`), 4 to 40 tasks of 2 to 8 traces, 20 or more in all, with 2 to
6 repeats each, of which 15 % are lost, and a share of 0.03 to 0.95. `covered` is given an interval with two ends;
`bounds` are those with an upper end only, where repeats of few traces differ. Worlds with 100 intervals are judged one
by one, the `few` others together; `by chance` is how many worlds would lie in 93 to 97 % if all were at 95 %.

`--save` writes benchmarks/results/luck_share.json.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from credit.replay.luck_share import UNEQUAL, luck_share
from graphs.errors import CreditError

RESULTS = Path(__file__).parent / "results" / "luck_share.json"
KINDS = ("success or failure", "tests passed of 8", "rare failure", "normal", "laplace", "student 5", "lognormal")
LOST = 0.15


@dataclasses.dataclass(frozen=True)
class World:
    """Tasks, traces of each and repeats of those; `share` is the truth."""

    kind: str
    tasks: int
    traces: int
    repeats: int
    share: float

    def outcomes(self, rng: np.random.Generator) -> np.ndarray:
        """float64 [tasks, traces, repeats]."""
        shape = self.tasks, self.traces, self.repeats
        if self.kind in KINDS[:3]:
            tests = 8 if self.kind == "tests passed of 8" else 1
            middle = rng.uniform(*((0.8, 0.97) if self.kind == "rare failure" else (0.15, 0.85)), self.tasks)[:, None]
            # Chances of traces are Beta(c m, c (1 − m)): luck is c / tests of what decisions are.
            c = tests * self.share / (1 - self.share)
            chance = rng.beta(c * middle, c * (1 - middle), shape[:2])
            return rng.binomial(tests, chance[..., None], shape) / tests
        task = rng.normal(0, 2, self.tasks)[:, None, None]
        size = np.exp(rng.normal(0, 0.3, self.tasks))[:, None, None]
        decided, luck = _spread(rng, self.kind, (*shape[:2], 1)), _spread(rng, self.kind, shape)
        found: np.ndarray = task + size * (np.sqrt(1 - self.share) * decided + np.sqrt(self.share) * luck)
        return found


def _spread(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of mean 0 and variance 1."""
    v = 0.36
    draws = {
        "normal": lambda: rng.normal(size=shape),
        "laplace": lambda: rng.laplace(size=shape) / np.sqrt(2),
        "student 5": lambda: rng.standard_t(5, shape) / np.sqrt(5 / 3),
        "lognormal": lambda: (rng.lognormal(0, np.sqrt(v), shape) - np.exp(v / 2)) / np.sqrt(np.expm1(v) * np.exp(v)),
    }
    found: np.ndarray = draws[kind]()
    return found


def world_of(seed: int) -> World:
    """The world of a seed; kinds of outcomes take turns."""
    rng, tasks, traces = np.random.default_rng(seed), 0, 0
    while tasks * traces < 20:
        tasks, traces = int(rng.integers(4, 41)), int(rng.integers(2, 9))
    return World(KINDS[seed % len(KINDS)], tasks, traces, int(rng.integers(2, 7)), float(rng.uniform(0.03, 0.95)))


def judged(world: World, rng: np.random.Generator, logs: int) -> dict[str, Any]:
    """How often the interval holds the truth, over logs of a world."""
    trace = np.arange(world.tasks * world.traces).repeat(world.repeats)
    two: list[tuple[bool, float]] = []
    one: list[tuple[bool, float]] = []
    for _ in range(logs):
        kept = rng.random(len(trace)) >= LOST
        outcome = np.where(kept, world.outcomes(rng).ravel(), np.nan)
        try:
            found = luck_share(outcome, trace, trace // world.traces)
        except CreditError:
            continue
        row = (found.low <= world.share <= found.high, found.high - found.low)
        (two if found.unequal >= UNEQUAL else one).append(row)
    covered, width = np.mean(two, axis=0) if two else (np.nan, np.nan)
    return {
        **dataclasses.asdict(world), "answers": len(two), "covered": float(covered), "width": float(width),
        "bounds": len(one), "bounds covered": float(np.mean(one, axis=0)[0]) if one else None,
    }  # fmt: skip


def _in_band(n: int) -> float:
    """The chance that 93 to 97 % of n answers hold, were each to hold with 95 %."""
    return sum(math.comb(n, k) * 0.95**k * 0.05 ** (n - k) for k in range(n + 1) if 0.93 <= k / n <= 0.97)


def language() -> list[str]:
    """Luck shares of the language team after its warm-up, and trained: the last decision drawn four times again."""
    import jax
    import jax.numpy as jnp

    from benchmarks.language.questions import draw_questions
    from benchmarks.language.team import Said, play
    from benchmarks.language.training import LanguageSettings, train_language, warm_team

    settings, groups, size, runs = LanguageSettings(events=24_000, warm_steps=25), 32, 8, 4
    found = []
    for name, team in (("warm", warm_team(0, 25)), ("trained", train_language("rloo", settings, 0, 0.002).team)):
        said = jax.jit(play)(team, draw_questions(groups, size, jax.random.key(1)), jax.random.key(2))
        row = jnp.arange(groups * size).repeat(runs)
        last = said.taken.sum(axis=1)[row] - 1
        again = jax.jit(play)(team, said.question[row], jax.random.key(3), Said(*(x[row] for x in said)), last)
        share = luck_share(
            np.asarray(again.reward), np.asarray(row), np.asarray(row) // size, "all decisions but the last"
        )
        found.append(f"{name}: {share}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=61000, help="of the first world")
    parser.add_argument("--worlds", type=int, default=168)
    parser.add_argument("--logs", type=int, default=400, help="of each world")
    parser.add_argument("--language", action="store_true", help="of a language team instead")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    asked = parser.parse_args()
    if asked.language:
        print(*language(), sep="\n")
        return
    rows = []
    for seed in range(asked.seed, asked.seed + asked.worlds):
        rows.append({"seed": seed} | judged(world_of(seed), np.random.default_rng(seed + 500_000), asked.logs))
        print(json.dumps(rows[-1]), flush=True)
    some = [row for row in rows if row["answers"] >= 100]
    covered, few = np.array([row["covered"] for row in some]), [row for row in rows if 0 < row["answers"] < 100]
    summary = {
        "logs": asked.worlds * asked.logs,
        "answers": sum(row["answers"] for row in rows),
        "worlds": len(some),
        "covered": round(float(np.average(covered, weights=[row["answers"] for row in some])), 4),
        "least": float(covered.min()),
        "greatest": float(covered.max()),
        "of 93 to 97 %": int(((covered >= 0.93) & (covered <= 0.97)).sum()),
        "by chance": round(sum(_in_band(row["answers"]) for row in some), 1),
        "few": len(few),
        "few answers": sum(row["answers"] for row in few),
        "few covered": round(sum(r["covered"] * r["answers"] for r in few) / max(sum(r["answers"] for r in few), 1), 4),
        "by kind": {k: round(float(np.mean([r["covered"] for r in some if r["kind"] == k])), 4) for k in KINDS},
        "bounds": sum(row["bounds"] for row in rows),
        "bounds covered": round(sum(r["bounds"] * (r["bounds covered"] or 0) for r in rows)
                                / max(sum(r["bounds"] for r in rows), 1), 4),
    }  # fmt: skip
    print(json.dumps(summary))
    if asked.save:
        versions = {p: importlib.metadata.version(p) for p in ("numpy", "scipy")}
        stored = {"seed": asked.seed, "logs": asked.logs, "summary": summary, "versions": versions}
        lines = ",\n".join(map(json.dumps, rows))
        RESULTS.write_text(json.dumps(stored)[:-1] + f', "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
