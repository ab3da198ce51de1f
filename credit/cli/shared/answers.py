"""What commands print: lines and tables for people, on a console each for results and for the rest, and JSON."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

__all__ = ["amount", "json_option", "plain_table", "print_json", "print_whole", "stderr", "stdout", "words"]

WIDTH, LEAST_WIDTH = 120, 40  # of tables where the output is no terminal, unless COLUMNS has another

_ROOM = 10_000  # wider than any table

_UNSEEN = re.compile(r"[^\n -~]")  # more than the control characters that JSON itself escapes


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json` (`as_json`): for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def print_json(plain: Any) -> None:
    """One JSON object of plain data, on standard output, which may be a terminal: no text in it can control that."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(plain)).decode()
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

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            """Raise, so that `credit.cli` chooses the exit code: Rich would exit with 1 at once."""
            raise BrokenPipeError

    console = Plain(stderr=stderr, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        columns = os.environ.get("COLUMNS", "")
        console.width = max(int(columns), LEAST_WIDTH) if columns.isdecimal() else WIDTH
    return console


def print_whole(table: Table) -> None:
    """A table as wide as it is where the output is no terminal and COLUMNS is not set: a file has room."""
    console = stdout()
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        console.width = max(console.width, console.measure(table, options=console.options.update(width=_ROOM)).maximum)
    console.print(table)


def words(text: object, style: str = "") -> Text:
    """Text from a log, for a table or a line: control characters made visible, markup without effect."""
    from rich.text import Text

    from graphs.text import printable

    return Text(printable(str(text)), style=style)


def amount(value: float | None, digits: int = 3) -> str:
    """A number in at least `digits` digits, never with an exponent unless it is below 0.001; "–" where there is none.

    Examples:
      >>> amount(2298.4), amount(16039700.0), amount(0.4567), amount(12.0), amount(None)
      ('2,298', '16,039,700', '0.457', '12', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 10**digits else f"{value:z.{digits}g}"


def plain_table(*columns: str) -> Table:
    """A table without lines; columns whose name begins with "#" hold numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        numbers = column.startswith("#")
        header = words(column.removeprefix("#"))
        table.add_column(header, justify="right" if numbers else "left", overflow="fold")
    return table
