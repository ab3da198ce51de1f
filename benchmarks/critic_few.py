"""A critic fitted on 480 traces at default settings, against the true increments of worlds.

    python benchmarks/critic_few.py [additive|auto] ... [WORLD] ...    (default: both, in all worlds)

"additive" fits the additive model alone, with five seeds in each of 15 worlds (about 8 CPU minutes); "auto" fits both
models and keeps one, as `credit fit critic` does, three seeds in three worlds. Rows of worlds that are not named stay.
Results go to benchmarks/results/critic_few.json. Everything is computed from seeds.

Worlds show the quality of their choices as a column of the user's (`dense`), but for those called "hidden". Truth is
E[R given everything drawn so far], so in a hidden world most of it cannot be known from the log.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.worlds.decisive import DecisiveWorld
from credit.critics.fitted_critic import predict_by
from credit.critics.fitting import _fit_models
from estimators.critic.data import CriticData, split_by_task
from estimators.critic.features import event_features
from estimators.critic.train import Settings
from estimators.critic.validation import SignTest, stderr_factor, validate_signs, validated_events
from graphs.event_graph import EventGraph
from graphs.worlds import Additive, Bernoulli, Pivotal, TeamWorld, World
from graphs.worlds.quality import QualityWorld

RESULTS = Path(__file__).parent / "results" / "critic_few.json"
TRACES, JUDGED = 480, 200


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Traces of a world: corpus, true increments and actions of its events, number of roles, decisive event if any."""

    corpus: CriticData
    truth: np.ndarray
    action_mask: np.ndarray
    roles: int
    decisive: int | None = None

    @classmethod
    def of(cls, graph: EventGraph, reward: Any, dense: Any, truth: Any, decisive: int | None = None) -> Drawn:
        role = np.asarray(graph.agent_role_ids)
        roles = int(role.max()) + 1
        features = event_features(graph, dense=dense, role_columns=role, num_roles=roles)
        corpus = CriticData.of(graph, features, reward)
        size = len(corpus.features)
        return cls(corpus, np.asarray(truth)[:size], np.asarray(graph.action_mask)[:size], roles, decisive)


def decisive(seed: int, n: int, **options: Any) -> Drawn:
    drawn = DecisiveWorld(**options).sample(seed, n)
    return Drawn.of(drawn.graph, drawn.reward, drawn.dense, drawn.increments.ravel(), drawn.decisive)


def quality(seed: int, n: int) -> Drawn:
    drawn = QualityWorld().sample(seed, n)
    return Drawn.of(drawn.graph, drawn.reward, drawn.dense, drawn.increments.ravel())


def team(seed: int, n: int, **options: Any) -> Drawn:
    world = TeamWorld(**{"topology": "swarm", "agents": 5, "events": 60, **options})
    runs = world.sample(jax.random.key(seed), n)
    truth = world.increments(runs)
    traces = world.traces(runs, truth)
    dense = np.zeros((traces.graph.num_events, 1))
    dense[np.flatnonzero(np.asarray(traces.graph.action_mask)), 0] = np.asarray(runs.choice)[np.asarray(runs.present)]
    return Drawn.of(traces.graph, np.asarray(traces.reward), dense, truth.flat())


def plan(seed: int, n: int, shown: bool = True, **options: Any) -> Drawn:
    world = World(**options)
    episodes = world.sample(jax.random.key(seed), n)
    truth = world.increments(episodes)
    traces = world.traces(episodes, truth)
    dense = None
    if shown:  # the quality of each action, and the size of the team at the plan
        dense = np.zeros((traces.graph.num_events, 2))
        active = np.asarray(episodes.active)
        order = np.argsort(np.where(active, np.asarray(episodes.tick), np.iinfo(np.int32).max), axis=1)
        active = np.take_along_axis(active, order, axis=1)
        size = np.where(np.arange(active.shape[1]) == 0, np.asarray(episodes.size)[:, None], 0)
        good = np.take_along_axis(np.asarray(episodes.good), order, axis=1)
        dense[np.flatnonzero(np.asarray(traces.graph.action_mask))] = np.stack([good, size], axis=2)[active]
    return Drawn.of(traces.graph, np.asarray(traces.reward), dense, truth.flat())


WORLDS: dict[str, tuple[Callable[..., Drawn], dict[str, Any]]] = {
    "decisive decision, .95 / .05": (decisive, {}),
    "decisive decision, .7 / .3": (decisive, {"good": 0.7, "bad": 0.3}),
    "no decision matters": (decisive, {"good": 0.5, "bad": 0.5}),
    "TeamWorld additive": (team, {"kind": "additive", "spawn": 0.7}),
    "TeamWorld bernoulli": (team, {"kind": "bernoulli", "spawn": 0.7}),
    "TeamWorld pivotal": (team, {"kind": "pivotal", "spawn": 0.7}),
    "TeamWorld free_rider": (team, {"kind": "free_rider", "spawn": 0.7}),
    "TeamWorld padding": (team, {"kind": "padding", "spawn": 0.7}),
    "TeamWorld bottleneck": (team, {"kind": "bottleneck", "spawn": 0.7}),
    "TeamWorld poisoned": (team, {"kind": "poisoned"}),
    "QualityWorld": (quality, {}),
    "World(Additive)": (plan, {"outcome": Additive()}),
    "World(Bernoulli)": (plan, {"outcome": Bernoulli()}),
    "World(Pivotal(.9, .1))": (plan, {"outcome": Pivotal(0.9, 0.1)}),
    "World(Bernoulli), hidden": (plan, {"outcome": Bernoulli(), "shown": False}),
}
AUTO = ("decisive decision, .95 / .05", "TeamWorld bernoulli", "World(Bernoulli), hidden")


def row(name: str, seed: int, settings: Settings) -> dict[str, Any]:
    """One fit, judged on fresh traces."""
    make, options = WORLDS[name]
    trained, fresh = make(2 * seed, TRACES, **options), make(2 * seed + 1, JUDGED, **options)
    reward = trained.corpus.reward
    settings = dataclasses.replace(
        settings, seed=seed, head="bernoulli" if reward.min() >= 0 and reward.max() <= 1 else "value"
    )
    split = split_by_task(trained.corpus.group, reward, seed=seed)
    begun = time.process_time()
    fitted, losses = _fit_models(trained.corpus, split, settings, trained.roles, None, None, None)
    seconds = time.process_time() - begun
    tests = validate_signs(
        *predict_by(fitted, trained.corpus), trained.corpus, trained.action_mask, split.test, roles=trained.roles
    )
    found = {"world": name, "seed": seed, "model": type(fitted).__name__, "converged": fitted.converged}
    found |= {"cpu_seconds": seconds, "validation_loss": losses}
    return found | judged(*predict_by(fitted, fresh.corpus), fresh, tests)


def judged(after: np.ndarray, start: np.ndarray, drawn: Drawn, tests: tuple[SignTest, ...]) -> dict[str, Any]:
    corpus, acts = drawn.corpus, drawn.action_mask
    before = np.empty_like(after)
    before[:, 1:], before[:, corpus.start[:-1]] = after[:, :-1], start[:, None]
    change = (after - before).astype(float)
    amount, error = change.mean(axis=0), change.std(axis=0, ddof=1) * stderr_factor(len(change))
    inside = np.abs(amount - drawn.truth) <= 1.96 * error + 1e-6
    validated = validated_events(tests, before, after, corpus, acts, roles=drawn.roles)
    decided = (np.abs(amount) > 1.96 * error) & validated
    matters = np.abs(drawn.truth) > 1e-6
    right = np.sign(amount) == np.sign(drawn.truth)
    varies = drawn.truth[acts].std() > 0 and amount[acts].std() > 0
    found: dict[str, Any] = {
        "inside_95": float(inside[acts].mean()),
        "inside_95_where_not_zero": float(inside[acts & matters].mean()) if (acts & matters).any() else None,
        "correlation": float(np.corrcoef(amount[acts], drawn.truth[acts])[0, 1]) if varies else None,
        "signs_reported": float(decided[acts].mean()),
        "signs_right": float(right[decided & matters].mean()) if (decided & matters).any() else None,
        "signs_reported_of_zeros": float(decided[acts & ~matters].mean()) if (acts & ~matters).any() else None,
        "signs_false": float((~matters | ~right)[decided].mean()) if decided.any() else None,
        "regions": len(tests),
        "validated": [
            [t.region.kind, t.region.words(), sum(place.validated for place in t.places), len(t.places)]
            for t in tests
            if t.validated
        ],
    }
    if drawn.decisive is not None:
        size = int(corpus.lengths[0])
        found["decisive_first"] = float(np.mean(np.abs(amount).reshape(-1, size).argmax(axis=1) == drawn.decisive))
        found["inside_95_decisive"] = float(inside.reshape(-1, size)[:, drawn.decisive].mean())
    return found


def keep(name: str, rows: list[dict[str, Any]]) -> None:
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    machine = {"processor": platform.machine(), "cpu_count": os.cpu_count(), "jax": jax.__version__}
    kept[name] = {"traces": TRACES, "judged_traces": JUDGED, "rows": rows, "machine": machine}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main(wanted: list[str]) -> None:
    worlds = [name for name in wanted if name in WORLDS]
    for section in [name for name in wanted if name not in WORLDS] or ["additive", "auto"]:
        kept = json.loads(RESULTS.read_text())[section]["rows"] if worlds else []
        rows = {(found["world"], found["seed"]): found for found in kept}
        seeds, all_names = (5, tuple(WORLDS)) if section == "additive" else (3, AUTO)
        for seed, name in itertools.product(range(seeds), all_names):
            if worlds and name not in worlds:
                continue
            rows[name, seed] = row(name, seed, Settings(model=section))
            print(rows[name, seed], flush=True)
            keep(section, sorted(rows.values(), key=lambda found: (list(WORLDS).index(found["world"]), found["seed"])))


if __name__ == "__main__":
    main(sys.argv[1:])
