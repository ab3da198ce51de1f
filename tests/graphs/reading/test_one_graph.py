"""One run is one graph, however its log is written: the law over the samples of all formats."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from graphs.errors import Problem
from graphs.logs import FORMATS, open_logs
from graphs.reading.near_misses import PARQUET
from graphs.traces.record import TraceRecord
from graphs.traces.record_parts import part_of
from tests.definitions.samples import SAMPLES as DEFINED

from .all_formats import ALL
from .samples import OBSERVATIONS, RECORDINGS, Sample

PLACES = ("file", "line", "offset", "lines", "offsets", "files", "sources", "run", "places")
OF_ITS_FILE = {"langgraph", "rollouts", "verifiers", "tau-bench"}
"""Formats that take a thread, a step, a run or a model from the file: two files are never one of these."""


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
    if texts != sample.values:
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


def test_no_format_is_outside_the_law() -> None:
    """A new format has a log in each of the tables that the tests below go through; a table is CSV or Parquet, too."""
    assert {sample.format for sample in DEFINED.values()} == set(FORMATS)
    assert {sample.format for sample in ALL.values()} == set(FORMATS) - {"table"}


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


def rewritten(name: str, text: str, change: Callable[[Any], Any]) -> bytes:
    """A file of JSON or JSON lines with each value changed; another file, and one that is a single text, as it is."""
    if not name.endswith((".json", ".jsonl", ".traj")):
        return text.encode()
    try:
        return json.dumps(change(json.loads(text))).encode()
    except json.JSONDecodeError:
        return "".join(json.dumps(change(json.loads(line))) + "\n" for line in text.splitlines()).encode()


CHANGES: dict[str, Callable[[Any], Any]] = {
    "keys": lambda value: ordered(value, reverse=False), "keys, reverse": lambda value: ordered(value, reverse=True),
    "metadata as texts": as_texts,
}  # fmt: skip


@pytest.mark.parametrize("name", DEFINED)
def test_the_logs_whose_meaning_is_written_out_are_one_graph_each(tmp_path: Path, name: str) -> None:
    """They have several files, sub-agents, old forms and tables, which the samples above lack."""
    sample = DEFINED[name]
    expected = graphs_of(sample.write(tmp_path / "as it is" / "logs").parent)
    for form, change in CHANGES.items():
        for file, text in sample.files.items():
            path = tmp_path / form / "logs" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".parquet":
                sample.write(tmp_path / form / "logs")
            else:
                path.write_bytes(rewritten(file, text, change))
        assert graphs_of(tmp_path / form) == expected, form
    for path in [path for path in (tmp_path / "as it is").rglob("*") if path.is_file() and path.suffix != ".parquet"]:
        packed = tmp_path / "gzip" / path.relative_to(tmp_path / "as it is").with_name(f"{path.name}.gz")
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    assert not (tmp_path / "gzip").exists() or graphs_of(tmp_path / "gzip") == expected


def test_packed_files_of_atif_are_found_by_the_names_that_refer_to_them(tmp_path: Path) -> None:
    step = {"step_id": 1, "source": "agent", "message": "x"}
    first = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": [step],
             "continued_trajectory_ref": "trajectory.cont-1.json"}  # fmt: skip
    then = {key: part for key, part in first.items() if key != "continued_trajectory_ref"}
    (tmp_path / "plain").mkdir()
    (tmp_path / "packed").mkdir()
    for name, value in (("trajectory.json", first), ("trajectory.cont-1.json", then)):
        text = json.dumps(value).encode()
        (tmp_path / "plain" / name).write_bytes(text)
        (tmp_path / "packed" / f"{name}.gz").write_bytes(gzip.compress(text, mtime=0))
    plain = graphs_of(tmp_path / "plain")
    assert len(plain) == 1 and graphs_of(tmp_path / "packed") == plain


def test_a_table_is_one_graph_as_csv_json_lines_and_parquet(tmp_path: Path) -> None:
    (text,) = DEFINED["table"].files.values()
    table = pa_csv.read_csv(io.BytesIO(text.encode()))
    for folder in ("csv", "lines", "parquet"):
        (tmp_path / folder).mkdir()
    (tmp_path / "csv" / "dump.csv").write_text(text)
    rows = [{key: cell for key, cell in row.items() if cell is not None} for row in table.to_pylist()]
    (tmp_path / "lines" / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(table, tmp_path / "parquet" / "dump.parquet")
    assert graphs_of(tmp_path / "lines") == graphs_of(tmp_path / "csv")
    assert graphs_of(tmp_path / "parquet") == graphs_of(tmp_path / "csv")


OF_PLACE = re.compile(r"('trace_id'|'group_id'): '([^']*)'")
"""Ids, which ART has none of: they are made of the name of the file and the place in it."""


def with_numbers(text: str) -> str:
    """A text with ids numbered by their first places."""
    names: dict[str, int] = {}
    return OF_PLACE.sub(lambda match: f"{match[1]} {names.setdefault(match[2], len(names))}", text)


IN_PARQUET = {
    "art": ("art_0007.jsonl", "art_0007.parquet"),
    "spans": ("spans_phoenix.json", "spans_phoenix.parquet"),
    "rollouts": ("completions_00007.parquet",),  # TRL writes nothing else
}
"""Recordings of one run, by the format, in each encoding that its project writes."""


def test_every_format_that_is_read_from_parquet_is_under_the_law() -> None:
    assert IN_PARQUET.keys() == PARQUET.keys()


@pytest.mark.parametrize("name", [name for name, files in IN_PARQUET.items() if len(files) > 1])
def test_a_run_is_one_graph_as_json_and_as_parquet(tmp_path: Path, name: str) -> None:
    found = []
    for file in IN_PARQUET[name]:
        folder = tmp_path / Path(file).suffix[1:] / "logs"
        folder.mkdir(parents=True)
        shutil.copy(RECORDINGS / file, folder)
        found.append(with_numbers("\n".join(graphs_of(folder.parent))))
    assert found[0] == found[1]


NODES = [
    row | {"metadata": {"langgraph_node": row["name"], "attributes": {"gen_ai.conversation.id": "c"}}}
    for row in OBSERVATIONS
]
KOOG = [
    row | {"type": "AGENT" if row["type"] == "AGENT" else "SPAN", "metadata": {"attributes": attributes}}
    if row["type"] != "GENERATION" else row
    for row, attributes in zip(
        [*OBSERVATIONS, OBSERVATIONS[2] | {"id": "o0", "startTime": "2026-01-01T00:00:00.000Z"}],
        [{"gen_ai.tool.call.id": "c"}, {}, {"gen_ai.operation.name": "invoke_agent"}, {},
         {"gen_ai.operation.name": "create_agent"}],
        strict=True,
    )
]  # fmt: skip


def by_path(row: dict[str, Any]) -> dict[str, Any]:
    """The observation as a download of version 4 has it: of what metadata hold, each value by its path, as a text."""
    flat = {
        f"{key}.{inner}": value
        for key, part in row["metadata"].items()
        for inner, value in (part.items() if isinstance(part, dict) else [("", part)])
    }
    return row | {"metadata": {key.removesuffix("."): value for key, value in flat.items()}}


@pytest.mark.parametrize("observations", [OBSERVATIONS, NODES, KOOG])
def test_all_exports_of_a_trace_of_langfuse_are_one_graph(tmp_path: Path, observations: list[dict[str, Any]]) -> None:
    """Metadata as a text made an agent of a tool, or lost the nodes of a graph. Downloads were refused: the older holds
    each observation twice, one copy without metadata, and the newer has no trace, and metadata by path: the creation of
    an agent acted."""
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
        "newer/trace-t.json": json.dumps({"observations": list(map(by_path, observations)), "scores": []}, indent=2),
        "json/observations.jsonl": "".join(json.dumps(row) + "\n" for row in observations),
        "text/observations.jsonl": "".join(json.dumps(as_texts(row)) + "\n" for row in observations),
        "csv/observations.csv": out.getvalue(),
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    expected = graphs_of(tmp_path / "json")
    for form in ("text", "csv", "older", "newer"):
        assert graphs_of(tmp_path / form) == expected, form
