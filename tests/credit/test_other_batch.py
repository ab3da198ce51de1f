"""A result of one batch is not joined to another, though both are padded to the same sizes."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest

import credit
from credit.reports.comparison import compare
from graphs.errors import CreditError


def test_a_table_of_another_batch_is_refused() -> None:
    one, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
    other, more, _ = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])
    assert credit.table(rows, credit.rloo(one, reward)).num_rows == 2
    with pytest.raises(CreditError, match="the result of another batch"):
        credit.table(rows, credit.rloo(other, more))


def test_rows_gather_no_result_of_another_batch() -> None:
    """Of one padded size, three traces' numbers were given to the rows of two without a word."""
    one, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0], events=8)
    other, more, _ = credit.from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0], events=8)
    own, foreign = credit.rloo(one, reward), credit.rloo(other, more)
    assert rows.gather(own).tolist() == rows.gather(own.advantage).tolist() == [1.0, -1.0]
    assert jax.jit(lambda graph, outcome: rows.gather(credit.rloo(graph, outcome)))(one, reward).tolist() == [1.0, -1.0]
    with pytest.raises(CreditError, match="values is the result of another batch"):
        rows.gather(foreign)


def test_a_comparison_with_another_batch_is_refused(tmp_path: Path) -> None:
    def read(traces: int) -> credit.Traces:
        events = [{"id": "e", "type": "message", "agent": "solver"}]
        logs = [{"trace_id": str(i), "task_id": "q", "events": events, "rewards": {"team": i}} for i in range(traces)]
        log = tmp_path / f"{traces}.jsonl"
        log.write_text("\n".join(map(json.dumps, logs)))
        return credit.read(log)

    two, three = read(2), read(3)
    own, foreign = credit.run(two, "rloo"), credit.run(three, "rloo")
    with pytest.raises(CreditError, match="credit of 'y' is the result of another batch"):
        compare(two, {"x": own, "y": foreign})
