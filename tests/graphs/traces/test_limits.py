"""Limits: what they may be, how they are written, and the depth that one of them bounds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from graphs.errors import CreditError
from graphs.traces.limits import Limits, depth


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "7", None])
def test_a_limit_is_an_integer_above_zero(value: Any) -> None:
    with pytest.raises(CreditError, match="limit 'depth'"):
        Limits(depth=value)


@pytest.mark.parametrize(
    "given", ["depth", "depth=", "depth=-1", "depth=1e3", "width=3", "depth=0", "depth=" + "9" * 99]
)
def test_a_limit_as_text_that_is_none(given: str) -> None:
    with pytest.raises(CreditError, match="limit"):
        Limits.parse([given])


def test_limits_as_text() -> None:
    assert Limits.parse(["file-bytes=5", "depth=7"]) == Limits(file_bytes=5, depth=7)
    with pytest.raises(CreditError, match="each once"):
        Limits.parse(["depth=1", "depth=2"])


def slow_depth(document: bytes) -> int:
    deepest = now = 0
    inside = escaped = False
    for character in document.decode():
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "[{":
            now += 1
            deepest = max(deepest, now)
        elif character in "]}":
            now -= 1
    return deepest


def test_depth_is_that_of_a_walk_over_the_characters() -> None:
    rng = np.random.default_rng(3)

    def draw(room: int) -> Any:
        if room == 0 or rng.random() < 0.2:
            return rng.choice(["[", '"]', "\\", '\\"{', "{}", ""]).item()
        inner = [draw(room - 1) for _ in range(rng.integers(3))]
        return inner if rng.random() < 0.5 else {str(i): v for i, v in enumerate(inner)}

    for _ in range(200):
        document = json.dumps(draw(8)).encode()
        assert depth(document) == slow_depth(document)
