"""The command line: `credit validate`, `assign`, `compose`, `explain`, `audit`, `compare`, `show`, `methods`, `score` …

Exit codes: 0 success; 1 a wrong call or option, or an output that cannot be written; 2 nothing could be read; 3 some
traces were refused and the rest was processed (0 with `--allow-bad`); 130 interrupted; 141 the reader closed the pipe;
143 terminated. An error that the library raises on purpose is one line `error: ...` on standard error, without a
traceback.

Commands import what they need when they run, so that `credit --help` answers quickly.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import click

import credit
from credit import __version__
from credit.cli.advantages.assign import assign
from credit.cli.advantages.fit import fit
from credit.cli.benchmarks.bench import bench
from credit.cli.benchmarks.demo import demo
from credit.cli.composition.audit import audit
from credit.cli.composition.compose import compose
from credit.cli.composition.explain import explain
from credit.cli.logs.card import card
from credit.cli.logs.convert import convert
from credit.cli.logs.costs import costs
from credit.cli.logs.decisions import decisions
from credit.cli.logs.doctor import doctor
from credit.cli.logs.if_edited import if_edited
from credit.cli.logs.label import label
from credit.cli.logs.list_traces import traces
from credit.cli.logs.metrics import metrics
from credit.cli.logs.report import report
from credit.cli.logs.schema import schema
from credit.cli.logs.show import show
from credit.cli.logs.summary_by import summary
from credit.cli.logs.untrusted import untrusted
from credit.cli.logs.validate import validate
from credit.cli.logs.view import view
from credit.cli.logs.watch import watch
from credit.cli.logs.why import why
from credit.cli.replays.plan import plan
from credit.cli.replays.replay import replay
from credit.cli.replays.shapley import shapley
from credit.cli.replays.siblings import siblings
from credit.cli.shared.provenance import CALL
from credit.cli.shared.reading import REFUSED
from credit.cli.shell_completion import completion
from credit.cli.trust.check import check
from credit.cli.trust.choose import choose
from credit.cli.trust.compare import compare
from credit.cli.trust.list_methods import methods
from credit.cli.trust.score import score

__all__ = ["BROKEN_PIPE", "INTERRUPTED", "NOTHING_READ", "REFUSED", "TERMINATED", "USAGE", "cli"]

USAGE, NOTHING_READ = 1, 2
INTERRUPTED, BROKEN_PIPE, TERMINATED = 128 + signal.SIGINT, 128 + 13, 128 + signal.SIGTERM  # as shells count signals


class CommandLine(click.Group):
    """The group of commands `credit`; errors become lines and exit codes."""

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
                except click.exceptions.NoArgsIsHelpError as error:
                    error.show()
                    code = USAGE
                except click.ClickException as error:
                    _show_usage(error)
                    code = USAGE
                except click.Abort:
                    code = INTERRUPTED
        except click.exceptions.Exit as leaving:
            code = leaving.exit_code
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> click.Context:
        """As click's, which prints `--help` and `--version` here, and exits by 1 where the reader closed the pipe."""
        call = [*args]
        with _readers_may_leave():
            context = super().make_context(info_name, args, *more, **extra)
        context.meta[CALL] = call
        return context

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's; a name that no command has is answered by the nearest ones."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else "`credit --help` lists all."
            if name in dir(credit):
                hint = f'Python has it: `python -c "import credit; help(credit.{name})"`.'
            ctx.fail(f"No command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by what they are for, the first ones to use first."""
        left = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        for title, names in [*SECTIONS.items(), ("More", tuple(left))]:
            commands = [(name, left.pop(name)) for name in names if name in left]
            if commands:
                with formatter.section(title):
                    formatter.write_dl([(name, c.get_short_help_str(100)) for name, c in commands if c is not None])

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
                from credit.cli.shared.answers import stderr
                from credit.cli.shared.reading import list_problems

                _complain(str(error).splitlines()[0])
                list_problems(error.problems, stderr(), in_full=True)
                return NOTHING_READ
            if isinstance(error, CreditError):
                _complain(str(error))
                return USAGE
            raise


@contextlib.contextmanager
def _readers_may_leave() -> Iterator[None]:
    """Exit silently where the reader closed the pipe (for example, `head`); click would report an error.

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
    """Send further output to nowhere: Python flushes streams once more at exit, which must not fail again."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_usage(error: click.ClickException) -> None:
    """An error of the call: how to call the command, where to read more, and what was wrong."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is not None:
        click.echo(f"{ctx.get_usage()}\nTry '{ctx.command_path} --help' for help.", err=True)
    _complain(error.format_message())


def _complain(message: str) -> None:
    from graphs.text import printable

    click.echo(f"error: {printable(message)}", err=True)


START = """\
credit assigns the reward of a team of LLM agents to what each agent did.

  credit demo             generate logs with known credit and run everything on them
  credit validate runs/   check your logs and report which groups carry a training signal
  credit view runs/       look at them in a browser: traces, outcomes, who earned what
  credit choose runs/     recommend a method for them, with the command to run

`credit --help` lists all commands, `credit COMMAND --help` their options and examples."""

SECTIONS: dict[str, tuple[str, ...]] = {
    "Start here": ("demo", "validate", "choose"),
    "Look at logs": ("report", "view", "traces", "show", "summary", "watch", "label"),
    "Measure teams": ("doctor", "card", "metrics", "costs", "decisions", "why", "if-edited", "untrusted"),
    "Assign credit": ("assign", "methods", "fit", "shapley"),
    "Compose methods": ("compose", "explain", "audit", "compare"),
    "Check results": ("score", "check", "bench"),
    "Files": ("convert", "schema", "completion"),
}
"""The commands in the order of the help."""


@click.group(
    cls=CommandLine,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="credit")
@click.pass_context
def cli(ctx: click.Context, /) -> None:
    """Who earned the reward? Read logs of LLM agent teams and assign credit to what each agent did."""
    if ctx.invoked_subcommand is None:
        click.echo(START)


for _command in (
    validate, assign, compose, explain, audit, compare, report, view, label, traces, show, summary, metrics, costs,
    card, doctor, decisions, why, if_edited, untrusted, methods, choose, watch, score, check, convert, schema, demo,
    completion, fit, bench, plan, replay, shapley, siblings,
):  # fmt: skip
    cli.add_command(_command)
