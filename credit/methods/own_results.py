"""Whether what a function of a user's own returned is a credit of its batch."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np

from estimators.base import Credit, Estimand, Reason
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import LEVELS
from graphs.text import excerpt

__all__ = [
    "ABOVE_0",
    "FINITE",
    "UnmeasuredError",
    "check_finite",
    "check_form",
    "check_type",
    "lacks_scale",
    "without_scale",
]

FINITE = "expected finite numbers over a scale above 0, or another reason than VALID, as `estimators.finish` gives"
"""The error's words where a valid advantage is not a finite number."""

ABOVE_0 = (
    "expected a scale above 0, since an advantage over a negative one has the other sign: leave the sign to `credit` "
    "and `baseline`, or give another reason than VALID"
)
"""The error's words where a valid advantage has a scale of 0 or less, or none."""


class UnmeasuredError(CreditError):
    """This method has no numbers, and others may: it lacks evidence, or is at fault; a benchmark leaves it out."""


def check_form(name: str, graph: EventGraph, result: Any) -> None:
    """Refuse a result of another type, shape, unit or estimand than a credit of this batch has; also while traced.

    Args:
      name: of the method, which begins the error.
      graph: that the method was given.
      result: what it returned.

    Raises:
      CreditError: names the field, what it is and what was expected.

    Examples:
      >>> import credit, dataclasses
      >>> graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> wrong = dataclasses.replace(credit.rloo(graph, reward), credit=reward[:1])
      >>> check_form("mine", graph, wrong)  # doctest: +ELLIPSIS
      Traceback (most recent call last):
          ...
      graphs.errors.CreditError: mine: credit has shape (...,); expected (...,), one entry for each event of this batch
    """
    check_type(name, result)
    for field, known in (("unit", LEVELS), ("estimand", get_args(Estimand))):
        values = getattr(result, field)
        if values not in known:
            raise CreditError(f"{name}: {field} is {values!r}; expected one of {', '.join(known)}")
    for field in ("credit", "baseline", "scale", "stderr", "reason"):
        array = getattr(result, field)
        if jnp.shape(array) != (graph.num_events,):
            expected = f"({graph.num_events},), one entry for each event of this batch"
            raise CreditError(f"{name}: {field} has shape {jnp.shape(array)}; expected {expected}")
        if jnp.iscomplexobj(array):
            raise CreditError(f"{name}: {field} is complex; expected real numbers")


def check_type(name: str, result: Any) -> None:
    """Refuse what is no credit.

    Raises:
      CreditError: says what it is.
    """
    if not isinstance(result, Credit):
        raise CreditError(f"{name} returned {_kind(result)}; expected a Credit (end with `finish`)")


def _kind(result: Any) -> str:
    """What was returned, in words that are the same while it is traced: an array is no tracer to who returned it."""
    if isinstance(result, jax.Array | np.ndarray):
        return f"an array of shape {result.shape}"
    if isinstance(result, tuple | list):
        return f"a {type(result).__name__} of {', '.join(map(_kind, result[:4])) or 'nothing'}"
    if isinstance(result, dict):
        return f"a dict with the keys {excerpt(list(result))}"
    plain = result is None or isinstance(result, str | int | float)
    return excerpt(result) if plain else f"an object of the class {type(result).__name__}"


def check_finite(name: str, result: Credit) -> None:
    """Refuse an advantage that is valid and no finite number. Nothing is known of numbers that are being traced.

    Raises:
      UnmeasuredError: names the first such event.

    Examples:
      >>> import credit
      >>> graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> check_finite("rloo", credit.rloo(graph, reward))
    """
    advantage = result.advantage
    if isinstance(advantage, jax.core.Tracer):
        return
    wrong = jnp.flatnonzero((jnp.asarray(result.reason) == Reason.VALID) & ~jnp.isfinite(advantage))
    if wrong.size:
        more = f", and {wrong.size - 1} more" if wrong.size > 1 else ""
        raise UnmeasuredError(
            f"{name}: the advantage of event {int(wrong[0])} is {float(advantage[wrong[0]])} and marked valid{more}; "
            f"{FINITE}"
        )
    wrong = jnp.flatnonzero(lacks_scale(result))
    if wrong.size:
        more = f", and {wrong.size - 1} more" if wrong.size > 1 else ""
        raise UnmeasuredError(
            f"{name}: the scale of event {int(wrong[0])} is {float(result.scale[wrong[0]])} and marked valid{more}; "
            f"{ABOVE_0}"
        )


def lacks_scale(result: Credit) -> Array:
    """Which valid advantages stand over a scale of 0 or less, or over none: bool [E]; also while traced."""
    return (jnp.asarray(result.reason) == Reason.VALID) & ~(jnp.asarray(result.scale) > 0)


def without_scale(result: Credit) -> Credit:
    """The result, with NaN for a valid advantage over a scale of 0 or less: what is compiled can refuse no other way.

    Examples:
      >>> import credit, dataclasses
      >>> graph, reward, rows = credit.from_columns(group=["q"] * 2, trace=["a", "b"], reward=[1.0, 0.0])
      >>> result = credit.rloo(graph, reward)
      >>> without_scale(dataclasses.replace(result, scale=-result.scale)).advantage[:2].tolist()
      [nan, nan]
    """
    return dataclasses.replace(result, credit=jnp.where(lacks_scale(result), jnp.nan, result.credit))
