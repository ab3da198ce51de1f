"""Rows of a trainer: CSV, JSON lines or Parquet in which a row is an event. `docs/formats/table.md` is the map.

A trainer's dump has a row for each model call, with ids of the trace, the task and the agent. Columns are recognised by
`columns`, else by the names in `KNOWN`.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from graphs.errors import CreditError, Problem, TraceError
from graphs.event_graph import ACTION_TYPES, EdgeType, EventType
from graphs.formats import native
from graphs.formats.native.agents import find_agents, owners
from graphs.formats.native.wire import EVENT_CODES
from graphs.formats.table.by_content import ColumnsByContent
from graphs.formats.table.cells import (
    EVIDENCE,
    LISTS,
    LONGEST_ID,
    MOMENT,
    OF_TRACE,
    REWARD,
    TEXT,
    TRUTH,
    failed,
)
from graphs.formats.table.columns import FAMILIES, KNOWN, TEXTS, find_columns, is_named, text_columns
from graphs.formats.table.few_words import FewWords
from graphs.formats.table.hints import proposal
from graphs.formats.table.ids_of_turns import join_to_turns, repeated_id
from graphs.formats.table.made_calls import note_of_made_calls
from graphs.formats.table.near_names import NearNames
from graphs.formats.table.order_notes import notes_of_order
from graphs.formats.table.rows_again import note_of_copies
from graphs.formats.table.stated_order import in_stated_order
from graphs.formats.table.time_units import TimeUnits
from graphs.formats.table.type_words import TYPES_OPTION, likely_pair
from graphs.reading.files import WrittenIds
from graphs.reading.keys import opening
from graphs.reading.source import Source, unreadable
from graphs.reading.tables.csv_rows import is_header, repeated_header, unfinished_line
from graphs.reading.tables.ids import WRITTEN_EXACTLY, id_text, is_inexact
from graphs.reading.tables.join_rows import unread_names
from graphs.reading.tables.likely_columns import likely_column
from graphs.reading.tables.number_texts import NumberTexts
from graphs.reading.tables.rows import PARQUET, Row, flat_columns, is_csv, log_rows, number
from graphs.reading.text_keys import ASKED, SAID, is_text_key, text_key
from graphs.text import counted, excerpt, printable
from graphs.traces.missing_names import is_missing_name
from graphs.traces.record import Agent, TraceRecord, Word
from graphs.traces.schema import EVENT_EVIDENCE, TEXT_COLUMNS, TRACE_EVIDENCE
from graphs.traces.tokens import TOKEN_COLUMNS

__all__ = ["read", "sniff"]

_REWARDS = frozenset(
    {"rewards.team", *(name for field in ("reward", "event_reward", "agent_reward") for name in KNOWN[field])}
)
_LIKELY = ("group", "agent", "role", "model", "event_reward", "reward")
"""Columns that are named where a column that nothing reads may be theirs."""
_RESULTS = ("credit", "baseline", "scale", "advantage", "valid", "reason")
"""Columns that this library writes beside a log's. That nothing reads them back is nobody's loss."""
NO_ID = "-1"  # as in arrays: the event has no id
_MOST_WORDS = 20  # of unknown types that are named
_NO_TRACE = "null"  # of rows whose cell of the trace is empty; no trace that is read is called so
_HEAD = 1 << 16  # bytes that tell a native log
_TYPES = f"one of {', '.join(EVENT_CODES)}; {TYPES_OPTION}".replace("{", "{{").replace("}", "}}")
_TEXTS = tuple(name for name in TEXT_COLUMNS if name != "model")
_NAMES = frozenset({"trace", "group", "agent", "agent_name", "role", "turn", "type", "id", *OF_TRACE, *TEXT_COLUMNS})
SINGLE_AGENT = "agent"
"""The agent of a table without a column of agents."""


_EVIDENCE = {**EVENT_EVIDENCE, **TRACE_EVIDENCE}
_OF_A_RUN = frozenset({"events", "spans", "steps", "trajectory", "turns"})
"""Keys whose list of objects is a whole run. A row that has one is no action, and would be read as a run of one."""


def sniff(head: bytes) -> bool:
    """Whether the content is a Parquet file, or a table with columns for the trace and for a reward."""
    if head.startswith(PARQUET):
        return True
    head = head.lstrip()
    if head.startswith(b"{"):
        if not any(f'"{name}"'.encode() in head for name in KNOWN["trace"]):
            return False  # for speed: most files are not ours
        shown = opening(head)
        if not _OF_A_RUN.isdisjoint(shown.first):
            return False
        names = shown.scalars
        if any(name in names for name in KNOWN["trace"]) and _REWARDS.isdisjoint(names):
            names = _with_rows(head, frozenset(shown.keys), names)
    else:
        line = head.partition(b"\n")[0].strip()
        names = frozenset(cell.strip().strip('"') for cell in line.decode("utf-8", "replace").split(","))
    return any(name in names for name in KNOWN["trace"]) and not _REWARDS.isdisjoint(names)


def _with_rows(head: bytes, keys: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    """The first row's keys, and those of the first row below that has a reward: a row of the same table, with its keys.

    All rows until then have the trace.
    """
    of_trace = names.intersection(KNOWN["trace"])
    for line in head.split(b"\n")[1:]:
        row = opening.__wrapped__(line)  # a cache would forget the head
        if not of_trace <= row.scalars or not _OF_A_RUN.isdisjoint(row.first):
            break
        if not _REWARDS.isdisjoint(row.scalars):
            return names | row.scalars if keys.issubset(row.keys) else names
    return names


def read(
    sources: Sequence[Source], columns: Mapping[str, str] | None = None, types: Mapping[str, int] | None = None
) -> Iterator[TraceRecord | Problem]:
    """The traces of all tables, in order of their first rows.

    A row that cannot be used refuses its trace, if the row names one. A table that breaks off gives no trace.

    Args:
      sources: tables; a trace lies in one of them.
      columns: our name (a key of `KNOWN`, or one of `FAMILIES`) to the table's.
      types: what words of types mean, as of `check_types`.

    Raises:
      CreditError: `columns` names a column that this library does not know.
    """
    for name in columns or {}:
        if name not in KNOWN and not is_named(name) and not is_text_key(name):
            named = ", ".join(f"{family}.NAME" for family in FAMILIES)
            expected = f"one of {', '.join(KNOWN)}, {named}, or of a text: arguments, {', '.join(SAID)}"
            raise CreditError(f"columns has the key {name!r}; expected {expected}")
    return _read(sources, columns or {}, types or {})


def _read(
    sources: Sequence[Source], columns: Mapping[str, str], types: Mapping[str, int]
) -> Iterator[TraceRecord | Problem]:
    groups = WrittenIds()
    unread: dict[str, str] = {}  # columns that nothing reads, and the first table that has each
    likely: dict[str, str] = {}  # of these, what seems to be a column of ours that its table lacks
    differs: dict[str, str] = {}  # of these, steps of training that differ within traces, in words
    pairs: list[str] = []  # what words of a column of types seem to mean
    without_arguments = False  # calls of a table that has no column of them
    for source in sources:
        table = _Table(source.name, types)
        try:
            _refuse_traces(source, columns)
            is_cells = is_csv(source)
            if not is_cells:  # where every id is a text, also that of a number
                table.groups = groups
            column_of, names = find_columns(source, columns)
            table.units = TimeUnits(columns, column_of)
            lists = {column_of[name] for name in TOKEN_COLUMNS if name in column_of}
            version = column_of.get("policy_version", "")
            content = ColumnsByContent(names, column_of.values(), {*column_of, *columns}, version)
            content.names = flat_columns(source, content.names)
            told = {*column_of, *columns}
            without = {*column_of.values(), *text_columns(columns).values(), *_RESULTS}
            unnamed = flat_columns(source, unread_names(names, without))
            near = NearNames(unnamed, told, column_of.get("time", ""))
            few = FewWords([] if source.data.startswith(PARQUET) else unnamed, told)
            wanted = {*column_of.values(), *content.names, *near.names}
            texts_of = NumberTexts(() if is_cells else _numbers_of(column_of))
            for line, row in log_rows(source, wanted, lists, [column_of["trace"]], column_of.get("reward", "")):
                if is_cells and is_header(row):
                    yield repeated_header(source.name, line)
                else:
                    problem = table.add(line, row, column_of)
                    if problem is not None:
                        yield _with_part(problem, content, row)
                        continue
                    near.add(row)
                    tool = bool(row.get(column_of["tool"])) if "tool" in column_of else None
                    few.add(id_text(row[column_of["trace"]]), row, tool)
                    texts_of.add(line, row)
                    if content.names and (trace := table.traces[id_text(row[column_of["trace"]])]) is not None:
                        turn = trace.turns[-1] if trace.turns else None
                        content.add(trace.trace_id, row, line, trace.agents[-1], turn)
        except TraceError as error:  # traces that a broken table shows may lack rows
            yield error.problem
        except OSError as error:
            yield unreadable(source, error)
        else:
            yield from texts_of.notes(source.name)
            yield from table.units.notes(source.name)
            yield from table.refuse_reused(*content.reused(), column_of["trace"])
            unsure = content.likely()
            name, lines = content.several()
            if name and name != version:
                differs.setdefault(name, f"{name!r} differs within {counted(len(lines), 'trace')}: {_REUSED}")
            if name := content.version():
                column_of["policy_version"] = name
                table.set_versions(content.of_traces(name))
            if table.traces:
                states = any(any(trace.columns.get("status", ())) for trace in table.traces.values() if trace)
                texts = {name for name in names if is_text_key(name, of_errors=states)}  # errors are of what failed
                kinds = {kind for trace in table.traces.values() if trace for kind in trace.types}
                mapped = text_columns(columns)
                own = {*names} - {*column_of.values(), *mapped.values()}
                stated = {*map(text_key, own), *(ours for ours, theirs in mapped.items() if theirs)}
                without_arguments |= EventType.TOOL_CALL in kinds and stated.isdisjoint(ASKED)
                others = unread_names(names, {*column_of.values(), *mapped.values(), *_RESULTS, *TEXTS, *texts})
                for name in others:
                    unread.setdefault(name, source.name)
                named = near.likely() | few.likely()
                pairs = pairs or few.types(named.get("type", ""))
                for ours in (*_LIKELY, *["arguments"] * without_arguments):
                    taken = (*likely.values(), *named.values())
                    if ours not in told and (name := likely_column(ours, others, taken)):
                        likely.setdefault(ours, name)
                of_tools = kinds != {EventType.MESSAGE} or not {"type", "tool"}.isdisjoint(named)
                for ours, name in {**unsure, **named}.items():
                    if name == unsure.get("turn") and not content.is_turn(name, of_tools):
                        continue
                    if ours not in {*column_of, *likely} and name in others and name not in likely.values():
                        likely[ours] = name
            filed = [trace for trace in table.traces.values() if trace is not None]
            if "action" not in column_of and (note := note_of_made_calls(filed)) is not None:
                yield note
            join_to_turns(filed)
            for trace_id, trace in table.traces.items():
                if trace is not None:
                    trace = table.traces[trace_id] = in_stated_order(trace)
                    _settle(trace)
                    if trace.trace_id in table.unnamed and len(trace.instances) > 1:
                        yield table.unnamed[trace.trace_id]
                    yield repeated_id(trace, column_of.get("id", "id")) or table.unless_taken(trace) or trace
            kept = [trace for trace in table.traces.values() if trace is not None]
            yield from notes_of_order(kept, column_of, unsure)
            if several := {
                trace.trace_id: table.several[trace.trace_id] for trace in kept if trace.trace_id in table.several
            }:
                trace_id, line = next(iter(several.items()))
                shown = "another than in the trace's first row"
                expected = f"one a trace: that of its first row counts; {_REUSED}"
                place = "several-versions", source.name, line, column_of["policy_version"]
                yield Problem(*place, shown, expected, trace_id, count=len(several))
            if "id" not in column_of:
                yield from note_of_copies(source, filed, whole={*names} <= {*column_of.values()})
            if is_cells:
                yield from unfinished_line(source)
        yield from table.refused_types()
        source.release()
    if unread:
        likely = {ours: likely[ours] for ours in (*KNOWN, *likely) if ours in likely}
        of_types = f" with --types {shlex.quote(','.join(pairs))}" if pairs and "type" in likely else ""
        expected = f"names of docs/formats/table.md, or {proposal(likely, columns)}{of_types}: the others are not read"
        expected += "".join(f"; {words}" for words in differs.values())
        if without_arguments and "arguments" not in likely:
            expected += "; arguments of calls are, where `arguments` names their column"
        if any(is_text_key(name) for name in unread):  # of errors, in a table without a status
            expected += "; rows failed where `status` or a mapped `error` says so"
        shown = excerpt(", ".join(unread))
        about = "reward" if "reward" in likely else ""
        yield Problem("unread-columns", next(iter(unread.values())), 1, "columns", shown, expected, about=about)


_REUSED = "where ids of traces begin again in each, join it to them, as in 3-0"


def _numbers_of(column_of: Mapping[str, str]) -> set[str]:
    """The columns of a table whose cells are numbers, by its own names."""
    numeric = {"reward", "time", "end", *(name for name, key in _EVIDENCE.items() if key.kind != "id")}
    return {theirs for ours, theirs in column_of.items() if ours in numeric or ours.partition(".")[0] in FAMILIES}


def _with_part(problem: Problem, content: ColumnsByContent, row: Row) -> Problem:
    """The problem of a row, with the column of which each part may have its own traces of these ids."""
    if problem.kind != "inconsistent-reward" or not (name := content.part(problem.trace, row)):
        return problem
    expected = f"{problem.expected}; where ids of traces begin again in each {name!r}, join it to them, as in 3-0"
    return dataclasses.replace(problem, expected=expected)


def _settle(trace: TraceRecord) -> None:
    """Give each event to its agent, as in a native trace, and join each agent's events by edges.

    A result under its tool's name is its caller's, and who is spawned has a parent.
    """
    columns = {name: _padded(trace, trace.columns.pop(name, [])) for name in ("role", "agent_name")}
    tools, targets = (_padded(trace, trace.columns.get(name, [])) for name in ("tool", "to"))
    trace.agents, _ = owners(frozenset(), trace, trace.agents, tools, targets)
    acting = {*trace.agents}
    known = {name: agent for name, agent in trace.instances.items() if name in acting}
    trace.instances = find_agents(known, trace, columns["role"], targets, columns["agent_name"])
    latest: dict[str, int] = {}
    for position, agent in enumerate(trace.agents):
        if agent in latest:
            trace.edge(latest[agent], position, EdgeType.TEMPORAL)
        latest[agent] = position


def _padded(trace: TraceRecord, column: list[Any]) -> list[Any]:
    return column + [None] * (len(trace.ids) - len(column))


def _refuse_traces(source: Source, columns: Mapping[str, str]) -> None:
    """Refuse native logs, which have columns for the trace too: each trace would pass for a row.

    Raises:
      TraceError: "other-format".
    """
    try:
        head = source.head(_HEAD)
    except OSError as error:
        raise TraceError(unreadable(source, error)) from error
    if native.sniff(head):
        expected = "rows of a table; these are traces of the format 'native': leave out `format`, `columns` and `types`"
        if set(columns) == {"key"}:  # nobody said that these are tables, but for a key that no trace has
            from graphs.keys import PARTS  # which loads JAX, and what only reads logs does without

            expected = f"a table with column {columns['key']!r}; traces of the format 'native' have the keys "
            expected += ", ".join(PARTS)
        raise TraceError(Problem("other-format", source.name, 1, "content", excerpt(head[:40]), expected))


@dataclasses.dataclass
class _Table:
    """The traces of one table while its rows come in; None for a refused trace, whose later rows do not count."""

    file: str
    types: Mapping[str, int]
    units: TimeUnits = dataclasses.field(default_factory=lambda: TimeUnits({}, {}))
    traces: dict[str, TraceRecord | None] = dataclasses.field(default_factory=dict)
    stated: dict[tuple[str, str, str], tuple[Any, int]] = dataclasses.field(default_factory=dict)
    is_text: dict[tuple[str, str], bool] = dataclasses.field(default_factory=dict)
    unnamed: dict[str, Problem] = dataclasses.field(default_factory=dict)  # by trace, its first row without an agent
    several: dict[str, int] = dataclasses.field(default_factory=dict)  # by trace, its first row of another version
    groups: WrittenIds | None = None  # of all tables whose ids have types: their groups are joined
    unknown: dict[str, None] = dataclasses.field(default_factory=dict)  # words of types that mean nothing
    of_types: list[Problem] = dataclasses.field(default_factory=list)  # of traces that have one, once all are known

    def refused_types(self) -> Iterator[Problem]:
        """Why traces with unknown words of types are refused, with all of these words of the table."""
        for problem in self.of_types:
            here = f", here {','.join(map(likely_pair, self.unknown))}"
            yield dataclasses.replace(problem, expected=problem.expected + here)

    def set_versions(self, versions: Mapping[str, float]) -> None:
        """Set the version of the policy of each trace."""
        for trace_id, version in versions.items():
            if (record := self.traces.get(trace_id)) is not None:
                record.evidence["policy_version"] = version

    def add(self, line: int, row: Row, column_of: Mapping[str, str]) -> Problem | None:
        """Append the action of one row to its trace; the problem of a row that refuses its trace."""
        value = {ours: row.get(theirs) for ours, theirs in column_of.items()}
        self.units.in_seconds(value)
        for name in _NAMES & value.keys():
            if value[name] != value[name]:  # pandas writes NaN where a name is missing
                value[name] = None
        if value["trace"] in (None, ""):  # a whole row of no trace: no other is refused for it
            kind = "missing-field" if value["trace"] is None else "empty-id"
            what = "null" if value["trace"] is None else "''"
            shown = f"{what} in the row {excerpt(row)}"
            expected = "the id of a trace: the row is left out, the others are read"
            return Problem(kind, self.file, line, column_of["trace"], shown, expected, _NO_TRACE)
        trace_id = id_text(value["trace"])
        record = self.traces.get(trace_id)
        if record is None and trace_id in self.traces:
            if self.unknown and value.get("type") is not None:
                self._type(value["type"])
            return None
        of_texts = column_of["trace"].lower() in TEXTS
        for ours, again in (("trace", record is not None), ("group", False)):
            ambiguous = self._ambiguous_id(ours, value.get(ours), again, of_texts)
            if ambiguous is not None:
                kind, expected = ambiguous
                self._refuse(trace_id)
                return Problem(kind, self.file, line, column_of[ours], excerpt(value[ours]), expected, trace_id)
        if record is None:
            record = self.traces[trace_id] = TraceRecord(trace_id, trace_id, self.file, line, -1, format="table")
        try:
            self._append(record, line, value, column_of)
        except TraceError as error:
            self._refuse(trace_id)
            if error.problem.kind != "bad-type" or error.problem.field != column_of.get("type"):
                return error.problem
            self.of_types.append(error.problem)
        return None

    def _type(self, cell: Any) -> int | None:
        name = id_text(cell)
        known = self.types.get(name.strip().lower(), EVENT_CODES.get(name))
        if known is None and len(self.unknown) < _MOST_WORDS:
            self.unknown.setdefault(printable(name, LONGEST_ID))
        return known

    def _refuse(self, trace_id: str) -> None:
        self.traces[trace_id] = None
        for ours in ("group", "reward", *OF_TRACE, *TRACE_EVIDENCE):  # a refused trace keeps no memory
            self.stated.pop((trace_id, ours, ""), None)

    def refuse_reused(self, column: str, lines: Mapping[str, int], of_trace: str) -> Iterator[Problem]:
        """Refuse the traces in which a column differs, in each number of which ids begin again, also as rewards agree.

        What remained of a step would be chosen by its outcomes.
        """
        for trace_id, line in lines.items():
            if self.traces[trace_id] is not None:
                self._refuse(trace_id)
                expected = f"an id of one trace: {column!r} differs within {counted(len(lines), 'trace')}; {_REUSED}"
                yield Problem("duplicate-trace", self.file, line, of_trace, excerpt(trace_id), expected, trace_id)

    def unless_taken(self, trace: TraceRecord) -> Problem | None:
        """The problem of a trace without a group, whose id is the group of other traces: it would join them."""
        taken = ("group", trace.trace_id) in self.is_text
        if not taken or (trace.trace_id, "group", "") in self.stated:
            return None
        expected = "a group: without one a trace is a group of its own, and its id is the group of other traces"
        return Problem("ambiguous-id", self.file, trace.line, "group", "none", expected, trace.trace_id)

    def _ambiguous_id(self, ours: str, value: Any, again: bool, of_texts: bool) -> tuple[str, str] | None:
        """Why rows with this id may not be of one trace or group, as the kind and what was expected of a `Problem`."""
        if value is None:
            return None
        if isinstance(value, bool | list | dict):
            return "bad-type", f"a text or a number: the id of a {ours}"
        if is_inexact(value):
            return "bad-type", WRITTEN_EXACTLY
        text = id_text(value)
        if is_missing_name(text):  # it would be the name of every row without one
            return "missing-field", f"the name of a {ours}" + (", or an empty cell" if ours == "group" else "")
        if not text or text.isspace():
            return "empty-id", f"the id of a {ours}, or no value where there is none"
        if self.is_text.setdefault((ours, text), isinstance(value, str)) is not isinstance(value, str):
            return "ambiguous-id", "an id that is written alike in all rows: here it is a number, there a text"
        if ours == "group" and self.groups is not None and self.groups.differs(text, value):
            return "ambiguous-id", "an id that is written alike in all files: here it is a number, there a text"
        if again and (of_texts or len(text) > LONGEST_ID or "\n" in text):
            what = "the column holds what a model reads or writes" if of_texts else (
                f"this is a text of more than {LONGEST_ID} characters or several lines"
            )  # fmt: skip
            return "text-as-id", f"an id: {what}, and two runs may have written the same"
        return None

    def _append(self, record: TraceRecord, line: int, value: Row, column_of: Mapping[str, str]) -> None:
        def convert(ours: str, to: Callable[[Any], Any], expected: str) -> Any:
            if value.get(ours) is None:
                return None
            converted = to(value[ours])
            if converted is None:
                place = "bad-type", self.file, line, column_of[ours], excerpt(value[ours])
                raise TraceError(
                    Problem(*place, expected.format(ours), record.trace_id, about="reward" if ours == "reward" else "")
                )
            return converted

        def constant(ours: str, of: str, amount: Any) -> None:
            first, first_line = self.stated.setdefault((record.trace_id, ours, of), (amount, line))
            if first != amount and not (first != first and amount != amount):
                expected = f"{excerpt(first)} as in row {first_line}: one {ours} {'an agent' if of else 'a trace'}"
                if ours == "reward":
                    expected += "; those of rows are event_reward, of agents agent_reward"
                    expected += "; null, not 0, stands in the other rows of an outcome" * (0 in (first, amount))
                elif ours == "group":
                    expected += "; where ids count within each group, join them to the group's, as in q7-0"
                raise TraceError(
                    Problem(
                        f"inconsistent-{ours}",
                        self.file,
                        line,
                        column_of[ours],
                        excerpt(amount),
                        expected,
                        record.trace_id,
                    )
                )

        group = convert("group", id_text, "text")
        if group is not None:
            constant("group", "", group)
            record.group_id = group
            if self.groups is not None:
                record.group_is_text = isinstance(value["group"], str)
        for name in ("reward", *(name for name in column_of if is_named(name))):
            family, _, of = name.partition(".")
            outcome = value.get(name) if family in ("reward", "rewards") else None
            word = outcome.strip() if isinstance(outcome, str) and number(outcome) is None else ""
            stated: Any = word.lower() or convert(name, *REWARD)
            if stated is None or (of and stated != stated):
                continue
            constant(name, "", stated)
            if word:
                record.words.setdefault(of or "team", Word(word, column_of[name], (self.file, line, -1)))
            else:
                getattr(record, family if of else "rewards")[of or "team"] = stated
        for name in TRACE_EVIDENCE:
            stated = convert(name, *EVIDENCE[name])
            if stated is not None:
                if name != "policy_version":  # a long trace may end under a later policy than it began
                    constant(name, "", stated)
                elif record.evidence.setdefault(name, stated) != stated:
                    self.several.setdefault(record.trace_id, line)
                record.evidence.setdefault(name, stated)
        for name, to in OF_TRACE.items():
            stated = convert(name, *to)
            if stated is not None:
                constant(name, "", stated)
                setattr(record, name, stated)
        agent, role = convert("agent", id_text, "text"), convert("role", id_text, "text")
        for ours, name in (("agent", agent), ("role", role)):
            if name is not None and is_missing_name(name):  # it would join those without one
                expected, shown = (
                    f"the name of {'an' if ours == 'agent' else 'a'} {ours}, or an empty cell",
                    excerpt(value[ours]),
                )
                problem = Problem("missing-field", self.file, line, column_of[ours], shown, expected, record.trace_id)
                raise TraceError(problem)
        if agent is None:
            agent = SINGLE_AGENT
            if "agent" in column_of and record.trace_id not in self.unnamed:
                expected = f"an agent in every row of the trace or in none: this row is one of an agent {agent!r}"
                self.unnamed[record.trace_id] = Problem(
                    "unnamed-agent", self.file, line, column_of["agent"], "empty", expected, record.trace_id
                )
        kind = convert("type", self._type, _TYPES)
        event_type = EventType.MESSAGE if kind is None else EventType(kind)
        if event_type == EventType.ORCHESTRATOR_DECISION and convert("stop", *TRUTH):
            event_type = EventType.STOP
        texts = {name: convert(name, *TEXT) for name in (*_TEXTS, "agent_name") if name in column_of}
        instance = record.instances.setdefault(agent, Agent())
        spawned = texts.get("to") if event_type == EventType.SPAWN else None  # whose role the row states
        if role is not None:
            constant("role", spawned or agent, role)
            instance.role = instance.role if spawned else role
        if "status" not in texts or texts["status"] is None:
            texts["status"] = "error" if failed(value.get("error")) else None
        chosen = convert("action", TRUTH[0], f"{TRUTH[1]}: whether a policy of the team chose the row")
        time = convert("time", *MOMENT)
        evidence = {
            name: convert(name, *EVIDENCE[name])
            for name, key in EVENT_EVIDENCE.items()
            if name in column_of and not (key.kind == "id" and name in value and id_text(value[name]) == NO_ID)
        }
        end = convert("end", *MOMENT)
        if time is not None and end is not None:
            if end < time:
                expected = f"an end not before the row's time, {excerpt(value['time'])}"
                place = "out-of-range", self.file, line, column_of["end"], excerpt(value["end"]), expected
                raise TraceError(Problem(*place, record.trace_id))
            if evidence.get("seconds") is None:
                evidence["seconds"] = round(end - time, 6)  # which float64 has of dates
        elif end is not None:
            time = max(end - (evidence.get("seconds") or 0.0), 0.0)
        evidence |= {name: convert(name, *LISTS[name]) for name in TOKEN_COLUMNS if name in column_of}
        position = record.event(
            convert("id", id_text, "text") or str(len(record.ids)),
            event_type,
            agent,
            action=event_type in ACTION_TYPES if chosen is None else chosen,
            time=math.nan if time is None else time,
            line=line,
            offset=-1,  # a row is found by its line
            model=convert("model", id_text, "text"),
            trusted=convert("trusted", *TRUTH),
            role=role if spawned else None,
            **texts,
            **evidence,
        )
        self._set_turn(record, position, convert("turn", id_text, "text"), line, column_of)

    def _set_turn(
        self, record: TraceRecord, position: int, turn: str | None, line: int, column_of: Mapping[str, str]
    ) -> None:
        if turn is not None and len(record.turns) == position:
            record.turns.append(turn)
        elif turn is not None or record.turns:
            expected = "a turn in every row of the trace or in none"
            problem = Problem(
                "mixed-turns", self.file, line, column_of["turn"], excerpt(turn), expected, record.trace_id
            )
            raise TraceError(problem)
