"""Methods that promise no bias have none in teams that spawn and stop at random: 15 to 62 traces, all enumerated."""

from __future__ import annotations

import numpy as np
import pytest

import credit
from credit.bench.bias import measure
from credit.bench.bias_settings import SETTINGS
from graphs.event_graph import EventType
from graphs.worlds.micro.examples import MICRO
from graphs.worlds.micro.orchestration import Decision, History, Lottery, Micro


def _hire(choices: int) -> Micro:
    """The lead spawns one, two or three workers, who choose among `choices`; each adds what it chose."""

    def decide(h: History) -> Decision | None:
        if not h:
            return Decision("lead", EventType.SPAWN, 3)
        return Decision(f"worker-{len(h)}", EventType.MESSAGE, choices, stage=1) if len(h) <= h[0] + 1 else None

    def outcome(h: History) -> Lottery:
        return ((1.0, 0.7 - 0.3 * h[0] + sum((0.1 + 0.07 * i) * c**2 for i, c in enumerate(h[1:]))),)

    return Micro(f"hire-{choices}", "Workers are spawned; each adds its own.", decide, outcome)


def _stop(choices: int, luck: bool) -> Micro:
    """One agent after the other stops (0) or goes on in one of several ways, at most four times; then luck decides."""

    def decide(h: History) -> Decision | None:
        return (
            Decision(f"agent-{len(h) % 2}", EventType.STOP, choices, stage=len(h))
            if len(h) < 4 and 0 not in h
            else None
        )

    def outcome(h: History) -> Lottery:
        p = min(0.95, 0.1 + 0.13 * sum(h) + 0.2 * (len(h) == 3))
        return ((p, 1.0), (1 - p, 0.0)) if luck else ((1.0, p),)

    name = f"stop-{choices}{'-luck' if luck else ''}"
    return Micro(name, "Agents stop or go on.", decide, outcome, lambda h: 0.05 * h[-1] - 0.02 * len(h))


WORLDS = {world.name: world for world in (_hire(3), _stop(3, luck=False), _stop(3, luck=True), _stop(2, luck=True))}
QUICK = {("rloo", "stop-3"), ("turn_baseline", "stop-3"), ("moving_average", "stop-3"), ("remax", "hire-3")}
UNBIASED = [name for name, method in credit.METHODS.items() if method.unbiased]


@pytest.fixture(autouse=True)
def known_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, world in WORLDS.items():
        monkeypatch.setitem(MICRO, name, world)


def test_the_worlds_are_larger_than_the_tables() -> None:
    assert {name: len(world.ends) for name, world in WORLDS.items()} == {
        "hire-3": 39, "stop-3": 31, "stop-3-luck": 62, "stop-2-luck": 10,
    }  # fmt: skip
    for world in WORLDS.values():
        assert len({len(end) for end, _, _ in world.ends}) > 2  # spawning and stopping are the policy's
        assert np.linalg.norm(world.gradient()) > 0.05


CELLS = [
    pytest.param(name, world, marks=() if (name, world) in QUICK else pytest.mark.study)
    for name in UNBIASED
    for world in ("hire-3", "stop-3", "stop-3-luck")
    if name not in ("c3", "difference_reward") or world == "stop-3"  # trees and re-runs of the others are too many
]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "world"), CELLS)
def test_no_bias_where_teams_spawn_and_stop_at_random(name: str, world: str) -> None:
    row = measure(name, world, 2 if SETTINGS[name].way in ("groups", "replays") else 1)
    assert row.bias < 1e-12
    assert row.answered == pytest.approx(1)
