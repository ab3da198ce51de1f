"""Advantages of a ledger on enumerated worlds: exact bias, each broken condition, and the known counter-examples."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest

import credit
from credit.ledger import Controls, Errors, Ledger, Reconcile, Shares, Signal
from graphs.event_graph import KINDS
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Micro

pytestmark = pytest.mark.optimised


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


class Enumerated:
    """Every trace of a micro-world as one batch, with exact expectations over it."""

    def __init__(self, world: Micro) -> None:
        self.world, self.graph = world, world.batch().graph
        self.chance = world.probabilities()
        there = world.state >= 0
        self.path = np.stack([world.state[there], world.choice[there]], axis=1)  # (state, choice) of every event
        self.n = len(self.path)
        self.position = np.nonzero(there)[1]  # of every event in its trace
        self.score = world.through_scores(_chosen(world, self.path)).reshape(self.n, -1)
        self.trace = np.asarray(self.graph.trace_ids)[: self.n]
        self.first = self.position == 0
        self.reward = np.full(self.graph.num_traces, np.nan)
        self.reward[: len(world.total)] = world.total
        self.exact = world.gradient().ravel()

    def claim(self, values: np.ndarray, **changes: object) -> credit.Credit:
        padded = np.full(self.graph.num_events, np.nan)
        padded[: self.n] = values
        options = {"estimand": "increment", "source": "made up", "centred": True, "own_outcome": False} | changes
        return credit.claim(self.graph, padded, **options)

    def compose(self, claims: list[credit.Credit], **options: object) -> Ledger:
        return credit.compose(self.graph, self.reward, claims, **options)

    def gradient(self, advantage: np.ndarray) -> np.ndarray:
        weight = self.chance[self.trace] * np.asarray(advantage)[: self.n]
        return weight @ self.score

    def bias(self, signal: Signal) -> float:
        return float(np.linalg.norm(self.gradient(signal.credit.advantage) - self.exact) / np.linalg.norm(self.exact))

    def wrong_but_centred(self, rng: np.random.Generator) -> np.ndarray:
        """Any number for each history and choice, minus its mean under the policy."""
        table = 3 * rng.normal(size=self.world.policy.shape)
        table -= (self.world.policy * table).sum(axis=1, keepdims=True)
        return table[tuple(self.path.T)]


def _chosen(world: Micro, path: np.ndarray) -> np.ndarray:
    """1 at the choice of each event, float64 [events, S, C]."""
    out = np.zeros((len(path), *world.policy.shape))
    out[np.arange(len(path)), path[:, 0], path[:, 1]] = 1
    return out


@pytest.fixture(scope="module")
def worlds() -> dict[str, Enumerated]:
    return {name: Enumerated(world) for name, world in MICRO.items()}


@pytest.mark.slow
def test_control_is_exact_for_wrong_but_centred_claims_on_every_world(worlds: dict[str, Enumerated]) -> None:
    """Whatever the claims, the baseline and the coefficients are."""
    for seed, (name, world) in enumerate(worlds.items()):
        rng = np.random.default_rng(seed)
        ledger = world.compose([world.claim(world.wrong_but_centred(rng), source=s) for s in ("one", "other")])
        for beta in ([1.0, 0.0], rng.normal(size=2)):
            baseline = np.full(world.graph.num_traces, rng.normal())
            signal = ledger.advantage("control", baseline=baseline, beta=np.asarray(beta), limit=np.inf)
            assert world.bias(signal) < 1e-12, name
            assert signal.used == ("one", "other") and signal.unbiased is None  # b and β are the caller's word
        assert world.bias(ledger.advantage("entry", limit=np.inf)) > 0.01, name


@pytest.mark.slow
@pytest.mark.parametrize("replays", [4, 1, 2])
def test_own_outcome_in_an_earlier_claim_shrinks_later_gradients_by_one_over_its_replays(
    worlds: dict[str, Enumerated], replays: int
) -> None:
    for world in worlds.values():
        own = (world.world.total - world.chance @ world.world.total)[world.trace] / replays
        values = np.where(world.first, own, np.nan)
        # The lead's first decision carries a claim, whatever its type: in one world only it is a spawn.
        options = {"baseline": np.zeros(world.graph.num_traces), "beta": 1.0, "decided_before": ("made up",)}
        lying = world.compose([world.claim(values)]).advantage("control", **options)
        later = np.where(world.first, 0.0, 1.0)
        exact = world.gradient(later * world.world.total[world.trace])
        np.testing.assert_allclose(
            world.gradient(later * np.asarray(lying.credit.advantage)[: world.n]), (1 - 1 / replays) * exact, atol=1e-12
        )
        honest = world.compose([world.claim(values, own_outcome=True)]).advantage("control", **options)
        assert world.bias(honest) < 1e-12


@pytest.mark.slow
def test_presence_or_coefficients_chosen_by_the_events_own_action_bias(worlds: dict[str, Enumerated]) -> None:
    world = worlds["hire-additive"]
    rng = np.random.default_rng(0)
    values, chose = world.wrong_but_centred(rng), world.path[:, 1]
    options = {"baseline": np.zeros(world.graph.num_traces), "beta": 1.0, "limit": np.inf}
    for broken in (np.where(chose == 1, values, np.nan), np.where(chose == 1, 2.0, 0.5) * values):
        signal = world.compose([world.claim(broken)]).advantage("control", **options)
        assert world.bias(signal) > 0.05
    signal = world.compose([world.claim(np.where(chose == 1, values, np.nan))]).advantage("control", **options)
    assert [c.holds for c in signal.conditions if c.name.startswith("presence")] == [None]


@pytest.mark.slow
def test_claims_whose_presence_follows_the_events_type_are_left_out_by_name() -> None:
    """A worker that chose to message carries a claim, one that chose to call a tool does not."""
    graph = MICRO["hire-additive"].batch().graph
    kind = np.array(graph.event_type)
    workers = np.asarray(graph.event_mask) & (np.asarray(graph.agent_role_ids)[graph.agent_ids] != 0)
    kind[np.flatnonzero(workers)[::2]] = int(credit.EventType.TOOL_CALL)
    graph = credit.EventGraph(**{**vars(graph), "event_type": kind})
    amount = np.where(workers & (kind == int(credit.EventType.MESSAGE)), 0.1, np.nan)
    made = credit.claim(graph, amount, estimand="increment", source="c", centred=True, own_outcome=False)
    reward = np.zeros(graph.num_traces)
    signal = credit.compose(graph, reward, [made]).advantage("control")
    assert signal.used == () and "follows the event's type" in signal.refused["c"]
    vouched = credit.compose(graph, reward, [made]).advantage("control", decided_before=("c",))
    assert vouched.used == ("c",)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
def test_what_cannot_be_a_control_variate_is_left_out_by_name(worlds: dict[str, Enumerated]) -> None:
    world = worlds["spawn-and"]
    off = world.claim(np.ones(world.n), source="critic", centred=False)
    coarse = world.claim(np.ones(world.n), source="agents", unit="trace", stderr=1.0)
    signal = world.compose([off, coarse], rule=Reconcile()).advantage("control")
    assert signal.used == () and set(signal.refused) == {"critic", "agents"}
    assert "not centred" in signal.refused["critic"] and "sums over traces" in signal.refused["agents"]
    rloo = credit.rloo(world.graph, world.reward)
    np.testing.assert_array_equal(signal.credit.advantage, rloo.advantage)  # nothing left: plain RLOO
    assert "left out critic" in str(signal) and "coverage" in str(signal)
    assert ("no claim takes part" in str(signal)) == (not signal.used)


def decisions(count: int, nulls: int = 0, p: float = 0.5) -> Enumerated:
    """R = AND of `count` decisions of different agents, each 1 with probability p; then events that change nothing."""
    from graphs.event_graph import EventType
    from graphs.worlds.micro.orchestration import Decision

    def decide(history: tuple[int, ...]) -> Decision | None:
        t = len(history)
        return Decision(f"agent-{t}", EventType.MESSAGE, 2) if t < count + nulls else None

    made = Micro("and", "All must be right.", decide, lambda h: ((1.0, float(all(h[:count]))),))
    even = np.tile([[1 - p, p]], (len(made.states), 1))
    made.__dict__.update(policy=even, logits=np.log(even))  # cached properties, so that the policy is the paper's
    return Enumerated(made)


def by_decision(world: Enumerated, advantage: np.ndarray) -> np.ndarray:
    """The gradient by the logit of each decision, the same in all histories: E[A_t (a_t − p)]."""
    score = world.path[:, 1] - world.world.policy[0, 1]
    weight = world.chance[world.trace] * np.asarray(advantage)[: world.n] * score
    return np.bincount(world.position, weight)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::credit.ledger.RefusedClaimWarning")
def test_an_exact_removal_claim_under_the_whole_total_teaches_one_decision_only() -> None:
    """Gradient (0, .125) where the truth is (.125, .125)."""
    world = decisions(2)
    second = world.position == 1
    removal = np.where(second, world.world.total[world.trace], np.nan)
    honest = world.compose([world.claim(removal, estimand="effect", source="removal")], rule=Reconcile(tau=0))
    assert "propensity" in honest.refused["removal"]
    zero = np.zeros(world.graph.num_traces)
    lying = world.compose(
        [world.claim(removal, source="removal", centred=False, stderr=0.0)],
        rule=Reconcile(tau=0, errors=Errors(exact=("removal",))),
        expected=zero,
    )
    signal = lying.advantage("entry")
    np.testing.assert_allclose(by_decision(world, signal.credit.advantage), [0, 0.125], atol=1e-12)
    assert signal.unbiased is False and "unclaimed actions get 0" in str(signal)
    control = lying.advantage("control", baseline=zero)
    assert "not centred" in control.refused["removal"]
    np.testing.assert_allclose(by_decision(world, control.credit.advantage), [0.125, 0.125], atol=1e-12)


@pytest.mark.slow
def test_an_even_residual_beside_an_exact_claim_halves_the_other_gradient() -> None:
    """Gradient (.125, .0625, 0) with one null event; the named scale is what spreads the residual."""
    world = decisions(2, nulls=1)
    first = world.position == 0
    claim = world.claim(np.where(first, world.world.increments[tuple(world.path.T)], np.nan), stderr=0.0)
    start = np.full(world.graph.num_traces, 0.25)
    errors = Errors(exact=("made up",))
    spread = world.compose([claim], rule=Reconcile(tau=0, scale=1.0, errors=errors), expected=start)
    signal = spread.advantage("entry")
    np.testing.assert_allclose(by_decision(world, signal.credit.advantage), [0.125, 0.0625, 0], atol=1e-12)
    assert signal.unbiased is False
    control = spread.advantage("control", baseline=start, beta=1.0)
    np.testing.assert_allclose(by_decision(world, control.credit.advantage), [0.125, 0.125, 0], atol=1e-12)
    alone = np.asarray(world.compose([claim], rule=Reconcile(errors=errors), expected=start).increments)
    assert not alone[: world.n][~first].any()  # without a scale: 0


@pytest.mark.slow
def test_three_removal_claims_under_the_whole_total_turn_a_gradient_round() -> None:
    """Credit (−.961, .980, .980) R and gradient (−.060, .061, .061) where the truth is .0625 each."""
    world = decisions(3)
    removal = world.world.total[world.trace]
    stderr = np.zeros(world.graph.num_events)
    stderr[: world.n] = np.array([1.0, 0.1, 0.1])[world.position]
    zero = np.zeros(world.graph.num_traces)
    lying = world.compose(
        [world.claim(removal, source="removal", stderr=stderr, centred=False)], rule=Reconcile(tau=0), expected=zero
    )
    won = np.flatnonzero(world.world.total[world.trace] > 0)
    np.testing.assert_allclose(np.asarray(lying.increments)[won], [-0.961, 0.980, 0.980], atol=5e-4)
    signal = lying.advantage("entry")
    np.testing.assert_allclose(by_decision(world, signal.credit.advantage), [-0.0600, 0.0613, 0.0613], atol=5e-5)
    assert signal.unbiased is False
    control = lying.advantage("control", baseline=zero)
    assert set(control.refused) == {"removal"}
    np.testing.assert_allclose(by_decision(world, control.credit.advantage), [0.0625] * 3, atol=1e-12)


@pytest.mark.slow
def test_a_scale_is_applied_last_and_said_to_bias(worlds: dict[str, Enumerated]) -> None:
    world = worlds["hire-additive"]
    ledger = world.compose([credit.dr_mas(world.graph, world.reward)])
    plain = ledger.advantage("control")
    by_name, by_source = ledger.advantage("control", scale="agent_name"), ledger.advantage("control", scale="dr_mas")
    for scaled in (by_name, by_source):
        there = np.asarray(scaled.credit.valid)
        ratio = np.asarray(plain.credit.advantage)[there] / np.asarray(scaled.credit.scale)[there]
        np.testing.assert_allclose(np.asarray(scaled.credit.advantage)[there], ratio)
        assert scaled.unbiased is False and "re-weights decisions" in str(scaled)
    spread = np.asarray(by_name.credit.advantage)[: world.n]
    lead = np.asarray(world.graph.agent_name_ids)[np.asarray(world.graph.agent_ids)[: world.n]] == 0
    assert np.sqrt(np.mean(spread[lead] ** 2)) == pytest.approx(1, abs=0.05)  # `test_scales` has the formula
    with pytest.raises(credit.CreditError, match="expected one of dr_mas, agent_name, role_name"):
        ledger.advantage("control", scale="nonsense")


@pytest.mark.slow
def test_even_is_the_baseline_subtracted_reward_and_nothing_else_may_claim_it(worlds: dict[str, Enumerated]) -> None:
    world = worlds["hire-additive"]
    signal = world.compose([], rule=Shares()).advantage("even")
    wanted = credit.rloo(world.graph, world.reward).advantage
    np.testing.assert_allclose(signal.credit.advantage, wanted, atol=1e-12)
    with pytest.raises(credit.CreditError, match="even split"):
        world.compose([]).advantage("even")
    with pytest.raises(credit.CreditError, match="expected 'control', 'entry' or 'even'"):
        world.compose([]).advantage("best")


@pytest.mark.slow
def test_even_says_which_traces_have_nothing_to_compare_with() -> None:
    """A group of one got its raw reward, and the words were those of a baseline."""
    graph, reward, rows = credit.from_columns(
        group=[0, 1, 1, 2], trace=["a", "b", "c", "d"], reward=[2.0, 1.0, 0.0, 3.0]
    )
    ledger = credit.compose(graph, reward, [], rule=Shares())
    signal = ledger.advantage("even")
    assert rows.gather(signal.credit.advantage).tolist() == [2.0, 1.0, -1.0, 3.0]
    assert "2 traces without another one to compare with, where it is 0: the advantage is R itself" in str(signal)
    stated = credit.compose(graph, reward, [], rule=Shares(), expected=np.full(graph.num_traces, 0.5, np.float32))
    assert "without another one" not in str(stated.advantage("even"))


@pytest.mark.slow
def test_the_stack_is_unbiased_before_its_scale_and_says_so_after_it(worlds: dict[str, Enumerated]) -> None:
    world = worlds["hire-additive"]
    rng = np.random.default_rng(0)
    messages, orchestrator = (world.claim(world.wrong_but_centred(rng), source=s) for s in ("siblings", "critic"))
    controls = Controls(baseline=np.zeros(world.graph.num_traces), beta=1.0)
    made = credit.stack(world.graph, world.reward, messages, orchestrator, controls=controls)
    assert world.bias(made.unscaled) < 1e-12 and made.unscaled.used == ("siblings", "critic")
    assert made.signal.unbiased is False and "agent name" in made.signal.scale
    lead = np.isin(np.asarray(world.graph.event_type)[: world.n], [int(kind) for kind in KINDS["orchestrator"]])
    assert lead.any() and not lead.all()
    cells = np.asarray(made.ledger.cells)[: world.n]
    assert not cells[lead, 0].any() and not cells[~lead, 1].any()  # nobody is paid by both
    assert np.asarray(made.ledger.claimed)[: world.n].all()


@pytest.mark.slow
@pytest.mark.parametrize("amounts", [[0.5, -0.5], [0.5, 0.5]])
def test_centredness_is_not_checked_whatever_a_claim_states(amounts: list[float]) -> None:
    """No log shows it: claims with sums far from 0 were printed as `centred: holds`."""
    graph, reward, rows = credit.from_columns(group=[0] * 2, trace=[0, 1], reward=[1.0, 0.0])
    values = np.full(graph.num_events, np.nan)
    values[rows.event] = amounts
    claim = credit.claim(graph, values, estimand="increment", source="critic", centred=True, own_outcome=False)
    signal = credit.compose(graph, reward, [claim]).advantage("control", beta=1.0)
    condition = next(condition for condition in signal.conditions if condition.name == "centred")
    assert condition.holds is None and signal.unbiased is None
    assert "  centred: as stated: claims that declare another thing are left out" in str(signal)
    assert "unbiased if what could not be checked holds" in str(signal)


def large_claims(reward: list[float]) -> tuple[Ledger, credit.Credit]:
    """Claims of 1,000 in each of two traces, and a scale."""
    graph, outcome, rows = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 1], reward=np.repeat(reward, 2))
    amount = np.zeros(graph.num_events)
    amount[rows.event] = [1000.0, 0.0, -1000.0, 0.0]
    claim = credit.claim(graph, amount, estimand="increment", source="critic", centred=True, own_outcome=False)
    return credit.compose(graph, outcome, [claim]), credit.dr_mas(graph, outcome)


@pytest.mark.slow
def test_claims_that_are_large_against_the_rewards_are_refused() -> None:
    """Claims of 1,000 beside rewards of 0 and 1 gave advantages of 999."""
    ledger, scale = large_claims([1.0, 0.0])
    wanted = (
        r"event 1, in trace 0 of the batch, is -999, 999 times the spread of the rewards of its group \(1\); expected "
        r"10 times or less; in that trace its return is 1, the largest claim of 'critic' is 1000"
    )
    with pytest.raises(credit.CreditError, match=wanted):
        ledger.advantage("control", beta=1.0)
    with pytest.raises(credit.CreditError, match="the largest claim of 'critic' is 1000"):
        ledger.advantage("entry")
    with pytest.raises(credit.CreditError, match="its baseline is -50"):
        ledger.advantage("control", beta=0.0, baseline=np.full(ledger.graph.num_traces, -50.0, np.float32))
    signal = ledger.advantage("control", beta=1.0, limit=1000)
    assert signal.largest == pytest.approx(999)
    assert "look: the largest advantage is 999 times the spread of its group's rewards" in str(signal)
    scaled = ledger.advantage("control", beta=1.0, scale=scale)
    assert "look" not in str(scaled) and np.abs(np.asarray(scaled.credit.advantage)).max() <= 10
    fitted = ledger.advantage("control")  # β is 0: there are not 64 other traces
    assert fitted.largest == pytest.approx(1) and "look" not in str(fitted)
    with pytest.raises(credit.CreditError, match="limit is 0; expected a positive number"):
        ledger.advantage("control", limit=0)


@pytest.mark.slow
def test_rewards_that_are_all_equal_take_their_spread_from_what_was_expected() -> None:
    """Claims of 1,000 where every reward is 1: advantages of 1,000, and no range of rewards to measure them by."""
    ledger, _ = large_claims([1.0, 1.0])
    for limit in (10, 1e9):  # "inf times the spread", it said, and that a larger limit admits these
        with pytest.raises(credit.CreditError, match=r"the rewards of no group differ, .* limit=inf admits these"):
            ledger.advantage("control", beta=1.0, limit=limit)
    admitted = ledger.advantage("control", beta=1.0, limit=float("inf"))
    assert np.isfinite(np.asarray(admitted.credit.advantage)).all() and "inf" not in str(admitted)
    with pytest.raises(credit.CreditError, match="the rewards of no group differ"):
        ledger.advantage("entry")
    assert ledger.advantage("control").largest == 0
    claim = ledger.claims[0]
    expected = np.full(ledger.graph.num_traces, 501.0)  # a critic of which 500 is a usual error
    usual = credit.compose(ledger.graph, ledger.reward_or_nan, [claim], expected=expected).advantage("entry")
    assert usual.largest == pytest.approx(2)


@pytest.mark.slow
def test_a_group_of_equal_rewards_is_measured_by_the_others() -> None:
    graph, reward, rows = credit.from_columns(group=[0, 0, 1, 1], trace=[0, 1, 2, 3], reward=[1.0, 1.0, 4.0, 0.0])
    amount = np.zeros(graph.num_events)
    amount[rows.event] = [20.0, 0.0, 0.0, 0.0]
    claim = credit.claim(graph, amount, estimand="increment", source="critic")
    assert credit.compose(graph, reward, [claim]).advantage("entry").largest == pytest.approx(5)  # 20 over 4


@pytest.mark.slow
def test_a_trace_without_an_outcome_is_a_condition() -> None:
    """Runs that a choice let time out have no outcome: without them the choice costs nothing."""
    words = "outcomes: not checked: none that counts in 1 of 4 traces"
    for reward, holds, said in ((0.0, True, []), (np.nan, None, [words])):
        graph, outcome, _ = credit.from_columns(group=[0] * 4, trace=list("abcd"), reward=[1.0, reward, 1.0, 0.0])
        signal = credit.compose(graph, outcome, []).advantage("control")
        assert signal.unbiased is holds
        assert [str(c).split(";")[0] for c in signal.conditions if c.name == "outcomes"] == said
