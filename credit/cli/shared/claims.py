"""The options of commands that take several methods, and of commands that compose them into a ledger."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from credit.cli.shared.answers import stderr, words
from credit.cli.shared.commands import Number, several_methods
from credit.methods.own_functions import function_of, is_own, own_name

if TYPE_CHECKING:
    from credit.methods.claims import ClaimRequest
    from graphs.traces.batch import Traces

__all__ = ["alike", "makes_ledger", "settled", "takes_claims", "takes_critic", "tell_unchecked"]


def takes_critic(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--critic` and `--dense`."""
    critic = click.option(
        "--critic", metavar="DIR", type=click.Path(exists=True, file_okay=False),
        help="Take values from the critic in this folder, which `credit fit critic` wrote.",
    )  # fmt: skip
    dense = click.option(
        "--dense", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
        help="Numbers of each event, .npy, with which the critic was fitted.",
    )  # fmt: skip
    return critic(dense(command))


def tell_unchecked(names: Iterable[str]) -> None:
    """Say on standard error which of these are functions of one's own, since commands run them as they are."""
    functions = list(dict.fromkeys(function_of(own_name(name)) for name in names if is_own(name)))
    if functions:
        checks = "; ".join(f"credit check {name}" for name in functions)
        run = "run as it is" if len(functions) == 1 else "run as they are"
        text = f"{run}. The laws that every method of the library passes: {checks}"
        stderr().print(words(f"{', '.join(functions)}: {text}"), soft_wrap=True)


def alike(
    name: str, other: str, sizes: str, larger: str = "", *, one_task: bool, worlds: str = "", trained: str = ""
) -> str:
    """The line on a method whose numbers are those of another one in groups of these sizes.

    Args:
      name, other: the function and the method.
      sizes: of the groups.
      larger: a sentence on larger groups, if any.
      one_task: whether each batch was a single group, so that nothing could look across groups.
      worlds: sentences on the worlds of the batches that may be why.
      trained: of what was trained a sentence on how advantages compare, which may differ where training does not.
    """
    text = f"{name} {'trains as' if trained else 'gives the numbers of'} {other} in groups of {sizes}."
    text += f" {trained or worlds}" if trained or worlds else ""
    if one_task:
        text += " Each batch here is one task, in which a mean over the batch is a mean over the group."
    text += f" {larger}" if larger else ""
    return f"{text} To compare them over many tasks: credit bench truth -m {other} -m {function_of(name)}"


def takes_claims(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--methods` and what goes with it, the fields of `ClaimRequest`, as the keyword `asked`."""
    options = (
        several_methods(
            "Method of `credit methods`, by commas or repeated. Default: those that `credit choose` recommends.",
            "names",
            complete=_complete,
        ),
        click.option(
            "--option", "given", multiple=True, metavar="METHOD.KEY=VALUE", help="Option of a method. May be repeated."
        ),
        click.option(
            "--evidence",
            "also",
            multiple=True,
            metavar="METHOD.NAME",
            help="Optional evidence to take from the log. May be repeated.",
        ),
        click.option(
            "--judgements",
            "files",
            multiple=True,
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="Table of a judge's scores with columns `trace` and `score`. May be repeated.",
        ),
        takes_critic,
    )

    @functools.wraps(command)
    def gathered(*args: Any, **kwargs: Any) -> Any:
        from credit.methods.claims import ClaimRequest

        asked = ClaimRequest(**{field.name: kwargs.pop(field.name) for field in dataclasses.fields(ClaimRequest)})
        return command(*args, asked=asked, **kwargs)

    decorated: Callable[..., Any] = gathered
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def settled(asked: ClaimRequest, traces: Traces, *, least: int = 1) -> ClaimRequest:
    """`ClaimRequest.settled`, which says on standard error what was taken for no name, and what is not exact."""
    from credit.reports.trace_returns import precision_notes

    found = asked.settled(traces, least=least)
    for note in precision_notes(traces):
        stderr().print(words(f"look: {note}"), soft_wrap=True)
    if found.names != asked.names:
        beside = ", and others that the logs allow" if least > 1 else ""
        names = ",".join(found.names)
        stderr().print(words(f"--methods {names}: what `credit choose` recommends here{beside}"), soft_wrap=True)
    return found


def makes_ledger(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `credit.ledger.from_methods.compose_claims`, together as the keyword `making`."""
    options = (
        click.option(
            "--rule",
            default="increments",
            show_default=True,
            type=click.Choice(["increments", "reconcile", "shares"]),
            help="Rule that turns claims into entries.",
        ),
        click.option(
            "--expected",
            default="baseline",
            show_default=True,
            type=click.Choice(["baseline", "value"]),
            help="Expected return at the start: a baseline of the group, or the logged value before the first action.",
        ),
        click.option(
            "--tau",
            default="inf",
            show_default=True,
            metavar="NUMBER",
            callback=_tau,
            help="For reconcile: prior standard deviation of the unexplained part: inf, 0, fit, or a number.",
        ),
        click.option(
            "--unclaimed",
            type=Number(0, min_open=True),
            help="For reconcile: prior standard deviation of all unclaimed events of a trace. Default: they get 0.",
        ),
        click.option(
            "--exact",
            multiple=True,
            metavar="METHOD",
            help="For increments and reconcile: standard errors of 0 of this method are constraints.",
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

    decorated: Callable[..., Any] = gathered
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def _tau(context: click.Context, parameter: click.Parameter, text: str) -> float | str:
    try:
        tau = float(text)
    except ValueError:
        tau = -1.0
    if text != "fit" and not tau >= 0:
        raise click.BadParameter(f"{text!r}; expected inf, fit, or a number, 0 or more")
    return "fit" if text == "fit" else tau


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from credit.methods.registry import METHODS

    complete, comma, last = incomplete.rpartition(",")
    done = complete + comma
    return [CompletionItem(done + name, help=m.summary) for name, m in METHODS.items() if name.startswith(last)]
