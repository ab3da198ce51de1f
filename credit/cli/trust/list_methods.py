"""`credit methods`: every method and its promises; given logs, which of them these logs allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import json_option, leave, print_json
from credit.cli.shared.reading import allow_bad, read_traces, reads_logs, stdout, words

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["methods"]


@click.command(short_help="List methods; which of them logs allow.")
@reads_logs(required=False)
@allow_bad
@json_option
@click.pass_context
def methods(ctx: click.Context, /, paths: tuple[str, ...], allow_bad: bool, as_json: bool, **reading: Any) -> None:
    """List methods, and published names; with logs, say which are computable, degenerate, or lack evidence."""
    from credit.methods.availability import availability

    traces = read_traces(paths, **reading) if paths else None
    states = None if traces is None else availability(traces)
    if as_json:
        print_json(_plain(states))
    else:
        console = stdout()
        console.print(_promises() if states is None else _states(states))
        console.print(_published(states))
    if traces is not None:
        leave(ctx, traces, allow_bad)


def _plain(states: dict[str, Any] | None) -> dict[str, Any]:
    """Methods by name, then published names that lead to one of them or to none."""
    import dataclasses

    from credit.methods.published import PUBLISHED
    from credit.methods.registry import METHODS

    plain: dict[str, Any] = {}
    for name, method in METHODS.items():
        plain[name] = {f.name: getattr(method, f.name) for f in dataclasses.fields(method) if f.name != "fn"}
    for name, paper in PUBLISHED.items():
        row = {"title": paper.title, "method": paper.method, "note": paper.note, "portable": paper.portable}
        plain[name] = plain.get(name, {"status": paper.status}) | row
    for name, state in (states or {}).items():
        plain[name] |= dataclasses.asdict(state)
    return plain


def _promises() -> Table:
    from credit.methods.registry import METHODS

    table = _grid("method", "unit", "estimand", "unbiased", "scope", "needs", "cost", "status", "reference")
    for name, m in METHODS.items():
        needs, unbiased = ", ".join(m.needs) or "-", "yes" if m.unbiased else "no"
        row = (name, m.unit, m.estimand, unbiased, m.scope, needs, m.cost, m.status, m.reference)
        table.add_row(*map(words, row))
    return table


def _states(states: dict[str, Any]) -> Table:
    from credit.methods.registry import METHODS

    table = _grid("method", "on these logs", "why", "what it computes")
    style = {"computable": "green", "degenerate": "yellow", "missing": "red"}
    for name, method in METHODS.items():
        state = states[name]
        table.add_row(
            words(name), words(state.state, style[state.state]), words(state.why or "-"), words(method.summary)
        )
    return table


def _published(states: dict[str, Any] | None) -> Table:
    """Every published name, what computes it, and how sure that is."""
    from credit.methods.published import PUBLISHED

    table = _grid("name", "status" if states is None else "on these logs", "by", "published as, how sure, or why not")
    for name, paper in PUBLISHED.items():
        state = paper.status if states is None else states[name].state
        portable = f"; what can be used: {paper.portable}" if paper.portable else ""
        table.add_row(*map(words, (name, state, paper.method or "-", f"{paper.title}: {paper.note}{portable}")))
    return table


def _grid(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, header in enumerate(headers):
        table.add_column(header, no_wrap=i == 0, overflow="fold")
    return table
