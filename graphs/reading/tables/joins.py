"""Rewards and groups from tables outside the log, joined to traces by id."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphs.errors import UNREAD_METADATA, UNREAD_OUTCOME, Problem, TraceError, expect
from graphs.problem_log import ProblemLog
from graphs.reading.files import WRITTEN_ALIKE, WrittenIds
from graphs.reading.source import Lost, Source
from graphs.reading.tables.csv_rows import is_header, repeated_header, unfinished_line
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.join_rows import (
    OF_TASKS,
    RATER,
    REWARDS,
    TRACE,
    ambiguous,
    check_columns,
    columns_of_rewards,
    contradictory,
    ids_of,
    near_columns,
    odd_kind,
    plain,
    unread_columns,
    unusable,
)
from graphs.reading.tables.kinds_of_tasks import KindsOfTasks, column_of_kinds
from graphs.reading.tables.number_texts import NumberTexts
from graphs.reading.tables.outcome_words import OUTCOME_CELL, OutcomeWords
from graphs.reading.tables.reward_sources import RewardSources
from graphs.reading.tables.rows import PARQUET, column_names, is_csv, read_rows
from graphs.text import WITHOUT_ROW, counted, excerpt, near_names, printable
from graphs.traces.limits import DEFAULT, Limits
from graphs.traces.missing_names import is_missing_name
from graphs.traces.part import Heading, Part
from graphs.traces.record import BEFORE_PEOPLE, BY_PEOPLE, UNSETTLED, WORDED, TraceRecord

__all__ = ["Join"]

MOST_HINTED = 3
"""Rows without a trace for which near names are sought: each search reads all ids of the log."""
_TEAM, _OF_AGENTS = "team", "agent_reward"
LONGEST_HINT = 80  # characters of an id that is named


@dataclasses.dataclass
class Join:
    """Outcomes (for the reward channel `channel`) and groups by trace id, to be written into records.

    A row with a trace id and an unusable value is a problem, and the value of the log does not replace it: without a
    reward the trace has no outcome, and without a group the trace is left out. A row that cannot be read counts as an
    unusable row of the trace that it states (`lost`). Where that is not certain, it may be the row of any trace that
    has no other (`unnamed`).
    """

    channel: str
    rewards: dict[str, float]
    groups: dict[str, str]
    problems: ProblemLog
    places: dict[str, tuple[str, int]]  # "reward\0trace" -> file and line, for rows that match nothing
    spoilt: dict[str, set[str]] = dataclasses.field(default_factory=lambda: {"reward": set(), "group": set()})
    lost: dict[str, dict[str, Problem]] = dataclasses.field(default_factory=lambda: {"reward": {}, "group": {}})
    unnamed: dict[str, Problem] = dataclasses.field(default_factory=dict)  # by field, the first such row
    untold: set[str] = dataclasses.field(default_factory=set)  # traces whose row says that nobody can tell
    met: set[str] = dataclasses.field(default_factory=set)  # ids of the traces that passed
    refused: dict[str, Problem] = dataclasses.field(default_factory=dict)  # by id of a trace, why it was not read
    told: set[str] = dataclasses.field(default_factory=set)  # of these, with a note on their outcome
    words: dict[str, str] = dataclasses.field(default_factory=dict)  # by trace, of rewards (`OutcomeWords.kept`)
    rated: set[str] = dataclasses.field(default_factory=set)  # traces whose row names who gave the reward
    replaced: set[str] = dataclasses.field(default_factory=set)  # traces whose number of the log a row replaced
    kept: set[str] = dataclasses.field(default_factory=set)  # traces whose number is the log's, since no row has one
    has_rater: bool = True  # whether `rater` says who gave this reward: of several, who gave the outcome
    declared: Mapping[str, float] = dataclasses.field(default_factory=dict)  # what words of outcomes mean
    table: str = ""  # the name of the table of rewards
    table_of_groups: str = ""
    outcome: str = ""  # the name of the column that is read as `reward`, where it has another
    of_both: bool = False  # whether one table has outcomes and groups
    kinds: dict[str, str] = dataclasses.field(default_factory=dict)  # of tasks, by trace
    systems: dict[str, str] = dataclasses.field(default_factory=dict)  # likewise
    tasks: KindsOfTasks = dataclasses.field(default_factory=KindsOfTasks)
    written: WrittenIds = dataclasses.field(default_factory=WrittenIds)  # of groups, where a table's ids have types
    others: list[Join] = dataclasses.field(default_factory=list)  # of further columns of rewards, each of a channel

    @classmethod
    def load(
        cls,
        *,
        channel: str,
        rewards: str | Path | Mapping[str, float] | None,
        groups: str | Path | Mapping[str, str] | None,
        limits: Limits = DEFAULT,
        outcomes: Mapping[str, float] | None = None,
    ) -> Join:
        """Read the two tables within the limits; an ambiguous or malformed row becomes a problem.

        Words of outcomes mean what `outcomes` says, or else what `OutcomeWords` knows.

        Raises:
          CreditError: neither a mapping nor the name of a file.
          TraceError: a named table cannot be read, lacks a column, or has no row. Without it the rewards would be those
            of the log.
        """
        join = cls(channel, {}, {}, ProblemLog(), {}, declared=outcomes or {})
        files = [Path(table) for table in (rewards, groups) if isinstance(table, (str, os.PathLike))]
        join.of_both = len(files) == 2 and files[0].absolute() == files[1].absolute()
        join._fill("reward", rewards, join.rewards, limits)
        for other in join.others:
            said = {*join.problems}
            found = (problem for problem in other.problems if problem not in said)
            join.problems.extend(
                dataclasses.replace(problem, about=problem.field) if problem.field.startswith(REWARDS) else problem
                for problem in found
            )
        join._fill("group", groups, join.groups, limits)
        return join

    def _fill(
        self,
        field: str,
        table: str | Path | Mapping[str, Any] | None,
        into: dict[str, Any],
        limits: Limits,
        key: str = "",
    ) -> None:
        """Read a field from the column `key`; "" for its own, and for those of other rewards, into `others`."""
        if table is None:
            return
        expect(f"{field}s", table, (Mapping, str, os.PathLike), f"a mapping of trace id to {field}, or a file's name")
        rows: Iterable[tuple[int, dict[str, Any] | Lost]]
        has_types = True  # whether the ids have: all cells of CSV are texts
        if isinstance(table, Mapping):
            near: dict[str, str] = {}
            rows = enumerate(({"trace": plain(trace), field: plain(value)} for trace, value in table.items()), start=1)
            name = f"<{field}s>"
        else:
            name = str(table)
            source = Source(name, Path(table), limits)
            rows = read_rows(source, ids=TRACE)
            has_types = not is_csv(source)
            is_headed = not has_types or source.data.startswith(PARQUET)
            names = (
                column_names(source) if is_headed else [key for _, row in rows if isinstance(row, dict) for key in row]
            )
            column, by = column_of_kinds(dict.fromkeys(names)) if field == "group" else ("", "")
            if column:
                self.tasks = KindsOfTasks(name, column, by)
                self.problems.extend(self.tasks.fill(read_rows(source, ids=(column,))))
                self.problems.extend(() if has_types else unfinished_line(source, field))
                if self.tasks.is_empty:
                    raise _without_rows(name, field)
                return
            if field == "reward" and not key:
                key, further = columns_of_rewards(self.channel, name, names)
                for column in further:
                    channel = column.removeprefix(REWARDS)
                    other = Join(channel, {}, {}, ProblemLog(), {}, met=self.met, refused=self.refused)
                    other.declared, other.of_both = self.declared, self.of_both
                    other.has_rater = not key and len(further) == 1
                    other._fill(field, table, other.rewards, limits, column)
                    self.others.append(other)
                if not key:
                    return
            if near := near_columns(field, dict.fromkeys(names)):
                self.outcome = next((theirs for theirs, ours in near.items() if ours == "reward"), self.outcome)
                read = " and ".join(f"`{printable(theirs, 60)}` is read as `{ours}`" for theirs, ours in near.items())
                expected = f"columns `trace` and `{field}`: {read}"
                self.problems.append(
                    Problem("near-columns", name, 1, "columns", excerpt(", ".join(near)), expected, about=field)
                )
            elif is_headed:
                check_columns(field, name, names)  # which a table has that has no row
            rows = read_rows(source, ids=(*TRACE, *(theirs for theirs, ours in near.items() if ours in TRACE)))
        key = key or field
        if field == "reward":
            self.table = name
        else:
            self.table_of_groups = name
        spoilt = self.spoilt[field]
        outcomes = OutcomeWords("row", self.declared) if field == "reward" and not isinstance(table, Mapping) else None
        texts = NumberTexts([key] if field == "reward" and has_types else ())
        columns: dict[str, None] = {}  # an ordered set
        is_empty = not isinstance(table, Mapping)
        for line, row in rows:
            if not has_types and isinstance(row, dict) and is_header(row):
                self.problems.append(repeated_header(name, line, field))
                continue
            is_empty = False
            if isinstance(row, Lost):
                lost = dataclasses.replace(row.problem, about=field)
                self.problems.append(lost)
                if row.trace:
                    self.lost[field].setdefault(row.trace, lost)
                else:
                    self.unnamed.setdefault(field, lost)
                continue
            row = {near.get(key, key): value for key, value in row.items()} if near else row
            columns |= dict.fromkeys(row)
            texts.add(line, row)
            trace: Any = row.get("trace", row.get("trace_id"))
            value: Any = row.get(key)
            if value is None and key.startswith(REWARDS):
                continue  # it states nothing
            if trace is None:
                absent = "empty" if row.keys() & {"trace", "trace_id"} else "missing"
                expected = f"the id of the trace whose {field} the row states"
                unnamed = Problem("bad-row", name, line, "trace", absent, expected, about=field)
                self.problems.append(unnamed)
                continue
            trace = id_text(trace)
            untold: Mapping[str, tuple[str, int]] = {}
            if outcomes is not None:
                value, untold = outcomes.as_number(trace, (name, line), value), outcomes.untold
            is_second = untold.get(trace, (name, line)) != (name, line)
            problem = contradictory(row) or ambiguous(field, trace, into, (trace,) if is_second else spoilt)
            if problem is None and trace in untold:
                self.untold.add(trace)
                continue
            problem = problem or (unusable(key, value) if outcomes is None else unusable(key, value, OUTCOME_CELL))
            of_task = {column: row.get(column) for column in OF_TASKS if field == "group"}
            problem = next(filter(None, (problem, *(odd_kind(cell, column) for column, cell in of_task.items()))), None)
            is_typed = field == "group" and has_types
            if problem is None and is_typed and self.written.differs(id_text(value), value):
                problem = "ambiguous-id", field, value, WRITTEN_ALIKE
            if problem is None:
                into[trace] = id_text(value) if field == "group" else float(value)
                rater = row.get(RATER) if field == "reward" and self.has_rater else None
                self.rated |= {trace} if rater is not None and str(rater).strip() else set()
                for stated, cell in zip((self.kinds, self.systems), of_task.values(), strict=False):
                    if cell is not None and not is_missing_name(text := id_text(cell)):
                        stated[trace] = text.strip()
                self.places[f"{field}\0{trace}"] = (name, line)
            else:
                for named in {trace, *ids_of(row)}:  # a row that names two traces voids both
                    into.pop(named, None)
                    spoilt.add(named)
                kind, column, wrong, expected = problem
                shown = excerpt(wrong) if wrong is not None else "empty" if column in row else "missing"
                self.problems.append(Problem(kind, name, line, column, shown, expected, trace, about=field))
        if columns:
            check_columns(field, name, columns)
            groups = (*near_columns("group", columns), *OF_TASKS) if self.of_both else ()
            others = [column for column in columns if column not in groups]
            self.problems.extend(unread_columns(name, others) if field == "reward" else ())
        self.words |= outcomes.kept if outcomes is not None else {}
        for mixed in outcomes.problems(key) if outcomes is not None else ():
            self.problems.append(mixed)
            if mixed.is_failure:
                into.pop(mixed.trace, None)
                spoilt.add(mixed.trace)
        self.problems.extend(texts.notes(name, field))
        if not has_types:
            self.problems.extend(unfinished_line(source, field))
        if is_empty:
            raise _without_rows(name, field)

    def sources(self) -> RewardSources:
        """A count, from 0, of where outcomes come from."""
        return RewardSources(self.rewards, self.table)

    @property
    def _states_tasks(self) -> bool:
        """Whether the tables say of what kind tasks are, or which system ran them."""
        return any((self.kinds, self.systems, *self.tasks.stated.values()))

    @property
    def _is_stated(self) -> bool:
        """Whether the tables say anything of any trace."""
        tables = (
            self.rewards,
            self.groups,
            *self.tasks.stated.values(),
            self.unnamed,
            *self.spoilt.values(),
            *self.lost.values(),
            *(other._is_stated for other in self.others),
        )
        return any(tables)

    def apply(self, items: Iterable[TraceRecord | Part | Problem]) -> Iterator[TraceRecord | Part | Problem]:
        """Yield problems of the tables, the items with rewards and groups, and problems of rows that match no trace."""
        yield from self.problems
        yield from self.write(items)
        yield from self.unmatched()

    def write(self, items: Iterable[TraceRecord | Part | Problem]) -> Iterator[TraceRecord | Part | Problem]:
        """Yield items with rewards and groups written in, without the traces whose group is unknown or has no name."""
        for item in self._write(items):
            traces: Sequence[TraceRecord | Heading] = ()
            if not isinstance(item, Problem):
                traces = [item] if isinstance(item, TraceRecord) else item.headings
            nameless = {row for row, trace in enumerate(traces) if _is_nameless(trace)}
            for row in sorted(nameless):
                expected = "the name of a task: this is what programs write where there is none"
                of, shown = traces[row], excerpt(traces[row].group_id)
                yield Problem("missing-field", of.file, of.line, "group", shown, expected, of.trace_id)
            if isinstance(item, Part) and nameless:
                yield from item.without(nameless)
            elif not nameless:
                yield item

    def _write(self, items: Iterable[TraceRecord | Part | Problem]) -> Iterator[TraceRecord | Part | Problem]:
        """As `write`, whatever a group is called.

        An outcome that was chosen by its channel or in a table takes the place of all outcomes that the log states for
        its own use: those of agents, too, where the trace has none.
        """
        is_stated = self._is_stated
        for item in items:
            if isinstance(item, Problem):
                self.note_refused([item])
                settled = item.trace in self.rewards if item.kind == UNSETTLED else self._states_tasks
                if item.kind not in (UNSETTLED, UNREAD_METADATA) or not settled:
                    yield item
            elif isinstance(item, TraceRecord) and not is_stated and self.channel == _TEAM:
                self.met.add(item.trace_id)
                yield item
            elif isinstance(item, TraceRecord):
                yield from self._unreadable_rows(item.trace_id)
                of_agents = _TEAM not in item.rewards
                if self._fill_in(item):
                    if of_agents and self.channel in item.rewards:
                        item.columns.pop(_OF_AGENTS, None)
                    yield self._otherwise_written(item) or item
            elif item.headings and not is_stated and (self.channel == _TEAM or _OF_AGENTS not in item.evidence):
                self.met.update([heading.trace_id for heading in item.headings])
                yield item
            else:
                for heading in item.headings:
                    yield from self._unreadable_rows(heading.trace_id)
                without = np.array([_TEAM not in heading.rewards for heading in item.headings])
                refused = {row for row, of in enumerate(item.headings) if not self._fill_in(of)}
                chosen = without & np.array([self.channel in heading.rewards for heading in item.headings])
                if _OF_AGENTS in item.evidence and chosen.any():
                    of_event = np.repeat(chosen, np.diff(item.event_ends, prepend=0))
                    kept = np.where(of_event, np.float32(np.nan), item.evidence[_OF_AGENTS])
                    item = dataclasses.replace(item, evidence=item.evidence | {_OF_AGENTS: kept})
                yield from item.without(refused)

    def note_refused(self, problems: Iterable[Problem]) -> set[str]:
        """Keep why traces were not read, for their rows, and return their ids; some may be read all the same."""
        found = []
        for problem in problems:
            if problem.trace and not problem.about and problem.may_refuse:
                found.append(problem)
            elif problem.kind == UNREAD_OUTCOME:
                self.told.add(problem.trace)
        for problem in found:
            self.refused.setdefault(problem.trace, problem)
        return {problem.trace for problem in found}

    def _fill_in(self, trace: TraceRecord | Heading) -> bool:
        """Write reward and group into a trace; False if its row in the table of groups is unusable."""
        name = trace.trace_id
        self.met.add(name)
        for join in (self, *self.others):
            join._fill_in_reward(trace)
        trace.group_id = self.groups.get(name, trace.group_id)
        for column, stated in zip(OF_TASKS, (self.kinds, self.systems), strict=True):
            own = stated.get(name, getattr(trace, column))
            setattr(trace, column, self.tasks.of(name, trace.group_id, column, own))
        return name not in self.spoilt["group"] and name not in self.lost["group"] and not self._unknown("group", name)

    def _fill_in_reward(self, trace: TraceRecord | Heading) -> None:
        name = trace.trace_id
        if name in self.spoilt["reward"] or name in self.lost["reward"] or self._unknown("reward", name):
            trace.rewards.pop(self.channel, None)
            trace.sole = None
        elif name in self.rewards:
            by_people, before = BY_PEOPLE.format(self.channel), BEFORE_PEOPLE.format(self.channel)
            kept = trace.metrics.get(before, None if by_people in trace.metrics else trace.rewards.get(self.channel))
            self.replaced |= {name} if self.channel in trace.rewards else set()
            trace.rewards[self.channel] = self.rewards[name]
            of_log = WORDED.format(self.channel, ""), by_people, before
            trace.metrics = {key: one for key, one in trace.metrics.items() if not key.startswith(of_log)}
            if name in self.rated:
                trace.metrics |= {by_people: 1.0} | ({} if kept is None else {before: kept})
            if name in self.words:
                trace.metrics[WORDED.format(self.channel, self.words[name])] = 1.0
        elif self.channel in trace.rewards:
            self.kept.add(name)

    def _otherwise_written(self, trace: TraceRecord) -> Problem | None:
        """The problem of a trace whose group in the log has the text of one of the table, but is another kind of id."""
        if trace.trace_id in self.groups or not self.written.contradicts(trace.group_id, trace.group_is_text):
            return None
        kinds = ("text", "number") if trace.group_is_text else ("number", "text")
        expected = "an id that is written alike in the log and in the table of groups: here it is a {}, there a {}"
        shown = excerpt(trace.group_id) if trace.group_is_text else trace.group_id
        return Problem("ambiguous-id", trace.file, trace.line, "group", shown, expected.format(*kinds), trace.trace_id)

    def _unknown(self, field: str, name: str) -> Problem | None:
        """The row without a certain id that may be this trace's, which has no other."""
        table = self.rewards if field == "reward" else self.groups
        has_row = name in table or (field == "reward" and name in self.untold)
        return None if has_row else self.unnamed.get(field)

    def _unreadable_rows(self, name: str) -> Iterator[Problem]:
        """Problems of rows that may be this trace's: other processes do not know its id."""
        for field in self.unnamed:
            problem = self._unknown(field, name)
            if problem is not None and name not in self.spoilt[field] and name not in self.lost[field]:
                yield _unreadable_row(problem, field, name)

    def unmatched(self, read: int | None = None) -> Iterator[Problem]:
        """Problems of rows without a trace, of traces that an unreadable row mentions, and of groups of two sources.

        Args:
          read: how many traces were read, where these are not the traces that passed here.
        """
        found: dict[tuple[str, str, int], Problem] = {}  # once, whatever the columns of the row
        for other in self.others:
            of_rows = (problem for problem in other.unmatched(read) if problem.kind != UNREAD_OUTCOME)
            found |= {(problem.kind, problem.trace, problem.line): problem for problem in of_rows}
        for problem in self._unmatched(read):
            found.pop((problem.kind, problem.trace, problem.line), None)
            yield problem
        yield from found.values()

    def _unmatched(self, read: int | None) -> Iterator[Problem]:
        """As `unmatched`, without other rewards of the table."""
        for field, mentions in self.lost.items():
            for trace_id, problem in mentions.items():
                if trace_id in self.met and trace_id not in self.spoilt[field]:
                    yield _unreadable_row(problem, field, trace_id)
        for field, table in (("reward", self.rewards), ("group", self.groups)):
            absent = [trace_id for trace_id in table if trace_id not in self.met]
            missed = [trace_id for trace_id in absent if trace_id not in self.refused]
            without = sorted(trace_id for trace_id in self.met if trace_id not in table) if missed else []
            for number, trace_id in enumerate(missed):
                name, line = self.places[f"{field}\0{trace_id}"]
                expected = f"the id of a trace that was read, whose {field} the row states"
                if number < MOST_HINTED and without:
                    short = (other for other in without if len(other) <= LONGEST_HINT)
                    expected += f". {near_names(trace_id, short, count=WITHOUT_ROW)}"
                yield Problem("unmatched-row", name, line, "trace", excerpt(trace_id), expected, about=field)
            for trace_id in absent if field == "reward" and len(missed) < len(absent) else ():
                if trace_id in self.refused and trace_id not in self.told:
                    name, line = self.places[f"{field}\0{trace_id}"]
                    why = self.refused[trace_id]
                    where = f"{why.file}:{why.line}" if why.line else why.file
                    expected = f"an outcome of a trace that was read: this one was not ({why.kind}, {where})"
                    shown = repr(self.rewards[trace_id])
                    yield Problem(UNREAD_OUTCOME, name, line, field, shown, expected, trace_id, about=field)
        rows, kept = (self.rewards.keys() - self.rated) & self.met, len(self.kept & self.met)
        if rows and kept and self.channel != _TEAM:
            replaced = len(rows & self.replaced)
            shown = (
                f"replaced in {counted(replaced, 'trace')}, added to {len(rows) - replaced}, the log's own in {kept}"
            )
            expected = "outcomes of one source: these count as such"
            expected += ". A column `rater` says which of them people gave" * self.has_rater
            yield Problem("rewards-of-some", self.table, 0, self.channel, shown, expected, about="reward")
        yield from self.tasks.unmatched(self.refused) if read is None else ()  # else other processes met them
        stated = {*self.groups, *self.spoilt["group"], *self.lost["group"]}
        listed = sum(trace in self.met for trace in stated)
        read = len(self.met) if read is None else read
        if listed < read and any(trace in self.met for trace in self.groups):
            shown = f"a row for {listed} of {counted(read, 'trace')}"
            expected = "a row for each: the others keep the group of the log"
            yield Problem("groups-of-some", self.table_of_groups, 0, "trace", shown, expected, about="group")


def _is_nameless(trace: TraceRecord | Heading) -> bool:
    """Whether a trace's task, which is not its own id, has the name that programs write where there is none."""
    name = trace.group_id
    return name != trace.trace_id and (name.isspace() or is_missing_name(name))


def _without_rows(name: str, field: str) -> TraceError:
    expected = f"a row with the {field} of a trace"
    return TraceError(Problem("empty-file", name, 0, "content", "a table without a row", expected))


def _unreadable_row(problem: Problem, field: str, trace: str) -> Problem:
    """The problem of a row that cannot be read, as one of a trace that it mentions."""
    expected = f"a readable row: without it the {field} of the trace is unknown"
    return dataclasses.replace(problem, kind="lost-row", expected=expected, trace=trace)
