"""Parquet files of a few kilobytes that unpack to gigabytes: refused before they do, wherever Parquet is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import CreditError, TraceError
from graphs.logs import read
from graphs.reading.tables import rows
from graphs.traces.cache import write_cache
from graphs.traces.limits import Limits

from ..samples import RECORDINGS
from .hostile_text import text

ROWS = 1_000_000
SMALL = Limits(file_bytes=4 << 20)


def same(value: Any) -> pa.Array:
    """A column of one value, of which the file holds one and a count."""
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(ROWS, np.int32)), pa.array([value]))
    return pa.array(np.full(ROWS, value))


def table(folder: Path) -> tuple[Path, dict[str, Path]]:
    return write(folder, {"trace": same("a"), "reward": same(1.0)}), {}


def rewards(folder: Path) -> tuple[Path, dict[str, Path]]:
    return log(folder), {"rewards": write(folder, {"trace": same("bad"), "reward": same(1.0)})}


def groups(folder: Path) -> tuple[Path, dict[str, Path]]:
    return log(folder), {"groups": write(folder, {"trace": same("bad"), "group": same("q")})}


def cache(folder: Path) -> tuple[Path, dict[str, Path]]:
    path = folder / "x.parquet"
    write_cache(read(log(folder)), path)
    small = pq.read_table(path)
    columns = {name: pa.chunked_array([column.combine_chunks()] * 20_000) for name, column in
               zip(small.column_names, small.columns, strict=True)}  # fmt: skip
    pq.write_table(pa.table(columns).replace_schema_metadata(small.schema.metadata), path)
    return path, {}


def phoenix_spans(folder: Path) -> tuple[Path, dict[str, Path]]:
    names = ("context.trace_id", "context.span_id", "parent_id", "name")
    return write(folder, {name: same("a" * 16) for name in names}), {}


def trl_completions(folder: Path) -> tuple[Path, dict[str, Path]]:
    return write(folder, {"step": same(1), "prompt": same("p"), "completion": same("c"), "advantage": same(0.5)}), {}


def log(folder: Path) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(text())
    return path


def write(folder: Path, columns: dict[str, pa.Array]) -> Path:
    path = folder / "x.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def unpacks(*_: object, **__: object) -> None:
    pytest.fail("the file was unpacked")


DOORS = (table, rewards, groups, cache, phoenix_spans, trl_completions)


@pytest.mark.sampled
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_file_is_refused_before_it_is_unpacked(
    door: Callable[[Path], tuple[Path, dict[str, Path]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = door(tmp_path)
    assert (tmp_path / "x.parquet").stat().st_size < 500_000
    for name in ("iter_batches", "read", "read_row_group"):  # `checked_metadata` reads groups of a file without pages
        monkeypatch.setattr(pq.ParquetFile, name, unpacks)
    with pytest.raises(CreditError, match="too-large") as caught:
        read(path, limits=SMALL, **options)  # type: ignore[arg-type]
    assert isinstance(caught.value, TraceError) == bool(options) and str(tmp_path / "x.parquet") in str(caught.value)


def long_list(rows: int) -> pa.Array:
    """A list of 5,000 entries of one text in the first row: 5 GB where each is spelt out, 5,000 numbers in a file."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), pa.array(["x" * (1 << 20)]))
    return pa.ListArray.from_arrays(pa.array([0, *[5000] * rows], pa.int32()), texts)


def in_structures(column: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([column], ["inner"])


@pytest.mark.parametrize("shape", [lambda column: column, in_structures], ids=["list", "structure"])
@pytest.mark.parametrize("form", ["spans", "rollouts"])
def test_lists_of_one_text_are_refused_before_each_is_spelt_out(
    form: str, shape: Callable[[pa.Array], pa.Array], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """78 KB of spans took 5 GB."""
    path = tmp_path / "x.parquet"
    if form == "spans":
        spans = pq.read_table(RECORDINGS / "spans_phoenix.parquet")
        pq.write_table(spans.append_column("attributes.z", shape(long_list(len(spans)))), path)
    else:
        kept = {"step": [3], "prompt": ["p"], "advantage": [0.5], "right": [1.0]}
        pq.write_table(pa.table(kept | {"completion": shape(long_list(1))}), path)
    assert path.stat().st_size < 500_000
    monkeypatch.setattr(rows, "_to_values", unpacks)
    with pytest.raises(CreditError, match="too-large"):
        read(path)


def test_lists_of_tokens_are_refused_before_each_is_spelt_out(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"trace": ["a"], "reward": [1.0], "token_ids": long_list(1)}), path)
    with pytest.raises(CreditError, match="too-large"):
        read(path, columns={"token_ids": "token_ids"})


def test_texts_that_rows_share_stay_within_the_limit(tmp_path: Path) -> None:
    """What is refused is what would be spelt out: 1,000 rows of one megabyte hold one text."""
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array(["x" * (1 << 20)]))
    names = [f"t{i}" for i in range(1000)]
    pq.write_table(pa.table({"trace": names, "reward": [1.0] * 1000, "note": shared}), tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet", limits=Limits(file_bytes=8 << 20)).sizes.traces == 1000


def test_a_list_within_the_limit_is_read(tmp_path: Path) -> None:
    spans = pq.read_table(RECORDINGS / "spans_phoenix.parquet")
    whole = read(RECORDINGS / "spans_phoenix.parquet")
    inner = pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int32()), pa.array([json.dumps("x")]))
    column = pa.ListArray.from_arrays(pa.array([0, *[3] * len(spans)], pa.int32()), inner)
    pq.write_table(spans.append_column("attributes.z", column), tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet").sizes.events == whole.sizes.events


@pytest.mark.slow
def test_equal_rows_are_refused_before_each_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of 10 KB with 10^6 equal rows took 27 s and 427 MB."""
    columns = {"trace": ["a"] * 1_000_000, "group": ["q"] * 1_000_000, "reward": [1.0] * 1_000_000}
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns), path, compression="zstd")
    with pytest.raises(CreditError, match=r"at most 1000 times the \d+ bytes of the file, or --limit ratio=N"):
        read(path)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", unpacks)
    with pytest.raises(pytest.fail.Exception):
        read(path, limits=Limits(ratio=10_000))


def varint(value: int, length: int = 0) -> bytes:
    """A number of Parquet's metadata, of a stated length or the shortest."""
    rest, digits = value << 1, list[int]()
    while rest or len(digits) < max(length, 1):
        digits.append(rest & 0x7F)
        rest >>= 7
    return bytes(digit | (0x80 if place < len(digits) - 1 else 0) for place, digit in enumerate(digits))


def test_a_file_that_states_less_than_it_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit was held against the sizes that the file states of itself, and half a megabyte became 2 GB.

    Then the first batch was in memory before its texts were counted: 75 KB became 1.5 GB.
    """
    path = tmp_path / "x.parquet"
    rows = 20_000
    columns = {"step": [1] * rows, "prompt": ["p"] * rows, "completion": ["x" * 2000] * rows, "advantage": [0.5] * rows}
    pq.write_table(pa.table(columns), path, use_dictionary=False, compression="zstd")
    group, content = pq.read_metadata(path).row_group(0), path.read_bytes()
    for stated in (group.total_byte_size, group.column(2).total_uncompressed_size):
        assert stated > SMALL.file_bytes and content.count(varint(stated)) == 1
        content = content.replace(varint(stated), varint(1000, len(varint(stated))))
    path.write_bytes(content)
    assert pq.read_metadata(path).row_group(0).total_byte_size == 1000
    held: list[int] = []
    batches = pq.ParquetFile.iter_batches

    def watched(*args: Any, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        for batch in batches(*args, **kwargs):
            held.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", watched)
    with pytest.raises(CreditError, match=r"more texts than the file states.*too-large"):
        read(path, limits=SMALL)
    assert 0 < sum(held) <= rows // 4
