"""HAE refuses an action that reads a missing value, and no other."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import credit


@pytest.mark.parametrize("level", ["low", "high", "both"])
@pytest.mark.parametrize("discount", [0.0, 0.9])
@pytest.mark.parametrize("lambda_", [0.0, 0.5, 1.0])
def test_an_action_is_refused_that_reads_a_missing_value_and_no_other(
    level: Literal["low", "high", "both"], discount: float, lambda_: float
) -> None:
    """Any later one refused it: of segments behind the next, of values at λ = 1, and of `value` at level "high"."""
    draw = np.random.default_rng([7, int(10 * discount), int(10 * lambda_)])
    trace = np.repeat(np.arange(40), 6)
    segment = np.array([f"{t}/{int(x)}" for t in range(40) for x in np.cumsum(draw.random(6) < 0.5)])
    first = np.array([k % 6 == 0 or segment[k] != segment[k - 1] for k in range(240)])
    value, high = draw.normal(size=(2, 240))
    high[~first] = np.nan
    gone, gone_high = draw.random((2, 240)) < 0.15

    def run(value: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        evidence: dict[str, Any] = {"value": value, "value_high": high, "segment": segment}
        graph, reward, rows = credit.from_columns(group=trace, trace=trace, reward=trace / 40, evidence=evidence)
        options = {"discount": discount, "lambda_": lambda_, "lambda_high": lambda_, "level": level}
        result = credit.hae(graph, reward, **rows.evidence, **options)  # type: ignore[arg-type]
        return rows.gather(result.advantage), rows.gather(result.valid)

    found, valid = run(np.where(gone, np.nan, value), np.where(gone_high, np.nan, high))
    filled = [run(np.where(gone, add, value), np.where(first & gone_high, add, high)) for add in (1.0, 3.0, -2.5)]
    assert all(all_valid.all() for _, all_valid in filled)
    moves = np.ptp([numbers for numbers, _ in filled], axis=0) > 1e-4
    assert moves.any() and (~moves).any() and (valid == ~moves).all()
    np.testing.assert_allclose(found[valid], filled[0][0][valid], atol=1e-5)


@pytest.mark.parametrize("level", ["low", "high", "both"])
def test_an_action_beside_one_without_a_segment_is_refused(level: Literal["low", "high", "both"]) -> None:
    """Where its segment ends, or whether it begins one, is not known."""
    evidence: dict[str, Any] = {"value": [0.5] * 5, "value_high": [0.5] * 5, "segment": ["x", "x", None, "y", "z"]}
    graph, reward, rows = credit.from_columns(group=[0] * 5, trace=[0] * 5, reward=[1.0] * 5, evidence=evidence)
    result = credit.hae(graph, reward, **rows.evidence, level=level)
    expected = {"low": [0, 0, 0, 1, 1], "high": [0, 1, 0, 0, 1], "both": [0, 0, 0, 0, 1]}
    assert rows.gather(result.valid).tolist() == [bool(one) for one in expected[level]]
