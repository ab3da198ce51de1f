"""Types and edges of rows: names or numbers of an enumeration, and pairs of row numbers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from credit.tables.column_values import ColumnError, as_arrow, factorise, numbers
from graphs.event_types import EdgeType
from graphs.text import excerpt

__all__ = ["codes_of_types", "row_edges"]


def codes_of_types(column: str, values: Any, kinds: type[enum.IntEnum], n: int | None) -> np.ndarray:
    """Names or numbers of an enumeration as its numbers: int32 [n].

    Raises:
      ColumnError: a name or number that the enumeration lacks.
    """
    array = as_arrow(column, values, n)
    known = {member.name.lower(): int(member) for member in kinds}
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_integer(kind):
        codes = numbers(column, array, len(array)).astype(np.int64)
        odd = ~np.isin(codes, list(known.values()))
        words = array
    else:
        ids, words = factorise(column, array)
        codes = np.array([known.get(str(word), -1) for word in words.to_pylist()], np.int64)[ids]
        odd = codes < 0
        words = words.take(pa.array(ids))
    if odd.any():
        row = int(np.argmax(odd))
        problem = f"{excerpt(words[row].as_py())} is no type; expected one of {', '.join(known)}"
        raise ColumnError(column, np.flatnonzero(odd), problem)
    return codes.astype(np.int32)


def row_edges(
    edges: Mapping[str, Any] | None, position: np.ndarray, trace_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges between rows as edges between positions: senders, receivers and types, int32 [K] each.

    Args:
      edges: columns `sender`, `receiver` and perhaps `type`; None for no edges.
      position: the position of each row, [N].
      trace_ids: the trace at each position, [N].

    Raises:
      ColumnError: another column, a row that does not exist, ends in two traces, or a receiver before its sender.
    """
    if edges is None:
        return (np.zeros(0, np.int32),) * 3
    odd = sorted(set(edges) - {"sender", "receiver", "type"})
    lacking = [name for name in ("sender", "receiver") if name not in edges]
    if odd or lacking:
        raise ColumnError("edges", [], f"has columns {', '.join(map(str, edges))}; expected sender, receiver and type")
    if len(edges["sender"]) == len(edges["receiver"]) == 0:
        return (np.zeros(0, np.int32),) * 3
    rows = [as_arrow(f"edges.{name}", edges[name], None) for name in ("sender", "receiver")]
    if len(rows[0]) != len(rows[1]):
        raise ColumnError("edges", [], f"has {len(rows[0])} senders and {len(rows[1])} receivers; expected one each")
    ends = []
    for name, column in zip(("sender", "receiver"), rows, strict=True):
        stated = numbers(f"edges.{name}", column, len(column))
        wrong = ~((stated >= 0) & (stated < len(position)) & (stated == np.floor(stated)))
        if wrong.any():
            problem = f"{stated[int(np.argmax(wrong))]:g} is no row; expected 0 to {len(position) - 1}"
            raise ColumnError(f"edges.{name}", np.flatnonzero(wrong), problem)
        ends.append(position[stated.astype(np.int64)])
    senders, receivers = ends
    apart = trace_ids[senders] != trace_ids[receivers]
    if apart.any():
        raise ColumnError("edges", np.flatnonzero(apart), "the two ends lie in different traces")
    backward = senders >= receivers
    if backward.any():
        raise ColumnError("edges", np.flatnonzero(backward), "the receiver does not come after the sender")
    kinds = np.full(len(senders), int(EdgeType.CAUSAL), np.int32)
    if edges.get("type") is not None:
        kinds = codes_of_types("edges.type", edges["type"], EdgeType, len(senders))
    return senders.astype(np.int32), receivers.astype(np.int32), kinds
