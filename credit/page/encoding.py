"""Plain data for a page: numbers in their shortest exact form, harmless text, and JSON for a script element."""

from __future__ import annotations

import base64
import functools
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphs.text import printable

__all__ = ["harmless", "numbers", "packed", "script_json"]

LONGEST = 400  # characters of a text that is shown
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def numbers(values: Any, where: np.ndarray | None = None) -> list[int | float | None]:
    """Numbers of an array as JSON takes them: None where `where` is False or the number is not finite.

    A number of single precision becomes the shortest decimal that rounds to it in single precision.

    Examples:
      >>> numbers(np.array([0.1, np.nan], np.float32)), numbers(np.array([3, 4]), np.array([True, False]))
      ([0.1, None], [3, None])
    """
    array = np.asarray(values)
    keep = np.ones(array.shape, bool) if where is None else where
    if array.dtype.kind in "iu":
        return [value if kept else None for value, kept in zip(array.tolist(), keep.tolist(), strict=True)]
    keep = keep & np.isfinite(array)
    plain = np.where(keep, array, 0) + np.zeros((), array.dtype)  # + 0: makes 0 of -0
    exact = plain.tolist() if array.dtype == np.float64 else [float(text) for text in plain.astype(str)]
    return [value if kept else None for value, kept in zip(exact, keep.tolist(), strict=True)]


def harmless(value: Any, limit: int = LONGEST) -> Any:
    """Plain data whose texts are one printable line each, and whose numbers are finite or None.

    Examples:
      >>> harmless({"name": "a\\u202eb", "value": float("nan")})
      {'name': 'a\\ufffdb', 'value': None}
    """
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, str):
        return printable(value, limit)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [harmless(item, limit) for item in value]
    if isinstance(value, Mapping):
        return {_key(key, limit): harmless(item, limit) for key, item in value.items()}
    return value


@functools.lru_cache(4096, typed=True)  # rows of tables have the same keys
def _key(key: Any, limit: int) -> str:
    return printable(str(key), limit)


def script_json(value: Any) -> str:
    """JSON without characters that end a script element or a line of a script.

    Examples:
      >>> script_json("</script>")
      '"\\\\u003c/script\\\\u003e"'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_UNSAFE)


def packed(value: Any) -> str:
    """JSON, compressed by raw DEFLATE, in base 64: what a browser's `DecompressionStream` unpacks."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(text) + deflate.flush()).decode()
