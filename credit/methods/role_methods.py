"""`run_by_role`: another method for each role of one batch, as rLLM trains."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from credit.methods.running import run
from credit.tables.batch_rows import Rows, as_traces
from estimators.base import Reason, finish
from graphs.argument_kinds import checked_kinds
from graphs.errors import CreditError
from graphs.padding import pad_array

if TYPE_CHECKING:
    from estimators.base import Credit
    from graphs.traces.batch import Traces

__all__ = ["run_by_role"]


@checked_kinds("methods")
def run_by_role(traces: Traces | Rows, methods: Mapping[str, str | tuple[str, Mapping[str, Any]]]) -> Credit:
    """Compute the credit of each role by a method of its own.

    The actions of one role are those that its method trains: the other agents count as frozen, so that their actions
    enter no statistic of rows. A method that compares whole traces compares those in which the role does not act, too;
    `by="task,role"` compares the role's own samples only.

    Args:
      traces: what `credit.read` returns, or the `Rows` of `credit.from_columns`.
      methods: by role, the name of a method, or its name and its options. Every role of the log has one.

    Returns:
      `Credit` over the events of `traces.graph`, [E]. Its unit and estimand are those of the methods where they agree,
      else "event" and "score".

    Raises:
      CreditError: a role of the log without a method, a method of no role, or what `credit.run` refuses.

    Reference: rLLM `traj_group_adv_estimator_map` (rllm-org/rllm at 9beb6e0), read and not executed.

    Examples:
      >>> import credit
      >>> from credit.methods.role_methods import run_by_role
      >>> _, _, rows = credit.from_columns(
      ...     group=[0] * 4, trace=list("aabb"), role=["plan", "solve"] * 2, reward=[1.0, 1.0, 0.0, 0.0])
      >>> result = run_by_role(rows, {"plan": "rloo", "solve": ("grpo", {"ddof": 0, "by": "task,role"})})
      >>> rows.gather(result.advantage).tolist()
      [1.0, 1.0, -1.0, -1.0]
    """
    traces = as_traces(traces)
    graph, names = traces.graph, traces.agents["role"].to_pylist()
    without, unknown = sorted(set(names) - set(methods)), sorted(set(methods) - set(names))
    if without or unknown:
        problem = f"no method for the role {without[0]!r}" if without else f"no agent has the role {unknown[0]!r}"
        raise CreditError(f"methods has {problem}; expected one for each of {', '.join(sorted(set(names)))}")
    roles = sorted(methods)
    of_agent = pad_array(np.array([roles.index(name) for name in names], np.int32), graph.num_agents, -1)
    of_event = of_agent[np.asarray(graph.agent_ids)]
    results = []
    for number, role in enumerate(roles):
        method, options = (stated, {}) if isinstance(stated := methods[role], str) else stated
        only = dataclasses.replace(graph, trainable_mask=np.asarray(graph.trained_mask) & (of_event == number))
        results.append(run(dataclasses.replace(traces, graph=only), method, **options))

    def of_roles(field: str) -> Any:
        columns = [jnp.asarray(getattr(result, field)) for result in results]
        return jnp.stack(columns)[np.maximum(of_event, 0), np.arange(graph.num_events)]

    # The frozen agents of the log are none of the roles' own choice: `finish` names them.
    reason = of_roles("reason")
    units, estimands = {result.unit for result in results}, {result.estimand for result in results}
    return finish(
        graph,
        credit=of_roles("credit"),
        baseline=of_roles("baseline"),
        scale=of_roles("scale"),
        stderr=of_roles("stderr"),
        reason=jnp.where(reason == Reason.FROZEN, Reason.NOT_AN_ACTION, reason),
        unit=units.pop() if len(units) == 1 else "event",
        estimand=estimands.pop() if len(estimands) == 1 else "score",
        source=", ".join(f"{role}: {result.source}" for role, result in zip(roles, results, strict=True)),
        centred=all(result.centred for result in results),
        own_outcome=any(result.own_outcome for result in results) and of_roles("holds_outcome"),
    )
