"""Before and after a change: paired within tasks where both sides have them, with an honest statement of power."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import credit
from credit.metrics.event_costs import Price, Prices, read_prices
from credit.metrics.side_differences import (
    COSTS,
    SILENT,
    UNPRICED,
    SideComparison,
    SideDifference,
    Sides,
    Uncompared,
    costs_of_traces,
    read_sides,
    side_differences,
    uncompared,
)
from credit.metrics.trace_metrics import METRICS, PARTS
from credit.reports.trace_numbers import AMOUNTS, TraceMetric, numbered
from tests.credit.cli.logs import run, trace, write


def traces_of(tasks: list[str]) -> credit.Traces:
    _, _, rows = credit.from_columns(group=tasks, trace=[f"t{i}" for i in range(len(tasks))], reward=[0.0] * len(tasks))
    return rows.traces


def test_shared_tasks_are_compared_with_themselves() -> None:
    rng = np.random.default_rng(0)
    tasks, side = np.repeat(np.arange(20), 4), np.tile([0, 0, 1, 1], 20)
    hard = 10 * rng.normal(size=20)[tasks]
    value = hard + 0.5 * side + 0.5 * rng.normal(size=80)
    (row,) = side_differences(traces_of([f"q{t}" for t in tasks]), {"success": numbered(value)}, side)
    of_task = value.reshape(20, 2, 2).mean(2)
    apart = of_task[:, 1] - of_task[:, 0]
    assert apart.min() < 0 < apart.max()
    assert row.paired and row.stands_out and (row.tasks, row.traces) == (20, (40, 40))
    assert row.difference == pytest.approx(apart.mean())
    half = 2.0930 * apart.std(ddof=1) / 20**0.5  # Student's t of 19 degrees of freedom
    assert (row.low, row.high) == pytest.approx((apart.mean() - half, apart.mean() + half), rel=1e-4)
    alone = range(80)  # the same numbers, each trace its own task: what differs is lost in the tasks
    (row,) = side_differences(traces_of([f"q{t}" for t in alone]), {"success": numbered(value)}, side)
    assert not row.paired and not row.stands_out and row.tasks == 80
    assert row.low is not None and row.seen is not None and row.low < 0.5 < row.seen


@pytest.mark.slow
def test_what_would_be_seen_is_seen_in_four_of_five_cases_and_nothing_in_one_of_twenty() -> None:
    rng = np.random.default_rng(1)
    traces, side = traces_of([f"q{i // 2}" for i in range(24)]), np.tile([0, 1], 12)
    expected = (2.2010 + 0.8755) * 2**0.5 / 12**0.5  # quantiles of Student's t of 11 degrees of freedom
    found = {0.0: 0, expected: 0}
    for shift in found:
        for _ in range(400):
            value = rng.normal(size=24) + shift * side
            found[shift] += side_differences(traces, {"success": numbered(value)}, side)[0].stands_out
    assert found[0.0] < 35 and 280 < found[expected] < 350


@pytest.mark.parametrize("shared", [True, False])
def test_the_clearest_differences_have_a_verdict(tmp_path: Path, shared: bool) -> None:
    """30 of 30 tasks that succeed on one side alone had no `*`, and 29 of 30 had one, with an interval up to 1.03."""
    lines = []
    for i in range(60):
        bad = i % 2 == 0
        calls = [{"id": f"e{k}", "type": "message", "agent": "a", "status": "error"} for k in range(6 if bad else 0)]
        events = [*calls, {"id": "x", "type": "message", "agent": "a", "status": "ok"}]
        lines.append(trace(f"t{i}", f"q{i // 2 if shared else i}", float(not bad), events=events, edges=[]))
    table = tmp_path / "sides.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{('before', 'after')[i % 2]}\n" for i in range(60)))

    def found() -> dict[str, dict[str, float]]:
        told = run("metrics", write(tmp_path / "x.jsonl", lines), "--sides", table, "--json").stdout
        return {row["metric"]: row for row in json.loads(told)["differences"]}

    rows, printed = found(), run("metrics", tmp_path / "x.jsonl", "--sides", table).stdout.splitlines()
    for name, difference in (("success", 1), ("errors", -6)):
        row = rows[name]
        assert row["difference"] == difference and row["low"] is None and row["p"] < 1e-6
        (line,) = [one for one in printed if one.startswith(name)]
        assert "no spread" in line and line.split()[6] == "*", line
    lines[1]["rewards"] = {"team": 0.0}
    row = found()["success"]
    assert 0.75 < row["low"] < 29 / 30 < row["high"] <= 1 and row["p"] < 1e-6


def test_too_few_tasks_for_so_many_metrics_are_said() -> None:
    """Eight tasks cannot give a p below 2 / 2⁸, which seven metrics make 0.055."""
    side, value = np.tile([0, 1], 8), np.tile([0.0, 1.0], 8) + np.repeat(np.arange(8.0), 2)
    traces = traces_of([f"q{i // 2}" for i in range(16)])
    for many in (6, 7):
        rows = side_differences(traces, {str(i): numbered(value) for i in range(many)}, side)
        assert all(row.stands_out == (many < 7) and row.least == 2 / 2**8 for row in rows)


def test_few_tasks_have_a_difference_and_no_interval(tmp_path: Path) -> None:
    log = write(tmp_path / "x.jsonl", [trace(f"t{i}", f"q{i // 2}", float(i % 2)) for i in range(14)])
    table = tmp_path / "sides.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{('before', 'after')[i % 2]}\n" for i in range(13)))
    told = json.loads(run("metrics", log, "--sides", table, "--json").stdout)
    row = next(row for row in told["differences"] if row["metric"] == "success")
    assert told["sides"] == ["before", "after"] and row["difference"] == 1 and row["traces"] == [6, 6]
    assert row["low"] is None and row["p"] is None and row["paired"]
    printed = run("metrics", log, "--sides", table).stdout
    assert "1 trace without a side" in printed
    assert "\ntraces: 6 and 6 of 7 and 6; 1 and 0 tasks are on one side only\n" in printed
    assert "\nWhat changed from before to after: success 0 to 1: too few tasks differ to tell.\n" in printed


@pytest.mark.parametrize("shared", [0, 1, 6, 10])
def test_tasks_of_one_side_change_nothing_where_others_are_on_both(tmp_path: Path, shared: int) -> None:
    """Six tasks that were alike on both sides, and easy new ones, gave success 0.4 to 0.8; ten, the counts of all."""
    lines, sides = [], ["trace,side"]
    for side in (0, 1):
        for i in range(14):
            old = i < shared
            for k in range(2):
                name = f"s{side}-{i}-{k}"
                lines.append(trace(name, f"q{i}" if old else f"q{side}-{i}", float(k == 0 if old else side)))
                sides.append(f"{name},{('before', 'after')[side]}")
    table = tmp_path / "sides.csv"
    table.write_text("\n".join(sides))
    log = write(tmp_path / "x.jsonl", lines)
    told = json.loads(run("metrics", log, "--sides", table, "--json").stdout)
    row = next(row for row in told["differences"] if row["metric"] == "success")
    assert (row["difference"], row["tasks"], row["paired"]) == ((0, shared, True) if shared else (1, 28, False))
    assert row["traces"] == [2 * shared or 28] * 2 and row["stands_out"] == (not shared)
    kept, alone = (f"{count} and {count}" for count in (2 * shared, 14 - shared))
    said = f"traces: {kept} of 28 and 28; {alone} tasks are on one side only"
    assert (said if shared else "traces: 28 and 28") in told["lines"]
    assert ("no task is on both sides: those of one may be harder" in told["changed"]) == (not shared)


def test_a_model_that_changed_with_the_date_is_named(tmp_path: Path) -> None:
    """Two weeks were compared without a word on the model, which had been replaced between them."""
    lines = [dated(f"t{i}", f"q{i // 2}", 1 + i % 2, model=("small", "big")[i % 2], system="x") for i in range(4)]
    log = write(tmp_path / "x.jsonl", lines)

    def told(sides: str) -> list[str]:
        found = json.loads(run("metrics", log, "--sides", sides, "--json").stdout)
        assert any(found["changed"] in line for line in found["lines"])
        return re.findall(
            "the sides differ in .*? to tell whether by chance|no model has .*? changed", found["changed"]
        )

    assert told("before=2023-11-16") == [
        "the sides differ in model, too (big in 0 % against 100 %, small in 100 % against 0 % of traces; "
        "tasks are too few to tell whether by chance",
        "no model has traces on both sides, so what it does cannot be told from what changed",
    ]
    assert told("model=small,big") == told("model=big,small") == []


def test_a_model_that_one_agent_changed_is_named(tmp_path: Path) -> None:
    """Success fell where the reviewer had another model, and the traces' own model, the lead's, was the same."""
    lines, sides = [], ["trace,side"]
    for i in range(40):
        models = {"lead": "small", "reviewer": ("small", "big")[i % 2]}
        events = [{"id": name, "type": "message", "agent": name, "t": t, "model": model}
                  for t, (name, model) in enumerate(models.items())]  # fmt: skip
        lines.append(trace(f"t{i}", f"q{i // 4}", float(i % 2 == 0), events=events, edges=[], model="small"))
        sides.append(f"t{i},{('before', 'after')[i % 2]}")
    log, table = write(tmp_path / "x.jsonl", lines), tmp_path / "sides.csv"
    table.write_text("\n".join(sides))
    changed = json.loads(run("metrics", log, "--sides", table, "--json").stdout)["changed"]
    assert changed.startswith(
        "success 1 to 0, but the sides differ in the model of an agent, too (reviewer: big in 0 % "
    )
    assert "lead" not in changed and "differ in model" not in changed


def test_few_tasks_that_differ_are_counted_below_what_is_asked_of_a_change_first(tmp_path: Path) -> None:
    """Success of 12 shared tasks, of which 3 differ, had "–" without a word, and stood far from errors and tokens."""
    call = {"type": "tool_call", "agent": "a", "tool": "x", "t": 1, "action": False, "status": "ok", "arguments": {}}
    lines = []
    for i in range(24):
        calls = [call | {"id": f"c{k}"} for k in range(1 + 2 * (i % 2))]  # three equal ones are a loop
        events = [{"id": "e", "type": "message", "agent": "a", "t": 0, "tokens": 10 + i, "input_tokens": 1}, *calls]
        lines.append(trace(f"t{i}", f"q{i // 2}", float(i in (1, 3, 5)), events=events, edges=[], model="big"))
    log, table, prices = write(tmp_path / "x.jsonl", lines), tmp_path / "sides.csv", tmp_path / "prices.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{('before', 'after')[i % 2]}\n" for i in range(24)))
    prices.write_text("model,input,output\nbig,2,8\n")
    command = ("metrics", log, "--sides", table, "--prices", prices)
    rows = json.loads(run(*command, "--json").stdout)["differences"]
    first = ["success", "errors", "loops", "tokens", "input_tokens", "money", "wall_clock", "tool_calls"]
    assert [row["metric"] for row in rows[: len(first)]] == first
    found = {row["metric"]: row for row in rows}
    assert (found["loops"]["first"], found["loops"]["second"]) == (0, 1)
    assert (found["success"]["differing"], found["success"]["p"], found["tokens"]["differing"]) == (3, None, 12)
    printed = run(*command).stdout
    least = "a test of traces one a side finds nothing below 6 tasks that differ, nor below 8 in one of 4 rows"
    assert f"\ntoo few tasks differ to tell: success (3 of 12); {least}\n" in printed
    assert (
        "\nWhat changed from before to after: success 0 to 0.25: too few tasks differ to tell; "
        "money 0.00017 to 0.000178; tokens generated 21 to 22; tokens read, errors, seconds of wall clock: the same; "
        "2 other metrics of the table changed.\n" in printed
    )


def test_a_change_is_never_called_nothing_where_success_was_not_tested() -> None:
    """`nothing beyond chance` stood there while success went from 0 to 0.25, which no test had looked at."""
    side, task, steps = np.tile([0, 1], 12), [f"q{i // 2}" for i in range(24)], np.arange(24.0)
    traces, sides = traces_of(task), Sides(("a", "b"), side, ("a", "b"))
    untested = numbered((steps < 6) * side * 1.0)  # three tasks differ
    same = numbered(np.where(steps // 2 % 2 == side, 0.0, 1.0))

    def changed(**metrics: TraceMetric) -> str:
        rows, lost = side_differences(traces, metrics, side), uncompared(metrics, side)
        return SideComparison(sides, rows, [], lost, np.unique(task, return_inverse=True)[1]).changed()

    few = "success 0 to 0.25: too few tasks differ to tell"
    assert changed(success=untested, errors=same) == f"{few}; errors: within chance"
    assert changed(success=untested, x=numbered(1500.0 * side)) == f"{few}; 1 other metric of the table changed"
    assert changed(success=untested, errors=numbered(1500.0 * side)) == f"{few}; errors 0 to 1,500"
    assert changed(success=untested) == few
    assert changed(success=same) == "success 0.5 to 0.5: within chance"


def test_a_sentence_for_a_boss_is_about_what_is_asked_of_a_change() -> None:
    """It named `error_amplification`, warned of its tasks, said nothing of money, and of success "the trace has no"."""
    side, task = np.tile([0, 1], 12), np.arange(24) // 2
    traces, rng = traces_of([f"q{t}" for t in task]), np.random.default_rng(0)
    lost = np.full(24, np.nan), (np.ones(24, bool), "the trace has no outcome")
    alone = np.where((side == 0) == (task < 6), rng.random(24), np.nan), (np.isfinite(side), "the log has no error")
    noise = {name: numbered(rng.normal(size=24)) for name in ("money", "tokens", "wall_clock")}
    found = {"success": numbered(*lost), "errors": numbered(2.0 - side)} | noise
    metrics = found | {
        "error_amplification": TraceMetric(alone[0], [""] * 24),
        "message_redundancy": numbered(9.0 * side),
    }
    rows, missed = side_differences(traces, metrics, side), uncompared(metrics, side)
    said = SideComparison(Sides(("a", "b"), side, ("a", "b")), rows, [], missed, task).changed()
    assert said == (
        "success is not known on either side, where no trace has an outcome; errors 2 to 1; "
        "money, tokens generated, seconds of wall clock: within chance; 1 other metric of the table changed"
    )


def test_outcomes_that_are_missing_stand_in_the_sentence_itself() -> None:
    """Success of 15 of 20 traces stood in the headline as if it were of all."""
    side, task = np.tile([0, 1], 20), np.arange(40) // 4
    value = np.where((np.arange(40) % 8 == 2), np.nan, (np.arange(40) % 3 == 0) * 1.0)
    traces = traces_of([f"q{t}" for t in task])
    metrics = {"success": numbered(value, (np.isnan(value), "the trace has no outcome"))}
    (row,) = side_differences(traces, metrics, side)
    assert (row.traces, row.asked) == ((15, 20), (20, 20))
    said = SideComparison(Sides(("a", "b"), side, ("a", "b")), [row], [], [], task).changed()
    assert " (in 15 of 20 and 20 of 20 traces; the others have no outcome): " in said


def test_every_cost_that_a_log_states_is_compared(tmp_path: Path) -> None:
    """`costs: {"usd": ..}` was in no row, and only `money` was compared."""
    event = {"id": "e", "type": "message", "agent": "a", "t": 0, "tokens": 5}
    lines = [
        trace(f"t{i}", f"q{i // 2}", float(i % 2), events=[event], edges=[], system=("a", "b")[i % 2])
        | {"costs": {"tokens": 5, "usd": (i // 2 + 1) * 0.01 * (1 + i % 2)}}
        for i in range(32)
    ]
    log = write(tmp_path / "x.jsonl", lines)
    (row,) = (
        row
        for row in json.loads(run("metrics", log, "--sides", "system", "--json").stdout)["differences"]
        if row["metric"].startswith("costs.")
    )
    assert (row["metric"], row["ratio"]["value"], row["stands_out"]) == ("costs.usd", 2, True)
    assert "\ncosts.usd: a cost that the log states of the trace\n" in run("metrics", log).stdout


def test_how_many_traces_have_numbers_is_said_once_behind_what_changed() -> None:
    """`(in 67 of 72 and 63 of 72 traces; the others have no number)` stood behind each metric, before money."""
    side, task = np.tile([0, 1], 12), np.arange(24) // 2
    traces, lacks = traces_of([f"q{t}" for t in task]), task == 0

    def changed(**some: bool) -> str:
        metrics = {
            name: numbered(1.0 + side, *[(lacks, "the log lacks lines")] * some[name])
            for name in ("wall_clock", "tokens", "money")
        }
        rows, lost = side_differences(traces, metrics, side), uncompared(metrics, side)
        return SideComparison(Sides(("a", "b"), side, ("a", "b")), rows, [], lost, task).changed()

    told, some = (
        "money 1 to 2; tokens generated 1 to 2; seconds of wall clock 1 to 2",
        "in 11 of 12 and 11 of 12 traces",
    )
    assert changed(wall_clock=True, tokens=True, money=True) == f"{told}; numbers {some}"
    alone = f"{told}; numbers of money, seconds of wall clock {some}"
    assert changed(wall_clock=True, tokens=False, money=True) == alone
    assert changed(wall_clock=False, tokens=False, money=False) == told


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("word", ["model", "system"])
def test_a_shift_of_the_mix_of_models_is_no_improvement_without_a_word(tmp_path: Path, word: str, shared: bool) -> None:
    """Success of each model stayed, one became more frequent, and the headline was "success 0.367 to 0.717"."""
    lines, sides = [], ["trace,side"]
    for i in range(120):
        task, after, k = i // 10, i % 10 // 5, i % 5
        big = (k > 0) == bool(after)
        passed = (task * 7 + k) % 12 < (10 if big else 3)
        name = f"q{task}" if shared else f"q{i}"
        lines.append(trace(f"t{i}", name, float(passed), **{word: "big" if big else "small"}))
        sides.append(f"t{i},{('old', 'new')[after]}")
    log, table = write(tmp_path / "x.jsonl", lines), tmp_path / "sides.csv"
    table.write_text("\n".join(sides))
    told = json.loads(run("metrics", log, "--sides", table, "--json").stdout)
    row = next(row for row in told["differences"] if row["metric"] == "success")
    assert row["stands_out"] and row["difference"] > 0.25
    mix = f"{word}, too (big in 20 % against 80 %, small in 80 % against 20 % of traces); success within each {word} ("
    assert f", but the sides differ in {mix}" in told["changed"]
    within = told["changed"].split(mix)[1].split(")")[0]
    told = within.split("; ")
    assert re.fullmatch(r"big ([\d.]+) to [\d.]+, .*", told[0]) and re.fullmatch(
        r"small ([\d.]+) to [\d.]+, .*", told[1]
    )
    assert all(one.endswith(", within chance") for one in told[:2]) and len(told) == 2 + shared
    if shared:  # a task's kinds weigh n m / (n + m), which is 4 / 5 of all
        passed = np.array([float(line["rewards"]["team"]) for line in lines]).reshape(12, 2, 5)
        big = passed[:, 1, 1:].mean(1) - passed[:, 0, 0]
        small = passed[:, 1, 0] - passed[:, 0, 1:].mean(1)
        assert told[2] == f"together {(big + small).mean() / 2:+z.3g}, within chance"
    even = [(i % 10 in (0, 6, 7, 1, 2)) ^ (i // 10 % 2) for i in range(120)]  # the same mix on both sides
    table.write_text("trace,side\n" + "".join(f"t{i},{('old', 'new')[side]}\n" for i, side in enumerate(even)))
    assert "the sides differ" not in run("metrics", log, "--sides", table).stdout


def test_no_star_stands_beside_an_interval_that_holds_no_difference() -> None:
    """The permutation test of 9 tasks found what Student's interval, drawn out by one of them, did not leave out."""
    apart = np.array([1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.8, -0.1, 30.0])
    side = np.tile([0, 1], 9)
    value = np.zeros(18)
    value[side == 1] = apart
    (row,) = side_differences(traces_of([f"q{i // 2}" for i in range(18)]), {"outcome": numbered(value)}, side)
    assert row.p is not None and row.p < 0.05 and row.low is not None and row.low < 0 and not row.stands_out


def test_rows_of_traces_that_were_not_read_are_named(tmp_path: Path) -> None:
    log = write(tmp_path / "x.jsonl", [trace(f"run-{i}", "q", 0.0) for i in range(3)])
    table = tmp_path / "sides.csv"
    table.write_text("trace,side\nrun-0,old\nrun-1,new\nran-2,new\n")
    told = run("metrics", log, "--sides", table)
    assert f"{table}:4: trace is 'ran-2'; expected the id of a trace that was read. Did you mean run-2?" in told.stderr
    assert told.exit_code == 3 and run("metrics", log, "--sides", table, "--allow-bad").exit_code == 0


def test_what_rounding_makes_is_no_difference() -> None:
    """Ratios of 1.6 against 1.6 differed by -1.12e-08, with an interval and a star."""
    rng = np.random.default_rng(2)
    tasks, side = np.repeat(np.arange(20), 2), np.tile([0, 1], 20)
    value = 1.6 + rng.uniform(0, 2e-8, 40) - 2e-8 * side
    for shared in (tasks, np.arange(40)):
        (row,) = side_differences(traces_of([f"q{t}" for t in shared]), {"signal_to_noise": numbered(value)}, side)
        assert row.difference == 0 and row.low is None and row.p is None


def test_sides_have_the_outcomes_and_costs_of_traces(tmp_path: Path) -> None:
    lines = []
    for i in range(40):
        after = i % 2
        call = {
            "id": "c",
            "type": "tool_call",
            "agent": "a",
            "tool": "x",
            "t": 1 + after,
            "action": False,
            "status": "error",
        }
        events = [
            {"id": "e", "type": "message", "agent": "a", "t": 0, "status": "ok", "tokens": 10 + i % 3 + 5 * after},
            *[call] * after,
        ]
        lines.append(trace(f"t{i}", f"q{i // 2}", 0.5 * after + i % 5, events=events, edges=[]))
    log, table = write(tmp_path / "x.jsonl", lines), tmp_path / "sides.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{('before', 'after')[i % 2]}\n" for i in range(40)))
    rows = json.loads(run("metrics", log, "--sides", table, "--json").stdout)["differences"]
    found = {row["metric"]: row for row in rows}
    even, odd = range(0, 40, 2), range(1, 40, 2)
    assert found["outcome"]["first"] == pytest.approx(np.mean([i % 5 for i in even]))
    tokens = np.mean([i % 3 for i in odd]) + 5 - np.mean([i % 3 for i in even])
    assert found["tokens"]["difference"] == pytest.approx(tokens)
    assert (found["tool_calls"]["first"], found["tool_calls"]["second"]) == (0, 1)
    assert (found["errors"]["first"], found["errors"]["second"]) == (0, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("t0,a\nt1,b\nt2,A\n", "are: 'a', 'b', 'A'; expected two"),
        ("T1,a\nx,b\n", r"are: none; expected two(.|\n)*:2: trace is 'T1'; (.|\n)*Did you mean t1\?"),
        ("t0,a\nt0,b\n", "a second side of trace 't0'"),
        ("t0,\n", "expected the columns"),
    ],
)
def test_tables_that_name_no_two_sides_are_refused(tmp_path: Path, rows: str, message: str) -> None:
    table = tmp_path / "sides.csv"
    table.write_text("trace,side\n" + rows)
    with pytest.raises(credit.CreditError, match=message):
        read_sides(table, traces_of(["q"] * 3))


def test_folders_are_sides(tmp_path: Path) -> None:
    """A change of a team leaves a folder of logs before it and one after; each needed a table of their traces."""
    for number, name in enumerate(("old", "new")):
        (tmp_path / name / "deep").mkdir(parents=True)
        lines = [trace(f"{name}{i}", f"q{i}", float(number and i % 3 > 0)) for i in range(12)]
        write(tmp_path / name / "deep" / "log.jsonl", lines)
    write(tmp_path / "other.jsonl", [trace("other", "q0", 1.0)])
    old, new = tmp_path / "old", tmp_path / "new"
    (tmp_path / "empty").mkdir()
    told = json.loads(run("metrics", tmp_path, "--sides", f"{old},{new}", "--json").stdout)
    row = next(row for row in told["differences"] if row["metric"] == "success")
    assert told["sides"] == [str(old), str(new)] and row["difference"] == pytest.approx(8 / 12) and row["paired"]
    shown = run("metrics", tmp_path, "--sides", f"{old},{new}")
    assert "1 trace without a side" in shown.stdout, shown.output
    for sides, words in (
        (f"{old},{tmp_path}/none", f"{tmp_path}/none does not exist; expected two folders"),
        (f"{old},{tmp_path}/empty", "no trace that was read is from"),
        (f"{old},{old}", "one lies in the other; expected two folders that are apart"),
        (f"{tmp_path},{new}", "one lies in the other"),
        (f"{new},{tmp_path}", "one lies in the other"),  # this compared one part of the corpus with the rest
    ):
        wrong = run("metrics", tmp_path, "--sides", sides)
        assert wrong.exit_code == 1 and words in wrong.stderr, wrong.output
    wrong = run("metrics", tmp_path, "--sides", f"{old},{new},{old}")
    assert wrong.exit_code == 1 and "; expected two folders A,B, a table" in wrong.stderr


def test_sides_have_the_tokens_that_were_read_and_money(tmp_path: Path) -> None:
    for number, name in enumerate(("old", "new")):
        (tmp_path / name).mkdir()
        lines = []
        for i in range(4):
            event = {"id": "e", "type": "message", "agent": "a", "tokens": 10, "input_tokens": 100 * (number + 1)}
            if name == "new" and i == 3:
                del event["input_tokens"]
            model = "small" if i == 2 else "big"
            lines.append(trace(f"{name}{i}", f"q{i}", 1.0, events=[event], edges=[], model=model))
        write(tmp_path / name / "log.jsonl", lines)
    table = tmp_path / "prices.csv"
    table.write_text("model,input,output,tool,call\nbig,2,8,,\n,,,web,1\n")
    sides = ("metrics", tmp_path / "old", tmp_path / "new", "--sides", f"{tmp_path}/old,{tmp_path}/new")
    told = json.loads(run(*sides, "--prices", table, "--json").stdout)
    rows = {row["metric"]: row for row in told["differences"]}
    assert rows["input_tokens"]["traces"] == [3, 3]
    assert (rows["input_tokens"]["first"], rows["input_tokens"]["second"]) == (100, 200)
    assert rows["money"]["traces"] == [2, 2]
    assert rows["money"]["refused"] == {UNPRICED: 2, "an action has no count of tokens, read or generated": 1}
    shown = run(*sides, "--prices", table).stdout  # one side's count alone hid that a side lacks more of its traces
    assert f"money (2 and 2: mostly {UNPRICED})" in shown and "traces: 4 and 4; a selection of them" in shown
    assert rows["money"]["first"] == pytest.approx((2 * 100 + 8 * 10) / 1e6)
    assert rows["money"]["second"] == pytest.approx((2 * 200 + 8 * 10) / 1e6)
    assert "rows of the table that match nothing in these logs: tool web" in run(*sides, "--prices", table).stdout
    money = costs_of_traces(credit.read(tmp_path / "old", tmp_path / "new"), read_prices(table))["money"]
    assert money.reasons == [
        "",
        "",
        UNPRICED,
        "",
        "",
        "",
        UNPRICED,
        "an action has no count of tokens, read or generated",
    ]
    assert "money" not in {row["metric"] for row in json.loads(run(*sides, "--json").stdout)["differences"]}


def test_metrics_print_what_runs_cost_and_what_went_wrong(tmp_path: Path) -> None:
    """They had no errors, tokens and money, and did not say where these are; `--prices` was refused."""
    lines = []
    for i in range(4):
        event = {"id": "m", "type": "message", "agent": "a", "tokens": 1000 * (i + 1), "input_tokens": 10 * i}
        call = {"id": "c", "type": "tool_call", "agent": "a", "tool": "t", "action": False}
        call["status"] = "error" if i % 2 else "ok"
        lines.append({"trace_id": f"t{i}", "task_id": f"q{i}", "events": [event, call], "edges": [], "model": "big",
                      "rewards": {"team": float(i % 2)}})  # fmt: skip
    log = write(tmp_path / "log.jsonl", lines)
    (tmp_path / "prices.csv").write_text("model,input,output\nbig,1000000,1000\n")
    command = ["metrics", log, "--prices", tmp_path / "prices.csv"]
    rows = {row["metric"]: row["mean"] for row in json.loads(run(*command, "--json").stdout)["metrics"]}
    assert [*rows][:6] == ["success", "errors", "loops", "tokens", "input_tokens", "money"]
    assert [rows[name] for name in [*rows][:6]] == [0.5, 0.5, 0, 2500, 15, pytest.approx(17.5)]
    told = json.loads(run("costs", log, "--prices", tmp_path / "prices.csv", "--json").stdout)["total"]
    assert {name: told[name]["total"] / 4 for name in ("errors", "tokens", "input_tokens", "money")} == {
        name: pytest.approx(rows[name]) for name in ("errors", "tokens", "input_tokens", "money")
    }
    printed = run(*command, "-o", tmp_path / "numbers.csv").stdout
    assert re.search(r"^tokens +2,500 ", printed, re.MULTILINE) and "money: money at the prices of a table" in printed
    head = (tmp_path / "numbers.csv").read_text().splitlines()[0].replace('"', "")
    assert head.startswith("trace,group,success,errors,loops,tokens,input_tokens,money")
    assert "money" not in run("metrics", log).stdout


def test_an_agent_whose_session_is_not_in_the_log_leaves_costs_unknown(tmp_path: Path) -> None:
    counts = {"tokens": 10, "input_tokens": 100}
    events = [
        {"id": "e", "type": "message", "agent": "a"} | counts,
        {"id": "s", "type": "spawn", "agent": "a", "action": False},
        {"id": "r", "type": "return", "agent": "b", "action": False},
    ]
    agents, edge = [{"id": "a"}, {"id": "b", "parent": "a"}], {"src": "s", "dst": "r", "type": "spawn"}
    one = trace("t", "q", 1.0, agents=agents, events=events, edges=[edge], model="big")
    found = costs_of_traces(credit.read(write(tmp_path / "x.jsonl", [one])), Prices({"big": Price(1, 1)}))
    assert {name: metric.reasons for name, metric in found.items() if np.isnan(metric.value[0])} == {
        **{name: [SILENT] for name in ("tokens", "input_tokens", "money")},
        "errors": ["the log states no status"],
        "wall_clock": ["the log has no times in seconds"],
    }


def test_metrics_without_a_number_on_a_side_are_named_with_their_reason(tmp_path: Path) -> None:
    """Two folders of a coding agent's logs lost the rows "tokens" and "success" without a word."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        event = {"id": "e", "type": "message", "agent": "a"} | ({"tokens": 10} if name == "old" else {})
        lines = [trace(f"{name}{i}", f"q{i}", None, events=[event], edges=[]) for i in range(3)]
        write(tmp_path / name / "log.jsonl", lines)
    old, new = tmp_path / "old", tmp_path / "new"
    sides = ("metrics", old, new, "--sides", f"{old},{new}")
    told = json.loads(run(*sides, "--json").stdout)
    lost = {row["metric"]: (row["sides"], row["reason"]) for row in told["uncompared"]}
    assert lost["success"] == ([str(old), str(new)], "the trace has no outcome")
    assert lost["tokens"] == ([str(new)], "an action has no count of tokens")
    assert not lost.keys() & {row["metric"] for row in told["differences"]}
    (line,) = [line for line in run(*sides).stdout.splitlines() if line.startswith("no number")]
    assert "success (the trace has no outcome)" in line and line.startswith("no number on either side: ")
    assert f"; on {new}: tokens, protocol_overhead (an action has no count of tokens)" in line
    value = np.array([1.0, np.nan, np.nan, np.nan, 2.0])
    metric = TraceMetric(value, ["", "rare", "often", "often", ""])
    assert uncompared({"x": metric}, np.array([0, 1, 1, 1, -1])) == [Uncompared("x", (1,), "often")]


def test_costs_that_no_trace_of_a_side_has_whole_are_shown_as_bounds(tmp_path: Path) -> None:
    """Sessions of a coding agent count some of their tokens: money was "no number", though most of it is known."""
    for name, read in (("old", 1_000_000), ("new", 3_000_000)):
        (tmp_path / name).mkdir()
        call = {"type": "message", "agent": "a", "tokens": 10, "input_tokens": read}
        cut = {key: value for key, value in call.items() if key != "tokens"}
        events = [{"id": "e", **call}, {"id": "f", **(cut if name == "new" else call)}]
        lines = [trace(f"{name}{i}", f"q{i}", None, events=events, edges=[], model="big") for i in range(2)]
        write(tmp_path / name / "log.jsonl", lines)
    table = tmp_path / "prices.csv"
    table.write_text("model,input,output\nbig,2,100000\n")
    sides = ("metrics", tmp_path, "--sides", f"{tmp_path}/old,{tmp_path}/new", "--prices", table)
    told = json.loads(run(*sides, "--json").stdout)
    bounds = {row["metric"]: row for row in told["bounds"]}
    assert bounds["money"] == {"metric": "money", "first": 6.0, "second": 13.0, "whole": [True, False], "tasks": 2}
    assert (bounds["tokens"]["first"], bounds["tokens"]["second"]) == (20, 10)
    assert not bounds.keys() & {row["metric"] for row in told["differences"]}
    shown = run(*sides).stdout
    assert ["money", "6", "≥", "13", "–", "–", "–", "2"] in [line.split() for line in shown.splitlines()]
    assert shown.splitlines()[0].split()[:3] == ["metric", "old", "new"]  # not the paths, which no table has room for
    assert "known in part: tokens (an action has no count of tokens), money" in shown
    assert "no number on new: money" not in shown


def test_where_traces_with_a_part_unknown_are_left_out_the_known_part_of_all_stands_below(tmp_path: Path) -> None:
    """The longest session lacked one count: without it the other side seemed to read more."""
    for name, sizes in (("old", (900, 100)), ("new", (200, 200))):
        (tmp_path / name).mkdir()
        lines = []
        for i, size in enumerate(sizes):
            events = [
                {"id": f"e{j}", "type": "message", "agent": "a", "tokens": 1, "input_tokens": size} for j in (0, 1)
            ]
            if size == 900:
                del events[1]["input_tokens"]
            lines.append(trace(f"{name}{i}", f"q{i}", None, events=events, edges=[], model="big"))
        write(tmp_path / name / "log.jsonl", lines)
    shown = run("metrics", tmp_path, "--sides", f"{tmp_path}/old,{tmp_path}/new").stdout.splitlines()
    found = [line.split() for line in shown if line.startswith("input_tokens")]
    assert found[0][:4] == ["input_tokens", "200", "400", "+200"]
    assert found[1] == ["input_tokens,", "all", "traces", "≥", "550", "400", "–", "–", "–", "2"]


def dated(name: str, task: str, day: int, **more: object) -> dict[str, object]:
    event = {"id": "e", "type": "message", "agent": "a", "t": 1_700_000_000 + 86_400 * day}  # from 2023-11-14, 22:13
    return trace(name, task, 0.0, events=[event], edges=[], **more)


def test_sides_are_what_the_log_states(tmp_path: Path) -> None:
    """Of experiments that a log names, a table of traces was to be made; its order was the log's, newest first."""
    more = [{"model": "m", "system": "b" if i < 4 else "a", "costs": {"money": 1 + i // 4}} for i in range(8)]
    lines = [dated(f"t{i}", f"q{i % 4}", 9 - i, **more[i]) for i in range(8)]
    log = write(tmp_path / "x.jsonl", [*lines, dated("z", "q0", 20)])
    table = tmp_path / "sides.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{'b ' if i < 4 else ' a'}\n" for i in range(8)) + "z,\n")

    def sides(text: object) -> tuple[list[str], str]:
        told = run("metrics", log, "--sides", text, "--json")
        return (json.loads(told.stdout)["sides"], "") if told.exit_code == 0 else ([], told.stderr)

    assert sides("system") == (["a", "b"], "") and sides("system=b, a") == (["b", "a"], "")
    assert sides("before=2023-11-20")[0] == ["before 2023-11-20", "from 2023-11-20"]
    shown = run("metrics", log, "--sides", "system").stdout
    assert ["logged_money", "2", "1", "-1"] in [line.split()[:4] for line in shown.splitlines()]
    assert "difference: b − a" in shown and "1 trace without a side" in shown and "traces: 4 and 4" in shown
    for text, words in (
        ("model", "model of the traces that were read: 'm'; expected two"),
        ("system=a,c", "system of the traces that were read: 'a', 'b'; expected two"),
        ("before=2022-01-01", "no trace that was read begins before 2022-01-01; they begin from 2023-11-16T22:13:20Z"),
        ("before=noon", "'noon' is no date"),
        (f"{log},{tmp_path}/none", f"{tmp_path}/none does not exist"),
        ("sistem", "sistem does not exist"),
    ):
        assert words in sides(text)[1], sides(text)
    table.write_text("\n".join(table.read_text().splitlines()[:-1]))
    assert sides(table)[0] == ["a", "b"]
    for command in ("report", "view"):
        assert "`system`" in "".join(run(command, "--help").stdout.replace("\n", " ").split("  "))
    (row,) = json.loads(run("traces", write(tmp_path / "y.jsonl", lines[:1]), "--json").stdout)["traces"]
    assert (row["system"], row["begin"]) == ("b", "2023-11-23T22:13:20Z")
    undated = write(tmp_path / "z.jsonl", [trace("a", "q", 1.0)])
    assert json.loads(run("traces", undated, "--json").stdout)["traces"][0]["begin"] is None
    assert "no trace that was read has a date" in run("metrics", undated, "--sides", "before=2022-01-01").stderr
    means = json.loads(run("metrics", log, "--by", "system", "--json").stdout)["metrics"]
    assert {mean["unit"] for mean in means} == {"a", "b", "unknown"}


@pytest.mark.parametrize("paired", [True, False])
def test_an_amount_has_the_interval_of_its_ratio(paired: bool) -> None:
    """The interval of the difference of log-normal tokens (σ 1.5), half as many again, held 75 to 88 % of draws."""
    rng = np.random.default_rng(3)
    tasks, held, ratios = 24, [], []
    side = np.tile([0, 1], tasks)
    names = [f"q{i // 2 if paired else i}" for i in range(2 * tasks)]
    traces = traces_of(names)
    for _ in range(300):
        size = np.exp(1.5 * rng.normal(size=tasks))
        of_side = [size, size if paired else np.exp(1.5 * rng.normal(size=tasks))]
        noise = np.exp(0.4 * rng.normal(size=(2, tasks)))
        value = np.stack([of_side[0] * noise[0], 1.5 * of_side[1] * noise[1]], axis=1).reshape(-1)
        (row,) = side_differences(traces, {"tokens": numbered(1000 * value)}, side)
        assert row.low is None and row.ratio is not None and row.paired == paired
        assert row.difference == pytest.approx(1000 * (value[1::2].mean() - value[::2].mean()))
        held.append(row.ratio.low <= 1.5 <= row.ratio.high)
        ratios.append(row.ratio.value)
    assert 0.92 <= np.mean(held) <= 0.99
    assert np.median(ratios) == pytest.approx(1.5, rel=0.05)
    value[::2][0] = 0.0  # a task without any on one side has no ratio
    (row,) = side_differences(traces, {"tokens": numbered(value)}, side)
    assert row.ratio is None and (row.low is None) == paired  # of pairs the difference's held 85 %
    if row.low is not None:
        assert row.low < row.difference < (row.high or 0)


@pytest.mark.parametrize("zeros", [0.1, 0.6])
@pytest.mark.parametrize("tasks", [12, 40])
def test_pairs_of_amounts_with_zeros_have_an_interval_where_it_holds(tasks: int, zeros: float) -> None:
    rng = np.random.default_rng(57)
    side, traces, held = np.tile([0, 1], tasks), traces_of([f"q{i // 2}" for i in range(2 * tasks)]), []
    truth = -zeros * np.exp(0.5)
    for _ in range(200):
        logs = 0.7 * rng.normal(size=tasks) + 0.714 * rng.normal(size=(2, tasks))
        first, second = np.exp(logs)
        value = np.stack([first, np.where(rng.random(tasks) < zeros, 0, second)], axis=1).reshape(-1)
        (row,) = side_differences(traces, {"tokens": numbered(value)}, side)
        if row.ratio is None:
            held.append(row.low is not None and row.high is not None and row.low <= truth <= row.high)
            assert (row.low is None) == (tasks < 40) == (row.without == "has zeros")
    assert np.mean(held) >= 0.92 if tasks == 40 else not any(held)


def test_each_metric_is_a_part_or_an_amount() -> None:
    """One that is declared as neither would have the interval of a mean that a few tasks make."""
    assert PARTS.isdisjoint(AMOUNTS) and {*METRICS, *COSTS} == PARTS | AMOUNTS | {"outcome"}


def test_a_ratio_against_the_means_is_said() -> None:
    """Eleven of twelve tasks took less, and one so much more that the mean grew."""
    side, names = np.tile([0, 1], 12), [f"q{i // 2}" for i in range(24)]
    value = np.where(side == 1, 80.0, 100.0) + np.arange(24) % 7
    value[-1] = 10_000.0
    (row,) = side_differences(traces_of(names), {"tokens": numbered(value)}, side)
    assert row.difference > 0 and row.ratio is not None and row.ratio.high < 1
    assert "(but ×0.8" in row.told() and " in the median task)" in row.told()


@pytest.mark.parametrize("paired", [True, False])
def test_a_ratio_beside_a_difference_of_means_says_of_what_it_is(paired: bool, tmp_path: Path) -> None:
    """A difference of −43 tokens stood beside ×0.8, which a reader took for the ratio of the means, 0.57."""
    lines = []
    for i in range(24):
        tokens = 1000 if i == 0 else 100 if i == 1 else (10, 8)[i % 2] * (3 + i // 2)
        events = [{"id": "e", "type": "message", "agent": "a", "tokens": tokens}]
        lines.append(trace(f"t{i}", f"q{i // 2 if paired else i}", 1.0, events=events, edges=[]))
    log, table = write(tmp_path / "x.jsonl", lines), tmp_path / "sides.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{('before', 'after')[i % 2]}\n" for i in range(24)))
    printed = run("metrics", log, "--sides", table).stdout
    kind = "median" if paired else "geometric"
    (row,) = [line for line in printed.splitlines() if line.startswith("tokens ")]
    assert f" {kind} ×0." in row and printed.count(f" {kind} ×: of an amount, the ratio of ") == 1
    assert "geometric" not in printed if paired else "median" not in printed


def few_tasks(rng: np.random.Generator, tasks: int, traces: int, shift: float) -> list[SideDifference]:
    """Success of traces of few tasks on two sides, by the task's chance and a shift of the second, and 12 metrics."""
    task, side = np.repeat(np.arange(tasks), 2 * traces), np.tile([0, 1], tasks * traces)
    chance = np.clip(rng.uniform(0, 1, tasks)[task] + shift * side, 0, 1)
    metrics = {"success": numbered((rng.random(len(task)) < chance).astype(float))}
    metrics |= {f"m{k}": numbered(rng.normal(size=len(task)) + rng.normal(size=tasks)[task]) for k in range(12)}
    return side_differences(traces_of([f"q{t}" for t in task]), metrics, side)


def test_success_is_found_in_eight_tasks_whatever_number_of_other_metrics(tmp_path: Path) -> None:
    """3 of 40 against 40 of 40 was "too few tasks differ to tell", since 13 rows were corrected together."""
    task, side = np.repeat(np.arange(8), 10), np.tile([0, 1], 40)
    good = np.where(side == 1, 1.0, np.isin(np.arange(80), (0, 20, 40)))
    rng = np.random.default_rng(0)
    metrics = {"success": numbered(good)} | {f"m{k}": numbered(rng.normal(size=80)) for k in range(12)}
    traces = traces_of([f"q{t}" for t in task])
    found = {row.metric: row for row in side_differences(traces, metrics, side)}
    assert found["success"].stands_out and found["success"].rows == 1 and found["success"].p == 2 / 2**8
    assert {row.rows for name, row in found.items() if name != "success"} == {12}
    assert found["m0"].why() == "too few tasks differ for 12 rows"
    # As failed and succeeded traces of one task are.
    one = side_differences(traces_of(["q"] * 80), {"success": numbered(good)}, side)[0]
    assert one.stands_out and one.differing == 1 and one.low is None and one.without == "few tasks"
    untested = side_differences(traces_of(["q"] * 14), {"success": numbered(good[:14])}, side[:14])[0]
    assert untested.p is None and untested.why() == "too few tasks differ to tell"


@pytest.mark.slow
def test_of_few_tasks_chance_is_starred_in_one_of_twenty_and_a_change_is_found() -> None:
    first, others, changed = [], [], []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        tasks, traces = int(rng.integers(1, 13)), int(rng.integers(2, 16))
        rows = few_tasks(rng, tasks, traces, 0.0)
        first.append(rows[0].stands_out)
        others.append(any(row.stands_out for row in rows[1:]))
        if seed < 100:
            changed.append(few_tasks(rng, tasks, 16, 0.6)[0].stands_out)
    assert np.mean(first) <= 0.05 and np.mean(others) <= 0.05 and np.mean(changed) > 0.7


def test_an_interval_that_leaves_out_no_difference_is_not_called_within_chance() -> None:
    apart = np.array([1.0, 1.3, 0.2, 0.9, -0.3, 1.5, 0.4, 0.8, 0.6, 0.1, 1.1, -0.4])
    side, rng = np.tile([0, 1], 12), np.random.default_rng(0)
    metrics = {f"m{k}": numbered(rng.normal(size=24)) for k in range(40)}
    metrics["planned"] = numbered(np.where(side == 1, np.repeat(apart, 2), 0.0))
    found = side_differences(traces_of([f"q{i // 2}" for i in range(24)]), metrics, side)[-1]
    assert found.low is not None and found.low > 0 and not found.stands_out
    assert found.why() == "not beyond chance after correction for 41 rows"


def test_a_shift_of_models_that_no_test_finds_is_told(tmp_path: Path) -> None:
    """Eight tasks allow a test, so that a mix of 25 % against 62 % which it did not find was passed over."""
    lines, sides = [], ["trace,side"]
    for i in range(64):
        task, after, k = i // 8, i % 8 // 4, i % 4
        big = k < ((0, 2, 1, 1, 2, 0, 1, 1)[task], (4, 1, 4, 0, 4, 3, 0, 4)[task])[after]
        lines.append(trace(f"t{i}", f"q{task}", float((i * 7) % 5 < 2), model="big" if big else "small"))
        sides.append(f"t{i},{('old', 'new')[after]}")
    log, table = write(tmp_path / "x.jsonl", lines), tmp_path / "sides.csv"
    table.write_text("\n".join(sides))
    told = json.loads(run("metrics", log, "--sides", table, "--json").stdout)
    mix = re.search(r"the sides differ in model, too \((.*?), (.*?) of traces; not beyond chance\)", told["changed"])
    assert mix is not None and {*mix.groups()} == {"big in 25 % against 62 %", "small in 75 % against 38 %"}


def test_numbers_of_a_team_that_is_one_agent_have_a_line_and_no_rows(tmp_path: Path) -> None:
    log = write(tmp_path / "x.jsonl", [trace(f"t{i}", f"q{i // 2}", float(i % 2)) for i in range(20)])
    table = tmp_path / "sides.csv"
    table.write_text("trace,side\n" + "".join(f"t{i},{('before', 'after')[i % 2]}\n" for i in range(20)))
    told = json.loads(run("metrics", log, "--sides", table, "--json").stdout)
    assert {"team_peak", "team_mean", "team_births", "team_deaths", "parallelism"} <= {*told["same"]}
    assert not {*told["same"]} & {row["metric"] for row in told["differences"]}
    assert f"the same number in all traces: {', '.join(told['same'])}" in told["lines"]
    printed = run("metrics", log).stdout  # without sides they had rows, which say nothing
    (line,) = re.findall(r"\nthe same number in all traces that have one \((\d+)\): (.*)\n", printed)
    assert int(line[0]) == len(line[1].split(", ")) and {"team_peak 1", "parallelism 1"} <= {*line[1].split(", ")}
    assert not re.search("^(team|parallelism)[a-z_]* +[0-9]", printed, re.MULTILINE) and "\nsuccess " in printed
