"""Options outside their bounds are refused by the method itself, not only by the command line."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

import estimators
from credit.methods.registry import METHODS
from credit.tables.columns import from_columns
from estimators.options import BOUNDS, check_arguments, checked_options
from graphs.argument_kinds import hints_of
from graphs.errors import ArrayTypeError, CreditError
from graphs.traces.schema import EVENT_EVIDENCE

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


@pytest.mark.parametrize("name", sorted(METHODS))
def test_no_number_of_a_method_may_be_infinite(name: str) -> None:
    """With a weight of infinity every event was refused as out of range, or the weighted part was the whole."""
    fn = METHODS[name].fn
    for option, hint in hints_of(fn).items():
        for value in (float("inf"), -np.float32("inf"), float("nan")) if "float" in hint.kinds else ():
            with pytest.raises(CreditError, match=f": {option} is .*; expected a .*number"):
                check_arguments(fn, {option: value})


@pytest.mark.slow
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


WRONG: dict[str, Any] = {
    "None": None, "text": "abc", "bytes": b"x", "mapping": {"a": 1}, "set": {1.0}, "an object": object(),
    "a function": len, "a ragged list": [[1.0], [2.0, 3.0]], "strings": np.array(["a", "b"]),
    "objects": np.array([None, 1.0], dtype=object), "complex": np.zeros(3, complex), "dates": np.zeros(3, "M8[s]"),
    "empty": np.zeros(0, np.float32), "transposed": np.zeros((1, 3), np.float32),
}  # fmt: skip


@pytest.mark.sampled(others="slow")
@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_argument_of_a_wrong_kind_is_refused_by_name(name: str) -> None:
    """Before, 1,900 of 5,000 such calls ended in a TypeError or an AttributeError from inside JAX."""
    fn: Any = METHODS[name].fn
    given = {}
    for key in METHODS[name].needs:
        evidence, size = EVENT_EVIDENCE.get(key), GRAPH.num_events if key in EVENT_EVIDENCE else GRAPH.num_traces
        given[key] = np.zeros(size, np.float32 if evidence is None or evidence.kind == "float" else np.int32)
    hints = typing.get_type_hints(inspect.unwrap(fn))
    for argument in inspect.signature(fn).parameters:
        for label, value in WRONG.items():
            if type(value) in (hints[argument], *typing.get_args(hints[argument])):  # None or text, where it may be
                continue
            arguments = {"graph": GRAPH, "reward": REWARD, **given, argument: value}
            with pytest.raises(CreditError, match=rf"{argument} (is|has) .*expected") as refusal:
                fn(arguments.pop("graph"), arguments.pop("reward"), **arguments)
            assert refusal.type in (CreditError, ArrayTypeError), label


@pytest.mark.slow
def test_lists_and_arrays_of_other_libraries_are_arrays() -> None:
    expected = np.asarray(estimators.rloo(GRAPH, REWARD).advantage)
    real = np.asarray(REWARD).tolist()
    for given in (real, tuple(real), pa.array(real, pa.float32()), memoryview(np.asarray(REWARD))):
        np.testing.assert_array_equal(estimators.rloo(GRAPH, given).advantage, expected)


def test_a_function_whose_annotations_cannot_be_read_is_called_as_it_is() -> None:
    @checked_options
    def own(graph: Any, reward: Unknown, *, weight: int = 1) -> Any:  # type: ignore[name-defined]  # noqa: F821
        return graph, reward, weight

    assert own("graph", "reward", weight=2) == ("graph", "reward", 2)


@pytest.mark.slow
def test_none_passes_where_an_alias_of_choices_has_it() -> None:
    """`By` is `Literal["agent_name", "role_name"] | None`: None is in the alias, not in the annotation."""
    np.testing.assert_array_equal(
        estimators.dr_mas(GRAPH, REWARD, by=None).valid, estimators.dr_mas(GRAPH, REWARD, population="trace").valid
    )
