"""Tables of advantages left in a folder of logs are passed over, so that a second run reads what the first did."""

from __future__ import annotations

from pathlib import Path

import pytest

import credit
from graphs.worlds import World
from graphs.writers import native


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_result_beside_its_logs_is_no_log(tmp_path: Path, suffix: str) -> None:
    import jax

    world = World()
    native.write(world.traces(world.sample(jax.random.key(0), 8)), tmp_path / "runs.jsonl")
    traces = credit.read(tmp_path)
    out = tmp_path / f"advantages.{suffix}"
    credit.write_table(credit.table(traces, credit.rloo(traces.graph, traces.reward)), out)
    again = credit.read(tmp_path)
    assert again.problems == () and again.sizes == traces.sizes
    assert again.ignored == (str(out),)


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(credit.NothingReadError, match="no-such-file"):
        credit.read("")
