"""Players: baselines that belong to a role across traces, for teams in which each agent has rewards of its own.

A player is an agent name (or role). Its reward in a trace is the trace's outcome plus the event rewards of its own
events, so that a game gives each player its own result: write those as event rewards, with outcome 0.
"""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.baselines.moving import running_averages
from estimators.clusters import clusters_of, first_of_cluster
from estimators.group import group_relative
from estimators.members import AgentNames, Members, Over, agent_outcomes, instances, statistics
from estimators.options import checked_options
from estimators.sequence.chains import chains
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.keys import Key, key_of
from graphs.levels import Name, pair_ids, unit_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_sum
from graphs.stable_order import stable_order

__all__ = ["hierarchical_grpo", "marshal", "spiral_rae", "spiral_rae_state"]


@checked_options
def hierarchical_grpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    agent_reward: Array | None = None,
    by: Name = "agent_name",
    episode_agents: AgentNames = None,
) -> Credit:
    """prime-rl's GRPO for proposers and solvers: solvers of one episode are compared, proposers of one task.

        A_a = R_a − μ_k        k = (name, trace) of the names in `episode_agents`, else (name, task)

    R_a is the outcome of agent instance a: that of its trace and its own, with the event rewards of its events; μ_k is
    the mean over the instances of key k that acted and are trained, a itself included. An instance alone in its key
    gets 0. Solvers that share a proposed problem are compared on it alone, so that its difficulty is nobody's merit;
    what a proposer's problem leads to is compared with other proposals of the task. Biased for the policy gradient by
    the factor (n − 1)/n of each key. Replays of one trace count as one sample (`estimators.clusters`), so that
    instances compared within it are refused.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E] or None; an event reward counts for the agent whose event it is at. NaN counts as 0.
      agent_reward: float [E] or None, at one event of each agent instance or more. An agent's outcome is its trace's
        `reward` plus its `agent_reward`; who lacks one has none (`estimators.members.agent_outcomes`).
      by: who is compared, agents of one "agent_name" or of one "role_name".
      episode_agents: the names, as `by` says, that are compared within one trace.

    Returns:
      `Credit` at level "agent", estimand "scale".

    Raises:
      CreditError: wrong shapes or dtypes, or names without a log.

    Reference: prime-rl `algo/hierarchical_grpo.py` at 559b447, executed, golden. It leaves out agents whose trace ended
    in an error; leave them out of the log, or state no outcome of theirs.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=[0, 0, 0, 1], agent=["p", "s1", "s2", "p"],
      ...     role=["proposer", "solver", "solver", "proposer"], evidence={"agent_reward": [0.5, 1.0, 0.0, 0.0]})
      >>> result = credit.run(rows, "hierarchical_grpo", by="role_name", episode_agents="solver")
      >>> rows.gather(result.advantage).tolist()
      [0.25, 0.5, -0.5, -0.25]
    """
    key = key_of(("task", "role") if _by_role(by) else ("task", "agent"))
    if episode_agents is not None:
        within = instances(graph, "episode_agents", episode_agents)
        # 0 for all who are compared over the task.
        episode = jnp.where(within, jnp.asarray(graph.agent_trace) + 1, 0)
        key = Key((*key.names, "own episode"), (*key.levels, "agent"), (*key.arrays, episode))
    return group_relative(
        graph,
        reward,
        event_reward=event_reward,
        agent_reward=agent_reward,
        by=key,
        population="agent",
        singleton="zero",
        source="hierarchical_grpo",
    )


@checked_options
@functools.partial(jax.jit, static_argnames=("by", "over", "scale"))
def marshal(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    discount: float | Array = 1.0,
    by: Name = "agent_name",
    over: Over = "batch",
    scale: Literal["none", "std"] = "none",
    eps: float | Array = 1e-6,
) -> Credit:
    """MARSHAL: the summed reward of a player from its turn on, minus the mean of that sum over the player's turns.

        G_k = r_k + γ G_{k+1}        A = G_k − μ_p, with scale "std" (G_k − μ_p) / (sd_p + eps)

    k counts the turns of an agent instance; r_k are the event rewards from its k-th turn up to its next, and in the
    last turn the outcome; μ_p and sd_p (ddof 1) are over all turns of all instances of player p in all traces. Since
    rewards are summed first, the mean does not depend on how many turns were still to be played. Two instances of one
    name in a trace are two sequences of one player. Biased for the policy gradient. Replays of one trace count as one
    sample, and traces without an independent one are refused (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E] or None; an event reward, in a joint turn too, counts for the agent whose event it is at.
        NaN counts as 0.
      discount: γ, for each turn of the player.
      by: what a player is, "agent_name" or "role_name"; any number of them.
      over: "batch" (the released grouping, by kind of game), or "group": turns of the same task only.
      scale: "none" or "std".
      eps: added to the standard deviation.

    Returns:
      `Credit` at level "turn", estimand "scale". A player with a single turn is refused.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: MARSHAL, as described ("sum, then normalise" with role groups). The released pipeline works on tokens and
    takes the mean of distinct values, with whitening before and after: `estimators.baselines.released.marshal_tokens`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["g1", "g1", "g2", "g2"], agent=["p0", "p1", "p0", "p1"], row_reward=[1, -1, 0, 0])
      >>> rows.gather(credit.marshal(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [0.5, -0.5, -0.5, 0.5]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    trace, real = jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    row, leads, lead_of = _turns(graph, scored[graph.agent_trace])
    own = chains(graph, leads, "agent")
    ends = own.take(outcome[trace])
    earned = jnp.where(own.last, ends, jnp.zeros_like(ends))
    if event_reward is not None:
        step = check_event_array(graph, "event_reward", event_reward)[0].astype(earned.dtype)
        earned = earned + own.gathered(own.take(step), own.take(real))
    to_go = own.back(own.backward(jnp.ones_like(earned) * discount, earned))

    player = _names(graph, by)[graph.agent_ids]
    group = jnp.asarray(graph.group_ids)[trace]
    other = group if over == "group" else jnp.zeros_like(group)
    key_of_turn = pair_ids(player, other, leads, graph.num_agents)
    shared = clusters_of(graph, trace, key_of_turn, leads, several=True, dtype=to_go.dtype)
    m = Members(to_go, key_of_turn, leads, lead_of, shared)
    n, mean, squares = statistics(m)
    key, x = m.key[lead_of], to_go[lead_of]
    if scale == "std":
        divisor = safe_sqrt(safe_divide(squares, n - 1))[key] + eps
    elif scale == "none":
        divisor = jnp.ones_like(x)
    else:
        raise CreditError(f"scale is {scale!r}; expected 'none' or 'std'")
    alone = n[key] < 2
    reason = jnp.where(alone, Reason.SINGLETON, Reason.VALID)
    reason = jnp.where(m.shared_mask[lead_of], Reason.SHARED_PREFIX, reason)
    return finish(
        graph,
        credit=x,
        baseline=mean[key],
        scale=jnp.where(divisor > 0, divisor, jnp.ones_like(x)),
        stderr=jnp.where(alone, jnp.inf, safe_sqrt(safe_divide(squares, n * (n - 1)))[key]),
        reason=jnp.where(row, reason, Reason.NO_REWARD),
        unit="turn",
        estimand="scale",
        source="marshal",
        centred=False,
        own_outcome=True,
    )


@checked_options
@functools.partial(jax.jit, static_argnames=("by", "population"))
def spiral_rae(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    agent_reward: Array | None = None,
    by: Name = "agent_name",
    population: Literal["trace", "agent"] = "trace",
    decay: float | Array = 0.95,
    discount: float | Array = 1.0,
    initial: float | Array = 0.0,
) -> Credit:
    """SPIRAL's role-conditioned advantage: a player's reward minus the moving average of its rewards in earlier traces.

    For each trace in the order of the batch and each player p in it,

        A = R_p − b_p, then b_p ← decay b_p + (1 − decay) R_p        the i-th of the player's n turns gets A γ^(n−1−i)

    R_p is the outcome plus the event rewards of p's events. A player takes part in a trace where it has an event of any
    kind: one that had no turn gets no advantage and updates its average. Log traces in order of completion. At γ = 1
    unbiased for each player's own reward, since b_p depends on earlier traces only. A replay takes b_p from before the
    first trace of its cluster (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E] or None; an event reward counts for the agent whose event it is at. NaN counts as 0.
      agent_reward: float [E] or None, at one event of each agent instance or more. An agent's outcome is its trace's
        `reward` plus its `agent_reward`; who lacks one has none (`estimators.members.agent_outcomes`).
      by: what a player is, "agent_name" or "role_name".
      population: "trace", what a player earned in a trace is one reward; "agent", what each instance that acted and is
        trained earned, in the order of their first events (prime-rl).
      decay: how much of the old average stays, in [0, 1].
      discount: γ, for each later turn of the player.
      initial: b_p before the first trace; a number, or float [A] by name id as `spiral_rae_state` returns it. Ids of
        names are the batch's own: carry averages by name from one batch to the next.

    Returns:
      `Credit` at level "turn", estimand "scale"; `stderr` infinite. Its scope is the sequence.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: SPIRAL `train_spiral.py` `prepare_trajectories` at a02d0ed, executed, golden `spiral_rae`. There each
    actor process keeps averages of its own, and turns with A = 0 are dropped from the batch. prime-rl `algo/rae.py` at
    559b447, executed, golden: population "agent".

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["g1", "g1", "g2", "g2"], agent=["p0", "p1", "p0", "p1"], row_reward=[1, -1, 1, -1])
      >>> rows.gather(credit.spiral_rae(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [1.0, -1.0, 0.95, -0.95]
    """
    unit, rewards, present_mask, name = _player_rewards(graph, reward, event_reward, by, population, agent_reward)
    first = segment_first(unit, graph.num_agents, jnp.asarray(graph.agent_mask))
    played = _in_order(graph, population)
    before, _ = running_averages(rewards[played], present_mask[played], name[played], decay, initial)
    trace = jnp.asarray(graph.agent_trace)[first]
    before = before[first_of_cluster(graph, trace[played], name[played], present_mask[played])]
    before = jnp.zeros_like(before).at[played].set(before)
    scored = agent_outcomes(graph, reward, agent_reward, event_reward)[1]
    row, leads, lead_of = _turns(graph, scored)
    player = unit[graph.agent_ids]

    order = stable_order(player)  # events of a player of a trace, in log order
    begun = jnp.cumsum(leads[order].astype(jnp.int32), dtype=jnp.int32)
    begun = jnp.zeros_like(begun).at[order].set(begun)
    last = jax.ops.segment_max(jnp.where(leads, begun, 0), player, num_segments=graph.num_agents)
    later = jnp.where(row, (last[player] - begun)[lead_of], 0).astype(rewards.dtype)
    factor = jnp.power(jnp.asarray(discount, rewards.dtype), later)
    x = rewards[player] * factor
    return finish(
        graph,
        credit=x,
        baseline=before[player] * factor,
        scale=jnp.ones_like(x),
        stderr=jnp.full_like(x, jnp.inf),
        reason=jnp.where(row, Reason.VALID, Reason.NO_REWARD),
        unit="turn",
        estimand="scale",
        source="spiral_rae",
        centred=False,
        own_outcome=True,
    )


@checked_options
@functools.partial(jax.jit, static_argnames=("by", "population"))
def spiral_rae_state(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    agent_reward: Array | None = None,
    by: Name = "agent_name",
    population: Literal["trace", "agent"] = "trace",
    decay: float | Array = 0.95,
    initial: float | Array = 0.0,
) -> jax.Array:
    """The moving averages after the last trace, float [A] by name id: `initial` of `spiral_rae` for the next batch.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E] or None; an event reward counts for the agent whose event it is at. NaN counts as 0.
      agent_reward: float [E] or None, at one event of each agent instance or more. An agent's outcome is its trace's
        `reward` plus its `agent_reward`; who lacks one has none (`estimators.members.agent_outcomes`).
      by: what a player is, "agent_name" or "role_name".
      population: "trace", what a player earned in a trace is one reward; "agent", what each instance that acted and is
        trained earned, in the order of the batch (prime-rl).
      decay: how much of the old average stays, in [0, 1].
      initial: the averages before the batch; a number, or float [A] by name id.

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["g1", "g1", "g2", "g2"], agent=["p0", "p1", "p0", "p1"], row_reward=[1, -1, 1, -1])
      >>> from estimators.baselines.players import spiral_rae_state
      >>> spiral_rae_state(graph, reward, event_reward=rows.event_reward)[:2].tolist()
      [0.0975, -0.0975]
    """
    _, rewards, present_mask, name = _player_rewards(graph, reward, event_reward, by, population, agent_reward)
    played = _in_order(graph, population)
    return running_averages(rewards[played], present_mask[played], name[played], decay, initial)[1]


def _by_role(by: Name) -> bool:
    if by not in ("agent_name", "role_name"):
        raise CreditError(f"by is {by!r}; expected 'agent_name' or 'role_name'")
    return by == "role_name"


def _names(graph: EventGraph, by: Name) -> jax.Array:
    return jnp.asarray(graph.agent_role_ids if _by_role(by) else graph.agent_name_ids)


def _in_order(graph: EventGraph, population: Literal["trace", "agent"]) -> jax.Array:
    """The units of a moving average in their order, int32 [A]; instances of one trace by their first events."""
    if population == "trace":
        return jnp.arange(graph.num_agents, dtype=jnp.int32)
    first = segment_first(jnp.asarray(graph.agent_ids), graph.num_agents, jnp.asarray(graph.event_mask))
    order: jax.Array = stable_order(first)
    return order


def _turns(graph: EventGraph, scored: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Actions of scored instances, those that begin a turn, and for every event the one that begins its turn."""
    n, turn = graph.num_events, jnp.asarray(graph.turn_ids)
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[graph.agent_ids]
    lead_of = segment_first(turn, n, row)[turn]
    return row, row & (lead_of == jnp.arange(n, dtype=jnp.int32)), lead_of


def _player_rewards(
    graph: EventGraph,
    reward: Array,
    event_reward: Array | None,
    by: Name,
    population: Literal["trace", "agent"],
    agent_reward: Array | None,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Unit of each instance; reward, presence and name of each unit, a player in a trace or an instance: all [A]."""
    outcome, _ = check_reward(graph, reward, event_reward)
    of_agent, scored = agent_outcomes(graph, reward, agent_reward, event_reward)
    num, agent = graph.num_agents, jnp.asarray(graph.agent_ids)
    if population not in ("trace", "agent"):
        raise CreditError(f"population is {population!r}; expected 'trace' or 'agent'")
    each = population == "agent"
    unit = jnp.arange(num, dtype=jnp.int32) if each else unit_ids(graph, by)
    # A player who has an event in a game but no turn still updates its average, as in the released code.
    counted = graph.trained_mask if each else jnp.asarray(graph.event_mask)
    present_mask = segment_count(unit[agent], num, counted & scored[agent]) > 0
    first = segment_first(unit, num, jnp.asarray(graph.agent_mask))
    of_trace = outcome[jnp.asarray(graph.agent_trace)]
    rewards = of_trace[first]
    if agent_reward is not None:
        rewards = rewards + segment_sum(of_agent - of_trace, unit, num, jnp.asarray(graph.agent_mask))
    if event_reward is not None:
        step, real = check_event_array(graph, "event_reward", event_reward)
        rewards = rewards + segment_sum(step.astype(rewards.dtype), unit[agent], num, real)
    return unit, jnp.where(present_mask, rewards, jnp.zeros_like(rewards)), present_mask, _names(graph, by)[first]
