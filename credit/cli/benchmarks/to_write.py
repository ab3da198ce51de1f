"""What may be written of a run in a paper: sentences, a fact each, on numbers, conditions and how many they are of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from credit.cli.benchmarks.both_ways import both_ways
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
    "train": {"area": "The share (J − J₀) / (J* − J₀), averaged over the budget,"},
    "robustness": {"taken": "The part of all |advantages| that inserted actions take"},
}
"""By benchmark its quantities, the main one first, and the subjects of their sentences."""
SAID_OF_ALL = {
    "bias": "It is exact, by enumeration",
    "truth": "An offset of all advantages does not change it",
    "snr": "An offset of all advantages counts as noise",
    "train": "It is the median over seeds",
    "robustness": "The true credit of inserted actions is 0",
}
OF_BOTH = {"truth": "decisions", "snr": "traces"}
LESS = {"train": "The median of the differences by seed"}
"""What a difference is where it is not that of the two numbers."""
TESTED = "The signed-rank test over seeds has {}p < 0.05 after Holm's correction"


def to_write(numbers: Sequence[Measured], quantities: Iterable[str] = ()) -> list[str]:
    """Sentences on each function of one's own, or else on the last method, beside the first one.

    Without differences, which are from the first method, the first published one takes its place.
    They are of the condition under which the two differ most (`both_ways`), name that at the other end, and count the
    conditions of either direction. What they say stands in the numbers.
    A difference is in them where both have the same rate and the same draws. What is so of several quantities comes
    first, once.

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
        values = " and ".join(f"{n._replace(mark='').cell} for {n.method}" for n in told)
        sentences = [f"{SUBJECTS[bench][quantity]} is {values}", SAID_OF_ALL.get(bench, "")]
        for n in less:
            cell = n._replace(mark="").cell
            counts = {t.n for t in told} | ({n.n} if bench == "truth" else set())
            shared = f" on the {n.n:,} {OF_BOTH[bench]} of both" if n.n and len(counts) > 1 else ""
            apart_by = f"{LESS.get(bench, 'The difference')} is {cell}"
            sentences.append(
                (f"Both are equal {_beside([n]) or 'but for rounding'}" if cell == EQUAL else apart_by) + shared
            )
        if less and bench == "train":
            limits = [caveat for caveat in said(less, "caveats") if caveat.startswith((UNTESTED, CORRECTED))]
            untested = any(caveat.startswith(UNTESTED) for caveat in limits)
            sentences += [*[TESTED.format("" if "*" in less[0].mark else "no ")] * (not untested), *limits]
        sentences.append(f"Conditions: {condition(most, shared_conditions([most]))}")
        equal = f"Both are equal in {'both' if len(both) == 2 else f'all {len(both)}'} conditions {_beside(of_both)}"
        sentences += [equal.rstrip()] * (ways.are_equal and len(both) > 1) or ways.says
        edge = [n.method for n in here if n.quantity == "rate" and AT_EDGE in n.mark]
        rates = "rates of {} are" if len(edge) > 1 else "rate of {} is"
        sentences += [f"The {rates.format(' and '.join(edge))} at the edge of those tried"] * bool(edge)
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
