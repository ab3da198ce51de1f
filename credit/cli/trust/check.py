"""`credit check`: whether a method obeys the laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import SEED, Command, by_commas
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.provenance import source

if TYPE_CHECKING:
    from credit.laws import LawResult

__all__ = ["check"]


@click.command(
    cls=Command,
    short_help="Test a method, or your own, by the laws.",
    examples="""
    credit check mine:estimator
    credit check mine:estimator --scope trace --skip replays --unbiased
    credit check rloo
    """,
)
@click.argument("name", metavar="METHOD")
@click.option(
    "--scope",
    type=click.Choice(["trace", "group", "batch", "sequence"]),
    help="Of your own function: whose rewards may change a trace's numbers; sequence: those of earlier traces.  "
    "[default: group]",
)
@click.option("--unbiased", is_flag=True, help="Of your own function: no later reward or evidence may move a baseline.")
@click.option(
    "--skip", multiple=True, callback=by_commas, metavar="LAWS", help="Laws to leave out, by commas or repeated."
)
@click.option(
    "--group-size", type=int, metavar="K", help="Traces of a group, 4 to 15.  [default: the least it answers]"
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the batches.")
@json_option
def check(
    name: str,
    scope: str | None,
    unbiased: bool,
    skip: tuple[str, ...],
    group_size: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Test a method by the laws of docs/laws.md, and say of each whether it holds.

    METHOD is a method, or your own function as module:function. Its keywords without a default are evidence, by names
    that logs have. The exit code is 1 where a law is broken, or was not tried since the method answers nothing.
    """
    from credit.laws import LAWS, LawError
    from credit.laws import check as check_laws
    from credit.methods.own_functions import is_own, load_function, own_name
    from credit.methods.published import find_method

    name = own_name(name)
    method = find_method(name)
    if not is_own(name) and (scope or unbiased):
        raise click.UsageError(f"--{'scope' if scope else 'unbiased'} is of your own functions: {name} states its own")
    with progress_bar(stderr()) as bar:
        todo = [law for law in LAWS if law not in skip]
        task = bar.add_task(f"compiling {name}", total=len(todo))

        def after_law(result: LawResult) -> None:
            bar.update(task, advance=1, description=f"{name}: {result.law}")

        report = check_laws(
            load_function(name) if is_own(name) else method,
            needs=method.needs,
            scope=scope or "group",  # type: ignore[arg-type]  # click.Choice names them
            unbiased=unbiased,
            skip=skip,
            seed=seed,
            group_size=group_size,
            strict=False,
            after_law=after_law,
        )
    if as_json:
        laws = [{"law": one.law, "passed": one.passed, "untried": one.untried, "detail": one.detail}
                for one in report.results]  # fmt: skip
        print_json({"method": name, "passed": report.passed, "group_size": report.group_size, "laws": laws,
                    "unmeasured": report.unmeasured, "source": source()})  # fmt: skip
    else:
        table = plain_table("law", "answer", "why")
        for row in report.rows:
            table.add_row(*map(words, row))
        stdout().print(table)
        for line in report.unmeasured:
            stdout().print(words(line.replace("unbiased=True", "--unbiased")), soft_wrap=True)
    if not report.passed:
        raise LawError(report)
