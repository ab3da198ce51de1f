"""What the attributes of spans mean, a column each, for a block of spans."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from graphs.formats.otlp.dialects import Kind, Meaning, emitted_ids
from graphs.formats.otlp.wire import Attributes
from graphs.formats.span_columns.plain_spans import Codes, integers
from graphs.formats.span_dumps.attribute_shapes import Shape, plan
from graphs.formats.span_dumps.dump_types import Batch, DumpedSpan

__all__ = ["AttributeColumns"]

_NOTHING: Attributes = {}
_UNKNOWN = Meaning(Kind.OTHER, known=False)
_MOST = 2**31
_REFUSED = -2
_NESTED = frozenset({dict, list})
_PARTICULAR = ("call_ids", "emitted", "responses")


class AttributeColumns:
    """Makes the columns that attributes settle; remembers the shapes of attributes.

    Args:
      meanings: the codes of meanings.
    """

    def __init__(self, meanings: Codes) -> None:
        self._meanings = meanings
        self._shapes: dict[tuple[str, ...], Shape | None] = {}

    def of(self, batch: Batch, odd: set[int]) -> tuple[dict[str, np.ndarray], dict[str, dict[int, Any]]]:
        """The columns of meanings and of tokens, and what few spans have, by place in the block; adds to the `odd`."""
        given = [span.attributes or _NOTHING for span in batch.spans]
        if not batch.flat:
            odd.update(i for i, one in enumerate(given) if not _NESTED.isdisjoint(map(type, one.values())))
        codes = np.full(len(given), self._meanings[_UNKNOWN])
        counts = {"tokens": np.full(len(given), -1, np.int64), "input_tokens": np.full(len(given), -1, np.int64)}
        own: dict[str, dict[int, Any]] = {name: {} for name in _PARTICULAR}
        members = collections.defaultdict[tuple[str, ...], list[int]](list)
        for i, one in enumerate(given):
            members[tuple(one)].append(i)
        for keys, group in members.items():
            if keys not in self._shapes:
                self._shapes[keys] = plan(keys)
            shape = self._shapes[keys]
            if shape is None:
                odd.update(group)
                continue
            rows = integers(group)
            codes[rows] = integers(self._look_up(shape, batch.spans, given, group, odd))
            for name, source in (("tokens", shape.tokens), ("input_tokens", shape.input_tokens)):
                if source is not None:
                    counts[name][rows] = _counts([given[i][source] for i in group])
            if shape.messages is not None:
                own["emitted"] |= zip(group, map(_asked, _texts(given, shape.messages, group, odd)), strict=True)
            if shape.emitted:
                listed = (_texts(given, key, group, odd) for key in shape.emitted)
                own["emitted"] |= zip(group, zip(*listed, strict=True), strict=True)
            for name, key in (("responses", shape.response), ("call_ids", shape.call_id)):
                if key is not None:
                    own[name] |= zip(group, _texts(given, key, group, odd), strict=True)
        others = np.array([what.kind is not Kind.CALL for what in self._meanings.listed], bool)[codes]
        for amounts in counts.values():
            amounts[others] = -1  # of others nothing is asked
            odd.update((amounts == _REFUSED).nonzero()[0].tolist())
        return counts | {"meaning": codes}, own

    def _look_up(
        self, shape: Shape, spans: list[DumpedSpan], given: list[Attributes], group: list[int], odd: set[int]
    ) -> list[int]:
        """The codes of the meanings of spans of one shape."""
        pick, known = shape.pick, shape.known
        try:
            columns = [known.get((spans[i].name, pick(given[i]))) for i in group]
        except TypeError:  # a list, which has no hash
            columns = [None] * len(group)
        if None not in columns:
            return columns  # type: ignore[return-value]
        codes = []
        for i in group:
            code = shape.code(spans[i].name, given[i], self._meanings)
            if code is None:
                odd.add(i)
            codes.append(code or 0)
        return codes


def _counts(values: list[Any]) -> np.ndarray:
    """Counts of tokens; `_REFUSED` for what is none."""
    if set(map(type, values)) == {int}:
        try:
            amounts = integers(values)
        except OverflowError:
            pass
        else:
            return np.where((amounts < 0) | (amounts >= _MOST), _REFUSED, amounts)
    return np.array([value if type(value) is int and 0 <= value < _MOST else _REFUSED for value in values])


def _texts(given: list[Attributes], key: str, group: list[int], odd: set[int]) -> list[str]:
    """The texts of an attribute; of what is none, the span is odd."""
    values = [given[i][key] for i in group]
    if set(map(type, values)) == {str}:
        return values
    odd.update(i for i, value in zip(group, values, strict=True) if type(value) is not str)
    return [value if type(value) is str else "" for value in values]


def _asked(messages: str) -> tuple[str, ...]:
    """Ids of the tool calls in messages; a text without the word, which only an escape could hide, has none."""
    return emitted_ids(messages) if "tool_call" in messages or "\\u" in messages else ()
