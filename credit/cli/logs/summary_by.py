"""`credit summary`: credit by agent or role, differences of failed traces, and remedies where there is no credit."""

from __future__ import annotations

import dataclasses
import math
import shlex
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_options
from credit.cli.logs.costs import HEADS, stated_lines, total_line
from credit.cli.shared.answers import (
    explain,
    json_option,
    plain_table,
    print_facts,
    print_json,
    print_lines,
    stderr,
    stdout,
    words,
)
from credit.cli.shared.commands import Command, sides_option, success_option, takes_prices
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, given_inputs, leave, read_sides, reads_logs
from credit.reports.triage_legend import TRIAGE
from graphs.errors import RUN_ERROR, RUN_LIMIT
from graphs.text import amount, apart, at_least, counted, cut_id, decimals, percent, printable

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from credit.main_findings import MainFinding
    from credit.metrics.cost_summary import Amount
    from credit.metrics.event_costs import Prices
    from credit.reports.outcome_differences import OutcomeDifferences
    from credit.reports.triage import Suspect, Triage
    from credit.reports.who_matters import Kind, Unit
    from graphs.traces.batch import Traces

__all__ = ["summary"]

KINDS = ("agent", "role", "turn", "tool", "type")
TO_LABEL = (
    "`--rewards FILE`, a table with columns `trace` and `reward`, gives outcomes. `credit label` writes one, or "
    "goes on with a copy of yours by -o COPY."
)
FEW, MANY = 5, 10
"""Events to look at first, beside outcomes and without any."""
COUNTED = "The causes above have a test of their own. No number in the table below differs beyond chance."
MOST = 8
"""Numbers that are shown whether or not they stand out."""
CUT = 14
"""Length of an id in a sentence."""
LEAST_ERROR = 36
"""Width of a line that an error is read on."""
ROWS = 15
"""Agents, tools or other units of a table."""


@click.command(
    cls=Command,
    short_help="Show what failed, where to look first, and who matters.",
    examples="""
    credit summary runs/ --by agent
    credit summary runs/ --by tool --method turn_baseline
    credit summary runs/ --prices prices.csv
    credit summary sessions/ --json
    """,
)
@reads_logs()
@click.option("--by", type=click.Choice(KINDS), default="agent", show_default=True, help="Unit to average over.")
@click.option("--method", "-m", default="rloo", show_default=True, help="Method; `credit methods` lists all.")
@method_options
@success_option
@sides_option
@takes_prices()
@click.option(
    "--all",
    "all_",
    is_flag=True,
    help=f"Name all units, and all events to look at. Default: {ROWS}; {FEW}, or {MANY} without outcomes.",
)
@evidence_option
@allow_bad
@json_option
@click.pass_context
def summary(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    by: Kind,
    method: str,
    option_texts: tuple[str, ...],
    success_at: float | None,
    sides: str | None,
    prices: Prices | None,
    all_: bool,
    also: tuple[str, ...],
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Show at most six findings, the events to look at first, and what failed traces have more of than succeeded ones.

    The findings are those that a page begins with: what failed, whose outcomes say so, what changed between two systems
    or sides, what went wrong most, what a verdict is worth, what was lost. A table then sets each agent, role, turn,
    tool or type against the rest of its own traces. A second table counts errors, retries, loops, tokens and time. The
    last lines say what all traces cost.
    """
    import numpy as np

    from credit.doctor.idle_agents import idle_losses
    from credit.doctor.selected_outcomes import corrected_failures, selected_outcomes
    from credit.doctor.verdict_errors import verdict_errors
    from credit.main_findings import LOOK_FIRST, main_findings
    from credit.methods.absent_outcomes import channels_instead
    from credit.methods.option_texts import parse_options
    from credit.methods.running import has_outcomes, run
    from credit.metrics.cost_summary import cost_rows, paid_by_agent, stated_sums, total_costs, with_paid
    from credit.metrics.dearest_agent import dearest_agent
    from credit.metrics.event_costs import price_gaps
    from credit.metrics.part_costs import agents_paid
    from credit.metrics.repeated_costs import repeated_cost
    from credit.metrics.success_costs import success_line
    from credit.paid_for_success import lost_to_failures, paid_for_success
    from credit.reports.judged_traces import judged_traces
    from credit.reports.leading_cause import told_causes
    from credit.reports.leading_causes import leading_causes
    from credit.reports.missing_lines import few_lacking
    from credit.reports.outcome_differences import outcome_differences
    from credit.reports.task_kinds import failed_by_kind
    from credit.reports.triage import TOKENS, triage
    from credit.reports.uncounted_calls import failed_without_count
    from credit.reports.unread_outcomes import unread_outcomes, unscored_ends
    from credit.reports.verdict_channels import of_one_source
    from credit.sides.compare_sides import compare_costs, compare_systems
    from credit.sides.ranked_by_side import ranked_by_side
    from credit.sides.verdict_changes import verdicts_by_system

    options = parse_options(method, option_texts)
    traces, chosen = read_sides(sides, paths, names_channels=not as_json, **reading)
    side = None if chosen is None else chosen.side
    plain: dict[str, Any] = {}
    last: list[str] = []
    hints: list[str] = []
    shown: list[Unit] = []
    paid = np.zeros(traces.sizes.traces, bool)
    heads, of_model = ((), "") if chosen is None else (chosen.heads, chosen.of_model)
    causes = leading_causes(traces, success_at=success_at, side=side, heads=heads, of_model=of_model)
    differences = outcome_differences(traces, success_at=success_at, side=side, of_model=of_model,
                                      paid=agents_paid(traces, prices))  # fmt: skip
    if has_outcomes(traces):
        from credit.method_summary import credit_hints, empty_notes, reason_counts, shares_no_task
        from credit.reports.corpus import divided_tasks
        from credit.reports.trace_returns import precision_notes
        from credit.reports.who_matters import alike_note, who_matters
        from credit.telling_apart import apart_by_events, differs_within, place_note, tells_apart

        with working(stderr(), f"computing {method}"):
            credit = run(traces, method, evidence=also, **options)
        units, divided = who_matters(traces, credit, by), divided_tasks(traces)
        paid[np.asarray(traces.graph.trace_ids)[np.asarray(credit.valid)]] = True
        told, place = tells_apart(traces, credit, method), place_note(traces, credit)
        if as_json:
            rows = [dataclasses.asdict(unit) | {"stands_out": unit.stands_out} for unit in units]
            plain = {"by": by, "method": method, "units": [_finite(row) for row in rows],
                     "without": reason_counts(traces, credit), "divided_tasks": divided, "note": place,
                     "failed_against_succeeded": differences.as_json()}  # fmt: skip
        else:
            apart, varied = [] if told else apart_by_events(traces), differs_within(traces, credit)
            note = alike_note(units, method, by, told, "", place, apart, varied)
            if units and not note:
                shown = units
            unsaid = "" if place[1:] in note else place
            last = [note, unsaid, *precision_notes(traces)] if units else empty_notes(traces, credit, method)
            if not units and shares_no_task(traces):
                last = []  # the hint says it once
            hints = credit_hints(traces, differences.hints(), told=bool(shown))
    most = None if all_ else FEW if has_outcomes(traces) else MANY
    result = triage(traces, success_at=success_at, most=most, side=side, leading=causes, number=differences.example)
    total, stated = total_costs(cost_rows(traces, "trace", prices)), stated_sums(traces)
    of_prices = None if prices is None else price_gaps(traces, prices)
    gaps = [] if of_prices is None else of_prices.lines()
    bought, failed = paid_for_success(traces, prices, success_at), lost_to_failures(traces, prices, success_at)
    repeats = repeated_cost(traces, prices)
    unread, verdicts = unread_outcomes(traces, success_at), verdict_errors(traces, success_at)
    ranked, systems = ranked_by_side(traces, success_at, chosen), ""  # by chosen sides, `compared` tells it
    if chosen is None:
        compared, systems = compare_systems(traces, prices, success_at), verdicts_by_system(traces, verdicts)
    else:
        compared = compare_costs(traces, chosen, prices, success_at)
    teams = "" if compared is None else compared.by_team()
    by_side = compared.sides_of_kinds() if compared else ()
    of_sides = (compared.sides.side, compared.sides.heads) if compared else ()
    one_source = of_one_source(traces)
    of_kinds = failed_by_kind(one_source, judged_traces(one_source, success_at), *by_side)
    selected = selected_outcomes(traces, success_at, prices)
    corrected = corrected_failures(traces, success_at, prices, *of_sides)
    findings = main_findings(
        traces, differing=differences, of_kinds=of_kinds, causes=causes, triaged=result, verdicts=verdicts,
        ranked=ranked, selected=selected, corrected=corrected,
        compared=compared, by_system=systems,
        lost=[failed.told() if failed else "", repeats.in_short() if repeats else "",
              *idle_losses(traces, differences, prices)],
        dearest=dearest_agent(traces, prices),
    )  # fmt: skip
    if as_json:
        left: dict[str, Any] = {"traces_without_credit": int(np.sum(~paid))}
        left["findings"] = [one.as_json() for one in findings]
        left["unread"] = [*map(dataclasses.asdict, unread)]
        left["unscored"] = [*map(dataclasses.asdict, unscored_ends(traces, success_at))]
        left["total"], left["price_gaps"] = dataclasses.asdict(total), gaps
        left["success_costs"] = [*map(dataclasses.asdict, bought)]
        left["failed_cost"] = failed and dataclasses.asdict(failed)
        left["repeated_cost"] = repeats and dataclasses.asdict(repeats)
        left["causes"] = [*map(dataclasses.asdict, causes)]
        left["stated"] = {name: dataclasses.asdict(amount) for name, amount in stated.items()}
        left["agents"] = [_finite(row) for row in with_paid(result.agents, paid_by_agent(traces, prices))]
        left["quiet"], left["suspects_left_out"] = result.quiet, result.left_out
        left["slowest"], left["failed"], left["succeeded"] = result.slowest, result.failed, result.succeeded
        left["kinds"], left["verdicts"] = result.kinds, [one.as_json() for one in verdicts]
        left["ranked_verdicts"] = [one.as_json() for one in ranked]
        left["verdicts_by_system"], left["teams_by_system"], left["failed_by_kind"] = systems, teams, " ".join(of_kinds)
        for name in ("tools", "suspects", "endings"):
            left[name] = [_finite(dataclasses.asdict(row)) for row in getattr(result, name)]
        print_json(plain | left)
    else:
        console, ids = stdout(), traces.traces["trace"].to_pylist()
        unscored = int(np.sum(~np.isfinite(traces.reward[: len(paid)])))
        none = unscored == len(ids)
        head = [one for one in findings if result.quiet or one.name != LOOK_FIRST]  # the table below begins with it
        print_facts(console, "In short", ((one.name, _lines(one, traces, ids)) for one in head))
        shown_causes = {(one.trace, one.event) for one in head}
        rest = [one for one in causes if (one.trace, one.event) not in shown_causes]
        may = any(one.beyond_chance is False for one in rest)
        print_lines(console, f"What {'may have gone' if may else 'else went'} wrong", told_causes(rest))
        if behind := [(one.name, one.more) for one in head if one.more]:
            print_facts(console, "In more detail", behind)
        above = " ".join(one.told for one in head)
        beside = [f"{one[0].upper()}{one[1:]}." for one in (teams, systems) if one and one[1:] not in above]
        beside += [f"{end.words}." for end in result.endings if end.words not in above]
        if any(one.beyond_chance for one in causes) and not any(row.stands_out for row in differences.rows):
            beside.append(COUNTED)
        print_lines(console, "", beside)
        if not result.quiet:
            _print_first(console, result, given_inputs(ctx), ids)
        _print_differences(console, differences)
        if shown:
            _print(console, shown, by, method, all_)
        if by not in ("agent", "tool") and none:
            console.print(f"--by {by} needs credit; without it there are tables by agent and by tool.", soft_wrap=True)
        _print_work(console, result, by, all_, few_lacking(traces), paid_by_agent(traces, prices))
        shares = [failed.told() if failed else "", success_line(bought), repeats.told() if repeats else ""]
        untold = [one for one in (*shares, result.slowest) if one[1:] not in above]
        costs = [total_line(total, stated, of_prices), failed_without_count(traces), *untold, *gaps]
        print_lines(console, "", [*costs, *stated_lines(stated, len(ids), of_prices, total.logged_money)])
        if result.quiet and (result.suspects or result.quiet not in above):
            is_said = result.quiet.endswith(TOKENS) and result.quiet.removesuffix(TOKENS) in above
            quiet = TOKENS if is_said else result.quiet
            _print_first(console, dataclasses.replace(result, quiet=quiet), given_inputs(ctx), ids)
        left_out = [] if none or paid.all() or not last else [_without_credit(paid, unscored)]
        print_lines(console, "", [*last, *left_out])
        hints += [compared.sides.command(traces)] if compared is not None and chosen is None else []
        hints += [TO_LABEL] if unscored and not channels_instead(traces) else []
        print_lines(console, "To do more", hints, apart=False)
    leave(ctx, traces, allow_bad, () if as_json or not result.endings else (RUN_ERROR, RUN_LIMIT))


def _lines(one: MainFinding, traces: Traces, ids: list[str]) -> list[str]:
    if not one.trace:
        return [*one.lines]
    event, trace = "", cut_id(one.trace, ids, CUT)
    if one.event:
        import numpy as np

        members = np.flatnonzero(np.asarray(traces.graph.trace_ids)[: traces.sizes.events] == traces.index(one.trace))
        event = f"event {cut_id(one.event, traces.events['event'].take(members).to_pylist(), CUT)} of "
    return [*one.lines, f"See {event}trace {trace}{'' if trace.endswith('…') else '.'}"]


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


def _print(console: Console, units: list[Unit], by: Kind, method: str, all_: bool) -> None:
    from credit.reports.who_matters import unit_terms

    console.print(words("Who earned the reward", "bold"))
    table = plain_table(
        by, "#actions", "#traces", "#tasks", "#advantage", "#against the rest", "95 % interval", "",
        "#tasks that differ",
    )  # fmt: skip
    for unit in units if all_ else units[:ROWS]:
        (advantage,) = apart((unit.advantage,), decimals, 3, beside=0.0)
        difference, low, high = apart((unit.difference, unit.low, unit.high), decimals, 3, beside=0.0)
        interval = f"{low} to {high}" if math.isfinite(unit.low) else "–"
        counts = (str(unit.actions), str(unit.traces), str(unit.tasks))
        star = "*" if unit.stands_out else ""
        table.add_row(words(unit.name), *counts, advantage, difference, interval, star, str(unit.signal))
    console.print(table)
    _print_rest(console, len(units), by, all_)
    explain(console, table, *unit_terms(units, method))
    console.print()


def _print_rest(console: Console, rows: int, what: str, all_: bool) -> None:
    if rows > ROWS and not all_:
        console.print(f"… and {counted(rows - ROWS, f'more {what}')}; `--all` shows them")


def _agent_table(result: Triage, all_: bool, paid_by: dict[str, dict[str, Amount]]) -> Table:
    names = ("traces", "events", "actions", "calls", "errors", "retries", "loops", "tokens")
    heads = {"calls": "tool calls", "tokens": "tokens generated"}
    last = ["#seconds of work", *dict.fromkeys(f"#{HEADS[name]}" for paid in paid_by.values() for name in paid)]
    table = plain_table("agent", *(f"#{heads.get(name, name)}" for name in names), *last)
    for row in result.agents if all_ else result.agents[:ROWS]:
        seconds = at_least(amount(row.seconds), row.lacks_seconds and not row.lacks_lines)
        counts = [amount(getattr(row, name)) for name in names[:-1]]
        tokens = amount(row.tokens) if row.actions_with_tokens else "–"
        counts += [at_least(tokens, row.actions_with_tokens < row.actions and not row.lacks_lines), seconds]
        for paid in paid_by.get(row.agent, {}).values():
            counts.append(at_least(amount(paid.total, 4), paid.missing > 0 and not row.lacks_lines))
        traces, *bounds = counts
        traces = at_least(traces, row.lacks_traces)
        table.add_row(words(row.agent), traces, *(at_least(count, row.lacks_lines) for count in bounds))
    return table


def _print_differences(console: Console, found: OutcomeDifferences) -> None:
    lines = found.comparison()
    if not lines:
        return
    bad, good = found.kinds
    console.print(words(f"{bad.capitalize()} against {good}", "bold"))
    for line in (" ".join([*found.counts()[-1:], lines[0]]), *lines[1:]):
        console.print(words(line), soft_wrap=True)
    rows = [row for row, _ in found.folded()]
    shown = [row for i, row in enumerate(rows) if row.stands_out or i < MOST]
    units = found.units
    tasks = f"#{units} that differ" if found.within else "#tasks"
    table = plain_table(f"mean over {units}", f"#{bad}", f"#{good}", f"#{bad} has more", tasks, "95 % interval", "")
    for row in shown:
        nothing = 0.5 if row.stands_out else math.nan
        chance, low, high = apart((row.chance, row.low, row.high), percent, 0, beside=nothing)
        interval = f"{low.removesuffix(' %')} to {high}" if math.isfinite(row.low) else "–"
        table.add_row(words(row.what), *row.means(), chance, str(row.tasks), interval, "*" if row.stands_out else "")
    if shown:
        console.print(table)
    if len(shown) < len(rows):
        console.print(f"{len(rows) - len(shown)} more; --json lists them.", soft_wrap=True)
    for line in found.same():
        console.print(words(line), soft_wrap=True)
    explain(console, table, *found.terms())
    console.print()


def _without_credit(paid: np.ndarray, unscored: int) -> str:
    """How many traces have no credit, and how many of these no outcome."""
    left = len(paid) - int(paid.sum())
    why = " because they have no outcome" if unscored == left else f"; {unscored} of these have no outcome"
    return f"{left} of {counted(len(paid), 'trace')} have no credit{why if unscored else ''}."


def _tool_table(result: Triage, all_: bool) -> Table:
    names = ("traces", "calls", "errors", "retries", "loops")
    some = any(row.empty for row in result.tools)
    heads = [*names, *["empty results"] * some, "seconds of work"]
    table = plain_table("tool", *(f"#{name}" for name in heads))
    for row in result.tools if all_ else result.tools[:ROWS]:
        traces, *bounds = (amount(getattr(row, name)) for name in names)
        bounds += [
            at_least(amount(row.empty), row.lacks_empty and not row.lacks_lines and row.empty is not None)
        ] * some
        bounds.append(amount(row.seconds))
        traces = at_least(traces, row.lacks_traces)
        table.add_row(words(row.tool or "not named"), traces, *(at_least(count, row.lacks_lines) for count in bounds))
    return table


def _print_suspects(
    console: Console,
    suspects: tuple[Suspect, ...],
    ids: list[str],
    counts: tuple[int | None, int | None] = (None, None),
    kinds: tuple[str, str] = ("failed", "succeeded"),
) -> bool:
    """Print the events as a table; a narrow one has each text below its reason. True if all are of one trace.

    `counts` are how many traces failed and succeeded, which are called as `kinds`; None where they are not of both.
    """
    from rich.cells import cell_len
    from rich.text import Text

    several, many = (any(count) for count in zip(*((one.traces > 1, one.of_many) for one in suspects), strict=True))
    single = len({suspect.trace for suspect in suspects}) == 1 and not many  # its id is in the command below
    scored = any(suspect.outcome is not None for suspect in suspects)
    places = [("trace", 14), ("##", 12), ("agent", 16)][single:]
    if scored and not single:
        places.insert(1, ("#outcome", 7))
    if many:
        places += [("#traces", 6)] * several
        places += [(f"#{kind}", len(kind)) for kind in kinds] if suspects[0].failed is not None else []
    reason = max(44, console.width // 3)
    rows, texts = [], []
    for suspect in suspects:
        outcome = "–" if suspect.outcome is None else f"{suspect.outcome:z.3g}"
        trace = cut_id(suspect.trace, ids, places[0][1])
        of_trace = [] if single else [trace, outcome] if scored else [trace]
        tool = suspect.tool  # cut where its name is long, so that the reason fits
        why = suspect.why.replace(tool, printable(tool, max(24, reason - 44)), 1) if tool else suspect.why
        rows.append(
            [
                *of_trace,
                "–" if suspect.position is None else f"{suspect.position} of {suspect.of}",
                suspect.agent,
                *(_common(suspect, counts)[not several :] if many else []),
            ]
        )
        texts.append((why, suspect.text))
    # Cut again, an id would be that of several.
    wide = [max(map(cell_len, (name.strip("#"), *cells))) for (name, _), *cells in zip(places, *rows, strict=True)]
    wide = [width if name == "trace" else min(width, most) for (name, most), width in zip(places, wide, strict=True)]
    room = console.width - sum(wide) - 2 * len(wide)
    beside = any(text for _, text in texts) and room - reason - 2 >= LEAST_ERROR
    table = plain_table(*(name for name, _ in places), "why", *(["text"] if beside else []))
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    for column, width in zip(table.columns, wide, strict=False):
        column.min_width = column.max_width = width
    if beside:
        table.columns[-2].max_width = reason
    table.columns[-1].ratio, table.expand = 1, True  # it takes the width that is left
    table.columns[-1].min_width = LEAST_ERROR // 2  # with less, rows are stacked
    table.columns[-2 if beside else -1].no_wrap = False  # its last words may be those that count
    for cells, (why, text) in zip(rows, texts, strict=True):
        if not beside and room >= LEAST_ERROR // 2:  # else rows are stacked; below a reason of two lines stands one
            text = printable(text, room if room >= LEAST_ERROR else 2 * room)
        below = Text("\n").join(words(line) for line in (why, text) if line)
        table.add_row(*map(words, cells), *([words(why), words(text)] if beside else [below]))
    console.print(table)
    return single


def _common(suspect: Suspect, counts: tuple[int | None, int | None]) -> list[str]:
    """In how many traces something of the same cause is, and in what part of failed and succeeded ones."""
    some, of = (suspect.failed, suspect.succeeded), (suspect.of_failed, suspect.of_succeeded)
    of_kinds = zip(some, (counts if None in of else of), strict=True)
    parts = [percent(its / all_) for its, all_ in of_kinds if its is not None and all_]
    return [str(suspect.traces), *(parts if suspect.failed or suspect.succeeded else ["–"] * len(parts))]


def _print_first(console: Console, result: Triage, inputs: list[str], ids: list[str]) -> None:
    """Print the events to look at first, and the command that shows them."""
    if result.quiet or result.suspects:
        console.print(words(result.quiet.strip() or "Look at these first", "bold"))
    if result.suspects:
        single = _print_suspects(console, result.suspects, ids, (result.failed, result.succeeded), result.kinds)
        if result.left_out:
            console.print(f"… and {result.left_out} more; `--all` names them")
        if result.commonness():
            console.print(words(result.commonness(), "dim"), soft_wrap=True)
        first = result.suspects[0]
        around = ["--around", first.event] if first.event else []
        command = shlex.join(["credit", "show", *inputs, "--trace", first.trace, *around])
        event = f"event {first.event} of " if first.event else ""
        console.print(words(f"The first one, {event}trace {first.trace}:"), soft_wrap=True)
        console.print(words(f"run: {command}"), soft_wrap=True)
        if len(result.suspects) > 1:
            its = "" if single else "its trace, whole or as cut by …, and "
            console.print(f"Another one: the same with {its}--number # for --around.", soft_wrap=True)
    if result.quiet or result.suspects:
        console.print()


def _print_work(
    console: Console, result: Triage, by: str, all_: bool, few: str, paid_by: dict[str, dict[str, Amount]]
) -> None:
    """Print the work of each agent or tool, and that few traces lack lines, where these are no reason for bounds."""
    if few:
        agents = (dataclasses.replace(row, lacks_lines=False, lacks_traces=False) for row in result.agents)
        tools = (dataclasses.replace(row, lacks_lines=False, lacks_traces=False) for row in result.tools)
        result = dataclasses.replace(result, agents=tuple(agents), tools=tuple(tools))
    table = _tool_table(result, all_) if by == "tool" else _agent_table(result, all_, paid_by)
    rows, what = (len(result.tools), "tool") if by == "tool" else (len(result.agents), "agent")
    if not rows:
        return
    console.print(words(f"Work by {what}", "bold"))
    console.print(table)
    _print_rest(console, rows, what, all_)
    explain(console, table, *TRIAGE, *[("", few)] * bool(few))
    actions, known = (sum(getattr(row, name) for row in result.agents) for name in ("actions", "actions_with_tokens"))
    if 0 < known < actions:
        console.print(f"tokens: of {known} of {actions} actions; the others have no count", soft_wrap=True)
    console.print()
