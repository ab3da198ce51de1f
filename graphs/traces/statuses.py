"""The status of an event: one word, which tells whether it went wrong, and what a log says behind it, which is text."""

from __future__ import annotations

import re

import pyarrow as pa

from graphs.traces.record import is_cut

__all__ = ["ERRORS", "FINE", "says_error", "says_fine", "status_text", "status_word", "status_words"]

ERRORS = (
    "error", "failed", "failure", "exception", "timeout", "timed out", "denied", "rejected", "refused", "cancelled",
    "canceled", "abort", "killed", "crash", "throttl", "rate limit", "too many requests", "quota", "exceeded",
    "exhausted", "overloaded", "unavailable",
)  # fmt: skip
"""What the status of an event that went wrong has in it, in capitals or not, a blank being any joint or none."""
FINE = ("ok", "okay", "success", "successful", "succeeded", "passed", "complete", "completed", "done", "finished", "0")
"""Statuses behind which nothing is an error, as in `ok: 0 errors`, such as HTTP's codes below 400."""

# "err" and "fail" count as words alone, since "deferred" and "failover" have them.
_WRONG = "(?:" + "|".join(word.replace(" ", ".?") for word in ERRORS) + "|(?<![a-z])(?:err|fail)(?![a-z]))"
_ERROR = re.compile(rf"{_WRONG}[\w-]*", re.IGNORECASE)
_BEFORE = re.compile(r"\A.*[^\w-]", re.DOTALL)
_NONE = re.compile(
    rf"(?<![^\W_])(?:no|not|non|never|without|zero|0)[\s_-]+(?:any[\s_-]+)?{_WRONG}[a-z]*", re.IGNORECASE
)
"""What says that nothing went wrong, as `no_error` and `without errors`."""
_CODE = re.compile(
    r"(?i:\bhttps?(?:/[\d.]+)?|\b(?:status|status_|status )?code|^status)[\s_:=-]*([1-5]\d\d)(?!\w)"
    r"|^([1-5]\d\d)(?=$|[:;,(]|\s*[^\w\s]|\s+[A-Z])"
)
"""A code of HTTP: behind a word for it, or alone; `500 rows` has none."""
_TOKEN = re.compile(r"[\w-]+")
_END = re.compile(r"[^\w\s.-]|\n|\s-+\s")
"""What a word, or two, end at, as in `error: HTTP 500`."""
_NAME = re.compile(r"[\w.-]+|[A-Za-z]+ [a-z]+")


def _code(status: str) -> str:
    found = _CODE.search(status.strip())
    return (found[1] or found[2]) if found else ""


def _error(text: str) -> re.Match[str] | None:
    """Where a text first names an error, what is negated being left out of it."""
    return _ERROR.search(text) and _ERROR.search(_NONE.sub(" ", text))


def says_error(status: str) -> bool:
    """Whether a status says that its event went wrong: by a word, or by a code of HTTP from 400 on.

    Examples:
      >>> says_error("failed"), says_error("deferred"), says_error("HTTP 429"), says_error("no errors")
      (True, False, True, False)
      >>> says_error("model_context_window_exceeded")  # a cut answer
      False
    """
    return not is_cut(status) and (_error(status) is not None or _code(status) >= "400")


def says_fine(status: str) -> bool:
    """Whether a status says that its event went well; one that says neither counts as no error.

    Examples:
      >>> says_fine("OK"), says_fine("200"), says_fine("no_error"), says_fine("not found")
      (True, True, True, False)
    """
    said = status.strip().lower()
    return said in FINE or _NONE.sub("", said, count=1) == "" != said or "" < _code(said) < "400"


def status_word(status: str) -> str:
    """The word of a status: the one that names an error; else what comes first, two words at most.

    Examples:
      >>> [status_word(one) for one in ("error: HTTP 500", "tool error (id 7)", "ok: 0 errors", "not found", "500")]
      ['error', 'error', 'ok', 'not found', '500']
    """
    said = status.strip()
    head = _END.split(said, maxsplit=1)[0].strip()
    if _NAME.fullmatch(said) and " " not in said:
        return _code(said) or said
    for part in (head,) if says_fine(head) else dict.fromkeys((head, said)):
        if found := _error(part):
            return _BEFORE.sub("", found.string[: found.start()]) + found[0]
    if code := _code(said):
        return code
    if none := _NONE.match(said):
        return none[0]
    if _NAME.fullmatch(head):
        return head
    tokens: list[str] = _TOKEN.findall(said)
    named = [token for token in tokens if not token.isdigit()]  # `450 rows` states no code
    return next(iter(named or tokens), "")


def status_text(status: str) -> str:
    """What a status says beside its word.

    Examples:
      >>> [status_text(one) for one in ("error: HTTP 500", "tool error (id 7)", "failed (no row)", "error")]
      ['HTTP 500', 'tool error (id 7)', 'no row', '']
    """
    said, word = status.strip(), status_word(status)
    if not said.startswith(word) or (word == _code(said) != said):
        return said
    rest = said[len(word) :].lstrip(" \t\n:;,.-–—")
    return rest[1:-1] if rest.startswith("(") and rest.endswith(")") else rest


def status_words(column: pa.Array) -> pa.Array:
    """A column of statuses as words."""
    coded = column.dictionary_encode()  # few statuses, many events
    words = pa.array([None if one is None else status_word(one) for one in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)
