"""Rounds in which agents act at once, where the order of their rows moves the numbers of a method."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphs.distinct_columns import distinct_columns
from graphs.event_graph import EventGraph
from graphs.text import counted
from graphs.traces.batch import Traces
from graphs.traces.one_place import calls_in_place

if TYPE_CHECKING:
    from credit.methods.method_row import Method

__all__ = ["Rounds", "reads_rounds", "rounds_of_log"]


class Rounds(NamedTuple):
    """Rounds of traces in which nothing tells the order of actions.

    Attributes:
      several: in how many several agents act.
      one: in how many an agent acts twice: a row was copied, or several agents have one name.
    """

    several: int = 0
    one: int = 0

    @classmethod
    def of(cls, graph: EventGraph, at: np.ndarray) -> Rounds:
        """The rounds of a batch.

        Args:
          graph: the batch.
          at: int [N], of the first N events, alike in a round of a trace; negative where none is stated.

        Examples:
          >>> import credit
          >>> graph = credit.from_columns(group=[0] * 4, trace=["a"] * 4, agent=[*"xyxx"], reward=[1.0] * 4)[0]
          >>> Rounds.of(graph, np.array([5, 5, 6, 6]))
          Rounds(several=1, one=1)
        """
        trace, agent = (np.asarray(ids)[: len(at)] for ids in (graph.trace_ids, graph.agent_ids))
        acts = (np.asarray(graph.action_mask) & np.asarray(graph.event_mask))[: len(at)] & (at >= 0)
        visits = distinct_columns(trace[acts], at[acts], agent[acts]).columns
        agents = distinct_columns(*visits[:2]).counts
        twice = calls_in_place(graph, at)
        return cls(int(np.count_nonzero(agents > 1)), len(distinct_columns(trace[twice], at[twice]).first))

    def read(self, several: bool, one: bool) -> Rounds:
        """Those whose order moves numbers of a method, as of `reads_rounds`."""
        return Rounds(self.several if several else 0, self.one if one else 0)

    @property
    def said(self) -> str:
        """What follows the method's name where there are some; else ""."""
        several = f"in {counted(self.several, 'round')} several agents act at once: the order of their rows, by their"
        one = f"in {counted(self.one, 'round')} an agent acts twice at once: a row was copied, or agents share a name"
        parts = [
            (f"{several} names or as logged, may change the numbers", "one action a round, or options that do not read "
             "it, as gae with lambda_=1 and discount=1, or along='agent'") if self.several else (),
            (one, "each row once, and a name for each agent (`agent`, or `instance=`)") if self.one else (),
        ]  # fmt: skip
        told = "; ".join(f"{what}; expected {how}" for what, how in filter(None, parts))
        return told and f"reads which action comes next, and {told}"


def reads_rounds(method: Method, options: Mapping[str, Any], given: Collection[str]) -> tuple[bool, bool]:
    """`Method.reads_rounds`, of those of several agents, and of those in which one acts twice."""
    return method.reads_rounds(options, given), method.reads_rounds(options, given, of_one=True)


def rounds_of_log(traces: Traces) -> Rounds:
    """The rounds by the contexts of a log."""
    if "context" not in traces.evidence:
        return Rounds()
    return Rounds.of(traces.graph, np.asarray(traces.evidence["context"].array))
