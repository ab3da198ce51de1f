"""What effect of a decision the sign test of the additive critic finds, at what size of a log.

    python benchmarks/critic_signs.py [--seed 0] [--fits 3] [--save]

One decision of a trace moves the success rate by an effect, 24 other actions by nothing (`DecisiveWorld`). The critic
is fitted as `credit fit critic` does, with fewer members, and its signs are read off 160 fresh traces. "Found" is the
share of fits that report the decision's sign, "held-out alone" the same with the test on a fifth of the tasks in place
of cross-fitting, "false" the share of fits that report a wrong sign, or one of an action without effect.

`--save` writes benchmarks/results/critic_signs.json. The site puts it into docs/critic.md.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.critic_few import decisive, judged
from estimators.critic.additive.additive_critic import fit_additive, predict_additive
from estimators.critic.data import split_by_task
from estimators.critic.validation import MEMBERS, SignTest, cross_fit, validate_signs

RESULTS = Path(__file__).parent / "results" / "critic_signs.json"
SIZES = ((12, 42), (63, 8), (25, 8))
EFFECTS = (0.6, 0.3, 0.15, 0.0)
FRESH = 160


def found(seed: int, tasks: int, size: int, effect: float) -> dict[str, float]:
    """One fit: whether the decision's sign is reported, by either test, and whether another one is."""
    options = {"good": 0.5 + effect / 2, "bad": 0.5 - effect / 2, "group_size": size}
    trained, fresh = decisive(2 * seed, tasks * size, **options), decisive(2 * seed + 1, FRESH, **options)
    corpus, acts, roles = trained.corpus, trained.action_mask, trained.roles
    split = split_by_task(corpus.group, corpus.reward, seed=seed)
    known = np.sort(np.concatenate([split.train, split.validation]))
    fitted = fit_additive(corpus, known, roles=roles, members=MEMBERS, seed=seed)
    folds = cross_fit(corpus, head="bernoulli", roles=roles, seed=seed)
    values, later = predict_additive(fitted, corpus), predict_additive(fitted, fresh.corpus)

    def signs(tests: tuple[SignTest, ...]) -> tuple[float, float]:
        row = judged(*later, fresh, tests)
        wrong = (row["signs_right"] or 1) < 1 or (row["signs_reported_of_zeros"] or 0) > 0
        return float(bool(row["signs_right"])), float(wrong)

    alone, _ = signs(validate_signs(*values, corpus, acts, split.test, roles=roles))
    every, wrong = signs(validate_signs(*values, corpus, acts, split.test, roles=roles, folds=folds))
    return {"found": every, "held-out alone": alone, "false": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fits", type=int, default=3, help="of each size and effect")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for tasks, size in SIZES:
        for effect in EFFECTS:
            fits = [found(asked.seed + i, tasks, size, effect) for i in range(asked.fits)]
            row: dict[str, Any] = {"tasks": tasks, "traces": tasks * size, "effect": effect, "fits": asked.fits}
            rows.append(row | {name: float(np.mean([fit[name] for fit in fits])) for name in fits[0]})
            print(json.dumps(rows[-1]), flush=True)
    if asked.save:
        versions = {p: importlib.metadata.version(p) for p in ("numpy", "scipy")}
        RESULTS.write_text(json.dumps({"seed": asked.seed, "rows": rows, "versions": versions}, indent=1) + "\n")


if __name__ == "__main__":
    main()
