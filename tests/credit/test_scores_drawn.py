"""`credit bench bias --plot` draws the score that `--score` asks for."""

import re

import matplotlib.figure
import pytest
from click.testing import CliRunner

from credit.cli.benchmarks.bench import bench


def test_the_score_that_was_asked_for_is_drawn(tmp_path, monkeypatch):
    drawn = []
    save = matplotlib.figure.Figure.savefig
    monkeypatch.setattr(
        matplotlib.figure.Figure, "savefig", lambda self, *a, **o: (drawn.append(self), save(self, *a, **o))
    )
    call = ["bias", "-m", "rloo", "--world", "stop-rewards", "--score", "relative", "--plot", str(tmp_path / "a.svg")]
    result = CliRunner().invoke(bench, call)
    assert result.exit_code == 0, result.output
    assert [axes.get_xlabel() for axes in drawn[0].axes] == ["variance for equal runs\n[|E g|²]"]


@pytest.mark.slow
def test_a_method_without_evidence_does_not_keep_others_from_being_measured(tmp_path):
    call = ["snr", "-m", "rloo", "-m", "hcapo", "--quick", "--lengths", "10,30", "-o", str(tmp_path / "snr")]
    result = CliRunner().invoke(bench, call)
    assert result.exit_code == 0, result.output
    assert "hcapo in groups of 8 at T = 10, 30: method 'hcapo' needs hindsight_log_prob" in result.output
    assert re.search("(?m)^ *hcapo +refused +refused *$", result.output)
    assert (tmp_path / "snr/snr.pdf").exists()
