"""The rules of composition: what must not change an entry, who is refused, and splits that do not pay."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import credit
import estimators
from credit.ledger import Errors, Increments, Reconcile, Shares
from credit.ledger.reconciling import by_reconciling
from credit.ledger.rules import by_increments
from estimators.composition.nesting import NestingError, prior_variance, subtree_levels
from estimators.composition.votes import StatedZeroError
from graphs.padding import Sizes, pad

pytestmark = pytest.mark.optimised

ROOM = Sizes(events=1280, edges=8, agents=32, traces=8)  # one shape for all batches here


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def batch(extra: int = 0, seed: int = 0) -> tuple[credit.EventGraph, np.ndarray]:
    """Four traces of three agents, turns of three events; and which are not among `extra` events put in between."""
    rng = np.random.default_rng(seed)
    kept = np.ones(240 + extra, bool)
    kept[rng.choice(len(kept), extra, replace=False)] = False
    number = np.cumsum(kept) - 1  # an extra event joins the unit of the event before it
    number = np.maximum(number, 0)
    trace = number // 60
    graph, _, _ = credit.from_columns(
        group=trace // 2,
        trace=trace,
        agent=(number // 3) % 3,
        turn=number // 3,
        reward=np.zeros(len(kept)),
        evidence={"tokens": np.arange(len(kept))},
    )
    return pad(graph, ROOM), kept


def spread(graph: credit.EventGraph, kept: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values of the events that both batches have, NaN on the others."""
    out = np.full(graph.num_events, np.nan)
    out[np.flatnonzero(kept)] = values
    return out


def increments(graph: credit.EventGraph, values: np.ndarray, **changes: object) -> credit.Credit:
    options = {"source": "a", "stderr": 0.1, "estimand": "increment"} | changes
    return credit.claim(graph, values, **options)


def reconciled(
    graph: credit.EventGraph, claims: list[credit.Credit], *, tau: float | str = 0.5, errors: Errors | None = None
):
    rule = Reconcile(tau, None, errors or Errors())
    return by_reconciling(graph, jnp.asarray(np.arange(8.0)), jnp.asarray(graph.trace_mask), claims, rule)


def averaged(graph: credit.EventGraph, claims: list[credit.Credit]):
    return by_increments(graph, jnp.asarray(graph.trace_mask), claims, Increments())


@pytest.mark.slow
def test_a_thousand_events_that_nobody_claims_change_no_bit_of_the_others() -> None:
    rng = np.random.default_rng(1)
    values, second = rng.normal(size=240), np.where(rng.random(240) < 0.5, rng.normal(size=240), np.nan)
    errors = rng.uniform(0.01, 1, 240)
    found = {}
    for extra in (0, 1000):
        graph, kept = batch(extra)
        a = increments(graph, spread(graph, kept, values), stderr=np.nan_to_num(spread(graph, kept, errors)))
        b = increments(graph, spread(graph, kept, second), source="b")
        per_turn = increments(graph, np.asarray(graph.turn_ids) % 7 - 3.0, source="c", unit="turn", stderr=0.3)
        here = np.flatnonzero(kept)
        for rule, made in (
            ("average", averaged(graph, [a, b])),
            ("reconcile", reconciled(graph, [a, b, per_turn])),
            ("fit", reconciled(graph, [a, b, per_turn], tau="fit")),
        ):
            found[rule, extra] = np.asarray(made.cells)[here], np.asarray(made.stderr)[here]
            others = np.setdiff1d(np.arange(graph.num_events), here)
            assert not np.asarray(made.cells)[others].any()
    for rule in ("average", "reconcile", "fit"):
        for before, after in zip(found[rule, 0], found[rule, 1000], strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.slow
def test_a_second_claim_of_one_source_adds_nothing_and_an_independent_copy_doubles_precision() -> None:
    graph, _ = batch()
    rng = np.random.default_rng(2)
    a = increments(graph, rng.normal(size=1280))
    coarse = increments(graph, np.asarray(graph.turn_ids) % 5 - 2.0, source="c", unit="turn", stderr=0.2)
    once, twice = reconciled(graph, [a, coarse]), reconciled(graph, [a, a, coarse])
    for field in ("cells", "stderr", "claimed"):
        np.testing.assert_array_equal(getattr(once, field), getattr(twice, field))
    copied = reconciled(graph, [a, dataclasses.replace(a, source="b"), coarse])
    sharper = reconciled(graph, [dataclasses.replace(a, stderr=a.stderr / np.sqrt(2)), coarse])
    np.testing.assert_allclose(copied.cells.sum(axis=1), sharper.cells.sum(axis=1), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(copied.stderr, sharper.stderr, rtol=1e-12)


@pytest.mark.slow
def test_errors_of_zero_are_constraints_floored_or_refused() -> None:
    graph, _ = batch()
    zero = increments(graph, np.full(1280, 0.4), stderr=0.0)
    other = increments(graph, np.full(1280, 0.1), source="b", stderr=0.2)
    with pytest.raises(StatedZeroError, match="'a' states an error of 0 on 240 events"):
        reconciled(graph, [zero, other])
    real = np.asarray(graph.event_mask)
    exact = reconciled(graph, [zero, other], errors=Errors(exact=("a",)), tau=np.inf)
    np.testing.assert_allclose(np.asarray(exact.cells).sum(axis=1)[real], 0.4)
    assert not np.asarray(exact.stderr).any()
    floored = reconciled(graph, [zero, other], errors=Errors(replays={"a": np.full(1280, 4)}), tau=np.inf)
    floor = 5 / (36 * 7)
    wanted = (0.4 / floor + 0.1 / 0.04) / (1 / floor + 1 / 0.04)
    np.testing.assert_allclose(np.asarray(floored.cells).sum(axis=1)[real], wanted)


@pytest.mark.slow
def test_exact_claims_that_exclude_each_other_are_an_error_that_names_both() -> None:
    graph, _ = batch()
    events = increments(graph, np.full(1280, 0.5), stderr=0.0)
    turns = increments(graph, np.full(1280, 1.5), source="turns", unit="turn", stderr=0.0)
    total = np.full(8, 30.0)
    errors, start = Errors(exact=("a", "turns", "b")), np.zeros(8)
    both = {"rule": Reconcile(errors=errors), "expected": start}
    met = {"rule": Reconcile(tau=0, errors=errors), "expected": start}
    agreed = credit.compose(graph, total, [events, turns], **met)
    assert np.asarray(agreed.unexplained).tolist() == [0.0] * 8
    wrong = dataclasses.replace(turns, credit=turns.credit * 2)
    with pytest.raises(credit.ledger.ContradictionError, match=r"by 1\.5 at turn 0: that of 'turns' and that of 'a'"):
        credit.compose(graph, total, [events, wrong], **both)
    with pytest.raises(credit.ledger.ContradictionError, match=r"at event 0: that of 'a' and that of 'b'"):
        credit.compose(graph, total, [events, increments(graph, np.full(1280, 0.6), source="b", stderr=0.0)], **both)
    with pytest.raises(credit.ledger.ContradictionError, match=r"at trace 0: that of '.*' and that of the total"):
        credit.compose(graph, total + 1, [events, turns], **met)


@pytest.mark.slow
def test_levels_that_do_not_nest_and_claims_that_differ_within_a_unit_are_refused() -> None:
    graph, _ = batch()
    subtree = increments(graph, np.zeros(1280), unit="subtree")
    role = increments(graph, np.zeros(1280), source="b", unit="role")
    with pytest.raises(NestingError, match="'subtree' and 'role' do not nest"):
        reconciled(graph, [subtree, role])
    crossing = dataclasses.replace(graph, turn_ids=np.where(graph.event_mask, np.arange(1280) % 7, 0))
    turn, agent = (increments(crossing, np.zeros(1280), source=u, unit=u) for u in ("turn", "agent"))
    with pytest.raises(NestingError, match="'turn' and 'agent' do not nest: turn 0 has events in agents"):
        reconciled(crossing, [turn, agent])
    with pytest.raises(credit.CreditError, match="different numbers on its events"):
        reconciled(graph, [increments(graph, np.arange(1280.0), unit="agent")])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
def test_coarse_claims_need_somewhere_to_go_and_a_source_has_one_level() -> None:
    graph, _ = batch()
    agents = increments(graph, np.asarray(graph.agent_ids) * 1.0, unit="agent")
    alone = credit.compose(graph, np.zeros(8), [agents], rule=Reconcile())
    assert "12 without an event that may carry credit" in alone.refused["a"] and not np.asarray(alone.increments).any()
    averaged_only = credit.compose(graph, np.zeros(8), [agents])
    assert "only rule 'reconcile' can place" in averaged_only.refused["a"]
    named = credit.compose(graph, np.zeros(8), [agents], rule=Reconcile(scale=1e4))
    wanted = np.where(named.totals("agent").unit_mask, np.arange(32), 0)
    np.testing.assert_allclose(named.totals("agent").amount, wanted, atol=1e-6)
    two = credit.compose(graph, np.zeros(8), [agents, increments(graph, np.zeros(1280))], rule=Reconcile())
    assert "one source has one vote" in two.refused["a"]


@pytest.mark.slow
def test_claims_on_subtrees_are_claims_on_all_that_an_agent_spawned() -> None:
    """Against dense least squares over the sets of events, in a forest three deep."""
    graph, _ = batch()
    above = np.array(graph.agent_parent)
    above[1], above[2] = 0, 1  # in the first trace: 0 spawned 1, which spawned 2
    graph = dataclasses.replace(graph, agent_parent=above)
    depth, units = subtree_levels(graph)
    assert depth[:3].tolist() == [0, 1, 2] and [u[2] for u in units] == [2, 1, 0]
    rng = np.random.default_rng(3)
    values, said = rng.normal(size=1280), np.array([3.0, -1.0, 2.0])
    first = np.asarray(graph.agent_ids) < 3
    subtree = np.where(first, said[np.minimum(graph.agent_ids, 2)], np.nan)
    made = reconciled(
        graph,
        [increments(graph, values), increments(graph, subtree, source="b", unit="subtree", stderr=0.3)],
        tau=np.inf,
    )
    mine = np.flatnonzero(np.asarray(graph.event_mask) & (np.asarray(graph.trace_ids) == 0))
    below = np.array([(np.asarray(graph.agent_ids)[mine] >= a) for a in range(3)], float)
    normal = np.eye(len(mine)) / 0.01 + below.T @ below / 0.09
    wanted = np.linalg.solve(normal, values[mine] / 0.01 + below.T @ said / 0.09)
    np.testing.assert_allclose(np.asarray(made.cells).sum(axis=1)[mine], wanted, rtol=1e-10)


def test_splitting_ones_work_does_not_raise_ones_part_of_the_prior() -> None:
    graph, _ = batch()
    agent, trace = np.asarray(graph.agent_ids), np.asarray(graph.trace_ids)
    real = np.asarray(graph.event_mask)

    def part(of: credit.EventGraph, unclaimed: np.ndarray, who: list[int]) -> float:
        variance = prior_variance(of, unclaimed, scale=2.0)
        assert np.isclose(variance[trace == 0].sum(), 4.0)
        return float(variance[np.isin(np.asarray(of.agent_ids), who)].sum())

    few = real & ((agent != 0) | (np.arange(1280) < 3))  # agent 0 did one turn of three events, or twenty
    assert part(graph, few, [0]) == pytest.approx(part(graph, real, [0])) == pytest.approx(4 / 3)
    spawned = dataclasses.replace(graph, agent_parent=np.where(np.arange(32) == 1, 0, graph.agent_parent))
    assert part(spawned, real, [0, 1]) == pytest.approx(
        4 / 2
    )  # agent 1 as agent 0's: one of two parts, not two of three


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
def test_shares_split_from_the_top_and_scores_below_them() -> None:
    graph, _ = batch()
    rng = np.random.default_rng(4)
    phi = rng.normal(size=32)
    shares = credit.claim(graph, phi[graph.agent_ids], estimand="share", source="owen", unit="agent")
    judge = credit.claim(graph, rng.uniform(0, 1, 1280), estimand="score", source="judge")
    ledger = credit.compose(graph, np.ones(8), [shares, judge], rule=Shares())
    agents = ledger.totals("agent")
    np.testing.assert_allclose(agents.amount[agents.unit_mask], phi[agents.unit_mask], atol=1e-12)
    mine = np.flatnonzero(np.asarray(graph.agent_ids) == 1)[:5]
    ratio = np.asarray(ledger.increments)[mine] / np.asarray(judge.credit)[mine]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
    negative = credit.claim(graph, np.full(1280, -1.0), estimand="score", source="harsh")
    worth = credit.claim(graph, np.full(1280, 1.0), estimand="increment", source="critic")
    refused = credit.compose(graph, np.ones(8), [negative, worth], rule=Shares()).refused
    assert "negative scores" in refused["harsh"] and "divides by shares" in refused["critic"]


@pytest.mark.slow
def test_totals_and_tables_are_exact_sums_at_every_level() -> None:
    graph, _ = batch()
    rng = np.random.default_rng(5)
    ledger = credit.compose(graph, rng.normal(size=8), [increments(graph, rng.normal(size=1280))])
    q = [Fraction(2) ** int(e) for e in np.asarray(ledger.partition.exponent)]
    events = ledger.totals("event")
    for level in ("trace", "role", "agent", "turn", "decision"):
        totals = ledger.totals(level)
        assert totals.units.sum() == events.units.sum()
        for unit in np.flatnonzero(totals.unit_mask)[:5]:
            exact = int(totals.units[unit].sum()) * Fraction(2) ** int(totals.exponent[unit])
            assert exact == Fraction(float(totals.amount[unit]))
    for trace in range(4):
        assert Fraction(float(ledger.totals("trace").amount[trace])) % q[trace] == 0


def test_an_estimand_must_be_named() -> None:
    graph, _ = batch()
    with pytest.raises(TypeError, match="estimand"):
        credit.claim(graph, np.zeros(1280), source="a")  # type: ignore[call-arg]
    with pytest.raises(credit.CreditError, match="estimand is 'value'; expected one of"):
        credit.claim(graph, np.zeros(1280), estimand="value", source="a")


@pytest.mark.slow
def test_sources_that_disagree_or_agree_too_well_are_pointed_out() -> None:
    graph, _ = batch()
    rng = np.random.default_rng(6)
    truth = rng.normal(size=1280)

    def warned(gap: float) -> tuple[str, ...]:
        second = increments(graph, truth + gap * rng.normal(size=1280), source="b")
        return credit.compose(graph, np.zeros(8), [increments(graph, truth), second]).warnings

    assert warned(0.1 * np.sqrt(2)) == ()
    assert "differ more than their errors allow" in warned(0.3)[0]
    assert "share rollouts" in warned(0.05)[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
def test_a_return_is_taken_apart_as_it_was_computed() -> None:
    graph, _ = batch()
    rng = np.random.default_rng(7)
    value, reward = rng.normal(size=1280), rng.normal(size=8)
    steps = [
        credit.compose(graph, reward, [credit.gae(graph, reward, value=value, lambda_=x)]).increments
        for x in (0.0, 0.7)
    ]
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-5)
    discounted = credit.gae(graph, reward, value=value, discount=0.9)
    assert "discounted by 0.9 do not add up" in credit.compose(graph, reward, [discounted]).refused["gae"]
    unsaid = increments(graph, np.zeros(1280), estimand="return", source="mine")
    assert "does not say with what λ" in credit.compose(graph, reward, [unsaid]).refused["mine"]
    how = estimators.Recursion(discount=1.0, lambda_=0.0)
    said = increments(graph, value, estimand="return", source="mine", recursion=how)
    with pytest.warns(credit.ledger.OtherRewardsWarning):  # its numbers add up to anything
        assert credit.compose(graph, reward, [said]).refused == {}


def test_a_rule_has_no_option_of_another_and_refuses_what_cannot_be() -> None:
    graph, _ = batch()
    with pytest.raises(TypeError):
        Increments(tau=0.5)  # type: ignore[call-arg]
    for options, why in (
        ({"tau": -1.0}, "tau is -1.0; expected a number of 0 or more"),
        ({"tau": "best"}, "tau is 'best'"),
        ({"scale": 0.0}, "scale is 0.0; expected a positive number"),
    ):
        with pytest.raises(credit.CreditError, match=why):
            Reconcile(**options)  # type: ignore[arg-type]
    with pytest.raises(credit.CreditError, match=r"rule is 'reconcile', of type str; expected credit"):
        credit.compose(graph, np.zeros(8), [], rule="reconcile")  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"stderr": -0.1}, r"stderr of 'a' is -0.1\d* at event 0; expected 0 or more, inf for unknown"),
        ({"stderr": np.nan}, "stderr of 'a' is nan at event 0"),
        ({"unit": "team"}, "unit is 'team'; expected one of trace, role, subtree, agent, turn, event"),
        ({"recursion": estimators.Recursion(1.0, 1.0)}, "recursion is given for estimand 'increment'"),
    ],
)
def test_a_claim_that_cannot_be_is_refused(options: dict[str, object], why: str) -> None:
    graph, _ = batch()
    with pytest.raises(credit.CreditError, match=why):
        credit.claim(graph, np.zeros(1280), **{"estimand": "increment", "source": "a", **options})  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_ledger_says_what_it_is_and_when_it_explains_nothing() -> None:
    graph, _ = batch()
    reward = np.arange(8.0)
    empty = credit.compose(graph, reward, [credit.rloo(graph, reward)])
    assert "no claim is about increments of actions" in empty.warnings[0]
    noise = credit.compose(graph, reward, [increments(graph, np.random.default_rng(8).normal(size=1280) * 100)])
    assert noise.coverage < 0 and "negative coverage" in noise.warnings[0]
    assert repr(noise).startswith("Ledger(rule 'increments', 4 traces, 240 actions with an entry of a, coverage -")


@pytest.mark.parametrize("claims", [None, ["gae"], {"gae": 1}, 3])
def test_claims_are_a_list_of_credits(claims: object) -> None:
    graph, _ = batch()
    with pytest.raises(credit.CreditError, match=r"^claims.* is .*; expected a"):
        credit.compose(graph, np.zeros(8), claims)  # type: ignore[arg-type]
