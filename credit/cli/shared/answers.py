"""How commands that read logs end: an answer for people or for programs, what was refused, and the exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.reading import exit_code, list_problems, stderr

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

__all__ = ["json_option", "leave", "print_json"]


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json` (`as_json`): for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def print_json(plain: Any) -> None:
    """One JSON object of plain data, on standard output."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(plain)))


def leave(ctx: click.Context, traces: Traces, allow_bad: bool) -> None:
    """List refusals on standard error, and exit with the code that tells whether there were any."""
    list_problems(traces.problems, stderr(), all_=False)
    ctx.exit(exit_code(traces, allow_bad))
