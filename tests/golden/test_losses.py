"""Loss aggregation against verl's and MATPO's own numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from estimators.tokens.losses import aggregate_loss

pytestmark = pytest.mark.optimised

Oracle = Callable[[str], dict]
MODES = ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")


def given(case: dict) -> tuple[np.ndarray, np.ndarray]:
    return np.array(case["inputs"]["loss"], np.float32), np.array(case["inputs"]["mask"]) > 0


@pytest.mark.parametrize("mode", MODES)
def test_verl_agg_loss(oracle: Oracle, mode: str) -> None:
    case = oracle("verl_agg_loss")
    np.testing.assert_allclose(aggregate_loss(*given(case), mode=mode), case["outputs"][mode], rtol=0, atol=2e-6)


@pytest.mark.parametrize("mode", MODES)
def test_matpo_agg_loss_num_valid(oracle: Oracle, mode: str) -> None:
    case = oracle("matpo_agg_loss_num_valid")
    for count, expected in zip(case["inputs"]["num_valid_seqs"], case["outputs"][mode], strict=True):
        found = aggregate_loss(*given(case), mode=mode, sequences=count)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_what_is_outside_the_mask_is_inert_and_nothing_is_divided_by_zero(oracle: Oracle) -> None:
    loss, mask = given(oracle("verl_agg_loss"))
    poisoned = np.where(mask, loss, np.nan).astype(np.float32)
    for mode in MODES:
        assert float(aggregate_loss(poisoned, mask, mode=mode)) == float(aggregate_loss(loss, mask, mode=mode))
        assert float(aggregate_loss(loss, np.zeros_like(mask), mode=mode, sequences=0)) == 0
    rows = np.array([loss[0].sum(), loss[1, :2].sum()])
    assert float(aggregate_loss(loss, mask, mode="seq-mean-token-sum", sequences=0)) == rows.sum()


def test_wrong_arguments_are_refused(oracle: Oracle) -> None:
    loss, mask = given(oracle("verl_agg_loss"))
    with pytest.raises(ValueError, match="mode is 'sum'"):
        aggregate_loss(loss, mask, mode="sum")
    with pytest.raises(ValueError, match="mask is float32"):
        aggregate_loss(loss, mask.astype(np.float32))
