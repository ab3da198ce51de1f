"""`credit report`: one HTML file about logs, for people."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.claims import makes_ledger, settled, takes_claims
from credit.cli.shared.commands import Command, sides_option, success_option, takes_prices
from credit.cli.shared.outputs import output_option
from credit.cli.shared.pages import page_title, quoted, titled
from credit.cli.shared.progress import progress_bar, steps, working
from credit.cli.shared.reading import allow_bad, given_inputs, leave, read_sides, reads_logs

if TYPE_CHECKING:
    from credit.methods.claims import ClaimRequest
    from credit.metrics.event_costs import Prices

__all__ = ["report"]


@click.command(
    cls=Command,
    short_help="Write one HTML page: signal, who matters, the ledger, every trace.",
    examples="""
    credit report runs/ -o report.html
    credit report runs/ --methods rloo,gae -o report.html
    credit report sessions/ --no-text -o report.html
    """,
)
@reads_logs()
@takes_claims
@success_option
@sides_option
@takes_prices(", which add money to the costs")
@makes_ledger
@output_option("HTML file to write.", required=True, suffixes=(".html", ".htm"))
@titled
@quoted
@allow_bad
@json_option
@click.pass_context
def report(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    asked: ClaimRequest,
    success_at: float | None,
    sides: str | None,
    prices: Prices | None,
    making: dict[str, Any],
    output: Path,
    title: str | None,
    no_text: bool,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Write one HTML page about logs. It needs no network and no server.

    The page shows what was read, which groups carry a signal, success and length, who matters, the ledger, methods side
    by side, and an explorer of traces. Without --methods it takes those that `credit choose` recommends.
    """
    asked.check(least=0)
    from credit.page import Findings, write_page

    traces, chosen = read_sides(sides, paths, **reading)
    traces, claims = settled(asked, traces, least=0).run(traces, progress=functools.partial(steps, stderr()))
    with working(stderr(), "composing"):
        findings = Findings.of(
            traces, claims, text=not no_text, success_at=success_at, prices=prices, sides=chosen, **making
        )
    title = title or page_title("Credit report", paths)
    with progress_bar(stderr()) as bar:
        counts = write_page(
            findings,
            output,
            title=title,
            inputs=given_inputs(ctx),
            watch=lambda rows: bar.track(rows, description="packing"),
        )
    number = traces.sizes.traces
    if as_json:
        print_json({"output": str(output), "methods": list(claims), "traces": number, "in_explorer": len(counts)})
    else:
        stderr().print(words(f"wrote {output}, {output.stat().st_size:,} bytes"), soft_wrap=True)
        if len(counts) < number:
            note = f"the explorer holds {len(counts)} of {number} traces; the tables hold all"
            stderr().print(words(note), soft_wrap=True)
    leave(ctx, traces, allow_bad)
