"""What commands print: lines and tables for people, on a console each for results and for the rest, and JSON."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

__all__ = [
    "explain",
    "json_option",
    "plain_table",
    "print_facts",
    "print_json",
    "print_lines",
    "ruled_table",
    "stderr",
    "stdout",
    "words",
]

WIDTH, LEAST_WIDTH = 120, 40  # of text where the output is no terminal, unless COLUMNS has another

_ROOM = 10_000  # wider than any table
LEAST_TEXT = 10  # of a column of text; where numbers leave less, the rows of a table are stacked

_BLANKS = re.compile(r" +$", re.MULTILINE)
_UNSEEN = re.compile(r"[^\n -~]")  # more than the control characters that JSON itself escapes


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json` (`as_json`): for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def print_json(plain: Any) -> None:
    """One JSON object of plain data, on standard output, which may be a terminal: no text in it can control that."""
    import msgspec

    from credit.methods.own_functions import as_text

    text = msgspec.json.format(msgspec.json.encode(plain, enc_hook=as_text)).decode()
    click.echo(_UNSEEN.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    """A character of a JSON string as JSON escapes it, unless it is printable."""
    if found[0].isprintable():
        return found[0]
    units = found[0].encode("utf-16-be").hex()  # one beyond 16 bits is a pair
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def stdout() -> Console:
    """The console for results."""
    return _console(stderr=False)


def stderr() -> Console:
    """The console for progress, summaries and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console
    from rich.table import Table

    file_has_room = not os.environ.get("COLUMNS", "").isdecimal()

    class Plain(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            """Print; in a file a table has no blanks at the ends of lines, and without COLUMNS its own width."""
            if self.is_terminal or not isinstance(objects[0] if objects else None, Table):
                super().print(*objects, **options)
                return
            usual = self.width
            if file_has_room:
                self.width = max(usual, self.measure(objects[0], options=self.options.update(width=_ROOM)).maximum)
            with self.capture() as printed:
                super().print(*objects, **options)
            self.width = usual
            self.out(_BLANKS.sub("", printed.get()), highlight=False, end="")

        def on_broken_pipe(self) -> None:
            """Raise, so that `credit.cli` chooses the exit code: Rich would exit with 1 at once."""
            raise BrokenPipeError

    console = Plain(stderr=stderr, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        console.width = max(int(columns), LEAST_WIDTH) if columns.isdecimal() else WIDTH
    return console


def words(text: object, style: str = "") -> Text:
    """Text from a log, for a table or a line: control characters made visible, markup without effect."""
    from rich.text import Text

    from graphs.text import printable

    return Text(printable(str(text)), style=style)


def explain(console: Console, shown: Table | Sequence[Table], *terms: tuple[str, str]) -> None:
    """Print a line for each term of a table, or of several, whose name does not say what it is.

    A term has a line where a cell has it: before the line stands how this cell begins, `NAME: BEGIN` for one of a
    column, `NAME: ` for any of it but an empty one, 0 and –; "" for every table.

    Examples:
      >>> table = plain_table("agent", "#loops")
      >>> table.add_row("–", "≥ 5")
      >>> explain(stdout(), table, ("loops: ", "loops: the same call again"), ("≥", "≥: a part"), ("loops: –", "–: no"))
      loops: the same call again
      ≥: a part
      >>> explain(stdout(), table, ("errors: ", "errors: of calls"))
    """
    columns = [column for table in (shown if isinstance(shown, Sequence) else [shown]) for column in table.columns]

    def is_there(where: str) -> bool:
        name, _, begin = where.rpartition(": ")
        cells = (str(cell) for column in columns if not name or str(column.header) == name for cell in column.cells)
        return not where or any(cell.startswith(begin) if begin else cell not in ("", "0", "–") for cell in cells)

    for where, line in terms:
        if is_there(where):
            console.print(words(line, "dim"), soft_wrap=True)


def print_lines(console: Console, title: str, lines: Iterable[str], *, apart: bool = True) -> None:
    """Print sentences below their title, and an empty line behind them; nothing without any."""
    told = [*filter(None, lines)]
    if told and title:
        console.print(words(title, "bold"))
    for line in told:
        console.print(words(line), soft_wrap=True)
    if told and apart:
        console.print()


def print_facts(console: Console, title: str, facts: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print names with a line for each fact of theirs, and an empty line; a terminal has what follows a break indented.

    Examples:
      >>> print_facts(stdout(), "In short", [("What failed", ["1 of 2 traces failed.", "v1 0 of 1, v2 1 of 1."])])
      In short
      What failed:
        1 of 2 traces failed.
        v1 0 of 1, v2 1 of 1.
      <BLANKLINE>
    """
    from rich.text import Text

    console.print(words(title, "bold"))
    for name, lines in facts:
        console.print(words(f"{name}:", "bold"), soft_wrap=True)
        for line in lines:
            text = words(line)
            if console.is_terminal:
                broken = text.wrap(console, max(console.width - 4, LEAST_TEXT))
                text = Text("\n    ").join(part for part in broken)
            console.print(Text("  ") + text, soft_wrap=True)
    console.print()


def plain_table(*columns: str) -> Table:
    """A table without lines; columns whose name begins with "#" hold numbers, which are never broken."""
    return _filled(_kept_whole()(box=None, pad_edge=False, header_style="dim"), columns)


def ruled_table(*columns: str, title: str = "") -> Table:
    """A table with a line under its header; columns as of `plain_table`."""
    from rich import box

    table = _kept_whole()(box=box.SIMPLE_HEAD, pad_edge=False, title=words(title) if title else None)
    table.title_justify = table.caption_justify = "left"
    return _filled(table, columns)


def _filled(table: Table, columns: Iterable[str]) -> Table:
    for column in columns:
        numbers = column.startswith("#")
        header = words(column.removeprefix("#"))
        table.add_column(header, justify="right" if numbers else "left", overflow="fold")
    return table


@functools.cache
def _kept_whole() -> type[Table]:
    """The class of tables whose numbers are never broken; a function, since Rich is slow to import."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    class KeptWhole(Table):
        """A table that takes lines of text columns apart, then moves columns together, then stacks its rows."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            if self.__rich_measure__(console, options.update(width=_ROOM)).maximum <= options.max_width:
                return super().__rich_console__(console, options)
            needed = self._extra_width
            for column in self.columns:
                cells = [cell_len(str(cell)) for cell in column.cells]
                header = max((cell_len(word) for word in str(column.header).split()), default=0)
                if column.justify == "right":
                    column.width = max([header, *cells])
                    needed += column.width
                else:
                    column.min_width = max(column.min_width or 0, min(max([header, *cells]), LEAST_TEXT))
                    needed += column.min_width
            for self.collapse_padding in (False, True):
                room = sum(self._get_padding_width(i) for i in range(len(self.columns)))
                if needed + room <= options.max_width:
                    return super().__rich_console__(console, options)
            return self._stacked()

        def _stacked(self) -> Iterator[Text]:
            """A line for each number and text of a row, behind the name of its column."""
            names = [str(column.header) for column in self.columns]
            wide = max(map(cell_len, names))
            if self.title:
                yield words(self.title)
            for row in zip(*(list(column.cells) for column in self.columns), strict=True):
                for name, cell in zip(names, row, strict=True):
                    if str(cell):
                        lines = str(cell).replace("\n", f"\n{' ' * (wide + 2)}")
                        yield Text(f"{name}{' ' * (wide - cell_len(name))}  {lines}", overflow="fold")
                yield Text("")
            if self.caption:
                yield words(self.caption)

    return KeptWhole
