"""A trainer's switch of GRPO's standard deviation, as options of `RowAdvantages`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

__all__ = ["with_switch"]


def with_switch(method: str, options: Mapping[str, Any], by_std: bool) -> dict[str, Any]:
    """The options of a method, with those that leave out the division by a group's spread where the switch is off.

    An option `scale` or `scaled` goes before the switch. Methods that compare within a trace or whiten the whole batch
    stay as they are: the switch leaves a trainer's own such estimators alone, too.

    Examples:
      >>> with_switch("grpo", {}, by_std=False)
      {'scaled': False}
      >>> with_switch("grpo", {"scale": "std"}, by_std=False), with_switch("reinforce_pp", {}, by_std=False)
      ({'scale': 'std'}, {})

    Args:
      method: its name; one that the registry does not have keeps its options.
      options: of `RowAdvantages`.
      by_std: the trainer's switch.
    """
    from credit.methods.registry import METHODS  # with JAX, which trainers that look for plugins should not load

    chosen = dict(options)
    if by_std or method not in METHODS or {"scale", "scaled"} & set(chosen) or METHODS[method].scope != "group":
        return chosen
    scale = inspect.signature(METHODS[method].fn).parameters.get("scale")
    inside = {"scale": "none"} if scale is not None and scale.default == "std" else {}
    return {**chosen, "scaled": False, **inside}
