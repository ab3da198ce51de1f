"""`credit methods`: all methods, some methods, or which methods logs allow."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.text import Text

    from credit.methods.availability import Availability
    from credit.methods.method_page import MethodPage

__all__ = ["methods"]

NARROW = 80
"""Columns of a terminal below which cells of a table are one word wide."""
WIDEST = 110
"""Letters of a line of a cell, also in a file, which has room for more."""

LEGEND = """\
unit: the events that share one number. needs: evidence that the log must hold.
`credit methods NAME` describes one method, `credit methods --all` adds what each estimates, whether the policy gradient
has the right mean (unbiased), scope, cost, source and published names,
`credit methods --catalog` lists the methods of two surveys. `credit methods runs/` says which methods logs allow."""

CATALOG_LEGEND = """\
runs: computed here. channel: its rewards, stated in the log, enter the method beside it. needs: evidence that must be
made first. not computable: no log holds what it needs. `credit methods NAME` says how a log states what NAME needs."""


@click.command(
    cls=Command,
    short_help="List methods, describe some, or show which ones logs allow.",
    examples="""
    credit methods
    credit methods rloo
    credit methods rloo,opo --bibtex
    credit methods --catalog
    credit methods runs/
    """,
)
@reads_logs(required=False)
@click.option("--all", "all_", is_flag=True, help="Add estimand, bias, scope, cost, source and published names.")
@click.option("--bibtex", is_flag=True, help="With names of methods, print BibTeX of their papers, as far as known.")
@click.option("--catalog", is_flag=True, help="List the methods of two surveys, and what this library does about each.")
@allow_bad
@json_option
@click.pass_context
def methods(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    all_: bool,
    bibtex: bool,
    catalog: bool,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """List methods; with names of methods describe them; with logs show which methods they allow.

    The name of a method is that method, though a file is called so: write ./rloo for the file.
    """
    if any("," in path for path in paths) and not any(Path(path).exists() for path in paths):
        parts = tuple(part.strip() for path in paths for part in path.split(","))
        paths = parts if bibtex or _are_names(parts) else paths
    if catalog:
        if paths:
            raise click.UsageError("--catalog lists the surveys' methods; expected it without a PATH")
        _print_catalog(as_json)
        return
    if bibtex:
        if not paths:
            raise click.UsageError("--bibtex takes names of methods or of the catalog")
        from credit.methods.citations import FIELDS, NoPaperError
        from credit.methods.citations import bibtex as entries

        cited, lacking = [], []
        for name in paths:  # what has none does not keep the others from being cited
            try:
                entries(name)
                cited.append(name)
            except NoPaperError as error:
                lacking.append(str(error))
        if not cited:
            raise NoPaperError("; ".join(lacking))
        found = entries(*cited)
        click.echo(found)
        for line in lacking:
            stderr().print(words(f"left out: {line}"), soft_wrap=True)
        if "and others" in found or any(found.count(f"  {field} = ") < found.count("@misc") for field in FIELDS):
            click.echo("what the library does not know is left out, as titles and authors: see the papers", err=True)
        return
    if paths and _are_names(paths):
        from credit.methods.method_page import method_page

        pages = [method_page(name) for name in dict.fromkeys(paths)]
        if as_json:
            print_json(pages[0].as_json() if len(pages) == 1 else {page.name: page.as_json() for page in pages})
            return
        for i, page in enumerate(pages):
            stdout().print("\n" * (i > 0), end="")
            _print_page(page)
        return
    traces, states = None, None
    if paths:
        from credit.methods.availability import availability  # imports JAX

        traces = read_traces(paths, **reading)
        states = availability(traces)
    console = stdout()
    if as_json:
        print_json(_plain(states))
    elif states is not None:
        console.print(_states(states))
        console.print(_published(states))
    elif all_:
        console.print(_promises())
        console.print(_published(None))
    else:
        console.print(_short())
        console.print(LEGEND, soft_wrap=True)
    if traces is not None:
        leave(ctx, traces, allow_bad)


def _are_names(given: Sequence[str]) -> bool:
    """Whether all are names of methods; else they are logs."""
    from credit.methods.published import is_named

    named = [name for name in given if is_named(name) and "/" not in name]
    logs = [name for name in given if name not in named and (name == "-" or Path(name).exists())]
    if named and logs:
        raise click.BadParameter(f"{named[0]!r} is a method and {logs[0]!r} are logs; expected one kind")
    for name in named:
        if Path(name).exists():
            stderr().print(words(f"{name} is a method here; the logs of this name: ./{name}"), soft_wrap=True)
    for name in () if logs else given:
        if name not in named and ("/" in name or Path(name).suffix):
            raise click.BadParameter(f"{name!r} does not exist; expected logs or a method", param_hint="PATH")
    return not logs


def _print_catalog(as_json: bool) -> None:
    from credit.methods.catalog import CATALOG

    if as_json:
        print_json([dataclasses.asdict(row) | {"needs": row.needs} for row in CATALOG])
        return
    headers = ("method", "arXiv", "here", "by", "needs", "what differs, or why not")
    cells = ((row.name, row.paper, row.state, row.by, ", ".join(row.needs), row.note) for row in CATALOG)
    stdout().print(_grid(headers, [list(map(words, row)) for row in cells]))
    stdout().print(CATALOG_LEGEND, soft_wrap=True)


def _print_page(page: MethodPage) -> None:
    console = stdout()
    console.print(words(page.name, "bold"))
    for title, rows in (
        ("", page.facts),
        ("Needs from the log", page.needs),
        ("Can use from the log", page.takes),
        ("Options", page.options),
        ("Published names", page.published),
    ):
        if not rows:
            continue
        console.print()
        if title:
            console.print(words(title, "bold"))
        table = plain_table("", "")
        table.show_header = False
        for name, text in rows.items():
            table.add_row(words(name), words(text))
        console.print(table)
    if page.docstring:
        console.print()
        if page.method != page.name:
            console.print(words(f"{page.method}, in general", "bold"))
        for line in page.docstring.splitlines():
            console.print(words(line), soft_wrap=True)
    if page.method:
        console.print()
        console.print(
            words(f"run: credit assign runs/ --method {shlex.quote(page.name)} -o advantages.parquet"), soft_wrap=True
        )


_FUNCTIONS = ("fn", "state")  # of a row of METHODS, which no JSON holds


def _plain(states: dict[str, Availability] | None) -> dict[str, Any]:
    """Methods by name, then published names that lead to one of them or to none."""
    from credit.methods.published import PUBLISHED
    from credit.methods.registry import METHODS

    plain: dict[str, Any] = {}
    for name, method in METHODS.items():
        plain[name] = {f.name: getattr(method, f.name) for f in dataclasses.fields(method) if f.name not in _FUNCTIONS}
    for name, paper in PUBLISHED.items():
        row = {"title": paper.title, "method": paper.method, "note": paper.note, "portable": paper.portable}
        plain[name] = plain.get(name, {"status": paper.status}) | row
    for name, state in (states or {}).items():
        plain[name] |= dataclasses.asdict(state)
    return plain


def _short() -> RenderableType:
    from credit.methods.registry import METHODS

    headers = ("method", "unit", "needs", "computes")
    rows = [[*map(words, (name, m.unit, ", ".join(m.needs) or "-", m.summary))] for name, m in METHODS.items()]
    return _grid(headers, rows)


def _promises() -> RenderableType:
    from credit.methods.registry import METHODS

    headers = ("method", "unit", "estimand", "unbiased", "scope", "needs", "cost", "status", "reference")
    rows: list[Sequence[Text]] = []
    for name, m in METHODS.items():
        needs, unbiased = ", ".join(m.needs) or "-", "yes" if m.unbiased else "no"
        row = (name, m.unit, m.estimand, unbiased, m.scope, needs, m.cost, m.status, m.reference)
        rows.append(list(map(words, row)))
    return _grid(headers, rows)


def _states(states: dict[str, Availability]) -> RenderableType:
    from credit.methods.registry import METHODS

    headers = ("method", "on these logs", "why", "computes")
    rows: list[Sequence[Text]] = []
    style = {"computable": "green", "degenerate": "yellow", "missing": "red"}
    for name, method in sorted(METHODS.items(), key=lambda item: list(style).index(states[item[0]].state)):
        state = states[name]
        rows.append(
            [words(name), words(state.state, style[state.state]), words(state.why or "-"), words(method.summary)]
        )
    return _grid(headers, rows)


def _published(states: dict[str, Availability] | None) -> RenderableType:
    """Every published name, what computes it, and how sure that is."""
    from credit.methods.published import PUBLISHED

    headers = ("name", "status" if states is None else "on these logs", "computed by", "published as; notes")
    rows: list[Sequence[Text]] = []
    for name, paper in PUBLISHED.items():
        state = paper.status if states is None else states[name].state
        portable = f"; usable part: {paper.portable}" if paper.portable else ""
        by = paper.method or paper.function or "-"
        rows.append(list(map(words, (name, state, by, f"{paper.title}: {paper.note}{portable}"))))
    return _grid(headers, rows)


def _grid(headers: Sequence[str], rows: Sequence[Sequence[Text]]) -> RenderableType:
    """A table; on a terminal too narrow for one, a block a row, with each cell behind its header."""
    from rich import box
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    if stdout().width < NARROW:
        blocks: list[RenderableType] = []
        for name, *cells in rows:
            blocks.append(Text(name.plain, "bold"))
            for header, cell in zip(headers[1:], cells, strict=True):
                blocks.append(Padding(Text.assemble((f"{header} ", "dim"), cell), (0, 0, 0, 2)))
        return Group(*blocks)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, header in enumerate(headers):
        table.add_column(header, no_wrap=i == 0, overflow="fold", max_width=WIDEST)
    for row in rows:
        table.add_row(*row)
    return table
