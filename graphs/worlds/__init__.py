"""Worlds: teams with randomly drawn logs and known true credit.

There are two families. `TeamWorld` runs a script: six forms of team, up to 300 agents and 100,000 events, seven kinds
of outcome, and choices that are independent given the task. `World` is one small team with a plan, on which later
choices depend.

Both have the same methods: `sample` draws traces, `increments` returns the true credit, `rerun` runs a trace again from
a prefix with one action replaced, and `records` and `traces` return the form that readers produce. `docs/worlds.md` has
the formulas.
"""

from graphs.worlds.planned.planned_world import World
from graphs.worlds.scripted.scores import KINDS
from graphs.worlds.scripted.team_world import Runs, TeamWorld
from graphs.worlds.scripted.topologies import FEWEST_AGENTS
from graphs.worlds.team import Additive, Bernoulli, Episodes, HeavyTailed, Layout, Outcome, Pivotal, Policy
from graphs.worlds.truth import Truth

__all__ = [
    "FEWEST_AGENTS",
    "KINDS",
    "Additive",
    "Bernoulli",
    "Episodes",
    "HeavyTailed",
    "Layout",
    "Outcome",
    "Pivotal",
    "Policy",
    "Runs",
    "TeamWorld",
    "Truth",
    "World",
]
