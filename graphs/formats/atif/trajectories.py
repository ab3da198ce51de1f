"""Decoding of ATIF trajectories: their structs, and what is kept of them."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.money import stated_money
from graphs.formats.common.placed import placed_elements
from graphs.reading.decode import decode, decode_record
from graphs.reading.documents import Document, Place, stem
from graphs.reading.files import WRITTEN_ALIKE
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT

__all__ = ["Metrics", "PlacedStep", "Reference", "Result", "Step", "ToolCall", "Trajectory", "Wire", "decode_all"]

_SOURCES = ("system", "user", "agent")
_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Agent(msgspec.Struct):
    name: _Text
    model_name: str | None = None


class Reference(msgspec.Struct):
    """A reference to a sub-agent's trajectory."""

    trajectory_id: str | None = None
    trajectory_path: str | None = None
    session_id: str | None = None

    @property
    def named(self) -> str | None:
        """What the reference names."""
        return self.trajectory_path or self.trajectory_id or self.session_id


class ToolCall(msgspec.Struct):
    """A tool call of a step."""

    function_name: str
    tool_call_id: str = ""


class Result(msgspec.Struct):
    """An answer to a tool call, or feedback."""

    source_call_id: str | None = None
    subagent_trajectory_ref: list[Reference] | Reference | None = None

    @property
    def references(self) -> list[Reference]:
        """The sub-agents that the result comes from."""
        references = self.subagent_trajectory_ref
        return [references] if isinstance(references, Reference) else references or []


class Observation(msgspec.Struct):
    """The observation of a step."""

    results: list[Result] = []


class Metrics(msgspec.Struct):
    """The metrics of a step's model call."""

    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cached_tokens: _Count | None = None
    cost_usd: Any = None
    completion_token_ids: list[Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]] | None = None
    logprobs: list[Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]] | None = None


class Step(msgspec.Struct):
    """One step."""

    source: str
    step_id: int | str | None = None
    timestamp: datetime.datetime | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None
    is_copied_context: bool | None = None
    llm_call_count: _Count | None = None
    model_name: str | None = None


class _FinalMetrics(msgspec.Struct):
    total_cost_usd: Any = None


class Wire(msgspec.Struct):
    """A trajectory as a file has it, its steps and nested trajectories undecoded."""

    schema_version: str
    agent: _Agent
    steps: msgspec.Raw
    session_id: str | None = None
    trajectory_id: str | None = None
    continued_trajectory_ref: str | None = None
    final_metrics: _FinalMetrics | None = None
    subagent_trajectories: msgspec.Raw = msgspec.Raw(b"null")


_TRAJECTORY = msgspec.json.Decoder(Wire)
_STEP = msgspec.json.Decoder(Step)


class PlacedStep(NamedTuple):
    """A step, where it stands in its file, and its field there."""

    step: Step
    place: Place
    field: str


@dataclasses.dataclass(slots=True)
class Trajectory:
    """A trajectory with those that are nested in it.

    `money` is what it cost with its sub-agents; `is_placed` is True once its events stand in a trace.
    """

    agent: str
    model: str
    place: Place
    session: str
    id: str
    continued: str
    money: float | None
    steps: list[PlacedStep]
    nested: list[Trajectory] = dataclasses.field(default_factory=list)
    is_placed: bool = False


def decode_all(document: Document) -> Trajectory:
    """A trajectory and all those nested in it.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode_record`; "bad-value", "duplicate-id", "ambiguous-id".
    """
    raw, place = document
    wire = decode_record(_TRAJECTORY, raw, file=place.file, line=place.line)
    trace = wire.trajectory_id or wire.session_id or stem(place.file)
    root = _trajectory(raw, wire, place, "", trace)
    waiting = [(raw, wire, root, "")]  # not recursion: trajectories may nest deeper than Python's stack
    while waiting:
        raw, wire, parent, prefix = waiting.pop()
        if bytes(wire.subagent_trajectories) == b"null":
            continue
        prefix, inside = f"{prefix}subagent_trajectories", []
        elements = placed_elements(raw, wire.subagent_trajectories, parent.place, field=prefix, trace=trace)
        for index, (element, place) in enumerate(elements):
            field = f"{prefix}[{index}]"
            inner = decode(_TRAJECTORY, element, file=place.file, line=place.line, field=field, trace=trace)
            child = _trajectory(bytes(element), inner, place, f"{field}.", trace)
            parent.nested.append(child)
            inside.append((bytes(element), inner, child, f"{field}."))
        waiting += reversed(inside)
    return root


def _trajectory(raw: bytes, wire: Wire, place: Place, field: str, trace: str) -> Trajectory:
    steps = _steps(raw, wire.steps, place, f"{field}steps", trace)
    session, name, continued = wire.session_id or "", wire.trajectory_id or "", wire.continued_trajectory_ref or ""
    money = stated_money(wire.final_metrics.total_cost_usd) if wire.final_metrics else None
    return Trajectory(wire.agent.name, wire.agent.model_name or "", place, session, name, continued, money, steps)


def _steps(raw: bytes, value: msgspec.Raw, place: Place, list_field: str, trace: str) -> list[PlacedStep]:
    steps: list[PlacedStep] = []
    seen: dict[str, int | str] = {}  # ids, by how they are written
    for index, (element, where) in enumerate(placed_elements(raw, value, place, field=list_field, trace=trace)):
        field = f"{list_field}[{index}]"
        step = decode(_STEP, element, file=where.file, line=where.line, field=field, trace=trace)
        fault = _fault(step, seen)
        if fault is not None:
            kind, key, shown, expected = fault
            raise TraceError(Problem(kind, where.file, where.line, f"{field}.{key}", excerpt(shown), expected, trace))
        if step.step_id is not None:
            seen[str(step.step_id)] = step.step_id
        steps.append(PlacedStep(step, where, field))
    return steps


def _fault(step: Step, seen: dict[str, int | str]) -> tuple[str, str, object, str] | None:
    """What is wrong with a step: the kind of the problem, the key, its value, what was expected."""
    if step.source not in _SOURCES:
        return "bad-value", "source", step.source, "one of " + ", ".join(_SOURCES)
    if step.step_id is None or str(step.step_id) not in seen:
        return None
    if seen[str(step.step_id)] != step.step_id:  # 2 and "2" may be one step that stands twice, or two steps
        return "ambiguous-id", "step_id", step.step_id, WRITTEN_ALIKE
    return "duplicate-id", "step_id", step.step_id, "an id that no other step of the trajectory has"
