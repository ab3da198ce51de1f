"""Whose errors, loops or retries make a difference between two kinds of traces: which tool's, and which agent's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from credit.reports.failed_model_calls import failed_model_calls
from credit.reports.tool_calls import ToolCalls
from graphs.structure.host_ids import ranked
from graphs.task_means import ROUNDING
from graphs.text import printable
from graphs.traces.batch import Traces

__all__ = ["OWNED", "Owner", "Owners", "owned_events", "owners"]

OWNED = ("errors", "unrecovered_errors", "retries", "loops")
"""Numbers of which it is asked whose they are, as metrics are called."""

OUTSIDE, UNNAMED, OF_MODELS, MESSAGES = "events outside of tool calls", "unnamed tools", "model calls", "messages"
"""What stands in place of the name of a tool."""
_NO_TOOLS = frozenset((OUTSIDE, UNNAMED, OF_MODELS, MESSAGES))
LEAST_REST = 0.2
"""Part of a difference from which what makes most of the rest is named, too."""


@dataclasses.dataclass(frozen=True)
class Owner:
    """Events of a tool, of an agent, or of a tool that the agent called, that make more than half of a difference.

    Attributes:
      tool: its name, or one of `OUTSIDE` to `MESSAGES`; "" where it is the agent's with several tools.
      agent: name of the agent that called it, or of all who exchange `MESSAGES`; "" where it is the tool's by several
        agents.
      first, second: how many a trace of each kind has, as of the difference. Those of all tools add up to the number
        itself, as do those of all agents.
    """

    tool: str
    agent: str
    first: float
    second: float


@dataclasses.dataclass(frozen=True)
class Owners:
    """Whose a difference is.

    Attributes:
      named: the one pair of a tool and an agent that more than half of it is of; else a tool, an agent, or both.
      rest: the same of what these leave, if it is `LEAST_REST` of the difference.
      several: of "tools" and "agents", which the log has several of; those that it has one of are not named.
    """

    named: tuple[Owner, ...] = ()
    several: tuple[str, ...] = ()
    rest: tuple[Owner, ...] = ()

    def told(self, means: Callable[[float, float], str] | None = None, *, short: bool = False) -> str:
        """In words, with both means of each owner where `means` has words for them; "" where nobody is to be named.

        What is to be short leaves out `rest`.
        """
        if not self.named:
            return f"spread over {' and '.join(self.several)}" if self.several else ""
        told = [
            " and ".join(f"of {self._words(one)}{f' ({means(one.first, one.second)})' if means else ''}" for one in of)
            for of in (self.named, () if short else self.rest)
            if of
        ]
        return f"mostly {', then '.join(told)}"

    def of_most(self, difference: float) -> Owners:
        """The same where one of those named has most of this difference, too, else nobody: seconds of what runs at once
        add up to more than the clock's, and go their own way."""
        return self if any((one.second - one.first) / difference > 0.5 for one in self.named) else Owners()

    def words(self) -> list[str]:
        """Each owner of most, as in `of tool search by coder`."""
        return [f"of {self._words(one)}" for one in self.named]

    def _words(self, one: Owner) -> str:
        tool = one.tool if one.tool in _NO_TOOLS else f"tool {printable(one.tool, 60)}"
        agent = printable(one.agent, 60)
        if one.tool and one.agent:
            return f"{tool} by {agent}"
        if one.tool:
            return f"{tool}{' by several agents' if 'agents' in self.several else ''}"
        return f"agent {agent}{' with several tools' if 'tools' in self.several else ''}"


def owned_events(calls: ToolCalls) -> dict[str, np.ndarray]:
    """The events of `OWNED`."""
    loops = np.array([loop.rows[0] for loop in calls.loops], np.int64)
    rows = np.flatnonzero(calls.counted), calls.unrecovered, calls.rows[calls.retry], loops
    return dict(zip(OWNED, rows, strict=True))


def owners(
    traces: Traces, calls: ToolCalls, rows: np.ndarray, weights: np.ndarray, seconds: np.ndarray | None = None
) -> Owners:
    """The tool and the agent, of several, that more than half of a difference is of, together if they have it together.

    Whose an event is, its call tells: the result of a call may be another's.

    Args:
      traces: what was read.
      calls: its tool calls.
      rows: of the events that are counted: int [events].
      weights: how much each trace counts in the mean of the first kind, and of the second: float [2, traces].
      seconds: of each of these events, which are then added up, in place of their number. Those of an action are its
        model's, also where it is the call of a tool.

    Examples:
      >>> import credit
      >>> _, _, columns = credit.from_columns(group=["q"] * 2, trace=["s", "t"], agent=["a", "b"], reward=[1.0, 0.0])
      >>> owners(columns.traces, ToolCalls(columns.traces), np.array([1]), np.eye(2)).named
      (Owner(tool='', agent='b', first=0.0, second=1.0),)
    """
    trace, agent_of = np.asarray(traces.graph.trace_ids), np.asarray(traces.graph.agent_ids)
    # A loop of messages is of all who exchange them.
    pairs = {loop.rows[0]: " and ".join(loop.agents) for loop in calls.loops if loop.agents and seconds is None}
    names, name = ranked([*traces.agents["name"].to_pylist(), *pairs.values()])
    called: list[str | None] = traces.events["tool"].to_pylist()
    owner, of_team = calls.owners[rows], frozenset(calls.rows.tolist())
    by_model = failed_model_calls(traces) if seconds is None else np.asarray(traces.graph.action_mask)
    of_rows = [
        MESSAGES if row in pairs else OF_MODELS if of_model else called[row] or (UNNAMED if row in of_team else OUTSIDE)
        for row, of_model in zip(owner.tolist(), by_model[rows].tolist(), strict=True)
    ]
    tools, tool = ranked([*of_rows, *(called[row] or UNNAMED for row in calls.rows.tolist())])
    # One tool is named, too: what is outside of it could fail as well. One agent is the whole team.
    by_tool, by_agent = (
        bool({*tools} - _NO_TOOLS),
        len(np.unique(name[agent_of[: traces.sizes.events]])) > 1,
    )
    first, second = (of[trace[rows]] * (1.0 if seconds is None else seconds) for of in weights)
    of_tool, of_agent, whole = tool[: len(rows)], name[agent_of[owner]], float((second - first).sum())
    for exchange, row in enumerate(pairs, len(traces.agents)):
        of_agent[rows == row] = name[exchange]

    def found(left: np.ndarray, by_tool: bool, by_agent: bool) -> list[Owner]:
        """Who has most of these events, of tools, agents or pairs of both."""
        key = of_tool * by_tool * len(names) + of_agent * by_agent
        sums = [np.bincount(key, weight * left, len(tools) * len(names)) for weight in (first, second)]
        more = sums[1] - sums[0]
        more = np.maximum(more * np.sign(more.sum()), 0)  # what offsets them makes nobody's half
        return [
            Owner(
                tools[one // len(names)] * by_tool, names[one % len(names)] * by_agent, *(float(of[one]) for of in sums)
            )
            for one in np.flatnonzero(more / more.sum() > 0.5).tolist()
        ]

    def most(left: np.ndarray) -> list[Owner]:
        if abs(((second - first) * left).sum()) <= ROUNDING * ((first + second) * left).sum():
            return []
        pairs = found(left, True, True) if by_tool and by_agent else []
        return pairs or [
            *(found(left, True, False) if by_tool else []),
            *(found(left, False, True) if by_agent else []),
        ]

    if not whole:
        return Owners()
    named, left = most(np.ones(len(rows), bool)), np.ones(len(rows), bool)
    for one in named:
        of_one = (of_tool == tools.index(one.tool)) if one.tool else np.ones(len(rows), bool)
        left &= ~(of_one & (of_agent == names.index(one.agent)) if one.agent else of_one)
    rest = [one for one in most(left) if (one.second - one.first) / whole >= LEAST_REST - ROUNDING] if named else []
    return Owners(tuple(named), ("tools",) * by_tool + ("agents",) * by_agent, tuple(rest))
