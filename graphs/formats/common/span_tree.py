"""Spans of a trace, and their tree with the rules applied: what each span is once its relatives are known.

A span alone does not tell enough: a model call may be wrapped in another span that calls itself one, and a tool may be
an agent in disguise. Each rule is one method of `Tree`:

- What happens inside a guardrail or an evaluator is not the team's doing.
- An outermost agent without a name that holds only agents is the run, not an agent.
- A plan is a decision, and so are the model calls that make it.
- A model call with another one inside, and no tool or agent between, is a wrapper. Usage counts at the inner one.
- A tool with an agent inside is the spawn of that agent. A tool inside a tool belongs to the outer one.
- An agent that holds only one span of the same agent is the caller's side of a remote agent.
- A hand-off starts the next agent span of its target's name under the same agent, or wakes the instance of that name
  which was active before in the same chain of hand-offs.

No function recurses: logs are untrusted, and spans may nest without limit.
"""

from __future__ import annotations

import collections
import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.documents import Place
from graphs.text import counted, excerpt

__all__ = ["NO_ROOTS", "Kind", "Node", "Rules", "Span", "Tree", "add_span", "kind_of", "roots_of"]


class Kind(enum.Enum):
    """The role of a span."""

    AGENT = "agent"  # one activation of an agent
    CALL = "call"  # a model call
    TOOL = "tool"
    HANDOFF = "handoff"  # its agent hands over to the one named `target`
    GUARD = "guard"  # a guardrail
    JUDGE = "judge"  # an evaluator, outside the team: no event
    HUMAN = "human"  # what a human wrote to the agent, or decided for it
    OTHER = "other"  # structure only

    __hash__ = object.__hash__  # members are single objects; the hash of their names takes ten times as long


def kind_of(word: str, kinds: Mapping[str, Kind]) -> tuple[Kind, str]:
    """The kind that a log's word means, and the word itself if it is not among `kinds`: `Span.unknown`, for a note.

    Args:
      word: as the log states it, "" for nothing.
      kinds: by word, those that the format knows, with `Kind.OTHER` for those that only give structure.
    """
    kind = kinds.get(word)
    return (Kind.OTHER, word) if kind is None else (kind, "")


class Rules(enum.Enum):
    """Which rules a tree applies, and how its events are ordered.

    A model call inside a tool is the agent's action, and no cause of its next tool call.
    """

    DEPTH_FIRST = "depth first"
    """Siblings stand in the order in which they happened. A tool inside a tool is no event, whatever lies between."""
    CLOCKS = "clocks"
    """Spans of several processes, in any order: clocks order the events where the tree does not. The tools inside a
    model call inside a tool are the agent's."""
    STATED = "stated"
    """The log states its events. Every span keeps its kind."""


class Node(NamedTuple):
    """A visit to a node of LangGraph.

    Attributes:
      graph: the span of its graph.
      step: the super-step in which it ran, -1 where the log does not say.
      joined: names of nodes that it waited for, beyond those of the step before.
      after: the visits that it ran after, once `graph_nodes.keep_agents` knows them.
    """

    graph: str
    step: int = -1
    joined: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Span(msgspec.Struct):
    """A span of a trace. Two spans are equal if they state the same, wherever they stand.

    Attributes:
      id, parent: its id and its parent's, "" for none.
      place: where it stands.
      name: of the agent or the tool.
      start, end: seconds, NaN where absent. They become times and order nothing.
      target: of a hand-off, the name of the agent that takes over.
      giver: the name of the agent whose act it is, where a hand-off, a call or a tool states it.
      label: the id of its event, by default the span's.
      instance: agent spans of one instance are one agent, woken again; by default each is an instance of its own.
      failed: it ended in an error; of a guardrail: it was triggered.
      fault: what the log says of that error, if anything.
      columns: text and evidence of its first event. They overrule what the writer knows by itself.
      end_columns: those of the event at its end.
      model: of a model call.
      money: what a model call or a tool cost, None where the log does not say.
      requested: of a model call, the name that it asked for, where the answer has no name or another one.
      clock: start and end in nanoseconds, -1 where absent, by which `Rules.CLOCKS` orders events.
      role: of an agent, by default its name.
      agent_id: of an agent, an id that its spans in several processes have in common.
      named: whether an attribute names the agent; None where a format cannot tell.
      decides: of a model call, it is a plan.
      emitted: of a model call, the ids of the tool calls that it asked for.
      call_id: of a tool, the tool call that it answers.
      stopped: of a model call, why its reply ended, as the log states it.
      service: the process that recorded it, an agent for what has none.
      node: the visit to a node of LangGraph that it is.
      again: how often it stands in the log besides, with equal content.
      unlike_counts: of a model call, the counts of which it states different numbers, in words.
      embedded: of a tool that is an embedding, its model and the tokens that it read; ("", 0) of others.
      unknown: the kind that it states, where its format does not know it; "" where it does.
    """

    id: str
    parent: str
    kind: Kind
    place: Place
    name: str = ""
    start: float = math.nan
    end: float = math.nan
    target: str = ""
    giver: str = ""
    label: str = ""
    instance: str = ""
    failed: bool = False
    fault: str = ""
    columns: dict[str, Any] = {}
    model: str = ""
    requested: str = ""
    end_columns: dict[str, Any] = {}
    clock: tuple[int, int] = (-1, -1)
    role: str = ""
    agent_id: str = ""
    named: bool | None = None
    decides: bool = False
    emitted: tuple[str, ...] = ()
    call_id: str = ""
    stopped: Any = None
    service: str = ""
    node: Node | None = None
    money: float | None = None
    again: int = 0
    unknown: str = ""
    unlike_counts: str = ""
    embedded: tuple[str, int] = ("", 0)

    def __eq__(self, other: object) -> bool:
        """By their texts: NaN, an absent time, equals no other NaN."""
        return isinstance(other, Span) and self._stated() == other._stated()

    def _stated(self) -> str:
        return repr([getattr(self, name) for name in self.__struct_fields__ if name not in ("place", "money", "again")])

    @property
    def event(self) -> str:
        """The id of its event."""
        return self.label or self.id

    @property
    def is_open(self) -> bool:
        """Whether it has begun and, as far as the log tells, not ended."""
        return math.isnan(self.end) and not math.isnan(self.start)

    def instant(self, is_end: bool = False) -> tuple[int, int]:
        """The clock of its begin, or of its end, and a rank at that time: first ends, then what took none, then begins.

        So a step that begins as the last one ends comes after it, wherever the two stand in the log.
        """
        begin, end = self.clock
        return end if is_end else begin, 1 if begin == end else 0 if is_end else 2

    @property
    def seconds(self) -> float | None:
        """Seconds from its begin to its end; None where they are not both stated, or are one moment."""
        begin, end = self.clock
        is_exact = min(begin, end) > 0 and not math.isnan(self.start)  # else the clock only has the span's place
        took = (end - begin) / 1e9 if is_exact else self.end - self.start
        return took if took > 0 else None

    def refuse(self, kind: str, field: str, value: object, expected: str, trace: str) -> TraceError:
        """The error that points at this span."""
        return TraceError(Problem(kind, self.place.file, self.place.line, field, excerpt(value), expected, trace))


def add_span(spans: dict[str, Span], span: Span, field: str, trace: str) -> bool:
    """Add a span to those of its trace, by id; False if it is there already, with equal content.

    Pages of an export overlap, and a download may list its observations twice.

    Args:
      spans: of the trace so far.
      span: as read.
      field: what the format calls a span's id, for errors.
      trace: the trace's id.

    Raises:
      TraceError: "duplicate-span", another span of the trace has its id.
    """
    first = spans.setdefault(span.id, span)
    if first is not span and first != span:
        expected = f"an id with one content: {first.place.file}:{first.place.line} has another"
        raise span.refuse("duplicate-span", field, span.id, expected, trace)
    first.again += first is not span
    return first is span


class Roots(NamedTuple):
    """What the traces of a log show of root spans, so that one without is told from one that was cut short.

    Attributes:
      whole: whether one has a root span and events. Where several processes record spans, it must have an agent.
      ended: whether one of these roots states its end.
    """

    whole: bool = False
    ended: bool = False


NO_ROOTS = Roots()


def roots_of(traces: Iterable[Iterable[Span]], rules: Rules = Rules.DEPTH_FIRST) -> Roots:
    """What these traces, by their spans, show of root spans."""
    found = NO_ROOTS
    for spans in traces:
        rooted, ended, kinds = False, False, set[Kind]()
        for span in spans:
            rooted |= not span.parent
            ended |= not span.parent and not math.isnan(span.end)
            kinds.add(span.kind)
        if rooted and (Kind.AGENT in kinds if rules is Rules.CLOCKS else kinds != {Kind.OTHER}):
            found = Roots(whole=True, ended=found.ended or ended)
        if found.ended:
            break
    return found


class Tree:
    """The spans of a trace from the roots down, with the rules applied.

    Attributes:
      trace: id of the trace, for errors.
      spans: by id, parents before children, siblings in the order of the log, by `Rules.CLOCKS` of their clocks.
      rank: the position of each span in the log.
      parent: by id, the id of the parent; "" where it has none in this log.
      children: by id.
      kind: what each span is after all rules; `Kind.OTHER` for spans that only give structure.
      owner: id of the nearest enclosing agent span, "" without one.
      planned: ids of the model calls that are, or are inside, a plan.
      inside_tool: ids of the spans inside a tool, with no agent between.
      money_inside: of a tool, what the tools cost that it holds.
      embedded: of a tool, the tokens that each model of embeddings read for it, in it or as itself.
      called_as: of an agent, the tool span that is its spawn, "" for none; of such a tool, the one around it.
      handed_to: the agent span that each hand-off started.
      first, last: of an agent span in a chain of hand-offs, the first of the chain; of that one, the last.
      open: the root span, where it has begun and not ended, unlike that of another trace; else an agent's, unlike
        another agent's of the trace, as of one that was killed while another worked; else None.
      unended: ids of the open spans of agents and tools in a run or in an agent that is `open`.
      callers: of each span below a missing parent, that parent's id, where the trace lacks spans; empty elsewhere.
    """

    def __init__(
        self,
        trace: str,
        spans: list[Span],
        fields: tuple[str, str],
        rules: Rules = Rules.DEPTH_FIRST,
        *,
        beside: Roots = NO_ROOTS,
    ) -> None:
        """Build the tree; `fields` is what the format calls an id and a parent's id, for errors.

        `beside` is what the traces of the log show of roots: where any has one, a missing one is no caller outside the
        log, and where any ends, one without an end was cut short.

        Raises:
          TraceError: "duplicate-span", one id with two contents; "parent-cycle"; "missing-parent".
        """
        self.trace, self.fields, self.rules = trace, fields, rules
        self._link(spans)
        self.kind = {span_id: span.kind for span_id, span in self.spans.items()}
        self.planned: set[str] = set()
        self.inside_tool: set[str] = set()
        self.called_as: dict[str, str] = {}
        self.handed_to: dict[str, str] = {}
        self.first: dict[str, str] = {}
        self.last: dict[str, str] = {}
        self.callers: dict[str, str] = {}
        self.money_inside: dict[str, float] = {}
        self.embedded: dict[str, dict[str, int]] = {i: {of[0]: of[1]} for i, span in self.spans.items()
                                                    if (of := span.embedded)[1]}  # fmt: skip
        if rules is not Rules.STATED:
            self._apply_rules()
        self.owner = self._nearest(Kind.AGENT)
        if Kind.HANDOFF in self.kind.values():
            self._find_givers()
            self._find_handoffs()
        self._check_orphans(beside.whole)
        roots = [self.spans[root] for root in self.roots] if beside.ended else []
        self.open = next((root for root in roots if not root.parent and root.is_open), None)
        self.unended = self._find_unended()

    def _find_unended(self) -> set[str]:
        agents = [span_id for span_id, kind in self.kind.items() if kind is Kind.AGENT]
        killed = {span_id for span_id in agents if self.spans[span_id].is_open}
        if self.open is None:
            killed = {span_id for span_id in killed if self.parent[span_id]}
            if not killed or all(math.isnan(self.spans[span_id].end) for span_id in agents):
                return set()
            self.open = next(self.spans[span_id] for span_id in agents if span_id in killed)
            within = killed
        else:
            within = {*agents, ""}
        tools = (span_id for span_id, kind in self.kind.items() if kind is Kind.TOOL and self.owner[span_id] in within)
        return killed | {span_id for span_id in tools if self.spans[span_id].is_open}

    def _link(self, spans: list[Span]) -> None:
        by_id = {span.id: span for span in spans}
        if len(by_id) < len(spans):
            by_id = {}
            for span in spans:
                add_span(by_id, span, self.fields[0], self.trace)
        self.rank = dict(zip(by_id, range(len(by_id)), strict=True))
        if self.rules is Rules.CLOCKS:  # an agent may be logged before one that began earlier
            by_id = {span.id: span for span in sorted(by_id.values(), key=Span.instant)}
        children: dict[str, list[str]] = {span_id: [] for span_id in by_id}
        parents = {span_id: span.parent if span.parent in by_id else "" for span_id, span in by_id.items()}
        for span_id, parent in parents.items():
            if parent:
                children[parent].append(span_id)
        self.children, self.roots = children, [span_id for span_id, parent in parents.items() if not parent]
        self.spans: dict[str, Span] = {}
        waiting = self.roots[::-1]
        while waiting:
            current = waiting.pop()
            self.spans[current] = by_id[current]
            if children[current]:
                waiting += children[current][::-1]
        if len(self.spans) < len(by_id):
            span = next(span for span_id, span in by_id.items() if span_id not in self.spans)
            expected = "the id of a span that is not its own descendant"
            raise span.refuse("parent-cycle", self.fields[1], span.parent, expected, self.trace)
        self.parent = {span_id: parents[span_id] for span_id in self.spans}

    def _apply_rules(self) -> None:
        """Apply the rules in their order; one whose kinds of spans the trace lacks is left out, for speed."""
        kinds = set(self.kind.values())
        holders = {kind for span_id, kind in self.kind.items() if self.children[span_id]}
        if Kind.JUDGE in kinds or Kind.GUARD in kinds:
            self._silence_judges()
        if Kind.AGENT in holders:
            self._drop_workflows()
        if Kind.CALL in kinds and any([span.decides for span in self.spans.values()]):
            self._find_plans()
        if Kind.CALL in holders:
            self._drop_wrappers()
        if Kind.TOOL in holders:
            self.inside_tool = self._inside(self._is(Kind.TOOL), lambda i: self.kind[i] is not Kind.AGENT)
            self._find_agents_as_tools()
        if Kind.AGENT in holders:
            self._merge_remote_pairs()
        if Kind.TOOL in holders:
            self._drop_tools_in_tools()

    def _nearest(self, kind: Kind) -> dict[str, str]:
        """For each span, the id of the nearest enclosing one of a kind, "" without one."""
        nearest: dict[str, str] = {}
        kinds = self.kind
        for span_id, parent in self.parent.items():
            nearest[span_id] = parent if not parent or kinds[parent] is kind else nearest[parent]
        return nearest

    def _inside(self, begins: Callable[[str], bool], through: Callable[[str], bool]) -> set[str]:
        """Ids of the spans below a span that satisfies `begins`. Every span between must satisfy `through`."""
        inside: set[str] = set()
        for span_id, parent in self.parent.items():
            if parent and (begins(parent) or (parent in inside and through(parent))):
                inside.add(span_id)
        return inside

    def _holding(self, sought: Callable[[str], bool], through: Callable[[str], bool]) -> set[str]:
        """Ids of the spans above one that is `sought`, with only spans where `through` between."""
        holding: set[str] = set()
        for span_id in reversed(self.spans):
            parent = self.parent[span_id]
            if parent and (sought(span_id) or (span_id in holding and through(span_id))):
                holding.add(parent)
        return holding

    def _is(self, *kinds: Kind) -> Callable[[str], bool]:
        return lambda span_id: self.kind[span_id] in kinds

    def _drop(self, span_ids: set[str]) -> None:
        self.kind |= dict.fromkeys(span_ids, Kind.OTHER)

    def _silence_judges(self) -> None:
        self._drop(self._inside(self._is(Kind.JUDGE, Kind.GUARD), lambda _: True))
        self._drop({span_id for span_id, kind in self.kind.items() if kind is Kind.JUDGE})

    def _drop_workflows(self) -> None:
        """OpenInference's instrumentation of the OpenAI Agents SDK calls the whole run ("Agent workflow") an agent.

        It is the root, or lies in spans of a server.
        """
        unnamed = [i for i, span in self.spans.items() if span.named is False and self.kind[i] is Kind.AGENT]
        inside = self._inside(lambda i: self.kind[i] is not Kind.OTHER, lambda _: True) if unnamed else set()
        for root in unnamed:
            if root in inside:
                continue
            below, waiting = [], [root]
            while waiting:
                children = self.children[waiting.pop()]
                below += [child for child in children if self.kind[child] is not Kind.OTHER]
                waiting += [child for child in children if self.kind[child] is Kind.OTHER]
            if below and all(self.kind[child] is Kind.AGENT for child in below):
                self._drop({root})

    def _find_plans(self) -> None:
        plans = {i for i, span in self.spans.items() if span.decides and self.kind[i] is Kind.CALL}
        self.planned = plans | self._inside(plans.__contains__, self._is(Kind.CALL, Kind.OTHER))

    def _drop_wrappers(self) -> None:
        holding = self._holding(self._is(Kind.CALL), self._is(Kind.OTHER))
        self._drop({span_id for span_id in holding if self.kind[span_id] is Kind.CALL})

    def _find_agents_as_tools(self) -> None:
        holding = self._holding(self._is(Kind.AGENT), lambda i: self.kind[i] is not Kind.AGENT)
        tools = {span_id for span_id in holding if self.kind[span_id] is Kind.TOOL}
        around: dict[str, str] = {}  # the nearest of these tools around each span, with no agent between
        for span_id, parent in self.parent.items():
            in_agent = not parent or self.kind[parent] is Kind.AGENT
            around[span_id] = "" if in_agent else parent if parent in tools else around[parent]
            if span_id in tools or self.kind[span_id] is Kind.AGENT:
                self.called_as[span_id] = around[span_id]
        self._drop(tools)

    def tools_around(self, agent: str) -> Iterator[str]:
        """The tool spans that an agent was called as, the innermost first."""
        tool = self.called_as.get(agent, "")
        while tool:
            yield tool
            tool = self.called_as[tool]

    def _merge_remote_pairs(self) -> None:
        contents: dict[str, list[str]] = {}  # of each span, the first two spans below that are no mere structure
        for span_id in reversed(self.spans):
            kind = self.kind[span_id]
            below: list[str] = []
            if kind is Kind.AGENT or kind is Kind.OTHER:
                below = [c for child in self.children[span_id] for c in contents[child]]
                if kind is Kind.AGENT and len(below) == 1 and self._is_same_agent(span_id, below[0]):
                    self.kind[below[0]] = Kind.OTHER
            contents[span_id] = below[:2] if kind is Kind.OTHER else [span_id]

    def _is_same_agent(self, outer: str, inner: str) -> bool:
        """Whether both are agents of equal ids, or of equal names where an id is missing."""
        if self.kind[inner] is not Kind.AGENT:
            return False
        a, b = self.spans[outer], self.spans[inner]
        if a.agent_id and b.agent_id:
            return a.agent_id == b.agent_id
        return bool(a.named and b.named) and a.name == b.name

    def _drop_tools_in_tools(self) -> None:
        """What a tool does inside itself (a retriever its embedding) is the tool's own affair."""
        through = (Kind.TOOL, Kind.OTHER) if self.rules is Rules.CLOCKS else tuple(set(Kind) - {Kind.AGENT})
        inside = self._inside(self._is(Kind.TOOL), self._is(*through))
        dropped = {span_id for span_id in inside if self.kind[span_id] is Kind.TOOL}
        for span_id in dropped:
            outer = self.parent[span_id]
            while outer in inside:
                outer = self.parent[outer]
            if (money := self.spans[span_id].money) is not None:
                self.money_inside[outer] = self.money_inside.get(outer, 0.0) + money
            for model, read in self.embedded.pop(span_id, {}).items():
                of = self.embedded.setdefault(outer, {})
                of[model] = of.get(model, 0) + read
        self._drop(dropped)

    def _find_givers(self) -> None:
        """Give a hand-off outside any agent to the latest agent of the stated name; without one it is structure."""
        latest: dict[str, str] = {}
        for span_id, span in self.spans.items():
            if self.kind[span_id] is Kind.AGENT:
                latest[span.name] = span_id
            elif self.kind[span_id] is Kind.HANDOFF and self.rules is Rules.CLOCKS and not self.owner[span_id]:
                self.owner[span_id] = latest.get(span.giver, "")
                if not self.owner[span_id]:
                    self.kind[span_id] = Kind.OTHER

    def _find_handoffs(self) -> None:
        """An agent that hands off does not wait, so only the last agent of a chain returns, to the first one's."""
        # (what the chain stays within, target) -> hand-offs without a taker so far, each with its agent span
        open_handoffs: dict[tuple[str, str], collections.deque[tuple[str, str]]] = {}
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

    def _check_orphans(self, beside_whole: bool) -> None:
        """A missing parent is the caller outside this log, unless that leaves open whose work the orphan is.

        One missing parent above everything is a caller that was not recorded. With two of them, or with another root
        beside one, spans between are missing: a process that is killed exports no span that is still open. The work
        right below is then of an agent that the log does not tell. Where no span tells any agent, or where the log
        states its events, the trace is refused. Of several processes some record structure alone; where one process
        records all, a root without events counts, too.
        """
        is_rootless = beside_whole and all(self.spans[root].parent for root in self.roots)
        if is_rootless and any(map(self._holds_events, self.roots)):
            self._find_callers()
            return
        if len(self.roots) < 2 or len({self.spans[root].parent for root in self.roots}) < 2:
            return
        holding = [root for root in self.roots if self.rules is Rules.DEPTH_FIRST or self._holds_events(root)]
        if len({self.spans[root].parent for root in holding}) > 1:
            orphan = next(self.spans[root] for root in holding if self.spans[root].parent)
            if (beside_whole or Kind.AGENT in self.kind.values()) and self.rules is not Rules.STATED:
                self._find_callers()
                return
            expected = "a span of this log: several pieces of this trace hang in the air"
            raise orphan.refuse("missing-parent", self.fields[1], orphan.parent, expected, self.trace)

    def _find_callers(self) -> None:
        """Note of each span below a missing parent which it is."""
        for span_id, parent in self.parent.items():
            caller = self.callers.get(parent, "") if parent else self.spans[span_id].parent
            if caller:
                self.callers[span_id] = caller

    @property
    def top(self) -> str:
        """The id of the one span that the log lacks above all others: a score of it is the trace's. "" for none."""
        above = {self.spans[root].parent for root in self.roots}
        return above.pop() if len(above) == 1 else ""

    @property
    def missing(self) -> str:
        """Which spans the trace lacks, in words; "" where it lacks none, or only a caller outside the log."""
        if not self.callers:
            return ""
        pieces = [self.spans[root] for root in self.roots if self.spans[root].parent]
        lost = counted(len({piece.parent for piece in pieces}), "span")
        name = excerpt(pieces[0].name or pieces[0].id)
        root = "" if len(pieces) < len(self.roots) else "no root span: "
        return f"{root}{lost} above {counted(len(pieces), 'span')} of the log, {name} first"

    @property
    def outside(self) -> str:
        """The span above all others, where it names a parent that may be a caller outside the log or a lost root."""
        top = self.spans[self.roots[0]] if self.roots else None
        return "" if top is None or self.callers or not top.parent else top.name or top.id

    def _holds_events(self, root: str) -> bool:
        waiting = [root]
        while waiting:
            current = waiting.pop()
            if self.kind[current] is not Kind.OTHER:
                return True
            waiting.extend(self.children[current])
        return False
