"""What calls itself unbiased and is no method without bias, enumerated where teams spawn, stop and are replayed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import credit
from credit.bench.bias import x64
from credit.bench.enumeration import fan_outs
from estimators.counterfactual.alternatives import Alternatives, drawn
from estimators.counterfactual.contrast import doubly_robust_contrast
from estimators.counterfactual.fidelity import weighted_leave_one_out
from estimators.counterfactual.policy_estimates import Evaluation, estimate
from estimators.critic.puppeteer import puppeteer
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import History, Micro

SPAWNS_OR_STOPS = ["hire-additive", "spawn-and", "stop-rewards"]


def wrong(world: Micro) -> np.ndarray:
    """A model of the outcome after each choice, float64 [S, C], that is off by anything."""
    return np.random.default_rng(0).normal(size=world.q.shape)


@pytest.mark.slow
@pytest.mark.parametrize("world", SPAWNS_OR_STOPS)
@pytest.mark.parametrize("siblings", [1, 2])
@pytest.mark.sampled
def test_a_contrast_has_no_bias_whatever_its_model(world: str, siblings: int) -> None:
    """Q(h, 0) − Q(h, 1) at each decision, from single traces and from fan-outs at the second decision."""
    micro = MICRO[world]
    draws = fan_outs(micro, 1, 1, siblings)
    batch, trace, step = np.nonzero((draws.members >= 0)[:, :, None] & (micro.state[draws.members] >= 0))
    member = draws.members[batch, trace]
    state, choice = micro.state[member, step], micro.choice[member, step]
    mass = draws.chance[batch] * draws.weight[batch, trace, step]
    model = wrong(micro)
    with x64():
        found = doubly_robust_contrast(
            micro.total[member],
            choice == 0,
            micro.policy[state, 0],
            model[state, 0],
            model[state, 1],
            control=choice == 1,
            propensity_control=micro.policy[state, 1],
            segment_ids=state,
            num_segments=len(micro.states),
            min_ess=0.0,
            min_ess_fraction=0.0,
        )
    assert found.valid.all()
    mean = np.bincount(state, mass * np.asarray(found.score)) / np.bincount(state, mass)
    np.testing.assert_allclose(mean, micro.increments[:, 0] - micro.increments[:, 1], atol=1e-12)


def decisions(world: str) -> list[tuple[Micro, History]]:
    """The first decision of a world, and one after it."""
    micro = MICRO[world]
    return [(micro, h) for h in list(micro.states)[:2]]


def options(world: Micro, history: History, runs: int) -> list[tuple[float, int, float]]:
    """What may come of one alternative that is continued `runs` times: probability, choice, mean return."""
    here, found = list(world.states).index(history), []
    for choice in range(world.states[history].choices):
        for tickets in itertools.product(world.rest((*history, choice)), repeat=runs):
            chance = float(world.policy[here, choice]) * math.prod(p for p, _ in tickets)
            found.append((chance, choice, sum(prize for _, prize in tickets) / runs))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("world", SPAWNS_OR_STOPS)
@pytest.mark.sampled
def test_weighted_leave_one_out_has_no_bias(world: str, place: int) -> None:
    """Two alternatives of a context, one continued once and one twice: the gradient at that decision."""
    micro, history = decisions(world)[place]
    here = list(micro.states).index(history)
    batches = list(itertools.product(options(micro, history, 1), options(micro, history, 2)))
    chance = np.array([a[0] * b[0] for a, b in batches])
    choice = np.array([[x[1] for x in batch] for batch in batches])
    value = np.array([[x[2] for x in batch] for batch in batches])
    with x64():
        advantage = weighted_leave_one_out(
            value.ravel(), np.tile([1.0, 2.0], len(batches)), np.repeat(np.arange(len(batches)), 2)
        )
    policy = micro.policy[here]
    score = (choice[:, :, None] == np.arange(len(policy))) - policy
    gradient = np.einsum("d,dj,djc->c", chance, np.asarray(advantage).reshape(-1, 2), score) / 2
    np.testing.assert_allclose(gradient, policy * micro.increments[here], atol=1e-12)


@pytest.mark.study
@pytest.mark.parametrize("model", ["siblings", "logged"])
@pytest.mark.parametrize(
    "world", [SPAWNS_OR_STOPS[0], *(pytest.param(world, marks=pytest.mark.study) for world in SPAWNS_OR_STOPS[1:])]
)
def test_doubly_robust_values_have_no_bias_before_refusals(world: str, model: str) -> None:
    """Three draws of one context under another policy; refusals are of batches, and come after."""
    (micro, history) = decisions(world)[0]
    here = list(micro.states).index(history)
    count, behaviour = micro.states[history].choices, micro.policy[here]
    target = np.arange(1.0, count + 1) / np.arange(1, count + 1).sum()
    guess = wrong(micro)[here]
    batches = list(itertools.product(options(micro, history, 1), repeat=3))
    rows_of = [(d, *one[1:]) for d, batch in enumerate(batches) for one in batch]
    batch, choice, prize = (np.array(column) for column in zip(*rows_of, strict=True))
    given = {
        "context": [f"c{d}" for d in batch],
        "alternative": [f"n{d}-{c}" for d, c in zip(batch, choice, strict=True)],
        "propensity": behaviour[choice],
        "target_propensity": target[choice],
    }
    if model == "logged":
        given |= {"q_value": guess[choice], "target_value": np.full(len(batch), guess[:count] @ target)}
    with x64():
        graph, _, rows = credit.from_columns(
            group=[f"g{d}" for d in batch], trace=range(len(batch)), reward=prize, evidence=given
        )
        reward = np.zeros(graph.num_traces)
        reward[np.asarray(graph.trace_ids)[rows.event]] = prize
        arrays = {name: rows.evidence[name] for name in given}
        for name, exact in (("propensity", behaviour[choice]), ("target_propensity", target[choice])):
            arrays[name] = arrays[name].astype(np.float64)
            arrays[name][rows.event] = exact
        if model == "logged":
            arrays["q_value"] = arrays["q_value"].astype(np.float64)
            arrays["q_value"][rows.event] = guess[choice]
            arrays["target_value"] = arrays["target_value"].astype(np.float64)
            arrays["target_value"][rows.event] = guess[:count] @ target
        logged = Alternatives(**arrays)
        d = drawn(graph, reward, logged, 1.0)
        value = np.asarray(d.reference + estimate(graph, d, logged, Evaluation("doubly_robust")).value)
        context = np.asarray(d.tree.context)[rows.event[::3]]
    chance = np.array([math.prod(one[0] for one in batch) for batch in batches])
    total = np.array([sum(p * x for p, x in micro.rest((*history, c))) for c in range(count)])
    assert chance @ value[context] == pytest.approx(target @ total, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["chosen", "appended"])
@pytest.mark.parametrize("world", SPAWNS_OR_STOPS)
@pytest.mark.sampled
def test_puppeteer_has_no_bias_for_its_priced_return_at_discount_one(world: str, stop: str) -> None:
    """And it has one below 1."""
    micro = MICRO[world]
    trace, step = np.nonzero(micro.state >= 0)
    state, choice = micro.state[trace, step], micro.choice[trace, step]
    spent = 1e4 * (1 + state + 3 * choice)
    graph, _, rows = credit.from_columns(
        group=[0] * len(trace), trace=trace, reward=micro.total[trace], turn=step, events=64, traces=32, agents=64
    )
    with x64():
        reward = np.full(graph.num_traces, np.nan)
        reward[np.asarray(graph.trace_ids)[rows.event]] = micro.total[trace]
        tokens = np.zeros(graph.num_events)
        tokens[rows.event] = spent
        far = {}
        for discount in (1.0, 0.9):
            earned = rows.gather(
                np.asarray(puppeteer(graph, reward, tokens=tokens, discount=discount, stop=stop).credit)
            )
            pushed = np.zeros(micro.policy.shape)
            np.add.at(pushed, (state, choice), micro.probabilities()[trace] * earned)
            if discount == 1.0:
                true = micro.gradient(earned[step == 0])
            far[discount] = float(np.linalg.norm(micro.through_scores(pushed) - true) / np.linalg.norm(true))
    assert far[1.0] < 1e-12 < far[0.9]
