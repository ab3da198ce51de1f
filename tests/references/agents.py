"""One number an agent: instances against instances, players against their own past."""

from __future__ import annotations

from .plain import Event, Trace, grouped, mean_sd

__all__ = ["hierarchical_grpo", "mgrpo", "mrlx", "of_instances", "rae_of_agents", "rloo_of_agents", "spiral_rae"]


def _instances(traces: list[Trace]) -> list[tuple[Trace, list[Event]]]:
    """The events of each agent instance that acted in a trace with an outcome."""
    out = []
    for t in traces:
        for events in grouped(t.events, lambda e: e.agent).values():
            if any(e in t.rows for e in events):
                out.append((t, events))
    return out


def mgrpo(traces: list[Trace], main_weight: float = 1.0, ddof: int = 1, eps: float = 1e-6) -> dict[int, float]:
    out = {}
    pools = grouped(_instances(traces), lambda x: (x[0].group, x[1][0].sub))
    for (_, sub), members in pools.items():
        if len(members) < 2:
            continue
        scores = [(main_weight if sub else 1.0) * t.outcome + sum(e.reward for e in events) for t, events in members]
        mean, sd = mean_sd(scores, ddof)
        for (_, events), x in zip(members, scores, strict=True):
            out |= {e.place: (x - mean) / (sd + eps) for e in events if e.action}
    return out


def mrlx(traces: list[Trace]) -> dict[int, float]:
    """Main agents by task; sub-agents by the block that they arrived in, if they state one."""
    pools = {}
    for t, events in _instances(traces):
        if events[0].sub:
            blocks = [e.given["block"] for e in events if e.given["block"] is not None]
            if len(set(blocks)) != 1:
                continue
            key = ("sub", blocks[0])
        else:
            key = ("main", t.group)
        pools.setdefault(key, []).append((t, events))
    out = {}
    for members in pools.values():
        mean, sd = mean_sd([t.outcome for t, _ in members]) if len(members) > 1 else (members[0][0].outcome, 1.0)
        for t, events in members:
            out |= {e.place: (t.outcome - mean) / (sd + 1e-6) for e in events if e.action}
    return out


def spiral_rae(traces: list[Trace], by: str = "name", discount: float = 1.0, decay: float = 0.95) -> dict[int, float]:
    average, out = {}, {}
    for t in traces:
        for player, events in sorted(grouped(t.events, lambda e: getattr(e, by)).items()):
            turns = list(grouped([e for e in events if e in t.rows], lambda e: e.turn).values())
            if t.outcome is None:
                continue
            earned = t.outcome + sum(e.reward for e in events)
            advantage = earned - average.get(player, 0.0)
            average[player] = decay * average.get(player, 0.0) + (1 - decay) * earned
            for i, turn in enumerate(turns):
                out |= {e.place: advantage * discount ** (len(turns) - 1 - i) for e in turn}
    return out


def of_instances(traces: list[Trace]) -> list[tuple[Trace, list[Event], float]]:
    """The trace, the events and the outcome of each agent instance that acted and has one, rewards at events with it.

    Both parts are needed, but where agents of traces without an outcome alone have one of their own: there either is.
    Without numbers of agents it is the trace's.
    """
    of_agents = any("agent_reward" in e.given for t in traces for e in t.events)
    stated: dict[int, set[float]] = {}
    for e in (e for t in traces for e in t.events):
        stated.setdefault(e.agent, set()).update(x for x in [e.given.get("agent_reward")] if x is not None)
    beside = {t.outcome is not None for t in traces for e in t.events if stated[e.agent]}
    out = []
    for t in sorted(traces, key=lambda t: t.group):
        for agent, events in sorted(grouped(t.events, lambda e: e.agent).items()):
            parts = [x for x in (t.outcome, *stated[agent]) if x is not None]
            if (
                len(stated[agent]) < 2
                and any(e.action for e in events)
                and len(parts) >= (1 if beside == {False} or not of_agents else 2)
            ):
                out.append((t, events, sum(parts) + sum(e.reward for e in events)))
    return out


def hierarchical_grpo(traces: list[Trace], within: bool = False) -> dict[int, float]:
    """`within`: spawned agents are compared in their own trace."""
    out = {}
    for members in grouped(
        of_instances(traces), lambda x: (x[1][0].name, x[0].number if within and x[1][0].sub else -1 - x[0].group)
    ).values():
        mean = sum(x for _, _, x in members) / len(members)
        out |= {e.place: x - mean for _, events, x in members for e in events if e.action}
    return out


def rloo_of_agents(traces: list[Trace]) -> dict[int, float]:
    out = {}
    for members in grouped(of_instances(traces), lambda x: (x[0].group, x[1][0].name)).values():
        total = sum(x for _, _, x in members)
        if len(members) > 1:
            mean = {id(events): (total - x) / (len(members) - 1) for _, events, x in members}
            out |= {e.place: x - mean[id(events)] for _, events, x in members for e in events if e.action}
    return out


def rae_of_agents(traces: list[Trace], decay: float = 0.95) -> dict[int, float]:
    average, out = {}, {}
    for _, events, x in sorted(of_instances(traces), key=lambda member: member[1][0].place):
        before = average.get(events[0].name, 0.0)
        average[events[0].name] = decay * before + (1 - decay) * x
        out |= {e.place: x - before for e in events if e.action}
    return out
