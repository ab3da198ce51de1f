"""Whether a method's policy gradient has no bias on a log: of the method, its options, and notes on the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from credit.doubts_of_log import BREAKING, doubts_of_log
from credit.method_summary import Summary
from credit.methods.registry import METHODS
from credit.methods.running import implied, run
from credit.reports.own_outcomes import has_agent_outcomes
from credit.untold_order import said_of_order, traces_untold
from graphs.traces.batch import Traces

__all__ = ["OnLog", "on_log"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnLog:
    """What is known of a method's bias on a log.

    Attributes:
      unbiased: whether its policy gradient has no bias, of the policy that sampled each trace; None where that is open.
      but: why it is biased under `by`, or what leaves that open; else "".
      by: the key by which it compares there, "" for its own.
    """

    unbiased: bool | None = None
    but: str = ""
    by: str = ""


def on_log(
    traces: Traces,
    name: str,
    evidence: Collection[str] = (),
    *,
    options: Mapping[str, Any] | None = None,
    control: bool = False,
) -> OnLog:
    """Whether a method has no bias on a log. It is run where it compares by another key than its own.

    Args:
      evidence: what it takes besides its needs.
      options: of the method.
      control: whether its claims are to be control variates, which a log may break though it is biased by itself.
    """
    method = METHODS[name]
    keyed = implied(method.fn, options or {}, of_agents="agent_reward" in evidence or has_agent_outcomes(traces))
    kinds = BREAKING | ({"several-versions"} if control else set())
    unbiased: bool | None = method.unbiased
    but = ""
    if keyed:  # not the comparison of the table of methods
        tried = Summary()
        tried.add(traces, run(traces, name, evidence=evidence, **(options or {})), name, options or {}, given=evidence)
        unbiased, but = method.unbiased_with(keyed, tried.seen)
    broken = next(doubts_of_log(traces, method, keyed, kinds), "")
    of_order = traces, method, keyed, traces.evidence
    broken = broken or said_of_order(traces_untold(*of_order))
    if broken and (unbiased or control):
        unbiased, but = None, broken
    return OnLog(unbiased=unbiased, but=but, by=keyed.get("by", ""))
