"""Outcomes that logs state as words: the one rule of tables (`OutcomeWords`), for the records of each format.

What a word means is known once all words of its channel are: traces wait from the first word on. Where they have no
meaning, a trace is read without that outcome, and words and traces are named. A channel beside the outcome is read
whole or not at all: where the words of failures alone lack a meaning, the rest would be a success of 100 %.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from graphs.errors import Problem
from graphs.reading.tables.outcome_words import MEANING_OPTION, WORDS, OutcomeWords
from graphs.text import excerpt
from graphs.traces.part import Part
from graphs.traces.record import WORDED, TraceRecord, Word

__all__ = ["read_words"]

_NAMED = 3  # words of a category that are shown


def read_words(
    items: Iterable[TraceRecord | Part | Problem], declared: Mapping[str, float], *, by_file: bool
) -> Iterator[TraceRecord | Part | Problem]:
    """The items, with numbers in place of words, and behind them what was read as which number.

    Args:
      items: what one reader yields.
      declared: what words mean, by the word in small letters.
      by_file: whether each file has its own kind of outcome, as tables do.
    """
    waiting: list[TraceRecord | Part | Problem] = []
    kinds: dict[tuple[str, str], OutcomeWords] = {}
    numbers: set[tuple[str, str]] = set()
    words: dict[tuple[str, str], set[str]] = collections.defaultdict(set)  # of traces
    for item in items:
        if isinstance(item, TraceRecord):
            file = item.file if by_file else ""
            numbers.update((channel, file) for channel in item.rewards)
            for channel, word in _words(item):
                kind = kinds.setdefault((channel, file), OutcomeWords("trace", declared))
                kind.as_number(item.trace_id, word.place[:2], word.text)
                words[channel, file] |= {word.text.strip().lower()} if word.position < 0 else set()
        if waiting or (isinstance(item, TraceRecord) and (item.words or item.event_words)):
            waiting.append(item)
        else:
            yield item
    for key, kind in kinds.items():
        kind.has_numbers |= key in numbers
    kept = {key: kind.kept for key, kind in kinds.items()}
    told = {key: list(kind.problems(_field(waiting, key, by_file))) for key, kind in kinds.items()}
    mixed = {key for key, found in told.items() if any(problem.is_failure for problem in found)}
    unknown: dict[tuple[str, str], list[tuple[TraceRecord, Word]]] = collections.defaultdict(list)
    for item in (item for item in waiting if isinstance(item, TraceRecord)):
        for channel, word in _words(item):
            key = channel, item.file if by_file else ""
            if isinstance(kinds[key].meaning(word.text), str):
                unknown[key].append((item, word))
    named = {key for key in unknown if not by_file and not kinds[key].is_told}  # wholly without a meaning
    others = numbers | {key for key in kinds.keys() - named if words[key]}
    outcomes = {
        (channel, file)
        for channel, file in unknown.keys() - named
        if channel == "team" or {of for of, where in others if where == file} == {channel}
    }
    categories = unknown.keys() - outcomes  # no channels
    for item in waiting:
        if isinstance(item, TraceRecord):
            stated = [channel for channel in item.words if len(words[channel, item.file if by_file else ""]) == 2]
            for channel, word in _words(item):
                key = channel, item.file if by_file else ""
                found = kinds[key].meaning(word.text)
                if key in categories:
                    if word.position < 0:
                        del item.words[channel]
                elif isinstance(found, float) and (key not in mixed or kinds[key].is_declared(word.text)):
                    _set(item, channel, word, found)
                    if word.position < 0 and (text := kept[key].get(item.trace_id)):
                        item.metrics[WORDED.format(channel, text)] = 1.0
            if item.sole:  # of two words one may mean success, as `accepted` and `rejected`: the user says so
                item.sole = item.sole._replace(channels=tuple(sorted({*item.channels, *stated})))
    for key, rows in unknown.items():
        if key in categories:
            told[key] = [problem for problem in told[key] if problem.is_failure]
        told[key] += _unknown(key[0], rows, is_outcome=key in outcomes, is_half=kinds[key].is_told)
    yield from waiting
    for found_problems in told.values():
        yield from found_problems


def _words(record: TraceRecord) -> list[tuple[str, Word]]:
    return [*record.words.items(), *record.event_words]


def _set(record: TraceRecord, channel: str, word: Word, amount: float) -> None:
    if word.position >= 0:
        record.add_reward(word.position, amount)
        return
    record.rewards[channel] = amount


def _field(items: list[TraceRecord | Part | Problem], key: tuple[str, str], by_file: bool) -> str:
    """What the format calls a word of a channel."""
    records = (item for item in items if isinstance(item, TraceRecord) and (not by_file or item.file == key[1]))
    return next((word.field for record in records for channel, word in _words(record) if channel == key[0]), "reward")


def _unknown(
    channel: str, rows: list[tuple[TraceRecord, Word]], *, is_outcome: bool, is_half: bool
) -> Iterator[Problem]:
    """Words without a meaning: faults of the outcome, else a category that is named once."""
    expected = f"a number, or {WORDS}; {MEANING_OPTION}"
    if is_outcome:
        for record, word in rows:
            place = "bad-type", *word.place[:2], word.field, excerpt(word.text), f"{expected}: the trace has no outcome"
            yield Problem(*place, record.trace_id, about="reward")
        return
    record, word = rows[0]
    texts = [*dict.fromkeys(word.text for _, word in rows)]
    shown = excerpt(f"{', '.join(texts[:_NAMED] + ['…'] * (len(texts) > _NAMED))}, of the score {channel}")
    expected += ": until then the score's other words are not read either" * is_half
    problem = Problem("category-score", *word.place[:2], word.field, shown, expected, record.trace_id, count=len(rows))
    yield dataclasses.replace(problem, about=f"rewards.{channel}" * is_half)
