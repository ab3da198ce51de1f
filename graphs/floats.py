"""The float type that estimators compute in, and numbers whose differences it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphs.errors import ArrayTypeError
from graphs.event_graph import Array

if TYPE_CHECKING:
    import jax

__all__ = [
    "COARSE",
    "KEPT",
    "RELATIVE",
    "WHOLE",
    "at_least_float32",
    "floating",
    "rounded_differences",
    "rounding",
    "single_sums",
]

COARSE = (
    "differ by little for their size: single precision, in which methods compute, changes the differences, or a "
    "baseline between them, by more than 1 %; subtract an offset, multiply numbers that are almost 0, or state rewards "
    "of rows in multiples of 1/8, whose sums are exact"
)
"""What is wrong with numbers of which `rounded_differences` is True."""

KEPT = 0.01
"""Of the largest difference of a group, by how much single precision may move an outcome."""

SINGLE = np.finfo(np.float32)

RELATIVE = 1e-12
"""Of the size of returns, up to which a difference is rounding: 0.1 + 0.2 is not 0.3 in double precision."""

WHOLE = 2**53
"""From which on reading makes different integers one number in double precision."""


def at_least_float32(values: Array) -> jax.Array:
    """An array in its own float type where that has 32 bits or more, and in float32 otherwise.

    Half precision is too coarse for the small differences in advantages. Integers become float32.

    Examples:
      >>> import jax.numpy as jnp
      >>> at_least_float32(jnp.zeros(2, jnp.bfloat16)).dtype
      dtype('float32')
    """
    import jax.numpy as jnp  # not by the module: what else is here runs in processes without JAX

    array = jnp.asarray(values)
    wide = jnp.issubdtype(array.dtype, jnp.floating) and array.dtype.itemsize >= 4
    return array if wide else array.astype(jnp.float32)


def floating(name: str, values: Array) -> jax.Array:
    """An array of floats as `at_least_float32` gives it.

    The error names what the array holds, not its type: JAX has made int64 into int32 by then.

    Raises:
      ArrayTypeError: integers, booleans or complex numbers.

    Examples:
      >>> floating("reward", np.arange(2))
      Traceback (most recent call last):
          ...
      graphs.errors.ArrayTypeError: reward holds integers; expected floats (convert it, e.g. to float32)
    """
    import jax.numpy as jnp

    array = jnp.asarray(values)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        held = {"b": "booleans", "c": "complex numbers"}.get(array.dtype.kind, "integers")
        raise ArrayTypeError(f"{name} holds {held}; expected floats (convert it, e.g. to float32)")
    return at_least_float32(array)


def rounding(numbers: np.ndarray) -> np.ndarray:
    """How far the sums that made numbers of double precision may have put each off: nothing where it is an integer.

    Examples:
      >>> rounding(np.array([1e13, 1e13 + 0.5])).tolist()
      [0.0, 10.0000000000005]
    """
    return np.where(numbers == np.floor(numbers), 0, RELATIVE * np.abs(numbers))


def single_sums(first: np.ndarray, terms: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The first number of each id and all its terms, added up one by one in single precision, as methods do: float32.

    Examples:
      >>> single_sums(np.zeros(2), np.array([0.1] * 10 + [0.2] * 5), np.repeat([0, 1], [10, 5])).tolist()
      [1.0000001192092896, 1.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond single precision
        total = np.zeros(len(first), np.float32)
        np.add.at(total, ids, terms.astype(np.float32))
        return first.astype(np.float32) + total


def rounded_differences(exact: np.ndarray, key: np.ndarray, keys: int, single: np.ndarray | None = None) -> np.ndarray:
    """Whether single precision moves a number of a key by more than 1 % of the key's largest difference: bool [keys].

    The means of a key's numbers, of all and of all but one, count too: they are baselines. XLA takes what is below the
    least normal number for 0, a difference from a baseline, too: a spread below 100 times that is too small. Numbers of
    2**53 or more may have been different before they were read. Numbers that are equal may differ in single precision
    where they are sums: then a method that divides by the spread makes of nothing an advantage near 1.

    Args:
      exact: float64 [N].
      key: int [N] in [0, keys).
      keys: how many there are.
      single: what methods have in the place of `exact`, of `single_sums`. Default: rounded once.

    Examples:
      >>> from graphs.floats import rounded_differences
      >>> rounded_differences(np.array([1e6, 1e6 + 0.1, 0.0, 0.1]), np.array([0, 0, 1, 1]), 2).tolist()
      [True, False]
      >>> rounded_differences(np.array([1e-40, 3e-40]), np.zeros(2, int), 1).tolist()
      [True]
      >>> rounded_differences(np.array([0.0, 1e-37, 1e-37, 3e-37]), np.zeros(4, int), 1).tolist()
      [True]
      >>> rounded_differences(np.array([16777216.0, 16777218.0, 16777220.0]), np.zeros(3, int), 1).tolist()
      [True]
      >>> rounded_differences(np.ones(2), np.zeros(2, int), 1, np.array([1.0000001, 1.0], np.float32)).tolist()
      [True]
    """
    most, least = np.full(keys, -np.inf), np.full(keys, np.inf)
    np.maximum.at(most, key, exact)
    np.minimum.at(least, key, exact)
    size, spread = np.maximum(np.abs(most), np.abs(least)), most - least
    off, apart = np.zeros(keys), np.zeros(keys, bool)
    if single is not None:
        np.maximum.at(off, key, np.abs(single - exact))
        highest, lowest = np.full(keys, -np.inf, np.float32), np.full(keys, np.inf, np.float32)
        np.maximum.at(highest, key, single)
        np.minimum.at(lowest, key, single)
        apart = highest > lowest
    # Single precision moves a number, and a mean between the least and the most, by an epsilon of their size at most.
    with np.errstate(invalid="ignore"):
        fine = (spread <= 0) & (size < WHOLE) & ~apart
        fine |= SINGLE.eps * size + SINGLE.tiny + off <= KEPT * spread
        fine &= size < SINGLE.max / 2
    if fine[key].all():
        return np.zeros(keys, bool)
    total, count = np.bincount(key, exact, keys)[key], np.bincount(key, minlength=keys)[key]
    with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond single precision
        means = total / count, (total - exact) / np.maximum(count - 1, 1)
        moved = np.fmax.reduce([np.abs(x.astype(np.float32) - x) for x in (exact, *means)])
    noise = np.zeros(keys)
    np.maximum.at(off, key, moved)
    np.maximum.at(noise, key, rounding(exact))
    differs = (spread > noise) | apart | ((size >= WHOLE) & (np.bincount(key, minlength=keys) > 1))
    rounded: np.ndarray = (np.maximum(off, SINGLE.tiny) > KEPT * spread) & differs
    return rounded
