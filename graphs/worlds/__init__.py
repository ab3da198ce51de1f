"""Worlds: teams whose log is drawn at random and whose true credit is known.

Two families. `TeamWorld` plays a script: six forms of team, up to 300 agents and 100,000 events, seven kinds of
outcome, choices that are independent given the task. `World` is one small team with a plan that later choices depend
on.

Both have the same verbs: `sample` traces, ask for the true `increments`, `rerun` a trace from a prefix with one action
replaced, and write it all down as `records` or `traces` that are like any that were read. `docs/worlds.md` has the
formulas.
"""

from graphs.worlds.planned.planned_world import World
from graphs.worlds.scripted.scores import KINDS
from graphs.worlds.scripted.team_world import Runs, TeamWorld
from graphs.worlds.scripted.topologies import FEWEST_AGENTS
from graphs.worlds.team import Additive, Bernoulli, Episodes, Layout, Outcome, Pivotal, Policy
from graphs.worlds.truth import Truth

__all__ = [
    "FEWEST_AGENTS",
    "KINDS",
    "Additive",
    "Bernoulli",
    "Episodes",
    "Layout",
    "Outcome",
    "Pivotal",
    "Policy",
    "Runs",
    "TeamWorld",
    "Truth",
    "World",
]
