"""`credit convert`: any format that reads, written in the native one, the survey's, as OTLP, or as a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from credit.cli.shared.answers import json_option, print_json, stderr, words
from credit.cli.shared.commands import Command
from credit.cli.shared.outputs import check_folder, stay_outside
from credit.cli.shared.reading import allow_bad, keep_logs, leave, read_traces, reads_logs
from graphs.text import counted

__all__ = ["convert"]

OTLP_FILES = ("spans.jsonl", "logs.jsonl")
NATIVE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")


@click.command(
    cls=Command,
    short_help="Rewrite logs in another format.",
    examples="""
    credit convert runs/ -o traces.jsonl.zst
    credit convert runs/ -o corpus.parquet
    credit convert runs/ --to otlp -o otlp/
    """,
)
@reads_logs()
@click.option(
    "--output",
    "-o",
    required=True,
    metavar="OUT",
    type=click.Path(),
    help="File to write: .jsonl, .jsonl.gz or .jsonl.zst; .parquet for a cache; a folder for OTLP and survey.",
)
@click.option(
    "--to",
    type=click.Choice(["native", "survey", "otlp", "cache"]),
    help="Format to write. Default: cache for a .parquet file, else native.",
)
@click.option(
    "--texts/--no-texts", default=True, help="Write what events say, as arguments and errors, into native logs, or not."
)
@allow_bad
@json_option
@click.pass_context
def convert(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    output: str,
    to: str | None,
    texts: bool,
    allow_bad: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Rewrite logs in the native format or the survey's, as OTLP, or as a Parquet cache that reads back fast.

    The output must lie outside the folders that are read.
    """
    to = to or ("cache" if output.endswith(".parquet") else "native")
    if to == "cache" and not output.endswith(".parquet"):
        raise click.BadParameter(f"{output!r}; expected a name ending in .parquet", ctx=ctx, param_hint="--output")
    if to == "native" and not output.endswith(NATIVE_SUFFIXES):
        is_cache = output.endswith(".parquet")
        other = "; `--to cache` writes .parquet" if is_cache else ", or .parquet for a cache"
        expected = f"a name ending in {', '.join(NATIVE_SUFFIXES)}{other}"
        raise click.BadParameter(f"{output!r}; expected {expected}", ctx=ctx, param_hint="--output")
    if output == "-":
        raise click.BadParameter("'-'; expected the name of a folder", ctx=ctx, param_hint="--output")
    if to == "otlp":
        for name in OTLP_FILES:
            keep_logs(ctx, Path(output, name), "--output")
    elif to == "survey":
        folder = Path(output)
        if folder.exists() and (not folder.is_dir() or any(not path.name.startswith(".") for path in folder.iterdir())):
            raise click.BadParameter(f"{output!r} is not empty; expected a new folder", ctx=ctx, param_hint="--output")
    else:
        check_folder(Path(output), "--output")
    stay_outside(ctx, Path(output))
    traces = read_traces(paths, **reading)
    left_out: dict[str, int] = {}
    if to == "native":
        from credit.reports.event_texts import native_texts
        from graphs.writers import native

        native.write(traces, output, native_texts(traces) if texts else None)
    elif to == "cache":
        from graphs.traces.cache import write_cache

        write_cache(traces, output)
    elif to == "survey":
        from graphs.writers import survey

        survey.write(traces, output)
        left_out = survey.left_out(traces)
    else:
        from graphs.writers import otlp

        otlp.write(traces, output)
    console = stderr()
    console.print(words(f"wrote {counted(traces.sizes.traces, 'trace')} to {output}"), soft_wrap=True)
    if left_out:
        listed = ", ".join(f"{name} (of {counted(count, 'trace')})" for name, count in left_out.items())
        console.print(words(f"left out, since the survey's form has no place for it: {listed}"), soft_wrap=True)
    if as_json:
        answer = {"traces": traces.sizes.traces, "to": to, "output": output, "problems": len(traces.problems)}
        print_json(answer | ({"left_out": left_out} if to == "survey" else {}))
    leave(ctx, traces, allow_bad)
