"""Tables beside logs of other formats: ids show that their rows state outcomes of the traces of these logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from graphs.errors import Problem, TraceError
from graphs.formats.table.columns import find_columns
from graphs.logs.outcome_tables import may_state_outcomes, outcomes_problem
from graphs.reading.source import Lost, Source
from graphs.reading.tables.ids import id_text
from graphs.reading.tables.rows import column_names, read_rows
from graphs.text import counted, excerpt
from graphs.traces.part import Part
from graphs.traces.record import TraceRecord

__all__ = ["OutcomeRows"]


class OutcomeRows:
    """Tells tables of outcomes with further columns, such as `judge` and `comment`, from tables that are logs.

    Such a table has no column about who did what, or in which task, and no text of a step. It has one row for each
    trace, and one at least is a trace of a log of another format. The other logs are read first.

    Args:
      members_of: sources by format; a table that was named is a log.
    """

    def __init__(self, members_of: Mapping[str, Sequence[Source]]) -> None:
        has_logs = any(members for name, members in members_of.items() if name != "table")
        self._tables = {
            source.name
            for source in (members_of.get("table", ()) if has_logs else ())
            if source.path is not None and not source.is_named and may_state_outcomes(source)
        }
        self._traces: set[str] = set()

    def noted(self, items: Iterator[TraceRecord | Part | Problem]) -> Iterator[TraceRecord | Part | Problem]:
        """The items of a log, whose traces are remembered where a table may state their outcomes."""
        return self._noted(items) if self._tables else items

    def _noted(self, items: Iterator[TraceRecord | Part | Problem]) -> Iterator[TraceRecord | Part | Problem]:
        for item in items:
            if isinstance(item, TraceRecord):
                self._traces.add(item.trace_id)
            elif isinstance(item, Part):
                self._traces.update([heading.trace_id for heading in item.headings])
            yield item

    def problem(self, table: Source) -> Problem | None:
        """The problem of a table whose rows are of traces that were read; None for a log."""
        if table.name not in self._tables:
            return None
        try:
            column = find_columns(table, {})[0]["trace"]
            known, ids = 0, set[str]()
            for _, row in read_rows(table, {column}):
                if isinstance(row, Lost) or row.get(column) is None:
                    continue
                trace = id_text(row[column])
                if trace in ids:  # a step of a trace in each row
                    return None
                ids.add(trace)
                known += trace in self._traces
            names = column_names(table)
        except TraceError:  # its reader says why
            return None
        finally:
            table.release()
        shown = (
            f"the columns {excerpt(', '.join(names))} with {counted(len(ids), 'trace')}, {known} of them of other logs"
        )
        return outcomes_problem(table, names, shown) if known else None
