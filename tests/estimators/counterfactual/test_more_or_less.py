"""Values of one more step and of spawning: exact means over enumerated worlds, coverage over drawn ones, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from credit import EventType
from estimators.base import Reason
from estimators.counterfactual.more_or_less import Points, value_of_more

KINDS = {"stop_credit": ("stop_propensity", EventType.STOP), "spawn_credit": ("spawn_propensity", EventType.SPAWN)}


def team(seed: int) -> tuple[list[tuple[float, list[bool], list[float], float]], list[float], list[float]]:
    """Every trace of a team of two decisions: (probability, choices, propensities of more, return); Δ; propensities.

    The first goes on or not; whoever went on decides once more, under luck that its price hides. Δ is that of each.
    """
    rng = np.random.default_rng(seed)
    p, worth = rng.uniform(0.1, 0.9, 2), rng.normal(size=(2, 2, 2))
    traces = []
    for first, second, luck in itertools.product((False, True), (False, True), (0, 1)):
        if not first and second:
            continue
        chances = [p[0] if first else 1 - p[0], 0.3 if luck else 0.7]
        if first:
            chances.append(p[1] if second else 1 - p[1])
        taken = [first, second] if first else [first]
        traces.append(
            (float(np.prod(chances)), taken, list(p[: len(taken)]), float(worth[int(first), int(second), luck]))
        )
    mean = np.einsum("abl,l->ab", worth, [0.7, 0.3])
    later = mean[1, 1] - mean[1, 0]
    gone = p[1] * mean[1, 1] + (1 - p[1]) * mean[1, 0]
    return traces, [float(gone - mean[0, 0]), float(later)], list(p)


def batch(name: str, traces: list[Any], group: list[int]) -> tuple[Any, Any, Any, dict[str, np.ndarray]]:
    """The traces as a log: a decision is an event of the type that ends or spawns, or a message."""
    key, kind = KINDS[name]
    stops = kind is EventType.STOP
    rows = [(g, i, more, p, y) for i, (g, (_, taken, ps, y)) in enumerate(zip(group, traces, strict=True))
            for more, p in zip(taken, ps, strict=True)]  # fmt: skip
    graph, reward, columns = credit.from_columns(
        group=[r[0] for r in rows],
        trace=[r[1] for r in rows],
        event_type=[kind.name.lower() if r[2] is not stops else "message" for r in rows],
        turn=list(range(len(rows))),
        reward=[r[4] for r in rows],
        evidence={key: [1 - r[3] if stops else r[3] for r in rows]},
    )
    return graph, reward, columns, {key: columns.traces.evidence[key].array}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "own"), [("stop_credit", False), ("stop_credit", True), ("spawn_credit", False)])
def test_the_mean_over_all_batches_is_exact(name: str, own: bool) -> None:
    """Three traces drawn from all that are possible: mean of Δ, and of the increment, given what was chosen."""
    with jax.enable_x64(True):
        traces, value, p = team(3)
        triples = list(itertools.product(traces, repeat=3))
        logs = [trace for triple in triples for trace in triple]
        graph, _, _, evidence = batch(name, logs, np.repeat(np.arange(len(triples)), 3).tolist())
        graph = jax.tree.map(np.asarray, graph)
        wide = np.zeros(graph.num_traces)
        wide[: len(logs)] = [trace[3] for trace in logs]
        exact = np.full(graph.num_events, np.nan)
        of_more = [x for trace in logs for x in trace[2]]
        exact[: len(of_more)] = [1 - x for x in of_more] if name == "stop_credit" else of_more
        evidence = {next(iter(evidence)): exact}
        found = [
            getattr(credit, name)(graph, wide, **evidence, amount=amount, own_outcome=own)
            for amount in ("value", "increment")
        ]
    weight = np.array([np.prod([t[0] for t in triple]) for triple in triples]).repeat(3)
    trace = np.asarray(graph.trace_ids)[: len(of_more)]
    first = np.r_[True, trace[1:] != trace[:-1]]
    more = np.array([x for t in logs for x in t[1]])
    for place, at in enumerate((first, ~first)):
        for chosen in (True, False):
            amounts, increments = (np.asarray(c.credit)[: len(of_more)] for c in found)
            valid = at & (more == chosen) & np.asarray(found[0].valid)[: len(of_more)]
            w = weight[trace] * valid
            assert w.sum() > 0
            share = 1 - p[place] if chosen else -p[place]
            assert abs((w * amounts).sum() / w.sum() - value[place]) < 1e-12
            assert abs((w * increments).sum() / w.sum() - share * value[place]) < 1e-12


@pytest.mark.slow
def test_a_critic_leaves_the_mean_as_it_is_and_alone_is_its_own_difference() -> None:
    traces, value, _ = team(5)
    pool = list(itertools.product(traces, repeat=3))
    logs = [trace for triple in pool for trace in triple]
    graph, reward, rows, evidence = batch("stop_credit", logs, np.repeat(np.arange(len(pool)), 3).tolist())
    n = len(rows.gather(reward[graph.trace_ids]))
    more, chance = np.array([x for t in logs for x in t[1]]), np.array([x for t in logs for x in t[2]])
    critic = np.array([[0.3, -0.8], [0.1, 0.5]])  # of both decisions, wrong; by less and more
    trace = np.asarray(graph.trace_ids)[:n]
    place = np.r_[False, trace[1:] == trace[:-1]].astype(int)
    q, mean = (np.full(graph.num_events, np.nan, np.float32) for _ in range(2))
    q[:n] = critic[place, more.astype(int)]
    mean[:n] = chance * critic[place, 1] + (1 - chance) * critic[place, 0]
    model = {"q_value": q, "target_value": mean, "amount": "value"}
    robust = credit.stop_credit(graph, reward, **evidence, **model)
    alone = credit.stop_credit(graph, reward, **evidence, **model, basis="critic")
    np.testing.assert_allclose(np.asarray(alone.credit)[:n], (critic[:, 1] - critic[:, 0])[place], rtol=1e-5)
    weight = (
        np.array([np.prod([t[0] for t in triple]) for triple in pool]).repeat(3)[trace] * np.asarray(robust.valid)[:n]
    )
    for at in (0, 1):
        w = weight * (place == at)
        assert abs((w * np.asarray(robust.credit)[:n]).sum() / w.sum() - value[at]) < 1e-5


def test_replays_are_compared_with_the_trace_itself() -> None:
    graph, reward, rows = credit.from_columns(
        group=[0, 0], trace=["a", "b"], event_type=["stop", "message"], reward=[0.25, 1.0],
        evidence={"stop_propensity": [0.25, 0.5], "counterfactual_reward": [0.75, 0.5]},
    )  # fmt: skip
    logged = {name: found.array for name, found in rows.traces.evidence.items()}
    value = credit.stop_credit(graph, reward, **logged, basis="replays", amount="value")
    assert rows.gather(value.credit).tolist() == [0.5, 0.5]
    increment = credit.stop_credit(graph, reward, **logged, basis="replays")
    assert rows.gather(increment.credit).tolist() == [-0.375, 0.25]
    assert increment.own_outcome and increment.centred


@pytest.mark.slow
@pytest.mark.parametrize(
    ("propensity", "reason"),
    [
        ([0.5, 1.0, 0.5, 0.5], Reason.NO_OVERLAP),
        ([0.5, 0.5, 0.0, 0.5], Reason.NO_OVERLAP),
        ([None, 0.5, 0.5, 0.5], Reason.NO_OVERLAP),
        ([0.5, 0.5, None, None], Reason.TOO_FEW),
        ([0.5, 0.5, 0.5, 1e-6], Reason.LOW_ESS),
    ],
)
def test_what_has_no_overlap_is_refused(propensity: list[float | None], reason: Reason) -> None:
    """A stop without a propensity is a point; a message without one is none."""
    graph, reward, rows = credit.from_columns(
        group=[0] * 4, trace=list("abcd"), event_type=["stop", "message"] * 2, reward=[0.0, 1.0, 1.0, 0.0],
        evidence={"stop_propensity": propensity},
    )  # fmt: skip
    if propensity == [0.5, 0.5, None, None]:
        graph, reward, rows = credit.from_columns(
            group=[0] * 4, trace=list("abcd"), event_type=["stop", *["message"] * 3], reward=[0.0, 1.0, 1.0, 0.0],
            evidence={"stop_propensity": propensity},
        )  # fmt: skip
    stated = np.array(rows.traces.evidence["stop_propensity"].array)
    result = credit.stop_credit(graph, reward, stop_propensity=stated)
    if propensity[0] is None:  # what no reader lets in, a kernel may still be given: it is no probability either
        stated[rows.event[0]] = np.inf
        refused = credit.stop_credit(graph, reward, stop_propensity=stated)
        np.testing.assert_array_equal(refused.reason, result.reason)
    assert set(rows.gather(result.reason).tolist()) <= {reason, Reason.NO_EVIDENCE}
    assert reason in rows.gather(result.reason).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_decisions_that_contradict_their_propensities_are_refused(name: str) -> None:
    """Of the choice, not of the side, they were answered: `credit decisions` alone looked."""
    traces = [(1.0, [i % 10 < 3], [0.3], float(i % 2)) for i in range(60)]
    for logged, reason in ((0.3, Reason.VALID), (0.7, Reason.CONTRADICTION)):
        stated = [(weight, taken, [logged], value) for weight, taken, _, value in traces]
        graph, reward, rows, evidence = batch(name, stated, [0] * 60)
        result = getattr(credit, name)(graph, reward, **evidence)
        assert set(rows.gather(result.reason).tolist()) == {reason}


@pytest.mark.slow
def test_errors_cover_over_drawn_logs() -> None:
    """2,000 keys of 200 decisions: 95 % intervals of the value of one more step; `benchmarks/stopping.py` has more."""
    rng = np.random.default_rng(11)
    keys, size, p = 2000, 200, 0.35
    more = rng.random((keys, size)) < p
    earned = (rng.random((keys, size)) < np.where(more, 0.7, 0.4)).astype(np.float32)
    place = np.arange(keys * size, dtype=np.int32)
    chance, where = np.full(len(place), p, np.float32), np.ones(len(place), bool)
    columns = (where, more.ravel(), chance, earned.ravel(), earned.ravel(), place // size, place)
    drawn = Points(*map(jnp.asarray, columns))
    found = jax.jit(value_of_more)(drawn, drawn.ahead)
    value, stderr = (np.asarray(x)[::size] for x in (found.value, found.stderr))
    assert 0.93 < np.mean(np.abs(value - 0.3) < 1.96 * stderr) < 0.97
    assert abs(np.mean(value) - 0.3) < 0.005
