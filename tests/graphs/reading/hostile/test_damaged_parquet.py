"""Damaged Parquet files: refused by name, beside other files, without an abort and without a wrong reward."""

from __future__ import annotations

import io
import itertools
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphs.errors import CreditError, NothingReadError
from graphs.logs import read
from graphs.parquet.checks import checked_metadata
from graphs.traces.cache import write_cache

from ..samples import RECORDINGS
from .hostile_text import text

ROWS = 200
SEEDS = 150


def table() -> pa.Table:
    return pa.table(
        {
            "trace": [f"t{i // 2}" for i in range(ROWS)],
            "group": [f"g{i // 8}" for i in range(ROWS)],
            "agent": ["a", "b"] * (ROWS // 2),
            "reward": [float(i // 2 % 3) for i in range(ROWS)],
        }
    )


def completions() -> pa.Table:
    """As TRL writes them."""
    said = [[{"role": "assistant", "content": f"c{i % 7}"}] for i in range(ROWS)]
    return pa.table(
        {
            "step": [1] * ROWS,
            "prompt": [f"p{i // 4}" for i in range(ROWS)],
            "completion": said,
            "right": [i % 2 / 1 for i in range(ROWS)],
            "advantage": [0.5] * ROWS,
        }
    )


def spans() -> pa.Table:
    return pq.read_table(RECORDINGS / "spans_phoenix.parquet")


def state(path: Path, **options: Any) -> tuple[Any, ...]:
    """What matters of a file that is read; which traces it has, their groups and rewards."""
    traces = read(path, **options)
    n = traces.sizes.traces
    return (
        traces.traces["trace"].to_pylist(),
        traces.traces["group"].to_pylist(),
        np.asarray(traces.reward)[:n].tolist(),
    )


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("columns", [table, completions, spans], ids=lambda columns: columns.__name__)
def test_a_damaged_byte_is_a_named_problem(columns: Callable[[], pa.Table], tmp_path: Path) -> None:
    """198 of 996 such bytes of a table raised an IndexError."""
    path, damaged = tmp_path / "x.parquet", tmp_path / "y.parquet"
    pq.write_table(columns(), path)
    data = path.read_bytes()
    refused = 0
    for at in range(4, min(1000, len(data) - 8), 5):
        damaged.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
        try:
            read(damaged)
        except CreditError as error:
            refused += "y.parquet" in str(error)
    assert refused


def test_the_other_files_of_a_folder_are_read(tmp_path: Path) -> None:
    """An entry of a dictionary that is not there lost all of them."""
    path = tmp_path / "x.parquet"
    entries = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0] * 50, pa.int32()), pa.array(list("abc")))
    pq.write_table(table().set_column(0, "trace", entries), path, compression="none")
    data = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    data[data.index(b"\x24" * 50, start)] = 0xFF  # 0, 1, 2, 0 in two bits each become 3, 3, 3, 3
    path.write_bytes(data)
    (tmp_path / "log.jsonl").write_bytes(text())
    traces = read(tmp_path)
    (problem,) = (problem for problem in traces.problems if problem.file.endswith("x.parquet"))
    assert problem.kind == "bad-parquet" and traces.sizes.traces


def test_rewards_of_a_damaged_table_are_refused(tmp_path: Path) -> None:
    path, log = tmp_path / "x.parquet", tmp_path / "log.jsonl"
    log.write_bytes(text())
    pq.write_table(table(), path, compression="none", use_dictionary=False, write_page_checksum=True)
    flip_last(path, 3)
    with pytest.raises(CreditError, match="checksum") as caught:
        read(log, rewards=path)
    assert "x.parquet" in str(caught.value)


def test_a_damaged_cache_is_refused(tmp_path: Path) -> None:
    path = cached(tmp_path)
    names = pq.read_schema(path).names
    flip_last(path, names.index("traces.reward"))
    with pytest.raises(CreditError, match="checksum"):
        read(path)


def flip_last(path: Path, column: int) -> None:
    """Flip a bit of a column's last byte."""
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(column)
    begins = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    data[begins + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(data)


HISTOGRAM = """
import sys, pyarrow as pa
from graphs.parquet.checks import checked_metadata
from graphs.parquet.unpacked import unpacked_bytes
try:
    unpacked_bytes(checked_metadata(pa.OSFile(sys.argv[1])))
except OSError as error:
    print(error)
"""


@pytest.mark.slow
def test_damaged_metadata_of_a_column_do_not_end_the_process(tmp_path: Path) -> None:
    """Arrow aborts where the histogram of a column of one level has two."""
    path = tmp_path / "x.parquet"
    needed = pa.schema([pa.field("reward", pa.float64(), nullable=False), pa.field("trace", pa.string())])
    pq.write_table(pa.table({"reward": [1.0], "trace": ["t"]}, schema=needed), path, compression="none")
    data = path.read_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    optional = data.index(b"\x15\x02\x25\x02\x18\x05trace"[2:], end) + 1  # "repetition_type": OPTIONAL, as `trace` has
    path.write_bytes(data[:optional] + b"\x00" + data[optional + 1 :])  # REQUIRED
    run = subprocess.run([sys.executable, "-c", HISTOGRAM, path], capture_output=True, text=True, check=True)
    assert "histogram" in run.stdout
    with pytest.raises(CreditError, match="histogram"):
        read(path)


def test_intact_metadata_pass(tmp_path: Path) -> None:
    for name, rows in {"none": table().slice(0, 0), "some": table(), "nothing": pa.table({"a": pa.nulls(5)})}.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(rows, path, row_group_size=3)
        with pa.OSFile(str(path)) as file:
            assert checked_metadata(file).num_rows == rows.num_rows


def tabular(folder: Path) -> Path:
    path = folder / "x.parquet"
    pq.write_table(table(), path, compression="none", write_page_checksum=True)
    return path


def cached(folder: Path) -> Path:
    path = folder / "c.parquet"
    write_cache(read(tabular(folder)), path)
    return path


@pytest.mark.sampled
@pytest.mark.slow
@pytest.mark.parametrize("written", [tabular, cached], ids=lambda written: written.__name__)
def test_zeroed_bytes_never_change_a_reward(written: Callable[[Path], Path], tmp_path: Path) -> None:
    path, damaged = written(tmp_path), tmp_path / "y.parquet"
    data, whole = path.read_bytes(), state(path)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    draw, refused = random.Random(0), 0
    for _ in range(SEEDS):
        at = draw.randrange(4, footer - 64)
        damaged.write_bytes(data[:at] + bytes(64) + data[at + 64 :])
        try:
            found = state(damaged)
        except CreditError as error:
            refused += "y.parquet" in str(error)
        else:
            assert found == whole
    assert refused > SEEDS // 2


def packed(rows: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(rows, file, **options)
    return file.getvalue()


def refusal(path: Path, **options: Any) -> tuple[str, str]:
    """Kind and value of the first problem of a file that is refused."""
    with pytest.raises(NothingReadError) as caught:
        read(path, **options)
    problem = caught.value.problems[0]
    assert problem.file == str(path)
    return problem.kind, problem.value


def outcomes(prefix: str, *rewards: float) -> pa.Table:
    traces = [f"{prefix}{i}" for i in range(len(rewards))]
    return pa.table({"trace": traces, "group": ["q"] * len(rewards), "reward": rewards})


WRITES_BLOOM = int(pa.__version__.split(".")[0]) >= 24
BLOOM = {"trace": {"ndv": 100, "fpp": 0.1}}
WRITTEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "old": {"version": "1.0", "use_dictionary": False},
    "zstd": {"compression": "zstd", "data_page_version": "2.0", "write_page_checksum": True},
    "indexed": {"write_page_index": True} | ({"bloom_filter_options": BLOOM} if WRITES_BLOOM else {}),
    "groups": {"row_group_size": 1, "write_page_index": True},
}


@pytest.mark.parametrize("options", WRITTEN.values(), ids=WRITTEN)
def test_files_joined_by_cat_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    """The traces of the first were read alone, as the metadata of the last lead to its bytes."""
    path = tmp_path / "x.parquet"
    first, second = packed(outcomes("a", 1.0, 0.0), **options), packed(outcomes("b", 0.0, 1.0), **options)
    path.write_bytes(first + second)
    kind, value = refusal(path)
    assert kind == "bad-parquet" and f"another Parquet file begins at byte {len(first)}" in value
    path.write_bytes(first + second + first)
    assert refusal(path)[0] == "bad-parquet"


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (0, 0), (2, 300), (300, 2)], ids=str)
def test_joined_files_of_unequal_sizes_are_refused(sizes: tuple[int, int], tmp_path: Path) -> None:
    """Chunks that the last claims may lie over the first's metadata and over the seam."""
    path = tmp_path / "x.parquet"
    first, second = (packed(table().slice(0, size) if size < ROWS else table()) for size in sizes)
    path.write_bytes(first + second)
    kind, value = refusal(path)
    assert kind == "bad-parquet" and f"begins at byte {len(first)}" in value


def test_a_claimed_chunk_over_the_seam_is_refused(tmp_path: Path) -> None:
    """The last column of the second file is longer than the first file: pages of the first were read by it."""
    path = tmp_path / "x.parquet"
    first = outcomes("a", *[1.0, 0.0] * 500)
    second = outcomes("a", *(i * 0.1 for i in range(1000)))
    joined = packed(first, use_dictionary=["trace", "group"]), packed(second, use_dictionary=["trace", "group"])
    chunk = pq.read_metadata(io.BytesIO(joined[1])).row_group(0).column(2)
    assert chunk.data_page_offset < len(joined[0]) < chunk.data_page_offset + chunk.total_compressed_size
    path.write_bytes(b"".join(joined))
    kind, value = refusal(path)
    assert kind == "bad-parquet" and f"begins at byte {len(joined[0])}" in value


@pytest.mark.parametrize("block", [64, 1 << 20])
def test_texts_like_the_seam_do_not_hide_it(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphs.parquet.checks._BLOCK", block)
    path = tmp_path / "x.parquet"
    rows = pa.table({"trace": ["PAR1PAR1", "PAR1PAR1PAR1"] * 9, "reward": [0.5] * 18})
    first = packed(rows, compression="none", use_dictionary=False)
    path.write_bytes(first + first)
    assert f"begins at byte {len(first)}" in refusal(path)[1]


def test_joined_completions_spans_and_rewards_are_refused(tmp_path: Path) -> None:
    path, log = tmp_path / "completions_1.parquet", tmp_path / "log.jsonl"
    for rows in (completions(), spans()):
        path.write_bytes(packed(rows) * 2)
        assert refusal(path)[0] == "bad-parquet"
    path.write_bytes(packed(outcomes("a", 1.0, 0.0)) + packed(outcomes("b", 1.0, 0.0)))
    log.write_bytes(text())
    with pytest.raises(CreditError, match="another Parquet file begins"):
        read(log, rewards=path)


def test_joined_caches_are_refused(tmp_path: Path) -> None:
    path = cached(tmp_path)
    path.write_bytes(path.read_bytes() * 2)
    kind, value = refusal(path)
    assert kind == "bad-cache" and "another Parquet file begins" in value


@pytest.mark.slow
def test_intact_files_are_not_taken_for_joined(tmp_path: Path) -> None:
    """Also where a text is the seam of two files, with a length before it that could be that of metadata."""
    path = tmp_path / "x.parquet"
    seams = pa.table({"trace": ["PAR1PAR1", "PAR1PAR1PAR1"] * 9, "reward": [0.5] * 18, "n": list(range(18))})
    tables = [table(), table().slice(0, 0), completions(), seams, pa.Table.from_pandas(table().to_pandas())]
    for rows, options in itertools.product(tables, WRITTEN.values()):
        path.write_bytes(packed(rows, **options))
        with pa.OSFile(str(path)) as file:
            assert checked_metadata(file).num_rows == rows.num_rows
    with pq.ParquetWriter(path, table().schema, write_page_index=True) as writer:
        for size in (0, 3, 0):
            writer.write_table(table().slice(0, size))
    with pa.OSFile(str(path)) as file:
        assert checked_metadata(file).num_row_groups == 3


def test_a_damaged_name_of_a_column_is_refused(tmp_path: Path) -> None:
    """All rewards were gone without a word."""
    path = tmp_path / "x.parquet"
    data = packed(outcomes("a", 1.0, 0.0))
    assert data.count(b"reward") == 2  # in the schema, and in the path of the chunk
    path.write_bytes(data.replace(b"reward", b"rdward"))
    kind, value = refusal(path)
    assert kind == "bad-parquet" and "'rdward'" in value and "'reward'" in value


def test_a_damaged_name_inside_a_list_is_refused(tmp_path: Path) -> None:
    """What an agent said was gone without a word."""
    path = tmp_path / "completions_1.parquet"
    path.write_bytes(packed(completions()).replace(b"content", b"cnntent"))
    kind, value = refusal(path)
    assert kind == "bad-parquet" and "'cnntent'" in value and "'content'" in value


KINDS = {
    "map": pa.map_(pa.string(), pa.struct([("a", pa.int64())])),
    "lists": pa.list_(pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())]))),
    "large": pa.large_list(pa.field("other", pa.large_string())),
    "fixed": pa.list_(pa.float32(), 2),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "json": pa.json_(),
    "uuid": pa.uuid(),
    "time": pa.timestamp("ns", "UTC"),
    "nothing": pa.null(),
}


@pytest.mark.parametrize("compliant", [True, False])
def test_names_of_intact_columns_agree(compliant: bool) -> None:
    fields = [pa.field(name, kind) for name, kind in KINDS.items()]
    schema = pa.schema([*fields, pa.field("all", pa.struct([field for field in fields if field.name != "nothing"]))])
    file = io.BytesIO()
    pq.ParquetWriter(file, schema, use_compliant_nested_type=compliant).close()
    assert checked_metadata(pa.BufferReader(file.getvalue())).num_rows == 0


def test_columns_that_a_program_dropped_are_not_damage(tmp_path: Path) -> None:
    """It may leave Arrow's copy of the schema as it was."""
    path = tmp_path / "x.parquet"
    rows = outcomes("a", 1.0, 0.0)
    copy = pq.read_metadata(io.BytesIO(packed(rows.append_column("n", pa.array([1, 2]))))).metadata
    path.write_bytes(packed(rows.replace_schema_metadata(copy), store_schema=False))
    assert read(path).sizes.traces == 2
