"""What commands that take several methods share: their names, options, evidence, judgement files, and running them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.errors import Problem
    from graphs.traces import Traces

__all__ = ["check_claims", "makes_ledger", "options_for", "run_claims", "takes_claims"]


def takes_claims(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--methods` (`names`), `--option` (`given`), `--evidence` (`also`), `--judgements` (`files`)."""
    options = (
        click.option(
            "--methods",
            "-m",
            "names",
            default="",
            callback=_split,
            shell_complete=_complete,
            metavar="NAME,...",
            help="Methods, separated by commas; `credit methods` lists them.",
        ),
        click.option(
            "--option", "given", multiple=True, metavar="METHOD.KEY=VALUE", help="Option of a method; may be repeated."
        ),
        click.option(
            "--evidence",
            "also",
            multiple=True,
            metavar="METHOD.NAME",
            help="Evidence of the log that a method can do without; may be repeated.",
        ),
        click.option(
            "--judgements",
            "files",
            multiple=True,
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="Scores of judges: a table with `trace` and `score`; may be repeated.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def makes_ledger(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `credit.cli.composing.compose_claims`, together as the keyword `making`."""
    options = (
        click.option(
            "--rule",
            default="increments",
            show_default=True,
            type=click.Choice(["increments", "reconcile", "shares"]),
            help="How claims become entries.",
        ),
        click.option(
            "--expected",
            default="baseline",
            show_default=True,
            type=click.Choice(["baseline", "value"]),
            help="A trace's worth at its start: a baseline of its group, or the log's value before its first action.",
        ),
        click.option(
            "--tau",
            default="inf",
            show_default=True,
            metavar="NUMBER",
            callback=_tau,
            help="Rule reconcile: prior standard deviation of what stays unexplained; inf, 0, fit, or a number.",
        ),
        click.option(
            "--unclaimed",
            type=click.FloatRange(0, min_open=True),
            help="Rule reconcile: prior standard deviation of a trace's unclaimed events together; else they get 0.",
        ),
        click.option(
            "--exact",
            multiple=True,
            metavar="METHOD",
            help="Rules increments, reconcile: its errors of 0 are constraints.",
        ),
    )

    @functools.wraps(command)
    def gathered(*args: Any, **kwargs: Any) -> Any:
        making = {name: kwargs.pop(name) for name in ("rule", "expected", "tau", "unclaimed", "exact")}
        for flag, used, rules in (
            ("--tau", making["tau"] != float("inf"), ("reconcile",)),
            ("--unclaimed", making["unclaimed"] is not None, ("reconcile",)),
            ("--exact", making["exact"], ("increments", "reconcile")),
        ):
            if used and making["rule"] not in rules:
                raise click.UsageError(f"{flag} is of --rule {' and '.join(rules)}; it is {making['rule']}")
        return command(*args, making=making, **kwargs)

    made: Callable[..., Any] = gathered
    for option in reversed(options):
        made = option(made)
    return made


def check_claims(names: tuple[str, ...], given: tuple[str, ...], also: tuple[str, ...], *, least: int = 1) -> None:
    """Find what is wrong with the call before the logs are read.

    Raises:
      CreditError: no method of a name, a method named twice, an option or evidence of none of them, a wrong value.
    """
    from credit.cli.options import parse_options
    from graphs.errors import CreditError

    if len(names) < least:
        raise CreditError(f"--methods names {len(names)} methods; expected {least} or more, separated by commas")
    for name in names:
        if names.count(name) > 1:
            raise CreditError(f"--methods names {name!r} twice")
    for flag, texts in (("--option", given), ("--evidence", also)):
        for text in texts:
            if not any(text.startswith(f"{name}.") for name in names):
                form = "METHOD.KEY=VALUE" if flag == "--option" else "METHOD.NAME"
                raise CreditError(f"{flag} {text!r}; expected {form} with a METHOD of {', '.join(names)}")
    for name in names:
        parse_options(name, options_for(name, given))


def run_claims(
    traces: Traces, names: tuple[str, ...], given: tuple[str, ...], also: tuple[str, ...], files: tuple[str, ...]
) -> tuple[dict[str, Credit], tuple[Problem, ...]]:
    """Compute the methods, and read the judgements, by name; and what was wrong with the judgements.

    Raises:
      CreditError: as `credit.cli.options.run_method` and `credit.judgements.read_judgements`; a judge has the name of a
        method or of another file's judge.
    """
    from credit.cli.options import run_method
    from graphs.errors import CreditError

    claims = {name: run_method(traces, name, options_for(name, given), options_for(name, also)) for name in names}
    problems: list[Problem] = []
    for file in files:
        from credit.judgements import read_judgements

        found = read_judgements(traces, file)
        for judge, claim in found.claims.items():
            if judge in claims:
                raise CreditError(f"{file}: judge {judge!r} has the name of another claim; expected a name of its own")
            claims[judge] = claim
        problems += found.problems
    return claims, tuple(problems)


def options_for(name: str, texts: Iterable[str]) -> list[str]:
    """Those of "METHOD.REST" that are of this method, as "REST"."""
    return [text.removeprefix(f"{name}.") for text in texts if text.startswith(f"{name}.")]


def _tau(context: click.Context, parameter: click.Parameter, given: str) -> float | str:
    try:
        tau = float(given)
    except ValueError:
        tau = -1.0
    if given != "fit" and not tau >= 0:
        raise click.BadParameter(f"{given!r}; expected inf, fit, or a number, 0 or more")
    return "fit" if given == "fit" else tau


def _split(context: click.Context, parameter: click.Parameter, given: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given.split(",")) if given else ()
    if "" in names:
        raise click.BadParameter(f"{given!r}; expected names of methods, separated by commas")
    return names


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from credit.methods import METHODS

    before, comma, last = incomplete.rpartition(",")
    done = before + comma
    return [CompletionItem(done + name, help=m.summary) for name, m in METHODS.items() if name.startswith(last)]
