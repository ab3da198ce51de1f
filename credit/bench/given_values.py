"""What the values are that each benchmark gives to methods that need them: the sentence of its tables and figures."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["GIVEN_VALUES", "VALUES", "values_given"]

GIVEN_VALUES = {
    "bias": "values: the true ones; in rows named wrong, with errors",
    "truth": "values: the true ones",
    "robustness": "values: the true ones",
    "snr": "values: true ones plus errors as large as a decision's effect, where a scheme names no others",
    "train": "values: a critic's, learned from earlier steps; of oracles the true ones",
}
"""By the command of `credit bench`."""

VALUES = frozenset({"value", "q_value", "target_value"})
"""The evidence that is meant."""


def values_given(bench: str, needs: Iterable[str]) -> str:
    """The sentence, where a method that was measured needs values; else "".

    Examples:
      >>> values_given("truth", ["value"]), values_given("truth", ["tokens"])
      ('values: the true ones', '')
    """
    return "" if VALUES.isdisjoint(needs) else GIVEN_VALUES[bench]
