"""Text for messages: counts with nouns, excerpts of values, and log text that is safe to print."""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "WITHOUT_ROW", "amount", "apart", "at_least", "begin_of", "counted", "cut_id", "decimals", "excerpt", "ids_cut_so",
    "interval", "natural_key", "near_names", "one_of", "part_of", "percent", "printable", "signed",
]  # fmt: skip


REPLACEMENT = "\ufffd"
WITHOUT_ROW = "Traces without a row ({})"  # `count` of `near_names`
MOST_LISTED = 12  # names of a hint where none is near; of more, the first few
MOST_COMPARED = 10_000  # names; more are not compared letter by letter, which would take seconds
LEAST_OF_PERCENT = 20
MOST_CLOSE = 20  # forms that letters find, of which numbers choose the nearest
DUST, MOST_DIGITS = 1e-9, 12
_NUMBER = re.compile(r"0*([0-9]+)")


def printable(text: str, limit: int | None = None) -> str:
    """One line of text without control, format or other invisible characters.

    White space of every kind (line ends, tabs, Unicode separators) becomes a plain space. Each control character
    (including the escape character of terminal sequences), invisible or bidirectional format character, surrogate and
    unassigned code point becomes U+FFFD, so that different names stay different. Markup characters ("[", "$") are kept:
    the caller must render the result as text, not as markup.

    Args:
      text: any string.
      limit: greatest length of the result; "…" replaces the rest of a longer text.
    """
    if limit is not None and len(text) > limit:
        text = text[: max(0, limit - 1)] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else REPLACEMENT for c in text)


def begin_of(text: str, limit: int) -> str:
    """A text cut between words, without a mark of its own before the dots.

    Examples:
      >>> begin_of("The key was denied. Ask for another one.", 22)
      'The key was denied …'
    """
    if len(text) <= limit:
        return text
    return re.sub(r"\s+\S*$", "", text[:limit]).rstrip(" .,:;…") + " …"


def ids_cut_so(cut: str, known: Iterable[str]) -> list[int]:
    """The places of the ids that begin and end like one cut by its first "…"."""
    begin, _, end = cut.partition("…")
    least = len(begin) + len(end)
    return [i for i, name in enumerate(known) if len(name) >= least and name.startswith(begin) and name.endswith(end)]


def cut_id(name: str, known: Sequence[str], limit: int) -> str:
    """An id cut at its end, or else in its middle, to the least length from `limit` on that no other id is cut to.

    Args:
      name: one of `known`.
      known: all ids; each once.
      limit: of the result, where that tells the ids apart.

    Examples:
      >>> cut_id("airline-task-12", ["airline-task-12", "retail-task-12"], 8)
      'airline…'
      >>> cut_id("airline-task-12", ["airline-task-12", "airline-task-13"], 8)
      'air…k-12'
    """
    for length in range(limit, len(name)):
        tail = length // 2
        for cut in (name[: length - 1] + "…", name[: length - 1 - tail] + "…" + name[-tail:]):
            if len(ids_cut_so(cut, known)) == 1:
                return cut
    return name


def counted(count: int, noun: str) -> str:
    """A number and its noun, with an "s" unless the number is 1."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def at_least(text: str, is_bound: bool) -> str:
    """A number as text, marked where it is a lower bound; that it is at least 0 would say nothing.

    Examples:
      >>> at_least("12", True), at_least("12", False), at_least("–", True), at_least("0", True)
      ('≥ 12', '12', '–', '0 seen')
    """
    if not is_bound or text == "–":
        return text
    return "0 seen" if text == "0" else f"≥ {text}"


def percent(share: float, digits: int = 0) -> str:
    """A share in percent, a half rounded up as on pages; what is not none or all does not read so.

    Args:
      share: from 0 to 1.
      digits: behind the point.

    Examples:
      >>> percent(0.325), percent(0.001), percent(0.999), percent(1.0), percent(0.0004, 1)
      ('33 %', '<1 %', '>99 %', '100 %', '<0.1 %')
    """
    least = 10.0**-digits
    if 0 < 100 * share < least / 2 or 100 - least / 2 <= 100 * share < 100:
        return f"<{least:.{digits}f} %" if share < 0.5 else f">{100 - least:.{digits}f} %"
    return f"{math.floor(100 * share / least + 0.5) * least:.{digits}f} %"


def part_of(some: int, of: int, noun: str = "", more: str = "") -> str:
    """A count of a whole, with percent where that is of `LEAST_OF_PERCENT` or more: 2 of 2 are no 100 %.

    Args:
      some, of: the counts.
      noun: of the whole.
      more: stands in the brackets, too.

    Examples:
      >>> part_of(2, 2), part_of(13, 37), part_of(9, 20, "runs", "5 left"), part_of(1, 2, "runs", "1 left")
      ('2 of 2', '13 of 37 (35 %)', '9 of 20 runs (45 %; 5 left)', '1 of 2 runs (1 left)')
    """
    part = percent(some / of) if of >= LEAST_OF_PERCENT else ""
    beside = "; ".join(filter(None, (part, more)))
    return f"{some} of {of}{f' {noun}' if noun else ''}{f' ({beside})' if beside else ''}"


def amount(value: float | None, digits: int = 3) -> str:
    """A number in at least `digits` digits, never with an exponent unless it is below 0.001; "–" where there is none.

    Examples:
      >>> amount(2298.4), amount(16039700.0), amount(0.4567), amount(12.0), amount(None)
      ('2,298', '16,039,700', '0.457', '12', '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:z,.0f}" if float(value).is_integer() or abs(value) >= 10**digits else f"{value:z,.{digits}g}"


def signed(value: float, digits: int = 3) -> str:
    """A difference as `amount` writes it, with its sign; 0 has none.

    Examples:
      >>> signed(2298.4), signed(-0.4567), signed(-0.0)
      ('+2,298', '-0.457', '0')
    """
    return f"{'+' if value > 0 else ''}{amount(value, digits)}"


def decimals(value: float, digits: int = 3) -> str:
    """A difference with so many digits behind the point, and with its sign; what they round to 0 has none.

    Examples:
      >>> decimals(0.4567), decimals(-0.0001)
      ('+0.457', '0.000')
    """
    return f"{value:+z.{digits}f}" if round(value, digits) else f"{0:.{digits}f}"


def interval(low: float, high: float, write: Callable[[float, int], str] = signed, digits: int = 3) -> str:
    """The interval of a difference: an end is written as 0 where it is 0, and only there, so that each tells its side.

    Args:
      low, high: its ends.
      write: `signed` or `decimals`.
      digits: the least.

    Examples:
      >>> interval(0.0, 0.4), interval(1e-17, 0.4), interval(-0.00002, 0.4, decimals)
      ('0 to +0.4', '0 to +0.4', '-0.00002 to +0.40000')
    """
    return " to ".join(apart((low, high), write, digits, beside=0.0))


def apart(
    numbers: Sequence[float], write: Callable[[float, int], str], digits: int, beside: float = math.nan
) -> list[str]:
    """Texts of numbers that stand together, with as few digits as tell different ones apart; "–" of NaN.

    Numbers that differ by less than `DUST` of the largest are rounded alike and count as equal, and such a part as 0.

    Args:
      numbers: of one sentence or one row.
      write: gives the text of a number with so many digits, as `percent` does.
      digits: the least.
      beside: a number that is not shown and that others must not read as, such as that of no difference.

    Examples:
      >>> apart([0.5004, 0.5, 0.79], percent, 0)
      ['50.04 %', '50.00 %', '79.00 %']
      >>> apart([0.3, 0.8], percent, 0), apart([0.502, 0.8], percent, 0, beside=0.5)
      (['30 %', '80 %'], ['50.2 %', '80.0 %'])
    """
    known = [*{number for number in (*numbers, beside) if math.isfinite(number)}]
    size = DUST * max(map(abs, known), default=0.0)
    known.sort()
    pairs = [(low, high) for low, high in itertools.pairwise(known) if high - low > size]
    enough = (n for n in range(digits, MOST_DIGITS) if all(write(low, n) != write(high, n) for low, high in pairs))
    digits = next(enough, digits)
    plain = [0.0 if abs(number) <= size else number for number in numbers]
    return [write(number, digits) if math.isfinite(number) else "–" for number in plain]


def rounds_away(part: float, whole: float, digits: int = 3) -> bool:
    """Whether an amount vanishes beside another one that is written with so many digits: half a unit of its last.

    So a sentence leaves out a difference that is sure and too small to matter, and parts that only rounding makes.

    Examples:
      >>> rounds_away(1.00006 - 1, 1.00006), rounds_away(-0.0000879, 0.21), rounds_away(0.02, 1.0)
      (True, True, False)
    """
    size = abs(whole)
    return abs(part) < 0.5 * 10.0 ** (math.floor(math.log10(size)) + 1 - digits) if size > 0 else part == 0


def excerpt(value: object, limit: int = 60) -> str:
    """A short printable form of an offending value on one line, for `Problem.value`."""
    text = " ".join(line.strip() for line in repr(value).splitlines())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _without_zeros(name: str) -> str:
    """A name whose numbers have no leading zeros."""
    return _NUMBER.sub(r"\1", name)


def _last_number(name: str) -> str:
    """The digits at the end of a name."""
    return name[len(name.rstrip("0123456789")) :]


def near_names(name: str, known: Iterable[str], *, shown: int = 3, count: str = "") -> str:
    """A hint for a name that does not exist: the nearest known names, or how many there are, or `count`, and some.

    Names that contain it come first, then names with similar letters. Numbers are compared without leading zeros, and
    as a whole: "task-1" is nearer to "task-01" than to "task-10".

    Examples:
      >>> near_names("task-10", ["run/task-10/trial-0", "run/task-11/trial-0"])
      'Did you mean run/task-10/trial-0?'
      >>> near_names("trace-8", ["trace-000078", "trace-000008", "trace-000080"], shown=1)
      'Did you mean trace-000008?'
      >>> near_names("x", ["a", "b"])
      'There are 2: a, b.'
      >>> near_names("x", ["a"]), near_names("x", [])
      ('There is one: a.', 'There is none.')
      >>> near_names("x", ["a", "b"], count=WITHOUT_ROW)
      'Traces without a row (2): a, b.'
    """
    names = list(dict.fromkeys(known))
    plain = {other: _without_zeros(other.lower()) for other in names}
    wanted = _without_zeros(name.lower())
    # A number at either end of the name must not go on in the other one.
    ahead, behind = ("(?<![0-9])" if wanted[:1].isdigit() else "", "(?![0-9])" if wanted[-1:].isdigit() else "")
    whole = re.compile(ahead + re.escape(wanted) + behind)
    inside = [other for other in names if name and (name.lower() in other.lower() or wanted in plain[other])]
    inside.sort(key=lambda other: not whole.search(plain[other]))
    forms = (
        difflib.get_close_matches(wanted, dict.fromkeys(plain.values()), n=MOST_CLOSE)
        if len(names) <= MOST_COMPARED
        else []
    )
    if _last_number(wanted):  # the same number at the end is nearer than more equal letters
        forms.sort(key=lambda form: _last_number(form) != _last_number(wanted))
    close = [other for form in forms for other in names if plain[other] == form]
    near = list(dict.fromkeys([*inside, *close]))[:shown]
    if near:
        return f"Did you mean {' or '.join(near)}?"
    listed = names if len(names) <= MOST_LISTED else names[:shown]
    more = ", …" if len(names) > len(listed) else ""
    if not names:
        return "There is none."
    many = count or ("There is one" if len(names) == 1 else "There are {}")
    return f"{many.format(len(names))}: {', '.join(listed)}{more}."


def natural_key(name: str) -> list[tuple[int, str]]:
    """A key that sorts runs of digits as numbers; text sorts before numbers.

    Examples:
      >>> sorted(["v10", "v9"], key=natural_key)
      ['v9', 'v10']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def one_of(name: str, known: Iterable[str]) -> str:
    """What is expected in place of an unknown name: one of all that are known, and the nearest of them.

    Examples:
      >>> one_of("mesage", ["message", "spawn"])
      'one of message, spawn. Did you mean message?'
      >>> one_of("x", ["message", "spawn"])
      'one of message, spawn'
    """
    names = list(dict.fromkeys(known))
    near = near_names(name, names)
    return f"one of {', '.join(names)}" + (f". {near}" if near.startswith("Did") else "")
