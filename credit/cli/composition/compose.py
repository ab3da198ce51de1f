"""`credit compose`: several methods as one ledger that adds up to the reward."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.channel_weights import takes_channels
from credit.cli.shared.claims import makes_ledger, settled, takes_claims
from credit.cli.shared.commands import Command, Limit
from credit.cli.shared.outputs import (
    output_option,
    picture_option,
    prints_table,
    save_picture,
    save_table,
    table_path,
)
from credit.cli.shared.progress import steps
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.errors import CreditError
from graphs.text import excerpt

if TYPE_CHECKING:
    from credit.ledger import Ledger
    from credit.methods.claims import ClaimRequest
    from estimators.base import Credit

__all__ = ["compose"]

LEGEND = (
    "entry: an action's part of return − expected. explained: by what was known before the outcome; 1 is all of it, "
    "below 0 is worse than nothing. noise: the entries may as well be 0."
)


@click.command(
    cls=Command,
    short_help="Compose methods into a ledger that adds up to the reward.",
    examples="""
    credit compose runs/ --methods rloo,c3 -o ledger.parquet
    credit compose runs/ --methods rloo,c3 -o ledger.parquet --advantage control --advantages-to a.parquet
    credit compose runs/ --methods rloo,gae --level agent -o ledger.csv --plot ledger.svg
    """,
)
@reads_logs()
@takes_claims
@makes_ledger
@takes_channels
@output_option(
    "File to write: .parquet, .csv, .jsonl or .arrow. - writes CSV to standard output.", required=True, allow_dash=True
)
@click.option(
    "--level",
    default="event",
    show_default=True,
    type=click.Choice(["trace", "role", "agent", "turn", "event", "decision"]),
    help="Write one row for each unit of this level; decision: spawn, whom, message, aggregate, stop, tool.",
)
@click.option(
    "--advantage",
    type=click.Choice(["control", "entry", "even"]),
    help="Also compute advantages to train on; needs --advantages-to, the file for them.",
)
@click.option(
    "--advantages-to", "target", metavar="FILE", callback=table_path, type=click.Path(dir_okay=False, path_type=Path),
    help="File for the --advantage, which needs it: as `credit assign` writes it.",
)  # fmt: skip
@click.option("--scale", metavar="NAME", help="Divide the advantages by a scale: agent_name, role_name, or a method.")
@click.option(
    "--max-advantage",
    metavar="N",
    type=Limit(),
    help="Largest advantage without --scale, in spreads of the rewards of its group; inf: any. Default: 10.",
)
@click.option(
    "--decided-before",
    "before",
    multiple=True,
    metavar="METHOD",
    help="Assert that scored events were fixed before acting. May be repeated.",
)
@picture_option
@click.option("--trace", "drawn", metavar="ID", help="Trace to draw. Default: the first with an outcome.")
@allow_bad
@json_option
@click.pass_context
def compose(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    asked: ClaimRequest,
    making: dict[str, Any],
    output: Path,
    level: Any,
    advantage: Any,
    target: Path | None,
    weights: dict[str, float],
    scale: str | None,
    max_advantage: float | None,
    before: tuple[str, ...],
    plot: Path | None,
    drawn: str | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Compose several methods into one ledger.

    The entries of a trace sum to its reward exactly. Claims on one event are averaged, never added.
    """
    _check_advantage(advantage, target, scale, max_advantage, before)
    if drawn is not None and plot is None:
        raise click.UsageError("--trace names the trace to draw; expected --plot FILE with it")
    prints_table(output, as_json)
    asked.check()
    from credit.ledger.from_methods import compose_channels, compose_claims, with_versions
    from credit.ledger.signal import LIMIT
    from credit.ledger.training import LargeAdvantageError, LargeAdvantageWarning
    from credit.ledger_summary import ledger_summary

    traces = read_traces(paths, **reading)
    asked = settled(asked, traces)
    shown = None if drawn is None else traces.index(drawn)
    claims: dict[str, Credit] = {}
    if weights:
        outcome = reading["reward_channel"]
        making.pop("expected")
        ledger, _ = compose_channels(traces, weights, asked.names, asked.compute, outcome=outcome, **making)
    else:
        traces, claims = asked.run(traces, progress=functools.partial(steps, stderr()))
        ledger = compose_claims(traces, claims, **making)
    signal = too_large = None
    if advantage is not None:
        asserted = [source for name in before for source in _sources(name, claims, ledger, weights)]
        limit = LIMIT if max_advantage is None else max_advantage
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LargeAdvantageWarning)  # a condition below says it
                signal = ledger.advantage(
                    advantage, scale=_scale(scale, claims), decided_before=tuple(asserted), limit=limit
                )
        except LargeAdvantageError as error:  # the ledger holds all the same
            too_large = error
        else:
            signal = with_versions(signal, traces)
    save_table(ledger.table(traces, level), output)
    if plot is not None:
        from credit.plot import draw_ledger

        first = int(ledger.scored.argmax())  # the first trace, if none has a reward: drawing it says so
        save_picture(draw_ledger(traces, ledger, first if shown is None else shown), plot)
    console = stderr()
    for name, weight in weights.items():
        console.print(words(f"channel {name}: weight {weight:.6g}"), soft_wrap=True)
    summary = ledger_summary(traces, ledger, claims)
    for line in summary.lines():
        console.print(words(line), soft_wrap=True)
    console.print(LEGEND, soft_wrap=True)
    if too_large is not None:
        event, trace = traces.events["event"][too_large.event], traces.traces["trace"][too_large.trace]
        place = f"event {event} of trace {excerpt(trace.as_py(), 200)}"
        advice = f"{output} is written, {target} is not: --scale NAME bounds advantages"
        advice += f", --max-advantage {'N' if too_large.measured else 'inf'} admits these"
        raise CreditError(too_large.said(place, advice))
    if signal is not None and target is not None:
        from credit.tables.advantages import table

        save_table(table(traces, signal.credit), target)
        for line in str(signal).splitlines():
            console.print(words(line), soft_wrap=True)
    if as_json:
        files = {"output": str(output), "advantages_to": None if target is None else str(target)}
        print_json(summary.as_json() | {"channels": weights} | files)
    leave(ctx, traces, allow_bad)


def _check_advantage(
    advantage: str | None, target: Path | None, scale: str | None, most: float | None, before: tuple[str, ...]
) -> None:
    """Refuse options of advantages without advantages, before anything is read."""
    if (advantage is None) != (target is None):
        raise click.UsageError(
            "--advantage and --advantages-to need each other: the kind of advantages, and the file to write"
        )
    if (scale is not None or most is not None or before) and advantage is None:
        raise click.UsageError(
            "--scale, --max-advantage and --decided-before apply to advantages; expected --advantage with them"
        )
    if scale is not None and most is not None:
        raise click.UsageError("--scale bounds the advantages itself; expected --scale or --max-advantage")
    if before and advantage != "control":
        raise click.UsageError(f"--decided-before applies to --advantage control; --advantage is {advantage}")


def _scale(name: str | None, claims: dict[str, Any]) -> Any:
    """The claim of --methods with this name, else the name, which the ledger resolves."""
    return claims.get(name, name) if name is not None else None


def _sources(name: str, claims: dict[str, Credit], ledger: Ledger, weights: dict[str, float]) -> list[str]:
    """The sources of a ledger that a name of --methods stands for: one, or one for each channel.

    Raises:
      CreditError: the ledger has no source of this name.
    """
    sources = [claims[name].source] if name in claims else []
    if weights:
        known = [*(claim.source for claim in ledger.claims), *ledger.refused]
        sources = [source for source in dict.fromkeys(known) if source in {f"{channel}/{name}" for channel in weights}]
    if not sources:
        raise CreditError(f"--decided-before names {name!r}; expected one of --methods or of the judges")
    return sources
