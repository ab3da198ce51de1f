"""Values of going on by step: by hand, with a cost, from re-runs, and a price from a budget."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import credit
from credit.metrics.decision_values import DecisionValue, fitted_price, step_values
from graphs.errors import CreditError
from graphs.traces.batch import Traces


def log(times: int = 1, **evidence: Any) -> Traces:
    """Four traces of one decision, so many times: two stop at 0, two go on, at 3 and 5 tokens."""
    stated: dict[str, Any] = {"stop_propensity": [0.5] * 4, "tokens": [0, 3, 0, 5]} | evidence
    n = 4 * times
    return credit.from_columns(
        group=["q"] * n, trace=list(range(n)), agent=["lead"] * n, event_type=["stop", "message"] * 2 * times,
        reward=[0.25, 0.75, 0.5, 1.0] * times, evidence={name: cells * times for name, cells in stated.items()},
    )[2].traces  # fmt: skip


HALF_OF_80 = 0.107932 / 1.959964
"""Half of Jeffreys' interval of 40 coins of 80, the 0.975 quantile of Beta(40.5, 40.5) less a half: 1.96 errors."""


def test_gain_cost_and_price_by_hand() -> None:
    """Σ (t − mean t)(R − mean R) / 3 with t = ±2: the differences of means, 0.5 and 4, times 4/3."""
    row = step_values(log(), cost="tokens", price=0.125)[0]
    assert (row.agent, row.step, row.decisions, row.more, row.stderr, row.spent) == ("lead", 0, 4, 2, None, 0.0)
    assert row.gain == pytest.approx(2 / 3) and row.cost == pytest.approx(16 / 3)
    assert row.value == pytest.approx(0)


def test_replays_are_means_over_points_with_an_error_over_traces() -> None:
    few = step_values(log(counterfactual_reward=[0.5, 0.5, 0.75, 0.25]), basis="replays")[0]
    assert few.value == pytest.approx(0.375) and few.stderr is None  # 0.25, 0.25, 0.25, 0.75
    row = step_values(log(20, counterfactual_reward=[0.5, 0.0, 0.75, 0.25]), basis="replays")[0]
    assert row.value == pytest.approx(0.5)  # 0.25 and 0.75
    assert row.stderr == pytest.approx(0.5 * HALF_OF_80, rel=1e-4)
    refused = step_values(log(counterfactual_reward=[0.5, None, 0.75, 0.25]), basis="replays")[0]
    assert refused.value is None and "evidence" in refused.reason


@pytest.mark.parametrize(
    ("evidence", "options", "message"),
    [
        ({"tokens": [0, None, 0, 5]}, {"cost": "tokens"}, "1 of 4 events have no tokens"),
        ({}, {"cost": "money"}, "no prices"),
        ({}, {"price": 1.0}, "there is no cost"),
        ({}, {"cost": "tool_calls", "price": float("nan")}, "price is nan; expected a finite number, 0 or more"),
        ({}, {"cost": "tool_calls", "price": -1.0}, "price is -1.0; expected a finite number"),
        ({}, {"kind": "spawn"}, "no action of type spawn"),
        ({}, {"basis": "critic"}, "q_value"),
    ],
)
def test_what_the_log_lacks_is_named(evidence: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(CreditError, match=message):
        step_values(log(**evidence), **options)


def test_a_stop_without_a_probability_has_no_overlap() -> None:
    row = step_values(log(stop_propensity=[None, 0.5, 0.5, 0.5]))[0]
    assert row.value is None and "propensity" in row.reason


def test_a_budget_fits_a_price() -> None:
    steps = [
        DecisionValue("", "lead", k, 9, 5, gain, 10.0, gain, None, 10.0 * k, "")
        for k, gain in enumerate([0.4, 0.2, 0.1, -0.1])
    ]
    assert [fitted_price(steps, budget) for budget in (30, 20, 15, 0)] == pytest.approx([0, 0.01, 0.02, 0.04])
    with pytest.raises(CreditError, match="before its first decision"):
        fitted_price([dataclasses.replace(steps[0], spent=5.0)], 4.0)
    with pytest.raises(CreditError, match="budget is nan"):
        fitted_price(steps, float("nan"))
    with pytest.raises(CreditError, match="of one agent"):
        fitted_price([*steps, dataclasses.replace(steps[0], agent="b")], 20)


def test_a_price_is_one_at_which_its_own_step_ends() -> None:
    """gain / cost · cost may exceed gain by rounding: this gave 0.79, the price of the second step."""
    steps = [
        DecisionValue("", "lead", k, 9, 5, gain, cost, gain, None, 100.0 * k, "")
        for k, (gain, cost) in enumerate([(0.84, 321.0), (0.79, 1.0), (0.71, 314.0)])
    ]
    assert fitted_price(steps, 150.0) == pytest.approx(0.84 / 321)


def test_of_replays_the_error_leaves_out_no_cost_and_an_unknown_cost_is_refused() -> None:
    again = log(20, counterfactual_reward=[0.5, 0.5, 0.75, 0.25])
    assert step_values(again, basis="replays", cost="tokens")[0].stderr is not None
    priced = step_values(again, basis="replays", cost="tokens", price=0.125)[0]
    assert (priced.cost, priced.stderr) == (pytest.approx(4 * 80 / 79), None)
    alone = credit.from_columns(
        group=["q"], trace=["a"], event_type=["message"], reward=[1.0],
        evidence={"stop_propensity": [0.5], "counterfactual_reward": [0.2], "tokens": [100]},
    )[2].traces  # fmt: skip
    row = step_values(alone, basis="replays", cost="tokens", price=1e-3)[0]
    assert row.cost is None and row.value is None and row.reason


def steps(count: int, chance: float, more: int, offset: float = 0.0) -> Traces:
    """Traces of one decision, of which the first `more` go on and earn 5 more."""
    goes_on = [i < more for i in range(count)]
    rewards = [offset + 0.25 * (i % 3) + 5.0 * on for i, on in enumerate(goes_on)]
    return credit.from_columns(
        group=["q"] * count, trace=list(range(count)), agent=["lead"] * count, reward=rewards,
        event_type=["message" if on else "stop" for on in goes_on], evidence={"stop_propensity": [chance] * count},
    )[2].traces  # fmt: skip


@pytest.mark.parametrize(
    ("count", "chance", "more", "words"),
    [(60, 0.5, 0, "one way"), (60, 0.5, 60, "one way"), (60, 0.99, 0, "one way"), (60, 0.5, 1, "contradict"),
     (60, 0.5, 59, "contradict"), (60, 0.5, 40, ""), (60, 0.99, 1, "")],
)  # fmt: skip
def test_a_side_that_was_not_seen_and_draws_against_their_chances_have_no_number(
    count: int, chance: float, more: int, words: str
) -> None:
    row = step_values(steps(count, chance, more))[0]
    assert (row.value is None) == bool(words) and words in row.reason


def test_an_offset_that_single_precision_does_not_hold_is_refused() -> None:
    """Columns have single precision; logs have double, of which the test of commands is."""
    near = step_values(steps(60, 0.5, 30, 1000.0))[0].value
    assert near == pytest.approx(step_values(steps(60, 0.5, 30))[0].value, rel=1e-3)
    with pytest.raises(CreditError, match="subtract an offset"), pytest.warns(UserWarning):
        step_values(steps(60, 0.5, 30, 1e8))
