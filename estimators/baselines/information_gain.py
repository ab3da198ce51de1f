"""Information gain: what each turn added to the model's belief in the right answer is its reward (IGPO, IGRPO).

The gain of a turn, log p(answer | log after it) minus log p(answer | log before it), is the log's reward at the turn's
event; the outcome is earned at the last action. What differs is the comparison.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish_score
from estimators.baselines.anchors import step_returns
from estimators.clusters import clusters_of
from estimators.group import beyond_members
from estimators.members import Members, statistics
from estimators.options import checked_options
from estimators.sequence.chains import chains
from graphs.event_graph import Array, EventGraph
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first

__all__ = ["igpo", "igrpo"]


@checked_options
@jax.jit
def igpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    discount: float | Array = 1.0,
    eps: float | Array = 1e-6,
) -> Credit:
    """IGPO: discounted gains and outcome from a turn on, against the group's returns from their first turns on.

        G_t = r_t + γ G_{t+1}        A_t = (G_t − m) / (s + eps)

    r_t is the gain at action t, and at the last one the outcome, too; m and s (ddof 1) are over the G of the first
    actions of the n traces of the group. Only at first actions is it a comparison of like with like: later returns are
    compared with first ones. Biased for the policy gradient. A group of one is refused. Replays of one trace count as
    one sample, and traces without an independent one are refused (`estimators.clusters`).

    Where first returns hardly differ, later ones would be divided by nearly 0: no |A| exceeds 10 √n, and what would is
    refused (NO_DIVISOR); the code has no limit. The refusal looks at returns, so answers are a selection: docs/bias.md
    has the bias of the answered.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], the gain of each action, or None. NaN counts as 0.
      discount: γ, once an action. The code's function has 0.5, with which first returns of long traces are nearly
        equal and late ones are refused.
      eps: added to the standard deviation.

    Returns:
      `Credit` at level "event", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its bounds.

    Reference: arXiv:2510.14967; IGPO `compute_grpo_discounted_advantage` at bff163b (Apache-2.0), executed with one
    token a turn, golden `igpo`. There γ applies once a token, and a token of a tool ends the sum. Nothing in that
    repository calls this function. The paper (version 2, eq. 5 and 6) divides gains and outcomes by their group first,
    each by itself, and then sums them: other numbers.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "b"], reward=[1.0, 1.0, 0.0, 0.0], event_reward=[0.2, 0, -0.1, 0])
      >>> rows.gather(credit.igpo(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [0.7071, 0.4895, -0.7071, -0.5983]
    """
    returns, row = step_returns(graph, reward, event_reward=event_reward, discount=discount)
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    first = segment_first(trace, num, row)
    acts = segment_count(trace, num, row) > 0
    group, places = jnp.asarray(graph.group_ids), jnp.arange(num, dtype=jnp.int32)
    shared = clusters_of(graph, places, group, acts, several=False, dtype=returns.dtype)
    m = Members(jnp.where(acts, returns[first], 0), group, acts, trace, shared)
    n, mean, squares = (values[group][trace] for values in statistics(m))
    spread = safe_sqrt(safe_divide(squares, n - 1)) + eps
    beyond = beyond_members(m, n, returns - mean, spread, times=10)
    reason = jnp.where(n < 2, Reason.SINGLETON, jnp.where(beyond, Reason.NO_DIVISOR, Reason.VALID))
    reason = jnp.where(jnp.isfinite(spread), reason, Reason.OUT_OF_RANGE)  # else A would be a valid 0
    reason = jnp.where(m.shared_mask[trace], Reason.SHARED_PREFIX, reason)
    return finish_score(
        graph, safe_divide(returns - mean, spread), jnp.where(row, reason, Reason.NO_REWARD), "event", "igpo"
    )


@checked_options
@jax.jit
def igrpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    discount: float | Array = 0.95,
    eps: float | Array = 1e-6,
) -> Credit:
    """IGRPO: gains normalised among the gains of the task, outcomes among its outcomes, then summed from each step on.

        z_t = (r_t − m) / (s + eps)        A_t = z_t + γ A_{t+1}

    At the last action of a trace r is the outcome, m and s (ddof 1) are over the outcomes of the task; before it r is
    the gain, m and s are over all gains of all traces of the task, so that long traces weigh more. One sample alone
    keeps its value. Biased for the policy gradient. Replays of one trace count as one sample, and traces without an
    independent one are refused (`estimators.clusters`).

    With n gains or outcomes of the task, no term exceeds (n − 1)/√n in size, however little they differ; A is the sum
    of as many terms as the trace has actions left.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], the gain of each action but the last, or None. NaN counts as 0.
      discount: γ, once an action.
      eps: added to both standard deviations.

    Returns:
      `Credit` at level "event", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its bounds.

    Reference: IGRPO `igpo/core_igpo.py` at 65707c6 (Apache-2.0), executed, golden `igrpo`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "b"], reward=[1.0, 1.0, 0.0, 0.0], event_reward=[0.2, 0, -0.1, 0])
      >>> rows.gather(credit.igrpo(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [1.3789, 0.7071, -1.3789, -0.7071]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    trace, num = jnp.asarray(graph.trace_ids), graph.num_events
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    path = chains(graph, row)
    gain = jnp.zeros_like(outcome[trace])
    if event_reward is not None:
        gain = check_event_array(graph, "event_reward", event_reward)[0].astype(gain.dtype)
    earned = jnp.where(path.last, outcome[trace], gain)
    # A key is the first event that has it, which is below E as keys must be. A task has two: gains and outcomes.
    group = jnp.asarray(graph.group_ids)[trace]
    gains, outcomes = (segment_first(group, num, rows)[group] for rows in (row & ~path.last, path.last))
    key = jnp.where(row, jnp.where(path.last, outcomes, gains), 0)
    shared = clusters_of(graph, trace, key, row, several=True, dtype=earned.dtype)
    places = jnp.arange(num, dtype=jnp.int32)
    m = Members(earned, key, row, places, shared)
    n, mean, squares = (values[key] for values in statistics(m))
    spread = safe_sqrt(safe_divide(squares, n - 1)) + eps
    alone = n < 2
    apart = jnp.where(alone, earned, safe_divide(earned - mean, spread))
    score = path.backward_alike(jnp.ones_like(earned) * discount, jnp.where(row, apart, 0))
    # A sum is refused with any term of it: without an independent sample, or over a spread whose squares overflow.
    reason = jnp.where(path.reaches(row & ~jnp.isfinite(spread)), Reason.OUT_OF_RANGE, Reason.VALID)
    if shared is not None:
        reason = jnp.where(path.reaches(row & m.shared_mask), Reason.SHARED_PREFIX, reason)
    return finish_score(graph, score, jnp.where(row, reason, Reason.NO_REWARD), "event", "igrpo")
