"""Judgement files: verdicts land on the actions of their unit, and what fits nothing is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.reports.judgements import Judgements, read_judgements
from graphs.logs import read


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two traces: a boss acts, a solver acts twice, and a tool answers."""
    lines = []
    for i in range(2):
        events = [
            {"id": "e0", "t": 0, "type": "orchestrator_decision", "agent": "boss"},
            {"id": "e1", "t": 1, "type": "message", "agent": "solver", "role": "worker"},
            {"id": "e2", "t": 2, "type": "tool_result", "agent": "solver", "role": "worker"},
            {"id": "e3", "t": 3, "type": "message", "agent": "solver", "role": "worker"},
        ]
        content = {"trace_id": f"t{i}", "task_id": "q", "events": events, "edges": []}
        lines.append(json.dumps(content | {"rewards": {"team": i}, "costs": {"tokens": 1, "wall_clock_s": 1.0}}))
    path = tmp_path_factory.mktemp("logs") / "x.jsonl"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def traces(path: Path) -> credit.Traces:
    return read(path)


def judge(traces: credit.Traces, tmp_path: Path, *rows: dict[str, object]) -> Judgements:
    file = tmp_path / "verdicts.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    return read_judgements(traces, file)


def scores(claim: credit.Credit) -> list[float | None]:
    pairs = zip(np.asarray(claim.credit).tolist(), np.asarray(claim.valid).tolist(), strict=True)
    return [value if there else None for value, there in pairs][:8]


def test_a_verdict_is_the_score_of_the_actions_of_its_unit(traces: credit.Traces, tmp_path: Path) -> None:
    found = judge(
        traces,
        tmp_path,
        {"trace": "t1", "agent": "solver", "score": -0.5, "judge": "critic", "stderr": 0.25, "text": "went astray"},
        {"trace": "t0", "role": "worker", "score": 2, "judge": "by role"},
        {"trace": "t0", "event": "e3", "score": "1e-3", "judge": "step"},
        {"trace": "t1", "score": 7},
    )
    assert found.problems == ()
    assert {name: scores(claim) for name, claim in found.claims.items()} == {
        "critic": [None] * 5 + [-0.5, None, -0.5],
        "by role": [None, 2, None, 2] + [None] * 4,
        "step": [None] * 3 + [pytest.approx(1e-3)] + [None] * 4,
        "judgement": [None] * 4 + [7, 7, None, 7],
    }
    critic = found.claims["critic"]
    assert (critic.estimand, critic.unit, critic.source, critic.centred) == ("score", "agent", "critic", False)
    assert float(critic.stderr[5]) == 0.25 and np.isinf(found.claims["step"].stderr[3])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"trace": "t9", "score": 1}, "trace is 't9'; expected the id of a trace that was read [unmatched-row]"),
        ({"trace": "t0", "event": "e9", "score": 1}, "event is 'e9'; expected one of that trace's events"),
        ({"trace": "t0", "event": "e2", "score": 1}, "event is 'e2'; expected a unit with an action"),
        ({"trace": "t0", "event": "e1", "agent": "boss", "score": 1}, "expected one of them, or none for the whole"),
        ({"trace": "t0", "score": "inf"}, "score is 'inf'; expected a finite number"),
        ({"trace": "t0", "score": True}, "score is True; expected a finite number"),
        ({"trace": "t0"}, "score is None; expected a finite number"),
        ({"trace": "t0", "score": 1, "stderr": -1}, "stderr is -1; expected a number, 0 or more"),
    ],
)
def test_rows_that_fit_nothing_are_problems(
    traces: credit.Traces, tmp_path: Path, row: dict[str, object], message: str
) -> None:
    found = judge(traces, tmp_path, row, {"trace": "t1", "score": 1, "judge": "other"})
    assert message in str(found.problems[0]) and "verdicts.jsonl:1:" in str(found.problems[0])
    assert set(found.claims) == {"other"}


def test_contradictions_and_mixed_units(traces: credit.Traces, tmp_path: Path) -> None:
    same = {"trace": "t0", "event": "e0", "score": 1}
    found = judge(traces, tmp_path, same, same, same, {"trace": "t0", "event": "e1", "score": 3})
    assert [problem.kind for problem in found.problems] == ["ambiguous-row"] * 2
    assert scores(found.claims["judgement"])[:2] == [None, 3]
    with pytest.raises(
        credit.CreditError, match=r"verdicts.jsonl:2: judge 'judgement' has verdicts by agent after some by event"
    ):
        judge(traces, tmp_path, same, {"trace": "t0", "agent": "boss", "score": 1})
    with pytest.raises(credit.CreditError, match="has no verdict that can be used"):
        judge(traces, tmp_path, {"trace": "t9", "score": 1})


def test_tables_of_other_formats(traces: credit.Traces, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("trace,event,score,judge\nt0,e0,0.5,\n")
    pyarrow.parquet.write_table(pa.table({"trace": ["t0"], "event": ["e0"], "score": [0.5]}), tmp_path / "x.parquet")
    for name in ("x.csv", "x.parquet"):
        assert scores(read_judgements(traces, tmp_path / name).claims["judgement"])[0] == 0.5


@pytest.mark.slow
def test_judges_take_part_in_comparisons_and_audits(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"
    rows = [{"trace": f"t{t}", "event": f"e{e}", "score": e, "judge": "[b]critic"} for t in (0, 1) for e in (0, 1, 3)]
    file.write_text("\n".join(map(json.dumps, [*rows, {"trace": "t9", "score": 1}])))
    call = [str(path), "--methods", "rloo", "--judgements", str(file)]
    result = CliRunner().invoke(cli, ["compare", *call])
    assert result.exit_code == 3 and "[b]critic" in result.stdout and "[unmatched-row]" in result.stderr
    audit = CliRunner().invoke(cli, ["audit", *call, "--allow-bad", "--json"])
    claims = json.loads(audit.stdout)["claims"]
    assert audit.exit_code == 0 and claims["[b]critic"]["paid"] == 8 and "no unit" in claims["[b]critic"]["refused"]
    file.write_text(json.dumps({"trace": "t0", "score": 1, "judge": "rloo"}))
    clash = CliRunner().invoke(cli, ["audit", *call])
    assert clash.exit_code == 1 and "judge 'rloo' has the name of another claim" in clash.stderr
