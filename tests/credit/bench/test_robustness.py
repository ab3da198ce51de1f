"""What is paid for inserted events: by hand for broadcasts and for a critic of true values."""

from __future__ import annotations

import pytest

from credit.bench.refusals import LeftOut
from credit.bench.robustness import INSERTIONS, robustness


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
