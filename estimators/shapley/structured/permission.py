"""The permission value of a spawn forest: the Shapley value where a unit works only if all its ancestors do.

With A(S) the units of S whose ancestors are all in S, the value is that of v^P(S) = v(A(S)) (Gilles, Owen & van den
Brink 1992, conjunctive). It is the default for teams that grow: a spawner takes part in what its descendants earn, and
adding children that earn nothing changes no other share. The precedence value
(`estimators.shapley.structured.forest_ideals`) has neither property.

Every plan serves: evaluate `permission_coalitions(parent, plan.coalitions)` and solve the plan with those values.
"""

from __future__ import annotations

import numpy as np

from estimators.shapley.structured.growth_orders import heights
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph

__all__ = ["ancestors_or_self", "permission_coalitions", "permission_of_worth", "team_parents"]


def ancestors_or_self(parent: Array) -> np.ndarray:
    """bool [N, N], row i marks unit i and its ancestors.

    Raises:
      CreditError: parents form a cycle.
    """
    parent = np.asarray(parent)
    above = np.eye(len(parent), dtype=bool)
    for unit in np.argsort(heights(parent), kind="stable"):
        if parent[unit] != unit:
            above[unit] |= above[parent[unit]]
    return above


def permission_coalitions(parent: Array, coalitions: Array) -> np.ndarray:
    """The members of each coalition that can work: bool [C, N], False for members with an ancestor outside.

    Raises:
      CreditError: parents form a cycle.
    """
    parent = np.asarray(parent)
    depth = heights(parent)
    works = np.array(coalitions, bool)
    for unit in np.argsort(depth, kind="stable"):
        if parent[unit] != unit:
            works[:, unit] &= works[:, parent[unit]]
    return works


def permission_of_worth(parent: Array, worth: Array) -> np.ndarray:
    """The permission value where unit i earns `worth[i]` on its own, in closed form: float64 [N].

    φ_j = Σ over i at or below j of worth_i / d_i, with d_i the number of units from i up to its root.
    """
    above = ancestors_or_self(parent)
    value: np.ndarray = above.T @ (np.asarray(worth, np.float64) / above.sum(1))
    return value


def team_parents(graph: EventGraph, trace: int) -> tuple[np.ndarray, np.ndarray]:
    """The spawn forest of one trace: its agent instances, int32 [N], and the parent of each as a position among them.

    Raises:
      CreditError: the trace has no agents, or an agent's parent lies in another trace.
    """
    here = np.asarray(graph.agent_mask) & (np.asarray(graph.agent_trace) == trace)
    agents = np.flatnonzero(here).astype(np.int32)
    if not len(agents):
        raise CreditError(f"trace {trace} has no agent instances")
    parents = np.asarray(graph.agent_parent)[agents]
    if not here[parents].all():
        raise CreditError(f"an agent of trace {trace} has a parent in another trace; expected a forest per trace")
    return agents, np.searchsorted(agents, parents).astype(np.int32)
