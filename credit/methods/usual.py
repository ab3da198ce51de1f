"""`default_methods`: what commands of several methods take where none is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from credit.methods.availability import availability
from credit.methods.running import has_outcomes

if TYPE_CHECKING:
    from graphs.traces.batch import Traces

__all__ = ["default_methods"]

USUAL = ("rloo", "turn_baseline", "gae", "critic", "c3")
"""Methods that are taken where nobody asks for others, as far as the log has their evidence."""
MOST = 3


def default_methods(traces: Traces) -> tuple[str, ...]:
    """Names of up to three methods that the logs allow; none where no trace has an outcome.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=[0, 0], trace=["a", "b"], reward=[1.0, 0.0])
      >>> default_methods(rows.traces)
      ('rloo', 'turn_baseline')
    """
    if not has_outcomes(traces):
        return ()
    states = availability(traces)
    return tuple(name for name in USUAL if states[name].state == "computable")[:MOST] or ("rloo",)
