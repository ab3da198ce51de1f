"""A plan of runs, later plans that add to it, and their results: put together as one plan with one result."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from credit.replay.replay_plan import Job, ReplayPlan
from credit.replay.run_results import Results
from graphs.errors import CreditError

__all__ = ["pooled"]


def pooled(plans: Iterable[tuple[ReplayPlan, Results]]) -> tuple[ReplayPlan, Results]:
    """Several plans and their results as one: runs of one mean are put together.

    A later plan may give more runs to decisions whose outcomes spread more. The number of runs then depends on the
    outcomes, and a mean over all runs is biased, at most by the order of 1 over the runs of the first plan.

    Raises:
      CreditError: no plan; plans of several purposes or games; or two with one seed, whose runs are the same.
    """
    pairs = list(plans)
    if not pairs:
        raise CreditError("no plan to pool; expected one or more")
    first = pairs[0][0]
    seeds = [plan.seed for plan, _ in pairs]
    if len(set(seeds)) < len(seeds):
        raise CreditError(f"the seeds of the plans are {seeds}; expected different ones, since equal seeds repeat runs")
    for plan, _ in pairs:
        same_game = (plan.game is None) == (first.game is None) and (
            plan.game is None or first.game is None or plan.game.same_rows(first.game)
        )
        if plan.purpose != first.purpose or not same_game:
            raise CreditError("the plans are for different purposes or games; expected one")
    jobs: dict[tuple[Any, ...], Job] = {}
    parts: dict[tuple[Any, ...], list[tuple[Results, int]]] = {}
    for plan, results in pairs:
        for number, job in enumerate(plan.jobs):
            known = jobs.get(job.key)
            if known is None:
                jobs[job.key] = job
            else:
                costs = (known.tokens, job.tokens)
                tokens = None if None in costs else sum(cost for cost in costs if cost is not None)
                jobs[job.key] = dataclasses.replace(job, runs=known.runs + job.runs, tokens=tokens)
            parts.setdefault(job.key, []).append((results, number))
    rewards: list[dict[int, float]] = []
    failed: list[frozenset[int]] = []
    alternatives: list[dict[int, str]] = []
    strayed: dict[int, str] = {}
    for pooled_job, pieces in enumerate(parts.values()):
        offset = 0  # runs are numbered from 0 in every plan; those of later plans are numbered on
        outcomes: dict[int, float] = {}
        lost: set[int] = set()
        chosen: dict[int, str] = {}
        for results, number in pieces:
            outcomes |= {offset + run: reward for run, reward in results.rewards[number].items()}
            chosen |= {offset + run: name for run, name in results.alternatives[number].items()}
            lost |= {offset + run for run in results.failed[number]}
            offset += 1 + max([*results.rewards[number], *results.failed[number]], default=-1)
            if number in results.strayed:
                strayed.setdefault(pooled_job, results.strayed[number])
        rewards.append(outcomes)
        failed.append(frozenset(lost))
        alternatives.append(chosen)
    paid = tuple(sum(results.job_tokens[number] for results, number in pieces) for pieces in parts.values())
    together = Results(tuple(rewards), tuple(failed), strayed, paid, tuple(alternatives))
    return ReplayPlan(first.purpose, tuple(jobs.values()), first.seed, first.game), together
