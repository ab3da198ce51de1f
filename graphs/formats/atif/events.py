"""Events of a trajectory and of those it refers to.

The order is depth first: after each step of an agent come the events of its sub-agents, one sub-agent after another.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any, NoReturn

from graphs.errors import Problem, TraceError
from graphs.formats.atif.library import Library
from graphs.formats.atif.trajectories import Result, Step, Trajectory
from graphs.formats.common.input_tokens import read_counts
from graphs.formats.common.money import stated_money
from graphs.formats.common.team import Team
from graphs.reading.documents import Place
from graphs.reading.files import model_names, name_models
from graphs.reading.times import seconds
from graphs.text import counted, excerpt
from graphs.traces.record import TraceRecord

__all__ = ["Writer"]

_MAIN = "main"
_UNNAMED = "sub-agent"
_LONGEST_PREFIX = 100  # of ids; nested ids would otherwise grow with the square of the depth

_Walk = Iterator[tuple[Trajectory, str]]  # each sub-agent and its instance, when its events are next


class Writer:
    """Walks a trajectory and appends its events."""

    def __init__(self, record: TraceRecord, library: Library, root: Trajectory) -> None:
        self.record, self.library, self.root = record, library, root
        self.team = Team(record)
        self.problems: list[Problem] = []  # of parts that the trace reads without
        self.parts: list[Trajectory] = []
        self.deep = 0  # instances whose ids are too long to be repeated in the ids below

    def write(self) -> TraceRecord:
        """The record.

        Raises:
          TraceError: kinds "unknown-tool-call", "duplicate-id", "bad-value".
        """
        self.team.agent(_MAIN, self.root.agent)
        # A stack of walks in place of recursion: trajectories may nest deeper than Python's stack.
        stack: list[_Walk] = [self._walk(self.root, _MAIN, "")]
        while stack:
            below = next(stack[-1], None)
            if below is None:
                stack.pop()
            else:
                stack.append(self._walk(*below, self._prefix(below[1])))
        for unlinked in (other for part in self.parts for other in part.nested if not other.is_placed):
            expected = "the id of a trajectory that the result of a tool call refers to"
            self.note("unlinked-subagent", unlinked.place, "trajectory_id", unlinked.id, expected)
        if self.root.money is not None and not self.root.continued:  # of a run that goes on it may be the part's alone
            self.record.costs["money"] = self.root.money
        self.record.model, self.record.system = model_names(part.model for part in self.parts), self.root.agent
        name_models(self.record)
        return self.team.finish()

    def _prefix(self, instance: str) -> str:
        """How the ids of an instance's events begin: with the instance's id, or a number where nesting is deep."""
        if len(instance) <= _LONGEST_PREFIX:
            return f"{instance}/"
        self.deep += 1
        return f"deep-{self.deep}/"

    def _walk(self, trajectory: Trajectory, instance: str, prefix: str) -> _Walk:
        """Append the events of a trajectory and of those it continues in."""
        number, prompted = 0, instance != _MAIN  # a sub-agent's first text is its prompt, which its spawn stands for
        part: Trajectory | None = trajectory
        while part is not None:
            part.is_placed = True
            self.parts.append(part)
            for step, place, field in part.steps:
                number += 1
                if step.is_copied_context:
                    continue
                if step.source == "user" and prompted:
                    prompted = False
                elif step.source == "user":
                    self.team.human(instance, f"{prefix}{number}", place, time=seconds(step.timestamp))
                else:
                    yield from _Turn(self, part, step, place, field, instance, f"{prefix}{number}").write()
            following = self.library.beside(part, part.continued) if part.continued else None
            if part.continued and following is None:
                expected = "the trajectory that this run goes on in, among the files"
                self.note("missing-continuation", part.place, "continued_trajectory_ref", part.continued, expected)
            part = None if following is None or following.is_placed else following

    def note(self, kind: str, place: Place, field: str, value: object, expected: str) -> None:
        """Name a part that the trace reads without."""
        trace = self.record.trace_id
        self.record.lost_part(shown=kind == "missing-subagent")
        self.problems.append(Problem(kind, place.file, place.line, field, excerpt(value), expected, trace))


class _Turn:
    """A step of an agent, or one of the system, which may start agents too."""

    def __init__(
        self, writer: Writer, part: Trajectory, step: Step, place: Place, field: str, instance: str, event_id: str
    ) -> None:
        self.writer, self.team, self.part = writer, writer.team, part
        self.step, self.place, self.field = step, place, field
        self.instance, self.id = instance, event_id
        self.results = step.observation.results if step.observation else []
        self.call: int | None = None
        self.tools: dict[str, str] = {}  # tool call id -> tool
        self.positions: dict[str, int] = {}  # tool call id -> position, of those that started no agent
        self.unnamed = collections.deque[tuple[int, str]]()  # tool calls with an empty id, answered in order

    def write(self) -> _Walk:
        """Append the call, then its effects, then the answers to them."""
        if self.step.source == "agent" and self.step.llm_call_count != 0:
            columns = self._evidence()
            time = seconds(self.step.timestamp)
            model = self.step.model_name or self.part.model or None
            self.call = self.team.call(self.instance, self.id, self.place, time=time, model=model, **columns)
        self._call_tools()
        children = [self._start(number, result) for number, result in enumerate(self.results)]
        for number, (result, started) in enumerate(zip(self.results, children, strict=True)):
            for name, child in started:
                if child is not None:
                    yield child, name
                self.team.returned(name, f"{name}.return", self.instance, self.place)
            if not started and self.step.source == "agent":
                self._answer(number, result)

    def _evidence(self) -> dict[str, Any]:
        metrics = self.step.metrics
        if metrics is None:
            return {}
        ids, log_probs = metrics.completion_token_ids, metrics.logprobs
        if ids is not None and log_probs is not None and len(ids) != len(log_probs):
            self._refuse(
                "bad-value", "metrics.logprobs", counted(len(log_probs), "number"), f"{len(ids)}, one a token id"
            )
        tokens = metrics.completion_tokens
        if tokens is None and ids is not None:
            tokens = len(ids)
        log_prob = sum(log_probs) if log_probs else None
        return {
            "tokens": tokens,
            **read_counts(metrics.prompt_tokens, metrics.cached_tokens),
            "money": stated_money(metrics.cost_usd),
            "log_prob": log_prob,
            "token_ids": ids or None,
            "token_log_probs": log_probs or None,
        }

    def _call_tools(self) -> None:
        starting = {result.source_call_id or None for result in self.results if result.references}
        for number, tool_call in enumerate(self.step.tool_calls or []):
            name, tool, event_id = tool_call.tool_call_id, tool_call.function_name, f"{self.id}/call-{number}"
            if name and name in self.tools:
                expected = "an id that no other call of the step has"
                self._refuse("duplicate-id", f"tool_calls[{number}].tool_call_id", name, expected)
            if name:
                self.tools[name] = tool
            if name in starting:
                continue  # its spawn stands for it
            position = self.team.tool_call(self.instance, event_id, self.place, call=self.call, tool=tool)
            if name:
                self.positions[name] = position
            else:
                self.unnamed.append((position, tool))

    def _start(self, number: int, result: Result) -> list[tuple[str, Trajectory | None]]:
        """Spawn the sub-agents that a result comes from.

        Returns:
          Their instances, and their trajectories where these are read.
        """
        wanted = result.source_call_id
        if wanted and wanted not in self.tools:
            field = f"observation.results[{number}].source_call_id"
            self._refuse("unknown-tool-call", field, wanted, "the id of a tool call of the same step")
        started: list[tuple[str, Trajectory | None]] = []
        for index, reference in enumerate(result.references):
            child = self.writer.library.find(reference, self.part, self.writer.root)
            if child is None:
                field = f"{self.field}.observation.results[{number}].subagent_trajectory_ref[{index}]"
                self.writer.note("missing-subagent", self.place, field, reference.named, "a trajectory among the files")
            elif child.is_placed:
                child = None  # its events stand where it was referred to first
            else:
                child.is_placed = True
            name = f"{self.id}/agent-{number}" + (f".{index}" if index else "")
            self.team.agent(name, child.agent if child else _UNNAMED, parent=self.instance)
            tool = self.tools.get(wanted or "")
            self.team.spawn(self.instance, f"{name}.spawn", name, self.place, call=self.call, tool=tool)
            started.append((name, child))
        return started

    def _answer(self, number: int, result: Result) -> None:
        """Append a tool's result. Feedback that names no tool call answers the model call."""
        wanted = result.source_call_id
        tool = self.tools.get(wanted or "")
        answers = self.positions.get(wanted) if wanted else self.call
        if not wanted and self.unnamed:
            answers, tool = self.unnamed.popleft()
        self.team.result(self.instance, f"{self.id}/result-{number}", self.place, answers=answers, tool=tool)

    def _refuse(self, kind: str, field: str, value: object, expected: str) -> NoReturn:
        trace = self.writer.record.trace_id
        field = f"{self.field}.{field}"
        raise TraceError(Problem(kind, self.place.file, self.place.line, field, excerpt(value), expected, trace))
