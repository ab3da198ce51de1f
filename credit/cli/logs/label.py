"""`credit label`: a page on which a person gives outcomes to traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import output_option
from credit.cli.shared.pages import page_title, quoted, serve, served
from credit.cli.shared.progress import working
from credit.cli.shared.reading import allow_bad, exit_code, list_problems, read_traces, reads_logs
from graphs.text import counted

__all__ = ["label"]


@click.command(
    cls=Command,
    short_help="Give outcomes to traces in a browser, for `--rewards`.",
    examples="""
    credit label sessions/ -o labels.csv --rater ann
    credit assign sessions/ --rewards labels.csv -o advantages.parquet
    """,
)
@reads_logs()
@output_option(
    "File of labels: .csv or .jsonl. Labels that it holds are kept.", required=True, suffixes=(".csv", ".jsonl")
)
@click.option("--rater", default="", metavar="NAME", help="Who labels; written beside each label.")
@quoted
@served
@allow_bad
@json_option
@click.pass_context
def label(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: Path,
    rater: str,
    no_text: bool,
    port: int,
    no_browser: bool,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Give outcomes to traces in a browser. Ctrl-C ends the command.

    Each answer is written to the file at once, "cannot tell" too. `--rewards` of the other commands reads the file. A
    second call with the same file goes on with the traces that have no label, first with those without an outcome: a
    group that has a label or an outcome is finished before another is begun. The order is random (by hashes of the
    traces' ids), and each system, verdict and kind of task has its share from the beginning.
    """
    import numpy as np

    from credit.page import Findings, Labels, PageServer
    from credit.reports.verdict_channels import people_judged

    labels = Labels(output, rater=rater)
    traces = read_traces(paths, **reading)
    list_problems(traces.problems, stderr())
    with working(stderr(), "preparing the page"):
        server = PageServer(
            Findings.of(traces, {}, text=not no_text), title=page_title("Label traces", paths), port=port, labels=labels
        )
    serve(server, no_browser=no_browser, quiet=as_json)
    number, total, by_trace = len(labels.by_trace), traces.sizes.traces, labels.by_trace
    scored = (np.isfinite(traces.reward[:total]) | people_judged(traces)).tolist()
    ids = traces.traces["trace"].to_pylist()
    bare = sum(not known and name not in by_trace for name, known in zip(ids, scored, strict=True))
    untold = sum(isinstance(label.reward, str) for label in labels.by_trace.values())
    if as_json:
        print_json({"output": str(output), "labels": number, "cannot_tell": untold, "traces": total, "unknown": bare})
    else:
        some = f", {untold} of them 'cannot tell'" if untold else ""
        text = f"{output} holds {counted(number, 'label')}{some}; {counted(total, 'trace')} were read, "
        text += f"{bare} of them with neither a label nor an outcome"
        stderr().print(words(text), soft_wrap=True)
    ctx.exit(exit_code(traces, allow_bad))
