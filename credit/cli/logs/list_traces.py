"""`credit traces`: the traces of logs, one a line."""

from __future__ import annotations

from typing import Any

import click

from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from credit.reports.triage_legend import MARKS
from graphs.text import amount, at_least

__all__ = ["traces"]

SHOWN = 100  # traces that are listed unless all are asked for
SORTED = ("reward", "events", "actions", "agents", "tokens", "wall_clock", "errors")
LEGEND = (
    ("wall clock: ", "wall clock: seconds from the first begin to the last end, without waits for a person"),
    *MARKS,
)


@click.command(
    cls=Command,
    short_help="List traces.",
    examples="""
    credit traces runs/
    credit traces runs/ --group q1 --json
    credit traces runs/ --sort wall_clock
    """,
)
@reads_logs()
@click.option("--group", metavar="ID", help="List the traces of this group.")
@click.option("--sort", type=click.Choice(SORTED), help="List traces by this number, the greatest first.")
@click.option("--all", "all_", is_flag=True, help=f"List every trace instead of the first {SHOWN}.")
@allow_bad
@json_option
@click.pass_context
def traces(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    group: str | None,
    sort: str | None,
    all_: bool,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """List traces with their group, reward, sizes and errors; `credit show --trace ID` shows one."""
    from credit.reports.trace_list import trace_rows

    read = read_traces(paths, **reading)
    rows = trace_rows(read, group)
    if sort is not None:
        rows.sort(key=lambda row: (row[sort] is None, -(row[sort] or 0)))
    if as_json:
        print_json({"traces": rows})
    else:
        table = plain_table("trace", "group", *(f"#{name.replace('_', ' ')}" for name in SORTED), "file")
        for row in rows if all_ else rows[:SHOWN]:
            reward = "–" if row["reward"] is None else f"{row['reward']:z.6g}"
            tokens = "–" if row["tokens"] is None else str(row["tokens"])
            tokens = at_least(tokens, row["actions_with_tokens"] < row["actions"] and not row["lacks_lines"])
            numbers = (
                str(row["events"]),
                str(row["actions"]),
                str(row["agents"]),
                tokens,
                amount(row["wall_clock"]),
                "–" if row["errors"] is None else str(row["errors"]),
            )
            bounds = (at_least(number, row["lacks_lines"]) for number in numbers)
            table.add_row(words(row["trace"]), words(row["group"]), reward, *bounds, words(row["file"]))
        stdout().print(table)
        if len(rows) > SHOWN and not all_:
            stdout().print(f"… and {len(rows) - SHOWN} more; --all lists them")
        explain(stdout(), table, *LEGEND)
        actions, counted = (sum(row[name] for row in rows) for name in ("actions", "actions_with_tokens"))
        if 0 < counted < actions:
            stdout().print(f"tokens: of {counted} of {actions} actions; the others have no count")
    leave(ctx, read, allow_bad)
