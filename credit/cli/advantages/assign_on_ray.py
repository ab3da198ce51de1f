"""`credit assign --engine ray`: parts of native logs side by side, a file for each."""

from __future__ import annotations

from typing import Any, NoReturn

import click

import credit.ray
from credit.cli.shared.answers import print_json
from credit.cli.shared.engines import options_of_parts
from credit.cli.shared.progress import steps
from credit.cli.shared.reading import REFUSED, list_problems, stderr, tell_sources, words
from credit.ray.cluster import EVENTS
from graphs.text import counted

__all__ = ["assign_on_ray"]


def assign_on_ray(
    ctx: click.Context,
    paths: tuple[str, ...],
    output: str,
    asked: tuple[str, dict[str, Any], tuple[str, ...]],
    events: int | None,
    actions_only: bool,
    allow_bad: bool,
    as_json: bool,
    reading: dict[str, Any],
) -> NoReturn:
    """Run `credit.ray.assign`, print what it counted, and exit as the command does without an engine."""
    method, options, also = asked
    if output == "-":
        raise click.BadParameter("--engine writes a file for each part; expected a folder", param_hint="--output")
    console = stderr()
    written = credit.ray.assign(
        *paths,
        output=output,
        method=method,
        options=options,
        evidence=also,
        actions_only=actions_only,
        events=EVENTS if events is None else events,
        **options_of_parts(reading),
        progress=lambda numbers: map(int, steps(console, map(str, numbers), "computing part")),
    )
    tell_sources(written.sources)
    for line in written.summary.lines(method, options):
        console.print(words(line), soft_wrap=True)
    kept = f", {written.resumed} of them kept from an earlier run" if written.resumed else ""
    where = f"{counted(len(written.files), 'part')} in {output}{kept}"
    console.print(words(f"wrote {counted(written.rows, 'row')} to {where}"), soft_wrap=True)
    if as_json:
        counts = {"rows": written.rows, "output": output, "parts": len(written.files), "resumed": written.resumed}
        print_json(written.summary.as_json(method, options) | counts)
    list_problems(written.problems, console, all_=False)
    failed = any(problem.is_failure for problem in written.problems)
    ctx.exit(REFUSED if failed and not allow_bad else 0)
