"""Which version of its policy each row was sampled by, and how far that is behind the one that is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from credit.integrations.rows.row_columns import taken
from credit.integrations.rows.row_metrics import Batch
from credit.integrations.rows.row_selection import rows_named
from credit.tables.column_values import factorise
from graphs.argument_kinds import is_whole
from graphs.errors import CreditError
from graphs.text import excerpt

__all__ = ["traces_used_again", "trained_versions", "version_metrics"]


def trained_versions(trained: Any, agent: Any, version: np.ndarray | None, drawn: np.ndarray) -> np.ndarray | None:
    """The version that is trained of the policy of each row: float64 [N], NaN of rows that are not drawn.

    Args:
      trained: one version, or one for each agent by its name; None where that is not told, as is the result.
      agent: names [N]; None without the column.
      version: float64 [N], NaN where a row states none; None without the column.
      drawn: bool [N], rows of a policy that may be trained.

    Raises:
      CreditError: no integer, or one below a version of its rows; an agent of the batch without a version.
    """
    if trained is None:
        return None
    rows = np.flatnonzero(drawn)
    codes, names = np.zeros(len(rows), int), [None]
    if isinstance(trained, Mapping):
        if agent is None:
            raise CreditError("trained_version names agents, and rows have no column 'agent'; expected one integer")
        if not len(rows):
            return np.full(len(drawn), np.nan)
        with rows_named(rows):
            codes, labels = factorise("agent", taken("agent", agent, rows), len(rows))
        names = labels.to_pylist()
    found = np.full(len(drawn), np.nan)
    for code, name in enumerate(names):
        of_name = rows[codes == code]
        newest = 0 if version is None else np.nanmax(version[of_name], initial=0)
        stated, whose = (trained, "") if name is None else (trained.get(name), f" of agent {name!r}")
        if not is_whole(stated) or stated < newest:
            expected = f"an integer of at least {newest:.0f}, the newest policy_version{whose}"
            raise CreditError(f"trained_version{whose} is {excerpt(stated)}; expected {expected}")
        found[of_name] = stated
    return found


def version_metrics(batch: Batch, trained: np.ndarray | None) -> dict[str, float]:
    """How old trained rows are in versions of the policy, and how many state none; no ages where none states its own.

    Nothing where neither a row nor the trainer states a version. Versions of a frozen agent do not count.

    policy_age, policy_age_mean   versions between the trained policy, else the newest row, and the oldest row; mean
    versions_unknown       rows without a version, which `policy_age` and `groups_of_several_versions` leave out
    groups_of_several_versions    groups with rows of several versions, or of several ages where agents have their own

    Args:
      trained: of `trained_versions`, for the rows of the batch.
    """
    if "policy_version" not in batch.columns and trained is None:
        return {}
    from estimators.base import Reason

    version = batch.columns.get("policy_version", np.full(len(batch.rows.event), np.nan))
    of_trained = batch.reason[batch.rows.event] != Reason.FROZEN
    known = of_trained & ~np.isnan(version)
    unknown = {"credit/versions_unknown": 1 - known.sum() / max(int(of_trained.sum()), 1)}
    if not known.any():
        return unknown
    age = (version[known].max() if trained is None else trained[known]) - version[known]
    group = np.asarray(batch.graph.group_ids)[np.asarray(batch.graph.trace_ids)[batch.rows.event[known]]]
    least, most = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(least, group, age)
    np.maximum.at(most, group, age)
    ages = {"policy_age": age.max(), "policy_age_mean": age.mean()}
    several = {"groups_of_several_versions": np.count_nonzero(most > least) / len(np.unique(group))}
    return unknown | {f"credit/{name}": float(value) for name, value in {**ages, **several}.items()}


def traces_used_again(batch: Batch) -> int:
    """How many traces have several versions in their first turn, as where ids are used again at a later step.

    A trace may go on under a later policy, and begins under one. 0 where most of those of several versions do.
    """
    if "policy_version" not in batch.columns or "turn" not in batch.columns:
        return 0
    event, graph = batch.rows.event, batch.graph
    trace, agent, turn = (np.asarray(ids)[event] for ids in (graph.trace_ids, graph.agent_ids, graph.turn_ids))
    order = np.argsort(event)
    ids, begin = np.unique(trace[order], return_index=True)
    first = order[begin[np.searchsorted(ids, trace)]]
    version = batch.columns["policy_version"]
    known = ~np.isnan(version)

    def several(rows: np.ndarray) -> int:
        least, most = np.full(len(graph.trace_mask), np.inf), np.full(len(graph.trace_mask), -np.inf)
        np.minimum.at(least, trace[rows], version[rows])
        np.maximum.at(most, trace[rows], version[rows])
        return int(np.count_nonzero(most > least))

    again = several(known & (agent == agent[first]) & (turn == turn[first]))
    return again if 2 * again >= several(known) else 0
