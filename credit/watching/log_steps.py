"""The numbers of one training step from its logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from credit.ledger.from_methods import compose_claims
from credit.methods.running import run
from credit.reports.corpus import survey
from credit.watching.step_numbers import alignments, groups_answered, ledger_numbers, noise_number
from graphs.traces.batch import Traces

__all__ = ["log_numbers"]


def log_numbers(
    traces: Traces,
    method: str,
    *,
    compare: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    evidence: Iterable[str] = (),
    ledger: bool = True,
) -> dict[str, float]:
    """Numbers of one step's logs, by the names that `credit.integrations.Watch` gives them.

        credit/traces, /groups          counts
        credit/groups_that_teach        share of groups in which an action has an answer other than 0
        credit/groups_of_one            share of groups of one trace
        credit/refused                  share of actions that are trained without an answer of the method
        credit/advantage_mean, _std     over the actions with an answer
        credit/snr, /alignment/NAME     see `credit.watching.step_numbers`
        credit/ledger/...               of the ledger that the methods compose

    Args:
      traces: what was read of the step.
      method: the method that the trainer uses, by name.
      compare: names of further methods.
      options: options of `method`.
      evidence: names of further evidence to take from the log for `method`.
      ledger: whether the methods are composed into a ledger.

    Raises:
      CreditError: as `credit.run`.

    Examples:
      >>> import credit
      >>> _, _, rows = credit.from_columns(group=["q", "q"], trace=["a", "b"], agent=["x", "x"], reward=[1.0, 0.0])
      >>> numbers = log_numbers(rows.traces, "rloo", compare=["dr_grpo"])
      >>> numbers["credit/groups_that_teach"], numbers["credit/alignment/dr_grpo"]
      (1.0, 1.0)
    """
    result = run(traces, method, evidence=evidence, **(options or {}))
    others = {name: run(traces, name) for name in compare}
    corpus, n = survey(traces), traces.sizes.events
    action = np.asarray(traces.graph.action_mask)[:n]
    answered, trained = np.asarray(result.valid)[:n] & action, int(np.asarray(traces.graph.trained_mask)[:n].sum())
    group = np.asarray(traces.graph.group_ids)[np.asarray(traces.graph.trace_ids)[:n]]
    _, teach, _ = groups_answered(group, answered, np.asarray(result.advantage)[:n])
    advantage = np.asarray(result.advantage, np.float64)[:n][answered]
    numbers = {
        "credit/traces": float(corpus.traces),
        "credit/groups": float(corpus.groups),
        "credit/groups_that_teach": int(teach.sum()) / corpus.groups,
        "credit/groups_of_one": len(corpus.singletons) / corpus.groups,
        "credit/refused": 1 - len(advantage) / trained if trained else 0.0,
        "credit/advantage_mean": float(advantage.mean()) if len(advantage) else 0.0,
        "credit/advantage_std": float(advantage.std()) if len(advantage) else 0.0,
    }
    numbers |= noise_number(result) | alignments(result, others)
    if ledger:
        names = traces.agents["role"].to_pylist()
        roles = [str(names[agent]) for agent in np.asarray(traces.graph.agent_ids)[:n]]
        numbers |= ledger_numbers(compose_claims(traces, {method: result, **others}), roles, np.arange(n))
    return numbers
