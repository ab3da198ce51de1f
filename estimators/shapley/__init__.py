"""Monte-Carlo Shapley credit as *plan → evaluate → solve*.

plan, choice = make_plan(key, n, budget, noise=0.5)       what to evaluate; `choice.reason` says why this method
values = ...                                              one number for each row of `plan.coalitions`
shares = solve(plan, values, degrees=choice.degrees)      shares with errors; `degrees`: slopes in team size
credit = spread(graph, shares_by_id, stderr_by_id, level="agent")
"""

from estimators.shapley.event_credit import batch_shapley, shapley
from estimators.shapley.logs import Logged, leave_one_out, logged_coalitions, logged_values
from estimators.shapley.plan import (
    Plan,
    bound_constant,
    merge,
    pad_plan,
    plan_exact,
    plan_pairs,
    plan_walks,
    stack_plans,
    walks_from_orders,
)
from estimators.shapley.rule import Choice, attainable_stderr, choose, least_evaluations, make_plan
from estimators.shapley.solving import mean_of_marginals, solve
from estimators.shapley.unit_shares import Shares, more_evaluations, spread

__all__ = [
    "Choice",
    "Logged",
    "Plan",
    "Shares",
    "attainable_stderr",
    "batch_shapley",
    "bound_constant",
    "choose",
    "least_evaluations",
    "leave_one_out",
    "logged_coalitions",
    "logged_values",
    "make_plan",
    "mean_of_marginals",
    "merge",
    "more_evaluations",
    "pad_plan",
    "plan_exact",
    "plan_pairs",
    "plan_walks",
    "shapley",
    "solve",
    "spread",
    "stack_plans",
    "walks_from_orders",
]
