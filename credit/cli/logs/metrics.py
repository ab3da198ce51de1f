"""`credit metrics`: success, errors, costs, parallelism, useful agents, communication, the course of the team."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_options
from credit.cli.shared.answers import (
    explain,
    json_option,
    plain_table,
    print_json,
    print_lines,
    stderr,
    stdout,
    words,
)
from credit.cli.shared.commands import Command, Number, sides_option, takes_prices
from credit.cli.shared.outputs import output_option, save_table
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_sides, read_traces, reads_logs
from graphs.text import amount, apart, at_least, counted, interval, part_of, percent, signed

if TYPE_CHECKING:
    from rich.console import Console

    from credit.metrics.event_costs import Prices
    from credit.metrics.event_metrics import CoursePoint, DecisionCost
    from credit.metrics.metric_summary import MetricMean, MetricUnit
    from credit.metrics.runs_by_kind import RunsByKind
    from credit.reports.agents_by_kind import AgentOfKind
    from credit.reports.trace_numbers import TraceMetric
    from credit.sides.side_comparison import SideComparison
    from credit.sides.side_rows import SideDifference
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["metrics"]

FOR_TRACES = ("by", "sides", "price_table", "success_at", "method", "option_texts", "also", "embeddings", "alike")
EXPLAINED = 4
"""Metrics that a legend explains, the first ones; the docs explain all."""
PLAIN = {"success", "errors", "tokens", "input_tokens", "tool_calls", "money", "logged_money"}
"""Metrics whose names say what they are."""
UNITS = ("all", "trace", "group", "model", "system", "topology", "length")


@click.command(
    cls=Command,
    short_help="Measure success, errors, costs, parallelism and communication.",
    examples="""
    credit metrics runs/
    credit metrics runs/ --by length --method rloo
    credit metrics runs/ --sides runs/before,runs/after --prices prices.csv
    credit metrics runs/ --success-at 0.5 -o metrics.parquet
    credit metrics runs/ --of team
    credit metrics runs/ --of kinds
    credit metrics runs/ --of days --prices prices.csv
    credit metrics runs/ --of decisions -o events.parquet
    """,
)
@reads_logs()
@click.option("--of", "what", type=click.Choice(["traces", "team", "decisions", "kinds", "days"]), default="traces",
              show_default=True, help="Metrics of traces, the team over time, the critical steps of decisions, the "
              "agents of each kind of task, or the runs of each day.")  # fmt: skip
@click.option("--by", type=click.Choice(UNITS), default="all", show_default=True, help="Unit of the rows.")
@sides_option
@takes_prices(", for money")
@click.option("--success-at", type=Number(), metavar="NUMBER",
              help="Outcome from which a trace succeeded. Default: outcomes are 0 or 1.")  # fmt: skip
@click.option("--method", "-m", default="rloo", show_default=True,
              help="Method whose credit tells the agents that earned something.")  # fmt: skip
@method_options
@evidence_option
@click.option("--embeddings", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Compare messages by embeddings: .npy, a row for each event, NaN where it has none.")  # fmt: skip
@click.option("--alike", type=Number(), metavar="COSINE", default=0.95, show_default=True,
              help="Cosine from which two embedded messages say the same.")  # fmt: skip
@output_option("Also write the numbers of each trace, or of each event: .parquet, .csv, .jsonl or .arrow.")
@allow_bad
@json_option
@click.pass_context
def metrics(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    what: str,
    by: MetricUnit,
    sides: str | None,
    prices: Prices | None,
    success_at: float | None,
    method: str,
    option_texts: tuple[str, ...],
    also: tuple[str, ...],
    embeddings: str | None,
    alike: float,
    output: Path | None,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Measure traces: success, errors, tokens, money, time, parallelism, useful agents, communication, team size.

    A trace without a number has a reason, which is counted. Intervals are over tasks. --of team has births, deaths and
    the size of the team after each tenth of a trace's events; --of decisions the critical steps of the main agents'
    decisions; --of kinds the runs, failures and cost of each kind of task, and agents that act in some of these runs;
    --of days the same of each day, or of each hour of a log of two days.
    """
    if what != "traces":
        allowed = ("success_at", "price_table") if what in ("kinds", "days") else ()
        stated = (name for name in FOR_TRACES if name not in allowed)
        given = [name for name in stated if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
        if given:
            option = next(each.opts[0] for each in ctx.command.params if each.name == given[0])
            raise click.UsageError(f"{option} is for --of traces", ctx)
        if what == "kinds":
            _of_kinds(ctx, read_traces(paths, **reading), success_at, prices, output, allow_bad, as_json)
        elif what == "days":
            _of_days(ctx, read_traces(paths, **reading), success_at, prices, output, allow_bad, as_json)
        else:
            _of_events(ctx, read_traces(paths, **reading), what, output, allow_bad, as_json)
        return
    if sides is not None and by != "all":
        message = (
            "--by is for metrics without --sides; for the sides of some traces, such as those of a group, give --sides "
            "a table with columns `trace` and `side` that has only these traces"
        )
        raise click.UsageError(message, ctx)
    import numpy as np

    from credit.doctor.selected_outcomes import selected_outcomes
    from credit.doctor.verdict_errors import verdict_errors
    from credit.methods.option_texts import parse_options
    from credit.metrics.event_costs import price_gaps
    from credit.metrics.metric_summary import metric_means, units_of
    from credit.metrics.success_costs import success_line
    from credit.metrics.trace_costs import with_costs
    from credit.metrics.trace_metrics import MetricOptions, trace_metrics
    from credit.paid_for_success import paid_by_unit
    from credit.reports.refused_traces import RefusedTraces
    from credit.reports.tasks import runs_without_task
    from credit.reports.trace_numbers import of_untold_tasks
    from credit.reports.uncounted_calls import failed_without_count
    from credit.reports.unread_outcomes import unread_line, unread_outcomes, unscored_ends
    from credit.sides.asked_metrics import FIRST, same_in_all
    from credit.sides.compare_sides import compare_sides
    from credit.sides.other_outcomes import other_outcomes
    from credit.sides.ranked_by_side import ranked_by_side
    from credit.sides.weighted_outcomes import weighted_by_unit

    options = parse_options(method, option_texts)
    traces, chosen = read_sides(sides, paths, **reading)
    vectors = None
    if embeddings is not None:
        from graphs.array_files import read_array

        vectors = read_array(Path(embeddings), "a .npy file of numbers, a row for each event")
    with working(stderr(), "measuring traces"):
        credit = _credit(traces, method, also, options)
        found = with_costs(traces, trace_metrics(traces, MetricOptions(success_at, credit, vectors, alike)), prices)
        alone, (names, unit) = by in ("trace", "group"), units_of(traces, by)
        of_all = {} if alone else {name: weighted_by_unit(traces, found[name], unit) for name in FIRST if name in found}
        verdict = next((of.verdict for of in of_all.values()), "")
        means = metric_means(traces, found | {name: of.metric for name, of in of_all.items()}, by)
        paid = [] if alone else paid_by_unit(traces, found, names, unit, prices)
        compared = None if chosen is None else compare_sides(traces, chosen, found, prices, success_at)
        unread, unscored = unread_outcomes(traces, success_at), unscored_ends(traces, success_at)
        by_side = () if chosen is None else (chosen.side, chosen.heads)
        verdicts = [one.as_json(*by_side) for one in verdict_errors(traces, success_at)]
        ranked = [one.as_json() for one in ranked_by_side(traces, success_at, chosen)]
        others = other_outcomes(traces, chosen)
    if output is not None:
        save_table(_table(traces, found), output)
    if as_json:
        lost = {"unread": [*map(dataclasses.asdict, unread)], "unscored": [*map(dataclasses.asdict, unscored)]}
        shown: Any = lost if compared is None else compared.as_json()
        shown["success_costs"], shown["verdicts"] = [*map(dataclasses.asdict, paid)], verdicts
        shown["ranked_verdicts"], shown["other_outcomes"] = ranked, others
        rows = [*map(dataclasses.asdict, means)]
        print_json({"by": by, "method": method, "weighted": verdict, "metrics": rows, **shown})
    else:
        if compared is None:
            _print(stdout(), means, by, same_in_all(found, np.ones(traces.sizes.traces, bool)))
        else:
            print_lines(stdout(), "", compared.story() + [others] * bool(others))
            _print_sides(stdout(), compared)
        if compared is None:
            runs = int((runs_without_task(traces) & ~of_untold_tasks(traces, found)).sum())
            once = f"{counted(runs, 'run')} without a task: each counts as a task in the means" if runs else ""
            selected = [] if alone else selected_outcomes(traces, success_at, prices)
            if verdict and selected:
                selected[1] = f"Outcomes above are weighted by {verdict}."
            of_whom = " ".join(["Traces with an outcome:", *selected]) if selected else ""
            lines = [
                *filter(None, [others, once, of_whom, success_line(paid)]),
                *filter(None, [unread_line(unread, RefusedTraces.of(traces))]),
                *map(str, unscored),
            ]
        else:
            lines = compared.buts() + compared.of_rows() + compared.without_number()
        lines += [f"{one['told']}." for one in verdicts] if compared is not None else []
        lines += [f"{one['told']}." for one in ranked] if compared is not None else []
        lines += filter(None, [failed_without_count(traces)])
        for line in lines + ([] if prices is None else price_gaps(traces, prices).lines()):
            stdout().print(words(line), soft_wrap=True)
        if compared is not None and (hints := compared.hints()):
            stdout().print()
            print_lines(stdout(), "To do more", hints, apart=False)
    leave(ctx, traces, allow_bad)


def _of_kinds(
    ctx: click.Context,
    traces: Traces,
    success_at: float | None,
    prices: Prices | None,
    output: Path | None,
    allow_bad: bool,
    as_json: bool,
) -> None:
    """Runs, failures and cost of each kind of task, and which agents act in some runs of it alone."""
    from credit.metrics.runs_by_kind import runs_by_kind
    from credit.reports.agents_by_kind import agents_by_kind
    from credit.reports.verdict_channels import left_out

    found, rows = runs_by_kind(traces, success_at, prices), agents_by_kind(traces, success_at)
    plain = [*map(dataclasses.asdict, rows)]
    if output is not None:
        import pyarrow as pa

        save_table(pa.Table.from_pylist(plain or [*map(dataclasses.asdict, found.kinds)]), output)
    if as_json:
        print_json({"of": "kinds", "kinds": plain, "runs": dataclasses.asdict(found)})
    elif not found.kinds:
        told = "The log tells no kinds of task apart. `--groups FILE` may state a `task_kind`."
        stdout().print(words(told), soft_wrap=True)
    else:
        _print_kinds(stdout(), found)
        if whose := left_out(traces):
            stdout().print(words(f"{found.failing}: {whose}"), soft_wrap=True)
        if found.unlike:
            stdout().print(words(found.unlike), soft_wrap=True)
        if rows:
            stdout().print()
            _print_agents_of_kinds(stdout(), rows)
    leave(ctx, traces, allow_bad)


def _print_kinds(console: Console, found: RunsByKind) -> None:
    from graphs.task_means import LEAST_TASKS

    paid = [f"#{found.paid_in} a run"] * bool(found.paid_in)
    table = plain_table("kind of task", "#traces", f"#{found.failing}", "95 % interval", *paid)
    for one in found.kinds:
        ends = "–" if one.low is None or one.high is None else f"{100 * one.low:.0f} to {100 * one.high:.0f} %"
        cost = None if one.cost is None else one.cost / one.traces
        money = [at_least(amount(cost), cost is not None and not one.whole)] * len(paid)
        failed = part_of(one.failed, one.known) if one.known else "–"
        if found.verdict:
            failed = "–" if one.rate is None else percent(one.rate)
        table.add_row(words(one.kind or "no kind stated"), str(one.traces), failed, ends, *money)
    console.print(table)
    none = ("–", f"–: no outcome or cost is known, or runs are of fewer than {LEAST_TASKS} tasks")
    weighted = [("", f"{found.failing}: weighted by {found.verdict}")] * bool(found.verdict)
    explain(console, table, none, ("≥", "≥: some calls have no cost, or are missing"), *weighted)


def _print_agents_of_kinds(console: Console, rows: Sequence[AgentOfKind]) -> None:
    table, above = plain_table("kind of task", "agent", "#traces", "#succeeded", "#succeeded without it"), ""
    for one in rows:
        counts = ((one.traces, one.of_traces), (one.succeeded, one.of_known), (one.others_succeeded, one.of_others))
        parts = (f"{some} of {of}" if of else "–" for some, of in counts)
        table.add_row(words("" if one.kind == above else one.kind), words(one.agent), *parts)
        above = one.kind
    console.print(table)
    explain(console, table, ("–", "–: no such trace has an outcome"))


def _of_days(
    ctx: click.Context,
    traces: Traces,
    success_at: float | None,
    prices: Prices | None,
    output: Path | None,
    allow_bad: bool,
    as_json: bool,
) -> None:
    """Runs, failures and cost of each day."""
    from credit.metrics.runs_by_day import runs_by_day
    from credit.reports.verdict_channels import left_out

    found = runs_by_day(traces, success_at, prices)
    plain = [*map(dataclasses.asdict, found.periods)]
    if output is not None:
        import pyarrow as pa

        save_table(pa.Table.from_pylist(plain), output)
    if as_json:
        print_json({"of": "days"} | dataclasses.asdict(found))
    elif not found.periods:
        stdout().print(words("No trace has a date."), soft_wrap=True)
    else:
        table = plain_table(
            f"{found.unit} (UTC)", "#runs", f"#{found.kinds[0]}", *[f"#{found.paid_in}"] * bool(found.paid_in)
        )
        for one in found.periods:
            paid = [at_least(amount(one.cost), one.cost is not None and not one.whole)] * bool(found.paid_in)
            table.add_row(one.begin, str(one.traces), part_of(one.failed, one.known) if one.known else "–", *paid)
        stdout().print(table)
        lost = [("", f"{counted(found.undated, 'run')} without a date")] * bool(found.undated)
        lost += [("", f"{found.kinds[0]}: of runs with an outcome, which {found.verdict} decides")] * bool(
            found.verdict
        )
        lost += [("", f"{found.kinds[0]}: {whose}") for whose in (left_out(traces),) if whose]
        tests = "", "no test: `credit metrics --sides before=DATE` compares two times"
        explain(
            stdout(),
            table,
            ("–", "–: no outcome, or no cost is known"),
            ("≥", "≥: some calls have no cost, or are missing"),
            *lost,
            tests,
        )
    leave(ctx, traces, allow_bad)


def _of_events(
    ctx: click.Context, traces: Traces, what: str, output: Path | None, allow_bad: bool, as_json: bool
) -> None:
    """The course of the team, or what decisions took."""
    from credit.metrics.event_metrics import decision_costs, event_table, steps_of_decisions, team_course
    from credit.reports.missing_lines import LACKING, lacking_traces

    rows: Any = team_course(traces) if what == "team" else decision_costs(traces)
    lacking = [LACKING] * int(lacking_traces(traces).sum())
    reasons = lacking if what == "team" else steps_of_decisions(traces)[1]
    refused = {reason: reasons.count(reason) for reason in sorted({*reasons} - {""})}
    if output is not None:
        save_table(event_table(traces), output)
    if as_json:
        print_json({"of": what, what: [dataclasses.asdict(row) for row in rows], "refused": refused})
    else:
        (_print_course if what == "team" else _print_decisions)(stdout(), rows)
        number = "a number" if what == "team" else "critical steps"
        for reason, count in refused.items():
            stdout().print(words(f"traces without {number}: {reason} ({count})"), soft_wrap=True)
    leave(ctx, traces, allow_bad)


def _print_course(console: Console, points: list[CoursePoint]) -> None:
    table = plain_table("#events up to", "#births", "#deaths", "#agents", "#traces", "#tasks")
    for point in points:
        numbers = (f"{number:.4g}" for number in (point.births, point.deaths, point.size))
        table.add_row(f"{point.part:.0%}", *numbers, str(point.traces), str(point.tasks))
    console.print(table)
    explain(console, table, ("", "births, deaths, agents: means over tasks; births and deaths are those so far"))


def _print_decisions(console: Console, costs: list[DecisionCost]) -> None:
    table = plain_table("agent", "type", "#decisions", "#critical steps", "#part of all")
    for cost in costs:
        numbers = (str(cost.decisions), f"{cost.steps:.4g}", percent(cost.share, 1))
        table.add_row(words(cost.agent), words(cost.type), *numbers)
    console.print(table)
    explain(console, table, ("", "critical steps: its own, and those of the sub-agent that takes longest after it"))


def _print_sides(console: Console, found: SideComparison) -> None:
    table = plain_table(
        "metric",
        *(f"#{head}" for head in found.sides.heads),
        "#change",
        "95 % interval",
        "",
        "#would be seen",
        "#tasks",
    )
    compared = {row.metric for row in found.rows}

    def add(row: SideDifference) -> None:
        told, of = row.without, "typical" if row.paired else "geometric"
        if row.low is not None and row.high is not None:
            told = interval(row.low, row.high)
        elif row.ratio is not None:
            ratio, low, high = apart((row.ratio.value, row.ratio.low, row.ratio.high), amount, 3, beside=1.0)
            told = f"{of} ×{ratio} ({low} to {high})"
        numbers = [*apart((row.first, row.second), amount, 3), signed(row.difference), told]
        numbers[:3] = [amount(row.first)] * 2 + ["the same"] if row.is_alike else numbers[:3]
        tasks = f"{f'{row.differing} of ' if row.is_of_some else ''}{row.tasks}{' shared' if row.paired else ''}"
        seen = row.would_be_seen
        table.add_row(words(row.name), *numbers, row.mark, "" if seen is None else seen or "nothing", tasks)

    shown = found.shown()
    others = [row for row in shown if row.is_other]
    for row in (*shown[: len(shown) - len(others)], *found.of_tools()):
        add(row)
    for bound in found.bounds:
        name = f"{bound.metric}, all traces" if bound.metric in compared else bound.metric
        known = zip((bound.first, bound.second), bound.whole, strict=True)
        least = (at_least(amount(least), not whole) for least, whole in known)
        table.add_row(words(name), *least, "", "not compared", "", "", str(bound.tasks))
    if 0 < len(others) < len(shown):
        table.add_row("other metrics:", *[""] * 7)
    for row in others:
        add(row)
    console.print(table)
    explain(console, table, *found.terms())


def _credit(traces: Traces, method: str, also: tuple[str, ...], options: dict[str, Any]) -> Credit | None:
    from credit.methods.running import has_outcomes, run

    return run(traces, method, evidence=also, **options) if has_outcomes(traces) else None


def _table(traces: Traces, found: dict[str, TraceMetric]) -> Any:
    """A row for each trace: its id, its group and a column for each metric, null where it has none."""
    import pyarrow as pa

    columns = {name: pa.array(metric.value, pa.float64(), from_pandas=True) for name, metric in found.items()}
    return pa.table({"trace": traces.traces["trace"], "group": traces.traces["group"], **columns})


def _print(console: Console, means: list[MetricMean], by: str, same: dict[str, float]) -> None:
    from credit.metrics.trace_costs import COSTS
    from credit.metrics.trace_metrics import METRICS

    shown = [row for row in means if row.mean is not None and row.metric not in same]
    table = plain_table(*([by] if by != "all" else []), "metric", "#mean", "95 % interval", "#traces", "#tasks")
    for row in shown:
        interval = "–" if row.low is None else f"{amount(row.low, 4)} to {amount(row.high, 4)}"
        if row.median is not None:
            ends = f"{amount(row.median.low, 4)} to {amount(row.median.high, 4)}"
            interval = f"median {amount(row.median.median, 4)} ({ends})"
        cells = (words(row.metric), amount(row.mean, 4), interval, str(row.traces), str(row.tasks))
        table.add_row(*([words(row.unit)] if by != "all" else []), *cells)
    console.print(table)
    known = {**COSTS, **METRICS}
    named = [*dict.fromkeys(row.metric for row in shown if row.metric not in PLAIN)]
    without = "; ".join(sorted({row.without for row in shown if row.without}))
    explain(
        console,
        table,
        ("95 % interval: median", "median: of tasks; a few large tasks may make the mean"),
        ("95 % interval: –", f"–: {without}"),
        *(("", f"{name}: {known.get(name, 'a logged cost of the trace')}") for name in named[:EXPLAINED]),
        *([("", f"in docs/metrics.md: {', '.join(named[EXPLAINED:])}")] if named[EXPLAINED:] else []),
    )
    if same:
        numbers = ", ".join(f"{name} {amount(number)}" for name, number in same.items())
        console.print(
            words(f"the same to three digits in all traces that have one ({len(same)}): {numbers}"), soft_wrap=True
        )
    partly = {row.metric for row in means if row.mean is not None}
    refused: dict[str, collections.Counter[str]] = {}
    for row in means:
        refused.setdefault(row.metric, collections.Counter()).update(row.refused)
    for lead, some in (("no number in some traces", True), ("no number", False)):
        alike: dict[str, list[str]] = {}
        for name in (name for name, counts in refused.items() if counts and (name in partly) == some):
            whys = (f"{why}, {counted(count, 'trace')}" if some else why for why, count in refused[name].items())
            alike.setdefault("; ".join(whys), []).append(name)
        for why, names in alike.items():
            console.print(words(f"{lead}: {', '.join(names)} ({why})"), soft_wrap=True)
