"""The stack: message advantages and orchestrator increments in one ledger, agent-wise normalisation last.

C3 and its relatives say what a message was worth against its siblings; Puppeteer, DEPART and critics say what a
delegation was worth; Dr. MAS divides by the spread of each agent's numbers. Put on top of each other they pay one
message three times. Typed, they fit: the first two are increments of different events, the third is a factor.

    ledger    R = expected + Σ increments of messages + Σ increments of orchestrator decisions + unexplained
    signal    A_e = (R − b) − Σ_{f≠e} β_f c_f, divided by the spread of A over the actions of one agent name in a group
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from credit.ledger.account import Ledger
from credit.ledger.composition import compose
from credit.ledger.signal import Signal
from estimators.base import Credit, Reason
from graphs.event_graph import KINDS, Array, EventGraph
from graphs.levels import By

__all__ = ["Stack", "stack"]


class Stack(NamedTuple):
    """What `stack` returns.

    Attributes:
      ledger: the exact partition of the reward.
      unscaled: advantages before the agent-wise scale: unbiased under the conditions that they state.
      signal: advantages after it, to train on.
    """

    ledger: Ledger
    unscaled: Signal
    signal: Signal


def stack(
    graph: EventGraph,
    reward: Array,
    messages: Credit,
    orchestrator: Credit,
    *,
    expected: Array | None = None,
    baseline: Array | None = None,
    beta: float | Array | None = None,
    by: By = "agent_name",
    decided_before: tuple[str, ...] = (),
) -> Stack:
    """Compose message advantages with orchestrator increments, and scale agent by agent at the end.

    Args:
      graph, reward: the batch.
      messages: increments of messages, such as `estimators.c3` with `own_outcome=False`; other events are left out.
      orchestrator: increments of orchestrator decisions (spawn, decide, aggregate, stop), such as Q̂(a) − Σ π Q̂ of a
        critic; other events are left out.
      expected, baseline, beta, decided_before: as in `compose` and `Ledger.advantage`.
      by: whose spread divides: "agent_name" or "role_name".

    Returns:
      `Stack`. Measured against each of its parts in docs/ledger.md.

    Source: no publication has this combination; the parts are those of C3, of orchestrator critics and of Dr. MAS.
    """
    parts = [_only(graph, messages, "message"), _only(graph, orchestrator, "orchestrator")]
    ledger = compose(graph, reward, parts, expected=expected)
    control = functools.partial(
        ledger.advantage, "control", baseline=baseline, beta=beta, decided_before=decided_before
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
