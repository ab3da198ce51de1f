"""Objects in a list inside a document, with their places in the file."""

from __future__ import annotations

import msgspec

from graphs.reading.decode import decode
from graphs.reading.documents import Document, Place, Places

__all__ = ["nested_documents"]

_LIST = msgspec.json.Decoder(list[msgspec.Raw] | None)


def nested_documents(document: Document, elements: msgspec.Raw, field: str, trace: str = "") -> list[Document]:
    """The elements of a list inside a document; none where the list is absent or null.

    Args:
      document: what holds the list.
      elements: the list, as it stands there.
      field: its key, for errors.
      trace: the trace's id, where it is known.

    Raises:
      TraceError: kinds of `graphs.reading.decode.decode`.
    """
    raw, place = document
    if not bytes(elements):
        return []
    decoded = decode(_LIST, elements, file=place.file, line=place.line, at=field, trace=trace) or []
    start = raw.find(bytes(elements))  # where equal text stands earlier, so does an equal list
    places = Places(raw, start, place.line + raw.count(b"\n", 0, start))
    located = ((element, *places.of(element)) for element in decoded)
    return [Document(bytes(e), Place(place.file, line, place.offset + offset)) for e, line, offset in located]
