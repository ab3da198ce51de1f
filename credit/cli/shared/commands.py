"""`Command`: a command whose help has examples, and options in sections with the important ones first."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TextIO

import click

from credit.cli.shared.answers import stderr, words
from graphs.errors import MissingColumnWarning, PrecisionWarning, UnusedRewardsWarning

__all__ = [
    "ARGUMENTS",
    "READING_OPTIONS",
    "SEED",
    "Command",
    "Limit",
    "Number",
    "Whole",
    "by_commas",
    "each_once",
    "several_methods",
    "shared_sections",
    "success_option",
    "takes_prices",
    "whole_numbers",
]

ARGUMENTS = "credit.arguments"
"""The key of `click.Context.meta` under which a command keeps what was typed behind its name."""
READING = "Reading logs"
LEDGER = "Ledger"
PICTURE = "Picture"

READING_OPTIONS = (
    "format_",
    "columns",
    "rewards",
    "outcomes",
    "types",
    "groups",
    "group_by",
    "reward_channel",
    "errors",
    "orphans",
    "limits",
)
"""Options that say how logs are read, by their parameters."""
SECTIONS: dict[str, str] = {
    **dict.fromkeys(("rule", "expected", "tau", "unclaimed", "exact"), LEDGER),
    **dict.fromkeys(("size", "title", "style", "dpi"), PICTURE),
    **dict.fromkeys((*READING_OPTIONS, "allow_bad"), READING),
}
"""The section of an option by its name, where a command takes all of the section; all others come first."""

FIRST = ("names", "method", "output", "target")
SAYS_PRECISION = frozenset({"assign", "choose", "compare", "compose", "report", "summary"})
"""Commands whose answers name the groups whose differences single precision changes."""

SAYS_UNUSED = frozenset({"assign"})
"""Commands whose answers say that rewards at events are not used."""

LAST = ("--json", "--help")
"""Of a command's own options, behind those that a call must name: methods and outputs, which most calls name."""


class Whole(click.IntRange):
    """The type of every option that is a whole number within bounds; click calls it "integer range" in refusals."""

    name = "integer"


class Number(click.FloatRange):
    """The type of every option that is a number: a finite one. click lets NaN into any range."""

    name, infinite = "number", False

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number of a text; others are refused by name."""
        number = super().convert(value, param, ctx)
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        """For help; "" where any finite number will do, of which click says "x<=None"."""
        return super()._describe_range() if self.min is not None or self.max is not None else ""

    def __repr__(self) -> str:
        return super().__repr__() if self.min is not None or self.max is not None else repr(click.FLOAT)


class Limit(Number):
    """The type of every option that Python takes as a float above 0 up to which something may be: inf is no limit."""

    infinite = True

    def __init__(self) -> None:
        super().__init__(0, min_open=True)


SEED = Whole(0, 2**32 - 1)
"""The type of every `--seed`: what each generator of random numbers takes."""


def each_once(ctx: click.Context, param: click.Parameter, values: Sequence[Any]) -> tuple[Any, ...]:
    """The values of an option that takes several. One that is given twice is refused: it may be a slip for another."""
    for place, value in enumerate(values):
        if value in values[:place]:
            raise click.BadParameter(f"{value!r} is given twice", ctx, param)
    return tuple(values)


def whole_numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """The whole numbers of an option, with commas between, each once."""
    if value is None:
        return None
    try:
        numbers = [int(text) for text in value.split(",")]
    except ValueError as error:
        raise click.BadParameter(f"{value!r}; expected whole numbers with commas between, as 10,100,1000") from error
    return each_once(ctx, param, numbers)


def several_methods(
    words: str, name: str = "methods", *, complete: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--method` or `--methods` of commands that take several.

    Args:
      words: the text of the option.
      name: of the keyword.
      complete: what a shell completes it with.
    """
    told = f"{words} NAME=module:function shows your own as NAME."
    return click.option(
        "--method", "--methods", "-m", name, multiple=True, callback=_methods, metavar="NAME", help=told,
        shell_complete=complete,
    )  # fmt: skip


def _methods(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    from credit.methods.own_functions import own_name

    return each_once(ctx, param, [own_name(name) for name in by_commas(ctx, param, values)])


def named_worlds(
    ctx: click.Context, param: click.Parameter, values: Sequence[str], kind: type, known: Collection[str]
) -> tuple[str, ...]:
    """As `by_commas`, of worlds; your own are shown as `credit.bench.own_worlds.shown_worlds` says."""
    from credit.bench.own_worlds import shown_worlds

    return each_once(ctx, param, shown_worlds(by_commas(ctx, param, values), kind, known))


def by_commas(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """The names of an option that takes several, by commas or repeated, each once; the one rule for all such options.

    Spaces beside a comma are none of a name. A comma within a name of a benchmark, as in "gae, lambda 1", is its own.
    """
    names: list[str] = []
    for value in values:
        parts = [part.strip() for part in value.split(",")]
        if "" in parts:
            raise click.BadParameter(f"{value!r}; expected names, separated by commas", ctx, param)
        known = _with_commas() if ", " in value else frozenset()
        while parts:
            ends = [end for end in range(len(parts), 1, -1) if ", ".join(parts[:end]) in known]
            names.append(", ".join(parts[: ends[0]]) if ends else parts[0])
            del parts[: ends[0] if ends else 1]
    return each_once(ctx, param, names)


def _with_commas() -> frozenset[str]:
    """The names of variants and schemes that have commas."""
    from credit.bench.bias_settings import SETTINGS
    from credit.bench.snr_schemes import SCHEMES

    return frozenset(name for name in (*SETTINGS, *SCHEMES) if "," in name)


def success_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--success-at`, where failed and succeeded traces are compared."""
    return click.option(
        "--success-at", type=Number(), metavar="NUMBER",
        help="Outcome from which a trace succeeded. Default: their median, or the next where none is below it.",
    )(command)  # fmt: skip


def sides_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--sides`, for `credit.sides.chosen_sides.Sides`."""
    return click.option(
        "--sides", metavar="SIDES",
        help="Compare two sides: folders or files A,B; `system` (such as a version), `model` or `model:AGENT` as "
             "logged, `system=A,B` of several, `model:AGENT=A,B` also where it goes on with B; `before=DATE`, by when "
             "traces begin; or a table with columns `trace` and `side`. Unless an order is given, the earlier side is "
             "the baseline, or where both ran at once the first name or table row.",
    )(command)  # fmt: skip


def takes_prices(use: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command `--prices`, read from its file, as the keyword `prices`.

    Args:
      use: what the prices are for, where the command's name does not say it.
    """
    option = click.option(
        "--prices", "price_table", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
        help=f"Prices{use}: model (* for all others), input, output, cached_input, cache_write (of a million tokens), "
        "or tool, call.",
    )  # fmt: skip

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def reading(*args: Any, price_table: str | None, **kwargs: Any) -> Any:  # a callback would hide the file's path
            from credit.metrics.event_costs import read_prices

            return command(*args, prices=None if price_table is None else read_prices(price_table), **kwargs)

        return option(reading)

    return decorated


@contextlib.contextmanager
def warnings_kept(*wanted: type[Warning]) -> Iterator[list[Warning]]:
    """The warnings of these categories, which are not shown; call it within `warnings.catch_warnings`."""
    kept: list[Warning] = []
    show = warnings.showwarning

    def keep(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if isinstance(message, wanted):
            kept.append(message)
        else:
            show(message, category, filename, lineno, file, line)

    for one in wanted:
        warnings.simplefilter("always", one)
    warnings.showwarning = keep
    yield kept


class Command(click.Command):
    """A command with examples.

    Args:
      examples: lines for the help, each a command that a shell takes.
      **options: as of `click.Command`.
    """

    def __init__(self, *args: Any, examples: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self.examples = tuple(line.strip() for line in examples.strip().splitlines())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option that is given twice where it takes one: click would take the last and drop the first."""
        if not ctx.resilient_parsing and "--help" not in args:
            seen: set[str | None] = set()
            for given in self.make_parser(ctx).parse_args(list(args))[2]:
                alone = isinstance(given, click.Option) and not (given.multiple or given.is_flag or given.count)
                if alone and given.name in seen:
                    raise click.BadParameter("it is given twice, and this command takes one", ctx, given)
                seen.add(given.name)
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, then print what Python warned of that is no fault of the call, unless its answer says it."""
        says: dict[type[Warning], frozenset[str]] = {
            PrecisionWarning: SAYS_PRECISION,
            UnusedRewardsWarning: SAYS_UNUSED,
        }
        with warnings.catch_warnings(), warnings_kept(*says) as kept:
            warnings.simplefilter("ignore", MissingColumnWarning)  # of methods that nobody asked for; `assign` says it
            try:
                return super().invoke(ctx)
            finally:
                unsaid = [str(one) for one in kept if self.name not in says[type(one)]]
                for text in dict.fromkeys(unsaid):
                    stderr().print(words(f"look: {text}"), soft_wrap=True)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, then the examples."""
        super().format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then those that it shares with others."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], LEDGER: [], PICTURE: [], READING: []}
        parameters = self.get_params(ctx)
        section_of = shared_sections(parameters)
        for parameter in sorted(parameters, key=_rank):
            record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(ctx)
            if record is not None:
                sections[section_of.get(parameter.name or "", "Options")].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def shared_sections(parameters: Sequence[click.Parameter]) -> dict[str, str]:
    """The sections of which a command takes all options, by option: `bench train --groups` does not read logs."""
    taken = {parameter.name for parameter in parameters}
    parts = {section for name, section in SECTIONS.items() if name not in taken}
    return {name: section for name, section in SECTIONS.items() if section not in parts}


def _rank(parameter: click.Parameter) -> tuple[bool, int]:
    """Where an option stands: required ones, then `FIRST`, then the others as the command has them, then `LAST`."""
    if parameter.name in FIRST:
        return not parameter.required, FIRST.index(parameter.name)
    last = [i for i, flag in enumerate(LAST) if flag in parameter.opts]
    return not parameter.required, len(FIRST) + (1 + last[0] if last else 0)
