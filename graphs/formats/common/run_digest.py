"""A digest of what a log states of a run, for formats whose trace ids are made of the names of files.

`TraceRecord.run` holds it. It tells that two files hold the same run, so that the run counts once.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

__all__ = ["run_digest"]


def run_digest(*stated: Any) -> str:
    """A digest of decoded values: texts, numbers, structs, lists and dicts of these.

    Decoded values are the same in a log that was written again with other blanks, escapes or order of keys.

    Examples:
      >>> from graphs.formats.common.run_digest import run_digest
      >>> run_digest("task", {"a": 1, "b": 2}) == run_digest("task", {"b": 2, "a": 1})
      True
    """
    return hashlib.blake2b(msgspec.json.encode(stated, order="sorted"), digest_size=16).hexdigest()
