"""Turn baselines against a loop over lists, and against the enumerated gradient of a policy that may stop."""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
from credit.laws.trial_batches import Batch, ragged
from estimators import REASONS
from graphs import pad

STEPS = 3  # turns at most: after each of the first two the policy stops or goes on
REWARD = np.array([[0.75, 0.5], [-0.25, 1.5], [2.0, 2.0]])  # of turn k, when it stops, when it goes on
LOGIT = np.array([0.4, -0.3, 0.0])  # of going on at turn k; the last turn has no choice


def world() -> list[tuple[list[int], list[float], list[float]]]:
    """Every trace: whether it goes on after each turn, what each turn earns, and its probability."""
    found = []
    for length in range(1, STEPS + 1):
        goes = [1] * (length - 1) + ([0] if length < STEPS else [1])
        on = 1 / (1 + np.exp(-LOGIT))
        probability = np.prod([on[k] if go else 1 - on[k] for k, go in enumerate(goes) if k < STEPS - 1])
        found.append((goes, [REWARD[k, go] for k, go in enumerate(goes)], float(probability)))
    return found


def score(k: int, goes: int) -> np.ndarray:
    """∇ log π(goes | k) by the logits; the last turn has no choice."""
    out = np.zeros(STEPS)
    if k < STEPS - 1:
        out[k] = goes - 1 / (1 + np.exp(-LOGIT[k]))
    return out


def true_gradient() -> np.ndarray:
    return sum(p * sum(earned) * sum(score(k, g) for k, g in enumerate(goes)) for goes, earned, p in world())


def expected_gradient(method: object, traces: int, keep: object = None) -> np.ndarray:
    """The mean of Σ ∇log π · A / traces over all groups of `traces` traces: one batch, one group a combination."""
    groups = list(itertools.product(world(), repeat=traces))
    rows = [
        (g, (g, i), k, goes, earned[k])
        for g, group in enumerate(groups)
        for i, (path, earned, _) in enumerate(group)
        for k, goes in enumerate(path)
    ]
    graph, _, at = credit.from_columns(
        group=[r[0] for r in rows],
        trace=[f"{r[1]}" for r in rows],
        turn=[r[2] for r in rows],
        row_reward=[r[4] for r in rows],
    )
    with jax.enable_x64(True):
        step = jnp.zeros(graph.num_events, jnp.float64).at[at.event].set(jnp.array([r[4] for r in rows]))
        result = method(graph, jnp.zeros(graph.num_traces, jnp.float64), event_reward=step)
        advantage = np.asarray(result.advantage)[at.event]
        assert np.asarray(result.valid)[at.event].all() and advantage.dtype == np.float64
    chance = [np.prod([p for _, _, p in group]) for group in groups]
    alive = defaultdict(int)
    for g, _, k, _, _ in rows:
        alive[g, k] += 1
    total = np.zeros(STEPS)
    for (g, _, k, goes, _), a in zip(rows, advantage, strict=True):
        if keep is None or keep(alive[g, k]):
            total += chance[g] * a * score(k, goes) / traces
    return total


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("traces", [2, 3])
def test_the_turn_baseline_is_unbiased_where_the_policy_decides_how_many_turns_there_are(traces: int) -> None:
    np.testing.assert_allclose(expected_gradient(credit.turn_baseline, traces), true_gradient(), rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_leaving_out_turns_that_no_other_trace_has_is_biased() -> None:
    left_out = expected_gradient(credit.turn_baseline, 2, keep=lambda alive: alive > 1)
    assert np.abs(left_out - true_gradient()).max() > 0.02


@pytest.mark.study
@pytest.mark.parametrize("traces", [2, 3])
def test_the_bias_of_the_published_form_is_its_closed_form(traces: int) -> None:
    found = expected_gradient(
        lambda g, r, event_reward: credit.mt_grpo(g, r, event_reward=event_reward, scale="none"), traces
    )
    reaches = [sum(p for goes, _, p in world() if len(goes) > k) for k in range(STEPS)]
    earns = [sum(p * earned[k] for goes, earned, p in world() if len(goes) > k) for k in range(STEPS)]

    def slope(values: object) -> np.ndarray:
        """∇ Σ_trace p(trace) values(trace), from ∇p = p Σ_k ∇log π."""
        return sum(
            p * values(goes, earned) * sum(score(k, g) for k, g in enumerate(goes)) for goes, earned, p in world()
        )

    bias = np.zeros(STEPS)
    for k in range(STEPS):
        c = (1 - (1 - reaches[k]) ** traces) / (traces * reaches[k])
        slope_of_earning = slope(lambda goes, earned, k=k: earned[k] if len(goes) > k else 0.0)
        slope_of_reaching = slope(lambda goes, earned, k=k: float(len(goes) > k))
        bias -= c * slope_of_earning + (1 - c) * earns[k] / reaches[k] * slope_of_reaching
    np.testing.assert_allclose(found - true_gradient(), bias, rtol=1e-10, atol=1e-14)
    shrunk = -true_gradient() / traces
    assert np.abs(bias - shrunk).max() > 0.1  # it is not the mere shrinkage of a mean that contains its member


# --- against loops ----------------------------------------------------------------------------------------------------


def random_rows(seed: int) -> dict[str, list]:
    """Ragged traces of several agents, turns of one to three rows."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list] = {name: [] for name in ("group", "trace", "agent", "turn", "reward", "event_reward")}
    for trace in range(9):
        outcome = float(rng.normal())
        for turn in range(rng.integers(1, 5)):
            for _ in range(rng.integers(1, 4)):
                for name, value in zip(
                    rows,
                    (trace // 4, trace, f"a{turn % 2}", turn, outcome, float(rng.normal())),
                    strict=True,
                ):
                    rows[name].append(value)
    return rows


def loop(rows: dict[str, list], method: str) -> list[float]:
    """Per row: the advantage of its turn, by dictionaries."""
    earned: dict[tuple, float] = defaultdict(float)
    group, outcome, last = {}, {}, {}
    for g, u, k, r, step in zip(
        rows["group"], rows["trace"], rows["turn"], rows["reward"], rows["event_reward"], strict=True
    ):
        earned[u, k] += step
        group[u], outcome[u], last[u] = g, r, k
    if method == "turn_baseline":
        for u, k in last.items():
            earned[u, k] += outcome[u]
    out = []
    for u, k in zip(rows["trace"], rows["turn"], strict=True):
        others = [v for v in group if group[v] == group[u] and v != u]
        if not others:
            out.append(0.0)
            continue
        if method == "turn_baseline":
            to_go = {v: sum(earned[v, m] for m in range(k, last[v] + 1)) for v in [u, *others]}
            out.append(to_go[u] - sum(to_go[v] for v in others) / len(others))
            continue
        total = 0.0
        terms = [(outcome[u], [outcome[v] for v in [u, *others]])]
        terms += [(earned[u, m], [earned[v, m] for v in [u, *others] if last[v] >= m]) for m in range(k, last[u] + 1)]
        for x, there in terms:
            if method == "none":
                total += x - np.mean(there)
            elif len(there) > 1:
                total += (x - np.mean(there)) / (np.std(there, ddof=1) + 1e-4)
        out.append(total)
    return out


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["turn_baseline", "none", "std"])
def test_against_a_loop(method: str, seed: int) -> None:
    rows = random_rows(seed)
    graph, reward, at = credit.from_columns(**rows, events=128, traces=32, agents=64)
    if method == "turn_baseline":
        result = credit.turn_baseline(graph, reward, event_reward=at.event_reward)
    else:
        result = credit.mt_grpo(graph, reward, event_reward=at.event_reward, scale=method)
    np.testing.assert_allclose(at.gather(result.advantage), loop(rows, method), rtol=2e-5, atol=2e-5)
    alone = np.array(rows["group"]) == 2
    assert (np.asarray(at.gather(result.valid)) == ~alone).all()
    assert {REASONS[i] for i in np.asarray(at.gather(result.reason))[alone]} == {REASONS[4]}


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]


def drawn(seed: int) -> Batch:
    """Ragged groups with traces without outcomes, actions of frozen agents and, for even seeds, replays."""
    batch, rng = ragged(seed, {}), np.random.default_rng(1000 + seed)
    graph = dataclasses.replace(
        batch.graph, trainable_mask=(rng.random(batch.graph.num_agents) < 0.8)[batch.graph.agent_ids]
    )
    if seed % 2 == 0:
        group, cluster = np.asarray(graph.group_ids), np.arange(graph.num_traces, dtype=np.int32)
        for t in range(1, graph.num_traces):
            cluster[t] = cluster[t - 1] if group[t] == group[t - 1] and rng.random() < 0.4 else t
        graph = dataclasses.replace(graph, cluster_ids=cluster)
    return dataclasses.replace(batch, graph=graph)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("plain", "options"),
    [
        ("grpo", {"eps": 1e-6}),
        ("grpo", {"eps": 0.1, "ddof": 0}),
        ("dr_grpo", {}),
    ],
)
def test_without_rewards_at_turns_it_is_the_normalised_outcome(plain: str, options: dict, seed: int) -> None:
    """The outcome was the last turn's reward, and was compared with turns of that number."""
    batch, scale = drawn(seed), "std" if options else "none"
    with jax.enable_x64(True):
        reward = batch.reward.astype(np.float64)
        found = credit.mt_grpo(batch.graph, reward, scale=scale, **options)
        expected = credit.METHODS[plain](batch.graph, reward, **options)
        np.testing.assert_allclose(found.advantage, expected.advantage, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.reason, expected.reason)
    assert len(set(np.asarray(found.advantage).tolist())) > 5


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["std", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_outcome_and_the_turns_are_normalised_apart(seed: int, scale: str) -> None:
    """Both together are the sum of each alone."""
    batch = drawn(seed)
    with jax.enable_x64(True):
        step, outcome = batch.event_reward.astype(np.float64), batch.reward.astype(np.float64)

        def advantage(outcome: np.ndarray, step: np.ndarray | None) -> np.ndarray:
            return np.asarray(credit.mt_grpo(batch.graph, outcome, event_reward=step, scale=scale).advantage)

        alone, of_turns = advantage(outcome, None), advantage(0 * outcome, step)
        np.testing.assert_allclose(advantage(outcome, step), alone + of_turns, rtol=0, atol=1e-12)
        assert np.abs(of_turns).max() > 0.1


def test_two_turns_by_hand() -> None:
    """The paper's form: the last turn has the outcome's term and its own, the first its own besides."""
    graph, reward, at = credit.from_columns(
        group=[0] * 6, trace=[0, 0, 1, 1, 2, 2], turn=[0, 1] * 3, reward=[1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        event_reward=[0.5, 0.0, 0.5, 4.0, 0.0, 0.0],
    )  # fmt: skip
    found = at.gather(credit.mt_grpo(graph, reward, event_reward=at.event_reward, eps=0.0).advantage)
    third = 3**-0.5  # 1, 0 and 0 less their mean, over their standard deviation: 2, -1 and -1 of these
    np.testing.assert_allclose(found, third * np.array([2, 1, 2, 1, -4, -2]), atol=1e-6)


def test_stderr_is_the_spread_of_the_others_stopped_ones_included() -> None:
    graph, reward, at = credit.from_columns(
        group=[0] * 6, trace=[0, 0, 1, 1, 2, 3], turn=[0, 1, 0, 1, 0, 0], reward=[1.0, 1.0, 4.0, 4.0, 2.0, 7.0]
    )
    found = np.asarray(at.gather(credit.turn_baseline(graph, reward).stderr))
    others = [[4, 2, 7], [4, 0, 0], [1, 2, 7], [1, 0, 0], [1, 4, 7], [1, 4, 2]]
    np.testing.assert_allclose(found, [np.std(x, ddof=1) / np.sqrt(3) for x in others], rtol=1e-6)


@pytest.mark.slow
def test_turns_of_agents_that_work_at_once_are_counted_by_their_first_actions() -> None:
    # a begins, b begins, a goes on in its turn: a's turn earns what arrives after b began, too
    columns = {"group": [0] * 4, "trace": [0, 0, 0, 1], "agent": ["a", "b", "a", "a"], "turn": [0, 1, 0, 0]}
    graph, reward, at = credit.from_columns(**columns, reward=[1.0, 1.0, 1.0, 0.0], event_reward=[0.5, 0.25, 0.125, 0])
    result = credit.turn_baseline(graph, reward, event_reward=at.event_reward)
    assert np.asarray(at.gather(result.credit)).tolist() == [1.875, 1.375, 1.875, 0.0]
    assert np.asarray(at.gather(result.baseline)).tolist() == [0.0, 0.0, 0.0, 1.875]


def test_a_wrong_scale_is_refused() -> None:
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[0.0, 1.0])
    with pytest.raises(ValueError, match="scale is 'variance'"):
        credit.mt_grpo(pad(graph), reward, scale="variance")
