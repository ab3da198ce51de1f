"""The status of an event: one word, which tells whether it went wrong, and what a log says behind it, which is text."""

from __future__ import annotations

import re

import pyarrow as pa

__all__ = ["says_error", "status_text", "status_word", "status_words"]

_ERROR = re.compile(
    r"error|failed|failure|exception|timeout|timed.?out|denied|rejected|cancelled|(^|[^a-z])err([^a-z]|$)"
)
"""What the status, in lower case, of an event that went wrong has in it; "err" as a word, since "deferred" has it."""
_TOKEN = re.compile(r"timed out|[\w-]+", re.IGNORECASE)
_END = re.compile(r"[^\w\s.-]|\n|\s-+\s")
"""What a word, or two, end at, as in `error: HTTP 500`."""
_FINE = re.compile(r"ok|okay|success(ful)?|succeeded|passed|completed?|done|finished", re.IGNORECASE)
"""Statuses behind which nothing is an error, as in `ok: 0 errors`."""
_NAME = re.compile(r"[\w.-]+|[A-Za-z]+ [a-z]+")


def says_error(status: str) -> bool:
    """Whether a status says that its event went wrong.

    Examples:
      >>> says_error("failed"), says_error("deferred")
      (True, False)
    """
    return _ERROR.search(status.lower()) is not None


def status_word(status: str) -> str:
    """The word of a status: the one that names an error; else what comes first, two words at most.

    Examples:
      >>> [status_word(one) for one in ("error: HTTP 500", "tool error (id 7)", "ok: 0 errors", "not found", "500")]
      ['error', 'error', 'ok', 'not found', '500']
    """
    said = status.strip()
    head = _END.split(said, maxsplit=1)[0].strip()
    if _NAME.fullmatch(said) and " " not in said:
        return said
    for part in (head,) if _FINE.fullmatch(head) else (head, said):
        for token in _TOKEN.findall(part):
            if says_error(token):
                return str(token)
    if _NAME.fullmatch(head):
        return head
    return next(iter(_TOKEN.findall(said)), "")


def status_text(status: str) -> str:
    """What a status says beside its word.

    Examples:
      >>> [status_text(one) for one in ("error: HTTP 500", "tool error (id 7)", "failed (no row)", "error")]
      ['HTTP 500', 'tool error (id 7)', 'no row', '']
    """
    said, word = status.strip(), status_word(status)
    if not said.startswith(word):
        return said
    rest = said[len(word) :].lstrip(" \t\n:;,.-–—")
    return rest[1:-1] if rest.startswith("(") and rest.endswith(")") else rest


def status_words(column: pa.Array) -> pa.Array:
    """A column of statuses as words."""
    coded = column.dictionary_encode()  # few statuses, many events
    words = pa.array([None if one is None else status_word(one) for one in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)
