"""The ledger under every rule against its parts, fixed budgets and naive stacking, where the truth is known.

Errors are `rel` = Σ(x − truth)² / Σ truth² over all events: 1 is as bad as answering zero.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import credit
from credit.ledger import Reconcile
from graphs.event_graph import EventGraph

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
        contrast = dataclasses.replace(claims[1], estimand="contrast")
        refused = credit.compose(graph, reward, [claims[0], contrast], expected=expected).refused
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
