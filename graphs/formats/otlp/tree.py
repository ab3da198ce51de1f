"""The span tree of one trace, and what each span is once its relatives are known.

A span alone does not tell enough: a model call may be wrapped in another span that calls itself one, a tool may be an
agent in disguise, one remote agent may leave two spans. The rules are listed in `docs/formats/otlp.md`; each is one
function here. No function recurses, since logs are untrusted and spans may nest without limit.
"""

from __future__ import annotations

from collections.abc import Callable

from graphs.formats.otlp.dialects import Kind
from graphs.formats.otlp.spans import Span

__all__ = ["Tree"]


class Tree:
    """The spans of a trace from the roots down.

    Attributes:
      trace: id of the trace, for errors.
      spans: by id, parents before children, siblings in file order.
      parent: by id, the id of the parent, "" where it has none in this log.
      children: by id.
      kind: what each span is after all rules; `Kind.OTHER` for spans that only give structure.
      owner: id of the nearest enclosing agent span, "" without one.
      above: id of the nearest enclosing span that is no mere structure, "" without one.
      planned: ids of the model calls that are, or are inside, a plan.
      called_as: for an agent span inside tool spans: the tool call ids of these, innermost first.
    """

    def __init__(self, trace: str, spans: list[Span], *, stated: bool) -> None:
        """Build the tree; in a `stated` trace (it states the types of its events) spans keep the kinds they have.

        Raises:
          TraceError: kinds "duplicate-span", "parent-cycle", "missing-parent".
        """
        self.trace = trace
        self._link(spans)
        self.kind = {span_id: span.kind for span_id, span in self.spans.items()}
        self.planned: set[str] = set()
        self.called_as: dict[str, tuple[str, ...]] = {}
        if not stated:
            self._apply_rules()
        self.owner: dict[str, str] = {}
        self.above: dict[str, str] = {}
        for span_id, parent in self.parent.items():
            kind = self.kind[parent] if parent else None
            self.owner[span_id] = parent if not parent or kind is Kind.AGENT else self.owner[parent]
            self.above[span_id] = parent if not parent or kind is not Kind.OTHER else self.above[parent]
        self._check_orphans()

    def _apply_rules(self) -> None:
        """Apply the rules in their order; one whose kinds of spans the trace lacks is left out, for speed."""
        kinds = set(self.kind.values())
        holders = {kind for span_id, kind in self.kind.items() if self.children[span_id]}
        if Kind.JUDGE in kinds or Kind.GUARD in kinds:
            self._silence_judges()
        self._drop_workflows()
        if any(span.meaning.decides for span in self.spans.values()):
            self._find_plans()
        if Kind.CALL in holders:
            self._drop_wrappers()
        if Kind.TOOL in holders:
            self._find_agents_as_tools()
        else:
            self.called_as = {span_id: () for span_id, kind in self.kind.items() if kind is Kind.AGENT}
        if Kind.AGENT in holders:
            self._merge_remote_pairs()
        if Kind.TOOL in holders:
            self._drop_tools_in_tools()

    def _link(self, spans: list[Span]) -> None:
        by_id: dict[str, Span] = {}
        for span in spans:
            if span.id in by_id:
                first = by_id[span.id].place
                expected = f"an id that no other span of the trace has (also {first.file}:{first.line})"
                raise span.refuse("duplicate-span", "spanId", span.id, expected, self.trace)
            by_id[span.id] = span
        self.children: dict[str, list[str]] = {span.id: [] for span in spans}
        for span in spans:
            if span.parent in by_id:
                self.children[span.parent].append(span.id)
        self.spans: dict[str, Span] = {}
        waiting = [span.id for span in reversed(spans) if span.parent not in by_id]
        while waiting:
            current = waiting.pop()
            self.spans[current] = by_id[current]
            waiting.extend(reversed(self.children[current]))
        for span in spans:
            if span.id not in self.spans:
                expected = "the id of a span that is not its own descendant"
                raise span.refuse("parent-cycle", "parentSpanId", span.parent, expected, self.trace)
        self.parent = {span_id: span.parent if span.parent in by_id else "" for span_id, span in self.spans.items()}

    @property
    def roots(self) -> list[str]:
        """Ids of the spans without a parent in this log."""
        return [span_id for span_id, parent in self.parent.items() if not parent]

    def _inside(self, begins: Callable[[str], bool], through: Callable[[str], bool]) -> set[str]:
        """Ids of the spans below one where `begins`, with only spans where `through` between."""
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

    def _is(self, kind: Kind) -> Callable[[str], bool]:
        return lambda span_id: self.kind[span_id] is kind

    def _drop(self, span_ids: set[str]) -> None:
        for span_id in span_ids:
            self.kind[span_id] = Kind.OTHER

    def _silence_judges(self) -> None:
        """What happens inside an evaluator or a guardrail is not the team's doing."""
        outside = (Kind.JUDGE, Kind.GUARD)
        self._drop(self._inside(lambda span_id: self.kind[span_id] in outside, lambda _: True))
        self._drop({span_id for span_id, kind in self.kind.items() if kind is Kind.JUDGE})

    def _drop_workflows(self) -> None:
        """A root without an agent's name that holds agents, and nothing of its own, is the run and no agent.

        OpenInference's instrumentation of the OpenAI Agents SDK calls the whole run ("Agent workflow") an agent.
        """
        for root in self.roots:
            if self.kind[root] is not Kind.AGENT or self.spans[root].meaning.named:
                continue
            below, waiting = [], [root]
            while waiting:
                children = self.children[waiting.pop()]
                below += [child for child in children if self.kind[child] is not Kind.OTHER]
                waiting += [child for child in children if self.kind[child] is Kind.OTHER]
            if below and all(self.kind[child] is Kind.AGENT for child in below):
                self._drop({root})

    def _find_plans(self) -> None:
        """A plan is a decision of its agent, and so are the model calls that make it."""

        def is_plan(span_id: str) -> bool:
            return self.kind[span_id] is Kind.CALL and self.spans[span_id].meaning.decides

        calls = (Kind.CALL, Kind.OTHER)
        inside = self._inside(is_plan, lambda span_id: self.kind[span_id] in calls)
        self.planned = inside | {span_id for span_id in self.spans if is_plan(span_id)}

    def _drop_wrappers(self) -> None:
        """A model call with another one inside, and no tool and no agent between, is a wrapper of the inner one."""
        holding = self._holding(self._is(Kind.CALL), self._is(Kind.OTHER))
        self._drop({span_id for span_id in holding if self.kind[span_id] is Kind.CALL})

    def _find_agents_as_tools(self) -> None:
        """A tool with an agent inside is the spawn of that agent, not a tool call."""
        holding = self._holding(self._is(Kind.AGENT), lambda span_id: self.kind[span_id] is not Kind.AGENT)
        tools = {span_id for span_id in holding if self.kind[span_id] is Kind.TOOL}
        calls: dict[str, tuple[str, ...]] = {}
        for span_id, parent in self.parent.items():
            above = calls[parent] if parent and self.kind[parent] is not Kind.AGENT else ()
            call_id = self.spans[span_id].meaning.call_id
            calls[span_id] = (call_id, *above) if span_id in tools and call_id else above
            if self.kind[span_id] is Kind.AGENT:
                self.called_as[span_id] = above
        self._drop(tools)

    def _merge_remote_pairs(self) -> None:
        """An agent span that holds nothing but one span of the same agent is the caller's side of it: one instance."""
        contents: dict[str, list[str]] = {}
        for span_id in reversed(self.spans):
            kind = self.kind[span_id]
            if kind is Kind.AGENT or kind is Kind.OTHER:
                below = [c for child in self.children[span_id] for c in contents[child]]
                if kind is Kind.AGENT and len(below) == 1 and self._same_agent(span_id, below[0]):
                    self.kind[below[0]] = Kind.OTHER
            contents[span_id] = below[:2] if kind is Kind.OTHER else [span_id]

    def _same_agent(self, outer: str, inner: str) -> bool:
        if self.kind[inner] is not Kind.AGENT:
            return False
        a, b = self.spans[outer].meaning, self.spans[inner].meaning
        if a.agent_id and b.agent_id:
            return a.agent_id == b.agent_id
        return a.named and b.named and a.name == b.name

    def _drop_tools_in_tools(self) -> None:
        """What a tool does inside itself (a retriever its embedding) is the tool's own affair."""
        tools = (Kind.TOOL, Kind.OTHER)
        inside = self._inside(self._is(Kind.TOOL), lambda span_id: self.kind[span_id] in tools)
        self._drop({span_id for span_id in inside if self.kind[span_id] is Kind.TOOL})

    def _check_orphans(self) -> None:
        """A missing parent is the caller outside this log, unless that leaves open whose work the orphan is.

        One missing parent above everything is a caller that was not recorded. With two of them, or with another root
        beside one, spans between have been lost, and an orphan that holds events could belong to any agent.
        """
        roots = self.roots
        if len(roots) < 2:
            return
        above = {self.spans[root].parent for root in roots if self._holds_events(root)}
        if len(above) > 1:
            orphan = next(self.spans[root] for root in roots if self.spans[root].parent and self._holds_events(root))
            expected = "a span of this log: several pieces of this trace hang in the air"
            raise orphan.refuse("missing-parent", "parentSpanId", orphan.parent, expected, self.trace)

    def _holds_events(self, root: str) -> bool:
        waiting = [root]
        while waiting:
            current = waiting.pop()
            if self.kind[current] is not Kind.OTHER:
                return True
            waiting.extend(self.children[current])
        return False
