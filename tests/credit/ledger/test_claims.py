"""Claims of one source together, with errors of any size, and with several numbers where one is expected."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import credit
from credit.ledger import Errors, Increments, Reconcile, Shares
from graphs.errors import CreditError

GRAPH, REWARD, ROWS = credit.from_columns(
    group=[0] * 4, trace=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0], event_type=["message", "tool_call"] * 2
)


def on_rows(*amounts: float) -> np.ndarray:
    """Numbers of the four rows at their events, NaN elsewhere."""
    flat = np.full(GRAPH.num_events, np.nan, np.float32)
    flat[ROWS.event] = amounts
    return flat


def increments(source: str, *amounts: float, **stated: float) -> credit.Credit:
    return credit.claim(
        GRAPH, on_rows(*amounts), estimand="increment", source=source, centred=True, own_outcome=False, **stated
    )


@pytest.mark.slow
def test_an_unknown_error_does_not_become_known_beside_another_of_its_source() -> None:
    """The mean of the variances 0, which is unknown, and 0.25 was the error 0.35."""
    two = [increments("critic", 0.1, 0.1, 0.1, 0.1, stderr=error) for error in (0.0, 0.5)]
    assert np.isinf(ROWS.gather(credit.compose(GRAPH, REWARD, two).stderr)).all()
    replays = Errors(replays={"critic": np.full(GRAPH.num_events, 4)})
    told = credit.compose(GRAPH, REWARD, two, rule=Increments(replays))
    # Of four replays that agree, 5 / (36 · 7) of a unit span.
    np.testing.assert_allclose(ROWS.gather(told.stderr), np.sqrt((5 / 252 + 0.25) / 2), rtol=1e-6)
    exact = credit.compose(GRAPH, REWARD, two, rule=Increments(Errors(exact=("critic",))))
    np.testing.assert_allclose(ROWS.gather(exact.stderr), np.sqrt(0.25 / 2), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("error", [1e-15, 1.0, 1e19, 1.8e19])
def test_a_claim_keeps_its_weight_whatever_its_error(error: float) -> None:
    """One over the square of an error of 1e19 is no normal number: the entry was 0, and its error 0."""
    one = increments("critic", 0.5, 0.25, -0.5, 0.0, stderr=error)
    other = increments("siblings", 0.25, 0.5, 0.5, 0.0, stderr=error)
    alone, both = credit.compose(GRAPH, REWARD, [one]), credit.compose(GRAPH, REWARD, [one, other])
    np.testing.assert_allclose(ROWS.gather(alone.increments), [0.5, 0.25, -0.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(ROWS.gather(both.increments), [0.375, 0.375, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(ROWS.gather(alone.stderr), error, rtol=1e-5)
    np.testing.assert_allclose(ROWS.gather(both.stderr), error / np.sqrt(2), rtol=1e-5)
    reconciled = credit.compose(GRAPH, REWARD, [one, other], rule=Reconcile())
    np.testing.assert_allclose(ROWS.gather(reconciled.increments), [0.375, 0.375, 0.0, 0.0], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("error", [1e-15, 1e18, 1e19])
@pytest.mark.parametrize("judge_error", [1.0, 0.125])
def test_claims_on_nested_units_agree_alike_in_errors_of_any_size(error: float, judge_error: float) -> None:
    """With errors of 1e19 the judge's claim on an agent was heard by none of its events, without a word."""

    def composed(unit: float) -> credit.Ledger:
        critic = increments("critic", 0.5, 0.25, -0.5, 0.0, stderr=unit)
        judge = credit.claim(
            GRAPH,
            on_rows(1.0, 1.0, -0.25, -0.25),
            estimand="increment",
            source="judge",
            unit="agent",
            stderr=judge_error * unit,
        )
        return credit.compose(GRAPH, REWARD, [critic, judge], rule=Reconcile())

    expected = ROWS.gather(composed(1.0).increments)
    np.testing.assert_allclose(expected[:2].sum(), (0.75 * judge_error**2 + 2) / (judge_error**2 + 2), rtol=1e-6)
    np.testing.assert_allclose(ROWS.gather(composed(error).increments), expected, rtol=1e-5)
    np.testing.assert_allclose(
        ROWS.gather(composed(error).stderr), error * ROWS.gather(composed(1.0).stderr), rtol=1e-5
    )


@pytest.mark.parametrize("error", [1e-300, 1e-30, 1e-20, 1e-19, 1.9e19, 1e30, 1e39])
def test_a_stated_error_whose_square_is_lost_is_refused(error: float) -> None:
    """It counted as unknown: beside a claim of error 0.1 the entry was the plain mean."""
    with pytest.raises(CreditError, match=r"stderr of 'critic' is .* at event \d+; expected 0, inf for unknown, or a"):
        increments("critic", 0.5, 0.5, 0.5, 0.5, stderr=error)


def test_a_stated_error_is_refused_at_its_event() -> None:
    each = np.full(GRAPH.num_events, 0.1)
    each[ROWS.event[2]] = 1e30
    with pytest.raises(CreditError, match=rf"at event {ROWS.event[2]}; .* from 1\.1e-19 to 1\.8e\+19"):
        credit.claim(GRAPH, on_rows(0.5, 0.5, 0.5, 0.5), estimand="increment", source="critic", stderr=each)
    outside = credit.claim(GRAPH, on_rows(0.5, 0.5, np.nan, 0.5), estimand="increment", source="critic", stderr=each)
    assert ROWS.gather(outside.valid).tolist() == [True, True, False, True]


@pytest.mark.slow
@pytest.mark.parametrize(("error", "entry"), [(0.0, 0.3), (np.inf, 0.3), (1.1e-19, 0.5), (1.8e19, 0.1)])
def test_errors_of_0_and_infinity_are_unknown_and_those_in_range_are_weights(error: float, entry: float) -> None:
    one, other = increments("x", 0.5, 0.5, 0.5, 0.5, stderr=error), increments("y", 0.1, 0.1, 0.1, 0.1, stderr=0.1)
    np.testing.assert_allclose(ROWS.gather(credit.compose(GRAPH, REWARD, [one, other]).increments), entry, rtol=1e-6)


def test_errors_whose_squares_add_up_to_no_number_say_nothing_about_agreement() -> None:
    """They were counted as a perfect agreement, χ² 0."""
    one, other = (increments(source, 0.5, 0.25, -0.5, 0.0, stderr=1.8e19) for source in ("critic", "siblings"))
    assert np.isnan(credit.compose(GRAPH, REWARD, [one, other]).chi_squared["critic", "siblings"])


@pytest.mark.parametrize("estimand", ["score", "share"])
def test_a_split_refuses_several_numbers_for_one_unit(estimand: str) -> None:
    """The number of the last event was taken: 3 to 1 within an agent divided as 1 to 1."""
    claim = credit.claim(GRAPH, on_rows(1, 3, 1, 1), estimand=estimand, source="judge", unit="agent")
    with pytest.raises(CreditError, match=r"'judge' claims agent 0 with different numbers on its events"):
        credit.compose(GRAPH, REWARD, [claim], rule=Shares())


@pytest.mark.slow
def test_presence_is_checked_of_the_claim_that_is_used() -> None:
    """A second claim of the source, on all actions, passed for the first, whose presence follows the event's type."""
    chosen, whole = increments("critic", 0.5, np.nan, -0.5, np.nan), increments("critic", 0.25, 0.1, -0.25, 0.1)
    alone = credit.compose(GRAPH, REWARD, [whole]).advantage("control", beta=1.0)
    for claims in ([chosen, whole], [whole, chosen]):
        signal = credit.compose(GRAPH, REWARD, claims).advantage("control", beta=1.0)
        assert signal.used == ("critic",) and "the event's type" in signal.refused["critic"]
        np.testing.assert_array_equal(ROWS.gather(signal.credit.advantage), ROWS.gather(alone.credit.advantage))
        stated = {condition.name: condition for condition in signal.conditions}
        assert stated["presence of critic"].why == "every action carries a claim"


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("lambda_", [0.0, 0.5, 1.0])
def test_what_a_frozen_agent_did_in_between_is_the_environments(lambda_: float) -> None:
    """The increment of every action before a frozen one was left out, and what it had changed was unexplained."""
    graph, reward, rows = credit.from_columns(
        group=[0] * 8,
        trace=[0] * 4 + [1] * 4,
        agent=list("abac") * 2,
        reward=[1.0] * 4 + [0.0] * 4,
        evidence={"trainable": [1, 0, 1, 0] * 2},
    )
    value = np.full(graph.num_events, np.nan, np.float32)
    value[rows.event] = [0.5, 0.75, 0.625, 0.0, 0.5, 0.25, 0.125, 0.0]
    environment = dataclasses.replace(graph, trainable_mask=None, action_mask=graph.action_mask & graph.trainable_mask)
    ledgers = [
        credit.compose(each, reward, [credit.gae(each, reward, value=value, lambda_=lambda_)])
        for each in (graph, environment)
    ]
    for ledger in ledgers:
        increments = rows.gather(ledger.increments)
        np.testing.assert_allclose(increments, [0.125, 0, 0.375, 0, -0.375, 0, -0.125, 0], atol=1e-6)
        assert rows.gather(ledger.claimed).tolist() == [True, False] * 4 and not ledger.other_rewards
    assert ledgers[0].explained == ledgers[1].explained
    off = credit.compose(graph, 2 * reward, [credit.gae(graph, reward, value=value, lambda_=lambda_)])
    assert "'gae' adds up to 1 in trace 0, whose return is 2" in off.other_rewards["gae"]


def test_the_page_says_which_methods_state_the_errors_that_reconcile_needs() -> None:
    """`gae` and `coma` were refused by a rule whose page said nothing of errors."""
    columns = {"group": [0] * 8, "trace": [*"aabbccdd"], "turn": [0, 1] * 4, "reward": np.repeat([1.0, 0, 1, 0], 2)}
    branch = {"context": ["q", None] * 4, "node": ["m", "a", "m", "b", "n", "c", "n", "d"]}
    numbers = {"value": [0.5, 0.7] * 4, "q_value": [0.6, 0.4] * 4, "target_value": [0.5] * 8}
    graph, reward, rows = credit.from_columns(**columns, evidence=branch | numbers)
    error = np.full(graph.num_events, 0.1, np.float32)
    by = {"value": rows.evidence["value"], "value_stderr": error}
    claims = {name: credit.run(rows, name) for name in ("c3", "gae", "coma")}
    claims |= {"turn_baseline": credit.run(credit.from_columns(**columns)[2], "turn_baseline")}
    claims |= {"critic": credit.critic(graph, reward, **by)}
    claims |= {"claim": credit.claim(graph, error, estimand="increment", source="claim", stderr=error)}
    without = {name for name, claim in claims.items() if not np.isfinite(claim.stderr[claim.valid]).all()}
    page = " ".join(Path("docs/ledger.md").read_text().split())
    assert without == {"gae", "coma"}
    assert "`gae` and `coma` state none; `turn_baseline` and replayed `c3` do; `critic(value_st" in page
    for name in without:
        with pytest.warns(credit.ledger.RefusedClaimWarning, match="it states no error, and rule 'reconcile'"):
            credit.compose(graph, reward, [claims[name]], rule=Reconcile())
