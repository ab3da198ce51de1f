"""Whether the mix of kinds of tasks changed: rates of all tasks may then differ by that alone (Simpson's paradox)."""

from __future__ import annotations

import numpy as np

from graphs.dealing import dealt
from graphs.task_means import LEVEL, holm
from graphs.text import part_of, printable

__all__ = ["changed_mix"]


def changed_mix(kinds: tuple[list[str], np.ndarray], side: np.ndarray, task: np.ndarray) -> str:
    """That the part of a kind of tasks changed most of those that did so beyond chance; "" where none did.

    Args:
      kinds: of `task_kinds`: their names, and that of each trace.
      side: 0 or 1 of each trace, -1 for none: int [traces].
      task: of each trace: int [traces].

    Reference: Simpson 1951, The interpretation of interaction in contingency tables; Holm 1979.

    Examples:
      >>> side, kind = np.repeat([0, 1], 20), np.repeat([0, 1, 0], [15, 10, 15])
      >>> changed_mix((["easy", "hard"], kind), side, np.arange(40)), changed_mix(([], kind), side, np.arange(40))
      ('', '')
      >>> changed_mix((["easy", "hard"], np.repeat([0, 1], [22, 18])), side, np.arange(40))
      'the mix of tasks changed: easy 20 of 20 (100 %) to 2 of 20 (10 %)'
    """
    names, of_trace = kinds
    rows = [np.flatnonzero(side == one)[np.unique(task[side == one], return_index=True)[1]] for one in (0, 1)]
    if not names or not all(map(len, rows)):
        return ""
    kind, second = of_trace[np.concatenate(rows)], np.repeat([False, True], [*map(len, rows)])
    told = np.unique(kind)
    p = holm([dealt(kind == one, second, np.zeros(len(kind))).p for one in told])
    count = np.array([[(kind[of] == one).sum() for of in (~second, second)] for one in told])
    apart = np.abs(np.diff(count / [*map(len, rows)])[:, 0]) * (np.array(p) < LEVEL)
    most = int(apart.argmax())
    if not apart[most]:
        return ""
    name = printable(names[told[most]], 40) if told[most] >= 0 else "without a kind"
    return f"the mix of tasks changed: {name} {' to '.join(map(part_of, count[most].tolist(), map(len, rows)))}"
