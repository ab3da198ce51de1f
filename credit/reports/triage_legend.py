"""What the columns of the triage's tables mean, in words, for the terminal and the page."""

from __future__ import annotations

__all__ = ["TRIAGE"]

TRIAGE = (
    ("calls: ", "calls: of tools, and spawns by one."),
    ("errors: ", "errors: events, or calls of a tool, whose status the log calls an error."),
    ("retries: ", "retries: calls that an agent made again, arguments and all, after they failed."),
    ("loops: ", "loops: an agent's same call, arguments and all, or up to 5 in one order, 3 or more times in a row."),
    ("tokens: ", "tokens: generated."),
    ("seconds: ", "seconds: sums of what events took, so what ran at once counts each; waiting is nobody's."),
    ("errors: –", "errors –: no log of the format states one."),
    ("retries: –", "retries –: the log lacks errors, or arguments of calls."),
    ("loops: –", "loops –: the log lacks arguments of calls."),
    ("tokens: –", "tokens –: the log has no count."),
    ("seconds: –", "seconds –: the times of the log do not tell."),
    ("≥", "≥: the log lacks lines, or tokens or `seconds` of some events."),
    ("agent: ", "Most errors come first, then retries, loops, tokens and actions."),
    ("tool: ", "Most errors come first, then retries, loops and calls."),
)
"""Sentences, each behind the column that it is about and how a cell of this begins; without a column any cell."""
