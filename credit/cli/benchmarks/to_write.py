"""What may be written of a run in a paper: sentences with numbers, their conditions and how many they are of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from credit import __version__
from credit.cli.benchmarks.measured import (
    EQUAL,
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
from credit.methods.own_functions import is_own

__all__ = ["of_release", "print_to_write", "to_write"]

MAIN = {
    "bias": ("bias", "The bias of the policy gradient, |E g − ∇J| / |∇J|, computed by enumeration,"),
    "truth": ("correlation", "The correlation of advantages with true increments"),
    "snr": ("snr", "The signal-to-noise ratio of one decision's advantage"),
    "train": ("area", "The share (J − J₀) / (J* − J₀), averaged over the budget, as median over seeds,"),
    "robustness": ("taken", "The part of all |advantages| that inserted actions take, whose true credit is 0,"),
}
"""The quantity of each benchmark, and the subject of its sentence."""


def to_write(numbers: Sequence[Measured]) -> list[str]:
    """A sentence on each function of one's own, or else on the last method, beside the first one.

    It is of the condition under which the two differ most, and says of how many. What it says stands in the numbers. A
    difference is in it where both have the same rate and the same draws.

    Args:
      numbers: of one benchmark.

    Examples:
      >>> row = Measured("rloo", "bias", 0.0, world="relay-and", group_size=2, bench="bias")
      >>> print(to_write([row])[0].removesuffix(f" {__version__})"))
      The bias of the policy gradient, |E g − ∇J| / |∇J|, computed by enumeration, is 0 for rloo \
(relay-and, groups of 2; `credit bench bias` of orchestration-credit
    """
    quantity, subject = MAIN[numbers[0].bench]
    found = [n for n in numbers if n.quantity == quantity and not math.isnan(n.value) and n.learning_rate is None]
    plain = [n for n in found if not n.less]
    names = list(dict.fromkeys(n.method for n in plain))
    firsts = {_run(n): n for n in plain if n.method == names[0]}

    def apart(number: Measured) -> float:
        return round(abs(number.value - firsts.get(_run(number), number).value), 9)

    def sentence(name: str) -> str:
        of_name = [n for n in plain if n.method == name]
        both = [n for n in of_name if _run(n) in firsts] if name != names[0] else []
        most = max(both or of_name[:1], key=apart)
        told = list(dict.fromkeys([most, firsts.get(_run(most), most)]))
        here = [n for n in numbers if n.method in (name, told[-1].method) and _run(n) == _run(most)]
        less = [n for n in found if n in here and n.less == told[-1].method and not {*"†‡"} & {*n.mark}]
        values = " and ".join(f"{n._replace(mark='').cell} for {n.method}" for n in told)
        unlike = len({n.n for n in told}) > 1
        for n in less:
            cell = n._replace(mark="").cell
            values += ", the same but for rounding" if cell == EQUAL else f", and the difference {cell}"
            values += f" on the {n.n:,} traces of both" if n.n and unlike else ""
        about = [condition(most, shared_conditions([most]))]
        where = "of {} conditions that of the largest difference" if apart(most) else "equal under all {} conditions"
        about += [where.format(len(both))] * (len(both) > 1)
        about += [*_counts(told), *brackets(told + less), *unbounded(told, less), *said(told, "given"), *refused(here)]
        about += [of_release(most.bench)]
        return f"{subject} is {values} ({'; '.join(filter(None, about))})"

    return [sentence(name) for name in [name for name in names[1:] if is_own(name)] or names[-1:]]


def of_release(bench: str) -> str:
    """What made a number: the command and the release."""
    return f"`credit bench {bench}` of orchestration-credit {__version__}"


def print_to_write(sentences: Iterable[str]) -> None:
    """Print each sentence as a line."""
    for line in sentences:
        stdout().print(words(f"to write: {line}"), soft_wrap=True)


def _run(number: Measured) -> tuple[object, ...]:
    """What tells conditions apart."""
    return number.settings, *place(number)[2:]


def _counts(told: Sequence[Measured]) -> list[str]:
    counts = {n.method: f"{n.n:,} decisions" for n in told if n.n and n.n != n.independent}
    if len(set(counts.values())) < 2:
        return [*counts.values()][:1]
    return [" and ".join(f"{count} for {method}" for method, count in counts.items())]
