"""The one rule for damaged logs: a trace that may lack a record is not read, whatever the format.

A record that cannot be read is named with its file and line. Which traces it refuses depends on what a record of the
format holds (`graphs.formats.Format.holds`):

- "traces": the record was a whole trace, and no other one is refused.
- Otherwise, if the record states exactly one whole id of a trace, and it is one of that file, or stands at a key by
  which the format states traces (`graphs.formats.Format.states`), that trace is refused. A row of a table states the
  trace in its column of traces. Where records of the file hold several traces, what was lost of the record may be of
  one that it does not show: then it refuses the traces that it states, if no trace of the file is in two records.
- Otherwise every trace of the file is refused, except those that the format marks as complete. So is every trace of
  other files that share a trace with this file, and every trace whose id the record states. Files share a trace if both
  hold runs of it (`TraceRecord.beside`). Of a file of which nothing was read, the traces are those that stand at such
  keys; without any, the traces of all files are refused.
- What is lost of a file of scores alone is a score of one trace. It is named, and refuses the traces that it states.
- "session": if a trace states a sub-agent whose session was not found (`MISSING_PART`), any file or record that cannot
  be read may be that session, and refuses the trace.
- "session": the writer of a last line without its newline was killed, or still writes. The line is named, and the trace
  stays with sums that are lower bounds, unless the file is a sub-agent's that has returned.

Readers do nothing about damage. The functions of this folder note what they cannot read in `Source.lost`. A problem
with a line and without a trace, which a reader yields, counts as a record that is lost.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from graphs.errors import Problem
from graphs.event_types import EventType
from graphs.reading.documents import documents
from graphs.reading.json_problems import JSON_ERRORS, is_one_record
from graphs.reading.source import Lost, Source, without_compression
from graphs.reading.stated_ids import TraceKeys, folded, stated_ids
from graphs.text import excerpt
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["MISSING_PART", "Holds", "undamaged", "whole_ids"]

MISSING_PART = "missing-subagent"
"""The kind of the note that a session of a sub-agent was not found.

A reader yields it before the trace where any file may hold that session, and behind it where only one of its name may.
"""

_MAY_HOLD = (".json", ".jsonl", ".ndjson")
"""Names of files that may hold the session of a sub-agent."""

Holds = Literal["traces", "session", "parts"]
"""What a record of a format is: a whole trace, a part of its file's only trace, or a part of any trace."""

Item = TraceRecord | Part | Problem

# A whole JSON string, or a whole number: the forms in which ids stand. What has no closing quote is no whole id.
_TOKEN = re.compile(rb'"(?=((?:[^"\\]|\\.){1,200})")|(?<![\w.+-])(\d{1,19})(?![\w.])', re.DOTALL)


def undamaged(
    items: Iterable[Item],
    sources: Sequence[Source],
    holds: Holds,
    unread: Sequence[Problem] = (),
    states: TraceKeys = TraceKeys(),  # noqa: B008  # it is immutable
) -> Iterator[Item]:
    """What a reader yields, without the traces that may lack a record, and with a problem for each of them.

    Traces pass as they come until a record is lost. From then on they wait for the end, since the ids of all traces
    decide which of them the record refuses. A session waits only if a record of its own files is lost, or if a problem
    without a trace has come.

    Args:
      items: what the format's reader yields.
      sources: the files that it reads; their `lost` is complete when a record of them comes.
      holds: what a record of the format is.
      unread: problems of other files, whose format is not known.
      states: where a record of "parts" states its trace.
    """
    if holds == "traces":
        yield from items
        for source in sources:
            yield from (lost.problem for lost in source.lost.values())
        return
    by_name = {source.name: source for source in sources}
    refused: dict[str, Problem] = {}
    without_trace: list[Problem] = []
    lacking: dict[str, Problem] = {}  # by id of a trace, the note that a part of it was not found
    suspects: list[Problem] | None = None  # what may hold such a part
    waiting: list[TraceRecord | Part] = []
    behind: list[Problem] = []  # what the reader names, behind the damage that it may follow from
    read: set[str] = set()  # ids of waiting traces: a fault that a reader names behind its trace does not refuse it
    passed: set[str] = set()  # ids of traces that have come
    noted = [record for source in sources for record in source.lost.values()]
    for source in sources:
        source.lost.noted = noted
    for item in items:
        note = lacking.pop(item.trace_id, None) if isinstance(item, TraceRecord) else None
        if isinstance(item, TraceRecord):
            passed.add(item.trace_id)
        if note is not None:
            if suspects is None:
                suspects = _that_may_hold_a_part([*without_trace, *unread], sources)
            if suspects:
                refused[note.trace] = _without_damage(Lost(suspects[0]), "lost-row", _MAY_LACK, note.trace)
                yield refused[note.trace]
                continue
            yield note
        if isinstance(item, Problem) and item.kind == MISSING_PART and item.trace not in passed:
            lacking[item.trace] = item
        elif isinstance(item, Problem):
            if noted:
                behind.append(item)
            else:
                yield item
            if item.is_failure and item.trace:
                if item.trace not in read:
                    refused.setdefault(item.trace, item)
            elif item.is_failure and item.line:
                without_trace.append(item)
        elif without_trace or (any(_lost_in(item, by_name)) if holds == "session" else noted):
            waiting.append(item)
            read.update(trace for trace, _ in _files_of(item))
        else:
            yield from _without(item, refused.keys())
    lost: list[Lost] = []
    at_lines: dict[str, dict[int, Problem]] = {}
    for problem in without_trace:
        at_lines.setdefault(problem.file, {})[problem.line] = problem
    ended = _ended_files(waiting)
    for source in _with_beside(sources):
        for record in source.lost.values():
            if holds == "session" and record.is_unfinished and source.name not in ended:
                begin = excerpt(record.text[:_BEGIN].decode("utf-8", "replace"))
                yield dataclasses.replace(record.problem, kind="unfinished-line", value=begin, expected=_UNFINISHED)
            else:
                yield record.problem
                lost.append(record)
        lost += _at_lines(source, at_lines.get(source.name, {}))
    found, of_unknown = _refused_by(lost, waiting, refused, states, by_name, is_session=holds == "session")
    yield from (problem for trace, problem in found.items() if refused.get(trace) != problem)
    yield from of_unknown
    yield from behind
    for item in waiting:
        cut = holds == "session" and any(record.is_unfinished for record in _lost_in(item, by_name))
        if cut and isinstance(item, TraceRecord):
            item.lost_part()
        yield from _without(item, refused.keys() | found.keys())


def _that_may_hold_a_part(problems: Sequence[Problem], sources: Sequence[Source]) -> list[Problem]:
    """Why files and records that may be the session of a sub-agent cannot be read.

    A reader that yields `MISSING_PART` has read all sources by then.
    """
    lost = (place for source in _with_beside(sources) for place in source.lost.items())
    # A log that is still being written states its session, unless its first line is the unfinished one.
    of_records = (record.problem for offset, record in lost if not (record.is_unfinished and offset))
    of_files = (problem for problem in problems if problem.is_failure)
    return [p for p in (*of_records, *of_files) if without_compression(p.file).lower().endswith(_MAY_HOLD)]


def _lost_in(item: TraceRecord | Part, by_name: Mapping[str, Source]) -> Iterator[Lost]:
    """What is lost of a session's files, or of those found beside them."""
    files = (file for _, of_trace in _files_of(item) for file in of_trace)
    for source in _with_beside([by_name[file] for file in files if file in by_name]):
        yield from source.lost.values()


def _with_beside(sources: Sequence[Source]) -> Iterator[Source]:
    for source in sources:
        yield source
        yield from source.beside


def _ended_files(items: Iterable[TraceRecord | Part]) -> set[str]:
    """Files of sub-agents that have returned: what wrote them has stopped, and a cut line is damage.

    A file without an event may be that of any sub-agent, so it has ended once all have returned.
    """
    ended: set[str] = set()
    for item in items:
        if not isinstance(item, TraceRecord):
            continue
        of_type = zip(item.agents, item.types, strict=True)
        running = {name for name, agent in item.instances.items() if agent.parent}
        running -= {agent for agent, event_type in of_type if event_type == EventType.RETURN}
        agents: dict[str, set[str]] = {file: set() for file in (*item.files, *item.sources) if file != item.file}
        for file, agent in zip(item.files, item.agents, strict=False):  # no files where all events are of one
            agents.get(file, set()).add(agent)
        ended.update(file for file, names in agents.items() if not (names or running) & running)
    return ended


_MAY_LACK = "the trace may lack a record"
_UNFINISHED = "a line that ends: its writer was killed, or still writes, and this line is not read"
_BEGIN = 200  # bytes, of which an excerpt is shown


def _at_lines(source: Source, problems: dict[int, Problem]) -> Iterator[Lost]:
    """A lost record for each problem without a trace, with the text of its line.

    Where that text is no whole record, it states no trace.
    """
    if not problems:
        return
    texts = {line: text for line, _, text in source.unchecked_lines() if line in problems}
    source.release()
    for line, problem in problems.items():
        yield Lost(problem, texts.get(line, b""))


def _refused_by(
    lost: Iterable[Lost],
    items: Iterable[TraceRecord | Part],
    refused: Mapping[str, Problem],
    states: TraceKeys,
    by_name: Mapping[str, Source],
    *,
    is_session: bool,
) -> tuple[dict[str, Problem], list[Problem]]:
    """The traces that lost records refuse, each with its problem; and problems of lost scores of unknown traces.

    Args:
      lost: the records.
      items: traces that were read.
      refused: by trace, why others were not.
      states: where a record states its trace.
      by_name: the files.
      is_session: whether a file is one trace.
    """
    files: dict[str, set[str]] = {trace: {problem.file} for trace, problem in refused.items()}
    runs: dict[str, set[str]] = {}  # by trace, its files without those beside its runs
    scores: dict[str, bool] = {}  # those beside, each with whether all that stands there is scores
    complete: set[str] = set()
    logged_as: dict[str, str] = {}
    for item in items:
        for trace, of_trace in _files_of(item):
            files.setdefault(trace, set()).update(of_trace)
            beside = item.beside if isinstance(item, TraceRecord) else {}
            runs.setdefault(trace, set()).update(of_trace - beside.keys())
            for file, is_scores in beside.items():
                scores[file] = is_scores and scores.get(file, True)
        if isinstance(item, TraceRecord) and item.complete:
            complete.add(item.trace_id)
        if isinstance(item, TraceRecord) and item.logged_as:
            logged_as[item.trace_id] = item.logged_as
    scores = {file: scores[file] for file in scores.keys() - set().union(*runs.values())}
    runs = {trace: {problem.file} for trace, problem in refused.items()} | runs
    together = _joined_files([*filter(None, runs.values()), *({file} for file in scores)])
    by_fold: dict[str, set[str]] = {}
    for trace in files:
        by_fold.setdefault(folded(logged_as.get(trace, trace)), set()).add(trace)
    divides = functools.cache(lambda file: not states.keys or _divides(by_name[file], states))
    found: dict[str, Problem] = {}
    of_unknown: list[Problem] = []
    for record in lost:
        file = record.problem.file
        ids = set(stated_ids(record.text, states))
        own = {trace for one in ids for trace in by_fold.get(folded(one), {one})}
        stated = {record.trace} if record.trace else own | (set(whole_ids(record.text)) & files.keys())
        is_certain = bool(record.trace) or (
            file in together
            and is_one_record(record.text)
            and (bool(ids) or len(stated) == 1)
            and all(file in files[trace] for trace in stated - own)
            and divides(file)
        )
        why = _MAY_LACK
        if not is_certain and scores.get(file):
            score = "a score of one trace is lost, and nothing tells of which"
            of_unknown.append(_without_damage(record, "lost-score", score))
        elif not is_certain:
            # Of a file of which nothing was read, the traces are those that it states. Where it states none, it may
            # hold parts of any: all are refused. A session's file held its own trace only.
            of_file = {file} if file in together else {other for trace in own for other in runs.get(trace, ())}
            reach = [together[other] for other in of_file]
            is_any = not (is_session or own or file in together)
            # Other files' traces that the record states may lack it, too.
            stated = (set() if is_session else stated) | {
                trace
                for trace in files.keys() - complete
                if is_any or any(together[other] is part for part in reach for other in files[trace])
            }
            of_others = not all(file in files[trace] for trace in stated & files.keys())
            where = "" if is_any else " of files that share a trace with this one" if of_others else " of this file"
            why = f"the record may be of any trace{where}"
        for trace in sorted(stated & files.keys() - found.keys()):
            found[trace] = _without_damage(record, "lost-row", why, trace)
    return found, of_unknown


def _divides(source: Source, states: TraceKeys) -> bool:
    """Whether what a record of a file lacks is of no trace that it does not state, as far as the other records tell.

    So it is where each record states one trace, and where no trace is stated in two.
    """
    key = re.compile(rb'"(?:' + b"|".join(re.escape(name.encode()) for name in states.keys) + rb')"\s*:\s*"([^"]*)"')
    met: set[bytes] = set()
    several = shared = False
    lost = [record.text for record in source.lost.values()]
    for text in itertools.chain(lost, (document.raw for document in documents(source))):
        if len(ids := set(key.findall(text))) > 1:  # the key may stand in content, too
            ids = {name.encode() for name in stated_ids(text, states)}
        several, shared = several or len(ids) > 1, shared or not met.isdisjoint(ids)
        met |= ids
        if several and shared:
            break
    source.release()
    return not (several and shared)


def _without_damage(record: Lost, kind: str, why: str, trace: str = "") -> Problem:
    problem = record.problem
    is_line = problem.line and b"\n" not in record.text.strip()
    advice = f"mend or delete line {problem.line}" if is_line else "write the file anew, or take it away,"
    expected = f"a log without damage: {why}; {advice} and read again"
    return dataclasses.replace(problem, kind=kind, expected=expected, trace=trace)


def whole_ids(text: bytes) -> Iterator[str]:
    """The texts and whole numbers of a piece of JSON, each of which may be an id."""
    for match in _TOKEN.finditer(text):
        if match[1] is None or b"\\" not in match[1]:
            yield (match[1] or match[2]).decode("utf-8", "replace")
        else:
            try:
                yield msgspec.json.decode(b'"' + match[1] + b'"', type=str)
            except JSON_ERRORS:
                continue


def _files_of(item: TraceRecord | Part) -> Iterator[tuple[str, set[str]]]:
    if isinstance(item, TraceRecord):
        yield item.trace_id, {item.file, *item.files, *item.sources}
        return
    start = 0
    for heading, end in zip(item.headings, item.event_ends.tolist(), strict=True):
        files = () if item.places is None else item.places[0].slice(start, end - start).unique().to_pylist()
        yield heading.trace_id, {heading.file, *files}
        start = end


def _joined_files(groups: Iterable[set[str]]) -> dict[str, set[str]]:
    """For each file the set of those that it is joined with by traces; files joined share one set object."""
    of: dict[str, set[str]] = {}
    for group in groups:
        largest = max((of.get(file, {file}) for file in group), key=len)
        for file in group:
            part = of.get(file, {file})
            if part is not largest:
                largest |= part
                of.update(dict.fromkeys(part, largest))
        of.update(dict.fromkeys(group, largest))
    return of


def _without(item: TraceRecord | Part, refused: Container[str]) -> Iterator[TraceRecord | Part]:
    """The item, or what is left of it, without refused traces; of a refused record its outcome."""
    if isinstance(item, TraceRecord):
        if item.trace_id in refused:
            item.sole = None  # what was lost may be of another channel
            item = item.without_events()
        yield item
        return
    yield from item.without({row for row, heading in enumerate(item.headings) if heading.trace_id in refused})
