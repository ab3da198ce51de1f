"""Methods side by side: rank correlations against slow ones, parts that add up, disagreements, the picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.compute
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.cli.trust.compare import _number
from credit.reports.comparison import Comparison, compare
from estimators.base import Reason, finish
from graphs.logs import read

NAN = float("nan")


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's correlation of mean ranks, by loops."""

    def ranks(values: list[float]) -> list[float]:
        return [sum(v < u for v in values) + (sum(v == u for v in values) - 1) / 2 for u in values]

    a, b = ranks(x.tolist()), ranks(y.tolist())
    ma, mb = sum(a) / len(a), sum(b) / len(b)
    over = sum((u - ma) * (v - mb) for u, v in zip(a, b, strict=True))
    under = sum((u - ma) ** 2 for u in a) * sum((v - mb) ** 2 for v in b)
    return over / under**0.5 if under else NAN


TYPES = ("orchestrator_decision", "message", "tool_call", "message", "human_intervention")


def log(path: Path) -> Path:
    """Six traces of three tasks, five actions each by a boss and a worker named in markup."""
    lines = []
    for i in range(6):
        events = [
            {"id": f"e{k}", "t": k, "type": kind, "agent": "boss" if k == 0 else "[red]w$", "action": True}
            for k, kind in enumerate(TYPES)
        ]
        content = {"trace_id": f"t{i}", "task_id": f"q{i // 2}", "events": events, "edges": []}
        lines.append(json.dumps(content | {"rewards": {"team": i % 3}, "costs": {"tokens": 1, "wall_clock_s": 1.0}}))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> credit.Traces:
    return read(log(tmp_path_factory.mktemp("logs") / "x.jsonl"))


def numbers(traces: credit.Traces, values: np.ndarray) -> credit.Credit:
    """Numbers of the actions as a method's result; NaN where it refuses."""
    graph = traces.graph
    amounts = np.zeros(graph.num_events, np.float32)
    amounts[: traces.sizes.events] = np.nan_to_num(values)
    reason = np.full(graph.num_events, Reason.NO_EVIDENCE)
    reason[: traces.sizes.events][np.isfinite(values)] = Reason.VALID
    zero = np.zeros_like(amounts)
    return finish(
        graph, credit=amounts, baseline=zero, scale=zero + 1, stderr=zero, reason=reason, unit="event",
        estimand="increment", source="made up", centred=True, own_outcome=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def found(traces: credit.Traces) -> tuple[Comparison, np.ndarray]:
    rng = np.random.default_rng(0)
    values = rng.integers(-3, 4, (3, 30)).astype(float)
    values[1, :7] = NAN
    values[2] = np.repeat(values[2, :6], 5)  # one number a trace
    return compare(traces, {n: numbers(traces, v) for n, v in zip("abc", values, strict=True)}, worst=4), values


def test_correlations_are_those_of_mean_ranks(found: tuple[Comparison, np.ndarray]) -> None:
    result, values = found
    assert result.answered.tolist() == [30, 23, 30]
    for i in range(3):
        for j in range(3):
            both = np.isfinite(values[i]) & np.isfinite(values[j])
            expected = spearman(values[i, both], values[j, both])
            assert result.correlation[i, j] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(result.within[2]).all() and result.within[0, 0] == pytest.approx(1)


def test_correlations_within_traces_do_not_see_how_traces_went(traces: credit.Traces) -> None:
    rng = np.random.default_rng(1)
    who = rng.permutation(30).astype(float)
    shifted = who + np.repeat(rng.permutation(6) * 1000.0, 5)
    result = compare(traces, {"who": numbers(traces, who), "both": numbers(traces, shifted)})
    assert result.within[0, 1] == pytest.approx(1) and result.correlation[0, 1] < 0.9
    slow = [spearman(who[i : i + 5], -who[i : i + 5]) for i in range(0, 30, 5)]
    assert slow == pytest.approx([-1] * 6)
    assert compare(traces, {"a": numbers(traces, who), "b": numbers(traces, -who)}).within[0, 1] == pytest.approx(-1)


def test_rounding_is_a_tie(traces: credit.Traces) -> None:
    thirds = np.where(np.arange(30) % 2 == 0, np.float32(1) / 3, np.nextafter(np.float32(1) / 3, np.float32(1)))
    signs = np.where(np.arange(30) < 15, 1.0, -1.0)
    result = compare(traces, {"a": numbers(traces, thirds * signs), "b": numbers(traces, signs)})
    assert result.correlation[0, 1] == pytest.approx(1, abs=1e-12)


def test_parts_add_up(found: tuple[Comparison, np.ndarray], traces: credit.Traces) -> None:
    result, values = found
    assert result.roles == ("[red]w$", "boss")
    assert result.kinds == ("spawn", "whom", "message", "aggregate", "stop", "tool", "other")
    boss = np.arange(30) % 5 == 0
    for row, value in zip(result.by_role, values, strict=True):
        size = np.abs(np.nan_to_num(value))
        assert row.tolist() == pytest.approx([size[~boss].sum() / size.sum(), size[boss].sum() / size.sum()])
    np.testing.assert_allclose(result.by_kind.sum(axis=1), 1)
    assert result.actions_by_kind.tolist() == pytest.approx([0, 0.2, 0.4, 0, 0, 0.2, 0.2])
    zero = compare(traces, {"zero": numbers(traces, np.zeros(30)), "a": numbers(traces, values[0])})
    assert np.isnan(zero.by_role[0]).all() and np.isnan(zero.correlation[0]).all()


def test_a_ledger_has_a_row_for_each_kind_of_decision_and_sums_alike(traces: credit.Traces) -> None:
    values = np.random.default_rng(3).normal(size=30)
    ledger = credit.compose(traces.graph, traces.reward, [numbers(traces, values)])
    kinds = dict(zip(TYPES, ("whom", "message", "tool", "message", "other"), strict=True))
    sums: dict[tuple[str, str], float] = {}
    for row in ledger.table(traces, "event").to_pylist():
        if row["entry"] == "increment":
            key = (row["trace"], kinds[row["type"]])
            sums[key] = sums.get(key, 0) + row["amount"]
    table = ledger.table(traces, "decision")
    rows = [row for row in table.to_pylist() if row["entry"] == "increment"]
    assert len(rows) == len(sums) == 24 and pyarrow.compute.sum(table["amount"]).as_py() == pytest.approx(6)
    assert {(row["trace"], row["decision"]): row["amount"] for row in rows} == pytest.approx(sums, abs=1e-12)


def test_disagreements_are_the_widest_spread_of_ranks(found: tuple[Comparison, np.ndarray]) -> None:
    result, values = found
    trace = np.arange(30) // 5
    assert len(set(trace[result.disagreements])) == len(result.disagreements) == 4
    assert np.all(np.diff(result.spread) <= 0) and np.all(result.spread > 0)

    def rank(k: int, event: int) -> float:
        here = values[k][np.isfinite(values[k])].tolist()
        u = values[k][event]
        return (sum(v < u for v in here) + (sum(v == u for v in here) - 1) / 2) / (len(here) - 1)

    every = [
        max(ranks) - min(ranks)
        for ranks in ([rank(k, e) for k in range(3) if np.isfinite(values[k][e])] for e in range(30))
    ]
    assert result.spread[0] == pytest.approx(max(every))
    for event, spread in zip(result.disagreements, result.spread, strict=True):
        assert every[event] == pytest.approx(spread)


def test_a_group_of_equal_outcomes_holds_no_disagreement() -> None:
    _, _, rows = credit.from_columns(
        group=["q"] * 4 + ["r"] * 4, trace=list("aabbccdd"), turn=[0, 1] * 4, reward=[1.0] * 4 + [1.0, 1.0, 0.0, 0.0]
    )
    values = np.linspace(-1, 1, 8)
    both = {"up": numbers(rows.traces, values), "down": numbers(rows.traces, -values)}
    result = compare(rows.traces, both)
    assert set(result.events.take(result.disagreements)["group"].to_pylist()) == {"r"}  # "q" has the widest spread


def test_what_cannot_be_compared_is_refused(traces: credit.Traces) -> None:
    one = numbers(traces, np.ones(30))
    with pytest.raises(credit.CreditError, match=r"1 method \(a\); expected two"):
        compare(traces, {"a": one})
    other = credit.Credit(*(np.zeros(7) for _ in range(5)), "event", "score", "x", False, True)  # type: ignore[arg-type]
    with pytest.raises(credit.CreditError, match="credit of 'b' has shape"):
        compare(traces, {"a": one, "b": other})


def test_picture_shows_names_as_text(found: tuple[Comparison, np.ndarray]) -> None:
    pytest.importorskip("matplotlib")
    from credit.plot import draw_comparison

    figure = draw_comparison(found[0])
    figure.canvas.draw()
    matrix, roles, kinds = figure.axes
    assert {t.get_text() for t in roles.get_legend().get_texts()} == {"[red]w$", "boss"}
    assert len(kinds.get_legend().get_texts()) == 4 and len(matrix.texts) == 9


@pytest.mark.slow
def test_command_writes_a_table_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = log(tmp_path / "x.jsonl")
    call = ["compare", str(path), "--methods", "rloo,Dr. MAS,grpo", "--option", "grpo.ddof=0"]
    result = CliRunner().invoke(cli, [*call, "-o", str(tmp_path / "x.parquet"), "--plot", str(tmp_path / "x.svg")])
    assert result.exit_code == 0, result.output
    assert "Rank correlation" in result.stdout and "[red]w$" in result.stdout
    rows = pyarrow.parquet.read_table(tmp_path / "x.parquet")
    assert rows.column_names[-3:] == ["rloo", "Dr. MAS", "grpo"] and rows.num_rows == 30
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")
    plain = json.loads(CliRunner().invoke(cli, [*call, "--json"]).stdout)
    assert plain["answered"] == {"rloo": 30, "Dr. MAS": 30, "grpo": 30}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["--methods", "rloo"], "names 1 method; expected 2 or more"),
        (["--methods", "rloo,rloo"], "'rloo' is given twice"),
        (["--methods", "rloo,sharp"], "is a reward, not a method"),
        (["--methods", "rloo,hera"], "not computable from logs"),
        (["--methods", "rloo,gae"], "needs evidence that the log does not have. 'value'"),
        (["--methods", "rloo,grpo", "--option", "eps=1"], "expected METHOD.KEY=VALUE with a METHOD of rloo, grpo"),
        (["--methods", "rloo,grpo", "--option", "grpo.epsilon=1"], "method 'grpo' has no option 'epsilon'"),
        (["--methods", "rloo,grpo", "-o", "x.txt"], "output 'x.txt' ends in '.txt'"),
        (["--methods", "rloo,grpo", "--plot", "x.bmp"], "expected a name ending in .svg, .png, .pdf"),
        (["--methods", "rloo,,grpo"], "expected names, separated by commas"),
    ],
)
def test_wrong_calls_are_named(tmp_path: Path, call: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["compare", str(log(tmp_path / "x.jsonl")), *call])
    assert result.exit_code == 1 and message in result.stderr, result.output


@pytest.mark.slow
def test_a_number_that_rounds_to_0_has_no_sign() -> None:
    assert [_number(x) for x in (-0.0, -0.001, -0.5)] == ["0.00", "0.00", "-0.50"]


@pytest.mark.study
def test_real_logs(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    call = ["compare", str(shared_data / "tau_bench_airline"), "--methods", "rloo,dr_mas,mt_grpo"]
    picture = tmp_path / "x.svg"
    result = CliRunner().invoke(cli, [*call, "--json", "--plot", str(picture)])
    assert result.exit_code == 0, result.output
    plain = json.loads(result.stdout)
    assert plain["answered"] == {"rloo": 949, "dr_mas": 949, "mt_grpo": 949} and picture.is_file()
    assert plain["rank_correlation"][0][1] > 0.95
