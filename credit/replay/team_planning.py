"""Shapley values by re-running: the coalitions to run on each task, and the values from their outcomes.

The game is v(S) = the mean over the tasks of the log of E[R | task, only the agents S act]. The driver states what an
absent agent does (removed, muted, idle), since each is another game.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credit.replay.replay_plan import Job, ReplayPlan
from credit.replay.replayer import Prefix
from credit.replay.run_planning import KnownRuns, allocated, outcome_spread, run_costs
from credit.replay.run_results import Results
from credit.replay.shapley_game import Game, shapley_plan
from estimators.shapley import Shares
from graphs.errors import CreditError
from graphs.text import counted, excerpt
from graphs.traces.batch import Traces

__all__ = ["plan_coalitions", "predicted_share_stderr", "shares_by_name", "solve_coalitions"]


def plan_coalitions(
    traces: Traces,
    budget: int,
    *,
    unit: str = "runs",
    units: Sequence[str] = (),
    least: int = 2,
    seed: int = 0,
    known: KnownRuns | None = None,
    game: Game | None = None,
) -> ReplayPlan:
    """Distribute a budget over coalitions of agents and the tasks of a log.

    The coalitions are those of `credit.shapley_plan`: all 2^N where the budget runs each `least` times on each task,
    else a sample. Runs go where they lower the sum of the shares' squared standard errors most: a row with weight
    w_ic in φ_i = Σ_c w_ic v_c and an outcome spread σ gets runs in proportion to σ √(Σ_i w_ic²).

    Args:
      traces: what was read; a task is a group.
      budget: runs in all, or tokens in all.
      unit: "runs" or "tokens". A run is expected to take as many tokens as the task's traces did on average.
      units: names of the agents that are players; the others always act. Default: all agents of the log.
      least: smallest number of runs of a coalition on a task, earlier ones included.
      seed: of the coalitions and of the runs.
      known: results of earlier runs.
      game: the coalitions of an earlier plan, to which this one adds runs; `units` is then that plan's.

    Returns:
      A plan with the purpose "shapley"; each job runs one coalition on one task, from the start.

    Raises:
      CreditError: a name that no agent has, or too small a budget.
    """
    names = sorted(set(traces.agents["name"].to_pylist()))
    strangers = [name for name in units if name not in names]
    if strangers:
        raise CreditError(f"the log has no agent named {strangers[0]!r}; it has {excerpt(names)}")
    players = game.units if game is not None else tuple(units) or tuple(names)
    groups = traces.traces["group"].to_pylist()
    ids = traces.traces["trace"].to_pylist()
    group_of = np.asarray(traces.graph.group_ids)[: len(groups)]
    first = np.unique(group_of, return_index=True)[1].tolist()  # groups are numbered by their first traces
    spread = outcome_spread(traces)[first]
    price = np.bincount(group_of, run_costs(traces).whole[: len(groups)]) / np.bincount(group_of)
    if game is None:
        game = _game(players, budget, unit, least, seed, spread, price)
    weight = np.sqrt((game.weights() ** 2).sum(axis=1)) / len(first)
    jobs = [
        Job(Prefix(ids[place], groups[place]), None, tuple(u for u in players if u not in game.team(row)), 1, row=row)
        for row in range(game.plan.evaluations)
        for place in first
    ]
    steering = np.repeat(weight, len(first))
    repeat = game.plan.evaluations
    planned = allocated(jobs, budget, unit, least, np.tile(spread, repeat), np.tile(price, repeat), known, steering)
    return ReplayPlan("shapley", planned, seed, game)


def _game(
    players: Sequence[str], budget: int, unit: str, least: int, seed: int, spread: np.ndarray, price: np.ndarray
) -> Game:
    """As many coalitions as the budget can run `least` times on each task."""
    tasks = len(spread)
    runs = float(budget)
    if unit == "tokens" and np.isfinite(price).all():  # the allocation refuses prices that are unknown
        runs = budget / max(float(price.mean()), 1.0)
    each = int(runs) // (tasks * least)
    if each < 2 * len(players):
        raise CreditError(
            f"budget is {budget} {unit}; expected {2 * len(players) * tasks * least} runs or more for "
            f"{counted(len(players), 'agent')}, {counted(tasks, 'task')} and {least} of each coalition on each task"
        )
    if each >= 2 ** len(players):  # every coalition; the noise of the runs is in the standard errors
        return shapley_plan(players, 2 ** len(players), seed=seed)
    noise = float(np.sqrt(np.nanmean(spread**2) / (least * tasks))) if np.isfinite(spread).any() else 0.5
    return shapley_plan(players, each, noise=noise, seed=seed)


def predicted_share_stderr(plan: ReplayPlan) -> dict[str, float]:
    """The standard error that each share is expected to have from the noise of the runs, by agent.

        stderr(φ_i)² = Σ_c w_ic² Σ_tasks stderr² / tasks²

    The error of a sample of coalitions, where not all are run, is not in it.

    Raises:
      CreditError: a plan of another purpose.
    """
    if plan.game is None:
        raise CreditError(f"the plan is for {plan.purpose!r}; expected one for 'shapley'")
    tasks = len({job.prefix.group for job in plan.jobs})
    variance = np.zeros(plan.game.plan.evaluations)
    for job in plan.jobs:
        variance[job.row or 0] += job.stderr**2 / tasks**2
    error = np.sqrt(variance @ plan.game.weights() ** 2)
    return dict(zip(plan.game.units, error.tolist(), strict=True))


def solve_coalitions(plan: ReplayPlan, results: Results) -> Shares:
    """Shapley shares from the runs of coalitions, with the noise of the runs in their standard errors.

    The spread of each job's outcomes is that of `Results.shrunk_spread`.

    Raises:
      CreditError: a plan of another purpose, or a coalition without an outcome on some task.
    """
    if plan.game is None:
        raise CreditError(f"the plan is for {plan.purpose!r}; expected one for 'shapley'")
    mean, _, runs = results.mean_and_spread()
    empty = np.flatnonzero(runs == 0)
    if len(empty):
        job = plan.jobs[int(empty[0])]
        team = plan.game.team(job.row or 0)
        raise CreditError(
            f"{counted(len(empty), 'coalition')} on a task have no outcome, first {excerpt(team)} on "
            f"{job.prefix.group!r}; expected one of each"
        )
    variance = results.shrunk_spread([job.prefix.group for job in plan.jobs]) ** 2 / runs
    rows = np.array([job.row for job in plan.jobs])
    size = plan.game.plan.evaluations
    count = np.bincount(rows, minlength=size)
    value = np.bincount(rows, mean, size) / count
    noise = np.sqrt(np.bincount(rows, variance, size)) / count
    return plan.game.solve(value, noise=noise)


def shares_by_name(plan: ReplayPlan, results: Results) -> dict[str, tuple[float, float]]:
    """Share and standard error of each agent that is a player.

    Raises:
      CreditError: see `solve_coalitions`.
    """
    solved = solve_coalitions(plan, results)
    names = () if plan.game is None else plan.game.units
    pairs = zip(np.asarray(solved.share).tolist(), np.asarray(solved.stderr).tolist(), strict=True)
    return dict(zip(names, pairs, strict=True))
