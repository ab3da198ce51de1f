"""Groups with replays: no baseline of a trace comes from traces that share its choices, or the trace is refused."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

import credit
import estimators
from credit.bench.bias import x64
from credit.bench.enumeration import fan_outs
from credit.bench.replay_bias import ReplayBias, replay_bias, replay_methods
from credit.bench.stacked_batches import Batches, stack
from estimators.base import Credit, Reason
from graphs.errors import CreditError
from graphs.event_graph import EventGraph
from graphs.invariants import validate
from graphs.padding import Sizes, pad, sizes, unpad
from graphs.replay_clusters import with_clusters
from graphs.worlds.micro.examples import MICRO

P1, P2 = 0.6, 0.5
TRUTH = np.array([0.12, 0.15])
"""Gradient of E[a₁ a₂] by the two logits: P1 (1 − P1) P2 and P1 P2 (1 − P2)."""

Method = Callable[[EventGraph, np.ndarray], Credit]


def two_decisions(fans: int) -> list[tuple[float, EventGraph, np.ndarray, credit.Rows, np.ndarray]]:
    """Every batch of `fans` fan-outs of three siblings at the second of two decisions, R = a₁ a₂: its probability, the
    graph, the reward, the rows, and the scores a − P of both decisions of each trace."""
    batches = []
    for choices in itertools.product(itertools.product((0, 1), repeat=4), repeat=fans):
        chance, scores, outcome = 1.0, [], []
        for first, *seconds in choices:
            chance *= (P1 if first else 1 - P1) * 0.5**3
            scores += [(first - P1, second - P2) for second in seconds]
            outcome += [float(first * second) for second in seconds]
        n = 3 * fans
        graph, reward, rows = credit.from_columns(
            group=["q"] * 2 * n,
            trace=np.repeat(np.arange(n), 2),
            reward=np.repeat(outcome, 2),
            turn=[0, 1] * n,
            evidence={
                "context": [label for t in range(n) for label in (None, f"fan-{t // 3}")],
                "node": [label for t in range(n) for label in (None, f"sibling-{t}")],
            },
            events=32,
            traces=16,
            agents=16,
        )
        batches.append((chance, graph, reward, rows, np.array(scores)))
    return batches


def gradient(method: Method, fans: int) -> tuple[np.ndarray, set[int]]:
    """The mean gradient over all batches, and the reasons that were given."""
    total, reasons = np.zeros(2), set()
    for chance, graph, reward, rows, scores in two_decisions(fans):
        result = method(graph, reward)
        advantage = rows.gather(np.asarray(result.advantage)).reshape(-1, 2)
        reasons |= set(rows.gather(np.asarray(result.reason)).tolist())
        total += chance * (advantage * scores).mean(0)
    return total, reasons


def ledger_control(graph: EventGraph, reward: np.ndarray) -> Credit:
    return credit.compose(graph, reward, []).advantage("control").credit


@pytest.mark.slow
@pytest.mark.parametrize("method", [estimators.rloo, estimators.turn_baseline, ledger_control])
@pytest.mark.sampled
def test_siblings_of_one_prefix_are_no_baseline_for_each_other(method: Method) -> None:
    """The issue's reproduction: with three siblings and nobody else the gradient was (0, .15), not (.12, .15)."""
    found, reasons = gradient(method, fans=1)
    assert reasons == {Reason.SHARED_PREFIX}
    np.testing.assert_array_equal(found, 0)


@pytest.mark.study
def test_what_the_tree_refuses_is_said_where_the_advantages_are() -> None:
    """It was called unbiased by the mean of the other traces, for three siblings of one prefix and nobody else."""

    def said(fans: int) -> str:
        _, graph, reward, _, _ = two_decisions(fans)[0]
        return str(credit.compose(graph, reward, []).advantage("control"))

    assert said(1).startswith("advantage 'control': refused for every action")
    assert "6 actions of 6 without: no independent trace" in said(1)
    assert said(2).startswith("advantage 'control': unbiased") and "replays of the trace left out" in said(2)
    assert "without" not in said(2)


@pytest.mark.sampled
@pytest.mark.parametrize("method", [estimators.rloo, estimators.turn_baseline, ledger_control])
@pytest.mark.slow
def test_two_fan_outs_give_the_gradient(method: Method) -> None:
    found, reasons = gradient(method, fans=2)
    assert reasons == {Reason.VALID}
    np.testing.assert_allclose(found, TRUTH, atol=1e-6)


@pytest.mark.slow
def test_the_bias_was_real() -> None:
    """Without the tree, the baseline of a trace holds outcomes that its own first choice decided."""

    def unclustered(graph: EventGraph, reward: np.ndarray) -> Credit:
        return estimators.rloo(dataclasses.replace(graph, cluster_ids=None), reward)

    np.testing.assert_allclose(gradient(unclustered, fans=1)[0], [0, 0.15], atol=1e-6)


UNBIASED = [name for name, method in credit.METHODS.items() if method.unbiased]
AWARE = [name for name in UNBIASED if credit.METHODS[name].scope in ("group", "batch")]
"""Those that use other traces of the group, in whatever order they came."""


REMEDY = "start from `estimators.members.members`, end with `settle_alone`; see CONTRIBUTING.md, Replays"


@pytest.mark.slow
@pytest.mark.parametrize("name", UNBIASED)
@pytest.mark.parametrize(
    ("world", "fans", "at"),
    [
        ("relay-and", 2, 1),
        pytest.param("relay-and", 1, 0, marks=pytest.mark.study),
        pytest.param("stop-rewards", 2, 1, marks=pytest.mark.study),
    ],
)
@pytest.mark.sampled
def test_what_promises_no_bias_has_none_with_replays(name: str, world: str, fans: int, at: int) -> None:
    in_order = credit.METHODS[name].scope == "sequence"  # too many batches for three siblings
    row = replay_bias(name, world, fans=fans, at=at, siblings=2 if in_order else 3)
    assert row.clustered < 1e-12, f"a baseline of {name} holds replays of the trace: {REMEDY}"
    assert row.answered > 0.2


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("name", ["moving_average", "spiral_rae"])
def test_moving_averages_pass_over_replays_of_a_trace(name: str) -> None:
    row = replay_bias(name, "relay-and", fans=2, at=1, siblings=2)
    assert row.clustered < 1e-12 < row.unclustered
    assert row.answered == pytest.approx(1)


@pytest.mark.study
@pytest.mark.parametrize("name", AWARE)
@pytest.mark.parametrize("world", MICRO)
def test_what_promises_no_bias_has_none_at_any_step(name: str, world: str) -> None:
    for fans, at in itertools.product((1, 2, 3), (0, 1, 2)):
        if at >= MICRO[world].choice.shape[1]:
            continue  # nobody decides as often
        if math.comb(len(list(fan_outs(MICRO[world], 1, at, 2).chance)) + fans, fans) > 10_000:
            continue
        row = replay_bias(name, world, fans=fans, at=at, siblings=2)
        assert not row.clustered >= 1e-12, (fans, at)  # NaN: everything is refused
        assert fans == 1 or row.answered > 0.1


TOGETHER = 512
"""Batches of one compiled call: one shape for all cells of as many fan-outs."""


@jax.jit
@jax.vmap
def controlled(batch: Batches) -> tuple[jax.Array, jax.Array]:
    """The advantage `control` with the claims of `c3` at a fixed coefficient, and where there is one."""
    siblings = {name: batch.evidence[name] for name in ("context", "node")}
    claim = estimators.c3(batch.graph, batch.returns, **siblings)
    made = estimators.control_advantage(batch.graph, batch.returns, [claim], beta=0.7).credit
    return made.advantage, made.valid


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("fans", [1, 2, 3])
@pytest.mark.parametrize("world", ["relay-and", "stop-rewards"])
def test_control_with_claims_of_siblings_has_no_bias(world: str, fans: int, at: int) -> None:
    draws = fan_outs(MICRO[world], fans, at, 2)
    batch = stack(draws, {"context", "node"})
    parts, count = [], len(draws.chance)
    with x64():
        for start in range(0, count, TOGETHER):
            at_once = np.minimum(np.arange(start, start + TOGETHER), count - 1)
            parts.append(controlled(jax.tree.map(lambda values, at_once=at_once: values[at_once], batch)))
    advantage, valid = (np.concatenate(part)[:count] for part in zip(*parts, strict=True))
    row, event = np.nonzero(batch.state >= 0)
    shared = fans == 1 and at > 0  # siblings of one prefix and nobody else: no trace is independent
    assert valid[row, event].all() if not shared else not valid[row, event].any()
    pushed = np.zeros((count, *draws.world.policy.shape))
    push = batch.weight[row, event] * advantage[row, event]
    np.add.at(pushed, (row, batch.state[row, event], batch.choice[row, event]), push)
    mean = np.tensordot(draws.chance, draws.world.through_scores(pushed), axes=1)
    np.testing.assert_allclose(mean, 0 if shared else draws.world.gradient(), atol=1e-12)


@pytest.mark.slow
def test_the_stored_table_is_what_the_code_gives() -> None:
    file = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "replay_bias.json"
    rows = [
        ReplayBias(**{name: math.nan if value is None else value for name, value in row.items()})
        for row in json.loads(file.read_text())["rows"]
    ]
    assert {row.method for row in rows} <= set(replay_methods())
    for row in rows:
        if row.method in ("rloo", "dr_grpo", "turn_baseline") and row.fans < 3:
            again = replay_bias(row.method, row.world, fans=row.fans, at=row.at, siblings=row.siblings)
            for score in ("clustered", "unclustered", "answered"):
                assert getattr(again, score) == pytest.approx(getattr(row, score), abs=1e-9, nan_ok=True), row


# The clusters themselves


def columns(trace: str, context: str, node: str) -> EventGraph:
    """A graph of one-letter ids; '-' is absent."""
    labels = {"context": context, "node": node}
    evidence = {name: [None if x == "-" else x for x in column] for name, column in labels.items()}
    n = len(trace)
    return credit.from_columns(group=[0] * n, trace=list(trace), reward=[1.0] * n, evidence=evidence)[0]


@pytest.mark.parametrize(
    ("trace", "context", "node", "expected"),
    [
        ("aabbcc", "------", "------", None),  # nothing logged
        ("abc", "xxx", "123", None),  # siblings at the first action share only the task
        ("aabbcc", "-x-x--", "-1-2--", [0, 0, 2]),  # a prefix in common
        ("aabbcc", "-x-x--", "------", [0, 0, 2]),  # a context is enough
        ("aabbcc", "------", "1-1---", [0, 0, 2]),  # replays of one first choice
        ("aabbccdd", "-x-x-y-y", "--------", [0, 0, 2, 2]),
        ("aaabbbccc", "-x--xy--y", "---------", [0, 0, 0]),  # through b
    ],
)
def test_clusters_are_traces_that_share_a_choice(
    trace: str, context: str, node: str, expected: list[int] | None
) -> None:
    found = columns(trace, context, node).cluster_ids
    assert (None if found is None else found[: len(set(trace))].tolist()) == expected


def test_the_parent_of_siblings_alone_shows_the_tree() -> None:
    """Logs that state neither context nor node, but which event was replayed."""
    parent = [None, "0", None, "0", None, None]
    graph, reward, rows = credit.from_columns(
        group=[0] * 6, trace=list("aabbcc"), reward=[1.0, 1, 0, 0, 0.5, 0.5], evidence={"sibling_parent": parent}
    )
    assert np.asarray(graph.cluster_ids)[:3].tolist() == [0, 0, 2]
    assert rows.gather(estimators.rloo(graph, reward).baseline).tolist() == [0.5] * 6  # the others' one sample


def test_what_the_environment_did_is_no_choice() -> None:
    graph = columns("aabb", "-x-x", "----")
    mask = np.asarray(graph.action_mask).copy()
    mask[[0, 2]] = False  # the shared beginning is the task's prompt
    ids = np.where(np.arange(graph.num_events) % 2 == 1, 0, -1).astype(np.int32)
    found = with_clusters(dataclasses.replace(graph, action_mask=mask), context=ids)
    assert found.cluster_ids is None


def test_ids_that_are_no_integers_are_refused() -> None:
    graph = columns("aabb", "----", "----")
    with pytest.raises(CreditError, match="context is float64"):
        with_clusters(graph, context=np.zeros(graph.num_events))


def test_clusters_survive_padding_and_are_checked() -> None:
    graph = columns("aabbcc", "-x-x--", "------")
    validate(graph)
    larger = pad(graph, Sizes(256, 16, 256, 256))
    validate(larger)
    assert unpad(larger).cluster_ids.tolist() == [0, 0, 2] == unpad(graph).cluster_ids.tolist()
    outside = dataclasses.replace(graph, cluster_ids=np.full(graph.num_traces, graph.num_traces, np.int32))
    with pytest.raises(CreditError, match="cluster_ids"):
        validate(outside)
    assert sizes(graph) == Sizes(6, 0, 3, 3)


METHODS = {name: m for name, m in credit.METHODS.items() if m.scope in ("group", "batch", "sequence") and not m.needs}


def _varied() -> tuple[EventGraph, np.ndarray]:
    rng = np.random.default_rng(0)
    graph, reward, _ = credit.from_columns(
        group=np.repeat([0, 0, 0, 0, 1, 1, 1], 3),
        trace=np.repeat(np.arange(7), 3),
        agent=["a", "b", "a"] * 7,
        reward=np.repeat(rng.normal(size=7), 3),
        events=32,
        traces=16,
        agents=32,
    )
    return graph, reward


@pytest.mark.slow
@pytest.mark.every_method
@pytest.mark.parametrize("name", METHODS)
def test_traces_that_are_clusters_of_their_own_change_nothing(name: str) -> None:
    graph, reward = _varied()
    plain = METHODS[name](graph, reward)
    alone = METHODS[name](dataclasses.replace(graph, cluster_ids=np.arange(16, dtype=np.int32)), reward)
    np.testing.assert_array_equal(plain.reason, alone.reason)
    np.testing.assert_allclose(plain.advantage, alone.advantage, rtol=2e-5, atol=2e-6)
    if plain.unit != "event":  # the error of a mean over rows counts traces as independent, not rows
        np.testing.assert_allclose(plain.stderr, alone.stderr, rtol=2e-5, atol=2e-6)


@pytest.mark.every_method
@pytest.mark.parametrize("name", METHODS)
def test_a_group_of_replays_alone_is_refused_by_name(name: str) -> None:
    graph, reward = _varied()
    cluster = np.array([0] * 7 + [0] * 9, np.int32)  # one cluster for the whole batch: nothing is independent
    result = METHODS[name](dataclasses.replace(graph, cluster_ids=cluster), reward)
    if METHODS[name].scope == "sequence":
        assert np.ptp(np.asarray(result.baseline)[:21]) == 0  # what was there before the first of them
    else:
        reasons = set(np.asarray(result.reason)[:21].tolist())
        assert reasons == {Reason.SHARED_PREFIX}, f"{name} compares replays of one trace with each other: {REMEDY}"


@pytest.mark.slow
def test_leave_one_out_is_the_mean_over_clusters() -> None:
    """Against a loop: the means of the other clusters of the group, each once."""
    graph, reward = _varied()
    cluster = np.array([0, 0, 0, 3, 4, 5, 5] + [0] * 9, np.int32)
    result = estimators.rloo(dataclasses.replace(graph, cluster_ids=cluster), reward)
    for trace in range(7):
        group = range(4) if trace < 4 else range(4, 7)
        others = {cluster[t] for t in group} - {cluster[trace]}
        expected = np.mean([np.mean([reward[t] for t in group if cluster[t] == c]) for c in others])
        assert np.asarray(result.baseline)[3 * trace] == pytest.approx(expected, abs=1e-6)
