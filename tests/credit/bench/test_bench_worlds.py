"""`credit bench worlds`: each name that a benchmark takes, in words."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from credit.bench.own_worlds import TEAMS
from credit.bench.training.learning_tasks import TASKS
from credit.cli import cli
from graphs.worlds.micro.examples import MICRO


@pytest.mark.parametrize("bench", ["bias", "truth", "snr", "train"])
def test_each_world_of_a_benchmark_is_said_in_words(bench: str) -> None:
    """What a world is stood in the built site alone, and of tasks of training nowhere but in the source."""
    known = {"bias": [*MICRO], "truth": [*TEAMS], "snr": ["normal", "heavy"], "train": [*TASKS, "heavy"]}
    rows = json.loads(CliRunner().invoke(cli, ["bench", "worlds", "--json"]).stdout)["worlds"]
    told = {row["world"]: row["about"] for row in rows if row["bench"] == bench}
    assert [*told] == known[bench] and all(text.endswith(".") and len(text) > 15 for text in told.values())
    shown = " ".join(CliRunner().invoke(cli, ["bench", "worlds"]).stdout.split())
    assert all(" ".join(text.split()) in shown for text in told.values())
