"""The edges of plain traces: what `otlp.order.emitters` and `otlp.edges` say, for all traces at once."""

from __future__ import annotations

import numpy as np

from graphs.event_types import EdgeType
from graphs.formats.span_columns.forest import AGENT, CALL, NOWHERE, TOOL
from graphs.formats.span_columns.team_events import Instances, TeamEvents

__all__ = ["edges_of"]


class _Acts:
    """Events of some kind by agent instance and position, to be searched."""

    def __init__(self, mask: np.ndarray, agents: np.ndarray) -> None:
        self._length = len(agents) + 1
        at = np.flatnonzero(mask)
        self._keys = np.sort(agents[at].astype(np.int64) * self._length + at)

    def before(self, agents: np.ndarray, at: np.ndarray) -> np.ndarray:
        """For each instance, the position of its last such event before a position, `NOWHERE` for none."""
        return self._found(agents, np.searchsorted(self._keys, agents.astype(np.int64) * self._length + at) - 1)

    def after(self, agents: np.ndarray, at: np.ndarray) -> np.ndarray:
        """For each instance, the position of its first such event after a position, `NOWHERE` for none."""
        sought = agents.astype(np.int64) * self._length + at
        return self._found(agents, np.searchsorted(self._keys, sought, side="right"))

    def _found(self, agents: np.ndarray, index: np.ndarray) -> np.ndarray:
        if not len(self._keys):
            return np.full(len(agents), NOWHERE, np.int64)
        owner, at = np.divmod(self._keys[np.clip(index, 0, len(self._keys) - 1)], self._length)
        return np.where((index >= 0) & (index < len(self._keys)) & (owner == agents), at, NOWHERE)


def edges_of(
    events: TeamEvents, kind: np.ndarray, team: Instances, askers: dict[int, list[int]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Senders, receivers and types of the edges, int32, sorted by receiver, then by sender.

    Args:
      events: the events.
      kind: of each span.
      team: the agent instances.
      askers: by the span of a tool call, the spans of the model calls of its agent that asked for it.
    """
    row, closing, agents = events.row, events.closing, events.agents
    kinds, at = kind[row], np.arange(len(row))
    calls = _Acts((kinds == CALL), agents)
    # where a trace shows no model calls, its actions take their place; both are what `actions` marks
    acts = _Acts(events.actions, agents)
    spawns = at[~closing & (kinds == AGENT)]
    results, returns = at[closing & (kinds == TOOL)], at[closing & (kinds == AGENT)]
    effects = at[~closing & (kinds != CALL) & ~events.actions]
    emitters = calls.before(agents[effects], effects)
    _overrule(emitters, effects, row, events.opened, askers)
    of_effect = np.where(kinds[effects] == AGENT, EdgeType.CAUSAL, EdgeType.TOOL_DEPENDENCY)
    acting = at[events.actions]
    edges = [
        (spawns, _first(agents, len(team.row))[team.of_span[row[spawns]]], EdgeType.SPAWN),
        (acts.before(agents[acting], acting), acting, EdgeType.TEMPORAL),
        (results, acts.after(agents[results], results), EdgeType.CAUSAL),
        (returns, acts.after(team.acting[row[returns]], returns), EdgeType.RETURN),
        (emitters, effects, of_effect),
        (events.opened[row[results]], results, EdgeType.RETURN),
        (acts.before(agents[returns], returns), returns, EdgeType.CAUSAL),
    ]
    senders, receivers = (np.concatenate([edge[i] for edge in edges]) for i in (0, 1))
    types = np.concatenate([np.broadcast_to(np.asarray(edge[2]), edge[0].shape) for edge in edges])
    kept = np.flatnonzero((senders >= 0) & (receivers >= 0))
    order = kept[np.lexsort((types[kept], senders[kept], receivers[kept]))]
    return senders[order].astype(np.int32), receivers[order].astype(np.int32), types[order].astype(np.int32)


def _first(agents: np.ndarray, count: int) -> np.ndarray:
    """The position of the first event of each instance, `NOWHERE` for none."""
    first = np.full(count, NOWHERE, np.int64)
    first[agents[::-1]] = np.arange(len(agents))[::-1]  # the last of several assignments wins
    return first


def _overrule(
    emitters: np.ndarray, effects: np.ndarray, row: np.ndarray, opened: np.ndarray, askers: dict[int, list[int]]
) -> None:
    """Set the emitters of tool calls whose id a model call listed: the last earlier one of these."""
    if not askers:
        return
    for i, (at, span) in enumerate(zip(effects.tolist(), row[effects].tolist(), strict=True)):
        earlier = [p for p in opened[askers[span]].tolist() if 0 <= p < at] if span in askers else []
        if earlier:
            emitters[i] = max(earlier)
