"""What a log means, as text: one block a trace, which a test compares with the block that is written beside the log.

The text names everything that the data model defines, so that no definition can move without a test that fails:

    trace ID | group NAME | task ID | model NAME | system NAME | outcome NUMBER | FORM | numbers of the trace
    agent ID NAME/ROLE < PARENT                     the name and role are left out where both are the id
    TURN.STAGE AGENT TYPE ID | further values       `TYPE*` is an action
    CAUSE > EFFECT TYPE
    path LENGTH: events on the critical path

FORM is the topology that the rules derive. Turns are counted from 0 in the batch, stages from 0 in the trace.
"""

from __future__ import annotations

from graphs.event_types import EdgeType, EventType
from graphs.structure.critical_path import critical_path, derived_stages
from graphs.structure.topology import TOPOLOGIES, topology
from graphs.traces.batch import Traces
from graphs.traces.schema import EVENT_EVIDENCE

__all__ = ["meaning"]


TEXT = ("to", "tool", "status")


def meaning(traces: Traces, *, numbered: bool = False) -> str:
    """The meaning of each trace of a batch, in the form that the module describes.

    With `numbered`, events and agents go by their numbers within the trace: recorded ids are long and say nothing.
    """
    graph, agents = traces.graph, traces.agents.to_pylist()
    events, rows = traces.events.to_pylist(), traces.traces.to_pylist()
    forms = topology(graph, [agent["role"] for agent in agents])
    stages, (length, on_path) = derived_stages(graph), critical_path(graph)
    blocks = []
    for t, row in enumerate(rows):
        of_trace = [i for i, _ in enumerate(events) if graph.trace_ids[i] == t]
        team = [a for a, agent in enumerate(agents) if agent["trace"] == t]
        name = {i: str(n) if numbered else events[i]["event"] for n, i in enumerate(of_trace)}
        who = {a: f"{n}:{agents[a]['name']}" if numbered else agents[a]["agent"] for n, a in enumerate(team)}
        of_id = {agents[a]["agent"]: who[a] for a in team}
        head = [] if numbered else [f"trace {row['trace']}"]
        head += [f"group {row['group']}"] * (not numbered or row["group"] != row["trace"])
        head += [f"task {row['task']}"] * (row["task"] != row["group"])
        head += [f"{key} {row[key]}" for key in ("model", "system") if row[key]]
        head += [f"outcome {traces.reward[t]:g}", TOPOLOGIES[forms[t]]]
        lines = [" | ".join(head + _numbers(traces, t, per_trace=True))]
        for a in team:
            agent = agents[a]
            alike = agent["name"] == agent["role"] and (numbered or agent["agent"] == agent["name"])
            parent = "" if agent["parent"] == a else f" < {who[agent['parent']]}"
            names = "" if alike else f" {agent['name']}/{agent['role']}"
            lines.append(f"agent {who[a]}{names}{parent}")
        for i in of_trace:
            event_type = EventType(graph.event_type[i]).name.lower() + "*" * bool(graph.action_mask[i])
            said = {key: events[i][key] for key in TEXT if events[i].get(key) is not None}
            if "to" in said:
                said["to"] = of_id.get(said["to"], said["to"])
            texts = [f"{key} {value}" for key, value in said.items()]
            place = f"{graph.turn_ids[i]}.{stages[i]} {who[int(graph.agent_ids[i])]} {event_type} {name[i]}"
            lines.append(" | ".join([place, *texts, *_numbers(traces, i, per_trace=False)]))
        real = zip(graph.senders, graph.receivers, graph.edge_type, graph.edge_mask, strict=True)
        for cause, effect, kind, _ in sorted((int(c), int(e), int(k), m) for c, e, k, m in real if m):
            if cause in name:
                lines.append(f"{name[cause]} > {name[effect]} {EdgeType(kind).name.lower()}")
        lines.append(f"path {length[t]:g}: {' '.join(name[i] for i in of_trace if on_path[i])}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _numbers(traces: Traces, row: int, *, per_trace: bool) -> list[str]:
    """The evidence that an event or a trace has, by name; the outcome stands elsewhere."""
    known = {name: value for name, value in traces.evidence.items() if (name not in EVENT_EVIDENCE) == per_trace}
    return [
        f"{name} {value.array[row]:g}" for name, value in known.items() if value.mask[row] and name != "rewards.team"
    ]
