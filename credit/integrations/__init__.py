"""Credit inside trainers: one core for rows of any trainer, and one module for each trainer.

    row_advantages   rows of a trainer to advantages and metrics, compiled once: `RowAdvantages`, `rows_advantage`
    trainer_credit   what an integration of a trainer is written on: `TrainerCredit`
    watch            what to look at while training: `Watch`
    verl, trl, ...   what connects the core with each trainer; import the one that you train with

Nothing here imports a trainer, PyTorch or JAX before it is used. docs/trainers.md has the lines that a user writes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credit.integrations.rows.row_advantages import Advantages, RowAdvantages, rows_advantage
    from credit.integrations.trainer_credit import TrainerCredit
    from credit.integrations.watch import Watch
    from graphs.errors import MissingColumnWarning

__all__ = ["Advantages", "MissingColumnWarning", "RowAdvantages", "TrainerCredit", "Watch", "rows_advantage"]

_HOME = {
    **dict.fromkeys(("Advantages", "RowAdvantages", "rows_advantage"), "credit.integrations.rows.row_advantages"),
    "MissingColumnWarning": "graphs.errors",
    "TrainerCredit": "credit.integrations.trainer_credit",
    "Watch": "credit.integrations.watch",
}


def __getattr__(name: str) -> Any:
    """Load a name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
