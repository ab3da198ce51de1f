"""Events of a tree of spans.

The tree is walked depth first. An agent's events keep the order of the log. Behind a spawn come all events below it,
and then the return. So causes come before effects, whatever the clocks say. Spans of several processes leave some
orders open, and clocks decide these (`event_order`).
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from graphs.event_types import EventType
from graphs.formats.common.event_order import in_order
from graphs.formats.common.graph_nodes import Visits
from graphs.formats.common.span_tree import NO_ROOTS, Kind, Roots, Rules, Span, Tree
from graphs.formats.common.team import Team
from graphs.reading.files import name_models
from graphs.text import excerpt
from graphs.traces.record import ONE_ZONE, SPANNED, TraceRecord, stray_zoneless

__all__ = ["Written", "structure_alone", "write_events", "write_spans"]


class Written(NamedTuple):
    """Where the events of a tree stand in its record: their spans by position, and their positions by span."""

    tree: Tree
    team: Team
    events: list[tuple[str, bool]]
    """By position the span, and whether the event is its end."""
    opened: dict[str, int]
    """By span, the position of its first event."""


def write_spans(
    record: TraceRecord,
    spans: list[Span],
    root: str,
    fields: tuple[str, str] = ("id", "parent_id"),
    *,
    beside: Roots = NO_ROOTS,
) -> Written:
    """Fill the record with the events of a trace's spans, depth first.

    Args:
      record: the trace, without events yet.
      spans: all of its spans; those of one parent in the order of the log.
      root: name of the instance that events outside any agent span belong to; it is there only if there are such.
      fields: what the format calls a span's id and its parent's, for errors.
      beside: what the traces of the log show of root spans, as of `Tree`.

    Raises:
      TraceError: kinds "duplicate-span", "parent-cycle", "missing-parent".
    """
    written = write_events(record, Tree(record.trace_id, spans, fields, beside=beside), root)
    if not record.ids:
        record.lack_events("events", [], f"a call of a model or a tool, or a message{structure_alone([record])}")
    return written


def write_events(record: TraceRecord, tree: Tree, root: str) -> Written:
    """Fill the record with the events of a tree, which may have none.

    Raises:
      TraceError: "cycle", as `event_order.in_order`; "mixed-zones", spans with and without a zone.
    """
    spans = list(tree.spans.values())
    times = [time for span in spans for time in (span.start, span.end)]
    stray = stray_zoneless(times)
    if stray is not None:
        raise spans[stray // 2].refuse(
            "mixed-zones", ("start", "end")[stray % 2], times[stray], ONE_ZONE, record.trace_id
        )
    whole = tree.spans[tree.roots[0]] if len(tree.roots) == 1 else None
    place = record.file, record.line, record.offset
    if whole is not None and any(span.place == place for span in spans):  # the root span stands for the trace
        record.file, record.line, record.offset = whole.place[:3]
    written = _Writer(record, tree, root).write()
    record.missing, record.outside = tree.missing, tree.outside
    name_models(record)
    record.repeated += sum(span.again for span in spans)
    record.unknown = [(span.unknown, span.place) for span in spans if span.unknown and span.kind is Kind.OTHER]
    record.unlike_counts = [(span.unlike_counts, span.place) for span in spans if span.unlike_counts]
    several = ((tree.spans[span_id].place, of) for span_id, of in tree.embedded.items() if len(of) > 1)
    record.embedded = [(model, read, place) for place, of in several for model, read in of.items()]
    if tree.open is not None:
        what = "agent's span" if tree.parent[tree.open.id] else "root span"
        record.open = f"the {what} {excerpt(tree.open.name or tree.open.id)} has no end"
    _note_time(record, spans, times)
    if whole is not None and whole.failed and whole.kind in (Kind.AGENT, Kind.OTHER):  # no call or tool alone
        record.error = whole.fault or record.error or f"the root span {whole.name or whole.id} ended in an error"
    return written


def structure_alone(records: Iterable[TraceRecord]) -> str:
    """Why records without an event may lack them, for the end of a sentence: spans of kinds that are not known."""
    kinds = sorted({kind for record in records for kind, _ in record.unknown})
    return f"; spans of a kind that is not known give none: {', '.join(map(excerpt, kinds[:_NAMED]))}" if kinds else ""


_NAMED = 5  # kinds
UNKNOWN = "unknown"
"""The agent of work whose agent's span the log lacks."""
_ROUNDING = 1e-3  # seconds: sums of times since 1970 round to less


def _note_time(record: TraceRecord, spans: list[Span], times: list[float]) -> None:
    """Note the seconds that all spans take together, but a judge's or a guard's, where the events take fewer.

    `times` are the starts and ends of the spans.
    """
    judged: set[str] = set()
    for span in spans:  # parents come first
        if span.kind is Kind.JUDGE or span.kind is Kind.GUARD or span.parent in judged:
            judged.add(span.id)
    if judged:
        times = [time for span in spans if span.id not in judged for time in (span.start, span.end)]
    of_spans, of_events = _span(times), _span(record.times)
    if record.ids and of_spans - of_events > _ROUNDING and "seconds" in record.columns:
        took = [seconds or 0.0 for seconds in record.columns["seconds"]]
        of_events = _span([*record.times, *(time + more for time, more in zip(record.times, took, strict=False))])
    if record.ids and of_spans - of_events > _ROUNDING:
        record.metrics[SPANNED] = of_spans


def _span(times: list[float]) -> float:
    """Seconds from the first time to the last; 0 without one."""
    known = list(itertools.filterfalse(math.isnan, times))
    return max(known) - min(known) if known else 0.0


class _Act(enum.Enum):
    CALL = enum.auto()
    TOOL = enum.auto()
    RESULT = enum.auto()
    SPAWN = enum.auto()
    WAKE = enum.auto()
    RETURN = enum.auto()
    HUMAN = enum.auto()
    SAFETY = enum.auto()


_ACTS = {Kind.CALL: _Act.CALL, Kind.TOOL: _Act.TOOL, Kind.HUMAN: _Act.HUMAN, Kind.GUARD: _Act.SAFETY}


class _Event(NamedTuple):
    """An event of a span: its id, its agent instance, and the instance that it starts, wakes or returns to."""

    act: _Act
    span: Span
    id: str
    agent: str
    to: str = ""
    closing: bool = False


class _Writer:
    """Finds the agent instances and the events of a tree depth first, orders the events, and appends them."""

    def __init__(self, record: TraceRecord, tree: Tree, root: str) -> None:
        self.tree, self.root = tree, root
        self.is_clocks = tree.rules is Rules.CLOCKS
        self.team = Team(record, sorts=self.is_clocks)
        self.instance: dict[str, str] = {}  # agent span -> instance
        self.active: dict[tuple[str, str], str] = {}  # (first span of a chain of hand-offs, name) -> instance
        self.calls: dict[str, int] = {}  # instance -> its latest call
        self.asked_at: dict[tuple[str, str], int] = {}  # instance, id of a tool call -> the latest call that asked
        self.opened: dict[str, int] = {}
        self.visits = Visits(tree)

    @functools.cached_property
    def only_root(self) -> str:
        """The agent span that is in no other, where there is one such."""
        agents = [i for i, kind in self.tree.kind.items() if kind is Kind.AGENT and not self.tree.owner[i]]
        return agents[0] if len(agents) == 1 else ""

    @functools.cached_property
    def told(self) -> dict[str, str]:
        """What each missing parent is called: the one agent that all work right below it names, if there is one."""
        names: dict[str, set[str]] = {}
        for span_id, caller in self.tree.callers.items():
            given = names.setdefault(caller, set())
            if self.tree.kind[span_id] is not Kind.OTHER and not self.tree.owner[span_id]:
                given |= {self.tree.spans[span_id].giver} - {""}
        return {caller: given.pop() if len(given) == 1 else UNKNOWN for caller, given in names.items()}

    def write(self) -> Written:
        events = self._events()
        asked: dict[tuple[str, str], list[str]] = {}  # instance, id of a tool call -> spans of calls that asked for it
        for event in events:
            if event.act is _Act.CALL and event.span.emitted:
                for call_id in event.span.emitted:
                    asked.setdefault((event.agent, call_id), []).append(event.span.id)
        if self.is_clocks:
            steps = [(event.span.id, event.closing) for event in events]
            events = [events[i] for i in in_order(self.tree, steps, self._asked_alone(events, asked))]
        for event in events:
            position = self._append(event, asked)
            if self.visits.nodes:
                is_call, is_result = event.act is _Act.CALL, event.act is _Act.RESULT
                causes = self.visits.add(event.span.id, event.agent, position, is_call=is_call, is_result=is_result)
                if causes:
                    self.team.hear(position, causes)
            if not event.closing:
                self.opened[event.span.id] = position
        self.team.finish()
        self._price_code(events)
        return Written(self.tree, self.team, [(event.span.id, event.closing) for event in events], self.opened)

    def _price_code(self, events: list[_Event]) -> None:
        """State that a start of an agent by code cost nothing, in what model calls of the trace state.

        The agent that starts it calls no model, and nothing that a model asks for: no tool, no hand-off.
        """
        record, tree = self.team.record, self.tree
        acts = [i for i, event in enumerate(events) if event.act is not _Act.CALL and record.actions[i]]
        calls = [i for i, event in enumerate(events) if event.act is _Act.CALL]
        if not acts or not calls or tree.callers:
            return
        asked = {
            events[i].agent
            for i in acts
            if tree.kind[events[i].span.id] is not Kind.AGENT or tree.called_as.get(events[i].span.id)
        }
        for name in ("tokens", "input_tokens", "money"):
            column = record.columns.get(name, [])
            if any(column[i] is not None for i in calls if i < len(column)):
                column.extend([None] * (len(events) - len(column)))
                for i in acts:
                    if events[i].agent not in asked and column[i] is None:
                        column[i] = 0

    def _events(self) -> list[_Event]:
        """The events of all spans, depth first; declares the agent instances."""
        kinds, spans, children = self.tree.kind, self.tree.spans, self.tree.children
        events: list[_Event | None] = []
        stack = [(span_id, False) for span_id in reversed(self.tree.roots)]
        while stack:
            span_id, leaving = stack.pop()
            kind, span = kinds[span_id], spans[span_id]
            if leaving:
                events.append(self._leave(span, kind))
                continue
            if kind is not Kind.OTHER:
                events.append(self._enter(span, kind))
            if kind is Kind.AGENT or kind is Kind.TOOL:
                stack.append((span_id, True))
            if children[span_id]:
                stack += [(child, False) for child in reversed(children[span_id])]
        return [event for event in events if event is not None]

    def _enter(self, span: Span, kind: Kind) -> _Event | None:
        if kind is Kind.AGENT:
            return self._begin_agent(span)
        if kind is Kind.HANDOFF:
            return self._hand_over(span)
        if kind is Kind.GUARD and self.is_clocks and self.only_root and not self.tree.owner[span.id]:
            return _Event(_Act.SAFETY, span, span.event, self.only_root)
        if kind is Kind.GUARD and not (span.failed or self.is_clocks):
            return None
        return _Event(_ACTS[kind], span, span.event, self._owner(span))

    def _leave(self, span: Span, kind: Kind) -> _Event | None:
        tree = self.tree
        if span.id in tree.unended:  # what was killed did not return, and what it called has no result
            return None
        if kind is Kind.TOOL:
            return _Event(_Act.RESULT, span, f"{span.event}.result", self._owner(span), closing=True)
        first = tree.first.get(span.id, span.id)
        is_last = tree.last.get(first, first) == span.id
        if is_last and (tree.owner[first] or (tree.called_as.get(first) and not self.is_clocks)):
            to = self._owner(tree.spans[first])
            return _Event(_Act.RETURN, span, f"{first}.return", self.instance[span.id], to, closing=True)
        return None

    def _owner(self, span: Span) -> str:
        """The instance that a span's events belong to."""
        owner = self.tree.owner[span.id]
        if owner:
            return self.instance[owner]
        caller = self.tree.callers.get(span.id)
        if caller is not None:
            self.team.agent(caller, self.told[caller])
            return caller
        name = span.service or self.root
        instance = f"{'service' if self.is_clocks else 'root'}:{name}"
        self.team.agent(instance, name)
        return instance

    def _begin_agent(self, span: Span) -> _Event | None:
        tree = self.tree
        if span.id in self.instance:  # a hand-off has named it
            return None
        instance = span.instance or span.id
        chain = tree.first.get(span.id, span.id)
        self.instance[span.id] = self.active[chain, span.name] = instance
        is_started = tree.owner[span.id] or (tree.called_as.get(span.id) and not self.is_clocks)
        starter = self._owner(span) if is_started else ""
        known = instance in self.team.record.instances
        self.team.agent(instance, span.name, span.role, starter)
        if not starter:
            return None
        if known:
            return _Event(_Act.WAKE, span, f"{span.id}.message", starter, instance)
        return _Event(_Act.SPAWN, span, f"{span.id}.spawn", starter, instance)

    def _hand_over(self, span: Span) -> _Event:
        tree, giver = self.tree, self._owner(span)
        taker = tree.handed_to.get(span.id)
        chain = tree.first.get(tree.owner[span.id], "")
        known = self.active.get((chain, span.target))
        stated = "" if taker is None else tree.spans[taker].instance
        if stated in self.team.record.instances:
            known = stated
        if taker is not None:
            self.instance[taker] = known or stated or taker
        if known is not None:
            return _Event(_Act.WAKE, span, span.event, giver, known)
        instance = stated or taker or f"{span.id}.target"  # an agent whose span is missing was started all the same
        self.active[chain, span.target] = instance
        self.team.agent(instance, span.target, parent=giver)
        return _Event(_Act.SPAWN, span, span.event, giver, instance)

    def _asked_alone(self, events: list[_Event], asked: dict[tuple[str, str], list[str]]) -> Iterator[tuple[str, str]]:
        """Pairs of a call's span and an effect's span, for each effect that exactly one call asked for."""
        for event in events if asked else ():
            calls = self._calls(event, asked)
            if len(calls) == 1:
                yield calls[0], event.span.id

    def _calls(self, event: _Event, asked: dict[tuple[str, str], list[str]]) -> list[str]:
        """The spans of the calls that asked for an effect by its id."""
        call_id = self._call_id(event, asked)
        return asked[event.agent, call_id] if call_id else []

    def _call_id(self, event: _Event, asked: dict[tuple[str, str], list[str]]) -> str:
        """The id of the tool call that an effect answers, if a call of its agent asked for it; "" otherwise."""
        if event.act is _Act.TOOL:
            call_ids = iter((event.span.call_id,))
        elif event.act is _Act.SPAWN:
            call_ids = (self.tree.spans[tool].call_id for tool in self.tree.tools_around(event.span.id))
        else:
            return ""
        return next((call_id for call_id in call_ids if call_id and (event.agent, call_id) in asked), "")

    def _emitter(self, event: _Event, asked: dict[tuple[str, str], list[str]]) -> int | None:
        """The last earlier call of the instance that asked for an effect; if none did, its last earlier call."""
        call_id = self._call_id(event, asked) if asked else ""
        return self.asked_at.get((event.agent, call_id), self.calls.get(event.agent))

    def _append(self, event: _Event, asked: dict[tuple[str, str], list[str]]) -> int:
        act, span, event_id, agent, to, closing = event
        team, tree = self.team, self.tree
        if closing:
            columns = {"time": span.end, "status": "error" if span.failed else None} | span.end_columns
            if act is _Act.RETURN:
                return team.returned(agent, event_id, columns.pop("to", to), span.place, **columns)
            answers = self.opened[span.id]
            return team.result(agent, event_id, span.place, answers=answers, **{"tool": span.name} | columns)
        columns = {"time": span.start}
        if act is _Act.CALL:
            if span.id in tree.planned:
                columns["event_type"] = EventType.ORCHESTRATOR_DECISION
            columns |= {
                "model": span.model or None,
                "requested_model": span.requested or None,
                "seconds": span.seconds,
                "money": span.money,
            }
            columns["status"] = "error" if span.failed else None
            position = team.call(agent, event_id, span.place, stopped=span.stopped, **columns | span.columns)
            if span.id not in tree.inside_tool:
                self.calls[agent] = position
            if span.emitted:
                self.asked_at |= dict.fromkeys(((agent, call_id) for call_id in span.emitted if call_id), position)
            return position
        if act is _Act.TOOL:
            call = self._emitter(event, asked)
            inside = tree.money_inside.get(span.id)
            columns["money"] = span.money if inside is None else (span.money or 0.0) + inside
            columns |= {"tool": span.name} | span.columns
            if len(embedded := tree.embedded.get(span.id, {})) == 1:
                ((columns["model"], columns["input_tokens"]),) = embedded.items()
            return team.tool_call(agent, event_id, span.place, call=call, **columns)
        if act is _Act.SPAWN and tree.kind[span.id] is Kind.HANDOFF:
            return team.spawn(agent, event_id, to, span.place, **columns)
        if act is _Act.SPAWN:
            tool = tree.called_as.get(span.id)
            columns |= {"tool": tree.spans[tool].name if tool else None} | span.columns
            return team.spawn(agent, event_id, to, span.place, call=self._emitter(event, asked), **columns)
        if act is _Act.WAKE:
            return team.wake(agent, event_id, to, span.place, **columns)
        if act is _Act.HUMAN:
            return team.human(agent, event_id, span.place, **columns)
        return team.safety(agent, event_id, span.place, **columns | {"tool": span.name or None} | span.columns)
