"""A JSON number in a text as the nearest double, compiled: what Python's `float` gives, or no answer.

Up to 15 or so digits a quotient or product of two exact doubles is already right. Beyond, the digits are multiplied by
a power of five that is known to 128 bits; where these leave more than one nearest double possible, there is no answer
(D. Lemire, "Number Parsing at a Gigabyte per Second", 2021, which answers the doubtful cases too).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.formats.native.compiled.compiling import loop, step

__all__ = ["number"]

_LEAST, _MOST = -300, 300
"""Powers of ten within which every double is a normal one, whatever its 19 digits."""
_EXACT_TENS = np.array([10.0**k for k in range(23)])
_MOST_EXACT = np.uint64(1 << 53)
_MOST_DIGITS = 19  # that surely fit 64 bits
_MINUS, _PLUS, _POINT, _ZERO, _NINE = (np.uint8(ord(c)) for c in "-+.09")
_EXPONENT, _LARGE_EXPONENT = np.uint8(ord("e")), np.uint8(ord("E"))
_LOW_HALF, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE, _TEN = np.uint64(1), np.uint64(10)
_GUARD_BITS = np.uint64(0x1FF)  # below the 53 bits of a double and the one that rounds it
_FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


def _powers_of_five() -> np.ndarray:
    """5**q to 128 bits, for q from `_LEAST` to `_MOST`: uint64 [q, 2], scaled so that the first bit is set.

    Cut off where q >= 0; of a reciprocal the next larger number, as the proof of the method wants it.
    """
    halves = []
    for q in range(_LEAST, _MOST + 1):
        five = 5 ** abs(q)
        if q >= 0:
            top = five << 128 >> five.bit_length()
        else:
            top = (1 << (five.bit_length() + 127)) // five + 1
            top >>= top.bit_length() - 128
        halves.append((top >> 64, top & (2**64 - 1)))
    return np.array(halves, np.uint64)


_FIVES = _powers_of_five()


@step
def number(text: Any, at: int, end: int) -> Any:
    """The number that starts at `at`: the position behind it, its value, and whether it is written as an integer.

    The position is -1 where no number of JSON's grammar starts, where it is an integer's "-0", and where the nearest
    double is in doubt or not a normal number.
    """
    negative = at < end and text[at] == _MINUS
    if negative:
        at += 1
    first, mantissa, digits = at, np.uint64(0), 0
    while at < end and _ZERO <= text[at] <= _NINE:
        mantissa = mantissa * _TEN + np.uint64(text[at] - _ZERO)
        if mantissa != 0:
            digits += 1
        at += 1
    if at == first or (at > first + 1 and text[first] == _ZERO):
        return -1, 0.0, False
    power: Any = np.int64(0)
    whole = True
    if at < end and text[at] == _POINT:
        whole, at = False, at + 1
        mark = at
        while at < end and _ZERO <= text[at] <= _NINE:
            mantissa = mantissa * _TEN + np.uint64(text[at] - _ZERO)
            if mantissa != 0:
                digits += 1
            at += 1
        if at == mark:
            return -1, 0.0, False
        power = mark - at
    if at < end and (text[at] == _EXPONENT or text[at] == _LARGE_EXPONENT):
        whole, at = False, at + 1
        less = at < end and text[at] == _MINUS
        if less or (at < end and text[at] == _PLUS):
            at += 1
        mark, exponent = at, np.int64(0)
        while at < end and _ZERO <= text[at] <= _NINE and at < mark + 5:
            exponent = exponent * 10 + np.int64(text[at] - _ZERO)
            at += 1
        if at == mark:
            return -1, 0.0, False
        power += -exponent if less else exponent
    if digits > _MOST_DIGITS:
        return -1, 0.0, False
    if mantissa == 0:
        if negative and whole:
            return -1, 0.0, False
        return at, -0.0 if negative else 0.0, whole
    if mantissa <= _MOST_EXACT and -22 <= power <= 22:
        value = np.float64(mantissa)
        value = value / _EXACT_TENS[-power] if power < 0 else value * _EXACT_TENS[power]
    else:
        value = _rounded(mantissa, power)
        if value < 0:
            return -1, 0.0, False
    return at, -value if negative else value, whole


@loop
def _rounded(mantissa: Any, power: Any) -> float:
    """The double nearest to `mantissa` * 10**`power`; -1.0 where that is in doubt or no normal double."""
    if power < _LEAST or power > _MOST:
        return -1.0
    zeros = np.uint64(0)
    while mantissa >> np.uint64(63) == 0:
        mantissa <<= _ONE
        zeros += _ONE
    high, low = _product(mantissa, _FIVES[power - _LEAST, 0])
    if high & _GUARD_BITS == _GUARD_BITS:
        carry, _ = _product(mantissa, _FIVES[power - _LEAST, 1])
        low += carry
        if low < carry:
            high += _ONE
        if low == _FULL:
            return -1.0
    upper = high >> np.uint64(63)
    kept = high >> (upper + np.uint64(9))  # 53 bits and one that rounds
    if low <= _ONE and kept & np.uint64(3) == _ONE and kept << (upper + np.uint64(9)) == high:
        return -1.0  # half way between two doubles, perhaps
    kept = (kept + (kept & _ONE)) >> _ONE
    exponent = ((217706 * power) >> 16) + 63 + np.int64(upper) - np.int64(zeros) - 52  # floor(power log2(10)) + ...
    value = math.ldexp(np.float64(kept), exponent)
    return value if 1e-290 < value < 1e300 else -1.0


@step
def _product(a: Any, b: Any) -> Any:
    """The upper and the lower 64 bits of a product."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW_HALF, b >> _HALF, b & _LOW_HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), (other << _HALF) | (low & _LOW_HALF)
