"""`credit bench train`: rows, files in two formats, and resuming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from credit.bench.training import training_runs
from credit.bench.training.training_loop import TrainingSettings
from credit.bench.training.training_runs import run_training
from credit.cli import cli
from graphs.errors import CreditError

pytestmark = pytest.mark.usefixtures("optax_promotes")

TINY = TrainingSettings(steps=3, groups=2, group_size=2)


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
@pytest.mark.sampled
def test_a_run_resumes_from_its_file(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"rows{suffix}"
    first = run_training(["zero"], ["pivotal"], 2, TINY, output=path)
    trained: list[int] = []
    plain = training_runs._row

    def counted(*args: Any) -> dict[str, Any]:
        trained.append(args[2])
        return plain(*args)

    monkeypatch.setattr(training_runs, "_row", counted)
    again = run_training(["zero"], ["pivotal"], 3, TINY, output=path)
    assert again[:2] == first and trained == [2]
    with pytest.raises(CreditError, match="holds rows of settings"):
        run_training(["zero"], ["pivotal"], 1, TrainingSettings(steps=4), output=path)
    path.write_bytes(b"{")
    with pytest.raises(CreditError, match="cannot be resumed"):
        run_training(["zero"], ["pivotal"], 1, TINY, output=path)


def test_the_command_prints_a_table_and_keeps_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    call = ["bench", "train", "-m", "zero", "--tasks", "pivotal", "--seeds", "2", "--steps", "2", "-o", str(path)]
    found = CliRunner().invoke(cli, call)
    assert found.exit_code == 0, found.output
    assert "pivotal" in found.output and "share of optimum" in found.output
    assert [row["seed"] for row in json.loads(path.read_text())["rows"]] == [0, 1]
    wrong = CliRunner().invoke(cli, ["bench", "train", "-m", "magic", "--tasks", "pivotal"])
    assert wrong.exit_code != 0 and "no signal 'magic'" in str(wrong.output) + str(wrong.exception)
