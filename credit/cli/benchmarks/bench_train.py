"""`credit bench train`: train teams with many signals on the same tasks, and compare what they learn."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from credit.bench.given_values import GIVEN_VALUES, unpaid
from credit.cli.benchmarks.long_table import long_table_option, save_numbers
from credit.cli.benchmarks.measured import AT_EDGE, CORRECTED, OF_MEDIANS, UNTESTED, Measured, of_run, said, with_absent
from credit.cli.benchmarks.to_write import print_to_write, to_write
from credit.cli.shared.answers import json_option, plain_table, print_json, stderr, stdout, words
from credit.cli.shared.claims import alike, tell_unchecked
from credit.cli.shared.commands import SEED, Command, Number, by_commas, each_once, several_methods
from credit.cli.shared.outputs import check_folder, check_room, picture_option, save_picture
from credit.cli.shared.progress import progress_bar
from credit.cli.shared.provenance import source
from credit.methods.own_functions import is_own
from graphs.text import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from credit.bench.refusals import Absent
    from credit.bench.training.training_comparison import Cell
    from credit.bench.training.training_loop import TrainingSettings

__all__ = ["count_text", "train", "values_of", "within"]

METHODS = ("rloo", "grpo", "gae", "c3", "control_critic", "control_exact", "exact_increments", "zero")
JSON_NAMES = {
    "area": "mean_area",
    "stderr": "mean_area_stderr",
    "final": "mean_final",
    "difference": "mean_difference",
    "difference_p": "mean_difference_p",
    "area_median": "area",
    "final_median": "final",
    "difference_median": "difference",
    "ahead_p": "p",
}
"""Of fields of a `Cell`, whose means are plain there and whose medians are so in tables."""
SHARE = "(J − J₀) / (J* − J₀), from 0, the first policy, to 1, the best one"
AREA, AHEAD = "the share, averaged over the budget", "seeds on which the area is larger by more than rounding"
_OF_SHARE = f"median over seeds; share: {SHARE}"
LEGENDS = {
    "rate": "the learning rate with the largest mean area on other seeds, of those tried",
    "area": f"{AREA}, {_OF_SHARE}",
    "area at one rate": f"{AREA}, {_OF_SHARE}; behind a difference {AHEAD}",
    "final": f"the share at the end, {_OF_SHARE}",
    "events to 90 %": f"evidence included, {_OF_SHARE}",
    "answered": "part of the decisions that have an advantage, of the seed with the least; 1 is all",
    "p": "of the signed-rank test of areas over seeds, after Holm's correction",
    "p at one rate": "of the signed-rank test of areas over seeds, after Holm's correction over all common rates",
    "less": "on the same seeds, median over seeds",
    "ahead": f"{AHEAD} than that of the first method",
}
LEGEND = (
    "rows: in the order of --tasks, then of --methods. "
    f"share: {SHARE}. area: {AREA}. final: at the end. events to 90 %: evidence included. {{difference}}{{medians}} "
    "{ahead}{alike}{rate}{common}"
)
DIFFERENCE, ALIKE = "difference: of the area from the first method's. ", "as: equal but for rounding. "
MEDIANS = "{}: each the median over seeds"
MARK = "; * if the signed-rank test over seeds has p < 0.05 after Holm's correction"
LEAST_SEEDS = (
    f"{UNTESTED}{{where}}: with {{comparisons}} the signed-rank test takes {{least}} seeds, this run has {{seeds}}"
)
COMPARED = f"{CORRECTED}{{where}} is over {{comparisons}}: methods that are equal but for rounding count once on a task"
EDGE = f"; {AT_EDGE}: the smallest or the largest that was tried, so that a rate beyond it may be better"
TAKEN = (
    "intervals{mark} take the rate as given, as if other seeds than the {seeds} that chose it could not have chosen "
    "another"
)
OTHER = (
    ". †: not the rate of the first method, so that the difference may come of the choice; `--common-rates` compares "
    "all at one"
)
MARKS = {
    AT_EDGE: EDGE.removeprefix(f"; {AT_EDGE}: "),
    "*": MARK.removeprefix("; * "),
    "†": OTHER.removeprefix(". †: "),
}
"""What is printed beside numbers of whatever run."""
COMMON = " at {rates}: the difference where both have that rate, seeds ahead behind it{mark}."
COMMON_MARK = "; * as before, corrected over all of these"
SHARED_MEAN = "under the first policy all groups of {} have one mean return, which flatters baselines over the batch"
QUICK_METHODS, QUICK_TASKS = ("rloo", "control_exact", "zero"), ("bottleneck", "stopping")
QUICK_RATES = {"adam": (0.4,), "sgd": (20.0,)}
BY_TASK = ("seed", "tasks", "group_size", "common_rates", "policy", "output", "quick", "table", "width", "plot")
BY_LENGTH = ("luck", "outcome")
P_VALUES = ("p", "p at one rate")
_DEFAULT = click.core.ParameterSource.DEFAULT


def _rates(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, ...] | None:
    if value is None:
        return None
    try:
        numbers = [Number().convert(part.strip(), param, ctx) for part in value.split(",")]
    except click.BadParameter:
        raise click.BadParameter(f"{value!r}; expected numbers, separated by commas", ctx, param) from None
    return each_once(ctx, param, numbers)


@click.command(
    cls=Command,
    short_help="Train teams, and compare what they learn.",
    examples="""
    credit bench train --methods rloo,grpo --seeds 2
    credit bench train --methods rloo,mine:estimator --tasks bottleneck --plot curves.svg
    """,
)
@several_methods(
    "Methods, by commas or repeated, also published names; yours as module:function; compositions and oracles. "
    f"{GIVEN_VALUES['train'].capitalize()}."
)
@click.option("--tasks", "--world", "tasks", multiple=True, callback=by_commas, metavar="NAMES",
              help="Tasks of `credit bench worlds`, by commas or repeated, or patterns as 'stopping*', or your own "
                   "`LearningTask` as [NAME=]module:name; default: all but heavy.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1), help="Seeds of each.  [default: 5]")
@click.option("--seed", type=SEED, default=0, show_default=True, help="The first of them.")
@click.option("--steps", type=click.IntRange(1),
              help="The budget: updates of a method without evidence.  [default: 60]")  # fmt: skip
@click.option("--groups", type=click.IntRange(1), default=4, show_default=True, help="Groups of a step.")
@click.option("--group-size", type=click.IntRange(1), default=4, show_default=True,
              help="Traces of a group; one size a run, since each chooses its rates and corrects its tests alone. "
                   "`bench table` joins runs.")  # fmt: skip
@click.option("--learning-rates", callback=_rates, metavar="NUMBERS",
              help="By commas; the largest mean area decides.  [default: 0.1 to 0.8, of sgd 2.5 to 80]")  # fmt: skip
@click.option("--common-rates", callback=_rates, metavar="NUMBERS", default=None,
              help="By commas; train all at each of them, too: differences and curves at one rate.")  # fmt: skip
@click.option("--optimizer", type=click.Choice(["adam", "sgd", "natural"]), default="adam", show_default=True,
              help="Adam, or steps along the gradient; with --lengths also the natural gradient.")  # fmt: skip
@click.option("--policy", type=click.Choice(["tabular", "mlp", "transformer"]), default="tabular",
              show_default=True, help="A logit for each decision, or a network shared by all.")  # fmt: skip
@click.option("--lengths", callback=_rates, metavar="NUMBERS",
              help="Decisions of a trace, by commas: random tasks of these lengths, for rloo, siblings, control, "
                   "posterior and exact; without --tasks, --groups, --policy, -o, --table and --plot.")  # fmt: skip
@click.option("--luck", callback=_rates, metavar="NUMBERS", default="0,0.1,0.3,0.6,0.9", show_default=True,
              help="With --lengths: shares of the variance of the reward that no choice explains.")  # fmt: skip
@click.option("--outcome", type=click.Choice(["add", "interact", "threshold", "shared"]), default="add",
              show_default=True, help="With --lengths: how choices make the reward.")  # fmt: skip
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Keep every run as returns in a .json or .parquet file, not the table of `--table`. `bench plot` "
                   "draws it. A cut run resumes; functions and tasks of your own are trained anew.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Three methods, two tasks, two seeds, 20 steps, one learning rate.")
@long_table_option()
@picture_option
@json_option
def train(
    methods: tuple[str, ...],
    tasks: tuple[str, ...],
    seeds: int | None,
    seed: int,
    steps: int | None,
    groups: int,
    group_size: int,
    learning_rates: tuple[float, ...] | None,
    common_rates: tuple[float, ...] | None,
    optimizer: Any,
    policy: Any,
    lengths: tuple[float, ...] | None,
    luck: tuple[float, ...],
    outcome: Any,
    output: Path | None,
    quick: bool,
    table: Path | None,
    width: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Train the same team on the same tasks with the advantages of each method.

    The expected return of every policy on the way is an exact number, so that curves have no evaluation noise. Runs
    that a method needs as evidence are paid from its budget of events.
    """
    stated = click.get_current_context().get_parameter_source
    given = [name for name in (BY_TASK if lengths is not None else BY_LENGTH) if stated(name) is not _DEFAULT]
    if given:
        alone = "does not go with" if lengths is not None else "goes only with"
        raise click.UsageError(f"--{given[0].replace('_', '-')} {alone} --lengths")
    if lengths is not None:
        _by_length(
            methods, lengths, luck, outcome, seeds or 5, steps or 400, groups, optimizer, learning_rates, as_json
        )
        return
    if optimizer == "natural":
        raise click.UsageError("--optimizer natural takes --lengths")
    from credit.bench.own_worlds import HEAVY, shown_worlds
    from credit.bench.refusals import LeftOut, absent_lines
    from credit.bench.training.learning_tasks import TASKS, LearningTask
    from credit.bench.training.training_comparison import cells, least_seeds, plain
    from credit.bench.training.training_loop import TrainingSettings
    from credit.bench.training.training_runs import LEARNING_RATES, run_training
    from credit.bench.training.training_signals import training_signal
    from credit.bench.world_texts import world_text

    left_out = LeftOut()
    if output is not None:
        check_folder(output, "--output")
    tell_unchecked(methods)
    asked = methods or (QUICK_METHODS if quick else METHODS)
    signals = left_out.keep(asked, "every task", training_signal)
    tasks = tuple(shown_worlds(tasks, LearningTask, (*TASKS, HEAVY), "task"))
    names = tuple(_matching(tasks, TASKS)) if tasks else (QUICK_TASKS if quick else tuple(TASKS))
    seeds = seeds or (2 if quick else 5)
    settings = TrainingSettings(steps or (20 if quick else 60), groups, group_size, policy, optimizer=optimizer)
    if plot is not None:
        stand_ins: list[dict[str, Any]] = [
            {"task": name, "signal": signal, "seed": seed + i, "curve": [0.0, 1.0], "start": 0.0, "optimum": 1.0}
            for name in names for signal in signals for i in range(seeds)
        ]  # fmt: skip
        check_room(lambda: _drawn([row | {"at_rates": dict.fromkeys(common_rates or (), row)} for row in stand_ins],
                                  group_size))  # fmt: skip
    most = len(names) * (len(signals) - 1)  # those that turn out equal but for rounding take fewer seeds
    most *= len(common_rates or (0,))
    if most and seeds < (least := least_seeds(most)):
        takes = f"with up to {counted(most, 'distinct comparison')} the signed-rank test takes up to {least} seeds"
        stderr().print(f"{takes}, this run has {seeds}: --seeds {least} allows for it", soft_wrap=True)
    rates = learning_rates or (QUICK_RATES[optimizer] if quick else LEARNING_RATES[optimizer])
    with progress_bar(stderr()) as bar:
        task = bar.add_task("training", total=len(signals) * len(names) * seeds)

        def after_row(row: dict[str, Any]) -> None:
            bar.update(task, advance=1, description=f"{row['task']}: {row['signal']}")

        rows = run_training(signals, names, seeds, settings, learning_rates=rates, common_rates=common_rates or (),
                            first_seed=seed, output=output, after_row=after_row, left_out=left_out)  # fmt: skip
    left_out.check(rows)
    compared = cells(rows)
    of_number = _settings(settings, seeds, seed, rates, compared[0].signal)
    caveats_of = _caveats(compared, settings, rates)
    found = with_absent(_numbers(compared, group_size, rates), left_out.absent)
    texts = {name: f"{name}: {world_text('train', name).rstrip('.')}" for name in names}
    numbers = of_run(found, "train", of_number, _given, caveats_of, lambda number: [texts[number.world or ""]])
    about = _about(compared, rates, common_rates or ())
    save_numbers(numbers, table, _notes(about), width)
    caveats = said(numbers, "caveats")
    if as_json:
        told = [one._asdict() for one in left_out.absent]
        print_json({"rows": [_named(plain(cell._asdict())) for cell in compared], "left_out": told, "caveats": caveats,
                    "to_write": to_write(numbers), "source": source()})  # fmt: skip
        _draw(rows, plot, group_size, rates, left_out.absent)
        return
    several = compared[-1].signal != compared[0].signal
    of_first = ["#difference", "ahead"] * several
    shown = plain_table("task", "method", "#rate", "#area", "#final", "#events to 90 %", *of_first,
                        *(f"#at {r:g}" for r in sorted(common_rates or ())))  # fmt: skip
    printed = [
        number for number in numbers if number.quantity not in ("answered", *P_VALUES)
    ]  # lines below, and * for it
    for (task_name, signal), of_cell in itertools.groupby(printed, lambda number: (number.world, number.method)):
        row = [task_name or "", signal, *(number.cell for number in of_cell)]
        shown.add_row(*map(words, row + [""] * (len(shown.columns) - len(row))))
    stdout().print(shown)
    for line in absent_lines(left_out.absent):
        stdout().print(words(line), soft_wrap=True)
    medians = "area, final, events to 90 % and difference" if several else "area, final and events to 90 %"
    legend = about | {
        "difference": DIFFERENCE * several,
        "medians": f"{MEDIANS.format(medians)}{_intervals(seeds)}.",
        "ahead": f"ahead: {AHEAD}{about['mark']}. " * several,
        "alike": ALIKE * any(cell.same_as for cell in compared),
    }
    stdout().print(LEGEND.format(**legend).rstrip(), soft_wrap=True)
    for line in filter(
        None, (values_of(row["signal"] for row in rows), *caveats, *unpaid(cell.signal for cell in compared))
    ):
        stdout().print(words(line), soft_wrap=True)
    print_to_write(to_write(numbers))
    for line in _refused(compared):
        stderr().print(words(line), soft_wrap=True)
    _draw(rows, plot, group_size, rates, left_out.absent)


def _about(compared: Sequence[Cell], rates: Sequence[float], common: Sequence[float]) -> dict[str, str]:
    """The legend of marks, rates and common rates; "" for what the table lacks."""
    from credit.bench.training.training_comparison import comparisons
    from credit.bench.training.training_runs import TUNING_SEEDS

    several = {at: comparisons(compared, compared[0].signal, at_rates=at) for at in (False, True)}
    other = OTHER if _of_other_rates(compared) else ""
    rate = f"rate: of {len(rates)} that with the largest mean area on {TUNING_SEEDS} other seeds{EDGE}{other}."
    return {
        "mark": MARK if any(several.values()) else "",
        "rate": rate if len(rates) > 1 else "",
        "common": COMMON.format(
            rates=", ".join(f"{r:g}" for r in sorted(common)), mark=COMMON_MARK * (several[True] > 0)
        )
        if common
        else "",
    }


def _caveats(
    compared: Sequence[Cell], settings: TrainingSettings, rates: Sequence[float]
) -> Callable[[Measured], list[str]]:
    """What limits a number: the tasks, the optimizer, the choice of the rate, the number of seeds, and the method."""
    from credit.bench.training.training_comparison import comparisons, least_seeds
    from credit.bench.training.training_runs import TUNING_SEEDS

    one_mean = _one_mean(tuple(dict.fromkeys(cell.task for cell in compared)), settings.groups)
    seeds, of_test = compared[0].seeds, dict[bool, list[str]]()
    for at_rates, where in ((False, ""), (True, " at common rates")):
        if several := comparisons(compared, compared[0].signal, at_rates=at_rates):
            told, least = counted(several, "distinct comparison"), least_seeds(several)
            text = LEAST_SEEDS if seeds < least else COMPARED
            of_test[at_rates] = [text.format(where=where, comparisons=told, least=least, seeds=seeds)]
    chosen = [TAKEN.format(mark=" and *" * (False in of_test), seeds=TUNING_SEEDS)] * (len(rates) > 1)
    of_method = _alike(compared, settings)

    def of_number(number: Measured) -> list[str]:
        an_interval = bool(number.confidence) and not math.isnan(number.low) and number.learning_rate is None
        is_tested = bool(number.less) or number.quantity in P_VALUES
        tests = of_test.get(number.learning_rate is not None, []) * is_tested
        return one_mean + chosen * an_interval + tests + of_method.get(number.method, [])

    return of_number


def _one_mean(tasks: Sequence[str], groups: int) -> list[str]:
    """Which tasks have groups of one mean return, though baselines over the batch are for those that differ.

    Args:
      tasks: by name.
      groups: of a step, where the kind of group g is g modulo the kinds of a task.

    Examples:
      >>> _one_mean(["pivotal", "stopping_kinds"], 4)[0][:62]
      'under the first policy all groups of pivotal have one mean ret'
      >>> _one_mean(["stopping_kinds"], 4)
      []
    """
    from credit.bench.rounding import EXACT
    from credit.bench.training.learning_tasks import learning_task

    rewards = {name: learning_task(name).reward[:groups] for name in tasks}
    means = {name: of.reshape(len(of), -1).mean(axis=1) for name, of in rewards.items()}
    of_one = [name for name, of in means.items() if abs(of - of[0]).max() <= EXACT]
    others = [name for name in tasks if name not in of_one]
    most = bool(others) and len(of_one) > len(others) + 2
    listed = f"each task but {', '.join(others)}" if most else ", ".join(of_one)
    return [SHARED_MEAN.format(listed)] * bool(of_one)


def _named(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a cell by the names that tables have for them.

    Examples:
      >>> _named({"area": 0.37, "area_median": 0.36, "at_rates": [{"difference_median": 0.01}], "ahead_p": 0.1})
      {'mean_area': 0.37, 'area': 0.36, 'at_rates': [{'difference': 0.01}], 'p': 0.1}
    """
    return {
        JSON_NAMES.get(name, name): [*map(_named, value)] if name == "at_rates" else value
        for name, value in fields.items()
    }


def _settings(
    settings: TrainingSettings, seeds: int, seed: int, rates: Sequence[float], base: str
) -> Callable[[Measured], Mapping[str, object]]:
    """What changes a number, apart from methods, tasks and the size of groups."""
    of_all = {
        "steps": settings.steps,
        "groups a step": settings.groups,
        "optimizer": settings.optimizer,
        "policy": settings.policy,
        "rates": ",".join(f"{rate:g}" for rate in sorted(rates)),
        "seeds": seeds,
        "first seed": seed,
    }
    return lambda number: of_all | ({"against": base} if number.quantity in ("ahead", *P_VALUES) else {})


def _notes(about: dict[str, str]) -> dict[str, str]:
    """What stands below tables in LaTeX, by quantity; the words are those of the printed legend."""
    return LEGENDS | {
        "rate": about["rate"].partition(EDGE)[0].removeprefix("rate: "),
        AT_EDGE: EDGE.removeprefix("; "),
        "*": about["mark"].removeprefix("; "),
        "†": OTHER.removeprefix(". "),
    }


def _of_other_rates(compared: Sequence[Cell]) -> set[tuple[str, str]]:
    """Cells whose rate is not that of the first method."""
    base = {cell.task: cell.learning_rate for cell in compared if cell.signal == compared[0].signal}
    return {(cell.task, cell.signal) for cell in compared if cell.learning_rate != base[cell.task]}


def _numbers(compared: Sequence[Cell], group_size: int, rates: Sequence[float]) -> list[Measured]:
    """Of each cell, in order, medians over seeds with their intervals, and what is printed beside them."""
    found: list[Measured] = []
    base, other = compared[0].signal, _of_other_rates(compared)
    for cell in compared:
        one = functools.partial(
            Measured, cell.signal, n=cell.seeds, world=cell.task, group_size=group_size, independent=cell.seeds,
            confidence=0.9375 if cell.seeds == 5 else 0.95,  # five seeds allow no more
        )  # fmt: skip
        found += [
            one("rate", cell.learning_rate, shown=f"{cell.learning_rate:g}", mark=_edge(cell.learning_rate, rates)),
            one("area", cell.area_median, *cell.area_interval, shown=within(cell.area_median, cell.area_interval)),
            one("final", cell.final_median, *cell.final_interval,
                shown=within(cell.final_median, cell.final_interval)),
            one("events to 90 %", cell.events_to_90, *cell.events_interval,
                shown=within(cell.events_to_90, cell.events_interval, count_text)),
            one("answered", cell.answered, why=cell.refused),
        ]  # fmt: skip
        if cell.signal == base:
            continue
        mark = "*" * (cell.ahead_p < 0.05) + "†" * ((cell.task, cell.signal) in other)
        ahead = f"as {cell.same_as}" if cell.same_as else f"{cell.ahead} of {cell.seeds}"
        found += [
            one("area", cell.difference_median, *cell.difference_interval, less=base, mark=mark,
                shown=within(cell.difference_median, cell.difference_interval, _difference)),
            one("ahead", cell.ahead, shown=ahead),
            one("p", cell.ahead_p),
        ]  # fmt: skip
        for at in cell.at_rates:
            shown = within(at.difference_median, at.difference_interval, _difference)
            found += [
                one("area at one rate", at.difference_median, *at.difference_interval, less=base,
                    learning_rate=at.learning_rate, shown=f"{shown}, {at.ahead} of {cell.seeds}",
                    mark="*" * (at.ahead_p < 0.05)),
                one("p at one rate", at.ahead_p, learning_rate=at.learning_rate),
            ]  # fmt: skip
    return found


def _alike(compared: Sequence[Cell], settings: TrainingSettings) -> dict[str, list[str]]:
    """Lines about each method that learned as an earlier one on every task."""
    firsts: dict[str, list[str]] = {}  # of each task the first method with these numbers
    for cell in compared:
        firsts.setdefault(cell.signal, []).append(cell.same_as or cell.signal)
    names = list(firsts)
    same = {
        name: first
        for place, name in enumerate(names)
        for first in [other for other in names[:place] if firsts[other] == firsts[name]][:1]
    }
    return {name: [_as_other(name, other, list(dict.fromkeys(cell.task for cell in compared)), settings)]
            for name, other in same.items()}  # fmt: skip


def _as_other(name: str, other: str, tasks: Sequence[str], settings: TrainingSettings) -> str:
    """The line about a method that learned as another one, and whether their advantages are equal."""
    from credit.bench.training.equal_advantages import BATCHES, larger_apart, most_telling, relation

    task, larger = most_telling(tasks), ""
    found = relation(name, other, task, settings)
    if found == "equal":
        told = f"Their advantages are equal in all {BATCHES} batches drawn of {task}."
        if is_own(name):
            size, tried = larger_apart(name, other, task, settings)
            larger = f"Nor do they differ in groups of {' and '.join(map(str, tried))}."
            larger = larger if size is None else f"In groups of {size} they differ; see --group-size {size}."
    elif found == "multiple" and settings.optimizer == "adam":
        factor = "a constant factor" + " for each decision" * (settings.policy == "tabular")
        told = f"Their advantages differ by {factor}, which Adam cancels; --optimizer sgd shows it."
    else:
        told = "Their advantages differ all the same."
    return alike(name, other, str(settings.group_size), larger, one_task=settings.groups == 1, trained=told)


def _intervals(seeds: int) -> str:
    """What the intervals of medians over this many seeds are."""
    if seeds < 5:
        return "; an interval takes five seeds"
    sure = "94 % interval, all that five seeds allow" if seeds == 5 else "95 % interval"
    return f", in brackets its {sure}, {OF_MEDIANS}"


def _share(value: float, form: str = ".3f") -> str:
    """As benchmarks write numbers; what differs by less is of rounding."""
    from credit.bench.rounding import rounded
    from credit.bench.training.training_comparison import TIE

    return rounded(value, form, exact=TIE)


def _difference(value: float) -> str:
    """A difference, in which 0 is none at all: others have a digit that is not 0."""
    text = _share(value, "+.3f")
    return text if float(text.lstrip("<> ")) else "0"


def within(middle: float, interval: Sequence[float], show: Callable[[float], str] = _share) -> str:
    """A median with its interval, where there is one; that of what no seed reached says nothing more."""
    if not math.isfinite(interval[0]):
        return show(middle)
    return f"{show(middle)} ({show(interval[0])} to {show(interval[1])})"


def count_text(number: float) -> str:
    """A number of events in words: "not reached" of one that no run reached."""
    return f"{number:,.0f}" if math.isfinite(number) else "not reached"


def _edge(rate: float, tried: Sequence[float]) -> str:
    """Whether a learning rate is the smallest or the largest of several that were tried."""
    return AT_EDGE if len(tried) > 1 and rate in (min(tried), max(tried)) else ""


def _refused(compared: Sequence[Cell]) -> list[str]:
    """A line for each task and signal that refused actions, of the seed where it refused the most."""
    from credit.bench.refusals import COUNTED, refused_lines

    return refused_lines(((f"{c.signal} on {c.task}", c.answered, c.refused) for c in compared), COUNTED["train"])


def _given(signal: str) -> str:
    """What values a signal has in training; "" where it takes none."""
    from credit.bench.training.training_signals import takes_values

    return GIVEN_VALUES["train"] if takes_values(signal) else ""


def values_of(signals: Iterable[str]) -> str:
    """What values trained signals had; "" where none takes any.

    Args:
      signals: names.
    """
    return next(filter(None, map(_given, dict.fromkeys(signals))), "")


def _draw(
    rows: list[dict[str, Any]],
    plot: Path | None,
    group_size: int,
    rates: Sequence[float],
    absent: Sequence[Absent] = (),
) -> None:
    if plot is not None:
        save_picture(_drawn(rows, group_size, rates, absent), plot)


def _drawn(
    rows: list[dict[str, Any]], group_size: int, rates: Sequence[float] = (), absent: Sequence[Absent] = ()
) -> Figure:
    from credit.plot import draw_training

    return draw_training(
        rows, group_size=group_size, values=values_of(row["signal"] for row in rows), rates=rates, absent=absent
    )


def _matching(patterns: Iterable[str], known: Iterable[str]) -> dict[str, None]:
    """The known names that each pattern matches; what matches none stays as it is, for `run_training` to name."""
    listed = list(known)
    return dict.fromkeys(name for pattern in patterns for name in fnmatch.filter(listed, pattern) or [pattern])


def _by_length(
    signals: tuple[str, ...],
    lengths: tuple[float, ...],
    lucks: tuple[float, ...],
    outcome: Any,
    seeds: int,
    steps: int,
    groups: int,
    optimizer: Any,
    rates: tuple[float, ...] | None,
    as_json: bool,
) -> None:
    """Median events to 90 % of the way of each signal, by length and luck."""
    import numpy as np

    from credit.bench.training.long_tasks import draw_long_task
    from credit.bench.training.long_training import SIGNALS, long_cell
    from credit.bench.training.training_comparison import plain
    from graphs.task_means import median_interval
    from graphs.text import one_of

    for length in lengths:
        if length != int(length):
            raise click.UsageError(f"--lengths has {length:g}; expected whole numbers")
        for luck in lucks:
            draw_long_task(outcome, int(length), luck, 0)  # what it refuses is refused before anything is trained
    for name in signals:
        if name not in SIGNALS:
            raise click.UsageError(f"--lengths trains no {name!r}; expected {one_of(name, SIGNALS)}")
    rows: list[dict[str, Any]] = []
    for length, luck in ((length, luck) for length in lengths for luck in lucks):
        for signal in signals or tuple(SIGNALS):
            found = long_cell(outcome, int(length), luck, signal, seeds=range(1000, 1000 + seeds), tuning=range(5),
                              optimizer=optimizer, budget=4.0 * groups * steps * length, groups=groups,
                              rates=rates)  # fmt: skip
            rows.append({"decisions": int(length), "luck": luck, "signal": signal, "rate": found.rate,
                         "events_to_90": float(np.median(found.events)),
                         "events_interval": median_interval(found.events)})  # fmt: skip
    if as_json:
        print_json({"rows": list(map(plain, rows)), "source": source()})
        return
    table = plain_table("#decisions", "#luck", "signal", "#rate", "#events to 90 %")
    for row in rows:
        table.add_row(*map(words, (
            f"{row['decisions']}", f"{row['luck']:g}", row["signal"], f"{row['rate']:g}",
            within(row["events_to_90"], row["events_interval"], count_text),
        )))  # fmt: skip
    stdout().print(table)
    rate = (
        f" rate: of the least median on five other seeds. {TAKEN.format(mark='', seeds=5).capitalize()}."
        if rates is None or len(rates) > 1
        else ""
    )
    stdout().print(f"events to 90 %: median over seeds{_intervals(seeds)}.{rate}", soft_wrap=True)
