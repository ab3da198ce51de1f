"""What readers make of names and tasks: short names of files, systems, models, and groups of equal tasks."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

import msgspec

from graphs.event_types import EventType
from graphs.reading.documents import stem
from graphs.reading.json_problems import JSON_ERRORS
from graphs.reading.source import Source
from graphs.traces.record import TraceRecord

__all__ = [
    "WRITTEN_ALIKE",
    "Tasks",
    "WrittenIds",
    "canonical",
    "model_names",
    "name_models",
    "short_names",
    "systems",
]

WRITTEN_ALIKE = "an id that is written alike everywhere: here it is a number, there a text, or the other way round"
"""What is expected of an id that `WrittenIds` finds to differ."""


def short_names(sources: Iterable[Source], *suffixes: str) -> dict[str, str]:
    """A short unique name for each source: the file's name without suffixes, with as many folders as necessary.

    `runs/a/results.jsonl` and `runs/b/results.jsonl` become `a/results` and `b/results`.
    """
    names = [source.name for source in sources]
    return _shortest({name: [*re.split(r"[\\/]+", name)[:-1], stem(name, *suffixes)] for name in names})


def systems(system: str, folder_of: Mapping[str, str]) -> dict[str, str]:
    """The system of each file of a format that states no model: runs in different folders are not compared.

    Args:
      system: the harness, which is the result where all files are of one folder.
      folder_of: file name to the folder of its run.

    Returns:
      File name to `system`, or to `system/FOLDER` with a short name of the folder.
    """
    short = _shortest({folder: re.split(r"[\\/]+", folder) for folder in folder_of.values()})
    if len(short) < 2:
        return dict.fromkeys(folder_of, system)
    return {name: f"{system}/{short[folder]}" for name, folder in folder_of.items()}


def _shortest(parts: Mapping[str, list[str]]) -> dict[str, str]:
    """For each key the last of its parts, as many as make it unique."""
    short: dict[str, str] = {}
    waiting, depth = list(parts), 1
    while waiting:
        shown = {name: "/".join(part for part in parts[name][-depth:] if part) for name in waiting}
        count: dict[str, int] = {}
        for text in shown.values():
            count[text] = count.get(text, 0) + 1
        final = [name for name in waiting if count[shown[name]] == 1 or depth > len(parts[name])]
        short |= {name: shown[name] for name in final}
        waiting = [name for name in waiting if name not in short]
        depth += 1
    return short


def model_names(models: Iterable[str | None]) -> str:
    """The models of a trace as one text: the distinct names, sorted; "" without any."""
    return " + ".join(sorted({model for model in models if model}))


def name_models(record: TraceRecord) -> None:
    """Name the trace's model after its calls', unless its log does, where they ask one.

    Calls keep their own where they ask several: `graphs.traces.assembling` names the trace's. Embeddings keep theirs.
    """
    stated, read = (record.columns.get(name, []) for name in ("model", "input_tokens"))
    of_tools = [of == EventType.TOOL_CALL and not acts for of, acts in zip(record.types, record.actions, strict=True)]
    own = {i: model for i, (model, count, of_tool) in enumerate(zip(stated, read, of_tools, strict=False))
           if of_tool and None not in (model, count)}  # fmt: skip
    models = {model for i, model in enumerate(stated) if i not in own} - {None}
    if len(models) == 1 and not record.missing and record.model in ("", *models):
        record.model = record.model or model_names(models)
        del record.columns["model"]
        if own:
            record.columns["model"] = [own.get(i) for i in range(len(stated))]


def canonical(raw: bytes | msgspec.Raw) -> bytes:
    """A JSON value as every writer of it would have written it: escapes, blanks and the order of keys tell no tasks."""
    text = bytes(raw)
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted") if text else text
    except JSON_ERRORS:
        pass
    try:  # Python takes a number that is too large for a float, as 1e999
        return json.dumps(json.loads(text), sort_keys=True).encode()
    except (ValueError, RecursionError):
        return text


class Tasks:
    """Groups of traces whose task ids are unique only within one benchmark."""

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}
        self.ids = WrittenIds()

    def group(self, task: str, content: bytes, otherwise: str) -> str:
        """The group of a task, so that tasks of different content are never in one.

        Args:
          task: the group of the first content that has this id.
          content: what the task is, such as its prompt.
          otherwise: the group of the first other content; further ones add a digest.
        """
        digest = hashlib.blake2b(content, digest_size=16).digest()
        for name in (task, otherwise):
            if self._first.setdefault(name, digest) == digest:
                return name
        return f"{otherwise}/{digest.hex()}"


class WrittenIds:
    """How the ids of groups are written: 1 and "1" have one text, but a log that has both may mean two tasks."""

    def __init__(self) -> None:
        self._is_text: dict[str, bool] = {}

    def differs(self, group: str, stated: object) -> bool:
        """Whether the id of a group is a text where an earlier one was a number, or the other way round."""
        is_text = isinstance(stated, str)
        return self._is_text.setdefault(group, is_text) is not is_text

    def contradicts(self, group: str, is_text: bool | None) -> bool:
        """Whether an earlier id of a group was a text and this one is none, or the other way round; None is alike."""
        return is_text is not None and self._is_text.get(group, is_text) is not is_text

    def check(self, record: TraceRecord, field: str, stated: object) -> None:
        """Refuse a trace whose group has an id that is written otherwise.

        Raises:
          TraceError: "ambiguous-id".
        """
        if self.differs(record.group_id, stated):
            record.refuse("ambiguous-id", field, stated, WRITTEN_ALIKE)
