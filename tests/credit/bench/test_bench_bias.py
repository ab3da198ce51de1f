"""Bias by enumeration: what promises none has none in every micro-orchestration, and the rest is what theory says."""

from __future__ import annotations

import csv
import dataclasses
import functools
import importlib
import io
import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest
from click.testing import CliRunner
from site_pages import page

import credit
from credit.bench.bias import (
    Row,
    _Enumerated,
    _scores,
    cells,
    mean_gradient,
    measure,
    same_as,
    x64,
)
from credit.bench.bias_settings import SETTINGS, UNSCORED, setting
from credit.bench.bias_table import FIELDS, as_lists, csv_text, from_lists, grid, markdown
from credit.bench.enumeration import alone, count_fan_outs, count_replays, fan_outs, independent, replays
from credit.bench.given_values import GIVEN_VALUES, WRONG
from credit.bench.refusals import refused_lines
from credit.bench.stacked_batches import AGENTS, stack
from credit.cli import cli
from credit.cli.benchmarks.bench_bias import SCORES
from credit.methods.own_results import UnmeasuredError
from credit.methods.published import PUBLISHED
from credit.methods.registry import METHODS
from credit.plot.bias_dots import OWN_SCALE
from estimators.base import REASONS, Reason
from graphs.errors import CreditError
from graphs.invariants import validate
from graphs.worlds import KINDS
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Micro

ROOT = Path(__file__).resolve().parents[3]
BINARY = ("spawn-and", "delegate-luck", "relay-and")
UNBIASED = (
    "rloo", "dr_grpo x K/(K-1)", "remax", "reinforce_batch", "moving_average", "discounted_return", "gae",
    "gae, lambda 1", "gae, lambda 1, wrong values", "c3", "c3, nested fan-out", "magrpo, discount 1, others' mean",
    "turn_baseline", "coma", "difference_reward", "hae, within segments, discount and lambda 1",
)  # fmt: skip
QUICK = {
    **dict.fromkeys(("rloo", "dr_grpo", "gae, lambda 1", "turn_baseline"), ("stop-rewards", "relay-and")),
    "c3": ("relay-and",),
}
"""Rows that the default and the slow run measure; the studies measure all but `LARGE`."""


def committed() -> list[Row]:
    return from_lists(json.loads((ROOT / "benchmarks" / "results" / "bias.json").read_text())["rows"])


LARGE = ("c3", "magrpo")
"""Settings that begin so take a quarter of an hour together; of c3 `QUICK` has a row."""


def check(names: tuple[str, ...], worlds: tuple[str, ...] = ()) -> None:
    """Measured scores are the committed ones to 1e-6, relative where they exceed 1."""
    known = {(row.method, row.world, row.k): row for row in committed()}
    for cell in cells(names, worlds):
        found, expected = measure(*cell), known[cell]
        for score in FIELDS[3:]:
            assert getattr(found, score) == pytest.approx(getattr(expected, score), rel=1e-6, abs=1e-6, nan_ok=True), (
                cell,
                score,
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.sampled
def test_the_committed_table_is_what_the_code_gives(name: str) -> None:
    check((name,), QUICK[name])


@pytest.mark.study
@pytest.mark.parametrize("name", dict.fromkeys(row.method for row in committed() if not row.method.startswith(LARGE)))
def test_the_committed_rows_of_a_method_are_what_the_code_gives(name: str) -> None:
    """`python benchmarks/bias.py` measures those of `LARGE`, too."""
    check((name,))


def test_every_measured_method_has_all_its_rows() -> None:
    """A new method may come without rows; `python benchmarks/bias.py NAME` adds them."""
    rows = {(row.method, row.world, row.k) for row in committed()}
    measured = dict.fromkeys(row.method for row in committed())
    assert set(measured) <= set(SETTINGS)
    assert rows == set(cells(list(measured))), "run `python benchmarks/bias.py`"
    assert set(credit.METHODS) <= set(SETTINGS) | set(UNSCORED)
    assert set(UNSCORED) <= set(credit.METHODS)
    for name, why in UNSCORED.items():
        assert name not in SETTINGS and len(why) > 20, name


def test_the_page_holds_the_committed_table() -> None:
    shown = page("bias")
    assert markdown(committed()) in shown and shown.count("| rloo |") >= 1
    data = (ROOT / "docs" / "data" / "bias.csv").read_text()
    assert data == csv_text(committed()), "run `python benchmarks/bias.py`"
    with io.StringIO(data) as file:
        row = next(row for row in csv.DictReader(file) if (row["method"], row["k"]) == ("dr_grpo", "2"))
    assert float(row["bias"]) == pytest.approx(0.5)
    for world in MICRO.values():
        assert f"| `{world.name}` | {world.about} |" in shown


def test_what_promises_no_bias_has_none() -> None:
    rows = committed()
    promised = {name for name, method in credit.METHODS.items() if method.unbiased}
    for name in promised - {row.method for row in rows} - set(UNSCORED):  # a new method: measured here
        world, k = "relay-and", next(k for _, _, k in cells((name,), ("relay-and",)))
        assert measure(name, world, k).bias < 1e-6, name
    for row in rows:
        if row.method in promised.union(UNBIASED):
            assert row.bias < 1e-6 and row.cosine == pytest.approx(1, abs=1e-9), row
    assert {row.method for row in rows} >= set(UNBIASED)


def test_no_score_is_rounded_to_the_end_of_its_scale() -> None:
    """A cosine of 0.9996 was printed as 1, which `docs/bias.md` reads as a bias of the length alone."""
    near = Row("mine", "relay-and", 2, 2e-4, 0.99961, *[1.0003, 0.5, 4e-7, 1.0, 1 - 1e-12, 0.99996])
    written = [grid([near], score)[1][0][1] for score in FIELDS[3:]]
    assert written == ["0.0002", "0.9996", "1.0003", "0.5", "4e-07", "1", "1", "> 0.9999"]
    assert "| 0.0002 | 0.9996 | 1.0003 | 0.5 | 1 | > 0.9999 |" in markdown([near])
    assert refused_lines([("mine", 1 - 0.99981, "why")])[0].startswith("mine gave no number for 99.98 % of")


OF_RANKS = """
import dataclasses
import jax.numpy as jnp
import estimators
from estimators.members import members

def wins(graph, reward, *, event_reward=None):
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="return")
    sample, weight = jnp.arange(len(m.score)), m.member_mask.astype(m.score.dtype)
    if m.clusters is not None:
        sample, weight = m.clusters.pair, m.clusters.weight
    rival = jnp.where((m.key[:, None] == m.key[None]) & (sample[:, None] != sample[None]), weight[None], 0)
    won = (rival * jnp.sign(m.score[:, None] - m.score[None])).sum(axis=1) / jnp.maximum(rival.sum(axis=1), 1)
    x, result = won[m.of_event], estimators.rloo(graph, reward, event_reward=event_reward)
    arrays = {"credit": x, "baseline": 0 * x, "stderr": jnp.full_like(x, jnp.inf)}
    kept = {name: jnp.where(result.valid, array, 0) for name, array in arrays.items()}
    return dataclasses.replace(result, source="wins", estimand="score", **kept)
"""


@pytest.mark.slow
def test_ranks_of_two_values_are_said_to_be_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_ranks.py").write_text(OF_RANKS)
    monkeypatch.chdir(tmp_path)
    asked = ["bench", "bias", "-m", "of_ranks:wins", "--group-size", "4"]
    said = CliRunner().invoke(cli, [*asked, "--world", "relay-and"])
    assert "the library passes: credit check of_ranks:wins\n" in said.stderr
    assert "of_ranks:wins gives the numbers of rloo in groups of 4. Returns in relay-and have two values" in said.stderr
    assert "in hire-additive, stop-rewards they have more" in said.stderr and "is one task" not in said.stderr


JACKPOT = """
from graphs.event_graph import EventType
from graphs.worlds.micro.orchestration import Decision, Micro

def two(history):
    return None if len(history) == 2 else Decision("ab"[len(history)], EventType.MESSAGE, 2)

def rare(history, size=1e4, chance=1e-4):
    small = 0.3 * history[0] + 0.5 * history[1]
    return (1 - chance, small), (chance / 2, small + size), (chance / 2, small - size)

jackpot = Micro("jackpot", "A run of ten thousand wins or loses as much.", two, rare)
"""
SECOND = """
import dataclasses
import jax.numpy as jnp
import estimators
from estimators.medians import nth_of_others
from estimators.members import members

def second(graph, reward, *, event_reward=None):
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    plain = estimators.rloo(graph, reward, event_reward=event_reward)
    return dataclasses.replace(plain, baseline=nth_of_others(m, -2)[0], stderr=jnp.full_like(plain.baseline, jnp.inf))
"""


def enumerated_sign(baseline: Callable[[list[float]], float]) -> float:
    """Sign in the world `jackpot`, groups of three, by plain loops in float64."""
    choice = [1 / (1 + math.exp(math.sin(1.9 + 2.9 * i) - math.sin(1 + 2.9 * i))) for i in range(3)]
    ends = []
    for one, two in itertools.product(range(2), repeat=2):
        first, then = (p if c == 0 else 1 - p for p, c in ((choice[0], one), (choice[1 + one], two)))
        small = 0.3 * one + 0.5 * two
        for chance, reward in ((1 - 1e-4, small), (5e-5, small + 1e4), (5e-5, small - 1e4)):
            ends.append((one, two, first * then * chance, reward))
    of_state: dict[tuple[int, ...], list[tuple[float, float, int]]] = {}
    for group in itertools.product(ends, repeat=3):
        mass = math.prod(end[2] for end in group)
        for i, (one, two, _, reward) in enumerate(group):
            advantage = reward - baseline([end[3] for j, end in enumerate(group) if j != i])
            of_state.setdefault((), []).append((mass, advantage, one))
            of_state.setdefault((one,), []).append((mass, advantage, two))
    right = answered = 0.0
    for rows in of_state.values():
        centre = math.fsum(m * a for m, a, _ in rows) / math.fsum(m for m, _, _ in rows)
        for m, a, c in rows:  # choice 1 is the better one everywhere
            if abs(a - centre) > 1e-8:
                answered, right = answered + m, right + m * ((a > centre) == (c == 1))
    return right / answered


@pytest.mark.slow
def test_rare_large_outcomes_tie_no_means_and_hide_no_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties grew with the noise: unbiased methods had a rank of 0.77 beside 1 for a biased one, and another sign."""
    (tmp_path / "rare_rewards.py").write_text(JACKPOT)
    (tmp_path / "second_of_others.py").write_text(SECOND)
    monkeypatch.syspath_prepend(tmp_path)
    others: dict[str, Callable[[list[float]], float]] = {"rloo": np.mean, "second_of_others:second": min}  # type: ignore[dict-item]
    for method, baseline in others.items():
        row = measure(method, "rare_rewards:jackpot", 3)
        assert (row.bias, row.rank) == (pytest.approx(0, abs=1e-8), pytest.approx(1))
        assert row.sign == pytest.approx(enumerated_sign(baseline), abs=1e-9)
    assert row.sign < 0.5 < measure("rloo", "rare_rewards:jackpot", 3).sign  # the second of two is their minimum


def test_sign_is_of_the_decisions_at_which_neither_advantage_nor_truth_is_0() -> None:
    draws = independent(MICRO["relay-and"], 1)
    policy, truth = draws.world.policy, draws.world.increments
    state, choice = np.nonzero(policy > 0)
    matters = truth[state, choice] != 0
    assert matters.any() and not matters.all()

    def sign(advantage: np.ndarray) -> float:
        estimate = np.zeros((len(draws.chance), *policy.shape))
        mass, told = policy[state, choice], np.full(len(state), Reason.VALID)
        rows = _Enumerated(estimate, mass, state, choice, advantage[state, choice], told)
        return dict(zip(FIELDS[3:], _scores(draws, rows), strict=True))["sign"]

    noise = np.where(truth == 0, [[1.0, -1.0]], truth)
    one = np.flatnonzero((truth != 0).all(1))[0]
    silent = np.where(np.arange(len(truth))[:, None] == one, 0.0, truth)
    wrong = np.where(np.arange(len(truth))[:, None] == one, -truth, truth)
    assert sign(noise) == sign(silent) == pytest.approx(1)
    mass = np.where(truth != 0, policy, 0).sum(1)
    assert sign(wrong) == pytest.approx(1 - mass[one] / mass.sum())
    assert math.isnan(sign(np.zeros_like(truth)))


def factor(advantage: Callable[[float, np.ndarray], float], k: int, p: float) -> float:
    """By how much E g exceeds ∇J where outcomes are 0 or 1, p the chance of 1, and A depends on outcomes only.

    E[A_1 ∇ log π(τ_1)] = ∇p (E A(1, others) − E A(0, others)), over the outcomes of the K − 1 others.
    """
    total = 0.0
    for others in itertools.product((0.0, 1.0), repeat=k - 1):
        chance = math.prod(p if r else 1 - p for r in others)
        total += chance * (advantage(1.0, np.array(others)) - advantage(0.0, np.array(others)))
    return total


def normalised(ddof: int, outside: float, inside: float = 0.0) -> Callable[[float, np.ndarray], float]:
    """(r − mean) / (sqrt(variance + inside) + outside), 0 where there is no spread."""

    def advantage(r: float, others: np.ndarray) -> float:
        group = np.append(others, r)
        return float((r - group.mean()) / (math.sqrt(group.var(ddof=ddof) + inside) + outside))

    return advantage


def leads(r: float, others: np.ndarray) -> float:
    """Pass@k: the lead of the only best over the second."""
    group = np.append(others, r)
    return float((r - others.max()) / (group.std(ddof=1) + 1e-6)) if r > others.max() else 0.0


CLOSED: dict[str, Callable[[float, np.ndarray], float]] = {
    **dict.fromkeys(("grpo", "slime_grpo", "agent_lightning", "matpo", "wideseek_r1"), normalised(1, 1e-6)),
    "trl_grpo": normalised(1, 1e-4),
    "openrlhf_group_norm": normalised(1, 1e-9),
    "c3_magrpo": normalised(0, 0.0, 1e-8),
    "pass_at_k": leads,
}


@pytest.mark.parametrize("name", CLOSED)
def test_bias_of_normalised_outcomes_is_a_sum_over_binomial_outcomes(name: str) -> None:
    for row in committed():
        if row.method == name and row.world in BINARY:
            expected = abs(1 - factor(CLOSED[name], row.k, MICRO[row.world].v[0]))
            assert row.bias == pytest.approx(expected, abs=1e-6), row
            assert row.cosine == pytest.approx(1, abs=1e-9)


def test_the_mean_of_a_group_shrinks_the_gradient() -> None:
    """By 1/K; over rows of T decisions a trace, its own among them, by (T − 1)/(KT − 1) after the rescaling."""
    for row in committed():
        if row.method == "dr_grpo":
            assert row.bias == pytest.approx(1 / row.k, abs=1e-9)
        if row.world == "relay-and" and row.method in ("marshal", "dr_mas, no division"):
            assert row.bias == pytest.approx(1 / row.k, abs=1e-9)  # three turns, one for each agent, whatever happens
        if row.world != "stop-rewards" and row.method == "mt_grpo, no division":  # the only one with rewards at events
            assert row.bias == pytest.approx(1 / row.k, abs=1e-9)
        if row.method == "verl_rloo" and row.world in ("relay-and", "delegate-luck"):
            turns = 3 if row.world == "relay-and" else 2
            assert row.bias == pytest.approx((turns - 1) / (row.k * turns - 1), abs=1e-9)


def test_a_row_by_the_name_of_a_method_is_that_method_with_its_defaults() -> None:
    """The row `ccpo` had a middle of 0.5, its default being 0."""
    rows = {name: SETTINGS[name] for name in METHODS if name in SETTINGS}
    assert {name for name, row in rows.items() if row.options or row.rescaled or row.fn != METHODS[name].fn} == set()


def test_an_agent_whose_team_fails_without_it_has_a_larger_gradient() -> None:
    """CCPO in `relay-and`, where no team without the planner succeeds: its x is (1 + w) R or R + w R / 2."""
    world = MICRO["relay-and"]
    true = world.gradient()
    lead = np.array([decision.agent == world.agents[0] for decision in world.states.values()])
    assert world.without(world.agents[0]) == ((1.0, 0.0),)
    for row in committed():
        if row.world == world.name and row.method in ("ccpo, middle 0.5", "ccpo, difference"):
            more = np.where(lead, 1.2 if row.method == "ccpo, middle 0.5" else 1.1, 1.0)[:, None]
            error = (more * (1 - 1 / row.k) - 1) * true
            assert row.bias == pytest.approx(np.linalg.norm(error) / np.linalg.norm(true), abs=1e-9)


def test_hindsight_is_bayes_rule_and_ratings_are_shares() -> None:
    """In `relay-and` all must be right: in success that is certain, and in failure each is suspect."""
    world = MICRO["relay-and"]
    batch = stack(alone(world), ("hindsight_log_prob", "self_rating"))
    won, chosen = batch.returns[:, 0] > 0, batch.state[:, :3]
    np.testing.assert_allclose(np.exp(batch.evidence["hindsight_log_prob"][won, :3]), 1)
    right = world.policy[0, 1]
    all_right = world.v[0]
    planner = np.exp(batch.evidence["hindsight_log_prob"][~won, 0])
    expected = np.where(batch.choice[~won, 0] == 1, right - all_right, 1 - right) / (1 - all_right)
    np.testing.assert_allclose(planner, expected)
    credit_of = world.increments[chosen, batch.choice[:, :3]]
    rating = batch.evidence["self_rating"][:, :3]
    np.testing.assert_allclose(rating.sum(1), 1)
    np.testing.assert_allclose(rating[won], (credit_of / credit_of.sum(1, keepdims=True))[won])
    assert np.all(rating[~won][credit_of[~won] > 1e-12] == 0)  # who did well is not to blame


@pytest.mark.slow
@pytest.mark.parametrize("world", ["delegate-luck", "relay-and"])
def test_what_leaves_of_a_tree_share_gets_no_gradient_from_the_tree(world: str) -> None:
    """Their numbers sum to 0 within the tree, so that a choice before the leaves part is pushed by the task's alone."""
    inner = mean_gradient("tree_grpo, tree_inner", world, 2)
    np.testing.assert_allclose(inner[0], 0, atol=1e-12)
    assert np.linalg.norm(inner[1:]) > 0.01 and np.linalg.norm(mean_gradient("tree_grpo", world, 2)[0]) > 0.01


def turn_index_bias(world: Micro, k: int) -> np.ndarray:
    """The closed form in the docstring of `estimators.mt_grpo`: −∇E[R] / n − Σ_l {c_l ∇ρ_l + (1 − c_l) μ_l ∇p_l}."""
    out = -slope(world, world.outcomes) / k
    for earned in turn_rewards(world).T:
        has = np.isfinite(earned)
        p = world.probabilities() @ has
        rho = world.probabilities() @ np.where(has, earned, 0)
        c = (1 - (1 - p) ** k) / (k * p)
        out -= c * slope(world, np.where(has, earned, 0)) + (1 - c) * rho / p * slope(world, has.astype(float))
    return out


def turn_rewards(world: Micro) -> np.ndarray:
    """What each trace earned at events in its l-th turn; NaN where it has none: [N, turns]."""
    agents = [d.agent for d in world.states.values()]
    rows = []
    for states, steps in zip(world.state, world.step_rewards, strict=True):
        taken = states[states >= 0]
        begins = [i == 0 or agents[s] != agents[taken[i - 1]] for i, s in enumerate(taken)]
        turn = np.cumsum(begins) - 1
        earned = np.bincount(turn, steps[: len(taken)])
        rows.append(np.append(earned, [np.nan] * (4 - len(earned))))
    table = np.array(rows)
    return table[:, np.isfinite(table).any(0)]


def slope(world: Micro, values: np.ndarray) -> np.ndarray:
    """∇ E x by differentiation, not by enumeration of scores."""
    logits = np.where(np.isfinite(world.logits), world.logits, 0.0)
    with x64():
        return np.asarray(differentiated(world)(logits, values))


@functools.cache
def differentiated(world: Micro) -> Callable[[np.ndarray, np.ndarray], jax.Array]:
    return jax.jit(jax.grad(world.mean))


@pytest.mark.slow
@pytest.mark.parametrize("world", MICRO)
def test_normalising_by_turn_index_is_wrong_by_the_group_means_that_a_policy_can_avoid(world: str) -> None:
    """Where turns earn nothing, by the shrinkage of the outcome alone."""
    true = MICRO[world].gradient()
    for k in (2, 3):
        found = mean_gradient("mt_grpo, no division", world, k) - true
        np.testing.assert_allclose(found, turn_index_bias(MICRO[world], k), rtol=0, atol=1e-12)
        assert (np.linalg.norm(found + true / k) > 0.2 * np.linalg.norm(true)) == (world == "stop-rewards")


@pytest.mark.slow
def test_every_way_of_sampling_is_a_distribution_of_valid_batches() -> None:
    for world in MICRO.values():
        beside = independent(world, 2, 0, "solo_return", world.without(world.agents[0]))
        for draws in (independent(world, 2), beside, alone(world), replays(world, 2), fan_outs(world, 2, 1, 2)):
            assert draws.chance.sum() == pytest.approx(1, abs=1e-12) and draws.chance.min() > 0
            batch = stack(draws, ("anchor", "history", "context", "node", "block"))
            for ids in batch.evidence.values():  # as a reader numbers them: within the arrays they may index
                assert ids.min() >= -1 and ids.max() < batch.state.shape[1]
            for i in np.linspace(0, len(draws.chance) - 1, 5).astype(int):
                graph = jax.tree.map(lambda values, i=i: values[i], batch.graph)
                validate(graph)
                taken = batch.state[i] >= 0
                np.testing.assert_array_equal(taken, graph.event_mask)
                np.testing.assert_array_equal(
                    batch.state[i][taken], np.concatenate([world.state[m][world.state[m] >= 0] for m in
                                                           draws.members[i] if m >= 0])
                )  # fmt: skip
                assert graph.num_agents == AGENTS * graph.num_traces


@pytest.mark.slow
def test_replays_visit_decisions_as_the_policy_does() -> None:
    """The weight that a choice gets on average is its probability, so that Σ w A ∇ log π is a gradient estimate."""
    for world in MICRO.values():
        expected = np.zeros(world.policy.shape)
        where = world.state >= 0
        chance = np.broadcast_to(world.probabilities()[:, None], where.shape)
        np.add.at(expected, (world.state[where], world.choice[where]), chance[where])
        for draws in (independent(world, 3), replays(world, 2)):
            batch, found = stack(draws), np.zeros(world.policy.shape)
            where = batch.state >= 0
            mass = draws.chance[:, None] * batch.weight
            np.add.at(found, (batch.state[where], batch.choice[where]), mass[where])
            np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
def test_the_command_prints_a_table_and_json() -> None:
    from credit.cli.benchmarks.bench import bench
    from credit.cli.benchmarks.bench_bias import SCORES

    assert FIELDS[3:] == SCORES
    result = CliRunner().invoke(bench, ["bias", "-m", "dr_grpo", "--world", "stop-rewards"])
    assert result.exit_code == 0 and "0.500 / 0.333" in result.stdout and "stop-rewards" in result.stdout
    result = CliRunner().invoke(bench, ["bias", "-m", "dr_grpo", "--world", "stop-rewards", "--json"])
    plain = json.loads(result.stdout)
    assert [row[:3] for row in plain["rows"]] == [["dr_grpo", "stop-rewards", k] for k in (2, 3)]
    assert "dr_grpo has variants: 'dr_grpo x K/(K-1)'" in result.stderr  # was a row that nobody had asked for
    named = CliRunner().invoke(bench, ["bias", "-m", "dr_grpo x K/(K-1)", "--world", "stop-rewards"])
    assert " 0 / 0\n" in named.stdout and "variants" not in named.stderr
    assert plain["fields"][3] == "bias" and plain["rows"][0][3] == pytest.approx(0.5)
    result = CliRunner().invoke(cli, ["bench", "bias", "-m", "nobody"])
    assert result.exit_code != 0 and "No method 'nobody'." in result.stderr


@pytest.mark.slow
def test_an_own_function_is_measured_as_the_method_that_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_for_bias.py").write_text(
        "import estimators\n"
        "def left_out(graph, reward, *, event_reward=None):\n"
        "    return estimators.rloo(graph, reward, event_reward=event_reward)\n"
        "def of_value(graph, reward, *, value):\n"
        "    return estimators.gae(graph, reward, value=value, lambda_=1.0)\n"
        "def of_siblings(graph, reward, *, event_reward=None, context, node):\n"
        "    return estimators.c3(graph, reward, event_reward=event_reward, context=context, node=node)\n"
        "def of_mood(graph, reward, *, mood):\n"
        "    return estimators.rloo(graph, reward)\n"
    )
    monkeypatch.chdir(tmp_path)
    own, registered = measure("own_for_bias:left_out", "stop-rewards", 2), measure("rloo", "stop-rewards", 2)
    assert dataclasses.astuple(own)[1:] == dataclasses.astuple(registered)[1:]
    assert measure("own_for_bias:of_value", "stop-rewards", 2).bias == pytest.approx(0, abs=1e-9)
    assert measure("own_for_bias:of_siblings", "relay-and", 2).bias == pytest.approx(0, abs=1e-9)  # was .397
    with pytest.raises(CreditError, match=r"world is .*, of type Micro; expected the name .*'module:name'"):
        measure("rloo", MICRO["relay-and"], 2)  # type: ignore[arg-type]
    with pytest.raises(CreditError, match="needs 'mood'; the worlds have: "):
        setting("own_for_bias:of_mood")
    result = CliRunner().invoke(cli, ["bench", "bias", "-m", "rlo"])
    assert result.exit_code == 1 and "No method 'rlo'. Did you mean rloo" in result.stderr


@pytest.mark.slow
def test_a_median_is_told_from_a_mean_by_the_size_of_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In groups of 2 and 3 the median of the others is their mean: no score could tell the two apart."""
    (tmp_path / "middling.py").write_text(
        "import dataclasses\nimport jax.numpy as jnp\n"
        "from estimators import rloo\n"
        "def middle(graph, reward, *, event_reward=None):\n"
        "    plain = rloo(graph, reward, event_reward=event_reward)\n"
        "    known = graph.trace_mask & ~jnp.isnan(reward)\n"
        "    own = jnp.eye(graph.num_traces, dtype=bool)\n"
        "    others = jnp.where(known[None, :] & ~own, reward[None, :], jnp.nan)\n"
        "    return dataclasses.replace(plain, baseline=jnp.nanmedian(others, axis=1)[graph.trace_ids])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    command = ["bench", "bias", "-m", "middling:middle", "--world", "spawn-and"]
    small = CliRunner().invoke(cli, command)
    assert small.exit_code == 0, small.output
    assert "middling:middle gives the numbers of rloo in groups of 2 and 3" in small.stderr
    assert "In groups of 4 they differ in spawn-and; see --group-size 4." in small.stderr
    assert "credit check middling:middle" in small.stderr
    larger = CliRunner().invoke(cli, [*command, "--group-size", "4", "--json"])
    assert larger.exit_code == 0 and "gives the numbers of rloo" not in larger.stderr, larger.output
    ((_, _, k, *_),) = json.loads(larger.stdout)["rows"]
    plain = measure("rloo", "spawn-and", 2)
    assert k == 4 and not same_as([plain], []) and same_as([plain], [plain])
    nothing = [dataclasses.replace(plain, answered=0.0)]
    assert not same_as(nothing, nothing)  # refused everything: it was said that these have the same numbers
    with pytest.raises(CreditError, match="352,716 groups in any order of 11 traces; expected at most 100,000"):
        list(cells(["rloo"], ["spawn-and"], [11]))


@pytest.mark.slow
def test_several_group_sizes_stand_in_one_table() -> None:
    """`snr` took several, and each other benchmark had to be called once for each."""
    call = ["bench", "bias", "-m", "dr_grpo,gae", "--world", "stop-rewards", "--group-size"]
    shown = CliRunner().invoke(cli, [*call, "4,2"])
    assert shown.exit_code == 0, shown.output
    assert " 0.50 / 0.25\n" in shown.stdout and "Groups of 2 / 4 traces. Of size 1: gae.\n" in shown.stdout
    twice = CliRunner().invoke(cli, [*call, "4,4"])
    assert twice.exit_code == 1 and "4 is given twice" in twice.stderr


def test_a_group_of_one_trace_is_refused() -> None:
    """Its bias was 1 and all else NaN, as if `rloo` had been measured; in groups of 0 it was an IndexError."""
    for name, k, least in (("rloo", 1, 2), ("rloo", 0, 2), ("c3", 1, 2), ("coma", 0, 1)):
        with pytest.raises(CreditError, match=f"k is {k}; expected {least} or more, with which '{name}' is enumerated"):
            measure(name, "relay-and", k)
    assert measure("coma", "relay-and", 1).bias < 1e-9


MIDDLE = """
import dataclasses
import jax.numpy as jnp
import estimators
from estimators.medians import median_of_others
from estimators.members import members

def middle(graph, reward, *, event_reward=None):
    m = members(graph, reward, event_reward, by=None, population="trace", aggregate="sum")
    plain = estimators.rloo(graph, reward, event_reward=event_reward)
    return dataclasses.replace(plain, baseline=median_of_others(m)[0])

def before(graph, reward):
    plain = estimators.rloo(graph, reward)
    known = jnp.where(graph.trace_mask, reward, 0)
    return dataclasses.replace(plain, baseline=jnp.roll(known, 1)[graph.trace_ids])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name, reason", [("trimmed", Reason.TOO_FEW), ("undefined", Reason.OUT_OF_RANGE)])
def test_a_method_that_needs_more_others_is_told_the_size_of_group(
    name: str, reason: Reason, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "refused / refused" came without the size at which a trimmed mean has a number; the table had no reason."""
    (tmp_path / "needs_three.py").write_text(
        "import jax.numpy as jnp\nfrom estimators import rloo\nfrom estimators.base import finish\n"
        "from estimators.group import settle_alone\nfrom estimators.medians import nth_of_others\n"
        "from estimators.members import members\n"
        "def trimmed(graph, reward, *, event_reward=None):\n"
        "    m = members(graph, reward, event_reward, by=None, population='trace', aggregate='sum')\n"
        "    x, known = m.score[m.of_event], m.member_mask[m.of_event]\n"
        "    others = nth_of_others(m, 0)[1]\n"
        "    mean = rloo(graph, reward, event_reward=event_reward).baseline\n"
        "    mean, reason = settle_alone(m, known, others < 1, x, mean, 'refuse', few=others < 3)\n"
        "    return finish(graph, credit=x, baseline=mean, scale=jnp.ones_like(x), stderr=jnp.full_like(x, jnp.inf),\n"
        "                  reason=reason, unit='trace', estimand='total', source='x', centred=False,\n"
        "                  own_outcome=True)\n"
        "def undefined(graph, reward, *, event_reward=None):\n"
        "    of = trimmed(graph, reward, event_reward=event_reward)\n"
        "    x = jnp.where(of.valid, of.credit, jnp.nan)\n"
        "    return finish(graph, credit=x, baseline=of.baseline, scale=of.scale, stderr=of.stderr,\n"
        "                  reason=jnp.zeros_like(of.reason), unit='trace', estimand='total', source='x',\n"
        "                  centred=False, own_outcome=True)\n"
    )
    monkeypatch.chdir(tmp_path)
    call = ["bench", "bias", "-m", f"needs_three:{name}", "--world", "stop-rewards"]
    two = CliRunner().invoke(cli, [*call, "-o", "two.csv"])
    assert "refused / refused" in two.stdout and two.stderr.count("; --group-size 4 has more") == 1, two.output
    refused = measure(f"needs_three:{name}", "stop-rewards", 2)  # its bias was 1, as of a gradient of 0
    assert refused.answered == 0 and np.isnan([refused.bias, refused.variance, refused.relative, refused.sign]).all()
    with open("two.csv", newline="") as file:
        assert {row["why"] for row in csv.DictReader(file)} == {REASONS[reason]}
    four = CliRunner().invoke(cli, [*call, "--group-size", "4"])
    assert "refused" not in four.stdout and "has more" not in four.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "methods",
    [
        ("middle_of:middle", "rloo"),
        ("grpo", "ccpo", "c3, equal choices one node"),
    ],
)
def test_groups_too_many_to_order_are_drawn_in_any_order(
    methods: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One world of two had 12⁵ groups of five: the figure was drawn without it, with exit status 0."""
    from credit.bench import bias

    (tmp_path / "middle_of.py").write_text(MIDDLE)
    monkeypatch.chdir(tmp_path)

    def measured() -> list[Row]:
        bias._draws.cache_clear()
        bias._all_batches.cache_clear()
        return [measure(name, world, k) for name in methods for world, k in (("stop-rewards", 4), ("delegate-luck", 3))]

    in_order = measured()
    monkeypatch.setattr(bias, "MOST_BATCHES", 330)
    assert len(bias._draws(MICRO["stop-rewards"], "groups", 4).chance) == 7**4
    for row, known in zip(measured(), in_order, strict=True):
        np.testing.assert_allclose(dataclasses.astuple(row)[3:], dataclasses.astuple(known)[3:], rtol=1e-9, atol=1e-12)
    draws = bias._draws(MICRO["stop-rewards"], "groups", 4)
    assert len(draws.chance) == 210 and draws.chance.sum() == pytest.approx(1, abs=1e-12)
    for name in ("moving_average", "middle_of:before"):
        with pytest.raises(UnmeasuredError, match=r"depend on the order .* 2,401 groups of 4 traces in every order"):
            measure(name, "stop-rewards", 4)
    bias._draws.cache_clear()
    bias._all_batches.cache_clear()
    bias_command = ["bench", "bias", "-m", "moving_average", "-m", "rloo", "--group-size", "4", "--world"]
    found = CliRunner().invoke(cli, [*bias_command, "stop-rewards", "--world", "delegate-luck", "--plot", "x.svg"])
    assert "moving_average, size 4, is left out in stop-rewards: its numbers" in found.stdout
    assert "moving_average, rloo: world 'delegate-luck' has 1,365 groups in any order of 4 traces" in found.stdout
    assert found.stdout.count("left out") == 4 and found.exit_code == 0
    said = (
        "left out: moving_average in stop-rewards (its numbers depend on the order of traces, and world 'stop-rewards'"
    )
    assert "moving_average, rloo in delegate-luck (world 'delegate-luck' has 1,365 groups" in " ".join(
        re.findall("<!-- (.*?) -->", (tmp_path / "x.svg").read_text())
    )
    drawn = " ".join(re.findall("<!-- (.*?) -->", (tmp_path / "x.svg").read_text()))  # a long line is broken
    assert said in drawn


def test_the_number_of_batches_is_known_before_they_are_made() -> None:
    for world in MICRO.values():
        assert count_replays(world, 2) == len(replays(world, 2).chance)
        assert count_fan_outs(world, 2, 1, 2) == len(fan_outs(world, 2, 1, 2).chance)
    small = MICRO["relay-and"]
    assert count_replays(small, 4) == len(replays(small, 4).chance) == 2240
    assert count_replays(small, 2, True) == len(replays(small, 2, nested=True).chance)


@pytest.mark.slow
def test_the_group_size_is_that_of_contexts_too() -> None:
    """`bench bias -m c3 --group-size 4` measured 2 and 3 alternatives, and only said so."""
    names = ("c3, equal choices one node", "c3, z-norm", "c3, nested fan-out")
    asked = [word for name in names for word in ("-m", name)]
    shown = CliRunner().invoke(cli, ["bench", "bias", *asked, "--world", "relay-and", "--group-size", "4"])
    assert shown.exit_code == 0, shown.output
    assert "Groups of 4 traces. 4 alternatives of a context." in shown.stdout and "Of size" not in shown.stdout
    assert "c3, nested fan-out: world 'relay-and' has" in shown.stdout
    assert "replay trees of 4 alternatives a context; expected at most 100,000" in shown.stdout
    row = measure("c3", "relay-and", 4)
    assert row.bias < 1e-9 and row.relative < measure("c3", "relay-and", 2).relative
    with pytest.raises(CreditError, match=r"c3: world 'hire-additive' has .* replay trees of 6 alternatives a context"):
        cells(["c3"], ["hire-additive"], [6])


@pytest.mark.slow
def test_the_relative_variance_is_over_the_squared_mean_and_has_no_scale() -> None:
    """The variance over |∇J|² of `dr_grpo` was (1 − 1/K)² times that of `rloo`: a learning rate."""
    for k in (2, 3):
        plain, shrunk = measure("rloo", "relay-and", k), measure("dr_grpo", "relay-and", k)
        assert shrunk.variance == pytest.approx((1 - 1 / k) ** 2 * plain.variance)
        assert shrunk.relative == pytest.approx(plain.relative) == pytest.approx(plain.variance)  # of no bias
        squared = np.sum(mean_gradient("dr_grpo", "relay-and", k) ** 2)
        assert shrunk.relative * squared == pytest.approx(shrunk.variance * np.sum(MICRO["relay-and"].gradient() ** 2))


@pytest.mark.slow
def test_a_table_of_any_group_size_is_printed_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--plot with --group-size 4 failed after everything was measured, and before anything was printed."""
    (tmp_path / "of_bias.py").write_text(
        "import credit\ndef a(graph, reward):\n    return credit.discounted_return(graph, reward)\n"
        "def b(graph, reward):\n    return a(graph, reward)\n"
    )
    monkeypatch.chdir(tmp_path)
    call = ["bench", "bias", "-m", "of_bias:a", "-m", "of_bias:b", "--world", "relay-and", "--group-size", "4"]
    found = CliRunner().invoke(cli, [*call, "--plot", "bias.svg"])
    assert found.exit_code == 0, found.output
    assert f"<!-- groups of 4; {OWN_SCALE} -->" in (tmp_path / "bias.svg").read_text()  # no method takes values
    assert "of_bias:b gives the numbers of of_bias:a in groups of 4. Returns in relay-and have two" in found.stderr
    assert "Nor do they differ in groups of 5 and 6 in relay-and." in found.stderr  # it said --group-size 6
    assert "credit bench truth -m of_bias:a -m of_bias:b" in found.stderr and "median" not in found.stderr
    narrow = CliRunner().invoke(cli, [*call, "--plot", "bias.svg", "--size", "0.5x0.5"])
    assert (
        narrow.exit_code != 0 and "; nothing was measured yet" in narrow.stderr and not narrow.stdout
    )  # was told at the end
    (tmp_path / "with_values.svg").write_text("")
    of_values = CliRunner().invoke(cli, [*call, "-m", "coma", "--plot", "with_values.svg"])
    assert f"{GIVEN_VALUES['bias']}." in of_values.stdout and "values: " not in found.stdout
    assert GIVEN_VALUES["bias"] in (tmp_path / "with_values.svg").read_text()
    assert WRONG not in of_values.output  # it was said of calls without such a row
    wrong = CliRunner().invoke(cli, [*call[:-2], "-m", "gae, wrong values"])
    assert f"{GIVEN_VALUES['bias']}; {WRONG}." in wrong.stdout


@pytest.mark.slow
def test_the_caption_says_the_size_of_rows_that_have_no_groups() -> None:
    """`gae` runs on one trace, under the caption "Groups of 4 traces."."""
    call = ["bench", "bias", "--world", "stop-rewards", "--group-size", "4", "-m", "gae"]
    both, alone = (CliRunner().invoke(cli, call + more).stdout for more in (["-m", "rloo"], []))
    assert "Groups of 4 traces. Of size 1: gae.\n" in both
    assert "Of size 1: gae.\n" in alone and "Groups of 4" not in alone


def test_all_worlds_are_listed_where_none_is_near() -> None:
    """ "There are 5" named three."""
    found = CliRunner().invoke(cli, ["bench", "truth", "--world", "nowhere"])
    assert found.exit_code != 0 and all(kind in found.output for kind in KINDS)


OWN_WORLDS = """
from graphs.event_graph import EventType
from graphs.worlds.micro.orchestration import Decision, Micro

def two(h):
    return Decision(("lead", "worker")[len(h)], EventType.MESSAGE, 2, stage=len(h)) if len(h) < 2 else None

outliers = Micro("outliers", "One run of twenty has an outlier.", two, lambda h: ((0.95, sum(h)), (0.05, sum(h) + 9.0)))
endless = Micro("endless", "", lambda h: Decision("a", EventType.MESSAGE, 2), lambda h: ((1.0, 0.0),))
half = Micro("half", "", two, lambda h: ((0.5, 0.0),))
luck = Micro("luck", "", two, lambda h: ((0.5, 0.0), (0.5, 1.0)))
nothing = Micro("nothing", "", lambda h: None, lambda h: ((1.0, 0.0),))
number = 3

def late(h):
    return two(h) if len(h) < 1 else two(h)._replace(stage=3)

def paid(h):
    return (1.0, h[9]),

undecided = Micro("undecided", "", late, paid)
unpaid = Micro("unpaid", "", two, paid)
unstepped = Micro("unstepped", "", two, lambda h: ((1.0, sum(h)),), lambda h: 1 / (len(h) - 1))
pairs = Micro("pairs", "", lambda h: (2, "lead"), paid)
sure = Micro("sure", "", two, lambda h: float(sum(h)))
"""


@pytest.mark.slow
def test_a_published_name_is_measured_as_its_method_with_its_options() -> None:
    """`docs/methods.md` said that `--method` accepts these names, and three of six benches did not."""
    assert setting("Dr. MAS") is SETTINGS["dr_mas"] and setting("Turn-LOO") is setting("Turn-LOO")
    assert setting("Turn-LOO").fn.keywords == PUBLISHED["turn_loo"].options  # type: ignore[attr-defined]
    assert setting("VinePPO").way == "alone" and setting("CoLLM-MAAC").way == "groups"  # its spread is of the batch
    for name in (name for name, paper in PUBLISHED.items() if paper.method):
        assert setting(name).fn
    shown = CliRunner().invoke(cli, ["bench", "bias", "-m", "Turn-LOO", "--world", "relay-and"]).stdout
    assert " Turn-LOO " in shown and "0 / 0" in shown
    refused = CliRunner().invoke(cli, ["bench", "bias", "-m", "QMIX"])
    assert refused.exit_code == 1 and "is not fitted from logs" in refused.stderr


def test_a_world_of_ones_own_is_measured_as_the_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No world had outliers, and none could be added."""
    (tmp_path / "worlds_of_bias.py").write_text(OWN_WORLDS)
    monkeypatch.chdir(tmp_path)
    name = "worlds_of_bias:outliers"
    call = ["bench", "bias", "-m", "rloo", "-m", "dr_grpo", "--world", name, "--json"]
    found = json.loads(CliRunner().invoke(cli, call).stdout)
    biases = {(row[0], row[2]): row[3] for row in found["rows"] if row[1] == "outliers"}
    expected = {("rloo", 2): 0, ("rloo", 3): 0, ("dr_grpo", 2): 1 / 2, ("dr_grpo", 3): 1 / 3}
    assert {key: biases[key] for key in expected} == pytest.approx(expected, abs=1e-9)
    for wrong, words in {
        "endless": r"goes on after the choices (0, 0, 0, 0); expected 4 at most",
        "half": r"has the outcome ((0.5, 0.0),) after (0, 0); expected pairs",
        "luck": "has no gradient to compare with: no choice changes its expected reward",
        "nothing": "has no decision; expected one decision or more",
        "undecided": "undecided': decide((0,)) failed at worlds_of_bias.py:16: AttributeError: 'Decision' object has",
        "unpaid": "unpaid': outcome((0, 0)) failed at worlds_of_bias.py:19: IndexError: tuple index out of range",
        "unstepped": "unstepped': step((0,)) failed at worlds_of_bias.py:23: ZeroDivisionError: ",
        "pairs": "pairs': decide(()) is (2, 'lead'); expected a Decision of graphs.worlds.micro.orchestration, or None",
        "sure": "has the outcome 0.0 after (0, 0); expected pairs",
        "number": "is 3; expected a Micro of graphs.worlds.micro.orchestration",
        "outlier": "has no 'outlier'. Did you mean outliers",
    }.items():
        refused = CliRunner().invoke(cli, [*call[:4], "--world", f"worlds_of_bias:{wrong}"])
        assert refused.exit_code == 1 and words in refused.stderr, refused.stderr  # exceptions were bare tracebacks


ROUTE = """
from graphs.event_graph import EventType
from graphs.worlds.micro.orchestration import Decision, Micro

def decide(history):
    if not history:
        return Decision("planner", EventType.ORCHESTRATOR_DECISION, 2)
    return Decision(("tester", "coder")[history[0]], EventType.MESSAGE, 2, stage=1) if len(history) == 1 else None

def outcome(history):
    return ((1.0, 0.9 * history[1] if history[0] else 0.3 + 0.2 * history[1]),)

route = Micro("route", "A planner asks a tester or a coder.", decide, outcome)
"""
ROLES = """
import functools
from estimators import rloo

refusing = functools.partial(rloo, by="task,role")
"""


@pytest.mark.slow
def test_agents_of_an_own_world_have_roles_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the first agent had the role "worker": the bias of a mean by role, 0.21 by hand, was 0."""
    (tmp_path / "routing.py").write_text(ROUTE)
    (tmp_path / "by_role.py").write_text(ROLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    row = measure("by_role:refusing", "routing:route", 3)
    world = importlib.import_module("routing").route
    ends = [(tuple(s), tuple(c)) for s, c in zip(world.state.tolist(), world.choice.tolist(), strict=True)]
    chance, total, states = world.probabilities(), world.total, list(world.states.values())

    def push(end: tuple[tuple[int, ...], tuple[int, ...]], advantage: list[float]) -> np.ndarray:
        out = np.zeros_like(world.policy)
        for s, c, a in zip(*end, advantage, strict=True):
            out[s] += a * ((np.arange(out.shape[1]) == c) - world.policy[s])
        return np.asarray(out)

    true = sum(chance[i] * push(ends[i], [total[i]] * 2) for i in range(len(ends)))
    mean = np.zeros_like(true)
    for batch in itertools.product(range(len(ends)), repeat=3):
        for i, one in enumerate(batch):
            advantage = []
            for s in ends[one][0]:
                others = [total[o] for j, o in enumerate(batch)
                          if j != i and states[s].agent in {states[q].agent for q in ends[o][0]}]  # fmt: skip
                advantage.append(total[one] - np.mean(others) if others else 0.0)
            mean += np.prod(chance[list(batch)]) / 3 * push(ends[one], advantage)
    bias = np.linalg.norm(mean - true) / np.linalg.norm(true)
    assert row.bias == pytest.approx(bias, rel=1e-5) and bias > 0.2


@pytest.mark.slow
def test_a_function_without_event_rewards_is_said_to_have_other_rewards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bias was 0 here; what logs run, which add nothing to outcomes, has one of 0.47."""
    (tmp_path / "of_outcomes.py").write_text(
        "import credit\n\ndef plain(graph, reward):\n    return credit.rloo(graph, reward)\n"
    )
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(cli, ["bench", "bias", "-m", "of_outcomes:plain", "--world", "stop-rewards"]).stderr
    assert "of_outcomes:plain takes no event_reward: rewards at events were added to its outcomes here" in said


@pytest.mark.slow
def test_refusals_are_named_for_each_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several worlds only the worst was named, as if the method answered everything in the others."""
    (tmp_path / "of_turns.py").write_text(
        "import credit\n\ndef own(graph, reward, *, event_reward=None):\n"
        "    return credit.rloo(graph, reward, event_reward=event_reward, by='task,turn')\n"
    )
    monkeypatch.chdir(tmp_path)
    asked = ["bench", "bias", "-m", "of_turns:own", *("--group-size", "2")]
    said = (
        CliRunner().invoke(cli, [*asked, *(f"--world={w}" for w in ("spawn-and", "relay-and", "stop-rewards"))]).stderr
    )
    shares = re.search(r"of_turns:own, size 2, gave no number for decisions: (.*) \(2 of 3 worlds\); most often", said)
    assert shares and re.fullmatch(r"[\d.]+ % in stop-rewards; [\d.]+ % in spawn-and", shares[1]), said
    alone = CliRunner().invoke(cli, [*asked, "--world=spawn-and"]).stderr
    assert f"for decisions: {shares[1].partition('; ')[2]}; most often" in alone


@pytest.mark.slow
def test_what_has_too_many_batches_is_refused_with_the_option_that_allows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command refused `c3` in groups of 4, which `measure` computes, and named no way out."""
    bias = importlib.import_module("credit.bench.bias")
    many = "c3: world 'relay-and' has 2,240 replay trees of 4 alternatives a context; expected at most"
    monkeypatch.setattr(bias, "MOST_BATCHES", 100)
    command = ["bench", "bias", "-m", "c3", "--world", "relay-and", "--group-size", "4", "--json"]
    refused = CliRunner().invoke(cli, command)
    assert refused.exit_code == 1 and re.search(rf"{many} 100 \(--most-batches\)", refused.stderr), refused.stderr
    found = CliRunner().invoke(cli, [*command, "--most-batches", "4000"])
    assert json.loads(found.stdout)["rows"] == as_lists([measure("c3", "relay-and", 4)])
    with pytest.raises(CreditError, match=f"{many} 200"):
        cells(["c3"], ["relay-and"], [4], 200)


@pytest.mark.slow
@pytest.mark.parametrize(("world", "lacking"), [("relay-and", {"answered"}), ("spawn-and", set())])
def test_all_scores_are_drawn_that_have_something_to_show(
    world: str, lacking: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight panels were drawn always, one of them of markers at 1 alone."""
    (tmp_path / "of_some_turns.py").write_text(
        "import credit\n\ndef own(graph, reward, *, event_reward=None):\n"
        "    return credit.rloo(graph, reward, event_reward=event_reward, by='task,turn')\n"
    )
    monkeypatch.chdir(tmp_path)
    drawn: list[list[str]] = []
    monkeypatch.setattr("credit.plot.draw_methods", lambda rows, *, scores, **_: drawn.append([*scores]))
    monkeypatch.setattr("credit.cli.benchmarks.bench_bias.save_picture", lambda figure, path: None)
    monkeypatch.setattr("credit.cli.benchmarks.bench_bias.check_room", lambda draw: None)
    command = ["bench", "bias", "-m", "of_some_turns:own", "--world", world, "--score", "all", "--plot", "x.svg"]
    found = CliRunner().invoke(cli, command)
    assert found.exit_code == 0, found.output
    assert drawn == [[score for score in SCORES if score not in lacking]]


@pytest.mark.slow
def test_the_figure_has_each_group_size_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "sizes.svg"
    call = ["bench", "bias", "-m", "rloo", "--world", "relay-and", "--group-size", "2,3", "--plot", str(path)]
    assert CliRunner().invoke(cli, call).exit_code == 0
    assert {"groups of 2", "groups of 3"} <= set(re.findall(r"<!-- (.*?) -->", path.read_text()))
