"""What commands that take several methods share: their names, options, evidence, judgement files, and running them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from graphs.text import counted

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.errors import Problem
    from graphs.traces.batch import Traces

__all__ = ["Asked", "makes_ledger", "takes_claims"]


@dataclasses.dataclass(frozen=True)
class Asked:
    """The claims that a command line asks for.

    Attributes:
      names: of methods.
      given: their options, METHOD.KEY=VALUE.
      also: evidence that they can do without, METHOD.NAME.
      files: of judgements.
    """

    names: tuple[str, ...]
    given: tuple[str, ...]
    also: tuple[str, ...]
    files: tuple[str, ...]

    def check(self, *, least: int = 1) -> None:
        """Find what is wrong with the call before the logs are read; a judgement file counts as a method.

        Raises:
          CreditError: no method of a name, a method named twice, an option or evidence of none of them, a wrong value;
            fewer methods than `least`.
        """
        from credit.methods.running import parse_options
        from graphs.errors import CreditError

        least = max(least - (1 if self.files else 0), 0)
        if len(self.names) < least:
            raise CreditError(
                f"--methods names {counted(len(self.names), 'method')}; expected {least} or more, separated by commas"
            )
        for name in self.names:
            if self.names.count(name) > 1:
                raise CreditError(f"--methods names {name!r} twice")
        for flag, texts in (("--option", self.given), ("--evidence", self.also)):
            for text in texts:
                if not any(text.startswith(f"{name}.") for name in self.names):
                    form = "METHOD.KEY=VALUE" if flag == "--option" else "METHOD.NAME"
                    raise CreditError(f"{flag} {text!r}; expected {form} with a METHOD of {', '.join(self.names)}")
        for name in self.names:
            parse_options(name, self.options(name))

    def options(self, name: str) -> list[str]:
        """What is given to a method, KEY=VALUE."""
        return _of(name, self.given)

    def compute(self, traces: Traces, names: Iterable[str]) -> dict[str, Credit]:
        """Some of the methods, by name.

        Raises:
          CreditError: as `credit.methods.running.run_method`.
        """
        from credit.methods.running import run_method

        return {name: run_method(traces, name, self.options(name), _of(name, self.also)) for name in names}

    def run(self, traces: Traces) -> tuple[Traces, dict[str, Credit]]:
        """The traces with what was wrong with the judgements among their problems, and the claims by name.

        Raises:
          CreditError: as `compute` and `credit.reports.judgements.read_judgements`; a judge has the name of a method
            or of another file's judge.
        """
        from graphs.errors import CreditError

        claims = self.compute(traces, self.names)
        problems: list[Problem] = []
        for file in self.files:
            from credit.reports.judgements import read_judgements

            found = read_judgements(traces, file)
            for judge, claim in found.claims.items():
                if judge in claims:
                    raise CreditError(f"{file}: judge {judge!r} has the name of another claim; expected its own")
                claims[judge] = claim
            problems += found.problems
        return dataclasses.replace(traces, problems=(*traces.problems, *problems)), claims


def takes_claims(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--methods`, `--option`, `--evidence` and `--judgements`, together as the keyword `asked`."""
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

    @functools.wraps(command)
    def gathered(*args: Any, **kwargs: Any) -> Any:
        asked = Asked(**{field.name: kwargs.pop(field.name) for field in dataclasses.fields(Asked)})
        return command(*args, asked=asked, **kwargs)

    made: Callable[..., Any] = gathered
    for option in reversed(options):
        made = option(made)
    return made


def makes_ledger(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `credit.cli.shared.composing.compose_claims`, together as the keyword `making`."""
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


def _of(name: str, texts: Iterable[str]) -> list[str]:
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
    from credit.methods.registry import METHODS

    before, comma, last = incomplete.rpartition(",")
    done = before + comma
    return [CompletionItem(done + name, help=m.summary) for name, m in METHODS.items() if name.startswith(last)]
