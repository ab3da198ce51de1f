"""Anchor states: an action against the actions that other traces of the task took in answer to the same observation.

Traces of one task often meet the same observation; what followed from each answer to it can then be compared, without
a replay and without a critic. The observation is evidence (`anchor`, an id); methods never compare texts.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.clusters import clusters_of
from estimators.compared_ids import before_compiling, numbered
from estimators.counterfactual.replays import event_ids, ids_below
from estimators.group import Singleton, beyond_members, settle_alone
from estimators.members import Members, Population, members, row_scores, statistics
from estimators.options import checked_options
from estimators.relative_mean import stated_once
from estimators.sequence.chains import chains, rewards_of_turns
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.keys import By
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_sum

__all__ = ["gigpo", "step_returns"]


@before_compiling(env_step=numbered)
@jax.jit
def step_returns(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    env_step: Array | None = None,
    env_reward: Array | None = None,
    discount: float | Array = 1.0,
) -> tuple[jax.Array, jax.Array]:
    """Discounted return from each environment step on, and where it is known: float [E], bool [E].

        G_k = r_k + γ G_{k+1}        over the environment steps of a trace

    All actions of one step share G_k, whichever agent acts. Actions that follow each other with equal `env_step` are
    one step; without it each action is one.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      env_step: int [E], the environment step; -1 where missing. None: every action is a step of its own.
      env_reward: float [E], the reward r_k of the step, at each of its actions; NaN where missing. That, and two
        numbers of one step, leave this and the earlier steps of the trace unknown. None: what arrives at events from
        this step's first action up to the next step's, and the outcome in the last step.
      discount: γ.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Examples:
      >>> import credit
      >>> from estimators.baselines.anchors import step_returns
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0])
      >>> to_go, known = step_returns(graph, reward, discount=0.9)
      >>> rows.gather(to_go).tolist()
      [0.9, 1.0]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    trace, real = jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    row = real & graph.trained_mask & scored[trace]
    place = jnp.arange(graph.num_events, dtype=jnp.int32)
    leads = row
    if env_step is not None:
        step = event_ids(graph, "env_step", env_step)
        row = row & (step >= 0)
        latest = jax.lax.cummax(jnp.where(row, place, -1))
        before = jnp.concatenate([jnp.full(1, -1, jnp.int32), latest[:-1]])
        goes_on = (before >= 0) & (trace[before] == trace) & (step[before] == step)
        leads = row & ~goes_on
    lead_of = jax.lax.cummax(jnp.where(leads, place, 0))
    path = chains(graph, leads)
    known = row
    if env_reward is not None:
        earned, known_mask = check_event_array(graph, "env_reward", env_reward)
        several = stated_once(earned, lead_of, graph.num_events, row & known_mask)[2]
        known = row & ~path.reaches(leads & (~known_mask | several))[lead_of]
    else:
        earned = jnp.where(path.last, outcome[trace], jnp.zeros_like(outcome[trace]))
        if event_reward is not None:
            step_reward = rewards_of_turns(graph, event_reward)
            earned = earned + path.gathered(step_reward.astype(earned.dtype), real)
    to_go = path.backward_alike(jnp.ones_like(earned) * discount, earned)
    return jnp.where(known, to_go[lead_of], jnp.zeros_like(to_go)), known


@checked_options
@functools.partial(jax.jit, static_argnames=("scale", "population", "singleton"))
def gigpo(
    graph: EventGraph,
    reward: Array,
    *,
    anchor: Array,
    event_reward: Array | None = None,
    env_step: Array | None = None,
    env_reward: Array | None = None,
    discount: float | Array = 1.0,
    weight: float | Array = 1.0,
    scale: Literal["none", "std"] = "none",
    by: By = None,
    population: Population = "trace",
    eps: float | Array = 1e-6,
    ddof: int | Array = 1,
    singleton: Singleton = "raw",
) -> Credit:
    """GiGPO: the trace against its group, plus the step against the steps of the group that answered the same anchor.

        A = (R_i − μ) / s + w (G_k − ν) / z

    R_i is the trace's return, the outcome plus all its event rewards; μ and s are over the samples of its group. G_k is
    the return from the environment step on, ν and z are over the actions of the group with the same anchor. With
    `env_reward`, whose sum is the outcome in the released code, R_i is the outcome plus the row's own event reward, as
    there for an action that was not valid. Without scale ("mean_norm", the released configuration's default) s = z = 1;
    with it ("mean_std_norm", which most of the released scripts ask for) each is its standard deviation plus `eps`.

    Biased for the policy gradient: both means contain what they are subtracted from. Replays of one trace count as one
    sample, and traces without an independent one are refused (`estimators.clusters`).

    With scale "std", n samples in the group and m actions at the anchor, no |A| exceeds 10 √n + w √m. With `env_reward`
    only first rows are samples of s, and another row's own reward would be divided by nearly 0 where first rows hardly
    differ. An action whose first term would exceed 10 √n is refused (NO_DIVISOR); the released code has no limit. The
    refusal looks at rewards, so answers would be a selection; in the worlds of docs/bias.md it refuses nothing.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      anchor: int [E], ids of observations, any numbers; -1 where the log has none, and the action is invalid.
      env_step: int [E], the environment step; -1 where missing. None: every action is a step of its own.
      env_reward: float [E], the reward r_k of the environment step, at each of its actions; NaN where missing, which
        leaves this and the earlier steps of the trace invalid. None: what arrives at events from this step's first
        action up to the next step's, and the outcome in the last step.
      discount: γ. The released configuration's default is 1 (`algorithm.gamma` in `ppo_trainer.yaml`), its scripts set
        0.95, for WebShop 0.985. Equal rewards as many steps before the end give exactly 0.
      weight: w, 1 in all of them.
      scale: "none" or "std", as above.
      eps: added to each standard deviation.
      ddof: 1 divides squares by their number − 1, 0 by their number.
      by, population: `by=None, population="trace"` is GiGPO: the first row of each trace is a sample of μ and s.
        `by="agent_name", population="row"` is Dr. MAS' form, in which agents share neither baselines nor anchors.
      singleton: what the first term does with a group of one; the released code keeps R_i. An anchor that was met once
        always gives 0 in the second.

    Returns:
      `Credit` at level "event", estimand "score", since it adds a share of the trace's total to a return; `stderr`
      infinite.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: Feng et al. 2025, arXiv:2505.10978; Dr. MAS `compute_gigpo_outcome_advantage` at 19c632b, executed,
    golden `drmas_gigpo`; defaults as in its `ppo_trainer.yaml`, read at 0fb67c9. Its option of joining anchors by the
    similarity of their texts depends on their order; give similar observations one id instead.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0], evidence={"anchor": ["x", "x", "y"]})
      >>> rows.gather(credit.gigpo(graph, reward, anchor=rows.evidence["anchor"]).advantage).tolist()
      [1.167, -0.833, -0.333]
    """
    episode, of_row = reward, event_reward
    if env_reward is None and event_reward is not None:
        outcome, scored = check_reward(graph, reward, event_reward)
        step, real = check_event_array(graph, "event_reward", event_reward)
        returns = outcome + segment_sum(step, graph.trace_ids, graph.num_traces, real)
        episode, of_row = jnp.where(scored, returns, jnp.nan), None
    m = members(graph, episode, of_row, by=by, population=population, aggregate="first")
    n, mean, squares = statistics(m)
    score, row = row_scores(graph, episode, of_row)
    key = m.key[m.of_event]
    alone = n[key] < 2
    deviation = safe_sqrt(safe_divide(squares, n - ddof))[key] + eps
    subtracted, reason = settle_alone(m, row, alone, score, mean[key], singleton)
    if scale == "std":
        beyond = ~alone & beyond_members(m, n[key], score - subtracted, deviation, times=10)
        reason = jnp.where((reason == Reason.VALID) & beyond, Reason.NO_DIVISOR, reason)
    deviation = jnp.where(alone, jnp.ones_like(deviation) + eps, deviation)

    to_go, known = step_returns(
        graph, reward, event_reward=event_reward, env_step=env_step, env_reward=env_reward, discount=discount
    )
    to_go = to_go.astype(score.dtype)
    observed = event_ids(graph, "anchor", anchor)
    known = known & (observed >= 0)
    observed = ids_below(graph.num_events, observed, known)
    reason = jnp.where((reason == Reason.VALID) & ~known, Reason.NO_EVIDENCE, reason)
    meeting = pair_ids(observed, key, known, graph.num_events)
    expected, spread = _at_anchor(graph, to_go, meeting, known, ddof)
    if scale == "std":
        # A mean over a spread is no baseline in units of reward: the amount is the advantage itself.
        apart = safe_divide(score - subtracted, deviation) + weight * safe_divide(to_go - expected, spread + eps)
        credit, baseline = apart, jnp.zeros_like(apart)
    elif scale == "none":
        credit, baseline = score + weight * to_go, subtracted + weight * expected
    else:
        raise CreditError(f"scale is {scale!r}; expected 'none' or 'std'")
    return finish(
        graph,
        credit=credit,
        baseline=baseline,
        scale=jnp.ones_like(credit),
        stderr=jnp.full_like(credit, jnp.inf),
        reason=reason,
        unit="event",
        estimand="score",
        source="gigpo",
        centred=False,
        own_outcome=True,
    )


def _at_anchor(
    graph: EventGraph, to_go: jax.Array, meeting: jax.Array, known: jax.Array, ddof: int | Array
) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of the returns after one anchor, at each action: float [E], float [E].

    Actions with one `meeting` id, int32 [E], are compared. The mean at an anchor that was met once is the action's own
    return.
    """
    shared = clusters_of(graph, jnp.asarray(graph.trace_ids), meeting, known, several=True, dtype=to_go.dtype)
    place = jnp.arange(graph.num_events, dtype=jnp.int32)
    met, centre, squares = statistics(Members(to_go, meeting, known, place, shared))
    spread = safe_sqrt(safe_divide(squares, met - ddof))
    return jnp.where(met[meeting] > 1, centre[meeting], to_go), spread[meeting]
