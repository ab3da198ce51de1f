"""ATIF trajectories as they stand in a file: typed structs for decoding, and what is kept of them."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from typing import Annotated

import msgspec

from graphs.errors import Problem, TraceError
from graphs.reading.decode import check_record, decode
from graphs.reading.documents import Document, Place, Places, stem
from graphs.reading.files import WRITTEN_ALIKE
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, LARGEST_FLOAT

__all__ = ["Metrics", "Reference", "Result", "Step", "ToolCall", "Trajectory", "decode_all"]

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


class _Wire(msgspec.Struct):
    schema_version: str
    agent: _Agent
    steps: msgspec.Raw
    session_id: str | None = None
    trajectory_id: str | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: msgspec.Raw = msgspec.Raw(b"null")


_TRAJECTORY = msgspec.json.Decoder(_Wire)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_NESTED = msgspec.json.Decoder(list[msgspec.Raw] | None)
_STEP = msgspec.json.Decoder(Step)


@dataclasses.dataclass(slots=True)
class Trajectory:
    """A trajectory: its agent, its ids, its steps with their places and fields, and the trajectories nested in it."""

    name: str
    place: Place
    session: str
    own: str
    continued: str
    steps: list[tuple[Step, Place, str]]
    model: str = ""
    nested: list[Trajectory] = dataclasses.field(default_factory=list)
    placed: bool = False


def decode_all(document: Document) -> Trajectory:
    """A trajectory and all those nested in it, without recursion.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    root: Trajectory | None = None
    waiting: list[tuple[bytes, Place, str, Trajectory | None, str]] = [(document.raw, document.place, "", None, "")]
    while waiting:
        raw, place, at, parent, trace = waiting.pop()
        trajectory = decode(_TRAJECTORY, raw, file=place.file, line=place.line, at=at, trace=trace)
        trace = trace or trajectory.trajectory_id or trajectory.session_id or stem(place.file)
        if parent is None:
            check_record(raw, file=place.file, line=place.line, trace=trace)
        doc = Trajectory(
            trajectory.agent.name,
            place,
            trajectory.session_id or "",
            trajectory.trajectory_id or "",
            trajectory.continued_trajectory_ref or "",
            _steps(raw, trajectory.steps, place, at, trace),
            trajectory.agent.model_name or "",
        )
        if parent is None:
            root = doc
        else:
            parent.nested.append(doc)
        field = f"{at}.subagent_trajectories".lstrip(".")
        held = trajectory.subagent_trajectories
        inner = decode(_NESTED, held, file=place.file, line=place.line, at=field, trace=trace) or []
        nested_items = [
            (bytes(e), p, f"{field}[{i}]", doc, trace) for i, (e, p) in enumerate(_placed(raw, held, inner, place))
        ]
        waiting += reversed(nested_items)
    assert root is not None
    return root


def _steps(raw: bytes, held: msgspec.Raw, place: Place, at: str, trace: str) -> list[tuple[Step, Place, str]]:
    field = f"{at}.steps".lstrip(".")
    steps = []
    seen: dict[str, int | str] = {}  # how an id is written to what it is
    listed = decode(_LIST, held, file=place.file, line=place.line, at=field, trace=trace)
    for index, (element, where) in enumerate(_placed(raw, held, listed, place)):
        step = decode(_STEP, element, file=where.file, line=where.line, at=f"{field}[{index}]", trace=trace)
        if step.source not in _SOURCES:
            value_text, expected = excerpt(step.source), "one of " + ", ".join(_SOURCES)
            at_source = f"{field}[{index}].source"
            raise TraceError(Problem("bad-value", where.file, where.line, at_source, value_text, expected, trace))
        if step.step_id is not None and str(step.step_id) in seen:
            kind, expected = "duplicate-id", "an id that no other step of the trajectory has"
            if seen[str(step.step_id)] != step.step_id:  # one step that is stated twice, or two steps
                kind, expected = "ambiguous-id", WRITTEN_ALIKE
            value_text, at_id = excerpt(step.step_id), f"{field}[{index}].step_id"
            raise TraceError(Problem(kind, where.file, where.line, at_id, value_text, expected, trace))
        if step.step_id is not None:
            seen[str(step.step_id)] = step.step_id
        steps.append((step, where, f"{field}[{index}]"))
    return steps


def _placed(
    raw: bytes, held: msgspec.Raw, elements: list[msgspec.Raw], place: Place
) -> Iterator[tuple[msgspec.Raw, Place]]:
    """The elements of a list inside a trajectory, with their places."""
    start = max(raw.find(bytes(held)), 0)
    places = Places(raw, start, place.line + raw.count(b"\n", 0, start))
    for element in elements:
        line, offset = places.of(element)
        yield element, Place(place.file, line, place.offset + offset)
