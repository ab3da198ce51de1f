"""Classified spans of a trace, and their tree with the rules applied, shared by the readers of tracing exports.

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

import collections
import dataclasses
import enum
import math
from collections.abc import Callable
from typing import Any

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Place
from graphs.text import excerpt

__all__ = ["Kind", "Span", "Tree"]


class Kind(enum.Enum):
    """The role of a span."""

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


class Tree:
    """Spans from the roots down, with the rules applied; `fields` is what the format calls an id and a parent's id."""

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
        # (under, target) -> hand-off, from agent span
        open_handoffs: dict[tuple[str, str], collections.deque[tuple[str, str]]] = {}
        self.last: dict[str, str] = {}  # the first span of a chain to its last
        for span_id, span in self.spans.items():
            if self.kind[span_id] is Kind.HANDOFF and self.owner[span_id]:
                giver = self.owner[span_id]
                same = open_handoffs.setdefault((self._under(giver), span.target), collections.deque())
                same.append((span_id, giver))
            elif self.kind[span_id] is Kind.AGENT:
                waiting = open_handoffs.get((self._under(span_id), span.name))
                first = span_id
                if waiting:
                    handoff, giver = waiting.popleft()
                    self.handed_to[handoff] = span_id
                    first = self.first[giver]
                self.first[span_id] = first
                self.last[first] = span_id

    def _under(self, agent: str) -> str:
        """What a chain of hand-offs stays within: the tool, or else the agent, that started its first agent."""
        return self.called_as.get(agent) or self.owner[agent]
