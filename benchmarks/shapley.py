"""Shapley estimators on games of known truth, beside shapiq's at equal numbers of evaluations.

    python benchmarks/shapley.py [acceptance|hard|interactions|intervals|speed|table|walks] ... [--seed S] [--beside N]

Default: all sections; `table` resumes. Results go to benchmarks/results/shapley.json, section by section. A shapiq call
is cut at 20 s of processor time and listed. Errors are `rel` = Σ(φ̂ − φ)² / Σφ², medians over seeds. In noisy games
both sides see v(∅) and v(N) exactly. `interactions` draws its games from --seed, 20 a cell, of which shapiq solves
--beside; peers of an earlier run on the same games are kept. About ten minutes of one idle core. Cells that were not
run are absent.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import itertools
import json
import logging
import math
import os
import platform
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

# Threads of shapiq's tree models wait for each other on a busy machine: 3 s a call instead of 0.1 s.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax

jax.config.update("jax_enable_x64", True)

import numpy as np  # noqa: E402

from benchmarks.shapley_games import GAMES  # noqa: E402
from estimators.shapley import (  # noqa: E402
    attainable_stderr,
    bound_constant,
    make_plan,
    mean_of_marginals,
    plan_walks,
    solve,
)
from estimators.shapley.sampling import generator, sobol_orders  # noqa: E402
from estimators.shapley.structured import ancestors_or_self, extensions  # noqa: E402
from graphs.worlds.games import FAMILIES, Game, closure, observe, random_forest  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "shapley.json"
CUT = 20.0
SEEDS, FIRST, HOPELESS = 10, 3, 5.0  # table: seeds a cell; after the first three, peers 5× behind the best stop
SHAPIQ = ("Permutation", "KernelSHAP", "KernelSHAP-paired", "Owen", "Stratified", "UnbiasedKernelSHAP-paired", "SVARM")
INTERACTIONS = (
    *("KernelSHAP-paired", "LeverageSHAP", "PolySHAP", "OddSHAP", "kADDSHAP-2", "kADDSHAP-3"),
    *("RegressionMSR", "ProxySHAP", "ProxySPEX", "Permutation", "SVARM"),
)
QUIET = logging.getLogger("lightgbm")
QUIET.setLevel(logging.ERROR)
CELLS = ((8, 60), (8, 100), (12, 150), (20, 200), (20, 800))


def rel(share: np.ndarray, game: Game) -> float:
    """Relative squared error."""
    return float(((np.asarray(share) - game.shapley) ** 2).sum() / (game.shapley**2).sum())


def evaluate(game: Game, coalitions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One evaluation per coalition; the endpoints without noise."""
    value = observe(game, coalitions, rng)
    if game.noisy:
        ends = ~coalitions.any(1) | coalitions.all(1)
        value[ends] = game.value(coalitions[ends])
    return value


def ours(game: Game, budget: int, seed: int, method: str = "rule") -> tuple[np.ndarray, np.ndarray]:
    """Shares and standard errors by the rule, or by walks."""
    rng, key = np.random.default_rng(10_000 + seed), jax.random.key(seed)
    if method == "walks":
        plan = plan_walks(key, game.n, budget)
        got = solve(plan, evaluate(game, plan.coalitions, rng))
        return np.asarray(got.share), np.asarray(got.stderr)
    noise = 0.5 if game.noisy else 0.0
    plan, choice = make_plan(key, game.n, budget, noise=noise, parent=game.parent, endpoints=1)
    full, empty = np.ones((1, game.n), bool), np.zeros((1, game.n), bool)
    got = solve(
        plan,
        evaluate(game, plan.coalitions, rng),
        full=game.value(full)[0],
        empty=game.value(empty)[0],
        above=ancestors_or_self(game.parent) if choice.chains else None,
        degrees=choice.degrees or (0,),
        interactions=choice.interactions,
    )
    return np.asarray(got.share), np.asarray(got.stderr)


def theirs(name: str, game: Game, budget: int, seed: int) -> np.ndarray:
    """Shares by a shapiq estimator."""
    import lightgbm
    import shapiq.approximator as approximator

    lightgbm.register_logger(QUIET)
    rng = np.random.default_rng(20_000 + seed)
    n = game.n
    make: dict[str, Callable[[], Any]] = {
        "Permutation": lambda: approximator.PermutationSamplingSV(n, random_state=seed),
        "KernelSHAP": lambda: approximator.KernelSHAP(n, random_state=seed),
        "KernelSHAP-paired": lambda: approximator.KernelSHAP(n, pairing_trick=True, random_state=seed),
        "Owen": lambda: approximator.OwenSamplingSV(n, random_state=seed),
        "Stratified": lambda: approximator.StratifiedSamplingSV(n, random_state=seed),
        "UnbiasedKernelSHAP-paired": lambda: approximator.UnbiasedKernelSHAP(n, pairing_trick=True, random_state=seed),
        "SVARM": lambda: approximator.SVARM(n, random_state=seed),
        "LeverageSHAP": lambda: approximator.LeverageSHAP(n, random_state=seed),
        "PolySHAP": lambda: approximator.PolySHAP(n, random_state=seed),
        "OddSHAP": lambda: approximator.OddSHAP(n, random_state=seed),
        "kADDSHAP-2": lambda: approximator.kADDSHAP(n, 2, random_state=seed),
        "kADDSHAP-3": lambda: approximator.kADDSHAP(n, 3, random_state=seed),
        "RegressionMSR": lambda: approximator.RegressionMSR(n, "SV", random_state=seed),
        "ProxySHAP": lambda: approximator.ProxySHAP(n, max_order=1, index="SV", random_state=seed),
        "ProxySPEX": lambda: approximator.ProxySPEX(n=n, max_order=1, index="SV", hpo=False, random_state=seed),
    }
    answer = make[name]().approximate(budget, lambda s: evaluate(game, np.atleast_2d(s).astype(bool), rng))
    return np.asarray(answer.get_n_order_values(1))


def interactions(seed: int, games: int = 20, beside: int = 5) -> dict[str, Any]:
    """Coverage on games of a family, and the mean error of ours and of shapiq's best five on the first `beside`.

    A peer that needs more evaluations than the budget, or solves fewer unknowns than it has, is left out.
    """
    games = max(games, beside)
    out: dict[str, Any] = {"seed": seed, "games": games, "games beside shapiq": beside, "cells": {}}
    earlier = json.loads(RESULTS.read_text()).get("interactions", {}) if RESULTS.exists() else {}
    if all(earlier.get(name) == out[name] for name in out if name != "cells"):
        out["cells"] = earlier["cells"]  # of the same games: peers are not run again
    for (n, budget), family in itertools.product(CELLS, GAMES):
        cell_name = f"{family}, n = {n}, budget {budget}"
        drawn = [GAMES[family](n, np.random.default_rng([seed, n, k])) for k in range(games)]
        answers = [ours(game, budget, seed + k) for k, game in enumerate(drawn)]
        pairs = list(zip(drawn, answers, strict=True))
        within_error = [np.abs(s - g.shapley) <= 1.96 * e + 1e-9 * np.abs(g.shapley).max() for g, (s, e) in pairs]
        mean = float(np.mean([rel(share, game) for game, (share, _) in pairs[:beside]]))
        known = out["cells"].get(cell_name, {}).get("peers")
        peers = known or beside_shapiq(drawn[:beside], budget, seed)
        out["cells"][cell_name] = cell = {
            "coverage": float(np.mean(within_error)),
            "rel": mean,
            "error of the best peer / ours": min(peers.values()) / max(mean, 1e-12),
            "peers": peers,
        }
        save("interactions", out)
        print(n, budget, family, cell, flush=True)
    return out


def beside_shapiq(games: list[Game], budget: int, seed: int) -> dict[str, float]:
    """Mean errors of shapiq's best five, of RegressionMSR and of ProxySPEX."""
    n, peers = games[0].n, dict[str, float]()
    for name in INTERACTIONS:
        unknowns = sum(math.comb(n, k) for k in range(int(name[-1]) + 1)) if name.startswith("kADD") else 0
        if unknowns > budget:
            continue
        found: list[float] = []
        for k, game in enumerate(games):
            share = within(CUT, functools.partial(theirs, name, game, budget, seed + k))
            if share is None:
                break
            found.append(rel(share, game))
        else:
            peers[name] = float(np.mean(found))
    best = sorted(peers, key=lambda name: peers[name])
    return {name: peers[name] for name in [*best[:5], *(x for x in ("RegressionMSR", "ProxySPEX") if x in best[5:])]}


class TooSlow(Exception):
    """A call ran past the cut."""


def within(seconds: float, call: Callable[[], np.ndarray]) -> np.ndarray | None:
    """The result of a call, None if it takes more processor time: the wall clock would cut it on a busy machine."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return call()
    except TooSlow:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def errors(family: str, n: int, budget: int, seeds: int, names: tuple[str, ...]) -> dict[str, float | str]:
    """Median error of each method on `seeds` random games."""
    out: dict[str, float | str] = {}
    games = [FAMILIES[family](n, np.random.default_rng(s)) for s in range(seeds)]
    for name in names:
        found = []
        for seed, game in enumerate(games):
            if name in ("rule", "walks"):
                found.append(rel(ours(game, budget, seed, name)[0], game))
                continue
            share = within(CUT, functools.partial(theirs, name, game, budget, seed))
            if share is None:
                out[name] = f"cut at {CUT:.0f} s"
                break
            found.append(rel(share, game))
        else:
            out[name] = float(np.median(found))
    return out


def acceptance() -> dict[str, Any]:
    """The single lines: smooth, spawn tree, two-additive, noisy against the bound."""
    seeds, n = 10, 300
    fast = ("Permutation", "KernelSHAP-paired", "Owen")
    out: dict[str, Any] = {"seeds": seeds, "n": n}
    ours_and_peers = ("rule", "walks", *fast)
    out["smooth, 100n"] = errors("logistic", n, 100 * n, seeds, ours_and_peers)
    out["spawn tree, 10n"] = errors("spawn_tree", n, 10 * n, seeds, ours_and_peers)
    out["two-additive, 2n"] = errors("two_additive", n, 2 * n, seeds, ("rule", "Permutation"))
    for family in ("bernoulli_logistic", "bernoulli_tree"):
        ratios = []
        for seed in range(seeds):
            game = FAMILIES[family](n, np.random.default_rng(seed))
            sizes = np.random.default_rng(seed).integers(1, n, 4000)
            lots = np.random.default_rng(seed + 1).random((4000, n))
            p = game.value(lots <= np.sort(lots, 1)[np.arange(4000), sizes - 1][:, None])
            weight = 1 / np.sqrt(sizes * (n - sizes))
            sigma2 = float((p * (1 - p) * weight).sum() / weight.sum())
            m = 100 * n
            error = float(((ours(game, m, seed)[0] - game.shapley) ** 2).mean())
            ratios.append(m * error / sigma2)
        out[f"{family}, m MSE / sigma^2 at 100n"] = {
            "median": float(np.median(ratios)),
            "mean": float(np.mean(ratios)),
            "1.25 C_n": 1.25 * bound_constant(n),
        }
    return out


def intervals() -> dict[str, Any]:
    """Coverage of share ± 1.96 stderr, and mean width against the width from the true error."""
    out: dict[str, Any] = {}
    pooled = []
    of_family: dict[str, list[float]] = {}
    for n, per_unit, seeds in ((16, 30, 200), (100, 10, 100), (100, 30, 100)):
        for family in FAMILIES:
            if family in ("additive", "two_additive"):
                continue  # exact: intervals of width 0
            game = FAMILIES[family](n, np.random.default_rng(0))
            got = [ours(game, per_unit * n, s) for s in range(seeds)]
            share, stderr = np.stack([g[0] for g in got]), np.stack([g[1] for g in got])
            error = np.abs(share - game.shapley)
            covered = float((error <= 1.96 * stderr + 1e-12).mean())
            width = float(stderr.mean() / np.sqrt((error**2).mean(0)).mean())
            out[f"{family}, n = {n}, {per_unit}n"] = {"coverage": covered, "width / oracle": width}
            pooled.append(covered)
            of_family.setdefault(family, []).append(covered)
    out["coverage of each family"] = {family: float(np.mean(cells)) for family, cells in of_family.items()}
    out["pooled coverage"] = float(np.mean(pooled))
    return out


def walks(seed: int, games: int = 400) -> dict[str, Any]:
    """Coverage of the shares that the rule takes from two or three pairs of orders, in games of 8 to 12 units."""
    out: dict[str, Any] = {}
    kinds = [*GAMES.values(), of_three]
    for pairs in (2, 3):
        held: list[float] = []
        for number in range(games):
            rng = np.random.default_rng([seed, pairs, number])
            n = int(rng.integers(8, 13))
            game = kinds[number % len(kinds)](n, rng)
            share, stderr = ours(game, 2 * pairs * (n - 1) + 2, int(rng.integers(2**31)))
            counts = (game.shapley != 0) & np.isfinite(stderr)
            held += (np.abs(share - game.shapley) <= 1.96 * stderr + 1e-12)[counts].tolist()
        out[f"{pairs} pairs"] = {"coverage": round(float(np.mean(held)), 4), "shares": len(held)}
    return out | {"seed": seed, "games": games}


def of_three(n: int, rng: np.random.Generator) -> Game:
    """1 where two, or all, of three units take part."""
    units, least = rng.choice(n, 3, replace=False), int(rng.integers(2, 4))
    share = np.zeros(n)
    share[units] = 1 / 3
    return Game("of three", lambda s: (s[:, units].sum(1) >= least) * 1.0, share)


def hard() -> dict[str, Any]:
    """Where nothing works, does the reported error say so? Σ stderr² / Σφ² beside the true relative error."""
    out: dict[str, Any] = {}
    for family, n, per_unit in (("vote", 300, 10), ("bernoulli_logistic", 300, 10), ("bernoulli_tree", 300, 10)):
        true, reported = [], []
        for seed in range(5):
            game = FAMILIES[family](n, np.random.default_rng(seed))
            share, stderr = ours(game, per_unit * n, seed)
            true.append(rel(share, game))
            reported.append(float((stderr**2).sum() / (game.shapley**2).sum()))
        out[f"{family}, n = {n}, {per_unit}n"] = {"rel": np.median(true), "reported": np.median(reported)}
    return out


def speed() -> dict[str, Any]:
    """10,000 evaluations of a 300-agent spawn tree; 4,096 extensions of a forest of 300. Interleaved, best of 21."""
    n, budget = 300, 10_000
    game = FAMILIES["spawn_tree"](n, np.random.default_rng(0))
    assert game.parent is not None
    orders = budget // n // 2
    marginals = along_orders(game, np.random.default_rng(0))
    reduce = jax.jit(lambda x: mean_of_marginals(x, antithetic=True))

    def walk(seed: int) -> np.ndarray:
        half = sobol_orders(generator(jax.random.key(seed)), n, orders)
        both = np.stack([half, half[:, ::-1]], 1).reshape(-1, n)
        return np.asarray(reduce(marginals(both))[0])

    start = time.perf_counter()
    walk(0)
    first = time.perf_counter() - start
    parent, sample = (
        random_forest(n, np.random.default_rng(0)),
        np.random.default_rng(1).random((4096, n), dtype=np.float32),
    )
    times: dict[str, list[float]] = {"ours": [], "shapiq": [], "extensions": [], "argsort": []}
    error: dict[str, list[float]] = {"ours": [], "shapiq": []}
    for seed in range(21):
        for name, call in {
            "ours": lambda: walk(seed),  # noqa: B023
            "shapiq": lambda: theirs("Permutation", game, budget, seed),  # noqa: B023
            "extensions": lambda: extensions(jax.random.key(seed), parent, 4096),  # noqa: B023
            "argsort": lambda: np.argsort(sample, axis=-1),
        }.items():
            start = time.perf_counter()
            answer = call()
            times[name].append(time.perf_counter() - start)
            if name in error:
                error[name].append(rel(answer, game))
    best = {name: min(t) for name, t in times.items()}
    return {
        "seconds": best,
        "first call of ours, compilation included": first,
        "shapiq / ours": best["shapiq"] / best["ours"],
        "extensions / argsort": best["extensions"] / best["argsort"],
        "rel of ours": float(np.median(error["ours"])),
        "rel of shapiq": float(np.median(error["shapiq"])),
    }


def along_orders(game: Game, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """What units add along orders of a spawn tree, without coalitions: a unit works once its last ancestor joined."""
    assert game.parent is not None
    above = closure(game.parent)
    n = game.n
    # The same draws as `graphs.worlds.games.spawn_tree` makes after its forest.
    random_forest(n, rng)
    w = rng.random(n)
    i = rng.integers(0, n, n)
    j = (i + rng.integers(1, n, n)) % n
    c = rng.random(n) / 10
    total = w.sum() + c.sum()
    w, c = w / total, c / total
    depth = above.sum(1)
    by_depth = [np.flatnonzero(depth == d) for d in range(2, depth.max() + 1)]
    parent = game.parent

    def marginals(orders: np.ndarray) -> np.ndarray:
        count = len(orders)
        ranks = np.empty((n, count), np.int32)
        np.put_along_axis(ranks, np.ascontiguousarray(orders.T), np.arange(n, dtype=np.int32)[:, None], axis=0)
        done = ranks.copy()
        for units in by_depth:
            done[units] = np.maximum(done[units], done[parent[units]])
        both = np.maximum(done[i], done[j])
        column = np.arange(count, dtype=np.int64) * n
        at = np.concatenate([(done + column).ravel(), (both + column).ravel()])
        worth = np.concatenate([np.repeat(w, count), np.repeat(c, count)])
        added = np.bincount(at, worth, n * count).reshape(count, n)
        return np.take_along_axis(added, ranks.T, axis=1)

    return marginals


def table(sizes: tuple[int, ...] = (16, 100, 300)) -> dict[str, Any]:
    """Families × n × budgets: is what the rule chooses within 2× of the best of all?

    Cells of an earlier run with fewer seeds tell which peers can still be the best; those are run on all seeds.
    """
    cells = json.loads(RESULTS.read_text()).get("table", {}).get("cells", {}) if RESULTS.exists() else {}
    for n in sizes:
        for per_unit in (10, 30, 100):
            skip: set[str] = set()
            for family in FAMILIES:
                name = f"{family}, n = {n}, {per_unit}n"
                cell = cells.get(name, {"seeds": 0})
                if cell["seeds"] < SEEDS:
                    cells[name] = measure(family, n, per_unit * n, cell, skip)
                    save("table", summary(cells))
                    print(name, f"{cells[name]['rule / best']:.2f} of", cells[name]["best"], flush=True)
    return summary(cells)


def measure(family: str, n: int, budget: int, earlier: dict[str, Any], skip: set[str]) -> dict[str, Any]:
    """One cell: all on the first seeds, then those that can still be the best on all; `skip` learns who is cut."""
    peers = tuple(s for s in SHAPIQ if s not in skip)
    few = earlier["seeds"] or FIRST
    first = earlier["rel"] if earlier["seeds"] else errors(family, n, budget, FIRST, ("rule", "walks", *peers))
    skip |= {k for k, e in first.items() if isinstance(e, str)}
    least = max(min(float(e) for e in first.values() if not isinstance(e, str)), 1e-10)
    near = [k for k, e in first.items() if not isinstance(e, str) and max(e, 1e-10) <= HOPELESS * least]
    full = errors(family, n, budget, SEEDS, tuple(dict.fromkeys(("rule", "walks", *near))))
    skip |= {k for k, e in full.items() if isinstance(e, str)}
    numbers = {k: max(float(e), 1e-10) for k, e in full.items() if not isinstance(e, str)}
    best = min(numbers, key=lambda k: numbers[k])
    stopped = [k for k, e in first.items() if not isinstance(e, str) and k not in full]
    return {
        "rel": first | full | {s: f"cut at {CUT:.0f} s" for s in skip},
        "seeds": SEEDS,
        f"seeds of those {HOPELESS:.0f}x behind the best": {k: few for k in stopped},
        "best": best,
        "rule / best": numbers["rule"] / numbers[best],
    }


def summary(cells: dict[str, Any]) -> dict[str, Any]:
    """The share of cells where the rule is within 2× of the best, and the others."""
    good = [c["rule / best"] <= 2 for c in cells.values()]
    lost = {k: why(k, c) for k, c in cells.items() if c["rule / best"] > 2}
    return {
        "within 2x": sum(good) / max(len(good), 1),
        "cells measured": len(good),
        "not within 2x": lost,
        "cells": cells,
    }


def why(name: str, cell: dict[str, Any]) -> str:
    """Why the rule lost a cell."""
    behind = f"{cell['rule / best']:.1f} times the error of {cell['best']}"
    if cell["rel"][cell["best"]] > 0.5:
        return f"{behind}: no method works here, the least error is that of answering about zero; see section `hard`"
    if name.startswith("pivot_max"):
        return f"{behind}: nearly all is one unit's, which few walks show; a regression has the rest to learn first"
    if name.startswith("unanimity"):
        return (
            f"{behind}: eight at once is a term of high order, which means by size of team find better than slopes do"
        )
    return behind


def save(section: str, content: dict[str, Any]) -> None:
    """Write one section; keep the others."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    versions = {p: importlib.metadata.version(p) for p in ("jax", "numpy", "scipy")}
    peers = {d.name: d.version for d in importlib.metadata.distributions(name="shapiq")}
    versions["shapiq"] = peers.get("shapiq") or kept.get(section, {}).get("about", {}).get("shapiq", "not installed")
    about = {"python": platform.python_version(), "device": str(jax.devices()[0]), "cores": 2, **versions}
    kept[section] = {"about": about, **content}
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    """Run the sections named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*")
    parser.add_argument("--seed", type=int, default=0, help="of the games of `interactions`")
    parser.add_argument(
        "--beside", type=int, default=5, help="how many games of a cell of `interactions` shapiq solves"
    )
    arguments = parser.parse_args()
    sections: dict[str, Callable[[], dict[str, Any]]] = {
        "speed": speed,
        "hard": hard,
        "interactions": functools.partial(interactions, arguments.seed, beside=arguments.beside),
        "intervals": intervals,
        "walks": functools.partial(walks, arguments.seed),
        "acceptance": acceptance,
        "table": table,
    }
    for name in arguments.sections or sections:
        save(name, sections[name]())
        print("done:", name, flush=True)


if __name__ == "__main__":
    # `attainable_stderr` prints what no estimator can beat: 300 agents, success or failure, 100n evaluations.
    print(f"bound at n = 300, 30,000 evaluations: {attainable_stderr(300, 30_000, 0.5):.4f} a share; mean share 1/300")
    main()
