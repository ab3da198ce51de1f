"""The demonstration: what it writes is what it sampled, and what it says about the method is right."""

from __future__ import annotations

import dataclasses
import io
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from credit import demonstration as demo
from estimators import Credit, rloo
from graphs.errors import CreditError
from graphs.logs import read
from graphs.traces.batch import Traces
from graphs.writers import native

Ran = tuple[demo.DemoResult, str, Path]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    out, text = tmp_path_factory.mktemp("demo") / "new", io.StringIO()
    result = demo.run(out)
    console = Console(file=text, width=120)
    for part in result.report:
        console.print(part, soft_wrap=isinstance(part, str))
    return result, text.getvalue(), out


@pytest.mark.study
def test_everything_is_written_and_reads_back(ran: Ran) -> None:
    result, _, out = ran
    assert sorted(f.name for f in out.iterdir()) == ["advantages.parquet", "otlp", "trace.svg", "traces.jsonl"]
    assert all(file.exists() for file in result.files)
    for logs in (out / "traces.jsonl", out / "otlp"):
        again = read(logs)
        assert not again.problems
        np.testing.assert_array_equal(again.graph.receivers, result.traces.graph.receivers)
        np.testing.assert_array_equal(rloo(again.graph, again.reward).advantage, result.credit.advantage)
    table = pq.read_table(out / "advantages.parquet")
    events = result.traces.sizes.events
    np.testing.assert_array_equal(table["advantage"].to_numpy(), np.asarray(result.credit.advantage)[:events])
    assert table["event"].equals(result.traces.events["event"])
    assert "<svg" in (out / "trace.svg").read_text()


@pytest.mark.slow
def test_the_comparison_agrees_with_a_statistics_library(ran: Ran) -> None:
    from scipy import stats  # a second, which every process that collects this file would take

    result = ran[0]
    valid = np.asarray(result.credit.valid)
    advantage = np.asarray(result.credit.advantage, np.float64)[valid]
    increments = np.asarray(result.increments, np.float64)[valid]
    found = result.comparison
    assert found.rank_correlation == pytest.approx(stats.spearmanr(advantage, increments).statistic)
    assert found.variance_share == pytest.approx(stats.linregress(advantage, increments).rvalue ** 2)
    reward, group = np.asarray(result.traces.reward), np.asarray(result.traces.graph.group_ids)
    names = result.traces.traces["group"].to_pylist()
    silent = [
        names[i] for i in range(0, len(names), 8) if np.ptp(reward[: len(names)][group[: len(names)] == i // 8]) == 0
    ]
    assert list(found.silent_groups) == silent


@pytest.mark.slow
def test_one_number_for_all_says_much_of_a_trace_and_little_of_an_action(ran: Ran) -> None:
    found = ran[0].comparison
    assert found.trace_share > 0.5
    assert found.variance_share < 0.2
    assert 0 < found.rank_correlation < 0.5


@pytest.mark.slow
def test_a_perfect_method_would_be_seen_and_a_constant_one_has_no_correlation(ran: Ran) -> None:
    result = ran[0]
    traces, graph = result.traces, result.traces.graph
    gain = np.bincount(np.asarray(graph.trace_ids), result.increments, graph.num_traces)
    perfect = _with_advantage(result, result.increments)
    found = demo.compare(traces, perfect, result.increments, gain)
    assert (found.rank_correlation, found.variance_share, found.same_sign) == pytest.approx((1, 1, 1))
    assert not found.silent_groups
    constant = demo.compare(traces, _with_advantage(result, np.zeros(graph.num_events)), result.increments, gain)
    assert all(map(math.isnan, (constant.rank_correlation, constant.variance_share, constant.same_sign)))
    assert len(constant.silent_groups) == 10


def _with_advantage(result: demo.DemoResult, advantage: np.ndarray) -> Credit:
    zero = np.zeros(len(advantage))
    return dataclasses.replace(result.credit, credit=advantage, baseline=zero, scale=zero + 1)


@pytest.mark.slow
def test_one_trace_is_shown_with_the_truth_beside_the_method(ran: Ran) -> None:
    result, text, _ = ran
    traces, row = result.traces, result.shown
    mine = (np.asarray(traces.graph.trace_ids) == row) & np.asarray(traces.graph.action_mask)
    lines = [line.split("│") for line in text.splitlines() if line.startswith("│ e")]
    assert len(lines) == mine.sum() > 4
    for line, event in zip(lines, np.flatnonzero(mine), strict=True):
        assert line[1].strip() == traces.events["event"][int(event)].as_py()
        assert line[6].strip() == f"{float(result.credit.advantage[event]):+.3f}"
        assert line[7].strip() == f"{float(result.increments[event]):+.3f}"
    assert np.all(np.asarray(result.credit.advantage)[mine] != 0)
    assert f"{result.comparison.variance_share:.1%}" in text
    assert f"{len(result.comparison.silent_groups)} of 10" in text
    assert "bit-identical" in text


@pytest.mark.study
def test_a_format_that_changes_a_reward_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write: Callable[[Traces, Path], None] = native.write

    def careless(traces: Traces, path: Path) -> None:
        write(traces, path)
        path.write_text(path.read_text().replace('"team":1.0', '"team":0.5', 1))

    monkeypatch.setattr(native, "write", careless)
    with pytest.raises(CreditError, match=r"traces\.jsonl: reward differs after reading it back"):
        demo.run(tmp_path)


@pytest.mark.study
def test_another_seed_is_another_corpus(ran: Ran, tmp_path: Path) -> None:
    other = demo.run(tmp_path, seed=1)
    assert other.traces.sizes != ran[0].traces.sizes


@pytest.mark.slow
def test_without_matplotlib_there_is_no_picture_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = demo.run(tmp_path / "new")
    assert sorted(file.name for file in result.files) == ["advantages.parquet", "otlp", "traces.jsonl"]
    assert all(file.exists() for file in result.files) and not (tmp_path / "new" / "trace.svg").exists()
    assert "no picture of a trace" in str(result.report[-1]) and "plot" in str(result.report[-1])
