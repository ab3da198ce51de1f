"""Hostile OTLP files: whatever a leaf is replaced by, reading gives records and problems, never another error."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphs.errors import NothingReadError, Problem
from graphs.formats import otlp
from graphs.logs import read
from graphs.reading.source import Source
from graphs.traces.assembling import assemble
from graphs.traces.record import TraceRecord
from graphs.writers import otlp as writer

RECORDINGS = Path(__file__).parents[4] / "recordings"

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(
        ["0", "NaN", "Infinity", "0" * 16, "f" * 16, "f" * 32, "-1", "9" * 30, "1e5", "chat", "invoke_agent"]
    ),
    st.sampled_from([[], {}, [1], {"a": 1}, {"stringValue": 1}, {"intValue": "x"}, [[[]]]]),
)


def paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document but its root."""
    if path:
        yield path
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from paths(node[key], (*path, key))


def requests(kind: str, folder: Path) -> list[Any]:
    """The lines of a recorded team, or of one that the writer wrote, marks and all."""
    if kind != "written":
        return [json.loads(line) for line in (RECORDINGS / f"team_{kind}.jsonl").read_text().splitlines()]
    writer.write(read(RECORDINGS / "team_genai.jsonl"), folder)
    return [
        json.loads(line) for name in ("spans", "logs") for line in (folder / f"{name}.jsonl").read_text().splitlines()
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["genai", "openinference", "written"])
@pytest.mark.study
def test_any_leaf_may_be_anything(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp(kind)
    clean = requests(kind, folder)
    places = list(paths(clean))
    path = folder / "fuzz.jsonl"

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(st.sampled_from(places), LEAVES), min_size=1, max_size=3))
    def check(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
        document = copy.deepcopy(clean)
        for (*above, last), leaf in changes:
            node = document
            try:
                for key in above:
                    node = node[key]
                node[last] = copy.deepcopy(leaf)
            except (KeyError, IndexError, TypeError):
                continue  # an earlier change took this place away
        path.write_text("".join(json.dumps(line) + "\n" for line in document))
        items = list(otlp.read([Source("fuzz", path)]))
        assert all(isinstance(item, TraceRecord | Problem) for item in items)
        try:
            assemble(items)
        except NothingReadError as error:
            assert error.problems or not items

    check()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cut=st.integers(0, 20_000), junk=st.binary(max_size=8))
def test_any_byte_may_be_anything(tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes) -> None:
    data = (RECORDINGS / "team_genai.jsonl").read_bytes()
    path = tmp_path_factory.mktemp("bytes") / "fuzz.jsonl"
    path.write_bytes(data[:cut] + junk + data[cut + len(junk) :])
    source = Source("fuzz", path)
    items = list(otlp.read([source]))
    assert (items or source.lost) and all(isinstance(item, TraceRecord | Problem) for item in items)
