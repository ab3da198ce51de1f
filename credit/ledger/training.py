"""Advantages from a ledger, and the conditions under which their policy gradient has the right mean.

A partition is a report; it is not automatically an advantage. What each kind is, and when it may be trusted:

    control   A_e = (R − b) − Σ_{f≠e} β_f c_f     unbiased however wrong the claims, under the conditions below
    entry     A_e = x_e, the ledger's entry        less variance; biased wherever the claims are
    even      A_e = n x_e, n actions of the trace  R − b on each action; rule "shares" without claims only

The conditions of `control`: the baseline and the coefficients come from other traces; claims are centred under the
policy that acted; claims of earlier actions leave this trace's outcome out; which events carry a claim was decided
before they chose; and that a trace has no outcome does not follow from its choices. What is declared reads "as stated";
a claim that the batch contradicts is left out (`credit.ledger.contradictions`). Claims of other rewards than the
ledger's break the conditions of each kind. Whatever divides advantages (a standard deviation, agent-wise normalisation)
is applied last, and re-weights decisions after the fact.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credit.ledger.contradictions import claim_sums, contradicted
from credit.ledger.entries import Entries
from credit.ledger.scales import Largest, largest_advantage, scaled
from credit.ledger.signal import LIMIT, Condition, Kind, Signal, Spread
from estimators.base import Credit, Reason, finish
from estimators.baselines.shared import rloo
from estimators.clusters import independent_groups
from estimators.composition.coefficients import ENOUGH_TRACES
from estimators.composition.control import Control, control_advantage
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph, EventType
from graphs.replay_clusters import replays_elsewhere
from graphs.segment import segment_count
from graphs.structure.host_ids import distinct
from graphs.text import counted

__all__ = ["LargeAdvantageError", "LargeAdvantageWarning", "advantage"]


class _Kind(NamedTuple):
    """What one kind of advantage is before its scale."""

    credit: Credit
    conditions: list[Condition]
    used: tuple[str, ...]
    refused: dict[str, str]
    beta: jax.Array
    spread: Spread | None = None


@checked_kinds()
def advantage(
    ledger: Entries,
    kind: Kind,
    *,
    baseline: Array | None = None,
    beta: float | Array | None = None,
    scale: str | Credit | None = None,
    decided_before: tuple[str, ...] = (),
    limit: float = LIMIT,
    strict: bool = False,
) -> Signal:
    """Advantages of a ledger's batch, with the conditions under which their policy gradient has the right mean.

    Args:
      ledger: composed by `credit.compose`.
      kind: "control", "entry" or "even"; see this module's docstring.
      baseline: for "control", float [T], b of each trace; a trace whose b is not finite gets no advantage. By default
        the mean of the other traces of its group.
      beta: for "control", finite coefficients, a number or [S]; by default fitted on traces of other groups whose
        rewards spread alike (`estimators.composition.control`).
      scale: applied last. "agent_name" or "role_name" divides by the root mean square of these advantages over the
        other traces of one name in one group (`estimators.composition.scaling`); a result of estimand "scale", or its
        source among `ledger.scales`, divides by its `scale`. No scaled advantage exceeds 10.
      decided_before: for "control", sources whose presence on an event was fixed before the event chose. The caller
        asserts it; it is not checked.
      limit: without `scale`, how many spreads of the rewards of its group an advantage may be
        (`credit.ledger.scales`); a group with a larger one has no advantages, a `LargeAdvantageWarning` and a broken
        condition, as which groups are left out depends on what their traces chose.
      strict: whether one such group refuses the whole batch.

    Returns:
      `Signal`.

    Raises:
      CreditError: no such kind or scale; "even" for a ledger that is not an even split; `baseline`, `beta` or
        `decided_before` for another kind than "control"; a source that is not of the ledger; advantages beyond
        `limit` in all groups, or in one if `strict`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0] * 3, trace=[0, 1, 2], reward=[1.0, 0.0, 0.5])
      >>> signal = credit.compose(graph, reward, []).advantage("control")
      >>> print(rows.gather(signal.credit.advantage), signal.unbiased)
      [ 0.75 -0.75  0.  ] True
    """
    if kind != "control" and (baseline is not None or beta is not None or decided_before):
        raise CreditError(f'baseline, beta and decided_before are of advantage "control"; kind is {kind!r}')
    if not limit > 0:
        raise CreditError(f"limit is {limit!r}; expected a positive number of spreads of the rewards of a group")
    traces = ledger.graph.num_traces
    if baseline is not None and jnp.shape(jnp.asarray(baseline)) != (traces,):
        shape = jnp.shape(jnp.asarray(baseline))
        raise CreditError(f"baseline has shape {shape}; expected ({traces},), one entry for each trace")
    if beta is not None and not np.isfinite(np.asarray(beta)).all():
        raise CreditError(f"beta is {beta}; expected finite numbers")
    known = dict.fromkeys([*(claim.source for claim in ledger.claims), *ledger.refused])
    for source in decided_before:
        if source not in known:
            raise CreditError(f"decided_before names {source!r}; expected one of {', '.join(known) or 'no claims'}")
    if kind == "control":
        chosen = _control(ledger, baseline, beta, decided_before)
    elif kind == "entry":
        chosen = _entry(ledger)
    elif kind == "even":
        chosen = _even(ledger)
    else:
        raise CreditError(f"kind is {kind!r}; expected 'control', 'entry' or 'even'")
    largest = largest_advantage(ledger, chosen.credit)
    if scale is None and largest.multiple > limit:
        chosen = _without_large(ledger, chosen, largest, limit, strict)
        largest = largest_advantage(ledger, chosen.credit)
    result, words = chosen.credit, ""
    if scale is not None:
        result, words = scaled(ledger, result, scale)
        chosen.conditions.append(
            Condition("no scale", False, f"divided by {words}, which re-weights decisions after the fact")
        )
    if ledger.other_rewards:
        chosen.conditions.append(Condition("rewards", False, "; ".join(ledger.other_rewards.values())))
    actions = _actions(ledger)
    return Signal(
        graph=ledger.graph,
        credit=result,
        kind=kind,
        conditions=tuple(chosen.conditions),
        used=chosen.used,
        refused=chosen.refused,
        beta=chosen.beta,
        coverage=ledger.coverage,
        claimed=float(np.asarray(ledger.claimed)[actions].mean()) if actions.any() else float("nan"),
        scale=words,
        largest=largest.multiple,
        spread=chosen.spread,
    )


class LargeAdvantageError(CreditError):
    """An advantage beyond the limit, of `event` in `trace`, by their places in the batch.

    `measured` is False where the rewards of no group differ: no finite limit admits it.
    """

    def __init__(self, event: int, trace: int, what: str, *, measured: bool) -> None:
        self.event, self.trace, self.what, self.measured = event, trace, what, measured
        place = f"event {event}, in trace {trace} of the batch,"
        admits = "a larger limit" if measured else "limit=inf"
        super().__init__(self.said(place, f"a scale bounds advantages, and {admits} admits these"))

    def said(self, place: str, advice: str) -> str:
        """The message, with the event and the options in the caller's words."""
        return f"the advantage of {place} is {self.what}; {advice}"


class LargeAdvantageWarning(UserWarning):
    """Groups have no advantages, since one of theirs is beyond the limit."""


def _without_large(ledger: Entries, chosen: _Kind, largest: Largest, limit: float, strict: bool) -> _Kind:
    """`chosen` without the groups that have an advantage beyond the limit, which a condition counts.

    Raises:
      LargeAdvantageError: all groups have one, or one has, if `strict`; with the numbers that it was made of.
    """
    amounts, valid, over = chosen.credit, np.asarray(chosen.credit.valid), largest.of_group > limit
    if not strict and (valid & ~over).any():
        group = np.asarray(ledger.graph.group_ids)[np.asarray(ledger.graph.trace_ids)]
        left, of = len(np.unique(group[valid & over])), counted(len(np.unique(group[valid])), "group")
        why = (
            f"{left} of {of} left out, with an advantage beyond {limit:g} spreads of rewards; their choices decide that"
        )
        warnings.warn(
            f"groups are left out whose advantages exceed {limit:g} spreads of their rewards, which biases; a scale "
            "bounds advantages, a larger limit admits these, and strict=True makes this an error",
            LargeAdvantageWarning,
            stacklevel=5,  # the caller of `Ledger.advantage`, past the check of arguments
        )
        rest = finish(
            ledger.graph,
            credit=jnp.asarray(amounts.credit),
            baseline=jnp.asarray(amounts.baseline),
            scale=jnp.asarray(amounts.scale),
            stderr=jnp.asarray(amounts.stderr),
            reason=jnp.where(valid & over, Reason.NO_DIVISOR, amounts.reason),
            unit=amounts.unit,
            estimand=amounts.estimand,
            source=amounts.source,
            centred=amounts.centred,
            own_outcome=amounts.own_outcome,
        )
        spread = chosen.spread and _spread(ledger, rest, chosen.spread.plain, chosen.spread.none_fitted)
        return chosen._replace(
            credit=rest, conditions=[*chosen.conditions, Condition("size", False, why)], spread=spread
        )
    trace = int(np.asarray(ledger.graph.trace_ids)[largest.event])
    here = np.asarray(ledger.graph.trace_ids) == trace
    sizes = {
        claim.source: float(np.abs(np.where(claim.valid, claim.credit - claim.baseline, 0))[here].max())
        for claim in ledger.claims
        if claim.source in chosen.used
    }
    parts = [f"its return is {float(ledger.reward[trace]):.6g}"]
    if np.asarray(amounts.baseline)[largest.event]:
        parts.append(f"its baseline is {float(np.asarray(amounts.baseline)[largest.event]):.6g}")
    parts += [f"the largest claim of {source!r} is {size:.6g}" for source, size in sizes.items()]
    times = f"{largest.multiple:.4g} times the spread of the rewards of its group ({largest.spread:.6g})"
    measure = f"{times}; expected {limit:g} times or less"
    if not largest.spread:
        measure = "and the rewards of no group differ, so that nothing says whether it is large"
    raise LargeAdvantageError(
        largest.event,
        trace,
        f"{float(np.asarray(amounts.advantage)[largest.event]):.6g}, {measure}; in that trace {', '.join(parts)}; "
        "claims must be in units of the reward",
        measured=largest.spread > 0,
    )


def _actions(ledger: Entries) -> np.ndarray:
    actions: np.ndarray = np.asarray(ledger.graph.event_mask) & np.asarray(ledger.graph.action_mask)
    return actions


def _control(
    ledger: Entries, baseline: Array | None, beta: float | Array | None, decided_before: tuple[str, ...]
) -> _Kind:
    graph, actions = ledger.graph, _actions(ledger)
    refused = {c.source: f"it claims sums over {c.unit}s, not events" for c in ledger.claims if c.unit != "event"}
    rewards = np.asarray(ledger.reward_or_nan, np.float64)
    kept, presence = [], dict[str, Condition]()
    for claim in ledger.claims:
        if claim.unit != "event":
            continue
        # Each claim by itself: of several of one source, another's presence says nothing about the one that is used.
        condition = _presence(graph, claim, actions, claim.source in decided_before)
        wrong = condition.why if condition.holds is False else contradicted(graph, rewards, claim)
        if wrong:
            refused[claim.source] = wrong
            continue
        kept.append(claim)
        if claim.centred:
            presence.setdefault(claim.source, condition)
    control = control_advantage(graph, ledger.reward_or_nan, kept, baseline=baseline, beta=beta)
    others = "the mean of the other traces of the group"
    conditions = [Condition("baseline", *_by_us(baseline is None, others))]
    if baseline is None and graph.cluster_ids is not None:
        why = f"{others}, replays of the trace left out, which are those that share ids of choices in the log"
        conditions = [Condition("baseline", None, why, stated=True)]
    if lacking := _lacking(ledger):
        conditions.append(Condition("outcomes", None, lacking))
    if baseline is None and len(apart := replays_elsewhere(graph, ledger.scored)):
        conditions.append(Condition("replays", None, _apart(apart)))
    if control.used:
        conditions += [
            Condition("coefficients", *_by_us(beta is None, "fitted on the traces of other groups")),
            Condition("centred", None, _centred(ledger, [c for c in kept if c.source in control.used]), stated=True),
            _own_outcome([c for c in kept if c.source in control.used]),
            *(presence[source] for source in control.used),
        ]
    plain = "rloo" if baseline is None else "the reward minus the given baseline"
    spread = _spread(ledger, control.credit, plain, _none_fitted(graph, control) if beta is None else "")
    return _Kind(control.credit, conditions, control.used, refused | control.refused, control.beta, spread)


def _none_fitted(graph: EventGraph, control: Control) -> str:
    """Why no β was fitted; "" where one was."""
    if np.any(np.abs(np.asarray(control.beta)) > 0) or not control.used:
        return ""
    claims = np.any(np.abs(np.asarray(control.others)) > 0, axis=0)
    speaking = distinct(np.asarray(graph.trace_ids)[claims])
    if not len(speaking):
        return "no action can use a claim of another action of its trace"
    families = np.unique(np.asarray(independent_groups(graph)), return_inverse=True)[1]
    others = len(speaking) - int(np.bincount(families[speaking], minlength=int(families.max()) + 1).min())
    needs = f"it needs {ENOUGH_TRACES} traces of other groups with claims"
    return f"{needs}, there are {others}" if others < ENOUGH_TRACES else f"{needs} whose returns spread alike"


def _spread(ledger: Entries, credit: Credit, plain: str, none_fitted: str) -> Spread | None:
    """None where no action has an advantage."""
    valid = np.asarray(credit.valid)
    if not valid.any():
        return None
    reward = np.asarray(ledger.reward_or_nan, np.float64)[np.asarray(ledger.graph.trace_ids)[valid]]
    before = reward - np.asarray(credit.baseline, np.float64)[valid]
    after = float(np.asarray(credit.advantage, np.float64)[valid].std())
    return Spread(float(before.std()), after, plain, none_fitted)


def _entry(ledger: Entries) -> _Kind:
    why = "an entry has the increment's mean only where the claims have; unclaimed actions get 0"
    used = tuple(claim.source for claim in ledger.claims)
    return _Kind(
        _entries(ledger, 1.0, "entry"), [Condition("right claims", False, why)], used, {}, _no_coefficients(ledger)
    )


def _even(ledger: Entries) -> _Kind:
    if ledger.rule != "shares" or ledger.claims:
        raise CreditError(
            'advantage "even" is defined for rule "shares" without claims, an even split of R − b over all '
            f"actions; this ledger is by rule {ledger.rule!r} with {counted(len(ledger.claims), 'claim')}"
        )
    graph = ledger.graph
    count = segment_count(graph.trace_ids, graph.num_traces, jnp.asarray(_actions(ledger)), ledger.increments.dtype)
    result = _entries(ledger, count[jnp.asarray(graph.trace_ids)], "even")
    why = "R − expected on each action; right if `expected` is of other traces"
    raw = _raw(ledger)
    if raw:
        why += (
            f"; {counted(raw, 'trace')} without another one to compare with, where it is 0: the advantage is R itself"
        )
    return _Kind(result, [Condition("baseline", None, why)], (), {}, _no_coefficients(ledger))


def _raw(ledger: Entries) -> int:
    """How many traces have neither another one in their group to compare with nor an expected reward."""
    reason = np.asarray(rloo(ledger.graph, ledger.reward_or_nan).reason)
    alone = np.isin(reason, [int(Reason.SINGLETON), int(Reason.SHARED_PREFIX)])
    traces = np.unique(np.asarray(ledger.graph.trace_ids)[alone])
    return int((np.asarray(ledger.expected)[traces] == 0).sum())


def _no_coefficients(ledger: Entries) -> jax.Array:
    return jnp.zeros((0, ledger.graph.num_traces))


def _by_us(ours: bool, what: str) -> tuple[bool | None, str, bool]:
    by_caller = "given by the caller; it must not depend on the trace's own choices"
    return (True, what, False) if ours else (None, by_caller, True)


def _lacking(ledger: Entries) -> str:
    """What an answer without bias asks of traces that have no outcome, and teach nothing; "" where all have one."""
    graph = ledger.graph
    acts = np.zeros(graph.num_traces, bool)
    acts[np.asarray(graph.trace_ids)[np.asarray(graph.event_mask) & np.asarray(graph.trained_mask)]] = True
    without = int(np.sum(acts & ~np.asarray(ledger.scored)))
    if not without:
        return ""
    of = counted(int(acts.sum()), "trace")
    return f"none that counts in {without} of {of}; right if what these chose has no part in that"


def _own_outcome(used: list[Credit]) -> Condition:
    """Whether claims on earlier actions know how the trace goes on, which is what claims declare of themselves."""
    without = [repr(claim.source) for claim in used if not claim.own_outcome]
    serve = "claims that hold their own trace's outcome serve only the actions before"
    if not without:
        return Condition("own outcome", True, serve)
    why = f"nothing in {', '.join(without)} was decided after its event; {serve}"
    return Condition("own outcome", None, why, stated=True)


def _apart(apart: np.ndarray) -> str:
    """What the answers of traces rest on whose replays are refused, from pairs of traces of two groups [N, 2]."""
    refused, answered = apart[0].tolist()
    return (
        f"{counted(len(apart), 'trace')} without an independent one in its group shares an id of a choice with a trace "
        f"that is answered under another task, such as trace {refused} of the batch with trace {answered}; if these "
        "are replays, what is answered depends on what was chosen: log them under the task of their trace"
    )


def _centred(ledger: Entries, claims: list[Credit]) -> str:
    """What centredness rests on, and how far the sums of claims over traces are from 0 on average."""
    lines = []
    for claim in claims:
        mean, error = claim_sums(ledger.graph, claim, np.asarray(ledger.scored))
        lines.append(f"{claim.source!r} {mean:.3g}" + (f" ± {error:.2g}" if math.isfinite(error) else ""))
    return (
        "claims that declare another thing are left out; right if their alternatives are those of the policy that "
        f"acted. Mean sum over a trace ± one standard error, 0 if so: {', '.join(lines)}"
    )


def _presence(graph: EventGraph, claim: Credit, actions: np.ndarray, asserted: bool) -> Condition:
    """Whether which actions carry a claim can have depended on what they chose.

    Certain on neither side from a log, but for two cases: all actions carry one, and, within one role, the type of an
    action, which it chose, decides alone.
    """
    name = f"presence of {claim.source}"
    carries = np.asarray(claim.valid)[actions]
    if carries.all():
        return Condition(name, True, "every action carries a claim")
    if asserted:
        return Condition(name, None, "the caller asserts that it was decided before the event chose", stated=True)
    role = np.asarray(graph.agent_role_ids)[np.asarray(graph.agent_ids)[actions]]
    kind = np.asarray(graph.event_type)[actions]
    count = np.zeros((int(role.max()) + 1, len(EventType), 2), np.int64)
    np.add.at(count, (role, kind, carries.astype(int)), 1)
    met, carried = count.sum(axis=2) > 0, count[:, :, 1]
    always, never = met & (count[:, :, 0] == 0), met & (carried == 0)
    follows = (always | never | ~met).all(axis=1) & always.any(axis=1) & never.any(axis=1)
    if follows.any():
        culprit = int(np.argmax(follows))
        yes, no = (EventType(int(np.argmax(row[culprit]))).name.lower() for row in (always, never))
        why = (
            f"it follows the event's type, which the event chose: within one role every {yes} carries a claim and no "
            f"{no} does; if that was decided before, name it in decided_before"
        )
        return Condition(name, False, why)
    return Condition(
        name, None, f"{carries.mean():.1%} of actions carry a claim; right if that was decided before they chose"
    )


def _entries(ledger: Entries, factor: float | jax.Array, source: str) -> Credit:
    amount = ledger.increments * factor
    scored = jnp.isfinite(ledger.reward_or_nan)[jnp.asarray(ledger.graph.trace_ids)]
    return finish(
        ledger.graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=jnp.where(ledger.claimed, jnp.asarray(ledger.stderr, amount.dtype), jnp.inf),
        reason=jnp.where(scored, Reason.VALID, Reason.NO_REWARD),
        unit="event",
        estimand="increment" if source == "entry" else "total",
        source=source,
        centred=False,
        own_outcome=True,
    )
