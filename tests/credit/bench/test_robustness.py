"""What is paid for inserted events: by hand for broadcasts and for a critic of true values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from credit.bench.refusals import LeftOut
from credit.bench.robustness import INSERTIONS, robustness
from credit.cli import cli


@pytest.mark.slow
def test_a_broadcast_pays_what_was_inserted_and_a_true_critic_does_not() -> None:
    rows = {(row.method, row.insertion): row for row in robustness(("rloo", "critic"), 3, LeftOut())}
    assert {insertion for _, insertion in rows} == {*INSERTIONS}
    for insertion in INSERTIONS:
        broadcast, critic = rows["rloo", insertion], rows["critic", insertion]
        assert broadcast.moved == pytest.approx(0, abs=1e-6) and broadcast.others == pytest.approx(0, abs=1e-6)
        assert broadcast.taken > 0.01
        assert critic.others == pytest.approx(0, abs=1e-6)
    assert rows["rloo", "inflated_log"].taken == pytest.approx(0.5, abs=0.05)
    assert rows["critic", "inflated_log"].taken < 0.05


@pytest.mark.slow
def test_outcomes_are_of_any_world_of_bench_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took no world, and so no heavy tails."""
    (tmp_path / "inserted_into.py").write_text(
        "from graphs.worlds import TeamWorld\nteam = TeamWorld('debate', agents=4, events=30, group_size=4)\n"
    )
    monkeypatch.chdir(tmp_path)
    call = ["bench", "robustness", "-m", "rloo", "-m", "critic", "--json", "--world"]
    rows = {}
    for world in ("additive", "heavy", "inserted_into:team"):
        found = CliRunner().invoke(cli, [*call, world])
        assert found.exit_code == 0, found.output
        rows[world] = json.loads(found.stdout)["rows"]
    assert rows["heavy"] != rows["additive"] != rows["inserted_into:team"]
    sizes = {world: {row["group_size"] for row in of} for world, of in rows.items()}
    assert sizes == {
        "additive": {8},
        "heavy": {8},
        "inserted_into:team": {4},
    }  # what one's own states, as in bench truth
    refused = CliRunner().invoke(cli, [*call, "relay-and"])
    assert refused.exit_code == 1 and "`credit bench bias --world relay-and` takes it" in refused.stderr
