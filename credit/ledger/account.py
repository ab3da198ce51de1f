"""`Ledger`: the entries of a batch with what users do with them: tables, files, tensors, advantages."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from credit.ledger.entries import Entries
from credit.ledger.entry_rows import ledger_table
from credit.ledger.signal import LIMIT, Kind, Signal
from credit.ledger.training import advantage
from credit.tables.bridge import to_torch
from credit.tables.files import write_table
from estimators.base import Credit
from graphs.event_graph import Array
from graphs.levels import TableLevel

if TYPE_CHECKING:
    import pyarrow as pa

    from credit.tables.batch_rows import Rows
    from graphs.traces.batch import Traces

__all__ = ["Ledger"]


@dataclasses.dataclass(frozen=True)
class Ledger(Entries):
    """An exact partition of the reward of each trace, as `credit.compose` returns it.

        R = expected + Σ increments + outcome + unexplained + remainder

    bit for bit, for each trace. Every entry is in units of reward. `credit.ledger.entries.Entries` documents the other
    attributes.

    Attributes:
      reward: float [T], R, the reward that the entries of each trace add up to.
      scored: bool [T], the traces that have a reward and entries.
      expected: float [T], what each trace was worth at its start.
      increments: float [E], what each event changed in the expected reward.
      outcome: float [T], luck: the reward minus its expectation after the last event, where `outcome=` states it;
        else 0 (`holding_luck`).
      unexplained: float [T], what the claims leave of the reward.
      remainder: float [T], what rounding leaves; it is added last.
      stderr: float [E], standard error of each increment; infinite where no source states one, NaN without a claim.
      claimed: bool [E], the events that may have an entry, because a claim covers them.
      refused: reasons of rejected claims, by name.

    Examples:
      >>> import credit, numpy as np
      >>> graph, reward, rows = credit.from_columns(group=[0] * 4, trace=[0, 0, 1, 1], reward=[1.0, 1.0, 0.0, 0.0])
      >>> amount = np.where(graph.action_mask, 0.25, np.nan)
      >>> claim = credit.claim(graph, amount, estimand="increment", source="critic")
      >>> ledger = credit.compose(graph, reward, [claim])
      >>> print(ledger.increments[:4], ledger.unexplained[:2])
      [0.25 0.25 0.25 0.25] [ 0.5 -1.5]
      >>> ledger.table(rows).column_names[:4]
      ['trace', 'group', 'entry', 'role']
    """

    def __repr__(self) -> str:
        return super().__repr__()

    def table(self, traces: Traces | Rows, level: TableLevel = "event") -> pa.Table:
        """One row an entry, Arrow: the column `amount` of a trace's rows sums to its reward.

        The amounts of a trace that is not `scored` are null, in every form.

        Columns: trace, group, entry ("expected", "increment", "outcome", "unexplained", "remainder"), what names the
        unit down to `level` (role, agent, turn_in_trace, event, type; or decision), amount, and for events stderr (null
        without a claim, infinite where no claim states one), claimed and noise (an entry within two standard errors of
        0; null where it states no error); units and exponent (the integer form: amount = units · 2**exponent; null for
        the remainder), and a column `channel:<name>` for each channel.

        Amounts are float64, also of a float32 ledger, so that text files keep every digit. What sums where: amounts
        without the remainder sum exactly in any order, in float64 and in the ledger's own type; adding the remainder
        last gives the reward bit for bit. Units sum as integers.
        """
        return ledger_table(self, traces, level)

    def write(self, traces: Traces | Rows, path: str | Path, level: TableLevel = "event") -> None:
        """Write `table` to a file, whole or not at all: .parquet, .csv, .jsonl or .arrow, by suffix."""
        write_table(self.table(traces, level), path)

    def to_torch(self, *, copy: bool = True) -> dict[str, Any]:
        """The floats as `torch.Tensor`s: increments, stderr, claimed [E], cells [E, C] and the entries of traces [T].

        Raises:
          MissingExtraError: PyTorch is not installed.
        """
        names = (
            "increments",
            "stderr",
            "claimed",
            "cells",
            "reward",
            "expected",
            "outcome",
            "unexplained",
            "remainder",
        )
        return {name: to_torch(getattr(self, name), copy=copy) for name in names}

    def advantage(
        self,
        kind: Kind = "control",
        *,
        baseline: Array | None = None,
        beta: float | Array | None = None,
        scale: str | Credit | None = None,
        decided_before: tuple[str, ...] = (),
        limit: float = LIMIT,
        strict: bool = False,
    ) -> Signal:
        """Advantages to train on; see `credit.ledger.training.advantage`, which states when they are unbiased."""
        return advantage(
            self, kind, baseline=baseline, beta=beta, scale=scale, decided_before=decided_before, limit=limit,
            strict=strict,
        )  # fmt: skip
