"""The micro-orchestrations: their decisions, choices and rewards.

Together they cover spawning and team size, delegation to one of three agents, messages to one of two, and stopping.
They have two to four agents, in fixed teams and in teams whose size the policy decides. Outcomes are additive,
Bernoulli and AND, with and without step rewards. One agent acts twice in a turn, and one acts in several turns. At most
four decisions a trace; R lies in [0, 1].
"""

from __future__ import annotations

from graphs.event_graph import EventType
from graphs.worlds.micro.orchestration import Decision, History, Lottery, Micro

__all__ = ["MICRO"]


def _bernoulli(p: float) -> Lottery:
    """1 with probability p, else 0; what is certain is one prize."""
    return tuple((q, reward) for q, reward in ((p, 1.0), (1 - p, 0.0)) if q > 0)


def _hire(h: History) -> Decision | None:
    """The lead spawns one, two or three workers, who see how many they are."""
    if not h:
        return Decision("lead", EventType.SPAWN, 3)
    return (
        Decision(f"worker-{len(h)}", EventType.MESSAGE, 2, sees=h[:1], stage=1, role="worker")
        if len(h) <= h[0] + 1
        else None
    )


def _hired(h: History) -> Lottery:
    gains = (0.35, 0.2, 0.2)
    return ((1.0, 0.2 - 0.1 * h[0] + sum(gain * good for gain, good in zip(gains, h[1:], strict=False))),)


def _spawn(h: History) -> Decision | None:
    """The lead works alone, in the turn in which it decides so, or spawns two workers and aggregates."""
    if not h:
        return Decision("lead", EventType.SPAWN, 2)
    if h[0] == 0:
        return Decision("lead", EventType.MESSAGE, 2, sees=h) if len(h) == 1 else None
    if len(h) < 3:
        return Decision(f"worker-{len(h)}", EventType.MESSAGE, 2, stage=1, role="worker")
    return Decision("lead", EventType.AGGREGATE, 2, sees=h[1:], stage=2) if len(h) == 3 else None


def _spawned(h: History) -> Lottery:
    return _bernoulli(float(all(h))) if h[0] else _bernoulli(0.6 * h[1])


def _delegate(h: History) -> Decision | None:
    """The lead delegates to one of three workers, who messages one of two colleagues."""
    if not h:
        return Decision("lead", EventType.ORCHESTRATOR_DECISION, 3)
    return Decision(f"worker-{h[0] + 1}", EventType.MESSAGE, 2, stage=1, role="worker") if len(h) == 1 else None


def _stop(h: History) -> Decision | None:
    """Up to two rounds: the lead stops (0) or asks the worker (1), who answers badly (0) or well (1)."""
    if len(h) == 4 or (len(h) % 2 and h[-1] == 0):
        return None
    if len(h) % 2:
        return Decision("worker", EventType.MESSAGE, 2, stage=len(h) // 2)
    return Decision("lead", EventType.STOP, 2, sees=h[-1:], stage=len(h) // 2)


def _answered(h: History) -> float:
    return 0.25 * h[-1] + 0.05 if len(h) % 2 == 0 else 0.0


def _relay(h: History) -> Decision | None:
    """Planner, worker and checker, once each; every one sees what the one before it did. The last two have one role."""
    if len(h) == 3:
        return None
    agent = ("planner", "worker", "checker")[len(h)]
    return Decision(agent, EventType.MESSAGE, 2, sees=h[-1:], stage=len(h), role="worker" if h else "planner")


MICRO: dict[str, Micro] = {
    m.name: m
    for m in (
        Micro(
            "hire-additive",
            "The lead spawns one, two or three workers; each may add its own gain, and each beyond the first costs.",
            _hire,
            _hired,
        ),
        Micro(
            "spawn-and",
            "The lead works alone, which may succeed by luck, or spawns two workers; then all three must be right.",
            _spawn,
            _spawned,
        ),
        Micro(
            "delegate-luck",
            "The lead delegates to one of three, who messages one of two; success is a matter of luck.",
            _delegate,
            lambda h: _bernoulli((0.2, 0.5, 0.7)[h[0]] + 0.2 * h[1]),
        ),
        Micro(
            "stop-rewards",
            "The lead stops or asks the worker, up to twice; each answer earns at once, a good one pays at the end.",
            _stop,
            lambda h: ((1.0, 0.4 * any(h[1::2])),),
            _answered,
        ),
        Micro(
            "relay-and",
            "Planner, worker and checker act once each; the outcome is 1 if all three are right.",
            _relay,
            lambda h: _bernoulli(float(all(h))),
        ),
    )
}
"""Every micro-orchestration by name."""
