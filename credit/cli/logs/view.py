"""`credit view`: the page of `credit report`, served to the browser of this machine."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import stderr
from credit.cli.shared.claims import makes_ledger, settled, takes_claims
from credit.cli.shared.commands import Command, sides_option, success_option, takes_prices
from credit.cli.shared.pages import page_title, quoted, serve, served, titled
from credit.cli.shared.progress import steps, working
from credit.cli.shared.reading import allow_bad, exit_code, list_problems, read_sides, reads_logs

if TYPE_CHECKING:
    from credit.methods.claims import ClaimRequest
    from credit.metrics.event_costs import Prices

__all__ = ["view"]


@click.command(
    cls=Command,
    short_help="Show the page of `report` in a browser, for logs of any size.",
    examples="""
    credit view runs/
    credit view runs/ --methods rloo,gae --port 8000 --no-browser
    """,
)
@reads_logs()
@takes_claims
@success_option
@sides_option
@takes_prices(", which add money to the costs")
@makes_ledger
@titled
@quoted
@served
@allow_bad
@click.pass_context
def view(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    asked: ClaimRequest,
    success_at: float | None,
    sides: str | None,
    prices: Prices | None,
    making: dict[str, Any],
    title: str | None,
    no_text: bool,
    port: int,
    no_browser: bool,
    allow_bad: bool,
    **reading: Any,
) -> None:
    """Show the page of `credit report` in a browser. Ctrl-C ends the command.

    The page asks for one trace at a time, so logs may be of any size. The command listens on 127.0.0.1 only, and
    serves nothing but the page, under an address with a random token. Without --methods it takes those that
    `credit choose` recommends.
    """
    asked.check(least=0)
    from credit.page import Findings, PageServer

    traces, chosen = read_sides(sides, paths, **reading)
    list_problems(traces.problems, stderr())
    traces, claims = settled(asked, traces, least=0).run(traces, progress=functools.partial(steps, stderr()))
    title = title or page_title("Credit report", paths)
    with working(stderr(), "composing"):
        server = PageServer(
            Findings.of(traces, claims, text=not no_text, success_at=success_at, prices=prices, sides=chosen, **making),
            title=title,
            port=port,
        )
    serve(server, no_browser=no_browser)
    ctx.exit(exit_code(traces, allow_bad))
