"""The receipt of one event: its claims, the amount of each, its entry in the ledger, and the account of its trace."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["LEGEND", "Line", "Receipt"]

LEGEND = (
    "±: one standard error, of a claim's baseline, or of its whole amount where a method estimates that; – where it is "
    "not known: none is stated, or the traces compared with all agree. noise: within two standard errors of 0."
)
"""What the numbers of doubt of a receipt mean, wherever it is shown."""


@dataclasses.dataclass(frozen=True)
class Line:
    """One claim on the event.

    Attributes:
      claim: its name, as given.
      estimand, source, unit: of the claim.
      wanted: its own number, credit − baseline; None where it refuses this event.
      stderr: of that number; None where it is not known. An error of 0 that was estimated, from samples that agree, is
        not known, as in the ledger.
      increment: the same as an increment, as it took part; None where it did not.
      weight: of its source in the average, under rule "increments"; None where there is no average.
      got: what it brought to the entry; None where it had no part.
      why: in words.
    """

    claim: str
    estimand: str
    source: str
    unit: str
    wanted: float | None
    stderr: float | None
    increment: float | None
    weight: float | None
    got: float | None
    why: str


@dataclasses.dataclass(frozen=True)
class Receipt:
    """The entry of one event and the account of its trace; all numbers in units of reward.

    Attributes:
      trace, event, position: the ids in the log, and the event's place in its trace, from 0.
      agent, role, type, action: of the event.
      call: for an event that no policy chose, the id of the action it is the effect of, where credit is; else "".
      rule: of the ledger.
      lines: a line a claim.
      rest: what the entry has that no line brought: the even part of a split by shares, what the exact total moved
        under rule "reconcile", and rounding to the grid of exact arithmetic.
      naive: what adding the claims up would have paid here.
      entry, stderr: the event's entry in the ledger, and its standard error (None where no source stated one).
      noise: whether the entry is within two standard errors of 0; None where it states no error.
      others: Σ of the entries of the trace's other events.
      reward, expected, outcome, unexplained, remainder: of the trace: reward = expected + entry + others + outcome +
        unexplained + remainder. `reward` is None where the trace has none.
      holding_luck: of the ledger: which entries hold what `outcome` does not, in words; "" where none does.
    """

    trace: str
    event: str
    position: int
    agent: str
    role: str
    type: str
    action: bool
    call: str
    rule: str
    lines: tuple[Line, ...]
    rest: float
    naive: float
    entry: float
    stderr: float | None
    noise: bool | None
    others: float
    reward: float | None
    expected: float
    outcome: float
    unexplained: float
    remainder: float
    holding_luck: str

    def as_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        return dataclasses.asdict(self)
