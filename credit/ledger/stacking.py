"""The stack: message advantages and orchestrator increments in one ledger, agent-wise scale last.

Message counterfactuals (C3) estimate increments of messages; critics estimate increments of delegations; Dr. MAS
divides by the spread of each agent's numbers. Added up, they would pay one message three times. Here the first two are
claims on different events and the third is a factor:

    ledger    R = expected + Σ increments of messages + Σ increments of orchestrator decisions + unexplained
    signal    A_e = (R − b) − Σ_{f≠e} β_f c_f, divided by the scale of `estimators.composition.scaling`
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from credit.ledger.account import Ledger
from credit.ledger.composition import compose
from credit.ledger.signal import LIMIT, Signal
from estimators.base import Credit, Reason
from graphs.argument_kinds import checked_kinds
from graphs.event_graph import KINDS, Array, EventGraph
from graphs.levels import Name

__all__ = ["Controls", "Stack", "stack"]


@dataclasses.dataclass(frozen=True)
class Controls:
    """How the claims enter the advantages as control variates: the keywords of `Ledger.advantage("control")`.

    Attributes:
      baseline: float [T], b of each trace, which must not depend on its own choices; by default the mean of the other
        traces of its group.
      beta: coefficients, a number or [2]; by default fitted on other groups whose rewards spread alike.
      decided_before: sources whose presence on an event was fixed before the event chose; not checked.
      limit: how many spreads of the rewards of its group an advantage before the scale may be.

    Examples:
      >>> from credit.ledger import Controls
      >>> Controls(beta=1.0).decided_before
      ()
    """

    baseline: Array | None = None
    beta: float | Array | None = None
    decided_before: tuple[str, ...] = ()
    limit: float = LIMIT


class Stack(NamedTuple):
    """The result of `stack`.

    Attributes:
      ledger: the exact partition of the reward.
      unscaled: advantages before the agent-wise scale: unbiased under the conditions that they state.
      signal: advantages after it, none larger than 10: they re-weight agents and tasks.
    """

    ledger: Ledger
    unscaled: Signal
    signal: Signal


@checked_kinds()
def stack(
    graph: EventGraph,
    reward: Array,
    messages: Credit,
    orchestrator: Credit,
    *,
    expected: Array | None = None,
    by: Name = "agent_name",
    controls: Controls = Controls(),
) -> Stack:
    """Compose message advantages with orchestrator increments, and scale agent by agent at the end.

    It is `compose` with the two claims, then `advantage("control")` without and with a scale.

    Args:
      graph: the batch.
      reward: float [T], NaN where a trace has none.
      messages: increments of messages, such as `estimators.c3` with `own_outcome=False`; other events are left out.
      orchestrator: increments of orchestrator decisions (spawn, decide, aggregate, stop), such as Q̂(a) − Σ π Q̂ of a
        critic; other events are left out.
      expected: float [T], the expected reward of each trace at its start; by default the mean of the other traces of
        its group.
      by: whose spread divides: "agent_name" or "role_name".
      controls: the baseline, the coefficients, and which sources were fixed before the events acted.

    Returns:
      `Stack`. Measured against each of its parts in docs/ledger.md.

    Raises:
      CreditError: an argument of another type or shape; a claim of another batch; a name in `controls.decided_before`
        is no claim; `by` is neither of its choices; an advantage before the scale is beyond `controls.limit`.

    Source: no publication has this combination; the parts are those of C3, of orchestrator critics and of Dr. MAS.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(
      ...     group=[0] * 4, trace=[0, 0, 1, 1], agent=["lead", "worker"] * 2, reward=[1.0, 1.0, 0.0, 0.0])
      >>> amount = np.where(graph.action_mask, 0.1, np.nan)
      >>> claims = [
      ...     credit.claim(graph, amount, estimand="increment", source=s, centred=True, own_outcome=False)
      ...     for s in ("siblings", "critic")]
      >>> stacked = stack(graph, reward, *claims)
      >>> print(rows.gather(stacked.unscaled.credit.advantage), rows.gather(stacked.signal.credit.advantage))
      [ 1.  1. -1. -1.] [ 1.  1. -1. -1.]
    """
    parts = [_only(graph, messages, "message"), _only(graph, orchestrator, "orchestrator")]
    ledger = compose(graph, reward, parts, expected=expected)
    control = functools.partial(
        ledger.advantage,
        "control",
        baseline=controls.baseline,
        beta=controls.beta,
        decided_before=controls.decided_before,
        limit=controls.limit,
    )
    return Stack(ledger, control(), control(scale=by))


def _only(graph: EventGraph, claim: Credit, kind: str) -> Credit:
    """The claim on events of one kind only."""
    here = jnp.asarray(np.isin(np.asarray(graph.event_type), [int(t) for t in KINDS[kind]]))
    reason = jnp.where(claim.valid & ~here, Reason.NO_EVIDENCE, claim.reason).astype(jnp.int8)
    return dataclasses.replace(
        claim,
        reason=reason,
        credit=jnp.where(here, claim.credit, 0),
        baseline=jnp.where(here, claim.baseline, 0),
        stderr=jnp.where(here, claim.stderr, 0),
    )
