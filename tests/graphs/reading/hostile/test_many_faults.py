"""Many faulty lines in a small file: problems are bounded and counted in every format that has a record a line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from graphs.errors import NothingReadError
from graphs.logs import read
from graphs.problem_log import MOST_LISTED

from ..all_formats import ALL

COUNT = 3 * MOST_LISTED
OF_LINES = [name for name, sample in ALL.items() if sample.lines]


@pytest.mark.sampled
@pytest.mark.parametrize("line", ["{}", "{", "[1]", '"x"', "{}{}"])
@pytest.mark.parametrize("name", OF_LINES)
def test_problems_of_lines_are_bounded_and_counted(tmp_path: Path, name: str, line: str) -> None:
    """A million lines of `{}`, 3 KB of gzip, were a million problems in 648 MB."""
    path = tmp_path / f"{ALL[name].file}.gz"
    path.write_bytes(gzip.compress((ALL[name].text + f"{line}\n" * COUNT).encode()))
    try:
        problems = read(path, format=ALL[name].format).problems
    except NothingReadError as error:
        problems = error.problems
    assert len(problems) <= MOST_LISTED + 3
    total = sum(problem.count for problem in problems)
    assert total >= COUNT or len(problems) <= 2  # a stream of many lines is one trace, which one fault refuses
