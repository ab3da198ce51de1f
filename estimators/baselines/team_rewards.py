"""Rewards of a team's agents made of verdicts and solo runs: MARTI's shaping, UnityMAS-O's differences, CCPO's bonus,
SEPO's ratings, ADCA's marks of steps."""

from __future__ import annotations

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Estimand, Reason, check_event_array, check_reward, finish
from estimators.clusters import clusters_of
from estimators.counterfactual.replays import event_ids
from estimators.group import group_relative
from estimators.members import AgentNames, Members, instances, row_scores, statistics
from estimators.options import checked_options
from estimators.relative_mean import mean_from_first, stated_once
from estimators.sequence.chains import Chains, chains
from graphs.event_graph import Array, EventGraph
from graphs.levels import key_ids, pair_ids
from graphs.segment import safe_divide, safe_sqrt, segment_count, segment_first, segment_sum

__all__ = ["adca_grpo", "ccpo", "marti", "sepo", "unitymas_o"]


@checked_options
@functools.partial(jax.jit, static_argnames=("mode", "history"))
def marti(
    graph: EventGraph,
    reward: Array,
    *,
    stage: Array,
    event_reward: Array | None = None,
    mode: Literal["quality", "margin"] = "quality",
    history: Literal["team", "own"] = "team",
    weight: float | Array = 0.5,
    outcome_weight: float | Array = 0.0,
) -> Credit:
    """MARTI's reward of an answer in rounds: its verdict, moved by how good the earlier rounds were.

        quality   v + w (Q v − (1 − Q)(1 − v))        margin   v + w (v − Q)

    v is the answer's verdict in [0, 1], Q the mean verdict of all earlier rounds, of the whole team ("team", its form
    of debate) or of the agent itself ("own"). An answer without earlier rounds keeps v. `outcome_weight` adds that much
    of the agent's own last verdict, which is not the team's. There is no baseline: agents that agree are each paid in
    full.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      stage: int [E], the round of each answer; -1 where the log has none, and the answer is invalid. Rounds stand in
        the log in their order.
      event_reward: float [E] or None. v is the outcome plus the answer's own event reward: verdicts on answers are
        event rewards, with outcome 0. NaN counts as 0.
      mode, history: as above.
      weight, outcome_weight: w, and that of the last verdict.

    Returns:
      `Credit` at level "event", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: MARTI `marti/verifiers/auto_reward_alloc.py` at a2fe2c7 (MIT), executed, golden `marti`. Its
    "conditional_quality" is handled as "quality" there.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a"] * 4, agent=["x", "y"] * 2, row_reward=[0, 1, 1, 0],
      ...     evidence={"stage": [0, 0, 1, 1]})
      >>> given = {"stage": rows.evidence["stage"], "event_reward": rows.event_reward}
      >>> rows.gather(credit.marti(graph, reward, **given).advantage).tolist()
      [0.0, 1.0, 1.25, -0.25]
    """
    verdict, row = row_scores(graph, reward, event_reward)
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    number = event_ids(graph, "stage", stage)
    known = row & (number >= 0)
    ones = jnp.ones_like(verdict)
    of_round = pair_ids(trace, number, known, graph.num_traces)
    lead_of = segment_first(of_round, n, known)[of_round]
    places = jnp.arange(n, dtype=jnp.int32)
    agents = chains(graph, known, "agent")
    if history == "team":
        leads = known & (lead_of == places)
        total, count = segment_sum(verdict, of_round, n, known), segment_count(of_round, n, known, verdict.dtype)
        rounds = chains(graph, leads)
        quality, earlier = _before(graph, rounds, total[of_round], count[of_round])
        quality, earlier = quality[lead_of], earlier[lead_of]
    else:
        quality, earlier = _before(graph, agents, verdict, ones)
    moved = quality * verdict - (1 - quality) * (1 - verdict) if mode == "quality" else verdict - quality
    last = agents.back(agents.backward(ones, jnp.where(agents.last, agents.take(verdict), 0)))
    amount = verdict + jnp.where(earlier, weight * moved, 0) + outcome_weight * last
    reason = jnp.where(row, jnp.where(known, Reason.VALID, Reason.NO_EVIDENCE), Reason.NO_REWARD)
    return _finish(graph, amount, jnp.zeros_like(amount), ones, reason, "event", "score", "marti")


@checked_options
@jax.jit
def unitymas_o(
    graph: EventGraph,
    reward: Array,
    *,
    stage: Array,
    event_reward: Array | None = None,
    ahead: AgentNames = None,
    absolute: AgentNames = None,
) -> Credit:
    """UnityMAS-O's allocators: every agent of a turn is paid the whole change of the verdict in that turn.

        A = s_i − s_{i−1}        for agents in `ahead` s_{i+1} − s_i, 0 in the last turn; for those in `absolute` s_i

    s_i is the verdict of turn i of the trace, s_{−1} = 0. Its code workflow pays planner and coder the change and the
    reflection the next one; its search workflow pays search, summary and update the change and the answerer the
    verdict. Two or three agents get one and the same difference, so that a trace pays a multiple of its last verdict:
    `credit audit` shows it. There is no baseline. No |A| exceeds the range of verdicts, 0 included.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      stage: int [E], the turn of each event; -1 where the log has none, and the action is invalid. Turns stand in the
        log in their order.
      event_reward: float [E] or None. s_i is the outcome plus all rewards at events of turn i: verdicts are event
        rewards, each stated once, with outcome 0. NaN counts as 0. A trace that has an outcome, and no reward at an
        event other than 0, states no verdict of a turn and is invalid: its first turn would be paid the outcome. So
        does one whose rewards at events are below the rounding of the outcome.
      ahead, absolute: agents that are paid so; names, or bool [A].

    Returns:
      `Credit` at level "event", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or names without a log.

    Reference: UnityMAS-O `reward_allocators/code_turn_level.py`, `mask_turn_level.py` at 7f1616a (Apache-2.0),
    executed, golden `unitymas_o`, without its penalty on format, which is a reward at the action.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a"] * 4, agent=["planner", "coder"] * 2, row_reward=[0, 0.25, 0, 1],
      ...     evidence={"stage": [0, 0, 1, 1]})
      >>> given = {"stage": rows.evidence["stage"], "event_reward": rows.event_reward}
      >>> rows.gather(credit.unitymas_o(graph, reward, **given).advantage).tolist()
      [0.25, 0.25, 0.75, 0.75]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    n, trace = graph.num_events, jnp.asarray(graph.trace_ids)
    number = event_ids(graph, "stage", stage)
    known = jnp.asarray(graph.event_mask) & scored[trace] & (number >= 0)
    of_turn = pair_ids(trace, number, known, graph.num_traces)
    verdict = outcome[trace]
    stated = jnp.zeros_like(outcome)
    if event_reward is not None:
        step = check_event_array(graph, "event_reward", event_reward)[0].astype(verdict.dtype)
        verdict = verdict + segment_sum(step, of_turn, n, known)[of_turn]
        stated = segment_sum(jnp.abs(step), trace, graph.num_traces, known)
    # Verdicts that the rounding of the outcome hides are none.
    judged = stated >= float(np.finfo(outcome.dtype).eps) * jnp.abs(outcome)
    lead_of = segment_first(of_turn, n, known)[of_turn]
    turns = chains(graph, known & (lead_of == jnp.arange(n, dtype=jnp.int32)))
    here = turns.take(verdict)
    # What stands at a turn is written to the place of the next one; the last turn has none.
    before = jnp.zeros_like(here).at[jnp.where(turns.row, turns.after, n)].set(here, mode="drop")
    after = jnp.where(turns.last, here, turns.following(here))
    change, coming = (turns.back(x)[lead_of] for x in (here - before, after - here))
    agent = jnp.asarray(graph.agent_ids)
    amount = jnp.where(instances(graph, "ahead", ahead)[agent], coming, change)
    amount = jnp.where(instances(graph, "absolute", absolute)[agent], verdict, amount)
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    reason = jnp.where(row, jnp.where(known & judged[trace], Reason.VALID, Reason.NO_EVIDENCE), Reason.NO_REWARD)
    zero, one = jnp.zeros_like(amount), jnp.ones_like(amount)
    return _finish(graph, amount, zero, one, reason, "event", "score", "unitymas_o")


def _before(graph: EventGraph, path: Chains, values: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """At each member of a chain, the weighted mean of all earlier members', and whether there are any: [E] each."""
    num = max(graph.num_events, graph.num_agents, graph.num_traces)  # a chain is a trace or an agent
    ones = jnp.ones_like(values)
    sums = []
    for amounts in (values, weights):
        here = path.take(amounts)
        whole = segment_sum(here, path.chain, num, path.row)[path.chain]
        sums.append(path.back(whole - path.backward(ones, here)))
    total, count = sums
    earlier = count > 0.5
    return jnp.where(earlier, safe_divide(total, count), 0), earlier


@checked_options
@functools.partial(jax.jit, static_argnames=("scale", "bonus"))
def ccpo(
    graph: EventGraph,
    reward: Array,
    *,
    solo_reward: Array,
    event_reward: Array | None = None,
    weight: float | Array = 0.2,
    middle: float | Array = 0.0,
    bonus: Literal["event", "difference"] = "event",
    scale: Literal["none", "std"] = "none",
) -> Credit:
    """CCPO: an agent whose absence was tried gets a bonus where it turned its task's result; each against its kind.

        b = mean over the task's traces of the outcome without that agent
        bonus = +1 if R > middle > b, −1 if R < middle < b, else 0        "difference": (R − b) / 2
        x = R + w bonus for that agent, R for the others        A = x − mean of x over the task

    The agents whose absence was tried (the "thinkers") are those of a name that states `solo_reward` on the
    task. The means of thinkers and of the others (the "solvers") are over the traces of the task. A group of one keeps
    x. The bonus compares with the mean of solo outcomes, not with the trace's own, and the trace itself is in both
    means: biased for the policy gradient. Replays of one trace count as one sample, and traces without an independent
    one are refused (`estimators.clusters`).

    With scale "std" and n traces, no |A| exceeds (n − 1)/√n, however little the rewards differ; a group of one has no
    bound but its reward.

    Args:
      graph: the batch.
      reward: float [T], the joint outcome; NaN where a trace has none. The code's are −1 and 1.
      solo_reward: float [E], the outcome of a run without the agent, at its actions; NaN where missing. A thinker that
        states none in a trace is invalid there, and all are in a trace that states several.
      event_reward: not used.
      weight: w.
      middle: what separates success from failure; 0.5 for outcomes 0 and 1.
      bonus: as above.
      scale: "std" divides by the standard deviation (ddof 1) + 1e-6; off in the code.

    Returns:
      `Credit` at level "agent", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: arXiv:2603.21563; CCPO `two_model_trainer.py` `_compute_counterfactual_role_rewards` at ea50d3a
    (Apache-2.0), executed, golden `ccpo`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "b"], agent=["think", "solve"] * 2, reward=[1, 1, -1, -1],
      ...     evidence={"solo_reward": [-1.0, None, -0.5, None]})
      >>> solo = rows.evidence["solo_reward"]
      >>> rows.gather(credit.ccpo(graph, reward, solo_reward=solo).advantage).tolist()
      [1.1, 1.0, -1.1, -1.0]
    """
    del event_reward
    outcome, scored = check_reward(graph, reward)
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    solo, stated = check_event_array(graph, "solo_reward", solo_reward)
    stated = stated & row
    names = key_ids(graph, "agent_name")[jnp.asarray(graph.agent_ids)]
    thinker = row & (segment_count(names, graph.num_agents, stated) > 0)[names]
    solver = row & ~thinker
    alone, told, several = stated_once(solo.astype(outcome.dtype), trace, num, stated)
    told = told & ~several
    b = _statistics(graph, alone, told)[1]
    if bonus == "event":
        turned = (outcome > middle) & (b < middle)
        spoilt = (outcome < middle) & (b > middle)
        extra = jnp.where(turned, 1.0, jnp.where(spoilt, -1.0, 0.0)).astype(outcome.dtype)
    else:
        extra = (outcome - b) / 2
    parts = []
    for score, rows in ((outcome + weight * extra, thinker & told[trace]), (outcome, solver)):
        acts = segment_count(trace, num, rows) > 0
        n, mean, squares, shared = _statistics(graph, score, acts)
        spread = safe_sqrt(safe_divide(squares, n - 1)) + 1e-6 if scale == "std" else jnp.ones_like(mean)
        single = n < 2
        parts.append((score, jnp.where(single, 0, mean), jnp.where(single, 1, spread), shared))
    x, mean, spread, shared = (
        jnp.where(thinker, of_thinker[trace], of_solver[trace]) for of_thinker, of_solver in zip(*parts, strict=True)
    )
    reason = jnp.where(shared, Reason.SHARED_PREFIX, Reason.VALID)
    agent = jnp.asarray(graph.agent_ids)
    untold = thinker & (segment_count(agent, graph.num_agents, stated) < 1)[agent]
    reason = jnp.where(untold, Reason.NO_EVIDENCE, reason)
    reason = jnp.where(thinker & several[trace], Reason.CONTRADICTION, reason)
    return _finish(graph, x, mean, spread, jnp.where(row, reason, Reason.NO_REWARD), "agent", "score", "ccpo")


@checked_options
@functools.partial(jax.jit, static_argnames=("scale",))
def sepo(
    graph: EventGraph,
    reward: Array,
    *,
    self_rating: Array,
    event_reward: Array | None = None,
    weight: float | Array = 0.2,
    blame_weight: float | Array | None = None,
    trust: float | Array = 0.3,
    scale: Literal["none", "std"] = "none",
) -> Credit:
    """SEPO: the agents rate how credit or blame is split between them; who gets more than usual gets a bonus.

        s_a = η p_a + (1 − η) mean of (1 − p_b)/(N − 1) over the others b        w_a = s_a / Σ_b s_b
        u_a = w_a − mean of w_a over the task        x_a = R + λ u_a where R > 0, R − λ' u_a else
        A_a = x_a − mean of x_a over the task

    p_a is the share that agent a of N claims for itself; what it leaves belongs to the others in equal parts. η
    (`trust`) is how much an agent's word on itself counts. The code has two agents. Means are over the traces of the
    task, for each name of an agent. A group of one keeps its x, which then is R. Ratings are the agents' own words:
    they may learn to claim more. The trace itself is in both means: biased for the policy gradient. Replays of one
    trace count as one sample, and traces without an independent one are refused (`estimators.clusters`).

    With scale "std" and n traces, no |A| exceeds (n − 1)/√n, however little the rewards differ; a group of one has no
    bound but its reward.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none. The code's are −1 and 1.
      self_rating: float [E], p of the agent in [0, 1] at one of its actions or more; NaN where missing. An agent that
        states none takes no part. A trace with one outside [0, 1], or with two of one agent, is invalid.
      event_reward: not used.
      weight: λ, of credit.
      blame_weight: λ', of blame; None takes λ.
      trust: η.
      scale: "std" divides by the standard deviation (ddof 1) + 1e-6; off in the code.

    Returns:
      `Credit` at level "agent", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: CCPO's repository, SEPO/ `_compute_peer_role_rewards` at ea50d3a (Apache-2.0), executed, golden `sepo`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("aabb"), agent=["think", "solve"] * 2, reward=[1, 1, -1, -1],
      ...     evidence={"self_rating": [0.75, 0.5, 0.5, 0.5]})
      >>> rating = rows.evidence["self_rating"]
      >>> rows.gather(credit.sepo(graph, reward, self_rating=rating).advantage).tolist()
      [1.0, 1.0, -1.0, -1.0]
    """
    del event_reward
    outcome, scored = check_reward(graph, reward)
    agent, of_trace, num = jnp.asarray(graph.agent_ids), jnp.asarray(graph.agent_trace), graph.num_agents
    rating, stated = check_event_array(graph, "self_rating", self_rating)
    stated = stated & jnp.asarray(graph.action_mask) & scored[jnp.asarray(graph.trace_ids)]
    claimed, claims, several = stated_once(rating, agent, num, stated)
    claimed = jnp.where(claims, claimed, 0).astype(outcome.dtype)

    def in_trace(amount: jax.Array, where: jax.Array) -> jax.Array:
        return segment_sum(amount, of_trace, graph.num_traces, where)[of_trace]

    ones = jnp.ones_like(claimed)
    odd = claims & (several | (claimed < 0) | (claimed > 1))
    rated = claims & (in_trace(ones, odd) < 0.5)
    others = in_trace(ones, rated) - 1
    left = safe_divide(in_trace(1 - claimed, rated) - (1 - claimed), others * others)
    share = trust * claimed + (1 - trust) * left
    w = share / jnp.maximum(in_trace(share, rated), 1e-6)

    def compared(amount: jax.Array, outcomes: jax.Array, **options: Any) -> Credit:
        """Of an amount [A] of each agent beside the outcomes, against its name on the task."""
        at_events = jnp.where(rated[agent], amount[agent], jnp.nan)
        return group_relative(
            graph, outcomes, agent_reward=at_events, by=("task", "agent"), population="agent", **options
        )

    usual = compared(w, jnp.where(jnp.isnan(reward), jnp.nan, 0), singleton="zero")
    there = segment_count(agent, num, usual.valid) > 0
    u = jnp.where(there, usual.advantage[segment_first(agent, num, usual.valid)], 0)
    blame = weight if blame_weight is None else blame_weight
    bonus = jnp.where(outcome[of_trace] > 0, weight * u, -blame * u)
    result = compared(bonus, jnp.asarray(reward), scale=scale, eps=1e-6, singleton="raw")
    lacks = jnp.asarray(Reason.NO_EVIDENCE, result.reason.dtype)
    unrated = (result.reason == Reason.NO_REWARD) & ~rated[agent] & scored[jnp.asarray(graph.trace_ids)]
    reason = jnp.where(unrated, lacks, result.reason)
    return _finish(graph, result.credit, result.baseline, result.scale, reason, "agent", "score", "sepo")


@checked_options
@functools.partial(jax.jit, static_argnames=("variant", "outcome_at", "root_length"))
def adca_grpo(
    graph: EventGraph,
    reward: Array,
    *,
    event_reward: Array | None = None,
    variant: Literal["decouple", "allocation"] = "decouple",
    weight: float | Array = 0.1,
    outcome_at: Literal["last", "all"] = "last",
    root_length: bool = False,
) -> Credit:
    """ADCA-GRPO: good and bad marks of steps, normalised in the task, with the outcome's number, summed from each step.

        decouple     raw = +0.2 for a good step, −0.2 for a bad one (an event reward below 0)
        allocation   the steps of a trace share +1 (outcome above 0.5) or −1: a mark that agrees weighs 1, else 0.2
        z = (raw − μ) / (√(σ² + 1e-8) + 1e-12)        r = w z + outcome's z        A = Σ r from the step on

    μ and σ² are means over the n traces of the task of each trace's mean raw and mean squared deviation. The outcome's
    z has ddof 0 and stands at the last step, or at all. `root_length` divides every r by the root of the trace's number
    of steps. The sum grows with the steps left: no |A| exceeds 10 √n, and what would is refused (NO_DIVISOR); the code
    has no limit. That selects answers by their outcomes; in the worlds of docs/bias.md it refuses nothing. Biased for
    the policy gradient. A group of one is refused. Replays of one trace count as one sample, and traces without an
    independent one are refused (`estimators.clusters`).

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none.
      event_reward: float [E], the marks; 0 or absent is good, as the code fills in. NaN counts as 0.
      variant, outcome_at, root_length: as above.
      weight: w.

    Returns:
      `Credit` at level "event", estimand "score".

    Raises:
      CreditError: wrong shapes or dtypes, or an option outside its choices or bounds.

    Reference: AgentEvolver `adv_processor/adca_grpo.py` at a5a8db8 (Apache-2.0), executed, golden `adca_grpo`, with
    `equal_trajectory_weight`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=["a", "a", "b", "b"], reward=[1.0, 1.0, 0.0, 0.0], event_reward=[1, 1, 1, -1])
      >>> rows.gather(credit.adca_grpo(graph, reward, event_reward=rows.event_reward).advantage).tolist()
      [1.1155, 1.0577, -1.1155, -1.1732]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    trace, num = jnp.asarray(graph.trace_ids), graph.num_traces
    row = jnp.asarray(graph.event_mask) & graph.trained_mask & scored[trace]
    path, acts = chains(graph, row), segment_count(trace, num, row) > 0
    good = row if event_reward is None else row & (check_event_array(graph, "event_reward", event_reward)[0] >= 0)
    if variant == "decouple":
        raw = jnp.where(good, 0.2, -0.2).astype(outcome.dtype)
    else:
        sign = jnp.where(outcome > 0.5, 1.0, -1.0).astype(outcome.dtype)[trace]
        share = jnp.where(good == (sign > 0), 1.0, 0.2).astype(outcome.dtype)
        raw = sign * safe_divide(share, segment_sum(share, trace, num, row)[trace])
    mean = _statistics(graph, mean_from_first(raw, trace, num, row), acts)[1][trace]
    square = _statistics(graph, mean_from_first((raw - mean) ** 2, trace, num, row), acts)[1][trace]
    z = (raw - mean) / (jnp.sqrt(square + 1e-8) + 1e-12)
    n, centre, squares, shared = _statistics(graph, outcome, acts)
    deviation = safe_sqrt(safe_divide(squares, n))
    whole = ((outcome - centre) / jnp.where(deviation > 1e-8, deviation, 1))[trace]
    earned = weight * z + jnp.where(path.last | (outcome_at == "all"), whole, 0)
    if root_length:
        earned = safe_divide(earned, safe_sqrt(segment_count(trace, num, row, earned.dtype))[trace])
    amount = path.backward_alike(jnp.ones_like(earned), jnp.where(row, earned, 0))
    n, shared = n[trace], shared[trace]
    reason = jnp.where(jnp.abs(amount) > 10 * safe_sqrt(n), Reason.NO_DIVISOR, Reason.VALID)
    reason = jnp.where(jnp.isfinite(deviation)[trace], reason, Reason.OUT_OF_RANGE)  # else the outcome's z would be 0
    reason = jnp.where(shared, Reason.SHARED_PREFIX, jnp.where(n < 2, Reason.SINGLETON, reason))
    reason = jnp.where(row, reason, Reason.NO_REWARD)
    return _finish(graph, amount, jnp.zeros_like(amount), jnp.ones_like(amount), reason, "event", "score", "adca_grpo")


def _statistics(
    graph: EventGraph, values: jax.Array, where: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Of each trace's task: number, mean and squares of its traces' values; and whether all share a choice: [T]."""
    group, places = jnp.asarray(graph.group_ids), jnp.arange(graph.num_traces, dtype=jnp.int32)
    shared = clusters_of(graph, places, group, where, several=False, dtype=values.dtype)
    m = Members(jnp.where(where, values, 0), group, where, places, shared)
    n, mean, squares = (each[group] for each in statistics(m))
    return n, mean, squares, m.shared_mask


def _finish(
    graph: EventGraph,
    credit: jax.Array,
    baseline: jax.Array,
    scale: jax.Array,
    reason: jax.Array,
    unit: str,
    estimand: Estimand,
    source: str,
) -> Credit:
    return finish(
        graph,
        credit=credit,
        baseline=baseline,
        scale=scale,
        stderr=jnp.full_like(credit, jnp.inf),
        reason=reason,
        unit=unit,
        estimand=estimand,
        source=source,
        centred=False,
        own_outcome=True,
    )
