"""Agent Lightning's verl trainer with rollouts as traces and their turns."""

from __future__ import annotations

from typing import Any

from agentlightning.verl import trainer as of_agent_lightning

from credit.hooks import require_hooks, with_globals
from credit.integrations.verl import CREDIT_METRICS, compute_advantage

__all__ = ["CreditAgentLightningTrainer"]


def _data_metrics(batch: Any, **options: Any) -> dict[str, Any]:
    """Agent Lightning's metrics of a batch, and those of the credit in it."""
    return {
        **of_agent_lightning.compute_data_metrics(batch=batch, **options),
        **batch.meta_info.get(CREDIT_METRICS, {}),
    }


require_hooks("Agent Lightning 0.3.0", {of_agent_lightning.AgentLightningTrainer: ("_train_step",)})


class CreditAgentLightningTrainer(of_agent_lightning.AgentLightningTrainer):
    """`AgentLightningTrainer` whose estimators `credit_*` see the rollout and the turn of each row.

    Agent Lightning writes `rollout_id_list` and `turn_index_list` beside the rows and does not read them: its own
    estimators, which are unchanged, take each row for a rollout, so that long rollouts weigh more.
    Written against Agent Lightning 0.3.0, whose trainer runs with verl 0.6.
    """

    # The method of Agent Lightning, in which these two functions of its module are replaced.
    _train_step = with_globals(
        of_agent_lightning.AgentLightningTrainer._train_step,
        compute_advantage=compute_advantage,
        compute_data_metrics=_data_metrics,
    )
