"""Fit, keep, load and use a critic on traces that were read, from Python and from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import credit
from credit.cli import cli
from credit.critics.fitted_critic import require_extra
from estimators.critic.train import Settings
from graphs.errors import CreditError, MissingExtraError

SHORT = ["--members", "2", "--epochs", "2", "--patience", "2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """18 traces of six tasks: the longer the trace, the likelier it fails."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(18):
        size = int(rng.integers(2, 7))
        events = [
            {"id": f"e{t}", "t": t, "type": "message", "agent": f"a{t % 2}", "role": "solver", "tokens": 10}
            for t in range(size)
        ]
        edges = [{"src": f"e{t}", "dst": f"e{t + 1}", "type": "temporal"} for t in range(size - 1)]
        trace = {"trace_id": f"t{i}", "task_id": f"q{i // 3}", "events": events, "edges": edges}
        lines.append(
            json.dumps({**trace, "rewards": {"team": float(size < 4)}, "costs": {"tokens": 1, "wall_clock_s": 1.0}})
        )
    path = tmp_path_factory.mktemp("runs") / "x.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
def test_fit_assign_and_load_again(runs: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    told = runner.invoke(cli, ["fit", "critic", str(runs), "-o", str(tmp_path / "critic"), *SHORT])
    assert told.exit_code == 0, told.output
    for words in ("on held-out tasks", "constant", "turns", "counts", "calibration error", "kept in"):
        assert words in told.output, words
    out = tmp_path / "a.parquet"
    call = ["assign", str(runs), "-o", str(out), "--method", "critic", "--critic", str(tmp_path / "critic")]
    assert (done := runner.invoke(cli, call)).exit_code == 0, done.output
    table = pq.read_table(out)
    traces = credit.read(runs)
    critic = credit.load_critic(tmp_path / "critic")
    found = critic.credit(traces)
    np.testing.assert_allclose(table["credit"].to_numpy(), np.asarray(found.credit.credit)[: table.num_rows], atol=1e-6)
    assert critic.judged.tasks == len(critic.held_out) == 1
    gae = runner.invoke(cli, ["assign", str(runs), "-o", "-", "--method", "gae", "--critic", str(tmp_path / "critic")])
    assert gae.exit_code == 0 and "advantage" in gae.output
    ledger = ["compose", str(runs), "--methods", "rloo,critic", "-o", str(tmp_path / "l.parquet")]
    done = runner.invoke(cli, [*ledger, "--critic", str(tmp_path / "critic")])  # only `assign` took it
    assert done.exit_code == 0 and "took part: critic" in done.output, done.output
    entries = pq.read_table(tmp_path / "l.parquet").filter(pc.field("entry") == "increment")
    np.testing.assert_allclose(entries["amount"].to_numpy(), table["credit"].to_numpy(), atol=1e-6)
    again = credit.fit_critic(traces, settings=Settings(members=2, epochs=2, patience=2), directory=tmp_path / "critic")
    for one, two in zip(critic.values(traces), again.values(traces), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(two).tobytes()
    with pytest.raises(CreditError, match="dense has 3 columns; expected 0"):
        critic.values(traces, dense=np.zeros((traces.sizes.events, 3)))


@pytest.mark.slow
def test_a_fit_that_was_cut_off_says_so(runs: Path, tmp_path: Path) -> None:
    call = ["fit", "critic", str(runs), "--model", "network", "--members", "2", "--epochs", "1", "-o"]
    done = CliRunner().invoke(cli, [*call, str(tmp_path / "one")])
    assert done.exit_code == 0, done.output
    assert "the fit did not converge: its held-out loss was still falling" in " ".join(done.output.split())
    plain = CliRunner().invoke(cli, [*call, str(tmp_path / "two"), "--json"])
    assert json.loads(plain.stdout)["converged"] is False
    assert not credit.load_critic(tmp_path / "two").fitted.converged


@pytest.mark.parametrize(
    ("dense", "words"),
    [
        (np.zeros(3), r"shape \(3,\) and type float64; expected numbers, \(\d+, d\)"),
        (np.full((500, 1), 1e300), "dense of event 0"),  # it was infinite, without a word
    ],
)
def test_numbers_of_events_that_no_critic_can_take_are_refused(runs: Path, dense: np.ndarray, words: str) -> None:
    traces = credit.read(runs)
    with pytest.raises(CreditError, match=words):
        credit.fit_critic(traces, dense=dense[: traces.sizes.events])


def test_a_wrong_call_is_one_line(runs: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    np.save(tmp_path / "x.npy", np.zeros((3, 2)))
    for call, words in (
        (
            ["fit", "critic", str(runs), "-o", str(tmp_path / "c"), "--dense", str(tmp_path / "x.npy")],
            "one row for each event",
        ),
        (["assign", str(runs), "-o", "-", "--dense", str(tmp_path / "x.npy")], "expected --critic"),
        (["assign", str(runs), "-o", "-", "--method", "critic", "--critic", str(tmp_path)], "holds no critic"),
        (["assign", str(runs), "-o", "-", "--method", "critic"], "needs evidence"),
        (["compose", str(runs), "-o", "-", "--dense", str(tmp_path / "x.npy")], "expected --critic"),
        (["compose", str(runs), "-o", "-", "--methods", "rloo", "--critic", str(tmp_path)], "holds no critic"),
        (
            ["compose", str(runs), "-o", "-", "--channel", "team=1", "--critic", str(tmp_path)],
            "without --judgements, --",
        ),
    ):
        told = runner.invoke(cli, call)
        assert told.exit_code == 1 and words in told.output, told.output


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "estimators.critic.extra", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "orchestration-credit\[critic\]"'):
        require_extra()
