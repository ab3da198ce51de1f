"""`Credit`, what every method returns, and the two doors of a kernel: checks at entry, padding cleaned at exit."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Literal

import jax
import jax.numpy as jnp

from graphs.errors import ArrayTypeError, CreditError, expect
from graphs.event_graph import Array, EventGraph
from graphs.text import excerpt

__all__ = ["REASONS", "Credit", "Estimand", "Reason", "Recursion", "check_event_array", "check_reward", "finish"]

Estimand = Literal["increment", "return", "total", "effect", "share", "score", "scale"]
"""What an amount estimates; composition adds only like to like (`docs/data-model.md`)."""


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


REASONS: tuple[str, ...] = (
    "",
    "padding",
    "not an action of the team's policy",
    "the trace has no reward",
    "nothing to compare with: the group has one member",
    "the log lacks the evidence that the method needs here",
    "too few members to estimate the scale",
    "no sibling: one alternative under this context",
    "a single replay, which is this trace's own outcome",
    "the action's propensity is missing, 0 or 1: no alternative was possible",
    "no finite number: rewards, evidence or options beyond the arithmetic, whose squares or differences overflow",
    "no support: the log does not show that the policy that acted could choose all that the target policy can",
    "too few effective samples: a few large weights carry the estimate",
    "the contexts differ: one choice is logged under several, so its alternatives were not drawn in one situation",
    "logged probabilities contradict each other: those of the alternatives sum to more than 1",
    "no independent trace: every other trace that it is compared with shares a choice with it (replays of one prefix)",
)
"""The reason for each code, in words; the empty string is the code of a valid event."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Recursion:
    """How a return holds what came after: A_t = δ_t + γλ A_{t+1}, with t + 1 the next action of the same chain.

    Attributes:
      discount, lambda_: γ and λ, numbers.
      along: "trace", "agent" or "causal": whose actions a chain goes through; "causal" has means over several.
    """

    discount: Array | float
    lambda_: Array | float
    along: Literal["trace", "agent", "causal"] = dataclasses.field(default="trace", metadata={"static": True})


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
        the data say nothing about it.
      reason: int8, a `Reason` code; 0 means valid.
      unit: the level whose units share one number ("trace", "role", "agent", "turn", "event").
      estimand: what the amount estimates; see `Estimand`.
      source: whose errors this shares: claims of one source never add precision.
      centred: whether its mean under the policy that acted is zero.
      own_outcome: whether this trace's own reward went into it.
      recursion: of a return, how it holds what came after, so that it can be taken apart into increments; None of
        everything else.
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

    @property
    def advantage(self) -> Array:
        """(credit - baseline) / scale, [E]: what multiplies the policy gradient."""
        return (self.credit - self.baseline) / self.scale

    @property
    def valid(self) -> Array:
        """bool [E], False where the data cannot identify an answer; `reason` says why."""
        return self.reason == Reason.VALID


def check_reward(graph: EventGraph, reward: Array) -> tuple[jax.Array, jax.Array]:
    """The reward as float32 or wider, 0 where there is none, and the mask of traces that have one: [T], [T].

    A reward that is not finite means that the log has none (as in `graphs.Traces.reward`).

    Raises:
      ArrayTypeError: `reward` is no array of a floating type; both a CreditError and a TypeError.
      CreditError: `graph` is no event graph, or `reward` has not one entry for each trace.
    """
    expect("graph", graph, EventGraph, "an EventGraph, as of credit.read(...).graph or credit.from_columns")
    reward = _floating("reward", reward)
    if reward.shape != (graph.num_traces,):
        raise CreditError(f"reward has shape {reward.shape}; expected ({graph.num_traces},), one entry for each trace")
    scored = jnp.asarray(graph.trace_mask) & jnp.isfinite(reward)
    return jnp.where(scored, reward, jnp.zeros_like(reward)), scored


def check_event_array(graph: EventGraph, name: str, values: Array) -> tuple[jax.Array, jax.Array]:
    """Evidence per event as float32 or wider, 0 where absent, and the mask of real events that have it: [E], [E].

    Raises:
      ArrayTypeError: no array of a floating type; both a CreditError and a TypeError.
      CreditError: not one entry for each event.
    """
    values = _floating(name, values)
    if values.shape != (graph.num_events,):
        raise CreditError(f"{name} has shape {values.shape}; expected ({graph.num_events},), one entry for each event")
    there = jnp.asarray(graph.event_mask) & jnp.isfinite(values)
    return jnp.where(there, values, jnp.zeros_like(values)), there


def _floating(name: str, values: Array) -> jax.Array:
    if values is None or isinstance(values, str | bytes | Mapping):  # the rest may be arrays of many libraries
        raise ArrayTypeError(
            f"{name} is {excerpt(values)}, of type {type(values).__name__}; expected an array of floats"
        )
    values = jnp.asarray(values)
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise ArrayTypeError(f"{name} has dtype {values.dtype}; expected a floating type (convert it, e.g. float32)")
    return values.astype(jnp.promote_types(values.dtype, jnp.float32))


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
    own_outcome: bool,
    recursion: Recursion | None = None,
) -> Credit:
    """Clean padding and invalid events, and name what was computed: the only way out of an estimator.

    `reason` [E] is the estimator's own; padding and events that are no actions override it here. What is not a finite
    advantage over a positive scale is no answer, wherever it came from: OUT_OF_RANGE.
    """
    answer = jnp.isfinite((credit - baseline) / scale) & jnp.isfinite(scale) & (scale > 0) & ~jnp.isnan(stderr)
    reason = jnp.where((reason == Reason.VALID) & ~answer, Reason.OUT_OF_RANGE, reason)
    reason = jnp.where(jnp.asarray(graph.action_mask), reason, Reason.NOT_AN_ACTION)
    reason = jnp.where(jnp.asarray(graph.event_mask), reason, Reason.PADDING).astype(jnp.int8)
    valid = reason == Reason.VALID
    zero = jnp.zeros_like(credit)
    return Credit(
        credit=jnp.where(valid, credit, zero),
        baseline=jnp.where(valid, baseline, zero),
        scale=jnp.where(valid, scale, jnp.ones_like(credit)),
        stderr=jnp.where(valid, stderr, zero),
        reason=reason,
        unit=unit,
        estimand=estimand,
        source=source,
        centred=centred,
        own_outcome=own_outcome,
        recursion=recursion,
    )
