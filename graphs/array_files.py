"""Arrays in files: written whole, and read only where a file is as large as its headers say.

NumPy allocates what a header declares before it reads a number, so a header of a few bytes could ask for any memory.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from graphs.atomic import atomic_write
from graphs.errors import CreditError

__all__ = ["read_array", "read_arrays", "write_arrays"]

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name as an uncompressed .npz file, whole or not at all. Equal arrays make equal files.

    Raises:
      OSError: the file cannot be written.
    """
    with atomic_write(path) as file:
        np.savez(file, **cast(dict[str, Any], arrays))


def read_arrays(path: Path, expected: str) -> dict[str, np.ndarray]:
    """The arrays of an uncompressed .npz file by name.

    Args:
      path: the file.
      expected: what it should be, for messages.

    Raises:
      CreditError: it is missing or damaged, holds objects, or is not as large as its headers say.
    """
    if not path.is_file():
        raise CreditError(f"{path} is missing; expected {expected}")
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                # A stored entry is no larger than the file that it is in.
                if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > path.stat().st_size:
                    raise ValueError(f"{entry.filename!r} states {entry.file_size} bytes, more than the file has")
                with archive.open(entry) as file:
                    arrays[entry.filename.removesuffix(".npy")] = _array(cast(BinaryIO, file), entry.file_size)
    except (zipfile.BadZipFile, OSError, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError) as error:
        raise CreditError(f"{path} cannot be read: {error}; expected {expected}") from error
    return arrays


def read_array(path: Path, expected: str) -> np.ndarray:
    """The array of a .npy file.

    Raises:
      CreditError: it is damaged, holds objects, or is not as large as its header says.
      OSError: it cannot be read.
    """
    with path.open("rb") as file:
        try:
            return _array(file, path.stat().st_size)
        except (ValueError, EOFError) as error:
            raise CreditError(f"{path} cannot be read: {error}; expected {expected}") from error


def _array(file: BinaryIO, size: int) -> np.ndarray:
    """The array that begins a file of this many bytes."""
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"format {version}; expected format 1.0 or 2.0 of NumPy")
    shape, by_columns, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("an array of objects; expected numbers")
    declared, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared != there:
        raise ValueError(f"the header states {declared} bytes of numbers, and {there} are there")
    array: np.ndarray = np.frombuffer(bytearray(file.read(there)), dtype)
    return array.reshape(shape, order="F" if by_columns else "C")
