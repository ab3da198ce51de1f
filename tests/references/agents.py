"""One number an agent: instances against instances, players against their own past."""

from __future__ import annotations

from .plain import Event, Trace, grouped, mean_sd

__all__ = ["mgrpo", "mrlx", "spiral_rae"]


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
    """Main agents by task; sub-agents by the block that they arrived in, which their first stated one says."""
    pools = {}
    for t, events in _instances(traces):
        if events[0].sub:
            blocks = [e.given["block"] for e in events if e.given["block"] is not None]
            if not blocks:
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
