"""A learned critic against the truth of `graphs.worlds.quality`, against time and memory, and on real logs.

    python benchmarks/critic.py [named|table|speed|memory|contrast|real] ...        (default: all but `real`)
    python benchmarks/critic.py real LOGS...                                        (tau-bench result files)

Results go to benchmarks/results/critic.json, section by section. Everything is computed from seeds.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from scipy.special import ndtri
from scipy.stats import spearmanr

from estimators.critic.calibration import fit_counts, judge, predict_counts, reliability
from estimators.critic.contrasts import decision_contrast
from estimators.critic.data import Batch, CriticData, Split, batches, room, split_by_task
from estimators.critic.features import CLOCKS, event_features
from estimators.critic.network import Architecture, PrefixBatch
from estimators.critic.objective import initial
from estimators.critic.predict import predict_corpus, predict_replaced
from estimators.critic.train import Fitted, Settings, _compiled, _counts, _State, fit
from estimators.critic.validation import stderr_factor
from graphs.event_types import EventType
from graphs.worlds.quality import QualityEpisodes, QualityWorld

RESULTS = Path(__file__).parent / "results" / "critic.json"
NAMED = QualityWorld(events=50, agents=10)
TRAIN, VALIDATION, TEST = 2000, 400, 1000


def drawn(world: QualityWorld, seed: int, n: int) -> tuple[QualityEpisodes, CriticData]:
    episodes = world.sample(seed, n)
    return episodes, CriticData.of(
        episodes.graph, event_features(episodes.graph, dense=episodes.dense), episodes.reward
    )


def learned(world: QualityWorld, seed: int, settings: Settings, train: int, stop: int) -> tuple[Fitted, float, float]:
    """A critic of the world, the seconds it took, and the mean outcome of its training traces."""
    _, corpus = drawn(world, 2 * seed, train + stop)
    everything = np.arange(train + stop)
    begun = time.process_time()
    fitted = fit(corpus, Split(everything[:train], everything[train:], everything[:0]), settings)
    return fitted, time.process_time() - begun, float(corpus.reward[:train].mean())


def held_against_truth(fitted: Fitted, world: QualityWorld, seed: int, n: int, mean: float) -> dict[str, float]:
    """Errors over all prefixes of n fresh traces of fresh tasks."""
    episodes, corpus = drawn(world, 2 * seed + 1, n)
    after, start = predict_corpus(fitted, corpus)
    shape = (len(after), n, world.events)
    value = after.reshape(shape)
    change = np.diff(value, axis=2, prepend=np.broadcast_to(start[:, None, None], (*shape[:2], 1)))
    true, increments = episodes.value, episodes.increments
    acts = episodes.graph.action_mask.reshape(n, -1)
    told, error = change.mean(axis=0)[acts], (change.std(axis=0, ddof=1) * stderr_factor(len(change)))[acts]
    broadcast = np.broadcast_to((episodes.reward - mean)[:, None], acts.shape)[acts]
    outcome = np.repeat(episodes.reward, world.events).astype(float)
    v = value.mean(axis=0)
    sure = np.abs(told) > 1.96 * error
    matters = np.abs(increments[acts]) > 1e-9
    return {
        "r_squared": 1 - float(np.mean((v - true) ** 2) / np.var(true)),
        "rmse": float(np.sqrt(np.mean((v - true) ** 2))),
        "rank_increments": float(spearmanr(told, increments[acts])[0]),
        "rank_broadcast": float(spearmanr(broadcast, increments[acts])[0]),
        "calibration_error_outcome": reliability(v.ravel(), outcome, np.ones(v.size)).error,
        "calibration_error_truth": reliability(v.ravel(), true.ravel(), np.ones(v.size)).error,
        "inside_95": float(np.mean(np.abs(told - increments[acts]) <= 1.96 * error)),
        "sign_told": float(np.mean(sure)),
        "sign_right_where_told": float(np.mean(np.sign(told) == np.sign(increments[acts]), where=sure & matters)),
    }


def named() -> dict[str, Any]:
    """The named world: T = 50, 10 agents, 2,000 training traces, 3 seeds; calibration on 4,000 held-out traces."""
    rows = []
    for seed in range(3):
        fitted, seconds, mean = learned(NAMED, 10 + seed, Settings(seed=seed), TRAIN, VALIDATION)
        row = held_against_truth(fitted, NAMED, 10 + seed, 4000, mean)
        rows.append({"seed": seed, "epochs": len(fitted.history), "cpu_seconds": seconds, **row})
        print(rows[-1], flush=True)
    return {"world": dataclasses.asdict(NAMED), "settings": dataclasses.asdict(Settings()), "rows": rows}


CELLS = ((200, 10), (1000, 10), (1000, 300), (200, 30), (1000, 30), (1000, 100), (50, 10))
"""T and agents of the worlds of the table, what matters most first. 200 events have no room for 100 agents."""
SHORT = {50: (5, 20, 300), 200: (2, 16, 200), 1000: (2, 8, 100)}
"""Members, epochs and judged traces of a cell by T: longer traces get smaller ensembles and fewer epochs."""


def table(seeds: int = 3) -> dict[str, Any]:
    """Longer traces and larger teams; and critics trained on 10 agents judged on more. All of 2,000 training traces.

    Cells that the results hold are not computed again.
    """
    for seed in range(seeds):
        for events, agents in CELLS:
            kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            rows: list[dict[str, Any]] = kept.get("table", {}).get("rows", [])
            if any((r["events"], r["trained_on_agents"], r["seed"]) == (events, agents, seed) for r in rows):
                continue
            world = QualityWorld(events=events, agents=agents)
            members, epochs, judged = SHORT[events]
            settings = Settings(members=members, epochs=epochs, seed=seed)
            fitted, seconds, mean = learned(world, 20 + seed, settings, TRAIN, VALIDATION)
            attainable = linear_bound(world, 20 + seed, judged)
            for team in [a for a in (10, 30, 100, 300) if a >= agents and (agents in (10, a)) and fits(events, a)]:
                cell = {"events": events, "trained_on_agents": agents, "judged_on_agents": team, "seed": seed}
                cell |= {"training_traces": TRAIN, "members": members, "epochs": len(fitted.history)}
                cell |= {"cpu_seconds": seconds, "judged_traces": judged}
                cell |= held_against_truth(fitted, QualityWorld(events=events, agents=team), 20 + seed, judged, mean)
                if team == agents:
                    cell |= attainable
                rows.append(cell)
                print(cell, flush=True)
            keep("table", {"rows": rows})
    return {"rows": rows}


def fits(events: int, agents: int) -> bool:
    """Whether a trace has room for a team."""
    return events >= 4 + 2 * (agents - 1)


def linear_bound(world: QualityWorld, seed: int, judged: int) -> dict[str, float]:
    """R² of logistic regressions fitted on the same traces: on the truth itself, on sums of the vectors, on counts.

    The first says what 2,000 outcomes allow to somebody who knows the formula but for a slope and an intercept; the
    second what a linear model attains that knows the columns to sum, by type of event, but not who did what; the third
    is the baseline of simple counts.
    """

    def columns(episodes: QualityEpisodes) -> dict[str, np.ndarray]:
        n, size = episodes.value.shape
        kind = episodes.graph.event_type.reshape(n, size)
        dense = episodes.dense.reshape(n, size, -1)
        place = np.tile(np.arange(size) / size, n)[:, None]
        sums = [
            np.cumsum(np.where((kind == k)[..., None], dense, 0), axis=1) / np.sqrt(max(1, (kind == k).sum() / n))
            for k in EventType
            if (kind == k).any()
        ]
        own = np.concatenate([s.reshape(n * size, -1) for s in sums], axis=1)
        counts = np.stack([np.cumsum(kind == k, axis=1).ravel() for k in EventType], axis=1)
        return {
            "r_squared_of_truth_refitted": ndtri(np.clip(episodes.value.reshape(-1, 1), 1e-9, 1 - 1e-9)),
            "r_squared_of_linear_sums": np.concatenate([own, place], axis=1),
            "r_squared_of_counts": np.log1p(counts),
        }

    trained, tested = world.sample(2 * seed, TRAIN), world.sample(2 * seed + 1, judged)
    every = max(1, world.events // 100)  # each trace is one outcome; neighbouring prefixes say the same
    place = np.arange(0, trained.value.size, every)
    outcome = np.repeat(trained.reward, world.events)[place].astype(float)
    fit_on, judge_on = columns(trained), columns(tested)
    found = {}
    for name, x in fit_on.items():
        weights = fit_counts(x[place], outcome, np.ones(len(place)), "bernoulli")
        told = predict_counts(weights, judge_on[name], "bernoulli")
        found[name] = 1 - float(np.mean((told - tested.value.ravel()) ** 2) / np.var(tested.value))
    return found


def plain(sizes: Any, own: dict[str, Any], batch: PrefixBatch) -> tuple[jax.Array, jax.Array]:
    """The same network written with `segment_sum` and a running sum less its value at the trace's start, no classes."""
    num = batch.mask.shape[0]

    def linear(name: Any, x: jax.Array) -> jax.Array:
        return x @ name["kernel"][...] + name["bias"][...][None]

    def so_far(x: jax.Array) -> jax.Array:
        total = jnp.cumsum(x, axis=0)
        begin = jax.ops.segment_min(jnp.arange(num), batch.trace, num_segments=num)[batch.trace]
        return total - (total - x)[begin]

    x = batch.features
    clocks = np.array(CLOCKS)
    h = jax.nn.silu(linear(own["encode"], jnp.delete(x, clocks, axis=1)))
    ones = jnp.ones((batch.senders.shape[0], 1))
    opens, most = (batch.kind == EventType.SPAWN)[:, None], sizes.counts[EventType.SPAWN]
    rate = 1 / jnp.sqrt(jnp.array(sizes.counts))[batch.kind][:, None]
    fan_in = jax.ops.segment_sum(ones * batch.edge_mask[:, None], batch.receivers, num_segments=num)
    seen = so_far(jnp.ones((num, 1)))
    share = most / jnp.maximum(so_far(opens * 1.0), most)
    place = jnp.arange(num)

    def summed(x: jax.Array) -> jax.Array:
        return so_far(jnp.where(opens, 0, x * rate)) + share * so_far(jnp.where(opens, x * rate, 0))

    def product(x: jax.Array) -> jax.Array:
        return jax.nn.silu(x[:, : x.shape[1] // 2]) * x[:, x.shape[1] // 2 :]

    def inputs(h: jax.Array, told: jax.Array, added: jax.Array) -> jax.Array:
        heard = jax.ops.segment_sum(told[batch.senders] * batch.edge_mask[:, None], batch.receivers, num_segments=num)
        others = [h[i] * (i != place)[:, None] for i in (batch.previous, batch.birth)]
        means = so_far(added) / seen
        return jnp.concatenate([h, heard / jnp.maximum(fan_in, 1), *others, means, summed(added)], axis=1)

    for i in range(sizes.layers):
        tell, add, update = (own[part][i] for part in ("tell", "add", "update"))
        h = h + product(linear(update, inputs(h, linear(tell, h), linear(add, h))))
    last = inputs(h, h, linear(own["add"][sizes.layers], h))
    stated = summed(linear(own["state"], h))[:, 0]
    read = product(linear(own["read"], jnp.concatenate([last, x[:, clocks]], axis=1)))
    return own["start"][...] + (read @ own["answer"]["kernel"][...])[:, 0] + stated, own["start"][...]


def speed() -> dict[str, Any]:
    """A training step against the same network written directly, interleaved."""
    rows = []
    for members, hidden, layers in ((5, 16, 1), (1, 64, 3)):
        settings = Settings(members=members, hidden=hidden, layers=layers)
        _, corpus = drawn(NAMED, 0, 200)
        to = room(corpus, 8192)
        batch = next(iter(batches(corpus, np.arange(200), to)))
        sizes = Architecture(
            corpus.features.shape[1], hidden, settings.sums, layers, _counts(corpus, np.arange(len(corpus.lengths)))
        )
        optimiser, step = _compiled(sizes, settings.weight_decay, 1.0, settings.slow)
        # No part of it may be 0; of both signs, since products of sums of one sign grow beyond float32 in three rounds.
        parameters = jax.tree.map(
            lambda x: x + 0.02 * jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape),
            initial(sizes, members, 0, 0.5),
        )
        state = _State(parameters, parameters, jax.vmap(optimiser.init)(parameters), parameters)
        weight, rate = jnp.ones((members, to.traces)), jnp.float32(1e-3)
        pure = nnx.to_pure_dict(parameters)
        carried = (pure, pure, jax.vmap(optimiser.init)(pure))
        direct = direct_step(sizes, optimiser, rate)
        runs = {"ours": lambda: step(state, batch, weight, rate), "direct": lambda: direct(*carried, batch)}  # noqa: B023
        losses = {name: float(np.mean(run()[-1])) for name, run in runs.items()}
        assert abs(losses["ours"] / losses["direct"] - 1) < 1e-4, losses
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for i in range(30):
            for name in ("ours", "direct") if i % 2 else ("direct", "ours"):
                begun = time.perf_counter()
                jax.block_until_ready(runs[name]())
                seconds[name].append(time.perf_counter() - begun)
        middle = {name: float(np.median(s)) for name, s in seconds.items()}
        least = {name: float(np.min(s)) for name, s in seconds.items()}
        events = int(batch.prefix.mask.sum())
        row = {"members": members, "hidden": hidden, "layers": layers, "events": events, "repetitions": 30}
        row |= {f"{name}_events_per_second": events / middle[name] for name in runs}
        row |= {"ratio_of_medians": middle["direct"] / middle["ours"]}
        row |= {"ratio_of_least": least["direct"] / least["ours"]}
        rows.append(row)
        print(row, flush=True)
    return {"rows": rows}


def direct_step(sizes: Architecture, optimiser: optax.GradientTransformation, rate: jax.Array) -> Any:
    """A training step of `plain`, the members mapped as in the library."""

    def loss(p: Any, b: Batch) -> jax.Array:
        z, start = plain(sizes, Bare(p), b.prefix)
        outcome = jnp.asarray(b.reward)
        each = optax.sigmoid_binary_cross_entropy(z, outcome[b.prefix.trace]) * b.weight * b.prefix.mask
        empty = optax.sigmoid_binary_cross_entropy(jnp.broadcast_to(start, outcome.shape), outcome)
        share = jax.ops.segment_sum(b.weight * b.last, b.prefix.trace, num_segments=outcome.shape[0])
        return (each.sum() + jnp.sum(empty * share)) / b.trace_mask.sum()

    def one(p: Any, slow: Any, memory: Any, b: Batch) -> tuple[Any, Any, Any, jax.Array]:
        value, slope = jax.value_and_grad(loss)(p, b)
        change, memory = optimiser.update(slope, memory, p)
        p = optax.apply_updates(p, jax.tree.map(lambda x: rate * x, change))
        return p, optax.incremental_update(p, slow, 0.02), memory, value

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, None)))


class Bare:
    """A nested dictionary of arrays that answers like a module's parts, so that `plain` reads as a formula."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def __getitem__(self, name: Any) -> Any:
        if name is Ellipsis:
            return self.tree
        return Bare(self.tree[name])


def memory() -> dict[str, Any]:
    """Peak memory of a process that trains on traces of 4,096 events."""
    script = (
        f"import resource, sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import critic as c\n"
        "w = c.QualityWorld(events=4096, agents=300)\n"
        "f, s, m = c.learned(w, 1, c.Settings(epochs=1), 16, 2)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, f.history[-1].train)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    row = {
        "events": 4096,
        "agents": 300,
        "members": Settings().members,
        "peak_gib": float(out[0]),
        "loss": float(out[1]),
    }
    print(row, flush=True)
    return row


def contrast() -> dict[str, Any]:
    """Coverage of the doubly robust effect of a good first spawn, under policies with and without overlap."""
    world = QualityWorld(events=20, agents=4, pull=3.0)
    fitted, _, _ = learned(world, 30, Settings(members=3, epochs=10), 1000, 200)
    episodes, corpus = drawn(world, 999, 20_000)
    n, at = len(episodes.reward), np.arange(20_000) * world.events + 2
    features = []
    for good in (False, True):
        dense = episodes.dense.reshape(n, world.events, -1).copy()
        donor = np.flatnonzero(episodes.good[:, 2] == good)
        dense[:, 2] = dense[donor[np.arange(n) % len(donor)], 2]
        rows = event_features(episodes.graph, dense=dense.reshape(n * world.events, -1))
        features.append(rows[at])
    m0, m1 = (predict_replaced(fitted, corpus, at, rows).mean(axis=0) for rows in features)
    q = world.spawn_values(episodes, 0)
    effect = float(np.mean(q[:, 1] - q[:, 0]))
    known = episodes.effect[:, 0] + episodes.effect[:, 1]  # what the policy may look at: the task and the plan
    policies = {
        "even": np.full(n, 0.5), "rare": np.full(n, 0.2),
        "by prefix": np.clip(1 / (1 + np.exp(-1.5 * known)), 0.1, 0.9),
        "always": np.ones(n), "by rule": np.where(known > 0, 1.0, 0.0), "hardly ever": np.full(n, 0.01),
        "rule at the edge": np.where(known > 1, 1.0, 0.5), "not logged": np.full(n, np.nan),
    }  # fmt: skip
    rng, rows, runs, size = np.random.default_rng(0), [], 1200, 500
    for name, p in policies.items():
        overlap = name in ("even", "rare", "by prefix")
        for model in ("critic", "none"):
            covered, answered, width = 0, 0, []
            for _ in range(runs if overlap else 100):
                pick = rng.integers(n, size=size)
                took = rng.uniform(size=size) < np.nan_to_num(p[pick], nan=0.5)
                reward = (rng.uniform(size=size) < np.where(took, q[pick, 1], q[pick, 0])).astype(np.float32)
                values = (m1[pick], m0[pick]) if model == "critic" else (np.zeros(size), np.zeros(size))
                got = decision_contrast(
                    reward,
                    np.arange(size),
                    treated=took,
                    propensity=p[pick],
                    value_treated=values[0],
                    value_control=values[1],
                ).contrast
                if bool(got.valid[0]):
                    answered += 1
                    covered += abs(float(got.effect[0]) - effect) <= 1.96 * float(got.stderr[0])
                    width.append(float(got.stderr[0]))
            total = runs if overlap else 100
            row = {"policy": name, "overlap": overlap, "model": model, "answered": answered / total, "runs": total}
            row["coverage"] = covered / answered if answered else None
            row["mean_stderr"] = float(np.mean(width)) if width else None
            rows.append(row)
            print(row, flush=True)
    judged = [r for r in rows if r["overlap"] and r["model"] == "critic"]
    answers = np.array([r["answered"] * r["runs"] for r in judged])
    pooled = float(np.average([r["coverage"] for r in judged], weights=answers))
    return {"effect": effect, "decisions": size, "pooled_coverage": pooled, "rows": rows}


def real(paths: list[str]) -> dict[str, Any]:
    """Logs split by task, repeated: loss against the best constant and a regression on the number of turns so far."""
    import credit
    from credit.critics.fitted_critic import critic_data

    traces = credit.read(*paths)
    roles = tuple(dict.fromkeys(traces.agents["role"].to_pylist()))
    corpus = critic_data(traces, roles, None)
    rows = []
    for seed in range(10):
        split = split_by_task(corpus.group, corpus.reward, seed=seed, validation=0.2, test=0.3)
        fitted = fit(corpus, split, Settings(seed=seed, epochs=60, patience=15, batch_events=1024))
        judged = judge(predict_corpus(fitted, corpus)[0].mean(axis=0), corpus, split, "bernoulli")
        rows.append({"seed": seed, "best_epoch": fitted.history[-1].best_number, "loss": judged.loss,
                     "gain_over_constant": {k: v[0] for k, v in judged.gain.items()}, "test_tasks": judged.tasks,
                     "calibration_error": judged.calibration})  # fmt: skip
        print(rows[-1], flush=True)

    def interval(name: str) -> dict[str, float]:
        gains = np.array([row["gain_over_constant"][name] for row in rows])
        # Splits share tasks: the spread over splits is corrected as Nadeau and Bengio (2003) do, by test / training.
        tested = rows[0]["test_tasks"]
        total = len(np.unique(corpus.group))
        half = 2.262 * float(np.sqrt((1 / len(gains) + tested / (total - tested)) * gains.var(ddof=1)))
        return {"mean": float(gains.mean()), "half_width_95": half}

    names = ("critic", "turns", "counts")
    return {
        "logs": "tau-bench airline, gpt-4o", "tasks": len(np.unique(corpus.group)), "traces": len(corpus.reward),
        "events": len(corpus.features), "mean_outcome": float(corpus.reward.mean()), "splits": rows,
        "gain_over_constant": {name: interval(name) for name in names},
        "mean_loss": {name: float(np.mean([r["loss"][name] for r in rows])) for name in (*names, "constant")},
        "mean_calibration_error": float(np.mean([r["calibration_error"] for r in rows])),
    }  # fmt: skip


def keep(name: str, found: dict[str, Any]) -> None:
    """Put a section into the results, beside what other runs have put there meanwhile."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    versions = {library: importlib.metadata.version(library) for library in ("jax", "flax", "optax", "numpy", "scipy")}
    machine = {"device": str(jax.devices()[0]), "processor": platform.machine(), "cpu_count": os.cpu_count()}
    kept[name] = {**found, "machine": {**machine, **versions}}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main(wanted: list[str]) -> None:
    sections = {"named": named, "table": table, "speed": speed, "memory": memory, "contrast": contrast}
    if wanted and wanted[0] == "real":
        keep("real", real(wanted[1:]))
        return
    for name in wanted or sections:
        begun = time.process_time()
        found = sections[name]()
        keep(name, {**found, "cpu_seconds_of_section": time.process_time() - begun})


if __name__ == "__main__":
    main(sys.argv[1:])
