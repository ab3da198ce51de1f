"""Methods that divide by the mean of the group: what they refuse, and what they say of it."""

from __future__ import annotations

import numpy as np

import credit
from estimators.base import REASONS, Reason


def test_max_rl_refuses_what_its_docstring_says_and_names_the_bound() -> None:
    """Its reason was "the mean of the group is about 0 or less", also of returns 3 and −1, whose mean is 1."""
    rng = np.random.default_rng(0)
    groups = [[3.0, -1.0], [3.0, 1.0], [2.0, 2.0], [-1.0, -1.0], *(rng.integers(-3, 7, n) for n in (2, 3, 4, 5) * 40)]
    group = np.repeat(np.arange(len(groups)), [len(one) for one in groups])
    returns = np.concatenate(groups)
    graph, reward, rows = credit.from_columns(group=group, trace=np.arange(len(group)), reward=returns)
    reason = rows.gather(credit.max_rl(graph, reward).reason)
    n, total = np.bincount(group)[group], np.bincount(group, returns)[group]
    too_low = (total <= 0) & (n * returns != total)
    refused = too_low | (total > 0) & ((total - returns < 0) | (n * returns < -(n - 2) * total))
    assert np.array_equal(reason == Reason.NO_DIVISOR, refused) and np.all(reason[~refused] == Reason.VALID)
    assert (refused & ~too_low).sum() > 30 and reason[:8].tolist() == [Reason.NO_DIVISOR] * 2 + [0] * 6
    assert "the advantage would exceed the bound" in REASONS[Reason.NO_DIVISOR]
