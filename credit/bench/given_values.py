"""What the evidence is that each benchmark gives to methods that need it: the sentence of its tables and figures."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from credit.methods.own_functions import is_own, load_function

__all__ = ["GIVEN_VALUES", "VALUES", "WRONG", "unpaid", "values_given"]

GIVEN_VALUES = {
    "bias": "values: the true ones",
    "truth": "values: the true ones",
    "robustness": "values: the true ones",
    "snr": "values: true ones plus errors as large as a decision's effect, where a scheme names no others",
    "train": "values: a critic's, learned from earlier steps; of oracles the true ones",
}
"""By the command of `credit bench`."""

WRONG = "in rows named wrong, with errors"
"""What `credit bench bias` adds where there are such rows."""

SIBLINGS = "siblings: four alternatives of each decision, one run of the rest for each"
"""What `credit bench truth` gives."""

VALUES = frozenset({"value", "q_value", "target_value"})
"""The evidence that is meant."""


ONE_TOKEN = ("bias", "snr")
"""Benchmarks whose decisions have one token each, so that the length of a trace is its number of decisions."""


UNPAID = (
    "no event has a reward of its own here: functions of your own were measured without `event_reward`; "
    "`credit bench bias --world stop-rewards` measures it"
)


def unpaid(names: Iterable[str]) -> list[str]:
    """What the screen, not a paper, says of functions of one's own with `event_reward` where logs have no such rewards.

    Args:
      names: of methods.

    Examples:
      >>> unpaid(["rloo"]), len(unpaid(["rloo", "estimators:rloo"]))
      ([], 1)
    """
    return [UNPAID] * any("event_reward" in inspect.signature(load_function(name)).parameters
                          for name in names if is_own(name))  # fmt: skip


def values_given(bench: str, needs: Iterable[str], *, wrong: bool = False) -> str:
    """The sentence, where a method that was measured needs values, or tokens where all decisions have one; else "".

    Args:
      bench: the command.
      needs: evidence of the methods.
      wrong: whether some values have errors, which their rows are named for.

    Examples:
      >>> values_given("truth", ["value"]), values_given("truth", ["tokens"]), values_given("bias", ["tokens"])
      ('values: the true ones', '', 'tokens: one a decision')
    """
    given = set(needs)
    told = [GIVEN_VALUES[bench], *[WRONG] * wrong] * (not VALUES.isdisjoint(given))
    told += [SIBLINGS] * (bench == "truth" and "context" in given)
    return "; ".join(told + ["tokens: one a decision"] * (bench in ONE_TOKEN and "tokens" in given))
