"""`credit costs`: tokens, tool calls, seconds and money by agent, role, decision, tool, model, system or trace."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stdout, words
from credit.cli.shared.commands import Command, takes_prices
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from credit.reports.triage_legend import MARKS
from graphs.text import amount as printed
from graphs.text import at_least, counted, percent

if TYPE_CHECKING:
    from rich.console import Console

    from credit.metrics.cost_summary import Amount, CostRow, GroupCosts
    from credit.metrics.event_costs import PriceGaps, Prices

__all__ = ["costs", "stated_lines", "total_line"]

TERMS = (
    *MARKS,
    ("seconds of work: ≥", "seconds of work ≥: when some events began is not logged; state `seconds`"),
    ("money: ≥", "money ≥: a count or a price is missing"),
)
OF_OTHERS = "no part of the team, so what it cost is in no sum:"
A_CALL, SLOW = "seconds a call", "1 in 10 over"
OF_A_CALL = f"{A_CALL}: median of calls, of tool or model; {SLOW}: what a tenth exceed"
OF_MODELS = "seconds of work of a model's row: without those of the tools that it called"
HEADS = {
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "input_tokens": "input tokens",
    "seconds": "seconds of work",
    "errors": "errors",
    "money": "money",
    "logged_money": "logged cost",
}
UNITS = ("agent", "role", "decision", "tool", "model", "system", "trace")


def _units(context: click.Context, parameter: click.Parameter, text: str) -> str:
    named = [name.strip() for name in text.split(",")]
    if not {*named} <= {*UNITS} or len({*named}) < len(named):
        raise click.BadParameter(f"{text!r}; expected some of {', '.join(UNITS)}, with commas and each once")
    return ",".join(named)


def _completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    complete, comma, last = incomplete.rpartition(",")
    return [CompletionItem(complete + comma + name) for name in UNITS if name.startswith(last)]


@click.command(
    cls=Command,
    short_help="Add up tokens, tool calls, seconds and money.",
    examples="""
    credit costs runs/ --by role
    credit costs runs/ --by agent,model --prices prices.csv
    """,
)
@reads_logs()
@click.option("--by", metavar="UNIT,...", callback=_units, shell_complete=_completed, default="agent",
              show_default=True, help=f"Unit to add up over, or several with commas: {', '.join(UNITS)}. Decisions are "
              "spawn, whom, message, aggregate, stop, tool, other.")  # fmt: skip
@takes_prices()
@allow_bad
@json_option
@click.pass_context
def costs(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    by: str,
    prices: Prices | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Add up what teams cost, in all and of a trace: tokens, tool calls, seconds, and money by a table of prices.

    Sums over events whose number the log lacks are lower bounds and marked so.
    """
    from credit.metrics.cost_summary import cost_rows, group_costs, rows_of_trace, stated_sums, total_costs
    from credit.metrics.event_costs import PriceGaps, price_gaps
    from credit.reports.missing_lines import few_lacking
    from credit.reports.uncounted_calls import failed_without_count, said_of_tool_calls, uncounted_tool_calls
    from credit.sides.unlike_tasks import unlike_tasks
    from graphs.event_types import EventType

    traces = read_traces(paths, **reading)
    rows, groups, stated = cost_rows(traces, by, prices), group_costs(traces), stated_sums(traces)
    gaps = PriceGaps([], [], [], [], [], [], [], [], []) if prices is None else price_gaps(traces, prices)
    total, unlike = total_costs(rows, traces.sizes.traces), unlike_tasks(traces) if "system" in by.split(",") else ""
    if as_json:
        *plain, whole = (
            dataclasses.asdict(row) | {"of_trace": {name: one.total for name, one in row.of_trace().items()}}
            for row in (*rows, total)
        )
        of_traces = {name: dataclasses.asdict(amount) for name, amount in stated.items()}
        print_json({"by": by, "costs": plain, "total": whole, "unlike_tasks": unlike,
                    "groups": dataclasses.asdict(groups), "stated": of_traces,
                    "models_without_price": gaps.unpriced, "models_without_cached_input": gaps.cached_as_input,
                    "models_without_cached_tokens": gaps.cached_unstated,
                    "models_without_cache_write": gaps.written_as_input,
                    "models_with_cache_beside_input": gaps.cached_beside,
                    "calls_priced_as_requested": gaps.requested, "calls_without_answered_model": gaps.unnamed,
                    "calls_priced_by_default": gaps.defaulted,
                    "unused_prices": gaps.unused})  # fmt: skip
    else:
        of_trace = rows_of_trace(traces, by, rows, prices)
        summed = [*rows, total] if len(rows) > 1 else rows
        few = few_lacking(traces) if by not in ("trace", "system") and len(rows) > 1 else ""
        if few:  # totals alone are marked as lower bounds: whose lines are missing is not known
            unmarked = [dataclasses.replace(row, lacks_lines=False, lacks_traces=False) for row in rows]
            summed, of_trace = ([*unmarked, *table[len(rows) :]] if table else [] for table in (summed, of_trace))
        _print(stdout(), summed, of_trace, groups, by, None if prices is None else gaps, few)
        bare = (int(uncounted_tool_calls(traces, kind).sum()) for kind in (EventType.TOOL_CALL, EventType.SPAWN))
        of_tools = said_of_tool_calls(*bare)
        lines = [
            unlike,
            failed_without_count(traces),
            of_tools,
            *stated_lines(stated, traces.sizes.traces, gaps, total.logged_money),
        ]
        for line in filter(None, lines):
            stdout().print(words(line), soft_wrap=True)
    leave(ctx, traces, allow_bad)


def stated_lines(stated: dict[str, Amount], traces: int, gaps: PriceGaps | None, calls: Amount) -> list[str]:
    """A line for each cost that the log states of whole traces, unless `gaps` tell that it is that by prices, or it is
    money of fewer traces, of which the log states that of `calls`, too."""
    once = gaps is not None and gaps.as_logged
    once |= bool(calls.total and "money" in stated and stated["money"].missing)
    known = {name: of for name, of in stated.items() if of.total is not None and not (once and name == "money")}
    every = counted(traces, "trace")
    lines = []
    for name, amount in known.items():
        of = f"{traces - amount.missing} of {every}" if amount.missing else f"all {every}" if traces > 1 else every
        lines.append(f"costs.{name}, logged of {of}: {printed(amount.total, 6)}")
    return lines


def total_line(total: CostRow, stated: dict[str, Amount], gaps: PriceGaps | None) -> str:
    """What the teams of all traces cost; "" where the log tells nothing.

    Money of calls has no place where the log states that of all traces (`stated_lines`).
    """
    parts = [
        ("tokens generated", total.tokens, 6),
        ("read", total.input_tokens, 6),
        ("seconds of work", total.seconds, 3),
        ("money at the given prices", total.money, 6),
    ]
    if (
        total.logged_money.total
        and not (gaps and gaps.as_logged)
        and ("money" not in stated or stated["money"].missing)
    ):
        parts.append(("in logged cost", total.logged_money, 6))
    known = [
        f"{_text(amount, total.lacks_lines, digits)} {what}"
        for what, amount, digits in parts
        if amount.total is not None
    ]
    return f"all traces: {', '.join(known)}" if known else ""


def _print(
    console: Console,
    rows: list[CostRow],
    of_trace: list[CostRow],
    groups: GroupCosts,
    by: str,
    gaps: PriceGaps | None,
    few: str,
) -> None:
    from credit.metrics.cost_summary import said_of_traces

    is_logged = by != "trace" and any(row.logged_money.total for row in rows) and not (gaps and gaps.as_logged)
    asked = {"errors": "tool" in by, "money": gaps is not None, "logged_money": is_logged}
    names = {name: head for name, head in HEADS.items() if asked.get(name, True)}
    stated = sorted({name for row in rows for name in row.stated})
    heads = [f"#{head}" for head in names.values()]
    paid = next((name for name in ("money", "logged_money") if name in names), "")
    is_known = paid and len(rows) > 1 and not (rows[-1].sums()[paid].missing or rows[-1].lacks_lines)
    whole = (rows[-1].sums()[paid].total or 0.0) if is_known else 0.0
    share = [*names].index(paid) + 1 if whole else 0
    heads[share:share] = ["#share"] * bool(whole)
    after = [*names].index("seconds") + 1
    timed = any(row.call_seconds is not None for row in rows)
    heads[after:after] = [f"#{A_CALL}", f"#{SLOW}"] * timed
    heads += [f"#costs.{name}" for name in stated]
    table = plain_table(by.replace(",", ", "), "#events", *heads)
    lacking = {name for name in stated if any(name not in row.stated for row in rows[:-1])}  # but the total
    for row in rows:
        amounts = [_text(row.sums()[name], row.lacks_lines) for name in ("events", *names)]
        if whole:
            part = row.sums()[paid].total
            amounts.insert(share + 1, "–" if part is None or row.outside else percent(part / whole))
        is_total = len(rows) > 1 and row is rows[-1]
        of_a_call = ["" if is_total else printed(of) for of in (row.call_seconds, row.slow_call_seconds)]
        amounts[after + 1 : after + 1] = of_a_call * timed
        told = [at_least(printed(row.stated.get(name), 6), row is rows[-1] and name in lacking) for name in stated]
        table.add_row(words(row.unit), *amounts, *told)
    console.print(table)
    tables = [table]
    if of_trace:
        tables.append(plain_table("of a trace", "#traces", *(f"#{head}" for head in names.values())))
        for row in of_trace:
            of = "" if row.traces == row.of_traces else f" of {row.of_traces}"
            each = [_text(row.of_trace()[name], row.lacks_lines, 3) for name in names]
            tables[1].add_row(words(row.unit), at_least(f"{row.traces}{of}", row.lacks_traces), *each)
        console.print()
        console.print(tables[1])
    of_models = [("", OF_MODELS)] if "model" in by else []
    of_models += [("", OF_A_CALL)] * timed
    known = any(row.seconds.missing for row in rows)
    terms = [("", f"of a trace: {said_of_traces(of_trace, by)}")] if of_trace else []
    terms += [("", few)] * bool(few)
    terms += [term for term in TERMS if known or not term[0].startswith("seconds")]
    explain(console, tables, *terms, *of_models)
    others = [row.unit for row in rows if row.outside]
    if others:
        console.print(words(f"{OF_OTHERS} {', '.join(others)}"), soft_wrap=True)
    if gaps is not None:
        for line in gaps.lines():
            console.print(words(line), soft_wrap=True)
    k = f"{counted(groups.groups, 'group')} of {groups.multiplier:.3g} traces on average"
    if groups.of_trace is None:
        console.print(
            f"{k}; what a group cost is not known: lines, or tokens of some actions, are not logged",
            soft_wrap=True,
        )
    else:
        untaught = "" if groups.of_trace == 0 else "; no outcome is known"
        if groups.untaught is not None:
            untaught = f"; {percent(groups.untaught)} in groups without two different outcomes"
        tokens = (
            f"{printed(groups.of_trace)} tokens read and generated by a trace, {printed(groups.of_group)} by a group"
        )
        line = f"{k}; {tokens}{untaught}"
        console.print(line, soft_wrap=True)


def _text(amount: Amount, lacks_lines: bool, digits: int = 6) -> str:
    return at_least(printed(amount.total, digits), amount.missing > 0 or lacks_lines)
