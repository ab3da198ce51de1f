"""Advantages from a ledger, and the conditions under which their policy gradient has the right mean.

A partition is a report; it is not automatically an advantage. What each kind is, and when it may be trusted:

    control   A_e = (R − b) − Σ_{f≠e} β_f c_f     unbiased however wrong the claims, under the conditions below
    entry     A_e = x_e, the ledger's entry        less variance; biased wherever the claims are
    even      A_e = n x_e, n actions of the trace  R − b on each action; rule "shares" without claims only

The conditions of `control`: the baseline and the coefficients come from other traces; claims are centred under the
policy that acted; claims of earlier actions leave this trace's outcome out; and which events carry a claim was decided
before they chose. Whatever divides advantages (a standard deviation, agent-wise normalisation) is applied last, and
re-weights decisions after the fact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.entries import Entries
from estimators.base import Credit, Reason, finish
from estimators.composition.control import control_advantage
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph, EventType
from graphs.levels import key_ids
from graphs.segment import safe_sqrt, segment_count, segment_mean, segment_sum_squares
from graphs.text import counted

__all__ = ["Condition", "Kind", "Signal", "advantage"]

Kind = Literal["control", "entry", "even"]

EPS = 1e-6


class Condition(NamedTuple):
    """One thing that an advantage's mean rests on: whether it holds (None: nothing here can tell), and why."""

    name: str
    holds: bool | None
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {({True: 'holds', False: 'BROKEN', None: 'not checked'})[self.holds]}: {self.why}"


@dataclasses.dataclass(frozen=True)
class Signal:
    """Advantages to train on, and what is needed to believe them; `str` says it in words.

    Attributes:
      credit: the numbers; `credit.advantage` [E] multiplies the policy gradient, `valid` says where there is one.
      kind: "control", "entry" or "even".
      conditions: what its mean rests on.
      used: the sources that entered.
      refused: the others, and the condition that each would have broken.
      beta: float [S, T], the coefficients of `used`; empty for other kinds.
      coverage: of the ledger: 1 − Var(unexplained) / Var(R − expected).
      claimed: the share of actions that carry a claim.
      scale: what divided the advantages last, in words; empty if nothing did.
    """

    credit: Credit
    kind: Kind
    conditions: tuple[Condition, ...]
    used: tuple[str, ...]
    refused: Mapping[str, str]
    beta: jax.Array
    coverage: float
    claimed: float
    scale: str

    @property
    def unbiased(self) -> bool | None:
        """True if every condition holds, False if one is broken, None if one could not be checked."""
        states = [condition.holds for condition in self.conditions]
        return False if False in states else None if None in states else True

    def __str__(self) -> str:
        verdict = {True: "unbiased", False: "biased", None: "unbiased if what could not be checked holds"}
        lines = [f"advantage {self.kind!r}: {verdict[self.unbiased]}"]
        lines += [f"  {condition}" for condition in self.conditions]
        lines += [f"  left out {source}: {why}" for source, why in self.refused.items()]
        lines.append(f"  coverage {self.coverage:.3f}, {self.claimed:.1%} of actions claimed")
        return "\n".join(lines)


def advantage(
    ledger: Entries,
    kind: Kind,
    *,
    baseline: Array | None = None,
    beta: float | Array | None = None,
    scale: str | Credit | None = None,
    decided_before: tuple[str, ...] = (),
) -> Signal:
    """Advantages of a ledger's batch.

    Args:
      ledger: composed by `credit.compose`.
      kind: "control", "entry" or "even", as above.
      baseline: for "control", float [T], b of each trace; by default the mean of the other traces of its group.
      beta: for "control", coefficients, a number or [S]; by default fitted on the traces of other groups, and 0 where
        those are fewer than `estimators.composition.control.ENOUGH_TRACES`.
      scale: applied last. A result of estimand "scale" or its source among `ledger.scales` divides by its `scale`;
        "agent_name" or "role_name" divides by the standard deviation of these advantages over the actions of one name
        in one group.
      decided_before: for "control", sources for which the caller vouches that whether an event carries their claim was
        decided before it chose.

    Raises:
      CreditError: no such kind or scale; "even" for a ledger that is not an even split; `baseline`, `beta` or
        `decided_before` for another kind than "control"; or a source that is not of the ledger.
    """
    graph = ledger.graph
    if kind != "control" and (baseline is not None or beta is not None or decided_before):
        raise CreditError(f'baseline, beta and decided_before are of advantage "control"; kind is {kind!r}')
    known = dict.fromkeys([*(claim.source for claim in ledger.claims), *ledger.refused])
    for source in decided_before:
        if source not in known:
            raise CreditError(f"decided_before names {source!r}; expected one of {', '.join(known) or 'no claims'}")
    actions = np.asarray(graph.event_mask) & np.asarray(graph.action_mask)
    beta_used = jnp.zeros((0, graph.num_traces))
    used: tuple[str, ...] = ()
    refused: dict[str, str] = {}
    if kind == "control":
        kept = [claim for claim in ledger.claims if claim.unit == "event"]
        refused = {c.source: f"it claims sums over {c.unit}s, not events" for c in ledger.claims if c.unit != "event"}
        presence = [_presence(graph, claim, actions, claim.source in decided_before) for claim in kept]
        for claim, condition in zip(kept, presence, strict=True):
            if condition.holds is False:
                refused[claim.source] = condition.why
        kept = [claim for claim in kept if claim.source not in refused]
        made = control_advantage(graph, ledger.reward_or_nan, kept, baseline=baseline, beta=beta)
        result, beta_used, used = made.credit, made.beta, made.used
        refused |= made.refused
        conditions = [
            Condition("baseline", *_stated(baseline is None, "the mean of the other traces of the group")),
            Condition("coefficients", *_stated(beta is None, "fitted on the traces of other groups")),
            Condition("centred", True, "claims that are not centred under the policy that acted are left out"),
            Condition("own outcome", True, "claims that hold their own trace's outcome serve only the actions before"),
            *(c for claim, c in zip(kept, [p for p in presence if p.holds is not False], strict=True)
              if claim.source in used),
        ]  # fmt: skip
        if not used:
            conditions = conditions[:1]
    elif kind == "entry":
        result = _entries(ledger, 1.0, "entry")
        why = "an entry has the increment's mean only where the claims have; unclaimed actions get 0"
        conditions = [Condition("right claims", False, why)]
        used = tuple(claim.source for claim in ledger.claims)
    elif kind == "even":
        if ledger.rule != "shares" or ledger.claims:
            raise CreditError(
                'advantage "even" is defined for rule "shares" without claims, an even split of R − b over all '
                f"actions; this ledger is by rule {ledger.rule!r} with {counted(len(ledger.claims), 'claim')}"
            )
        count = segment_count(graph.trace_ids, graph.num_traces, jnp.asarray(actions), ledger.increments.dtype)
        result = _entries(ledger, count[jnp.asarray(graph.trace_ids)], "even")
        conditions = [
            Condition("baseline", None, "R − expected on each action; right if `expected` is of other traces")
        ]
    else:
        raise CreditError(f"kind is {kind!r}; expected 'control', 'entry' or 'even'")
    words = ""
    if scale is not None:
        result, words = _scaled(ledger, result, scale)
        conditions.append(
            Condition("no scale", False, f"divided by {words}, which re-weights decisions after the fact")
        )
    return Signal(
        credit=result,
        kind=kind,
        conditions=tuple(conditions),
        used=used,
        refused=refused,
        beta=beta_used,
        coverage=ledger.coverage,
        claimed=float(np.asarray(ledger.claimed)[actions].mean()) if actions.any() else float("nan"),
        scale=words,
    )


def _stated(by_us: bool, what: str) -> tuple[bool | None, str]:
    return (True, what) if by_us else (None, "given by the caller; it must not depend on the trace's own choices")


def _presence(graph: EventGraph, claim: Credit, actions: np.ndarray, vouched: bool) -> Condition:
    """Whether which actions carry a claim can have depended on what they chose.

    Certain on neither side from a log, but for two cases: all actions carry one, and, within one role, the type of an
    action, which it chose, decides alone.
    """
    name = f"presence of {claim.source}"
    there = np.asarray(claim.valid)[actions]
    if there.all():
        return Condition(name, True, "every action carries a claim")
    if vouched:
        return Condition(name, None, "the caller vouches that it was decided before the event chose")
    role = np.asarray(graph.agent_role_ids)[np.asarray(graph.agent_ids)[actions]]
    kind = np.asarray(graph.event_type)[actions]
    count = np.zeros((int(role.max()) + 1, len(EventType), 2), np.int64)
    np.add.at(count, (role, kind, there.astype(int)), 1)
    met, carried = count.sum(axis=2) > 0, count[:, :, 1]
    always, never = met & (count[:, :, 0] == 0), met & (carried == 0)
    follows = (always | never | ~met).all(axis=1) & always.any(axis=1) & never.any(axis=1)
    if follows.any():
        culprit = int(np.argmax(follows))
        yes, no = (EventType(int(np.argmax(row[culprit]))).name.lower() for row in (always, never))
        why = (
            f"it follows the event's type, which the event chose: within one role every {yes} carries a claim and no "
            f"{no} does; if that was decided before, say so with decided_before"
        )
        return Condition(name, False, why)
    return Condition(
        name, None, f"{there.mean():.1%} of actions carry a claim; right if that was decided before they chose"
    )


def _entries(ledger: Entries, factor: float | jax.Array, source: str) -> Credit:
    amount = ledger.increments * factor
    scored = jnp.isfinite(ledger.reward_or_nan)[jnp.asarray(ledger.graph.trace_ids)]
    return finish(
        ledger.graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=ledger.stderr,
        reason=jnp.where(scored, Reason.VALID, Reason.NO_REWARD),
        unit="event",
        estimand="increment" if source == "entry" else "total",
        source=source,
        centred=False,
        own_outcome=True,
    )


def _scaled(ledger: Entries, result: Credit, scale: str | Credit) -> tuple[Credit, str]:
    if isinstance(scale, str) and scale in ("agent_name", "role_name"):
        by, graph = scale, ledger.graph
        key = key_ids(graph, "agent_name" if by == "agent_name" else "role_name")[jnp.asarray(graph.agent_ids)]
        value, num = jnp.asarray(result.advantage), graph.num_agents
        mean = segment_mean(value, key, num, result.valid)
        count = segment_count(key, num, result.valid, value.dtype)
        squares = segment_sum_squares(value, mean, key, num, result.valid)
        spread = safe_sqrt(squares / jnp.where(count > 0, count, 1)) + EPS
        divisor, reason = spread[key], jnp.where(result.valid & (count[key] < 2), Reason.TOO_FEW, result.reason)
        words = f"the standard deviation over actions of one {by.replace('_', ' ')} in one group"
    else:
        if isinstance(scale, str):
            if scale not in ledger.scales:
                known = ", ".join([*ledger.scales, "agent_name", "role_name"])
                raise CreditError(f"scale is {scale!r}; expected one of {known}, or a Credit")
            scale = ledger.scales[scale]
        divisor, reason = jnp.asarray(scale.scale), jnp.where(scale.valid, result.reason, scale.reason)
        words = f"the scale of {scale.source!r}"
    finished = finish(
        ledger.graph,
        credit=jnp.asarray(result.credit),
        baseline=jnp.asarray(result.baseline),
        scale=divisor,
        stderr=jnp.asarray(result.stderr),
        reason=reason,
        unit="event",
        estimand="scale",
        source=f"{result.source} scaled",
        centred=False,
        own_outcome=result.own_outcome,
    )
    return finished, words
