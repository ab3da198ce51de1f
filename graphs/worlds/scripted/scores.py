"""The score of a team's choices: weights of decisions, and gates, on which other decisions depend.

The score of a trace is an integer,

    Z = Σ_d w_d x_d Π_{a above d} x_a

with x_d in {0, 1} the choice at decision d, w_d its weight, and "above" following `gate`: d counts only if its gate is
good. The spawn of a wave, a link of a chain and a message that can poison its descendants are gates. So for every
outcome that is linear in Z the true increments follow from one recursion over the gates
(`graphs.worlds.scripted.chances`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from graphs.errors import CreditError
from graphs.event_graph import EventType
from graphs.worlds.scripted.script import Script

__all__ = ["KINDS", "ScoreRule", "score_rule"]

_ADDS = "Every good decision adds its weight."

KINDS = {
    "additive": _ADDS,
    "bernoulli": f"{_ADDS} Success has a probability that is logistic in the sum.",
    "bottleneck": "A chain of decisions must all be good. Nothing else matters.",
    "pivotal": "One message decides.",
    "free_rider": f"{_ADDS} The choices of one agent weigh nothing.",
    "padding": f"{_ADDS} Half of each wave that was spawned does no useful work, and each spawn costs.",
    "poisoned": f"{_ADDS} If one message is bad, nothing that descends from it in the graph counts.",
}
"""Kinds of outcome, in words."""


class ScoreRule(NamedTuple):
    """Weights and gates of a script's decisions: int32 [D]; gate -1 where nothing is above.

    `marked` is the special decision or agent of the kind: the pivotal or poisoned message's decision, the free
    rider's number; -1 where there is none.
    """

    weight: np.ndarray
    gate: np.ndarray
    marked: int = -1


def score_rule(kind: str, script: Script, weights: tuple[int, ...], links: int, spawn_cost: int) -> ScoreRule:
    """The rule of a kind for a script.

    Args:
      kind: one of `KINDS`.
      weights: of the decisions in order, over and over; the stop weighs nothing.
      links: length of the chain of kind "bottleneck".
      spawn_cost: what each agent of a wave that is spawned by choice takes from the score, in kind "padding".

    Raises:
      CreditError: an unknown kind, or a script without the decisions that the kind needs.
    """
    if kind not in KINDS:
        raise CreditError(f"kind is {kind!r}; expected one of {', '.join(KINDS)}")
    agent = script.agents[script.events]
    types = script.types[script.events]
    gate = script.on[script.events].copy()
    weight = np.resize(np.array(weights, np.int32), len(gate))
    weight[types == EventType.STOP] = 0
    certain = np.flatnonzero((gate < 0) & (types != EventType.STOP))
    if kind in ("bottleneck", "pivotal"):
        weight[:] = 0
    if kind == "bottleneck":
        if len(certain) < links:
            raise CreditError(f"links is {links}; expected at most {len(certain)}, the decisions that are always taken")
        chain = certain[np.linspace(0, len(certain) - 1, links).astype(int)]
        gate[chain[1:]] = chain[:-1]
        weight[chain[-1]] = 1
    if kind == "pivotal":
        pivot = _message(script, certain)
        weight[pivot] = 1
        return ScoreRule(weight, gate, pivot)
    if kind == "free_rider":
        rider = int(agent[certain].max())
        if rider == agent[certain].min():
            raise CreditError(
                f"agents is {len(script.names)}; expected two that always act, because one is the free rider"
            )
        weight[agent == rider] = 0
        return ScoreRule(weight, gate, rider)
    if kind == "padding":
        later = np.unique(agent[gate >= 0])
        if not len(later):
            raise CreditError(
                f"topology {script.topology!r} spawns no agent by choice here; expected a wave to pad with"
            )
        weight[np.isin(agent, later[1::2])] = 0
        for choice in np.flatnonzero(script.optional):
            weight[choice] -= spawn_cost * int(np.sum(script.agent_on == choice))
    if kind == "poisoned":
        source = _message(script, certain)
        reached = script.descendants(int(script.events[source]))[script.events]
        reached[source] = False
        gate[reached] = source
        return ScoreRule(weight, gate, source)
    return ScoreRule(weight, gate)


def _message(script: Script, certain: np.ndarray) -> int:
    """The message decision in the middle of those that are always taken."""
    messages = certain[script.types[script.events[certain]] == EventType.MESSAGE]
    if not len(messages):
        raise CreditError(f"topology {script.topology!r} has no message that is always sent; expected one to decide")
    return int(messages[len(messages) // 2])
