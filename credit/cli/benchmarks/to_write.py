"""What may be written of a run in a paper: one sentence with numbers, their conditions and how many they are of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from credit import __version__
from credit.cli.benchmarks.measured import Measured, brackets, condition, place, refused, said, shared_conditions

__all__ = ["to_write"]

MAIN = {
    "bias": ("bias", "The bias of the policy gradient, |E g − ∇J| / |∇J|, computed by enumeration,"),
    "truth": ("correlation", "The correlation of advantages with true increments"),
    "snr": ("snr", "The signal-to-noise ratio of one decision's advantage"),
    "train": ("area", "The share (J − J₀) / (J* − J₀), averaged over the budget, as median over seeds,"),
}
"""The quantity of each benchmark, and the subject of its sentence."""


def to_write(numbers: Sequence[Measured]) -> str:
    """A line with a sentence on the last method, or the last function of one's own, beside the first one; "" of none.

    It is of the first condition under which the two have a number. What it says stands in the numbers. A difference is
    in it where both have the same rate and the same draws.

    Args:
      numbers: of one benchmark.

    Examples:
      >>> row = Measured("rloo", "bias", 0.0, world="relay-and", group_size=2, bench="bias")
      >>> print(to_write([row]).removesuffix(f" {__version__})"))
      to write: The bias of the policy gradient, |E g − ∇J| / |∇J|, computed by enumeration, is 0 for rloo \
(relay-and, groups of 2; `credit bench bias` of orchestration-credit
    """
    quantity, subject = MAIN[numbers[0].bench]
    found = [n for n in numbers if n.quantity == quantity and not math.isnan(n.value) and n.learning_rate is None]
    plain = [n for n in found if not n.less]
    if not plain:
        return ""
    names = list(dict.fromkeys(n.method for n in plain))
    own = [name for name in names if ":" in name] or names
    firsts = {_run(n): n for n in plain if n.method == names[0]}
    of_own = [n for n in plain if n.method == own[-1]]
    last = next((n for n in of_own if _run(n) in firsts), of_own[0])
    told = list(dict.fromkeys([last, firsts.get(_run(last), last)]))
    here = [n for n in numbers if n.method in (last.method, told[-1].method) and _run(n) == _run(last)]
    less = [n for n in found if n in here and n.less == told[-1].method and not {*"†‡"} & {*n.mark}]
    values = " and ".join(f"{n._replace(mark='').cell} for {n.method}" for n in told)
    cells = (n._replace(mark="").cell for n in less)
    values += "".join(", the same but for rounding" if c == "equal" else f", and the difference {c}" for c in cells)
    about = [condition(last, shared_conditions([last])), *_counts(told), *brackets(told + less), *said(told, "given")]
    about += [*refused(here), f"`credit bench {last.bench}` of orchestration-credit {__version__}"]
    return f"to write: {subject} is {values} ({'; '.join(filter(None, about))})"


def _run(number: Measured) -> tuple[object, ...]:
    """What tells conditions apart."""
    return number.settings, *place(number)[2:]


def _counts(told: Sequence[Measured]) -> list[str]:
    counts = dict.fromkeys(f"{n.n:,} decisions" for n in told if n.n and n.n != n.independent)
    return [" and ".join(counts)]
