"""Files of one JSON object a line, which plans and results are: read with the line that is wrong, appended safely."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from graphs.atomic import append, atomic_write
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["append_lines", "field", "read_lines", "write_lines"]

LONGEST = 10_000_000
"""Characters of a line; a longer one is refused."""


def read_lines(path: Path, *, torn: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with their line numbers, from 1; empty lines are skipped.

    Args:
      path: the file.
      torn: whether a last line without a line break is left out: the process that wrote it was killed.

    Raises:
      CreditError: a line is no JSON object.
      OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            if torn and not line.endswith("\n"):
                return
            if not line.strip():
                continue
            if len(line) > LONGEST:
                raise CreditError(f"{path}, line {number}: {len(line)} characters; expected at most {LONGEST}")
            try:
                value = json.loads(line, parse_constant=_refuse_constant)
            except (ValueError, RecursionError):
                raise CreditError(f"{path}, line {number}: {excerpt(line.strip())} is no JSON object") from None
            if not isinstance(value, dict):
                raise CreditError(f"{path}, line {number}: {excerpt(value)}; expected a JSON object")
            yield number, value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def field(path: Path, number: int, line: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """A field of a line.

    Raises:
      CreditError: it is missing, or of another type; `bool` is no number.
    """
    value = line.get(name)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(_WORDS.get(k, k.__name__) for k in kinds)
        raise CreditError(f"{path}, line {number}: {name} is {excerpt(value)}; expected {expected}")
    return value


_WORDS = {
    str: "a text",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
    bool: "true or false",
}


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write a file whole or not at all."""
    with atomic_write(path) as file:
        for line in lines:
            file.write((json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode())


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Append lines as `append` of `graphs.atomic` does."""
    append(path, "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines).encode())
