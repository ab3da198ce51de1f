"""Increments of a critic's V at each event, with their error, and the part of the reward that they leave.

An ensemble gives V̂ of every prefix from each member; increments and their sums are formed member by member, so that
the spread of a sum is right although the errors of neighbouring increments cancel. Pure functions of arrays: values
may come from `estimators.critic.train`, from a critic of one's own, or from the log (evidence `value`).

Legend: M members.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Reason, check_event_array, check_reward, finish
from estimators.critic.validation import stderr_factor
from estimators.options import checked_options
from estimators.sequence.chains import chains, rewards_of_turns, several_at_once, values_of_turns
from graphs.event_graph import Array, EventGraph, EventType
from graphs.segment import safe_sqrt
from graphs.structure.forest import real_edges

__all__ = [
    "DECISIONS",
    "INTERVALS_WITHHELD",
    "CriticCredit",
    "PrefixValues",
    "Total",
    "block_sums",
    "critic_credit",
    "critic_increments",
    "decision_kinds",
    "decision_totals",
    "member_spread",
    "prefix_values",
]

INTERVALS_WITHHELD = (
    "no standard error is stated: a log has one outcome for each prefix, so the critic's error cannot be told from the "
    "variance of the outcome, and the spread of the ensemble does not show what all members get wrong alike; see "
    "docs/critic.md for how often it held where the truth is known"
)
"""Why increments of a learned critic come without a standard error, in words."""

DECISIONS = ("spawn", "delegate", "communicate", "aggregate", "stop")
"""Kinds of decisions that `decision_totals` adds up."""


class PrefixValues(NamedTuple):
    """V̂ around each event, by member: float [M, E], 0 in padding. `before` a trace's first event is that of ∅."""

    before: jax.Array
    after: jax.Array


class CriticCredit(NamedTuple):
    """Increments of V̂, and the rest of the reward: R = expected + Σ credit + Σ environment + outcome on every trace.

    Attributes:
      credit: `Credit` of estimand "increment".
      expected: float [T], V̂ before the first action: what the trace was worth before anybody of the team acted.
      environment: float [E], increments of events behind it that no policy chose; 0 elsewhere.
      outcome: float [T], R − V̂ at the end, what no event explains; 0 where there is no reward.
      undecided: bool [E], actions whose sign is not reported: the increment is within 1.96 spreads of 0, or signs of
        its region were not validated on held-out tasks.
      spread: float [E], how far the members disagree (`member_spread`); infinite for one member. It is no standard
        error: it does not show what all members get wrong alike.
    """

    credit: Credit
    expected: jax.Array
    environment: jax.Array
    outcome: jax.Array
    undecided: jax.Array
    spread: jax.Array


class Total(NamedTuple):
    """Sum of the increments of one kind of decision.

    Attributes:
      decisions: how many there are.
      total, spread: their sum over the batch, and how far the members disagree about it (infinite for one member).
      undecided: whether the sum is within 1.96 spreads of 0.
    """

    decisions: int
    total: float
    spread: float
    undecided: bool


@jax.jit
def prefix_values(graph: EventGraph, after: Array, start: Array) -> PrefixValues:
    """V̂ before and after each event from V̂ after each event and of the empty prefix.

    Args:
      after: float [M, E], V̂(G≤e) of each member.
      start: float [M], V̂(∅).
    """
    after, start = jnp.asarray(after), jnp.asarray(start)
    real, trace = jnp.asarray(graph.event_mask), jnp.asarray(graph.trace_ids)
    begins = jnp.concatenate([jnp.ones(1, bool), (trace[1:] != trace[:-1]) | ~real[:-1]])
    shifted = jnp.concatenate([after[:, :1], after[:, :-1]], axis=1)
    before = jnp.where(begins[None], start[:, None], shifted)
    return PrefixValues(jnp.where(real[None], before, 0), jnp.where(real[None], after, 0))


@checked_options
@functools.partial(jax.jit, static_argnames=("source",))
def critic_increments(
    graph: EventGraph,
    reward: Array,
    *,
    value: Array,
    value_after: Array | None = None,
    value_stderr: Array | None = None,
    event_reward: Array | None = None,
    source: str = "critic",
) -> Credit:
    """The change in expected return by each action, from a critic.

        A = what it earned + V after it − V before it

    V is the expected return from there on: the outcome and the rewards at events that are still to come. Without
    `value_after`, V after an action is V before the trace's next action (one of a frozen agent that has no V is passed
    over), and R after the last one: then an increment is a claim on the block from the action up to the next, with the
    rewards at its events, and the last one holds the luck R − V_T, too. Rewards of a joint turn are still to come until
    its last action. These increments add up to the return from the first action on, less V before it. Where several
    agents act at once, only what all did together is known, and no action has an increment; V before such a turn is the
    mean of those logged at its actions.

    The bias is that of V. With V exact, these are the true increments, and they are centred under the policy.

    Args:
      graph: the batch.
      reward: float [T], outcome of each trace; NaN where a trace has none, which then gets no credit.
      value: float [E], V before each event (evidence `value`); NaN where there is none.
      value_after: float [E], V after each event; NaN where there is none.
      value_stderr: float [E], standard error of the difference; by default unknown, infinite.
      event_reward: float [E], rewards at single events besides the outcome, or None. NaN counts as 0.
      source: the critic's name; claims of one source share their errors.

    Returns:
      `Credit` at level "event", estimand "increment".

    Raises:
      CreditError: wrong shapes or dtypes.

    Reference: Ng, Harada and Russell 1999 for the identity; docs/critic.md.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], reward=[1.0, 1.0], evidence={"value": [0.25, 0.5]})
      >>> rows.gather(credit.critic(graph, reward, value=rows.evidence["value"]).advantage).tolist()
      [0.25, 0.5]
    """
    outcome, scored = check_reward(graph, reward, event_reward)
    trace, real = jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    before, known_mask = check_event_array(graph, "value", value)
    before = before.astype(outcome.dtype)
    earned, at_once = jnp.zeros_like(before), jnp.zeros_like(real)
    own: bool | jax.Array = False
    if event_reward is not None:
        earned = rewards_of_turns(graph, event_reward).astype(before.dtype)
    if value_after is None:
        # A frozen agent's action without a value, as a tool's row, is a part of the action before it.
        row = real & jnp.asarray(graph.action_mask) & scored[trace] & (known_mask | graph.trained_mask)
        actions, at_once = chains(graph, row), several_at_once(graph, row)
        earned = actions.gathered(earned, real)
        of_state, stated = values_of_turns(graph, at_once, before, known_mask)
        after = jnp.where(actions.last, outcome[trace], actions.following(of_state))
        known_mask = known_mask & (actions.last | actions.following(stated))
        own = actions.last
    else:
        after, after_mask = check_event_array(graph, "value_after", value_after)
        known_mask = known_mask & after_mask
    error = jnp.full_like(before, jnp.inf)
    if value_stderr is not None:
        given, given_mask = check_event_array(graph, "value_stderr", value_stderr)
        error = jnp.where(given_mask, given.astype(before.dtype), jnp.inf)
    reason = jnp.where(known_mask, jnp.where(at_once, Reason.AT_ONCE, Reason.VALID), Reason.NO_EVIDENCE)
    amount = jnp.where(known_mask, earned + (after.astype(before.dtype) - before), 0)
    return finish(
        graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=error,
        reason=jnp.where(scored[trace], reason, Reason.NO_REWARD),
        unit="event",
        estimand="increment",
        source=source,
        centred=False,
        own_outcome=own,
    )


@jax.jit
def critic_credit(
    graph: EventGraph, reward: Array, values: PrefixValues, validated_mask: Array | None = None
) -> CriticCredit:
    """Increments of an ensemble, and the rest of the reward.

    `credit` is the mean over members of V̂(G≤e) − V̂(G<e). Its `stderr` is infinite: no standard error is stated, since
    the error of a learned critic cannot be measured on a log (`INTERVALS_WITHHELD`). `spread` is how far the members
    disagree.

    Args:
      graph: a batch.
      reward: float [T]; a trace without one gets no credit.
      values: V̂ around each event, float [M, E].
      validated_mask: bool [E], events whose signs held on held-out tasks
        (`estimators.critic.validation.validated_events`); None takes all as validated.

    Returns:
      `CriticCredit`; its parts add up to R on every trace.
    """
    outcome, scored = check_reward(graph, reward)
    trace, real = jnp.asarray(graph.trace_ids), jnp.asarray(graph.event_mask)
    action, num = real & jnp.asarray(graph.action_mask), graph.num_traces
    before, after = values.before.mean(axis=0), values.after.mean(axis=0)
    spread = member_spread(values.after - values.before)
    validated = jnp.ones_like(real) if validated_mask is None else jnp.asarray(validated_mask)
    credit = critic_increments(graph, reward, value=before, value_after=after)
    place = jnp.arange(real.shape[0], dtype=jnp.int32)
    first = jax.ops.segment_min(jnp.where(action, place, real.shape[0]), trace, num_segments=num)
    last = jax.ops.segment_max(jnp.where(real, place, -1), trace, num_segments=num)
    acts, some = first < real.shape[0], last >= 0
    expected = jnp.where(acts, before[jnp.where(acts, first, 0)], after[jnp.maximum(last, 0)])
    scored = scored & some
    environment = real & ~action & (place > first[trace]) & scored[trace]
    return CriticCredit(
        credit=credit,
        expected=jnp.where(scored, expected, 0),
        environment=jnp.where(environment, after - before, 0),
        outcome=jnp.where(scored, outcome - after[jnp.maximum(last, 0)], 0),
        undecided=credit.valid & ~(validated & (jnp.abs(credit.credit) > 1.959964 * spread)),
        spread=jnp.where(credit.valid, spread, 0),
    )


def block_sums(values: PrefixValues, first: Array, last: Array) -> tuple[jax.Array, jax.Array]:
    """Sum of the increments from event `first` to event `last`, V̂ at the end − V̂ at the start, and its spread.

    Read off the ends, not added up: errors of neighbouring increments cancel, so adding their variances would overstate
    how far members disagree. The sum over concurrent events does not depend on the order in which they were logged.

    Args:
      first, last: int [B], positions in one trace, `first` at or before `last`.

    Returns:
      float [B], the sums, and float [B], their `member_spread`.
    """
    amount = values.after[:, jnp.asarray(last)] - values.before[:, jnp.asarray(first)]
    return amount.mean(axis=0), member_spread(amount)


def decision_kinds(graph: EventGraph) -> dict[str, np.ndarray]:
    """Which actions are decisions of each of `DECISIONS`: bool [E] each, disjoint.

    By type, except that a message to an instance that its sender spawned is a delegation, as is a decision of the
    orchestrator; other messages are communication. Where a log makes the model call the action, its type decides.
    """
    kind = np.asarray(graph.event_type)
    action = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    agent, parent = np.asarray(graph.agent_ids), np.asarray(graph.agent_parent)
    senders, receivers = real_edges(graph)
    down = (parent[agent[receivers]] == agent[senders]) & (agent[receivers] != agent[senders])
    assigns = np.zeros(len(kind), bool)
    assigns[senders[down]] = True
    message = kind == EventType.MESSAGE
    return {
        "spawn": action & (kind == EventType.SPAWN),
        "delegate": action & ((kind == EventType.ORCHESTRATOR_DECISION) | (message & assigns)),
        "communicate": action & message & ~assigns,
        "aggregate": action & (kind == EventType.AGGREGATE),
        "stop": action & (kind == EventType.STOP),
    }


def decision_totals(graph: EventGraph, values: PrefixValues) -> dict[str, Total]:
    """The summed value of the decisions of each kind over the batch, with the spread over members."""
    change = np.asarray(values.after - values.before, np.float64)
    totals = {}
    for name, where in decision_kinds(graph).items():
        sums = change[:, where].sum(axis=1)
        spread = float(sums.std(ddof=1)) * stderr_factor(len(sums)) if len(sums) > 1 else float("inf")
        mean = float(sums.mean())
        totals[name] = Total(int(where.sum()), mean, spread, abs(mean) <= 1.959964 * spread)
    return totals


def member_spread(values: jax.Array) -> jax.Array:
    """How far M members disagree, [M, ...] to [...]; infinite for one member.

    The standard deviation over members (ddof 1), times the 97.5 % point of Student's t with M − 1 degrees of freedom
    over 1.96: a fresh draw of the ensemble's own distribution lies within ± 1.96 spreads of the mean in 95 % of cases.
    The truth need not (`INTERVALS_WITHHELD`).
    """
    if values.shape[0] == 1:
        return jnp.full(values.shape[1:], jnp.inf, values.dtype)
    square = jnp.sum((values - values.mean(axis=0, keepdims=True)) ** 2, axis=0) / (values.shape[0] - 1)
    return stderr_factor(values.shape[0]) * safe_sqrt(square)
