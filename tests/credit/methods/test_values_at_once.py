"""`credit assign` says where agents act at once and the order of their rows moves the numbers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from credit.cli import cli

ROWS = [
    {"trace": trace, "group": "q", "agent": agent, "reward": reward, "value": value, "context": f"{trace}/{step}"}
    for trace, reward in (("a", 1.0), ("b", 0.0))
    for agent, step, value in (("lead", 0, 0.2), ("one", 1, 0.3), ("two", 1, 0.3), ("one", 2, 0.5), ("two", 3, 0.4))
]


@pytest.mark.parametrize(
    ("method", "options", "named"),
    [("turn_baseline", [], False), ("gae", [], True), ("gae", ["lambda_=1"], False),
     ("discounted_return", ["discount=0.5"], True), ("rloo", [], False),
     *(pytest.param(*more, marks=pytest.mark.slow) for more in (
         ("critic", [], False), ("gae", ["along=agent"], False), ("gae", ["lambda_=1", "discount=0.5"], True),
         ("discounted_return", [], False), ("igrpo", [], True)))],
)  # fmt: skip
def test_rounds_in_which_values_beside_one_another_are_compared_are_counted(
    method: str, options: list[str], named: bool, tmp_path: Path
) -> None:
    """`RowAdvantages` said it of the same rows, and `credit assign` nothing."""
    for drop, rounds in ((set[str](), "2 rounds"), ({"context"}, None)):
        path = tmp_path / "rows.parquet"
        rows = [{name: cell for name, cell in row.items() if name not in drop} for row in ROWS]
        pq.write_table(pa.Table.from_pylist(rows), path)
        words = [word for option in options for word in ("--option", option)]
        arguments = ["assign", str(path), "--method", method, *words, "-o", str(tmp_path / "out.parquet")]
        found = CliRunner().invoke(cli, arguments)
        assert found.exit_code == 0, found.output
        said = f"look: {method} reads which action comes next, and in {rounds} several agents act at once"
        assert (said in " ".join(found.output.split())) == (named and rounds is not None)
