"""Names of files and places in one state no order where records state times: a trace is one graph in each, or none."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import NothingReadError
from graphs.formats import FORMATS
from graphs.logs import read

from .all_formats import ALL
from .samples import Sample
from .test_one_graph import OF_ITS_FILE, graphs_of

TIME = re.compile(r"time|_at$|dotted_order", re.IGNORECASE)


def records(sample: Sample) -> list[Any]:
    """The records of a sample; each span of OTLP is one."""
    values = sample.values[0] if not sample.lines and isinstance(sample.values[0], list) else sample.values
    if sample.format != "otlp":
        return list(values)
    return [
        {"resourceSpans": [resource | {"scopeSpans": [scope | {"spans": [span]}]}]}
        for value in values
        for resource in value.get("resourceSpans", [])
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


SPREAD = [
    name
    for name, sample in ALL.items()
    if FORMATS[sample.format].holds == "parts" and sample.format not in OF_ITS_FILE and len(records(sample)) > 1
]


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if isinstance(part, dict | list) or not TIME.search(key)}
        return {key: without_times(part) for key, part in kept.items()}
    return [without_times(part) for part in value] if isinstance(value, list) else value


def at_one_time(value: Any) -> Any:
    """The same value with its first text or number of each key of a time in place of all of them."""
    first: dict[str, Any] = {}

    def of(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: first.setdefault(key, part)
                if TIME.search(key) and part and not isinstance(part, dict | list)
                else of(part)
                for key, part in value.items()
            }
        return [of(part) for part in value] if isinstance(value, list) else value

    return of(value)


@pytest.mark.parametrize("times", ["as they are", "none", "one"])
@pytest.mark.parametrize("name", SPREAD)
def test_names_of_files_are_no_order(tmp_path: Path, name: str, times: str) -> None:
    """Spans without times, runs of LangSmith without an order and calls of Agent Lightning stood as files are named."""
    sample = ALL[name]
    changes: dict[str, Callable[[Any], Any]] = {"as they are": list, "none": without_times, "one": at_one_time}
    parts = changes[times](records(sample))
    found: list[list[str]] = []
    for backwards in (False, True):
        folder = tmp_path / str(backwards)
        folder.mkdir()
        for number, part in enumerate(parts):
            place = len(parts) - 1 - number if backwards else number
            (folder / f"{place:03}.{sample.file.rsplit('.', 1)[-1]}").write_text(json.dumps(part))
        try:
            read(folder, format=sample.format)
        except NothingReadError as error:
            found.append(sorted({problem.kind for problem in error.problems}))
        else:
            found.append(graphs_of(folder))
    assert found[0] == found[1]
    assert times != "as they are" or found[0][0].startswith("{"), "it reads"


OF_BEGIN = re.compile(r"start(ed|_|T)")


def in_other_order(value: Any, draw: Callable[[list[Any]], list[Any]]) -> Any:
    """The same value with each list of records that state when they began in another order."""
    if isinstance(value, dict):
        return {key: in_other_order(part, draw) for key, part in value.items()}
    if not isinstance(value, list):
        return value
    parts = [in_other_order(part, draw) for part in value]
    return draw(parts) if all(isinstance(part, dict) and any(map(OF_BEGIN.match, part)) for part in parts) else parts


def without_order(value: Any) -> Any:
    """The same records of LangSmith without the key that orders them beside their times."""
    return {key: part for key, part in value.items() if key != "dotted_order"} if isinstance(value, dict) else value


@pytest.mark.parametrize("order", ["backwards", "drawn", "drawn again"])
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, sample in ALL.items()
        if name in SPREAD or in_other_order(sample.values, lambda parts: parts[::-1]) != sample.values
    ],
)
def test_places_in_a_file_are_no_order_where_records_state_times(tmp_path: Path, name: str, order: str) -> None:
    """Runs of LangSmith without `dotted_order` stood as in the file, which the API begins with the newest; agents of
    spans were numbered so."""
    sample, chance = ALL[name], random.Random(order)
    values = [without_order(value) for value in sample.values]

    def draw(items: list[Any]) -> list[Any]:
        return items[::-1] if order == "backwards" else chance.sample(items, len(items))

    moved = in_other_order(values, draw)
    sample._replace(values=values).write(tmp_path / "as it is" / "logs")
    sample._replace(values=draw(moved) if sample.lines else moved).write(tmp_path / "moved" / "logs")
    assert graphs_of(tmp_path / "moved") == graphs_of(tmp_path / "as it is")


def test_formats_whose_traces_are_spread_are_tried() -> None:
    assert {ALL[name].format for name in SPREAD} >= {
        "agent-lightning", "langfuse", "langsmith", "openai-agents", "otlp", "spans"
    }  # fmt: skip
