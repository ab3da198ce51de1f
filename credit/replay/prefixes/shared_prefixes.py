"""Siblings that a log holds already: traces of a task that share a prefix by chance, each action a draw of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

import numpy as np

from credit.replay.added_evidence import add_evidence
from credit.replay.prefixes.event_content import WithoutContent, event_content
from graphs.errors import CreditError
from graphs.traces.assembling import clustered
from graphs.traces.batch import Traces

__all__ = ["SharedPrefixes", "shared_prefixes", "with_siblings"]


@dataclasses.dataclass(frozen=True)
class SharedPrefixes:
    """Actions that were chosen after one prefix, in two or more traces.

    Attributes:
      context: int32 [E], equal at actions of one agent after one prefix; -1 where no other trace has that prefix.
      node: int32 [E], an id of its own at each action up to the last one with a context; -1 elsewhere.
      alternative: int32 [E], what the actions with a node chose: the log's own name, else equal at equal actions after
        one prefix; -1 elsewhere, and where the log lacks the content.
      unknown: events whose content the log does not hold; no prefix goes past them.
    """

    context: np.ndarray
    node: np.ndarray
    alternative: np.ndarray
    unknown: int

    @property
    def contexts(self) -> int:
        """The number of shared prefixes."""
        return len(np.unique(self.context[self.context >= 0]))

    @property
    def actions(self) -> int:
        """The number of actions with a sibling."""
        return int((self.context >= 0).sum())


def shared_prefixes(traces: Traces, *, without_content: WithoutContent = "differ") -> SharedPrefixes:
    """Find the actions of each group that were chosen after equal prefixes, by the same agent.

    The prefix of an action is every earlier event of its trace in log order: messages, tool calls and answers, spawns,
    and the agents, as `credit.replay.prefixes.event_content` compares them. Traces of a group have one task and one
    policy.

    The traces are independent draws of one policy, so each action gets a node of its own. Given the prefix, the chosen
    actions are independent and alike, and `credit.c3` with a leave-one-out baseline has mean Q(h, a) − V(h). Which
    traces share a prefix depends on what they chose before, not on the action itself. The nodes keep the traces
    independent for methods that compare groups: no clusters arise.

    Two actions in one chat message are one choice; the second gets no context.

    Args:
      traces: what was read.
      without_content: "differ" ends a prefix at an event whose content the log lacks; "equal" takes such events as
        equal if type, agents, tool and status are.

    Raises:
      CreditError: the log has `context`, `node` or `sibling_parent` already; or an unknown option.

    Examples:
      >>> import credit
      >>> from credit.replay.prefixes.shared_prefixes import shared_prefixes
      >>> _, _, rows = credit.from_columns(group=["q"] * 4, trace=list("aabb"), agent=list("xyxy"), reward=[1, 1, 0, 0])
      >>> shared_prefixes(rows.traces).context[:4].tolist()  # the first messages have no content
      [0, -1, 0, -1]
      >>> shared_prefixes(rows.traces, without_content="equal").context[:4].tolist()
      [0, 1, 0, 1]
    """
    known = [name for name in ("context", "node", "sibling_parent") if name in traces.evidence]
    if known:
        raise CreditError(f"the log has evidence {known[0]!r}; expected a log without siblings")
    n, length = traces.sizes.events, traces.graph.num_events
    content = event_content(traces, without_content)
    trace = np.asarray(traces.graph.trace_ids)[:n]
    group = np.asarray(traces.graph.group_ids)
    actions = np.asarray(traces.graph.action_mask)[:n]
    place: dict[tuple[Hashable, ...], int] = {}  # of a prefix: the one before it and its last event
    chosen: dict[tuple[Hashable, ...], list[int]] = {}
    made = np.full(n, -1)  # the place after each event
    place_of_prefix: int | None = None
    for e in range(n):
        if e == 0 or trace[e] != trace[e - 1]:
            place_of_prefix = place.setdefault(("group", int(group[trace[e]])), len(place))
        if place_of_prefix is None:
            continue
        if actions[e] and not content.revealed[e]:
            chosen.setdefault((place_of_prefix, content.agents[e]), []).append(e)
        key = content.keys[e]
        place_of_prefix = None if key is None else place.setdefault((place_of_prefix, key), len(place))
        made[e] = -1 if place_of_prefix is None else place_of_prefix
    context, node, alternative = np.full((3, length), -1, np.int32)
    last = np.full(traces.sizes.traces, -1)
    for number, rows in enumerate(rows for rows in chosen.values() if len(rows) > 1):
        context[rows] = number
        np.maximum.at(last, trace[rows], rows)
    marked = np.flatnonzero(actions & (np.arange(n) <= last[trace]))
    node[marked] = np.arange(len(marked))
    if "alternative" in traces.evidence:
        alternative[:] = traces.evidence["alternative"].array
    bare = marked[(alternative[marked] < 0) & (made[marked] >= 0)]
    alternative[bare] = int(alternative.max(initial=-1)) + 1 + np.unique(made[bare], return_inverse=True)[1]
    return SharedPrefixes(context, node, alternative, sum(key is None for key in content.keys))


def with_siblings(traces: Traces, shared: SharedPrefixes) -> Traces:
    """The batch with `context`, `node` and `alternative` of shared prefixes, as `credit.c3` takes them.

    Args:
      traces: what was read.
      shared: what `shared_prefixes` found in it.

    Raises:
      CreditError: `shared` is of another batch.
    """
    columns = {"context": shared.context, "node": shared.node, "alternative": shared.alternative}
    known = add_evidence(traces, **columns)
    return dataclasses.replace(known, graph=clustered(known.graph, known.evidence, known.traces["trace"].to_pylist()))
