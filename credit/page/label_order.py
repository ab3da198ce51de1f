"""The order in which a person is asked for outcomes: each beginning of it is a random sample of the log."""

from __future__ import annotations

import hashlib

import numpy as np

from credit.reports.verdict_channels import said_yes, verdict_channels
from graphs.traces.batch import Traces

__all__ = ["label_order"]


def label_order(traces: Traces) -> list[int]:
    """The rows of all traces, drawn so that each system, verdict and kind of task has its share of each beginning.

    Hashes of the traces' ids draw, so the order does not depend on that of the log, and needs no seed. The traces are
    sorted by outcome, system, verdicts and kind, then by their hashes. They are taken in the order of van der Corput
    (1935), which goes evenly through a list, from a start that is drawn, too. Verdicts of two values count.

    Args:
      traces: what was read.

    Examples:
      >>> import credit
      >>> names = [f"t{i}" for i in range(8)]
      >>> _, _, rows = credit.from_columns(group=[0] * 8, trace=names, reward=[1.0] * 4 + [0.0] * 4)
      >>> [row < 4 for row in label_order(rows.traces)]
      [False, True, True, False, False, True, True, False]
    """
    m, ids = traces.sizes.traces, traces.traces["trace"].to_pylist()
    of_task, of_system = (_numbered(traces.traces[name].to_pylist()) for name in ("task_kind", "system"))
    outcome, *verdicts = map(_answers, (np.asarray(traces.reward)[:m], *verdict_channels(traces).values()))
    rows = np.lexsort(np.array([[_drawn(name) for name in ids], of_task, *verdicts, of_system, outcome]))
    place = (np.arange(m) + _drawn("\n".join(sorted(ids)))) % m
    bits = range(m.bit_length())
    return [*map(int, rows[np.argsort(sum((place >> bit & 1) << bits[-1] - bit for bit in bits))])]


def _drawn(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest())


def _numbered(names: list[str | None]) -> np.ndarray:
    return np.unique([*map(str, names)], return_inverse=True)[1]


def _answers(numbers: np.ndarray) -> np.ndarray:
    """1 for a yes, 0 for a no, −1 for none; −1 for all where there are not two values."""
    told = np.isfinite(numbers)
    answers = np.full(len(numbers), -1)
    if (yes := said_yes(numbers[told])) is not None:
        answers[told] = yes
    return answers
