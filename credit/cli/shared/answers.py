"""How commands that read logs end: an answer for people or for programs, what was refused, and the exit code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import click

from credit.cli.shared.reading import HasProblems, exit_code, list_problems, stderr

__all__ = ["json_option", "leave", "print_json"]

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


def leave(ctx: click.Context, read: HasProblems, allow_bad: bool) -> NoReturn:
    """List refusals on standard error, and exit with the code that tells whether there were any."""
    list_problems(read.problems, stderr(), all_=False)
    ctx.exit(exit_code(read, allow_bad))
