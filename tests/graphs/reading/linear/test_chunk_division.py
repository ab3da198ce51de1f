"""Groups whose traces share ids come in one chunk, in a time that the order of the ids does not decide."""

from __future__ import annotations

import functools

import numpy as np
from linear_time import assert_linear

from graphs.logs.chunk_index import ChunkIndex, _name_clashes, divide


def chain_of_groups(groups: int) -> ChunkIndex:
    """Two traces a group, of which the second bears the id of the next group's first; later ids have lesser hashes."""
    group = np.repeat(np.arange(groups), 2)
    name = groups - (np.arange(2 * groups) + 1) // 2
    nothing = np.zeros(2 * groups, np.int64)
    return ChunkIndex(nothing, nothing, nothing, nothing, group, np.ones(2 * groups, np.int64), name, nothing)


def test_a_long_chain_of_groups_is_one_chunk_and_costs_no_square() -> None:
    """Each group walked down the whole chain: 20,000 took over a minute, and take 0.1 s."""
    (rows,) = divide(chain_of_groups(4_000), 100)
    assert sorted(rows.tolist()) == list(range(8_000))
    assert_linear(lambda groups: functools.partial(divide, chain_of_groups(groups), 100), 16_000)


def test_groups_without_a_common_id_come_apart() -> None:
    index = chain_of_groups(4)
    name = index.name.copy()
    name[4] = 99  # the third group's first trace
    assert [rows.tolist() for rows in divide(index._replace(name=name), 1)] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_tasks_whose_group_names_may_meet_come_together() -> None:
    nothing = np.zeros(5, np.int64)
    index = ChunkIndex(nothing, nothing, nothing, nothing, np.arange(5), np.ones(5, np.int64), np.arange(5), nothing)
    names = ("q [a [b]", "z", "q", "z[a]", "y [a]")
    assert [rows.tolist() for rows in divide(index, 1, names)] == [[0, 2], [1], [3], [4]]


def test_the_name_of_a_task_costs_its_length() -> None:
    """Each bracket of a name was looked up with all that stands before it: 0.4 seconds for one name of 80 KB."""

    def names(brackets: int) -> list[str]:
        return ["q" + " [" * brackets, "q [ [", "q [", "q", "p", "q "]

    assert set(_name_clashes(names(150_000))) == {(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    assert_linear(lambda brackets: lambda: list(_name_clashes(names(brackets))), 150_000)
