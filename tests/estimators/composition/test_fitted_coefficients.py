"""Control variates with fitted coefficients, enumerated where the policy decides when to stop, with replays."""

from __future__ import annotations

import numpy as np
import pytest

import credit
from credit.bench.bias import x64
from credit.bench.enumeration import fan_outs
from estimators.composition.control import control_advantage
from graphs.worlds.micro.examples import MICRO

WORLD = MICRO["stop-rewards"]
OTHERS = 100
"""Groups of two traces that the coefficients are fitted on, drawn once."""


def rows_of(members: list[int], group: list[str], fan: list[int | None], at: int) -> dict[str, list]:
    """Columns of traces of the world; siblings of one fan share their choices up to decision `at`."""
    found: dict[str, list] = {name: [] for name in ("group", "trace", "reward", "context", "node", "state", "choice")}
    for t, (member, name, number) in enumerate(zip(members, group, fan, strict=True)):
        for step in range(int((WORLD.state[member] >= 0).sum())):
            branches = number is not None and step == at
            found["group"].append(name)
            found["trace"].append(f"{name}-{t}")
            found["reward"].append(float(WORLD.total[member]))
            found["context"].append(f"{name}-{number}" if branches else None)
            found["node"].append(f"{name}-{number}-{t}" if branches else None)
            found["state"].append(int(WORLD.state[member, step]))
            found["choice"].append(int(WORLD.choice[member, step]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1])
def test_coefficients_that_are_fitted_leave_the_gradient_exact(at: int) -> None:
    """Whatever the other groups drew: claims are centred and wrong, and β is not 0."""
    rng = np.random.default_rng(at)
    wrong = rng.normal(size=WORLD.policy.shape) * (WORLD.policy > 0)
    wrong = wrong - (WORLD.policy * wrong).sum(axis=1, keepdims=True)
    drawn = rng.choice(len(WORLD.ends), 2 * OTHERS, p=WORLD.probabilities())
    others = rows_of(drawn.tolist(), [f"other-{t // 2}" for t in range(2 * OTHERS)], [None] * 2 * OTHERS, at)
    draws = fan_outs(WORLD, 2, at, 2)
    pushed, largest = np.zeros(WORLD.policy.shape), 0.0
    with x64():
        for chance, members, weight, context in zip(
            draws.chance, draws.members, draws.weight, draws.evidence["context"], strict=True
        ):
            real = members >= 0
            fan = [None if number < 0 else int(number) for number in context[real, at]]
            own = rows_of(members[real].tolist(), ["q"] * int(real.sum()), fan, at)
            columns = {name: own[name] + others[name] for name in own}
            state, choice = np.array(columns.pop("state")), np.array(columns.pop("choice"))
            evidence = {name: columns.pop(name) for name in ("context", "node")}
            graph, reward, rows = credit.from_columns(**columns, evidence=evidence, events=512, traces=256, agents=256)
            amount = np.zeros(graph.num_events)
            amount[rows.event] = wrong[state, choice]
            claim = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
            made = control_advantage(graph, reward.astype(np.float64), [claim])
            n = len(own["group"])
            assert made.credit.valid[rows.event[:n]].all()
            advantage = np.asarray(rows.gather(made.credit.advantage))[:n]
            steps = (WORLD.state[members[real]] >= 0).sum(axis=1)
            share = np.concatenate([weight[t, :length] for t, length in zip(np.flatnonzero(real), steps, strict=True)])
            np.add.at(pushed, (state[:n], choice[:n]), chance * share * advantage)
            largest = max(largest, float(np.abs(np.asarray(made.beta)[0, : int(real.sum())]).max()))
    assert largest > 0.01
    # the rewards of a batch are single precision; those of this world are exact in it
    np.testing.assert_allclose(WORLD.through_scores(pushed), WORLD.gradient(), atol=1e-7)
