"""Signals that teams are trained with: methods of `credit.METHODS`, and a few that know the exact values."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from credit.bench.training.training_loop import Rollout, Signal
from credit.methods.registry import METHODS
from estimators.base import Credit, Reason, finish
from estimators.composition.control import control_advantage
from graphs.errors import CreditError

__all__ = ["ORACLES", "training_signal"]


@functools.cache
def training_signal(name: str) -> Signal:
    """The signal of this name: one of `ORACLES`, or a method that needs no evidence but values.

    A method's `value` is the exact expected reward before each event, so its curve is an upper bound for a learned one.
    Events without a valid advantage get 0.

    Examples:
      >>> training_signal("zero") is training_signal("zero")
      True

    Args:
      name: a key of `ORACLES` or of `credit.METHODS`.

    Raises:
      CreditError: there is no such signal, or the method needs evidence that these tasks have not.
    """
    if name in ORACLES:
        return ORACLES[name]
    if name not in METHODS:
        raise CreditError(f"no signal {name!r}; expected a method of credit.METHODS or one of {', '.join(ORACLES)}")
    method = METHODS[name]
    missing = sorted(set(method.needs) - {"value"})
    if missing:
        raise CreditError(f"method {name!r} needs {', '.join(missing)}, which the tasks do not have")

    def signal(rollout: Rollout) -> jax.Array:
        given = {"value": rollout.value} if "value" in method.needs else {}
        return _advantage(method.fn(rollout.graph, rollout.reward, **given))

    return signal


def _advantage(credit: Credit) -> jax.Array:
    return jnp.where(credit.valid, credit.advantage, 0)


def _zero(rollout: Rollout) -> jax.Array:
    return jnp.zeros_like(rollout.increments)


def _increments(rollout: Rollout) -> jax.Array:
    return rollout.increments


def _control_exact(rollout: Rollout) -> jax.Array:
    """The control-variate advantage with the exact increments as claims."""
    return _advantage(control_advantage(rollout.graph, rollout.reward, [_exact_claim(rollout)], beta=1.0).credit)


def _exact_claim(rollout: Rollout) -> Credit:
    amount = rollout.increments
    return finish(
        rollout.graph,
        credit=amount,
        baseline=jnp.zeros_like(amount),
        scale=jnp.ones_like(amount),
        stderr=jnp.zeros_like(amount),
        reason=jnp.full(amount.shape, Reason.VALID),
        unit="event",
        estimand="increment",
        source="exact",
        centred=True,
        own_outcome=False,
    )


ORACLES: dict[str, Callable[[Rollout], jax.Array]] = {
    "zero": _zero,
    "exact_increments": _increments,
    "control_exact": _control_exact,
}
"""Nothing; the true advantage of each choice; and the advantage "control" with it as the claim."""
