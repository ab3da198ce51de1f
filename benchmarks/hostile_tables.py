"""Hostile tables for `hostile.py`: seeds as CSV, JSON lines, Parquet and Arrow, their changes, and a slow reading.

The slow reading knows nothing of the library: it gives, for each text that may name a trace, the rewards beside it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

TRACES = ("trace", "trace_id", "traj_uid", "traj_id", "trajectory_id", "rollout_id")
REWARDS = ("reward", "score")
CELLS: tuple[Any, ...] = (
    None, "", " ", "nan", "NULL", "0", "1e999", "-0.0", 'a",1.0\nforged,q,1.0\n"', "x" * 70_000, "007", "\u202e\x1b[2J",
    0, -1, 2**63 - 1, 1e308, float("nan"), float("inf"), -1e-320, True, 0.25, b"\xff\xfe", [], [1.0, None], {"a": 1},
)  # fmt: skip
MOST_ROWS = 20_000


def seeds(folder: Path) -> list[Path]:
    """A table of a trainer in each form, TRL's completions, and spans of Phoenix; rewards are quarters."""
    rows = [
        {"trace": f"t{i // 3}", "group": f"q{i // 12}", "agent": f"a{i % 3}", "reward": (i // 3) % 5 / 4, "tokens": i,
         "value": i / 8, "text": f'answer {i}, "quoted"\nand more'}
        for i in range(48)
    ]  # fmt: skip
    table = pa.Table.from_pylist(rows)
    lists = table.append_column("token_ids", pa.array([[1, 2, i] for i in range(48)]))
    said = [[{"role": "assistant", "content": "2", "tool_calls": None}]] * 8
    trl = pa.table({"step": [3] * 8, "prompt": ["1+1?"] * 4 + ["2+2?"] * 4, "completion": said,
                    "right": [i % 3 / 4 for i in range(8)], "advantage": [0.5] * 8})  # fmt: skip
    texts = trl.set_column(2, "completion", pa.array(["2"] * 8))
    spans = [
        {"context.trace_id": f"{i // 3:032x}", "context.span_id": f"{i + 1:016x}", "name": kind.lower(),
         "parent_id": None if i % 3 == 0 else f"{i // 3 * 3 + 1:016x}", "span_kind": kind,
         "start_time": f"2026-01-01T00:00:{i:02d}+00:00", "end_time": f"2026-01-01T00:00:{i + 1:02d}+00:00",
         "attributes.llm.model_name": "m", "attributes.llm.token_count.completion": 4}
        for i, kind in enumerate(("AGENT", "LLM", "TOOL") * 4)
    ]  # fmt: skip
    folder.mkdir(exist_ok=True)
    pq.write_table(lists, folder / "rows.parquet")
    pq.write_table(table, folder / "groups.parquet", row_group_size=5, compression="zstd", use_dictionary=False)
    pq.write_table(trl, folder / "completions_00003.parquet")
    pq.write_table(texts, folder / "completions_00004.parquet")
    pq.write_table(pa.Table.from_pylist(spans), folder / "spans.parquet")
    pa.feather.write_feather(table, folder / "rows.arrow", compression="uncompressed")
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return sorted(folder.iterdir())


def mutate_table(data: bytes, rng: random.Random) -> bytes:
    """A changed Parquet file: its columns and cells, how it is packed, or its bytes."""
    table = pq.read_table(pa.BufferReader(data))
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        table = _changed(table, rng)
    out = io.BytesIO()
    packing = {"compression": rng.choice(("snappy", "zstd", "gzip", "none")), "use_dictionary": rng.random() < 0.5}
    pq.write_table(table, out, row_group_size=rng.choice((1, 3, 1000)), **packing)
    packed = bytearray(out.getvalue())
    if rng.random() < 0.15:
        for _ in range(rng.choice((1, 5, 50))):
            packed[rng.randrange(len(packed))] = rng.randrange(256)
    return bytes(packed[: len(packed) if rng.random() < 0.9 else rng.randrange(1, len(packed))])


def mutate_csv(data: bytes, rng: random.Random) -> bytes:
    """A changed CSV file: rows and cells, or a text written without quotes."""
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    for _ in range(rng.choice((1, 1, 2, 5))):
        row, other = rng.choice(rows), rng.choice(rows[1:])
        kind = rng.choice(("cell", "cell", "drop", "more", "copy", "name", "exchange"))
        if kind == "cell" and row:
            row[rng.randrange(len(row))] = str(rng.choice(CELLS))
        elif kind == "drop" and row:
            del row[rng.randrange(len(row))]
        elif kind == "more":
            row.append(rng.choice(("1.0", "", "reward")))
        elif kind == "copy":
            rows += [list(other)] * rng.choice((1, 300))
        elif kind == "name" and rows[0]:
            rows[0][rng.randrange(len(rows[0]))] = rng.choice((*TRACES, *REWARDS, "", "group"))
        elif kind == "exchange" and row and other:
            row[0], other[-1] = other[-1], row[0]
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL if rng.random() < 0.2 else csv.QUOTE_MINIMAL).writerows(rows)
    text = out.getvalue().encode()
    at = rng.randrange(len(text))
    return (
        text[:at] + rng.choice((b'"', b",", b"\r", b"\n", b"\0", b"")) + text[at + 1 :] if rng.random() < 0.3 else text
    )


def _changed(table: pa.Table, rng: random.Random) -> pa.Table:
    """One change of the columns, rows or cells."""
    if not table.num_columns or not table.num_rows:
        return table
    at = rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    kind = rng.choice(
        ("drop", "rename", "double", "cast", "cells", "cells", "cells", "shuffle", "grow", "nulls", "move")
    )
    if kind == "drop":
        return table.remove_column(at)
    if kind == "rename":
        known = (*TRACES, *REWARDS, "group", "prompt", "step", "x", "")
        return table.rename_columns([rng.choice(known) if i == at else n for i, n in enumerate(table.column_names)])
    if kind == "double":
        return table.append_column(name, table.column(rng.randrange(table.num_columns)))
    if kind == "grow":
        return pa.concat_tables([table] * min(rng.choice((2, 100)), max(1, MOST_ROWS // table.num_rows)))
    if kind == "shuffle":
        return table.take(rng.sample(range(table.num_rows), table.num_rows))
    if kind == "move":
        return table.set_column(at, name, table.column(rng.randrange(table.num_columns)))
    if kind == "nulls":
        return table.set_column(at, name, pa.nulls(table.num_rows, rng.choice((column.type, pa.null(), pa.float64()))))
    values = column.to_pylist()
    if kind == "cast":
        to = rng.choice((str, lambda v: [v], lambda v: {"a": v}, lambda v: str(v).encode(), bool))
        values = [None if v is None else to(v) for v in values]
    for _ in range(rng.choice((1, 3)) if kind == "cells" else 0):
        values[rng.randrange(len(values))] = rng.choice(CELLS)
    try:
        return table.set_column(at, name, pa.array(values))
    except (pa.ArrowException, OverflowError, ValueError, TypeError):  # the cell does not go with the others
        return table.set_column(at, name, pa.array([None if v is None else str(v) for v in values]))


def rows_of(data: bytes) -> list[list[tuple[str, Any]]] | None:
    """The rows of a table as (column, cell); None for content that a plain reading cannot take."""
    try:
        if data.startswith(b"PAR1"):
            file = pq.ParquetFile(pa.BufferReader(data))
            names, rows = file.schema_arrow.names, []
            for batch in file.iter_batches():
                columns = [column.to_pylist() for column in batch.columns]
                rows += [list(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]
            return rows
        text = data.decode("utf-8")
        if text.lstrip().startswith("{"):
            lines = []
            for line in text.splitlines():
                try:
                    lines.append(json.loads(line, object_pairs_hook=list))
                except ValueError:
                    continue
            return lines
        first, *rest = csv.reader(io.StringIO(text, newline=""), strict=True)
        return [list(zip(first, row, strict=False)) for row in rest]
    except (pa.ArrowException, OSError, ValueError, csv.Error):
        return None


def rewards_beside(data: bytes) -> dict[str, set[np.float32]] | None:
    """Each text in a column for traces, and the numbers that its rows have in columns for rewards."""
    rows = rows_of(data)
    if rows is None:
        return None
    found: dict[str, set[np.float32]] = {}
    for row in rows:
        if not all(isinstance(cell, tuple | list) and len(cell) == 2 for cell in row):
            continue
        stated = {_number(value) for name, value in row if name in REWARDS}
        for name, value in row:
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            if name in TRACES and isinstance(text, str | int | float):
                found.setdefault(str(text), set()).update(stated - {None})
    return found


def _number(value: Any) -> np.float32 | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    with np.errstate(over="ignore"):
        return None if math.isnan(number) else np.float32(number)


def numbers_in(data: bytes) -> set[np.float32] | None:
    """Every number in the cells of a Parquet file; None where a plain reading cannot take it."""
    rows = rows_of(data)
    if rows is None:
        return None
    return {number for row in rows for _, value in row if (number := _number(value)) is not None}
