"""Train with many signals on many tasks: the learning rate swept for each, every row kept, and runs resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from credit.bench.own_worlds import HEAVY, shown_worlds
from credit.bench.refusals import LeftOut, main_reason
from credit.bench.training.learning_tasks import TASKS, LearningTask, learning_task
from credit.bench.training.training_files import POINTS, kept_rows, row_key, write_rows
from credit.bench.training.training_loop import Curves, TrainingSettings, train
from credit.bench.training.training_signals import training_signal
from credit.methods.own_functions import function_of, is_own, own_name
from credit.methods.own_results import UnmeasuredError
from estimators.base import Reason
from graphs.argument_kinds import checked_kinds
from graphs.atomic import locked
from graphs.errors import CreditError, MissingExtraError, expect

__all__ = ["LEARNING_RATES", "TUNING_SEEDS", "run_training"]

LEARNING_RATES = {"adam": (0.1, 0.2, 0.4, 0.8), "sgd": (2.5, 5.0, 10.0, 20.0, 40.0, 80.0)}
"""Learning rates of each optimizer that are tried for each signal and task."""

TUNING_SEEDS = 3
"""Seeds of each learning rate, by default; they start at `FIRST_TUNING_SEED` and are in no result."""

FIRST_TUNING_SEED = 1_000_000  # far above the seeds of results, which start at 0


@checked_kinds("signals")
def run_training(
    signals: Iterable[str],
    tasks: Iterable[str | LearningTask],
    seeds: int,
    settings: TrainingSettings,
    *,
    learning_rates: Sequence[float] | None = None,
    common_rates: Sequence[float] = (),
    tuning: int = TUNING_SEEDS,
    tune_by: Literal["area", "events_to_90"] = "area",
    first_seed: int = 0,
    output: Path | None = None,
    after_row: Callable[[dict[str, Any]], None] | None = None,
    left_out: LeftOut | None = None,
) -> list[dict[str, Any]]:
    """Train every signal on every task with every seed, at the learning rate that suits the two best.

    The rate is chosen on `tuning` other seeds, the smaller one at a tie. With one rate there is no sweep.

    Args:
      signals: names that `training_signal` takes.
      tasks: names that `learning_task` takes, or tasks of one's own, whose names tell their rows apart. Of your own
        "module:name", rows have the NAME of "NAME=module:name", or else the task's `name` if no other task has it.
      seeds: how many seeds, counted from `first_seed`.
      settings: the same for all.
      learning_rates: of the optimizer, the ones to try; default those of `LEARNING_RATES`.
      common_rates: rates at which every signal is trained besides, so that signals can be compared at one rate.
      tuning: seeds of the sweep, at each rate.
      tune_by: what the rate is chosen by: the largest mean area, or the least geometric mean of the events to 90 %,
        where a seed that does not come there counts as the budget.
      first_seed: the first of them; a confirmation takes others than the runs by which a method was chosen.
      output: a .json or .parquet file, written after each task and signal; rows that it holds are not computed again,
        except those of your own function or task, which may have changed: they are replaced.
      after_row: called with each row of the result, those of the file included.
      left_out: takes the signals that need what the tasks do not have, that some task does not suit, or whose
        advantages are not finite there, which then have no row; None raises.

    Returns:
      One row for each task, signal and seed: names, the `function` behind one of your own, `learning_rate`, numbers
      (`events_to_90`, `cosine`, `entropy`, `teaching`, `updates`, the share of actions `answered`, and the main reason
      `refused` of the others), exact expected returns (`start` of the first policy, `final_return` of the last one,
      `optimum`, `mean_return` over the budget) and `curve`, the expected return at even shares of the budget, with
      `places`, the shares at which each began. The area and the final share of a `Cell` are `mean_return` and
      `final_return` on the way from `start` to
      `optimum`. `events_to_90` counts the events
      before the first policy that has 90 % of this way; None if there is none. `at_rates` has the row at each of
      `common_rates`, if there are any. The file holds a row for each run: with `sweep` true those of the sweep, and
      those at another rate than the chosen one.

    Raises:
      CreditError: a name or an option is unknown, `seeds` or `tuning` is below 1, there is no learning rate, a seed is
        one of the sweep, no choice changes the reward of a task, a signal cannot be trained with (`train`), or the file
        cannot be read, holds rows of other settings, a broken row, or one row twice; another process trains into it.

    Examples:
      `cells` of `training_comparison` compares the rows, `credit.plot.draw_training` draws them.

      >>> from credit.bench.training.training_comparison import cells
      >>> from credit.bench.training.training_loop import TrainingSettings
      >>> rows = run_training(["zero"], ["bottleneck"], 2, TrainingSettings(steps=2), learning_rates=[0.4])
      >>> rows[0]["signal"], rows[0]["start"] == rows[0]["final_return"], cells(rows)[0].area
      ('zero', True, 0.0)
    """
    if seeds < 1:
        raise CreditError(f"seeds is {seeds}; expected 1 or more")
    if learning_rates is None:
        learning_rates = LEARNING_RATES[settings.optimizer]
    for name, rates in (("learning_rates", learning_rates), ("common_rates", common_rates)):
        if not (rates or name == "common_rates") or not all(0 < rate < float("inf") for rate in rates):
            raise CreditError(f"{name} is {tuple(rates)}; expected positive numbers")
    if first_seed < 0 or FIRST_TUNING_SEED - seeds < first_seed < FIRST_TUNING_SEED + tuning:
        last = FIRST_TUNING_SEED + tuning - 1
        raise CreditError(
            f"first_seed is {first_seed}; expected 0 or more, and no seed of the sweep, {FIRST_TUNING_SEED} to {last}"
        )
    if tuning < 1:
        raise CreditError(f"tuning is {tuning}; expected 1 or more")
    if tune_by not in ("area", "events_to_90"):
        raise CreditError(f"tune_by is {tune_by!r}; expected 'area' or 'events_to_90'")
    signals = list(signals)
    for signal in signals:
        expect("signals", signal, str, "names of methods or of functions, such as 'rloo' or 'mine:estimator'")
    signals = [*map(own_name, signals)]
    if left_out is not None:
        signals = [*left_out.keep(signals, "every task", training_signal)]
    about = {**dataclasses.asdict(settings), "learning_rates": list(learning_rates)}
    asked = list(tasks)
    of_others = [*TASKS, HEAVY, *(task.name for task in asked if not isinstance(task, str))]
    shown = iter(shown_worlds((task for task in asked if isinstance(task, str)), LearningTask, of_others, "task"))
    all_tasks = [learning_task(next(shown)) if isinstance(task, str) else task for task in asked]
    for task in all_tasks:
        if np.ptp(task.reward.reshape(task.kinds, -1), axis=1).max() <= 1e-9 * np.abs(task.reward).max():
            raise CreditError(f"task {task.name!r} has nothing to learn: no choice changes its expected reward")
    pairs = [(task, signal) for task in all_tasks for signal in signals]
    for _, signal in pairs:
        training_signal(signal)
    with contextlib.nullcontext() if output is None else locked(output):
        anew = {(task.name, signal) for task, signal in pairs if is_own(signal) or is_own(task.name)}
        held = [] if output is None else kept_rows(output, about)
        kept = {row_key(row): row for row in held if (row["task"], row["signal"]) not in anew}
        rows: list[dict[str, Any]] = []

        def add(task: LearningTask, signal: str) -> None:
            before = len(kept)

            def row(seed: int, rate: float, sweep: bool, *, curve: bool = True) -> dict[str, Any]:
                key = (task.name, signal, seed, rate, sweep)
                if key not in kept or (
                    curve and not kept[key]["curve"]
                ):  # files of earlier versions have none at others
                    kept[key] = _row(task, signal, seed, rate, sweep, settings, curve)
                return kept[key]

            rate = learning_rates[0]
            if len(learning_rates) > 1:
                swept = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + tuning)
                tried = {r: [row(seed, r, True, curve=False) for seed in swept] for r in sorted(learning_rates)}
                best = _mean_area if tune_by == "area" else functools.partial(_sooner, settings.budget(task))
                rate = max(tried, key=lambda r: best(tried[r]))
            for seed in range(first_seed, first_seed + seeds):
                at_rates = {r: row(seed, r, r != rate) for r in common_rates}
                rows.append(row(seed, rate, False) | ({"at_rates": at_rates} if at_rates else {}))
                if after_row is not None:
                    after_row(rows[-1])
            if len(kept) > before and output is not None:
                write_rows(output, list(kept.values()), about)

        for task, signal in pairs:
            if left_out is None:
                add(task, signal)
            elif signal not in left_out:  # else it is no first signal to compare with, nor one of the ranks over tasks
                left_out.try_one(signal, task.name, functools.partial(add, task, signal))
        return [row for row in rows if left_out is None or row["signal"] not in left_out]


def _mean_area(rows: list[dict[str, Any]]) -> float:
    return float(np.mean([row["mean_return"] for row in rows]))


def _sooner(budget: int, rows: list[dict[str, Any]]) -> float:
    return -float(np.mean(np.log([row["events_to_90"] or budget for row in rows])))


def _row(
    task: LearningTask, signal: str, seed: int, rate: float, sweep: bool, settings: TrainingSettings, curve: bool
) -> dict[str, Any]:
    try:
        curves: Curves = train(task, training_signal(signal), settings, seed, rate)
    except MissingExtraError:
        raise  # of whatever signal
    except CreditError as error:
        kind = UnmeasuredError if isinstance(error, UnmeasuredError) else CreditError
        raise kind(f"training with {signal!r} on {task.name!r}: {error}") from error
    expected, spent, budget = curves.expected, curves.spent, settings.budget(task)
    reached = np.flatnonzero(expected >= expected[0] + 0.9 * (task.optimum - expected[0]))
    update = np.searchsorted(spent, np.linspace(0, budget, POINTS), side="right") - 1
    return {
        "task": task.name,
        "signal": signal,
        "function": function_of(signal) if is_own(signal) else "",
        "seed": seed,
        "learning_rate": float(rate),
        "sweep": sweep,
        "optimum": task.optimum,
        "start": float(expected[0]),
        "final_return": float(expected[-1]),
        "mean_return": float(np.sum(expected * np.diff(np.append(spent, budget))) / budget),
        "events_to_90": float(spent[reached[0]]) if len(reached) else None,
        "cosine": float(curves.cosine[:-1].mean()),
        "entropy": float(curves.entropy[-1]),
        "teaching": float(curves.teaching[:-1].mean()),
        "updates": len(spent) - 1,
        "answered": float(curves.reasons[Reason.VALID] / curves.reasons.sum()) if curves.reasons.any() else 1.0,
        "refused": main_reason(curves.reasons),
        "curve": np.round(expected[update], 5).tolist() if curve else [],
        "places": np.round(spent[update] / budget, 5).tolist() if curve else [],
    }
