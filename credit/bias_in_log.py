"""Whether a method's policy gradient has no bias on a log: of the method, its options, and notes on the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from credit.method_summary import Summary
from credit.methods.logged_siblings import has_joint_turns
from credit.methods.registry import METHODS
from credit.methods.running import implied, run
from credit.reports.own_outcomes import has_agent_outcomes
from credit.untold_order import said_of_order, untold_traces
from graphs.traces.batch import Traces
from graphs.traces.repeated_rows import REPEATED_ROWS

__all__ = ["OnLog", "on_log"]

OF_ORDER = frozenset({"unordered-rows", "rewards-at-one-time"})
BREAKING = OF_ORDER | {"outcome-again", REPEATED_ROWS}
"""Notes on a log that leave open whether a method is unbiased in it; the first are of methods that read the order.

Several policy versions in a group are none of these. A baseline of independent traces has no bias, whoever sampled
them; within versions it has the variance of a smaller group. A claim that is to have mean 0 needs siblings of one.
"""


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


def on_log(traces: Traces, name: str, evidence: Collection[str] = (), *, control: bool = False) -> OnLog:
    """Whether a method has no bias on a log. It is run where it compares by another key than its own.

    Args:
      evidence: what it takes besides its needs.
      control: whether its claims are to be control variates, which a log may break though it is biased by itself.
    """
    method = METHODS[name]
    keyed = implied(method.fn, {}, of_agents="agent_reward" in evidence or has_agent_outcomes(traces))
    breaking = BREAKING | ({"several-versions"} if control else set())
    unbiased: bool | None = method.unbiased
    but = ""
    if keyed:  # not the comparison of the table of methods
        tried = Summary()
        tried.add(traces, run(traces, name, evidence=evidence), name, {}, given=evidence)
        unbiased, but = method.unbiased_with(keyed, tried.seen)
    if not method.reads_order(keyed, traces.evidence):
        breaking -= OF_ORDER
    broken = next((f"{note.field} is {note.value}" for note in traces.problems if note.kind in breaking), "")
    if not broken and method.reads_order(keyed, ()) and has_joint_turns(traces):
        broken = "agents act at once, and the order of their rows, maybe that in which they ended, numbers their turns"
    broken = broken or said_of_order(untold_traces(traces, method, keyed, traces.evidence))
    if broken and (unbiased or control):
        unbiased, but = None, broken
    return OnLog(unbiased=unbiased, but=but, by=keyed.get("by", ""))
