"""What a claim declares of itself is believed by name only, and not at all where the batch shows otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import credit
from credit.ledger import Signal

TRACES = 256


class Batch:
    """Two decisions a trace, both 1 with probability 0.4; the outcome is what they are worth, and luck."""

    def __init__(self, seed: int, luck: float = 0.25) -> None:
        rng = np.random.default_rng(seed)
        trace = np.repeat(np.arange(TRACES), 2)
        self.choice = (rng.random((TRACES, 2)) < 0.4).astype(float)
        self.increment = (self.choice - 0.4) * [0.5, 1.0]
        self.outcome = self.increment.sum(1) + rng.choice([-luck, luck], TRACES)
        self.graph, self.reward, self.rows = credit.from_columns(
            group=trace // 8, trace=trace, reward=self.outcome[trace]
        )

    def signal(self, values: np.ndarray, **declared: Any) -> Signal:
        amount = np.full(self.graph.num_events, np.nan)
        amount[self.rows.event] = values.ravel()
        options = {"estimand": "increment", "source": "critic", "centred": True, "own_outcome": False} | declared
        ledger = credit.compose(self.graph, self.reward, [credit.claim(self.graph, amount, **options)])
        return ledger.advantage("control", beta=1.0, limit=np.inf)


def at_first(values: np.ndarray) -> np.ndarray:
    return np.stack([values, np.full(len(values), np.nan)], axis=1)


@pytest.mark.slow
def test_a_claim_that_holds_the_outcome_with_the_other_sign_is_refused() -> None:
    """It was used: later actions had twice their return."""
    batch = Batch(0)
    assert "correlates with R − b by -1.0000" in batch.signal(at_first(-batch.outcome)).refused["critic"]


@pytest.mark.slow
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_claim_that_holds_the_outcome_of_its_trace_is_refused_though_it_declares_not_to(everywhere: bool) -> None:
    """Taken from the return of every later action it left a gradient of 0, and the condition "held"."""
    batch = Batch(0)
    values = np.stack([batch.outcome] * 2, axis=1) if everywhere else at_first(batch.outcome)
    signal = batch.signal(values)
    assert signal.used == () and "correlates with R − b by 1.0000" in signal.refused["critic"]
    assert batch.signal(values, own_outcome=True).used == ("critic",)


@pytest.mark.slow
def test_presence_that_follows_the_choice_is_refused_with_the_mean_of_the_sums() -> None:
    batch = Batch(1)
    signal = batch.signal(np.where(batch.choice == 1, batch.increment, np.nan))
    assert signal.used == ()
    assert "errors from 0: it is off centre, or which events carry it follows from" in signal.refused["critic"]
    assert batch.signal(batch.increment + 0.3).used == ()


@pytest.mark.slow
def test_what_no_batch_can_show_reads_as_stated() -> None:
    """A claim that tells the next choice is centred, and no number of this batch betrays it."""
    batch = Batch(2)
    told = batch.signal(at_first(batch.increment[:, 1]))
    assert told.used == ("critic",) and told.unbiased is None
    assert "  own outcome: as stated: nothing in 'critic' was decided after its event" in str(told)
    assert "  centred: as stated: " in str(told) and "own outcome: holds" not in str(told)
    own = str(batch.signal(batch.increment, own_outcome=True))
    assert "  own outcome: holds: " in own


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(20))
def test_honest_claims_take_part(seed: int) -> None:
    """Exact ones, wrong but centred ones, and ones whose rare large amounts did not occur."""
    batch, rng = Batch(seed), np.random.default_rng(100 + seed)
    rare = np.where(rng.random((TRACES, 2)) < 0.005, -1.99, 0.01)
    for values in (batch.increment, -3 * batch.increment, rare, rng.normal(size=(TRACES, 2))):
        assert batch.signal(values).used == ("critic",)


@pytest.mark.slow
def test_replays_are_those_that_the_log_states() -> None:
    columns = {"node": list("xxyz")}
    graph, reward, _ = credit.from_columns(
        group=[0] * 4, trace=list("abcd"), reward=[1.0, 0.0, 1.0, 0.0], evidence=columns
    )
    signal = credit.compose(graph, reward, []).advantage("control")
    assert signal.unbiased is None and "  baseline: as stated: the mean of the other traces" in str(signal)
