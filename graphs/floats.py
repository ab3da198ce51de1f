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
    "exact_sums",
    "floating",
    "lost_differences",
    "outweighed_results",
    "rounded_differences",
    "rounding",
    "rounding_of_equals",
    "shortest",
    "single_sums",
]

COARSE = (
    "differ by little for their size: single precision, in which methods compute, changes the differences, or a "
    "baseline between them, by more than 1 %; subtract an offset, multiply numbers that are almost 0, or state rewards "
    "of rows in multiples of 1/8, whose sums are exact"
)
"""What is wrong with numbers of which `rounded_differences` is True."""

KEPT = 0.01
"""Of the largest difference in a group, by how much single precision may move one."""

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


def exact_sums(first: np.ndarray, terms: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `single_sums` in double precision, and the sums of sizes; a sum that is rounding beside its terms is 0.

    Examples:
      >>> exact_sums(np.zeros(1), np.array([-0.1, -0.2, 0.3]), np.zeros(3, int))[0].tolist()
      [0.0]
    """
    total = first + np.bincount(ids, terms, len(first))
    sizes = np.abs(first) + np.bincount(ids, np.abs(terms), len(first))
    return np.where(np.abs(total) < RELATIVE * sizes, 0, total), sizes


def rounding_of_equals(
    exact: np.ndarray, sizes: np.ndarray, key: np.ndarray, keys: int, single: np.ndarray
) -> np.ndarray:
    """Of each key whose numbers are equal, how large a difference of their single precision is rounding; else 0.

    Args:
      exact, sizes: float64 [N], of `exact_sums`.
      key: int [N] in [0, keys).
      keys: how many there are.
      single: float32 [N], of `single_sums`.

    Examples:
      >>> exact, single = np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0000001, 1.0, 0.0, 1.0], np.float32)
      >>> (rounding_of_equals(exact, np.ones(4), np.array([0, 0, 1, 1]), 2, single) > 0).tolist()
      [True, False]
    """
    most = np.full((3, keys), -np.inf)  # of the numbers and of their negatives, and how far off a number may be
    off = np.zeros(keys)
    with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond single precision
        for row, numbers in zip(most, (exact, -exact, rounding(exact)), strict=True):
            np.maximum.at(row, key, numbers)
        np.maximum.at(off, key, 2 * np.abs(single - exact) + 4 * SINGLE.eps * sizes)
        equal = most[0] + most[1] <= most[2]
    found: np.ndarray = np.where(equal, off, 0)
    return found


def rounded_differences(
    exact: np.ndarray, key: np.ndarray, keys: int, single: np.ndarray | None = None, *, kept: float = KEPT
) -> np.ndarray:
    """Whether single precision moves a difference in a key by more than a part of the largest: bool [keys].

    Differences are from the mean of the key's numbers, and from that of all but one, which are baselines. XLA takes
    what is below the least normal number for 0, differences too: a largest one below 100 times that is too small.
    Numbers of 2**53 or more may have been different before they were read. Numbers that are equal may differ in single
    precision where they are sums: then a method that divides by the spread makes of nothing an advantage near 1.

    Args:
      exact: float64 [N].
      key: int [N] in [0, keys).
      keys: how many there are.
      single: what methods have in the place of `exact`, of `single_sums`. Default: rounded once.
      kept: the part, 1 % by default.

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
    # Single precision moves a number, and a mean between the least and the most, by half an epsilon of their size at
    # most. The largest difference from a mean is half the spread at least.
    with np.errstate(invalid="ignore"):
        fine = (spread <= 0) & (size < WHOLE) & ~apart
        fine |= SINGLE.eps * size + SINGLE.tiny + 2 * off <= kept / 2 * spread
        fine &= size < SINGLE.max / 2
    if fine[key].all():
        return np.zeros(keys, bool)
    count, noise = np.bincount(key, minlength=keys), np.zeros(keys)
    np.maximum.at(noise, key, rounding(exact))
    differs = (spread > noise) | apart | ((size >= WHOLE) & (count > 1))
    with np.errstate(over="ignore", invalid="ignore"):  # numbers beyond single precision
        known = exact.astype(np.float32) if single is None else single
        whole, found = _differences(exact, key, keys, np.float64), _differences(known, key, keys, np.float32)
        rounded: np.ndarray = np.zeros(keys, bool)
        for true, got in zip(whole, found, strict=True):
            far, moved = np.zeros(keys), np.full(keys, SINGLE.tiny)
            np.maximum.at(far, key, np.abs(true))
            np.maximum.at(moved, key, np.abs(got - true))
            rounded |= ~(moved <= kept * far)
    rounded &= differs
    return rounded


def _differences(numbers: np.ndarray, key: np.ndarray, keys: int, kind: type) -> tuple[np.ndarray, np.ndarray]:
    """Numbers less the mean of their key, and less that of its others, the means being of a type: float64 [N] each."""
    first = np.zeros(keys)
    first[key] = numbers  # sums of what is near it lose no digit
    first, count = first[key], np.bincount(key, minlength=keys)[key]
    relative = numbers - first
    total = np.bincount(key, relative, keys)[key]
    means = total / count, (total - relative) / np.maximum(count - 1, 1)
    of_all, of_others = (numbers - (first + mean).astype(kind).astype(np.float64) for mean in means)
    return of_all, of_others


def lost_differences(exact: np.ndarray, lost: np.ndarray, key: np.ndarray, keys: int) -> np.ndarray:
    """Whether numbers may have lost over 1 % of their key's largest difference before they came: bool [keys].

    Args:
      exact: float64 [N].
      lost: float64 [N], how far each may be off.
      key: int [N] in [0, keys).
      keys: how many there are.

    Examples:
      >>> from graphs.floats import lost_differences
      >>> lost_differences(np.array([5.0, 5.25, 5.0, 7.0]), np.full(4, 2.0**-7), np.array([0, 0, 1, 1]), 2).tolist()
      [True, False]
    """
    far, off = np.zeros((2, keys))
    np.maximum.at(far, key, np.abs(_differences(exact, key, keys, np.float64)[0]))
    np.maximum.at(off, key, lost)
    found: np.ndarray = (off > KEPT * far) & (far > RELATIVE * off)
    return found


def outweighed_results(
    numbers: np.ndarray,
    key: np.ndarray,
    results: np.ndarray,
    key_of_result: np.ndarray,
    keys: int,
    unit: float = np.inf,
) -> np.ndarray:
    """Whether rounding of a key's numbers is above 1 % of its largest result, which is a difference: bool [keys].

    Numbers count as rounded by an epsilon of the largest: what a log's were is not known. Not where single precision
    holds all, and they are multiples of one power of 2 and small for it: their sums and differences are exact.

    Args:
      numbers: float [N], finite, in double precision where that is known.
      key: int [N] in [0, keys).
      results: float [M], in the unit of the numbers.
      key_of_result: int [M] in [0, keys); a key without a result is False.
      keys: how many there are.
      unit: the size of what is paid, if known: results of over this are differences of what does not belong together.

    Examples:
      >>> from graphs.floats import outweighed_results
      >>> key = np.array([0, 0, 1, 1, 2, 2])
      >>> numbers = np.array([1e6 + 0.3, 1e6, 0.3, 0.1, 1e6 + 1, 1e6])
      >>> outweighed_results(numbers, key, np.array([0.3125, 0.2, 1]), np.arange(3), 3).tolist()
      [True, False, False]
    """
    single = np.abs(numbers.astype(np.float32)).astype(np.float64)
    size, most = np.zeros(keys), np.full(keys, -1.0)
    np.maximum.at(size, key, single)
    np.maximum.at(most, key_of_result, np.abs(results))
    paid = np.where(most == 0, 1 if unit == np.inf else unit, np.minimum(most, unit))  # 0 may be right: of equal values
    outweighed: np.ndarray = (most >= 0) & (SINGLE.eps * size > KEPT * paid)
    if not outweighed.any():
        return outweighed
    changed = np.zeros(keys, bool)
    changed[key[np.abs(single - np.abs(numbers)) > RELATIVE * single]] = True
    looked = outweighed[key] & (single > 0)
    mantissa, exponent = np.frexp(single[looked])
    whole = (mantissa * 2**24).astype(np.int64)
    step = np.full(keys, np.inf)
    np.minimum.at(step, key[looked], np.log2(whole & -whole) + exponent - 24)
    # What was rounded to 24 bits has 3 zeros at the end by chance alone, not in all numbers.
    exact = ~changed & (size < 2**24) & ((step >= 0) | (size < np.exp2(step + 21)))
    outweighed &= ~exact
    return outweighed


def shortest(numbers: np.ndarray) -> np.ndarray:
    """Numbers, those of single precision as the shortest decimals that round to them.

    Examples:
      >>> number = np.float32(0.015408)
      >>> float(number), shortest(np.array([number])).tolist()
      (0.015407999977469444, [0.015408])
    """
    if numbers.dtype != np.float32:
        return numbers
    short = numbers.astype(str).astype(np.float64)
    # The shortest decimal of the largest number lies above it, where a reader would find none of single precision.
    return np.where(np.abs(short) > np.finfo(np.float32).max, numbers.astype(np.float64), short)
