"""`credit validate`: check logs and report which groups carry a training signal."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.cli.shared.answers import print_json, stderr, stdout, words
from credit.cli.shared.commands import Command
from credit.cli.shared.engines import engine_option, options_of_parts
from credit.cli.shared.progress import steps
from credit.cli.shared.reading import (
    SHOWN,
    allow_bad,
    check_channel,
    exit_code,
    list_problems,
    read_traces,
    reads_logs,
    tell_channels,
    tell_sources,
)
from graphs.text import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from credit.reports.corpus import Survey
    from graphs.traces.batch import Traces

__all__ = ["validate"]

LINE = 280  # characters of names together
STATUSES = 8  # words of a kind that are shown
NO_EVIDENCE = "none beyond outcomes; credit choose says what could be logged"
EVIDENCE = "evidence: what methods can use from the log, and how many events or traces have it"


@click.command(
    cls=Command,
    short_help="Check logs and report which groups carry a training signal.",
    examples="""
    credit validate runs/
    credit validate runs/ --rewards outcomes.csv --all
    credit validate runs/ --json
    credit validate s3://bucket/runs --engine ray
    """,
)
@reads_logs()
@engine_option("Count parts of native logs side by side, here or on a cluster.")
@click.option("--chunk-events", type=click.IntRange(1), metavar="N",
              help="With --engine: about N events a part, in whole groups.")  # fmt: skip
@allow_bad
@click.option("--all", "all_", is_flag=True, help="List every problem and name instead of the first twenty.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def validate(
    ctx: click.Context,
    /,
    paths: tuple[str, ...],
    engine: str | None,
    chunk_events: int | None,
    allow_bad: bool,
    all_: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Check logs: what was read, what was refused and why, and which groups carry a training signal.

    A group carries a signal if its traces have different returns. A return is the outcome plus the rewards at events.
    """
    from credit.method_summary import ELSEWHERE, REMEDY
    from credit.methods.absent_outcomes import found_instead
    from credit.methods.units_apart import NO_TURNS, lacks_turns
    from credit.reports.corpus import survey
    from credit.reports.trace_returns import UNRESOLVED
    from credit.reports.uncounted_calls import said_of_tool_calls

    if engine is not None:
        corpus, instead = _survey_on_ray(paths, chunk_events, reading)
        group = turns = outcome = ""  # parts are of native logs
    elif chunk_events is not None:
        raise click.UsageError("--chunk-events is the size of the parts of --engine; expected both")
    else:
        traces = read_traces(paths, **reading)
        corpus, outcome = survey(traces), traces.outcome
        instead = "" if corpus.reward_channels or len(corpus.unscored) < corpus.traces else found_instead(traces)
        alone = "table" in corpus.formats and len(corpus.singletons) == corpus.groups
        group = _group_option(traces, reading["columns"] or {}) if alone else ""
        turns = f"For methods by the turn {NO_TURNS}" if lacks_turns(traces) else ""
    if as_json:
        print_json(corpus.as_json())
    else:
        console = stdout()
        list_names = functools.partial(_list_names, console, all_=all_)
        console.print(_table(corpus, reading["reward_channel"], outcome))
        if corpus.evidence:
            console.print(words(EVIDENCE), soft_wrap=True)
        for line in _advice(corpus, group):
            console.print(words(line), soft_wrap=True)
        bare = said_of_tool_calls(corpus.tool_calls_without_tokens, corpus.spawns_without_tokens)
        for line in filter(None, (instead, turns, bare)):
            console.print(words(line), soft_wrap=True)
        equal = {g: r for g, r in corpus.equal.items() if g not in corpus.unresolved}
        list_names(f"Groups with equal {_compared(corpus)}", (f"{_quoted(g)} (all {r:g})" for g, r in equal.items()))
        for why in dict.fromkeys(corpus.unresolved.values()):
            title = f"Groups with different {_compared(corpus)} and no signal ({why})"
            list_names(title, [_quoted(group) for group, reason in corpus.unresolved.items() if reason == why])
        list_names(f"Groups whose {UNRESOLVED['coarse']}", map(_quoted, corpus.rounded))
        far = (f"{name} ({ranges})" for name, ranges in corpus.far.items())
        list_names("Evidence far from outcomes, as numbers in another unit are", far)
        if all(problem.kind != "look-alike-ids" for problem in corpus.problems):  # of several parts: each has its own
            list_names("Names that are spelt almost alike, and are compared as several", corpus.alike)
        list_names("Groups of one", map(_quoted, corpus.singletons if corpus.groups > 1 else ()))
        mixed = (f"{_quoted(g)} ({'; '.join(p)})" for g, p in corpus.mixed.items())
        list_names("Groups of several models or systems", mixed)
        list_names("Groups with fewer than two outcomes", map(_quoted, corpus.unscored_groups))
        unscored = corpus.unscored if len(corpus.unscored) < corpus.traces else ()
        list_names("Traces without outcome", map(_quoted, unscored))
        list_names("Traces with an outcome and no action, which enter no baseline", map(_quoted, corpus.idle))
        stale = (f"{_quoted(name)} ({own}, newest {newest})" for name, (own, newest) in corpus.stale.items())
        list_names("Traces of an older policy_version than the newest of their group", stale)
        masked = map(_quoted, corpus.masked)
        list_names("Traces whose masks train no token, which enter baselines as in the trainers", masked)
        elsewhere = (f"{_quoted(name)} ({_quoted(other)})" for name, other in corpus.elsewhere.items())
        list_names(ELSEWHERE.capitalize(), elsewhere)
        if corpus.elsewhere:
            console.print(words(f"  {REMEDY}"), soft_wrap=True)
        list_problems(corpus.problems, console, all_=all_, in_full=True)
    ctx.exit(exit_code(corpus, allow_bad))


def _compared(corpus: Survey) -> str:
    """The word for what is compared within a group: "returns" if the logs have rewards at events, else "outcomes"."""
    return "returns" if "event_reward" in corpus.evidence else "outcomes"


def _survey_on_ray(paths: tuple[str, ...], events: int | None, reading: dict[str, Any]) -> tuple[Survey, str]:
    """Count parts of native logs side by side: their survey, and what was found in place of outcomes, in words.

    Raises:
      CreditError: as `credit.ray.validate`; or no trace has the reward that was asked for by name.
    """
    from credit.methods.absent_outcomes import other_channels
    from credit.ray.cluster import EVENTS, chunks_on_cluster
    from credit.ray.corpus_parts import survey_of_parts

    chunks = chunks_on_cluster(paths, EVENTS if events is None else events, **options_of_parts(reading, "--engine"))
    corpus, instead = survey_of_parts(
        chunks, lambda numbers: map(int, steps(stderr(), map(str, numbers), "counting part"))
    )
    tell_sources(chunks.sources)
    check_channel(reading["reward_channel"], corpus.reward_channels, corpus.problems)
    if len(corpus.unscored) == corpus.traces:
        tell_channels(other_channels(corpus.reward_channels, corpus.traces, corpus.by_people), corpus.reward_channels)
    return corpus, instead


def _table(corpus: Survey, channel: str, outcome: str) -> Table:
    from rich.table import Table

    from credit.methods.absent_outcomes import by_people

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")  # a long path is never cut

    def row(name: str, value: object) -> None:
        table.add_row(name, words(value))

    sizes = ", ".join(f"{count} of {size}" for size, count in corpus.group_sizes.items())
    having = corpus.reward_channels
    of = {name: [str(n), by_people(n, corpus.by_people.get(name, 0))] for name, n in having.items()}
    channels = ", ".join(f"{name} ({', '.join(filter(None, said))})" for name, said in of.items())
    row("traces", corpus.traces)
    row("formats", ", ".join(f"{name} ({count})" for name, count in corpus.formats.items()))
    row("groups", f"{corpus.groups}; sizes: {sizes}")
    what, alone = _compared(corpus), corpus.teaching - corpus.outcomes_apart
    also = f"; in {alone} only by rewards at events, outcomes are equal there" if alone else ""
    row("  with a signal", f"{corpus.teaching} of {corpus.groups}, with traces of different {what}{also}")
    row(f"  equal {what}", len(corpus.equal) - len(corpus.unresolved))
    if corpus.unresolved:
        row("  not told apart", len(corpus.unresolved))
    if corpus.rounded:
        row("  rounded", f"{len(corpus.rounded)} of those with a signal")
    are = "are groups" if corpus.without_task > 1 else "is a group"
    runs = f"; {counted(corpus.without_task, 'run')} without a task {are} of one"
    row("  of one trace", f"{len(corpus.singletons)}{runs if corpus.without_task else ''}")
    if corpus.divided:
        have = "has" if corpus.divided == 1 else "have"
        row("  of divided tasks", f"{counted(corpus.divided, 'task')} {have} a group for each model or system")
    if corpus.mixed:
        row("  of several models", len(corpus.mixed))
    if corpus.unscored_groups:
        row("  too few outcomes", len(corpus.unscored_groups))
    with_agents = corpus.of_agents
    agents = f"; agents of {counted(with_agents, 'trace')} have outcomes of their own" if with_agents else ""
    scored = corpus.traces - len(corpus.unscored) - with_agents
    column = f", column {outcome!r}" if outcome not in ("", channel) else ""
    row("outcomes", f"{scored} of {corpus.traces} traces, from reward {channel!r}{column}{agents}")
    if corpus.replays:
        row("sharing a choice", f"{corpus.replays} of {corpus.traces} traces, which count as replays of one prefix")
    row("rewards in the log", channels or "none")
    row("events", corpus.events)
    row("actions", f"{corpus.actions}; a trace has {corpus.actions_per_trace}")
    row("agents", f"{corpus.agents}; a trace has {corpus.agents_per_trace}")
    row("events per agent", corpus.events_per_agent)
    tokens = corpus.tokens_per_trace
    partial = 0 < corpus.actions_with_tokens < corpus.actions
    known = f", in the {corpus.actions_with_tokens} of {corpus.actions} actions that have a count" if partial else ""
    whole = f"; {corpus.stated_tokens} stated of {counted(corpus.traces_with_tokens, 'whole trace')}"
    absent = "not logged" + (f" by action{whole}" if corpus.traces_with_tokens else "")
    row("tokens generated", absent if tokens is None else f"{tokens.total}{known}; a trace has {tokens}")
    row("evidence", ", ".join(f"{name} ({count})" for name, count in corpus.evidence.items()) or NO_EVIDENCE)
    if corpus.statuses:
        row("statuses", _said_of_statuses(corpus.statuses))
    if corpus.ignored:
        names = ", ".join(corpus.ignored[:3]) + (", …" if len(corpus.ignored) > 3 else "")
        row("files passed over", f"{len(corpus.ignored)}: {names}")
    for name, wrong in (("problems", True), ("notes", False)):
        if number := sum(problem.count for problem in corpus.problems if problem.is_failure == wrong):
            row(name, number)
    return table


def _said_of_statuses(statuses: dict[str, int]) -> str:
    """Which words of statuses count as errors, and which are of no list."""
    from graphs.traces.record import is_cut
    from graphs.traces.statuses import says_error, says_fine  # it loads pyarrow, and `--help` does not

    kinds = (
        ("count as errors", says_error), ("are answers cut at a limit of tokens", is_cut), ("do not", says_fine),
        ("are of no list and do not", lambda word: True),
    )  # fmt: skip
    left, said = dict(statuses), []
    for kind, is_of in kinds:
        words_of = [word for word in left if is_of(word)]
        shown = [f"{word} ({left.pop(word)})" for word in words_of][:STATUSES]
        more = f" and {len(words_of) - STATUSES} more" if len(words_of) > STATUSES else ""
        said += [f"{', '.join(shown)}{more} {kind}"] if shown else []
    return "; ".join(said)


def _group_option(traces: Traces, columns: dict[str, str]) -> str:
    """The option that names the column of the group in a table that was read without one; "" where there is none."""
    from graphs.errors import TraceError
    from graphs.formats.table.columns import find_columns
    from graphs.formats.table.hints import columns_option
    from graphs.reading.source import Source
    from graphs.reading.tables.likely_columns import likely_column

    kinds, files = (traces.traces[name].to_pylist() for name in ("format", "file"))
    path = Path(files[kinds.index("table")]) if "table" in kinds else None
    if path is None or not path.is_file():  # standard input cannot be read again
        return ""
    source = Source(str(path), path)
    try:
        column_of, names = find_columns(source, columns)
    except TraceError:
        return ""
    likely = {"group": likely_column("group", names, column_of.values())}
    return "" if "group" in column_of else columns_option(likely, columns)


def _advice(corpus: Survey, group: str) -> list[str]:
    """What to do about a corpus without a training signal; `group` is the option that would name the groups."""
    from credit.reports.own_outcomes import said_of_odd

    lines = [*filter(None, [said_of_odd(corpus.odd, corpus.traces)])]
    if len(corpus.unscored) == corpus.traces and not corpus.reward_channels:  # else it is said where they are read
        lines.append("No trace has an outcome: pass --rewards FILE, a table with columns `trace` and `reward`")
    if corpus.traces > 1 and len(corpus.singletons) == corpus.groups:
        named = f"{group} or " if group else ""
        what = f"if traces share tasks, pass {named}--groups FILE, a table with `trace` and `group`"
        if corpus.divided:
            what = "tasks are split by model or system; --group-by task compares all traces of a task"
        lines.append(f"Every group has one trace: {what}")
    return lines


def _quoted(name: str) -> str:
    """The name, in quotes where a list of names would hide where it ends."""
    return repr(name) if not name or any(sign.isspace() or sign == "," for sign in name) else name


def _list_names(console: Console, title: str, names: Iterable[str], *, all_: bool) -> None:
    listed = list(names)
    if not listed:
        return
    shown = listed if all_ else _first(listed)
    more = f", … and {len(listed) - len(shown)} more; --all lists them" if len(shown) < len(listed) else ""
    console.print(words(f"{title}: {', '.join(shown)}{more}"), soft_wrap=True)


def _first(names: Sequence[str]) -> Sequence[str]:
    """As many as are read at one glance: ids may be long."""
    ends = itertools.accumulate(len(name) + 2 for name in names[:SHOWN])
    return names[: max(1, sum(end <= LINE for end in ends))]
