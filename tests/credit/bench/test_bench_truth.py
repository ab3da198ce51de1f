"""`credit bench truth`: scores against plain loops, what they say where the answer is known, and the command."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pyarrow.compute as pc
import pyarrow.csv
import pytest
from click.testing import CliRunner
from matplotlib.text import Text

import credit
import estimators
from credit.bench.against_truth import (
    ALTERNATIVES,
    LEAST_GROUPS,
    SCORES,
    Draw,
    Match,
    Scored,
    _difference,
    _intervals,
    _paired,
    _scores,
    _sums,
    _terms,
    differences,
    draw,
    score,
)
from credit.bench.given_values import GIVEN_VALUES
from credit.cli import cli
from credit.cli.benchmarks.bench_truth import _cell, _less, _numbers
from credit.cli.benchmarks.measured import of_run, table_of
from credit.cli.benchmarks.to_write import to_write
from credit.plot import draw_truth
from estimators.base import Credit, finish
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.worlds import KINDS

SMALL = {"agents": 4, "events": 40, "traces": 320}


@pytest.fixture(scope="module")
def drawn() -> Draw:
    return draw("additive", **SMALL)


def of_numbers(graph: EventGraph, numbers: np.ndarray, valid: np.ndarray) -> Credit:
    return finish(
        graph,
        credit=jnp.asarray(numbers, jnp.float32),
        baseline=jnp.zeros(graph.num_events),
        scale=jnp.ones(graph.num_events),
        stderr=jnp.full(graph.num_events, jnp.inf),
        reason=jnp.where(jnp.asarray(valid), estimators.base.Reason.VALID, estimators.base.Reason.NO_REWARD),
        unit="event",
        estimand="score",
        source="numbers",
        centred=False,
        own_outcome=True,
    )


@pytest.mark.slow
def test_the_truth_itself_has_every_score_of_1(drawn: Draw) -> None:
    def truth(graph: EventGraph, reward: Array) -> Credit:
        return of_numbers(graph, drawn.increments, np.ones(graph.num_events, bool))

    found = score(drawn, truth)
    assert found.decisions == drawn.chosen.sum() > 500
    assert (found.slope, found.correlation, found.sign, found.answered) == pytest.approx((1, 1, 1, 1), abs=1e-6)
    assert found.slope_high - found.slope_low < 1e-6 and not abs(found.correlation_high - found.correlation_low) > 1e-6
    assert np.isnan([found.sign_low, found.sign_high]).all()  # at the end of its range


@pytest.mark.slow
def test_scores_and_intervals_are_those_of_plain_loops(drawn: Draw) -> None:
    from scipy import special, stats  # a second, which every process that collects this file would take

    rng = np.random.default_rng(1)
    numbers = 3 * drawn.increments + rng.normal(size=len(drawn.increments))
    valid = rng.random(len(numbers)) < 0.8

    def noisy(graph: EventGraph, reward: Array) -> Credit:
        return of_numbers(graph, numbers, valid)

    def three(rows: list[tuple[float, float]]) -> list[float]:
        a, d = np.array(rows).T
        signs = [float(np.sign(x) == np.sign(y)) for x, y in rows if x != 0 and y != 0]
        return [float(a @ d / (d @ d)), float(np.corrcoef(a, d)[0, 1]), float(np.mean(signs))]

    graph = drawn.traces.graph
    rows: dict[int, list[tuple[float, float]]] = {}
    for event in np.flatnonzero(drawn.chosen & valid):
        group = int(graph.group_ids[graph.trace_ids[event]])
        rows.setdefault(group, []).append((float(np.float32(numbers[event])), float(drawn.increments[event])))
    left = np.array([three([row for g in rows if g != out for row in rows[g]]) for out in rows])
    found = score(drawn, noisy)
    assert found.answered == pytest.approx(valid[drawn.chosen].mean())
    expected = three([row for group in rows.values() for row in group])
    np.testing.assert_allclose((found.slope, found.correlation, found.sign), expected, rtol=1e-5)
    for i, (there, back) in enumerate(((float, float), (np.arctanh, np.tanh), (special.logit, special.expit))):
        numbers = np.array([there(x) for x in left[:, i]])
        stderr = np.sqrt((len(rows) - 1) / len(rows) * ((numbers - numbers.mean()) ** 2).sum())
        half = stats.t.ppf(0.975, len(rows) - 1) * stderr  # 2.02 of them for 40 groups
        ends = [back(there(expected[i]) + side * half) for side in (-1, 1)]
        name = SCORES[i]
        assert [getattr(found, f"{name}_low"), getattr(found, f"{name}_high")] == pytest.approx(ends, rel=1e-4)


@pytest.mark.study
def test_a_scaled_advantage_has_a_scaled_slope_and_the_same_order(drawn: Draw) -> None:
    plain, shrunk = score(drawn, "rloo"), score(drawn, "dr_grpo")
    assert shrunk.slope == pytest.approx(7 / 8 * plain.slope, rel=1e-5)
    assert (shrunk.correlation, shrunk.sign) == pytest.approx((plain.correlation, plain.sign), rel=1e-5)


@pytest.mark.slow
def test_what_rounding_leaves_of_a_0_has_no_sign() -> None:
    """Two methods that are one function had signs of 0.519 and 0.531: one of the two left residues for zeros."""
    log = draw("bernoulli", agents=3, events=12, traces=200, group_size=5, seed=7)
    graph = log.traces.graph
    reward = np.asarray(log.traces.reward)[:200].reshape(-1, 5)
    others = np.stack([np.sort(np.delete(reward, i, 1), 1) for i in range(5)], 1)
    exact = reward - np.median(others.astype(np.float64), -1)
    single = (exact + np.random.default_rng(0).choice([-6e-8, 6e-8], exact.shape)).astype(np.float32)
    assert np.mean((exact == 0) & (single != 0)) > 0.2

    def found(numbers: np.ndarray) -> float:
        of_event = numbers.ravel()[np.asarray(graph.trace_ids) % 200]
        return score(log, lambda graph, reward: of_numbers(graph, of_event, np.ones(graph.num_events, bool))).sign

    traces = np.asarray(graph.trace_ids)[log.chosen]
    product = exact.ravel()[traces] * log.increments[log.chosen]
    assert found(single) == found(exact) == pytest.approx(np.mean(product[product != 0] > 0))


@pytest.mark.slow
def test_nothing_is_claimed_where_a_score_is_not_defined(drawn: Draw) -> None:
    def nothing(graph: EventGraph, reward: Array) -> Credit:
        return of_numbers(graph, np.zeros(graph.num_events), np.ones(graph.num_events, bool))

    found = score(drawn, nothing, "nothing")
    assert found.method == "nothing" and found.slope == 0
    assert np.isnan([found.correlation, found.sign]).all()


@pytest.mark.slow
def test_no_interval_is_claimed_from_few_groups(drawn: Draw) -> None:
    group = np.asarray(drawn.traces.graph.group_ids)[np.asarray(drawn.traces.graph.trace_ids)]

    def first_groups(count: int) -> Match:
        def some(graph: EventGraph, reward: Array) -> Credit:
            return of_numbers(graph, drawn.increments + 0.1, group < count)

        return score(drawn, some)

    few, enough = first_groups(LEAST_GROUPS - 1), first_groups(LEAST_GROUPS)
    assert few.slope > 0 and np.isnan([few.slope_low, few.correlation_low, few.sign_high]).all()
    assert enough.slope_high > enough.slope and 0 < few.answered < enough.answered <= 1
    assert _cell(few.slope, few.slope_low, few.slope_high) == f"{few.slope:.3f}"
    draw_truth([few]).draw_without_rendering()


def test_methods_are_compared_in_pairs_on_the_same_logs() -> None:
    """Only intervals of each method were printed, although all see the same logs."""
    rng = np.random.default_rng(2)
    group, truth = np.repeat(np.arange(LEAST_GROUPS), 50), rng.normal(size=50 * LEAST_GROUPS)
    shared = truth + 3 * rng.normal(size=len(truth)) + rng.normal(size=LEAST_GROUPS)[group]
    of = Match("a", "additive", *[1.0] * 11)
    one, first = (Scored(of, _terms(a, truth), group) for a in (shared + truth, shared))
    found, (sums, of_first) = differences(one, first), _paired(one, first)
    assert [line.score for line in found] == ["slope", "correlation", "sign"]
    for i, line in enumerate(found):
        expected, *left = (
            np.subtract(*(_scores(scored[kept].sum(axis=0))[i] for scored in (sums, of_first)))
            for kept in [slice(None), *(np.arange(LEAST_GROUPS) != out for out in range(LEAST_GROUPS))]
        )
        half = 2.022691 * np.sqrt((LEAST_GROUPS - 1) * np.var(left))
        assert [line.difference, line.low, line.high] == pytest.approx([expected, expected - half, expected + half])
    alone = np.ptp(_intervals(sums), axis=1)
    assert found[0].high - found[0].low < 0.1 * alone[0]  # the noise of both is one
    assert [_less(line) for line in differences(one, one)] == ["equal"] * 3
    rare = of_first.copy()
    rare[:4, 7] -= 1  # four groups in which one sign differs
    assert np.isnan(_difference(np.stack([rare, of_first]), 2)[1])
    few = differences(*(Scored(of, scored.terms[:, group > 0], group[group > 0]) for scored in (one, first)))
    assert np.isnan(few[0].low) and _less(few[0]) == f"{few[0].difference:+.3f}"


def test_correlations_are_equal_but_for_an_offset() -> None:
    """A baseline lower by 50 had 2000 times the variance of `rloo`, and the sentence "equal but for rounding"."""
    rng = np.random.default_rng(1)
    group, truth = np.repeat(np.arange(LEAST_GROUPS), 50), rng.normal(size=50 * LEAST_GROUPS)
    plain = truth + 2 * rng.normal(size=len(truth))
    match = Match("mine:a", "additive", len(truth), *[0.5] * 9, 1.0, groups=LEAST_GROUPS, group_size=8)
    of = {name: Scored(match, _terms(a, truth), group) for name, a in (("first", plain), ("offset", plain + 50),
                                                                        ("half", plain / 2))}  # fmt: skip
    first = of["first"]._replace(match=dataclasses.replace(match, method="rloo"))
    for name, added in (("offset", True), ("half", False)):
        less = differences(of[name], first)
        assert [line.offset for line in less] == [False, added, False]
        numbers = of_run(_numbers([first.match, match], less), "truth", lambda number: {})
        (told,) = to_write(numbers)
        assert ("Both are equal but for an offset of the advantages. " in told) == added
        assert ("Both are equal but for rounding. " in told) != added
        in_file = table_of(numbers).filter(pc.field("quantity") == "correlation")["mark"].to_pylist()
        assert in_file[2] == "equal but for an offset"[: None if added else 5]


def test_a_difference_is_over_the_decisions_that_both_answer() -> None:
    """A method that is silent, with a 0 or without a number, where another one is wrong was surely better than it."""
    rng = np.random.default_rng(0)
    group, truth = np.repeat(np.arange(LEAST_GROUPS), 50), rng.normal(size=50 * LEAST_GROUPS)
    speaks = truth + 2 * rng.normal(size=len(truth))
    of = Match("a", "additive", *[1.0] * 11)
    answers = Scored(of, _terms(speaks, truth), group)
    right = speaks * truth > 0
    for silent in (0.0, np.nan):
        chooses = Scored(of, _terms(np.where(right, speaks, silent), truth), group)
        for line in differences(chooses, answers)[2:] if silent == 0 else differences(chooses, answers):
            assert (line.difference, _less(line), line.decisions) == (0, "equal", right.sum()), line


@pytest.mark.slow
def test_decisions_that_a_score_stands_on_are_counted_in_the_table(tmp_path: Path) -> None:
    """Of `sign`, which leaves zeros out, the table had all decisions, and of differences none."""
    call = ["bench", "truth", "-m", "rloo,discounted_return", "--world", "pivotal", "--events", "30", "--traces", "80"]
    assert not CliRunner().invoke(cli, [*call, "--table", str(tmp_path / "t.csv")]).exit_code
    rows = {(row["method"], row["quantity"], row["less"] or ""): row["n"]
            for row in pyarrow.csv.read_csv(tmp_path / "t.csv").to_pylist()}  # fmt: skip
    batch = draw("pivotal", events=30, traces=80)
    truth = np.abs(batch.increments[batch.chosen]) > 1e-9
    numbers = [np.asarray(credit.run(batch.traces, name).advantage)[batch.chosen] for name in call[3].split(",")]
    one, other = (truth & (np.abs(x) > 1e-5) for x in numbers)
    assert rows["rloo", "slope", ""] == rows["discounted_return", "slope", "rloo"] == len(truth)
    assert (rows["rloo", "sign", ""], rows["discounted_return", "sign", ""]) == (one.sum(), other.sum())
    assert rows["discounted_return", "sign", "rloo"] == np.sum(one & other) < len(truth)


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("kind", ["additive", "pivotal"])
@pytest.mark.parametrize("size", [8, 4])
def test_intervals_cover_over_groups_drawn_by_seed(kind: str, size: int) -> None:
    """Logs of `LEAST_GROUPS` groups and more, drawn from those of one long log, whose scores are the truth.

    No interval of a correlation or a share leaves its range.
    """
    log = draw(kind, agents=4, events=24, traces=300 * size, group_size=size, seed=3)
    graph = log.traces.graph
    group = np.asarray(graph.group_ids)[np.asarray(graph.trace_ids)][log.chosen]
    rng = np.random.default_rng(0)
    whole: dict[str, np.ndarray] = {}
    scored: dict[str, Scored] = {}
    of, held = Match("a", kind, *[1.0] * 11), []
    for method in ("rloo", "gae"):
        advantage = np.asarray(credit.run(log.traces, method).advantage, np.float64)[log.chosen]
        scored[method] = Scored(of, _terms(advantage, log.increments[log.chosen]), group)
        sums = whole[method] = _sums(scored[method].terms, group)
        truth, right = _scores(sums.sum(axis=0)), []
        for _ in range(1000):
            ends = _intervals(sums[rng.integers(0, 300, rng.integers(LEAST_GROUPS, 100))])
            right.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
            assert np.abs(ends[1]).max() < 1 and 0 < ends[2, 0] < ends[2, 1] < 1
        assert (np.mean(right, axis=0) > 0.925).all() and (np.mean(right, axis=0) < 0.97).all(), method
    pair = _paired(scored["gae"], scored["rloo"])
    less = [_difference(pair, score)[0] for score in range(3)]
    for _ in range(1000):
        kept = rng.integers(0, 300, rng.integers(LEAST_GROUPS, 100))
        ends = [_difference(pair[:, kept], score)[1:] for score in range(3)]
        held.append([np.nan if np.isnan(low) else low <= true <= high
                     for (low, high), true in zip(ends, less, strict=True)])  # fmt: skip
    stated = np.isfinite(held).sum(axis=0)
    assert (np.nanmean(held, axis=0)[stated > 200] > 0.925).all() and (stated[:2] == 1000).all()


@pytest.mark.sampled
@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_methods_without_bias_have_the_slope_1(kind: str) -> None:
    batch = draw(kind, agents=4, events=40, traces=2000, group_size=4)
    for method in ("rloo", "gae"):
        found = score(batch, method)
        assert abs(found.slope - 1) < found.slope_high - found.slope_low < 1.2, method  # twice a 95 % interval
    assert score(batch, "gae").correlation > 1.5 * score(batch, "rloo").correlation  # with the true values


@pytest.mark.slow
def test_arguments_out_of_range_are_named() -> None:
    with pytest.raises(CreditError, match=r"No world 'addtive'\. Did you mean additive"):
        draw("addtive")
    with pytest.raises(CreditError, match="traces is 20; expected a multiple of the group size 8, two groups or more"):
        draw("additive", traces=20)
    with pytest.raises(CreditError, match="traces is 8; expected"):
        draw("additive", traces=8)
    with pytest.raises(CreditError, match="method 'gigpo' needs evidence"):
        score(draw("pivotal", **SMALL), "gigpo")


@pytest.mark.slow
def test_the_command_measures_an_own_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_for_truth.py").write_text(
        "import estimators\n"
        "def left_out(graph, reward, *, event_reward=None):\n"
        "    return estimators.rloo(graph, reward, event_reward=event_reward)\n"
    )
    monkeypatch.chdir(tmp_path)
    call = ["bench", "truth", "-m", "rloo", "-m", "own_for_truth:left_out", "--world", "pivotal", "--traces", "320"]
    result = CliRunner().invoke(cli, [*call, "--plot", "truth.svg", "-o", "truth.csv", "--json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert rows[0] == score(draw("pivotal", traces=320), "rloo").__dict__ == rows[1] | {"method": "rloo"}
    assert (tmp_path / "truth.csv").read_text().count("\n") == 12 and (tmp_path / "truth.svg").stat().st_size > 5000
    shown = CliRunner().invoke(cli, call).stdout
    assert "pivotal: less that of rloo" in shown and shown.partition("to write")[0].count(" equal") == 3
    assert [line["difference"] for line in json.loads(result.stdout)["differences"]] == [0, 0, 0]
    assert "pivotal: " in shown and f"{rows[0]['slope']:.3f} ({rows[0]['slope_low']:.3f} to " in shown
    for wrong, text in (
        (["--world", "pivtal"], "No world 'pivtal'. Did you mean pivotal"),
        (["--world", "relay-and"], "`credit bench bias --world relay-and` takes it"),
        (["-m", "rlo"], "rlo"),
    ):
        refused = CliRunner().invoke(cli, ["bench", "truth", *wrong])
        assert refused.exit_code == 1 and text in refused.stderr


def test_methods_without_evidence_are_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of several exited with 1 and a list of some 50 methods, where `bench snr` and `bench train` left it out."""
    monkeypatch.setattr("credit.bench.against_truth.score_by_group", lambda *_: pytest.fail("a method was measured"))
    small = ["--world", "pivotal", "--events", "30", "--traces", "16"]
    refused = CliRunner().invoke(cli, ["bench", "truth", "-m", "gigpo", *small])
    why = "gigpo is left out in pivotal: method 'gigpo' needs anchor, which the drawn logs do not have"
    assert refused.exit_code == 1 and why in refused.stderr and "rloo" not in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "needy", "call"),
    [
        ("bias", "without:mood", "--world relay-and"),
        ("truth", "gigpo", "--world pivotal --events 30 --traces 16"),
        ("snr", "gigpo", "--quick --lengths 10,30"),
        ("train", "gigpo", "--tasks additive --seeds 1 --steps 2 --learning-rates 0.4"),
        ("bias", "without:crash", "--world relay-and"),
        ("truth", "without:crash", "--world pivotal --events 30 --traces 16"),
        ("snr", "without:crash", "--quick --lengths 10,30"),
        ("train", "without:crash", "--tasks additive --seeds 1 --steps 2 --learning-rates 0.4"),
    ],
)
def test_every_benchmark_leaves_out_what_cannot_be_measured(
    name: str, needy: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a line on standard error alone: in the table, CSV, LaTeX and the figure nobody had asked for the method. A
    function that raised ended all but `bench snr`, without a line of the others.

    All of them take `--method`, `--methods` and commas; alone, the method is refused in one sentence.
    """
    text = "import estimators\n\ndef mood(graph, reward, *, mood):\n    return estimators.rloo(graph, reward)\n"
    text += "\ndef crash(graph, reward):\n    raise ValueError('oops')\n"
    (tmp_path / "without.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    why = f"'{needy}' needs" if "crash" not in needy else "ValueError: oops"
    for option, files in (("--method", "--table x.csv"), ("--methods", "--table x.tex --plot x.svg")):
        asked = ["bench", name, option, f"rloo,{needy}", *call.split(), *files.split()]
        found = CliRunner().invoke(cli, asked)
        assert found.exit_code == 0 and "rloo" in found.stdout, found.output
        row = next(
            line for line in found.stdout.splitlines() if needy in line and ("left out" in line or "refused" in line)
        )
        assert why in found.stdout and row, found.stdout
    written = pyarrow.csv.read_csv("x.csv").to_pylist()
    absent = [line for line in written if line["method"] == needy]
    others = {line["quantity"] for line in written if line["method"] == "rloo"}
    assert absent and {line["quantity"] for line in absent} <= others, written
    assert all(why in line["why"] and line["value"] is None for line in absent)
    latex = Path("x.tex").read_text()
    assert re.search(rf"^{needy} & (left out|refused)", latex, re.MULTILINE), latex
    assert why in latex.replace("`", "'"), latex
    drawn = " ".join(re.findall("<!-- (.*?) -->", Path("x.svg").read_text()))
    assert "left out: " in drawn and why in drawn, drawn
    plain = json.loads(CliRunner().invoke(cli, ["bench", name, "-m", f"rloo,{needy}", *call.split(), "--json"]).stdout)
    assert why in json.dumps(plain["refused" if name == "snr" else "left_out"])
    alone = CliRunner().invoke(cli, ["bench", name, "-m", needy, *call.split()])
    assert alone.exit_code == 1 and why in alone.stderr and len(alone.stderr.splitlines()) < 6


@pytest.mark.slow
def test_what_answers_nothing_is_refused_and_compared_with_nobody(tmp_path: Path) -> None:
    """Its scores and differences were "undefined", without a reason in the table, as of advantages that are all 0."""
    call = ["bench", "truth", "--world", "additive", "--events", "30", "--traces", "16", "--group-size", "1"]
    path = tmp_path / "truth.csv"
    found = CliRunner().invoke(cli, [*call, "-m", "rloo,gae,grpo", "--table", str(path)])
    assert found.exit_code == 0 and "undefined" not in found.stdout, found.output
    assert found.stdout.count("refused") == 6 and "less" not in found.stdout.split("slope:")[0]
    rows = pyarrow.csv.read_csv(path).to_pylist()
    assert {row["method"] for row in rows if not row["why"]} == {"gae"} and not any(row["less"] for row in rows)


@pytest.mark.slow
def test_methods_of_replays_and_of_true_values_are_measured(drawn: Draw) -> None:
    """`bench truth -m c3` was refused: the logs had neither contexts nor nodes."""
    found = {name: score(drawn, name) for name in ("c3", "coma", "difference_reward", "rloo")}
    for name, match in found.items():
        assert match.answered == 1 and match.decisions == found["rloo"].decisions, name
        assert abs(match.slope - 1) <= match.slope_high - match.slope_low or name == "coma", match  # as above
    assert found["coma"].slope == pytest.approx(1, abs=1e-6)  # Q − V of the world is the increment
    assert found["c3"].correlation > found["rloo"].correlation  # of 3 further runs a decision
    rows = drawn.siblings
    first = np.asarray(rows.gather(rows.traces.reward[np.asarray(rows.traces.graph.trace_ids)]))[::ALTERNATIVES]
    outcome = np.asarray(drawn.traces.reward)[np.asarray(drawn.traces.graph.trace_ids)][drawn.chosen]
    np.testing.assert_array_equal(first, outcome)  # the logged message comes first
    propensity = rows.traces.evidence["propensity"].array[: len(first) * ALTERNATIVES][::ALTERNATIVES]
    np.testing.assert_allclose(propensity, drawn.traces.evidence["propensity"].array[drawn.chosen], rtol=1e-6)


@pytest.mark.slow
def test_the_picture_names_methods_and_worlds() -> None:
    rows = [
        Match(
            method,
            world,
            100,
            slope,
            slope - 0.2,
            slope + 0.1,
            0.3,
            0.2,
            0.4,
            0.6,
            0.5,
            0.7,
            1.0,
            groups=80,
            group_size=5,
        )
        for method, slope in (("rloo", 1.0), ("mine:_$x", 0.5), ("other", float("nan")))
        for world in KINDS
    ]
    figure = draw_truth(rows, title="one", values=GIVEN_VALUES["truth"])
    figure.draw_without_rendering()
    texts = {text.get_text() for text in figure.findobj(Text)}
    assert {"rloo", "mine:_$x", "other", "one", *KINDS} <= texts
    stated = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert stated == f"80 groups of 5 traces; bars: 95 % intervals; {GIVEN_VALUES['truth']}"
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert box.x0 > -0.02 and box.y0 > -0.02 and box.x1 < width + 0.02 and box.y1 < height + 0.02
    with pytest.raises(CreditError, match="rows is empty"):
        draw_truth([])
    assert credit.plot.draw_truth is draw_truth


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("truth --topology debate --agents 4", "spawns no agent by choice"),
        *(
            pytest.param(call, "leaves no room", marks=pytest.mark.slow)
            for call in (
                "train -m rloo --tasks bottleneck --size 0.5x0.5 --plot p.svg",
                "truth --size 1x1 --plot p.svg",
                "snr --quick -m rloo --size 0.5x0.5 -o .",
            )
        ),
    ],
)
def test_what_an_option_cannot_be_is_said_before_anything_is_drawn(
    call: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A size without room was refused after all runs, a team that the sixth world cannot have after five worlds."""

    def drawn(*args: object, **options: object) -> None:
        raise AssertionError("something was drawn")

    monkeypatch.setattr("credit.bench.against_truth.draw", drawn)
    monkeypatch.setattr("credit.bench.snr.run", drawn)
    monkeypatch.setattr("credit.bench.training.training_runs.run_training", drawn)
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(cli, ["bench", *call.split()])
    assert found.exit_code == 1 and words in found.stderr and not found.stdout


OWN_TEAM = """
from graphs.worlds import TeamWorld
team = TeamWorld("debate", agents=4, events=30, difficulties=(0.0, 1.0))
small = TeamWorld("debate", agents=4, events=30, group_size=4)
"""


@pytest.mark.slow
def test_groups_have_the_size_that_ones_own_world_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option's default of 8 took its place without a word."""
    (tmp_path / "stated_size.py").write_text(OWN_TEAM)
    monkeypatch.chdir(tmp_path)
    assert np.bincount(draw("stated_size:small", traces=16).runs.group).tolist() == [4] * 4
    assert np.bincount(draw("stated_size:small", traces=16, group_size=8).runs.group).tolist() == [8] * 2
    with pytest.raises(
        CreditError, match="agents does not go with the world 'stated_size:small': that states its team"
    ):
        draw("stated_size:small", traces=16, agents=7)
    call = ["bench", "truth", "-m", "rloo", "--traces", "16", "--world", "stated_size:small"]
    found = CliRunner().invoke(
        cli, [*call, "--world", "pivotal", "--agents", "4", "--table", "t.csv", "--plot", "t.svg"]
    )
    shown = " ".join(found.stdout.split())
    assert "answers in 4 groups of 4" in shown and "answers in 2 groups of 8" in shown, found.output
    sizes = {(row["world"], row["group_size"]) for row in pyarrow.csv.read_csv("t.csv").to_pylist()}
    assert sizes == {("stated_size:small", 4), ("pivotal", 8)} and "groups of 8" in Path("t.svg").read_text()
    other = CliRunner().invoke(cli, [*call, "--group-size", "8"])
    assert "stated_size:small states groups of 4; --group-size 8 is used" in other.stderr
    assert "groups of 8" in other.stdout and "states groups" not in found.stderr


@pytest.mark.slow
def test_several_sizes_of_groups_are_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench bias` and `snr` took several; here each size was a run, a file and a figure."""
    monkeypatch.chdir(tmp_path)
    call = ["bench", "truth", "-m", "rloo,dr_grpo", "--world", "pivotal", "--events", "30", "--traces", "320"]
    files = ["--table", "t.csv", "--plot", "t.svg", "--size", "5.5x4"]
    shown = CliRunner().invoke(cli, [*call, "--group-size", "2,4", *files])
    assert shown.exit_code == 0, shown.output
    assert Path("t.svg").read_text().count("slope on true increments") == 1  # below the last panel
    rows = pyarrow.csv.read_csv("t.csv").to_pylist()
    for size in (2, 4):
        alone = CliRunner().invoke(cli, [*call, "--group-size", str(size), "--json"])
        of = [*json.loads(alone.stdout)["rows"], *json.loads(alone.stdout)["differences"]]
        assert {row.get("slope", row.get("difference")) for row in of} <= {
            row["value"] for row in rows if row["group_size"] == size
        }
        assert f"groups of {size}" in Path("t.svg").read_text() and f"groups of {size}" in shown.stdout


@pytest.mark.slow
def test_a_team_of_ones_own_and_heavy_tails_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `bench bias` took a world of one's own, and none had heavy tails."""
    (tmp_path / "team_of_mine.py").write_text(OWN_TEAM)
    monkeypatch.chdir(tmp_path)
    call = ["bench", "truth", "-m", "rloo", "--traces", "16", "--world", "team_of_mine:team"]
    found = CliRunner().invoke(cli, [*call, "--json"])
    assert found.exit_code == 0 and json.loads(found.stdout)["rows"][0]["world"] == "team_of_mine:team", found.output
    refused = CliRunner().invoke(cli, [*call, "--agents", "5"])
    assert refused.exit_code and "--agents does not go with the world team_of_mine:team" in refused.stderr
    both = CliRunner().invoke(cli, [*call, "--world", "additive", "--agents", "4", "--json"])  # those of its own team
    assert both.exit_code == 0 and [row["decisions"] for row in json.loads(both.stdout)["rows"]][:1] == [
        row["decisions"] for row in json.loads(found.stdout)["rows"]
    ]
    other = CliRunner().invoke(cli, ["bench", "bias", "--world", "team_of_mine:team"])
    assert other.exit_code == 1 and "`credit bench truth --world team_of_mine:team` takes it" in other.stderr
    heavy, plain = (draw(world, events=40, traces=800) for world in ("heavy", "additive"))
    np.testing.assert_array_equal(heavy.increments, plain.increments)
    luck = np.asarray(heavy.runs.reward, np.float64) - np.asarray(plain.runs.reward, np.float64)
    assert np.abs(luck).max() > 5 * luck.std()  # no normal noise does so in 800 traces


@pytest.mark.slow
def test_how_many_groups_an_interval_is_of_stands_in_every_form(drawn: Draw, tmp_path: Path) -> None:
    """No table had it: 89 % and 95 % of the intervals of 10 and 40 groups hold the truth."""
    advantage = np.zeros(drawn.traces.graph.num_events)
    advantage[drawn.chosen] = np.random.default_rng(0).normal(size=drawn.chosen.sum())
    group = np.asarray(drawn.traces.graph.group_ids)[np.asarray(drawn.traces.graph.trace_ids)]

    def some(graph: EventGraph, reward: np.ndarray) -> Credit:
        return of_numbers(graph, advantage, group < 33)

    assert (score(drawn, "rloo").groups, score(drawn, some).groups) == (40, 33)
    call = ["bench", "truth", "-m", "rloo,grpo", "--world", "pivotal", "--events", "30", "--traces", "352"]
    for suffix in ("csv", "tex"):
        shown = CliRunner().invoke(cli, [*call, "--table", str(tmp_path / f"t.{suffix}")])
        assert "decisions, answers in 44 groups of 8" in shown.stdout, shown.output
    few = CliRunner().invoke(cli, [*call[:-1], "80", "--table", str(tmp_path / "few.tex")]).stdout
    assert "no 95 % intervals, of fewer than 40 groups of traces; --traces 320 draws 40" in few
    assert "intervals of pairs" not in few + (tmp_path / "few.tex").read_text()  # it said that there were
    assert "Counted: 1,630 decisions. No interval over 10 groups" in few.splitlines()[-1], few
    rows = pyarrow.csv.read_csv(tmp_path / "t.csv").to_pylist()
    assert {(row["independent"], row["low"] is None) for row in rows} == {(44, False), (None, True)}
    both = CliRunner().invoke(cli, ["bench", "table", str(tmp_path / "t.csv"), "-o", str(tmp_path / "all.tex")])
    texts = [both.stdout, *((tmp_path / f"{name}.tex").read_text().replace("\\%", "%") for name in ("t", "all"))]
    assert all("95 % intervals over 44 groups" in text.replace("~", " ") for text in texts), texts
