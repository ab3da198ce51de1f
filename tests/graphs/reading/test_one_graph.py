"""One run is one graph, however its log is written: the law over the samples of all formats."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphs.errors import Problem
from graphs.logs import FORMATS, open_logs
from graphs.traces.record import TraceRecord
from graphs.traces.record_parts import part_of

from .all_formats import ALL
from .samples import OBSERVATIONS, Sample

PLACES = ("file", "line", "offset", "lines", "offsets", "files", "sources", "run", "places")
OF_ITS_FILE = {"langgraph", "rollouts", "verifiers", "tau-bench"}
"""Formats that take a thread, a step, a run or a model from the file: two files are never one of these."""
OBJECTS_ONLY = {"langgraph"}
"""Formats that state objects in one way; a text there is refused by name."""


def plain(value: Any) -> Any:
    """A value to compare: without places, and with the keys of objects in one order."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in sorted(value.items())}
    if isinstance(value, pa.Array):
        return value.to_pylist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.name not in PLACES]
        return {name: plain(getattr(value, name)) for name in names}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def graphs_of(folder: Path) -> list[str]:
    """What each trace holds, without where it stood."""
    items = list(open_logs(folder).records())
    assert not [item for item in items if isinstance(item, Problem) and item.is_failure], items
    parts = [
        part_of([item]) if isinstance(item, TraceRecord) else item for item in items if not isinstance(item, Problem)
    ]
    found = sorted(repr(plain(part.slice(i, i + 1))) for part in parts for i in range(len(part.headings)))
    assert found
    return found


def ordered(value: Any, *, reverse: bool) -> Any:
    """The same value with the keys of every object sorted, or in reverse."""
    if isinstance(value, dict):
        items = [(key, ordered(part, reverse=reverse)) for key, part in value.items()]
        return dict(reversed(items)) if reverse else dict(sorted(items))
    return [ordered(part, reverse=reverse) for part in value] if isinstance(value, list) else value


def as_texts(value: Any) -> Any:
    """The same value with each object of metadata as a JSON text, as tables and APIs have it."""
    if isinstance(value, dict):
        return {
            key: json.dumps(part) if key in ("metadata", "usageDetails") and isinstance(part, dict) else as_texts(part)
            for key, part in value.items()
        }
    return [as_texts(part) for part in value] if isinstance(value, list) else value


def forms(sample: Sample) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Further ways to write a sample, each as the content of files by name."""
    text = sample.text.encode()
    yield "gzip", {f"{sample.file}.gz": gzip.compress(text, mtime=0)}
    for reverse in (False, True):
        values = [ordered(value, reverse=reverse) for value in sample.values]
        yield f"keys, reverse={reverse}", {sample.file: sample._replace(values=values).text.encode()}
    texts = [as_texts(value) for value in sample.values]
    if texts != sample.values and sample.format not in OBJECTS_ONLY:
        yield "metadata as texts", {sample.file: sample._replace(values=texts).text.encode()}
    stem, suffix = sample.file.rsplit(".", 1)
    is_list = not sample.lines and isinstance(sample.values[0], list)
    values = sample.values[0] if is_list else sample.values
    if not sample.lines:
        yield "on one line", {sample.file: json.dumps(sample.values[0]).encode()}
    elif FORMATS[sample.format].holds != "session":  # lines of a session are no records
        yield "a list on one line", {f"{stem}.json": json.dumps(values).encode()}
    if is_list:
        yield "lines", {f"{stem}.jsonl": "".join(json.dumps(value) + "\n" for value in values).encode()}
    if len(values) > 1 and FORMATS[sample.format].holds != "session" and sample.format not in OF_ITS_FILE:
        yield (
            "a file a record",
            {f"{i:03}-{stem}.{suffix}": json.dumps(value).encode() for i, value in enumerate(values)},
        )


@pytest.mark.parametrize("name", [name for name in ALL if name != "harbor"])  # a result alone, which is no trace
def test_one_run_is_one_graph_however_it_is_written(tmp_path: Path, name: str) -> None:
    sample = ALL[name]
    sample.write(tmp_path / "as it is" / "logs")
    expected = graphs_of(tmp_path / "as it is")
    for form, files in forms(sample):
        folder = tmp_path / form / "logs"
        folder.mkdir(parents=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        assert graphs_of(folder) == expected, form


NODES = [
    row | {"metadata": {"langgraph_node": row["name"], "attributes": {"gen_ai.conversation.id": "c"}}}
    for row in OBSERVATIONS
]


@pytest.mark.parametrize("observations", [OBSERVATIONS, NODES])
def test_all_exports_of_a_trace_of_langfuse_are_one_graph(tmp_path: Path, observations: list[dict[str, Any]]) -> None:
    """Metadata as a text made an agent of a tool, or lost the nodes of a graph. Downloads were refused: the older holds
    each observation twice, one copy without metadata, and the newer has no trace."""
    columns = list(dict.fromkeys(key for row in observations for key in row))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in observations:
        cells = [row.get(column) for column in columns]
        writer.writerow([json.dumps(cell) if isinstance(cell, dict) else cell for cell in cells])
    slim = [{key: value for key, value in row.items() if key != "metadata"} for row in observations]
    trace = {"id": "t", "projectId": "p", "observations": slim, "scores": []}
    for name, text in {
        "older/trace-t.json": json.dumps({"trace": trace, "observations": observations}, indent=2),
        "newer/trace-t.json": json.dumps({"observations": observations, "scores": []}, indent=2),
        "json/observations.jsonl": "".join(json.dumps(row) + "\n" for row in observations),
        "text/observations.jsonl": "".join(json.dumps(as_texts(row)) + "\n" for row in observations),
        "csv/observations.csv": out.getvalue(),
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    expected = graphs_of(tmp_path / "json")
    for form in ("text", "csv", "older", "newer"):
        assert graphs_of(tmp_path / form) == expected, form
