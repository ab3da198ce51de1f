"""SWE-agent and mini-swe-agent: trajectories, with the evaluation's results joined by instance.

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
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from graphs.errors import Problem, TraceError
from graphs.formats.common.chat import Chat
from graphs.formats.common.placed import placed_elements
from graphs.formats.common.run_digest import run_digest
from graphs.formats.mini_swe_agent import Info, Stats, Trajectory, is_mini, read_mini
from graphs.reading.addresses import real_folder
from graphs.reading.decode import content, decode, decode_record
from graphs.reading.documents import Document, Place, documents, stem
from graphs.reading.files import canonical, short_names, systems
from graphs.reading.keys import opening, opening_of
from graphs.reading.source import Source
from graphs.text import excerpt
from graphs.traces.record import LARGEST_COUNT, TraceRecord

__all__ = ["RECORDS", "read", "sniff"]

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
_RESOLVED = ("resolved", "resolved_ids")
_UNRESOLVED = ("unresolved", "unresolved_ids", "error_ids", "empty_patch_ids", "incomplete_ids")
# Of SWE-agent 1.1: the model's or the environment's fault, also where what there was has been submitted.
_FAILED = ("exit_api", "exit_environment_error", "exit_error", "early_exit")
_WORD = re.compile(r"[\w./-]+")  # the first word of a command, with its path


class _Step(msgspec.Struct):
    action: str | None = None
    observation: str | None = None
    response: Any = None  # for the run's digest, with the time
    execution_time: Any = None


class _Info(msgspec.Struct):
    exit_status: str | None = None
    model_stats: Stats | None = None


class _Trajectory(msgspec.Struct):
    trajectory: msgspec.Raw
    info: _Info | None = None


class _Prediction(msgspec.Struct):
    instance_id: str = ""
    model_name_or_path: str | None = None


RECORDS = (_Trajectory, _Step, Trajectory, Info)

_TRAJECTORY = msgspec.json.Decoder(_Trajectory)
_STEP = msgspec.json.Decoder(_Step)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAMES = msgspec.json.Decoder(list[str])
_PREDICTION = msgspec.json.Decoder(_Prediction)


def sniff(head: bytes) -> bool:
    """Whether the content begins as a trajectory, as an evaluation's results, or as predictions."""
    shown = opening(head)
    keys = set(shown.keys)
    if is_mini(frozenset(keys)):
        return True
    if {"trajectory", "environment"} <= keys or {"trajectory", "history", "info"} <= keys:
        return True
    if keys & set(_RESOLVED) and keys & {"generated", "submitted_ids"}:
        return True
    return b'"model_patch"' in head and b'"model_name_or_path"' in head and b'"instance_id"' in head


class _Statement(NamedTuple):
    """What a file says of an instance, and what contradicts it there or in another file of the folder, if anything."""

    value: Any
    place: Place
    field: str
    contradiction: str = ""


_Statements = dict[tuple[str, str], _Statement]  # by folder and instance


class _Evaluation:
    """What files of results and predictions say of the instances of their folder and of the folders below."""

    def __init__(self) -> None:
        self.resolved: _Statements = {}
        self.models: _Statements = {}
        self.files: dict[str, list[str]] = {}  # by folder

    def add(self, source: Source) -> None:
        """Take in a file.

        Raises:
          TraceError: it is not as expected.
        """
        folder = real_folder(source.name)
        if os.path.basename(folder) == "results":  # of SWE-bench's experiments: RUN/results beside RUN/trajs
            folder = os.path.dirname(folder)
        self.files.setdefault(folder, []).append(source.name)
        for document in documents(source):
            members = decode_record(_OBJECT, document.raw, file=source.name, line=document.place.line)
            if any(key in members for key in _RESOLVED):
                self._add_results(members, folder, document.place)
            elif "instance_id" in members:
                self._add_prediction(document, folder, "")
            else:
                for name, raw in members.items():
                    self._add_prediction(Document(bytes(raw), document.place), folder, name)

    def _add_results(self, members: dict[str, msgspec.Raw], folder: str, place: Place) -> None:
        listed = {
            key: decode(_NAMES, value, file=place.file, line=place.line, field=key)
            for key, value in members.items()
            if bytes(value).startswith(b"[")
        }
        solved = {name: key for key in _RESOLVED for name in listed.get(key, ())}
        unsolved = {name: key for key in _UNRESOLVED for name in listed.get(key, ())}
        for name in {name for names in listed.values() for name in names}:
            field, contradiction = solved.get(name) or unsolved.get(name, "content"), ""
            if name in solved and name in unsolved:
                contradiction = f"the instance in one of {field} and {unsolved[name]}"
            _state(self.resolved, (folder, name), _Statement(name in solved, place, field, contradiction))

    def _add_prediction(self, document: Document, folder: str, name: str) -> None:
        raw, place = document
        prediction = decode(_PREDICTION, raw, file=place.file, line=place.line, field=name)
        if prediction.model_name_or_path:
            statement = _Statement(prediction.model_name_or_path, place, "model_name_or_path")
            _state(self.models, (folder, prediction.instance_id or name), statement)

    def apply(self, record: TraceRecord, instance: str) -> None:
        """Give a trajectory its outcome and its model, from the nearest folder at or above its own.

        Raises:
          TraceError: "disagreeing-models", predictions of the folder contradict each other.
        """
        folders = _at_and_above(real_folder(record.file))
        record.sources = [file for folder in folders for file in self.files.get(folder, ())]
        record.beside = dict.fromkeys(record.sources, False)
        model, resolved = (_nearest(stated, folders, instance) for stated in (self.models, self.resolved))
        if model is not None and model.contradiction:
            file, line, _ = model.place
            kind, shown = "disagreeing-models", excerpt(model.value)
            raise TraceError(Problem(kind, file, line, model.field, shown, model.contradiction, record.trace_id))
        record.model = "" if model is None else model.value
        if resolved is not None and resolved.contradiction:
            shown = excerpt(resolved.value)
            record.unsettle("resolved", resolved.field, shown, resolved.contradiction, resolved.place)
        elif resolved is not None:
            record.rewards = {"resolved": float(resolved.value), "team": float(resolved.value)}


def _at_and_above(folder: str) -> list[str]:
    folders = [folder]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    return folders


def _nearest(statements: _Statements, folders: list[str], instance: str) -> _Statement | None:
    """What the first of the folders says of an instance; None where none does."""
    return next((statements[folder, instance] for folder in folders if (folder, instance) in statements), None)


def _state(statements: _Statements, key: tuple[str, str], statement: _Statement) -> None:
    """Note what a file says, or that it contradicts a file before it. A contradiction stays."""
    first = statements.setdefault(key, statement)
    if first.contradiction:
        return
    if statement.value != first.value:
        contradiction = f"{excerpt(first.value)}, as in {first.place.file}:{first.place.line}"
        statements[key] = statement._replace(contradiction=contradiction)
    elif statement.contradiction:
        statements[key] = statement


def read(sources: Sequence[Source]) -> Iterator[TraceRecord | Problem]:
    """A record for each trajectory, with its outcome where results of its folder, or of one above, name its instance.

    Problem kinds: those of `graphs.reading.json_problems`, "disagreeing-models" (two files of a folder contradict
    each other), "empty-trace".
    """
    names = short_names(sources, ".traj")
    evaluation, trajectories = _Evaluation(), []
    for source in sources:
        try:
            keys = frozenset(opening_of(source).keys)
            if "trajectory" in keys or is_mini(keys):
                trajectories.append(source)  # it is read when what all other files say is known
            else:
                evaluation.add(source)
        except TraceError as error:
            yield error.problem
        source.release()
    system_of = systems("swe-agent", {source.name: _run_folder(source.name) for source in trajectories})
    for source in trajectories:
        try:
            record = _record(source, names[source.name], evaluation)
            if not record.model:
                record.system += system_of[source.name].removeprefix("swe-agent")
            yield record
        except TraceError as error:
            yield error.problem
        source.release()


def _run_folder(file: str) -> str:
    """The folder of the run: the folder of the trajectory, or its parent if each instance has a folder."""
    folder = real_folder(file)
    return os.path.dirname(folder) if os.path.basename(folder) == stem(file, ".traj") else folder


def _record(source: Source, name: str, evaluation: _Evaluation) -> TraceRecord:
    data, place = content(source), Place(source.name, 1, 0)
    if is_mini(frozenset(opening_of(source).keys)):
        record = read_mini(data, place, name, stem(source.name, ".traj"))
        model = record.model
        evaluation.apply(record, record.group_id)
        record.model = model or record.model
        return record
    wire = decode_record(_TRAJECTORY, data, file=source.name, line=1, trace=name)
    instance = stem(source.name, ".traj")
    record = TraceRecord(name, instance, source.name, 1, 0, format="swe-agent", system="swe-agent")
    evaluation.apply(record, instance)
    status = (wire.info.exit_status if wire.info else None) or ""
    if status.removeprefix("submitted (").removesuffix(")") in _FAILED:
        record.error = status
    record.ended_by(status.removeprefix("submitted (").removesuffix(")"))
    if wire.info and wire.info.model_stats:
        record.costs = wire.info.model_stats.costs()
    chat, steps = Chat(record, "agent"), []
    for index, (raw, where) in enumerate(placed_elements(data, wire.trajectory, place, field="trajectory", trace=name)):
        step = decode(_STEP, raw, file=source.name, line=where.line, field=f"trajectory[{index}]", trace=name)
        steps.append(step)
        command = _WORD.search(step.action or "")
        tool = command.group().rsplit("/", 1)[-1] if command else ""
        chat.reply(str(index), where, [(str(index), tool)] if tool else [])
        if tool and step.observation is not None:
            chat.result(f"{index}/result", where, str(index), f"trajectory[{index}].observation")
    if steps:  # without times two runs may have equal steps, but `history` has the task
        timed = any(step.execution_time is not None for step in steps)
        record.run = run_digest(record.model, steps if timed else canonical(data).decode())
    return chat.finish()
