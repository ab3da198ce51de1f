"""What the values are that each benchmark gives to methods that need them: the sentence of its tables and figures."""

from __future__ import annotations

__all__ = ["GIVEN_VALUES"]

GIVEN_VALUES = {
    "bias": "values: the true ones; in rows named wrong, with errors",
    "truth": "values: the true ones",
    "robustness": "values: the true ones",
    "snr": "values: true ones plus errors as large as a decision's effect, where a scheme names no others",
    "train": "values: a critic's, learned from earlier steps; of oracles the true ones",
}
"""By the command of `credit bench`. `value`, `q_value` and `target_value` are meant."""
