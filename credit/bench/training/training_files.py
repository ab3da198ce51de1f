"""The file of a training run: its rows with their settings, each row checked when the run is resumed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Annotated, Any

import msgspec

from graphs.atomic import atomic_write
from graphs.errors import CreditError
from graphs.reading.decoder_words import expected_type
from graphs.text import counted, excerpt

__all__ = ["POINTS", "kept_rows", "row_key", "runs_of_file", "write_rows"]

POINTS = 31
"""Points of a curve that are kept, at even shares of the budget; `places` are the shares at which each was reached."""

_KEY = ("task", "signal", "seed", "learning_rate", "sweep")
_LARGEST = 1.7976931348623157e308  # of float64: excludes infinity and, since no comparison with it holds, NaN
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Finite = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
_Rate = Annotated[float, msgspec.Meta(gt=0, le=_LARGEST)]
_Events = Annotated[float, msgspec.Meta(ge=0)]


class _Row(msgspec.Struct):
    """A row of `run_training`; `events_to_90` alone may be None or infinite."""

    task: str
    signal: str
    seed: _Count
    learning_rate: _Rate
    sweep: bool
    optimum: _Finite
    start: _Finite
    final_return: _Finite
    mean_return: _Finite
    events_to_90: _Events | None
    cosine: _Finite
    entropy: _Finite
    teaching: _Finite
    updates: _Count
    curve: list[_Finite]
    answered: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0  # files of earlier versions have no such fields
    refused: str = ""
    places: list[_Finite] = []
    function: str = ""


def row_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a row apart: its task, signal, seed, learning rate, and whether it is of the sweep."""
    return tuple(row[name] for name in _KEY)


def kept_rows(path: Path, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a file of an earlier run, if it is there.

    Raises:
      CreditError: as `runs_of_file`, or the file cannot be resumed: it holds rows of other settings than `wanted`.
    """
    if path.suffix not in (".json", ".parquet"):
        raise CreditError(f"{path}: expected a file that ends in .json or .parquet")
    if not path.is_file():
        return []
    rows, stated = runs_of_file(path)
    if stated != wanted:
        raise CreditError(f"{path} holds rows of settings {stated}; expected {wanted}: choose another file")
    return rows


def runs_of_file(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of a file of `credit bench train`, and their settings.

    Args:
      path: ends in .json or .parquet.

    Raises:
      CreditError: it is no such file; a row is broken, or has the key of an earlier one.
    """
    try:
        if path.suffix == ".json":
            document = json.loads(path.read_text(encoding="utf-8"))
            stated, rows = document["settings"], document["rows"]
        else:
            import pyarrow.parquet as pq

            table = pq.read_table(path, page_checksum_verification=True)
            stated, rows = json.loads((table.schema.metadata or {})[b"settings"]), table.to_pylist()
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise TypeError("rows")
    except (ValueError, OSError) as error:
        raise CreditError(f"{path} cannot be read: {error}; expected the file of `credit bench train -o`") from error
    except (KeyError, TypeError) as error:
        raise CreditError(
            f"{path} cannot be read: it holds no rows of training with their settings; expected the file "
            "of `credit bench train -o`"
        ) from error
    first: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows, start=1):
        _check_row(f"{path}: row {number}", row)
        first_number = first.setdefault(row_key(row), number)
        if first_number != number:
            key = ", ".join(f"{name} {value!r}" for name, value in zip(_KEY, row_key(row), strict=True))
            raise CreditError(f"{path}: row {number} has {key} as row {first_number}; expected each row once")
    return rows, stated


def _check_row(where: str, row: dict[str, Any]) -> None:
    """Refuse a row that is none of `run_training`, and name the first field that is wrong."""
    for name in _Row.__struct_fields__[: -len(_Row.__struct_defaults__)]:
        if name not in row:
            raise CreditError(f"{where} has no {name}; expected the rows as `credit bench train` wrote them")
    try:
        msgspec.convert(row, _Row)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        name = place.partition("[")[0].rstrip("`")
        raise CreditError(f"{where} has {name} {excerpt(row[name])}; expected {_expected(message)}") from error
    for name, what in (("curve", "a curve"), ("places", "places")):
        found = len(row[name]) if name in row else POINTS
        if found != POINTS and (found or not row["sweep"]):
            raise CreditError(f"{where} has {what} of {counted(found, 'point')}; expected {POINTS}")


def _expected(message: str) -> str:
    """What a field holds, in the words of the decoder but for the bounds that say only that a number is finite."""
    if message.startswith("Number out of range") or str(_LARGEST) in message:
        return "a finite number"
    return expected_type(message)


def write_rows(path: Path, rows: list[dict[str, Any]], about: dict[str, Any]) -> None:
    """Write rows with their settings, whole or not at all."""
    if path.suffix == ".json":
        content = json.dumps({"settings": about, "rows": rows}, indent=1).encode()
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(rows).replace_schema_metadata({"settings": json.dumps(about)})
        buffer = io.BytesIO()
        pq.write_table(table, buffer, write_page_checksum=True)
        content = buffer.getvalue()
    with atomic_write(path) as file:
        file.write(content)
