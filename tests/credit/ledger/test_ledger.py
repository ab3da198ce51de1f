"""The ledger adds up exactly, pays nobody twice, and puts what no claim explains into nobody's credit."""

from __future__ import annotations

import csv
import dataclasses
import json
from fractions import Fraction

import jax
import numpy as np
import pyarrow.parquet
import pytest

import credit
from credit.ledger import Ledger, compose
from credit.ledger.entry_rows import ENTRIES
from estimators.base import Reason, finish
from graphs.worlds import Bernoulli, World

pytestmark = pytest.mark.optimised


@pytest.fixture(scope="module")
def world() -> tuple[credit.Traces, np.ndarray, np.ndarray]:
    """Traces of a world with the true increments of their events, and V0."""
    made = World(outcome=Bernoulli(slope=0.8, centre=5.0))
    episodes = made.sample(jax.random.key(0), 32)
    truth = made.increments(episodes)
    traces = made.traces(episodes, truth)
    return traces, np.array(truth.flat(traces.graph.num_events)), np.asarray(truth.expected)


def claim(graph: credit.EventGraph, amounts: np.ndarray, where: np.ndarray | None = None, **changes) -> credit.Credit:
    options = {"estimand": "increment", "source": "truth", "centred": True, "own_outcome": False} | changes
    here = np.asarray(graph.action_mask) if where is None else where
    values = jax.numpy.asarray(amounts, jax.numpy.float32)
    return finish(
        graph,
        credit=values,
        baseline=jax.numpy.zeros_like(values),
        scale=jax.numpy.ones_like(values),
        stderr=jax.numpy.full_like(values, 0.1),
        reason=np.where(here, Reason.VALID, Reason.NO_EVIDENCE),
        unit="event",
        **options,
    )


def entries(ledger: Ledger, graph: credit.EventGraph, trace: int) -> list[float]:
    mine = np.flatnonzero((np.asarray(graph.trace_ids) == trace) & np.asarray(graph.event_mask))
    ends = (ledger.expected, ledger.outcome, ledger.unexplained)
    return [float(x) for x in np.asarray(ledger.increments)[mine]] + [float(x[trace]) for x in ends]


@pytest.mark.slow
def test_entries_add_up_to_the_reward_exactly(world) -> None:
    traces, truth, _ = world
    ledger = compose(
        traces.graph, traces.reward, [credit.rloo(traces.graph, traces.reward), claim(traces.graph, truth)]
    )
    for trace in range(traces.sizes.traces):
        parts = [*entries(ledger, traces.graph, trace), float(ledger.remainder[trace])]
        assert sum(map(Fraction, parts)) == Fraction(float(traces.reward[trace]))
        for order in (parts[:-1], parts[-2::-1]):
            total = np.float32(0)
            for part in order:
                total += np.float32(part)
            assert total + np.float32(parts[-1]) == traces.reward[trace]
    assert ledger.refused == {}


@pytest.mark.slow
def test_true_increments_leave_only_luck_unexplained(world) -> None:
    traces, truth, v0 = world
    expected = np.zeros(traces.graph.num_traces, np.float32)
    expected[: len(v0)] = v0
    ledger = compose(traces.graph, traces.reward, [claim(traces.graph, truth)], expected=expected)
    n = traces.sizes.traces
    by_trace = np.bincount(np.asarray(traces.graph.trace_ids), np.asarray(ledger.increments), traces.graph.num_traces)
    luck = traces.reward[:n] - v0 - by_trace[:n]
    np.testing.assert_allclose(np.asarray(ledger.unexplained)[:n], luck, atol=1e-5)
    nobody = compose(traces.graph, traces.reward, [], expected=expected)
    assert nobody.coverage == pytest.approx(0, abs=1e-5) and ledger.coverage > 0.3


@pytest.mark.slow
def test_events_without_a_claim_get_exactly_nothing_and_change_nothing(world) -> None:
    traces, truth, _ = world
    graph = traces.graph
    rng = np.random.default_rng(0)
    some = np.asarray(graph.action_mask) & (rng.random(graph.num_events) < 0.5)
    ledger = compose(graph, traces.reward, [claim(graph, truth, some)])
    assert not np.asarray(ledger.increments)[~some].any()
    assert np.array_equal(ledger.claimed, some)
    nulls = compose(graph, traces.reward, [claim(graph, np.where(some, truth, 0))])  # the others claimed as null
    unit = 2.0 ** np.asarray(ledger.partition.exponent)[np.asarray(graph.trace_ids)]
    assert np.all(np.abs(np.asarray(nulls.increments - ledger.increments)) <= 2 * unit)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
def test_nobody_is_paid_twice(world) -> None:
    traces, truth, _ = world
    graph = traces.graph
    once = compose(graph, traces.reward, [claim(graph, truth)])
    again = compose(graph, traces.reward, [claim(graph, truth), claim(graph, truth)])
    for field in ("increments", "unexplained", "expected", "stderr"):
        np.testing.assert_array_equal(getattr(again, field), getattr(once, field))
    same = compose(graph, traces.reward, [claim(graph, truth), claim(graph, truth, source="the same again")])
    np.testing.assert_array_equal(same.increments, once.increments)
    assert "one evidence has one vote" in same.refused["the same again"]
    opinion = claim(graph, 1.01 * truth, source="a second opinion")
    alone = compose(graph, traces.reward, [opinion])
    other = compose(graph, traces.reward, [claim(graph, truth), opinion])
    halves = np.asarray(other.cells)  # what each source brought, rounded for itself to the grid
    unit = 2.0 ** np.asarray(other.partition.exponent)[np.asarray(graph.trace_ids)]
    both = np.stack([once.increments, alone.increments], axis=1) / 2
    assert np.all(np.abs(halves - both) <= 2 * unit[:, None])
    there = np.asarray(once.claimed)
    np.testing.assert_allclose(np.asarray(other.stderr)[there], np.asarray(once.stderr)[there] / np.sqrt(2), rtol=1e-5)


@pytest.mark.slow
def test_what_is_no_increment_is_refused_by_name(world) -> None:
    traces, truth, _ = world
    removal = claim(traces.graph, truth, estimand="effect", source="removal")
    normalised = credit.dr_mas(traces.graph, traces.reward)
    with pytest.warns(credit.ledger.RefusedClaimWarning, match="^1 of 2 claims refused: 'removal'"):
        ledger = compose(traces.graph, traces.reward, [removal, normalised, claim(traces.graph, truth)])
    assert set(ledger.refused) == {"removal", "dr_mas"}
    assert "propensity" in ledger.refused["removal"]


@pytest.mark.slow
def test_a_trace_without_reward_has_empty_entries_and_infinities_are_refused(world) -> None:
    traces, truth, _ = world
    reward = traces.reward.copy()
    reward[0] = np.nan
    ledger = compose(traces.graph, reward, [claim(traces.graph, truth)])
    assert not any(entries(ledger, traces.graph, 0))
    broken = dataclasses.replace(claim(traces.graph, truth), credit=np.where(truth != 0, np.float32(3e38), 0))
    beyond = compose(traces.graph, traces.reward, [broken])
    assert not np.asarray(beyond.scored).any() and len(beyond.refused_traces) == traces.sizes.traces
    assert "outside the range" in beyond.refused_traces[0] and "left out" in beyond.warnings[-1]


@pytest.mark.slow
def test_one_trace_outside_the_range_is_left_out_and_no_other(world) -> None:
    traces, truth, _ = world
    trace = np.asarray(traces.graph.trace_ids)
    plain = compose(traces.graph, traces.reward, [claim(traces.graph, truth)])
    wrong = truth.copy()
    wrong[np.flatnonzero((trace == 3) & (truth != 0))[0]] = 3e38
    wrong[np.flatnonzero((trace == 3) & (truth != 0))[1]] = 3e38
    ledger = compose(traces.graph, traces.reward, [claim(traces.graph, wrong)])
    assert list(ledger.refused_traces) == [3] and not any(entries(ledger, traces.graph, 3))
    assert not ledger.scored[3] and np.isnan(ledger.reward_or_nan[3])
    kept = np.asarray(traces.graph.event_mask) & (trace != 3)
    np.testing.assert_array_equal(np.asarray(ledger.increments)[kept], np.asarray(plain.increments)[kept])


@pytest.mark.slow
def test_rewards_that_hardware_flushes_to_zero_are_refused() -> None:
    """They gave entries that sum to 0 with `exact` True."""
    graph, reward, _ = credit.from_columns(group=[0, 0, 0], trace=[0, 1, 2], reward=[1.0, 0.0, 0.5])
    reward[0] = 1e-40
    ledger = compose(graph, reward, [])
    assert list(ledger.refused_traces) == [0] and "1e-40" in ledger.refused_traces[0].replace(
        "9.99994610111476e-41", "1e-40"
    )


def test_coverage_does_not_overflow(world) -> None:
    traces, truth, _ = world
    size = np.float32(1e25)
    one = compose(traces.graph, traces.reward, [claim(traces.graph, truth)])
    large = compose(traces.graph, traces.reward * size, [claim(traces.graph, truth * size)])
    assert large.coverage == pytest.approx(one.coverage, abs=1e-4)
    assert large.explained == pytest.approx(one.explained, abs=1e-4)


@pytest.mark.slow
def test_a_result_of_another_batch_is_refused(world) -> None:
    """Other lengths broadcast, and results of another batch of the same shape were taken."""
    traces, _, _ = world
    graph, reward, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
    with pytest.raises(credit.CreditError, match=r"claims\[0\], of 'rloo', has shape .* expected \(\d+,\)"):
        compose(traces.graph, traces.reward, [credit.rloo(graph, reward)])
    again, same, _ = credit.from_columns(group=[0, 1], trace=[0, 1], reward=[1.0, 0.0])
    with pytest.raises(credit.CreditError, match="result of another batch: its fingerprint"):
        compose(again, same, [credit.rloo(graph, reward)])
    for name in ("expected", "outcome"):
        with pytest.raises(credit.CreditError, match=f"{name} has shape"):
            compose(graph, reward, [], **{name: np.zeros(3, np.float32)})
    with pytest.raises(credit.CreditError, match="reward has shape"):
        compose(graph, reward[:1], [])


def test_text_files_of_a_ledger_sum_as_float64(world, tmp_path) -> None:
    """In CSV 56 of 80 traces did not, in JSONL 17, since float32 amounts were written with their own few digits."""
    traces, truth, _ = world
    ledger = compose(traces.graph, traces.reward, [claim(traces.graph, truth + np.float32(0.1))])
    ids = traces.traces["trace"].to_pylist()
    for suffix in ("csv", "jsonl"):
        ledger.write(traces, tmp_path / f"ledger.{suffix}")
        if suffix == "csv":
            with (tmp_path / "ledger.csv").open() as file:
                rows = list(csv.DictReader(file))
        else:
            rows = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
        for number, name in enumerate(ids):
            amounts = [float(row["amount"]) for row in rows if row["trace"] == name]
            assert sum(amounts) == float(traces.reward[number])
            assert sum(amounts[-2::-1]) + amounts[-1] == float(traces.reward[number])


def test_pandas_sums_a_ledger_from_json_lines_as_the_page_says(world, tmp_path) -> None:
    """By default `read_json` cuts numbers to some 15 digits, so that traces do not sum; the integers beside them do."""
    pandas = pytest.importorskip("pandas")
    traces, truth, _ = world
    path = tmp_path / "ledger.jsonl"
    compose(traces.graph, traces.reward, [claim(traces.graph, truth + np.float32(0.1))]).write(traces, path)
    wanted = dict(zip(traces.traces["trace"].to_pylist(), map(float, traces.reward), strict=False))
    precise = pandas.read_json(path, lines=True, precise_float=True)
    assert precise.groupby("trace").amount.sum().to_dict() == wanted
    whole = pandas.read_json(path, lines=True)
    whole = whole[whole.units.notna()]
    totals = whole.groupby("trace").units.sum() * 2.0 ** whole.groupby("trace").exponent.first()
    assert totals.to_dict() == wanted


@pytest.mark.slow
def test_an_event_without_a_claim_states_no_error(world, tmp_path) -> None:
    """Its error was 0 beside `claimed` false, in each kind of file."""
    traces, truth, _ = world
    actions = np.flatnonzero(np.asarray(traces.graph.action_mask) & np.asarray(traces.graph.event_mask))
    some = np.zeros(traces.graph.num_events, bool)
    some[actions[::2]] = True
    ledger = compose(traces.graph, traces.reward, [claim(traces.graph, truth, some)])
    assert np.isnan(np.asarray(ledger.stderr)[~some]).all()
    np.testing.assert_allclose(np.asarray(ledger.stderr)[some], 0.1, rtol=1e-6)
    for suffix in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"ledger.{suffix}"
        ledger.write(traces, path)
        if suffix == "csv":
            with path.open() as file:
                rows = [row for row in csv.DictReader(file) if row["entry"] == "increment"]
            stated = [(row["claimed"] == "true", row["stderr"] or None) for row in rows]
        else:
            read = [json.loads(line) for line in path.read_text().splitlines()] if suffix == "jsonl" else None
            rows = pyarrow.parquet.read_table(path).to_pylist() if read is None else read
            stated = [(row["claimed"], row["stderr"]) for row in rows if row["entry"] == "increment"]
        assert [error is not None for _, error in stated] == [claimed for claimed, _ in stated]
        assert 0 < sum(claimed for claimed, _ in stated) < len(stated)
    entry = ledger.advantage("entry", limit=np.inf).credit
    valid = np.asarray(entry.valid)
    assert valid[actions].all() and np.isinf(np.asarray(entry.stderr)[valid & ~some]).all()


def test_a_trace_without_an_outcome_has_no_amounts(world, tmp_path) -> None:
    """Its rows said 0, as of a trace that earned nothing."""
    traces, truth, _ = world
    reward = np.array(traces.reward)
    reward[1] = np.nan
    ledger = compose(traces.graph, reward, [claim(traces.graph, truth)])
    lacking = traces.traces["trace"][1].as_py()
    for level in ("trace", "role", "turn", "event", "decision"):
        rows = ledger.table(traces, level).to_pylist()
        names = [name for name in rows[0] if name in ("amount", "units", "exponent") or name.startswith("channel:")]
        assert len(names) == 4 and {row["entry"] for row in rows if row["trace"] == lacking} == set(ENTRIES)
        assert all(row[name] is None for row in rows if row["trace"] == lacking for name in names)
        assert all(row["amount"] is not None for row in rows if row["trace"] != lacking)
    ledger.write(traces, path := tmp_path / "ledger.csv")
    with path.open() as file:
        assert {row["amount"] for row in csv.DictReader(file) if row["trace"] == lacking} == {""}


@pytest.mark.slow
def test_a_ledger_says_which_claims_hold_the_luck_after_the_last_action() -> None:
    """`outcome` was 0 with the luck R − V_T in the entry of the last action, and nothing said so."""
    world = World()
    episodes = world.sample(jax.random.key(0), 16)
    truth = world.increments(episodes)
    traces = world.traces(episodes, truth)
    graph, value = traces.graph, np.asarray(traces.evidence["value"].array)
    held = compose(graph, traces.reward, [credit.gae(graph, traces.reward, value=value, lambda_=0.0)])
    assert not np.asarray(held.outcome).any() and "luck after the last action in entries of gae" in repr(held)
    increments = truth.flat(graph.num_events).astype(np.float32)
    luck = np.zeros(graph.num_traces, np.float32)
    luck[: len(truth.outcome)] = truth.outcome
    claim = credit.critic(graph, traces.reward, value=value, value_after=value + increments)
    start = np.zeros_like(luck)
    start[: len(truth.expected)] = truth.expected
    stated = compose(graph, traces.reward, [claim], expected=start, outcome=luck)
    np.testing.assert_allclose(stated.outcome, luck, atol=1e-6)
    np.testing.assert_allclose(stated.increments, increments, atol=1e-5)
    np.testing.assert_allclose(stated.unexplained, 0, atol=1e-5)
    assert not stated.holding_luck
