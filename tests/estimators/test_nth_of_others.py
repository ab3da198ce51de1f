"""Order statistics of the other samples of a key, against plain sorting."""

from __future__ import annotations

import numpy as np

import credit
from estimators.medians import nth_of_others
from estimators.members import members


def test_each_place_among_the_others_is_that_of_plain_sorting() -> None:
    outcomes = {"q": [5.0, 3.0, 1.0, 4.0, 4.0], "p": [1.0, 0.0, 2.0]}
    group = [name for name, listed in outcomes.items() for _ in listed]
    reward = [value for listed in outcomes.values() for value in listed]
    graph, rewards, rows = credit.from_columns(group=group, trace=list(range(len(group))), reward=reward)
    m = members(graph, rewards, None, by=None, population="trace", aggregate="sum")
    for place in (0, 1, -1, -2):
        found, others = (rows.gather(np.asarray(array)) for array in nth_of_others(m, place))
        expected = [
            sorted(listed[:i] + listed[i + 1 :])[place] for listed in outcomes.values() for i in range(len(listed))
        ]
        assert found.tolist() == expected and others.tolist() == [4] * 5 + [2] * 3
