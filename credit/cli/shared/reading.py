"""What commands that read logs share: their options, reading with a progress bar, and how they end."""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from credit.cli.shared.answers import stderr, words
from credit.cli.shared.commands import ARGUMENTS, READING_OPTIONS
from credit.cli.shared.progress import ReadingBar, progress_bar
from graphs.errors import UNREAD_OUTCOME, CreditError, condensed

if TYPE_CHECKING:
    from rich.console import Console

    from credit.sides.chosen_sides import Sides
    from graphs.errors import Problem
    from graphs.reading.tables.reward_sources import RewardSources
    from graphs.traces.batch import Traces

__all__ = [
    "REFUSED",
    "SHOWN",
    "HasProblems",
    "check_channel",
    "exit_code",
    "given_inputs",
    "keep_logs",
    "leave",
    "list_problems",
    "read_sides",
    "read_traces",
    "reads_logs",
    "tell_channels",
    "tell_sources",
]

LONG = 150  # characters of what was expected, such as all formats, that are written once
SHOWN = 20  # problems and names listed before "…"
REFUSED = 3  # the exit code where some traces were refused
CHANNEL = "team"  # the reward that is the outcome unless another is named, as of `graphs.logs.read_logs`


def reads_logs(required: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command PATH... (`paths`) and the options of `graphs.logs.read_logs` (keywords of `read_traces`)."""
    options = (
        click.argument("paths", metavar="PATH...", nargs=-1, required=required, type=click.Path(readable=False)),
        click.option(
            "--format",
            "format_",
            metavar="NAME",
            shell_complete=_formats,
            help="Format of all files. Default: detected by content.",
        ),
        click.option(
            "--columns",
            metavar="NAME=COLUMN,...",
            callback=_columns,
            help="Columns of a trainer's table, as trace=traj_uid,group=uid; or keys of traces' metadata, as "
            "group=ticket,system=release,task_kind=kind.",
        ),
        click.option(
            "--rewards",
            type=_FILE,
            metavar="FILE",
            help="Table of outcomes: columns `trace` and `reward`, also `rewards.NAME`; numbers, or words as pass. "
            "A `rater` names the person who gave them.",
        ),
        click.option(
            "--outcomes",
            callback=_meanings,
            metavar="WORD=NUMBER,...",
            help="What words of outcomes mean, as escalated=0, where pairs as pass and fail do not say.",
        ),
        click.option(
            "--types",
            callback=_types,
            metavar="WORD=TYPE,...",
            help="What words of a table's types mean, as llm=message,tool=tool_call.",
        ),
        click.option(
            "--groups",
            type=_FILE,
            metavar="FILE",
            help="Table of tasks: columns `trace` and any of `group`, `system` and `task_kind`, or all but `trace`.",
        ),
        click.option(
            "--group-by",
            callback=_keys,
            metavar="KEY,...",
            help="Traces to compare: those of one task, model and system (task,model,system, the default); "
            "task compares all models.",
        ),
        click.option(
            "--reward-channel", default=CHANNEL, show_default=True, help="Reward of the log that is the outcome."
        ),
        click.option(
            "--errors",
            type=click.Choice(["keep", "drop"]),
            default="keep",
            show_default=True,
            help="Runs that their log calls failed: read them with the reward that it states, or leave them out.",
        ),
        click.option(
            "--orphans",
            type=click.Choice(["keep", "root", "refuse"]),
            default="keep",
            show_default=True,
            help="Traces with spans whose parents are missing: keep, as cut short; refuse; root: attach spans of otlp "
            "and spans whose agent is clear.",
        ),
        click.option(
            "--limit",
            "limits",
            multiple=True,
            metavar="NAME=INTEGER",
            help="Bound on reading, from 1 to 10^18 - 1, as file-bytes=8000000000. May be repeated. NAME is "
            "file-bytes, record-bytes, string-bytes, depth, events, edges, files or ratio.",
        ),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def checked(*args: Any, **kwargs: Any) -> Any:
            _keep_inputs(click.get_current_context())
            return command(*args, **kwargs)

        for option in reversed(options):
            checked = option(checked)
        return checked

    return decorate


def given_inputs(context: click.Context) -> list[str]:
    """The paths and reading options of a call as they were written, for a command that is printed."""
    texts = [str(path) for path in context.params["paths"]]
    for option in context.command.params:
        stated = context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
        if option.name in READING_OPTIONS and stated:
            value = context.params[option.name]
            if isinstance(value, dict):
                value = ",".join(f"{name}={column}" for name, column in value.items())
            if option.name == "group_by":
                value = ",".join(value)
            for part in value if isinstance(value, tuple) else (value,):
                texts += [option.opts[0], str(part)]
    return texts


def _keep_inputs(context: click.Context) -> None:
    """Refuse to write over a file that is read, by itself or in a folder, and to write two outputs into one file."""
    files: dict[Path, str] = {}
    options = [p for p in context.command.params if isinstance(p, click.Option) and isinstance(p.type, click.Path)]
    for option in sorted(options, key=lambda p: not getattr(p.type, "exists", False)):
        value = context.params.get(option.name or "")
        for path in value if isinstance(value, tuple) else (value,):
            if path is None or str(path) == "-":
                continue
            place, reads = Path(path).resolve(), getattr(option.type, "exists", False)
            if not reads:
                keep_logs(context, Path(path), option.opts[0])
                if place in files:
                    raise click.BadParameter(
                        f"{str(path)!r} is {files[place]}; expected another file", param_hint=option.opts[0]
                    )
            files[place] = "an input" if reads else f"written by {option.opts[0]}"


def keep_logs(context: click.Context, output: Path, option: str) -> None:
    """Refuse an output that would take the place of a log that the command reads, by itself or in a folder."""
    from graphs.reading.addresses import is_remote, local_path

    place = output.resolve()
    inputs = [local_path(path).resolve() for path in context.params["paths"] if path != "-" and not is_remote(path)]
    if place in inputs:
        problem = "is an input"
    elif any(log.is_dir() and log in place.parents for log in inputs) and _is_log(place):
        problem = "is a log in a folder that is read"
    else:
        return
    raise click.BadParameter(f"{str(output)!r} {problem}; expected another file", param_hint=option)


def _is_log(path: Path) -> bool:
    """Whether a file of a folder would be read as a log; tables that this library left there are not."""
    from graphs.reading.find import is_log
    from graphs.reading.results import is_result
    from graphs.reading.source import Source

    if not (path.is_file() and is_log(path)):
        return False
    source = Source(str(path), path)
    return not is_result(source, source.head(1 << 16))


_FILE = click.Path(exists=True, dir_okay=False)

allow_bad = click.option("--allow-bad", is_flag=True, help="Exit with 0 although traces were refused.")


def _formats(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from graphs.logs import FORMATS

    return [CompletionItem(name, help=row.about) for name, row in FORMATS.items() if name.startswith(incomplete)]


def _columns(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, str] | None:
    """ "trace=traj_uid,group=uid" as a mapping."""
    if text is None:
        return None
    columns: dict[str, str] = {}
    for pair in text.split(","):
        name, sign, column = pair.partition("=")
        if not (name and sign) or name in columns:
            form = (parameter.metavar or "").removesuffix(",...")
            raise click.BadParameter(f"{pair!r} in {text!r}; expected each {form} once, separated by commas")
        columns[name] = column
    return columns


def _meanings(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, float] | None:
    """ "escalated=0,resolved=1" as a mapping."""
    from graphs.reading.tables.outcome_words import check_meanings

    if text is None:
        return None
    meanings: dict[str, float] = {}
    for pair in text.split(","):
        word, _, amount = pair.rpartition("=")
        try:
            (meaning,) = check_meanings({word: float(amount)}).items()
        except ValueError:
            meaning = ("", 0.0)
        if meaning[0] in ("", *meanings):
            message = f"{pair!r} in {text!r}; expected each WORD=NUMBER once, separated by commas"
            raise click.BadParameter(f"{message}; a table of outcomes is --rewards FILE")
        meanings |= dict([meaning])
    return meanings


def _types(context: click.Context, parameter: click.Parameter, text: str | None) -> dict[str, str] | None:
    """ "llm=message,tool=tool_call" as a mapping."""
    from graphs.formats.table.type_words import check_types

    types = _columns(context, parameter, text)
    check_types(types)
    return types


def _keys(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """ "task,model" as names, checked before anything is read."""
    if text is None:
        return None
    from graphs.traces.grouping import check_group_by

    return check_group_by(tuple(key.strip() for key in text.split(",")))


def read_sides(sides: str | None, paths: tuple[str, ...], **reading: Any) -> tuple[Traces, Sides | None]:
    """What `read_traces` reads, and the sides that `--sides` names."""
    from credit.sides.chosen_sides import Sides

    return Sides.joined(sides, read_traces(paths, **reading))


def read_traces(
    paths: tuple[str, ...],
    *,
    format_: str | None,
    columns: dict[str, str] | None,
    rewards: str | None,
    outcomes: dict[str, float] | None,
    types: dict[str, str] | None,
    groups: str | None,
    reward_channel: str,
    group_by: tuple[str, ...] | None,
    errors: str,
    orphans: str,
    limits: tuple[str, ...],
    names_channels: bool = False,
) -> Traces:
    """Read logs, with a progress bar on standard error where that is a terminal.

    Args:
      paths, format_, columns, rewards, outcomes, types, groups, reward_channel, group_by, errors, orphans, limits: as
        of `reads_logs`.
      names_channels: whether the answer itself names the rewards that could be the outcome.

    Raises:
      NothingReadError: not one trace is usable.
      CreditError: an unknown format, or an option of a wrong type; or no trace has the reward that was asked for by
        name.
    """
    from credit.methods.absent_outcomes import channels_instead
    from graphs.logs.read_logs import read_and_count
    from graphs.traces.grouping import GROUP_KEYS
    from graphs.traces.limits import Limits

    with progress_bar(stderr()) as progress:
        bar = ReadingBar(progress)
        traces, sources = read_and_count(
            *paths,
            format=format_,
            columns=columns,
            rewards=rewards,
            outcomes=outcomes,
            types=types,
            groups=groups,
            group_by=GROUP_KEYS if group_by is None else group_by,
            reward=reward_channel,
            errors=errors,
            orphans=orphans,
            limits=Limits.parse(limits),
            progress=bar.opening,
            watch=bar.reading,
        )
    tell_sources(sources)
    check_channel(reward_channel, traces.reward_channels, traces.problems)
    tell_channels(channels_instead(traces), traces.reward_channels, again=names_channels)
    return traces


def tell_sources(sources: RewardSources) -> None:
    """Say on standard error where the log's own outcomes stand beside those of `--rewards`."""
    if str(sources):
        stderr().print(words(sources), soft_wrap=True)


def check_channel(channel: str, logged: Iterable[str], problems: Iterable[Problem]) -> None:
    """Refuse a reward that was asked for by name and that no trace has, with the words that were refused as one."""
    names = list(logged)
    if channel == CHANNEL or channel in names:
        return
    from credit.methods.absent_outcomes import refused_reward

    why = refused_reward(channel, problems)
    logs_have = f"the logs have: {', '.join(names) or 'none'}"
    raise CreditError(f"no trace has a reward {channel!r}; {why or logs_have}")


def tell_channels(others: str, names: Iterable[str], *, again: bool = False) -> None:
    """Say on standard error which channels may be the outcome, where no trace has one.

    The last line of the command is the same command with the first of them.

    Args:
      others: what is said.
      names: of the channels.
      again: whether the answer says it, too, so that the last line alone is printed.
    """
    ctx = click.get_current_context(silent=True)
    if not others:
        return
    if not again:
        stderr().print(words(f"No trace has an outcome; {others}"), soft_wrap=True)
    if ctx is not None and ctx.get_parameter_source("reward_channel") != ParameterSource.COMMANDLINE:
        typed = [*ctx.command_path.split()[1:], *ctx.meta.get(ARGUMENTS, ()), "--reward-channel", next(iter(names))]
        command = words(f"run: {shlex.join(['credit', *typed])}")
        ctx.find_root().call_on_close(lambda: stderr().print(command, soft_wrap=True))


def list_problems(
    problems: tuple[Problem, ...],
    console: Console,
    *,
    all_: bool = False,
    in_full: bool = False,
    told: Collection[str] = (),
) -> None:
    """Print what was refused or noted: how many of each kind, then a line each, the first twenty unless `all_`.

    Notes of what the user knows (`_is_known`), and of kinds that are `told` above, have lines `in_full` alone.
    """
    if not problems:
        return
    from graphs.problem_log import count_kinds

    listed = problems if in_full else tuple(one for one in problems if one.kind not in told and not _is_known(one))
    heads = []
    for name, wrong in (("problems", True), ("notes", False)):
        kinds = count_kinds([problem for problem in problems if problem.is_failure == wrong])
        named = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        heads += [f"{name} ({sum(kinds.values())}): {named}"] if kinds else []
    rest = " (`credit validate` prints all)" * (len(listed) < len(problems))
    console.print(words("; ".join(heads) + rest), soft_wrap=True)
    lines = list(listed) if all_ else condensed(listed)
    shown = lines if all_ else lines[:SHOWN]
    said: set[str] = set()
    for problem in shown:
        is_again = len(problem.expected) > LONG and problem.expected in said
        said.add(problem.expected)
        line = dataclasses.replace(problem, expected="the same as above") if is_again else problem
        console.print(words(f"  {line}"), soft_wrap=True)
    if len(shown) < len(lines):
        more = sum(problem.count for problem in lines[len(shown) :])  # one may stand for thousands
        console.print(f"  … and {more} more; `credit validate --all` lists those of logs", soft_wrap=True)


def _is_known(problem: Problem) -> bool:
    """Whether a note says how that was read which the user gave, what reports count, or columns of none of ours."""
    from graphs.formats.table.hints import proposes

    return problem.kind in _OF_WHAT_WAS_GIVEN or (problem.kind == "unread-columns" and not proposes(problem.expected))


_OF_WHAT_WAS_GIVEN = frozenset(
    {"attached-orphans", "near-columns", UNREAD_OUTCOME, "untold-outcomes", "worded-outcomes"}
)


class HasProblems(Protocol):
    """What a command read or wrote: `Traces`, the counts of `credit validate`, tables of parts."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was refused."""


def exit_code(read: HasProblems, allow_bad: bool) -> int:
    """3 where something was refused, unless that is allowed."""
    failed = any(problem.is_failure for problem in read.problems)
    return REFUSED if failed and not allow_bad else 0


def leave(ctx: click.Context, read: HasProblems, allow_bad: bool, told: Collection[str] = ()) -> NoReturn:
    """List refusals on standard error, and exit with the code that tells whether there were any.

    Args:
      ctx: of the command.
      read: what it read.
      allow_bad: whether refusals are allowed.
      told: kinds of notes that its answer says itself, which are counted here.
    """
    problems = read.problems
    if "policy_version" in str(ctx.params.get("by")):  # which the note on versions would advise
        from graphs.traces.batch_notes import BY_VERSION

        problems = tuple(
            dataclasses.replace(problem, expected=problem.expected.removesuffix(BY_VERSION)) for problem in problems
        )
    list_problems(problems, stderr(), told=told)
    ctx.exit(exit_code(read, allow_bad))
