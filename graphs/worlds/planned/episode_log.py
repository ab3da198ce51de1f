"""The log of a world's episodes, as records of a reader.

Model calls are the actions; spawns, messages, tool calls, results and returns are their effects. Edges are those of
`docs/data-model.md`. Time stamps are distinct within a trace and multiples of 1/512 s, which is a whole number of
nanoseconds (1,953,125) and exact in binary, so that formats with integer nanoseconds give back the same numbers.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import numpy as np

from graphs.event_graph import EdgeType, EventType
from graphs.traces.record import Agent, TraceRecord
from graphs.worlds.team import Episodes, Layout, Policy, Slot
from graphs.worlds.truth import Truth

__all__ = ["records"]

TICK = 1 / 512  # seconds
BEGIN = 1_735_689_600.0  # 2025-01-01T00:00:00Z: dates are plausible and do not depend on when the world is sampled
LEAD = "lead"
TOOLS = ("search", "read", "run")


class LoggedWorld(Protocol):
    """The input of a world's log: its layout, its policy, and the order of its entries."""

    @property
    def layout(self) -> Layout: ...

    @property
    def policy(self) -> Policy: ...

    def log_order(self, episodes: Episodes) -> tuple[jax.Array, jax.Array, jax.Array]: ...


def records(world: LoggedWorld, episodes: Episodes, truth: Truth | None = None) -> list[TraceRecord]:
    """One record a trace, in order.

    Evidence: the propensity of every choice (that of a plan is for its size and quality together; the stop, being
    certain, has none), tokens, stage (0 until the workers have returned, then 1), the group's greedy reward, and with
    `truth` the true value before each event.
    """
    slots, ticks, mask = (np.asarray(x) for x in world.log_order(episodes))
    rows = jax.tree.map(np.asarray, episodes)
    values = None if truth is None else np.asarray(truth.values)
    return [
        _Log(world, jax.tree.map(lambda x, i=i: x[i], rows)).write(
            slots[i][mask[i]], ticks[i][mask[i]], None if values is None else values[i]
        )
        for i in range(len(rows.size))
    ]


def _worker(number: int) -> str:
    return f"worker-{number}"


class _Log:
    """Writes one trace, entry by entry, and remembers what later entries refer to."""

    def __init__(self, world: LoggedWorld, one: Episodes) -> None:
        self.world, self.one = world, one
        number = int(one.trace)
        self.record = TraceRecord(
            trace_id=f"trace-{number:06d}", group_id=f"group-{int(one.group):06d}", file="world", format="world"
        )
        self.last_call: dict[str, int] = {}  # of each instance
        self.causes: dict[str, list[tuple[int, EdgeType]]] = {}  # of each instance's next call
        self.tool_call: dict[str, int] = {}  # the open one of each instance

    def write(self, slots: np.ndarray, ticks: np.ndarray, values: np.ndarray | None) -> TraceRecord:
        record, one = self.record, self.one
        begin = BEGIN + 3600.0 * int(one.trace)
        record.instances[LEAD] = Agent(LEAD, "lead")
        for worker in range(int(one.size)):
            record.instances[_worker(worker)] = Agent(_worker(worker), "worker", LEAD)
        for i, (slot, tick) in enumerate(zip(slots, ticks, strict=True)):
            value = None if values is None else float(values[i])
            self._entry(self.world.layout.slots[slot], begin + int(tick) * TICK, value)
        record.topology = "centralized"
        record.system = "simulated"
        record.rewards["team"] = float(one.reward)
        record.evidence["greedy_reward"] = float(one.greedy_reward)
        record.costs["tokens"] = float(np.sum(one.tokens[one.active]))
        record.costs["wall_clock_s"] = int(ticks[-1]) * TICK
        return record

    def _entry(self, slot: Slot, time: float, value: float | None) -> None:
        agent = LEAD if slot.worker < 0 else _worker(slot.worker)
        is_call = slot.decision >= 0
        position = self.record.event(
            f"e{len(self.record.ids)}",
            slot.type,
            agent,
            action=is_call,
            time=time,
            value=value,
            stage=int(slot.owner >= self.world.layout.decisions - 2),
            propensity=self._propensity(slot.decision) if is_call else None,
            tokens=int(self.one.tokens[slot.decision]) if is_call else None,
            **self._text(slot, agent),
        )
        if is_call:
            self._call(position, agent)
        elif slot.type == EventType.SPAWN:
            self._effect(position, agent, EdgeType.CAUSAL)
            self._lead_to(self._spawned(slot), position, EdgeType.SPAWN)
        elif slot.type == EventType.MESSAGE:
            self._effect(position, agent, EdgeType.CAUSAL)
            self._lead_to(self._recipient(slot), position, EdgeType.MESSAGE)
        elif slot.type == EventType.TOOL_CALL:
            self._effect(position, agent, EdgeType.TOOL_DEPENDENCY)
            self.tool_call[agent] = position
        elif slot.type == EventType.TOOL_RESULT:
            self.record.edge(self.tool_call.pop(agent), position, EdgeType.RETURN)
            self._lead_to(agent, position, EdgeType.CAUSAL)
        else:
            self._effect(position, agent, EdgeType.CAUSAL)  # a return
            self._lead_to(LEAD, position, EdgeType.RETURN)

    def _call(self, position: int, agent: str) -> None:
        for cause, kind in self.causes.pop(agent, ()):
            self.record.edge(cause, position, kind)
        if agent in self.last_call:
            self.record.edge(self.last_call[agent], position, EdgeType.TEMPORAL)
        self.last_call[agent] = position

    def _effect(self, position: int, agent: str, kind: EdgeType) -> None:
        self.record.edge(self.last_call[agent], position, kind)

    def _lead_to(self, agent: str, position: int, kind: EdgeType) -> None:
        """The instance's next call, if there is one, will have this cause."""
        self.causes.setdefault(agent, []).append((position, kind))

    def _spawned(self, slot: Slot) -> str:
        return _worker((slot.owner - 1) // self.world.layout.calls)

    def _recipient(self, slot: Slot) -> str:
        return _worker(int(self.one.recipient[slot.owner]))

    def _text(self, slot: Slot, agent: str) -> dict[str, Any]:
        if slot.type == EventType.SPAWN:
            return {"from": agent, "to": self._spawned(slot)}
        if slot.type == EventType.RETURN:
            return {"from": agent, "to": LEAD}
        if slot.type == EventType.MESSAGE and slot.decision < 0:
            return {"from": agent, "to": self._recipient(slot)}
        if slot.type in (EventType.TOOL_CALL, EventType.TOOL_RESULT):
            return {"tool": TOOLS[(slot.owner - 1) % self.world.layout.calls % len(TOOLS)]}
        return {}

    def _propensity(self, decision: int) -> float | None:
        policy, one = self.world.policy, self.one
        good = float(policy.good[int(one.task), int(one.good[0]), decision])
        if good == 1.0:
            return None
        chosen = good if one.good[decision] else 1 - good
        return chosen * float(policy.size[int(one.size) - 1]) if decision == 0 else chosen
