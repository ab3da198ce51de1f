"""Columns of few words, by what these say: a type of rows, or of traces the system, the kind of task or a verdict.

A type of rows differs within traces, and its words name model calls and others. A system or a kind stands once in each
trace, as several traces have it, under a name that is called so; or else its words are versions, each of which all
traces between two moments have. A verdict, beside an outcome, has one word of a pair such as pass and fail in a trace.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Collection, Iterable

from graphs.formats.common.trace_metadata import LONGEST_WORD
from graphs.formats.native.wire import EVENT_CODES
from graphs.formats.table.type_words import likely_pair, likely_type
from graphs.reading.tables.likely_columns import snake_case
from graphs.reading.tables.outcome_words import PAIRS
from graphs.reading.tables.rows import Row, number

__all__ = ["FewWords"]

MOST_WORDS = 20
FEWEST_TRACES = 5
"""Traces of a version that make it one where the column's name does not say so."""
_TYPES = {"message", "orchestrator_decision"}, {"tool_call", "tool_result"}
_NAMES = {
    "system": re.compile(
        r"(?:^|_)(?:system|release|version|revision|build|deploy(?:ment)?|commit|sha|variant|arm)(?:_?(?:id|name|tag))?$"
    ),
    "task_kind": re.compile(
        r"(?:^|_)(?:task|request|ticket|query|case|question|issue|problem)_?(?:kind|type|category|class)$"
        r"|^(?:kind|category|intent|topic)$"
    ),
}
"""Words in names of columns, in small letters, whose traces have one word each."""
_VERDICTS = [{*pair} for pair in PAIRS if not {"true", "yes", "positive"}.intersection(pair)]  # which say many things
_VERSION = re.compile(r"v\d+(?:[._-]\w+)*|\d+(?:\.\d+){2,}(?:[-+]\w+)?|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}", re.I)


class FewWords:
    """The columns of one table that may be a type, a system or a kind of task, row after row."""

    def __init__(self, names: Iterable[str], told: Collection[str]) -> None:
        """Look at columns.

        Args:
          names: of the table, those that nothing reads.
          told: our names of columns that the table has, or that the user leaves out.
        """
        self._left = [ours for ours in ("type", *_NAMES) if ours not in told]
        self._words: dict[str, dict[str, None]] = {name: {} for name in names}
        self._of_trace: dict[str, dict[str, str]] = {name: {} for name in self._words}
        self._varies: set[str] = set()
        self._judges = "reward" in told
        self._calls: dict[str, set[tuple[str, bool | None]]] = {name: set() for name in self._words}

    def add(self, trace: str, row: Row, tool: bool | None) -> None:
        """Take in a row of a trace; `tool` is whether it names one, None where the table does not tell."""
        for name, words in list(self._words.items()):
            cell = row.get(name)
            if cell == self._of_trace[name].get(trace, "") and (cell, tool) in self._calls[name]:
                continue  # for speed: most cells of such a column say what others of the trace do
            word = str(cell) if isinstance(cell, str | int | float) and not isinstance(cell, bool) else ""
            is_new = word not in words
            words.setdefault(word)
            if word and self._of_trace[name].setdefault(trace, word) != word and name not in self._varies:
                self._varies.add(name)
                is_new = True
            is_none = (cell and not word) or len(word) > LONGEST_WORD or len(words) > MOST_WORDS
            if is_none or (is_new and name in self._varies and not all(map(likely_type, words))):
                del self._words[name], self._of_trace[name]
                continue
            self._calls[name].add((word, tool))

    def likely(self) -> dict[str, str]:
        """Our name to the first column that seems to be it."""
        found: dict[str, str] = {}
        for name, words in self._words.items():
            if self._judges and name not in self._varies and {word.lower() for word in words if word} in _VERDICTS:
                found[f"rewards.{name}"] = name
            for ours in self._left if "" not in words else ():
                if self._is_type(name) if ours == "type" else self._is_of_traces(name, ours):
                    found.setdefault(ours, name)
        return found

    def types(self, name: str) -> list[str]:
        """What the words of a column of types seem to mean, as `--types` takes them, those of ours left out."""
        return [likely_pair(word) for word in self._words.get(name, ()) if word not in EVENT_CODES]

    def _is_type(self, name: str) -> bool:
        means = {word: likely_type(word) for word in self._words[name]}
        apart = {(means[word], tool) for word, tool in self._calls[name]}
        return (
            name in self._varies
            and all(not kinds.isdisjoint(means.values()) for kinds in _TYPES)
            and apart.isdisjoint({("tool_call", False), *((kind, True) for kind in _TYPES[0])})
        )

    def _is_of_traces(self, name: str, ours: str) -> bool:
        words = [*self._of_trace[name].values()]
        counts = collections.Counter(words)
        if name in self._varies or len(counts) < 2 or min(counts.values()) < 2:
            return False
        if _NAMES[ours].search(snake_case(name.rpartition(".")[2])):
            return ours == "system" or not any(number(word) is not None for word in counts)
        blocks = 1 + sum(one != other for one, other in zip(words[1:], words[:-1], strict=True))
        apart = blocks == len(counts) and min(counts.values()) >= FEWEST_TRACES
        return ours == "system" and apart and all(map(_VERSION.fullmatch, counts))
