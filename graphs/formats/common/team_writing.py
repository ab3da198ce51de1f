"""Events of a tree of classified spans.

The order is depth first: an agent's events follow the order of the log, and a spawn is followed by everything below it
and then by the return. Causes therefore come before effects, independent of clocks. Siblings keep the reader's order.
"""

from __future__ import annotations

from graphs.formats.common.span_tree import Kind, Span, Tree
from graphs.formats.common.team import Team
from graphs.reading.files import model_names
from graphs.traces.record import TraceRecord

__all__ = ["write_spans"]


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
      TraceError: kinds "duplicate-span", "parent-cycle", "missing-parent"; "no-events", which is no fault of a log: a
        program was traced that called no model.
    """
    tree = Tree(record.trace_id, spans, fields)
    _Writer(record, tree, root).write()
    if not record.ids:
        record.refuse("no-events", "events", [], "a call of a model or a tool, or a message")
    record.model = record.model or model_names(span.model for span in spans if tree.kind[span.id] is Kind.CALL)


class _Writer:
    """Walks a tree and appends its events."""

    def __init__(self, record: TraceRecord, tree: Tree, root: str) -> None:
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
