"""CSV as rows with line numbers: RFC 4180 with strict quotes, so that text within a cell cannot become a row.

Arrow parses the cells. A separate scan of the quotes determines the end of each row. It gives the line numbers and
refuses input that parsers repair in different ways. Both must agree on the number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.csv

from graphs.errors import Problem, TraceError
from graphs.problem_log import MOST_LISTED
from graphs.reading.source import Source
from graphs.text import counted, excerpt

__all__ = ["csv_header", "csv_rows", "is_header", "other_separator", "repeated_header", "unfinished_line"]

_CELL = rb'(?:"[^"]*+(?:""[^"]*+)*+"|[^",\r\n][^,\r\n]*+|)'
_RECORD = re.compile(_CELL + rb"(?:," + _CELL + rb")*+(?:\r\n|\n|\r|\Z)")
_CELLS = re.compile(rb"(" + _CELL + rb")(?:,|\Z)")
_ZERO = b"\0"
_WITHOUT_ZEROS = "a row without zero bytes, which a crash leaves in place of what was written"
_SEPARATORS = ";\t|"
_BLOCK = 1 << 20
_MOST = (1 << 31) - 1 - _BLOCK  # of Arrow, whose positions within a block are 32 bits wide


def csv_header(source: Source) -> list[str]:
    """The names of the columns.

    Raises:
      TraceError: as `csv_rows`.
    """
    return _header(source, next(_records(source), None))


def csv_rows(source: Source) -> Iterator[tuple[int, dict[str, str | None] | Problem, tuple[str, ...]]]:
    """(line where it begins, row or problem, cells of a row with a problem) of each row.

    A row with more or fewer cells than the header is a problem, and so is one with a zero byte; the other rows are
    read. After a fault in the quotes the ends of the following rows are unknown, so the table is refused.

    Raises:
      TraceError: "not-utf-8"; "bad-header"; "bad-csv" for faulty quotes; "too-large" for a row beyond the limits.
    """
    _check_text(source)
    records = _records(source)
    first = next(records, None)
    header = _header(source, first)
    longest, any_bad = 0, False
    for _, start, stop in _records(source):
        longest = max(longest, stop - start)
        any_bad = any_bad or not _is_whole(source.data[start:stop], len(header))
    if longest > min(source.limits.record_bytes, _MOST):
        expected = f"rows of at most {counted(min(source.limits.record_bytes, _MOST), 'byte')}"
        raise TraceError(Problem("too-large", source.name, 0, "row", counted(longest, "byte"), expected))
    parsed = _parsed(source, _whole_rows(source, len(header)) if any_bad else source.data, header, longest)
    width = f"{counted(len(header), 'cell')}, as in the header"
    faults: dict[str, tuple[int, Problem]] = {}  # for each expectation, how many rows missed it, and the latest shown
    for line, start, stop in records:
        record = source.data[start:stop]
        if not _is_whole(record, len(header)):
            texts = tuple(map(_text, _split(record)))
            expected = _WITHOUT_ZEROS if _ZERO in record else width
            count, latest = faults.get(expected, (0, None))
            if latest is None or count <= MOST_LISTED:  # later ones are counted and not shown
                latest = Problem("bad-row", source.name, line, "row", excerpt(list(texts[:8])), expected)
            faults[expected] = count + 1, latest
            yield line, latest, texts
            continue
        row = next(parsed, None)
        if row is None:
            raise _disagreement(source, line)
        yield line, row, ()
    if next(parsed, None) is not None:
        raise _disagreement(source, 0)


def other_separator(line: str) -> str:
    """What separates the cells of a line that has no commas; "" where it has some, or only one cell."""
    return "" if "," in line else max((s for s in _SEPARATORS if s in line), key=line.count, default="")


def is_header(row: Mapping[str, Any]) -> bool:
    """Whether a row of a table of CSV has the name of its column in each cell."""
    return all(cell == name for name, cell in row.items())


def repeated_header(file: str, line: int, about: str = "") -> Problem:
    """Information: tables were joined with their headers, which loses no row."""
    expected = "one header, in the first row: tables were joined, and this row is not read as one of a trace"
    return Problem("repeated-header", file, line, "row", "the header again", expected, about=about)


def unfinished_line(source: Source, about: str = "") -> Iterator[Problem]:
    """Information: the last line has no line break, and a number at its end may be cut, as `10` to `1`."""
    if not source.data.endswith((b"\n", b"\r")):
        last = source.data[source.data.rfind(b"\n") + 1 :]
        expected = "a line that ends: if the table is still being written, the last cell may be cut. The row is read"
        line = source.data.count(b"\n") + 1
        yield Problem("unfinished-line", source.name, line, "row", excerpt(_text(last)), expected, about=about)


def _whole_rows(source: Source, width: int) -> bytes:
    """The rows with as many cells as the header, and without zero bytes."""
    rows = (source.data[start:stop] for _, start, stop in _records(source))
    return b"\n".join(row for row in rows if _is_whole(row, width))


def _is_whole(record: bytes, width: int) -> bool:
    return _ZERO not in record and _width(record) == width


def _width(record: bytes) -> int:
    """Number of cells of a row."""
    return len(_split(record)) if b'"' in record else record.count(b",") + 1


def _check_text(source: Source) -> None:
    try:
        if not source.data.isascii():
            source.data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + source.data.count(b"\n", 0, error.start)
        value = excerpt(source.data[error.start : error.start + 20])
        raise TraceError(Problem("not-utf-8", source.name, line, "content", value, "text in UTF-8")) from error


def _records(source: Source) -> Iterator[tuple[int, int, int]]:
    """(line where it begins, start, stop without the line break) of each row that is not blank.

    Raises:
      TraceError: "bad-csv", also if some rows end in a CR alone and others in LF. A writer that ends rows in LF means a
        CR as a character of a cell, and the text behind it would become a row.
    """
    data, start, line = source.data, 0, 0
    of_cr, of_lf = 0, 0  # the first lines that end so
    if b'"' not in data and b"\r" not in data:  # for speed: each line is a row
        while start < len(data):
            line += 1
            end = data.find(b"\n", start)
            end = len(data) if end < 0 else end
            if end > start:
                yield line, start, end
            start = end + 1
        return
    while start < len(data):
        match = _RECORD.match(data, start)
        if match is None:
            expected = "quotes that close, with a comma or a line break behind, and doubled within"
            value_text = excerpt(_text(data[start : start + 40]))
            raise TraceError(Problem("bad-csv", source.name, line + 1, "row", value_text, expected))
        text = data[start : match.end()]
        if text.endswith(b"\n"):
            of_lf = of_lf or line + 1
        elif text.endswith(b"\r") and match.end() < len(data):  # at the end of the file, an LF may have been cut off
            of_cr = of_cr or line + 1
        if of_cr and of_lf:
            shown, expected = "a CR alone in a file of LF", "rows that end alike: a CR within a cell needs quotes"
            raise TraceError(Problem("bad-csv", source.name, of_cr, "row", excerpt(shown), expected))
        content = text.rstrip(b"\r\n")
        if content:
            yield line + 1, start, start + len(content)
        line += text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")
        start = match.end()


def _split(record: bytes) -> list[bytes]:
    """The cells of a row, as text."""
    if b'"' not in record:
        return record.split(b",")
    cells = [match.group(1) for match in _CELLS.finditer(record)]
    return cells if record.endswith(b",") else cells[:-1]  # the last match is the empty one at the end


def _text(cell: bytes) -> str:
    text = cell.decode("utf-8", "replace")
    return text[1:-1].replace('""', '"') if len(text) > 1 and text.startswith('"') and text.endswith('"') else text


def _header(source: Source, record: tuple[int, int, int] | None) -> list[str]:
    if record is None:
        raise TraceError(Problem("empty-file", source.name, 0, "content", "empty", "a table"))
    line, start, stop = record
    names = [_text(cell) for cell in _split(source.data[start:stop])]
    if _ZERO in source.data[start:stop]:  # the names below it are unknown
        raise TraceError(Problem("bad-header", source.name, line, "header", excerpt(names), _WITHOUT_ZEROS))
    separator = other_separator(names[0]) if len(names) == 1 else ""
    if separator:
        expected = f"commas between the cells, not {separator!r}"
        raise TraceError(Problem("bad-header", source.name, line, "columns", excerpt(names[0]), expected))
    if len(set(names)) < len(names):
        problem = Problem(
            "bad-header", source.name, line, "header", excerpt(names), "a name for each column, none twice"
        )
        raise TraceError(problem)
    return names


def _parsed(source: Source, data: bytes, header: list[str], longest: int) -> Iterator[dict[str, str | None]]:
    """The rows of `data` with as many cells as the header, parsed by Arrow; an empty cell is None."""
    names = [str(i) for i in range(len(header))]
    try:
        reader = pyarrow.csv.open_csv(
            pa.BufferReader(data),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=max(_BLOCK, 2 * longest), column_names=names
            ),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda row: "skip"),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
        behind_header = False
        for batch in reader:
            columns = [column.to_pylist() for column in batch.columns]
            for cells in zip(*columns, strict=True):
                if behind_header:
                    yield dict(zip(header, cells, strict=True))
                behind_header = True
    except pa.ArrowException as error:
        raise TraceError(Problem("bad-csv", source.name, 0, "content", excerpt(str(error)), "a CSV table")) from error


def _disagreement(source: Source, line: int) -> TraceError:
    expected = "a CSV table that is read in one way only"
    return TraceError(Problem("bad-csv", source.name, line, "content", "rows that end in two ways", expected))
