"""Coalitions that a log already holds: traces of one task that were run by different teams.

Nothing is evaluated. Each trace of a group is one evaluation of the coalition of agents (or roles) that acted in it,
its reward the value. That is evidence about v only if nothing that decided the reward also decided the team. Within one
task, under one spawning policy, that is the user's claim: a log cannot show it. A log does show whether the needed
coalitions occurred at all (positivity). Without them the answer is a refusal.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from estimators.shapley.plan import Plan
from graphs.errors import CreditError
from graphs.event_graph import Array, EventGraph
from graphs.levels import Name

__all__ = ["Logged", "leave_one_out", "logged_coalitions", "logged_values"]


@dataclasses.dataclass(frozen=True)
class Logged:
    """Teams that occurred in the traces of one group.

    Attributes:
      units: int32 [N], the name ids (`agent_name_ids` or `agent_role_ids`) that acted in any trace, increasing.
      coalitions: bool [C, N], the distinct teams, lexicographic.
      value: float64 [C], mean reward of the traces of that team.
      stderr: float64 [C], standard error of the mean; infinite from one trace.
      count: int32 [C], how many traces.
    """

    units: np.ndarray
    coalitions: np.ndarray
    value: np.ndarray
    stderr: np.ndarray
    count: np.ndarray


def logged_coalitions(graph: EventGraph, reward: Array, group: int, *, by: Name = "agent_name") -> Logged:
    """The teams of one group and what they earned. A unit is in a team if an action of it is in the trace.

    Raises:
      CreditError: no trace of the group has a reward.
      CreditError: `by` is not "agent_name" or "role_name".

    Examples:
      >>> import credit
      >>> graph, reward, _ = credit.from_columns(
      ...     group=["g"] * 4, trace=["t", "u", "u", "v"], agent=["a", "a", "b", "b"], reward=[0.5, 1.0, 1.0, 0.0]
      ... )
      >>> teams = logged_coalitions(graph, reward, group=0)
      >>> teams.coalitions.tolist(), teams.value.tolist()
      ([[False, True], [True, False], [True, True]], [0.0, 0.5, 1.0])
    """
    if by not in ("agent_name", "role_name"):
        raise CreditError(f"by is {by!r}; expected 'agent_name' or 'role_name'")
    reward = np.asarray(reward, np.float64)
    chosen = np.asarray(graph.trace_mask) & (np.asarray(graph.group_ids) == group) & np.isfinite(reward)
    if not chosen.any():
        raise CreditError(f"group {group} has no trace with a reward")
    names = np.asarray(graph.agent_name_ids if by == "agent_name" else graph.agent_role_ids)
    trace = np.asarray(graph.trace_ids)
    acting = np.asarray(graph.event_mask) & np.asarray(graph.action_mask) & chosen[trace]
    name = names[np.asarray(graph.agent_ids)[acting]]
    units, column = np.unique(name, return_inverse=True)
    members = np.zeros((len(chosen), len(units)), bool)
    members[trace[acting], column] = True
    teams, which = np.unique(members[chosen], axis=0, return_inverse=True)
    which, value = which.ravel(), reward[chosen]
    count = np.bincount(which, minlength=len(teams))
    mean = np.bincount(which, value, len(teams)) / count
    squares = np.bincount(which, (value - mean[which]) ** 2, len(teams))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(count > 1, np.sqrt(squares / (count * (count - 1))), np.inf)
    return Logged(units.astype(np.int32), teams, mean, error, count.astype(np.int32))


def logged_values(plan: Plan, logged: Logged, *, empty: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Values and standard errors of the rows of a plan, from a log: float64 [C], [C], for `solve(noise=)`.

    Args:
      plan: over the N units of `logged`, in that order; `plan_exact` asks for least.
      logged: from `logged_coalitions`.
      empty: v(∅), because a trace without a team does not occur: 0 if no work has reward 0. None leaves it to
        the log.

    Raises:
      CreditError: a coalition that the plan needs never occurred; the message names how many and which first.

    Examples:
      >>> import numpy as np
      >>> from estimators.shapley import Logged, plan_exact
      >>> teams = np.array([[False, True], [True, False], [True, True]])
      >>> logged = Logged(np.arange(2), teams, np.array([0.0, 0.5, 1.0]), np.zeros(3), np.ones(3, int))
      >>> logged_values(plan_exact(2), logged, empty=0.0)[0].tolist()
      [0.0, 0.5, 0.0, 1.0]
    """
    if empty is not None and not np.isfinite(empty):
        raise CreditError(f"empty is {empty}; expected a finite number, or None")
    wanted = np.asarray(plan.coalitions)
    if wanted.shape[1] != len(logged.units):
        raise CreditError(f"the plan is for {wanted.shape[1]} units; expected {len(logged.units)}, as in the log")
    row_of = {team.tobytes(): c for c, team in enumerate(logged.coalitions)}
    position = np.array([row_of.get(team.tobytes(), -1) for team in wanted])
    is_stated = ~wanted.any(1) & (empty is not None)
    missing = (position < 0) & ~is_stated & np.asarray(plan.row_mask)
    if missing.any():
        first = logged.units[wanted[np.flatnonzero(missing)[0]]].tolist()
        lacking, needed = len(np.unique(wanted[missing], axis=0)), len(np.unique(wanted, axis=0))
        raise CreditError(
            f"{lacking} of {needed} needed coalitions never occurred"
            f" in the log, first that of units {first}; evaluate them (`plan`), or ask for less (`leave_one_out`)"
        )
    value = np.where(is_stated, 0.0 if empty is None else empty, logged.value[position])
    return value, np.where(is_stated, 0.0, logged.stderr[position])


def leave_one_out(logged: Logged) -> tuple[np.ndarray, np.ndarray]:
    """v(N) − v(N∖i) where both occurred, NaN where not, and its standard error: float64 [N], [N].

    SHARP's masked outcomes are this, with `Logged` made from the outcome with each unit masked. It is an effect of
    removing a unit, not a share: the numbers do not sum to v(N) − v(∅). `estimators.shapley.spread(...,
    estimand="effect")`.

    Raises:
      CreditError: the whole team never occurred, so no unit has a number.

    Examples:
      >>> import numpy as np
      >>> from estimators.shapley import Logged
      >>> teams = np.array([[False, True], [True, False], [True, True]])
      >>> logged = Logged(np.arange(2), teams, np.array([0.0, 0.5, 1.0]), np.zeros(3), np.ones(3, int))
      >>> leave_one_out(logged)[0].tolist()
      [1.0, 0.5]
    """
    n = len(logged.units)
    row_of = {team.tobytes(): c for c, team in enumerate(logged.coalitions)}
    full = row_of.get(np.ones(n, bool).tobytes())
    if full is None:
        raise CreditError("the team of all units never occurred in the log; leave-one-out has nothing to compare with")
    effect, error = np.full(n, np.nan), np.full(n, np.inf)
    for unit in range(n):
        c = row_of.get((np.arange(n) != unit).tobytes())
        if c is not None:
            effect[unit] = logged.value[full] - logged.value[c]
            error[unit] = np.hypot(logged.stderr[full], logged.stderr[c])
    return effect, error
