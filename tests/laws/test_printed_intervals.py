"""Every place that prints an interval or a ±, and the test by which it holds what it says over worlds drawn by seed."""

from __future__ import annotations

import ast
import collections
import math
import pathlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import credit
from credit.metrics.clustered_error import clustered_error
from credit.metrics.metric_summary import metric_means
from credit.reports.trace_numbers import numbered
from credit.reports.who_matters import who_matters
from estimators.base import Credit
from graphs.task_means import (
    LEAST_OF_ANY,
    chance_above,
    difference_interval,
    mean_of_tasks,
    median_interval,
    shift_interval,
    task_mean,
)

ROOT = pathlib.Path(__file__).parents[2]
HERE = "laws/test_printed_intervals.py::test_intervals_hold_what_they_say"
PRINTED = {
    "cli/advantages/fit": "credit/reports/test_interval_coverage.py::test_gains_of_a_critic_are_covered",
    "cli/benchmarks/bench_snr": "credit/bench/test_bench_snr.py::test_bands_cover_and_slopes_have_intervals",
    "cli/benchmarks/bench_train": "credit/reports/test_interval_coverage.py::"
    "test_intervals_of_medians_over_seeds_hold_the_median",
    "cli/benchmarks/bench_truth": "credit/bench/test_bench_truth.py::test_intervals_cover_over_groups_drawn_by_seed",
    "cli/benchmarks/measured": "credit/bench/test_bench_truth.py::test_intervals_cover_over_groups_drawn_by_seed",
    "cli/composition/explain": "",
    "cli/logs/card": HERE,
    "cli/logs/decisions": HERE,
    "cli/logs/if_edited": "credit/replay/test_world_drivers.py::test_stated_errors_of_coins_cover_what_they_say",
    "cli/logs/metrics": HERE,
    "cli/logs/summary_by": HERE,
    "cli/logs/why": "",
    "cli/replays/shapley": "credit/bench/test_pages_of_results.py::test_errors_and_coverage_of_shapley_values",
    "cli/trust/score": HERE,
    "doctor/ranked_verdicts": "credit/test_ranked_verdicts.py::test_the_interval_holds_the_chance",
    "doctor/verdict_errors": "credit/test_verdict_errors.py::test_the_interval_holds_the_difference",
    "ledger/contradictions": "",
    "ledger/receipts/receipt": "",
    "ledger/training": HERE,
    "ledger_summary": "credit/bench/test_noise.py::test_errors_of_what_is_explained_cover",
    "metrics/success_costs": "credit/reports/test_interval_coverage.py::test_what_a_success_costs_is_covered",
    "plot/nested_bars": "",
    "plot/snr_curves": "credit/bench/test_bench_snr.py::test_bands_cover_and_slopes_have_intervals",
    "plot/truth_dots": "credit/bench/test_bench_truth.py::test_intervals_cover_over_groups_drawn_by_seed",
    "plot/training_curves": "credit/reports/test_interval_coverage.py::"
    "test_intervals_of_medians_over_seeds_hold_the_median",
    "reports/judged_traces": "credit/test_failure_rates.py::test_intervals_of_corrected_rates_hold_the_rate",
}
"""By module of `credit`; "" where it prints the error that a method states of its own number, or one beside a refusal
by four errors: these are no intervals of 95 %. The tables for papers have those of four benchmarks, by one of them."""


def prints(path: pathlib.Path) -> bool:
    """Whether a text of the module, other than a docstring, speaks of an interval or has a ±."""
    whole = path.read_text(encoding="utf-8")
    if "±" not in whole and "interval" not in whole:
        return False
    tree = ast.parse(whole)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in alone]
    return any(isinstance(text, str) and ("±" in text or "% interval" in text) for text in texts)


def test_each_place_names_the_test_of_its_coverage() -> None:
    found = {path for path in (ROOT / "credit").rglob("*.py") if prints(path)} - {ROOT / "credit/laws/arrays.py"}
    assert {str(path.relative_to(ROOT / "credit").with_suffix("")) for path in found} == set(PRINTED)
    for where in filter(None, PRINTED.values()):
        file, _, name = where.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), where


Draw = Callable[[np.random.Generator, int], np.ndarray]
WORLDS: dict[str, tuple[Draw, float, float]] = {  # numbers of tasks, their mean, their median
    "coins": (lambda rng, n: (rng.random(n) < 0.5).astype(float), 0.5, math.nan),
    "shares of one trace or eight": (
        lambda rng, n: rng.binomial(size := np.where(rng.random(n) < 0.8, 1, 8), 0.3) / size, 0.3, math.nan),
    "normal": (lambda rng, n: rng.normal(size=n), 0.0, 0.0),
    "skewed": (lambda rng, n: rng.exponential(size=n) - 1, 0.0, math.log(2) - 1),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0, math.log(2)),
    "log-normal costs": (lambda rng, n: rng.lognormal(size=n), math.exp(0.5), 1.0),
}  # fmt: skip


def drawn(rng: np.random.Generator, place: str, draw: Draw, mean: float, median: float) -> Iterator[bool]:
    """Whether the intervals that a place prints of one drawn log hold the truth; nothing where it prints none."""
    tasks = int(np.exp(rng.uniform(np.log(5), np.log(60))))
    truth = mean
    if place == "agents against the rest":
        low, high = task_mean(draw(rng, tasks))[1:3]
    elif place == "means of metrics":
        low, high = mean_of_tasks(draw(rng, LEAST_OF_ANY + tasks))[0][1:3]
    elif place == "medians of amounts":
        truth, (low, high) = median, median_interval(draw(rng, tasks))
    elif place == "sides of other tasks":
        truth, (low, high) = 0.0, difference_interval(draw(rng, tasks + 20), draw(rng, 40))
    elif place == "amounts of tasks on both sides":  # whose ratios are all different
        apart = draw(rng, tasks + 3) - draw(rng, tasks + 3)
        different = len(np.unique(apart)) == len(apart)
        truth, (low, high) = 0.0, shift_interval(apart)[1] if different else (math.nan, math.nan)
    elif place == "failed tasks against succeeded":
        truth, (_, low, high) = 0.5, chance_above(draw(rng, tasks), draw(rng, 40))
    else:  # ± of decisions and of aggregation: 1.96 of it
        size = rng.integers(1, 4, 20 + tasks)
        task = np.repeat(np.arange(len(size)), size)
        values = draw(rng, len(task))
        half = 1.96 * clustered_error(values, task)
        low, high = (values.mean() - half, values.mean() + half) if math.isfinite(half) else (math.nan, math.nan)
    if math.isfinite(low) and math.isfinite(truth):
        yield bool(low <= truth <= high)


PLACES = ("agents against the rest", "means of metrics", "medians of amounts", "sides of other tasks",
          "amounts of tasks on both sides",
          "failed tasks against succeeded", "errors of decisions")  # fmt: skip


@pytest.mark.parametrize("draws", [300, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", PLACES)
def test_intervals_hold_what_they_say(place: str, draws: int) -> None:
    """95 % intervals hold the truth in 93 to 97 %, as far as draws can tell, over 5 to 60 tasks."""
    rng, found = np.random.default_rng(5), {}
    draws = 1000 if place == "errors of decisions" else draws  # few tasks have none
    for world, (draw, mean, median) in WORLDS.items():
        found[world] = [right for _ in range(draws) for right in drawn(rng, place, draw, mean, median)]
    found = {world: rights for world, rights in found.items() if len(rights) > 100}
    assert len(found) >= 4
    every = [right for rights in found.values() for right in rights]
    assert 0.93 <= np.mean(every) <= 0.97, (place, np.mean(every))
    for world, rights in found.items():
        known_to = 2 * (0.05 * 0.95 / len(rights)) ** 0.5
        assert 0.93 - known_to <= np.mean(rights) <= 0.97 + known_to, (place, world, len(rights), np.mean(rights))


def test_equal_numbers_and_few_tasks_have_no_interval() -> None:
    ones, few = np.ones(60), np.array([0.0, 1.0, 1.0])
    for numbers in (ones, few):
        assert math.isnan(task_mean(numbers).low) and math.isnan(mean_of_tasks(numbers)[0].low)
        assert math.isinf(clustered_error(numbers, np.arange(len(numbers))))
    assert math.isnan(chance_above(ones, ones)[1]) and math.isnan(chance_above(few, few)[1])


@pytest.mark.slow
def test_intervals_of_logs_hold_what_they_say() -> None:
    """The same from logs, through the functions whose numbers are printed: equal and unequal traces a task."""
    found: dict[str, list[bool]] = collections.defaultdict(list)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        tasks = int(np.exp(rng.uniform(np.log(5), np.log(80))))
        size = np.full(tasks, 3) if seed % 2 else np.where(rng.random(tasks) < 0.8, 1, 8)
        task = np.repeat(np.arange(tasks), size)
        n, trace = len(task), np.repeat(np.arange(len(task)), 4)
        agent = np.array(["lead", "helper", "other"])[rng.choice(3, p=[0.5, 0.3, 0.2], size=4 * n)]
        _, _, rows = credit.from_columns(
            group=task[trace], trace=trace, agent=agent, reward=rng.integers(0, 2, n)[trace]
        )
        numbers = {name: numbered(draw(rng, n)) for name, (draw, *_) in WORLDS.items() if "shares" not in name}
        for mean in metric_means(rows.traces, numbers):
            if mean.low is not None and mean.high is not None:
                found["metrics"].append(mean.low <= WORLDS[mean.metric][1] <= mean.high)
        zero = np.zeros(rows.traces.graph.num_events)
        reason = np.where(np.asarray(rows.traces.graph.action_mask), 0, 3).astype(np.int8)
        added = rng.exponential(size=tasks)[task][trace]
        for world, noise in (("normal", rng.normal(size=4 * n)), ("log-normal", rng.lognormal(size=4 * n))):
            for effect in (0.0, 1.0):
                advantage = np.concatenate([noise + effect * added * (agent == "helper"), zero[4 * n :]])
                made = Credit(advantage, zero, zero + 1, zero, reason, "event", "score", "test",
                              centred=False, own_outcome=False)  # fmt: skip
                for unit in who_matters(rows.traces, made):
                    if unit.name == "helper" and math.isfinite(unit.low):
                        found[f"agents, {world}"].append(unit.low <= effect <= unit.high)
    assert min(map(len, found.values())) > 200
    for place, rights in found.items():
        known_to = 2 * (0.05 * 0.95 / len(rights)) ** 0.5
        assert 0.93 - known_to <= np.mean(rights) <= 0.97 + known_to, (place, len(rights), np.mean(rights))
