"""Logs that state events, edges and agents themselves, and what they mean by `docs/data-model.md`.

A trace is written in short: agents as `NAME/ROLE<PARENT`, events as `AGENT TYPE ID`, edges as `CAUSE>EFFECT TYPE`.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["CASES", "native"]


def native(trace: str, agents: str, events: str, edges: str, *, rewards: dict[str, float] | None = None,
           per_event: dict[str, dict[str, Any]] | None = None, **top: Any) -> str:  # fmt: skip
    """A line of the native format."""
    instances = []
    for agent in agents.split():
        named, _, parent = agent.partition("<")
        name, _, role = named.partition("/")
        instances.append({"id": name, "name": name, "role": role or name} | ({"parent": parent} if parent else {}))
    rows = []
    for line in filter(None, map(str.strip, events.splitlines())):
        agent, kind, name, *to = line.split()
        rows.append({"id": name, "type": kind, "agent": agent} | ({"to": to[0]} if to else {}))
        rows[-1] |= (per_event or {}).get(name, {})
    links = [line.replace(">", " ").split() for line in filter(None, map(str.strip, edges.splitlines()))]
    document = {"schema_version": "1.0", "trace_id": trace, "task_id": "q", "agents": instances, "events": rows,
                "edges": [{"src": a, "dst": b, "type": kind} for a, b, kind in links],
                "rewards": {"team": 1.0} if rewards is None else rewards, "costs": {}}  # fmt: skip
    return json.dumps(document | top) + "\n"


EVERY_TYPE = (
    native(
        "t",
        "a",
        """a orchestrator_decision decide
        a spawn start
        a despawn end
        a message say
        a tool_call use
        a tool_result get
        a return back
        a aggregate join
        a human_intervention person
        a safety_event guard
        a stop halt""",
        "",
    ),
    """\
trace t | group q | outcome 1 | harness
agent a
0.0 a orchestrator_decision* decide
0.0 a spawn* start
0.0 a despawn* end
0.0 a message* say
0.0 a tool_call* use
0.0 a tool_result get
0.0 a return back
1.0 a aggregate* join
1.0 a human_intervention person
1.0 a safety_event guard
1.0 a stop* halt
path 1: decide""",
)
"""Each type once. Seven are actions. Only the return ends a turn. Without edges, a path is the first action."""

CASES: dict[str, tuple[str, str]] = {
    "each type of event": EVERY_TYPE,
    # The boss waits for both workers, then joins: stage 1 begins at the join, which has causes in other instances.
    # A worker's turn begins at its spawn. The boss has two turns, as another agent's return causes its join.
    # A tool's result neither begins nor ends a turn.
    "two workers at once": (
        native(
            "t",
            "boss/lead w1/worker<boss w2/worker<boss",
            """boss orchestrator_decision d
            boss spawn s1 w1
            boss spawn s2 w2
            w1 message m1
            w2 message m2
            w1 tool_call c
            w1 tool_result r
            w1 message n1
            w1 return b1 boss
            w2 return b2 boss
            boss aggregate j
            boss stop z""",
            """d>s1 causal
            d>s2 causal
            s1>m1 spawn
            s2>m2 spawn
            m1>c tool_dependency
            c>r return
            r>n1 causal
            n1>b1 causal
            m2>b2 causal
            b1>j return
            b2>j return
            j>z temporal""",
            per_event={
                "c": {"action": False, "event_reward": -0.25},
                "n1": {"event_reward": 0.5},
                "s2": {"action": False},
            }
            | {"s1": {"action": False}},
        ),
        """\
trace t | group q | outcome 1 | swarm
agent boss boss/lead
agent w1 w1/worker < boss
agent w2 w2/worker < boss
0.0 boss orchestrator_decision* d
0.0 boss spawn s1 | to w1
0.0 boss spawn s2 | to w2
1.0 w1 message* m1
2.0 w2 message* m2
1.0 w1 tool_call c | event_reward -0.25
1.0 w1 tool_result r
1.0 w1 message* n1 | event_reward 0.5
1.0 w1 return b1 | to boss
2.0 w2 return b2 | to boss
3.1 boss aggregate* j
3.1 boss stop* z
d > s1 causal
d > s2 causal
s1 > m1 spawn
s2 > m2 spawn
m1 > c tool_dependency
m2 > b2 causal
c > r return
r > n1 causal
n1 > b1 causal
b1 > j return
b2 > j return
j > z temporal
path 5: d s1 m1 c r n1 b1 j z""",
    ),
    # One after the other: each return begins a turn of the boss and a stage. The workers have one role and no stage in
    # common, so this is no swarm. A worker that is woken by a message has a second turn, also because it returned.
    "a worker twice": (
        native(
            "t",
            "boss w/worker<boss v/worker<boss",
            """boss orchestrator_decision d1
            boss spawn s1 w
            w message m1
            w return b1 boss
            boss orchestrator_decision d2
            boss message wake w
            w message m2
            w return b2 boss
            boss orchestrator_decision d3
            boss spawn s2 v
            v message m3
            v return b3 boss
            boss message z""",
            """d1>s1 causal
            s1>m1 spawn
            m1>b1 causal
            b1>d2 return
            d2>wake causal
            wake>m2 message
            m2>b2 causal
            b2>d3 return
            d3>s2 causal
            s2>m3 spawn
            m3>b3 causal
            b3>z return""",
            per_event={name: {"action": False} for name in ("s1", "s2", "wake")},
        ),
        """\
trace t | group q | outcome 1 | centralized
agent boss
agent w w/worker < boss
agent v v/worker < boss
0.0 boss orchestrator_decision* d1
0.0 boss spawn s1 | to w
1.0 w message* m1
1.0 w return b1 | to boss
2.1 boss orchestrator_decision* d2
2.1 boss message wake | to w
3.1 w message* m2
3.1 w return b2 | to boss
4.2 boss orchestrator_decision* d3
4.2 boss spawn s2 | to v
5.2 v message* m3
5.2 v return b3 | to boss
6.3 boss message* z
d1 > s1 causal
s1 > m1 spawn
m1 > b1 causal
b1 > d2 return
d2 > wake causal
wake > m2 message
m2 > b2 causal
b2 > d3 return
d3 > s2 causal
s2 > m3 spawn
m3 > b3 causal
b3 > z return
path 7: d1 s1 m1 b1 d2 wake m2 b2 d3 s2 m3 b3 z""",
    ),
    # A return of an agent ends its turn even where nothing that another agent did leads to its next event.
    # An edge of type temporal from another agent begins no turn; one of any other type does.
    "what begins a turn": (
        native(
            "t",
            "a b",
            """a message a1
            b message b1
            a message a2
            b message b2
            a message a3
            b return b3 a
            b message b4""",
            """a1>b1 temporal
            b1>a2 temporal
            a2>b2 causal
            b2>a3 safety_flow""",
        ),
        """\
trace t | group q | outcome 1 | debate
agent a
agent b
0.0 a message* a1
1.0 b message* b1
0.0 a message* a2
2.0 b message* b2
3.0 a message* a3
2.0 b return b3 | to a
4.0 b message* b4
a1 > b1 temporal
b1 > a2 temporal
a2 > b2 causal
b2 > a3 safety_flow
path 5: a1 b1 a2 b2 a3""",
    ),
    # The boss does not choose the tool's result that the worker caused: it begins a turn, and no stage.
    "what begins a stage": (
        native(
            "t",
            "boss w<boss",
            """boss message d
            w message m
            boss tool_result r
            boss message z""",
            """d>m message
            m>r causal""",
        ),
        """\
trace t | group q | outcome 1 | centralized
agent boss
agent w < boss
0.0 boss message* d
1.0 w message* m
2.0 boss tool_result r
2.0 boss message* z
d > m message
m > r causal
path 2: d m""",
    ),
    "stated turns": (
        native(
            "t",
            "a b",
            "a message a1\nb message b1\na message a2\nb message b2\na message a3",
            "a1>b1 message\nb1>a2 message",
            per_event={name: {"turn": 7} for name in ("a1", "b1", "a2")} | {"b2": {"turn": "x"}, "a3": {"turn": 3}},
        ),
        # One label of two agents makes two turns.
        """\
trace t | group q | outcome 1 | debate
agent a
agent b
0.0 a message* a1
1.0 b message* b1
0.0 a message* a2
2.0 b message* b2
3.0 a message* a3
a1 > b1 message
b1 > a2 message
path 3: a1 b1 a2""",
    ),
}
