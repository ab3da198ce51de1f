"""`credit metrics`: success, parallelism, useful agents, communication and errors of traces, with intervals."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.advantages.assign import evidence_option, method_options
from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import output_option, save_table
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, leave, read_traces, reads_logs

if TYPE_CHECKING:
    from rich.console import Console

    from credit.metrics.metric_summary import MetricMean, MetricUnit
    from credit.metrics.trace_numbers import TraceMetric
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["metrics"]

UNITS = ("all", "trace", "group", "model", "topology", "length")


@click.command(
    cls=Command,
    short_help="Measure success, parallelism, useful agents, communication and errors.",
    examples="""
    credit metrics runs/
    credit metrics runs/ --by length --method rloo
    credit metrics runs/ --success-at 0.5 -o metrics.parquet
    """,
)
@reads_logs()
@click.option("--by", type=click.Choice(UNITS), default="all", show_default=True, help="Unit of the rows.")
@click.option("--success-at", type=float, metavar="NUMBER",
              help="Outcome from which a trace succeeded. Default: outcomes are 0 or 1.")  # fmt: skip
@click.option("--method", "-m", default="rloo", show_default=True,
              help="Method whose credit tells the agents that earned something.")  # fmt: skip
@method_options
@evidence_option
@click.option("--embeddings", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
              help="Compare messages by embeddings: .npy, a row for each event, NaN where it has none.")  # fmt: skip
@click.option("--alike", type=float, metavar="COSINE", default=0.95, show_default=True,
              help="Cosine from which two embedded messages say the same.")  # fmt: skip
@output_option("Also write a table with the numbers of each trace: .parquet, .csv, .jsonl or .arrow.")
@allow_bad
@json_option
@click.pass_context
def metrics(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    by: MetricUnit,
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
    """Measure traces: success, parallelism, useful agents, communication, errors and the size of the team.

    A trace without a number has a reason, which is counted. Intervals are over tasks.
    """
    from credit.methods.option_texts import parse_options
    from credit.metrics.metric_summary import metric_means
    from credit.metrics.trace_metrics import MetricOptions, trace_metrics

    options = parse_options(method, option_texts)
    traces = read_traces(paths, **reading)
    vectors = None
    if embeddings is not None:
        from graphs.array_files import read_array

        vectors = read_array(Path(embeddings), "a .npy file of numbers, a row for each event")
    with working(stderr(), "measuring traces"):
        credit = _credit(traces, method, also, options)
        found = trace_metrics(traces, MetricOptions(success_at, credit, vectors, alike))
        means = metric_means(traces, found, by)
    if output is not None:
        save_table(_table(traces, found), output)
    if as_json:
        print_json({"by": by, "method": method, "metrics": [dataclasses.asdict(row) for row in means]})
    else:
        _print(stdout(), means, by)
    leave(ctx, traces, allow_bad)


def _credit(traces: Traces, method: str, also: tuple[str, ...], options: dict[str, Any]) -> Credit | None:
    from credit.methods.running import has_outcomes, run

    return run(traces, method, evidence=also, **options) if has_outcomes(traces) else None


def _table(traces: Traces, found: dict[str, TraceMetric]) -> Any:
    """A row for each trace: its id, its group and a column for each metric, null where it has none."""
    import pyarrow as pa

    columns = {name: pa.array(metric.value, pa.float64(), from_pandas=True) for name, metric in found.items()}
    return pa.table({"trace": traces.traces["trace"], "group": traces.traces["group"], **columns})


def _print(console: Console, means: list[MetricMean], by: str) -> None:
    from credit.metrics.trace_metrics import METRICS

    shown = [row for row in means if row.mean is not None]
    table = plain_table(*([by] if by != "all" else []), "metric", "#mean", "95 % interval", "#traces", "#tasks")
    for row in shown:
        interval = "–" if row.low is None else f"{row.low:z.4g} to {row.high:z.4g}"
        cells = (words(row.metric), f"{row.mean:z.4g}", interval, str(row.traces), str(row.tasks))
        table.add_row(*([words(row.unit)] if by != "all" else []), *cells)
    console.print(table)
    for reason in sorted({row.without for row in shown if row.without}):
        console.print(words(f"no interval (–): {reason}"), soft_wrap=True)
    for name in dict.fromkeys(row.metric for row in shown):
        console.print(words(f"{name}: {METRICS[name]}"), soft_wrap=True)
    refused: dict[str, dict[str, int]] = {}
    for row in means:
        for reason, count in row.refused.items():
            counts = refused.setdefault(row.metric, {})
            counts[reason] = counts.get(reason, 0) + count
    for name, counts in refused.items():
        parts = "; ".join(f"{reason} ({count})" for reason, count in counts.items())
        console.print(words(f"{name}, traces without a number: {parts}"), soft_wrap=True)
