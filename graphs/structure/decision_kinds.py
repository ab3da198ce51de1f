"""What kind of decision each event is: by its type, and by whom it reaches."""

from __future__ import annotations

import numpy as np

from graphs.event_graph import EventGraph
from graphs.event_types import DECISION_KIND, DECISION_KINDS, EdgeType, EventType
from graphs.structure.forest import real_edges
from graphs.structure.host_ids import among

__all__ = ["KIND_NAMES", "decision_kind"]

KIND_NAMES = (*DECISION_KINDS, "other")
"""Names of the numbers of `decision_kind`."""

_MEMBERSHIP = (EventType.SPAWN, EventType.DESPAWN)
_NO_ADDRESS = (EdgeType.TEMPORAL, EdgeType.RETURN)


def decision_kind(graph: EventGraph) -> np.ndarray:
    """The kind of each event, a position in `KIND_NAMES`: int [E].

    It is that of the type, but of calls of an agent that leads: logs of model calls state that one leads, and not which
    calls decide about the team. A decision whom to ask starts, ends or addresses another agent, itself or by effects.
    Where some decisions of an instance do and one does not, that one is a message. Types, and methods that rest on
    them, stay as they are.

    Examples:
      >>> import credit
      >>> graph, _, _ = credit.from_columns(
      ...     group=[0, 0], trace=["a", "a"], event_type=["spawn", "message"], reward=[1.0, 1.0])
      >>> [KIND_NAMES[kind] for kind in decision_kind(graph)[:2]]
      ['spawn', 'message']
    """
    kind, agent, action = (np.asarray(column) for column in (graph.event_type, graph.agent_ids, graph.action_mask))
    found: np.ndarray = np.array(DECISION_KIND)[kind]
    decides = kind == int(EventType.ORCHESTRATOR_DECISION)
    if not decides.any():
        return found
    form = np.asarray(graph.edge_type)[np.asarray(graph.edge_mask)]
    senders, receivers = real_edges(graph)
    own = agent[senders] == agent[receivers]
    reaches, across = among(kind, _MEMBERSHIP), np.flatnonzero(~own)
    reaches[senders[across[~among(form[across], _NO_ADDRESS)]]] = True
    effects = np.flatnonzero(own & ~action[receivers])
    causes, effects = senders[effects], receivers[effects]
    while (told := reaches[effects] & ~reaches[causes]).any():
        reaches[causes[told]] = True
    leads = np.zeros(graph.num_agents, bool)
    leads[agent[decides & reaches]] = True
    found[decides & action & ~reaches & leads[agent]] = KIND_NAMES.index("message")
    return found
