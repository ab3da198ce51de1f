"""Pages that a command serves until it is interrupted."""

from __future__ import annotations

import contextlib
import datetime
import signal
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import stderr

if TYPE_CHECKING:
    from credit.page import PageServer

__all__ = ["page_title", "quoted", "serve", "served", "titled"]


def served(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--port` and `--no-browser`."""
    options = (
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=0,
            metavar="NUMBER",
            help="Port to listen on. Default: a free one.",
        ),
        click.option("--no-browser", is_flag=True, help="Print the address only."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def titled(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--title`."""
    return click.option("--title", help="Title of the page. Default: the names of the logs, and the date.")(command)


def quoted(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--no-text`."""
    words = "Quote nothing of the logs but names: no texts of events, no refused values."
    return click.option("--no-text", is_flag=True, help=words)(command)


def page_title(what: str, paths: Sequence[str]) -> str:
    """What a page is, of which logs, and of which day: "Credit report: runs, 2026-01-31".

    Args:
      what: the page is.
      paths: of the logs; three are named.
    """
    named = [Path(path).name or Path(path).resolve().name if path != "-" else "standard input" for path in paths]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return f"{what}: {', '.join(named[:3])}{more}, {datetime.date.today().isoformat()}"


def serve(server: PageServer, *, no_browser: bool, quiet: bool = False) -> None:
    """Print the address of a page, open it, and serve it until the command is interrupted.

    Args:
      server: of the page; it is closed at the end.
      no_browser: open no browser.
      quiet: print the address on standard error, where standard output is for an answer.
    """
    with contextlib.suppress(KeyboardInterrupt), _interruptible(), server:
        click.echo(server.url, err=quiet)
        stderr().print("Ctrl-C ends the command.", soft_wrap=True)
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
        server.serve()


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let an interrupt raise `KeyboardInterrupt`; the command's own handler would leave at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
