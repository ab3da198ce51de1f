"""`credit assign`: from logs to a table of advantages, or to logs with advantages."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.claims import critic_option, dense_option, tell_unchecked
from credit.cli.shared.commands import Command
from credit.cli.shared.engines import engine_option
from credit.cli.shared.outputs import check_folder, prints_table, stay_outside, write_output
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs, tell_sources
from graphs.text import counted

if TYPE_CHECKING:
    from credit.method_summary import Summary
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["assign"]


def _methods(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from credit.methods.registry import METHODS

    return [CompletionItem(name, help=m.summary) for name, m in METHODS.items() if name.startswith(incomplete)]


method_option = click.option(
    "--method",
    "-m",
    default="rloo",
    show_default=True,
    shell_complete=_methods,
    help="Method; `credit methods` lists all.",
)
method_options = click.option(
    "--option", "option_texts", multiple=True, metavar="KEY=VALUE", help="Option of the method. May be repeated."
)


key_option = click.option(
    "--by",
    metavar="NAMES",
    help="With whom an action is compared: names by commas, such as task,agent,turn, or a column of a table.",
)

evidence_option = click.option(
    "--evidence", "also", multiple=True, metavar="NAME", help="Optional evidence to take from the log. May be repeated."
)


@click.command(
    cls=Command,
    short_help="Write a table of advantages.",
    examples="""
    credit assign runs/ -o advantages.parquet
    credit assign runs/ --method rloo --actions-only -o advantages.csv
    credit assign runs/ --method grpo --by task,agent,turn -o advantages.parquet
    credit assign runs/ --method gae --option lambda_=0.9 -o -
    credit assign runs/ --method rloo --to verifiers -o trained/traces.jsonl
    credit assign logs/ --method rloo --to inspect -o credited/
    """,
)
@reads_logs()
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="OUT",
    type=click.Path(allow_dash=True),
    help="File to write: .parquet, .csv, .jsonl or .arrow. - writes CSV to standard output. With --engine or "
    "--to inspect: a folder.",
)
@click.option(
    "--to",
    type=click.Choice(["table", "verifiers", "inspect"]),
    default="table",
    show_default=True,
    help="verifiers: the episodes that were read, with the advantages at their sampled tokens, in a .jsonl file. "
    "inspect: copies of the Inspect logs that were read, with the advantages in the metadata of model calls.",
)
@method_option
@method_options
@key_option
@evidence_option
@critic_option
@dense_option
@click.option("--chunk-events", type=click.IntRange(1), metavar="N",
              help="Read whole groups, about N events at a time: for native logs larger than memory.")  # fmt: skip
@engine_option("Compute parts of native logs side by side, here or on a cluster.")
@click.option("--actions-only", is_flag=True, help="Leave out events that no policy chose.")
@allow_bad
@json_option
@click.pass_context
def assign(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str,
    to: str,
    method: str,
    option_texts: tuple[str, ...],
    by: str | None,
    also: tuple[str, ...],
    critic: str | None,
    dense: str | None,
    chunk_events: int | None,
    engine: str | None,
    actions_only: bool,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Write a table of credit and advantages with one row for each event, or the logs with their advantages.

    Missing evidence is an error that says how to log it.
    """
    from credit.method_summary import Summary
    from credit.methods.claims import ClaimRequest
    from credit.methods.option_texts import parse_options
    from credit.methods.running import run
    from graphs.keys import column_of_key

    # Whatever can be wrong with the call is found before the logs are read.
    column = None
    if by is not None:
        by, column = column_of_key(by)
        if column is not None:
            reading["columns"] = (reading["columns"] or {}) | {"key": column}
    options = parse_options(method, option_texts if by is None else (*option_texts, f"by={by}"))
    tell_unchecked([method])
    if dense is not None and critic is None:
        raise click.UsageError("--dense has the features of a fitted critic; expected --critic with it")
    if engine is not None and to != "table":
        raise click.UsageError(f"--to {to} copies logs; --engine writes tables: expected one of them")
    if engine is not None and critic is not None:
        raise click.UsageError("--critic values all traces at once; expected it without --engine")
    if engine is not None and output == "-":
        raise click.BadParameter("--engine writes a file for each part; expected a folder", param_hint="--output")
    if engine is None:
        _check_output(ctx, to, output, chunk_events, actions_only, as_json)
    if engine is not None or chunk_events is not None:
        if critic is not None:
            raise click.UsageError("--critic evaluates all traces at once; expected it without --chunk-events")
        if output == "-":
            raise click.BadParameter("--chunk-events writes one whole table; expected a file", param_hint="--output")
        from credit.cli.advantages.assign_parts import assign_in_chunks, assign_on_ray

        in_parts: Any = assign_in_chunks if engine is None else assign_on_ray
        with _column_or_key(column):
            written = in_parts(
                paths, output, method, options, also, events=chunk_events, actions_only=actions_only, **reading
            )
        tell_sources(written.sources)
        wrote = f"wrote {counted(written.rows, 'row')} to {written.place}"
        counts = {"rows": written.rows, "output": output} | written.counts
        _tell(written.summary, method, options, also, wrote, counts, as_json)
        leave(ctx, written, allow_bad)
    with _column_or_key(column):
        traces = read_traces(paths, **reading)
    arrays = ClaimRequest((method,), critic=critic, dense=dense).of_critic(traces, [method])[method]
    with working(stderr(), f"computing {method}"):
        credit = run(traces, method, evidence=also, **arrays, **options)
    count = _write_table(traces, credit, output, actions_only) if to == "table" else _fill(traces, credit, to, output)
    summary = Summary()
    summary.add(traces, credit, method, options, arrays, also)
    key, name = _FILLED.get(to, ("rows", "row"))
    what = counted(count, name) if to == "table" else f"advantages of {counted(count, name)}"
    wrote = f"wrote {what} to {'standard output' if output == '-' else output}"
    _tell(summary, method, options, {*also, *arrays}, wrote, {key: count, "output": output}, as_json)
    leave(ctx, traces, allow_bad)


@contextmanager
def _column_or_key(column: str | None) -> Iterator[None]:
    """Where no log has the column that a key names, say which key may have been meant: an existing column wins.

    Raises:
      CreditError: no log has the column, and its name is almost that of a key.
    """
    from graphs.errors import CreditError, NothingReadError
    from graphs.keys import near_part

    try:
        yield
    except NothingReadError as error:
        hint = "" if column is None else near_part(column)
        if not hint or _NO_COLUMN.isdisjoint(problem.kind for problem in error.problems):
            raise
        raise CreditError(f"by names {column!r}; {hint} As a column: {error.problems[0]}") from error


_NO_COLUMN = frozenset({"missing-column", "other-format", "unknown-format"})
"""Kinds of problems of logs that are no tables, or tables without a column."""


def _tell(
    summary: Summary,
    method: str,
    options: dict[str, Any],
    given: Collection[str],
    wrote: str,
    counts: dict[str, Any],
    as_json: bool,
) -> None:
    """Say what was counted and written, on standard error; in JSON on standard output."""
    for line in (*summary.lines(method, options, given), wrote):
        stderr().print(words(line), soft_wrap=True)
    if as_json:
        print_json(summary.as_json(method, options, given) | counts)


_FILLED = {"verifiers": ("nodes", "message node"), "inspect": ("calls", "model call")}
"""What gets the advantages in copies of logs: its key in the JSON, and its name."""


def _check_output(
    ctx: click.Context, to: str, output: str, chunk_events: int | None, actions_only: bool, as_json: bool
) -> None:
    """Refuse an output that cannot be written."""
    from credit.tables.files import table_writer

    if to != "table":
        _check_copies(ctx, to, output, chunk_events, actions_only)
    elif output != "-" and Path(output).is_dir():
        raise click.BadParameter(f"{output!r} is a folder; expected a file", param_hint="--output")
    if not prints_table(output, as_json):
        if to != "inspect":
            table_writer(output)
        check_folder(Path(output), "--output")


def _check_copies(ctx: click.Context, to: str, output: str, chunk_events: int | None, actions_only: bool) -> None:
    """Refuse options that concern tables, and an output that would be read as a second copy of the logs."""
    if to == "verifiers" and not output.endswith(".jsonl"):
        raise click.BadParameter(f"{output!r}; expected a name ending in .jsonl with --to verifiers", ctx=ctx)
    if to == "inspect" and (output == "-" or Path(output).exists()):
        raise click.BadParameter(f"{output!r}; expected the name of a new folder with --to inspect", ctx=ctx)
    for option, is_set in (("--chunk-events", chunk_events is not None), ("--actions-only", actions_only)):
        if is_set:
            raise click.UsageError(f"{option} concerns tables; expected it without --to {to}")
    stay_outside(ctx, Path(output))


def _write_table(traces: Traces, credit: Credit, output: str, actions_only: bool) -> int:
    """Write the table, and return its number of rows."""
    from credit.tables.advantages import table

    rows = table(traces, credit, actions_only=actions_only)
    write_output(rows, output)
    return int(rows.num_rows)


def _fill(traces: Traces, credit: Credit, to: str, output: str) -> int:
    """Write copies of the logs with their advantages, and return the number of places that have one."""
    import numpy as np

    from graphs.writers import inspect_logs, verifiers

    write = verifiers.write if to == "verifiers" else inspect_logs.write
    return write(traces, np.asarray(credit.advantage), np.asarray(credit.valid), output)
