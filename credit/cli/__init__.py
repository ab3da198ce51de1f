"""The command line: `credit validate`, `assign`, `compose`, `explain`, `audit`, `compare`, `show`, `methods`, `score` …

Exit codes: 0 all is well; 1 the call or its options are wrong, or the output cannot be written; 2 nothing could be
read; 3 some traces were refused and the rest was done (0 with `--allow-bad`); 130 interrupted; 141 the reader of the
output went away; 143 terminated. What the library refuses on purpose is one line `error: ...` on standard error, and
never a traceback.

Commands import what they need when they run, so that `credit --help` answers at once; a test sees to it.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import click

from credit.cli.advantages.assign import assign
from credit.cli.advantages.fit import fit
from credit.cli.benchmarks.bench_group import bench
from credit.cli.benchmarks.demo import demo
from credit.cli.composition.audit import audit
from credit.cli.composition.compose import compose
from credit.cli.composition.explain import explain
from credit.cli.logs.convert import convert
from credit.cli.logs.schema import schema
from credit.cli.logs.show import show
from credit.cli.logs.validate import validate
from credit.cli.replay.shapley_group import shapley
from credit.cli.shared.reading import REFUSED
from credit.cli.shell_completion import completion
from credit.cli.trust.choose import choose
from credit.cli.trust.compare import compare
from credit.cli.trust.list_methods import methods
from credit.cli.trust.score import score

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "NOTHING_READ", "REFUSED", "TERMINATED", "USAGE", "cli"]

USAGE, NOTHING_READ = 1, 2
INTERRUPTED, BROKEN_PIPE, TERMINATED = 128 + signal.SIGINT, 128 + 13, 128 + signal.SIGTERM  # as shells count signals


class Door(click.Group):
    """The group of commands; it turns errors into lines and exit codes."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and leave by `SystemExit` in either mode; click's own 2 for usage becomes 1."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a console may lack a character; the rest must still appear
        try:
            with _readers_may_leave():
                try:
                    code = super().main(args, prog_name or "credit", complete_var, standalone_mode=False, **extra)
                    if sys.stdout is not None:  # as it is where the shell closed it
                        sys.stdout.flush()
                except click.ClickException as error:
                    error.show()
                    code = USAGE
                except click.Abort:
                    code = INTERRUPTED
        except click.exceptions.Exit as leaving:
            code = leaving.exit_code
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """As click's, which prints `--help` and `--version` here, and leaves by 1 where their reader went away."""
        with _readers_may_leave():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named; errors raised on purpose become one line and an exit code."""
        with _readers_may_leave():
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except OSError as error:
            _complain(str(error))
            return USAGE
        except ValueError as error:
            from graphs.errors import CreditError, NothingReadError

            if isinstance(error, NothingReadError):
                from credit.cli.shared.reading import list_problems, stderr

                _complain(str(error).splitlines()[0])
                list_problems(error.problems, stderr(), all_=False)
                return NOTHING_READ
            if isinstance(error, CreditError):
                _complain(str(error))
                return USAGE
            raise


@contextlib.contextmanager
def _readers_may_leave() -> Iterator[None]:
    """Leave in silence where whoever read the output went away; click would take the same for an error of its own.

    Raises:
      click.exceptions.Exit: with `BROKEN_PIPE`.
    """
    try:
        yield
    except BrokenPipeError:
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                _keep_quiet(stream)
        raise click.exceptions.Exit(BROKEN_PIPE) from None


def _keep_quiet(stream: TextIO) -> None:
    """What nobody reads goes nowhere: Python flushes streams once more at exit, which must not fail again."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(message: str) -> None:
    from graphs.text import printable

    click.echo(f"error: {printable(message)}", err=True)


@click.group(cls=Door, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="orchestration-credit", prog_name="credit")
def cli() -> None:
    """Who earned the reward? Read logs of LLM agent teams and assign credit to what each agent did."""


for _command in (
    validate, assign, compose, explain, audit, compare, show, methods, choose, score, convert, schema, demo, completion,
    fit, bench, shapley,
):  # fmt: skip
    cli.add_command(_command)
