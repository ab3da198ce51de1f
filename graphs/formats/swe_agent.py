"""SWE-agent: trajectories (`.traj`), with the evaluation's results joined by instance.

    {environment, trajectory: [{action, observation, response, thought, execution_time}], history, info: {exit_status,
     model_stats}}                                                                         INSTANCE.traj
    {resolved: [INSTANCE, …], generated: […], …} or {resolved_ids: […], submitted_ids: […], …}    results.json
    {INSTANCE: {model_patch, model_name_or_path}}, or one object a line            preds.json, all_preds.jsonl

A trajectory is a trace; its group is its instance, the name of its file. A step is a model call, and an action; its
command is the tool call, an effect. `docs/formats/swe-agent.md` has the whole mapping.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat
from graphs.reading.decode import content, decode, decode_record
from graphs.reading.documents import Place, Places, documents, stem
from graphs.reading.files import real_folder, short_names, systems
from graphs.reading.keys import opening, opening_of
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_RESOLVED = ("resolved", "resolved_ids")
_UNRESOLVED = ("unresolved", "unresolved_ids", "error_ids", "empty_patch_ids", "incomplete_ids")  # never resolved too
_WORD = re.compile(r"[\w./-]+")


class _Step(msgspec.Struct):
    action: str | None = None
    observation: str | None = None


class _Stats(msgspec.Struct):
    api_calls: _Count | None = None
    tokens_sent: _Count | None = None
    tokens_received: _Count | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None
    model_stats: _Stats | None = None


class _Trajectory(msgspec.Struct):
    trajectory: msgspec.Raw
    info: _Info | None = None


class _Prediction(msgspec.Struct):
    instance_id: str = ""
    model_name_or_path: str | None = None


_TRAJECTORY = msgspec.json.Decoder(_Trajectory)
_STEPS = msgspec.json.Decoder(list[msgspec.Raw])
_STEP = msgspec.json.Decoder(_Step)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAMES = msgspec.json.Decoder(list[str])
_PREDICTION = msgspec.json.Decoder(_Prediction)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a trajectory, as an evaluation's results, or as predictions."""
    shown = opening(head)
    keys = set(shown.keys)
    if {"trajectory", "environment"} <= keys or {"trajectory", "history", "info"} <= keys:
        return True
    if {"resolved", "generated"} <= keys or {"resolved_ids", "submitted_ids"} <= keys:
        return True
    return b'"model_patch"' in head and b'"model_name_or_path"' in head and b'"instance_id"' in head


class _Stated(NamedTuple):
    """What a file says of an instance, and what is said against it, there or in another file of the folder, if any."""

    value: Any
    place: Place
    field: str
    against: str = ""


class _Evaluation:
    """Instances as the other files of the runs describe them, by folder and instance."""

    def __init__(self) -> None:
        self.resolved: dict[tuple[str, str], _Stated] = {}
        self.models: dict[tuple[str, str], _Stated] = {}

    def add(self, source: Source) -> Iterator[Problem]:
        """Take a file of results or predictions in."""
        folder = real_folder(source.name)
        for document in documents(source):
            if isinstance(document, Problem):
                yield document
                continue
            raw, place = document
            members = decode_record(_OBJECT, raw, file=place.file, line=place.line)
            if any(key in members for key in _RESOLVED):
                self._results(members, folder, place)
            elif "instance_id" in members:
                self._prediction(raw, folder, place, "")
            else:
                for name, one in members.items():
                    self._prediction(one, folder, place, name)

    def _results(self, members: dict[str, msgspec.Raw], folder: str, place: Place) -> None:
        listed: dict[str, list[str]] = {}
        for key, value in members.items():
            if bytes(value).startswith(b"["):
                listed[key] = decode(_NAMES, value, file=place.file, line=place.line, at=key)
        solved = {name: key for key in _RESOLVED for name in listed.get(key, ())}
        unsolved = {name: key for key in _UNRESOLVED for name in listed.get(key, ())}
        for name in {name for names in listed.values() for name in names}:
            field, against = solved.get(name) or unsolved.get(name, "content"), ""
            if name in solved and name in unsolved:
                against = f"the instance in one of {field} and {unsolved[name]}"
            _state(self.resolved, (folder, name), _Stated(name in solved, place, field, against))

    def _prediction(self, raw: bytes | msgspec.Raw, folder: str, place: Place, name: str) -> None:
        one = decode(_PREDICTION, raw, file=place.file, line=place.line, at=name)
        if one.model_name_or_path:
            stated = _Stated(one.model_name_or_path, place, "model_name_or_path")
            _state(self.models, (folder, one.instance_id or name), stated)

    def of(self, table: dict[tuple[str, str], _Stated], record: TraceRecord, instance: str, kind: str) -> Any:
        """An instance as the nearest folder at or above a trajectory's describes it; None where none does.

        Raises:
          TraceError: of `kind`, the folder describes it in two ways.
        """
        folder = real_folder(record.file)
        while True:
            stated = table.get((folder, instance))
            if stated is not None and stated.against:
                value_text, (file, line, _) = excerpt(stated.value), stated.place
                raise TraceError(Problem(kind, file, line, stated.field, value_text, stated.against, record.trace_id))
            if stated is not None:
                return stated.value
            above = os.path.dirname(folder)
            if above == folder:
                return None
            folder = above


def _state(table: dict[tuple[str, str], _Stated], key: tuple[str, str], stated: _Stated) -> None:
    """Note what a file says, or that it says another thing than a file before it."""
    first = table.setdefault(key, stated)
    if not first.against and stated.value != first.value:
        against = f"{excerpt(first.value)}, as in {first.place.file}:{first.place.line}"
        table[key] = stated._replace(against=against)
    elif stated.against and not first.against:
        table[key] = stated


def read(sources: list[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trajectory, with its outcome where results of its folder, or of one above, name its instance.

    Problem kinds: "unreadable", those of `graphs.reading.json_problems`, "disagreeing-rewards" and
    "disagreeing-models" (two files of a folder, or two lists of one, contradict each other), "empty-trace".
    """
    names = short_names(sources, ".traj")
    evaluation, trajectories = _Evaluation(), []
    for source in sources:
        try:
            if "trajectory" in opening_of(source).keys:
                trajectories.append(source)  # it is read when what all other files say is known
            else:
                yield from evaluation.add(source)
        except TraceError as error:
            yield error.problem
        source.release()
    system_of = systems("swe-agent", {source.name: _run_folder(source.name) for source in trajectories})
    for source in trajectories:
        try:
            record = _record(source, names[source.name], evaluation)
            if not record.model:
                record.system = system_of[source.name]
            yield record
        except TraceError as error:
            yield error.problem
        source.release()


def _run_folder(file: str) -> str:
    """The folder of the run: that of the trajectory, or the one above where each instance has a folder."""
    folder = real_folder(file)
    return os.path.dirname(folder) if os.path.basename(folder) == stem(file, ".traj") else folder


def _record(source: Source, name: str, evaluation: _Evaluation) -> TraceRecord:
    data = content(source)
    wire = decode_record(_TRAJECTORY, data, file=source.name, line=1)
    instance = stem(source.name, ".traj")
    record = TraceRecord(name, instance, source.name, 1, 0, format="swe-agent", system="swe-agent")
    record.model = evaluation.of(evaluation.models, record, instance, "disagreeing-models") or ""
    resolved = evaluation.of(evaluation.resolved, record, instance, "disagreeing-rewards")
    if resolved is not None:
        record.rewards = {"resolved": float(resolved), "team": float(resolved)}
    stats = wire.info.model_stats if wire.info and wire.info.model_stats else _Stats()
    if stats.tokens_received is not None:
        record.costs["tokens"] = float(stats.tokens_received)
    chat = Chat(record, "agent")
    start = max(data.find(bytes(wire.trajectory)), 0)
    places = Places(data, start, 1 + data.count(b"\n", 0, start))
    where: dict[str, Any] = {"file": source.name, "trace": record.trace_id}
    steps: list[msgspec.Raw] = decode(_STEPS, wire.trajectory, line=1, at="trajectory", **where)
    for index, raw in enumerate(steps):
        place = Place(source.name, *places.of(raw))
        step = decode(_STEP, raw, line=place.line, at=f"trajectory[{index}]", **where)
        command = _WORD.search(step.action or "")
        tool = command.group().rsplit("/", 1)[-1] if command else ""
        chat.reply(str(index), place, [(str(index), tool)] if tool else [])
        if tool and step.observation is not None:
            chat.result(f"{index}/result", place, str(index), f"trajectory[{index}].observation")
    return chat.finish()
