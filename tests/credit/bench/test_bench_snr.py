"""Signal to noise: closed forms against enumeration, thin logs against full ones, and a run that was stopped."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import estimators
from credit.bench import snr_theory as theory
from credit.bench.given_values import GIVEN_VALUES
from credit.bench.snr import FULL, LENGTHS, QUICK, QUICK_LENGTHS, Difference, Point, Report, fit, measure, run
from credit.bench.snr_draws import Effort, _first_of
from credit.bench.snr_logs import Streams, draw_log, fitted, plain_graph, sample_variance
from credit.bench.snr_schemes import SCHEMES, _from_function, left_out, registered, scheme_of
from credit.bench.snr_theory import Setting
from credit.cli import cli
from credit.cli.benchmarks.bench_snr import FEW, LESS, _table
from credit.cli.benchmarks.bench_snr import _numbers as of_snr
from credit.cli.shared.answers import stdout
from credit.methods.registry import METHODS
from credit.plot import draw_snr_report
from credit.plot.finishing import refine
from estimators.base import REASONS, Reason
from graphs.errors import CreditError

TINY = Effort(traces=800, rows=30_000, full=10)


def enumerated(length: int, group: int, chance: Any) -> float:
    """SNR of A = R_1 − mean of the others, over all choices; `chance` gives outcomes and their probabilities."""
    sums = np.array([sum(x) for x in itertools.product((-1, 1), repeat=length)])
    first = np.array([x[0] for x in itertools.product((-1, 1), repeat=length)])
    outcome, probability = chance(sums)
    mean = float(np.mean(np.sum(outcome * probability, axis=1)))
    square = float(np.mean(np.sum(outcome**2 * probability, axis=1)))
    good = first == 1
    signal = float(np.mean(np.sum(outcome * probability, axis=1)[good])) - mean
    own = float(np.mean(np.sum(outcome**2 * probability, axis=1)[good])) - (signal + mean) ** 2
    return signal / math.sqrt(own + (square - mean**2) / (group - 1))


def test_closed_forms_are_those_of_enumeration() -> None:
    quiet = Setting(noise=0.0, group=3)

    def certain(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return sums[:, None].astype(float), np.ones((len(sums), 1))

    assert theory.shared(6, quiet, 2) == pytest.approx(enumerated(6, 3, certain))
    for slope in (0.2, 1.0):

        def coin(sums: np.ndarray, slope: float = slope) -> tuple[np.ndarray, np.ndarray]:
            p = 1 / (1 + np.exp(-slope * sums))
            return np.broadcast_to([[0.0, 1.0]], (len(sums), 2)), np.stack([1 - p, p], axis=1)

        assert theory.bernoulli(6, quiet, slope) == pytest.approx(enumerated(6, 3, coin))


def test_closed_forms_have_their_limits() -> None:
    w = Setting()
    assert theory.shared(10, w, 7) == pytest.approx(0.29397, abs=5e-6)
    assert theory.parts(10, w, 10) == pytest.approx(1.97203, abs=5e-6)
    assert theory.parts(100, w, 1) == theory.shared(100, w, 7)
    assert theory.critic(50, w, 0.0, 1.0) == pytest.approx(theory.critic(50, w, 1e-12, 1.0))
    one_step = w.signal / math.sqrt((49 * 2 * 0.3 + w.noise**2 + 0.3) / 50)
    assert theory.critic(50, w, 0.3, 0.0) == pytest.approx(one_step)
    # Worthless claims leave the shared baseline, perfect ones the noise and the baseline's.
    assert theory.control(100, w, 1e12, 7, math.inf) == pytest.approx(theory.shared(100, w, 7))
    assert theory.control(100, w, 0.0, math.inf, math.inf) == pytest.approx(w.signal / w.noise)
    assert theory.normalised(10_000, w) / theory.shared(10_000, w, 7) == pytest.approx(0.9650, abs=1e-3)  # c₄(8)


def test_gae_has_the_noise_that_its_closed_form_says() -> None:
    """Noise of the advantage as a linear map of everything that was drawn."""
    length, mse, lambda_, w = 7, 0.6, 0.8, Setting(signal=2.0, noise=1.5)
    drawn = 2 * length + 1  # x, ε, errors of the values
    sd = np.concatenate([np.full(length, w.signal), [w.noise], np.full(length, math.sqrt(mse))])
    variance = []
    for t in range(length):
        row = np.zeros(drawn)
        for k in range(t, length):
            delta = np.zeros(drawn)
            delta[k] += 1
            delta[length + 1 + k] -= 1
            if k + 1 < length:
                delta[length + 2 + k] += 1
            else:
                delta[length] += 1
            row += lambda_ ** (k - t) * delta
        row[t] = 0  # given the decision
        variance.append(float(np.sum((row * sd) ** 2)))
    assert theory.critic(length, w, mse, lambda_) == pytest.approx(w.signal / math.sqrt(np.mean(variance)))


@pytest.mark.parametrize("name", ["rloo", "dr_mas", "parts"])
@pytest.mark.study
def test_a_thin_log_says_what_the_full_one_says(name: str) -> None:
    w, agents, length, traces = Setting(group=4), 5, 20, 12
    full = draw_log(Streams.of(0, length, w.group, name), w, length, traces, agents=agents, full=True)
    events = traces * length
    thin = plain_graph(traces, agents, 1, w.group)
    last = full.part[:events].reshape(traces * agents, -1).sum(1)

    def advantage(graph: Any, part: np.ndarray, rows: int) -> np.ndarray:
        if name == "parts":
            nothing = np.zeros_like(full.reward)
            credit = estimators.group_relative(graph, nothing, event_reward=part, by="agent_name")
        else:
            credit = METHODS[name].fn(graph, full.reward)
        return np.asarray(credit.advantage)[:rows]

    wide = advantage(full.graph, full.part, events).reshape(traces * agents, -1)
    short = advantage(thin, fitted(last), traces * agents)
    assert np.all(wide == wide[:, :1])
    # Dr. MAS counts rows: more of them scale its standard deviation, all by one number.
    scale = float(np.sum(wide[:, 0] * short) / np.sum(short**2))
    np.testing.assert_allclose(wide[:, 0], scale * short, rtol=2e-5, atol=1e-6)
    assert name == "dr_mas" or scale == pytest.approx(1)


@pytest.mark.slow
def test_measured_points_are_where_the_closed_forms_are() -> None:
    names = ("shared, leave one out", "split by role, parts scored")
    report = run([SCHEMES[name] for name in names], lengths=(10, 100, 1000), effort=TINY)
    for point in report.points:
        assert point.theory is not None
        assert point.low - 0.5 * (point.high - point.low) < point.theory < point.high + 0.5 * (point.high - point.low)
        assert point.unconditional == pytest.approx(point.snr / math.sqrt(1 + point.snr**2))
        assert point.decisions >= 800 * point.length
    for line in report.fits:
        assert line.theory is not None and abs(line.slope - line.theory) < 0.1


@pytest.mark.study
def test_bands_cover_and_slopes_have_intervals() -> None:
    scheme, w = SCHEMES["shared, leave one out"], Setting()
    points = [measure(scheme, 30, w, TINY, seed) for seed in range(40)]
    assert sum(bool(p.agrees) for p in points) >= 37
    errors = [p.snr - theory.shared(30, w, 7) for p in points]
    assert np.std(errors) == pytest.approx(np.mean([p.high - p.low for p in points]) / 2 / 2.576, rel=0.35)

    def at(length: int, snr: float, half: float) -> Point:
        numbers = {"cost": 1.0, "equal_cost": snr, "decisions": 1.0, "parts": 10**9, "log": "full", "seconds": 0.0,
                   "answered": 1.0, "why": ""}  # fmt: skip
        return Point("s", "m", length, 8, snr, snr - half, snr + half, snr, 3 / length, **numbers)

    line = fit([at(10, 1.0, 0.1), at(100, 0.1, 0.01), at(100_000, 5.0, 1.0)])
    assert line is not None and line.lengths == 2
    assert (line.slope, line.theory) == (pytest.approx(-1), pytest.approx(-1))
    assert line.half_width == pytest.approx(math.sqrt(2) * 0.1 / math.log(10))
    assert fit([at(10, 1.0, 0.1)]) is None


@pytest.mark.study
def test_bands_of_differences_cover_and_are_those_of_pairs() -> None:
    """Shared draws: each band holds the difference of the closed forms, and is narrow beside that of two draws."""
    w, names = Setting(), ("discounted_return", "rloo", "shared, batch mean", "message, 8 replays")
    schemes, held, width = [scheme_of(name) for name in names], {name: [0, 0] for name in names[1::2]}, []
    for length, seeds in ((10, 120), (300, 120)):
        theory = {s.name: s.theory(length, w) for s in schemes if s.theory is not None}
        for seed in range(seeds):
            report = run(schemes, lengths=(length,), effort=TINY, seed=seed)
            band = {p.scheme: p.high - p.low for p in report.points}
            for d in report.differences:
                if d.scheme == names[2]:  # 12 pairs of batches
                    assert math.isnan(d.low) and "(" not in d.text()
                    continue
                held[d.scheme][0] += d.low <= theory[d.scheme] - theory[names[0]] <= d.high
                held[d.scheme][1] += 1
                assert (d.traces == 0) == (d.scheme == names[3])
                if d.scheme == "rloo":
                    width.append((d.high - d.low) / math.hypot(band["rloo"], band[names[0]]))
    assert np.mean(width) < 0.4
    known_to = 3 * math.sqrt(0.01 * 0.99 / 240)
    assert all(abs(inside / of - 0.99) < known_to for inside, of in held.values()), held


@pytest.mark.slow
def test_all_schemes_of_a_run_see_the_same_traces() -> None:
    """Functions of one's own had draws of their own: `rloo` and a function that calls it differed by noise."""
    own = ("estimators:rloo", "turn_baseline", "shared, group mean")
    report = run([scheme_of(name) for name in ("rloo", *own)], lengths=(10, 100), effort=TINY)
    assert [d.text() for d in report.differences] == ["equal"] * 6
    assert {d.length: d.traces for d in report.differences if d.scheme in own[:2]} == {10: 800, 100: 304}
    parts = {p.length: p.parts for p in report.points if p.scheme == own[0]}
    assert all(1 < d.pairs <= parts[d.length] for d in report.differences if d.scheme in own[:2])
    logs = [draw_log(Streams.of(0, 40, 8, name), Setting(), 40, 16, agents=agents, full=full)
            for name, agents, full in (("a", 1, False), ("b", 10, False), ("c", 10, True), ("d", 1, True))]  # fmt: skip
    sums = [log.signed[: 16 * 40 // int(log.count[0])].reshape(16, -1).sum(1) for log in logs]
    for log, total in zip(logs, sums, strict=True):
        np.testing.assert_array_equal(log.reward, logs[0].reward)
        np.testing.assert_array_equal(total, sums[0])


def test_the_first_decisions_of_a_long_trace_are_those_of_any_order() -> None:
    rng, length = np.random.default_rng(1), 40
    total = np.repeat([-20.0, 0.0, 30.0], 4000)
    sums = _first_of(rng, total, length, 12)
    np.testing.assert_array_equal(sums.sum(1), total)
    assert set(np.unique(sums[:, :12])) == {-1.0, 1.0} and np.abs(sums[:, 12]).max() <= 28
    for expected in (-20, 0, 30):
        some = sums[total == expected, :12]
        np.testing.assert_allclose(some.mean(0), expected / length, atol=0.06)
        pair = np.mean(some[:, 0] * some[:, 11])  # without replacement
        assert pair == pytest.approx((expected**2 - length) / length / (length - 1), abs=0.06)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    schemes, options = [SCHEMES["shared, leave one out"]], {"lengths": (10, 30, 100), "effort": TINY}

    def stopped(todo: list[Any]) -> Iterator[Any]:
        yield from todo[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(schemes, folder=tmp_path, progress=stopped, **options)
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert len(kept) == 2
    report = run(schemes, folder=tmp_path, **options)
    assert {file: file.stat().st_mtime_ns for file in kept} == kept and len(list(tmp_path.iterdir())) == 3
    fresh = run(schemes, **options)
    assert [p.snr for p in report.points] == [p.snr for p in fresh.points]
    resumed = run([*schemes, SCHEMES["shared, mean known"]], folder=tmp_path, **options)
    fresh = run([*schemes, SCHEMES["shared, mean known"]], **options)
    assert resumed.differences == fresh.differences != []
    run(schemes, folder=tmp_path, seed=1, **options)
    assert len(list(tmp_path.iterdir())) == 9


def test_every_method_has_a_scheme_or_a_reason() -> None:
    named = {scheme.method for scheme in SCHEMES.values()} | set(registered()) | set(left_out())
    assert set(METHODS) <= named
    assert not set(registered()) & set(left_out())
    assert all(length % 10 == 0 for length in (*LENGTHS, *QUICK_LENGTHS)) and FULL.traces > QUICK.traces


@pytest.mark.parametrize("columns", ["", "60"])
def test_no_name_of_a_method_is_cut(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    name = "mine:median_of_others_with_a_long_name"
    point = Point(name, name, 10, 8, 0.123, 0.1, 0.15, 0.12, None, 1, 0.12, 1e6, 30, "full", 1.0, 1.0, "")
    points = [dataclasses.replace(point, length=length) for length in LENGTHS]
    stdout().print(_table(Report(points, [], {}), 8))
    shown = capsys.readouterr().out
    assert "…" not in shown and (columns or f" {name} " in shown)


@pytest.mark.slow
def test_ones_own_method_and_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "import jax.numpy as jnp\n"
        "from estimators import rloo\n"
        "def half(graph, reward, *, propensity):\n"
        "    return rloo(graph, jnp.asarray(reward) * propensity[0])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    command = ["bench", "snr", "--quick", "--lengths", "10", "-m", "mine:half", "-m", "shared, leave one out"]
    done = CliRunner().invoke(cli, [*command, "-o", str(tmp_path / "out"), "--json"])
    assert done.exit_code == 0, done.output
    mine, shared = json.loads(done.stdout)["points"]
    assert mine["low"] < shared["theory"] < mine["high"] and mine["theory"] is None
    assert json.loads((tmp_path / "out" / "snr.json").read_text())["points"][0]["scheme"] == "mine:half"
    assert (tmp_path / "out" / "snr.parquet").exists()
    alone = ["bench", "snr", "--quick", "--lengths", "10", "-m", "mine:half", "-o", str(tmp_path / "new" / "folder")]
    shown = CliRunner().invoke(cli, alone)
    assert shown.exit_code == 0 and (tmp_path / "new" / "folder" / "snr.json").exists(), shown.output
    assert "mine:half" in shown.stdout and "SNR less" not in shown.stdout
    assert "closed form" not in shown.stdout  # nor is a column of none alone
    (line,) = json.loads(done.stdout)["differences"]
    assert (line["scheme"], line["first"]) == ("shared, leave one out", "mine:half") and abs(line["high"]) < 1e-6
    both = CliRunner().invoke(cli, [*command, "-m", "c3"]).stdout
    assert "SNR less that of mine:half, groups of 8" in both and "‡ of draws of its own" in both


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: scheme_of("nonsense"), "no scheme or method is called 'nonsense'"),
        (lambda: scheme_of("no.such:thing"), "cannot be imported"),
        (lambda: scheme_of("math:pi"), "expected a function"),
        (lambda: scheme_of("estimators:magrpo"), "needs context, node"),
        (lambda: scheme_of("gigpo"), "needs anchor"),
        (lambda: run(lengths=(15,)), "length 15"),
        (lambda: run(group_sizes=(1,)), "group size 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(call: Any, words: str) -> None:
    with pytest.raises(CreditError, match=words):
        call()


@pytest.mark.study
def test_the_quick_run_says_what_the_closed_forms_say() -> None:
    report = run(lengths=QUICK_LENGTHS, effort=QUICK)
    for line in report.fits:
        assert line.theory is not None
        assert abs(line.slope - line.theory) <= 0.1, line
    known = [p.agrees for p in report.points if p.agrees is not None]
    assert sum(known) >= 0.95 * len(known)
    success = {line.scheme: line.last_decade for line in report.fits if line.scheme.startswith("success")}
    for name, expected in (("slope 1", -0.5), ("slope 2/sqrt(T)", -0.5), ("slope 2/T", -1.0)):
        found = success[f"success, {name}"]
        assert found is not None and abs(found - expected) < 0.12


@pytest.fixture
def constant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "of_snr.py").write_text(
        "import dataclasses\nimport credit\n"
        "def constant(graph, reward):\n"
        "    result = credit.rloo(graph, reward)\n"
        "    return dataclasses.replace(result, credit=0 * result.credit, baseline=0 * result.baseline)\n"
    )
    monkeypatch.chdir(tmp_path)
    return "of_snr:constant"


def test_a_method_that_cannot_be_measured_is_a_row_as_refused(constant: str) -> None:
    """It ended the whole run, and the message named neither the method nor the group size."""
    names = (constant, "rloo")
    report = run([scheme_of(name) for name in names], lengths=(10,), group_sizes=(4,), effort=TINY)
    assert [p.scheme for p in report.points] == ["rloo"]
    (line,) = report.refusals()
    assert line.startswith(f"{constant} in groups of 4 at T = 10: the advantage does not vary over")
    shown = str(report).splitlines()
    assert shown[0].split() == ["scheme", "group", "T", "=", "10", "slope"] and shown[-1] == line
    with pytest.raises(CreditError, match="of_snr:constant in groups of 4 at T = 10: the advantage"):
        run([scheme_of(constant)], lengths=(10,), group_sizes=(4,), effort=TINY)


def test_names_of_methods_whose_evidence_the_logs_lack_are_left_out_with_the_reason() -> None:
    """In Python `scheme_of("gigpo")` ended the whole cell; the command left it out."""
    report = run(["rloo", "gigpo", "coma"], lengths=(10,), group_sizes=(4,), effort=TINY)
    assert [p.scheme for p in report.points] == ["rloo"]
    assert [(r.scheme, r.length, r.group) for r in report.refused] == [("gigpo", 10, 4), ("coma", 10, 4)]
    assert report.refusals()[0].startswith("gigpo in groups of 4 at T = 10: method 'gigpo' needs anchor")
    with pytest.raises(CreditError, match=r"'gigpo' needs anchor, .*; method 'coma' needs q_value"):
        run(["gigpo", "coma"], lengths=(10,), effort=TINY)
    with pytest.raises(CreditError, match="no scheme or method is called 'rlo'"):
        run(["gigpo", "rlo"], lengths=(10,), effort=TINY)


def test_a_method_is_called_as_it_was_passed_and_has_the_draws_of_its_scheme() -> None:
    """`-m rloo` became "shared, leave one out" in the table and the figure."""
    point = measure(scheme_of("rloo"), 10, Setting(group=4), TINY, 0)
    same = measure(SCHEMES["shared, leave one out"], 10, Setting(group=4), TINY, 0)
    assert (point.scheme, point.snr, point.theory) == ("rloo", same.snr, same.theory)


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", sorted({scheme.method for scheme in SCHEMES.values()} & set(METHODS)))
def test_a_name_of_a_method_is_that_method_with_its_defaults(name: str) -> None:
    """`gae` was the first scheme of `gae`, that of λ = 0: at T = 100 its SNR was 0.71, of the registered one 0.33."""
    if not set(METHODS[name].needs) <= {"value"}:
        assert SCHEMES["message, 1 replay"] == dataclasses.replace(scheme_of(name), name="message, 1 replay")
        return
    scheme = _from_function(name, METHODS[name].fn, "", together=METHODS[name].scope == "batch")
    one, same = (measure(s, 100, Setting(), TINY, 0) for s in (scheme_of(name), scheme))
    assert one.snr == pytest.approx(same.snr, abs=max(one.high - one.low, same.high - same.low))


def test_functions_of_ones_own_are_measured_on_as_many_decisions_where_logs_are_short() -> None:
    """They had an eighth of the traces at every length."""
    rows = [measure(scheme_of(name), 10, Setting(), TINY, 0).decisions for name in ("rloo", "estimators:rloo")]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_number_is_broken_in_a_narrow_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 80 columns 0.092 (0.003) stood on two lines."""
    monkeypatch.setenv("COLUMNS", str(columns))
    rest = (None, 1, 0.1, 1e6, 30, "full", 1.0, 1.0, "")
    points = [Point("mine:second_one", "", length, 8, 0.0925, 0.09, 0.0955, 0.09, *rest) for length in (10, 30, 100)]
    stdout().print(_table(Report(points, [], {}), 8))
    shown = capsys.readouterr().out
    assert shown.count("0.092 (0.003)") == 3 and max(map(len, shown.splitlines())) <= columns


def test_decisions_without_a_number_are_counted_and_no_batch_refuses_a_point() -> None:
    """Outcomes have a mean of 0, so `max_rl` answers in 40 % of the groups; a batch without any refused the point."""
    points = [measure(scheme_of("max_rl"), 1000, Setting(), TINY, seed) for seed in range(4)]
    assert np.mean([point.answered for point in points]) == pytest.approx(0.4, abs=0.12)
    assert {point.why for point in points} == {REASONS[Reason.NO_DIVISOR]}
    (line,) = Report(points[:1], [], {}).refusals()
    assert f"{100 * (1 - points[0].answered):.3g} % of the decisions, which count as 0" in line


def test_each_group_size_has_its_panel_and_stands_in_the_figure() -> None:
    """The figure of two group sizes had the first alone, and no figure said which; then one panel had all curves."""
    rest = (None, 1, 0.1, 1e3, 9, "full", 1, 1.0, "")
    points = [Point("rloo", "rloo", length, group, 1 / length, 0.9 / length, 1.1 / length, 0.1, *rest)
              for group in (4, 8) for length in (10, 100)]  # fmt: skip
    fits = [line for group in (4, 8) if (line := fit([p for p in points if p.group == group]))]
    several = draw_snr_report(Report(points, fits, {}))
    assert [axes.get_title() for axes in several.axes] == ["groups of 4", "groups of 8"]
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in several.axes}) == 1
    assert [text.get_text() for text in several.legends[0].get_texts()] == ["rloo"]
    for equal_cost in (False, True):
        labels = [axes.get_ylabel() for axes in draw_snr_report(Report(points, fits, {}), equal_cost=equal_cost).axes]
        assert ("rollouts" in labels[0]) == equal_cost and not labels[1]
    (one,) = draw_snr_report(Report(points[:2], fits[:1], {}), values=GIVEN_VALUES["snr"]).legends
    title = one.get_title().get_text().replace("\n", " ")
    assert title == f"groups of 4; {GIVEN_VALUES['snr']}; slopes: in brackets half of the 99 % interval; bands: 99 %"
    assert (
        one.get_texts()[0].get_text() == f"rloo, slope \N{MINUS SIGN}1.000 ({fits[0].half_width:.3f})"
    )  # had no interval


@pytest.mark.slow
def test_nine_curves_keep_their_panel_in_a_column_and_say_which_lie_on_each_other() -> None:
    """A legend of one column took 40 % of the height and left a quarter; eight curves hid the ninth without a word."""
    rest = (None, 1, 0.1, 1e3, 9, "full", 1, 1.0, "")
    names = ("rloo", "grpo", "dr_grpo", "opo", "gpg", "max_rl", "reinforce_batch", "mine:trimmed", "mine:second_best")
    of = dict.fromkeys(names, 1.0) | {"max_rl": 0.4, "reinforce_batch": 1.2, "mine:second_best": 0.8}
    points = [Point(name, name, length, 8, of[name] / length**0.5, 0.9 / length, 1.1 / length, 0.1, *rest)
              for name in names for length in (10, 30, 100)]  # fmt: skip
    fits = [line for name in names if (line := fit([p for p in points if p.scheme == name]))]
    figure = refine(draw_snr_report(Report(points, fits, {})), size=(3.4, 2.8), style="serif")
    figure.draw_without_rendering()
    assert figure.axes[0].get_window_extent().height > 0.38 * figure.bbox.height
    title = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert title.endswith("; drawn as one: rloo, grpo, dr_grpo, opo, gpg, mine:trimmed")
    shorter = [p for p in points if p.scheme != "opo" or p.length < 100]  # as of schemes that end at 1,000
    of_both = [line for name in names if (line := fit([p for p in shorter if p.scheme == name]))]
    (legend,) = draw_snr_report(Report(shorter, of_both, {})).legends
    assert "; drawn as one: rloo, grpo, dr_grpo, opo, gpg, mine:trimmed" in legend.get_title().get_text().replace(
        "\n", " "
    )


def test_the_table_marks_what_has_other_traces_than_its_first_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of other draws, or of fewer traces, stood beside rows of the same draw, so that readers ranked them."""
    rest = (None, 1, 0.1, 1e3, 9, "full", 1, 1.0, "")
    traces = {"first": 4000, "same": 4000, "fewer": 800, "other": 0}
    points = [Point(name, name, 10, 8, 0.1, 0.09, 0.11, 0.1, *rest, n) for name, n in traces.items()]
    less = [
        Difference(name, "first", 10, 8, 0.0, -0.01, 0.01, traces, pairs)
        for name, traces, pairs in (("same", 4000, 200), ("fewer", 800, 200), ("other", 0, 0))
    ]
    report = Report(points, [], {}, [], less)
    stdout().print(_table(report, 8))
    shown = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert ["‡" in shown[name] for name in ("first", "same", "other", "‡")] == [False, False, True, True]
    assert {name for name, line in shown.items() if "†" in line} == {"fewer", "†"}
    assert [line.text() for line in less] == ["+0 (0.01)", "+0 (0.01)", "+0 (0.01) ‡"]
    assert [one.mark for one in of_snr(report) if one.quantity == "snr" and not one.less] == ["", "", "†", "‡"]


def test_a_published_name_has_a_scheme() -> None:
    assert scheme_of("Dr. MAS").draw is SCHEMES["split by role, outcome only"].draw
    assert (scheme_of("REINFORCE++").method, scheme_of("Turn-LOO").method) == ("reinforce_pp", "Turn-LOO")
    for name, words in {
        "SPO-tree": "needs context, node",
        "QMIX": "not fitted from logs",
        "HCAPO": "needs hindsight",
    }.items():
        with pytest.raises(CreditError, match=words):
            scheme_of(name)


NOISE = """
import numpy as np

def outliers(rng, shape):
    return np.where(rng.random(shape) < 0.05, 30.0 * rng.choice([-1.0, 1.0], shape), rng.standard_normal(shape))

def short(rng, shape):
    return np.zeros(3)

def of_unit_variance(rng, shape):
    return rng.laplace(0.0, 0.5**0.5, shape)

def of_three_degrees(rng, shape):
    return rng.standard_t(3.0, shape)

def cauchy(rng, shape):
    return rng.standard_cauchy(shape)

def same_each_time(rng, shape):
    return np.random.default_rng(0).standard_normal(shape)

def of_no_seed(rng, shape):
    return np.random.standard_normal(shape)

def mistyped(rng, shape):
    return rng.normall(size=shape)

number = 3
"""


@pytest.mark.slow
def test_outcomes_have_noise_of_heavy_tails_or_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outliers existed in `bench bias` alone. The signal to noise of a mean of others takes second moments only."""
    (tmp_path / "noise_of_mine.py").write_text(NOISE)
    monkeypatch.chdir(tmp_path)
    scheme, effort = SCHEMES["shared, leave one out"], Effort(traces=40_000, rows=150_000, full=10)
    own, heavy = (
        measure(scheme, 10, Setting(group=8, world=world), effort, 5) for world in ("noise_of_mine:outliers", "heavy")
    )
    variance = 0.05 * 900 + 0.95
    assert own.theory is None
    assert heavy.theory == pytest.approx(1 / np.sqrt(9 + 1 + 11 / 7)) and heavy.ratio == heavy.snr / heavy.theory
    assert own.snr == pytest.approx(1 / np.sqrt(9 + variance + (10 + variance) / 7), rel=0.1)
    assert heavy.snr == pytest.approx(1 / np.sqrt(9 + 1 + 11 / 7), rel=0.1)  # variance 1, as of "normal"
    call = ["bench", "snr", "--quick", "--lengths", "10", "-m", "rloo"]
    shown = CliRunner().invoke(cli, [*call, "--world", "heavy"])
    assert shown.exit_code == 0 and "groups of 8, world heavy" in shown.stdout
    row = next(line for line in shown.stdout.splitlines() if line.strip().startswith("rloo"))
    ratio = float(row.split("0.294 (")[1].split(")")[0])
    assert 0.9 < ratio < 1.1
    for world, words in {
        "noise_of_mine:short": "its noise has shape (3,); expected finite numbers of shape (16, 65536)",
        "noise_of_mine:number": "is 3; expected a function f(rng, shape)",
        "noise_of_mine:same_each_time": "does not come from the rng that it is given: two seeds have the same draws;",
        "noise_of_mine:of_no_seed": "does not come from the rng that it is given: one seed has other draws each time;",
        "noise_of_mine:mistyped": "mistyped(rng, (16, 65536)) failed at noise_of_mine.py:26: Attribute",
        "pivotal": "`credit bench truth --world pivotal` takes it. There are 2: normal, heavy.",
        "relay-and": "`credit bench bias --world relay-and` takes it.",
    }.items():
        refused = CliRunner().invoke(cli, [*call, "--world", world])
        assert refused.exit_code == 1 and words in refused.stderr, refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(4), range(4, 20)])
def test_noise_without_a_variance_gets_no_band(seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Cauchy had an SNR with a 99 % band, and noise of variance 4 looked like that of variance 1."""
    (tmp_path / "noise_with_tails.py").write_text(NOISE)
    monkeypatch.chdir(tmp_path)
    call = ["bench", "snr", "--quick", "--lengths", "10", "-m", "rloo", "--world"]
    refused = CliRunner().invoke(cli, [*call, "noise_with_tails:cauchy"])
    assert refused.exit_code == 1 and "the variance of its noise does not settle" in refused.stderr
    with pytest.raises(CreditError, match="does not settle"):
        measure(SCHEMES["shared, leave one out"], 10, Setting(group=8, world="noise_with_tails:cauchy"), QUICK, 5)
    stated = CliRunner().invoke(cli, [*call, "noise_with_tails:of_unit_variance"])
    assert stated.exit_code == 0 and "noise of noise_with_tails:of_unit_variance: sample variance 1" in stated.stdout
    for seed in seeds:  # tails that settle late are let through
        assert 2 < sample_variance("noise_with_tails:of_three_degrees", seed) < 6
        with pytest.raises(CreditError, match="does not settle"):
            sample_variance("noise_with_tails:cauchy", seed)


def test_a_difference_without_a_band_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare number stood beside numbers with half of a band in brackets."""
    rest = (None, 1, 0.1, 1e3, 9, "full", 1, 1.0, "")
    points = [Point(name, name, 10, 8, 0.1, 0.09, 0.11, 0.1, *rest) for name in ("first", "few")]

    def shown(high: float) -> str:
        less = [Difference("few", "first", 10, 8, 0.2, 0.4 - high, high, 80, 20)]
        monkeypatch.setattr("credit.bench.snr.run", lambda *_, **__: Report(points, [], {}, [], less))
        return CliRunner().invoke(cli, ["bench", "snr", "--quick", "-m", "rloo"]).stdout

    assert (
        "not corrected for how many there are" in LESS
        and FEW in shown(float("nan"))
        and FEW not in shown(0.3)
        and LESS in shown(0.3)
    )
    assert "; here 20 pairs, each of two schemes on one part of the traces" in shown(0.3)  # the bracket did not say so


OF_TWO = ["bench", "snr", "--quick", "--lengths", "10,20", "-m", "rloo", "-m", "grpo"]


@pytest.mark.slow
def test_a_figure_of_costs_is_drawn_where_some_evidence_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`snr-cost` was `snr` again where the evidence of each scheme is its own trace."""
    monkeypatch.setattr("credit.plot.draw_snr_report", lambda report, *, equal_cost=False, values="": equal_cost)
    monkeypatch.setattr("credit.cli.benchmarks.bench_snr.check_room", lambda draw: None)
    drawn: dict[str, bool] = {}
    monkeypatch.setattr("credit.cli.shared.outputs.save_picture", lambda of, path: drawn.update({path.name: of}))
    paid = CliRunner().invoke(cli, [*OF_TWO[:-2], "-m", "message, 1 replay", "-o", str(tmp_path)])
    assert paid.exit_code == 0 and "cost is in rollouts a trace" in paid.stdout
    assert not drawn["snr.svg"] and drawn["snr-cost.svg"]


@pytest.mark.slow
def test_no_figure_of_costs_is_drawn_where_no_evidence_costs(tmp_path: Path) -> None:
    free = CliRunner().invoke(cli, [*OF_TWO, "-o", str(tmp_path / "free")])
    assert free.exit_code == 0 and "no snr-cost: the evidence of every scheme is the trace itself" in free.stderr
    assert (tmp_path / "free" / "snr.svg").exists() and not list((tmp_path / "free").glob("snr-cost*"))
    assert "cost" not in free.stdout
    one = CliRunner().invoke(
        cli, [*OF_TWO, "--plot", str(tmp_path / "one.svg"), "--json"]
    )  # as of the other benchmarks
    assert one.exit_code == 0 and "<svg" in (tmp_path / "one.svg").read_text() and json.loads(one.stdout)


def test_one_length_is_drawn_by_all_that_draw(tmp_path: Path) -> None:
    """One length was no figure of `bench snr` and of `draw_snr_report`, whose words spoke of two lengths."""
    of_one, table = ["-m", "rloo,grpo", "--lengths", "10", "--quick"], str(tmp_path / "one.csv")
    more = ["--plot", str(tmp_path / "one.svg"), "--table", table, "-o", str(tmp_path / "all")]
    found = CliRunner().invoke(cli, ["bench", "snr", *of_one, *more])
    assert found.exit_code == 0, found.output
    again = CliRunner().invoke(cli, ["bench", "plot", table, "-o", str(tmp_path / "again.svg")])
    assert again.exit_code == 0, again.output
    for picture in ("one.svg", "again.svg", "all/snr.svg"):
        text = (tmp_path / picture).read_text()
        assert "grpo" in text and "bands: 99 %" in text and "slope" not in text, picture


HEAVY = Setting(group=8, world="heavy")


def test_closed_forms_of_heavy_tails_are_those_that_take_the_variance_alone() -> None:
    for name, scheme in SCHEMES.items():
        if name.startswith("success"):
            continue
        of_spread = scheme.method in ("grpo", "dr_mas")
        assert (scheme.closed_form(10, HEAVY) is None) == of_spread, name
        assert scheme.closed_form(10, Setting(group=8, world="mine:noise")) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "split by role, parts scored",
        "message, 8 replays",
        "critic, lambda 0.95",
        "control, claims",
    ],
)
def test_closed_forms_of_heavy_tails_hold(name: str) -> None:
    effort = Effort(traces=40_000, rows=600_000, full=10)
    assert measure(SCHEMES[name], 10, HEAVY, effort, 5).ratio == pytest.approx(1, abs=0.05)


def test_what_does_not_depend_on_the_noise_is_refused_in_another_world() -> None:
    report = run([SCHEMES["success, slope 1"], scheme_of("rloo")], lengths=[10], effort=QUICK, world="heavy")
    assert [line.scheme for line in report.refused] == ["success, slope 1"]
    assert "has no noise of its own that world 'heavy' could change" in report.refused[0].why
    assert report.json()["world"] == "heavy"


def test_one_number_a_trace_does_not_pass_for_one_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs were padded to as many traces as events, and a baseline without `[graph.trace_ids]` beat rloo."""
    (tmp_path / "flat.py").write_text(
        "import dataclasses\n"
        "from estimators import rloo\n"
        "def half(graph, reward, *, event_reward=None):\n"
        "    return dataclasses.replace(rloo(graph, reward), baseline=reward * 0.5)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    done = CliRunner().invoke(cli, ["bench", "snr", "--quick", "--lengths", "10", "-m", "flat:half"])
    assert done.exit_code == 1 and "baseline has shape" in done.stderr


@pytest.mark.slow
def test_a_point_says_how_many_traces_it_has_and_a_run_no_number_that_was_not_drawn(tmp_path: Path) -> None:
    """Each had the condition "traces 4000": `gae` has 64 of 1,000 decisions, and `rloo` 6,544 of 10."""
    rloo, gae, c3 = (measure(scheme_of(name), 100, Setting(group=4), TINY, 0) for name in ("rloo", "gae", "c3"))
    assert rloo.traces * 100 == rloo.decisions and rloo.traces == 4 * rloo.parts
    assert gae.traces * 100 == gae.decisions and gae.traces == gae.parts != rloo.traces and c3.traces == 0
    call = ["bench", "snr", "-m", "rloo,gae", "--quick", "--lengths", "10", "--table", str(tmp_path / "snr.csv")]
    shown = CliRunner().invoke(cli, call)
    assert "traces: 3,276 to 6,544 a point, drawn and counted" in shown.stdout, shown.output
    with (tmp_path / "snr.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] in ("traces", "snr") and not row["less"]]
    assert {row["settings"] for row in rows} == {"effort quick, seed 0"}
    assert [row["value"] for row in rows if row["quantity"] == "traces"] == ["6544", "3276"]
    assert [row["independent"] for row in rows if row["quantity"] == "snr"] == ["818", "3276"]
