"""Whether a function of one's own is a function of its arguments: two calls, or two traces, must be equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from graphs.errors import CreditError

__all__ = ["check_repeats"]

NUMBERS = ("credit", "baseline", "scale", "stderr", "reason")
ATOMIC = 1e-4
"""Of the largest number: what sums in another order may change on an accelerator. A CPU repeats every bit."""


def check_repeats(what: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse a function whose second call on the same batch gives something else, as with draws or a state.

    While the call is traced no number is known, and a draw by NumPy is a constant of the compiled method. So the
    constants and the operations of two traces are compared.

    Args:
      what: the function, in the words of the message.
      fn, args, kwargs: the call, which `fn` has done without an error.

    Raises:
      CreditError: what differs, and by how much.
    """
    plain = fn.__wrapped__ if hasattr(fn, "lower") and hasattr(fn, "__wrapped__") else fn  # jit keeps its first draw
    leaves, form = jax.tree.flatten((args, dict(kwargs)))
    traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
    found = _of_traces(plain, leaves, form) if traced else _of_calls(plain, args, kwargs)
    if found:
        raise CreditError(
            f"{what}: two calls on one batch differ: {found}; expected a function of its arguments: without a state, "
            "and with draws from a seed that is an option, as `seed: int = 0`"
        )


def _of_calls(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    first, second = fn(*args, **kwargs), fn(*args, **kwargs)
    exact = jax.default_backend() == "cpu"
    for name in NUMBERS:
        a, b = (np.asarray(getattr(result, name), np.float64) for result in (first, second))
        with np.errstate(invalid="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            if not exact:
                same |= np.abs(a - b) <= ATOMIC * np.max(np.abs(a), where=np.isfinite(a), initial=0.0)
        if not same.all():
            event = int(np.argmin(same))
            return f"{name} of event {event} is {a[event]:g}, then {b[event]:g}, {b[event] - a[event]:+g}"
    return ""


def _of_traces(fn: Callable[..., Any], leaves: list[Any], form: Any) -> str:
    given = [place for place, leaf in enumerate(leaves) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]

    def trace() -> Any:
        def numbers(arrays: list[Any]) -> list[Any]:
            filled = list(leaves)
            for place, array in zip(given, arrays, strict=True):
                filled[place] = array
            args, kwargs = jax.tree.unflatten(form, filled)
            result = fn(*args, **kwargs)
            return [getattr(result, name) for name in NUMBERS]

        return jax.make_jaxpr(numbers)([leaves[place] for place in given])

    first, second = list(_steps(trace())), list(_steps(trace()))
    for a, b in zip(first, second, strict=False):
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype:
            if a.tobytes() != b.tobytes():
                place = int(np.argmax((a != b).ravel()))
                before, after = (float(array.ravel()[place].real) for array in (a, b))
                return f"a constant of what is compiled is {before:g}, then {after:g}, {after - before:+g}"
        elif isinstance(a, np.ndarray) or isinstance(b, np.ndarray) or a != b:
            return f"what is compiled has {_named(a)}, then {_named(b)}"
    return "" if len(first) == len(second) else f"what is compiled has {len(first)} steps, then {len(second)}"


def _array(constant: Any) -> np.ndarray:
    is_key = jnp.issubdtype(getattr(constant, "dtype", np.float32), jax.dtypes.prng_key)
    with jax.ensure_compile_time_eval():  # a constant is known, whatever is traced around it
        return np.asarray(jax.random.key_data(constant) if is_key else constant)


def _named(step: Any) -> str:
    return f"an array of shape {step.shape}" if isinstance(step, np.ndarray) else f"the operation {step}".strip(" []")


def _steps(value: Any) -> Iterator[Any]:
    """Operations and constants of a trace, in order, those of traces inside it included."""
    if hasattr(value, "consts"):  # a closed trace
        yield from (_array(const) for const in value.consts if not isinstance(const, jax.core.Tracer))
        value = value.jaxpr
    for equation in value.eqns:
        inner = jax.tree.leaves(list(equation.params.values()), is_leaf=lambda leaf: hasattr(leaf, "jaxpr"))
        counts = [leaf for leaf in inner if isinstance(leaf, int | float)]
        yield f"{equation.primitive} of {', '.join(str(variable.aval) for variable in equation.outvars)} {counts}"
        for operand in equation.invars:
            if hasattr(operand, "val"):  # a number that is written in the operation
                yield _array(operand.val)
        for parameter in inner:
            if hasattr(parameter, "eqns") or hasattr(parameter, "consts"):
                yield from _steps(parameter)
