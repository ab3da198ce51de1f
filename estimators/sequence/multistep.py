"""Credit along a sequence: discounted returns, and generalised advantage estimation from given values.

A chain is the sequence of actions that a recursion runs along: all actions of a trace in log order ("trace"), or those
of one agent instance ("agent"). Index t counts the actions of a chain. The reward r_t of action t is what arrives from
it up to the next action of the chain: its own event reward, those of the events that follow it and no policy chose, and
on the last action the trace's outcome. (Sutton and Barto write R_{t+1} for this r_t.)

The recursions y_t = a_t y_{t+1} + b_t are scans of blocks of the flat batch: no loop over events or traces. Along
the causal graph ("causal") an action may lead to several at once, and to none of those that are logged next; the
recursion then takes the mean over what it led to (`estimators.sequence.causal`).
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, Recursion, check_event_array, check_reward, finish
from estimators.options import checked_options
from estimators.sequence.causal import Walks, walks
from estimators.sequence.chains import Chains, chains, rewards_of_turns
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph

__all__ = ["discounted_return", "gae"]

Along = Literal["trace", "agent", "causal"]


def _rewards(
    graph: EventGraph, reward: Array, event_reward: Array | None, along: Along
) -> tuple[Chains | Walks, jax.Array]:
    """The chains, or the walks, of actions whose trace has an outcome, and r_t on them."""
    outcome, scored = check_reward(graph, reward, event_reward)
    trace, real = jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    rows = real & graph.trained_mask & scored[trace]
    if along == "causal":
        step = jnp.zeros_like(outcome[trace])
        if event_reward is not None:
            step = check_event_array(graph, "event_reward", event_reward)[0].astype(outcome.dtype)
        paths = walks(graph, rows)
        return paths, paths.arriving(step, outcome[trace])
    actions = chains(graph, rows, along)
    ends = actions.take(outcome[trace])
    earned = jnp.where(actions.last, ends, jnp.zeros_like(ends))
    if event_reward is not None:  # an agent's own chain has its own rewards alone
        step = (
            check_event_array(graph, "event_reward", event_reward)[0]
            if along == "agent"
            else rewards_of_turns(graph, event_reward)
        )
        step = step.astype(outcome.dtype)
        earned = earned + actions.gathered(actions.take(step), actions.take(real))
    return actions, earned


@checked_options
@functools.partial(jax.jit, static_argnames=("along",))
def discounted_return(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    discount: float | Array = 1.0,
    along: Along = "trace",
) -> Credit:
    """The discounted reward from each action on.

        A_t = G_t = r_t + γ G_{t+1}

    Plain REINFORCE: no baseline. Its variance is that of the whole future. Unbiased for the policy gradient at γ = 1
    along "trace". Along "agent" it leaves out rewards at others' events, and along "causal" it takes means of them.
    Both are biased, unless the only reward is the outcome.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      discount: γ, applied once for each action of the chain.
      along: whose actions a chain goes through: "trace", "agent", or "causal" for means over walks along the edges.
        Rewards of a joint turn count at its last action along "trace", else at the event where the log states them.

    Returns:
      `Credit` at level "event", estimand "return"; `stderr` infinite.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Williams 1992 (REINFORCE).

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0], evidence={"value": [0.25, 0.5]})
      >>> rows.gather(credit.discounted_return(graph, reward, discount=0.9).advantage).tolist()
      [0.9, 1.0]
    """
    actions, earned = _rewards(graph, reward, event_reward, along)
    total = actions.backward(jnp.full_like(earned, 1) * discount, earned)
    zero = jnp.zeros_like(total)
    return _finish(graph, actions, total, zero, zero.astype(bool), None, source="discounted_return")


@checked_options
@functools.partial(jax.jit, static_argnames=("along",))
def gae(
    graph: EventGraph,
    reward: Array,
    *,
    value: Array,
    event_reward: Array | None = None,
    discount: float | Array = 1.0,
    lambda_: float | Array = 0.95,
    along: Along = "trace",
    bootstrap: Array | None = None,
) -> Credit:
    """Generalised advantage estimation from values.

        A_t = δ_t + γλ A_{t+1}        δ_t = r_t + γ V_{t+1} − V_t, V = 0 at the end

    `credit` is the λ-return A_t + V_t and `baseline` is V_t. At γ = λ = 1 it is G_t − V_t, unbiased for any values
    along "trace"; at λ = 0 it is the one-step difference, as biased as the values are. A `bootstrap` is part of G_t,
    so that its error is a bias at every λ. δ_t = A_t − γλ A_{t+1} inverts it exactly. Chains hold trainable actions
    only: an event reward of a frozen agent is part of the r_t of the trainable action before it.

    Args:
      value: float [E], V of the state before each action; NaN where the log has none. An action is invalid that reads
        a missing one: at λ = 1 it reads its own, at λ = 0 also that of the next action, else of all later ones of its
        chain.
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      discount, lambda_: γ and λ, applied once for each action of the chain.
      along: "trace": through the actions of all agents in log order (MARFT; C3's MAPPO over role turns); "agent": each
        agent instance on its own, with the rewards at its events and the outcome on its last action; "causal": from an
        action to those that it led to, over events that no policy chose. There r_t, V_{t+1} and A_{t+1} are means over
        walks along the edges, each edge out of an event equally likely, and the outcome arrives where a walk ends.
        Parallel events then discount only their own effects, and rewards elsewhere do not count. This is a bias if
        other agents have rewards at their events, and none if the only reward is the outcome. Where each event has one
        successor it is "trace". A trace of several events without an edge is invalid. Rewards of a joint turn count at
        its last action along "trace", else at the event where the log states them.
      bootstrap: float [T], V of the state in which a trace was truncated, used as V after its last action; NaN where
        the trace ended, with V = 0. The outcome of a truncated trace is its reward so far; γ V added to it is the same.

    Returns:
      `Credit` at level "event", estimand "return"; `stderr` infinite.

    Raises:
      CreditError: `bootstrap` together with `along="causal"`, or not one entry for each trace.

    Reference: Schulman et al. 2016, arXiv:1506.02438, eq. 16, which numbers rewards as here. Goldens
    `c3_mappo_step_gae` and, before its normalisation, `marft_action_gae`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0], evidence={"value": [0.25, 0.5]})
      >>> rows.gather(credit.gae(graph, reward, value=rows.evidence["value"], lambda_=0.5).advantage).tolist()
      [0.5, 0.5]
    """
    actions, earned = _rewards(graph, reward, event_reward, along)
    v, stated = check_event_array(graph, "value", value)
    v, stated = actions.take(v).astype(earned.dtype), actions.take(stated)
    delta = earned + discount * actions.following(v) - v
    if bootstrap is not None:
        if isinstance(actions, Walks):
            raise CreditError("bootstrap is given, but along is 'causal'; expected 'trace' or 'agent'")
        behind = check_reward(graph, bootstrap)[0][actions.take(graph.trace_ids)].astype(delta.dtype)
        delta = delta + jnp.where(actions.last, discount * behind, jnp.zeros_like(delta))
    advantage = actions.backward(jnp.full_like(delta, 1) * discount * lambda_, delta)
    missing = ~stated | _reads_ahead(actions, ~stated, discount, lambda_)
    return _finish(graph, actions, advantage + v, v, missing, Recursion(discount, lambda_, along), source="gae")


def _reads_ahead(
    actions: Chains | Walks, unknown: jax.Array, discount: float | Array, lambda_: float | Array
) -> jax.Array:
    """Whether G_t = r_t + γ(1 − λ) V_{t+1} + γλ G_{t+1} holds an unknown V with a weight above 0: bool [E]."""
    following = actions.following(jnp.where(unknown, jnp.ones(unknown.shape), jnp.zeros(unknown.shape))) > 0
    ahead = following & (jnp.asarray(discount) > 0) & (jnp.asarray(lambda_) < 1)
    return jnp.where(jnp.asarray(discount) * lambda_ > 0, actions.reaches(ahead), ahead)


def _finish(
    graph: EventGraph,
    actions: Chains | Walks,
    credit: jax.Array,
    baseline: jax.Array,
    missing: jax.Array,
    recursion: Recursion | None,
    *,
    source: str,
) -> Credit:
    """Back from the order of chains to that of events."""
    if isinstance(actions, Walks):
        missing = missing | ~actions.known_order
    reason = jnp.where(actions.row, jnp.where(missing, Reason.NO_EVIDENCE, Reason.VALID), Reason.NO_REWARD)
    return finish(
        graph,
        credit=actions.back(credit),
        baseline=actions.back(baseline),
        scale=jnp.ones_like(credit),
        stderr=jnp.full_like(credit, jnp.inf),
        reason=actions.back(reason),
        unit="event",
        estimand="return",
        source=source,
        centred=False,
        own_outcome=True,
        recursion=recursion,
    )
