"""`credit score reliability`: do two halves of the logs give the same credit?"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from credit.cli.assign import evidence_option, method_option, method_options
from credit.cli.reading import allow_bad, exit_code, list_problems, read_traces, reads_logs, stderr, stdout, words

if TYPE_CHECKING:
    from graphs.traces import Traces

__all__ = ["reliability"]

KINDS, HALVES = ("tool", "agent", "role", "type"), ("groups", "traces")


@click.command(short_help="Agreement between halves of the logs.")
@reads_logs()
@method_option
@method_options
@evidence_option
@click.option("--by", type=click.Choice(KINDS), default="tool", show_default=True, help="What a kind of action is.")
@click.option("--splits", type=click.IntRange(1), default=20, show_default=True, help="Random splits to average.")
@click.option("--seed", default=0, show_default=True, help="Of splits and intervals.")
@allow_bad
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def reliability(
    ctx: click.Context,
    paths: tuple[str, ...],
    method: str,
    given: tuple[str, ...],
    also: tuple[str, ...],
    by: str,
    splits: int,
    seed: int,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Split the logs in two at random, assign credit in each half alone, and see how well the halves agree.

    Tasks are split, and the traces of each task. The numbers compared are mean advantages of kinds of action.
    """
    from credit.cli.options import parse_options, run_method
    from credit.reliability import reliability as agreement
    from graphs.errors import CreditError

    parse_options(method, given)
    traces = read_traces(paths, **reading)

    def run(half: Traces) -> Any:
        return run_method(half, method, given, also)

    found: dict[str, Any] = {}
    for halves in HALVES:
        try:
            found[halves] = agreement(traces, run, by=by, halves=halves, splits=splits, seed=seed)  # type: ignore[arg-type]
        except CreditError as error:
            found[halves] = str(error)
    if as_json:
        import msgspec

        plain = {k: v if isinstance(v, str) else dataclasses.asdict(v) for k, v in found.items()}
        click.echo(msgspec.json.format(msgspec.json.encode({"method": method, "by": by, "halves": plain})))
    else:
        from rich.table import Table

        table = Table(
            "halves of", "agreement", "95 % interval", "of the whole", "numbers", "tasks", box=None, pad_edge=False
        )
        for halves, r in found.items():
            if isinstance(r, str):
                table.add_row(halves, words(r))
                continue
            interval = f"{r.low:+.2f} to {r.high:+.2f}"
            table.add_row(
                halves, f"{r.agreement:+.2f}", interval, f"{r.stepped_up:+.2f}", f"{r.units:.0f}", str(r.groups)
            )
        stdout().print(table)
    list_problems(traces.problems, stderr(), all_=False)
    ctx.exit(exit_code(traces, allow_bad))
