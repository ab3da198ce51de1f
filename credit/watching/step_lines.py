"""A step as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["step_lines"]

LEDGER, ROLE, ALIGNMENT = "credit/ledger/", "credit/ledger/role/", "credit/alignment/"


def step_lines(row: Mapping[str, Any]) -> list[str]:
    """One to three lines: traces and their signal, the ledger by role, alignment with other methods.

    Args:
      row: a line of `metrics.jsonl`.

    Examples:
      >>> row = {"step": 3, "credit/groups_that_teach": 0.5, "credit/groups": 8.0, "credit/snr": 1.25}
      >>> step_lines(row)
      ['step 3: 8 groups, 50 % teach; signal-to-noise 1.25']
    """
    name = f" ({row['logs']})" if "logs" in row else ""
    first = []
    if "credit/groups" in row:
        first.append(f"{row['credit/groups']:.0f} groups")
    if "credit/groups_that_teach" in row:
        first.append(f"{100 * row['credit/groups_that_teach']:.0f} % teach")
    if row.get("credit/refused"):
        first.append(f"{100 * row['credit/refused']:.0f} % of actions without an answer")
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
