"""What wrong claims and fitted coefficients do to the variance of `control`, in tasks of one distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_teams import Team

import credit
import estimators


def variance() -> dict[str, Any]:
    """Variance of `control` over RLOO with p wrong claims and coefficients fitted on n traces; exact given those."""
    out = {}
    for n in (64, 256):
        team = Team(7)
        graph = team.graph(n + 8, 8)
        scores = np.tile(team.scores(), (2, 1, 1))
        win = team.success[tuple(team.choices.T)]
        weight = np.concatenate([team.chance * win, team.chance * (1 - win)])
        results = np.concatenate([np.ones_like(win), np.zeros_like(win)])[:, None]

        def total_variance(
            taken: np.ndarray,
            team: Team = team,
            weight: np.ndarray = weight,
            results: np.ndarray = results,
            scores: np.ndarray = scores,
        ) -> float:
            terms = np.einsum("ij,ijp->ip", results - team.start - np.tile(taken, (2, 1)), scores)
            return float(weight @ ((terms - weight @ terms) ** 2).sum(axis=1))

        for p in (1, 2, 4):
            for quality, noise in (("pure noise", 100.0), ("wrong by its own size", 0.3), ("nearly right", 0.05)):
                ratios = []
                for seed in range(60):
                    rng = np.random.default_rng(seed)
                    tables = [team.increments([noise] * team.steps, rng) for _ in range(p)]
                    drawn = rng.choice(len(team.choices), n + 8, p=team.chance)
                    outcome = (rng.random(n + 8) < win[drawn]).astype(float)
                    claims = [
                        credit.claim(
                            graph,
                            t[drawn].ravel(),
                            estimand="increment",
                            source=f"s{i}",
                            centred=True,
                            own_outcome=False,
                        )
                        for i, t in enumerate(tables)
                    ]
                    made = estimators.control_advantage(graph, outcome, claims, baseline=np.full(n + 8, team.start))
                    both = np.tensordot(np.asarray(made.beta)[:, 0], np.stack(tables), 1)
                    ratios.append(total_variance(both.sum(axis=1, keepdims=True) - both) / total_variance(0 * both))
                bound = 1 + 2 * p / n
                mean, error = float(np.mean(ratios)), float(np.std(ratios) / np.sqrt(len(ratios)))
                out[f"n={n}, p={p}, {quality}"] = {"over RLOO": mean, "standard error": error, "bound": bound}
                print(f"n={n} p={p} {quality:24s} {mean:.4f} ± {error:.4f}  bound {bound:.4f}")
    return out
