"""Values for teams whose members depend on each other: spawn forests, nested levels."""

from estimators.shapley.structured.forest_ideals import ideals, precedence_exact
from estimators.shapley.structured.growth_orders import (
    count_extensions,
    extensions,
    heights,
    precedence_walks,
    subtree_sizes,
)
from estimators.shapley.structured.owen import owen_exact, owen_orders
from estimators.shapley.structured.permission import (
    ancestors_or_self,
    permission_coalitions,
    permission_of_worth,
    team_parents,
)

__all__ = [
    "ancestors_or_self",
    "count_extensions",
    "extensions",
    "heights",
    "ideals",
    "owen_exact",
    "owen_orders",
    "permission_coalitions",
    "permission_of_worth",
    "precedence_exact",
    "precedence_walks",
    "subtree_sizes",
    "team_parents",
]
