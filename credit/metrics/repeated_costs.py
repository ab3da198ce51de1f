"""What it cost that agents did something again: retries of calls that failed, and later rounds of loops."""

from __future__ import annotations

import dataclasses

import numpy as np

from credit.metrics.cost_summary import Amount
from credit.metrics.event_costs import Prices
from credit.metrics.part_costs import COST_WORDS, LEAST_PART, part_costs, told_amount, told_cost, unit_paid
from credit.reports.missing_lines import lacking_traces
from credit.reports.tool_calls import ToolCalls
from credit.reports.trace_list import has_statuses
from graphs.text import at_least, counted
from graphs.traces.batch import Traces

__all__ = ["RepeatedCost", "repeated_cost"]

_REPEAT = "repeat a failed call or a loop with equal arguments"
_AGAIN = "in later rounds of loops"


@dataclasses.dataclass(frozen=True)
class RepeatedCost:
    """What calls of tools cost that an agent made before, arguments and all, and messages in later rounds of loops.

    It is the sum over these, the results of calls, and the model calls that asked for nothing else. What agents did
    that such a call started again is not in it.

    Attributes:
      again, calls: how many were made again after they failed, or in a later round of a loop (`LOOP`), and all calls.
      asked: how many model calls asked for nothing else.
      messages: how many are in a later round of a loop.
      whole: whether the log tells of each call whether it was; else all numbers are lower bounds.
      costs: by name, of `COST_WORDS`; "missing" of an amount counts the events whose number the log lacks.
      shares: the part that each is of all, where both are known.
    """

    again: int
    calls: int
    asked: int
    messages: int
    whole: bool
    costs: dict[str, Amount]
    shares: dict[str, float]

    def told(self) -> str:
        """In a sentence; "" where no cost of them is known."""
        costs = [
            told_amount(name, cost, self.shares.get(name), whole=self.whole)
            for name in COST_WORDS
            if (cost := self.costs[name]).total
        ]
        again = f"{at_least(f'{self.again:,}', not self.whole)} of {self.calls:,} tool calls {_REPEAT}"
        said = f"{counted(self.messages, 'message')} {'is' if self.messages == 1 else 'are'} {_AGAIN}"
        told = " and ".join([again] * (self.again > 0) + [said] * (self.messages > 0))
        these = "these calls" if self.messages else "these"
        asked = f"with {counted(self.asked, 'model call')} for {these} alone " if self.asked else ""
        return f"{told}; {asked}they cost {', '.join(costs)}" if costs else ""

    def in_short(self) -> str:
        """Their money, else their tokens, where all is known; "" where that is below `LEAST_PART` of all."""
        if self.shares.get(unit_paid([(self.costs, self.shares)]), 0.0) < LEAST_PART:
            return ""
        what = [f"calls that {_REPEAT}"] * (self.again > 0) + [f"messages {_AGAIN}"] * (self.messages > 0)
        return f"{told_cost(self.costs, self.shares)} went into {' and '.join(what)}"


def repeated_cost(traces: Traces, prices: Prices | None = None) -> RepeatedCost | None:
    """What repeated calls cost; None where nothing is known to repeat.

    Args:
      traces: what was read.
      prices: of models and tools; without them there is no money but what the log states.
      calls: of the traces, where they are known.

    Examples:
      >>> from graphs.traces.assembling import assemble
      >>> from graphs.traces.record import Agent, TraceRecord
      >>> record = TraceRecord("t", "q", "log.jsonl", instances={"a": Agent()})
      >>> for name, status in (("x", "error"), ("y", "ok")):
      ...     _ = record.event(name, 4, "a", action=True, tool="web", tokens=5, content_ref="same", status=status)
      >>> repeated_cost(assemble([record])).told().partition("; ")[2]
      'they cost 50 % of the tokens generated (5)'
    """
    calls = ToolCalls.of(traces)
    again, messages = calls.again, calls.messages_again
    if not again.any() and not len(messages):
        return None
    n = traces.sizes.events
    asking, action = calls.asking, np.asarray(traces.graph.action_mask)[:n]
    other = np.zeros(n, bool)
    other[asking[~again]] = True  # also asks for a call that repeats nothing
    alone = again & action[asking] & ~other[asking]
    asked = np.setdiff1d(asking[alone], calls.rows)
    part = np.ones(n, np.int64)
    part[calls.rows[again]] = 0
    part[calls.results] = part[calls.calls]
    part[asked] = part[messages] = 0
    told = not len(again) or (not calls.untold and not calls.uncompared and bool(has_statuses(traces).all()))
    ((found, shares),) = part_costs(traces, part, 1, prices)
    whole = told and not lacking_traces(traces).any()
    return RepeatedCost(int(again.sum()), len(again), len(asked), len(messages), whole, found, shares if whole else {})
