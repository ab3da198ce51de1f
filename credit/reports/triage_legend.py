"""What the columns of the triage's tables mean, in words, for the terminal and the page."""

from __future__ import annotations

__all__ = ["MARKS", "TRIAGE"]

MARKS = (("–", "–: not logged"), ("≥", "≥: a part is not logged"))
"""The signs of counts, as terms of a table."""
TRIAGE = (
    ("retries: ", "retries: failed calls made again with equal arguments"),
    (
        "loops: ",
        "loops: the same call and arguments, or up to 5 in one order, 3 or more times in a row, but for retries; "
        "messages between agents likewise",
    ),
    ("loops: –", "loops –: arguments of calls are not logged"),
    *MARKS,
)
"""Terms, each behind the column that it is about and how a cell of this begins; without a column any cell."""
