"""The numbers that benchmarks wrote with `--table`, read again, and those of them that a call names."""

from __future__ import annotations

import functools
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from credit.cli.benchmarks import bench_train
from credit.cli.benchmarks.measured import EQUAL, LEFT_OUT, REAL, WHOLE, Measured, place
from credit.methods.own_functions import OwnName, function_of
from graphs.errors import CreditError, TraceError
from graphs.text import excerpt, near_names

__all__ = ["COUNTS", "FILES", "Key", "Selected", "edited_option", "key_of", "run_of", "saved_numbers", "selected"]

COUNTS = ("cost", "traces", "events to 90 %")
"""Quantities without a fraction, of which training may not reach one."""
Key = tuple[str, str, str]
"""A benchmark, a quantity, and of a difference the method whose number was subtracted."""
_FILE, _FUNCTION = re.compile(r"(\S+[.]py) sha256 "), re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")
FILES = "a table that `credit bench bias`, `truth`, `snr` or `train` wrote with `--table`"


class Selected(NamedTuple):
    """What a call names of the numbers of files.

    Attributes:
      heads: names of all quantities and differences, those of several benchmarks with their benchmark.
      keys: of those that are chosen, in order.
      numbers: of them and of the methods, each once.
      edits: lines on names whose module was edited between the runs.
      namesakes: lines on functions that have several names.
    """

    heads: dict[Key, str]
    keys: list[Key]
    numbers: list[Measured]
    edits: list[str]
    namesakes: list[str]


def edited_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--edited` of commands that join files."""
    return click.option(
        "--edited", is_flag=True,
        help="Accept runs between which the module of a function of yours was edited. Its imports are not covered.",
    )(command)  # fmt: skip


def saved_numbers(files: Sequence[Path], methods: Sequence[str]) -> list[tuple[Measured, str]]:
    """The numbers of all files, each with its line and with the name that a call gave to its method.

    Args:
      files: as `--table` writes them.
      methods: of the call.
    """
    shown_as = {name.function: name for name in methods if isinstance(name, OwnName)}
    return [(_renamed(number, shown_as), where) for number, where in _read(files)]


def selected(
    read: Sequence[tuple[Measured, str]],
    methods: Sequence[str],
    quantities: Sequence[str],
    default: Sequence[str],
    *,
    less: bool = True,
    edited: bool = False,
) -> Selected:
    """The numbers of the methods and quantities that a call names, of which no two may contradict each other.

    A name of one's own may stand for one function or world, of one text of its module.

    Args:
      read: of `saved_numbers`.
      methods, quantities: of the call; none for all methods, and for `default`.
      default: quantities to take of those that are there.
      less: whether the default has differences, too.
      edited: whether a module of one's own may have been edited between the runs.

    Raises:
      CreditError: a name is unknown, numbers contradict each other, a name stands for several functions, or a module
        was edited.
    """
    found = [number for number, _ in read]
    heads, known = _heads(found), _known(methods, found)
    of_known = [key_of(number) for number in found if number.method in known and (less or not number.less)]
    keys = _chosen(quantities, heads, of_known, default)
    chosen = [(n, at) for key in keys for name in known for n, at in read if (key_of(n), n.method) == (key, name)]
    several, edits = _of_several(chosen)
    if several:
        apart = "measure a world under another name; -m NAME=MODULE:FUNCTION names a method anew"
        raise CreditError(f"{several[0]}; expected one function or world of a name: {apart}")
    if edits and not edited:
        expected = "expected one text: measure again, or --edited if the function and what it imports are the same"
        raise CreditError(f"{edits[0]}; {expected}. Imports of {_FILE.findall(edits[0])[0]} are not covered")
    numbers = _agreed(chosen)
    return Selected(heads, keys, numbers, edits, _namesakes(numbers))


def _of_several(found: Iterable[tuple[Measured, str]]) -> tuple[list[str], list[str]]:
    """Names of one's own that stand for several functions or worlds, and for several texts of a module, in lines."""
    functions: dict[str, dict[str, str]] = {}
    texts: dict[str, dict[str, str]] = {}  # by name and what it stands for, the first file
    for number, where in found:
        file = where.rpartition(":")[0]
        for name in filter(None, (number.method, number.less, number.world)):
            function = _function(name, number.source)
            module, sign, _ = function.partition(":")
            if sign:
                functions.setdefault(name, {}).setdefault(function, file)
            if sign and (text := re.search(rf"\b({module.split('.')[-1]}|__init__)[.]py sha256 \w+", number.source)):
                texts.setdefault(name, {}).setdefault(text[0], file)

    def lines(names: Mapping[str, Mapping[str, str]], of: str) -> list[str]:
        listed = {name: [f"{of}{what} in {file}" for what, file in which.items()] for name, which in names.items()}
        return [f"{name} is {' and '.join(several)}" for name, several in listed.items() if several[1:]]

    return lines(functions, ""), lines(texts, "of ")


def _namesakes(numbers: Iterable[Measured]) -> list[str]:
    """A line for each function of one's own that has several names."""
    names: dict[str, dict[str, None]] = {}
    for number in numbers:
        names.setdefault(_function(number.method, number.source), {})[number.method] = None
    return [
        f"{' and '.join(of)} are both {function}; -m 'NAME={function}' gives them one name"
        for function, of in names.items()
        if len(of) > 1
    ]


def _function(name: str, source: str) -> str:
    """The "module:function" behind a name in the command that a number is of; another name as it is."""
    return _named(source).get(name, function_of(name))


@functools.cache
def _named(source: str) -> dict[str, str]:
    """By name the "module:function" for which the words of a command have it."""
    try:
        words = shlex.split(source)
    except ValueError:  # no command of this library
        return {}
    parts = (re.sub(r"^-(\w|-[\w-]+=)", "", word.rstrip(";")) for word in words)
    named = (part.strip().rpartition("=") for of in parts for part in of.split(","))
    return {name.strip(): function for name, _, function in named if _FUNCTION.fullmatch(function)}


def _renamed(number: Measured, shown_as: Mapping[str, str]) -> Measured:
    """The number with the names of its methods that a call gave, which its source tells with their functions."""
    method, less = number.method, number.less
    for name in filter(None, (method, less)):
        function = _function(name, number.source)
        if (shown := shown_as.get(function, name)) != name:
            word = shlex.quote(f"{shown}={function}")
            method, less = (shown if of == name else of for of in (method, less))
            number = number._replace(source=f"{number.source}; {word}")
    return number._replace(method=method, less=less)


def run_of(number: Measured) -> tuple[Any, ...]:
    """What tells its run and condition from others.

    Args:
      number: any.
    """
    return number.method, number.bench, number.settings, *place(number)[1:]


def key_of(number: Measured) -> Key:
    """What the number is.

    Args:
      number: any.
    """
    return number.bench, number.quantity, number.less


def _heads(numbers: Iterable[Measured]) -> dict[Key, str]:
    """Names of all quantities and differences: with the benchmark where several have one of that name."""
    titles = {key_of(number): number.title for number in numbers}
    several = Counter(titles.values())
    return {key: f"{key[0]} {title}" if several[title] > 1 else title for key, title in titles.items()}


def _chosen(names: Sequence[str], heads: Mapping[Key, str], known: Iterable[Key], default: Sequence[str]) -> list[Key]:
    """The quantities that are asked for, or those of the default that the chosen methods have."""
    if not names:
        chosen = [key for name in default for key in dict.fromkeys(known) if key[1] == name]
        if not chosen:
            listed = ", ".join(heads.values())
            raise CreditError(f"the files have none of {', '.join(default)}; expected --quantity: {listed}")
        return chosen
    asked: dict[Key, None] = {}
    for name in names:
        short = {key: key[1] + " less" * bool(key[2]) for key in heads}  # one name for all differences
        of_name = [key for key, text in short.items() if name in (heads[key], text, f"{key[0]} {text}")]
        if not of_name:
            raise CreditError(f"the files have no quantity {name!r}. {near_names(name, heads.values())}")
        asked |= dict.fromkeys(of_name)
    return list(asked)


def _known(names: Sequence[str], found: Iterable[Measured]) -> list[str]:
    """The methods that are asked for, or all."""
    known = list(dict.fromkeys(number.method for number in found))
    for name in names:
        if name not in known:
            raise CreditError(f"the files have no number of {name!r}. {near_names(name, known)}")
    return list(names) or known


def _agreed(chosen: Iterable[tuple[Measured, str]]) -> list[Measured]:
    """The chosen numbers, each once, in which no two files may contradict each other by more than rounding."""
    kept: dict[tuple[Any, ...], tuple[Measured, str]] = {}
    for number, where in chosen:
        first, place_of_first = kept.setdefault((run_of(number), key_of(number)), (number, where))
        if not all(map(_same, first[2:5], number[2:5])):  # marks are of what else a run had
            both = f"{number.title} {number.value:g} of {number.method}, and {place_of_first} has {first.value:g}"
            raise CreditError(f"{where} has {both} under the same settings; expected one number: leave out one file")
    return [number for number, _ in kept.values()]


def _same(first: float, second: float) -> bool:
    """Whether both are one number but for rounding, or neither is one."""
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-12) or (math.isnan(first) and math.isnan(second))


def _read(files: Sequence[Path]) -> Iterator[tuple[Measured, str]]:
    """The numbers of all files, each with its line."""
    from graphs.reading.tables.rows import read_rows

    for path in files:
        if path.suffix == ".json":
            raise CreditError(f"{path}: expected {FILES}, as .csv, .parquet, .jsonl or .arrow")
        for line, row in read_rows(path, lists=None):
            if not isinstance(row, dict):
                raise TraceError(row.problem)
            yield _measured(where := f"{path}:{line}", row), where


def _measured(where: str, row: dict[str, Any]) -> Measured:
    values: dict[str, Any] = {}
    for name in Measured._fields[:-1]:  # without what the screen showed
        if name not in row and name not in ("about", "source"):  # which earlier releases did not write
            raise CreditError(f"{where} has no {name}; expected {FILES}")
        value = row.get(name)
        kind = float if name in REAL else int if name in WHOLE else str
        try:
            values[name] = kind(value) if value not in (None, "") else math.nan if name in REAL[:3] else None
        except ValueError as error:
            raise CreditError(f"{where} has {name} {excerpt(value)}; expected a number, in {FILES}") from error
    number = Measured(
        **values
        | {
            name: values[name] or ""
            for name in ("quantity", "less", "mark", "why", "bench", "settings", "given", "caveats", "about", "source")
        }
    )
    if number.quantity in COUNTS and not number.why:  # JSON has no infinity
        if math.isnan(number.high) and not math.isnan(number.low):
            number = number._replace(high=math.inf)
        if math.isnan(number.value):
            number = number._replace(value=math.inf)
    if math.isnan(number.value):
        return number._replace(shown=LEFT_OUT * number.is_absent)
    if EQUAL in number.mark:
        return number._replace(shown=EQUAL, mark=number.mark.removeprefix(EQUAL).lstrip())
    if number.quantity not in COUNTS:
        return number
    return number._replace(shown=bench_train.within(number.value, (number.low, number.high), bench_train.count_text))
