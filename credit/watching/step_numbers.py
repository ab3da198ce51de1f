"""The numbers of one batch, and their lines of text: ledger by role, signal to noise, alignment of methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from credit.ledger import Ledger
    from estimators.base import Credit

__all__ = [
    "alignment",
    "alignments",
    "groups_answered",
    "ledger_numbers",
    "noise_number",
    "signal_to_noise",
    "step_lines",
]

LEDGER, ROLE, ALIGNMENT = "credit/ledger/", "credit/ledger/role/", "credit/alignment/"
CONDITION = "credit/condition/"


def groups_answered(
    group: np.ndarray, answered: np.ndarray, advantage: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The groups of the rows, which of them teach, and which are silent: int [G], bool [G], bool [G].

    A group teaches where one of its rows has an advantage that is not 0. It is silent where some of its rows have an
    advantage, and all of these are 0. A group in which every row is refused is neither.

    Args:
      group: int [N], the group of each row, from 0.
      answered: bool [N], whether the method gives the row an advantage.
      advantage: float [N].

    Examples:
      >>> found = groups_answered(np.array([0, 0, 1, 2]), np.array([True] * 3 + [False]), np.array([1.0, -1, 0, 0]))
      >>> [array.tolist() for array in found]
      [[0, 1, 2], [True, False, False], [False, True, False]]
    """
    met = np.zeros((int(group.max(initial=-1)) + 1, 3), bool)  # rows without an answer, with one of 0, with another
    met.reshape(-1)[3 * group.astype(np.int64) + answered + (answered & (advantage != 0))] = True
    ids = np.flatnonzero(met.any(1))
    return ids, met[ids, 2], met[ids, 1] & ~met[ids, 2]


def noise_number(credit: Credit) -> dict[str, float]:
    """`{"credit/snr": signal_to_noise(credit)}`, empty where there is no ratio."""
    noise = signal_to_noise(credit)
    return {} if noise is None else {"credit/snr": noise}


def alignments(credit: Credit, others: Mapping[str, Credit]) -> dict[str, float]:
    """`credit/alignment/NAME` for each other method that has one: the `alignment` of its advantages with `credit`'s."""
    advantage = np.asarray(credit.advantage)
    found = {name: alignment(advantage, np.asarray(other.advantage)) for name, other in others.items()}
    return {f"credit/alignment/{name}": cosine for name, cosine in found.items() if not np.isnan(cosine)}


def signal_to_noise(result: Credit) -> float | None:
    """How much claims on single actions vary beyond their own standard errors: sqrt(max(V − N, 0) / N), or None.

    V is the variance of credit − baseline over the rows with an answer and a finite error, N the mean of the squared
    errors. 0 means that the differences are no larger than the errors explain. There is no ratio where all errors are
    0, and none for an estimand outside `OF_ACTIONS`: with one return a trace, V and N are the same sum of squares, and
    the ratio is √(n − 1) for `rloo` in groups of n, whatever the returns are.
    """
    from estimators.base import OF_ACTIONS

    if result.estimand not in OF_ACTIONS:
        return None
    error = np.asarray(result.stderr, np.float64)
    use = np.asarray(result.valid) & np.isfinite(error)
    if np.count_nonzero(use) < 2:
        return None
    amount = (np.asarray(result.credit, np.float64) - np.asarray(result.baseline, np.float64))[use]
    noise = float(np.mean(error[use] ** 2))
    if noise <= 0:
        return None
    return float(np.sqrt(max(float(np.var(amount)) - noise, 0.0) / noise))


def alignment(first: np.ndarray, other: np.ndarray) -> float:
    """Cosine of two methods' advantages over the rows; NaN where one is 0 throughout.

    It is the cosine of the two policy gradients where the gradients of the rows' log-probabilities are orthogonal and
    of equal length.
    """
    product = float(np.linalg.norm(first)) * float(np.linalg.norm(other))
    return float(np.dot(first, other)) / product if product > 0 else float("nan")


def ledger_numbers(ledger: Ledger, roles: Sequence[str] | None, events: np.ndarray) -> dict[str, float]:
    """Numbers of a ledger; empty where no method claims increments of single actions.

        credit/ledger/coverage                 1 − Var(unexplained) / Var(R − expected)
        credit/ledger/expected, /unexplained   mean over traces, in units of reward
        credit/ledger/role/ROLE                mean over traces of what the role's actions changed
        credit/ledger/conditions_hold, _broken, _unchecked   of the ledger's advantage "control"

    Args:
      ledger: of the batch.
      roles: the role of each of `events`; None where they have none, and the numbers by role are left out.
      events: indices of events, each at most once.
    """
    if not ledger.claims:
        return {}
    scored = np.asarray(ledger.scored)
    numbers = {
        "coverage": ledger.coverage,
        "expected": float(np.asarray(ledger.expected)[scored].mean()),
        "unexplained": float(np.asarray(ledger.unexplained)[scored].mean()),
    }
    if roles is not None:
        increments, labels = np.asarray(ledger.increments)[events], np.array([str(role) for role in roles])
        for role in sorted(set(labels)):
            numbers[f"role/{role}"] = float(increments[labels == role].sum()) / int(scored.sum())
    holds = [condition.holds for condition in ledger.advantage("control", limit=math.inf).conditions]
    for name, state in (("hold", True), ("broken", False), ("unchecked", None)):
        numbers[f"conditions_{name}"] = float(sum(held is state for held in holds))
    return {f"credit/ledger/{name}": value for name, value in numbers.items() if np.isfinite(value)}


def step_lines(row: Mapping[str, Any]) -> list[str]:
    """A step as one to three lines of text: traces, their signal and what does not hold of it, the ledger by role,
    alignment with other methods.

    Args:
      row: a line of `metrics.jsonl`.

    Examples:
      >>> row = {"step": 3, "credit/groups_that_teach": 0.5, "credit/groups": 8.0, "credit/snr": 1.25}
      >>> step_lines(row | {"credit/condition/compared": 0.0, "credit/condition/scored": 1.0})
      ['step 3: 8 groups, 50 % teach, not compared; signal-to-noise 1.25']
    """
    name = f" ({row['logs']})" if "logs" in row else ""
    first = []
    if "credit/groups" in row:
        first.append(f"{row['credit/groups']:.0f} groups")
    if "credit/groups_that_teach" in row:
        first.append(f"{100 * row['credit/groups_that_teach']:.0f} % teach")
    if row.get("credit/refused"):
        first.append(f"{100 * row['credit/refused']:.0f} % of actions without an answer")
    broken = [key.removeprefix(CONDITION) for key, value in row.items() if key.startswith(CONDITION) and value < 1]
    first += [f"not {name}" for name in broken]
    noise = f"; signal-to-noise {row['credit/snr']:.2f}" if "credit/snr" in row else ""
    lines = [f"step {row['step']}{name}: {', '.join(first) or 'no numbers of groups'}{noise}"]
    roles = {key.removeprefix(ROLE): value for key, value in row.items() if key.startswith(ROLE)}
    if any(key.startswith(LEDGER) for key in row):
        parts = [f"{role} {value:+.3f}" for role, value in roles.items()]
        parts += [f"{part} {row[LEDGER + part]:+.3f}" for part in ("expected", "unexplained") if LEDGER + part in row]
        coverage = f"; coverage {row[LEDGER + 'coverage']:.2f}" if LEDGER + "coverage" in row else ""
        lines.append(f"  ledger: {', '.join(parts)}{coverage}")
    aligned = {key.removeprefix(ALIGNMENT): value for key, value in row.items() if key.startswith(ALIGNMENT)}
    if aligned:
        lines.append("  alignment: " + ", ".join(f"{method} {value:+.2f}" for method, value in aligned.items()))
    return lines
