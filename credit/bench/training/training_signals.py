"""Signals that teams are trained with: methods of `credit.METHODS`, compositions, and a few that know the exact values.

Values come from the critic of `online_critic`, which learns from rewards that were paid for anyway. Siblings, replaced
decisions, coalitions and greedy runs are made anew for each step and paid from the budget (`reruns`). The oracles pay
nothing for exact evidence: they are bounds.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credit.bench.given_values import VALUES
from credit.bench.training.learning_tasks import LearningTask
from credit.bench.training.online_coefficients import (
    CoefficientSums,
    fresh_coefficients,
    learn_coefficients,
    solved_coefficients,
)
from credit.bench.training.online_critic import RIDGE, CriticSums, critic_evidence, fresh_critic, learn
from credit.bench.training.reruns import coalition_shares, greedy_rewards, replaced_rewards, siblings
from credit.bench.training.rollouts import Rollout
from credit.bench.training.training_loop import Answer, Signal
from credit.methods.method_row import Method
from credit.methods.own_functions import is_own, load_function, own_method
from credit.methods.own_results import UnmeasuredError, lacks_scale
from credit.methods.published import find_method, home_of, is_named
from credit.methods.registry import METHODS
from estimators.base import REASONS, Credit, Reason, finish
from estimators.baselines.shared import rloo
from estimators.composition.control import control_advantage
from estimators.composition.scaling import agent_scale
from estimators.counterfactual.more_or_less import Basis
from estimators.critic.repaid_posterior import PosteriorState, choice_features, fresh_posterior, posterior_advantage
from graphs.errors import CreditError
from graphs.event_graph import EventGraph, EventType

__all__ = ["COMPOSITIONS", "ORACLES", "centred_claim", "takes_values", "training_signal"]

BONUS = 0.15
"""What `activity_bonus` adds to the reward for each choice 1."""

MULTIPLIER_STEP = 0.05
"""How far `stop_budget` moves its multiplier for a cost of twice the budget; one in units of the outcome says all."""


def training_signal(name: str) -> Signal:
    """The signal of this name: a method of `credit.METHODS`, one of `COMPOSITIONS` or `ORACLES`, or "module:function".

    Events without a valid advantage get 0.

    Examples:
      >>> training_signal("zero") is training_signal("zero")
      True

    Args:
      name: as above.

    Raises:
      CreditError: there is no such signal.
      UnmeasuredError: the method needs evidence that these tasks do not have.
    """
    return _signal(name, load_function(name) if is_own(name) else None)


def takes_values(name: str) -> bool:
    """Whether a signal learns something from earlier steps, as values, or knows the true ones.

    Examples:
      >>> takes_values("rloo"), takes_values("gae"), takes_values("gae_exact")
      (False, True, True)
    """
    return training_signal(name).start is not _stateless or (name in ORACLES and name != "zero")


@functools.cache
def _signal(name: str, own: Callable[..., Credit] | None) -> Signal:
    """A signal by its name and, of a function of one's own, by the function: its module may be loaded again."""
    if own is not None:
        method = own_method(name)
    elif name in ORACLES:
        return _plain(ORACLES[name])
    elif name in COMPOSITIONS:
        return COMPOSITIONS[name]
    elif is_named(name):
        method = find_method(name)
    else:
        known = ", ".join((*COMPOSITIONS, *ORACLES))
        raise CreditError(
            f"no signal {name!r}; expected a method of credit.METHODS, module:function, or one of {known}"
        )
    home = home_of(name)
    if home in _WITH_RUNS and not method.bound:
        return _WITH_RUNS[home]
    missing = sorted(set(method.needs) - VALUES)
    if missing:
        raise UnmeasuredError(f"method {name!r} needs {', '.join(missing)}, which the tasks do not have")
    return _from_critic(method) if method.needs else _plain(lambda rollout: method(rollout.graph, rollout.reward))


def _advantage(credit: Credit) -> jax.Array:
    return jnp.where(credit.valid, credit.advantage, 0)


def _weights(rollout: Rollout, advantage: jax.Array) -> jax.Array:
    """Advantages of events [E] at the choices that were made: [n, D, C]."""
    return _at(rollout, rollout.of_decisions(advantage), rollout.choice)


def _answer(rollout: Rollout, credit: Credit, cost: jax.Array | float, state: Any) -> Answer:
    """The advantages of a method at the choices that were made."""
    lacks = jnp.any(lacks_scale(credit))
    return Answer(_weights(rollout, _advantage(credit)), cost, state, _reasons(rollout, credit), lacks)


def _reasons(rollout: Rollout, credit: Credit) -> jax.Array:
    """How many actions have each reason, int32 [len(REASONS)]."""
    action = rollout.graph.action_mask.astype(jnp.int32)
    return jax.ops.segment_sum(action, credit.reason.astype(jnp.int32), len(REASONS))


def _at(rollout: Rollout, table: jax.Array, choice: jax.Array) -> jax.Array:
    chosen_mask = choice[..., None] == jnp.arange(rollout.task.choices)[None, None]
    return jnp.where(chosen_mask & rollout.taken[..., None], table[..., None], 0)


def _stateless(task: LearningTask) -> None:
    del task


def _plain(method: Callable[[Rollout], Credit | jax.Array]) -> Signal:
    """A signal without evidence of its own, from the result of a method, or from advantages of events."""

    def weigh(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
        del key
        result = method(rollout)
        if isinstance(result, Credit):
            return _answer(rollout, result, 0.0, state)
        return Answer(_weights(rollout, result), 0.0, state)

    return Signal(_stateless, weigh)


def _from_critic(method: Method) -> Signal:
    """A method that needs values, with those of the critic."""

    def weigh(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
        del key
        critic = critic_evidence(state, rollout)
        of_choice = jnp.take_along_axis(critic.q, critic.chosen[:, None], axis=1)[:, 0]
        evidence = {"value": critic.value, "q_value": of_choice, "target_value": critic.value}
        result = method(rollout.graph, rollout.reward, **{need: evidence[need] for need in method.needs})
        return _answer(rollout, result, 0.0, learn(state, rollout))

    return Signal(fresh_critic, weigh)


def _remax(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
    groups = int(np.asarray(rollout.graph.group_ids).max()) + 1
    greedy, cost = greedy_rewards(rollout, groups, key)
    return _answer(rollout, METHODS["remax"](rollout.graph, rollout.reward, greedy_reward=greedy), cost, state)


def _difference(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
    without, cost = replaced_rewards(rollout, key)
    evidence = {"counterfactual_reward": rollout.of_events(without)}
    return _answer(rollout, METHODS["difference_reward"](rollout.graph, rollout.reward, **evidence), cost, state)


def _stop(basis: Basis, *, own_outcome: bool = False, critic_too: bool = False) -> Signal:
    """`stop_credit` with choice 0 as the stop: from the step's traces, the critic, or re-runs of the other side."""

    def start(task: LearningTask) -> CriticSums | None:
        if task.choices != 2:
            raise UnmeasuredError(f"task {task.name!r} has {task.choices} choices; expected 2, to stop and to go on")
        return fresh_critic(task) if critic_too else None

    def weigh(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
        stopped = rollout.of_events(rollout.taken & (rollout.choice < 1))
        event_type = jnp.where(stopped, int(EventType.STOP), int(EventType.MESSAGE))
        graph = dataclasses.replace(rollout.graph, event_type=event_type.astype(jnp.int32))
        chance = jax.nn.softmax(rollout.logits)[rollout.kind, :, 0]
        evidence: dict[str, jax.Array] = {}
        cost: jax.Array | float = 0.0
        if critic_too:
            critic = critic_evidence(state, rollout)
            of_choice = jnp.take_along_axis(critic.q, critic.chosen[:, None], axis=1)[:, 0]
            evidence, state = {"q_value": of_choice, "target_value": critic.value}, learn(state, rollout)
        if basis == "replays":
            without, cost = replaced_rewards(rollout, key, other_side=True)
            evidence["counterfactual_reward"] = rollout.of_events(without)
        result = METHODS["stop_credit"](
            graph,
            rollout.reward,
            stop_propensity=rollout.of_events(chance),
            **evidence,
            basis=basis,
            own_outcome=own_outcome,
        )
        return _answer(rollout, result, cost, state)

    return Signal(start, weigh)


def _budget() -> Signal:
    """RLOO of the outcome less μ c / B, c what a trace cost, B the budget: what the best policy costs on average.

    The outcome is the reward with its prices put back. After each step μ moves towards the multiplier of the budget:

        μ ← max(0, μ + `MULTIPLIER_STEP` (c̄ / B − 1))
    """

    def start(task: LearningTask) -> tuple[jax.Array, jax.Array]:
        if task.price is None or task.taken is None:
            raise UnmeasuredError(
                f"task {task.name!r} has no price of its steps; expected one whose name begins stopping"
            )
        chosen = jnp.stack(jnp.meshgrid(*[jnp.arange(task.choices)] * task.decisions, indexing="ij"), axis=-1)
        cost = jnp.sum(jnp.where(jnp.asarray(task.taken) & (chosen == 1), jnp.asarray(task.price, jnp.float32), 0), -1)
        best = jnp.argmax(jnp.asarray(task.reward, jnp.float32).reshape(task.kinds, -1), axis=1)
        return jnp.zeros(()), cost.ravel()[best].mean()

    def weigh(rollout: Rollout, state: tuple[jax.Array, jax.Array], key: jax.Array) -> Answer:
        del key
        multiplier, budget = state
        paid = rollout.taken & (rollout.choice == 1)
        cost = jnp.sum(jnp.where(paid, jnp.asarray(rollout.task.price, jnp.float32)[None], 0), axis=1)
        result = rloo(rollout.graph, rollout.reward + cost - multiplier * cost / budget)
        moved = jnp.maximum(multiplier + MULTIPLIER_STEP * (cost.mean() / budget - 1), 0)
        return _answer(rollout, result, 0.0, (moved, budget))

    return Signal(start, weigh)


def _shapley(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
    share, cost = coalition_shares(rollout, key)
    of_decisions = share[:, np.asarray(rollout.task.agents)]
    result = METHODS["shapley"](rollout.graph, rollout.reward, share=rollout.of_events(of_decisions))
    return _answer(rollout, result, cost, state)


def _c3(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
    """Both alternatives of each decision are trained on, as C3 does."""
    runs = siblings(rollout, key)
    weights = _at(rollout, runs.own, rollout.choice) + _at(rollout, runs.other, runs.choice)
    return Answer(weights, runs.cost, state)


def _control(siblings_too: bool, critic_too: bool, scaled: bool = False, beta: float | None = None) -> Signal:
    """The advantage "control" with these claims; `scaled` as `stack`: siblings of messages, critic of decisions."""

    def start(task: LearningTask) -> tuple[CriticSums | None, CoefficientSums]:
        return fresh_critic(task) if critic_too else None, fresh_coefficients(siblings_too + critic_too)

    def weigh(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
        sums, fits = state
        claims, cost = [], jnp.zeros(())
        leads = np.asarray(rollout.task.agents) == 0
        if siblings_too:
            runs = siblings(rollout, key, ~leads if scaled else None)
            claims.append(
                centred_claim(
                    rollout.graph, rollout.of_events(runs.own), "c3", rollout.of_events(runs.where), own_outcome=True
                )
            )
            cost = runs.cost
        if critic_too:
            critic = critic_evidence(sums, rollout)
            has_claim = jnp.broadcast_to(jnp.asarray(leads | (not scaled))[None], rollout.taken.shape)
            claims.append(
                centred_claim(rollout.graph, critic.surprise, "critic", rollout.of_events(has_claim), own_outcome=False)
            )
            sums = learn(sums, rollout)
        coefficients = solved_coefficients(fits) if beta is None else beta
        composed = control_advantage(rollout.graph, rollout.reward, claims, beta=coefficients)
        result = composed.credit
        if beta is None:
            fits = learn_coefficients(fits, rollout, composed)
        advantage = _advantage(result)
        if scaled:
            advantage = advantage / agent_scale(rollout.graph, advantage, result.valid).scale
        return Answer(_weights(rollout, advantage), cost, (sums, fits), _reasons(rollout, result))

    return Signal(start, weigh)


def _between(share: float, ridge: float = RIDGE, *, refit: bool = False) -> Signal:
    """From the entry to `control` with the critic's claims c: A_e = c_e + share · (R − V̂₀ − Σ_f c_f).

    With `refit` the critic learns from the step's traces before it makes claims for them.
    """

    def weigh(rollout: Rollout, state: Any, key: jax.Array) -> Answer:
        del key
        learned = learn(state, rollout)
        critic = critic_evidence(learned if refit else state, rollout, ridge)
        claims = rollout.of_decisions(critic.surprise)
        left = rollout.reward - rollout.of_decisions(critic.value)[:, 0] - claims.sum(axis=1)
        return Answer(_at(rollout, claims + share * left[:, None], rollout.choice), 0.0, learned)

    return Signal(fresh_critic, weigh)


def _posterior_start(task: LearningTask) -> PosteriorState:
    return fresh_posterior(task.kinds * task.decisions * (1 if task.choices == 2 else task.choices))


def _posterior(rollout: Rollout, state: PosteriorState, key: jax.Array) -> Answer:
    """The advantages of `estimators.posterior_advantage`, with a feature for each kind, decision and choice."""
    del key
    task = rollout.task
    place = rollout.of_events(
        rollout.kind[:, None] * task.decisions + jnp.arange(task.decisions, dtype=jnp.int32)[None]
    )
    policy = jax.nn.softmax(rollout.logits).reshape(-1, task.choices)[place]
    columns, values = choice_features(place, rollout.of_events(rollout.choice), policy)
    result, state = posterior_advantage(rollout.graph, rollout.reward, state, columns, values)
    return _answer(rollout, result, 0.0, state)


def centred_claim(graph: EventGraph, amount: jax.Array, source: str, where: jax.Array, *, own_outcome: bool) -> Credit:
    """Centred increments at some events, as a claim of `control_advantage`.

    Args:
      graph: the batch.
      amount: float [E].
      source: whose claims these are.
      where: bool [E], the events.
      own_outcome: whether a trace's own outcome is in its claims.
    """
    amount = jnp.where(where, amount, 0)
    return finish(
        graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=jnp.zeros_like(amount),
        reason=jnp.where(where, Reason.VALID, Reason.NO_EVIDENCE),
        unit="event",
        estimand="increment",
        source=source,
        centred=True,
        own_outcome=own_outcome,
    )


def _activity_bonus(rollout: Rollout) -> Credit:
    """RLOO of a naively shaped reward: a bonus for every choice 1, whether it helps or not."""
    active = jnp.sum(rollout.taken & (rollout.choice == 1), axis=1)
    shaped: Credit = rloo(rollout.graph, rollout.reward + BONUS * active.astype(rollout.reward.dtype))
    return shaped


def _zero(rollout: Rollout) -> jax.Array:
    return jnp.zeros_like(rollout.increments)


def _increments(rollout: Rollout) -> jax.Array:
    return rollout.increments


def _control_exact(rollout: Rollout) -> Credit:
    """The control-variate advantage with the exact increments as claims."""
    claim = centred_claim(
        rollout.graph, rollout.increments, "exact", jnp.ones(rollout.increments.shape, bool), own_outcome=False
    )
    return control_advantage(rollout.graph, rollout.reward, [claim], beta=1.0).credit


def _gae_exact(rollout: Rollout) -> Credit:
    return METHODS["gae"](rollout.graph, rollout.reward, value=rollout.value)


_WITH_RUNS = {
    "remax": Signal(_stateless, _remax),
    "difference_reward": Signal(_stateless, _difference),
    "shapley": Signal(_stateless, _shapley),
    "c3": Signal(_stateless, _c3),
    "stop_credit": _stop("logs"),
}

COMPOSITIONS: dict[str, Signal] = {
    "control_c3": _control(True, False),
    "control_critic": _control(False, True),
    "control_critic_whole": _control(False, True, beta=1.0),
    "control_30": _between(0.3),
    "control_60": _between(0.6),
    "control_60_refit": _between(0.6, 10.0, refit=True),
    "control_both": _control(True, True),
    "stack": _control(True, True, scaled=True),
    "activity_bonus": _plain(_activity_bonus),
    "stop_own": _stop("logs", own_outcome=True),
    "stop_robust": _stop("logs", own_outcome=True, critic_too=True),
    "stop_replays": _stop("replays"),
    "stop_budget": _budget(),
    "posterior": Signal(_posterior_start, _posterior),
}
"""The advantage "control" with claims of siblings, of the critic, of both; `stack`; a shaped reward; `posterior`.

Coefficients are fitted on earlier steps (`online_coefficients`), except that `control_critic_whole` takes claims with
coefficient 1. `control_30` and `control_60` are the critic's claim plus 30 and 60 % of what the claims leave of the
reward: less of its luck, and a bias where claims are wrong. The critic of `control_60_refit` first learns from the
step's own traces, and its prior counts for 10 of them. `stop_own` is `stop_credit` with the own outcome, `stop_robust`
with the critic, too, `stop_replays` from a re-run of each decision's other side. `stop_budget` does not know the price
of a step, but what the best policy spends, and fits a price to it.
"""

ORACLES: dict[str, Callable[[Rollout], Credit | jax.Array]] = {
    "zero": _zero,
    "exact_increments": _increments,
    "control_exact": _control_exact,
    "gae_exact": _gae_exact,
}
"""Nothing; the true advantage of each choice; `control` with it as the claim; `gae` with the true values. Free."""
