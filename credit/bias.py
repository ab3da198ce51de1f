"""Bias of every method, as an exact number: its mean gradient over all possible groups of traces.

All K-tuples of a `Micro`'s traces are run through the method in float64, each as a batch of one group:

    g(τ_1 … τ_K) = (1/K) Σ_i Σ_e A_e ∇ log π(e)
    bias = |E g − ∇J| / |∇J|        variance = E|g|² − |E g|²

Advantage error is measured after the mean of A in each state (history) is removed, which is what a state-dependent
baseline may add: A° = A − E[A | h]. With D = Q − V,

    error = E Σ_e (A°_e − D_e)² / E Σ_e D_e²
    rank  = Kendall's tau-b between E[A° | h, a] and D(h, a) over all (h, a); numbers within 1e-9 are tied
    sign  = the share of decisions whose A° has the sign of D, each decision weighted with its probability
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credit.methods import METHODS
from graphs.event_graph import EventGraph
from graphs.micro import MICRO, Micro

__all__ = ["NOT_MEASURED", "QUICK", "VARIANTS", "Row", "markdown", "measure", "rows"]

NOT_MEASURED: dict[str, str] = {
    "c3": "its samples are replay trees, not independent traces",
    "magrpo": "its samples are replay trees, not independent traces",
}
"""Registered methods without a row, and why."""

VARIANTS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "gae lambda=1": ("gae", {"lambda_": 1.0}, False),
    "dr_grpo x K/(K-1)": ("dr_grpo", {}, True),
}
"""Rows beyond a method's defaults: method, options, and whether advantages are multiplied by K / (K − 1)."""

QUICK: tuple[str, ...] = ("spawn-additive", "stop-rewards")
"""Worlds of the quick table."""

_K, _EVENTS, _AGENTS, _CHUNK = 3, 4, 4, 512  # one shape for all worlds and K: one compilation a method
_TIE = 1e-9


@dataclasses.dataclass(frozen=True)
class Row:
    """Scores of one method in one world at one group size."""

    method: str
    world: str
    k: int
    bias: float
    variance: float
    error: float
    rank: float
    sign: float


def x64() -> contextlib.AbstractContextManager[Any]:
    """A context with 64 bits enabled; older JAX has it under `jax.experimental`."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return importlib.import_module("jax.experimental").enable_x64(True)


def rows(worlds: tuple[str, ...] = tuple(MICRO), methods: tuple[str, ...] | None = None) -> Iterator[Row]:
    """Rows of methods and variants (all by default), in each world, at K = 2 and 3."""
    for name in methods or (*(m for m in METHODS if m not in NOT_MEASURED), *VARIANTS):
        for world, k in itertools.product(worlds, (2, 3)):
            yield measure(name, MICRO[world], k)


def measure(name: str, world: Micro, k: int) -> Row:
    """The scores of one method or variant in one world with groups of K traces."""
    rescaled = VARIANTS.get(name, (name, {}, False))[2]
    tuples, batches = _batches(world.name, k)
    with x64():
        run = _compiled(name)
        parts = [np.asarray(run(*jax.tree.map(jnp.asarray, batch))) for batch in batches]
    advantage = np.concatenate(parts)[: len(tuples)] * (k / (k - 1) if rescaled else 1.0)
    return _scores(name, world, k, tuples, advantage)


@functools.cache
def _compiled(name: str) -> Any:
    method, options, _ = VARIANTS.get(name, (name, {}, False))
    fn, needs = METHODS[method].fn, METHODS[method].needs

    def one(graph: EventGraph, reward: jax.Array, step: jax.Array, evidence: dict[str, jax.Array]) -> jax.Array:
        given = {need: evidence[need] for need in needs}
        return fn(graph, reward, event_reward=step, **given, **options).advantage

    return jax.jit(jax.vmap(one))


@functools.cache
def _batches(world_name: str, k: int) -> tuple[np.ndarray, list[Any]]:
    """All K-tuples of traces [n, K], and the same as stacked graphs with evidence, in chunks of one shape."""
    world = MICRO[world_name]
    tuples = np.array(list(itertools.product(range(len(world.traces)), repeat=k)))
    graph = jax.tree.map(np.asarray, world.batch().graph)
    packed = [_pack(world, graph, members) for members in tuples]
    packed += [packed[0]] * (-len(packed) % _CHUNK)
    chunks = [packed[i : i + _CHUNK] for i in range(0, len(packed), _CHUNK)]
    return tuples, [jax.tree.map(lambda *leaves: np.stack(leaves), *chunk) for chunk in chunks]


def _pack(world: Micro, whole: EventGraph, members: np.ndarray) -> tuple[EventGraph, Any, Any, dict[str, Any]]:
    """The traces `members`, which may repeat, as one padded batch of one group."""
    e_max, a_max = _K * _EVENTS, _K * _AGENTS
    event, agent, edge = ([np.flatnonzero(m & (t == i)) for i in members] for m, t in (
        (whole.event_mask, whole.trace_ids),
        (whole.agent_mask, whole.agent_trace),
        (whole.edge_mask, whole.trace_ids[whole.senders]),
    ))  # fmt: skip

    def fit(values: Any, room: int, fill: float = 0) -> np.ndarray:
        values = np.asarray(values)
        return np.concatenate([values, np.full(room - len(values), fill, values.dtype)])

    def take(values: Any, picks: list[np.ndarray], room: int) -> np.ndarray:
        return fit(np.asarray(values)[np.concatenate(picks)], room)

    def moved(values: Any, picks: list[np.ndarray], to: list[np.ndarray], room: int) -> np.ndarray:
        starts = np.cumsum([0, *map(len, to)])
        parts = [np.asarray(values)[p] - t[0] + s if len(p) else p for p, t, s in zip(picks, to, starts, strict=False)]
        return fit(np.concatenate(parts).astype(np.int32), room)

    def owner(picks: list[np.ndarray], room: int) -> np.ndarray:
        return fit(np.repeat(np.arange(len(members), dtype=np.int32), [len(p) for p in picks]), room)

    turns = np.stack([np.repeat(np.arange(len(event)), [len(p) for p in event]), whole.turn_ids[np.concatenate(event)]])
    turn_ids = np.unique(turns, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int32)
    graph = EventGraph(
        **{f: take(getattr(whole, f), event, e_max) for f in ("event_type", "action_mask", "event_mask", "time")},
        trace_ids=owner(event, e_max),
        agent_ids=moved(whole.agent_ids, event, agent, e_max),
        turn_ids=fit(turn_ids, e_max),
        senders=moved(whole.senders, edge, event, e_max),
        receivers=moved(whole.receivers, edge, event, e_max),
        **{f: take(getattr(whole, f), edge, e_max) for f in ("edge_type", "edge_mask")},
        **{f: take(getattr(whole, f), agent, a_max) for f in ("agent_name_ids", "agent_role_ids", "agent_mask")},
        agent_parent=moved(whole.agent_parent, agent, agent, a_max),
        agent_trace=owner(agent, a_max),
        group_ids=np.zeros(_K, np.int32),
        trace_mask=np.arange(_K) < len(members),
    )
    path = [step for i in members for step in world.steps[i]]
    state = np.array([s for s, _ in path])
    reward = fit([world.traces[i].reward for i in members], _K, np.nan).astype(np.float64)
    step = fit([r for i in members for r in world.traces[i].steps], e_max).astype(np.float64)
    evidence = {
        "value": fit(world.v[state], e_max),
        "q_value": fit(world.q[tuple(np.array(path).T)], e_max),
        "propensity": fit(world.policy[tuple(np.array(path).T)], e_max),
        # An observation that recurs: who decides, in place of the whole history.
        "anchor": fit(np.array([len(h) for h in world.states], np.int32)[state], e_max, -1),
        "stage": fit(np.array([len(h) for h in world.states], np.int32)[state], e_max, -1),
        "block": fit(np.zeros(len(path), np.int32), e_max, -1),
        "greedy_reward": np.full(_K, world.greedy),
    }
    return graph, reward, step, evidence


def _scores(name: str, world: Micro, k: int, tuples: np.ndarray, advantage: np.ndarray) -> Row:
    chance = np.prod(world.probabilities(world.policy)[tuples], axis=1)
    estimate = np.zeros((len(tuples), world.policy.size))
    table = {"weight": np.zeros(world.policy.shape), "sum": np.zeros(world.policy.shape)}
    seen: list[tuple[float, int, int, float]] = []
    for n, members in enumerate(tuples):
        at = 0
        for i in members:
            path, score = world.steps[i], world.scores[i]
            given = advantage[n, at : at + len(path)]
            estimate[n] += given @ score / k
            for (s, c), a in zip(path, given, strict=True):
                table["weight"][s, c] += chance[n]
                table["sum"][s, c] += chance[n] * a
                seen.append((chance[n], s, c, float(a)))
            at += len(path)
    mean, true = chance @ estimate, world.gradient()
    weight, total = table["weight"], table["sum"]
    centre = total.sum(1) / weight.sum(1)
    p, s, c, a = (np.array(column) for column in zip(*seen, strict=True))
    centred, increment = a - centre[s], world.increments[s, c]
    sign = np.where(np.abs(centred) > _TIE, np.sign(centred), 0) == np.where(
        np.abs(increment) > _TIE, np.sign(increment), 0
    )
    there = weight > 0
    known = (total / np.where(there, weight, 1) - centre[:, None])[there]
    return Row(
        method=name,
        world=world.name,
        k=k,
        bias=float(np.linalg.norm(mean - true) / np.linalg.norm(true)),
        variance=float(chance @ np.sum(estimate**2, axis=1) - mean @ mean),
        error=float(p @ (centred - increment) ** 2 / (p @ increment**2)),
        rank=_tau(known, world.increments[there]),
        sign=float(p @ sign / p.sum()),
    )


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau-b; NaN where one side is all ties."""
    upper = np.triu_indices(len(x), 1)
    a, b = (np.where(np.abs(d) > _TIE, np.sign(d), 0) for d in ((v[:, None] - v)[upper] for v in (x, y)))
    norm = math.sqrt(np.sum(a**2) * np.sum(b**2))
    return float(np.sum(a * b) / norm) if norm > 0 else math.nan


def markdown(table: list[Row]) -> str:
    """The table, and the methods that have no row with the reason."""
    lines = ["| method | world | K | bias | variance | error | rank | sign |", "|---|---|---|---|---|---|---|---|"]
    for r in table:
        numbers = (f"{0.0 if abs(x) < 1e-9 else x:.8f}" for x in (r.bias, r.variance, r.error, r.rank, r.sign))
        lines.append(f"| {r.method} | {r.world} | {r.k} | {' | '.join(numbers)} |")
    lines += ["", *(f"- `{name}` is not measured: {why}." for name, why in NOT_MEASURED.items())]
    return "\n".join(lines) + "\n"
