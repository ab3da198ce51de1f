"""One column of a trainer's rows as integers or numbers, whatever it came in: lists, NumPy, Arrow, pandas, tensors.

Everything goes through Arrow, whose dictionaries turn strings into dense ids without a Python loop.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphs.errors import CreditError
from graphs.text import counted, excerpt
from graphs.traces.missing_names import MISSING_NAMES, is_missing_name
from graphs.traces.schema import LARGEST_COUNT, Range

__all__ = [
    "PAID",
    "ColumnError",
    "as_arrow",
    "as_ids",
    "begins",
    "by_appearance",
    "factorise",
    "finite",
    "in_range",
    "lost_to_type",
    "named",
    "nulls",
    "numbers",
    "renumber",
    "truths",
    "type_name",
    "unlike_indices",
]

SPARSE = 4  # a table of all possible integers is faster than hashing while it is not longer than so many times N
FEW = 4096  # so many words are told apart sooner than looked at for whether they rise
SHOWN = 5  # row numbers that an error names

_BLANK, _OF_MISSING = 1, 2
_LONGEST, _FIRST = max(map(len, MISSING_NAMES)), {name[0] for name in ("nat", *MISSING_NAMES)}
_MEANS = np.array(
    [_BLANK if byte <= 32 or byte >= 127 else _OF_MISSING if chr(byte).lower() in _FIRST else 0 for byte in range(256)],
    np.uint8,
)
"""Whether a byte at an end of a text may be of a blank or a control character, or begin a missing name."""


class ColumnError(CreditError):
    """A column that cannot be used: `column` its name, `rows` the first rows concerned, `problem` what is wrong."""

    def __init__(self, column: str, rows: np.ndarray | list[int], problem: str) -> None:
        self.column, self.rows, self.problem = column, [int(row) for row in rows[:SHOWN]], problem
        where = f" (rows {', '.join(map(str, self.rows))}{', …' if len(rows) > SHOWN else ''})" if self.rows else ""
        super().__init__(f"column {column!r}: {problem}{where}")


def factorise(column: str, values: Any, n: int | None = None) -> tuple[np.ndarray, pa.Array]:
    """Ids as dense integers numbered by first appearance, int64 [N], and the distinct ids in that order."""
    if _few_integers(values, n):
        least = int(values.min())
        codes, first = by_appearance(values.astype(np.int64) - least, int(values.max()) - least + 1)
        return codes, pa.array(values[first])
    array = as_ids(column, values, n)
    _no_nulls(column, array)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
        return array.indices.to_numpy(zero_copy_only=False).astype(np.int64), array.dictionary
    names, codes = array.dictionary, array.indices
    if len(names) <= FEW or not _rising(names):
        words = names.dictionary_encode()
        if len(words.dictionary) < len(names):  # equal words become one, nulls among words show
            names, codes = words.dictionary, words.indices.take(codes)
            _no_nulls(column, codes)
    numbers = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    ids, first = by_appearance(numbers, len(names))
    as_given = ids is numbers and len(first) == len(names)
    return ids, names if as_given else names.take(pa.array(numbers[first]))


def _few_integers(values: Any, n: int | None) -> bool:
    """Whether ids are an array [N] of integers that lie so close that a table of all between them is short."""
    if not (type(values) is np.ndarray and values.dtype in (np.int64, np.int32) and values.ndim == 1):
        return False
    if len(values) == 0 or (n is not None and len(values) != n):
        return False
    return int(values.max()) - int(values.min()) < SPARSE * len(values)


def as_ids(column: str, values: Any, n: int | None) -> pa.Array:
    """A column of ids as one Arrow array of strings or integers, [N], nulls among them.

    Raises:
      ColumnError: not a column of n entries; or of another type, floats with advice, since pandas turns integers into
        them.
    """
    array = as_arrow(column, values, n)
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if _is_id(kind) or array.null_count == len(array):
        return array
    if not pa.types.is_floating(kind):
        raise ColumnError(column, [], f"ids are of type {kind}; expected strings or integers")
    present = array.is_valid().to_numpy(zero_copy_only=False)
    row = int(np.argmax(present))
    problem = f"ids are floats, {array[row].as_py()!r} in row {row}; expected strings or integers"
    advice = (
        "pandas makes integers floats where a row has none: pass .astype(\"Int64\"), since .astype(str) writes 'nan'"
    )
    raise ColumnError(column, np.flatnonzero(~present), f"{problem}; {advice}{_holes(~present)}")


def _holes(missing: np.ndarray) -> str:
    return f"; none in {int(missing.sum())} of {counted(len(missing), 'row')}" if missing.any() else ""


def named(column: str, values: Any, n: int | None = None) -> tuple[np.ndarray, pa.Array]:
    """As `factorise`, of ids that every row has and that join rows of several traces.

    Blanks, and the texts that programs write where a name is missing, are no ids: they would join all rows without one.

    Args:
      column, values, n: as of `factorise`.

    Raises:
      ColumnError: what `factorise` refuses, or a text that is no id.
    """
    codes, names = factorise(column, values, n)
    likely = np.zeros(0, np.int64) if pa.types.is_integer(names.type) else _likely_missing(names)
    texts = {code: names[code].as_py() for code in likely.tolist()}
    nameless = [code for code, text in texts.items() if text == "" or text.isspace() or is_missing_name(text)]
    if nameless:
        lacking = np.isin(codes, nameless)
        problem = f"{excerpt(texts[nameless[0]])} in {int(lacking.sum())} of {counted(len(codes), 'row')} is no id"
        problem += ", but what programs write where there is none; expected an id in each row"
        raise ColumnError(column, np.flatnonzero(lacking), problem)
    return codes, names


def _likely_missing(names: pa.Array) -> np.ndarray:
    """The few of some texts that may be empty, blank or what programs write for none, by their ends."""
    if not pa.types.is_string(names.type):
        names = names.cast(pa.string())
    _, offsets, letters = names.buffers()
    ends = np.frombuffer(offsets, np.int32)[names.offset : names.offset + len(names) + 1]
    content = np.frombuffer(letters or b"\0", np.uint8)
    first, last = (_MEANS[content[np.minimum(at, len(content) - 1)]] for at in (ends[:-1], ends[1:] - 1))
    length = ends[1:] - ends[:-1]
    short = (first == _OF_MISSING) & ((length <= _LONGEST) | (last == _BLANK))
    likely = np.flatnonzero((first == _BLANK) | short | (length == 0))
    if len(likely) > SHOWN * SHOWN:  # such as names in another script
        words = pc.utf8_lower(pc.utf8_trim_whitespace(names.take(pa.array(likely))))
        stated = pc.is_in(words, value_set=pa.array(["", "nat", *MISSING_NAMES], words.type))
        missing = pc.or_(stated, pc.match_substring_regex(words, r"^\p{Cc}+$"))
        likely = likely[missing.to_numpy(zero_copy_only=False)]
    return likely


def by_appearance(codes: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers in [0, room) renumbered by first appearance, int64 [N], and the row where each first appears."""
    steps = codes[1:] - codes[:-1]
    if steps.min(initial=0) < 0:
        highest = np.maximum.accumulate(codes)
        steps = highest[1:] - highest[:-1]
    if codes[0] == 0 and steps.max(initial=0) <= 1:  # they are so numbered already
        return codes, np.flatnonzero(np.concatenate([[True], steps > 0]))
    first = np.full(room, len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of several assignments to one place the last counts
    present = np.zeros(len(codes), bool)
    present[first[first < len(codes)]] = True
    rows = np.flatnonzero(present)
    rank = np.empty(room, np.int64)
    rank[codes[rows]] = np.arange(len(rows))
    return rank[codes], rows


def _rising(words: pa.Array) -> bool:
    """Whether each word is greater than the one before, so that all differ: true of pandas' categories."""
    return words.null_count == 0 and pc.all(pc.less(words[:-1], words[1:])).as_py() is not False


def _is_id(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def begins(codes: np.ndarray) -> np.ndarray:
    """The first row, and each row whose value differs from the value of the row before."""
    return np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))


def numbers(column: str, values: Any, n: int) -> np.ndarray:
    """Numbers as float64 [N], NaN where null.

    Raises:
      ColumnError: no numbers; or NaN in a column of Arrow, which has null for none, as files have.
    """
    if n and type(values) is np.ndarray and values.dtype == np.float64 and values.shape == (n,):  # not a masked one
        return values.copy()
    array = as_arrow(column, values, n)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or array.null_count == n
    ):
        raise ColumnError(column, [], f"values are of type {kind}; expected numbers")
    amounts: np.ndarray = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    wrong = np.isnan(amounts)
    if wrong.any():
        wrong &= array.is_valid().to_numpy(zero_copy_only=False)  # in other columns NaN is null by now
    if wrong.any():
        problem = f"NaN in {int(wrong.sum())} of {counted(n, 'row')}; expected a number, or null for none"
        raise ColumnError(column, np.flatnonzero(wrong), problem)
    return amounts


PAID = ("reward", "event_reward", "agent_reward")
"""Columns whose sum is what a trace, or an agent of it, earned."""

_DIGITS = {"bfloat16": 8, "float16": 11, "halffloat": 11, "float32": 24, "float": 24}
"""Binary digits of types of less than double precision, by their names in tensors, NumPy, pandas and Arrow."""


def lost_to_type(values: Any, amounts: np.ndarray) -> np.ndarray:
    """How far a column's type may have moved its numbers before they came: float64 [N].

    Nothing in double precision, and where a number is an integer or ends in zeros: it was meant so.

    Args:
      values: the column.
      amounts: its numbers, float64 [N].

    Examples:
      >>> lost_to_type(np.float16([0.75, 0.9, 3]), np.array([0.75, 0.89990234375, 3.0])).tolist()
      [0.0, 0.000244140625, 0.0]
    """
    if (digits := _DIGITS.get(type_name(values))) is None:
        return np.zeros(len(amounts))
    size = np.nan_to_num(np.abs(amounts), posinf=0.0)
    mantissa, exponent = np.frexp(size)
    is_meant = (np.ldexp(mantissa, digits) % 8 == 0) | ((size == np.floor(size)) & (size < 2**digits))
    return np.where(is_meant, 0, np.ldexp(0.5, exponent - digits))


def type_name(values: Any) -> str:
    """The type of a column's numbers in small letters, as its library calls it; of a list that of the first.

    Examples:
      >>> type_name(np.float16([0.5])), type_name([np.float32(0.5)])
      ('float16', 'float32')
    """
    column = values[0] if isinstance(values, list | tuple) and values else values
    kind = getattr(column, "dtype", getattr(column, "type", None))
    return str(getattr(kind, "name", kind)).lower().removeprefix("torch.").partition("[")[0]


def nulls(values: Any, n: int) -> np.ndarray:
    """Rows of a column of numbers that state none, bool [N]: null, None or masked. NaN is a number that went wrong.

    In a column of pandas NaN is null, which files made of it have.
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values)
    if isinstance(values, list | tuple) or (isinstance(values, np.ndarray) and values.dtype == object):
        return np.array([entry is None for entry in values], bool)
    ask = getattr(values, "is_null", getattr(values, "isna", None))
    return np.zeros(n, bool) if ask is None else np.asarray(ask(), bool)


def truths(column: str, values: Any, n: int) -> np.ndarray:
    """Truth values as bool [N], from True and False or 1 and 0.

    Raises:
      ColumnError: another value, with its rows, or none.
    """
    if n and type(values) is np.ndarray and values.dtype == np.bool_ and values.shape == (n,):
        return values.copy()
    array = as_arrow(column, values, n)
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise ColumnError(column, [], f"values are of type {kind}; expected True or False")
    chosen = numbers(column, array, n)
    odd = (chosen != 0) & (chosen != 1)
    if odd.any():
        row = int(np.argmax(odd))
        problem = (
            f"values are not all True or False, {excerpt(array[row].as_py())} in row {row}; expected True or False"
        )
        raise ColumnError(column, np.flatnonzero(odd), problem)
    truth: np.ndarray = chosen == 1
    return truth


def as_arrow(column: str, values: Any, n: int | None) -> pa.Array:
    """A column as one Arrow array of one type, [N].

    Raises:
      ColumnError: it is no column, mixes types, is empty, or has not `n` rows.
    """
    if isinstance(values, str | bytes):
        raise ColumnError(column, [], f"is the text {excerpt(values)}; expected a column, one entry a row")
    if isinstance(values, set | frozenset | Mapping):
        raise ColumnError(column, [], f"is a {type(values).__name__}, which has no order of rows; expected a column")
    try:
        if isinstance(values, pa.ChunkedArray):
            array = values.unify_dictionaries().combine_chunks()
        elif isinstance(values, pa.Array):
            array = values
        else:
            if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
                values = np.asarray(values)  # tensors and JAX arrays
            kind = getattr(values, "dtype", None)
            if isinstance(kind, np.dtype) and kind.kind in "fV" and np.can_cast(kind, np.float64):
                values = values.astype(np.float64)  # exact; Arrow has no bfloat16 and no swapped bytes
            array = _array_of(values)
    except OverflowError:
        raise ColumnError(column, [], "has an integer beyond 64 bits; expected integers below 2⁶³, or texts") from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        _refuse_mixed(column, values)
        raise ColumnError(column, [], f"cannot be read as one column of one type: {error}") from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    array = _with_kernels(array)
    if n is not None and len(array) != n:
        raise ColumnError(column, [], f"has {counted(len(array), 'row')}; column 'trace' has {n}")
    if len(array) == 0:
        raise ColumnError(column, [], "has no rows; expected at least one")
    return array


def _array_of(values: Any) -> Any:
    """An Arrow array of a column; tensors and arrays without dimensions, as of a loop over rows, are their numbers."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        scalars = [getattr(entry, "ndim", None) == 0 for entry in values] if isinstance(values, list | tuple) else []
        if not any(scalars):
            raise
        plain = [entry.item() if scalar else entry for entry, scalar in zip(values, scalars, strict=True)]
        return pa.array(plain, from_pandas=True)


def _refuse_mixed(column: str, values: Any) -> None:
    """Refuse the first entry that is of another type than those before it, if there is one."""
    entries = list(values) if isinstance(values, list | tuple) or getattr(values, "ndim", 0) == 1 else []

    def mixes(count: int) -> bool:
        try:
            pa.array(entries[:count], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return True
        return False

    row = bisect.bisect_left(range(1, len(entries) + 1), True, key=mixes)  # more entries mend no mixture
    if row == len(entries):
        return
    before = next((entry for entry in entries[:row] if entry is not None and entry == entry), None)  # NaN is none
    found = f"{excerpt(entries[row])} is of type {type(entries[row]).__name__}"
    beside = "" if before is None else f", and {excerpt(before)} before it of type {type(before).__name__}"
    raise ColumnError(column, [row], f"{found}{beside}; expected texts or numbers, all of one type")


def _with_kernels(array: pa.Array) -> pa.Array:
    """The same values in layouts that Arrow's functions know: runs, and views of strings, are unknown to most."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type) and pa.types.is_string_view(array.type.value_type):
        return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array


def _no_nulls(column: str, array: pa.Array) -> None:
    if array.null_count:
        _refuse_missing(column, array.is_null().to_numpy(zero_copy_only=False))


def _refuse_missing(column: str, missing: np.ndarray) -> NoReturn:
    lacking = f"no id, but null or NaN, in {int(missing.sum())} of {counted(len(missing), 'row')}"
    raise ColumnError(column, np.flatnonzero(missing), f"{lacking}; expected a string or an integer")


def finite(column: str, values: np.ndarray, advice: str) -> np.ndarray:
    """The values, all of which must be finite, also as float32.

    Raises:
      ColumnError: they are not, with their rows; `advice` ends the message.
    """
    bad = ~(np.abs(values) <= np.finfo(np.float32).max)
    if bad.any():
        problem = f"no finite number, or beyond float32, in {int(bad.sum())} of {counted(len(values), 'row')}; {advice}"
        raise ColumnError(column, np.flatnonzero(bad), problem)
    return values


def in_range(
    column: str, kind: str, amounts: np.ndarray, within: Range, *, none: str = "or null or NaN for none"
) -> np.ndarray:
    """Numbers in a range, counts where `kind` is "count", or marks of 0 and 1 where it is "flag", as logs may state.

    NaN is none, which `none` says in the error.

    Raises:
      ColumnError: a count that is no integer; another mark than 0 and 1; a number beyond the range, or infinite.
    """
    fits, expected = (amounts >= within.least) & (amounts <= within.most), within.words
    if kind == "count":
        fits &= amounts == np.floor(amounts)
        expected = f"an integer from 0 to {LARGEST_COUNT}"
    elif kind == "flag":
        fits, expected = (amounts == 0) | (amounts == 1), "0 or 1, False or True"
    odd = ~(fits | np.isnan(amounts))
    if odd.any():
        what = f"{amounts[int(np.argmax(odd))]:g} in {int(odd.sum())} of {counted(len(odd), 'row')}"
        raise ColumnError(column, np.flatnonzero(odd), f"{what}; expected {expected}, {none}")
    return amounts


def renumber(keys: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers in [0, room) as dense ids by first appearance, int64 [N], and the row where each first appears."""
    if room > SPARSE * len(keys):
        encoded = pa.array(keys).dictionary_encode()
        keys, room = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    return by_appearance(keys, room)


def unlike_indices(columns: Mapping[str, Any]) -> str:
    """Two columns of pandas whose indices differ, in words: rows are taken by their place; "" without any.

    Args:
      columns: by name, of any kind.
    """
    indexed = [(name, column.index) for name, column in columns.items() if hasattr(column, "iloc")]
    for name, index in indexed[1:]:
        if not index.equals(indexed[0][1]):
            pair = f"columns {indexed[0][0]!r} and {name!r}"
            return f"{pair} have unlike indices of pandas, and rows are taken by their place"
    return ""
