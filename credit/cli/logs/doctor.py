"""`credit doctor`: failure modes of teams and signs of reward hacking."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_option, method_options
from credit.cli.shared.answers import explain, json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command, Number, takes_prices
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs
from graphs.text import counted

if TYPE_CHECKING:
    from rich.console import Console

    from credit.doctor.idle_agents import IdleAgent
    from credit.doctor.team_checks import Finding
    from credit.metrics.event_costs import Prices

__all__ = ["doctor"]

NAMED = 3  # traces of a finding that are named
LEFT_OUT = "The log lacks lines of {}: no check of what agents do, nor verifier_collusion, counts them."
CUT_OFF = "free_riding counts no trace that ends early (here {}): who its answer would rest on is not logged."
HIDDEN = "free_riding counts no trace (here {}) in which {}."
NOT_LOOKED_FOR = "Not looked for: edits of tests, skipped checks and hard-coded answers. What agents write is not read."


@click.command(
    cls=Command,
    short_help="Look for failure modes of teams and signs of reward hacking.",
    examples="""
    credit doctor runs/
    credit doctor runs/ --method grpo --json
    """,
)
@reads_logs()
@method_option
@method_options
@evidence_option
@click.option("--level", type=Number(), metavar="CHANCE", default=0.05, show_default=True,
              help="Chance that tests find a fault where there is none.")  # fmt: skip
@takes_prices(", for what idle agents cost")
@allow_bad
@json_option
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    level: float,
    prices: Prices | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Look for failure modes and reward hacking. Each finding has the traces that show it, and a remedy.

    What agents write is not read: edits of tests, skipped checks and hard-coded answers are not looked for.

    Each check has a statistic, a limit and a test over tasks. --method names the method whose advantages are checked.
    """
    from credit.doctor.idle_agents import idle_agents
    from credit.doctor.team_checks import examine
    from credit.doctor.verdict_errors import verdict_errors
    from credit.methods.option_texts import parse_options
    from credit.methods.running import has_outcomes, run
    from credit.reports.endings import ended_early, endings
    from credit.reports.missing_lines import lacking_traces
    from credit.reports.trace_numbers import UNREAD, TeamFacts
    from credit.sides.ranked_by_side import ranked_by_side
    from credit.sides.verdict_changes import verdicts_by_system

    options = parse_options(method, option_texts)
    traces = read_traces(paths, **reading)
    with working(stderr(), "examining traces"):
        credit = run(traces, method, evidence=also, **options) if has_outcomes(traces) else None
        findings, early = examine(traces, credit, level=level), endings(traces)
        errors, idle = verdict_errors(traces), idle_agents(traces, prices)
        verdicts, systems = [one.as_json() for one in errors], verdicts_by_system(traces, errors)
        ranked = ranked_by_side(traces)
    if as_json:
        checks, left = [finding.as_json() for finding in findings], [dataclasses.asdict(end) for end in early]
        print_json({"method": method, "level": level, "checks": checks, "endings": left, "verdicts": verdicts,
                    "ranked_verdicts": [one.as_json() for one in ranked], "verdicts_by_system": systems,
                    "idle_agents": [*map(dataclasses.asdict, idle)]})  # fmt: skip
    else:
        _print(stdout(), findings, level, idle)
        said = "\n".join(each.words for each in findings if each.found is not False)
        for one in verdicts:
            if one["told"] not in said:
                stdout().print(words(f"{one['told']}."), soft_wrap=True)
        of_ranked = [one.by_side() if one.of_all() in said else one.told() for one in ranked]
        for told in filter(None, of_ranked):
            stdout().print(words(f"{told}."), soft_wrap=True)
        if systems:
            stdout().print(words(f"{systems[0].upper()}{systems[1:]}."), soft_wrap=True)
        if lacking := int(lacking_traces(traces).sum()):
            stdout().print(LEFT_OUT.format(counted(lacking, "trace")), soft_wrap=True)
        answered = any(each.check == "free_riding" and each.statistic is not None for each in findings)
        cut_off = CUT_OFF.format(int(ended_early(traces)[0].sum()))
        for line in [end.words for end in early] + [cut_off] * bool(early and answered):
            stdout().print(words(line), soft_wrap=True)
        if answered and (hidden := int(TeamFacts.of(traces).hidden_work[0].sum())):
            stdout().print(HIDDEN.format(hidden, UNREAD), soft_wrap=True)
        stdout().print(NOT_LOOKED_FOR, soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _print(console: Console, findings: list[Finding], level: float, idle: list[IdleAgent]) -> None:
    from credit.doctor.team_checks import CHECKS

    table = plain_table("check", "finding", "#statistic", "#limit", "#p")
    for finding in (each for each in findings if each.found is not None):
        of = (finding.statistic, finding.limit, finding.p)
        numbers = ["" if number is None else f"{number:.3g}" for number in of]
        table.add_row(finding.check, finding.verdict, *numbers)
    if table.row_count:
        console.print(table)
    explain(
        console,
        table,
        ("found", f"found: statistic above its limit, or p at most {level:g} where there is no limit"),
        ("finding: in ", "in traces: so many show it, in no more tasks than by chance"),
        ("p: ", "p: corrected for all tests. Of checks with a p, statistic and limit are parts of tasks."),
    )
    for finding in (each for each in findings if each.found or (each.alone and each.found is False)):
        shown = ", ".join(finding.traces[:NAMED]) + (", …" if len(finding.traces) > NAMED else "")
        console.print(words(f"{finding.check}: {finding.words}. See {shown}."), soft_wrap=True)
        for one in idle[:NAMED] if finding.check == "free_riding" else []:
            console.print(words(f"  {one.told()}."), soft_wrap=True)
        console.print(
            words(f"  {CHECKS[finding.check].measures}. To do: {CHECKS[finding.check].advice}."), soft_wrap=True
        )
    untold: dict[str, list[str]] = {}
    for finding in (each for each in findings if each.found is None):
        untold.setdefault(finding.words, []).append(finding.check)
    for why, checks in untold.items():
        console.print(words(f"cannot tell: {', '.join(checks)}: {why}"), soft_wrap=True)
