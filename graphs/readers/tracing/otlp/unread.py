"""JSON objects that no exporter of OTLP writes: spans in the wrapping of a log, or under keys of another spelling.

The encoding demands that unknown keys are passed over. An object that has none of the known ones, at a place where one
of them holds all there is, may hold spans under another.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from graphs.text import printable

__all__ = ["unread_member"]

_SIGNALS = ("Spans", "Logs", "Metrics", "Profiles")  # the last two are not read, and are no fault
_RESOURCES = frozenset(f"resource{signal}" for signal in _SIGNALS)
_SCOPES = frozenset(f"{scope}{signal}" for scope in ("scope", "instrumentationLibrary") for signal in _SIGNALS)
_RECORDS = frozenset({"spans", "logRecords", "metrics", "profiles"})
_ABOUT = frozenset({"resource", "scope", "instrumentationLibrary"})  # objects that state whose the records are

_Members = dict[str, msgspec.Raw]
_OBJECT = msgspec.json.Decoder(_Members)
_OBJECTS = msgspec.json.Decoder(list[_Members] | None)


def unread_member(text: bytes) -> str | None:
    """The path of a member where a list of a request would be, "content" for no request; None for one, and for `{}`.

    Args:
      text: a JSON object, of which the members that are read have the right types.
    """
    # Keys that are read by nobody need not be UTF-8 for the decoder that took the text.
    request = _OBJECT.decode(text.decode(errors="replace"))
    if request.keys().isdisjoint(_RESOURCES | _SCOPES):
        return "content" if request else None
    groups = [(f"{key}[{i}].", group) for key in ("resourceSpans", "resourceLogs") for i, group in _of(request, key)]
    for path, group in [*groups, ("", request)]:
        if path and group.keys().isdisjoint(_SCOPES) and (other := _other(group)):
            return path + other
        for key in ("scopeSpans", "scopeLogs", "instrumentationLibrarySpans", "instrumentationLibraryLogs"):
            for i, scope in _of(group, key):
                if scope.keys().isdisjoint(_RECORDS) and (other := _other(scope)):
                    return f"{path}{key}[{i}].{other}"
    return None


def _of(members: _Members, key: str) -> Iterable[tuple[int, _Members]]:
    return enumerate(_OBJECTS.decode(members.get(key, b"null")) or ())


def _other(members: _Members) -> str | None:
    """The first member that holds something and states nothing about the records."""
    holds = (key for key, value in members.items() if bytes(value)[:1] in (b"[", b"{") and len(bytes(value)) > 2)
    return next((printable(key, 200) for key in holds if key not in _ABOUT), None)
