"""`credit why`: the actions that an event depended on, by credit."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.text import signed

__all__ = ["why"]

LEGEND = (
    ("credit: ", "credit: credit − baseline of the action"),
    ("±: ", "±: one standard error"),
    ("*", "* beyond two of these"),
    ("–", "–: there is none, or no error"),
    ("path: ", "path: events from the action to the event, over logged edges and the order of each agent"),
)

DEPENDS = "The list says what the event depended on, not who is to blame; no number has a *."


@click.command(
    cls=Command,
    short_help="List the actions that an event depended on.",
    examples="credit why runs/ q1-a e7 --method rloo",
)
@reads_logs()
@method_option
@method_options
@evidence_option
@click.option("--most", type=click.IntRange(1), default=10, show_default=True, help="How many actions to list.")
@allow_bad
@json_option
@click.pass_context
def why(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    most: int,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """List the actions that an event depended on, the largest credit first, with causal paths.

    The last two arguments are a trace's id and the id or number of one of its events: PATH... TRACE EVENT.
    """
    if len(paths) < 3:
        raise click.UsageError(f"expected PATH... TRACE EVENT, and {len(paths)} of them were given")
    from credit.methods.option_texts import parse_options
    from credit.methods.running import has_outcomes, run, without_outcomes
    from credit.metrics.event_influence import why as find_responsible
    from credit.reports.missing_lines import LACKING, lacking_traces
    from credit.telling_apart import alike_by, apart_by_events, place_note, tells_apart

    *logs, trace, event = paths
    options = parse_options(method, option_texts)
    traces = read_traces(tuple(logs), **reading)
    row, credit = traces.event_row(trace, event), None
    if has_outcomes(traces):
        with working(stderr(), f"computing {method}"):
            credit = run(traces, method, evidence=also, **options)
    found = find_responsible(traces, row, credit, most=most)
    lacks_lines = bool(lacking_traces(traces)[int(traces.graph.trace_ids[row])])
    if as_json:
        print_json(
            {"trace": trace, "event": event, "method": method, "actions": [dataclasses.asdict(x) for x in found],
             "lacks_lines": lacks_lines}
        )  # fmt: skip
    elif found:
        table = plain_table("action", "agent", "type", "#credit", "#±", "", "path")
        for reason in found:
            amount = "–" if reason.amount is None else signed(reason.amount, 4)
            error = "–" if reason.stderr is None else f"{reason.stderr:.3g}"
            cells = (amount, error, "*" if reason.stands_out else "")
            table.add_row(words(reason.event), words(reason.agent), reason.type, *cells, words(" → ".join(reason.path)))
        stdout().print(table)
        explain(stdout(), table, *LEGEND)
        if credit is None:
            stdout().print(words(str(without_outcomes(traces))), soft_wrap=True)
        elif without := sorted({reason.without for reason in found} - {""}):
            stdout().print(words(f"without credit by {method}: {'; '.join(without)}"), soft_wrap=True)
        if credit is not None and not tells_apart(traces, credit, method):
            alike = alike_by(method, "one of these actions", "they", apart_by_events(traces))
            stdout().print(words(f"{alike} {DEPENDS}"), soft_wrap=True)
        elif credit is not None and (note := place_note(traces, credit)):
            stdout().print(words(note), soft_wrap=True)
    else:
        stdout().print(words(f"no action leads to event {event}"), soft_wrap=True)
    if lacks_lines and not as_json:
        stdout().print(f"{LACKING}: other actions may have led to the event, too", soft_wrap=True)
    leave(ctx, traces, allow_bad)
