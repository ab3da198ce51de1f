"""`Credit`, what every method returns, and the two doors of a kernel: checks at entry, padding cleaned at exit."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from estimators.kept_functions import kept_compiled
from graphs.errors import ArrayTypeError, CreditError, expect
from graphs.event_graph import Array, EventGraph
from graphs.floats import floating
from graphs.html_table import html_table
from graphs.segment import segment_count
from graphs.text import counted, excerpt

__all__ = [
    "OF_ACTIONS",
    "REASONS",
    "Credit",
    "Estimand",
    "Reason",
    "Recursion",
    "StateValues",
    "batch_fingerprint",
    "check_batch",
    "check_event_array",
    "check_reward",
    "finish",
    "finish_score",
]

Estimand = Literal["increment", "return", "total", "contrast", "effect", "share", "score", "scale"]
"""What an amount estimates. Composition adds only amounts of one estimand (`docs/data-model.md`)."""

OF_ACTIONS: tuple[Estimand, ...] = ("increment", "contrast", "effect", "share")
"""What an action changed. The others compare returns, of which a trace has one: their errors are its own spread."""


class Reason(enum.IntEnum):
    """Codes of `Credit.reason`: why an event has no credit. Words for people are in `REASONS`."""

    VALID = 0
    PADDING = 1
    NOT_AN_ACTION = 2
    NO_REWARD = 3
    SINGLETON = 4
    NO_EVIDENCE = 5
    TOO_FEW = 6
    NO_SIBLING = 7
    ONE_REPLAY = 8
    NO_OVERLAP = 9
    OUT_OF_RANGE = 10
    NO_SUPPORT = 11
    LOW_ESS = 12
    CONTEXTS_DIFFER = 13
    CONTRADICTION = 14
    SHARED_PREFIX = 15
    FROZEN = 16
    NO_SPREAD = 17
    NO_DIVISOR = 18
    AT_ONCE = 19


REASONS: tuple[str, ...] = (
    "",
    "padding",
    "not an action of the team's policy",
    "no outcome is known",
    "nothing to compare with: the group has one member",
    "the log lacks the evidence that the method needs here",
    "too few members: the method compares with more than there are",
    "no sibling: one alternative under this context",
    "a single replay, which is this trace's own outcome",
    "the action's propensity is missing, or not between 0 and 1: no alternative was possible",
    "no finite number: the method's arithmetic gave NaN or overflowed",
    "no support: the log does not show that the logging policy could choose every alternative of the target policy",
    "too few effective samples: a few large weights dominate the estimate",
    "the contexts differ: a node is logged under several contexts, a context in several groups, or a joint turn whose "
    "actions share no one draw, here or in a decision that follows: no siblings",
    "logged numbers contradict each other or the draws: two of one unit, chances above 1 in sum, a mean weight not 1",
    "no independent trace: all traces to compare with share a choice with this one (replays of one prefix)",
    "an action of a frozen agent",
    "all members of the group have the same score, and such groups are filtered out",
    "beyond the method's bound: the divisor (spread, mean or weight of the group) is 0 or less, or the advantage would "
    "exceed the bound",
    "several agents act at once: what each brought of what their joint turn did is not known",
)
"""The reason for each code, in words; the empty string is the code of a valid event."""


class StateValues(NamedTuple):
    """Expected returns from actions on, estimated from other traces; [E], NaN where unknown.

    Attributes:
      value: the expected return.
      stderr: its standard error.
      spread: the standard deviation of a single return around it.
    """

    value: Array
    stderr: Array
    spread: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Recursion:
    """How a return holds what came after: A_t = δ_t + γλ A_{t+1}, with t + 1 the next action of the same chain.

    Attributes:
      discount, lambda_: γ and λ, numbers.
      along: "trace", "agent" or "causal": whose actions a chain goes through; "causal" has means over several.
      values: of a return with λ = 1 whose baseline is no value of a state: the values whose differences are increments.
        None where the baseline is the value.
    """

    discount: Array | float
    lambda_: Array | float
    along: Literal["trace", "agent", "causal"] = dataclasses.field(default="trace", metadata={"static": True})
    values: StateValues | None = None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Credit:
    """Credit per event: an amount, what is subtracted from it, what it is divided by, and how far to trust it.

    `advantage = (credit - baseline) / scale` is derived, so it can never disagree with its parts. All arrays are [E],
    constant within a unit, exactly 0 (`scale` exactly 1) in padding and wherever `valid` is False.

    Attributes:
      credit: the amount, in units of reward.
      baseline: what the amount is compared with, in units of reward.
      scale: what the difference is divided by.
      stderr: standard error of `credit - baseline` as an estimate of its estimand, in units of reward; infinite where
        it is unknown.
      reason: int8, a `Reason` code; 0 means valid. `why` has the words.
      unit: the level whose units share one number ("trace", "role", "agent", "turn", "event").
      estimand: what the amount estimates; see `Estimand`.
      source: the source of its errors: several claims of one source do not add precision.
      centred: whether its mean under the policy that acted is zero.
      own_outcome: whether this trace's own outcome is in any of its numbers; `holds_outcome` says in which.
      recursion: for a return with values of states, its discount and λ, by which it converts into increments; else
        None.
      outcome_mask: bool [E], the events whose amount moves with their own trace's outcome; None where all do, or none.
      repeats: bool [E], events that have the number of an earlier one, as all actions of a joint turn have that of the
        turn, so that a sum over the trace would count it again; None where no event can.
      batch: uint32, `batch_fingerprint` of the graph that it was computed on; None if unknown.
      unpaid: whether the method takes rewards at events and was called without them.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0, 0], trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> result = credit.rloo(graph, reward)
      >>> rows.gather(result.credit).tolist(), rows.gather(result.baseline).tolist(), result.unit, result.estimand
      ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5], 'trace', 'total')
    """

    credit: Array
    baseline: Array
    scale: Array
    stderr: Array
    reason: Array
    unit: str = dataclasses.field(metadata={"static": True})
    estimand: Estimand = dataclasses.field(metadata={"static": True})
    source: str = dataclasses.field(metadata={"static": True})
    centred: bool = dataclasses.field(metadata={"static": True})
    own_outcome: bool = dataclasses.field(metadata={"static": True})
    recursion: Recursion | None = None
    batch: Array | None = None
    repeats: Array | None = None
    outcome_mask: Array | None = None
    unpaid: bool = dataclasses.field(default=False, metadata={"static": True})

    @property
    def advantage(self) -> Array:
        """(credit - baseline) / scale, [E]: what multiplies the policy gradient."""
        return (self.credit - self.baseline) / self.scale

    @property
    def valid(self) -> Array:
        """bool [E], False where the data cannot identify an answer; `reason` says why."""
        return self.reason == np.int8(Reason.VALID)

    @property
    def holds_outcome(self) -> Array:
        """bool [E], the valid events whose amount moves with their own trace's outcome."""
        if self.outcome_mask is not None:
            return self.valid & self.outcome_mask
        return self.valid if self.own_outcome else jnp.zeros_like(self.valid)

    @property
    def why(self) -> np.ndarray:
        """`reason` in words, of [E], "" where valid; on the host."""
        words: np.ndarray = np.array(REASONS)[np.asarray(self.reason)]
        return words

    def __repr__(self) -> str:
        what = f"Credit({self.source!r}, unit {self.unit!r}, estimand {self.estimand!r}"
        leaves = (self.credit, self.baseline, self.scale, self.reason)
        if any(isinstance(x, jax.core.Tracer) or not isinstance(x, jax.Array | np.ndarray) for x in leaves):
            return f"{what}, not computed yet)"
        valid = np.asarray(self.valid)
        advantage = np.asarray(self.advantage)[valid]
        span = f", advantages {advantage.min():.4g} to {advantage.max():.4g}" if len(advantage) else ""
        return f"{what}, {counted(int(valid.sum()), 'event')} with a number{span})"

    def _repr_html_(self) -> str:
        """What the numbers are, how many there are, and why others are absent, for notebooks."""
        reason, valid = np.asarray(self.reason), np.asarray(self.valid)
        advantage = np.asarray(self.advantage)[valid]
        facts: dict[str, object] = {
            "source": self.source,
            "unit": self.unit,
            "estimand": self.estimand,
            "events with a number": int(valid.sum()),
        }
        if len(advantage):
            facts |= {"advantage, mean": float(advantage.mean()), "advantage, least": float(advantage.min())}
            facts |= {"advantage, most": float(advantage.max())}
        codes = [code for code in np.unique(reason).tolist() if code not in (Reason.VALID, Reason.PADDING)]
        rows = [{"without a number": REASONS[code], "events": int((reason == code).sum())} for code in codes]
        return html_table("Credit", facts, rows)


def check_reward(graph: EventGraph, reward: Array, event_reward: Array | None = None) -> tuple[jax.Array, jax.Array]:
    """The reward as float32 or wider, 0 where there is none, and the mask of traces that have one: [T], [T].

    A reward that is not finite means that the log has none: a compiled function cannot refuse by value, as readers,
    `credit.from_columns` and `RowAdvantages` do. An infinite `event_reward` leaves the trace without one.

    Args:
      graph: the batch.
      reward: float [T].
      event_reward: float [E], of a method that adds it to the outcome, or None. NaN counts as 0.

    Raises:
      ArrayTypeError: `reward` is no array of a floating type; both a CreditError and a TypeError.
      CreditError: `graph` is no event graph, or `reward` has not one entry for each trace.

    Examples:
      >>> import credit
      >>> from estimators.base import check_reward
      >>> graph, reward, rows = credit.from_columns(group=[0], trace=["a"], reward=[1.0], traces=2, events=2, agents=2)
      >>> value, scored = check_reward(graph, reward)
      >>> value.tolist(), scored.tolist()
      ([1.0, 0.0], [True, False])
    """
    expect("graph", graph, EventGraph, "an EventGraph, as of credit.read(...).graph or credit.from_columns")
    reward = _floating("reward", reward)
    if reward.shape != (graph.num_traces,):
        raise CreditError(f"reward has shape {reward.shape}; expected ({graph.num_traces},), one entry for each trace")
    scored = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    if event_reward is not None:
        infinite = jnp.asarray(graph.event_mask) & jnp.isinf(_floating("event_reward", event_reward))
        scored = scored & (segment_count(graph.trace_ids, graph.num_traces, infinite) == 0)
    return jnp.where(scored, reward, jnp.zeros_like(reward)), scored


def check_event_array(graph: EventGraph, name: str, values: Array) -> tuple[jax.Array, jax.Array]:
    """Evidence per event as float32 or wider, 0 where absent, and the mask of real events that have it: [E], [E].

    Args:
      graph: the batch.
      name: of the evidence, for errors.
      values: float [E]; NaN where absent. What is not finite counts as absent, since a compiled function cannot refuse
        by value; readers and `credit.from_columns` do.

    Raises:
      ArrayTypeError: no array of a floating type; both a CreditError and a TypeError.
      CreditError: not one entry for each event.

    Examples:
      >>> import credit
      >>> from estimators.base import check_event_array
      >>> graph, reward, rows = credit.from_columns(group=[0], trace=["a"], reward=[1.0], traces=2, events=2, agents=2)
      >>> import numpy as np
      >>> value, stated = check_event_array(graph, "value", np.array([0.5, np.nan]))
      >>> value.tolist(), stated.tolist()
      ([0.5, 0.0], [True, False])
    """
    values = _floating(name, values)
    if values.shape != (graph.num_events,):
        raise CreditError(f"{name} has shape {values.shape}; expected ({graph.num_events},), one entry for each event")
    stated_mask = jnp.asarray(graph.event_mask) & jnp.isfinite(values)
    return jnp.where(stated_mask, values, jnp.zeros_like(values)), stated_mask


def _floating(name: str, values: Array) -> jax.Array:
    if values is None or isinstance(values, str | bytes | Mapping):  # the rest may be arrays of many libraries
        raise ArrayTypeError(
            f"{name} is {excerpt(values)}, of type {type(values).__name__}; expected an array of floats"
        )
    return floating(name, values)


def finish(
    graph: EventGraph,
    *,
    credit: Array,
    baseline: Array,
    scale: Array,
    stderr: Array,
    reason: Array,
    unit: str,
    estimand: Estimand,
    source: str,
    centred: bool,
    own_outcome: bool | Array,
    recursion: Recursion | None = None,
    repeats: Array | None = None,
) -> Credit:
    """The `Credit` of an estimator, cleaned of padding and of invalid events: the only way out of an estimator.

    Padding and events that are no actions override `reason`. What is no finite advantage over a positive scale is
    `Reason.OUT_OF_RANGE`. Where an event is invalid, its numbers are 0 and its scale is 1.

    Args:
      graph: the batch.
      credit: float [E], the amount, in units of reward.
      baseline: float [E], what the amount is compared with, in units of reward.
      scale: float [E], what the difference is divided by.
      stderr: float [E], standard error of `credit - baseline`, in units of reward; infinite where unknown. NaN becomes
        infinite.
      reason: int [E], `Reason` codes of the estimator's own.
      unit: the level whose units share one number ("trace", "role", "agent", "turn", "event").
      estimand: what the amount estimates, one of `Estimand`.
      source: whose errors the result shares: claims of one source never add precision.
      centred: whether the mean of the amount under the policy that acted is zero.
      own_outcome: whether this trace's own outcome went into it, or bool [E], where it did so in some events alone.
      recursion: of a return with values of states, how it holds what came after; None of everything else.
      repeats: bool [E], events that have the number of an earlier one.

    Returns:
      `Credit` with `batch`, the fingerprint of `graph`.

    Examples:
      >>> import credit
      >>> from estimators.base import finish
      >>> graph, reward, rows = credit.from_columns(group=[0], trace=["a"], reward=[1.0], traces=2, events=2, agents=2)
      >>> import jax.numpy as jnp
      >>> one = jnp.ones(2)
      >>> result = finish(graph, credit=one, baseline=0 * one, scale=one, stderr=one, reason=jnp.zeros(2, int),
      ...                 unit="event", estimand="score", source="example", centred=False, own_outcome=False)
      >>> result.advantage.tolist(), result.valid.tolist()
      ([1.0, 0.0], [True, False])
    """
    credit, baseline, scale, stderr, reason = _cleaned(graph, credit, baseline, scale, stderr, reason)
    in_some = isinstance(own_outcome, jax.Array | np.ndarray)
    return Credit(
        credit=credit,
        baseline=baseline,
        scale=scale,
        stderr=stderr,
        reason=reason,
        unit=unit,
        estimand=estimand,
        source=source,
        centred=centred,
        own_outcome=True if in_some else bool(own_outcome),
        recursion=recursion,
        batch=batch_fingerprint(graph),
        repeats=repeats,
        outcome_mask=own_outcome if in_some else None,
    )


# Claims of one's own come here uncompiled: each operation would be compiled by itself, for seconds in all.
@functools.partial(jax.jit, inline=True)
def _cleaned(
    graph: EventGraph, credit: Array, baseline: Array, scale: Array, stderr: Array, reason: Array
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """What `finish` makes of the numbers of an estimator, and the reasons."""
    # No error decides what is valid: a jitted step that reads advantages alone computes none.
    stderr = jnp.where(jnp.isnan(stderr), jnp.inf, stderr)
    answer = jnp.isfinite((credit - baseline) / scale) & jnp.isfinite(scale) & (scale > 0)
    reason = jnp.asarray(reason, jnp.int8)
    reason = jnp.where((reason == np.int8(Reason.VALID)) & ~answer, np.int8(Reason.OUT_OF_RANGE), reason)
    # The later reason wins: padding before no action, before a frozen agent, before what the method says.
    reason = jnp.where(graph.trained_mask, reason, np.int8(Reason.FROZEN))
    reason = jnp.where(jnp.asarray(graph.action_mask), reason, np.int8(Reason.NOT_AN_ACTION))
    reason = jnp.where(jnp.asarray(graph.event_mask), reason, np.int8(Reason.PADDING))
    valid = reason == np.int8(Reason.VALID)
    zero = jnp.zeros_like(credit)
    return (
        jnp.where(valid, credit, zero),
        jnp.where(valid, baseline, zero),
        jnp.where(valid, scale, jnp.ones_like(credit)),
        jnp.where(valid, stderr, zero),
        reason,
    )


@kept_compiled
@functools.partial(jax.jit, inline=True)
def batch_fingerprint(graph: EventGraph) -> jax.Array:
    """A hash of who acted when in a batch, uint32: results of another batch have another one; padding changes nothing.

    It holds the type, trace, agent, turn and position of every real event and the names and groups of agents and
    traces, and no rewards: batches of one fixed pipeline have the same.

    Args:
      graph: of the batch.

    Examples:
      >>> import credit
      >>> one, _, _ = credit.from_columns(group=[0, 0], trace=[0, 1], reward=[1.0, 0.0])
      >>> other, _, _ = credit.from_columns(group=[0, 1], trace=[0, 1], reward=[1.0, 0.0])
      >>> bool(batch_fingerprint(one) == batch_fingerprint(other))
      False
    """
    events = (graph.event_type, graph.trace_ids, graph.agent_ids, graph.turn_ids)
    agents = (graph.agent_name_ids, graph.agent_role_ids, graph.agent_trace)
    parts = ((events, graph.event_mask), (agents, graph.agent_mask), ((graph.group_ids,), graph.trace_mask))
    total: jax.Array = jnp.uint32(0)
    for columns, mask in parts:
        total = total * jnp.uint32(0x85EBCA77) + _hash(columns, mask)
    return total


def _hash(columns: tuple[Array, ...], mask: Array) -> jax.Array:
    """The sum over masked rows of a mixture of their columns and position, modulo 2**32."""
    mixed = jnp.arange(jnp.shape(mask)[0], dtype=jnp.uint32)
    for column in columns:
        mixed = (mixed ^ jnp.asarray(column).astype(jnp.uint32)) * jnp.uint32(0x9E3779B1)
        mixed = mixed ^ (mixed >> jnp.uint32(15))
    return jnp.sum(jnp.where(mask, mixed, jnp.uint32(0)), dtype=jnp.uint32)


def check_batch(graph: EventGraph, name: str, credit: Credit) -> None:
    """Refuse a result that was computed on another batch than the one it is used with; on the host.

    Small batches are padded to the same sizes, so that shapes alone do not tell them apart.

    Args:
      graph: of the batch where it is used.
      name: of the result, for messages.
      credit: the result.

    Raises:
      CreditError: another number of events, or the fingerprint of another graph.

    Examples:
      >>> import credit
      >>> one, reward, _ = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> other, more, _ = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
      >>> check_batch(one, "credit", credit.rloo(one, reward))
      >>> check_batch(one, "credit", credit.rloo(other, more))  # doctest: +ELLIPSIS
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: credit is the result of another batch: ...
    """
    if jnp.shape(credit.credit) != (graph.num_events,):
        wanted = f"({graph.num_events},), one entry for each event of this batch"
        raise CreditError(f"{name} has shape {jnp.shape(credit.credit)}; expected {wanted}")
    if credit.batch is not None and bool(np.any(np.asarray(credit.batch) != np.asarray(batch_fingerprint(graph)))):
        raise CreditError(
            f"{name} is the result of another batch: its fingerprint is not that of this graph; "
            "expected results of methods run on the same graph"
        )


def finish_score(graph: EventGraph, amount: Array, reason: Array, unit: str, source: str) -> Credit:
    """The result of a method whose advantages are scores: nothing subtracted or divided by, and no error known.

    Args:
      graph: the batch.
      amount: float [E].
      reason: int [E], `Reason`.
      unit, source: as of `Credit`.

    Examples:
      >>> import credit, jax.numpy as jnp
      >>> graph, _, rows = credit.from_columns(group=[0], trace=["a"], reward=[1.0])
      >>> amount = jnp.ones(graph.num_events)
      >>> rows.gather(finish_score(graph, amount, jnp.zeros(graph.num_events, int), "event", "mine").credit).tolist()
      [1.0]
    """
    return finish(
        graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=jnp.full_like(amount, jnp.inf),
        reason=reason,
        unit=unit,
        estimand="score",
        source=source,
        centred=False,
        own_outcome=True,
    )
