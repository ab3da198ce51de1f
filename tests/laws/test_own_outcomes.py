"""Which entries hold their own trace's outcome: those that move when that outcome moves, and no others."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import numpy as np
import pytest

import credit
from credit.laws.subject import RTOL
from credit.laws.trial_batches import Batch
from credit.ledger import Ledger, Reconcile
from credit.methods.role_methods import run_by_role
from credit.tables.batch_rows import Rows
from estimators.composition.explained import explained
from estimators.composition.increments import NotComposableError, as_increment
from graphs.event_graph import EventGraph
from tests.laws.test_laws import SUBJECTS, new_subject

CLAIMS = [name for name, method in SUBJECTS.items() if method.estimand in ("increment", "return")]
A_LITTLE = np.float32(0.25)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.optimised) for name in CLAIMS])
def test_an_entry_holds_its_outcome_where_it_moves_with_it(name: str) -> None:
    subject = new_subject(name)

    def increments(batch: Batch, reward: jax.Array) -> tuple[jax.Array, ...]:
        claim = subject.direct(dataclasses.replace(batch, reward=reward))
        claim = as_increment(batch.graph, claim) if claim.estimand == "return" else claim
        return claim.credit - claim.baseline, claim.valid, claim.holds_outcome

    for batch in map(subject.padded, (subject.regular(), subject.ragged(), subject.uneven())):
        risen = batch.reward + A_LITTLE * np.eye(len(batch.reward), dtype=np.float32)
        try:
            before, valid, holds = map(np.asarray, increments(batch, batch.reward))
        except NotComposableError:
            pytest.skip("no claim on increments")
        after, still, _ = map(np.asarray, jax.vmap(increments, in_axes=(None, 0))(batch, risen))
        of_own = np.asarray(batch.graph.trace_ids), np.arange(len(before))
        both = valid & still[of_own] & np.asarray(batch.graph.event_mask)
        moves = np.abs(after[of_own] - before) > RTOL
        np.testing.assert_array_equal(holds[both], moves[both])


class Game(NamedTuple):
    """64 traces of a planner and a reviewer, with the true values before and after each action.

    Attributes:
      known: the share of the variance of the reward within groups that the planners' true increments explain.
    """

    graph: EventGraph
    reward: np.ndarray
    rows: Rows
    value: np.ndarray
    known: float

    @property
    def start(self) -> np.ndarray:
        return np.where(np.asarray(self.graph.trace_mask), np.float32(0.5), np.float32(0))


def game(seed: int) -> Game:
    rng = np.random.default_rng(seed)
    plan, review = rng.random((2, 64)) < 0.5
    outcome = (rng.random(64) < 0.2 + 0.4 * plan + 0.2 * review).astype(np.float32)
    trace = np.repeat(np.arange(64), 2)
    value = np.stack([np.full(64, 0.5), 0.3 + 0.4 * plan], 1).ravel()
    graph, reward, rows = credit.from_columns(
        group=trace // 8, trace=trace, agent=["planner", "reviewer"] * 64, role=["plan", "review"] * 64,
        reward=outcome[trace], order=[0, 1] * 64, evidence={"value": value},
    )  # fmt: skip
    known = 1 - np.mean((outcome - 0.3 - 0.4 * plan) ** 2) / np.var(outcome.reshape(8, 8), axis=1, ddof=1).mean()
    return Game(graph, np.asarray(reward), rows, np.asarray(rows.evidence["value"]), float(known))


def test_equal_increments_explain_as_much_by_whatever_name() -> None:
    """`critic` explained 0.169 where `gae` at λ = 0, with the same increments, explained 0.329."""
    g = game(3)
    gae = credit.gae(g.graph, g.reward, value=g.value, lambda_=0.0)
    for claim in (gae, credit.critic(g.graph, g.reward, value=g.value)):
        ledger = credit.compose(g.graph, g.reward, [claim], expected=g.start)
        assert ledger.explained == pytest.approx(g.known, abs=1e-5)


def test_roles_keep_which_entries_hold_the_outcome() -> None:
    """One flag for all roles said that the planners' entries hold it, since the reviewers' do."""
    g = game(4)
    result = run_by_role(g.rows, {"plan": "critic", "review": "critic"})
    assert g.rows.gather(result.holds_outcome).tolist() == [False, True] * 64


def test_a_claim_of_ones_own_says_which_entries_hold_the_outcome() -> None:
    g = game(5)
    amount, last = credit.critic(g.graph, g.reward, value=g.value).credit, np.zeros(g.graph.num_events, bool)
    last[g.rows.event[1::2]] = True
    for held, expected in ((last, g.known), (~last, None), (True, None)):
        claim = credit.claim(g.graph, amount, estimand="increment", source="mine", own_outcome=held)
        ledger = credit.compose(g.graph, g.reward, [claim], expected=g.start)
        assert (ledger.explained == pytest.approx(g.known, abs=1e-5)) == (expected is not None)


def test_least_squares_carry_an_outcome_from_its_entry_to_the_others() -> None:
    """A claim on the sum of a trace made the planner's entry fall as the outcome rose, and it counted as known."""
    g = game(6)

    def composed(reward: np.ndarray) -> Ledger:
        first = credit.critic(g.graph, reward, value=g.value, value_stderr=np.full_like(g.value, 0.1))
        amount = np.where(np.asarray(g.graph.action_mask), np.float32(0.1), np.float32(np.nan))
        whole = credit.claim(
            g.graph, amount, estimand="increment", source="judge", unit="trace", stderr=0.1, own_outcome=False
        )
        return credit.compose(g.graph, reward, [first, whole], rule=Reconcile(), expected=g.start)

    ledger, risen = composed(g.reward), composed(g.reward + np.float32(0.25) * np.asarray(g.graph.trace_mask))
    critic = np.arange(len(ledger.channels)) == ledger.channels.index("critic")
    assert (np.abs(np.asarray(risen.cells - ledger.cells)[g.rows.event][:, critic]) > 0.01).all()
    known = np.broadcast_to(~critic, ledger.cells.shape)
    total, start = np.asarray(ledger.reward, np.float64), np.asarray(ledger.expected, np.float64)
    measured = explained(g.graph, ledger.cells, known, total, start, np.asarray(ledger.scored))
    assert ledger.explained == pytest.approx(measured.share)
