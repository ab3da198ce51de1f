"""Methods as released, where the code differs from the paper: for reproducing runs, not for new ones.

Each function names the repository, the commit and the golden it was checked against. The method as it is meant is under
its own name elsewhere.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.baselines.roles import instances_normalised, sub_agents
from estimators.counterfactual.replays import event_ids
from estimators.group import group_relative
from estimators.options import checked_options
from estimators.relative_mean import mean_from_first, stated_once
from estimators.tokens.rows import masked_whiten
from graphs.errors import ArrayTypeError, CreditError
from graphs.event_graph import Array, EventGraph
from graphs.floats import at_least_float32
from graphs.levels import pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_mean, segment_sum_squares

__all__ = [
    "distinct_normalised",
    "foldgrpo_fork",
    "marft_normalised",
    "marshal_tokens",
    "matpo_worker_tokens",
    "mrlx",
    "mrlx_sub_reward",
]


@jax.jit
def mrlx_sub_reward(format_score: Array, main_reward: Array) -> jax.Array:
    """MrlX's reward of a sub-agent from its format and the main agent's reward (0, 0.1 or 1): float, any shape.

    0 without format; 0.1 · format where the main agent got 0; 0.1 where it got 0.1; else 1. The main reward counts as
    the nearest of the three, since floats are not compared for equality.

    Args:
      format_score: float, the sub-agent's format score.
      main_reward: float of the same shape, the main agent's reward.

    Reference: MrlX `sub_agent_multiturn.py` `reward_func` at 0d04788, executed, golden `mrlx_sub_reward`.

    Examples:
      >>> import numpy as np
      >>> from estimators.baselines.released import mrlx_sub_reward
      >>> mrlx_sub_reward(np.array([0.0, 0.5, 1.0, 1.0]), np.array([1.0, 0.0, 0.1, 1.0])).tolist()
      [0.0, 0.05, 0.1, 1.0]
    """
    form, main = jnp.asarray(format_score), jnp.asarray(main_reward)
    earned = jnp.where(main < 0.05, 0.1 * form, jnp.where(main < 0.55, 0.1, 1.0))
    return jnp.where(form > 0, earned, jnp.zeros_like(earned))


@checked_options
@jax.jit
def mrlx(
    graph: EventGraph,
    reward: Array,
    *,
    block: Array,
    event_reward: Array | None = None,
    format_score: Array | None = None,
) -> Credit:
    """M-GRPO as MrlX runs it: slime's GRPO on main agents by task, and on sub-agents by the block they arrived in.

        A = (R − μ) / (sd + 1e-6)        ddof 1

    A finished run pushes its sub-trajectories to a queue; the sub-agents' trainer takes them in order of arrival and
    normalises blocks of a fixed size. A block mixes parents and tasks. An instance alone gets 0.

    With n instances in the task or block, no |A| exceeds (n − 1)/√n, however little the rewards differ.

    Args:
      graph: the batch; `agent_parent` distinguishes main agents and sub-agents.
      block: int [E], the block of the sub-agent whose event it is; -1 where the log has none, and a sub-agent without
        any, or with several, is invalid. Main agents need none.
      format_score: float [E]; with it, a sub-agent's reward is `mrlx_sub_reward` of its own, otherwise the outcome.
        A sub-agent without one, or with several, is invalid.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: not used.

    Returns:
      `Credit` at level "agent", estimand "scale". Its scope is the batch.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: slime `_post_process_rewards` at 624b824 and MrlX at 0d04788, executed, goldens
    `slime_grpo_used_by_MrlX` and `mrlx_sub_reward`. `estimators.mgrpo` is the method as it is described.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 5, trace=["a", "a", "b", "b", "b"], agent=["main", "sub", "main", "sub", "sub"],
      ...     parent=[None, "main", None, "main", "main"], reward=[1.0, 1.0, 0.0, 0.0, 0.0])
      >>> import numpy as np
      >>> block = np.where(np.arange(graph.num_events) < 5, 0, -1)
      >>> rows.gather(credit.mrlx(graph, reward, block=block).advantage).tolist()
      [0.7071, 0.7071, -0.7071, -0.7071, -0.7071]
    """
    del event_reward
    outcome, _ = check_reward(graph, reward)
    agent, num, real = jnp.asarray(graph.agent_ids), graph.num_agents, jnp.asarray(graph.event_mask)
    sub, agent_mask = sub_agents(graph), jnp.asarray(graph.agent_mask)
    trace = jnp.asarray(graph.agent_trace)
    arrived = event_ids(graph, "block", block)
    stated = real & (arrived >= 0)
    in_block, has_block, several = stated_once(arrived, agent, num, stated)
    known = ~sub | (has_block & ~several)
    score = outcome[trace]
    if format_score is not None:
        form, form_mask = check_event_array(graph, "format_score", format_score)
        own, has_form, several = stated_once(form, agent, num, form_mask)
        known = known & (~sub | (has_form & ~several))
        score = jnp.where(sub, mrlx_sub_reward(own.astype(score.dtype), score).astype(score.dtype), score)
    key = pair_ids(sub.astype(jnp.int32), jnp.where(sub, in_block, jnp.asarray(graph.group_ids)[trace]), agent_mask)
    return instances_normalised(
        graph, reward, score, key, eps=1e-6, ddof=1, singleton="zero", source="mrlx", known=known
    )


@jax.jit
def matpo_worker_tokens(row_advantage: Array, planner_row: Array, mask: Array) -> jax.Array:
    """MATPO's advantages of workers on tokens, under the planner's mask as well as their own: float [N, L].

    The released code copies the planner's tensor to its workers after the planner's loss mask has been applied, so a
    worker's token at a position where the planner read a tool's result, or had ended, gets 0.

    Args:
      row_advantage: float [N], one number for each row, such as `rows.gather(estimators.matpo(...).advantage)`.
      planner_row: int [N], the row of each row's planner; a planner's own is itself.
      mask: bool [N, L], the loss mask of each row.

    Reference: MATPO `verl/protocol.py` `broadcast_advantage_return_tensor_by_reqs_ids` at 3c41d62, executed, golden
    `matpo_broadcast`. The intended rule is `estimators.tokens.rows.spread` of the same numbers.

    Examples:
      >>> import numpy as np
      >>> from estimators.baselines.released import matpo_worker_tokens
      >>> mask = np.array([[True, True, False], [True, True, True]])
      >>> matpo_worker_tokens(np.array([0.5, 0.5]), np.array([0, 0]), mask).tolist()
      [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]
    """
    values, mask, planner = jnp.asarray(row_advantage), jnp.asarray(mask), jnp.asarray(planner_row)
    if mask.dtype != jnp.bool_:
        raise ArrayTypeError(f"mask has dtype {mask.dtype}; expected bool (convert it, e.g. mask > 0)")
    if values.shape != mask.shape[:1] or planner.shape != mask.shape[:1]:
        shapes = f"row_advantage {values.shape}, planner_row {planner.shape}"
        raise CreditError(f"{shapes}; expected {mask.shape[:1]}, one for each row of mask")
    return jnp.where(mask & mask[planner], values[planner][:, None], jnp.zeros((), values.dtype))


@checked_options
@functools.partial(jax.jit, static_argnames=("scale",))
def foldgrpo_fork(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    row_reward: Array | None = None,
    scale: Literal["std", "none"] = "std",
) -> Credit:
    """FoldGRPO as a fork of its trainer computes it: a marked action takes its group's best or worst advantage.

        A_i = (R_i − μ) / (sd + 1e-6), ddof 1, μ and sd over the first rows of the traces, alone raw
        A   = (1 − |q|) A_i + max(q, 0) g⁺ + max(−q, 0) g⁻

    with q in [−1, 1] the event's own process reward, g⁺ and g⁻ the greatest and least A_j of the group; where no trace
    of the group has a positive (negative) one, 1 (−1). So a group in which all outcomes are equal still moves marked
    actions by 1. Equal to `estimators.foldgrpo` for outcomes 0 and 1 that both occur and marks −1, 0 and 1.

    With n traces in the group, no |A| exceeds max(1, √n), or 10 √n with `row_reward`: a row further than 10 √n standard
    deviations of the first rows from their mean is refused (NO_DIVISOR), where the code divides by nearly 0. The
    refusal looks at rewards, so answers would be a selection; in the worlds of docs/bias.md it refuses nothing.

    Args:
      graph: the batch.
      reward: float [T], the outcome; NaN where a trace has none.
      event_reward: float [E], the marks q; they enter no statistic. NaN counts as 0.
      row_reward: float [E], what each row earned besides the outcome of its trace (with outcomes 0, its own reward):
        R_i is then the row's, while μ and sd are those of the traces' first rows.
      scale: "none" leaves out the division (`norm_adv_by_std_in_grpo=False`).

    Returns:
      `Credit` at level "event", estimand "score"; `credit` is A itself.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: `compute_foldgrpo_advantage` in a third-party plug-in that says it is a copy of the authors' fork;
    executed, golden `foldgrpo_fork`. The authors' agent casts marks to integers, which makes ±0.2 to 0.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "c"], reward=[1.0, 1.0, 0.0, 0.0], event_reward=[0, -1, 0, 0])
      >>> rows.gather(credit.foldgrpo_fork(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [1.1547, -0.5773, -0.5773, -0.5773]
    """
    plain = group_relative(
        graph,
        jnp.where(check_reward(graph, reward, event_reward)[1], reward, jnp.nan),
        event_reward=row_reward,
        scale=scale,
        aggregate="first",
        own_score=row_reward is not None,
        eps=1e-6,
        ddof=1,
        singleton="raw",
        source="foldgrpo_fork",
    )
    group, num = jnp.asarray(graph.group_ids)[graph.trace_ids], graph.num_traces
    advantage, valid = plain.advantage, plain.valid
    low, high = -jnp.inf, jnp.inf
    best = jax.ops.segment_max(jnp.where(valid, advantage, low), group, num_segments=num)
    worst = jax.ops.segment_min(jnp.where(valid, advantage, high), group, num_segments=num)
    best = jnp.where(best > 0, best, jnp.ones_like(best))[group]
    worst = jnp.where(worst < 0, worst, -jnp.ones_like(worst))[group]
    mark = jnp.zeros_like(advantage)
    if event_reward is not None:
        mark = check_event_array(graph, "event_reward", event_reward)[0].astype(advantage.dtype)
    best, worst = jnp.where(valid, best, 0), jnp.where(valid, worst, 0)
    amount = (1 - jnp.abs(mark)) * advantage + jnp.maximum(mark, 0) * best + jnp.maximum(-mark, 0) * worst
    return finish(
        graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=jnp.full_like(amount, jnp.inf),
        reason=jnp.where(valid, Reason.VALID, plain.reason),
        unit="event",
        estimand="score",
        source="foldgrpo_fork",
        centred=False,
        own_outcome=True,
    )


@functools.partial(jax.jit, static_argnames=("scale",))
def distinct_normalised(
    x: Array, key: Array, *, scale: Literal["none", "std"] = "none", eps: float | Array = 1e-6
) -> jax.Array:
    """Values against the mean of the distinct values of their key, each counted once: float [M].

    y = x − m_k, or (x − m_k) / (sd_k + eps) with ddof 1; a key with one distinct value gives 0. Which values are
    distinct is a matter of their last bit, so sums that should be equal must have been added in one order.

    Args:
      x: float [M].
      key: int [M] in [0, M).
      scale: "none" or "std".
      eps: added to the standard deviation.

    Reference: MARSHAL `normalize_unique_values` at 2db0222, executed, golden `marshal_normalize_unique`.

    Examples:
      >>> import numpy as np
      >>> from estimators.baselines.released import distinct_normalised
      >>> distinct_normalised(np.array([1.0, 1.0, 0.0]), np.array([0, 0, 0])).tolist()
      [0.5, 0.5, -0.5]
    """
    x, key = at_least_float32(x), jnp.asarray(key)
    order = jnp.lexsort((x, key))
    ranked, of = x[order], key[order]
    new = jnp.concatenate([jnp.ones(1, bool), (of[1:] != of[:-1]) | (ranked[1:] > ranked[:-1])])
    num = x.shape[0]
    mean = segment_mean(ranked, of, num, new)
    count = segment_count(of, num, new, x.dtype)
    centred = jnp.where(count[key] > 1, x - mean[key], jnp.zeros_like(x))
    if scale == "none":
        return centred
    if scale != "std":
        raise CreditError(f"scale is {scale!r}; expected 'none' or 'std'")
    spread = safe_sqrt(safe_divide(segment_sum_squares(ranked, mean, of, num, new), count - 1))
    return centred / (spread[key] + eps)


@functools.partial(jax.jit, static_argnames=("centre", "whiten_rewards", "normalise", "whiten", "pooled"))
def marshal_tokens(
    token_rewards: Array,
    turn_end: Array,
    mask: Array,
    player: Array,
    *,
    discount: float | Array = 1.0,
    centre: bool = True,
    whiten_rewards: bool = True,
    normalise: Literal["none", "mean", "mean_std"] = "mean",
    whiten: bool = True,
    pooled: bool = False,
    reward_clip: float | Array | None = None,
    advantage_clip: float | Array | None = None,
) -> jax.Array:
    """MARSHAL's pipeline on tokens as released: float [N, L − 1], for the second token on, 0 outside the mask.

    The steps, in order:

    1. `centre` subtracts from a player's turn rewards their mean over its turns; `pooled`, over all players' turns.
    2. `reward_clip` c limits each of them to [−c, c].
    3. The first column is dropped, since a token is predicted from the one before.
    4. `whiten_rewards` whitens them over the mask.
    5. G_t = x_t + γ G_{t+1} over all columns.
    6. `normalise` subtracts from a player's G the mean of its distinct values, prompt and padding included.
    7. `whiten` whitens the result over the mask.
    8. `advantage_clip` c limits it to [−c, c].

    The defaults are the shipped configuration. The mean of distinct values does not count how often each occurs, so it
    is no baseline of the policy gradient. `estimators.marshal` is the method as it is described.

    Args:
      token_rewards: float [N, L], a turn's reward at its last token.
      turn_end, mask: bool [N, L], last tokens of turns, and tokens that the policy generated.
      player: int [N] in [0, N), the player of each row.
      discount: γ.
      centre, whiten_rewards, normalise, whiten: the steps above.
      pooled: one mean for all players (`separate_norm_for_selfplay=False`).
      reward_clip, advantage_clip: limits; None for none.

    Reference: MARSHAL `agentic_pipeline.py`, `functionals.py` at 2db0222, executed, golden `marshal_turn_level`.

    Examples:
      >>> import numpy as np
      >>> from estimators.baselines.released import marshal_tokens
      >>> rewards, ends = np.array([[0, 0, 1.0], [0, 0, 0.0]]), np.array([[False, False, True]] * 2)
      >>> plain = {"whiten_rewards": False, "normalise": "none", "whiten": False}
      >>> marshal_tokens(rewards, ends, np.ones((2, 3), bool), np.array([0, 0]), **plain).tolist()
      [[0.5, 0.5], [-0.5, -0.5]]
    """
    rewards, turn_end, mask = at_least_float32(token_rewards), jnp.asarray(turn_end), jnp.asarray(mask)
    player, (n, width) = jnp.asarray(player), rewards.shape
    if normalise not in ("none", "mean", "mean_std"):
        raise CreditError(f"normalise is {normalise!r}; expected 'none', 'mean' or 'mean_std'")
    if centre:
        of_row = jnp.zeros_like(player) if pooled else player
        mean = mean_from_first(rewards.ravel(), jnp.repeat(of_row, width), n, turn_end.ravel())[of_row][:, None]
        rewards = jnp.where(turn_end, rewards - mean, jnp.zeros_like(rewards))
    if reward_clip is not None:
        rewards = jnp.clip(rewards, -jnp.asarray(reward_clip), jnp.asarray(reward_clip)).astype(rewards.dtype)
    rewards, mask = rewards[:, 1:], mask[:, 1:]
    if whiten_rewards:
        rewards = masked_whiten(rewards, mask)

    def step(later: jax.Array, now: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = now + discount * later
        return total, total

    # One token after the other, as in the code: another order of additions would make other values distinct.
    _, to_go = jax.lax.scan(step, jnp.zeros(n, rewards.dtype), rewards.T, reverse=True)
    advantage = to_go.T
    if normalise != "none":
        flat = jnp.repeat(player, width - 1)
        scale: Literal["none", "std"] = "std" if normalise == "mean_std" else "none"
        advantage = distinct_normalised(advantage.ravel(), flat, scale=scale).reshape(n, width - 1)
    if whiten:
        advantage = masked_whiten(advantage, mask)
    advantage = jnp.where(mask, advantage, jnp.zeros_like(advantage))
    if advantage_clip is None:
        return advantage
    return jnp.clip(advantage, -jnp.asarray(advantage_clip), jnp.asarray(advantage_clip)).astype(advantage.dtype)


@jax.jit
def marft_normalised(advantage: Array, eps: float | Array = 1e-8) -> jax.Array:
    """MARFT's normalisation of a minibatch: statistics over entries other than 0, applied to all of them; any shape.

    (A − m) / (sd + eps), ddof 0. Padding is 0 and so becomes −m / (sd + eps), and an advantage that happens to be 0
    counts as padding.

    Args:
      advantage: float, any shape; 0 is padding.
      eps: added to the standard deviation.

    Reference: MARFT `appo_trainer.py` at 1beacdb, executed, golden `marft_action_gae`.

    Examples:
      >>> import numpy as np
      >>> from estimators.baselines.released import marft_normalised
      >>> marft_normalised(np.array([1.0, 3.0, 0.0])).tolist()
      [-1.0, 1.0, -2.0]
    """
    x = at_least_float32(advantage)
    entry_mask = jnp.abs(x) > 0
    n = jnp.maximum(jnp.sum(entry_mask), 1).astype(x.dtype)
    # Relative to one of them: a float mean of equal values is not that value, and 1 / eps would enlarge the rest.
    x = x - x.ravel()[jnp.argmax(entry_mask.ravel())]
    x = x - jnp.sum(jnp.where(entry_mask, x, jnp.zeros_like(x))) / n
    deviation = jnp.where(entry_mask, x, jnp.zeros_like(x))
    return x / (safe_sqrt(jnp.sum(deviation**2) / n) + eps)


@jax.jit
def verl_gae_tokens(
    token_rewards: Array, values: Array, mask: Array, discount: float | Array = 1.0, lambda_: float | Array = 1.0
) -> tuple[jax.Array, jax.Array]:
    """GAE over tokens as verl had it before masks entered the recursion: whitened advantages and returns, float [N, L].

    δ_t = r_t + γ V_{t+1} − V_t and A_t = δ_t + γλ A_{t+1} over every column, padding included, so that those of padding
    leak into real tokens; returns are A + V; advantages are whitened by the statistics under the mask and
    left as they are outside it. `estimators.tokens.rows.gae` is the method without the leak.

    Args:
      token_rewards, values: float [N, L].
      mask: bool [N, L], tokens that the policy generated.
      discount, lambda_: γ and λ.

    Reference: `compute_gae_advantage_return` in Dr. MAS' verl at 19c632b, executed, golden `verl_gae`.

    Examples:
      >>> import numpy as np
      >>> from estimators.baselines.released import verl_gae_tokens
      >>> advantage, returns = verl_gae_tokens(np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]]), np.ones((1, 2), bool))
      >>> returns.tolist()
      [[1.0, 1.0]]
    """
    rewards, mask = at_least_float32(token_rewards), jnp.asarray(mask)
    value = jnp.asarray(values).astype(rewards.dtype)
    ahead = jnp.concatenate([value[:, 1:], jnp.zeros_like(value[:, :1])], axis=1)
    delta = rewards + discount * ahead - value
    factor = jnp.full_like(delta, 1) * discount * lambda_

    def compose(later: tuple[jax.Array, jax.Array], sooner: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return sooner[0] * later[0], sooner[1] + sooner[0] * later[1]

    advantage = jax.lax.associative_scan(compose, (factor, delta), reverse=True, axis=1)[1]
    n = jnp.maximum(jnp.sum(mask), 2).astype(delta.dtype)
    # Relative to one of them: a float mean of equal values is not that value, and 1e4 would enlarge the rest.
    apart = advantage - jnp.where(jnp.any(mask), advantage.ravel()[jnp.argmax(mask.ravel())], 0)
    apart = apart - jnp.sum(jnp.where(mask, apart, 0)) / n
    variance = jnp.sum(jnp.where(mask, apart, 0) ** 2) / (n - 1)
    return apart / jnp.sqrt(variance + 1e-8), advantage + value
