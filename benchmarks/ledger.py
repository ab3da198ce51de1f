"""The ledger against its parts, fixed budgets and naive stacking, where the truth is known; the stack; and speed.

    python benchmarks/ledger.py [table|stack|variance|heterogeneous|speed] ...     (default: all)

Results go to benchmarks/results/ledger.json, section by section. Errors are `rel` = Σ(x − truth)² / Σ truth² over all
events: 1 is as bad as answering zero. Speed is a multiple of one `segment_sum` over the same events, timed in turns.
Above 32 MiB the C library gives memory back after every call, and what a call costs is then mostly the pages that it
touches anew; with `MALLOC_MMAP_THRESHOLD_` and `MALLOC_TRIM_THRESHOLD_` high, "speed, freed memory kept" is written.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import credit  # noqa: E402
import estimators  # noqa: E402
from credit.ledger import Reconcile  # noqa: E402
from estimators.composition.exact import exact_partition  # noqa: E402
from estimators.composition.least_squares import Claims, reconcile  # noqa: E402
from graphs.event_graph import EventGraph, EventType  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "ledger.json"
EVENTS = 40_000  # one shape for all worlds of the table


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Traces of a world as [traces, events], with their true increments."""

    truth: np.ndarray
    expected: np.ndarray
    reward: np.ndarray
    agent: np.ndarray  # of each position

    @property
    def graph(self) -> EventGraph:
        traces, events = self.truth.shape
        trace = np.repeat(np.arange(traces), events)
        graph, _, _ = credit.from_columns(
            group=trace,
            trace=trace,
            agent=np.tile(self.agent, traces),
            reward=np.zeros(traces * events),
            events=EVENTS,
            traces=EVENTS // 8,
            agents=EVENTS // 2,
        )
        return graph


def additive(rng: np.random.Generator, luck: float) -> Drawn:
    """40 events of 5 agents, 30 % of them active with increments N(0, .3²); the reward is their sum, and luck."""
    truth = np.where(rng.random((1000, 40)) < 0.3, 0.3 * rng.normal(size=(1000, 40)), 0)
    reward = truth.sum(axis=1) + luck * rng.normal(size=1000)
    return Drawn(truth, np.zeros(1000), reward, np.repeat(np.arange(5), 8))


def conjunction(rng: np.random.Generator) -> Drawn:
    """R = AND of 3 decisions with random probabilities among 5 events that change nothing; 4 agents of 2 events."""
    p = rng.uniform(0.3, 0.9, (4000, 3))
    good = rng.random((4000, 3)) < p
    so_far = np.concatenate([np.ones((4000, 1), bool), np.logical_and.accumulate(good, axis=1)], axis=1)
    to_come = np.concatenate([np.cumprod(p[:, ::-1], axis=1)[:, ::-1], np.ones((4000, 1))], axis=1)
    value = np.where(so_far, to_come, 0)
    truth = np.zeros((4000, 8))
    truth[:, [0, 3, 6]] = np.diff(value, axis=1)
    return Drawn(truth, value[:, 0], value[:, -1], np.repeat(np.arange(4), 2))


@dataclasses.dataclass(frozen=True)
class Faults:
    """What is wrong with the claims or their errors."""

    understated: float = 1.0  # the siblings' errors are this many times what is stated
    shared: float = 0.0  # correlation of the siblings' and the agents' errors with the critic's
    contrast: bool = False  # the siblings' claims are contrasts, twice the increment


def rows_of(world: Drawn, faults: Faults, rng: np.random.Generator) -> dict[str, Any]:
    """Relative errors of the ledger under every rule, of its parts, of budgets and of naive stacking."""
    graph, traces = world.graph, len(world.truth)
    noise = rng.normal(size=world.truth.shape)
    own = rng.normal(size=world.truth.shape)
    own = faults.shared * noise + np.sqrt(1 - faults.shared**2) * own
    block = np.equal.outer(world.agent, np.unique(world.agent)).astype(float)
    fresh = rng.normal(size=(traces, block.shape[1]))
    of_agents = faults.shared * noise @ block / np.sqrt(block.sum(axis=0)) + np.sqrt(1 - faults.shared**2) * fresh

    critic = world.truth + 0.10 * noise
    picked = rng.random(world.truth.shape) < 0.25
    sibling = np.where(picked, (2 if faults.contrast else 1) * world.truth + 0.05 * faults.understated * own, np.nan)
    agents = world.truth @ block + 0.15 * of_agents

    def claim(values: np.ndarray, source: str, stderr: float, unit: str = "event") -> credit.Credit:
        flat = np.full(graph.num_events, np.nan)
        flat[: values.size] = values.ravel()
        return credit.claim(graph, flat, estimand="increment", source=source, stderr=stderr, unit=unit, centred=True)

    claims = [
        claim(critic, "critic", 0.10),
        claim(sibling, "siblings", 0.05),
        claim(agents @ block.T, "agents", 0.15, unit="agent"),
    ]
    reward, expected = np.full((2, graph.num_traces), np.nan)
    reward[:traces], expected[:traces] = world.reward, world.expected

    def rel(values: np.ndarray) -> float:
        return float(((values - world.truth) ** 2).sum() / (world.truth**2).sum())

    def composed(**options: Any) -> tuple[float, credit.Ledger]:
        ledger = credit.compose(graph, reward, claims, expected=expected, **options)
        found = np.asarray(ledger.increments)[: world.truth.size].reshape(world.truth.shape)
        return rel(found), ledger

    even = agents @ (block / block.sum(axis=0)).T
    filled = np.where(picked, sibling, 0)
    out: dict[str, Any] = {}
    for name, options in (
        ("increments", {}),
        ("reconcile, tau inf", {"rule": Reconcile()}),
        ("reconcile, tau fitted", {"rule": Reconcile(tau="fit")}),
        ("reconcile, tau 0", {"rule": Reconcile(tau=0.0)}),
    ):
        out[name], ledger = composed(**options)
        if name == "reconcile, tau fitted":
            out["chi squared"] = {" x ".join(k): round(v, 3) for k, v in ledger.chi_squared.items() if np.isfinite(v)}
            out["coverage"] = ledger.coverage
    if faults.contrast:
        effect = dataclasses.replace(claims[1], estimand="effect")
        refused = credit.compose(graph, reward, [claims[0], effect], expected=expected).refused
        out["declared a contrast"] = refused.get("siblings", "not refused")
    return out | {
        "critic alone": rel(critic),
        "siblings alone": rel(filled),
        "agents, even": rel(even),
        "budgets 1/3": rel((critic + filled + even) / 3),
        "naive sum": rel(critic + filled + even),
    }


def table() -> dict[str, Any]:
    """Every world with honest errors, and every fault."""
    worlds: dict[str, tuple[Callable[[np.random.Generator], Drawn], Faults]] = {
        "additive": (lambda rng: additive(rng, 0.0), Faults()),
        "additive with luck, sd 0.5": (lambda rng: additive(rng, 0.5), Faults()),
        "AND": (conjunction, Faults()),
        "additive, errors of siblings stated 4x too small": (lambda rng: additive(rng, 0.0), Faults(understated=4)),
        "additive, siblings and agents share the critic's rollouts": (
            lambda rng: additive(rng, 0.0),
            Faults(shared=0.9),
        ),
        "additive, contrasts passed as increments": (lambda rng: additive(rng, 0.0), Faults(contrast=True)),
        "AND, contrasts passed as increments": (conjunction, Faults(contrast=True)),
    }
    out = {}
    for seed, (name, (make, faults)) in enumerate(worlds.items()):
        rng = np.random.default_rng(seed)
        out[name] = rows_of(make(rng), faults, rng)
        print(name, json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in out[name].items()}))
    return out


SIDES = 2


class Team:
    """A random team: the lead delegates, two workers message, the lead closes; R is Bernoulli of a random table."""

    kinds = (EventType.ORCHESTRATOR_DECISION, EventType.MESSAGE, EventType.MESSAGE, EventType.AGGREGATE)
    agents = (0, 1, 2, 0)

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.steps = len(self.kinds)
        self.choices = np.indices((SIDES,) * self.steps).reshape(self.steps, -1).T
        self.success = rng.beta(0.6, 0.6, (SIDES,) * self.steps)
        self.policy = [rng.dirichlet([3.0] * SIDES, (SIDES,) * t) for t in range(self.steps)]
        self.chance = np.ones(len(self.choices))
        for t in range(self.steps):
            self.chance *= self.policy[t][tuple(self.choices[:, : t + 1].T)]
        self.q = [np.zeros(0)] * self.steps
        value = self.success
        for t in reversed(range(self.steps)):
            self.q[t] = value
            value = (self.policy[t] * value).sum(axis=-1)
        self.start = float(value)

    def increments(self, noise: list[float], rng: np.random.Generator) -> np.ndarray:
        """Centred increments from action values with errors of the given sd for each step: [choices, steps]."""
        columns = []
        for t in range(self.steps):
            q = self.q[t] + noise[t] * rng.normal(size=self.q[t].shape)
            centred = q - (self.policy[t] * q).sum(axis=-1, keepdims=True)
            columns.append(centred[tuple(self.choices[:, : t + 1].T)])
        return np.stack(columns, axis=1)

    def scores(self) -> np.ndarray:
        """Gradient of log π of each step by its own logits: [choices, steps, parameters]."""
        sizes = [self.policy[t].size for t in range(self.steps)]
        out = np.zeros((len(self.choices), self.steps, sum(sizes)))
        for t in range(self.steps):
            for i, c in enumerate(self.choices):
                block = np.zeros(self.policy[t].shape)
                block[tuple(c[:t])] = -self.policy[t][tuple(c[:t])]
                block[tuple(c[: t + 1])] += 1
                out[i, t, sum(sizes[:t]) : sum(sizes[: t + 1])] = block.ravel()
        return out

    def graph(self, traces: int, group: int) -> EventGraph:
        trace = np.repeat(np.arange(traces), self.steps)
        graph, _, _ = credit.from_columns(
            group=trace // group,
            trace=trace,
            agent=np.tile(self.agents, traces),
            reward=np.zeros(len(trace)),
            events=traces * self.steps,
            traces=traces,
            agents=traces * 3,
        )
        kinds = np.tile(np.array(self.kinds, np.int32), traces)
        return dataclasses.replace(graph, event_type=jnp.asarray(kinds))


def stack() -> dict[str, Any]:
    """The stack on random teams: relative error, bias, variance and what the agent-wise scale does."""
    traces, group, teams = 1024, 8, 12
    fresh = [Team(1000 + seed) for seed in range(teams)]
    graph = fresh[0].graph(traces, group)
    rows: dict[str, list[float]] = {}
    for team in fresh:
        rng = team.rng
        # Messages: J siblings replayed k times; orchestrator: a critic with its own errors.
        claimed = team.increments([0.12, 0.10, 0.10, 0.12], rng)
        true = team.increments([0.0] * team.steps, rng)
        drawn = rng.choice(len(team.choices), traces, p=team.chance)
        outcome = (rng.random(traces) < team.success[tuple(team.choices[drawn].T)]).astype(float)
        flat = claimed[drawn].ravel()
        messages, critic = (
            credit.claim(graph, flat, estimand="increment", source=s, stderr=0.1, centred=True, own_outcome=False)
            for s in ("messages", "orchestrator")
        )
        expected = np.full(traces, team.start)
        made = credit.stack(graph, outcome, messages, critic, expected=expected)
        entries = np.asarray(made.ledger.increments).reshape(traces, -1)
        truth = true[drawn]

        def rel(values: np.ndarray, truth: np.ndarray = truth) -> float:
            return float(((values - truth) ** 2).sum() / (truth**2).sum())

        is_message = np.array([k == EventType.MESSAGE for k in team.kinds])
        record = {
            "rel, stack": rel(entries),
            "rel, messages alone": rel(np.where(is_message, entries, 0)),
            "rel, orchestrator alone": rel(np.where(is_message, 0, entries)),
            "rel, agent-wise normaliser (R - b) / sd": rel(
                np.asarray(credit.dr_mas(graph, outcome).advantage).reshape(traces, -1)
            ),
        }
        # Exact bias and variance: every sequence of choices and both outcomes, with the coefficients of this batch.
        beta = np.asarray(made.unscaled.beta)[:, 0]
        scores = team.scores()
        masked = np.stack([np.where(is_message, claimed, 0), np.where(is_message, 0, claimed)])
        both = np.tensordot(beta, masked, 1)
        others = both.sum(axis=1, keepdims=True) - both
        win = team.success[tuple(team.choices.T)]
        weight = np.concatenate([team.chance * win, team.chance * (1 - win)])
        results = np.concatenate([np.ones_like(win), np.zeros_like(win)])[:, None]
        exact = np.einsum("i,ij,ijp->p", weight, results * np.ones((1, team.steps)), np.tile(scores, (2, 1, 1)))
        for name, taken in (
            ("RLOO", 0 * others),
            ("messages only", None),
            ("orchestrator only", None),
            ("stack", others),
        ):
            if taken is None:
                part = masked[0] * beta[0] if name == "messages only" else masked[1] * beta[1]
                taken = part.sum(axis=1, keepdims=True) - part
            advantage = results - team.start - np.tile(taken, (2, 1))
            terms = np.einsum("ij,ijp->ip", advantage, np.tile(scores, (2, 1, 1)))
            mean = weight @ terms
            record[f"bias, {name}"] = float(np.linalg.norm(mean - exact) / np.linalg.norm(exact))
            record[f"variance, {name}"] = float(weight @ ((terms - mean) ** 2).sum(axis=1))
        # The scale: the same batch's gradient after it, against the exact one, on its best multiple.
        for name, signal in (("before", made.unscaled), ("after", made.signal)):
            advantage = np.asarray(signal.credit.advantage).reshape(traces, -1)
            found = np.einsum("ij,ijp->p", advantage, scores[drawn]) / traces
            record[f"cosine with the gradient, {name} the scale"] = float(
                found @ exact / np.linalg.norm(found) / np.linalg.norm(exact)
            )
        # Its bias in the mean: the exact advantages divided by the spread that each agent's have, on the best multiple.
        spread = np.zeros(3)
        advantage = results - team.start - np.tile(others, (2, 1))
        for a in range(3):
            mine = np.array(team.agents) == a
            values, w = advantage[:, mine], np.repeat(weight[:, None], mine.sum(), axis=1)
            centre = (w * values).sum() / w.sum()
            spread[a] = np.sqrt((w * (values - centre) ** 2).sum() / w.sum())
        scaled = np.einsum("i,ij,ijp->p", weight, advantage / spread[list(team.agents)], np.tile(scores, (2, 1, 1)))
        scaled *= scaled @ exact / (scaled @ scaled)
        record["bias that the agent-wise scale adds, best multiple"] = float(
            np.linalg.norm(scaled - exact) / np.linalg.norm(exact)
        )
        record["variance, stack over RLOO"] = record["variance, stack"] / record["variance, RLOO"]
        for key, number in record.items():
            rows.setdefault(key, []).append(number)
    out = {k: {"median": statistics.median(v), "worst": max(v), "least": min(v)} for k, v in rows.items()}
    for key, number in out.items():
        print(f"{key:60s} median {number['median']:.4g}  least {number['least']:.4g}  worst {number['worst']:.4g}")
    return out


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


def heterogeneous() -> dict[str, Any]:
    """Variance of `control` over RLOO where claims are exact on 72 tasks and pure noise on 8 of another size."""
    groups, traces, steps, seeds = 80, 8, 4, 20
    task = np.repeat(np.arange(groups), traces)
    trace = np.repeat(np.arange(len(task)), steps)
    out = {}
    for size in (1.0, 2.0, 4.0, 10.0, 100.0):
        noisy = task < groups // 10
        unit = np.where(noisy, size, 1.0)[:, None]
        sums = {name: np.zeros(2) for name in ("exact", "noise", "all")}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            choices = rng.integers(0, 2, (len(task), steps))
            other = np.where(noisy[:, None], rng.integers(0, 2, choices.shape), choices)
            graph, reward, rows = credit.from_columns(
                group=task[trace], trace=trace, reward=(unit * choices).sum(axis=1)[trace]
            )
            amount = np.full(graph.num_events, np.nan)
            amount[rows.event] = (unit * (other - 0.5)).ravel()
            given = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
            for k, claims in enumerate(([given], [])):
                advantage = estimators.control_advantage(graph, reward, claims).credit.advantage
                terms = np.asarray(rows.gather(advantage)).reshape(choices.shape) * (choices - 0.5)
                for name, where in (("exact", ~noisy), ("noise", noisy), ("all", noisy | True)):
                    sums[name][k] += (terms[where] ** 2).sum()
        out[f"size {size:g}"] = {name: float(with_claims / without) for name, (with_claims, without) in sums.items()}
        print(f"size {size:g}", out[f"size {size:g}"])
    return out


def speed(sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)) -> dict[str, Any]:
    """Three claims over five levels, and quantisation, as multiples of one segment sum; float32."""
    out: dict[str, Any] = {}
    jax.config.update("jax_enable_x64", False)  # as trainers have it
    for n in sizes:
        rng = np.random.default_rng(0)
        turn = np.sort(rng.integers(0, n // 4, n)).astype(np.int32)
        counts = (n, n // 4, n // 40, n // 80, max(n // 4000, 1))
        parents = [turn] + [np.sort(rng.integers(0, b, a)).astype(np.int32) for a, b in itertools.pairwise(counts[1:])]
        trace = parents[0]
        for parent in parents[1:]:
            trace = parent[trace]
        draw = {k: jnp.asarray(rng.normal(size=k), jnp.float32) for k in set(counts)}
        errors = {k: jnp.asarray(rng.uniform(0.1, 1, k), jnp.float32) for k in set(counts)}
        nobody = {k: jnp.zeros((0, k), jnp.float32) for k in counts}
        claims = tuple(
            Claims(draw[k][None], errors[k][None]) if level in (0, 1, 2) else Claims(nobody[k], nobody[k])
            for level, k in enumerate(counts)
        )
        parents = tuple(map(jnp.asarray, parents))
        ids, total = jnp.asarray(trace), draw[counts[-1]]
        where, scored = jnp.ones(n, bool), jnp.ones(counts[-1], bool)
        tight, halved = _between_grids(np.asarray(draw[n]), trace, np.asarray(total))
        runs: dict[str, Callable[[], Any]] = {
            "segment_sum": lambda ids=ids, x=draw[n], m=counts[-1]: _sum(x, ids, m),
            "reconcile": lambda c=claims, p=parents, t=total, s=scored: reconcile(c, p, t, s, unexplained_variance=0.5),
            "reconcile, by channel": lambda c=claims, p=parents, t=total, s=scored: reconcile(
                c, p, t, s, unexplained_variance=0.5, channels=((0,), (1,), (2,), (), ())
            ),
            "quantisation": lambda x=draw[n], i=ids, w=where, t=total: exact_partition(x, i, w, t),
            "quantisation, finer grids tried": lambda x=tight, i=ids, w=where, t=halved: exact_partition(x, i, w, t),
        }
        samples: dict[str, list[float]] = {name: [] for name in runs}
        for run in runs.values():
            jax.block_until_ready(run())
        for _ in range(15 if n <= 1_000_000 else 5):
            for name, run in runs.items():
                begin = time.perf_counter()
                jax.block_until_ready(run())
                samples[name].append(time.perf_counter() - begin)
        best = {name: min(times) for name, times in samples.items()}
        row: dict[str, Any] = {"seconds": best}
        row["multiples"] = {name: best[name] / best["segment_sum"] for name in runs if name != "segment_sum"}
        out[str(n)] = row
        print(n, {k: round(v, 5) for k, v in best.items()}, {k: round(v, 1) for k, v in row["multiples"].items()})
        if n == 1_000_000:
            compiled = reconcile.lower(claims, parents, total, scored, unexplained_variance=0.5).compile()
            memory = compiled.memory_analysis()
            arrays = (memory.temp_size_in_bytes + memory.output_size_in_bytes) / (4 * n)
            row["arrays of the event size, beside the arguments"] = arrays
            print("memory, arrays of the event size:", round(arrays, 2))
    for what, (small, large) in {"": (sizes[0], sizes[-1]), ", beyond the caches": sizes[-2:]}.items():
        span = np.log(large / small)
        for name in out[str(sizes[0])]["seconds"]:
            pair = [out[str(size)]["seconds"] for size in (small, large)]
            cost, unit = (np.log(pair[1][key] / pair[0][key]) / span for key in (name, "segment_sum"))
            out[f"exponent of {name}{what}"] = float(cost)
            out[f"exponent of {name} over that of segment_sum{what}"] = float(cost - unit)
            print(f"exponent of {name}{what}: {cost:.3f}, of its multiple {cost - unit:.3f}")
    return out


def _between_grids(values: np.ndarray, trace: np.ndarray, total: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Cells and totals for which quantisation tries other grids in vain: trace 0 lies on the next finer grid only."""
    here = trace == 0
    values, total = values.astype(np.float64), total.copy()
    values[here] -= values[here].mean()
    values[here] *= 1.0001 * 2.0**11 / np.abs(values[here]).sum()
    total[0] = 1.5 * 2.0 ** (12 - 24)
    return jnp.asarray(values, jnp.float32), jnp.asarray(total)


_sum = jax.jit(lambda x, ids, num: jax.ops.segment_sum(x, ids, num_segments=num), static_argnums=2)

SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "table": table,
    "stack": stack,
    "variance": variance,
    "heterogeneous": heterogeneous,
    "speed": speed,  # last: it turns 64 bits off
}


def main(names: list[str]) -> None:
    """Run the sections named and store each beside the others."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or list(SECTIONS):
        kept = name == "speed" and "MALLOC_MMAP_THRESHOLD_" in os.environ
        results["speed, freed memory kept" if kept else name] = {
            "machine": f"{platform.machine()}, {jax.default_backend()}, Python {platform.python_version()}",
            "load average at the start": os.getloadavg()[0],
            "versions": {library: version(library) for library in ("jax", "numpy")},
            "results": SECTIONS[name](),
        }
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
