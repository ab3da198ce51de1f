"""What may be written of a run in a paper: sentences, a fact each, on numbers, conditions and how many they are of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from credit.cli.benchmarks.both_ways import OTHER_RATES, both_ways
from credit.cli.benchmarks.measured import (
    AT_EDGE,
    CORRECTED,
    EQUAL,
    OFFSET,
    UNTESTED,
    Measured,
    brackets,
    condition,
    place,
    refused,
    said,
    shared_conditions,
    unbounded,
)
from credit.cli.shared.answers import stdout, words
from credit.cli.shared.provenance import release
from credit.methods.own_functions import is_own

__all__ = ["of_release", "print_to_write", "to_write"]

SUBJECTS = {
    "bias": {
        "bias": "The bias of the policy gradient, |E g − ∇J| / |∇J|,",
        "cosine": "The cosine of the mean gradient and the true one",
        "variance": "The variance of the policy gradient, times the runs of a batch, over |∇J|²,",
        "relative": "The variance of the policy gradient, times the runs of a batch, over |E g|²,",
        "error": "The mean squared error of centred advantages, over the mean square of true increments,",
        "rank": "Kendall's τ-b of centred advantages and true increments",
        "sign": "The part of centred advantages with the sign of the true increment",
        "answered": "The part of the decisions with an advantage",
    },
    "truth": {"correlation": "The correlation of advantages with true increments"},
    "snr": {"snr": "The signal-to-noise ratio of one decision's advantage"},
    "train": {"area": "The median share (J − J₀) / (J* − J₀), averaged over the budget,"},
    "robustness": {"taken": "The part of all |advantages| that inserted actions take"},
}
"""By benchmark its quantities, the main one first, and the subjects of their sentences."""
SAID_OF_ALL = {
    "bias": "It is exact, by enumeration",
    "truth": "An offset of all advantages does not change it",
    "snr": "An offset of all advantages counts as noise",
    "robustness": "The true credit of inserted actions is 0",
}
OF_BOTH = {"truth": "decisions", "snr": "traces"}
LESS = {"train": "The median difference"}
"""What a difference is where it is not that of the two numbers."""
P_VALUES = ("p", "p at one rate")


def to_write(numbers: Sequence[Measured], quantities: Iterable[str] = ()) -> list[str]:
    """Sentences on each function of one's own, or else on the last method, beside the first one.

    Without differences, which are from the first method, the first published one takes its place.
    They are of the condition under which the two differ most (`both_ways`), name that at the other end, and count the
    conditions of either direction. What they say stands in the numbers.
    A difference is in them where both have the same draws, with a word where rates differ. What is so of several
    quantities comes first, once.

    Args:
      numbers: of one benchmark.
      quantities: of `SUBJECTS`, each a sentence; default the main one.

    Examples:
      >>> row = Measured("rloo", "bias", 0.0, world="relay-and", group_size=2, bench="bias")
      >>> print(to_write([row])[0].partition(" Source: ")[0])
      The bias of the policy gradient, |E g − ∇J| / |∇J|, is 0 for rloo. It is exact, by enumeration. Conditions: \
relay-and, groups of 2.
    """
    asked = [*quantities] or [*SUBJECTS[numbers[0].bench]][:1]
    told = [facts for quantity in asked for facts in _of_quantity(numbers, quantity)]
    if len(asked) > 1 < len(told):
        shared = [fact for fact in told[0] if all(fact in facts for facts in told)]
        told = [[fact for fact in facts if fact not in shared] for facts in told]
        told[:0] = [[f"Of each number below: {shared[0][0].lower()}{shared[0][1:]}", *shared[1:]]] if shared else []
    return [f"{'. '.join(facts)}." for facts in told]


def _of_quantity(numbers: Sequence[Measured], quantity: str) -> list[list[str]]:
    """Of each method the facts on one quantity; none where no method has it."""
    bench = numbers[0].bench
    found = [n for n in numbers if n.quantity == quantity and not math.isnan(n.value) and n.learning_rate is None]
    plain = [n for n in found if not n.less]
    names = list(dict.fromkeys(n.method for n in plain))
    published = [] if any(n.less for n in found) else [name for name in names if not is_own(name)]
    base = next(iter([*published, *names]), "")
    firsts = {_run(n): n for n in plain if n.method == base}

    def about(name: str) -> list[str]:
        of_name = [n for n in plain if n.method == name]
        both = [n for n in of_name if _run(n) in firsts] if name != base else []
        of_both = [n for n in found if (n.method, n.less) == (name, base)]
        ways = both_ways(both or of_name[:1], [firsts.get(_run(n), n) for n in both or of_name[:1]], of_both)
        most, less = ways.most, [ways.less] if ways.less else []
        told = list(dict.fromkeys([most, firsts.get(_run(most), most)]))
        here = [n for n in numbers if n.method in (name, told[-1].method) and _run(n) == _run(most)]
        rates = {n.method: n for n in here if n.quantity == "rate"}
        at = {name: f" at rate {rates[name].shown}" if name in rates else "" for name in (n.method for n in told)}
        of_all = f", both{at[name]}" if len(told) > len({*at.values()}) and at[name] else ""
        values = " and ".join(f"{_bare(n)} for {n.method}{'' if of_all else at[n.method]}" for n in told)
        sentences = [f"{SUBJECTS[bench][quantity]} is {values}{of_all}", SAID_OF_ALL.get(bench, "")]
        for n in less:
            cell = _bare(n)
            counts = {t.n for t in told} | ({n.n} if bench == "truth" else set())
            shared = f" on the {n.n:,} {OF_BOTH[bench]} of both" if n.n and len(counts) > 1 else ""
            apart_by = f"{LESS.get(bench, 'The difference')} is {cell}"
            sentences.append(
                (f"Both are equal {_beside([n]) or 'but for rounding'}" if cell == EQUAL else apart_by) + shared
            )
        if less and bench == "train":
            sentences[-1] += _p_values(less, numbers)[0]
            own = {n.shown for n in rates.values()}
            ones = [n for n in numbers if (n.quantity, n.method) == (f"{quantity} at one rate", name)
                    and _run(n)[:3] == _run(most)[:3] and own != {f"{n.learning_rate:g}"}]  # fmt: skip
            untested = [text for text in said(less, "caveats") if text.startswith(UNTESTED)]
            sentences += ["The rates differ, which may be why"] * (OTHER_RATES in less[0].mark)
            sentences += _at_one_rate(ones, numbers) + untested
        sentences.append(f"Conditions: {condition(most, shared_conditions([most]))}")
        equal = f"Both are equal in {'both' if len(both) == 2 else f'all {len(both)}'} conditions {_beside(of_both)}"
        sentences += [equal.rstrip()] * (ways.are_equal and len(both) > 1) or ways.says
        sentences += [_without(n, numbers) for n in told]
        edge = [name for name, n in rates.items() if AT_EDGE in n.mark]
        of_edge = "Both rates are" if len(edge) > 1 else f"The rate of {''.join(edge)} is"
        sentences += [f"{of_edge} at the edge of those tried"] * bool(edge)
        ends = [ways.other_less] if ways.other_less else []
        notes = [*_counts(told), *brackets([*told, *less, *ends]), *unbounded(told, less), *said(told, "given")]
        sentences += [f"{note[0].upper()}{note[1:]}" for note in notes] + refused(here)
        return [*filter(None, sentences), of_release(bench).removesuffix(".")]

    others = [name for name in names if name != base]
    return [about(name) for name in [name for name in others if is_own(name)] or others[-1:] or names]


def of_release(bench: str) -> str:
    """The sentence on what made a number: the command, the release, and the commit of what was not released."""
    return f"Source: `credit bench {bench}` of {release()}."


def print_to_write(sentences: Iterable[str]) -> None:
    """Print each sentence as a line."""
    for line in sentences:
        stdout().print(words(f"to write: {line}"), soft_wrap=True)


def _bare(number: Measured) -> str:
    return number._replace(mark="").cell


def _p_values(less: Sequence[Measured], numbers: Iterable[Measured]) -> list[str]:
    """Behind each difference of training its p-value, and behind the last over what it is corrected; "" untested."""
    corrected = [text for text in said(less, "caveats") if text.startswith(CORRECTED)]
    if not corrected:
        return [""] * len(less)
    found = {(n.method, n.world, n.group_size, n.learning_rate): n.cell for n in numbers if n.quantity in P_VALUES}
    told = [f", p = {found[n.method, n.world, n.group_size, n.learning_rate]}" for n in less]
    over = corrected[0].partition(" over ")[2].partition(":")[0].replace(" distinct", "")
    return [*told[:-1], f"{told[-1]} (signed-rank, Holm over {over})"]


def _at_one_rate(ones: Sequence[Measured], numbers: Iterable[Measured]) -> list[str]:
    """The difference where both methods have one rate, for each that they were trained at besides."""
    told = [
        f"at rate {n.learning_rate:g} it is {n.shown.partition(', ')[0]}{p}"
        for n, p in zip(ones, _p_values(ones, numbers), strict=True)
    ]
    return [f"With both {', '.join(told)}"] * bool(told)


def _without(number: Measured, numbers: Iterable[Measured]) -> str:
    """In how many conditions the method has no such number, and what these share; "" if it has all."""
    what = (number.method, number.quantity, "", None)
    of_method = [n for n in numbers if (n.method, n.quantity, n.less, n.learning_rate) == what]
    lacks = [n for n in of_method if math.isnan(n.value)]
    if not lacks:
        return ""
    shared = condition(lacks[0], shared_conditions(lacks) - shared_conditions(of_method))
    told = f"{number.method} has no number in {len(lacks)} of {len(of_method)} conditions"
    return f"{told}, {shared}" if shared else told


def _beside(less: Iterable[Measured]) -> str:
    """By what advantages differ though the quantity is equal; "" where nothing is known of it."""
    return f"{OFFSET} of the advantages" * any(OFFSET in n.mark for n in less)


def _run(number: Measured) -> tuple[object, ...]:
    """What tells conditions apart."""
    return number.settings, *place(number)[2:]


def _counts(told: Sequence[Measured]) -> list[str]:
    counts = {n.method: f"{n.n:,} decisions" for n in told if n.n and n.n != n.independent}
    if len(set(counts.values())) < 2:
        return [f"counted: {count}" for count in [*counts.values()][:1]]
    return ["counted: " + " and ".join(f"{count} for {method}" for method, count in counts.items())]
