"""Errors of this library survive a pickle, as between worker processes."""

from __future__ import annotations

import copy
import pickle

import pytest

from credit.tables.column_values import ColumnError
from graphs.errors import CapacityError, CreditError, MissingExtraError, NothingReadError, Problem

PROBLEM = Problem("bad-type", "log.jsonl", 3, "t", "'x'", "a number")
ERRORS = [
    CreditError("plain"),
    ColumnError("reward", [1, 2], "is infinite"),
    MissingExtraError("ray", extra="ray"),
    CapacityError(axis="events", need=9, room=8),
    NothingReadError("no trace could be read", (PROBLEM,)),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_on_the_other_side(error: CreditError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error) and str(other) == str(error)
        assert other.__dict__ == error.__dict__
