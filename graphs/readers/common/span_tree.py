"""Events of a tree of classified spans, shared by the readers of tracing exports.

The order is depth first: an agent's events follow the order of the log, and a spawn is followed by everything below it
and then by the return. Causes therefore come before effects, independent of clocks. Siblings keep the reader's order.

Rules, each settled by the tree and not by a span alone:

- events inside a guardrail or a judge are not the team's;
- a model call with another inside, and no tool or agent between, is a wrapper: usage is counted at the inner one;
- a tool with an agent inside is the spawn of that agent, a tool inside a tool is the outer one's own affair;
- a hand-off starts the next agent span of its target's name under the same agent, or wakes the instance of that name
  which was active before in the same chain of hand-offs; an agent that hands off does not wait, so only the last agent
  of a chain returns, to the agent that started the first.

No function recurses: logs are untrusted, and spans may nest without limit.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable
from typing import Any

from graphs.errors import Problem, TraceError
from graphs.readers.common.files import model_names
from graphs.readers.common.model_calls import Team
from graphs.readers.common.places import Place
from graphs.text import excerpt
from graphs.traces.record import TraceRecord

__all__ = ["Kind", "Span", "write_spans"]


class Kind(enum.Enum):
    """What part a span plays."""

    AGENT = "agent"  # one activation of an agent
    CALL = "call"  # a model call
    TOOL = "tool"
    HANDOFF = "handoff"  # its agent hands over to the one named `target`
    GUARD = "guard"  # a guardrail, or a judge of the team's work
    HUMAN = "human"  # what a human wrote to the agent, or decided for it
    OTHER = "other"  # structure only


@dataclasses.dataclass(slots=True)
class Span:
    """A span of a trace: its id, its parent's ("" for none), what it is, and where it stands.

    Its event's id is `label`, or else `id`. Agent spans of one `instance` are one agent instance, woken again; without
    one, each is an instance of its own.

    `start` and `end` are seconds, NaN where absent; they become times and order nothing. `failed`: it ended in an
    error; of a guardrail: it was triggered. `columns` are evidence of a model call, or a reward at a call or tool.
    """

    id: str
    parent: str
    kind: Kind
    place: Place
    name: str = ""
    start: float = math.nan
    end: float = math.nan
    target: str = ""
    label: str = ""
    instance: str = ""
    failed: bool = False
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)
    model: str = ""

    @property
    def event(self) -> str:
        """The id of its event."""
        return self.label or self.id

    def refuse(self, kind: str, field: str, value: object, expected: str, trace: str) -> TraceError:
        """The error that points at this span."""
        return TraceError(Problem(kind, self.place.file, self.place.line, field, excerpt(value), expected, trace))


def write_spans(
    record: TraceRecord, spans: list[Span], root: str, fields: tuple[str, str] = ("id", "parent_id")
) -> None:
    """Fill the record with the events of a trace's spans.

    Args:
      record: the trace, without events yet.
      spans: all of its spans; those of one parent in the order of the log.
      root: name of the instance that events outside any agent span belong to; it is there only if there are such.
      fields: what the format calls a span's id and its parent's, for errors.

    Raises:
      TraceError: kinds "duplicate-span", "parent-cycle", "missing-parent".
    """
    tree = _Tree(record.trace_id, spans, fields)
    _Writer(record, tree, root).write()
    record.model = record.model or model_names(span.model for span in spans if tree.kind[span.id] is Kind.CALL)


class _Tree:
    """Spans from the roots down, with the rules applied."""

    def __init__(self, trace: str, spans: list[Span], fields: tuple[str, str]) -> None:
        self.trace, self.fields = trace, fields
        self._link(spans)
        self._drop_what_is_no_event()
        self.owner = self._nearest((Kind.AGENT,))
        self.tool = self._nearest((Kind.AGENT, Kind.TOOL))  # the enclosing tool, unless an agent stands between
        self._find_agents_as_tools()
        self._find_handoffs()

    def _link(self, spans: list[Span]) -> None:
        by_id: dict[str, Span] = {}
        for span in spans:
            if span.id in by_id:
                first = by_id[span.id].place
                expected = f"an id that no other span of the trace has (also {first.file}:{first.line})"
                raise span.refuse("duplicate-span", self.fields[0], span.id, expected, self.trace)
            by_id[span.id] = span
        self.children: dict[str, list[Span]] = {span.id: [] for span in spans}
        self.roots = [span for span in spans if span.parent not in by_id]
        for span in spans:
            if span.parent in by_id:
                self.children[span.parent].append(span)
        self.spans: dict[str, Span] = {}  # parents before children, depth first
        waiting = self.roots[::-1]
        while waiting:
            span = waiting.pop()
            self.spans[span.id] = span
            waiting += reversed(self.children[span.id])
        for span in spans:
            if span.id not in self.spans:
                expected = "the id of a span that is not its own descendant"
                raise span.refuse("parent-cycle", self.fields[1], span.parent, expected, self.trace)
        if len({span.parent for span in self.roots}) > 1:
            # One missing parent above everything is a caller that was not recorded; else it is open whose work this is.
            orphan = next(span for span in self.roots if span.parent)
            expected = "a span of this log: several pieces of this trace hang in the air"
            raise orphan.refuse("missing-parent", self.fields[1], orphan.parent, expected, self.trace)
        self.parent = {span.id: span.parent if span.parent in by_id else "" for span in spans}

    def _nearest(self, kinds: tuple[Kind, ...]) -> dict[str, str]:
        """For each span, the id of the nearest enclosing one of these kinds, "" without one."""
        nearest: dict[str, str] = {}
        for span_id in self.spans:
            above = self.parent[span_id]
            nearest[span_id] = "" if not above else above if self.kind[above] in kinds else nearest[above]
        return nearest

    def _holding(self, sought: Callable[[str], bool], through: Callable[[str], bool]) -> set[str]:
        """Ids of the spans above one that is sought, with only such as lead `through` between."""
        holding: set[str] = set()
        for span_id in reversed(self.spans):
            above = self.parent[span_id]
            if above and (sought(span_id) or (span_id in holding and through(span_id))):
                holding.add(above)
        return holding

    def _drop_what_is_no_event(self) -> None:
        self.kind = {span_id: span.kind for span_id, span in self.spans.items()}
        guarded: set[str] = set()
        for span_id, above in ((span_id, self.parent[span_id]) for span_id in self.spans):
            if above and (above in guarded or self.spans[above].kind is Kind.GUARD):
                guarded.add(span_id)
                self.kind[span_id] = Kind.OTHER
        outer = self._holding(lambda s: self.kind[s] is Kind.CALL, lambda s: self.kind[s] is Kind.OTHER)
        self.kind |= {span_id: Kind.OTHER for span_id in outer if self.kind[span_id] is Kind.CALL}
        inside = self._nearest((Kind.AGENT, Kind.TOOL))
        holding = self._holding(lambda s: self.kind[s] is Kind.AGENT, lambda s: self.kind[s] is not Kind.AGENT)
        tools = {s for s in self.spans if self.kind[s] is Kind.TOOL} - holding
        self.kind |= {s: Kind.OTHER for s in tools if inside[s] in tools}

    def _find_agents_as_tools(self) -> None:
        """Tools with an agent inside are no tool calls; `called_as` names the tool that an agent was started by."""
        holding = self._holding(lambda s: self.kind[s] is Kind.AGENT, lambda s: self.kind[s] is not Kind.AGENT)
        tools = {span_id for span_id in holding if self.kind[span_id] is Kind.TOOL}
        self.called_as = {s: self.tool[s] for s in self.spans if self.kind[s] is Kind.AGENT and self.tool[s] in tools}
        self.kind |= dict.fromkeys(tools, Kind.OTHER)

    def _find_handoffs(self) -> None:
        """`handed_to`: hand-off to the agent span it started; `first`: each agent span to the first of its chain."""
        self.handed_to: dict[str, str] = {}
        self.first: dict[str, str] = {}
        open_handoffs: dict[tuple[str, str], list[tuple[str, str]]] = {}  # (under, target) -> hand-off, from agent span
        self.last: dict[str, str] = {}  # the first span of a chain to its last
        for span_id, span in self.spans.items():
            if self.kind[span_id] is Kind.HANDOFF and self.owner[span_id]:
                giver = self.owner[span_id]
                open_handoffs.setdefault((self._under(giver), span.target), []).append((span_id, giver))
            elif self.kind[span_id] is Kind.AGENT:
                waiting = open_handoffs.get((self._under(span_id), span.name))
                first = span_id
                if waiting:
                    handoff, giver = waiting.pop(0)
                    self.handed_to[handoff] = span_id
                    first = self.first[giver]
                self.first[span_id] = first
                self.last[first] = span_id

    def _under(self, agent: str) -> str:
        """What a chain of hand-offs stays within: the tool, or else the agent, that started its first agent."""
        return self.called_as.get(agent) or self.owner[agent]


class _Writer:
    """Walks a tree and appends its events."""

    def __init__(self, record: TraceRecord, tree: _Tree, root: str) -> None:
        self.tree, self.root, self.team = tree, root, Team(record)
        self.instance: dict[str, str] = {}  # agent span -> instance
        self.active: dict[tuple[str, str], str] = {}  # (first span of a chain, name) -> instance
        self.calls: dict[str, int] = {}  # instance -> its latest call outside tools
        self.tools: dict[str, int] = {}

    def write(self) -> None:
        stack = [(span, False) for span in reversed(self.tree.roots)]
        while stack:
            span, leaving = stack.pop()
            if leaving:
                self._leave(span)
                continue
            self._enter(span)
            stack.append((span, True))
            stack += [(child, False) for child in reversed(self.tree.children[span.id])]
        self.team.finish()

    def _owner(self, span_id: str) -> str:
        """The instance that a span's events belong to."""
        owner = self.tree.owner[span_id]
        if owner:
            return self.instance[owner]
        instance = f"root:{self.root}"
        self.team.agent(instance, self.root)
        return instance

    def _enter(self, span: Span) -> None:
        kind = self.tree.kind[span.id]
        if kind is Kind.AGENT:
            self._begin_agent(span)
        elif kind is Kind.CALL:
            owner = self._owner(span.id)
            position = self.team.call(owner, span.event, span.place, time=span.start, **span.columns)
            above = self.tree.tool[span.id]
            if not above or self.tree.spans[above].kind is Kind.AGENT:
                self.calls[owner] = position
        elif kind is Kind.TOOL:
            owner = self._owner(span.id)
            self.tools[span.id] = self.team.tool_call(
                owner,
                span.event,
                span.place,
                call=self.calls.get(owner),
                tool=span.name,
                time=span.start,
                **span.columns,
            )
        elif kind is Kind.HANDOFF:
            self._hand_over(span)
        elif kind is Kind.HUMAN:
            self.team.human(self._owner(span.id), span.event, span.place, time=span.start)
        elif kind is Kind.GUARD and span.failed:
            self.team.safety(self._owner(span.id), span.event, span.place, time=span.start, tool=span.name)

    def _begin_agent(self, span: Span) -> None:
        tree = self.tree
        if span.id in self.instance:  # a hand-off has named it
            return
        instance = span.instance or span.id
        self.instance[span.id] = self.active[tree.first[span.id], span.name] = instance
        tool = tree.called_as.get(span.id, "")
        starter = self._owner(span.id) if tree.owner[span.id] or tool else ""
        known = instance in self.team.record.instances
        self.team.agent(instance, span.name, parent=starter)
        if starter and known:
            self.team.wake(starter, f"{span.id}.message", instance, span.place, time=span.start)
        elif starter:
            name = tree.spans[tool].name if tool else None
            call = self.calls.get(starter)
            self.team.spawn(starter, f"{span.id}.spawn", instance, span.place, call=call, tool=name, time=span.start)

    def _hand_over(self, span: Span) -> None:
        tree, giver = self.tree, self._owner(span.id)
        taker = tree.handed_to.get(span.id)
        chain = tree.first.get(tree.owner[span.id], "")
        known = self.active.get((chain, span.target))
        own = "" if taker is None else tree.spans[taker].instance
        if own in self.team.record.instances:
            known = own
        if taker is not None:
            self.instance[taker] = known or own or taker
        if known is not None:
            self.team.wake(giver, span.event, known, span.place, time=span.start)
            return
        instance = own or taker or f"{span.id}.target"  # an agent whose span is missing was started all the same
        self.active[chain, span.target] = instance
        self.team.agent(instance, span.target, parent=giver)
        self.team.spawn(giver, span.event, instance, span.place, time=span.start)

    def _leave(self, span: Span) -> None:
        kind, tree = self.tree.kind[span.id], self.tree
        status = "error" if span.failed else None
        if kind is Kind.TOOL:
            self.team.result(
                self._owner(span.id), f"{span.event}.result", span.place,
                answers=self.tools[span.id], tool=span.name, status=status, time=span.end,
            )  # fmt: skip
        elif kind is Kind.AGENT:
            first = tree.first[span.id]
            if tree.last[first] == span.id and (tree.owner[first] or first in tree.called_as):
                to = self._owner(first)
                self.team.returned(
                    self.instance[span.id], f"{first}.return", to, span.place, status=status, time=span.end
                )
