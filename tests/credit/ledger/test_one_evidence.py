"""What two methods make of one evidence has one vote, and what no evidence tells is no claim beside others."""

import functools
import inspect

import jax
import numpy as np
import pytest

import credit
from credit.tables.batch_rows import Rows
from estimators.composition.increments import NotComposableError, as_increment
from graphs.event_graph import EventGraph

TRACES, TURNS = 16, 4


def _drawn(seed: int = 3) -> tuple[EventGraph, np.ndarray, Rows]:
    rng = np.random.default_rng(seed)
    rows = TRACES * TURNS
    return credit.from_columns(
        group=np.repeat(np.arange(4), rows // 4),
        trace=np.repeat(np.arange(TRACES), TURNS),
        agent=np.tile(["planner", "worker"], rows // 2),
        turn=np.tile(np.arange(TURNS), TRACES),
        order=np.tile(np.arange(TURNS), TRACES),
        reward=np.repeat(rng.integers(0, 2, TRACES), TURNS).astype(np.float32),
        event_reward=rng.normal(size=rows).astype(np.float32),
        evidence={"value": rng.random(rows)},
    )


@pytest.mark.filterwarnings("ignore::graphs.errors.MissingColumnWarning")
def test_methods_that_need_no_evidence_are_no_claims_beside_others() -> None:
    """`mt_grpo` without scale was averaged with `gae`: it gives the outcome to the last action."""
    graph, reward, rows = _drawn()
    event_reward = rows.event_reward
    by_evidence = credit.gae(graph, reward, event_reward=event_reward, value=rows.evidence["value"], lambda_=1.0)
    met = []
    for name, method in credit.METHODS.items():
        if method.needs:
            continue
        takes = inspect.signature(method.fn).parameters
        for options in ({}, {"scale": "none"}, {"lambda_": 1.0}, {"discount": 1.0}, {"normalise": False}):
            if not options.keys() <= takes.keys():
                continue
            run = functools.partial(credit.run, rows.traces, name, evidence=["event_reward"], **options)
            try:
                if jax.eval_shape(run).estimand not in ("increment", "return", "contrast"):
                    continue
                claim = run()
                as_increment(graph, claim)
            except (NotComposableError, credit.CreditError):
                continue
            with pytest.warns(credit.ledger.RefusedClaimWarning, match=f"1 of 2 claims refused: '{name}' "):
                ledger = credit.compose(graph, reward, [by_evidence, claim], event_reward=event_reward)
            assert ledger.channels == ("gae",), (name, options)
            assert "values a place" in ledger.refused[name]
            alone = credit.compose(graph, reward, [claim], event_reward=event_reward)
            assert alone.channels == (name,)
            met.append(name)
    assert {*met} == {"turn_baseline", "mt_grpo"}


@pytest.mark.parametrize("first", [0, 1])
def test_two_methods_of_one_value_have_one_vote(first: int) -> None:
    """`gae` and `critic` of one value outvoted a third claim by two to one."""
    graph, reward, rows = _drawn()
    shared = {"event_reward": rows.event_reward, "value": rows.evidence["value"]}
    pair = [credit.gae(graph, reward, lambda_=0.9, **shared), credit.critic(graph, reward, **shared)]
    amount = np.zeros(graph.num_events, np.float32)
    amount[rows.event] = np.random.default_rng(4).normal(size=len(rows.event))
    third = credit.claim(graph, amount, estimand="increment", source="third")
    claims = [pair[first], third, pair[1 - first]]
    with pytest.warns(credit.ledger.RefusedClaimWarning, match=r"1 of 3 claims refused: .* one evidence"):
        ledger = credit.compose(graph, reward, claims, event_reward=rows.event_reward)
    alone = credit.compose(graph, reward, claims[:2], event_reward=rows.event_reward)
    assert ledger.channels == alone.channels == (pair[first].source, "third")
    assert "one evidence has one vote" in ledger.refused[pair[1 - first].source]
    np.testing.assert_array_equal(ledger.increments, alone.increments)
    others = dict(shared, value=np.where(np.isnan(shared["value"]), np.nan, 1 - shared["value"]))
    apart = [pair[0], credit.critic(graph, reward, **others)]
    assert credit.compose(graph, reward, apart, event_reward=rows.event_reward).channels == ("gae", "critic")
