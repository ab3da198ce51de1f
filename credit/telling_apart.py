"""Whether a method's differences within a trace rest on evidence about its actions, or are of the method's making."""

from __future__ import annotations

from credit.methods.published import PUBLISHED, key_of
from credit.methods.registry import METHODS
from estimators.base import Credit
from graphs.traces.batch import Traces

__all__ = ["NOTHING_DISTINGUISHES", "tells_apart"]

NOTHING_DISTINGUISHES = (
    "nothing in the log tells what one action did from what another of its trace did: by every method here actions "
    "differ at most by who took part, turns or length"
)


def tells_apart(traces: Traces, credit: Credit, name: str = "") -> bool:
    """Whether a method's numbers can rest on what an action was: on evidence about it, rewards at events, or a judge.

    Others give all actions of a trace its outcome, or split it by turns, lengths and who took part.

    Args:
      traces: what was read.
      credit: a method's result on `traces.graph`.
      name: of the method; by default `credit.source`.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> tells_apart(rows.traces, credit.turn_baseline(graph, reward))
      False
    """
    if "agent_reward" in traces.evidence:  # outcomes of single agents
        return True
    if credit.estimand in ("total", "scale"):
        return False
    paper = PUBLISHED.get(key_of(name or credit.source))
    method = METHODS.get((name or credit.source) if paper is None else paper.method or "")
    return method is None or bool(method.needs) or "event_reward" in traces.evidence
