"""What a log's users state of a trace under names of their own: a release, a kind of task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from graphs.reading.decode import object_text
from graphs.reading.json_problems import JSON_ERRORS

__all__ = ["LONGEST_WORD", "stated_metadata", "words_of"]

LONGEST_WORD = 40
_OF_PROGRAMS = re.compile(
    r"(?:^|\.)(?:ls|lc|lang(?:graph|smith|fuse)|telemetry|otel|sdk|scope|process|os|host|container|k8s|cloud|device)[._]"
    r"|^mlflow\.(?!modelId$|source\.git\.commit$)",  # these two tell versions of a system apart
    re.I,
)
"""How parts of keys begin that libraries write, and not their users."""


def stated_metadata(raw: bytes | msgspec.Raw, name: Any = None, tags: Any = None) -> dict[str, str]:
    r"""The short texts and numbers of an object of metadata, or of a JSON text of it, and, where it has no such key,
    the name of the trace as `name` and its tag as `tags`; nothing of any other value.

    Args:
      raw: the JSON of the field, valid by itself, or no bytes.
      name: of the trace.
      tags: of the trace, a list: nothing of one of several, none of which is of a kind that others of the log are of.

    Examples:
      >>> stated_metadata(b'{"release": "v2", "langgraph_step": 3, "user": {"name": "x"}}')
      {'release': 'v2'}
    """
    try:
        stated = msgspec.json.decode(object_text(raw)) if raw else None
    except JSON_ERRORS:
        stated = None  # a text that begins as an object
    own = {"name": name} | ({"tags": tags[0]} if isinstance(tags, list) and len(tags) == 1 else {})
    return words_of(own | stated if isinstance(stated, dict) else own)


def words_of(stated: Mapping[str, Any]) -> dict[str, str]:
    """The short texts and numbers of a mapping, without those that libraries write.

    Args:
      stated: by key, values of any type.
    """
    return {
        key: str(value)
        for key, value in stated.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
        if 0 < len(str(value)) <= LONGEST_WORD and not _OF_PROGRAMS.search(key)
    }
