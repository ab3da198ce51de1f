"""prime-rl: an algorithm whose advantages are those of this library. It replaces one of prime-rl's.

    class SelfPlay(CreditAlgorithm):
        credit = "spiral_rae"

    prime_rl.orchestrator.algo.ALGORITHM_CLASSES["rae"] = SelfPlay      # before the orchestrator starts

Written against prime-rl's source at 559b447, which has no release.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar

from prime_rl.orchestrator.algo.base import Algorithm, iter_trainable_traces

from credit.integrations.rows.row_advantages import RowAdvantages
from credit.integrations.trainer_credit import TrainerCredit
from credit.integrations.verifiers import credit_of_episodes

__all__ = ["CreditAlgorithm"]

NAMES = "an episode's traces name their agents, and each sampled message is a turn"


class CreditAlgorithm(Algorithm):
    """Credit for each agent of prime-rl's episodes, by any method; set the attributes in a subclass.

    An episode is a trace, a trace of prime-rl is an agent in it, a sampled message is a turn, and the episodes of one
    `score_group` are a group. What prime-rl does not train keeps `advantages` None and enters no baseline: traces with
    an error, of agents that are not trainable, or without sampled tokens. A message without an answer gets 0, which
    prime-rl leaves out of the loss.

    A method that pays agents (`RowAdvantages.pays_agents`) gets what each trace earned by itself; the others get the
    number that the traces of an episode share, or `outcome`. `prime_rl_rae` and `hierarchical_grpo` are prime-rl's own
    `rae` and `hierarchical_grpo`. What a method carries lasts from group to group, in `averages`. A trace that nothing
    scored has no reward; prime-rl takes 0.

    Attributes:
      credit: a method by name, or a function.
      options: keyword arguments of `RowAdvantages`, the method's and `watch`.
      rows: the largest number of sampled messages of a group to expect; a larger group compiles once more.
      outcome: a `staticmethod`, the outcome of an episode for all its traces. Default: what they earned.
      credit_metrics: the metrics of the last group.
    """

    credit: ClassVar[Any] = "rloo"
    options: ClassVar[Mapping[str, Any]] = {}
    rows: ClassVar[int] = 1024
    outcome: ClassVar[Any] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._credit = TrainerCredit(
            RowAdvantages(self.credit, rows=self.rows, **self.options),
            trainer="prime-rl's source at 559b447",
            hooks={Algorithm: ("setup", "score_group", "finalize_group")},
            columns=NAMES,
            part="the episodes of one group",
        )

    async def setup(self) -> None:
        """Compile before the first group."""
        await super().setup()
        rows = self._credit.rows
        await asyncio.to_thread(rows.warmup, evidence=["agent_reward"] if self._pays_agents else [])

    async def score_group(self, episodes: list[Any]) -> None:
        credit_of_episodes(self._credit, list(iter_trainable_traces(episodes)), lambda episode: "group", self.outcome)

    async def finalize_group(self, episodes: list[Any]) -> None:
        await super().finalize_group(episodes)
        self._credit.check_ran()

    @property
    def _pays_agents(self) -> bool:
        return bool(self._credit.rows.pays_agents) and self.outcome is None

    @property
    def averages(self) -> Mapping[str, float] | None:
        """What the method carries from group to group (`RowAdvantages.state`)."""
        state: Mapping[str, float] | None = self._credit.rows.state
        return state

    @property
    def credit_metrics(self) -> Mapping[str, float]:
        return self._credit.metrics
