"""Options outside their bounds are refused by the method itself, not only by the command line."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import estimators
from credit.methods.registry import METHODS
from credit.tables.columns import from_columns
from estimators.options import BOUNDS, checked_options
from graphs.errors import CreditError

GRAPH, REWARD, _ = from_columns(group=["q"] * 3, trace=["a", "b", "c"], reward=[1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("method", "option", "value", "expected"),
    [
        ("grpo", "ddof", -3, "0 or 1"),
        ("grpo", "ddof", 0.5, "0 or 1"),
        ("grpo", "eps", -1e-6, "not negative"),
        ("grpo", "eps", float("nan"), "a number"),
        ("grpo", "eps", "1e-6", "not negative"),
        ("grpo", "singleton", "drop", "'refuse' or 'raw' or 'zero'"),
        ("gae", "lambda_", 7, "a number from 0 to 1"),
        ("gae", "lambda_", jnp.float32(7), "a number from 0 to 1"),
        ("gae", "discount", -0.5, "a number from 0 to 1"),
        ("gae", "discount", np.array([0.5, 2.0]), "a number from 0 to 1"),
        ("moving_average", "decay", 1.5, "a number from 0 to 1"),
        ("puppeteer", "max_steps", 0, "a positive integer"),
        ("c3", "mix", 2.0, "a number from 0 to 1"),
    ],
)
def test_a_direct_call_refuses_what_an_option_cannot_be(method: str, option: str, value: Any, expected: str) -> None:
    fn: Any = getattr(estimators, method)
    with pytest.raises(CreditError, match=f"{method}: {option} is .*; expected .*{expected}"):
        fn(GRAPH, REWARD, **{option: value})


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_with_a_bounded_option_checks_it(name: str) -> None:
    from credit.methods.running import keywords_of

    fn = METHODS[name].fn
    for option in BOUNDS.keys() & set(keywords_of(fn)):
        with pytest.raises(CreditError, match=rf": {option} is -3; expected"):
            fn(GRAPH, REWARD, **{option: -3})


def test_traced_options_pass_and_give_the_same_numbers() -> None:
    traced = jax.jit(lambda eps: estimators.grpo(GRAPH, REWARD, eps=eps).advantage)(1e-3)
    np.testing.assert_allclose(traced, estimators.grpo(GRAPH, REWARD, eps=1e-3).advantage, rtol=1e-6)


def test_the_decorator_keeps_the_name_the_signature_and_the_docstring() -> None:
    assert estimators.gae.__name__ == "gae" and "Args:" in (estimators.gae.__doc__ or "")

    @checked_options
    def own(graph: Any, reward: Any, *, ddof: int = 1) -> None:
        """Do nothing."""

    assert own.__doc__ == "Do nothing."
    with pytest.raises(CreditError, match="own: ddof is 2; expected 0 or 1"):
        own(None, None, ddof=2)
