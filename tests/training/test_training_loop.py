"""Teams that learn: exact returns against enumeration, signals that must or must not teach, RLOO in NumPy."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credit.bench.training.learning_tasks import TASKS, LearningTask, learning_task
from credit.bench.training.online_critic import critic_evidence, fresh_critic, learn
from credit.bench.training.reruns import coalition_shares, replaced_rewards, siblings
from credit.bench.training.rollouts import draw_rollout, exact_return
from credit.bench.training.sparse_draws import categorical_at
from credit.bench.training.team_policies import first_parameters, policy_logits
from credit.bench.training.training_comparison import TIE
from credit.bench.training.training_loop import Signal, TrainingSettings, train
from credit.bench.training.training_signals import training_signal
from credit.cli.benchmarks.bench_train import _matching
from estimators.critic.central import centred_increments
from graphs.errors import CreditError

# Compiled whole, as in training: operation by operation takes far longer.
drawn = jax.jit(draw_rollout, static_argnames=("groups", "group_size"))
learned, evidence_of = jax.jit(learn), jax.jit(critic_evidence)

SHORT = TrainingSettings(steps=40, groups=4, group_size=4)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["bottleneck", "router", "stopping"])
@pytest.mark.study
def test_the_exact_return_is_the_sum_over_all_choices(name: str) -> None:
    task = learning_task(name)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(task.kinds, task.decisions, task.choices)).astype(np.float32)
    policy = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    total = 0.0
    for kind in range(task.kinds):
        for choice in itertools.product(range(task.choices), repeat=len(task.decisive)):
            chance = np.prod([policy[kind, d, c] for d, c in zip(task.decisive, choice, strict=True)])
            total += chance * task.reward[(kind, *choice)] / task.kinds
    assert float(exact_return(task, jnp.asarray(logits))) == pytest.approx(total, abs=1e-6)


def test_luck_is_most_of_the_variance_of_rewards_on_five_tasks() -> None:
    share = {}
    for name in ("additive", "bernoulli", "bottleneck", "pivotal", "free_rider", "padding", "stopping", "checklist"):
        task = learning_task(name)
        luck = np.mean(task.reward * (1 - task.reward)) if task.noise is None else task.noise**2
        share[name] = round(100 * float(luck / (luck + task.reward.var())))
    others = [share.pop(name) for name in ("checklist", "bottleneck", "pivotal")]
    assert others == [0, 35, 36]  # as docs/training.md says
    assert min(share.values()) == 70 and max(share.values()) == 93


@pytest.mark.slow
def test_heavy_tails_have_the_variance_of_normal_noise_and_no_fourth_moment() -> None:
    """No task had them."""
    heavy, plain = learning_task("heavy"), learning_task("additive")
    assert heavy.heavy and not plain.heavy and heavy.optimum == plain.optimum and heavy.noise == plain.noise
    logits = jnp.zeros((1, 12, 2))
    luck = {}
    for task in (heavy, plain):
        rollout = drawn(task, logits, groups=10_000, group_size=4, key=jax.random.key(7))
        expected = task.reward[(0, *np.asarray(rollout.choice).T)]
        luck[task.name] = (np.asarray(rollout.reward, np.float64) - expected) / task.noise
    assert np.std(luck["additive"]) == pytest.approx(1, abs=0.02)
    assert np.std(luck["heavy"]) == pytest.approx(1, abs=0.1)
    # The quartile of Student's t with three degrees of freedom is 0.765, over √3 for variance 1.
    assert np.median(np.abs(luck["heavy"])) == pytest.approx(0.7649 / 3**0.5, abs=0.01)
    assert np.abs(luck["heavy"]).max() > 10 and np.abs(luck["additive"]).max() < 6
    with pytest.raises(CreditError, match="is heavy; expected noise"):
        dataclasses.replace(learning_task("bernoulli"), heavy=True)


@pytest.mark.parametrize(
    ("name", "best", "optimum"),
    [
        ("stopping_shrinks", "11110", 0.95 - 0.85 * 0.6**4 - 0.2),
        ("stopping_burst", "11110", 0.95 - 0.12),
        ("stopping_noisy", "11110", 0.3 + 0.4 * (0.95 - 0.85 * 0.6**4) - 0.08),
        ("stopping_two", "1111100", 0.1 + 0.6 + 0.25 - 0.15 - 0.08),
        ("stopping_prices", "11111110", 0.1 + 0.48 + 0.18 - 0.22 - 0.08),
        ("stopping_spoils", "1110", 0.95 - 0.06),
    ],
)
def test_the_best_place_to_stop_is_known(name: str, best: str, optimum: float) -> None:
    task = learning_task(name)
    assert task.optimum == pytest.approx(optimum)
    choice = np.unravel_index(task.reward[0].argmax(), task.reward.shape[1:])
    assert "".join(map(str, choice)).startswith(best)


@pytest.mark.slow
def test_a_budget_is_what_the_best_policy_spends() -> None:
    spent = {"stopping_spoils": 0.06, "stopping_kinds": 0.09, "stopping_two": 3 * 0.05 + 2 * 0.04}
    for name, cost in spent.items():
        multiplier, budget = training_signal("stop_budget").start(learning_task(name))
        assert float(multiplier) == 0 and float(budget) == pytest.approx(cost), name
    with pytest.raises(CreditError, match="no price of its steps"):
        training_signal("stop_budget").start(learning_task("pivotal"))


@pytest.mark.slow
def test_a_price_that_is_fitted_to_the_budget_stops_where_the_true_one_does() -> None:
    """The signal sees outcomes before prices: without a multiplier it would go on to the end, at half of the best."""
    task = learning_task("stopping_spoils")
    assert train(task, training_signal("stop_budget"), SHORT, 1, 0.3).expected[-1] > 0.9 * task.optimum


def test_patterns_name_tasks_and_what_matches_none_stays() -> None:
    named = list(_matching(["stopping_s*", "stoping", "pivotal"], TASKS))
    assert named == ["stopping_shrinks", "stopping_spoils", "stoping", "pivotal"]


@pytest.mark.study
@pytest.mark.parametrize(
    "name", ["planner", *(pytest.param(name, marks=pytest.mark.study) for name in TASKS if name != "planner")]
)
def test_every_task_can_be_learned_and_none_is_learned_at_the_start(name: str) -> None:
    task = learning_task(name)
    curve = train(task, training_signal("exact_increments"), TrainingSettings(steps=300), 0, 0.1).expected
    assert curve[0] < 0.9 * task.optimum
    assert curve[-1] > curve[0] + 0.8 * (task.optimum - curve[0])
    assert curve.max() <= task.optimum + 1e-6


@pytest.mark.slow
def test_a_zero_signal_teaches_nothing_and_a_seed_repeats_bit_for_bit() -> None:
    task = learning_task("pivotal")
    still = train(task, training_signal("zero"), SHORT, 0, 0.4)
    assert len(np.unique(still.expected)) == 1 and not still.cosine.any()
    one, two, other = (train(task, training_signal("rloo"), SHORT, seed, 0.4) for seed in (1, 1, 2))
    assert all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))
    assert one.expected.tobytes() != other.expected.tobytes()
    assert one.spent.tolist() == [192.0 * update for update in range(41)]  # 16 traces of 12 decisions, none of evidence


@pytest.mark.study
def test_exact_increments_teach_at_least_as_fast_as_the_team_reward() -> None:
    """As advantages; as claims of "control", which keeps luck that no choice explains, up to noise."""
    task = learning_task("bernoulli")
    area = {
        name: np.array([train(task, training_signal(name), SHORT, s, 0.4).expected.mean() for s in range(8)])
        for name in ("rloo", "exact_increments", "control_exact")
    }
    error = np.sqrt((area["rloo"].var(ddof=1) + area["control_exact"].var(ddof=1)) / 8)
    assert area["exact_increments"].mean() > area["rloo"].mean() + 2 * error
    assert area["control_exact"].mean() > area["rloo"].mean() - 2 * error


def times(factor: float) -> Signal:
    """`rloo` with its weights multiplied."""
    plain = training_signal("rloo")

    def weigh(rollout, state, key):  # type: ignore[no-untyped-def]
        answer = plain.weigh(rollout, state, key)
        return answer._replace(weights=factor * answer.weights)

    return Signal(plain.start, weigh)


MULTIPLES = [times(0.5), times(0.75)]


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("name", ["padding", *(name for name in TASKS if name != "padding")])
def test_a_multiple_of_rloo_trains_as_rloo_under_adam(name: str) -> None:
    """Adam made steps of rounding where traces that chose alike have advantages that sum to 0."""
    task = learning_task(name)
    for seed in np.random.default_rng(list(name.encode())).integers(10**6, size=3).tolist():
        curve, *others = (train(task, s, SHORT, seed, 0.4) for s in (training_signal("rloo"), *MULTIPLES))
        for other in others:
            assert other.spent.tolist() == curve.spent.tolist()
            apart = np.abs(other.expected - curve.expected).mean() / (task.optimum - curve.expected[0])
            assert apart <= TIE, (seed, apart)


def rloo_in_numpy(task: LearningTask, settings: TrainingSettings, seed: int, rate: float) -> np.ndarray:
    """J along the way, with RLOO, a softmax table and Adam written out; all decisions taken, one kind."""
    rng = np.random.default_rng(seed)
    logits = np.zeros((task.decisions, task.choices))
    first, second, curve = np.zeros_like(logits), np.zeros_like(logits), []
    for step in range(1, settings.steps + 1):
        policy = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        curve.append(float(exact_return(task, jnp.asarray(logits[None], jnp.float32))))
        slope = np.zeros_like(logits)
        for _ in range(settings.groups):
            choice = np.array([[rng.choice(task.choices, p=p) for p in policy] for _ in range(settings.group_size)])
            reward = (rng.random(len(choice)) < [task.reward[(0, *c)] for c in choice]).astype(float)
            advantage = reward - (reward.sum() - reward) / (len(reward) - 1)
            for row, a in zip(choice, advantage, strict=True):
                slope -= a * (np.eye(task.choices)[row] - policy)
        slope /= settings.groups * settings.group_size
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        logits -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return np.array(curve)


@pytest.mark.study
def test_rloo_here_and_in_numpy_lie_within_each_others_bands() -> None:
    task, settings = learning_task("bottleneck"), TrainingSettings(steps=25)
    here = np.stack([train(task, training_signal("rloo"), settings, s, 0.1).expected[:-1] for s in range(12)])
    plain = np.stack([rloo_in_numpy(task, settings, 100 + s, 0.1) for s in range(12)])
    error = np.sqrt((here.var(axis=0, ddof=1) + plain.var(axis=0, ddof=1)) / 12)
    assert (np.abs(here.mean(axis=0) - plain.mean(axis=0)) <= 3.5 * error + 1e-6).all()
    assert here[:, -1].mean() > here[0, 0] + 0.05  # both have learned something


@pytest.mark.study
@pytest.mark.parametrize("policy", ["mlp", "transformer"])
def test_a_network_shared_by_all_decisions_learns(policy: Literal["mlp", "transformer"]) -> None:
    task = learning_task("router")
    settings = TrainingSettings(steps=150, groups=8, group_size=8, policy=policy)
    curve, again = (train(task, training_signal("rloo"), settings, 0, 0.02).expected for _ in range(2))
    assert curve[-1] > curve[0] + 0.3
    assert curve.tobytes() == again.tobytes()


@pytest.mark.study
def test_a_transformers_decision_sees_the_kind_and_who_decided_up_to_it() -> None:
    task = learning_task("router")
    options = TrainingSettings(policy="transformer", hidden=8)
    parameters = first_parameters(task, options, jax.random.key(0))
    parameters["out"]["kernel"] *= 100  # so that logits differ by what can be told from rounding
    logits = np.asarray(policy_logits(task, options, parameters))
    assert logits.shape == (4, 4, 4) and np.ptp(logits, axis=0).min() > 1e-3  # each decision is told the kind
    later = dataclasses.replace(task, agents=(0, 1, 3, 2))
    other = np.asarray(policy_logits(later, options, parameters))
    np.testing.assert_allclose(other[:, :2], logits[:, :2], atol=1e-6)
    assert np.abs(other - logits)[:, 2:].max(axis=(0, 2)).min() > 1e-3


@pytest.mark.study
def test_the_taken_gradient_points_along_the_exact_one() -> None:
    task = learning_task("additive")
    large = TrainingSettings(steps=3, groups=64, group_size=16)
    assert train(task, training_signal("exact_increments"), large, 0, 0.01).cosine.min() > 0.98
    logits = jnp.zeros((1, 12, 2))
    assert jax.eval_shape(jax.grad(lambda x: exact_return(task, x)), logits).shape == logits.shape


@pytest.mark.study
def test_evidence_is_right_and_paid_for() -> None:
    """Of a team that always chooses 1, on a task without luck: re-runs are known, and so is what they cost."""
    task = learning_task("checklist")
    certain = jnp.stack([jnp.full((1, 12), -50.0), jnp.full((1, 12), 50.0)], axis=2)
    rollout = drawn(task, certain, 2, 2, jax.random.key(0))
    assert rollout.reward.tolist() == [1.0] * 4
    runs = jax.jit(siblings)(rollout, jax.random.key(1))
    assert not np.asarray(runs.own).any() and np.asarray(runs.where).sum(axis=1).tolist() == [6] * 4
    assert float(runs.cost) == sum(12 - d for _, d in np.argwhere(np.asarray(runs.where)))
    without, cost = jax.jit(replaced_rewards)(rollout, jax.random.key(2))
    run_mask = np.isfinite(np.asarray(without))
    np.testing.assert_allclose(np.asarray(without)[run_mask], 11 / 12, rtol=1e-6)
    assert float(cost) == sum(12 - d for _, d in np.argwhere(run_mask))
    shares, cost = jax.jit(coalition_shares)(rollout, jax.random.key(3))
    np.testing.assert_allclose(np.asarray(shares), 0.25, rtol=1e-5)  # four agents of three choices each
    assert float(cost) == 4 * 4 * 12


@pytest.mark.study
def test_draws_at_some_places_are_those_of_the_whole_table() -> None:
    key, table = jax.random.key(7), jax.random.normal(jax.random.key(1), (5000, 3))
    places = jnp.array([[0, 1, 4999], [17, 17, 2500]])
    drawn = categorical_at(key, table[places], places, 5000)
    assert drawn.tolist() == jax.random.categorical(key, table)[places].tolist()
    assert len(set(np.asarray(categorical_at(key, table, jnp.arange(5000), 5000)).tolist())) == 3


@pytest.mark.parametrize(("rows", "choices"), [(2**31, 1), (2**30, 4)])
def test_a_table_beyond_32_bits_is_refused(rows: int, choices: int) -> None:
    """Its numbers wrapped around, and two decisions had one draw."""
    with pytest.raises(CreditError, match=f"the table of draws has {rows} rows of {choices}"):
        categorical_at(jax.random.key(0), jnp.zeros((1, choices)), jnp.zeros(1, int), rows)


@pytest.mark.study
def test_c3_of_siblings_is_the_difference_of_the_two_rewards() -> None:
    task = learning_task("checklist")
    rollout = drawn(task, jnp.zeros((1, 12, 2)), 4, 4, jax.random.key(0))
    runs = jax.jit(siblings)(rollout, jax.random.key(1))
    np.testing.assert_allclose(np.asarray(runs.own), -np.asarray(runs.other), atol=1e-6)
    last = np.asarray(runs.where)[:, 11]  # no later choice: only the last check differs
    gap = (np.asarray(rollout.choice)[:, 11] - np.asarray(runs.choice)[:, 11]) / 12
    np.testing.assert_allclose(np.asarray(runs.own)[last, 11], gap[last], atol=1e-6)


@pytest.mark.study
def test_the_critic_learns_additive_rewards_and_its_claims_are_centred() -> None:
    task = learning_task("checklist")
    critic = fresh_critic(task)
    for step in range(8):
        critic = learned(critic, drawn(task, jnp.zeros((1, 12, 2)), 8, 8, jax.random.key(step)))
    rollout = drawn(task, jnp.full((1, 12, 2), 0.3), 4, 4, jax.random.key(99))
    evidence = evidence_of(critic, rollout)
    np.testing.assert_allclose(np.sum(evidence.policy * evidence.q, axis=1), evidence.value, atol=1e-5)
    assert np.abs(np.asarray(evidence.value) - np.asarray(rollout.value)).max() < 0.05


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["stopping", "router"])
@pytest.mark.slow
def test_the_critics_surprise_is_the_centred_increment_of_its_values(name: str) -> None:
    """Where some decisions are not reached, and where all are."""
    task = learning_task(name)
    shape = (task.kinds, task.decisions, task.choices)
    critic = learned(fresh_critic(task), drawn(task, jnp.zeros(shape), 8, 8, jax.random.key(0)))
    rollout = drawn(task, jax.random.normal(jax.random.key(1), shape), 4, 4, jax.random.key(2))
    e = evidence_of(critic, rollout)
    claim = centred_increments(rollout.graph, rollout.reward, q=e.q, policy=e.policy, chosen=e.chosen)
    assert np.ptp(e.surprise) > 0.01 and (np.asarray(claim.valid) == rollout.graph.event_mask).all()
    np.testing.assert_allclose(e.surprise, claim.credit - claim.baseline, atol=1e-6)
    assert (np.asarray(rollout.of_events(rollout.of_decisions(e.value)))[rollout.graph.event_mask]
            == np.asarray(e.value)[rollout.graph.event_mask]).all()  # fmt: skip


@pytest.mark.study
def test_contrasts_of_choices_give_the_values_of_a_weight_for_each_choice() -> None:
    """With a table of decisions that are all taken, which says what no table says, the critic has a weight for each."""
    task = learning_task("router")
    same = dataclasses.replace(task, taken=np.ones((4, 4, 4), bool))
    evidence = []
    for stated in (task, same):
        critic = fresh_critic(stated)
        for step in range(3):
            critic = learned(critic, drawn(stated, jnp.zeros((4, 4, 4)), 8, 8, jax.random.key(step)))
        logits = jax.random.normal(jax.random.key(9), (4, 4, 4))
        evidence.append(evidence_of(critic, drawn(stated, logits, 4, 4, jax.random.key(99))))
    contrasts, weights = evidence
    assert np.ptp(contrasts.q) > 0.2
    np.testing.assert_allclose(contrasts.value, weights.value, atol=1e-4)
    np.testing.assert_allclose(contrasts.q, weights.q, atol=1e-4)


@pytest.mark.study
def test_a_signal_that_costs_runs_makes_fewer_updates() -> None:
    plain = training_signal("zero")

    def weigh(rollout, state, key):  # type: ignore[no-untyped-def]
        return plain.weigh(rollout, state, key)._replace(cost=2.0 * rollout.taken.sum(dtype=jnp.float32))

    curves = train(learning_task("pivotal"), Signal(plain.start, weigh), SHORT, 0, 0.1)
    assert len(curves.spent) == 14 and curves.spent[-1] == 13 * 3 * 192  # the fourteenth would pass 40 x 192


@pytest.mark.study
def test_naive_shaping_teaches_padding() -> None:
    task, settings = learning_task("padding"), TrainingSettings(steps=100, groups=8, group_size=8)
    final = {
        name: train(task, training_signal(name), settings, 0, 0.2).expected[-1] for name in ("rloo", "activity_bonus")
    }
    # The bonus of 0.15 exceeds the cost of 0.025, so that the shaped optimum takes all twelve choices, worth 0.70. The
    # bound leaves two of the ten useless choices unlearned. Without the bonus a team gains by each one that it drops.
    assert final["activity_bonus"] < 0.70 + 2 * 0.025
    assert final["rloo"] > final["activity_bonus"] + 4 * 0.025


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("name", ["shapley", "remax", pytest.param("stack", marks=pytest.mark.study)])
def test_signals_with_evidence_learn(name: str) -> None:
    settings = TrainingSettings(steps=60, groups=8, group_size=8)
    curves = train(learning_task("checklist"), training_signal(name), settings, 0, 0.2)
    assert curves.expected[-1] > 0.8 and curves.spent[-1] <= settings.budget(learning_task("checklist"))


@pytest.mark.study
def test_a_step_along_the_gradient_is_the_rate_times_the_gradient() -> None:
    task = learning_task("checklist")
    settings = TrainingSettings(steps=1, optimizer="sgd")
    curves = train(task, training_signal("exact_increments"), settings, 0, 0.5)
    key = jax.random.split(jax.random.fold_in(jax.random.key(0), 1), 20)[0]
    logits = jnp.zeros((task.kinds, task.decisions, task.choices))

    @jax.jit
    def weigh() -> jax.Array:
        rollout = drawn(task, logits, 4, 4, jax.random.split(key)[0])
        return training_signal("exact_increments").weigh(rollout, None, key).weights

    weights = weigh().mean(axis=0)[None]
    moved = logits + 0.5 * (weights - jax.nn.softmax(logits) * weights.sum(axis=2, keepdims=True))
    assert curves.expected[1] == pytest.approx(float(exact_return(task, moved)), abs=1e-6)


@pytest.mark.slow
def test_a_refitted_critic_has_seen_the_step_and_its_prior_counts_ten_traces() -> None:
    task = learning_task("additive")
    signal = training_signal("control_60_refit")

    @jax.jit
    def step() -> tuple[jax.Array, jax.Array, jax.Array]:
        rollout = drawn(task, jnp.zeros((1, task.decisions, 2)), 4, 4, jax.random.key(1))
        return rollout.choice, rollout.reward, signal.weigh(rollout, signal.start(task), jax.random.key(2)).weights

    choice, reward, weighed = (np.asarray(x) for x in step())
    # Contrasts of two choices: ± 1/√2, a prior of 10 traces each, and nearly none for the mean.
    x = np.concatenate([np.ones((16, 1)), np.where(choice == 1, -1, 1) / np.sqrt(2)], axis=1)
    prior = np.full(x.shape[1], 10.0)
    prior[0] = 1 / (1e3 + task.decisions / 20)
    reward = reward.astype(np.float64)
    fitted = np.linalg.solve(x.T @ x + np.diag(prior), x.T @ reward)
    claims = x[:, 1:] * fitted[1:]
    expected = claims + 0.6 * (reward - x @ fitted)[:, None]
    weights = np.take_along_axis(weighed, choice[..., None], axis=2)[..., 0]
    np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_wrong_names_and_numbers_are_refused() -> None:
    with pytest.raises(CreditError, match="No task 'chess'"):
        learning_task("chess")
    with pytest.raises(CreditError, match="no signal 'magic'"):
        training_signal("magic")
    with pytest.raises(CreditError, match=r"needs .*, which the tasks do not have"):
        training_signal("gigpo")
    with pytest.raises(CreditError, match=r"TrainingSettings\.steps is 0"):
        TrainingSettings(steps=0)
    with pytest.raises(CreditError, match=r"TrainingSettings\.hidden is 30"):
        TrainingSettings(policy="transformer", hidden=30)
    with pytest.raises(CreditError, match=r"TrainingSettings\.optimizer is 'lion'"):
        TrainingSettings(optimizer="lion")  # type: ignore[arg-type]
    with pytest.raises(CreditError, match="learning_rate is 0"):
        train(learning_task("pivotal"), training_signal("zero"), SHORT, 0, 0)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", ["control_both", "stack", "stop_robust", "posterior", "coma"])
def test_a_step_factors_once(name: str) -> None:
    """Two that could run side by side wait for each other forever where seeds are trained at once on two cores."""
    task, signal = learning_task("pivotal"), training_signal(name)

    def step(logits: jax.Array, state: Any, key: jax.Array) -> Any:
        draw, more = jax.random.split(key)
        return signal.weigh(draw_rollout(task, logits, 4, 4, draw), state, more)

    logits = jnp.zeros((task.kinds, task.decisions, task.choices))
    traced = str(jax.make_jaxpr(step)(logits, signal.start(task), jax.random.key(0)))
    lapack = name != "posterior"  # whose factor waits for no threads, and holds the first of two solves
    assert traced.count("= cholesky") == lapack and traced.count("= triangular_solve") == 1 + lapack
