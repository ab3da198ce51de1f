"""Numbers of benchmarks, as lines of `--table FILE`. Each has its conditions and caveats.

A caveat is part of its number. The benchmark itself, LaTeX and `credit bench table` print all that `said` finds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from credit.cli.shared.provenance import source
from graphs.text import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from credit.bench.refusals import Absent

__all__ = [
    "AT_EDGE",
    "CORRECTED",
    "EQUAL",
    "LEFT_OUT",
    "MARKS",
    "OFFSET",
    "OF_MEDIANS",
    "OPTIONS",
    "REAL",
    "REFUSED",
    "SETTINGS",
    "UNTESTED",
    "WHOLE",
    "Measured",
    "brackets",
    "condition",
    "holds",
    "in_columns",
    "of_all_sizes",
    "of_run",
    "place",
    "refused",
    "said",
    "settings_of_worlds",
    "shared_conditions",
    "table_of",
    "told_of_worlds",
    "unbounded",
    "with_absent",
]

CAVEAT = " | "
INDEPENDENT = {
    "truth": "groups",
    "snr": "independent parts",
    "snr less": "pairs of parts in the difference",
    "train": "seeds",
}
"""What the independent samples of an interval are, by benchmark, and of its differences where these have others."""
OF_MEDIANS = "by interpolated order statistics"
"""How the intervals of training were found (`graphs.task_means.median_interval`)."""
EQUAL = "equal"
"""In the cells of differences that are 0 but for rounding, and in files their mark."""
OFFSET = "but for an offset"
"""Behind it, where advantages differ by an offset that the quantity does not count."""
LEFT_OUT = "left out"
"""In the cells of a method that was not measured."""
REFUSED = "refused"
"""In the cells of one that answered no decision."""

CONDITIONS = {
    "world": "{}",
    "group_size": "groups of {}",
    "length": "T = {:,}",
    "learning_rate": "rate {:g}",
}
VARIED = {"group_size": "group size", "length": "trace length", "learning_rate": "learning rate"}
"""The conditions by which columns differ, in words."""
_ANSWERED = {"answered": "Share of the decisions with an advantage"}
HELD = {
    "bias": {
        "bias": "Relative bias of the policy gradient",
        "cosine": "Cosine of the mean and the true gradient",
        "variance": "Variance of the gradient over the squared true one",
        "relative": "Variance of the gradient over its squared mean",
        "error": "Squared error of centred advantages",
        "rank": "Rank correlation of centred advantages with true increments",
        "sign": "Share of centred advantages with the true sign",
        **_ANSWERED,
    },
    "truth": {
        "slope": "Slope of advantages on true increments",
        "correlation": "Correlation of advantages with true increments",
        "sign": "Share of advantages with the true sign",
        **_ANSWERED,
    },
    "snr": {
        "snr": "Signal to noise of one decision's advantage",
        "closed form": "Signal to noise by formula",
        "cost": "Rollouts that the evidence of a trace takes",
        "traces": "Traces that were measured",
        "slope": "Slope of log signal to noise on log trace length",
        **_ANSWERED,
    },
    "train": {
        "rate": "Learning rates that were chosen",
        "area": "Area under the learning curve",
        "area at one rate": "Area under the learning curve at one rate",
        "final": "End of the learning curve",
        "events to 90 %": "Events until 90 % is learned",
        "ahead": "Seeds ahead",
        "p": "P-values of areas (Holm)",
        "p at one rate": "P-values of areas at one rate (Holm)",
        **_ANSWERED,
    },
}
"""By benchmark and quantity, what a table of it holds."""
SETTINGS = ("rate", "cost", "traces", "answered")
"""Quantities that describe the others: one that is the same throughout stands in a caption and has no table."""
AT_EDGE = "at edge"
MARKS = (AT_EDGE, "*", "†", "‡")
UNTESTED = "No test was possible"
"""With which the caveat of differences begins that too few seeds leave untested."""
CORRECTED = "Holm's correction"
"""With which that of tested ones begins."""
OPTIONS = "options of methods: their defaults, or those that a name states"
REAL, WHOLE = ("value", "low", "high", "confidence", "learning_rate"), ("n", "independent", "group_size", "length")
"""Columns of numbers."""


class Measured(NamedTuple):
    """What a benchmark measured of one method: a line of the table.

    Attributes:
      method, quantity: names.
      value, low, high: with the ends of its interval; NaN where there is none, and of exact numbers the ends.
      confidence: of the interval, as 0.95.
      n: how many decisions the number stands on, of SNR's differences traces, of training seeds; None of exact numbers.
      less: of a difference, the method whose number was subtracted; "" of others.
      world, group_size, length, learning_rate: the condition, where the benchmark has it; the rate where all methods
        of a comparison were trained at it, and else a quantity.
      independent: how many independent samples the interval is of, which `INDEPENDENT` names; None without one.
      mark: what is printed beside the number, such as * where a difference is significant; "" of most.
      why: why the method has no such number, or some decisions have none; "" of most.
      bench, settings: the benchmark, and what else of its run changes numbers, as "steps 60, seed 0".
      given: what values, tokens and replays the method had, where it takes any (`credit.bench.given_values`).
      caveats: what a reader of the number must know besides, with " | " between.
      about: how the number was found, and what happens in its world, with " | " between.
      source: the release and the command that found it.
      shown: as the printed table has it, for LaTeX alone; "" where that prints no such number.
    """

    method: str
    quantity: str
    value: float
    low: float = math.nan
    high: float = math.nan
    confidence: float | None = None
    n: int | None = None
    less: str = ""
    world: str | None = None
    group_size: int | None = None
    length: int | None = None
    learning_rate: float | None = None
    independent: int | None = None
    mark: str = ""
    why: str = ""
    bench: str = ""
    settings: str = ""
    given: str = ""
    caveats: str = ""
    about: str = ""
    source: str = ""
    shown: str = ""

    @property
    def title(self) -> str:
        """The quantity, of a difference with the method whose number was subtracted."""
        return f"{self.quantity} less that of {self.less}" if self.less else self.quantity

    @property
    def is_absent(self) -> bool:
        """Whether the method has no such number, for a reason."""
        return bool(self.why) and math.isnan(self.value)

    @property
    def cell(self) -> str:
        """As printed tables and LaTeX have it."""
        from credit.bench.rounding import rounded
        from graphs.task_means import ROUNDING

        number = self.shown or ("–" if math.isnan(self.value) else rounded(self.value, exact=ROUNDING))
        return f"{number} {self.mark}".rstrip()


def with_absent(numbers: Sequence[Measured], absent: Iterable[Absent]) -> list[Measured]:
    """The numbers, and for each method that was left out a line beside each number that only others have.

    It is of the sizes of groups of its other numbers, and without any of those of methods that compare traces.

    Examples:
      >>> from credit.bench.refusals import Absent
      >>> [number[:2] for number in with_absent([Measured("rloo", "bias", 0.0)], [Absent("a", "every world", "no")])]
      [('rloo', 'bias'), ('a', 'bias')]
    """
    why: dict[tuple[str, str | None], str] = {}  # by place, and by None the first
    for one in absent:
        why.setdefault((one.method, None), one.why)
        why.setdefault((one.method, one.place), one.why)
    known = {(number.method, *place(number)) for number in numbers}
    sizes: dict[str, set[int | None]] = {}
    for number in numbers:
        sizes.setdefault(number.method, set()).add(number.group_size)
    compared = set().union(*sizes.values())
    compared = compared - {1} or compared
    found: list[Measured] = []
    for world, group in itertools.groupby(numbers, lambda number: number.world):
        of_world = [*group]
        places = dict.fromkeys(place(number) for number in of_world if not number.less)
        found += of_world
        for name in dict.fromkeys(method for method, _ in why):
            reason = why.get((name, world), why[name, None])
            found += [
                Measured(name, quantity, math.nan, less=less, world=world, group_size=size, length=length,
                         learning_rate=rate, why=reason, shown=LEFT_OUT)
                for quantity, less, _, size, length, rate in places
                if size in sizes.get(name, compared) and (name, quantity, less, world, size, length, rate) not in known
            ]  # fmt: skip
    return found


def in_columns(numbers: Sequence[Measured]) -> list[Measured]:
    """The numbers, those not `shown` yet with one number of decimals in a column of a table and its other group sizes.

    Examples:
      >>> one = Measured("a", "variance", 39.0, world="w", group_size=2)
      >>> [n.cell for n in in_columns([one, one._replace(value=29.24), one._replace(world="v"), one._replace(value=0)])]
      ['39.0', '29.2', '39', '0']
    """
    from credit.bench.rounding import decimals, fixed
    from graphs.task_means import ROUNDING

    def column(number: Measured) -> tuple[object, ...]:
        quantity = "snr" if number.quantity == "closed form" else number.quantity  # they are compared
        return number.bench, number.settings, *place(number._replace(quantity=quantity, group_size=None))

    of: dict[tuple[object, ...], list[Measured]] = {}
    for number in numbers:
        of.setdefault(column(number), []).append(number)
    places = {at: decimals([n.value for n in some], [(n.high - n.low) / 2 for n in some]) for at, some in of.items()}

    def written(number: Measured) -> str:
        of_one = functools.partial(fixed, places=places[column(number)], sign="+" * bool(number.less), exact=ROUNDING)
        ends = "" if math.isnan(number.low) else f" ({of_one(number.low)} to {of_one(number.high)})"
        return of_one(number.value) + ends

    return [n if n.shown or math.isnan(n.value) else n._replace(shown=written(n)) for n in numbers]


def of_run(
    numbers: Iterable[Measured],
    bench: str,
    settings: Callable[[Measured], Mapping[str, object]],
    given: Callable[[str], str] = lambda method: "",
    caveats: Callable[[Measured], Iterable[str]] = lambda number: (),
    about: Callable[[Measured], Iterable[str]] = lambda number: (),
) -> list[Measured]:
    """The numbers `in_columns` with the benchmark, its settings, what it gave to each method, and caveats.

    Args:
      numbers, bench: of a run.
      settings: of a number, those alone that change it and are no condition.
      given: to a method, in words.
      caveats: of a number, sentences without an end.
      about: of a number, how it was found and what happens in its world.

    Examples:
      >>> of_run([Measured("rloo", "snr", 0.5)], "snr", lambda number: {"traces": 400, "seed": 0})[0].settings
      'traces 400, seed 0'
    """
    made_by = source()
    return in_columns([
        number._replace(
            bench=bench,
            settings=", ".join(f"{name} {value}" for name, value in settings(number).items()),
            given="" if number.is_absent else given(number.method),
            caveats="" if number.is_absent else CAVEAT.join(caveats(number)),
            about=CAVEAT.join(about(number)),
            source=made_by,
        )
        for number in numbers
    ])  # fmt: skip


def said(numbers: Iterable[Measured], what: Literal["given", "caveats", "about"]) -> list[str]:
    """What the methods of these numbers had, the caveats of the numbers, or what they are about, each part once.

    Examples:
      >>> said([Measured("gae", "bias", 0.0, given="a; b"), Measured("c3", "bias", 0.0, given="b")], "given")
      ['a', 'b']
    """
    mark = "; " if what == "given" else CAVEAT
    return list(dict.fromkeys(part for number in numbers for part in getattr(number, what).split(mark) if part))


def refused(numbers: Iterable[Measured]) -> list[str]:
    """A line for each method and reason of decisions without a number, where others of the method have one."""
    from credit.bench.refusals import COUNTED, refused_lines

    of_bench: dict[str, list[tuple[str, float, str]]] = {}
    for number in numbers:
        if number.quantity == "answered" and 0 < number.value < 1:
            of_bench.setdefault(number.bench, []).append((number.method, number.value, number.why))
    return [line for bench, of in of_bench.items() for line in refused_lines(of, COUNTED.get(bench, ""))]


def brackets(numbers: Sequence[Measured]) -> list[str]:
    """What stands in brackets behind these numbers: intervals or half of them, and of how many independent samples.

    Examples:
      >>> one = Measured("a", "slope", 1.0, 0.9, 1.1, 0.95, independent=50, bench="truth", shown="1 (0.9 to 1.1)")
      >>> brackets([one, one._replace(independent=40)]), brackets([one._replace(shown="1 (0.1)")])
      (['in brackets 95 % intervals over 40 to 50 groups'], ['in brackets half of the 95 % interval over 50 groups'])
    """
    half = "" if any(" to " in number.cell for number in numbers) else "half of the "
    found: dict[tuple[float, str], dict[str, set[int]]] = {}
    for number in numbers:
        if number.confidence and "(" in number.cell:
            of = found.setdefault((number.confidence, number.bench), {})
            less = f"{number.bench} less"
            kind = INDEPENDENT.get(less if number.less and less in INDEPENDENT else number.bench)
            if number.independent and kind:
                of.setdefault(kind, set()).add(number.independent)
    lines = []
    for (sure, bench), of in sorted(found.items()):
        counts = (" to ".join(f"{k:,}" for k in sorted({min(many), max(many)})) for many in of.values())
        over = " and ".join(f"{ends} {kind}" for ends, kind in zip(counts, of, strict=True))
        how = f", {OF_MEDIANS}" * (bench == "train")
        lines.append(
            f"in brackets {half}{100 * sure:.2g} % interval{'' if half else 's'}{f' over {over}' if over else ''}{how}"
        )
    return lines


def unbounded(told: Iterable[Measured], less: Iterable[Measured]) -> list[str]:
    """Which of these numbers of drawn logs have no interval, if any, and of how many independent samples they are.

    Args:
      told: numbers.
      less: their differences, which lack one alone where too few samples differ.

    Examples:
      >>> one = Measured("a", "slope", 1.0, confidence=0.95, independent=10, bench="truth")
      >>> unbounded([one], [one]), unbounded([], [one])
      (['no interval over 10 groups'], ['no interval of the difference'])
      >>> unbounded([one._replace(independent=1)], [])
      ['no interval over 1 group']
    """
    of = [[n for n in numbers if n.confidence and math.isnan(n.low) and n.shown != EQUAL] for numbers in (told, less)]
    counts = dict.fromkeys(
        f"no interval over {counted(n.independent, INDEPENDENT[n.bench].removesuffix('s'))}"
        for n in of[0]
        if n.independent
    )
    return [*counts] or ["no interval of the difference"] * bool(of[1])


def place(number: Measured) -> tuple[Any, ...]:
    """What tells the numbers of a method apart: the quantity and the conditions."""
    return (number.quantity, number.less, number.world, number.group_size, number.length, number.learning_rate)


def of_all_sizes(numbers: Sequence[Measured]) -> tuple[Sequence[Measured], list[str]]:
    """The numbers with those of one trace at each size of groups that others have, and a line on methods of one trace.

    What compares with nobody has one number for all sizes: of those that others have in that world.
    """
    sizes: dict[str | None, set[int]] = {}
    for number in numbers:
        if number.group_size is not None and number.group_size > 1:
            sizes.setdefault(number.world, set()).add(number.group_size)
    larger = {number.method for number in numbers if number.group_size != 1}
    alone = list(dict.fromkeys(number.method for number in numbers if number.method not in larger))
    if not sizes or not alone:
        return numbers, []
    of_one = (number for number in numbers if number.method in alone)
    copies = {
        (place(number), number.method): [number._replace(group_size=k) for k in sorted(sizes.get(number.world, {1}))]
        for number in of_one
    }
    return [one for number in numbers for one in copies.get((place(number), number.method), [number])], [
        f"of one trace, compared with none: {', '.join(alone)}"
    ]


def shared_conditions(numbers: Sequence[Measured]) -> set[str]:
    """The conditions that are the same for all, in words."""
    return set.intersection(*(set(_conditions(number)) for number in numbers))


def condition(number: Measured, shared: set[str], *, others: bool = False) -> str:
    """The shared conditions of a number in words, or all others."""
    return ", ".join(text for text in _conditions(number) if (text in shared) != others)


def settings_of_worlds(numbers: Sequence[Measured]) -> dict[str | None, set[str]]:
    """By world the settings that all its numbers have and others lack: the world says them, and no head repeats them.

    Examples:
      >>> one = Measured("a", "slope", 1.0, world="w", settings="agents 5, seed 0")
      >>> settings_of_worlds([one, one._replace(world="v", settings="agents 4, seed 0")])
      {'w': {'agents 5'}, 'v': {'agents 4'}}
    """
    of: dict[str | None, list[Measured]] = {}
    for number in numbers:
        of.setdefault(number.world, []).append(
            number._replace(world=None, group_size=None, length=None, learning_rate=None)
        )
    shared = {world: shared_conditions(some) for world, some in of.items()}
    of_all = set.intersection(*shared.values()) if shared else set()
    return {world: found - of_all for world, found in shared.items()}


def told_of_worlds(of_tables: Iterable[Sequence[Measured]]) -> list[str]:
    """Notes on the `settings_of_worlds` of some tables, each once; none where all worlds have the same.

    Examples:
      >>> one = Measured("a", "slope", 1.0, world="w", settings="agents 5, seed 0")
      >>> others = [one._replace(world="u"), one._replace(world="v", settings="agents 4, seed 0")]
      >>> told_of_worlds([[one, *others], [one, *others]]), told_of_worlds([[one, others[0]]])
      (['w, u: agents 5; v: agents 4'], [])
    """
    notes: dict[str, None] = {}
    for numbers in of_tables:
        worlds: dict[str, list[str]] = {}
        for world, settings in settings_of_worlds(numbers).items():
            stated = next(number.settings for number in numbers if number.world == world)
            worlds.setdefault(", ".join(text for text in stated.split(", ") if text in settings), []).append(
                world or ""
            )
        notes["; ".join(f"{', '.join(names)}: {settings}" for settings, names in worlds.items() if settings)] = None
    return [*filter(None, notes)]


def holds(numbers: Sequence[Measured]) -> str:
    """What a table of these numbers holds, in words, and by which conditions.

    Examples:
      >>> one = Measured("a", "bias", 0.0, bench="bias", world="w", group_size=2)
      >>> holds([one, one._replace(group_size=4), one._replace(quantity="cosine")])
      'Relative bias of the policy gradient; cosine of the mean and the true gradient, by group size'
      >>> holds([one._replace(less="b"), one._replace(less="b", world="v")])
      "Relative bias of the policy gradient, less b's, by world"
    """
    first = numbers[0]
    of: dict[str, dict[str, None]] = {}
    for number in numbers:
        of.setdefault(number.quantity, {})[number.less] = None
    told: list[str] = []
    for quantity, less in of.items():
        words = HELD.get(first.bench, {}).get(quantity, quantity)
        others = " and ".join(filter(None, less))
        differ = f", with differences from {others}" if "" in less else f", less {others}'s"
        told.append((words if not told else words[:1].lower() + words[1:]) + differ * bool(others))
    named = {"world": "task" if first.bench == "train" else "world"} | VARIED
    by = [words for name, words in named.items() if len({getattr(n, name) for n in numbers} - {None}) > 1]
    return "; ".join(told) + (f", by {' and '.join(filter(None, [', '.join(by[:-1]), by[-1]]))}" if by else "")


def _conditions(number: Measured) -> list[str]:
    values = ((text, getattr(number, name)) for name, text in CONDITIONS.items())
    return [text.format(value) for text, value in values if value is not None] + [
        text for text in number.settings.split(", ") if text
    ]


def _marked(number: Measured) -> Measured:
    """A number with the mark `EQUAL` if it is a difference of no more than rounding leaves."""
    from credit.bench.rounding import are_equal

    if not number.less or not are_equal(number.value, number.low, number.high):
        return number
    return number._replace(mark=f"{EQUAL} {number.mark}".rstrip())


def table_of(numbers: Iterable[Measured]) -> pa.Table:
    """The numbers in one table; NaN and what a benchmark has no word for are null."""
    import pyarrow as pa

    kinds = dict.fromkeys(Measured._fields[:-1], pa.string())  # without what the screen showed
    kinds |= dict.fromkeys(REAL, pa.float64()) | dict.fromkeys(WHOLE, pa.int64())
    sure = (n._replace(confidence=None, independent=None) if math.isnan(n.low) else n for n in map(_marked, numbers))
    rows = [{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in n._asdict().items()} for n in sure]
    return pa.Table.from_pylist(rows, pa.schema(kinds))
