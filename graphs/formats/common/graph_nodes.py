"""Nodes of LangGraph among spans: which of them are agents, whose the tools are, and which visits follow which."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from graphs.formats.common.span_tree import Kind, Node, Span, Tree

__all__ = ["OfNode", "Visits", "asking_nodes", "keep_agents", "node_of"]

_EFFECTS = frozenset({Kind.TOOL, Kind.HANDOFF})


class OfNode(msgspec.Struct):
    """What LangGraph writes into the metadata of each run within a node."""

    langgraph_node: str | None = None
    langgraph_step: Any = None
    langgraph_triggers: Any = None


def node_of(graph: str, stated: OfNode) -> Node:
    """The visit that metadata state, to a node of the graph with this span.

    Examples:
      >>> node_of("g", OfNode("c", "4", ["join:a+b:c"]))
      Node(graph='g', step=4, joined=('a', 'b'), after=())
    """
    step, triggers = stated.langgraph_step, stated.langgraph_triggers
    is_known = (isinstance(step, int) and not isinstance(step, bool)) or (isinstance(step, str) and step.isdecimal())
    channels = [one for one in triggers if isinstance(one, str)] if isinstance(triggers, list) else []
    joined = [name for one in channels if one.startswith("join:") for name in one.split(":")[1].split("+")]
    return Node(graph, int(step) if is_known else -1, tuple(joined))


def asking_nodes(traces: Iterable[Iterable[Span]]) -> frozenset[str]:
    """Names of the nodes that ask for the tools that they run, by all visits of the log that run tools or call a model.

    At least half of those to such a node call a model. The others lack the call, as where a run was killed.
    """
    visits = Counter[str]()
    for spans in traces:
        listed = list(spans)
        nodes = _nodes(listed)
        asking, acting = _asking_and_acting(listed) if nodes else (set(), set())
        for span in nodes:
            visits[span.name] += 1 if span.id in asking else -1 if span.id in acting else 0
    return frozenset(name for name, more in visits.items() if more >= 0)


def keep_agents(spans: list[Span], askers: frozenset[str]) -> None:
    """Make the agent spans that are nodes, which have an `instance`, structure where they are no agent of their own.

    A node that calls no model by itself, such as LangGraph's `tools`, runs what was asked for: it moves below the
    node under the same parent that calls a model and ran last before it. Without one before, it is an agent if a tool
    of it calls a model. A node inside an agent, with no tool between, is a step of that agent.

    Args:
      spans: of a trace, siblings in the order in which they ran.
      askers: names of nodes that ask for the tools that they run, as `asking_nodes` of the log: they call a model.
    """
    nodes = _nodes(spans)
    if not nodes:
        return
    _follow(nodes)
    by_id = {span.id: span for span in spans}
    asking, acting = _asking_and_acting(spans)
    asking |= {span.id for span in nodes if span.name in askers and span.id in acting}
    calling = _above(spans, by_id, frozenset({Kind.CALL}), frozenset())
    latest: dict[str, str] = {}  # parent -> its node that ran last and calls a model
    for span in nodes:
        if span.id in asking:
            latest[span.parent] = span.id
        elif span.parent in latest:
            span.kind, span.parent = Kind.OTHER, latest[span.parent]
        elif span.id not in calling:
            span.kind = Kind.OTHER
    agents = {span.id for span in nodes if span.kind is Kind.AGENT}
    is_inside: dict[str, bool] = {}  # whether a span is inside an agent, so that each is passed once
    for span in nodes:
        path: set[str] = set()
        above = by_id.get(span.parent)
        while above is not None and above.id not in is_inside and above.id not in path:
            if above.kind is Kind.TOOL or above.id in agents:
                break
            path.add(above.id)
            above = by_id.get(above.parent)
        inside = above is not None and (above.id in agents or is_inside.get(above.id, False))
        is_inside |= dict.fromkeys(path, inside)
        if inside:
            span.kind = Kind.OTHER


def _nodes(spans: list[Span]) -> list[Span]:
    return [span for span in spans if span.kind is Kind.AGENT and span.instance]


def _asking_and_acting(spans: list[Span]) -> tuple[set[str], set[str]]:
    """Ids of the spans that call a model, and of those that run tools, not counting what these do inside."""
    by_id, tools = {span.id: span for span in spans}, frozenset({Kind.TOOL})
    return _above(spans, by_id, frozenset({Kind.CALL}), tools), _above(spans, by_id, _EFFECTS, tools)


def _follow(nodes: list[Span]) -> None:
    """Note which visits each one ran after: all of the super-step before in its graph, and those that it waited for.

    A step reads the state that the one before it wrote, and no node of it runs before all of that one have ended. A
    graph that runs again under one parent counts its steps anew, or goes on.

    Args:
      nodes: those of one graph in the order in which they ran; where two began at one time, their steps tell.
    """
    visits = [(span, span.node) for span in nodes if span.node is not None and span.node.step >= 0]
    if all(not math.isnan(span.start) for span, _ in visits):
        visits.sort(key=lambda visit: (visit[0].start, visit[1].step))
    runs: dict[str, _Run] = {}
    for span, node in visits:
        run = runs.get(node.graph)
        if run is None or node.step < run.step:
            run = runs[node.graph] = _Run()
        if node.step > run.step:
            run.before = tuple(run.visits) if node.step == run.step + 1 else ()
            run.step, run.visits = node.step, []
        joined = [run.latest[name] for name in node.joined if name in run.latest]
        after = tuple(dict.fromkeys((*run.before, *joined))) if joined else run.before  # which many visits share
        span.node = node._replace(after=after)
        run.visits.append(span.id)
        run.latest[span.name] = span.id


@dataclasses.dataclass(slots=True)
class _Run:
    """How far a graph has run: its visits of the step before, of this step, and the latest to each node."""

    step: int = -1
    before: tuple[str, ...] = ()
    visits: list[str] = dataclasses.field(default_factory=list)
    latest: dict[str, str] = dataclasses.field(default_factory=dict)


class Visits:
    """What a visit to a node follows: the last calls of those before it, and the results that these got since.

    A visit without either passes on what it follows. Nodes inside an agent are its steps, and what a tool does inside
    is the tool's own affair.
    """

    def __init__(self, tree: Tree) -> None:
        self.nodes = {i: span.node for i, span in tree.spans.items() if span.node is not None and span.node.step >= 0}
        self._of: dict[str, str] = {}  # span -> the visit that its events are of
        self._made: dict[str, dict[str, list[int]]] = {}  # visit -> agent -> positions
        self._ends: dict[int, list[int]] = {}  # by the visits before, which many visits share
        within: dict[str, str] = {}
        for span_id, parent in tree.parent.items() if self.nodes else ():
            node, above = self.nodes.get(span_id), within.get(parent, "")
            self._of[span_id] = span_id if node is not None and not (above and node.graph == parent) else above
            within[span_id] = "" if tree.spans[span_id].kind is Kind.TOOL else self._of[span_id]

    def add(self, span_id: str, agent: str, position: int, *, is_call: bool, is_result: bool) -> list[int]:
        """Note an event of a span; what it follows, if it is the first of a visit."""
        visit = self._of.get(span_id, "")
        if not visit or span_id in self.nodes:  # the start and the return of a node are its starter's affair
            return []
        is_first = visit not in self._made
        made = self._made.setdefault(visit, {})
        if is_call:
            made[agent] = [position]
        elif is_result:
            made.setdefault(agent, []).append(position)
        return self._followed(self.nodes[visit].after) if is_first else []

    def _followed(self, visits: tuple[str, ...]) -> list[int]:
        ends = self._ends.get(id(visits))
        if ends is None:
            ends = self._ends[id(visits)] = []
            waiting, met = list(visits), set(visits)
            for visit in waiting:  # it grows
                made = [position for positions in self._made.get(visit, {}).values() for position in positions]
                further = [] if made else [one for one in self.nodes[visit].after if one not in met]
                ends += made
                waiting += further
                met.update(further)
        return ends


def _above(spans: list[Span], by_id: dict[str, Span], kinds: frozenset[Kind], ends: frozenset[Kind]) -> set[str]:
    """Ids of the spans above one of `kinds`, up to a span of a kind in `ends`; each walk ends where one has passed."""
    above: set[str] = set()
    for span in spans:
        outer = by_id.get(span.parent) if span.kind in kinds else None
        while outer is not None and outer.id not in above and outer.kind not in ends:
            above.add(outer.id)
            outer = by_id.get(outer.parent)
    return above
